/* SPDX-License-Identifier: MIT */
/* Limits on growth: compressed tensors grow when they are decoded, and bytes that many tensors
 * share are written once for each. Both are checked before anything is decoded or written, against
 * the size of the file. */
#include "core/core.h"

#include <stdlib.h>

/* Zeros compress to 1/30,000, so a valid small file may become a large one. Beyond both limits the
 * message says which option to raise. */
#define LEAST ((uint64_t)2 << 30)
#define TIMES 1024u

uint64_t tnf_decoded_most(uint64_t limit, uint64_t size)
{
    uint64_t most;
    if (limit)
        return limit;
    if (!tnf_ckd_mul(&most, size, TIMES))
        return UINT64_MAX;
    return most > LEAST ? most : LEAST;
}

static bool can_grow(const tnf_part *p)
{
    return p->payload == TNF_ENCODED && !(p->flags & TNF_PART_UNREADABLE);
}

tnf_status tnf_check_decoded(const tnf_file *f, tnf_error *e)
{
    uint64_t sum = 0, most = tnf_decoded_most(f->options.limits.decoded_bytes, f->info.size);
    for (size_t i = 0; i < f->catalog.n; i++) {
        const tnf_object *o = &f->catalog.objects[i];
        for (uint16_t k = 0; k < o->nparts; k++)
            if (can_grow(&o->parts[k]) && !tnf_ckd_add(&sum, sum, o->parts[k].nbytes))
                sum = UINT64_MAX;
    }
    if (sum <= most)
        return TNF_OK;
    return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                    "%llu bytes become %llu when decoded; at most %llu are allowed: raise the "
                    "limit 'decoded_bytes' if you trust the file",
                    (unsigned long long)f->info.size, (unsigned long long)sum,
                    (unsigned long long)most);
}

/* ------------------------------------------------------------------ output */

/* An amount of bytes that comes from one file. */
struct amount {
    const tnf_file *file;
    uint64_t bytes;
};

static int by_file(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct amount *)a)->file;
    uintptr_t y = (uintptr_t)((const struct amount *)b)->file;
    return x < y ? -1 : x > y;
}

static size_t collect_amounts(struct amount *out, const tnf_catalog *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        for (uint16_t k = 0; k < c->objects[i].nparts; k++) {
            const tnf_part *p = &c->objects[i].parts[k];
            if (p->payload > TNF_OPAQUE || !p->origin || !p->origin->reader)
                continue;
            if (n > 0 && out[n - 1].file == p->origin->reader->file) {
                if (!tnf_ckd_add(&out[n - 1].bytes, out[n - 1].bytes, p->nbytes))
                    out[n - 1].bytes = UINT64_MAX;
                continue;
            }
            out[n++] = (struct amount) { p->origin->reader->file, p->nbytes };
        }
    return n;
}

static tnf_status check_amount(const struct amount *a, tnf_error *e)
{
    uint64_t size = a->file->source->size;
    uint64_t most = tnf_decoded_most(a->file->options.limits.output_bytes, size);
    if (a->bytes <= most)
        return TNF_OK;
    return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                    "%llu bytes of a file become %llu when they are written; at most %llu are "
                    "allowed: raise the limit 'output_bytes' if you trust it",
                    (unsigned long long)size, (unsigned long long)a->bytes,
                    (unsigned long long)most);
}

tnf_status tnf_check_output(const tnf_catalog *c, tnf_arena *arena, tnf_error *e)
{
    size_t parts = 0;
    for (size_t i = 0; i < c->n; i++)
        parts += c->objects[i].nparts;
    struct amount *all = tnf_arena_array(arena, parts, sizeof *all);
    if (!all)
        return tnf_arena_fail(arena, "a plan", e);
    size_t n = collect_amounts(all, c);
    if (n > 1)
        qsort(all, n, sizeof *all, by_file);
    for (size_t i = 0; i < n; i++) {
        while (i + 1 < n && all[i + 1].file == all[i].file) {
            if (!tnf_ckd_add(&all[i + 1].bytes, all[i + 1].bytes, all[i].bytes))
                all[i + 1].bytes = UINT64_MAX;
            i++;
        }
        TNF_TRY(check_amount(&all[i], e));
    }
    return TNF_OK;
}
