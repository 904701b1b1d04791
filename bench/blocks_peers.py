# SPDX-License-Identifier: MIT
"""Block types with the package gguf: blocks_peers.py decode|encode TYPE MIB ROUNDS, where MIB is of the
floats. Prints one JSON object."""
import json
import sys
import time

import numpy
from gguf import GGMLQuantizationType, quants


def main():
    what, name, size, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]) << 20, int(sys.argv[4])
    kind = GGMLQuantizationType[name.upper()]
    elements, width = quants.GGML_QUANT_SIZES[kind]
    rng = numpy.random.default_rng(1)
    if what == "encode":
        x = ((rng.random((size // 4 // elements, elements), numpy.float32)) - 0.5) * 0.1
        work = lambda: quants.quantize(x, kind)
    else:
        x = rng.integers(0, 256, (size // 4 // elements, width), dtype=numpy.uint8) & 0x2F
        work = lambda: quants.dequantize(x, kind)
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds}))


main()
