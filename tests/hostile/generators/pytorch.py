# SPDX-License-Identifier: MIT
"""PyTorch: pickles in zip archives, in streams of old versions, in tar archives, in directories. If a reader
executed a call in them, it would only get the number of its process, which is harmless."""
import struct
import zlib

from kit import *

FORMATS = [("pytorch", "pt"), ("pytorch-dcp", "metadata"), ("pytorch-index", "json")]
DIGEST = "TNF_EDIGEST"
GETPID = b"cposix\ngetpid\n"
CALL = GETPID + b")R"


def text(s):
    raw = s if isinstance(s, bytes) else s.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(i):
    if -2**31 <= i < 2**31:
        return b"K" + bytes([i]) if 0 <= i < 256 else b"J" + struct.pack("<i", i)
    return b"\x8a\x09" + i.to_bytes(9, "little", signed=True)


def tuple_of(*items):
    return b"(" + b"".join(items) + b"t"


def numbers(*values):
    return tuple_of(*map(number, values))


def name_of(module, name):
    return f"c{module}\n{name}\n".encode()


def call(module, name, *args):
    return name_of(module, name) + tuple_of(*args) + b"R"


def made(module, name, **state):
    """An object with a state: NEWOBJ and BUILD."""
    return name_of(module, name) + b")\x81}(" + b"".join(text(k) + v for k, v in state.items()) + b"ub"


def storage(key="0", numel=4, kind="FloatStorage", place="cpu", more=b""):
    return tuple_of(text("storage"), name_of("torch", kind), text(key), text(place), number(numel), more) + b"Q"


def tensor(shape=(4,), stride=(1,), offset=0, function="_rebuild_tensor_v2", more=b"", **of):
    return call("torch._utils", function, storage(**of), number(offset), numbers(*shape), numbers(*stride), b"\x89",
                call("collections", "OrderedDict"), more)


def dict_of(**items):
    return b"}(" + b"".join(text(k) + v for k, v in items.items()) + b"u"


def pickle(body, protocol=2):
    return b"\x80" + bytes([protocol]) + body + b"."


DATA = struct.pack("<4f", 1, 2, 3, 4)
TREE = pickle(dict_of(w=tensor()))


class Zip:
    """An archive as torch writes it; a case changes parts of it."""

    def __init__(self, *records, root="archive"):
        self.out, self.central, self.n = b"", b"", 0
        for name, data in records:
            self.add(f"{root}/{name}", data)

    def add(self, name, data, local=None, flags=0x0808, local_flags=None, method=0, local_method=None, crc=None, size=None,
            stored=None, header=None):
        name = name.encode()
        own = name if local is None else local.encode()
        fill = -(len(self.out) + 34 + len(own)) % 64
        crc = zlib.crc32(data) if crc is None else crc
        stored = len(data) if stored is None else stored
        size = stored if size is None else size
        method_here = method if local_method is None else local_method
        at = len(self.out) if header is None else header
        self.central += b"PK\1\2" + struct.pack("<HHHHIIIIHHHHHII", 0, 0, flags, method, 0, crc, stored, size, len(name), 0, 0, 0,
                                                0, 0, at) + name
        self.out += b"PK\3\4" + struct.pack("<HHHIIIIHH", 0, flags if local_flags is None else local_flags, method_here, 0, 0, 0, 0,
                                            len(own), 4 + fill) + own + struct.pack("<2sH", b"FB", fill) + b"Z" * fill + data + \
            b"PK\7\x08" + struct.pack("<III", crc, stored, size)
        self.n += 1
        return self

    def end(self, n=None, n64=None, at=None, comment=b"", behind=b""):
        where = len(self.out) if at is None else at
        n = self.n if n is None else n
        n64 = self.n if n64 is None else n64
        return self.out + self.central + b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 0x31E, 0x2D, 0, 0, n64, n64, len(self.central),
                                                                 where) + \
            b"PK\6\7" + struct.pack("<IQI", 0, len(self.out) + len(self.central), 1) + \
            b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, n, n, len(self.central), where, len(comment)) + comment + behind


def checkpoint(tree=TREE, *more, data=DATA):
    return Zip(("data.pkl", tree), ("data/0", data), ("version", b"3\n"), *more)


def value(body, **of):
    """A file with a tensor and another item."""
    return checkpoint(pickle(dict_of(w=tensor(), x=body), **of)).end()


def danger(c, letter, name, data, what, tensors=1):
    c.add(letter, name, data, what, verdict="damaged", status=BAD, rule="PickleCall", offset=None, tensors=tensors)


# ------------------------------------------------------------------ old containers

MAGIC = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."


def legacy(tree=None, before=b"", info=b"", keys=None, count=4, data=DATA):
    tree = pickle(dict_of(w=tensor(more=b"N"))) if tree is None else tree
    info = pickle(dict_of(protocol_version=number(1001), little_endian=b"\x88", **({"x": info} if info else {})))
    keys = pickle(b"](" + text("0") + b"e") if keys is None else keys
    return before + MAGIC + pickle(b"M\xe9\x03") + info + tree + keys + struct.pack("<q", count) + data


def old_tensor(**of):
    of.setdefault("more", b"N")
    kind = tuple_of(text("storage"), name_of("torch", "FloatStorage"), text("0"), text("cpu"), number(of.get("numel", 4)), b"N") + b"Q"
    return call("torch._utils", "_rebuild_tensor_v2", kind, number(0), numbers(*of.get("shape", (4,))), numbers(1), b"\x89",
                call("collections", "OrderedDict"))


LEGACY = pickle(dict_of(w=old_tensor()))


def member(name, data, size=None):
    head = name.encode().ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + f"{len(data) if size is None else size:011o}\0".encode() + \
        b"00000000000\0"
    rest = b"0" + bytes(100) + b"ustar\x0000" + bytes(80)
    rest += bytes(500 - 156 - len(rest) + 12)
    total = sum(head) + 8 * 32 + sum(rest)
    block = head + f"{total:06o}\0 ".encode() + rest
    return block[:512] + data + bytes(-len(data) % 512)


def tar(tree=None, ndim=1, dims=(4,), strides=(1,), count=4, sys_info=b"}", offset=0, tensors=1, behind=b"", more=b""):
    storages = pickle(b"K\1") + pickle(tuple_of(number(7), text("cpu"), name_of("torch", "FloatStorage"))) + \
        struct.pack("<q", count) + DATA + pickle(b"]")
    listed = pickle(number(tensors)) + pickle(tuple_of(number(9), number(7), name_of("torch", "FloatTensor"))) + \
        struct.pack("<ii", ndim, 0) + struct.pack(f"<{len(dims)}q", *dims) + struct.pack(f"<{len(strides)}q", *strides) + \
        struct.pack("<q", offset)
    object_ = pickle(dict_of(w=text("9") + b"Q")) if tree is None else tree
    return member("sys_info", pickle(sys_info)) + member("pickle", object_ + behind) + member("tensors", listed) + \
        member("storages", storages) + more + bytes(1024)


# -------------------------------------------------------------------------- cases

def make_containers(c):
    sound = checkpoint().end()
    c.accepted("P", "sound", sound, 1, "one tensor", warnings=None)
    c.accepted("P", "sound_legacy", legacy(LEGACY), 1, "one tensor, as it was saved until 2020", warnings=None)
    c.accepted("P", "sound_tar", tar(), 1, "one tensor, as it was saved until 2017", warnings=None)
    for at in range(100, len(sound), 61):
        c.rejected("A", f"cut_{at:03}", sound[:at], SHORT, None, "", f"the first {at} of {len(sound)} bytes")
    old = legacy(LEGACY)
    for at in range(20, len(old), 23):
        c.rejected("A", f"legacy_cut_{at:03}", old[:at], SHORT, None, "", f"the first {at} of {len(old)} bytes of a stream")
    for at in range(600, 2700, 256):
        c.rejected("A", f"tar_cut_{at}", tar()[:at], [SHORT, BAD], None, "", f"the first {at} bytes of a tar")
    c.rejected("B", "sevenzip", b"7z\xbc\xaf\x27\x1c" + bytes(60), UNSUPPORTED, 0, "7z", "a 7z archive, which scanners do not open")
    c.rejected("B", "preview", b"PYTORCH1" + bytes(60), UNSUPPORTED, 0, "preview", "what a preview of 1.0 wrote")
    c.rejected("B", "bare_pickle", pickle(CALL), UNSUPPORTED, None, "posix.getpid", "a pickle under the name of a checkpoint")
    c.rejected("B", "package", Zip((".data/extern_modules", b""), (".data/version", b"6\n")).end(), UNSUPPORTED, 0, "torch.package",
               "an archive of code")
    base = Zip(("data.pkl", TREE), ("data/0", DATA))
    c.rejected("E", "no_version", base.end(), BAD, None, "version", "torch refuses a file without it")
    c.rejected("E", "two_roots", checkpoint().add("other/data.pkl", TREE).end(), BAD, None, "directory", "a record in another directory")
    c.rejected("E", "no_root", Zip().add("data.pkl", TREE).end(), [BAD, UNSUPPORTED], None, "",
               "records in no directory")
    c.rejected("E", "storage_missing", Zip(("data.pkl", TREE), ("version", b"3\n")).end(), BAD, None, "is not in the file",
               "a storage that is not there")
    c.rejected("E", "storage_short", checkpoint(data=DATA[:12]).end(), BAD, None, "has 12 bytes",
               "a storage that ends early: memory mapped, torch reads what lies behind it")
    c.rejected("E", "storage_long", checkpoint(data=DATA * 2).end(), BAD, None, "has 32 bytes", "a storage of twice the bytes")
    c.rejected("E", "entry_overlaps", checkpoint().add("archive/data/1", DATA, header=0).end(), BAD, None, "", "two entries, one member")
    c.rejected("E", "entry_behind", checkpoint().add("archive/data/1", DATA, header=1 << 30).end(), [BAD, SHORT], None, "",
               "a member behind the end")
    c.rejected("E", "count_64", checkpoint().end(n64=2), BAD, None, "", "the two end records differ")
    c.rejected("H", "twice", checkpoint(TREE, ("data.pkl", pickle(CALL))).end(), BAD, None, "", "two objects: readers differ on which counts")
    c.rejected("H", "twice_by_case", checkpoint(TREE, ("DATA.PKL", pickle(CALL))).end(), BAD, None, "two records",
               "two objects, told apart by case alone, which torch does not look at")
    c.accepted("H", "upper_case", Zip(("DATA.PKL", TREE), ("DATA/0", DATA), ("VERSION", b"3\n")).end(), 1, "names in capitals: torch loads it",
               warnings=None)
    c.rejected("H", "other_name", Zip().add("archive/data.pkl", TREE, local="archive/data.pkx").add("archive/data/0", DATA)
               .add("archive/version", b"3\n").end(), BAD, None, "", "another name in the record's own header")
    c.rejected("H", "other_method", Zip().add("archive/data.pkl", TREE, local_method=8).add("archive/data/0", DATA)
               .add("archive/version", b"3\n").end(), BAD, None, "", "another method in the record's own header")
    c.rejected("H", "other_method_storage", Zip(("data.pkl", TREE)).add("archive/data/0", DATA, local_method=8)
               .add("archive/version", b"3\n").end(), BAD, None, "", "the same of a storage")
    c.rejected("H", "other_name_unused", checkpoint().add("archive/data/7", DATA, local="archive/data/8").end(), BAD, None, "",
               "the same of a record that nothing uses")
    c.rejected("H", "encrypted_here", Zip().add("archive/data.pkl", TREE, local_flags=0x0809).add("archive/data/0", DATA)
               .add("archive/version", b"3\n").end(), BAD, None, "", "encrypted, says its own header: scanners skip it, torch does not")
    c.rejected("H", "encrypted", Zip().add("archive/data.pkl", TREE, flags=0x0809).add("archive/data/0", DATA)
               .add("archive/version", b"3\n").end(), [BAD, UNSUPPORTED], None, "", "encrypted")
    c.rejected("N", "crc", Zip().add("archive/data.pkl", TREE, crc=1).add("archive/data/0", DATA).add("archive/version", b"3\n").end(),
               DIGEST, None, "CRC", "a wrong CRC, at which scanners stop and torch does not look")
    c.damaged("N", "crc_storage", Zip(("data.pkl", TREE)).add("archive/data/0", DATA, crc=1).add("archive/version", b"3\n").end(), DIGEST, 1,
              "the CRC of a tensor")
    half = pickle(dict_of(w=tensor((2,))))
    c.damaged("N", "crc_seen_in_part", Zip(("data.pkl", half)).add("archive/data/0", DATA, crc=1).add("archive/version", b"3\n").end(), DIGEST,
              1, "the CRC of a storage of which a tensor shows half")
    c.damaged("N", "crc_unused", checkpoint().add("archive/data/7", DATA, crc=1).end(), DIGEST, 1, "the CRC of what nothing uses")
    squeezed = deflate(TREE)
    c.accepted("N", "deflated", Zip().add("archive/data.pkl", squeezed, method=8, size=len(TREE), crc=zlib.crc32(TREE))
               .add("archive/data/0", DATA).add("archive/version", b"3\n").end(), 1, "zipped again", warnings=None)
    for name, size in {"more": len(TREE) + 9, "less": len(TREE) - 9, "huge": 1 << 31}.items():
        c.rejected("N", f"deflated_{name}", Zip().add("archive/data.pkl", squeezed, method=8, size=size, crc=0).add("archive/data/0", DATA)
                   .add("archive/version", b"3\n").end(), [BAD, SHORT, LIMIT], None, "", f"a pickle that becomes {size} bytes, it is said")
    bomb = deflate(bytes(1 << 24))
    c.rejected("F", "bomb", Zip().add("archive/data.pkl", bomb, method=8, size=1 << 24, crc=0).add("archive/data/0", DATA)
               .add("archive/version", b"3\n").end(), [BAD, LIMIT], None, "", "zeros that become 16 MiB")
    c.rejected("N", "method_99", Zip().add("archive/data.pkl", TREE, method=99).add("archive/data/0", DATA).add("archive/version", b"3\n")
               .end(), [UNSUPPORTED, BAD], None, "", "an unknown method")
    c.rejected("I", "in_front", b"#!/bin/sh\n" + sound, [UNSUPPORTED, BAD], None, "", "a script in front")
    c.accepted("I", "comment", checkpoint().end(comment=b"hello"), 1, "a comment of the archive", warnings=None)
    c.accepted("I", "pickle_behind", checkpoint(TREE + pickle(b"N")).end(), 1, "a second pickle behind the first", warnings=None)
    for n, word in enumerate((b"0", b"11", b"x", b"", b"-3", b"99999999999999999999")):
        c.rejected("J", f"version_{n}", Zip(("data.pkl", TREE), ("data/0", DATA), ("version", word)).end(), [BAD, UNSUPPORTED], None, "",
                   f"the version {word!r}")
    c.rejected("J", "byteorder", checkpoint(TREE, ("byteorder", b"middle")).end(), BAD, None, "byte order", "a byte order of its own")


def make_pickles(c):
    for name, body in {
            "reduce": CALL, "obj": b"(" + GETPID + b"o", "inst": b"(iposix\ngetpid\n", "newobj": GETPID + b")\x81",
            "newobj_ex": GETPID + b")}\x92", "build": name_of("posix", "terminal_size") + b")\x81}(" + text("a") + b"K\1ub",
            "reference": GETPID, "stack_global": text("posix") + text("getpid") + b"\x93)R",
            "from_memo": text("getpid") + b"q\x050" + text("posix") + b"h\x05\x93)R",
            "nt": b"cnt\ngetpid\n)R", "builtin": b"c__builtin__\neval\n(" + text("0") + b"tR",
            "by_attribute": b"cbuiltins\ngetattr\n", "cpickle": b"ccPickle\nloads\n", "of_call": CALL + b")R",
            "computed": CALL + text("x") + b"\x93", "popped": CALL + b"0N", "as_key": b"}" + CALL + b"K\1s", "twice": (CALL + b"0") * 2 + b"N",
            "dotted": text("collections") + text("OrderedDict.fromkeys") + b"\x93", "state": made("x", "Y", z=CALL),
            "in_bytes": call("torch.storage", "_load_from_bytes", call("_codecs", "encode", text("x"), text("latin1"))),
    }.items():
        danger(c, "P", f"call_{name}", value(body, protocol=4 if name == "dotted" else 2), f"a call, as {name}")
    danger(c, "P", "call_unused", checkpoint(TREE, ("data/7", pickle(CALL))).end(), "in a record that nothing uses")
    danger(c, "P", "call_debug", checkpoint(TREE, ("code/a.py.debug_pkl", pickle(CALL))).end(), "in a record of the debugger")
    danger(c, "P", "call_constants", checkpoint(TREE, ("constants.pkl", pickle(CALL))).end(), "in the constants of TorchScript")
    danger(c, "P", "call_other", checkpoint(TREE, ("extra/x.pkl", pickle(CALL))).end(), "in another pickle")
    danger(c, "P", "call_legacy", legacy(pickle(dict_of(w=old_tensor(), x=CALL))), "in a stream")
    danger(c, "P", "call_legacy_info", legacy(LEGACY, info=CALL), "among the facts of a stream")
    danger(c, "P", "call_legacy_keys", legacy(LEGACY, keys=pickle(CALL + b"0](" + text("0") + b"e")), "in the list of storages")
    danger(c, "P", "call_tar", tar(sys_info=CALL), "in the facts of a tar")
    c.rejected("P", "call_before_magic", legacy(LEGACY, before=pickle(CALL)), [UNSUPPORTED, BAD], None, "posix.getpid", "before the magic")
    c.rejected("P", "call_then_broken", checkpoint(b"\x80\x02" + CALL + b"\xff.").end(), [BAD, UNSUPPORTED], None, "posix.getpid",
               "a call, then an unknown opcode: it has run when that is found")
    c.accepted("P", "class_unknown", value(made("my.own", "Thing", a=number(1))), 1, "a class that nobody knows", warnings=None)
    for name, n in HUGE.items():
        if n < 1 << 32:
            c.rejected("C", f"text_{name}", value(b"X" + struct.pack("<I", n)), SHORT, None, "", f"a text of {n} bytes")
            c.rejected("C", f"get_{name}", value(b"j" + struct.pack("<I", n)), BAD, None, "memo", f"entry {n} of the memo")
            c.accepted("C", f"put_{name}", value(b"Nr" + struct.pack("<I", n)), 1, f"entry {n} of the memo", warnings=None)
            c.rejected("C", f"long_{name}", value(b"\x8b" + struct.pack("<I", n)), [SHORT, BAD], None, "", f"an int of {n} bytes")
        c.rejected("C", f"frame_{name}", value(b"\x95" + struct.pack("<Q", n) + b"N"), SHORT, None, "", f"a frame of {n} bytes")
        c.rejected("C", f"bytes_{name}", value(b"\x8e" + struct.pack("<Q", n)), SHORT, None, "", f"{n} bytes")
        c.rejected("C", f"put_line_{name}x", value(b"Np" + str(n).encode() + b"x\n"), BAD, None, "", "no number of the memo")
        c.rejected("D", f"shape_{name}", checkpoint(pickle(dict_of(w=tensor((n,))))).end(), BAD, None, "", f"{n} elements")
        c.rejected("D", f"shapes_{name}", checkpoint(pickle(dict_of(w=tensor((n, n), (0, 0))))).end(), BAD, None, "", f"{n} times {n} elements")
        c.rejected("D", f"stride_{name}", checkpoint(pickle(dict_of(w=tensor((2,), (n,))))).end(), BAD, None, "", f"a stride of {n}")
        c.rejected("D", f"offset_{name}", checkpoint(pickle(dict_of(w=tensor(offset=n)))).end(), BAD, None, "", f"an offset of {n}")
        c.rejected("D", f"numel_{name}", checkpoint(pickle(dict_of(w=tensor(numel=n)))).end(), BAD, None, "", f"a storage of {n} elements")
        c.rejected("D", f"legacy_count_{name}", legacy(LEGACY, count=n - (1 << 64) if n >= 1 << 63 else n), [SHORT, BAD], None, "",
                   f"a storage of {n} elements in a stream")
        if n < 1 << 63:
            c.rejected("D", f"tar_{name}", tar(dims=(n,)), [SHORT, BAD], None, "", f"{n} elements in a tar")
    c.rejected("D", "negative_stride", checkpoint(pickle(dict_of(w=tensor(stride=(-1,), offset=3)))).end(), BAD, None, "", "backwards")
    c.rejected("D", "negative_shape", checkpoint(pickle(dict_of(w=tensor((-4,))))).end(), BAD, None, "", "fewer than none")
    c.rejected("D", "ranks", checkpoint(pickle(dict_of(w=tensor((2, 2), (1,))))).end(), BAD, None, "strides", "more dimensions than strides")
    c.rejected("D", "rank_65", checkpoint(pickle(dict_of(w=tensor((1,) * 65, (1,) * 65)))).end(), LIMIT, None, "64", "65 dimensions")
    c.rejected("E", "behind", checkpoint(pickle(dict_of(w=tensor(offset=1)))).end(), BAD, None, "ends beyond", "one element too far")
    c.rejected("E", "tar_rank", tar(ndim=1 << 30), [SHORT, BAD, LIMIT], None, "", "2^30 dimensions in a tar")
    c.rejected("E", "tar_many", tar(tensors=1 << 30), [SHORT, BAD, LIMIT], None, "", "2^30 tensors in a tar")
    c.rejected("E", "tar_offset", tar(offset=1), BAD, None, "", "one element too far in a tar")
    c.accepted("F", "expand", checkpoint(pickle(dict_of(w=tensor((2**16,), (0,))))).end(), 1, "65536 elements over four bytes", warnings=None)
    laughs = b"](NNe" + b"q\0" + b"".join(b"](" + b"h" + bytes([i]) * 1 + (b"h" + bytes([i])) * 9 + b"eq" + bytes([i + 1]) for i in range(60))
    c.rejected("F", "laughs", value(laughs), LIMIT, None, "paths", "ten references to the list before, sixty times")
    laughs = tensor() + b"q\0" + b"".join(b"](" + (b"h" + bytes([i])) * 10 + b"eq" + bytes([i + 1]) for i in range(60))
    c.rejected("F", "laughs_tensors", checkpoint(pickle(laughs)).end(), LIMIT, None, "paths", "the same of a tensor")
    make_long_ints(c)
    make_hidden(c)
    make_far_views(c)
    c.accepted("F", "memo_far", value(b"".join(b"r" + struct.pack("<I", i * 99991 % 2**32) for i in range(4000)).join([b"N", b""])), 1,
               "4000 entries far from each other", warnings=None)
    c.accepted("G", "itself", value(b"]q\1h\1a"), 1, "a list that holds itself", warnings=None)
    c.accepted("G", "itself_dict", value(b"}q\1" + text("x") + b"h\1s"), 1, "a dict that holds itself", warnings=None)
    for name, body in {"tuples": b")" + b"\x85" * 20000, "lists": b"]" * 20000 + b"a" * 19999,
                       "dicts": (b"}" + text("k")) * 5000 + b"N" + b"s" * 5000}.items():
        c.rejected("G", name, value(body), LIMIT, None, "", f"{name} within each other")
    c.rejected("G", "marks", value(b"(" * 50000), [BAD, LIMIT], None, "", "marks without end")
    deep = tensor()
    for _ in range(30):
        deep = call("torch._utils", "_rebuild_parameter", deep, b"\x88", call("collections", "OrderedDict"))
    c.rejected("G", "parameters", checkpoint(pickle(dict_of(w=deep))).end(), [BAD, LIMIT], None, "", "parameters of parameters")
    c.accepted("H", "key_twice", checkpoint(pickle(b"}(" + (text("w") + tensor()) * 2 + b"u")).end(), 2, "a key twice", warnings=None)
    c.accepted("H", "name_escapes", checkpoint(pickle(dict_of(**{"\x1b[2J": tensor()}))).end(), 1, "a name that clears the screen", warnings=None)
    c.accepted("H", "name_surrogate", checkpoint(pickle(b"}(" + text(b"\xed\xa0\x80") + tensor() + b"u")).end(), 1, "half a character",
               warnings=None)
    c.rejected("H", "text_bad", value(text(b"\xff\xfe")), BAD, None, "UTF-8", "a text that is none")
    for name, body in {"ext": b"\x82\1", "buffer": b"\x97", "readonly": b"N\x98", "opcode_0": b"\0", "opcode_255": b"\xff"}.items():
        c.rejected("J", name, value(body), [UNSUPPORTED, BAD], None, "", f"the opcode {name}")
    c.rejected("J", "protocol_6", value(b"\x80\6N"), UNSUPPORTED, None, "protocol 6", "a protocol to come")
    for name, body in {"pop": b"0" * 9, "append": b"Na", "setitem": b"K\1K\2K\3s", "setitems": b"}(K\1u", "reduce": b"R", "stop": b".",
                       "build": b"K\1}b", "build_global": GETPID + b"}b", "dict": b"(K\1d", "tuple3": b"\x87" * 9, "memoize": b"(\x94",
                       "int": b"Ix\n", "float": b"Fx\n", "persid": b"Q" * 3, "line": b"V"}.items():
        c.rejected("J", f"stack_{name}", value(body) if name != "stop" else checkpoint(b"\x80\x02.").end(), [BAD, SHORT, UNSUPPORTED], None, "",
                   f"what {name} wants is not there")
    c.accepted("J", "storage_class", checkpoint(pickle(dict_of(w=tensor(kind="MyStorage")))).end(), 1, "an unknown storage", warnings=None)
    c.accepted("J", "dtype", checkpoint(pickle(dict_of(w=tensor(function="_rebuild_tensor_v3", more=name_of("torch", "float7"))))).end(), 1,
               "an unknown type", warnings=None)
    c.damaged("J", "bool_2", checkpoint(pickle(dict_of(w=tensor(kind="BoolStorage"))), data=b"\0\1\2\1").end(), BAD, 1, "a bool of 2")
    c.rejected("J", "complex", checkpoint(pickle(dict_of(w=tensor((2**62,), kind="ComplexDoubleStorage", numel=2**62)))).end(), BAD, None, "",
               "16 times 2^62 bytes")


# -------------------------------------------------------------------------- directories

META = "torch.distributed.checkpoint.metadata"


def make_far_views(c):
    """A view of a storage; its begin plus the offset of its tensor is more than 2^63."""
    view = tuple_of(text("1"), number(2**63 - 1), number(1))
    body = tensor(offset=5, more=b"")
    body = body.replace(number(4) + b"tQ", number(4) + view + b"tQ", 1)
    assert view in body
    keys = b"}(" + text("w") + old_tensor() + body + number(1) + b"u"
    c.rejected("D", "view_far", legacy(pickle(keys)), BAD, None, "view", "a tensor as a key, of a view that ends beyond 2^63")


def make_hidden(c):
    """Pickles in places that nothing refers to."""
    call = pickle(CALL)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(call) + packer.flush()
    danger(c, "I", "hidden_deflated", checkpoint().add("archive/data/9", packed, method=8, size=len(call), crc=zlib.crc32(call)).end(),
           "a deflated record that nothing uses")
    for name, where in {"protocol0": "data/9", "in_extra": "extra/notes", "in_code": "code/a.py"}.items():
        danger(c, "I", f"hidden_{name}", checkpoint(TREE, (where, b"cposix\ngetpid\n(tR.")).end(), f"a pickle of protocol 0 as {where}")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    large = b"\x80\x02" + bytes((4 << 20) - 100)
    packed = packer.compress(large) + packer.flush()
    bombs = checkpoint()
    for i in range(40):
        bombs.add(f"archive/extra/{i}", packed, method=8, size=len(large), crc=zlib.crc32(large))
    c.accepted("F", "hidden_bombs", bombs.end(), 1, "forty records of nearly 4 MiB that begin as pickles do", warnings=None)
    danger(c, "I", "hidden_behind_storages", legacy(LEGACY) + call, "behind the last storage")
    danger(c, "I", "hidden_behind_object", tar(behind=call), "behind the object of a tar archive")
    danger(c, "I", "hidden_member", tar(more=member("notes", call)), "in another member of a tar archive")
    danger(c, "I", "hidden_zip", checkpoint(TREE, ("extra/inner", checkpoint(pickle(dict_of(x=CALL))).end())).end(),
           "in an archive within the archive")


def make_long_ints(c):
    """Numbers and lists whose few bytes claim much work or much memory."""
    long = b"\x8b" + struct.pack("<i", 4096) + bytes(range(1, 128)) * 32 + bytes(range(1, 33))
    c.accepted("F", "int_shared", value(b"](" + long + b"q\xff" + b"h\xff" * 20000 + b"e"), 1,
               "an int of 4096 bytes, 20,000 times", warnings=None)
    c.accepted("F", "int_many", value(b"](" + 256 * long + b"e"), 1, "256 ints of 4096 bytes", warnings=None)
    c.accepted("F", "int_digits", value(b"](" + 240 * (b"L" + 4299 * b"7" + b"L\n") + b"e"), 1, "240 ints of 4299 digits",
               warnings=None)
    nested = b"]q\xfe" + 60 * (b"0](" + 10 * b"h\xfe" + b"eq\xfe") + b"0"
    calls = name_of("lib", "f") + b"q\xfd0" + b"](" + 8000 * b"h\xfdh\xfe\x85R" + b"e"
    c.accepted("F", "calls_shared", value(nested + calls), 1, "8,000 calls of one list, which is nested 60 times", warnings=None)
    long_key = b"}" + text(10000 * b"k") + b"](" + 2000 * b"]N\x85a" + b"es"
    c.accepted("F", "long_names", value(long_key), 1, "2,000 values below a key of 10,000 letters", warnings=None)


def size_of(*dims):
    return call("torch", "Size", numbers(*dims))


def chunk(offsets, sizes):
    return made(META, "ChunkStorageMetadata", offsets=size_of(*offsets), sizes=size_of(*sizes))


def metadata(shape=(4,), chunks=(((0,), (4,)),), path="__0_0.distcp", offset=0, length=None, more=b"", key=b""):
    whole = made(META, "TensorStorageMetadata",
                 properties=name_of(META, "TensorProperties") + b")\x81" + tuple_of(name_of("torch", "float32"), b"N", b"\x89", b"N", b"\x89") + b"b",
                 size=size_of(*shape), chunks=b"](" + b"".join(chunk(*x) for x in chunks) + b"e")
    length = len(PIECE) if length is None else length
    places = b"".join(made(META, "MetadataIndex", fqn=text("w"), index=number(i), offset=size_of(*x[0]))
                      + made("torch.distributed.checkpoint.filesystem", "_StorageInfo", relative_path=text(path), offset=number(offset),
                             length=number(length), **({"transform_descriptors": more} if more else {})) for i, x in enumerate(chunks))
    return pickle(made(META, "Metadata", state_dict_metadata=b"}(" + text("w") + whole + b"u", planner_data=b"N" + key,
                       storage_data=b"}(" + places + b"u"))


PIECE = Zip(("data.pkl", pickle(tensor())), ("data/0", DATA), ("version", b"3\n")).end()


def make_folders(c):
    def folder(name, meta=None, piece=PIECE):
        return {f"{name}.metadata": metadata() if meta is None else meta, "__0_0.distcp": piece}

    c.accepted("P", "sound", folder("sound"), 1, "one tensor of one chunk", warnings=None)
    two = metadata((8,), (((0,), (4,)), ((4,), (4,))))
    c.accepted("P", "two_chunks", folder("two_chunks", two), 1, "one tensor of two chunks, which are the same", warnings=None)
    danger(c, "P", "call", folder("call", metadata(key=CALL + b"0")), "a call in .metadata")
    inner = Zip(("data.pkl", pickle(CALL + b"0" + tensor())), ("data/0", DATA), ("version", b"3\n")).end()
    danger(c, "P", "call_in_piece", folder("call_in_piece", metadata(length=len(inner)), inner), "a call in a piece")
    for at in range(60, len(metadata()), 97):
        c.rejected("A", f"cut_{at:04}", folder(f"cut_{at:04}", metadata()[:at]), SHORT, None, "", f"the first {at} bytes of .metadata")
    c.rejected("A", "piece_cut", folder("piece_cut", None, PIECE[:-40]), SHORT, None, "", "a piece that was cut")
    for name, n in HUGE.items():
        if n < 1 << 63:
            c.rejected("C", f"offset_{name}", folder(f"offset_{name}", metadata(offset=n)), [SHORT, BAD], None, "", f"a chunk at {n}")
            c.rejected("C", f"length_{name}", folder(f"length_{name}", metadata(length=n)), [SHORT, BAD], None, "", f"a chunk of {n} bytes")
            c.rejected("D", f"shape_{name}", folder(f"shape_{name}", metadata((n, n))), BAD, None, "", f"a tensor of {n} times {n}")
            c.rejected("D", f"chunk_{name}", folder(f"chunk_{name}", metadata((4,), (((n,), (4,)),))), BAD, None, "", f"a chunk from {n} on")
    c.rejected("E", "overlap", folder("overlap", metadata((8,), (((0,), (4,)), ((2,), (4,))))), BAD, None, "", "chunks over each other")
    c.rejected("E", "hole", folder("hole", metadata((9,), (((0,), (4,)), ((4,), (4,))))), BAD, None, "", "an element that no chunk has")
    c.rejected("E", "outside", folder("outside", metadata((4,), (((1,), (4,)),))), BAD, None, "", "a chunk that leaves its tensor")
    c.rejected("E", "other_size", folder("other_size", metadata((5,), (((0,), (5,)),))), BAD, None, "", "a chunk of another size than its file")
    c.rejected("J", "transformed", folder("transformed", metadata(more=b"](" + text("zstd") + b"e")), UNSUPPORTED, None, "transformed",
               "a compressed chunk")
    for name, path in {"up": "../x", "absolute": "/etc/hostname", "backslash": "..\\x", "empty": "", "dot": ".", "itself": "itself.metadata",
                       "device": "/dev/zero", "nul": "x\0y"}.items():
        c.rejected("K", name, folder(name, metadata(path=path)), BAD, None, "", f"a piece at {path!r}")


def make_index(c):
    shard = checkpoint().end()

    def model(name, text_, files=None):
        return {f"{name}.bin.index.json": text_.encode(), "a.bin": shard} if files is None else {f"{name}.bin.index.json": text_.encode(), **files}

    good = '{"metadata":{"total_size":16},"weight_map":{"w":"a.bin"}}'
    c.accepted("P", "sound", model("sound", good), 1, "one tensor in one shard", warnings=None)
    for at in range(30, len(good), 5):
        c.rejected("A", f"cut_{at}", model(f"cut_{at}", good[:at]), SHORT if "weight_map" in good[:at] else [SHORT, BAD], None, "", f"the first {at} bytes of the index")
    c.rejected("E", "no_tensor", model("no_tensor", good.replace('"w"', '"v"')), BAD, None, "", "a tensor that its shard does not have")
    c.rejected("K", "missing", model("missing", good.replace("a.bin", "b.bin")), "TNF_ENOTFOUND", None, "", "a shard that is not there")
    for name, path in {"up": "../a.bin", "absolute": "/etc/x.bin", "backslash": "..\\\\a.bin", "itself": "itself.bin.index.json"}.items():
        c.rejected("K", name, model(name, good.replace("a.bin", path)), BAD, None, "", f"a shard at {path}")
    danger(c, "P", "call", model("call", good, {"a.bin": value(CALL)}), "a call in a shard")


def make(c):
    if c.name == "pytorch-dcp":
        make_folders(c)
    elif c.name == "pytorch-index":
        make_index(c)
    else:
        make_containers(c)
        make_pickles(c)
