# SPDX-License-Identifier: MIT
"""Word vectors with gensim: words_peers.py make|text|binary|save|twice FILE ROWS [OUT]. "make" writes a
word2vec file of ROWS words with 300 numbers; "twice" reads a file completely, then reads and writes it.
The others load that many rows; "save" times saving them as text. Prints one JSON object; only the
work is timed."""
import json
import os
import sys
import time

import numpy

DIMS = 300


def make(path, rows):
    rng = numpy.random.default_rng(1)
    with open(path, "wb") as f:
        f.write(b"%d %d\n" % (rows, DIMS))
        for i in range(rows):
            f.write(b"word%d " % i + (rng.standard_normal(DIMS) * .1).astype(numpy.float32).tobytes() + b"\n")


def twice(path, out):
    """The least work for a file with words between the vectors, if the output has all words first."""
    source, block = os.open(path, os.O_RDONLY), memoryview(bytearray(256 << 10))
    size, start = os.fstat(source).st_size, time.monotonic()
    for at in range(0, size, len(block)):
        os.preadv(source, [block], at)
    target = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for at in range(0, size, len(block)):
        os.write(target, block[:os.preadv(source, [block], at)])
    os.close(target)
    print(json.dumps({"seconds": [time.monotonic() - start]}))


def main():
    what, path, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "make":
        make(path, rows)
        return
    if what == "twice":
        twice(path, sys.argv[4])
        return
    from gensim.models import KeyedVectors
    if what == "save":
        kv = KeyedVectors.load_word2vec_format(path, binary=True, limit=rows)
    start = time.monotonic()
    if what == "save":
        kv.save_word2vec_format(sys.argv[4])
    else:
        KeyedVectors.load_word2vec_format(path, binary=what == "binary", limit=rows)
    print(json.dumps({"seconds": [time.monotonic() - start]}))


if __name__ == "__main__":
    main()
