#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes directories as torch.distributed.checkpoint writes them, and the expected results (Python's own library
only).

The directories valid/real_* exist already: torch 2.15 wrote them, and real.json has what torch reads from them.
This script makes all others from opcodes and records, with functions of ../pytorch/make.py.
"""
import hashlib
import importlib.util
import io
import json
import math
import pathlib
import shutil
import struct
import zipfile

HERE = pathlib.Path(__file__).parent
found = importlib.util.spec_from_file_location("pytorch", HERE.parent / "pytorch" / "make.py")
pt = importlib.util.module_from_spec(found)
found.loader.exec_module(pt)
text, number, tuple_of, named, tensor, checkpoint, floats = \
    pt.text, pt.number, pt.tuple_of, pt.named, pt.tensor, pt.checkpoint, pt.floats
BAD, SHORT, LIMIT, UNSUPPORTED, DIGEST = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED", "TNF_EDIGEST"
MODULE = "torch.distributed.checkpoint.metadata"
expect = {"valid": {}, "reject": {}, "parts": ["*.distcp"]}


# ------------------------------------------------------------------- composing

def thing(name, module=MODULE, state=None, **attrs):
    """An object by its class and its state."""
    return named(module, name) + b")\x81" + (state if state is not None else dict_of(attrs)) + b"b"


def dict_of(items):
    return b"}(" + b"".join((text(k) if isinstance(k, str) else k) + v for k, v in items.items()) + b"u"


def list_of(items):
    return b"](" + b"".join(items) + b"e"


def size(*dims):
    return named("torch", "Size") + b"(" + tuple_of(*map(number, dims)) + b"tR"


def chunk(offsets, sizes):
    return thing("ChunkStorageMetadata", offsets=size(*offsets), sizes=size(*sizes))


def tensor_of(shape, chunks, dtype="float32", state=None):
    """state: that of TensorProperties, as old versions had it."""
    state = state or tuple_of(named("torch", dtype), named("torch", "strided"), b"\x89", b"N", b"\x89")
    return thing("TensorStorageMetadata", properties=thing("TensorProperties", state=state), size=size(*shape),
                 chunks=list_of(chunks))


def place(fqn, index=None, offset=None):
    more = {"index": b"N" if index is None else number(index)}
    return thing("MetadataIndex", fqn=text(fqn), **more, **({"offset": size(*offset)} if offset is not None else {}))


def where(file, offset, length, **more):
    return thing("_StorageInfo", "torch.distributed.checkpoint.filesystem", relative_path=text(file), offset=number(offset),
                 length=number(length), **more)


def metadata(tensors, places, planner=None, **more):
    attrs = {"state_dict_metadata": dict_of(tensors)}
    if planner is not None:
        attrs["planner_data"] = dict_of(planner)
    if places is not None:
        attrs["storage_data"] = dict_of(places)
    return b"\x80\x02" + thing("Metadata", **attrs, **more) + b"."


def piece(shape, values, stride=None, storage=None, offset=0):
    """One tensor, saved by itself."""
    data = floats(*(values if storage is None else storage))
    stride = stride or [math.prod(shape[i + 1:]) for i in range(len(shape))]
    return checkpoint(b"\x80\x02" + tensor("0", len(data) // 4, shape, stride, offset) + b".", [("0", data)])


def joined(*pieces):
    """A file of several pieces, and the place of each in it."""
    out, spans = b"", []
    for data in pieces:
        spans.append((len(out), len(data)))
        out += data
    return out, spans


# ------------------------------------------------------------------- expected results

def write(kind, name, files):
    folder = HERE / kind / name
    folder.mkdir(parents=True)
    for file, data in files.items():
        (folder / file).write_bytes(data)


def valid(name, files, tensors, **more):
    write("valid", name, files)
    listed = [{"name": n, "dtype": t, "shape": s, "sha256": hashlib.sha256(d).hexdigest(), **(a[0] if a else {})}
              for n, t, s, d, *a in tensors]
    expect["valid"][name] = {"format": "pytorch-dcp", "tensors": listed, **more}


def reject(name, files, code, message, lenient="rejects"):
    write("reject", name, files)
    expect["reject"][name] = {"code": code, "offset": None, "message": message, "lenient": lenient}


FILE = "__0_0.distcp"
W = list(range(6))


def one(meta=None, info=None, data=None, key=None):
    """A directory with one tensor w [2, 3], or with one thing replaced."""
    data = data if data is not None else piece((2, 3), W)
    meta = meta or tensor_of((2, 3), [chunk((0, 0), (2, 3))])
    info = info or where(FILE, 0, len(data))
    return {".metadata": metadata({"w": meta}, {key or place("w", 0, (0, 0)): info}), FILE: data}


def make_valid():
    w = ("w", "f32", [2, 3], floats(*W))
    valid("one", one(), [w])
    valid("no_offset", one(key=place("w", 0)), [w])
    state = dict_of({"dtype": named("torch", "float32"), "requires_grad": b"\x89"})
    valid("old_properties", one(tensor_of((2, 3), [chunk((0, 0), (2, 3))], state=state)), [w])
    valid("columns", one(data=piece((2, 3), None, (1, 2), (0, 3, 1, 4, 2, 5))), [w])
    # [2, 3, 4]: cut after the first index of the second dimension, and in the middle of the third
    cube = list(range(24))  # [2, 3, 4]: cut behind the first of the second dimension, and in the middle of the third
    blocks, places = [], {}
    for at, n in (((0, 0, 0), (2, 1, 2)), ((0, 0, 2), (2, 1, 2)), ((0, 1, 0), (2, 2, 2)), ((0, 1, 2), (2, 2, 2))):
        blocks.append((at, n, [cube[(at[0] + i) * 12 + (at[1] + j) * 4 + at[2] + k]
                               for i in range(n[0]) for j in range(n[1]) for k in range(n[2])]))
    pieces = [piece(n, values) for _, n, values in blocks[:2]] + \
        [piece(n, None, (12, 4, 1), cube, 4 * at[1] + at[2]) for at, n, _ in blocks[2:]]
    data, spans = joined(b"in front", *pieces)
    for (at, _, _), span in zip(blocks, spans[1:]):
        places[place("w", None, at)] = where(FILE, *span)
    meta = tensor_of((2, 3, 4), [chunk(at, n) for at, n, _ in blocks])
    valid("cube", {".metadata": metadata({"w": meta}, places), FILE: data}, [("w", "f32", [2, 3, 4], floats(*cube))])
    # The same, with places that only have the number of the chunk.
    places = {place("w", i): where(FILE, *span) for i, span in enumerate(spans[1:])}
    valid("by_number", {".metadata": metadata({"w": meta}, places), FILE: data}, [("w", "f32", [2, 3, 4], floats(*cube))])
    # Keys with dots and numbers, values, and a missing value.
    value = checkpoint(b"\x80\x02" + dict_of({"lr": b"G" + struct.pack(">d", 0.5)}) + b".")
    data, spans = joined(piece((2, 3), W), value)
    bytes_ = thing("BytesStorageMetadata")
    files = {".metadata": metadata({"a.0.w": tensor_of((2, 3), [chunk((0, 0), (2, 3))]), "opt": bytes_, "gone": bytes_},
                                   {place("a.0.w", 0, (0, 0)): where(FILE, *spans[0]), place("opt"): where(FILE, *spans[1])},
                                   {"a.0.w": tuple_of(text("a"), number(0), text("w")), "opt": tuple_of(text("opt"))}),
             FILE: data}
    valid("paths", files, [("a.0.w", *w[1:], {"attrs": {"pytorch.path": ["a", 0, "w"]}})],
          attrs={"pytorch.values": {"opt": {"lr": 0.5}}})
    odd = metadata({"w": tensor_of((2, 3), [chunk((0, 0), (2, 3))])}, {place("w", 0, (0, 0)): where(FILE, *spans[0])},
                   {"w": tuple_of(text("w"), b"N")})
    valid("odd_path", {".metadata": odd, FILE: data}, [w])
    valid("empty", {".metadata": metadata({}, {})}, [])


def flipped(folder, values):
    """The same with one bit of these numbers changed."""
    data = folder[FILE]
    at = data.index(floats(*values))
    return {**folder, FILE: data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]}


def make_damaged():
    """One bit of the data changes: in a chunk that is used in place, in one that is gathered, in one that is joined
    with another."""
    reject("flipped", flipped(one(), W), DIGEST, "do not match", "opens")
    reject("flipped_columns", flipped(one(data=piece((2, 3), None, (1, 2), (0, 3, 1, 4, 2, 5))), (0, 3, 1, 4, 2, 5)), DIGEST,
           "does not match its CRC", "opens")
    rows, spans = joined(piece((1, 3), W[:3]), piece((1, 3), W[3:]))
    places = {place("w", None, (i, 0)): where(FILE, *span) for i, span in enumerate(spans)}
    meta = tensor_of((2, 3), [chunk((0, 0), (1, 3)), chunk((1, 0), (1, 3))])
    reject("flipped_rows", flipped({".metadata": metadata({"w": meta}, places), FILE: rows}, W[3:]), DIGEST, "does not match its CRC",
           "opens")


def make_reject():
    make_damaged()
    whole = piece((2, 3), W)
    two = [chunk((0, 0), (1, 3)), chunk((1, 0), (1, 3))]
    reject("no_places", {".metadata": metadata({}, None)}, BAD, "it has no storage_data")
    reject("no_tensors", {".metadata": b"\x80\x02" + thing("Metadata", storage_data=b"}") + b"."}, BAD, "not the metadata")
    reject("nameless", one(key=thing("MetadataIndex", index=number(0))), BAD, "a place has no name")
    reject("number_as_name", {".metadata": metadata({number(1): thing("BytesStorageMetadata")}, {})}, BAD, "a tensor has no name")
    reject("no_place", one(key=place("v", 0, (0, 0))), BAD, "a chunk has no place")
    reject("no_length", one(info=thing("_StorageInfo", relative_path=text(FILE), offset=number(0))), BAD, "no file, offset or length")
    reject("negative", one(info=where(FILE, -1, len(whole))), BAD, "no file, offset or length")
    reject("up", one(info=where("../" + FILE, 0, len(whole))), BAD, "in another directory")
    reject("beyond", one(info=where(FILE, 1, len(whole))), SHORT, "ends before a chunk")
    reject("transformed", one(info=where(FILE, 0, len(whole), transform_descriptors=list_of([text("zstd"), text("x")]))),
           UNSUPPORTED, "is transformed")
    reject("other_size", one(data=piece((3, 2), W)), BAD, "another type or size")
    reject("other_type", one(tensor_of((2, 3), [chunk((0, 0), (2, 3))], "int32")), BAD, "another type or size")
    reject("no_type", one(tensor_of((2, 3), [chunk((0, 0), (2, 3))], "float31")), BAD, "no known type")
    reject("no_rank", one(tensor_of((2, 3), [chunk((0,), (2, 3))])), BAD, "no place in its tensor")
    reject("over", one(tensor_of((3, 3), [chunk((0, 0), (2, 3))])), BAD, "do not tile it")
    reject("outside", one(tensor_of((2, 3), [chunk((1, 0), (2, 3))]), key=place("w", 0, (1, 0))), BAD, "do not tile it")
    rows, spans = joined(piece((1, 3), W[:3]), piece((1, 3), W[3:]))
    places = {place("w", i): where(FILE, *span) for i, span in enumerate(spans)}
    twice = [chunk((0, 0), (1, 3)), chunk((0, 0), (1, 3))]
    reject("twice", {".metadata": metadata({"w": tensor_of((2, 3), twice)}, places), FILE: rows}, BAD, "do not tile it")
    reject("half", {".metadata": metadata({"w": tensor_of((2, 3), two)}, {place("w", 0): where(FILE, *spans[0])}), FILE: rows},
           BAD, "a chunk has no place")
    same = [chunk((0, 0), (2, 3)) + b"q\0"] + [b"h\0"] * 4096  # by the memo
    reject("many", one(tensor_of((2, 3), same)), LIMIT, "at most 4096")
    reject("deflated", one(data=deflated(whole)), UNSUPPORTED, "deflated")
    reject("no_archive", one(data=bytes(200)), SHORT, "")


def deflated(whole):
    """The archive of a tensor, as another tool would write it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED if "/data/" in name else zipfile.ZIP_STORED
            new.writestr(info, old.read(name))
    return out.getvalue()


def main():
    for kind in ("valid", "reject"):
        (HERE / kind).mkdir(exist_ok=True)
        for old in (HERE / kind).iterdir():
            if not old.name.startswith("real_"):
                shutil.rmtree(old)
    expect["valid"].update(json.loads((HERE / "real.json").read_text()))
    make_valid()
    make_reject()
    (HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
