/* SPDX-License-Identifier: MIT */
/* The walk through a model: finds the tensors, names them, and updates the lengths around tensors
 * that change.
 *
 *   ModelProto ─ 7 graph ─┬─ 5 initializer ──────────────────────────────> tensor
 *                         ├─ 15 sparse_initializer ──────────────────────> sparse tensor
 *                         └─ 1 node ─ 5 attribute ─┬─ 5 t, 10 tensors ───> tensor
 *              ─ 20 training_info ─ 1, 2 graphs    ├─ 22, 23 sparse ─────> sparse tensor
 *              ─ 25 functions ─ 7 node             └─ 6 g, 11 graphs ────> the same again
 */
#include "base/str.h"
#include "formats/onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    tnf_str name, output, op, domain;
    uint64_t index;
};

static tnf_status walk_graph(ox_walk *w, const tnf_protobuf *message, tnf_str prefix, int64_t *more,
                             tnf_error *e);

/* -------------------------------------------------------------------- edits */

tnf_status tnf_ox_edit(ox_walk *w, const ox_edit *edit, tnf_error *e)
{
    tnf_buf_put(&w->edits, edit, sizeof *edit);
    return tnf_buf_status(&w->edits, "the model", e);
}

tnf_status tnf_ox_relength(ox_walk *w, const tnf_protobuf_field *f, int64_t *more, tnf_error *e)
{
    ox_edit edit = { .at = f->length_at, .cut = f->offset - f->length_at };
    if (*more == 0)
        return TNF_OK;
    edit.n = (uint8_t)tnf_protobuf_put(edit.bytes, f->n + (uint64_t)*more);
    *more += (int64_t)edit.n - (int64_t)edit.cut;
    return tnf_ox_edit(w, &edit, e);
}

static int compare_places(const void *a, const void *b)
{
    const ox_edit *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

void tnf_ox_sort(ox_walk *w)
{
    if (w->edits.n)
        qsort(w->edits.p, w->edits.n / sizeof(ox_edit), sizeof(ox_edit), compare_places);
}

/* -------------------------------------------------------------------- names */

static tnf_status read_text(ox_walk *w, const tnf_protobuf *m, const tnf_protobuf_field *f,
                            tnf_str *out, tnf_error *e)
{
    if (f->type != TNF_PROTOBUF_LENGTH)
        return tnf_fail(e, TNF_EFORMAT, f->at, "a text is invalid");
    return tnf_protobuf_text(m, f, OX_MAX_NAME, w->arena, out, e);
}

static tnf_status join_names(tnf_str *out, ox_walk *w, const tnf_str *parts, size_t n, tnf_error *e)
{
    size_t length = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        length += parts[i].n;
    char *p = tnf_arena_raw(w->arena, length + 1);
    if (!p)
        return tnf_arena_fail(w->arena, "a name", e);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].n)
            memcpy(p + at, parts[i].p, parts[i].n);
        at += parts[i].n;
    }
    p[length] = 0;
    *out = (tnf_str) { p, length };
    return TNF_OK;
}

/* Takes the name if it is free. */
static tnf_status take_name(ox_walk *w, tnf_str name, bool *free, tnf_error *e)
{
    tnf_member *known = NULL;
    TNF_TRY(tnf_attrs_find(&w->used, name.p, name.n, &known, e));
    *free = !known;
    return known ? TNF_OK
                 : tnf_attrs_set(&w->used, name.p, name.n, (tnf_value) { .kind = TNF_NULL }, e);
}

/* Makes a unique name for a node: from its name, its first output, or its number, followed by
 * `behind`. */
static tnf_status node_name(tnf_str *out, ox_walk *w, tnf_str prefix, const struct node *node,
                            tnf_str behind, uint64_t at, tnf_error *e)
{
    char number[32];
    int length = snprintf(number, sizeof number, "#%llu", (unsigned long long)node->index);
    tnf_str first = node->name.n ? node->name : node->output;
    const tnf_str ways[3][4] = {
        { prefix, first, { "", 0 }, behind },
        { prefix, node->output, { "", 0 }, behind },
        { prefix, first, { number, (size_t)length }, behind },
    };
    bool free = false;
    for (int i = first.n ? 0 : 2; i < 3 && !free; i++) {
        TNF_TRY(join_names(out, w, ways[i], 4, e));
        TNF_TRY(take_name(w, *out, &free, e));
        if (free && i > 0 && w->r)
            tnf_warn(w->r, at, "another node has the same name: this node is called %s",
                     TNF_QUOTED(*out));
    }
    return free ? TNF_OK : tnf_fail(e, TNF_EFORMAT, at, "the name %s is taken", TNF_QUOTED(*out));
}

static tnf_status take_unique(ox_walk *w, tnf_str name, uint64_t at, tnf_error *e)
{
    bool free;
    TNF_TRY(take_name(w, name, &free, e));
    return free ? TNF_OK
                : tnf_fail(e, TNF_EFORMAT, at, "two tensors are called %s", TNF_QUOTED(name));
}

/* ------------------------------------------------------------------ tensors */

static tnf_status visit_tensor(ox_walk *w, const tnf_protobuf *m, const tnf_protobuf_field *f,
                               tnf_str name, const char *kind, bool sparse, int64_t *more,
                               tnf_error *e)
{
    int64_t grown = 0;
    ox_site site = { name, kind, sparse, tnf_protobuf_inside(m, f), f->at };
    if (f->type != TNF_PROTOBUF_LENGTH)
        return tnf_fail(e, TNF_EFORMAT, f->at, "a tensor is invalid");
    TNF_TRY(w->tensor(w->ctx, w, &site, &grown, e));
    TNF_TRY(tnf_ox_relength(w, f, &grown, e));
    *more += grown;
    return TNF_OK;
}

/* The name of a TensorProto, or of the values of a sparse one. */
static tnf_status own_name(ox_walk *w, tnf_protobuf m, bool sparse, tnf_str *out, tnf_error *e)
{
    tnf_protobuf_field f;
    *out = (tnf_str) { "", 0 };
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (sparse && f.number == 1 && f.type == TNF_PROTOBUF_LENGTH)
            return own_name(w, tnf_protobuf_inside(&m, &f), false, out, e);
        if (!sparse && f.number == OX_NAME)
            TNF_TRY(read_text(w, &m, &f, out, e));
    }
    return TNF_OK;
}

static tnf_status visit_initializer(ox_walk *w, const tnf_protobuf *m, const tnf_protobuf_field *f,
                                    tnf_str prefix, uint64_t index, int64_t *more, tnf_error *e)
{
    bool sparse = f->number == 15;
    char number[32];
    tnf_str two[2] = { prefix, { "", 0 } }, name;
    if (f->type != TNF_PROTOBUF_LENGTH)
        return tnf_fail(e, TNF_EFORMAT, f->at, "a tensor is invalid");
    TNF_TRY(own_name(w, tnf_protobuf_inside(m, f), sparse, &two[1], e));
    if (two[1].n == 0) {
        int n = snprintf(number, sizeof number, "#%llu", (unsigned long long)index);
        two[1] = (tnf_str) { number, (size_t)n };
        if (w->r)
            tnf_warn(w->r, f->at, "a tensor without a name is called %s", number);
    }
    TNF_TRY(join_names(&name, w, two, 2, e));
    TNF_TRY(take_unique(w, name, f->at, e));
    return visit_tensor(w, m, f, name, sparse ? "sparse" : "initializer", sparse, more, e);
}

/* --------------------------------------------------------------- attributes */

static tnf_status attribute_tensor(ox_walk *w, const tnf_protobuf *m, const tnf_protobuf_field *f,
                                   const struct node *node, tnf_str prefix, tnf_str behind,
                                   tnf_str attribute, int64_t *more, tnf_error *e)
{
    bool sparse = f->number == 22 || f->number == 23, repeated = f->number == 10 || f->number == 23;
    bool constant = tnf_str_is(node->op, "Constant") &&
                    (node->domain.n == 0 || tnf_str_is(node->domain, "ai.onnx"));
    tnf_str name, two[2] = { prefix, node->output };
    if (constant && !repeated && tnf_str_is(attribute, sparse ? "sparse_value" : "value") &&
        node->output.n > 0) {
        TNF_TRY(join_names(&name, w, two, 2, e));
        TNF_TRY(take_unique(w, name, f->at, e));
        return visit_tensor(w, m, f, name, "constant", sparse, more, e);
    }
    TNF_TRY(node_name(&name, w, prefix, node, behind, f->at, e));
    return visit_tensor(w, m, f, name, "attribute", sparse, more, e);
}

static tnf_status visit_subgraph(ox_walk *w, const tnf_protobuf *m, const tnf_protobuf_field *f,
                                 const struct node *node, tnf_str prefix, tnf_str behind,
                                 int64_t *more, tnf_error *e)
{
    tnf_str inner;
    int64_t grown = 0;
    tnf_protobuf graph = tnf_protobuf_inside(m, f);
    if (f->type != TNF_PROTOBUF_LENGTH)
        return tnf_fail(e, TNF_EFORMAT, f->at, "a graph is invalid");
    TNF_TRY(node_name(&inner, w, prefix, node, behind, f->at, e));
    TNF_TRY(walk_graph(w, &graph, inner, &grown, e));
    TNF_TRY(tnf_ox_relength(w, f, &grown, e));
    *more += grown;
    return TNF_OK;
}

/* ":name", ":name[i]", ".name/", ".name[i]/" */
static tnf_status make_behind(tnf_str *out, ox_walk *w, tnf_str name, bool graph, bool repeated,
                              uint64_t i, tnf_error *e)
{
    char number[32];
    int n = repeated ? snprintf(number, sizeof number, "[%llu]", (unsigned long long)i) : 0;
    const tnf_str parts[4] = {
        { graph ? "." : ":", 1 }, name, { number, (size_t)n }, { "/", graph ? 1 : 0 }
    };
    return join_names(out, w, parts, 4, e);
}

static tnf_status walk_attribute(ox_walk *w, tnf_protobuf m, const struct node *node,
                                 tnf_str prefix, int64_t *more, tnf_error *e)
{
    tnf_protobuf_field f;
    tnf_str name = { "", 0 }, behind;
    uint64_t tensors = 0, graphs = 0, sparse = 0;
    for (tnf_protobuf look = m; tnf_protobuf_more(&look);) {
        TNF_TRY(tnf_protobuf_next(&look, &f, e));
        if (f.number == 1)
            TNF_TRY(read_text(w, &look, &f, &name, e));
    }
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        bool graph = f.number == 6 || f.number == 11;
        bool tensor = f.number == 5 || f.number == 10 || f.number == 22 || f.number == 23;
        bool repeated = f.number == 10 || f.number == 11 || f.number == 23;
        uint64_t *count = f.number == 10 ? &tensors : f.number == 11 ? &graphs : &sparse;
        if (!graph && !tensor)
            continue;
        TNF_TRY(make_behind(&behind, w, name, graph, repeated, repeated ? (*count)++ : 0, e));
        TNF_TRY(graph ? visit_subgraph(w, &m, &f, node, prefix, behind, more, e)
                      : attribute_tensor(w, &m, &f, node, prefix, behind, name, more, e));
    }
    return TNF_OK;
}

/* -------------------------------------------------------------------- nodes */

static tnf_status read_node(ox_walk *w, tnf_protobuf m, struct node *node, bool *plain,
                            tnf_error *e)
{
    tnf_protobuf_field f;
    *plain = true;
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number == 2 && node->output.n == 0)
            TNF_TRY(read_text(w, &m, &f, &node->output, e));
        else if (f.number == 3)
            TNF_TRY(read_text(w, &m, &f, &node->name, e));
        else if (f.number == 4)
            TNF_TRY(read_text(w, &m, &f, &node->op, e));
        else if (f.number == 7)
            TNF_TRY(read_text(w, &m, &f, &node->domain, e));
        *plain = *plain && f.number != 5;
    }
    return TNF_OK;
}

static tnf_status walk_node(ox_walk *w, const tnf_protobuf *parent, const tnf_protobuf_field *at,
                            tnf_str prefix, uint64_t index, int64_t *more, tnf_error *e)
{
    struct node node = { { "", 0 }, { "", 0 }, { "", 0 }, { "", 0 }, index };
    tnf_protobuf_field f;
    tnf_protobuf m = tnf_protobuf_inside(parent, at);
    int64_t whole = 0;
    bool plain;
    if (at->type != TNF_PROTOBUF_LENGTH)
        return tnf_fail(e, TNF_EFORMAT, at->at, "a node is invalid");
    TNF_TRY(read_node(w, m, &node, &plain, e));
    while (!plain && tnf_protobuf_more(&m)) {
        int64_t grown = 0;
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number != 5 || f.type != TNF_PROTOBUF_LENGTH)
            continue;
        TNF_TRY(walk_attribute(w, tnf_protobuf_inside(&m, &f), &node, prefix, &grown, e));
        TNF_TRY(tnf_ox_relength(w, &f, &grown, e));
        whole += grown;
    }
    TNF_TRY(tnf_ox_relength(w, at, &whole, e));
    *more += whole;
    return TNF_OK;
}

static tnf_status walk_graph(ox_walk *w, const tnf_protobuf *message, tnf_str prefix, int64_t *more,
                             tnf_error *e)
{
    tnf_protobuf m = *message;
    tnf_protobuf_field f;
    uint64_t nodes = 0, tensors = 0;
    if (++w->depth > OX_DEPTH)
        return tnf_fail(e, TNF_ELIMIT, m.pos, "graphs are nested more than %u deep", OX_DEPTH);
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number == 1)
            TNF_TRY(walk_node(w, &m, &f, prefix, nodes++, more, e));
        else if (f.number == 5 || f.number == 15)
            TNF_TRY(visit_initializer(w, &m, &f, prefix, tensors++, more, e));
    }
    w->depth--;
    return TNF_OK;
}

/* -------------------------------------------------------------------- model */

static tnf_status walk_training(ox_walk *w, const tnf_protobuf *parent,
                                const tnf_protobuf_field *at, uint64_t index, int64_t *more,
                                tnf_error *e)
{
    tnf_protobuf m = tnf_protobuf_inside(parent, at);
    tnf_protobuf_field f;
    int64_t whole = 0;
    char text[64];
    while (tnf_protobuf_more(&m)) {
        int64_t grown = 0;
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if ((f.number != 1 && f.number != 2) || f.type != TNF_PROTOBUF_LENGTH)
            continue;
        int n = snprintf(text, sizeof text, "training[%llu].%s/", (unsigned long long)index,
                         f.number == 1 ? "initialization" : "algorithm");
        tnf_protobuf graph = tnf_protobuf_inside(&m, &f);
        TNF_TRY(walk_graph(w, &graph, (tnf_str) { text, (size_t)n }, &grown, e));
        TNF_TRY(tnf_ox_relength(w, &f, &grown, e));
        whole += grown;
    }
    TNF_TRY(tnf_ox_relength(w, at, &whole, e));
    *more += whole;
    return TNF_OK;
}

static tnf_status walk_function(ox_walk *w, const tnf_protobuf *parent,
                                const tnf_protobuf_field *at, int64_t *more, tnf_error *e)
{
    tnf_protobuf m = tnf_protobuf_inside(parent, at);
    tnf_protobuf_field f;
    tnf_str name = { "", 0 }, domain = { "", 0 }, overload = { "", 0 }, prefix;
    uint64_t nodes = 0;
    int64_t whole = 0;
    for (tnf_protobuf look = m; tnf_protobuf_more(&look);) {
        TNF_TRY(tnf_protobuf_next(&look, &f, e));
        if (f.number == 1)
            TNF_TRY(read_text(w, &look, &f, &name, e));
        else if (f.number == 10)
            TNF_TRY(read_text(w, &look, &f, &domain, e));
        else if (f.number == 13)
            TNF_TRY(read_text(w, &look, &f, &overload, e));
    }
    const tnf_str parts[6] = { domain,   { "::", 2 }, name, { ":", overload.n ? 1 : 0 },
                               overload, { "/", 1 } };
    TNF_TRY(join_names(&prefix, w, parts, 6, e));
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.number == 7)
            TNF_TRY(walk_node(w, &m, &f, prefix, nodes++, &whole, e));
    }
    TNF_TRY(tnf_ox_relength(w, at, &whole, e));
    *more += whole;
    return TNF_OK;
}

tnf_status tnf_ox_walk(ox_walk *w, tnf_error *e)
{
    tnf_protobuf m = tnf_protobuf_all(w->in);
    tnf_protobuf_field f;
    uint64_t trainings = 0;
    int64_t more = 0;
    w->used.arena = w->arena;
    while (tnf_protobuf_more(&m)) {
        TNF_TRY(tnf_protobuf_next(&m, &f, e));
        if (f.type != TNF_PROTOBUF_LENGTH)
            continue;
        if (f.number == 7) {
            int64_t grown = 0;
            tnf_protobuf graph = tnf_protobuf_inside(&m, &f);
            TNF_TRY(walk_graph(w, &graph, (tnf_str) { "", 0 }, &grown, e));
            TNF_TRY(tnf_ox_relength(w, &f, &grown, e));
        } else if (f.number == 20) {
            TNF_TRY(walk_training(w, &m, &f, trainings++, &more, e));
        } else if (f.number == 25) {
            TNF_TRY(walk_function(w, &m, &f, &more, e));
        }
    }
    tnf_ox_sort(w);
    return TNF_OK;
}
