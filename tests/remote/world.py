# SPDX-License-Identifier: MIT
"""Shared by the tests over the network: running the command, the server that misbehaves, files."""
import concurrent.futures
import json
import os
import queue
import re
import struct
import subprocess
import sys
import tempfile
import urllib.request

here = os.path.dirname(os.path.abspath(__file__))
command = os.path.abspath(sys.argv[1])
AT_ONCE = 4  # threads of a test
bad = []
clean = {k: v for k, v in os.environ.items()
         if not re.match("AWS_|HF_|AZURE_|GOOGLE_|STORAGE_|TENFOLD_|GCE_|IDENTITY_|.*_proxy$|.*_PROXY$", k)}
clean["AWS_EC2_METADATA_DISABLED"] = clean["NO_GCE_CHECK"] = "true"


def check(condition, what):
    if not condition:
        bad.append(what)
        print("FAILED:", what)


def make_safetensors(path, tensors, metadata=None):
    """Makes a file. tensors: name -> shape and bytes, or a number of bytes, which become a hole."""
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (shape, values) in tensors.items():
        n = values if isinstance(values, int) else len(values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, values in tensors.values():
            if isinstance(values, int):
                f.seek(values, os.SEEK_CUR)
            else:
                f.write(values)
        f.truncate(8 + len(text) + at)


def floats(n, seed=0):
    return b"".join(struct.pack("<f", (i * 7 + seed) % 1001) for i in range(n))


def at_once(n, tasks):
    """Calls all functions, n at a time. An exception of one of them is raised here."""
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        for done in [pool.submit(task) for task in tasks]:
            done.result()


class World:
    def __init__(self, folder):
        self.folder = folder
        self.server = subprocess.Popen([sys.executable, os.path.join(here, "server.py"), folder],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        self.ports = [int(p) for p in self.server.stdout.readline().split()]

    def url(self, path):
        return "http://127.0.0.1:%d/%s" % (self.ports[0], path)

    def ask(self, path):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url(path)) as f:
            return f.read()

    def log(self):
        return json.loads(self.ask("_log"))

    def close(self):
        self.server.stdin.close()
        self.server.wait()


def run(*args, env=None):
    done = subprocess.run([command, *args], capture_output=True, timeout=120,
                          env={**clean, **(env or {})})
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def make_files(folder):
    make_safetensors(folder + "/m.safetensors",
                     {"w": ([300, 512], floats(300 * 512)), "b": ([1000], floats(1000, 3))}, {"a": "b"})
    make_safetensors(folder + "/long.safetensors",
                     {"layer.%d.weight.with.a.rather.long.name" % i: ([8], floats(8, i)) for i in range(1200)})
    make_safetensors(folder + "/big.safetensors", {"w": ([18 << 20], b"")})
    with open(folder + "/big.safetensors", "r+b") as f:
        head = f.read().replace(b"[0, 0]", b"[0,%d]" % (72 << 20))
        f.seek(0)
        f.write(struct.pack("<Q", len(head) - 8) + head[8:])
        f.truncate(len(head) + (72 << 20))
    os.mkdir(folder + "/model")
    places = {}
    for i in range(3):
        name = "model-%05d-of-00003.safetensors" % (i + 1)
        make_safetensors(folder + "/model/" + name, {"t%d" % i: ([50, 1000], floats(50000, i))})
        places["t%d" % i] = name
    index = {"metadata": {"total_size": 600000}, "weight_map": places}
    with open(folder + "/model/model.safetensors.index.json", "w") as f:
        json.dump(index, f)
    index["weight_map"] = {"t0": "../m.safetensors", "t1": "http://127.0.0.1/x", "t2": "/m.safetensors"}
    with open(folder + "/model/evil.safetensors.index.json", "w") as f:
        json.dump(index, f)


def main(tests):
    """Runs the named tests, or all, several at a time, since they mostly wait. Each thread has files and a server of
    its own, so no test counts the requests of another."""
    waiting = queue.SimpleQueue()
    for name, test in list(tests.items()):
        if name.startswith("test_") and (len(sys.argv) < 3 or name[5:] in sys.argv[2:]):
            waiting.put(test)

    def work():
        with tempfile.TemporaryDirectory() as folder:
            make_files(folder)
            w = World(folder)
            try:
                while True:
                    test = waiting.get_nowait()
                    w.log()
                    test(w)
            except queue.Empty:
                pass
            finally:
                w.close()

    at_once(AT_ONCE, [work] * min(AT_ONCE, waiting.qsize()))
    sys.exit(1 if bad else 0)
