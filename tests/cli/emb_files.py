# SPDX-License-Identifier: MIT
"""Small files of embeddings for the golden tests, made from the layout of finalfusion files. Their
cosines are easy to compute by hand."""
import struct


def chunk(number, payload):
    return struct.pack("<IQ", number, len(payload)) + payload


def words(*list_):
    return b"".join(struct.pack("<I", len(w)) + w for w in list_)


def floats(*values):
    return struct.pack("<%df" % len(values), *values)


def padded(at, number, fields, data):
    """A chunk at that place of the file; its data begin after 1 to 4 bytes of padding."""
    pad = 4 - (at + 12 + len(fields)) % 4
    return chunk(number, fields + bytes(pad) + data)


def fifu(vocab, *chunks):
    """vocab: (id, payload); chunks: (id, fields, data), or (id, payload)."""
    ids = [vocab[0]] + [c[0] for c in chunks]
    out = b"FiFu" + struct.pack("<II%dI" % len(ids), 0, len(ids), *ids) + chunk(*vocab)
    for number, *rest in chunks:
        out += chunk(number, *rest) if len(rest) == 1 else padded(len(out), number, *rest)
    return out


def dense(rows):
    return (2, struct.pack("<QII", len(rows), len(rows[0]), 10),
            floats(*[x for row in rows for x in row]))


def norms(*values):
    return (6, struct.pack("<QI", len(values), 10), floats(*values))


SIX = [b"right", b"up", b"steep", b"flat", b"New York", b"odd\x1bword"]
ROWS = [(1, 0), (0, 1), (3, 4), (4, 3), (-1, 0), (-3, 4)]


def fasttext(entries, rows, output, buckets, nlabels=0):
    """A skip-gram model with n-grams of three characters."""
    head = struct.pack("<Ii12id", 793712314, 12, len(rows[0]), 5, 5, 1, 5, 1, 2, 2, buckets, 3, 3, 100, 0)
    head += struct.pack("<iiiqq", len(entries), len(entries) - nlabels, nlabels, 9, -1)
    for i, (word, count) in enumerate(entries):
        head += word + b"\0" + struct.pack("<qB", count, i >= len(entries) - nlabels)
    for matrix in (rows, output):
        head += struct.pack("<Bqq", 0, len(matrix), len(rows[0])) + floats(*[x for row in matrix for x in row])
    return head


def make(put):
    # "<a>" is in bucket 1, "<b>" and "<c>" are in 0, "<ab" is in 0 and "ab>" in 2: a is (1,6), b is (2,1),
    # c would be (4,0) and ab (5,3)
    three = [(b"</s>", 4), (b"a", 3), (b"b", 2)]
    rows = [(8, 0), (2, 4), (0, 2), (4, 0), (0, 8), (6, 6)]
    put("emb/model.bin", fasttext(three, rows, [(1, 0), (0, 1), (1, 1)], 3))
    put("emb/labels.bin", fasttext(three + [(b"__label__x", 1)], rows, [(1, 0)], 3, 1))
    simple = (1, struct.pack("<Q", 6) + words(*SIX))
    put("emb/words.fifu", fifu(simple, dense(ROWS), norms(1, 2, 3, 4, 5, 6)))
    # one word; n-grams of 3 to 6, two buckets: rows 1 and 2
    bucket = (3, struct.pack("<QIII", 1, 3, 6, 1) + words(b"ab"))
    put("emb/buckets.fifu", fifu(bucket, dense([(1, 0), (0, 3), (4, 0)])))
    # the same words and buckets in one file, and a second matrix for the words
    second = [(0, 0, 1), (0, 1, 0), (0, 3, 4), (0, 4, 3), (1, 0, 0), (-1, 0, 0)]
    put("emb/groups.fifu", fifu(simple, dense(ROWS), norms(1, 2, 3, 4, 5, 6), dense(second), bucket,
                                dense([(1, 0), (0, 3), (4, 0)])))
    twice = (1, struct.pack("<Q", 3) + words(b"a", b"b", b"a"))
    put("emb/twice.fifu", fifu(twice, dense([(1, 0), (0, 1), (5, 5)])))
    # P = [[0,-1],[1,0]], centroids (1,2) and (3,4), norms 2 and 1, codes 0 and 1:
    # rows (-4,2) and (-4,3)
    two = (1, struct.pack("<Q", 2) + words(b"a", b"b"))
    codes = (4, struct.pack("<IIIIIQII", 1, 1, 1, 2, 2, 2, 1, 10),
             floats(0, -1, 1, 0, 1, 2, 3, 4, 2, 1) + bytes([0, 1]))
    put("emb/codes.fifu", fifu(two, codes))
    put("emb/questions.txt", b": turns\nright up flat steep\nright up up New\n: others\n"
        b"right steep up flat\n\nnobody up right flat\n")
