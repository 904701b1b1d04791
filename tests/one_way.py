#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/one_way.py TENFOLD: convert, convert --select, a rename that renames nothing, merge of one
file and a dry run agree, for files of every format to every format: exit code, plan, bytes."""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

tenfold = os.path.abspath(sys.argv[1])
here = pathlib.Path(__file__).resolve().parent
PER_FORMAT = 1  # one_way.c tests all of them; this test is about the commands
WAYS = {
    "convert": ["convert", "IN", "OUT"],
    "--select": ["convert", "--select", "*", "IN", "OUT"],
    "--rename": ["convert", "--rename", "s/^//", "IN", "OUT"],
    "merge": ["merge", "-o", "OUT", "IN"],
}


def run(arguments, source, target, *more):
    words = [{"IN": str(source), "OUT": str(target)}.get(a, a) for a in arguments]
    return subprocess.run([tenfold, *words, *more], capture_output=True, text=True, errors="replace")


def plan_of(result):
    """The lines of the plan, and the sentence of the refusal, without the name of a command."""
    lines = [line for line in result.stderr.splitlines() if not line.endswith(" renamed")]
    return [re.sub(r"^tenfold: \S+: (note: )?", "", line) for line in lines]


@functools.cache
def has_tensors(source):
    answer = subprocess.run([tenfold, "ls", "--json", str(source)], capture_output=True)
    return answer.returncode == 0 and json.loads(answer.stdout)["tensors"] != []


def main():
    listed = json.loads(subprocess.run([tenfold, "formats", "--json"], capture_output=True).stdout)
    formats = [f["name"] for f in listed["formats"] if f["write"]]
    sources = []
    for folder in sorted((here / "formats").iterdir()):
        files = sorted(p for p in (folder / "valid").glob("*") if p.is_file() and p.stat().st_size)
        step = max(1, len(files) // PER_FORMAT)
        sources += files[::step][:PER_FORMAT]
    bad = tried = refused = 0
    with tempfile.TemporaryDirectory() as room:
        for source in sources:
            for name in formats:
                tried += 1
                answers = {}
                for way, words in WAYS.items():
                    if way == "--rename" and not has_tensors(source):
                        continue  # with nothing to rename, there is an error of its own
                    target = pathlib.Path(room, way.strip("-"))
                    result = run(words, source, target, "-t", name, "--no-sync")
                    data = target.read_bytes() if target.exists() else None
                    target.unlink(missing_ok=True)
                    answers[way] = (result.returncode, data, plan_of(result))
                dry = run(WAYS["convert"], source, pathlib.Path(room, "dry"), "-t", name, "--dry-run")
                first = answers["convert"]
                refused += first[0] == 5
                wrong = [way for way, answer in answers.items() if answer != first]
                if dry.returncode != first[0]:
                    wrong.append("--dry-run")
                if wrong:
                    bad += 1
                    print(f"{source.relative_to(here)} as {name}: {', '.join(wrong)}")
    print(f"{tried} pairs, {refused} refused, {bad} bad")
    return 1 if bad or not refused or refused == tried else 0


sys.exit(main())
