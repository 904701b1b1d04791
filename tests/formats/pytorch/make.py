#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of PyTorch checkpoints, and the expected results (Python's own library only).

The files valid/real_* exist already: torch 2.15 and 1.13 wrote them, and real.json has what torch reads from
them. This script makes all others, opcode by opcode and header by header.
"""
import hashlib
import json
import pathlib
import struct
import zlib

HERE = pathlib.Path(__file__).parent
BAD, SHORT, LIMIT, UNSUPPORTED, DIGEST = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED", "TNF_EDIGEST"
expect = {"valid": {}, "reject": {}}


# ------------------------------------------------------------------- composing

def text(s):
    raw = s.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(i):
    return b"K" + bytes([i]) if 0 <= i < 256 else b"J" + struct.pack("<i", i) if abs(i) < 2**31 else \
        b"\x8a\x09" + i.to_bytes(9, "little", signed=True)


def tuple_of(*items):
    return b"(" + b"".join(items) + b"t"


def named(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def storage(key, numel, kind="FloatStorage", place="cpu", more=b""):
    return b"(" + text("storage") + named("torch", kind) + text(key) + text(place) + number(numel) + more + b"tQ"


def tensor(key, numel, shape, stride, offset=0, kind="FloatStorage", more=b""):
    return named("torch._utils", "_rebuild_tensor_v2") + b"(" + storage(key, numel, kind, more=more) + number(offset) + \
        tuple_of(*map(number, shape)) + tuple_of(*map(number, stride)) + b"\x89" + \
        named("collections", "OrderedDict") + b")RtR"


def tree(**items):
    return b"\x80\x02}(" + b"".join(text(k) + v for k, v in items.items()) + b"u."


def record(at, name, data, align=64, crc=True, method=0):
    head = 30 + len(name) + 4
    fill = -(at + head) % align if align else 0
    local = b"PK\3\4" + struct.pack("<HHHIIIIHH", 0, 0x0808, method, 0, 0, 0, 0, len(name), 4 + fill)
    check = zlib.crc32(data) if crc else 0
    return local + name + struct.pack("<2sH", b"FB", fill) + b"Z" * fill + data + \
        b"PK\7\x08" + struct.pack("<III", check, len(data), len(data)), check


def archive(records, root="archive", **more):
    """A zip archive as torch writes it: sizes follow the data, and there are always end records of
    zip64."""
    out, central = b"", b""
    for name, data in records:
        name = f"{root}/{name}".encode() if root else name.encode()
        bytes_, crc = record(len(out), name, data, **more)
        central += b"PK\1\2" + struct.pack("<HHHHIIIIHHHHHII", 0, 0, 0x0808, 0, 0, crc, len(data), len(data), len(name), 0, 0,
                                           0, 0, 0, len(out)) + name
        out += bytes_
    at, n = len(out), len(records)
    end64 = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 0x31E, 0x2D, 0, 0, n, n, len(central), at)
    return out + central + end64 + b"PK\6\7" + struct.pack("<IQI", 0, at + len(central), 1) + \
        b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, n, n, len(central), at, 0)


def checkpoint(pickle, storages=(), version=b"3\n", more=(), **how):
    records = [("data.pkl", pickle)] + [(f"data/{k}", d) for k, d in storages]
    return archive(records + ([("version", version)] if version else []) + list(more), **how)


def legacy(pickle, storages, keys=None):
    magic = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
    names = b"\x80\x02](" + b"".join(text(k) for k, _, _ in storages) + b"e." if keys is None else keys
    info = b"\x80\x02}(" + text("protocol_version") + number(1001) + text("little_endian") + b"\x88u."
    return magic + b"\x80\x02M\xe9\x03." + info + pickle + names + \
        b"".join(struct.pack("<q", count) + data for _, count, data in storages)


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


# ------------------------------------------------------------------- expected results

def valid(name, data, tensors, version="zip", **more):
    (HERE / "valid" / name).write_bytes(data)
    listed = [{"name": n, "dtype": t, "shape": s, "sha256": d if d is None else hashlib.sha256(d).hexdigest()}
              for n, t, s, d in tensors]
    expect["valid"][name] = {"format": "pytorch", "version": version, "lenient": False, "tensors": listed, **more}


def reject(name, data, code, message, lenient="rejects", offset=None, rule=None):
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}
    if rule:
        expect["reject"][name]["rule"] = rule


W = floats(*range(6))


def make_valid():
    w = ("w", "f32", [2, 3], W)
    valid("one.pt", checkpoint(tree(w=tensor("0", 6, (2, 3), (3, 1))), [("0", W)]), [w], warnings=0)
    valid("empty.pt", checkpoint(b"\x80\x02}."), [], warnings=0)
    valid("unaligned.pt", checkpoint(tree(w=tensor("0", 6, (2, 3), (3, 1))), [("0", W)], align=0), [w])
    valid("no_crc.pt", checkpoint(tree(w=tensor("0", 6, (2, 3), (3, 1))), [("0", W)], crc=False), [w])
    valid("case.pt", archive([("DATA.PKL", tree(w=tensor("0", 6, (2, 3), (3, 1)))), ("data/0", W), ("VERSION", b"3")]), [w])
    valid("columns.pt", checkpoint(tree(w=tensor("0", 6, (2, 3), (1, 2))), [("0", W)]),
          [("w", "f32", [2, 3], floats(0, 2, 4, 1, 3, 5))])
    valid("expanded.pt", checkpoint(tree(w=tensor("0", 6, (2, 3), (0, 1), 1)), [("0", W)]),
          [("w", "f32", [2, 3], floats(1, 2, 3, 1, 2, 3))])
    valid("steps.pt", checkpoint(tree(w=tensor("0", 6, (3,), (2,))), [("0", W)]), [("w", "f32", [3], floats(0, 2, 4))])
    valid("scalar.pt", checkpoint(tree(w=tensor("0", 6, (), (), 5)), [("0", W)]), [("w", "f32", [], floats(5))])
    valid("shared.pt", checkpoint(tree(a=tensor("0", 6, (2,), (1,)), b=tensor("0", 6, (4,), (1,), 2)), [("0", W)]),
          [("a", "f32", [2], W[:8]), ("b", "f32", [4], W[8:])])
    valid("big.pt", checkpoint(tree(w=tensor("0", 6, (6,), (1,))), [("0", struct.pack(">6f", *range(6)))],
                               more=[("byteorder", b"big")]), [("w", "f32", [6], W)])
    valid("trailing.pt", checkpoint(tree(w=tensor("0", 6, (6,), (1,))) + b"\x80\x02N.", [("0", W)]), [("w", "f32", [6], W)],
          warnings=1)
    valid("unused.pt", checkpoint(tree(w=tensor("0", 6, (6,), (1,))), [("0", W), ("1", W)]), [("w", "f32", [6], W)], warnings=1)
    valid("root.pt", checkpoint(b"\x80\x02" + tensor("0", 6, (6,), (1,)) + b".", [("0", W)]), [("value", "f32", [6], W)])
    valid("object.pt", checkpoint(b"\x80\x02" + named("lib", "Model") + b")\x81}" + text("w") + tensor("0", 6, (6,), (1,)) + b"sb.",
                                  [("0", W)]), [("w", "f32", [6], W)], warnings=1)
    # A file that has no tree is saved as a dict. When it is read again, it has a tree, because of
    # the Parameter.
    parameter = named("torch._utils", "_rebuild_parameter") + tuple_of(
        tensor("0", 6, (2, 3), (3, 1)), b"\x88", named("collections", "OrderedDict") + b")R") + b"R"
    valid("parameter_no_tree.pt", checkpoint(tree(w=parameter, x=text("unknown") + b"Q"), [("0", W)]), [w], warnings=1)
    make_nested()
    make_odd()
    view = tuple_of(text("9"), number(2), number(3))
    valid("old.pt", legacy(tree(w=tensor("7", 6, (6,), (1,), more=b"N"), v=tensor("7", 6, (3,), (1,), more=view)),
                           [("7", 6, W)]),
          [("w", "f32", [6], W), ("v", "f32", [3], W[8:20])], "legacy", warnings=0)


def list_of(*items):
    return b"](" + b"".join(items) + b"e"


def made(module, name, *args):
    return named(module, name) + tuple_of(*args) + b"R"


def make_nested():
    """Tensors that only a search through everything finds."""
    a, b = tensor("0", 6, (6,), (1,)), tensor("0", 6, (2,), (1,), 4)
    listed = [("a", "f32", [6], W), ("b", "f32", [2], W[16:])]
    pairs = [(text("a"), a), (text("b"), b)]
    # Python 2 pickles every OrderedDict like this.
    for name, module, kind, items in [
            ("python2_ordered.pt", "collections", "OrderedDict", list_of(*[list_of(*p) for p in pairs])),
            ("ordered_tuples.pt", "collections", "OrderedDict", tuple_of(*[tuple_of(*p) for p in pairs])),
            ("builtin_dict.pt", "__builtin__", "dict", list_of(*[tuple_of(*p) for p in pairs])),
            ("builtins_dict.pt", "builtins", "dict", tuple_of(*[list_of(*p) for p in pairs]))]:
        valid(name, checkpoint(b"\x80\x02" + made(module, kind, items) + b".", [("0", W)]), listed)
    valid("default_dict.pt", checkpoint(b"\x80\x02" + made("collections", "defaultdict", named("__builtin__", "list"),
                                                           list_of(list_of(*pairs[0]))) + pairs[1][0] + pairs[1][1] + b"s.",
                                        [("0", W)]), listed)
    valid("named_tuple.pt", checkpoint(tree(n=made("lib", "Pair", list_of(a), b"}" + text("k") + b + b"s")), [("0", W)]),
          [("n.0.0", "f32", [6], W), ("n.1.k", "f32", [2], W[16:])])
    valid("state_tuple.pt", checkpoint(tree(n=named("lib", "Box") + b")\x81" + tuple_of(number(1), list_of(a), b) + b"b"),
                                       [("0", W)]), [("n.1.0", "f32", [6], W), ("n.2", "f32", [2], W[16:])])
    wrapper = tuple_of(named("lib", "Sharded"), named("torch", "float32"), tuple_of(number(12)), tuple_of(number(1)), number(0),
                       b"N", b"N", b"\x89")
    data = checkpoint(tree(w=made("torch._tensor", "_rebuild_from_type_v2", named("torch._utils", "_rebuild_wrapper_subclass"),
                                  named("lib", "Sharded"), wrapper, b"}" + text("_local_tensor") + a + b"s")), [("0", W)])
    valid("wrapper_state.pt", data, [("w", "f32", [12], None), ("w._local_tensor", "f32", [6], W)])


def make_odd():
    """One tensor is of an unknown kind, or is missing in the place of its storage: the others are still read."""
    ok, other = tensor("0", 6, (6,), (1,)), tensor("1", 6, (6,), (1,))
    w = ("w", "f32", [6], W)
    files = [("0", W), ("1", W)]
    valid("tensor_key.pt", checkpoint(b"\x80\x02}(" + text("w") + ok + other + number(1) + b"u.", files),
          [w, ("storage data/1", "u8", [24], None)], warnings=1)
    hooks = named("collections", "OrderedDict") + b")R"
    view = [number(0), tuple_of(number(6)), tuple_of(number(1))]
    kinds = {
        "odd_type.pt": made("torch._utils", "_rebuild_tensor_v3", storage("1", 24, "ByteStorage"), *view, b"\x89", hooks,
                            named("torch", "float3_new")),
        "odd_storage.pt": tensor("1", 6, (6,), (1,), kind="NewStorage"),
        "odd_quantizer.pt": made("torch._utils", "_rebuild_qtensor", storage("1", 24, "QInt8Storage"), *view,
                                 tuple_of(named("torch", "per_new_affine"), number(1), number(2)), b"\x89", hooks)}
    for name, odd in kinds.items():
        valid(name, checkpoint(tree(o=odd, w=ok), files), [("o", "u8", [6], None), w])
    odd = made("torch._tensor", "_rebuild_from_type_v2", named("lib", "rebuild"), named("lib", "Tensor"), tuple_of(other), b"}")
    valid("odd_function.pt", checkpoint(tree(o=odd, w=ok), files), [("o", "u8", [], None), ("o.0", "f32", [6], W), w])


def make_reject():
    good = tree(w=tensor("0", 6, (2, 3), (3, 1)))
    whole = checkpoint(good, [("0", W)])
    for n in (3, 60, len(whole) // 2, len(whole) - 22, len(whole) - 1):
        reject(f"cut_{n:04}.pt", whole[:n], SHORT, "")
    reject("no_version.pt", checkpoint(good, [("0", W)], version=None), BAD, "no record 'version'", "opens")
    reject("version_11.pt", checkpoint(good, [("0", W)], version=b"11\n"), UNSUPPORTED, "version 11", "opens")
    reject("version_text.pt", checkpoint(good, [("0", W)], version=b"x"), BAD, "not a number")
    reject("byteorder.pt", checkpoint(good, [("0", W)], more=[("byteorder", b"middle")]), BAD, "not little or big")
    reject("missing.pt", checkpoint(good), BAD, "is not in the file")
    reject("short.pt", checkpoint(good, [("0", W[:20])]), BAD, "has 20 bytes, but the pickle says 24")
    reject("long.pt", checkpoint(good, [("0", W + W)]), BAD, "has 48 bytes, but the pickle says 24")
    reject("beyond.pt", checkpoint(tree(w=tensor("0", 6, (2, 3), (3, 1), 1)), [("0", W)]), BAD, "beyond its storage")
    reject("negative.pt", checkpoint(tree(w=tensor("0", 6, (2,), (-1,))), [("0", W)]), BAD, "strides")
    reject("ranks.pt", checkpoint(tree(w=tensor("0", 6, (2, 3), (1,))), [("0", W)]), BAD, "number of its strides")
    reject("huge.pt", checkpoint(tree(w=tensor("0", 6, (2**62, 2**62), (0, 0))), [("0", W)]), BAD, "can be counted")
    reject("twice.pt", checkpoint(good, [("0", W)], more=[("Data/0", W)]), BAD, "two records", "opens")
    reject("outside.pt", archive([("archive/data.pkl", good), ("archive/data/0", W), ("archive/version", b"3"), ("x/y", b"")], root=""),
           BAD, "is not in the directory", "opens")
    reject("opcode.pt", checkpoint(b"\x80\x02\xff."), BAD, "not an opcode")
    reject("no_stop.pt", checkpoint(good[:-1], [("0", W)]), SHORT, "without STOP")
    reject("nullif.pt", checkpoint(b"\x80\x02" + named("posix", "system") + tuple_of(text("true")) + b"R\xff."), BAD, "posix.system")
    reject("bare.pkl", b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R.", UNSUPPORTED, "a Python pickle")
    reject("preview.pt", b"PYTORCH1" + bytes(64), UNSUPPORTED, "preview of PyTorch 1.0")
    reject("old_unsized.pt", legacy(tree(a=number(1)), [("7", 6, W)]), BAD, "no tensor names the storage")
    reject("call.pt", checkpoint(tree(w=tensor("0", 6, (6,), (1,)), x=named("posix", "system") + tuple_of(text("true")) + b"R"),
                                 [("0", W)]), BAD, "posix.system", "opens", rule="PickleCall")
    data = bytearray(whole)
    data[data.index(W)] ^= 1
    reject("crc.pt", bytes(data), DIGEST, "do not match", "opens")


def main():
    for folder in ("valid", "reject"):
        for old in (HERE / folder).iterdir():
            if not old.name.startswith("real_"):
                old.unlink()
    expect["valid"].update(json.loads((HERE / "real.json").read_text()))
    make_valid()
    make_reject()
    (HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
