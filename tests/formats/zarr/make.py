#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of Zarr, and the expected results (Python's own library only).

Documents follow the specification. Most stores are zip archives, a few are directories.
"""
import base64
import gzip
import hashlib
import io
import json
import pathlib
import shutil
import struct
import zipfile
import zlib

HERE = pathlib.Path(__file__).parent
BAD, UNSUPPORTED, LIMIT = "TNF_EFORMAT", "TNF_EUNSUPPORTED", "TNF_ELIMIT"
expect = {"valid": {}, "reject": {}, "documents": ["zarr.attrs", "zarr.groups"]}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


def archive(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in members.items():
            z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compress_type=method)
    return out.getvalue()


def put(kind, name, members, method=zipfile.ZIP_STORED):
    path = HERE / kind / name
    if name.endswith(".zip"):
        path.write_bytes(archive(members, method))
        return
    for key, data in members.items():
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).write_bytes(data)


def tensor(name, dtype, shape, data=None, **more):
    return {"name": name, "dtype": dtype, "shape": list(shape), **({} if data is None else {"sha256": hashlib.sha256(data).hexdigest()}), **more}


def valid(name, version, members, tensors, attrs=None, method=zipfile.ZIP_STORED, **more):
    put("valid", name, members, method)
    expect["valid"][name] = {"format": "zarr", "version": version, "warnings": 0, "tensors": tensors, **({"attrs": attrs} if attrs else {}), **more}


def reject(name, members, code, message, lenient="rejects"):
    put("reject", name, members)
    expect["reject"][name] = {"code": code, "offset": None, "message": message, "lenient": lenient}


def doc(**members):
    return json.dumps(members).encode()


ROOT3 = {"zarr.json": doc(zarr_format=3, node_type="group", attributes={})}
ROOT2 = {".zgroup": doc(zarr_format=2)}
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def v3(shape, chunks, type_="float32", codecs=(BYTES,), fill=0.0, keys=None, **more):
    return doc(zarr_format=3, node_type="array", shape=list(shape), data_type=type_,
               chunk_grid={"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
               chunk_key_encoding=keys or {"name": "default"}, fill_value=fill, codecs=list(codecs), **more)


def v2(shape, chunks, type_="<f4", compressor=None, fill=0, order="C", filters=None, **more):
    return doc(zarr_format=2, shape=list(shape), chunks=list(chunks), dtype=type_, compressor=compressor, fill_value=fill, order=order,
               filters=filters, **more)


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


def put_shard(chunks, first=False):
    index, body = b"", b""
    base = 16 * len(chunks) + 4 if first else 0
    for chunk in chunks:
        index += struct.pack("<QQ", *((2 ** 64 - 1,) * 2 if chunk is None else (base + len(body), len(chunk))))
        body += chunk or b""
    index += crc32c(index)
    return index + body if first else body + index


def make_types():
    values = {"bool": ("bool", 1), "int8": ("i8", 1), "int16": ("i16", 2), "int32": ("i32", 4), "int64": ("i64", 8), "uint8": ("u8", 1),
              "uint16": ("u16", 2), "uint32": ("u32", 4), "uint64": ("u64", 8), "float16": ("f16", 2), "float32": ("f32", 4),
              "float64": ("f64", 8), "complex64": ("c64", 8), "complex128": ("c128", 16), "bfloat16": ("bf16", 2), "float8_e4m3fn": ("f8_e4m3fn", 1),
              "float8_e5m2": ("f8_e5m2", 1), "float8_e4m3fnuz": ("f8_e4m3fnuz", 1), "float8_e5m2fnuz": ("f8_e5m2fnuz", 1),
              "float8_e8m0fnu": ("f8_e8m0", 1)}
    members, tensors = dict(ROOT3), []
    for name, (ours, width) in sorted(values.items()):
        data = bytes(i % 2 if name == "bool" else i % 120 for i in range(3 * width))
        fill = False if name == "bool" else [0, 0] if name[0] == "c" else 0
        members |= {f"{name}/zarr.json": v3([3], [3], name, fill=fill), f"{name}/c/0": data}
        tensors.append(tensor(name, ours, [3], data))
    for name, ours, bits in (("float4_e2m1fn", "f4_e2m1", 4), ("int2", "i2", 2), ("int4", "i4", 4), ("uint2", "u2", 2), ("uint4", "u4", 4)):
        codes = [i * 5 % (1 << bits) for i in range(5)]
        packed = bytearray((5 * bits + 7) // 8)
        for i, code in enumerate(codes):
            packed[i * bits // 8] |= code << i * bits % 8
        members |= {f"{name}/zarr.json": v3([5], [2], name, fill=0), f"{name}/c/0": bytes(codes[:2]), f"{name}/c/1": bytes(codes[2:4]),
                    f"{name}/c/2": bytes([codes[4], 0])}
        tensors.append(tensor(name, ours, [5], bytes(packed)))
    valid("types3.zarr.zip", "3", members, sorted(tensors, key=lambda t: t["name"]))
    members, tensors = dict(ROOT2), []
    for name, ours, width in (("<f8", "f64", 8), (">f4", "f32", 4), ("|b1", "bool", 1), ("|u1", "u8", 1), (">i2", "i16", 2), ("<u8", "u64", 8),
                              (">c8", "c64", 4), ("bfloat16", "bf16", 2), ("<f2", "f16", 2)):
        n = 2 if "c" in name else 1
        data = bytes(i % 2 if name == "|b1" else i + 1 for i in range(4 * width * n))
        stored = data if name[0] != ">" else b"".join(data[i:i + width][::-1] for i in range(0, len(data), width))
        key = f"t_{name.strip('<>|')}"
        members |= {f"{key}/.zarray": v2([2, 2], [2, 2], name, fill=None), f"{key}/0.0": stored}
        tensors.append(tensor(key, ours, [2, 2], data))
    valid("types2.zarr.zip", "2", members, sorted(tensors, key=lambda t: t["name"]))


def make_codecs():
    data = f32(*range(6))
    chunk = {"a/zarr.json": v3([2, 3], [2, 3]), "a/c/0/0": data}
    whole = [tensor("a", "f32", [2, 3], data)]
    valid("one.zarr.zip", "3", ROOT3 | chunk, whole)
    valid("deflated.zarr.zip", "3", ROOT3 | chunk, whole, method=zipfile.ZIP_DEFLATED)
    valid("empty.zarr.zip", "3", ROOT3, [])
    big = {"name": "bytes", "configuration": {"endian": "big"}}
    valid("big.zarr.zip", "3", ROOT3 | {"a/zarr.json": v3([2, 3], [2, 2], codecs=[big]), "a/c/0/0": struct.pack(">4f", 0, 1, 3, 4),
                                        "a/c/0/1": struct.pack(">4f", 2, 9, 5, 9)}, whole)
    swap = [{"name": "transpose", "configuration": {"order": [1, 0]}}, BYTES, {"name": "crc32c"}]
    stored = f32(0, 3, 1, 4, 2, 5)
    valid("transposed.zarr.zip", "3", ROOT3 | {"a/zarr.json": v3([2, 3], [2, 3], codecs=swap), "a/c/0/0": stored + crc32c(stored)}, whole)
    packed = gzip.compress(data, mtime=0)
    valid("gzip.zarr.zip", "3", ROOT3 | {"a/zarr.json": v3([2, 3], [2, 3], codecs=[BYTES, {"name": "gzip", "configuration": {"level": 5}}]),
                                         "a/c/0/0": packed}, whole)
    valid("zlib.zarr.zip", "2", ROOT2 | {"a/.zarray": v2([2, 3], [2, 3], compressor={"id": "zlib", "level": 1}), "a/0.0": zlib.compress(data)}, whole)
    lz4 = struct.pack("<I", 24) + bytes([0xF0, 9]) + data
    valid("lz4.zarr.zip", "2", ROOT2 | {"a/.zarray": v2([2, 3], [2, 3], compressor={"id": "lz4"}), "a/0.0": lz4}, whole)
    blosc = struct.pack("<BBBBIII", 2, 1, 0x02, 4, 24, 24, 40) + data
    valid("blosc_copied.zarr.zip", "2", ROOT2 | {"a/.zarray": v2([2, 3], [2, 3], compressor={"id": "blosc"}), "a/0.0": blosc + b"\0" * 16}, whole)
    shuffled = bytes(data[4 * i + k] for k in range(4) for i in range(6))
    body = struct.pack("<I", 20) + struct.pack("<I", 26) + bytes([0xF0, 9]) + shuffled
    blosc = struct.pack("<BBBBIII", 2, 1, 0x31, 4, 24, 24, 16 + len(body)) + body
    valid("blosc_lz4.zarr.zip", "2", ROOT2 | {"a/.zarray": v2([2, 3], [2, 3], compressor={"id": "blosc"}), "a/0.0": blosc}, whole)
    column = f32(0, 3, 1, 4, 2, 5)
    valid("columns.zarr.zip", "2", ROOT2 | {"a/.zarray": v2([2, 3], [2, 3], order="F", dimension_separator="/"), "a/0/0": column}, whole)
    unknown = ROOT3 | {"a/zarr.json": v3([2], [2], codecs=[BYTES, {"name": "nobody"}]), "a/c/0": b"\0" * 8}
    valid("codec_unknown.zarr.zip", "3", unknown, [tensor("a", "f32", [2])], problems=True)
    valid("type_unknown.zarr.zip", "3", ROOT3 | {"a/zarr.json": v3([2], [2], "float8_e3m4", fill=0), "a/c/0": b"\0" * 2},
          [tensor("a", "float8_e3m4", [2])], problems=True)


def make_grids():
    rows = list(range(35))
    chunks = {f"a/c/{i}/{j}": f32(*[rows[(2 * i + y) * 7 + 3 * j + x] if 2 * i + y < 5 and 3 * j + x < 7 else 77
                                     for y in range(2) for x in range(3)]) for i in range(3) for j in range(3)}
    valid("edges.zarr.zip", "3", ROOT3 | {"a/zarr.json": v3([5, 7], [2, 3])} | chunks, [tensor("a", "f32", [5, 7], f32(*rows))])
    del chunks["a/c/1/1"]
    holes = [-2.5 if y // 2 == 1 and x // 3 == 1 else y * 7 + x for y in range(5) for x in range(7)]
    valid("holes.zarr.zip", "3", ROOT3 | {"a/zarr.json": v3([5, 7], [2, 3], fill=-2.5)} | chunks, [tensor("a", "f32", [5, 7], f32(*holes))])
    fills = {"nan": ("float32", "NaN", "f32", f32(float("nan"))), "bits": ("float32", "0x7fc00001", "f32", bytes.fromhex("0100c07f")),
             "inf": ("float64", "-Infinity", "f64", struct.pack("<d", float("-inf"))), "half": ("float16", 1.5, "f16", b"\x00\x3e"),
             "brain": ("bfloat16", -1, "bf16", b"\x80\xbf"), "complex": ("complex64", [1.5, "NaN"], "c64", f32(1.5, float("nan"))),
             "most": ("uint64", 2 ** 64 - 1, "u64", b"\xff" * 8), "least": ("int8", -128, "i8", b"\x80"), "yes": ("bool", True, "bool", b"\1"),
             "whole": ("int16", 3.0, "i16", b"\3\0")}
    members = ROOT3 | {f"{k}/zarr.json": v3([3], [2], t, fill=f) for k, (t, f, _, _) in fills.items()}
    valid("fills.zarr.zip", "3", members, [tensor(k, o, [3], b * 3) for k, (_, _, o, b) in sorted(fills.items())])
    keys = {"dot": ({"name": "default", "configuration": {"separator": "."}}, "c.0.0"), "slash": ({"name": "default"}, "c/0/0"),
            "two": ({"name": "v2"}, "0.0"), "two_slash": ({"name": "v2", "configuration": {"separator": "/"}}, "0/0")}
    members = dict(ROOT3)
    for k, (how, key) in keys.items():
        members |= {f"{k}/zarr.json": v3([1, 2], [1, 2], keys=how), f"{k}/{key}": f32(1, 2)}
    valid("keys.zarr.zip", "3", members, [tensor(k, "f32", [1, 2], f32(1, 2)) for k in sorted(keys)])
    valid("scalars.zarr.zip", "3", ROOT3 | {"a/zarr.json": v3([], []), "a/c": f32(2), "b/zarr.json": v3([0, 3], [1, 3])},
          [tensor("a", "f32", [], f32(2)), tensor("b", "f32", [0, 3], b"")])
    valid("scalar2.zarr.zip", "2", ROOT2 | {"a/.zarray": v2([], []), "a/0": f32(2)}, [tensor("a", "f32", [], f32(2))])
    inner = [f32(0, 1, 4, 5), f32(2, 3, 6, 7), f32(8, 9, 12, 13), None]
    whole = f32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 5, 5, 12, 13, 5, 5)
    index = [BYTES, {"name": "crc32c"}]
    for place in ("start", "end"):
        shards = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": [BYTES], "index_codecs": index,
                                                                 "index_location": place}}]
        valid(f"shard_{place}.zarr.zip", "3", ROOT3 | {"a/zarr.json": v3([4, 4], [4, 4], codecs=shards, fill=5), "a/c/0/0": put_shard(inner, place == "start")},
              [tensor("a", "f32", [4, 4], whole)])
    # Shards of 4 GiB, of which only one chunk is stored.
    large = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2 ** 16], "codecs": [BYTES], "index_codecs": [BYTES]}}]
    body = put_shard([f32(*range(8)) + bytes(2 ** 18 - 32)] + [None] * (2 ** 14 - 1))[:-4]
    valid("shard_large.zarr.zip", "3", ROOT3 | {"a/zarr.json": v3([8], [2 ** 30], codecs=large), "a/c/0": body},
          [tensor("a", "f32", [8], f32(*range(8)))], method=zipfile.ZIP_DEFLATED)
    deep = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 2], "codecs": [
        {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": [BYTES], "index_codecs": index}}], "index_codecs": index}}]
    body = put_shard([put_shard([inner[0], inner[2]]), put_shard([inner[1], inner[3]])])
    valid("shard_deep.zarr.zip", "3", ROOT3 | {"a/zarr.json": v3([4, 4], [4, 4], codecs=deep, fill=5), "a/c/0/0": body}, [tensor("a", "f32", [4, 4], whole)])


def make_texts():
    strings = ["", "a", "äöü", "\U0001F600x"]
    vlen = struct.pack("<I", 4) + b"".join(struct.pack("<I", len(s.encode())) + s.encode() for s in strings)
    ucs4 = b"".join(s.encode("utf-32-le").ljust(12, b"\0") for s in strings)
    fixed = b"".join(s.encode().ljust(6, b"\0") for s in strings)
    members = ROOT2 | {"O/.zarray": v2([4], [4], "|O", filters=[{"id": "vlen-utf8"}], fill=""), "O/0": vlen,
                       "S/.zarray": v2([2, 2], [1, 2], "|S6", fill=""), "S/0.0": fixed[:12], "S/1.0": fixed[12:],
                       "U/.zarray": v2([4], [3], "<U3", fill=""), "U/0": ucs4[:36], "U/1": ucs4[36:] + b"\0" * 24}
    valid("texts2.zarr.zip", "2", members, [{"name": n, "layout": "strings/1", "shape": s, "strings": strings} for n, s in (("O", [4]), ("S", [2, 2]), ("U", [4]))])
    members = ROOT3 | {"s/zarr.json": v3([4], [4], "string", [{"name": "vlen-utf8"}, {"name": "gzip", "configuration": {"level": 1}}], ""),
                       "s/c/0": gzip.compress(vlen, mtime=0),
                       "u/zarr.json": v3([4], [4], {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}, fill=""), "u/c/0": ucs4}
    valid("texts3.zarr.zip", "3", members, [{"name": n, "layout": "strings/1", "shape": [4], "strings": strings} for n in "su"])
    date = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
    pair = {"name": "structured", "configuration": {"fields": [["a", "float32"], ["b", "int16"]]}}
    members = ROOT3 | {"d/zarr.json": v3([2], [2], date, fill=0), "d/c/0": struct.pack("<2q", 1, -1),
                       "p/zarr.json": v3([2], [2], pair, [{"name": "bytes"}], fill=base64.b64encode(b"\0" * 6).decode()), "p/c/0": bytes(range(12)),
                       "r/zarr.json": v3([2], [2], "r16", [{"name": "bytes"}], fill=[1, 2]), "w/zarr.json": v3([1], [1], {"name": "raw_bytes", "configuration": {"length_bytes": 3}},
                                                                                                    [{"name": "bytes"}], fill="AQID")}
    valid("others3.zarr.zip", "3", members, [tensor("d", "i64", [2], struct.pack("<2q", 1, -1), attrs={"zarr.dtype": date}),
                                             tensor("p", "u8", [2, 6], bytes(range(12)), attrs={"zarr.dtype": pair}),
                                             tensor("r", "u8", [2, 2], b"\1\2\1\2"), tensor("w", "u8", [1, 3], b"\1\2\3")])
    members = ROOT2 | {"d/.zarray": v2([2], [2], "<M8[ns]"), "d/0": struct.pack("<2q", 1, -1), "p/.zarray": v2([2], [2], [["a", "<f4"], ["b", "<i2"]], fill=None),
                       "p/0": bytes(range(12)), "v/.zarray": v2([2], [2], "|V2", fill="AQI="), "n/.zarray": v2([2], [2], ">m8[s]"), "n/0": struct.pack(">2q", 5, 6)}
    valid("others2.zarr.zip", "2", members, [tensor("d", "i64", [2], struct.pack("<2q", 1, -1), attrs={"zarr.dtype": "<M8[ns]"}),
                                             tensor("n", "i64", [2], struct.pack("<2q", 5, 6)),
                                             tensor("p", "u8", [2, 6], bytes(range(12))), tensor("v", "u8", [2, 2], b"\1\2\1\2")])


def make_trees():
    array = v3([1], [1], attributes={"u": "m", "n": [1, None]}, dimension_names=["x"])
    group = {"zarr_format": 3, "node_type": "group"}
    members = {"zarr.json": doc(**group, attributes={"title": "ä", "n": 3}), "g/zarr.json": doc(**group, attributes={"k": [1, 2]}), "g/h/zarr.json": doc(**group),
               "g/h/a/zarr.json": array, "g/h/a/c/0": f32(1)}
    attrs = {"zarr.attrs": {"title": "ä", "n": 3}, "zarr.groups": {"g": {"k": [1, 2]}, "g/h": {}}}
    one = [tensor("g/h/a", "f32", [1], f32(1), attrs={"zarr.attrs": {"u": "m", "n": [1, None]}, "zarr.dimension_names": ["x"]})]
    valid("tree3.zarr.zip", "3", members, one, attrs)
    members = {".zgroup": doc(zarr_format=2), ".zattrs": doc(title="ä"), "g/.zgroup": doc(zarr_format=2), "g/a/.zarray": v2([1], [1]), "g/a/.zattrs": doc(u="m"),
               "g/a/0": f32(1)}
    one = [tensor("g/a", "f32", [1], f32(1), attrs={"zarr.attrs": {"u": "m"}})]
    valid("tree2.zarr.zip", "2", members, one, {"zarr.attrs": {"title": "ä"}, "zarr.groups": {"g": {}}})
    valid("lone.zarr.zip", "3", {"zarr.json": v3([2], [1]), "c/0": f32(1), "c/1": f32(2)}, [tensor("data", "f32", [2], f32(1, 2))])
    copy = doc(zarr_consolidated_format=1, metadata={".zgroup": {"zarr_format": 2}, "g/.zgroup": {"zarr_format": 2}, "g/a/.zarray": json.loads(v2([1], [1]))})
    valid("consolidated.zarr.zip", "2", members | {".zmetadata": copy}, one)
    valid("both.zarr.zip", "3", ROOT2 | ROOT3 | {"a/zarr.json": v3([1], [1]), "a/c/0": f32(1)}, [tensor("a", "f32", [1], f32(1))])
    expect["valid"]["both.zarr.zip"]["warnings"] = 1
    valid("stranger.zarr.zip", "3", ROOT3 | {"notes.txt": b"hello"}, [])
    expect["valid"]["stranger.zarr.zip"]["warnings"] = 1
    valid("must_not.zarr.zip", "3", ROOT3 | {"a/zarr.json": v3([1], [1], extra={"must_understand": False}), "a/c/0": f32(1)}, [tensor("a", "f32", [1], f32(1))])


def make_rejected():
    def array(name, document, code=BAD, message="", more=None):
        reject(f"{name}.zarr.zip", ROOT3 | {"a/zarr.json": document} | (more or {}), code, message)

    array("rank", v3([2, 2], [2]), message="its chunks is 1, but that of the array is 2")
    array("chunk_zero", v3([2], [0]), message="chunks without elements")
    array("negative", v3([-1], [1]), message="shape")
    array("bomb", v3([2 ** 40], [2 ** 40]), LIMIT, "more than")
    array("wraps", v3([2 ** 32, 2 ** 32], [1, 1]), message="2^63")
    array("codecs_none", v3([1], [1], codecs=[]), message="no codecs")
    array("codecs_turned", v3([1], [1], codecs=[{"name": "zstd"}, BYTES]), message="in an invalid order")
    array("no_type", v3([1], [1], None), message="not a name")
    array("member", v3([1], [1], extra=3), UNSUPPORTED, "unknown member 'extra' that readers must")
    array("member_object", v3([1], [1], extra={"must_understand": True}), UNSUPPORTED, "unknown member 'extra' that readers must")
    array("transformers", v3([1], [1], storage_transformers=[{"name": "x"}]), message="storage_transformers")
    array("grid", v3([1], [1]).replace(b"regular", b"strange"), message="not regular")
    array("encoding", v3([1], [1], keys={"name": "x"}), message="chunk_key_encoding")
    array("separator", v3([1], [1], keys={"name": "default", "configuration": {"separator": "_"}}), message="separator")
    array("order", v3([1, 1], [1, 1], codecs=[{"name": "transpose", "configuration": {"order": [0, 0]}}, BYTES]), message="not a permutation of its axes")
    array("fill", v3([1], [1], fill="x"), message="fill_value")
    array("fill_half", v3([1], [1], "int32", fill=1.5), message="fill_value")
    shard = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2], "codecs": [BYTES], "index_codecs": [BYTES]}}
    array("shard_odd", v3([3], [3], codecs=[shard]), message="not a multiple")
    packed = json.loads(json.dumps(shard))
    packed["configuration"]["index_codecs"] = [BYTES, {"name": "zstd"}]
    array("shard_index", v3([4], [4], codecs=[packed]), message="index of its shards")
    deep = [BYTES]
    for _ in range(6):
        deep = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2], "codecs": deep, "index_codecs": [BYTES]}}]
    array("shard_depth", v3([2], [2], codecs=deep), message="too deeply")
    array("node_type", doc(zarr_format=3, node_type="thing"), message="neither a group nor an array")
    array("format_4", doc(zarr_format=4, node_type="group"), UNSUPPORTED, "another zarr_format")
    reject("root_only.zarr.zip", {"a/zarr.json": v3([1], [1])}, UNSUPPORTED, "not a Zarr store")
    reject("json.zarr.zip", {"zarr.json": b'{"zarr_format": 3, "node_ty'}, "TNF_ETRUNCATED", "zarr.json")
    reject("key_leaves.zarr.zip", ROOT3 | {"../a/zarr.json": v3([1], [1])}, BAD, "")
    reject("pickle.zarr.zip", ROOT2 | {"a/.zarray": v2([1], [1], "|O", filters=[{"id": "pickle"}])}, BAD, "never created")
    reject("objects.zarr.zip", ROOT2 | {"a/.zarray": v2([1], [1], "|O")}, BAD, "never created")
    reject("pickle_numbers.zarr.zip", ROOT2 | {"a/.zarray": v2([1], [1], filters=[{"id": "pickle"}])}, BAD, "never created")
    copy = doc(zarr_consolidated_format=1, metadata={"../../x/.zarray": {}})
    reject("copy_leaves.zarr.zip", ROOT2 | {".zmetadata": copy}, BAD, "is outside the store")
    whole = ROOT3 | {"a/zarr.json": v3([2], [2], codecs=[BYTES, {"name": "crc32c"}])}
    data = f32(1, 2)
    for name, stored, message in (("chunk_short", data[:7] + crc32c(data[:7]), "7 bytes instead of 8"), ("chunk_long", data + b"x" + crc32c(data + b"x"), "9 bytes instead of 8"),
                                  ("chunk_crc", data + b"abcd", "crc32c"), ("chunk_empty", b"", "before its checksum")):
        code = "TNF_EDIGEST" if name == "chunk_crc" else BAD
        reject(f"{name}.zarr.zip", whole | {"a/c/0": stored}, code, message, "opens")
    shard = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": [BYTES], "index_codecs": [BYTES, {"name": "crc32c"}]}}]
    document = ROOT3 | {"a/zarr.json": v3([2], [2], codecs=shard)}
    index = struct.pack("<4Q", 0, 4, 4, 400)
    reject("shard_outside.zarr.zip", document | {"a/c/0": data + index + crc32c(index)}, BAD, "outside its shard", "opens")
    reject("shard_short.zarr.zip", document | {"a/c/0": b"abc"}, BAD, "shorter than its index", "opens")
    reject("shard_crc.zarr.zip", document | {"a/c/0": data + index + b"abcd"}, "TNF_EDIGEST", "crc32c", "opens")


for kind in ("valid", "reject"):
    shutil.rmtree(HERE / kind, ignore_errors=True)
    (HERE / kind).mkdir()
make_types()
make_codecs()
make_grids()
make_texts()
make_trees()
make_rejected()
(HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
