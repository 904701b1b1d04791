/* SPDX-License-Identifier: MIT */
/* Parses numpy's slices to numbers. slice_read.c reads the elements. */
#include "core/core.h"

#include <ctype.h>
#include <string.h>

struct parser {
    const char *p;
    tnf_error *e;
};

static void skip_space(struct parser *s)
{
    while (isspace((unsigned char)*s->p))
        s->p++;
}

/* Parses an optional integer; *given says whether there was one. False if it is too large. */
static bool parse_number(struct parser *s, int64_t *out, bool *given)
{
    skip_space(s);
    bool minus = *s->p == '-';
    const char *digits = s->p + (minus || *s->p == '+');
    uint64_t v = 0;
    *given = isdigit((unsigned char)*digits);
    if (!*given)
        return digits == s->p;
    for (s->p = digits; isdigit((unsigned char)*s->p); s->p++) {
        v = v * 10 + (uint64_t)(*s->p - '0');
        if (v > (uint64_t)INT64_MAX / 16)
            return false;
    }
    *out = minus ? -(int64_t)v : (int64_t)v;
    skip_space(s);
    return true;
}

static int64_t clip_index(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

static tnf_status plain_index(tnf_slice *out, int64_t i, int64_t size, tnf_error *e)
{
    if (i < -size || i >= size)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "index %lld is out of range for a dimension of %lld", (long long)i,
                        (long long)size);
    *out = (tnf_slice) { .start = i < 0 ? i + size : i, .step = 1, .count = 1, .drop = true };
    return TNF_OK;
}

/* start:stop:step with numpy's rules for missing, negative and out-of-range values. */
static tnf_slice range_of(int64_t size, const int64_t v[3], const bool given[3])
{
    int64_t step = given[2] ? v[2] : 1;
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
    int64_t start = step < 0 ? high : low, stop = step < 0 ? low : high;
    if (given[0])
        start = clip_index(v[0] < 0 ? v[0] + size : v[0], low, high);
    if (given[1])
        stop = clip_index(v[1] < 0 ? v[1] + size : v[1], low, high);
    int64_t span = step < 0 ? start - stop : stop - start;
    int64_t stride = step < 0 ? -step : step;
    uint64_t count = span > 0 ? ((uint64_t)span + (uint64_t)stride - 1) / (uint64_t)stride : 0;
    return (tnf_slice) { .start = count ? start : 0, .step = step, .count = count };
}

static tnf_status parse_dimension(struct parser *s, tnf_slice *out, uint64_t dim)
{
    int64_t v[3] = { 0 };
    bool given[3] = { 0 };
    int colons = 0;
    const char *begin = s->p;
    for (;; colons++, s->p++) {
        if (colons > 2 || !parse_number(s, &v[colons], &given[colons]))
            return tnf_fail(s->e, TNF_EINVAL, TNF_NO_OFFSET, "'%.40s' is not a slice", begin);
        if (*s->p != ':')
            break;
    }
    if (dim > INT64_MAX / 16)
        return tnf_fail(s->e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "the dimension is too large");
    if (colons == 0 && given[0])
        return plain_index(out, v[0], (int64_t)dim, s->e);
    if (colons == 0)
        return tnf_fail(s->e, TNF_EINVAL, TNF_NO_OFFSET, "'%.40s' is not a slice", begin);
    if (given[2] && v[2] == 0)
        return tnf_fail(s->e, TNF_EINVAL, TNF_NO_OFFSET, "a slice's step cannot be 0");
    *out = range_of((int64_t)dim, v, given);
    return TNF_OK;
}

/* Counts the dimensions in the text; *ellipsis is the index of its "..." (or UINT32_MAX). */
static tnf_status count_items(const char *text, uint32_t *items, uint32_t *ellipsis, tnf_error *e)
{
    *items = 0;
    *ellipsis = UINT32_MAX;
    if (strspn(text, " \t") == strlen(text))
        return TNF_OK;
    for (const char *p = text; p; p = strchr(p, ',')) {
        if (*p == ',' && *++p == 0)
            break; /* a trailing comma, as in w[0,] */
        p += strspn(p, " \t");
        if (strncmp(p, "...", 3) == 0) {
            if (*ellipsis != UINT32_MAX)
                return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a slice can have only one '...'");
            *ellipsis = *items;
        } else {
            ++*items;
        }
    }
    return TNF_OK;
}

tnf_status tnf_slice_parse(tnf_slice *out, const char *text, const uint64_t *shape, uint32_t rank,
                           tnf_error *e)
{
    TNF_TRY(tnf_need(text, "text", e));
    TNF_TRY(tnf_need_array(shape, rank, "shape", e));
    uint32_t items, ellipsis;
    struct parser s = { text, e };
    TNF_TRY(count_items(text, &items, &ellipsis, e));
    if (items > rank)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the text has %u slice%s, but the tensor has only %u dimension%s", items,
                        items == 1 ? "" : "s", rank, rank == 1 ? "" : "s");
    const bool none[3] = { false };
    const int64_t zero[3] = { 0 };
    uint32_t whole = rank - items, at = 0;
    if (ellipsis == UINT32_MAX)
        ellipsis = items; /* the remaining dimensions are selected completely */
    for (uint32_t i = 0; i <= items; i++) {
        if (i == ellipsis) {
            skip_space(&s);
            if (strncmp(s.p, "...", 3) == 0) {
                s.p += 3;
                skip_space(&s);
                s.p += *s.p == ',';
            }
            for (uint32_t d = 0; d < whole; d++, at++)
                out[at] = range_of((int64_t)(shape[at] & INT64_MAX), zero, none);
        }
        if (i == items)
            break;
        TNF_TRY(parse_dimension(&s, &out[at], shape[at]));
        at++;
        if (*s.p != ',' && *s.p != 0)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "'%.40s' is not a slice", s.p);
        s.p += *s.p == ',';
    }
    skip_space(&s);
    return *s.p == 0 ? TNF_OK
                     : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "'%.40s' is not a slice", s.p);
}

uint64_t tnf_slice_bytes(const tnf_object *object, const tnf_slice *slices)
{
    uint64_t elements = 1, bytes;
    if (!object || (object->rank && !slices))
        return UINT64_MAX;
    for (uint32_t d = 0; d < object->rank; d++)
        if (slices[d].count == 0)
            return 0;
    for (uint32_t d = 0; d < object->rank; d++)
        if (!tnf_ckd_mul(&elements, elements, slices[d].count))
            return UINT64_MAX;
    if (object->nparts == 0 || !object->parts || !object->parts->type ||
        !tnf_type_bytes(&bytes, object->parts->type, elements))
        return UINT64_MAX;
    return bytes;
}
