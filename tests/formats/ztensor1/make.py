#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of ztensor1, and the expected results.

The Python packages of those versions wrote real_*. case_39_magic.zt is a 0.1 file with the magic
number of 1.x. sheet_* have manifests whose bytes are those of the libraries' own serialisers. This
script makes all others.
"""
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "ztensor0"))
from zt import *  # noqa: E402

out = Folder(HERE, "ztensor1")
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
MAGIC = b"ZTEN1000"
DATA = bytes(range(16))


def end_1_0(index):
    return tail(index)


def end_1_1(index):
    return tail(index) + MAGIC


def one(manifest, end=end_1_1, data=DATA):
    """One blob at 64 and any manifest."""
    return MAGIC + bytes(56) + data + end(manifest if isinstance(manifest, bytes) else cbor(manifest))


class Writer:
    """Writes a file like the library of 1.2."""

    def __init__(self):
        self.blobs, self.objects = Blobs(MAGIC), {}

    def add(self, name, shape, parts, layout="dense", attrs=None):
        """parts: role → (dtype, stored bytes, {more fields})."""
        components = {}
        for role, (dtype, stored, more) in parts.items():
            k = {"dtype": dtype}
            if "type" in more:
                k["type"] = more["type"]
            k["offset"] = self.blobs.add(stored)
            k["length"] = len(stored)
            k.update((f, more[f]) for f in ("uncompressed_length", "encoding", "digest") if f in more)
            components[role] = k
        o = {"shape": shape, "format": layout}
        if attrs:
            o["attributes"] = dict(sorted(attrs.items()))
        o["components"] = dict(sorted(components.items()))
        self.objects[name] = o

    def done(self, version="1.2.0", attrs=None):
        m = {"version": version}
        if attrs:
            m["attributes"] = dict(sorted(attrs.items()))
        m["objects"] = dict(sorted(self.objects.items(), key=lambda x: x[0].encode()))
        return bytes(self.blobs.data) + end_1_1(cbor(m))


def plain(**more):
    """t, f32 [2,2], at 64."""
    k = {"dtype": "f32", "offset": 64, "length": 16}
    k.update(more)
    return k


def manifest(component=None, version="1.2.0", **fields):
    o = {"shape": [2, 2], "format": "dense", "components": {"data": component or plain()}}
    o.update(fields)
    return {"version": version, "objects": {"t": o}}


T = listed("t", "f32", [2, 2], DATA)
START = 80
ENTRY = START + len(cbor(manifest())) - len(cbor(manifest()["objects"]["t"]))  # the offset of the tensor's map
PART = START + len(cbor(manifest())) - len(cbor(plain()))

# ------------------------------------------------------------ real files
def dense(name, dtype, shape, data, attrs=None):
    return listed(name, dtype, shape, data, attrs)


def packed(name, shape, nbytes, layout, attrs=None):
    """A tensor of several parts; the dtype that ls shows is that of one part."""
    want = dict(listed(name, None, shape, None, attrs, layout), nbytes=nbytes)
    del want["dtype"]
    return want


types = [dense("t." + t, t, [2, 3], values(t, 6, 0 if t == "bool" else 1)) for t, _, _ in TYPES]
for version, shown in (("1.0.1", "1.0"), ("1.1.1", "1.1.0")):
    out.valid("real_%s_package.zt" % version, None, shown,
              types + [dense("z", "f32", [1000], bytes(4000)), packed("csr", [3, 3], 68, "sparse_csr/1"),
                       packed("coo", [3, 3], 60, "sparse_coo/1")],
              attrs={"ztensor.generator": "zTensor-Rust v0.1.0"} if shown == "1.0" else {})
out.valid("real_1.2.3_package.zt", None, "1.2.0", types + [
    dense("z", "f32", [1000], bytes(4000)), dense("z9", "u8", [1000], bytes(1000)),
    packed("csr", [3, 3], 68, "sparse_csr/1"), packed("coo.zstd", [3, 3], 60, "sparse_coo/1"),
    packed("quant", [8, 8], 44, "quantized_group", {"bits": 4, "group_size": 16, "packing": "lsb"}),
    dense("fp8", "f8_e4m3fn", [4], bytes(range(4)),
          {"scale": 0.5, "note": "hi", "deep": {"a": [1, -2, None, True]}}),
    dense("cplx", "c64", [2], struct.pack("<4f", 0, 1, 2, 3))])

# ------------------------------------------------------------ bytes of the libraries' own serialisers
M10 = ("a46776657273696f6e63312e306967656e657261746f72737a54656e736f722d527573742076302e312e306a617474726962757465"
       "73a06774656e736f7273a16174a465647479706567666c6f6174333265736861706582020266666f726d61746564656e73656a636f"
       "6d706f6e656e7473a16464617461a3666f66667365741840666c656e6774681066646967657374716372633332633a307844394339"
       "30384542")
E10 = cbor({"version": "1.0", "generator": "zTensor-Rust v0.1.0", "attributes": {}, "tensors": {}})
M11 = ("a26776657273696f6e65312e312e30676f626a65637473a16174a365736861706582020266666f726d61746564656e73656a636f6d"
       "706f6e656e7473a16464617461a56564747970656462663136666f66667365741840666c656e6774681068656e636f64696e67647a"
       "73746466646967657374716372633332633a30784439433930384542")
E11 = cbor({"version": "1.1.0", "objects": {}})
GENERATOR = {"ztensor.generator": "zTensor-Rust v0.1.0"}
assert crc32c(DATA) == 0xD9C908EB  # so both manifests have this digest
out.valid("sheet_1.0_empty.zt", MAGIC + end_1_0(E10), "1.0", [], attrs=GENERATOR)
out.valid("sheet_1.0_one.zt", one(bytes.fromhex(M10), end_1_0), "1.0", [T], attrs=GENERATOR)
out.valid("sheet_1.1_empty.zt", MAGIC + end_1_1(E11), "1.1.0", [])
# Its digest is that of bytes 0 to 15, which are not zstd. So the file opens, but the tensor cannot
# be read.
out.reject("sheet_1.1_one.zt", one(bytes.fromhex(M11)), BAD, 64, "zstd", "opens")

# ------------------------------------------------------------ 1.0
def v1_0(tensors, **more):
    m = {"version": "1.0", "generator": "zTensor-Rust v0.1.0", "attributes": {}, "tensors": tensors}
    m.update(more)
    return m


blobs, tensors, want = Blobs(MAGIC), {}, []
for t, name, _ in TYPES:
    tensors["t." + t] = {"dtype": name, "shape": [6], "format": "dense", "components": {
        "data": {"offset": blobs.add(values(t, 6)), "length": len(values(t, 6))}}}
    want.append(listed("t." + t, t, [6], values(t, 6)))
frame = zstd_raw(values("f32", 4))
tensors["zstd"] = {"dtype": "float32", "shape": [2, 2], "format": "dense", "components": {
    "data": {"offset": blobs.add(frame), "length": len(frame), "encoding": "zstd", "digest": crc_text(frame)}}}
want.append(listed("zstd", "f32", [2, 2], values("f32", 4)))
csr = {r: {"offset": blobs.add(d), "length": len(d)} for r, d in (
    ("values", values("f64", 3)), ("indices", struct.pack("<3Q", 1, 0, 2)), ("indptr", struct.pack("<4Q", 0, 1, 3, 3)))}
tensors["csr"] = {"dtype": "float64", "shape": [3, 3], "format": "sparse_csr", "components": dict(sorted(csr.items()))}
want.append(packed("csr", [3, 3], 80, "sparse_csr/1"))
coo = {r: {"offset": blobs.add(d), "length": len(d)} for r, d in (
    ("values", values("i8", 3)), ("coords", struct.pack("<6Q", 0, 1, 1, 1, 0, 2)))}
tensors["coo"] = {"dtype": "int8", "shape": [3, 3], "format": "sparse_coo", "components": dict(sorted(coo.items()))}
want.append(packed("coo", [3, 3], 51, "sparse_coo/1"))
out.valid("v1.0.zt", bytes(blobs.data) + end_1_0(cbor(v1_0(dict(sorted(tensors.items())), attributes={"who": "me"}))),
          "1.0", want, attrs=dict(GENERATOR, who="me"))
frames = {r: zstd_raw(d) for r, d in (("values", values("f32", 3)), ("indices", struct.pack("<3Q", 1, 0, 2)),
                                      ("indptr", struct.pack("<4Q", 0, 1, 3, 3)))}
blobs = Blobs(MAGIC)
csr = {r: {"offset": blobs.add(d), "length": len(d), "encoding": "zstd"} for r, d in frames.items()}
# Only 1.2 stores the lengths of the parts. The length of indptr follows from the shape; the others
# are decoded to count them.
out.valid("v1.0_sparse_zstd.zt", bytes(blobs.data) + end_1_0(cbor(v1_0({"csr": {
    "dtype": "float32", "shape": [3, 3], "format": "sparse_csr", "components": csr}}))), "1.0",
    [packed("csr", [3, 3], 68, "sparse_csr/1")], attrs=GENERATOR)
# The frame decodes to too many bytes, or is not zstd: the tensor is listed, but cannot be read.
for name, stored in (("bomb", zstd_run(0, 100000)), ("broken", b"no zstd")):
    blobs = Blobs(MAGIC)
    coo = {r: {"offset": blobs.add(d), "length": len(d), **more} for r, d, more in (
        ("values", stored, {"encoding": "zstd"}), ("coords", struct.pack("<6Q", 0, 1, 1, 1, 0, 2), {}))}
    out.valid(f"v1.0_sparse_{name}.zt", bytes(blobs.data) + end_1_0(cbor(v1_0({"coo": {
        "dtype": "float32", "shape": [3, 3], "format": "sparse_coo", "components": dict(sorted(coo.items()))}}))),
        "1.0", [listed("coo", "f32", [3, 3], None, layout="sparse_coo/1")], attrs=GENERATOR, warnings=1, problems=True)

# ------------------------------------------------------------ 1.1 and 1.2
w = Writer()
for t, _, _ in TYPES:
    w.add("t." + t, [2, 3], {"data": (t, values(t, 6), {"digest": crc_text(values(t, 6))})})
want = [listed("t." + t, t, [2, 3], values(t, 6)) for t, _, _ in TYPES]
out.valid("types.zt", w.done(), "1.2.0", want)
out.valid("types_1.1.zt", w.done("1.1.0", {"who": "me"}), "1.1.0", want, attrs={"who": "me"})

w = Writer()
for t in ("f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz"):
    w.add(t, [4], {"data": ("u8", b"\0\x38\x40\x44", {"type": t})})
w.add("complex64", [2], {"data": ("f32", struct.pack("<4f", 1, 2, 3, 4), {"type": "complex64"})})
w.add("complex128", [1], {"data": ("f64", struct.pack("<2d", 1, 2), {"type": "complex128"})})
w.add("unknown", [3], {"data": ("u16", b"abcdef", {"type": "posit16"})})
out.valid("logical.zt", w.done(), "1.2.0",
          [listed(t, t, [4], b"\0\x38\x40\x44") for t in ("f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz")] +
          [listed("complex64", "c64", [2], struct.pack("<4f", 1, 2, 3, 4)),
           listed("complex128", "c128", [1], struct.pack("<2d", 1, 2)), listed("unknown", "posit16", [3], b"abcdef")])

w = Writer()
zeros, hello = zstd_run(0, 4000), zstd_raw(b"hello", True)
w.add("run", [1000], {"data": ("f32", zeros, {"uncompressed_length": 4000, "encoding": "zstd", "digest": crc_text(zeros)})})
w.add("hello", [5], {"data": ("u8", hello, {"uncompressed_length": 5, "encoding": "zstd", "digest": sha_text(hello)})})
w.add("old", [5], {"data": ("u8", hello, {"encoding": "zstd"})})
w.add("raw", [2], {"data": ("u8", b"ab", {"encoding": "raw", "uncompressed_length": 2})})
out.valid("zstd.zt", w.done(), "1.2.0", [
    listed("run", "f32", [1000], bytes(4000)), listed("hello", "u8", [5], b"hello"), listed("old", "u8", [5], b"hello"),
    listed("raw", "u8", [2], b"ab")])

w = Writer()
parts = {"values": ("f32", values("f32", 3), {}), "indices": ("u64", struct.pack("<3Q", 1, 0, 2), {}),
         "indptr": ("u64", struct.pack("<4Q", 0, 1, 3, 3), {})}
w.add("csr", [3, 3], parts, "sparse_csr")
w.add("coo", [2, 2, 2], {"values": ("u8", b"\7", {}), "coords": ("u64", struct.pack("<3Q", 1, 0, 1), {})}, "sparse_coo")
w.add("csr32", [3, 3], {"values": ("f32", values("f32", 3), {}), "indices": ("u32", struct.pack("<3I", 1, 0, 2), {}),
                        "indptr": ("u32", struct.pack("<4I", 0, 1, 3, 3), {})}, "sparse_csr/1")
w.add("quant", [4, 8], {"packed_weight": ("u32", bytes(16), {}), "scales": ("f16", bytes(8), {}), "zeros": ("u32", bytes(4), {})},
      "quantized_group", {"bits": 4, "group_size": 8, "packing": "lsb_first"})
w.add("other", [], {"b": ("u8", b"1", {}), "a": ("u8", b"2", {})}, "my.layout/7")
w.add("nothing", [0], {}, "my.nothing")
out.valid("layouts.zt", w.done(), "1.2.0", [
    packed("csr", [3, 3], 68, "sparse_csr/1"), packed("coo", [2, 2, 2], 25, "sparse_coo/1"),
    packed("csr32", [3, 3], 40, "sparse_csr/1"), packed("quant", [4, 8], 28, "quantized_group", {"bits": 4}),
    packed("other", [], 2, "my.layout/7"), packed("nothing", [0], 0, "my.nothing")])

w = Writer()
attrs = {"a": None, "b": [1, -1, 1.5, "x", True], "c": {"d": {}}, "e": 1 << 63}
w.add("t", [2, 2], {"data": ("f32", DATA, {})}, attrs=attrs)
out.valid("attributes.zt", w.done(attrs=attrs), "1.2.0", [dict(T, attrs=attrs)], attrs=attrs)
out.valid("attributes_null.zt", one(dict(manifest(attributes=None), attributes=None)), "1.2.0", [T])

# ------------------------------------------------------------ edges
w = Writer()
w.add("scalar", [], {"data": ("f64", values("f64", 1), {})})
w.add("none", [0, 4], {"data": ("f32", b"", {})})
w.add("huge", [0, 1 << 63, 1 << 63], {"data": ("f32", b"", {})})
w.add("", [1], {"data": ("u8", b"1", {})})
w.add("gr\u00f6\u00dfe", [1], {"data": ("u8", b"2", {})})
# Tensors without bytes have the same place as the next tensor; their order is that of the map.
out.valid("edges.zt", w.done(), "1.2.0", [
    listed("scalar", "f64", [], values("f64", 1)), listed("huge", "f32", [0, 1 << 63, 1 << 63], b""),
    listed("none", "f32", [0, 4], b""), listed("", "u8", [1], b"1"),
    listed("gr\u00f6\u00dfe", "u8", [1], b"2")])
w = Writer()
for i in range(300):
    w.add("t%d" % i, [1], {"data": ("u8", bytes([i % 256]), {})})
out.valid("many.zt", w.done(), "1.2.0", [listed("t%d" % i, "u8", [1], None) for i in range(300)])
out.valid("any_order.zt", one(Pairs([("objects", {"t": Pairs([("components", {"data": Pairs([
    ("length", 16), ("offset", 64), ("dtype", "f32")])}), ("format", "dense"), ("shape", [2, 2])])}),
    ("version", "1.2.0")])), "1.2.0", [T])
out.valid("open_maps.zt", one(open_map({"version": "1.2.0", "objects": open_map({"t": open_map({
    "shape": Open([2, 2]), "format": "dense", "components": open_map({"data": open_map(plain())})})})})), "1.2.0", [T])
out.valid("fields_unknown.zt", one(dict(manifest(plain(more=1), extra=[2]), other={"x": 3})), "1.2.0", [T], warnings=3)
out.valid("dtype_unknown.zt", one(manifest(plain(dtype="f8_e4m3"))), "1.2.0", [listed("t", "f8_e4m3", [2, 2], None)],
          warnings=1, problems=True)
out.valid("encoding_unknown.zt", one(manifest(plain(encoding="lz4"))), "1.2.0", [dict(T, sha256=None)], warnings=1,
          problems=True)
out.valid("digest_unknown.zt", one(manifest(plain(digest="md5:00"))), "1.2.0", [T], warnings=1)
out.valid("digest_0X.zt", one(manifest(plain(digest="crc32c:0X" + crc_text(DATA)[9:].lower()))), "1.2.0", [T])
out.valid("overlap.zt", one({"version": "1.2.0", "objects": {n: manifest()["objects"]["t"] for n in "tu"}}), "1.2.0",
          [T, dict(T, name="u")], warnings=1)

# ------------------------------------------------------------ files that do not open
out.reject("case_39_magic.zt", None, BAD, 80, "an array where a map should be")
good = one(manifest())
out.reject("cut_8.zt", good[:8], SHORT, 8, "8 bytes are missing")
out.reject("cut_15.zt", good[:15], SHORT, 15, "1 byte is missing")
out.reject("cut_magic.zt", good[:-1], BAD, len(good) - 9, "cut short?")
out.reject("cut_trailer.zt", good[:-16], BAD, len(good) - 24, "cut short?")
out.reject("length_0.zt", good[:-16] + bytes(8) + MAGIC, SHORT, None, "")
out.reject("length_max.zt", good[:-16] + b"\xff" * 8 + MAGIC, BAD, len(good) - 16, "cut short?")
out.reject("length_too_long.zt", good[:-16] + U64.pack(len(good) - 23) + MAGIC, BAD, len(good) - 16, "cut short?")
out.reject("trailing.zt", one(cbor(manifest()) + b"\0"), BAD, len(good) - 16, "other bytes follow the end")
out.reject("v1.0_with_objects.zt", one(manifest(), end_1_0), BAD, START, "has no tensors")
out.reject("v1.1_with_tensors.zt", one({"version": "1.2.0", "tensors": {}}), BAD, START, "has no objects")
out.reject("no_version.zt", one({"objects": {}}), BAD, START, "no version", "opens")
out.reject("version_number.zt", one({"version": 1, "objects": {}}), BAD, START + 9, "should be")
for field in ("shape", "format", "components"):
    m = manifest()
    del m["objects"]["t"][field]
    out.reject("no_%s.zt" % field, one(m), BAD, ENTRY, "has no " + field)
for field in ("dtype", "offset", "length"):
    k = plain()
    del k[field]
    out.reject("no_%s.zt" % field, one(manifest(k)), BAD, PART, "has no " + field)
out.reject("v1.0_no_dtype.zt", one(v1_0({"t": {"shape": [], "format": "dense", "components": {}}}), end_1_0), BAD, None,
           "has no dtype")
out.reject("name_twice.zt", one({"version": "1.2.0", "objects": Pairs([("t", manifest()["objects"]["t"])] * 2)}), BAD,
           None, "twice")
out.reject("attributes_list.zt", one(manifest(attributes=[1])), BAD, None, "not a map")
out.reject("role_number.zt", one(manifest(components={1: plain()})), BAD, None, "proper name")
out.reject("role_missing.zt", one(manifest(components={})), BAD, ENTRY, "needs a part 'data'")
out.reject("role_other.zt", one(manifest(components={"values": plain()})), BAD, ENTRY, "values", "opens")
out.reject("csr_rank_1.zt", one(manifest(format="sparse_csr", shape=[4], components={
    r: plain(dtype="u64", length=16) for r in ("values", "indices", "indptr")})), BAD, ENTRY, "2 dimensions", "opens")
out.reject("type_over_wrong.zt", one(manifest(plain(type="f8_e4m3fn"))), BAD, PART, "f8_e4m3fn", "opens")
out.reject("size_small.zt", one(manifest(plain(length=8))), BAD, ENTRY, "8 bytes", "opens")
out.reject("size_into_manifest.zt", one(manifest(plain(length=20), shape=[5])), BAD, PART - 1, "inside the index", "opens")
out.reject("size_past_file.zt", one(manifest(plain(length=4000), shape=[1000])), SHORT, None, "missing", "opens")
out.reject("offset_65.zt", one(manifest(plain(offset=65))), BAD, PART, "not a multiple of 64", "opens")
out.reject("offset_0.zt", one(manifest(plain(offset=0))), BAD, 0, "inside the header", "opens")
out.reject("end_wraps.zt", one(manifest(plain(offset=(1 << 64) - 64, length=1 << 62), shape=[1 << 60])), BAD,
           None, "beyond 2^64")
out.reject("product_wraps.zt", one(manifest(shape=[1 << 32, 1 << 32])), BAD, ENTRY, "2^64 elements")
out.reject("bytes_wrap.zt", one(manifest(shape=[1 << 62])), BAD, ENTRY, "2^64 bytes", "opens")
out.reject("rank_65.zt", one(manifest(shape=[1] * 63 + [2, 2])), LIMIT, ENTRY, "65 dimensions")
out.reject("shape_negative.zt", one(manifest(shape=[-1])), BAD, None, "negative")
out.reject("raw_uncompressed_length.zt", one(manifest(plain(uncompressed_length=17))), BAD, PART, "17", "opens")
out.reject("zstd_uncompressed_length.zt", one(manifest(plain(encoding="zstd", uncompressed_length=17))), BAD, ENTRY,
           "17 bytes", "opens")
out.reject("digest_wrong.zt", one(manifest(plain(digest="crc32c:0x00000000"))), "TNF_EDIGEST", 64, "crc32c", "opens")
out.reject("digest_sha256_wrong.zt", one(manifest(plain(digest="sha256:" + "0" * 64))), "TNF_EDIGEST", 64, "sha256", "opens")
out.reject("digest_broken.zt", one(manifest(plain(digest="crc32c:0xXYZ"))), BAD, PART, "not a number of 32 bits", "opens")
short = zstd_raw(DATA[:12])
# The 1.1 library appends zeros without an error.
out.reject("zstd_short.zt", one(manifest(plain(encoding="zstd", length=len(short))), data=short), SHORT, None, "zstd", "opens")

out.close()
