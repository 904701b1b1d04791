# SPDX-License-Identifier: MIT
"""The commands that write: their inputs, their results, and the states that they may leave if
killed. Used by the tools that cause faults: fault-storm, fault-every and power-cut."""
import ctypes
import hashlib
import json
import os
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

DONE_TOO = {"repair": 1, "page": 4}  # exit codes of a success with a damaged input
SANITIZED = 86  # exit code of a sanitizer after an error


def sha(data):
    return hashlib.sha256(data).hexdigest()[:16]


# ------------------------------------------------------------------------------------- inputs
def safetensors(path, names, side=256):
    header, data = {}, b""
    for name in names:
        header[name] = {"dtype": "F32", "shape": [side, side], "data_offsets": [len(data), len(data) + 4 * side * side]}
        data += random.randbytes(4 * side * side)
    text = json.dumps({"__metadata__": {"note": "old"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def tensors_of(data):
    """The bytes of each tensor of a safetensors file."""
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in header.items()}


def fifu(path, words, dims, exponent=None):
    listed = b"".join(struct.pack("<I", len(w)) + w for w in (b"word%d" % i for i in range(words)))
    ident, head = (1, b"") if exponent is None else (3, struct.pack("<III", 3, 4, exponent))
    vocab = struct.pack("<Q", words) + head + listed
    rows = words + (0 if exponent is None else 1 << exponent)
    out = b"FiFu" + struct.pack("<IIII", 0, 2, ident, 2) + struct.pack("<IQ", ident, len(vocab)) + vocab
    pad = 4 - (len(out) + 28) % 4
    body = struct.pack("<QII", rows, dims, 10) + bytes(pad)
    body += struct.pack(f"<{rows * dims}f", *(random.gauss(0, 1) for _ in range(rows * dims)))
    path.write_bytes(out + struct.pack("<IQ", 2, len(body)) + body)


class Inputs:
    """The input files of the commands, made once. side: rows and columns of the tensors."""

    def __init__(self, command, scratch, side=256):
        self.command, self.root, self.side = os.path.abspath(command), pathlib.Path(scratch), side
        self.inputs = self.root / "inputs"
        self.inputs.mkdir()
        # Another user, who may lack access to the directory of the command, runs it by this
        # descriptor.
        copy = self.root / "tenfold"
        shutil.copyfile(command, copy)
        copy.chmod(0o755)
        self.binary = os.open(copy, os.O_RDONLY)
        self.make_inputs()

    def tensors(self, count):
        """A --max-size that is enough for `count` tensors."""
        return str(int(4 * self.side * self.side * (count + .3)))

    def tenfold(self, *args, text=None):
        return subprocess.run([self.command, *map(str, args)], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, input=text).stdout

    def make_inputs(self):
        at = self.inputs
        safetensors(at / "a.safetensors", [f"a{i}" for i in range(6)], self.side)
        safetensors(at / "b.safetensors", [f"b{i}" for i in range(3)], self.side)
        (at / "torn.safetensors").write_bytes((at / "a.safetensors").read_bytes()[:-self.side * self.side])
        self.tenfold("convert", at / "a.safetensors", at / "a.zt")
        self.tenfold("meta", at / "a.safetensors", "--set", "safetensors.metadata.note=old", "--option", "reserve=2K", "-o",
                     at / "roomy.safetensors")
        self.tenfold("meta", at / "a.safetensors", "--set", "safetensors.metadata.note=" + "x" * 9000, "--option", "reserve=2K", "-o",
                     at / "long.safetensors")
        self.tenfold("meta", at / "b.safetensors", "--set", "safetensors.metadata.note=" + "x" * 1500, "-o", at / "sectors.safetensors")
        self.tenfold("split", at / "b.safetensors", "-o", at / "set", "--max-size", self.tensors(1))
        fifu(at / "emb.fifu", 300, 16)
        fifu(at / "buckets.fifu", 300, 16, 8)
        self.tenfold("quantize", at / "emb.fifu", at / "quantized.fifu", "-i", 2)
        (at / "words").write_bytes(b"".join(b"word%d\n" % i for i in range(0, 300, 2)))
        self.tenfold("points", "create", at / "p.vsdb", "--dims", 8, "--resolution", "f32")
        line = lambda i: json.dumps({"app": {"id": i}, "values": [i / 8 + k for k in range(8)]}) + "\n"
        (at / "points.jsonl").write_text("".join(map(line, range(600))))
        self.tenfold("points", "add", at / "p.vsdb", text=(at / "points.jsonl").read_bytes())
        first = json.loads(self.tenfold("points", "--json", at / "p.vsdb"))
        self.ids = [p["id"] for p in first["points"][10:400:7]]
        self.tenfold("points", "rm", at / "p.vsdb", first["points"][1]["id"], first["points"][2]["id"])


class Task:
    """A command: its arguments, its read-only inputs, and the file that it writes ("to/…") or
    changes."""

    def __init__(self, name, args, reads=(), out=None, changes=None, stdin=None, how="bytes", part=(), sync=True, force=True,
                 beside=()):
        self.name, self.args, self.reads, self.out, self.changes, self.stdin, self.how = name, args, list(reads), out, changes, stdin, how
        self.beside = list(beside)  # other files next to the one that it changes
        self.part = list(part)  # inputs that are still valid if truncated, with another result
        self.sync, self.force = sync, force and bool(out)  # does it have --no-sync and --force?
        self.old, self.new, self.seconds, self.size = None, None, 0, 0


def tasks(storm):
    two = storm.tensors(2)
    a, b = "a.safetensors", "b.safetensors"
    return [
        Task("convert", ["convert", a, "to/out.zt"], [a], "to/out.zt"),
        Task("convert-zstd", ["convert", a, "to/out.zt", "-o", "encoding=zstd"], [a], "to/out.zt"),
        Task("merge", ["merge", "-o", "to/out.safetensors", a, b, "--attrs", "first"], [a, b], "to/out.safetensors"),
        Task("split", ["split", a, "-o", "to/parts", "--max-size", two], [a], "to/parts", how="split", force=False),
        Task("split-beside", ["split", a, "-o", "to", "--max-size", two], [a], "to", how="split", force=False),
        Task("split-replace", ["split", a, "-o", "to", "--max-size", two, "--force"], [a], "to", how="split", force=False),
        Task("repair", ["repair", "torn.safetensors", "to/out.safetensors"], ["torn.safetensors"], "to/out.safetensors",
             how="repair", part=["torn.safetensors"]),
        Task("stat-html", ["stat", a, "--html", "to/out.html"], [a], "to/out.html", how="page", part=[a], sync=False),
        Task("quantize", ["quantize", "emb.fifu", "to/out.fifu", "-i", "2"], ["emb.fifu"], "to/out.fifu"),
        Task("reconstruct", ["reconstruct", "quantized.fifu", "to/out.fifu"], ["quantized.fifu"], "to/out.fifu"),
        Task("explicit", ["explicit", "buckets.fifu", "to/out.fifu"], ["buckets.fifu"], "to/out.fifu"),
        Task("select", ["select", "emb.fifu", "to/out.fifu", "words"], ["emb.fifu", "words"], "to/out.fifu", part=["words"]),
        Task("append", ["append", "to/a.zt", b, "--tensors-only"], [b], changes="to/a.zt", how="append"),
        Task("meta", ["meta", "to/a.safetensors", "--set", "safetensors.metadata.note=new"], changes="to/a.safetensors", sync=False),
        Task("meta-rewrite", ["meta", "to/a.safetensors", "--rewrite", "--set", "safetensors.metadata.note=new"],
             changes="to/a.safetensors"),
        Task("meta-out", ["meta", a, "--set", "safetensors.metadata.note=new", "-o", "to/out.safetensors"], [a], "to/out.safetensors"),
        Task("meta-zt", ["meta", "to/a.zt", "--set", "note=new"], changes="to/a.zt", sync=False),
        Task("meta-in-place", ["meta", "to/roomy.safetensors", "--in-place", "--set", "safetensors.metadata.note=new"],
             changes="to/roomy.safetensors", sync=False),
        Task("meta-blocks", ["meta", "to/long.safetensors", "--in-place", "--set", "safetensors.metadata.note=" + "y" * 9000],
             changes="to/long.safetensors", how="meta", sync=False),
        Task("meta-sectors", ["meta", "to/sectors.safetensors", "--in-place", "--set", "safetensors.metadata.note=" + "y" * 1500],
             changes="to/sectors.safetensors", how="meta", sync=False),
        Task("points-create", ["points", "create", "to/out.vsdb", "--dims", "8", "--resolution", "f32"], out="to/out.vsdb", force=False),
        Task("points-add", ["points", "add", "to/p.vsdb"], changes="to/p.vsdb", stdin="points.jsonl", how="points", part=["points.jsonl"]),
        Task("points-rm", ["points", "rm", "to/p.vsdb", *storm.ids], changes="to/p.vsdb", how="points"),
        Task("points-shred", ["points", "rm", "--shred", "to/p.vsdb", *storm.ids], changes="to/p.vsdb", how="points"),
        Task("points-compact", ["points", "compact", "to/p.vsdb"], changes="to/p.vsdb", how="points"),
    ]


# -------------------------------------------------------------------------------------- checks
class Bad(Exception):
    """A forbidden state."""


class Place:
    """A directory in which a task runs, and checks of the files in it."""

    def __init__(self, storm, task, where, replace=False, sync=True):
        self.storm, self.task, self.dir, self.replace, self.sync = storm, task, where, replace, sync
        self.before = set()

    def prepare(self):
        t = self.task
        for path in self.dir.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (self.dir / "to").mkdir()
        for name in {*t.reads, *([t.stdin] if t.stdin else [])}:
            shutil.copy(self.storm.inputs / name, self.dir / name)
        if t.changes:
            shutil.copy(self.storm.inputs / pathlib.Path(t.changes).name, self.dir / t.changes)
        if self.replace:
            (self.dir / t.out).write_bytes(b"what was there before")
        if t.name in ("split-beside", "split-replace"):
            (self.dir / "to" / "config.json").write_text("{}")
        if t.name == "split-replace":
            shutil.copytree(self.storm.inputs / "set", self.dir / "to", dirs_exist_ok=True)
        self.before = self.files()

    def files(self):
        return {str(p.relative_to(self.dir)) for p in self.dir.rglob("*") if not p.is_dir()}

    def args(self):
        t = self.task
        return [self.storm.command, *t.args, *(["--force"] if self.replace else []), *([] if self.sync or not t.sync else ["--no-sync"])]

    def state(self):
        """The state of the target, which can be compared with others; None: it does not exist."""
        t = self.task
        path = self.dir / (t.out or t.changes)
        if t.how == "split":
            names = sorted(p.name for p in path.iterdir() if ".tmp-" not in p.name and p.name != "config.json") if path.is_dir() else []
            return tuple((n, sha((path / n).read_bytes())) for n in names) or None
        if not path.exists():
            return None
        if t.how == "content":
            return self.content(path)
        if t.how == "undo":
            return sha(path.read_bytes()), path.with_name(f".{path.name}.tenfold-undo").exists()
        if t.how == "points":
            done = subprocess.run([self.storm.command, "points", "--json", path], capture_output=True, check=False)
            if done.returncode:
                raise Bad(f"the points cannot be listed: {done.stderr.decode()}")
            return sha(done.stdout)
        return sha(path.read_bytes())

    def litter(self):
        """New files other than the target."""
        t = self.task
        new = {n for n in self.files() if n not in self.before and n != t.out}
        return {n for n in new if not (t.how == "split" and str(pathlib.Path(n).parent) == t.out and ".tmp-" not in n)}

    def content(self, path):
        done = subprocess.run([self.storm.command, "hash", path], capture_output=True, check=False)
        return done.stdout.split()[0].decode() if done.returncode == 0 else done.stderr.decode()

    def is_old_append(self):
        """After a kill: the old bytes and the old model, with something after them."""
        path, old = self.dir / self.task.changes, self.storm.inputs / pathlib.Path(self.task.changes).name
        return path.read_bytes().startswith(old.read_bytes()) and self.content(path) == self.content(old)

    def is_old_content(self):
        """Other bytes, but the same content."""
        path, old = self.dir / self.task.changes, self.storm.inputs / pathlib.Path(self.task.changes).name
        return self.content(path) == self.content(old)

    def has_no_index(self, state):
        """In an existing directory, files are replaced one by one. After a kill between two of them
        there is no index that would make them a model, and all old files exist, under any name."""
        there = {sha(p.read_bytes()) for p in (self.dir / "to").iterdir()}
        return not any(n.endswith(".json") for n, _ in state) and {h for _, h in self.task.old or ()} <= there

    def is_refused(self):
        """After a kill between two writes, the file is refused until they are undone, and the
        message says how."""
        path = self.dir / self.task.changes
        return path.with_name(f".{path.name}.tenfold-undo").exists() and "tenfold repair" in self.content(path)


# ---------------------------------------------------------------------------------------- runs
class Shimmed(Place):
    """A place whose commands run with the shim."""

    def __init__(self, storm, task, where, shim, replace=False):
        super().__init__(storm, task, where, replace)
        self.shim, self.log = shim, where.parent / f"{where.name}.log"

    def prepare(self):
        super().prepare()
        for name in self.task.beside:
            shutil.copy(self.storm.inputs / name, self.dir / "to" / name)
        self.before = self.files()

    def run(self, fault=None, record=None):
        """Runs the command: exit code and stderr. Without a fault and a record, the shim is not
        loaded."""
        self.log.unlink(missing_ok=True)
        env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + f":exitcode={SANITIZED}:verify_asan_link_order=0"}
        if fault is not None or record is not None:
            env.update(LD_PRELOAD=str(self.shim), TENFOLD_FAULT_LOG=str(self.log))
        if fault:
            env["TENFOLD_FAULT"] = fault
        if record:
            env["TENFOLD_FAULT_RECORD"] = str(record)
        stdin = open(self.dir / self.task.stdin, "rb") if self.task.stdin else None
        with subprocess.Popen(self.args(), cwd=self.dir, env=env, stdin=stdin or subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as child:
            try:
                resource.prlimit(child.pid, resource.RLIMIT_CPU, (60, 60))
            except ProcessLookupError:
                pass
            error = child.communicate(timeout=3600)[1].decode("utf-8", "backslashreplace").strip()
        if stdin:
            stdin.close()
        return child.returncode, error

    def calls(self):
        """The calls that the shim logged, and those that it made fail."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return [x.removeprefix("hit ") for x in lines], [x[4:] for x in lines if x.startswith("hit ")]


def more_tasks(storm, shim, where):
    """Tasks that need a file left by a killed command, an append beyond the space that is allocated
    at once, and a model in two files that replaces another."""
    append, blocks = [t for t in tasks(storm) if t.name in ("append", "meta-blocks")]
    safetensors(storm.inputs / "large.safetensors", ["large"], 1536)
    half = ".half.safetensors.tenfold-undo"
    still_old = lambda p: p.content(p.dir / "to/a.zt") == p.content(storm.inputs / "a.zt")
    kill_within(Shimmed(storm, append, where, shim), still_old, {"to/a.zt": "killed.zt"})
    kill_within(Shimmed(storm, append, where, shim), still_old, {"to/a.zt": "early.zt"}, first=True)
    kill_within(Shimmed(storm, blocks, where, shim), lambda p: p.is_refused(),
                {"to/long.safetensors": "half.safetensors", "to/.long.safetensors.tenfold-undo": half})
    safetensors(storm.inputs / "other.safetensors", ["b2", "b1", "b0"], storm.side)
    outside = ["-o", "bare=yes", "-o", "external=always"]
    storm.tenfold("convert", storm.inputs / "b.safetensors", storm.inputs / "b.onnx", "--allow-loss", *outside)
    again = lambda name, target, more: Task(name, ["append", f"to/{target}", more, "--tensors-only"], [more], changes=f"to/{target}", how="append")
    return [
        again("append-large", "a.zt", "large.safetensors"),
        again("append-early", "early.zt", "b.safetensors"),
        again("append-again", "killed.zt", "b.safetensors"),
        again("append-again-large", "killed.zt", "large.safetensors"),
        # two files, with the same tensors in another order: the old model could be opened with the
        # new data
        Task("replace-both", ["convert", "other.safetensors", "to/b.onnx", "--allow-loss", "--force", *outside], ["other.safetensors"],
             changes="to/b.onnx", how="content", beside=["b.onnx.data"]),
        Task("undo", ["repair", "to/half.safetensors"], changes="to/half.safetensors", how="undo", beside=[half]),
        Task("meta-undo", ["meta", "to/half.safetensors", "--in-place", "--set", "safetensors.metadata.note=" + "y" * 9000],
             changes="to/half.safetensors", how="undo", beside=[half]),
    ]


def shift_tasks(storm):
    """A header that grows by blocks inserted before the tensors, if the file system supports it
    (ext4, XFS)."""
    storm.tenfold("convert", storm.inputs / "b.safetensors", storm.inputs / "b.gguf")
    if not can_insert(storm.inputs):
        print("meta-shift: skipped, since this file system cannot insert blocks")
        return []
    return [Task("meta-shift", ["meta", "to/b.gguf", "--shift", "--set", "note=" + "y" * 3000], changes="to/b.gguf", how="meta", sync=False)]


def can_insert(directory):
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        file.write(bytes(8192))
        file.flush()
        off = ctypes.c_int64
        return ctypes.CDLL(None).fallocate(file.fileno(), 0x20, off(0), off(4096)) == 0


def kill_within(place, wanted, keep, first=False):
    """Kills a command before each of its changes and in each of its writes. Keeps the files of the
    last (or first) wanted state."""
    changed, found = place.dir / place.task.changes, False
    for how in "any:{}:kill", "write:{}:torn":
        for n in range(1, 1000):
            place.prepare()
            if place.run(how.format(n))[0] == 0:
                break
            if changed.read_bytes() != (place.storm.inputs / changed.name).read_bytes() and wanted(place) and not (first and found):
                found = True
                for name, to in keep.items():
                    shutil.copy(place.dir / name, place.storm.inputs / to)
    if not found:
        sys.exit(f"{place.task.name}: no kill leaves the wanted state")
