#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models that the package onnx wrote, if they are available.

  onnx.py TENFOLD FIXTURES
"""
import json

from expected import Watcher

RAW = ("raw.onnx",)


def again(watcher, path, scratch):
    """Through another format the content is the same; raw models have the same bytes."""
    there, out, twice = scratch / "there.zt", scratch / "out.onnx", scratch / "twice.onnx"
    for source, target in ((path, there), (there, out), (out, twice)):
        code, _, err = watcher.run("convert", "-q", "--no-sync", source, target)
        if not watcher.check(code == 0, path.name, "to", target.name, code, err.strip()):
            return
    watcher.check(out.read_bytes() == twice.read_bytes(), path.name, "is not the same when it is written again")
    if path.name in RAW:
        watcher.check(out.read_bytes() == path.read_bytes(), path.name, "is not what it was")
    hashes = {watcher.run("hash", f)[1].split()[0] for f in (path, out)}
    watcher.check(len(hashes) == 1, path.name, "has another hash")
    listed = [json.loads(watcher.run("ls", "--json", f)[1])["tensors"] for f in (path, out)]
    names = [[(t["name"], t["dtype"], t["shape"]) for t in tensors] for tensors in listed]
    watcher.check(names[0] == names[1], path.name, "has other tensors")


Watcher("onnx").go(again)
