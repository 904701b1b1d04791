#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares Tenfold with the safetensors package, in both directions.

    safetensors_peer.py TENFOLD

Tenfold reads the same values from the package's files. Tenfold's files have the same bytes, and the
package reads them. Both refuse the same files, except for the differences listed at the end of this
file. Needs safetensors, numpy and ml_dtypes.
"""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, TensorSpec, deserialize, safe_open, serialize

TENFOLD = sys.argv[1]
FIXTURES = pathlib.Path(__file__).parent.parent / "formats" / "safetensors"

# Ours: the format's name, the name that the package's writer uses (None: it cannot write it),
# numpy's.
TYPES = {
    "bool": ("BOOL", "bool", np.bool_),
    "f4_e2m1": ("F4", "float4_e2m1fn_x2", ml_dtypes.float4_e2m1fn),
    "f6_e2m3": ("F6_E2M3", None, ml_dtypes.float6_e2m3fn),
    "f6_e3m2": ("F6_E3M2", None, ml_dtypes.float6_e3m2fn),
    "u8": ("U8", "uint8", np.uint8),
    "i8": ("I8", "int8", np.int8),
    "f8_e5m2": ("F8_E5M2", "float8_e5m2", ml_dtypes.float8_e5m2),
    "f8_e4m3fn": ("F8_E4M3", "float8_e4m3fn", ml_dtypes.float8_e4m3fn),
    "f8_e8m0": ("F8_E8M0", "float8_e8m0fnu", ml_dtypes.float8_e8m0fnu),
    "f8_e4m3fnuz": ("F8_E4M3FNUZ", "float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
    "f8_e5m2fnuz": ("F8_E5M2FNUZ", "float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
    "i16": ("I16", "int16", np.int16),
    "u16": ("U16", "uint16", np.uint16),
    "f16": ("F16", "float16", np.float16),
    "bf16": ("BF16", "bfloat16", ml_dtypes.bfloat16),
    "i32": ("I32", "int32", np.int32),
    "u32": ("U32", "uint32", np.uint32),
    "f32": ("F32", "float32", np.float32),
    "c64": ("C64", "complex64", np.complex64),
    "f64": ("F64", "float64", np.float64),
    "i64": ("I64", "int64", np.int64),
    "u64": ("U64", "uint64", np.uint64),
}
BITS = {"f4_e2m1": 4, "f6_e2m3": 6, "f6_e3m2": 6}
checked = {"tensors": 0, "values": 0, "files": 0, "refusals": 0}


def bits_of(dtype):
    return BITS.get(dtype, 8 * np.dtype(TYPES[dtype][2]).itemsize)


def run(*arguments, ok=True):
    r = subprocess.run([TENFOLD, *map(str, arguments)], capture_output=True)
    if ok and r.returncode != 0:
        sys.exit(f"tenfold {' '.join(map(str, arguments))}: {r.stderr.decode()}")
    return r


def unpack(data, bits):
    """One number in a byte, the first in the least significant bits."""
    stream = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    groups = stream[:len(stream) // bits * bits].reshape(-1, bits)
    return np.packbits(groups, axis=1, bitorder="little").reshape(-1)


def numbers(dtype, data):
    if dtype in BITS:
        return unpack(data, BITS[dtype]).view(TYPES[dtype][2])
    return np.frombuffer(data, TYPES[dtype][2])


def as_number(value):
    return {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}.get(value, value) \
        if isinstance(value, str) else value


def same_values(dtype, said, data):
    want = numbers(dtype, data)
    if dtype == "c64":
        got = np.array([complex(as_number(a), as_number(b)) for a, b in said], np.complex64)
        return np.array_equal(got.view(np.float32), want.view(np.float32), equal_nan=True)
    if want.dtype.kind in "iub":
        return list(said) == want.tolist()
    # Only as many digits are printed as the type needs, so they represent a number of that type.
    got = np.array([as_number(v) for v in said], np.float64).astype(TYPES[dtype][2])
    return np.array_equal(got.astype(np.float64), want.astype(np.float64), equal_nan=True)


# -------------------------------------------------------------------- making

def rand_shape(r, dtype):
    shape = [r.choice([0, 1, 2, 3, 5, 8]) for _ in range(r.randrange(5))]
    if dtype in BITS:  # only whole bytes; the package requires an even last dimension
        shape.append(8)
    return shape


def rand_data(r, dtype, shape):
    n = bits_of(dtype) * int(np.prod(shape, dtype=object)) // 8
    return bytes(r.randrange(2) for _ in range(n)) if dtype == "bool" else r.randbytes(n)


def rand_name(r):
    alphabet = "abcxyz._-/# \"\\\n\t\x01\x1f\x7féß日\U0001f600\u2028"
    return "".join(r.choice(alphabet) for _ in range(r.randrange(1, 12)))


def rand_model(r, n, writable=True):
    """{name: (dtype, shape, bytes)}"""
    names = [d for d in TYPES if TYPES[d][1] or not writable]
    out = {}
    for _ in range(n):
        dtype = r.choice(names)
        shape = rand_shape(r, dtype)
        out[rand_name(r)] = (dtype, shape, rand_data(r, dtype, shape))
    return out


def package_writes(model, metadata):
    spec, keep = {}, []
    for name, (dtype, shape, data) in model.items():
        keep.append(np.frombuffer(data + b"\0", np.uint8))
        if dtype == "f4_e2m1":  # reported in units of two bytes
            shape = shape[:-1] + [shape[-1] // 2]
        spec[name] = TensorSpec(dtype=TYPES[dtype][1], shape=shape, data_ptr=keep[-1].ctypes.data,
                                data_len=len(data))
    return bytes(serialize(spec, metadata=metadata))


def compose(model, metadata=None):
    """In the order of the dictionary: no package writes files like this."""
    header, body = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in model.items():
        header[name] = {"data_offsets": [len(body), len(body) + len(data)], "shape": shape,
                        "dtype": TYPES[dtype][0]}
        body += data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


# ------------------------------------------------------------------ checking

def tenfold_reads(path, model, metadata):
    info = json.loads(run("info", "--json", path).stdout)
    assert info["format"] == "safetensors" and not info["warnings"], info
    assert info["attrs"].get("safetensors.metadata", {}) == (metadata or {}), (info["attrs"], metadata)
    listed = json.loads(run("ls", "--json", path).stdout)["tensors"]
    assert {t["name"] for t in listed} == set(model), path
    for t in listed:
        dtype, shape, data = model[t["name"]]
        assert (t["dtype"], t["shape"], t["nbytes"]) == (dtype, shape, len(data)), t
        part = t["parts"][0]
        assert path.read_bytes()[part["offset"]:part["offset"] + part["stored"]] == data, t["name"]
        checked["tensors"] += 1
    return listed


def tenfold_shows(path, model):
    """Slower, so only for some: compares the values that the command prints."""
    for name, (dtype, shape, data) in model.items():
        if "\0" in name:
            continue
        assert run("cat", "--raw", path, name).stdout == data, name
        said = json.loads(run("cat", "--json", path, name).stdout)
        assert said["dtype"] == dtype and said["shape"] == shape
        assert same_values(dtype, said["values"], data), (name, dtype, said["values"])
        checked["values"] += len(said["values"])


def package_reads(data, model, metadata):
    got = {name: (t["dtype"], t["shape"], bytes(t["data"])) for name, t in deserialize(data)}
    assert got == {n: (TYPES[d][0], s, b) for n, (d, s, b) in model.items()}
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as f:
        f.write(data)
        f.flush()
        with safe_open(f.name, framework="np") as opened:
            assert set(opened.keys()) == set(model)
            assert (opened.metadata() or {}) == (metadata or {})
    checked["files"] += 1


def check_model(folder, r, n, metadata):
    model = rand_model(r, n)
    theirs, ours = folder / "theirs.safetensors", folder / "ours.safetensors"
    theirs.write_bytes(package_writes(model, metadata))
    tenfold_reads(theirs, model, metadata)
    run("convert", "--force", theirs, ours)
    assert ours.read_bytes() == theirs.read_bytes(), "rewritten, it is not the same"
    # Tensors and fields in another order give the same bytes. The package keeps metadata in an
    # unordered map, so the order is only defined for a single pair.
    other = folder / "other.safetensors"
    shuffled = list(model.items())
    r.shuffle(shuffled)
    if not metadata or len(metadata) == 1:
        other.write_bytes(compose(dict(shuffled), metadata))
        run("convert", "--force", other, ours)
        assert ours.read_bytes() == theirs.read_bytes(), "composed otherwise, it is not the same"
    package_reads(ours.read_bytes(), model, metadata)


def check_every_type(folder):
    r = random.Random(7)
    model = {f"w.{d}": (d, [4, 8], rand_data(r, d, [4, 8])) for d in TYPES}
    for d in TYPES:  # all bit patterns of the small types, special values of the others
        if bits_of(d) <= 8 and d != "bool":
            size = 255 if bits_of(d) == 6 else 256
            model[f"all.{d}"] = (d, [8 * size // bits_of(d)], bytes(range(size)))
    for d, values in {"f32": [np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4028235e38, 0.1],
                      "f64": [np.nan, np.inf, 5e-324, 1.7976931348623157e308, 0.1],
                      "f16": [np.nan, -np.inf, 6e-8, 65504], "bf16": [np.nan, np.inf, 1e-40, 3e38],
                      "c64": [1 - 2j, complex(np.nan, np.inf)],
                      "i64": [-2 ** 63, 2 ** 63 - 1], "u64": [2 ** 64 - 1, 2 ** 53 + 1]}.items():
        data = np.array(values).astype(TYPES[d][2]) if d[0] != "u" else np.array(values, np.uint64)
        model[f"edge.{d}"] = (d, [len(values)], data.tobytes())
    path = folder / "types.safetensors"
    path.write_bytes(compose(model))
    tenfold_reads(path, model, None)
    tenfold_shows(path, model)
    ours = folder / "types2.safetensors"
    run("convert", path, ours)
    package_reads(ours.read_bytes(), model, None)
    writable = {n: t for n, t in model.items() if TYPES[t[0]][1]}
    path.write_bytes(compose(writable))
    run("convert", "--force", path, ours)
    assert ours.read_bytes() == package_writes(writable, None)


def check_options(folder):
    r = random.Random(8)
    model, metadata = rand_model(r, 9), {"k": "v"}
    path, ours = folder / "in.safetensors", folder / "out.safetensors"
    path.write_bytes(compose(model, metadata))
    for options in (["align=4096"], ["align=1"], ["reserve=1000"], ["align=64", "reserve=1"], ["order=file"]):
        run("convert", "--force", *sum([["-o", o] for o in options], []), path, ours)
        data = ours.read_bytes()
        n, = struct.unpack_from("<Q", data)
        package_reads(data, model, metadata)
        header = data[8:8 + n]
        if "align=4096" in options:
            assert (8 + n) % 4096 == 0
        if "align=1" in options:
            assert header.endswith(b"}")
        if "reserve=1000" in options:
            assert n - len(header.rstrip()) >= 1000 and n % 8 == 0
        if "order=file" in options:
            assert [k for k in json.loads(header) if k != "__metadata__"] == list(model)
    for wrong in ("align=3", "align=0", "align=131072", "order=name"):
        assert run("convert", "--force", "-o", wrong, path, ours, ok=False).returncode == 2, wrong
    run("convert", "--force", "-t", "safetensors", path, "-")


def check_shards(folder):
    """Shards that the package wrote, by directory and by index, become the file that it would
    write."""
    r = random.Random(9)
    model = rand_model(r, 20)
    shards = {"a-00001.safetensors": {}, "b-00002.safetensors": {}, "c-00003.safetensors": {}}
    places = {name: r.choice(list(shards)) for name in model}
    for name, shard in places.items():
        shards[shard][name] = model[name]
    for shard, part in shards.items():
        (folder / shard).write_bytes(package_writes(part, {"format": "pt"}))
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    ours = folder / "whole.bin"
    for path in (index, folder):
        listed = json.loads(run("ls", "--json", path).stdout)["tensors"]
        assert [t["name"] for t in listed] == list(model)
        run("convert", "--force", "-t", "safetensors", path, ours)
        assert ours.read_bytes() == package_writes(model, {"format": "pt"})
        package_reads(ours.read_bytes(), model, {"format": "pt"})


def package_verdict(path):
    try:
        deserialize(path.read_bytes())
        return True
    except (SafetensorError, BaseException) as e:  # its panics are BaseExceptions
        if isinstance(e, (KeyboardInterrupt, SystemExit)):
            raise
        return False


def check_corpus():
    """Both readers read the fixtures: the verdicts are the same, except for those listed below."""
    expect = json.loads((FIXTURES / "expect.json").read_text())
    different = set()
    for name in expect["reject"]:
        path = FIXTURES / "reject" / name
        if path.is_file() and path.suffix == ".safetensors":
            assert run("verify", path, ok=False).returncode in (1, 3, 4), name
            checked["refusals"] += 1
            if package_verdict(path):
                different.add(path.stem)
    assert different == set(STRICTER), (different ^ set(STRICTER))
    for name, said in expect["valid"].items():
        path = FIXTURES / "valid" / name
        if path.is_file() and not said["lenient"]:
            assert package_verdict(path), f"the package refuses {name}"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_every_type(folder)
        check_options(folder)
        (folder / "shards").mkdir()
        check_shards(folder / "shards")
        for seed in range(25):
            r = random.Random(seed)
            metadata = [None, {"format": "pt"}, {rand_name(r): rand_name(r) for _ in range(5)}][seed % 3]
            check_model(folder, r, r.randrange(1, 30), metadata)
    check_corpus()
    print("safetensors: " + ", ".join(f"{n} {what}" for what, n in checked.items()) + " agree")


# Refused by Tenfold (without --lenient), accepted by the package, with the reason.
STRICTER = {
    "tensor_twice_same": "the format forbids duplicate keys; the package takes the last",
    "metadata_key_twice": "the same",
    "metadata_key_twice_escaped": "the same",
    "metadata_key_twice_of_many": "the same",
    "unknown_field_twice": "the same",
    "leading_space": "the format wants '{' first",
    "metadata_null": "the format wants a map of strings; the package takes null for none",
    "header_entry_array": "the package takes an array for an entry, by accident of its JSON library",
    "dtype_object": "the same: {\"F32\": null} for \"F32\"",
    "bool_of_2": "opens, but does not verify",
    "name_too_long": "our limit of 65,536 bytes, which a caller may raise",
    "rank_65": "our limit of 64 dimensions, which a caller may raise",
    "too_deep": "our limit of 64 levels, which a caller may raise",
}

if __name__ == "__main__":
    main()
