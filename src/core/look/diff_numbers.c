/* SPDX-License-Identifier: MIT */
/* The distance between numbers. All numbers are doubles, which hold all types exactly except
 * integers of 64 and 128 bits: those are split into sign and magnitude if that matters. */
#include "base/int128.h"
#include "core/look/diff.h"

#include <math.h>
#include <string.h>

#define EXACT 9007199254740992.0 /* 2^53: integers up to here are exact as doubles */
#define RANGE 0x1p128

/* ------------------------------------------------------------ wide integers */

static bool is_wide(const tnf_type *type)
{
    return (type->number == TNF_NUMBER_INT || type->number == TNF_NUMBER_UINT) && type->bits >= 64;
}

struct whole {
    bool negative;
    tnf_u128 magnitude;
};

/* The i-th element as an integer; false if it is not an integer. */
static bool whole_of(struct whole *out, const tnf_type *type, const uint8_t *bytes, size_t i,
                     double x)
{
    if (is_wide(type)) {
        bool is_signed = type->number == TNF_NUMBER_INT;
        tnf_u128 u = type->bits == 128 ? tnf_le128(bytes + 16 * i)
                                       : tnf_u128_of_64(tnf_le64(bytes + 8 * i), is_signed);
        out->negative = is_signed && u.high >> 63;
        out->magnitude = out->negative ? tnf_i128_size(u) : u;
        return true;
    }
    if (!(fabs(x) < RANGE) || x != floor(x))
        return false;
    out->negative = x < 0;
    out->magnitude = tnf_u128_of_f64(fabs(x));
    return true;
}

static double distance_between(struct whole a, struct whole b)
{
    if (a.negative != b.negative)
        return tnf_u128_to_f64(a.magnitude) + tnf_u128_to_f64(b.magnitude);
    bool less = tnf_u128_less(a.magnitude, b.magnitude);
    return tnf_u128_to_f64(less ? tnf_u128_minus(b.magnitude, a.magnitude)
                                : tnf_u128_minus(a.magnitude, b.magnitude));
}

/* --------------------------------------------------------------- one pair */

/* A pair of elements, one or two doubles each. */
struct couple {
    double a[2], b[2];
    double distance, size_b; /* |a - b| and |b|; NaN if not finite */
    bool finite, nan_a, nan_b;
};

static struct couple couple_of(const double *x, const double *y, unsigned per)
{
    struct couple p = { .a = { x[0], per > 1 ? x[1] : 0 }, .b = { y[0], per > 1 ? y[1] : 0 } };
    p.nan_a = isnan(p.a[0]) || isnan(p.a[1]);
    p.nan_b = isnan(p.b[0]) || isnan(p.b[1]);
    p.finite = isfinite(p.a[0]) && isfinite(p.a[1]) && isfinite(p.b[0]) && isfinite(p.b[1]);
    if (per == 1) {
        p.distance = fabs(p.a[0] - p.b[0]);
        p.size_b = fabs(p.b[0]);
    } else {
        p.distance = hypot(p.a[0] - p.b[0], p.a[1] - p.b[1]);
        p.size_b = hypot(p.b[0], p.b[1]);
    }
    return p;
}

/* Are the bits of the i-th elements the same? */
static bool same_bits(const uint8_t *a, const uint8_t *b, size_t i, uint32_t bits)
{
    if (bits % 8 == 0)
        return memcmp(a + i * (bits / 8), b + i * (bits / 8), bits / 8) == 0;
    for (size_t k = i * bits; k < (i + 1) * bits; k++)
        if ((a[k / 8] ^ b[k / 8]) >> k % 8 & 1)
            return false;
    return true;
}

static bool close_enough(const tnf_diff_options *o, const struct couple *p)
{
    if (p->nan_a || p->nan_b)
        return p->nan_a && p->nan_b;
    if (!p->finite)
        return p->a[0] == p->b[0] && p->a[1] == p->b[1];
    return p->distance <= o->atol + o->rtol * p->size_b;
}

static bool is_same(const struct diff *d, const struct comparison *c, const struct couple *p,
                    const uint8_t *a, const uint8_t *b, size_t i)
{
    if (d->options.nan_differs && (p->nan_a || p->nan_b))
        return false;
    return c->exact ? same_bits(a, b, i, c->a->type->bits) : close_enough(&d->options, p);
}

/* ---------------------------------------------------------------- adding */

static void add_finite(tnf_diff_sums *t, const struct couple *p)
{
    t->finite++;
    t->max_abs = p->distance > t->max_abs ? p->distance : t->max_abs;
    if (p->size_b > 0 && p->distance / p->size_b > t->max_rel)
        t->max_rel = p->distance / p->size_b;
    t->sum_abs += p->distance;
    t->sum_squares += p->distance * p->distance;
    t->sum_a += p->a[0] * p->a[0] + p->a[1] * p->a[1];
    t->sum_b += p->b[0] * p->b[0] + p->b[1] * p->b[1];
    t->sum_ab += p->a[0] * p->b[0] + p->a[1] * p->b[1];
}

/* Copies the i-th element, from the lowest bit on. */
static void take_element(uint8_t out[16], const uint8_t *from, size_t i, uint32_t bits)
{
    memset(out, 0, 16);
    if (bits % 8 == 0 && bits <= 128)
        memcpy(out, from + i * (bits / 8), bits / 8);
    else
        for (size_t k = 0; k < bits && k < 128; k++)
            out[k / 8] |= (uint8_t)((from[(i * bits + k) / 8] >> (i * bits + k) % 8 & 1) << k % 8);
}

/* Adds the i-th elements, which differ; they are element `at` of their tensors. */
static void add_different(tnf_diff_sums *t, const struct comparison *c, const uint8_t *a,
                          const uint8_t *b, size_t i, uint64_t at)
{
    if (t->different++ > 0)
        return;
    t->first = at;
    take_element(t->a, a, i, c ? c->a->type->bits : 8);
    take_element(t->b, b, i, c ? c->b->type->bits : 8);
}

/* For integers that doubles cannot hold exactly. */
static void measure_wholes(struct couple *p, const struct comparison *c, const uint8_t *a,
                           const uint8_t *b, size_t i)
{
    struct whole x, y;
    if ((fabs(p->a[0]) < EXACT && fabs(p->b[0]) < EXACT) || !p->finite)
        return;
    if (whole_of(&x, c->a->type, a, i, p->a[0]) && whole_of(&y, c->b->type, b, i, p->b[0]))
        p->distance = distance_between(x, y);
}

void tnf_diff_add(tnf_diff_sums *t, const struct diff *d, const struct comparison *c,
                  uint64_t first, const uint8_t *a, const uint8_t *b, size_t n)
{
    double x[2 * TNF_DIFF_MOST], y[2 * TNF_DIFF_MOST];
    unsigned x_per = c->a->type->number == TNF_NUMBER_COMPLEX ? 2 : 1;
    unsigned y_per = c->b->type->number == TNF_NUMBER_COMPLEX ? 2 : 1;
    bool alike = c->a->type == c->b->type;
    tnf_diff_options none = { 0 };
    bool wide = is_wide(c->a->type) || is_wide(c->b->type);
    tnf_type_decode(x, c->a->type, a, 0, n);
    tnf_type_decode(y, c->b->type, b, 0, n);
    t->elements += n;
    for (size_t i = 0; i < n; i++) {
        double left[2] = { x[i * x_per], x_per > 1 ? x[2 * i + 1] : 0 };
        double right[2] = { y[i * y_per], y_per > 1 ? y[2 * i + 1] : 0 };
        struct couple p = couple_of(left, right, x_per > y_per ? x_per : y_per);
        if (wide)
            measure_wholes(&p, c, a, b, i);
        if (p.finite)
            add_finite(t, &p);
        t->unequal += alike ? !same_bits(a, b, i, c->a->type->bits) : !close_enough(&none, &p);
        if (is_same(d, c, &p, a, b, i))
            continue;
        t->nonfinite += !p.finite;
        add_different(t, c, a, b, i, first + i);
    }
}

bool tnf_diff_add_same(tnf_diff_sums *t, const struct diff *d, const struct comparison *c,
                       const uint8_t *a, size_t n)
{
    const tnf_diff_options *o = &d->options;
    double x[2 * TNF_DIFF_MOST];
    unsigned per = c->a->type->number == TNF_NUMBER_COMPLEX ? 2 : 1;
    if (c->a->type != c->b->type || o->nan_differs || !(o->atol >= 0) || !(o->rtol >= 0))
        return false;
    tnf_type_decode(x, c->a->type, a, 0, n);
    t->elements += n;
    for (size_t i = 0; i < n; i++) {
        double re = x[i * per], im = per > 1 ? x[2 * i + 1] : 0, square = re * re + im * im;
        if (!isfinite(re) || !isfinite(im))
            continue;
        t->finite++;
        t->sum_a += square;
        t->sum_b += square;
        t->sum_ab += square;
    }
    return true;
}

void tnf_diff_add_bytes(tnf_diff_sums *t, uint64_t first, const uint8_t *a, const uint8_t *b,
                        size_t n)
{
    t->elements += n;
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            add_different(t, NULL, a, b, i, first + i);
}

void tnf_diff_add_sums(tnf_diff_sums *t, const tnf_diff_sums *more)
{
    if (t->different == 0) {
        t->first = more->first;
        memcpy(t->a, more->a, sizeof t->a);
        memcpy(t->b, more->b, sizeof t->b);
    }
    t->elements += more->elements;
    t->different += more->different;
    t->unequal += more->unequal;
    t->nonfinite += more->nonfinite;
    t->finite += more->finite;
    t->max_abs = more->max_abs > t->max_abs ? more->max_abs : t->max_abs;
    t->max_rel = more->max_rel > t->max_rel ? more->max_rel : t->max_rel;
    t->sum_abs += more->sum_abs;
    t->sum_squares += more->sum_squares;
    t->sum_a += more->sum_a;
    t->sum_b += more->sum_b;
    t->sum_ab += more->sum_ab;
}

/* --------------------------------------------------------------- results */

/* Converts the column-major index of an element to its row-major index. */
static uint64_t by_rows(const tnf_object *o, uint64_t at)
{
    uint64_t out = 0, stride = 1;
    for (uint32_t k = o->rank; k-- > 1;)
        stride *= o->shape[k];
    for (uint32_t k = 0; k < o->rank; k++) {
        out += at % o->shape[k] * stride;
        at /= o->shape[k];
        stride /= k + 1 < o->rank ? o->shape[k + 1] : 1;
    }
    return out;
}

void tnf_diff_end(tnf_value_difference *out, const tnf_diff_sums *t, const struct comparison *c)
{
    *out = (tnf_value_difference) { .elements = t->elements,
                                    .different = t->different,
                                    .nonfinite = t->nonfinite,
                                    .first = t->first,
                                    .numbers = c->numbers };
    memcpy(out->a, t->a, sizeof out->a);
    memcpy(out->b, t->b, sizeof out->b);
    bool columns = c->a_of->order == TNF_ORDER_F && c->b_of->order == TNF_ORDER_F;
    if (columns && c->numbers && t->different)
        out->first = by_rows(c->a_of, t->first);
    if (!c->numbers)
        return;
    out->max_abs = t->max_abs;
    out->max_rel = t->max_rel;
    out->mean_abs = t->finite ? t->sum_abs / (double)t->finite : 0;
    out->nmse = t->sum_squares > 0 ? t->sum_squares / t->sum_a : 0;
    double cosine = t->sum_ab / (sqrt(t->sum_a) * sqrt(t->sum_b));
    out->cosine = isnan(cosine) ? NAN : fmax(-1, fmin(1, cosine));
}
