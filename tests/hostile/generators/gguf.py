# SPDX-License-Identifier: MIT
"""GGUF: magic, version, counts, keys, entries of tensors, padding, data."""
import struct

from kit import *

FORMAT, EXTENSION = "gguf", "gguf"
MISSING = "missing"


def text(s):
    raw = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name, number, value):
    return text(name) + struct.pack("<I", number) + value


def array(number, n, body=b""):
    return struct.pack("<IQ", number, n) + body


def entry(name="w", dims=(4,), number=0, offset=0):
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, offset)


def file(keys=(), entries=(), data=b"", align=32, counts=None):
    nt, nk = counts or (len(entries), len(keys))
    head = b"GGUF" + struct.pack("<IQQ", 3, nt, nk) + b"".join(keys) + b"".join(entries)
    return head + bytes(-len(head) % align) + data


ARCHITECTURE = key("general.architecture", 8, text("llama"))
KEYS = len(ARCHITECTURE) + 24  # where the entries begin, if there is that key
WHOLE = file([ARCHITECTURE], [entry()], bytes(range(32)))


def make(cases):
    truncation(cases)
    wrong_things(cases, WHOLE)
    lengths(cases)
    arithmetic(cases)
    ranges(cases)
    amplification(cases)
    depth(cases)
    duplicates(cases)
    polyglots(cases)
    types(cases)
    forms(cases)
    sets(cases)
    contents(cases)


def truncation(c):
    data = len(WHOLE) - 32
    for at in range(4, len(WHOLE) - 16):
        if at < 26 or at % 8 == 1 or at >= data - 1:
            exact = at < 24 or at >= data - 1  # in these cases the number of missing bytes is known
            c.rejected("A", f"cut_{at:03}", WHOLE[:at], SHORT, None if not exact or at >= 24 and at < data else at,
                       MISSING if exact else "", f"the first {at} of {len(WHOLE)} bytes")
    for at in (len(WHOLE) - 16, len(WHOLE) - 1):
        c.accepted("A", f"cut_{at:03}", WHOLE[:at], 1, "only padding is missing", warnings=1 if at == 144 else 2)
    c.accepted("A", "long_by_1", WHOLE + b"\0", 1, "one byte more than there should be", warnings=2)


def lengths(c):
    for name, n in HUGE.items():
        status = BAD if n > 0xFFFFFFFF else SHORT
        c.rejected("C", f"tensors_{name}", file([ARCHITECTURE], [entry()], bytes(32), counts=(n, 1)), status, 8,
                   "tensors", f"{n} tensors")
        c.rejected("C", f"keys_{name}", file([ARCHITECTURE], [entry()], bytes(32), counts=(1, n)), status, 16,
                   "keys", f"{n} keys")
        c.rejected("C", f"text_{name}", file([text("k") + struct.pack("<IQ", 8, n)]), BAD, 24 + 9 + 4, "bytes",
                   f"a text of {n} bytes")
        c.rejected("C", f"key_{name}", file([struct.pack("<Q", n) + b"k"]), BAD, 24, "bytes", f"a key of {n} bytes")
        c.rejected("C", f"name_{name}", file([], [struct.pack("<Q", n) + b"w" + bytes(24)]), BAD, 24, "bytes",
                   f"a name of {n} bytes")
        for label, number in (("u8", 0), ("f64", 12), ("str", 8), ("array", 9), ("bool", 7)):
            c.rejected("C", f"array_{label}_{name}", file([key("k", 9, array(number, n))]), status, 24 + 9 + 8,
                       "items", f"an array of {n} items")


def arithmetic(c):
    for name, dims, offset in (("2_32_2_32", (1 << 32, 1 << 32), 0), ("2_62_4", (1 << 62, 4), 0),
                               ("zero_last", (1 << 33, 1 << 33, 0), 0), ("zero_first", (0, 1 << 33, 1 << 33), 0),
                               ("bytes", (1 << 62,), 0)):
        c.rejected("D", f"product_{name}", file([], [entry(dims=dims, offset=offset)], bytes(32)), BAD, 24, "2^63",
                   f"dimensions {dims}")
    for name, dim in (("2_63", 1 << 63), ("2_64_less_1", (1 << 64) - 1)):
        c.rejected("D", f"dimension_{name}", file([], [entry(dims=(dim,))], bytes(32)), BAD, 24 + 9 + 4, "2^63",
                   f"a dimension of {dim}")
    for name, offset in (("2_63", 1 << 63), ("2_64_less_32", (1 << 64) - 32), ("2_63_less_32", (1 << 63) - 32)):
        c.rejected("D", f"offset_{name}", file([], [entry(offset=offset)], bytes(32)), BAD, 24, "2^63",
                   f"an offset of {offset}")


def ranges(c):
    two = lambda a, b: file([ARCHITECTURE], [entry("a", offset=a), entry("b", offset=b)], bytes(96))
    c.rejected("E", "same_place", two(0, 0), BAD, None, "share bytes", "two tensors at one place")
    c.rejected("E", "not_aligned", two(0, 40), BAD, KEYS + len(entry()), "multiple of the alignment, 32", "an offset of 40")
    c.rejected("E", "past_end", file([], [entry(offset=1 << 20)], bytes(32)), SHORT, None, MISSING, "beyond the file")
    c.accepted("E", "gap", two(0, 64), 2, "a gap between two tensors", warnings=1)
    c.accepted("E", "backwards", two(32, 0), 2, "tensors in another order than their entries", warnings=2)
    c.accepted("E", "empty_inside", file([ARCHITECTURE], [entry("a", (16,)), entry("b", (0,), 0, 32)], bytes(64)), 2,
               "a tensor without bytes where another lies", warnings=1)


def amplification(c):
    c.rejected("F", "alignment_2_31", file([key("general.alignment", 4, struct.pack("<I", 1 << 31))],
                                           [entry()], bytes(32)), SHORT, None, MISSING, "data that begin at 2 GiB")
    c.rejected("F", "rank_2_32_less_1", file([], [text("w") + struct.pack("<I", (1 << 32) - 1) + bytes(64)]), BAD,
               24 + 9, "dimensions", "4 billion dimensions")
    c.accepted("F", "keys_20000", file([key(f"k{i}", 0, b"\1") for i in range(20000)]), 0, "20,000 keys")
    c.accepted("F", "tensors_10000", file([], [entry(f"t{i}", (0,)) for i in range(10000)]), 10000,
               "10,000 tensors without bytes")
    c.accepted("F", "texts_100000", file([key("k", 9, array(8, 100000, bytes(800000)))]), 0,
               "an array of 100,000 empty texts")


def depth(c):
    for n in (65, 1000, 50000):
        c.rejected("G", f"arrays_{n}", file([key("k", 9, array(9, 1) * n + array(0, 0))]), LIMIT, None, "deep",
                   f"{n} arrays in one another")
    c.accepted("G", "arrays_60", file([key("k", 9, array(9, 1) * 60 + array(0, 0))]), 0, "60 arrays in one another")


def duplicates(c):
    twice = key("a", 0, b"\1")
    c.rejected("H", "key_twice", file([twice, twice]), BAD, 24 + len(twice), "twice", "a key twice")
    c.rejected("H", "key_empty", file([key("", 0, b"\1"), ARCHITECTURE]), BAD, 24, "empty", "an empty key")
    c.rejected("H", "key_not_utf8", file([key(b"\xff", 0, b"\1")]), BAD, 24, "UTF-8", "a key that is no text")
    c.accepted("H", "key_nul", file([key("a\0b", 0, b"\1")]), 0, "a key with a NUL", warnings=None)
    c.rejected("H", "name_twice", file([], [entry("w"), entry("w", offset=32)], bytes(64)), BAD, 24 + len(entry()),
               "twice", "a name twice")
    c.accepted("H", "names_to_nul", file([], [entry("w"), entry("w\0x", offset=32)], bytes(64)), 2,
               "two names that are one up to a NUL", warnings=1)
    c.accepted("H", "name_path", file([], [entry("../../etc/passwd")], bytes(32)), 1, "a name that is a path")
    c.accepted("H", "name_escape", file([], [entry("\x1b[31mred")], bytes(32)), 1, "a name with an escape sequence")
    c.accepted("H", "stash_not_ours", file([key("tenfold.stash", 8, text("{"))]), 0, "a stash that is none",
               warnings=1)
    c.accepted("H", "stash_number", file([key("tenfold.stash", 0, b"\1")]), 0, "a stash that is a number",
               warnings=None)


def polyglots(c):
    for label, tail in (("zip", b"PK\5\6" + bytes(18)), ("gguf", WHOLE)):
        c.accepted("I", f"then_{label}", WHOLE + tail, 1, f"a sound file with {label} behind it", warnings=2)


def types(c):
    at = 24 + 8 + 1 + 4 + 8
    for number in (4, 5, 31, 32, 33, 36, 37, 38, 43, 255, (1 << 32) - 1):
        c.rejected("J", f"type_{number}", file([], [entry(number=number)], bytes(32)), UNSUPPORTED, at,
                   f"type {number}", f"a tensor of type {number}")
    for number in (13, 14, (1 << 32) - 1):
        c.rejected("J", f"value_{number}", file([key("k", number, bytes(8))]), BAD, 24 + 9, f"type {number}",
                   f"a value of type {number}")
        c.rejected("J", f"items_{number}", file([key("k", 9, array(number, 0))]), BAD, 24 + 9 + 4, f"type {number}",
                   f"an empty array of type {number}")
    c.rejected("J", "bool_2", file([key("k", 7, b"\2")]), BAD, 24 + 13, "bool", "a bool of 2")
    c.rejected("J", "row_of_33", file([], [entry(dims=(33,), number=2)], bytes(64)), BAD, 24, "whole blocks",
               "a row that is no whole number of blocks")
    for label, number, value in (("0", 4, struct.pack("<I", 0)), ("3", 4, struct.pack("<I", 3)),
                                 ("u64", 10, struct.pack("<Q", 32)), ("text", 8, text("32"))):
        c.rejected("J", f"alignment_{label}", file([key("general.alignment", number, value)]), BAD, 24 + 8 + 17,
                   "general.alignment", f"an alignment that is {label}")


def forms(c):
    """The same wrong numbers in version 1, whose lengths have 32 bits, and in the other byte
    order."""
    old = lambda nt, nk, rest: b"GGUF" + struct.pack("<III", 1, nt, nk) + rest + bytes(64)
    big = lambda nt, nk, rest: b"GGUF" + struct.pack(">IQQ", 3, nt, nk) + rest + bytes(64)
    for n in (0x7FFFFFFF, 0xFFFFFFFF):
        c.rejected("C", f"old_tensors_{n:x}", old(n, 0, b""), SHORT, 8, "tensors", f"version 1: {n} tensors")
        c.rejected("C", f"old_keys_{n:x}", old(0, n, b""), SHORT, 12, "keys", f"version 1: {n} keys")
        c.rejected("C", f"old_text_{n:x}", old(0, 1, struct.pack("<I", 1) + b"k" + struct.pack("<II", 8, n)), BAD,
                   16 + 5 + 4, "bytes", f"version 1: a text of {n} bytes")
    c.rejected("C", "big_tensors", big(1 << 40, 0, b""), BAD, 8, "tensors", "big-endian: 2^40 tensors")
    c.rejected("C", "big_text", big(0, 1, struct.pack(">Q", 1) + b"k" + struct.pack(">IQ", 8, 1 << 63)), BAD,
               24 + 9 + 4, "bytes", "big-endian: a text of 2^63 bytes")
    c.rejected("D", "big_product", big(1, 0, struct.pack(">Q", 1) + b"w" + struct.pack(
        ">I2QIQ", 2, 1 << 32, 1 << 32, 0, 0)), BAD, 24, "2^63", "big-endian: dimensions that wrap")
    c.rejected("D", "old_offset", old(1, 0, struct.pack("<I", 1) + b"w" + struct.pack("<IIIQ", 1, 4, 0, (1 << 64) - 32)),
               BAD, 16, "2^63", "version 1: an offset that wraps")
    # Its blocks are the same in both byte orders, so the only warnings are about missing bytes.
    c.accepted("J", "big_iq1_s", big(1, 0, struct.pack(">Q", 1) + b"w" + struct.pack(
        ">IQIQ", 1, 256, 19, 0)), 1, "big-endian blocks of a type that has no such form", warnings=None)


def sets(c):
    """Models in several files: the names of the others follow from the name of the first."""
    keys = lambda no, count, total: [key("split.no", 2, struct.pack("<H", no)),
                                     key("split.count", 2, struct.pack("<H", count)),
                                     key("split.tensors.count", 5, struct.pack("<i", total))]
    one = lambda no, count, total, name="a": file(keys(no, count, total), [entry(name)], bytes(32))
    pair = lambda first, second: {"m-00001-of-00002.gguf": first, "m-00002-of-00002.gguf": second}
    c.accepted("K", "sound", pair(one(0, 2, 2), one(1, 2, 2, "b")), 2, "a model in two files")
    c.rejected("K", "no", pair(one(0, 2, 2), one(0, 2, 2, "b")), BAD, None, "split.no 1", "two that say they are first")
    c.rejected("K", "count", pair(one(0, 2, 2), one(1, 3, 2, "b")), BAD, None, "split.count 2", "a set of two or three")
    c.rejected("K", "total", pair(one(0, 2, 2**31 - 1), one(1, 2, 2, "b")), BAD, None, "split.tensors.count",
               "a total of 2^31 - 1")
    c.rejected("K", "negative", pair(one(0, 2, -1), one(1, 2, 2, "b")), BAD, None, "split.tensors.count",
               "a total of -1")
    c.rejected("K", "twice", pair(one(0, 2, 2), one(1, 2, 2)), BAD, None, "twice", "a tensor in both files")
    c.rejected("K", "missing", {"m-00001-of-00002.gguf": one(0, 2, 2)}, SHORT, None, "missing", "the second is missing")
    c.rejected("K", "many", {"m-00001-of-65535.gguf": one(0, 65535, 65535)}, SHORT, None, "missing",
               "65,534 files that are missing")
    c.rejected("K", "other", pair(one(0, 2, 2), b"{}" * 40), BAD, None, "", "the second is another thing")
    c.accepted("K", "itself", {"m-00001-of-00001.gguf": one(0, 1, 1)}, 1, "a set of one")
    c.accepted("K", "merged", {"m-00001-of-00002.gguf": one(0, 0, 1)}, 1, "a count of 0 is no set")
    c.accepted("K", "second", {"m-00002-of-00002.gguf": one(1, 2, 2)}, 1, "a later file alone", warnings=1)


def contents(c):
    """Blocks and numbers of any bits are content."""
    scale = lambda bits: struct.pack("<H", bits) + bytes(range(32))
    for name, bits in (("nan", 0x7E00), ("infinite", 0x7C00), ("signalling", 0x7D01), ("subnormal", 1)):
        c.accepted("P", f"q8_0_{name}", file([ARCHITECTURE], [entry(dims=(32,), number=8)], scale(bits) + bytes(30)), 1,
                   f"a block whose scale is {name}")
    c.accepted("P", "mxfp4_255", file([ARCHITECTURE], [entry(dims=(32,), number=39)], b"\xff" * 17 + bytes(15)), 1,
               "a block of mxfp4 with the exponent 255")
    c.accepted("P", "text_not_utf8", file([key("k", 8, text(b"\xff\xfe"))]), 0, "a text that is none")
    c.accepted("P", "nan_keys", file([key("k", 6, struct.pack("<I", 0x7FA00001)),
                                      key("d", 12, struct.pack("<Q", 0x7FF0000000000001))]), 0,
               "signalling NaNs as values")
