# SPDX-License-Identifier: MIT
"""The gpt.rs file formats in plain Python, written from their description and not from our C code.

Makes checkpoints and archives of every version like the upstream writers, and lists the content of
a file. Both make.py (here and in ../gptrs-archive) and the byte-identity test use it.
"""
import hashlib
import json
import struct

TAGS = {"f32": 0, "f16": 1, "bf16": 2, "i32": 3}
NAMES = {tag: name for name, tag in TAGS.items()}
WIDTH = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4}
CHECKPOINT, ARCHIVE = b"GPTRSCHK", b"GPTRSTEN"
NO_ID = bytes(16)

# ------------------------------------------------------------------ BLAKE3

IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8


def _compress(chain, block, counter, length, flags):
    v = list(chain) + IV[:4] + [counter & 0xFFFFFFFF, counter >> 32, length, flags]
    m = list(struct.unpack("<16I", block.ljust(64, b"\0")))

    def mix(a, b, c, d, x, y):
        for word, r1, r2 in ((x, 16, 12), (y, 8, 7)):
            v[a] = (v[a] + v[b] + word) & 0xFFFFFFFF
            v[d] ^= v[a]
            v[d] = (v[d] >> r1 | v[d] << (32 - r1)) & 0xFFFFFFFF
            v[c] = (v[c] + v[d]) & 0xFFFFFFFF
            v[b] ^= v[c]
            v[b] = (v[b] >> r2 | v[b] << (32 - r2)) & 0xFFFFFFFF

    for _ in range(7):
        for i in range(4):
            mix(i, 4 + i, 8 + i, 12 + i, m[2 * i], m[2 * i + 1])
        for i in range(4):
            mix(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[8 + 2 * i], m[9 + 2 * i])
        m = [m[i] for i in ORDER]
    return [v[i] ^ v[i + 8] for i in range(8)]


def _node(data, index, flags):
    """The chaining value of the subtree over data, whose first chunk has this index."""
    if len(data) <= 1024:
        chain = IV
        blocks = [data[i:i + 64] for i in range(0, len(data), 64)] or [b""]
        for i, block in enumerate(blocks):
            f = (CHUNK_START if i == 0 else 0) | (CHUNK_END | flags if i == len(blocks) - 1 else 0)
            chain = _compress(chain, block, index, len(block), f)
        return chain
    left = 1024
    while 2 * left < len(data):
        left *= 2
    pair = _node(data[:left], index, 0) + _node(data[left:], index + left // 1024, 0)
    return _compress(IV, struct.pack("<16I", *pair), 0, 64, PARENT | flags)


def blake3(data):
    return struct.pack("<8I", *_node(data, 0, ROOT))


def base_id(name):
    return blake3(name.encode())[:16]


# ----------------------------------------------------------------- writing


class Tensor:
    def __init__(self, name, dtype, shape, data, grad=0, ident=NO_ID, offset=None, length=None, tag=None):
        self.name = name if isinstance(name, bytes) else name.encode()
        self.dtype, self.shape, self.data, self.grad, self.ident = dtype, list(shape), data, grad, ident
        self.offset, self.length = offset, len(data) if length is None else length
        self.tag = TAGS[dtype] if tag is None else tag

    def head(self, wide=False, ids=False):
        n = "<Q" if wide else "<I"
        out = struct.pack(n, len(self.name)) + self.name + (self.ident if ids else b"")
        out += struct.pack(n, len(self.shape)) + b"".join(struct.pack("<Q", d) for d in self.shape)
        return out + struct.pack("<IB", self.tag, self.grad)


def values(dtype, count, start=0):
    """Returns count different little-endian elements."""
    if dtype == "i32":
        return struct.pack("<%di" % count, *((i * 7919 - 50 + start) for i in range(count)))
    if dtype == "f32":
        return struct.pack("<%df" % count, *((i - 3 + start) * 0.5 for i in range(count)))
    if dtype == "f16":
        return struct.pack("<%de" % count, *((i - 3 + start) * 0.5 for i in range(count)))
    return b"".join(struct.pack("<f", (i - 3 + start) * 0.5)[2:] for i in range(count))


def tensor(name, dtype, shape, start=0, **more):
    count = 1
    for d in shape:
        count *= d
    return Tensor(name, dtype, shape, values(dtype, count, start), **more)


def index(tensors, at, ids, wide=False):
    """The index, and the places of the data: back to back from `at` on, unless a tensor has another
    place."""
    out = struct.pack("<Q" if wide else "<I", len(tensors))
    for t in tensors:
        offset = at if t.offset is None else t.offset
        out += t.head(wide, ids) + struct.pack("<QQ", offset, t.length)
        at = offset + len(t.data) if t.offset is None else at
    return out


def index_size(tensors, ids, wide=False):
    return len(index(tensors, 0, ids, wide))


def checkpoint(config, tensors, wide=False, sort=True):
    """Like upstream's checkpoint.py and Rust writer: sorted by name, payloads back to back."""
    config = config.encode() if isinstance(config, str) else config
    tensors = sorted(tensors, key=lambda t: t.name) if sort else tensors
    n = index_size(tensors, True, wide)
    head = CHECKPOINT + struct.pack("<II", 2, len(config)) + config + struct.pack("<I", n)
    return head + index(tensors, len(head) + n, True, wide) + b"".join(t.data for t in tensors)


def archive(tensors, wide=False, sort=True):
    tensors = sorted(tensors, key=lambda t: t.name) if sort else tensors
    n = index_size(tensors, False, wide)
    head = ARCHIVE + struct.pack("<II", 2, n)
    return head + index(tensors, len(head) + n, False, wide) + b"".join(t.data for t in tensors)


def aligned(config, tensors, align):
    """A checkpoint, or an archive if config is None, whose tensors begin on multiples of align."""
    tensors = sorted(tensors, key=lambda t: t.name)
    n = index_size(tensors, config is not None)
    if config is not None:
        config += " " * (-(20 + len(config.encode()) + n) % align)
        at = 20 + len(config.encode()) + n
    else:
        at = 16 + n
    start, data = at, b""
    for t in tensors:
        gap = -at % align if t.data else 0
        t.offset, data, at = at + gap, data + bytes(gap) + t.data, at + gap + len(t.data)
    for t in tensors:
        t.data, t.length = b"", t.length
    whole = checkpoint(config, tensors) if config is not None else archive(tensors)
    assert len(whole) == start
    return whole + data


def records(tensors):
    return struct.pack("<I", len(tensors)) + b"".join(
        t.head() + struct.pack("<Q", t.length) + t.data for t in tensors)


def checkpoint_v1(config, tensors):
    config = config.encode() if isinstance(config, str) else config
    return CHECKPOINT + struct.pack("<II", 1, len(config)) + config + records(tensors)


def archive_v1(tensors):
    return ARCHIVE + struct.pack("<I", 1) + records(tensors)


def tagged(kind, config, **more):
    """The text of the config, as the Python exporter writes it."""
    return json.dumps({"kind": kind, "config": config, **more}, separators=(",", ":"))


# ----------------------------------------------------------------- reading


class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, n):
        if n > len(self.data) - self.at:
            raise ValueError("short")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def record(self, wide, ids, inline):
        n = "Q" if wide else "I"
        t = {"at": self.at, "name": self.take(self.number(n)).decode()}
        t["id"] = self.take(16) if ids and not inline else None
        t["shape"] = [self.number("Q") for _ in range(self.number(n))]
        t["dtype"], t["grad"] = NAMES[self.number("I")], self.number("B")
        t["offset"] = None if inline else self.number("Q")
        t["length"] = self.number("Q")
        if inline:
            t["offset"] = self.at
            self.take(t["length"])
        return t


def _indexed(data, start, n, ids):
    found = []  # (bytes left over, bincode, tensors): the syntax with fewer bytes left over is used
    for wide in (False, True):
        r = Reader(data[:start + n], start)
        try:
            out = [r.record(wide, ids, False) for _ in range(r.number("Q" if wide else "I"))]
            found.append((start + n - r.at, wide, out))
        except (ValueError, KeyError, UnicodeDecodeError):
            pass
    if not found:
        raise ValueError("no index")
    _, wide, out = min(found, key=lambda f: f[:2])
    return out, "2-bincode" if wide else "2"


def data_start(data):
    """The offset at which the data of a legal file without tensors would begin."""
    r = Reader(data, 8)
    version = r.number("I")
    if data[:8] == CHECKPOINT:
        r.take(r.number("I"))
    n = r.number("I")
    return r.at + (n if version == 2 else 0)


def parse(data):
    """(version, config text or None, tensors) of a legal file."""
    r = Reader(data, 8)
    ids = data[:8] == CHECKPOINT
    version = r.number("I")
    config = r.take(r.number("I")).decode() if ids else None
    if version == 1:
        return "1", config, [r.record(False, ids, True) for _ in range(r.number("I"))]
    n = r.number("I")
    tensors, version = _indexed(data, r.at, n, ids)
    return version, config, tensors


def expectation(data, form, attrs=None, warnings=0, lenient=False):
    """The expected result for a legal file."""
    version, config, tensors = parse(data)
    listed = []
    for t in tensors:
        own = {"gptrs.requires_grad": bool(t["grad"]) if t["grad"] <= 1 else t["grad"]}
        if form == "gptrs-checkpoint":
            if t["id"] is not None:
                own["gptrs.base_id"] = t["id"].hex()
            if t["name"].isascii():
                own["gptrs.param_id"] = base_id(t["name"]).hex()
        raw = data[t["offset"]:t["offset"] + t["length"]]
        listed.append({"name": t["name"], "dtype": t["dtype"], "shape": t["shape"], "order": "C",
                       "sha256": hashlib.sha256(raw).hexdigest(), "attrs": own})
    if attrs is None:
        attrs = {"gptrs.config": json.loads(config)} if config else {}
        if config:
            attrs["gptrs.kind"] = attrs["gptrs.config"].get("kind", "gpt")
    return {"format": form, "version": version, "lenient": lenient, "warnings": warnings,
            "attrs": attrs, "tensors": listed}


# ----------------------------------------------------------------- fixtures


class Folder:
    """valid/, reject/ and expect.json of one format. Files that this script did not make (mostly by
    the upstream writers) exist already, and are only described."""

    def __init__(self, here, form):
        self.here, self.form = here, form
        self.expect = {"valid": {}, "reject": {}, "documents": ["gptrs.config"]}

    def valid(self, name, data=None, **more):
        path = self.here / "valid" / name
        if data is not None:
            path.write_bytes(data)
        self.expect["valid"][name] = expectation(path.read_bytes(), self.form, **more)

    def reject(self, name, data, code, offset, message, lenient="rejects"):
        if data is not None:
            (self.here / "reject" / name).write_bytes(data)
        self.expect["reject"][name] = {"code": code, "offset": offset, "message": message,
                                       "lenient": lenient}

    def written(self, name, align=1, config=None):
        """Makes the expected file when a valid file is written again, if it differs from the
        original: version 2, not encoded, sorted, without unused bytes."""
        data = (self.here / "valid" / name).read_bytes()
        _, text, found = parse(data)
        tensors = [Tensor(t["name"], t["dtype"], t["shape"], data[t["offset"]:t["offset"] + t["length"]],
                          t["grad"], t["id"] or NO_ID) for t in found]
        end = max([t["offset"] + t["length"] for t in found], default=data_start(data))
        again = aligned(config or text and text.rstrip(" "), tensors, align) + data[end:]
        if align > 1 or again != data:
            (self.here / "written").mkdir(exist_ok=True)
            prefix = "align%d_" % align if align > 1 else ""
            (self.here / "written" / (prefix + name)).write_bytes(again)

    def close(self):
        for name in ("valid", "reject"):
            lying = {p.name for p in (self.here / name).iterdir()}
            assert lying == set(self.expect[name]), lying ^ set(self.expect[name])
        text = json.dumps(self.expect, indent=1, sort_keys=True, ensure_ascii=True)
        (self.here / "expect.json").write_text(text + "\n")
