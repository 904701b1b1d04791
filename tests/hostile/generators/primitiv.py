# SPDX-License-Identifier: MIT
"""primitiv: MessagePack values one after the other."""
import struct

from kit import *

FORMAT, EXTENSION = "primitiv", "primitiv"


def u(n):
    return b"\xce" + struct.pack(">I", n)


def text(raw):
    return bytes([0xA0 + len(raw)]) + raw


def binary(raw):
    return b"\xc4" + bytes([len(raw)]) + raw


def shape(*dims, batch=1):
    return bytes([0x90 + len(dims)]) + b"".join(u(d) for d in dims) + u(batch)


def head(kind):
    return u(0) + u(1) + u(kind)


SHAPE, TENSOR, PARAMETER, MODEL, OPTIMIZER = 0, 0x100, 0x200, 0x300, 0x400
FOUR = struct.pack("<4f", 1, 2, 3, 4)


def tensor(dims=(2, 2), data=FOUR, batch=1):
    return shape(*dims, batch=batch) + binary(data)


def parameter(value=None, stats=()):
    return (tensor() if value is None else value) + u(len(stats)) + b"".join(text(k) + v for k, v in stats)


def model(*items, n=None):
    return head(MODEL) + u(len(items) if n is None else n) + b"".join(
        bytes([0x90 + len(path)]) + b"".join(map(text, path)) + p for path, p in items)


def fields():
    f = Fields()
    for name, raw in (("major", u(0)), ("minor", u(1)), ("type", u(MODEL)), ("count", u(1)), ("path", b"\x92"),
                      ("first", text(b"enc")), ("second", text(b"w")), ("dims", b"\x92"), ("dim0", u(2)), ("dim1", u(2)),
                      ("batch", u(1)), ("bin", b"\xc4\x10"), ("data", FOUR), ("stats", u(1)), ("key", text(b"m")),
                      ("sdims", b"\x91"), ("sdim0", u(4)), ("sbatch", u(1)), ("sbin", b"\xc4\x10"), ("sdata", FOUR)):
        f.raw(name, raw)
    return f


def make(c):
    f = fields()
    whole = f.build()
    wrong_things(c, whole)
    c.accepted("P", "sound", whole, 2, "a sound model")
    for label, at in cuts(f):
        name = label.split("_")[-1]
        claimed = name in ("first", "second", "key") and not label.startswith("before")
        c.rejected("A", f"cut_{label}", whole[:at], SHORT, f.at(name) if claimed else at, "",  # the message names the claim
                   f"the first {at} of {len(whole)} bytes")
    c.accepted("A", "long_by_1", whole + b"\0", 2, "a byte behind the object: primitiv ignores it", warnings=1)
    c.accepted("I", "then_zip", whole + b"PK\5\6" + bytes(18), 2, "a ZIP archive behind the object", warnings=1)
    lengths(c, f)
    shapes(c)
    integers(c, f)
    names(c)
    optimizers(c)


def lengths(c, f):
    def lie(name, what, letter="C", status=BAD, at=None, **but):
        c.rejected(letter, name, f.build(**but), status, at or f.at(next(iter(but))), "", what)
    for label, n in (("2", 2), ("2_24", 1 << 24), ("2_31", 1 << 31), ("2_32_less_1", (1 << 32) - 1)):
        lie(f"count_{label}", f"a model of {n} parameters that has one", count=u(n), status=SHORT, at=END)
        lie(f"stats_{label}", f"{n} statistics, of which one is there", stats=u(n), status=SHORT, at=END)
    c.accepted("C", "count_0", f.build(count=u(0)), 0, "a model of no parameters, and bytes behind it", warnings=1)
    for label, raw in (("bin8", b"\xc4\xff"), ("bin16", b"\xc5\xff\xff"), ("bin32", b"\xc6\xff\xff\xff\xff"), ("bin32_2_31", b"\xc6\x80\0\0\0"),
                       ("bin_0", b"\xc4\x00"), ("bin_15", b"\xc4\x0f"), ("bin_17", b"\xc4\x11")):
        lie(f"data_{label}", "data of another length than the shape needs", bin=raw)
    for label, raw in (("str8", b"\xd9\xff"), ("str16", b"\xda\xff\xff"), ("str32", b"\xdb\xff\xff\xff\xff"), ("str32_2_31", b"\xdb\x80\0\0\0")):
        lie(f"name_{label}", "a name that is longer than the file", status=SHORT, first=raw + b"enc")
        lie(f"key_{label}", "a key that is longer than the file", status=SHORT, key=raw + b"m")
    for label, raw in (("array16", b"\xdc\xff\xff"), ("array32", b"\xdd\xff\xff\xff\xff")):
        lie(f"path_{label}", "a path of more elements than there are bytes", "F", SHORT, path=raw)
        lie(f"dims_{label}", "more dimensions than there are bytes", "F", SHORT, dims=raw)
    lie("path_0", "a path of no elements", path=b"\x90")
    c.accepted("H", "long_heads", f.build(path=b"\xdd\0\0\0\2", first=b"\xdb\0\0\0\3enc", bin=b"\xc6\0\0\0\x10", dims=b"\xdc\0\2"), 2,
               "heads that are longer than they need be: primitiv reads them")


def shapes(c):
    def bad(name, dims, message, what, batch=1, data=FOUR, letter="D", status=BAD):
        c.rejected(letter, name, head(TENSOR) + tensor(dims, data, batch), status, None, message, what)
    bad("product_wraps_32", (65536, 65537), "", "a product that wraps in 32 bits: primitiv takes it", data=b"")
    bad("product_wraps_to_0", (65536, 65536), "", "a product that is 0 in 32 bits", data=b"")
    bad("product_wraps_64", ((1 << 32) - 1,) * 3, "", "a product that wraps in 64 bits")
    bad("bytes_wrap_32", (1 << 30,), "", "2^30 × 4 bytes is 0 in 32 bits", data=b"")
    bad("batch_wraps", (65536,), "", "a batch that makes it wrap", batch=65536, data=b"")
    bad("all_max", ((1 << 32) - 1,) * 8, "", "eight dimensions of 2^32 - 1")
    bad("dimension_0", (2, 0), "", "a dimension of 0", data=b"")
    bad("batch_0", (2, 2), "", "a batch of 0", batch=0, data=b"")
    bad("rank_9", (1,) * 9, "8", "nine dimensions", data=FOUR[:4])
    bad("rank_15", (1,) * 15, "8", "fifteen dimensions", data=FOUR[:4])
    bad("needs_more", (5,), "20", "a shape that needs more bytes", letter="E")
    bad("needs_less", (3,), "12", "a shape that needs fewer bytes", letter="E")
    bad("batch_needs_more", (2, 2), "32", "a batch that needs more bytes", batch=2, letter="E")
    c.accepted("D", "rank_8", head(TENSOR) + tensor((1,) * 8, FOUR[:4]), 1, "eight dimensions")
    c.accepted("D", "rank_0", head(TENSOR) + tensor((), FOUR[:4]), 1, "a scalar")
    c.rejected("P", "value_batch", head(PARAMETER) + parameter(tensor((2,), FOUR, 2)), BAD, None, "batch", "a parameter whose value has a batch")
    c.accepted("P", "stat_batch", head(PARAMETER) + parameter(stats=[(b"m", tensor((2,), FOUR, 2))]), 2, "a statistic with a batch")


def integers(c, f):
    def bad(name, what, **but):
        c.rejected("J", name, f.build(**but), BAD, f.at(next(iter(but))), "", what)
    for label, raw in (("fixint", b"\x01"), ("u8", b"\xcc\x01"), ("u16", b"\xcd\0\x01"), ("u64", b"\xcf" + bytes(7) + b"\1"),
                       ("i32", b"\xd2\0\0\0\1"), ("negative", b"\xff"), ("float", b"\xca\x3f\x80\0\0"), ("nil", b"\xc0"),
                       ("true", b"\xc3"), ("str", b"\xa11"), ("map", b"\x80"), ("never_used", b"\xc1"), ("ext", b"\xd4\x01\x01")):
        bad(f"count_{label}", f"a count written as {label}", count=raw)
    bad("data_str", "a string for data", bin=b"\xd9\x10")
    bad("data_ext", "an extension for data", bin=b"\xc7\x10")
    bad("data_nil", "nothing for data", bin=b"\xc0")
    bad("path_str", "a string for a path", path=b"\xa1")
    bad("path_map", "a map for a path", path=b"\x82")
    bad("name_bin", "bytes for a name", first=b"\xc4\x03enc")
    bad("name_nil", "nothing for a name", first=b"\xc0")
    bad("dims_map", "a map for dimensions", dims=b"\x82")
    for n in (1, 0xFF, 0x101, 0x500, (1 << 32) - 1):
        c.rejected("J", f"type_{n:x}", f.build(type=u(n)), UNSUPPORTED, 10, "", f"an object of type {n:#x}")
    for name, major, minor in (("0_0", 0, 0), ("0_2", 0, 2), ("1_1", 1, 1)):
        c.rejected("J", f"version_{name}", f.build(major=u(major), minor=u(minor)), UNSUPPORTED, 0, "", f"version {name}")
    c.rejected("G", "arrays", head(MODEL) + u(1) + b"\x91" * 400, BAD, None, "", "arrays in each other where names are due")


def names(c):
    for label, path in (("empty", [b""]), ("nul", [b"a\0b"]), ("ansi", [b"\x1b[2J"]), ("newline", [b"a\nb"]), ("dotdot", [b"..", b"x"]),
                        ("slash", [b"/etc/passwd"]), ("dots", [b"a.b", b"."]), ("bad_utf8", [b"\xff\xfe"]), ("backslash", [b"a\\", b"b"]),
                        ("deep", [b"a"] * 15)):
        c.accepted("H", f"name_{label}", model((path, parameter())), 1, f"a name: {label}", warnings=None)
    twice = parameter(), parameter(tensor((1,), FOUR[:4]))
    c.accepted("H", "path_twice", model(([b"w"], twice[0]), ([b"w"], twice[1])), 1, "a path twice: the last counts", warnings=1)
    c.accepted("H", "stat_twice", head(PARAMETER) + parameter(stats=[(b"m", tensor()), (b"m", tensor((1,), FOUR[:4]))]), 2,
               "a statistic twice: the first counts", warnings=1)
    c.accepted("H", "stat_like_parameter", model(([b"w"], parameter(stats=[(b"m", tensor())])), ([b"w@m"], parameter())), 3,
               "a parameter by the name that a statistic would get", warnings=None)
    for label, data in (("nan", b"\0\0\xc0\x7f" * 4), ("signalling", b"\1\0\x80\x7f" * 4), ("infinity", b"\0\0\x80\xff" * 4), ("subnormal", b"\1\0\0\0" * 4)):
        c.accepted("P", f"value_{label}", head(TENSOR) + tensor(data=data), 1, f"values: {label}")


def optimizers(c):
    good = b"\x81" + text(b"Optimizer.epoch") + u(1), b"\x81" + text(b"SGD.eta") + b"\xca" + struct.pack(">f", .1)
    c.accepted("P", "optimizer", head(OPTIMIZER) + good[0] + good[1], 0, "a sound optimizer")
    def bad(name, first, second, what, letter="J", status=BAD, at=None):
        c.rejected(letter, f"optimizer_{name}", head(OPTIMIZER) + first + second, status, at, "", what)
    bad("cut", good[0], b"", "one of two maps", "A", SHORT, END)
    bad("double", good[0], b"\x81" + text(b"x") + b"\xcb" + bytes(8), "a double for a float", status=BAD)
    bad("float_for_uint", b"\x81" + text(b"x") + b"\xca" + bytes(4), good[1], "a float for an integer", status=BAD)
    bad("key_number", b"\x81\x01" + u(1), good[1], "a key that is a number", status=BAD)
    bad("array", b"\x91" + u(1), good[1], "an array for a map", at=15)
    bad("map32", b"\xdf\xff\xff\xff\xff", good[1], "a map of 2^32 - 1 entries", "F", SHORT, 15)
    bad("map16", b"\xde\xff\xff", good[1], "a map of 65535 entries", "F", SHORT, 15)
    c.accepted("H", "optimizer_key_twice", head(OPTIMIZER) + b"\x82" + (text(b"x") + u(1)) + (text(b"x") + u(2)) + good[1], 0,
               "a key twice: the first counts", warnings=1)
