# SPDX-License-Identifier: MIT
"""Loads tensors of any file directly to a GPU, into memory of torch.

torch allocates slabs of up to 1 GiB, and each tensor is a view of a slab: torch counts its memory and
frees it with the last of its tensors. Reading continues while the views are made.
"""
import torch as _torch

from . import _tenfold

_SLAB = 1 << 30
_ALIGN = 256
_devices: dict[str, object] = {}


def _ordinal(device):
    device = _torch.device(device)
    if device.type != "cuda":
        raise ValueError(f"{device} is not a GPU")
    return _torch.cuda.current_device() if device.index is None else device.index


def opened(device):
    """The library's device for a torch device; opened once in a process."""
    if str(device) == "host":  # CPU memory by the same code, for tests
        name = "host"
    else:
        _torch.cuda.init()
        uuid = getattr(_torch.cuda.get_device_properties(_ordinal(device)), "uuid", None)
        # CUDA_VISIBLE_DEVICES may change torch's numbers of devices; the UUID is unambiguous
        name = f"cuda:GPU-{uuid}" if uuid else f"cuda:{_ordinal(device)}"
    if name not in _devices:
        _devices[name] = _tenfold.device_open(name)
    return _devices[name]


def _options(device, threads, block=0, exact=False):
    """Options of a load. Its copies wait for torch's stream, which may still use the memory."""
    how = {"threads": threads, "block": block, "exact": exact}
    if str(device) != "host":
        how.update(after=_torch.cuda.current_stream(device).cuda_stream, has_after=True)
    return how


class _Stopping:
    """Loads that end with the block: afterwards they do not read files or write memory any more."""

    def __init__(self, *loads):
        self.loads = list(loads)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for load in self.loads:
            _tenfold.device_stop(load)


class Plan:
    """The tensors to load: [(name, tensor, key, dtype id, shape, bytes, order, as)]."""

    def __init__(self, dtypes):
        self.dtypes, self.items = dtypes, []

    def add(self, name, tensor, key=None, dtype=None):
        if key is None and dtype is None:
            self.items.append((name, tensor, None, tensor.dtype, tensor.shape, tensor.nbytes,
                               tensor.order, None))
        else:
            form = _tenfold.device_form(tensor, key, dtype)
            self.items.append((name, tensor, key, *form, "C" if key is not None else tensor.order,
                               dtype))
        if self.items[-1][3] not in self.dtypes:
            raise _unsupported(self.items[-1][3])

    def view(self, flat, item):
        """A tensor as a view of its bytes."""
        dtype, shape = self.dtypes[item[3]], list(item[4])
        if item[3] == "f4_e2m1":
            shape[-1] //= 2
        if item[6] == "F" and len(shape) > 1:
            return flat.view(dtype).view(shape[::-1]).permute(*range(len(shape) - 1, -1, -1))
        return flat.view(dtype).view(shape)

    def slabs(self):
        """[[bytes of the slab, [(item, place)]]]"""
        result, room = [], 0
        for item in self.items:
            n = item[5]
            at = (result[-1][0] + _ALIGN - 1) // _ALIGN * _ALIGN if result else 0
            if not result or at + n > max(room, _SLAB):
                result.append([0, []])
                at, room = 0, max(n, 1)
            result[-1][1].append((item, at))
            result[-1][0] = at + n
        return result

    def start(self, device, threads=0, each=False, block=0):
        """Starts to read: (load, [(item, slab, offset in the slab)])."""
        torch_device = "cpu" if str(device) == "host" else _torch.device(device)
        requests, views = [], []
        groups = [[item[5], [(item, 0)]] for item in self.items] if each else self.slabs()
        for size, members in groups:
            slab = _torch.empty(max(size, 1), dtype=_torch.uint8, device=torch_device)
            base = slab.data_ptr()
            for item, at in members:
                address = base + at if item[5] else 0
                requests.append((item[1], item[2], item[7], None, address, item[5]))
                views.append((item, slab, at))
        load = _tenfold.device_start(opened(device), requests, _options(device, threads, block),
                                     views)
        return load, views

    def tensors(self, views):
        return {item[0]: self.view(slab[at:at + item[5]], item) for item, slab, at in views}


def _unsupported(dtype):
    from ._errors import UnsupportedError
    return UnsupportedError(f"torch {_torch.__version__} has no type for {dtype}",
                            status="EUNSUPPORTED", code=-6)


def _contiguous(shape):
    stride, step = [], 1
    for extent in reversed(shape):
        stride.append(step)
        step *= extent
    return stride[::-1]


def _load_all(file, device, dtypes, threads, each):
    """{name: tensor} of a file whose tensors are all dense; None if one is not. The library places
    them in slabs that torch allocates, and reads while the tensors are made."""
    torch_device = "cpu" if str(device) == "host" else _torch.device(device)
    slabs, typed, strides, result = [], {}, {}, {}

    def allocate(n):
        slabs.append(_torch.empty((n + _ALIGN - 1) // _ALIGN * _ALIGN, dtype=_torch.uint8,
                                  device=torch_device))
        return slabs[-1].data_ptr()

    options = _options(device, threads)
    options["each"] = each
    started = _tenfold.device_start_file(opened(device), file, dtypes, allocate, options,
                                         (file, slabs))
    if started is None:
        return None
    running, placed = started
    plan = Plan(dtypes)
    with _Stopping(running):
        for name, id, shape, n, order, slab, at in placed:
            if n == 0 or order == "F" or id == "f4_e2m1":
                flat = slabs[slab][at:at + n] if n else _torch.empty(0, dtype=_torch.uint8,
                                                                     device=torch_device)
                result[name] = plan.view(flat, (name, None, None, id, shape, n, order, None))
                continue
            whole = typed.get((slab, id))
            if whole is None:
                flat = slabs[slab].view(dtypes[id])
                whole = typed[slab, id] = (flat.as_strided, flat.element_size())
            stride = strides.get(shape)
            if stride is None:
                stride = strides[shape] = _contiguous(shape)
            result[name] = whole[0](shape, stride, at // whole[1])
        _tenfold.device_wait(running, None)
    return result


def load(file, device, dtypes, *, names=None, slices=None, dtype=None, threads=0, each=False):
    """Loads tensors of an open file to the device: {name: tensor}."""
    if names is None and not slices and dtype is None:
        tensors = _load_all(file, device, dtypes, threads, each)
        if tensors is not None:
            return tensors
    plan = Plan(dtypes)
    for name in file if names is None else names:
        plan.add(name, file[name], (slices or {}).get(name), dtype)
    running, views = plan.start(device, threads, each)
    with _Stopping(running):
        tensors = plan.tensors(views)
        _tenfold.device_wait(running, None)
    return tensors


def load_into(file, tensors, dtypes, *, slices=None, threads=0):
    """Reads into existing tensors of one GPU: {name: tensor}."""
    requests, device = [], None
    for name, target in tensors.items():
        key = (slices or {}).get(name)
        place = "host" if target.device.type == "cpu" else target.device
        device = place if device is None else device
        if place != device:
            raise ValueError("load_into() needs tensors of a single device")
        if not target.is_contiguous():
            raise ValueError(f"{name!r}: the tensor is not contiguous")
        source = file[name]
        wanted = next((id for id, t in dtypes.items() if t == target.dtype), None)
        change = wanted if wanted != source.dtype else None
        _, shape, n = _tenfold.device_form(source, key, change)
        if source.order == "F" and len(shape) > 1 and key is None:
            key = ...
        if tuple(shape) != tuple(target.shape):
            raise ValueError(f"{name!r} has the shape {list(shape)} in the file, but its tensor has "
                             f"{list(target.shape)}")
        requests.append((source, key, change, None, target.data_ptr() if n else 0, n))
    if requests:
        running = _tenfold.device_start(opened(device), requests, _options(device, threads),
                                        list(tensors.values()))
        with _Stopping(running):
            _tenfold.device_wait(running, None)


def iterate(files, device, dtypes, *, slices=None, dtype=None, ahead=2 << 30, threads=0):
    """Yields (name, tensor) in the order of the files, with at most about `ahead` bytes read ahead.
    The caller owns each tensor."""
    with _Stopping() as stopping:
        before = None
        for batch in _batches(files, dtypes, slices, dtype, ahead // 2):
            running, views = batch.start(device, threads, True)
            stopping.loads = stopping.loads[-1:] + [running]
            if before is not None:
                yield from _arriving(*before)
            before = batch, running, views
        if before is not None:
            yield from _arriving(*before)


def _batches(files, dtypes, slices, dtype, most):
    """Plans of at least `most` bytes each, except the last one."""
    batch, size = Plan(dtypes), 0
    for file in files:
        for name in file:
            batch.add(name, file[name], (slices or {}).get(name), dtype)
            size += batch.items[-1][5]
            if size >= most:
                yield batch
                batch, size = Plan(dtypes), 0
    if batch.items:
        yield batch


def _arriving(plan, running, views):
    for i, (item, slab, at) in enumerate(views):
        _tenfold.device_wait(running, i)
        yield item[0], plan.view(slab[at:at + item[5]], item)


# --------------------------------------------------- pieces into existing tensors

# Layouts of encoded numbers, which are loaded as floats.
_QUANTIZED = ("gguf.", "mx/", "quant_group/", "quantized_group", "pq/", "torch.per_")
_BOUNCE = 256 << 20


def loadable(tensor, dtypes):
    """(torch's shape, torch's type) of a tensor of a file; None if torch does not support it."""
    shape = list(tensor.shape)
    if tensor.layout.startswith(_QUANTIZED):
        return shape, _torch.float32
    if tensor.layout != "dense" or tensor.dtype not in dtypes:
        return None
    if tensor.dtype == "f4_e2m1":
        if not shape or shape[-1] % 2:
            return None
        shape[-1] //= 2
    return shape, dtypes[tensor.dtype]


class Filling:
    """Reads pieces of tensors of files into existing tensors. The pieces are collected, and one
    load for each device reads them. If the target of a piece is not contiguous, or the library
    cannot convert to its type, the piece is read into a buffer first; such buffers are limited in
    size.

    cast   False: the types must be the same. Otherwise floats and quantized numbers are cast to the
           float type of the tensor; integers are only cast to types that can hold all their values.
    exact  read only the bytes of the pieces
    """

    def __init__(self, dtypes, threads=0, exact=True, cast=True):
        self.dtypes, self.threads, self.exact, self.cast = dtypes, threads, exact, cast
        self.ids = {dtype: id for id, dtype in dtypes.items()}
        self.pending, self.bounced = {}, 0
        self.report = {"bytes": 0, "bytes_read": 0}

    def _type(self, name, source, target):
        """(type to which the library converts or None, type of the result)"""
        stored = loadable(source, self.dtypes)
        if stored is None:
            raise _unsupported(f"{source.dtype or source.layout} of {name!r}")
        plain, wanted = source.layout == "dense", target.dtype
        if plain and stored[1] == wanted:
            return None, wanted
        floats = wanted.is_floating_point and (not plain or stored[1].is_floating_point)
        widened = plain and not wanted.is_floating_point and not wanted.is_complex and \
            stored[1] not in (_torch.uint16, _torch.uint32, _torch.uint64) and \
            not stored[1].is_floating_point and _torch.promote_types(stored[1], wanted) == wanted
        if not self.cast or not (floats or widened):
            raise TypeError(f"{name!r} is {source.dtype if plain else source.layout} in the file, but "
                            f"its tensor is {wanted}")
        if self.ids.get(wanted) in ("f32", "f16", "bf16") and floats:
            return self.ids[wanted], wanted
        return (None, stored[1]) if plain else ("f32", _torch.float32)

    def add(self, name, source, key, target, done=None):
        """key: a slice for each dimension of the shape in torch; done: called after reading."""
        made, dtype = self._type(name, source, target)
        shape = [k.stop - k.start for k in key]
        if list(target.shape) != shape:
            raise ValueError(f"{name!r}: the piece has the shape {shape}, but its tensor has "
                             f"{list(target.shape)}")
        if 0 in shape:
            return done() if done is not None else None
        if source.dtype == "f4_e2m1" and source.layout == "dense" and key:
            key = (*key[:-1], slice(2 * key[-1].start, 2 * key[-1].stop))
        whole = source.order == "C" and all(k.start == 0 and k.stop == n
                                            for k, n in zip(key, source.shape))
        memory = target
        if not target.is_contiguous() or target.dtype != dtype or target.device.type not in \
                ("cpu", "cuda"):
            place = target.device if target.device.type in ("cpu", "cuda") else "cpu"
            memory = _torch.empty(shape, dtype=dtype, device=place)
            self.bounced += memory.nbytes
        request = (source, None if whole else key, made, None, memory.data_ptr(), memory.nbytes)
        place = "host" if memory.device.type == "cpu" else memory.device
        self.pending.setdefault(place, []).append((request, memory, target, done))
        if self.bounced >= _BOUNCE:
            self.run()
        return None

    def run(self):
        """Reads the pieces that were added since the last call."""
        pending, self.pending, self.bounced = self.pending, {}, 0
        for device, items in pending.items():
            running = _tenfold.device_start(
                opened(device), [item[0] for item in items],
                _options(device, self.threads, exact=self.exact), [item[1] for item in items])
            with _Stopping(running):
                _tenfold.device_wait(running, None)
            report = _tenfold.device_report(running)
            for key in self.report:
                self.report[key] += report[key]
            for _, memory, target, done in items:
                if memory is not target:
                    target.copy_(memory)
                if done is not None:
                    done()
