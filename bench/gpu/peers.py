#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Loads a safetensors file onto a GPU with one package, and prints a line of JSON.

    peers.py PACKAGE PATH [--runs N] [--check] [--cold]

The time is from the call until all tensors are on the GPU and belong to the caller. If a package lends
tensors in a buffer of its own, they are cloned, as its documentation says. CUDA is initialised before. Memory
goes back to the driver between runs; tenfold also pins its buffers anew each time.
"""
import argparse
import gc
import importlib.metadata
import json
import os
import resource
import time

import torch


def by_safetensors(path):
    from safetensors.torch import load_file
    return load_file(path, device="cuda:0")


def by_tenfold(path):
    import tenfold.torch
    return tenfold.torch.load_file(path, device="cuda:0")


def by_tenfold_each(path):
    import tenfold.torch
    return tenfold.torch.load_file(path, device="cuda:0", each=True)


def by_instanttensor(path):
    from instanttensor import safe_open
    with safe_open(path, framework="pt", device=0) as f:
        return dict(f.tensors())


def by_fastsafetensors(path):
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup
    loader = SafeTensorsFileLoader(SingleGroup(), torch.device("cuda:0"), nogds=True)
    loader.add_filenames({0: [path]})
    buffer = loader.copy_files_to_device()
    tensors = {name: buffer.get_tensor(name) for name in loader.get_keys()}
    tensors["\0"] = (loader, buffer)  # they are views of it, as long as it is not closed
    return tensors


def by_runai(path):
    from runai_model_streamer import SafetensorsStreamer
    with SafetensorsStreamer() as streamer:
        streamer.stream_file(path)
        return {name: tensor.to("cuda:0") for name, tensor in streamer.get_tensors()}


PACKAGES = {"safetensors": by_safetensors, "tenfold": by_tenfold, "tenfold-each": by_tenfold_each,
            "instanttensor": by_instanttensor, "fastsafetensors": by_fastsafetensors, "runai": by_runai}
WHEELS = {"runai": "runai-model-streamer", "tenfold-each": "tenfold"}


def release(tensors):
    kept = tensors.pop("\0", None)
    tensors.clear()
    if kept:
        kept[1].close()
        kept[0].close()
    gc.collect()
    torch.cuda.empty_cache()
    time.sleep(0.3)  # the driver clears it, by the engine that copies: 20 ms of a load that follows


def drop_cache(path):
    fd = os.open(path, os.O_RDONLY)
    os.fdatasync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def differing(tensors, path):
    """Returns the names of tensors whose bytes differ from those in the file."""
    from safetensors import safe_open
    wrong = []
    with safe_open(path, framework="pt", device="cpu") as f:
        for name in f.keys():
            there = tensors[name].contiguous().view(-1).view(torch.uint8)
            if not torch.equal(there, f.get_tensor(name).to("cuda:0").contiguous().view(-1).view(torch.uint8)):
                wrong.append(name)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package", choices=sorted(PACKAGES))
    parser.add_argument("path")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--cold", action="store_true")
    args = parser.parse_args()
    torch.zeros(1, device="cuda:0")
    torch.cuda.synchronize()
    size, times, wrong, rss = os.path.getsize(args.path), [], None, 0
    for i in range(args.runs):
        if args.cold:
            drop_cache(args.path)
        if args.package.startswith("tenfold"):
            import tenfold._device
            from tenfold import _tenfold
            _tenfold.device_trim(tenfold._device.opened("cuda:0"))
        begin = time.perf_counter()
        tensors = PACKAGES[args.package](args.path)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # before comparing takes more
        if args.check and i == args.runs - 1:
            wrong = differing(tensors, args.path)
        release(tensors)
    try:
        version = importlib.metadata.version(WHEELS.get(args.package, args.package))
    except importlib.metadata.PackageNotFoundError:
        version = ""
    print(json.dumps({"what": "python", "package": args.package, "version": version, "path": args.path,
                      "cold": args.cold, "backend": os.environ.get("INSTANTTENSOR_BACKEND", ""), "wrong": wrong,
                      "rss": rss,
                      "gbps": [round(size / t / 1e9, 2) for t in times]}), flush=True)


main()
