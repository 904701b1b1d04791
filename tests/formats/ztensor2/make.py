#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of ztensor2, and the expected results.

The files valid/ref-*.zt and reject/ref-*.zt exist already: the reference's writer (2.1.1) made
them, or they were made by hand as its edge cases. This script makes all others from the
description; corpus-* are the cases of the reference's own conformance corpus, with their names and
sizes.
"""
import hashlib
import json
import pathlib
import struct

from zt2 import *

HERE = pathlib.Path(__file__).parent
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
expect = {"valid": {}, "reject": {}}
IDS = {"complex64": "c64", "complex128": "c128"}


def put(kind, name, data):
    (HERE / kind).mkdir(exist_ok=True)
    path = HERE / kind / name
    if data is None:
        return path.read_bytes()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return data


def tensor(name, dtype, shape, data, **more):
    t = {"name": name, "dtype": dtype, "shape": list(shape), "order": "C", **more}
    if data is not None:
        t["sha256"] = hashlib.sha256(data).hexdigest()
    return t


def valid(name, tensors, data=None, size=None, **more):
    data = put("valid", name, data)
    assert size in (None, len(data)), (name, len(data), size)
    expect["valid"][name] = {"format": "ztensor2", "version": "2", "lenient": False, "warnings": 0,
                             "tensors": tensors, **more}


# The names of the rules in the specification.
RULES = set("""FileTooSmall HeaderMagic FooterMagic Version ManifestBounds ManifestTooLarge ManifestHash
CborSyntax CborDeterminism CborDuplicateKey CborDepth Schema Name Shape BlobAlignment BlobBounds
BlobOverlap ShardRef ShardName LayoutRule LayoutData DenseSize Encoding Digest ShardIdentity""".split())


def reject(name, data, message, code=BAD, offset=None, lenient="rejects", rule=None):
    """The expected rule is the one at the beginning of the message, unless another is given."""
    put("reject", name, data)
    rule = rule or message.split(":")[0]
    expect["reject"][name] = {"code": code, "offset": offset, "message": message,
                              "lenient": lenient}
    if rule in RULES:
        expect["reject"][name]["rule"] = rule
    else:
        assert code == "TNF_ENOTFOUND", name


def corpus(objects, end=4104, shards=None, attributes=None, **more):
    """A file as in the corpus: filler up to `end`, then the manifest."""
    root = {"objects": objects}
    if shards is not None:
        root["shards"] = shards
    if attributes is not None:
        root["attributes"] = attributes
    return container(cbor(root), b"\xab" * (end - 4096), **more)


def where(data, needle, manifest=8192):
    at = data.index(needle, manifest)
    return at


AB8 = b"\xab" * 8
ONE = {"t": dense(4096, 8, [8])}
T8 = [tensor("t", "u8", [8], AB8)]
SHARD = {"base": {"size": 1 << 20, "digest": "xxh3:00112233445566aa"}}

# --------------------------------------------------------------- the corpus: valid
valid("corpus-minimal.zt", T8, corpus(ONE), 8298)
valid("corpus-aliased-identical-blobs.zt",
      [tensor("a", "u8", [8], AB8), tensor("b", "u8", [8], AB8)],
      corpus({"a": dense(4096, 8, [8]), "b": dense(4096, 8, [8])}), 8354)
valid("corpus-attributes-kitchen-sink.zt", [], corpus(
    {}, 4096, attributes={"f": 1.25, "n": -42, "a": [None, True], "b": b"\1\2\3"}),
    attrs={"f": 1.25, "n": -42, "a": [None, True]})
CSR = thing({"values": part(4096, 12, "f32"), "indices": part(8192, 12, "u32"),
             "indptr": part(12288, 12, "u32")}, [2, 3], "zt.sparse_csr/1")


def csr(columns=(0, 2, 1), rows=(0, 2, 3), **change):
    entry = {**CSR, "parts": {k: dict(v) for k, v in CSR["parts"].items()}}
    for key, value in change.items():
        if value is None:
            del entry["parts"][key]
        else:
            entry["parts"][key] = value
    heap = bytearray(b"\xab" * 8204)
    heap[4096:4108] = struct.pack("<3I", *columns)
    heap[8192:8204] = struct.pack("<3I", *rows)
    return container(cbor({"objects": {"t": entry}}), bytes(heap))


valid("corpus-csr-data-valid.zt", [tensor("t", "f32", [2, 3], None, layout="sparse_csr/1")], csr())
valid("corpus-data-shard.zt", [], MAGIC + footer(0, 0, 0), 48, attrs={"ztensor.data_shard": True})
valid("corpus-empty-objects.zt", [], corpus({}, 4096), 4146, attrs={
    "ztensor.content_digest":
        "sha256:cdbccfb030f9f9559ff19c0bd40bda2dc6cd34fb7546baba75837e2cd45b0733"})
valid("corpus-nonzero-reserved-ignored.zt", T8, corpus(ONE, reserved=1), 8298)
valid("corpus-scalar.zt", [tensor("t", "f64", [], AB8)],
      corpus({"t": dense(4096, 8, [], "f64")}), 8298)
valid("corpus-unknown-layout-structural.zt",
      [tensor("t", "u8", [8], None, layout="x.custom/1")],
      corpus({"t": thing({"x": part(4096, 8), "y": part(8192, 8)}, [8], "x.custom/1")}, 8200))
valid("corpus-unknown-ltype-structural.zt", [tensor("t", "x.future/1", [999], None)],
      corpus({"t": dense(4096, 8, [999], type="x.future/1")}), 8316)
valid("corpus-verify-ok.zt", T8, corpus({"t": dense(4096, 8, [8], digest=digest(AB8))}), 8327,
      attrs={"ztensor.content_digest":
             "sha256:de56f9f8d1dbc181d52dd53b1ddf097b496c8e152a8333939c26f34a678f2cc5"})
valid("corpus-view-unknown-encoding-refused.zt", [tensor("t", "u8", [8], None)],
      corpus({"t": dense(4096, 8, [8], encoding="x.z/1", decoded_length=8)}), 8329,
      warnings=1, problems=True)
valid("corpus-zero-size-tensor.zt", [tensor("t", "f32", [0, 4], b"")],
      corpus({"t": dense(4096, 0, [0, 4], "f32")}, 4096), 4204)
basic = canonical({"emb": ("dense", [2, 2], {"data": ("f32", None, struct.pack("<4f", 1, 2, 3, 4))},
                           None),
                   "head": ("dense", [2, 2], {"data": ("f32", None, struct.pack("<4f", 1, 2, 3, 4))},
                            None),
                   "norm": ("dense", [3], {"data": ("f16", None, b"\0\x3c" * 3)}, None)})
valid("canonical-tied.zt", [
    tensor("emb", "f32", [2, 2], struct.pack("<4f", 1, 2, 3, 4)),
    tensor("head", "f32", [2, 2], struct.pack("<4f", 1, 2, 3, 4)),
    tensor("norm", "f16", [3], b"\0\x3c" * 3)], basic)

# ---------------------------------------------- the corpus: shards (looked for beside the file)
LOCAL = {"a": dense(4096, 8, [8]), "b": dense(4096, 8, [8], shard="base")}
reject("corpus-shards-table.zt", corpus({"t": dense(4096, 8, [8], shard="base")}, 4096,
                                        shards=SHARD),
       "corpus-shards-table-base.zt", "TNF_ENOTFOUND", lenient="opens")
reject("corpus-local-and-foreign.zt", corpus(LOCAL, shards=SHARD),
       "corpus-local-and-foreign-base.zt", "TNF_ENOTFOUND", lenient="opens")
base = corpus({"w": dense(4096, 8, [8], digest=digest(AB8))})
table = {"base": {"size": len(base), "digest": digest(base)}}
overlay = corpus({"a": dense(4096, 4, [4]),
                  "b": dense(4096, 8, [2], "f32", shard="base", digest=digest(AB8))}, 4100,
                 shards=table)
put("valid", "overlay/model-base.zt", base)
put("valid", "overlay/model.zt", overlay)
expect["valid"]["overlay/model.zt"] = {
    "format": "ztensor2", "warnings": 0, "size": len(overlay) + len(base),
    "tensors": [tensor("a", "u8", [4], AB8[:4]), tensor("b", "f32", [2], AB8)],
    "attrs": {"ztensor.shards": table}}
raw = MAGIC.ljust(4096, b"\0") + bytes(range(16)) + footer(0, 0, 0)
split = corpus({"t": dense(4096, 16, [4], "u32", shard="data")}, 4096,
               shards={"data": {"size": len(raw), "digest": digest(raw)}})
put("valid", "split/model-data.zt", raw)
put("valid", "split/model.zt", split)
expect["valid"]["split/model.zt"] = {
    "format": "ztensor2", "warnings": 0, "size": len(split) + len(raw),
    "tensors": [tensor("t", "u32", [4], bytes(range(16)))]}


def sharded(size):
    return corpus({"t": dense(4096, 8, [8], shard="x")}, 4096,
                  shards={"x": {"size": size, "digest": digest(base)}})


reject("shard-size/model.zt", sharded(len(base) + 1),
       "ShardIdentity: the shard 'x' has 8327 bytes, not the 8328", lenient="opens")
put("reject", "shard-size/model-x.zt", base)
reject("shard-broken/model.zt", sharded(len(base)),
       "ShardIdentity: model-x.zt: ztensor2: ManifestHash", lenient="opens")
put("reject", "shard-broken/model-x.zt", base[:-41] + b"\xff" + base[-40:])

for name, text in [("path", "xxh3:../../secret"), ("slash", "a/../b:00"), ("none", "xxh3:")]:
    reject(f"shard-digest-{name}.zt", corpus(ONE, shards={"x": {"size": 48, "digest": text}}), "Schema: a digest")
# Every byte of a shard counts, also those that are in no part.
odd = base[:5000] + b"\1" + base[5001:]
reject("shard-digest/model.zt", sharded(len(base)), "the bytes of the shard 'x' do not match their xxh3-64",
       "TNF_EDIGEST", rule="ShardIdentity", lenient="opens")
put("reject", "shard-digest/model-x.zt", odd)

# --------------------------------------------------------------- the corpus: reject
for name, attrs, message in [
        ("attribute-key-empty", {"": 0}, "Name: the name of an attribute has 0 bytes"),
        ("attribute-key-nul", {"a\0b": 0}, "Name: the name of an attribute has 3 bytes"),
        ("attribute-key-not-text", {1: 0}, "Schema: the name of an attribute is not text")]:
    data = corpus(ONE, attributes=attrs)
    reject(f"corpus-{name}.zt", data, message, offset=where(data, cbor("attributes")) + 12)
data = corpus(ONE, attributes=[])
reject("corpus-attributes-not-a-map.zt", data, "Schema: ", offset=where(data, cbor("attributes")) + 11)
reject("corpus-object-attributes-not-a-map.zt",
       corpus({"t": thing({"data": part(4096, 8)}, [8], attributes=1)}), "Schema: ")
blob = cbor("blob")


def at_blob(data, nth=0):
    at = 4096
    for _ in range(nth + 1):
        at = data.index(blob, at) + len(blob)
    return at


for name, place in [("blob-array-with-three-elements", [0, 4096, 8]), ("schema-blob-arity", [4096])]:
    data = corpus({"t": thing({"data": {"blob": place, "dtype": "u8"}}, [8])})
    reject(f"corpus-{name}.zt", data, "Schema: a blob is not an offset and a length",
           offset=at_blob(data))
for name, place in [("misaligned", 4100), ("offset-zero", 0)]:
    data = corpus({"t": dense(place, 8, [8])}, 4112)
    reject(f"corpus-blob-{name}.zt", data, f"BlobAlignment: 't' begins at {place},",
           offset=at_blob(data))
data = corpus({"t": dense(4096, 1 << 40, [8])})
reject("corpus-blob-out-of-bounds.zt", data, "BlobBounds: ", offset=at_blob(data))
OVER = {"a": dense(4096, 8192, [8192]), "b": dense(8192, 8, [8])}
data = corpus(OVER, 12288)
reject("corpus-blob-partial-overlap.zt", data, "BlobOverlap: 'a' and 'b' share bytes from 8192 on",
       offset=at_blob(data, 1))
data = corpus({k: dense(*v["parts"]["data"]["blob"], v["shape"], shard="base") for k, v in OVER.items()},
              4096, shards=SHARD)
reject("corpus-shard-blob-partial-overlap.zt", data, "BlobOverlap: 'a' and 'b'",
       offset=at_blob(data, 1))
reject("corpus-bool-invalid-byte.zt", corpus({"t": dense(4096, 8, [8], type="bool")}),
       "element 0 of 'data' is 171, which is not a bool", offset=4096, lenient="opens",
       rule="LayoutData")
reject("corpus-f4-nonzero-odd-nibble.zt", corpus({"t": dense(4096, 3, [5], type="f4_e2m1")}, 4099),
       "bits are set after the last element", offset=4098, lenient="opens", rule="LayoutData")


def raw_manifest(manifest, **more):
    return container(manifest, **more)


deep = b"\x81" * 40 + b"\0"
for name, manifest, message, offset in [
        ("cbor-depth", deep, "CborDepth: ", 4096 + 33),
        ("cbor-duplicate-key", b"\xa2\x61a\0\x61a\0", "CborDuplicateKey: ", None),
        ("cbor-indefinite", b"\x9f\xff", "CborSyntax: ", 4096),
        ("cbor-tag", b"\xc0\0", "CborSyntax: ", 4096),
        ("cbor-trailing-bytes", b"\xa0\0", "CborSyntax: ", 4097),
        ("cbor-non-shortest", b"\x18\5", "CborDeterminism: ", 4096),
        ("cbor-unsorted-keys", b"\xa2\x61b\0\x61a\0", "CborDeterminism: ", None),
        ("schema-missing-objects", b"\xa0", "Schema: the manifest has no objects", 4096)]:
    reject(f"corpus-{name}.zt", raw_manifest(manifest), message, offset=offset,
           code=BAD)
reject("corpus-csr-index-out-of-cols.zt", csr(columns=(0, 3, 1)), "column 3, but there are only 3 columns",
       offset=8196, lenient="opens", rule="LayoutData")
reject("corpus-csr-indptr-not-zero-based.zt", csr(rows=(1, 2, 3)), "the first row begins at 1", lenient="opens",
       rule="LayoutData")
reject("corpus-csr-row-not-increasing.zt", csr(columns=(2, 0, 1)), "row 0", lenient="opens", rule="LayoutData")
for name, change in [("indptr-count", {"indptr": part(12288, 8, "u32")}), ("missing-part", {"indptr": None}),
                     ("signed-indices", {"indices": part(8192, 12, "i32")}),
                     ("values-size", {"values": part(4096, 8, "f32")})]:
    data = csr(**change)
    reject(f"corpus-csr-{name}.zt", data, "LayoutRule: 't'", offset=where(data, cbor("t"), 12288))
reject("corpus-data-shard-nonzero-offset.zt", MAGIC + footer(4096, 0, 0), "ManifestBounds: ", offset=8)
data = corpus({"t": thing({"data": part(4096, 8), "more": part(4096, 8)}, [8])})
reject("corpus-dense-extra-part.zt", data, "LayoutRule: 't' is dense", offset=where(data, cbor("t")))
data = corpus({"t": dense(4096, 8, [3], "f32")})
reject("corpus-dense-size-mismatch.zt", data, "DenseSize: 't'", offset=where(data, cbor("t")))
reject("corpus-dense-f4-size-mismatch.zt", corpus({"t": dense(4096, 4, [5], type="f4_e2m1")}),
       "DenseSize: 't'")
reject("corpus-file-too-small.zt", MAGIC + b"\0\0", "FileTooSmall: ", SHORT, 10)
good = corpus(ONE)
reject("corpus-footer-magic.zt", good[:-1] + b"\0", "FooterMagic: ", SHORT, len(good) - 8)
reject("corpus-version-unsupported.zt", corpus(ONE, version=3), "Version: version 3", UNSUPPORTED,
       len(good) - 16)
reject("corpus-manifest-hash-mismatch.zt", corpus(ONE, hash=1), "ManifestHash: ", offset=len(good) - 24)
reject("corpus-manifest-misaligned.zt", corpus(ONE, at=8200), "BlobAlignment: the manifest",
       offset=len(good) + 8 - 40)
reject("corpus-manifest-out-of-bounds.zt", corpus(ONE, length=1 << 20), "ManifestBounds: ",
       offset=len(good) - 40)
reject("corpus-manifest-too-large.zt", corpus(ONE, length=1 << 31), "ManifestTooLarge: ", LIMIT,
       len(good) - 32)
for name, key in [("empty", ""), ("nul", "a\0b"), ("too-long", "n" * 1025)]:
    data = corpus({key: dense(4096, 8, [8])})
    reject(f"corpus-name-{name}.zt", data, "Name: the name of a tensor has", offset=8192 + 10)
for name, entry, message in [
        ("digest-uppercase-hex", {"digest": "xxh3:F88E5E79BD7C033D"}, "Schema: a digest"),
        ("encoding-without-decoded-length", {"encoding": "x.z/1"}, "Schema: a part has only one of encoding and"),
        ("ltype-dtype-mismatch", {"type": "bool", "dtype": "f32"}, "Schema: 't' has the type 'bool'"),
        ("unknown-dtype", {"dtype": "f4"}, "Schema: unknown dtype 'f4'")]:
    reject(f"corpus-schema-{name}.zt", corpus(
        {"t": thing({"data": {**part(4096, 8), **entry}}, [2 if "f32" in entry.values() else 8])}),
        message)
reject("corpus-shape-product-overflow.zt", corpus({"t": dense(4096, 8, [1 << 33, 1 << 33])}), "Shape: ")
reject("corpus-shape-rank-65.zt", corpus({"t": dense(4096, 1, [1] * 65)}), "Shape: ")
for name, label in [("empty", ""), ("leading-dot", ".a"), ("separator", "a/b"), ("traversal", "..")]:
    reject(f"corpus-shard-name-{name}.zt", corpus(ONE, shards={label: SHARD["base"]}), "ShardName: ")
data = corpus({"t": dense(4096, 8, [8], shard="gone")})
reject("corpus-shard-ref-not-in-table.zt", data, "ShardRef: 't' is in the shard 'gone'",
       offset=at_blob(data))
reject("corpus-shard-table-key-not-text.zt", corpus(ONE, shards={1: SHARD["base"]}), "Schema: ")
reject("corpus-verify-digest-mismatch.zt", corpus({"t": dense(4096, 8, [8], digest="xxh3:0123456789abcdef")}),
       "do not match their xxh3-64", "TNF_EDIGEST", 4096, "opens", "Digest")

# ------------------------------------------------- beyond the corpus: every type, attributes …
WIDTHS = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u64": 8,
          "u32": 4, "u16": 2, "u8": 1}
LOGICAL = {"bool": ("u8", 8), "f8_e4m3fn": ("u8", 8), "f8_e5m2": ("u8", 8), "f8_e4m3fnuz": ("u8", 8),
           "f8_e5m2fnuz": ("u8", 8), "f8_e8m0": ("u8", 8), "f4_e2m1": ("u8", 4),
           "complex64": ("f32", 64), "complex128": ("f64", 128)}
objects, heap, tensors = {}, b"", []
for name in sorted([*WIDTHS, *LOGICAL]):
    dtype, bits = LOGICAL.get(name, (name, 8 * WIDTHS.get(name, 0)))
    size = 6 * bits // 8
    data = bytes(i % 2 for i in range(size)) if name == "bool" else bytes(range(size))
    heap = heap.ljust(up(len(heap), 4096), b"\0")
    objects[name] = dense(4096 + len(heap), size, [2, 3], dtype, digest=digest(data),
                          **({"type": name} if name in LOGICAL else {}))
    heap += data
    tensors.append(tensor(name, IDS.get(name, name), [2, 3], data))
valid("types.zt", tensors, container(cbor({"objects": objects}), heap))

valid("attributes.zt", [tensor("t", "u8", [8], AB8, attrs={"scale": 0.1, "k": [1, -1, {"x": None}]})],
      corpus({"t": thing({"data": part(4096, 8)}, [8],
                         attributes={"scale": 0.1, "k": [1, -1, {"x": None}]})},
             attributes={"a": 1 << 63, "b": "text", "longer": {"deep": [[[True, False]]]}, "h": 1.5,
                         "i": -(1 << 63), "s": 3.4028234663852886e38, "\u00e9": b"\0"}),
      attrs={"a": 1 << 63, "b": "text", "longer": {"deep": [[[True, False]]]}, "h": 1.5})
valid("attributes-odd.zt", T8, corpus(ONE, attributes={
    "intkeys": {1: 2}, "huge": Raw(b"\x3b" + b"\xff" * 8), "nan": float("nan"), "sub": 5.960464477539063e-08,
    "nested": Raw(b"\x81" * 29 + b"\0")}))
valid("names.zt", [tensor(n, "u8", [8], AB8) for n in sorted(
    ["b", "aa", "n" * 1024, "\u65e5\u672c", "a b\n", "x/y"], key=str.encode)],
    corpus({n: dense(4096, 8, [8]) for n in ["b", "aa", "n" * 1024, "\u65e5\u672c", "a b\n", "x/y"]}))
valid("future-keys.zt", T8, container(cbor({
    "objects": {"t": {**dense(4096, 8, [8]), "new": {"a": [1]}, 7: 8, "parts": {
        "data": {**part(4096, 8), "else": None, 3: 4}}}}, "zz": 1, 5: 6}), AB8), warnings=1)
valid("digest-sha256.zt", T8, corpus({"t": dense(
    4096, 8, [8], digest="sha256:" + hashlib.sha256(AB8).hexdigest())}))
valid("digest-unknown.zt", T8, corpus({"t": dense(4096, 8, [8], digest="md5:00ff")}))
heap = bytearray(16384)
heap[0:6] = struct.pack("<3H", 1, 2, 3)
heap[4096:4120] = struct.pack("<6I", 0, 1, 4, 2, 0, 3)
valid("coo.zt", [tensor("t", "u16", [5, 4], None, layout="sparse_coo/1")], container(cbor({"objects": {
    "t": thing({"values": part(4096, 6, "u16"), "coords": part(8192, 24, "u32")}, [5, 4],
               "zt.sparse_coo/1")}}), bytes(heap[:4120])))
QUANT = {"bits": 4, "group_size": 4, "axis": 1, "scale_form": "f32_factors",
         "packing": {"word": "u32", "order": "lsb_first", "per_word": 8},
         "zero_point": {"form": "implied", "value": 8}}
valid("quant-group.zt", [tensor("t", "u32", [2, 8], None, layout="quant_group/1")], container(cbor({
    "objects": {"t": thing({"data": part(4096, 8, "u32"), "scales": part(8192, 16, "f32")}, [2, 8],
                           "zt.quant_group/1", attributes=QUANT)}}), bytes(range(256)) * 17))
MX = {"block_size": 32, "scale_form": "e8m0_exponent"}
valid("mx.zt", [tensor("t", "f4_e2m1", [64], None, layout="mx/1")], container(cbor({
    "objects": {"t": thing({"data": part(4096, 32, "u8", type="f4_e2m1"),
                            "scales": part(8192, 2, "u8", type="f8_e8m0")}, [64], "zt.mx/1",
                           attributes=MX)}}), b"\x7f" * 4098))
GGUF = {"elems_per_block": 32, "block_bytes": 18}
gguf = {"t": thing({"data": part(4096, 36)}, [2, 32], "gguf.q4_0/1", attributes=GGUF)}
valid("gguf.zt", [tensor("t", "u8", [2, 32], None, layout="gguf.q4_0/1")], corpus(gguf, 4132))
for name, change, why in [("block", {"block_bytes": 20}, "blocks of q4_0 have 32 elements in 18 bytes"),
                          ("missing", {"elems_per_block": None}, "no whole number")]:
    reject(f"gguf-{name}.zt", corpus({"t": {**gguf["t"], "attributes": {**GGUF, **change}}}, 4132),
           f"LayoutRule: 't': ", lenient="opens")
reject("gguf-size.zt", corpus({"t": {**gguf["t"], "shape": [4, 32]}}, 4132), "LayoutRule: 't': 4 blocks",
       lenient="opens")
reject("quant-bits.zt", container(cbor({
    "objects": {"t": thing({"data": part(4096, 8, "u32"), "scales": part(8192, 16, "f32")}, [2, 8],
                           "zt.quant_group/1", attributes={**QUANT, "bits": 3})}}),
    bytes(4112)), "LayoutRule: 't': codes of 3 bits", lenient="opens")
# Words of our model have no meaning in the file.
valid("not-our-words.zt", [tensor("t", "?c64", [8], None, layout="?strings/1")],
      corpus({"t": thing({"x": part(4096, 8, "f32", type="c64")}, [8], "strings/1")}))
# A manifest before the blobs, another after them: only the one that the footer refers to counts.
old = cbor({"objects": {"gone": dense(4096, 8, [8])}})
heap = AB8.ljust(4096, b"\0") + old
valid("two-generations.zt", T8, container(cbor({"objects": ONE}), heap))

# Two faults: the one that the specification checks first is reported.
reject("first-cbor-then-schema.zt", container(cbor({"objects": 1}) + b"\0"), "CborSyntax: ")
reject("first-schema-then-name.zt", corpus({"": {**dense(4096, 8, [8]), "shape": 1},
                                            "b": dense(4100, 8, [8])}), "Name: ")
reject("first-name-order.zt", corpus({"b": dense(4100, 8, [8]), "aa": dense(4096, 8, [9])}, 4112),
       "DenseSize: 'aa'")
reject("first-shape-then-blob.zt", corpus({"t": dense(4100, 8, [1 << 33, 1 << 33])}, 4112), "Shape: ")
reject("first-place-then-type.zt", corpus({"t": dense(0, 8, [8], "f32", type="bool")}), "BlobAlignment: ")
reject("first-layout-then-overlap.zt", corpus({**OVER, "c": dense(4096, 8, [9])}, 12288), "DenseSize: 'c'")
reject("float-too-wide.zt", container(b"\xa2\x67objects\xa0\x6aattributes\xa1\x61a\xfa\x3f\x80\0\0"),
       "CborDeterminism: ")
reject("nan-other.zt", container(b"\xa2\x67objects\xa0\x6aattributes\xa1\x61a\xf9\x7e\x01"), "CborDeterminism: ")
reject("blob-over-manifest.zt", corpus({"t": dense(8192, 8, [8])}), "BlobOverlap: ")
reject("blob-end-wraps.zt", corpus({"t": dense((1 << 64) - 4096, 8192, [8192])}), "BlobBounds: ")

# Parts that are not validly encoded: the error is raised when they are read.
EMPTY_TABLE = bytes.fromhex("5e2a4d180900000000000000" "00" "b1ea928f")
for name, stored, decoded in [("short", EMPTY_TABLE[1:], 0), ("magic", EMPTY_TABLE[:-1] + b"\0", 0),
                              ("reserved", EMPTY_TABLE[:12] + b"\1" + EMPTY_TABLE[13:], 0),
                              ("sum", EMPTY_TABLE, 5), ("gap", b"\0" + EMPTY_TABLE, 0),
                              ("frame", bytes(9) + bytes.fromhex("5e2a4d1811000000" "09000000" "05000000"
                                                                 "01000000" "00" "b1ea928f"), 5)]:
    reject(f"encoding-{name}.zt", container(cbor({"objects": {"t": dense(
        4096, len(stored), [decoded], encoding="zt.zstd-seekable/1", decoded_length=decoded)}}), stored),
        "", rule="Encoding", lenient="opens")

# ------------------------------------------------- files of the reference, and its edge cases
U8 = {"01": b"\1", "02": b"\2"}
valid("ref-empty.zt", [])
valid("ref-emptyattr.zt", [], attrs={"ztensor.empty_attributes": True})
valid("ref-order.zt", [tensor("aa", "u8", [1], b"\1"), tensor("b", "u8", [1], b"\2")], attrs={
    "ztensor.content_digest":
        "sha256:db1189165d2b804756e6a9b73e61e02aeb6d5b58bc620c122190ee139399ff0f"})
valid("ref-alias.zt", [tensor("a", "f32", [1], bytes(4)), tensor("b", "u8", [4], bytes(4))])
valid("ref-then_zero.zt", [tensor("a", "u8", [4], b"\1\2\3\4"), tensor("b", "f32", [0], b"")])
valid("ref-only_zero.zt", [tensor("a", "f32", [0], b"")])
reference = {
    "empty": {}, "order": {"aa": ("dense", [1], {"data": ("u8", None, b"\1")}, None),
                           "b": ("dense", [1], {"data": ("u8", None, b"\2")}, None)},
    "alias": {"a": ("dense", [1], {"data": ("f32", None, bytes(4))}, None),
              "b": ("dense", [4], {"data": ("u8", None, bytes(4))}, None)},
    "then_zero": {"a": ("dense", [4], {"data": ("u8", None, b"\1\2\3\4")}, None),
                  "b": ("dense", [0], {"data": ("f32", None, b"")}, None)},
    "only_zero": {"a": ("dense", [0], {"data": ("f32", None, b"")}, None)}}
for name, model in reference.items():
    assert canonical(model) == (HERE / "valid" / f"ref-{name}.zt").read_bytes(), name
for name in "append c2 nfcattr stream_dup zero_then zstd".split():
    expect["valid"][f"ref-{name}.zt"] = {"format": "ztensor2", "version": "2", "warnings": 0}
for name in "digest_ok d2 empty_shards intkey_in_part unknown_root_key zero_off_past_manifest".split():
    expect["valid"][f"ref-{name}.zt"] = {"format": "ztensor2", "version": "2", "warnings": int("key" in name)}
reject("ref-badattr.zt", None, "Schema: ", offset=65557)
reject("ref-bool_open.zt", None, "which is not a bool", offset=4096, lenient="opens", rule="LayoutData")
reject("ref-digest_short.zt", None, "has 0 bytes", "TNF_EDIGEST", lenient="opens", rule="Digest")
for name, message, lenient in [
        ("coo_bad_metadata", "LayoutRule: ", "opens"), ("gguf_bad_metadata", "LayoutRule: ", "opens"),
        ("dense_overflow", "DenseSize: ", "opens"), ("dense_big_nooverflow", "DenseSize: ", "rejects"),
        ("no_parts", "Schema: ", "rejects"), ("root_array", "Schema: ", "rejects"),
        ("shard_small", "Schema: ", "rejects"), ("undefined", "CborSyntax: ", "rejects"),
        ("zero_off_oob", "BlobBounds: ", "rejects")]:
    reject(f"ref-{name}.zt", None, message, lenient=lenient)

# ------------------------------------------------- canonical form
def changed(at, byte, data):
    return data[:at] + bytes([byte]) + data[at + 1:]


def again(manifest, heap, **more):
    """A file whose heap begins at 65536."""
    return container(cbor(manifest), bytes(61440) + heap, **more)


ONE_U8 = {"a": ("dense", [1], {"data": ("u8", None, b"\1")}, None)}
A1 = [tensor("a", "u8", [1], b"\1")]
A1_AT = {"digest": digest(b"\1")}
perfect = canonical(ONE_U8)
valid("canonical-one.zt", A1, perfect, canonical=True)
valid("canonical-attrs.zt", A1, canonical(ONE_U8, {"b": 1, "aa": [True]}), canonical=True)
valid("canonical-not-padding.zt", A1, changed(70000, 1, perfect), canonical="between blobs")
valid("canonical-not-head.zt", A1, changed(8, 1, perfect), canonical="between blobs")
valid("canonical-not-reserved.zt", A1, changed(len(perfect) - 12, 1, perfect), canonical="reserved")
valid("canonical-not-gap.zt", A1, again({"objects": {"a": dense(65536, 1, [1], **A1_AT)}}, b"\1",
                                        at=196608), canonical="the manifest begins at 196608, not at 131072")
valid("canonical-not-last.zt", A1, again({"objects": {"a": dense(131072, 1, [1], **A1_AT)}},
                                         bytes(65536) + b"\1", at=196608), canonical="'a' begins at 131072, not")
valid("canonical-not-order.zt", [tensor("a", "u8", [1], b"\1"), tensor("b", "u8", [1], b"\2")],
      again({"objects": {"a": dense(131072, 1, [1], **A1_AT), "b": dense(65536, 1, [1], digest=digest(b"\2"))}},
            b"\2" + bytes(65535) + b"\1", at=196608), canonical="'a' begins at 131072, not at 65536")
valid("canonical-not-attrs.zt", A1, again({"objects": {"a": {**dense(65536, 1, [1], **A1_AT), "attributes": {}}}},
                                          b"\1", at=131072), canonical="has an empty map of attributes")
valid("canonical-not-digest.zt", A1, again({"objects": {"a": dense(65536, 1, [1])}}, b"\1", at=131072),
      canonical="without an xxh3")
valid("canonical-not-shards.zt", A1, again({"objects": {"a": dense(65536, 1, [1], **A1_AT)}, "shards": {}}, b"\1",
                                           at=131072), canonical="table of shards")
for name, spelled in [("nfd", "e\u0301"), ("singleton", "\u212b"), ("reordered", "\u00e2\u0323")]:
    valid(f"canonical-not-{name}.zt", [tensor(spelled, "u8", [1], b"\1")],
          canonical({spelled: ONE_U8["a"]}), canonical="normal form C")
valid("canonical-nfc.zt", [tensor("\u1eb9\u0301\uac01", "u8", [1], b"\1")],
      canonical({"\u1eb9\u0301\uac01": ONE_U8["a"]}), canonical=True)
tail = perfect[:-40] + b"\0" + perfect[-40:]
valid("canonical-not-tail.zt", A1, tail, canonical="the footer does not follow")
for name in "canonical-tied ref-empty ref-emptyattr ref-order ref-alias ref-then_zero ref-only_zero ref-c2 ref-zero_then".split():
    expect["valid"][name + ".zt"]["canonical"] = True  # the reference denies the last one; see its writer
for name, why in [("ref-stream_dup", "the place of a part with the same bytes"), ("ref-nfcattr", "normal form C"),
                  ("ref-append", "'b' begins at 196608"), ("ref-zstd", "is encoded"), ("future-keys", "unknown key"),
                  ("corpus-minimal", "'t' begins at 4096, not at 65536"), ("corpus-data-shard", "a data shard"),
                  ("digest-sha256", "without an xxh3"), ("overlay/model", "table of shards")]:
    expect["valid"][name + ".zt"]["canonical"] = why

(HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True, allow_nan=False) + "\n")
print(len(expect["valid"]), "valid,", len(expect["reject"]), "to reject")
