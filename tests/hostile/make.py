#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the corpus of hostile files (Python's own library only), by every generator in generators/.

    make.py DIRECTORY    write the files there; the tests use the build directory
    make.py --update     write corpus.json: a description, the verdict and the digest of each file
    make.py --check      compare corpus.json with what --update would write

The files are not in the repository; the digests in corpus.json show whether they have changed.
"""
import hashlib
import importlib
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
LIST = HERE / "corpus.json"
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE / "generators")]
import kit  # noqa: E402


def generators():
    """Every module next to kit.py that has make()."""
    names = sorted(path.stem for path in (HERE / "generators").glob("*.py"))
    return [importlib.import_module(name) for name in names if name != "kit"]


def digest(files):
    """The first 16 digits of the SHA-256 of the names and bytes of a case."""
    sha = hashlib.sha256()
    for name, data in sorted(files.items()):
        sha.update(f"{name}\0{len(data)}\0".encode() + data)
    return sha.hexdigest()[:16]


def all_cases():
    """({path: bytes} of all files, the entries of the list)"""
    files, entries = {}, []
    for module in generators():
        for format_, extension in getattr(module, "FORMATS", None) or [(module.FORMAT, module.EXTENSION)]:
            cases = kit.Cases(format_, extension)
            module.make(cases)
            for made, entry in cases.all:
                files.update(made)
                entries.append({**entry, "digest": digest(made)})
    return files, sorted(entries, key=lambda e: e["file"])


def text_of(entries):
    lines = ",\n  ".join(json.dumps(e, ensure_ascii=False) for e in entries)
    classes = json.dumps(kit.CLASSES, ensure_ascii=False, indent=1).replace("\n", "\n ")
    return f'{{"classes": {classes},\n "files": [\n  {lines}\n]}}\n'


def write(folder):
    """Makes the directory contain exactly the corpus; writes only files that are not the same
    already."""
    files = all_cases()[0]
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        if str(path.relative_to(folder)) not in files:
            path.unlink()
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
    return files


def corpus():
    """The directory of the files, which are made if they are missing."""
    folder = pathlib.Path(os.environ.get("TENFOLD_HOSTILE") or HERE.parents[1] / "build/hostile")
    write(folder)
    return folder


def check():
    """The names of all cases that differ from the list."""
    made, listed = all_cases()[1], json.loads(LIST.read_text(encoding="utf-8"))["files"]
    old, new = ({e["file"]: e for e in entries} for entries in (listed, made))
    wrong = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    if not wrong and LIST.read_text(encoding="utf-8") != text_of(made):
        wrong = ["the form of the list"]
    return wrong


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    if sys.argv[1] == "--check":
        wrong = check()
        for name in wrong:
            print(f"{name}: not as corpus.json has it")
        sys.exit(1 if wrong else 0)
    if sys.argv[1] == "--update":
        LIST.write_text(text_of(all_cases()[1]), encoding="utf-8")
        return
    files = write(pathlib.Path(sys.argv[1]))
    print(f"{len(files)} files, {sum(map(len, files.values()))} bytes")


if __name__ == "__main__":
    main()
