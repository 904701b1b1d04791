#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Things that may be next to a file, or have the names that an index gives. An archive cannot contain
them, so they are made here.

    neighbours.py TENFOLD [CLASS]

    Q invalid undo files (.NAME.tenfold-undo): they are ignored when the file is read
    R aliases: one shard with hundreds of names is one file
    S hundreds of thousands of names of missing shards
    T shards that are not files: FIFOs, devices, directories, sockets, links to nothing and to themselves

The limits are those of run.py: 16 times the bytes on the disk and 16 MiB of memory, two seconds of
processor time (twenty for S; comparing each name with all others would take many minutes). A command
that waits for something is ended and reported.
"""
import hashlib
import json
import os
import pathlib
import resource
import socket
import struct
import subprocess
import sys
import tempfile

from run import MIB, Command, Wrong, need

PATIENCE = 120  # seconds; only a command that waits for something needs as long


def safetensors(tensors):
    """The bytes of a file of empty tensors."""
    header = json.dumps({name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in tensors}).encode()
    return struct.pack("<Q", len(header)) + header


def index(where, weight_map):
    path = where / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": weight_map}))
    return path


def bytes_in(where):
    """The bytes on the disk, without holes. Each file counts once."""
    seen = {}
    for path in where.rglob("*"):
        st = path.lstat()
        seen[st.st_ino] = min(st.st_size, st.st_blocks * 512)
    return sum(seen.values())


def run(command, where, *args, seconds=2):
    """Exit code, stdout, stderr, under the limits for the files in that directory."""
    room = None if command.asan else (command.idle + 16) * MIB + 16 * bytes_in(where)
    seconds *= 5 if command.asan else 1

    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if room:
            resource.setrlimit(resource.RLIMIT_AS, (room, room))

    try:
        done = subprocess.run([command.path, *map(str, args)], env=command.env, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=PATIENCE, preexec_fn=limits, check=False)
    except subprocess.TimeoutExpired:
        raise Wrong(f"{args[0]} waits for something") from None
    error = done.stderr.decode("utf-8", "backslashreplace")
    need(0 <= done.returncode < 126, args[0], "died:", done.returncode, error[-3000:])
    need("Sanitizer" not in error and "runtime error:" not in error, args[0], "sanitizer:", error[-3000:])
    return done.returncode, done.stdout, error


# ------------------------------------------------------------------ Q: undo files

def undo_file(ranges, size):
    """Follows the description in src/io/undo.c, with a valid digest."""
    body = b"TNFUNDO1" + struct.pack("<QQQ", size, size, len(ranges))
    for at, old, new in ranges:
        body += struct.pack("<QQQ", at, len(old), len(new)) + old + new
    return body + hashlib.sha256(body).digest()


def sparse(path, size):
    with open(path, "wb") as f:
        f.truncate(size)


def listen(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))


def written(path, content):
    path.write_bytes(content)


def two_names(path, content):
    path.write_bytes(content)
    os.link(path, path.with_name("another"))


def of_another(path, content):
    path.write_bytes(content)
    os.chown(path, 12345, 12345)


def undo_classes(model):
    size = len(model)
    # byte 7 is 0 in these files: one file has a half-done range, the other one would replace the
    # rest
    planted = undo_file([(7, b"\1", b"\0"), (8, b"X" * 20, b"")], size)
    half = undo_file([(7, b"\1", b"\0"), (9, model[9:10], b"Y")], size)
    yield "a FIFO", os.mkfifo
    yield "a directory", os.mkdir
    yield "a socket", listen
    yield "a link to /dev/zero", lambda p: p.symlink_to("/dev/zero")
    yield "a link to nothing", lambda p: p.symlink_to("nothing")
    yield "a link to itself", lambda p: p.symlink_to(p)
    yield "a link to what would count", lambda p: (written(p.with_name("far"), half), p.symlink_to("far"))
    yield "zeros, 1 GiB of a hole", lambda p: sparse(p, 1 << 30)
    yield "zeros, 1 TiB of a hole", lambda p: sparse(p, 1 << 40)
    yield "empty", lambda p: written(p, b"")
    yield "its beginning alone", lambda p: written(p, planted[:40])
    yield "of another file", lambda p: written(p, undo_file([(8, b"foreign!", b"FOREIGN!")], size))
    yield "of another size", lambda p: written(p, undo_file([(0, model[:8], b"12345678")], size + 1000))
    yield "without new bytes", lambda p: written(p, planted)
    yield "of ranges beyond the file", lambda p: written(p, undo_file([(1 << 60, b"a", b"b")], size))
    yield "of a range that wraps", lambda p: written(p, undo_file([((1 << 64) - 1, b"ab", b"cd")], size))
    yield "known by two names", lambda p: two_names(p, half)
    if os.geteuid() == 0:
        yield "somebody else's", lambda p: of_another(p, half)


def undo_files(command, scratch):
    model = safetensors(["a", "b"])
    for number, (name, make) in enumerate(undo_classes(model)):
        for sharded in (False, True):
            where = scratch / f"undo{number}{sharded}"
            where.mkdir()
            file = where / "model.safetensors"
            file.write_bytes(model)
            opened = index(where, {"a": file.name, "b": file.name}) if sharded else file
            before = [run(command, where, verb, opened) for verb in ("info", "ls")]
            need(all(code == 0 for code, _, _ in before), "the model itself:", before)
            make(where / f".{file.name}.tenfold-undo")
            try:
                for verb, wanted in zip(("info", "ls"), before):
                    got = run(command, where, verb, opened)
                    need(got == wanted, verb, "says", got, "instead of", wanted)
                code, _, error = run(command, where, "meta", "--no-sync", "--set", "k=v", file)
                need(code in (0, 3, 4), "meta exits with", code, error)
                wanted = b'"a"' in file.read_bytes() and b"X" * 20 not in file.read_bytes()
                need(wanted, "meta played a stranger's bytes in")
            except Wrong as wrong:
                yield f"an undo file that is {name}{', of a shard' if sharded else ''}: {wrong}"


# ------------------------------------------------------------------ R: aliases

def alias_classes(where):
    """One shard of a megabyte with many names: 1.1 MB on the disk must not take a gigabyte of
    memory."""
    def linked(i, link):
        (where / "l").mkdir(exist_ok=True)
        link(where / "s", where / f"l/{i}")
        return f"l/{i}"

    yield "by dots", lambda i: "./" * i + "s"
    yield "by slashes", lambda i: "." + "/" * (i + 1) + "s"
    yield "by hard links", lambda i: linked(i, os.link)
    yield "by symbolic links", lambda i: linked(i, lambda s, to: to.symlink_to(s))


def aliases(command, scratch):
    names = [f"tensor{i}" for i in range(16000)]
    for number in range(4):
        where = scratch / f"alias{number}"
        where.mkdir()
        (where / "s").write_bytes(safetensors(names))
        what, alias = list(alias_classes(where))[number]
        path = index(where, {name: alias(i) for i, name in enumerate(names[:400])})
        try:
            code, out, error = run(command, where, "info", "--json", path)
            need(code == 0, "exits with", code, error)
            told = json.loads(out)
            need(told["tensors"] == 400, told["tensors"], "tensors")
            need(told["attrs"]["safetensors.shards"] == 1, "shards:", told["attrs"])
            for verb in ("verify", "repair"):
                out = [where / "out.safetensors"] if verb == "repair" else []
                code, _, error = run(command, where, verb, path, *out)
                need(code in (0, 1), verb, "exits with", code, error)
        except Wrong as wrong:
            yield f"a shard {what}: {wrong}"


# ------------------------------------------------------------------ S: missing

def missing(command, scratch):
    """Comparing each of these names with all before it would take 20,000,000,000 comparisons. (The complete
    output needs more memory than one allocation may have with AddressSanitizer.)"""
    count = 30_000 if command.asan else 200_000
    where = scratch / "missing"
    where.mkdir()
    path = index(where, {f"t{i}": f"s{i:07}.safetensors" for i in range(count)})
    for verb, wanted in (("info", (0,)), ("ls", (0,)), ("stat", (3,)), ("verify", (3, 4)), ("repair", (3, 4))):
        try:
            out = [where / "out.safetensors"] if verb == "repair" else []
            code, _, error = run(command, where, verb, path, *out, seconds=20)
            need(code in wanted, verb, "exits with", code, error[:300])
        except Wrong as wrong:
            yield f"{count} shards that are not there: {wrong}"


# ------------------------------------------------------------------ T: planted shards

def planted(command, scratch):
    for number, (name, make, wanted) in enumerate((
            ("a FIFO", os.mkfifo, 4), ("a directory", os.mkdir, 4), ("a socket", listen, 4),
            ("a device", lambda p: p.symlink_to("/dev/zero"), 4),
            ("a terminal", lambda p: p.symlink_to("/dev/tty"), (3, 4)),
            ("the index", lambda p: p.symlink_to("model.safetensors.index.json"), 4),
            ("a link to nothing", lambda p: p.symlink_to("nothing"), 0),  # listed as missing
            ("a loop", lambda p: p.symlink_to(p), 3),
            ("a hole of 1 TiB", lambda p: sparse(p, 1 << 40), 4))):
        where = scratch / f"planted{number}"
        where.mkdir()
        path = index(where, {"a": "1.safetensors", "b": "2.safetensors"})
        make(where / "1.safetensors")
        (where / "2.safetensors").write_bytes(safetensors(["b"]))
        try:
            for verb in ("info", "verify"):
                code, _, error = run(command, where, verb, path)
                need(code in (wanted if isinstance(wanted, tuple) else (wanted, 4 if verb == "verify" else wanted)),
                     verb, "exits with", code, error)
            code, _, error = run(command, where, "repair", path, where / "out.safetensors")
            need(code in (1, 3, 4), "repair exits with", code, error)
        except Wrong as wrong:
            yield f"a shard that is {name}: {wrong}"


CLASSES = {"Q": undo_files, "R": aliases, "S": missing, "T": planted}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    command = Command(sys.argv[1])
    wanted = sys.argv[2] if len(sys.argv) > 2 else "QRST"
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        for letter in wanted:
            failed += CLASSES[letter](command, pathlib.Path(scratch))
    print("\n".join(failed), end="\n" if failed else "")
    print(f"classes {wanted}: {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
