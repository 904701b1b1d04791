# SPDX-License-Identifier: MIT
"""The safetensors package at the same work: peers.py keys|list|load FILE ROUNDS. Only the calls are
timed, not the interpreter's start, the import or the closing. Prints one JSON object."""
import json
import sys
import time

import safetensors
from safetensors import safe_open
from safetensors.numpy import load_file


def keys(path):
    f = safe_open(path, "np")
    return f, f.keys()


def everything(path):
    """What a listing shows: name, type and shape of each."""
    f = safe_open(path, "np")
    for name in f.keys():
        part = f.get_slice(name)
        part.get_dtype(), part.get_shape()
    return f


def main():
    what, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    work = {"keys": keys, "list": everything, "load": load_file}[what]
    seconds = []
    for i in range(rounds + 1):  # the first is not counted
        start = time.perf_counter()
        held = work(path)
        seconds += [time.perf_counter() - start] if i else []
        del held
    print(json.dumps({"seconds": seconds, "version": safetensors.__version__,
                      "python": sys.version.split()[0]}))


main()
