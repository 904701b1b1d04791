# SPDX-License-Identifier: MIT
"""Daily work on every core, for bench/run: casts and copies of files against cp, torch and the fastest way to fill a new
file; reading with the default threads; saving with a sync. Casts are measured in BENCH_MEMORY [/dev/shm], a tmpfs."""
import os
import shutil
import subprocess
import tempfile

import data

CASTS = (("f32", "bf16"), ("f32", "f16"), ("bf16", "f32"), ("f16", "bf16"))


def best_way(t):
    """Returns the name and the times of the fastest way of bench_fill."""
    ways = {k: v for k, v in t.items() if isinstance(v, list) and min(v) > 0}
    name = min(ways, key=lambda k: min(ways[k]))
    return name, ways[name]


def told(b, what, t):
    """Returns the times of all ways of bench_fill."""
    for name, seconds in t.items():
        if isinstance(seconds, list) and min(seconds) > 0 and name != "write":
            b.speed(f"{what}: {name}", seconds, "write() of 8 MiB", t["write"], None, t["bytes"])


def casts(b, where, size, cores):
    tenfold = os.path.join(b.build, "tenfold")
    files = {"f32": data.floats(os.path.join(where, "f32.safetensors"), size)}
    for kind in ("bf16", "f16"):
        files[kind] = os.path.join(where, kind + ".safetensors")
        b.child(tenfold, "convert", "-q", "--no-sync", "--allow-loss", "--dtype", kind, files["f32"], files[kind])
    out, copy = os.path.join(where, "out.safetensors"), os.path.join(where, "copy")
    fill = b.program("fill", where, size, max(3, b.rounds // 2))
    told(b, f"fill {size >> 20} MiB of tmpfs", fill)
    way, fastest = best_way(fill)
    for before, after in CASTS:
        larger = files["f32"] if "f32" in (before, after) else files[before]
        convert = [tenfold, "convert", "-q", "--no-sync", "--allow-loss", "--dtype", after, files[before], out]
        one = ["taskset", "-c", "0"]
        runs = {"one": [*one, *convert], "cp": [*one, "cp", larger, copy], "all": convert,
                "dd": [*one, "dd", "status=none", "bs=256K", f"if={larger}", f"of={copy}"]}
        times = {k: [] for k in runs}
        for r in range(b.rounds + 1):
            for name, command in runs.items():
                seconds = b.child(*command)["seconds"]
                times[name] += [seconds] if r else []
                os.remove(copy if name in ("cp", "dd") else out)
        cast, n = f"convert --dtype {before} to {after}", os.path.getsize(files["f32" if after == "f32" else after])
        b.speed(cast + ", one core", times["one"], "cp of the larger", times["cp"], 0.8, n)
        b.speed(cast + ", one core", times["one"], "read() and write(), 256 KiB", times["dd"], None, n)
        if cores > 1:
            b.speed(f"{cast}, {cores} cores", times["all"], "one core", times["one"], None, n)
        share = n / fill["bytes"]
        b.speed(f"{cast}, {cores} cores", times["all"], f"fastest fill ({way})", [s * share for s in fastest],
                0.95 if cores >= 8 else None, n)
        peer = b.call(b.python, os.path.join(os.path.dirname(__file__), "torch_cast.py"), files[before], where, after, 3)
        if not peer:
            print(f"{b.python} has no torch")
        else:
            b.speed(f"{cast}, {cores} cores", times["all"], "torch: load, cast, save", peer["seconds"],
                    3 if cores >= 8 else None, n)
    threads_and_copies(b, tenfold, files["f32"], out, copy, size)


def threads_and_copies(b, tenfold, source, out, copy, size):
    """Conversions, with and without a cast, by 2 to 16 threads."""
    for threads in (2, 4, 8, 16):
        for what, more in (("convert --dtype bf16", ["--dtype", "bf16", "--allow-loss"]), ("plain convert", [])):
            ours, peers = [], []
            for r in range(max(3, b.rounds // 2) + 1):
                seconds = b.child("env", f"TENFOLD_THREADS={threads}", tenfold, "convert", "-q", "--no-sync", *more,
                                  source, out)["seconds"]
                os.remove(out)
                other = b.child("cp", source, copy)["seconds"]
                os.remove(copy)
                ours += [seconds] if r else []
                peers += [other] if r else []
            b.speed(f"{what} of f32, {threads} threads", ours, "cp", peers, None, size)


def rust_peer(b):
    """Returns the program that uses the safetensors crate: BENCH_RUST, or built here; None without cargo."""
    if os.environ.get("BENCH_RUST"):
        return os.environ["BENCH_RUST"]
    if not shutil.which("cargo"):
        return None
    here, target = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rust"), os.path.join(b.build, "rust")
    done = subprocess.run(["cargo", "build", "-q", "--release", "--manifest-path", os.path.join(here, "Cargo.toml"),
                           "--target-dir", target], check=False)
    return None if done.returncode else os.path.join(target, "release", "tenfold-bench-rust")


def small_tensors(b):
    """Opens a file and reads 100,000 small tensors, each into new memory."""
    many = b.made("many.safetensors", data.many, 100_000, [4, 8])
    rust = rust_peer(b)
    if rust:
        ours, peers = [], []
        for _ in range(3):  # in turn
            ours += b.program("load", many, b.rounds)["tenfold"]
            peers += b.call(rust, many, b.rounds)["seconds"]
        b.speed("open + copy out 100,000 small tensors", ours, "safetensors crate (Rust)", peers, 1)
    else:
        print("there is no cargo, and BENCH_RUST names no program")
    if subprocess.run([b.python, "-c", "import numpy, safetensors.numpy"], stderr=subprocess.DEVNULL).returncode == 0:
        b.speed("open + copy out 100,000 small tensors", b.program("load", many, b.rounds)["tenfold"],
                "safetensors package", b.peer("load", many, 3)["seconds"], 1)
    else:
        print(f"{b.python} has no safetensors package")


def bench_daily(b):
    """Casts, copies, reads and saves with a sync, on all cores."""
    cores = os.cpu_count() or 1
    size = min(b.size, 1 << 30)
    memory = os.environ.get("BENCH_MEMORY", "/dev/shm")
    least = min(size, shutil.disk_usage(memory).free // 8 >> 21 << 21)
    if least < size:
        print(f"{memory} has room for {least >> 20} MiB a file only")
    with tempfile.TemporaryDirectory(prefix="tenfold-bench-", dir=memory) as where:
        casts(b, where, least, cores)
    t = b.program("read", b.made("model.safetensors", data.model, size), b.rounds)
    b.speed(f"read_many, default threads ({cores} cores)", t["many_all"], "pread loops, as many", t["bare_all"], 0.95,
            t["bytes"])
    small_tensors(b)
    for sync in ("sync", ""):
        how = ", fsync" if sync else ", no fsync"
        t = b.program("save", b.where, size, 128, max(3, b.rounds // 2), *([sync] if sync else []))
        b.speed("save safetensors on disk" + how, t["safetensors"], "write loop" + how, t["bare"], 1.3 if sync else 0.9,
                t["bytes"])
        told(b, f"fill {size >> 20} MiB of disk{how}",
             b.program("fill", b.where, size, max(3, b.rounds // 2), *([sync] if sync else [])))
    source, out = data.floats(b.path("f32.safetensors"), 2 * size), b.path("out.safetensors")
    tenfold, ours, peers = os.path.join(b.build, "tenfold"), [], []
    for r in range(b.rounds + 1):
        seconds = b.child(tenfold, "convert", "-q", "--no-sync", "--allow-loss", "--dtype", "bf16", source, out)["seconds"]
        n = os.path.getsize(out)
        os.remove(out)
        ours += [seconds] if r else []
    fill = b.program("fill", b.where, n, b.rounds)
    way, fastest = best_way({k: v for k, v in fill.items() if k in ("write", "early")})
    b.speed("convert --dtype bf16 on disk, --no-sync", ours, f"fastest write loop ({way})", fastest, 0.95, n)
