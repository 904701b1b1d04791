# SPDX-License-Identifier: MIT
"""Shared by the tests of formats whose fixtures are FILE, FILE.json and bad/manifest.json.

FILE.json says under "expected" which tensors there are (name, dtype, shape, sha256 of the elements, or
"strings"), and "attrs". A case of the manifest has a verdict: open, refuse, refuse-tensor, verify-fails.
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


class Watcher:
    def __init__(self, name):
        self.name, self.tenfold, self.here = name, sys.argv[1], Path(sys.argv[2])
        self.failures, self.files, self.bad = [], 0, 0

    def run(self, *args):
        done = subprocess.run([self.tenfold, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")

    def check(self, ok, what, *words):
        if not ok:
            self.failures.append(" ".join(str(w) for w in (what, ":", *words)))
        return ok

    def check_tensor(self, path, have, want):
        name = f"{path.name} {want['name']}"
        for key in ("dtype", "shape", "layout"):
            if key in want:
                self.check(have.get(key) == want[key], name, key, "is", have.get(key), "not", want[key])
        self.check_attrs(name, have.get("attrs", {}), want.get("attrs", {}))
        if want.get("sha256") and have.get("layout", "dense") == "dense":
            code, out, err = self.run("cat", "--raw", path, want["name"])
            self.check(code == 0 and hashlib.sha256(out).hexdigest() == want["sha256"], name, code, len(out), "bytes", err.strip())
        if "strings" in want:
            code, out, err = self.run("cat", "--json", path, want["name"])
            self.check(code == 0, name, "cat", code, err.strip())
            told = json.loads(out)["values"] if code == 0 else None
            self.check(code or self.same_strings(told, want["strings"]), name, "strings", told)

    def same_strings(self, told, want):
        return told == want

    def check_attrs(self, where, have, want):
        for key, value in want.items():
            self.check(have.get(key) == value, where, key, "is", repr(have.get(key)), "not", repr(value))

    def check_file(self, path, want):
        self.files += 1
        code, out, err = self.run("ls", "--json", path)
        if not self.check(code == 0, path.name, "ls", code, err.strip()):
            return
        listed = json.loads(out)
        self.check(listed["format"] == self.name, path.name, "format is", listed["format"])
        have = {t["name"]: t for t in listed["tensors"]}
        names = [t["name"] for t in want["tensors"]]
        self.check(sorted(have) == sorted(names), path.name, "tensors", sorted(set(have) ^ set(names))[:5])
        for tensor in want["tensors"]:
            if tensor["name"] in have:
                self.check_tensor(path, have[tensor["name"]], tensor)
        code, out, err = self.run("info", "--json", path)
        if self.check(code == 0, path.name, "info", code, err.strip()):
            self.check_attrs(path.name, json.loads(out)["attrs"], want.get("attrs", {}))
        code, out, err = self.run("verify", path)
        self.check(code == 0, path.name, "verify", code, err.strip())

    def check_bad(self, case, folder):
        self.bad += 1
        path, verdict = folder / case["file"], case["verdict"]
        for name, target in [case["make"]["symlink"]] if "make" in case else []:
            if not (folder / name).is_symlink():
                os.symlink(target, folder / name)
        code, _, err = self.run("info", path)
        verified = self.run("verify", path)
        if verdict == "open":
            self.check(code == 0 and verified[0] == 0, path.name, "does not open:", err.strip(), verified[2].strip())
        elif verdict == "refuse":
            self.check(code == 4 and err.count("\n") == 1 and verified[0], path.name, "exits with", code, err.strip())
        else:
            self.check(verified[0] in (1, 4), path.name, "verify exits with", verified[0])
        if verdict == "refuse-tensor":
            self.check(code == 0, path.name, "does not list:", err.strip())
            code, out, err = self.run("cat", "--raw", path, case["tensor"])
            self.check(code in (3, 4) and not out, path.name, "cat exits with", code, err.strip())

    def go(self, write_again=None):
        for said in sorted(self.here.glob("*.json")):
            told = json.loads(said.read_text(encoding="utf-8"))
            path = self.here / told["file"]
            self.check_file(path, told["expected"])
            if write_again:
                with tempfile.TemporaryDirectory() as scratch:
                    write_again(self, path, Path(scratch))
        with tempfile.TemporaryDirectory() as scratch:
            shutil.copytree(self.here, Path(scratch) / "all", symlinks=True)
            folder = Path(scratch) / "all" / "bad"
            for case in json.loads((folder / "manifest.json").read_text(encoding="utf-8")):
                self.check_bad(case, folder)
        print("\n".join(self.failures))
        print(f"{self.name}: {self.files} files, {self.bad} bad ones, {len(self.failures)} failures")
        sys.exit(1 if self.failures or not self.files or not self.bad else 0)


def identical(watcher, path, scratch):
    """A file that is read and written again has the same content."""
    out = scratch / path.name
    code, _, err = watcher.run("convert", "-q", "--no-sync", path, out)
    watcher.check(code == 0 and out.read_bytes() == path.read_bytes(), path.name, "written again:", code, err.strip())
