#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes blosc_vectors.h: buffers made by c-blosc, through numcodecs. test_blosc.c computes their content by the same
rule.

    python3 make_blosc_vectors.py > blosc_vectors.h
"""
import struct

import numcodecs.blosc
from numcodecs import Blosc

NONE, BYTES, BITS = Blosc.NOSHUFFLE, Blosc.SHUFFLE, Blosc.BITSHUFFLE
# name, codec, level, shuffling, size of an element, bytes, bytes of a block (0: chosen by Blosc), is the noise
# repeated?
VECTORS = [
    ("blosclz", "blosclz", 5, NONE, 1, 20000, 0, True),
    ("blosclz_far", "blosclz", 9, NONE, 1, 40000, 40000, True),
    ("blosclz_bytes", "blosclz", 5, BYTES, 4, 2051, 0, False),
    ("blosclz_blocks", "blosclz", 5, BYTES, 8, 2000, 512, False),
    ("lz4", "lz4", 5, NONE, 1, 20000, 0, True),
    ("lz4_bits", "lz4", 5, BITS, 4, 4096, 0, False),
    ("lz4_bits_rest", "lz4", 5, BITS, 4, 10003, 0, True),
    ("lz4_bits_none", "lz4", 5, BITS, 4, 19880, 0, True),
    ("lz4hc_blocks", "lz4hc", 9, BYTES, 2, 5001, 1024, False),
    ("zlib", "zlib", 6, BYTES, 4, 4096, 0, False),
    ("zstd", "zstd", 3, BYTES, 4, 2500, 1024, False),
    ("copied", "lz4", 0, NONE, 4, 100, 0, False),
]


def noise(i):
    return (i * 2654435761 & 0xFFFFFFFF) >> 13 & 255


def content(n, again):
    """100 bytes of noise every 9,500 bytes, and runs between them; or numbers of 32 bits that grow by three."""
    if not again:
        return b"".join(struct.pack("<I", 3 * i) for i in range(n // 4 + 1))[:n]
    return bytes(noise(i % 9500) if i % 9500 < 100 else i % 9500 // 400 for i in range(n))


def main():
    numcodecs.blosc.set_nthreads(1)
    print("/* SPDX-License-Identifier: MIT */\n/* Made by make_blosc_vectors.py, by numcodecs and c-blosc. */")
    print("#ifndef TNF_UNIT_BLOSC_VECTORS_H\n#define TNF_UNIT_BLOSC_VECTORS_H\n\n/* clang-format off */")
    for name, codec, level, shuffle, width, n, block, again in VECTORS:
        made = numcodecs.blosc.compress(memoryview(content(n, again)).cast("B"), codec.encode(), level, shuffle, block, width)
        assert numcodecs.blosc.decompress(made) == content(n, again)
        print(f"static const uint8_t blosc_{name}[{len(made)}] = {{")
        for at in range(0, len(made), 16):
            print("    " + " ".join(f"0x{b:02x}," for b in made[at:at + 16]))
        print("};")
    print("\nstatic const struct {\n    const char *name;\n    const uint8_t *p;\n    size_t n, bytes;\n    bool again;\n} blosc_vectors[] = {")
    for name, _, _, _, _, n, _, again in VECTORS:
        print(f"    {{ \"{name}\", blosc_{name}, sizeof blosc_{name}, {n}, {'true' if again else 'false'} }},")
    print("};\n\n#endif")


if __name__ == "__main__":
    main()
