#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The fastText model of finalfusion's own tests (fasttext.bin), if it is available. Tenfold finds
the same as finalfusion's tools, in the model itself and in its conversions.

    finalfusion.py TENFOLD DIRECTORY
"""
import json
import pathlib
import subprocess
import sys
import tempfile

TENFOLD, PLACE = sys.argv[1], pathlib.Path(sys.argv[2])
NEIGHBOURS = {"über": [("auf", .568513), ("vor", .551551), ("durch", .547349)],
              "unknown": [("einer", .691177), ("und", .576449), ("des", .570398)]}
NORMS = {"</s>": 1.796808, ",": .981130, "ganz": 1.291808, "über": 1.199291}
UNIT = {"ganz": [.106457, .084734, -.240248, .149297, -.104833], "über": [.374406, .192919, .176910, .178576, .109233]}
# Unknown words: how many n-grams they have, the length of their sum, the first number of its
# direction.
UNKNOWN = {"iddqd": (14, 19.206649, [-.012209, -.014696, .062403, .166746, .016679]),
           "idspispopd": (34, 40.515978, [.092582, .078299, -.092229, .215252, -.075008]),
           "unknown": (22, 30.805621, [.358488, -.071423, -.006603, .252007, .022350])}


def run(*arguments):
    return subprocess.run([TENFOLD, *map(str, arguments)], capture_output=True, check=True).stdout


def need(ok, *what):
    if not ok:
        sys.exit(" ".join(map(str, what)))


def near(a, b, what, tolerance=2e-6):
    need(len(a) >= len(b) and all(abs(x - y) <= tolerance * max(1, abs(y)) for x, y in zip(a, b)), what, a[:5], b)


def check_neighbours(path):
    for word, want in NEIGHBOURS.items():
        have = json.loads(run("similar", "--json", "-k", 3, path, word))["results"]
        need([h["word"] for h in have] == [w for w, _ in want], path, word, have)
        near([h["score"] for h in have], [s for _, s in want], (path, word))


def vector(path, word):
    return json.loads(run("vector", "--json", path, word))


def check(model, scratch):
    fifu, back = scratch / "v.fifu", scratch / "back.bin"
    check_neighbours(model)
    run("convert", "--allow-loss=tensor", "--force", model, fifu)  # counts and output
    check_neighbours(fifu)
    for word, norm in NORMS.items():
        near([vector(fifu, word)["norm"]], [norm], (word, "norm"))
    for word, unit in UNIT.items():
        near(vector(fifu, word)["vector"], unit, word)
    for word, (count, length, unit) in UNKNOWN.items():
        told = vector(fifu, word)
        near([told["norm"]], [length], (word, "length"))
        near(told["vector"], unit, word)
        mean = vector(model, word)["vector"]  # the form of fastText: the mean
        near([x * count / length for x in mean], unit, (word, "in the model"))
    run("convert", "-t", "fasttext", "--force", fifu, back)
    check_neighbours(back)
    run("convert", "--force", model, scratch / "m.safetensors")
    run("convert", "-t", "fasttext", "--force", scratch / "m.safetensors", back)
    need(model.read_bytes() == back.read_bytes(), "not the same bytes by way of safetensors")


with tempfile.TemporaryDirectory() as directory:
    found = [p for p in (PLACE / "rt" / "fasttext.bin", PLACE / "py" / "fasttext.bin") if p.exists()]
    for file in found:
        check(file, pathlib.Path(directory))
    print(len(found), "models")
