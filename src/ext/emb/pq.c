/* SPDX-License-Identifier: MIT */
/* Product-quantized rows: m codes each, one for every d / m elements.
 *
 *   row i = (centroid[0][code 0] | centroid[1][code 1] | …) times the transposed projection, times
 *           norm i; the last two only if the file has them
 *
 * The dot product with a query is a sum over the pieces: each term is the product of a centroid and
 * the query's piece. There are only m x 256 such products, so a scan needs one table lookup per
 * code and never computes a vector. Rotating the query once avoids rotating the rows:
 * (c Pt) . q = c . (q P).
 */
#include "ext/emb/rows.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

#define TOLERANCE 1e-3f /* for an orthonormal projection that was trained in single precision */

static tnf_status wrong_object(const tnf_object *object, const char *what, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "%s: %s", TNF_QUOTED(object->name), what);
}

static tnf_status take_floats(tnf_rows *r, const tnf_object *object, const char *role,
                              tnf_lent *out, uint64_t *memory, tnf_error *e)
{
    const tnf_part *part = tnf_object_part(object, role);
    if (!part)
        return TNF_OK;
    if (part->type != tnf_type_of(TNF_F32))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "the part %s of %s has the type %s, but it must have f32", role,
                        TNF_QUOTED(object->name), part->type->id);
    if (out != &r->norms || TNF_BIG_ENDIAN_HOST) {
        TNF_TRY(tnf_lent_read(out, part, &r->alloc, memory, e));
        tnf_swap_le(out->owned, part->nbytes / 4, 4);
        return TNF_OK;
    }
    TNF_TRY(tnf_lend(out, part, &r->alloc, memory, e));
    r->norms_at = out->owned ? NULL : part;
    return TNF_OK;
}

/* For a file, the rules of the layout were checked at opening. An object that the caller built may
 * have any sizes. */
static tnf_status check_sizes(const tnf_rows *r, const tnf_object *object, tnf_error *e)
{
    const tnf_part *projection = tnf_object_part(object, "projection");
    const tnf_part *norms = tnf_object_part(object, "norms");
    uint64_t square, row = 4 * (uint64_t)r->d;
    if (r->k == 0 || r->k > TNF_CODES || tnf_object_part(object, "codebooks")->nbytes != r->k * row)
        return wrong_object(object, "its codebooks do not have 1 to 256 centroids", e);
    if (r->n > 0 &&
        (r->m == 0 || r->d % r->m != 0 || tnf_object_part(object, "codes")->nbytes != r->n * r->m))
        return wrong_object(object, "the number of its codes does not fit its rows", e);
    if (projection && (!tnf_ckd_mul(&square, row, r->d) || projection->nbytes != square))
        return wrong_object(object, "its projection is not square", e);
    if (norms && norms->nbytes / 4 != r->n)
        return wrong_object(object, "it does not have one norm for each row", e);
    return TNF_OK;
}

tnf_status tnf_pq_open(tnf_rows *r, const tnf_object *object, uint64_t *memory, tnf_error *e)
{
    const tnf_part *codes = tnf_object_part(object, "codes");
    const tnf_part *codebooks = tnf_object_part(object, "codebooks");
    r->kind = TNF_ROWS_PQ;
    if (!codes || !codebooks || codes->type != tnf_type_of(TNF_U8) || object->rank != 2)
        return wrong_object(object, "it is not a quantized matrix", e);
    r->m = r->n ? (size_t)(codes->nbytes / r->n) : 1;
    r->k = (size_t)(codebooks->nbytes / (4 * (uint64_t)r->d));
    TNF_TRY(check_sizes(r, object, e));
    TNF_TRY(tnf_lend(&r->codes, codes, &r->alloc, memory, e));
    r->codes_at = r->codes.owned ? NULL : codes;
    TNF_TRY(take_floats(r, object, "codebooks", &r->codebooks, memory, e));
    TNF_TRY(take_floats(r, object, "projection", &r->projection, memory, e));
    return take_floats(r, object, "norms", &r->norms, memory, e);
}

static const float *centroid_at(const tnf_rows *r, size_t piece, size_t code)
{
    return (const float *)r->codebooks.p + (piece * r->k + code) * (r->d / r->m);
}

tnf_status tnf_pq_add_codes(const tnf_rows *r, uint64_t row, const uint8_t *codes, float norm,
                            float *dst, tnf_error *e)
{
    size_t width = r->d / r->m;
    for (size_t piece = 0; piece < r->m; piece++) {
        if (codes[piece] >= r->k)
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                            "row %llu has the code %u, but there are only %zu centroids",
                            (unsigned long long)row, codes[piece], r->k);
        const float *from = centroid_at(r, piece, codes[piece]);
        for (size_t i = 0; i < width; i++)
            dst[piece * width + i] += norm * from[i];
    }
    return TNF_OK;
}

tnf_status tnf_pq_add(const tnf_rows *r, uint64_t row, float *dst, tnf_error *e)
{
    const uint8_t *codes = (const uint8_t *)r->codes.p + (size_t)row * r->m;
    float norm = r->norms.p ? ((const float *)r->norms.p)[row] : 1;
    return tnf_pq_add_codes(r, row, codes, norm, dst, e);
}

void tnf_pq_rotate(const tnf_rows *r, const float *src, float *dst)
{
    if (r->projection.p)
        r->kernels->dot(r->projection.p, r->d, r->d, src, 1, dst, r->d);
    else
        memcpy(dst, src, r->d * sizeof *dst);
}

void tnf_pq_rotate_query(const tnf_rows *r, const float *query, float *out)
{
    const float *p = r->projection.p;
    memset(out, 0, TNF_PADDED(r->d) * sizeof *out);
    if (!p) {
        memcpy(out, query, r->d * sizeof *out);
        return;
    }
    for (size_t a = 0; a < r->d; a++, p += r->d)
        for (size_t k = 0; k < r->d; k++)
            out[k] += query[a] * p[k];
}

void tnf_pq_tables(const tnf_rows *r, const float *rotated, float *tables)
{
    size_t width = r->d / r->m;
    for (size_t piece = 0; piece < r->m; piece++)
        for (size_t code = 0; code < TNF_CODES; code++) {
            float sum = code < r->k ? 0 : NAN;
            const float *c = centroid_at(r, piece, code < r->k ? code : 0);
            const float *q = rotated ? rotated + piece * width : c;
            for (size_t i = 0; i < width; i++)
                sum += c[i] * q[i];
            tables[piece * TNF_CODES + code] = sum;
        }
}

/* Are the rows of P orthonormal? Then its columns are, too. */
bool tnf_pq_keeps_lengths(const tnf_rows *r)
{
    const float *p = r->projection.p;
    if (!p)
        return true;
    size_t size = (TNF_PADDED(r->d) + r->d) * sizeof(float) + 64;
    void *memory = tnf_alloc0(&r->alloc, size);
    if (!memory)
        return false; /* without memory, lengths are computed from vectors */
    float *row = (float *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    float *products = row + TNF_PADDED(r->d);
    bool fits = true;
    for (size_t i = 0; fits && i < r->d; i++) {
        memcpy(row, p + i * r->d, r->d * sizeof *row);
        r->kernels->dot(p + i * r->d, r->d - i, r->d, row, 1, products, r->d);
        for (size_t j = 0; j < r->d - i; j++)
            fits = fits && fabsf(products[j] - (j == 0 ? 1.0F : 0.0F)) < TOLERANCE;
    }
    tnf_free(&r->alloc, memory, size);
    return fits;
}
