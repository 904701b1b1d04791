# SPDX-License-Identifier: MIT
"""Arrays with h5py, zarr and tensorstore.

    array_peers.py make h5|h5-deflate|zarr|zarr-zstd FILE BYTES     four arrays of floats, in chunks of 1 MiB or in one piece
    array_peers.py read h5py|zarr|tensorstore FILE N                reads all arrays into new memory, N times

Numbers are random, and half of their bits are cut off where they are compressed, as in weights that
were trained in bf16. Prints one JSON object; only the work is timed."""
import json
import os
import sys
import time

import numpy


def arrays(size, packed):
    rng = numpy.random.default_rng(1)
    rows = size // 4 // 4 // 1024
    for i in range(4):
        a = rng.standard_normal((rows, 1024), dtype=numpy.float32)
        if packed:
            a.view(numpy.uint32)[...] &= 0xFFFF0000
        yield f"w{i}", a


def make(what, path, size):
    if what.startswith("h5"):
        import h5py
        with h5py.File(path, "w") as f:
            for name, a in arrays(size, what != "h5"):
                how = {"chunks": (256, 1024), "compression": "gzip", "compression_opts": 4, "shuffle": True} if what != "h5" else {}
                f.create_dataset(name, data=a, **how)
        return
    import zarr
    group = zarr.open_group(path, mode="w", zarr_format=3)
    for name, a in arrays(size, what != "zarr"):
        codec = {} if what != "zarr" else {"compressors": None}
        group.create_array(name, data=a, chunks=(256, 1024), **codec)


def read_h5py(path):
    import h5py
    with h5py.File(path, "r") as f:
        return [f[name][()] for name in f]


def read_zarr(path):
    import zarr
    group = zarr.open_group(path, mode="r")
    return [group[name][...] for name in group.array_keys()]


def read_tensorstore(path):
    import tensorstore
    names = sorted(n for n in os.listdir(path) if os.path.isdir(os.path.join(path, n)))
    spec = lambda n: {"driver": "zarr3", "kvstore": {"driver": "file", "path": os.path.join(path, n) + "/"}}
    stores = [tensorstore.open(spec(n), open=True, read=True).result() for n in names]
    return [f.result() for f in [s.read() for s in stores]]


def main():
    what, how, path, n = sys.argv[1:]
    if what == "make":
        make(how, path, int(n))
        return
    read = {"h5py": read_h5py, "zarr": read_zarr, "tensorstore": read_tensorstore}[how]
    took = []
    for _ in range(int(n) + 1):  # the first is not counted
        start = time.monotonic()
        found = read(path)
        took.append(time.monotonic() - start)
        del found
    print(json.dumps({"seconds": took[1:]}))


if __name__ == "__main__":
    main()
