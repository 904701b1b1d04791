#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command with URLs of a server that misbehaves: every row of the table of answers in
docs/remote.md with its exit code, its sentence and the number of requests.

    run.py COMMAND [NAME...]
"""
import hashlib
import http.server
import json
import os
import random
import shutil
import ssl
import subprocess
import tempfile
import threading
import time

from world import check, clean, command, floats, main, make_safetensors, run


# behaviour, exit code, a part of the sentence or None, requests of `hash` (or the least and the most)
ANSWERS = [
    ("ok", 0, None, 3),
    ("short", 0, None, (600, 640)),
    ("cut", 0, None, (3, 8)),
    ("norange", 3, "does not say which", 1),
    ("wrongrange", 3, "sends bytes 7 to", 1),
    ("multipart", 3, "does not say which", 1),
    ("wronglength", 3, "announces 65540 bytes for a range of 65536", 1),
    ("toolong", 3, "more bytes than requested", 1),
    ("whole", 0, None, 1),
    ("rangeless", 3, "sends the complete file instead of a range", (2, 4)),  # threads that had already begun
    ("endless", 3, "larger than 67108864 bytes", 1),
    ("chunked", 0, None, 1),
    ("empty", 4, "empty", 1),
    ("empty416", 4, "empty", 1),
    ("gzip", 3, "compresses the data", 1),
    ("shrunk", 4, "bytes now, but had", (2, 4)),  # threads that had already begun
    ("changed", 3, 'the file changed while it was read (ETag: "v0", then "v1")', (2, 3)),
    ("matched", 3, "the file changed while it was read", (2, 3)),
    ("grown", 3, "the file changed while it was read (bytes: ", (2, 3)),
    ("redated", 3, "the file changed while it was read (modified: ", (2, 3)),
    ("weak", 0, None, 3),
    ("status-400", 3, "answers 400: all [31m sorts of things", 1),
    ("status-401", 3, "requires credentials (401)", 1),
    ("status-403", 3, "denies access (403)", 1),
    ("status-404", 3, "has no such file (404)", 1),
    ("status-410", 3, "no longer has this file (410)", 1),
    ("status-418", 3, "answers 418", 1),
    ("status-503", 3, "answers 503", 6),
    ("once-408", 0, None, 4),
    ("once-425", 0, None, 4),
    ("once-429", 0, None, 4),
    ("once-500", 0, None, 4),
    ("once-502", 0, None, 4),
    ("once-503", 0, None, 4),
    ("once-504", 0, None, 4),
    ("retry-1", 0, None, 4),
    ("retry-date", 0, None, 4),
    ("retry-9999", 3, "requests a retry after 9999 seconds", 1),
    ("reset", 0, None, 4),
    ("silent", 0, None, 4),
    ("trickle", 0, None, 3),
    ("headers", 3, "bytes of headers", 1),
    ("html", 4, "HTML", 1),
    ("loop", 3, "more than 5 redirects", 6),
    ("nowhere", 3, "a redirect without a target", 1),
    ("there", 0, None, 4),
    ("relative", 0, None, 4),
    ("redirect-301", 0, None, 4),
    ("redirect-303", 0, None, 4),
    ("redirect-308", 0, None, 4),
    ("other", 0, None, 4),
    ("file", 3, "an invalid web address", 1),
    ("expiring", 0, None, (3, 8)),
    ("bound", 0, None, 6),
]


def test_answers(w):
    code, local, _ = run("hash", "--json", os.path.join(w.folder, "m.safetensors"))
    local = json.loads(local)["hash"] if code == 0 else None
    # 20 seconds of nothing: others go on meanwhile.
    waiting = subprocess.Popen([command, "--trace", "hash", "--json", w.url("stall/m.safetensors")], env=clean,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for how, want, sentence, requests in ANSWERS:
        w.log()
        code, out, err = run("hash", "--json", w.url(how + "/m.safetensors"))
        count = len([h for h in w.log() if not h["path"].startswith("/stall/")])
        check(code == want, "%s: exit %d, not %d: %s" % (how, code, want, err))
        if sentence:
            check(sentence in err, "%s: says %r, not %r" % (how, err, sentence))
        elif code == 0:
            check(json.loads(out)["hash"] == local, "%s: another hash" % how)
        least, most = requests if isinstance(requests, tuple) else (requests, requests)
        check(least <= count <= most, "%s: %d requests, not %s" % (how, count, requests))
        check("\x1b" not in err, "%s: control characters in its message" % how)
    out, err = waiting.communicate(timeout=120)
    check(waiting.returncode == 0 and json.loads(out)["hash"] == local, "stall: %s" % err)
    check(err.count("GET ") == 4 and "imeout" in err, "stall: asked otherwise: %s" % err)


def test_large(w):
    """A server without range requests, and a file too long to be downloaded without permission."""
    code, out, err = run("hash", w.url("whole/big.safetensors"))
    check(code == 3 and "does not support ranges (the file has 75497" in err, "large: " + err)
    code, out, err = run("cat", w.url("whole/big.safetensors"), "w[0:3]", "-o", "stream=yes")
    check(code == 0, "stream=yes: " + err)
    code, out, err = run("ls", w.url("whole/big.safetensors"))
    check(code == 0, "its head alone: " + err)
    code, out, err = run("verify", w.url("sum-repr/big.safetensors"))
    check(code == 0 and err.endswith("72.0 MiB will be read over the network\n"), "verify does not say how much: " + err)
    code, out, err = run("verify", w.url("ok/big.safetensors"))
    check(code == 0 and err == "", "verify tells of bytes that it does not read: " + err)


def test_counts(w):
    """Bytes and requests for a header, counted by the server and reported by `info`."""
    for name, requests, most in [("m", 1, 65536), ("long", 2, 200000)]:
        w.log()
        code, out, err = run("info", "--json", w.url("ok/%s.safetensors" % name))
        seen, info = len(w.log()), json.loads(out)
        check(seen == requests == info["requests"], "%s: %d requests" % (name, seen))
        check(info["bytes_read"] <= most, "%s: %d bytes" % (name, info["bytes_read"]))
    w.log()
    code, out, err = run("--trace", "cat", w.url("ok/m.safetensors"), "w[7:9]")
    code2, local, _ = run("cat", os.path.join(w.folder, "m.safetensors"), "w[7:9]")
    check(code == 0 and out == local, "two rows differ: " + err)
    check("GET 127.0.0.1" in err and "bytes=0-65535: 206" in err, "--trace does not tell: " + err)
    asked = [h["headers"]["range"] for h in w.log()]
    total = sum(int(b) - int(a) + 1 for a, b in (r.removeprefix("bytes=").split("-") for r in asked))
    check(total <= 1 << 20, "two rows took %d bytes" % total)


def test_shards(w):
    """Opens a model by its index and by its directory; names that lead to other places are refused."""
    local = run("hash", os.path.join(w.folder, "model"))[1].split()[0]
    for path in ["ok/model/model.safetensors.index.json", "ok/model/"]:
        w.log()
        code, out, err = run("hash", w.url(path))
        check(code == 0 and out.split()[0] == local, "%s: %s" % (path, err))
    w.log()
    code, out, err = run("info", "--json", w.url("ok/model/model.safetensors.index.json"))
    check(code == 0 and json.loads(out)["requests"] == 4, "shards + 1 requests: %s %s" % (out, err))
    code, out, err = run("info", w.url("ok/model/evil.safetensors.index.json"))
    check(code == 4 and "outside the model's directory" in err, "a shard elsewhere: " + err)
    check(not any("m.safetensors" in h["path"] for h in w.log()), "it was asked for")
    code, out, err = run("info", w.url("ok/"))
    check(code == 3 and "http cannot list directories" in err, "no listing: " + err)
    code, out, err = run("fetch", w.url("ok/model/"), os.path.join(w.folder, "nothing"))
    check(code == 2 and "http cannot list directories" in err, "no listing to fetch: %d %s" % (code, err))
    code, out, err = run("verify", w.url("ok/model/"))
    check(code == 0, "verify: " + err)


def test_commands(w):
    """The output of commands for a URL is that for the file."""
    file, url = os.path.join(w.folder, "m.safetensors"), w.url("ok/m.safetensors")
    for args in [["ls", "@"], ["ls", "--json", "@"], ["meta", "@"], ["cat", "@", "b[0:9]"],
                 ["stat", "@"], ["verify", "@"], ["hash", "--tensors", "@"], ["diff", "@", "@"]]:
        here = run(*[file if a == "@" else a for a in args])
        there = run(*[url if a == "@" else a for a in args])
        same = there[1].replace(url.encode(), file.encode())
        check(here[0] == there[0] and here[1] == same, "%s: %r, not %r" % (args, there, here))
    target = os.path.join(w.folder, "out.zt")
    code, out, err = run("convert", url, target)
    check(code == 0, "convert: " + err)
    check(run("hash", target)[1].split()[0] == run("hash", file)[1].split()[0], "convert: another hash")
    os.unlink(target)
    code, out, err = run("meta", url, "--set", "a=b")
    check(code in (2, 4), "a URL changed in place: %d %s" % (code, err))


def test_faults(w):
    """If every n-th request fails, the result is still that of the file."""
    local = run("hash", os.path.join(w.folder, "model"))[1].split()[0]
    w.log()
    code, out, err = run("hash", w.url("ok/model/model.safetensors.index.json"))
    requests = len(w.log())
    for n in range(2, requests + 2):  # beyond that none fails
        w.ask("_set?fail=%d" % n)
        code, out, err = run("hash", w.url("ok/model/model.safetensors.index.json"))
        w.ask("_set?fail=0")
        check(code == 0 and out.split()[0] == local, "every %d. fails: %s" % (n, err))
    w.ask("_set?fail=1")
    code, out, err = run("hash", w.url("ok/model/model.safetensors.index.json"))
    w.ask("_set?fail=0")
    check(code == 3, "all fail: %d %s" % (code, err))


def start_and_kill(w, args, name):
    """Kills a command that fetches a file of 19 blocks after 4 have arrived; the server withholds more than half."""
    w.ask("_set?open=0")
    child = subprocess.Popen([command, *args], env=clean)
    for _ in range(6000):
        try:
            if open(name + ".part.journal").read().count("block") >= 4:
                break
        except FileNotFoundError:
            pass
        time.sleep(0.01)
    child.kill()
    child.wait()
    w.ask("_set?open=1")
    time.sleep(0.5)  # the blocks that were requested


def test_fetch(w):
    """Downloads of complete files: parallel, atomic, resumed, verified."""
    target = tempfile.mkdtemp()
    code, out, err = run("fetch", w.url("ok/model/model.safetensors.index.json"), target)
    check(code == 0, "an index: " + err)
    local = run("hash", os.path.join(w.folder, "model"))[1].split()[0]
    check(run("hash", target)[1].split()[:1] == [local], "an index: another model")
    check(sorted(os.listdir(target)) == sorted(n for n in os.listdir(w.folder + "/model") if "evil" not in n),
          "files: %s" % os.listdir(target))
    code, out, err = run("fetch", w.url("ok/model/model.safetensors.index.json"), target)
    check(code == 3 and "already exists" in err, "twice: " + err)

    big = w.folder + "/big.safetensors"
    name = target + "/big.safetensors"
    w.ask("_set?fail=3")
    code, out, err = run("fetch", w.url("dated/big.safetensors"), target)
    w.ask("_set?fail=0")
    check(code == 0 and open(name, "rb").read() == open(big, "rb").read(), "with failures: " + err)
    check(os.stat(name).st_mtime == 784111777, "the server's date is not kept")
    w.log()
    code, out, err = run("fetch", "--json", w.url("dated/big.safetensors"), target)
    check(code == 0 and json.loads(out)[0]["fetched"] is False and len(w.log()) == 1,
          "unchanged, and fetched again: %s %s" % (out, err))
    os.unlink(name)

    # Killed during the download: its blocks are used again, except one that was damaged on the disk.
    start_and_kill(w, ["fetch", w.url("held-8/big.safetensors"), target], name)
    check(not os.path.exists(name), "a part appears under the name")
    blocks = [int(line.split()[1]) for line in open(name + ".part.journal") if line.startswith("block")]
    check(4 <= len(blocks) < 19, "%d blocks in the journal" % len(blocks))
    with open(name + ".part", "r+b") as f:
        f.seek(blocks[0] * 4194304 + 5)
        f.write(b"spoiled")
    w.log()
    code, out, err = run("fetch", w.url("held-8/big.safetensors"), target)
    asked = len(w.log())
    check(code == 0 and open(name, "rb").read() == open(big, "rb").read(), "resumed: " + err)
    check(asked <= 19 - len(blocks) + 2, "resumed with %d requests for %d blocks" % (asked, 19 - len(blocks)))
    check(not os.path.exists(name + ".part") and not os.path.exists(name + ".part.journal"), "litter")
    os.unlink(name)
    code, out, err = run("fetch", w.url("changed/big.safetensors"), target)
    check(code == 3 and "changed while it was read" in err and not os.path.exists(name), "changed: " + err)
    code, out, err = run("fetch", w.url("ok/model/evil.safetensors.index.json"), target)
    check(code == 3 and "outside the directory" in err, "names that lead out: " + err)
    # No shard that the index names is left out.
    odd = os.path.join(w.folder, "odd.safetensors.index.json")
    for name, words in [("m.safetensors\0.safetensors", "invalid, or outside the directory"), ("m" * 3000, "invalid, or outside"),
                        ("d/" * 300 + "m.safetensors", "has no such file (404)")]:
        with open(odd, "w") as f:
            json.dump({"weight_map": {"t": name}}, f)
        code, out, err = run("fetch", "--force", w.url("ok/odd.safetensors.index.json"), target)
        check(code == 3 and words in err, "the shard %r: %d %s" % (name[:40], code, err))
    # The names are compared with those before them by a table, not one by one.
    with open(odd, "w") as f:
        json.dump({"weight_map": {"t%d" % i: "none-%d.safetensors" % i for i in range(32000)}}, f)
    child = subprocess.Popen([command, "fetch", "--force", w.url("ok/odd.safetensors.index.json"), target], env=clean,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    check(child.returncode == 3 and usage.ru_utime < 6, "32,000 shards: %d, %.1f s" % (child.returncode, usage.ru_utime))
    os.unlink(odd)
    shutil.rmtree(target)


def test_download(w):
    """convert --download: verified, resumed, and removed at the end."""
    folder = tempfile.mkdtemp()
    out, there = folder + "/out.zt", folder + "/out.zt.download"
    for url, local in [("dated/m.safetensors", "m.safetensors"), ("ok/model/model.safetensors.index.json", "model")]:
        code, _, err = run("convert", "--force", "--download", w.url(url), out)
        check(code == 0, "%s: %s" % (url, err))
        check(run("hash", out)[1].split()[0] == run("hash", os.path.join(w.folder, local))[1].split()[0], url + ": another hash")
        check(os.listdir(folder) == ["out.zt"], "left: %s" % os.listdir(folder))
    os.unlink(out)
    code, _, err = run("convert", "--download", w.url("sum-repr-wrong/m.safetensors"), out)
    check(code == 4 and "SHA-256" in err and not os.path.exists(out), "a wrong digest: " + err)
    shutil.rmtree(there)
    start_and_kill(w, ["convert", "--download", w.url("held-8/big.safetensors"), out], there + "/big.safetensors")
    check(not os.path.exists(out) and os.path.exists(there), "killed: %s" % os.listdir(folder))
    w.log()
    code, _, err = run("convert", "--download", w.url("held-8/big.safetensors"), out)
    check(code == 0 and len(w.log()) <= 19 - 4 + 2 and os.listdir(folder) == ["out.zt"], "resumed: " + err)
    code, _, err = run("convert", "--download", w.url("ok/m.safetensors"), "-", "-t", "safetensors")
    check(code == 2 and "needs a file as the output" in err, "to a pipe: " + err)
    code, _, err = run("convert", "--force", "--download", os.path.join(w.folder, "m.safetensors"), out)
    check(code == 0, "a file of this machine: " + err)
    shutil.rmtree(folder)


def test_kills(w):
    """Killed at random moments and started again: in the end the file is complete, and never visible before."""
    target = tempfile.mkdtemp()
    big, name = w.folder + "/big.safetensors", target + "/big.safetensors"
    with open(big, "rb") as f:
        want = hashlib.sha256(f.read()).digest()
    rng = random.Random(23)
    kills, asked = 0, 0
    for attempt in range(60):
        child = subprocess.Popen([command, "fetch", w.url("slow/big.safetensors"), target], env=clean,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            child.wait(rng.uniform(0.01, 0.25) if attempt < 25 else 60)
        except subprocess.TimeoutExpired:
            pass
        killed = child.poll() is None
        child.kill()
        err = child.communicate()[1]
        kills += killed
        asked += len(w.log())
        if os.path.exists(name):
            with open(name, "rb") as f:
                check(hashlib.sha256(f.read()).digest() == want, "kill %d: half a file" % attempt)
            if not killed:
                break
        check(killed or child.returncode == 0, "attempt %d: %s" % (attempt, err))
    check(os.path.exists(name), "never finished")
    check(kills >= 1, "nothing was killed")
    check(asked <= 19 + kills * 17, "%d requests for 19 blocks and %d kills" % (asked, kills))  # 16 at once, 1 to begin
    code, out, err = run("fetch", w.url("slow/big.safetensors"), target)
    left = sorted(os.listdir(target))
    check(left == ["big.safetensors"], "litter: %s" % left)
    shutil.rmtree(target)


def test_hub(w):
    """hf:// with a simulated hub: redirects to another host, digests, listings, the local cache."""
    home = tempfile.mkdtemp()
    target = home + "/t"
    env = {"HF_ENDPOINT": w.url("hub"), "HF_HOME": home, "HF_TOKEN": "hf_t0ken"}
    local = run("hash", os.path.join(w.folder, "model"))[1].split()[0]
    for url in ["hf://org/name", "hf://org/name@main/", "hf://org/name/model.safetensors.index.json",
                "hf://org/name@refs/pr/1/model.safetensors.index.json"]:
        w.log()
        code, out, err = run("--trace", "hash", url, env=env)
        seen = w.log()
        check(code == 0 and out.split()[:1] == [local.split()[0]], "%s: %s" % (url, err))
        check("SECRET" not in err and "hf_t0ken" not in err, "%s: a secret was printed" % url)
        for h in seen:
            own = h["port"] == w.ports[0]
            check(("authorization" in h["headers"]) == own, "%s: a token at %s" % (url, h["path"]))
            if own and "resolve" in h["path"] and h is not seen[0]:
                check("index" in h["path"] or "/0123456789abcdef" in h["path"], "no commit: " + h["path"])
    code, out, err = run("info", "hf://org/private/model.safetensors.index.json", env={**env, "HF_TOKEN": ""})
    check(code == 3 and "RepoNotFound; no token was sent" in err, "private: " + err)
    code, out, err = run("info", "hf://org/gated/x.safetensors", env=env)
    check(code == 3 and "GatedRepo" in err, "gated: " + err)
    code, out, err = run("fetch", "hf://org/name/", target, env=env)
    check(code == 0 and run("hash", target)[1].split()[:1] == [local], "fetch: " + err)
    code, out, err = run("fetch", "hf://org/lying/model-00001-of-00003.safetensors", home + "/u", env=env)
    check(code == 4 and "SHA-256" in err and os.listdir(home + "/u") == [], "a wrong digest: " + err)
    shard = "model-00001-of-00003.safetensors"
    data = open(w.folder + "/model/" + shard, "rb").read()
    blobs = home + "/hub/models--org--name/blobs/"
    os.makedirs(blobs)
    with open(blobs + hashlib.sha256(data).hexdigest(), "wb") as f:
        f.write(data)
    w.log()
    code, out, err = run("hash", "hf://org/name/" + shard, env=env)
    check(code == 0 and len(w.log()) == 2, "the local cache is not used: " + err)
    code, out, err = run("fetch", "hf://org/name/" + shard, home + "/v", env=env)
    check(code == 0 and len(w.log()) == 2, "fetch: the local cache is not used: " + err)
    check(open(home + "/v/" + shard, "rb").read() == data, "fetch from the local cache: another file")
    with open(blobs + hashlib.sha256(data).hexdigest(), "r+b") as f:
        f.seek(1000)
        f.write(b"spoiled")
    code, out, err = run("fetch", "hf://org/name/" + shard, home + "/x", env=env)
    check(code == 4 and "cache on this machine is damaged" in err and os.listdir(home + "/x") == [],
          "a damaged cache: " + err)
    shutil.rmtree(home)


def test_hub_pages(w):
    """A long repository is listed page by page. If a page is missing, that is an error, not a shorter listing."""
    home = tempfile.mkdtemp()
    env = {"HF_ENDPOINT": w.url("hub"), "HF_HOME": home, "HF_TOKEN": "hf_t0ken"}
    local = run("hash", os.path.join(w.folder, "model"))[1].split()[0]
    w.log()
    code, out, err = run("fetch", "hf://org/paged/", home + "/t", env=env)
    check(code == 0 and run("hash", home + "/t")[1].split()[:1] == [local], "pages: " + err)
    check(len(os.listdir(home + "/t")) == 4, "pages: %s" % os.listdir(home + "/t"))
    pages = [h for h in w.log() if "/api/" in h["path"]]
    check(len(pages) == 3 and all("authorization" in h["headers"] for h in pages), "pages: %d asked for" % len(pages))
    code, out, err = run("hash", "hf://org/paged", env=env)
    check(code == 0 and out.split()[:1] == [local], "a model over pages: " + err)
    for repo, sentence in [("astray", "continues at an unusable URL"), ("endless", "too many files"),
                           ("toolong", "continues at an unusable URL")]:
        w.log()
        code, out, err = run("fetch", "hf://org/%s/" % repo, home + "/u", env=env)
        check(code in (3, 4) and sentence in err and os.listdir(home + "/u") == [], "%s: %d %s" % (repo, code, err))
        check(len(w.log()) == (1000 if repo == "endless" else 1), "%s: requests" % repo)
    shutil.rmtree(home)


def test_folders(w):
    """Folders that are listed in one page or in several: the model in them is opened, and all files are fetched."""
    host = "127.0.0.1:%d" % w.ports[0]
    env = {"AWS_ENDPOINT_URL": "http://" + host, "STORAGE_EMULATOR_HOST": host, "AZURE_STORAGE_ENDPOINT": "http://" + host,
           "HF_ENDPOINT": w.url("hub"), "HF_HOME": os.path.join(w.folder, "home"), "HF_TOKEN": "x"}
    local = run("hash", os.path.join(w.folder, "model"))[1].split()[0]
    names = sorted(os.listdir(w.folder + "/model"))
    for url in ["%s://store%s/model/" % (scheme, paged) for scheme in ("s3", "gs", "az", "abfs") for paged in ("", "-paged", "-marked")] + [
            "abfss://store@account.dfs.core.windows.net/model/", "hf://tree/any/model/"]:
        code, out, err = run("hash", url, env=env)
        check(code == 0 and out.split()[:1] == [local], "%s: %s" % (url, err))
        target = tempfile.mkdtemp()
        code, out, err = run("fetch", url, target, env=env)
        check(code == 0 and sorted(os.listdir(target)) == names, "%s: %s %s" % (url, os.listdir(target), err))
        for name in names:
            with open(os.path.join(target, name), "rb") as f, open(os.path.join(w.folder, "model", name), "rb") as g:
                check(f.read() == g.read(), "%s: %s differs" % (url, name))
        shutil.rmtree(target)
        code, out, err = run("fetch", url.replace("/model/", "/nothing/"), target, env=env)
        check(code == 3 and "the directory has no files" in err, "%s, empty: %d %s" % (url, code, err))
        shutil.rmtree(target)
    # A format that is a directory: more files than are kept open, one that changed, one that leads to another place.
    make_safetensors(w.folder + "/some.safetensors", {"t%d" % i: ([100], floats(100, i)) for i in range(70)})
    code, out, err = run("convert", w.folder + "/some.safetensors", w.folder + "/some.zarr")
    check(code == 0, "a store: " + err)
    code, out, err = run("convert", w.folder + "/some.safetensors", w.folder + "/plain.zarr", "-o", "codec=none")
    check(code == 0, "a plain store: " + err)
    local = run("hash", w.folder + "/some.zarr")[1].split()[0]
    for url in ("s3://store/some.zarr/", "hf://tree/any/some.zarr/", "az://store/plain.zarr/"):
        code, out, err = run("hash", url, env=env)
        check(code == 0 and out.split()[:1] == [local], "%s: %s" % (url, err))
    w.log()
    code, out, err = run("ls", "s3://store-slow/some.zarr/", env=env)
    seen = w.log()
    check(code == 0 and out.count(b"f32") == 70, "documents at once: " + err)
    check(len(seen) == 74, "%d requests for 71 documents, two listings and the beginning" % len(seen))
    check(max(h["now"] for h in seen) >= 4, "documents, one after the other")
    code, out, err = run("hash", w.url("ok/some.zarr/zarr.json"))
    check(code == 4 and "http cannot list directories" in err, "a store over http: %d %s" % (code, err))
    code, out, err = run("verify", "s3://store-longer/some.zarr/", env=env)
    check(code != 0 and "changed since it was listed" in err + out.decode(), "a file that changed: %d %s" % (code, err))
    w.log()
    code, out, err = run("ls", "az://store/model/", env={**env, "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=SECRET"})
    seen = w.log()
    check(code == 0 and all(h["path"].endswith("sv=1&sig=SECRET") for h in seen), "az: a listing without its signature")
    check(seen[0]["path"].startswith("/store?restype=container&comp=list&prefix=model%2F&delimiter=%2F&"),
          "az: asked for %s" % seen[0]["path"])
    code, out, err = run("fetch", "-o", "endpoint=http://" + host, "-o", "anonymous=yes", "-o", "connections=2",
                         "s3://store/m.safetensors", w.folder + "/by-option")
    check(code == 0 and not any("authorization" in h["headers"] for h in w.log()), "options of fetch: " + err)
    code, out, err = run("fetch", "-o", "endpiont=x", "s3://store/m.safetensors", w.folder + "/by-option")
    check(code == 2 and "unknown network option" in err, "an unknown option: %d %s" % (code, err))


def test_sums(w):
    """A fetched file must match the digest that the server gives."""
    target = tempfile.mkdtemp()
    for kind, name in [("google", "MD5"), ("azure", "MD5"), ("repr", "SHA-256"), ("digest", "SHA-256")]:
        code, out, err = run("fetch", w.url("sum-%s/m.safetensors" % kind), target)
        check(code == 0, "%s: %s" % (kind, err))
        os.unlink(target + "/m.safetensors")
        code, out, err = run("fetch", w.url("sum-%s-wrong/m.safetensors" % kind), target)
        check(code == 4 and "the downloaded file has the " + name in err and os.listdir(target) == [],
              "%s, wrong: %d %s" % (kind, code, err))
    code, out, err = run("fetch", w.url("sum-part-wrong/m.safetensors"), target)
    check(code == 0, "digests of a part: " + err)
    os.unlink(target + "/m.safetensors")
    env = {"AWS_ENDPOINT_URL": w.url("")[:-1], "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    for kind, name in [("crc32", "CRC-32"), ("sha256", "SHA-256"), ("etag", "MD5"), ("composite", None),
                       ("kms", None), ("forbidden", None)]:
        w.log()
        code, out, err = run("fetch", "s3://sums3-%s/m.safetensors" % kind, target, env=env)
        heads = [h for h in w.log() if h["method"] == "HEAD"]
        check(code == 0 and len(heads) == 1, "s3, %s: %s" % (kind, err))
        check("x-amz-checksum-mode" in heads[0]["headers"].get("authorization", ""), "s3, %s: not signed" % kind)
        os.unlink(target + "/m.safetensors")
        if name:
            code, out, err = run("fetch", "s3://sums3-%s-wrong/m.safetensors" % kind, target, env=env)
            check(code == 4 and "the downloaded file has the " + name in err and os.listdir(target) == [],
                  "s3, %s, wrong: %d %s" % (kind, code, err))
    shutil.rmtree(target)


def test_verify(w):
    """verify reads the complete object if the server gives a digest and the tensors have none."""
    def verify(url, name, **how):
        w.log()
        code, out, err = run("verify", url, **how)
        text, spans = out.decode() + err, [h["headers"].get("range", "") for h in w.log() if h["method"] == "GET"]
        check(code == (1 if name else 0), "%s: %d %s" % (url, code, text))
        check(not name or "the file has the " + name in text and "the server says" in text, "%s: %s" % (url, text))
        return len(spans)

    for kind, name in [("google", "MD5"), ("azure", "MD5"), ("repr", "SHA-256"), ("digest", "SHA-256")]:
        verify(w.url("sum-%s/m.safetensors" % kind), None)
        verify(w.url("sum-%s-wrong/m.safetensors" % kind), name)
    verify(w.url("sum-part-wrong/m.safetensors"), None)
    env = {"AWS_ENDPOINT_URL": w.url("")[:-1], "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    for kind, name in [("crc32", "CRC-32"), ("sha256", "SHA-256"), ("etag", "MD5")]:
        verify("s3://sums3-%s/m.safetensors" % kind, None, env=env)
        verify("s3://sums3-%s-wrong/m.safetensors" % kind, name, env=env)
    for kind in ("composite", "kms", "forbidden"):
        verify("s3://sums3-%s/m.safetensors" % kind, None, env=env)
    env = {"HF_ENDPOINT": w.url("hub"), "HF_HOME": w.folder + "/none", "HF_TOKEN": "x"}
    verify("hf://org/name/model.safetensors.index.json", None, env=env)
    code, out, err = run("verify", "hf://org/lying/model.safetensors.index.json", env=env)
    check(code == 1 and (out.decode() + err).count("the file has the SHA-256") == 4, "an index and shards: %s" % out)
    code, out, err = run("convert", os.path.join(w.folder, "m.safetensors"), os.path.join(w.folder, "digested.zt"), "-o", "digest=sha256")
    check(code == 0, "digests of its own: " + err)
    check(verify(w.url("sum-repr-wrong/digested.zt"), None) <= 4, "read although its tensors have digests")


def test_many_shards(w):
    """282 shards take one request each and one for the index, several at a time."""
    folder = os.path.join(w.folder, "many")
    os.mkdir(folder)
    places = {}
    for i in range(282):
        name = "model-%05d-of-00282.safetensors" % (i + 1)
        make_safetensors(folder + "/" + name, {"t%d" % i: ([10], floats(10, i))})
        places["t%d" % i] = name
    with open(folder + "/model.safetensors.index.json", "w") as f:
        json.dump({"metadata": {"total_size": 11280}, "weight_map": places}, f)
    w.log()
    code, out, err = run("ls", w.url("slow/many/model.safetensors.index.json"))
    seen = w.log()
    check(code == 0 and out.count(b"f32") == 282, "282 shards: " + err)
    check(len(seen) <= 283, "282 shards: %d requests" % len(seen))
    check(max(h["now"] for h in seen) >= 4, "282 shards, one after the other")
    shutil.rmtree(folder)


def test_tails(w):
    """Formats whose index is at the end."""
    source = os.path.join(w.folder, "big.safetensors")
    for name, most in [("big.zt", 2), ("big.gguf", 2), ("big.npy", 2)]:
        target = os.path.join(w.folder, name)
        code, out, err = run("convert", source, target)
        if code != 0:
            continue  # not a format that this build writes
        w.log()
        code, out, err = run("info", "--json", w.url("ok/" + name))
        check(code == 0, "%s: %s" % (name, err))
        info = json.loads(out)
        check(info["requests"] == len(w.log()) <= most and info["bytes_read"] <= 300000,
              "%s: %d requests, %d bytes" % (name, info["requests"], info["bytes_read"]))
        os.unlink(target)


def test_tls(w):
    """Certificates are checked; https never leads to http."""
    openssl = shutil.which("openssl")
    if not openssl:
        return print("skipped: there is no openssl")
    pem = os.path.join(w.folder, "pem")
    subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", pem + ".key", "-out", pem,
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    target = w.url("ok/m.safetensors")

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_GET(self):
            data = open(os.path.join(w.folder, "long.safetensors"), "rb").read()
            self.send_response(302 if "down" in self.path else 200)
            if "down" in self.path:
                self.send_header("Location", target)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            try:
                self.wfile.write(data)
            except OSError:
                pass  # it has seen enough

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, pem + ".key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "https://127.0.0.1:%d/" % server.server_port
    code, out, err = run("--trace", "info", url + "m.safetensors")
    check(code == 3 and "certificate" in err.lower(), "an unknown certificate: " + err)
    check(err.count("GET ") == 1, "an unknown certificate was tried again: " + err)
    code, out, err = run("info", url + "m.safetensors", env={"CURL_CA_BUNDLE": pem})
    check(code == 0, "a known certificate: " + err)
    code, out, err = run("info", url + "m.safetensors", env={"TENFOLD_INSECURE_TLS": "1"})
    check(code == 0 and "the server is not authenticated" in err, "unchecked: " + err)
    code, out, err = run("info", url + "down", env={"CURL_CA_BUNDLE": pem})
    check(code == 3 and "from https to http" in err, "to http: " + err)
    server.shutdown()


main(globals())
