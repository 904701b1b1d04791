#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of fastText models, and the expected results.

fastText 0.9.2 (its Python package) wrote the files real_* from a few hundred lines of random words;
this script parses them to find their content. It makes all other files from the description of the
layout.
"""
import hashlib
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
MAGIC = 793712314
ARGS = ("dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate").split()
KEYS = ("dim ws epoch min_count neg word_ngrams loss model bucket minn maxn lr_update_rate").split()
LOSSES = [None, "hs", "ns", "softmax", "ova"]
MODELS = [None, "cbow", "skipgram", "supervised"]
DEFAULTS = {"wordNgrams": 1, "loss": 1, "model": 1}


def sha(b):
    return hashlib.sha256(b).hexdigest()


def floats(n, start=0.0):
    return struct.pack("<%df" % n, *[start + i * 0.25 for i in range(n)])


# ---------------------------------------------------------------- composing
def head(version=12, t=0.0001, magic=MAGIC, **args):
    full = {a: DEFAULTS.get(a, 0) for a in ARGS}
    full.update(args)
    return struct.pack("<Ii12id", magic, version, *[full[a] for a in ARGS], t)


def dictionary(words, labels=(), tokens=0, pruned=None, size=None, nwords=None, nlabels=None,
               pruneidx_size=None, types=None):
    """words and labels: (bytes, count); pruned: [(bucket, row)]."""
    entries = [*words, *labels]
    kinds = types or [0] * len(words) + [1] * len(labels)
    out = struct.pack("<iiiqq", len(entries) if size is None else size,
                      len(words) if nwords is None else nwords,
                      len(labels) if nlabels is None else nlabels, tokens,
                      (-1 if pruned is None else len(pruned)) if pruneidx_size is None else pruneidx_size)
    for (word, count), kind in zip(entries, kinds):
        out += word + b"\0" + struct.pack("<qB", count, kind)
    return out + b"".join(struct.pack("<ii", *p) for p in pruned or ())


def dense(rows, columns, data=None, flag=0):
    return struct.pack("<Bqq", flag, rows, columns) + (floats(rows * columns) if data is None else data)


def quantized(rows, columns, each, norms=False, last=None, codes=None, flag=1):
    pieces = -(-columns // each)
    last = (columns - (pieces - 1) * each) if last is None else last
    codes = bytes(i * 7 % 256 for i in range(rows * pieces)) if codes is None else codes
    out = struct.pack("<BBqqi", flag, norms, rows, columns, len(codes)) + codes
    out += struct.pack("<4i", columns, pieces, each, last) + floats(256 * columns, 0.5)
    if norms:
        out += bytes(i * 11 % 256 for i in range(rows)) + struct.pack("<4i", 1, 1, 1, 1) + floats(256, 1)
    return out


def norm_values(rows):
    book = floats(256, 1)
    return b"".join(book[4 * (i * 11 % 256):][:4] for i in range(rows))


# ---------------------------------------------------------------- taking apart
def strings(data):
    try:
        return [w.decode() for w in data]
    except UnicodeDecodeError:
        return None


def listed(name, entries):
    t = {"name": name, "layout": "strings/1", "shape": [len(entries)]}
    words = [e[0] for e in entries]
    t["parts"] = {"bytes": sha(b"".join(words)),
                  "offsets": sha(b"".join(struct.pack("<Q", sum(map(len, words[:i])))
                                          for i in range(len(words) + 1)))}
    if strings(words) is not None:
        t["strings"] = strings(words)
    yield t
    if any(e[1] for e in entries):
        yield {"name": name + ".counts" if name == "labels" else "counts", "dtype": "i64",
               "shape": [len(entries)], "sha256": sha(b"".join(struct.pack("<q", e[1]) for e in entries))}


def matrix(data, at, name, is_quantized):
    dim, = struct.unpack_from("<i", data, 8)
    if not is_quantized:
        rows, columns = struct.unpack_from("<qq", data, at)
        bytes_ = data[at + 16:][:4 * rows * columns]
        if rows == 0 and columns == (dim if name == "output" else 0):
            return [], at + 16
        return [{"name": name, "dtype": "f32", "layout": "dense", "shape": [rows, columns], "order": "C",
                 "sha256": sha(bytes_)}], at + 16 + len(bytes_)
    start = at
    norms, rows, columns, ncodes = struct.unpack_from("<Bqqi", data, at)
    codes = data[at + 21:][:ncodes]
    at += 21 + ncodes
    _, pieces, each, last = struct.unpack_from("<4i", data, at)
    book = data[at + 16:][:1024 * columns]
    at += 16 + 1024 * columns
    beside = []
    parts = {"codes": sha(codes), "codebooks": sha(book)}
    if norms:
        norm_codes, norm_book = data[at:][:rows], data[at + rows + 16:][:1024]
        at += rows + 16 + 1024
        parts["norms"] = sha(b"".join(norm_book[4 * c:][:4] for c in norm_codes))
        beside = [{"name": name + ".norm_codes", "dtype": "u8", "shape": [rows], "sha256": sha(norm_codes)},
                  {"name": name + ".norm_codebook", "dtype": "f32", "shape": [256], "sha256": sha(norm_book)}]
    if each != last or not rows:
        return [{"name": name + ".quantized", "dtype": "u8", "shape": [at - start],
                 "sha256": sha(data[start:at])}], at
    return [{"name": name, "layout": "pq/1", "shape": [rows, columns], "parts": parts}] + beside, at


def expect(data, warnings=0, lenient=False):
    version, = struct.unpack_from("<i", data, 4)
    args = dict(zip(ARGS, struct.unpack_from("<12i", data, 8)))
    t, = struct.unpack_from("<d", data, 56)
    size, nwords, nlabels, tokens, pruned = struct.unpack_from("<iiiqq", data, 64)
    at, entries = 92, []
    for _ in range(size):
        end = data.index(b"\0", at)
        entries.append((data[at:end], struct.unpack_from("<q", data, end + 1)[0]))
        at = end + 10
    attrs = {}
    for a, k in zip(ARGS, KEYS):
        v = args[a]
        if a in ("loss", "model"):
            attrs["fasttext." + k] = (LOSSES if a == "loss" else MODELS)[v]
        elif v != DEFAULTS.get(a, 0):
            attrs["fasttext." + k] = v
    if t:
        attrs["fasttext.t"] = t
    if tokens:
        attrs["fasttext.tokens"] = tokens
    if version != 12:
        attrs["fasttext.version"] = version
    tensors = list(listed("vocab", entries[:nwords])) if nwords else []
    if nlabels:
        tensors += listed("labels", entries[nwords:])
    if pruned >= 0:
        tensors.append({"name": "pruneidx", "dtype": "i32", "shape": [pruned, 2],
                        "sha256": sha(data[at:][:8 * pruned])})
        at += 8 * pruned
    found, at = matrix(data, at + 1, "embeddings", data[at])
    tensors += found
    if at == len(data):
        attrs["fasttext.has_output"] = False
    elif at + 17 <= len(data):
        found, at = matrix(data, at + 1, "output", data[at])
        tensors += found
    return {"format": "fasttext", "version": str(version), "lenient": lenient, "warnings": warnings,
            "attrs": attrs, "tensors": tensors}


# ---------------------------------------------------------------- the files
WORDS = [(b"</s>", 9), ("über".encode(), 7), (b"der", 5), (b"haus", 2)]
LABELS = [(b"__label__a", 3), (b"__label__b", 1)]
SMALL = dict(dim=2, ws=5, epoch=5, minCount=1, neg=5, loss=2, model=2, bucket=3, minn=3, maxn=6,
             lrUpdateRate=100)
SIMPLE = dict(dim=2, ws=5, epoch=5, minCount=5, neg=5, loss=2, model=2, minn=3)
SUP = dict(dim=4, ws=5, epoch=5, minCount=1, neg=5, loss=3, model=3, bucket=5, minn=2, maxn=4)
valid, reject = {}, {}


def ok(name, data, **more):
    valid[name] = data, expect(data, **more)


def no(name, data, code, offset, message, lenient="rejects"):
    reject[name] = data, {"code": code, "offset": offset, "message": message, "lenient": lenient}


small = head(**SMALL) + dictionary(WORDS, tokens=23) + dense(7, 2) + dense(4, 2)
ok("skipgram.bin", small)
ok("version11.bin", head(version=11, **SMALL) + dictionary(WORDS, tokens=23) + dense(7, 2) + dense(4, 2))
ok("no_ngrams.bin", head(**SIMPLE) + dictionary(WORDS, tokens=23) + dense(4, 2) + dense(4, 2))
ok("empty.bin", head(t=0, dim=0, ) + dictionary([]) + dense(0, 0) + dense(0, 0))
ok("no_words.bin", head(dim=3, bucket=2, minn=1, maxn=2) + dictionary([]) + dense(2, 3) + dense(0, 3))
ok("no_output.bin", head(t=0, dim=2, bucket=1, minn=3, maxn=6) + dictionary([(b"a", 0), (b"b", 0)]) +
   dense(3, 2), warnings=1)
ok("empty_output.bin", head(t=0, dim=2, bucket=1, minn=3, maxn=6) + dictionary([(b"a", 0), (b"b", 0)]) +
   dense(3, 2) + dense(0, 2))
ok("no_output_0x0.bin", head(t=0, dim=2, bucket=1, minn=3, maxn=6) + dictionary([(b"a", 0), (b"b", 0)]) +
   dense(3, 2) + dense(0, 0))
ok("no_letters.bin", head(**SIMPLE) + dictionary([(b"", 1), (b" ", 2), (b"a\nb", 3)]) + dense(3, 2) + dense(3, 2))
ok("long_word.bin", head(**SIMPLE) + dictionary([(b"x" * 70000, 1), (b"y", 1)]) + dense(2, 2) + dense(2, 2))
ok("not_utf8.bin", head(**SIMPLE) + dictionary([(b"zee\xc3n", 1), (b"\xff\xfe", 1)]) + dense(2, 2) + dense(2, 2),
   warnings=1)
ok("twice.bin", head(**SIMPLE) + dictionary([(b"a", 1), (b"a", 1)]) + dense(2, 2) + dense(2, 2))
ok("min_above_max.bin", head(**{**SMALL, "minn": 5, "maxn": 4}) + dictionary(WORDS) + dense(7, 2) + dense(4, 2),
   warnings=1)
ok("negative_neg.bin", head(**{**SIMPLE, "neg": -3}) + dictionary(WORDS) + dense(4, 2) + dense(4, 2))
for i, loss in enumerate(("hs", "ns", "softmax", "ova"), 1):
    ok(f"labels_{loss}.bin", head(**{**SUP, "loss": i}) + dictionary(WORDS, LABELS, 40) + dense(9, 4) + dense(2, 4))
ok("word_ngrams.bin", head(**{**SUP, "minn": 0, "maxn": 0, "wordNgrams": 2}) + dictionary(WORDS, LABELS, 40) +
   dense(9, 4) + dense(2, 4))
ok("only_labels.bin", head(**{**SUP, "bucket": 0, "minn": 0, "maxn": 0}) + dictionary([], LABELS) + dense(0, 4) +
   dense(2, 4))
ok("quantized.ftz", head(**SUP) + dictionary(WORDS, LABELS, 40) + quantized(9, 4, 2) + dense(2, 4))
ok("quantized_norms.ftz", head(**SUP) + dictionary(WORDS, LABELS, 40) + quantized(9, 4, 2, True) + dense(2, 4))
ok("quantized_output.ftz", head(**SUP) + dictionary(WORDS, LABELS, 40) + quantized(9, 4, 2, True) +
   quantized(2, 4, 2, True))
ok("quantized_uneven.ftz", head(**{**SUP, "dim": 5}) + dictionary(WORDS, LABELS, 40) + quantized(9, 5, 2, True) +
   dense(2, 5), warnings=1)
ok("pruned.ftz", head(**SUP) + dictionary(WORDS, LABELS, 40, [(4, 1), (0, 0)]) + quantized(6, 4, 2, True) +
   dense(2, 4))
ok("pruned_all.ftz", head(**SUP) + dictionary(WORDS, LABELS, 40, []) + quantized(4, 4, 4) + dense(2, 4))
for path in sorted((HERE / "valid").glob("real_*")):
    ok(path.name, path.read_bytes(), warnings=1 if "uneven" in path.name else 0)
# These open only leniently.
ok("trailing.bin", small + b"more", warnings=1, lenient=True)
ok("rows.bin", head(**SMALL) + dictionary(WORDS, tokens=23) + dense(6, 2) + dense(4, 2), warnings=1, lenient=True)

D = 64          # where the dictionary begins
body = dictionary(WORDS, tokens=23) + dense(7, 2) + dense(4, 2)
M = D + len(dictionary(WORDS, tokens=23))
for name, cut in (("magic", 4), ("args", 40), ("dictionary", D + 11), ("word", D + 30), ("count", D + 37),
                  ("input_head", M + 9), ("input", M + 25), ("output_head", M + 17 + 56 + 6),
                  ("output", len(small) - 1)):
    no(f"cut_{name}.bin", small[:cut], SHORT, None, "", "opens" if name == "output" else "rejects")
no("version13.bin", head(version=13, **SMALL) + body, UNSUPPORTED, 4, "version 13")
no("version10.bin", head(version=10, **SMALL) + body, UNSUPPORTED, 4, "version 10")
no("loss0.bin", head(**{**SMALL, "loss": 0}) + body, UNSUPPORTED, 32, "loss 0", "opens")
no("model9.bin", head(**{**SMALL, "model": 9}) + body, UNSUPPORTED, 36, "model 9", "opens")
no("dim_negative.bin", head(**{**SMALL, "dim": -2}) + body, BAD, 8, "-2 dimensions")
no("dim_other.bin", head(**{**SMALL, "dim": 3}) + body, BAD, M + 9, "has 2 columns, but the vectors of the model have 3 dimensions")
no("bucket_negative.bin", head(**{**SMALL, "bucket": -1}) + body, BAD, 40, "-1 buckets")
no("bucket_none.bin", head(**{**SMALL, "bucket": 0}) + dictionary(WORDS) + dense(4, 2) + dense(4, 2), BAD, 40,
   "no bucket", "opens")
no("maxn_negative.bin", head(**{**SMALL, "maxn": -6}) + body, BAD, 44, "3 to -6")


def broken(name, code, offset, message, lenient="rejects", words=WORDS, labels=(), **how):
    no(name, head(**SMALL) + dictionary(words, labels, **how) + dense(7, 2) + dense(4, 2), code, offset, message, lenient)


broken("size_negative.bin", BAD, D, "-4, 4 and 0", size=-4)
broken("words_negative.bin", BAD, D, "", nwords=-4, nlabels=8)
broken("labels_negative.bin", BAD, D, "3, 4 and -1", nlabels=-1, size=3)
broken("size_other.bin", BAD, D, "5, 4 and 0", size=5)
broken("size_max.bin", SHORT, D, "2147483647 entries", size=2**31 - 1, nwords=2**31 - 1)
broken("tokens_negative.bin", BAD, D + 12, "-1 tokens", "opens", tokens=-1)
broken("count_negative.bin", BAD, D + 28 + 5, "count -9,", "opens", words=[(b"</s>", -9), *WORDS[1:]])
broken("type_label_first.bin", BAD, D + 28 + 4 + 9, "must be a word (0)", types=[1, 0, 0, 0])
broken("type2.bin", BAD, D + 28 + 4 + 9, "type 2", types=[2, 0, 0, 0])
broken("pruned_below.bin", BAD, D + 20, "-2 buckets", "opens", pruneidx_size=-2)
broken("pruned_dense.bin", BAD, None, "", pruned=[(0, 0), (1, 1), (2, 2)], lenient="opens")
broken("pruned_max.bin", SHORT, None, "buckets that pruning kept", pruneidx_size=2**62)
no("no_end.bin", head(**SIMPLE) + struct.pack("<iiiqq", 1, 1, 0, 1, -1) + b"x" * 100, SHORT, None, "entry 1 of 1")


def with_input(name, matrix_, code, offset, message, lenient="rejects", pruned=None, args=None):
    d = dictionary(WORDS, LABELS, 40, pruned)
    no(name, head(**(args or SUP)) + d + matrix_ + dense(2, 4), code, None if offset is None else D + len(d) + offset,
       message, lenient)


with_input("flag2.bin", dense(9, 4, flag=2), BAD, 0, "is 2, not 0 or 1", None)
with_input("input_rows_max.bin", dense(2**62, 4, b""), BAD, 1, "a matrix of")
with_input("input_rows_negative.bin", dense(-1, 4, b""), BAD, 1, "a matrix of")
with_input("input_wraps.bin", dense(2**61, 8, b""), BAD, 1, "a matrix of")
with_input("input_large.bin", dense(2**40, 4, b""), BAD, 1, "for each word (4)")
with_input("output_quantized.bin", dense(9, 4) + quantized(2, 4, 2), BAD, None, "fastText reads both matrices as dense", None)
with_input("pruned_bucket.ftz", quantized(6, 4, 2), BAD, None, "bucket 5 of 5", pruned=[(5, 1), (0, 0)])
with_input("pruned_row.ftz", quantized(6, 4, 2), BAD, None, "row 2, but pruning kept 2", pruned=[(3, 2), (0, 0)])
with_input("pruned_negative.ftz", quantized(6, 4, 2), BAD, None, "of 5 has row", pruned=[(-1, 0), (0, 0)])
with_input("quantized_codes.ftz", quantized(9, 4, 2, codes=bytes(17)), BAD, 18, "not its rows times pieces")
with_input("quantized_rows.ftz", quantized(8, 4, 2), BAD, 1, "8 rows; it must have one for each word (4) and for each bucket (5)", "opens")
with_input("quantized_last.ftz", quantized(9, 4, 2, last=3), BAD, None, "do not add up")
with_input("quantized_last0.ftz", quantized(9, 4, 2, last=0), BAD, None, "do not add up")
with_input("quantized_norms2.ftz", b"\1\2" + quantized(9, 4, 2)[2:], BAD, 1, "neither 0 nor 1")
with_input("quantized_huge.ftz", struct.pack("<BBqqi", 1, 0, 2**40, 4, 18) + bytes(3000), BAD, 1, "above 2^31")
with_input("quantized_negative.ftz", struct.pack("<BBqqi", 1, 0, 9, 4, -18) + bytes(3000), BAD, 18, "above 2^31")
q = head(**SUP) + dictionary(WORDS, LABELS, 40) + quantized(9, 4, 2, True)
for name, cut in (("head", 1024 + 16 + 9 + 4096 + 16 + 18 + 10), ("codes", 1024 + 16 + 9 + 4096 + 16 + 5),
                  ("centroids", 1024 + 16 + 9 + 100), ("norms", 1024 + 16 + 3), ("norm_book", 500)):
    no(f"cut_quantized_{name}.ftz", q[:-cut], SHORT, None, "")

if __name__ == "__main__":
    out = {"valid": {}, "reject": {}}
    for folder, files in (("valid", valid), ("reject", reject)):
        (HERE / folder).mkdir(exist_ok=True)
        for name, (data, want) in sorted(files.items()):
            (HERE / folder / name).write_bytes(data)
            out[folder][name] = {k: v for k, v in want.items() if v is not None or k == "offset"}
    (HERE / "expect.json").write_text(json.dumps(out, indent=1, sort_keys=True) + "\n", encoding="utf-8")
