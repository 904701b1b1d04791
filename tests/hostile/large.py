#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Headers of nearly a hundred million bytes take time and memory in proportion, nothing worse.

    large.py TENFOLD

Files are made here and thrown away. Each shape of header is opened at a quarter of its size and at
its full size; time of the processor may grow eightfold and memory sixfold between them (both grow
fourfold if all is linear). No time is compared with a clock, so that a busy machine does not matter.
"""
import os
import pathlib
import struct
import sys
import tempfile

HEADER = 99_000_000


def tensors(n):
    """As many tensors as fit: 1.3 million at full size."""
    one = '"model.layers.%07d.w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    return "{" + ",".join(one % i for i in range(n // (len(one % 0) + 1) - 1)) + "}"


def keys(n):
    """Entries of metadata: a search for duplicates must not compare each with each."""
    one = '"key%08d":"v"'
    return '{"__metadata__":{' + ",".join(one % i for i in range(n // (len(one % 0) + 1) - 2)) + "}}"


def value(n):
    """One string in the metadata."""
    return '{"__metadata__":{"k":"' + "v" * (n - 40) + '"}}'


def escapes(n):
    """One string, all of it escaped."""
    return '{"__metadata__":{"k":"' + "\\u0041" * ((n - 40) // 6) + '"}}'


def dimensions(n):
    """Tensors of as many dimensions as are allowed."""
    one = '"%07d":{"dtype":"U8","shape":[' + ",".join(["1"] * 63 + ["0"]) + '],"data_offsets":[0,0]}'
    return "{" + ",".join(one % i for i in range(n // (len(one % 0) + 1) - 1)) + "}"


def blanks(n):
    return "{}" + " " * (n - 2)


def measure(command, path):
    """Seconds of the processor and peak KiB of `info`."""
    child = os.posix_spawn(command, [command, "info", "-q", path], os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    command, failed = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as scratch:
        for shape in (tensors, keys, value, escapes, dimensions, blanks):
            found = []
            for size in (HEADER // 4, HEADER):
                text = shape(size).encode()
                assert size * 0.9 < len(text) <= HEADER
                path = pathlib.Path(scratch) / "large.safetensors"
                path.write_bytes(struct.pack("<Q", len(text)) + text)
                del text
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
