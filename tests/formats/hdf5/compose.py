# SPDX-License-Identifier: MIT
"""Makes HDF5 files from their description: version 2 of superblock and headers (Python's own library only)."""
import struct

NOWHERE = 2**64 - 1
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def lookup3(data):
    """Bob Jenkins' hashlittle() with initial value 0."""
    def rot(x, k):
        return (x << k | x >> 32 - k) & 0xFFFFFFFF
    a = b = c = 0xDEADBEEF + len(data) & 0xFFFFFFFF
    at = 0
    while len(data) - at > 12:
        x, y, z = struct.unpack_from("<III", data, at)
        a, b, c = a + x, b + y, c + z
        for k1, k2, k3 in ((4, 6, 8), (16, 19, 4)):
            a = (a - c & 0xFFFFFFFF) ^ rot(c & 0xFFFFFFFF, k1)
            c = c + b & 0xFFFFFFFF
            b = (b - a & 0xFFFFFFFF) ^ rot(a, k2)
            a = a + c & 0xFFFFFFFF
            c = (c - b & 0xFFFFFFFF) ^ rot(b, k3)
            b = b + a & 0xFFFFFFFF
        at += 12
    if len(data) == at:
        return c
    x, y, z = struct.unpack("<III", data[at:].ljust(12, b"\0"))
    a, b, c = a + x & 0xFFFFFFFF, b + y & 0xFFFFFFFF, c + z & 0xFFFFFFFF
    c = (c ^ b) - rot(b, 14) & 0xFFFFFFFF
    a = (a ^ c) - rot(c, 11) & 0xFFFFFFFF
    b = (b ^ a) - rot(a, 25) & 0xFFFFFFFF
    c = (c ^ b) - rot(b, 16) & 0xFFFFFFFF
    a = (a ^ c) - rot(c, 4) & 0xFFFFFFFF
    b = (b ^ a) - rot(a, 14) & 0xFFFFFFFF
    return (c ^ b) - rot(b, 24) & 0xFFFFFFFF


assert lookup3(b"") == 0xDEADBEEF and lookup3(b"Four score and seven years ago") == 0x17770551


def summed(data):
    return data + struct.pack("<I", lookup3(data))


def message(kind, body, flags=0):
    return struct.pack("<BHB", kind, len(body), flags) + body


def header(*messages, size=None):
    body = b"".join(messages)
    return summed(b"OHDR\2\2" + struct.pack("<I", len(body) if size is None else size) + body)


def space(*dims, rank=None, kind=None):
    return message(1, struct.pack("<BBBB", 2, len(dims) if rank is None else rank, 0, (1 if dims else 0) if kind is None else kind)
                   + b"".join(struct.pack("<Q", d) for d in dims))


def integer(bits=32, signed=True, big=False, precision=None):
    return struct.pack("<BBBBIHH", 0x10, big | signed << 3, 0, 0, bits // 8, 0, bits if precision is None else precision)


def floating(bits=32, at=23, exponent=8, mantissa=23, bias=127, implied=0x20, cls=0x11):
    return struct.pack("<BBBBIHHBBBBI", cls, implied, bits - 1, 0, bits // 8, 0, bits, at, exponent, 0, mantissa, bias)


def datatype(body=None):
    return message(3, floating() if body is None else body)


def layout(at, n):
    return message(8, struct.pack("<BBQQ", 3, 1, at, n))


def compact(data):
    return message(8, struct.pack("<BBH", 3, 0, len(data)) + data)


def link(name, at):
    return message(6, struct.pack("<BBBB", 1, 0x10, 1, len(name)) + name + struct.pack("<Q", at))


def soft(name, target):
    return message(6, struct.pack("<BBBBB", 1, 0x18, 1, 1, len(name)) + name + struct.pack("<H", len(target)) + target)


def external(name, file, path):
    body = b"\0" + file + b"\0" + path + b"\0"
    return message(6, struct.pack("<BBBBB", 1, 0x18, 64, 1, len(name)) + name + struct.pack("<H", len(body)) + body)


def attribute(name, body=None, dims=(), data=b"\1\0\0\0"):
    kind = integer() if body is None else body
    shape = space(*dims)[4:]
    return message(0x0C, struct.pack("<BBHHHB", 3, 0, len(name) + 1, len(kind), len(shape), 1) + name + b"\0" + kind + shape + data)


GROUP = message(2, struct.pack("<BBQQ", 0, 0, NOWHERE, NOWHERE)) + message(0x0A, b"\0\0")


def superblock(root, end, version=2, sizes=(8, 8), flags=0, base=0):
    return summed(SIGNATURE + struct.pack("<BBBBQQQQ", version, *sizes, flags, base, NOWHERE, end, root))


def file(parts, end=None, root=48, **more):
    """The superblock and the bytes after it."""
    body = b"".join(parts)
    return superblock(root, 48 + len(body) if end is None else end, **more) + body


def one(*messages, name=b"w", root=(), behind=b"", **more):
    """A file of one dataset, whose header follows the header of the root."""
    first = header(GROUP, link(name, 0), *root)
    first = header(GROUP, link(name, 48 + len(first)), *root)
    return file([first, header(*messages), behind], **more)
