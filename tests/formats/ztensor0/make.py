#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of ztensor0, and the expected results.

The files real_* and case_* exist already. The 0.1.4 library wrote real_0.1.4_library.zt, the Python
package of that version real_0.1.4_package.zt. The 0.1.4 reader has read the case_* files; if
Tenfold's result differs, a comment says so. This script makes all others.
"""
import pathlib
import struct

from zt import *

HERE = pathlib.Path(__file__).parent
out = Folder(HERE, "ztensor0")
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
MAGIC = b"ZTEN0001"
DATA = bytes(range(16))


def entry(name, dtype, shape, offset, size, layout="dense", encoding="raw", **more):
    """A map in the order of the released writer; None: the field is left out."""
    e = {"name": name, "offset": offset, "size": size, "dtype": LONG.get(dtype, dtype)}
    if layout is not None:
        e["layout"] = layout
    e["shape"] = shape
    e["encoding"] = encoding
    e.update(more)
    return e


def file_of(tensors, open_maps=True):
    """tensors: (name, dtype, shape, stored bytes, {more fields}), as the released writer writes
    them."""
    blobs, index = Blobs(MAGIC), []
    for name, dtype, shape, stored, more in tensors:
        at = blobs.add(stored)
        e = entry(name, dtype, shape, at, len(stored), **more)
        index.append(open_map(e) if open_maps else e)
    return bytes(blobs.data) + tail(cbor(index))


def one(index, data=DATA):
    """One blob at 64 and any index."""
    return MAGIC + bytes(56) + data + tail(index if isinstance(index, bytes) else cbor(index))


def plain(**more):
    """The entry in the case files: t, f32 [2,2], at 64."""
    e = entry("t", "f32", [2, 2], 64, 16)
    e.update(more)
    return e


T = listed("t", "f32", [2, 2], DATA)
INDEX = 64 + 16  # where the index of one() begins; its first entry is one byte later

# ------------------------------------------------------------ real files
real = (HERE / "valid/real_0.1.4_library.zt").read_bytes()
out.valid("real_0.1.4_library.zt", None, "0.1", [
    listed("a", "f32", [2, 2], bytes(16), {"ztensor.custom": {"f": 1.5, "note": "hi", "zz": 300}}),
    listed("b", "bf16", [], real[128:130][::-1]),
    dict(listed("c", "u8", [300], None), nbytes=300),
    listed("z", "i64", [0, 4], b"", {"ztensor.layout": "sparsecsr"}),
    listed("a", "bool", [1], None, {"ztensor.layout": "sparsecoo"})], warnings=3,
    problems=True)  # a bool of 2: true in 0.1, but not in the versions after it
package = []
for i, (ours, _, _) in enumerate(TYPES):
    low = 0 if ours[0] == "u" else -3
    data = bytes(k * (i + 1) % 2 for k in range(6)) if ours == "bool" else None
    data = data or (b"".join(struct.pack("<f", k + low)[2:] for k in range(6)) if ours == "bf16" else
                    values(ours, 6, low))
    package.append(listed("t." + ours, ours, [2, 3], data))
package += [listed("scalar", "f32", [1], values("f32", 1, 2.5)), listed("empty", "f32", [0, 4], b""),
            listed("gr\u00f6\u00dfe", "u8", [70], bytes(range(70)))]
out.valid("real_0.1.4_package.zt", None, "0.1", package)

# ------------------------------------------------------------ case files that open
out.valid("case_02_layout_dense.zt", None, "0.1", [T])
# The 0.1.4 reader refuses the whole file for these four; the document says that the tensor is
# skipped.
out.valid("case_03_layout_sparse.zt", None, "0.1", [listed("t", "f32", [2, 2], None, layout="sparse")],
          warnings=1, problems=True)
out.valid("case_06_dtype_f32.zt", None, "0.1", [listed("t", "f32", [2, 2], None)], warnings=1,
          problems=True)
out.valid("case_07_enc_lz4.zt", None, "0.1", [listed("t", "f32", [2, 2], None)], warnings=1, problems=True)
out.valid("case_25_endian_bad.zt", None, "0.1", [listed("t", "f32", [2, 2], None)], warnings=1,
          problems=True)
out.valid("case_05_layout_sparsecoo.zt", None, "0.1",
          [dict(T, attrs={"ztensor.layout": "sparsecoo"})], warnings=1)
for name in ("08_cs_sha256", "11_cs_0X", "12_cs_no0x"):  # 0.1.4 does not check these, either
    out.valid("case_%s.zt" % name, None, "0.1", [T], warnings=1)
for name in ("09_cs_lower", "10_cs_upper", "14_cs_plus", "32_tagged", "38_indef_array"):
    out.valid("case_%s.zt" % name, None, "0.1", [T])
out.valid("case_48_name_indef.zt", None, "0.1", [dict(T, name="tu")])
out.valid("case_18_16bytes.zt", None, "0.1", [])
out.valid("case_23_endian_big.zt", None, "0.1", [listed("t", "f32", [2, 2], swapped(DATA, 4))])

# ------------------------------------------------------------ files like other cases of the list
draft = plain()
del draft["layout"]
out.valid("draft.zt", one([draft]), "0.1-draft", [T])  # 01: the released reader requires a layout
out.valid("case_04.zt", one([plain(layout="sparse_coo")]), "0.1",
          [listed("t", "f32", [2, 2], None, layout="sparse_coo")], warnings=1, problems=True)
out.valid("case_15.zt", one([plain(checksum="crc32c:0x00000000" + crc_text(DATA)[9:])]), "0.1", [T])
out.valid("case_24_44.zt", one([plain(data_endianness=None, checksum=None)]), "0.1", [T])
out.valid("case_24_layout_null.zt", one([plain(layout=None)]), "0.1-draft", [T])
out.valid("case_33.zt", one([plain(dtype=1, layout=0, encoding=0, data_endianness=1)]), "0.1",
          [listed("t", "f32", [2, 2], swapped(DATA, 4))], warnings=4)
out.valid("case_33_unknown.zt", one([plain(dtype=13)]), "0.1", [dict(T, dtype="?", sha256=None)],
          warnings=1, problems=True)
out.valid("case_41.zt", one(b"\x81" + cbor(plain(offset=Raw(b"\x1b" + bytes(7) + b"\x40"),
                                                 size=Raw(b"\x19\0\x10")))), "0.1", [T])
out.valid("case_42.zt", one([plain(dtype="Float32")]), "0.1", [dict(T, dtype="Float32", sha256=None)],
          warnings=1, problems=True)
# The document: a blob represents a single tensor. The released reader does not check it.
out.valid("case_45.zt", one([plain(), plain(name="u")]), "0.1", [T, dict(T, name="u")], warnings=1, problems=True)
# a is 64 to 264; b and c are inside, d begins at its last bytes; n has no bytes; e comes after all
LONG_DATA = bytes(i % 251 for i in range(320))
PLACES = (("a", 64, 200), ("b", 128, 4), ("n", 128, 0), ("c", 192, 64), ("d", 256, 64), ("e", 320, 64))
out.valid("overlap.zt", one([entry(name, "u8", [n], at, n) for name, at, n in PLACES], LONG_DATA), "0.1",
          [listed(name, "u8", [n], LONG_DATA[at - 64:at - 64 + n]) for name, at, n in PLACES], warnings=3, problems=True)
out.valid("case_47.zt", one([plain(shape=Open([2, 2]))]), "0.1", [T])

# ------------------------------------------------------------ every type, both orders, both encodings
every = [(ours, 6) for ours, _, _ in TYPES]
wide = [ours for ours, _, n in TYPES if n > 1]
little = {"data_endianness": "little"}
out.valid("types_raw.zt", file_of([(t, t, [2, 3], values(t, n), little if t in wide else {})
                                   for t, n in every]), "0.1",
          [listed(t, t, [2, 3], values(t, n)) for t, n in every])
out.valid("types_big.zt", file_of([(t, t, [3, 2], swapped(values(t, 6), WIDTH[t]), {"data_endianness": "big"})
                                   for t in wide]), "0.1",
          [listed(t, t, [3, 2], values(t, 6)) for t in wide])
out.valid("types_zstd.zt", file_of([(t, t, [2, 3], zstd_raw(values(t, n)), {"encoding": "zstd"})
                                    for t, n in every], open_maps=False), "0.1",
          [listed(t, t, [2, 3], values(t, n)) for t, n in every])
out.valid("zstd.zt", file_of([
    ("run", "f32", [1000], zstd_run(0, 4000), {"encoding": "zstd", "checksum": crc_text(zstd_run(0, 4000))}),
    ("sized", "u8", [5], zstd_raw(b"hello", True), {"encoding": "zstd"}),
    ("two", "u8", [8], zstd_raw(b"abc") + zstd_raw(b"defgh", True), {"encoding": "zstd"}),
    ("none", "i32", [0], zstd_raw(b""), {"encoding": "zstd"})]), "0.1",
    [listed("run", "f32", [1000], bytes(4000)), listed("sized", "u8", [5], b"hello"),
     listed("two", "u8", [8], b"abcdefgh"), listed("none", "i32", [0], b"")])
out.valid("zstd_big.zt", file_of([("t", "f32", [2, 2], zstd_raw(DATA),
                                   {"encoding": "zstd", "data_endianness": "big"})]), "0.1", [T], warnings=1)
out.valid("u8_big.zt", file_of([("t", "u8", [4], b"abcd", {"data_endianness": "big"})]), "0.1",
          [listed("t", "u8", [4], b"abcd")], warnings=1)
out.valid("u8_middle.zt", file_of([("t", "u8", [4], b"abcd", {"data_endianness": "middle"})]), "0.1",
          [listed("t", "u8", [4], b"abcd")], warnings=1)

# ------------------------------------------------------------ checksums
out.valid("checksums.zt", file_of([
    ("crc", "f32", [2, 2], DATA, {"checksum": crc_text(DATA)}),
    ("sha", "f32", [2, 2], DATA, {"checksum": sha_text(DATA)}),
    ("SHA", "f32", [2, 2], DATA, {"checksum": "sha256:" + sha_text(DATA)[7:].upper()}),
    ("big", "f32", [2, 2], swapped(DATA, 4), {"data_endianness": "big", "checksum": crc_text(swapped(DATA, 4))})]),
    "0.1", [dict(T, name=n) for n in ("crc", "sha", "SHA", "big")])
out.valid("checksums_other.zt", file_of([
    ("md5", "f32", [2, 2], DATA, {"checksum": "md5:00"}),
    ("empty", "f32", [2, 2], DATA, {"checksum": ""}),
    ("sha", "f32", [2, 2], DATA, {"checksum": sha_text(DATA)[:-1]}),
    ("shag", "f32", [2, 2], DATA, {"checksum": sha_text(DATA)[:-1] + "g"})]),
    "0.1", [dict(T, name=n) for n in ("md5", "empty", "sha", "shag")], warnings=4)
out.reject("checksum_sha256_wrong.zt", one([plain(checksum=sha_text(DATA + b"."))]), "TNF_EDIGEST", 64,
           "sha256", "opens")
out.reject("checksum_33_bits.zt", one([plain(checksum="crc32c:0x100000000")]), BAD, INDEX + 1,
           "not a number of 32 bits", "opens")
out.reject("checksum_no_hex.zt", one([plain(checksum="crc32c:0xD9C908EG")]), BAD, INDEX + 1,
           "not a number of 32 bits", "opens")
out.reject("checksum_plus.zt", one([plain(checksum="crc32c:0x+")]), BAD, INDEX + 1,
           "not a number of 32 bits", "opens")

# ------------------------------------------------------------ custom fields
custom = {"a": None, "b": True, "c": 1, "d": -1, "e": 1.5, "f": "text", "g": b"bytes", "h": [1, [2]],
          "i": {"x": {"y": 0}}, "j": 1 << 63, "k": 1e300, "": "no name"}
shown = dict(custom, g={"$bytes": "6279746573"})
shown.pop("g")
out.valid("custom.zt", file_of([("t", "f32", [2, 2], DATA, custom), ("u", "u8", [1], b"1", {})]), "0.1",
          [dict(T), listed("u", "u8", [1], b"1")])
out.valid("custom_plain.zt", file_of([("t", "f32", [2, 2], DATA, shown)]), "0.1",
          [dict(T, attrs={"ztensor.custom": shown})])
out.valid("custom_first.zt", one([Pairs([("z", 1)] + list(plain().items()) + [("a", 2)])]), "0.1",
          [dict(T, attrs={"ztensor.custom": {"z": 1, "a": 2}})])
out.valid("custom_tags.zt", one([plain(when=Raw(b"\xc1\x1a\x50\0\0\0"), big=Raw(b"\x3b" + b"\xff" * 8),
                                       map=Raw(b"\xa1\x01\x02"))]), "0.1", [T])
out.valid("custom_ours.zt", one([plain(**{"tenfold.attrs": {"scale": 0.5}, "tenfold.file": {"made": "here"}})]),
          "0.1", [dict(T, attrs={"scale": 0.5})], attrs={"made": "here"})
out.valid("custom_ours_empty.zt", MAGIC + bytes(56) + tail(cbor([open_map(
    entry("tenfold.file", "u8", [0], 64, 0, **{"tenfold.empty": True, "tenfold.file": {"made": "here"}}))])),
    "0.1", [], attrs={"made": "here"})

# ------------------------------------------------------------ edges
out.valid("empty.zt", bytes.fromhex("5A54454E30303031 80 0100000000000000".replace(" ", "")), "0.1", [])
out.valid("scalars.zt", file_of([("s", "f64", [], values("f64", 1), little), ("b", "bool", [], b"\1", {})]),
          "0.1", [listed("s", "f64", [], values("f64", 1)), listed("b", "bool", [], b"\1")])
out.valid("zero.zt", file_of([("a", "f32", [0], b"", little), ("b", "u8", [2, 0, 3], b"", {}),
                              ("c", "u8", [3], b"abc", {}), ("d", "f32", [0, 1 << 63, 1 << 63], b"", little)]),
          "0.1", [listed("a", "f32", [0], b""), listed("b", "u8", [2, 0, 3], b""),
                  listed("c", "u8", [3], b"abc"), listed("d", "f32", [0, 1 << 63, 1 << 63], b"")])
out.valid("rank_64.zt", one([plain(shape=[1] * 62 + [2, 2])]), "0.1", [dict(T, shape=[1] * 62 + [2, 2])])
names = ["", "x" * 3000, "\u65e5\u672c", "a b\tc", "\U0001f600"]
out.valid("names.zt", file_of([(n, "u8", [1], bytes([i]), {}) for i, n in enumerate(names)]), "0.1",
          [listed(n, "u8", [1], bytes([i])) for i, n in enumerate(names)])
out.valid("many.zt", file_of([("t%d" % i, "u8", [1], bytes([i % 256]), {}) for i in range(300)]), "0.1",
          [listed("t%d" % i, "u8", [1], None) for i in range(300)])
out.valid("holes.zt", MAGIC + b"\xff" * 56 + DATA + b"\xff" * 112 + DATA + b"\xff" * 7 + tail(cbor(
    [plain(), plain(name="u", offset=192)])), "0.1", [T, dict(T, name="u")])
out.valid("unknown_beside.zt", file_of([
    ("t", "f32", [2, 2], DATA, {}), ("f8", "float8", [16], DATA, {}), ("lz", "f32", [2, 2], b"?", {"encoding": "lz4"}),
    ("last", "f32", [2, 2], DATA, {})]), "0.1",
    [T, dict(listed("f8", "float8", [16], None), nbytes=16), listed("lz", "f32", [2, 2], None), dict(T, name="last")],
    warnings=2, problems=True)

# ------------------------------------------------------------ case files that do not open
for name, code, offset, message, lenient in (
        ("13_cs_empty", BAD, 81, "not a number of 32 bits", "opens"),
        ("16_cs_bad", "TNF_EDIGEST", 64, "crc32c", "opens"),
        # The 0.1.4 reader finds no tensors in it; but a file that was cut looks the same.
        ("17_cbor0", BAD, 80, "the length of the index is 0", "opens"),
        ("19_trailing", BAD, 153, "other bytes follow the end", "rejects"),
        ("20_misaligned", BAD, 81, "not a multiple of 64", "opens"),
        ("21_offset0", BAD, 0, "inside the header", "opens"),
        ("26_neg_shape", BAD, 125, "negative", "rejects"),
        ("27_intkey", BAD, 154, "not text", "opens"),
        # The 0.1.4 reader opens these two, and fails when it reads the tensor.
        ("28_size_big", BAD, 81, "1000 bytes", "opens"),
        ("29_size_small", BAD, 81, "8 bytes", "opens"),
        ("30_8bytes", SHORT, 8, "8 bytes are missing", "rejects"),
        ("36_dupkey", BAD, 153, "twice", "rejects"),
        ("37_map_not_array", BAD, 80, "a map where an array should be", "rejects"),
        ("46_offset_float", BAD, 96, "a float", "rejects")):
    out.reject("case_%s.zt" % name, None, code, offset, message, lenient)
out.reject("case_22.zt", one([plain(offset=8)]), BAD, INDEX + 1, "not a multiple of 64", "opens")
out.reject("case_49.zt", one([["t"]]), BAD, INDEX + 1, "an array where a map should be")
for field in ("name", "offset", "size", "dtype", "shape", "encoding"):
    e = plain()
    del e[field]
    out.reject("no_%s.zt" % field, one([e]), BAD, INDEX + 1, "has no " + field)
for field in ("dtype", "encoding"):
    out.reject("null_%s.zt" % field, one([plain(**{field: None})]), BAD, INDEX + 1, "has no " + field)
out.reject("name_bytes.zt", one([plain(name=b"t")]), BAD, INDEX + 7, "should be")
out.reject("name_not_utf8.zt", one([plain(name=Raw(b"\x61\xff"))]), BAD, INDEX + 8, "UTF-8")

# ------------------------------------------------------------ lengths and places
good = one([plain()])
out.reject("index_too_long.zt", good[:-8] + U64.pack(len(good) - 15), BAD, len(good) - 8, "cut short?")
out.reject("index_max.zt", good[:-8] + b"\xff" * 8, BAD, len(good) - 8, "cut short?")
out.reject("index_short.zt", good[:-8] + U64.pack(5), BAD, None, "")
out.reject("cut_15.zt", good[:15], SHORT, 15, "1 byte is missing")
out.reject("cut_data.zt", good[:60], BAD, 52, "the length of the index is 0", "opens")
out.reject("size_past_file.zt", one([plain(shape=[1000], size=4000)]), SHORT, len(one([plain(shape=[1000], size=4000)])),
           "missing", "opens")
out.reject("size_into_index.zt", one([plain(shape=[5], size=20)]), BAD, INDEX + 1, "inside the index", "opens")
out.reject("offset_past_file.zt", one([plain(offset=1 << 40)]), SHORT, len(one([plain(offset=1 << 40)])),
           "missing", "opens")
out.reject("end_wraps.zt", one([plain(offset=(1 << 64) - 64, size=1 << 62, shape=[1 << 60])]), BAD,
           None, "beyond 2^64")
out.reject("zstd_past_file.zt", one([plain(encoding="zstd", size=1 << 50)]), SHORT,
           len(one([plain(encoding="zstd", size=1 << 50)])), "missing", "opens")
out.reject("product_wraps.zt", one([plain(shape=[1 << 32, 1 << 32])]), BAD, INDEX + 1, "2^64 elements")
out.reject("bytes_wrap.zt", one([plain(shape=[1 << 62])]), BAD, INDEX + 1, "2^64 bytes", "opens")
out.reject("rank_65.zt", one([plain(shape=[1] * 63 + [2, 2])]), LIMIT, INDEX + 1, "65 dimensions")
out.reject("entries_max.zt", one(b"\x9b" + b"\xff" * 8 + cbor(plain())), SHORT, INDEX, "claims")
out.reject("deep.zt", one([plain(deep=Raw(b"\x81" * 500 + b"\0"))]), LIMIT, None, "")

# ------------------------------------------------------------ zstd frames that cannot be decoded
out.reject("zstd_short.zt", file_of([("t", "f32", [2, 2], zstd_raw(DATA[:12]), {"encoding": "zstd"})]),
           SHORT, None, "zstd", "opens")
out.reject("zstd_long.zt", file_of([("t", "f32", [2, 2], zstd_raw(DATA + b"."), {"encoding": "zstd"})]),
           BAD, None, "zstd", "opens")
out.reject("zstd_none.zt", file_of([("t", "f32", [2, 2], b"", {"encoding": "zstd"})]), SHORT, None, "zstd", "opens")
out.reject("zstd_junk.zt", file_of([("t", "f32", [2, 2], DATA, {"encoding": "zstd"})]), BAD, 64, "zstd", "opens")

out.close()
