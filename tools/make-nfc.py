#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes src/base/nfc_table.h: the Unicode data of tnf_nfc(), from Python's unicodedata.

    tools/make-nfc.py >src/base/nfc_table.h
"""
import sys
import textwrap
import unicodedata as u

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)


def pair(c):
    """The canonical decomposition in one step, or None."""
    d = u.decomposition(chr(c))
    if not d or d.startswith("<"):
        return None
    return [int(x, 16) for x in d.split()]


pairs = {c: pair(c) for c in ALL if c not in HANGUL and pair(c)}
composites = {c: p for c, p in pairs.items() if u.is_normalized("NFC", chr(c))}
assert all(len(p) == 2 for p in composites.values())
never = [c for c in pairs if c not in composites]
maybe = {p[1] for p in composites.values()} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def classes():
    out = []
    for c in ALL:
        k = u.combining(chr(c))
        if k and out and out[-1][1] == c - 1 and out[-1][2] == k:
            out[-1][1] = c
        elif k:
            out.append([c, c, k])
    return out


def table(kind, name, items, about):
    print(f"/* {about} */\nstatic const {kind} {name}[] = {{")
    print(textwrap.fill(", ".join(items), 100, initial_indent="    ", subsequent_indent="    "))
    print("};\n")


order = sorted(composites)
by_pair = sorted(range(len(order)), key=lambda i: composites[order[i]])
print("/* SPDX-License-Identifier: MIT */")
print(f"/* Made by tools/make-nfc.py from Unicode {u.unidata_version}. */\n\n/* clang-format off */")
table("tnf_nfc_class", "classes", [f"{{0x{a:X},{b - a},{k}}}" for a, b, k in classes()],
      "Combining classes other than 0: first, how many more, class.")
table("tnf_nfc_range", "never", [f"{{0x{a:X},{b - a}}}" for a, b in ranges(never)],
      "Characters that no normalized text has.")
table("tnf_nfc_range", "maybe", [f"{{0x{a:X},{b - a}}}" for a, b in ranges(maybe)],
      "Characters that may join the one before.")
table("uint64_t", "composites",
      [f"C(0x{c:X},0x{composites[c][0]:X},0x{composites[c][1]:X})" for c in order],
      "Characters that are composed of two others, in ascending order …")
table("uint16_t", "by_pair", [str(i) for i in by_pair],
      "… and their positions above, sorted by the two others.")
print("/* clang-format on */")
print(f"{len(order)} composites, {len(never)} never", file=sys.stderr)
