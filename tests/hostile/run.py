#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replays the corpus through the command, each file on its own and under limits.

    run.py TENFOLD [PREFIX]     the files are made first, in $TENFOLD_HOSTILE or build/hostile

The result must be the one in corpus.json: opened or not, the status, the offset, the number of tensors. For
every file there is no crash, no memory beyond 16 times the file and 16 MiB (above what the command needs
for any file), at most two seconds of processor time, one line for each error, no control character to a
terminal, no incomplete output, and all outputs verify.

All files are listed. Every fifth one is converted and repaired, or all of them with TNF_FULL in the
environment.

With AddressSanitizer, address space cannot be limited: instead, no single allocation may be larger than 16
MiB. Ten seconds are allowed. All files are verified; the other checks are made with every fortieth file
only, because tests/alone/corpus.c does the same and more with all files in one process.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import make

CORPUS = make.corpus()
EXITS = {"TNF_EFORMAT": 4, "TNF_ETRUNCATED": 4, "TNF_EUNSUPPORTED": 4, "TNF_ELIMIT": 4, "TNF_EDIGEST": 4,
         "TNF_ENOTFOUND": 3, "TNF_EIO": 3}
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
                    "\U000e0000-\U000e0fff]")
MIB = 1 << 20


class Wrong(Exception):
    """A file does not give the expected result."""


def need(ok, *words):
    if not ok:
        raise Wrong(" ".join(str(w) for w in words))


class Command:
    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.asan = b"__asan_init" in pathlib.Path(path).read_bytes()
        self.env = {**os.environ, "MALLOC_ARENA_MAX": "1", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
        if self.asan:
            self.env["ASAN_OPTIONS"] = "detect_leaks=1:allocator_may_return_null=1:max_allocation_size_mb=16:handle_sigill=1"
        self.idle = None if self.asan else self.measure()

    def run(self, *args, room=None):
        """room: MiB of address space. Returns exit code, stdout, stderr."""
        limits = f"ulimit -t {10 if self.asan else 2}; ulimit -c 0;" + (f" ulimit -v {room * 1024};" if room else "")
        done = subprocess.run(["/bin/sh", "-c", limits + ' exec "$@"', "sh", self.path, *map(str, args)], env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=3600, check=False)
        error = done.stderr.decode("utf-8", "backslashreplace")
        need(0 <= done.returncode < 126, args[0], "died:", done.returncode, error[-3000:])
        need("Sanitizer" not in error and "runtime error:" not in error, args[0], "sanitizer:", error[-3000:])
        return done.returncode, done.stdout, error

    def measure(self):
        """The address space, in MiB, that is needed to convert a tiny file."""
        with tempfile.TemporaryDirectory() as scratch:
            out = pathlib.Path(scratch) / "out.zt"
            sound = CORPUS / "gptrs-archive/P/sound.gten"
            low, high = 1, 4096
            while low < high:
                middle = (low + high) // 2
                try:
                    code = self.run("convert", "--force", sound, out, room=middle)[0]
                except Wrong:
                    code = 3
                low, high = (low, middle) if code == 0 else (middle + 1, high)
        return low

    def limited(self, entry, *args):
        """Runs the command under the limits for this file."""
        size = sum(p.stat().st_size for p in files_of(entry))
        return self.run(*args, room=None if self.asan else self.idle + 16 + 16 * size // MIB + 1)


def path_of(entry):
    return CORPUS / entry["file"]


def statuses(entry):
    """The statuses that are right, mostly only one."""
    return entry["status"] if isinstance(entry["status"], list) else [entry["status"]]


def files_of(entry):
    path = path_of(entry)
    inside = len(pathlib.PurePosixPath(entry["file"]).parts) > 3
    return list(path.parent.iterdir()) if inside else [path]


def check_line(entry, error):
    lines = error.splitlines()
    need(len(lines) == 1, "not one line on stderr:", error)
    need(lines[0].startswith(f"tenfold: {path_of(entry)}: "), "not of that file:", lines[0])
    need(not UNSAFE.search(lines[0]), "control characters on stderr:", repr(lines[0]))


def check_info(command, entry):
    rejected = entry["verdict"] == "rejected"
    # `info` lists a model with missing shards; `meta` needs all of them
    absent = rejected and ("TNF_ENOTFOUND" in statuses(entry) or entry.get("message") == "missing")
    verb = "meta" if absent else "info"
    code, out, error = command.limited(entry, verb, "--json", path_of(entry))
    if rejected:
        wanted = {EXITS[s] for s in statuses(entry)}
        need(code in wanted, verb, "exits with", code, "instead of", wanted, error)
        need(out == b"", verb, "writes to stdout:", out[:200])
        check_line(entry, error)
        return
    need(code == 0, "info exits with", code, error)
    told = json.loads(out)
    need(told["tensors"] == entry["tensors"], told["tensors"], "tensors instead of", entry["tensors"])
    need(told["format"] == entry["format"], "format is", told["format"])
    if entry.get("warnings") is not None:
        need(len(told["warnings"]) == entry["warnings"], "warnings:", told["warnings"])
    if entry["class"] == "H":
        for verb, *more in (("ls", "-v"), ("info", "-v"), ("ls", "--json"), ("info", "--json"), ("hash", "--tensors"),
                            ("stat",), ("convert", "-v", "--dry-run", "-t", "primitiv")):
            to = ["out.primitiv"] if verb == "convert" else []
            code, out, error = command.limited(entry, verb, *more, path_of(entry), *to)
            need(code in ((0, 5) if verb == "convert" else (0,)), verb, "exits with", code, error)
            text = out.decode("utf-8", "surrogateescape") + error
            need(not UNSAFE.search(text), "control characters from", verb, *more, repr(text))


def check_verdict(entry, told):
    problems, opened = told["problems"], told["opened"]
    if entry["verdict"] == "accepted":
        need(opened and not problems, "not accepted:", problems)
        return
    need(opened == (entry["verdict"] == "damaged"), "opened is", opened, problems)
    need(problems, "no problems")
    for p in problems:
        code = p["code"] == entry["rule"] if entry.get("rule") else p["code"] in statuses(entry)
        if code and entry.get("offset") in (None, p["offset"]) and entry.get("message", "") in p["message"]:
            return
    raise Wrong(f"verify tells {json.dumps(problems)}")


def check_output(command, entry, scratch, *args):
    """Checks a command that writes: its output is complete, or there is none. Returns the output,
    if there is one."""
    out = scratch / (args[0] + "_" + entry["file"].replace("/", "_") + args[-1])
    code, _, error = command.limited(entry, args[0], "--no-sync", *args[1:-1], path_of(entry), out)
    there = {p.name for p in scratch.iterdir() if p.name.startswith(out.name) or ".tmp-" in p.name}
    done = code == 0 or (args[0] == "repair" and code == 1)
    need(code in (0, 1, 4, 5) or (code == 3 and entry["verdict"] == "rejected"), args[0], "exits with", code, error)
    need(there == ({out.name} if done else set()), args[0], "exits with", code, "and leaves", sorted(there))
    if entry["verdict"] == "rejected" and args[0] == "convert":
        need(not done, "converted what does not open")
    if entry["verdict"] == "accepted":
        need(code in (0, 5) or args[0] == "repair", args[0], "exits with", code, error)
        # A last line without a line break may be incomplete, and unknown keys and types cannot be kept,
        # so repair reports a loss.
        doubtful = any(w in entry["file"] for w in ("twice", "no_last_newline.glove", "unknown_root_key",
                                                      "gguf/I/then_", "gguf/J/big_iq1_s", "pytorch/J/dtype",
                                                      "pytorch/J/storage_class"))
        doubtful = doubtful or "can only be read" in error
        need(args[0] != "repair" or code == 0 or doubtful, "something lost of a sound file:", error)
    return out if code == 0 and entry["verdict"] != "damaged" else None


def check_one(job):
    command, entry, scratch, told = job
    try:
        check_verdict(entry, told)
        outputs = []
        pick = zlib.crc32(entry["file"].encode())
        if not command.asan or pick % 40 == 0:
            check_info(command, entry)
        if pick % (40 if command.asan else 1 if "TNF_FULL" in os.environ else 5) == 0:
            own = scratch / str(pick)
            own.mkdir(exist_ok=True)
            target = ("safetensors", ".safetensors") if pick // 40 % 2 else ("ztensor2", ".zt")
            outputs.append(check_output(command, entry, own, "convert", "-t", *target))
            outputs.append(check_output(command, entry, own, "repair", "." + entry["file"].split(".")[-1]))
        return None, [o for o in outputs if o]
    except Wrong as wrong:
        return f"{entry['file']}: {wrong}", []
    except Exception as error:  # the runner goes on with the other files
        return f"{entry['file']}: {type(error).__name__}: {error}", []


def verify_all(command, paths):
    """{path: the result of verify}, for many files at once."""
    told = {}
    for at in range(0, len(paths), 200):
        part = [str(p) for p in paths[at:at + 200]]
        done = subprocess.run([command.path, "verify", "--json", *part], env=command.env, capture_output=True, timeout=3600,
                              check=False)
        lines = done.stdout.decode().splitlines()
        need(done.returncode >= 0 and len(lines) == len(part), f"verify of {len(part)} files gives {len(lines)} lines and",
             done.returncode, done.stderr.decode("utf-8", "backslashreplace")[-3000:])
        told.update({p: json.loads(line) for p, line in zip(part, lines)})
    return told


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    command = Command(sys.argv[1])
    entries = json.loads(make.LIST.read_text(encoding="utf-8"))["files"]
    entries = [e for e in entries if e["file"].startswith(sys.argv[2] if len(sys.argv) > 2 else "")]
    failed = []
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        told = verify_all(command, [path_of(e) for e in entries])
        jobs = [(command, e, pathlib.Path(scratch), told[str(path_of(e))]) for e in entries]
        outputs = []
        for complaint, out in pool.map(check_one, jobs):
            failed += [complaint] if complaint else []
            outputs += out
        for path, said in verify_all(command, outputs).items():
            if not said["ok"]:
                failed.append(f"{pathlib.Path(path).name}: the output does not verify: {said['problems']}")
    print("\n".join(failed), end="\n" if failed else "")
    print(f"{len(entries)} files, {len(outputs)} outputs, {len(failed)} failed"
          + ("" if command.asan else f"; {command.idle} MiB of address space for nothing"))
    sys.exit(1 if failed or not entries else 0)


if __name__ == "__main__":
    main()
