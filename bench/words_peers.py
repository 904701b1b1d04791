# SPDX-License-Identifier: MIT
"""The same work by gensim: words_peers.py make|text|binary|save FILE ROWS [OUT]. "make" writes a
word2vec file of ROWS words with 300 numbers; the others load (or load, and time saving as text) as
many. Prints one JSON object; only the work is timed."""
import json
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


def main():
    what, path, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "make":
        make(path, rows)
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
