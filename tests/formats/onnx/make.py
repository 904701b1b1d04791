#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of ONNX, and the expected results (Python's own library only).

Messages are made field by field from the numbers in onnx.proto.
"""
import hashlib
import json
import math
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT, UNSUPPORTED, LIMIT = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_EUNSUPPORTED", "TNF_ELIMIT"
expect = {"valid": {}, "reject": {}}
# number: our type, bits of an element
TYPES = {1: ("f32", 32), 2: ("u8", 8), 3: ("i8", 8), 4: ("u16", 16), 5: ("i16", 16), 6: ("i32", 32), 7: ("i64", 64), 9: ("bool", 8),
         10: ("f16", 16), 11: ("f64", 64), 12: ("u32", 32), 13: ("u64", 64), 14: ("c64", 64), 15: ("c128", 128), 16: ("bf16", 16),
         17: ("f8_e4m3fn", 8), 18: ("f8_e4m3fnuz", 8), 19: ("f8_e5m2", 8), 20: ("f8_e5m2fnuz", 8), 21: ("u4", 4), 22: ("i4", 4),
         23: ("f4_e2m1", 4), 24: ("f8_e8m0", 8), 25: ("u2", 2), 26: ("i2", 2), 27: ("f6_e2m3", 6), 28: ("f6_e3m2", 6)}


def varint(n):
    n %= 1 << 64
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def num(field, n):
    return varint(field << 3) + varint(n)


def text(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def filled(n, seed=5):
    return bytes((seed + 7 * i) % 251 for i in range(n))


def size_of(dims, type_):
    return (math.prod(dims) * TYPES[type_][1] + 7) // 8


def raw_of(dims, type_):
    n = size_of(dims, type_)
    data = bytes(i % 2 for i in range(n)) if type_ == 9 else filled(n)
    spare = -math.prod(dims) * TYPES[type_][1] % 8
    return data[:-1] + bytes([data[-1] & 255 >> spare]) if spare and data else data


def tensor(name, dims, type_=1, data=None, behind=b""):
    out = b"".join(num(1, d) for d in dims) + num(2, type_) + (text(8, name) if name else b"")
    data = raw_of(dims, type_) if data is None else data
    return out + (text(9, data) if isinstance(data, bytes) and data else b"" if isinstance(data, bytes) else data[0]) + behind


def graph(*parts, name="g"):
    return b"".join(parts) + text(2, name)


def node(op, outputs, attributes=b"", name="", domain=""):
    return text(1, b"".join(text(2, o) for o in outputs) + (text(3, name) if name else b"") + text(4, op) + attributes
                + (text(7, domain) if domain else b""))


def attr_t(name, t):
    return text(5, text(1, name) + text(5, t) + num(20, 4))


def attr_g(name, g):
    return text(5, text(1, name) + text(6, g) + num(20, 5))


def model(g, ir=10, before=b"", behind=b""):
    return num(1, ir) + before + text(7, g) + text(8, num(2, 21)) + behind


def want(name, dims, type_=1, data=None, kind="initializer"):
    data = raw_of(dims, type_) if data is None else data
    return {"name": name, "dtype": TYPES[type_][0], "shape": list(dims), "sha256": hashlib.sha256(data).hexdigest(),
            "attrs": {"onnx.kind": kind}}


def valid(name, data, tensors, warnings=0, attrs=None, lenient=False, **more):
    name += ".onnx"
    (HERE / "valid" / name).write_bytes(data)
    expect["valid"][name] = {"format": "onnx", "version": more.pop("version", "10"), "lenient": lenient, "warnings": warnings,
                             "attrs": attrs or {}, "tensors": tensors, **more}


def reject(name, data, code, offset, message, lenient="rejects"):
    name += ".onnx"
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}


def init(*args, **more):
    return text(5, tensor(*args, **more))


def bits(values, width):
    n = sum((v & (1 << width) - 1) << width * i for i, v in enumerate(values))
    return n.to_bytes((len(values) * width + 7) // 8, "little")


def make_valid():
    valid("types", model(graph(*[init(f"t{t}", [2, 3], t) for t in TYPES])), [want(f"t{t}", [2, 3], t) for t in TYPES])
    valid("odd_counts", model(graph(*[init(f"t{t}", [5], t) for t in TYPES])), [want(f"t{t}", [5], t) for t in TYPES])
    shapes = [[], [0], [1], [0, 3], [2, 1, 3], [1] * 20]
    valid("shapes", model(graph(*[init(f"s{i}", s) for i, s in enumerate(shapes)])), [want(f"s{i}", s) for i, s in enumerate(shapes)])
    typed = {
        "floats": ([3], 1, text(4, struct.pack("<3f", 1, -2, .5)), struct.pack("<3f", 1, -2, .5)),
        "floats_single": ([2], 1, b"".join(varint(4 << 3 | 5) + struct.pack("<f", x) for x in (1, 2)), struct.pack("<2f", 1, 2)),
        "floats_mixed": ([3], 1, text(4, struct.pack("<2f", 1, 2)) + varint(4 << 3 | 5) + struct.pack("<f", 3), struct.pack("<3f", 1, 2, 3)),
        "complex": ([2], 14, text(4, struct.pack("<4f", 1, 2, 3, 4)), struct.pack("<4f", 1, 2, 3, 4)),
        "doubles": ([2], 11, text(10, struct.pack("<2d", 1, 2)), struct.pack("<2d", 1, 2)),
        "int64s": ([4], 7, text(7, b"".join(map(varint, (1, -1, 2 ** 62, -2 ** 63)))), struct.pack("<4q", 1, -1, 2 ** 62, -2 ** 63)),
        "int64s_single": ([2], 7, num(7, 5) + num(7, -6), struct.pack("<2q", 5, -6)),
        "uint32s": ([2], 12, text(11, b"".join(map(varint, (1, 2 ** 32 - 1)))), struct.pack("<2I", 1, 2 ** 32 - 1)),
        "uint64s": ([2], 13, text(11, b"".join(map(varint, (1, 2 ** 64 - 1)))), struct.pack("<2Q", 1, 2 ** 64 - 1)),
        "int32s": ([3], 6, text(5, b"".join(map(varint, (1, -1, -2 ** 31)))), struct.pack("<3i", 1, -1, -2 ** 31)),
        "int8s": ([3], 3, text(5, b"".join(map(varint, (1, -1, -128)))), struct.pack("<3b", 1, -1, -128)),
        "uint8s": ([2], 2, text(5, b"".join(map(varint, (1, 255)))), b"\1\xff"),
        "int16s": ([2], 5, text(5, b"".join(map(varint, (-32768, 32767)))), struct.pack("<2h", -32768, 32767)),
        "halves": ([2], 10, text(5, b"".join(map(varint, (0x3C00, 0xFFFF)))), struct.pack("<2H", 0x3C00, 0xFFFF)),
        "bools": ([2], 9, text(5, b"\1\0"), b"\1\0"),
        "int4s": ([5], 22, text(5, b"".join(map(varint, (0x21, 0xF3, 0x0C)))), b"\x21\xf3\x0c"),
        "uint2s": ([5], 25, text(5, b"".join(map(varint, (0xE4, 0x02)))), b"\xe4\x02"),
        "float6s": ([5], 27, text(5, bytes([0, 8, 16, 20, 24])), bits([0, 8, 16, 20, 24], 6)),
        "many": ([5000], 7, text(7, b"".join(map(varint, range(-2500, 2500)))), struct.pack("<5000q", *range(-2500, 2500))),
    }
    assert bits([0, 8, 16, 20, 24], 6) == bytes.fromhex("00025118")
    valid("typed", model(graph(*[init(n, d, t, (f,)) for n, (d, t, f, _) in typed.items()])),
          [want(n, d, t, raw) for n, (d, t, _, raw) in typed.items()])
    strings = init("s", [2, 2], 8, (b"".join(text(6, s) for s in (b"", b"a", b"\xff\0", "ä".encode())),))
    valid("strings", model(graph(strings)), [{"name": "s", "layout": "strings/1", "shape": [2, 2], "attrs": {"onnx.kind": "initializer"},
          "parts": {"offsets": hashlib.sha256(struct.pack("<5Q", 0, 0, 1, 3, 5)).hexdigest(),
                    "bytes": hashlib.sha256(b"a\xff\0\xc3\xa4").hexdigest()}}])
    inner = graph(init("k", [1]), node("Constant", ["c"], attr_t("value", tensor("", [2]))))
    deep = graph(node("If", ["y"], attr_g("then_branch", inner) + attr_g("else_branch", inner), name="br"))
    valid("graphs", model(graph(init("w", [3]), node("Constant", ["c"], attr_t("value", tensor("x", [4]))),
                                node("ConstantOfShape", ["z"], attr_t("value", tensor("", [1])), name="fill"),
                                node("Loop", ["o"], attr_g("body", deep)))),
          [want("w", [3]), want("c", [4], kind="constant"), want("fill:value", [1], kind="attribute")]
          + [want(f"o.body/br.{b}_branch/{n}", s, kind=k) for b in ("then", "else")
             for n, s, k in (("k", [1], "initializer"), ("c", [2], "constant"))])
    valid("functions", model(graph(), behind=text(25, text(1, "f") + text(10, "my.domain")
                                                  + varint(7 << 3 | 2) + node("Constant", ["c"], attr_t("value", tensor("", [2])))[1:])
                             + text(20, text(1, graph(init("i", [1]))) + text(2, graph(init("i", [2]))))),
          [want("my.domain::f/c", [2], kind="constant"), want("training[0].initialization/i", [1]), want("training[0].algorithm/i", [2])])
    valid("same_node_names", model(graph(*[node("Fill", [f"o{i}"], attr_t("value", tensor("", [1])), name="n") for i in range(2)])),
          [want("n:value", [1], kind="attribute"), want("o1:value", [1], kind="attribute")], warnings=1)
    valid("no_name", model(graph(init("", [1]), init("w", [2]))), [want("#0", [1]), want("w", [2])], warnings=1)
    values, shape = struct.pack("<3f", 1, 2, 3), [3, 4]
    for form, dims, index in (("linear", [3], (1, 6, 11)), ("pairs", [3, 2], (0, 1, 1, 2, 2, 3))):
        sparse = text(15, text(1, tensor("s", [3], 1, values)) + text(2, tensor("", dims, 7, struct.pack(f"<{len(index)}q", *index)))
                      + b"".join(num(3, d) for d in shape))
        valid(f"sparse_{form}", model(graph(sparse)), [{"name": "s", "layout": "sparse_coo/1", "shape": shape, "attrs": {"onnx.kind": "sparse"},
              "parts": {"values": hashlib.sha256(values).hexdigest(),
                        "coords": hashlib.sha256(struct.pack("<6Q", 0, 1, 2, 1, 2, 3)).hexdigest()}}])
    about = text(2, "maker") + text(3, "1.0") + text(4, "org") + num(5, 7) + text(6, "doc")
    valid("about", model(graph(init("w", [1])), ir=8, before=about, behind=text(14, text(1, "k") + text(2, "v")) + text(8, text(1, "x") + num(2, 3))),
          [want("w", [1])], version="8",
          attrs={"onnx.ir_version": 8, "onnx.producer_name": "maker", "onnx.producer_version": "1.0", "onnx.domain": "org",
                 "onnx.model_version": 7, "onnx.doc_string": "doc", "onnx.graph_name": "g", "onnx.metadata": {"k": "v"},
                 "onnx.opset": {"": 21, "x": 3}})
    valid("doc_behind", model(graph(init("w", [2], behind=text(12, "doc") + text(16, text(1, "a") + text(2, "b"))))), [want("w", [2])])
    valid("unknown_fields", model(graph(init("w", [2], behind=text(99, "?")), num(77, 5)), behind=varint(90 << 3 | 1) + bytes(8)), [want("w", [2])])
    valid("no_tensors", model(graph(node("Relu", ["y"]))), [])


def make_reject():
    whole = model(graph(init("w", [2, 3])))
    reject("cut_graph", whole[:40], SHORT, 40, "missing")
    reject("raw_short", model(graph(init("w", [4], data=bytes(12)))), BAD, None, "4 elements of f32 do not have 12 bytes")
    reject("no_data", model(graph(init("w", [4], data=b""))), BAD, None, "4 values are expected, but there are 0")
    reject("typed_short", model(graph(init("w", [4], data=(text(4, bytes(8)),)))), BAD, None, "4 values are expected, but there are 2")
    reject("both", model(graph(init("w", [2], data=(text(4, bytes(8)) + text(9, bytes(8)),)))), BAD, None, "both raw and typed data")
    reject("two_typed", model(graph(init("w", [2], data=(text(4, bytes(8)) + text(7, b"\1\1"),)))), BAD, None, "two kinds of data")
    reject("other_field", model(graph(init("w", [2], data=(text(7, b"\1\1"),)))), BAD, None, "are in field 7")
    reject("raw_twice", model(graph(init("w", [2], behind=text(9, bytes(8))))), BAD, None, "its raw data twice")
    reject("name_twice", model(graph(init("w", [2], behind=text(8, "v")))), BAD, None, "its name twice")
    reject("dim_negative", model(graph(init("w", [-1], data=bytes(4)))), BAD, None, "a dimension is -1")
    reject("dims_wrap", model(graph(init("w", [2 ** 32, 2 ** 32], data=b""))), BAD, None, "2^64")
    for t in (0, 8, 29, 99):
        reject(f"type_{t}", model(graph(init("w", [1], 1, data=bytes(4)).replace(num(2, 1), num(2, t), 1))),
               BAD if t == 8 else UNSUPPORTED, None, "strings cannot be raw" if t == 8 else f"unknown type {t}")
    reject("names_twice", model(graph(init("w", [1]), init("w", [1]))), BAD, None, "two tensors are called")
    reject("constant_twice", model(graph(init("w", [1]), node("Constant", ["w"], attr_t("value", tensor("", [1]))))), BAD, None, "two tensors are called")
    reject("u8_beyond", model(graph(init("w", [1], 2, (text(5, varint(256)),)))), BAD, None, "out of range of the type u8")
    reject("i8_beyond", model(graph(init("w", [1], 3, (text(5, varint(-129)),)))), BAD, None, "out of range of the type i8")
    reject("f6_beyond", model(graph(init("w", [1], 27, (text(5, varint(64)),)))), BAD, None, "out of range of the type f6_e2m3")
    reject("segment", model(graph(init("w", [1], behind=text(3, b"")))), UNSUPPORTED, None, "segment")
    reject("two_graphs", model(graph()) + text(7, graph()), BAD, None, "two graphs")
    reject("no_graph", num(1, 10) + text(2, "x") * 3, BAD, 0, "no graph")
    reject("no_version", text(7, graph()), BAD, 0, "no ir_version")
    nested = graph()
    for _ in range(100):
        nested = graph(node("If", ["y"], attr_g("b", nested)))
    reject("deep", model(nested), LIMIT, None, "64 deep")
    reject("sparse_outside", model(graph(text(15, text(1, tensor("s", [1])) + text(2, tensor("", [1], 7, struct.pack("<q", 12))) + num(3, 3) + num(3, 4)))),
           BAD, None, "outside")
    reject("sparse_no_indices", model(graph(text(15, text(1, tensor("s", [1])) + num(3, 3)))), BAD, None, "has no values or no indices")
    reject("group", model(graph(init("w", [1]), varint(30 << 3 | 3))), BAD, None, "wire type 3")
    reject("varint_long", num(1, 10) + b"\x28" + b"\xff" * 10 + text(7, graph()), BAD, 3, "more than 64 bits")


make_valid()
make_reject()
(HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n", encoding="utf-8")
