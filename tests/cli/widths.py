#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The output of the command on terminals of several widths. widths.py TENFOLD

Runs it in a pseudo-terminal: no line of a table, of help or of a progress bar may be wider than the
terminal. Output to a pipe is never shortened.
"""
import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata

HERE = pathlib.Path(__file__).resolve().parent
WIDTHS = (40, 60, 80, 200)
LONG = "model.language_model.layers.%d.self_attn.rotary_embedding.inverse_frequencies.weight"


def columns(text):
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def on_terminal(command, width, cwd, **env):
    """The output of the command on a terminal of that width; both streams."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    env = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", **env}
    env = {k: v for k, v in env.items() if v is not None}
    with subprocess.Popen(command, cwd=cwd, stdin=child, stdout=child, stderr=child, env=env) as running:
        os.close(child)
        text = b""
        while True:
            try:
                piece = os.read(parent, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
    os.close(parent)
    assert running.returncode in (0, 1), (command, running.returncode, text)
    return text.decode("utf-8")


def lines(text):
    """Each line that was ever visible, without colours."""
    text = re.sub(r"\x1b\[[0-9;]*[mK]", "", text)
    return [line for line in re.split(r"[\r\n]+", text) if line]


def words(line):
    """The longest word, or quoted argument of a command, which cannot be broken."""
    return re.findall(r"'[^']*'|[^\s\\]+", line)


def safetensors(path, names):
    import json
    header = {n: {"dtype": "F32", "shape": [64, 2048], "data_offsets": [i * 524288, (i + 1) * 524288]}
              for i, n in enumerate(names)}
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + 524288 * len(names))


def check_tables(tenfold, where):
    """A word that is longer than the line is not broken."""
    calls = [["ls", "long.safetensors"], ["ls", "-l", "long.safetensors"], ["ls", "--depth", "5", "long.safetensors"],
             ["ls", "model.safetensors", "plain.safetensors"], ["ls", "names.safetensors"], ["stat", "model.safetensors"],
             ["stat", "long.safetensors"], ["formats"], ["formats", "safetensors"], ["help"],
             ["cat", "table.safetensors", "table"], ["cat", "model.safetensors", "blocks.0.weight"],
             ["verify", "--values", "model.safetensors"], ["verify", "--values", "names.safetensors"],
             ["formats", "--matrix"], ["formats", "npz"], ["formats", "gguf"], ["info", "gguf/model.gguf"],
             ["info", "model.safetensors"], ["info", "model.bin"], ["diff", "model.safetensors", "plain.safetensors"],
             ["diff", "--summary", "model.safetensors", "plain.safetensors"], ["diff", "model.safetensors", "model.bin"],
             ["convert", "-n", "-v", "model.safetensors", "out.gguf"], ["convert", "-n", "-v", "model.bin", "out.zt"]]
    overview = subprocess.run([tenfold, "help"], capture_output=True, text=True, check=True).stdout
    calls += [["help", c] for c in re.findall(r"^  (\S+)", overview.split("\ncommands:\n")[1].split("\n\n")[0], re.M)]
    for width in WIDTHS:
        for call in calls:
            for line in lines(on_terminal([tenfold, *call], width, where, COLUMNS=None)):
                if columns(line) > width and len(words(line)) > 1:
                    yield f"{' '.join(call)}: {columns(line)} columns on a terminal of {width}: {line!r}"
    said = lines(on_terminal([tenfold, "ls", "long.safetensors"], 200, where, COLUMNS="50"))
    if not all(columns(line) <= 50 for line in said) or not any("…" in line for line in said):
        yield f"COLUMNS=50 is not honoured: {said}"
    narrow = lines(on_terminal([tenfold, "ls", "-l", "model.safetensors"], 40, where, COLUMNS=None))
    if "DTYPE" not in narrow[0] or "OFFSET" in narrow[0]:
        yield f"ls -l at 40 columns tells other things than types: {narrow[0]}"
    for call in (["ls", "-l"], ["stat"]): # twelve layers must not look the same
        shown = lines(on_terminal([tenfold, *call, "layers.safetensors"], 80, where, COLUMNS=None))
        seen = [line.split()[0] for line in shown if re.match(r"\s*bloc\S*…", line)]
        if len(seen) < 12 or len(set(seen)) != len(seen):
            yield f"{call[0]} at 80 columns shows different names alike: {seen}"
    header = lines(on_terminal([tenfold, "formats"], 80, where, COLUMNS=None))[0]
    if "CAN" not in header or "EXTENSIONS" in header:
        yield f"formats at 80 columns tells extensions rather than what can be done: {header}"
    wide = lines(on_terminal([tenfold, "ls", "long.safetensors"], 200, where, COLUMNS=None))
    if any("…" in line for line in wide):
        yield "a name is shortened though there is room for it"


def check_pipe(tenfold, where):
    for width in WIDTHS:
        piped = subprocess.run([tenfold, "ls", "long.safetensors"], cwd=where, capture_output=True, text=True,
                               env={**os.environ, "COLUMNS": str(width)}, check=True).stdout
        if any(LONG % i not in piped for i in range(20)) or "24.0" in piped or "…" in piped:
            yield f"a pipe gets a listing shortened to {width} columns"


def check_progress(tenfold, where):
    """Hashing a hole of two billion zeros on one core takes long enough to show a progress bar."""
    with open(where / "large.safetensors", "wb") as f:
        text = b'{"w":{"dtype":"U8","shape":[2000000000],"data_offsets":[0,2000000000]}}'
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + 2000000000)
    for width in WIDTHS:
        shown = lines(on_terminal([tenfold, "hash", "--threads", "1", "large.safetensors"], width, where, COLUMNS=None))
        bars = [line for line in shown if "%" in line]
        for line in bars:
            if columns(line) >= width:
                yield f"a progress line of {columns(line)} columns on a terminal of {width}: {line!r}"
        if not bars:
            print(f"widths: no progress was seen at {width} columns (the machine is too fast)")
    os.unlink(where / "large.safetensors")


def main():
    tenfold = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as made:
        where = pathlib.Path(made)
        subprocess.run([sys.executable, str(HERE / "files.py"), made], check=True)
        safetensors(where / "long.safetensors", [LONG % i for i in range(20)])
        safetensors(where / "layers.safetensors", ["blocks.%d.attention.rotary_embedding.weight" % i for i in range(12)])
        wrong = [*check_tables(tenfold, where), *check_pipe(tenfold, where), *check_progress(tenfold, where)]
    print("".join(w + "\n" for w in wrong), end="")
    print(f"widths: {len(wrong)} complaints")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
