/* SPDX-License-Identifier: MIT */
/* The differences between two files: matches tensors, compares their descriptions, then their
 * values (diff_values.c), and reports everything in the order of the first file. */
#include "core/look/diff.h"

#include "base/sized.h"

#include <string.h>

#define NOWHERE SIZE_MAX

/* A tensor of the first file, and the tensor of the second file that it is compared with. */
struct pair {
    const tnf_object *a, *b;
    size_t first, n; /* its comparisons */
    bool by_values;  /* the layouts differ, so the numbers that they represent are compared */
};

/* The tensors of the second file by name. Several may have the same name; they are matched in
 * turn. */
struct names {
    tnf_hash hash;
    size_t *next; /* the next tensor of the same name, or NOWHERE */
    size_t *last; /* for the first tensor of a name: the last in its chain */
    size_t *turn; /* for the first tensor of a name: the next to be matched */
    bool *taken;
};

struct matched {
    struct pair *pairs;
    size_t n;
    struct names names;
};

void tnf_diff_tell(struct diff *d, const tnf_difference *difference)
{
    if (difference->kind != TNF_DIFF_ORDER)
        d->result->same = false;
    if (d->options.difference)
        d->options.difference(d->options.ctx, difference);
}

/* --------------------------------------------------------------- matching */

static tnf_str name_at(const void *ctx, uint32_t position)
{
    return ((const tnf_file *)ctx)->catalog.objects[position].name;
}

static bool is_selected(const struct diff *d, tnf_str name)
{
    return !d->options.select || d->options.select(d->options.ctx, name);
}

static tnf_status index_names(struct names *m, const struct diff *d, tnf_error *e)
{
    size_t n = d->b->catalog.n;
    m->next = tnf_arena_array(d->arena, n, sizeof *m->next);
    m->last = tnf_arena_array(d->arena, n, sizeof *m->last);
    m->turn = tnf_arena_array(d->arena, n, sizeof *m->turn);
    m->taken = tnf_arena_array(d->arena, n, sizeof *m->taken);
    if (!m->next || !m->last || !m->turn || !m->taken)
        return tnf_arena_fail(d->arena, "names", e);
    for (size_t i = 0; i < n; i++) {
        uint32_t known;
        m->next[i] = NOWHERE;
        m->last[i] = m->turn[i] = i;
        if (!tnf_hash_add(&m->hash, (uint32_t)i, false, &known))
            return tnf_no_memory("names", e);
        if (known != TNF_HASH_NONE) {
            m->next[m->last[known]] = i;
            m->last[known] = i;
        }
    }
    return TNF_OK;
}

static const tnf_object *take_name(struct names *m, const struct diff *d, tnf_str name)
{
    uint32_t at = tnf_hash_find(&m->hash, name.p, name.n);
    if (at == TNF_HASH_NONE || m->turn[at] == NOWHERE)
        return NULL;
    size_t i = m->turn[at];
    m->turn[at] = m->next[i];
    m->taken[i] = true;
    return &d->b->catalog.objects[i];
}

static tnf_status match_names(struct matched *m, struct diff *d, tnf_error *e)
{
    const tnf_catalog *c = &d->a->catalog;
    TNF_TRY(index_names(&m->names, d, e));
    if (!(m->pairs = tnf_arena_array(d->arena, c->n, sizeof *m->pairs)))
        return tnf_arena_fail(d->arena, "tensors", e);
    for (size_t i = 0; i < c->n; i++) {
        tnf_str name = c->objects[i].name;
        TNF_TRY(tnf_name_renamed(&name, d->options.rename, d->options.ctx, e));
        if (!is_selected(d, name) || tnf_is_filler(&c->objects[i]))
            continue;
        const tnf_object *b = take_name(&m->names, d, name);
        m->pairs[m->n++] = (struct pair) { .a = &c->objects[i],
                                           .b = b && !tnf_is_filler(b) ? b : NULL };
    }
    return TNF_OK;
}

/* ----------------------------------------------------------- descriptions */

/* Unknown types are not unique, and some formats do not give their width. */
static bool same_type(const tnf_type *a, const tnf_type *b)
{
    return a == b || strcmp(a->id, b->id) == 0;
}

static bool is_number(const tnf_type *type)
{
    return type->bits > 0 && tnf_type_decode(NULL, type, NULL, 0, 0);
}

static bool may_float(const tnf_type *type)
{
    return type->number == TNF_NUMBER_FLOAT || type->number == TNF_NUMBER_COMPLEX;
}

static bool is_dense(const tnf_object *o)
{
    return o->layout == &tnf_layout_dense && o->nparts == 1;
}

static bool types_agree(const struct diff *d, const struct pair *p, const tnf_part *a,
                        const tnf_part *b)
{
    bool ignored = d->options.ignore & TNF_DIFF_IGNORE_DTYPE && is_dense(p->a) && is_dense(p->b);
    return same_type(a->type, b->type) || (ignored && is_number(a->type) && is_number(b->type));
}

static bool sizes_agree(const tnf_part *a, const tnf_part *b)
{
    return !same_type(a->type, b->type) || a->nbytes == b->nbytes;
}

static bool by_columns(const tnf_object *o)
{
    return o->order == TNF_ORDER_F && o->rank > 1;
}

/* Digests of the decoded bytes, with 64 bits or more. */
static bool digests_agree(const struct comparison *c)
{
    const tnf_digest *x = c->a->digest, *y = c->b->digest;
    if (!x || !y || c->transposed || c->preset || !x->algorithm || !y->algorithm || x->n < 8 ||
        x->n != y->n || strcmp(x->algorithm, y->algorithm) != 0)
        return false;
    bool plain = c->a->payload == TNF_AT && c->b->payload == TNF_AT && !c->a->flags && !c->b->flags;
    return (plain || (!x->of_stored && !y->of_stored)) && memcmp(x->bytes, y->bytes, x->n) == 0;
}

static void add_comparison(struct diff *d, struct pair *p, const tnf_part *a, const tnf_part *b)
{
    struct comparison *c = &d->comparisons[d->n];
    bool alike = same_type(a->type, b->type);
    *c = (struct comparison) { .a_of = p->a, .b_of = p->b, .a = a, .b = b };
    c->transposed = is_dense(p->a) && by_columns(p->a) != by_columns(p->b);
    c->direct = !c->transposed && tnf_part_anywhere(a) && tnf_part_anywhere(b);
    c->numbers = is_number(a->type) && is_number(b->type);
    c->exact = alike && !d->options.numeric;
    c->preset = c->numbers && (!alike || (d->options.nan_differs && may_float(a->type)));
    atomic_store(&c->unlike, c->preset);
    if (d->some || !d->options.trust_digests || !digests_agree(c))
        d->n++;
}

static tnf_status check_turnable(const struct pair *p, tnf_error *e)
{
    const tnf_object *o = by_columns(p->a) ? p->a : p->b;
    if (o->parts->type->bits % 8 == 0 && o->parts->type->bits > 0)
        return TNF_OK;
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "%s has packed elements, stored column by column, which cannot be compared "
                    "row by row",
                    TNF_QUOTED(o->name));
}

static bool same_layout(const struct pair *p)
{
    return p->a->layout && p->b->layout && strcmp(p->a->layout->id, p->b->layout->id) == 0;
}

/* If types are ignored, a quantized tensor is compared by the numbers that it represents. */
static bool has_values(const struct diff *d, const struct pair *p)
{
    return d->options.ignore & TNF_DIFF_IGNORE_DTYPE && p->a->layout && p->b->layout &&
           tnf_layout_has_values(p->a->layout) && tnf_layout_has_values(p->b->layout);
}

/* May the values of this pair be compared at all? */
static bool is_comparable(const struct diff *d, const struct pair *p)
{
    return p->b && !(d->options.ignore & (TNF_DIFF_IGNORE_VALUES | TNF_DIFF_IGNORE_KIND)) &&
           (same_layout(p) || has_values(d, p)) && tnf_same_shape(p->a, p->b);
}

static tnf_status take_values(struct diff *d, const tnf_object **o, tnf_error *e)
{
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    struct made_values *made = tnf_arena_alloc(d->arena, sizeof *made);
    if (!made)
        return tnf_arena_fail(d->arena, "values", e);
    TNF_TRY(tnf_virtual_new(&made->values, o, 1, &how, e));
    made->next = d->made;
    d->made = made;
    *o = tnf_virtual_object(made->values);
    return TNF_OK;
}

static void free_values(struct diff *d)
{
    for (struct made_values *m = d->made; m; m = m->next)
        tnf_virtual_free(m->values);
}

static tnf_status plan_pair(struct diff *d, struct pair *given, tnf_error *e)
{
    struct pair values = *given, *p = &values;
    given->first = d->n;
    if (!is_comparable(d, p))
        return TNF_OK;
    given->by_values = !same_layout(p);
    if (given->by_values) {
        TNF_TRY(take_values(d, &values.a, e));
        TNF_TRY(take_values(d, &values.b, e));
    }
    if (is_dense(p->a) && is_dense(p->b) && by_columns(p->a) != by_columns(p->b) &&
        p->a->parts->nbytes > 0)
        TNF_TRY(check_turnable(p, e));
    for (uint16_t i = 0; i < p->a->nparts; i++) {
        const tnf_part *a = &p->a->parts[i], *b = tnf_object_part(p->b, a->role);
        if (b && types_agree(d, p, a, b) && sizes_agree(a, b))
            add_comparison(d, p, a, b);
    }
    given->n = d->n - given->first;
    return TNF_OK;
}

static tnf_status plan_comparisons(struct diff *d, struct matched *m, tnf_error *e)
{
    uint64_t parts = 0;
    for (size_t i = 0; i < m->n; i++)
        parts += m->pairs[i].b ? m->pairs[i].a->nparts : 0;
    if (!(d->comparisons = tnf_arena_array(d->arena, parts, sizeof *d->comparisons)))
        return tnf_arena_fail(d->arena, "parts", e);
    for (size_t i = 0; i < m->n; i++)
        TNF_TRY(plan_pair(d, &m->pairs[i], e));
    return TNF_OK;
}

/* -------------------------------------------------------------- reporting */

static void tell_pair(struct diff *d, const struct pair *p, tnf_difference_kind kind)
{
    tnf_diff_tell(d, &(tnf_difference) { .kind = kind, .a = p->a, .b = p->b });
}

static void tell_part(struct diff *d, const struct pair *p, tnf_difference_kind kind,
                      const tnf_part *a, const tnf_part *b)
{
    const char *role = a ? a->role : b->role;
    tnf_diff_tell(d, &(tnf_difference) { .kind = kind,
                                         .a = p->a,
                                         .b = p->b,
                                         .key = { role, strlen(role) },
                                         .a_part = a,
                                         .b_part = b });
}

static void tell_parts(struct diff *d, const struct pair *p)
{
    for (uint16_t i = 0; i < p->a->nparts; i++) {
        const tnf_part *a = &p->a->parts[i], *b = tnf_object_part(p->b, a->role);
        if (!b)
            tell_part(d, p, TNF_DIFF_PARTS, a, NULL);
        else if (!types_agree(d, p, a, b))
            tell_part(d, p, TNF_DIFF_DTYPE, a, b);
        else if (!sizes_agree(a, b))
            tell_part(d, p, TNF_DIFF_PARTS, a, b);
    }
    for (uint16_t i = 0; i < p->b->nparts; i++)
        if (!tnf_object_part(p->a, p->b->parts[i].role))
            tell_part(d, p, TNF_DIFF_PARTS, NULL, &p->b->parts[i]);
}

static void tell_kind(struct diff *d, const struct pair *p)
{
    bool layout = strcmp(p->a->layout->id, p->b->layout->id) == 0,
         shape = tnf_same_shape(p->a, p->b);
    if (p->by_values)
        return;
    if (!layout)
        tell_pair(d, p, TNF_DIFF_LAYOUT);
    if (!shape)
        tell_pair(d, p, TNF_DIFF_SHAPE);
    if (!layout || (!shape && !is_dense(p->a)))
        return;
    if (shape || !types_agree(d, p, p->a->parts, p->b->parts))
        tell_parts(d, p);
    if (shape && by_columns(p->a) != by_columns(p->b))
        tell_pair(d, p, TNF_DIFF_ORDER);
}

/* Reports its values, and returns the worst verdict on them. */
static enum verdict tell_values(struct diff *d, const struct pair *p)
{
    enum verdict worst = SAME;
    for (size_t i = p->first; i < p->first + p->n; i++) {
        const struct comparison *c = &d->comparisons[i];
        worst = c->verdict > worst ? c->verdict : worst;
        if (c->verdict == DIFFERENT)
            tnf_diff_tell(d, &(tnf_difference) { .kind = TNF_DIFF_VALUES,
                                                 .a = p->a,
                                                 .b = p->b,
                                                 .key = { c->a->role, strlen(c->a->role) },
                                                 .a_part = c->a,
                                                 .b_part = c->b,
                                                 .values = &c->found });
    }
    return worst;
}

/* Reports everything about one tensor of the first file. */
static tnf_status tell_tensor(struct diff *d, const struct pair *p, tnf_error *e)
{
    uint64_t attrs = 0;
    bool before = d->result->same;
    if (!p->b) {
        d->result->only_a++;
        tell_pair(d, p, TNF_DIFF_ONLY_A);
        return TNF_OK;
    }
    d->result->same = true;
    d->result->tensors++;
    if (!(d->options.ignore & TNF_DIFF_IGNORE_KIND))
        tell_kind(d, p);
    enum verdict worst = tell_values(d, p);
    if (!(d->options.ignore & TNF_DIFF_IGNORE_ATTRS))
        TNF_TRY(tnf_diff_attrs(d, p->a, p->b, p->a->attrs, p->b->attrs, &attrs, e));
    d->result->different += !d->result->same;
    d->result->close += d->result->same && worst == OTHER_BITS;
    d->result->same = d->result->same && before;
    return TNF_OK;
}

static tnf_status tell_tensors(struct diff *d, const struct matched *m, tnf_error *e)
{
    for (size_t i = 0; i < m->n; i++)
        TNF_TRY(tell_tensor(d, &m->pairs[i], e));
    for (size_t i = 0; i < d->b->catalog.n; i++) {
        const tnf_object *o = &d->b->catalog.objects[i];
        if (m->names.taken[i] || !is_selected(d, o->name) || tnf_is_filler(o))
            continue;
        d->result->only_b++;
        tnf_diff_tell(d, &(tnf_difference) { .kind = TNF_DIFF_ONLY_B, .b = o });
    }
    return TNF_OK;
}

/* ----------------------------------------------------------------- extras */

static void tell_extra(struct diff *d, const tnf_extra *a, const tnf_extra *b)
{
    d->result->extras++;
    tnf_diff_tell(d, &(tnf_difference) { .kind = TNF_DIFF_EXTRA,
                                         .key = a ? a->key : b->key,
                                         .a_part = a ? &a->bytes : NULL,
                                         .b_part = b ? &b->bytes : NULL });
}

/* The first extra of that key that is not matched yet. Files have only a few extras. */
static const tnf_extra *take_extra(const tnf_catalog *c, tnf_str key, bool *taken)
{
    for (size_t i = 0; i < c->nextras; i++)
        if (!taken[i] && tnf_str_compare(c->extras[i].key, key) == 0) {
            taken[i] = true;
            return &c->extras[i];
        }
    return NULL;
}

static tnf_status compare_extras(struct diff *d, tnf_error *e)
{
    const tnf_catalog *a = &d->a->catalog, *b = &d->b->catalog;
    bool *taken = tnf_arena_array(d->arena, b->nextras, sizeof *taken);
    if (!taken)
        return tnf_arena_fail(d->arena, "extras", e);
    for (size_t i = 0; i < a->nextras; i++) {
        bool same = false;
        const tnf_extra *x = &a->extras[i], *y = take_extra(b, x->key, taken);
        if (y)
            TNF_TRY(tnf_parts_equal(&same, &x->bytes, &y->bytes, e));
        if (!same)
            tell_extra(d, x, y);
    }
    for (size_t i = 0; i < b->nextras; i++)
        if (!taken[i])
            tell_extra(d, NULL, &b->extras[i]);
    return TNF_OK;
}

/* ------------------------------------------------------------------ whole */

static tnf_status compare_files(struct diff *d, struct matched *m, tnf_error *e)
{
    TNF_TRY(match_names(m, d, e));
    TNF_TRY(plan_comparisons(d, m, e));
    TNF_TRY(tnf_diff_values(d, e));
    TNF_TRY(tell_tensors(d, m, e));
    if (d->some) /* differences of the files themselves are reported by the part with the rest */
        return TNF_OK;
    if (!(d->options.ignore & TNF_DIFF_IGNORE_ATTRS))
        TNF_TRY(tnf_diff_attrs(d, NULL, NULL, d->a->info.attrs, d->b->info.attrs,
                               &d->result->attributes, e));
    return d->options.ignore & TNF_DIFF_IGNORE_EXTRAS ? TNF_OK : compare_extras(d, e);
}

/* Compares leaves of some tensors, and nothing else. */
static tnf_status compare_ranges(struct diff *d, tnf_error *e)
{
    const tnf_diff_part *some = d->some;
    if (!(d->comparisons = tnf_arena_array(d->arena, some->n, sizeof *d->comparisons)))
        return tnf_arena_fail(d->arena, "parts", e);
    for (size_t i = 0; i < some->n; i++) {
        const tnf_diff_range *r = &some->ranges[i];
        bool there = r->a < d->a->catalog.n && r->b < d->b->catalog.n;
        struct pair pair = { .a = there ? &d->a->catalog.objects[r->a] : NULL,
                             .b = there ? &d->b->catalog.objects[r->b] : NULL };
        uint64_t leaves = there ? tnf_diff_cuts(pair.a, pair.b) : 0;
        if (r->n == 0 || r->first > leaves || r->n > leaves - r->first)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "there are no such leaves");
        add_comparison(d, &pair, pair.a->parts, pair.b->parts);
        d->comparisons[d->n - 1].first = r->first;
        d->comparisons[d->n - 1].n = r->n;
    }
    return tnf_diff_values(d, e);
}

uint64_t tnf_diff_cuts(const tnf_object *a, const tnf_object *b)
{
    if (!is_dense(a) || !is_dense(b) || !tnf_same_shape(a, b) || by_columns(a) != by_columns(b) ||
        !same_type(a->parts->type, b->parts->type) || a->parts->nbytes != b->parts->nbytes ||
        !tnf_part_anywhere(a->parts) || !tnf_part_anywhere(b->parts))
        return 0;
    uint64_t n = a->parts->nbytes, bits = a->parts->type->bits;
    bool whole = bits > 0 && TNF_LEAF_BYTES % bits == 0; /* a leaf has whole elements */
    return whole ? n / TNF_LEAF_BYTES + (n % TNF_LEAF_BYTES != 0) : 0;
}

tnf_status tnf_diff_some(tnf_diff_result *out, const tnf_file *a, const tnf_file *b,
                         const tnf_diff_options *options, const tnf_diff_part *some, tnf_error *e)
{
    tnf_diff_result result = { .size = sizeof result, .same = true };
    struct diff d = { .a = a, .b = b, .result = &result, .lock = PTHREAD_MUTEX_INITIALIZER };
    struct matched m = { 0 };
    tnf_arena arena;
    TNF_TRY(tnf_result_begin(out, TNF_FIRST(tnf_diff_result), e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_diff_options, &d.options, options, e));
    TNF_TRY(tnf_check_flags(d.options.ignore, 2 * TNF_DIFF_IGNORE_KIND - 1, "ignore", e));
    d.progress = (tnf_progress) { .tell = d.options.progress, .ctx = d.options.ctx };
    TNF_TRY(tnf_need_whole(a, e));
    TNF_TRY(tnf_need_whole(b, e));
    d.some = some;
    d.arena = &arena;
    tnf_arena_init(&arena, &a->alloc, UINT64_MAX);
    tnf_hash_init(&m.names.hash, &a->alloc, name_at, b);
    tnf_status status = some && some->piece ? compare_ranges(&d, e) : compare_files(&d, &m, e);
    tnf_result_fill(out, &result, sizeof result);
    tnf_hash_free(&m.names.hash);
    free_values(&d);
    tnf_arena_free(&arena);
    pthread_mutex_destroy(&d.lock);
    return status;
}

tnf_status tnf_diff(tnf_diff_result *out, const tnf_file *a, const tnf_file *b,
                    const tnf_diff_options *options, tnf_error *e)
{
    TNF_TRY(tnf_need(a, "a", e));
    TNF_TRY(tnf_need(b, "b", e));
    return tnf_diff_some(out, a, b, options, NULL, e);
}

tnf_status tnf_same_tensor(bool *out, const tnf_object *a, const tnf_object *b,
                           const tnf_allocator *alloc, tnf_error *e)
{
    tnf_diff_result result = { .same = true };
    struct diff d = { .result = &result, .lock = PTHREAD_MUTEX_INITIALIZER };
    struct pair pair = { .a = a, .b = b };
    struct matched m = { .pairs = &pair, .n = 1 };
    tnf_arena arena;
    d.arena = &arena;
    tnf_arena_init(&arena, alloc, UINT64_MAX);
    tnf_status status = plan_comparisons(&d, &m, e);
    if (status == TNF_OK)
        status = tnf_diff_values(&d, e);
    if (status == TNF_OK)
        status = tell_tensor(&d, &pair, e);
    *out = result.same;
    free_values(&d);
    tnf_arena_free(&arena);
    pthread_mutex_destroy(&d.lock);
    return status;
}
