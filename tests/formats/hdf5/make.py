#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of HDF5, and the expected results. Files of h5py need that package; without it they are not made
again."""
import base64
import hashlib
import json
import pathlib
import struct
import zlib

from compose import *
from indexes import *

HERE = pathlib.Path(__file__).parent
BAD, SHORT, UNSUPPORTED, LIMIT = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_EUNSUPPORTED", "TNF_ELIMIT"
expect = {"valid": {}, "reject": {}}


def missing(n):
    return "1 byte is missing" if n == 1 else f"{n} bytes are missing"


def sha(data):
    return hashlib.sha256(data).hexdigest()


def valid(name, data, tensors, version="2", warnings=0, **attrs):
    (HERE / "valid" / name).write_bytes(data)
    told(name, len(data), tensors, version, warnings, attrs)


def told(name, size, tensors, version, warnings, attrs):
    expect["valid"][name] = {"format": "hdf5", "version": version, "warnings": warnings, "lenient": False, "size": size,
                             "attrs": attrs, "tensors": tensors}


def reject(name, data, code, offset, message, lenient="rejects"):
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}


def tensor(name, dtype, shape, data, **attrs):
    return {"name": name, "dtype": dtype, "shape": list(shape), "sha256": None if data is None else sha(data), "attrs": attrs}


def make_composed():
    four = struct.pack("<4f", 1, 2, 3, 4)
    valid("nothing.h5", file([header(GROUP)]), [])
    valid("compact.h5", one(space(2, 2), datatype(), compact(four)), [tensor("w", "f32", [2, 2], four)])
    valid("scalar.h5", one(space(), datatype(), compact(four[:4])), [tensor("w", "f32", [], four[:4])])
    valid("zero.h5", one(space(0, 3), datatype(), layout(NOWHERE, 0)), [tensor("w", "f32", [0, 3], b"")])
    fill = message(5, struct.pack("<BBI", 3, 0x2A, 4) + four[8:12])
    valid("fill.h5", one(space(3), datatype(), fill, layout(NOWHERE, 0)), [tensor("w", "f32", [3], four[8:12] * 3)])
    valid("big.h5", one(space(2), datatype(integer(16, big=True)), compact(b"\1\2\3\4")), [tensor("w", "i16", [2], b"\2\1\4\3")])
    valid("user_block.h5", b"#!/bin/sh".ljust(1024, b"\0") + one(space(4), datatype(), compact(four)), [tensor("w", "f32", [4], four)])
    array = struct.pack("<BBBBI", 0x3A, 0, 0, 0, 8) + b"\1" + struct.pack("<I", 2) + floating()
    valid("array_type.h5", one(space(2), datatype(array), compact(four)), [tensor("w", "f32", [2, 2], four)])
    valid("attrs.h5", one(space(4), datatype(), compact(four), attribute(b"n"), root=[attribute(b"v", None, (2, ), b"\1\0\0\0\xff\xff\xff\xff")]),
          [tensor("w", "f32", [4], four, **{"hdf5.attrs": {"n": 1}})], **{"hdf5.attrs": {"v": [1, -1]}})
    valid("links.h5", one(space(4), datatype(), compact(four), root=[soft(b"s", b"/w"), external(b"x", b"../other.h5", b"/y")]),
          [tensor("w", "f32", [4], four)], warnings=1, **{"hdf5.links": {"s": "/w", "x": {"file": "../other.h5", "path": "/y"}}})
    valid("latin1.h5", one(space(4), datatype(), compact(four), name=b"w\xe4"), [tensor("w\\xe4", "f32", [4], four)])
    del expect["valid"]["latin1.h5"]["tensors"]


def make_wide():
    """Integers of 16 bytes in both byte orders: alone, as fill value, in chunks, as type of an attribute and of an enum."""
    limits = [0, 1, -1, 2**64, 2**64 - 1, -2**64, 2**127 - 1, -2**127]
    little = b"".join(n.to_bytes(16, "little", signed=True) for n in limits)
    big = b"".join(n.to_bytes(16, "big", signed=True) for n in limits)
    unsigned = b"".join((n % 2**128).to_bytes(16, "big") for n in limits)
    valid("int128.h5", one(space(2, 4), datatype(integer(128)), compact(little)), [tensor("w", "i128", [2, 4], little)])
    room = Room()
    valid("uint128_big.h5", room.file(space(8), datatype(integer(128, False, True)), layout(room.put(unsigned), 128)),
          [tensor("w", "u128", [8], little)])
    fill = message(5, struct.pack("<BBI", 3, 0x2A, 16) + big[-16:])
    valid("int128_fill.h5", one(space(3), datatype(integer(128, big=True)), fill, layout(NOWHERE, 0)),
          [tensor("w", "i128", [3], little[-16:] * 3)])
    packed = zlib.compress(big)
    room = Room()
    rest = fixed_array(room, [(room.put(packed), len(packed), 0)], 1)
    valid("int128_chunks.h5", room.file(space(8), datatype(integer(128, big=True)), pipeline((1, b"", [6])), chunks4(3, rest, 8, 16, flags=2)),
          [tensor("w", "i128", [8], little)])
    # Values of attributes have at most 8 bytes, and so do those of enums.
    valid("int128_attribute.h5", one(space(), datatype(), compact(bytes(4)), attribute(b"n", integer(128), (), little[16:32])),
          [tensor("w", "f32", [], bytes(4), **{"hdf5.attrs": {"n": {"$bytes": base64.b64encode(little[16:32]).decode()}}})])
    enum = struct.pack("<BBBBI", 0x38, 1, 0, 0, 16) + integer(128) + b"a\0" + little[:16]
    valid("int128_enum.h5", one(space(1), datatype(enum), compact(little[:16])), [tensor("w", "hdf5.enum", [1], None)])
    expect["valid"]["int128_enum.h5"]["problems"] = ["the type hdf5.enum are not supported"]


def make_rejected():
    good = one(space(4), datatype(), compact(bytes(16)))
    head = len(header(GROUP, link(b"w", 0)))
    for n in (8, 40, 47):
        reject(f"cut_{n}.h5", good[:n], SHORT, None, "missing")
    for n in (60, 48 + head, len(good) - 1):
        reject(f"cut_{n}.h5", good[:n], SHORT, n, missing(len(good) - n), "rejects" if n == 60 else "opens")
    for at in (9, 20, 44):
        reject(f"superblock_{at}.h5", good[:at] + bytes([good[at] ^ 1]) + good[at + 1:], [BAD, UNSUPPORTED][at == 9], None, "")
    reject("version_9.h5", good[:8] + b"\x09" + good[9:], UNSUPPORTED, 8, "version 9")
    reject("root_sum.h5", good[:60] + bytes([good[60] ^ 1]) + good[61:], BAD, 48, "checksum")
    # One of several objects: the others are read.
    first = header(GROUP, link(b"a", 0), link(b"w", 0))
    ours = header(space(4), datatype(), compact(struct.pack("<4f", 1, 2, 3, 4)))
    first = header(GROUP, link(b"a", 48 + len(first)), link(b"w", 48 + len(first) + len(ours)))
    both = file([first, ours, ours])
    at = 48 + len(first) + 20
    reject("object_sum.h5", both[:at] + bytes([both[at] ^ 1]) + both[at + 1:], BAD, 48 + len(first), "checksum", "opens")
    # 8 TiB, none of which is stored: only slices are read.
    fill = message(5, struct.pack("<BBIf", 3, 0x2A, 4, 3))
    reject("bomb.h5", one(space(2**21, 2**20), datatype(), fill, layout(NOWHERE, 0)), UNSUPPORTED, None, "read slices", "opens")
    reject("sizes_4.h5", file([header(GROUP)], sizes=(4, 4)), UNSUPPORTED, 0, "addresses have 4")
    reject("root_outside.h5", file([header(GROUP)], root=2**40), BAD, 0, "outside")
    reject("header_long.h5", file([header(GROUP, size=2**31)]), BAD, 48, "past the file")
    reject("no_layout_data.h5", one(space(4), datatype(), layout(0, 4)), BAD, None, "has only 4")
    reject("data_outside.h5", one(space(4), datatype(), layout(2**40, 16)), BAD, None, "outside", "opens")
    reject("rank_33.h5", one(space(*[1] * 33), datatype(), compact(bytes(4))), LIMIT, None, "33 dimensions")
    reject("shape_wraps.h5", one(space(2**33, 2**33), datatype(), compact(bytes(4))), BAD, None, "2^64", "opens")
    reject("bytes_wrap.h5", one(space(2**62, 1), datatype(), compact(b"")), BAD, None, "2^64", "opens")
    reject("type_class_13.h5", one(space(4), datatype(b"\x1d" + bytes(3) + b"\4\0\0\0"), compact(bytes(16))), UNSUPPORTED, None, "class 13", "opens")
    reject("type_cut.h5", one(space(4), datatype(floating()[:12]), compact(bytes(16))), BAD, None, "truncated", "opens")
    reject("message_past.h5", file([header(GROUP, b"\1\xff\x7f\0")]), BAD, None, "runs past")
    reject("continued_in_itself.h5", file([header(GROUP, message(0x10, struct.pack("<QQ", 48, 24)))]), BAD, None, "")
    reject("twice.h5", one(space(4), datatype(), compact(bytes(16)), root=[link(b"w", 48)]), BAD, 48, "two links")


def put_chunks(room, data, size):
    """Puts chunks of a row of bytes, each at its own place; returns their addresses."""
    return [room.put(data[i:i + size].ljust(size, b"\0")) for i in range(0, len(data), size)]


def make_chunked():
    """Every index of chunks, with and without filters."""
    n = 23
    row = struct.pack(f"<{n}f", *range(n))
    told = [tensor("w", "f32", [n], row)]
    packed = lambda room, data: [(room.put(z), len(z), 0) for z in (zlib.compress(data[i:i + 4]) for i in range(0, len(data), 4))]
    deflate = pipeline((1, b"", [6]))

    def both(name, most, parameters, kind):
        room = Room()
        rest = parameters(room, put_chunks(room, row, 4), 0)
        valid(f"{name}.h5", room.file(growing([n], [most]), datatype(), chunks4(kind, rest, 1, 4)), told)
        room = Room()
        rest = parameters(room, packed(room, row), 2)
        valid(f"{name}_packed.h5", room.file(growing([n], [most]), datatype(), deflate, chunks4(kind, rest, 1, 4, flags=2)), told)

    both("fixed", n, lambda room, entries, w: fixed_array(room, entries, w), 3)
    both("fixed_paged", n, lambda room, entries, w: fixed_array(room, entries, w, page_bits=2), 3)
    both("extensible", NOWHERE, lambda room, entries, w: extensible_array(room, entries, w), 4)

    def records(entries, w):
        return [element(e, w) + struct.pack("<Q", i) for i, e in enumerate(entries)]
    both("tree2", NOWHERE, lambda room, e, w: struct.pack("<IBBQ", 64, 100, 40, tree2(room, 11 if w else 10, records(e, w), 64, 3)), 5)
    # Pages that were never written, and blocks that do not exist, have the fill value.
    holes = row[:16] + bytes(4 * 15) + row[4 * 19:]
    told_holes = [tensor("w", "f32", [n], holes)]
    room = Room()
    entries = [a if i < 4 or i >= 19 else NOWHERE for i, a in enumerate(put_chunks(room, row, 4))]
    rest = fixed_array(room, entries, page_bits=2)
    valid("fixed_holes.h5", room.file(space(n), datatype(), chunks4(3, rest, 1, 4)), told_holes)
    room = Room()
    entries = [a if i < 4 or i >= 19 else NOWHERE for i, a in enumerate(put_chunks(room, row, 4))]
    rest = extensible_array(room, entries)
    valid("extensible_holes.h5", room.file(growing([n], [NOWHERE]), datatype(), chunks4(4, rest, 1, 4)), told_holes)
    # The numbers of chunks begin with the axis that grows, and follow the largest shape.
    grid = struct.pack("<6f", *range(6))
    room = Room()
    places = put_chunks(room, b"".join(grid[4 * i:4 * i + 4] for i in (0, 3, 1, 4, 2, 5)), 4)
    rest = extensible_array(room, places)
    valid("extensible_turned.h5", room.file(growing([2, 3], [2, NOWHERE]), datatype(), chunks4(4, rest, 1, 1, 4)), [tensor("w", "f32", [2, 3], grid)])
    room = Room()
    first = room.put(b"".join(grid[4 * i:4 * i + 4] if i < 6 else b"????" for i in (0, 1, 2, 6, 3, 4, 5, 6)))
    valid("implicit.h5", room.file(growing([2, 3], [2, 4]), datatype(), chunks4(2, struct.pack("<Q", first), 1, 1, 4)), [tensor("w", "f32", [2, 3], grid)])
    valid("implicit_none.h5", Room().file(space(2), datatype(), chunks4(2, struct.pack("<Q", NOWHERE), 1, 4)), [tensor("w", "f32", [2], bytes(8))])
    room = Room()
    rest = struct.pack("<Q", room.put(grid))
    valid("single.h5", room.file(space(6), datatype(), chunks4(1, rest, 6, 4)), [tensor("w", "f32", [6], grid)])
    valid("single_none.h5", Room().file(space(6), datatype(), chunks4(1, struct.pack("<Q", NOWHERE), 6, 4)), [tensor("w", "f32", [6], bytes(24))])
    # B-tree 1 of two levels. A chunk beyond the shape is ignored; for one beside the grid there is a
    # warning, too.
    room = Room()
    at = put_chunks(room, grid, 8)
    low = [tree1(room, [([0], 8, 0, at[0]), ([2], 8, 0, at[1])], 1), tree1(room, [([4], 8, 0, at[2]), ([5], 8, 0, at[2]), ([6], 8, 0, at[2])], 1)]
    tree = tree1(room, [([0], 8, 0, low[0]), ([4], 8, 0, low[1])], 1, level=1)
    valid("tree1.h5", room.file(space(6), datatype(), chunks3(tree, 2, 4)), [tensor("w", "f32", [6], grid)], warnings=1)
    # A chunk at the edge that is stored without filters, and a mask that skips a filter.
    room = Room()
    entries = [(room.put(zlib.compress(grid[:16])), len(zlib.compress(grid[:16])), 0), (room.put(grid[16:] + bytes(8)), 16, 0)]
    rest = fixed_array(room, entries, 2)
    valid("edges.h5", room.file(space(6), datatype(), deflate, chunks4(3, rest, 4, 4, flags=3)), [tensor("w", "f32", [6], grid)])
    room = Room()
    entries = [(room.put(zlib.compress(grid[:16])), len(zlib.compress(grid[:16])), 0), (room.put(grid[16:] + bytes(8)), 16, 1)]
    rest = fixed_array(room, entries, 2)
    valid("mask.h5", room.file(space(6), datatype(), deflate, chunks4(3, rest, 4, 4, flags=2)), [tensor("w", "f32", [6], grid)])


def make_filters():
    """Registered filters, each with one chunk of 300 bytes. Their output is known without their libraries."""
    data = bytes(i % 7 for i in range(300))
    zstd = b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", 300 - 256) + struct.pack("<I", 300 << 3 | 1)[:3] + data
    blosc = struct.pack("<4B3I", 2, 1, 0x02, 1, 300, 300, 316) + data
    run = lambda n: b"\x7f" + data[:7] + b"\7\0" + bytes([n - 7 - 19 - 5]) + b"\x50" + data[n % 7 - 5 + 7:][:5]
    last = bytes((200 + i) % 7 for i in range(100))
    lz4 = struct.pack(">QI", 300, 200) + b"".join(struct.pack(">I", len(b)) + b for b in (run(200), last))
    for name, id_, stored, at, words in (("zstd", 32015, zstd, START, "zstd"), ("blosc", 32001, blosc, START + 12, "316 bytes, but has 276"),
                                         ("lz4", 32004, lz4, START + 33, "LZ4 is truncated")):
        room = Room()
        rest = struct.pack("<QIQ", len(stored), 0, room.put(stored))
        valid(f"filter_{name}.h5", room.file(space(300), datatype(integer(8, False)), pipeline((id_, b"", [])), message(
                8, struct.pack("<BBBBBHH", 4, 2, 2, 2, 2, 300, 1) + b"\1" + rest)),
            [tensor("w", "u8", [300], data)])
        room = Room()
        rest = struct.pack("<QIQ", len(stored) - 40, 0, room.put(stored[:-40]))
        reject(f"filter_{name}_cut.h5", room.file(space(300), datatype(integer(8, False)), pipeline((id_, b"", [])), message(
            8, struct.pack("<BBBBBHH", 4, 2, 2, 2, 2, 300, 1) + b"\1" + rest)), BAD, at, words, "opens")
    for id_, said in ((4, "szip"), (5, "nbit"), (6, "scaleoffset"), (307, "bzip2"), (32008, "bitshuffle"), (32013, "zfp"), (32026, "blosc2")):
        room = Room()
        rest = struct.pack("<QIQ", 4, 0, room.put(bytes(4)))
        valid(f"filter_{id_}.h5", room.file(space(1), datatype(), pipeline((id_, b"", [])), chunks4(1, rest, 1, 4, flags=2)),
              [{"name": "w", "dtype": "f32", "shape": [1], "sha256": None}])
        expect["valid"][f"filter_{id_}.h5"]["problems"] = [f"filter {id_} ({said}), which is not supported"]


def make_dense():
    """Links and attributes in fractal heaps: in blocks of all rows, in tables within tables, tiny,
    huge."""
    four = struct.pack("<4f", 1, 2, 3, 4)
    names = [b"a", b"b", b"c", b"d", b"e"]
    for id_length in (7, 20):
        room = Room()
        sets = [room.put(header(space(), datatype(), compact(four[:4] if i % 2 else four[4:8]))) for i in range(len(names))]
        bodies = [struct.pack("<BBB", 1, 0, 1) + name + struct.pack("<Q", at) for name, at in zip(names, sets)]
        far = room.put(bodies[4])
        huge = tree2(room, 1, [struct.pack("<QQQ", room.put(b"?"), 1, 1), struct.pack("<QQQ", far, len(bodies[4]), 2)], 64)
        heap = Heap(room, id_length, huge=huge)
        # In the first block, the second of its row, the third row, a table within the table.
        ids = [heap.managed(offset, body) for offset, body in zip((15, 100, 300, 720), bodies)]
        if id_length == 20:
            ids[0] = heap.tiny(bodies[0])
            ids.append((b"\x10" + struct.pack("<QQ", far, len(bodies[4]))).ljust(20, b"\0"))
        else:
            ids.append((b"\x10" + struct.pack("<Q", 2))[:7])
        at = heap.close()
        tree = tree2(room, 5, [struct.pack("<I", hash_) + id_ for hash_, id_ in sorted((lookup3(name), id_) for name, id_ in zip(names, ids))], 64, 1)
        tensors = [tensor(name.decode(), "f32", [], four[:4] if i % 2 else four[4:8]) for i, name in enumerate(names)]
        valid(f"dense_{id_length}.h5", room.group(dense_links(at, tree)), tensors)
    room = Room()
    heap = Heap(room, 8, rows=0)
    ids = []
    for i, name in enumerate((b"x", )):
        kind, shape = integer(), space()[4:]
        body = struct.pack("<BBHHHB", 3, 0, len(name) + 1, len(kind), len(shape), 1) + name + b"\0" + kind + shape + struct.pack("<i", i + 5)
        ids.append(heap.managed(15, body))
    at = heap.close()
    tree = tree2(room, 8, [id_ + struct.pack("<BII", 0, i, 0) for i, id_ in enumerate(ids)], 512)
    valid("dense_attributes.h5", room.file(space(4), datatype(), compact(four), dense_attributes(at, tree)),
          [tensor("w", "f32", [4], four, **{"hdf5.attrs": {"x": 5}})])


def make_damaged_structures():
    row = struct.pack("<23f", *range(23))

    def array(name, message_, make=None, kind=3, most=23, change=None, code=BAD, offset=None, entries=None):
        room = Room()
        rest = make(room, entries or put_chunks(room, row, 4))
        if change:
            room.bytes = change(room.bytes)
        reject(f"{name}.h5", room.file(growing([23], [most]), datatype(), chunks4(kind, rest, 1, 4)), code, offset, message_,
               "opens" if message_ == "checksum" else "rejects")

    def flip(magic, by):
        def change(data):
            at = data.index(magic) + by
            return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
        return change

    def anew(magic, by, to, size):
        """Changes a value, and corrects the checksum."""
        def change(data):
            at = data.index(magic)
            head = data[at:at + by] + to + data[at + by + len(to):at + size]
            return data[:at] + summed(head) + data[at + size + 4:]
        return change

    fixed, paged = fixed_array, lambda room, e: fixed_array(room, e, page_bits=2)
    array("fixed_sum", "checksum", fixed, change=flip(b"FAHD", 8))
    array("fixed_block_sum", "checksum", fixed, change=flip(b"FADB", 20))
    array("fixed_page_sum", "checksum", paged, change=flip(b"FADB", 40))
    array("fixed_page_head", "checksum", paged, change=flip(b"FADB", 14))
    array("fixed_element", "elements of 9 bytes", fixed, change=anew(b"FAHD", 6, b"\x09", 24))
    array("fixed_many", "too large", fixed, change=anew(b"FAHD", 8, struct.pack("<Q", 1 << 40), 24))
    array("fixed_outside", "outside", fixed, change=anew(b"FAHD", 16, struct.pack("<Q", 1 << 40), 24))
    array("fixed_chunk_outside", "is outside the file", fixed, entries=[1 << 40] * 23)
    grow = extensible_array
    array("extensible_sum", "checksum", grow, 4, NOWHERE, flip(b"EAHD", 8))
    array("extensible_index_sum", "checksum", grow, 4, NOWHERE, flip(b"EAIB", 16))
    array("extensible_super_sum", "checksum", grow, 4, NOWHERE, flip(b"EASB", 16))
    array("extensible_block_sum", "checksum", grow, 4, NOWHERE, flip(b"EADB", 16))
    array("extensible_head", "head of an array", grow, 4, NOWHERE, anew(b"EAHD", 9, b"\x03", 68))
    array("extensible_twice", "occurs twice", lambda room, e: grow(room, e), 4, NOWHERE,
          lambda data: anew(b"EAHD", 60, data[data.index(b"EAIB") + 6:data.index(b"EAIB") + 14], 68)(data))
    array("index_kind", "kind 6", lambda room, e: bytes(8), 6, code=UNSUPPORTED)
    array("implicit_outside", "outside", lambda room, e: struct.pack("<Q", 1 << 40), 2)
    array("tree2_sum", "checksum", lambda room, e: struct.pack("<IBBQ", 64, 100, 40, tree2(room, 10, [struct.pack("<QQ", a, i) for i, a in enumerate(e)], 64, 3)),
          5, NOWHERE, flip(b"BTLF", 8))
    array("tree2_record", "invalid length", lambda room, e: struct.pack("<IBBQ", 64, 100, 40, tree2(room, 10, [struct.pack("<QQB", e[0], 0, 0)], 64)), 5, NOWHERE)
    array("tree2_twice", "a chunk occurs twice",
          lambda room, e: struct.pack("<IBBQ", 64, 100, 40, tree2(room, 10, [struct.pack("<QQ", e[0], 0)] * 2, 64)), 5, NOWHERE)

    def one_heap(name, message_, code=BAD, id_=None, change=None, **how):
        room = Room()
        at = room.put(header(space(), datatype(), compact(bytes(4))))
        heap = Heap(room, **how)
        own = heap.managed(15, struct.pack("<BBB", 1, 0, 1) + b"a" + struct.pack("<Q", at))
        where = heap.close()
        tree = tree2(room, 5, [bytes(4) + (id_ or own)], 64)
        if change:
            room.bytes = change(room.bytes)
        reject(f"{name}.h5", room.group(dense_links(where, tree)), code, None, message_)

    one_heap("heap_filtered", "filtered", UNSUPPORTED, filters=1)
    one_heap("heap_version", "no valid header", version=1)
    one_heap("heap_id_version", "unknown version", id_=b"\xc0" + bytes(6))
    one_heap("heap_id_kind", "id of a heap is invalid", id_=b"\x30" + bytes(6))
    one_heap("heap_id_outside", "no offset", id_=b"\0" + struct.pack("<HI", 60000, 4))
    one_heap("heap_id_long", "past its block", id_=b"\0" + struct.pack("<HI", 15, 4000))
    one_heap("heap_tiny_cut", "truncated", id_=b"\x2f" + bytes(6))
    one_heap("heap_huge_missing", "outside", id_=b"\x10" + bytes(6))
    one_heap("heap_sum", "checksum", change=flip(b"FRHP", 10))
    one_heap("btree_kind", "kind 6", change=anew(b"BTHD", 5, b"\6", 34))
    one_heap("btree_node_kind", "another kind", change=lambda d: d[:d.index(b"BTLF")] + summed(b"BTLF\0\6" + d[d.index(b"BTLF") + 6:d.index(b"BTLF") + 17])
             + d[d.index(b"BTLF") + 21:])
    one_heap("btree_records", "has 255 records, but at most 4 fit", change=anew(b"BTHD", 24, b"\xff\0", 34))


def make_h5py():
    import h5py
    import numpy as np
    for libver, version in (("earliest", "0"), ("latest", "3")):
        rng = np.random.default_rng(5)
        name = f"h5py_{libver}.h5"
        tensors = []
        with h5py.File(HERE / "valid" / name, "w", libver=libver) as f:

            def put(path, array, **how):
                d = f.create_dataset(path, data=array, track_times=False, **how)
                if array.dtype.kind in "fiucb":
                    ids = {"f": "f", "i": "i", "u": "u", "c": "c", "b": "b"}
                    dtype = "bool" if array.dtype.kind == "b" else f"{ids[array.dtype.kind]}{8 * array.dtype.itemsize}"
                    tensors.append(tensor(path, dtype, array.shape, array.astype(array.dtype.newbyteorder("<")).tobytes()))
                return d

            whole = rng.standard_normal((13, 11)).astype("<f4")
            put("a/contiguous", whole)
            put("a/big", whole.astype(">f8"))
            put("a/c", (whole + 1j * whole).astype("c8"))
            put("a/half", whole.astype("f2"))
            put("bits", whole > 0)
            put("c/deflate", whole, chunks=(4, 3), compression="gzip", shuffle=True)
            put("c/fletcher", whole.astype("i8"), chunks=(5, 11), fletcher32=True)
            put("c/grow", whole, chunks=(2, 2), maxshape=(None, 11))
            put("c/grow2", whole, chunks=(3, 4), maxshape=(None, None))
            put("c/lzf", np.zeros((40, ), "i2"), chunks=(16, ), compression="lzf")
            put("c/one", whole, chunks=(13, 11), compression="gzip")
            put("c/plain", whole.astype("u1"), chunks=(4, 4))
            f["text"] = np.array(["", "a", "\u00e4\u20ac", "x" * 40], dtype=h5py.string_dtype())
            f["fixed"] = np.array([b"one", b"seven"])
            for i in range(12):
                f["a"].attrs[f"k{i}"] = i
            f.attrs["names"] = ["x", "y"]
            f.create_group("empty")
            f["tied"] = f["a/half"]
        tensors.append({"name": "text", "layout": "strings/1", "shape": [4], "strings": ["", "a", "\u00e4\u20ac", "x" * 40]})
        tensors.append({"name": "fixed", "layout": "strings/1", "shape": [2], "strings": ["one", "seven"]})
        tied = next(t for t in tensors if t["name"] == "a/half")
        tensors.append({**tied, "name": "tied", "attrs": {"hdf5.alias": "a/half"}})
        tensors.sort(key=lambda t: t["name"].split("/"))
        told(name, (HERE / "valid" / name).stat().st_size, tensors, version, 0,
             {"hdf5.attrs": {"names": ["x", "y"]}, "hdf5.groups": {"a": {f"k{i}": i for i in sorted(range(12), key=str)}, "empty": {}}})


def main():
    for folder in ("valid", "reject"):
        (HERE / folder).mkdir(exist_ok=True)
    make_composed()
    make_wide()
    make_rejected()
    make_chunked()
    make_dense()
    make_filters()
    make_damaged_structures()
    try:
        make_h5py()
    except ImportError:
        old = json.loads((HERE / "expect.json").read_text())["valid"]
        expect["valid"].update({k: v for k, v in old.items() if k.startswith("h5py")})
    (HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n")


main()
