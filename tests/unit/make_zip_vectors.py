#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes zip_vectors.h: archives made by Python's zipfile, some with lower limits for zip64.

    python3 make_zip_vectors.py > zip_vectors.h
"""
import io
import struct
import zipfile


def info(name, method=zipfile.ZIP_STORED):
    found = zipfile.ZipInfo(name)
    found.compress_type = method
    return found


def archive(fill, out=None):
    out = out or io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        fill(z)
    return out.getvalue()


def plain(z):
    z.writestr(info("a"), b"hello")
    z.writestr(info("b", zipfile.ZIP_DEFLATED), b"x" * 1000)
    z.comment = b"a comment"


def forced(z):
    with z.open(info("a"), "w", force_zip64=True) as f:
        f.write(b"hello")


def twice(z):
    z.writestr(info("a"), b"hello")
    z.writestr(info("a"), b"world")


class Pipe(io.BytesIO):
    def seekable(self):
        return False

    def seek(self, *_):
        raise io.UnsupportedOperation

    tell = seek


def ends():
    """An end record whose comment contains another end record."""
    second = b"PK\5\6" + bytes(18)
    return archive(lambda z: (plain(z), setattr(z, "comment", second)))


def large():
    """The directory with a member beyond 2 GiB, and the end records after it."""
    out = io.BytesIO()
    z = zipfile.ZipFile(out, "w")
    member = zipfile.ZipInfo("a.npy")
    member.header_offset = member.file_size = member.compress_size = 0x80000000
    member.CRC = 0x12345678
    member.extract_version = member.create_version = 45
    member.external_attr = 0o600 << 16
    z.filelist.append(member)
    z._didModify = True
    z.start_dir = 0

    class Far:
        """The same, with a directory that begins beyond 4 GiB."""
        at = 0x100000099

        def write(self, data):
            out.write(data)

        def tell(self):
            return self.at + out.tell()

        def flush(self):
            pass

    z.start_dir = Far.at
    z.fp = Far()
    z._write_end_record()
    z._didModify = False
    z.fp = None
    return out.getvalue()


def zip64():
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT, old = 0, 0, (zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT)
    found = archive(lambda z: [z.writestr(info(n), b"hello") for n in "ab"])
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = old
    return found


VECTORS = {
    "python": archive(plain),
    "forced": archive(forced),
    "streamed": archive(plain, Pipe()),
    "zip64": zip64(),
    "empty": archive(lambda z: None),
    "utf8": archive(lambda z: z.writestr(info("é.npy\x7f"), b"")),
    "twice": archive(twice),
    "prefix": b"#!/bin/sh\n\n" + archive(plain),
    "two_ends": ends(),
    "large": large(),
}

print("/* SPDX-License-Identifier: MIT */")
print("/* Made by make_zip_vectors.py, by Python's zipfile. */")
print("#ifndef TNF_UNIT_ZIP_VECTORS_H\n#define TNF_UNIT_ZIP_VECTORS_H\n")
for name, found in VECTORS.items():
    print(f"static const uint8_t zip_{name}[{len(found)}] = {{")
    for i in range(0, len(found), 16):
        print("    " + " ".join(f"0x{b:02x}," for b in found[i:i + 16]))
    print("};")
print("\n#endif")
