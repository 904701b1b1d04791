# SPDX-License-Identifier: MIT
"""Shared by the generators: the list of cases, files made of named fields, files of another kind.

Verdicts follow from the descriptions of the formats and the classes of attack. They are written
before any reader is tried.
"""
import struct
import zlib

BAD, SHORT, LIMIT = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT"
UNSUPPORTED, NOTFOUND, DIGEST, IO = "TNF_EUNSUPPORTED", "TNF_ENOTFOUND", "TNF_EDIGEST", "TNF_EIO"
END = "the first byte that is not there"

CLASSES = {
    "A": "cut short or too long, at every boundary of the structure",
    "B": "something else under this name",
    "C": "length fields that lie",
    "D": "arithmetic that wraps",
    "E": "ranges that overlap, leave gaps, run backwards or outside",
    "F": "a small file that asks for much memory",
    "G": "nesting without end",
    "H": "duplicates, ambiguous spellings, odd names",
    "I": "bytes before, behind and between: polyglots",
    "J": "types: unknown ones, parts of bytes, values outside of a type",
    "K": "paths in an index that lead elsewhere",
    "N": "compressed blobs that lie",
    "O": "embeddings: counts, rows, words, subwords",
    "P": "content: odd numbers, wrong digests, parts that disagree",
}


def missing(n):
    """The part of a message that names n missing bytes."""
    return "1 byte is missing" if n == 1 else f"{n} bytes are missing"


class Cases:
    """All cases of one format. A case is a file, or a directory of files whose first is opened."""

    def __init__(self, name, extension):
        self.name, self.extension, self.all, self.taken = name, extension, [], set()

    def add(self, letter, name, data, what, **verdict):
        assert letter in CLASSES, letter
        files = data if isinstance(data, dict) else {f"{name}.{self.extension}": data}
        key = f"{self.name}/{letter}/{name}"
        assert key not in self.taken, key
        self.taken.add(key)
        folder = f"{self.name}/{letter}" + (f"/{name}" if isinstance(data, dict) else "")
        self.all.append(({f"{folder}/{file}": bytes(content) for file, content in files.items()},
                         {"file": f"{folder}/{next(iter(files))}", "format": self.name,
                          "class": letter, "what": what, **verdict}))

    def rejected(self, letter, name, data, status, offset, message, what):
        """The file does not open. status: a list if several are right. offset: of the fault, None if
        there is no such byte."""
        if offset is END:
            offset = len(data)
        self.add(letter, name, data, what, verdict="rejected", status=status, offset=offset,
                 message=message)

    def damaged(self, letter, name, data, status, tensors, what, offset=None):
        """The file opens; verifying reports this problem."""
        self.add(letter, name, data, what, verdict="damaged", status=status, offset=offset, tensors=tensors)

    def accepted(self, letter, name, data, tensors, what, warnings=0):
        """The file opens and verifies; it is unusual, but legal. warnings: how many, or None."""
        self.add(letter, name, data, what, verdict="accepted", tensors=tensors, warnings=warnings)


class Fields:
    """A file as a sequence of named fields, so that a case can name the fields that it changes."""

    CODES = {"u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q", "i32": "<i", "i64": "<q",
             "f32": "<f", "f64": "<d"}

    def __init__(self):
        self.fields = []

    def put(self, name, code, value):
        assert name not in [f[0] for f in self.fields], name
        self.fields.append((name, code, value))
        return self

    def raw(self, name, data):
        return self.put(name, None, bytes(data))

    @classmethod
    def bytes_of(cls, code, value):
        return value if code is None or isinstance(value, bytes) else struct.pack(cls.CODES[code], value)

    def build(self, **but):
        """The file, with some fields replaced by a number or by bytes."""
        unknown = set(but) - {f[0] for f in self.fields}
        assert not unknown, unknown
        return b"".join(self.bytes_of(code, but.get(name, value)) for name, code, value in self.fields)

    def at(self, wanted, **but):
        offset = 0
        for name, code, value in self.fields:
            if name == wanted:
                return offset
            offset += len(self.bytes_of(code, but.get(name, value)))
        raise KeyError(wanted)

    def borders(self):
        offset = 0
        for name, code, value in self.fields:
            yield name, offset, len(self.bytes_of(code, value))
            offset += len(self.bytes_of(code, value))


def cuts(fields):
    """(name, length) of the places to cut a file: before and inside each field."""
    seen = {}
    for name, at, n in fields.borders():
        if at > 0:
            seen.setdefault(at, f"before_{name}")
        if n > 1:
            seen.setdefault(at + 1, f"in_{name}")
            seen.setdefault(at + n - 1, f"end_of_{name}")
    return [(label, at) for at, label in sorted(seen.items())]


def deflate(data):
    """A stored block, or, if all bytes are the same, a literal and matches with the byte before it. It is made
    by hand, because the output of a library depends on its version."""
    if len(set(data)) != 1 or data[0] > 143:
        n = len(data)
        return struct.pack("<BHH", 1, n, n ^ 0xFFFF) + data
    literal = f"{0x30 + data[0]:08b}"
    matches, rest = divmod(len(data) - 1, 258)
    bits = "110" + literal + (f"{0xC5:08b}" + "00000") * matches + literal * rest + "0000000"
    bits += "0" * (-len(bits) % 8)
    return int(bits[::-1], 2).to_bytes(len(bits) // 8, "little")


def gzip(data):
    """One member, without a name, a time or an operating system."""
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff" + deflate(data) + struct.pack("<II", zlib.crc32(data), len(data))


HUGE = {"2_31": 1 << 31, "2_32_less_1": (1 << 32) - 1, "2_32": 1 << 32, "2_53_and_1": (1 << 53) + 1,
        "2_63": 1 << 63, "2_64_less_2": (1 << 64) - 2, "2_64_less_1": (1 << 64) - 1}


def wrong_things(cases, whole, zips=False):
    """Class B: files of another kind that are found under the names of models. zips: the format is one of ZIP
    archives."""
    c = cases
    c.rejected("B", "empty", b"", SHORT, 0, "", "a download of no bytes")
    c.rejected("B", "lfs_pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:"
               + b"0" * 64 + b"\nsize 4294967296\n", BAD, 0, "git-LFS pointer",
               "a git-LFS pointer instead of the file it stands for")
    c.rejected("B", "html", b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n", BAD, 0,
               "HTML", "an error page of a web server")
    c.rejected("B", "json_error", b'{"error":"Repository not found"}', BAD, 0, "JSON",
               "an error message of an API")
    c.rejected("B", "gzip", gzip(gzip(whole)), UNSUPPORTED, 0, "gzip",
               "a sound file, compressed twice: once is undone by the command")
    c.rejected("B", "pickle", b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01.", UNSUPPORTED, 0,
               "pickle", "a pickle, which must not be run")
    c.rejected("B", "zip", b"PK\3\4\x14\0\0\0\0\0" + bytes(60), SHORT if zips else UNSUPPORTED, 70 if zips else 0,
               "zip archive" if zips else "ZIP", "a ZIP archive")
    c.rejected("B", "pdf", b"%PDF-1.7\n" + bytes(60), BAD, 0, "PDF", "a PDF document")
    c.rejected("B", "utf16", b"\xff\xfe" + '{"a":1}'.encode("utf-16-le"), BAD, 0, "UTF-16",
               "text with a byte order mark")
    c.rejected("B", "zeros", bytes(512), BAD, 0, "zeros", "a sparse file that was never filled")
