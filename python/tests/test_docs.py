# SPDX-License-Identifier: MIT
"""docs/python.md: its programs run, its table of differences is that of the tests, and it has every
name of the package. The examples run, too, and the stubs match the package."""
import glob
import os
import re
import subprocess
import sys
import unittest

import support
from support import ml_dtypes, numpy as np

import tenfold

PAGE = os.path.join(support.ROOT, "docs", "python.md")


def page():
    with open(PAGE, encoding="utf-8") as f:
        return f.read()


class Docs(support.Case):
    @unittest.skipIf(np is None or ml_dtypes is None, "needs numpy and ml_dtypes")
    def test_programs(self):
        text = "\n".join(re.findall(r"```python\n(.*?)```", page(), re.S))
        self.write("page.py", text.encode())
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        done = subprocess.run([sys.executable, "page.py"], cwd=self.folder, env=env,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipIf(np is None or ml_dtypes is None, "needs numpy and ml_dtypes")
    def test_table(self):
        import test_table
        lines = page().splitlines()
        for line in test_table.table():
            self.assertIn(line, lines, "python3 python/tests/test_table.py --print makes it anew")

    def test_names(self):
        text = page()
        for name in tenfold.__all__:
            self.assertIn(name, text, f"docs/python.md does not know tenfold.{name}")

    @unittest.skipIf(np is None, "needs numpy")
    def test_examples(self):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        for path in glob.glob(os.path.join(support.ROOT, "examples", "python_*.py")):
            done = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True,
                                  check=False)
            self.assertIn(done.returncode, (0, 77), done.stderr)  # 77: it needs a package that is not installed

    def test_stubs(self):
        """Each name of a stub exists. If mypy is installed, stubtest compares the signatures,
        too."""
        import ast
        import importlib
        package = os.path.dirname(tenfold.__file__)
        for stub in ("__init__", "_tenfold", "_jobs", "params", "points", "primitiv"):
            with open(os.path.join(package, stub + ".pyi"), encoding="utf-8") as f:
                tree = ast.parse(f.read())
            module = tenfold if stub == "__init__" else importlib.import_module(f"tenfold.{stub}")
            for node in tree.body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    thing = getattr(module, node.name)
                    for inner in getattr(node, "body", ()) if isinstance(node, ast.ClassDef) else ():
                        name = getattr(inner, "name", None) or getattr(
                            getattr(inner, "target", None), "id", None)
                        self.assertTrue(name is None or hasattr(thing, name), (node.name, name))

    def test_stubtest(self):
        """mypy's comparison of stubs and modules, if mypy is installed."""
        package = os.path.dirname(os.path.dirname(tenfold.__file__))
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        env["MYPY_CACHE_DIR"] = self.path("cache")
        done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "tenfold",
                               "--ignore-missing-stub", "--mypy-config-file",
                               os.path.join(support.ROOT, "pyproject.toml")],
                              cwd=package, env=env, capture_output=True, text=True, check=False)
        if "No module named" in done.stderr:
            self.skipTest("needs mypy")
        bad = [line for line in done.stdout.splitlines() if line.startswith("error:")
               and "No module named" not in line]  # torch may not be installed
        self.assertEqual(bad, [], done.stdout[-3000:])


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    unittest.main()
