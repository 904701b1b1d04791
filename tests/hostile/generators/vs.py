# SPDX-License-Identifier: MIT
"""VS: blocks of type, length and payload; a meta block, points, an end."""
import struct

from kit import *

FORMAT, EXTENSION = "vs", "vsdb"


def varint(n, size=0):
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n >> 7 or len(out) + 1 < size else 0))
        n >>= 7
        if not n and len(out) >= size:
            return bytes(out)


def block(kind, payload, length=None):
    return kind + struct.pack("<I", len(payload) if length is None else length) + payload


def meta(dims=b"\3\1\2\3", resolution=1, pack=0, paging=0, attributes=b"\1\x80", extra=b""):
    return dims + bytes([resolution, pack, paging]) + attributes + extra


def point(data=b"\1\2\3\4\5\6", option=0, app=b"\0", how=0, length=None):
    return bytes([option]) + app + bytes([how]) + struct.pack("<I", len(data) if length is None else length) + data


POINT = 4 + 5 + 9  # where the block after a usual space begins


def file(*blocks, end=b"$"):
    return b"VS\0\0" + b"".join(blocks) + end


def snappy(data):
    return varint(len(data)) + bytes([len(data) - 1 << 2]) + data


def make(c):
    f = Fields()
    for name, raw in (("magic", b"VS"), ("version", b"\0\0"), ("meta", b"^"), ("meta_len", struct.pack("<I", 9)),
                      ("rank", b"\3"), ("dims", b"\1\2\3"), ("resolution", b"\1"), ("pack", b"\0"), ("paging", b"\0"),
                      ("attributes_len", b"\1"), ("attributes", b"\x80"), ("point", b"P"), ("point_len", struct.pack("<I", 14)),
                      ("option", b"\0"), ("app_len", b"\1"), ("app", b"\xc0"), ("how", b"\0"), ("vector_len", struct.pack("<I", 6)),
                      ("vector", b"\1\2\3\4\5\6"), ("end", b"$")):
        f.raw(name, raw)
    whole = f.build()
    wrong_things(c, whole)
    c.accepted("P", "sound", whole, 2, "a sound file")
    for label, at in cuts(f):
        if at in (f.at("meta"), f.at("point"), f.at("end")):
            c.accepted("A", f"cut_{label}", whole[:at], 0 if label == "before_meta" else 2, "cut where a block ends: the end is implied", warnings=None)
        else:
            block_at = at if at < 4 else f.at("meta") if at < f.at("point") else f.at("point")  # its length is too large
            c.rejected("A", f"cut_{label}", whole[:at], SHORT, block_at, "", f"the first {at} of {len(whole)} bytes")
    c.accepted("I", "then_zip", whole + b"PK\5\6" + bytes(18), 2, "bytes behind the end, which are ignored", warnings=None)
    c.accepted("I", "unknown_block", file(block(b"^", meta()), block(b"Z", b"PK\5\6"), block(b"P", point())), 2, "a block of another type, kept", warnings=None)
    c.accepted("I", "meta_extra", file(block(b"^", meta(extra=b"extra"))), 2, "bytes behind the attributes, kept", warnings=None)
    c.accepted("I", "zero_block", file(block(b"^", meta()), block(b"\0", b"x")), 2, "a block of type 0: it smells of damage", warnings=1)
    lengths(c, f)
    spaces(c)
    points(c)
    apps(c)
    compressed(c)


def lengths(c, f):
    def lie(name, status, what, letter="C", at=None, **but):
        c.rejected(letter, name, f.build(**but), status, None if at is None else f.at(at), "", what)
    for label, n in (("2_31", 1 << 31), ("2_32_less_1", (1 << 32) - 1), ("1_more", None)):
        lie(f"meta_{label}", SHORT, "a meta block of another length", at="meta" if n else None, meta_len=struct.pack("<I", n or 10))
        lie(f"point_{label}", SHORT, "a point that is longer than the file", at="point", point_len=struct.pack("<I", n or 16))
        lie(f"vector_{label}", BAD, "a vector that is longer than its block", at="how", vector_len=struct.pack("<I", n or 7))
    lie("point_0", BAD, "a point of no bytes", at="option", point_len=struct.pack("<I", 0))
    lie("point_1_less", BAD, "a point that ends inside of its vector", at="how", point_len=struct.pack("<I", 13))
    lie("meta_0", SHORT, "a meta block of no bytes", at="rank", meta_len=struct.pack("<I", 0))
    lie("vector_0", BAD, "a vector of no bytes", at="how", vector_len=struct.pack("<I", 0))
    lie("vector_5", BAD, "a vector that is a byte too short", at="how", vector_len=struct.pack("<I", 5))
    for label, raw in (("2_32_less_1", b"\xff\xff\xff\xff\x0f"), ("2_31", b"\x80\x80\x80\x80\x08"), ("2", b"\2")):
        lie(f"attributes_{label}", BAD, "attributes that are longer than their block", attributes_len=raw,
            meta_len=struct.pack("<I", 8 + len(raw)))
        c.rejected("C", f"app_{label}", file(block(b"^", meta()), block(b"P", b"\0" + raw + b"\xc0")), BAD, 24, "",
                   "application data that are longer than their block")
    for label, raw in (("6_bytes", b"\x81\x80\x80\x80\x80\0"), ("2_32", b"\x80\x80\x80\x80\x10"), ("endless", b"\xff" * 12)):
        lie(f"varint_{label}", BAD, "a number that is too long", "D", "rank", rank=raw)
    c.accepted("H", "varint_padded", f.build(rank=b"\x83\x00", meta_len=struct.pack("<I", 10)), 2, "a number with zeros behind it: protobuf reads it")
    for label, version in (("1", b"\1\0"), ("256", b"\0\1"), ("65535", b"\xff\xff")):
        c.rejected("J", f"version_{label}", f.build(version=version), UNSUPPORTED, 2, "", f"version {label}")


def spaces(c):
    def space(name, message, what, letter="D", status=BAD, **how):
        c.rejected(letter, name, file(block(b"^", meta(**how))), status, 9, message, what)
    big = varint((1 << 32) - 1)
    space("dimension_0", "", "a dimension of 0", dims=b"\2\3\0")
    space("rank_past_block", "", "more dimensions than bytes", dims=varint(100) + b"\1", letter="C")
    space("rank_2_32_less_1", "", "2^32 - 1 dimensions", dims=big, letter="F")
    space("product_wraps", "", "three dimensions of 2^32 - 1", dims=b"\3" + big * 3)
    space("product_wraps_to_0", "", "2^31 × 2^31 × 4", dims=b"\3" + varint(1 << 31) * 2 + b"\4")
    space("bytes_too_many", "", "a vector that no block could hold", dims=b"\2" + big + b"\4", resolution=12)
    space("bytes_wrap_64", "", "2^61 × 8 bytes", dims=b"\2" + varint(1 << 31) + varint(1 << 30), resolution=12)
    for rank in (63, 64, 65, 20000):
        c.accepted("D", f"rank_{rank}", file(block(b"^", meta(dims=varint(rank) + b"\1" * rank))), 2,
                   f"{rank} dimensions, and one of points: any rank is allowed", warnings=None)
    c.accepted("D", "rank_0", file(block(b"^", meta(dims=b"\0")), block(b"P", point(b"\7"))), 2, "no dimensions: one number a point", warnings=None)
    for code in (5, 9, 15, 50, 0x80, 0xF0):
        space(f"resolution_{code}", "resolution", f"a resolution of {code}", "J", resolution=code, status=UNSUPPORTED)
    for code, word in ((100, "texts"), (101, "JSON")):
        c.accepted("J", f"resolution_{code}", file(block(b"^", meta(resolution=code))), 2, f"a space of {word}", warnings=None)
        for label, vector in (("cut", b"\3ab"), ("long", b"\xff\xff\xff\xff\x0f"), ("more", b"\1a\1"), ("none", b""), ("varint_6", b"\x80" * 5 + b"\0")):
            c.accepted("J", f"{word.lower()}_{label}", file(block(b"^", meta(resolution=code, dims=b"\1\1")), block(b"P", point(vector))), 0,
                       f"a vector that is not made of {word}: kept as it is", warnings=None)
    for code in (13, 14):
        c.accepted("J", f"resolution_{code}", file(block(b"^", meta(resolution=code))), 0, f"a resolution of {code}: no numbers, kept as it is", warnings=None)
    c.accepted("J", "pack_unknown", file(block(b"^", meta(pack=99, paging=99))), 2, "hints that mean nothing, kept", warnings=None)
    c.accepted("J", "bit_spare", file(block(b"^", meta(dims=b"\1\3", resolution=0)), block(b"P", point(b"\xff"))), 2, "spare bits that are set", warnings=None)
    c.rejected("H", "two_metas", file(block(b"^", meta()), block(b"^", meta())), BAD, POINT, "", "two spaces")
    c.rejected("H", "point_first", file(block(b"P", point()), block(b"^", meta())), BAD, 4, "", "a point before its space")
    c.rejected("H", "point_alone", file(block(b"P", point())), BAD, 4, "", "a point without a space")
    c.accepted("H", "meta_deleted", file(block(b"0", meta()), block(b"^", meta())), 2, "a deleted space before another", warnings=None)


def points(c):
    def bad(name, payload, what, at):
        c.rejected("J", name, file(block(b"^", meta()), block(b"P", payload)), UNSUPPORTED, POINT + 5 + at, "", what)
    for code in (3, 4, 7):
        bad(f"vector_code_{code}", point(how=code), f"a vector compressed as {code}", 2)
    for code in (2, 5, 7):
        bad(f"app_code_{code}", point(option=code, app=b"\1\xc0"), f"application data compressed as {code}", 0)
    c.accepted("J", "spare_bits", file(block(b"^", meta()), block(b"P", point(option=0xF8, how=0xF8))), 2, "spare bits of the options, kept", warnings=None)
    c.accepted("I", "point_extra", file(block(b"^", meta()), block(b"P", point() + b"extra")), 2, "bytes behind a vector, kept", warnings=None)
    c.accepted("E", "deleted", file(block(b"^", meta()), block(b"0", b"anything"), block(b"P", point())), 2, "a deleted point", warnings=None)
    for label, data in (("nan", struct.pack("<f", float("nan"))), ("infinity", struct.pack("<f", float("inf")))):
        c.accepted("P", f"value_{label}", file(block(b"^", meta(dims=b"\1\1", resolution=11)), block(b"P", point(data))), 2, f"a value: {label}")


def apps(c):
    def bad(name, value, what, letter="J", status=BAD, more=0):
        raw = varint(len(value)) + value
        into = len(raw) - len(value) + more  # where the value is, after its length
        at = (None, None) if status is LIMIT else (POINT + 5 + 1 + into, 9 + 7 + into)
        c.rejected(letter, f"app_{name}", file(block(b"^", meta()), block(b"P", point(app=raw))), status, at[0], "", what)
        c.rejected(letter, f"attributes_{name}", file(block(b"^", meta(attributes=raw))), status, at[1], "", what)
    bad("two_values", b"\xc0\xc0", "two values where one is due", "I", more=1)
    bad("never_used", b"\xc1", "a byte that MessagePack never uses")
    bad("str_cut", b"\xa5abc", "a string that is cut short", "A")
    bad("str32", b"\xdb\xff\xff\xff\xff", "a string of 2^32 - 1 bytes", "F")
    bad("array32", b"\xdd\xff\xff\xff\xff", "an array of 2^32 - 1 items", "F")
    bad("map32", b"\xdf\xff\xff\xff\xff", "a map of 2^32 - 1 pairs", "F")
    bad("array16_chain", b"\xdc\xff\xff" * 60, "arrays of 65535 items in each other", "F")
    bad("deep_arrays", b"\x91" * 300 + b"\xc0", "300 arrays in each other", "G", LIMIT)
    bad("deep_maps", b"\x81\xa1a" * 300 + b"\xc0", "300 maps in each other", "G", LIMIT)
    for label, value in (("ansi", b"\xa4\x1b[2J"), ("key_twice", b"\x82\xa1a\1\xa1a\2"), ("raw_bytes", b"\xa2\xff\xfe"), ("bin", b"\xc4\2\0\1"), ("nan", b"\xcb\x7f\xf8" + bytes(6))):
        raw = varint(len(value)) + value
        c.accepted("H", f"app_{label}", file(block(b"^", meta()), block(b"P", point(app=raw))), 2, f"application data: {label}", warnings=None)


def compressed(c):
    """Faults that can be found without decoding (gzip's magic, snappy's size) are reported when the file
    is opened."""
    six = b"\1\2\3\4\5\6"
    def packed(data, how):
        return file(block(b"^", meta()), block(b"P", point(data, how=how)))
    def bad(name, data, how, what, letter="N", status=BAD):
        c.damaged(letter, name, packed(data, how), status, 2, what)
    def refused(name, data, how, what, letter="N"):
        c.rejected(letter, name, packed(data, how), BAD, POINT + 5 + 7, "", what)
    c.accepted("N", "gzip", packed(gzip(six), 1), 2, "a vector in gzip")
    c.accepted("N", "snappy", packed(snappy(six), 2), 2, "a vector in snappy")
    bad("gzip_less", gzip(six[:5]), 1, "gzip that gives too little", status=SHORT)
    bad("gzip_more", gzip(six + b"7"), 1, "gzip that gives too much")
    bad("gzip_cut", gzip(six)[:-2], 1, "gzip that is cut short", status=SHORT)
    refused("gzip_garbage", b"\x80\x02garbage", 1, "something else for gzip")
    refused("snappy_less", snappy(six[:5]), 2, "snappy that gives too little")
    refused("snappy_more", snappy(six + b"7"), 2, "snappy that gives too much")
    refused("snappy_garbage", b"\x80\x02garbage", 2, "something else for snappy")
    bad("snappy_cut", snappy(six)[:-2], 2, "snappy that is cut short")
    bad("gzip_crc", gzip(six)[:-8] + bytes(4) + struct.pack("<I", 6), 1, "gzip with a wrong checksum")
    bad("gzip_bomb", gzip(bytes(1 << 20)), 1, "1 MiB in a vector of 6 bytes", "F")
    refused("snappy_says_4_gib", b"\xff\xff\xff\xff\x0f\x00a", 2, "snappy that promises 4 GiB", "F")
    bad("snappy_copy_before_start", b"\6\x01\x05\x10abcde"[:9], 2, "snappy that copies from before its start")
    bad("snappy_offset_0", b"\6\0a\x09\0", 2, "snappy that copies from where it is")
    bad("snappy_literal_huge", b"\6\xfc\xff\xff\xff\xffa", 2, "a literal of 4 GiB", "F")
    c.accepted("N", "gzip_members", file(block(b"^", meta()), block(b"P", point(gzip(six[:3]) + gzip(six[3:]), how=1))), 2,
               "gzip of two members")
    packed = snappy(b"\xc0")
    c.accepted("N", "app_snappy", file(block(b"^", meta()), block(b"P", point(option=1, app=varint(len(packed)) + packed))), 2, "application data in snappy")
    for label, raw in (("bomb", b"\xff\xff\xff\xff\x0f\0a"), ("garbage", b"\5zzzz"), ("cut", b"\4\x0cab")):
        c.rejected("N", f"app_snappy_{label}", file(block(b"^", meta()), block(b"P", point(option=1, app=varint(len(raw)) + raw))), BAD, POINT + 5 + 2 + (label != "bomb"), "",
                   f"application data in snappy: {label}")
