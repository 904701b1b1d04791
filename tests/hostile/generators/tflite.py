# SPDX-License-Identifier: MIT
"""TFLite: a FlatBuffer, whose references may have any value."""
import pathlib
import struct
import sys

from kit import *

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "formats" / "tflite"))
from flat import *  # noqa: E402

FORMAT, EXTENSION = "tflite", "tflite"


def make(c):
    data = struct.pack("<4f", 1, 2, 3, 4)
    whole = model([[tensor("w", 0, [2, 2], 1)]], [buffer(data)])
    c.accepted("P", "nothing_wrong", whole, 1, "a model of one constant")
    wrong_things(c, whole)
    one = lambda *tensors: model([list(tensors)], [buffer(data)])
    w = tensor("w", 0, [2, 2], 1)
    c.accepted("P", "nan", model([[w]], [buffer(struct.pack("<4f", float("nan"), float("inf"), -0.0, 1e-45))]), 1, "NaN, Infinity, -0 and the smallest number")
    c.accepted("P", "none", model([[tensor("a", 0, [2, 2], 0)]], []), 0, "an activation and no constant", warnings=None)
    c.accepted("I", "zip_behind", whole + b"PK\5\6" + bytes(18), 1, "a ZIP archive behind the model, as those of associated files", warnings=None)
    c.rejected("I", "html_before", b"<html>\n\n" + whole, [BAD, UNSUPPORTED], None, "", "HTML before the model")
    c.accepted("H", "name_twice", one(w, w), 2, "two tensors of one name", warnings=None)
    c.accepted("H", "name_none", one(tensor("", 0, [2, 2], 1)), 1, "a tensor without a name", warnings=None)
    for name in (b"\x1b[2J", b"a\0b", b"\xff\xfe", b"../x", b"%s%n"):
        c.accepted("H", f"name_{name.hex()}", one(tensor(name, 0, [2, 2], 1)), 1, f"the name {name!r}", warnings=None)
    for t in (21, 99, 127, 128, 255):
        c.damaged("J", f"type_{t}", one(tensor("w", t, [2, 2], 1)), UNSUPPORTED, 1, f"the type {t}: listed, and not read")
    c.accepted("J", "i4_odd", model([[tensor("w", 17, [3], 1)]], [buffer(b"\x21\x03")]), 1, "three elements of four bits")
    c.rejected("E", "short_by_1", one(tensor("w", 0, [5], 1)), BAD, None, "", "five elements in 16 bytes")
    c.rejected("E", "long_by_1", one(tensor("w", 0, [3], 1)), BAD, None, "", "three elements in 16 bytes")
    c.accepted("E", "shared", one(w, tensor("v", 0, [4], 1)), 2, "two tensors of one buffer", warnings=None)
    for at in range(4, len(whole) - 16, 4):
        c.rejected("A", f"cut_{at}", whole[:at], [SHORT, BAD, UNSUPPORTED], None, "", f"the first {at} bytes")
    for at in range(0, len(whole) - 4, 4):  # every word refers to a distant place; the file may open or not
        broken = whole[:at] + b"\xf0\xff\xff\xff" + whole[at + 4:]
        if at in (0, 4):
            c.rejected("C", f"word_{at}", broken, [BAD, UNSUPPORTED], None, "", f"word {at} is 2^32 - 16")
    for name, n in HUGE.items():
        c.rejected("C", f"behind_{name}", model([[tensor("w", 0, [2, 2], 1)]], [buffer(None, n, 16)]), SHORT, None, "beyond the file", f"data at {n}")
        c.rejected("D", f"size_{name}", model([[tensor("w", 0, [2, 2], 1)]], [buffer(None, 16, n)]), SHORT, None, "beyond the file", f"{n} bytes of data")
    c.rejected("D", "shape_wraps", model([[tensor("w", 0, [1 << 30, 1 << 30, 1 << 30], 1)]], [buffer(data)]), [BAD, LIMIT], None, "", "dimensions whose product wraps")
    c.rejected("D", "negative", model([[tensor("w", 0, [-4], 1)]], [buffer(data)]), BAD, None, "-4", "a dimension below zero")
    c.rejected("F", "rank", model([[tensor("w", 0, [1] * 1000, 1)]], [buffer(data)]), LIMIT, None, "1000 dimensions", "a thousand dimensions")
    c.rejected("E", "buffer", model([[tensor("w", 0, [4], 0xFFFFFFFF)]], [buffer(data)]), BAD, None, "buffer", "a buffer that is not there")
    c.rejected("C", "strings", model([[tensor("s", 5, [1], 1)]], [buffer(struct.pack("<I", 0xFFFFFFFF))]), BAD, None, "too early", "4 billion strings")
