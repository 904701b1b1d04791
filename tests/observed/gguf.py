#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""GGUF files written by gguf-py, ggml and by hand, and the answers of both programs to bad files, if they
are available.

  gguf.py TENFOLD FIXTURES

FIXTURES has *.gguf, each with a .json of its content, bad/ with manifest.json, and split/.
"""
import base64
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

TENFOLD, HERE = sys.argv[1], Path(sys.argv[2])
failures = []
done = dict.fromkeys(("files", "keys", "tensors", "ways back", "bad files"), 0)


def run(*args):
    out = subprocess.run([TENFOLD, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return out.returncode, out.stdout, out.stderr.decode("utf-8", "replace")


def check(ok, file, what):
    if not ok:
        failures.append(f"{file.name}: {what}")


def same(kind, want, have):
    """Floats are compared in their own type: the digits in the file are not kept."""
    if isinstance(want, list):
        return isinstance(have, list) and len(want) == len(have) and all(same(None, w, h) for w, h in zip(want, have))
    if isinstance(want, float) and isinstance(have, (float, int)):
        return want == have or struct.pack("<f", want) == struct.pack("<f", have)
    return want == have and isinstance(want, bool) == isinstance(have, bool)


def type_of(key):
    value = key["value"]
    kind = key["type"].replace("str", "string")
    return "bytes" if kind == "string" and isinstance(value, dict) else kind


def check_keys(file, wanted):
    code, out, err = run("info", "--json", file)
    check(code == 0, file, f"info gives {code}: {err.strip()}")
    if code:
        return
    attrs = json.loads(out)["attrs"]
    have = {k: v for k, v in attrs.items() if k.startswith("gguf.")}
    check(list(have) == ["gguf." + k["key"] for k in wanted], file, "other keys, or another order")
    for key in wanted:
        value = have.get("gguf." + key["key"])
        check(same(key["type"], key["value"], value), file, f"{key['key']} is {value!r}, not {key['value']!r}")
        done["keys"] += 1
    code, out, err = run("meta", "--types", "--json", file)
    check(code == 0, file, f"meta --types gives {code}: {err.strip()}")
    types = json.loads(out) if code == 0 else {}
    for key in wanted:
        told = types.get("gguf." + key["key"])
        check(told == type_of(key), file, f"{key['key']} is of type {told}, not {type_of(key)}")


def check_tensors(file, wanted):
    code, out, err = run("ls", "--json", file)
    check(code == 0, file, f"ls gives {code}: {err.strip()}")
    if code:
        return
    have = json.loads(out)["tensors"]
    check(len(have) == len(wanted), file, f"{len(have)} tensors")
    for h, w in zip(have, wanted):
        name = w["name"]
        name = base64.b64decode(name["$bytes"]) if isinstance(name, dict) else name.encode()
        for key in ("name", "dtype", "shape", "layout", "nbytes"):
            check(h[key] == w[key], file, f"{w['name']}: {key} is {h[key]}, not {w[key]}")
        whole = w["layout"] == "dense"
        argument = name.replace(b"\0", b"\\x00") + (b"" if whole else b"#data")
        code = subprocess.run([TENFOLD.encode(), b"cat", b"--raw", str(file).encode(), argument],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        check(hashlib.sha256(code.stdout).hexdigest() == w["sha256"], file,
              f"{w['name']}: other bytes ({code.stderr.decode('utf-8', 'replace').strip()})")
        done["tensors"] += 1
        if "f32_sha256" in w:  # the numbers that its blocks represent, by ggml and gguf-py
            code = subprocess.run([TENFOLD.encode(), b"cat", b"--raw", str(file).encode(), name],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            check(hashlib.sha256(code.stdout).hexdigest() == w["f32_sha256"], file, f"{w['name']}: other numbers")


def check_encoded(file, wanted, scratch):
    """Converts floats to blocks of each type; the results are those of ggml and gguf-py."""
    for kind, w in wanted.items():
        out = scratch / f"{kind}.gguf"
        code, _, err = run("convert", "--no-sync", "--dtype", kind, file, out)
        check(code == 0, file, f"--dtype {kind} gives {code}: {err.strip()}")
        name = "w" if kind in ("f16", "bf16") else "w#data"
        raw = subprocess.run([TENFOLD, "cat", "--raw", str(out), name], stdout=subprocess.PIPE, check=False).stdout
        check(hashlib.sha256(raw).hexdigest() == w["sha256"], file, f"{kind}: other blocks")


def check_ways(file, canonical, scratch):
    """Written again, it is canonical; through other formats, the bytes are the same."""
    out, there = scratch / "out.gguf", scratch / "there"
    code, _, err = run("convert", "-q", "--force", "--no-sync", file, out)
    check(code == 0, file, f"written again: {code} {err.strip()}")
    if code:
        return
    check(not canonical or out.read_bytes() == file.read_bytes(), file, "written again it has other bytes")
    again = out.read_bytes()
    for way in ("ztensor2", "safetensors"):
        if file.stem == "name_empty" and way == "ztensor2":
            continue  # other formats may not have empty names
        code, _, err = run("convert", "-q", "--force", "--no-sync", "-t", way, file, there)
        check(code == 0, file, f"to {way}: {code} {err.strip()}")
        code, _, err = run("convert", "-q", "--force", "--no-sync", "-t", "gguf", there, out)
        check(code == 0 and out.read_bytes() == again, file, f"by way of {way}: {code} {err.strip()}")
        hashes = {run("hash", f)[1].split()[0] for f in (file, there)}
        check(len(hashes) == 1, file, f"another hash in {way}")
        done["ways back"] += 1


def check_programs(file, readers):
    for program, who in (("llama.cpp", "ggml_c"), ("gguf-py", "gguf_py")):
        code, _, err = run("verify", "--for", program, file)
        loads = readers[who] == "accepts"
        check(code == (0 if loads else 1), file, f"verify --for {program} gives {code}, {who} says {readers[who]}")
        check(loads or f"{program} will not load this" in err, file, f"verify --for {program} says {err.strip()}")


def check_file(file, scratch):
    want = json.loads(file.with_suffix(".json").read_text())["expected"]
    code, out, _ = run("info", "--json", file)
    info = json.loads(out) if code == 0 else {}
    check(info.get("version") == str(want["version"]), file, f"version {info.get('version')}")
    check(info.get("attrs", {}).get("gguf_file.endian", "little") == want["endian"], file, "another byte order")
    departs = {"gguf_file.version", "gguf_file.endian", "gguf_file.end", "gguf_file.padding", "gguf_file.offsets"}
    departs &= set(info.get("attrs", {}))
    odd = file.stem in ("trailing", "name_empty")
    check(want["canonical"] == (not departs) or odd, file, f"canonical is {want['canonical']}, told is {departs}")
    check_keys(file, want["kv"])
    check_tensors(file, want["tensors"])
    check_programs(file, want["readers"])
    check_ways(file, want["canonical"], scratch)
    check_encoded(file, want.get("encoded", {}), scratch)
    done["files"] += 1


def check_sets(scratch):
    folder = HERE / "split"
    for name in ("py", "c"):
        want = json.loads((folder / f"{name}.json").read_text())["expected"]
        first = folder / want["files"][0]
        check_keys(first, want["kv"])
        check_tensors(first, want["tensors"])
        out = scratch / "merged.gguf"
        code, _, err = run("merge", "-q", "--force", "--no-sync", "-o", out, *[folder / f for f in want["files"]])
        check(code == 0 and out.read_bytes() == (folder / "whole.gguf").read_bytes(), first, f"merge {code} {err}")
        code, out, err = run("info", "--json", folder / want["files"][1])
        told = json.loads(out)
        check("gguf.split.no" in told["attrs"] and told["warnings"], folder / want["files"][1], "says not what it is")
    # Three tensors in each file: the same bytes as gguf-py wrote.
    code, _, err = run("split", "-q", folder / "whole.gguf", "-t", "gguf", "--name", "py", "--max-size", "1K", "-o",
                       scratch / "split")
    for i in (1, 2, 3):
        part = f"py-0000{i}-of-00003.gguf"
        check(code == 0 and (scratch / "split" / part).read_bytes() == (folder / part).read_bytes(),
              folder / part, f"split otherwise: {code} {err}")
    for case in json.loads((folder / "bad" / "manifest.json").read_text()):
        file = folder / "bad" / case["file"]
        alone, missing = "single" in case["verdict"], case["file"].startswith("missing")
        code, _, err = run("convert", "-q", "--force", "--no-sync", file, scratch / "x.gguf")
        check(code == (0 if alone else 4), file, f"convert gives {code}: {err.strip()}")
        code, _, err = run("ls", file)
        check(code == (0 if alone or missing else 4), file, f"ls gives {code}: {err.strip()}")
        code, _, err = run("verify", file)
        check((code == 0) == alone and code in (0, 1, 4), file, f"verify gives {code}: {err.strip()}")
        done["bad files"] += 1


def check_bad(case):
    file = HERE / "bad" / case["file"]
    refused = case["verdict"] == "refuse"
    for command in ("ls", "info"):
        code, out, err = run(command, file)
        check(code == (4 if refused else 0), file, f"{command} gives {code}: {err.strip()}")
        check(not refused or (not out and err.count("\n") == 1 and "(at byte " in err), file, f"says {err.strip()}")
    code, _, err = run("verify", file)
    check(code in ((1, 4) if refused else (0,)), file, f"verify gives {code}: {err.strip()}")
    opens = run("ls", "--lenient", file)[0] == 0
    if opens:
        # ggml's reader only reads the header; llama.cpp then finds that data are missing.
        cut = file.stem in ("trunc_223", "dims_larger_than_file")
        check_programs(file, dict(case, ggml_c="cut short") if cut else case)
    for program in () if opens else ("llama.cpp", "gguf-py"):
        code, _, err = run("verify", "--for", program, file)
        check(code == 4 and f"cannot check whether {program} loads the file" in err, file,
              f"verify --for {program} gives {code}: {err.strip()}")
        check("will not load" not in err, file, f"verify --for {program} says {err.strip()}")
    done["bad files"] += 1


def main():
    files = sorted(HERE.glob("*.gguf"))
    bad = json.loads((HERE / "bad" / "manifest.json").read_text())
    if not files or not bad:
        sys.exit("gguf.py: no files at " + str(HERE))
    with tempfile.TemporaryDirectory() as scratch:
        for file in files:
            check_file(file, Path(scratch))
        check_sets(Path(scratch))
    for case in bad:
        check_bad(case)
    print(", ".join(f"{n} {what}" for what, n in done.items()))
    for line in failures:
        print(line, file=sys.stderr)
    sys.exit(1 if failures else 0)


main()
