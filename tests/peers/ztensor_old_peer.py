#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares Tenfold with the old ztensor packages (0.1.4, 1.0.1, 1.1.1, 1.2.3), in both directions.

    ztensor_old_peer.py TENFOLD

They cannot be installed together, nor with the current package. Each is in a directory of its own in
the virtual environment, where `./dev test` puts it, and runs in a process of its own. Tenfold reads
the same values from a package's files, and writes the same bytes again if it writes that version; the
package reads Tenfold's files. Needs numpy and ml_dtypes.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

VERSIONS = ["0.1.4", "1.0.1", "1.1.1", "1.2.3"]
FORMAT = {"0": "ztensor0", "1": "ztensor1"}
TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
         "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool"}


# -------------------------------------------------- inside: with one old package


def array(ours, shape, seed):
    import ml_dtypes
    import numpy as np
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2 if ours == "bool" else 256, size=(*shape, 8), dtype=np.uint8)
    dtype = np.dtype(ml_dtypes.bfloat16 if ours == "bf16" else TYPES[ours])
    return np.ascontiguousarray(bits[..., :dtype.itemsize]).view(dtype).reshape(shape)


def contents():
    for i, ours in enumerate(TYPES):
        yield "t." + ours, array(ours, (3, 5), i)
    yield "empty", array("f32", (0, 4), 0)
    yield "large", array("u8", (300, 1000), 99)
    yield "gr\u00f6\u00dfe", array("i16", (7,), 100)


def write(version, path):
    import numpy as np
    import ztensor
    told = {}
    writer = ztensor.Writer(path)
    new = version.startswith("1.2")
    for i, (name, a) in enumerate(contents()):
        if new:
            writer.write_numpy(name, a, compress=i % 3 == 0, checksum=["none", "crc32c", "sha256"][i % 3])
        elif version.startswith("1."):
            writer.add_tensor(name, a, compress=i % 3 == 0)
        else:
            writer.add_tensor(name, a)
        told[name] = hashlib.sha256(a.tobytes()).hexdigest()
    if version.startswith("1."):
        v = np.array([7, 8, 9], np.float32)
        indices, indptr = np.array([1, 0, 2], np.uint64), np.array([0, 1, 3, 3], np.uint64)
        coords = np.array([0, 1, 1, 1, 0, 2], np.uint64)
        if new:
            writer.write("csr", ztensor.Tensor({"values": v, "indices": indices, "indptr": indptr}, shape=[3, 3],
                                               dtype="float32", format="sparse_csr"), compress=True)
            writer.write("coo", ztensor.Tensor({"values": v, "coords": coords}, shape=[3, 3], dtype="float32",
                                               format="sparse_coo"), checksum="crc32c")
        else:
            writer.add_sparse_csr("csr", v, indices, indptr, (3, 3))
            writer.add_sparse_coo("coo", v, coords, (3, 3))
        told["csr#values"] = told["coo#values"] = hashlib.sha256(v.tobytes()).hexdigest()
        told["csr#indices"] = hashlib.sha256(indices.tobytes()).hexdigest()
        told["csr#indptr"] = hashlib.sha256(indptr.tobytes()).hexdigest()
        told["coo#coords"] = hashlib.sha256(coords.tobytes()).hexdigest()
    writer.finish() if new else writer.finalize()
    json.dump(told, sys.stdout)


def read(version, path):
    import ztensor
    found = {}
    reader = ztensor.Reader(path)
    if version.startswith("1.2"):
        for name in reader.keys():
            t = reader.read(name)
            for role, a in t.components.items():
                found[name if t.format == "dense" else name + "#" + role] = hashlib.sha256(a.tobytes()).hexdigest()
    else:
        names = reader.get_tensor_names()
        for name in names:
            if version.startswith("1.") and reader.metadata(name).layout != "dense":
                continue  # needs scipy
            a = reader.read_tensor(name)
            found[name] = hashlib.sha256(a.tobytes()).hexdigest()
    json.dump(found, sys.stdout)


# ------------------------------------------------------------------- outside


def old(version):
    """The directory with that package and its dependencies."""
    folder = pathlib.Path(sys.prefix) / ("ztensor-" + version)
    if not (folder / "ztensor").is_dir():
        sys.exit(f"the package ztensor {version} is not installed in {folder}")
    return folder


def ask(folder, *arguments):
    env = dict(os.environ, PYTHONPATH=str(folder))
    done = subprocess.run([sys.executable, __file__, *map(str, arguments)], capture_output=True, env=env)
    if done.returncode:
        sys.exit(f"{arguments}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def tenfold(*arguments):
    done = subprocess.run([TENFOLD, *map(str, arguments)], capture_output=True)
    if done.returncode:
        sys.exit(f"tenfold {arguments} exits with {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def hashes(path):
    """The content that Tenfold reads."""
    found = {}
    for t in json.loads(tenfold("ls", "--json", path))["tensors"]:
        roles = [""] if t["layout"] == "dense" else ["#" + p["role"] for p in t["parts"]]
        for role in roles:
            data = tenfold("cat", "--raw", path, t["name"] + role)
            found[t["name"] + role] = hashlib.sha256(data).hexdigest()
    return found


def same(a, b, what):
    if a != b:
        sys.exit(f"{what}: {sorted(k for k in a.keys() | b.keys() if a.get(k) != b.get(k))} differ")


def check(version, folder, here):
    """Tests one package, in both directions."""
    theirs, ours = here / (version + ".zt"), here / (version + "-ours.zt")
    told = ask(folder, "write", version, theirs)
    same(told, hashes(theirs), f"what {version} wrote")
    tenfold("verify", theirs)
    form = FORMAT[version[0]]
    tenfold("convert", "-t", form, theirs, ours)
    if version in ("0.1.4", "1.2.3") and theirs.read_bytes() != ours.read_bytes():
        sys.exit(f"{version}: written again it is not the same to the byte")
    files = 1
    options = [["encoding=raw"], ["encoding=zstd"], ["encoding=zstd", "checksum=sha256"], ["checksum=crc32c"]]
    options += [["endian=big"], ["maps=definite"]] if form == "ztensor0" else []
    for chosen in options if version in ("0.1.4", "1.2.3") else []:
        tenfold("convert", "--force", "-t", form, *[x for o in chosen for x in ("-o", o)], theirs, ours)
        same(told, ask(folder, "read", version, ours), f"what {version} reads of {chosen}")
        same(told, hashes(ours), str(chosen))
        files += 1
    return files


def main():
    files = 0
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        for version in VERSIONS:
            files += check(version, old(version), here)
        # The package of 1.2 also reads 0.1, but only little-endian files.
        dense = here / "dense.zt"
        tenfold("convert", "-t", "ztensor0", "-o", "endian=little", here / "0.1.4.zt", dense)
        same(hashes(dense), ask(old("1.2.3"), "read", "1.2.3", dense), "0.1 by 1.2.3")
    print(f"{len(VERSIONS)} packages, {files} files")


if len(sys.argv) == 4 and sys.argv[1] in ("write", "read"):
    {"write": write, "read": read}[sys.argv[1]](*sys.argv[2:])
else:
    TENFOLD = os.path.abspath(sys.argv[1])
    main()
