#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checkpoints written by torch, malicious and broken ones, and the expected result of each, if they are
available.

  pytorch.py TENFOLD FIXTURES

FIXTURES has files, each with a .json of its content, directories with NAME.dir.json, and bad/ with
manifest.json. No file may execute anything: an executed payload would make the file that TENFOLD_MARKER names.
"""
import hashlib
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TENFOLD, HERE = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).absolute()
failures = []
MARKER = Path(tempfile.mkdtemp()) / "marker"
ENV = {**os.environ, "TENFOLD_MARKER": str(MARKER)}


def run(*args):
    done = subprocess.run([TENFOLD, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env=ENV, cwd=MARKER.parent)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")


def used():
    """The CPU time of the commands so far, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def check(ok, file, what):
    if not ok:
        failures.append(f"{file.name}: {what}")
    return ok


def check_tensor(file, have, want):
    name = want["name"]
    check(have["dtype"] == want["dtype"] or "layout" in want, file, f"{name} has type {have['dtype']}")
    check(have["shape"] == want["shape"], file, f"{name} has shape {have['shape']}, not {want['shape']}")
    for key, value in want.get("attrs", {}).items():
        check(have["attrs"].get(key) == value, file, f"{name}: {key} is {have['attrs'].get(key)!r}, not {value!r}")
    path = want.get("path")
    if path is not None and "dcp" not in file.name:
        found = have["attrs"].get("pytorch.path", name.split("."))
        check(found == path, file, f"{name}: path {found}, not {path}")
    if want.get("unreadable"):
        return
    if "layout" in want:
        check(have["layout"] == want["layout"], file, f"{name} has layout {have['layout']}")
        for part in want["parts"]:
            code, out, err = run("cat", "--raw", file, f"{name}#{part['role']}")
            check(code == 0 and hashlib.sha256(out).hexdigest() == part["sha256"], file,
                  f"{name}#{part['role']}: {code} {err.strip()}")
        return
    check(have["nbytes"] == want["nbytes"], file, f"{name} has {have['nbytes']} bytes")
    code, out, err = run("cat", "--raw", file, name)
    check(code == 0 and hashlib.sha256(out).hexdigest() == want["sha256"], file, f"cat {name}: {code} {err.strip()}")


def same(have, want):
    if isinstance(want, str) and want in ("Infinity", "NaN", "-Infinity"):
        return have == want or (isinstance(have, float) and not math.isfinite(have))
    if isinstance(want, list):
        return isinstance(have, list) and len(have) == len(want) and all(map(same, have, want))
    return have == want


def check_values(file, want):
    code, out, err = run("meta", "--json", file)
    if not check(code == 0, file, f"meta gives {code}: {err.strip()}"):
        return
    have = json.loads(out).get("pytorch.values", {})
    for key, value in want.items():
        check(key in have and same(have[key], value), file, f"value {key} is {have.get(key)!r}, not {value!r}")


def check_file(file, want, as_set=False):
    code, out, err = run("ls", "--json", file)
    if not check(code == 0, file, f"ls gives {code}: {err.strip()}"):
        return
    listed = json.loads(out)
    check(listed["format"] == want["format"], file, f"format {listed['format']}")
    check(want.get("version") in (None, listed["version"]), file, f"version {listed['version']}")
    names, wanted = [t["name"] for t in listed["tensors"]], [t["name"] for t in want["tensors"]]
    if "torchscript" in str(want.get("version")) or as_set:
        names = [n for n in names if n in wanted] if not as_set else sorted(names)
        wanted = sorted(wanted) if as_set else wanted
        names = sorted(names) if not as_set and sorted(names) == sorted(wanted) else names
        wanted = sorted(wanted) if names == sorted(wanted) else wanted
    check(names == wanted, file, f"tensors {names}, not {wanted}")
    have = {t["name"]: t for t in listed["tensors"]}
    for tensor in want["tensors"]:
        if tensor["name"] in have:
            check_tensor(file, have[tensor["name"]], tensor)
    check_values(file, want.get("values", {}))


def check_bad(case):
    file = HERE / "bad" / case["file"]
    before = used()
    code, out, err = run("ls", "--json", file)
    verified, told, said = run("verify", "--json", file)
    text = told.decode() + said
    check(used() - before < 5, file, "takes more than 5 seconds of CPU time")
    if case["verdict"] == "refuse":
        check(code == 4 or verified in (1, 4), file, f"ls gives {code}, verify {verified}: not refused")
        check(code in (0, 4), file, f"ls gives {code}")
    elif case["verdict"] == "danger":
        check(code == 0, file, f"ls gives {code}: {err.strip()}")
        check(verified == 1, file, f"verify gives {verified}")
    elif case["verdict"] == "accept":
        check(code == 0, file, f"ls gives {code}: {err.strip()}")
        names = [t["name"] for t in json.loads(out)["tensors"]] if code == 0 else []
        check(names == case.get("tensors", names), file, f"tensors {names}")
    for name in case.get("calls", []) if case["verdict"] != "accept" else []:
        check(name in text, file, f"verify does not name {name}: {text[:300]}")
    for name in case.get("tensors_damaged", []):
        code, _, err = run("cat", "--raw", file, name)
        check(code == 4 or verified == 1, file, f"cat of a damaged tensor gives {code}")


# Files that a program opens before it does anything: its libraries, and what describes the C library and the machine.
SYSTEM = re.compile(r"/(etc/ld\.so|lib|lib64|usr/lib|usr/local/lib|proc/|sys/|usr/share/(locale|zoneinfo))|/dev/(null|urandom)$")


def check_calls(case, scratch):
    """Under strace: no process is started, no socket is made, and no file is opened except the named one and the
    output."""
    file, log = HERE / "bad" / case["file"], scratch / "log"
    for args in (["ls", file], ["verify", file], ["convert", "-q", "--force", "--allow-loss", "-t", "safetensors", file, scratch / "out.safetensors"]):
        done = subprocess.run(["strace", "-f", "-qq", "-s", "4096", "-o", log, "-e",
                               "trace=execve,execveat,fork,vfork,open,openat,openat2,creat,socket,connect,unlink,unlinkat", TENFOLD,
                               *map(str, args)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, env=ENV, cwd=MARKER.parent)
        if not log.exists() or not log.read_text().strip():
            return False, done.stderr.decode("utf-8", "replace").strip()
        lines = log.read_text().splitlines()
        started = [l for l in lines if re.search(r"\b(execve|execveat|fork|vfork|socket|connect)\(", l)]
        check(len(started) == 1 and TENFOLD in started[0], file, f"{args[0]} starts something: {started[1:]}")
        for line in lines:
            named = re.search(r'\b(?:open|openat|openat2|creat|unlink|unlinkat)\((?:AT_FDCWD, |\d+, )?"([^"]*)"', line)
            path = named.group(1) if named else str(file)
            mine = path == str(file) or path.startswith(str(scratch)) or path in ("", ".") or \
                Path(path).name.startswith(("out.safetensors", f".{file.name}", file.name)) or path == str(file.parent)
            check(mine or SYSTEM.match(path), file, f"{args[0]} opens {path}: {line[:200]}")
    return True, ""


def check_all_calls(bad):
    if not shutil.which("strace"):
        print("pytorch: no strace here: what is opened was not looked at")
        return
    with tempfile.TemporaryDirectory() as scratch:
        for case in bad:
            ran, why = check_calls(case, Path(scratch)) if "mal" in case["file"] else (True, "")
            if not ran:
                print(f"pytorch: strace may not be used here ({why[:80]}): what is opened was not looked at")
                return


def check_index():
    """An index is as safe as the worst of its shards, and the report names that shard."""
    folder = MARKER.parent / "index"
    folder.mkdir()
    shutil.copy(HERE / "state_dict.pt", folder / "a.bin")
    shutil.copy(HERE / "bad" / "mal_reduce.pt", folder / "b.bin")
    index = folder / "pytorch_model.bin.index.json"
    for shards, code, verdict in ((["a.bin"], 0, "yes"), (["a.bin", "b.bin"], 1, "no")):
        names = {t["name"]: shard for shard in shards
                 for t in json.loads(run("ls", "--json", folder / shard)[1])["tensors"]}
        index.write_text(json.dumps({"weight_map": names}))
        got, told, said = run("verify", "--json", index)
        told = json.loads(told)
        check(got == code, index, f"verify gives {got} for {shards}: {said}")
        check(told["verdict"] == f"safe to torch.load: {verdict}", index, told["verdict"])
        check({c["file"] for c in told["calls"]} == set(shards[1:]), index, f"calls are {told['calls']}")


def main():
    cases = 0
    for listing in sorted(HERE.glob("*.json")):
        want = json.loads(listing.read_text())
        file = HERE / want["file"]
        if listing.name.endswith(".dir.json") and want["expected"]["format"] == "pytorch-dcp":
            file = HERE / listing.name[:-len(".dir.json")]
        check_file(file, want["expected"], listing.name.endswith(".dir.json"))
        cases += 1
    bad = json.loads((HERE / "bad" / "manifest.json").read_text())
    for case in bad:
        check_bad(case)
    check_all_calls(bad)
    check_index()
    check(not MARKER.exists(), HERE, "a payload was run")
    print("\n".join(failures))
    print(f"pytorch: {cases} files, {len(bad)} bad ones, {len(failures)} failures")
    sys.exit(1 if failures or not cases or not bad else 0)


if __name__ == "__main__":
    main()
