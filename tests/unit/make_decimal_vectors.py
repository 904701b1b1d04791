#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes decimal_vectors.h: difficult cases of reading and printing f32, by exact arithmetic.

    make_decimal_vectors.py > decimal_vectors.h

Texts at, just below and just above the middle between two floats, with few digits and with many; and
floats of every exponent with the fewest digits that are read as them, found by trying one digit, then
two, and so on.
"""
import random
from fractions import Fraction

rng = random.Random(7)


def value(bits):
    exponent, m = bits >> 23, bits & 0x7FFFFF
    return Fraction(m | (0x800000 if exponent else 0)) * Fraction(2) ** (max(exponent, 1) - 150)


def nearest(v):
    if v == 0:
        return 0
    e = v.numerator.bit_length() - v.denominator.bit_length()
    e = max(e - (Fraction(2) ** e > v), -126)
    scaled = v / Fraction(2) ** (e - 23)
    m, rest = divmod(scaled.numerator, scaled.denominator)
    m += 2 * rest > scaled.denominator or (2 * rest == scaled.denominator and m & 1)
    return min(((e + 126) << 23) + m, 0x7F800000) if e <= 127 else 0x7F800000


def decimal(v):
    """All digits of a dyadic fraction."""
    places = v.denominator.bit_length() - 1
    text = str(v.numerator * 5**places).rjust(places + 1, "0")
    return text[:-places] + "." + text[-places:] if places else text


def power(n):
    return Fraction(10) ** n


def shortest(bits):
    """Digits and exponent of ten."""
    v = value(bits)
    top = len(str(v.numerator // v.denominator)) if v >= 1 else -len(str(v.denominator // v.numerator)) + 2
    while power(top) <= v:
        top += 1
    while power(top - 1) > v:
        top -= 1
    for n in range(1, 10):
        scaled = v / power(top - n)
        low = scaled.numerator // scaled.denominator
        fits = [c for c in (low, low + 1) if nearest(c * power(top - n)) == bits]
        if fits:
            best = min(fits, key=lambda c: (abs(c - scaled), c % 2))
            e = top - n
            while best % 10 == 0:
                best, e = best // 10, e + 1
            return str(best), e
    raise AssertionError(bits)


def plain(digits, e):
    if e >= 0:
        return digits + "0" * e
    digits = digits.rjust(1 - e, "0")
    return digits[:e] + "." + digits[e:]


def python(digits, e, v):
    top = len(digits) + e
    if Fraction(1, 10000) <= v < 1000000:  # numpy's bounds for a float32
        text = plain(digits, e)
        return text if "." in text else text + ".0"
    return digits[0] + ("." + digits[1:] if digits[1:] else "") + "e%+03d" % (top - 1)


def show(cases):
    for i in range(0, len(cases), 4):
        print("    " + " ".join(cases[i:i + 4]))


def reading():
    cases = ["0", "-0", "0e99999", "1", "16777217", "16777219", "9007199254740993", "1e-46", "1.4e-45", "1e400", "-1e400",
             "1e-400", "3.4028235677973366e38", "3.4028235677973365e38", "3.4028235e38", "3.4028236e38", "1e38", "1e39",
             "1" + "0" * 60 + "e-60", "0." + "0" * 60 + "1e60", "00000000000000000000001.5", ".5", "5.", "+2.5", "1E5",
             "1e+05", "123456789012345678901234567890", "0.1", "1e-45", "7.0064923216240853546186479164495806564013097e-46"]
    for _ in range(40):
        bits = rng.randrange(rng.choice((0x7F7FFFFF, 0x900000)))
        text = decimal((value(bits) + value(bits + 1)) / 2)
        text = text if "." in text else text + ".0"
        places = len(text.split(".")[1])
        below = str(int(text.replace(".", "")) - 1).rjust(places + 1, "0")
        cases += [text, text + "0" * rng.randrange(40) + "1", below[:-places] + "." + below[-places:]]
        digits = text.replace(".", "").lstrip("0")
        for n in (9, 17, 19, 20):
            cases.append("%se%d" % (digits[:n], len(digits) - len(digits[:n]) - places))
    print("static const struct {\n    const char *text;\n    uint32_t bits;\n} read_cases[] = {")
    out = []
    for text in cases:
        mantissa, _, e = text.lower().lstrip("+-").partition("e")
        v = Fraction(mantissa) * power(int(e or 0)) if Fraction(mantissa) else Fraction(0)
        out.append('{ "%s", 0x%08x },' % (text, nearest(v) | (0x80000000 if text[0] == "-" else 0)))
    show(out)
    print("};\n")


def printing():
    cases = [0x3F800000, 0x41200000, 0x4B800000, 0x7F7FFFFF, 1, 2, 0x7FFFFF, 0x800000, 0x38D1B717, 0x38D1B716, 0x5A0E1BCA, 0x5A0E1BC9]
    for exponent in range(255):
        cases += [max(exponent << 23, 1), exponent << 23 | 0x7FFFFF, exponent << 23 | rng.randrange(1, 1 << 23)]
    print("static const struct {\n    uint32_t bits;\n    const char *plain, *python;\n} print_cases[] = {")
    out = []
    for bits in cases:
        digits = shortest(bits)
        out.append('{ 0x%08x, "%s", "%s" },' % (bits, plain(*digits), python(*digits, value(bits))))
    show(out)
    print("};")


print("/* SPDX-License-Identifier: MIT */\n/* Made by make_decimal_vectors.py: do not edit. */\n/* clang-format off */")
print("#include <stdint.h>\n")
reading()
printing()
