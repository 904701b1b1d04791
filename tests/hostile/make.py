#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the corpus of hostile files, and its list, corpus.json (Python's own library only).

    make.py            write corpus/ and corpus.json anew
    make.py --check    is what lies here what would be written?
"""
import importlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "generators")]
import kit  # noqa: E402

GENERATORS = ["safetensors", "ztensor2", "ztensor_old", "gptrs", "primitiv", "vs", "finalfusion", "fasttext", "wordvec"]


def all_cases():
    files, entries = {}, []
    for name in GENERATORS:
        module = importlib.import_module(name)
        formats = getattr(module, "FORMATS", None) or [(module.FORMAT, module.EXTENSION)]
        for format_, extension in formats:
            cases = kit.Cases(format_, extension)
            module.make(cases)
            for made, entry in cases.all:
                files.update(made)
                entries.append(entry)
    entries.sort(key=lambda e: e["file"])
    lines = ",\n  ".join(json.dumps(e, ensure_ascii=False) for e in entries)
    classes = json.dumps(kit.CLASSES, ensure_ascii=False, indent=1).replace("\n", "\n ")
    text = f'{{"classes": {classes},\n "files": [\n  {lines}\n]}}\n'
    return files, text, entries


def main():
    files, text, entries = all_cases()
    corpus = HERE / "corpus"
    if sys.argv[1:] == ["--check"]:
        have = {str(p.relative_to(corpus)): p.read_bytes() for p in corpus.rglob("*") if p.is_file()}
        wrong = sorted(set(have) ^ set(files) | {n for n in have if have[n] != files.get(n)})
        if (HERE / "corpus.json").read_text(encoding="utf-8") != text:
            wrong.append("corpus.json")
        for name in wrong:
            print(f"{name}: not as make.py makes it")
        sys.exit(1 if wrong else 0)
    for path in list(corpus.rglob("*")):
        if path.is_file() and str(path.relative_to(corpus)) not in files:
            path.unlink()
    for name, data in files.items():
        path = corpus / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
    (HERE / "corpus.json").write_text(text, encoding="utf-8")
    print(f"{len(entries)} cases, {len(files)} files, {sum(map(len, files.values()))} bytes")


if __name__ == "__main__":
    main()
