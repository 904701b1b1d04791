# SPDX-License-Identifier: MIT
"""tenfold.torch.load_sharded(): the pieces of a rank, and their targets."""
from fnmatch import fnmatchcase
from math import prod

import torch as _torch

from . import _device
from ._errors import NotFoundError
from ._slices import boxes, chunk, shard
from .run import place as _place
from .torch import _DTYPES, _opened


def _rule(dim_map):
    """A function (name, shape) → dimension, None or "flat"."""
    if callable(dim_map):
        return dim_map
    if not isinstance(dim_map, dict):
        return lambda name, shape: dim_map if shape else None

    def find(name, shape):
        return next((dim for pattern, dim in dim_map.items() if fnmatchcase(name, pattern)), None)
    return find


def _dtensor(tensor):
    """Is it a DTensor, whose pieces are on several ranks?"""
    return hasattr(tensor, "to_local") and hasattr(tensor, "placements")


def _local_piece(tensor):
    """(tensor of this rank, key) of a DTensor."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
    sizes, offsets = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh,
                                                           tensor.placements)
    local = tensor.to_local()
    return local, tuple(slice(at, at + n) for at, n in zip(offsets, sizes))


class _Loader:
    def __init__(self, file, rank, world, rule, device, dtype, filling):
        self.file, self.rank, self.world, self.rule = file, rank, world, rule
        self.device, self.dtype, self.filling = device, dtype, filling

    def _empty(self, name, shape, stored):
        """Memory for a piece."""
        floats = stored.is_floating_point
        return _torch.empty(shape, dtype=self.dtype if self.dtype is not None and floats else stored,
                            device=self.device)

    def _form(self, name):
        source = self.file[name]
        form = _device.loadable(source, _DTYPES)
        if form is None:
            raise _device._unsupported(f"{source.dtype or source.layout} of {name!r}")
        return source, *form

    def flat(self, name, source, shape, start, stop, target):
        """Reads elements [start, stop) in C order into a tensor of one dimension."""
        for at, key in boxes(shape, start, stop):
            sizes = [k.stop - k.start for k in key]
            self.filling.add(name, source, key, target[at:at + prod(sizes)].view(sizes))

    def add(self, name, target):
        """Adds one tensor. `target` is filled; if it is None, a new tensor is made."""
        source, shape, stored = self._form(name)
        if target is not None and _dtensor(target):
            local, key = _local_piece(target)
            if tuple(target.shape) != tuple(shape):
                raise ValueError(f"{name!r} has the shape {list(shape)} in the file, but in the model "
                                 f"{list(target.shape)}")
            self.filling.add(name, source, key, local.detach())
            return target
        dim = self.rule(name, tuple(shape))
        if dim == "flat":
            start, stop = chunk(prod(shape), self.world, self.rank)
            if target is None:
                target = self._empty(name, [stop - start], stored)
            if not target.is_contiguous() or target.numel() != stop - start:
                raise ValueError(f"{name!r}: this rank has {stop - start} elements, but the tensor has "
                                 f"{target.numel()} or is not contiguous")
            self.flat(name, source, shape, start, stop, target.detach().view(-1))
            return target
        key = shard(shape, dim, self.world, self.rank)
        if target is None:
            target = self._empty(name, [k.stop - k.start for k in key], stored)
        self.filling.add(name, source, key, target.detach())
        return target

    def share(self, name, target, group):
        """Adds a tensor that all ranks of a group need completely: each rank reads a piece. Returns
        the tensor, and the function that exchanges the pieces."""
        import torch.distributed as dist
        source, shape, stored = self._form(name)
        n, rank, n_all = dist.get_world_size(group), dist.get_rank(group), prod(shape)
        size = -(-n_all // n)
        result = self._empty(name, shape, stored) if target is None else target
        if list(result.shape) != list(shape):
            raise ValueError(f"{name!r} has the shape {list(shape)} in the file, but in the model "
                             f"{list(result.shape)}")
        mine = _torch.zeros(size, dtype=result.dtype, device=result.device)
        start, stop = chunk(n_all, n, rank)
        self.flat(name, source, shape, start, stop, mine[:stop - start])

        def exchange():
            bits = _torch.uint8  # exchange bytes, since not every backend supports every type
            all_of_it = _torch.empty(size * n, dtype=result.dtype, device=result.device)
            dist.all_gather_into_tensor(all_of_it.view(bits), mine.view(bits), group=group)
            result.detach().copy_(all_of_it[:n_all].view(shape))
        return result, exchange


def _group(broadcast, at):
    """The group of the ranks of one machine."""
    import torch.distributed as dist
    if broadcast is not True:
        return broadcast
    if not dist.is_initialized():
        raise ValueError("broadcast needs torch.distributed.init_process_group()")
    if at.local_world in (1, dist.get_world_size()):
        return dist.group.WORLD
    return dist.new_subgroups(group_size=at.local_world)[0]


def _wanted(file, what, strict):
    """{name: tensor to fill, or None} for the names that the file has"""
    if what is None:
        return {name: None for name in file}
    if isinstance(what, str):
        what = [what]
    if isinstance(what, _torch.nn.Module):
        what = what.state_dict()
    wanted = dict(what) if hasattr(what, "items") else {name: None for name in what}
    missing = [name for name in wanted if name not in file]
    if missing and strict:
        raise NotFoundError(f"the file has no {', '.join(map(repr, missing[:5]))}"
                            f"{' …' if len(missing) > 5 else ''}", status="ENOTFOUND", code=-8)
    return {name: tensor for name, tensor in wanted.items() if name in file}


def load(filename, what, rank, world, dim_map, *, device, dtype, broadcast, threads, exact, strict,
         report):
    at = _place()
    if (rank is None) != (world is None):
        raise ValueError("rank and world must be given together")
    rank, world = (at.rank, at.world) if rank is None else (rank, world)
    if not 0 <= rank < world:
        raise ValueError(f"rank {rank} is out of range for a world of {world}")
    if device is None:
        device = f"cuda:{at.local_rank}" if _torch.cuda.is_available() else "cpu"
    if isinstance(dtype, str):
        dtype = getattr(_torch, dtype) if hasattr(_torch, dtype) else _DTYPES[dtype]
    rule, exchanges, result = _rule(dim_map), [], {}
    filling = _device.Filling(_DTYPES, threads, exact)
    with _opened(filename, "pread") as file:
        loader = _Loader(file, rank, world, rule, device, dtype, filling)
        group = _group(broadcast, at) if broadcast else None
        for name, target in _wanted(file, what, strict).items():
            shared = group is not None and not (target is not None and _dtensor(target)) and \
                rule(name, file[name].shape) is None and len(file[name].shape) > 0
            if shared:
                result[name], exchange = loader.share(name, target, group)
                exchanges.append(exchange)
            else:
                result[name] = loader.add(name, target)
        filling.run()
    for exchange in exchanges:
        exchange()
    if report is not None:
        report.update(filling.report)
    return result
