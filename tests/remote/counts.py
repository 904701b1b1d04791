#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How much of large files is read: requests and bytes, counted by the server and reported by `info`.

    counts.py COMMAND
"""
import json
import os
import struct
import sys
import tempfile
import zipfile

from world import World, bad, check, make_safetensors, run

MB = 1 << 20


def traffic(w, *args):
    """Returns the requests and bytes of a command, as counted by the server."""
    w.log()
    code, out, err = run(*args)
    spans = [h["headers"].get("range", "bytes=0-0").removeprefix("bytes=").split("-") for h in w.log()]
    check(code == 0, "%s: %s" % (args, err))
    return len(spans), sum(int(b) - int(a) + 1 for a, b in spans), out


def expect(w, name, requests, most, *args):
    """Checks that a command makes at most so many requests and reads at most so many bytes, and that `info` reports them."""
    url = w.url("sparse/" + name)
    asked, bytes_, out = traffic(w, *([url if a == "@" else a for a in args] or ["ls", url]))
    print("%-28s %-12s %3d requests, %8d bytes" % (name, (args or ["ls"])[0], asked, bytes_))
    check(asked <= requests and bytes_ <= most,
          "%s %s: %d requests of %d, %d bytes of %d" % (name, args, asked, requests, bytes_, most))
    if not args:
        asked, bytes_, out = traffic(w, "info", "--json", url)
        told = json.loads(out)
        check(told["requests"] == asked and told["bytes_read"] <= bytes_,
              "%s: info tells %s requests, %s bytes" % (name, told["requests"], told["bytes_read"]))


def make_gguf(path, words, tensors):
    """Makes a file with a vocabulary of that many words, with scores and types, and with tensors of 64 MiB of zeros."""
    def text(s):
        return struct.pack("<Q", len(s)) + s

    body = b"GGUF" + struct.pack("<IQQ", 3, tensors, 4)
    body += text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")
    body += text(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, words)
    body += b"".join(text(b"token%d" % i * 2) for i in range(words))
    body += text(b"tokenizer.ggml.scores") + struct.pack("<IIQ", 9, 6, words) + bytes(4 * words)
    body += text(b"tokenizer.ggml.token_type") + struct.pack("<IIQ", 9, 5, words) + bytes(4 * words)
    for i in range(tensors):
        body += text(b"blk.%d.weight" % i) + struct.pack("<IQQIQ", 2, 4096, 4096, 0, i * 64 * MB)
    with open(path, "wb") as f:
        f.write(body)
        f.truncate((len(body) + 31) // 32 * 32 + tensors * 64 * MB)
    return len(body)


def make_npz(path, arrays):
    with zipfile.ZipFile(path, "w") as z:
        for i in range(arrays):
            head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1024, 1024), }"
            head += b" " * (-(len(head) + 11) % 64) + b"\n"
            z.writestr("a%d.npy" % i, b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + bytes(4 * MB))


def test_safetensors(w):
    """A file of 5 GB: a header of 100 KB takes two requests, and rows are read without the rest."""
    count, rows = 1200, 1017
    make_safetensors(w.folder + "/five.safetensors",
                     {"model.layers.%d.a.name.of.some.length" % i: ([rows, 1024], rows * 4096) for i in range(count)})
    size = os.path.getsize(w.folder + "/five.safetensors")
    check(size > 4.9e9, "only %d bytes" % size)
    expect(w, "five.safetensors", 2, 200000)
    expect(w, "five.safetensors", 3, MB, "cat", "@", "model.layers.600.a.name.of.some.length[500:502]")
    make_safetensors(w.folder + "/small.safetensors", {"w": ([1 << 20, 1024], 1 << 32), "b": ([4], 16)})
    expect(w, "small.safetensors", 1, 65536)
    expect(w, "small.safetensors", 2, MB, "cat", "@", "w[900000:900002]")


def test_gguf(w):
    """A large vocabulary is read in growing pieces. Few bytes after it are read."""
    header = make_gguf(w.folder + "/words.gguf", 150000, 32)
    check(header > 4 * MB, "only %d bytes" % header)
    expect(w, "words.gguf", 16, 5 * header // 2)
    make_gguf(w.folder + "/few.gguf", 100, 32)
    expect(w, "few.gguf", 1, 65536)


def test_archives(w):
    """Archives have their index at the end. The header of each distant member takes a request of a few bytes. If the
    index has the positions of the headers, these requests are parallel; otherwise they follow each other."""
    make_npz(w.folder + "/eight.npz", 8)
    expect(w, "eight.npz", 2 + 8, 2 * 65600 + 8 * 2048)
    tensors = {"layer.%d" % i: ([1024, 1024], 4 * MB) for i in range(8)}
    make_safetensors(w.folder + "/eight.safetensors", tensors)
    for name, requests in [("eight.zt", 2), ("eight.pt", 2 + 8), ("eight.onnx", 1 + 8), ("eight.msgpack", 8)]:
        bare = ["-o", "bare=yes"] if name.endswith("onnx") else []
        code, out, err = run("convert", w.folder + "/eight.safetensors", w.folder + "/" + name, *bare)
        check(code == 0, "%s: %s" % (name, err))
        most = 3 * 65600 + 8 * 2048 if name.endswith("pt") else requests * 65536
        expect(w, name, requests, most)
        expect(w, name, requests + 1, most + 65536, "cat", "@", "layer.3[0:2]")


def make_hdf5(path):
    """Makes eight arrays of 4 MiB with h5py; returns False if h5py is not installed."""
    try:
        import h5py
        import numpy
    except ImportError:
        return False
    with h5py.File(path, "w") as f:
        for i in range(8):
            f["layer/%d" % i] = numpy.zeros((1024, 1024), "f4")
    return True


def test_hdf5(w):
    """Headers of objects are between the arrays, anywhere in the file."""
    if not make_hdf5(w.folder + "/eight.h5"):
        return print("skipped: there is no h5py")
    expect(w, "eight.h5", 4, 4 * 65600)
    expect(w, "eight.h5", 5, 5 * 65600, "cat", "@", "layer/3[0:2]")


def test_folders(w):
    """Formats with several files. The fixtures were written by the formats' own libraries."""
    shared = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared/fixtures")
    for inside, requests in [("pytorch/dcp_sharded/.metadata", 3), ("pytorch/dcp_single/.metadata", 2)]:
        if not os.path.exists(os.path.join(shared, inside)):
            print("skipped: there is no", inside)
            continue
        v = World(shared)
        try:
            expect(v, inside, requests, requests * 65536)
        finally:
            v.close()
    for base, _, names in os.walk(os.path.join(shared, "tensorbundle")):
        for name in sorted(n for n in names if n.endswith(".index")):
            inside = os.path.relpath(os.path.join(base, name), shared)
            if "bad" in base or run("ls", os.path.join(shared, inside))[0] != 0:
                continue
            data = [n for n in names if n.startswith(name[:-6] + ".data-")]
            v = World(shared)
            try:
                expect(v, inside, 1 + len(data), (1 + len(data)) * 65536)
            finally:
                v.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        w = World(folder)
        try:
            for name, test in list(globals().items()):
                if name.startswith("test_") and (len(sys.argv) < 3 or name[5:] in sys.argv[2:]):
                    test(w)
        finally:
            w.close()
    sys.exit(1 if bad else 0)


main()
