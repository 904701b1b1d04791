# SPDX-License-Identifier: MIT
"""Makes models of TFLite, which are FlatBuffers, from the tables of the schema."""
import struct


class Flat:
    """A buffer that grows forwards. A referenced table is after the reference, so references are filled in later."""

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
        """fields: {index: the bytes of a number, or a function that returns the place of a
        reference}"""
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
