/* SPDX-License-Identifier: MIT */
/* Virtual tensors of another type: numbers as floats, each rounded once. kernels/cast.h has most
 * pairs of types. The others (floats of 4 and 6 bits, single bits) are converted through doubles,
 * which are exact. */
#include "core/read/virtual.h"
#include "kernels/cast.h"
#include "kernels/narrow.h"

#include <string.h>

#define PIECE ((size_t)4 << 10) /* elements that are converted through doubles at a time */

struct cast {
    tnf_cast_fn *kernel; /* NULL: none for this pair */
};

static void encode_numbers(uint8_t *out, const tnf_type *type, const double *x, size_t n)
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
    for (size_t at = 0; at < n; at += PIECE) {
        size_t here = n - at < PIECE ? n - at : PIECE;
        (void)tnf_type_decode(x, from, bytes, skip + at, here);
        encode_numbers(dst + at * (to->bits / 8), to, x, here);
    }
}

static tnf_status make_cast(struct tnf_cursor *c, uint64_t first, size_t n, uint8_t *dst,
                            tnf_error *e)
{
    const tnf_part *from = c->v->sources[0].parts;
    const struct cast *cast = c->v->plan;
    const uint8_t *bytes;
    size_t skip;
    TNF_TRY(tnf_input_elements(c, &c->inputs[0], from, first, n, &bytes, &skip, e));
    if (cast->kernel && skip == 0)
        cast->kernel(dst, bytes, n);
    else
        cast_elements(dst, c->v->part.type, from->type, bytes, skip, n);
    return TNF_OK;
}

bool tnf_can_cast_to(const tnf_type *type)
{
    return type == tnf_type_of(TNF_F64) || tnf_narrow_of(type->id);
}

bool tnf_can_cast_from(const tnf_type *type)
{
    return type->number != TNF_NUMBER_COMPLEX && tnf_type_decode(NULL, type, "", 0, 0);
}

tnf_status tnf_virtual_cast(struct tnf_virtual *v, const tnf_type *type, tnf_error *e)
{
    const tnf_object *o = &v->sources[0];
    TNF_TRY(tnf_virtual_dense(v, 0, e));
    if (!type || !tnf_can_cast_to(type))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "numbers can be cast only to f64, f32, f16, bf16, f8_e4m3fn, f8_e5m2, "
                        "f8_e4m3fnuz and f8_e5m2fnuz");
    if (!tnf_can_cast_from(o->parts->type))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has the type %s, which cannot be cast", TNF_QUOTED(o->name),
                        o->parts->type->id);
    TNF_TRY(tnf_virtual_becomes(v, type, o->shape, o->rank, e));
    v->object.order = o->order;
    struct cast *cast = tnf_virtual_plan(v, 1, sizeof *cast, e);
    if (!cast)
        return TNF_ENOMEM;
    cast->kernel = tnf_cast_of(o->parts->type, type);
    v->plan = cast;
    v->unit = o->parts->type->bits % 8 ? 8 : 1; /* packed elements that begin at a byte */
    v->make = make_cast;
    if (type == o->parts->type)
        tnf_virtual_same(v);
    return TNF_OK;
}
