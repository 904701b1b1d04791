#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tenfold reads stores of zarr-python; zarr-python and tensorstore read the stores that Tenfold writes. The bits are
equal.

  zarr_peer.py TENFOLD
"""
import json
import itertools
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

try:
    import numpy as np
    import numcodecs
    import zarr
    import tensorstore
    from zarr import codecs
except ImportError as missing:
    print(f"SKIPPED: {missing}; .venv/bin/pip install zarr tensorstore")
    sys.exit(0)

warnings.simplefilter("ignore")
TENFOLD = sys.argv[1]
rng = np.random.default_rng(11)
TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
SHAPES = [(), (1,), (7,), (5, 4), (30, 21), (3, 4, 5), (2, 3, 2, 3), (0, 3)]


def tenfold(*args):
    return subprocess.run([TENFOLD, *map(str, args)], check=True, stdout=subprocess.PIPE).stdout


def array(dtype, shape):
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    if dtype == bool:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "fc":  # also runs of equal bytes, so codecs can compress something
        return (rng.integers(-4, 5, shape) * 0.5).astype(dtype)
    return np.frombuffer(rng.bytes(size), dtype).reshape(shape).copy()


V2 = [None, numcodecs.Zstd(level=1), numcodecs.GZip(), numcodecs.Zlib(), numcodecs.LZ4()] + [
    numcodecs.Blosc(cname=c, shuffle=s, clevel=5) for c in ("lz4", "lz4hc", "blosclz", "zlib", "zstd") for s in (0, 1, 2)]
V3 = [[], [codecs.ZstdCodec(level=3)], [codecs.GzipCodec()], [codecs.ZstdCodec(level=1), codecs.Crc32cCodec()]] + [
    [codecs.BloscCodec(cname=c, shuffle=s, typesize=4)] for c in ("lz4", "zstd", "blosclz") for s in ("shuffle", "noshuffle", "bitshuffle")]


def make(path, version, arrays):
    root = zarr.open_group(path, mode="w", zarr_format=version)
    root.attrs["title"] = "ä"
    packers = itertools.cycle(V2 if version == 2 else V3)
    for i, (dtype, shape) in enumerate(itertools.product(TYPES + [">f4", ">i8"], SHAPES)):
        if dtype[0] == ">" and version == 3:
            continue
        a, name = array(dtype, shape), f"g{i % 3}/{dtype.strip('>')}_{dtype[0] == '>'}_{i}"
        chunks = tuple(int(rng.integers(1, n + 2)) for n in shape)
        more = {"order": "CF"[i % 2]} if version == 2 else {}
        if version == 3 and len(shape) == 2 and i % 3 == 0 and 0 not in shape:
            more = {"shards": tuple(c * 2 for c in chunks)}
        z = root.create_array(name, shape=shape, dtype=dtype, chunks=chunks, compressors=next(packers),
                              fill_value=0, config={"write_empty_chunks": i % 2 == 0}, **more)
        if a.size:
            z[...] = a
        elif shape == ():
            z[...] = a
        arrays[name] = a
    big = array("float32", (256, 300)).cumsum(1)
    for i, packer in enumerate(V2 if version == 2 else V3):
        root.create_array(f"big{i}", data=big, chunks=(100, 256), compressors=packer)
        arrays[f"big{i}"] = big


def check_read(version, folder):
    arrays, path = {}, folder / f"v{version}.zarr"
    make(path, version, arrays)
    listed = json.loads(tenfold("ls", "--json", path))["tensors"]
    assert {t["name"] for t in listed} == set(arrays), set(arrays) ^ {t["name"] for t in listed}
    out = folder / f"all{version}.npz"
    tenfold("convert", "-q", "--no-sync", path, out)
    with np.load(out) as found:
        for name, a in arrays.items():
            b = found[name]
            assert b.shape == a.shape and b.tobytes() == a.astype(a.dtype.newbyteorder("<")).tobytes(), name
    for name, a in arrays.items():  # slices of some arrays
        if a.ndim != 2 or 0 in a.shape or hash(name) % 4:
            continue
        rows, cols = a.shape
        for s, text in ((np.s_[:, cols // 2], f"[:,{cols // 2}]"), (np.s_[::-2, 1::2], "[::-2,1::2]"), (np.s_[rows // 3:, :], f"[{rows // 3}:]")):
            want = np.ascontiguousarray(a[s]).astype(a.dtype.newbyteorder("<")).tobytes()
            assert tenfold("cat", "--raw", path, name + text) == want, (name, text)
    return len(arrays)


def open_store(path, name, version):
    driver = "zarr3" if version == 3 else "zarr"
    base = {"driver": "zip", "base": f"file://{path}"} if path.suffix == ".zip" else {"driver": "file", "path": str(path)}
    base["path" if path.suffix != ".zip" else "path"] = f"{path}/{name}" if path.suffix != ".zip" else f"{name}/"
    return tensorstore.open({"driver": driver, "kvstore": base}).result()


def check_written(version, folder, options, suffix):
    arrays = {f"{t}/{len(s)}_{i}": array(t, s) for t in TYPES for i, s in enumerate(SHAPES)}
    arrays["wide"] = array("float32", (700, 3000))
    source, out = folder / "in.npz", folder / f"out{suffix}"
    np.savez(source, **arrays)
    tenfold("convert", "-q", "--no-sync", "--force", "--to", "zarr", "-o", f"version={version}", *options, source, out)
    store = zarr.storage.ZipStore(out, mode="r") if suffix.endswith("zip") else out
    root = zarr.open_group(store, mode="r")
    for name, a in arrays.items():
        b = root[name][...]
        assert np.asarray(b).dtype == a.dtype and np.asarray(b).tobytes() == a.tobytes(), (name, options)
        if suffix == ".zarr" and (len(a.shape) == 2 or name == "wide"):
            c = open_store(out, name, version).read().result()
            assert c.dtype == a.dtype and c.tobytes() == a.tobytes(), (name, options, "tensorstore")
    again = folder / "again.npz"
    tenfold("convert", "-q", "--no-sync", "--force", out, again)
    with np.load(again) as found:
        for name, a in arrays.items():
            assert found[name].dtype == a.dtype and found[name].tobytes() == a.tobytes(), name
    return len(arrays)


def main():
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for version in (2, 3):
            count += check_read(version, folder)
            for suffix in (".zarr", ".zarr.zip"):
                for codec in ("zstd", "gzip", "none"):
                    options = ["-o", f"codec={codec}", "-o", "chunks=64K"]
                    count += check_written(version, folder, options, suffix)
        count += check_written(3, folder, ["-o", "shard=4", "-o", "chunks=64K"], ".zarr")
    print(f"zarr_peer: {count} arrays, zarr {zarr.__version__}, tensorstore")


main()
