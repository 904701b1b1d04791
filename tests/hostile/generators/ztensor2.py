# SPDX-License-Identifier: MIT
"""zTensor 2: blobs at multiples of 4096, a manifest in deterministic CBOR, a footer of 40 bytes.

The specification names its rules; `rule` in corpus.json is such a name.
"""
import pathlib
import struct
import sys

from kit import *

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "formats/ztensor2"))
from zt2 import Raw, MAGIC, cbor, container, dense, digest, footer, head, part, thing, xxh3  # noqa: E402

FORMAT, EXTENSION = "ztensor2", "zt"
M = 4096  # where the manifest of a file without blobs is
HEAP = b"\xab" * 8


def empty(manifest=None, **more):
    """No blobs: the manifest is at 4096."""
    return container(cbor({"objects": {}}) if manifest is None else manifest, **more)


def file(objects, heap=HEAP, **root):
    """The blobs at 4096, the manifest at 8192 (or where the next page begins)."""
    return container(cbor({"objects": objects, **root}), heap)


def make(cases):
    def bad(letter, name, data, rule, what, offset=None, status=BAD):
        cases.add(letter, name, data, what, verdict="rejected", status=status, offset=offset,
                  message=rule + ":", rule=rule)

    def wrong(letter, name, data, rule, tensors, what, status=BAD):
        cases.add(letter, name, data, what, verdict="damaged", status=status, tensors=tensors, rule=rule)

    wrong_things(cases, empty())
    truncation(cases, bad)
    lengths(bad)
    encodings(cases, bad)
    schema(cases, bad)
    shapes(cases, bad)
    ranges(cases, bad)
    blobs(cases, bad, wrong)
    shards(bad)


def truncation(c, bad):
    whole = file({"t": dense(4096, 8, [8])})
    for at in (1, 7, 8, 40, 47):
        if at < 8:
            c.rejected("A", f"cut_{at}", whole[:at], SHORT, at, "", "less than the magic")
        else:
            bad("A", f"cut_{at}", whole[:at], "FileTooSmall", f"{at} bytes: no room for a footer", at, SHORT)
    size = len(whole)
    for at in (48, 4095, 4096, 4103, 8191, 8192, 8200, size - 41, size - 40, size - 39, size - 8, size - 1):
        bad("A", f"cut_{at}", whole[:at], "FooterMagic", f"the first {at} of {size} bytes", max(at - 8, 0), SHORT)
    bad("A", "long_by_1", whole + b"\0", "FooterMagic", "one byte behind the footer", size - 7, SHORT)
    bad("A", "footer_of_other_magic", whole[:-1] + b"\x0b", "FooterMagic", "the last byte is another", size - 8, SHORT)


def lengths(bad):
    whole = empty()
    at = len(whole) - 40
    text = cbor({"objects": {}})
    def foot(letter, name, rule, what, where, status=BAD, **more):
        values = {"offset": M, "length": len(text), "hash": xxh3(text), **more}
        data = whole[:at] + footer(values["offset"], values["length"], values["hash"], values.get("version", 2))
        bad(letter, name, data, rule, what, where, status)
    for label, n in HUGE.items():
        if n > 1 << 30:
            foot("C", f"manifest_length_{label}", "ManifestTooLarge", f"a manifest of {n} bytes", at + 8, LIMIT, length=n)
    foot("C", "manifest_length_2_30_and_1", "ManifestTooLarge", "a byte more than a manifest may have", at + 8, LIMIT,
         length=(1 << 30) + 1)
    foot("C", "manifest_length_2_30", "ManifestBounds", "the longest manifest, which is not there", at, length=1 << 30)
    foot("C", "manifest_length_1_more", "ManifestBounds", "a manifest that reaches into the footer", at,
         length=len(text) + 1)
    foot("C", "manifest_length_1_less", "ManifestHash", "a manifest that is cut: the hash is of more", at + 16,
         length=len(text) - 1, status=DIGEST)
    foot("C", "data_shard_with_offset", "ManifestBounds", "no manifest, but a place for it", at, length=0, hash=0)
    foot("C", "data_shard_with_hash", "ManifestBounds", "no manifest, but a hash of it", at, length=0, offset=0)
    foot("D", "manifest_end_wraps", "ManifestBounds", "offset and length whose sum is small in 64 bits", at,
         offset=(1 << 64) - 4096, length=8192)
    foot("D", "manifest_offset_2_63", "ManifestBounds", "a manifest at 2^63", at, offset=1 << 63)
    foot("E", "manifest_at_0", "BlobAlignment", "a manifest where the magic is", at, offset=0)
    foot("E", "manifest_unaligned", "BlobAlignment", "a manifest at 4097", at, offset=4097)
    foot("E", "manifest_past_end", "ManifestBounds", "a manifest behind the file", at, offset=1 << 20)
    for version in (0, 1, 3, (1 << 32) - 1):
        foot("J", f"version_{version}", "Version", f"version {version}", at + 24, UNSUPPORTED, version=version)
    foot("P", "manifest_hash", "ManifestHash", "the hash of something else", at + 16, hash=xxh3(text) ^ 1, status=DIGEST)


def encodings(c, bad):
    """The profile of CBOR. Faults are reported at their byte in the manifest."""
    def value(letter, name, rule, raw, what, skip=0, status=BAD):
        manifest = cbor({"objects": {}, "attributes": {"k": Raw(raw)}})
        bad(letter, name, empty(manifest), rule, what, M + manifest.rindex(raw) + skip, status)
    ok = lambda letter, name, raw, what: c.accepted(
        letter, name, empty(cbor({"objects": {}, "attributes": {"k": Raw(raw)}})), 0, what)
    value("H", "cbor_indefinite_array", "CborSyntax", b"\x9f\xff", "an array of open length")
    value("H", "cbor_indefinite_text", "CborSyntax", b"\x7f\x61a\xff", "a text of open length")
    value("H", "cbor_tag", "CborSyntax", b"\xc1\x00", "a tag")
    value("H", "cbor_undefined", "CborSyntax", b"\xf7", "the value undefined")
    value("H", "cbor_simple", "CborSyntax", b"\xf8\x20", "a simple value of two bytes")
    value("H", "cbor_reserved", "CborSyntax", b"\x1c", "a reserved head")
    value("H", "cbor_break", "CborSyntax", b"\xff", "a break that ends nothing")
    value("H", "cbor_long_integer", "CborDeterminism", b"\x18\x17", "23 in two bytes")
    value("H", "cbor_long_integer_8", "CborDeterminism", b"\x1b" + bytes(7) + b"\x18", "24 in nine bytes")
    value("H", "cbor_long_text_head", "CborDeterminism", b"\x78\x01a", "a text with a long head")
    value("H", "cbor_wide_float", "CborDeterminism", b"\xfb\x3f\xf8" + bytes(6), "1.5 as a double")
    value("H", "cbor_other_nan", "CborDeterminism", b"\xf9\x7e\x01", "a NaN with a payload")
    value("H", "cbor_key_twice", "CborDuplicateKey", b"\xa2\x61a\x01\x61a\x02", "a key twice", 4)
    value("H", "cbor_keys_unsorted", "CborDeterminism", b"\xa2\x61b\x01\x61a\x02", "keys out of order", 4)
    value("H", "cbor_keys_by_bytes", "CborDeterminism", b"\xa2\x62aa\x01\x61b\x02", "longer keys before shorter ones", 5)
    value("H", "cbor_bad_utf8", "CborSyntax", b"\x62\xc3\x28", "text that is not UTF-8", 1)
    value("H", "cbor_surrogate", "CborSyntax", b"\x63\xed\xa0\x80", "half a surrogate pair", 1)
    for label, raw in (("array", b"\x9b" + b"\xff" * 8), ("map", b"\xbb" + b"\xff" * 8), ("text", b"\x7b" + b"\xff" * 8),
                       ("bytes", b"\x5b" + b"\xff" * 8), ("array_2_32", b"\x9a" + b"\xff" * 4),
                       ("map_2_31", b"\xba\x7f\xff\xff\xff"), ("text_2_31", b"\x7a\x80\0\0\0")):
        value("F", f"cbor_{label}", "CborSyntax", raw, f"a head of CBOR that promises what is not there: {label}")
    for levels, fine in ((29, True), (500, False)):
        for label, begin, end in (("arrays", b"\x81", b"\x00"), ("maps", b"\xa1\x61a", b"\x00")):
            raw = begin * levels + end
            if fine:
                ok("G", f"{label}_{levels}", raw, f"{levels} {label} in each other, which is allowed")
            else:  # the root is level 0, this level 2, the deepest 32; a key comes before its value
                at = 31 if label == "arrays" else 30 * len(begin) + 1
                value("G", f"{label}_{levels}", "CborDepth", raw, f"{levels} {label} in each other", at, LIMIT)
    manifest = cbor({"objects": {}})
    bad("I", "manifest_then_more", empty(manifest + b"\0"), "CborSyntax", "a byte behind the manifest's map", M + len(manifest))
    bad("A", "manifest_cut", empty(manifest[:-1]), "CborSyntax", "a manifest that ends inside", M + len(manifest) - 1)
    ok("H", "control_in_attribute", cbor("\x1b[2J\0"), "escapes for a terminal in a text")


def schema(c, bad):
    def root(name, manifest, rule, what, where=None, letter="J", status=BAD):
        raw = cbor(manifest)
        at = M if where is None else M + raw.rindex(where)
        bad(letter, name, empty(raw), rule, what, at, status)
    root("root_array", [1], "Schema", "a manifest that is an array")
    root("no_objects", {"attributes": {}}, "Schema", "a manifest without objects")
    root("objects_array", {"objects": [1]}, "Schema", "objects that are an array", cbor([1]))
    root("attributes_text", {"objects": {}, "attributes": "x"}, "Schema", "attributes that are text", cbor("x"))
    root("object_number", {"objects": {"t": 1}}, "Schema", "an object that is a number", b"\x01")
    c.accepted("J", "unknown_root_key", empty(cbor({"objects": {}, "x.future": [1, {"a": None}]})), 0,
               "a key that nobody knows: to be passed over", warnings=1)
    for label, name in (("empty", ""), ("nul", "a\0b"), ("1025", "n" * 1025)):
        raw = cbor({"objects": {name: dense(4096, 0, [0])}})
        bad("H", f"name_{label}", empty(raw), "Name", f"a name: {label}", M + raw.index(cbor(name)))
    for label, name in (("1024", "n" * 1024), ("ansi", "\x1b[31m"), ("dotdot", "../../x"), ("nfd", "e\u0301"),
                        ("bidi", "\u202ex"), ("newline", "a\nb")):
        c.accepted("H", f"name_{label}", empty(cbor({"objects": {name: dense(4096, 0, [0])}})), 1, f"a name: {label}")
    def piece(name, change, rule, what, where, letter="J", drop=(), status=BAD):
        p = {**part(4096, 0), **change}
        for key in drop:
            del p[key]
        raw = cbor({"objects": {"t": thing({"data": p}, [0])}})
        bad(letter, name, empty(raw), rule, what, None if where is None else M + raw.rindex(where), status)
    for label, dtype in (("unknown", "f128"), ("bool", "bool"), ("old", "float32"), ("case", "F32"), ("empty", "")):
        piece(f"dtype_{label}", {"dtype": dtype}, "Schema", f"a dtype {dtype!r}", None)
    piece("dtype_number", {"dtype": 1}, "Schema", "a dtype that is a number", None)
    piece("blob_1", {"blob": [4096]}, "Schema", "a blob without length", None)
    piece("blob_3", {"blob": [0, 4096, 0]}, "Schema", "a blob as an old draft had it", None)
    piece("blob_text", {"blob": "4096"}, "Schema", "a blob that is text", None)
    piece("blob_negative", {"blob": [-4096, 0]}, "Schema", "a negative offset", None)
    piece("blob_float", {"blob": [4096.0, 0]}, "Schema", "an offset that is a float", None)
    piece("no_blob", {}, "Schema", "a part without a blob", None, drop=["blob"])
    piece("no_dtype", {}, "Schema", "a part without a dtype", None, drop=["dtype"])
    piece("digest_upper", {"digest": "xxh3:2D06800538D394C2"}, "Schema", "a digest in capitals", None)
    piece("digest_no_colon", {"digest": "xxh3"}, "Schema", "a digest without digits", None)
    piece("encoding_alone", {"encoding": "zt.zstd-seekable/1"}, "Schema", "an encoding without a decoded length", None)
    piece("decoded_alone", {"decoded_length": 0}, "Schema", "a decoded length without an encoding", None)
    piece("type_and_dtype", {"type": "bool", "dtype": "f32"}, "Schema", "bool in floats", None)
    piece("shard_unknown", {"shard": "base"}, "ShardRef", "a shard that the table does not have", None, "K")
    raw = cbor({"objects": {"t": thing({}, [0])}})
    bad("J", "no_parts", empty(raw), "Schema", "an object of no parts", None)


def shapes(c, bad):
    def dense_of(name, shape, length, rule, what, dtype="u8", letter="D"):
        bad(letter, name, file({"t": dense(4096, length, shape, dtype)}), rule, what, None)
    big = 1 << 32
    dense_of("product_wraps_to_0", [big, big], 0, "Shape", "2^32 × 2^32")
    dense_of("product_wraps_small", [3, 12297829382473034411], 1, "Shape", "a product that is 1 in 64 bits")
    dense_of("bytes_wrap_to_0", [1 << 61], 0, "DenseSize", "2^61 × 8 bytes is 0 in 64 bits", "f64")
    dense_of("bytes_wrap_small", [(1 << 61) + 1], 8, "DenseSize", "(2^61 + 1) × 8 bytes is 8", "f64")
    dense_of("dimension_2_64_less_1", [(1 << 64) - 1], 8, "DenseSize", "a dimension of 2^64 - 1")
    dense_of("length_short", [9], 8, "DenseSize", "nine numbers in eight bytes", letter="E")
    dense_of("length_long", [7], 8, "DenseSize", "seven numbers in eight bytes", letter="E")
    dense_of("rank_65", [1] * 65, 1, "Shape", "65 dimensions")
    c.accepted("D", "rank_64", file({"t": dense(4096, 1, [1] * 64)}), 1, "64 dimensions")
    c.accepted("D", "rank_0", file({"t": dense(4096, 1, [])}), 1, "a scalar")
    c.accepted("D", "zero_and_huge", empty(cbor({"objects": {"t": dense(4096, 0, [0, 1 << 63])}})), 1, "a zero, then a huge one")
    c.accepted("D", "zero_after_huge", empty(cbor({"objects": {"t": dense(4096, 0, [1 << 63, 1 << 63, 0])}})), 1,
               "a zero after what would wrap: any dimension of 0 makes the product 0, says the specification")


def ranges(c, bad):
    def blob(name, offset, length, rule, what, letter="E", shape=None):
        bad(letter, name, file({"t": dense(offset, length, shape or [length])}), rule, what, None)
    blob("blob_at_0", 0, 8, "BlobAlignment", "a blob over the magic")
    blob("blob_unaligned", 4097, 7, "BlobAlignment", "a blob at 4097")
    blob("blob_at_64", 64, 8, "BlobAlignment", "a blob at 64, as older versions allowed")
    blob("blob_past_end", 1 << 20, 8, "BlobBounds", "a blob behind the file")
    blob("blob_into_footer", 8192, 4096, "BlobBounds", "a blob that takes the footer along")
    blob("blob_empty_past_end", 1 << 20, 0, "BlobBounds", "an empty blob behind the file", shape=[0])
    blob("blob_end_wraps", (1 << 64) - 4096, 8192, "BlobBounds", "offset and length whose sum is small", "D")
    blob("blob_is_manifest", 8192, 16, "BlobOverlap", "a blob over the manifest")
    heap = bytes(4096) + HEAP
    bad("E", "blobs_overlap", file({"a": dense(4096, 4100, [4100]), "b": dense(8192, 8, [8])}, heap), "BlobOverlap",
        "two blobs that share bytes, but are not the same", None)
    bad("E", "blobs_nested", file({"a": dense(4096, 8, [8]), "b": dense(4096, 4, [4])}), "BlobOverlap",
        "a blob that begins another", None)
    c.accepted("E", "blobs_shared", file({"a": dense(4096, 8, [8]), "b": dense(4096, 8, [1], "f64")}), 2,
               "two names for the same blob, as two types")
    c.accepted("I", "gap", container(cbor({"objects": {"a": dense(4096, 8, [8])}}), HEAP + b"PK\5\6" + bytes(18)), 1,
               "bytes between the blobs that nobody names")
    old = file({"t": dense(4096, 8, [8])})
    appended = old + bytes(-len(old) % 4096)
    manifest = cbor({"objects": {}})
    c.accepted("I", "older_manifest", appended + manifest + footer(len(appended), len(manifest), xxh3(manifest)), 0,
               "a file appended to: the older footer does not count")


FRAME = b"\x28\xb5\x2f\xfd"


def zstd_raw(data, checksum=False, declared=None):
    """A frame of one raw block, with its size in 4 bytes."""
    size = struct.pack("<I", len(data) if declared is None else declared)
    return FRAME + bytes([0xa0]) + size + (len(data) << 3 | 1).to_bytes(3, "little") + data


def zstd_rle(byte, n):
    """A frame of one block that repeats a byte."""
    return FRAME + bytes([0xa0]) + struct.pack("<I", n) + (n << 3 | 2 | 1).to_bytes(3, "little") + byte


def seekable(frames, entries=None, count=None, descriptor=0, end=b"\xb1\xea\x92\x8f", content=None, mark=b"\x5e\x2a\x4d\x18"):
    """entries: (compressed, decoded) sizes of each frame."""
    body = b"".join(f for f, _ in frames)
    entries = [(len(f), n) for f, n in frames] if entries is None else entries
    table = b"".join(struct.pack("<II", *e) for e in entries)
    length = len(table) + 9 if content is None else content
    return (body + mark + struct.pack("<I", length) + table
            + struct.pack("<IB", len(entries) if count is None else count, descriptor) + end)


def blobs(c, bad, wrong):
    def packed(name, stored, decoded, what, letter="N", fine=False, **more):
        obj = dense(4096, len(stored), [decoded], encoding="zt.zstd-seekable/1", decoded_length=decoded, **more)
        data = file({"t": obj}, stored)
        if fine:
            c.accepted(letter, name, data, 1, what)
        else:
            wrong(letter, name, data, "Encoding", 1, what)
    eight = [(zstd_raw(HEAP), 8)]
    packed("sound", seekable(eight), 8, "a sound frame", fine=True)
    packed("no_bytes", seekable([]), 0, "no frames for no bytes", fine=True)
    packed("decoded_less", seekable(eight), 7, "more bytes than declared")
    packed("decoded_more", seekable(eight), 9, "fewer bytes than declared")
    packed("entry_less", seekable(eight, [(len(eight[0][0]), 7)]), 7, "a frame that gives more than the table says")
    packed("entry_more", seekable(eight, [(len(eight[0][0]), 9)]), 9, "a frame that gives less than the table says")
    packed("compressed_short", seekable(eight, [(len(eight[0][0]) - 1, 8)]), 8, "frames that do not fill their place")
    packed("end_magic", seekable(eight, end=b"\xb1\xea\x92\x8e"), 8, "another magic at the end of the table")
    packed("skippable_magic", seekable(eight, mark=b"\x60\x2a\x4d\x18"), 8, "another magic before the table")
    packed("count_huge", seekable(eight, count=(1 << 32) - 1), 8, "a table of 2^32 - 1 frames")
    packed("count_less", seekable(eight, count=0), 8, "a table that is longer than its count")
    packed("descriptor", seekable(eight, descriptor=1), 8, "reserved bits in the descriptor")
    packed("content_wrong", seekable(eight, content=16), 8, "a table of another length")
    packed("stream_short", b"\x5e\x2a\x4d\x18", 8, "four bytes for a stream")
    packed("frame_damaged", seekable([(FRAME + b"\xff" * 12, 8)]), 8, "a frame that is none")
    packed("frame_of_pickle", seekable([(b"\x80\x02.", 8)]), 8, "something else for a frame")
    packed("frame_declares_more", seekable([(zstd_raw(HEAP, declared=1 << 30), 8)]), 8,
           "a frame whose own header promises 1 GiB")
    packed("frame_too_large", seekable([(zstd_rle(b"\0", 131072), 1 << 25)]), 1 << 25, "a frame above 16 MiB", "F")
    packed("frames_unequal", seekable([(zstd_raw(b"ab"), 2), (zstd_raw(b"c"), 1), (zstd_raw(b"de"), 2)]), 5,
           "frames of unequal length before the last")
    rle = [(zstd_rle(b"\0", 131072), 131072)]
    packed("bomb", seekable(rle * 8), 1 << 20, "1 MiB of zeros in 200 bytes: legal, and read in pieces", "F", fine=True)
    n = 1 << 24
    packed("bomb_that_lies", seekable([(zstd_rle(b"\0", 131072), n)] * 30), 30 * n, "480 MiB in a kilobyte, of frames that give less", "F")
    many = seekable([(zstd_rle(b"\0", 131072), n)] * 150)
    c.add("F", "bomb_2_gib", file({"t": dense(4096, len(many), [150 * n], encoding="zt.zstd-seekable/1", decoded_length=150 * n)}, many),
          "2.4 GiB in 6 KB: more than a file of that size may become", verdict="rejected", status=LIMIT, offset=None,
          message="raise the limit 'decoded_bytes'")
    shared = {f"t{i:04}": dense(4096, len(many), [150 * n], encoding="zt.zstd-seekable/1", decoded_length=150 * n)
              for i in range(4)}
    c.add("F", "bomb_shared", file(shared, many), "the same four times over", verdict="rejected", status=LIMIT, offset=None,
          message="raise the limit 'decoded_bytes'")
    c.add("N", "encoding_unknown", file({"t": dense(4096, 8, [8], encoding="x.lz4/1", decoded_length=8)}), "an encoding nobody knows: "
          "the file opens, the tensor cannot be read", verdict="damaged", status=UNSUPPORTED, tensors=1)
    for value in (2, 255):
        wrong("J", f"bool_{value}", file({"t": dense(4096, 1, [1], type="bool")}, bytes([value])), "LayoutData", 1, f"a bool of {value}")
    wrong("J", "f4_pad", file({"t": dense(4096, 1, [1], type="f4_e2m1")}, b"\xf0"), "LayoutData", 1, "a nibble of padding that is not 0")
    wrong("P", "digest_wrong", file({"t": dense(4096, 8, [8], digest="xxh3:0000000000000000")}), "Digest", 1, "another digest", DIGEST)
    wrong("P", "digest_short", file({"t": dense(4096, 8, [8], digest="xxh3:0")}), "Digest", 1, "a digest of one digit", DIGEST)
    wrong("P", "sha256_wrong", file({"t": dense(4096, 8, [8], digest="sha256:" + "0" * 64)}), "Digest", 1, "another SHA-256", DIGEST)
    c.accepted("P", "digest_right", file({"t": dense(4096, 8, [8], digest=digest(HEAP))}), 1, "the right digest")
    sparse(c, bad, wrong)


def csr(rows=(0, 2, 3), columns=(0, 2, 1), shape=(2, 3), values=12, indices=12, indptr=12, **more):
    heap = bytearray(b"\xab" * (8192 + max(indptr, 4 * len(rows))))
    heap[4096:4096 + 4 * len(columns)] = struct.pack(f"<{len(columns)}I", *columns)
    heap[8192:8192 + 4 * len(rows)] = struct.pack(f"<{len(rows)}I", *rows)
    parts = {"values": part(4096, values, "f32"), "indices": part(8192, indices, "u32"), "indptr": part(12288, indptr, "u32")}
    return container(cbor({"objects": {"t": thing(parts, shape, "zt.sparse_csr/1", **more)}}), bytes(heap))


def sparse(c, bad, wrong):
    c.accepted("E", "csr", csr(), 1, "a sound sparse matrix")
    wrong("E", "csr_column", csr(columns=(0, 3, 1)), "LayoutData", 1, "a column outside of the matrix")
    wrong("E", "csr_columns_unsorted", csr(columns=(2, 0, 1)), "LayoutData", 1, "columns out of order")
    wrong("E", "csr_columns_twice", csr(columns=(0, 0, 1)), "LayoutData", 1, "an element twice")
    wrong("E", "csr_rows_back", csr(rows=(0, 3, 2)), "LayoutData", 1, "rows that run backwards")
    wrong("E", "csr_rows_start", csr(rows=(1, 2, 3)), "LayoutData", 1, "rows that begin at 1")
    wrong("E", "csr_rows_end", csr(rows=(0, 2, 9)), "LayoutData", 1, "rows that end behind the elements")
    wrong("E", "csr_rows_huge", csr(rows=(0, (1 << 32) - 1, 3)), "LayoutData", 1, "a row of 2^32 - 1 elements")
    bad("D", "csr_rows_2_64", csr(shape=((1 << 64) - 1, 3)), "Shape", "as many rows as wrap when one is added", None)
    bad("D", "csr_rows_2_62", csr(shape=(1 << 62, 3)), "LayoutRule", "rows whose index would have 2^64 bytes", None)
    bad("E", "csr_rank_3", csr(shape=(2, 3, 1)), "LayoutRule", "a sparse matrix of three dimensions", None)
    bad("E", "csr_values_short", csr(values=8), "LayoutRule", "fewer values than columns", None)
    bad("E", "csr_indptr_short", csr(indptr=8), "LayoutRule", "fewer rows than the shape says", None)


def shards(bad):
    table = {"base": {"size": 1 << 20, "digest": "xxh3:00112233445566aa"}}
    def labelled(name, label, what):
        raw = cbor({"objects": {}, "shards": {label: table["base"]}})
        bad("K", name, empty(raw), "ShardName", what, M + raw.index(cbor(label)))
    for name, label in (("dotdot", ".."), ("parent", "../base"), ("absolute", "/etc/passwd"), ("hidden", ".base"), ("empty", ""),
                        ("nul", "a\0b"), ("blank", "a b"), ("backslash", "a\\b"), ("colon", "c:base"), ("long", "n" * 65),
                        ("unicode", "é")):
        labelled(f"shard_{name}", label, f"a shard by the name of {label!r}")
    raw = cbor({"objects": {}, "shards": {"base": {"size": 47, "digest": "xxh3:00"}}})
    bad("K", "shard_small", empty(raw), "Schema", "a shard that is too small for a footer", None)
