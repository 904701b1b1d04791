# SPDX-License-Identifier: MIT
"""Vectors: a dimension before each (.fvecs), or a header before all (.fbin)."""
import struct

from kit import *

FORMATS = [("vecs", "fvecs"), ("fbin", "fbin")]
MISSING = "missing"


def record(d, n=None):
    return struct.pack("<i", d) + bytes(range(1, 1 + 4 * (d if n is None else n)))


WHOLE = record(5) * 4


FBIN = struct.pack("<II", 4, 5) + bytes(range(80))


def make(cases):
    if cases.name == "fbin":
        make_fbin(cases)
    else:
        make_vecs(cases)


def make_fbin(c):
    for at in range(1, len(FBIN)):
        c.rejected("A", f"cut_{at:03}", FBIN[:at], SHORT, at, missing((8 if at < 8 else 88) - at),
                   f"the first {at} of {len(FBIN)} bytes")
    for more in (1, 4, 79):
        c.rejected("A", f"long_by_{more}", FBIN + bytes(more), BAD, 88, f"{more} byte{' follows' if more == 1 else 's follow'}", f"{more} bytes too many")
    wrong_things(c, FBIN)
    for n, d in ((5, 5), (4, 6), (2 ** 31, 1), (1, 2 ** 31), (2 ** 32 - 1, 1), (2 ** 30, 2 ** 31)):
        c.rejected("C", f"says_{n}_by_{d}", struct.pack("<II", n, d) + FBIN[8:], SHORT, 88, MISSING,
                   f"{n} vectors of {d} elements in 88 bytes")
    for n, d in ((2 ** 31, 2 ** 31), (2 ** 32 - 1, 2 ** 32 - 1)):
        c.rejected("D", f"says_{n}_by_{d}", struct.pack("<II", n, d) + FBIN[8:], BAD, 0, "exceed 2^64 bytes",
                   f"{n} vectors of {d} elements: the product wraps")
    c.accepted("P", "nan", struct.pack("<II4f", 2, 2, float("nan"), float("inf"), -0.0, 1e-45), 1, "NaN, Infinity, -0 and the smallest number", warnings=None)
    c.accepted("P", "nothing_wrong", FBIN, 1, "four vectors", warnings=None)
    for n, d in ((2 ** 63, 2), (2 ** 64 - 1, 1), (2 ** 32, 2 ** 32)):
        c.rejected("D", f"long_header_{n}_by_{d}", struct.pack("<QQ", n, d) + bytes(64), [BAD, SHORT], None, "", f"a header of 16 bytes: {n} vectors of {d} elements")
    c.accepted("D", "long_header", struct.pack("<QQ", 2, 3) + bytes(24), 1, "a header of 16 bytes", warnings=None)
    c.rejected("I", "zip_behind", FBIN + b"PK\5\6" + bytes(18), BAD, 88, "22 bytes follow", "the end of a ZIP archive behind the vectors")
    c.rejected("I", "html_before", b"<html>\n\n" + FBIN, [SHORT, BAD], None, "", "HTML before the header")
    c.rejected("O", "no_columns", struct.pack("<II", 4, 0) + FBIN[8:], BAD, 4, "no elements", "vectors of nothing")
    c.accepted("O", "no_rows", struct.pack("<II", 0, 2 ** 32 - 1), 1, "no vector, of 2^32 - 1 elements", warnings=None)


def make_vecs(cases):
    truncation(cases)
    wrong_things(cases, WHOLE)
    for d in (0, -1, -5, -2 ** 31):
        cases.rejected("C", f"d_{d}", struct.pack("<i", d) + WHOLE[4:], BAD, 0, f"{d} elements", f"a dimension of {d}")
    for d in (21, 22, 2 ** 16, 2 ** 30, 2 ** 31 - 1):
        cases.rejected("C", f"d_{d}", struct.pack("<i", d) + WHOLE[4:], SHORT, len(WHOLE), MISSING,
                       f"a first vector of {d} elements, beyond the file")
    for row in range(1, 4):
        for d in (0, 4, 6, -5, 2 ** 31 - 1):
            data = bytearray(WHOLE)
            struct.pack_into("<i", data, 24 * row, d)
            cases.rejected("O", f"row_{row}_of_{d}", data, BAD, 24 * row, f"vector {row} has {d} elements",
                           f"vector {row} says {d} elements, the others 5")
    for d in (2 ** 29 - 1, 2 ** 29, 2 ** 30 - 1, 2 ** 30 + 5):
        cases.rejected("D", f"wraps_{d}", struct.pack("<i", d) + WHOLE[4:], SHORT, len(WHOLE), MISSING, f"{d} elements: 4 + 4d is beyond 2^31, or wraps 32 bits")
    cases.accepted("P", "nothing_wrong", WHOLE, 1, "four vectors", warnings=None)
    cases.accepted("P", "nan", struct.pack("<i2f", 2, float("nan"), -float("inf")) * 2, 1, "NaN and -Infinity", warnings=None)
    cases.rejected("I", "zip_behind", WHOLE + b"PK\5\6" + bytes(18), SHORT, None, MISSING, "the end of a ZIP archive behind the vectors")
    cases.rejected("I", "html_before", b"<html>\n\n" + WHOLE, [SHORT, BAD], None, "", "HTML before the vectors")
    cases.accepted("F", "one", record(1), 1, "one vector of one element", warnings=None)


def truncation(c):
    for at in range(1, len(WHOLE)):
        if at % 24:
            need = 4 if at < 4 else 24
            c.rejected("A", f"cut_{at:03}", WHOLE[:at], SHORT, at, missing(need - at % 24),
                       f"the first {at} of {len(WHOLE)} bytes")
