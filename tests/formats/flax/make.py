#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of Flax's msgpack, and the expected results (Python's own library only). The
packer below follows the MessagePack specification: shortest heads, floats of 64 bits."""
import hashlib
import json
import math
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT, UNSUPPORTED, LIMIT = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_EUNSUPPORTED", "TNF_ELIMIT"
expect = {"valid": {}, "reject": {}}
TYPES = {"float64": ("f64", 8), "float32": ("f32", 4), "float16": ("f16", 2), "bfloat16": ("bf16", 2), "int64": ("i64", 8),
         "int32": ("i32", 4), "int16": ("i16", 2), "int8": ("i8", 1), "uint64": ("u64", 8), "uint32": ("u32", 4),
         "uint16": ("u16", 2), "uint8": ("u8", 1), "bool": ("bool", 1), "complex64": ("c64", 8), "complex128": ("c128", 16),
         "float8_e4m3fn": ("f8_e4m3fn", 1), "float8_e5m2": ("f8_e5m2", 1), "float8_e4m3fnuz": ("f8_e4m3fnuz", 1),
         "float8_e5m2fnuz": ("f8_e5m2fnuz", 1), "float8_e8m0fnu": ("f8_e8m0", 1)}
SMALL = {"float4_e2m1fn": ("f4_e2m1", 4), "int4": ("i4", 4), "uint4": ("u4", 4), "int2": ("i2", 2), "uint2": ("u2", 2),
         "float6_e2m3fn": ("f6_e2m3", 6), "float6_e3m2fn": ("f6_e3m2", 6)}


# --------------------------------------------------------------------- packing

def sized(n, fix, codes):
    if fix is not None and n < fix[1]:
        return bytes([fix[0] | n])
    for code, width in zip(codes, (1, 2, 4) if len(codes) == 3 else (2, 4)):
        if n < 1 << 8 * width:
            return bytes([code]) + n.to_bytes(width, "big")
    raise ValueError(n)


def ext(code, payload):
    n = len(payload)
    head = bytes([0xD4 + (1, 2, 4, 8, 16).index(n)]) if n in (1, 2, 4, 8, 16) else sized(n, None, (0xC7, 0xC8, 0xC9))
    return head + bytes([code & 255]) + payload


def pack(v):
    if v is None:
        return b"\xc0"
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int):
        if 0 <= v < 128:
            return bytes([v])
        if -32 <= v < 0:
            return bytes([256 + v])
        for code, width in ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8)) if v >= 0 else ((0xD0, 1), (0xD1, 2), (0xD2, 4), (0xD3, 8)):
            if (v < 1 << 8 * width) if v >= 0 else (v >= -(1 << 8 * width - 1)):
                return bytes([code]) + (v % (1 << 8 * width)).to_bytes(width, "big")
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, str):
        return sized(len(v.encode()), (0xA0, 32), (0xD9, 0xDA, 0xDB)) + v.encode()
    if isinstance(v, bytes):
        return sized(len(v), None, (0xC4, 0xC5, 0xC6)) + v
    if isinstance(v, list):
        return sized(len(v), (0x90, 16), (0xDC, 0xDD)) + b"".join(map(pack, v))
    if isinstance(v, dict):
        return sized(len(v), (0x80, 16), (0xDE, 0xDF)) + b"".join(pack(k) + pack(x) for k, x in v.items())
    if isinstance(v, complex):
        return ext(2, pack([v.real, v.imag]))
    if isinstance(v, Raw):
        return v.data
    raise TypeError(v)


class Raw:
    def __init__(self, data):
        self.data = data


def filled(n, seed=5):
    return bytes((seed + 7 * i) % 251 for i in range(n))


def array(shape, name="float32", data=None, code=1):
    width = TYPES[name][1] if name in TYPES else 1
    if data is None:
        n = math.prod(shape) * width
        data = bytes(i % 2 for i in range(n)) if name == "bool" else filled(n)
    return Raw(ext(code, pack([list(shape), name, data])))


def tensor(path, shape, name="float32", data=None, attrs=None):
    dtype, width = TYPES[name]
    if data is None:
        n = math.prod(shape) * width
        data = bytes(i % 2 for i in range(n)) if name == "bool" else filled(n)
    return {"name": path, "dtype": dtype, "shape": list(shape), "sha256": hashlib.sha256(data).hexdigest(), "attrs": attrs or {}}


def packed(codes, bits):
    n = sum((c & (1 << bits) - 1) << bits * i for i, c in enumerate(codes))
    return n.to_bytes((len(codes) * bits + 7) // 8, "little")


# ------------------------------------------------------------------- expected results

def valid(name, tree, tensors, attrs=None, lenient=False, warnings=0, raw=None):
    name += ".msgpack"
    (HERE / "valid" / name).write_bytes(pack(tree) if raw is None else raw)
    expect["valid"][name] = {"format": "flax", "version": "", "lenient": lenient, "warnings": warnings,
                             "attrs": attrs or {}, "tensors": tensors}


def reject(name, data, code, offset, message, lenient="rejects"):
    name += ".msgpack"
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}


def chunked(shape, pieces, name="float32"):
    parts = {str(i): array([len(p) // TYPES[name][1]], name, p) for i, p in pieces}
    return {"__msgpack_chunked_array__": True, "shape": {str(i): d for i, d in enumerate(shape)}, "chunks": parts}


def make_valid():
    valid("types", {"t": {n: array([2, 3], n) for n in TYPES}}, [tensor(f"t/{n}", [2, 3], n) for n in TYPES])
    for i, shape in enumerate([[], [0], [1], [0, 3], [3, 0], [2, 1, 3], [1] * 20]):
        valid(f"shape_{i}", {"w": array(shape)}, [tensor("w", shape)])
    small, want = {}, []
    for n, (dtype, bits) in SMALL.items():
        for count in (1, 5, 8, 13):
            codes = [(3 + 5 * i) % (1 << bits) for i in range(count)]
            small[f"{n}_{count}"] = array([count], n, bytes(codes))
            want.append({"name": f"{n}_{count}", "dtype": dtype, "shape": [count],
                         "sha256": hashlib.sha256(packed(codes, bits)).hexdigest()})
    valid("small_types", small, want)
    valid("lone_array", array([2, 3]), [tensor("data", [2, 3], attrs={"flax.path": []})])
    valid("lone_scalar", array([], code=3), [tensor("data", [], attrs={"flax.path": [], "flax.kind": "scalar"})])
    valid("scalars", {"a": array([], code=3), "b": array([], "int32"), "c": array([], "complex128", code=3)},
          [tensor("a", [], attrs={"flax.kind": "scalar"}), tensor("b", [], "int32"),
           tensor("c", [], "complex128", attrs={"flax.kind": "scalar"})])
    leaves = {"step": 12345678901, "neg": -5, "least": -2 ** 63, "most": 2 ** 64 - 1, "lr": 0.001, "name": "ä", "none": None,
              "flag": True, "off": False, "empty": {}, "z": 3 - 4j}
    valid("leaves", {"w": array([2]), **leaves, "v": array([3])}, [tensor("w", [2]), tensor("v", [3])],
          {"flax.leaves": {**{k: v for k, v in leaves.items() if k != "z"}, "z": {"$complex": [3.0, -4.0]}},
           "flax.order": [1] * 11})
    valid("leaves_last", {"w": array([2]), "step": 1}, [tensor("w", [2])], {"flax.leaves": {"step": 1}})
    valid("leaves_alone", {"a": 1, "b": {"c": "text"}}, [], {"flax.leaves": {"a": 1, "b/c": "text"}})
    valid("nothing", {}, [])
    valid("lists", {"l": [array([1]), {"x": array([2])}, [array([3])], 7], "e": []},
          [tensor("l/0", [1]), tensor("l/1/x", [2]), tensor("l/2/0", [3])],
          {"flax.lists": [["l"], ["l", "2"]], "flax.leaves": {"l/3": 7, "e": []}})
    valid("slashes", {"a/b": {"c": array([1]), "step": 2}, "": array([2]), "x": {"": array([3])}},
          [tensor("a/b/c", [1], attrs={"flax.path": ["a/b", "c"]}), tensor("", [2]),
           tensor("x/", [3])],
          {"flax.leaves": {"a/b/step": 2}, "flax.paths": {"a/b/step": ["a/b", "step"]}})
    valid("joined_twice", {"a": {"b": array([1])}, "a/b": array([2])},
          [tensor("a/b", [1]), tensor("a\\/b", [2], attrs={"flax.path": ["a/b"]})], warnings=1)
    valid("numbers", {1: array([1]), 7: {-3: array([2])}},
          [tensor("1", [1], attrs={"flax.path": [1]}), tensor("7/-3", [2], attrs={"flax.path": [7, -3]})])
    data = filled(4 * 70)
    pieces = [(i, data[40 * i:40 * i + 40]) for i in range(7)]
    valid("pieces", {"w": chunked([10, 7], pieces)}, [tensor("w", [10, 7], attrs={"flax.chunked": True})])
    valid("pieces_in_any_order", {"w": chunked([10, 7], pieces[::-1])}, [tensor("w", [10, 7], attrs={"flax.chunked": True})])
    mixed = chunked([10, 7], pieces)
    valid("pieces_sorted_keys", {"w": {k: mixed[k] for k in sorted(mixed)}}, [tensor("w", [10, 7], attrs={"flax.chunked": True})])
    valid("mark_false", {"w": {"__msgpack_chunked_array__": False, "shape": array([1]), "chunks": array([2])}},
          [tensor("w/shape", [1]), tensor("w/chunks", [2])], {"flax.leaves": {"w/__msgpack_chunked_array__": False}})
    valid("mark_and_others", {"w": {"__msgpack_chunked_array__": True, "shape": array([1]), "others": array([2])}},
          [tensor("w/shape", [1]), tensor("w/others", [2])], {"flax.leaves": {"w/__msgpack_chunked_array__": True}})
    many = {f"k{i}": array([1]) for i in range(300)}
    valid("many", many, [tensor(k, [1]) for k in many])
    deep, want = array([1]), "/".join(["d"] * 128)
    for _ in range(128):
        deep = {"d": deep}
    valid("deep", deep, [tensor(want, [1])])
    valid("long_key", {"k" * 40000: array([1])}, [tensor("k" * 40000, [1])])
    valid("old_bfloat16", {"w": array([2], "V2", filled(4)), "v": array([1], "void16", filled(2))},
          [{**tensor("w", [2], "bfloat16"), "sha256": hashlib.sha256(filled(4)).hexdigest()},
           {**tensor("v", [1], "bfloat16"), "sha256": hashlib.sha256(filled(2)).hexdigest()}], warnings=2)
    valid("unknown_floats", {"w": array([2], "float8_e3m4", filled(2))},
          [{"name": "w", "dtype": "float8_e3m4", "shape": [2], "nbytes": 2}])
    expect["valid"]["unknown_floats.msgpack"]["problems"] = True
    valid("lenient_trailing", None, [tensor("w", [2])], lenient=True, warnings=1, raw=pack({"w": array([2])}) + b"\xc0")
    valid("lenient_ext", {"w": array([2]), "t": Raw(ext(-1, bytes(4)))}, [tensor("w", [2])], lenient=True, warnings=1)


def make_reject():
    whole = pack({"w": array([2, 3]), "step": 7})
    for at in range(1, len(whole)):
        if at < 20 or at > len(whole) - 8:
            reject(f"cut_{at}", whole[:at], SHORT, at, "missing")
    reject("trailing", whole + b"\xc0", BAD, len(whole), "1 byte follows", "opens")
    reject("shape_lies", pack({"w": array([5, 4], data=bytes(64))}), BAD, None, "20 elements of float32 do not have 64 bytes")
    reject("shape_negative", pack({"w": array([-1, 4], data=bytes(64))}), BAD, None, "is negative or")
    reject("shape_wraps", pack({"w": array([2 ** 33, 2 ** 31], data=b"")}), BAD, None, "2^64")
    reject("bytes_wrap", pack({"w": array([2 ** 62], data=b"")}), BAD, None, "do not have 0 bytes")
    for name in ("object", "object_", "float33", "str32", "", "datetime64[ns]"):
        reject(f"type_{name.replace('[', '_').replace(']', '')}", pack({"w": array([1], name, bytes(4))}), UNSUPPORTED, None, "unknown type")
    reject("scalar_with_shape", pack({"w": array([1], code=3)}), BAD, 3, "1 dimensions")
    reject("key_twice", b"\x82" + 2 * (pack("w") + pack(1)), BAD, 4, "occurs twice")
    reject("key_and_number", b"\x82" + pack("1") + pack(1) + pack(1) + pack(1), BAD, 4, "occurs twice")
    reject("key_bytes", b"\x81" + pack(b"w") + pack(1), BAD, 1, "neither text nor a number")
    reject("key_not_utf8", b"\x81\xa2a\xff\x01", BAD, 3, "not UTF-8")
    reject("top_array", pack([array([1])]), BAD, 0, "neither a tree nor an array")
    reject("top_int", pack(7), BAD, 0, "neither a tree nor an array")
    reject("deep", b"\x81\xa1d" * 20000 + b"\xc0", LIMIT, 3 * 128, "128 levels")
    reject("map_bomb", b"\xdf\xff\xff\xff\xff", SHORT, 5, "missing")
    reject("array_bomb", b"\x81\xa1a\xdd\xff\xff\xff\xff", SHORT, 8, "missing")
    reject("ext_bomb", b"\x81\xa1a\xc9\xff\xff\xff\xff\x01", SHORT, 9, "missing")
    reject("c1", b"\x81\xa1a\xc1", BAD, 3, "0xc1")
    reject("ext_4", pack({"w": array([2]), "t": Raw(ext(4, b"1"))}), UNSUPPORTED, None, "kind 4", "opens")
    reject("ext_two_parts", pack({"w": Raw(ext(1, pack([[1], "float32"])))}), BAD, 6, "[shape, type, bytes]")
    reject("ext_longer", pack({"w": Raw(ext(1, pack([[1], "float32", bytes(4)]) + b"\xc0"))}), BAD, 3, "do not end where")
    data = filled(4 * 70)
    pieces = [(i, data[40 * i:40 * i + 40]) for i in range(7)]
    reject("piece_missing", pack({"w": chunked([10, 7], [(9, pieces[0][1])] + pieces[1:])}), BAD, None, "not numbered 0, 1, 2")
    reject("piece_short", pack({"w": chunked([10, 7], pieces[:6])}), BAD, 3, "do not have 240 bytes")
    reject("pieces_none", pack({"w": chunked([0], [])}), BAD, 3, "has no pieces")
    other = chunked([10, 7], pieces)
    other["chunks"]["3"] = array([10], "int32", pieces[3][1])
    reject("piece_of_other_type", pack({"w": other}), BAD, None, "different types")


make_valid()
make_reject()
(HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n", encoding="utf-8")
