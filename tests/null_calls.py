#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""null_calls.py HEADERS OUT: writes a C function that calls each public function with NULL for one
of its pointers and good values for all other parameters. tests/nulls.c includes it.

Pointers to results are left out, because they must not be NULL, and so are contexts of functions,
which the library does not check.
"""
import pathlib
import re
import sys

# The argument for a parameter: by its name, else by its type. `x` is the fixture in nulls.c.
BY_NAME = {
    "path": "x.path", "directory": "x.nowhere", "url": '"http://127.0.0.1:1/x"', "json": '"1"',
    "text": '"1"', "msgpack": '"\\x01"', "id": '"f32"', "prefix": '"e"', "role": '"data"',
    "pattern": '"*"', "key": '"k"', "name": '"embeddings"', "n": "1", "size": "sizeof x.bytes",
    "room": "sizeof x.bytes", "rank": "1", "ndevices": "1", "nuints": "1", "nfloats": "1",
    "fd": "-1", "s": '"s"', "p": '"p"', "format": '"%s", "x"',
}
BY_FUNCTION = {
    "tnf_read": {"n": "24"},
    "tnf_read_slice": {"n": "16"},
    "tnf_save_sink": {"options": "&x.save"},
    "tnf_save_in_place": {"options": "&x.save"},
    "tnf_split": {"options": "&x.split", "directory": "x.nowhere"},
    "tnf_device_open": {"name": '"host"'},
    "tnf_emb_nearest": {"query": "&x.query"},
    "tnf_emb_nearest_f64": {"query": "&x.query"},
    "tnf_emb_similar": {"query": "&x.query"},
    "tnf_emb_analogy": {"query": "&x.query", "words": "x.words"},
    "tnf_primitiv_load": {"path": "x.path"}, "tnf_primitiv_load_optimizer": {"path": "x.path"},
    "tnf_points_add": {"n": "4"},
    "tnf_primitiv_save": {"path": "x.nowhere"},
    "tnf_convert_path": {"from": "x.path", "path": "x.nowhere", "options": "&x.convert"},
    "tnf_params_derive_n": {"n": "10"},
    "tnf_params_find_derived": {"kind": '"k"'},
    "tnf_slice_parse": {"text": '":,0"', "rank": "2"},
}
BY_TYPE = {
    "const tnf_file *": "x.file", "tnf_file *": "x.file", "const tnf_file *const *": "&x.a_file",
    "tnf_builder *": "x.builder", "const tnf_builder *": "x.builder", "const tnf_object *": "x.object",
    "const tnf_object *const *": "&x.object", "const tnf_part *": "x.object->parts",
    "const tnf_type *": "x.object->parts->type", "const tnf_layout *": "x.object->layout",
    "const tnf_value *": "&x.value", "tnf_value ": "x.value", "const tnf_extra *": "&x.extra",
    "const tnf_emb *": "x.emb", "tnf_emb *": "x.emb", "tnf_points *": "x.points",
    "const tnf_points *": "x.points", "const tnf_point *": "&x.point", "tnf_params *": "x.params",
    "const tnf_params *": "x.params", "const tnf_param *": "x.param", "const tnf_derived *": "x.form", "const tnf_derive *": "&x.derive",
    "tnf_device *": "x.device",
    "tnf_device *const *": "&x.device", "tnf_load *": "x.load", "const tnf_load *": "x.load",
    "const tnf_device_request *": "&x.request", "tnf_job *": "x.job", "const tnf_job *": "x.job",
    "tnf_virtual *": "x.virtual", "const tnf_virtual *": "x.virtual", "tnf_source *": "x.source",
    "tnf_sink *": "x.sink", "const tnf_sink *": "x.sink", "const tnf_report *": "x.report",
    "tnf_report *": "x.report", "tnf_device_memory *": "x.memory", "const tnf_str *": "&x.word",
    "tnf_str ": "x.word", "const uint64_t *": "x.shape", "const tnf_slice *": "x.slices",
    "const tnf_request *": "&x.read", "const tnf_member *": "&x.member", "tnf_binding *": "&x.binding",
    "tnf_primitiv_binding *": "&x.weight",
    "const tnf_primitiv_binding *": "&x.weight", "const tnf_primitiv_shape *": "&x.weight.shape",
    "tnf_primitiv_config *": "&x.config", "const tnf_primitiv_config *": "&x.config", "const tnf_space *": "&x.space",
    "const tnf_source_ops *": "&x.source_ops", "const tnf_sink_ops *": "&x.sink_ops",
    "const tnf_scheme *": "&x.scheme", "const tnf_job_options *": "&x.plan",
    "const tnf_virtual_how *": "&x.how", "const char *const *": "&x.a_name",
    "const float *": "x.floats", "const double *": "x.doubles", "const void *": "x.bytes",
    "tnf_fetch_fn ": "fetch_bytes", "tnf_take_fn ": "take_bytes", "tnf_emb_take_fn ": "take_ngram",
    "tnf_point_take_fn ": "take_point", "tnf_points_moved_fn ": "see_move",
    "tnf_points_problem_fn ": "see_fault", "tnf_bind_problem_fn ": "see_binding",
    "tnf_access ": "TNF_ACCESS_AUTO", "tnf_dtype ": "TNF_F32", "tnf_kind ": "TNF_INT",
    "tnf_status ": "TNF_EIO", "tnf_id ": "x.id",
}
# NULL has a meaning here (see the header), so the call may succeed.
OPTIONAL = {
    "tnf_builder_new.allocator", "tnf_builder_add_object.name", "tnf_builder_set.name",
    "tnf_builder_set_n.name", "tnf_builder_set.value", "tnf_builder_set_n.value", "tnf_expect.type",
    "tnf_expect.shape", "tnf_expect.object", "tnf_virtual_new.how", "tnf_bind.problem", "tnf_primitiv_find.statistic", "tnf_primitiv_add.statistic",
    "tnf_builder_merge.names", "tnf_points_compact.moved", "tnf_points_verify.problem",
    "tnf_points_set_attributes.attributes", "tnf_convert.report", "tnf_convert_path.path", "tnf_convert_path.options",
    "tnf_points_add.app", "tnf_convert.path",
    "tnf_format_for_builder.path",
}
# The fixture, embeddings with words, is of the wrong kind for these: they refuse it in any case.
UNFIT = {"tnf_emb_reconstruct", "tnf_emb_explicit", "tnf_primitiv_bind", "tnf_primitiv_load", "tnf_primitiv_load_optimizer", "tnf_primitiv_save",
         "tnf_strings_map",
         "tnf_expect"}
# Handles that a function changes or uses; a pointer to anything else that is not const is a result.
HANDLES = {"file", "source", "sink", "builder", "emb", "params", "points", "job", "device", "load",
           "device_memory", "virtual", "report", "binding", "primitiv_binding",
           "primitiv_config"}
ROOT = pathlib.Path(__file__).parent.parent
SIZED = (ROOT / "src/base/sized.h").read_text()
EXPORTED = set((ROOT / "tools/symbols.txt").read_text().split())


def split_parameter(text):
    text = " ".join(text.split())
    array = re.match(r"(.*?)(\w+)\[\d*\]$", text)
    if array:
        return array[1].strip() + " *", array[2]
    match = re.match(r"(.*?[ *])(\w+)$", text)
    return (match[1], match[2]) if match else (text, "")


def is_pointer(kind):
    return "*" in kind or kind.endswith("_fn ")


def is_result(kind):
    if kind.endswith("_fn ") or kind.startswith("const ") and kind.count("*") == 1:
        return False
    if "*const *" in kind:
        return False
    struct = re.match(r"tnf_(\w+) \*$", kind)
    return "*" in kind and not (struct and struct[1] in HANDLES)


def functions(headers):
    for path in sorted(pathlib.Path(headers).glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        for match in re.finditer(
                r"TNF_API\s+([^;{}#]*?)(tnf_\w+)\(([^;{}]*?)\)\s*(?:TNF_PRINTF\([^)]*\)\s*)?;", text):
            yield (match[1].replace("TNF_CHECKED", "").strip(), match[2],
                   [split_parameter(p) for p in match[3].split(",") if p.strip() not in ("void", "...")])


def good_value(kind, name, function):
    if function in BY_FUNCTION and name in BY_FUNCTION[function]:
        return BY_FUNCTION[function][name]
    if kind == "tnf_error *":
        return "e"
    if kind == "void *" and name == "ctx":
        return "NULL"
    if is_result(kind) and kind.count("*") == 1:
        sized = f"TNF_LAST_{kind[:-2]} " in SIZED
        return f"sized_result(sizeof({kind[:-2]}))" if sized else "(void *)x.bytes"
    if is_result(kind):
        return "(void *)&x.out"
    if kind.endswith("_options *") or kind.endswith("_query *") or kind.endswith("_change *") or \
            kind in ("const tnf_job_how *", "const tnf_allocator *"):
        return BY_TYPE.get(kind, "NULL")
    if kind in BY_TYPE:
        return BY_TYPE[kind]
    if name in BY_NAME:
        return BY_NAME[name]
    if not is_pointer(kind):
        return "0"
    sys.exit(f"null_calls.py: nothing is known that could stand for '{kind}{name}'")


def main():
    cases = []
    missing = EXPORTED - {name for _, name, _ in functions(sys.argv[1])}
    if missing:
        sys.exit(f"null_calls.py: not found in the headers: {', '.join(sorted(missing))}")
    for result, name, parameters in functions(sys.argv[1]):
        # A report is set even after a failure.
        returned = any(is_result(k) and k.count("*") == 2 for k, _ in parameters) and not name.startswith("tnf_convert")
        if name == "tnf_error_set":
            continue
        good = f"{name}({', '.join(good_value(*p, name) for p in parameters)})"
        if result == "tnf_status":
            cases.append((name, f"status = {good};", name in UNFIT, False))
        for i, (kind, parameter) in enumerate(parameters):
            if not is_pointer(kind) or kind in ("tnf_error *",) or parameter == "ctx":
                continue
            if good_value(kind, parameter, name) == "NULL" or is_result(kind):
                continue
            values = ["NULL" if k == i else good_value(*p, name) for k, p in enumerate(parameters)]
            call = f"{name}({', '.join(values)})"
            optional = f"{name}.{parameter}" in OPTIONAL
            if result == "tnf_status":
                body = f"status = {call};"
            else:
                optional = True
                body = f"(void){call};" if result != "void" else f"{call};"
            cases.append((f"{name}.{parameter}", body, optional, returned))
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write("/* Made by tests/null_calls.py. */\n")
        out.write("static tnf_status make_call(size_t i, tnf_error *e)\n{\n")
        out.write("    tnf_status status = TNF_OK;\n    switch (i) {\n")
        for i, (_, body, _, _) in enumerate(cases):
            out.write(f"    case {i}:\n        {body}\n        break;\n")
        out.write("    default:\n        break;\n    }\n    return status;\n}\n\n")
        out.write("static const struct {\n    const char *name;\n    bool optional, returned;\n} cases[] = {\n")
        for name, _, optional, returned in cases:
            out.write(f'    {{ "{name}", {str(optional).lower()}, {str(returned).lower()} }},\n')
        out.write("};\n")


main()
