#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Downloads a file from a server that limits the rate of each connection and is 50 ms away: tenfold, fsspec and
huggingface_hub in one run.

    remote_peers.py COMMAND [MEBIBYTES [RATE]]     RATE: MiB/s for each connection; default: 32 1

Needs nginx; tests/remote/delay.py makes the delay. Peers that are not installed (fsspec with aiohttp,
huggingface_hub) are left out.
"""
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

command = os.path.abspath(sys.argv[1])
size = int(sys.argv[2]) if len(sys.argv) > 2 else 32
rate = int(sys.argv[3]) if len(sys.argv) > 3 else 1
tree = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
nginx = os.environ.get("TENFOLD_NGINX") or shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
clean = {k: v for k, v in os.environ.items() if not re.match("HF_|.*_proxy$|.*_PROXY$", k)}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = """
daemon off; worker_processes 1; pid %(dir)s/pid; error_log %(dir)s/error.log; master_process off;
events { worker_connections 256; }
http {
  access_log off; client_body_temp_path %(dir)s/t1; proxy_temp_path %(dir)s/t2;
  fastcgi_temp_path %(dir)s/t3; uwsgi_temp_path %(dir)s/t4; scgi_temp_path %(dir)s/t5;
  default_type application/octet-stream; sendfile on;
  server { listen 127.0.0.1:%(port)d; limit_rate %(rate)dm;
    location /plain/ { alias %(dir)s/www/; }
    location /org/name/resolve/ { rewrite ^/org/name/resolve/[^/]*/(.*)$ /hub/$1 last; }
    location /hub/ { internal; alias %(dir)s/www/; add_header X-Repo-Commit %(commit)s; }
  }
}
"""
FSSPEC = """
import fsspec, sys
with fsspec.open(sys.argv[1], "rb") as f, open(sys.argv[2], "wb") as out:
    while True:
        piece = f.read(1 << 20)
        if not piece:
            break
        out.write(piece)
"""
FSSPEC_GET = "import fsspec, sys; fsspec.filesystem('http').get_file(sys.argv[1], sys.argv[2])"
HUB = "from huggingface_hub import hf_hub_download; import sys; print(hf_hub_download('org/name', sys.argv[1]))"


def start(folder):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with open(folder + "/conf", "w") as f:
        f.write(CONFIG % {"dir": folder, "port": port, "rate": rate, "commit": COMMIT})
    server = subprocess.Popen([nginx, "-c", folder + "/conf", "-e", folder + "/error.log"])
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.05)
    delay = subprocess.Popen([sys.executable, tree + "/tests/remote/delay.py", str(port), "50"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return server, delay, "http://127.0.0.1:%d/" % int(delay.stdout.readline())


def make_model(path):
    n = size << 18
    header = b'{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (n, 4 * n)
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header)
        for i in range(size):
            f.write(struct.pack("<I", i) * (1 << 18))


def measure(name, args, env, made, want):
    began = time.time()
    done = subprocess.run(args, env={**clean, **env}, capture_output=True, text=True)
    took = time.time() - began
    if done.returncode != 0:
        print("%-44s left out: %s" % (name, (done.stderr.strip().splitlines() or ["?"])[-1][:80]))
        return None
    path = made or done.stdout.strip().splitlines()[-1]
    with open(path, "rb") as f, open(want, "rb") as g:
        if made != "/dev/null" and f.read() != g.read():
            sys.exit("%s: another file" % name)
    print("%-44s %6.2f s  %6.1f MB/s" % (name, took, os.path.getsize(want) / took / 1e6), flush=True)
    return took


def main():
    if not nginx:
        sys.exit("there is no nginx")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/www")
        os.chmod(folder, 0o755)
        file = folder + "/www/m.safetensors"
        make_model(file)
        server, delay, base = start(folder)
        url = base + "plain/m.safetensors"
        hub = {"HF_ENDPOINT": base[:-1], "HF_HOME": folder + "/home", "HF_HUB_DISABLE_XET": "1",
               "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        python = sys.executable
        try:
            print("%d MiB, %d MiB/s for each connection, 50 ms of delay" % (size, rate))
            peers = [
                measure("fsspec, open and read", [python, "-c", FSSPEC, url, folder + "/a"], {}, folder + "/a", file),
                measure("fsspec, get_file", [python, "-c", FSSPEC_GET, url, folder + "/b"], {}, folder + "/b", file),
                measure("huggingface_hub, hf_hub_download", [python, "-c", HUB, "m.safetensors"], hub, None, file),
            ]
            fresh = {**hub, "HF_HOME": folder + "/other"}
            ours = [
                measure("tenfold fetch", [command, "fetch", url, folder + "/f"], {}, folder + "/f/m.safetensors", file),
                measure("tenfold fetch hf://", [command, "fetch", "hf://org/name/m.safetensors", folder + "/g"], fresh,
                        folder + "/g/m.safetensors", file),
                measure("tenfold convert", [command, "convert", url, folder + "/c.safetensors"], {},
                        folder + "/c.safetensors", file),
                measure("tenfold hash", [command, "hash", url], {}, "/dev/null", file),
            ]
        finally:
            delay.stdin.close()
            server.terminate()
            server.wait()
            delay.wait()
        peers = [p for p in peers if p]
        if peers and all(ours):
            print("the slowest of ours beside the fastest peer: %.1f times as fast" % (min(peers) / max(ours)))
            sys.exit(0 if min(peers) / max(ours) >= 4 else 1)


main()
