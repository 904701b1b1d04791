#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares block types with the package gguf: random bytes are decoded, numbers of all sizes are
encoded.

    blocks_peer.py TENFOLD        (tests/blocks-program is next to the command)

Every instruction set of this machine must give the same bits; all NaNs count as equal. Needs numpy
and gguf.
"""
import pathlib
import subprocess
import sys

import numpy as np
from gguf import GGMLQuantizationType, quants

PROGRAM = pathlib.Path(sys.argv[1]).parent / "tests" / "blocks-program"
BLOCKS = 4000
random = np.random.default_rng(18)
np.seterr(all="ignore")


def ours(way, name, set_name, data):
    done = subprocess.run([PROGRAM, way, name, set_name], input=data.tobytes(), check=True,
                          capture_output=True)
    return np.frombuffer(done.stdout, np.float32 if way == "decode" else np.uint8)


def bits(floats):
    out = floats.view(np.uint32).copy()
    out[np.isnan(floats)] = 0x7FC00000
    return out


def compare_decoding(name, size, sets):
    blocks = random.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    kind = GGMLQuantizationType[name.upper()]
    try:
        want = bits(quants.dequantize(blocks, kind).ravel())
    except NotImplementedError:
        return None
    for set_name in sets:
        got = bits(ours("decode", name, set_name, blocks))
        assert (got == want).all(), f"{name} by {set_name}: {(got != want).sum()} floats differ"
    return len(want)


def floats(elements):
    """Blocks of weights, of one size each, of ties, of subnormal numbers, of zeros, of all sizes."""
    shape = (BLOCKS // 5, elements)
    weights = random.standard_normal(shape) * 10.0 ** random.uniform(-6, 4, (shape[0], 1))
    ties = random.integers(-64, 64, shape) / 16
    tiny = random.standard_normal(shape) * 10.0 ** random.uniform(-36, -5, (shape[0], 1))
    sparse = np.where(random.random(shape) < 0.9, 0.0, weights)
    wide = random.standard_normal(shape) * 10.0 ** random.uniform(-9, 4, shape)
    return np.concatenate([weights, ties, tiny, sparse, wide]).astype(np.float32)


def compare_encoding(name, elements, sets):
    x = floats(elements)
    if name == "mxfp4":  # below 2^-125 the package wraps the exponent
        x = x[np.abs(x).max(axis=1) >= 2.0**-120]
    kind = GGMLQuantizationType[name.upper()]
    try:
        want = quants.quantize(x, kind).ravel()
    except NotImplementedError:
        return None
    for set_name in sets:
        got = ours("encode", name, set_name, x)
        assert (got == want).all(), f"{name} by {set_name}: {(got != want).sum()} bytes differ"
    return len(want)


def main():
    listed = [line.split() for line in subprocess.check_output([PROGRAM], text=True).splitlines()]
    sets = [words[1] for words in listed if words[0] == "set"]
    decoded, encoded = [], []
    for words in listed:
        if words[0] != "type":
            continue
        name, elements, size, ways = words[1], int(words[2]), int(words[3]), words[4]
        if name not in ("q1_0", "q2_0", "q8_1") and compare_decoding(name, size, sets):
            decoded.append(name)
        if ways == "both" and name not in ("q1_0", "q2_0") and compare_encoding(name, elements, sets):
            encoded.append(name)
    assert len(decoded) >= 23 and len(encoded) >= 8, (decoded, encoded)
    print(f"sets {' '.join(sets)}; decoded {len(decoded)}: {' '.join(decoded)}; "
          f"encoded {len(encoded)}: {' '.join(encoded)}")


main()
