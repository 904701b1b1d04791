#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fixtures of every format: what the command says of a file it says of its URL, in few requests.

    formats.py COMMAND
"""
import json
import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
tests = os.path.dirname(here)
command = os.path.abspath(sys.argv[1])
clean = {k: v for k, v in os.environ.items() if not re.match(".*_proxy$|.*_PROXY$", k)}
EACH = 4  # files of a format
bad = []


def run(*args):
    done = subprocess.run([command, *args], capture_output=True, env=clean, timeout=120)
    return done.returncode, done.stdout, done.stderr


def main():
    folder = os.path.join(tests, "formats")
    server = subprocess.Popen([sys.executable, os.path.join(here, "server.py"), folder],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    base = "http://127.0.0.1:%s/ok/" % server.stdout.readline().split()[0]
    count = 0
    for name in sorted(os.listdir(folder)):
        for kind in ("valid", "reject"):
            place = os.path.join(folder, name, kind)
            files = sorted(os.listdir(place)) if os.path.isdir(place) else []
            files = [f for f in files if os.path.isfile(os.path.join(place, f)) and os.path.getsize(os.path.join(place, f))]
            for file in files[::max(1, len(files) // EACH)][:EACH]:
                path, url = os.path.join(place, file), base + "/".join((name, kind, file))
                for args in (["ls", "--json"], ["hash"]):
                    a, b = run(*args, path), run(*args, url)
                    a, b = ([x[0]] + [t.replace(path.encode(), b"@").replace(url.encode(), b"@") for t in x[1:]]
                            for x in (a, b))
                    count += 1
                    if a != b:
                        bad.append(path)
                        print("%s %s: %r, not %r" % (args[0], url, b, a))
                code, out, err = run("info", "--json", url)
                if code == 0 and json.loads(out)["requests"] > 4:
                    bad.append(path)
                    print("%s: %d requests" % (url, json.loads(out)["requests"]))
    server.stdin.close()
    server.wait()
    print(count, "commands compared")
    sys.exit(1 if bad else 0)


main()
