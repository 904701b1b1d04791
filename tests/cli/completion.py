#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an interactive bash makes of completions. completion.py TENFOLD

Names come from files, and files from strangers: a name put on the line must arrive at the command as
it is, and nothing in it may run. Types into a bash in a pseudo-terminal, presses TAB and ENTER, and
looks at what a stand-in for the command was given.
"""
import json
import os
import pathlib
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile

# What is typed (to be completed), and the name that must arrive.
NAMES = [
    ("x", "x;touch PWNED"), ("h", "h$(touch PWNED)"), ("b`", "b`touch PWNED`"), ("with", "with space"), ("it", "it's"),
    ("dq", 'dq"uote'), ("back", "back\\slash"), ("amp", "amp&touch PWNED"), ("bang", "bang!!"), ("glob", "glob*[0]?"),
    ("brace", "brace{a,b}"), ("redirect", "redirect>PWNED"), ("model:0", "model:0/kernel"), ("at", "at@sign=1:2"),
    ("~", "~root"), ("grü", "grüße/東京"), ("#", "#hash"), ("two", "two  blanks\\ and 'quotes' \"of\" $HOME"),
    ("semi:a", "semi:a;touch PWNED"), ("p|", "p|touch PWNED"),
]
# Whole lines; what the command is to be given.
LINES = [
    ("cat f.safetensors 'with", ["cat", "f.safetensors", "with space"]),
    ("cat f.safetensors 'x;", ["cat", "f.safetensors", "x;touch PWNED"]),
    ('cat f.safetensors "x;', ["cat", "f.safetensors", "x;touch PWNED"]),
    ("cat f.safetensors with\\ s", ["cat", "f.safetensors", "with space"]),
    ("convert f.safetensors --select=x", ["convert", "f.safetensors", "--select=x;touch PWNED"]),
    ("convert f.safetensors --exclude mod", ["convert", "f.safetensors", "--exclude", "model:0/kernel"]),
    ("ls f.safetensors --match h", ["ls", "f.safetensors", "--match", "h$(touch PWNED)"]),
    ("cat a\\ file.safetensors on", ["cat", "a file.safetensors", "only"]),
    ("cat 'a file.safetensors' on", ["cat", "a file.safetensors", "only"]),
    ("meta f.safetensors safetensors.metadata.k", ["meta", "f.safetensors", "safetensors.metadata.key;touch PWNED"]),
    ("ls --acc=mm", ["ls", "--acc=mm"]),
    ("ls --access=mm", ["ls", "--access=mmap"]),
    ("verif", ["verify"]),
    ("hash --check lis", ["hash", "--check", "list of hashes"]),
]


def safetensors(path, names, metadata):
    header = {n: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i, n in enumerate(names)}
    text = json.dumps({**header, "__metadata__": metadata}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(len(names)))


class Shell:
    """bash in a pseudo-terminal; `tenfold` notes its arguments in the file `given`."""

    def __init__(self, where, path):
        env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TERM": "dumb", "HISTFILE": "",
               "INPUTRC": "/dev/null", "PS1": "$ "}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(where)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], env)
        self.send(". ./tenfold.bash; PS1='rea''dy'$' '; bind 'set enable-bracketed-paste off'\r")

    def send(self, text):
        """Types, and waits until the prompt is seen."""
        os.write(self.fd, text.encode())
        seen = b""
        while b"ready " not in seen:
            if not select.select([self.fd], [], [], 60)[0]:
                raise TimeoutError(seen)
            seen += os.read(self.fd, 65536)

    def close(self):
        os.write(self.fd, b"\x15exit\r")
        os.waitpid(self.pid, 0)


def given(shell, where, line):
    """What the command gets of the line after TAB and ENTER."""
    note = where / "given"
    if note.exists():
        note.unlink()
    shell.send(f"tenfold {line}\t\r")
    return note.read_bytes().decode().split("\0")[:-1] if note.exists() else None


def check(where, path):
    shell = Shell(where, path)
    # Characters of the shell are typed behind a backslash, as one has to.
    typed = [("".join("\\" + c if c in "`|~#" else c for c in begin), name) for begin, name in NAMES]
    wanted = [(f"cat f.safetensors {begin}", ["cat", "f.safetensors", name]) for begin, name in typed]
    for line, args in wanted + LINES:
        got = given(shell, where, line)
        if got != args:
            yield f"{line!r} and TAB gives {got}, not {args}"
    if (where / "PWNED").exists():
        yield "a name was run"
    shell.close()


def main():
    tenfold = str(pathlib.Path(sys.argv[1]).resolve())
    if not shutil.which("bash"):
        print("completion: there is no bash")
        return
    with tempfile.TemporaryDirectory() as made:
        where, path = pathlib.Path(made) / "work", pathlib.Path(made) / "bin"
        where.mkdir()
        path.mkdir()
        subprocess.run([tenfold, "--generate", "bash", str(where)], check=True)
        safetensors(where / "f.safetensors", [name for _, name in NAMES] + ["--force"], {"key;touch PWNED": "v"})
        safetensors(where / "a file.safetensors", ["only"], {})
        (where / "list of hashes").write_text("")
        stand_in = path / "tenfold"
        stand_in.write_text('#!/bin/sh\nif [ "$1" = --complete ]; then exec "' + tenfold + '" "$@"; fi\n'
                            "printf '%s\\0' \"$@\" > given\n")
        stand_in.chmod(0o755)
        wrong = [*check(where, path)]
    print("".join(w + "\n" for w in wrong), end="")
    print(f"completion: {len(NAMES) + len(LINES)} lines, {len(wrong)} complaints")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
