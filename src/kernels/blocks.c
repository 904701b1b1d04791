/* SPDX-License-Identifier: MIT */
/* Lookup of block types by name, and checks for encoding. */
#include "kernels/blocks.h"

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

#define MAX_F16   65504.0F /* a scale is never larger than the largest number of its block */
#define MAX_BLOCK 256u

static bool has_large(const float *in, size_t n)
{
    bool large = false;
    for (size_t i = 0; i < n; i++)
        large |= fabsf(in[i]) > MAX_F16;
    return large;
}

size_t tnf_block_finite(const tnf_block_type *type, const float *in, const uint8_t *blocks,
                        size_t n)
{
    float again[MAX_BLOCK];
    for (size_t i = 0; i < n; i++, in += type->elements, blocks += type->bytes) {
        if (!has_large(in, type->elements))
            continue;
        type->decode(again, blocks, 1);
        for (size_t j = 0; j < type->elements; j++)
            if (!isfinite(again[j]))
                return i;
    }
    return n;
}
