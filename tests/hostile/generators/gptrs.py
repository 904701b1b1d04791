# SPDX-License-Identifier: MIT
"""gpt.rs checkpoints and archives: fields of fixed width, an index with absolute offsets."""
import struct

from kit import *

FORMATS = [("gptrs-checkpoint", "gptrs"), ("gptrs-archive", "gten")]
CONFIG = b'{"kind":"gpt","config":{}}'
DATA = struct.pack("<6f", 1, 2, 3, 4, 5, 6)


class Gptrs:
    def __init__(self, name):
        self.checkpoint = name == "gptrs-checkpoint"

    def file(self, version=2, tensors=(("w", (2, 3), 0, 0, 24),), config=CONFIG, data=DATA):
        """tensors: name, shape, type, offset from the start of the data, length; in version 1 the data follow."""
        f = Fields().raw("magic", b"GPTRSCHK" if self.checkpoint else b"GPTRSTEN").put("version", "u32", version)
        if self.checkpoint:
            f.put("config_len", "u32", len(config)).raw("config", config)
        index = sum(29 + len(n.encode()) + 8 * len(s) + 16 * self.checkpoint for n, s, *_ in tensors)
        if version == 2:
            f.put("index_len", "u32", 4 + index)
        f.put("count", "u32", len(tensors))
        start = sum(n for *_, n in f.borders()) + index
        for i, (name, shape, tag, offset, length) in enumerate(tensors):
            p = f"{'w' if i == 0 else 'x'}_"
            f.put(p + "name_len", "u32", len(name.encode())).raw(p + "name", name.encode())
            if self.checkpoint and version == 2:
                f.raw(p + "id", bytes(16))
            f.put(p + "rank", "u32", len(shape))
            for d, n in enumerate(shape):
                f.put(f"{p}dim{d}", "u64", n)
            f.put(p + "type", "u32", tag).put(p + "grad", "u8", 0)
            if version == 2:
                f.put(p + "offset", "u64", start + offset)
            f.put(p + "length", "u64", length)
            if version == 1:
                f.raw(p + "data", data[offset:offset + length])
        if version == 2:
            f.raw("data", data)
        return f


def make(c):
    g = Gptrs(c.name)
    f = g.file()
    wrong_things(c, f.build())
    c.accepted("P", "sound", f.build(), 1, "a sound file")
    c.accepted("P", "sound_1", one(g).build(), 1, "a sound file of version 1")
    truncation(c, f, "")
    truncation(c, one(g), "v1_")
    c.accepted("A", "long_by_1", f.build() + b"\0", 1, "a byte behind the last tensor", warnings=1)
    lengths(c, g, f)
    shapes(c, g, f)
    ranges(c, g, f)
    names(c, g)
    kinds(c, g, f)
    if g.checkpoint:
        configs(c, g)


GPT = (b'{"vocab_size":1,"context_length":1,"embed_dim":1,"num_layers":1,"num_heads":1,"mlp_ratio":4,"dropout":0.0}')


def one(g):
    return g.file(1, config=GPT)


def truncation(c, f, prefix):
    whole = f.build()
    for label, at in cuts(f):
        c.rejected("A", f"{prefix}cut_{label}", whole[:at], SHORT, END, "", f"the first {at} of {len(whole)} bytes")


def lengths(c, g, f):
    size = len(f.build())
    for name in ["index_len", "count", "w_name_len", "w_rank"] + ["config_len"] * g.checkpoint:
        for label, n in (("2_31", 1 << 31), ("2_32_less_1", (1 << 32) - 1), ("size", size), ("2_24", 1 << 24)):
            # a piece of the file may be longer than the file or a limit; a piece of the index must be inside
            # the index
            whole, allowed = name in ("index_len", "config_len"), n <= 256 << 20
            status, at = (SHORT, END) if whole and allowed else (LIMIT if whole else BAD, f.at("data") if name == "count" else None)
            c.rejected("C", f"{name}_{label}", f.build(**{name: n}), status, at, "", f"{name} says {n}")
    for name in ("index_len", "w_name_len", "w_rank", "count"):
        n = {"index_len": size, "w_name_len": 1, "w_rank": 2, "count": 1}[name]
        if name != "index_len":
            for label, value in (("more", n + 1), ("less", n - 1)):
                if (name, label) != ("count", "less"):
                    c.rejected("C", f"{name}_1_{label}", f.build(**{name: value}), BAD, None, "", f"{name} says {value}")
    c.accepted("C", "count_0", f.build(count=0), 0, "an index of no tensors, and bytes behind it", warnings=None)
    for label, n in HUGE.items():
        c.rejected("C", f"length_{label}", f.build(w_length=n), BAD, f.at("w_name_len"), "24" if n < 1 << 63 else "",
                   f"a tensor of 24 bytes that says {n}")
        c.rejected("C", f"v1_length_{label}", one(g).build(w_length=n), BAD, one(g).at("w_name_len"), "", f"version 1: a tensor that says {n}")


def shapes(c, g, f):
    def shape(name, dims, length, message, what, status=BAD):
        at = f.at("w_rank" if len(dims) in (0, 65) else "w_name_len")  # fields of a description are wrong together
        c.rejected("D", name, g.file(tensors=[("w", dims, 0, 0, length)]).build(), status, at, message, what)
    big = 1 << 32
    shape("product_wraps_to_0", (big, big), 0, "2^64", "2^32 × 2^32")
    shape("product_wraps_small", (3, 12297829382473034411), 4, "2^64", "a product that is 1 in 64 bits")
    shape("bytes_wrap_to_0", (1 << 62,), 0, "", "2^62 × 4 bytes is 0 in 64 bits")
    shape("bytes_wrap_24", ((1 << 62) + 6,), 24, "", "(2^62 + 6) × 4 bytes is 24")
    shape("dimension_2_64_less_1", ((1 << 64) - 1,), 24, "", "a dimension of 2^64 - 1")
    shape("rank_0", (), 4, "dimension", "no dimensions: gpt.rs panics")
    shape("rank_65", (1,) * 65, 4, "64", "65 dimensions", LIMIT)
    shape("needs_more", (2, 4), 24, "32", "a shape that needs more bytes than there are")
    shape("needs_less", (5,), 24, "20", "a shape that needs fewer bytes than there are")
    c.accepted("D", "rank_64", g.file(tensors=[("w", (1,) * 64, 0, 0, 4)], data=DATA[:4]).build(), 1, "64 dimensions")
    c.accepted("D", "zero_and_huge", g.file(tensors=[("w", (1 << 63, 1 << 63, 0), 0, 0, 0)], data=b"").build(), 1,
               "a zero after what would wrap: no elements, and no bytes")
    c.accepted("D", "zero", g.file(tensors=[("w", (0, 4), 0, 0, 0)], data=b"").build(), 1, "a dimension of 0")


def ranges(c, g, f):
    at, data = f.at("w_offset"), f.at("data")
    def offset(name, value, status, message, what, letter="E"):
        c.rejected(letter, name, f.build(w_offset=value), status, END if status is SHORT else None, message, what)
    offset("offset_0", 0, BAD, "", "a tensor over the header: upstream hands the header out as numbers")
    offset("offset_in_index", data - 1, BAD, "", "a tensor that takes the last byte of the index along")
    offset("offset_1_more", data + 1, SHORT, "1 byte", "a tensor whose last byte is missing")
    offset("offset_past_end", 1 << 30, SHORT, "", "a tensor behind the file")
    offset("offset_2_63", 1 << 63, SHORT, "", "a tensor at 2^63", "D")
    offset("end_wraps", (1 << 64) - 8, BAD, "", "offset and length whose sum is small in 64 bits", "D")
    two = [("w", (3,), 0, 0, 12), ("x", (3,), 0, 8, 12)]
    c.accepted("E", "overlap", g.file(tensors=two, data=DATA[:20]).build(), 2, "tensors that share bytes: gpt.rs reads them", warnings=1)
    gap = [("w", (1,), 0, 0, 4), ("x", (1,), 0, 20, 4)]
    c.accepted("E", "gap", g.file(tensors=gap).build(), 2, "bytes between tensors", warnings=None)
    backwards = [("w", (3,), 0, 12, 12), ("x", (3,), 0, 0, 12)]
    c.accepted("E", "backwards", g.file(tensors=backwards).build(), 2, "data in another order", warnings=None)
    more = g.file()
    c.accepted("I", "then_zip", more.build() + b"PK\5\6" + bytes(18), 1, "a ZIP archive behind the tensors", warnings=1)
    fields = g.file()
    c.accepted("I", "index_then_more", fields.build(
        index_len=fields.at("data") - fields.at("count") + 4, w_offset=fields.at("data") + 4, w_length=struct.pack("<Q", 24) + bytes(4)),
        1, "bytes in the index behind its last tensor", warnings=None)


def names(c, g):
    def name(label, text, warnings=0):
        c.accepted("H", f"name_{label}", g.file(tensors=[(text, (2, 3), 0, 0, 24)]).build(), 1, f"a name: {label}", warnings)
    for label, text in (("empty", ""), ("nul", "a\0b"), ("ansi", "\x1b[2J"), ("newline", "a\nb"), ("dotdot", "../../x"),
                        ("long", "n" * 2000), ("percent", "%n%s")):
        name(label, text)
    name("unicode", "é", 1 if g.checkpoint else 0)
    f = g.file(tensors=[("ab", (2, 3), 0, 0, 24)])
    for label, raw, bad in (("bad_utf8", b"\xc3\x28", 0), ("overlong", b"\xc0\xaf", 0), ("cut", b"a\xc3", 1)):
        c.rejected("H", f"name_{label}", f.build(w_name=raw), BAD, f.at("w_name") + bad, "UTF-8", f"a name that is not UTF-8: {label}")
    two = [("w", (3,), 0, 0, 12), ("w", (3,), 0, 12, 12)]
    c.rejected("H", "name_twice", g.file(tensors=two).build(), BAD, None, "twice", "a name twice: upstream takes the last")
    twice = g.file(1, two, GPT)
    c.rejected("H", "v1_name_twice", twice.build(), BAD, None, "twice", "a name twice in version 1")


def kinds(c, g, f):
    for n in (4, 255, (1 << 32) - 1):
        c.add("J", f"type_{n}", f.build(w_type=n), f"a type {n}", verdict="rejected", status=UNSUPPORTED, offset=f.at("w_type"),
              message="")
    for n in (2, 255):
        c.accepted("J", f"grad_{n}", f.build(w_grad=n), 1, f"requires_grad is {n}", warnings=1)
    for n in (0, 3, (1 << 32) - 1):
        c.rejected("J", f"version_{n}", f.build(version=n), UNSUPPORTED, 8, "", f"version {n}")
    c.accepted("J", "f16", g.file(tensors=[("w", (12,), 1, 0, 24)]).build(), 1, "f16, which upstream lists and does not read")
    if g.checkpoint:
        c.rejected("P", "id_wrong", f.build(w_id=b"\1" * 16), BAD, f.at("w_id"), "", "the id of another name")


def configs(c, g):
    def config(name, text, status, message, what, letter="J", at=16):
        c.rejected(letter, f"config_{name}", g.file(config=text).build(), status, at, message, what)
    config("none", b"", BAD, "", "no config at all")
    config("array", b"[]", BAD, "", "a config that is an array")
    config("no_kind", b"{}", BAD, "", "a config without a kind")
    config("kind_number", b'{"kind":1}', BAD, "", "a kind that is a number", at=None)
    config("not_json", b"kind: gpt", BAD, "", "a config in another language")
    config("cut", b'{"kind":"gpt"', BAD, "", "a config that ends inside: the file goes on", at=16 + 13)
    config("comma", b'{"kind":"gpt",}', BAD, "", "a comma too many", "H", 16 + 14)
    config("kind_twice", b'{"kind":"gpt","kind":"x"}', BAD, "kind", "a kind twice", "H", None)
    config("kind_twice_escaped", b'{"kind":"gpt","kin\\u0064":"x"}', BAD, "kind", "a kind twice, once escaped", "H", None)
    config("bad_utf8", b'{"kind":"\xff"}', BAD, "UTF-8", "a kind that is not UTF-8", "H", 16 + 9)
    config("then_more", b'{"kind":"gpt"}{}', BAD, "", "more behind the config", "I", 16 + 14)
    config("deep", b'{"kind":"gpt","config":' + b"[" * 500 + b"]" * 500 + b"}", LIMIT, "", "500 arrays in each other", "G", None)
    config("deep_objects", b'{"kind":"gpt","config":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}", LIMIT, "",
           "300 objects in each other", "G", None)
    config("runtime", b'{"kind":"gpt","runtime":{"weight_streaming":{"enabled":"yes"}}}', BAD, "", "a wrong type in runtime", at=None)
    c.accepted("H", "config_huge_number", g.file(config=b'{"kind":"gpt","config":{"n":1e999,"m":' + b"9" * 60 + b"}}").build(), 1,
               "numbers beyond doubles: a config is kept as text", warnings=None)
    c.accepted("H", "config_ansi", g.file(config=b'{"kind":"\\u001b[2J"}').build(), 1, "escapes for a terminal", warnings=None)
