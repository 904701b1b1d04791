#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""URLs in Python: secrets are not shown, Ctrl-C ends a read that hangs, errors have Python's
classes. Uses the server of tests/remote, which misbehaves on request."""
import array
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest
import urllib.request
import warnings

import support
import tenfold

SIGNED = "?X-Amz-Signature=SECRET&X-Amz-Expires=60"


class RemoteCase(support.Case):
    def setUp(self):
        super().setUp()
        self.served = self.path("served")
        os.mkdir(self.served)
        tenfold.save(os.path.join(self.served, "m.safetensors"),
                     {"w": array.array("f", bytes(4 << 20)), "v": memoryview(bytes(range(16)))},
                     sync=False)
        script = os.path.join(support.ROOT, "tests", "remote", "server.py")
        server = subprocess.Popen([sys.executable, script, self.served], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, server)
        self.port = int(server.stdout.readline().split()[0])

    def stop(self, server):
        server.stdin.close()
        server.stdout.close()
        server.wait(10)

    def url(self, how, name="m.safetensors"):
        return f"http://127.0.0.1:{self.port}/{how}/{name}"


class Secrets(RemoteCase):
    def test_not_shown(self):
        with tenfold.open(self.url("ok") + SIGNED) as f:
            shown = [repr(f), f._repr_html_(), f.path, f["w"].location[0],
                     str(tenfold.info(self.url("ok") + SIGNED)["path"])]
            self.assertEqual(f["v"].bytes(), bytes(range(16)))
        self.assertEqual(shown[2], self.url("ok"))
        for how in ("status-403", "status-404", "status-410"):
            with self.assertRaises(OSError) as caught:
                tenfold.open(self.url(how) + SIGNED)
            shown += [str(caught.exception), caught.exception.path]
            self.assertNotIn("SECRET", repr(caught.exception))
        for text in shown:
            self.assertNotIn("SECRET", text)
            self.assertIn(f"127.0.0.1:{self.port}", text)

    def test_password(self):
        with self.assertRaises(tenfold.Error) as caught:
            tenfold.open("http://me:SECRET@127.0.0.1:1/m.safetensors")
        self.assertNotIn("SECRET", str(caught.exception))
        self.assertEqual(caught.exception.path, "http://127.0.0.1:1/m.safetensors")

    @unittest.skipUnless(support.numpy, "needs numpy")
    def test_load_file(self):
        from tenfold.numpy import load_file
        with self.assertRaises(FileNotFoundError) as caught:
            load_file(self.url("status-404") + SIGNED)
        self.assertNotIn("SECRET", str(caught.exception))
        self.assertEqual(load_file(self.url("ok") + SIGNED)["w"].shape, (1 << 20,))


class Errors(RemoteCase):
    def test_classes(self):
        for status in (404, 410):
            with self.assertRaises(FileNotFoundError) as caught:
                tenfold.open(self.url(f"status-{status}"))
            error = pickle.loads(pickle.dumps(caught.exception))
            for each in (caught.exception, error):
                self.assertIsInstance(each, tenfold.NotFoundError)
                self.assertEqual(each.http_status, status)
                self.assertEqual(each.status, "ENOTFOUND")
                self.assertIsNone(each.errno)
        with self.assertRaises(tenfold.NetworkError) as caught:
            tenfold.open(self.url("status-403"))
        self.assertEqual(caught.exception.http_status, 403)

    def test_warnings(self):
        """A warning of a server becomes a Python warning, and is in File.warnings."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with tenfold.open(self.url("weak") + SIGNED) as f:
                f["v"].bytes()
                kept = f.warnings
        self.assertEqual(len(kept), len(set(kept)))
        self.assertTrue(any("ETag" in text for _, text in kept), kept)
        self.assertTrue(any(w.category is tenfold.FormatWarning for w in told), told)
        self.assertNotIn("SECRET", " ".join(str(w.message) for w in told))
        heard = []
        with tenfold.open(self.url("weak"), warn=lambda at, text: heard.append(text)):
            self.assertTrue(heard)
        with tenfold.open([self.url("weak")], warn=False) as f:
            self.assertTrue(f.warnings)


class Pickles(RemoteCase):
    def test_pickle(self):
        url = self.url("ok") + SIGNED
        with tenfold.open(url) as f:
            kept = pickle.dumps(f)
        with pickle.loads(kept) as f:
            self.assertEqual(f["v"].bytes(), bytes(range(16)))
            self.assertEqual(f.path, self.url("ok"))
        with tenfold.open(url, options={"connections": 2}) as f:  # plans do not support options
            with pickle.loads(pickle.dumps(f)) as again:
                self.assertEqual(again["v"].bytes(), bytes(range(16)))
        path = os.path.join(self.served, "m.safetensors")
        with open(path, "r+b") as f:  # another value, with the same header
            f.seek(-1, os.SEEK_END)
            f.write(b"x")
        os.utime(path, (1, 1))
        with self.assertRaises(tenfold.ChangedError):
            pickle.loads(kept)
        tenfold.save(path, {"w": memoryview(bytes(9))}, replace=True)
        with self.assertRaises(tenfold.ChangedError) as caught:
            pickle.loads(kept)
        self.assertNotIn("SECRET", str(caught.exception))


class Fetches(RemoteCase):
    def test_fetch(self):
        told = []
        got = tenfold.fetch(self.url("ok") + SIGNED, self.path("here"),
                            progress=lambda done, total: told.append((done, total)))
        size = os.path.getsize(os.path.join(self.served, "m.safetensors"))
        self.assertEqual([tuple(each) for each in got], [("m.safetensors", size, True)])
        self.assertEqual(told[-1][1], size)
        self.assertEqual(tenfold.hash(self.path("here/m.safetensors")),
                         tenfold.hash(os.path.join(self.served, "m.safetensors")))
        with self.assertRaises(FileExistsError):
            tenfold.fetch(self.url("ok") + SIGNED, self.path("here"))
        self.assertTrue(tenfold.fetch(self.url("ok"), self.path("here"), replace=True))
        with self.assertRaises(FileNotFoundError) as caught:
            tenfold.fetch(self.url("status-404", "x.zt") + SIGNED, self.path("here"))
        self.assertNotIn("SECRET", str(caught.exception))
        with self.assertRaises(tenfold.Error):
            tenfold.fetch(self.url("ok"), self.path("other"), nonsense=3)


class Pins(RemoteCase):
    def test_etag(self):
        from tenfold._more import pinned
        kept = pinned(self.url("ok"))
        self.assertEqual(pinned(self.url("ok")), kept)
        path = os.path.join(self.served, "m.safetensors")
        with open(path, "r+b") as f:  # another value, with the same header
            f.seek(-1, os.SEEK_END)
            f.write(b"x")
        os.utime(path, (1, 1))  # the server's state of the file
        self.assertNotEqual(pinned(self.url("ok")), kept)


class Interrupts(RemoteCase):
    def interrupted(self, work):
        """Sends Ctrl-C while the work waits for an answer that comes too slowly. It must not wait
        for the rest of it."""
        main = threading.main_thread().ident
        timer = threading.Timer(0.7, lambda: signal.pthread_kill(main, signal.SIGINT))
        timer.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                work()
        finally:
            timer.join()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/_dripped") as answer:
            self.assertEqual(answer.read(), b"0")

    def test_convert(self):
        target = self.path("out.zt")
        self.interrupted(lambda: tenfold.convert(self.url("drip-1"), target))
        self.assertFalse(os.path.exists(target))

    def test_reads(self):
        with tenfold.open(self.url("drip-1")) as f:
            self.interrupted(lambda: f["w"][:])
            self.interrupted(f["w"].read)
            self.interrupted(f["w"].bytes)
            self.interrupted(lambda: tenfold.open([f._source])["w"].numpy())
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/_set?open=1").close()
            self.assertEqual(f["w"][:3].tolist(), [0, 0, 0])  # it can be read again

    def test_read_all(self):
        with tenfold.open(self.url("drip-1")) as f:
            self.interrupted(f.read_all)

    def test_fetch(self):
        self.interrupted(lambda: tenfold.fetch(self.url("drip-1"), self.path("here")))
        self.assertFalse(os.path.exists(self.path("here/m.safetensors")))

    def test_open(self):
        self.interrupted(lambda: tenfold.open(self.url("drip-0")))


if __name__ == "__main__":
    unittest.main()
