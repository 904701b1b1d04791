# SPDX-License-Identifier: MIT
"""ONNX: nested protobuf messages."""
import struct

from kit import *

FORMAT, EXTENSION = "onnx", "onnx"
ALL = [BAD, SHORT]


def varint(n):
    n %= 1 << 64
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def num(field, n):
    return varint(field << 3) + varint(n)


def text(field, data, n=None):
    return varint(field << 3 | 2) + varint(len(data) if n is None else n) + data


def tensor(dims=(2, 3), type_=1, data=None, name=b"w", more=b""):
    return text(5, b"".join(num(1, d) for d in dims) + num(2, type_) + text(8, name) + (text(9, bytes(range(24))) if data is None else data) + more)


def model(graph, more=b""):
    return num(1, 10) + text(7, graph + text(2, b"g")) + text(8, num(2, 21)) + more


WHOLE = model(tensor())


def make(c):
    for at in range(4, len(WHOLE)):
        if at not in (len(WHOLE) - 4, ):
            c.rejected("A", f"cut_{at:03}", WHOLE[:at], SHORT, at, "missing", f"the first {at} of {len(WHOLE)} bytes")
    c.rejected("B", "protobuf", num(1, 3) + text(2, b"other") + text(3, b"message"), BAD, 0, "no graph", "another protobuf message")
    wrong_things(c, WHOLE)
    c.accepted("P", "nothing_wrong", WHOLE, 1, "a model of one initializer", warnings=None)
    c.accepted("P", "nan", model(tensor((2, ), 1, text(9, b"\0\0\xc0\x7f\0\0\x80\xff"))), 1, "NaN and -Infinity", warnings=None)
    c.rejected("P", "two_kinds", model(tensor((6, ), 1, text(9, bytes(24)) + text(4, bytes(24)))), BAD, None, "both raw and typed data", "the values twice")
    c.rejected("P", "no_data", model(tensor((6, ), 1, b"")), BAD, None, "", "a tensor without values")
    c.accepted("I", "behind", WHOLE + text(1000, b"PK\3\4%PDF-1.7"), 1, "a field that nobody knows, and what it holds", warnings=None)
    c.rejected("I", "zip_behind", WHOLE + b"PK\5\6" + bytes(18), [BAD, SHORT], None, "", "the end of a ZIP archive behind the model")
    c.rejected("I", "html_before", b"<html>" + WHOLE, [BAD, SHORT, UNSUPPORTED], None, "", "a piece of HTML before the model")
    for name, n in HUGE.items():
        place = text(13, text(1, b"location") + text(2, b"x.bin")) + text(13, text(1, b"offset") + text(2, str(n).encode())) + num(14, 1)
        c.damaged("E", f"offset_{name}", {f"offset_{name}.onnx": model(tensor(data=b"", more=place)), "x.bin": bytes(64)}, UNSUPPORTED, 1, f"data at {n} of a file of 64 bytes")
        place = text(13, text(1, b"location") + text(2, b"x.bin")) + text(13, text(1, b"length") + text(2, str(n).encode())) + num(14, 1)
        c.damaged("E", f"length_{name}", {f"length_{name}.onnx": model(tensor(data=b"", more=place)), "x.bin": bytes(64)}, UNSUPPORTED, 1, f"24 bytes of data that are said to be {n}")
        c.rejected("F", f"ints_{name}", model(tensor((6, ), 6, text(5, b"\0" * 6, n))), ALL, None, "", f"numbers in {n} bytes that are not there")
        c.rejected("F", f"strings_{name}", model(tensor((n, ), 8, text(6, b"s"))), BAD, None, "", f"{n} strings, of which one is there")
    shared = text(13, text(1, b"location") + text(2, b"x.bin")) + num(14, 1)
    c.accepted("E", "shared", {"shared.onnx": model(tensor(data=b"", more=shared) + tensor(data=b"", name=b"v", more=shared)), "x.bin": bytes(24)}, 2,
               "two tensors in the same bytes of a file", warnings=None)
    wrong = shared + text(13, text(1, b"checksum") + text(2, b"0" * 40))
    c.damaged("P", "checksum", {"checksum.onnx": model(tensor(data=b"", more=wrong)), "x.bin": bytes(24)}, DIGEST, 1, "a file that is not that of the checksum")
    c.rejected("F", "name", model(tensor(name=b"n" * 70000)), LIMIT, None, "", "a name of 70000 bytes")
    c.accepted("H", "name_none", model(tensor(name=b"")), 1, "a tensor without a name", warnings=1)
    for name in (b"a\0b", b"../x", b"%s%n", b"a/../../b"):
        c.accepted("H", f"name_{name.hex()}", model(tensor(name=name)), 1, f"the name {name!r}", warnings=None)
    for name, n in HUGE.items():
        c.rejected("C", f"graph_{name}", num(1, 10) + text(7, tensor(), n), SHORT, None, "", f"a graph of {n} bytes")
        c.rejected("C", f"raw_{name}", model(tensor(data=text(9, bytes(24), n))), ALL, None, "", f"data of {n} bytes")
        c.rejected("D", f"dim_{name}", model(tensor((n, 3))), BAD, None, "", f"a dimension of {n}")
        c.rejected("D", f"dims_{name}", model(tensor((n, n))), BAD, None, "", f"two dimensions of {n}")
    c.rejected("D", "wraps_to_24", model(tensor((2 ** 62, 4, 6))), BAD, None, "", "a product that wraps to what is there")
    c.rejected("F", "dims_many", model(tensor((1,) * 5000)), LIMIT, None, "dimensions", "5000 dimensions")
    deep = b""
    for _ in range(3000):
        deep = text(1, text(4, b"If") + text(2, b"y") + text(5, text(1, b"b") + text(6, deep)))
    c.rejected("G", "graphs", model(deep), LIMIT, None, "deep", "3000 graphs within each other")
    c.rejected("H", "name_twice", model(tensor() + tensor()), BAD, None, "two tensors", "two tensors of one name")
    c.accepted("H", "name_escapes", model(tensor(name=b"\x1b[2J")), 1, "a name that clears the screen", warnings=None)
    for t in (0, 29, 99, 2 ** 31, 2 ** 64 - 1):
        c.rejected("J", f"type_{t}", model(tensor(type_=t)), UNSUPPORTED, None, "unknown type", f"the type {t}")
    c.rejected("J", "bool_2", model(tensor((1,), 9, text(5, b"\2"))), BAD, None, "out of range of the type", "a bool of 2")
    c.rejected("J", "group", model(tensor() + varint(31 << 3 | 3)), BAD, None, "wire type", "a group")
    for name, place in {"up": "../x", "up_inside": "a/../../x", "absolute": "/etc/hostname", "backslash": "..\\x", "drive": "C:\\x",
                        "nul": "x\0y", "empty": "", "dot": ".", "device": "/dev/zero", "memory": "*/_ORT_MEM_ADDR_/*"}.items():
        entry = text(13, text(1, b"location") + text(2, place.encode())) + num(14, 1)
        c.damaged("K", name, model(tensor(data=b"", more=entry)), UNSUPPORTED, 1, f"data at {place!r}")
    entry = text(13, text(1, b"location") + text(2, b"x.bin")) + text(13, text(1, b"offset") + text(2, b"-4")) + num(14, 1)
    c.damaged("K", "offset", {"offset.onnx": model(tensor(data=b"", more=entry)), "x.bin": bytes(64)}, UNSUPPORTED, 1, "data before the beginning of a file")
    c.accepted("K", "good", {"good.onnx": model(tensor(data=b"", more=text(13, text(1, b"location") + text(2, b"x.bin"))
               + text(13, text(1, b"length") + text(2, b"24")) + num(14, 1))), "x.bin": bytes(24)}, 1, "data in another file", warnings=None)
