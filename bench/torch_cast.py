# SPDX-License-Identifier: MIT
"""The work of `convert --dtype` with torch: torch_cast.py SOURCE.safetensors FOLDER DTYPE ROUNDS. The source is first
saved by torch itself. Only load, cast and save are timed. Prints one JSON object; {} if torch is not installed."""
import json
import os
import struct
import sys
import time

try:
    import torch
except ImportError:
    print("{}")
    sys.exit()

TYPES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "f32": "float32", "bf16": "bfloat16", "f16": "float16"}


def tensors_of(path):
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n))
        data = torch.frombuffer(bytearray(f.read()), dtype=torch.uint8)
    return {k: data[v["data_offsets"][0]:v["data_offsets"][1]].view(getattr(torch, TYPES[v["dtype"]])).reshape(v["shape"])
            .clone() for k, v in header.items() if k != "__metadata__"}


def main():
    source, folder, kind, rounds = sys.argv[1], sys.argv[2], getattr(torch, TYPES[sys.argv[3]]), int(sys.argv[4])
    before, after = os.path.join(folder, "torch-in.pt"), os.path.join(folder, "torch-out.pt")
    torch.save(tensors_of(source), before)
    times = []
    for _ in range(rounds + 1):
        if os.path.exists(after):
            os.remove(after)
        start = time.perf_counter()
        state = torch.load(before, weights_only=True)
        torch.save({k: v.to(kind) for k, v in state.items()}, after)
        times.append(time.perf_counter() - start)
        del state
    for path in (before, after):
        os.remove(path)
    print(json.dumps({"seconds": times[1:], "threads": torch.get_num_threads(), "torch": torch.__version__}))


main()
