#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks every fixture of every format through the command.

    run.py TENFOLD [FORMAT...]

Each tests/formats/FORMAT has files in valid/ and reject/ and an expect.json that was not made by
Tenfold:

    {"valid":  {"FILE": {"format", "version", "lenient", "warnings", "attrs": {a subset},
                         "canonical": a bool, or a part of the message of `verify --canonical`,
                         "same_bytes": true if writing it again gives the same bytes, also through zTensor 2,
                         "tensors": [{"name", "dtype", "shape", "order", "sha256", "attrs",
                                      "parts": {"ROLE": sha256}, "strings": […]}]}},
     "reject": {"FILE": {"code", "offset" or null, "message": a part of it,
                         "rule": its name in the specification, if there is one,
                         "lenient": "opens" or "rejects"}}}

"parts": patterns of files in valid/ that have no format by themselves, since other files name them. Tests of single
files leave these out (tests/support/files.h).

"documents": attributes that are JSON, kept as text. tests/content_hash.py cannot check files that have them.

sha256 is the digest of the elements, little-endian and in C order, as `cat --raw` writes them; null or absent if the
bytes cannot be read. Only what an expectation mentions is checked.

A command with AddressSanitizer or counters starts slowly: it verifies every file, but the other checks are made with
every thirtieth file only. In such a build, other tests use all files within one process (roundtrip, slices, truncate,
corpus).
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
# The exit code that belongs to each status if a file does not open.
EXITS = {"TNF_EFORMAT": 4, "TNF_ETRUNCATED": 4, "TNF_EUNSUPPORTED": 4, "TNF_ELIMIT": 4,
         "TNF_EDIGEST": 4, "TNF_ENOTFOUND": 3, "TNF_EIO": 3, "TNF_ENET": 3, "TNF_ENOMEM": 3,
         "TNF_EINVAL": 2}


class Wrong(Exception):
    """A fixture does not give the expected result."""


def need(ok, *words):
    if not ok:
        raise Wrong(" ".join(str(word) for word in words))


class Command:
    def __init__(self, path):
        self.path = path
        slow = b"__asan_init", b"__gcov_init"
        self.share = 30 if any(word in pathlib.Path(path).read_bytes() for word in slow) else 1

    def picks(self, path):
        """Is this file one of the sample?"""
        return zlib.crc32(os.path.relpath(path, HERE).encode()) % self.share == 0

    def run(self, *args):
        done = subprocess.run([self.path, *args], capture_output=True, check=False)
        error = done.stderr.decode("utf-8", "backslashreplace")
        need(done.returncode >= 0, f"{args[0]} died of signal {-done.returncode}:", error)
        need("Sanitizer" not in error and "runtime error:" not in error, f"{args[0]}:", error)
        return done.returncode, done.stdout, error

    def json(self, *args):
        code, out, error = self.run(*args)
        need(code == 0, f"{args[0]} exits with {code}:", error.strip())
        return parse(out)

    def verify(self, directory, names, *options):
        """Problems of many files at once: {name: (opened, [problem])}."""
        found = {}
        for at in range(0, len(names), 200):
            part = names[at:at + 200]
            _, out, _ = self.run("verify", "--json", *options, *[str(directory / n) for n in part])
            lines = out.decode().splitlines()
            need(len(lines) == len(part), "verify gives", len(lines), "lines for", len(part))
            for name, line in zip(part, lines):
                told = parse(line)
                need(told["file"] == str(directory / name), "verify tells of", told["file"])
                need(told["ok"] == (not told["problems"]), name, "ok is", told["ok"])
                found[name] = told["opened"], told["problems"]
        return found


def parse(text):
    def refuse(word):
        raise Wrong(f"JSON with a bare {word}")

    def unique(pairs):
        need(len(pairs) == len({key for key, _ in pairs}), "JSON with a key twice:", pairs)
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


def need_subset(want, have, where):
    """Checks that every key of want is in have with the same value, and that numbers are of the
    same kind."""
    for key, value in want.items():
        need(key in have, where, repr(key), "is missing")
        same = json.dumps(have[key], sort_keys=True) == json.dumps(value, sort_keys=True)
        need(same, where, repr(key), "is", have[key], "instead of", value)


def as_argument(name):
    """A tensor's name as an argument: the form that `ls` prints if the bytes cannot be passed."""
    return name.replace("\0", "\\x00")


def check_tensors(command, path, want, options):
    listed = command.json("ls", "--json", *options, path)
    need(listed["format"] == want["format"], "ls says the format is", listed["format"])
    have, want = listed["tensors"], want["tensors"]
    need(len(have) == len(want), len(have), "tensors instead of", len(want))
    last = {t["name"]: i for i, t in enumerate(want) if t.get("sha256")}
    for i, (h, w) in enumerate(zip(have, want)):
        name = w["name"]
        for key in ("name", "dtype", "shape", "order", "layout", "nbytes"):
            if key in w:
                need(h[key] == w[key], repr(name), key, "is", h[key], "instead of", w[key])
        need_subset(w.get("attrs", {}), h["attrs"], repr(name))
        if w.get("sha256") and last[name] == i:  # if two tensors have one name, one is found
            code, out, error = command.run("cat", "--raw", *options, path, as_argument(name))
            need(code == 0, "cat", repr(name), "exits with", code, error.strip())
            digest = hashlib.sha256(out).hexdigest()
            need(digest == w["sha256"], repr(name), "has other bytes:", len(out), "of them")
        for role, want_digest in w.get("parts", {}).items():
            code, out, error = command.run("cat", "--raw", *options, path, f"{name}#{role}")
            need(code == 0, "cat", repr(name), role, "exits with", code, error.strip())
            digest = hashlib.sha256(out).hexdigest()
            need(digest == want_digest, repr(name), role, "has other bytes:", len(out), "of them")
        if "strings" in w:
            told = command.json("cat", "--json", *options, path, as_argument(name))["values"]
            need(told == w["strings"], repr(name), "has other strings:", told[:20])


def check_valid(command, path, want):
    options = ["--lenient"] if want.get("lenient") else []
    if not command.picks(path):
        return
    info = command.json("info", "--json", *options, path)
    for key in ("format", "version", "size", "payload"):
        if key in want:
            need(info[key] == want[key], key, "is", repr(info[key]), "instead of", repr(want[key]))
    if "warnings" in want:
        need(len(info["warnings"]) == want["warnings"], "warnings:", info["warnings"])
    need_subset(want.get("attrs", {}), info["attrs"], "attribute")
    if os.path.isfile(path) and "size" not in want:
        need(info["size"] == os.path.getsize(path), "size is", info["size"])
    if options:  # a file that opens leniently must not open without it
        code, _, _ = command.run("info", path)
        need(code in (3, 4), "opens without --lenient")
    if "tensors" in want:
        need(info["tensors"] == len(want["tensors"]), info["tensors"], "tensors")
        check_tensors(command, path, want, options)
    if want.get("same_bytes"):
        check_same_bytes(command, path)


def check_same_bytes(command, path):
    """Reads and writes a file of another program."""
    with tempfile.TemporaryDirectory() as scratch:
        again, between = os.path.join(scratch, "again"), os.path.join(scratch, "between")
        for steps in ([path, again], [path, between, again]):
            for a, b in zip(steps, steps[1:]):
                to = "ztensor2" if b == between else command.json("info", "--json", path)["format"]
                code, _, error = command.run("convert", "-q", "--no-sync", "--force", "-t", to, a, b)
                need(code == 0, "convert exits with", code, error.strip())
            with open(path, "rb") as have, open(again, "rb") as made:
                need(have.read() == made.read(), "written again it is another file, in", len(steps) - 1, "steps")


def need_problem(want, problems, what):
    for p in problems:
        if (p["code"] == want.get("rule", want["code"]) and want.get("message", "") in p["message"]
                and want.get("offset") in (None, p["offset"])):
            return
    raise Wrong(f"{what}: {json.dumps(problems)} is not {json.dumps(want)}")


def check_canonical(found, want):
    told = [p["message"] for p in found if p["code"] == "Canonical"]
    if isinstance(want, bool):
        need(want == (not told), "canonical is", want, "but told is", told)
    else:
        need(any(want in message for message in told), repr(want), "is not in", told)


def check_reject(command, path, want, strict, lenient):
    opened, problems = strict
    need_problem(want, problems, "verify")
    if "lenient" in want:
        need(lenient[0] == (want["lenient"] == "opens"), "leniently it",
             "opens" if lenient[0] else "does not open: " + json.dumps(lenient[1]))
    if not command.picks(path):
        return
    # `info` lists a model with missing shards; `meta` needs all of them
    command_name = "meta" if want["code"] == "TNF_ENOTFOUND" else "info"
    code, out, error = command.run(command_name, path)
    if opened:
        need(code == 0, "verify opens it,", command_name, "exits with", code)
    else:
        need(code == EXITS[want["code"]], "exit code", code, "for", want["code"])
        need(out == b"", command_name, "writes to stdout:", out)
        lines = error.splitlines()
        need(len(lines) == 1, "not one line on stderr:", error)
        need(lines[0].startswith("tenfold: "), lines[0])
        at = lines[0].find(want.get("message", ""))
        need(at >= 0, "the message is not in:", lines[0])
        if want.get("offset") is not None:
            need(lines[0].endswith(f" (at byte {want['offset']})"), "no offset in:", lines[0])


def jobs_of(command, folder):
    """(label, function) for every expectation of a format."""
    expect = json.loads((folder / "expect.json").read_text(encoding="utf-8"))
    valid, reject = expect.get("valid", {}), expect.get("reject", {})
    label = folder.name

    def listed(kind, expected):
        have = {p.name for p in (folder / kind).iterdir()} if (folder / kind).is_dir() else set()
        named = {name.split("/")[0] for name in expected}
        need(have == named, f"{kind}/ and expect.json differ:", sorted(have ^ named))

    yield f"{label}/valid", lambda: listed("valid", valid)
    yield f"{label}/reject", lambda: listed("reject", reject)
    strict = command.verify(folder / "reject", list(reject))
    lenient = command.verify(folder / "reject", list(reject), "--lenient")
    for name, want in valid.items():
        path = str(folder / "valid" / name)
        yield f"{label}/valid/{name}", lambda p=path, w=want: check_valid(command, p, w)
    plain = [name for name, want in valid.items() if not want.get("lenient")]
    for name, (_, problems) in command.verify(folder / "valid", plain).items():
        if "problems" not in valid[name]:
            yield (f"{label}/valid/{name} verifies",
                   lambda found=problems: need(not found, "problems:", found))
    asked = [name for name, want in valid.items() if "canonical" in want]
    for name, (_, problems) in command.verify(folder / "valid", asked, "--canonical").items():
        yield (f"{label}/valid/{name} canonical",
               lambda found=problems, w=valid[name]["canonical"]: check_canonical(found, w))
    for name, want in reject.items():
        path = str(folder / "reject" / name)
        yield (f"{label}/reject/{name}",
               lambda p=path, w=want, s=strict[name], m=lenient[name]:
               check_reject(command, p, w, s, m))


def attempt(job):
    label, function = job
    try:
        function()
        return None
    except Wrong as wrong:
        return f"{label}: {wrong}"
    except Exception as error:  # the runner goes on with the other files
        return f"{label}: {type(error).__name__}: {error}"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    # Ends endless loops, on a busy machine as well as an idle one: seconds of the processor for each
    # process.
    resource.setrlimit(resource.RLIMIT_CPU, (600, 600))
    command = Command(os.path.abspath(sys.argv[1]))
    wanted = sys.argv[2:] or sorted(p.parent.name for p in HERE.glob("*/expect.json"))
    passed, failed = 0, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for name in wanted:
            try:
                jobs = list(jobs_of(command, HERE / name))
            except (Wrong, OSError, ValueError) as error:
                failed.append(f"{name}: {error}")
                continue
            for complaint in pool.map(attempt, jobs):
                passed += complaint is None
                failed += [complaint] if complaint else []
    print("\n".join(failed), end="\n" if failed else "")
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
