# SPDX-License-Identifier: MIT
"""torch.distributed.checkpoint for files of any format.

    import torch.distributed.checkpoint as dcp
    import tenfold.dcp
    dcp.load(state, storage_reader=tenfold.dcp.Reader("model.safetensors"))
    dcp.save(state, storage_writer=tenfold.dcp.Writer("out"))

Each rank reads only the bytes of its own pieces, directly into their memory. Every rank reads the
headers.
"""
import io as _io
import json as _json
import os as _os
from dataclasses import dataclass as _dataclass, replace as _replace
from math import prod as _prod

from ._plain import need as _need

_torch = _need("torch", __name__, "torch")
try:
    from torch.distributed.checkpoint.metadata import (
        BytesStorageMetadata, ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta,
        TensorProperties, TensorStorageMetadata)
    from torch.distributed.checkpoint.planner import LoadItemType, WriteItemType
    from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
except ImportError as _error:
    raise ImportError(f"tenfold.dcp needs torch 2.3 or later; this is {_torch.__version__}") from \
        _error
from torch.futures import Future

from . import _tenfold, open as _open
from ._device import Filling as _Filling, loadable as _loadable
from ._errors import FormatError, InvalidError
from .torch import _DTYPES, _IDS, _SIZE

__all__ = ["Reader", "Writer"]

_SHARDING = "DCP_SHARDING_INFO"  # of torch: {name: {"saved_offsets": [...]}}
_BYTES = "TENFOLD_DCP_BYTES"     # of Tenfold: [name] of values that are not tensors
_SAVE = "TENFOLD_DCP_SAVE"       # of Tenfold: an id shared by all files of one save
_INDEX = "model.safetensors.index.json"
_PIECES = "tenfold.dcp.json"     # of Tenfold: {"files": [...]} if there is no index


def _finished(value):
    future = Future()
    future.set_result(value)
    return future


def _local(path):
    """A local path as a str; None for a URL and for other sources of open()."""
    if not isinstance(path, (str, bytes, _os.PathLike)):
        return None
    text = _os.fsdecode(path)
    return None if "://" in text else text


# ------------------------------------------------------------------------ reading

@_dataclass
class _Chunk:
    """A tensor of a file, and its place in the tensor of the checkpoint."""
    source: object
    offsets: tuple
    sizes: tuple


def _metadata_of(file):
    """The metadata of a safetensors file."""
    found = file.attrs.get("safetensors.metadata")
    return found if isinstance(found, dict) else {}


def _sharding(file):
    """The places of the pieces in a file; {} if the file has complete tensors."""
    text = _metadata_of(file).get(_SHARDING)
    if not text:
        return {}
    try:
        places = _json.loads(text)
    except ValueError:
        places = None
    if not isinstance(places, dict):
        raise FormatError(f"the {_SHARDING} of {file.path} is not a JSON object", status="EFORMAT",
                          code=-4, path=file.path)
    return places


def _offsets(file, name, sharding, rank):
    if name not in sharding:
        return (0,) * rank
    offsets = sharding[name].get("saved_offsets") if isinstance(sharding[name], dict) else None
    if not isinstance(offsets, list) or len(offsets) != rank or \
            not all(type(n) is int and 0 <= n < 1 << 62 for n in offsets):
        raise FormatError(f"the saved_offsets of {name!r} are not {rank} offsets", status="EFORMAT",
                          code=-4, path=file.path)
    return tuple(offsets)


def _listed(directory):
    """The files of the last finished save, by the list that it wrote; None if there is no list."""
    path = _os.path.join(directory, _PIECES)
    try:
        with open(path, encoding="utf-8") as f:
            listed = _json.load(f)
        names = listed["files"]
        if not names or any(not isinstance(name, str) or _os.path.basename(name) != name or
                            not name.endswith(".safetensors") for name in names):
            raise ValueError
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError):
        raise FormatError("this is not a list of the files of a save", status="EFORMAT", code=-4,
                          path=path) from None
    return names


def _save_of(files):
    """The id of the save that wrote all files; None if they have none."""
    ids = {_metadata_of(file).get(_SAVE) for file in files}
    if len(ids) > 1:
        raise FormatError("the files are from different saves: a save was not finished, or the "
                          "directory has files of another checkpoint", status="EFORMAT", code=-4,
                          path=files[0].path)
    return ids.pop() if ids else None


class Reader(StorageReader):
    """Reads a checkpoint for torch.distributed.checkpoint.load() from any source of tenfold.open():
    a file of any format, a directory, an index, a URL. It also reads directories of torch's
    HuggingFace writer and of Writer, whose files hold pieces of tensors.

    threads   threads of this process; 0: the library decides
    cast      False: the types of the state dict must be those of the checkpoint. Otherwise floats
              are cast to the types of the state dict, and quantized tensors are dequantized
    exact     False: also reads short gaps between pieces, which is faster on disks that are slow
              at short reads
    The other keywords are those of tenfold.open().

    report    the reads so far: {"bytes": bytes wanted, "bytes_read": bytes read}
    left_out  {name: reason} of tensors that torch does not support
    """

    def __init__(self, path, *, threads=0, cast=True, exact=True, **opening):
        super().__init__()
        self.path, self.threads, self.cast, self.exact = path, threads, cast, exact
        self.opening = opening
        self._files, self._chunks, self._bytes, self._save = [], {}, {}, None
        self.left_out = {}
        self.report = {"bytes": 0, "bytes_read": 0}

    # ------------------------------------------------------------------ contents

    def _shards(self):
        """The files of a directory without an index; None for a source that open() opens as one."""
        directory = _local(self.path)
        if directory is None or not _os.path.isdir(directory):
            return None
        listed = _listed(directory)
        if listed:
            return [_os.path.join(directory, name) for name in listed]
        names = sorted(name for name in _os.listdir(directory) if not name.startswith("."))
        files = [name for name in names if name.endswith(".safetensors")]
        if not files or any(name.endswith(".index.json") for name in names):
            return None
        return [_os.path.join(directory, name) for name in files]

    def _open(self):
        self.close()
        for path in self._shards() or [self.path]:
            self._files.append(_open(path, **self.opening))

    def close(self):
        """Closes the files; read_metadata() opens them again."""
        for file in self._files:
            file.close()
        self._files, self._chunks, self._bytes, self.left_out = [], {}, {}, {}

    def _add(self, file, name, sharding, result):
        tensor = file[name]
        form = _loadable(tensor, _DTYPES)
        if form is None:
            self.left_out[name] = f"torch does not support tensors of {tensor.dtype or tensor.layout}"
            return
        shape, dtype = form
        at = _offsets(file, name, sharding, len(shape))
        end = [a + n for a, n in zip(at, shape)]
        known = result.get(name)
        if known is None:
            known = result[name] = TensorStorageMetadata(
                properties=TensorProperties(dtype=dtype), size=_torch.Size(end), chunks=[])
        elif not sharding:
            raise FormatError(f"{name!r} is in two files, which do not say which pieces they have",
                              status="EFORMAT", code=-4, path=file.path)
        elif known.properties.dtype != dtype or len(known.size) != len(shape):
            raise FormatError(f"the pieces of {name!r} have different types or ranks",
                              status="EFORMAT", code=-4, path=file.path)
        index = MetadataIndex(name, at)
        if index in self._chunks:
            if self._chunks[index].sizes != tuple(shape):
                raise FormatError(f"two pieces of {name!r} begin at {list(at)}", status="EFORMAT",
                                  code=-4, path=file.path)
            return  # several ranks saved the same piece
        known.size = _torch.Size([max(a, b) for a, b in zip(known.size, end)])
        known.chunks.append(ChunkStorageMetadata(_torch.Size(at), _torch.Size(shape)))
        self._chunks[index] = _Chunk(tensor, at, tuple(shape))

    def read_metadata(self, *args, **kwargs):
        self._open()
        self._save = _save_of(self._files)
        result = {}
        for file in self._files:
            sharding = _sharding(file)
            try:
                objects = set(_json.loads(_metadata_of(file).get(_BYTES, "[]")))
            except (TypeError, ValueError):
                objects = set()
            for name in file:
                if name in objects:
                    self._bytes[name] = file[name]
                    result[name] = BytesStorageMetadata()
                else:
                    self._add(file, name, sharding, result)
        for name, known in result.items():
            if isinstance(known, TensorStorageMetadata) and len(known.chunks) > 1 and \
                    sum(_prod(c.sizes) for c in known.chunks) != _prod(known.size):
                raise FormatError(f"the {len(known.chunks)} pieces of {name!r} do not make up its "
                                  f"shape {list(known.size)}; a file is missing or belongs to "
                                  "another checkpoint",
                                  status="EFORMAT", code=-4)
        metadata = Metadata(state_dict_metadata=result, storage_data={})
        metadata.storage_meta = StorageMeta(save_id=self._save)
        return metadata

    # ------------------------------------------------------------------- reading

    def reset(self, checkpoint_id=None):
        self.close()
        if checkpoint_id is not None:
            self.path = checkpoint_id

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        if not self._files:  # another process read the metadata
            self.read_metadata()
        there = getattr(metadata.storage_meta, "save_id", None)
        if there != self._save:
            from ._errors import ChangedError
            raise ChangedError("the checkpoint was replaced while it was loaded", status="ECHANGED",
                               code=-15, path=_os.fspath(self.path) if _local(self.path) else None)

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        return plans

    def read_data(self, plan, planner):
        filling = _Filling(_DTYPES, self.threads, self.exact, self.cast)
        for item in plan.items:
            name = item.storage_index.fqn
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, _io.BytesIO(self._bytes[name].bytes()))
                continue
            chunk = self._chunks.get(item.storage_index)
            if chunk is None:
                raise InvalidError(f"the checkpoint has no piece of {name!r} at "
                                   f"{list(item.storage_index.offset or ())}", status="EINVAL",
                                   code=-10)
            target = planner.resolve_tensor(item).detach()
            key = tuple(slice(at, at + n) for at, n in zip(item.storage_offsets, item.lengths))
            filling.add(name, chunk.source, key, target,
                        lambda item=item, target=target: planner.commit_tensor(item, target))
        filling.run()
        for key, n in filling.report.items():
            self.report[key] += n
        return _finished(None)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        path = _local(checkpoint_id)
        return path is None or _os.path.exists(path)


# ------------------------------------------------------------------------ writing

@_dataclass
class _Stored:
    """The place where a rank stored an item."""
    path: str
    nbytes: int


def _pieces(tensor):
    """A function that fills views with the bytes of a tensor on another device."""
    flat = tensor.reshape(-1).view(_torch.uint8) if tensor.numel() else tensor.reshape(-1)

    def fill(offset, view):
        view[:] = flat[offset:offset + len(view)].cpu().numpy().data
    return fill


class Writer(StorageWriter):
    """Writes a checkpoint of torch.distributed.checkpoint.save() as safetensors. Each rank writes
    files of its own, under temporary names until they are complete. The files are like those of
    torch's HuggingFace writer, whose reader can read them. If every tensor is complete in one file,
    an index is written as well, so that all readers of sharded safetensors can read the directory.

    replace   True: the directory may already have a checkpoint. The new files have names of their
              own; finish() makes them the checkpoint in one step and then removes the old files.
              Until that step, the old checkpoint stays intact
    sync      False skips fsync: faster, but a power cut may lose the checkpoint
    metadata  {str: str} for each file
    """

    def __init__(self, path, *, replace=False, sync=True, metadata=None):
        super().__init__()
        self.path, self.replace, self.sync = _os.fspath(path), replace, sync
        self.metadata = dict(metadata or {})

    def reset(self, checkpoint_id=None):
        if checkpoint_id is not None:
            self.path = _os.fspath(checkpoint_id)

    def _there(self):
        """The files of checkpoints in the directory."""
        return {name for name in _os.listdir(self.path)
                if name.endswith(".safetensors") or name in (_INDEX, _PIECES)}

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        if is_coordinator:
            _os.makedirs(self.path, exist_ok=True)

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        there = self._there()
        if there and not self.replace:
            from ._errors import ExistsError
            raise ExistsError(f"{self.path} already has a checkpoint ({sorted(there)[0]}); "
                              "use replace=True to replace it", status="EEXISTS", code=-9)
        save = _os.urandom(8).hex()
        suffix = f"-{save}" if there else ""  # avoids the names of the old checkpoint
        return [_replace(plan, storage_data={"shard": f"{i:05}{suffix}", "save": save})
                for i, plan in enumerate(plans, 1)]

    def _value(self, item, planner):
        """(value for the extension, number of bytes, object to keep alive until the save has
        ended)"""
        data = planner.resolve_data(item)
        if item.type == WriteItemType.BYTE_IO:
            data = data.getvalue()
            return ("u8", data, [len(data)]), len(data), data
        tensor = data.detach()
        if tensor.layout != _torch.strided or tensor.dtype not in _IDS or \
                tensor.dtype == _torch.complex128:
            raise TypeError(f"{item.index.fqn!r}: safetensors does not support tensors of {tensor.dtype}, "
                            f"{tensor.layout}")
        tensor = tensor.contiguous()
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        id, shape, n = _IDS[tensor.dtype], list(tensor.shape), tensor.numel() * _SIZE[tensor.dtype]
        if id == "f4_e2m1" and shape:
            shape[-1] *= 2
        if n and tensor.device.type != "cpu":
            return (id, _pieces(tensor), shape), n, tensor
        return (id, _tenfold.borrow(tensor.data_ptr() if n else 0, n), shape), n, tensor

    def _write(self, path, items, planner, save):
        """Writes one file; returns the number of bytes of each item."""
        values, kept, sizes, sharding, objects = [], [], [], {}, []
        for item in items:
            name = item.index.fqn
            value, n, keep = self._value(item, planner)
            values.append((name, value))
            kept.append(keep)
            sizes.append(n)
            if item.type == WriteItemType.BYTE_IO:
                objects.append(name)
                sharding[name] = {"saved_offsets": [0]}
            else:
                offsets = item.index.offset
                if offsets is None:
                    offsets = item.tensor_data.chunk.offsets
                sharding[name] = {"saved_offsets": list(offsets)}
        metadata = {**self.metadata, "format": "pt", "DCP_VERSION": "1.0",
                    _SHARDING: _json.dumps(sharding), _SAVE: save}
        if objects:
            metadata[_BYTES] = _json.dumps(objects)
        _tenfold.save(values, path, {"format": "safetensors", "replace": True, "sync": self.sync,
                                     "attrs": {"safetensors.metadata": metadata}})
        del kept
        return sizes

    def write_data(self, plan, planner):
        files, seen, results = [], {}, []
        for item in plan.items:  # a rank with two pieces of a tensor writes two files
            k = seen[item.index.fqn] = seen.get(item.index.fqn, 0) + 1
            if k > len(files):
                files.append([])
            files[k - 1].append(item)
        for k, items in enumerate(files, 1):
            data = plan.storage_data
            name = f"shard-{data['shard']}-model-{k:05}-of-{len(files):05}.safetensors"
            sizes = self._write(_os.path.join(self.path, name), items, planner, data["save"])
            results += [WriteResult(index=item.index, size_in_bytes=n, storage_data=_Stored(name, n))
                        for item, n in zip(items, sizes)]
        return _finished(results)

    def finish(self, metadata, results):
        stored, total, whole = {}, 0, True
        files = set()
        for result in (each for results_of_rank in results for each in results_of_rank):
            whole = whole and result.index.fqn not in stored
            stored[result.index.fqn] = result.storage_data.path
            total += result.storage_data.nbytes
            files.add(result.storage_data.path)
        if whole and stored:
            self._write_json(_INDEX, {"metadata": {"total_size": total},
                                      "weight_map": dict(sorted(stored.items()))})
            files.add(_INDEX)
        elif files:
            self._write_json(_PIECES, {"files": sorted(files)})
            files.add(_PIECES)
        if self.replace:
            # An old list or index is removed first: a reader prefers the list to the index.
            for name in sorted(self._there() - files, key=lambda n: (n != _PIECES, n != _INDEX)):
                _os.unlink(_os.path.join(self.path, name))

    def _write_json(self, name, content):
        """Writes a file atomically: it is complete under its name, or does not exist."""
        path = _os.path.join(self.path, name)
        with open(path + ".tmp", "w", encoding="utf-8") as f:
            _json.dump(content, f, indent=2)
            f.write("\n")
            f.flush()
            if self.sync:
                _os.fsync(f.fileno())
        _os.replace(path + ".tmp", path)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return _local(checkpoint_id) is not None
