#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of gptrs-archive, and the expected results.

The files ten_v2_* exist already: the upstream writer made them (except the bincode one). This
script makes all others from the description.
"""
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "gptrs-checkpoint"))
from gptrs import *  # noqa: E402

out = Folder(HERE, "gptrs-archive")
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"


def said(name="w", shape=(2, 2), data=bytes(16), **more):
    return archive([Tensor(name, more.pop("dtype", "f32"), shape, data, **more)])


def patched(data, at, code, *numbers):
    new = struct.pack("<" + code, *numbers)
    return data[:at] + new + data[at + len(new):]


# Positions in said(): the index at 16, its only entry at 20, the name, the rank, the dims …
INDEX, ENTRY, NAME, RANK, DIMS = 16, 20, 24, 25, 29
TAG = DIMS + 16
GRAD = TAG + 4
START = GRAD + 1 + 16
assert said().index(struct.pack("<Q", START)) == GRAD + 1 and len(said()) == START + 16

# ------------------------------------------------------------ as upstream writes it
for path in sorted((HERE / "valid").glob("ten_v2_*.gten")):
    data = path.read_bytes()
    version, _, found = parse(data)
    again = [Tensor(t["name"], t["dtype"], t["shape"], data[t["offset"]:t["offset"] + t["length"]],
                    t["grad"]) for t in found]
    assert archive(again, wide=version == "2-bincode") == data, path
    out.valid(path.name)

# Sorted by the bytes in UTF-8; the order in UTF-16 is different.
UNICODE = ["\u00e9t\u00e9", "\u65e5\u672c\u8a9e", "\U0001f600", "\uffee", "e\u0301t\u00e9", "a b\tc", "x/y#z", "\x1b[31m", ""]
out.valid("unicode.gten", archive([tensor(n, "f32", [1], start=i) for i, n in enumerate(UNICODE)]))

# ------------------------------------------------------------ version 1
mixed = [tensor("a.f32", "f32", [2, 3]), tensor("a.i32", "i32", [5]), tensor("b", "i32", [1], grad=1)]
out.valid("v1_mixed.gten", archive_v1(mixed))
out.valid("v1_empty.gten", archive_v1([]))
out.valid("v1_long.gten", archive_v1([
    tensor("\u00fc" * 4500, "f32", [1]), tensor("b", "f32", [2500]), tensor("c", "bf16", [5]),
    tensor("d", "f32", [0, 7]), tensor("e" * 3000, "f16", [2, 2], start=9)]))

# ------------------------------------------------------------ edges
out.valid("edge.gten", archive([
    tensor("", "f32", [1]), tensor("x" * 1024, "f32", [2]), tensor("x" * 1025, "i32", [3]),
    tensor("zero", "f32", [0, 4]), tensor("zero.last", "i32", [3, 0]),
    tensor("rank6", "f32", [1, 2, 1, 3, 1, 2]), tensor("rank64", "i32", [1] * 64)]))
out.valid("zero_dim_beside_huge.gten", said(shape=[0, 1 << 63, 1 << 63], data=b""))
out.valid("halves.gten", archive([
    tensor("half", "f16", [3, 2]), tensor("brain", "bf16", [2, 5], start=2), tensor("full", "f32", [3])]))
out.valid("scalar.gten", said(shape=[], data=values("f32", 1)), lenient=True, warnings=1)
out.valid("duplicate.gten", archive([tensor("w", "f32", [2])] * 2), lenient=True, warnings=1)
out.valid("unsorted.gten", archive([tensor("z", "f32", [2]), tensor("a", "f32", [3])], sort=False))
out.valid("grad_7.gten", said(grad=7), warnings=1)
out.valid("bincode_empty.gten", archive([], wide=True))
out.valid("trailing_data.gten", said() + b"\0\0\0", warnings=1)
first = 16 + index_size([tensor("a", "f32", [2]), tensor("b", "f32", [1])], False)
apart = [tensor("a", "f32", [2], offset=first + 5), tensor("b", "f32", [1], offset=first + 20)]
apart[0].data = b"\xff" * 5 + apart[0].data + b"\xff" * 7
out.valid("gaps.gten", archive(apart))
shared = [tensor("a", "f32", [4], offset=first), tensor("b", "f32", [2], offset=first + 8)]
shared[1].data = b""
out.valid("overlap_partial.gten", archive(shared), warnings=1)
same = [tensor("a", "f32", [4], offset=first), tensor("b", "f32", [4], offset=first)]
same[1].data = b""
out.valid("overlap_identical.gten", archive(same), warnings=1)
inside = [tensor("a", "f32", [4], offset=first), tensor("b", "f32", [0], offset=first + 8)]
out.valid("empty_inside.gten", archive(inside))

# ------------------------------------------------------------ lengths
for name, value in (("0", 0), ("3", 3), ("max", 0xFFFFFFFF)):
    out.reject("version_%s.gten" % name, patched(said(), 8, "I", value), UNSUPPORTED, 8, "version %d" % value)
for cut, offset, message in ((8, 8, "8 bytes are missing"), (15, 15, "1 byte is missing"),
                             (16, 16, "50 bytes are missing"), (START - 1, START - 1, "1 byte is missing")):
    out.reject("cut_%d.gten" % cut, said()[:cut], SHORT, offset, message)
out.reject("cut_data.gten", said()[:-3], SHORT, START + 13, "3 bytes are missing", "opens")
out.reject("index_len_past_file.gten", patched(said(), 12, "I", START + 1), SHORT, START + 16, "inside the index")
out.reject("index_len_max.gten", patched(said(), 12, "I", 0xFFFFFFFF), LIMIT, 16, "4294967295 bytes")
for n in (0, 3):
    out.reject("index_len_%d.gten" % n, patched(said(), 12, "I", n), BAD, 16, "too short")
out.reject("index_len_one_short.gten", patched(said(), 12, "I", START - 17), BAD, START - 8, "tensor 1 of the 1")
out.valid("index_len_one_long.gten", patched(said(offset=START + 1), 12, "I", START - 15) + b"\0", warnings=1)
out.reject("count_max.gten", patched(said(), INDEX, "I", 0xFFFFFFFF), BAD, START, "tensor 2 of the 4294967295")
out.reject("name_len_max.gten", patched(said(), ENTRY, "I", 0xFFFFFFFF), BAD, NAME, "tensor 1 of the 1")
out.reject("rank_max.gten", patched(said(), RANK, "I", 0xFFFFFFFF), BAD, DIMS, "tensor 1 of the 1")
out.reject("rank_65.gten", said(shape=[1] * 65, data=bytes(4)), LIMIT, RANK, "65 dimensions")
out.reject("rank_0.gten", said(shape=[], data=bytes(4)), BAD, RANK, "no dimensions", "opens")

# ------------------------------------------------------------ arithmetic
out.reject("product_wraps_to_zero.gten", said(shape=[1 << 32, 1 << 32], data=b""), BAD, ENTRY, "2^64 elements")
out.reject("bytes_wrap_to_zero.gten", said(shape=[1 << 62, 1], data=b""), BAD, ENTRY, "has 0 bytes", "opens")
out.reject("end_wraps.gten", said(offset=(1 << 64) - 8), BAD, None, "beyond 2^64")
out.reject("offset_in_index.gten", said(offset=START - 1), BAD, START - 1, "inside the header", "opens")
out.reject("offset_past_file.gten", said(offset=1 << 40), SHORT, START + 16, "missing", "opens")

# ------------------------------------------------------------ wrong indexes
out.reject("tag_4.gten", said(tag=4), UNSUPPORTED, TAG, "type tag 4")
out.reject("name_not_utf8.gten", said(name=b"\xed\xa0\x80"), BAD, NAME, "not UTF-8")
out.reject("duplicate.gten", archive([tensor("w", "f32", [2]), tensor("w", "f32", [2], start=5)]),
           BAD, ENTRY + 29 + 1 + 8, "occurs twice", "opens")

# ------------------------------------------------------------ version 1, cut or with wrong numbers
V1 = archive_v1([tensor("w", "f32", [2, 2]), tensor("v", "f32", [1])])
RECORD = 16  # for w: its length is at 46, its data at 54, the record of v at 70
assert V1[54:70] == values("f32", 4)
for cut, offset, message in ((15, 15, "inside the header"), (16, 16, "tensor 1 of 2"), (53, 53, "tensor 1 of 2"),
                             (60, 60, "tensor 1 of 2 end 10 bytes after the file"), (70, 70, "tensor 2 of 2")):
    out.reject("v1_cut_%d.gten" % cut, V1[:cut], SHORT, offset, message)
out.reject("v1_length_huge.gten", patched(V1, 46, "Q", 1 << 62), BAD, RECORD, "4611686018427387904 bytes")
out.reject("v1_count_max.gten", patched(V1, 12, "I", 0xFFFFFFFF), SHORT, len(V1), "tensor 3 of 4294967295")

# ------------------------------------------------------------ written again
for name, entry in sorted(out.expect["valid"].items()):
    if not entry["lenient"]:
        out.written(name)
for name in ("edge.gten", "unicode.gten", "ten_v2_empty.gten"):
    out.written(name, align=64)

out.close()
