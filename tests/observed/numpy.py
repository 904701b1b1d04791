#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files written by NumPy and ml_dtypes, and NumPy's answers to unusual files, if they are
available.

  numpy.py TENFOLD FIXTURES

FIXTURES has *.npy and *.npz, each with a .json of its content, and bad/ with manifest.json.
"""
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

TENFOLD, HERE = sys.argv[1], Path(sys.argv[2])
WAYS = ("ztensor2", "ztensor1", "ztensor0", "safetensors")
failures = []


def run(*args):
    done = subprocess.run([TENFOLD, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")


def check(ok, file, what):
    if not ok:
        failures.append(f"{file.name}: {what}")


def check_file(file, want):
    code, out, err = run("ls", "--json", file)
    check(code == 0, file, f"ls gives {code}: {err.strip()}")
    if code:
        return
    listed = json.loads(out)
    check((listed["format"], listed["version"]) == (want["format"], want["version"]), file, "format or version")
    check(len(listed["tensors"]) == 1, file, "not one tensor")
    have, tensor = listed["tensors"][0], want["tensors"][0]
    for key in ("name", "dtype", "shape", "order", "nbytes"):
        check(have[key] == tensor[key], file, f"{key} is {have[key]}, not {tensor[key]}")
    for key, value in tensor.get("attrs", {}).items():
        check(have["attrs"].get(key) == value, file, f"{key} is {have['attrs'].get(key)!r}, not {value!r}")
    code, out, err = run("cat", "--raw", file, "arr_0")
    check(code == 0 and hashlib.sha256(out).hexdigest() == tensor["sha256"], file, f"cat --raw {code} {err.strip()}")
    code, out, err = run("info", "--json", file)
    warned = len(json.loads(out)["warnings"])
    check(code == 0 and warned == ("trailing" in file.name), file, f"{warned} warnings")


def check_again(file, scratch):
    """A file that is read and written, directly or through other formats, stays the same."""
    out = scratch / "out.npy"
    code, _, err = run("convert", "-q", "--force", "--no-sync", file, out)
    check(code == 0 and out.read_bytes() == file.read_bytes(), file, f"written again: {code} {err.strip()}")
    if "trailing" in file.name:
        return
    for way in WAYS:
        there = scratch / "there"
        code, _, err = run("convert", "-q", "--force", "--no-sync", "-t", way, file, there)
        check(code == 0, file, f"to {way}: {code} {err.strip()}")
        code, _, err = run("convert", "-q", "--force", "--no-sync", "-t", "npy", there, out)
        check(code == 0 and out.read_bytes() == file.read_bytes(), file, f"by way of {way}: {code} {err.strip()}")
        hashes = {run("hash", f)[1].split()[0] for f in (file, there) if code == 0}
        check(len(hashes) == 1, file, f"another hash in {way}")


def check_archive(file, want):
    code, out, err = run("ls", "--json", file)
    check(code == 0, file, f"ls gives {code}: {err.strip()}")
    listed = json.loads(out) if code == 0 else {"format": "", "tensors": []}
    check(listed["format"] == want["format"] and len(listed["tensors"]) == len(want["tensors"]), file, "format or tensors")
    for have, tensor in zip(listed["tensors"], want["tensors"]):
        for key in ("name", "dtype", "shape", "order", "nbytes"):
            check(have[key] == tensor[key], file, f"{key} is {have[key]}, not {tensor[key]}")
        code, out, err = run("cat", "--raw", file, tensor["name"])
        check(code == 0 and hashlib.sha256(out).hexdigest() == tensor["sha256"], file, f"cat --raw {code} {err.strip()}")
    code, out, err = run("verify", file)
    check(code == 0, file, f"verify {code} {err.strip()}")
    code, out, err = run("info", "--json", file)
    extras = [x["key"] for x in json.loads(out).get("extras", [])] if code == 0 else []
    for extra in want.get("extras", []):
        check(f"npz.{extra}" in extras, file, f"{extra} is not among {extras}")


def check_archive_again(file, want, scratch):
    """The bytes are the same if that is promised; the content is always the same."""
    out, there = scratch / "out.npz", scratch / "there.npz"
    for way in ("npz", "ztensor2", "safetensors"):
        if want.get("extras") and way != "npz":
            continue
        code, _, err = run("convert", "-q", "--force", "--no-sync", "-t", way, file, there)
        check(code == 0, file, f"to {way}: {code} {err.strip()}")
        code, _, err = run("convert", "-q", "--force", "--no-sync", "-t", "npz", there, out)
        check(code == 0, file, f"back from {way}: {code} {err.strip()}")
        if want["byte_identical"] is True:
            check(out.read_bytes() == file.read_bytes(), file, f"other bytes by way of {way}")
        hashes = {run("hash", f)[1].split()[0] for f in (file, there, out) if code == 0}
        check(len(hashes) == 1, file, f"another hash in {way}")


def check_bad_archive(case):
    """Files that do not open, that open but are damaged, and whose content cannot be read."""
    file = HERE / "bad" / case["file"]
    code, _, err = run("info", file)
    verified = run("verify", file)[0]
    if case["verdict"] == "accept":
        # The pickle of its array of objects would call a function: the file is listed, and verify
        # reports the call.
        told = run("verify", file)
        check(code == 0 and verified == 1, file, f"info {code}, verify {verified}")
        check("builtins.exec" in told[1].decode() + told[2], file, "verify does not name builtins.exec")
        listed = json.loads(run("ls", "--json", file)[1])["tensors"]
        for t in listed:
            read = run("cat", "--raw", file, t["name"])[0]
            check(read == (4 if "unreadable" in t else 0), file, f"cat {t['name']} gives {read}")
        check(sum("unreadable" in t for t in listed) == 1, file, "not one that is unreadable")
    elif "opens" in case["why"]:
        check(code == 0 and verified == 1, file, f"info {code}, verify {verified}")
        check(run("cat", file, "a")[0] == 4 and run("cat", file, "b")[0] == 0, file, "cat of the damaged one or the other")
        check(run("convert", "-q", "-t", "ztensor2", file, "/dev/null")[0] != 0, file, "converted though damaged")
    else:
        check(code == 4 and err.count("\n") == 1 and verified in (1, 4), file, f"info {code}: {err.strip()}")


def check_bad(case):
    file = HERE / "bad" / case["file"]
    code, out, err = run("info", file)
    check(code == 4 and not out and err.count("\n") == 1, file, f"exit {code}: {err.strip()}")
    code, out, err = run("verify", file)
    check(code in (1, 4), file, f"verify gives {code}")
    if "builtins.exec" in case["why"]:
        check("builtins.exec" in (out.decode() + err), file, "verify does not name builtins.exec")


def main():
    files = sorted(HERE.glob("*.npy"))
    bad = [c for c in json.loads((HERE / "bad" / "manifest.json").read_text()) if c["file"].endswith(".npy")]
    with tempfile.TemporaryDirectory() as name:
        for file in files:
            check_file(file, json.loads(Path(f"{file}.json").read_text())["expected"])
            check_again(file, Path(name))
    for case in bad:
        check_bad(case)
    archives = sorted(HERE.glob("*.npz"))
    with tempfile.TemporaryDirectory() as name:
        for file in archives:
            want = json.loads(Path(f"{file}.json").read_text())["expected"]
            check_archive(file, want)
            check_archive_again(file, want, Path(name))
    worse = [c for c in json.loads((HERE / "bad" / "manifest.json").read_text()) if c["file"].endswith(".npz")]
    for case in worse:
        check_bad_archive(case)
    print("\n".join(failures))
    print(f"numpy: {len(files)} + {len(archives)} files, {len(bad)} + {len(worse)} bad ones, {len(failures)} failures")
    sys.exit(1 if failures or not files or not bad else 0)


if __name__ == "__main__":
    main()
