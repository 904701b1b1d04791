/* SPDX-License-Identifier: MIT */
/* Salvaging: copies all intact content of a file to a builder.
 *
 *   open        content that `index` could not read is noted; parts beyond the end are unreadable
 *   verify      digests, rules of layouts: a tensor that fails is lost
 *   rows        for a truncated matrix with a string for each row: the complete rows are kept
 *   builder     gets the other tensors, the attributes, and extras that have a meaning
 */
#include "core/save/save.h"

#include "base/sized.h"
#include <tenfold/repair.h>

#include <stdio.h>
#include <string.h>

struct salvage {
    tnf_salvage_options options;
    tnf_salvage_result *result;
    const tnf_file *file;
    bool *lost; /* of the catalog's objects */
    /* Tensors of this many rows form a table with its words, of which `left` rows are complete. */
    uint64_t rows, left;
};

static void tell_lost(struct salvage *s, const char *kind, tnf_str name, uint64_t offset,
                      const char *reason)
{
    s->result->lost++;
    if (s->options.lost)
        s->options.lost(s->options.ctx, &(tnf_loss) { kind, name, offset, reason });
}

static void lose_tensor(struct salvage *s, const tnf_object *o, uint64_t offset, const char *reason)
{
    size_t i = (size_t)(o - s->file->catalog.objects);
    if (!s->lost[i])
        tell_lost(s, "tensor", o->name, offset, reason);
    s->lost[i] = true;
}

/* ------------------------------------------------------------------- rows */

static bool is_strings(const tnf_object *o)
{
    return strcmp(o->layout->id, "strings/1") == 0 && o->rank == 1;
}

/* The number of complete rows of a truncated matrix. */
static uint64_t rows_there(const tnf_object *o)
{
    const tnf_part *p = o->parts;
    uint64_t size = p && p->origin && p->origin->source ? p->origin->source->size : 0;
    if (!p || o->layout != &tnf_layout_dense || o->order != TNF_ORDER_C || o->rank < 2 ||
        p->payload != TNF_AT || !(p->flags & TNF_PART_UNREADABLE) || p->offset >= size ||
        p->stored <= size - p->offset || p->stored != p->nbytes || o->shape[0] == 0 ||
        p->nbytes % o->shape[0] != 0)
        return 0;
    return (size - p->offset) / (p->nbytes / o->shape[0]);
}

/* Are these truncated embeddings with a row for each word? Only such rows have a meaning one by
 * one. */
static void find_table(struct salvage *s)
{
    const tnf_object *rows = tnf_find(s->file, "embeddings"), *words = tnf_find(s->file, "vocab");
    uint64_t left = rows && words ? rows_there(rows) : 0;
    if (left == 0 || !is_strings(words) || words->shape[0] != rows->shape[0])
        return;
    s->rows = rows->shape[0];
    s->left = left;
}

static bool in_table(const struct salvage *s, const tnf_object *o)
{
    bool dense = o->layout == &tnf_layout_dense && o->order == TNF_ORDER_C && o->nparts == 1;
    return s->rows > 0 && o->rank > 0 && o->shape[0] == s->rows &&
           (is_strings(o) || (dense && o->parts->payload == TNF_AT &&
                              o->parts->nbytes % s->rows == 0 && !o->parts->digest));
}

/* The first rows of a tensor. *there becomes false if the file does not have all of them. */
static tnf_status shorten_tensor(struct salvage *s, const tnf_object *o, tnf_object *out,
                                 tnf_part parts[2], uint64_t *shape, bool *there, tnf_error *e)
{
    uint8_t end[8];
    *out = *o;
    memcpy(shape, o->shape, o->rank * sizeof *shape);
    memcpy(parts, o->parts, o->nparts * sizeof *parts);
    shape[0] = s->left;
    out->shape = shape;
    out->parts = parts;
    *there = true;
    if (is_strings(o)) {
        tnf_part *offsets = strcmp(parts[0].role, "offsets") == 0 ? &parts[0] : &parts[1];
        tnf_part *bytes = offsets == &parts[0] ? &parts[1] : &parts[0];
        TNF_TRY(tnf_read_part(end, 8, offsets, s->left * 8, e));
        offsets->nbytes = (s->left + 1) * 8;
        bytes->nbytes = tnf_le64(end);
        return TNF_OK;
    }
    uint64_t size = parts->origin->source->size;
    parts->nbytes = parts->stored = o->parts->nbytes / s->rows * s->left;
    *there = parts->offset <= size && parts->nbytes <= size - parts->offset;
    parts->flags &= (uint8_t)~TNF_PART_UNREADABLE;
    return TNF_OK;
}

static tnf_status add_rows(struct salvage *s, tnf_builder *b, const tnf_object *o, tnf_error *e)
{
    tnf_object rows;
    tnf_part parts[2];
    bool there;
    uint64_t *shape = tnf_arena_array(&b->arena, o->rank, sizeof *shape);
    if (!shape)
        return tnf_arena_fail(&b->arena, "a shape", e);
    TNF_TRY(shorten_tensor(s, o, &rows, parts, shape, &there, e));
    if (!there)
        return TNF_OK; /* the loss was reported already */
    s->result->saved++;
    return tnf_builder_add_object(b, &rows, NULL, e);
}

/* ----------------------------------------------------------------- losing */

bool tnf_cut_off(char why[160], const tnf_part *p)
{
    uint64_t size = p->origin && p->origin->source ? p->origin->source->size : 0;
    bool gone = p->offset >= size;
    if (p->payload > TNF_ENCODED || (!gone && p->stored <= size - p->offset))
        return false;
    if (gone)
        snprintf(why, 160, "cut off: the file ends before its %llu bytes",
                 (unsigned long long)p->stored);
    else
        snprintf(why, 160, "cut off: the file ends after %llu of its %llu bytes",
                 (unsigned long long)(size - p->offset), (unsigned long long)p->stored);
    return true;
}

/* Reports why a part can be listed but not read. */
static void tell_unreadable(struct salvage *s, const tnf_object *o, const tnf_part *p)
{
    char why[160];
    uint64_t size = p->origin && p->origin->source ? p->origin->source->size : 0;
    if (p->payload > TNF_ENCODED)
        snprintf(why, sizeof why, "the data that contains the tensor is missing or damaged");
    else if (p->offset < size && in_table(s, o) && rows_there(o) > 0)
        snprintf(why, sizeof why, "cut off: %llu of its %llu rows are there and saved",
                 (unsigned long long)s->left, (unsigned long long)s->rows);
    else if (!tnf_cut_off(why, p))
        snprintf(why, sizeof why, "its length does not fit its shape, or its type is unknown");
    lose_tensor(s, o, p->payload > TNF_ENCODED ? TNF_NO_OFFSET : p->offset, why);
}

static void find_unreadable(struct salvage *s)
{
    for (size_t i = 0; i < s->file->catalog.n; i++) {
        const tnf_object *o = &s->file->catalog.objects[i];
        for (uint16_t k = 0; k < o->nparts && !s->lost[i]; k++)
            if (o->parts[k].flags & TNF_PART_UNREADABLE)
                tell_unreadable(s, o, &o->parts[k]);
        const tnf_object *found = s->lost[i] ? o : tnf_find_n(s->file, o->name.p, o->name.n);
        if (found != o)
            lose_tensor(s, o, o->nparts ? o->parts->offset : TNF_NO_OFFSET,
                        "another tensor has the same name");
    }
}

static void on_problem(void *ctx, const tnf_problem *p)
{
    if (p->object) /* a fault of the file as a whole loses no tensor */
        lose_tensor(ctx, p->object, p->offset, p->message);
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    const struct salvage *s = ctx;
    return !s->options.progress || s->options.progress(s->options.ctx, done, total);
}

/* Reports the losses that opening noted; for a shard, with its name. */
static void tell_losses(struct salvage *s, const tnf_file *file)
{
    const char *label = file->origin.label;
    tnf_str name = { label ? label : "", label ? strlen(label) : 0 };
    for (const struct loss *l = file->losses; l; l = l->next)
        if (!l->harmless)
            tell_lost(s, l->name.p ? "tensor" : "part", l->name.p ? l->name : name, l->offset,
                      l->message);
}

static tnf_status find_lost(struct salvage *s, tnf_error *e)
{
    tnf_verify_result found = TNF_VERIFY_RESULT_INIT;
    tnf_verify_options how = { .size = sizeof how };
    how.problem = on_problem;
    how.progress = on_progress;
    how.ctx = s;
    how.threads = s->options.threads;
    tell_losses(s, s->file);
    for (const struct sibling *other = s->file->siblings; other; other = other->next)
        if (other->file)
            tell_losses(s, other->file);
    find_table(s);
    find_unreadable(s);
    return tnf_verify(&found, s->file, &how, e);
}

/* ----------------------------------------------------------------- adding */

/* Bytes that belong to no tensor are kept only if the file is not damaged. */
static bool extra_belongs(const struct salvage *s, const tnf_extra *x)
{
    static const char end[] = ".trailing";
    size_t n = sizeof end - 1;
    bool trailing = x->key.n > n && memcmp(x->key.p + x->key.n - n, end, n) == 0;
    return !(trailing && (s->file->needed_lenience || s->result->lost > 0));
}

static tnf_status take_nothing(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    (void)ctx, (void)bytes, (void)n, (void)e;
    return TNF_OK;
}

static bool is_cut(const tnf_part *p)
{
    uint64_t size = p->origin && p->origin->source ? p->origin->source->size : UINT64_MAX;
    return p->payload == TNF_AT && (p->offset > size || p->stored > size - p->offset);
}

/* Extras whose digest is compared when they are read, and truncated ones, are checked by reading
 * them. */
static tnf_status add_extra(struct salvage *s, tnf_builder *b, const tnf_extra *x, tnf_error *e)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    bool there = extra_belongs(s, x);
    tnf_status status = there && (tnf_checks_reads(&x->bytes) || is_cut(&x->bytes) ||
                                  x->bytes.payload == TNF_ENCODED)
                            ? tnf_scan(&x->bytes, take_nothing, NULL, &why)
                            : TNF_OK;
    if (there && status == TNF_OK)
        return tnf_builder_add_extra(b, x, e);
    if (status != TNF_OK && !tnf_is_file_fault(status)) {
        if (e)
            *e = why;
        return status;
    }
    tell_lost(s, "extra", x->key, x->bytes.offset,
              there ? why.message : "bytes that belong to no tensor");
    return TNF_OK;
}

static tnf_status add_all(struct salvage *s, tnf_builder *b, tnf_error *e)
{
    const tnf_info *info = tnf_file_info(s->file);
    for (size_t i = 0; i < info->objects; i++) {
        const tnf_object *o = tnf_at(s->file, i);
        if (in_table(s, o) && o->nparts <= 2 && (!s->lost[i] || !is_strings(o))) {
            TNF_TRY(add_rows(s, b, o, e));
            continue;
        }
        if (s->lost[i])
            continue;
        TNF_TRY(tnf_builder_add_object(b, tnf_at(s->file, i), NULL, e));
        s->result->saved++;
    }
    for (size_t i = 0; i < info->attrs->n; i++) {
        const tnf_member *m = &info->attrs->as.members[i];
        TNF_TRY(tnf_attrs_set(&b->catalog.attrs, m->key.p, m->key.n, m->value, e));
    }
    for (size_t i = 0; i < info->nextras; i++)
        TNF_TRY(add_extra(s, b, &info->extras[i], e));
    return TNF_OK;
}

tnf_status tnf_salvage(tnf_salvage_result *out, tnf_builder *builder, const tnf_file *file,
                       const tnf_salvage_options *options, tnf_error *e)
{
    TNF_TRY(tnf_need(builder, "builder", e));
    TNF_TRY(tnf_need(file, "file", e));
    tnf_salvage_result result = TNF_SALVAGE_RESULT_INIT;
    struct salvage s = { .result = &result, .file = file };
    TNF_TRY(tnf_result_begin(out, TNF_FIRST(tnf_salvage_result), e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_salvage_options, &s.options, options, e));
    s.lost = tnf_alloc0(&file->alloc, file->catalog.n + 1);
    if (!s.lost)
        return tnf_no_memory("salvaging", e);
    tnf_status status = find_lost(&s, e);
    if (status == TNF_OK)
        status = add_all(&s, builder, e);
    tnf_result_fill(out, &result, sizeof result);
    tnf_free(&file->alloc, s.lost, file->catalog.n + 1);
    return status;
}
