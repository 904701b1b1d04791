#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""inits.py HEADERS GENERATED CC [CXX]: uses every TNF_..._INIT of the public headers in a program, in
each dialect that users may have, without a warning. Then runs it: in a struct with a size, all other
members are 0, since an older program does not set the newer ones."""
import pathlib
import re
import subprocess
import sys
import tempfile

STRICT = ["-Wall", "-Wextra", "-pedantic", "-Wshadow", "-Wundef", "-Wconversion", "-Werror"]
DIALECTS = {"c": ["c99", "c11", "c17"], "c++": ["c++11", "c++14", "c++17", "c++20"]}


def initializers(headers):
    """Yields each macro, and the struct before it."""
    for path in headers:
        text = path.read_text()
        for macro in re.finditer(r"#define (TNF_\w+_INIT)\s", text):
            structs = re.findall(r"^} (tnf_\w+);$", text[:macro.start()], re.M)
            sized = re.search(r"struct " + structs[-1] + r" \{\s*size_t size;", text) is not None
            yield macro[1], structs[-1], sized


def program(headers):
    lines = [f"#include <tenfold/{path.name}>" for path in headers]
    lines += ["#include <stdio.h>", "int main(void);", "int main(void)", "{", "    int bad = 0;", "    size_t i;"]
    for macro, struct, sized in initializers(headers):
        lines += ["    {", f"        static const {struct} kept = {macro};", f"        {struct} made = {macro};",
                  "        const unsigned char *bytes = reinterpret(&kept);", "        made = kept;"]
        if sized:
            lines += [f"        if (made.size != sizeof({struct}))", f'            bad = puts("{macro}: size");',
                      "        for (i = sizeof made.size; i < sizeof kept; i++)", "            if (bytes[i] != 0)",
                      f'                bad = puts("{macro}: a default is not 0");']
        else:
            lines += ["        for (i = 0; i < sizeof made; i++)", "            (void)bytes[i];"]
        lines += ["        (void)made;", "    }"]
    lines += ["    return bad;", "}"]
    cast = ["#include <stddef.h>", "static const unsigned char *reinterpret(const void *p);",
            "static const unsigned char *reinterpret(const void *p)", "{",
            "#ifdef __cplusplus", "    return static_cast<const unsigned char *>(p);", "#else", "    return p;", "#endif", "}"]
    return "\n".join(cast + lines) + "\n"


def main():
    include, generated, *compilers = sys.argv[1:]
    headers = sorted(pathlib.Path(include).glob("tenfold/*.h"))
    with tempfile.TemporaryDirectory() as work:
        source, made = pathlib.Path(work, "inits.c"), pathlib.Path(work, "inits")
        source.write_text(program(headers))
        for compiler, (language, dialects) in zip(compilers, DIALECTS.items()):
            for dialect in dialects:
                subprocess.run([compiler, f"-std={dialect}", "-x", language, *STRICT, f"-I{include}", f"-I{generated}",
                                *(["-Wold-style-cast"] if language == "c++" else []), str(source), "-o", str(made)], check=True)
        done = subprocess.run([str(made)], check=False)
    print(len(list(initializers(headers))), "initializers")
    return done.returncode != 0


sys.exit(main())
