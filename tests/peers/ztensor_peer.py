#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares Tenfold with the ztensor package (2.x), in both directions.

    ztensor_peer.py TENFOLD

Tenfold reads the same values from the package's files, and writes the same bytes again if they are
canonical. The package opens, verifies and reads Tenfold's files, and writes the same bytes again.
Needs ztensor and numpy.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import ztensor
except ImportError:
    sys.exit("the package ztensor is not installed")

TENFOLD = sys.argv[1]
WIDTHS = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u64": 8,
          "u32": 4, "u16": 2, "u8": 1}
# name: (dtype, bytes of n elements, ours)
LOGICAL = {"bool": ("u8", lambda n: n, "bool"), "f8_e4m3fn": ("u8", lambda n: n, "f8_e4m3fn"),
           "f8_e5m2": ("u8", lambda n: n, "f8_e5m2"), "f8_e8m0": ("u8", lambda n: n, "f8_e8m0"),
           "f4_e2m1": ("u8", lambda n: n // 2, "f4_e2m1"),
           "complex64": ("f32", lambda n: 8 * n, "c64"),
           "complex128": ("f64", lambda n: 16 * n, "c128")}
checked = {"tensors": 0, "files": 0, "identical": 0}


def run(*arguments):
    r = subprocess.run([TENFOLD, *map(str, arguments)], capture_output=True, check=False)
    if r.returncode != 0:
        sys.exit(f"tenfold {' '.join(map(str, arguments))}: {r.stderr.decode()}")
    return r.stdout


def need(ok, *words):
    if not ok:
        sys.exit(" ".join(map(str, words)))


def rand_model(r, n):
    """{name: (shape, dtype, logical or None, bytes)}; some tensors are equal."""
    model, pool = {}, []
    for _ in range(n):
        name = "".join(r.choice("abxyz._-/ \u00e9\u65e5") for _ in range(r.randrange(1, 12)))
        shape = [r.choice([0, 1, 2, 3, 8]) for _ in range(r.randrange(4))] + [2]
        count = 1
        for d in shape:
            count *= d
        logical = r.choice([None, None, *LOGICAL])
        dtype = LOGICAL[logical][0] if logical else r.choice(list(WIDTHS))
        size = LOGICAL[logical][1](count) if logical else WIDTHS[dtype] * count
        data = bytes(r.randrange(2) for _ in range(size)) if logical == "bool" else r.randbytes(size)
        same = [d for d in pool if len(d) == size]
        if same and logical != "bool" and r.random() < 0.3:
            data = r.choice(same)
        pool.append(data)
        model[name] = (shape, dtype, logical, data)
    return model


def package_writes(model, path, attributes=None, **options):
    w = ztensor.Writer(str(path), **options)
    for name in sorted(model, key=str.encode):
        shape, dtype, logical, data = model[name]
        w.add(name, data, shape, dtype, logical)
    if attributes is not None:
        w.set_attributes(attributes)
    w.finish()


def we_read(path, model):
    listed = json.loads(run("ls", "--json", path))["tensors"]
    need([t["name"] for t in listed] == sorted(model, key=str.encode), "other names:", listed)
    for t in listed:
        shape, dtype, logical, data = model[t["name"]]
        need(t["shape"] == shape and t["dtype"] == (LOGICAL[logical][2] if logical else dtype), t)
        need(run("cat", "--raw", "--", path, t["name"]) == data, t["name"], "has other bytes")
        checked["tensors"] += 1
    run("verify", path)
    checked["files"] += 1


def package_reads(path, model):
    with ztensor.open(str(path)) as source:
        need(sorted(source.keys()) == sorted(model), "the package has other names")
        for name, (shape, dtype, logical, data) in model.items():
            t = source[name]
            need(list(t.shape) == shape and t.tobytes() == data, name, "is other there")
            checked["tensors"] += 1
    ztensor.verify(str(path), True)
    checked["files"] += 1


def same_bytes(a, b, what):
    need(a.read_bytes() == b.read_bytes(), what, "are other bytes:", a, b)
    checked["identical"] += 1


def canonical(r, folder):
    for i in range(25):
        model = rand_model(r, r.randrange(9))
        attributes = r.choice([None, {}, {"a": 1, "longer": [1.5, -3, None, True, "x", 0.1], "b": {"k": 2.0}}])
        theirs, ours = folder / f"their{i}.zt", folder / f"our{i}.zt"
        package_writes(model, theirs, attributes)
        we_read(theirs, model)
        run("verify", "--canonical", theirs)
        run("convert", theirs, ours)
        same_bytes(theirs, ours, "canonical")
        package_reads(ours, model)


def options(r, folder):
    model = rand_model(r, 8)
    model["big"] = ([300000], "u8", None, bytes(300000))
    source = folder / "source.zt"
    package_writes(model, source)
    for i, choice in enumerate([["align=4096"], ["align=1M"], ["encoding=zstd"], ["encoding=zstd", "level=19"],
                                ["digest=sha256"], ["small=yes"], ["canonical=no"]]):
        path = folder / f"option{i}.zt"
        run("convert", *[w for o in choice for w in ("-o", o)], source, path)
        package_reads(path, model)
        we_read(path, model)
        back = folder / f"back{i}.zt"
        run("convert", path, back)
        same_bytes(source, back, "back from " + " ".join(choice))
    for i, more in enumerate([{"align": 4096}, {"align": 1 << 20}]):
        path = folder / f"aligned{i}.zt"
        package_writes(model, path, canonical=False, **more)
        we_read(path, model)
        again = folder / f"again{i}.zt"
        run("convert", "-o", f"align={more['align']}", path, again)
        same_bytes(path, again, "aligned")


def encoded(r, folder):
    model = {"z": ([3 << 20], "u8", None, (r.randbytes(1000) * 4000)[:3 << 20]), "e": ([0], "f32", None, b"")}
    path = folder / "encoded.zt"
    w = ztensor.Writer(str(path), canonical=False)
    for name, (shape, dtype, _, data) in sorted(model.items()):
        w.add(name, data, shape, dtype, None, "zt.zstd-seekable/1")
    w.finish()
    we_read(path, model)
    need(run("cat", "--raw", path, "z[2000000:2000100]") == model["z"][3][2000000:2000100], "a range")


def parts(folder):
    path, again = folder / "parts.zt", folder / "parts-again.zt"
    w = ztensor.Writer(str(path))
    w.add_object("csr", [2, 3], {
        "values": {"dtype": "f32", "data": bytes(range(12))},
        "indices": {"dtype": "u32", "data": b"".join(i.to_bytes(4, "little") for i in (0, 2, 1))},
        "indptr": {"dtype": "u32", "data": b"".join(i.to_bytes(4, "little") for i in (0, 2, 3))},
    }, layout="zt.sparse_csr/1")
    w.add_object("x", [4], {"data": {"dtype": "u8", "data": b"\1\2\3\4"}}, attributes={"note": "hi", "n": [1, -2]})
    w.finish()
    run("verify", path)
    run("convert", path, again)
    same_bytes(path, again, "parts")


def grown(r, folder):
    """One program appends to a file, then the other: both read it, and the earlier content
    stays."""
    for i in range(6):
        first, second, third = ({f"{tag}.{k}": v for k, v in rand_model(r, 4).items()} for tag in "abc")
        path, more = folder / f"grown{i}.zt", folder / f"more{i}.zt"
        package_writes(first, path)
        package_writes(second, more)
        before = path.read_bytes()
        run("append", path, more)
        need(path.read_bytes()[:len(before)] == before, "append changed what was there")
        we_read(path, first | second)
        package_reads(path, first | second)
        w = ztensor.Writer(str(path), canonical=False, append=True)
        for name in sorted(third, key=str.encode):
            shape, dtype, logical, data = third[name]
            w.add(name, data, shape, dtype, logical)
        w.finish()
        we_read(path, first | second | third)
        run("append", path)  # nothing to do
        package_reads(path, first | second | third)


def shards(folder):
    """A fixture, since the package's Python writer has no shards."""
    overlay = pathlib.Path(__file__).parent.parent / "formats" / "ztensor2" / "valid" / "overlay" / "model.zt"
    with ztensor.open(str(overlay)) as source:
        want = {name: source[name].tobytes() for name in source.keys()}
    for name, data in want.items():
        need(run("cat", "--raw", overlay, name) == data, "shard", name)
    single = folder / "single.zt"
    run("convert", overlay, single)
    with ztensor.open(str(single)) as source:
        need({n: source[n].tobytes() for n in source.keys()} == want, "the overlay in one file")


def main():
    r = random.Random(2)
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        canonical(r, folder)
        options(r, folder)
        encoded(r, folder)
        parts(folder)
        shards(folder)
        grown(r, folder)
        safetensors = folder / "m.safetensors"
        model = {n: t for n, t in rand_model(r, 6).items() if t[2] not in ("complex128",)}
        package_writes(model, folder / "m.zt")
        run("convert", folder / "m.zt", safetensors)
        run("convert", safetensors, folder / "m2.zt")
        same_bytes(folder / "m.zt", folder / "m2.zt", "by way of safetensors")
    print(", ".join(f"{n} {what}" for what, n in checked.items()), f"with ztensor {version()}")


def version():
    import importlib.metadata
    return importlib.metadata.version("ztensor")


if __name__ == "__main__":
    main()
