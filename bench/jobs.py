#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the cost of plans, for docs/engines.md, "What was measured".

    bench/jobs.py TENFOLD [--gib N] [--tb N]

  driver   makes a plan for a catalog of N TB in sparse files: memory and CPU time
  finish   finishes that plan with made-up receipts of all parts
  work     CPU time and bytes read of 64 parts and finish, compared with the plain command
"""
import argparse
import hashlib
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

LEAF = 4194304


# Runs in a process of its own, since the peak of a child includes the memory of its parent.
MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
read = int(open(f"/proc/{pid}/io").read().split()[1])
_, status, used = os.wait4(pid, 0)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss, read, file=sys.stderr)
"""


def measure(*args, env=None):
    """Returns the CPU seconds, the peak of memory in MiB and the bytes read of a command."""
    with open("out.txt", "w") as out:
        p = subprocess.run([sys.executable, "-S", "-E", "-c", MEASURE, *map(str, args)], stdout=out,
                           stderr=subprocess.PIPE, text=True, env=dict(os.environ, **(env or {})))
    figures = p.stderr.split("\n")[-2].split()
    if figures[0] != "0":
        sys.exit(f"{args}: {p.stderr}")
    return float(figures[1]), int(figures[2]) / 1024, int(figures[3])


def shards(folder, total, per_shard, tensor):
    """Makes an index and sparse shards with equal tensors of bf16."""
    os.mkdir(folder)
    count, names, number = total // per_shard, {}, 0
    for s in range(count):
        header, at, name = {}, 0, f"model-{s + 1:05}-of-{count:05}.safetensors"
        while at + tensor <= per_shard:
            header[f"layers.{number}.weight"] = {"dtype": "BF16", "shape": [tensor // 16384, 8192],
                                                 "data_offsets": [at, at + tensor]}
            names[f"layers.{number}.weight"] = name
            at += tensor
            number += 1
        text = json.dumps(header).encode()
        with open(os.path.join(folder, name), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            f.truncate(8 + len(text) + at)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": number * tensor}, "weight_map": names}, f)
    return number


def driver(tenfold, tb):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    tensor, parts = 268435456, tb * 250  # 4 GB each
    number = shards("catalog", tb * 10 ** 12, 50 * 10 ** 9, tensor)
    cpu, memory, _ = measure(tenfold, "plan", "catalog", "--for", "hash", "--parts", parts, "--json")
    print(f"driver: {tb} TB in {number} tensors, {parts} parts: plan of "
          f"{os.path.getsize('out.txt') / 1e6:.0f} MB, {cpu:.1f} s of CPU time, {memory:.0f} MiB", flush=True)
    os.rename("out.txt", "plan.json")
    with open("plan.json") as f:
        plan = json.load(f)
    leaves = [0] * parts
    for it in plan["items"]:
        leaves[it["part"]] += it["leaves"]
    folder = f"plan.json.tenfold-{plan['id'][:16]}.parts"
    os.mkdir(folder)
    for part, n in enumerate(leaves):
        text = f'{{"tenfold_receipt":1,"plan":"{plan["id"]}","part":{part},"bytes":{n * LEAF},"leaves":"'
        text += "5" * 64 * n + '","frame":"","rows":[]'
        text += f',"sha256":"{hashlib.sha256(text.encode()).hexdigest()}"}}\n'
        with open(os.path.join(folder, f"{part:05}"), "w") as f:
            f.write(text)
    size = sum(os.path.getsize(os.path.join(folder, x)) for x in os.listdir(folder))
    del plan, leaves
    cpu, memory, _ = measure(tenfold, "finish", "plan.json")
    print(f"finish: receipts of {size / 1e6:.0f} MB, {cpu:.1f} s of CPU time, {memory:.0f} MiB", flush=True)


def model(path, size, dtype="BF16"):
    text = json.dumps({"w": {"dtype": dtype, "shape": [size // 2], "data_offsets": [0, size]}}).encode()
    block = b"".join(struct.pack("<H", 0x3c00 + i * 2654435761 % 1021) for i in range(1 << 19))
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for at in range(0, size, len(block)):
            f.write(block[:size - at])


def in_parts(tenfold, job, path, parts, env):
    """Returns the cost of each part of a plan, and of finish."""
    out = ["--out", "out.safetensors"] if job == "convert" else []
    measure(tenfold, "plan", path, "--for", job, *out, "--parts", parts, "--json")
    os.rename("out.txt", "plan.json")
    each = [measure(tenfold, job, "--plan", "plan.json", "--part", f"{i}/{parts}", env=env) for i in range(parts)]
    end = measure(tenfold, "finish", "plan.json", env=env)
    if out:
        os.remove(out[1])
    return each, end


def work(tenfold, gib, parts=64):
    size, one = gib << 30, {"TENFOLD_THREADS": "1"}
    model("w.safetensors", size)
    model("little.safetensors", 2)
    for job in ("hash", "stat", "convert"):
        out = ["plain.safetensors"] if job == "convert" else []
        plain = measure(tenfold, job, "w.safetensors", *out, env=one)
        hashed = measure(tenfold, "hash", *out, env=one)[0] if out else 0
        for f in out:
            os.remove(f)
        start = sum(x[0] for x in in_parts(tenfold, job, "little.safetensors", parts, one)[0])
        each, end = in_parts(tenfold, job, "w.safetensors", parts, one)
        total, base = sum(x[0] for x in each), plain[0] + hashed
        print(f"work: {job} of one tensor of {gib} GiB: plain {plain[0]:.2f} s"
              + (f", and hash of it {hashed:.2f}" if out else "")
              + f"; {parts} parts {total:.2f}, of which {start:.2f} with nothing to do; finish {end[0]:.2f}; "
              f"({total:.2f} - {start:.2f}) / {base:.2f} = {(total - start) / base:.3f}; read "
              f"{sum(x[2] for x in each) / size:.4f} of the input; a part at most {max(x[1] for x in each):.0f} MiB",
              flush=True)
    os.remove("w.safetensors")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenfold")
    parser.add_argument("--gib", type=int, default=2)
    parser.add_argument("--tb", type=int, default=100)
    args = parser.parse_args()
    tenfold = os.path.abspath(args.tenfold)
    place = tempfile.mkdtemp(prefix="tenfold-bench-jobs.")
    os.chdir(place)
    try:
        if args.gib:
            work(tenfold, args.gib)
        if args.tb:
            driver(tenfold, args.tb)
    finally:
        os.chdir("/")
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
