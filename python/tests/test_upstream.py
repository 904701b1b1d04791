# SPDX-License-Identifier: MIT
"""safetensors' own tests, unedited, against Tenfold under the name of safetensors. They are in its
source distribution, which is fetched by name; without a network this is skipped. Tests that need
torch run with the interpreter of TENFOLD_TORCH_PYTHON, or with the system's if it has torch."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import unittest

import support

VERSION = "0.8.0"
PLAIN = ["test_handle.py", "test_threadable.py"]
TORCH = ["test_simple.py", "test_multithreaded.py", "test_pread_backend.py",
         "test_pt_comparison.py", "test_pt_model.py"]
ALIAS = '''import importlib, sys
for sub in ("", ".numpy", ".torch"):
    try:
        sys.modules["safetensors" + sub] = importlib.import_module("tenfold.compat.safetensors" + sub)
    except ModuleNotFoundError as e:
        if e.name != "torch":
            raise
'''


def fetch(folder):
    """The directory of the tests, or None."""
    kept = os.environ.get("TENFOLD_SAFETENSORS_SDIST")
    if not kept:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary",
                        "safetensors", "-d", folder, f"safetensors=={VERSION}"],
                       capture_output=True, check=False, timeout=300)
        kept = next(iter(glob.glob(os.path.join(folder, "safetensors-*.tar.gz"))), None)
    if not kept:
        return None
    with tarfile.open(kept) as archive:
        # Python before 3.11.4 has no filters.
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return glob.glob(os.path.join(folder, "safetensors-*", "bindings", "python"))[0]


def has(python, module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True,
                          check=False).returncode == 0


class Upstream(support.Case):
    def setUp(self):
        super().setUp()
        if not has(sys.executable, "pytest"):
            self.skipTest("needs pytest")
        try:
            self.place = fetch(self.folder)
        except (OSError, subprocess.SubprocessError):
            self.place = None
        if self.place is None:
            self.skipTest("the source distribution of safetensors could not be fetched")
        with open(os.path.join(self.place, "conftest.py"), "w", encoding="utf-8") as f:
            f.write(ALIAS)
        os.makedirs(os.path.join(self.place, "tests", "data"), exist_ok=True)

    def run_files(self, python, names, path=()):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(
            [os.path.dirname(os.path.dirname(sys.modules["tenfold"].__file__)), *path])}
        done = subprocess.run([python, "-m", "pytest", "-q", *(f"tests/{n}" for n in names)],
                              cwd=self.place, env=env, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
        passed = int(re.search(r"(\d+) passed", done.stdout)[1])
        print(f"{', '.join(names)}: {done.stdout.strip().splitlines()[-1]}", file=sys.stderr)
        return passed

    def test_without_torch(self):
        import tenfold
        del tenfold
        names = PLAIN if has(sys.executable, "fsspec") else PLAIN[1:]
        self.assertGreaterEqual(self.run_files(sys.executable, names), 1)

    def test_with_torch(self):
        import tenfold
        del tenfold
        for python in (os.environ.get("TENFOLD_TORCH_PYTHON"), sys.executable, "/usr/bin/python3"):
            if python and shutil.which(python) and has(python, "torch"):
                break
        else:
            self.skipTest(f"needs torch: {', '.join(TORCH)} were not run")
        path = []
        if not has(python, "pytest"):  # pytest is pure Python, so another interpreter can use ours
            import pytest
            path = [os.path.dirname(os.path.dirname(pytest.__file__))]
            shim = self.path("shim")
            os.mkdir(shim)
            for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments",
                         "py.py"):
                found = os.path.join(path[0], name)
                if os.path.exists(found):
                    os.symlink(found, os.path.join(shim, name))
            path = [shim]
        self.assertGreaterEqual(self.run_files(python, TORCH, path), 50)


if __name__ == "__main__":
    unittest.main()
