/* SPDX-License-Identifier: MIT */
/* Assigns tensors to files, and names the files. */
#include "core/many/split.h"

#include <string.h>

/* -------------------------------------------------------------- assignment */

/* The size that the tensor will have. */
static uint64_t size_of(const struct splitting *s, const tnf_object *o)
{
    uint64_t sum = 0;
    const tnf_type *to = s->save.dtype ? tnf_type_spelled(s->save.dtype) : NULL;
    if (to && o->layout == &tnf_layout_dense && o->nparts == 1 &&
        o->parts->type->number == TNF_NUMBER_FLOAT && o->parts->type->bits >= 8 &&
        tnf_type_bytes(&sum, to, tnf_elements(o)))
        return sum;
    sum = 0;
    for (uint16_t i = 0; i < o->nparts; i++)
        if (!tnf_ckd_add(&sum, sum, o->parts[i].nbytes))
            return UINT64_MAX;
    return sum;
}

/* Works as Hugging Face's tools: a tensor beyond the limit gets a file immediately, while the
 * current file stays open and is numbered when it is full. In formats whose sets are opened by
 * number, one tensor after the other, the current file is closed instead, which keeps the order of
 * the tensors. */
static tnf_status fill_shards(struct splitting *s, const uint32_t *shared, const uint64_t *bytes,
                              tnf_error *e)
{
    size_t n = s->b->catalog.n, groups = 0, open = SIZE_MAX;
    bool in_order = s->format->opens_sets;
    uint64_t max = s->options.max_bytes ? s->options.max_bytes : UINT64_MAX, filled = 0;
    uint32_t *number = tnf_arena_array(&s->arena, n + 1, sizeof *number); /* of each file */
    if (!number)
        return tnf_arena_fail(&s->arena, "splitting", e);
    for (size_t i = 0; i < n; i++) {
        if (shared && shared[i]) {
            s->shard_of[i] = s->shard_of[shared[i] - 1];
            continue;
        }
        if (bytes[i] > max) {
            if (in_order && open != SIZE_MAX) {
                number[open] = (uint32_t)s->n++;
                open = SIZE_MAX;
            }
            number[groups] = (uint32_t)s->n++;
            s->shard_of[i] = (uint32_t)groups++;
            continue;
        }
        if (open == SIZE_MAX || bytes[i] > max - filled) {
            if (open != SIZE_MAX)
                number[open] = (uint32_t)s->n++;
            open = groups++;
            filled = 0;
        }
        s->shard_of[i] = (uint32_t)open;
        filled += bytes[i];
    }
    if (open != SIZE_MAX || s->n == 0)
        number[open == SIZE_MAX ? 0 : open] = (uint32_t)s->n++;
    for (size_t i = 0; i < n; i++)
        s->shard_of[i] = number[s->shard_of[i]];
    return TNF_OK;
}

/* Counting sort: the tensors of a shard keep their order. */
static tnf_status sort_tensors(struct splitting *s, tnf_error *e)
{
    size_t n = s->b->catalog.n, first = 0;
    size_t *next = tnf_arena_array(&s->arena, s->n, sizeof *next);
    s->order = tnf_arena_array(&s->arena, n, sizeof *s->order);
    if (!next || !s->order)
        return tnf_arena_fail(&s->arena, "splitting", e);
    for (size_t i = 0; i < s->n; i++) {
        s->shards[i].first = next[i] = first;
        first += s->shards[i].tensors;
    }
    for (size_t i = 0; i < n; i++)
        s->order[next[s->shard_of[i]]++] = (uint32_t)i;
    return TNF_OK;
}

tnf_status tnf_split_assign(struct splitting *s, tnf_error *e)
{
    const tnf_catalog *c = &s->b->catalog;
    const uint32_t *shared;
    uint64_t *bytes = tnf_arena_array(&s->arena, c->n,
                                      sizeof *bytes); /* of tensors that share bytes */
    s->shard_of = tnf_arena_array(&s->arena, c->n, sizeof *s->shard_of);
    if (!bytes || !s->shard_of)
        return tnf_arena_fail(&s->arena, "splitting", e);
    TNF_TRY(tnf_find_shared(&shared, c, &s->arena, e));
    for (size_t i = 0; i < c->n; i++) {
        uint64_t *sum = &bytes[shared && shared[i] ? shared[i] - 1 : i];
        if (!tnf_ckd_add(sum, *sum, size_of(s, &c->objects[i])))
            *sum = UINT64_MAX;
    }
    TNF_TRY(fill_shards(s, shared, bytes, e));
    if (!(s->shards = tnf_arena_array(&s->arena, s->n, sizeof *s->shards)))
        return tnf_arena_fail(&s->arena, "splitting", e);
    for (size_t i = 0; i < c->n; i++) {
        struct split_shard *shard = &s->shards[s->shard_of[i]];
        shard->tensors++;
        shard->bytes += size_of(s, &c->objects[i]);
        s->total += size_of(s, &c->objects[i]);
    }
    return sort_tensors(s, e);
}

/* ------------------------------------------------------------------- names */

static tnf_status name_file(struct splitting *s, struct split_shard *shard, const char *end,
                            tnf_error *e)
{
    size_t stem = strlen(s->stem), n = stem + shard->label.n + strlen(end) + 3;
    size_t path = strlen(s->directory) + n + 2;
    char *name = tnf_arena_alloc(&s->arena, n), *all = tnf_arena_alloc(&s->arena, path);
    if (!name || !all)
        return tnf_arena_fail(&s->arena, "a name", e);
    snprintf(name, n, "%s%s%.*s%s", s->stem, shard->label.n ? "-" : "", (int)shard->label.n,
             shard->label.n ? shard->label.p : "", end);
    snprintf(all, path, "%s/%s", s->directory, name);
    shard->name = name;
    shard->path = all;
    return TNF_OK;
}

/* ".zt": the first extension of the format. */
static const char *first_extension(const struct splitting *s, char out[32])
{
    size_t n = s->format->extensions ? strcspn(s->format->extensions, " ") : 0;
    snprintf(out, 32, "%s%.*s", n ? "." : "", (int)n, n ? s->format->extensions : "");
    return out;
}

tnf_status tnf_split_name(struct splitting *s, tnf_error *e)
{
    char end[32];
    first_extension(s, end);
    for (size_t i = 0; i < s->n; i++) {
        if (s->n > 1) {
            char *label = tnf_arena_alloc(&s->arena, 32);
            if (!label)
                return tnf_arena_fail(&s->arena, "a name", e);
            s->shards[i].label.n = (size_t)snprintf(label, 32, "%05zu-of-%05zu", i + 1, s->n);
            s->shards[i].label.p = label;
        }
        TNF_TRY(name_file(s, &s->shards[i], end, e));
    }
    return s->own_index ? name_file(s, &s->root, s->own_index->index_name, e) : TNF_OK;
}
