# SPDX-License-Identifier: MIT
"""Converts values to buffers before they are saved, unless they are Tensors or buffers."""
import sys

from ._tenfold import from_dlpack

# Names in numpy and ml_dtypes of types that the buffer protocol does not support.
_ML = {"bfloat16": "bf16", "float8_e4m3fn": "f8_e4m3fn", "float8_e5m2": "f8_e5m2",
       "float8_e4m3fnuz": "f8_e4m3fnuz", "float8_e5m2fnuz": "f8_e5m2fnuz",
       "float8_e8m0fnu": "f8_e8m0"}
_PACKED = {"float4_e2m1fn": ("f4_e2m1", 4), "float6_e2m3fn": ("f6_e2m3", 6),
           "float6_e3m2fn": ("f6_e3m2", 6), "int4": ("i4", 4), "uint4": ("u4", 4),
           "int2": ("i2", 2), "uint2": ("u2", 2)}


class Stream:
    """A tensor whose bytes a function provides while it is saved: function(offset, memoryview)
    fills the view with the bytes from that offset on, in C order and little-endian."""

    __slots__ = ("function", "shape", "dtype")

    def __init__(self, function, shape, dtype):
        self.function = function
        self.shape = tuple(int(n) for n in shape)
        self.dtype = str(dtype)


def pack(array, bits):
    """Packs elements of one byte to `bits` bits each, lowest bits first."""
    import numpy
    ones = numpy.unpackbits(array.reshape(-1, 1), axis=1, bitorder="little", count=bits)
    return numpy.packbits(ones.reshape(-1), bitorder="little")


def unknown(name, dtype):
    from ._errors import UnsupportedError
    if str(dtype) == "complex128":
        remedy = "save it with tenfold.save() as .zt or .npy, or convert it to complex64"
    elif str(dtype) in _PACKED:
        remedy = "save it with tenfold.save() as .zt, or convert it to int8"
    elif str(dtype) == "object":
        remedy = 'save integers of 16 bytes as ("i128", values, None)'
    elif getattr(dtype, "names", None):
        remedy = "save each of its fields under a name of its own"
    else:
        remedy = "convert it to a numeric type"
    return UnsupportedError(f'Unknown dtype "{dtype}" of {name!r}: {remedy}',
                            status="EUNSUPPORTED", code=-6)


def _numpy(name, array):
    import numpy
    kind = array.dtype.name
    if kind in _ML:
        return (_ML[kind], array.view(numpy.dtype(f"u{array.dtype.itemsize}")), None)
    if kind in _PACKED:
        id, bits = _PACKED[kind]
        plain = numpy.ascontiguousarray(array).view(numpy.uint8)
        return (id, pack(plain, bits), array.shape)
    if array.dtype.kind == "c" and array.dtype.byteorder == ">":
        return array.astype(array.dtype.newbyteorder("<"))
    if array.dtype.kind in "fiucb" and array.dtype.itemsize <= 8 or kind == "complex128":
        return array
    raise unknown(name, array.dtype)


def wide(name, id, values):
    """Python's integers, in lists or an array, as ("i128", bytes, shape)."""
    import numpy
    array = numpy.array(values, dtype=object)
    try:
        data = b"".join(int(v).to_bytes(16, "little", signed=id == "i128")
                        for v in array.flat if v == int(v))
    except (OverflowError, TypeError, ValueError):
        data = b""
    if len(data) != 16 * array.size:
        raise ValueError(f"{name!r}: a value is not an integer of the type {id}")
    return (id, data, array.shape)


def _strings(words):
    """A list of str (or bytes) as a tensor of strings."""
    from array import array
    data, offsets = bytearray(), array("Q", [0])
    for word in words:
        data += word if isinstance(word, bytes) else word.encode("utf-8", "surrogateescape")
        offsets.append(len(data))
    if sys.byteorder == "big":
        offsets.byteswap()
    return ("strings/1", {"offsets": ("u64", offsets), "bytes": ("u8", data)}, (len(words),))


def plain(name, value):
    """Converts a value to a buffer, an Array, (type, buffer or function, shape), or
    (layout, {role: (type, buffer)}, shape). The extension calls it for other values."""
    if isinstance(value, Stream):
        return (value.dtype, value.function, value.shape)
    if isinstance(value, list) and value and all(isinstance(word, (str, bytes)) for word in value):
        return _strings(value)
    if hasattr(value, "dtype") and hasattr(value, "__array_interface__"):
        import numpy
        if isinstance(value, numpy.generic):
            value = numpy.asarray(value)
        if isinstance(value, numpy.ndarray):
            return _numpy(name, value)
    if hasattr(value, "__dlpack__"):
        if hasattr(value, "detach"):  # torch refuses tensors that require a gradient
            value = value.detach()
        device = value.__dlpack_device__()
        if device[0] == 1:
            return from_dlpack(value)
        if hasattr(value, "cpu"):
            return from_dlpack(value.cpu())
        raise TypeError(f"{name!r} is on another device; copy it to the CPU first")
    if hasattr(value, "__array__"):
        import numpy
        return _numpy(name, numpy.asarray(value))
    raise TypeError(f"{name!r} cannot be saved: a {type(value).__name__} is not a tensor")
