# SPDX-License-Identifier: MIT
"""The workloads of zTensor's own benchmark, with the packages ztensor and safetensors.

    ztensor_peers.py make WORKLOAD BYTES DIRECTORY                   WORKLOAD.safetensors, .zt and .zstd.zt
    ztensor_peers.py ztensor|safetensors|write list|walk|copy|verify|save FILE ROUNDS [DIRECTORY]

Workloads: large (50 MiB each), mixed (100, 10 MiB and a rest), small (10 KiB each), llama (the shapes
of llama-1b in 16 bits, with as many layers as BYTES need). Only the calls are timed. Prints one JSON object.
"""
import json
import os
import sys
import time

import numpy
import safetensors.numpy
import ztensor
import ztensor.numpy


def shapes(workload, size):
    mib = 1 << 20
    if workload == "large":
        return {f"layer_{i}.weight": (50 * mib // 4,) for i in range(size // (50 * mib))}, numpy.float32
    if workload == "small":
        return {f"layer_{i}.weight": (2560,) for i in range(size // 10240)}, numpy.float32
    if workload == "mixed":
        found, left = {}, size
        for shape, least in (((5000, 5000), 100 * mib), ((1000, 2500), 10 * mib)):
            while left > least:
                found[f"layer_{len(found)}.weight"] = shape
                left -= 4 * shape[0] * shape[1]
        found[f"layer_{len(found)}.weight"] = (left // 4,)
        return found, numpy.float32
    hidden, kv, inner, vocabulary = 2048, 512, 8192, 128256
    layer = {"self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (kv, hidden), "self_attn.v_proj": (kv, hidden),
             "self_attn.o_proj": (hidden, hidden), "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden),
             "mlp.down_proj": (hidden, inner), "input_layernorm": (hidden,), "post_attention_layernorm": (hidden,)}
    each = sum(2 * int(numpy.prod(s)) for s in layer.values())
    found = {"model.norm.weight": (hidden,)}
    if size > 4 * hidden * vocabulary + each:
        found |= {"model.embed_tokens.weight": (vocabulary, hidden), "lm_head.weight": (vocabulary, hidden)}
        size -= 4 * hidden * vocabulary
    for i in range(max(1, size // each)):
        found |= {f"model.layers.{i}.{name}.weight": shape for name, shape in layer.items()}
    return found, numpy.float16


def make(workload, size, directory):
    """Normal floats; every fifth row is zero, as in zTensor's structured data."""
    r = numpy.random.default_rng(1)
    found, dtype = shapes(workload, int(size))
    base = r.standard_normal(1 << 22, dtype=numpy.float32)
    tensors = {}
    for i, (name, shape) in enumerate(found.items()):
        n = int(numpy.prod(shape))
        flat = numpy.resize(numpy.roll(base, i * 7919), n)
        flat[:1] = i
        flat[n // 5:n // 4] = 0
        tensors[name] = flat.astype(dtype).reshape(shape)
    stem = os.path.join(directory, workload)
    safetensors.numpy.save_file(tensors, stem + ".safetensors")
    ztensor.numpy.save_file(tensors, stem + ".zt")
    if workload in ("large", "mixed"):
        ztensor.numpy.save_file(tensors, stem + ".zstd.zt", compression=True)
    return {"tensors": len(tensors), "bytes": sum(t.nbytes for t in tensors.values())}


# ------------------------------------------------------------------------ work


def touch(arrays):
    """Reads a byte of each page. The package returns types that numpy lacks as bytes."""
    return sum(int(a.reshape(-1).view(numpy.uint8)[::4096].sum()) for a in arrays.values())


def zt_list(path):
    with ztensor.open(path) as source:
        return [(name, t.dtype, t.shape) for name, t in source.items()]


def st_list(path):
    with safetensors.safe_open(path, "np") as f:
        return [(k, f.get_slice(k).get_dtype(), f.get_slice(k).get_shape()) for k in f.keys()]


WORK = {
    "ztensor": {"list": zt_list, "walk": lambda p: touch(ztensor.numpy.load_file(p)),
                "copy": lambda p: ztensor.numpy.load_file(p, copy=True), "verify": ztensor.verify},
    "safetensors": {"list": st_list, "copy": safetensors.numpy.load_file},
}


def write_bytes(tensors, target):
    """The least work of any writer: only the bytes, in the steps that are fastest on Linux, and a sync."""
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    for t in tensors.values():
        view = memoryview(t.reshape(-1).view(numpy.uint8))
        for at in range(0, len(view), 256 << 10):
            os.write(fd, view[at:at + (256 << 10)])
    os.fsync(fd)
    os.close(fd)


def saver(package, path, directory):
    """Saves the same tensors from memory. zTensor's writer syncs, that of safetensors does not."""
    tensors = safetensors.numpy.load_file(path)
    target = os.path.join(directory, "theirs")
    save = {"ztensor": ztensor.numpy.save_file, "write": write_bytes}.get(package, safetensors.numpy.save_file)
    return (lambda _: save(tensors, target)), (lambda: os.remove(target))


def main():
    if sys.argv[1] == "make":
        print(json.dumps(make(*sys.argv[2:])))
        return
    package, what, path, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    clean = lambda: None
    if what == "save":
        work, clean = saver(package, path, sys.argv[5])
    else:
        work = WORK[package][what]
    seconds = []
    for i in range(rounds + 1):  # the first is not counted
        start = time.perf_counter()
        held = work(path)
        seconds += [time.perf_counter() - start] if i else []
        del held
        clean()
    print(json.dumps({"seconds": seconds}))


main()
