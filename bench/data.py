# SPDX-License-Identifier: MIT
"""Makes data files for benchmarks, without the libraries that are measured."""
import array
import json
import os
import random

BLOCK = 8 << 20
WIDTH = {"F32": 4, "F16": 2}


def write(path, tensors, sparse=False):
    """Writes a safetensors file with the tensors (name, dtype, shape): random bytes, or a hole."""
    header, at = {}, 0
    for name, dtype, shape in tensors:
        n = WIDTH[dtype]
        for d in shape:
            n *= d
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        if sparse:
            f.truncate(8 + len(text) + at)
        else:
            noise = os.urandom(BLOCK)
            for done in range(0, at, BLOCK):
                f.write(noise[: min(BLOCK, at - done)])
        f.flush()
        os.fsync(f.fileno())
    return path


def layer(i):
    """One layer of a decoder: matrices of 8 and 22 MiB, vectors of 8 KiB."""
    p = f"model.layers.{i}."
    for name in "qkvo":
        yield p + f"self_attn.{name}_proj.weight", "F16", [2048, 2048]
    for name in ("gate", "up"):
        yield p + f"mlp.{name}_proj.weight", "F16", [5632, 2048]
    yield p + "mlp.down_proj.weight", "F16", [2048, 5632]
    for name in ("input", "post_attention"):
        yield p + f"{name}_layernorm.weight", "F32", [2048]


def model(path, size):
    """Layers up to about `size` bytes, at least one."""
    tensors, total = [], 0
    while not tensors or total < size:
        some = list(layer(len(tensors) // 9))
        tensors += some
        total += sum(WIDTH[t] * s[0] * (s[1] if len(s) > 1 else 1) for _, t, s in some)
    return write(path, tensors)


def floats(path, size):
    """Eight tensors of floats that compress like weights: a few thousand values in random order."""
    count, values = size // 32, array.array("f", [i / 50000 for i in range(-4000, 4000)])
    dice = random.Random(1)
    write(path, [(f"w{i}", "F32", [count]) for i in range(8)], sparse=True)
    with open(path, "r+b") as f:
        start = os.path.getsize(path) - 32 * count
        for i in range(8):
            f.seek(start + 4 * count * i)
            block = array.array("f", dice.choices(values, k=1 << 18))
            for done in range(0, count, len(block)):
                turn = dice.randrange(len(block))
                block = block[turn:] + block[:turn]
                block[:min(count - done, len(block))].tofile(f)
    return path


def many(path, count, shape):
    """Small tensors with the long names of a mixture of experts."""
    return write(path, [(f"model.layers.{i // 256}.mlp.experts.{i % 256}.down_proj.weight", "F32",
                         shape) for i in range(count)])


def hollow(path, size):
    """Two matrices that are holes: a large file that takes no space on disk."""
    rows = size // 2 // 4096 // 4
    return write(path, [("a", "F32", [rows, 4096]), ("b", "F32", [rows, 4096])], sparse=True)


def primitiv(path, size, count):
    """A primitiv model of `count` parameters of two dimensions, `size` bytes together."""
    def u32(v):
        return b"\xce" + v.to_bytes(4, "big")

    columns = max(1, size // count // 4 // 256)
    n = 4 * 256 * columns
    noise = os.urandom(n)
    with open(path, "wb") as f:
        f.write(u32(0) + u32(1) + u32(0x300) + u32(count))
        for i in range(count):  # names of one length, so that they are in order
            f.write(b"\x92\xa8layer%03d" % (i // 4) + b"\xa2p%d" % (i % 4))
            f.write(b"\x92" + u32(256) + u32(columns) + u32(1) + b"\xc6" + n.to_bytes(4, "big"))
            f.write(noise)
            f.write(u32(0))
        f.flush()
        os.fsync(f.fileno())
    return path
