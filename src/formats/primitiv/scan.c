/* SPDX-License-Identifier: MIT */
/* Manages the window over a primitiv file and reads pieces through it. */
#include "formats/primitiv/scan.h"

#define WINDOW_FIRST ((uint64_t)4 << 10)  /* after a payload */
#define WINDOW_MOST  ((uint64_t)64 << 10) /* while payloads are small */
#define DEPTH        2u

/* ----------------------------------------------------------------- window */

/* Makes the window hold at least `want` bytes at s->at, or all that remain. */
static tnf_status fill_window(prim_scan *s, uint64_t want, tnf_error *e)
{
    uint64_t here = s->r->source->size - s->at;
    bool follows = s->at >= s->base && s->at <= s->base + s->n;
    uint64_t have = follows ? s->base + s->n - s->at : 0;
    if (have >= want || (follows && have == here))
        return TNF_OK;
    uint64_t n = follows && s->n * 2 <= WINDOW_MOST ? s->n * 2 : follows ? s->n : 0;
    n = n < WINDOW_FIRST ? WINDOW_FIRST : n;
    n = n < want ? want : n;
    n = n > here ? here : n;
    if (n > s->capacity) {
        s->window = tnf_arena_raw(s->r->scratch, n);
        s->capacity = s->window ? n : 0;
        if (!s->window)
            return tnf_arena_fail(s->r->scratch, "reading", e);
    }
    s->base = s->at;
    s->n = 0; /* in case reading fails */
    TNF_TRY(tnf_source_read(s->r->source, s->at, s->window, (size_t)n, e));
    s->n = n;
    return TNF_OK;
}

tnf_status tnf_prim_pull(prim_scan *s, prim_unit read, void *out, tnf_error *e)
{
    uint64_t limit = s->r->limits.header_bytes;
    for (uint64_t want = 1;;) {
        TNF_TRY(fill_window(s, want, e));
        uint64_t skip = s->at - s->base, left = s->n - skip;
        tnf_error why = { .offset = TNF_NO_OFFSET };
        tnf_msgpack m;
        tnf_msgpack_init(&m, left ? s->window + skip : NULL, (size_t)left, s->at, NULL, DEPTH,
                         &why);
        bool done = read(s, &m, out);
        uint64_t used = tnf_msgpack_where(&m) - s->at;
        if (done && s->parsed + used <= limit) {
            s->parsed += used;
            s->at += used;
            return TNF_OK;
        }
        if (done || (m.status == TNF_ETRUNCATED && left > limit))
            return tnf_fail(e, TNF_ELIMIT, s->at,
                            "there are more than %llu bytes in addition to the data: raise the "
                            "limit 'header_bytes' if you trust the file",
                            (unsigned long long)limit);
        if (m.status != TNF_ETRUNCATED || s->at + left == s->r->source->size)
            return tnf_fail(e, m.status, why.offset, "%s", why.message);
        want = 2 * left;
    }
}

/* ------------------------------------------------------------------ units */

bool tnf_prim_take_u32(prim_scan *s, tnf_msgpack *m, void *out)
{
    uint64_t v, at = tnf_msgpack_where(m);
    if (!s->r->lenient || tnf_msgpack_marker(m) == 0xce)
        return tnf_msgpack_exact_u32(m, out);
    if (!tnf_msgpack_u64(m, &v))
        return false;
    if (v > UINT32_MAX)
        return tnf_msgpack_fail(m, TNF_EFORMAT, at, "the number %llu exceeds 32 bits",
                                (unsigned long long)v);
    s->odd_at = at < s->odd_at ? at : s->odd_at;
    *(uint32_t *)out = (uint32_t)v;
    return true;
}

bool tnf_prim_take_f32(prim_scan *s, tnf_msgpack *m, void *out)
{
    (void)s;
    return tnf_msgpack_exact_f32(m, out);
}

bool tnf_prim_take_str(prim_scan *s, tnf_msgpack *m, void *out)
{
    (void)s;
    return tnf_msgpack_str(m, out);
}

bool tnf_prim_take_bin_head(prim_scan *s, tnf_msgpack *m, void *out)
{
    (void)s;
    return tnf_msgpack_bin_head(m, out);
}

/* Reads the number of items of an array or pairs of a map. They need not be in the window, but the
 * file must have them. */
static bool take_count(prim_scan *s, tnf_msgpack *m, bool map, uint64_t *out)
{
    tnf_msgpack_scope scope;
    uint64_t at = tnf_msgpack_where(m);
    int marker = tnf_msgpack_marker(m);
    unsigned width = marker == (map ? 0xde : 0xdc) ? 2 : marker == (map ? 0xdf : 0xdd) ? 4 : 0;
    if (width == 0 || m->end - m->p <= (ptrdiff_t)width) {
        const uint8_t *start = m->p;
        bool is_short = marker >= 0 && (marker & 0xf0) == (map ? 0x80 : 0x90);
        if (!is_short)
            return map ? tnf_msgpack_enter_map(m, &scope) : tnf_msgpack_enter_array(m, &scope);
        *out = *start & 15u;
        m->p = start + 1;
        return true;
    }
    *out = width == 2 ? tnf_be16(m->p + 1) : tnf_be32(m->p + 1);
    m->p += 1 + width;
    uint64_t rest = s->r->source->size - tnf_msgpack_where(m);
    if (*out > (map ? rest / 2 : rest))
        return tnf_msgpack_fail(m, TNF_ETRUNCATED, at, "%s announced, but only %s",
                                map ? TNF_COUNTED(*out, "pair is", "pairs are")
                                    : TNF_COUNTED(*out, "item is", "items are"),
                                TNF_BYTES_FOLLOW(rest));
    return true;
}

bool tnf_prim_take_map(prim_scan *s, tnf_msgpack *m, void *out)
{
    return take_count(s, m, true, out);
}

static bool take_size(prim_scan *s, tnf_msgpack *m, const char *what, uint32_t *out)
{
    uint64_t at = tnf_msgpack_where(m);
    if (!tnf_prim_take_u32(s, m, out))
        return false;
    return *out > 0 ||
           tnf_msgpack_fail(m, TNF_EFORMAT, at, "%s is 0, but must be at least 1", what);
}

bool tnf_prim_take_shape(prim_scan *s, tnf_msgpack *m, void *out)
{
    prim_shape *shape = out;
    uint64_t n = 0, at = tnf_msgpack_where(m);
    if (!take_count(s, m, false, &n))
        return false;
    if (n > PRIM_MAX_DIMS)
        return tnf_msgpack_fail(m, TNF_EFORMAT, at,
                                "a shape has %llu dimensions; primitiv supports at most 8",
                                (unsigned long long)n);
    for (shape->rank = 0; shape->rank < n; shape->rank++)
        if (!take_size(s, m, "a dimension", &shape->dims[shape->rank]))
            return false;
    while (shape->rank > 0 && shape->dims[shape->rank - 1] == 1)
        shape->rank--;
    return take_size(s, m, "the batch", &shape->batch);
}

bool tnf_prim_take_path(prim_scan *s, tnf_msgpack *m, void *out)
{
    (void)out;
    uint64_t n = 0, at = tnf_msgpack_where(m), most = s->r->limits.name_bytes;
    tnf_str element;
    s->name.n = 0;
    if (!take_count(s, m, false, &n))
        return false;
    if (n == 0)
        return tnf_msgpack_fail(m, TNF_EFORMAT, at, "the path of a parameter is empty");
    if (n > most + 1)
        return tnf_msgpack_fail(m, TNF_ELIMIT, at,
                                "a path has %llu elements, too many for a name of at most %llu "
                                "bytes",
                                (unsigned long long)n, (unsigned long long)most);
    for (uint64_t i = 0; i < n; i++) {
        if (!tnf_msgpack_str(m, &element))
            return false;
        tnf_prim_path_put(&s->name, element, i + 1 == n);
    }
    return true;
}
