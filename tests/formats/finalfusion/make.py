#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of finalfusion, and the expected results.

This script makes all files from the layouts that docs/formats/finalfusion.md describes. If the bytes
of a file are known from another source, it compares them. Files of finalfusion's own tools are not
in this repository; tests/peers/finalfusion_peer.py makes some.
"""
import hashlib
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
# The numbers that the tools use. In the document, the first is 0, and both kinds of matrices are 1.
SIMPLE, DENSE, BUCKET, QUANTIZED, METADATA, NORMS, FASTTEXT, EXPLICIT, FLORET = range(1, 10)
NAMES = {SIMPLE: "simple", BUCKET: "bucket", FASTTEXT: "fasttext", EXPLICIT: "explicit", FLORET: "floret"}
TYPES = "i8 u8 i16 u16 i32 u32 i64 u64 i128 u128 f32 f64".split()
CODES = "bBhHiIqQ??fd"
F32, U8 = 10, 1


def u32(*v):
    return struct.pack("<%dI" % len(v), *v)


def u64(*v):
    return struct.pack("<%dQ" % len(v), *v)


def f32(*v):
    return struct.pack("<%df" % len(v), *v)


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return u32(len(s)) + s


def size_of(kind):
    return 16 if kind in (8, 9) else struct.calcsize("<" + CODES[kind])


def numbers(kind, n):
    if kind in (8, 9):
        return b"".join((i * 7 + 1).to_bytes(16, "little") for i in range(n))
    return struct.pack("<%d%s" % (n, CODES[kind]), *range(1, n + 1))


# ---------------------------------------------------------------- chunks: id, payload(position), end
class Chunk:
    """A chunk whose bytes depend on its place in the file."""

    def __init__(self, kind, fields, data=b"", align=0, literal=False, pad=None, length=0, fill=0):
        self.kind, self.fields, self.data, self.align = kind, fields, data, align
        self.literal, self.pad, self.length, self.fill = literal, pad, length, fill

    def padding(self, at):
        if not self.align:
            return 0
        pad = self.align - (at + 12 + len(self.fields)) % self.align
        pad = pad % self.align if self.literal else pad
        return pad if self.pad is None else self.pad

    def bytes(self, at):
        body = self.fields + bytes([self.fill]) * self.padding(at) + self.data
        return u32(self.kind) + u64((len(body) + self.length) & 0xFFFFFFFFFFFFFFFF) + body


def file(*chunks, ids=None, magic=b"FiFu", version=0, n=None, tail=b""):
    ids = [c.kind for c in chunks] if ids is None else ids
    out = magic + u32(version, len(ids) if n is None else n) + u32(*ids)
    for c in chunks:
        out += c.bytes(len(out))
    return out + tail


def simple(words, kind=SIMPLE, **more):
    return Chunk(kind, u64(len(words)), b"".join(map(text, words)), **more)


def bucket(words, exponent=2, low=3, high=6, kind=BUCKET, seed=False, **more):
    fields = u32(low, high, exponent)
    fields = fields + u64(len(words)) if seed else u64(len(words)) + fields
    return Chunk(kind, fields, b"".join(map(text, words)), **more)


def fasttext(words, buckets=5, low=3, high=6, **more):
    return bucket(words, buckets, low, high, FASTTEXT, **more)


def explicit(words, ngrams, low=2, high=3, **more):
    return Chunk(EXPLICIT, u64(len(words), len(ngrams)) + u32(low, high),
                 b"".join(map(text, words)) + b"".join(text(g) + u64(i) for g, i in ngrams), **more)


def floret(buckets=4, low=3, high=6, hashes=3, seed=42, bow="[", eow="]", **more):
    return Chunk(FLORET, u32(low, high) + u64(buckets) + u32(hashes, seed) + text(bow) + text(eow), **more)


def dense(rows, columns, kind=F32, id=DENSE, data=None, align=4, **more):
    data = numbers(kind, rows * columns) if data is None else data
    return Chunk(id, u64(rows) + u32(columns, kind), data, align, **more)


def seed_dense(rows, columns, kind=F32, **more):
    return dense(rows, columns, kind, 1, align=size_of(kind), **{"literal": True, **more})


class PQ:
    def __init__(self, rows=2, pieces=2, columns=4, centroids=3, projection=False, norms=False):
        self.rows, self.columns, self.pieces = rows, columns, pieces
        self.head = (pieces, columns, centroids)
        self.parts = {"codes": bytes((i * 5) % centroids for i in range(rows * pieces)),
                      "codebooks": f32(*(i / 4 for i in range(centroids * columns)))}
        if projection:
            self.parts["projection"] = f32(*(i - 3 for i in range(columns * columns)))
        if norms:
            self.parts["norms"] = f32(*(i + 1.5 for i in range(rows)))

    def chunk(self, id=QUANTIZED, types=(U8, F32), flags=None, head=None, rows=None, **more):
        flags = [int("projection" in self.parts), int("norms" in self.parts)] if flags is None else flags
        fields = u32(*flags) + u32(*(head or self.head)) + u64(self.rows if rows is None else rows) + u32(*types)
        data = b"".join(self.parts.get(role, b"") for role in ("projection", "codebooks", "norms", "codes"))
        return Chunk(id, fields, data, 4, **more)


def norms(n, id=NORMS, **more):
    return Chunk(id, u64(n) + u32(F32), f32(*(i + 0.5 for i in range(n))), 4, **more)


def metadata(toml):
    return Chunk(METADATA, toml if isinstance(toml, bytes) else toml.encode())


def unknown(id=4711, data=b"from tomorrow"):
    return Chunk(id, data)


# ---------------------------------------------------------------- what a reader must see
def sha(data):
    return hashlib.sha256(data).hexdigest()


def strings(name, words):
    words = [w.encode() if isinstance(w, str) else w for w in words]
    offsets = [sum(map(len, words[:i])) for i in range(len(words) + 1)]
    seen = {"name": name, "shape": [len(words)], "layout": "strings/1",
            "parts": {"offsets": sha(u64(*offsets)), "bytes": sha(b"".join(words))}}
    if all(b"\0" not in w and w.decode("utf-8", "ignore").encode() == w for w in words) and len(words) < 100:
        seen["strings"] = [w.decode() for w in words]
    return seen


def array(name, kind, shape, data):
    return {"name": name, "dtype": TYPES[kind], "shape": shape, "order": "C", "layout": "dense",
            "nbytes": len(data), "sha256": sha(data)}


def vocab(words):
    return strings("vocab", words)


def matrix(rows, columns, kind=F32):
    return array("embeddings", kind, [rows, columns], numbers(kind, rows * columns))


def norm_tensor(n):
    return array("norms", F32, [n], norms(n).data)


def ngrams(grams, indices=None):
    indices = [i for _, i in grams] if indices is None else indices
    return [strings("ngrams", [g for g, _ in grams]), array("ngrams.index", 7, [len(grams)], u64(*indices))]


def pq_tensor(q):
    return {"name": "embeddings", "shape": [q.rows, q.columns], "layout": "pq/1", "order": "C",
            "parts": {role: sha(data) for role, data in q.parts.items()}}


valid, reject = {}, {}


def accept(name, data, tensors, warnings=0, dialect="real", lenient=False, **attrs):
    names = {"finalfusion." + key: value for key, value in attrs.items()}
    names["finalfusion.dialect"] = dialect
    name = name if "." in name else name + ".fifu"
    assert name not in valid, name
    valid[name] = data, {"format": "finalfusion", "version": "0", "warnings": warnings, "lenient": lenient,
                         "attrs": names, "tensors": tensors}


def refuse(name, data, code, offset, message, lenient="rejects"):
    assert name not in reject, name
    reject[name + ".fifu"] = data, {"code": code, "offset": offset, "message": message, "lenient": lenient}


# ================================================================ valid: the tools' dialect
FOUR = ["this", "is", "a", "test"]
GRAMS = [("is>", 0), ("is", 1), ("<t", 2)]

whole = file(simple(["norms", "test"]), dense(2, 1, data=f32(1, -1)),
             Chunk(NORMS, u64(2) + u32(F32), f32(2, 3), 4))
assert whole.hex() == (
    "4669467500000000030000000100000002000000060000000100000019000000000000000200000000000000050000006e6f726d730400"
    "000074657374020000001b000000000000000200000000000000010000000a0000000000000000803f000080bf06000000180000000000"
    "000002000000000000000a000000000000000000004000004040")
accept("norms", whole, [vocab(["norms", "test"]), array("embeddings", F32, [2, 1], f32(1, -1)),
                        array("norms", F32, [2], f32(2, 3))], chunks=[1, 2, 6], vocab="simple", words=2)
assert explicit(FOUR, GRAMS).bytes(0).hex() == (
    "080000005e0000000000000004000000000000000300000000000000020000000300000004000000746869730200000069730100000061"
    "04000000746573740300000069733e00000000000000000200000069730100000000000000020000003c740200000000000000")
assert floret(65535).bytes(0).hex() == (
    "0900000022000000000000000300000006000000ffff000000000000030000002a000000010000005b010000005d")
assert fasttext(FOUR, 20).bytes(0).hex() == (
    "070000002f000000000000000400000000000000030000000600000014000000040000007468697302000000697301000000610400000074"
    "657374")
tiny = PQ(2, 1, 2, 2)
tiny.parts = {"codes": bytes([0, 1]), "codebooks": f32(1, 2, 3, 4), "projection": f32(0, -1, 1, 0), "norms": f32(2, 1)}
assert tiny.chunk().bytes(0).hex() == (
    "04000000520000000000000001000000010000000100000002000000020000000200000000000000010000000a000000000000000000000000"
    "0080bf0000803f000000000000803f000000400000404000008040000000400000803f0001")
assert bucket(["one", "</s>"], 10).bytes(389).hex() == (
    "0300000023000000000000000200000000000000030000000600000" "00a000000030000006f6e65040000003c2f733e")

VOCABS = {SIMPLE: (simple(FOUR), 4, {}), BUCKET: (bucket(FOUR), 8, {"min_n": 3, "max_n": 6, "buckets": 4}),
          FASTTEXT: (fasttext(FOUR), 9, {"min_n": 3, "max_n": 6, "buckets": 5}),
          EXPLICIT: (explicit(FOUR, GRAMS), 7, {"min_n": 2, "max_n": 3, "buckets": 3}),
          FLORET: (floret(), 4, {"min_n": 3, "max_n": 6, "buckets": 4, "hashes": 3, "seed": 42, "bow": "[", "eow": "]"})}


def vocab_tensors(kind):
    return [] if kind == FLORET else [vocab(FOUR)] + (ngrams(GRAMS) if kind == EXPLICIT else [])


for kind, (chunk, rows, attrs) in VOCABS.items():
    words = 0 if kind == FLORET else 4
    accept(NAMES[kind] + "_dense", file(chunk, dense(rows, 3)), vocab_tensors(kind) + [matrix(rows, 3)],
           chunks=[kind, 2], vocab=NAMES[kind], words=words, **attrs)
    q = PQ(rows, projection=kind in (BUCKET, FLORET), norms=kind in (SIMPLE, BUCKET))
    accept(NAMES[kind] + "_quantized", file(chunk, q.chunk()), vocab_tensors(kind) + [pq_tensor(q)],
           chunks=[kind, 4], vocab=NAMES[kind], words=words, **attrs)
    # Chunks without others, with a header as finalfusion's tool in Python saves them, and without a
    # header.
    accept(NAMES[kind] + "_alone", file(chunk), vocab_tensors(kind), chunks=[kind], vocab=NAMES[kind])
    accept(NAMES[kind] + "_bare.bin", chunk.bytes(0), vocab_tensors(kind), chunks=[kind], vocab=NAMES[kind])
accept("opq_bare.bin", tiny.chunk().bytes(0), [pq_tensor(tiny)], chunks=[4])
accept("dense_alone", file(dense(2, 3)), [matrix(2, 3)], chunks=[2])
accept("norms_alone", file(norms(3)), [norm_tensor(3)], chunks=[6])
TOML = '[common_config]\ndims = 3\nname = "größe"\n'
accept("metadata_alone", file(metadata(TOML)), [], chunks=[5], metadata=TOML)
accept("metadata_empty", file(metadata(""), simple(FOUR), dense(4, 2)), [vocab(FOUR), matrix(4, 2)], metadata="")
accept("all", file(metadata(TOML), bucket(FOUR, 1), dense(6, 2), norms(4)),
       [vocab(FOUR), matrix(6, 2), norm_tensor(4)], chunks=[5, 3, 2, 6], metadata=TOML, buckets=2, words=4)
for i in range(4):  # every length of the padding
    words = ["x" * (i + 1), "y"]
    accept("padding_%d" % i, file(simple(words), dense(2, 2), norms(2)), [vocab(words), matrix(2, 2), norm_tensor(2)])
accept("empty", file(simple([]), dense(0, 5)), [vocab([]), matrix(0, 5)], words=0)
accept("no_columns", file(simple(FOUR), dense(4, 0)), [vocab(FOUR), matrix(4, 0)])
odd = ["New York", "", "zee\0n", "Tübingen", "实验", "\U0001F600", "a\nb", " "]
accept("odd_words", file(simple(odd), dense(8, 1)), [vocab(odd), matrix(8, 1)], words=8)
accept("long_word", file(simple(["ä" * 20000, "b"]), dense(2, 1)), [vocab(["ä" * 20000, "b"]), matrix(2, 1)])
accept("twice", file(simple(["a", "b", "a"]), dense(3, 1)), [vocab(["a", "b", "a"]), matrix(3, 1)])
many = [("w%d" % i) * (i % 3) for i in range(2500)]  # more than the distance of two marks, with empty words
accept("many", file(simple(many), dense(2500, 1, data=f32(*range(2500)))),
       [vocab(many), array("embeddings", F32, [2500, 1], f32(*range(2500)))])
many_grams = [("g%d" % i, i % 1100) for i in range(2100)]
accept("many_ngrams", file(explicit(["x"], many_grams), dense(1101, 1)),
       [vocab(["x"])] + ngrams(many_grams) + [matrix(1101, 1)], buckets=1100)
shared = [("ab", 0), ("bc", 1), ("cd", 0), ("de", 1), ("ef", 2)]
accept("explicit_shared", file(explicit(FOUR, shared), dense(7, 2)),
       [vocab(FOUR)] + ngrams(shared) + [matrix(7, 2)], buckets=3)
accept("explicit_no_ngrams", file(explicit(FOUR, []), dense(4, 2)), [vocab(FOUR)] + ngrams([]) + [matrix(4, 2)],
       buckets=0)
unordered = [("ab", 2), ("bc", 0), ("cd", 1)]
accept("explicit_unordered", file(explicit(FOUR, unordered), dense(7, 2)),
       [vocab(FOUR)] + ngrams(unordered) + [matrix(7, 2)], 1)
gaps = [("ab", 7), ("bc", 2 ** 63), ("cd", 7), ("de", 0)]  # as the tool in Rust numbers them
accept("explicit_gaps", file(explicit(FOUR, gaps), dense(7, 2)),
       [vocab(FOUR)] + ngrams(gaps, [0, 1, 0, 2]) + [matrix(7, 2)], 1, buckets=3)
accept("explicit_python", file(explicit(FOUR, GRAMS, length=-24), dense(7, 2), norms(4)),
       [vocab(FOUR)] + ngrams(GRAMS) + [matrix(7, 2), norm_tensor(4)], 1, chunks=[8, 2, 6])
accept("bucket_one", file(bucket(FOUR, 0), dense(5, 1)), [vocab(FOUR), matrix(5, 1)], 1, buckets=1)
accept("floret_markers", file(floret(3, bow="", eow="</w>"), dense(3, 2)), [matrix(3, 2)], bow="", eow="</w>")
accept("norms_unlisted", file(simple(FOUR), dense(4, 2), norms(4), ids=[1, 2]),
       [vocab(FOUR), matrix(4, 2), norm_tensor(4)], 1, chunks=[1, 2, 6])
accept("quantized_no_rows", file(simple([]), PQ(0, 2, 4).chunk()), [vocab([]), {
    **pq_tensor(PQ(0)), "attrs": {"finalfusion.subquantizers": 2}}])
accept("quantized_256", file(simple(["a"]), PQ(1, 1, 1, 256).chunk()), [vocab(["a"]), pq_tensor(PQ(1, 1, 1, 256))])
q = PQ(4, projection=True, norms=True)
accept("quantized_flags", file(simple(FOUR), q.chunk(flags=[2, 0xFFFFFFFF])), [vocab(FOUR), pq_tensor(q)], 1)
accept("quantized_swapped", file(simple(FOUR), q.chunk(types=(F32, U8))), [vocab(FOUR), pq_tensor(q)], 1)
# The data are aligned without padding, from a writer that followed the text of the document.
aligned = ["abc"]
assert (12 + 8 + 12 + 8 + 4 + 3 + 12 + 16) % 4 == 3
accept("no_padding", file(simple(["abcd"]), dense(1, 2, pad=0)), [vocab(["abcd"]), matrix(1, 2)], 1)
later = unknown()
accept("later_chunks", file(later, metadata(TOML), unknown(10, b""), simple(FOUR), unknown(0xFFFFFFFF, b"xy"),
                            dense(4, 1), unknown(), norms(4), unknown(99, b"end")),
       [vocab(FOUR), matrix(4, 1), norm_tensor(4)], 5, chunks=[4711, 5, 10, 1, 0xFFFFFFFF, 2, 4711, 6, 99])
accept("later_unlisted", file(simple(FOUR), dense(4, 1), unknown(), ids=[1, 2]), [vocab(FOUR), matrix(4, 1)], 1)
accept("no_matrix", file(metadata(TOML), simple(FOUR)), [vocab(FOUR)], 1)
accept("no_vocab", file(metadata(TOML), dense(2, 2), norms(2)), [matrix(2, 2), norm_tensor(2)], 1)
ours = '[tenfold]\nattrs = "{\\"attrs\\":{\\"answer\\":{\\"$u64\\":42}},\\"tensors\\":{\\"norms\\":{\\"of\\":\\"words\\"}}}"\n'
with_attrs = norm_tensor(1)
with_attrs["attrs"] = {"of": "words"}
accept("attributes", file(metadata(TOML + "\n" + ours), simple(["a"]), dense(1, 1), norms(1)),
       [vocab(["a"]), matrix(1, 1), with_attrs], metadata=TOML)
valid["attributes.fifu"][1]["attrs"]["answer"] = 42
accept("attributes_stale", file(metadata(ours)), [], 1)
accept("attributes_alone", file(metadata('[tenfold]\nattrs = "{\\"attrs\\":{\\"a\\":null}}"\n')), [])
changed = ours.replace('"{', '"(')
accept("attributes_changed", file(metadata(changed), simple(["a"]), dense(1, 1)), [vocab(["a"]), matrix(1, 1)],
       metadata=changed)

# Several matrices in a file, as the document foresees them for a later version. Each has a group; a group without
# a vocabulary uses the one before.
def group(number, *tensors, **attrs):
    named = [{**t, "name": "%d/%s" % (number, t["name"])} for t in tensors]
    if attrs:
        named[-1]["attrs"] = {"finalfusion." + key: value for key, value in attrs.items()}
    return named


accept("groups_storages", file(simple(FOUR), dense(4, 2), dense(4, 3), norms(4), PQ(4).chunk()),
       [vocab(FOUR), matrix(4, 2)] + group(2, matrix(4, 3)) + group(2, norm_tensor(4)) + group(3, pq_tensor(PQ(4))), 1,
       chunks=[1, 2, 2, 6, 4], vocab="simple", words=4)
TWO = ["x", "yy"]
accept("groups_pairs", file(metadata(TOML), bucket(FOUR), dense(8, 2), norms(4), metadata("b = 2\n"), simple(TWO),
                            dense(2, 3), metadata(""), explicit(FOUR, GRAMS), dense(7, 1), fasttext(TWO), dense(7, 2),
                            floret(), dense(4, 4), dense(4, 5)),
       [vocab(FOUR), matrix(8, 2), norm_tensor(4)] +
       group(2, vocab(TWO), matrix(2, 3), metadata="b = 2\n") +
       group(3, vocab(FOUR), *ngrams(GRAMS), matrix(7, 1), metadata="", vocab="explicit", min_n=2, max_n=3, buckets=3) +
       group(4, vocab(TWO), matrix(7, 2), vocab="fasttext", min_n=3, max_n=6, buckets=5) +
       group(5, matrix(4, 4), vocab="floret", min_n=3, max_n=6, buckets=4, hashes=3, seed=42, bow="[", eow="]") +
       group(6, matrix(4, 5)), 1,
       chunks=[5, 3, 2, 6, 5, 1, 2, 5, 8, 2, 7, 2, 9, 2, 2], vocab="bucket", words=4, metadata=TOML)
accept("groups_later_chunks", file(simple(FOUR), dense(4, 2), unknown(), unknown(10, b"ab"), simple(TWO), unknown(11, b""),
                                   dense(2, 2), unknown(12, b"c"), norms(2), unknown(13, b"d"), dense(2, 1)),
       [vocab(FOUR), matrix(4, 2)] + group(2, vocab(TWO), matrix(2, 2)) + group(2, norm_tensor(2)) +
       group(3, matrix(2, 1)), 6)
for i in range(4):  # every length of the second padding
    words = ["x" * (i + 1)]
    accept("groups_padding_%d" % i, file(simple(FOUR), dense(4, 2), simple(words), dense(1, 1)),
           [vocab(FOUR), matrix(4, 2)] + group(2, vocab(words), matrix(1, 1)), 1)
accept("groups_unlisted_norms", file(simple(FOUR), dense(4, 2), dense(4, 1), norms(4), ids=[1, 2, 2]),
       [vocab(FOUR), matrix(4, 2)] + group(2, matrix(4, 1)) + group(2, norm_tensor(4)), 2)
accept("groups_python", file(simple(FOUR), dense(4, 2), explicit(FOUR, GRAMS, length=-24), dense(7, 2)),
       [vocab(FOUR), matrix(4, 2)] + group(2, vocab(FOUR), *ngrams(GRAMS), matrix(7, 2)), 2)
thirty = [c for i in range(30) for c in (simple(["w%d" % i]), dense(1, 1, data=f32(i)))]
accept("groups_thirty", file(*thirty),
       [vocab(["w0"]), array("embeddings", F32, [1, 1], f32(0))] +
       [t for i in range(1, 30) for t in group(i + 1, vocab(["w%d" % i]), array("embeddings", F32, [1, 1], f32(i)))], 1)
accept("seed_groups", file(bucket(FOUR, seed=True), seed_dense(8, 3), seed_dense(8, 2, 11), simple(["q"], 0),
                           seed_dense(1, 3, 1), PQ(1).chunk(id=1, literal=True)),
       [vocab(FOUR), matrix(8, 3)] + group(2, matrix(8, 2, 11)) + group(3, vocab(["q"]), matrix(1, 3, 1)) +
       group(4, pq_tensor(PQ(1))), 1, "seed", chunks=[3, 1, 1, 0, 1, 1])

# ================================================================ valid: the document's dialect
# The limits of integers of 16 bytes, of both signs.
LIMITS = [0, 1, -1, 2 ** 64, 2 ** 64 - 1, -2 ** 64, 2 ** 127 - 1, -2 ** 127]
WIDE = b"".join((v % 2 ** 128).to_bytes(16, "little") for v in LIMITS)
for kind in (8, 9):
    accept("seed_%s_limits" % TYPES[kind], file(simple(FOUR, 0), seed_dense(4, 2, kind, data=WIDE)),
           [vocab(FOUR), array("embeddings", kind, [4, 2], WIDE)], dialect="seed")
for kind, name in enumerate(TYPES):
    accept("seed_" + name, file(simple(FOUR, 0), seed_dense(4, 3, kind)), [vocab(FOUR), matrix(4, 3, kind)],
           dialect="seed", chunks=[0, 1], vocab="simple")
for i in range(8):  # every length of the padding, and none
    words = ["x" * (i + 1), "y"]
    accept("seed_padding_%d" % i, file(simple(words, 0), seed_dense(2, 2, 11)), [vocab(words), matrix(2, 2, 11)],
           dialect="seed")
accept("seed_tools_padding", file(simple(["abcd"], 0), seed_dense(1, 2, literal=False)),
       [vocab(["abcd"]), matrix(1, 2)], dialect="seed")
accept("seed_bucket", file(metadata(TOML), bucket(FOUR, seed=True), seed_dense(8, 2)), [vocab(FOUR), matrix(8, 2)],
       dialect="seed", chunks=[5, 3, 1], vocab="bucket", buckets=4, min_n=3, max_n=6, metadata=TOML)
accept("seed_bucket_alone", file(bucket(FOUR, seed=True)), [vocab(FOUR)], dialect="seed")
accept("seed_bucket_later", file(bucket(FOUR, seed=True), unknown(), seed_dense(8, 2)), [vocab(FOUR), matrix(8, 2)],
       1, dialect="seed")
q = PQ(4, projection=True, norms=True)
accept("seed_quantized", file(simple(FOUR, 0), q.chunk(1, literal=True)), [vocab(FOUR), pq_tensor(q)], dialect="seed")
accept("seed_quantized_aligned", file(simple(FOUR + ["x"], 0), PQ(5).chunk(1, literal=True)),
       [vocab(FOUR + ["x"]), pq_tensor(PQ(5))], dialect="seed")
accept("seed_norms", file(simple(FOUR, 0), seed_dense(4, 1), norms(4, literal=True)),
       [vocab(FOUR), matrix(4, 1), norm_tensor(4)], dialect="seed", chunks=[0, 1, 6])
accept("seed_fasttext", file(fasttext(FOUR), seed_dense(9, 1)), [vocab(FOUR), matrix(9, 1)], dialect="seed",
       chunks=[7, 1], vocab="fasttext")
accept("seed_empty", file(simple([], 0), seed_dense(0, 0)), [vocab([]), matrix(0, 0)], dialect="seed")

# ================================================================ valid: before the first release
R2V = {"magic": b"R2V"}
for n in (1, 2, 3, 4):
    words = ["x" * n, "y"]
    plain = file(simple(words), dense(2, 2), **R2V)
    accept("r2v_counted_%d.r2v" % n, plain, [vocab(words), matrix(2, 2)], dialect="r2v", chunks=[1, 2])
    pad = dense(2, 2).padding(len(file(simple(words), **R2V)) + 4)
    accept("r2v_uncounted_%d.r2v" % n, file(simple(words), dense(2, 2, length=-pad), **R2V),
           [vocab(words), matrix(2, 2)], dialect="r2v")
accept("r2v_unpadded.r2v", file(simple(FOUR), dense(4, 2, pad=0), **R2V), [vocab(FOUR), matrix(4, 2)], dialect="r2v")
q = PQ(4, projection=True)
accept("r2v_quantized.r2v", file(simple(FOUR), q.chunk(), **R2V), [vocab(FOUR), pq_tensor(q)], dialect="r2v")
early = q.chunk(flags=[1], types=(U8, F32))
accept("r2v_quantized_early.r2v", file(simple(FOUR), early, **R2V), [vocab(FOUR), pq_tensor(q)], dialect="r2v")

# ================================================================ valid when lenient
broken = ["ok", b"zee\xc3n", "fine"]
accept("lenient_utf8", file(simple(broken), dense(3, 1)), [vocab(broken), matrix(3, 1)], 1, lenient=True)
accept("lenient_rows", file(simple(FOUR), dense(5, 1)), [vocab(FOUR), matrix(5, 1)], 1, lenient=True)
accept("lenient_norms", file(simple(FOUR), dense(4, 1), norms(3)), [vocab(FOUR), matrix(4, 1), norm_tensor(3)], 1,
       lenient=True)
accept("lenient_f64", file(simple(FOUR), dense(4, 1, 11)), [vocab(FOUR), matrix(4, 1, 11)], 1, lenient=True)
accept("lenient_trailing", file(simple(FOUR), dense(4, 1), tail=b"garbage"), [vocab(FOUR), matrix(4, 1)], 1,
       lenient=True)
accept("lenient_no_chunk", file(simple(FOUR), dense(4, 1), tail=b"more garbage than that"),
       [vocab(FOUR), matrix(4, 1)], 1, lenient=True)
accept("lenient_length", file(simple(FOUR, length=3), dense(4, 1, length=-1)), [vocab(FOUR), matrix(4, 1)], 2,
       lenient=True)

# ================================================================ rejected: the header
base = file(simple(FOUR), dense(4, 2), norms(4))
refuse("magic_only", b"FiFu", SHORT, 4, "8 bytes are missing")
refuse("header_cut", base[:10], SHORT, 10, "2 bytes are missing")
refuse("ids_cut", base[:20], SHORT, 20, "4 bytes are missing")
refuse("version_1", file(simple(FOUR), dense(4, 2), version=1), UNSUPPORTED, 4, "version 1")
refuse("version_max", file(simple(FOUR), dense(4, 2), version=0xFFFFFFFF), UNSUPPORTED, 4, "version 4294967295")
refuse("chunks_none", file(), BAD, 8, "no chunks")
refuse("chunks_max", file(simple(FOUR), n=0xFFFFFFFF), LIMIT, 8, "4294967295 chunks")
refuse("chunks_beyond", file(simple(FOUR), n=4096), SHORT, None, "are missing")
refuse("listed_not_there", file(simple(FOUR), dense(4, 1), ids=[1, 2, 6]), SHORT, None, "lists 3 chunks", "opens")
refuse("listed_otherwise", file(simple(FOUR), dense(4, 1), ids=[1, 4]), BAD, None, "lists chunk 4", "opens")
refuse("metadata_unlisted_first", file(metadata(TOML), simple(FOUR), dense(4, 1), ids=[1, 2]), BAD, 20,
       "chunk 5 where", "opens")
refuse("frame_cut", file(simple(FOUR), dense(4, 1), tail=u32(6)), SHORT, None, "8 bytes are missing", "opens")
refuse("length_wraps", file(Chunk(SIMPLE, b"", length=-1), ids=[1]), BAD, 20, "beyond 2^64")
refuse("metadata_cut", file(metadata(TOML))[:-3], SHORT, None, "3 bytes are missing")
refuse("metadata_utf8", file(metadata(b"a = \"\xff\"")), BAD, 16 + 12 + 5, "not UTF-8", "opens")
refuse("metadata_huge", file(Chunk(METADATA, b"", length=1 << 62), ids=[5]), SHORT, None, "are missing")

# ---------------------------------------------------------------- order
refuse("order_storage_first", file(dense(4, 2), simple(FOUR)), BAD, None, "comes after the matrix")
refuse("order_norms_first", file(norms(4), simple(FOUR), dense(4, 2)), BAD, None, "comes after the norms")
refuse("order_metadata_last", file(simple(FOUR), dense(4, 2), metadata(TOML)), BAD, None, "metadata (chunk 5) comes after")
refuse("two_vocabs", file(simple(FOUR), bucket(FOUR), dense(4, 2)), BAD, None, "a second vocabulary")
refuse("two_simple", file(simple(FOUR), simple(FOUR)), BAD, None, "a second vocabulary")
refuse("two_matrices", file(dense(4, 2), dense(4, 2)), BAD, None, "a second matrix")
refuse("two_norms", file(simple(FOUR), dense(4, 2), norms(4), norms(4)), BAD, None, "a second norms")
refuse("two_metadata", file(metadata(TOML), metadata(TOML), simple(FOUR), dense(4, 2)), BAD, None, "a second metadata")
refuse("seed_mixed", file(simple(FOUR, 0), dense(4, 2)), BAD, None, "of the seed dialect, but the matrix")
refuse("r2v_two_matrices", file(simple(FOUR), dense(4, 2), dense(4, 2), **R2V), BAD, None, "a second matrix")

# ---------------------------------------------------------------- several matrices
pair = [simple(FOUR), dense(4, 2)]
refuse("groups_no_matrix", file(*pair, simple(FOUR)), BAD, None, "no matrix follows vocabulary 2", "opens")
refuse("groups_two_vocabs", file(*pair, simple(FOUR), bucket(FOUR), dense(8, 1)), BAD, None, "a second vocabulary")
refuse("groups_two_metadata", file(*pair, metadata(TOML), metadata(TOML), *pair), BAD, None, "a second metadata")
refuse("groups_metadata_last", file(*pair, dense(4, 1), metadata(TOML)), BAD, None, "no other matrix follows")
refuse("groups_metadata_after_vocab", file(*pair, simple(FOUR), metadata(TOML), dense(4, 2)), BAD, None, "comes after the vocabulary")
refuse("groups_two_norms", file(*pair, dense(4, 1), norms(4), norms(4)), BAD, None, "a second norms")
refuse("groups_rows", file(*pair, dense(5, 2)), BAD, None, "the matrix has 5 rows; 4 words", "opens")
refuse("groups_rows_own", file(bucket(FOUR), dense(8, 2), simple(FOUR), dense(8, 2)), BAD, None, "4 words and 0 rows", "opens")
refuse("groups_norms", file(*pair, simple(["a"]), dense(1, 2), norms(4)), BAD, None, "4 norms for 1 words", "opens")
refuse("groups_mixed", file(*pair, simple(FOUR, 0), seed_dense(4, 2)), BAD, None, "chunk 0 has an id of the seed dialect")
refuse("groups_mixed_storage", file(*pair, bucket(FOUR), seed_dense(8, 2)), BAD, None, "a second vocabulary")
refuse("groups_mixed_back", file(simple(FOUR, 0), seed_dense(4, 2), dense(4, 2)), BAD, None, "but the matrix (chunk 2)")
refuse("groups_cut", file(*pair, dense(4, 2))[:-1], SHORT, None, "1 byte is missing", "opens")
refuse("groups_listed", file(*pair, dense(4, 2), ids=[1, 2]), BAD, None, "does not list chunk 2", "opens")
refuse("groups_padding", file(*pair, dense(4, 2, fill=1)), BAD, None, "padding is not zero", "opens")
refuse("groups_many", file(*[c for i in range(2049) for c in (simple(["a"]), dense(1, 1))]), LIMIT, 8, "4098 chunks")
refuse("r2v_seed_vocab", file(simple(FOUR, 0), dense(4, 2), **R2V), BAD, 19, "an R2V file")
refuse("trailing", file(simple(FOUR), dense(4, 1), tail=b"x"), SHORT, None, "11 bytes are missing", "opens")
refuse("trailing_frame", file(simple(FOUR), dense(4, 1), tail=b"y" * 40), BAD, None, "40 bytes after the last chunk",
       "opens")
refuse("later_cut", file(unknown(10, b"abc"), simple(FOUR))[:33], SHORT, 33, "2 bytes are missing")

# ---------------------------------------------------------------- words
at = 20 + 12  # of the first vocabulary's fields in a file with two chunks


def vocab_file(*more, **change):
    return file(simple(FOUR, **change), dense(4, 2), *more)


refuse("words_short", file(Chunk(SIMPLE, b"\0" * 7), dense(4, 2)), BAD, 24, "its fields alone need 8")
for name, count in (("max", 2 ** 64 - 1), ("2_63", 2 ** 63), ("2_62", 2 ** 62), ("2_53", 2 ** 53), ("2_32", 2 ** 32),
                    ("2_31", 2 ** 31), ("many", 9)):
    refuse("words_" + name, file(Chunk(SIMPLE, u64(count), simple(FOUR).data), dense(4, 2)), BAD, at,
           "%d words do not fit" % count)
refuse("words_more", file(Chunk(SIMPLE, u64(5), simple(FOUR).data), dense(5, 2)), BAD, None, "beyond the end")
refuse("words_fewer", file(Chunk(SIMPLE, u64(3), simple(FOUR).data), dense(3, 2)), BAD, 24, "has a length of 35 bytes")
for name, n in (("max", 2 ** 32 - 1), ("2_31", 2 ** 31), ("beyond", 24)):
    refuse("word_" + name, file(Chunk(SIMPLE, u64(4), u32(n) + simple(FOUR).data[4:]), dense(4, 2)), BAD, at + 8,
           "word 1 of 4 has a length of %d bytes" % n)
refuse("word_last_beyond", file(Chunk(SIMPLE, u64(2), text("ab") + u32(3) + b"cd"), dense(2, 2)), BAD, at + 14,
       "word 2 of 2 has a length of 3 bytes")
for name, bad in (("lead", b"\xff"), ("continuation", b"\x80a"), ("overlong", b"\xc0\xaf"), ("surrogate", b"\xed\xa0\x80"),
                  ("beyond", b"\xf4\x90\x80\x80"), ("cut", "ü".encode()[:1])):
    refuse("utf8_" + name, file(simple(["a", b"b" + bad]), dense(2, 1)), BAD, at + 8 + 5 + 4 + 1, "not UTF-8", "opens")
refuse("utf8_long", file(simple([b"a" * 70000 + b"\xff"]), dense(1, 1)), BAD, at + 8 + 4, "not UTF-8", "opens")
refuse("vocab_length_short", vocab_file(length=-1), BAD, None, "has a length of", "opens")
refuse("vocab_length_long", vocab_file(length=1), BAD, 24, "contents have", "opens")
refuse("vocab_length_zero", file(Chunk(SIMPLE, b""), dense(4, 2)), BAD, 24, "its fields alone need 8")
refuse("vocab_length_beyond", vocab_file(length=1 << 40), SHORT, None, "are missing")
refuse("vocab_cut", vocab_file()[:50], SHORT, 50, "are missing")

# ---------------------------------------------------------------- subwords
refuse("bucket_short", file(Chunk(BUCKET, b"\0" * 19), dense(4, 2)), BAD, 24, "its fields alone need 20")
refuse("bucket_64", file(bucket(FOUR, 64), dense(4, 2)), BAD, at + 16, "2^64 buckets are too many")
refuse("bucket_max", file(bucket(FOUR, 2 ** 32 - 1), dense(4, 2)), BAD, at + 16, "2^4294967295 buckets are too many")
refuse("bucket_63", file(bucket(FOUR, 63), dense(4, 2)), BAD, None, "9223372036854775812", "opens")
refuse("bucket_min_0", file(bucket(FOUR, 2, 0, 6), dense(8, 2)), BAD, at + 8, "n-grams have 0 to 6", "opens")
refuse("bucket_min_above", file(bucket(FOUR, 2, 7, 6), dense(8, 2)), BAD, at + 8, "n-grams have 7 to 6", "opens")
refuse("bucket_rows", file(bucket(FOUR, 2), dense(4, 2)), BAD, None, "4 words and 4 rows for subwords need 8", "opens")
refuse("bucket_seed_order", file(bucket(FOUR, seed=True), dense(8, 2)), BAD, None, "do not fit")
refuse("bucket_tools_order", file(bucket(FOUR), seed_dense(8, 2)), BAD, None, "")
refuse("fasttext_none", file(fasttext(FOUR, 0), dense(4, 2)), BAD, at + 16, "has no buckets")
refuse("fasttext_max", file(fasttext(FOUR, 2 ** 32 - 1), dense(4, 2)), BAD, None, "4294967299", "opens")
refuse("explicit_short", file(Chunk(EXPLICIT, b"\0" * 23), dense(4, 2)), BAD, 24, "its fields alone need 24")
refuse("explicit_rows", file(explicit(FOUR, GRAMS), dense(8, 2)), BAD, None, "4 words and 3 rows", "opens")
refuse("explicit_min_0", file(explicit(FOUR, GRAMS, 0), dense(7, 2)), BAD, at + 16, "n-grams have 0 to 3", "opens")
for name, count in (("max", 2 ** 64 - 1), ("2_61", 2 ** 61), ("2_32", 2 ** 32)):
    refuse("ngrams_" + name, file(Chunk(EXPLICIT, u64(4, count) + u32(2, 3), explicit(FOUR, GRAMS).data), dense(7, 2)),
           BAD, at + 8, "%d n-grams do not fit" % count)
refuse("ngram_beyond", file(explicit([], []), dense(0, 2), ids=[8, 2]).replace(
    u64(0, 0) + u32(2, 3), u64(0, 1) + u32(2, 3)), BAD, None, "")
refuse("ngram_utf8", file(explicit([], [(b"\xff", 0)]), dense(1, 2)), BAD, at + 24 + 4, "n-gram 1 of 1 is not UTF-8",
       "opens")
refuse("explicit_length", file(explicit(FOUR, GRAMS, length=-8), dense(7, 2)), BAD, 24, "has a length of 86 bytes", "opens")
refuse("explicit_cut", file(explicit(FOUR, GRAMS))[:-1], SHORT, None, "1 byte is missing")
refuse("floret_short", file(Chunk(FLORET, b"\0" * 31), dense(4, 2)), BAD, 24, "its fields alone need 32")
refuse("floret_no_buckets", file(floret(0), dense(0, 2)), BAD, at + 8, "has no buckets")
refuse("floret_hashes_0", file(floret(hashes=0), dense(4, 2)), BAD, at + 16, "0 hashes")
refuse("floret_hashes_5", file(floret(hashes=5), dense(4, 2)), BAD, at + 16, "5 hashes")
refuse("floret_min", file(floret(low=9), dense(4, 2)), BAD, at, "n-grams have 9 to 6", "opens")
refuse("floret_rows", file(floret(), dense(5, 2)), BAD, None, "0 words and 4 rows", "opens")
refuse("floret_marker", file(Chunk(FLORET, floret().fields[:24] + u32(99) + b"[" + text("]")), dense(4, 2)), BAD, at + 24,
       "a marker of 99 bytes")
refuse("floret_marker_max", file(Chunk(FLORET, floret().fields[:24] + u32(2 ** 32 - 1) + b"[" + text("]")), dense(4, 2)),
       BAD, at + 24, "a marker of 4294967295 bytes")
refuse("floret_utf8", file(floret(bow=b"\xff"), dense(4, 2)), BAD, at + 28, "beginning is not UTF-8", "opens")
refuse("floret_length", file(floret(length=1), dense(4, 2)), BAD, 24, "has a length of 35 bytes", "opens")

# ---------------------------------------------------------------- matrices
start = 20 + 12 + 8 + len(simple(FOUR).data)  # of the second chunk's frame


def dense_file(rows, columns, kind=F32, data=b"", length=0, **more):
    return file(simple(FOUR), Chunk(DENSE, u64(rows) + u32(columns, kind), data, 4, length=length, **more))


refuse("dense_short", file(simple(FOUR), Chunk(DENSE, b"\0" * 15)), BAD, start + 4, "its fields alone need 16")
refuse("dense_type_12", dense_file(4, 2, 12, f32(*range(8))), BAD, start + 24, "12, is unknown")
refuse("dense_type_max", dense_file(4, 2, 2 ** 32 - 1, f32(*range(8))), BAD, start + 24, "4294967295, is unknown")
refuse("dense_f64", dense_file(4, 1, 11, bytes(32)), UNSUPPORTED, start + 24, "read only f32", "opens")
refuse("dense_i128", dense_file(4, 1, 8, bytes(64)), UNSUPPORTED, start + 24, "is i128", "opens")
refuse("dense_rows_fewer", dense_file(3, 2, data=f32(*range(6))), BAD, start + 12, "the matrix has 3 rows", "opens")
for name, rows, columns in (("max", 2 ** 64 - 1, 2 ** 32 - 1), ("wraps_to_0", 2 ** 62, 4), ("wraps_small", 2 ** 61 + 1, 8),
                            ("2_63", 2 ** 63, 1), ("2_62", 2 ** 62 + 1, 2 ** 30)):
    refuse("dense_" + name, dense_file(rows, columns, data=f32(1, 2)), BAD, start + 12, "exceeds 2^64 bytes")
for name, rows, columns in (("2_53", 2 ** 53, 1), ("2_32", 2 ** 32, 1), ("columns_max", 4, 2 ** 32 - 1)):
    refuse("dense_" + name, dense_file(rows, columns, data=f32(1, 2)), BAD, start + 4,
           "in bytes is %d," % (16 + 8 + dense(1, 1).padding(start)), "opens")
refuse("dense_length_short", dense_file(4, 2, data=f32(*range(8)), length=-4), BAD, start + 4, "in bytes is", "opens")
refuse("dense_length_long", dense_file(4, 2, data=f32(*range(8)), length=4), BAD, start + 4, "in bytes is", "opens")
refuse("dense_lies", dense_file(4, 2 ** 20, length=4 * 4 * 2 ** 20), SHORT, None, "are missing", "opens")
refuse("dense_padding", dense_file(4, 2, data=f32(*range(8)), fill=1), BAD, start + 28, "padding is not zero", "opens")
refuse("dense_padding_5", dense_file(4, 2, data=f32(*range(8)), pad=5), BAD, start + 4, "in bytes is", "opens")
refuse("dense_cut", file(simple(FOUR), dense(4, 2))[:-1], SHORT, None, "1 byte is missing", "opens")
refuse("dense_fields_cut", file(simple(FOUR), dense(4, 2))[:start + 20], SHORT, start + 20, "are missing")
refuse("norms_rows", file(simple(FOUR), dense(4, 2), norms(5)), BAD, None, "5 norms for 4 words", "opens")
refuse("norms_of_subwords", file(bucket(FOUR), dense(8, 2), norms(8)), BAD, None, "8 norms for 4 words", "opens")
refuse("norms_cut", base[:-1], SHORT, len(base) - 1, "1 byte is missing", "opens")
refuse("norms_short", file(simple(FOUR), dense(4, 2), Chunk(NORMS, b"\0" * 11)), BAD, None, "its fields alone need 12")
refuse("norms_f64", file(simple(FOUR), dense(4, 2), Chunk(NORMS, u64(4) + u32(11), bytes(32), 4)), UNSUPPORTED, None,
       "is 11; it must be that of f32")
refuse("norms_type", file(simple(FOUR), dense(4, 2), Chunk(NORMS, u64(4) + u32(77), bytes(32), 4)), BAD, None,
       "is 77; it must be that of f32")
refuse("norms_max", file(simple(FOUR), dense(4, 2), Chunk(NORMS, u64(2 ** 62) + u32(F32), b"", 4)), BAD, None,
       "exceeds 2^64 bytes")
refuse("norms_padding", file(simple(FOUR), dense(4, 2), norms(4, fill=9)), BAD, None, "padding is not zero", "opens")
refuse("seed_neither", file(simple(FOUR, 0), seed_dense(4, 3, length=100), tail=bytes(100)), BAD, start + 4, "neither a dense")
refuse("seed_type", file(simple(FOUR, 0), Chunk(1, u64(4) + u32(2, 12), bytes(32), 4, literal=True)), BAD, start + 4,
       "neither a dense")
refuse("seed_rows", file(simple(FOUR, 0), seed_dense(3, 2)), BAD, start + 12, "the matrix has 3 rows", "opens")

# ---------------------------------------------------------------- quantized
Q = PQ(4, 2, 4, 3, True, True)


def pq_file(**change):
    return file(simple(FOUR), Q.chunk(**change))


refuse("pq_short", file(simple(FOUR), Chunk(QUANTIZED, b"\0" * 35)), BAD, start + 4, "its fields alone need 36")
refuse("pq_pieces_0", pq_file(head=(0, 4, 3)), BAD, start + 20, "4 elements cannot be cut into 0 pieces")
refuse("pq_pieces_3", pq_file(head=(3, 4, 3)), BAD, start + 20, "4 elements cannot be cut into 3 pieces")
refuse("pq_columns_0", pq_file(head=(2, 0, 3)), BAD, start + 20, "0 elements cannot be cut into 2 pieces")
refuse("pq_centroids_0", pq_file(head=(2, 4, 0)), BAD, start + 28, "0 centroids")
refuse("pq_centroids_257", pq_file(head=(2, 4, 257)), BAD, start + 28, "257 centroids")
refuse("pq_centroids_max", pq_file(head=(2, 4, 2 ** 32 - 1)), BAD, start + 28, "4294967295 centroids")
refuse("pq_centroids_more", pq_file(head=(2, 4, 4)), BAD, start + 4, "in bytes is", "opens")
refuse("pq_rows_fewer", pq_file(rows=3), BAD, start + 4, "in bytes is", "opens")
refuse("pq_rows_max", pq_file(rows=2 ** 64 - 1), BAD, start + 12, "exceeds 2^64 bytes")
refuse("pq_rows_wrap", pq_file(rows=2 ** 63), BAD, start + 12, "exceeds 2^64 bytes")
refuse("pq_columns_max", pq_file(head=(1, 2 ** 32 - 1, 3)), BAD, None, "")
refuse("pq_rows_of_vocab", file(simple(FOUR[:3]), Q.chunk()), BAD, None, "the matrix has 4 rows", "opens")
refuse("pq_u16_codes", pq_file(types=(3, F32)), UNSUPPORTED, start + 40, "the types 3 and 10")
refuse("pq_f64", pq_file(types=(U8, 11)), UNSUPPORTED, start + 40, "the types 1 and 11")
refuse("pq_type_99", pq_file(types=(99, F32)), BAD, start + 40, "the types 99 and 10")
refuse("pq_both_u8", pq_file(types=(U8, U8)), UNSUPPORTED, start + 40, "the types 1 and 1")
refuse("pq_flags", pq_file(flags=[0, 1]), BAD, start + 4, "in bytes is", "opens")
refuse("pq_padding", pq_file(fill=3), BAD, start + 48, "padding is not zero", "opens")
refuse("pq_cut", pq_file()[:-1], SHORT, None, "1 byte is missing", "opens")
wrong = PQ(4, 2, 4, 3)
wrong.parts["codes"] = bytes([0, 1, 2, 3, 0, 0, 0, 0])
refuse("pq_code", file(simple(FOUR), wrong.chunk()), BAD, None, "code 3 is 3, but there are only 3 centroids", "opens")


def main():
    for kind, files in (("valid", valid), ("reject", reject)):
        folder = HERE / kind
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for name, (data, _) in files.items():
            (folder / name).write_bytes(data)
    expect = {kind: {name: want for name, (_, want) in files.items()}
              for kind, files in (("valid", valid), ("reject", reject))}
    (HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(len(valid), "valid,", len(reject), "rejected")


if __name__ == "__main__":
    main()
