# SPDX-License-Identifier: MIT
"""Shared by the tests: a directory for each test, and the installed peers."""
import os
import shutil
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError:
    numpy = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import safetensors
    import safetensors.numpy
except ImportError:
    safetensors = None
try:
    import torch
except ImportError:
    torch = None

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
COMMAND = os.environ.get("TENFOLD", os.path.join(ROOT, "build", "release", "tenfold"))


# AddressSanitizer keeps freed memory for a while.
SANITIZED = "TENFOLD_SANITIZED" in os.environ


class Case(unittest.TestCase):
    """A test in an empty directory."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def bytes_of(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)


def resident():
    """The resident memory of the process, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def python(code, *options, **environment):
    """Runs a script in another process and returns its output. TENFOLD_PYTHON: the command of an
    interpreter that cannot be started by its name."""
    import shlex
    import subprocess
    command = shlex.split(os.environ.get("TENFOLD_PYTHON", "")) or [sys.executable]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment}
    done = subprocess.run([*command, *options, "-c", code], env=env, capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise AssertionError(f"status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
