#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests with nginx: ranges, versions, compression, a server without ranges, and many connections where one
has a limited rate.

    nginx.py COMMAND [--time]     skipped where there is no nginx (TENFOLD_NGINX names another)

--time also measures a whole file at 4 MiB/s for each connection, against one stream of Python's.
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
import urllib.request

command = os.path.abspath(sys.argv[1])
nginx = os.environ.get("TENFOLD_NGINX") or shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
clean = {k: v for k, v in os.environ.items() if not re.match(".*_proxy$|.*_PROXY$", k)}
bad = []

CONFIG = """
daemon off; worker_processes 1; pid %(dir)s/pid; error_log %(dir)s/error.log; master_process off;
events { worker_connections 256; }
http {
  access_log %(dir)s/access.log; client_body_temp_path %(dir)s/t1; proxy_temp_path %(dir)s/t2;
  fastcgi_temp_path %(dir)s/t3; uwsgi_temp_path %(dir)s/t4; scgi_temp_path %(dir)s/t5;
  default_type application/octet-stream;
  server { listen 127.0.0.1:%(port)d; root %(dir)s/www;
    location /plain/ { alias %(dir)s/www/; }
    location /norange/ { alias %(dir)s/www/; max_ranges 0; }
    location /gzip/ { alias %(dir)s/www/; gzip on; gzip_types *; gzip_min_length 1; }
    location /slow/ { alias %(dir)s/www/; limit_rate 4m; }
    location /moved/ { rewrite ^/moved/(.*)$ /plain/$1 redirect; }
  }
}
"""


def check(condition, what):
    if not condition:
        bad.append(what)
        print("FAILED:", what)


def run(*args):
    done = subprocess.run([command, *args], capture_output=True, env=clean, timeout=300)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def make_model(path, n, fill=0):
    header = b'{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (n, 4 * n)
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header)
        block = struct.pack("<256f", *(i + fill for i in range(256)))
        for _ in range(n // 256):
            f.write(block)


def start(folder):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with open(folder + "/conf", "w") as f:
        f.write(CONFIG % {"dir": folder, "port": port})
    server = subprocess.Popen([nginx, "-c", folder + "/conf", "-e", folder + "/error.log"])
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.05)
    return server, "http://127.0.0.1:%d/" % port


def test_all(folder, base):
    file = folder + "/www/m.safetensors"
    make_model(file, 1 << 20)
    local = run("hash", file)[1].split()[0]
    for place in ("plain", "norange", "gzip", "moved"):
        code, out, err = run("hash", base + place + "/m.safetensors")
        check(code == 0 and out.split()[0] == local, "%s: %s" % (place, err))
    open(folder + "/www/empty.safetensors", "w").close()
    code, out, err = run("info", base + "plain/empty.safetensors")
    check(code == 4 and "empty" in err, "empty: " + err)
    code, out, err = run("info", base + "plain/none.safetensors")
    check(code == 3 and "404" in err, "none: " + err)


def test_change(folder, base):
    """The file is replaced while it is read."""
    file = folder + "/www/c.safetensors"
    make_model(file, 8 << 20)
    child = subprocess.Popen([command, "--trace", "hash", base + "slow/c.safetensors"], env=clean,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stderr.readline()
    make_model(file + ".new", 8 << 20, 1)
    os.utime(file + ".new", (1, 1))
    os.replace(file + ".new", file)
    out, err = child.communicate()
    check(child.returncode == 3 and "changed while it was read" in err, "changed: %d %s" % (child.returncode, err))


def test_speed(folder, base):
    file = folder + "/www/t.safetensors"
    make_model(file, 32 << 20)  # 128 MiB
    size = os.path.getsize(file)
    began = time.time()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(base + "slow/t.safetensors") as f:
        while f.read(1 << 20):
            pass
    single = time.time() - began
    for args in (["fetch", base + "slow/t.safetensors", folder + "/f"], ["hash", base + "slow/t.safetensors"],
                 ["convert", base + "slow/t.safetensors", folder + "/t.zt"]):
        began = time.time()
        code, out, err = run(*args)
        took = time.time() - began
        print("%-8s %6.1f MB/s, one stream %.1f MB/s: %.1f times" % (args[0], size / took / 1e6, size / single / 1e6, single / took))
        check(code == 0 and single / took >= 4, "%s is slow: %s" % (args[0], err))


def main():
    if not nginx:
        print("skipped: there is no nginx")
        sys.exit(0)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/www")
        os.chmod(folder, 0o755)
        server, base = start(folder)
        try:
            test_all(folder, base)
            test_change(folder, base)
            if "--time" in sys.argv:
                test_speed(folder, base)
        finally:
            server.terminate()
            server.wait()
    sys.exit(1 if bad else 0)


main()
