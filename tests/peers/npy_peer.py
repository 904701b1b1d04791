#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares tenfold with numpy and ml_dtypes for .npy files, in both directions.

  npy_peer.py TENFOLD [FILES]

tenfold reads the files of numpy.save() with the same type, shape, order and elements, and writes the same
bytes again, directly and through zTensor 2. The files that tenfold makes from safetensors have the bytes
that numpy.save() writes for the same array, and numpy.load() reads them. Random headers for
ast.literal_eval() are accepted or refused by both, except for the differences listed at the end of this
file.
"""
import io
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np

TENFOLD = sys.argv[1]
FILES = int(sys.argv[2]) if len(sys.argv) > 2 else 200
warnings.simplefilter("ignore")

# numpy's type: ours.
NUMBERS = {"?": "bool", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32",
           "u8": "u64", "f2": "f16", "f4": "f32", "f8": "f64", "c8": "c64", "c16": "c128"}
UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"]
ML_BYTES = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz", "float8_e3m4",
            "float8_e4m3", "float8_e8m0fnu", "int4", "uint4", "float6_e2m3fn", "float4_e2m1fn"]
SAFE = {"bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
        "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16"}
checked = dict.fromkeys(("files read", "written to the byte", "made from safetensors", "headers alike"), 0)


def run(*args, ok=True):
    done = subprocess.run([TENFOLD, *map(str, args)], capture_output=True, check=False)
    assert not ok or done.returncode == 0, (args, done.returncode, done.stderr.decode())
    return done


def saved(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def rand_shape(r):
    kind = r.randrange(10)
    if kind == 0:
        return ()
    if kind == 1:
        return tuple(r.choice([0, 1, 3]) for _ in range(r.randrange(1, 4)))
    if kind == 2:
        return (1,) * r.randrange(1, 7)
    return tuple(r.randrange(1, 6) for _ in range(r.randrange(1, 5)))


def rand_name(r):
    return "".join(r.choice("abcxyz_019 '\"\\\n\té日\U0001f600\x7f\xa0\u3000") for _ in range(r.randrange(1, 6)))


def rand_fields(r, depth=0):
    fields, names = [], set()
    for _ in range(r.randrange(1, 5)):
        name = rand_name(r)
        if name in names or not name.strip():
            continue
        names.add(name)
        kind = rand_fields(r, depth + 1) if depth < 2 and r.random() < 0.2 else rand_code(r)
        if r.random() < 0.1 and name + "t" not in names:
            names.add(name + "t")
            name = (name + "t", name)
        fields.append((name, kind, r.choice([(2,), (2, 1), 3])) if r.random() < 0.2 else (name, kind))
    return np.dtype(fields or [("f", "<f4")], align=r.random() < 0.3)


def rand_code(r):
    """A descriptor, in any spelling that numpy accepts for a type."""
    mark = r.choice(["<", ">", "<", "="])
    kind = r.randrange(8)
    if kind == 0:
        return f"S{r.randrange(1, 9)}"
    if kind == 1:
        return f"{mark}U{r.randrange(1, 5)}"
    if kind == 2:
        return f"{mark}{r.choice('Mm')}8[{r.choice(['', '', '25', '7'])}{r.choice(UNITS)}]"
    if kind == 3:
        return r.choice([f"V{r.randrange(1, 20)}", f"{mark}f16", f"{mark}c32", f"{mark}m8"])
    return mark + r.choice(list(NUMBERS))


def rand_type(r):
    kind = r.randrange(12)
    if kind == 0:
        return rand_fields(r)
    if kind == 1:
        return np.dtype(getattr(ml_dtypes, r.choice(["bfloat16", "float8_e5m2", *ML_BYTES])))
    return np.dtype(rand_code(r))


def rand_array(r):
    """Any bytes, of any type, in any order."""
    dtype, shape = rand_type(r), rand_shape(r)
    n = int(np.prod(shape, dtype=int))
    data = r.randbytes(n * dtype.itemsize)
    if dtype == np.bool_:
        data = bytes(b & 1 for b in data)
    array = np.frombuffer(data, dtype=dtype, count=n) if n and dtype.itemsize else np.zeros(n, dtype)
    order = r.choice("CCF")
    return array.reshape(shape).copy(order) if order == "C" else array.reshape(shape[::-1]).T


def rows_first(a, stored):
    """The bytes of the file, element by element: numpy itself does not copy bytes between fields."""
    items = np.frombuffer(stored, np.dtype((np.void, a.dtype.itemsize)))
    fortran = a.flags.f_contiguous and not a.flags.c_contiguous
    return np.ascontiguousarray(items.reshape(a.shape[::-1]).T if fortran else items).tobytes()


def wanted(a, stored):
    """(dtype, shape, bytes) as tenfold lists them."""
    dtype, shape, little = a.dtype, list(a.shape), a.dtype.newbyteorder("<")
    descr = np.lib.format.dtype_to_descr(dtype)
    raw = rows_first(a, stored) if stored else b""
    if isinstance(descr, str) and descr[1:] in {c for c in NUMBERS if c != "?"} | {"b1"}:
        return NUMBERS.get(descr[1:], "bool"), shape, np.ascontiguousarray(a).astype(little, copy=False).view(
            little).tobytes() if dtype.itemsize == 1 or dtype == little else a.astype(little).tobytes()
    if descr == "<V2":
        return "bf16", shape, raw
    if descr == "<f1":
        return "f8_e5m2", shape, raw
    if dtype.kind in "Mm":
        return "i64", shape, np.ascontiguousarray(a).view(dtype.byteorder.replace("=", "<") + "i8").astype(
            "<i8").tobytes() if a.size else b""
    if dtype.kind == "U":
        n = dtype.itemsize // 4
        mark = ">" if dtype.str[0] == ">" else "<"
        return "u32", shape + [n], np.frombuffer(raw, mark + "u4").astype("<u4").tobytes()
    return "u8", shape + [dtype.itemsize], raw


def check_file(folder, r, i):
    a = rand_array(r)
    path, ours = folder / "a.npy", folder / "b.npy"
    path.write_bytes(saved(a))
    listed = json.loads(run("ls", "--json", path).stdout)
    t, = listed["tensors"]
    dtype, shape, data = wanted(a, path.read_bytes()[-a.nbytes:] if a.nbytes else b"")
    fortran = a.flags.f_contiguous and not a.flags.c_contiguous
    assert (t["name"], t["dtype"], t["shape"]) == ("arr_0", dtype, shape), (a.dtype, t)
    assert t["order"] == ("F" if fortran and len(shape) == a.ndim else "C"), (a.dtype, a.shape, t)
    # We would have written the same text; otherwise the text would be kept.
    assert ("numpy.header" in t["attrs"]) == (fortran and len(shape) > a.ndim), (a.dtype, a.shape, t)
    descr = np.lib.format.dtype_to_descr(a.dtype)
    if "numpy.descr" in t["attrs"]:
        assert t["attrs"]["numpy.descr"] == (descr if isinstance(descr, str) else repr(descr)), (t, descr)
    assert run("cat", "--raw", path, "arr_0").stdout == data, (a.dtype, a.shape, fortran)
    checked["files read"] += 1
    run("convert", "--force", "--no-sync", path, ours)
    assert ours.read_bytes() == path.read_bytes(), (a.dtype, a.shape)
    if i % 2:
        there = folder / "there.zt"
        run("convert", "--force", "--no-sync", path, there)
        run("convert", "--force", "--no-sync", there, ours)
        assert ours.read_bytes() == path.read_bytes(), (a.dtype, a.shape, "by way of zTensor 2")
        assert run("hash", path).stdout.split()[0] == run("hash", there).stdout.split()[0]
    checked["written to the byte"] += 1


def check_from_safetensors(folder, r):
    ours = r.choice(list(SAFE))
    dtype = np.dtype(getattr(ml_dtypes, "bfloat16") if ours == "bf16" else SAFE[ours])
    shape = rand_shape(r)
    n = int(np.prod(shape, dtype=int))
    data = r.randbytes(n * dtype.itemsize)
    if ours == "bool":
        data = bytes(b & 1 for b in data)
    a = np.frombuffer(data, dtype=dtype, count=n).reshape(shape) if n else np.zeros(shape, dtype)
    path, out = folder / "s.safetensors", folder / "s.npy"
    header = json.dumps({"arr_0": {"dtype": ours.upper(), "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    run("convert", "--force", "--no-sync", path, out)
    assert out.read_bytes() == saved(a), (ours, shape)
    again = np.load(out)
    assert again.shape == shape and again.tobytes() == data
    assert run("hash", path).stdout.split()[0] == run("hash", out).stdout.split()[0], (ours, shape)
    if len(shape) > 1:
        run("convert", "--force", "--no-sync", "--order", "F", path, out)
        assert out.read_bytes() == saved(np.asfortranarray(a)), (ours, shape, "F")
    checked["made from safetensors"] += 1


def check_hashes(folder):
    """The order of bytes and of rows is not content; the unit of a time is."""
    def hash_of(a):
        (folder / "x.npy").write_bytes(saved(a))
        return run("hash", folder / "x.npy").stdout.split()[0]
    times = np.arange(6).view("<M8[ns]").reshape(2, 3)
    assert hash_of(times) == hash_of(times.astype(">M8[ns]")) == hash_of(np.asfortranarray(times))
    assert hash_of(times) not in (hash_of(times.view("<M8[us]")), hash_of(times.view("<m8[ns]")), hash_of(times.view("<i8")))
    texts = np.array([["a", "bc"], ["", "d"]])
    assert hash_of(texts) == hash_of(texts.astype(">U2")) == hash_of(np.asfortranarray(texts)) != hash_of(texts.view("<u4"))
    numbers = np.arange(6.0).reshape(2, 3)
    assert hash_of(numbers) == hash_of(numbers.astype(">f8")) == hash_of(np.asfortranarray(numbers))


def check_padding(folder):
    """Headers of every length modulo 64, and those at the beginning of version 2."""
    path = folder / "p.npy"
    for n in [*range(1, 67), *range(65440, 65460)]:
        path.write_bytes(saved(np.zeros(3, [("x" * n, "<f4")])))
        t, = json.loads(run("ls", "--json", path).stdout)["tensors"]
        assert "numpy.header" not in t["attrs"], n
        run("convert", "--force", "--no-sync", path, folder / "p.safetensors")
        run("convert", "--force", "--no-sync", folder / "p.safetensors", folder / "p2.npy")
        assert (folder / "p2.npy").read_bytes() == path.read_bytes(), n


# -------------------------------------------------------------------- headers

PIECES = {
    "descr": ["'<f4'", '"<f4"', "'''<f4'''", "u'<f4'", "r'<f4'", "'<' 'f4'", "'\\x3cf4'", "'<f\\u0034'", "('<f4')", "b'<f4'",
              "'f4'", "'|f4'", "'=f4'", "'float32'", "'single'", "'<float32'", "'f'", "'<f'", "'>f'", "4", "None", "f'<f4'",
              "['<f4']", "('<f4',)", "'<f3'", "''", "'<'", "[]", "[('a', '<f2'), ('b', '<f2')]",
              "[('a', '<f2'), ('a', '<f2')]", "[('a', '<f2', (2,))]", "[('a', '<f2', 2)]", "[(('t', 'a'), '<f4')]",
              "[['a', '<f4']]", "[('a',)]", "[('', '|V4')]", "[('', '|V2'), ('', '|V2')]", "'<i4'", "'?'", "'S4'", "'V4'",
              "'U1'", "'M8[ns]'", "'M8[xs]'", "'m8[3D]'", "'datetime64[s]'", "'i4 '", "'<V2'", "'\\74f4'", "{}", "'<f4", "'<f4''"],
    "fortran_order": ["False", "True", "0", "1", "'False'", "false", "None", "(False)", "not True", "[]"],
    "shape": ["(2, 3)", "(2, 3,)", "(6,)", "(6)", "[2, 3]", "2, 3", "()", "(0,)", "(-0, 3)", "(-1,)", "(+6,)", "(--6,)",
              "(0x6,)", "(0b110,)", "(0o6,)", "(6L,)", "(2L, 3L)", "(06,)", "(0_6,)", "(1_0,)", "(1__0,)", "(6_,)",
              "(00, 3)", "(2.0, 3)", "(2, True)", "('2', 3)", "((2), (3))", "((2, 3))", "((2, 3),)", "(3*2,)", "(2 ,\n3 # x\n)",
              "(2**3,)", "(9223372036854775808, 0)", "(9223372036854775807, 0)", "(4611686018427387904, 4, 0)",
              "(1e1,)", "(2 3)", "(,)", "(2,,3)", "(6l,)", "(6 L,)", "(1j,)", "(2\\\n, 3)"],
}


def rand_header(r):
    def pick(key):
        return PIECES[key][0] if r.random() < 0.6 else r.choice(PIECES[key])
    keys = ["descr", "fortran_order", "shape"]
    r.shuffle(keys)
    if r.random() < 0.05:
        keys.append(r.choice(["x", "shape"]))
    if r.random() < 0.05:
        keys.pop(0)
    blank = r.choice(["", " ", "  ", "\n", "\t", " # c\n"]) if r.random() < 0.3 else " "
    items = [r.choice(["'%s'", '"%s"', "u'%s'", "('%s')"]) % k + blank + ":" + blank + pick(k if k in PIECES else "descr")
             for k in keys]
    text = "{" + ("," + blank).join(items) + r.choice(["", ",", ", "]) + "}"
    if r.random() < 0.1:
        text = r.choice(["(%s)", "%s,", "[%s]", "\t %s", "%s x", "\n%s\n\n", "%s#", "%s\0", "dict(%s)", "%s\xe9"]) % text
    return text


def numpy_reads(data):
    """The result of numpy.load(): (shape, bytes as stored), or None."""
    try:
        a = np.load(io.BytesIO(data))
        return list(a.shape), a.tobytes("A")
    except Exception:  # it can fail in many ways
        return None


def check_header(folder, r, differences):
    text, major = rand_header(r), r.choice([1, 1, 2, 3])
    raw = text.encode("utf-8" if major == 3 else "latin1") + b"\n"
    prefix = b"\x93NUMPY" + bytes([major, 0]) + struct.pack("<H" if major == 1 else "<I", len(raw))
    data = prefix + raw + bytes(range(64))
    path = folder / "h.npy"
    path.write_bytes(data)
    theirs = numpy_reads(data)
    done = run("ls", "--json", path, ok=False)
    assert done.returncode in (0, 4), done
    if (theirs is None) != (done.returncode == 4):
        differences.setdefault((theirs is None, done.stderr.decode().split(": npy: ")[-1].split(" (at")[0]), []).append(text)
        return
    if theirs is not None:
        t, = json.loads(done.stdout)["tensors"]
        assert t["shape"][:len(theirs[0])] == theirs[0], (text, t)
        assert t["nbytes"] == len(theirs[1]), (text, t)
        code = run("convert", "--force", "--no-sync", path, folder / "h2.npy", ok=False).returncode
        assert code == 0 and (folder / "h2.npy").read_bytes() == data, (text, code)
    checked["headers alike"] += 1


def main():
    with tempfile.TemporaryDirectory() as name:
        folder, differences = pathlib.Path(name), {}
        check_hashes(folder)
        check_padding(folder)
        for i in range(FILES):
            check_file(folder, random.Random(i), i)
        for i in range(FILES // 5):
            check_from_safetensors(folder, random.Random(i))
        for i in range(FILES * 2):
            check_header(folder, random.Random(i), differences)
        unknown = {k: v[:3] for k, v in differences.items() if not any(w in k[1] or k[1] in w for w in DIFFERENT if k[1])}
        assert not unknown, json.dumps([[str(k), v] for k, v in unknown.items()], indent=1)
    print("npy: " + ", ".join(f"{n} {what}" for what, n in checked.items()))


# Differences between our verdict and numpy's, by a part of our message, and the reason.
DIFFERENT = {
    "twice": "numpy takes the last of two keys; two readers may disagree",
    "no text, list of fields, or pair": "numpy takes an empty dict for an empty list, by accident",
}

if __name__ == "__main__":
    main()
