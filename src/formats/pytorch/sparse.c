/* SPDX-License-Identifier: MIT */
/* The parts of sparse tensors have shapes in torch, but only sizes in Tenfold.
 *
 *   COO                  coords [S, cells]  values [cells, dense…]
 *   CSR, CSC             indptr [batch…, lines + 1]  indices [batch…, cells]
 *                        values [batch…, cells, dense…]
 *   BSR, BSC             the same, with lines of blocks: values [batch…, cells, r, c, dense…]
 *
 * For a matrix without batches the sizes are sufficient, unless it has no cells. The reader keeps
 * the missing facts as attributes: pytorch.sparse_dims (S), pytorch.batch_dims, pytorch.block_size.
 */
#include "formats/pytorch/write.h"

#include <string.h>

/* ---------------------------------------------------------------- reading */

static tnf_status push_number(tnf_attrs *attrs, const char *key, uint64_t n, tnf_error *e)
{
    return tnf_attrs_push(attrs, key, tnf_value_uint(n), e);
}

static tnf_status push_block(tnf_attrs *attrs, const uint64_t *block, tnf_arena *arena,
                             tnf_error *e)
{
    tnf_value *items = tnf_arena_array(arena, 2, sizeof *items);
    if (!items)
        return tnf_arena_fail(arena, "a block", e);
    items[0] = tnf_value_uint(block[0]);
    items[1] = tnf_value_uint(block[1]);
    return tnf_attrs_push(attrs, "pytorch.block_size",
                          (tnf_value) { .kind = TNF_ARRAY, .n = 2, .as.items = items }, e);
}

tnf_status tnf_pt_sparse_facts(tnf_attrs *attrs, const pt_tensor *t, tnf_arena *arena, tnf_error *e)
{
    const pt_dense *values = &t->parts[0], *second = &t->parts[1], *third = &t->parts[2];
    if (strcmp(t->layout, "torch.sparse_coo/1") == 0 && second->rank == 2 &&
        tnf_pt_is_empty(values) && second->shape[0] != t->rank)
        return push_number(attrs, "pytorch.sparse_dims", second->shape[0], e);
    if (t->nparts != 3 || strncmp(t->layout, "torch.sparse_", 13) != 0)
        return TNF_OK;
    bool blocks = t->layout[13] == 'b';
    if (third->rank < 1 || values->rank < third->rank + (blocks ? 2u : 0u))
        return TNF_OK; /* torch does not make such a tensor, so it is not written as one */
    uint32_t batch = third->rank - 1;
    if (t->rank > 2)
        TNF_TRY(push_number(attrs, "pytorch.batch_dims", batch, e));
    if (blocks && (t->rank > 2 || values->shape[batch] == 0))
        TNF_TRY(push_block(attrs, values->shape + batch + 1, arena, e));
    return TNF_OK;
}

/* ---------------------------------------------------------------- writing */

bool tnf_pt_shape_coo(pt_view *v, const uint64_t *counts, const tnf_object *t)
{
    uint64_t dense = 1, cells;
    int64_t said = t->rank;
    bool known = tnf_value_get(t->attrs, "pytorch.coalesced") != NULL;
    if ((!known && strcmp(t->layout->id, "sparse_coo/1") == 0) ||
        strcmp(v[0].type->name, "int64") != 0)
        return false; /* coordinates from other formats may be in another order than torch's */
    (void)tnf_pt_attr_int(t, "pytorch.sparse_dims", &said);
    for (uint32_t s = t->rank; s > 0; s--) {
        cells = counts[0] / s;
        if (counts[0] % s == 0 && tnf_ckd_mul(&cells, cells, dense) && cells == counts[1] &&
            (cells || s == said)) {
            cells = counts[0] / s;
            v[0].rank = 2;
            v[0].shape[0] = s;
            v[0].shape[1] = v[1].shape[0] = cells;
            v[1].rank = 1 + t->rank - s;
            memcpy(v[1].shape + 1, t->shape + s, (t->rank - s) * sizeof *t->shape);
            return true;
        }
        if (!tnf_ckd_mul(&dense, dense, t->shape[s - 1]))
            return false;
    }
    return false;
}

/* Facts about a compressed tensor. */
typedef struct compressed {
    uint32_t batch;                  /* batch dimensions, before those of the matrix */
    uint64_t matrices, dense;        /* number of matrices, numbers per cell */
    uint64_t lines, cells, block[2]; /* of one matrix */
} compressed;

static bool stored_block(uint64_t block[2], const tnf_object *t)
{
    const tnf_value *v = tnf_value_get(t->attrs, "pytorch.block_size");
    if (!v || v->kind != TNF_ARRAY || v->n != 2)
        return false;
    for (int i = 0; i < 2; i++) {
        if (v->as.items[i].kind != TNF_UINT || !v->as.items[i].as.u)
            return false;
        block[i] = v->as.items[i].as.u;
    }
    return true;
}

/* Finds the numbers of rows and columns of a block. */
static bool find_block(compressed *c, uint64_t values, const tnf_object *t, bool columns)
{
    uint64_t along = t->shape[c->batch + columns];
    if (stored_block(c->block, t))
        return true;
    if (!c->lines || !c->cells || !along || along % c->lines || t->rank > 2 || values % c->cells)
        return false;
    uint64_t first = along / c->lines, size = values / c->cells;
    c->block[columns] = first;
    c->block[!columns] = size / first;
    return size && size % first == 0;
}

static bool read_counts(compressed *c, const uint64_t *counts, const tnf_object *t)
{
    int64_t batch = 0;
    bool said = tnf_pt_attr_int(t, "pytorch.batch_dims", &batch);
    if (t->rank < 2 || (t->rank > 2 && !said) || batch < 0 || batch > (int64_t)t->rank - 2)
        return false;
    c->batch = (uint32_t)batch;
    if (!tnf_shape_elements(&c->matrices, t->shape, c->batch) ||
        !tnf_shape_elements(&c->dense, t->shape + c->batch + 2, t->rank - c->batch - 2) ||
        !c->matrices || counts[0] < c->matrices || counts[0] % c->matrices ||
        counts[1] % c->matrices)
        return false;
    c->lines = counts[0] / c->matrices - 1;
    c->cells = counts[1] / c->matrices;
    return true;
}

/* Are the sizes of the tensor and of its values consistent? */
static bool counts_fit(const compressed *c, uint64_t values, const tnf_object *t, bool columns)
{
    uint64_t along, all;
    return tnf_ckd_mul(&along, c->lines, c->block[columns]) &&
           along == t->shape[c->batch + columns] &&
           t->shape[c->batch + !columns] % c->block[!columns] == 0 &&
           tnf_ckd_mul(&all, c->matrices * c->cells, c->block[0]) &&
           tnf_ckd_mul(&all, all, c->block[1]) && tnf_ckd_mul(&all, all, c->dense) && all == values;
}

static void push_dims(pt_view *v, const uint64_t *dims, uint32_t n)
{
    if (n)
        memcpy(v->shape + v->rank, dims, n * sizeof *dims);
    v->rank += n;
}

bool tnf_pt_shape_compressed(pt_view *v, const uint64_t *counts, const tnf_object *t,
                             const char *kind)
{
    bool blocks = kind[0] == 'b', columns = kind[2] == 'c';
    compressed c = { .block = { 1, 1 } };
    if (v[0].type != v[1].type || !read_counts(&c, counts, t) ||
        (blocks && !find_block(&c, counts[2], t, columns)) ||
        !counts_fit(&c, counts[2], t, columns))
        return false;
    uint64_t ends = c.lines + 1;
    for (int i = 0; i < 3; i++)
        push_dims(&v[i], t->shape, c.batch);
    push_dims(&v[0], &ends, 1);
    push_dims(&v[1], &c.cells, 1);
    push_dims(&v[2], &c.cells, 1);
    push_dims(&v[2], c.block, blocks ? 2 : 0);
    push_dims(&v[2], t->shape + c.batch + 2, t->rank - c.batch - 2);
    return true;
}
