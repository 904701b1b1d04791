# SPDX-License-Identifier: MIT
"""Makes embeddings for benchmarks: finalfusion files, written with numpy alone."""
import struct

import numpy


def chunk_head(number, length):
    return struct.pack("<IQ", number, length)


def word_list(n):
    """n different words of about 9 bytes."""
    out = bytearray()
    for i in range(n):
        word = b"%x-%d" % (i * 2654435761 % 2**32, i % 97)
        out += struct.pack("<I", len(word)) + word
    return bytes(out)


def header(f, ids):
    f.write(b"FiFu" + struct.pack("<II%dI" % len(ids), 0, len(ids), *ids))


def bucket_vocab(f, n, exponent):
    words = word_list(n)
    f.write(chunk_head(3, 20 + len(words)) + struct.pack("<QIII", n, 3, 6, exponent) + words)


def dense(path, n, d, exponent):
    """n words and 2^exponent buckets, with d numbers each."""
    rng = numpy.random.default_rng(1)
    rows = n + 2**exponent
    with open(path, "wb") as f:
        header(f, [3, 2])
        bucket_vocab(f, n, exponent)
        pad = 4 - (f.tell() + 28) % 4
        f.write(chunk_head(2, 16 + pad + 4 * rows * d) + struct.pack("<QII", rows, d, 10) + bytes(pad))
        for at in range(0, rows, 1 << 16):
            block = rng.standard_normal((min(1 << 16, rows - at), d), dtype=numpy.float32)
            f.write((block / numpy.linalg.norm(block, axis=1, keepdims=True)).tobytes())
    return path


def quantized(path, n, d, exponent):
    """The same shape, quantized like OPQ: d / 2 codes of 256 centroids, and a rotation."""
    rng = numpy.random.default_rng(2)
    rows, m = n + 2**exponent, d // 2
    rotation = numpy.linalg.qr(rng.standard_normal((d, d)))[0].astype(numpy.float32)
    codebooks = (rng.standard_normal((m, 256, 2)) / d**.5).astype(numpy.float32)
    with open(path, "wb") as f:
        header(f, [3, 4])
        bucket_vocab(f, n, exponent)
        pad = 4 - (f.tell() + 48) % 4
        f.write(chunk_head(4, 36 + pad + 4 * d * d + 4 * 256 * d + 4 * rows + rows * m))
        f.write(struct.pack("<IIIIIQII", 1, 1, m, d, 256, rows, 1, 10) + bytes(pad))
        f.write(rotation.tobytes() + codebooks.tobytes())
        f.write(numpy.ones(rows, numpy.float32).tobytes())
        for at in range(0, rows, 1 << 20):
            f.write(rng.integers(0, 256, (min(1 << 20, rows - at), m), numpy.uint8).tobytes())
    return path


def vocabulary(path, n):
    """n words with four numbers each."""
    words = word_list(n)
    with open(path, "wb") as f:
        header(f, [1, 2])
        f.write(chunk_head(1, 8 + len(words)) + struct.pack("<Q", n) + words)
        pad = 4 - (f.tell() + 28) % 4
        f.write(chunk_head(2, 16 + pad + 16 * n) + struct.pack("<QII", n, 4, 10) + bytes(pad))
        f.write(numpy.ones((n, 4), numpy.float32).tobytes())
    return path
