/* SPDX-License-Identifier: MIT */
/* The audit: lists what the pickles of a file would call if a program loaded them, and how
 * dangerous that would be. The audit itself prevents nothing: the pickle machine executes nothing,
 * and this file only reports. */
#include "formats/pytorch/pt.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define SHOWN  120u
#define RECENT 16u

/* ---------------------------------------------------------------- classes */

/* Names that trees of tensors need; this reader interprets them. */
static const char known_names[] =
    "collections.OrderedDict torch.Size torch.device torch.Tensor torch.Generator "
    "torch.nn.parameter.Parameter torch.autograd.variable.Variable torch.serialization._get_layout "
    "torch._tensor._rebuild_from_type_v2 torch._tensor._rebuild_from_type "
    "torch.tensor._rebuild_from_type torch.per_tensor_affine torch.per_channel_affine "
    "torch.per_channel_affine_float_qparams torch.per_tensor_symmetric torch.per_channel_symmetric "
    "torch.strided torch.sparse_coo torch.sparse_csr torch.sparse_csc torch.sparse_bsr "
    "torch.sparse_bsc";

/* More names that torch.load(weights_only=True) accepts. */
static const char weights_only_names[] =
    "collections.Counter _codecs.encode builtins.set builtins.bytearray builtins.complex";

static bool is_known(const tnf_pickle_global *g, const char *full, size_t n)
{
    tnf_str module = g->module, name = g->name;
    if (tnf_str_listed((tnf_str) { full, n }, known_names))
        return true;
    bool torch = tnf_str_begins(module, "torch") && (module.n == 5 || module.p[5] == '.');
    if (torch && tnf_str_ends(name, "Storage") && tnf_pt_type_of_storage(name))
        return true;
    if (tnf_str_is(module, "torch") && tnf_pt_type_named(name))
        return true;
    return (tnf_str_begins(name, "_rebuild_") && tnf_str_is(module, "torch._utils")) ||
           tnf_str_is(module, "torch.jit._pickle");
}

pt_danger tnf_pt_danger(const tnf_pickle_node *global)
{
    const tnf_pickle_global *g = global->as.global;
    char full[300];
    int n = snprintf(full, sizeof full, "%.*s.%.*s", (int)(g->module.n < 140 ? g->module.n : 140),
                     g->module.p, (int)(g->name.n < 140 ? g->name.n : 140), g->name.p);
    if (tnf_pickle_dangerous(global))
        return PT_DANGEROUS;
    if (is_known(g, full, (size_t)n))
        return PT_KNOWN;
    return tnf_pickle_plain(global) ? PT_PLAIN : PT_UNKNOWN;
}

/* ---------------------------------------------------------------- noting */

/* The audit of one pickle. */
typedef struct audit {
    pt_file *f;
    pt_call where;
    tnf_arena names; /* memory for one name at a time */
    struct {
        const tnf_pickle_node *callee;
        uint32_t at;  /* in the list of calls */
    } recent[RECENT]; /* most calls are of the same few functions */
    tnf_error *e;
} audit;

/* Finds the name in the list, or adds it; *at is its position. */
static tnf_status note_name(uint32_t *at, audit *x, const char *name, const pt_call *what)
{
    pt_file *f = x->f;
    uint32_t known;
    pt_call c = *what;
    if (!name)
        return tnf_arena_fail(&x->names, "names in a pickle", x->e);
    c.name = (tnf_str) { name, strlen(name) };
    *at = tnf_named_find(&f->call_list, c.name);
    if (*at != TNF_HASH_NONE) { /* c of a.b and b.c of a have the same full name */
        pt_call *there = tnf_named_at(&f->call_list, *at);
        there->danger = there->danger > c.danger ? there->danger : c.danger;
        return TNF_OK;
    }
    c.name.p = tnf_arena_str(f->r->arena, name, c.name.n); /* each name is kept only once */
    if (!c.name.p)
        return tnf_arena_fail(f->r->arena, "names in a pickle", x->e);
    *at = tnf_named_count(&f->call_list);
    return tnf_named_add(&f->call_list, &c, &known, x->e);
}

/* The name of the callee, for messages. */
static const char *callee_name(const tnf_pickle_node *callee, tnf_arena *arena)
{
    if (callee->kind == TNF_PICKLE_GLOBAL)
        return tnf_pt_global_name(callee, arena);
    return callee->kind == TNF_PICKLE_CALL ? "(the result of a call)" : "(a persistent object)";
}

static bool is_class_of_legacy(const tnf_pickle_node *callee)
{
    return callee->kind == TNF_PICKLE_PERSISTENT;
}

static tnf_status note_call(audit *x, const tnf_pickle_node *call)
{
    pt_file *f = x->f;
    tnf_arena *a = f->r->arena;
    const tnf_pickle_node *callee = call->as.call->callee;
    size_t slot = (uintptr_t)callee / sizeof *callee % RECENT;
    pt_call c = x->where, *there;
    uint32_t at = x->recent[slot].at;
    if (x->recent[slot].callee != callee) {
        c.offset += call->at;
        c.danger = callee->kind == TNF_PICKLE_GLOBAL ? (uint8_t)tnf_pt_danger(callee)
                   : is_class_of_legacy(callee)      ? PT_UNKNOWN
                                                     : PT_DANGEROUS;
        tnf_arena_reset(&x->names);
        TNF_TRY(note_name(&at, x, callee_name(callee, &x->names), &c));
        x->recent[slot].callee = callee;
        x->recent[slot].at = at;
    }
    there = tnf_named_at(&f->call_list, at);
    there->calls++;
    if (there->called || there->danger == PT_KNOWN)
        return TNF_OK;
    char shown[SHOWN];
    tnf_pickle_show(shown, sizeof shown, call->as.call->args);
    there->called = true;
    there->offset = x->where.offset + call->at;
    there->args = tnf_arena_str(a, shown, strlen(shown));
    return there->args ? TNF_OK : tnf_arena_fail(a, "the calls of a pickle", x->e);
}

static tnf_status note_global(audit *x, const tnf_pickle_node *g)
{
    pt_call c = x->where;
    uint32_t at;
    c.offset += g->at;
    c.danger = (uint8_t)tnf_pt_danger(g);
    tnf_arena_reset(&x->names);
    TNF_TRY(note_name(&at, x, tnf_pt_global_name(g, &x->names), &c));
    ((pt_call *)tnf_named_at(&x->f->call_list, at))->named++;
    return TNF_OK;
}

tnf_status tnf_pt_audit(pt_file *f, const tnf_pickle *p, const char *name, uint64_t base,
                        tnf_error *e)
{
    audit x = { .f = f, .where = { .pickle = name, .offset = base }, .e = e };
    tnf_status status = TNF_OK;
    f->pickles++;
    f->left += PT_VALUES_RATIO * (uint64_t)p->used;
    f->scan_left += f->nested ? 0 : p->used;
    tnf_arena_init(&x.names, &f->r->scratch->alloc, f->r->limits.memory);
    for (size_t i = 0; i < p->globals.n && status == TNF_OK; i++)
        status = note_global(&x, p->globals.nodes[i]);
    for (size_t i = 0; i < p->calls.n && status == TNF_OK; i++)
        status = note_call(&x, p->calls.nodes[i]);
    for (size_t i = 0; i < p->calls.n && status == TNF_OK; i++)
        status = tnf_pt_scan_call(f, p->calls.nodes[i], name, base, e);
    tnf_arena_free(&x.names);
    return status;
}

static bool weights_only_takes(const pt_call *c)
{
    return c->danger == PT_KNOWN || tnf_str_listed(c->name, weights_only_names);
}

static const char *const class_names[] = { "known", "plain", "unknown", "dangerous" };

static tnf_status call_value(tnf_value *out, const pt_call *c, tnf_arena *a, tnf_error *e)
{
    tnf_attrs m = { .arena = a };
    TNF_TRY(tnf_attrs_push(&m, "name", tnf_value_str(TNF_STRING, c->name.p, c->name.n), e));
    TNF_TRY(tnf_attrs_push(&m, "kind", tnf_value_string(c->called ? "call" : "reference"), e));
    TNF_TRY(tnf_attrs_push(&m, "count", tnf_value_uint(c->called ? c->calls : c->named), e));
    TNF_TRY(tnf_attrs_push(&m, "offset", tnf_value_uint(c->offset), e));
    TNF_TRY(tnf_attrs_push(&m, "class", tnf_value_string(class_names[c->danger]), e));
    TNF_TRY(tnf_attrs_push(&m, "pickle", tnf_value_string(c->pickle), e));
    if (c->args)
        TNF_TRY(tnf_attrs_push(&m, "args", tnf_value_string(c->args), e));
    *out = tnf_attrs_value(&m);
    return TNF_OK;
}

static tnf_status set_calls(pt_file *f, tnf_error *e)
{
    size_t n = 0;
    tnf_value *items = tnf_arena_array(f->r->arena, f->ncalls, sizeof *items);
    if (!items)
        return tnf_arena_fail(f->r->arena, "calls", e);
    for (size_t i = 0; i < f->ncalls; i++)
        if (f->calls[i].danger != PT_KNOWN)
            TNF_TRY(call_value(&items[n++], &f->calls[i], f->r->arena, e));
    if (n == 0)
        return TNF_OK;
    return tnf_set_attr(f->r, "pytorch.calls",
                        (tnf_value) { .kind = TNF_ARRAY, .n = n, .as.items = items }, e);
}

tnf_status tnf_pt_audit_done(pt_file *f, tnf_error *e)
{
    f->ncalls = tnf_named_count(&f->call_list);
    f->calls = tnf_arena_array(f->r->arena, f->ncalls, sizeof *f->calls);
    if (!f->calls)
        return tnf_arena_fail(f->r->arena, "calls", e);
    const pt_call *first = NULL;
    for (size_t i = 0; i < f->ncalls; i++) {
        f->calls[i] = *(const pt_call *)tnf_named_at(&f->call_list, (uint32_t)i);
        const pt_call *c = &f->calls[i];
        f->danger = f->danger || c->danger == PT_DANGEROUS;
        if (!weights_only_takes(c) && !f->refused) {
            f->refused = true;
            first = c;
        }
        if (c->danger == PT_DANGEROUS && !f->failed)
            tnf_warn(f->r, c->offset,
                     "dangerous: a program that loads this file with pickle %s %.100s; nothing was "
                     "executed here",
                     c->called ? "calls" : "imports", c->name.p);
    }
    bool paddle = f->kind && strcmp(f->kind, "paddle") == 0; /* its loader accepts NumPy's arrays */
    if (first && !f->danger && !paddle && !f->failed)
        tnf_warn(f->r, first->offset,
                 "torch.load(weights_only=True) will refuse this file: it names %.100s",
                 first->name.p);
    return set_calls(f, e);
}

/* ----------------------------------------------------------------- telling */

void tnf_pt_report_calls(const pt_file *f, tnf_tell tell, void *ctx)
{
    for (size_t i = 0; i < f->ncalls; i++) {
        const pt_call *c = &f->calls[i];
        tnf_error e;
        if (c->danger != PT_DANGEROUS)
            continue;
        (void)tnf_fail(&e, TNF_EFORMAT, c->offset,
                       "in %s: loading it with pickle %s %.90s%s%.80s%s", c->pickle,
                       c->called ? "calls" : "imports", c->name.p, c->args ? " with " : "",
                       c->args ? c->args : "", c->calls > 1 ? " and more" : "");
        e.rule = "PickleCall";
        tell(ctx, &e, (tnf_str) { NULL, 0 });
    }
}

static const char *verdict_text(bool danger, bool refused, bool failed)
{
    return danger    ? "safe to torch.load: no"
           : failed  ? "safe to torch.load: no (it cannot be read completely)"
           : refused ? "safe to torch.load: only with weights_only (which may refuse it)"
                     : "safe to torch.load: yes";
}

static void note_text(void (*note)(void *ctx, const char *key, const tnf_value *v), void *ctx,
                      const char *key, const char *text)
{
    const tnf_value v = tnf_value_string(text);
    note(ctx, key, &v);
}

static const tnf_value no_calls = { .kind = TNF_ARRAY };

void tnf_pt_notes(const tnf_reader *r, void (*note)(void *ctx, const char *key, const tnf_value *v),
                  void *ctx)
{
    const pt_file *f = r->state;
    const tnf_value *calls = tnf_catalog_attr(r->catalog, "pytorch.calls");
    if (!f || (f->failed && !f->pickles))
        return; /* nothing was read */
    note(ctx, "calls", calls ? calls : &no_calls);
    if (f->slack_text) {
        note(ctx, "slack", &f->slack);
        note_text(note, ctx, "slack_text", f->slack_text);
    }
    note_text(note, ctx, "verdict", verdict_text(f->danger, f->refused, f->failed));
}

static tnf_str text_in(const tnf_value *map, const char *key)
{
    const tnf_value *v = tnf_value_get(map, key);
    return v && v->kind == TNF_STRING ? (tnf_str) { v->as.s, v->n } : (tnf_str) { "", 0 };
}

void tnf_pt_index_notes(const tnf_reader *r,
                        void (*note)(void *ctx, const char *key, const tnf_value *v), void *ctx)
{
    const tnf_value *calls = tnf_catalog_attr(r->catalog, "pytorch.calls");
    bool danger = false, refused = false;
    calls = calls && calls->kind == TNF_ARRAY ? calls : &no_calls;
    for (size_t i = 0; i < calls->n; i++) {
        tnf_str name = text_in(&calls->as.items[i], "name");
        danger = danger ||
                 tnf_str_is(text_in(&calls->as.items[i], "class"), class_names[PT_DANGEROUS]);
        refused = refused || !tnf_str_listed(name, weights_only_names);
    }
    note(ctx, "calls", calls);
    note_text(note, ctx, "verdict", verdict_text(danger, refused, false));
}

/* Lists the dangerous names, or else all unknown ones, for the error of a file that cannot be
 * read. */
void tnf_pt_name_calls(char *out, size_t size, const tnf_pickle *p, tnf_arena *arena)
{
    size_t n = 0, told = 0;
    out[0] = 0;
    for (int pass = PT_DANGEROUS; pass >= PT_UNKNOWN && told == 0; pass--)
        for (size_t i = 0; i < p->globals.n && told < 3; i++) {
            const char *full;
            if ((int)tnf_pt_danger(p->globals.nodes[i]) != pass)
                continue;
            full = tnf_pt_global_name(p->globals.nodes[i], arena);
            if (!full || strstr(out, full))
                continue;
            n += (size_t)snprintf(out + n, size - n, "%s%.60s", told++ ? ", " : "", full);
            if (n >= size)
                return;
        }
}

tnf_status tnf_pt_bad_pickle(pt_file *f, const tnf_pickle *p, const char *name, tnf_status status,
                             tnf_error *e)
{
    char names[160];
    (void)tnf_pt_audit(f, p, name, f->base, NULL); /* the caller fails in any case */
    tnf_pt_name_calls(names, sizeof names, p, f->r->scratch);
    if (e && names[0]) {
        size_t n = strlen(e->message);
        snprintf(e->message + n, sizeof e->message - n, "; before that it names %s", names);
    }
    return status;
}

tnf_status tnf_pt_pickle(pt_file *f, tnf_pickle *out, tnf_cur *c, const char *name, tnf_error *e)
{
    uint64_t base = tnf_where(c);
    f->base = base;
    tnf_status status = tnf_pickle_read(out, c->p, tnf_left(c), base, f->r->scratch, e);
    if (status != TNF_OK)
        return tnf_pt_bad_pickle(f, out, name, status, e);
    c->p += out->used;
    return tnf_pt_audit(f, out, name, base, e);
}
