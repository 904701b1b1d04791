#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of .npy, and the expected results (Python's own library only).

The files valid/real_* exist already: numpy 2.4 and ml_dtypes 0.6 wrote them. This script makes all others
from the format's description (numpy/lib/format.py).
"""
import ast
import hashlib
import json
import math
import pathlib
import re
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
MAGIC = b"\x93NUMPY"
expect = {"valid": {}, "reject": {}}

# numpy's code: our type.
CODES = {"b1": "bool", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32",
         "u8": "u64", "f2": "f16", "f4": "f32", "f8": "f64", "c8": "c64", "c16": "c128"}


# ------------------------------------------------------------------- composing

def missing(n):
    return "1 byte is missing" if n == 1 else f"{n} bytes are missing"


def header(descr, shape, fortran=False):
    """The dict as numpy.save() prints it, with the space for growth."""
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape!r}, }}"
    if shape:
        text += " " * (21 - len(str(shape[-1 if fortran else 0])))
    return text


def file(text, data=b"", major=1, align=64, length=None):
    """A file with this header text, padded as numpy pads it (align 0: not at all)."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8" if major == 3 else "latin1")
    prefix = 10 if major == 1 else 12
    if align:
        raw += b" " * (align - (prefix + len(raw) + 1) % align) + b"\n"
    n = len(raw) if length is None else length
    return MAGIC + bytes([major, 0]) + struct.pack("<H" if major == 1 else "<I", n) + raw + data


def filled(n):
    return bytes((5 + 7 * i) % 251 for i in range(n))


def array(descr, shape, fortran=False, width=None, **more):
    width = int(re.sub(r"\D", "", descr)) if width is None else width
    n = math.prod(shape) * width
    data = bytes(i % 2 for i in range(n)) if descr == "|b1" else filled(n)
    return file(header(descr, shape, fortran), data, **more)


# ------------------------------------------------------------------- expected results

def turned(data, width):
    return b"".join(data[i:i + width][::-1] for i in range(0, len(data), width))


def rows_first(data, shape, width):
    """Puts elements that are stored by columns in the order of rows."""
    steps = [math.prod(shape[:d]) for d in range(len(shape))]
    out = b""
    for i in range(math.prod(shape)):
        at = 0
        for d in reversed(range(len(shape))):
            at += i % shape[d] * steps[d]
            i //= shape[d]
        out += data[at * width:(at + 1) * width]
    return out


def width_of(descr):
    if isinstance(descr, list):
        return sum(width_of(f[1]) * (math.prod(f[2]) if len(f) == 3 and isinstance(f[2], tuple) else
                                     f[2] if len(f) == 3 else 1) for f in descr)
    n = int(re.match(r"[<>|][a-zA-Z](\d+)", descr)[1])
    return 4 * n if descr[1] == "U" else n


def told(descr):
    """For a descriptor in numpy's spelling: our type, its width, further dimensions, how many bytes to reverse, the
    attribute."""
    if isinstance(descr, list):
        return "u8", width_of(descr), [width_of(descr)], 1, repr(descr)
    code, big = descr[1:], descr[0] == ">"
    if code in CODES:
        width = int(code[1:])
        turn = (width // 2 if code[0] == "c" else width) if big else 1
        return CODES[code], width, [], turn, descr if big and width > 1 else None
    if descr == "<V2":
        return "bf16", 2, [], 1, None
    if descr == "<f1":
        return "f8_e5m2", 1, [], 1, descr
    if code[0] in "Mm":
        return "i64", 8, [], 8 if big else 1, descr
    width = width_of(descr)
    if code[0] == "U":
        return "u32", width, [width // 4], 4 if big else 1, descr
    return "u8", width, [width], 1, descr


def described(data, canonical=True, same_as=None):
    """The content of a valid file, by Python's own reader of literals. same_as: the descriptor in numpy's
    spelling."""
    major = data[6]
    prefix = 10 if major == 1 else 12
    n, = struct.unpack_from("<H" if major == 1 else "<I", data, 8)
    raw = data[prefix:prefix + n].decode("utf-8" if major == 3 else "latin1")
    said = ast.literal_eval(re.sub(r"(\d) ?L", r"\1", raw).strip())
    dtype, width, behind, turn, attr = told(same_as or said["descr"])
    shape, fortran = said["shape"], said["fortran_order"]
    wide = sum(d != 1 for d in shape)
    fortran = fortran and wide > 1 and 0 not in shape
    body = data[prefix + n:][:math.prod(shape) * width]
    body = rows_first(body, shape, width) if fortran else body
    attrs = {"numpy.descr": attr} if attr else {}
    if fortran and not behind:
        attrs["numpy.order"] = "F"
    if not canonical or (fortran and behind):
        attrs["numpy.header"] = raw
    return {"name": "arr_0", "dtype": dtype, "shape": list(shape) + behind,
            "order": "F" if fortran and not behind else "C",
            "sha256": hashlib.sha256(turned(body, turn) if turn > 1 else body).hexdigest(), "attrs": attrs}


def valid(name, data=None, warnings=0, lenient=False, tensor=None, **more):
    name += ".npy"
    path = HERE / "valid" / name
    if data is None:
        data = path.read_bytes()
    else:
        path.write_bytes(data)
    version = f"{data[6]}.0"
    expect["valid"][name] = {"format": "npy", "version": version, "lenient": lenient, "warnings": warnings,
                             "attrs": {"numpy.version": version}, "tensors": [tensor or described(data, **more)]}


def odd(name, text, data=filled(24), **more):
    """A header that numpy reads, but would not write."""
    valid(name, file(text, data, align=more.pop("align", 0), major=more.pop("major", 1)), canonical=False, **more)


def reject(name, data, code, offset, message, lenient="rejects"):
    name += "" if "." in name else ".npy"
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}


def wrong(name, text, where, message, code=BAD, lenient="rejects", major=1, data=bytes(24), skip=0):
    """A header with a fault at this text in it (or at that offset)."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8" if major == 3 else "latin1")
    at = where if isinstance(where, int) else raw.index(where.encode("latin1")) + skip
    reject(name, file(raw, data, major, align=0), code, (10 if major == 1 else 12) + at, message, lenient)


def clean():
    for kind in ("valid", "reject"):
        for path in (HERE / kind).iterdir():
            if not path.name.startswith("real_"):
                path.unlink()


# ----------------------------------------------------------------------- valid

def make_valid():
    for path in sorted((HERE / "valid").glob("real_*.npy")):
        valid(path.stem)
    for code in CODES:
        for mark in ("|",) if code.endswith("1") else "<>":
            valid(f"type_{code}_{'big' if mark == '>' else 'little'}", array(mark + code, (2, 3)))
    for i, shape in enumerate([(), (0,), (1,), (3,), (0, 3), (3, 0), (1, 1, 1), (2, 1, 3), (1,) * 64, (2 ** 60, 0)]):
        valid(f"shape_{i}", array("<f4", shape))
    valid("growth", array("<u2", (12345, 1)))
    valid("fortran", array("<i4", (2, 3, 4), True))
    valid("fortran_big", array(">f8", (3, 2), True))
    valid("fortran_scalars_between", array("<f4", (1, 2, 1, 3), True))
    valid("fortran_text", array("|S3", (2, 4), True))
    valid("fortran_text_empty", array("|S0", (2, 4), True))
    valid("fortran_unicode_none", array("<U2", (2, 0, 4), True, width=8))
    valid("fortran_unicode_big", array(">U2", (3, 2), True, width=8))
    valid("fortran_structure", file(header([("a", "<i2"), ("b", "|u1")], (2, 3), True), filled(18)))
    valid("major_2", array("<f4", (2,), major=2))
    valid("major_3", array("<f4", (2,), major=3))
    for code in ("|S7", "|S0", "<U3", ">U3", "<U0", "|V5", "|V0", "|V2", "|V1", "<V1", "<V2", "<f1", "<f16", ">f16", "<c32",
                 "<f12"):
        name = code.replace("<", "little_").replace(">", "big_").replace("|", "")
        valid(f"descr_{name}", array(code, (2, 2), width=width_of(code)))
    for code in ("M8[ns]", "m8[25us]", "M8", "m8[D]", "M8[as]"):
        for mark in "<>":
            valid(f"time_{re.sub('[^a-zA-Z0-9]', '_', code)}_{'big' if mark == '>' else 'little'}",
                  array(mark + code, (3,), width=8))
    nested = [("x", "<f4"), ("y", ">i2", (2, 2)), ("", "|V3"), ("", "|V2"), (("title", "n"), [("a", "|u1"), ("b'\"\n", "<c8")])]
    valid("structure", file(header(nested, (2,)), filled(2 * width_of(nested))))
    valid("structure_empty", file(header([], (3,)), b""))
    valid("structure_of_one", file(header([("a", "<f4", 3)], (2,)), filled(24)))
    valid("structure_of_lists", file(header([["a", "<f4"], ["b", "|u1", (2,)]], (2,)), filled(12)))
    valid("structure_utf8", file(header([("日本", "<f4"), ("\U0001f600", "|u1")], (2,)), filled(10), major=3))
    many = [(f"field_{i:04}", "|u1") for i in range(3000)]
    valid("structure_of_many", file(header(many, (1,)), filled(3000), major=2))
    sub = described(array("<f4", (2, 3)))
    valid("subarray", file(header(("<f4", (3,)), (2,)), filled(24)),
          tensor={**sub, "attrs": {"numpy.descr": "('<f4', (3,))"}})
    valid("trailing", array("<f4", (2, 3)) + b"more", warnings=1)
    valid("second_array", array("<f4", (2, 3)) + array("<f4", (1,)), warnings=1)
    lenient = described(array("<f4", (2, 3)))
    text = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), 'descr': '<f4'}"
    valid("lenient_key_twice", file(text, filled(24)), warnings=1, lenient=True, canonical=False)
    data = array("<f4", (2, 3))
    valid("lenient_cut", data[:-1], warnings=1, lenient=True, tensor={**lenient, "sha256": None})
    valid("lenient_comma", file(header("<f4,2i2", (3,)), filled(24)), warnings=1, lenient=True,
          tensor={"name": "arr_0", "dtype": "u8", "shape": [3, 8], "order": "C",
                  "attrs": {"numpy.descr": "[('f0', '<f4'), ('f1', '<i2', 2)]"},
                  "sha256": hashlib.sha256(filled(24)).hexdigest()})
    valid("lenient_objects", file(header("|O", (2,)), b"\x80\x04N."), warnings=1, lenient=True,
          tensor={"name": "arr_0", "dtype": "u8", "shape": [2], "nbytes": 0, "attrs": {"numpy.descr": "|O"}})


def make_odd():
    plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    odd("odd_unpadded", plain)
    odd("odd_padded_to_16", plain, align=16)
    odd("odd_without_growth", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3" + ", 1" * 15 + "), }", align=64)
    odd("odd_padded_to_4096", plain, align=4096)
    odd("odd_compact", "{'descr':'<f4','fortran_order':False,'shape':(2,3)}")
    odd("odd_order", "{'shape': (2, 3), 'descr': '<f4', 'fortran_order': False}")
    odd("odd_longs", "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3 L), }")
    odd("odd_longs_major_2", "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }", major=2)
    odd("odd_quotes", '{"descr": u"<f4", \'\'\'fortran_order\'\'\': False, R"shape": (2, 3)}')
    odd("odd_joined", "{'des' 'cr': '<' \"f4\", 'fortran_order': False, 'shape': (2, 3)}")
    odd("odd_escapes", "{'\\x64\\145scr': '\\u003cf\\U00000034', 'fortran_order': False, 'shape': (2, 3)}")
    odd("odd_lines", "\n{ 'descr' : '<f4' , # a comment\n\t'fortran_order'\n:\r\nFalse, 'shape': (2,\\\n3\f)\n}\n\n# the end")
    odd("odd_brackets", "(({('descr'): ('<f4'), 'fortran_order': (False), 'shape': ((2), (3))}))")
    odd("odd_numbers", "{'descr': '<f4', 'fortran_order': False, 'shape': (+2, 0x3, 0b1, 0o1, 1_0 , 00), }", b"")
    odd("odd_fortran_1d", "{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }")
    odd("odd_fortran_scalar", "{'descr': '<f4', 'fortran_order': True, 'shape': (), }", filled(4))
    odd("odd_fortran_empty", "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 0, 3), }", b"")
    odd("odd_minus_0", "{'descr': '<f4', 'fortran_order': False, 'shape': (-0,), }", b"")
    odd("odd_latin1", "{'descr': [('caf\xe9', '<f4')], 'fortran_order': False, 'shape': (6,)}")
    for i, (spelled, descr) in enumerate([
            ("f4", "<f4"), ("|f4", "<f4"), ("=f4", "<f4"), ("f", "<f4"), (">f", ">f4"), ("float32", "<f4"), ("single", "<f4"),
            ("<u1", "|u1"), (">b1", "|b1"), ("?", "|b1"), ("B", "|u1"), ("b", "|i1"), ("h", "<i2"), ("H", "<u2"), ("i", "<i4"),
            ("I", "<u4"), ("l", "<i8"), (">L", ">u8"), ("q", "<i8"), ("Q", "<u8"), ("p", "<i8"), ("e", "<f2"), ("d", "<f8"),
            ("F", "<c8"), ("D", "<c16"), ("int8", "|i1"), ("uint16", "<u2"), ("int64", "<i8"), ("float16", "<f2"),
            ("half", "<f2"), ("double", "<f8"), ("float", "<f8"), ("complex64", "<c8"), ("complex128", "<c16"), ("g", "<f16"),
            (">G", ">c32"), ("longdouble", "<f16"), ("S3", "|S3"), ("a3", "|S3"), ("<S3", "|S3"), ("S", "|S0"), ("U2", "<U2"),
            ("V4", "|V4"), (">V2", "|V2"), ("datetime64[ms]", "<M8[ms]"), ("timedelta64[2h]", "<m8[2h]"),
            ("M8[1s]", "<M8[s]"), ("M8[generic]", "<M8"), ("bfloat16", "<V2"), ("float4_e2m1fn", "<V1"), ("int4", "<V1")]):
        odd(f"spelled_{i:02}", f"{{'descr': '{spelled}', 'fortran_order': False, 'shape': (1,), }}", bytes([1, 0] * 16) if
            descr == "|b1" else filled(32), same_as=descr, warnings=told(descr)[1] < 32)
    for name in ("f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz"):
        spelled = name.replace("f8", "float8")
        valid(f"named_{name}", file(header(spelled, (3,)), filled(3)), tensor={
            "name": "arr_0", "dtype": name, "shape": [3], "order": "C", "attrs": {"numpy.descr": spelled},
            "sha256": hashlib.sha256(filled(3)).hexdigest()})


# ---------------------------------------------------------------------- reject

def reject_cuts():
    data = array("<f4", (2, 3))
    for n, rest in [(1, 7), (5, 3), (7, 1), (8, 2), (9, 1), (10, 118), (60, 68), (127, 1)]:
        reject(f"cut_{n:03}", data[:n], SHORT, n, missing(rest))
    for n in (128, 129, 151):
        reject(f"cut_{n}", data[:n], SHORT, n, missing(152 - n), "opens")
    data = array("<f4", (2,), major=2)
    reject("cut_major_2", data[:11], SHORT, 11, "1 byte is missing")
    data = array("|S3", (2, 4), True)
    reject("cut_fortran_text", data[:-5], SHORT, len(data) - 5, "5 bytes are missing", "opens")


def reject_heads():
    good = header("<f4", (2, 3))
    reject("magic", b"\x92NUMPY" + array("<f4", (1,))[6:], BAD, 0, "does not begin with")
    reject("magic_lower.npy", b"\x93numpy" + array("<f4", (1,))[6:], BAD, 0, "does not begin with")
    for major, minor in [(0, 0), (1, 1), (2, 1), (4, 0), (255, 255)]:
        reject(f"version_{major}_{minor}", MAGIC + bytes([major, minor]) + array("<f4", (2, 3))[8:], UNSUPPORTED, 6,
               f"version {major}.{minor}")
    reject("length_0", file(good, bytes(24), length=0), BAD, 10, "ends where a value")
    reject("length_ffff", file(good, bytes(24), length=65535), SHORT, 152, missing(65535 - 142))
    reject("length_2_gib", file(good, bytes(24), 2, length=2 ** 31), LIMIT, 12, "2147483648 bytes")
    reject("length_max", file(good, bytes(24), 3, length=2 ** 32 - 1), LIMIT, 12, "4294967295 bytes")
    reject("length_1_mib", file(good, bytes(24), 2, length=2 ** 20 + 1), LIMIT, 12, "1048577 bytes")
    reject("length_short", file(good, bytes(24), length=40), BAD, 50, "ends where")
    reject("length_long", file(good, bytes(24), length=120), BAD, 128, "0x00")
    reject("pickle", b"\x80\x04\x95\x05\0\0\0\0\0\0\0cposix\nsystem\n.", UNSUPPORTED, 0, "pickle")


def reject_literals():
    def text(descr="'<f4'", fortran="False", shape="(2, 3)"):
        return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}}}"
    good = text()
    for name, bad, where, message in [
            ("list", f"[{good}]", 0, "not a dict"), ("tuple", f"({good},)", 0, "not a dict"), ("bare", "", 0, "ends where a value"),
            ("text", "'descr'", 0, "not a dict"), ("set", "{'descr'}", "}", "':'"), ("behind", good + " x", " x", "'x' stands"),
            ("comma_behind", good + ",", "}", "','"), ("two_dicts", good + good, "}{", "'{' stands"),
            ("not_closed", good[:-1], len(good) - 1, "ends where"), ("no_comma", good.replace(",", "", 1), 31, "stands"),
            ("no_colon", good.replace(":", "", 1), 14, "':'"), ("two_commas", good.replace(",", ",,", 1), ",'fortran"[:1], ""),
            ("nul", good + "\0", len(good), "0x00"), ("nul_inside", text("'<f4\0'"), "\0", "0x00"),
            ("high_byte", good + "\xe9", len(good), "0xe9"), ("control", "{\x01}", 1, "0x01"),
            ("call", text("__import__('os').system('id')"), "__import__", "the name '__import__'"),
            ("name", text("x"), "x,", "the name 'x'"), ("none", text("None"), "None", "the name 'None'"),
            ("lambda", text("lambda: 0"), "lambda", "the name 'lambda'"), ("f_string", text("f'<f4'"), "f'<f4'", "not plain text"),
            ("bytes", text("b'<f4'"), "b'<f4'", "not plain text"), ("raw_bytes", text("rb'<f4'"), "rb'<f4'", "not plain text"),
            ("attribute", text("'<f4'.x"), ".x", "'.' stands"), ("index", text("'<f4'[0]"), "[0]", "'[' stands"),
            ("string_open", "{'descr", 1, "does not end"), ("string_line", "{'des\ncr': 1}", 1, "does not end"),
            ("triple_open", "{'''descr''", 1, "does not end"), ("escape_short", text("'\\x3'"), "\\x3", "too few digits"),
            ("escape_far", text("'\\U00110000'"), "\\U", "not a valid character"),
            ("escape_surrogate", text("'\\ud800'"), "\\ud800", "not a valid character")]:
        if name == "two_commas":
            wrong("literal_two_commas", bad, bad.index(",,") + 1, "',' stands")
        elif name == "comma_behind":
            wrong("literal_comma_behind", bad, len(bad) - 1, "',' stands")
        else:
            wrong(f"literal_{name}", bad, where, message, skip=1 if name in ("behind", "two_dicts") else 0)
    wrong("literal_unicode_name", text("'\\N{LESS-THAN SIGN}f4'"), "\\N", "Unicode name", UNSUPPORTED)
    wrong("literal_deep", text("[" * 3000 + "]" * 3000), 10 + 31, "deeper than 32 levels", LIMIT)
    wrong("literal_deep_brackets", "(" * 100 + good + ")" * 100, 32, "deeper than 32 levels", LIMIT)
    raw = text("[('\xe9', '<f4')]").encode("latin1")
    wrong("literal_not_utf8", raw, raw.index(b"\xe9"), "not UTF-8", major=3)
    wrong("longs_major_3", text(shape="(2L, 3)"), "2L", "not a whole number", major=3)
    for name, shape, where, message in [
            ("number", "6", "6", "not a tuple"), ("brackets", "(6)", "6", "not a tuple"), ("list", "[2, 3]", "[2", "not a tuple"),
            ("text", "'(2,)'", "'(2", "not a tuple"), ("float", "(2.0, 3)", "2.0", "not a whole number"),
            ("exponent", "(1e1,)", "1e1", "not a whole number"), ("complex", "(2j,)", "2j", "not a whole number"),
            ("bool", "(True, 6)", "True, 6", "not a whole number"), ("texts", "('2',)", "'2'", "not a whole number"),
            ("negative", "(-2, -3)", "-2", "negative"), ("minus_one", "(-1,)", "-1", "negative"),
            ("two_signs", "(--2,)", "-2", "'-' stands"), ("sum", "(1+1,)", "+1", "'+' stands"), ("octal", "(007,)", "007", "begins with 0"),
            ("small_l", "(2l,)", "2l", "not a whole number"), ("underscores", "(1__0,)", "1__0", "not a whole number"),
            ("underscore_last", "(1_,)", "1_,", "not a whole number"), ("comma_only", "(,)", ",)", "',' stands"),
            ("hex_without_digits", "(0x,)", ",)", "a digit"), ("beyond_64_bits", f"({2 ** 64},)", str(2 ** 64), "beyond 64 bits"),
            ("beyond_63_bits", f"({2 ** 63}, 0)", str(2 ** 63), "beyond 2^63"),
            ("product_wraps", f"({2 ** 32}, {2 ** 32}, 2)", f"({2 ** 32}", "more than 2^63"),
            ("product_wraps_small", f"({2 ** 62}, 4, 1)", f"({2 ** 62}", "more than 2^63"),
            ("product_before_0", f"({2 ** 62}, 4, 0)", f"({2 ** 62}", "more than 2^63"),
            ("bytes_wrap", f"({2 ** 62},)", f"({2 ** 62}", "more than 2^63")]:
        bad = text(shape=shape)
        wrong(f"shape_{name}", bad, bad.index(where, bad.index("'shape'") + 8), message)
    wrong("shape_rank_65", text(shape="(" + "1, " * 65 + ")"), "(1", "65 dimensions", LIMIT)
    reject("shape_terabytes", file(text(shape=f"({2 ** 40},)"), b"", align=0), SHORT, len(file(text(shape=f"({2 ** 40},)"), align=0)),
           "missing", "opens")
    for name, fortran in [("zero", "0"), ("text", "'False'"), ("tuple", "(False,)")]:
        wrong(f"fortran_{name}", text(fortran=fortran), fortran, "neither True nor False")
    wrong("fortran_lower", text(fortran="false"), "false", "the name 'false'")


def reject_keys():
    wrong("key_missing", "{'descr': '<f4', 'shape': (2, 3)}", 0, "no 'fortran_order'")
    wrong("key_none", "{}", 0, "no 'descr'")
    wrong("key_more", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}", "'x'", "unknown key: 'x'")
    wrong("key_number", "{1: 2}", "1", "not a text")
    wrong("key_case", "{'Descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", "'Descr'", "unknown key: 'Descr'")
    text = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), 'descr': '<f4'}"
    wrong("key_twice", text, text.rindex("'descr'"), "'descr' twice", lenient="opens")
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), '\\x73hape': (2, 3)}"
    wrong("key_twice_escaped", text, text.rindex("'\\x73"), "'shape' twice", lenient="opens")


def reject_types():
    def descr(name, spelled, where, message, code=BAD, **more):
        wrong(f"descr_{name}", f"{{'descr': {spelled}, 'fortran_order': False, 'shape': (2, 3)}}", where, message, code, **more)
    for i, spelled in enumerate(["<f3", "<f4 ", "", "<", "<<f4", "<float32", "x", "<i16", "b2", "S-1", "S1x", "M8[xs]", "M8[]", "M8[ns",
                                 "M8[0s]", "M4[s]", "<datetime64[s]", "f1", ">f1", "S2147483648", "U536870912", "<bfloat16",
                                 "(2,)f4", "f4,", ",f4", "f4;i4", "z" * 300]):
        descr(f"unknown_{i:02}", repr(spelled), 10, "is not known", UNSUPPORTED)
    descr("comma", "'f4,i4'", "'f4,i4'", "a structure in the short form", lenient="opens")
    descr("times", "'3f4'", "'3f4'", "a structure in the short form", lenient="opens")
    descr("number", "4", "4,", "not a text, a list of fields, or a pair")
    descr("dict", "{'names': ['a'], 'formats': ['<f4']}", "{'names'", "not a text, a list of fields, or a pair")
    descr("tuple_of_one", "('<f4',)", "('<f4',)", "not a text, a list of fields, or a pair")
    descr("pair_of_texts", "('<f4', '<f4')", 18, "not a tuple")
    descr("pair_negative", "('<f4', (-1,))", "-1", "not a number below 2^31")
    descr("pair_large", "('<f4', (65536, 65536))", "65536))", "more than 2^31 bytes")
    descr("pair_rank", "('|u1', (" + "1, " * 65 + "))", 10 + 8 + 3 * 64 + 1, "more than 64 dimensions", LIMIT)
    descr("field_dict", "[{'a': '<f4'}]", "{'a'", "not a tuple of a name and a type")
    descr("field_text", "['<f4']", "'<f4'", "not a tuple of a name and a type")
    descr("field_alone", "[('a',)]", "('a'", "not a tuple of a name and a type")
    descr("field_number", "[(1, '<f4')]", "(1,", "not a tuple of a name and a type")
    descr("field_unknown", "[('a', '<f3')]", "'<f3'", "'<f3' is not known", UNSUPPORTED)
    descr("field_twice", "[('a', '<f4'), ('b', '<f4'), ('a', '<i4')]", "'a', '<i4'", "'a' occurs twice")
    descr("field_title_twice", "[(('a', 'b'), '<f4'), ('a', '<i4')]", "'a', '<i4'", "'a' occurs twice")
    descr("field_large", "[('a', '|S2147483647'), ('b', '|u1')]", "('b'", "more than 2^31 bytes")
    pickled = b"\x80\x04\x8c\x08builtins\x94\x8c\x04exec\x94\x93\x94\x8c\x04pass\x94\x85\x94R."
    reject("object", file(header("|O", (1,)), pickled), UNSUPPORTED, 128, "'builtins.exec'", "opens")
    reject("object_old", file(header("O", (1,)), b"cos\nsystem\n(S'id'\ntR."), UNSUPPORTED, 128, "'os.system'", "opens")
    reject("object_field", file(header([("a", "<i4"), ("b", "|O")], (1,)), pickled), UNSUPPORTED, 128, "object array: a pickle", "opens")
    reject("object_without_pickle", file(header("|O", (1,))), UNSUPPORTED, 128, "object array: a pickle", "opens")
    data = array("|b1", (3,))[:-1] + b"\2"
    reject("bool_of_2", data, BAD, len(data) - 1, "bool", "opens")  # verify reports it


if __name__ == "__main__":
    clean()
    make_valid()
    make_odd()
    reject_cuts()
    reject_heads()
    reject_literals()
    reject_keys()
    reject_types()
    (HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
