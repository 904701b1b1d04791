#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Computes the content hash a second time, only from docs/content-hash.md and with hashlib.

    content_hash.py TENFOLD

safetensors files are parsed here. For other formats, `ls` gives the shapes, and `cat --raw` gives the bytes of each
part, whose digests are in expect.json; zipfile reads extras in zip archives. The content hash is compared if all
attributes that count are texts, bools or maps of those, because JSON does not contain the exact types of numbers. Then
large tensors are tested in every form: raw, compressed, column-major, in parts, on one thread and on several.
"""
import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

TESTS = pathlib.Path(__file__).resolve().parent
LEAF = 4 << 20
PAGE = (TESTS.parent / "docs/content-hash.md").read_text()
UNCOUNTED = {line for block in re.findall(r"```\n([a-z0-9_.={}<>\n]+)```", PAGE)
             for line in block.split()}
problems = []


def check(ok, *words):
    if not ok:
        problems.append(" ".join(map(str, words)))
    return ok


# --------------------------------------------------------------------------------- the definition

def sha(*pieces):
    return hashlib.sha256(b"".join(pieces)).digest()


def number(n):
    return struct.pack("<Q", n)


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return number(len(s)) + s


def leaves(data):
    return [sha(b"tenfold leaf 2\n", data[at:at + LEAF]) for at in range(0, len(data), LEAF)]


def tensor_hash(layout, shape, parts):
    """parts: (role, type id, bytes) each."""
    pieces = [b"tenfold tensor 2\n", text(layout), number(len(shape)), *map(number, shape),
              number(len(parts))]
    for role, kind, data in sorted(parts, key=lambda p: p[0].encode()):
        root = sha(b"tenfold part 2\n", number(len(data)), *leaves(data))
        pieces += [text(role), text(kind), number(len(data)), root]
    return sha(*pieces)


class Unsure(Exception):
    """JSON does not contain the exact type of this value."""


def typed(value):
    if isinstance(value, (bool, type(None), str)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, dict) and not any(k.startswith("$") for k in value):
        keys = sorted(value, key=lambda k: (len(k.encode()), k.encode()))
        return "{" + ",".join(typed(k) + ":" + typed(value[k]) for k in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(typed, value)) + "]"
    raise Unsure


def counts(key, value):
    said = {"{}": "{}", "false": "false", "0": "0"}.get(json.dumps(value), value)
    return key not in UNCOUNTED and f"{key}={said}" not in UNCOUNTED


# Attributes that are JSON documents count by their text, but `ls` gives them parsed. The expect.json of
# each format names its own.
DOCUMENTS = set()


# Texts whose byte-order mark does not count.
MARKED = {"numpy.descr"}


def counted(key, value):
    marked = key in MARKED and isinstance(value, str) and len(value) > 1 and value[0] in "<>=|"
    return value[1:] if marked else value


def attributes(attrs):
    if DOCUMENTS & set(attrs) or isinstance(attrs.get("zarr.dtype"), list):
        raise Unsure
    kept = {("metadata" if k.endswith(".metadata") and isinstance(v, dict) else k): counted(k, v)
            for k, v in attrs.items() if counts(k, v)}
    items = sorted(kept.items(), key=lambda item: item[0].encode())
    return number(len(items)) + b"".join(text(k) + text(typed(v)) for k, v in items)


def content_hash(tensors, attrs, extras):
    """tensors: (name, hash, attrs) each; extras: (key, bytes)."""
    tensors = [t for t in tensors if t[2] != {"tenfold.filler": True}]
    pieces = [b"tenfold content 2\n", number(len(tensors))]
    for name, digest, own in sorted(tensors, key=lambda t: t[0].encode()):
        pieces += [text(name), digest, attributes(own)]
    pieces += [attributes(attrs), number(len(extras))]
    for key, data in sorted(extras, key=lambda extra: extra[0].encode()):  # equal keys: as in the file
        pieces += [text(key), text(data)]
    return sha(*pieces)


# ------------------------------------------------------------------------------------ the command

def run(*args):
    return subprocess.run([sys.argv[1], *map(str, args)], capture_output=True, check=False)


def told(path, *options):
    done = run("hash", "--json", *options, path)
    if done.returncode:
        return None
    found = json.loads(done.stdout)
    check(found["hash_version"] == 2, path, "has another version")
    return found


def raw(path, options, *names):
    return run("cat", "--raw", *options, path, *(name.replace("\0", "\\x00") for name in names))


# ----------------------------------------------------------------------------------- the fixtures

SAFETENSORS = {"F8_E4M3": "f8_e4m3fn", "F8_E5M2": "f8_e5m2", "F8_E8M0": "f8_e8m0",
               "F4": "f4_e2m1", "F6_E2M3": "f6_e2m3", "F6_E3M2": "f6_e3m2"}


def parsed_safetensors(path):
    """(tensors, metadata), parsed without other tools; None if the header has fields that this test
    does not know."""
    data = path.read_bytes()
    n = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + n])
    metadata = header.pop("__metadata__", {})
    tensors = []
    for name, t in header.items():
        if len(t) > 3:
            return None
        begin, end = (8 + n + at for at in t["data_offsets"])
        kind = SAFETENSORS.get(t["dtype"], t["dtype"].lower())
        digest = tensor_hash("dense", t["shape"], [("data", kind, data[begin:end])])
        tensors.append((name, digest, {}))
    return tensors, {"safetensors.metadata": metadata} if metadata else {}


def part_name(t, p):
    return t["name"] + ("" if t["layout"] == "dense" else "#" + p["role"])


def all_parts(path, listed, options):
    """{name: bytes}, by one command; without those that it cannot give, and empty if names are patterns."""
    sizes = {part_name(t, p): p["nbytes"] for t in listed for p in t["parts"]}
    if len(sizes) < 2 or any(set("*?[") & set(name) for name in sizes):
        return {}
    done = raw(path, options, *sizes)
    if done.returncode or len(done.stdout) != sum(sizes.values()):
        return {}
    found, at = {}, 0
    for name, n in sizes.items():
        found[name], at = done.stdout[at:at + n], at + n
    return found


def listed_tensor(path, t, want, options, read):
    parts = []
    for p in t["parts"]:
        data = read.get(part_name(t, p))
        if data is None:
            done = raw(path, options, part_name(t, p))
            if done.returncode:
                return None
            data = done.stdout
        digest = want.get("sha256") if t["layout"] == "dense" else want.get("parts", {}).get(p["role"])
        if digest:
            check(hashlib.sha256(data).hexdigest() == digest, path, t["name"], "other bytes")
        parts.append((p["role"], p["dtype"], data))
    return tensor_hash(t["layout"], t["shape"], parts)


def in_zip(path, info, extra):
    """The end of a member of an archive, or the complete member. It counts in decompressed form."""
    name = extra["key"].split(".", 1)[1]
    with zipfile.ZipFile(path) as archive:
        root = info["attrs"].get("pytorch.root")
        name = f"{root}/{name}" if root else name
        if name not in archive.namelist():
            name = name.removesuffix(".trailing")
        data = archive.read(name)
    return data[len(data) - extra["nbytes"]:]


def extras_of(path, info):
    if info["extras"] and zipfile.is_zipfile(path):
        return [(x["key"], in_zip(path, info, x)) for x in info["extras"]]
    data = path.read_bytes() if info["extras"] else b""
    return [(x["key"], data[x["offset"]:x["offset"] + x["nbytes"]]) for x in info["extras"]]


def compare_content(path, found, tensors, attrs, extras):
    try:
        digest = content_hash(tensors, attrs, extras).hex()
    except Unsure:
        return False
    check(found["hash"] == "sha256:" + digest, path, "has the hash", found["hash"])
    return True


def check_listed(path, want, options):
    """The numbers of tensors and of content hashes that were compared."""
    found = told(path, *options)
    if not found:
        return 0, 0
    info = json.loads(run("info", "--json", *options, path).stdout)
    listed = json.loads(run("ls", "--json", *options, path).stdout)["tensors"]
    wanted = {t["name"]: t for t in want.get("tensors", [])}
    if len({str(t["name"]) for t in listed}) < len(listed):  # if two tensors have one name, one of them is found
        return 0, 0
    if not all(isinstance(t["name"], str) for t in listed):
        return 0, 0
    tensors, read = [], all_parts(path, listed, options)
    for t, h in zip(listed, found["tensors"]):
        digest = listed_tensor(path, t, wanted.get(t["name"], {}), options, read)
        if digest:
            check(h["hash"] == "sha256:" + digest.hex(), path, t["name"], "has the hash", h["hash"])
            tensors.append((t["name"], digest, t["attrs"] or {}))
    whole = len(tensors) == len(listed) and compare_content(path, found, tensors, info["attrs"],
                                                            extras_of(path, info))
    return len(tensors), int(whole)


def check_fixture(path, want):
    options = ["--lenient"] if want.get("lenient") else []
    parsed = parsed_safetensors(path) if path.suffix == ".safetensors" and not options else None
    if parsed:
        tensors, attrs = parsed
        found = told(path)
        if "tenfold.stash" not in attrs.get("safetensors.metadata", {}):
            by_name = {t["name"]: t["hash"] for t in found["tensors"]}
            for name, digest, _ in tensors:
                check(by_name.get(name) == "sha256:" + digest.hex(), path, name)
            return len(tensors), int(compare_content(path, found, tensors, attrs, []))
    return check_listed(path, want, options)


def check_fixtures():
    sums = [0, 0, 0]
    for expect in TESTS.glob("formats/*/expect.json"):
        DOCUMENTS.update(json.loads(expect.read_text()).get("documents", []))
    for expect in sorted(TESTS.glob("formats/*/expect.json")):
        for name, want in sorted(json.loads(expect.read_text())["valid"].items()):
            tensors, contents = check_fixture(expect.parent / "valid" / name, want)
            sums = [sums[0] + 1, sums[1] + tensors, sums[2] + contents]
    check(sums[1] >= 1000 and sums[2] >= 250, "too few were compared:", sums)
    return sums


# ----------------------------------------------------------------------------------- large tensors

def noise(n, seed):
    """Bytes that have no repetition within a leaf, and compress a little."""
    block = b"".join(sha(number(seed), number(i))[:31] + b"\0" for i in range(4096))
    return b"".join(number(i) + block[:4088] for i in range(n // 4096 + 1))[:n]


LARGE = {"several": ("F32", [1700, 1500]), "exact": ("U8", [2 * LEAF]), "one": ("U8", [LEAF]),
         "one_more": ("U8", [LEAF + 1]), "one_less": ("U8", [LEAF - 1]), "empty": ("F32", [0, 3]),
         "tiny": ("I16", [3]), "deep": ("F32", [3, 700, 2, 700])}


def write_large(path):
    header, data, parts = {}, b"", {}
    for seed, (name, (kind, shape)) in enumerate(LARGE.items()):
        n = {"F32": 4, "U8": 1, "I16": 2}[kind]
        for d in shape:
            n *= d
        parts[name] = (kind.lower(), shape, noise(n, seed))
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + n]}
        data += parts[name][2]
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(number(len(head)) + head + data)
    return {name: (tensor_hash("dense", shape, [("data", kind, b)]), leaves(b))
            for name, (kind, shape, b) in parts.items()}


FORMS = {"ztensor2": [], "ztensor2-zstd": ["-o", "encoding=zstd"], "ztensor1-zstd": ["-o", "encoding=zstd"],
         "ztensor0-zstd": ["-o", "encoding=zstd"], "primitiv": ["--allow-loss"]}


def check_large(where):
    plain = where / "large.safetensors"
    want = write_large(plain)
    whole = content_hash([(name, digest, {}) for name, (digest, _) in want.items()], {}, [])
    paths = [plain]
    for form, options in FORMS.items():
        path = where / f"{form}.out"
        done = run("convert", "-q", plain, path, "-t", form.split("-")[0], *options)
        if check(done.returncode == 0, form, done.stderr.decode()):
            paths.append(path)
    for path in paths:
        found = told(path, "--leaves")
        for t in found["tensors"]:
            digest, leaf = want[t["name"]]
            check(t["hash"] == "sha256:" + digest.hex(), path.name, t["name"], "has another hash")
            got = [x["hash"] for x in t["leaves"]]
            check(got == ["sha256:" + x.hex() for x in leaf], path.name, t["name"], "other leaves")
            check([x["offset"] for x in t["leaves"]] == [i * LEAF for i in range(len(leaf))],
                  path.name, t["name"], "other offsets")
        if len(found["tensors"]) == len(LARGE):
            check(found["hash"] == "sha256:" + whole.hex(), path.name, "has another content hash")
    return len(paths)


def main():
    table = (TESTS.parent / "src/core/look/uncounted.c").read_text()
    check(UNCOUNTED == set(re.findall(r'^    "([^"]+)",$', table, re.M)) != set(),
          "the page and the table have other keys")
    files, tensors, contents = check_fixtures()
    with tempfile.TemporaryDirectory(prefix="tenfold-hash.") as where:
        forms = check_large(pathlib.Path(where))
    for line in problems:
        print(line)
    print(f"content hash: {files} fixtures, {tensors} tensors, {contents} contents, "
          f"{forms} forms of large tensors, {len(problems)} wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    os.environ["LC_ALL"] = "C.UTF-8"
    sys.exit(main())
