#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Headers of many million bytes take time and memory in proportion to their size.

    large.py TENFOLD

The files are temporary. Each kind of header is opened in two sizes: an eighth and a half of 33 million bytes, or,
with TNF_FULL in the environment, of 99 million, about the limit of safetensors. Between them, processor time may
grow eightfold and memory sixfold (both grow fourfold if they are linear). A header full of tensors takes at most
four times the size of the file in memory, in safetensors and converted to zTensor 2. An item of an array in metadata
takes 24 bytes: a GGUF file of one array of u8 takes at most 26 times its size, also when it is hashed. The memory
for repairing a checkpoint that was cut short is proportional to its size, too. Only processor time is measured, so a
busy machine does not matter.
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent / "generators")]
import pytorch  # noqa: E402

HEADER = 99_000_000 if "TNF_FULL" in os.environ else 33_000_000


def row(before, one, after, n):
    """As many items as fit into n bytes, in pieces, because the memory of this script would count as
    that of the command."""
    count = (n - len(before) - len(after)) // (len(one(0)) + 1)
    yield before
    for at in range(0, count, 1000):
        yield ("," if at else "") + ",".join(one(i) for i in range(at, min(at + 1000, count)))
    yield after


def tensors(n):
    """As many tensors as fit: 1.3 million at full size."""
    return row("{", lambda i: '"model.layers.%07d.w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % i, "}", n)


def keys(n):
    """Entries of metadata: a search for duplicates must not compare each with each."""
    return row('{"__metadata__":{', lambda i: '"key%08d":"v"' % i, "}}", n)


def dimensions(n):
    """Tensors with the largest allowed number of dimensions."""
    shape = ",".join(["1"] * 63 + ["0"])
    return row("{", lambda i: '"%07d":{"dtype":"U8","shape":[%s],"data_offsets":[0,0]}' % (i, shape), "}", n)


def text(piece, n):
    yield '{"__metadata__":{"k":"'
    for _ in range((n - 40) // (len(piece) * 1000)):
        yield piece * 1000
    yield '"}}'


def value(n):
    """One string in the metadata."""
    return text("v", n)


def escapes(n):
    """One string in which all characters are escaped."""
    return text("\\u0041", n)


def blanks(n):
    yield "{}"
    for _ in range(n // 1000 - 1):
        yield " " * 1000


def write(path, pieces):
    with open(path, "wb") as out:
        out.write(bytes(8))
        for piece in pieces:
            out.write(piece.encode())
        n = out.tell() - 8
        out.seek(0)
        out.write(struct.pack("<Q", n))
    return n


def measure(command, *paths, what="info"):
    """Exit code, processor time in seconds, and peak memory in KiB."""
    child = os.posix_spawn(command, [command, what, "-q", *paths], os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss


def many_tensors(command, scratch):
    """Memory relative to the size of the file, for the same tensors in two formats."""
    small, large = scratch / "many.safetensors", scratch / "many.zt"
    write(small, tensors(HEADER))
    subprocess.run([command, "convert", "-q", "--no-sync", "-t", "ztensor2", small, large], check=True)
    _, _, idle = measure(command, os.devnull)
    for path in (small, large):
        code, _, memory = measure(command, str(path))
        times = (memory - idle) * 1024 / path.stat().st_size
        good = code == 0 and times <= 4
        print(f"{'ok   ' if good else 'WRONG'} {path.name}: {times:.2f} times the file", flush=True)
        yield not good


def many_numbers(command, scratch):
    """A valid array of small numbers in the metadata of a GGUF file."""
    path, n = scratch / "numbers.gguf", 8 << 20
    key = struct.pack("<Q3sIIQ", 3, b"a.b", 9, 0, n)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key + bytes(range(256)) * (n // 256) + bytes(32))
    _, _, idle = measure(command, os.devnull)
    for what in ("info", "hash"):
        code, _, memory = measure(command, str(path), what=what)
        times = (memory - idle - (16 << 10)) * 1024 / n
        good = code == 0 and times <= 26
        print(f"{'ok   ' if good else 'WRONG'} {path.name}: {what} takes {times:.2f} times the file", flush=True)
        yield not good


def cut_checkpoint(command, scratch):
    """A checkpoint of PyTorch without its directory: only the pickle has the length of each record, which is looked
    up."""
    memory = []
    for n in (4000, 16000):
        path, out = scratch / f"cut_{n}.pt", scratch / f"repaired_{n}.pt"
        tree = pytorch.pickle(b"}(" + b"".join(pytorch.text(f"t{i}") + pytorch.tensor(key=str(i)) for i in range(n)) + b"u")
        path.write_bytes(pytorch.Zip(("data.pkl", tree), *((f"data/{i}", pytorch.DATA) for i in range(n))).out[:-100])
        code, _, used = measure(command, "--no-sync", str(path), str(out), what="repair")
        memory.append(used)
        if code != 1:
            print(f"WRONG repair of {path.name}: exit {code}", flush=True)
            return 1
    good = memory[1] < 6 * memory[0]
    print(f"{'ok   ' if good else 'WRONG'} cut checkpoint: memory {memory[0] >> 10} MiB to {memory[1] >> 10} MiB", flush=True)
    return not good


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    command, failed = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as scratch:
        failed += cut_checkpoint(command, pathlib.Path(scratch))
        failed += sum(many_tensors(command, pathlib.Path(scratch)))
        failed += sum(many_numbers(command, pathlib.Path(scratch)))
        for shape in (tensors, keys, value, escapes, dimensions, blanks):
            found = []
            for size in (HEADER // 8, HEADER // 2):
                path = pathlib.Path(scratch) / "large.safetensors"
                assert size * 0.9 < write(path, shape(size)) <= HEADER
                runs = [measure(command, str(path)) for _ in range(2)]
                found.append((max(r[0] for r in runs), min(r[1] for r in runs), min(r[2] for r in runs)))
            (code, time, memory), (code_, time_, memory_) = found
            slower, larger = (time_ + .05) / (time + .05), memory_ / memory
            good = code == code_ == 0 and slower < 8 and larger < 6
            failed += not good
            print(f"{'ok   ' if good else 'WRONG'} {shape.__name__:10} exit {code} {code_}, time {time:.2f} s to {time_:.2f} s "
                  f"(x {slower:.1f}), memory {memory >> 10} MiB to {memory_ >> 10} MiB (x {larger:.1f})", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
