# SPDX-License-Identifier: MIT
"""load_file, save_file, load, save, save_model and load_model with safetensors' signatures, for
torch. Files of any format can be loaded. Files are saved as safetensors, unless `format` is given.

Tensors have memory of their own, which several threads fill, so later changes of the file do not
affect them. On a GPU ("cuda", "cuda:1" …) they are read directly into GPU memory, which torch owns;
for other devices torch copies them.
"""
import torch as _torch

from . import File as _File, _tenfold
from ._errors import UnsupportedError as _UnsupportedError
from ._plain import check_name as _check_name, progress as _progress, writing as _writing

__all__ = ["iterate", "load", "load_file", "load_into", "load_model", "load_sharded", "safe_open", "save",
           "save_file", "save_model"]

# (Tenfold's id, safetensors' name, torch's name); torch has the last ones since 2.1, 2.3 and 2.7.
_ALL = [("f64", "F64", "float64"), ("f32", "F32", "float32"), ("f16", "F16", "float16"),
        ("bf16", "BF16", "bfloat16"), ("i64", "I64", "int64"), ("i32", "I32", "int32"),
        ("i16", "I16", "int16"), ("i8", "I8", "int8"), ("u8", "U8", "uint8"),
        ("bool", "BOOL", "bool"), ("c64", "C64", "complex64"), ("c128", "C128", "complex128"),
        ("f8_e4m3fn", "F8_E4M3", "float8_e4m3fn"), ("f8_e5m2", "F8_E5M2", "float8_e5m2"),
        ("f8_e4m3fnuz", "F8_E4M3FNUZ", "float8_e4m3fnuz"),
        ("f8_e5m2fnuz", "F8_E5M2FNUZ", "float8_e5m2fnuz"),
        ("f8_e8m0", "F8_E8M0", "float8_e8m0fnu"), ("f4_e2m1", "F4", "float4_e2m1fn_x2"),
        ("u16", "U16", "uint16"), ("u32", "U32", "uint32"), ("u64", "U64", "uint64")]
_DTYPES = {id: getattr(_torch, name) for id, _, name in _ALL if hasattr(_torch, name)}
_IDS = {dtype: id for id, dtype in _DTYPES.items()}
_TYPES = {text: getattr(_torch, name) for _, text, name in _ALL if hasattr(_torch, name)}
_BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "u16": 2, "u32": 4,
          "u64": 8, "c64": 8, "c128": 16}
_SIZE = {dtype: _BYTES.get(id, 1) for id, dtype in _DTYPES.items()}


# ------------------------------------------------------------------------ reading

def _tensor(array, device=None):
    """A torch tensor over the memory of an Array, or a copy of it on another device."""
    dtype = _DTYPES.get(array.dtype)
    shape = list(array.shape)
    if dtype is None:
        raise _UnsupportedError(f"torch {_torch.__version__} has no type for {array.dtype}",
                                status="EUNSUPPORTED", code=-6)
    if array.dtype == "f4_e2m1":
        if not shape or shape[-1] % 2:
            raise _UnsupportedError("torch packs two f4_e2m1 into a byte: the last dimension must be even",
                                    status="EUNSUPPORTED", code=-6)
        shape[-1] //= 2
    order = list(range(len(shape)))
    if array.order == "F":
        order.reverse()
    if array.nbytes == 0:
        tensor = _torch.empty(shape, dtype=dtype, device="cpu")
    else:
        flat = _torch.frombuffer(array.raw, dtype=_torch.uint8)
        tensor = flat.view(dtype).reshape([shape[i] for i in order])
        if array.order == "F":
            tensor = tensor.permute(order)
    if device is None or device == "cpu":
        return tensor
    return tensor.to(device=_torch.device(device))


def _opened(filename, backend):
    from .compat.safetensors import SafetensorError
    if backend not in ("mmap", "pread"):
        raise SafetensorError(f'backend "{backend}" is invalid (expected one of: "mmap", "pread")')
    try:
        return _File(filename, {"access": "pread" if backend == "pread" else "auto",
                                "compat": True})
    except FileNotFoundError as error:
        if getattr(error, "http_status", None):
            raise
        import os
        text = f"No such file or directory: {os.fsdecode(filename)}"
        raise FileNotFoundError(text) from None


def _load(file, device, threads=0, progress=None):
    try:
        arrays = file.load(None, threads, _progress(progress), False)
        return {name: _tensor(array, device) for name, array in arrays.items()}
    finally:
        file.close()


class _Lent:
    """The bytes of a tensor in a mapped file, with the members of Array that _tensor() uses."""

    __slots__ = ("dtype", "shape", "order", "nbytes", "raw")

    def __init__(self, tensor, raw):
        self.dtype, self.shape, self.order = tensor.dtype, tensor.shape, tensor.order
        self.nbytes, self.raw = tensor.nbytes, raw


def _same(a, b):
    return (a.st_dev, a.st_ino, a.st_size, a.st_mtime_ns) == (b.st_dev, b.st_ino, b.st_size,
                                                              b.st_mtime_ns)


def _load_mapped(filename, backend):
    """Tensors over a private mapping of the file: writing to them does not change the file."""
    import mmap
    import os
    if isinstance(filename, int) or _tenfold.is_url(filename) or not os.path.isfile(filename):
        return _load(_opened(filename, backend), "cpu")
    before = os.stat(filename)
    with _opened(filename, backend) as file, open(filename, "rb") as opened:
        if not _same(before, os.fstat(opened.fileno())):
            from ._errors import ChangedError
            raise ChangedError("the file was replaced while it was opened", status="ECHANGED",
                               code=-15, path=file.path)
        whole = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY))
        result, others = dict.fromkeys(file.placed()), []
        for name in result:
            tensor = file[name]
            _, at, n, encoding = tensor.location or (None, 0, 0, None)
            width = _BYTES.get(tensor.dtype, 1)
            if encoding == "raw" and not file.shards and tensor.layout == "dense" and \
                    n == tensor.nbytes and at % width == 0:
                result[name] = _tensor(_Lent(tensor, whole[at:at + n]))
            else:
                others.append(name)  # compressed, unaligned, or in another file
        result.update((name, _tensor(array))
                      for name, array in file.load(others, 0, None, False).items())
        return result


def load_file(filename, device="cpu", *, backend="mmap", threads=0, progress=None, names=None,
              slices=None, dtype=None, each=False, mmap=False):
    """The tensors of a file of any format.

    `mmap`: on the CPU, tensors are in a private mapping of the file where possible, as in safetensors.
    Bytes are read at their first use, and writing to the tensors does not change the file. The file
    must not be truncated or overwritten while these tensors exist.

    On a GPU: `names` selects tensors, `slices` is {name: key between brackets}, `dtype` ("bf16") casts
    and dequantizes on the GPU, and `each` allocates memory for each tensor instead of slabs."""
    from .compat.safetensors import _device
    if _on_gpu(device):
        from . import _device as gpu
        with _opened(filename, backend) as file:
            return gpu.load(file, device, _DTYPES, names=names, slices=slices, dtype=dtype,
                            threads=threads, each=each)
    if names is not None or slices or dtype or each:
        raise ValueError("the arguments names, slices, dtype and each need a GPU; on the CPU, use tenfold.open()")
    if mmap and str(device) == "cpu":
        return _load_mapped(filename, backend)
    return _load(_opened(filename, backend), _device(device), threads, progress)


def _on_gpu(device):
    return str(device) == "host" or str(device).split(":")[0] == "cuda" or \
        isinstance(device, int) and not isinstance(device, bool)


def load_into(filename, tensors, *, slices=None, threads=0):
    """Reads tensors of a file into existing tensors: {name: tensor}, all on one GPU or all on the
    CPU. Values are cast to the types of these."""
    from . import _device as gpu
    with _opened(filename, "pread") as file:
        gpu.load_into(file, tensors, _DTYPES, slices=slices, threads=threads)


def iterate(filenames, device="cuda", *, slices=None, dtype=None, ahead=2 << 30, threads=0):
    """Yields (name, tensor) of files in order; each tensor has memory of its own. Meanwhile the
    next tensors are read, at most about `ahead` bytes."""
    from . import _device as gpu
    names = [filenames] if isinstance(filenames, str) or hasattr(filenames, "__fspath__") \
        else list(filenames)
    files = [_opened(name, "pread") for name in names]
    try:
        yield from gpu.iterate(files, device, _DTYPES, slices=slices, dtype=dtype, ahead=ahead,
                               threads=threads)
    finally:
        for file in files:
            file.close()


def load(data):
    """The tensors of a file in memory."""
    return _load(_File(data, {"content": True, "compat": True}), "cpu")


def safe_open(filename, framework="pt", device="cpu", *, backend="mmap"):
    """safetensors.safe_open, for torch by default."""
    from .compat.safetensors import safe_open as make
    return make(filename, framework, device, backend=backend)


# ------------------------------------------------------------------------- memory

def storage_ptr(tensor):
    """The address of a tensor's storage; 0: none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except AttributeError:
        pass
    try:
        return tensor.storage().data_ptr()
    except NotImplementedError:
        return 0


def storage_size(tensor):
    """The number of bytes of a tensor's storage."""
    try:
        return tensor.untyped_storage().nbytes()
    except AttributeError:
        pass
    try:
        return tensor.storage().size() * _SIZE[tensor.dtype]
    except NotImplementedError:
        return tensor.nelement() * _SIZE[tensor.dtype]


def _end_ptr(tensor):
    """The address after the last byte of a tensor, which may have gaps."""
    if tensor.nelement() == 0:
        return tensor.data_ptr()
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr() + (last + 1) * _SIZE[tensor.dtype]


def _find_shared_tensors(state_dict):
    """A list of sets of names; the tensors of a set overlap in memory."""
    storages = {}
    for name, tensor in state_dict.items():
        if tensor.device.type == "meta" or not storage_ptr(tensor) or not storage_size(tensor):
            continue
        key = (tensor.device, storage_ptr(tensor), storage_size(tensor))
        storages.setdefault(key, []).append(name)
    result = []
    for names in storages.values():
        end = None
        for name in sorted(names, key=lambda n: (state_dict[n].data_ptr(), n)):
            start, stop = state_dict[name].data_ptr(), _end_ptr(state_dict[name])
            if end is None or start >= end:
                result.append({name})
            else:
                result[-1].add(name)
            end = stop if end is None else max(end, stop)
    return result


def _is_complete(tensor):
    """Does the tensor cover its storage completely?"""
    return tensor.data_ptr() == storage_ptr(tensor) and \
        tensor.nelement() * _SIZE[tensor.dtype] == storage_size(tensor)


def _remove_duplicate_names(state_dict, *, preferred_names=None, discard_names=None):
    """The names to leave out: {kept name: [other names of the same memory]}."""
    preferred, discarded = set(preferred_names or ()), set(discard_names or ())
    removed = {}
    for shared in _find_shared_tensors(state_dict):
        whole = {name for name in shared if _is_complete(state_dict[name])}
        if not whole:
            raise RuntimeError(
                f"none of {sorted(shared)} covers its storage completely, so no name can stand for "
                "all: saving would store more memory than the model uses. Clone these tensors first.")
        kept = min(whole & preferred or whole - discarded or whole)
        others = sorted(shared - {kept})
        if others:
            removed[kept] = others
    return removed


# ------------------------------------------------------------------------- saving

def _checked(tensors):
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, _torch.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received "
                             f"{type(tensor)}")
    sparse = [name for name, tensor in tensors.items() if tensor.layout != _torch.strided]
    if sparse:  # worded as in safetensors, since programs compare it
        raise ValueError(f"You are trying to save a sparse tensors: `{sparse}` which this library "
                         "does not support. You can make it a dense tensor before saving with "
                         "`.to_dense()` but be aware this might make a much larger file than needed.")
    shared = [names for names in _find_shared_tensors(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(f"Some tensors share memory: {shared}. A file would hold them twice, and "
                           "they would not share memory after loading. Use save_model(), which "
                           "keeps one name of each, or clone them.")


def _items(tensors, format):
    """Items for the extension, and the CPU tensors that must stay alive until the save has
    ended."""
    _checked(tensors)
    items, kept = [], []
    for name, tensor in tensors.items():
        if format == "safetensors":
            _check_name(name)
        if not tensor.is_contiguous():
            raise ValueError(f"Key `{name}` is not contiguous: call .contiguous() before saving.")
        if tensor.dtype not in _IDS or \
                tensor.dtype == _torch.complex128 and format == "safetensors":
            raise _UnsupportedError(f'Unknown dtype "{tensor.dtype}" of {name!r}',
                                    status="EUNSUPPORTED", code=-6)
        tensor = tensor.detach()
        if tensor.device.type != "cpu":
            tensor = tensor.to("cpu")
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        kept.append(tensor)
        id, shape = _IDS[tensor.dtype], list(tensor.shape)
        if id == "f4_e2m1" and shape:
            shape[-1] *= 2
        nbytes = tensor.nelement() * _SIZE[tensor.dtype]
        address = tensor.data_ptr() if nbytes else 0
        items.append((name, (id, _tenfold.borrow(address, nbytes), shape)))
    return items, kept


def _save(tensors, path, metadata, format, sync=True, progress=None):
    items, kept = _items(tensors, format)
    how = {**_writing(metadata, format), "sync": sync, "progress": _progress(progress)}
    result = _tenfold.save(items, path, how)
    del kept
    return result


def save(tensors, metadata=None, *, format="safetensors"):
    """The bytes of a file with these tensors."""
    return _save(tensors, None, metadata, format)[1]


def save_file(tensors, filename, metadata=None, *, format="safetensors", sync=True, progress=None):
    """Saves tensors to a file atomically: it is complete under its name, or does not exist."""
    _save(tensors, filename, metadata, format, sync, progress)


def save_model(model, filename, metadata=None, force_contiguous=True):
    """Saves a module. If several names share memory, one is kept, and the metadata name it."""
    state = model.state_dict()
    metadata = dict(metadata) if metadata is not None else None
    for kept, others in _remove_duplicate_names(state).items():
        metadata = {} if metadata is None else metadata
        for name in others:
            metadata.setdefault(name, kept)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    try:
        save_file(state, filename, metadata)
    except ValueError as error:
        if isinstance(error, _UnsupportedError):
            raise
        raise ValueError(f"{error} Or use save_model(..., force_contiguous=True).") from None


def load_model(model, filename, strict=True, device="cpu", *, backend="mmap"):
    """Loads a file into a module: (missing names, names that were not used)."""
    tensors = load_file(filename, device, backend=backend)
    removed = _remove_duplicate_names(model.state_dict(), preferred_names=tensors)
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    missing, unexpected = set(missing), list(unexpected)
    for others in removed.values():
        for name in others:
            if name in missing:
                missing.remove(name)
            else:
                unexpected.append(name)
    if strict and (missing or unexpected):
        text = f"Error(s) in loading state_dict for {type(model).__name__}:"
        for names, what in ((missing, "Missing"), (unexpected, "Unexpected")):
            if names:
                quoted = ", ".join(f'"{name}"' for name in sorted(names))
                text += f"\n    {what} key(s) in state_dict: {quoted}"
        raise RuntimeError(text)
    return missing, unexpected


# --------------------------------------------------------------------- many ranks

def load_sharded(filename, model_or_specs=None, rank=None, world=None, dim_map=None, *, device=None,
                 dtype=None, broadcast=False, threads=0, exact=True, strict=True, report=None):
    """Loads the pieces of this rank from a file of any format: {name: tensor}. There is no
    communication without `broadcast`.

    model_or_specs  None: all tensors of the file; names; or a module or {name: tensor}, whose
                    tensors are filled: DTensors define their pieces, others are cut by dim_map
    rank, world     of this process; None: by torchrun, Slurm or MPI (tenfold.run)
    dim_map         the dimension along which a tensor is cut, as in torch.chunk() and DTensor:
                    {pattern of names: dimension, or None (not cut), or "flat" (the elements in
                    C order: FSDP)}, where the first match is used; or a function of name and
                    shape; or one value for all tensors. Tensors without a match are not cut.
    device          None: the GPU of LOCAL_RANK if torch has one, otherwise the CPU
    dtype           of floats in new tensors; None: that of the file
    broadcast       True, or a process group: the ranks of a machine (or of the group) read tensors
                    that are not cut in equal pieces, and exchange these
    exact           False: short gaps may be read as well, which is faster on some disks
    strict          names of the model that the file does not have are an error
    report          a dict, which gets the numbers of bytes wanted and read
    """
    from ._sharded import load
    return load(filename, model_or_specs, rank, world, dim_map, device=device, dtype=dtype,
                broadcast=broadcast, threads=threads, exact=exact, strict=strict, report=report)
