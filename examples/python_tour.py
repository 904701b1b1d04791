# SPDX-License-Identifier: MIT
"""A tour of the Python package: make a model, inspect it, convert it, and load it.

    python3 examples/python_tour.py
"""
import os
import tempfile

import numpy as np

import tenfold
from tenfold.numpy import load_file, save_file

directory = tempfile.mkdtemp()
path = os.path.join(directory, "model.safetensors")

# Save a dict of arrays. The second array is not contiguous, which is supported.
weights = {"layers.0.w": np.arange(48, dtype="f4").reshape(6, 8), "layers.0.b": np.zeros((8, 3)).T}
save_file(weights, path, metadata={"author": "me"})

# Open it: a mapping of names to tensors. Values are read on demand.
with tenfold.open(path) as f:
    for name, tensor in f.items():
        print(name, tensor.dtype, tensor.shape)
    w = f["layers.0.w"]
    print(w[2:4, ::4])              # reads only these elements
    view = w.numpy()                # no copy: the mapped file, read-only
print(view.sum())                   # still valid: the array keeps the file open

# Convert it, and check that nothing was lost.
report = tenfold.convert(path, os.path.join(directory, "model.zt"))
print(report, report.lossless)
print(tenfold.diff(path, os.path.join(directory, "model.zt")))
print(tenfold.hash(path) == tenfold.hash(os.path.join(directory, "model.zt")))

# A conversion that would lose something is refused, and the error has a report.
try:
    tenfold.convert(path, os.path.join(directory, "model.gten"), format="gptrs-archive")
except tenfold.LossyError as error:
    for item in error.report:
        print(item.fate, item.kind, item.name)

# Load all of it into memory, in parallel.
print(sorted(load_file(os.path.join(directory, "model.zt"))))
