#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fixtures of every format: the output for a URL is the output for the file, and takes few requests. Every format
that the command knows must be among them.

    formats.py COMMAND [FILES OF EACH FORMAT] [files] [sets] [folders]
"""
import functools
import json
import os
import re
import shutil
import sys
import tempfile
import zlib

from world import AT_ONCE, World, at_once, bad, check, here, make_safetensors, floats, run

tests = os.path.dirname(here)
shared = os.path.join(os.path.dirname(os.path.dirname(tests)), "shared", "fixtures")
EACH = int(sys.argv[2]) if sys.argv[2:] and sys.argv[2].isdigit() else 4  # files of a format, of which the first valid one goes through all commands
SETS = [  # files that name others, among fixtures of the libraries that write them
    "pytorch/dcp_sharded/.metadata", "pytorch/dcp_single/.metadata",
    "tensorbundle/names/all.ckpt.index", "tensorbundle/names/sharded.index",
]
# No file is listed under this name: an index is listed with the name of its shards' format.
NOT_ALONE = {"safetensors-index"}
count = []
seen = set()


def find_folders():
    """Finds fixtures that are directories: each has a file of expected values next to it, and this build opens it."""
    found = []
    for name in sorted(os.listdir(shared)):
        for entry in sorted(os.listdir(os.path.join(shared, name))):
            path = os.path.join(shared, name, entry)
            if os.path.isdir(path) and any(os.path.exists(path + end) for end in (".json", ".dir.json")):
                if run("info", path)[0] == 0:
                    found.append(name + "/" + entry)
    check(len(found) >= 12, "only %d folders were found" % len(found))
    return (found if EACH >= 4 else found[::2]) + ["orbax/bad/manifest_crc"]


env = {}  # of all commands
FOLDER = re.compile("@/*")


def plain(done, place):
    """Returns the output of a command, without the place of the file."""
    place = place.rstrip("/")
    return [done[0], FOLDER.sub("@", done[1].decode(errors="surrogateescape").replace(place, "@")),
            FOLDER.sub("@", done[2].replace(place, "@"))]


def compare(path, url, *args):
    """Checks that exit code and output are the same."""
    count.append(args[0])
    there, here_ = (plain(run(*[p if a == "@" else a for a in args], env=env), p) for p in (url, path))
    check(there == here_, "%s of %s: %r, not %r" % (args[0], url, there, here_))
    return here_


def in_turn(commands, path):
    """Returns all commands. If only few files of a format are tested: a third of them, other ones for the next file."""
    return commands if EACH >= 4 else commands[zlib.crc32(os.path.basename(path).encode()) % 3::3]


def compare_all(path, url):
    """Compares all commands that read; returns False if the file does not open without the name of its format."""
    code, out, err = compare(path, url, "ls", "--json", "@")
    if code != 0:
        return False
    names = [t["name"] for t in json.loads(out)["tensors"]]
    for args in in_turn([["ls", "@"], ["meta", "@"], ["stat", "--json", "@"], ["verify", "@"], ["hash", "--tensors", "@"], ["hash", "@"],
                         ["diff", "@", "@"]], path):
        compare(path, url, *args)
    if names:
        compare(path, url, "cat", "@", names[0])
    with tempfile.TemporaryDirectory() as folder:
        outs = []
        for kind, source in (("here", path), ("there", url)):
            code, out, err = run("convert", source, folder + "/%s.zt" % kind, env=env)
            data = open(folder + "/%s.zt" % kind, "rb").read() if code == 0 else None
            outs.append((code, data, plain((code, b"", err), source)[2].replace("%s.zt" % kind, "out.zt")))
        check(outs[0] == outs[1], "convert of %s: %r, not %r" % (url, outs[1][::2], outs[0][::2]))
    return True


def note_format(url):
    code, out, err = run("info", "--json", url, env=env)
    if code == 0:
        info = json.loads(out)
        seen.add(info["format"])
        return info["requests"]
    return 0


def test_kind(w, folder, name, kind):
    """Compares some files of a format, one after the other, because the first that opens is tried with all commands."""
    place = os.path.join(folder, name, kind)
    files = sorted(os.listdir(place)) if os.path.isdir(place) else []
    files = [f for f in files if os.path.isfile(os.path.join(place, f)) and os.path.getsize(os.path.join(place, f))]
    done = kind != "valid"
    for file in files[::max(1, len(files) // EACH)][:EACH]:
        path, url = os.path.join(place, file), w.url("ok/" + "/".join((name, kind, file)))
        through = not done and compare_all(path, url)
        if done:
            compare(path, url, "ls", "--json", "@")
        if not through:
            compare(path, url, "hash", "@")
        done = done or through
        requests = note_format(url)
        check(requests <= 4, "%s: %d requests" % (url, requests))


def test_files(w, folder):
    at_once(AT_ONCE, [functools.partial(test_kind, w, folder, name, kind)
                      for name in sorted(os.listdir(folder)) for kind in ("valid", "reject")])


def test_set(w, folder, name):
    path, url = os.path.join(folder, name), w.url("ok/" + name)
    if not os.path.exists(path):
        return print("skipped: there is no", name)
    check(compare_all(path, url), "%s does not open" % name)
    note_format(url)


def test_sets(w, folder, names):
    at_once(AT_ONCE, [functools.partial(test_set, w, folder, name) for name in names])


def test_folder(folder, name, other):
    path = os.path.join(folder, name)
    if not os.path.isdir(path):
        return print("skipped: there is no", name)
    url = "s3://store/" + name + "/"
    good = compare_all(path, url)
    check(good != ("bad" in name), "%s: %s" % (url, good))
    note_format(url)
    url = other + name + "/"
    compare(path, url, "ls", "--json", "@")
    compare(path, url, "hash", "@")


def test_folders(w, folder):
    """Formats that are directories, on every service that lists directories. http reports that it cannot list."""
    host = "127.0.0.1:%d" % w.ports[0]
    env.update({"AWS_ENDPOINT_URL": "http://" + host, "STORAGE_EMULATOR_HOST": host, "AZURE_STORAGE_ENDPOINT": "http://" + host,
                "HF_ENDPOINT": w.url("hub"), "HF_HOME": "/nowhere", "HF_TOKEN": "x"})
    others = ["hf://tree/any/", "gs://store/", "az://store/"]  # they differ in how they list, not in how they are read
    at_once(AT_ONCE, [functools.partial(test_folder, folder, name, others[i % 3]) for i, name in enumerate(find_folders())])
    code, out, err = run("ls", w.url("ok/zarr/store_v3.zarr/zarr.json"))
    check(code == 4 and "http cannot list directories" in err, "a folder over http: %d %s" % (code, err))
    env.clear()


def make_sets(folder):
    """Makes an index of safetensors files, one of PyTorch's files and one of Flax's."""
    places = {}
    made_as = {"safetensors": "one.safetensors", "bin": "one.pt", "msgpack": "one.msgpack"}
    for i in range(2):
        for end, word in (("safetensors", "model"), ("bin", "pytorch_model"), ("msgpack", "flax_model")):
            name = "%s-%05d-of-00002" % (word, i + 1)
            make_safetensors(folder + "/one.safetensors", {"t%d" % i: ([10, 10], floats(100, i))})
            for other in ("one.pt", "one.msgpack"):
                code, out, err = run("convert", "--force", folder + "/one.safetensors", folder + "/" + other)
                check(code == 0, "a checkpoint: " + err)
            shutil.move(folder + "/" + made_as[end], "%s/%s.%s" % (folder, name, end))
            places.setdefault(end, {})["t%d" % i] = "%s.%s" % (name, end)
    indexes = {"safetensors": "model.safetensors.index.json", "bin": "pytorch_model.bin.index.json",
               "msgpack": "flax_model.msgpack.index.json"}
    for end, index in indexes.items():
        with open(folder + "/" + index, "w") as f:
            json.dump({"metadata": {"total_size": 800}, "weight_map": places[end]}, f)
    return list(indexes.values())


def main():
    code, out, err = run("formats", "--json")
    known = json.loads(out)
    known = {f["name"] for f in (known["formats"] if isinstance(known, dict) else known)}
    parts = [a for a in sys.argv[2:] if not a.isdigit()] or ["files", "sets", "folders"]
    if "files" in parts:
        folder = os.path.join(tests, "formats")
        w = World(folder)
        test_files(w, folder)
        w.close()
    if "sets" in parts:
        with tempfile.TemporaryDirectory() as made:
            w = World(made)
            test_sets(w, made, make_sets(made))
            w.close()
    if os.path.isdir(shared):
        w = World(shared)
        if "sets" in parts:
            test_sets(w, shared, SETS)
        if "folders" in parts:
            test_folders(w, shared)
        w.close()
        missing = sorted(known - seen - NOT_ALONE) if EACH >= 4 else []  # a directory may have files of several formats
        check(not missing or len(parts) < 3, "formats of which no file was read: %s" % missing)
    print(len(count), "commands compared,", len(seen), "formats")
    sys.exit(1 if bad else 0)


main()
