# SPDX-License-Identifier: MIT
"""A tour of the Python package: make a model, look at it, change its format, load it.

    python3 examples/python_tour.py
"""
import os
import tempfile

import numpy as np

import tenfold
from tenfold.numpy import load_file, save_file

folder = tempfile.mkdtemp()
path = os.path.join(folder, "model.safetensors")

# Save a dict of arrays. The second is not contiguous; it is saved rightly all the same.
weights = {"layers.0.w": np.arange(48, dtype="f4").reshape(6, 8), "layers.0.b": np.zeros((8, 3)).T}
save_file(weights, path, metadata={"author": "me"})

# Open it: a mapping of names to tensors. Nothing is read before it is asked for.
with tenfold.open(path) as f:
    for name, tensor in f.items():
        print(name, tensor.dtype, tensor.shape)
    w = f["layers.0.w"]
    print(w[2:4, ::4])              # reads only what it needs
    view = w.numpy()                # no copy: the mapped file, read-only
print(view.sum())                   # still valid: the array keeps the file

# Convert it, and see that nothing was lost.
report = tenfold.convert(path, os.path.join(folder, "model.zt"))
print(report, report.lossless)
print(tenfold.diff(path, os.path.join(folder, "model.zt")))
print(tenfold.hash(path) == tenfold.hash(os.path.join(folder, "model.zt")))

# A format that cannot hold everything refuses, and says why.
try:
    tenfold.convert(path, os.path.join(folder, "model.gten"), format="gptrs-archive")
except tenfold.LossyError as error:
    for item in error.report:
        print(item.fate, item.kind, item.name)

# Load all of it into memory, in parallel.
print(sorted(load_file(os.path.join(folder, "model.zt"))))
