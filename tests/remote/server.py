#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A web server that misbehaves on request: /BEHAVIOUR/name serves a file of the directory with that behaviour.

    server.py FOLDER      serves on two ports; prints them, then waits for its standard input to end

GET /_log tells all requests so far as JSON, with how many were being answered, and forgets them; GET /_set?fail=N makes every N-th
request fail; GET /_set?open=1 lets those go on that are held.
"""
import base64
import email.utils
import functools
import hashlib
import html
import http.server
import json
import os
import re
import socket
import struct
import sys
import threading
import time
import urllib.parse
import zlib

folder = sys.argv[1]
lock = threading.Lock()
log = []
counts = {}
kept = {}  # of a bucket that keeps what it is given: objects by path, uploads by id
stored = {}  # of buckets: digests of parts by number, and what became an object
settings = {"fail": 0, "seen": 0, "now": 0, "open": 0, "dripped": 0}
ports = []


class Content(bytes):
    """The content of a file and its digests, which are kept, since computing them for each request would be slow."""

    @functools.cached_property
    def md5(self):
        return hashlib.md5(self).hexdigest()


@functools.lru_cache(maxsize=16)
def content_of(path, changed, size):
    with open(path, "rb") as f:
        return Content(f.read())


class Sparse:
    """A file of which only the requested bytes are read, so it may be larger than memory."""

    def __init__(self, path):
        self.path = path

    def __len__(self):
        return os.path.getsize(self.path)

    def __getitem__(self, span):
        with open(self.path, "rb") as f:
            f.seek(span.start)
            return f.read(span.stop - span.start)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes: the second would wait 40 ms for an ACK

    def log_message(self, *args):
        pass

    # ------------------------------------------------------------ what comes in

    def do_HEAD(self):
        self.do_GET()

    def do_PUT(self):
        self.do_GET()

    def do_POST(self):
        self.do_GET()

    def do_DELETE(self):
        self.do_GET()

    def do_GET(self):
        self.raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.body = self.raw.decode(errors="replace")
        if self.path.startswith("http://"):  # asked as a proxy: for any host
            self.path = "/" + self.path.split("/", 3)[3]
        path, _, query = self.path.partition("?")
        if path == "/_log":
            with lock:
                text = json.dumps(log)
                log.clear()
                for asked in [p for p in counts if not p.startswith("/stall/")]:  # one may wait during other tests
                    del counts[asked]
                stored.clear()
            return self.answer(200, text.encode(), {"Content-Type": "application/json"})
        if path == "/_set":
            with lock:
                settings.update({k: int(v[0]) for k, v in urllib.parse.parse_qs(query).items()})
                settings["seen"] = 0
            return self.answer(200, b"")
        if path == "/_dripped":
            return self.answer(200, b"%d" % settings["dripped"])
        pieces = path.split("/", 2)
        how, name = pieces[1], pieces[2] if len(pieces) > 2 else ""
        with lock:
            settings["now"] += 1
            log.append({"path": self.path, "port": self.server.server_port, "method": self.command, "now": settings["now"],
                        "headers": {k.lower(): v for k, v in self.headers.items()}})
            counts[path] = counts.get(path, 0) + 1
            nth = counts[path]
            settings["seen"] += 1
            fail = settings["fail"] and settings["seen"] % settings["fail"] == 0
        try:
            self.behave(how, name, nth, fail)
        finally:
            with lock:
                settings["now"] -= 1

    def behave(self, how, name, nth, fail):
        if fail:
            return self.fail_somehow(name)
        word, _, argument = how.partition("-")
        method = getattr(self, "how_" + word, None)
        if not method:
            return self.answer(404, b"no such behaviour")
        try:
            method(name, argument, nth)
        except (FileNotFoundError, IsADirectoryError):
            self.answer(404, b"not here")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def content(self, name):
        path = os.path.join(folder, urllib.parse.unquote(name))
        st = os.stat(path)
        return content_of(path, st.st_mtime_ns, st.st_size)

    def wanted(self, data):
        """Returns the requested range as (first, last), or None."""
        value = self.headers.get("Range")
        if not value:
            return None
        first, _, last = value.removeprefix("bytes=").partition("-")
        if first == "":
            return max(0, len(data) - int(last)), len(data) - 1
        return int(first), min(int(last) if last else len(data) - 1, len(data) - 1)

    # ----------------------------------------------------------- what goes out

    def answer(self, status, body=b"", headers=None, length=None, close=False):
        self.send_response_only(status)
        headers = dict(headers or {})
        headers.setdefault("Date", email.utils.formatdate(usegmt=True))
        if length is not False:
            headers.setdefault("Content-Length", str(len(body) if length is None else length))
        for key, value in headers.items():
            self.send_header(key, value)
        if close or length is False or (length is not None and length != len(body)):
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def etag(self, data):
        return '"%s"' % data.md5

    def part(self, name, etag=True, data=None, **change):
        """Answers with a correct range, apart from the fault that `change` names."""
        data = self.content(name) if data is None else data
        tag = self.etag(data) if etag is True else etag
        headers = {"Accept-Ranges": "bytes"}
        if tag:
            headers["ETag"] = tag
        headers.update(change.pop("headers", {}))
        match = self.headers.get("If-Match")
        if match and tag and match != tag and not change.pop("sloppy", False):
            return self.answer(412, b"changed", headers)
        change.pop("sloppy", None)
        span = self.wanted(data)
        if span is None or not data:
            return self.answer(200, data, headers)
        if span[0] >= len(data):
            headers["Content-Range"] = "bytes */%d" % len(data)
            return self.answer(416, b"", headers)
        first, last = span
        if "most" in change:
            last = min(last, first + change["most"] - 1)
        headers["Content-Range"] = change.get("range") or "bytes %d-%d/%d" % (
            first, last, change.get("total", len(data)))
        if change.get("range") == "none":
            del headers["Content-Range"]
        body = data[first:last + 1]
        if "cut" in change:
            return self.answer(206, body[:change["cut"]], headers, len(body))
        return self.answer(206, body, headers, change.get("length"))

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.connection.close()
        self.close_connection = True

    def fail_somehow(self, name):
        kind = settings["seen"] % 3
        if kind == 0:
            return self.answer(503, b"busy")
        if kind == 1:
            self.wfile.flush()
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        return self.answer(500, b"oops")

    # -------------------------------------------------------------- behaviours

    def how_ok(self, name, argument, nth):
        self.part(name)

    def how_short(self, name, argument, nth):  # legal: fewer bytes than requested
        self.part(name, most=1000)

    def how_cut(self, name, argument, nth):  # the body ends early, every other time
        self.part(name, **({"cut": 1000} if nth % 2 else {}))

    def how_norange(self, name, argument, nth):
        self.part(name, range="none")

    def how_wrongrange(self, name, argument, nth):
        data = self.content(name)
        self.part(name, range="bytes 7-%d/%d" % (len(data) - 1, len(data)))

    def how_multipart(self, name, argument, nth):
        self.part(name, headers={"Content-Type": "multipart/byteranges; boundary=x"})

    def how_wronglength(self, name, argument, nth):
        data = self.content(name)
        first, last = self.wanted(data)
        self.answer(206, data[first:last + 1] + b"more",
                    {"Content-Range": "bytes %d-%d/%d" % (first, last, len(data)),
                     "ETag": self.etag(data)})

    def how_toolong(self, name, argument, nth):  # without a length, so that only the bytes tell
        data = self.content(name)
        first, last = self.wanted(data)
        self.answer(206, data[first:last + 1] + b"more",
                    {"Content-Range": "bytes %d-%d/%d" % (first, last, len(data)),
                     "ETag": self.etag(data)}, length=False)

    def how_whole(self, name, argument, nth):  # no ranges at all
        self.answer(200, self.content(name), {"ETag": self.etag(self.content(name))})

    def how_rangeless(self, name, argument, nth):  # no ranges any more, from the second request on
        if nth == 1:
            return self.part(name)
        self.how_whole(name, argument, nth)

    def how_endless(self, name, argument, nth):
        self.answer(200, self.content(name), length=False)
        for _ in range(100):
            self.wfile.write(bytes(1 << 20))

    def how_chunked(self, name, argument, nth):
        data = self.content(name)
        self.send_response_only(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(data), 1000):
            piece = data[at:at + 1000]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def how_empty(self, name, argument, nth):
        self.answer(200, b"")

    def how_empty416(self, name, argument, nth):
        self.answer(416, b"", {"Content-Range": "bytes */0"})

    def how_gzip(self, name, argument, nth):
        self.answer(200, self.content(name), {"Content-Encoding": "gzip", "ETag": 'W/"x"'})

    def how_shrunk(self, name, argument, nth):  # shorter from the second request on
        data = self.content(name)
        if nth == 1:
            return self.part(name)
        self.answer(416, b"", {"Content-Range": "bytes */%d" % (len(data) // 2)})

    def how_changed(self, name, argument, nth):  # another ETag; If-Match is ignored
        self.part(name, etag='"v%d"' % (nth > 1), sloppy=True)

    def how_matched(self, name, argument, nth):  # another ETag; 412
        self.part(name, etag='"v%d"' % (nth > 1))

    def how_grown(self, name, argument, nth):  # no ETag, another length
        data = self.content(name)
        self.part(name, etag=None, total=len(data) + (nth > 1))

    def how_redated(self, name, argument, nth):  # a weak ETag, another date
        self.part(name, etag='W/"same"', sloppy=True,
                  headers={"Last-Modified": "Sun, 06 Nov 1994 08:49:3%d GMT" % (nth > 1)})

    def how_weak(self, name, argument, nth):
        self.part(name, etag='W/"same"', sloppy=True)

    def how_status(self, name, argument, nth):  # status-404: always that
        self.answer(int(argument), b"<Error><Code>Because</Code></Error>" if name.endswith(".xml")
                    else b"all\x1b[31m   sorts\nof things")

    def how_once(self, name, argument, nth):  # once-503: that, and then as it should be
        if nth == 1:
            return self.answer(int(argument), b"later")
        self.part(name)

    def how_retry(self, name, argument, nth):  # retry-1, retry-date, retry-9999: 429 first
        if nth > 1:
            return self.part(name)
        value = argument
        if argument == "date":
            value = email.utils.formatdate(time.time() + 1, usegmt=True)
        self.answer(429, b"slow down", {"Retry-After": value})

    def how_reset(self, name, argument, nth):
        return self.reset() if nth == 1 else self.part(name)

    def how_silent(self, name, argument, nth):
        if nth > 1:
            return self.part(name)
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def how_headers(self, name, argument, nth):
        self.send_response_only(206)
        for i in range(100000):
            self.send_header("X-%d" % i, "y" * 90)
        self.end_headers()

    def how_html(self, name, argument, nth):
        self.answer(200, b"<!DOCTYPE html><html><body>Sign in</body></html>",
                    {"Content-Type": "text/html"})

    def how_loop(self, name, argument, nth):
        self.answer(302, b"", {"Location": self.path + "x"})

    def how_nowhere(self, name, argument, nth):
        self.answer(302, b"")

    def how_there(self, name, argument, nth):  # to the same host
        self.answer(302, b"", {"Location": "/ok/" + name})

    def how_redirect(self, name, argument, nth):  # redirect-308: by that status
        self.answer(int(argument), b"", {"Location": "/ok/" + name})

    def how_relative(self, name, argument, nth):
        self.answer(307, b"", {"Location": "../ok/" + name})

    def how_other(self, name, argument, nth):  # to another port, which is another host
        port = ports[1] if self.server.server_port == ports[0] else ports[0]
        self.answer(302, b"", {"Location": "http://127.0.0.1:%d/ok/%s?sig=SECRET" % (port, name)})

    def how_inward(self, name, argument, nth):  # to an address of this machine or of its network
        self.answer(302, b"", {"Location": "http://%s/ok/%s" % (argument or "169.254.169.254", name)})

    def how_file(self, name, argument, nth):
        self.answer(302, b"", {"Location": "file:///etc/passwd"})

    def how_expiring(self, name, argument, nth):  # to a signed URL that works twice
        with lock:
            counts["signed"] = counts.get("signed", 0) + 1
            number = counts["signed"]
        self.answer(302, b"", {"Location": "/signed-%d/%s" % (number, name)})

    def how_bound(self, name, argument, nth):  # to a signed URL for this range alone
        self.answer(302, b"", {"Location": "/ok/%s?X-Xet-Signed-Range=%d" % (name, nth)})

    def how_signed(self, name, argument, nth):
        if nth > 2:
            return self.answer(403, b"expired")
        self.part(name)

    def how_basic(self, name, argument, nth):  # needs a name and a password
        if self.headers.get("Authorization") != "Basic " + base64.b64encode(b"me:s3cret").decode():
            return self.answer(401, b"")
        self.part(name)

    def how_trickle(self, name, argument, nth):  # slowly, and all of it
        data = self.content(name)
        first, last = self.wanted(data)
        self.send_response_only(206)
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, len(data)))
        self.send_header("ETag", self.etag(data))
        self.end_headers()
        for at in range(first, last + 1, 65536):
            self.wfile.write(data[at:min(at + 65536, last + 1)])
            time.sleep(0.02)

    def how_stall(self, name, argument, nth):  # the second answer stops in its middle, and says nothing more
        if nth != 2:
            return self.part(name)
        data = self.content(name)
        first, last = self.wanted(data)
        self.send_response_only(206)
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, len(data)))
        self.send_header("ETag", self.etag(data))
        self.end_headers()
        self.wfile.write(data[first:first + 1000])
        self.wfile.flush()
        time.sleep(60)

    def how_auth(self, name, argument, nth):  # needs a token
        if self.headers.get("Authorization") != "Bearer t0ken":
            return self.answer(401, b"")
        self.part(name)

    def how_generation(self, name, argument, nth):
        self.part(name, headers={"x-goog-generation": "77"})

    def how_dated(self, name, argument, nth):
        self.part(name, headers={"Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"})

    def how_slow(self, name, argument, nth):  # 50 ms for each range
        time.sleep(0.05)
        self.part(name)

    def how_held(self, name, argument, nth):  # held-8: after so many ranges the next ones wait
        while nth > int(argument) and not settings["open"]:
            time.sleep(0.01)
        self.part(name)

    def how_drip(self, name, argument, nth):  # drip-1: after so many ranges the next ones come at 2.5 kB/s
        if nth <= int(argument) or settings["open"]:
            return self.part(name)
        data = self.content(name)
        first, last = self.wanted(data)
        self.send_response_only(206)
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, len(data)))
        self.send_header("ETag", self.etag(data))
        self.end_headers()
        for at in range(first, last + 1, 1024):
            self.wfile.write(data[at:min(at + 1024, last + 1)])
            time.sleep(0.4)
        if last - first >= 65535:
            settings["dripped"] += 1  # the client waited for all of it: half a minute or more

    def how_sparse(self, name, argument, nth):  # large files; slow-… as well
        if argument:
            time.sleep(float(argument) / 1000)
        self.part(name, data=Sparse(os.path.join(folder, urllib.parse.unquote(name))), etag='"sparse"')

    # ---------------------------------------------------------------- digests

    def how_sum(self, name, argument, nth):
        """sum-google, sum-azure …: every answer has a digest of the complete file; sum-google-wrong: that of another file."""
        kind, _, wrong = argument.partition("-")
        data = self.content(name)
        of = b"other" if wrong else data
        md5 = base64.b64encode(hashlib.md5(of).digest()).decode()
        sha = base64.b64encode(hashlib.sha256(of).digest()).decode()
        crc = base64.b64encode(struct.pack(">I", zlib.crc32(of))).decode()
        self.part(name, data=data, headers={
            "google": {"x-goog-hash": "crc32c=AAAAAA==,md5=" + md5},
            "azure": {"x-ms-blob-content-md5": md5},
            "repr": {"Repr-Digest": "sha-512=:AA==:, sha-256=:%s:" % sha},
            "digest": {"Digest": "SHA-256=" + sha},
            "part": {"Content-MD5": md5, "x-amz-checksum-crc32": crc},  # of what is sent: says nothing of the whole
        }[kind])

    def how_sums3(self, name, argument, nth):
        """A bucket that returns checksums to a HEAD request with the header for this."""
        kind, _, wrong = argument.partition("-")
        data = self.content(name)
        of = b"other" if wrong else data
        headers = {"ETag": '"%s-3"' % hashlib.md5(data).hexdigest()}
        if kind == "etag":
            headers = {"ETag": '"%s"' % hashlib.md5(of).hexdigest()}
        elif kind == "kms":
            headers = {"ETag": '"%s"' % hashlib.md5(b"sealed").hexdigest(), "x-amz-server-side-encryption": "aws:kms"}
        asked = self.headers.get("x-amz-checksum-mode") == "ENABLED"
        if self.command == "HEAD" and asked and kind == "crc32":
            headers["x-amz-checksum-crc32"] = base64.b64encode(struct.pack(">I", zlib.crc32(of))).decode()
        elif self.command == "HEAD" and asked and kind == "sha256":
            headers["x-amz-checksum-sha256"] = base64.b64encode(hashlib.sha256(of).digest()).decode()
        elif self.command == "HEAD" and asked and kind == "composite":
            headers["x-amz-checksum-sha256"] = base64.b64encode(hashlib.sha256(b"other").digest()).decode() + "-3"
        elif self.command == "HEAD" and kind == "forbidden":
            return self.answer(403, b"")
        if self.command == "HEAD":
            return self.answer(200, data, headers)
        etag = headers.pop("ETag")
        self.part(name, data=data, etag=etag, headers=headers)

    def bucket_twice(self, argument, query):
        """bucket-reset: the connection of the third PUT is reset; bucket-lost: the answer to the request that makes the
        object is lost; bucket-foreign: likewise, but another object exists. Returns True if no answer is needed."""
        md5 = hashlib.md5(self.raw)
        with lock:
            number = stored["PUT"] = stored.get("PUT", 0) + (self.command == "PUT")
        if argument == "reset":
            if self.command == "PUT" and number == 3:
                self.reset()
                return True
            return False
        if "uploads" in query or self.command in ("GET", "DELETE"):
            return False
        if self.command == "HEAD":
            size, etag = stored.get("object", (0, '""'))
            self.answer(200, b"", {"ETag": '"other"' if argument == "foreign" else etag}, length=size)
            return True
        if "partNumber" in query:
            with lock:
                stored.setdefault("parts", {})[int(query["partNumber"][0])] = (len(self.raw), md5.digest())
            self.answer(200, b"", {"ETag": '"%s"' % md5.hexdigest()})
            return True
        if "object" in stored:
            self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            return True
        parts = [part for _, part in sorted(stored.get("parts", {}).items())]
        whole = hashlib.md5(b"".join(digest for _, digest in parts)).hexdigest() + "-%d" % len(parts)
        stored["object"] = (sum(n for n, _ in parts), '"%s"' % whole) if parts else (len(self.raw), '"%s"' % md5.hexdigest())
        self.reset()
        return True

    def how_bucket(self, name, argument, nth):
        """Answers the requests that write an object, in parts or at once."""
        query = urllib.parse.parse_qs(self.path.partition("?")[2], keep_blank_values=True)
        if argument in ("reset", "lost", "foreign") and self.bucket_twice(argument, query):
            return None
        if self.command == "GET":
            return self.answer(206 if argument == "there" else 404, b"x" if argument == "there" else b"")
        if self.command == "DELETE":
            return self.answer(204, b"")
        if "uploads" in query:
            return self.answer(200, b"<R><UploadId>%s</UploadId></R>" % (b"" if argument == "noid" else b"id&amp;1"))
        if argument == "badpart" and query.get("partNumber") == ["2"]:
            return self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        if "partNumber" in query:
            return self.answer(200, b"", {"ETag": '"part"'})
        if argument == "raced":
            return self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        if argument == "late" and self.command == "POST":  # 200 at once, to keep the connection
            return self.answer(200, b"<Error><Code>InternalError</Code></Error>")
        self.answer(200, b"<R/>", {"ETag": '"whole"'})

    def how_kept(self, name, argument, nth):
        """A bucket that stores objects by the rules of s3. kept-slow: an upload gets its id after 0.2 s; kept-lost: the
        connection is reset once, after the upload is complete."""
        path, _, query = self.path.partition("?")
        query = {k: v[0] for k, v in urllib.parse.parse_qs(query, keep_blank_values=True).items()}
        objects, uploads = kept.setdefault("objects", {}), kept.setdefault("uploads", {})
        refuse = lambda status, code: self.answer(status, b"<Error><Code>%s</Code></Error>" % code.encode())
        if self.command in ("GET", "HEAD") and "list" in query:
            return self.answer(200, json.dumps({"objects": list(objects), "uploads": list(uploads)}).encode())
        if self.command in ("GET", "HEAD"):
            if path not in objects:
                return refuse(404, "NoSuchKey")
            data, etag = objects[path]
            if self.command == "HEAD":
                return self.answer(200, b"", {"ETag": etag}, length=len(data))
            return self.part(name, data=data, etag=etag)
        if "uploads" in query:
            time.sleep(0.2 if argument == "slow" else 0)
            with lock:
                number = kept["n"] = kept.get("n", 0) + 1
                uploads["id/%d" % number] = {}
            return self.answer(200, b"<R><UploadId>id/%d</UploadId></R>" % number)
        upload = query.get("uploadId")
        if upload not in uploads:
            return refuse(404, "NoSuchUpload")
        if self.command == "DELETE":
            del uploads[upload]
            return self.answer(204, b"")
        if self.command == "PUT":
            md5 = hashlib.md5(self.raw)
            if self.headers.get("Content-MD5") != base64.b64encode(md5.digest()).decode():
                return refuse(400, "BadDigest")
            uploads[upload][int(query["partNumber"])] = (self.raw, md5)
            return self.answer(200, b"", {"ETag": '"%s"' % md5.hexdigest()})
        status, code = self.join_kept(path, objects, uploads[upload])
        if status != 200:
            return refuse(status, code)
        del uploads[upload]
        if argument == "lost" and nth:
            return self.reset()
        return self.answer(200, b"<R/>")

    def join_kept(self, path, objects, there):
        """Makes an object of the parts of an upload, as the request lists them. Returns the status and the code."""
        if self.headers.get("If-None-Match") == "*" and path in objects:
            return 412, "PreconditionFailed"
        parts = [(int(n), tag) for n, tag in re.findall('<PartNumber>([0-9]+)</PartNumber><ETag>(.*?)</ETag>', self.body)]
        if [n for n, _ in parts] != list(range(1, len(there) + 1)) or any(
                tag != '"%s"' % there[n][1].hexdigest() for n, tag in parts):
            return 400, "InvalidPart"
        if any(len(there[n][0]) < 5 << 20 for n, _ in parts[:-1]):
            return 400, "EntityTooSmall"
        whole = hashlib.md5(b"".join(there[n][1].digest() for n, _ in parts)).hexdigest()
        objects[path] = (b"".join(there[n][0] for n, _ in parts), '"%s-%d"' % (whole, len(parts)))
        return 200, ""

    # ---------------------------------------------------------------- folders

    def below(self, prefix, deep):
        """Returns files whose paths begin so, with their sizes; without those of subdirectories unless `deep`."""
        found = []
        for base, _, names in os.walk(os.path.join(folder, os.path.dirname(prefix))):
            for n in names:
                path = os.path.relpath(os.path.join(base, n), folder)
                if path.startswith(prefix) and (deep or "/" not in path[len(prefix):]):
                    found.append((path, os.path.getsize(os.path.join(base, n))))
        return sorted(found)

    def how_store(self, name, argument, nth):
        """Serves the directory as a bucket of s3 or gs, or a container of az. store-paged: two files per page;
        store-longer: wrong sizes; store-slow: 50 ms for each file; store-marked: with objects that stand for folders."""
        query = urllib.parse.parse_qs(self.path.partition("?")[2], keep_blank_values=True)
        az = query.get("comp") == ["list"]
        if not az and "list-type" not in query:
            time.sleep(0.05 if argument == "slow" else 0)
            return self.part(name, data=Sparse(os.path.join(folder, urllib.parse.unquote(name))), etag='"of a store"')
        files = self.below(query["prefix"][0], "delimiter" not in query)
        at = int(query.get("marker" if az else "continuation-token", ["0"])[0])
        if argument == "longer":  # than they are
            files = [(n, size + (not n.endswith(".json"))) for n, size in files]
        if argument == "marked":
            files = [(query["prefix"][0], 0), (query["prefix"][0] + "sub/", 0)] * bool(files) + files
        most = 2 if argument == "paged" else len(files) or 1
        page, after = files[at:at + most], at + most if at + most < len(files) else 0
        text = "".join(("<Blob><Name>%s</Name><Properties><Content-Length>%d</Content-Length></Properties></Blob>" if az else
                        "<Contents><Key>%s</Key><Size>%d</Size></Contents>") % (html.escape(n), size) for n, size in page)
        if az:
            folders = "<Blob><Name>%sdir</Name><Properties><Content-Length>0</Content-Length><ResourceType>directory" \
                      "</ResourceType></Properties></Blob><BlobPrefix><Name>x/</Name></BlobPrefix>" % query["prefix"][0]
            text = "<E><Blobs>%s%s</Blobs><NextMarker>%s</NextMarker></E>" % (text, folders, after or "")
        else:
            text = "<R><IsTruncated>%s</IsTruncated>%s%s</R>" % (
                "true" if after else "false", text, "<NextContinuationToken>%d</NextContinuationToken>" % after if after else "")
        self.answer(200, text.encode())

    def repository(self, name):
        """Lists the directory as a repository of the hub, tree/any."""
        if name.startswith("api/"):
            pieces = name.split("/", 6)
            inside = urllib.parse.unquote(pieces[6]) + "/" if len(pieces) > 6 else ""
            return self.answer(200, json.dumps([{"type": "file", "path": n, "size": size} for n, size in
                                                self.below(inside, "recursive" in self.path)]).encode())
        path = name.split("/", 4)[4]
        self.part(path, headers={"X-Repo-Commit": "0123456789abcdef0123456789abcdef01234567"})

    def how_region(self, name, argument, nth):  # of a bucket that is elsewhere
        if "/eu-west-3/s3/" not in self.headers.get("Authorization", ""):
            return self.answer(400 if argument == "400" else 301, b"", {"x-amz-bucket-region": argument and "eu-west-3" or "a/b"})
        self.part(name)

    def how_clock(self, name, argument, nth):  # two hours ahead of everybody
        now = time.time() + 7200
        said = self.headers.get("x-amz-date", "")
        if said[:11] != time.strftime("%Y%m%dT%H", time.gmtime(now)):
            return self.answer(403, b"<Error><Code>RequestTimeTooSkewed</Code></Error>",
                               {"Date": email.utils.formatdate(now, usegmt=True)})
        self.part(name)

    # ------------------------------------------------------------- who is asked

    def keys(self, word):
        return json.dumps({"AccessKeyId": "KEY" + word, "SecretAccessKey": "SECRET" + word, "Token": "TOKEN" + word,
                           "Expiration": "2099-01-01T00:00:00Z"}).encode()

    def how_agent(self, name, argument, nth):  # of a container
        if self.headers.get("Authorization") != "agent t0ken":
            return self.answer(403, b"")
        self.answer(200, self.keys("agent"))

    def how_imds(self, name, argument, nth):  # of an instance, second version
        if name == "latest/api/token" and self.command == "PUT":
            return self.answer(200, b"IMDSTOKEN" if self.headers.get("X-aws-ec2-metadata-token-ttl-seconds") else b"")
        if self.headers.get("X-aws-ec2-metadata-token") != "IMDSTOKEN":
            return self.answer(401, b"")
        if name == "latest/meta-data/iam/security-credentials/":
            return self.answer(200, b"role\n")
        if name == "latest/meta-data/iam/security-credentials/role":
            return self.answer(200, self.keys("imds"))
        self.answer(404, b"")

    def how_sts(self, name, argument, nth):
        form = urllib.parse.parse_qs(self.body)
        if self.command != "POST" or form.get("WebIdentityToken") != ["web/t0ken="] or form.get("RoleArn") != ["arn:r"]:
            return self.answer(403, b"")
        self.answer(200, b"<R><Credentials><AccessKeyId>KEYsts</AccessKeyId><SecretAccessKey>SECRETsts</SecretAccessKey>"
                    b"<SessionToken>TOKENsts</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></R>")

    def how_computeMetadata(self, name, argument, nth):  # of Google
        if self.headers.get("Metadata-Flavor") != "Google":
            return self.answer(403, b"")
        self.answer(200, b'{"access_token": "GOOGLETOKEN", "expires_in": 3599, "token_type": "Bearer"}')

    def how_metadata(self, name, argument, nth):  # of Azure
        if self.headers.get("Metadata") != "true" or "resource=https%3A%2F%2Fstorage.azure.com%2F" not in self.path:
            return self.answer(400, b"")
        self.answer(200, b'{"access_token": "AZURETOKEN", "expires_in": "3599"}')

    def tree(self, query):
        """Lists the files of the model in pages of two: [(page, the place of the next one)]."""
        files = [{"type": "directory", "path": "sub", "size": 0}]
        for n in sorted(os.listdir(os.path.join(folder, "model"))):
            if "evil" not in n:
                files.append({"type": "file", "path": n, "size": os.path.getsize(os.path.join(folder, "model", n))})
        at = int(query.get("cursor", ["0"])[0])
        return files[at:at + 2], at + 2 if at + 2 < len(files) else None

    def paged(self, name):
        path, _, query = self.path.partition("?")
        repo = name.split("/")[3]
        page, after = self.tree(urllib.parse.parse_qs(query))
        base = "http://127.0.0.1:%d" % self.server.server_port
        if repo == "astray":
            base = "http://elsewhere.example"
        link = {}
        if repo == "endless":
            link = {"Link": '<%s>; rel="next"' % self.path}
        elif repo == "toolong":
            link = {"Link": '<%s?cursor=%s>; rel="next"' % (path, "x" * 5000)}
        elif after:
            link = {"Link": '<%s/before,this>; rel="first", <%s%s?recursive=true&cursor=%d>; rel="next"' % (base, base, path, after)}
        return self.answer(200, json.dumps(page).encode(), link)

    def how_hub(self, name, argument, nth):
        """A small hub: /hub/ORG/NAME/resolve/REV/path, /hub/api/models/ORG/NAME/tree/REV."""
        commit = "0123456789abcdef0123456789abcdef01234567"
        if name.startswith(("api/models/tree/", "tree/")):
            return self.repository(name)
        if name.startswith("api/models/org/name/tree/"):
            files = [{"type": "directory", "path": "sub", "size": 0}]
            for base, _, names in os.walk(os.path.join(folder, "model")):
                for n in sorted(names):
                    path = os.path.join(base, n)
                    inside = os.path.relpath(path, os.path.join(folder, "model"))
                    if "evil" not in n:
                        files.append({"type": "file", "path": inside, "size": os.path.getsize(path)})
            return self.answer(200, json.dumps(files).encode())
        if name.startswith("api/models/org/"):
            return self.paged(name)
        org, repo, _, revision, path = name.split("/", 4)
        path = urllib.parse.unquote(path)
        if repo == "gated":
            return self.answer(403, b"", {"X-Error-Code": "GatedRepo"})
        if repo == "private" and self.headers.get("Authorization") != "Bearer hf_t0ken":
            return self.answer(401, b"", {"X-Error-Code": "RepoNotFound"})
        data = self.content("model/" + path)
        digest = hashlib.sha256(data).hexdigest()
        if repo == "lying":
            digest = hashlib.sha256(b"other").hexdigest()
        port = ports[1] if self.server.server_port == ports[0] else ports[0]
        self.answer(302, b"", {
            "Location": "http://127.0.0.1:%d/ok/model/%s?X-Amz-Signature=SECRET" % (port, path),
            "X-Repo-Commit": commit, "X-Linked-Etag": '"%s"' % digest,
            "X-Linked-Size": str(len(data)), "ETag": '"of-the-redirect"'})


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    for _ in range(2):
        server = Server(("127.0.0.1", 0), Handler)
        ports.append(server.server_port)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(*ports, flush=True)
    sys.stdin.read()


main()
