#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a command says if directories cannot be synced: what is visible is reported, with exit code 6.

    tests/unsynced.py TENFOLD SHIM

SHIM is the library made from tools/fault-shim.c. Exit code 6 promises that the result is there: nothing that is
needed only for a while (receipts, temporary files) may cause it, and nothing may be missing when it comes.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

wrong = []
TENFOLD, SHIM = map(os.path.abspath, sys.argv[1:3])


def tenfold(*args, fails=False, code=0, stdin=""):
    env = dict(os.environ)
    if fails:
        env |= {"LD_PRELOAD": SHIM, "TENFOLD_FAULT": "syncdir:1:5:good"}
    p = subprocess.run([TENFOLD, *args], capture_output=True, text=True, env=env, input=stdin, check=False)
    check(p.returncode == code, *args, "exits with", p.returncode, "not", code, p.stderr)
    check(code == 1 or (code == 6) == ("a power cut may undo it" in p.stderr), *args, "says", repr(p.stderr))
    return p


def check(ok, *words):
    if not ok:
        wrong.append(" ".join(map(str, words)))


def loads(text, *about):
    try:
        return json.loads(text)
    except ValueError as e:
        check(False, *about, "prints no JSON:", e, repr(text))
        return {}


def make_inputs():
    header = json.dumps({"a": {"dtype": "F32", "shape": [64, 8], "data_offsets": [0, 2048]},
                         "b": {"dtype": "U8", "shape": [2000], "data_offsets": [2048, 4048]}}).encode()
    header += b" " * (-len(header) % 8)
    whole = struct.pack("<Q", len(header)) + header + bytes(range(253)) * 16
    with open("x.safetensors", "wb") as f:
        f.write(whole)
    with open("cut.safetensors", "wb") as f:
        f.write(whole[:-10])
    with open("v.txt", "w", encoding="utf-8") as f:
        f.write("64 4\n" + "".join(f"w{i} {i} 1 {i % 7} {i % 5}\n" for i in range(64)))


def make_plan(*args):
    with open("plan.json", "w", encoding="utf-8") as f:
        f.write(tenfold("plan", *args, "--for", "convert", "--json").stdout)


def try_plans():
    """Parts write nothing that lasts; finish reports what is visible."""
    for name, more in {"ranges": ["--out", "ranges.gguf"], "whole": ["--out", "whole.npz"],
                       "shards": ["--out", "shards", "--to", "safetensors", "--max-size", "3K"]}.items():
        make_plan("x.safetensors", *more, "--parts", "2")
        out = more[1]
        for i in range(2):
            tenfold("convert", "--plan", "plan.json", "--part", f"{i}/2", fails=True)
        # Shards without their index are not done.
        p = tenfold("finish", "plan.json", "--json", fails=True, code=3 if name == "shards" else 6)
        if name == "shards":
            check("cannot sync" in p.stderr, p.stderr)
            p = tenfold("finish", "plan.json", "--json")
        check(loads(p.stdout, "finish", name).get("out") == out, name, p.stdout)
        check(os.path.exists(out), out, "is not there")
        make_plan("x.safetensors", "--out", f"run.{out}", *more[2:], "--parts", "2")
        if name != "shards":
            tenfold("run", "plan.json", fails=True, code=6)
            check(os.path.exists(f"run.{out}"), "run did not make", out)
    check(not [f for f in os.listdir(".") if "tenfold-" in f], "left:", os.listdir("."))


def try_commands():
    p = tenfold("convert", "v.txt", "v.fifu", fails=True, code=6)
    plain = tenfold("convert", "v.txt", "plain.fifu")
    notes = [line for line in p.stderr.splitlines() if "power cut" not in line]
    check(notes == plain.stderr.splitlines(), "convert: the notes are", p.stderr, "not", plain.stderr)
    p = tenfold("quantize", "v.fifu", "q.fifu", "--json", fails=True, code=6)
    check("cosine" in loads(p.stdout, "quantize"), "quantize:", p.stdout)
    p = tenfold("repair", "x.safetensors", "same.safetensors", "--json", fails=True, code=6)
    told = loads(p.stdout, "repair")
    check(told.get("saved") == 2 and told.get("ok") is True, "repair:", p.stdout)
    p = tenfold("repair", "cut.safetensors", "less.safetensors", "--json", fails=True, code=6)
    told = loads(p.stdout, "repair")
    check(told.get("saved") == 1 and told.get("ok") is False, "repair:", p.stdout)


def try_points():
    tenfold("points", "create", "p.vsdb", "--dims", "2", "--resolution", "f32", "--json", fails=True, code=6)
    rows = "".join(json.dumps({"app": i, "values": [i, i]}) + "\n" for i in range(4))
    added = loads(tenfold("points", "add", "p.vsdb", "--json", stdin=rows).stdout)
    tenfold("points", "rm", "p.vsdb", *added.get("ids", [])[:2])
    p = tenfold("points", "compact", "p.vsdb", "--json", fails=True, code=6)
    told = loads(p.stdout, "points compact")
    check(told.get("after", 0) < told.get("before", 0), "points compact:", p.stdout)


with tempfile.TemporaryDirectory(prefix="tenfold-unsynced.") as scratch:
    os.chdir(scratch)
    make_inputs()
    try_plans()
    try_commands()
    try_points()
    os.chdir("/")
print("\n".join(wrong) or "ok")
sys.exit(1 if wrong else 0)
