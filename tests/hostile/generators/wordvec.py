# SPDX-License-Identifier: MIT
"""Vectors of words: word2vec's binary form, text with and without a first line, floret."""
import struct

from kit import *

FORMATS = [("word2vec", "w2v"), ("textdims", "vec"), ("text", "glove"), ("floret", "floret")]


def make(c):
    {"word2vec": word2vec, "textdims": text, "text": text, "floret": floret}[c.name](c)


def floats(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


ROWS = ((b"one", floats(1, 2)), (b"two", floats(3, 4)))


# A first line that is not a header: binary numbers follow, so the beginning may be anything.
UNKNOWN = (UNSUPPORTED, 0)


def binary(head=b"2 2\n", rows=ROWS, end=b"\n"):
    return head + b"".join(word + b" " + data + end for word, data in rows)


def word2vec(c):
    whole = binary()
    wrong_things(c, whole)
    c.accepted("P", "sound", whole, 2, "a sound file")
    for at in range(5, len(whole) - 1):
        c.rejected("A", f"cut_{at:02}", whole[:at], SHORT, END, "", f"the first {at} of {len(whole)} bytes")
    c.rejected("A", "long_by_1", whole + b"x", BAD, len(whole), "", "a byte behind the last row")
    c.rejected("I", "then_zip", whole + b"PK\5\6" + bytes(18), BAD, len(whole), "", "a ZIP archive behind the last row")
    for label, n in {**HUGE, "3": 3, "2_64": 1 << 64, "40_digits": 10 ** 39}.items():
        c.rejected("C", f"rows_{label}", binary(b"%d 2\n" % n), *((SHORT, END) if n < 1 << 64 else UNKNOWN), "", f"a head that says {n} rows")
    for label, n in {**HUGE, "4": 4, "2_64": 1 << 64, "2_30": 1 << 30, "2_62": 1 << 62}.items():
        verdict = (SHORT, END) if n < 1 << 30 else (LIMIT, 0) if n < 1 << 62 else UNKNOWN
        c.rejected("D", f"columns_{label}", binary(b"2 %d\n" % n), *verdict, "", f"a head that says {n} columns")
    c.rejected("C", "rows_1", binary(b"1 2\n"), BAD, 17, "", "a head that says one row of two")
    for label, head in (("negative", b"-2 2\n"), ("hex", b"0x2 2\n"), ("fraction", b"2.0 2\n"), ("exponent", b"2e0 2\n"), ("words", b"two two\n"), ("one", b"2\n"),
                        ("none", b"\n")):
        c.rejected("O", f"head_{label}", binary(head), *UNKNOWN, "", f"a head of {head!r}")
    c.rejected("O", "word_unterminated", b"1 2\n" + b"n" * 100, SHORT, END, "", "a word without an end")
    for label, word in (("empty", b""), ("nul", b"a\0b"), ("ansi", b"\x1b[2J"), ("nbsp", b"\xc2\xa0"), ("bad_utf8", b"\xff\xfe"), ("twice", b"two"), ("long", b"n" * 3000),
                        ("tab", b"a\tb")):
        c.accepted("O", f"word_{label}", binary(rows=((word, floats(1, 2)), ROWS[1])), 2, f"a word: {label}", warnings=None)
    c.accepted("O", "no_newlines", binary(end=b""), 2, "rows without line breaks", warnings=None)
    c.accepted("O", "crlf", binary(end=b"\r\n"), 2, "rows that end in CR LF", warnings=None)
    for label, value in (("nan", float("nan")), ("infinity", float("inf"))):
        c.accepted("P", f"value_{label}", binary(rows=((b"one", floats(value, 2)), ROWS[1])), 2, f"a value: {label}")


def text(c):
    dims = c.name == "textdims"
    first = lambda rows, columns: b"%d %d\n" % (rows, columns) if dims else b""
    lines = b"one 1 2 3\ntwo 4 5 6\nsix 7 8 9\n"
    file = lambda body=lines, rows=3, columns=3: first(rows, columns) + body
    wrong_things(c, file())
    c.accepted("P", "sound", file(), 2, "a sound file")
    second = len(first(3, 3)) + 10  # where the second row begins
    def bad(name, data, what, letter="O", status=BAD, at=second):
        c.rejected(letter, name, data, status, at, "", what)
    bad("row_short", file(b"one 1 2 3\ntwo 4\nsix 7 8 9\n"), "a row with too few numbers")
    bad("row_of_word", file(b"one 1 2 3\ntwo\nsix 7 8 9\n"), "a row without numbers")
    for label, number in (("hex", b"0x1p3"), ("comma", b"1,5"), ("underscore", b"1_0"), ("word", b"abc"), ("two_points", b"1.2.3"), ("two_signs", b"--1"), ("only_sign", b"-"),
                          ("only_point", b"."), ("exponent_cut", b"1e"), ("fullwidth", "１".encode()), ("suffix", b"1f")):
        c.damaged("O", f"number_{label}", file(b"one 1 2 3\ntwo 4 " + number + b" 6\nsix 7 8 9\n"), BAD, 2, f"a number written {number!r}", second + 6)
    for label, number in (("nan", b"nan"), ("inf", b"-inf"), ("infinity", b"Infinity"), ("1e400", b"1e400"), ("1e_400", b"1e-400"), ("plus", b"+1"), ("minus_0", b"-0"),
                          ("digits", b"1." + b"3" * 600), ("zeros", b"0" * 600 + b"1"), ("exponent", b"1e+" + b"0" * 300 + b"1"), ("subnormal", b"1e-45"), ("point_first", b".5"),
                          ("point_last", b"5.")):
        c.accepted("O", f"number_{label}", file(b"one 1 2 3\ntwo 4 " + number + b" 6\nsix 7 8 9\n"), 2, f"a number written {number[:20]!r}", warnings=None)
    for label, word in (("blank", b"New York"), ("empty", b""), ("nbsp", b"\xc2\xa0"), ("ansi", b"\x1b[2J"), ("bad_utf8", b"\xff\xfe"), ("twice", b"one"), ("long", b"n" * 3000),
                        ("numbers", b"1 2")):
        c.accepted("O", f"word_{label}", file(lines.replace(b"two", word)), 2, f"a word: {label}", warnings=None)
    bad("word_nul", file(lines.replace(b"two", b"a\0b")), "a NUL in a word: this is no text", status=[SHORT, UNSUPPORTED] if dims else UNSUPPORTED, at=None)
    bad("number_nul", file(lines.replace(b"5", b"1\0")), "a NUL in a number: this is no text", status=UNSUPPORTED, at=0)
    c.accepted("O", "crlf", file(lines.replace(b"\n", b"\r\n")), 2, "lines that end in CR LF", warnings=None)
    c.accepted("O", "tabs", file(lines.replace(b" ", b"\t")), 2, "fields separated by TAB", warnings=None)
    c.accepted("O", "no_last_newline", file(lines[:-1]), 2, "no line break at the end", warnings=None)
    c.accepted("O", "empty_lines", file(lines.replace(b"\n", b"\n\n")), 2, "empty lines", warnings=None)
    if not dims:
        return
    for label, n in {**HUGE, "2_64": 1 << 64, "4": 4}.items():
        bad(f"rows_{label}", file(rows=n), f"a first line that says {n} rows", "C", *((SHORT, END) if n < 1 << 64 else (BAD, 0)))
        bad(f"columns_{label}", file(columns=n), f"a first line that says {n} columns", "D", *((BAD, 4) if n == 4 else (SHORT, END) if n < 1 << 64 else (BAD, 0)))
    bad("rows_2", file(rows=2), "a first line that says two rows of three", "C", at=second + 10)


def floret(c):
    head = lambda *fields: b" ".join(fields) + b"\n"
    good = [b"2", b"3", b"2", b"3", b"2", b"42", b"<", b">"]
    lines = b"0 1 2 3\n1 4 5 6\n"
    whole = head(*good) + lines
    wrong_things(c, whole)
    c.accepted("P", "sound", whole, 1, "a sound file", warnings=None)
    def bad(name, at, value, what, status=BAD, letter="O", offset=0):
        fields = list(good)
        fields[at] = value
        c.rejected(letter, name, head(*fields) + lines, status, offset, "", what)
    def verdict(n):
        return {"status": SHORT, "offset": END} if 3 <= n < 1 << 64 else {"offset": 0 if n != 1 else None}
    for label, n in {**HUGE, "2_64": 1 << 64, "3": 3, "1": 1, "0": 0}.items():
        bad(f"buckets_{label}", 0, b"%d" % n, f"{n} buckets", letter="C", **verdict(n))
        bad(f"columns_{label}", 1, b"%d" % n, f"{n} columns", letter="D", **verdict(n)) if label != "3" else None
    bad("min_0", 2, b"0", "n-grams of no letters")
    bad("min_above_max", 2, b"4", "a shortest n-gram above the longest")
    for n in (b"0", b"5", b"4294967295"):
        bad(f"hashes_{n.decode()}", 4, n, f"{n.decode()} hashes")
    bad("seed_2_32", 5, b"4294967296", "a seed beyond 32 bits")
    bad("seed_word", 5, b"seed", "a seed that is a word")
    c.rejected("A", "no_rows", head(*good), [SHORT, UNSUPPORTED], None, "", "a first line, and no rows")
    c.rejected("A", "row_short", head(*good) + b"0 1 2 3\n1 4\n", BAD, len(head(*good)) + 8, "", "a row with too few numbers")
    c.accepted("O", "bucket_numbers", head(*good) + b"7 1 2 3\n7 4 5 6\n", 1, "numbers of buckets that are wrong, which nobody looks at", warnings=None)
    c.accepted("O", "eow_with_space", head(*good[:7], b"> >") + lines, 1, "an end marker with a space in it", warnings=None)
