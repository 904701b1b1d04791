# SPDX-License-Identifier: MIT
"""Makes the input files of the golden tests in the given directory. They are small, made only from
the descriptions of the formats, and always the same."""
import json
import os
import struct
import sys
import zlib

sys.dont_write_bytecode = True
import emb_files  # noqa: E402


def safetensors(tensors, metadata=None, pad=True):
    """tensors: (name, dtype, shape, bytes) in the order they are stored in."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, shape, raw in tensors:
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    if pad:
        text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def f32(*values):
    return struct.pack("<%df" % len(values), *values)


def i32(*values):
    return struct.pack("<%di" % len(values), *values)


def npy(descr, shape, raw):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, shape)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + raw


def npz(members):
    """As numpy.savez() writes it, except that the sizes are in the local headers themselves."""
    front, back = b"", b""
    for name, raw in members:
        name, at = name.encode(), len(front)
        head = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 33, zlib.crc32(raw), len(raw), len(raw), len(name), 0)
        front += b"PK\3\4" + head + name + raw
        back += b"PK\1\2\x14\3" + head + struct.pack("<HHHII", 0, 0, 0, 0o600 << 16, at) + name
    n = len(members)
    return front + back + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, n, n, len(back), len(front), 0)


def texts():
    """Elements whose type does not describe them completely: texts, times, and a pickle."""
    points = "".join(w.ljust(4, "\0") for w in ("abc", "", "\U0001f600\u00e9", "x\0y"))
    nat = -1 << 63
    return npz([
        ("bytes.npy", npy("|S5", (3,), b"abc\0\0" b"\0\0\0\0\0" b"x\0y\xff\0")),
        ("days.npy", npy("<M8[D]", (2, 2), struct.pack("<4q", 0, -1, 19722, nat))),
        ("generic.npy", npy("<m8", (2,), struct.pack("<2q", 7, nat))),
        ("months.npy", npy(">M8[M]", (2,), struct.pack(">2q", 5, -1))),
        ("nanoseconds.npy", npy("<M8[ns]", (2,), struct.pack("<2q", 1767323045000000000, -1))),
        ("objects.npy", npy("|O", (2,), b"\x80\2cos\nsystem\nX\4\0\0\0true\x85R.")),
        ("points.npy", npy("<U4", (2, 2), points.encode("utf-32-le"))),
        ("spans.npy", npy("<m8[25us]", (3,), struct.pack("<3q", 1, -40000, nat))),
    ])


def gptrs_index(tensors, start, with_id):
    """The index of a version 2 file whose index begins at `start`, and its data."""
    tags = {"f32": 0, "f16": 1, "bf16": 2, "i32": 3}
    size = 4 + sum((45 if with_id else 29) + len(n) + 8 * len(s) for n, _, s, _, _ in tensors)
    index, data = struct.pack("<I", len(tensors)), b""
    for name, dtype, shape, raw, grad in tensors:
        index += struct.pack("<I", len(name)) + name + (bytes(16) if with_id else b"")
        index += struct.pack("<I%dQ" % len(shape), len(shape), *shape)
        index += struct.pack("<IBQQ", tags[dtype], grad, start + size + len(data), len(raw))
        data += raw
    assert len(index) == size
    return index, data


def checkpoint(config, tensors):
    index, data = gptrs_index(tensors, 20 + len(config), True)
    return (b"GPTRSCHK" + struct.pack("<II", 2, len(config)) + config +
            struct.pack("<I", len(index)) + index + data)


def archive(tensors):
    index, data = gptrs_index(tensors, 16, False)
    return b"GPTRSTEN" + struct.pack("<II", 2, len(index)) + index + data


NAN, INF = float("nan"), float("inf")

MODEL = [
    ("blocks.0.weight", "F32", [2, 3], f32(1, -2.5, 3, NAN, INF, -0.0)),
    ("blocks.0.bias", "F32", [3], f32(0.1, 1e-7, 16777216)),
    ("blocks.1.weight", "BF16", [2, 2], bytes.fromhex("803f0040cd3d80ff")),
    ("half", "F16", [3], bytes.fromhex("003c663effff")),
    ("double", "F64", [2], struct.pack("<2d", 0.1, 1e300)),
    ("big", "I64", [2], struct.pack("<2q", -2**63, 2**53 + 1)),
    ("huge", "U64", [1], struct.pack("<Q", 2**64 - 1)),
    ("small", "I8", [2, 2], bytes.fromhex("80ff007f")),
    ("flags", "BOOL", [3], bytes([1, 0, 1])),
    ("float8", "F8_E4M3", [2], bytes.fromhex("387e")),
    ("complex", "C64", [2], f32(1, -2, 0.5, NAN)),
    ("scalar", "F32", [], f32(42)),
    ("empty", "F32", [0, 4], b""),
]

TABLE = [
    ("table", "I32", [40, 60], i32(*range(2400))),
    ("cube", "I32", [2, 3, 4], i32(*range(24))),
    ("stack", "F32", [12, 12, 12], f32(*[i / 4 for i in range(1728)])),
]

NAMES = [
    ("\x1b[31mred\x1b[0m", "I32", [1], i32(1)),
    ("two\nlines\tand a tab", "I32", [1], i32(2)),
    ("a[0]", "I32", [2], i32(3, 4)),
    ("a", "I32", [2], i32(5, 6)),
    ("a#data", "I32", [1], i32(7)),
    ("back\\slash", "I32", [1], i32(8)),
    ("\u202eturned", "I32", [1], i32(9)),
    ("gr\u00fc\u00dfe/\u6771\u4eac", "I32", [1], i32(10)),
    ("quote\"'", "I32", [1], i32(11)),
]

CONFIG = (b'{"kind":"gpt","config":{"vocab_size":2,"context_length":4,"embed_dim":2,'
          b'"num_layers":1,"num_heads":1,"mlp_ratio":4,"dropout":0.0}}')

PARAMETERS = [
    (b"blocks.0.w", "f32", [2, 2], f32(1, 2, 3, 4), 1),
    (b"lm_head", "f32", [2, 2], f32(5, 6, 7, 8), 0),
]


# primitiv's Adam(1, 2, 3, 4), epoch 5, lr_scale 6, l2_strength 7, clip_threshold 8, as primitiv
# writes it.
ADAM = ("ce00000000ce00000001ce0000040081af4f7074696d697a65722e65706f6368ce0000000587aa4164616d2e62657461"
        "32ca40400000aa4164616d2e6265746131ca40000000b84f7074696d697a65722e636c69705f7468726573686f6c64ca"
        "41000000a84164616d2e657073ca40800000aa4164616d2e616c706861ca3f800000b54f7074696d697a65722e6c325f"
        "737472656e677468ca40e00000b24f7074696d697a65722e6c725f7363616c65ca40c00000")


def gguf():
    """A small model: keys of several types, a tensor of blocks and a dense one."""
    def text(s):
        return struct.pack("<Q", len(s.encode())) + s.encode()

    def key(name, number, value):
        return text(name) + struct.pack("<I", number) + value

    tokens = [f"<{i}>" for i in range(40)]
    keys = [key("general.architecture", 8, text("llama")), key("llama.block_count", 4, struct.pack("<I", 1)),
            key("llama.rope.freq_base", 6, struct.pack("<f", 10000)),
            key("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 40) + b"".join(map(text, tokens))),
            key("tokenizer.ggml.empty", 9, struct.pack("<IQ", 5, 0)),
            key("tokenizer.chat_template", 8, text("{{ messages }}\n{{ end }}"))]
    entries = [text("blk.0.weight") + struct.pack("<IQQIQ", 2, 64, 2, 8, 0),
               text("norm") + struct.pack("<IQIQ", 1, 4, 0, 160)]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(entries), len(keys)) + b"".join(keys) + b"".join(entries)
    return head + bytes(-len(head) % 32) + bytes(range(136)) + bytes(24) + f32(1, 2, 3, 4) + bytes(16)


def main(out):
    def put(name, content):
        path = os.path.join(out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content)

    model = safetensors(MODEL, {"format": "pt", "note": "two\nlines"})
    put("model.safetensors", model)
    put("gguf/model.gguf", gguf())
    put("gguf/template.jinja", b"{% for m in messages %}{{ m.content }}{% endfor %}\n")
    put("table.safetensors", safetensors(TABLE))
    put("names.safetensors", safetensors(NAMES))
    put("plain.safetensors", safetensors([("a", "F32", [2], f32(1, 2)), ("b", "I32", [1], i32(3))]))
    put("model.bin", checkpoint(CONFIG, PARAMETERS))
    put("model.gten", archive([(n, t, s, r, 0) for n, t, s, r, _ in PARAMETERS]))
    put("adam.primitiv", bytes.fromhex(ADAM))
    put("cut.safetensors", model[:-5])
    put("cut_header.safetensors", model[:100])
    put("cut.gten", archive([(n, t, s, r, 0) for n, t, s, r, _ in PARAMETERS])[:-3])
    put("grown.safetensors", model + b"\0\0\0")
    put("overlap.safetensors", safetensors([("a", "F32", [1], f32(1))]).replace(b"[0,4]", b"[0,8]"))
    put("badbool.safetensors", safetensors([("flag", "BOOL", [2], b"\1\2")]))
    put("lfs.safetensors", b"version https://git-lfs.github.com/spec/v1\n"
        b"oid sha256:" + b"ab" * 32 + b"\nsize 548105171\n")
    put("page.safetensors", b"<!DOCTYPE html>\n<html><body>404</body></html>\n")
    put("gzip.safetensors", bytes.fromhex("1f8b0800000000000003") + b"\0" * 20)
    put("zip.bin", b"PK\3\4" + b"\0" * 40)
    put("pickle.bin", b"\x80\x02}q\0." + b"\0" * 20)
    put("pdf.bin", b"%PDF-1.7\n" + bytes(60))
    put("texts/texts.npz", texts())
    put("empty.bin", b"")
    put("zeros.bin", bytes(4096))
    put("noise.bin", bytes((i * 167 + 13) % 251 for i in range(300)))
    put("nothing/readme.txt", b"no model here\n")
    a = safetensors([("a", "F32", [2], f32(1, 2))])
    b = safetensors([("b", "I32", [1], i32(3))])
    put("sharded/model-00001-of-00002.safetensors", a)
    put("sharded/model-00002-of-00002.safetensors", b)
    put("sharded/model.safetensors.index.json", json.dumps({
        "metadata": {"total_size": 12},
        "weight_map": {"a": "model-00001-of-00002.safetensors",
                       "b": "model-00002-of-00002.safetensors"}}).encode())
    emb_files.make(put)


main(sys.argv[1])
