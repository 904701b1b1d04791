# SPDX-License-Identifier: MIT
"""Archives with NumPy: npz_peers.py make|large|read FILE N. "make" writes an .npz of N arrays of
32 x 32 numbers, "large" one of N bytes in eight arrays; "read" loads all arrays of one, N times.
Prints one JSON object; only the work is timed."""
import json
import sys
import time

import numpy


def read(path):
    start = time.monotonic()
    with numpy.load(path) as arrays:
        for name in arrays.files:
            arrays[name]
    return time.monotonic() - start


def main():
    what, path, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rng = numpy.random.default_rng(1)
    if what == "make":
        numpy.savez(path, **{f"layer.{i}.w": rng.standard_normal((32, 32)).astype(numpy.float32) for i in range(n)})
    elif what == "large":
        numpy.savez(path, **{f"w{i}": rng.integers(0, 255, n // 8, dtype=numpy.uint8).view(numpy.float32) for i in range(8)})
    else:
        read(path)  # not counted
        print(json.dumps({"seconds": [read(path) for _ in range(n)]}))


if __name__ == "__main__":
    main()
