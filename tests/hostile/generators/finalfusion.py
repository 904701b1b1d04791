# SPDX-License-Identifier: MIT
"""finalfusion: a header with the ids of chunks, then chunks of id, length and payload."""
import struct

from kit import *

FORMAT, EXTENSION = "finalfusion", "fifu"
WORDS = (b"one", b"two")
ROWS = struct.pack("<4f", 1, 2, 3, 4)


def q(*numbers, code="I"):
    return struct.pack(f"<{len(numbers)}{code}", *numbers)


def string(raw, n=None):
    return q(len(raw) if n is None else n) + raw


def simple(words=WORDS, n=None):
    return q(len(words) if n is None else n, code="Q") + b"".join(map(string, words))


def bucket(min_n=3, max_n=6, size=1, words=WORDS, n=None):
    return q(len(words) if n is None else n, code="Q") + q(min_n, max_n, size) + b"".join(map(string, words))


def explicit(ngrams=((b"<on", 0),), words=WORDS, min_n=3, max_n=6, n=None, n_words=None):
    return (q(len(words) if n_words is None else n_words, len(ngrams) if n is None else n, code="Q") + q(min_n, max_n)
            + b"".join(map(string, words)) + b"".join(string(g) + q(i, code="Q") for g, i in ngrams))


def floret(min_n=2, max_n=3, buckets=2, hashes=2, seed=42, bow=b"<", eow=b">"):
    return q(min_n, max_n) + q(buckets, code="Q") + q(hashes, seed) + string(bow) + string(eow)


def pad(at):
    return bytes(4 - at % 4)


class File:
    """Joins chunks; paddings are counted from the start of the file."""

    def __init__(self, ids=None, magic=b"FiFu", version=0, n=None):
        self.ids, self.magic, self.version, self.n, self.chunks = ids, magic, version, n, []

    def chunk(self, ident, payload, length=None):
        self.chunks.append((ident, payload, length))
        return self

    def dense(self, data=ROWS, rows=2, columns=2, kind=10, length=None):
        return self.chunk(2, lambda at: q(rows, code="Q") + q(columns, kind) + pad(at + 16) + data, length)

    def norms(self, data=ROWS[:8], n=2, kind=10):
        return self.chunk(6, lambda at: q(n, code="Q") + q(kind) + pad(at + 12) + data)

    def quantized(self, m=1, d=2, k=2, rows=2, codes=b"\0\1", projection=0, norms=0, kinds=(1, 10), data=ROWS):
        return self.chunk(4, lambda at: q(projection, norms, m, d, k) + q(rows, code="Q") + q(*kinds) + pad(at + 36) + data + codes)

    def build(self):
        ids = [c[0] for c in self.chunks] if self.ids is None else self.ids
        out = self.magic + q(self.version, len(ids) if self.n is None else self.n, *ids)
        for ident, payload, length in self.chunks:
            raw = payload(len(out) + 12) if callable(payload) else payload
            out += q(ident) + q(len(raw) if length is None else length, code="Q") + raw
        return out


def whole():
    return File().chunk(1, simple()).dense()


def make(c):
    good = File().chunk(5, b'a = "b"\n').chunk(1, simple()).dense().norms().build()
    wrong_things(c, good)
    c.accepted("P", "sound", good, 3, "a sound file")
    for at in sorted(set(list(range(1, 30)) + [32, 36, 39, 40, 47, 48, 52, 59, 60, 67, 68, 70, 74, 75, 81, 82, 86, 93, 94, 101, 102, 110,
                                             113, 115, 128, 130, 131, 142, 143, 150, 154, 158, 160, 163, 165])):
        if at < len(good) and good[:at] != good:
            c.rejected("A", f"cut_{at:03}", good[:at], SHORT, END, "", f"the first {at} of {len(good)} bytes")
    c.rejected("A", "long_by_1", good + b"\0", SHORT, len(good) + 1, "", "a byte behind the last chunk: it may begin another")
    headers(c)
    lengths(c)
    vocabularies(c)
    matrices(c)
    quantizers(c)


def headers(c):
    def bad(name, f, status, offset, what, letter="J"):
        c.rejected(letter, name, f.build(), status, offset, "", what)
    for version in (1, 255, (1 << 32) - 1):
        bad(f"version_{version}", File(version=version).chunk(1, simple()).dense(), UNSUPPORTED, 4, f"version {version}")
    bad("chunks_0", File(n=0, ids=[]).chunk(1, simple()).dense(), BAD, 8, "a header that lists nothing", "C")
    for label, n in (("2_31", 1 << 31), ("2_32_less_1", (1 << 32) - 1), ("2_24", 1 << 24)):
        bad(f"chunks_{label}", File(n=n, ids=[1, 2]).chunk(1, simple()).dense(), LIMIT, 8, f"a header that lists {n} chunks", "C")
    bad("chunk_missing", File(ids=[1, 2, 6]).chunk(1, simple()).dense(), SHORT, END, "a chunk that is listed and not there", "P")
    bad("chunks_exchanged", File(ids=[2, 1]).chunk(1, simple()).dense(), BAD, 20, "a list in another order than the chunks", "P")
    bad("two_vocabularies", File().chunk(1, simple()).chunk(1, simple()).dense(), BAD, 24 + 12 + len(simple()), "two vocabularies", "H")
    groups(c, bad)
    bad("matrix_first", File().dense().chunk(1, simple()), BAD, len(File(ids=[1, 2]).dense().build()), "the matrix before the words", "H")
    c.accepted("P", "norms_not_listed", File(ids=[1, 2]).chunk(1, simple()).dense().norms().build(), 3, "norms that the header forgets, as 0.7.1 did", warnings=None)
    c.accepted("I", "unknown_chunk", whole().chunk(77, b"PK\5\6").build(), 2, "a chunk that nobody knows, kept", warnings=None)
    c.rejected("H", "metadata_bad_utf8", File().chunk(5, b"\xff\xfe").chunk(1, simple()).dense().build(), BAD, 24 + 12, "UTF-8", "metadata that are not UTF-8")
    c.accepted("H", "metadata_ansi", File().chunk(5, b'a = "\\u001b[2J"').chunk(1, simple()).dense().build(), 2, "escapes for a terminal in metadata", warnings=None)
    c.accepted("H", "metadata_not_toml", File().chunk(5, b"{not: toml").chunk(1, simple()).dense().build(), 2, "metadata that are no TOML, passed on as they are", warnings=None)


def groups(c, bad):
    """Several matrices in a file: each has a group."""
    pairs = File()
    for i in range(300):
        pairs.chunk(1, simple((b"w%d" % i,))).dense(ROWS[:8], 1)
    c.accepted("P", "two_matrices", whole().dense().build(), 3, "two matrices for one vocabulary", warnings=1)
    c.accepted("F", "groups_many", pairs.build(), 600, "300 vocabularies, each with a matrix", warnings=1)
    table = '{"tensors":{%s}}' % ",".join('"%d/embeddings":{"a":1}' % i for i in range(2, 5000))
    toml = '[tenfold]\nattrs = "%s"\n' % table.replace('"', '\\"')
    pairs = File().chunk(5, toml.encode()).chunk(1, simple())
    for i in range(499):
        pairs.dense()
    c.accepted("F", "groups_table", pairs.build(), 500, "500 matrices, and attributes for 5,000", warnings=None)
    late = whole().chunk(1, simple())
    bad("groups_no_matrix", late, BAD, len(late.build()), "a last vocabulary without a matrix", "H")
    bad("groups_rows", whole().dense(ROWS * 2, 4), BAD, len(File(ids=[1, 2, 2]).chunk(1, simple()).dense().build()) + 12, "a second matrix with other rows", "H")
    bad("groups_dialects", whole().chunk(0, simple()).dense(), BAD, len(File(ids=[1, 2, 0, 2]).chunk(1, simple()).dense().build()), "a second vocabulary of the other dialect", "H")
    bad("groups_norms", whole().dense().norms().norms(), BAD, len(File(ids=[1, 2, 2, 6, 6]).chunk(1, simple()).dense().dense().norms().build()), "norms twice", "H")
    bad("groups_metadata", whole().chunk(5, b"a = 1"), BAD, END, "metadata after the last matrix", "H")


def lengths(c):
    matrix = len(File(ids=[1, 2]).chunk(1, simple()).build())  # the length of the chunk follows from its fields, shape and type
    norms = len(whole().build()) + 4
    def size_at(chunk, n, each):
        return chunk + 12 if n * each >= 1 << 64 else chunk + 4
    for label, n in {**HUGE, "0": 0, "1_more": 23, "1_less": 21, "2_40": 1 << 40}.items():
        status, at = (BAD, 20 + 4) if n <= 23 or n + 32 >= 1 << 64 else (SHORT, END)  # the file's first chunk is at 20
        at = 32 + 8 + 7 if label == "1_less" else at  # there the second word has no room
        c.rejected("C", f"vocab_length_{label}", File().chunk(1, simple(), n).dense().build(), status, at, "", f"a vocabulary chunk of {n} bytes")
        n = n if label[0] == "2" else {"0": 0, "1_more": 38, "1_less": 36}[label]
        c.rejected("C", f"matrix_length_{label}", File().chunk(1, simple()).dense(length=n).build(), BAD, matrix + 4, "", f"a matrix chunk of {n} bytes")
    for label, n in HUGE.items():
        c.rejected("F", f"words_{label}", File().chunk(1, simple(n=n)).dense().build(), BAD, 32, "", f"a vocabulary of {n} words")
        c.rejected("D", f"rows_{label}", File().chunk(1, simple()).dense(rows=n).build(), BAD, size_at(matrix, n, 8), "", f"a matrix of {n} rows")
        c.rejected("D", f"norms_{label}", whole().norms(n=n).build(), BAD, size_at(norms, n, 4), "", f"{n} norms")
    for n in (1, 3):
        c.rejected("C", f"words_{n}", File().chunk(1, simple(n=n)).dense().build(), BAD, {1: 24, 3: 54}[n], "", f"a count of {n} for two words")
    for label, n in (("2_31", 1 << 31), ("2_32_less_1", (1 << 32) - 1), ("past_chunk", 4)):
        vocab = q(2, code="Q") + string(b"one") + string(b"two", n)
        c.rejected("C", f"word_{label}", File().chunk(1, vocab).dense().build(), BAD, 32 + 8 + 7, "", f"a word of {n} bytes")


def vocabularies(c):
    def bad(name, ident, payload, what, rows=3, letter="O", status=BAD, message="", at=None):
        c.rejected(letter, name, File().chunk(ident, payload).dense(ROWS + ROWS[:8 * (rows - 2)], rows).build(), status, at, message, what)
    rows_at = 32 + len(bucket()) + 12  # shape of the matrix: as many rows as words and buckets
    c.accepted("O", "bucket", File().chunk(3, bucket()).dense(ROWS + ROWS, 4).build(), 2, "a sound vocabulary of buckets")
    bad("min_n_0", 3, bucket(min_n=0), "n-grams of no letters", 4, at=40)
    bad("min_above_max", 3, bucket(min_n=7), "a shortest n-gram above the longest", 4, at=40)
    bad("exponent_64", 3, bucket(size=64), "2^64 buckets: upstream panics", 4, "D", at=48)
    bad("exponent_63", 3, bucket(size=63), "2^63 buckets, which are not there", 4, "D", at=rows_at)
    bad("exponent_32", 3, bucket(size=32), "2^32 buckets, which are not there", 4, "F", at=rows_at)
    bad("exponent_2_32_less_1", 3, bucket(size=(1 << 32) - 1), "an exponent of 2^32 - 1", 4, "D", at=48)
    bad("buckets_0", 7, bucket(size=0), "no buckets: upstream divides by it", 2, at=48)
    bad("buckets_2_32_less_1", 7, bucket(size=(1 << 32) - 1), "2^32 - 1 buckets, which are not there", 4, "F", at=rows_at)
    for rows in (1, 3):
        data = (ROWS + ROWS)[:8 * rows]
        c.rejected("P", f"rows_{rows}", File().chunk(1, simple()).dense(data, rows).build(), BAD, 32 + len(simple()) + 12, "", f"two words and {rows} rows")
    c.rejected("P", "norms_3", whole().norms(ROWS[:12], 3).build(), BAD, len(File(ids=[1, 2, 6]).chunk(1, simple()).dense().build()) + 12, "", "two words and three norms")
    c.rejected("H", "word_bad_utf8", File().chunk(1, simple((b"\xff\xfe", b"two"))).dense().build(), BAD, 32 + 8 + 4, "UTF-8", "a word that is not UTF-8")
    for label, word in (("empty", b""), ("blank", b" "), ("nul", b"a\0b"), ("ansi", b"\x1b[2J"), ("newline", b"a\nb"), ("twice", b"one"), ("nbsp", b"\xc2\xa0"), ("long", b"n" * 2000)):
        c.accepted("O", f"word_{label}", File().chunk(1, simple((b"one", word))).dense().build(), 2, f"a word: {label}", warnings=None)
    c.accepted("O", "explicit", File().chunk(8, explicit()).dense(ROWS + ROWS[:8], 3).build(), 4, "a sound explicit vocabulary", warnings=None)
    for label, n in HUGE.items():
        c.rejected("F", f"ngrams_{label}", File().chunk(8, explicit(n=n)).dense(ROWS + ROWS[:8], 3).build(), BAD, 40, "", f"{n} n-grams")
    bad("ngrams_2", 8, explicit(n=2), "a count of two for one n-gram", letter="C")
    bad("explicit_min_0", 8, explicit(min_n=0), "n-grams of no letters")
    c.accepted("O", "index_huge", File().chunk(8, explicit(((b"<on", (1 << 64) - 1),))).dense(ROWS + ROWS[:8], 3).build(), 4,
               "an index of 2^64 - 1: numbered anew, as upstream does", warnings=None)
    c.rejected("O", "ngram_bad_utf8", File().chunk(8, explicit(((b"\xff", 0),))).dense(ROWS + ROWS[:8], 3).build(), BAD, None, "UTF-8", "an n-gram that is not UTF-8")
    c.accepted("O", "floret", File().chunk(9, floret()).dense().build(), 1, "a sound floret vocabulary", warnings=None)
    for label, how in (("hashes_0", {"hashes": 0}), ("hashes_5", {"hashes": 5}), ("hashes_max", {"hashes": (1 << 32) - 1}), ("buckets_0", {"buckets": 0}),
                       ("min_0", {"min_n": 0}), ("min_above_max", {"min_n": 4}), ("buckets_3", {"buckets": 3}),
                       ("buckets_2_63", {"buckets": 1 << 63}), ("buckets_max", {"buckets": (1 << 64) - 1})):
        at = 32 if label.startswith("min") else 48 if label.startswith("hashes") else 40 if label == "buckets_0" else 32 + len(floret()) + 12
        c.rejected("O", f"floret_{label}", File().chunk(9, floret(**how)).dense().build(), BAD, at, "", f"floret with {label}")


def matrices(c):
    matrix = len(File(ids=[1, 2]).chunk(1, simple()).build())
    norms = len(File(ids=[1, 2, 6]).chunk(1, simple()).dense().build())
    def bad(name, f, what, letter="D", status=BAD, at=None):
        c.rejected(letter, name, f.build(), status, at, "", what)
    def typed(kind):  # the numbers 0 to 11 are types; real files use one of them
        return UNSUPPORTED if kind <= 11 else BAD
    bad("columns_2_32_less_1", File().chunk(1, simple()).dense(columns=(1 << 32) - 1), "2^32 - 1 columns", at=matrix + 4)
    bad("columns_0", File().chunk(1, simple()).dense(columns=0), "no columns, but numbers", status=BAD)
    bad("product_wraps", File().chunk(1, simple()).dense(rows=1 << 62, columns=4), "2^62 rows of 4 columns", at=matrix + 12)
    bad("product_wraps_small", File().chunk(1, simple()).dense(rows=(1 << 62) + 2, columns=1 << 2), "rows and columns whose bytes are few in 64 bits", at=matrix + 12)
    for kind in (0, 1, 9, 11, 12, (1 << 32) - 1):
        bad(f"type_{kind}", File().chunk(1, simple()).dense(kind=kind), f"numbers of type {kind}", "J", typed(kind), matrix + 12 + 12)
        bad(f"norms_type_{kind}", whole().norms(kind=kind), f"norms of type {kind}", "J", typed(kind), norms + 12 + 8)
    f = File().chunk(1, simple())
    f.chunk(2, lambda at: q(2, code="Q") + q(2, 10) + b"\1" * len(pad(at + 16)) + ROWS)
    c.rejected("I", "padding_not_0", f.build(), BAD, None, "", "padding that is not zero")
    for label, data in (("nan", b"\0\0\xc0\x7f" * 4), ("infinity", b"\0\0\x80\x7f" * 4), ("zeros", bytes(16))):
        c.accepted("P", f"value_{label}", File().chunk(1, simple()).dense(data).build(), 2, f"values: {label}")


def quantizers(c):
    c.accepted("P", "quantized", File().chunk(1, simple()).quantized().build(), 2, "a sound quantized matrix")
    matrix = len(File(ids=[1, 4]).chunk(1, simple()).build())
    def bad(name, what, letter="D", status=BAD, at=None, **how):
        c.rejected(letter, f"quantized_{name}", File().chunk(1, simple()).quantized(**how).build(), status,
                   None if at is None else matrix + at, "", what)
    bad("pieces_0", "rows of no pieces: upstream divides by it", at=20, m=0)
    bad("pieces_3", "rows that do not divide into pieces", at=20, m=3)
    bad("pieces_max", "2^32 - 1 pieces", at=20, m=(1 << 32) - 1)
    bad("columns_0", "rows of no columns", d=0)
    bad("columns_max", "2^32 - 1 columns", at=4, d=(1 << 32) - 1)
    bad("centroids_0", "no centroids", at=28, k=0)
    bad("centroids_257", "more centroids than a byte can name", at=28, k=257)
    bad("centroids_max", "2^32 - 1 centroids", at=28, k=(1 << 32) - 1)
    for label, n in HUGE.items():
        bad(f"rows_{label}", f"{n} rows", at=12 if n + 52 >= 1 << 64 else 4, rows=n)
    bad("projection_missing", "a projection that is not there", "C", at=4, projection=1)
    bad("norms_missing", "norms that are not there", "C", at=4, norms=1)
    bad("types", "types that no tool ever wrote", "J", UNSUPPORTED, 40, kinds=(3, 11))
    codes = len(File().chunk(1, simple()).quantized().build()) - 2
    c.damaged("E", "quantized_code", File().chunk(1, simple()).quantized(codes=b"\0\2").build(), BAD, 2, "a code that names no centroid", codes + 1)
    c.damaged("E", "quantized_code_255", File().chunk(1, simple()).quantized(codes=b"\xff\0").build(), BAD, 2, "a code of 255 with two centroids", codes)
