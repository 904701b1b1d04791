#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of gptrs-checkpoint, and the expected results.

These files exist already, because others wrote them: chk_v2_* (the upstream exporter, or composed
from the Rust code) and the short files cfg_*, idx_*, len_*, name_*, offset_*, overlap, reserved_ff,
trunc_*, bad_magic, good_reference (one edge case each). This script makes all others from the
description.
"""
import json
import pathlib
import struct

from gptrs import *

HERE = pathlib.Path(__file__).parent
out = Folder(HERE, "gptrs-checkpoint")
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
GPT = {"vocab_size": 32, "context_length": 16, "embed_dim": 8, "num_layers": 1, "num_heads": 2,
       "mlp_ratio": 2, "dropout": 0.0}
CONFIG = tagged("gpt", {})  # 26 bytes: the length of the index is at 42, the index at 46
INDEX, ENTRY = 46, 50


def one(config=CONFIG, **more):
    """A checkpoint with the tensor w = f32 [2,2]; arguments change its description."""
    return checkpoint(config, [tensor("w", "f32", [2, 2], **more)])


def said(name="w", shape=(2, 2), data=bytes(16), **more):
    return checkpoint(CONFIG, [Tensor(name, more.pop("dtype", "f32"), shape, data, **more)])


# Positions in said(): entry, name, id, rank, dims …; the tag follows two dims.
NAME, ID, RANK, DIMS = ENTRY + 4, ENTRY + 5, ENTRY + 21, ENTRY + 25
TAG = DIMS + 16
START = TAG + 4 + 1 + 16  # the offset of the data
assert said().index(struct.pack("<Q", START)) == TAG + 5 and len(said()) == START + 16

# ------------------------------------------------------------ as upstream writes it
# as upstream writes it
for path in sorted((HERE / "valid").glob("chk_v2_*.bin")):
    data = path.read_bytes()
    version, text, found = parse(data)
    again = [Tensor(t["name"], t["dtype"], t["shape"], data[t["offset"]:t["offset"] + t["length"]],
                    t["grad"], t["id"]) for t in found]
    assert checkpoint(text, again, wide=version == "2-bincode") == data, path

small = (HERE / "valid/chk_v2_gpt_small.bin").read_bytes()
out.valid("chk_v2_gpt_small.bin")
out.valid("chk_v2_mixed_grad.bin")
out.valid("chk_v2_empty.bin")
out.valid("chk_v2_rust_style.bin",
          attrs={"gptrs.kind": "gpt", "gptrs.stored_ids": True,
                 "gptrs.config": {"kind": "gpt", "config": GPT}})
out.valid("chk_v2_untagged_config.bin", warnings=1,
          attrs={"gptrs.kind": "gpt", "gptrs.config": GPT, "gptrs.stored_ids": True})
out.valid("chk_v2_bincode_transitional.bin", warnings=1,
          attrs={"gptrs.kind": "gpt", "gptrs.config": GPT, "gptrs.stored_ids": True})
out.valid("chk_v2_nonascii_name.bin", warnings=1)

out.valid("good_reference.bin")
out.valid("cfg_extra_keys.bin")
out.valid("cfg_runtime_null.bin")
out.valid("overlap.bin", warnings=1)
out.valid("reserved_ff.bin", warnings=1)

# ------------------------------------------------------------ version 1
# version 1
_, _, found = parse(small)
order = ["tok_embeddings.weight", "pos_embeddings"] + [t["name"] for t in found if t["name"].startswith("blocks")]
order += ["final_ln.gamma", "final_ln.beta", "lm_head"]
by_name = {t["name"]: t for t in found}
v1 = [Tensor(n, by_name[n]["dtype"], by_name[n]["shape"],
             small[by_name[n]["offset"]:by_name[n]["offset"] + by_name[n]["length"]]) for n in order]
v1_data = checkpoint_v1(json.dumps(GPT), v1)
out.valid("v1_gpt_small.bin", v1_data, attrs={"gptrs.kind": "gpt", "gptrs.config": GPT})
out.valid("v1_empty.bin", checkpoint_v1(json.dumps(GPT), []))
out.valid("v1_tagged.bin", checkpoint_v1(CONFIG, [tensor("w", "i32", [3], grad=1)]))
# Longer than the buffer that a reader may use, and a name twice as long.
out.valid("v1_long.bin", checkpoint_v1(CONFIG, [
    tensor("a" * 9000, "f32", [1]), tensor("b", "f32", [2500]), tensor("c", "bf16", [5]),
    tensor("d", "f32", [0, 7]), tensor("e" * 3000, "f16", [2, 2], start=9)]))

# ------------------------------------------------------------ edges
out.valid("edge.bin", checkpoint(CONFIG, [
    tensor("", "f32", [1]), tensor("x" * 1024, "f32", [2]), tensor("x" * 1025, "i32", [3]),
    tensor("zero", "f32", [0, 4]), tensor("zero.last", "i32", [3, 0]),
    tensor("rank6", "f32", [1, 2, 1, 3, 1, 2]), tensor("rank64", "i32", [1] * 64)]))
# There is no element, so nothing overflows.
out.valid("zero_dim_beside_huge.bin", said(shape=[0, 1 << 63, 1 << 63], data=b""))
out.valid("halves.bin", checkpoint(CONFIG, [
    tensor("half", "f16", [3, 2]), tensor("brain", "bf16", [2, 5], start=2), tensor("full", "f32", [3])]))
out.valid("scalar.bin", said(shape=[], data=values("f32", 1)), lenient=True, warnings=1)
# The tensors are equal, so it does not matter which one is found; test_gptrs_checkpoint.c tests this.
out.valid("duplicate.bin", checkpoint(CONFIG, [tensor("w", "f32", [2])] * 2), lenient=True, warnings=1)
out.valid("unsorted.bin", checkpoint(CONFIG, [tensor("z", "f32", [2]), tensor("a", "f32", [3])], sort=False))
out.valid("ids_mixed.bin", checkpoint(CONFIG, [
    tensor("a", "f32", [2], ident=base_id("a")), tensor("b", "f32", [2])]),
    attrs={"gptrs.kind": "gpt", "gptrs.config": {"kind": "gpt", "config": {}}, "gptrs.stored_ids": True})
out.valid("bincode_empty.bin", checkpoint(CONFIG, [], wide=True))
out.valid("trailing_data.bin", one() + b"after all", warnings=1)
gap = [tensor("a", "f32", [2], offset=0), tensor("b", "f32", [1], offset=0)]
first = 20 + len(CONFIG) + index_size(gap, True)
gap[0].offset, gap[1].offset, gap[0].data = first + 5, first + 20, b"\xff" * 5 + gap[0].data + b"\xff" * 7
gap[0].length = 8
out.valid("gaps.bin", checkpoint(CONFIG, gap))
# Data in the reverse order of the index.
swap = [tensor("a", "f32", [2]), tensor("b", "f32", [1])]
swap[0].offset, swap[1].offset = first + 4, first
out.valid("reversed.bin", checkpoint(CONFIG, swap)[:first] + swap[1].data + swap[0].data)

# ------------------------------------------------------------ configs
MINISTRAL = {"vocab_size": 64, "context_length": 32, "embed_dim": 8, "num_layers": 1, "num_heads": 2,
             "num_kv_heads": 1, "head_dim": 4, "mlp_hidden_dim": 16, "rms_norm_eps": 1e-05,
             "rope_theta": 1000000.0, "rotary_dim": 4,
             "rope_scaling": {"kind": "yarn", "factor": 16.0, "original_max_position_embeddings": 16384,
                              "beta_fast": 32.0, "beta_slow": 1.0, "truncate": True}}
out.valid("ministral.bin", checkpoint(tagged("ministral", MINISTRAL), [
    tensor(n, "f32", s) for n, s in (("tok_embeddings.weight", [64, 8]), ("blocks.0.attention.w_qkv", [8, 16]),
                                     ("blocks.0.norm_1.gamma", [8]), ("final_norm.gamma", [8]))]))
STREAMING = {"functional_overrides": {"attention": "force=flash", "matmul": "benchmark(cache=16)", "x": "", "y": "benchmark"},
             "weight_streaming": {"enabled": True, "device_budget_bytes": 1 << 31, "device_weights_percent": 0.5,
                                  "cache_budget_cap_bytes": 18446744073709551615, "prefetch_layers": 2,
                                  "small_param_persist_threshold": 65536}}
out.valid("runtime_streaming.bin", one(tagged("gpt", GPT, runtime=STREAMING)))
out.valid("runtime_nulls.bin", one(tagged("gpt", GPT, runtime={"weight_streaming": {"enabled": False, "prefetch_layers": None}})))
out.valid("runtime_off_with_knob.bin", one(tagged("gpt", GPT, runtime={"weight_streaming": {"enabled": False, "prefetch_layers": 1}})), warnings=1)
out.valid("runtime_odd_override.bin", one(tagged("gpt", GPT, runtime={"functional_overrides": {"a": "often", "b": "benchmark(cache=0)"}})), warnings=2)
out.valid("runtime_percent_over_one.bin", one(tagged("gpt", GPT, runtime={"weight_streaming": {"enabled": True, "device_weights_percent": 1.5}})), warnings=1)
out.valid("config_spaced.bin", one('{ "config" : null,\n  "kind" : "\\u0067pt" }\n'))
out.valid("config_missing.bin", one('{"kind":"x"}'))
# Spaces after the config are padding for alignment, not content.
out.valid("config_padded.bin", one(CONFIG + " " * 38))
# Our own writer adds this for texts that gpt.rs has no place for, and the reader removes it.
own = CONFIG[:-1] + ',"tenfold.metadata":{"author":"J\\u00f6rg","n":"1"}}'
out.valid("config_own_metadata.bin", one(own),
          attrs={"gptrs.config": json.loads(CONFIG), "gptrs.kind": "gpt",
                 "gptrs.metadata": {"author": "J\u00f6rg", "n": "1"}})
out.valid("config_untagged_kind_number.bin", one(json.dumps({"kind": 7, **GPT})), warnings=1,
          attrs={"gptrs.kind": "gpt", "gptrs.config": {"kind": 7, **GPT}})
out.valid("config_placeholder.bin", one(tagged("unknown", {})), attrs={"gptrs.kind": "unknown"})

# ------------------------------------------------------------ files that exist already
out.reject("bad_magic.bin", None, UNSUPPORTED, 0, "unrecognised file format")
out.reject("trunc_7.bin", None, SHORT, 7, "only 7 bytes")
out.reject("trunc_11.bin", None, SHORT, 11, "5 bytes are missing")
out.reject("trunc_41.bin", None, SHORT, 41, "1 byte is missing")
out.reject("trunc_127.bin", None, SHORT, 127, "1 byte is missing", "opens")
out.reject("cfg_empty.bin", None, BAD, 16, "the config is empty")
out.reject("cfg_not_json.bin", None, BAD, 17, "config: ")
out.reject("cfg_no_kind.bin", None, BAD, 16, "names no kind of model", "opens")
out.reject("cfg_runtime_bad.bin", None, BAD,
           16 + len('{"kind":"gpt","config":{},"runtime":{"weight_streaming":{"enabled":'),
           "runtime.weight_streaming.enabled is not true or false", "opens")
out.reject("idx_count_too_big.bin", None, BAD, 112, "tensor 2 of the 2")
out.valid("idx_trailing.bin", warnings=1)
out.reject("len_huge.bin", None, BAD, ENTRY, "4611686018427387904 bytes", "opens")
out.reject("len_mismatch.bin", None, BAD, ENTRY, "has 12 bytes, but its shape [2,2] of f32 needs 16", "opens")
out.reject("len_not_multiple.bin", None, BAD, ENTRY, "has 15 bytes", "opens")
out.valid("name_nonascii.bin", warnings=1)
out.reject("offset_in_header.bin", None, BAD, 0, "inside the header", "opens")
out.reject("offset_past_eof.bin", None, SHORT, 128, "missing", "opens")

# ------------------------------------------------------------ lengths
def patched(data, at, code, *numbers):
    new = struct.pack("<" + code, *numbers)
    return data[:at] + new + data[at + len(new):]


for name, value in (("0", 0), ("3", 3), ("max", 0xFFFFFFFF)):
    out.reject("version_%s.bin" % name, patched(one(), 8, "I", value), UNSUPPORTED, 8, "version %d" % value)
# Read as version 1, the length of the index is a number of tensors, and the number of tensors is
# the length of a name.
out.reject("version_1_for_2.bin", patched(one(), 8, "I", 1), SHORT, None, "tensor")
out.reject("config_len_past_file.bin", patched(one(), 12, "I", 1000), SHORT, 128, "inside the config")
out.reject("config_len_max.bin", patched(one(), 12, "I", 0xFFFFFFFF), LIMIT, 16, "4294967295 bytes")
out.reject("config_len_huge.bin", patched(one(), 12, "I", 0x80000000), LIMIT, 16, "2147483648 bytes")
out.reject("config_len_one_short.bin", patched(one(), 12, "I", 25), BAD, 41, "config: ")
out.reject("index_len_past_file.bin", patched(one(), 42, "I", 83), SHORT, 128, "1 byte is missing")
out.reject("index_len_max.bin", patched(one(), 42, "I", 0xFFFFFFFF), LIMIT, 46, "4294967295 bytes")
for n in (0, 3):
    out.reject("index_len_%d.bin" % n, patched(one(), 42, "I", n), BAD, 46, "too short")
out.reject("index_len_one_short.bin", patched(one(), 42, "I", 65), BAD, START - 8, "tensor 1 of the 1")
out.reject("count_max.bin", patched(one(), INDEX, "I", 0xFFFFFFFF), BAD, START, "tensor 2 of the 4294967295")
out.valid("count_zero.bin", patched(one(), INDEX, "I", 0), warnings=2)
out.reject("name_len_max.bin", patched(one(), ENTRY, "I", 0xFFFFFFFF), BAD, NAME, "tensor 1 of the 1")
out.reject("name_len_past_index.bin", patched(one(), ENTRY, "I", 59), BAD, NAME, "tensor 1 of the 1")
out.reject("rank_max.bin", patched(one(), RANK, "I", 0xFFFFFFFF), BAD, DIMS, "tensor 1 of the 1")
out.reject("rank_wraps_to_zero_bytes.bin", patched(one(), RANK, "I", 0x20000000), BAD, DIMS, "tensor 1 of the 1")
out.reject("rank_65.bin", said(shape=[1] * 65, data=bytes(4)), LIMIT, RANK, "65 dimensions")

# ------------------------------------------------------------ arithmetic
out.reject("product_wraps_to_zero.bin", said(shape=[1 << 32, 1 << 32], data=b""), BAD, ENTRY, "2^64 elements")
out.reject("product_wraps_to_four.bin", said(shape=[(1 << 62) + 1, 4], data=bytes(16)), BAD, ENTRY, "2^64 elements")
out.reject("bytes_wrap_to_zero.bin", said(shape=[1 << 62, 1], data=b""), BAD, ENTRY, "has 0 bytes", "opens")
out.reject("bytes_wrap_to_sixteen.bin", said(shape=[(1 << 62) + 4, 1]), BAD, ENTRY, "has 16 bytes", "opens")
out.reject("dim_max.bin", said(shape=[(1 << 64) - 1, 1]), BAD, ENTRY, "has 16 bytes", "opens")
out.reject("dim_negative.bin", said(shape=[1 << 63, 2]), BAD, ENTRY, "2^64 elements")
out.reject("end_wraps.bin", said(offset=(1 << 64) - 8), BAD, None, "beyond 2^64")
out.reject("end_wraps_to_data.bin", said(shape=[1 << 61, 1], length=1 << 63, offset=(1 << 63) + START + 16),
           BAD, None, "beyond 2^64")
out.reject("offset_max_empty.bin", said(shape=[0, 1], data=b"", offset=(1 << 64) - 1), SHORT, START, "missing", "opens")
out.reject("offset_one_past.bin", said(offset=START + 1), SHORT, START + 16, "1 byte is missing", "opens")
out.reject("offset_in_index.bin", said(offset=START - 1), BAD, START - 1, "inside the header", "opens")

# ------------------------------------------------------------ wrong indexes
out.reject("tag_4.bin", said(tag=4), UNSUPPORTED, TAG, "type tag 4")
out.reject("tag_max.bin", said(tag=0xFFFFFFFF), UNSUPPORTED, TAG, "type tag 4294967295")
out.reject("name_not_utf8.bin", said(name=b"a\xffb"), BAD, NAME + 1, "not UTF-8")
out.reject("name_overlong.bin", said(name=b"\xc0\x80"), BAD, NAME, "not UTF-8")
out.reject("id_wrong.bin", said(ident=base_id("v")), BAD, ID, "not the hash of its name", "opens")
out.reject("id_one_bit.bin", said(ident=bytes([base_id("w")[0] ^ 1]) + base_id("w")[1:]), BAD, ID, "not the hash", "opens")
out.reject("rank_0.bin", said(shape=[], data=bytes(4)), BAD, RANK, "no dimensions", "opens")
twice = checkpoint(CONFIG, [tensor("w", "f32", [2]), tensor("w", "f32", [2], start=5)])
out.reject("duplicate.bin", twice, BAD, ENTRY + 45 + 1 + 8, "occurs twice", "opens")
WIDE = checkpoint(CONFIG, [tensor("w", "f32", [2], offset=0)], wide=True)
first = 20 + len(CONFIG) + index_size([tensor("w", "f32", [2])], True, True)
WIDE = patched(patched(WIDE, first - 16, "Q", first + 1), 42, "I", first - INDEX + 1) + b"\0"
out.valid("bincode_trailing.bin", WIDE, warnings=1)
out.reject("bincode_count_max.bin", patched(WIDE, INDEX, "Q", (1 << 64) - 1), BAD, None, "tensor")

# ------------------------------------------------------------ configs
TOO_DEEP = '{"kind":"gpt","config":' + "[" * 64 + "]" * 64 + "}"


def config(name, text, offset, message, lenient="opens", code=BAD):
    out.reject("config_%s.bin" % name, one(text), code, offset, message, lenient)


config("array", '["gpt",{}]', 16, "not a JSON object")
config("string", '"gpt"', 16, "not a JSON object")
config("trailing_comma", '{"kind":"gpt",}', 16 + 14, "config: ", "rejects")
config("two_values", '{"kind":"gpt"} {}', 16 + 15, "config: ", "rejects")
config("not_utf8", b'{"kind":"gpt","config":"\xff"}', 16 + 24, "config: ", "rejects")
config("utf16", CONFIG.encode("utf-16"), 16, "config: ", "rejects")
config("nan", '{"kind":"gpt","config":NaN}', 16 + 23, "config: ", "rejects")
config("deep", TOO_DEEP, 16 + 23 + 63, "nested", "rejects", LIMIT)
config("two_kinds", '{"kind":"gpt","config":{},"kind":"x"}', 16 + 33, 'two members "kind"')
config("two_kinds_escaped", '{"kind":"gpt","config":{},"\\u006bind":"x"}', 16 + 38, 'two members "kind"')
config("kind_null", '{"kind":null,"config":{}}', 16, "names no kind")
for field in GPT:
    partial = {k: v for k, v in GPT.items() if k != field}
    config("gpt_without_" + field, json.dumps(partial), 16, "its %s is missing" % field)
config("gpt_negative", json.dumps({**GPT, "num_heads": -1}), 16, "its num_heads is wrong")
config("gpt_float", json.dumps({**GPT, "mlp_ratio": 2.0}), 16, "its mlp_ratio is wrong")
config("gpt_dropout_text", json.dumps({**GPT, "dropout": "0"}), 16, "its dropout is wrong")
for name, text in (("number", "1"), ("array", "[]"), ("overrides", '{"functional_overrides":[]}'),
                   ("override", '{"functional_overrides":{"a":1}}'), ("streaming", '{"weight_streaming":true}'),
                   ("negative", '{"weight_streaming":{"prefetch_layers":-1}}'),
                   ("fraction", '{"weight_streaming":{"device_budget_bytes":1.5}}'),
                   ("beyond_u64", '{"weight_streaming":{"device_budget_bytes":18446744073709551616}}'),
                   ("percent", '{"weight_streaming":{"device_weights_percent":"1"}}'),
                   ("streaming_null", '{"weight_streaming":null}'), ("enabled_null", '{"weight_streaming":{"enabled":null}}')):
    whole = '{"kind":"gpt","config":{},"runtime":%s}' % text
    colon = whole.rindex(":") + 1 if ":" in text else 36
    config("runtime_" + name, whole, 16 + colon, "runtime")

# ------------------------------------------------------------ version 1, cut or with wrong numbers
V1 = checkpoint_v1(CONFIG, [tensor("w", "f32", [2, 2]), tensor("v", "f32", [1])])
RECORD = 46  # for w: its length is at 76, its data at 84, the record of v at 100
assert V1[84:100] == values("f32", 4) and len(V1) == 100 + 4 + 1 + 4 + 8 + 4 + 1 + 8 + 4
for cut, offset, message, code in ((42, 42, "inside the header", SHORT), (45, 45, "inside the header", SHORT),
                                   (46, 46, "tensor 1 of 2", SHORT), (49, 49, "tensor 1 of 2", SHORT),
                                   (60, 60, "tensor 1 of 2", SHORT), (83, 83, "tensor 1 of 2", SHORT),
                                   (84, 84, "tensor 1 of 2 end 16 bytes after the file", SHORT),
                                   (99, 99, "tensor 1 of 2 end 1 bytes after the file", SHORT),
                                   (100, 100, "tensor 2 of 2", SHORT), (129, 129, "tensor 2 of 2", SHORT)):
    out.reject("v1_cut_%d.bin" % cut, V1[:cut], code, offset, message)
out.reject("v1_cut_133.bin", V1[:133], SHORT, 133, "1 byte is missing", "opens")
out.reject("v1_name_len_max.bin", patched(V1, RECORD, "I", 0xFFFFFFFF), SHORT, len(V1), "tensor 1 of 2")
out.reject("v1_rank_max.bin", patched(V1, RECORD + 5, "I", 0xFFFFFFFF), SHORT, len(V1), "tensor 1 of 2")
out.reject("v1_length_huge.bin", patched(V1, 76, "Q", 1 << 62), BAD, RECORD, "4611686018427387904 bytes")
out.reject("v1_length_max.bin", patched(V1, 76, "Q", (1 << 64) - 1), BAD, RECORD, "18446744073709551615 bytes")
# A lenient reader continues there and finds bytes that look like one more tensor.
out.reject("v1_length_short.bin", patched(V1, 76, "Q", 12), BAD, RECORD, "has 12 bytes", "opens")
out.reject("v1_count_3.bin", patched(V1, 42, "I", 3), SHORT, 134, "tensor 3 of 3")
out.reject("v1_tag.bin", patched(V1, 71, "I", 9), UNSUPPORTED, 71, "type tag 9")

# ------------------------------------------------------------ written again
OWN = CONFIG[:-1] + ',"tenfold.metadata":{"author":"J\u00f6rg","n":"1"}}'
# A bare config of version 1 is wrapped, so that the current gpt.rs opens the file.
WRAPPED = {name: '{"kind":"gpt","config":%s}' % json.dumps(GPT) for name in ("v1_gpt_small.bin", "v1_empty.bin")}
for name, entry in sorted(out.expect["valid"].items()):
    if not entry["lenient"]:
        out.written(name, config=OWN if name == "config_own_metadata.bin" else WRAPPED.get(name))
for name in ("edge.bin", "chk_v2_gpt_small.bin", "chk_v2_empty.bin", "config_own_metadata.bin"):
    out.written(name, align=64, config=OWN if name == "config_own_metadata.bin" else None)
out.written("chk_v2_mixed_grad.bin", align=4096)

out.close()
