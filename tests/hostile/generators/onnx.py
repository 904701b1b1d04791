# SPDX-License-Identifier: MIT
"""ONNX: protobuf messages, one in the other."""
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
            c.rejected("A", f"cut_{at:03}", WHOLE[:at], SHORT, at, "bytes are missing", f"the first {at} of {len(WHOLE)} bytes")
    c.rejected("B", "protobuf", num(1, 3) + text(2, b"other") + text(3, b"message"), BAD, 0, "no graph", "another protobuf message")
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
    c.rejected("J", "bool_2", model(tensor((1,), 9, text(5, b"\2"))), BAD, None, "beyond the type", "a bool of 2")
    c.rejected("J", "group", model(tensor() + varint(31 << 3 | 3)), BAD, None, "wire type", "a group")
    for name, place in {"up": "../x", "up_inside": "a/../../x", "absolute": "/etc/hostname", "backslash": "..\\x", "drive": "C:\\x",
                        "nul": "x\0y", "empty": "", "dot": ".", "device": "/dev/zero", "memory": "*/_ORT_MEM_ADDR_/*"}.items():
        entry = text(13, text(1, b"location") + text(2, place.encode())) + num(14, 1)
        c.damaged("K", name, model(tensor(data=b"", more=entry)), UNSUPPORTED, 1, f"data at {place!r}")
    entry = text(13, text(1, b"location") + text(2, b"x.bin")) + text(13, text(1, b"offset") + text(2, b"-4")) + num(14, 1)
    c.damaged("K", "offset", {"offset.onnx": model(tensor(data=b"", more=entry)), "x.bin": bytes(64)}, UNSUPPORTED, 1, "data before the beginning of a file")
    c.accepted("K", "good", {"good.onnx": model(tensor(data=b"", more=text(13, text(1, b"location") + text(2, b"x.bin"))
               + text(13, text(1, b"length") + text(2, b"24")) + num(14, 1))), "x.bin": bytes(24)}, 1, "data in another file", warnings=None)
