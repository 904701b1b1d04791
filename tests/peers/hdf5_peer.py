#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of h5py and Keras are read and written again; both packages find equal tensors.

  hdf5_peer.py TENFOLD
"""
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")
WANTED = os.environ.get("TENFOLD_JAX") # a directory with keras; if it is set, keras must be there
if WANTED:
    sys.path.insert(0, WANTED)
try:
    import h5py
    import numpy as np
except ImportError as missing:
    print(f"SKIPPED: {missing}; .venv/bin/pip install h5py keras")
    sys.exit(0)

TENFOLD = sys.argv[1]
rng = np.random.default_rng(11)
TYPES = ["<f4", ">f4", "<f8", ">f8", "<f2", "i1", "<i2", ">i2", "<i4", "<i8", ">i8", "u1", "<u2", "<u4", "<u8", "?", "<c8", "<c16"]


def tenfold(*args):
    return subprocess.run([TENFOLD, *map(str, args)], check=True, stdout=subprocess.PIPE).stdout


def random_array(dtype, shape):
    a = rng.standard_normal(shape) * 50
    return (a > 0) if dtype == "?" else a.astype(dtype)


def random_layout(shape):
    """Contiguous, or chunks of any kind."""
    if not shape or 0 in shape or rng.integers(3) == 0:
        return {}
    how = {"chunks": tuple(int(rng.integers(1, n + 1)) for n in shape)}
    kind = rng.integers(4)
    how["maxshape"] = shape if kind < 2 else tuple(None if kind == 3 or i == 0 else n for i, n in enumerate(shape))
    if rng.integers(2):
        how["compression"] = ["gzip", "lzf"][rng.integers(2)]
    how["shuffle"] = bool(rng.integers(2))
    how["fletcher32"] = bool(rng.integers(2))
    return how


def check_killer(folder):
    """A B-tree of a group whose node is its own child: libhdf5 2.0.0 crashes, Tenfold reports its
    place."""
    path = folder / "loop.h5"
    with h5py.File(path, "w", libver="earliest") as f:
        for i in range(400):
            f.create_group(f"group_{i:04}")
    data = bytearray(path.read_bytes())
    at = next(i for i in range(0, len(data) - 8, 8) if data[i:i + 4] == b"TREE" and data[i + 4] == 0 and data[i + 5] > 0)
    data[at + 32:at + 40] = at.to_bytes(8, "little")
    path.write_bytes(data)
    theirs = subprocess.run([sys.executable, "-c", f"import h5py; h5py.File({str(path)!r}).visit(str)"], check=False, stderr=subprocess.DEVNULL)
    ours = subprocess.run([TENFOLD, "ls", path], check=False, capture_output=True, text=True)
    if ours.returncode != 4 or f"at byte {at}" not in ours.stderr:
        sys.exit(f"a node at {at} that is its own child: exit code {ours.returncode}: {ours.stderr}")
    print(f"a B-tree that is its own child: h5py ends with {theirs.returncode}, tenfold with {ours.returncode}")


def check_random(folder, seed):
    libver = ["earliest", "v108", "v110", "latest"][seed % 4]
    path, there, back = folder / "r.h5", folder / "r.zt", folder / "b.h5"
    arrays = {}
    with h5py.File(path, "w", libver=libver, userblock_size=512 if seed % 5 == 0 else 0) as f:
        for i in range(12):
            shape = tuple(int(n) for n in rng.integers(0 if i == 0 else 1, 14, rng.integers(0, 4)))
            name = f"g{i % 3}/h{i % 2}/t{i}"
            arrays[name] = random_array(TYPES[rng.integers(len(TYPES))], shape)
            d = f.create_dataset(name, data=arrays[name], **random_layout(shape))
            d.attrs["i"] = i
            d.attrs["text"] = "\u00e4" * i
        f.attrs["list"] = [1.5, 2.5]
    for name, a in arrays.items():
        raw = tenfold("cat", "--raw", path, name)
        assert raw == a.astype(a.dtype.newbyteorder("<")).tobytes(), (libver, seed, name, a.dtype, a.shape)
    tenfold("verify", path)
    tenfold("convert", "-q", path, there)
    tenfold("convert", "-q", there, back)
    with h5py.File(back) as f:
        for i, (name, a) in enumerate(arrays.items()):
            assert np.array_equal(f[name][()], a), (libver, seed, name)
            assert f[name].attrs["i"] == i and f[name].attrs["text"] == "\u00e4" * i, name
        assert list(f.attrs["list"]) == [1.5, 2.5]
    with h5py.File(back, "a") as f:  # and the file can be changed
        f["more"] = np.arange(5)
        f["g0"].attrs["new"] = "x"
    assert tenfold("cat", "--raw", back, "more") == np.arange(5).tobytes()


def check_wide(folder):
    """Integers of 16 bytes, which libhdf5 has and NumPy has not: raw bytes in the type of the file, in both orders."""
    numbers = [0, 1, -1, 2**64, -2**64, 2**127 - 1, -2**127] + [int(rng.integers(2**62)) << 64 | int(rng.integers(2**62)) for _ in range(50)]

    def wide(signed, big):
        t = (h5py.h5t.STD_I64LE if signed else h5py.h5t.STD_U64LE).copy()
        t.set_size(16)
        t.set_precision(128)
        t.set_order(h5py.h5t.ORDER_BE if big else h5py.h5t.ORDER_LE)
        return t

    for signed, big, chunked in ((s, b, c) for s in (True, False) for b in (True, False) for c in (True, False)):
        values = numbers if signed else [n % 2**128 for n in numbers]
        path, back = folder / "i.h5", folder / "o.h5"
        path.unlink(missing_ok=True)
        back.unlink(missing_ok=True)
        stored = b"".join(n.to_bytes(16, "big" if big else "little", signed=signed) for n in values)
        little = b"".join(n.to_bytes(16, "little", signed=signed) for n in values)
        with h5py.File(path, "w") as f:
            how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            if chunked:
                how.set_chunk((10,))
                how.set_shuffle()
                how.set_deflate(6)
            d = h5py.h5d.create(f.id, b"w", wide(signed, big), h5py.h5s.create_simple((len(values),)), how)
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.frombuffer(stored, "V16"), wide(signed, big))
        assert tenfold("cat", "--raw", path, "w") == little, (signed, big, chunked)
        assert json.loads(tenfold("cat", "--json", path, "w"))["values"] == values, (signed, big, chunked)
        tenfold("convert", "-q", path, back)
        with h5py.File(back) as f:
            t = h5py.h5d.open(f.id, b"w").get_type()
            assert (t.get_class(), t.get_size(), t.get_precision()) == (h5py.h5t.INTEGER, 16, 128)
            assert t.get_sign() == (h5py.h5t.SGN_2 if signed else h5py.h5t.SGN_NONE)
            out = np.empty(len(values), "V16")
            h5py.h5d.open(f.id, b"w").read(h5py.h5s.ALL, h5py.h5s.ALL, out, t)
            assert out.tobytes() == little, (signed, big, chunked)
            try:
                f["w"][()]
                print("h5py reads integers of 16 bytes now: docs/formats/hdf5.md says that it does not")
            except TypeError:
                pass


def check_strings(folder):
    words = ["", "a", "\u00e4\u20ac", "x" * 70000] + [f"word {i}" for i in range(5000)]
    path, there, back = folder / "s.h5", folder / "s.zt", folder / "t.h5"
    with h5py.File(path, "w") as f:
        f["words"] = np.array(words, dtype=h5py.string_dtype())
    tenfold("convert", "-q", path, there)
    tenfold("convert", "-q", there, back)
    with h5py.File(back) as f:
        assert [w.decode() for w in f["words"][()]] == words


def check_many(folder):
    """20,000 tensors in one group, written by Tenfold."""
    source, path = folder / "m.npz", folder / "m.h5"
    np.savez(source, **{f"t{i}": np.full(1, i, "f4") for i in range(20000)})
    tenfold("convert", "-q", source, path)
    with h5py.File(path) as f:
        assert len(f) == 20000 and f["t19999"][0] == 19999


def check_archive(folder):
    """A .keras file without Keras: three stored members, and weights that h5py finds equal."""
    config, about = b'{"module": "keras", "class_name": "Sequential", "config": {"name": "s"}}', b'{"keras_version": "3.0.0", "date_saved": "x"}'
    arrays = {"layers/dense/vars/0": random_array("<f4", (6, 4)), "layers/dense/vars/1": random_array("<f4", (4, )), "layers/bn/vars/0": random_array("<f2", (4, ))}
    with h5py.File(folder / "w.weights.h5", "w") as f:
        for name, a in arrays.items():
            f[name] = a
    with zipfile.ZipFile(folder / "a.keras", "w") as z:
        for name, data in (("metadata.json", about), ("config.json", config), ("model.weights.h5", (folder / "w.weights.h5").read_bytes())):
            z.writestr(name, data)
    tenfold("convert", "-q", folder / "a.keras", folder / "a.zt")
    tenfold("convert", "-q", folder / "a.zt", folder / "b.keras")
    # Other weights are put into the same model.
    other = {k: random_array(a.dtype.str, a.shape) for k, a in arrays.items()}
    with h5py.File(folder / "o.weights.h5", "w") as f:
        for name, a in other.items():
            f[name] = a
    tenfold("convert", "-q", "--into", folder / "a.keras", folder / "o.weights.h5", folder / "c.keras")
    for path, wanted in ((folder / "b.keras", arrays), (folder / "c.keras", other)):
        with zipfile.ZipFile(path) as z:
            assert z.testzip() is None, path
            assert sorted(z.namelist()) == ["config.json", "metadata.json", "model.weights.h5"], z.namelist()
            assert all(m.compress_type == zipfile.ZIP_STORED for m in z.infolist()), path
            assert json.loads(z.read("config.json")) == json.loads(config), path
            assert json.loads(z.read("metadata.json")) == json.loads(about), path
            with h5py.File(io.BytesIO(z.read("model.weights.h5"))) as f:
                found = []
                f.visititems(lambda name, x: found.append(name) if isinstance(x, h5py.Dataset) else None)
                assert sorted(found) == sorted(wanted), found
                for name, a in wanted.items():
                    assert f[name].dtype == a.dtype and np.array_equal(f[name][()], a), name
    print("a .keras is its three members")


def check_keras(folder):
    try:
        import keras
    except ImportError:
        if WANTED:
            raise
        print("without keras")
        return
    model = keras.Sequential([keras.Input((6, )), keras.layers.Dense(4, name="a"), keras.layers.BatchNormalization(name="bn"),
                              keras.layers.Dense(2, name="out")])
    for name in ("m.weights.h5", "m.keras", "m.h5"):
        path, there, back = folder / name, folder / f"{name}.zt", folder / f"back-{name}"
        if name == "m.weights.h5":
            model.save_weights(path)
        else:
            model.save(path)
        tenfold("verify", path)
        tenfold("convert", "-q", path, there)
        tenfold("convert", "-q", there, back)
        want = [w.numpy() if hasattr(w, "numpy") else np.asarray(w) for w in model.weights]
        loaded = []
        if name != "m.weights.h5":
            loaded.append(keras.models.load_model(back))
        if name == "m.keras":
            tenfold("convert", "-q", path, folder / "k.weights.h5")
            back = folder / "k.weights.h5"
        if name != "m.h5":
            loaded.append(keras.models.clone_model(model))
            loaded[-1].set_weights([np.zeros_like(w) for w in want])
            loaded[-1].load_weights(back)
        for other in loaded:
            for a, b in zip(want, other.get_weights(), strict=True):
                assert np.array_equal(a, b), name
        listed = {t["name"]: t for t in json.loads(tenfold("ls", "--json", path))["tensors"]}
        digests = {hashlib.sha256(np.ascontiguousarray(w).tobytes()).digest() for w in want}
        ours = {hashlib.sha256(tenfold("cat", "--raw", path, n)).digest() for n in listed}
        assert digests <= ours, name
    print("keras", keras.__version__)


with tempfile.TemporaryDirectory() as scratch:
    for seed in range(int(os.environ.get("SEEDS", "40"))):
        with tempfile.TemporaryDirectory(dir=scratch) as own:
            check_random(Path(own), seed)
    check_wide(Path(scratch))
    check_strings(Path(scratch))
    check_many(Path(scratch))
    check_killer(Path(scratch))
    check_archive(Path(scratch))
    check_keras(Path(scratch))
print("h5py", h5py.__version__, "the same")
