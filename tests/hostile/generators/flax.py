# SPDX-License-Identifier: MIT
"""Flax's msgpack: a tree of maps with arrays in ext 1."""
import struct

from kit import *

FORMAT, EXTENSION = "flax", "msgpack"
MISSING = "missing"


def array(dims, name, data, code=1, head=b"\x93"):
    payload = head + bytes([0x90 | len(dims)]) + b"".join(d if isinstance(d, bytes) else b"\xcf" + struct.pack(">Q", d) for d in dims)
    payload += bytes([0xA0 | len(name)]) + name + b"\xc6" + struct.pack(">I", len(data)) + data
    return b"\xc9" + struct.pack(">IB", len(payload), code) + payload


def tree(**entries):
    return bytes([0x80 | len(entries)]) + b"".join(bytes([0xA0 | len(k)]) + k.encode() + v for k, v in entries.items())


ONE = array([2, 3], b"float32", bytes(range(24)))
WHOLE = tree(w=ONE, step=b"\x07")


def make(c):
    for at in range(1, len(WHOLE)):
        c.rejected("A", f"cut_{at:03}", WHOLE[:at], SHORT, at, MISSING, f"the first {at} of {len(WHOLE)} bytes")
    c.rejected("A", "long_by_1", WHOLE + b"\xc0", BAD, len(WHOLE), "1 byte follows", "one object more")
    wrong_things(c, WHOLE)
    c.accepted("P", "nothing_wrong", WHOLE, 1, "an array and a number")
    c.accepted("P", "nan", tree(w=array([2], b"float32", b"\0\0\xc0\x7f\0\0\x80\xff")), 1, "NaN and -Infinity")
    c.accepted("I", "polyglot", tree(w=ONE, x=b"\xc4\x08PK\3\4%PDF"), 1, "the beginnings of a ZIP archive and a PDF in a leaf")
    c.rejected("I", "zip_behind", WHOLE + b"PK\5\6" + bytes(18), BAD, len(WHOLE), "follow", "the end of a ZIP archive behind the tree")
    chunk = array([3], b"float32", bytes(12))

    def chunked(shape, mark=b"\xc3", **chunks):
        dims = bytes([0x80 | len(shape)]) + b"".join(b"\xa1%d" % i + (d if isinstance(d, bytes) else b"\xcf" + struct.pack(">Q", d)) for i, d in enumerate(shape))
        return tree(w=b"\x83\xb9__msgpack_chunked_array__" + mark + b"\xa5shape" + dims + b"\xa6chunks" + tree(**{k[1:]: v for k, v in chunks.items()}))

    c.accepted("E", "chunks", chunked([2, 3], _0=chunk, _1=chunk), 1, "an array in two chunks")
    c.accepted("E", "chunks_turned", chunked([2, 3], _1=chunk, _0=chunk), 1, "the second chunk first")
    c.accepted("E", "not_chunked", chunked([2, 3], mark=b"\xc2", _0=chunk, _1=chunk), 2, "the marker is false: a tree of this name")
    c.rejected("E", "chunk_missing", chunked([2, 3], _1=chunk), BAD, None, "", "the first chunk is not there")
    c.rejected("E", "chunk_gap", chunked([3, 3], _0=chunk, _2=chunk), BAD, None, "", "a chunk is not there")
    c.rejected("E", "chunks_none", chunked([2, 3]), BAD, None, "", "no chunk is there")
    c.rejected("E", "chunks_more", chunked([1, 3], _0=chunk, _1=chunk), BAD, None, "", "chunks of more than the shape")
    c.rejected("E", "chunks_less", chunked([3, 3], _0=chunk, _1=chunk), BAD, None, "", "chunks of less than the shape")
    c.rejected("E", "chunk_types", chunked([2, 3], _0=chunk, _1=array([3], b"int32", bytes(12))), BAD, None, "", "chunks of two types")
    c.rejected("E", "chunk_rank", chunked([2, 3], _0=chunk, _1=array([1, 3], b"float32", bytes(12))), BAD, None, "", "a chunk of two dimensions")
    for name, n in HUGE.items():
        c.rejected("D", f"chunked_{name}", chunked([n, n], _0=chunk, _1=chunk), BAD, None, "", f"chunks of two dimensions of {n}")
        if n >> 32 == 0:
            c.rejected("C", f"data_{name}", tree(w=ONE[:-28] + struct.pack(">I", n) + ONE[-24:], step=b"\x07"), [BAD, SHORT], None, "", f"data of {n} bytes in an array of 24")
    for name, head in (("map", b"\xde"), ("array", b"\xdc"), ("str", b"\xda"), ("bin", b"\xc5")):
        c.rejected("C", f"{name}_16", tree(w=ONE, x=head + b"\xff\xff"), SHORT, None, MISSING, f"a {name} of 65535 that is not there")
    for n in (2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1):
        size = struct.pack(">I", n)
        for name, head in (("map", b"\xdf"), ("array", b"\xdd"), ("str", b"\xdb"), ("bin", b"\xc6")):
            c.rejected("F", f"{name}_{n}", tree(w=ONE, x=head + size), SHORT, len(WHOLE) + 1, MISSING, f"a {name} of {n} that is not there")
        c.rejected("F", f"ext_{n}", tree(w=ONE, x=b"\xc9" + size + b"\1"), SHORT, len(WHOLE) + 2, MISSING, f"an array of {n} bytes that is not there")
        c.rejected("F", f"top_{n}", b"\xdf" + size + WHOLE[1:], SHORT, len(WHOLE) + 4, MISSING, f"a tree of {n} entries in few bytes")
    for name, n in HUGE.items():
        c.rejected("D", f"dim_{name}", tree(w=array([n, 3], b"float32", bytes(24))), BAD, None, "", f"a dimension of {n}")
        c.rejected("D", f"dims_{name}", tree(w=array([n, n], b"float32", bytes(24))), BAD, None, "", f"two dimensions of {n}")
    c.rejected("D", "wraps_to_24", tree(w=array([2 ** 62 + 6], b"float32", bytes(24))), BAD, None, "", "bytes that wrap to what is there")
    for depth in (129, 1000, 100000):
        c.rejected("G", f"maps_{depth}", b"\x81\xa1d" * depth + b"\xc0", LIMIT, 384, "levels", f"{depth} maps within each other")
        c.rejected("G", f"arrays_{depth}", b"\x81\xa1d" + b"\x91" * depth + b"\xc0", LIMIT, 3 + 127, "levels", f"{depth} arrays within each other")
    c.rejected("H", "key_twice", b"\x82" + 2 * (b"\xa1w" + ONE), BAD, 3 + len(ONE), "twice", "two arrays under one key")
    c.rejected("H", "key_nil", b"\x81\xc0" + ONE, BAD, 1, "key", "a key that is nil")
    c.rejected("H", "key_array", b"\x81\x90" + ONE, BAD, 1, "key", "a key that is an array")
    c.accepted("H", "key_escapes", b"\x81\xa4\x1b[2J" + ONE, 1, "a key that clears the screen", warnings=None)
    for name in (b"object", b"O", b"|O", b"float128", b"V4", b"float32\0", b"Float32", b""):
        c.rejected("J", f"type_{name.hex()}", tree(w=array([2, 3], name, bytes(24))), UNSUPPORTED, None, "unknown type", f"the type {name!r}")
    for dim in (b"\xff", b"\xd3" + b"\xff" * 8, b"\xca\0\0\0\0", b"\xa11", b"\xc0"):
        c.rejected("J", f"dim_{dim.hex()}", tree(w=array([dim], b"float32", bytes(24))), BAD, None, "dimension", "a dimension that is no count")
    c.rejected("C", "four_parts", tree(w=array([2, 3], b"float32", bytes(24), head=b"\x94")), BAD, None, "", "an array of four parts")
    c.rejected("C", "parts_beyond", tree(w=ONE[:1] + struct.pack(">I", len(ONE) - 7) + ONE[5:], step=b"\x07"), BAD, None, "", "an array that ends before its data")
