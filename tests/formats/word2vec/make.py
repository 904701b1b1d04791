#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of word2vec's binary files, and the expected results.

All files follow the layout that docs/formats/word2vec.md describes. tests/peers/gensim_peer.py
makes files with gensim.
"""
import base64
import hashlib
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT, LIMIT = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT"
valid, reject = {}, {}
ROWS = [(b"Berlin", (0.5, -1.25, 3.0)), (b"K\xc3\xb6ln", (1e-8, 0.0, -0.0)), (b"a", (7.0, 8.0, 9.0))]


def f32(v):
    return struct.pack("<%df" % len(v), *v)


def compose(rows, dims=None, n=None, after=b"\n", last=None, head=None, tail=b""):
    dims = len(rows[0][1]) if dims is None else dims
    out = b"%d %d\n" % (len(rows) if n is None else n, dims) if head is None else head
    for i, (word, vector) in enumerate(rows):
        end = after if i + 1 < len(rows) or last is None else last
        out += word + b" " + (vector if isinstance(vector, bytes) else f32(vector)) + end
    return out + tail


def shown(word):
    try:
        return word.decode()
    except UnicodeDecodeError:
        return {"$bytes": base64.b64encode(word).decode()}


def good(name, rows, data, dims=None, warnings=0, attrs=None, lenient=False):
    dims = len(rows[0][1]) if dims is None else dims
    (HERE / "valid" / name).write_bytes(data)
    matrix = b"".join(v if isinstance(v, bytes) else f32(v) for _, v in rows)
    valid[name] = {
        "format": "word2vec", "version": "", "warnings": warnings, "attrs": attrs or {},
        "tensors": [
            {"name": "vocab", "dtype": "u8", "layout": "strings/1", "shape": [len(rows)], "order": "C",
             "strings": [shown(w) for w, _ in rows]},
            {"name": "embeddings", "dtype": "f32", "layout": "dense", "shape": [len(rows), dims], "order": "C",
             "sha256": hashlib.sha256(matrix).hexdigest()}]}
    if lenient:
        valid[name]["lenient"] = True


def bad(name, data, code, message, offset, lenient="rejects"):
    (HERE / "reject" / name).write_bytes(data)
    reject[name] = {"code": code, "message": message, "offset": offset, "lenient": lenient}


def make_valid():
    newline = "word2vec.newline"
    good("lf.bin", ROWS, compose(ROWS))
    good("none.bin", ROWS, compose(ROWS, after=b""), attrs={newline: "none"})
    good("between.bin", ROWS, compose(ROWS, last=b""), attrs={newline: "between"})
    good("crlf.bin", ROWS, compose(ROWS, after=b"\r\n"), attrs={newline: "crlf"})
    good("one.w2v", ROWS[:1], compose(ROWS[:1]))
    good("one_none.w2v", ROWS[:1], compose(ROWS[:1], after=b""), attrs={newline: "none"})
    good("mixed.bin", ROWS, compose(ROWS[:1]).replace(b"1 3\n", b"3 3\n") + compose(ROWS[1:], after=b"", head=b""), warnings=1)
    good("no_rows.bin", [], b"0 5\n", dims=5)
    good("nothing.bin", [], b"0 0\n", dims=0)
    # Words are not trimmed: words with other white space at their ends, empty words, and words that begin
    # with a newline.
    odd = [(w, (float(i), 0.25)) for i, w in enumerate((
        b"x", b"x\xc2\xa0", b"\xe2\x80\x83x", b"\tx", b"", b"\nx", b"x\r", b"x\x0b", b"\xc2\x85", b"\n"))]
    good("untrimmed.bin", odd, compose(odd))
    twice = [(b"same", (1.0,)), (b"same", (2.0,)), (b"other", (3.0,))]
    good("twice.bin", twice, compose(twice))
    broken = [(b"meren", (1.0, 2.0)), (b"zee\xbfn", (3.0, 4.0)), (b"rivieren", (5.0, 6.0)), (b"\xff\xfe", (1.0, 1.0))]
    good("not_utf8.bin", broken, compose(broken), warnings=1)
    special = [(b"nan", b"\0\0\xc0\x7f\1\0\xc0\xff"), (b"inf", b"\0\0\x80\x7f\0\0\x80\xff"), (b"tiny", b"\1\0\0\0\1\0\0\x80")]
    good("special.bin", special, compose(special, dims=2), dims=2)
    # Vectors whose bytes look like spaces and newlines.
    blank = [(b"a", b" \n \n\n\n\n\n"), (b"b", b"\n\n\n\n    "), (b"c", b"\n\r\n\r\r\n\r\n")]
    good("blanks_in_vectors.bin", blank, compose(blank, dims=2), dims=2)
    good("blanks_in_vectors_none.bin", blank, compose(blank, dims=2, after=b""), dims=2, attrs={newline: "none"})
    many = [(b"w%d" % i, (i / 8.0, -i / 4.0)) for i in range(200)]
    good("many.bin", many, compose(many))
    long = [(b"l" * 3000, (1.0, 2.0)), (b"m" * 70000, (3.0, 4.0)), (b"n", (5.0, 6.0))]
    good("long_words.bin", long, compose(long))
    wide = [(b"wide", tuple(i / 16.0 for i in range(2000))), (b"row", tuple(-i / 16.0 for i in range(2000)))]
    good("wide.bin", wide, compose(wide))
    good("zeros_in_front.bin", ROWS, compose(ROWS, head=b"003 3\n"), warnings=1)
    good("head_blanks.bin", ROWS, compose(ROWS, head=b" 3\t 3 \n"), warnings=1)
    good("head_crlf.bin", ROWS, compose(ROWS, head=b"3 3\r\n"), warnings=1)
    good("trailing.bin", ROWS, compose(ROWS, tail=b"more"), warnings=1, lenient=True)
    more = [(b"a", (1.0, 2.0)), (b"b", (3.0, 4.0)), (b"c", (5.0, 6.0))]
    good("more_rows.bin", more[:2], compose(more, n=2), warnings=1, lenient=True)


def make_reject():
    whole = compose(ROWS)
    bad("cut_vector.bin", whole[:-3], SHORT, "row 3 of 3: at least 2 bytes", len(whole) - 3)
    bad("cut_word.bin", whole[:whole.index(b"K") + 3], SHORT, "the word of row 2 of 3", whole.index(b"K") + 3)
    bad("cut_row.bin", whole[:whole.index(b"K")], SHORT, "the word of row 2 of 3", whole.index(b"K"))
    bad("no_blank.bin", b"1 3\n" + b"x" * 5000, "TNF_EUNSUPPORTED", "unrecognised file format", None)
    bad("unterminated.bin", b"2 1\na \0\0\0\0\n" + b"x" * 5000, SHORT, "the word of row 2 of 2", 5011)
    bad("more_claimed.bin", compose(ROWS, n=4), SHORT, "the word of row 4 of", len(whole))
    bad("rows_max.bin", compose(ROWS, head=b"18446744073709551615 3\n"), SHORT, "the word of row 4 of", None)
    bad("product_wraps.bin", compose(ROWS, head=b"6148914691236517206 3\n"), SHORT, "the word of row 4 of", None)
    bad("dims_max.bin", compose(ROWS, head=b"3 18446744073709551615\n"), "TNF_EUNSUPPORTED", "", None)
    bad("dims_large.bin", compose(ROWS, head=b"3 4294967295\n"), LIMIT, "says 4294967295 numbers per row", 0)
    bad("dims_short.bin", compose(ROWS, head=b"3 100000000\n"), SHORT, "the vector of row 1 of 3", None)
    bad("trailing.bin", compose(ROWS, tail=b"\n"), BAD, "1 byte follows the 3 rows", len(whole), "opens")
    bad("fewer_claimed.bin", compose(ROWS, n=2), BAD, "follow the 2 rows", None, "opens")


def main():
    make_valid()
    make_reject()
    (HERE / "expect.json").write_text(json.dumps({"reject": reject, "valid": valid}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
