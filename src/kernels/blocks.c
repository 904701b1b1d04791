/* SPDX-License-Identifier: MIT */
/* Block types found by name, the fields that have a byte order, what can be encoded. */
#include "kernels/blocks.h"

#include "base/bytes.h"

#include <math.h>
#include <string.h>

const tnf_block_set *tnf_block_set_at(size_t i)
{
    const tnf_block_set *found[2];
    size_t n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        found[n++] = &tnf_blocks_avx2;
#endif
    found[n++] = &tnf_blocks_portable;
    return i < n ? found[i] : NULL;
}

const tnf_block_type *tnf_block_type_at(size_t i)
{
    const tnf_block_set *set = tnf_block_set_at(0);
    return i < set->n ? &set->types[i] : NULL;
}

const tnf_block_type *tnf_block_type_named(const char *name, size_t n)
{
    const tnf_block_type *type;
    for (size_t i = 0; (type = tnf_block_type_at(i)); i++)
        if (strlen(type->name) == n && memcmp(type->name, name, n) == 0)
            return type;
    return NULL;
}

/* ------------------------------------------------------------- byte order */

/* Runs of fields wider than a byte: where, how wide, how many; one of no fields ends the list. */
struct fields {
    const char *name;
    struct {
        uint16_t at;
        uint8_t width, n;
    } runs[4];
};

/* Types that are not here have no big-endian form: ggml reads their grids through byte pointers,
 * which gives other numbers there. */
static const struct fields orders[] = {
    { "q4_0", { { 0, 2, 1 } } },
    { "q4_1", { { 0, 2, 2 } } },
    { "q5_0", { { 0, 2, 1 }, { 2, 4, 1 } } },
    { "q5_1", { { 0, 2, 2 }, { 4, 4, 1 } } },
    { "q8_0", { { 0, 2, 1 } } },
    { "q8_1", { { 0, 2, 2 } } },
    { "q2_k", { { 80, 2, 2 } } },
    { "q3_k", { { 108, 2, 1 } } },
    { "q4_k", { { 0, 2, 2 } } },
    { "q5_k", { { 0, 2, 2 } } },
    { "q6_k", { { 208, 2, 1 } } },
    { "q8_k", { { 0, 4, 1 }, { 260, 2, 16 } } },
    { "iq4_nl", { { 0, 2, 1 } } },
    { "iq4_xs", { { 0, 2, 2 } } },
    { "tq1_0", { { 52, 2, 1 } } },
    { "tq2_0", { { 64, 2, 1 } } },
    { "mxfp4", { { 0 } } },
    { "nvfp4", { { 0 } } },
    { "q1_0", { { 0, 2, 1 } } },
    { "q2_0", { { 0, 2, 1 } } },
};

static const struct fields *fields_of(const tnf_block_type *type)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (strcmp(orders[i].name, type->name) == 0)
            return &orders[i];
    return NULL;
}

bool tnf_block_swap(const tnf_block_type *type, uint8_t *blocks, size_t n)
{
    const struct fields *fields = fields_of(type);
    if (!fields)
        return false;
    for (; n > 0; n--, blocks += type->bytes)
        for (size_t k = 0; fields->runs[k].n > 0; k++)
            tnf_reverse(blocks + fields->runs[k].at,
                        (uint64_t)fields->runs[k].n * fields->runs[k].width, fields->runs[k].width);
    return true;
}

/* --------------------------------------------------------------- encoding */

size_t tnf_block_encodable(const tnf_block_type *type, const float *in, size_t n)
{
    bool range = strcmp(type->name, "q4_1") == 0 || strcmp(type->name, "q5_1") == 0;
    for (size_t i = 0; i < n; i++, in += type->elements) {
        float least = in[0], greatest = in[0];
        bool finite = true;
        for (size_t j = 0; j < type->elements; j++) {
            finite = finite && isfinite(in[j]);
            least = in[j] < least ? in[j] : least;
            greatest = in[j] > greatest ? in[j] : greatest;
        }
        float apart = greatest - least;
        if (!finite || (range && !isfinite(apart)))
            return i;
    }
    return n;
}
