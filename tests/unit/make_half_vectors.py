#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes half_vectors.h: the value of every small float, from numpy and ml_dtypes.

    pip install numpy ml_dtypes && python3 make_half_vectors.py > half_vectors.h

Types of up to 8 bits are listed value by value, as the bits of the float (every NaN as 7fc00000, since the packages do
not define its sign and payload). The two 16-bit types are hashed: FNV-1a, 64 bits, over the little-endian bits of the
65536 floats, every NaN again as 7fc00000.
"""
import numpy as np
import ml_dtypes as ml

SMALL = [
    ("f8_e4m3fn", ml.float8_e4m3fn, 256), ("f8_e5m2", ml.float8_e5m2, 256),
    ("f8_e4m3fnuz", ml.float8_e4m3fnuz, 256), ("f8_e5m2fnuz", ml.float8_e5m2fnuz, 256),
    ("f8_e8m0", ml.float8_e8m0fnu, 256), ("f6_e2m3", ml.float6_e2m3fn, 64),
    ("f6_e3m2", ml.float6_e3m2fn, 64), ("f4_e2m1", ml.float4_e2m1fn, 16),
]
WIDE = [("f16", np.float16), ("bf16", ml.bfloat16)]


def float_bits(patterns, dtype):
    floats = patterns.view(dtype).astype(np.float32)
    bits = floats.view(np.uint32).copy()
    bits[np.isnan(floats)] = 0x7FC00000
    return bits


def fnv1a(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


print("/* SPDX-License-Identifier: MIT */")
print(f"/* Made by make_half_vectors.py with numpy {np.__version__}, ml_dtypes {ml.__version__}. */")
print("/* clang-format off */")
for name, dtype, count in SMALL:
    print(f"static const uint32_t expect_{name}[{count}] = {{")
    bits = float_bits(np.arange(count, dtype=np.uint8), dtype)
    for i in range(0, count, 8):
        print("    " + " ".join(f"0x{b:08x}," for b in bits[i:i + 8]))
    print("};")
for name, dtype in WIDE:
    bits = float_bits(np.arange(65536, dtype=np.uint32).astype(np.uint16), dtype)
    print(f"static const uint64_t expect_{name}_fnv = 0x{fnv1a(bits.tobytes()):016x};")
