#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of Orbax, and the expected results (Python's own library only).

Most checkpoints are zip archives, so that each is one file; a few are directories.
"""
import hashlib
import json
import pathlib
import shutil
import struct

from ocdbt import *

HERE = pathlib.Path(__file__).parent
BAD, SHORT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_EUNSUPPORTED"
expect = {"valid": {}, "reject": {}, "parts": ["folder/d/*", "*.orbax-checkpoint-tmp-1/d/*"],
          "documents": ["orbax.metadata", "orbax.strings", "zarr.attrs"]}


def put(kind, name, members, **how):
    path = HERE / kind / name
    if name.endswith(".zip"):
        path.write_bytes(archive(members, **how))
        return
    for key, data in members.items():
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).write_bytes(data)


def tensor(name, dtype, shape, data, path=None):
    return {"name": name, "dtype": dtype, "shape": list(shape), "sha256": hashlib.sha256(data).hexdigest(), "attrs": {"orbax.path": path} if path else {}}


def valid(name, members, tensors, attrs=None, warnings=0):
    put("valid", name, members)
    expect["valid"][name] = {"format": "orbax", "warnings": warnings, "tensors": tensors, "attrs": attrs or {}}


def reject(name, members, code, message, offset=None, **how):
    put("reject", name, members, **how)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": "rejects"}


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


ONE = f32(1, 2, 3, 4)
W = [(b"params.w/.zarray", zarray([4], [4])), (b"params.w/0", ONE)]


def make_valid():
    told = tensor("params.w", "f32", [4], ONE)
    valid("inline.orbax.zip", flat(W), [told])
    valid("folder/manifest.ocdbt", {}, [told])
    put("valid", "folder", flat(W))
    valid("x.orbax-checkpoint-tmp-1/manifest.ocdbt", {}, [told], warnings=1) # a save that was not finished
    put("valid", "x.orbax-checkpoint-tmp-1", flat(W))
    valid("outside.orbax.zip", flat([W[0], (b"params.w/0", (0, 3, 16))], data=b"???" + ONE), [told])
    tree = metadata(("params", "w"))
    valid("tree.orbax.zip", flat(W, {"_METADATA": tree, "_strings.json": b'{"note": "x"}', "_CHECKPOINT_METADATA": b"{}"}),
          [tensor("params.w", "f32", [4], ONE, ["params", "w"])], {"orbax.metadata": json.loads(tree), "orbax.strings": {"note": "x"}})
    valid("listed.orbax.zip", flat([(b"opt.0/.zarray", zarray([], [], "<i8")), (b"opt.0/0", struct.pack("<q", 7))],
                                   {"_METADATA": doc(tree_metadata={"x": {"key_metadata": [{"key": "opt", "key_type": 2}, {"key": 0, "key_type": 1}]}})}),
          [tensor("opt.0", "i64", [], struct.pack("<q", 7), ["opt", "0"])])
    valid("dirs.orbax.zip", {"_METADATA": metadata(("a", )), "a/.zarray": zarray([4], [2]), "a/0": ONE[:8], "a/1": ONE[8:]},
          [tensor("a", "f32", [4], ONE, ["a"])])
    array3 = doc(zarr_format=3, node_type="array", shape=[4], data_type="float32", chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4]}},
                 chunk_key_encoding={"name": "default"}, fill_value=0.0, codecs=[{"name": "bytes", "configuration": {"endian": "little"}}])
    group3 = doc(zarr_format=3, node_type="group", attributes={})
    valid("zarr3.orbax.zip", flat([(b"g/zarr.json", group3), (b"w/c/0", ONE), (b"w/zarr.json", array3)]), [tensor("w", "f32", [4], ONE)])
    nothing = 2**64 - 1
    valid("empty.orbax.zip", {"manifest.ocdbt": manifest([(1, 0, 0, nothing, nothing, 0)], files(b"")), "_METADATA": metadata()}, [])
    node = frame(NODE, leaf(W))
    older = varint(1, 1, 0, 0, 10, 16) + struct.pack("<Q", 1) + b"\0"
    rows = [(17, 0, 0, 1 << 40, 9, 5), (18, 0, 0, 0, len(node), 2)]
    valid("versions.orbax.zip", {"manifest.ocdbt": manifest(rows, files(b"d/n"), older=older, level=False), "d/n": node}, [told])
    make_deep()
    make_chunked()


def make_chunked():
    """Eight chunks of 512 bytes, in a file of the database. A slice reads only the chunks that it
    needs."""
    rows = [f32(*range(128 * i, 128 * i + 128)) for i in range(8)]
    entries = [(b"w/.zarray", zarray([8, 128], [1, 128]))] + [(b"w/%d.0" % i, (0, 512 * i, 512)) for i in range(8)]
    valid("chunked.orbax.zip", flat(entries, data=b"".join(rows)), [tensor("w", "f32", [8, 128], b"".join(rows))])


def make_deep():
    """Two heights above the leaves, packed nodes, inherited base paths of files, keys with common prefixes."""
    entries, tensors = [], []
    for i in range(12):
        data = f32(i, i + 0.5)
        entries.append((b"layer.%02d/.zarray" % i, zarray([2], [2])))
        entries.append((b"layer.%02d/0" % i, data))
        tensors.append(tensor("layer.%02d" % i, "f32", [2], data))
    # Keys of a leaf are relative to "layer.", the prefix that its parent gives; its file is relative to
    # "ocdbt.process_0/".
    parts = [[(k[6:], v) for k, v in entries[i:i + 6]] for i in range(0, 24, 6)]
    data, children = b"", []
    for part in parts:
        values, table = [], files(b"d/v")
        for key, value in part:
            if key.endswith(b"/0"):
                value = (0, 0, 8) if not values else (0, 8 * (len(values) // 2), 8)
            values.append((key, value))
        node = frame(NODE, zstd(leaf(values, table)), packed=1)
        children.append((b"layer." + part[0][0], 6, 0, len(data), len(node), len(part)))
        data += node
    # All leaves use the values of the first leaf; the expected tensors follow from this.
    values = f32(0, .5, 1, 1.5, 2, 2.5)
    tensors = [tensor("layer.%02d" % i, "f32", [2], values[8 * (i % 3):8 * (i % 3) + 8]) for i in range(12)]
    table = files(b"ocdbt.process_0/d/n", base=[16])
    low = [frame(NODE, inner(1, children[i:i + 2], table)) for i in (0, 2)]
    high = frame(NODE, inner(2, [(children[0][0], 0, 0, 0, len(low[0]), 12), (children[2][0], 0, 0, len(low[0]), len(low[1]), 12)], files(b"d/m")))
    rows = [(1, 2, 0, len(low[0]) + len(low[1]), len(high), 24)]
    valid("deep.orbax.zip", {"manifest.ocdbt": manifest(rows, files(b"d/m")), "d/m": low[0] + low[1] + high, "ocdbt.process_0/d/n": data,
                             "ocdbt.process_0/d/v": values}, tensors)


def changed(members, name, at, to):
    data = members[name]
    return {**members, name: data[:at] + to + data[at + len(to):]}


def make_rejected():
    good = flat(W)
    n = len(good["manifest.ocdbt"])
    say = "a node of the database "
    reject("magic.orbax.zip", changed(good, "manifest.ocdbt", 3, b"\x2b"), BAD, say + "has another magic number")
    reject("length.orbax.zip", changed(good, "manifest.ocdbt", 4, bytes([n - 1])), BAD, say + "has another length")
    reject("cut.orbax.zip", {**good, "manifest.ocdbt": good["manifest.ocdbt"][:-1]}, BAD, say + "has another length")
    reject("crc.orbax.zip", changed(good, "manifest.ocdbt", 30, b"\x77"), BAD, "crc32c")
    reject("node_crc.orbax.zip", changed(good, "d/n", 30, b"\x77"), BAD, "crc32c")
    table, rows = files(b"d/n"), lambda n, **but: [(1, but.get("height", 0), but.get("file", 0), but.get("offset", 0), n, but.get("keys", 2))]

    def node(body, name, code, message, offset=None, keys=2, height=0, **how):
        data = frame(NODE, body, **how)
        reject(f"{name}.orbax.zip", {"manifest.ocdbt": manifest(rows(len(data), keys=keys, height=height), table), "d/n": data}, code, message, offset)

    node(leaf(W), "version", BAD, say + "has an unknown version", version=1)
    node(leaf(W), "packing", BAD, say + "has an unknown version", packed=2)
    node(b"nothing packed", "zstd", BAD, "", packed=1)
    node(leaf(W, height=1), "height", BAD, say + "has another height")
    node(leaf(W, behind=b"\0"), "node_long", BAD, say + "is too long")
    node(b"\0" + files() + varint(0), "node_empty", BAD, say + "is damaged")
    node(b"\0" + files() + varint(1 << 40), "node_count", BAD, say + "is damaged")
    node(b"\0" + varint(1 << 40), "files_count", BAD, "its table of files is damaged")
    node(b"\0" + varint(1, 9, 0) + b"d/n", "files_cut", BAD, "its table of files is damaged")
    node(b"\0" + varint(2, 5, 1, 1, 0, 0) + b"ab", "files_prefix", BAD, "its table of files is damaged")
    node(b"\0" + varint(1, 1, 2) + b"a", "files_base", BAD, "its table of files is damaged")
    node(b"\0" + varint(3) + b"\xff" * 9, "files_numbers", BAD, "its table of files is damaged")
    node(b"\0" + files() + varint(2, 5, 1, 1) + b"ab", "key_prefix", BAD, "a key of the database is damaged")
    node(b"\0" + files() + varint(1, 99), "key_cut", BAD, "a key of the database is damaged")
    node(b"\0" + files() + varint(1, 1) + b"a" + varint(0, 2), "value_kind", BAD, "a leaf of the database is damaged", keys=1)
    node(b"\0" + files() + varint(1, 1) + b"a" + varint(5, 0) + b"x", "value_cut", BAD, "a value of the database ends too early", keys=1)
    node(leaf([(b"a", (7, 0, 1))], table), "value_file", BAD, "in a file that does not exist", keys=1)
    node(leaf([(b"a", (0, 0, 1))], files(b"d/other")), "value_missing", BAD, 'd/other', keys=1)
    node(leaf([(b"a", (0, 0, 1))], files(b"../d/n")), "value_leaves", BAD, "../d/n", keys=1)
    node(leaf([(b"a", (0, 1 << 50, 1))], table), "value_outside", SHORT, "ends before", keys=1)
    node(leaf(W), "keys", BAD, "a leaf of the database is damaged", keys=1)
    node(inner(1, [(b"a", 0, 0, 0, 20, 1)], files()), "child_file", BAD, "has an invalid reference", height=1)
    node(inner(1, [(b"a", 9, 0, 0, 20, 1)], table), "child_common", BAD, "has an invalid reference", height=1)
    node(inner(1, [(b"a", 0, 0, 0, 20, 1)], table)[:-1], "child_cut", BAD, say + "is damaged", height=1)
    node(inner(1, [(b"a", 0, 0, 1 << 40, 20, 1)], table), "child_outside", SHORT, "ends before", height=1)
    data = frame(NODE, leaf(W))
    for name, said, how in (("file", "has an invalid reference", {"file": 1}), ("tall", "has an invalid reference", {"height": 65}), ("many", "has an invalid reference", {"keys": 1 << 31})):
        reject(f"root_{name}.orbax.zip", {"manifest.ocdbt": manifest(rows(len(data), **how), table), "d/n": data}, BAD, said)
    reject("root_offset.orbax.zip", {"manifest.ocdbt": manifest(rows(len(data), offset=1), table), "d/n": data}, SHORT, "ends before")
    reject("manifest_long.orbax.zip", flat(W, behind=b"\0"), BAD, "the manifest is damaged")
    reject("manifest_kind.orbax.zip", flat(W, kind=2), BAD, "the manifest is damaged")
    reject("numbered.orbax.zip", flat(W, kind=1), UNSUPPORTED, "numbered manifests")
    reject("older.orbax.zip", flat(W, older=varint(1 << 30)), BAD, "the manifest is damaged")
    reject("no_data.orbax.zip", {"manifest.ocdbt": good["manifest.ocdbt"]}, BAD, "d/n")
    reject("deflated.orbax.zip", {**good, "_METADATA": metadata()}, UNSUPPORTED, "unpack it", method=zipfile.ZIP_DEFLATED)
    reject("metadata.orbax.zip", {**good, "_METADATA": b"["}, BAD, "_METADATA")
    reject("strings.orbax.zip", {**good, "_strings.json": b"[]"}, BAD, "_strings.json")
    steps = {f"{i}/default/_METADATA": metadata() for i in (100, 200)} | {f"{i}/default/d/x": b"" for i in (100, 200)}
    reject("steps.orbax.zip", {"_CHECKPOINT_METADATA": b'{"item_handlers": {}}', **steps}, UNSUPPORTED, "holds 2 checkpoints")
    step = {"_CHECKPOINT_METADATA": b'{"item_handlers": {}}'}
    below = {f"default/{name}": data for name, data in good.items()} # an item without _METADATA, and a part of its database
    reject("item.orbax.zip", {**step, **below, "default/ocdbt.process_0/manifest.ocdbt": b""}, UNSUPPORTED, "is 'default': open that one")
    dirs = {"default/_METADATA": metadata(("w", )), "default/w/.zarray": zarray([4], [4]), "default/w/0": ONE}
    reject("item_dirs.orbax.zip", {**step, **dirs}, UNSUPPORTED, "is 'default': open that one")
    reject("nothing.orbax.zip", step, BAD, "has no arrays")


def main():
    for folder in ("valid", "reject"):
        shutil.rmtree(HERE / folder, ignore_errors=True)
        (HERE / folder).mkdir()
    make_valid()
    make_rejected()
    (HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n")


main()
