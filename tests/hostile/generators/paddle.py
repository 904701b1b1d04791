# SPDX-License-Identifier: MIT
"""Paddle's parameters: pickles of NumPy's arrays. If a reader executed a call in them, it would only get the number of
its process."""
import struct

from kit import *

FORMAT, EXTENSION = "paddle", "pdparams"
MARKED = b"StructuredToParameterName@@"
CALL = b"cposix\ngetpid\n)R"


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return b"X" + struct.pack("<I", len(s)) + s


def number(v):
    return b"\x8a" + bytes([9]) + v.to_bytes(9, "little", signed=True)


def tuple_of(*items):
    return b"(" + b"".join(items) + b"t"


def data_of(data, size=None):
    return b"B" + struct.pack("<I", len(data) if size is None else size) + data


def dtype(code="f4", order="<"):
    return b"cnumpy\ndtype\n" + tuple_of(text(code), b"\x89", b"\x88") + b"R" + tuple_of(number(3), text(order), b"N", b"N", b"N", number(-1), number(-1),
                                                                                      number(0)) + b"b"


def array(shape=(2, ), data=bytes(8), type_=None, bytes_=None, fortran=b"\x89", version=1):
    made = b"cnumpy.core.multiarray\n_reconstruct\n" + tuple_of(b"cnumpy\nndarray\n", tuple_of(number(0)), data_of(b"b")) + b"R"
    return made + tuple_of(number(version), tuple_of(*map(number, shape)), type_ or dtype(), fortran, bytes_ or data_of(data)) + b"b"


def file(*pairs, protocol=3, mark=True):
    items = b"".join(text(k) + v for k, v in pairs)
    return b"\x80" + bytes([protocol]) + b"}(" + items + (text(MARKED) + b"}" if mark else b"") + b"u."


def make(c):
    good = file(("w", array()))
    c.accepted("P", "nothing_wrong", good, 1, "one array")
    for at in (3, 20, 60, len(good) // 2, len(good) - 1):
        c.rejected("A", f"cut_{at}", good[:at], [SHORT, BAD, UNSUPPORTED], None, "", f"the first {at} bytes")
    c.add("B", "call", file(("w", CALL)), "a call of the system", verdict="damaged", status=BAD, rule="PickleCall", offset=None, tensors=0)
    c.add("B", "call_in_array", file(("w", array(type_=CALL))), "a call in place of a type", verdict="damaged", status=BAD, rule="PickleCall", offset=None, tensors=0)
    c.rejected("B", "list", b"\x80\x03](" + array() + b"e.", [UNSUPPORTED, BAD], None, "", "a list of arrays")
    for name, n in HUGE.items():
        if n < 1 << 63:
            c.rejected("F", f"shape_{name}", file(("w", array((n, )))), [BAD, LIMIT], None, "", f"{n} elements of 8 bytes")
    c.rejected("D", "shape_wraps", file(("w", array((1 << 32, 1 << 31, 2)))), [BAD, LIMIT, UNSUPPORTED], None, "", "a shape whose product wraps")
    c.rejected("D", "shape_minus", file(("w", array((-1, )))), [BAD, UNSUPPORTED], None, "", "-1 elements")
    c.rejected("D", "shape_large", file(("w", array((1 << 66, )))), [BAD, LIMIT, UNSUPPORTED], None, "", "2^66 elements")
    c.rejected("F", "rank", file(("w", array((1, ) * 100, bytes(4)))), [BAD, LIMIT, UNSUPPORTED], None, "", "100 dimensions")
    for n in (0xFFFFFFFF, 1 << 20):
        c.rejected("C", f"bytes_{n}", file(("w", array(bytes_=data_of(bytes(8), n)))), [SHORT, BAD], None, "", f"{n} bytes that are not there")
    c.rejected("C", "bytes_8", file(("w", array(bytes_=b"\x8e" + struct.pack("<Q", (1 << 64) - 1) + bytes(8))), protocol=4), [SHORT, BAD, LIMIT], None, "",
               "2^64 - 1 bytes")
    c.rejected("C", "bytes_few", file(("w", array((3, )))), [BAD, UNSUPPORTED], None, "", "8 bytes for 3 elements")
    c.rejected("C", "bytes_many", file(("w", array((1, )))), [BAD, UNSUPPORTED], None, "", "8 bytes for 1 element")
    c.rejected("G", "tuples", file(("w", b"(" * 20000 + b"t" * 20000)), [BAD, LIMIT, UNSUPPORTED], None, "", "20,000 tuples in each other")
    c.rejected("G", "marks", b"\x80\x03" + b"(" * 30000, [BAD, SHORT, LIMIT], None, "", "30,000 marks")
    c.accepted("G", "itself", b"\x80\x03}q\0(" + text("w") + b"h\0" + text(MARKED) + b"}u.", 0, "a dict that holds itself", warnings=None)
    laughs = b"\x80\x03}(" + text("w") + b"]q\0" + b"".join(b"(h" + bytes([i]) + b"h" + bytes([i]) + b"lq" + bytes([i + 1]) for i in range(40)) + text(MARKED) + b"}u."
    c.rejected("F", "laughs", laughs, [BAD, UNSUPPORTED, LIMIT], None, "", "lists that hold the one before twice, 40 times")
    c.accepted("H", "twice", file(("w", array()), ("w", array())), 2, "a name twice: both are listed", warnings=None)
    c.accepted("J", "objects", file(("w", array(type_=dtype("O8", "|")))), 0, "an array of objects: it is told as it stands, and no tensor", warnings=None)
    c.accepted("J", "wide", file(("w", array(type_=dtype("f99999999999")))), 0, "floats of many bytes: it is told as it stands, and no tensor", warnings=None)
    c.accepted("J", "no_type", file(("w", array(type_=b"N"))), 0, "an array without a type: it is told as it stands, and no tensor", warnings=None)
    c.accepted("J", "no_bytes", file(("w", array(bytes_=b"N"))), 0, "an array without bytes: it is told as it stands, and no tensor", warnings=None)
    c.accepted("J", "text_bytes", file(("w", array(bytes_=text("x" * 8)))), 0, "an array of text: it is told as it stands, and no tensor", warnings=None)
    c.accepted("H", "names", file(("../w", array()), ("", array())), 2, "names that lead elsewhere, and none", warnings=None)
