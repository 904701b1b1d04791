# SPDX-License-Identifier: MIT
"""The work of each rank in test_dcp.py, under torchrun:  ranks.py FOLDER load|save|slow"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

import tenfold
import tenfold.dcp
import tenfold.run
import tenfold.torch
from tenfold._slices import chunk

TP = {"up": 0, "down": 1, "odd": 2, "few": 1, "norm": None}
ALONG_ROWS = {"up": 1, "down": 0, "odd": 1, "few": 0, "norm": 0}
FSDP = {name: 0 for name in TP}


def rchar():
    with open("/proc/self/io", encoding="ascii") as f:
        return int(f.readline().split()[1])


def piece(tensor, dim, mesh):
    """The piece of this rank, as torch cuts the tensor."""
    pieces = tensor.chunk(mesh.size(), dim)
    rank = mesh.get_local_rank()
    empty = list(tensor.shape)
    empty[dim] = 0
    return pieces[rank] if rank < len(pieces) else tensor.new_empty(empty)


def sharded(state, dims, mesh, fill):
    """{name: DTensor} with the values of the state, or with zeros."""
    result = {}
    for name, tensor in state.items():
        local = tensor if dims[name] is None else piece(tensor, dims[name], mesh).contiguous()
        place = Replicate() if dims[name] is None else Shard(dims[name])
        local = local.clone() if fill else torch.zeros_like(local)
        result[name] = DTensor.from_local(local, mesh, [place], run_check=False, shape=tensor.shape,
                                          stride=tensor.stride())
    return result


class Told:
    def __init__(self):
        self.wrong, self.bytes = [], {}

    def check(self, what, got, expected):
        for name, tensor in expected.items():
            tensor = tensor.to_local() if isinstance(tensor, DTensor) else tensor
            other = got[name].to_local() if isinstance(got[name], DTensor) else got[name]
            if not torch.equal(tensor, other):
                self.wrong.append(f"{what}: {name}")

    def counted(self, what, wanted, read, before):
        self.bytes[what] = (wanted, read, rchar() - before)


def size(state):
    return sum((t.to_local() if isinstance(t, DTensor) else t).nbytes for t in state.values())


def load(folder, state, mesh, told):
    for path in ("m.safetensors", "folder", "m.pt", "m.gguf"):
        for label, dims in (("tp", TP), ("rows", ALONG_ROWS), ("fsdp", FSDP)):
            what, got = f"{path} {label}", sharded(state, dims, mesh, False)
            before = rchar()
            # nothing is mapped, so that the system counts all bytes read
            reader = tenfold.dcp.Reader(os.path.join(folder, path), access="pread")
            dcp.load(got, storage_reader=reader)
            told.counted(what, size(got), reader.report["bytes_read"], before)
            told.check(what, got, sharded(state, dims, mesh, True))
    path, at = os.path.join(folder, "m.safetensors"), tenfold.run.place()
    for label, dims in (("cut", TP), ("flat", "flat")):
        report, before = {}, rchar()
        got = tenfold.torch.load_sharded(path, None, dim_map=dims, device="cpu", report=report)
        told.counted(label, size(got), report["bytes_read"], before)
        for name, tensor in state.items():
            if dims == "flat":
                expected = tensor.reshape(-1)[slice(*chunk(tensor.numel(), at.world, at.rank))]
            else:
                expected = tensor if TP[name] is None else piece(tensor, TP[name], mesh)
            told.check(label, {name: got[name]}, {name: expected})
    model = sharded(state, TP, mesh, False)
    tenfold.torch.load_sharded(path, model)
    told.check("DTensors", model, sharded(state, TP, mesh, True))
    report, before = {}, rchar()
    got = tenfold.torch.load_sharded(path, broadcast=True, device="cpu", report=report)
    told.check("broadcast", got, state)
    told.counted("broadcast", size(got) // 4 + 1000, report["bytes_read"], before)


def save(folder, state, mesh, told):
    out = os.path.join(folder, "written")
    dcp.save(sharded(state, TP, mesh, True), storage_writer=tenfold.dcp.Writer(out))
    got = sharded(state, ALONG_ROWS, mesh, False)
    dcp.load(got, storage_reader=tenfold.dcp.Reader(out))
    told.check("other pieces", got, sharded(state, ALONG_ROWS, mesh, True))


def slow(folder, state, mesh, told):
    """A load that is slow enough to be killed while it reads."""
    first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"

    class Slow(tenfold.dcp.Reader):
        def read_data(self, plan, planner):
            if first:
                name = os.path.join(folder, f"loading-{dist.get_rank()}")
                with open(name + ".tmp", "w", encoding="ascii") as f:
                    f.write(str(os.getpid()))
                os.replace(name + ".tmp", name)
                time.sleep(2)
            return super().read_data(plan, planner)
    got = sharded(state, TP, mesh, False)
    dcp.load(got, storage_reader=Slow(os.path.join(folder, "m.safetensors")))
    told.check("slow", got, sharded(state, TP, mesh, True))


def main():
    folder, job = sys.argv[1:3]
    # One store for each attempt: in torchrun's own store, restarted ranks would find the addresses
    # of ranks that have ended.
    at, attempt = tenfold.run.place(), os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    dist.init_process_group("gloo", init_method=f"file://{folder}/store-{job}-{attempt}", rank=at.rank,
                            world_size=at.world)
    rank, told = dist.get_rank(), Told()
    if (str(rank), str(at.local_world), at.launcher) != (os.environ["RANK"], "4", "torchrun"):
        told.wrong.append(f"place: {at}")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    state = tenfold.torch.load_file(os.path.join(folder, "m.safetensors"))
    {"load": load, "save": save, "slow": slow}[job](folder, state, mesh, told)
    with open(os.path.join(folder, f"told-{rank}.json"), "w", encoding="utf-8") as f:
        json.dump({"wrong": told.wrong, "bytes": told.bytes,
                   "restarts": int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))}, f)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
