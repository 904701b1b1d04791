# SPDX-License-Identifier: MIT
"""GGUF with the package gguf: gguf_peers.py make FILE WORDS TENSORS, a model with a vocabulary of so many words;
gguf_peers.py large FILE BYTES, q8_0 of so many bytes; gguf_peers.py list FILE ROUNDS, which prints one JSON object."""
import json
import sys
import time

import gguf
import numpy

what, path, *rest = sys.argv[1:]


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make(words, tensors):
    w = gguf.GGUFWriter(path, "llama")
    w.add_token_list([f"\u2581word{i:x}" for i in range(words)])
    w.add_token_scores([-float(i) for i in range(words)])
    w.add_token_types([1] * words)
    w.add_token_merges([f"\u2581w {i:x}" for i in range(words)])
    for i in range(tensors):
        w.add_tensor(f"blk.{i // 9}.part_{i % 9}.weight", numpy.zeros((4, 32), numpy.float32))
    finish(w)


def large(size):
    w = gguf.GGUFWriter(path, "llama")
    rows = (64 << 20) // (34 * 128)
    block = (numpy.random.default_rng(1).integers(0, 256, (rows, 34 * 128), dtype=numpy.uint8) & 0x2F)
    for i in range(max(1, size // block.nbytes)):
        w.add_tensor(f"blk.{i}.weight", block, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    finish(w)


def listed(rounds):
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        r = gguf.GGUFReader(path)
        n = len([(t.name, t.tensor_type, t.shape) for t in r.tensors]) + len(r.fields)
        seconds.append(time.perf_counter() - start)
        assert n > 0
    print(json.dumps({"seconds": seconds}))


{"make": make, "large": large, "list": listed}[what](*map(int, rest))
