# SPDX-License-Identifier: MIT
"""NumPy's .npz: a zip archive of .npy members, made field by field."""
import struct
import zlib

from kit import *
from npy import WHOLE, file, padded, text

FORMAT, EXTENSION = "npz", "npz"
ONES16, ONES32 = 0xFFFF, 0xFFFFFFFF
PICKLE = b"\x80\x04cos\nsystem\n(S'id'\ntR."


class Member:
    """A member, and what its two headers say about it if that is not true."""

    def __init__(self, name, data=WHOLE, packed=None, method=None, local=None, entry=None, extra=b"", entry_extra=b"", at=None):
        self.name = name if isinstance(name, bytes) else name.encode()
        self.data, self.packed = data, data if packed is None else packed
        self.method = (0 if packed is None else 8) if method is None else method
        self.local, self.entry, self.extra, self.entry_extra, self.at = local or {}, entry or {}, extra, entry_extra, at

    def fields(self, but):
        flags = 0 if all(b < 128 for b in self.name) else 0x800
        told = {"flags": flags, "method": self.method, "crc": zlib.crc32(self.data), "stored": len(self.packed),
                "size": len(self.data), "name": self.name}
        return {**told, **but}

    def header(self):
        f = self.fields(self.local)
        return struct.pack("<IHHHIIIIHH", 0x04034B50, 20, f["flags"], f["method"], 0x210000, f["crc"], f["stored"], f["size"],
                           len(f["name"]), len(self.extra)) + f["name"] + self.extra + self.packed

    def in_directory(self, offset):
        f = self.fields(self.entry)
        place = offset if self.at is None else self.at
        return struct.pack("<IHHHHIIIIHHHHHII", 0x02014B50, 0x314, 20, f["flags"], f["method"], 0x210000, f["crc"], f["stored"],
                           f["size"], len(f["name"]), len(self.entry_extra), 0, f.get("disk", 0), 0, 0, place) + f["name"] + self.entry_extra


def end(n, length, at, text=b"", **but):
    f = {"disk": 0, "first": 0, "here": n, "count": n, "size": length, "offset": at, "comment": len(text), **but}
    return struct.pack("<IHHHHIIH", 0x06054B50, f["disk"], f["first"], f["here"], f["count"], f["size"], f["offset"],
                       f["comment"]) + text


def zip64(n, length, place, record, **but):
    f = {"follow": 44, "disk": 0, "here": n, "count": n, "size": length, "offset": place, "at": record, "disks": 1, **but}
    return (struct.pack("<IQHHIIQQQQ", 0x06064B50, f["follow"], 45, 45, f["disk"], 0, f["here"], f["count"], f["size"], f["offset"]) +
            struct.pack("<IIQI", 0x07064B50, 0, f["at"], f["disks"]))


def archive(*members, comment=b"", more=None, **but):
    body, directory, places = b"", b"", []
    for m in members:
        places.append(len(body))
        directory += m.in_directory(len(body))
        body += m.header()
    large = b"" if more is None else zip64(len(members), len(directory), len(body), len(body) + len(directory), **more)
    return body + directory + large + end(len(members), len(directory), len(body), comment, **but)


A, B = Member("a.npy"), Member("b.npy")
PLAIN = archive(A, B)
DIRECTORY = len(A.header()) + len(B.header())
ENTRY = len(A.in_directory(0))
LAST = len(PLAIN) - 22


def make(cases):
    truncation(cases)
    wrong_things(cases, PLAIN, zips=True)
    lengths(cases)
    arithmetic(cases)
    ranges(cases)
    amplification(cases)
    names(cases)
    polyglots(cases)
    types(cases)
    blobs(cases)
    content(cases)


def squeezed(data):
    """A header, unchanged, then zeros, deflated."""
    assert not any(data[128:])
    return b"\0" + struct.pack("<HH", 128, 128 ^ 0xFFFF) + data[:128] + deflate(data[128:])


def truncation(c):
    for at in (1, 4, 20, 30, 35, 100, len(A.header()), DIRECTORY - 1, DIRECTORY, DIRECTORY + 46, LAST - 1, LAST, LAST + 4, len(PLAIN) - 1):
        c.rejected("A", f"cut_{at:03}", PLAIN[:at], SHORT if at > 3 else [SHORT, UNSUPPORTED], None, "", f"the first {at} of {len(PLAIN)} bytes")
    c.rejected("A", "long_by_1", PLAIN + b"\0", BAD, len(PLAIN), "follow the end", "one byte behind the end record")
    c.rejected("A", "comment_cut", archive(A, comment=b"x" * 10)[:-1], SHORT, None, "inside its comment", "a comment that is not all there")


def lengths(c):
    for name, but, status, message in [
            ("count_3", {"here": 3, "count": 3}, BAD, ""), ("count_1", {"here": 1, "count": 1}, BAD, "after its 1 members"),
            ("count_0", {"here": 0, "count": 0}, BAD, "after its 0 members"), ("count_ffff", {"here": ONES16, "count": ONES16}, BAD, ""),
            ("counts_differ", {"here": 1}, UNSUPPORTED, "an archive in several pieces"), ("disk_1", {"disk": 1}, UNSUPPORTED, "an archive in several pieces"),
            ("size_0", {"size": 0}, BAD, ""), ("size_ones", {"size": ONES32}, BAD, ""), ("offset_ones", {"offset": ONES32}, BAD, ""),
            ("offset_2_31", {"offset": 1 << 31}, BAD, "outside"), ("size_2_31", {"size": 1 << 31}, BAD, "outside"),
            ("offset_less", {"offset": DIRECTORY - 1}, BAD, ""), ("offset_more", {"offset": DIRECTORY + 1}, BAD, "")]:
        c.rejected("C", f"end_{name}", archive(A, B, **but), status, None, message, f"the end record says {but}")
    for name, more, status in [("count", {"count": 3}, BAD), ("here", {"here": 1}, BAD), ("size", {"size": 1}, BAD), ("offset", {"offset": 1}, BAD),
                               ("follow_0", {"follow": 0}, BAD), ("follow_huge", {"follow": (1 << 64) - 1}, BAD), ("at_huge", {"at": (1 << 64) - 1}, BAD),
                               ("at_0", {"at": 0}, None), ("disk", {"disk": 1}, UNSUPPORTED), ("disks", {"disks": 9}, UNSUPPORTED)]:
        data = archive(A, B, more=more)
        if status:
            c.rejected("C", f"zip64_{name}", data, status, None, "", f"the zip64 end record or its locator says {more}")
        else:
            c.accepted("C", f"zip64_{name}", data, 2, "a locator that points nowhere, and the record right before it")
    c.accepted("C", "zip64", archive(A, B, more={}), 2, "zip64 end records that nobody needs")


def arithmetic(c):
    for label, n in HUGE.items():
        if n > ONES32:
            extra = struct.pack("<HHQQ", 1, 16, n, n)
            c.rejected("D", f"size_{label}", archive(Member("a.npy", entry={"size": ONES32, "stored": ONES32}, entry_extra=extra), B), BAD, None,
                       "overlaps", f"a member of {n} bytes")
            extra = struct.pack("<HHQ", 1, 8, n)
            c.rejected("D", f"header_{label}", archive(Member("a.npy", at=ONES32, entry_extra=extra), B), BAD, None, "",
                       f"a member at byte {n}")
            c.rejected("D", f"directory_{label}", archive(A, B, more={"offset": n}, offset=ONES32), BAD, None, "", f"the directory at byte {n}")
            c.rejected("D", f"members_{label}", archive(A, B, more={"here": n, "count": n}, here=ONES16, count=ONES16), [BAD, LIMIT], None, "",
                       f"{n} members")


def ranges(c):
    half = len(A.header())
    c.rejected("E", "same_place", archive(A, Member("b.npy", at=0)), BAD, None, "overlaps", "two members at one place")
    c.rejected("E", "quoted", archive(A, Member("b.npy", local={"name": b"b.npy"}, at=half - 60)), BAD, None, "overlaps",
               "a member inside of another")
    c.rejected("E", "into_next", archive(Member("a.npy", entry={"stored": 300, "size": 300}), B), BAD, None, "overlaps", "a member that is longer than its place")
    c.rejected("E", "into_directory", archive(A, Member("b.npy", entry={"stored": 300, "size": 300})), BAD, None, "overlaps", "a member that takes the directory along")
    c.rejected("E", "outside", archive(A, Member("b.npy", at=1 << 30)), BAD, None, "overlaps", "a member behind the file")
    c.rejected("E", "extra_long", archive(Member("a.npy", local={}, extra=b""), B)[:28] + struct.pack("<H", 60000) + archive(A, B)[30:], BAD, None,
               "overlaps what follows", "an extra field that only the member's own header has")
    many = b"".join(Member(f"{i}.npy", at=0).in_directory(0) for i in range(500))
    c.rejected("E", "bomb_of_quotes", A.header() + many + end(500, len(many), half), BAD, None, "overlaps", "500 members that share their bytes")


def amplification(c):
    zeros = padded(text("'|u1'", shape=f"({1 << 26},)"))
    body = file(zeros, bytes(1 << 20))
    c.rejected("F", "shape_beyond", archive(Member("a.npy", body, squeezed(body))), SHORT, None, "missing", "64 MiB said, 1 MiB there")
    c.accepted("F", "many", archive(*[Member(f"{i}.npy") for i in range(2000)]), 2000, "2000 small arrays")
    c.accepted("F", "comment_65535", archive(A, comment=b"PK\5" * 21845), 1, "the longest comment, which begins like end records all over")
    c.accepted("F", "name_65535", archive(Member(b"n" * 65531 + b".npy")), 1, "a name as long as can be")


def names(c):
    c.rejected("H", "twice", archive(A, Member("a.npy", file(padded(text("'<i4'")), bytes(24)))), BAD, None, "twice", "a member twice")
    c.rejected("H", "hidden", archive(A, Member("a")), BAD, None, "twice", "two members that become one array")
    c.rejected("H", "nul", archive(Member(b"a\0.npy")), BAD, None, "NUL", "a name with a NUL")
    c.rejected("H", "not_utf8", archive(Member(b"a\xff.npy")), BAD, None, "UTF-8", "a name that says it is UTF-8")
    c.rejected("H", "local_name", archive(Member("a.npy", local={"name": b"b.npy"})), BAD, 0, "another name", "two names for one member")
    c.rejected("H", "local_method", archive(Member("a.npy", local={"method": 8})), BAD, 0, "another method", "stored here, deflated there")
    c.rejected("H", "local_encrypted", archive(Member("a.npy", local={"flags": 1})), BAD, 0, "encrypted", "encrypted in one header only")
    c.rejected("H", "local_crc", archive(Member("a.npy", local={"crc": 1})), BAD, 0, "CRC", "two CRCs")
    c.rejected("H", "local_size", archive(Member("a.npy", local={"size": 1})), BAD, 0, "CRC", "two sizes")
    c.rejected("H", "zip64_twice", archive(Member("a.npy", entry_extra=struct.pack("<HHQ", 1, 8, 1) * 2)), BAD, None, "two zip64", "two zip64 fields")
    c.rejected("H", "extra_overrun", archive(Member("a.npy", entry_extra=struct.pack("<HH", 7, 9))), BAD, None, "past its end", "an extra field that is longer than it is")
    for i, name in enumerate(["..\\..\\x.npy", "C:\\x.npy", "./a.npy", "~root/a.npy", "con.npy", "a\n\x1b[2J.npy"]):
        c.accepted("H", f"path_{i}", archive(Member(name)), 1, "a name that would lead elsewhere, if it were a path")


def polyglots(c):
    c.rejected("I", "prefix", b"\x7fELF" + PLAIN, [BAD, UNSUPPORTED], None, "", "something in front of the archive")
    c.rejected("I", "two_ends", archive(A, comment=end(0, 0, 0)), BAD, None, "two end records", "an empty archive in the comment of another")
    c.accepted("I", "end_inside", archive(Member("a.npy", file(padded(text("'|u1'", shape="(22,)")), end(0, 0, 0)))), 1, "an end record as the data of an array")
    c.accepted("I", "zip_inside", archive(A, Member("inner.zip", PLAIN)), 1, "an archive in an archive")


def types(c):
    for method in (1, 6, 9, 12, 14, 93, 95, 99, 65535):
        c.rejected("J", f"method_{method}", archive(Member("a.npy", method=method, local={"method": method})), UNSUPPORTED, None, f"method {method}",
                   "a method that is not read")
    for flags in (1, 0x40, 0x2000):
        c.rejected("J", f"flags_{flags:04x}", archive(Member("a.npy", local={"flags": flags}, entry={"flags": flags})), UNSUPPORTED, None, "encrypted", "an encrypted member")
    c.rejected("J", "flags_0020", archive(Member("a.npy", local={"flags": 0x20}, entry={"flags": 0x20})), UNSUPPORTED, None, "patch", "a patch")
    c.rejected("J", "no_array", archive(A, Member("b.npy", PICKLE)), BAD, None, "is not an array", "a pickle under the name of an array")


def blobs(c):
    packed = deflate(WHOLE)
    for name, data, status in [("cut", packed[:-1], SHORT), ("empty", b"", SHORT), ("type_3", b"\x07" + packed[1:], BAD)]:
        c.rejected("N", name, archive(Member("a.npy", WHOLE, data)), status, None, "", "deflated data that are damaged")
    c.rejected("N", "more_behind", archive(Member("a.npy", WHOLE, packed + b"\0")), BAD, None, "too early", "bytes behind the end of deflated data")
    zeros = file(padded(text("'|u1'", shape="(1000000,)")), bytes(1000000))
    c.accepted("N", "zeros", archive(Member("a.npy", zeros, squeezed(zeros))), 1, "a million zeros in a few bytes")


def content(c):
    wrong = bytearray(PLAIN)
    wrong[30 + 5 + 130] ^= 1
    c.damaged("P", "crc", bytes(wrong), DIGEST, 2, "a bit of an element is another")
    wrong = bytearray(PLAIN)
    wrong[30 + 5 + 100] = 0x09
    c.damaged("P", "crc_of_header", bytes(wrong), DIGEST, 2, "a blank of a header is another")
    c.damaged("P", "crc_0", archive(Member("a.npy", local={"crc": 0}, entry={"crc": 0})), DIGEST, 1, "no CRC")
