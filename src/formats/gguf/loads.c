/* SPDX-License-Identifier: MIT */
/* Decides which programs would load a file, by their rules in addition to those of the format. Only
 * the container is checked, not whether a program supports the architecture of the model.
 *
 *   llama.cpp   ggml's reader in C: no version 1, the byte order of the machine (little-endian
 *               here), no arrays in arrays, names of 63 bytes at most and different up to a NUL,
 *               every tensor directly after the previous one, the first file of a set
 *   gguf-py     the package gguf 0.19: versions 2 and 3, names and texts in UTF-8, no q1_0, q2_0,
 *               and q8_1 with a wrong size
 *   both        each key and each name once, types that ggml has, all of the data
 *
 * The file was opened leniently, since both programs load files that the format forbids. Names and
 * types of all tensors of a set are checked with its first file.
 */
#include "base/hash.h"
#include "formats/gguf/gguf.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct reporter {
    tnf_tell tell;
    void *ctx;
    const char *program;
} reporter;

static void report_problem(const reporter *t, tnf_str tensor, const char *format, ...)
    TNF_PRINTF(3, 4);

static void report_problem(const reporter *t, tnf_str tensor, const char *format, ...)
{
    tnf_error problem = { .offset = TNF_NO_OFFSET };
    char why[200];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    (void)tnf_fail(&problem, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "%s will not load this: %s",
                   t->program, why);
    t->tell(t->ctx, &problem, tensor);
}

static const tnf_str none = { NULL, 0 };

/* --------------------------------------------------------------------- both */

/* Finds duplicate names. `name_of` returns the part of a name that counts. */
static tnf_status check_twice(const tnf_reader *r, tnf_arena *arena,
                              tnf_str (*name_of)(const void *ctx, uint32_t position),
                              const reporter *t, tnf_error *e)
{
    tnf_hash names;
    tnf_status status = TNF_OK;
    tnf_hash_init(&names, &arena->alloc, name_of, r->catalog);
    for (size_t i = 0; i < r->catalog->n && status == TNF_OK; i++) {
        tnf_str name = r->catalog->objects[i].name;
        uint32_t previous = TNF_HASH_NONE;
        if (!tnf_hash_add(&names, (uint32_t)i, false, &previous))
            status = tnf_no_memory("names", e);
        else if (previous != TNF_HASH_NONE)
            report_problem(t, name, "%s%s has the name of another tensor",
                           name.n && memchr(name.p, 0, name.n) ? "up to a NUL, " : "",
                           TNF_QUOTED(name));
    }
    tnf_hash_free(&names);
    return status;
}

static void check_either(const tnf_reader *r, const reporter *t)
{
    const gguf_file *g = r->state;
    if (g->version == 1)
        report_problem(t, none, "it has version 1");
    if (g->key_twice)
        report_problem(t, none, "a key occurs twice");
    if (g->cut)
        report_problem(t, none, "it is truncated: some of its data is missing");
    for (size_t i = 0; i < r->catalog->n && !r->sibling; i++) {
        const tnf_object *o = &r->catalog->objects[i];
        if (strcmp(tnf_layout_id(o->layout), GGUF_UNKNOWN) == 0)
            report_problem(t, o->name, "%s has a type that ggml does not have",
                           TNF_QUOTED(o->name));
    }
}

/* ---------------------------------------------------------------- llama.cpp */

static tnf_str name_to_nul(const void *ctx, uint32_t position)
{
    tnf_str name = ((const tnf_catalog *)ctx)->objects[position].name;
    const char *nul = name.n ? memchr(name.p, 0, name.n) : NULL;
    return (tnf_str) { name.p, nul ? (size_t)(nul - name.p) : name.n };
}

static void check_names(const tnf_reader *r, const reporter *t)
{
    for (size_t i = 0; i < r->catalog->n; i++) {
        const tnf_object *o = &r->catalog->objects[i];
        if (o->name.n > GGUF_MAX_NAME)
            report_problem(t, o->name, "the name of %s has %zu bytes; at most %u are allowed",
                           TNF_QUOTED(o->name), o->name.n, GGUF_MAX_NAME);
    }
}

static tnf_status check_llama(const tnf_reader *r, tnf_arena *arena, const reporter *t,
                              tnf_error *e)
{
    const gguf_file *g = r->state;
    if (g->big)
        report_problem(t, none, "it is big-endian");
    if (g->nested)
        report_problem(t, none, "a key has nested arrays");
    if (!g->in_order)
        report_problem(t, none, "its tensors are not contiguous in the order of their entries");
    if (g->deep.p)
        report_problem(t, g->deep, "%s has more than %u dimensions", TNF_QUOTED(g->deep),
                       GGUF_MAX_RANK);
    if (g->later)
        report_problem(t, none, "it is not the first file of its set");
    if (r->sibling)
        return TNF_OK;
    check_names(r, t);
    return check_twice(r, arena, name_to_nul, t, e);
}

/* ------------------------------------------------------------------ gguf-py */

static bool has_bytes(const tnf_value *v)
{
    for (size_t i = 0; v->kind == TNF_ARRAY && i < v->n; i++)
        if (has_bytes(&v->as.items[i]))
            return true;
    return v->kind == TNF_BYTES;
}

static tnf_status check_python(const tnf_reader *r, tnf_arena *arena, const reporter *t,
                               tnf_error *e)
{
    const gguf_file *g = r->state;
    const tnf_attrs *attrs = &r->catalog->attrs;
    if (g->key_not_utf8)
        report_problem(t, none, "a key is not UTF-8");
    for (size_t i = 0; i < attrs->n; i++)
        if (has_bytes(&attrs->members[i].value))
            report_problem(t, none, "the text of %s is not UTF-8",
                           TNF_QUOTED(attrs->members[i].key));
    for (size_t i = 0; i < r->catalog->n && !r->sibling; i++) {
        const tnf_object *o = &r->catalog->objects[i];
        const gguf_type *type = o->nparts ? tnf_gguf_type_of(o) : NULL;
        if (!tnf_utf8_valid(NULL, o->name.p, o->name.n))
            report_problem(t, o->name, "the name %s is not UTF-8", TNF_QUOTED(o->name));
        if (type && (type->id > 40 || strcmp(type->name, "q8_1") == 0))
            report_problem(t, o->name, "%s has the type %s, which it %s", TNF_QUOTED(o->name),
                           type->name,
                           type->id > 40 ? "does not support" : "reads with too large a size");
    }
    return r->sibling ? TNF_OK : check_twice(r, arena, tnf_catalog_name_at, t, e);
}

tnf_status tnf_gguf_loads(const tnf_reader *r, const char *program, tnf_arena *arena, tnf_tell tell,
                          void *ctx, tnf_error *e)
{
    const reporter t = { tell, ctx, program };
    check_either(r, &t);
    return strcmp(program, "llama.cpp") == 0 ? check_llama(r, arena, &t, e)
                                             : check_python(r, arena, &t, e);
}
