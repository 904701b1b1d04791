#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files written by primitiv itself, and its answers to unusual files, if they are available.

  primitiv.py TENFOLD FIXTURES

FIXTURES has *.primitiv, each with a .json of its content (values by their bits), and probe/ with
manifest.json: the result of the real reader for each file.
"""
import json
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

TENFOLD, HERE = sys.argv[1], Path(sys.argv[2])
failures = []


def run(*args):
    done = subprocess.run([TENFOLD, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")


def check(ok, file, what):
    if not ok:
        failures.append(f"{file.name}: {what}")


def listed(file, *more):
    code, out, err = run("ls", "--json", *more, file)
    if code:
        check(False, file, f"ls gives {code}: {err.strip()}")
        return None
    return {t["name"] if isinstance(t["name"], str) else json.dumps(t["name"]): t for t in json.loads(out)["tensors"]}


def join(path):
    """Names joined with dots; only backslashes before a dot count."""
    return ".".join(re.sub(r"(\\*)\.", lambda m: m[1] * 2 + "\\.", e) if i + 1 == len(path) else
                    re.sub(r"(\\*)(\.|$)", lambda m: m[1] * 2 + ("\\." if m[2] else ""), e)
                    for i, e in enumerate(path))


def row_major(dims, values):
    """Column-major values in the order of rows."""
    out, index = [], [0] * len(dims)
    for _ in values:
        at = 0
        for i, d in zip(reversed(index), reversed(dims)):
            at = at * d + i
        out.append(values[at])
        for k in reversed(range(len(dims))):
            index[k] += 1
            if index[k] < dims[k]:
                break
            index[k] = 0
    return out


def check_tensor(file, tensors, name, want):
    t = tensors.pop(name, None)
    if t is None:
        check(False, file, f"no tensor {name!r}")
        return
    dims, batch = want["shape"]["dims"], want["shape"]["batch"]
    whole = dims + [batch] if batch > 1 else dims
    bits = [int(b, 16) for b in want["bits_u32_hex"]]
    check(t["shape"] == whole and t["dtype"] == "f32", file, f"{name}: {t['dtype']} {t['shape']}, not {whole}")
    check(t["order"] == ("F" if len(whole) > 1 else "C"), file, f"{name}: order {t['order']}")
    check(t["attrs"].get("primitiv.batch", 1) == batch, file, f"{name}: batch")
    part = t["parts"][0]
    stored = file.read_bytes()[part["offset"]:part["offset"] + part["nbytes"]]
    check(stored == struct.pack(f"<{len(bits)}I", *bits), file, f"{name}: stored bits")
    if name and "\0" not in name:
        code, out, err = run("cat", "--raw", file, name)
        check(code == 0 and out == struct.pack(f"<{len(bits)}I", *row_major(whole, bits)), file,
              f"{name}: cat --raw {code} {err.strip()}")


def check_parameter(file, tensors, name, want):
    check_tensor(file, tensors, name, want["value"])
    for key, stat in want["stats"].items():
        check_tensor(file, tensors, f"{name}@{key}", stat)


def check_configs(file, attrs, want):
    check(attrs.get("primitiv.uint_configs") == want["uint_configs"], file, "uint_configs")
    got = {k: struct.pack(">f", float(v)).hex() for k, v in attrs.get("primitiv.float_configs", {}).items()}
    check(got == want["float_bits_u32_hex"], file, f"float_configs {got}")


def check_fixture(file):
    said = json.loads(file.with_suffix(".json").read_text())
    want, kind = said["expected"], said["data_type"].lower()
    code, out, err = run("info", "--json", file)
    check(code == 0, file, f"info gives {code}: {err.strip()}")
    tensors = listed(file)
    if code or tensors is None:
        return 0
    info = json.loads(out)
    check(info["attrs"]["primitiv.type"] == kind and not info["warnings"], file, "type or warnings")
    stats = 0
    if kind == "shape":
        check([info["attrs"]["primitiv.dims"], info["attrs"]["primitiv.batch"]] == [want["dims"], want["batch"]], file,
              "shape")
    elif kind == "tensor":
        check_tensor(file, tensors, "value", want.get("value", want))
    elif kind == "parameter":
        check_parameter(file, tensors, "value", want)
        stats = len(want["stats"])
    elif kind == "model":
        for entry in want["parameters"]:
            name = join(entry["key"])
            check(tensors.get(name, {"attrs": {}})["attrs"].get("primitiv.path") == entry["key"], file, f"path of {name!r}")
            check_parameter(file, tensors, name, entry["parameter"])
            stats = max(stats, len(entry["parameter"]["stats"]))
    else:
        check_configs(file, info["attrs"], want)
    check(not tensors, file, f"more than expected: {list(tensors)}")
    return stats


def check_again(file, scratch):
    """A file that is read and written, directly or through other formats, stays the same."""
    out = scratch / "out.primitiv"
    code, _, err = run("convert", "-q", "--force", "--no-sync", file, out)
    check(code == 0 and out.read_bytes() == file.read_bytes(), file, f"written again: {code} {err.strip()}")
    for way in ("safetensors", "ztensor2", "ztensor1", "ztensor0", "gptrs-checkpoint"):
        there = scratch / "there"
        code, _, err = run("convert", "-q", "--force", "--no-sync", "-t", way, file, there)
        if code == 5 and "names have 1 to 1024 bytes" in err:
            continue  # the command says so, and writes nothing
        check(code == 0, file, f"to {way}: {code} {err.strip()}")
        code, _, err = run("convert", "-q", "--force", "--no-sync", "-t", "primitiv", there, out)
        check(code == 0 and out.read_bytes() == file.read_bytes(), file, f"by way of {way}: {code} {err.strip()}")


# ---------------------------------------------------------------- answers of the real reader
def wanted_code(answer):
    """Our exit code: 0 or 4. Two differences are intended: no model decides which paths there may be,
    and sizes are not counted in 32 bits."""
    if answer.startswith("OK"):
        return 0
    unknown = re.search(r"does not have a parameter with name: '(.*?)'", answer)
    return 0 if unknown and unknown[1] else 4


def check_values(file, answer):
    """ "shape=[2,2]x1 values=1 2 3 4  stat a=[]x1:7" or "| p:[]x1 1 | sm.p:[]x1 2" """
    tensors = listed(file)
    found = [("value", m[1], m[2]) for m in [re.search(r"shape=\[(.*?)\]x1 values=([^a-z]*)", answer)] if m]
    found += [(f"value@{k}", d, v) for k, d, v in re.findall(r"stat (\w+)=\[(.*?)\]x1:([-\d. ]+)", answer)]
    found += re.findall(r"\| ([\w.]+):\[(.*?)\]x1 ([-\d. ]+)", answer)
    for name, dims, values in found:
        shape = [int(d) for d in dims.split(",") if d]
        code, out, _ = run("cat", "--json", file, name)
        want = row_major(shape, [float(v) for v in values.split()])
        check(tensors and code == 0 and json.loads(out)["shape"] == shape and json.loads(out)["values"] == want, file,
              f"{name} is {out.decode()}")


def check_probe(case):
    file, answer = HERE / "probe" / case["file"], case["upstream_result"]
    want = 4 if case["file"].startswith("p_overflow_wrap") else wanted_code(answer)
    code, _, err = run("info", file)
    check(code == want, file, f"exit {code}, not {want} ({answer}): {err.strip()}")
    if want == 4:
        check("(at byte " in err or "missing" in err, file, f"no offset: {err.strip()}")
    elif answer.startswith("OK"):
        check_values(file, answer)
        for key, value in re.findall(r"(epoch|alpha)=(\S+)", answer):
            _, out, _ = run("info", "--json", file)
            attrs = json.loads(out)["attrs"]
            got = {"epoch": attrs.get("primitiv.uint_configs", {}).get("Optimizer.epoch", 0),
                   "alpha": attrs.get("primitiv.float_configs", {}).get("Adam.alpha", 0.001)}[key]
            check(got == float(value), file, f"{key} is {got}, not {value}")
    if re.search(r"expected: ce, observed: (\d\d?|c[c-f])$", answer):
        code, _, err = run("info", "--lenient", file)
        check(code == 0, file, f"--lenient gives {code}: {err.strip()}")


def main():
    files = sorted(HERE.glob("*.primitiv"))
    probes = json.loads((HERE / "probe" / "manifest.json").read_text())
    with tempfile.TemporaryDirectory(prefix="tenfold-primitiv-") as scratch:
        again = 0
        for file in files:
            if check_fixture(file) <= 1:
                check_again(file, Path(scratch))
                again += 1
    for case in probes:
        check_probe(case)
    print("\n".join(failures))
    print(f"primitiv: {len(files)} files, {again} of them written again, {len(probes)} answers, {len(failures)} failed")
    sys.exit(bool(failures) or not files)


main()
