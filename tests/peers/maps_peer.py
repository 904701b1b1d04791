#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the tables of --map with the names of the package gguf.

  maps_peer.py TENFOLD

The tables are those that tools/make-maps makes from the package. For every name in a table, with layers of one,
two and three digits and each ending, `convert --map` gives the same as the package's own map.
"""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from gguf.constants import MODEL_ARCH
from gguf.tensor_mapping import get_tensor_name_map

TENFOLD = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LAYERS = (0, 1, 42, 127)


def names_of(table):
    """Names for every line: of each layer, with each ending."""
    for line in table.splitlines():
        if line.startswith("#"):
            continue
        old = line.split(" ")[0]
        for layer in LAYERS if "{n}" in old else (0,):
            for end in ("", ".weight", ".bias"):
                yield old.replace("{n}", str(layer)).replace("{end}", end)


def expected(name, maps, family):
    asked = name.removeprefix("bert.") if family == "bert" else name
    found = {m.get_name(asked, try_suffixes=(".weight", ".bias")) for m in maps} - {None}
    assert len(found) == 1, (family, name, found)
    return found.pop()


def write_model(path, names):
    entries = {n: {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for n in names}
    header = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)


def renamed(folder, family, names):
    write_model(folder / "in.safetensors", names)
    subprocess.run([TENFOLD, "convert", "-q", "--no-sync", "--force", "--map", family, str(folder / "in.safetensors"),
                    str(folder / "out.safetensors")], check=True)
    out = subprocess.run([TENFOLD, "ls", "--json", str(folder / "out.safetensors")], check=True, capture_output=True)
    return [t["name"] for t in json.loads(out.stdout)["tensors"]]


def main():
    subprocess.run([sys.executable, ROOT / "tools" / "make-maps", "--check"], check=True)
    checked = 0
    with tempfile.TemporaryDirectory() as name:
        for path in sorted((ROOT / "cli" / "maps").glob("*.map")):
            text = path.read_text(encoding="utf-8")
            archs = re.search(r"\(gguf: (.*)\)", text).group(1).split(", ")
            maps = [get_tensor_name_map(MODEL_ARCH[a], max(LAYERS) + 1) for a in archs]
            wanted = {}
            for old in names_of(text):  # several old names may become one new name, so each file has only one of them
                wanted.setdefault(expected(old, maps, path.stem), []).append(old)
            for turn in range(max(map(len, wanted.values()))):
                some = {olds[turn]: new for new, olds in wanted.items() if turn < len(olds)}
                assert sorted(renamed(pathlib.Path(name), path.stem, some)) == sorted(some.values()), path.stem
                checked += len(some)
    assert checked > 5000, checked
    print(f"{checked} names of {len(list((ROOT / 'cli' / 'maps').glob('*.map')))} tables")


main()
