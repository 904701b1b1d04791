#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes vectors/blocks.txt: blocks of ggml's types and their values, from gguf-py and ggml's C.

    python3 make_block_vectors.py FIXTURES > vectors/blocks.txt

FIXTURES is a directory of GGUF files and the answers of the programs that made them (quants, quants_random,
quants_special, big_endian_all, encode). Lines:

    decode TYPE HEX SHA      blocks; SHA-256 of the floats, little-endian, every NaN as 7fc00000
    swap TYPE HEX SHA        big-endian blocks; SHA-256 of the same with little-endian fields
    floats HEX               the numbers that are encoded below: little-endian floats
    encode TYPE SHA          SHA-256 of their blocks
"""
import json
import pathlib
import sys

FIXTURES = pathlib.Path(sys.argv[1])
GRIDS = ("iq1_", "iq2_", "iq3_")  # without a big-endian form


def tensors(name):
    data = (FIXTURES / f"{name}.gguf").read_bytes()
    said = json.loads((FIXTURES / f"{name}.json").read_text())["expected"]
    for tensor in said["tensors"]:
        at = tensor["offset"]
        yield tensor, data[at:at + tensor["nbytes"]].hex()


def main():
    print("# SPDX-License-Identifier: MIT")
    print("# Made by make_block_vectors.py, which tells what the lines are.")
    for name in ("quants", "quants_random", "quants_special"):
        for tensor, blocks in tensors(name):
            if tensor["layout"] != "dense":
                print("decode", tensor["type"], blocks, tensor["f32_sha256"])
    for tensor, blocks in tensors("big_endian_all"):
        if tensor["layout"] != "dense" and not tensor["type"].startswith(GRIDS):
            print("swap", tensor["type"], blocks, tensor["sha256"])
    (tensor, floats), = tensors("encode")
    print("floats", floats)
    said = json.loads((FIXTURES / "encode.json").read_text())["expected"]
    for kind, encoded in said["encoded"].items():
        if kind not in ("f16", "bf16"):
            print("encode", kind, encoded["sha256"])


main()
