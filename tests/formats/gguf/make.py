#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of GGUF, and the expected results (Python's own library only).

They are made from the description of the format: versions 1 to 3, both byte orders, all types of values and
tensors, unusual places, sets of files; and all files that must be refused, with the offset of the fault.
"""
import base64
import hashlib
import json
import math
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
expect = {"valid": {}, "reject": {}}

# Numbers of value types, and how Python packs them.
VALUES = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"),
          "f32": (6, "f"), "bool": (7, "B"), "u64": (10, "Q"), "i64": (11, "q"), "f64": (12, "d")}
# Numbers of tensor types: elements and bytes of a block; fields wider than a byte (where, width, how many).
TYPES = {"f32": (0, 1, 4, []), "f16": (1, 1, 2, []), "q4_0": (2, 32, 18, [(0, 2, 1)]),
         "q4_1": (3, 32, 20, [(0, 2, 2)]), "q5_0": (6, 32, 22, [(0, 2, 1), (2, 4, 1)]),
         "q5_1": (7, 32, 24, [(0, 2, 2), (4, 4, 1)]), "q8_0": (8, 32, 34, [(0, 2, 1)]),
         "q8_1": (9, 32, 36, [(0, 2, 2)]), "q2_k": (10, 256, 84, [(80, 2, 2)]), "q3_k": (11, 256, 110, [(108, 2, 1)]),
         "q4_k": (12, 256, 144, [(0, 2, 2)]), "q5_k": (13, 256, 176, [(0, 2, 2)]),
         "q6_k": (14, 256, 210, [(208, 2, 1)]), "q8_k": (15, 256, 292, [(0, 4, 1), (260, 2, 16)]),
         "iq2_xxs": (16, 256, 66, None), "iq2_xs": (17, 256, 74, None), "iq3_xxs": (18, 256, 98, None),
         "iq1_s": (19, 256, 50, None), "iq4_nl": (20, 32, 18, [(0, 2, 1)]), "iq3_s": (21, 256, 110, None),
         "iq2_s": (22, 256, 82, None), "iq4_xs": (23, 256, 136, [(0, 2, 2)]), "i8": (24, 1, 1, []),
         "i16": (25, 1, 2, []), "i32": (26, 1, 4, []), "i64": (27, 1, 8, []), "f64": (28, 1, 8, []),
         "iq1_m": (29, 256, 56, None), "bf16": (30, 1, 2, []), "tq1_0": (34, 256, 54, [(52, 2, 1)]),
         "tq2_0": (35, 256, 66, [(64, 2, 1)]), "mxfp4": (39, 32, 17, []), "nvfp4": (40, 64, 36, []),
         "q1_0": (41, 128, 18, [(0, 2, 1)]), "q2_0": (42, 64, 18, [(0, 2, 1)])}
BLOCKS = [name for name, (_, per, _, _) in TYPES.items() if per > 1]


# ------------------------------------------------------------------- composing

class Raw(bytes):
    """A value whose bytes are given, with its type."""


def texts(s):
    return s if isinstance(s, bytes) else s.encode()


class Form:
    """How numbers are written: version and byte order."""

    def __init__(self, version=3, big=False):
        self.version, self.mark = version, ">" if big else "<"

    def pack(self, code, *values):
        return struct.pack(self.mark + code, *values)

    def length(self, n):
        return self.pack("I" if self.version == 1 else "Q", n)

    def text(self, s):
        return self.length(len(texts(s))) + texts(s)

    def array(self, kind, items):
        """The bytes after the type of an array. Items of kind "array" are (kind, items)."""
        number = {"str": 8, "array": 9}.get(kind) if kind in ("str", "array") else VALUES[kind][0]
        body = b"".join(self.text(i) if kind == "str" else self.array(*i) if kind == "array"
                        else self.pack(VALUES[kind][1], i) for i in items)
        return self.pack("I", number) + self.length(len(items)) + body

    def value(self, kind, value):
        if isinstance(value, Raw):
            return bytes(value)
        if kind == "str":
            return self.pack("I", 8) + self.text(value)
        if kind == "array":
            return self.pack("I", 9) + self.array(*value)
        number, code = VALUES[kind]
        return self.pack("I", number) + self.pack(code, value)


def turn(data, kind, big):
    """Reverses the bytes of little-endian elements or blocks, as a big-endian file has them; and
    back."""
    _, per, size, fields = TYPES[kind]
    if not big or fields is None:
        return data
    fields = [(0, size, 1)] if per == 1 else fields
    out = bytearray(data)
    for at in range(0, len(data), size):
        for where, width, count in fields:
            for k in range(count):
                lo = at + where + k * width
                out[lo:lo + width] = out[lo:lo + width][::-1]
    return bytes(out)


def size_of(kind, shape):
    _, per, size, _ = TYPES[kind]
    return math.prod(shape) // per * size


def filled(n, seed=5):
    return bytes((seed + 7 * i) % 251 for i in range(n))


ARCHITECTURE = ("general.architecture", "str", "llama")


def file(keys=(ARCHITECTURE,), tensors=(), version=3, big=False, align=32, offsets=None, tail=b"", pad=b"\0",
         end=True, counts=None, blocks_big=True):
    """keys: (key, kind, value); tensors: (name, kind, shape, data) with little-endian data."""
    form = Form(version, big)
    nt, nk = counts or (len(tensors), len(keys))
    head = b"GGUF" + form.pack("I", version) + form.length(nt) + form.length(nk)
    for key, kind, value in keys:
        head += form.text(key) + form.value(kind, value)
    body, at = b"", 0
    for i, (name, kind, shape, data) in enumerate(tensors):
        where = offsets[i] if offsets else at
        number = TYPES[kind][0] if isinstance(kind, str) else kind
        head += form.text(name) + form.pack("I", len(shape)) + b"".join(form.length(d) for d in reversed(shape))
        head += form.pack("I", number) + form.pack("Q", where)
        stored = turn(data, kind, big and (blocks_big or TYPES[kind][1] == 1)) if isinstance(kind, str) else data
        if offsets is not None:
            body = body.ljust(where + len(stored), b"\0")
            body = body[:where] + stored + body[where + len(stored):]
        else:
            body += stored
            body += pad * (-len(body) % align)
        at = len(body)
    head += pad * (-len(head) % align)
    if offsets is not None and end:
        body += b"\0" * (-len(body) % align)
    whole = head + body
    if not end:
        whole = whole[:len(whole) - (len(body) - len(body.rstrip(b"\0")) if body else 0)]
    return whole + tail


def tensor(name, kind, shape, seed=5):
    return name, kind, shape, filled(size_of(kind, shape), seed)


# ------------------------------------------------------------------- expected results

def shown(kind, value):
    if kind == "array":
        return [shown(value[0], v) for v in value[1]]
    if kind == "bool":
        return bool(value)
    if kind in ("f32", "f64"):
        value = float(value)  # shown with the fewest digits that distinguish it
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"$bytes": base64.b64encode(value).decode()}
    return value


def told(name, kind, shape, data, **more):
    per = TYPES[kind][1]
    digest = hashlib.sha256(data).hexdigest()
    entry = {"name": name.decode() if isinstance(name, bytes) else name, "dtype": kind if per == 1 else "u8",
             "shape": list(shape), "order": "C", "nbytes": len(data)}
    if per == 1:
        entry.update(layout="dense", sha256=digest)
    else:
        entry.update(layout=f"gguf.{kind}/1", parts={"data": digest},
                     attrs={"elems_per_block": per, "block_bytes": TYPES[kind][2]})
    return {**entry, **more}


def valid(name, data, keys=(ARCHITECTURE,), tensors=(), warnings=0, attrs=None, version="3", **more):
    name += ".gguf"
    path = HERE / "valid" / name
    path.write_bytes(data)
    said = {f"gguf.{key}": shown(kind, value) for key, kind, value in keys if not isinstance(value, Raw)}
    expect["valid"][name] = {"format": "gguf", "version": version, "warnings": warnings,
                             "attrs": {**said, **(attrs or {})}, "tensors": [told(*t) for t in tensors], **more}


def plain(name, keys=(ARCHITECTURE,), tensors=(), warnings=0, attrs=None, expected=None, **how):
    version = str(how.get("version", 3))
    valid(name, file(keys, tensors, **how), keys, expected if expected is not None else tensors, warnings, attrs,
          version)


def reject(name, data, code, offset, message, lenient="rejects"):
    name += ".gguf"
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}


def at_of(data, piece, skip=0):
    return data.index(texts(piece)) + skip


# ----------------------------------------------------------------------- files

W = tensor("w", "f32", [2, 3])
V = tensor("v", "f16", [5], 9)
ALL_KEYS = [ARCHITECTURE] + [(f"t.{kind}", kind, value) for kind, value in
                             (("u8", 255), ("i8", -128), ("u16", 65535), ("i16", -32768), ("u32", 2**32 - 1),
                              ("i32", -2**31), ("f32", 0.1), ("u64", 2**64 - 1), ("i64", -2**63), ("f64", 0.1))]
ALL_KEYS += [("t.yes", "bool", 1), ("t.no", "bool", 0), ("t.text", "str", "zwölf Boxkämpfer"), ("t.empty", "str", "")]
ARRAYS = [ARCHITECTURE] + [(f"a.{kind}", "array", (kind, [1, 0, 2] if kind != "bool" else [1, 0, 1]))
                           for kind in VALUES]
ARRAYS += [("a.str", "array", ("str", ["a", "", "\0x", "ĉ"]))]
ARRAYS += [(f"e.{kind}", "array", (kind, [])) for kind in [*VALUES, "str", "array"]]
ARRAYS += [("n.two", "array", ("array", [("i32", [1, 2]), ("i32", []), ("i32", [3])])),
           ("n.mixed", "array", ("array", [("u8", [1]), ("str", ["x"]), ("bool", []), ("array", [("f64", [])])]))]


def valid_files():
    plain("nothing", keys=[])
    plain("no_tensors")
    plain("one", tensors=[W])
    plain("two", tensors=[W, V])
    plain("keys", keys=ALL_KEYS, tensors=[W])
    plain("arrays", keys=ARRAYS, tensors=[W])
    plain("floats", keys=[("f.nan", "f32", math.nan), ("f.inf", "f64", math.inf), ("f.nz", "f32", -0.0)])
    plain("texts", keys=[ARCHITECTURE, ("s.bytes", "str", b"ok \xc3("), ("s.nul", "str", "a\0b"),
                         ("s.list", "array", ("str", [b"\xf0\x9f", "fine"]))])
    plain("odd_keys", keys=[("Odd Key", "u32", 1), ("ключ", "u32", 2), ("nul\0", "u8", 3)], warnings=2)
    plain("dense", tensors=[tensor(k, k, [3, 2], i) for i, k in enumerate(TYPES) if TYPES[k][1] == 1])
    plain("blocks", tensors=[tensor(k, k, [2, TYPES[k][1]], i) for i, k in enumerate(BLOCKS)])
    plain("shapes", tensors=[tensor("s", "f32", []), tensor("r1", "i8", [1]), tensor("r4", "i8", [1, 2, 1, 3]),
                             tensor("z", "f32", [0, 3]), tensor("zz", "q4_0", [0, 32]), tensor("e", "i16", [2])])
    for align in (8, 64, 1024):
        plain(f"align_{align}", keys=[ARCHITECTURE, ("general.alignment", "u32", align)], tensors=[W, V], align=align)
    plain("align_said", keys=[("general.alignment", "u32", 32)], tensors=[W])
    plain("align_4", keys=[("general.alignment", "u32", 4)], tensors=[W], align=4, warnings=1)
    plain("names", tensors=[tensor(n, "i8", [1], i) for i, n in enumerate(
        ["a b", "../x", "w#data", "w[0]", "tab\t", "ключ", "x" * 63])])
    plain("name_64", tensors=[tensor("x" * 64, "i8", [1])], warnings=1)
    plain("name_empty", tensors=[tensor("", "i8", [1])], warnings=1)
    for version in (1, 2):
        plain(f"version_{version}", keys=ALL_KEYS + ARRAYS[1:], tensors=[W, V, tensor("q", "q8_0", [64])],
              version=version, attrs={"gguf_file.version": version})
    plain("big", keys=ALL_KEYS + ARRAYS[1:], big=True, attrs={"gguf_file.endian": "big"},
          tensors=[tensor(k, k, [2, TYPES[k][1]], i) for i, k in enumerate(TYPES) if TYPES[k][3] is not None])
    plain("big_1", keys=ALL_KEYS, tensors=[W, V], big=True, version=1,
          attrs={"gguf_file.endian": "big", "gguf_file.version": 1})
    plain("gap", tensors=[W, V], offsets=[0, 128], warnings=1, attrs={"gguf_file.offsets": [0, 128]})
    plain("reversed", tensors=[W, V], offsets=[32, 0], warnings=1, attrs={"gguf_file.offsets": [32, 0]})
    plain("unpadded", tensors=[W, ("v", "f16", [5], bytes(range(1, 11)))], end=False, warnings=1,
          attrs={"gguf_file.end": "unpadded"})
    plain("padding_aa", tensors=[V, W], pad=b"\xaa", warnings=1, attrs={"gguf_file.padding": "not zero"})
    plain("zeros_behind", tensors=[W], tail=bytes(64), warnings=1)
    plain("bytes_behind", tensors=[W], tail=b"behind" + bytes(26), warnings=1)
    plain("reserve", keys=[ARCHITECTURE, ("tenfold.reserve", "array", Raw(struct.pack("<IIQ", 9, 0, 50) + bytes(50)))],
          tensors=[W])
    unpadded = file()
    form = Form()
    cut = len(b"GGUF" + form.pack("I", 3) + bytes(16) + form.text(ARCHITECTURE[0]) + form.value(*ARCHITECTURE[1:]))
    valid("no_tensors_unpadded", unpadded[:cut], warnings=1, attrs={"gguf_file.end": "unpadded"})
    # A file that says that it is one of several opens alone, and its attributes say so.
    plain("shard_2", keys=[("split.no", "u16", 1), ("split.count", "u16", 3), ("split.tensors.count", "i32", 7)],
          tensors=[W], warnings=1)
    plain("merged", keys=[ARCHITECTURE, ("split.no", "u16", 0), ("split.count", "u16", 0)], tensors=[W])


def reject_cuts():
    whole = file([ARCHITECTURE, ("a.b", "array", ("str", ["x", "yy"]))], [W, V])
    data = len(whole) - 64
    for at in (4, 7, 8, 20, 23, 24, 40, 70, 100):
        reject(f"cut_{at:03}", whole[:at], SHORT, None, "cut short?")
    for at in (data - 1, data, data + 23, len(whole) - 32 + 9):
        reject(f"cut_{at:03}", whole[:at], SHORT, at, "missing", "opens")


def reject_header():
    whole = file(tensors=[W])
    for version in (0, 4, 0x0300, 0x00040000):
        reject(f"version_{version:x}", whole[:4] + struct.pack("<I", version) + whole[8:], UNSUPPORTED, 4, "version")
    for name, n in (("2_24", 1 << 24), ("2_40", 1 << 40), ("2_63", 1 << 63), ("2_64_less_1", 2**64 - 1)):
        code = SHORT if n < 1 << 32 else BAD
        reject(f"tensors_{name}", file(tensors=[W], counts=(n, 1)), code, 8, "tensors")
        reject(f"keys_{name}", file(tensors=[W], counts=(1, n)), code, 16, "keys")


def reject_keys():
    def key(name, keys, code, where, message, lenient="rejects", **more):
        data = file(keys, [W], **more)
        at = where if isinstance(where, int) else at_of(data, where)
        reject(name, data, code, at, message, lenient)

    def raw(number, rest=b""):
        return Raw(struct.pack("<I", number) + rest)

    key("key_twice", [("a.b", "u8", 1), ("a.b", "u8", 2)], BAD, 24 + 8 + 3 + 5, "occurs twice", "opens")
    key("key_empty", [("", "u8", 1), ARCHITECTURE], BAD, 24, "empty")
    key("key_not_utf8", [(b"a\xff", "u8", 1)], BAD, 24, "not UTF-8", "opens")
    key("key_65536", [("k" * 65536, "u8", 1)], BAD, 24, "65536 bytes", "opens")
    key("bool_2", [("a", "u8", raw(7, b"\2"))], BAD, 24 + 8 + 1 + 4, "not 0 or 1", "opens")
    for number in (13, 255, 2**32 - 1):
        key(f"type_{number}", [("abc", "u8", raw(number, bytes(8)))], BAD, 24 + 8 + 3, f"type {number}")
        for n in (0, 1):
            key(f"array_of_{number}_{n}", [("abc", "u8", raw(9, struct.pack("<IQ", number, n) + bytes(8 * n)))], BAD,
                24 + 8 + 3 + 4, f"type {number}")
    for kind, number, n in (("u8", 0, 2**63), ("u64", 10, 2**61), ("str", 8, 2**62), ("array", 9, 2**60),
                            ("u32", 4, 2**24)):
        key(f"array_{kind}_{n.bit_length() - 1}", [("abc", "u8", raw(9, struct.pack("<IQ", number, n) + bytes(16)))],
            SHORT if n < 2**32 else BAD, 24 + 8 + 3 + 8, "items of an array")
    deep = struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 70 + struct.pack("<IQ", 0, 0)
    key("array_deep", [("abc", "u8", Raw(deep))], LIMIT, 24 + 8 + 3 + 4 + 12 * 64, "deep")
    for n in (2**31, 2**63, 2**64 - 1):
        key(f"text_{n.bit_length()}", [("abc", "u8", raw(8, struct.pack("<Q", n) + b"text"))], BAD, 24 + 8 + 3 + 4,
            "bytes")
    for value in (0, 3, 48):
        key(f"align_{value}", [("general.alignment", "u32", value)], BAD, 24 + 8 + 17, "power of two")
    key("align_u64", [("general.alignment", "u64", 32)], BAD, 24 + 8 + 17, "u32")
    key("align_text", [("general.alignment", "str", "32")], BAD, 24 + 8 + 17, "u32")
    key("reserve_text", [("tenfold.reserve", "array", ("str", []))], BAD, 24 + 8 + 15 + 4, "array of u8")


def reject_tensors():
    entry = 24 + 8 + 20 + 4 + 8 + 5  # after the only key

    def one(name, kind, shape, code, at, message, lenient="rejects", n=64, **more):
        reject(name, file(tensors=[("w", kind, shape, bytes(n))], **more), code, at, message, lenient)

    for number in (4, 5, 31, 33, 36, 38, 43, 99, 140, 2**32 - 1):
        one(f"tensor_type_{number}", number, [4], UNSUPPORTED, entry + 8 + 1 + 4 + 8, f"type {number}", "opens")
    one("rank_5", "i8", [1, 1, 1, 1, 64], BAD, entry + 9, "5 dimensions", "opens")
    one("row_33", "q4_0", [33], BAD, entry, "whole blocks")
    one("row_scalar", "q4_0", [], BAD, entry, "whole blocks")
    one("row_128", "q4_k", [2, 128], BAD, entry, "whole blocks")
    one("dims_2_32", "f32", [2**32, 2**32], BAD, entry, "2^63")
    one("dims_2_62", "f32", [4, 2**62], BAD, entry, "2^63")
    one("dims_zero_does_not_mend", "f32", [2**32, 2**32, 0], BAD, entry, "2^63")
    one("dim_2_63", "f32", [2**63], BAD, entry + 13, "2^63")
    one("bytes_2_63", "f64", [2**61], BAD, entry, "2^63")
    one("larger_than_file", "f32", [1000], SHORT, None, "missing", "opens")
    one("offset_16", "f32", [4], BAD, entry, "multiple of the alignment, 32", "opens", offsets=[16])
    twice = [("w", "i8", [32], bytes(32)), ("w", "i8", [32], bytes(32))]
    reject("name_twice", file(tensors=twice), BAD, entry + 8 + 1 + 4 + 8 + 12, "occurs twice", "opens")
    shared = file(tensors=[("w", "i8", [64], bytes(64)), ("v", "i8", [32], bytes(32))], offsets=[0, 32])
    reject("overlap", shared, BAD, len(shared) - 32, "share bytes", "opens")
    for name, where in (("past_end", 2**20), ("wraps", 2**64 - 32), ("beyond_2_63", 2**63)):
        data = bytearray(file(tensors=[("w", "f32", [4], bytes(16))]))
        data[entry + 25:entry + 33] = struct.pack("<Q", where)
        reject(f"offset_{name}", bytes(data), SHORT if name == "past_end" else BAD,
               len(data) if name == "past_end" else entry, "missing" if name == "past_end" else "2^63",
               "opens" if name == "past_end" else "rejects")
    big = file(tensors=[tensor("q", "q8_0", [64])], big=True)
    reject("big_cut", big[:-60], SHORT, len(big) - 60, "missing", "opens")
    reject("magic_lower", b"gguf" + bytes(60), UNSUPPORTED, 0, "")
    for magic, name in ((b"lmgg", "GGML"), (b"fmgg", "GGMF"), (b"tjgg", "GGJT"), (b"algg", "GGLA")):
        reject(f"magic_{name}", magic + bytes(60), UNSUPPORTED, 0, name)


def sets():
    """Models in several files: directories, opened by their first file."""
    def parts(n, total, numbers=None, counts=None, names=None):
        for i in range(n):
            keys = [ARCHITECTURE] if i == 0 else []
            keys += [("split.no", "u16", (numbers or range(n))[i]), ("split.count", "u16", (counts or [n] * n)[i]),
                     ("split.tensors.count", "i32", total)]
            yield file(keys, [tensor((names or "abc")[i], "f32", [2], i)])

    def put(kind, folder, files, count=None):
        there = HERE / kind / folder
        there.mkdir(exist_ok=True)
        for i, data in enumerate(files):
            (there / f"m-{i + 1:05}-of-{count or len(files):05}.gguf").write_bytes(data)
        return f"{folder}/m-00001-of-{count or len(files):05}.gguf"

    files = list(parts(3, 3))
    name = put("valid", "set", files)
    expect["valid"][name] = {"format": "gguf", "version": "3", "warnings": 0, "size": sum(map(len, files)),
                             "attrs": {"gguf.general.architecture": "llama"},
                             "tensors": [told(*tensor("abc"[i], "f32", [2], i)) for i in range(3)]}
    for folder, message, more in (("no", "split.no 1", {"numbers": [0, 0]}), ("count", "split.count 2",
                                                                             {"counts": [2, 3]}),
                                  ("total", "tensors.count", {}), ("twice", "occurs twice", {"names": "aa"})):
        name = put("reject", f"set_{folder}", list(parts(2, 9 if folder == "total" else 2, **more)))
        expect["reject"][name] = {"code": BAD, "offset": None, "message": message,
                                  "lenient": "opens" if folder == "twice" else "rejects"}


def main():
    for kind in ("valid", "reject"):
        for path in (HERE / kind).rglob("*.gguf"):
            path.unlink()
    valid_files()
    reject_cuts()
    reject_header()
    reject_keys()
    reject_tensors()
    sets()
    (HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    print(len(expect["valid"]), "valid,", len(expect["reject"]), "to be refused")


main()
