# SPDX-License-Identifier: MIT
"""OCDBT databases and Orbax checkpoints, made from their description (Python's own library only)."""
import io
import json
import struct
import zipfile

MANIFEST, NODE = 0x0CDB3A2A, 0x0CDB20DE


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283


def varint(*values):
    out = bytearray()
    for v in values:
        while v > 0x7F:
            out.append(v & 0x7F | 0x80)
            v >>= 7
        out.append(v)
    return bytes(out)


def zstd(data):
    """A frame of one stored block."""
    assert 256 <= len(data) < 65536 + 256
    return b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", len(data) - 256) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def frame(magic, body, version=0, packed=0, size=None):
    head = varint(version, packed)
    n = 12 + len(head) + len(body) + 4
    all_ = struct.pack(">I", magic) + struct.pack("<Q", n if size is None else size) + head + body
    return all_ + struct.pack("<I", crc32c(all_))


def shared(names):
    """(prefix lengths, suffixes) of texts; a prefix is common with the text before."""
    prefix, suffix, before = [], [], b""
    for name in names:
        n = 0
        while n < min(len(name), len(before)) and name[n] == before[n]:
            n += 1
        prefix.append(n)
        suffix.append(name[n:])
        before = name
    return prefix[1:], suffix


def files(*paths, base=None):
    prefix, suffix = shared(paths)
    return varint(len(paths), *prefix, *map(len, suffix), *(base or [0] * len(paths))) + b"".join(suffix)


def leaf(entries, table=files(), height=0, behind=b""):
    """entries: (key, bytes, or (file, offset, length))"""
    prefix, suffix = shared([key for key, _ in entries])
    outside = [v for _, v in entries if isinstance(v, tuple)]
    return (bytes([height]) + table + varint(len(entries), *prefix, *map(len, suffix)) + b"".join(suffix)
            + varint(*(v[2] if isinstance(v, tuple) else len(v) for _, v in entries))
            + varint(*(int(isinstance(v, tuple)) for _, v in entries)) + varint(*(v[0] for v in outside)) + varint(*(v[1] for v in outside))
            + b"".join(v for _, v in entries if not isinstance(v, tuple)) + behind)


def inner(height, children, table):
    """children: (key, common prefix, file, offset, length, keys)"""
    prefix, suffix = shared([c[0] for c in children])
    return (bytes([height]) + table + varint(len(children), *prefix, *map(len, suffix)) + varint(*(c[1] for c in children)) + b"".join(suffix)
            + b"".join(varint(*(c[i] for c in children)) for i in (2, 3, 4, 5)) + varint(*[0] * len(children)) * 2)


def versions(*rows):
    """rows: (generation, height, file, offset, length, keys)"""
    return (varint(len(rows), *(r[0] for r in rows)) + bytes(r[1] for r in rows) + b"".join(varint(*(r[i] for r in rows)) for i in (2, 3, 4, 5))
            + varint(*[0] * len(rows)) * 2 + struct.pack("<Q", 1) * len(rows))


NO_OLDER = varint(0)


def manifest(rows, table, kind=0, older=NO_OLDER, packed=0, behind=b"", level=True):
    body = bytes(16) + varint(kind, 1024, 100_000_000) + b"\x04" + (varint(1) + struct.pack("<i", 0) if level else varint(0)) + table
    body += versions(*rows) + older + behind
    return frame(MANIFEST, zstd(body) if packed else body, packed=packed)


def archive(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in members.items():
            z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compress_type=method)
    return out.getvalue()


def doc(**members):
    return json.dumps(members).encode()


def zarray(shape, chunks, type_="<f4", compressor=None):
    return doc(zarr_format=2, shape=shape, chunks=chunks, dtype=type_, compressor=compressor, fill_value=None, order="C", filters=None,
               dimension_separator=".")


def metadata(*paths):
    tree = {str(p): {"key_metadata": [{"key": k, "key_type": 2} for k in p], "value_metadata": {"value_type": "jax.Array"}} for p in paths}
    return doc(tree_metadata=tree, use_ocdbt=True, use_zarr3=False)


def flat(entries, more=None, data=b"", **how):
    """A database of one leaf in d/n. `data` are before the leaf; entries may refer to them as file 0."""
    node = frame(NODE, leaf(entries, files(b"d/n")))
    return {"manifest.ocdbt": manifest([(1, 0, 0, len(data), len(node), len(entries))], files(b"d/n"), **how), "d/n": data + node, **(more or {})}
