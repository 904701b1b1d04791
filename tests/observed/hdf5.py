#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that h5py and Keras wrote, if they are available.

  hdf5.py TENFOLD FIXTURES
"""
import json

from expected import Watcher


class HDF5(Watcher):
    def check_file(self, path, want):
        self.name = "keras" if path.suffix == ".keras" else "hdf5"
        for tensor in want["tensors"]:
            if "values" in tensor:
                tensor["strings"] = tensor["values"]
        super().check_file(path, want)

    def same_strings(self, told, want):
        return (told if isinstance(told, list) else [told]) == want

    def check_bad(self, case, folder):
        path, verdict = folder / case["file"], case["verdict"]
        if verdict == "refuse-tensor":  # things that are not followed or unknown are not damage
            self.bad += 1
            code, out, err = self.run("info", path)
            self.check(code == 0, path.name, "does not list:", err.strip())
            code, out, err = self.run("cat", "--raw", path, case["tensor"])
            self.check(code in (2, 3, 4) and not out, path.name, "cat exits with", code, err.strip())
            code, out, err = self.run("verify", path)
            self.check(code in (0, 1), path.name, "verify exits with", code, err.strip())
            return
        super().check_bad(case, folder)
        if path.name == "btree_loop.h5":
            code, out, err = self.run("verify", "--json", path)
            self.check('"offset":' in out.decode() and "loop" in out.decode(), path.name, "says", out.decode())
        if path.name == "cycle.h5":
            _, out, _ = self.run("ls", "--json", path)
            self.check([t["name"] for t in json.loads(out)["tensors"]] == ["g/w"], path.name, "lists", out.decode())


HDF5("hdf5").go()
