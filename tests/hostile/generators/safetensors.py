# SPDX-License-Identifier: MIT
"""safetensors: u64 length, JSON header, data; and indexes of shards."""
import json
import struct

from kit import *

FORMAT, EXTENSION = "safetensors", "safetensors"
MISSING = "missing"


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def file(header, data=b"", n=None):
    text = header if isinstance(header, bytes) else (
        header if isinstance(header, str) else compact(header)).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text) if n is None else n) + text + data


def entry(dtype="F32", shape=(1,), begin=0, end=4):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def make(cases):
    truncation(cases)
    wrong_things(cases, file({"w": entry()}, bytes(4)))
    lengths(cases)
    arithmetic(cases)
    ranges(cases)
    amplification(cases)
    depth(cases)
    duplicates(cases)
    names(cases)
    spellings(cases)
    polyglots(cases)
    types(cases)
    paths(cases)
    content(cases)


def truncation(c):
    whole = file({"__metadata__": {"k": "v"}, "w": entry("F32", (2,), 0, 8)}, b"\1" * 8)
    n, = struct.unpack_from("<Q", whole)
    for at in range(1, len(whole)):
        if at < 8:
            message = f"only {at} bytes"
        else:
            message = missing((8 + n if at < 8 + n else len(whole)) - at)
        if at <= 24 or at % 8 in (0, 7) or at > 8 + n - 4:
            c.rejected("A", f"cut_{at:03}", whole[:at], SHORT, at, message,
                       f"the first {at} of {len(whole)} bytes")
    c.rejected("A", "long_by_1", whole + b"\0", BAD, len(whole), "1 bytes after the last tensor",
               "one byte more than the tensors need")
    c.rejected("A", "data_for_nobody", file("{}", b"\0"), BAD, 16, "1 bytes",
               "data, and no tensor that it belongs to")


def lengths(c):
    text = compact({"w": entry()}).encode()
    for n in (0, 1):
        c.rejected("C", f"header_{n}", struct.pack("<Q", n) + text + bytes(4), BAD, 0, f"{n} bytes",
                   f"a header of {n} bytes: no JSON object is that short")
    for label, n in HUGE.items():
        c.rejected("C", f"header_{label}", struct.pack("<Q", n) + text + bytes(4), LIMIT, 0, str(n),
                   f"a header of {n} bytes")
    c.rejected("C", "header_past_file", struct.pack("<Q", len(text) + 5) + text + bytes(4), SHORT,
               12 + len(text), missing(1), "a header that ends one byte behind the file")
    c.rejected("C", "header_1_short", struct.pack("<Q", len(text) - 1) + text + bytes(5), SHORT,
               7 + len(text), "ends where", "a header whose last brace is counted as data")
    c.rejected("C", "header_1_long", struct.pack("<Q", len(text) + 1) + text + bytes(5), BAD,
               8 + len(text), "0x00", "a header that takes the first byte of the data along")
    c.rejected("C", "header_just_allowed", struct.pack("<Q", 100_000_000) + text, SHORT, 8 + len(text),
               missing(100_000_000 - len(text)), "the longest header there may be, not there")
    c.rejected("C", "header_just_too_long", struct.pack("<Q", 100_000_001) + text, LIMIT, 0,
               "100000001", "one byte more than a header may have")


def one(c, letter, name, shape, end, message, what, dtype="F32", data=b"", status=BAD, at=9, begin=0):
    """One tensor 'w'. Faults of the whole tensor are reported at its name, byte 9."""
    c.rejected(letter, name, file({"w": entry(dtype, shape, begin, end)}, data), status, at, message, what)


def arithmetic(c):
    big = 1 << 32
    one(c, "D", "product_wraps_to_0", (big, big), 0, "2^64", "2^32 × 2^32 is 0 in 64 bits")
    one(c, "D", "product_wraps_to_1", (3, 12297829382473034411), 4, "2^64",
        "two dimensions whose product is 1 in 64 bits", data=bytes(4))
    one(c, "D", "product_negative", ((1 << 63) - 1, 2), 4, "needs", "a product that is negative if signed",
        data=bytes(4))
    one(c, "D", "product_wraps_late", (1 << 22,) * 3, 4, "2^64", "three dimensions of 2^22",
        data=bytes(4))
    one(c, "D", "bytes_wrap_to_0", (1 << 61,), 0, "needs", "2^61 × 8 bytes is 0 in 64 bits", dtype="F64")
    one(c, "D", "bytes_wrap_small", ((1 << 61) + 1,), 8, "needs", "(2^61 + 1) × 8 bytes is 8", dtype="F64",
        data=bytes(8))
    one(c, "D", "bits_wrap", (1 << 62,), 0, "needs", "bits that wrap before they become bytes",
        dtype="F4")
    one(c, "D", "zero_after_overflow", (1 << 63, 1 << 63, 0), 0, "2^64",
        "an overflow that a zero behind it would hide")
    c.accepted("D", "zero_first", file({"w": entry("F32", (0, 1 << 62), 0, 0)}), 1,
               "no elements: a zero, then a huge dimension whose product stays 0")
    one(c, "D", "scalar_of_0_bytes", (), 0, "needs 4", "a scalar without its number")
    c.accepted("D", "rank_0", file({"w": entry("F32", (), 0, 4)}, bytes(4)), 1, "a scalar")
    for rank in (4, 5, 8, 9, 64):
        c.accepted("D", f"rank_{rank}", file({"w": entry("F32", (1,) * rank, 0, 4)}, bytes(4)), 1,
                   f"{rank} dimensions")
    text = compact({"w": entry("F32", (1,) * 65, 0, 4)})
    one(c, "D", "rank_65", (1,) * 65, 4, "64 dimensions", "more dimensions than a reader should want",
        data=bytes(4), status=LIMIT, at=8 + text.index('1],"data'))
    text = compact({"w": entry("F32", (1,) * 4000, 0, 4)})
    one(c, "D", "rank_4000", (1,) * 4000, 4, "64 dimensions", "4000 dimensions", data=bytes(4),
        status=LIMIT, at=8 + text.index("[1") + 1 + 2 * 64)
    for label, n in (("2_64", 1 << 64), ("2_70", 1 << 70), ("40_digits", 10 ** 39)):
        text = compact({"w": entry("U8", (n, 0), 0, 0)})
        c.rejected("D", f"dimension_{label}", file(text), BAD, 8 + text.index(str(n)), "64 bits",
                   f"a dimension of {n}")
        text = compact({"w": entry("U8", (0,), 0, n)})
        c.rejected("D", f"offset_{label}", file(text), BAD, 8 + text.index(str(n)), "64 bits",
                   f"an offset of {n}")
    text = compact({"w": entry("U8", (8,), (1 << 64) - 8, (1 << 64) - 1)})
    c.rejected("D", "begin_near_2_64", file(text), BAD, 8 + text.index("[1844"), "2^64",
               "a range that wraps once the start of the data is added")
    text = compact({"w": entry("U8", (0,), (1 << 64) - 1, (1 << 64) - 1)})
    c.rejected("D", "empty_at_2_64", file(text), BAD, 8 + text.index("[1844"), "2^64",
               "an empty range that wraps once the start of the data is added")
    whole = file({"w": entry("F32", (1 << 40,), 0, 1 << 42)})
    c.rejected("D", "terabytes", whole, SHORT, len(whole), MISSING, "4 TiB of data in a file of 72 bytes")


def ranges(c):
    def two(name, a, b, at, message, what, size=8, status=BAD):
        header = {"a": entry("U8", (a[1] - a[0],), *a), "b": entry("U8", (b[1] - b[0],), *b)}
        data = file(header, bytes(range(size)))
        n, = struct.unpack_from("<Q", data)
        c.rejected("E", name, data, status, 8 + n + at, message, what)
    two("overlap_by_1", (0, 5), (4, 8), 4, "share bytes", "the last byte of one is the first of the other")
    two("overlap_identical", (0, 8), (0, 8), 0, "share bytes", "two names for the same bytes")
    two("overlap_inside", (0, 8), (2, 4), 2, "share bytes", "one inside of the other")
    two("overlap_listed_backwards", (4, 8), (0, 5), 4, "share bytes", "an overlap, the later one listed first")
    two("empty_inside", (0, 8), (4, 4), 4, "share bytes", "an empty tensor inside of another")
    two("hole_at_start", (1, 4), (4, 8), 0, "belong to no tensor", "a byte before the first tensor")
    two("hole_between", (0, 3), (5, 8), 3, "belong to no tensor", "two bytes between two tensors")
    two("hole_at_end", (0, 3), (3, 6), 6, "after the last tensor", "two bytes after the last tensor")
    two("second_past_end", (0, 8), (8, 9), 8, MISSING, "the second tensor behind the file", status=SHORT)
    two("empty_past_end", (0, 8), (9, 9), 8, MISSING, "an empty tensor behind the file", status=SHORT)
    text = compact({"w": entry("U8", (0,), 8, 4)})
    c.rejected("E", "reversed", file(text, bytes(8)), BAD, 8 + text.index("[8,4]"), "before it begins",
               "an end before its begin")
    text = compact({"w": entry("U8", (4,), (1 << 64) - 4, 0)})
    c.rejected("E", "reversed_wraps", file(text, bytes(8)), BAD, 8 + text.index("[1844"), "before it begins",
               "an end before its begin whose difference is 4 in 64 bits")
    for number in ("-8", "-1"):
        text = compact({"w": entry("U8", (8,), 0, 8)}).replace("[0,", f"[{number},")
        c.rejected("E", f"begin_minus_{number[1:]}", file(text, bytes(8)), BAD, 8 + text.index(number),
                   "whole number", "data that begin in the header")
    one(c, "E", "length_not_shape", (2,), 4, "needs 8", "half of the bytes its shape needs", data=bytes(4))
    one(c, "E", "length_too_long", (1,), 8, "needs 4", "twice the bytes its shape needs", data=bytes(8))
    c.accepted("E", "listed_backwards", file({"b": entry("U8", (4,), 4, 8), "a": entry("U8", (4,), 0, 4)},
                                             bytes(8)), 2, "ranges that tile the data, listed backwards")
    c.accepted("E", "empty_at_borders", file({"a": entry("U8", (0,), 0, 0), "b": entry("U8", (8,), 0, 8),
                                              "c": entry("U8", (0,), 8, 8)}, bytes(8)), 3,
               "empty tensors at the borders of another")
    c.accepted("E", "unaligned", file({"a": entry("U8", (1,), 0, 1), "b": entry("F64", (1,), 1, 9)}, bytes(9)), 2,
               "eight-byte numbers at an odd place")


def amplification(c):
    many = {f"t{i}": entry("U8", (0,), 0, 0) for i in range(60)}
    c.accepted("F", "many_empty", file(many), 60, "many names for no bytes at all")
    text = '{"w":{"dtype":"U8","shape":[' + ",".join(["1"] * 64) + '],"data_offsets":[0,1]}}'
    c.accepted("F", "all_dimensions", file(text, b"\1"), 1, "as many dimensions as a reader allows")
    c.accepted("F", "long_name", file({"n" * 3000: entry()}, bytes(4)), 1, "a name of 3000 bytes")
    c.accepted("F", "blanks", file(b"{}" + b" " * 3000), 0, "a header that is all padding")
    c.accepted("F", "escapes", file('{"' + "\\u0041" * 400 + '":' + compact(entry()) + "}", bytes(4)), 1,
               "a name that is shorter than it is written")


def depth(c):
    rest = '"dtype":"F32","shape":[1],"data_offsets":[0,4]'
    for label, begin, end, what in (("arrays", "[", "]", "arrays"), ("objects", '{"a":', "}", "objects")):
        inner = "1" if label == "objects" else ""
        for levels in (20, 65, 500):
            text = '{"w":{' + rest + ',"x":' + begin * levels + inner + end * levels + "}}"
            what_ = f"{levels} {what} in each other in a field that nobody knows"
            if levels == 20:
                c.accepted("G", f"{label}_{levels}", file(text, bytes(4)), 1, what_, warnings=1)
            else:  # two levels of the header are around it; the offset is that of the first level too many
                at = text.index('"x":') + 4 + 62 * len(begin)
                c.rejected("G", f"{label}_{levels}", file(text, bytes(4)), LIMIT, 8 + at, "64", what_)
        text = '{"__metadata__":{"k":' + begin * 500 + inner + end * 500 + "}}"
        c.rejected("G", f"metadata_{label}_500", file(text), BAD, 8 + len('{"__metadata__":{"k":'), "not a string",
                   f"500 {what} where a string is due")
    text = '{"w":{' + rest + ',"x":' + "[" * 500
    n = len(text) + -len(text) % 8
    at = 8 + text.index('"x":') + 4 + 62
    c.rejected("G", "arrays_never_closed", file(text, bytes(4)), LIMIT, at, "64",
               f"500 arrays that never end, in a header of {n} bytes")


def duplicates(c):
    e, f = compact(entry("U8", (2,), 0, 2)), compact(entry("U8", (2,), 2, 4))
    def twice(name, text, where, message, what, data=bytes(4)):
        at = len(text[:text.rindex(where)].encode())
        c.rejected("H", name, file(text, data), BAD, 8 + at, message, what)
    twice("tensor_twice", f'{{"a":{e},"a":{f}}}', '"a"', "twice",
          "one name, two tensors: readers disagree which of them counts")
    twice("tensor_twice_same", f'{{"a":{e},"a":{e}}}', '"a"', "twice", "the same entry twice", bytes(2))
    twice("tensor_twice_escaped", f'{{"a":{e},"\\u0061":{f}}}', '"\\u0061"', "twice",
          "names that are equal only after unescaping")
    twice("tensor_twice_surrogates", f'{{"😀":{e},"\\ud83d\\ude00":{f}}}', '"\\ud83d', "twice",
          "a name in UTF-8 and as a pair of surrogates")
    twice("metadata_twice", f'{{"__metadata__":{{}},"__metadata__":{{}},"a":{e}}}', '"__metadata__"', "twice",
          "two sets of metadata", bytes(2))
    twice("metadata_twice_escaped", f'{{"__metadata__":{{}},"a":{e},"\\u005f_metadata__":{{}}}}', '"\\u005f', "twice",
          "two sets of metadata, one under an escaped name", bytes(2))
    twice("metadata_key_twice", '{"__metadata__":{"k":"1","k":"2"}}', '"k"', "twice",
          "an entry of the metadata twice", b"")
    for field, again in (("dtype", '"F32"'), ("shape", "[4]"), ("data_offsets", "[0,4]")):
        twice(f"{field}_twice", '{"a":' + e[:-1] + f',"{field}":{again}}}}}', f'"{field}"', "twice",
              f"{field} twice, with different values", bytes(2))
    twice("shape_twice_escaped", '{"a":' + e[:-1] + ',"sh\\u0061pe":[1]}}', '"sh\\u0061pe"', "twice",
          "shape twice, once escaped", bytes(2))
    c.accepted("H", "nfc_and_nfd", file({"\u00e9": entry("U8", (2,), 0, 2), "e\u0301": entry("U8", (2,), 2, 4)},
                                        bytes(4)), 2, "names that look alike, composed and decomposed")
    c.accepted("H", "case", file({"A": entry("U8", (2,), 0, 2), "a": entry("U8", (2,), 2, 4)}, bytes(4)), 2,
               "names that differ in case only")


def names(c):
    for label, name, what in (
            ("empty", "", "no name"), ("nul", "a\0b", "a NUL inside"),
            ("ansi", "\x1b[2J\x1b[31mred", "escapes for a terminal"), ("title", "\x1b]0;owned\x07", "sets a title"),
            ("newline", "a\nb", "a line break"), ("carriage", "real\rfake", "writes over the line before it"),
            ("backspace", "abc\b\b\b", "deletes itself"), ("del", "\x7f", "the control code DEL"),
            ("c1", "\x9b31m", "a control sequence of one character"),
            ("rtl", "\u202egnp.exe", "turns the direction of writing"), ("zero_width", "a\u200bb", "zero width"),
            ("letter_mark", "\u061cabc", "the Arabic letter mark, which turns text around"),
            ("rtl_mark", "a\u200f1", "a mark of direction"), ("isolate", "\u2067abc\u2069", "text that is kept apart, and turned"),
            ("lines", "a\u2028b\u2029c", "ends of lines and paragraphs"), ("joiner", "a\u2060b\u180ec", "characters without width"),
            ("notes", "\ufff9a\ufffab\ufffb", "notes between lines"), ("tags", "a\U000e0041\U000e007f", "tags, which nobody sees"),
            ("bom", "\ufeffw", "a byte order mark"), ("percent", "%s%n%n", "a format string"),
            ("dotdot", "../../etc/passwd", "a path upwards"), ("absolute", "/etc/passwd", "an absolute path"),
            ("drive", "C:\\w", "a path of another system"), ("dash", "--help", "an option"),
            ("length_64", "n" * 64, "64 bytes"), ("length_65", "n" * 65, "65 bytes"),
            ("last_code_point", "\U0010ffff", "the last code point"), ("hash", "a#data", "a name that looks like a part"),
            ("slice", "w[0:1]", "a name that looks like a slice"), ("proto", "__proto__", "an attribute of JavaScript"),
            ("near_metadata", "__metadata", "almost the name of the metadata")):
        c.accepted("H", f"name_{label}", file(json.dumps({name: entry()}), bytes(4)), 1, f"a name: {what}")
    raw = lambda name: b'{"' + name + b'":' + compact(entry()).encode() + b"}"
    for label, name, at, message, what in (
            ("bad_utf8", b"a\xff", 1, "UTF-8", "a byte that UTF-8 does not have"),
            ("overlong", b"\xc0\xaf", 0, "UTF-8", "an overlong form"),
            ("surrogate", b"\xed\xa0\x80", 0, "UTF-8", "half a surrogate pair in UTF-8"),
            ("beyond", b"\xf4\x90\x80\x80", 0, "UTF-8", "beyond the last code point"),
            ("cut_character", b"\xe2\x82", 0, "UTF-8", "a character cut short by the quote"),
            ("raw_control", b"a\x01b", 1, "control", "a bare control character"),
            ("raw_newline", b"a\nb", 1, "control", "a bare line break"),
            ("lone_surrogate", b"\\ud800", 0, "surrogate", "half a surrogate pair, escaped"),
            ("surrogates_reversed", b"\\ude00\\ud83d", 0, "surrogate", "a pair the wrong way round"),
            ("escape_x", b"\\x41", 0, "escape", "an escape that JSON does not have"),
            ("escape_short", b"\\u00e", 0, "\\u", "an escape of three digits")):
        c.rejected("H", f"name_{label}", file(raw(name), bytes(4)), BAD, 10 + at, message, f"a name: {what}")
    c.rejected("H", "metadata_as_tensor", file('{"__metadata__":' + compact(entry()) + "}", bytes(4)), BAD,
               8 + len('{"__metadata__":{"dtype":"F32","shape":'), "not a string", "the name of the metadata for a tensor")


def spellings(c):
    def w(name, body, where, message, what, data=bytes(4)):
        text = '{"w":{' + body + "}}"
        c.rejected("H", name, file(text, data), BAD, 8 + text.rindex(where), message, what)
    for label, number in (("exponent", "1e0"), ("fraction", "1.0"), ("leading_zero", "01")):
        w(f"number_{label}", f'"dtype":"F32","shape":[{number}],"data_offsets":[0,4]', number, "number",
          f"a dimension written {number}")
    for label, number in (("minus_0", "-0"), ("minus_1", "-1"), ("plus", "+1"), ("string", '"1"'), ("null", "null"),
                          ("true", "true"), ("hex", "0x1"), ("nan", "NaN"), ("infinity", "Infinity"),
                          ("array", "[1]"), ("dot", ".5")):
        where = "x1" if label == "hex" else number
        message = "" if label == "hex" else "whole number"
        w(f"number_{label}", f'"dtype":"F32","shape":[{number}],"data_offsets":[0,4]', where, message,
          f"a dimension written {number}")
    w("comma_in_array", '"dtype":"F32","shape":[1,],"data_offsets":[0,4]', '],"data', "comma", "a comma too many")
    w("comma_in_object", '"dtype":"F32","shape":[1],"data_offsets":[0,4],', "}}", "comma", "a comma too many")
    w("comment", '"dtype":"F32","shape":[1],"data_offsets":[0,4] /**/', "/**/", "", "a comment")
    w("offsets_1", '"dtype":"F32","shape":[1],"data_offsets":[4]', "[4]", "two numbers", "one offset")
    w("offsets_3", '"dtype":"F32","shape":[1],"data_offsets":[0,4,4]', "[0,4,4]", "two numbers", "three offsets")
    for label, text, where in (("nothing_more", "{}{}", "{}"), ("nothing_more_word", "{}x", "x")):
        c.rejected("H", f"after_json_{label}", file(text), BAD, 8 + text.rindex(where), "its end",
                   "more after the header's object")
    c.rejected("H", "header_of_nul", file(b"{}\0\0\0\0\0\0"), BAD, 10, "0x00", "a header padded with NUL")
    for label, text, where, what in (
            ("entry_array", '{"w":["F32",[1],[0,4]]}', '["F32', "an entry written as an array"),
            ("entry_null", '{"w":null}', "null", "an entry of null"),
            ("entry_number", '{"w":4}', "4}", "an entry that is a number"),
            ("metadata_array", '{"__metadata__":[]}', "[]", "metadata that is an array"),
            ("metadata_string", '{"__metadata__":"x"}', '"x"', "metadata that is a string")):
        c.rejected("H", label, file(text, bytes(4) if label.startswith("entry") else b""), BAD, 8 + text.rindex(where),
                   "an object", what)
    for label, value in (("number", "1"), ("null", "null"), ("object", "{}"), ("bool", "true")):
        text = '{"__metadata__":{"k":' + value + "}}"
        c.rejected("H", f"metadata_of_{label}", file(text), BAD, 8 + text.index(value, 16), "not a string",
                   f"metadata with a value that is a {label}")


def polyglots(c):
    zipped = b"PK\5\6" + bytes(18)
    w = file({"w": entry()}, bytes(4))
    for label, tail in (("zip", zipped), ("pdf", b"%PDF-1.7\n%%EOF\n"), ("elf", b"\x7fELF" + bytes(12)),
                        ("safetensors", w), ("gguf", b"GGUF\3\0\0\0")):
        c.rejected("I", f"then_{label}", w + tail, BAD, len(w), f"{len(tail)} bytes after the last tensor",
                   f"a sound file with {label} behind it")
    c.accepted("I", "zip_in_tensor", file({"w": entry("U8", (len(zipped),), 0, len(zipped))}, zipped), 1,
               "a ZIP archive inside of a tensor: legal, other tools may see the archive")
    c.accepted("I", "zip_in_metadata", file({"__metadata__": {"k": "PK\u0005\u0006"}, "w": entry()}, bytes(4)), 1,
               "the signature of a ZIP archive in metadata")
    c.rejected("I", "leading_space", file(b' {"w":' + compact(entry()).encode() + b"}", bytes(4)), BAD, 8,
               "white space", "white space before the header")


def types(c):
    for label, dtype in (("unknown", "F128"), ("lower_case", "f32"), ("blank", "F32 "), ("empty", ""), ("nul", "F32\0"),
                         ("long", "F" * 1000), ("gguf", "Q4_K"), ("numpy", "<f4")):
        text = json.dumps({"w": entry(dtype)}, separators=(",", ":"))
        c.rejected("J", f"dtype_{label}", file(text, bytes(4)), UNSUPPORTED, 8 + text.index(json.dumps(dtype) + ","),
                   "unknown dtype", f"a type that the format does not have: {dtype[:10]!r}")
    for label, value in (("null", "null"), ("number", "14"), ("object", '{"F32":null}'), ("array", '["F32"]')):
        text = '{"w":{"dtype":' + value + ',"shape":[1],"data_offsets":[0,4]}}'
        c.rejected("J", f"dtype_{label}", file(text, bytes(4)), BAD, 8 + text.index(value), "a string",
                   f"a type that is no string but {label}")
    for dtype, n, size in (("F4", 3, 2), ("F4", 1, 1), ("F6_E2M3", 2, 2), ("F6_E3M2", 5, 4)):
        one(c, "J", f"odd_{dtype.lower()}_{n}", (n,), size, "whole number of bytes",
            f"{n} numbers of {dtype} do not fill bytes", dtype=dtype, data=bytes(size))
    for value in (2, 255):
        c.damaged("J", f"bool_{value}", file({"b": entry("BOOL", (3,), 0, 3)}, bytes([0, 1, value])), BAD, 1,
                  f"a bool whose byte is {value}")
    for missing in ("dtype", "shape", "data_offsets"):
        fields = {k: v for k, v in entry().items() if k != missing}
        c.rejected("J", f"no_{missing}", file({"w": fields}, bytes(4)), BAD, 9, f"no {missing}",
                   f"an entry without {missing}")
    c.accepted("J", "unknown_field", file({"w": {**entry(), "note": 1}}, bytes(4)), 1,
               "a field that nobody knows", warnings=1)


INDEX = "model.safetensors.index.json"


def paths(c):
    one_, two = file({"a": entry("U8", (4,), 0, 4)}, bytes(4)), file({"b": entry("U8", (2,), 0, 2)}, bytes(2))
    shards = {"1.safetensors": one_, "2.safetensors": two}
    right = {"a": "1.safetensors", "b": "2.safetensors"}
    def index(letter, name, value, status, where, message, what, files=None):
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        at = text.encode().rindex(where.encode()) if isinstance(where, str) else where
        c.rejected(letter, name, {INDEX: text.encode(), **(shards if files is None else files)}, status, at, message, what)
    for label, path in (("parent", "../1.safetensors"), ("parent_inside", "a/../../1.safetensors"), ("dots", ".."),
                        ("absolute", "/etc/passwd"), ("device", "/dev/zero"), ("proc", "/proc/self/mem"), ("empty", ""),
                        ("nul", "1.safetensors\0.txt"), ("parent_of_windows", "..\\1.safetensors"),
                        ("drive", "C:\\1.safetensors"), ("share", "\\\\server\\1.safetensors")):
        index("K", f"path_{label}", {"weight_map": {"a": path}}, BAD, json.dumps(path), "points outside",
              f"a shard by the name of {path!r}")
    for label, path in (("url", "https://example.org/1.safetensors"), ("long", "n" * 3000), ("glob", "*.safetensors")):
        index("K", f"path_{label}", {"weight_map": {"a": path}}, [IO, NOTFOUND] if label == "long" else NOTFOUND, json.dumps(path), "",
              f"a shard by the name of {path[:40]!r}: there is no such file here, and nothing is fetched")
    index("K", "self", {"weight_map": {"a": INDEX}}, BAD, f'"{INDEX}"', "index", "an index that names itself")
    index("K", "shard_of_shard", {"weight_map": {"a": "other.index.json"}}, BAD, '"other', "index",
          "a shard that is an index", {"other.index.json": b'{"weight_map":{"a":"1.safetensors"}}', **shards})
    index("K", "directory", {"weight_map": {"a": "."}}, BAD, '"."', "", "a shard that is the directory")
    index("P", "shard_missing", {"weight_map": right}, NOTFOUND, '"2.saf', "2.safetensors",
          "one of two shards is not there", {"1.safetensors": one_})
    index("P", "shard_cut", {"weight_map": right}, SHORT, len(two) - 1, "2.safetensors", "a shard that is cut short",
          {"1.safetensors": one_, "2.safetensors": two[:-1]})
    index("P", "tensor_nowhere", {"weight_map": {**right, "x": "2.safetensors"}}, BAD, '"x"', "no shard has it",
          "the index places a tensor where it is not")
    index("P", "tensors_exchanged", {"weight_map": {"a": "2.safetensors", "b": "1.safetensors"}}, BAD, '"a"', "it is in",
          "the index exchanges two tensors")
    index("H", "index_tensor_twice", '{"weight_map":{"a":"1.safetensors","a":"2.safetensors"}}', BAD, '"a"', "twice",
          "a tensor in two shards")
    index("H", "index_tensor_twice_escaped", '{"weight_map":{"a":"1.safetensors","\\u0061":"2.safetensors"}}', BAD,
          '"\\u0061"', "twice", "a tensor in two shards, once escaped")
    index("H", "index_map_twice", '{"weight_map":{},"weight_map":{}}', BAD, '"weight_map"', "two weight_maps",
          "two maps of weights")
    index("H", "index_number", '{"weight_map":{"a":1}}', BAD, "1", "a string", "a shard that is a number")
    index("A", "index_cut", '{"weight_map":{"a":"1.safetensors"', SHORT, 34, "ends where", "an index that is cut short")
    index("I", "index_then_more", '{"weight_map":{}} PK', BAD, "PK", "its end", "an index with more behind it")
    c.damaged("P", "total_size", {INDEX: json.dumps({"metadata": {"total_size": 7}, "weight_map": right}).encode(),
                                  **shards}, BAD, 2, "a total size that is not the sum")
    c.damaged("P", "tensor_in_two_shards", {INDEX: json.dumps({"weight_map": right}).encode(), "1.safetensors": one_,
                                            "2.safetensors": file({"b": entry("U8", (2,), 0, 2),
                                                                   "a": entry("U8", (1,), 2, 3)}, bytes(3))}, BAD, 2,
              "another shard has a tensor of the same name")


def content(c):
    for label, dtype, data in (
            ("nan", "F32", struct.pack("<f", float("nan"))), ("nan_signalling", "F32", b"\x01\x00\x80\x7f"),
            ("infinity", "F32", struct.pack("<f", float("inf"))), ("subnormal", "F32", b"\1\0\0\0"),
            ("minus_0", "F32", b"\0\0\0\x80"), ("all_ones", "F64", b"\xff" * 8), ("f16_nan", "F16", b"\xff\xff"),
            ("e8m0_nan", "F8_E8M0", b"\xff"), ("e4m3_nan", "F8_E4M3", b"\x7f")):
        c.accepted("P", f"value_{label}", file({"w": entry(dtype, (1,), 0, len(data))}, data), 1, f"a value: {label}")
