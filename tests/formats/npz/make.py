#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of .npz, and the expected results (Python's own library only).

Python's zipfile makes the archives, ../npy/make.py the arrays. The files valid/real_* exist already:
numpy 2.4 wrote them.
"""
import importlib.util
import io
import json
import pathlib
import struct
import zipfile
import zlib

HERE = pathlib.Path(__file__).parent
spec = importlib.util.spec_from_file_location("npy_make", HERE.parent / "npy" / "make.py")
npy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(npy)
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
DEFLATED = zipfile.ZIP_DEFLATED
A, B = npy.array("<f4", (2, 3)), npy.array("<i2", (4,))
PICKLE = b"\x80\x04\x8c\x08builtins\x94\x8c\x04exec\x94\x93\x94\x8c\x04pass\x94\x85\x94R."
expect = {"valid": {}, "reject": {}}


# ------------------------------------------------------------------- composing

class Pipe(io.BytesIO):
    """A file that cannot be sought, so sizes follow the data."""

    def seekable(self):
        return False

    def seek(self, *_):
        raise io.UnsupportedOperation

    tell = seek


def archive(members, method=zipfile.ZIP_STORED, out=None, comment=b"", force=True, extra=b""):
    out = out or io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            info.extra = extra
            with z.open(info, "w", force_zip64=force) as f:
                f.write(data)
        z.comment = comment
    return out.getvalue()


def at(data, signature, nth=0):
    """The offset of the n-th record of that kind."""
    place = -1
    for _ in range(nth + 1):
        place = data.index(signature, place + 1)
    return place


def patched(data, place, form, value):
    return data[:place] + struct.pack(form, value) + data[place + struct.calcsize(form):]


HEADER, ENTRY, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
PLAIN = archive([("a.npy", A), ("b.npy", B)])


# ------------------------------------------------------------------- expected results

def tensor(name, data, **more):
    told = dict(npy.described(data, **more), name=name)
    if data[6] > 1:
        told["attrs"]["numpy.version"] = f"{data[6]}.0"
    return told


def valid(name, data, tensors, warnings=0, lenient=False, **attrs):
    (HERE / "valid" / f"{name}.npz").write_bytes(data)
    expect["valid"][f"{name}.npz"] = {"format": "npz", "version": "", "lenient": lenient, "warnings": warnings,
                                      "attrs": {f"npz.{k}": v for k, v in attrs.items()}, "tensors": tensors}


def reject(name, data, code, offset, message, lenient="rejects", rule=None):
    (HERE / "reject" / f"{name}.npz").write_bytes(data)
    expect["reject"][f"{name}.npz"] = {"code": code, "offset": offset, "message": message, "lenient": lenient}
    if rule:
        expect["reject"][f"{name}.npz"]["rule"] = rule


def clean():
    for kind in ("valid", "reject"):
        for path in (HERE / kind).iterdir():
            if not path.name.startswith("real_"):
                path.unlink()


# ----------------------------------------------------------------------- valid

def make_real():
    for path in sorted((HERE / "valid").glob("real_*.npz")):
        with zipfile.ZipFile(path) as z:
            tensors = [tensor(i.filename[:-4], z.read(i)) for i in z.infolist()]
        expect["valid"][path.name] = {"format": "npz", "warnings": 0, "tensors": tensors}


def make_valid():
    both = [tensor("a", A), tensor("b", B)]
    valid("stored", PLAIN, both)
    valid("deflated", archive([("a.npy", A), ("b.npy", B)], DEFLATED), both, compress="deflate")
    valid("no_zip64", archive([("a.npy", A), ("b.npy", B)], force=False), both)
    valid("streamed", archive([("a.npy", A), ("b.npy", B)], out=Pipe()), both)
    valid("streamed_deflated", archive([("a.npy", A), ("b.npy", B)], DEFLATED, Pipe()), both, compress="deflate")
    valid("empty", archive([]), [])
    valid("comment", archive([("a.npy", A), ("b.npy", B)], comment="über".encode()), both, comment="über")
    valid("comment_long", archive([("a.npy", A), ("b.npy", B)], comment=b"x" * 65535), both)
    valid("order", archive([("b.npy", B), ("a.npy", A)]), both[::-1])
    valid("extra_fields", archive([("a.npy", A), ("b.npy", B)], extra=struct.pack("<HH", 0x4246, 5) + b"ZZZZZ"), both)
    valid("no_suffix", archive([("a", A), ("b.NPY", B)]), [tensor("a", A), tensor("b.NPY", B)])
    valid("suffix_twice", archive([("a.npy.npy", A)]), [tensor("a.npy", A)])
    valid("suffix_alone", archive([(".npy", A)]), [tensor("", A)])
    valid("folders", archive([("x/", b""), ("x/a.npy", A)]), [tensor("x/a", A)])
    valid("other_members", archive([("readme.txt", b"hello"), ("a.npy", A), ("nothing", b"")]), [tensor("a", A)])
    valid("other_members_deflated", archive([("readme.txt", b"hello" * 100), ("a.npy", A)], DEFLATED), [tensor("a", A)],
          compress="deflate")
    valid("name_utf8", archive([("é日.npy", A)]), [tensor("é日", A)])
    old = archive([("aé.npy", A)])  # without the flag, the same bytes are in code page 437
    old = patched(patched(old, at(old, HEADER) + 6, "<H", 0), at(old, ENTRY) + 8, "<H", 0)
    valid("name_cp437", old, [tensor("a├⌐", A)])
    valid("name_long", archive([("n" * 65531 + ".npy", A)]), [tensor("n" * 65531, A)])
    kinds = [npy.array(">f8", (3, 2), True), npy.array("|S3", (2, 4), True), npy.array("<U2", (3,), width=8),
             npy.array("<f4", ()), npy.array("<f4", (0, 3)), npy.array("<V2", (4,)), npy.array("<f1", (3,)),
             npy.array("<M8[ns]", (3,), width=8), npy.array("<f4", (2,), major=3),
             npy.file(npy.header([("x", "<f4"), ("y", ">i2")], (2,)), npy.filled(12))]
    names = [chr(ord("a") + i) for i in range(len(kinds))]
    members, tensors = [(f"{n}.npy", k) for n, k in zip(names, kinds)], [tensor(n, k) for n, k in zip(names, kinds)]
    valid("kinds", archive(members), tensors)
    valid("kinds_deflated", archive(members, DEFLATED), tensors, compress="deflate")
    odd = npy.file("{'shape': (2,), 'descr': '<f4', 'fortran_order': False}", npy.filled(8), align=16)
    valid("header_odd", archive([("a.npy", odd)]), [tensor("a", odd, canonical=False)])
    valid("trailing", archive([("a.npy", A + b"more")]), [tensor("a", A)], warnings=1)
    valid("trailing_deflated", archive([("a.npy", A + b"more"), ("b.npy", B)], DEFLATED), both, warnings=1)
    pickled = {"name": "o", "dtype": "u8", "shape": [1], "order": "C", "nbytes": 0, "attrs": {"numpy.descr": "|O"}}
    valid("object", archive([("a.npy", A), ("o.npy", npy.file(npy.header("|O", (1,)), b"\x80\x02]K\1a."))]),
          [tensor("a", A), pickled], warnings=1)
    valid("prefix", b"#!/bin/sh\n" + PLAIN, both, warnings=1, lenient=True)
    valid("behind", PLAIN + b"\0\0", both, warnings=1, lenient=True)
    valid("twice_lenient", archive([("a.npy", B), ("a.npy", A)]), [tensor("a", A)], warnings=1, lenient=True)
    valid("no_array_lenient", archive([("a.npy", A), ("b.npy", b"hello")]), [tensor("a", A)], warnings=1, lenient=True)
    short = dict(tensor("b", B), sha256=None)
    valid("short_lenient", archive([("a.npy", A), ("b.npy", B[:-1])]), [tensor("a", A), short], warnings=1, lenient=True)


# ---------------------------------------------------------------------- reject

def reject_archives():
    n = len(PLAIN)
    for cut in (1, 3, 10, 21, 22, 50, 100, n - 1):
        reject(f"cut_{n - cut:03}", PLAIN[:n - cut], SHORT, n - cut, "zip archive")
    reject("prefix", b"#!/bin/sh\n" + PLAIN, BAD, 0, "in front of the zip archive", "opens")
    reject("behind", PLAIN + b"\0\0", BAD, n, "follow the end", "opens")
    objects = npy.file(npy.header("|O", (1,)), PICKLE)
    for name, data in ("object_call", archive([("o.npy", objects)])), ("object_call_deflated", archive([("o.npy", objects)], DEFLATED)):
        reject(name, data, BAD, None, "builtins.exec", "opens", rule="PickleCall")
    end, entry, head = at(PLAIN, END), at(PLAIN, ENTRY), at(PLAIN, HEADER)
    second = at(PLAIN, ENTRY, 1)
    reject("disk", patched(PLAIN, end + 4, "<H", 1), UNSUPPORTED, end, "an archive in several pieces")
    reject("count_more", patched(patched(PLAIN, end + 8, "<H", 3), end + 10, "<H", 3), BAD, None, "3 members")
    reject("count_less", patched(patched(PLAIN, end + 8, "<H", 1), end + 10, "<H", 1), BAD, second, "after its 1 members")
    reject("directory_far", patched(PLAIN, end + 16, "<I", 2 ** 31), BAD, end, "outside of the archive")
    reject("directory_ones", patched(PLAIN, end + 16, "<I", 2 ** 32 - 1), BAD, end, "there is none")
    reject("encrypted", patched(PLAIN, entry + 8, "<H", 1), UNSUPPORTED, entry, "'a.npy' is encrypted")
    for method, name in [(9, "deflate64"), (12, "bzip2"), (14, "lzma"), (93, "zstd")]:
        reject(f"method_{name}", patched(PLAIN, entry + 10, "<H", method), UNSUPPORTED, entry, f"compressed by {name}")
    reject("lzma", archive([("a.npy", A)], zipfile.ZIP_LZMA), UNSUPPORTED, None, "compressed by lzma")
    reject("overlap", patched(PLAIN, second + 42, "<I", 0), BAD, None, "overlaps another one")
    reject("overlap_directory", patched(patched(PLAIN, second + 20, "<I", 500), second + 24, "<I", 500), BAD, second,
           "overlaps the directory")
    reject("sizes_differ", patched(PLAIN, entry + 24, "<I", 100), BAD, entry, "is not compressed")
    reject("zip64_missing", patched(PLAIN, entry + 24, "<I", 2 ** 32 - 1), BAD, entry, "no zip64 field")
    reject("local_name", PLAIN[:head + 30] + b"x" + PLAIN[head + 31:], BAD, head, "another name")
    reject("local_method", patched(PLAIN, head + 8, "<H", 8), BAD, head, "another method")
    reject("local_crc", patched(PLAIN, head + 14, "<I", 1), BAD, head, "another CRC", "opens")
    reject("local_size", patched(PLAIN, head + 30 + 5 + 4, "<Q", 1), BAD, head, "another CRC", "opens")
    reject("twice", archive([("a.npy", A), ("a.npy", B)]), BAD, None, "'a.npy' occurs twice", "opens")
    reject("hidden", archive([("a", A), ("a.npy", B)]), BAD, None, "occurs twice", "opens")
    reject("no_array", archive([("a.npy", b"hello")]), BAD, None, "is not an array", "opens")
    reject("no_array_short", archive([("a.npy", b"")]), BAD, None, "is not an array", "opens")
    crc = bytearray(PLAIN)
    crc[head + 30 + 5 + 20 + 130] ^= 1
    reject("crc", bytes(crc), "TNF_EDIGEST", head + 30 + 5 + 20 + 128, "crc32", "opens")  # verify reports it
    text = archive([("a.npy", A), ("readme.txt", b"hello")]).replace(b"hello", b"hellp")
    reject("crc_other", text, "TNF_EDIGEST", None, "'readme.txt' does not match its crc32", "opens")
    broken = archive([("a.npy", A)], DEFLATED)
    place = head + 30 + 5 + 20
    reject("deflate_broken", broken[:place] + b"\xff" + broken[place + 1:], BAD, None, "a.npy: corrupt deflate")
    longer = archive([("a.npy", A)], DEFLATED)
    entry = at(longer, ENTRY)
    reject("deflate_short", patched(patched(longer, entry + 24, "<I", len(A) - 1), head + 39, "<Q", len(A) - 1), BAD, None,
           "decode to more than the expected 151 bytes")


def reject_arrays():
    def wrong(name, data, code, message, lenient="rejects"):
        reject(f"array_{name}", archive([("w.npy", data)]), code, None, message, lenient)
    wrong("version", A[:6] + b"\4\0" + A[8:], UNSUPPORTED, "w.npy: version 4.0")
    wrong("magic_only", A[:6], SHORT, "w.npy: it ends inside the header")
    wrong("cut_header", A[:100], SHORT, "28 bytes are missing")
    wrong("cut_data", A[:-3], SHORT, "3 bytes are missing", "opens")
    wrong("header_huge", A[:6] + b"\2\0" + struct.pack("<I", 2 ** 31) + A[10:], LIMIT, "2147483648 bytes")
    wrong("call", npy.file("{'descr': x(), 'fortran_order': False, 'shape': (1,)}"), BAD, "w.npy: the header")
    wrong("negative", npy.file(npy.header("<f4", (-2, -3)).replace("'<f4'", "'<f4'"), bytes(24)), BAD, "negative")


if __name__ == "__main__":
    clean()
    make_real()
    make_valid()
    reject_archives()
    reject_arrays()
    (HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
