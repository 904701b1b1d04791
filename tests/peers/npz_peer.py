#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares tenfold with numpy, ml_dtypes and Python's zipfile for .npz files, in both directions.

  npz_peer.py TENFOLD [FILES]

tenfold reads the same arrays from the files of numpy.savez() and savez_compressed(), and writes the same bytes again
(if they are deflated, only with the same zlib; else the same content), directly and through zTensor 2, to a file and
to a pipe; with Python before 3.11.4, whose zipfile writes other local headers, the same content.
Archives that zipfile makes from the same members in other ways give the same arrays. numpy.load() reads the files that
tenfold makes, and zipfile finds no faults in them.
"""
import importlib.util
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings
import zipfile

import numpy as np

TENFOLD = sys.argv[1]
FILES = int(sys.argv[2]) if len(sys.argv) > 2 else 60
warnings.simplefilter("ignore")
spec = importlib.util.spec_from_file_location("npy_peer", pathlib.Path(__file__).parent / "npy_peer.py")
npy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(npy)
run = npy.run
SAME_BYTES = sys.version_info >= (3, 11, 4)  # earlier ones write version 20 and the sizes in local headers
checked = dict.fromkeys(("archives read", "written to the byte", "written, compared by content", "by another zip", "aligned"), 0)


class Pipe(io.BytesIO):
    def seekable(self):
        return False

    def seek(self, *_):
        raise io.UnsupportedOperation

    tell = seek


def rand_arrays(r):
    names = {"".join(r.choice("abc/._é日 ") for _ in range(r.randrange(1, 8))).strip("/.") for _ in range(r.randrange(0, 6))}
    names = [n for n in names if n and ".." not in n and "//" not in n]
    r.shuffle(names)
    return {n: npy.rand_array(r) for n in names}


def saved(save, arrays, out=None):
    out = out or io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


def check_arrays(path, arrays):
    listed = json.loads(run("ls", "--json", path).stdout)["tensors"]
    assert [t["name"] for t in listed] == list(arrays), (listed, list(arrays))
    for t, a in zip(listed, arrays.values()):
        stored = npy.saved(a)
        dtype, shape, data = npy.wanted(a, stored[-a.nbytes:] if a.nbytes else b"")
        assert (t["dtype"], t["shape"]) == (dtype, shape), (t, a.dtype)
        assert run("cat", "--raw", path, t["name"]).stdout == data, (t, a.dtype)
    assert run("verify", path).returncode == 0


def check_written(path, data, arrays, how):
    """The file has these bytes; with an earlier Python, the arrays."""
    if SAME_BYTES:
        assert path.read_bytes() == data, how
    else:
        check_loads(path, arrays)
    checked["written to the byte" if SAME_BYTES else "written, compared by content"] += 1


def check_same(folder, data, arrays):
    """A file that is written again has the same content."""
    path, out, there = folder / "a.npz", folder / "b.npz", folder / "there.zt"
    path.write_bytes(data)
    run("convert", "--force", "--no-sync", path, out)
    check_written(out, data, arrays, "directly")
    run("convert", "--force", "--no-sync", path, there)
    run("convert", "--force", "--no-sync", there, out)
    check_written(out, data, arrays, "by way of zTensor 2")
    hashes = {run("hash", p).stdout.split()[0] for p in (path, there)}
    assert len(hashes) == 1


def check_other_zip(folder, arrays, r):
    """The same members, in another archive by zipfile."""
    out = Pipe() if r.random() < 0.3 else io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.comment = r.randbytes(r.choice([0, 0, 5]))
        for name, a in arrays.items():
            info = zipfile.ZipInfo(name + ".npy", (2001, 2, 3, 4, 5, 6))
            info.compress_type = r.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
            info.comment = b"c" * r.choice([0, 3])
            with z.open(info, "w", force_zip64=r.random() < 0.5) as f:
                f.write(npy.saved(a))
    path, ours = folder / "z.npz", folder / "y.npz"
    path.write_bytes(out.getvalue())
    check_arrays(path, arrays)
    run("convert", "--force", "--no-sync", "-o", f"compress={r.choice(['stored', 'deflate', 'auto'])}", path, ours)
    check_loads(ours, arrays)
    checked["by another zip"] += 1


def check_loads(path, arrays):
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
        for name, a in arrays.items():
            assert z.read(name + ".npy") == npy.saved(a), name
    np.load(path)


def check_aligned(folder, arrays):
    path, out = folder / "l.npz", folder / "m.npz"
    path.write_bytes(saved(np.savez, arrays))
    run("convert", "--force", "--no-sync", "-o", "align=64", path, out)
    for t in json.loads(run("ls", "--json", out).stdout)["tensors"]:
        assert t["parts"][0]["offset"] is None or t["parts"][0]["offset"] % 64 == 0, t
    with np.load(out) as z:
        for name, a in arrays.items():
            if a.dtype.str != "<f1":
                assert z[name].tobytes() == np.load(io.BytesIO(npy.saved(a))).tobytes(), name
    assert run("hash", path).stdout.split()[0] == run("hash", out).stdout.split()[0]
    checked["aligned"] += 1


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for i in range(FILES):
            r = random.Random(i)
            arrays = rand_arrays(r)
            stored = saved(np.savez, arrays)
            path = folder / "r.npz"
            for data in (stored, saved(np.savez_compressed, arrays)):
                path.write_bytes(data)
                check_arrays(path, arrays)
                checked["archives read"] += 1
                run("convert", "--force", "--no-sync", path, folder / "s.npz")
                check_loads(folder / "s.npz", arrays)
            check_same(folder, stored, arrays)
            path.write_bytes(stored)
            piped = folder / "piped.npz"
            subprocess.run(f"'{TENFOLD}' convert -q -t npz '{path}' - | cat >'{piped}'", shell=True, check=True)
            check_written(piped, saved(np.savez, arrays, Pipe()), arrays, "into a pipe")
            check_other_zip(folder, arrays, r)
            if i % 4 == 0:
                check_aligned(folder, arrays)
    print("npz: " + ", ".join(f"{n} {what}" for what, n in checked.items()))
    if not SAME_BYTES:
        print("not compared to the byte: zipfile of Python before 3.11.4 writes other local headers")


if __name__ == "__main__":
    main()
