# SPDX-License-Identifier: MIT
"""The API of safetensors 0.8, with Tenfold's reader and writer.

    import tenfold.compat.safetensors as safetensors

or, for code that you cannot change, before that is imported:

    import sys, tenfold.compat.safetensors
    sys.modules["safetensors"] = tenfold.compat.safetensors

docs/python.md lists the differences: each replaces an error or a wrong value by a result.
"""
import os as _os

from ... import File as _File, _tenfold
from ..._errors import Error as SafetensorError
from ..._plain import check_name, writing as _writing

__version__ = "0.8.0"
__all__ = ["SafetensorError", "TensorSpec", "deserialize", "safe_open", "serialize",
           "serialize_file"]

# Tenfold's ids with safetensors' names in files, and names in numpy and torch with Tenfold's ids.
_NAMES = {"f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16", "i64": "I64", "i32": "I32",
          "i16": "I16", "i8": "I8", "u64": "U64", "u32": "U32", "u16": "U16", "u8": "U8",
          "bool": "BOOL", "c64": "C64", "f8_e4m3fn": "F8_E4M3", "f8_e5m2": "F8_E5M2",
          "f8_e4m3fnuz": "F8_E4M3FNUZ", "f8_e5m2fnuz": "F8_E5M2FNUZ", "f8_e8m0": "F8_E8M0",
          "f6_e2m3": "F6_E2M3", "f6_e3m2": "F6_E3M2", "f4_e2m1": "F4"}
_IDS = {"bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16",
        "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64", "float16": "f16",
        "float32": "f32", "float64": "f64", "bfloat16": "bf16", "float8_e4m3fn": "f8_e4m3fn",
        "float8_e4m3fnuz": "f8_e4m3fnuz", "float8_e5m2": "f8_e5m2",
        "float8_e5m2fnuz": "f8_e5m2fnuz", "float8_e8m0fnu": "f8_e8m0",
        "float4_e2m1fn_x2": "f4_e2m1", "complex64": "c64"}
_FRAMEWORKS = {"pt": "torch", "torch": "torch", "pytorch": "torch", "np": "numpy",
               "numpy": "numpy", "tf": "tensorflow", "tensorflow": "tensorflow", "jax": "jax",
               "flax": "jax", "mlx": "mlx", "paddle": "paddle"}
_DEVICES = ("cpu", "cuda", "mps", "npu", "xpu", "xla", "mlu", "musa", "hpu")


class TensorSpec:
    """A tensor, given by the address of its bytes, which the caller keeps alive."""

    __slots__ = ("_id", "_shape", "_ptr", "_len")

    def __init__(self, *, dtype, shape, data_ptr, data_len):
        if dtype not in _IDS:
            raise SafetensorError(f'Unknown dtype "{dtype}". Supported dtypes: ' + ", ".join(_IDS))
        self._id = _IDS[dtype]
        self._shape = [int(n) for n in shape]
        self._ptr = int(data_ptr)
        self._len = int(data_len)

    @property
    def dtype(self):
        return _NAMES[self._id]

    @property
    def shape(self):
        return list(self._shape)

    @property
    def data_ptr(self):
        return self._ptr

    @property
    def data_len(self):
        return self._len

    def __repr__(self):
        return f"TensorSpec(dtype='{self.dtype}', shape={self._shape}, data_ptr={self._ptr}, " \
               f"data_len={self._len})"


def _items(tensor_dict):
    items = []
    for name, spec in tensor_dict.items():
        if not isinstance(name, str):
            raise TypeError(f"argument 'tensor_dict': {type(name).__name__!r} object is not an "
                            "instance of 'str'")
        if not isinstance(spec, TensorSpec):
            raise TypeError(f"argument 'tensor_dict': {type(spec).__name__!r} object is not an "
                            "instance of 'TensorSpec'")
        check_name(name)
        shape = spec._shape
        if spec._id == "f4_e2m1" and shape:  # an element of torch's type holds two numbers
            shape = shape[:-1] + [shape[-1] * 2]
        items.append((name, (spec._id, _tenfold.borrow(spec._ptr, spec._len), shape)))
    return items


def _write(tensor_dict, filename, metadata):
    how = _writing(metadata, "safetensors")
    try:
        return _tenfold.save(_items(tensor_dict), filename, how)
    except ValueError as error:
        if isinstance(error, SafetensorError):
            raise
        raise SafetensorError(f"Error while serializing: {error}") from None


def serialize(tensor_dict, metadata=None):
    """The bytes of a file with these tensors (a dict of TensorSpecs)."""
    return _write(tensor_dict, None, metadata)[1]


def serialize_file(tensor_dict, filename, metadata=None):
    """Saves these tensors (a dict of TensorSpecs) to a file."""
    _write(tensor_dict, filename, metadata)


def deserialize(bytes):
    """A list of (name, {"dtype", "shape", "data"}) in the order of the data."""
    file = _File(bytes, {"content": True, "compat": True})
    result = []
    for name in file.placed():
        tensor = file[name]
        data = bytearray(tensor.nbytes)
        tensor.read_into(data)
        result.append((name, {"data": data, "shape": list(tensor.shape),
                              "dtype": _NAMES.get(tensor.dtype, tensor.dtype)}))
    return result


def _device(device):
    """A device as text or number, or an error worded as in safetensors."""
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    name = str(device)
    kind, _, number = name.partition(":")
    if kind not in _DEVICES or (number and kind == "cpu"):
        raise SafetensorError(f"device {name} is invalid")
    if number and not number.isdigit():
        raise ValueError("invalid digit found in string")
    return name if number or kind in ("cpu", "mps") else f"{kind}:0"


def _framework(framework):
    if framework not in _FRAMEWORKS:
        raise SafetensorError(f"framework {framework} is invalid")
    return _FRAMEWORKS[framework]


def _maker(framework, device):
    """The function that converts an Array to a tensor of the framework. None: numpy, whose arrays
    the extension makes."""
    if framework == "numpy":
        return None
    if framework == "torch":
        from ...torch import _tensor
        return lambda array: _tensor(array, device)
    if framework == "tensorflow":
        from tensorflow import convert_to_tensor
        return lambda array: convert_to_tensor(array.numpy())
    if framework == "jax":
        from jax.numpy import asarray
        return lambda array: asarray(array.numpy())
    if framework == "mlx":
        from mlx.core import array as make
        return lambda array: make(array.numpy())
    from paddle import to_tensor
    return lambda array: to_tensor(array.numpy())


class _Slice:
    """The result of get_slice() for torch and others: only the indexed elements are read. For
    numpy, the result is the Tensor itself."""

    __slots__ = ("_tensor", "_make", "get_shape", "get_dtype")

    def __init__(self, tensor, make):
        self._tensor = tensor
        self._make = make
        self.get_shape, self.get_dtype = tensor.get_shape, tensor.get_dtype

    def __getitem__(self, key):
        return self._make(self._tensor.slice(key))


def _header(source, options):
    """The bytes of a header that the library has read and accepted; b"" for a model in several
    files and for a URL, whose header is not available here."""
    def of(read):
        return read(int.from_bytes(read(8), "little"))
    if options.get("content") or not isinstance(source, (str, bytes, int, _os.PathLike)):
        if hasattr(source, "seek"):
            if hasattr(source, "fileno"):
                return _header(source.fileno(), {})
            source.seek(0)
            return of(source.read)
        import io
        return of(io.BytesIO(memoryview(source)).read)
    if isinstance(source, int):
        return _os.pread(source, int.from_bytes(_os.pread(source, 8, 0), "little"), 8)
    if _os.path.isdir(source) or _tenfold.is_url(source):
        return b""
    with open(source, "rb") as file:
        return of(file.read)


def _has_map(file):
    """Does a file without metadata have an empty "__metadata__"? The library does not distinguish
    the two."""
    if file.format != "safetensors" or file.shards:
        return False
    try:
        text = _header(file._source, file._options)
        if b"__metadata__" not in text:
            return False
        import json
        return "__metadata__" in json.loads(text)
    except (OSError, ValueError):
        return False


class _Open:
    # get_tensor is a slot, so that for numpy it is the method of the extension itself.
    __slots__ = ("_file", "_make", "get_tensor")

    def _begin(self, source, framework, device, access):
        framework = _framework(framework)
        device = _device(device)
        if framework != "torch" and device != "cpu":
            raise SafetensorError(f"Device {device} is not supported for framework {framework}")
        try:
            self._file = _File(source, {"access": access, "compat": True,
                                        "quick": access == "auto"})
        except FileNotFoundError as error:
            if getattr(error, "http_status", None):
                raise
            text = f"No such file or directory: {_os.fsdecode(source)}"
            raise FileNotFoundError(text) from None
        self._make = _maker(framework, device)
        self.get_tensor = self._file.fetch if self._make is None else self._read

    def _read(self, name):
        """One tensor, in memory of its own."""
        return self._make(self._file.read(name))

    def keys(self):
        """The names, sorted."""
        return sorted(self._file.names())

    def offset_keys(self):
        """The names in the order of the data."""
        return self._file.placed()

    def metadata(self):
        """The texts of the file, or None."""
        attrs = self._file.attrs
        if self._file.format.startswith("safetensors"):
            found = attrs.get("safetensors.metadata")
            return {} if found is None and _has_map(self._file) else found
        return {key: value for key, value in attrs.items() if isinstance(value, str)} or None

    def get_tensors(self):
        """All tensors, in the order of the data."""
        if self._make is None:
            return self._file.load()
        arrays = self._file.load(None, 0, None, False)
        return {name: self._make(array) for name, array in arrays.items()}

    def prefetch(self, plan=None):
        """A hint of safetensors 0.9 about the next reads. It is a no-op here: tensors are read on
        demand."""
        self._file.names()  # raises "File is closed"

    def get_slice(self, name):
        """A tensor of which only the indexed elements are read."""
        tensor = self._file[name]
        return tensor if self._make is None else _Slice(tensor, self._make)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self._file.close()


class safe_open(_Open):
    """Opens a file of any format, a model in several files, or a descriptor."""

    __slots__ = ()

    def __init__(self, filename, framework, device="cpu", *, backend="mmap"):
        if backend not in ("mmap", "pread"):
            raise SafetensorError(
                f'backend "{backend}" is invalid (expected one of: "mmap", "pread")')
        self._begin(filename, framework, device, "auto" if backend == "mmap" else "pread")


class _safe_open_handle(_Open):
    """The same over an open file object."""

    __slots__ = ()

    def __init__(self, file_object, framework, device="cpu"):
        self._begin(file_object, framework, device, "auto")
