# SPDX-License-Identifier: MIT
"""Loads a model of any format to a GPU for torch: all tensors, the slices of a rank, into a module.

    python_gpu.py [MODEL [DEVICE]]        python_gpu.py model.safetensors cuda:0

Without a GPU, the device "host" uses the same code with CPU memory.
"""
import os
import sys
import tempfile

try:
    import torch
except ImportError:
    print("this example needs torch")
    sys.exit(77)
from tenfold.torch import iterate, load_file, load_into, save_file

directory = tempfile.TemporaryDirectory()
device = sys.argv[2] if len(sys.argv) > 2 else "cuda" if torch.cuda.is_available() else "host"
model = torch.nn.Linear(8, 4, bias=True)
if len(sys.argv) > 1:
    path = sys.argv[1]
else:
    path = os.path.join(directory.name, "model.safetensors")
    save_file(model.state_dict(), path)

# All tensors; torch owns their memory.
tensors = load_file(path, device=device)
print(f"{len(tensors)} tensors, {sum(t.numel() for t in tensors.values())} numbers on {device}")

if len(sys.argv) == 1:
    # Two ranks: each only reads its own columns.
    ranks = [load_file(path, device=device, names=["weight"],
                       slices={"weight": (slice(None), slice(4 * r, 4 * r + 4))}) for r in (0, 1)]
    whole = torch.cat([part["weight"] for part in ranks], dim=1)
    print("slices:", torch.equal(whole.cpu(), model.weight.detach()))

    # Into existing memory: no second copy of the model, and values are cast.
    other = torch.nn.Linear(8, 4, dtype=torch.bfloat16, device="cpu" if device == "host" else device)
    load_into(path, {name: p.data for name, p in other.named_parameters()})
    print("into:", torch.equal(other.weight.cpu(), model.weight.to(torch.bfloat16)))

# One tensor after the other, for engines: each can be used while the next ones are read.
print("iterated:", sum(1 for _ in iterate(path, device)))
