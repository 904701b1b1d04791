#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Completions in an interactive shell. completion.py TENFOLD bash|zsh|fish

Names come from files, which are untrusted: a completed name must reach the command unchanged, and
nothing in it may be executed. This test types into a shell in a pseudo-terminal, presses TAB and
ENTER, and compares the arguments of a replacement for the command. Exit status 77: the shell is not
installed.
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

# The text to complete, and the name that must reach the command.
NAMES = [
    ("x", "x;touch PWNED"), ("h", "h$(touch PWNED)"), ("b`", "b`touch PWNED`"), ("with", "with space"), ("it", "it's"),
    ("dq", 'dq"uote'), ("back", "back\\slash"), ("amp", "amp&touch PWNED"), ("bang", "bang!!"), ("glob", "glob*[0]?"),
    ("brace", "brace{a,b}"), ("redirect", "redirect>PWNED"), ("model:0", "model:0/kernel"), ("at", "at@sign=1:2"),
    ("~", "~root"), ("grü", "grüße/東京"), ("#", "#hash"), ("two", "two  blanks\\ and 'quotes' \"of\" $HOME"),
    ("semi:a", "semi:a;touch PWNED"), ("p|", "p|touch PWNED"),
]
# Complete lines, and the expected arguments.
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
    """A shell in a pseudo-terminal; `tenfold` notes its arguments in the file `given`."""
    command, begin = ["bash", "--norc", "--noprofile", "-i"], (
        ". ./tenfold.bash; bind 'set enable-bracketed-paste off'")
    terminal = "dumb"
    several = []  # beginnings that it does not complete, because several names match
    special, lines = "`|~#", LINES  # characters that must be typed after a backslash

    def __init__(self, where, path):
        env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TERM": self.terminal, "HISTFILE": "",
               "INPUTRC": "/dev/null", "PS1": "$ ", "HOME": str(where), "XDG_CONFIG_HOME": str(where / ".config"),
               "XDG_DATA_HOME": str(where / ".data"), "XDG_RUNTIME_DIR": str(where)}
        self.where, self.note = where, where / "given"
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(where)
            os.execvpe(self.command[0], self.command, env)
        self.type("")
        self.run(f"{self.begin}; tenfold begun")

    def type(self, text, quiet=0.1):
        """Types, and waits until the shell shows nothing more."""
        os.write(self.fd, text.encode())
        while select.select([self.fd], [], [], quiet)[0]:
            os.read(self.fd, 65536)

    def idle(self):
        """Whether the shell sleeps, and has no child that works for it."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as stat, \
                open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="ascii") as children:
            return stat.read().rpartition(")")[2].split()[0] == "S" and not children.read()

    def run(self, line):
        """The arguments that the command gets for a line; None if it is not run."""
        self.note.unlink(missing_ok=True)
        for _ in range(3):  # a shell that is still busy may lose typed text
            for key in (*line.partition("\t"), "\r"):
                self.type(key)
            idle = 0  # looks in a row: time alone does not tell a lost line from a busy machine
            while not self.note.exists() and idle < 30:
                self.type("")
                idle = idle + 1 if self.idle() else 0
            if self.note.exists():
                return self.note.read_bytes().decode().split("\0")[:-1]
            self.type("\x03")
        return None

    def close(self):
        os.write(self.fd, b"\x15exit\r")
        os.close(self.fd)
        os.waitpid(self.pid, 0)


class Zsh(Shell):
    terminal = "vt100"  # on a dumb terminal it completes nothing
    command = ["zsh", "-f", "-i"]
    begin = "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; setopt interactive_comments no_beep"
    special = "`|~#?*[]{}!&;<>()$"
    lines = [line for line in LINES if not line[0].startswith(("ls --acc=mm", "hash --check"))]


class Fish(Shell):
    command = ["fish", "--no-config", "--private"]
    begin = "function fish_prompt; echo '> '; end; set -g fish_autosuggestion_enabled 0; source ./tenfold.fish"
    special = "|~#"
    lines = [line for line in LINES if line[0].startswith(("cat", "meta", "verif")) and '"' not in line[0]]
    several = ["semi:a"]  # after a colon it also offers files, one of which begins with "a"


SHELLS = {"bash": Shell, "zsh": Zsh, "fish": Fish}


def check(kind, where, path):
    shell = kind(where, path)
    typed = [("".join("\\" + c if c in kind.special else c for c in begin), name) for begin, name in NAMES
             if begin not in kind.several]
    wanted = [(f"cat f.safetensors {begin}", ["cat", "f.safetensors", name]) for begin, name in typed]
    for line, args in wanted + kind.lines:
        got = shell.run(f"tenfold {line}\t")
        if got != args:
            yield f"{line!r} and TAB gives {got}, not {args}"
    if (where / "PWNED").exists():
        yield "a name was run"
    shell.close()


def main():
    tenfold, name = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
    if not shutil.which(name):
        print(f"completion: there is no {name}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as made:
        where, path = pathlib.Path(made) / "work", pathlib.Path(made) / "bin"
        where.mkdir()
        path.mkdir()
        subprocess.run([tenfold, "--generate", name, str(where)], check=True)
        safetensors(where / "f.safetensors", [name for _, name in NAMES] + ["--force"], {"key;touch PWNED": "v"})
        safetensors(where / "a file.safetensors", ["only"], {})
        (where / "list of hashes").write_text("")
        stand_in = path / "tenfold"
        stand_in.write_text('#!/bin/sh\nif [ "$1" = --complete ]; then exec "' + tenfold + '" "$@"; fi\n'
                            "printf '%s\\0' \"$@\" > given\n")
        stand_in.chmod(0o755)
        wrong = [*check(SHELLS[name], where, path)]
    print("".join(w + "\n" for w in wrong), end="")
    print(f"completion: {len(NAMES) + len(SHELLS[name].lines)} lines, {len(wrong)} complaints")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
