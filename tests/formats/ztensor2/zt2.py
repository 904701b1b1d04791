# SPDX-License-Identifier: MIT
"""zTensor 2 from its description, for fixtures: XXH3-64, deterministic CBOR, containers. This is
plain Python and uses nothing of Tenfold; its output was compared with that of the reference (see
make.py)."""
import struct

MAGIC = bytes.fromhex("895a54320d0a1a0a")
M64 = (1 << 64) - 1

# ------------------------------------------------------------------------ XXH3
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
P32 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
       0x27D4EB2F165667C5)


def u32(b, at=0):
    return struct.unpack_from("<I", b, at)[0]


def u64(b, at=0):
    return struct.unpack_from("<Q", b, at)[0]


def fold(a, b):
    p = a * b
    return (p & M64) ^ (p >> 64)


def avalanche(h):
    h = ((h ^ (h >> 37)) * 0x165667919E3779F9) & M64
    return h ^ (h >> 32)


def avalanche64(h):
    h = ((h ^ (h >> 33)) * P64[1]) & M64
    h = ((h ^ (h >> 29)) * P64[2]) & M64
    return h ^ (h >> 32)


def rotl(x, n):
    return ((x << n) | (x >> (64 - n))) & M64


def mix16(b, at, secret):
    return fold(u64(b, at) ^ u64(SECRET, secret), u64(b, at + 8) ^ u64(SECRET, secret + 8))


def short(b):
    n = len(b)
    if n == 0:
        return avalanche64(u64(SECRET, 56) ^ u64(SECRET, 64))
    if n <= 3:
        x = b[0] << 16 | b[n >> 1] << 24 | b[n - 1] | n << 8
        return avalanche64(x ^ (u32(SECRET) ^ u32(SECRET, 4)))
    if n <= 8:
        x = u32(b, n - 4) + (u32(b) << 32) & M64
        h = x ^ (u64(SECRET, 8) ^ u64(SECRET, 16))
        h ^= rotl(h, 49) ^ rotl(h, 24)
        h = h * 0x9FB21C651E98DF25 & M64
        h ^= (h >> 35) + n
        h = h * 0x9FB21C651E98DF25 & M64
        return h ^ (h >> 28)
    low = u64(b) ^ (u64(SECRET, 24) ^ u64(SECRET, 32))
    high = u64(b, n - 8) ^ (u64(SECRET, 40) ^ u64(SECRET, 48))
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return avalanche((n + swapped + high + fold(low, high)) & M64)


def middle(b):
    n, h = len(b), len(b) * P64[0] & M64
    if n <= 128:
        for i in reversed(range((n - 1) // 32 + 1)):
            h += mix16(b, 16 * i, 32 * i) + mix16(b, n - 16 * (i + 1), 32 * i + 16)
        return avalanche(h & M64)
    for i in range(8):
        h += mix16(b, 16 * i, 16 * i)
    h = avalanche(h & M64)
    for i in range(8, n // 16):
        h += mix16(b, 16 * i, 16 * (i - 8) + 3)
    return avalanche((h + mix16(b, n - 16, 136 - 17)) & M64)


def accumulate(acc, b, at, secret):
    for i in range(8):
        v = u64(b, at + 8 * i)
        k = v ^ u64(SECRET, secret + 8 * i)
        acc[i ^ 1] = (acc[i ^ 1] + v) & M64
        acc[i] = (acc[i] + (k & 0xffffffff) * (k >> 32)) & M64


def long(b):
    n = len(b)
    acc = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]]
    per = (len(SECRET) - 64) // 8
    blocks = (n - 1) // (64 * per)
    for block in range(blocks):
        for s in range(per):
            accumulate(acc, b, (block * per + s) * 64, 8 * s)
        for i in range(8):
            a = acc[i] ^ (acc[i] >> 47) ^ u64(SECRET, 128 + 8 * i)
            acc[i] = a * P32[0] & M64
    for s in range((n - 1 - blocks * 64 * per) // 64):
        accumulate(acc, b, (blocks * per + s) * 64, 8 * s)
    accumulate(acc, b, n - 64, 192 - 64 - 7)
    h = n * P64[0] & M64
    for i in range(4):
        h += fold(acc[2 * i] ^ u64(SECRET, 11 + 16 * i), acc[2 * i + 1] ^ u64(SECRET, 19 + 16 * i))
    return avalanche(h & M64)


def xxh3(b):
    return short(b) if len(b) <= 16 else middle(b) if len(b) <= 240 else long(b)


# ------------------------------------------------------------------------ CBOR
class Raw(bytes):
    """Bytes that are already CBOR."""


def head(major, n):
    for info, (limit, code) in enumerate([(1 << 8, ">B"), (1 << 16, ">H"), (1 << 32, ">I"),
                                          (1 << 64, ">Q")]):
        if n < 24:
            return bytes([major << 5 | n])
        if n < limit:
            return bytes([major << 5 | 24 + info]) + struct.pack(code, n)
    raise ValueError(n)


def cbor_float(x):
    if x != x:
        return bytes.fromhex("f97e00")
    for code, first in (">e", b"\xf9"), (">f", b"\xfa"):
        try:
            packed = struct.pack(code, x)
        except OverflowError:
            continue
        if struct.unpack(code, packed)[0] == x:
            return first + packed
    return b"\xfb" + struct.pack(">d", x)


def cbor(v):
    if isinstance(v, Raw):
        return bytes(v)
    if v is None or isinstance(v, bool):
        return {None: b"\xf6", False: b"\xf4", True: b"\xf5"}[v]
    if isinstance(v, int):
        return head(0, v) if v >= 0 else head(1, -1 - v)
    if isinstance(v, float):
        return cbor_float(v)
    if isinstance(v, bytes):
        return head(2, len(v)) + v
    if isinstance(v, str):
        return head(3, len(v.encode())) + v.encode()
    if isinstance(v, (list, tuple)):
        return head(4, len(v)) + b"".join(map(cbor, v))
    pairs = sorted((cbor(k), cbor(x)) for k, x in v.items())
    return head(5, len(pairs)) + b"".join(k + x for k, x in pairs)


# ------------------------------------------------------------------- container
def up(n, to):
    return (n + to - 1) // to * to


def footer(offset, length, value, version=2, reserved=0, magic=MAGIC):
    return struct.pack("<QQQII", offset, length, value, version, reserved) + magic


def container(manifest, heap=b"", at=None, **more):
    """The heap begins at byte 4096; the manifest is at `at`, or at the next multiple of 4096."""
    body = MAGIC.ljust(4096, b"\0") + heap
    at = up(len(body), 4096) if at is None else at
    body = body.ljust(at, b"\0")
    return body + manifest + footer(more.pop("offset", at), more.pop("length", len(manifest)),
                                    more.pop("hash", xxh3(manifest)), **more)


def digest(data):
    return f"xxh3:{xxh3(data):016x}"


def part(offset, length, dtype="u8", **more):
    return {"blob": [offset, length], "dtype": dtype, **more}


def thing(parts, shape, layout="dense", **more):
    return {"parts": parts, "shape": list(shape), "layout": layout, **more}


def dense(offset, length, shape, dtype="u8", **more):
    return thing({"data": part(offset, length, dtype, **more)}, shape)


def canonical(objects, attributes=None):
    """{name: (layout, shape, {role: (dtype, type or None, bytes)}, attributes or None)}"""
    out, blobs, entries = bytearray(MAGIC), {}, {}
    for name in sorted(objects, key=str.encode):
        layout, shape, parts, attrs = objects[name]
        entries[name] = thing({}, shape, layout, **({"attributes": attrs} if attrs else {}))
        for role in sorted(parts, key=str.encode):
            dtype, kind, data = parts[role]
            if data not in blobs:
                out += bytes(up(len(out), 65536) - len(out))
                blobs[data] = len(out)
                out += data
            entries[name]["parts"][role] = part(blobs[data], len(data), dtype, digest=digest(data),
                                                **({"type": kind} if kind else {}))
    manifest = cbor({"objects": entries, **({} if attributes is None else
                                            {"attributes": attributes})})
    out += bytes(up(len(out), 65536) - len(out))
    return bytes(out) + manifest + footer(len(out), len(manifest), xxh3(manifest))
