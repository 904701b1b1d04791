# SPDX-License-Identifier: MIT
"""What the tests over the network share: the command, the server that misbehaves, files."""
import json
import os
import re
import struct
import subprocess
import sys
import urllib.request

here = os.path.dirname(os.path.abspath(__file__))
command = os.path.abspath(sys.argv[1])
bad = []
clean = {k: v for k, v in os.environ.items()
         if not re.match("AWS_|HF_|AZURE_|GOOGLE_|STORAGE_|TENFOLD_|GCE_|IDENTITY_|.*_proxy$|.*_PROXY$", k)}
clean["AWS_EC2_METADATA_DISABLED"] = clean["NO_GCE_CHECK"] = "true"


def check(condition, what):
    if not condition:
        bad.append(what)
        print("FAILED:", what)


def make_safetensors(path, tensors, metadata=None):
    """tensors: name -> shape and bytes; or a number of bytes, which are a hole."""
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
