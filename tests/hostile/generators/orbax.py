# SPDX-License-Identifier: MIT
"""Orbax: OCDBT databases, in zip archives and directories."""
import pathlib
import struct
import sys

from kit import *

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "formats" / "orbax"))
import ocdbt as o  # noqa: E402

FORMAT, EXTENSION = "orbax", "orbax.zip"
ARRAY, DATA = o.zarray([2], [2]), bytes(8)
W = [(b"w/.zarray", ARRAY), (b"w/0", DATA)]
TABLE = o.files(b"d/n")


def of_node(body, keys=2, height=0, offset=0, more=None, **how):
    """A database whose root is one node at d/n."""
    node = body if isinstance(body, bytes) and body[:4] == b"\x0c\xdb\x20\xde" else o.frame(o.NODE, body, **how)
    return o.archive({"manifest.ocdbt": o.manifest([(1, height, 0, offset, len(node), keys)], TABLE), "d/n": node, **(more or {})})


def shared_nodes(height, keys):
    """Each node has the one below it twice as a child, under other keys: two to the power of `height` keys in few bytes."""
    data, before = o.frame(o.NODE, o.leaf([(b"k", b"")])), 0
    at, size = 0, len(data)
    for h in range(1, height + 1):
        node = o.frame(o.NODE, o.inner(h, [(b"a", 1, 0, at, size, 1), (b"b", 1, 0, at, size, 1)], TABLE))
        at, size = len(data), len(node)
        data += node
    return o.archive({"manifest.ocdbt": o.manifest([(1, height, 0, at, size, keys)], TABLE), "d/n": data})


def make(c):
    good = o.archive(o.flat(W))
    c.accepted("P", "nothing_wrong", good, 1, "a database of one array")
    c.accepted("P", "folder", o.flat(W), 1, "the same in a directory")
    c.accepted("P", "alone", {"manifest.ocdbt": o.manifest([], o.files())}, 0, "a manifest without versions")
    for at in (5, 60, len(good) // 2, len(good) - 1):
        c.rejected("A", f"cut_{at}", good[:at], [SHORT, BAD, UNSUPPORTED], None, "", f"the first {at} bytes")
    whole = o.flat(W)["manifest.ocdbt"]
    for at in (4, 12, 17, len(whole) - 1):
        c.rejected("A", f"manifest_{at}", {"manifest.ocdbt": whole[:at], "d/n": b""}, BAD, None, "", f"the first {at} bytes of the manifest")
    c.rejected("A", "manifest_long", o.archive(o.flat(W, behind=b"\0")), BAD, None, "manifest is damaged", "a byte behind the manifest's body")
    c.rejected("B", "zip_of_nothing", o.archive({"_METADATA": b""}), [BAD, SHORT], None, "", "metadata of no bytes")
    for name, n in HUGE.items():
        letter = "D" if n >= 1 << 63 else "C"
        c.rejected(letter, f"keys_{name}", of_node(o.leaf(W), keys=n), BAD, None, "", f"{n} keys")
        c.rejected(letter, f"offset_{name}", of_node(o.leaf(W), offset=n), [BAD, SHORT], None, "", f"a root at {n}")
        c.rejected(letter, f"value_{name}", of_node(b"\0" + o.files() + o.varint(1, 1) + b"a" + o.varint(n, 0), 1), BAD, None, "", f"a value of {n} bytes")
        c.rejected(letter, f"files_{name}", of_node(b"\0" + o.varint(n)), BAD, None, "files", f"{n} files")
        c.rejected(letter, f"entries_{name}", of_node(b"\0" + o.files() + o.varint(n)), BAD, None, "damaged", f"{n} entries")
        c.rejected(letter, f"suffix_{name}", of_node(b"\0" + o.files() + o.varint(1, n)), BAD, None, "key", f"a key of {n} bytes")
        c.rejected(letter, f"far_{name}", of_node(o.leaf([(b"a", (0, n, 1))], TABLE), 1), [BAD, SHORT], None, "", f"a value at {n}")
    c.rejected("C", "varint_endless", of_node(b"\0" + b"\xff" * 40), BAD, None, "files", "a number without an end")
    c.rejected("C", "frame_short", of_node(o.frame(o.NODE, o.leaf(W), size=17)), BAD, None, "length", "a node that says it is shorter")
    child = [(b"a", 0, 0, 0, 90, 1)]
    c.rejected("E", "child_outside", of_node(o.inner(1, [(b"a", 0, 0, 1 << 40, 90, 1)], TABLE), height=1), SHORT, None, "ends before", "a child outside")
    c.rejected("G", "its_own_child", of_node(o.inner(1, child, TABLE).ljust(70, b"\0"), height=1), BAD, None, "", "a node that is its own child")
    c.rejected("G", "tall", of_node(o.leaf(W), height=200), BAD, None, "invalid reference", "a tree of height 200")
    c.rejected("F", "shared", shared_nodes(24, 1 << 24), BAD, None, "invalid reference", "16 million keys out of 25 nodes")
    c.rejected("F", "shared_few", shared_nodes(24, 100), BAD, None, "", "the same, with 100 of them declared")
    bomb = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", 1 << 30) + struct.pack("<I", 1 << 3 | 1)[:3] + b"x"
    c.rejected("F", "zstd_says", of_node(bomb, packed=1), [LIMIT, BAD], None, "", "a node that says it unpacks to 1 GiB")
    rle = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", 2200 << 17) + struct.pack("<I", (1 << 17) << 3 | 2)[:3] * 0 \
        + b"".join(struct.pack("<I", (1 << 17) << 3 | 2 | (i == 2199))[:3] + b"\0" for i in range(2200))
    c.rejected("N", "zstd_bomb", of_node(rle, packed=1), [LIMIT, BAD], None, "", "a node that unpacks to 275 MiB of zeros")
    c.rejected("N", "zstd_none", of_node(b"????????", packed=1), BAD, None, "", "a packed node that is none")
    c.rejected("H", "twice", of_node(o.leaf([W[0], W[0]]), 2), BAD, None, "order", "a key twice")
    c.rejected("H", "backwards", of_node(o.leaf(W[::-1]), 2), BAD, None, "order", "keys that run backwards")
    c.rejected("H", "both_versions", of_node(o.leaf([W[0], W[1], (b"w/zarr.json", o.doc(node_type="array"))]), 3), BAD, None, "", "an array of two versions")
    for name, path in (("up", b"../n"), ("absolute", b"/etc/passwd"), ("dot", b"./d/n"), ("twice", b"d//n"), ("nul", b"d/n\0"), ("drive", b"C:\\n"),
                       ("empty", b"")):
        c.rejected("K", f"path_{name}", of_node(o.leaf([(b"a", (0, 0, 1))], o.files(path)), 1), BAD, None, "missing", f"a value in {path!r}")
        c.rejected("K", f"folder_{name}", o.flat([(b"a", b"")]) | {"manifest.ocdbt": o.manifest([(1, 0, 0, 0, 9, 1)], o.files(path))}, BAD, None, "missing",
                   f"the root in {path!r}, of a directory")
    c.damaged("P", "chunk_short", of_node(o.leaf([W[0], (b"w/0", DATA[:7])])), BAD, 1, "a chunk that is too short")
    deep = b'{"tree_metadata": ' + b'{"a":' * 3000 + b"1" + b"}" * 3001
    c.rejected("G", "metadata_deep", of_node(o.leaf(W), more={"_METADATA": deep}), [BAD, LIMIT], None, "", "metadata in metadata")
    c.accepted("H", "metadata_odd", of_node(o.leaf(W), more={"_METADATA": b'{"tree_metadata": {"x": {"key_metadata": [7, {"key": null}, {}]}, "y": 3}}'}), 1,
               "keys that are none", warnings=None)
