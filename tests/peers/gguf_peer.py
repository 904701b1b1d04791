#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares tenfold with the package gguf, in both directions.

  gguf_peer.py TENFOLD [FILES]

tenfold reads GGUFWriter's files with the same keys, types, shapes and bytes, and writes the same bytes again,
directly and through zTensor 2 and safetensors. GGUFReader reads the files that tenfold edits, splits and makes from
safetensors files, and their bytes are those that GGUFWriter makes from the same content. Files have versions 2 and
3, and version 1, which this test makes, since no writer of it is left; both byte orders; nested arrays; any
alignment; they are single files, or sets that either program has split. FILES is their number: 60 by default, 500 for a thorough test.
"""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import gguf
import numpy as np

TENFOLD = sys.argv[1]
FILES = int(sys.argv[2]) if len(sys.argv) > 2 else 60
T = gguf.GGUFValueType
KINDS = {"u8": T.UINT8, "i8": T.INT8, "u16": T.UINT16, "i16": T.INT16, "u32": T.UINT32, "i32": T.INT32,
         "f32": T.FLOAT32, "bool": T.BOOL, "string": T.STRING, "u64": T.UINT64, "i64": T.INT64, "f64": T.FLOAT64}
RANGES = {"u8": (0, 2**8), "i8": (-2**7, 2**7), "u16": (0, 2**16), "i16": (-2**15, 2**15), "u32": (0, 2**32),
          "i32": (-2**31, 2**31), "u64": (0, 2**64), "i64": (-2**63, 2**63)}
DENSE = {"f32": "<f4", "f16": "<f2", "f64": "<f8", "i8": "<i1", "i16": "<i2", "i32": "<i4", "i64": "<i8"}
BLOCKS = [q for q in gguf.GGMLQuantizationType if q.name not in (
    "F32", "F16", "F64", "I8", "I16", "I32", "I64", "BF16", "Q8_1")]  # the package's table has 40 bytes for Q8_1
ALIGNMENTS = [None, None, 8, 16, 64, 256, 1024, 4096]
checked = dict.fromkeys(("files read", "written to the byte", "edited", "split", "made from safetensors", "of version 1",
                         "of version 2", "big-endian", "with nested arrays", "sets of the package's"), 0)


def run(*args, ok=True):
    done = subprocess.run([TENFOLD, *map(str, args)], capture_output=True, check=False)
    assert not ok or done.returncode == 0, (args, done.returncode, done.stderr.decode())
    return done


def rand_text(r):
    return "".join(r.choice("abc xyz_09\n\"\\ĠéßЖ日😀") for _ in range(r.randrange(1, 12)))


def rand_scalar(r, kind):
    if kind == "string":
        return rand_text(r)
    if kind == "bool":
        return r.random() < 0.5
    if kind in ("f32", "f64"):
        return struct.unpack("<f", struct.pack("<f", r.choice([0.0, 1e-5, -3.25, 1e30, r.uniform(-9, 9)])))[0]
    low, high = RANGES[kind]
    return r.choice([low, high - 1, r.randrange(low, high)])


def rand_keys(r):
    """{key: (type in words, value)}"""
    keys = {}
    for i in range(r.randrange(0, 12)):
        kind = r.choice(list(KINDS))
        name = f"{r.choice(['llama', 'general', 'x.y', 'tokenizer.ggml'])}.{r.choice('abcdef')}{i}"
        if r.random() < 0.4:
            keys[name] = f"array<{kind}>", [rand_scalar(r, kind) for _ in range(r.randrange(1, 9))]
        else:
            keys[name] = kind, rand_scalar(r, kind)
    return keys


def rand_nested(r):
    """Nested arrays, two or three deep: a type in words and its value."""
    kind = r.choice(list(KINDS))
    inner = lambda: [rand_scalar(r, kind) for _ in range(r.randrange(1, 4))]
    if r.random() < 0.5:
        return f"array<array<{kind}>>", [inner() for _ in range(r.randrange(1, 4))]
    return f"array<array<array<{kind}>>>", [[inner() for _ in range(2)] for _ in range(2)]


def pack_nested(w, kind, value):
    """The bytes of an array in which every array has its own type; the package has no call for this."""
    inside = kind[6:-1]
    if not inside.startswith("array<"):
        return w._pack_val(value, T.ARRAY, False, sub_type=KINDS[inside])
    return struct.pack("<IQ", T.ARRAY, len(value)) + b"".join(pack_nested(w, inside, v) for v in value)


def with_nested(path, keys):
    """The file with keys of nested arrays added at the end of its keys; its tensors stay aligned."""
    data, w = path.read_bytes(), gguf.GGUFWriter(None, "llama")
    reader = gguf.GGUFReader(path)
    fields = [f for n, f in reader.fields.items() if not n.startswith("GGUF.")]
    end = max(f.offset + sum(int(p.nbytes) for p in f.parts) for f in fields)
    extra = b"".join(struct.pack("<Q", len(n)) + n.encode() + struct.pack("<I", T.ARRAY) + pack_nested(w, *v)
                     for n, v in keys.items())
    entries = data[end:data_end_of_header(reader, end)]
    head = data[:16] + struct.pack("<Q", len(fields) + len(keys)) + data[24:end] + extra + entries
    align = int(reader.alignment)
    path.write_bytes(head + bytes(-len(head) % align) + data[reader.data_offset:])


def data_end_of_header(reader, end):
    for t in reader.tensors:
        end = max(end, t.field.offset + sum(int(p.nbytes) for p in t.field.parts))
    return end


def as_version_1(data):
    """Converts a file of version 3 to version 1: lengths, counts and dimensions of 32 bits."""
    at, out = 24, bytearray(b"GGUF" + struct.pack("<I", 1) + data[8:12] + data[16:20])
    tensors, keys = struct.unpack_from("<QQ", data, 8)
    alignment = 32

    def text():
        nonlocal at
        n, = struct.unpack_from("<Q", data, at)
        raw = data[at + 8:at + 8 + n]
        out.extend(struct.pack("<I", n) + raw)
        at += 8 + n
        return raw

    def value(kind):
        nonlocal at
        if kind == T.STRING:
            text()
        elif kind == T.ARRAY:
            inner, n = struct.unpack_from("<IQ", data, at)
            out.extend(struct.pack("<II", inner, n))
            at += 12
            for _ in range(n):
                value(inner)
        else:
            size = (1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8)[kind]
            out.extend(data[at:at + size])
            at += size

    for _ in range(keys):
        name = text()
        kind, = struct.unpack_from("<I", data, at)
        out.extend(data[at:at + 4])
        at += 4
        if name == b"general.alignment":
            alignment, = struct.unpack_from("<I", data, at)
        value(kind)
    for _ in range(tensors):
        text()
        rank, = struct.unpack_from("<I", data, at)
        out.extend(data[at:at + 4] + b"".join(struct.pack("<I", d) for d in struct.unpack_from(f"<{rank}Q", data, at + 4)))
        at += 4 + 8 * rank
        out.extend(data[at:at + 12])
        at += 12
    body = data[at + -at % alignment:]
    return bytes(out) + bytes(-len(out) % alignment) + body


def add_key(w, name, kind, value):
    if kind.startswith("array<"):
        w.add_key_value(name, value, T.ARRAY, sub_type=KINDS[kind[6:-1]])
    else:
        w.add_key_value(name, value, KINDS[kind])


def rand_tensors(r):
    """[(name, layout or type, shape, bytes, array for the writer, raw type or None)]"""
    tensors = []
    for i in range(r.randrange(0, 7)):
        name = f"blk.{i}.{r.choice(['ffn', 'attn_q', 'w'])}.weight"
        outer = [r.randrange(1, 4) for _ in range(r.randrange(0, 3))]
        kind = r.random()
        if kind < 0.5:
            dtype = r.choice(list(DENSE))
            shape = outer + [r.randrange(1, 9)]
            a = np.frombuffer(r.randbytes(int(np.prod(shape)) * int(DENSE[dtype][2])), DENSE[dtype]).reshape(shape)
            tensors.append((name, dtype, shape, a.tobytes(), a, None))
        elif kind < 0.6:
            shape = outer + [r.randrange(1, 9)]
            a = np.frombuffer(r.randbytes(int(np.prod(shape)) * 2), "u1").reshape(shape[:-1] + [2 * shape[-1]])
            tensors.append((name, "bf16", shape, a.tobytes(), a, gguf.GGMLQuantizationType.BF16))
        else:
            q = r.choice(BLOCKS)
            per, size = gguf.GGML_QUANT_SIZES[q]
            n = r.randrange(1, 4)
            shape = outer + [n * per]
            a = np.frombuffer(r.randbytes(int(np.prod(outer or [1])) * n * size), "u1").reshape(outer + [n * size])
            tensors.append((name, f"gguf.{q.name.lower()}/1", shape, a.tobytes(), a, q))
    return tensors


def written(path, keys, tensors, align=None, **how):
    w = gguf.GGUFWriter(path, "llama", **how)
    if align:
        w.add_custom_alignment(align)
    for name, (kind, value) in keys.items():
        add_key(w, name, kind, value)
    for name, _, shape, _, a, q in tensors:
        w.add_tensor(name, a, raw_dtype=q)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def check_listing(path, keys, tensors):
    attrs = json.loads(run("info", "--json", path).stdout)["attrs"]
    types = json.loads(run("meta", "--types", "--json", path).stdout)
    for name, (kind, value) in keys.items():
        have = attrs[f"gguf.{name}"]
        if "f32" in kind or "f64" in kind:
            pack = lambda v: [pack(x) for x in v] if isinstance(v, list) else struct.pack("<f", v)
            assert pack(have) == pack(value), (name, kind, value, have)
        else:
            assert have == value, (name, kind, value, have)
        assert types[f"gguf.{name}"] == kind, (name, kind, types)
    listed = json.loads(run("ls", "--json", path).stdout)["tensors"]
    assert [t["name"] for t in listed] == [t[0] for t in tensors]
    for have, (name, kind, shape, data, _, _) in zip(listed, tensors):
        block = kind.startswith("gguf.")
        assert have["shape"] == shape and have["nbytes"] == len(data), (have, shape)
        assert (have["layout"], have["dtype"]) == ((kind, "u8") if block else ("dense", kind)), (have, kind)
        assert run("cat", "--raw", path, name + ("#data" if block else "")).stdout == data, (name, kind)


def read_back(path):
    """The answers of GGUFReader: keys with their types and values, tensors with shapes and
    bytes."""
    reader = gguf.GGUFReader(path)
    keys = {name: (tuple(t.name for t in f.types), f.contents()) for name, f in reader.fields.items()
            if not name.startswith("GGUF.")}
    tensors = [(t.name, t.tensor_type.name, [int(d) for d in t.shape], t.data.tobytes()) for t in reader.tensors]
    return keys, tensors


def check_file(folder, r, i):
    path, ours, there = folder / "a.gguf", folder / "b.gguf", folder / "there"
    keys, tensors, align = rand_keys(r), rand_tensors(r), r.choice(ALIGNMENTS)
    written(path, keys, tensors, align)
    if i % 3 == 1:
        nested = {f"x.nested{k}": rand_nested(r) for k in range(r.randrange(1, 3))}
        with_nested(path, nested)
        flat = lambda v: [x for y in v for x in flat(y)] if isinstance(v, list) else [v]
        have = gguf.GGUFReader(path)  # the package flattens them
        for name, (kind, value) in nested.items():
            got = flat(have.fields[name].contents())
            assert len(got) == len(flat(value)) and ("string" not in kind or got == flat(value)), (name, value, got)
        keys |= nested
        checked["with nested arrays"] += 1
    if i % 4 == 0:
        check_listing(path, keys, tensors)
        checked["files read"] += 1
    run("convert", "-q", "--force", "--no-sync", path, ours)
    assert ours.read_bytes() == path.read_bytes(), "written again it has other bytes"
    way = ("ztensor2", "safetensors")[i % 2]
    run("convert", "-q", "--force", "--no-sync", "-t", way, path, there)
    run("convert", "-q", "--force", "--no-sync", "-t", "gguf", there, ours)
    assert ours.read_bytes() == path.read_bytes(), ("other bytes by way of", way)
    checked["written to the byte"] += 1
    check_forms(folder, path, keys, tensors, align, r)
    if i % 3 == 0:
        check_edit(path, ours, r)
    if i % 5 == 0 and len(tensors) > 1:
        check_split(folder, path, keys, tensors)


def check_forms(folder, path, keys, tensors, align, r):
    """Other versions, the other byte order, and sets: all become the same bytes of version 3."""
    other, ours, data = folder / "other.gguf", folder / "b.gguf", path.read_bytes()
    for version, form in ((1, as_version_1(data)), (2, data[:4] + b"\2" + data[5:])):
        other.write_bytes(form)
        run("convert", "-q", "--force", "--no-sync", other, ours)
        assert ours.read_bytes() == data, ("of version", version)
        checked[f"of version {version}"] += 1
    dense = [t for t in tensors if t[5] is None]  # in blocks, the package keeps little-endian fields
    if not any("array<array" in kind for kind, _ in keys.values()):
        written(other, keys, dense, align, endianess=gguf.GGUFEndian.BIG)
        written(path, keys, dense, align)
        run("convert", "-q", "--force", "--no-sync", other, ours)
        assert ours.read_bytes() == path.read_bytes(), "from big-endian"
        run("convert", "-q", "--force", "--no-sync", "-o", "endian=big", path, ours)
        assert ours.read_bytes() == other.read_bytes(), "to big-endian"
        keys_there, tensors_there = read_back(ours)
        assert (keys_there, tensors_there) == read_back(other)
        path.write_bytes(data)
        checked["big-endian"] += 1
    if len(tensors) > 1 and align is None and not any("array<array" in kind for kind, _ in keys.values()):
        check_their_set(folder, path, keys, tensors, r)


def check_their_set(folder, path, keys, tensors, r):
    there = folder / "theirs"
    there.mkdir()
    written(there / "m.gguf", keys, tensors, split_max_tensors=r.randrange(1, len(tensors)))
    parts = sorted(there.iterdir())
    assert len(parts) > 1
    run("convert", "-q", "--force", "--no-sync", parts[0], folder / "b.gguf")
    assert (folder / "b.gguf").read_bytes() == path.read_bytes(), "a set of the package's is another model"
    run("merge", "-q", "--force", "--no-sync", "-o", folder / "b.gguf", *parts)
    assert (folder / "b.gguf").read_bytes() == path.read_bytes()
    for part in parts:
        part.unlink()
    there.rmdir()
    checked["sets of the package's"] += 1


def check_edit(path, ours, r):
    before_keys, before = read_back(path)
    template = rand_text(r) * r.choice([1, 400])
    reserve = ["--reserve", "2000"] if r.random() < 0.5 else []
    run("meta", path, "--set", f"tokenizer.chat_template={template}", "--string", "-o", ours, "--force", *reserve)
    for _ in range(2):
        keys, tensors = read_back(ours)
        keys.pop("tenfold.reserve", None)
        assert keys.pop("tokenizer.chat_template") == (("STRING",), template)
        assert keys == before_keys and tensors == before, "an edit changed more than it should"
        template = rand_text(r)  # again, in place
        run("meta", ours, "--set", f"tokenizer.chat_template={template}", "--string")
    run("meta", ours, "--rm", "tokenizer.chat_template")
    keys, tensors = read_back(ours)
    keys.pop("tenfold.reserve", None)
    assert keys == before_keys and tensors == before
    checked["edited"] += 1


def check_split(folder, path, keys, tensors):
    out = folder / "parts"
    run("split", "-q", path, "-o", out, "-t", "gguf", "--name", "m", "--max-size", "1")
    parts = sorted(out.iterdir())
    assert len(parts) == len(tensors), (parts, len(tensors))
    found = []
    for i, part in enumerate(parts):
        have, some = read_back(part)
        # the package does not accept nested arrays, which the whole file may have
        if i == 0:
            whole = run("verify", "--for", "llama.cpp", path, ok=False).returncode
            assert run("verify", "--for", "llama.cpp", part, ok=False).returncode == whole
        assert have["split.no"] == (("UINT16",), i) and have["split.count"] == (("UINT16",), len(parts))
        assert have["split.tensors.count"] == (("INT32",), len(tensors))
        assert i == 0 or set(have) <= {"split.no", "split.count", "split.tensors.count", "general.alignment"}
        found += some
        part_keys = set(have) - {"split.no", "split.count", "split.tensors.count"}
        assert i > 0 or part_keys >= set(keys), "keys are missing in the first file"
    assert found == read_back(path)[1], [(a, b) for a, b in zip(found, read_back(path)[1]) if a != b]
    run("merge", "-q", "--force", "-o", folder / "m.gguf", *parts)
    assert (folder / "m.gguf").read_bytes() == path.read_bytes(), "split and merged it has other bytes"
    for part in parts:
        part.unlink()
    out.rmdir()
    checked["split"] += 1


def check_from_safetensors(folder, r):
    dtype = r.choice(["f32", "f16", "i8", "i16", "i32", "i64", "f64"])
    path, out, peer = folder / "s.safetensors", folder / "s.gguf", folder / "p.gguf"
    entries, data, arrays = {}, b"", []
    for i in range(r.randrange(1, 4)):
        shape = [r.randrange(1, 5) for _ in range(r.randrange(1, 5))]
        a = np.frombuffer(r.randbytes(int(np.prod(shape)) * int(DENSE[dtype][2])), DENSE[dtype]).reshape(shape)
        entries[f"t{i}"] = {"dtype": dtype.upper(), "shape": shape, "data_offsets": [len(data), len(data) + a.nbytes]}
        data += a.tobytes()
        arrays.append((f"t{i}", dtype, shape, a.tobytes(), a, None))
    header = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    run("convert", "-q", "--force", "--no-sync", path, out)
    run("meta", out, "--set", "general.architecture=llama")
    written(peer, {}, arrays)
    assert out.read_bytes() == peer.read_bytes(), (dtype, [a[2] for a in arrays])
    checked["made from safetensors"] += 1


def check_aligned_splits(folder, r):
    """Split and merged with every alignment; gguf-split itself is wrong for those that are not
    32."""
    path = folder / "a.gguf"
    for align in [None] + [2**i for i in range(3, 17)]:
        keys, tensors = rand_keys(r), rand_tensors(r)
        while len(tensors) < 2:
            tensors = rand_tensors(r)
        written(path, keys, tensors, align)
        check_split(folder, path, keys, tensors)


def main():
    r = random.Random(19)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_aligned_splits(folder, r)
        for i in range(FILES):
            check_file(folder, r, i)
            if i % 4 == 1:
                check_from_safetensors(folder, r)
    print(", ".join(f"{n} {what}" for what, n in checked.items()))


main()
