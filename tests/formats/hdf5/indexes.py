# SPDX-License-Identifier: MIT
"""Structures of HDF5 that are outside of headers, made from their description: indexes of chunks, B-trees of version
2, heaps."""
from compose import *

START = 2048  # the place of the first of them, after all headers


class Room:
    """The bytes after the headers."""

    def __init__(self):
        self.bytes = b""

    def put(self, data):
        self.bytes += bytes(-len(self.bytes) % 8)
        self.bytes += data
        return START + len(self.bytes) - len(data)

    def file(self, *messages, root=(), **more):
        """One dataset, and the structures after it."""
        bare = len(one(*messages, root=root))
        assert bare <= START, bare
        return one(*messages, root=root, behind=bytes(START - bare) + self.bytes, **more)

    def group(self, *messages):
        """The root alone, and the structures after it."""
        first = header(*messages)
        return file([first, bytes(START - 48 - len(first)), self.bytes])


def growing(dims, most):
    return message(1, struct.pack("<BBBB", 2, len(dims), 1, 1) + struct.pack(f"<{2 * len(dims)}Q", *dims, *most))


def pipeline(*filters):
    body = b"".join(struct.pack("<H", f) + (struct.pack("<H", len(n)) if f >= 256 else b"") + struct.pack("<HH", 0, len(v)) + n * (f >= 256)
                    + struct.pack(f"<{len(v)}I", *v) for f, n, v in filters)
    return message(0x0B, struct.pack("<BB", 2, len(filters)) + body)


def chunks3(tree, *dims):
    return message(8, struct.pack("<BBBQ", 3, 2, len(dims), tree) + struct.pack(f"<{len(dims)}I", *dims))


def chunks4(kind, rest, *dims, flags=0, version=4):
    return message(8, struct.pack("<BBBBB", version, 2, flags, len(dims), 1) + bytes(dims) + bytes([kind]) + rest)


def element(entry, width=0):
    """An entry of an array of chunks: an address, or (address, stored, mask)."""
    if not width:
        return struct.pack("<Q", entry)
    at, stored, mask = entry
    return struct.pack("<Q", at) + stored.to_bytes(width, "little") + struct.pack("<I", mask)


def elements(entries, width, n):
    none = (NOWHERE, 0, 0) if width else NOWHERE
    return b"".join(element(e, width) for e in (list(entries) + [none] * n)[:n])


def bits(flags):
    """One bit for each, the highest bit first."""
    out = bytearray((len(flags) + 7) // 8)
    for i, flag in enumerate(flags):
        out[i // 8] |= flag << 7 - i % 8
    return bytes(out)


def pages(entries, width, n, page_bits):
    """(which pages were written, their bytes): a page without entries was never written."""
    page = 1 << page_bits
    flags, out = [], b""
    for i in range(0, n, page):
        some = entries[i:i + page]
        many = min(page, n - i)
        there = any((e[0] if width else e) != NOWHERE for e in some)
        data = summed(elements(some, width, many))
        flags.append(there)
        out += data if there else bytes(len(data))
    return bits(flags), out


def fixed_array(room, entries, width=0, page_bits=10, n=None):
    """The parameters of the layout message."""
    n, size = len(entries) if n is None else n, 12 + width if width else 8
    client = 1 if width else 0
    at = START + len(room.bytes) + -len(room.bytes) % 8
    block = at + 32
    room.put(summed(b"FAHD" + struct.pack("<BBBBQQ", 0, client, size, page_bits, n, block)) + bytes(4))
    head = b"FADB" + struct.pack("<BBQ", 0, client, at)
    if n <= 1 << page_bits:
        assert room.put(summed(head + elements(entries, width, n))) == block
    else:
        flags, data = pages(entries, width, n, page_bits)
        assert room.put(summed(head + flags) + data) == block
    return struct.pack("<BQ", page_bits, at)


def extensible_array(room, entries, width=0, max_bits=6, index=1, dmin=2, smin=2, page_bits=2, most=None):
    size, client = 12 + width if width else 8, 1 if width else 0
    offset = (max_bits + 7) // 8
    at = room.put(bytes(72))
    direct, supers = 2 * (smin.bit_length() - 1), 1 + max_bits - (dmin.bit_length() - 1)
    blocks, tables, number = [], [], index

    def there(some):
        return any((e[0] if width else e) != NOWHERE for e in some)

    def block(some, n, first):
        if not there(some):
            return NOWHERE, b"\0" * ((-(-n >> page_bits) + 7) // 8)
        head = b"EADB" + struct.pack("<BBQ", 0, client, at) + first.to_bytes(offset, "little")
        if n > 1 << page_bits:
            flags, data = pages(some + [(NOWHERE, 0, 0) if width else NOWHERE] * (n - len(some)), width, n, page_bits)
            return room.put(summed(head) + data), flags
        return room.put(summed(head + elements(some, width, n))), b""

    for u in range(supers):
        many, n = 1 << u // 2, dmin << (u + 1) // 2
        made = [block(entries[number + i * n:number + (i + 1) * n], n, number - index + i * n) for i in range(many)]
        if u < direct:
            blocks += [a for a, _ in made]
        elif there(entries[number:number + many * n]):
            head = b"EASB" + struct.pack("<BBQ", 0, client, at) + (number - index).to_bytes(offset, "little")
            flags = b"".join(f for _, f in made) if n > 1 << page_bits else b""
            tables.append(room.put(summed(head + flags + b"".join(struct.pack("<Q", a) for a, _ in made))))
        else:
            tables.append(NOWHERE)
        number += many * n
    head = b"EAIB" + struct.pack("<BBQ", 0, client, at)
    ib = room.put(summed(head + elements(entries[:index], width, index) + struct.pack(f"<{len(blocks) + len(tables)}Q", *blocks, *tables)))
    top = summed(b"EAHD" + struct.pack("<BBBBBBBB", 0, client, size, max_bits, index, dmin, smin, page_bits)
                 + struct.pack("<6Q", 0, 0, 0, 0, len(entries) if most is None else most, 0) + struct.pack("<Q", ib))
    room.bytes = room.bytes[:at - START] + top + room.bytes[at - START + 72:]
    return struct.pack("<BBBBBQ", max_bits, index, smin, dmin, page_bits, at)


def tree1(room, entries, rank, level=0):
    """A B-tree of version 1: entries (offsets, stored, mask, address), or nodes of the level below."""
    def key(offsets, stored=0, mask=0):
        return struct.pack("<II", stored, mask) + struct.pack(f"<{rank + 1}Q", *offsets, 0)
    body = b"".join(key(*e[:3]) + struct.pack("<Q", e[3]) for e in entries) + key([2**40] * rank)
    room_of_all = 24 + 65 * (16 + 8 * rank) + 64 * 8  # libhdf5 reads a node in its full size
    return room.put((b"TREE" + struct.pack("<BBHQQ", 1, level, len(entries), NOWHERE, NOWHERE) + body).ljust(room_of_all, b"\0"))


def width_of(v):
    return max(1, (v.bit_length() + 7) // 8)


def tree2(room, kind, records, node, depth=0):
    """A B-tree of version 2, its records in order; every leaf and inner node is as full as it may be."""
    size = len(records[0])
    most, below = [(node - 10) // size], [(node - 10) // size]
    width0 = width_of(most[0])
    for d in range(1, depth + 1):
        pointer = 8 + width0 + (width_of(below[d - 1]) if d > 1 else 0)
        most.append((node - 10 - pointer) // (size + pointer))
        below.append((most[d] + 1) * below[d - 1] + most[d])

    def make(part, d):
        """(address, records in it, records below it too)"""
        if d == 0:
            return room.put(summed(b"BTLF" + bytes([0, kind]) + b"".join(part)).ljust(node, b"\0")), len(part), len(part)
        step, own, children, at = below[d - 1] + 1, [], [], 0
        while len(part) - at > below[d - 1]:
            children.append(make(part[at:at + step - 1], d - 1))
            own.append(part[at + step - 1])
            at += step
        children.append(make(part[at:], d - 1))
        body = b"".join(own)
        for address, n, total in children:
            body += struct.pack("<Q", address) + n.to_bytes(width0, "little")
            body += total.to_bytes(width_of(below[d - 1]), "little") if d > 1 else b""
        return room.put(summed(b"BTIN" + bytes([0, kind]) + body).ljust(node, b"\0")), len(own), len(part)
    root, n, total = make(records, depth)
    return room.put(summed(b"BTHD" + struct.pack("<BBIHHBBQHQ", 0, kind, node, size, depth, 100, 40, root, n, total)))


class Heap:
    """A fractal heap: two blocks in a row, of 64 and 64, then of 128 bytes; larger ones are tables. The caller decides
    where objects are."""
    BITS, WIDTH, FIRST, DIRECT = 16, 2, 64, 128

    def __init__(self, room, id_length=7, rows=4, huge=NOWHERE, filters=0, version=0):
        self.room, self.id_length, self.rows, self.huge, self.filters, self.version = room, id_length, rows, huge, filters, version
        self.objects = []

    def managed(self, offset, data):
        self.objects.append((offset, data))
        return bytes([0]) + struct.pack("<H", offset) + len(data).to_bytes(self.id_length - 3, "little")

    def tiny(self, data):
        return (bytes([0x20 | len(data) - 1]) + data).ljust(self.id_length, b"\0")

    def direct(self, at, offset, size):
        block = bytearray((b"FHDB" + struct.pack("<BQH", 0, at, offset)).ljust(size, b"\0"))
        used = False
        for where, data in self.objects:
            if offset <= where < offset + size:
                block[where - offset:where - offset + len(data)] = data
                used = True
        return self.room.put(bytes(block)) if used else NOWHERE

    def table(self, at, offset, rows):
        """(address, the offset after it)"""
        first, children = offset, []
        for row in range(rows):
            size = self.FIRST << max(0, row - 1)
            for _ in range(self.WIDTH):
                if size <= self.DIRECT:
                    children.append(self.direct(at, offset, size))
                    offset += size
                else:
                    below, end = self.table(at, offset, size.bit_length() - (self.FIRST * self.WIDTH).bit_length() + 1)
                    children.append(below)
                    assert end == offset + size
                    offset = end
        return self.room.put(summed(b"FHIB" + struct.pack("<BQH", 0, at, first) + struct.pack(f"<{len(children)}Q", *children))), offset

    def close(self):
        """The address of its header."""
        at = self.room.put(bytes(146))
        root = self.table(at, 0, self.rows)[0] if self.rows else self.direct(at, 0, self.FIRST)
        numbers = [0, self.huge] + [0] * 10
        head = summed(b"FRHP" + struct.pack("<BHHBI", self.version, self.id_length, self.filters, 0, 4096) + struct.pack("<12Q", *numbers)
                      + struct.pack("<HQQHHQH", self.WIDTH, self.FIRST, self.DIRECT, self.BITS, 1, root, self.rows))
        assert len(head) == 146
        self.room.bytes = self.room.bytes[:at - START] + head + self.room.bytes[at - START + 146:]
        return at


def dense_links(heap, tree):
    return message(2, struct.pack("<BBQQ", 0, 0, heap, tree)) + message(0x0A, b"\0\0")


def dense_attributes(heap, tree):
    return message(0x15, struct.pack("<BBQQ", 0, 0, heap, tree))
