# SPDX-License-Identifier: MIT
"""NumPy's .npy: magic, version, length, a Python dict as text, data."""
import struct

from kit import *

FORMAT, EXTENSION = "npy", "npy"
MISSING = "missing"
MAGIC = b"\x93NUMPY"


def file(text, data=b"", major=1, n=None):
    raw = text if isinstance(text, bytes) else text.encode("latin1")
    length = struct.pack("<H" if major == 1 else "<I", len(raw) if n is None else n)
    return MAGIC + bytes([major, 0]) + length + raw + data


def text(descr="'<f4'", fortran="False", shape="(2, 3)"):
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


def padded(string, prefix=10):
    return string + " " * (-(len(string) + prefix + 1) % 64) + "\n"


WHOLE = file(padded(text()), bytes(range(24)))


def make(cases):
    truncation(cases)
    wrong_things(cases, WHOLE)
    lengths(cases)
    arithmetic(cases)
    amplification(cases)
    depth(cases)
    duplicates(cases)
    polyglots(cases)
    types(cases)
    pickles(cases)
    content(cases)


def wrong(c, letter, name, string, where, message, what, status=BAD, data=bytes(24), major=1):
    """A header with a fault at this text in it (or at that offset)."""
    raw = string if isinstance(string, bytes) else string.encode("latin1")
    at = where if isinstance(where, int) else raw.index(where.encode("latin1"))
    c.rejected(letter, name, file(raw, data, major), status, (10 if major == 1 else 12) + at, message, what)


def truncation(c):
    for at in range(1, len(WHOLE)):
        if at <= 12 or at % 16 in (0, 15) or at > 126:
            need = 8 if at < 8 else 10 if at < 10 else 128 if at < 128 else len(WHOLE)
            c.rejected("A", f"cut_{at:03}", WHOLE[:at], SHORT, at, missing(need - at),
                       f"the first {at} of {len(WHOLE)} bytes")
    c.accepted("A", "long_by_1", WHOLE + b"\0", 1, "one byte more than the array needs", warnings=1)


def lengths(c):
    string = padded(text())
    c.rejected("C", "header_0", file(string, bytes(24), n=0), BAD, 10, "ends where", "a header of no bytes")
    for n in (1, 30, 58):
        c.rejected("C", f"header_{n}", file(string, bytes(24), n=n), BAD, None, "", f"the first {n} bytes of the header only")
    c.rejected("C", "header_1_long", file(string, bytes(24), n=len(string) + 1), BAD, 128, "0x00",
               "a header that takes the first byte of the data along")
    c.rejected("C", "header_ffff", file(string, bytes(24), n=65535), SHORT, 152, MISSING, "the longest header of version 1, not there")
    for n in (2 ** 20 + 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1):
        for major in (2, 3):
            c.rejected("C", f"header_{n}_v{major}", file(string, bytes(24), major, n=n), LIMIT, 12, str(n), f"a header of {n} bytes")
    c.rejected("C", "header_1_mib", file(string, bytes(24), 2, n=2 ** 20), SHORT, 12 + len(string) + 24, MISSING,
               "the longest header that is read, not there")
    for version in (b"\0\0", b"\1\1", b"\4\0", b"\xff\xff"):
        c.rejected("C", f"version_{version.hex()}", MAGIC + version + WHOLE[8:], UNSUPPORTED, 6, "version", "a version that there is not")


def arithmetic(c):
    def shape(name, dims, message, what, status=BAD, descr="'<f4'", where=None):
        string = text(descr, shape=dims)
        wrong(c, "D", name, string, string.index("(", string.index("'shape'")) if where is None else where + string.index(dims),
              message, what, status)
    big = 2 ** 32
    shape("product_wraps_to_0", f"({big}, {big}, 2)", "2^63", "2^32 × 2^32 × 2 is 0 in 64 bits")
    shape("product_wraps_to_1", f"(3, {12297829382473034411 // 2})", "2^63", "a product beyond 64 bits")
    shape("bytes_wrap_to_0", f"({2 ** 61},)", "2^63", "2^61 × 8 bytes is 0 in 64 bits", descr="'<f8'")
    shape("bytes_wrap_small", f"({2 ** 60 + 1},)", "2^63", "(2^60 + 1) × 16 bytes is 16 in 64 bits", descr="'<c16'")
    shape("zero_after_overflow", f"({2 ** 62}, {2 ** 62}, 0)", "2^63", "an overflow that a zero behind it would hide")
    shape("zero_before_overflow", f"(0, {2 ** 62}, {2 ** 62})", "2^63", "an overflow that a zero before it would hide")
    shape("negative_pair", "(-2, -3)", "negative", "two negative dimensions with a positive product", where=1)
    for label, n in (("2_63", 2 ** 63), ("2_64_less_1", 2 ** 64 - 1)):
        shape(f"dimension_{label}", f"({n}, 0)", "2^63", f"a dimension of {n}", where=1)
    for label, n in (("2_64", 2 ** 64), ("2_70", 2 ** 70), ("400_digits", 10 ** 399), ("hex", hex(2 ** 64))):
        shape(f"dimension_{label}", f"({n}, 0)", "64 bits", "a dimension beyond 64 bits", where=3 if label == "hex" else 1)
    shape("item_wraps", "(2,)", "2^31", "a structure of more than 2^31 bytes", descr="('|S2147483647', (2147483647, 2147483647))",
          where=-len("(2147483647, 2147483647)), 'fortran_order': False, 'shape': ") + 1)
    c.accepted("D", "rank_0", file(text(shape="()"), bytes(4)), 1, "a scalar")
    c.accepted("D", "rank_64", file(text(shape="(" + "1, " * 64 + ")"), bytes(4)), 1, "64 dimensions")
    shape("rank_65", "(" + "1, " * 65 + ")", "65 dimensions", "more dimensions than NumPy has", LIMIT)
    shape("rank_20000", "(" + "1," * 20000 + ")", "20000 dimensions", "20000 dimensions", LIMIT)
    data = file(text(shape=f"({2 ** 40},)"))
    c.rejected("D", "terabytes", data, SHORT, len(data), MISSING, "4 TiB of data in a file of 80 bytes")


def amplification(c):
    wrong(c, "F", "many_lists", text("[" + "[]," * 20000 + "]"), 11, "not a tuple of a name and a type", "20000 empty fields")
    wrong(c, "F", "many_strings", text("'' " * 20000), 10, "not known", "20000 strings next to each other", UNSUPPORTED)
    many = ",".join(f"('f{i}','|u1')" for i in range(40000))
    raw = text(f"[{many}]", shape="(1,)")
    c.accepted("F", "many_fields", file(raw, bytes(40000), 2), 1, "40000 fields, whose names are compared")
    c.accepted("F", "width_0", file(text("'|S0'", shape=f"({2 ** 60},)")), 1, "2^60 texts of no bytes: nothing to be read")
    c.accepted("F", "zeros", file(text(shape=f"(0, {2 ** 60})")), 1, "no rows of 2^60 columns")
    c.accepted("F", "blanks", file(text() + " " * 60000, bytes(24)), 1, "60000 blanks behind the header")


def depth(c):
    for label, opening, closing in (("lists", "[", "]"), ("tuples", "(", ",)"), ("dicts", "{1:", "}"), ("brackets", "(", ")")):
        raw = text(opening * 20000 + closing * 20000)
        wrong(c, "G", f"deep_{label}", raw, 10 + 31 * len(opening), "32 levels", f"20000 {label} in one another", LIMIT, major=2)
    wrong(c, "G", "open_lists", "[" * 60000, 32, "32 levels", "60000 lists that do not end", LIMIT)


def duplicates(c):
    two = text()[:-1] + "'shape': (1, 1)}"
    wrong(c, "H", "shape_twice", two, two.rindex("'shape'"), "twice", "two shapes: NumPy takes the last, others the first")
    two = text()[:-1] + "'d' 'escr': '<i4'}"
    wrong(c, "H", "descr_twice_joined", two, two.rindex("'d'"), "twice", "two types, one of them in two pieces")
    fields = text("[('a', '<f4'), ('\\x61', '<f4')]")
    wrong(c, "H", "field_twice_escaped", fields, "'\\x61'", "twice", "two fields of one name, in two spellings")
    wrong(c, "H", "key_more", text()[:-1] + "'allow_pickle': True}", len(text()) - 1, "unknown key", "a key that tries to allow pickles")
    c.accepted("H", "odd_names", file(text("[('\\x1b[2J', '<f4'), ('\\u202e', '<f4'), ('\\x00', '<f4')]", shape="(2,)"), bytes(24)), 1,
               "fields whose names would move a terminal about")
    wrong(c, "H", "nul", text("'<f4\\0'"), 10, "not known", "a type with a NUL in it", UNSUPPORTED)


def polyglots(c):
    c.accepted("I", "zip_behind", WHOLE + b"PK\5\6" + bytes(18), 1, "an array, and a ZIP archive's end behind it", warnings=1)
    c.accepted("I", "array_behind", WHOLE + WHOLE, 1, "two arrays in a row", warnings=1)
    c.accepted("I", "pickle_behind", WHOLE + b"\x80\x04cos\nsystem\n.", 1, "a pickle behind the array", warnings=1)
    c.rejected("I", "blank_before", b" " + WHOLE, BAD, 0, "does not begin", "a blank before the magic")


def types(c):
    for i, descr in enumerate(["'<f3'", "'<f4\\x00'", "'<%s'" % ("f" * 5000), "'S99999999999'", "'M8[%s]'" % ("9" * 40), "'M8[0s]'", "'%n'",
                               "'<f-4'", "'< f4'", "'<\\u0664'"]):
        wrong(c, "J", f"unknown_{i}", text(descr), 10, "not known", "a type that there is not", UNSUPPORTED)
    for i, descr in enumerate(["4", "()", "('<f4',)", "('<f4', (2,), 3)", "{'a': 1}", "True"]):
        wrong(c, "J", f"no_type_{i}", text(descr), 10, "not a text, a list of fields, or a pair", "something else than a type")
    for label, call in (("call", "__import__('os').system('id')"), ("comprehension", "[x for x in ()]"), ("lambda", "lambda: 0"),
                        ("f_string", "f'{1}'"), ("name", "exit"), ("walrus", "(a := 1)")):
        where = {"comprehension": "x for", "f_string": "f'{", "walrus": "a :="}.get(label, call[:4])
        wrong(c, "J", f"code_{label}", text(call), where, "", "code where a literal should be")


def pickles(c):
    bomb = b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94."
    for label, descr in (("object", "'|O'"), ("object_8", "'O8'"), ("field", "[('a', '<i4'), ('b', 'O')]"),
                         ("nested", "[('a', [('b', '|O', (2,))])]"), ("subarray", "('O', (2,))")):
        raw = file(text(descr, shape="(1,)"), bomb)
        c.rejected("P", f"pickle_{label}", raw, UNSUPPORTED, len(raw) - len(bomb), "'posix.system'", "a pickle that calls a shell")
    for label, body in (("empty", b""), ("cut", bomb[:9]), ("length_lies", b"\x80\x04\x8d" + b"\xff" * 8 + b"x"), ("line_open", b"cposix"),
                        ("far_memo", b"\x80\x04j\xff\xff\xff\xff\x93."), ("nothing_there", b"\x93."), ("ones", b"\xff" * 70000)):
        raw = file(text("'|O'", shape="(1,)"), body)
        c.rejected("P", f"pickle_{label}", raw, UNSUPPORTED, len(raw) - len(body), "a pickle", "a pickle that is none")
    names = b"".join(b"cm%d\nf%d\n" % (i, i) for i in range(3000))
    raw = file(text("'|O'", shape="(1,)"), names + b".")
    c.rejected("P", "pickle_many_names", raw, UNSUPPORTED, len(raw) - len(names) - 1, "…", "a pickle with more names than a message holds")


def content(c):
    data = file(text("'|b1'", shape="(3,)"), b"\1\0\2")
    c.damaged("J", "bool_of_2", data, BAD, 1, "a bool that is 2", offset=len(data) - 1)
    c.accepted("P", "nan", file(text(shape="(2,)"), b"\xff" * 8), 1, "NaN of any bits")
    c.accepted("P", "unicode_beyond", file(text("'<U2'", shape="(1,)"), b"\xff" * 8), 1, "code points that there are not: bytes all the same")
