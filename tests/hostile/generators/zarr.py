# SPDX-License-Identifier: MIT
"""Zarr: zip archives of JSON documents and chunks."""
import json
import struct

from kit import *
from npz import Member, end

FORMAT, EXTENSION = "zarr", "zarr.zip"
ROOT = ("zarr.json", json.dumps({"zarr_format": 3, "node_type": "group"}).encode())
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def archive(members):
    out, directory = b"", b""
    for name, data in members:
        m = Member(name, data)
        directory += m.in_directory(len(out))
        out += m.header()
    return out + directory + end(len(members), len(directory), len(out))


def array(shape, chunks, type_="float32", codecs=(BYTES,), fill=0, **more):
    return json.dumps({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": type_,
                       "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
                       "chunk_key_encoding": {"name": "default"}, "fill_value": fill, "codecs": list(codecs), **more}).encode()


def one(document, *chunks):
    return archive([ROOT, ("a/zarr.json", document), *chunks])


def old(document, *chunks):
    return archive([(".zgroup", b'{"zarr_format": 2}'), ("a/.zarray", json.dumps(document).encode()), *chunks])


def v2(**but):
    return {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<f4", "compressor": None, "fill_value": 0, "order": "C", "filters": None, **but}


def make(c):
    data = bytes(8)
    whole = one(array([2], [2]), ("a/c/0", data))
    c.accepted("P", "nothing_wrong", whole, 1, "an array of one chunk")
    wrong_things(c, whole, zips=True)
    c.accepted("P", "nan", one(array([2], [2]), ("a/c/0", b"\0\0\xc0\x7f\0\0\x80\xff")), 1, "NaN and -Infinity")
    c.accepted("P", "no_chunk", one(array([2], [2], fill="NaN")), 1, "no chunk at all: all of it is the fill value")
    c.rejected("P", "fill_kind", one(array([2], [2], fill="four")), BAD, None, "fill", "a fill value that is no number")
    c.accepted("I", "behind", one(array([2], [2]), ("a/c/0", data), ("README.md", b"%PDF-1.7")), 1, "a member that is no part of the store", warnings=None)
    c.accepted("I", "stranger", one(array([2], [2]), ("a/c/0", data), ("a/c/7", data)), 1, "a chunk beyond the shape", warnings=None)
    c.rejected("H", "array_twice", archive([ROOT, ("a/zarr.json", array([2], [2])), ("a/zarr.json", array([1], [1]))]), BAD, None, "", "one document twice")
    c.accepted("H", "key_twice", one(b'{"shape": [1], ' + array([2], [2])[1:]), 1, "a key of the document twice: the last counts, as in Python", warnings=None)
    c.accepted("H", "name_escapes", archive([ROOT, ("\x1b[2J/zarr.json", array([2], [2]))]), 1, "a name that clears the screen", warnings=None)
    for name, n in HUGE.items():
        c.rejected("D", f"dims_{name}", one(array([n, n], [1, 1], "float64")), [BAD, LIMIT], None, "", f"two dimensions of {n}")
        c.rejected("J", f"itemsize_{name}", old(v2(dtype=f"|V{n}")), [BAD, LIMIT, UNSUPPORTED], None, "", f"elements of {n} bytes")
    for at in (5, 60, len(whole) // 2, len(whole) - 1):
        c.rejected("A", f"cut_{at}", whole[:at], [SHORT, BAD, UNSUPPORTED], None, "", f"the first {at} bytes")
    for name, n in HUGE.items():
        c.rejected("D" if n >= 1 << 63 else "F", f"chunk_{name}", one(array([n], [n])), [LIMIT, BAD], None, "", f"a chunk of {n} elements")
    c.rejected("D", "product_wraps", one(array([1 << 32, 1 << 32, 2], [1, 1, 1])), BAD, None, "2^63", "dimensions whose product wraps to zero")
    c.rejected("D", "negative", one(array([-1], [1])), BAD, None, "", "a dimension of -1")
    c.rejected("D", "chunk_zero", one(array([1], [0])), BAD, None, "without elements", "chunks of no elements")
    c.rejected("E", "rank", one(array([1, 1], [1])), BAD, None, "rank of its chunks", "chunks of fewer dimensions")
    c.rejected("F", "rank_huge", one(array([1] * 1000, [1] * 1000)), LIMIT, None, "dimensions", "a thousand dimensions")
    c.rejected("G", "json_deep", one(b'{"a":' * 5000), [BAD, LIMIT, SHORT], None, "", "objects in objects")
    deep = [BYTES]
    for _ in range(20):
        deep = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": deep, "index_codecs": [BYTES]}}]
    c.rejected("G", "shards_deep", one(array([1], [1], codecs=deep)), BAD, None, "deeply", "shards in shards in shards")
    wide = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": [BYTES], "index_codecs": [BYTES]}}
    c.rejected("F", "shard_index", one(array([1 << 28], [1 << 28], "uint8", [wide])), LIMIT, None, "too many chunks", "an index of 4 GiB")
    for name, key in (("up", "../a"), ("absolute", "/a"), ("dot", "./a"), ("twice", "a//b"), ("nul", "a\0b")):
        c.rejected("K", f"path_{name}", archive([ROOT, (f"{key}/zarr.json", array([1], [1]))]), [BAD, UNSUPPORTED], None, "", f"an array at {key!r}")
    copy = json.dumps({"zarr_consolidated_format": 1, "metadata": {"../x/.zarray": {}}}).encode()
    c.rejected("K", "copy", archive([(".zgroup", b'{"zarr_format": 2}'), (".zmetadata", copy)]), BAD, None, "is outside the store", "a copy that leads elsewhere")
    c.rejected("H", "pickle", old(v2(dtype="|O", filters=[{"id": "pickle"}])), BAD, None, "never created", "pickled objects")
    c.rejected("H", "object", old(v2(dtype="|O")), BAD, None, "never created", "objects of unknown codec")
    c.rejected("J", "type_size", old(v2(dtype="<V99999999999")), BAD, None, "bytes", "elements of many bytes")
    c.rejected("J", "struct_wraps", old(v2(dtype=[["a", "<f4", [1 << 62, 4]]])), BAD, None, "unknown size", "a structure whose size wraps")
    c.damaged("N", "chunk_short", one(array([2], [2], codecs=[BYTES, {"name": "crc32c"}]), ("a/c/0", data)), [BAD, DIGEST], 1, "a chunk without its checksum")
    for name, stored in (("empty", b""), ("header", bytes(10)), ("nbytes", struct.pack("<4B3I", 2, 1, 0x21, 4, 1 << 31, 8, 24) + bytes(8)),
                         ("block_zero", struct.pack("<4B3I", 2, 1, 0x21, 4, 8, 0, 24) + bytes(8)),
                         ("start", struct.pack("<4B3I", 2, 1, 0x21, 4, 8, 8, 24) + struct.pack("<2I", 0xFFFFFFF0, 0)),
                         ("stream", struct.pack("<4B3I", 2, 1, 0x21, 4, 8, 8, 28) + struct.pack("<3I", 20, 0xFFFFFFF0, 0)),
                         ("cbytes", struct.pack("<4B3I", 2, 1, 0x22, 4, 8, 8, 0xFFFFFFFF) + bytes(8)),
                         ("lz4_back", struct.pack("<4B3I", 2, 1, 0x31, 4, 8, 8, 28) + struct.pack("<2I", 20, 4) + bytes([0x00, 5, 0, 0])),
                         ("lz4_long", struct.pack("<4B3I", 2, 1, 0x31, 4, 8, 8, 28) + struct.pack("<2I", 20, 4) + b"\xff" * 4),
                         ("blosclz", struct.pack("<4B3I", 2, 1, 0x11, 4, 8, 8, 28) + struct.pack("<2I", 20, 4) + bytes([0, 1, 0xFF, 0xFF])),
                         ("codec_7", struct.pack("<4B3I", 2, 1, 0xE1, 4, 8, 8, 28) + struct.pack("<2I", 20, 4) + bytes(4))):
        c.damaged("N", f"blosc_{name}", old(v2(compressor={"id": "blosc"}), ("a/0", stored)), [BAD, UNSUPPORTED, SHORT], 1, f"a Blosc buffer: {name}")
    for name, stored in (("size", struct.pack("<I", 1 << 31) + b"\0"), ("none", b""), ("literals", struct.pack("<I", 8) + b"\xf0" + b"\xff" * 20)):
        c.damaged("N", f"lz4_{name}", old(v2(compressor={"id": "lz4"}), ("a/0", stored)), BAD, 1, f"lz4: {name}")
    for name, index in (("outside", struct.pack("<4Q", 0, 4, 1 << 62, 4)), ("wraps", struct.pack("<4Q", 0, 4, (1 << 64) - 2, 4))):
        shard = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": [BYTES], "index_codecs": [BYTES]}}]
        c.damaged("E", f"shard_{name}", one(array([2], [2], codecs=shard), ("a/c/0", data + index)), BAD, 1, f"a chunk in a shard: {name}")
    strings = struct.pack("<II", 1, 0xFFFFFFFF)
    c.damaged("C", "string_length", one(array([1], [1], "string", [{"name": "vlen-utf8"}], ""), ("a/c/0", strings)), BAD, 1, "a string of 4 GiB")
    c.damaged("C", "string_count", one(array([1], [1], "string", [{"name": "vlen-utf8"}], ""), ("a/c/0", struct.pack("<I", 0xFFFFFFFF))), BAD, 1,
              "4 billion strings")
