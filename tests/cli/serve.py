#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Serves the current directory while a command runs; @ in the command becomes the address: serve.py
COMMAND..."""
import http.server
import os
import subprocess
import sys
import threading


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = "http://127.0.0.1:%d" % server.server_port
clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
done = subprocess.run([a.replace("@", address) for a in sys.argv[1:]], env=clean, text=True,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
sys.stdout.write(done.stdout.replace(address, "http://server"))
sys.stderr.write(done.stderr.replace(address, "http://server"))
sys.exit(done.returncode)
