#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of VS, and the expected results.

given.json names files that exist in valid/ and reject/ already, and has their content: they came
with the description of the format. Its author published no complete program that writes such files;
upstream_* are what his unfinished programs would write. This script makes all others from the
description (docs/formats/vs.md).
"""
import gzip
import hashlib
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
# code: type, struct letter
TYPES = {0: ("bit", None), 1: ("u8", "B"), -1: ("i8", "b"), 2: ("u16", "H"), -2: ("i16", "h"),
         3: ("u32", "I"), -3: ("i32", "i"), 4: ("u64", "Q"), -4: ("i64", "q"), 10: ("f16", "e"),
         11: ("f32", "f"), 12: ("f64", "d")}
HEADER, END = b"VS\0\0", b"$"


# ---------------------------------------------------------------- bytes
def varint(n, size=None):
    out = bytearray()
    while True:
        more = n >> 7
        out.append(n & 127 | (128 if more else 0))
        n = more
        if not n:
            break
    while size and len(out) < size:  # padded
        out[-1] |= 128
        out.append(0)
    return bytes(out)


def block(kind, payload, length=None):
    return kind.encode("latin-1") + struct.pack("<I", len(payload) if length is None else length) + payload


def msgpack(v):
    """JSON-like values in their shortest MessagePack form."""
    if v is None:
        return b"\xc0"
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int):
        if -32 <= v < 128:
            return struct.pack("b", v) if v < 0 else bytes([v])
        for mark, code in ((0xCC, "B"), (0xCD, "H"), (0xCE, "I"), (0xCF, "Q")) if v >= 0 else (
                (0xD0, "b"), (0xD1, "h"), (0xD2, "i"), (0xD3, "q")):
            try:
                return bytes([mark]) + struct.pack(">" + code, v)
            except struct.error:
                continue
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, str):
        b = v.encode()
        head = bytes([0xA0 + len(b)]) if len(b) < 32 else (
            b"\xd9" + bytes([len(b)]) if len(b) < 256 else b"\xda" + struct.pack(">H", len(b)))
        return head + b
    if isinstance(v, list):
        return bytes([0x90 + len(v)]) + b"".join(map(msgpack, v))
    assert len(v) < 16
    return bytes([0x80 + len(v)]) + b"".join(msgpack(k) + msgpack(x) for k, x in v.items())


def snappy(b):
    """Literals only, and one copy if all bytes are the same."""
    out = varint(len(b))
    if len(b) > 12 and len(set(b)) == 1:
        rest, out = len(b) - 4, out + bytes([3 << 2]) + b[:4]
        while rest:
            n = min(rest, 64)
            out += bytes([(n - 1) << 2 | 2]) + struct.pack("<H", 1)
            rest -= n
        return out
    for at in range(0, len(b), 60):
        piece = b[at:at + 60]
        out += bytes([(len(piece) - 1) << 2]) + piece
    return out


def json_field(b, size=None):
    return varint(len(b), size) + b


def meta(dims, code, attributes=b"\x80", pack=0, paging=0, extra=b""):
    return block("^", varint(len(dims)) + b"".join(map(varint, dims)) + struct.pack("<bBB", code, pack, paging)
                 + json_field(attributes) + extra)


def bits(values):
    out = bytearray((len(values) + 7) // 8)
    for i, v in enumerate(values):
        out[i // 8] |= v << i % 8
    return bytes(out)


def raw(code, values):
    return bits(values) if code == 0 else struct.pack("<%d%s" % (len(values), TYPES[code][1]), *values)


def point(vector, app=b"", option=0, vector_option=0, length=None, extra=b"", app_size=None):
    return block("P", bytes([option]) + json_field(app, app_size) + bytes([vector_option])
                 + struct.pack("<I", len(vector) if length is None else length) + vector + extra)


# ---------------------------------------------------------------- expected results
valid, reject = {}, {}


def sha(b):
    return hashlib.sha256(b).hexdigest()


def tensors(code, dims, rows, apps, options=None, app_options=None):
    """rows: lists of values. The bits of all rows are contiguous."""
    flat = [v for row in rows for v in row]
    points = {"name": "points", "dtype": TYPES[code][0], "shape": [len(rows)] + dims, "order": "C",
              "layout": "dense", "nbytes": len(raw(code, flat)), "sha256": sha(raw(code, flat)), "attrs": options or {}}
    app = {"name": "appdata", "dtype": "u8", "shape": [len(rows)], "layout": "strings/1",
           "nbytes": 8 * (len(rows) + 1) + sum(map(len, apps)), "attrs": app_options or {}}
    return [points, app]


def good(name, data, code=12, dims=None, rows=(), apps=None, warnings=0, blanks=0, attrs=None, options=None,
         app_options=None):
    (HERE / "valid" / (name + ".vsdb")).write_bytes(data)
    want = {"format": "vs", "version": "0", "warnings": warnings,
            "attrs": {"vs.points": len(rows), "vs.blanks": blanks, **(attrs or {})}, "tensors": []}
    if dims is not None:
        want["attrs"] |= {"vs.dims": dims, "vs.resolution": TYPES[code][0]}
        want["tensors"] = tensors(code, dims, rows, apps or [b""] * len(rows), options, app_options)
    valid[name + ".vsdb"] = want


def bad(name, data, code, message, offset):
    (HERE / "reject" / (name + ".vsdb")).write_bytes(data)
    reject[name + ".vsdb"] = {"code": code, "message": message, "offset": offset, "lenient": "rejects"}


# ---------------------------------------------------------------- the given files
# the given files
PLACES = {"vec_bad_gzip": (BAD, 28), "dims_overflow": (BAD, 9), "dim_zero": (BAD, 9),
          "json_len_past_block": (BAD, 22), "vec_len_past_block": (BAD, 23), "cut_length": (SHORT, 16),
          "json_trailing": (BAD, 24), "meta_no_attributes": (SHORT, 14), "two_meta": (BAD, 16),
          "magic": (SHORT, None), "short_header": (SHORT, None), "varint_6_bytes": (BAD, 9),
          "resolution_99": (UNSUPPORTED, 9)}


def given():
    told = json.loads((HERE / "given.json").read_text())
    for name, (entry) in told["good"].items():
        e, stem = entry["expected"], name[:-5]
        if stem == "dim300_msb_first":  # another spelling of numbers, which is only read on request
            reject[name] = {"code": BAD, "message": "varint=msb", "offset": 24, "lenient": "rejects"}
            continue
        data = (HERE / "valid" / name).read_bytes()
        points = e["points"]
        apps = [b"" if p["app"] is None else msgpack(p["app"]) for p in points]
        options = {"compressed": ({"vs.options": {"$bytes": "AAECAg=="}}, {"vs.options": {"$bytes": "AAAAAQ=="}})}
        if e.get("meta", 1) is None:
            good(stem, data, warnings=0 if data.endswith(END) else 1)
            continue
        attrs = {"vs.attributes": e["attributes"], "vs.pack": int(stem == "compressed"), "vs.paging": 0}
        # Values that the JSON file spells as texts, as numbers.
        rows = [[{"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.get(v, v)
                 if isinstance(v, str) and not v.lstrip("-").isdigit() else int(v) if isinstance(v, str) else v
                 for v in p["values_row_major"]] for p in points]
        good(stem, data, e["resolution"], e["dims"], rows, apps, 0 if e.get("terminal", True) else 1,
             e.get("blank_blocks", 0), attrs, *options.get(stem, (None, None)))
    for name, entry in told["bad"].items():
        status, offset = PLACES[name[:-5]]
        word = entry["result"] if offset is not None else ""
        reject[name] = {"code": status, "message": word, "offset": offset, "lenient": "rejects"}


# ---------------------------------------------------------------- valid
def make_valid():
    one = meta([2], 11, msgpack({"name": "demo"}))
    rows = [[1.0, -2.5], [0.0, 3.25], [1e30, -0.0]]
    vectors = [raw(11, r) for r in rows]
    ids = [msgpack({"id": i}) for i in range(3)]
    good("no_points", HEADER + meta([3], 11) + END, 11, [3])
    good("plain", HEADER + one + b"".join(map(point, vectors)) + END, 11, [2], rows,
         attrs={"vs.attributes": {"name": "demo"}, "vs.pack": 0, "vs.paging": 0})
    good("app", HEADER + one + b"".join(point(v, a) for v, a in zip(vectors, ids)) + END, 11, [2], rows, ids)
    late = [b"", b"", msgpack("only the last has any")]
    good("app_late", HEADER + one + b"".join(point(v, a) for v, a in zip(vectors, late)) + END, 11, [2], rows, late)
    every = [msgpack(v) for v in (None, [True, False, -1, -33, 200, 70000, 2**40, -2**40, 0.5, "x" * 40, {"a": {}}],
                                  {"k": [1, 2, {"deep": [[[]]]}]})]
    good("app_kinds", HEADER + one + b"".join(point(v, a) for v, a in zip(vectors, every)) + END, 11, [2], rows, every)
    odd = [b"\xda\x00\x02\xff\xfe", b"\xc4\x01\x00", b"\x82\x01\x02\xa1a\xd4\x05\x00"]  # not JSON, but legal
    good("app_odd", HEADER + one + b"".join(point(v, a) for v, a in zip(vectors, odd)) + END, 11, [2], rows, odd)
    for code, values in ((0, [1, 0, 1]), (1, [0, 255]), (-1, [-128, 127]), (2, [65535]), (-2, [-32768]),
                         (3, [2**32 - 1]), (-3, [-2**31]), (4, [2**64 - 1]), (-4, [-2**63]), (10, [1.5, -2.0]),
                         (11, [float("inf")]), (12, [5e-324])):
        twice = [values, values[::-1]]
        good("type_" + TYPES[code][0], HEADER + meta([len(values)], code) + b"".join(point(raw(code, v)) for v in twice)
             + END, code, [len(values)], twice)
    pattern = [[(r * 7 + i * i) % 3 % 2 for i in range(13)] for r in range(9)]
    good("bits_13", HEADER + meta([13], 0) + b"".join(point(raw(0, r)) for r in pattern) + END, 0, [13], pattern)
    eight = [[(r + i) % 2 for i in range(16)] for r in range(3)]
    good("bits_2x8", HEADER + meta([2, 8], 0) + b"".join(point(raw(0, r)) for r in eight) + END, 0, [2, 8], eight)
    dirty = [[1, 1, 1], [0, 0, 1]]
    good("bits_spare", HEADER + meta([3], 0) + point(b"\xff") + point(b"\xf4") + END, 0, [3], dirty)
    cube = [list(range(24)), list(range(24, 48))]
    good("rank_3", HEADER + meta([2, 3, 4], 2) + b"".join(point(raw(2, r)) for r in cube) + END, 2, [2, 3, 4], cube)
    deep = [2] + [1] * 150 + [3] + [1] * 147 + [2]
    good("rank_300", HEADER + meta(deep, 2) + b"".join(point(raw(2, r[:12])) for r in cube) + END, 2, deep,
         [r[:12] for r in cube])
    good("rank_0", HEADER + meta([], 1) + point(b"\7") + point(b"\x09") + END, 1, [], [[7], [9]])
    packed(one, vectors, rows, ids)
    good("blanks", HEADER + block("0", b"") + one + block("0", b"gone") + point(vectors[0]) + block("0", b"x" * 300)
         + END, 11, [2], rows[:1], blanks=3)
    good("deleted_meta", HEADER + block("0", meta([9], 1)[5:]) + one + point(vectors[0]) + END, 11, [2], rows[:1],
         blanks=1)
    good("unknown", HEADER + block("A", b"before") + one + block("B", b"\1") + point(vectors[0]) + block("C", b"")
         + block("C", b"two") + point(vectors[1]) + block("\xff", b"last") + END, 11, [2], rows[:2])
    good("type_zero", HEADER + one + point(vectors[0]) + block("\0", b"zz") + END, 11, [2], rows[:1], warnings=1)
    good("junk", HEADER + one + point(vectors[0]) + END + b"anything at all $ P", 11, [2], rows[:1], warnings=1)
    good("junk_block", HEADER + one + END + point(vectors[0])[1:] + END, 11, [2], [], warnings=1)
    good("no_end", HEADER + one + point(vectors[0]), 11, [2], rows[:1], warnings=1)
    good("no_meta_blanks", HEADER + block("0", b"abc") + block("U", b"kept") + END, blanks=1)
    good("meta_extra", HEADER + meta([2], 11, extra=b"later") + point(vectors[0]) + END, 11, [2], rows[:1])
    good("point_extra", HEADER + one + point(vectors[0], ids[0], extra=b"\1\2\3") + point(vectors[1]) + point(
        vectors[2], extra=b"$") + END, 11, [2], rows, [ids[0], b"", b""])
    good("reserved_bits", HEADER + meta([2], 11, pack=0xF0, paging=7) + point(vectors[0], option=0x58,
         vector_option=0xA0) + END, 11, [2], rows[:1], attrs={"vs.pack": 0xF0, "vs.paging": 7},
         options={"vs.options": 0xA0}, app_options={"vs.options": 0x58})
    good("no_attributes", HEADER + meta([2], 11, b"") + point(vectors[0]) + END, 11, [2], rows[:1])
    good("attributes", HEADER + meta([2], 11, msgpack([1, {"a": None, "b": "ü"}, 2.5])) + END, 11, [2],
         attrs={"vs.attributes": [1, {"a": None, "b": "ü"}, 2.5]})
    padded = block("^", b"\x81\x80\x80\x80\x00" + b"\x82\x00" + b"\x0b\0\0" + b"\x81\x00\x80")
    good("padded", HEADER + padded + point(vectors[0], ids[0], app_size=5) + END, 11, [2], rows[:1], ids[:1])
    wide = [[(i * 37 + r) % 251 for i in range(300)] for r in range(3)]
    long_app = msgpack({"text": "m" * 300})
    good("two_byte_lengths", HEADER + meta([300], 1) + b"".join(point(raw(1, r), long_app) for r in wide) + END, 1,
         [300], wide, [long_app] * 3)
    text_spaces(ids)
    for name, code, word in (("string", 100, "string"), ("json", 101, "json"), ("f80", 13, "f80")):
        body = meta([2], code) + point(b"any length") + block("U", b"?") + block("0", b"-") + point(b"")
        valid["resolution_%s.vsdb" % name] = {
            "format": "vs", "version": "0", "warnings": 1, "tensors": [],
            "attrs": {"vs.points": 2, "vs.blanks": 1, "vs.dims": [2], "vs.resolution": word}}
        (HERE / "valid" / ("resolution_%s.vsdb" % name)).write_bytes(HEADER + body + END)


def texts(rows):
    return [b"".join(json_field(t) for t in row) for row in rows]


def good_texts(name, word, dims, rows, body, apps=None, options=None, blanks=0):
    """A space of STRING or JSON. rows: lists of texts as bytes; body: everything after the meta block."""
    code = {"string": 100, "json": 101}[word]
    (HERE / "valid" / (name + ".vsdb")).write_bytes(HEADER + meta(dims, code) + body + END)
    apps = apps or [b""] * len(rows)
    n = sum(map(len, rows))
    valid[name + ".vsdb"] = {
        "format": "vs", "version": "0", "warnings": 0,
        "attrs": {"vs.points": len(rows), "vs.blanks": blanks, "vs.dims": dims, "vs.resolution": word},
        "tensors": [{"name": "points", "dtype": "u8", "shape": [len(rows)] + dims, "layout": "strings/1",
                     "nbytes": 8 * (n + 1) + sum(len(t) for row in rows for t in row),
                     "attrs": {**(options or {}), **({"tenfold.messagepack": True} if word == "json" else {})}},
                    {"name": "appdata", "dtype": "u8", "shape": [len(rows)], "layout": "strings/1",
                     "nbytes": 8 * (len(rows) + 1) + sum(map(len, apps)), "attrs": {}}]}


def text_spaces(ids):
    rows = [[b"one", "zw\u00f6lf".encode()], [b"", b"x" * 200], [b"\0\xff", b"4"]]
    good_texts("texts_string", "string", [2], rows, b"".join(point(v, a) for v, a in zip(texts(rows), ids)), ids)
    good_texts("texts_empty", "string", [3], [], b"")
    words = [[msgpack({"a": [1, -1, 2.5, None, True]})], [b""], [b"\xca\x3f\x00\x00\x00"]]
    good_texts("texts_json", "json", [1], words, b"".join(map(point, texts(words))) + block("0", b"gone"), blanks=1)
    cube = [[b"%d" % (4 * r + i) for i in range(4)] for r in range(2)]
    good_texts("texts_2x2", "string", [2, 2], cube, b"".join(map(point, texts(cube))))
    many = [[b"many " * 40], [b"few"]]
    good_texts("texts_packed", "string", [], many, point(gzip.compress(texts(many)[0], 9, mtime=0), vector_option=1)
               + point(snappy(texts(many)[1]), vector_option=2), options={"vs.options": {"$bytes": "AQI="}})


def packed(one, vectors, rows, ids):
    zipped = [gzip.compress(v, mtime=0) for v in vectors]
    good("gzip", HEADER + one + b"".join(point(z, a, vector_option=1) for z, a in zip(zipped, ids)) + END, 11, [2],
         rows, ids, options={"vs.options": 1})
    members = gzip.compress(vectors[0][:3], mtime=0) + gzip.compress(b"", mtime=0) + gzip.compress(vectors[0][3:], mtime=0)
    good("gzip_members", HEADER + one + point(members, vector_option=1) + END, 11, [2], rows[:1],
         options={"vs.options": 1})
    good("snappy", HEADER + meta([2], 11, pack=1) + b"".join(
        point(snappy(v), snappy(a), 1, 2) for v, a in zip(vectors, ids)) + END, 11, [2], rows, ids,
         attrs={"vs.pack": 1}, options={"vs.options": 2}, app_options={"vs.options": 1})
    same = [[3] * 200, [250] * 200]
    text = msgpack("a" * 200)
    good("snappy_copies", HEADER + meta([200], 1) + b"".join(
        point(snappy(raw(1, r)), snappy(text), 1, 2) for r in same) + END, 1, [200], same, [text] * 2)
    # a compressed empty string is not MessagePack; no bytes at all mean no application data, for any option
    good("snappy_nothing", HEADER + one + point(vectors[0], b"", 1, 0) + END, 11, [2], rows[:1],
         app_options={"vs.options": 1})


# ---------------------------------------------------------------- rejected
def make_reject():
    one = meta([2], 11)
    v = raw(11, [1.0, 2.0])
    start = len(HEADER + one)  # the offset of the first point
    bad("version_1", b"VS\1\0" + END, UNSUPPORTED, "version 1", 2)
    bad("version_256", b"VS\0\1" + END, UNSUPPORTED, "version 256", 2)
    bad("cut_type", HEADER + b"^", SHORT, "truncated block header", 4)
    bad("cut_block", HEADER + one[:-1], SHORT, "truncated block: the file ends 1 bytes", 4)
    bad("length_max", HEADER + block("U", b"x", 2**32 - 1), SHORT, "truncated block", 4)
    bad("point_first", HEADER + point(v) + one + END, BAD, "before the meta block", 4)
    bad("point_alone", HEADER + point(v) + END, BAD, "before the meta block", 4)
    bad("point_empty", HEADER + one + block("P", b"") + END, BAD, "a point has no bytes", start + 5)
    bad("point_one_byte", HEADER + one + block("P", b"\0") + END, SHORT, "application data is missing", start + 6)
    bad("point_no_vector", HEADER + one + block("P", b"\0\0") + END, BAD, "truncated point", start + 7)
    bad("point_cut_vector_head", HEADER + one + block("P", b"\0\0\0\0\0\0") + END, BAD, "truncated point", start + 7)
    bad("app_varint_6", HEADER + one + block("P", b"\0\x80\x80\x80\x80\x80\0") + END, BAD, "varint too long", start + 6)
    bad("app_varint_big", HEADER + one + block("P", b"\0\xff\xff\xff\xff\x1f\0") + END, BAD, "varint too long", start + 6)
    bad("app_not_one", HEADER + one + point(v, b"\x92\x01") + END, BAD, "not one MessagePack value", None)
    bad("app_reserved", HEADER + one + point(v, b"\xc1") + END, BAD, "not one MessagePack value", start + 7)
    bad("app_deep", HEADER + one + point(v, b"\x91" * 70 + b"\xc0") + END, LIMIT, "not one MessagePack value", None)
    bad("app_code_2", HEADER + one + point(v, b"\xc0", 2) + END, UNSUPPORTED, "compression 2 of application data", start + 5)
    bad("app_snappy_size", HEADER + one + point(v, varint(2**31) + b"\0a", 1) + END, BAD, "corrupt snappy", start + 7)
    bad("app_snappy_bad", HEADER + one + point(v, b"\2\xf0", 1) + END, BAD, "corrupt snappy", start + 8)
    bad("app_snappy_two", HEADER + one + point(v, snappy(b"\xc0\xc0"), 1) + END, BAD, "not one MessagePack value", None)
    bad("vector_code_3", HEADER + one + point(v, vector_option=3) + END, UNSUPPORTED, "vector compression 3", start + 7)
    bad("vector_code_7", HEADER + one + point(v, vector_option=7) + END, UNSUPPORTED, "vector compression 7", start + 7)
    bad("vector_short", HEADER + one + point(v[:-1]) + END, BAD, "has 7 bytes, but the space needs 8", start + 7)
    bad("vector_long", HEADER + one + point(v + b"\0") + END, BAD, "has 9 bytes, but the space needs 8", start + 7)
    bad("vector_none", HEADER + one + point(b"") + END, BAD, "has 0 bytes, but the space needs 8", start + 7)
    bad("vector_max", HEADER + one + point(v, length=2**32 - 1) + END, BAD, "vector exceeds block", start + 7)
    bad("snappy_size", HEADER + one + point(snappy(v + b"x"), vector_option=2) + END, BAD, "vector in snappy has 9", start + 12)
    bad("snappy_none", HEADER + one + point(b"", vector_option=2) + END, SHORT, "snappy", start + 12)
    bad("gzip_none", HEADER + one + point(b"\x1f", vector_option=1) + END, BAD, "corrupt gzip", start + 12)
    # these open, because vectors are only decompressed when they are read; verify reports the fault
    zipped = gzip.compress(v, mtime=0)
    for name, data, code, word in (
            ("gzip_cut", zipped[:-1], SHORT, "gzip"), ("gzip_crc", zipped[:-8] + b"\0\0\0\0" + zipped[-4:], BAD, "gzip"),
            ("gzip_long", gzip.compress(v + b"!", mtime=0), BAD, "decode to more than the expected 8 bytes"),
            ("gzip_bomb", gzip.compress(b"\0" * 100000, mtime=0), BAD, "decode to more than the expected 8 bytes"),
            ("gzip_short", gzip.compress(v[:-1], mtime=0), SHORT, "end before their 8 bytes"),
            ("gzip_trailing", zipped + b"trailing", BAD, "gzip"), ("snappy_bad", snappy(v)[:-1], BAD, "corrupt snappy")):
        option = 2 if name.startswith("snappy") else 1
        bad("verify_" + name, HEADER + one + point(data, vector_option=option) + END, code, word, None)
        reject["verify_%s.vsdb" % name]["lenient"] = "opens"
    first = point(zipped[:-8] + b"\0\0\0\0" + zipped[-4:], vector_option=1)
    bad("verify_gzip_first_of_two", HEADER + one + first + point(v) + END, BAD, "gzip", None)
    reject["verify_gzip_first_of_two.vsdb"]["lenient"] = "opens"
    bad("meta_empty", HEADER + block("^", b"") + END, SHORT, "rank is missing", 9)
    bad("meta_rank_max", HEADER + block("^", b"\xff\xff\xff\xff\x0f\1") + END, BAD, "a rank of 4294967295", 9)
    bad("meta_no_dims", HEADER + block("^", b"\3\1\2") + END, BAD, "a rank of 3", 9)
    bad("meta_cut_dim", HEADER + block("^", b"\2\1\x80") + END, SHORT, "dimension", 11)
    bad("meta_dim_33_bits", HEADER + block("^", b"\1\xff\xff\xff\xff\x1f\x0b\0\0\1\x80") + END, BAD, "varint too long", 10)
    bad("meta_no_resolution", HEADER + block("^", b"\1\1") + END, SHORT, "truncated meta", None)
    bad("meta_cut_paging", HEADER + block("^", b"\1\1\x0b\0") + END, SHORT, "truncated meta", None)
    bad("meta_attributes_long", HEADER + block("^", b"\1\1\x0b\0\0\5\x80") + END, BAD, "exceed the meta block", 15)
    bad("meta_attributes_two", HEADER + meta([1], 11, b"\x80\x80") + END, BAD, "not one MessagePack value", 16)
    bad("meta_attributes_cut", HEADER + meta([1], 11, b"\x81\xa1a") + END, BAD, "not one MessagePack value", None)
    bad("meta_second_late", HEADER + one + point(v) + meta([1], 1) + END, BAD, "second meta", start + 20)
    bad("vector_4gib", HEADER + meta([2**30], 11) + END, BAD, "element count overflow", 9)
    for code in (5, -5, 9, 15, 99, 102, 127, -128):
        bad("resolution_%s" % str(code).replace("-", "minus_"), HEADER + meta([1], code) + END, UNSUPPORTED,
            "unsupported resolution %d" % code, 9)
    bad("resolution_string_two_meta", HEADER + meta([1], 100) + meta([1], 100) + END, BAD, "second meta", None)


def main():
    given()
    make_valid()
    make_reject()
    (HERE / "expect.json").write_text(json.dumps({"reject": reject, "valid": valid}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
