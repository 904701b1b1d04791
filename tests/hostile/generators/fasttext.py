# SPDX-License-Identifier: MIT
"""fastText models: arguments, a dictionary, two matrices."""
import struct

from kit import *

FORMAT, EXTENSION = "fasttext", "bin"
ARGS = "dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate".split()


def floats(n):
    return struct.pack(f"<{n}f", *[i * .25 for i in range(n)])


def fields(words=((b"one", 3), (b"two", 2)), bucket=2, pruned=None, kinds=None, **args):
    f = Fields().put("magic", "u32", 793712314).put("version", "i32", 12)
    values = {"dim": 2, "wordNgrams": 1, "loss": 2, "model": 2, "minn": 3, "maxn": 6, "bucket": bucket, **args}
    for name in ARGS:
        f.put(name, "i32", values.get(name, 0))
    f.put("t", "f64", 1e-4)
    f.put("size", "i32", len(words)).put("nwords", "i32", len(words)).put("nlabels", "i32", 0).put("ntokens", "i64", 5)
    f.put("pruneidx_size", "i64", -1 if pruned is None else len(pruned))
    for i, (word, count) in enumerate(words):
        f.raw(f"word{i}", word + b"\0").put(f"count{i}", "i64", count).put(f"kind{i}", "u8", (kinds or [0] * 9)[i])
    for i, (a, b) in enumerate(pruned or ()):
        f.put(f"prune{i}", "i32", a).put(f"row{i}", "i32", b)
    rows = len(words) + (bucket if pruned is None else len(pruned))
    f.put("quantized", "u8", 0).put("rows", "i64", rows).put("columns", "i64", 2).raw("input", floats(2 * rows))
    f.put("out_quantized", "u8", 0).put("out_rows", "i64", len(words)).put("out_columns", "i64", 2)
    f.raw("output", floats(2 * len(words)))
    return f


def packed(rows=4, columns=2, each=1, codes=None, n=None, pieces=None, last=None, dim=None, flag=1, norms=0, centroids=None):
    """A quantized matrix."""
    have = columns // each if pieces is None else pieces
    codes = bytes(rows * (columns // each)) if codes is None else codes
    return (struct.pack("<BBqqi", flag, norms, rows, columns, len(codes) if n is None else n) + codes
            + struct.pack("<4i", columns if dim is None else dim, have, each, each if last is None else last)
            + (floats(256 * columns) if centroids is None else centroids))


def make(c):
    f = fields()
    whole = f.build()
    wrong_things(c, whole)
    c.accepted("P", "sound", whole, 4, "a sound model")
    for label, at in cuts(f):
        if label == "before_out_quantized":
            c.accepted("A", f"cut_{label}", whole[:at], 3, "no output matrix, as finalfusion writes it", warnings=1)
        else:
            claimed = 0 <= at - f.at("word0") < 20  # two entries of ten bytes at least are what the dictionary claims
            c.rejected("A", f"cut_{label}", whole[:at], SHORT, f.at("size") if claimed else END, "", f"the first {at} of {len(whole)} bytes")
    c.rejected("A", "long_by_1", whole + b"\0", BAD, len(whole), "", "a byte behind the model")
    c.rejected("I", "then_zip", whole + b"PK\5\6" + bytes(18), BAD, len(whole), "", "a ZIP archive behind the model")
    dictionary(c, f)
    arguments(c, f)
    matrices(c, f)
    pruned(c)
    quantized(c, f)


def dictionary(c, f):
    def lie(letter, name, what, status=BAD, at=None, **but):
        c.rejected(letter, name, f.build(**but), status, at, "", what)
    head = f.at("size")  # three numbers that must agree
    for field in ("size", "nwords", "nlabels"):
        for label, n in (("minus_1", -1), ("min", -(1 << 31)), ("max", (1 << 31) - 1), ("3", 3)):
            lie("O" if n < 0 else "C", f"{field}_{label}", f"{field} is {n}", BAD, head, **{field: n})
    lie("F", "all_max", "2^31 - 1 words", SHORT, head, size=(1 << 31) - 1, nwords=(1 << 31) - 1)
    for label, n in (("minus_2", -2), ("min", -(1 << 63)), ("max", (1 << 63) - 1), ("2_40", 1 << 40)):
        lie("O" if n < 0 else "F", f"pruneidx_{label}", f"{n} pruned buckets", *((BAD, f.at("pruneidx_size")) if n < 0 else (SHORT, END)), pruneidx_size=n)
    lie("O", "word_unterminated", "a last word without an end", SHORT, None, word1=b"two", count1=b"", kind1=b"", quantized=b"", rows=b"", columns=b"", input=b"",
        out_quantized=b"", out_rows=b"", out_columns=b"", output=b"")
    lie("O", "kind_2", "an entry that is neither word nor label", BAD, f.at("kind1"), kind1=2)
    lie("O", "kind_label", "a label among the words", BAD, f.at("kind1"), kind1=1)
    lie("O", "count_negative", "a word that came -1 times", BAD, f.at("count0"), count0=-1)
    for label, word in (("empty", b""), ("blank", b" "), ("ansi", b"\x1b[2J"), ("newline", b"a\nb"), ("twice", b"two"), ("nbsp", b"\xc2\xa0"), ("long", b"n" * 2000),
                        ("bad_utf8", b"\xff\xfe"), ("eos", b"</s>")):
        c.accepted("O", f"word_{label}", f.build(word0=word + b"\0"), 4, f"a word: {label}", warnings=None)


def arguments(c, f):
    def lie(letter, name, what, status=BAD, at=None, **but):
        c.rejected(letter, name, f.build(**but), status, f.at(next(iter(but))) if at is None else at, "", what)
    for label, n in (("0", 0), ("minus_1", -1), ("max", (1 << 31) - 1), ("3", 3)):
        lie("O", f"dim_{label}", f"vectors of {n} numbers, rows of 2", BAD, f.at("columns") if n >= 0 else None, **{"dim": n})
    for label, n in (("minus_1", -1), ("max", (1 << 31) - 1), ("0", 0), ("3", 3)):
        lie("O", f"bucket_{label}", f"{n} buckets, rows for 2", BAD, f.at("rows") if n > 0 else None, bucket=n)
    for n in (0, 5, -1):
        lie("J", f"loss_{n}", f"a loss {n}", UNSUPPORTED, loss=n)
        lie("J", f"model_{n}", f"a model {n}", UNSUPPORTED, model=n)
    for n in (0, 10, 13, -1):
        lie("J", f"version_{n}", f"version {n}", UNSUPPORTED, version=n)
    c.accepted("O", "maxn_below_minn", f.build(minn=7), 4, "a longest n-gram below the shortest: there are none", warnings=1)
    lie("O", "minn_negative", "n-grams of -1 letters", minn=-1)
    c.accepted("O", "t_nan", f.build(t=b"\xff" * 8), 4, "a threshold that is not a number", warnings=None)


def matrices(c, f):
    def lie(letter, name, what, status=BAD, at=None, **but):
        c.rejected(letter, name, f.build(**but), status, at, "", what)
    def verdict(field, n):
        """The first matrix must fit the dictionary and the arguments; nothing else in the file describes the
        second."""
        if n >= 1 << 61:  # the product is beyond all limits
            return BAD, f.at(field.replace("columns", "rows"))
        if n < 0 or not field.startswith("out_"):
            return BAD, f.at(field)
        return (SHORT, END) if n else (BAD, f.at("output"))
    for field, true in (("rows", 4), ("columns", 2), ("out_rows", 2), ("out_columns", 2)):
        for label, n in (("0", 0), ("minus_1", -1), ("1_more", true + 1), ("2_31", 1 << 31), ("2_62", 1 << 62), ("max", (1 << 63) - 1), ("min", -(1 << 63))):
            lie("D" if abs(n) > 9 else "C", f"{field}_{label}", f"a matrix whose {field} is {n}", *verdict(field, n), **{field: n})
    lie("D", "product_wraps", "2^32 rows of 2^32 columns", BAD, f.at("rows"), rows=1 << 32, columns=1 << 32)
    lie("J", "quantized_2", "a flag that is neither 0 nor 1", BAD, f.at("quantized"), quantized=2)
    for label, data in (("nan", b"\0\0\xc0\x7f" * 8), ("infinity", b"\0\0\x80\xff" * 8), ("zeros", bytes(32))):
        c.accepted("P", f"value_{label}", f.build(input=data), 4, f"values: {label}")


def pruned(c):
    def cut(rows=((0, 0),), bucket=2, **but):
        f = fields(bucket=bucket, pruned=list(rows))
        n = len(rows)
        stored = packed(2 + n)
        return f.build(quantized=b"", rows=b"", columns=b"", input=stored, **but)
    c.accepted("O", "pruned", cut(), 5, "a sound pruned model", warnings=None)
    for label, rows in (("bucket_negative", [(-1, 0)]), ("bucket_past", [(2, 0)]), ("bucket_max", [((1 << 31) - 1, 0)]), ("row_negative", [(0, -1)]),
                        ("row_past", [(0, 1)]), ("row_max", [(0, (1 << 31) - 1)])):
        c.rejected("O", f"prune_{label}", cut(rows), BAD, None, "", f"pruning that left {rows[0]}")


def quantized(c, f):
    def model(**how):
        return f.build(quantized=b"", rows=b"", columns=b"", input=packed(**how))
    c.accepted("P", "quantized", model(), 4, "a sound quantized model", warnings=None)
    start = f.at("quantized")
    size, pieces = start + 18, start + 22 + 8  # the places of the number of codes, and after the 8 codes
    def bad(name, what, letter="C", status=BAD, at=pieces, **how):
        c.rejected(letter, f"quantized_{name}", model(**how), status, at, "", what)
    bad("codes_less", "fewer codes than rows", at=size, codes=bytes(7))
    bad("codes_more", "more codes than rows", at=size, codes=bytes(9))
    bad("codes_minus_1", "-1 codes", at=size, n=-1)
    bad("codes_max", "2^31 - 1 codes", "F", SHORT, END, n=(1 << 31) - 1)
    bad("pieces_0", "no pieces", "D", pieces=0)
    bad("pieces_3", "three pieces of two numbers", "D", pieces=3)
    bad("pieces_minus_1", "-1 pieces", "D", pieces=-1)
    bad("pieces_max", "2^31 - 1 pieces", "D", pieces=(1 << 31) - 1)
    bad("each_0", "pieces of no numbers", "D", each=1, last=0)
    bad("dim_3", "a quantizer of three columns", "D", dim=3)
    bad("dim_max", "a quantizer of 2^31 - 1 columns", "D", dim=(1 << 31) - 1)
    bad("centroids_cut", "fewer centroids than 256", "A", SHORT, None, centroids=floats(8))
    bad("norms_missing", "norms that are not there", at=None, norms=1)
