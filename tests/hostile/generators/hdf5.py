# SPDX-License-Identifier: MIT
"""HDF5: superblocks, object headers, links, chunks."""
import pathlib
import struct
import sys
import zlib

from kit import *

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "formats" / "hdf5"))
from compose import *  # noqa: E402

FORMAT, EXTENSION = "hdf5", "h5"
DATA = compact(bytes(16))


def old_group(children, level=0, heap=b"\0" * 8 + b"w\0".ljust(8, b"\0"), names=(8, ), cut=0):
    """Superblock 0: the root's symbol table at 96, B-tree at 200, heap at 400, symbols at 600, data at 800."""
    table = struct.pack("<HHB3xQQ", 0x11, 16, 0, 200, 400)
    root = struct.pack("<BBHII4x", 1, 0, 1, 1, len(table)) + table
    tree = b"TREE" + struct.pack("<BBHQQ", 0, level, len(children), NOWHERE, NOWHERE) + b"".join(struct.pack("<QQ", 0, c) for c in children) \
        + struct.pack("<Q", 8)
    local = b"HEAP" + struct.pack("<IQQQ", 0, len(heap), NOWHERE, 432) + heap
    symbols = b"SNOD" + struct.pack("<BBH", 1, 0, len(names)) + b"".join(struct.pack("<QQII16x", n, 800, 0, 0) for n in names)
    data = one(space(4), datatype(), DATA)
    data = data[48 + len(header(GROUP, link(b"w", 0))):]
    out = SIGNATURE + struct.pack("<BBBBBBBBHHI", 0, 0, 0, 0, 0, 8, 8, 0, 4, 16, 0) + struct.pack("<QQQQ", 0, NOWHERE, 800 + len(data), NOWHERE) \
        + struct.pack("<QQII16x", 0, 96, 0, 0)
    for at, part in ((96, root), (200, tree), (400, local), (600, symbols), (800, data)):
        out = out.ljust(at, b"\0") + part
    return out


def chunked(stored, shape=(4, ), chunk=(4, ), filters=(), width=4, size=None, place=None, mask=0, level=0, child=None):
    """One chunk by a B-tree of version 1; its node follows the header."""
    pipe = b"".join(struct.pack("<H", f) + (b"\0\0" if f >= 256 else b"") + struct.pack("<HH", 0, len(v)) + b"".join(struct.pack("<I", x) for x in v) for f, v in filters)

    def body(tree):
        return [space(*shape), datatype(), message(0x0B, struct.pack("<BB", 2, len(filters)) + pipe),
                message(8, struct.pack("<BBBQ", 3, 2, len(chunk) + 1, tree) + b"".join(struct.pack("<I", c) for c in (*chunk, width)))]

    start = len(one(*body(0)))
    place = place or (0, ) * (len(chunk) + 1)
    key = struct.pack("<II", len(stored) if size is None else size, mask) + b"".join(struct.pack("<Q", p) for p in place)
    node = b"TREE" + struct.pack("<BBHQQ", 1, level, 1, NOWHERE, NOWHERE) + key
    data = start + len(node) + 8
    return one(*body(start), behind=node + struct.pack("<Q", data if child is None else child or start) + stored)


def make(c):
    whole = one(space(4), datatype(), DATA)
    c.accepted("P", "whole", whole, 1, "one dataset", warnings=0)
    wrong_things(c, whole)
    for at in range(0, len(whole), 5):
        c.rejected("A", f"cut_{at}", whole[:at], BAD if 0 < at < 8 else SHORT, None, "", f"the first {at} of {len(whole)} bytes")
    c.accepted("I", "behind", whole + b"more", 1, "bytes behind the end of the file", warnings=None)
    c.accepted("I", "before", b"<html>".ljust(512, b" ") + whole, 1, "a block of the user's in front", warnings=None)
    for name, n in HUGE.items():
        c.rejected("C", f"root_{name}", file([header(GROUP)], root=n), BAD, None, "", f"the root at {n}")
        c.rejected("C", f"end_{name}", file([header(GROUP)], end=n), [BAD, SHORT], None, "", f"a file that ends at {n}")
        c.damaged("C", f"link_{name}", file([header(GROUP, link(b"w", n))]), BAD, 1, f"a dataset at {n}")
        c.rejected("C", f"data_{name}", one(space(4), datatype(), layout(n, 16)) if n != NOWHERE else one(space(4), datatype(), layout(n - 1, 16)),
                   BAD, None, "outside", f"data at {n}")
        c.rejected("C", f"continued_{name}", file([header(GROUP, message(0x10, struct.pack("<QQ", 60, n)))]), BAD, None, "", f"a continuation of {n} bytes")
        c.rejected("C", f"heap_{name}", file([header(message(2, struct.pack("<BBQQ", 0, 0, n if n != NOWHERE else n - 1, 48)))]), BAD, None, "", f"a heap at {n}")
        c.damaged("D", f"dims_{name}", one(space(n, n), datatype(), DATA), BAD, 1, f"two dimensions of {n}")
        c.rejected("C", f"tree_{name}", old_group([n]), BAD, None, "", f"a node at {n}")
        c.rejected("C", f"name_{name}", old_group([600], names=(n, )), BAD, None, "outside", f"a name at {n} of the heap")
    c.rejected("C", "message", file([header(GROUP, b"\1\xff\xff\0")]), BAD, None, "runs past", "a message of 65535 bytes")
    c.rejected("C", "header", file([header(GROUP, size=2**32 - 1)]), BAD, 48, "past the file", "a header of 4 GiB")
    c.rejected("C", "attribute", file([header(GROUP, attribute(b"n", dims=(9, )))]), BAD, None, "past its message", "an attribute of 9 numbers with one")
    c.damaged("D", "bytes", one(space(2**62), datatype(), DATA), BAD, 1, "bytes that wrap to 0")
    c.rejected("E", "size", one(space(5), datatype(), DATA), BAD, None, "has only 16", "5 floats in 16 bytes")
    c.accepted("H", "old", old_group([600]), 1, "a group of the old kind", warnings=0)
    c.rejected("G", "tree_itself", old_group([200], level=1), BAD, 200, "loop", "a node that is its own child: libhdf5 2.0.0 dies of it (SIGSEGV)")
    c.rejected("G", "tree_level", old_group([200], level=0), BAD, 200, "", "a node where symbols should be")
    c.rejected("G", "tree_deep", old_group([600], level=255), BAD, 200, "level 255", "a level of 255")
    c.rejected("G", "symbols_twice", old_group([600, 600]), BAD, 600, "loop", "symbols that are two children")
    c.rejected("G", "names_twice", old_group([600], names=(8, 8)), BAD, None, "two links", "two links of one name")
    c.accepted("G", "root_in_itself", file([header(GROUP, link(b"g", 48))]), 0, "a group that is in itself", warnings=0)
    c.rejected("G", "continued", file([header(GROUP, message(0x10, struct.pack("<QQ", 60, 16)), message(0x10, struct.pack("<QQ", 60, 16)))]), BAD, None, "",
               "a header that is continued twice in one place")
    deep, at = b"", 48
    for i in range(1100):
        size = len(header(GROUP, link(b"g", 0)))
        deep += header(GROUP, link(b"g", at + size))
        at += size
    c.rejected("G", "groups", file([deep, header(GROUP)]), LIMIT, None, "nested deeper", "1,100 groups in each other")
    nested = floating()
    for i in range(30):
        nested = struct.pack("<BBBBI", 0x39, 0, 0, 0, 16) + nested
    c.rejected("G", "types", one(space(4), datatype(nested), DATA), LIMIT, None, "nested deeper", "types in types")
    c.rejected("F", "rank", one(space(*[1] * 200), datatype(), DATA), LIMIT, None, "dimensions", "200 dimensions")
    c.damaged("F", "bomb", one(space(2**40), datatype(), layout(NOWHERE, 0)), "TNF_EUNSUPPORTED", 1, "4 TiB that were never written")
    c.damaged("F", "chunk", chunked(b"x" * 100, (2**27, ), (2**27, ), [(1, [6])]), BAD, 1, "a chunk of 512 MiB in 100 bytes")
    c.accepted("H", "escapes", one(space(4), datatype(), DATA, name=b"\x1b[2J"), 1, "a name that clears the screen", warnings=None)
    c.accepted("K", "external", file([header(GROUP, external(b"x", b"/etc/passwd", b"/"))]), 0, "a link to another file", warnings=1)
    c.accepted("K", "soft", file([header(GROUP, soft(b"x", b"/../../etc"))]), 0, "a soft link that leads nowhere", warnings=1)
    c.damaged("K", "storage", one(space(4), datatype(), message(7, bytes(24)), layout(NOWHERE, 0)), "TNF_EUNSUPPORTED", 1, "data in another file")
    c.damaged("K", "virtual", one(space(4), datatype(), message(8, struct.pack("<BBQI", 4, 3, NOWHERE, 0))), "TNF_EUNSUPPORTED", 1, "a virtual dataset")
    c.damaged("J", "x87", one(space(1), datatype(floating(128, 64, 15, 63, 16383)), compact(bytes(16))), "TNF_EUNSUPPORTED", 1, "floats of 80 bits")
    for kind in (12, 13, 14, 15):
        c.damaged("J", f"class_{kind}", one(space(4), datatype(bytes([0x10 | kind]) + bytes(3) + b"\4\0\0\0"), DATA), UNSUPPORTED, 1,
                   f"a type of the class {kind}")
    c.damaged("J", "size_0", one(space(4), datatype(b"\x10" + bytes(7) + bytes(4)), DATA), BAD, 1, "numbers of no bytes")
    packed = zlib.compress(bytes(16))
    c.accepted("N", "deflate", chunked(packed, filters=[(1, [6])]), 1, "a chunk that is deflated", warnings=0)
    c.damaged("N", "deflate_more", chunked(zlib.compress(bytes(17)), filters=[(1, [6])]), BAD, 1, "a chunk of a byte more")
    c.damaged("N", "deflate_less", chunked(zlib.compress(bytes(15)), filters=[(1, [6])]), BAD, 1, "a chunk of a byte less")
    c.damaged("N", "deflate_cut", chunked(packed[:-3], filters=[(1, [6])]), ["TNF_ETRUNCATED", BAD], 1, "a chunk that is cut")
    c.damaged("N", "deflate_sum", chunked(packed[:-1] + b"\x99", filters=[(1, [6])]), BAD, 1, "a wrong Adler-32")
    c.damaged("N", "fletcher", chunked(bytes(16) + b"\1\0\0\0", filters=[(3, [])]), DIGEST, 1, "a wrong fletcher32")
    c.damaged("N", "lzf_back", chunked(b"\x20\x10\x00", filters=[(32000, [])]), BAD, 1, "LZF that copies what is not there")
    c.damaged("N", "unknown", chunked(bytes(16), filters=[(32099, [])]), "TNF_EUNSUPPORTED", 1, "a filter nobody knows")
    c.damaged("N", "twice", chunked(zlib.compress(packed), filters=[(1, [6]), (1, [6])]), "TNF_EUNSUPPORTED", 1, "deflated twice")
    c.damaged("N", "short", chunked(bytes(12)), BAD, 1, "a chunk of 12 bytes instead of 16")
    c.rejected("C", "chunk_size", chunked(bytes(16), size=2**32 - 1), BAD, None, "outside", "a chunk of 4 GiB")
    c.rejected("G", "chunk_tree", chunked(b"", level=1, child=0), BAD, None, "loop", "a node of chunks that is its own child")
    c.accepted("E", "chunk_odd", chunked(bytes(16), place=(3, 0)), 1, "a chunk that does not lie in the grid", warnings=1)
    c.accepted("E", "chunk_beyond", chunked(bytes(16), place=(4, 0)), 1, "a chunk left over from a larger shape", warnings=0)
    c.rejected("C", "chunk_zero", chunked(bytes(16), chunk=(0, )), BAD, None, "no elements", "chunks of nothing")
    flipped = bytearray(whole)
    flipped[70] ^= 1
    c.rejected("P", "sum", flipped, BAD, 48, "checksum", "a header with a bit flipped")
