# SPDX-License-Identifier: MIT
"""zTensor 0.1 and 1.x: blobs at multiples of 64, an index in CBOR, its length at the end."""
import pathlib
import struct
import sys

from kit import *

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "formats/ztensor2"))
from zt2 import Raw, cbor, head  # noqa: E402

FORMATS = [("ztensor0", "zt"), ("ztensor1", "zt")]
DATA = bytes(range(1, 17))
FRAME = b"\x28\xb5\x2f\xfd"


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def pairs(*items):
    """A map in this order."""
    return Raw(head(5, len(items)) + b"".join(cbor(k) + cbor(v) for k, v in items))


class Old:
    """One version: makes an index of one tensor, and the bytes after it."""

    def __init__(self, name):
        self.zero = name == "ztensor0"
        self.magic = b"ZTEN0001" if self.zero else b"ZTEN1000"
        self.tail = b"" if self.zero else b"ZTEN1000"
        self.f32 = "float32" if self.zero else "f32"
        self.u8 = "uint8" if self.zero else "u8"
        self.bool = "bool"

    def entry(self, name="w", **but):
        """The fields of one tensor, some of them replaced; None: the field is left out."""
        fields = {"offset": 64, "size": 16, "dtype": self.f32, "shape": [2, 2], "encoding": "raw", **but}
        more = [(k, v) for k, v in fields.items() if k not in ("offset", "size", "dtype", "shape", "encoding")]
        kept = lambda items: pairs(*[(k, v) for k, v in items if v is not None])
        if self.zero:
            return kept([("name", name), ("offset", fields["offset"]), ("size", fields["size"]),
                         ("dtype", fields["dtype"]), ("layout", "dense"), ("shape", fields["shape"]),
                         ("encoding", fields["encoding"]), *more])
        rename = {"checksum": "digest"}
        encoding = None if fields["encoding"] == "raw" else fields["encoding"]
        part = kept([("dtype", fields["dtype"]), ("offset", fields["offset"]), ("length", fields["size"]),
                     ("encoding", encoding), *[(rename.get(k, k), v) for k, v in more]])
        return name, kept([("shape", fields["shape"]), ("format", "dense"), ("components", pairs(("data", part)))])

    def index(self, *entries):
        if self.zero:
            return head(4, len(entries)) + b"".join(entries)
        objects = head(5, len(entries)) + b"".join(cbor(n) + v for n, v in entries)
        return pairs(("version", "1.2.0"), ("objects", Raw(objects)))

    def file(self, index, data=DATA, length=None):
        body = self.magic.ljust(64, b"\0") + data if data else self.magic
        n = len(index) if length is None else length
        return body + index + struct.pack("<Q", n) + self.tail

    def at(self):
        """The offset at which the description of the tensor begins."""
        return 81 if self.zero else self.one().index(cbor("w"), 80) + 2

    def one(self, data=DATA, **but):
        return self.file(self.index(self.entry(**but)), data)


def make(c):
    z = Old(c.name)
    word = "index" if z.zero else "manifest"
    whole = z.one()
    wrong_things(c, whole)
    c.accepted("P", "sound", whole, 1, "a sound file")
    c.accepted("A", "no_tensors", z.file(z.index(), b""), 0, "no tensors")
    truncation(c, z, whole)
    lengths(c, z, word)
    shapes(c, z)
    ranges(c, z)
    structure(c, z)
    names(c, z)
    blobs(c, z)


def truncation(c, z, whole):
    """The end of a file says where the index is. The end of a cut file has other bytes, which may have any
    value: the last eight are read as the length of the index, and this length, or the index at that place, is
    wrong."""
    for at in (1, 4, 7):
        c.rejected("A", f"cut_{at}", whole[:at], SHORT, at, "", f"{at} bytes: less than the magic")
    size = len(whole)
    for at in (8, 9, 15):
        c.rejected("A", f"cut_{at}", whole[:at], SHORT, at, "", f"{at} bytes: the magic, and no length")
    for at in (20, 24, 63, 70, 79, 80, 81, size - 24, size - 17, size - 16, size - 9, size - 8, size - 7, size - 1):
        if at > 16:
            says = struct.unpack_from("<Q", whole, at - 8)[0]
            status, blamed = (BAD, at - 8)
            if not z.zero and says == 0:
                status = SHORT  # an index without bytes, which is not CBOR
            if not z.zero and at == size - 8:
                blamed = 80  # this is the end of 1.0, without a magic number, but not an index of 1.0
            c.rejected("A", f"cut_{at}", whole[:at], status, blamed, "", f"the first {at} of {size} bytes")
    c.rejected("A", "long_by_1", whole + b"\0", BAD, size - 7, "", "a byte behind the file's end")


def lengths(c, z, word):
    index = z.index(z.entry())
    at = 80 + len(index)
    for label, n in HUGE.items():
        c.rejected("C", f"{word}_{label}", z.file(index, length=n), BAD, at, str(n), f"an {word} of {n} bytes")
    c.rejected("C", f"{word}_takes_magic", z.file(index, length=at - 7), BAD, at, "",
               f"an {word} that would begin inside of the magic")
    c.add("C", f"{word}_1_more", z.file(index, length=len(index) + 1), f"an {word} that begins a byte early",
          verdict="rejected", status=BAD, offset=None, message="")
    c.add("C", f"{word}_1_less", z.file(index, length=len(index) - 1), f"an {word} that begins a byte late",
          verdict="rejected", status=BAD, offset=None, message="")
    c.rejected("C", f"{word}_0", z.file(index, length=0), BAD if z.zero else SHORT, None, "",
               f"an {word} of no bytes, in a file that has one")


def shapes(c, z):
    def shape(name, dims, message, what, size=16, letter="D", status=BAD):
        c.rejected(letter, name, z.one(shape=dims, size=size), status, z.at(), message, what)
    big = 1 << 32
    shape("product_wraps_to_0", [big, big], "2^64", "2^32 × 2^32", 0)
    shape("product_wraps_small", [3, 12297829382473034411], "2^64", "a product that is 1 in 64 bits", 4)
    shape("bytes_wrap_to_0", [1 << 62], "", "2^62 × 4 bytes is 0 in 64 bits", 0)
    shape("bytes_wrap_small", [(1 << 62) + 4], "", "(2^62 + 4) × 4 bytes is 16")
    shape("dimension_2_64_less_1", [(1 << 64) - 1], "", "a dimension of 2^64 - 1")
    shape("rank_65", [1] * 65, "64", "65 dimensions", 4, status=LIMIT)
    shape("shape_needs_more", [2, 3], "24", "a shape that needs more bytes than there are", letter="E")
    shape("shape_needs_less", [3], "12", "a shape that needs fewer bytes than there are", letter="E")
    c.accepted("D", "rank_0", z.one(data=DATA[:4], shape=[], size=4), 1, "a scalar")
    c.accepted("D", "rank_64", z.one(data=DATA[:4], shape=[1] * 64, size=4), 1, "64 dimensions")
    c.accepted("D", "zero", z.one(shape=[0, 5], size=0), 1,
               "a dimension of 0", warnings=None)


def ranges(c, z):
    def range_(name, offset, size, message, what, letter="E", status=BAD, dims=None):
        c.rejected(letter, name, z.one(offset=offset, size=size, dtype=z.u8, shape=dims or [size]), status, None, message, what)
    range_("offset_0", 0, 16, "", "a tensor over the magic")
    range_("offset_8", 8, 16, "64", "a tensor at 8, which is not a multiple of 64")
    range_("offset_65", 65, 15, "64", "a tensor at 65")
    range_("into_index", 64, 17, "", "a tensor that takes a byte of the index along")
    range_("into_footer", 64, 16 + 60, "", "a tensor that takes the index along")
    range_("past_end", 1 << 20, 16, "", "a tensor behind the file", status=SHORT)
    range_("longer_than_file", 64, 1 << 30, "", "1 GiB in a small file", "F", SHORT)
    range_("size_2_60", 64, 1 << 60, "", "2^60 bytes: the released reader takes that memory", "F", SHORT)
    range_("end_wraps", (1 << 64) - 64, 128, "", "offset and size whose sum is small in 64 bits", "D")
    range_("size_2_64_less_1", 64, (1 << 64) - 1, "", "2^64 - 1 bytes", "D")
    same = z.file(z.index(z.entry("a"), z.entry("b", offset=64)))
    if z.zero:
        c.damaged("E", "overlap", same, BAD, 2, "two tensors with the same bytes; a blob of 0.1 is of one tensor", 64)
    else:
        c.accepted("E", "overlap", same, 2, "two tensors with the same bytes, which 1.x does not forbid", warnings=None)


def structure(c, z):
    def raw(letter, name, index, message, what, status=BAD, offset=None):
        c.rejected(letter, name, z.file(index), status, offset, message, what)
    whole = z.index(z.entry())
    raw("I", "index_then_more", whole + b"\0", "", "a byte behind the index", offset=80 + len(whole))
    raw("J", "root_text", cbor("index"), "", "an index that is text", offset=80)
    raw("J", "root_number", b"\x01", "", "an index that is a number", offset=80)
    raw("J", "root_other", cbor({"a": 1}) if z.zero else cbor([1]), "", "a map for an array, or an array for a map", offset=80)
    if z.zero:
        entry = lambda text: head(4, 1) + text
        raw("J", "entry_array", entry(cbor([1, 2])), "", "an entry that is an array", offset=81)
        raw("J", "entry_null", entry(b"\xf6"), "", "an entry that is null", offset=81)
    else:
        entry = lambda text: pairs(("version", "1.2.0"), ("objects", Raw(head(5, 1) + cbor("w") + text)))
        raw("J", "object_array", entry(cbor([1, 2])), "", "an object that is an array")
        raw("J", "objects_missing", cbor({"version": "1.2.0"}), "objects", "a manifest without objects")
    for key in ("offset", "size", "dtype", "shape"):
        at = z.at() if z.zero or key == "shape" else None
        c.rejected("J", f"no_{key}", z.one(**{key: None}), BAD, at, "", f"a tensor without {key}")
    for label, but in (("offset_text", {"offset": "64"}), ("offset_negative", {"offset": -64}), ("offset_float", {"offset": 64.0}),
                       ("size_null", {"size": []}), ("shape_number", {"shape": 4}), ("shape_negative", {"shape": [-4]}),
                       ("shape_text", {"shape": ["4"]}), ("shape_map", {"shape": {"0": 4}})):
        data, (key, value) = z.one(**but), next(iter(but.items()))
        at = data.index(cbor({"size": "size" if z.zero else "length"}.get(key, key)), 80) + (5 if key == "size" and z.zero else 7 if key != "shape" else 6)
        at += isinstance(value, list) and len(value) > 0
        c.rejected("J", label, data, BAD, at, "", f"a field of another type: {label}")
    depth = b"\x81" * 400 + b"\x00"
    c.rejected("G", "arrays_400", z.one(note=Raw(depth)), LIMIT, None, "", "400 arrays in each other in a field of the user's")
    c.rejected("G", "maps_400", z.one(note=Raw(b"\xa1\x61a" * 400 + b"\x00")), LIMIT, None, "", "400 maps in each other")
    c.rejected("G", "tags_4000", z.one(note=Raw(b"\xc1" * 3000 + b"\x00")), LIMIT, None, "", "3000 tags on one number")
    c.rejected("G", "open_arrays_400", z.one(note=Raw(b"\x9f" * 400 + b"\xff" * 400)), LIMIT, None, "", "400 arrays of open length")
    for label, text in (("array", b"\x9b" + b"\xff" * 8), ("map", b"\xbb" + b"\xff" * 8), ("text", b"\x7b" + b"\xff" * 8),
                        ("bytes", b"\x5b" + b"\xff" * 8), ("array_2_32", b"\x9a" + b"\xff" * 4), ("text_2_31", b"\x7a\x80\0\0\0")):
        data = z.one(note=Raw(text))
        c.rejected("F", f"cbor_{label}", data, SHORT, data.index(cbor("note")) + 5, "",
                   f"a head of CBOR that promises what is not there: {label}")
    key_twice = z.entry(dtype=z.f32)
    if z.zero:
        twice = bytearray(key_twice)
        twice = bytes([twice[0] + 1]) + bytes(twice[1:]) + cbor("size") + cbor(4)
        raw("H", "key_twice", head(4, 1) + twice, "twice", "a key twice in an entry")
        raw("H", "key_number", head(4, 1) + bytes([key_twice[0] + 1]) + key_twice[1:] + b"\x01\x02", "", "a key that is a number")
    else:
        raw("H", "name_twice", z.index(z.entry("w"), z.entry("w")), "twice", "an object's name twice")


def names(c, z):
    for label, name in (("empty", ""), ("ansi", "\x1b[2J"), ("nul", "a\0b"), ("dotdot", "../../x"), ("newline", "a\nb"),
                        ("bidi", "\u202ex"), ("long", "n" * 2000), ("percent", "%n%s")):
        c.accepted("H", f"name_{label}", z.file(z.index(z.entry(name))), 1, f"a name: {label}", warnings=None)
    bad = Raw(b"\x62\xc3\x28")
    c.rejected("H", "name_bad_utf8", z.file(z.index(z.entry(bad))), BAD, None, "UTF-8", "a name that is not UTF-8")
    if z.zero:
        two = DATA.ljust(64, b"\0") + DATA
        c.accepted("H", "name_twice", z.file(z.index(z.entry("w"), z.entry("w", offset=128)), two), 2,
                   "a name twice, which 0.1 allows", warnings=None)


def blobs(c, z):
    frame = lambda data: FRAME + b"\xa0" + struct.pack("<I", len(data)) + (len(data) << 3 | 1).to_bytes(3, "little") + data
    rle = lambda n: FRAME + b"\xa0" + struct.pack("<I", n) + (n << 3 | 3).to_bytes(3, "little") + b"\0"
    def packed(name, stored, what, dims=(16,), fine=False, letter="N", status=BAD, at=None):
        data = z.one(data=stored, size=len(stored), dtype=z.u8, shape=list(dims), encoding="zstd",
                     **({} if z.zero else {"uncompressed_length": 16}))
        if fine:
            c.accepted(letter, name, data, 1, what)
        else:
            c.damaged(letter, name, data, status, 1, what, at)
    packed("zstd", frame(DATA), "a sound frame", fine=True)
    packed("zstd_less", frame(DATA[:15]), "a frame that gives too little: zeros must not fill it up", status=SHORT, at=64 + len(frame(DATA)) - 1)
    packed("zstd_more", frame(DATA + b"x"), "a frame that gives too much")
    packed("zstd_garbage", b"\x80\x02garbage!", "no frame at all", at=64)
    packed("zstd_cut", frame(DATA)[:-3], "a frame that is cut short", status=SHORT, at=64 + len(frame(DATA)) - 3)
    packed("zstd_bomb", rle(131072) * 4, "512 KiB in a tensor of 16 bytes", letter="F")
    packed("zstd_checksum", FRAME + b"\xa4" + struct.pack("<I", 16) + (16 << 3 | 1).to_bytes(3, "little") + DATA + b"\0\0\0\0",
           "a frame whose own checksum is wrong", at=64)
    packed("zstd_dictionary", FRAME + b"\xa3" + struct.pack("<II", 77, 16) + (16 << 3 | 1).to_bytes(3, "little") + DATA,
           "a frame that needs a dictionary", at=64)
    right = f"crc32c:0x{crc32c(DATA):08X}"
    c.accepted("P", "crc_right", z.one(checksum=right), 1, "the right checksum")
    c.damaged("P", "crc_wrong", z.one(checksum="crc32c:0x00000000"), DIGEST, 1, "a wrong checksum", 64)
    c.damaged("P", "sha256_wrong", z.one(checksum="sha256:" + "0" * 64), DIGEST, 1, "a wrong SHA-256", 64)
    c.accepted("P", "checksum_unknown", z.one(checksum="md5:00"), 1, "a checksum that nobody can check", warnings=None)
    c.damaged("J", "bool_2", z.one(data=b"\2", size=1, dtype="bool", shape=[1]), BAD, 1, "a bool of 2", 64)
    c.add("J", "dtype_unknown", z.one(dtype="float7"), "a type nobody knows: the tensor is listed, not read",
          verdict="damaged", status=UNSUPPORTED, tensors=1)
    c.add("J", "encoding_unknown", z.one(encoding="lz4"), "an encoding nobody knows: the tensor is listed, not read",
          verdict="damaged", status=UNSUPPORTED, tensors=1)
