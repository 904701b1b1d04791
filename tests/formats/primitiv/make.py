#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of primitiv, and the expected results.

The files that upstream/*.json names exist in valid/ already: primitiv 0.4.0 wrote them (those of a
bare Shape or Tensor were made with its MessagePack writer, since it has no function that saves
one). The JSON files have their content. This script makes all others from the description. probe_*
are edge cases. For most of them, the expected result is what primitiv does with the same bytes; for
those in NOT_OBSERVED, it follows from the description.
"""
import base64
import hashlib
import itertools
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT, LIMIT, UNSUPPORTED = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT", "TNF_EUNSUPPORTED"
SHAPE, TENSOR, PARAMETER, MODEL, OPTIMIZER = 0, 0x100, 0x200, 0x300, 0x400
NOT_OBSERVED = {
    "o_twice", "p_batch2", "p_bin32_short", "p_dim0", "p_dims_2_1", "p_len_long", "p_len_short",
    "p_overflow_wrap", "p_stat_twice"}
TYPES = {SHAPE: "shape", TENSOR: "tensor", PARAMETER: "parameter", MODEL: "model", OPTIMIZER: "optimizer"}


# ---------------------------------------------------------------- MessagePack, as primitiv writes it
def u32(v):
    return b"\xce" + struct.pack(">I", v)


def f32(v):
    return b"\xca" + (v if isinstance(v, bytes) else struct.pack(">f", v))


def sized(n, short, limit, marks):
    if n <= limit:
        return bytes([short + n])
    for mark, code, most in marks:
        if mark and n <= most:
            return bytes([mark]) + struct.pack(">" + code, n)
    raise ValueError(n)


def head(n, short, limit, m8, m16, m32):
    return sized(n, short, limit, ((m8, "B", 0xFF), (m16, "H", 0xFFFF), (m32, "I", 0xFFFFFFFF)))


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return head(len(s), 0xA0, 31, 0xD9, 0xDA, 0xDB) + s


def binary(b):
    return head(len(b), 0, -1, 0xC4, 0xC5, 0xC6) + b


def array(n):
    return head(n, 0x90, 15, 0, 0xDC, 0xDD)


def mapping(n):
    return head(n, 0x80, 15, 0, 0xDE, 0xDF)


# ---------------------------------------------------------------- objects
def shape(dims, batch=1):
    return array(len(dims)) + b"".join(map(u32, dims)) + u32(batch)


def product(numbers):
    n = 1
    for x in numbers:
        n *= x
    return n


def floats(*values):
    return struct.pack("<%df" % len(values), *values)


def tensor(dims, data=None, batch=1, start=1):
    if data is None:
        data = floats(*(start + i for i in range(product(dims) * batch)))
    return shape(dims, batch) + binary(data)


def parameter(value, stats=()):
    return value + u32(len(stats)) + b"".join(text(k) + t for k, t in stats)


def model(*pairs):
    return u32(len(pairs)) + b"".join(array(len(path)) + b"".join(map(text, path)) + p for path, p in pairs)


def optimizer(uints, reals):
    return (mapping(len(uints)) + b"".join(text(k) + u32(v) for k, v in uints) +
            mapping(len(reals)) + b"".join(text(k) + f32(v) for k, v in reals))


def file(kind, content):
    return u32(0) + u32(1) + u32(kind) + content


# ---------------------------------------------------------------- reading, for the expected results
class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        assert self.at + n <= len(self.data)
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self):
        mark = self.take(1)[0]
        if mark < 0x80:
            return mark
        code = {0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q", 0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q"}[mark]
        return struct.unpack(">" + code, self.take(struct.calcsize(code)))[0]

    def real(self):
        assert self.take(1) == b"\xca"
        return self.take(4)

    def length(self, short, mask, marks):
        mark = self.take(1)[0]
        if mask and mark & mask == short:
            return mark & ~mask & 0xFF
        return int.from_bytes(self.take(marks[mark]), "big")

    def str(self):
        return self.take(self.length(0xA0, 0xE0, {0xD9: 1, 0xDA: 2, 0xDB: 4}))

    def array(self):
        return self.length(0x90, 0xF0, {0xDC: 2, 0xDD: 4})

    def map(self):
        return self.length(0x80, 0xF0, {0xDE: 2, 0xDF: 4})

    def shape(self):
        dims = [self.number() for _ in range(self.array())]
        while dims and dims[-1] == 1:
            dims.pop()
        return dims, self.number()

    def tensor(self):
        dims, batch = self.shape()
        return dims, batch, self.take(self.length(0, 0, {0xC4: 1, 0xC5: 2, 0xC6: 4}))

    def parameter(self):
        value, stats = self.tensor(), {}
        for _ in range(self.number()):
            key, t = self.str(), self.tensor()
            stats.setdefault(key, t)
        return value, stats


def decoded(name):
    return name.decode("utf-8", "strict")


def join(path):
    """A path as a name: only backslashes before a dot count."""
    parts = []
    for i, element in enumerate(path):
        run, out = 0, ""
        for c in element:
            if c == ".":
                out += "\\" * (run + 1)
            run = run + 1 if c == "\\" else 0
            out += c
        parts.append(out + ("\\" * run if i + 1 < len(path) else ""))
    return ".".join(parts)


def row_major(dims, data):
    """Column-major elements of four bytes, in the order of rows."""
    strides, step = [], 1
    for d in dims:
        strides.append(step)
        step *= d
    return b"".join(data[4 * at:4 * at + 4] for at in
                    (sum(i * s for i, s in zip(index, strides))
                     for index in itertools.product(*map(range, dims))))


def described(name, t, **attrs):
    dims, batch, data = t
    whole = dims + [batch] if batch > 1 else dims
    if batch > 1:
        attrs["primitiv.batch"] = batch
    return {"name": name, "dtype": "f32", "shape": whole, "order": "F" if len(whole) > 1 else "C",
            "layout": "dense", "nbytes": len(data),
            "sha256": hashlib.sha256(row_major(whole, data)).hexdigest(), "attrs": attrs}


def described_parameter(name, p, **attrs):
    value, stats = p
    yield described(name, value, **attrs)
    for key, t in stats.items():
        yield described(name + "@" + decoded(key), t, **{"primitiv.stat": decoded(key)}, **attrs)


def shortest(bits):
    """The number that is shown for a float of 32 bits: the shortest that gives the same float."""
    value = struct.unpack(">f", bits)[0]
    for digits in range(1, 10):
        again = float("%.*g" % (digits, value))
        if struct.pack(">f", again) == bits:
            return again
    raise ValueError(value)


def expectation(data, warnings=0, lenient=False):
    r = Reader(data)
    assert (r.number(), r.number()) == (0, 1)
    kind = r.number()
    attrs, tensors = {"primitiv.type": TYPES[kind]}, []
    if kind == SHAPE:
        attrs["primitiv.dims"], attrs["primitiv.batch"] = r.shape()
    elif kind == TENSOR:
        tensors.append(described("value", r.tensor()))
    elif kind == PARAMETER:
        tensors += described_parameter("value", r.parameter())
    elif kind == MODEL:
        found = {}
        for _ in range(r.number()):
            path = tuple(decoded(r.str()) for _ in range(r.array()))
            found.pop(path, None)
            found[path] = r.parameter()
        for path, p in found.items():
            tensors += described_parameter(join(path), p, **{"primitiv.path": list(path)})
    else:
        for key, read in (("uint_configs", r.number), ("float_configs", lambda: shortest(r.real()))):
            configs = attrs["primitiv." + key] = {}
            for _ in range(r.map()):
                name, value = decoded(r.str()), read()
                configs.setdefault(name, value)
    assert warnings or r.at == len(data)
    return {"format": "primitiv", "version": "0.1", "lenient": lenient, "warnings": warnings,
            "attrs": attrs, "tensors": tensors}


expect = {"valid": {}, "reject": {}}


def valid(name, data, **more):
    name += ".primitiv"
    (HERE / "valid" / name).write_bytes(data)
    expect["valid"][name] = expectation(data, **more)


def reject(name, data, code, offset, message, lenient="rejects"):
    name += ".primitiv"
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}


# ---------------------------------------------------------------- as primitiv wrote them
def bits(t):
    return [f"{v:08x}" for v in struct.unpack("<%dI" % (len(t[2]) // 4), t[2])]


def same_tensor(said, t):
    assert (said["shape"]["dims"], said["shape"]["batch"], said["bits_u32_hex"]) == (t[0], t[1], bits(t))


def same_parameter(said, p):
    same_tensor(said["value"], p[0])
    assert set(said["stats"]) == {decoded(k) for k in p[1]}
    for key, t in p[1].items():
        same_tensor(said["stats"][decoded(key)], t)


def check_upstream(data, said):
    r = Reader(data)
    assert [r.number(), r.number()] == said["version"]
    kind, said = r.number(), said["expected"]
    if kind == SHAPE:
        assert (said["dims"], said["batch"]) == r.shape()
    elif kind == TENSOR:
        same_tensor(said.get("value", said), r.tensor())
    elif kind == PARAMETER:
        same_parameter(said, r.parameter())
    elif kind == MODEL:
        assert r.number() == len(said["parameters"])
        for entry in said["parameters"]:
            assert [decoded(r.str()) for _ in range(r.array())] == entry["key"]
            same_parameter(entry["parameter"], r.parameter())
    else:
        assert {decoded(r.str()): r.number() for _ in range(r.map())} == said["uint_configs"]
        found = {decoded(r.str()): r.real().hex() for _ in range(r.map())}
        assert found == said["float_bits_u32_hex"]
    assert r.at == len(data)


for path in sorted((HERE / "upstream").glob("*.json")):
    name = path.stem + ".primitiv"
    data = (HERE / "valid" / name).read_bytes()
    check_upstream(data, json.loads(path.read_text()))
    expect["valid"][name] = expectation(data)
# Its JSON is 280 KiB long and is not in the repository; check_upstream() compared the file with it
# once.
name = "parameter_bin_65532_bytes.primitiv"
expect["valid"][name] = expectation((HERE / "valid" / name).read_bytes())

# ---------------------------------------------------------------- edge cases that primitiv writes
ONE = tensor([], floats(1))
FOUR = tensor([2, 2])
SPECIAL = struct.pack("<8I", 0x7FC00000, 0x7F800001, 0xFFC12345, 0x80000000, 0x7F800000, 0xFF800000, 1, 0x807FFFFF)
valid("parameter_specials", file(PARAMETER, parameter(tensor([8], SPECIAL))))
valid("parameter_8dims", file(PARAMETER, parameter(tensor([2, 1, 3, 1, 2, 1, 1, 2]))))
valid("parameter_bin_65536_bytes", file(PARAMETER, parameter(tensor([16384]))))
valid("parameter_stats_many", file(PARAMETER, parameter(FOUR, [
    ("", tensor([], floats(5))), ("k" * 40, tensor([3])), ("vec", tensor([4], start=7)),
    ("batched", tensor([2], batch=3)), ("a", tensor([2, 2], start=9))])))
valid("parameter_stats_of_numbers", file(PARAMETER, parameter(tensor([3]), [
    ("m2", tensor([3], start=4)), ("m1", tensor([3], start=7)), ("m10", tensor([], floats(2)))])))
valid("parameter_stat_str16", file(PARAMETER, parameter(ONE, [("s" * 300, tensor([2]))])))
valid("tensor_scalar", file(TENSOR, tensor([])))
valid("tensor_batch", file(TENSOR, tensor([2, 3], batch=4)))
valid("tensor_vector_batch", file(TENSOR, tensor([2], batch=3)))
valid("tensor_scalar_batch", file(TENSOR, tensor([], batch=3)))
valid("shape_8dims", file(SHAPE, shape([1, 2, 3, 4, 5, 6, 7, 0xFFFFFFFF], 0xFFFFFFFF)))
ORDER = [[""], ["Z"], ["a", "b", "w"], ["a", "z"], ["a.b"], ["ab"], ["b", "n" * 40], ["b", "nul\0in"], ["z"],
         ["\u30d1\u30e9"]]
valid("model_nested_order", file(MODEL, model(*((p, parameter(tensor([2], start=i))) for i, p in enumerate(ORDER)))))
# Dots and backslashes within names, sorted by paths; the joined names would be sorted differently.
ODD = sorted([["", ""], ["", "", ""], ["."], ["..", "."], ["\\"], ["\\", "\\"], ["\\."], ["\\\\", "x"], ["a", "b"], ["a\\", "b"],
              ["a\\b"], ["a\\.b"], ["a\\\\", ".b"], ["a\\.", "b"], ["a", "\\.b\\"], ["a@b"], ["a!", "b"], ["\x1b[31m"]])
valid("model_odd_names", file(MODEL, model(*((p, parameter(tensor([2], start=i))) for i, p in enumerate(ODD)))))
valid("model_long", file(MODEL, model(
    (["long", "n" * 5000], parameter(ONE)), (["m0"], parameter(tensor([1500]))),
    *(([f"m1{i:02}", "w"], parameter(tensor([3], start=i), [("Adam.m1", tensor([3])), ("Adam.m2", tensor([3], start=5))]))
      for i in range(30)), (["m2"], parameter(tensor([40, 41], start=3))))))
valid("optimizer_map16", file(OPTIMIZER, optimizer(
    [(f"Custom.u{i}", i * 0x1000001 & 0xFFFFFFFF) for i in range(21)],
    [(f"Custom.f{i}", (i - 7) / 3) for i in range(22)] + [("huge", 1e30)])))
valid("optimizer_negative", file(OPTIMIZER, optimizer([], [("Adam.alpha", -0.5), ("", 1e-8)])))

# ---------------------------------------------------------------- files that primitiv reads, but does not write
START = len(file(PARAMETER, b""))
valid("probe_p_dims_array16", file(PARAMETER, parameter(b"\xdc\0\2" + FOUR[1:])))
valid("probe_p_dims_array32", file(PARAMETER, parameter(b"\xdd\0\0\0\2" + FOUR[1:])))
valid("probe_p_bin16_short", file(PARAMETER, parameter(shape([2, 2]) + b"\xc5\0\x10" + floats(1, 2, 3, 4))))
valid("probe_p_bin32_short", file(PARAMETER, parameter(shape([2, 2]) + b"\xc6\0\0\0\x10" + floats(1, 2, 3, 4))))
valid("probe_p_dims8_ones", file(PARAMETER, parameter(tensor([1] * 8, floats(5)))))
valid("probe_p_dims_2_1", file(PARAMETER, parameter(tensor([2, 1]))))
valid("probe_p_stat_str16", file(PARAMETER, FOUR + u32(1) + b"\xda\0\1a" + tensor([], floats(7))))
valid("probe_p_stat_str32", file(PARAMETER, FOUR + u32(1) + b"\xdb\0\0\0\1a" + tensor([], floats(7))))
valid("probe_p_stat_twice", file(PARAMETER, parameter(FOUR, [("a", ONE), ("b", ONE), ("a", FOUR)])), warnings=1)
M_P, M_SM = (["p"], parameter(ONE)), (["sm", "p"], parameter(tensor([], floats(2))))
valid("probe_m_ok", file(MODEL, model(M_P, M_SM)))
valid("probe_m_reversed", file(MODEL, model(M_SM, M_P)))
valid("probe_m_missing", file(MODEL, model(M_P)))
valid("probe_m_key_dotted", file(MODEL, model((["sm.p"], parameter(ONE)))))
# Only a model that has no such parameter refuses it.
valid("probe_m_key_submodel", file(MODEL, model((["sm"], parameter(ONE)))))
TWO = tensor([], floats(2))
valid("probe_m_unknown_first", file(MODEL, model((["x"], parameter(TWO)), M_P)))
valid("probe_m_unknown_last", file(MODEL, model(M_P, (["x"], parameter(TWO)))))
valid("probe_m_dup", file(MODEL, model(M_P, (["p"], parameter(tensor([], floats(9)))))), warnings=1)
valid("probe_m_trailing", file(MODEL, model(M_P)) + b"junk", warnings=1)
valid("probe_o_ok", file(OPTIMIZER, optimizer([("Optimizer.epoch", 7)], [("Adam.alpha", 0.5)])))
valid("probe_o_empty", file(OPTIMIZER, optimizer([], [])))
valid("probe_o_map16", file(OPTIMIZER, b"\xde\0\1" + text("Optimizer.epoch") + u32(7) + b"\xdf\0\0\0\0"))
valid("probe_o_twice", file(OPTIMIZER, optimizer([("e", 7), ("e", 8)], [("a", 0.5), ("a", 1.0)])), warnings=2)

# Names that are not text: other tests check what is listed then.
for name, data in (("probe_p_stat_bad_utf8", file(PARAMETER, parameter(FOUR, [(b"\xff\xfe", tensor([], floats(7)))]))),
                   ("model_path_bad_utf8", file(MODEL, model(([b"a", b"\xff"], parameter(ONE)))))):
    (HERE / "valid" / (name + ".primitiv")).write_bytes(data)
    expect["valid"][name + ".primitiv"] = {"format": "primitiv", "version": "0.1", "lenient": False, "warnings": 0}
data = file(OPTIMIZER, optimizer([(b"\xff", 1), ("e", 2)], []))
(HERE / "valid" / "optimizer_bad_utf8.primitiv").write_bytes(data)
expect["valid"]["optimizer_bad_utf8.primitiv"] = {
    "format": "primitiv", "version": "0.1", "lenient": False, "warnings": 0, "tensors": [],
    "attrs": {"primitiv.uint_configs": {"$pairs": [[{"$bytes": base64.b64encode(b"\xff").decode()}, 1], ["e", 2]]},
              "primitiv.float_configs": {}}}
# A statistic with the name of a parameter: it gets another name.
data = file(MODEL, model((["w"], parameter(tensor([2]), [("m", tensor([3])), ("n", tensor([4]))])),
                         (["w@m"], parameter(tensor([5])))))
(HERE / "valid" / "model_stat_name_taken.primitiv").write_bytes(data)
expect["valid"]["model_stat_name_taken.primitiv"] = {
    "format": "primitiv", "version": "0.1", "lenient": False, "warnings": 0, "tensors": [
        {"name": "w", "shape": [2], "attrs": {"primitiv.path": ["w"]}},
        {"name": "w@m@1", "shape": [3],
         "attrs": {"primitiv.path": ["w"], "primitiv.stat": "m", "primitiv.of": "w"}},
        {"name": "w@n", "shape": [4], "attrs": {"primitiv.path": ["w"], "primitiv.stat": "n"}},
        {"name": "w@m", "shape": [5], "attrs": {"primitiv.path": ["w@m"]}}]}

# ---------------------------------------------------------------- integers of other widths
SHORT_INTS = b"\x00\x01\xcd\2\0" + b"\x92\x02\xcc\x03\xd0\x01" + binary(floats(1, 2, 3, 4, 5, 6)) + b"\xcf" + bytes(8)
valid("ints_of_any_width", SHORT_INTS, lenient=True, warnings=1)
valid("model_short_ints", file(MODEL, b"\x01\x91\xa1p\x91\x02\x01" + binary(floats(1, 2)) + b"\x00"), lenient=True, warnings=1)

REST = parameter(FOUR)
reject("probe_p_ver_fixint", b"\0\1" + u32(PARAMETER) + REST, BAD, 0, "(0x00)", "opens")
reject("probe_p_ver_u8", b"\xcc\0" + u32(1) + u32(PARAMETER) + REST, BAD, 0, "(0xcc)", "opens")
reject("probe_p_ver_u64", b"\xcf" + bytes(8) + u32(1) + u32(PARAMETER) + REST, BAD, 0, "(0xcf)", "opens")
reject("probe_p_type_u16", u32(0) + u32(1) + b"\xcd\2\0" + REST, BAD, 10, "(0xcd)", "opens")
reject("probe_p_batch_fixint", file(PARAMETER, array(2) + u32(2) * 2 + b"\1" + FOUR[16:] + u32(0)), BAD, START + 11,
       "(0x01)", "opens")
reject("int_negative", file(PARAMETER, array(1) + b"\xff" + FOUR[16:]), BAD, START + 1, "(0xff)")
reject("int_64_bits", file(PARAMETER, array(1) + b"\xcf" + b"\0\0\0\1\0\0\0\0" + FOUR[16:]), BAD, START + 1, "(0xcf)")

# ---------------------------------------------------------------- the header
for major, minor in ((0, 0), (0, 2), (1, 1), (1, 0)):
    reject(f"version_{major}_{minor}", u32(major) + u32(minor) + u32(PARAMETER) + REST, UNSUPPORTED, 0,
           f"version {major}.{minor}")
reject("probe_p_type_unknown", file(0x201, REST), UNSUPPORTED, 10, "data type 0x201")
reject("type_0x500", file(0x500, REST), UNSUPPORTED, 10, "data type 0x500")
reject("probe_p_empty", b"", SHORT, 0, "ends")

# ---------------------------------------------------------------- shapes and data
reject("probe_p_dims9", file(PARAMETER, parameter(tensor([1] * 9))), BAD, START, "9 dimensions")
reject("dims_max", file(PARAMETER, b"\xdd\xff\xff\xff\xff" + FOUR[1:]), SHORT, START, "4294967295 items")
reject("probe_p_dim0", file(PARAMETER, parameter(tensor([2, 0]))), BAD, START + 6, "a dimension is 0")
reject("probe_p_batch0", file(PARAMETER, parameter(tensor([2], b"", batch=0))), BAD, START + 6, "the batch is 0")
reject("probe_p_dims_map", file(PARAMETER, parameter(b"\x82" + FOUR[1:])), BAD, START, "a map (0x82)")
reject("probe_p_data_str", file(PARAMETER, shape([2, 2]) + b"\xb0" + floats(1, 2, 3, 4) + u32(0)), BAD, START + 16, "a str (0xb0)")
reject("probe_p_data_ext16", file(PARAMETER, shape([2, 2]) + b"\xd8\0" + floats(1, 2, 3, 4) + u32(0)), BAD, START + 16,
       "an ext (0xd8)")
reject("probe_p_len_short", file(PARAMETER, parameter(tensor([2, 2], floats(1, 2, 3)))), BAD, START + 16,
       "has 12 bytes, but its shape [2,2]x1 needs 16")
reject("probe_p_len_long", file(PARAMETER, parameter(tensor([2, 2], floats(*range(5))))), BAD, START + 16, "has 20 bytes")
reject("probe_p_overflow_wrap", file(PARAMETER, parameter(tensor([65536, 65537], floats(1) * 64))), BAD, START + 16,
       "has 256 bytes, but its shape [65536,65537]x1 needs 17180131328")
reject("wrap_to_nothing", file(PARAMETER, parameter(tensor([65536, 65536], b""))), BAD, START + 16, "has 0 bytes")
reject("wrap_64_bits", file(PARAMETER, parameter(tensor([1 << 31] * 3, b""))), BAD, START, "more than 2^64 bytes")
reject("probe_p_batch2", file(PARAMETER, parameter(tensor([2], batch=2))), BAD, START, "a batch of 2 instead of 1")
reject("probe_m_bad_second", file(MODEL, model(M_P, (["sm", "p"], parameter(tensor([2], batch=2))))), BAD,
       len(file(MODEL, model(M_P))) + 1 + 3 + 2, "a batch of 2")
reject("bin_max", file(PARAMETER, shape([1 << 29, 2]) + b"\xc6\xff\xff\xff\xff"), BAD, START + 16, "has 4294967295 bytes")

# ---------------------------------------------------------------- keys
reject("probe_m_key_empty", file(MODEL, model(([], parameter(ONE)))), BAD, START + 5, "path of a parameter is empty")
reject("probe_m_key_str", file(MODEL, u32(1) + text("p") + parameter(ONE)), BAD, START + 5, "a str (0xa1)")
reject("key_of_numbers", file(MODEL, u32(1) + array(1) + u32(1) + parameter(ONE)), BAD, START + 6, "(0xce)")
reject("stat_key_bin", file(PARAMETER, FOUR + u32(1) + binary(b"a") + ONE), BAD, START + len(FOUR) + 5, "a bin (0xc4)")
reject("name_too_long", file(MODEL, model((["n" * 65537], parameter(ONE)))), LIMIT, START + 5 + 1 + 5 + 65537, "65537 bytes")
reject("probe_o_swapped", file(OPTIMIZER, optimizer([], [])[:0] + mapping(1) + text("Adam.alpha") + f32(0.5) + mapping(1) +
                               text("Optimizer.epoch") + u32(7)), BAD, START + 12, "(0xca)")
reject("float_64_bits", file(OPTIMIZER, mapping(0) + mapping(1) + text("a") + b"\xcb" + bytes(8)), BAD, START + 4, "(0xcb)")
reject("config_map_array", file(OPTIMIZER, array(0) + mapping(0)), BAD, START, "an array (0x90)")

# ---------------------------------------------------------------- numbers that are too large, files cut short
reject("model_count_max", file(MODEL, u32(0xFFFFFFFF)), SHORT, START + 5, "ends")
reject("stat_count_max", file(PARAMETER, FOUR + u32(0xFFFFFFFF)), SHORT, START + len(FOUR) + 5, "ends")
reject("path_count_max", file(MODEL, u32(1) + b"\xdd\xff\xff\xff\xff" + bytes(9)), SHORT, START + 5, "4294967295 items")
reject("config_count_max", file(OPTIMIZER, b"\xdf\xff\xff\xff\xff" + bytes(9)), SHORT, START, "4294967295 pairs")
reject("str_max", file(PARAMETER, FOUR + u32(1) + b"\xdb\xff\xff\xff\xff" + ONE), SHORT, START + len(FOUR) + 5, "4294967295 bytes")
WHOLE = file(PARAMETER, REST)
for cut in (1, 7, 14, 15, 16, 20, 31, 32, 33):
    reject(f"cut_{cut}", WHOLE[:cut], SHORT, cut, "ends" if cut < 33 else "16 bytes are missing")
reject("cut_data", WHOLE[:-6], SHORT, len(WHOLE) - 6, "1 byte is missing")
reject("cut_no_stats", WHOLE[:-5], SHORT, len(WHOLE) - 5, "ends")

assert all(any("probe_%s.primitiv" % n in expect[k] for k in expect) for n in NOT_OBSERVED)
for kind in ("valid", "reject"):
    lying = {p.name for p in (HERE / kind).iterdir()}
    assert lying == set(expect[kind]), lying ^ set(expect[kind])
(HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True) + "\n")
