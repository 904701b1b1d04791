#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that every command has tests. complete.py TENFOLD

Asks the command for its commands and their options. For each of them there must be:
    cases/help-NAME    exactly what NAME --help and help NAME print
    cases/NAME         a call without --json that succeeds and prints something
    cases/NAME-json    if it has --json: only documents, and "exit N" after each call
In all cases, documents are strictly valid JSON (no key twice, no NaN, no numbers that overflow),
and every documented exit code occurs in some case.
"""
import json
import pathlib
import re
import subprocess
import sys

CASES = pathlib.Path(__file__).resolve().parent / "cases"


def unique(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"a key twice among {keys}")
    return dict(pairs)


def no_constant(text):
    raise ValueError(f"{text} is no JSON")


def finite(text):
    if float(text) in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is beyond any double")
    return float(text)


STRICT = json.JSONDecoder(object_pairs_hook=unique, parse_constant=no_constant, parse_float=finite)


def read(case, part):
    path = CASES / case / part
    return path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""


def documents(text):
    """The documents that begin at the beginning of a line; each must end at the end of a line."""
    at = 0
    while at < len(text):
        if text[at] not in "{[":
            at = text.find("\n", at) + 1 or len(text)
            continue
        found, end = STRICT.raw_decode(text, at)
        if text[end:end + 1] != "\n":
            raise ValueError(f"{text[end:end + 20]!r} behind a document")
        yield found
        at = end + 1


def calls(case, name):
    """The lines of a case that call that command. A call that continues on the next line is
    joined."""
    lines = read(case, "cmd").replace("\\\n", " ").splitlines()
    return [line for line in lines if re.search(rf'"\$TENFOLD"( -\S+)* {name}( |;|$)', line)]


def check_help(tenfold, name):
    wanted = read(f"help-{name}", "out")
    if not wanted:
        yield f"there is no case help-{name}"
        return
    for args in ([name, "--help"], ["help", name]):
        done = subprocess.run([tenfold, *args], capture_output=True, text=True, check=False)
        if (done.returncode, done.stdout, done.stderr) != (0, wanted, ""):
            yield f"cases/help-{name}/out is not what {' '.join(args)} prints"


def check_text(name):
    if not any("--json" not in line for line in calls(name, name)):
        yield f"no case {name} calls it without --json"
    elif not read(name, "out") + read(name, "err") or read(name, "exit"):
        yield f"the case {name} prints nothing, or fails"


def check_json(name):
    case = f"{name}-json"
    asked = calls(case, name)
    if not asked or not all("--json" in line and 'echo "exit $?"' in line for line in asked):
        yield f'no case {case} calls it with --json, each time with echo "exit $?" behind'
        return
    answers = re.split(r"^exit [0-5]\n", read(case, "out"), flags=re.M)
    if answers.pop():
        yield f"{case}: something behind the last exit code"
    try:
        for answer in answers:
            found = list(documents(answer)) if answer[:1] in "{[" else []
            if len(found) < 2 or len(found) != answer.count("\n"):
                STRICT.decode(answer)  # otherwise each line is a document
    except ValueError as error:
        yield f"{case}: {error}"


def check_all():
    codes = {"0"}
    for case in sorted(p.name for p in CASES.iterdir()):
        codes |= set(re.findall(r"^(?:exit )?([0-9]+)$", read(case, "exit") + read(case, "out"), flags=re.M))
        if "json" in case.split("-"):
            try:
                list(documents(read(case, "out")))
            except ValueError as error:
                yield f"{case}: {error}"
    for code in set("012345") - codes:
        yield f"no case exits with {code}"


def main():
    tenfold = sys.argv[1]
    overview = subprocess.run([tenfold, "help"], capture_output=True, text=True, check=True).stdout
    listed = overview.split("\ncommands:\n")[1].split("\n\n")[0]
    names = re.findall(r"^  (\S+)", listed, flags=re.M)
    missing = [] if len(names) > 20 else ["the list of commands is not where it was"]
    for name in names:
        missing += check_help(tenfold, name)
        missing += check_text(name)
        if re.search(r"^      --json\b", read(f"help-{name}", "out"), flags=re.M):
            missing += check_json(name)
    missing += check_all()
    print("".join(m + "\n" for m in missing), end="")
    print(f"complete: {len(names)} commands, {len(missing)} complaints")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
