# SPDX-License-Identifier: MIT
"""TFLite: a FlatBuffer, whose references may lead anywhere."""
import struct

from kit import *

FORMAT, EXTENSION = "tflite", "tflite"


class Flat:
    """A buffer that grows forwards: what is referred to lies behind what refers to it, so references are put in later."""

    def __init__(self):
        self.out, self.later = bytearray(8), []

    def pad(self, n):
        self.out += bytes(-len(self.out) % n)

    def vector(self, data, width=1, align=4):
        self.pad(4)
        while align > 4 and (len(self.out) + 4) % align:
            self.out += b"\0"
        at = len(self.out)
        self.out += struct.pack("<I", len(data) // width) + data
        return at

    def tables(self, items):
        self.pad(4)
        at = len(self.out)
        self.out += struct.pack("<I", len(items)) + bytes(4 * len(items))
        for i, item in enumerate(items):
            self.later.append((at + 4 + 4 * i, item))
        return at

    def table(self, fields):
        """fields: {index: bytes of a number, or a function that gives where it leads}"""
        n = max(fields, default=-1) + 1
        self.pad(2)
        vtable = len(self.out)
        self.out += bytes(4 + 2 * n)
        self.pad(8)
        at = len(self.out)
        self.out += struct.pack("<i", at - vtable)
        for index, value in fields.items():
            self.pad(len(value) if isinstance(value, bytes) else 4)
            struct.pack_into("<H", self.out, vtable + 4 + 2 * index, len(self.out) - at)
            if isinstance(value, bytes):
                self.out += value
            else:
                self.later.append((len(self.out), value))
                self.out += bytes(4)
        struct.pack_into("<HH", self.out, vtable, 4 + 2 * n, len(self.out) - at)
        return at

    def finish(self, root, behind=()):
        self.later.append((0, root))
        self.out[4:8] = b"TFL3"
        while self.later:
            place, make = self.later.pop(0)
            struct.pack_into("<I", self.out, place, make(self) - place)
        return bytes(self.out)


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return lambda f: _string(f, s)


def _string(f, s):
    at = f.vector(s)
    f.out += b"\0"
    return at


def numbers(code, values):
    return lambda f: f.vector(struct.pack(f"<{len(values)}{code}", *values), struct.calcsize(code), 8)


def tensor(name, type_, shape, buffer, quant=None, more=None):
    fields = {0: numbers("i", shape), 1: bytes([type_]), 2: struct.pack("<I", buffer), 3: text(name)}
    if quant:
        scale, zero, axis = quant
        fields[4] = lambda f: f.table({2: numbers("f", scale), 3: numbers("q", zero), 6: struct.pack("<i", axis)})
    return lambda f: f.table(fields | (more or {}))


def buffer(data=None, offset=None, size=None):
    fields = {}
    if data is not None:
        fields[0] = lambda f: f.vector(data, 1, 16)
    if offset is not None:
        fields |= {1: struct.pack("<Q", offset), 2: struct.pack("<Q", size)}
    return lambda f: f.table(fields)


def model(graphs, buffers, metadata=()):
    root = {0: struct.pack("<I", 3), 2: lambda f: f.tables([lambda f, t=t: f.table({0: lambda f: f.tables(t)}) for t in graphs]), 3: text("made by hand"),
            4: lambda f: f.tables([buffer()] + list(buffers))}
    if metadata:
        root[6] = lambda f: f.tables([lambda f, n=n, b=b: f.table({0: text(n), 1: struct.pack("<I", b)}) for n, b in metadata])
    return Flat().finish(lambda f: f.table(root))


def make(c):
    data = struct.pack("<4f", 1, 2, 3, 4)
    whole = model([[tensor("w", 0, [2, 2], 1)]], [buffer(data)])
    c.accepted("P", "nothing_wrong", whole, 1, "a model of one constant")
    wrong_things(c, whole)
    one = lambda *tensors: model([list(tensors)], [buffer(data)])
    w = tensor("w", 0, [2, 2], 1)
    c.accepted("P", "nan", model([[w]], [buffer(struct.pack("<4f", float("nan"), float("inf"), -0.0, 1e-45))]), 1, "NaN, Infinity, -0 and the smallest number")
    c.accepted("P", "none", model([[tensor("a", 0, [2, 2], 0)]], []), 0, "an activation and no constant", warnings=None)
    c.accepted("I", "zip_behind", whole + b"PK\5\6" + bytes(18), 1, "a ZIP archive behind the model, as those of associated files", warnings=None)
    c.rejected("I", "html_before", b"<html>\n\n" + whole, [BAD, UNSUPPORTED], None, "", "HTML before the model")
    c.accepted("H", "name_twice", one(w, w), 2, "two tensors of one name", warnings=None)
    c.accepted("H", "name_none", one(tensor("", 0, [2, 2], 1)), 1, "a tensor without a name", warnings=None)
    for name in (b"\x1b[2J", b"a\0b", b"\xff\xfe", b"../x", b"%s%n"):
        c.accepted("H", f"name_{name.hex()}", one(tensor(name, 0, [2, 2], 1)), 1, f"the name {name!r}", warnings=None)
    for t in (21, 99, 127, 128, 255):
        c.damaged("J", f"type_{t}", one(tensor("w", t, [2, 2], 1)), UNSUPPORTED, 1, f"the type {t}: listed, and not read")
    c.accepted("J", "i4_odd", model([[tensor("w", 17, [3], 1)]], [buffer(b"\x21\x03")]), 1, "three elements of four bits")
    c.rejected("E", "short_by_1", one(tensor("w", 0, [5], 1)), BAD, None, "", "five elements in 16 bytes")
    c.rejected("E", "long_by_1", one(tensor("w", 0, [3], 1)), BAD, None, "", "three elements in 16 bytes")
    c.accepted("E", "shared", one(w, tensor("v", 0, [4], 1)), 2, "two tensors of one buffer", warnings=None)
    for at in range(4, len(whole) - 16, 4):
        c.rejected("A", f"cut_{at}", whole[:at], [SHORT, BAD, UNSUPPORTED], None, "", f"the first {at} bytes")
    for at in range(0, len(whole) - 4, 4):  # every word leads far away: it opens or it does not, and nothing else happens
        broken = whole[:at] + b"\xf0\xff\xff\xff" + whole[at + 4:]
        if at in (0, 4):
            c.rejected("C", f"word_{at}", broken, [BAD, UNSUPPORTED], None, "", f"word {at} is 2^32 - 16")
    for name, n in HUGE.items():
        c.rejected("C", f"behind_{name}", model([[tensor("w", 0, [2, 2], 1)]], [buffer(None, n, 16)]), SHORT, None, "behind the file", f"data at {n}")
        c.rejected("D", f"size_{name}", model([[tensor("w", 0, [2, 2], 1)]], [buffer(None, 16, n)]), SHORT, None, "behind the file", f"{n} bytes of data")
    c.rejected("D", "shape_wraps", model([[tensor("w", 0, [1 << 30, 1 << 30, 1 << 30], 1)]], [buffer(data)]), [BAD, LIMIT], None, "", "dimensions whose product wraps")
    c.rejected("D", "negative", model([[tensor("w", 0, [-4], 1)]], [buffer(data)]), BAD, None, "-4", "a dimension below zero")
    c.rejected("F", "rank", model([[tensor("w", 0, [1] * 1000, 1)]], [buffer(data)]), LIMIT, None, "1000 dimensions", "a thousand dimensions")
    c.rejected("E", "buffer", model([[tensor("w", 0, [4], 0xFFFFFFFF)]], [buffer(data)]), BAD, None, "buffer", "a buffer that is not there")
    c.rejected("C", "strings", model([[tensor("s", 5, [1], 1)]], [buffer(struct.pack("<I", 0xFFFFFFFF))]), BAD, None, "too early", "4 billion strings")
