# SPDX-License-Identifier: MIT
"""The same work with the package safetensors: peers.py keys|list|load|save FILE ROUNDS. Only the calls
are timed, not the start of the interpreter, the import or closing. Prints one JSON object."""
import json
import os
import sys
import time

import numpy
import safetensors
from safetensors import safe_open
from safetensors.numpy import load_file, save_file



def keys(path):
    f = safe_open(path, "np")
    return f, f.keys()


def everything(path):
    """Returns the contents of a listing: name, type and shape of each tensor."""
    f = safe_open(path, "np")
    for name in f.keys():
        part = f.get_slice(name)
        part.get_dtype(), part.get_shape()
    return f


def saver():
    """Makes the same tensors as bench_save with 100,000 tensors."""
    values = numpy.ones((100_000, 32), numpy.float32)
    tensors = {f"model.layers.{i // 64}.mlp.experts.{i % 64}.up_proj.weight": values[i]
               for i in range(len(values))}
    return lambda path: save_file(tensors, path)


def main():
    what, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    work = saver() if what == "save" else {"keys": keys, "list": everything, "load": load_file}[what]
    seconds = []
    for i in range(rounds + 1):  # the first is not counted
        start = time.perf_counter()
        held = work(path)
        seconds += [time.perf_counter() - start] if i else []
        del held
        if what == "save":
            os.remove(path)
    print(json.dumps({"seconds": seconds, "version": safetensors.__version__,
                      "python": sys.version.split()[0]}))


main()
