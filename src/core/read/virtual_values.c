/* SPDX-License-Identifier: MIT */
/* Virtual tensors of the numbers that quantized tensors represent, always f32.
 *
 *   quant_group/1   (code - zero of its group) * scale of its group
 *   mx/1            element * scale of its block
 *   pq/1            centroids of its codes side by side, times the norm, times the projection
 *   blocks          as their kind says: kernels/blocks.h
 */
#include "core/read/virtual.h"
#include "kernels/dot.h"
#include "model/quant.h"

#include <string.h>

#define PIECE ((size_t)4 << 10) /* elements at a time */

static void put_floats(uint8_t *dst, const float *x, size_t n)
{
    memcpy(dst, x, n * sizeof *x);
    tnf_swap_le(dst, n, sizeof *x);
}

/* Converts elements [skip, skip + n) of bytes to floats; integers wider than 24 bits are
 * rounded. */
static void get_floats(float *out, const tnf_type *type, const uint8_t *bytes, size_t skip,
                       size_t n)
{
    double x[256];
    for (size_t at = 0; at < n; at += 256) {
        size_t here = n - at < 256 ? n - at : 256;
        (void)tnf_type_decode(x, type, bytes, skip + at, here);
        for (size_t i = 0; i < here; i++)
            out[at + i] = (float)x[i];
    }
}

/* ------------------------------------------------------------ quant_group */

struct groups {
    tnf_quant q;
    uint64_t inner, along; /* elements after the axis, and along it */
    const tnf_part *data, *scales, *zeros;
};

/* The index of the group of element i, if the axis is divided into groups of `size` elements. */
static uint64_t group_on_axis(uint64_t i, uint64_t inner, uint64_t along, uint64_t size)
{
    uint64_t outer = i / inner / along, on_axis = i / inner % along;
    return (outer * (along / size) + on_axis / size) * inner + i % inner;
}

/* The index of the scale of element i. */
static uint64_t group_of(const struct groups *g, uint64_t i)
{
    if (g->q.scale_a_row)
        return i / g->inner % g->along;
    return g->q.group_size == 0 ? i : group_on_axis(i, g->inner, g->along, g->q.group_size);
}

/* Code i; `words` are in memory, and the first one begins with code `first`. */
static unsigned code_at(const struct groups *g, const uint8_t *words, uint64_t first, uint64_t i)
{
    uint64_t at = i - first, in_word = at % g->q.per_word;
    const uint8_t *word = words + (at / g->q.per_word << g->q.word);
    uint64_t bit = (g->q.msb_first ? g->q.per_word - 1 - in_word : in_word) * g->q.bits;
    return (unsigned)(word[bit / 8] >> bit % 8) & ((1u << g->q.bits) - 1);
}

/* Reads the words that contain codes [first, first + n) of a part, and the number of the first code
 * in them. */
static tnf_status read_codes(struct tnf_cursor *c, tnf_input *in, const struct groups *g,
                             const tnf_part *part, uint64_t first, uint64_t n,
                             const uint8_t **words, uint64_t *begin, tnf_error *e)
{
    uint64_t from = first / g->q.per_word, to = (first + n - 1) / g->q.per_word + 1;
    *begin = from * g->q.per_word;
    return tnf_input_read(c, in, part, from << g->q.word, (size_t)((to - from) << g->q.word), words,
                          e);
}

/* The scales and zeros of groups [low, high]. */
struct group_window {
    uint64_t low, high, zero_begin;
    const uint8_t *scales, *zeros;
    size_t scale_skip, zero_skip;
};

static tnf_status read_groups(struct tnf_cursor *c, const struct groups *g, struct group_window *w,
                              tnf_error *e)
{
    size_t n = (size_t)(w->high - w->low + 1);
    TNF_TRY(
        tnf_input_elements(c, &c->inputs[1], g->scales, w->low, n, &w->scales, &w->scale_skip, e));
    if (!g->zeros)
        return TNF_OK;
    if (g->q.zero_packing == TNF_ZEROS_PLAIN)
        return tnf_input_elements(c, &c->inputs[2], g->zeros, w->low, n, &w->zeros, &w->zero_skip,
                                  e);
    return read_codes(c, &c->inputs[2], g, g->zeros, w->low, n, &w->zeros, &w->zero_begin, e);
}

static float zero_of(const struct groups *g, const struct group_window *w, uint64_t group)
{
    float zero = (float)g->q.zero;
    if (g->zeros && g->q.zero_packing == TNF_ZEROS_PLAIN)
        get_floats(&zero, g->zeros->type, w->zeros, w->zero_skip + (size_t)(group - w->low), 1);
    else if (g->zeros)
        zero = (float)code_at(g, w->zeros, w->zero_begin, group);
    return zero;
}

/* The groups that elements [first, first + n) need, if they are close together. */
static struct group_window needed_groups(const struct groups *g, uint64_t first, size_t n)
{
    struct group_window w = { .low = group_of(g, first) };
    w.high = w.low;
    for (size_t i = 1; i < n; i++) {
        uint64_t group = group_of(g, first + i);
        w.low = group < w.low ? group : w.low;
        w.high = group > w.high ? group : w.high;
    }
    return w;
}

static tnf_status make_codes(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                             tnf_error *e)
{
    const struct groups *g = c->v->plan;
    struct group_window w = needed_groups(g, first, n);
    const uint8_t *words;
    uint64_t begin, last = UINT64_MAX;
    float scale = 0, zero = 0, x[PIECE];
    TNF_TRY(read_codes(c, &c->inputs[0], g, g->data, first, n, &words, &begin, e));
    TNF_TRY(read_groups(c, g, &w, e));
    for (size_t i = 0; i < n; i++) {
        uint64_t group = group_of(g, first + i);
        if (group != last) {
            get_floats(&scale, g->scales->type, w.scales, w.scale_skip + (size_t)(group - w.low),
                       1);
            zero = zero_of(g, &w, group);
            last = group;
        }
        x[i % PIECE] = ((float)code_at(g, words, begin, first + i) - zero) * scale;
        if ((i + 1) % PIECE == 0 || i + 1 == n)
            put_floats(dst + 4 * (i - i % PIECE), x, i % PIECE + 1);
    }
    return TNF_OK;
}

/* Neighbours across the axis have adjacent scales. Neighbours along the axis have scales that are
 * far apart if many elements are after the axis. A window that crosses from one position on the
 * axis to the next is made in two steps. */
static tnf_status make_divided(struct tnf_cursor *c, tnf_make_fn make, uint64_t inner,
                               uint64_t first, size_t n, uint8_t *dst, tnf_error *e)
{
    while (n > 0) {
        uint64_t left = inner - first % inner;
        size_t here = inner > n && left < n ? (size_t)left : n;
        TNF_TRY(make(c, first, here, dst, e));
        first += here;
        dst += 4 * here;
        n -= here;
    }
    return TNF_OK;
}

static tnf_status make_groups(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                              tnf_error *e)
{
    const struct groups *g = c->v->plan;
    return make_divided(c, make_codes, g->inner, first, n, dst, e);
}

static tnf_status plan_groups(struct tnf_virtual *v, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    struct groups *g = tnf_virtual_plan(v, 1, sizeof *g, e);
    if (!g)
        return TNF_ENOMEM;
    TNF_TRY(tnf_quant_of(&g->q, o, e));
    g->data = tnf_object_part(o, "data");
    g->scales = tnf_object_part(o, "scales");
    g->zeros = g->q.zero_form == TNF_ZERO_TENSOR ? tnf_object_part(o, "zeros") : NULL;
    if (!tnf_can_cast_from(g->scales->type) || (g->zeros && !tnf_can_cast_from(g->zeros->type)))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has scales or zeros of an unknown type", TNF_QUOTED(o->name));
    g->along = o->shape[g->q.axis];
    g->inner = 1;
    for (uint32_t d = (uint32_t)g->q.axis + 1; d < o->rank; d++)
        g->inner *= o->shape[d];
    v->plan = g;
    v->make = make_groups;
    return TNF_OK;
}

/* --------------------------------------------------------------------- mx */

struct blocks {
    tnf_mx m;
    uint64_t inner, along;
    const tnf_part *data, *scales;
    float factor; /* MXINT8: an element means 1/64 of itself */
};

static tnf_status make_elements(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                                tnf_error *e)
{
    const struct blocks *b = c->v->plan;
    const uint8_t *bytes, *scales;
    size_t skip, scale_skip;
    uint64_t low = UINT64_MAX, high = 0, last = UINT64_MAX;
    float scale = 0, x[PIECE];
    for (size_t i = 0; i < n; i++) {
        uint64_t block = group_on_axis(first + i, b->inner, b->along, b->m.block_size);
        low = block < low ? block : low;
        high = block > high ? block : high;
    }
    TNF_TRY(tnf_input_elements(c, &c->inputs[0], b->data, first, n, &bytes, &skip, e));
    TNF_TRY(tnf_input_elements(c, &c->inputs[1], b->scales, low, (size_t)(high - low + 1), &scales,
                               &scale_skip, e));
    for (size_t at = 0; at < n; at += PIECE) {
        size_t here = n - at < PIECE ? n - at : PIECE;
        get_floats(x, b->data->type, bytes, skip + at, here);
        for (size_t i = 0; i < here; i++) {
            uint64_t block = group_on_axis(first + at + i, b->inner, b->along, b->m.block_size);
            if (block != last)
                get_floats(&scale, b->scales->type, scales, scale_skip + (size_t)(block - low), 1);
            last = block;
            x[i] = x[i] * b->factor * scale;
        }
        put_floats(dst + 4 * at, x, here);
    }
    return TNF_OK;
}

static tnf_status make_mx(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                          tnf_error *e)
{
    const struct blocks *b = c->v->plan;
    return make_divided(c, make_elements, b->inner, first, n, dst, e);
}

static tnf_status plan_mx(struct tnf_virtual *v, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    struct blocks *b = tnf_virtual_plan(v, 1, sizeof *b, e);
    if (!b)
        return TNF_ENOMEM;
    TNF_TRY(tnf_mx_of(&b->m, o, e));
    b->data = tnf_object_part(o, "data");
    b->scales = tnf_object_part(o, "scales");
    b->factor = b->data->type->number == TNF_NUMBER_INT ? 1.0F / 64 : 1;
    b->along = o->shape[b->m.axis];
    b->inner = 1;
    for (uint32_t d = (uint32_t)b->m.axis + 1; d < o->rank; d++)
        b->inner *= o->shape[d];
    v->plan = b;
    v->make = make_mx;
    return TNF_OK;
}

/* --------------------------------------------------------------------- pq */

struct pieces {
    const tnf_part *codes, *norms; /* norms may be NULL */
    const float *codebooks, *projection;
    uint64_t d, m, k;
};

/* Makes a row before the projection, padded and aligned for the kernels. */
static tnf_status join_centroids(const struct pieces *p, uint64_t row, const uint8_t *codes,
                                 float norm, float *sum, tnf_error *e)
{
    size_t width = (size_t)(p->d / p->m);
    for (size_t piece = 0; piece < p->m; piece++) {
        if (codes[piece] >= p->k)
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                            "row %llu has the code %u, but there are %llu centroids",
                            (unsigned long long)row, codes[piece], (unsigned long long)p->k);
        const float *from = p->codebooks + (piece * (size_t)p->k + codes[piece]) * width;
        for (size_t i = 0; i < width; i++)
            sum[piece * width + i] = 0.0F + norm * from[i]; /* as other sums of rows begin */
    }
    return TNF_OK;
}

static tnf_status make_pq(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                          tnf_error *e)
{
    const struct pieces *p = c->v->plan;
    const tnf_kernels *kernels = tnf_kernels_named(NULL);
    const uint8_t *codes, *norms = NULL;
    uint64_t row = first / p->d, rows = n / p->d;
    size_t padded = TNF_PADDED((size_t)p->d);
    uint8_t *own = tnf_cursor_own(c, (padded + (size_t)p->d) * sizeof(float) + 64, e);
    if (!own)
        return TNF_ENOMEM;
    float *sum = (float *)(((uintptr_t)own + 63) & ~(uintptr_t)63), *out = sum + padded;
    TNF_TRY(
        tnf_input_read(c, &c->inputs[0], p->codes, row * p->m, (size_t)(rows * p->m), &codes, e));
    if (p->norms)
        TNF_TRY(tnf_input_read(c, &c->inputs[1], p->norms, row * 4, (size_t)rows * 4, &norms, e));
    for (uint64_t r = 0; r < rows; r++, codes += p->m, dst += p->d * 4) {
        float norm = 1;
        if (norms)
            get_floats(&norm, tnf_type_of(TNF_F32), norms, (size_t)r, 1);
        TNF_TRY(join_centroids(p, row + r, codes, norm, sum, e));
        if (p->projection)
            kernels->dot(p->projection, (size_t)p->d, (size_t)p->d, sum, 1, out, (size_t)p->d);
        put_floats(dst, p->projection ? out : sum, (size_t)p->d);
    }
    return TNF_OK;
}

/* Reads floats that every row needs, once. */
static tnf_status take_floats(struct tnf_virtual *v, const char *role, const float **out,
                              tnf_error *e)
{
    const tnf_part *part = tnf_object_part(&v->sources[0], role);
    float last;
    *out = NULL;
    if (!part)
        return TNF_OK;
    if (part->nbytes >= sizeof last) /* allocates no memory for bytes that do not exist */
        TNF_TRY(tnf_read_part(&last, sizeof last, part, part->nbytes - sizeof last, e));
    float *floats = tnf_arena_raw(&v->arena, part->nbytes + (part->nbytes == 0));
    if (!floats)
        return tnf_arena_fail(&v->arena, role, e);
    TNF_TRY(tnf_read_part(floats, (size_t)part->nbytes, part, 0, e));
    tnf_swap_le(floats, part->nbytes / 4, 4);
    *out = floats;
    return TNF_OK;
}

static tnf_status plan_pq(struct tnf_virtual *v, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    struct pieces *p = tnf_virtual_plan(v, 1, sizeof *p, e);
    if (!p)
        return TNF_ENOMEM;
    TNF_TRY(tnf_layout_check(o, e));
    p->d = o->shape[1];
    p->codes = tnf_object_part(o, "codes");
    p->norms = tnf_object_part(o, "norms");
    p->m = o->shape[0] ? p->codes->nbytes / o->shape[0] : 1;
    p->k = tnf_object_part(o, "codebooks")->nbytes / (4 * p->d);
    TNF_TRY(take_floats(v, "codebooks", &p->codebooks, e));
    TNF_TRY(take_floats(v, "projection", &p->projection, e));
    v->plan = p;
    v->make = make_pq;
    v->unit = p->d;
    return TNF_OK;
}

/* ----------------------------------------------------------------- public */

bool tnf_layout_has_values(const tnf_layout *layout)
{
    if (!layout)
        return false;
    return layout == &tnf_layout_dense || layout->block ||
           layout == tnf_layout_by_id("quant_group/1") || layout == tnf_layout_by_id("mx/1") ||
           layout == tnf_layout_by_id("pq/1");
}

tnf_status tnf_virtual_values(struct tnf_virtual *v, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    if (o->layout == &tnf_layout_dense) {
        TNF_TRY(tnf_virtual_dense(v, 0, e));
        TNF_TRY(tnf_virtual_becomes(v, o->parts->type, o->shape, o->rank, e));
        tnf_virtual_same(v);
        return TNF_OK;
    }
    if (!tnf_layout_has_values(o->layout))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has the layout %s: this version cannot compute its values",
                        TNF_QUOTED(o->name), o->layout->id);
    TNF_TRY(tnf_virtual_becomes(v, tnf_type_of(TNF_F32), o->shape, o->rank, e));
    v->object.order = TNF_ORDER_C;
    if (o->layout->block)
        return tnf_virtual_decode(v, e);
    if (o->layout == tnf_layout_by_id("pq/1"))
        return plan_pq(v, e);
    return o->layout == tnf_layout_by_id("mx/1") ? plan_mx(v, e) : plan_groups(v, e);
}
