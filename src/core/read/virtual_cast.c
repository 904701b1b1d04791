/* SPDX-License-Identifier: MIT */
/* Virtual tensors of another type: numbers as floats, each rounded once. All go through a double,
 * which holds every type exactly but for integers of 64 bits; those are cut to a double in such a
 * way that rounding it again gives what rounding once would have given. */
#include "core/read/virtual.h"
#include "kernels/narrow.h"

#include <math.h>
#include <string.h>

#define PIECE ((size_t)4 << 10) /* elements that are doubles at a time */

/* The 53 leading bits, the last of them set if any behind it is (rounding to odd). */
static double odd_double(uint64_t magnitude)
{
    int shift = 0;
    uint64_t rest = 0;
    while (magnitude >> 53) {
        rest |= magnitude & 1;
        magnitude >>= 1;
        shift++;
    }
    return ldexp((double)(magnitude | rest), shift);
}

static bool is_wide(const tnf_type *type)
{
    return type == tnf_type_of(TNF_I64) || type == tnf_type_of(TNF_U64);
}

static void decode_wide(const tnf_type *type, const uint8_t *bytes, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t u = tnf_le64(bytes + 8 * i);
        bool minus = type->number == TNF_NUMBER_INT && u >> 63;
        out[i] = minus ? -odd_double(0 - u) : odd_double(u);
    }
}

static void encode(uint8_t *out, const tnf_type *type, const double *x, size_t n)
{
    const tnf_narrow *to = tnf_narrow_of(type->id);
    if (!to) { /* f64 */
        for (size_t i = 0; i < n; i++) {
            uint64_t bits;
            memcpy(&bits, &x[i], sizeof bits);
            tnf_put_le64(out + 8 * i, bits);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = tnf_narrow_bits(to, x[i]);
        for (size_t k = 0; k < to->bytes; k++)
            out[i * to->bytes + k] = (uint8_t)(bits >> 8 * k);
    }
}

static void cast_elements(uint8_t *dst, const tnf_type *to, const tnf_type *from,
                          const uint8_t *bytes, size_t skip, size_t n)
{
    double x[PIECE];
    bool wide = is_wide(from) && to != tnf_type_of(TNF_F64);
    for (size_t at = 0; at < n; at += PIECE) {
        size_t here = n - at < PIECE ? n - at : PIECE;
        if (wide)
            decode_wide(from, bytes + 8 * (skip + at), here, x);
        else
            (void)tnf_type_decode(from, bytes, skip + at, here, x);
        encode(dst + at * (to->bits / 8), to, x, here);
    }
}

static tnf_status make_cast(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                            tnf_error *e)
{
    const tnf_part *from = c->v->sources[0].parts;
    const uint8_t *bytes;
    size_t skip;
    TNF_TRY(tnf_input_elements(c, &c->inputs[0], from, first, n, &bytes, &skip, e));
    cast_elements(dst, c->v->part.type, from->type, bytes, skip, n);
    return TNF_OK;
}

bool tnf_can_cast_to(const tnf_type *type)
{
    return type == tnf_type_of(TNF_F64) || tnf_narrow_of(type->id);
}

bool tnf_can_cast_from(const tnf_type *type)
{
    return type->number != TNF_NUMBER_COMPLEX && tnf_type_decode(type, "", 0, 0, NULL);
}

tnf_status tnf_virtual_cast(struct tnf_virtual *v, const tnf_type *type, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    TNF_TRY(tnf_virtual_dense(v, 0, e));
    if (!type || !tnf_can_cast_to(type))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "numbers can be cast to f64 f32 f16 bf16 f8_e4m3fn f8_e5m2 f8_e4m3fnuz "
                        "f8_e5m2fnuz only");
    if (!tnf_can_cast_from(o->parts->type))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "%s is of type %s, which is not cast",
                        TNF_QUOTED(o->name), o->parts->type->id);
    TNF_TRY(tnf_virtual_becomes(v, type, o->shape, o->rank, e));
    v->object.order = o->order;
    v->make = make_cast;
    if (type == o->parts->type) {
        v->part = *o->parts;
        v->part.role = "data";
        v->part.digest = NULL;
        v->make = NULL;
    }
    return TNF_OK;
}
