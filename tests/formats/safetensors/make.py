#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the fixtures of safetensors, and the expected results (Python's own library only).

The files valid/real_* exist already: the safetensors package made them (make_real.py). This script
makes all others from the format's description. Directories are sharded models.
"""
import hashlib
import json
import pathlib
import shutil
import struct

HERE = pathlib.Path(__file__).parent
BAD, SHORT, LIMIT = "TNF_EFORMAT", "TNF_ETRUNCATED", "TNF_ELIMIT"
UNSUPPORTED, NOTFOUND = "TNF_EUNSUPPORTED", "TNF_ENOTFOUND"

# The format's name: our name, bits.
TYPES = {
    "BOOL": ("bool", 8), "F4": ("f4_e2m1", 4), "F6_E2M3": ("f6_e2m3", 6), "F6_E3M2": ("f6_e3m2", 6),
    "U8": ("u8", 8), "I8": ("i8", 8), "F8_E5M2": ("f8_e5m2", 8), "F8_E4M3": ("f8_e4m3fn", 8),
    "F8_E8M0": ("f8_e8m0", 8), "F8_E4M3FNUZ": ("f8_e4m3fnuz", 8), "F8_E5M2FNUZ": ("f8_e5m2fnuz", 8),
    "I16": ("i16", 16), "U16": ("u16", 16), "F16": ("f16", 16), "BF16": ("bf16", 16),
    "I32": ("i32", 32), "U32": ("u32", 32), "F32": ("f32", 32), "C64": ("c64", 64),
    "F64": ("f64", 64), "I64": ("i64", 64), "U64": ("u64", 64),
}

expect = {"valid": {}, "reject": {}, "documents": ["safetensors.index_metadata"]}


# ------------------------------------------------------------------ composing

def missing(n):
    return "1 byte is missing" if n == 1 else f"{n} bytes are missing"


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def file(header, data=b"", n=None, align=8):
    """A file with this header text (str, bytes, or an object to print), padded with spaces."""
    if not isinstance(header, (str, bytes)):
        header = compact(header)
    text = header.encode() if isinstance(header, str) else header
    text += b" " * (-len(text) % align)
    return struct.pack("<Q", len(text) if n is None else n) + text + data


def entry(dtype="F32", shape=(1,), begin=0, end=4):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def filled(n, start=0):
    return bytes((start + 7 * i) % 251 for i in range(n))


def model(tensors, metadata=None, **more):
    """tensors: (name, dtype, shape), in the order of both data and header."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for i, (name, dtype, shape) in enumerate(tensors):
        bits = TYPES[dtype][1]
        for d in shape:
            bits *= d
        header[name] = entry(dtype, shape, len(data), len(data) + bits // 8)
        data += bytes(bits // 8) if dtype == "BOOL" else filled(bits // 8, i)
    return file(header, data, **more)


# ------------------------------------------------------------------- expected results

def tensors_of(data):
    """An independent reader for files that are known to be valid: [(name, dtype, shape, bytes)]."""
    n, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + n].decode())
    metadata = header.pop("__metadata__", None)
    body = data[8 + n:]
    return metadata, [(name, TYPES[t["dtype"]][0], t["shape"], body[slice(*t["data_offsets"])])
                      for name, t in header.items()]


def described(tensors, attrs=None):
    return [{"name": name, "dtype": dtype, "shape": shape, "order": "C",
             "sha256": hashlib.sha256(data).hexdigest(),
             **({"attrs": attrs[name]} if attrs and name in attrs else {})}
            for name, dtype, shape, data in tensors]


def valid(name, data=None, warnings=0, attrs=None, lenient=False):
    name += ".safetensors"
    path = HERE / "valid" / name
    if data is None:
        data = path.read_bytes()
    else:
        path.write_bytes(data)
    metadata, tensors = tensors_of(data)
    expect["valid"][name] = {
        "format": "safetensors", "version": "", "lenient": lenient, "warnings": warnings,
        "attrs": {"safetensors.metadata": metadata} if metadata else {},
        "tensors": described(tensors, attrs)}


def reject(name, data, code, offset, message, lenient="rejects"):
    name += "" if "." in name else ".safetensors"
    (HERE / "reject" / name).write_bytes(data)
    expect["reject"][name] = {"code": code, "offset": offset, "message": message, "lenient": lenient}


def reject_header(name, text, where, code, message, lenient="rejects", data=b"\0\0\0\0", skip=0):
    """A header with a fault at `where` in its text (or at that offset)."""
    raw = text.encode() if isinstance(text, str) else text
    at = where if isinstance(where, int) else raw.rindex(where.encode()) + skip
    reject(name, file(raw, data), code, 8 + at, message, lenient)


def directory(kind, name, files):
    path = HERE / kind / name
    path.mkdir()
    for each, data in files.items():
        (path / each).write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def valid_shards(name, index, shards, warnings=0, metadata=None, lenient=False, order=None, problems=False):
    """order: the tensors of the model, each with the shard that it comes from; by default, those of
    the index."""
    text = index if isinstance(index, str) else json.dumps(index, indent=2)
    directory("valid", name, {"model.safetensors.index.json": text, **shards})
    said = json.loads(text)
    tensors = []
    for tensor, shard in (order or said["weight_map"]).items():
        tensors += [t for t in tensors_of(shards[shard])[1] if t[0] == tensor]
    attrs = {"safetensors.shards": len(set(said["weight_map"].values()))}
    if said.get("metadata") == {"total_size": sum(len(t[3]) for t in tensors)}:
        attrs["safetensors.total_size"] = said["metadata"]["total_size"]
    elif "metadata" in said:
        attrs["safetensors.index_metadata"] = said["metadata"]
    if metadata is not None:
        attrs["safetensors.metadata"] = metadata
    expect["valid"][name] = {"format": "safetensors", "version": "", "lenient": lenient,
                             "warnings": warnings, "attrs": attrs, "tensors": described(tensors)}
    if problems:  # they differ, as `verify` reports
        expect["valid"][name]["problems"] = True


def reject_shards(name, index, shards, code, where, message, lenient="rejects"):
    text = index if isinstance(index, str) else compact(index)
    directory("reject", name, {"model.safetensors.index.json": text, **shards})
    at = where if where is None or isinstance(where, int) else text.encode().rindex(where.encode())
    expect["reject"][name] = {"code": code, "offset": at, "message": message, "lenient": lenient}


def clean():
    for kind in ("valid", "reject"):
        for path in (HERE / kind).iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif not path.name.startswith("real_"):
                path.unlink()


# ----------------------------------------------------------------------- valid

def make_valid():
    for path in sorted((HERE / "valid").glob("real_*.safetensors")):
        valid(path.stem)
    valid("types", model([(f"w.{t}", t, (2, 4)) for t in TYPES]))
    valid("empty", file("{}"))
    valid("empty_unpadded", file("{}", align=1))
    valid("header_of_odd_length", model([("w", "F32", (3,))], align=1))
    valid("padded", model([("w", "F32", (3,))], {"a": "b"}, align=4096))
    valid("spaced", file('{ "w" : {"shape":\n[ 2 ],\t"data_offsets" : [ 0 , 8 ] , "dtype":"F32" } }',
                         filled(8)))
    valid("data_in_other_order", file({"a": entry("U8", (3,), 5, 8), "b": entry("U8", (5,), 0, 5)},
                                      filled(8)))
    valid("zero_sizes", file({"a": entry("F32", (0,), 0, 0), "b": entry("F32", (2,), 0, 8),
                              "c": entry("F32", (0, 2 ** 62), 8, 8), "d": entry("F64", (3, 0), 8, 8)},
                             filled(8)))
    valid("only_zero_sizes", file({"a": entry("F32", (0,), 0, 0), "b": entry("U8", (0, 2), 0, 0)}))
    valid("scalar", file({"s": entry("F64", (), 0, 8)}, filled(8)))
    valid("rank_64", file({"r": entry("U8", (1,) * 64, 0, 1)}, b"\x2a"))
    valid("unaligned", file({"a": entry("U8", (1,), 0, 1), "b": entry("F64", (1,), 1, 9)}, filled(9)))
    valid("whole_bytes", file({"f4": entry("F4", (3, 2), 0, 3), "f6": entry("F6_E3M2", (4,), 3, 6),
                               "f6b": entry("F6_E2M3", (2, 2), 6, 9)}, filled(9)))
    valid("names", model([(n, "U8", (1,)) for n in
                          ["", "a", "a ", "é", "e\u0301", "\x7f", "日本", "\U0001f600", "__metadata", "../w",
                           "a#b", "\u2028"]]))
    valid("escaped_names", file('{"\\u0061\\ud83d\\ude00\\/\\"\\\\\\b\\f\\n\\r\\t\\u0000":'
                                + compact(entry()) + "}", filled(4)))
    valid("long_name", model([("n" * 65536, "U8", (1,))]))
    valid("metadata", model([("w", "I8", (2,))], {"b": "2", "a": "1", "": "", "é": "\u0000\n",
                                                  "config": "{\"x\": [1, 2]}"}))
    valid("metadata_last", file('{"w":' + compact(entry()) + ',"__metadata__":{"k":"v"}}', filled(4)))
    valid("metadata_escaped", file('{"__met\\u0061data__":{"\\u006b":"\\u0076"}}'))
    # No program writes this, but the reference reads it: it is kept, and reported.
    valid("unknown_field", file('{"w":{"dtype":"F32","note":{"a":[1,2.5,null]},"shape":[1],'
                                '"data_offsets":[0,4],"x":"y"}}', filled(4)), warnings=1,
          attrs={"w": {"safetensors.fields": {"note": {"a": [1, 2.5, None]}, "x": "y"}}})
    valid("padded_with_newlines", file(b'{}\n\n\n\n\n\n'), warnings=1)
    zip_end = b"PK\5\6" + bytes(18)
    valid("polyglot_zip", file({"w": entry("U8", (len(zip_end),), 0, len(zip_end))}, zip_end))
    # These open only leniently.
    valid("lenient_leading_space", file(b' {"w":' + compact(entry()).encode() + b"}", filled(4)),
          warnings=1, lenient=True)
    valid("lenient_null_metadata", file('{"__metadata__":null,"w":' + compact(entry()) + "}", filled(4)),
          warnings=1, lenient=True)
    valid("lenient_trailing", file({"w": entry()}, filled(9)), warnings=1, lenient=True)
    valid("lenient_hole", file({"w": entry("U8", (3,), 0, 3), "v": entry("U8", (2,), 5, 7)}, filled(7)),
          warnings=1, lenient=True)


def make_valid_shards():
    one = model([("a", "F32", (2, 2)), ("c", "I64", ())], {"format": "pt"})
    two = model([("b", "BF16", (3,)), ("d", "U8", (5,))], {"format": "pt"})
    files = {"model-00001-of-00002.safetensors": one, "model-00002-of-00002.safetensors": two}
    first, second = files
    whole = {"a": first, "b": second, "c": first, "d": second}
    size = 16 + 6 + 8 + 5
    valid_shards("shards", {"metadata": {"total_size": size}, "weight_map": whole}, files,
                 metadata={"format": "pt"})
    valid_shards("shards_without_metadata", {"weight_map": whole}, files)
    valid_shards("shards_compact", compact({"weight_map": {"d": second, "a": first}, "metadata": {
        "total_size": 21, "total_parameters": 9, "note": "é"}}), files, warnings=2,
                 problems=True)
    valid_shards("shards_of_one", {"metadata": {}, "weight_map": {"a": "x.safetensors", "c": "x.safetensors"}},
                 {"x.safetensors": one})
    valid_shards("shards_total_size", {"metadata": {"total_size": size + 1}, "weight_map": whole}, files,
                 warnings=1, problems=True)
    valid_shards("shards_unknown_entry", {"weight_map": whole, "extra": [1, {"a": 2}]}, files, warnings=1)
    again = model([("b", "BF16", (3,)), ("a", "F32", (1,)), ("d", "U8", (5,))],
                  {"format": "np", "more": "x"})
    valid_shards("shards_twice", {"weight_map": whole}, {first: one, second: again}, warnings=2,
                 metadata={"format": "pt", "more": "x"}, problems=True)
    valid_shards("shards_lenient_elsewhere", {"weight_map": {"a": second, "b": second, "c": first, "d": second}},
                 files, warnings=1, lenient=True, order=whole)
    valid_shards("shards_lenient_absent", {"weight_map": {"a": first, "b": second, "c": first, "d": second,
                                                          "e": first}},
                 files, warnings=1, lenient=True, order=whole)


# ---------------------------------------------------------------------- reject

def reject_cuts():
    whole = model([("w", "F32", (2, 3)), ("x", "U8", (7,))], {"k": "v"})
    n, = struct.unpack_from("<Q", whole)
    reject("cut_0", b"", SHORT, 0, "empty")
    reject("cut_1", whole[:1], SHORT, 1, "only 1 bytes")
    reject("cut_7", whole[:7], SHORT, 7, "only 7 bytes")
    reject("cut_8", whole[:8], SHORT, 8, missing(n))
    for at in (9, 10, 40, 7 + n):
        reject(f"cut_{at}", whole[:at], SHORT, at, missing(8 + n - at))
    reject("cut_data_all", whole[:8 + n], SHORT, 8 + n, "31 bytes are missing", "opens")
    reject("cut_data_1", whole[:-1], SHORT, len(whole) - 1, "1 byte is missing", "opens")
    reject("cut_data_between", whole[:8 + n + 24], SHORT, 8 + n + 24, "7 bytes are missing", "opens")
    reject("long_by_1", whole + b"\0", BAD, len(whole), "1 bytes after the last tensor", "opens")
    reject("data_without_tensors", file("{}", b"\0"), BAD, 16, "1 bytes", "opens")


def reject_wrong_things():
    whole = model([("w", "F32", (2, 3))])
    reject("lfs_pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64
           + b"\nsize 123456\n", BAD, 0, "git-LFS pointer")
    reject("html", b"<!DOCTYPE html><html><body>404</body></html>", BAD, 0, "HTML")
    reject("json_error", b'{"error":"Repository not found"}', BAD, 0, "JSON")
    reject("pickle", b"\x80\x02}q\x00.", UNSUPPORTED, 0, "pickle")
    reject("zip", b"PK\3\4" + bytes(60), UNSUPPORTED, 0, "ZIP")
    reject("pdf", b"%PDF-1.7\n" + bytes(60), BAD, 0, "PDF")
    reject("utf16", b"\xff\xfe" + '{"a":1}'.encode("utf-16-le"), BAD, 0, "UTF-16")
    reject("zeros", bytes(64), BAD, 0, "zeros")
    reject("png", b"\x89PNG\r\n\x1a\n" + bytes(60), BAD, 0, "PNG")


def reject_lengths():
    text = compact({"w": entry()}).encode()
    reject("length_0", struct.pack("<Q", 0) + text + bytes(4), BAD, 0, "length of 0 bytes")
    reject("length_1", struct.pack("<Q", 1) + text + bytes(4), BAD, 0, "length of 1 bytes")
    for name, n in [("2_31", 2 ** 31), ("2_32", 2 ** 32), ("2_53", 2 ** 53 + 1), ("2_63", 2 ** 63),
                    ("max_less_1", 2 ** 64 - 2), ("max", 2 ** 64 - 1), ("limit_1", 100_000_001)]:
        reject(f"length_{name}", struct.pack("<Q", n) + text + bytes(4), LIMIT, 0,
               f"length of {n} bytes; the format allows 100,000,000")
    reject("length_limit", struct.pack("<Q", 100_000_000) + text, SHORT, 8 + len(text),
           missing(100_000_000 - len(text)))
    # One byte too few or too many: the JSON text ends early, or continues in the data.
    reject("length_short", struct.pack("<Q", len(text) - 1) + text + bytes(4), SHORT, 8 + len(text) - 1,
           "ends where")
    reject("length_long", struct.pack("<Q", len(text) + 1) + text + bytes(5), BAD, 8 + len(text),
           "byte 0x00")


def reject_arithmetic():
    def one(name, shape, end, message, dtype="F32", lenient="rejects", code=BAD, data=b"", where=1, skip=0):
        reject_header(name, compact({"w": entry(dtype, shape, 0, end)}), where, code, message, lenient, data, skip)
    big = 2 ** 32
    one("shape_wraps_to_0", (big, big), 0, "more than 2^64")
    one("shape_wraps_small", (big, big, 1), 4, "more than 2^64", data=bytes(4))
    one("shape_wraps_odd", (3, 6148914691236517206), 8, "more than 2^64", data=bytes(8))
    one("shape_overflows_before_0", (2 ** 63, 2 ** 63, 0), 0, "more than 2^64", lenient="opens")
    one("bits_wrap_to_0", (2 ** 61,), 0, "has 0 bytes", dtype="F64", lenient="opens")
    one("bytes_wrap_small", (2 ** 61 + 1,), 8, "has 8 bytes", dtype="F64", lenient="opens", data=bytes(8))
    one("size_too_small", (2,), 4, "needs 8", lenient="opens", data=bytes(4))
    one("size_too_large", (1,), 8, "needs 4", lenient="opens", data=bytes(8))
    one("scalar_of_0_bytes", (), 0, "needs 4", lenient="opens")
    one("rank_65", (1,) * 65, 4, "more than 64 dimensions", code=LIMIT, data=bytes(4),
        where='1],"data_offsets')
    one("end_past_file", (2 ** 40,), 2 ** 42, "missing", lenient="opens", code=SHORT,
        where=len(file({"w": entry("F32", (2 ** 40,), 0, 2 ** 42)})) - 8)
    text = compact({"w": entry("U8", (8,), 2 ** 64 - 8, 2 ** 64 - 1)})
    reject_header("begin_near_max", text, "[18446744073709551608", BAD, "beyond 2^64")
    text = compact({"w": entry("U8", (0,), 2 ** 64 - 1, 2 ** 64 - 1)})
    reject_header("end_wraps", text, "[18446744073709551615", BAD, "beyond 2^64")
    text = compact({"w": entry("U8", (1,), 0, 2 ** 64)})
    reject_header("offset_2_64", text, "18446744073709551616", BAD, "beyond 64 bits")
    text = compact({"w": entry("U8", (2 ** 64,), 0, 1)})
    reject_header("dimension_2_64", text, "18446744073709551616", BAD, "beyond 64 bits")
    text = compact({"w": entry("U8", (2 ** 70, 0), 0, 0)})
    reject_header("dimension_2_70", text, str(2 ** 70), BAD, "beyond 64 bits")


def reject_ranges():
    def two(name, a, b, at, message, lenient="opens", size=8):
        header = {"a": entry("U8", (a[1] - a[0],), *a), "b": entry("U8", (b[1] - b[0],), *b)}
        data = file(header, filled(size))
        n, = struct.unpack_from("<Q", data)
        reject(name, data, BAD, 8 + n + at, message, lenient)
    two("overlap_partial", (0, 5), (4, 8), 4, "share bytes")
    two("overlap_identical", (0, 8), (0, 8), 0, "share bytes")
    two("overlap_inside", (0, 8), (2, 4), 2, "share bytes")
    two("overlap_reversed", (4, 8), (0, 5), 4, "share bytes")
    two("empty_inside", (0, 8), (4, 4), 4, "share bytes")
    two("hole_first", (1, 4), (4, 8), 0, "1 bytes before 'a' belong to no tensor")
    two("hole_between", (0, 3), (5, 8), 3, "2 bytes before 'b' belong to no tensor")
    two("hole_last", (0, 3), (3, 6), 6, "2 bytes after the last tensor")
    text = compact({"w": entry("U8", (0,), 8, 4)})
    reject_header("range_reversed", text, "[8,4]", BAD, "before it begins")
    header = {"a": entry("U8", (8,), 0, 8), "b": entry("U8", (0,), 9, 9)}
    data = file(header, filled(8))
    reject("empty_past_end", data, SHORT, len(data), "1 byte is missing", "opens")
    reject("trailing_zip", file({"w": entry()}, filled(4)) + b"PK\5\6" + bytes(18), BAD,
           len(file({"w": entry()}, filled(4))), "22 bytes after the last tensor", "opens")


def reject_duplicates():
    e = compact(entry("U8", (2,), 0, 2))
    f = compact(entry("U8", (2,), 2, 4))
    reject_header("tensor_twice", f'{{"a":{e},"a":{f}}}', '"a"', BAD, "occurs twice", "opens")
    reject_header("tensor_twice_same", f'{{"a":{e},"a":{e}}}', '"a"', BAD, "occurs twice", "opens",
                  data=bytes(2))
    reject_header("tensor_twice_escaped", f'{{"a":{e},"\\u0061":{f}}}', '"\\u0061"', BAD, "occurs twice",
                  "opens")
    reject_header("metadata_twice", f'{{"__metadata__":{{}},"__metadata__":{{}},"a":{e}}}',
                  '"__metadata__"', BAD, "__metadata__ occurs twice", data=bytes(2))
    reject_header("metadata_twice_escaped", f'{{"__metadata__":{{}},"a":{e},"\\u005f_metadata__":{{}}}}',
                  '"\\u005f_', BAD, "__metadata__ occurs twice", data=bytes(2))
    reject_header("metadata_key_twice", '{"__metadata__":{"k":"1","l":"2","k":"1"}}', '"k"', BAD,
                  "'k' twice", data=b"")
    reject_header("metadata_key_twice_escaped", '{"__metadata__":{"k":"1","\\u006b":"1"}}', '"\\u006b"',
                  BAD, "'k' twice", data=b"")
    many = ",".join(f'"k{i}":"{i}"' for i in range(40))
    reject_header("metadata_key_twice_of_many", '{"__metadata__":{' + many + ',"k17":"x"}}', '"k17"', BAD,
                  "'k17' twice", data=b"")
    for field, again in [("dtype", '"U8"'), ("shape", "[2]"), ("data_offsets", "[0,2]")]:
        reject_header(f"{field}_twice", '{"a":' + e[:-1] + f',"{field}":{again}}}}}', f'"{field}"', BAD,
                      f"has '{field}' twice", data=bytes(2))
    reject_header("shape_twice_escaped", '{"a":' + e[:-1] + ',"sh\\u0061pe":[2]}}', '"sh\\u0061pe"', BAD,
                  "has 'shape' twice", data=bytes(2))
    reject_header("unknown_field_twice", '{"a":' + e[:-1] + ',"x":1,"x":1}}', '"x"', BAD, "'x' twice",
                  data=bytes(2))


def reject_json():
    def w(body, name, where, message, code=BAD, **more):
        reject_header(name, '{"w":{' + body + "}}", where, code, message, **more)
    rest = '"shape":[1],"data_offsets":[0,4]'
    for name, number in [("1e3", "1e0"), ("float", "1.0"), ("zero_lead", "01")]:
        w(f'"dtype":"F32","shape":[{number}],"data_offsets":[0,4]', f"shape_{name}", number, "number")
    w('"dtype":"F32","shape":["1"],"data_offsets":[0,4]', "shape_string", '"1"', "whole number")
    w('"dtype":"F32","shape":[-1],"data_offsets":[0,4]', "shape_negative", "-1", "whole number")
    w('"dtype":"F32","shape":[-0,4],"data_offsets":[0,0]', "shape_minus_0", "-0", "whole number", data=b"")
    w('"dtype":"F32","shape":[+1],"data_offsets":[0,4]', "shape_plus", "+1", "whole number")
    w('"dtype":"F32","shape":1,"data_offsets":[0,4]', "shape_number", "1,", "an array")
    w('"dtype":"F32","shape":null,"data_offsets":[0,4]', "shape_null", "null", "an array")
    w('"dtype":"F32","shape":[1,],"data_offsets":[0,4]', "trailing_comma_array", '],"data', "comma")
    w('"dtype":"F32","shape":[1],"data_offsets":[0,4],', "trailing_comma_object", "}}", "comma")
    w('"dtype":"F32","shape":[1],"data_offsets":[0.0,4.0]', "offsets_float", "0.0", "number")
    w('"dtype":"F32","shape":[1],"data_offsets":["0","4"]', "offsets_strings", '"0"', "whole number")
    w('"dtype":"F32","shape":[1],"data_offsets":[-4,0]', "offsets_negative", "-4", "whole number")
    w('"dtype":"F32","shape":[1],"data_offsets":[4]', "offsets_one", "[4]", "not two numbers")
    w('"dtype":"F32","shape":[1],"data_offsets":[]', "offsets_none", "[]", "not two numbers")
    w('"dtype":"F32","shape":[1],"data_offsets":[0,4,4]', "offsets_three", "[0,4,4]", "not two numbers")
    w('"dtype":"F32","shape":[1],"data_offsets":{"0":0,"1":4}', "offsets_object", '{"0"', "an array")
    w(rest, "no_dtype", 1, "has no dtype")
    w('"dtype":"F32","data_offsets":[0,4]', "no_shape", 1, "has no shape")
    w('"dtype":"F32","shape":[1]', "no_offsets", 1, "has no data_offsets")
    w("", "no_fields", 1, "has no dtype")
    w('"Dtype":"F32",' + rest, "dtype_in_capitals", 1, "has no dtype")
    for name, dtype in [("f128", "F128"), ("lower", "f32"), ("empty", ""), ("c128", "C128"), ("space", "F32 ")]:
        w(f'"dtype":"{dtype}",{rest}', f"dtype_{name}", f'"{dtype}",', f"the unknown dtype '{dtype}'",
          UNSUPPORTED)
    w(f'"dtype":null,{rest}', "dtype_null", "null", "a string")
    w(f'"dtype":14,{rest}', "dtype_number", "14", "a string")
    w(f'"dtype":{{"F32":null}},{rest}', "dtype_object", '{"F32"', "a string")
    w('"dtype":"F4","shape":[3],"data_offsets":[0,2]', "f4_odd", 1, "not a whole number of bytes",
      lenient="opens", data=bytes(2))
    w('"dtype":"F6_E2M3","shape":[2],"data_offsets":[0,2]', "f6_odd", 1, "not a whole number of bytes",
      lenient="opens", data=bytes(2))
    w('"dtype":"F4","shape":[3],"data_offsets":[0,1]', "f4_odd_short", 1, "not a whole number of bytes",
      lenient="opens", data=bytes(1))
    data = file({"b": entry("BOOL", (3,), 0, 3)}, b"\1\0\2")
    reject("bool_of_2", data, BAD, len(data) - 1, "bool", "opens")  # verify reports it
    w(f'"dtype":"F32",{rest},"x":' + "[" * 63 + "]" * 63, "too_deep", '[]', "deeper than 64", LIMIT)
    w(f'"dtype":"F32",{rest},"x":NaN', "nan", "NaN", "a value")
    w(f'"dtype":"F32",{rest},"x":"\\ud800"', "surrogate_alone", "\\ud800", "surrogate")
    w(f'"dtype":"F32",{rest} /* 4 */', "comment", "/* 4", "',' or '}'")
    e = compact(entry())
    for name, text, where, message in [
            ("entry_array", '{"w":["F32",[1],[0,4]]}', "[\"F32", "an object"),
            ("entry_null", '{"w":null}', "null", "an object"),
            ("entry_string", '{"w":"F32"}', '"F32"', "an object"),
            ("metadata_number", '{"__metadata__":{"k":1}}', "1", "'k' is not a string"),
            ("metadata_null_value", '{"__metadata__":{"k":null}}', "null", "'k' is not a string"),
            ("metadata_object", '{"__metadata__":{"k":{}}}', "{}", "'k' is not a string"),
            ("metadata_array", '{"__metadata__":[]}', "[]", "an object"),
            ("metadata_string", '{"__metadata__":"x"}', '"x"', "an object"),
            ("metadata_as_tensor", f'{{"__metadata__":{e}}}', "[1]", "'shape' is not a string"),
            ("name_control", '{"a\x01b":' + e + "}", "\x01", "control character"),
            ("name_newline", '{"a\nb":' + e + "}", "\n", "control character"),
            ("bad_escape", '{"a\\x41":' + e + "}", "\\x41", "escape"),
            ("single_quotes", "{'w':" + e + "}", "'w'", "key in quotes"),
            ("unquoted", "{w:" + e + "}", "w:", "key in quotes"),
            ("not_closed", '{"w":' + e, 56, "ends where"),
            ("second_object", '{"w":' + e + "}{}", "{}", "its end"),
            ("array", '["w"]', 0, "does not begin with '{'"),
            ("number", "12345678", 0, "does not begin with '{'"),
            ("padded_with_nul", b'{"w":' + e.encode() + b"}\0", 59, "byte 0x00"),
    ]:
        if name == "not_closed":
            text += " " * (-len(text) % 8)
            assert len(text) == where, len(text)
        if name == "padded_with_nul":
            where = len(text) - 1
        code = SHORT if name == "not_closed" else BAD
        # Bytes that do not look like a header are not recognised as one.
        reject_header(f"header_{name}", text, where, code, message)
    reject("header_bom", file(b"\xef\xbb\xbf{}"), UNSUPPORTED, 0, "unrecognised file format")
    expect["reject"]["header_array.safetensors"].update(code=UNSUPPORTED, offset=0, message="unrecognised file format")
    expect["reject"]["header_number.safetensors"].update(code=UNSUPPORTED, offset=0, message="unrecognised file format")
    expect["reject"]["header_single_quotes.safetensors"].update(code=UNSUPPORTED, offset=0, message="unrecognised file format")
    expect["reject"]["header_unquoted.safetensors"].update(code=UNSUPPORTED, offset=0, message="unrecognised file format")
    bad = b'{"a\xff":' + e.encode() + b"}"
    reject_header("name_not_utf8", bad, 3, BAD, "not UTF-8")
    bad = b'{"\xed\xa0\x80":' + e.encode() + b"}"
    reject_header("name_surrogate_bytes", bad, 2, BAD, "not UTF-8")
    reject_header("name_too_long", '{"' + "n" * 65537 + '":' + e + "}", 1, LIMIT, "65537 bytes")
    reject_header("leading_space", " {" + '"w":' + e + "}", 0, BAD, "white space", lenient="opens")
    reject_header("metadata_null", '{"__metadata__":null,"w":' + e + "}", "null", BAD, "null", lenient="opens")


def reject_indexes():
    one = model([("a", "F32", (2,)), ("c", "U8", (3,))], {"format": "pt"})
    two = model([("b", "BF16", (3,))], {"format": "pt"})
    files = {"1.safetensors": one, "2.safetensors": two}
    right = {"a": "1.safetensors", "b": "2.safetensors", "c": "1.safetensors"}
    reject_shards("shard_missing", {"weight_map": right}, {"1.safetensors": one}, NOTFOUND,
                  '"2.safetensors"', "'2.safetensors'")
    reject_shards("shard_has_it_not", {"weight_map": {**right, "x": "2.safetensors"}}, files, BAD, '"x"',
                  "places 'x' in '2.safetensors', but no shard has it", "opens")
    reject_shards("shard_other_has_it", {"weight_map": {**right, "b": "1.safetensors", "c": "2.safetensors"}},
                  files, BAD, '"b"', "places 'b' in '1.safetensors', but it is in '2.safetensors'", "opens")
    for name, path in [("parent", "../shards/x.safetensors"), ("absolute", "/etc/passwd"), ("empty", ""),
                       ("inner_parent", "a/../../x"), ("nul", "1.safetensors\0"), ("drive", "..\\x"),
                       ("dots", "..")]:
        reject_shards(f"shard_path_{name}", {"weight_map": {"a": path}}, files, BAD,
                      compact(path).replace("\0", "\\u0000"), "points outside")
    reject_shards("shard_cut", {"weight_map": right}, {"1.safetensors": one, "2.safetensors": two[:-1]}, SHORT,
                  len(two) - 1, "2.safetensors: ", "opens")
    reject_shards("shard_is_zip", {"weight_map": right},
                  {"1.safetensors": one, "2.safetensors": b"PK\3\4" + bytes(60)}, UNSUPPORTED, 0, "ZIP")
    reject_shards("shard_is_lfs_pointer", {"weight_map": right},
                  {"1.safetensors": b"version https://git-lfs.github.com/spec/v1\nsize 5\n"}, BAD, 0,
                  "1.safetensors: this is a git-LFS pointer")
    reject_shards("shard_is_index", {"weight_map": {"a": "model.safetensors.index.json"}}, files, BAD,
                  '"model.safetensors', "which is an index")
    reject_shards("index_tensor_twice", '{"weight_map":{"a":"1.safetensors","a":"1.safetensors"}}', files, BAD,
                  '"a"', "'a' twice")
    reject_shards("index_tensor_twice_escaped", '{"weight_map":{"a":"1.safetensors","\\u0061":"1.safetensors"}}',
                  files, BAD, '"\\u0061"', "'a' twice")
    reject_shards("index_two_maps", '{"weight_map":{},"weight_map":{}}', files, BAD, '"weight_map"', "two weight_maps")
    reject_shards("index_metadata_twice", '{"metadata":{},"weight_map":{},"metadata":{}}', files, BAD, '"metadata"',
                  "metadata twice")
    reject_shards("index_metadata_key_twice", '{"metadata":{"a":1,"a":2},"weight_map":{}}', files, BAD, '"a"',
                  "'a' twice")
    reject_shards("index_shard_number", '{"weight_map":{"a":1}}', files, BAD, "1", "a string")
    reject_shards("index_cut", '{"weight_map":{"a":"1.safetensors"', files, SHORT, 34, "ends where")
    reject_shards("index_trailing", '{"weight_map":{}} x', files, BAD, "x", "its end")
    reject_shards("index_not_json", '{"weight_map":{"a":"1.safetensors",}}', files, BAD, "}}", "comma")
    reject("index_without_map.json", b'{"metadata":{"total_size":1},"weight":{}}', BAD, 0, "JSON")


if __name__ == "__main__":
    clean()
    make_valid()
    make_valid_shards()
    reject_cuts()
    reject_wrong_things()
    reject_lengths()
    reject_arithmetic()
    reject_ranges()
    reject_duplicates()
    reject_json()
    reject_indexes()
    (HERE / "expect.json").write_text(json.dumps(expect, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
