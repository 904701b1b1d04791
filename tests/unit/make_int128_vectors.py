#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes int128_vectors.h: integers of 128 bits as text and as floats, by Python's own integers.

    make_int128_vectors.py > int128_vectors.h

Limits, powers of two and their neighbours, and numbers at, just below and just above the middle
between two floats of each width.
"""
import random

rng = random.Random(128)
MOST = 2 ** 128
FLOATS = {"f64": (53, 1023, 64), "f32": (24, 127, 32), "f16": (11, 15, 16), "bf16": (8, 127, 16)}


def bits_of(n, precision, bias, width):
    """The bits of the nearest float, ties to even; too large ones are infinite."""
    sign, size = (n < 0) << (width - 1), abs(n)
    if size == 0:
        return 0
    exponent = size.bit_length() - 1
    shift = exponent - (precision - 1)
    if shift > 0:
        mantissa, rest = divmod(size, 1 << shift)
        mantissa += 2 * rest > 1 << shift or (2 * rest == 1 << shift and mantissa & 1)
    else:
        mantissa = size << -shift
    if mantissa == 1 << precision:
        mantissa, exponent = mantissa >> 1, exponent + 1
    infinite = 2 * bias + 1
    if exponent > bias:
        return sign | infinite << (precision - 1)
    return sign | (exponent + bias) << (precision - 1) | mantissa - (1 << (precision - 1))


numbers = {0, 1, 9, 10, 999999999, 10 ** 9, 10 ** 18, 10 ** 19, 10 ** 27, 10 ** 38, 10 ** 38 - 1, MOST - 1}
numbers |= {2 ** k + by for k in (7, 11, 16, 24, 53, 54, 63, 64, 65, 96, 126, 127) for by in (-1, 0, 1)}
for precision, _, _ in FLOATS.values():
    for _ in range(12):
        length = rng.randint(precision + 2, 128)
        middle = (2 * (rng.getrandbits(precision) | 1 << (precision - 1)) + 1) << (length - precision - 1)
        numbers |= {middle - 1, middle, middle + 1}
numbers |= {65504, 65519, 65520, 65521, MOST - 2 ** 103, MOST - 2 ** 103 - 1, MOST - 2 ** 119, MOST - 2 ** 119 - 1}
numbers |= {rng.getrandbits(rng.randint(1, 128)) for _ in range(40)}
numbers = sorted(n for n in numbers if n < MOST)

print("/* SPDX-License-Identifier: MIT */")
print("/* Made by make_int128_vectors.py: do not edit. */")
print("/* clang-format off */")
print("#include <stdint.h>\n")
print("static const struct {\n    uint64_t low, high;\n    const char *u128, *i128;")
print("    uint64_t u_f64, i_f64;\n    uint32_t u_f32, i_f32;\n    uint16_t u_f16, i_f16, u_bf16, i_bf16;")
print("} int128_cases[] = {")
for n in numbers:
    signed = n - MOST if n >= MOST // 2 else n
    fields = ["%#018x" % (n % 2 ** 64), "%#018x" % (n >> 64), '"%d"' % n, '"%d"' % signed]
    for name in ("f64", "f32", "f16", "bf16"):
        fields += ["%#0*x" % (FLOATS[name][2] // 4 + 2, bits_of(v, *FLOATS[name])) for v in (n, signed)]
    print("    { %s }," % ", ".join(fields))
print("};")
