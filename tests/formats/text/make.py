#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of text, textdims and floret, and the expected results.

All files follow docs/formats/textvec.md and floret.md. Exact arithmetic converts numbers to f32.
"""
import base64
import fractions
import hashlib
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent.parent
BAD, SHORT, LIMIT, UNKNOWN = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
expect = {kind: {"reject": {}, "valid": {}} for kind in ("text", "textdims", "floret")}
WORDS = {"nan": 0x7FC00000, "inf": 0x7F800000, "infinity": 0x7F800000}


def f32(text):
    """The nearest f32 of a decimal, ties to even, as four bytes."""
    sign = 0x80000000 if text[0] == "-" else 0
    text = text.lstrip("+-").lower()
    if text in WORDS:
        return struct.pack("<I", WORDS[text] | sign)
    v = fractions.Fraction(text)
    if v == 0:
        return struct.pack("<I", sign)
    e = v.numerator.bit_length() - v.denominator.bit_length()
    e = max(e - (fractions.Fraction(2) ** e > v), -126)
    scaled = v / fractions.Fraction(2) ** (e - 23)
    m, rest = divmod(scaled.numerator, scaled.denominator)
    m += 2 * rest > scaled.denominator or (2 * rest == scaled.denominator and m & 1)
    if e == 127 and m == 1 << 24 or e > 127:
        return struct.pack("<I", 0x7F800000 | sign)
    return struct.pack("<I", (((e + 126) << 23) + m) | sign)


def shown(word):
    try:
        return word.decode()
    except UnicodeDecodeError:
        return {"$bytes": base64.b64encode(word).decode()}


def good(kind, name, rows, data, warnings=0, attrs=None, dims=None, words=True, lenient=False):
    (HERE / kind / "valid" / name).write_bytes(data)
    dims = len(rows[0][1].split()) if dims is None else dims
    matrix = b"".join(f32(t) for _, line in rows for t in line.split())
    vocab = {"name": "vocab", "dtype": "u8", "layout": "strings/1", "shape": [len(rows)], "order": "C",
             "strings": [shown(w) for w, _ in rows]}
    expect[kind]["valid"][name] = {
        "format": kind, "version": "", "warnings": warnings, "attrs": attrs or {},
        "tensors": [vocab] * words + [
            {"name": "embeddings", "dtype": "f32", "layout": "dense", "shape": [len(rows), dims], "order": "C",
             "sha256": hashlib.sha256(matrix).hexdigest()}]}
    if lenient:
        expect[kind]["valid"][name]["lenient"] = True


def bad(kind, name, data, code, message, offset, lenient="rejects"):
    (HERE / kind / "reject" / name).write_bytes(data)
    expect[kind]["reject"][name] = {"code": code, "message": message, "offset": offset, "lenient": lenient}


def lines(rows, separator=" ", end="\n", head=b""):
    return head + b"".join(w + (separator + separator.join(v.split()) + end).encode() for w, v in rows)


ROWS = [(b"Berlin", "0.5 -1.25 3"), (b"K\xc3\xb6ln", "0.00000001 0 -0"), (b"a", "7 8 9.125")]
# Words with white space of all kinds, empty words, and some that look like numbers.
ODD = [(b"New York", "1 2"), (b"x\xc2\xa0y", "3 4"), (b". . .", "5 6"), (b"", "7 8"), (b" ", "9 10"), (b"1", "11 12"),
       (b"3 4", "13 14"), (b"a\tb", "15 16"), (b"\xe2\x80\x83", "17 18"), (b"0.5", "19 20"), (b" lead", "21 22"),
       (b"nan", "23 24"), (b"w", "25 26"), (b"x", "27 28"), (b"\xc2\x85", "29 30")]
SPECIAL = [(b"w", "nan inf -inf NaN"), (b"i", "Infinity -infinity +INF -nan"), (b"o", "1e400 -1e400 1e-400 -0"),
           (b"d", "1e-45 1e-46 1.17549435e-38 7.0064923216240853e-46"), (b"s", ".5 5. +1 1e5"), (b"e", "1E+2 1e-2 0e9 00.10"),
           (b"h", "16777217 16777219 9007199254740993 0.3000000119209289550781250000001"),
           (b"l", "3.4028235677973366e38 3.4028235677973365e38 3.4028234663852886e38 1" + "0" * 38),
           (b"c", "0." + "0" * 50 + "1 0." + "123456789" * 20 + " 1" + "0" * 60 + "e-60 8.5")]


def make_both(kind, ext, head):
    """The fixtures that text and textdims have in common."""
    def h(rows, dims=None):
        return b"%d %d\n" % (len(rows), dims or len(rows[0][1].split())) if head else b""

    def add(name, rows, data=None, **more):
        good(kind, name + ext, rows, lines(rows, head=h(rows)) if data is None else data, **more)

    add("plain", ROWS)
    add("one", ROWS[:1])
    add("tab", ROWS, lines(ROWS, "\t", head=h(ROWS)), attrs={"text.separator": "tab"})
    crlf = h(ROWS).replace(b"\n", b"\r\n")
    add("crlf", ROWS, lines(ROWS, end="\r\n", head=crlf), attrs={"text.newline": "crlf"})
    add("trailing", ROWS, lines(ROWS, end=" \n", head=h(ROWS)), attrs={"text.trailing_blank": True})
    add("cut", ROWS, lines(ROWS, head=h(ROWS))[:-1], attrs={"text.final_newline": False})
    add("all", ROWS, lines(ROWS, "\t", "\t\r\n", crlf)[:-2],
        attrs={"text.separator": "tab", "text.newline": "crlf", "text.trailing_blank": True, "text.final_newline": False})
    python = [(b"one", "1.0 1e-05 0.25 1.5e-07"), (b"two", "100000.0 1e+16 -0.0 -2.5")]
    add("python", python, attrs={"text.numbers": "python"})
    add("odd_words", ODD, warnings=1)  # the word " " ends in a space
    add("runs", ROWS, h(ROWS) + b"Berlin 0.5  -1.25 3\nK\xc3\xb6ln 0.00000001 0 -0\na 7 8\t9.125  \n", warnings=2)
    add("empty_lines", ROWS, h(ROWS) + b"\n" + lines(ROWS[:2]) + b"\n  \n" + lines(ROWS[2:]) + b"\n\n", warnings=1)
    add("mixed_ends", ROWS, h(ROWS) + lines(ROWS[:2]) + lines(ROWS[2:], end="\r\n"), warnings=1)
    add("special", SPECIAL)
    add("not_utf8", [(b"meren", "1 2"), (b"zee\xc3n", "3 4"), (b"rivieren", "5 6"), (b"\xff", "7 8")], warnings=1)
    add("twice", [(b"same", "1 2"), (b"same", "3 4"), (b"other", "5 6")])
    add("many", [(b"w%d" % i, "%d %g" % (i, -i / 8)) for i in range(300)])
    add("long_word", [(b"m", "3 4"), (b"l" * 5000, "1 2"), (b"n", "5 6")])
    add("wide", [(b"wide", " ".join("%g" % (i / 16) for i in range(1500))), (b"row", " ".join("-%d" % i for i in range(1500)))])
    add("quotes", [(b'"', "1 2"), (b"'", "3 4"), (b"#", "5 6"), (b",", "7 8"), (b"\\", "9 1")])
    add("numbers_behind", [(b"a", "1 2"), (b"b 1", "2 3"), (b"c", "4 5")])
    bad(kind, "short_row" + ext, h(ROWS) + b"a 1 2 3\nb 1 2\nc 1 2 3\nd 4 5 6\n"[:16 if head else 99], BAD,
        "has 2 numbers after its word instead of 3", len(h(ROWS)) + 8)
    at = len(h(ROWS))
    for name, number in (("letter", "x"), ("hex", "0x1p3"), ("comma", "0,5"), ("underscore", "1_0"), ("two_points", "1.2.3"),
                         ("exponent", "1e"), ("sign", "+-1"), ("nbsp", "1\u00a0")):
        data = h(ROWS) + ("a 1 2 3\nb 4 %s 6\nc 7 8 9\n" % number).encode()
        bad(kind, "verify_" + name + ext, data, BAD, "row 1: ", at + 12, "opens")
    bad(kind, "cut_row" + ext, h(ROWS) + b"a 1 2 3\nb 4 5 6\nc 7 8", SHORT, "2 rows are complete", at + 21)


def make_text():
    make_both("text", ".txt", False)
    good("text", "one_column.txt", [(b"a", "1"), (b"b", "2.5"), (b"c", "3")], b"a 1\nb 2.5\nc 3\n")
    good("text", "control.txt", [(b"a", "1 2"), (b"b\x01", "3 4")], b"a 1 2\nb\x01 3 4\n")
    # The first line looks like a header, but it is not, because the second line has a different
    # number of numbers.
    good("text", "no_header.txt", [(b"5", "300"), (b"6", "301"), (b"7", "302")], b"5 300\n6 301\n7 302\n")
    bad("text", "no_numbers.txt", b"one two\nthree four\n", UNKNOWN, "unrecognised file format", None)
    bad("text", "nul.txt", b"a 1 2\nb\0 3 4\n", UNKNOWN, "unrecognised file format", None)


def make_textdims():
    make_both("textdims", ".vec", True)
    good("textdims", "no_rows.vec", [], b"0 5\n", dims=5)
    good("textdims", "nothing.vec", [], b"0 0\n", dims=0)
    good("textdims", "one_column.vec", [(b"a", "1"), (b"b", "2.5")], b"2 1\na 1\nb 2.5\n")
    good("textdims", "as_txt.txt", ROWS, lines(ROWS, head=b"3 3\n"))
    good("textdims", "head_blanks.vec", ROWS, lines(ROWS, head=b" 3\t3 \n"), warnings=1)
    good("textdims", "head_zeros.vec", ROWS, lines(ROWS, head=b"03 003\n"), warnings=1)
    good("textdims", "head_crlf.vec", ROWS, lines(ROWS, head=b"3 3\r\n"), warnings=1)
    good("textdims", "fewer.vec", ROWS, lines(ROWS, head=b"2 3\n"), warnings=1, lenient=True)
    good("textdims", "more.vec", ROWS, lines(ROWS, head=b"4 3\n"), warnings=1, lenient=True)
    # The header decides how many numbers a line has, even if words look like numbers.
    good("textdims", "all_numbers.vec", [(b"1 2", "3 4"), (b"5 6", "7 8")], b"2 2\n1 2 3 4\n5 6 7 8\n")
    bad("textdims", "rows_fewer.vec", lines(ROWS, head=b"2 3\n"), BAD, "says 2 rows, but the file has 3", 4 + len(lines(ROWS[:2])), "opens")
    bad("textdims", "rows_more.vec", lines(ROWS, head=b"4 3\n"), SHORT, "says 4 rows, but the file has only 3", 4 + len(lines(ROWS)), "opens")
    bad("textdims", "rows_max.vec", lines(ROWS, head=b"18446744073709551615 3\n"), SHORT, "the file has only 3", None, "opens")
    bad("textdims", "dims_max.vec", lines(ROWS, head=b"3 18446744073709551615\n"), SHORT, "numbers per row", None)
    bad("textdims", "dims_more.vec", lines(ROWS, head=b"3 4\n"), BAD, "line 2 has 3 numbers after its word instead of 4", 4)
    bad("textdims", "dims_zero.vec", lines(ROWS, head=b"3 0\n"), BAD, "there are rows, but that they have no numbers", 0)
    bad("textdims", "dims_half.vec", lines(ROWS, head=b"1 20\n"), BAD, "instead of 20", None)
    bad("textdims", "empty.vec", b"3 3\n", SHORT, "3 numbers per row", 4)


def make_floret():
    def head(n, d, low=2, high=3, hashes=2, seed=2166136261, bow="<", eow=">", end="\n"):
        return ("%d %d %d %d %d %d %s %s%s" % (n, d, low, high, hashes, seed, bow, eow, end)).encode()

    def attrs(n, low=2, high=3, hashes=2, seed=2166136261, bow="<", eow=">", **more):
        f = "finalfusion."
        return {f + "vocab": "floret", f + "min_n": low, f + "max_n": high, f + "buckets": n, f + "hashes": hashes,
                f + "seed": seed, f + "bow": bow, f + "eow": eow, f + "words": 0, **more}

    def add(name, rows, data, more=None, warnings=0):
        good("floret", name + ".floret", rows, data, attrs=more or attrs(len(rows)), words=False, warnings=warnings)

    # The matrix of upstream's tests (specification, 7.8).
    numbers = """-2.2611 3.9302 2.6676 -11.233 0.093715 -10.52 -9.6463 -0.11853 2.101 -0.10145
-3.12 -1.7981 10.7 -6.171 4.4527 10.967 9.073 6.2056 -6.1199 -2.0402
9.5689 5.6721 -8.4832 -1.2249 2.1871 -3.0264 -2.391 -5.3308 -3.2847 -4.0382
3.6268 4.2759 -1.7007 1.5002 5.5266 1.8716 -12.063 0.26314 2.7645 2.4929
-11.683 -7.7068 2.1102 2.214 7.2202 0.69799 3.2173 -5.382 -2.0838 5.0314
-4.3024 8.0241 2.0714 -1.0174 -0.28369 1.7622 7.8797 -1.7795 6.7541 5.6703
8.3574 -5.225 8.6529 8.5605 -8.9465 3.767 -5.4636 -1.4635 -0.98947 -0.58025
-10.01 3.3894 -4.4487 1.1669 -11.904 6.5158 4.3681 0.79913 -6.9131 -8.687
-5.4576 7.1019 -8.8259 1.7189 4.955 -8.9157 -3.8905 -0.60086 -2.1233 5.892
8.0678 -4.4142 3.6236 4.5889 -2.7611 2.4455 0.67096 -4.2822 2.0875 4.6274""".split("\n")
    rows = [(b"%d" % i, line) for i, line in enumerate(numbers)]
    body = lines(rows)
    add("upstream", rows, head(10, 10) + body)
    add("brackets", rows, head(10, 10, bow="[", eow="]") + body, attrs(10, bow="[", eow="]"))
    few = [(b"%d" % i, "%d -%d" % (i, i)) for i in range(4)]
    body = lines(few)
    add("markers", few, head(4, 2, bow="<<", eow="> >") + body, attrs(4, bow="<<", eow="> >"))
    add("no_markers", few, head(4, 2, bow="", eow="") + body, attrs(4, bow="", eow=""))
    add("limits", few, head(4, 2, 1, 4294967295, 4, 4294967295) + body, attrs(4, 1, 4294967295, 4, 4294967295))
    add("trailing", few, head(4, 2) + lines(few, end=" \n"), attrs(4, **{"text.trailing_blank": True}))
    add("crlf", few, head(4, 2, end="\r\n") + lines(few, end="\r\n"), attrs(4, **{"text.newline": "crlf"}))
    add("other_numbers", few, head(4, 2) + body.replace(b"2 2 -2", b"7 2 -2"), warnings=1)
    bad("floret", "fewer.floret", head(4, 2) + lines(few[:3]), SHORT, "says 4 buckets, but the file has only 3", len(head(4, 2)) + 21)
    bad("floret", "more.floret", head(3, 2) + body, BAD, "says 3 buckets, but 4", len(head(3, 2)) + 21)
    bad("floret", "short_row.floret", head(4, 2) + body.replace(b"2 2 -2", b"2 2"), BAD, "line 4 has 1 number", None)
    bad("floret", "cut.floret", (head(4, 2) + body)[:-4], SHORT, "3 rows are complete", None)
    bad("floret", "hashes_0.floret", head(4, 2, hashes=0) + body, BAD, "0 hashes", 0)
    bad("floret", "hashes_5.floret", head(4, 2, hashes=5) + body, BAD, "5 hashes", 0)
    bad("floret", "lengths.floret", head(4, 2, low=4) + body, BAD, "n-grams of 4 to 3", 0)
    bad("floret", "length_0.floret", head(4, 2, low=0) + body, BAD, "n-grams of 0 to 3", 0)
    bad("floret", "no_buckets.floret", head(0, 2) + body, BAD, "0 buckets", 0)
    bad("floret", "verify_number.floret", head(4, 2) + body.replace(b"-3", b"-x"), BAD, "row 3: ", None, "opens")


def main():
    make_text()
    make_textdims()
    make_floret()
    for kind, wanted in expect.items():
        (HERE / kind / "expect.json").write_text(json.dumps(wanted, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
