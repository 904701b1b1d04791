#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the verdicts of other programs on the corpus with ours.

    differential.py TENFOLD [PREFIX]    prints a table, and the differences, as Markdown
    differential.py --serve PEER        reads paths from standard input; the first form starts this one

Run this by hand, with the Python that has the packages; a package that is not installed is left out.
Old ztensor packages are searched for where `./dev test` puts them. Each file is read in a process of
its own, under limits of time and memory. A file is accepted if the package's usual way of loading
reads all of it.
"""
import collections
import importlib.metadata
import io
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import traceback

SECONDS, MEMORY = 10, 4 << 30  # processor time; address space, most of which libraries use


# -------------------------------------------------------------------- the peers


def safetensors(path):
    import safetensors as package
    for _, t in package.deserialize(pathlib.Path(path).read_bytes()):
        bytes(t["data"])


def ztensor(path):
    import ztensor as package
    with package.open(path) as source:
        for name in source.keys():
            t = source[name]
            for part in [t] if len(t.parts) == 1 else [t[role] for role in t.parts]:
                part.tobytes()
    package.verify(path, True)


def ztensor_old(path):
    import ztensor as package
    reader = package.Reader(path)
    if hasattr(reader, "get_tensor_names"):
        for name in reader.get_tensor_names():
            reader.read_tensor(name).tobytes()
    else:
        for name in reader.keys():
            for a in reader.read(name).components.values():
                a.tobytes()


def gensim_binary(path):
    from gensim.models import KeyedVectors
    KeyedVectors.load_word2vec_format(path, binary=True).vectors.sum()


def gensim_text(path):
    from gensim.models import KeyedVectors
    KeyedVectors.load_word2vec_format(path, binary=False).vectors.sum()


def gensim_glove(path):
    from gensim.models import KeyedVectors
    KeyedVectors.load_word2vec_format(path, binary=False, no_header=True).vectors.sum()


def gensim_fasttext(path):
    from gensim.models.fasttext import load_facebook_vectors
    load_facebook_vectors(path).vectors.sum()


def fasttext(path):
    import fasttext as package
    model = package.load_model(path)
    for word in model.get_words()[:100]:
        model.get_word_vector(word)
    model.get_word_vector("nowhere")


def finalfusion(path):
    import finalfusion as package
    read(package.load_finalfusion(path))


def finalfusion_word2vec(path):
    from finalfusion.compat import load_word2vec
    read(load_word2vec(path))


def finalfusion_text(path):
    from finalfusion.compat import load_text
    read(load_text(path))


def finalfusion_textdims(path):
    from finalfusion.compat import load_text_dims
    read(load_text_dims(path))


def finalfusion_fasttext(path):
    from finalfusion.compat import load_fasttext
    read(load_fasttext(path))


def read(embeddings):
    for i in range(min(len(embeddings.vocab), 100)):
        embeddings.storage[i].sum()


def msgpack(path):
    """Checks the syntax only; only primitiv knows more rules."""
    import msgpack as package
    unpacker = package.Unpacker(io.BytesIO(pathlib.Path(path).read_bytes()), raw=True, strict_map_key=False)
    end = 0
    while True:
        try:
            unpacker.unpack()
        except package.OutOfData:
            break
        end = unpacker.tell()
    if end != os.path.getsize(path) or end == 0:
        raise ValueError("it ends inside of a value")


OLD = {"0.1.4": "ztensor0", "1.0.1": "ztensor1", "1.1.1": "ztensor1", "1.2.3": "ztensor1"}
# name: (format, package, how it is read)
PEERS = {"safetensors": ("safetensors", "safetensors", safetensors), "ztensor": ("ztensor2", "ztensor", ztensor),
         "gensim": ("word2vec", "gensim", gensim_binary), "gensim-text": ("textdims", "gensim", gensim_text),
         "gensim-glove": ("text", "gensim", gensim_glove), "gensim-fasttext": ("fasttext", "gensim", gensim_fasttext),
         "fasttext": ("fasttext", "fasttext-wheel", fasttext), "finalfusion": ("finalfusion", "finalfusion", finalfusion),
         "finalfusion-word2vec": ("word2vec", "finalfusion", finalfusion_word2vec),
         "finalfusion-text": ("text", "finalfusion", finalfusion_text),
         "finalfusion-textdims": ("textdims", "finalfusion", finalfusion_textdims),
         "finalfusion-fasttext": ("fasttext", "finalfusion", finalfusion_fasttext),
         "msgpack": ("primitiv", "msgpack", msgpack),
         **{f"ztensor-{v}": (f, "ztensor", ztensor_old) for v, f in OLD.items()}}


def load(how, path):
    """Runs in a process of its own; never returns."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(600)  # seconds of the clock, for code that waits
    try:
        how(path)
        verdict = "accepts", ""
    except MemoryError as error:
        verdict = "takes memory", str(error)
    except BaseException as error:  # a panic in Rust is not an Exception
        if any(word in f"{type(error).__name__} {error}" for word in ("Panic", "panick")):
            verdict = "panics", f"{type(error).__name__}: {error}"
        elif "bad_alloc" in str(error) or "allocate" in str(error):
            verdict = "takes memory", f"{type(error).__name__}: {error}"
        else:
            verdict = "rejects", "".join(traceback.format_exception_only(error)).strip()
    os.write(1, json.dumps(verdict).encode())
    os._exit(0)


def serve(peer):
    """Prints a line of JSON for each line with a path: the result, and the reason."""
    how = PEERS[peer][2]
    try:
        how("/dev/null")  # imports all modules; the result does not matter
    except BaseException:
        pass
    for line in sys.stdin:
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(into, 1)
            os.dup2(quiet, 2)
            load(how, line.rstrip("\n"))
        os.close(into)
        told = b"".join(iter(lambda: os.read(out, 65536), b""))
        os.close(out)
        status = os.waitpid(child, 0)[1]
        if told:
            verdict = json.loads(told)
        elif os.WIFSIGNALED(status):
            dead = signal.Signals(os.WTERMSIG(status)).name
            verdict = ("hangs" if dead in ("SIGALRM", "SIGXCPU", "SIGKILL") else "crashes"), dead
        else:
            verdict = "crashes", f"exit {os.waitstatus_to_exitcode(status)}"
        print(json.dumps(verdict), flush=True)


# ----------------------------------------------------------------- the comparison


def environment(peer):
    """The environment for a peer, and its version; None if it is not installed."""
    package = PEERS[peer][1]
    if peer.startswith("ztensor-"):
        folder = pathlib.Path(sys.prefix) / peer
        return (dict(os.environ, PYTHONPATH=str(folder)), peer.split("-")[1]) if folder.is_dir() else None
    try:
        return dict(os.environ), importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def ask(peer, env, paths):
    done = subprocess.run([sys.executable, __file__, "--serve", peer], input="".join(f"{p}\n" for p in paths), text=True,
                          capture_output=True, env=env, check=False)
    lines = done.stdout.splitlines()
    if len(lines) != len(paths):
        sys.exit(f"{peer} gives {len(lines)} answers for {len(paths)} files: {done.stderr[-2000:]}")
    return [json.loads(line) for line in lines]


def ours(tenfold, paths):
    """Does `tenfold verify` accept them?"""
    told = []
    for at in range(0, len(paths), 200):
        done = subprocess.run([tenfold, "verify", "--json", *paths[at:at + 200]], capture_output=True, check=False)
        told += [json.loads(line)["ok"] for line in done.stdout.decode().splitlines()]
    return told


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(sys.argv[2])
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    import make  # not when serving: generators have the names of packages
    corpus = make.corpus()
    prefix = sys.argv[2] if len(sys.argv) > 2 else ""
    entries = json.loads(make.LIST.read_text(encoding="utf-8"))["files"]
    entries = [e for e in entries if e["file"].startswith(prefix) and e["file"].count("/") == 2]  # no indexes
    print("| format | peer | both reject | both accept | we alone reject | they alone reject | they crash, panic, hang, or take 4 GiB |")
    print("|---|---|---:|---:|---:|---:|---:|")
    differ = []
    for peer, (format_, package, _) in PEERS.items():
        chosen = [e for e in entries if e["format"] == format_]
        there = environment(peer)
        if not there or not chosen:
            continue
        paths = [str(corpus / e["file"]) for e in chosen]
        counts = collections.Counter()
        for entry, we, (they, why) in zip(chosen, ours(sys.argv[1], paths), ask(peer, there[0], paths)):
            kind = they if they not in ("accepts", "rejects") else (we, they == "accepts")
            counts[kind if isinstance(kind, tuple) else "bad"] += 1
            if kind not in ((True, True), (False, False)):
                differ.append((peer, "we accept" if we else "we reject", "they accept" if they == "accepts" else
                               "they reject" if they == "rejects" else "one " + they, entry, why))
        name = peer if peer.startswith("ztensor-") else f"{peer} {there[1]}" if peer == package else f"{peer} ({package} {there[1]})"
        print(f"| {format_} | {name} | {counts[False, False]} | {counts[True, True]} | {counts[False, True]} | {counts[True, False]} | {counts['bad']} |",
              flush=True)
    print("\nWhere they differ:\n")
    for peer, we, they, entry, why in differ:
        print(f"{peer}\t{we}, {they}\t{entry['file']}\t{entry['what']}\t{why.splitlines()[-1][:150] if why else ''}")
    return None


if __name__ == "__main__":
    main()
