/* SPDX-License-Identifier: MIT */
/* Verifying what opening does not check: digests, the rules of layouts for their data, and on
 * request every number and the canonical form. Each part is read once, in blocks. If a server
 * provides a digest of a remote file, the file is read completely at the end.
 *
 *   objects    a b c d …               each is a task; the largest begin first
 *   outcomes   ok ok problem ok …      reported in file order when all are done
 */
#include "base/digest.h"
#include "base/pool.h"
#include "base/sized.h"
#include "core/core.h"
#include "core/look/partial.h"
#include "core/look/progress.h"
#include "core/look/values.h"
#include "remote/list.h"
#include <tenfold/virtual.h>

#include <pthread.h>
#include <string.h>

#define BLOCK        ((size_t)1 << 20)
#define WORTH_THREAD ((uint64_t)4 << 20) /* below this a thread costs more than it saves */

/* The result for one object. */
struct outcome {
    tnf_error *problem; /* NULL: none */
    uint32_t checked, undigested;
    bool values_later; /* only its values must be read: this is done later, in smaller pieces */
};

struct check {
    tnf_verify_options options;
    const tnf_file *file;
    tnf_progress progress;
    struct outcome *outcomes; /* of the catalog's objects */
    tnf_values *values;       /* of the catalog's objects, if requested */
    tnf_value_counts *counts; /* the results of `values` */
    const size_t *order;      /* of processing: the largest first */
    bool out_of_memory;
    const tnf_some *some; /* NULL: all objects, and the file */
    pthread_mutex_t lock; /* guards progress and the allocator */
};

/* The state of reading one part. */
struct pass {
    struct check *c;
    const tnf_part *part;
    tnf_digester digester;
    bool as_read;       /* the digest is of the decoded bytes */
    tnf_values *values; /* NULL: not requested, or not now */
    uint64_t elements;  /* remaining elements */
};

static tnf_status take_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct pass *p = ctx;
    uint32_t bits = p->part->type->bits;
    if (p->digester.algorithm && p->as_read)
        tnf_digest_update(&p->digester, bytes, n);
    if (p->values && bits) { /* blocks contain whole elements */
        uint64_t here = (uint64_t)n * 8 / bits;
        here = here < p->elements ? here : p->elements;
        tnf_values_take(p->values, p->part->type, bytes, (size_t)here);
        p->elements -= here;
    }
    return tnf_progress_add(&p->c->progress, &p->c->lock, n, e);
}

/* Digests the stored bytes of a range of a source. */
static tnf_status digest_range(tnf_digester *d, const tnf_source *source, uint64_t offset,
                               uint64_t n, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t size = n < BLOCK ? (size_t)n : BLOCK;
    uint8_t *block = tnf_alloc(&a, size);
    tnf_status status = block ? TNF_OK : tnf_no_memory("reading", e);
    for (uint64_t at = 0; at < n && status == TNF_OK; at += size) {
        size_t here = n - at < size ? (size_t)(n - at) : size;
        status = tnf_source_read(source, offset + at, block, here, e);
        if (status == TNF_OK)
            tnf_digest_update(d, block, here);
    }
    tnf_free(&a, block, size);
    return status;
}

static tnf_status compare_digest(const tnf_part *p, tnf_digester *d, tnf_error *e)
{
    uint8_t found[TNF_DIGEST_MAX];
    tnf_digest_end(d, found);
    if (memcmp(found, p->digest->bytes, p->digest->n) == 0)
        return TNF_OK;
    return tnf_fail(e, TNF_EDIGEST, p->payload <= TNF_ENCODED ? p->offset : TNF_NO_OFFSET,
                    "the bytes of part '%s' do not match their %s", p->role, p->digest->algorithm);
}

/* If there is nothing to compare or count, checks that the last byte exists. Over the network no
 * progress is reported for bytes that are not read. */
static tnf_status touch_part(struct check *c, const tnf_part *p, uint64_t done, tnf_error *e)
{
    uint8_t last;
    TNF_TRY(tnf_read_part(&last, p->nbytes ? 1 : 0, p, p->nbytes ? p->nbytes - 1 : 0, e));
    if (p->origin && p->origin->source && p->origin->source->remote)
        return TNF_OK;
    return tnf_progress_add(&c->progress, &c->lock, done, e);
}

/* Is it much larger than its file could hold: a few elements that represent many (strides of 0)? */
static bool is_vast(const tnf_part *p)
{
    return p->origin && p->origin->source && p->nbytes > (uint64_t)2 << 30 &&
           p->nbytes / 1024 > p->origin->source->size;
}

/* Reports an unreadable part of a file that was opened for salvage. If the part is in another file,
 * the losses of that file report it. */
static tnf_status check_unreadable(struct outcome *out, const tnf_part *p, tnf_error *e)
{
    char why[160];
    if (p->payload > TNF_ENCODED)
        return TNF_OK;
    out->checked++;
    out->undigested++;
    return tnf_cut_off(why, p)
               ? tnf_fail(e, TNF_ETRUNCATED, p->offset, "%s", why)
               : tnf_fail(e, TNF_EUNSUPPORTED, p->offset, "it can be listed but not read");
}

static tnf_status check_part(struct check *c, struct outcome *out, const tnf_part *p, tnf_values *v,
                             uint64_t elements, tnf_error *e)
{
    struct pass pass = { .c = c, .part = p, .values = v, .elements = elements };
    const tnf_digest *d = p->digest;
    size_t n = d && d->algorithm ? tnf_digest_size(d->algorithm) : 0;
    bool by_reading = tnf_checks_reads(p); /* reading it compares the digest */
    bool digested = n > 0 && n == d->n &&
                    (by_reading || tnf_digest_begin(&pass.digester, d->algorithm));
    out->checked++;
    out->undigested += !digested;
    if (n > 0 && n != d->n)
        return tnf_fail(e, TNF_EDIGEST, p->payload <= TNF_ENCODED ? p->offset : TNF_NO_OFFSET,
                        "the digest of part '%s' has %zu bytes, a %s has %zu", p->role, d->n,
                        d->algorithm, n);
    if (!digested && p->payload != TNF_ENCODED && (p->payload != TNF_OPAQUE || is_vast(p))) {
        out->values_later = v != NULL;
        return touch_part(c, p, v ? 0 : p->nbytes, e);
    }
    pass.as_read = digested && (!d->of_stored || (p->payload == TNF_AT && p->flags == 0));
    tnf_status status = TNF_OK;
    if (digested && !pass.as_read && !by_reading)
        status = digest_range(&pass.digester, p->origin->source, p->offset, p->stored, e);
    if (status == TNF_OK)
        status = tnf_scan(p, take_bytes, &pass, e);
    if (!digested || by_reading)
        return status;
    if (status == TNF_OK)
        return compare_digest(p, &pass.digester, e);
    tnf_digest_end(&pass.digester, NULL);
    return status;
}

/* Sets the specification's name for such a fault, unless the format has set a rule. */
static void name_rule(const struct check *c, const tnf_part *p, tnf_error *e)
{
    const tnf_rule_names *names = c->file->format->rule_names;
    if (!names || e->rule)
        return;
    if (e->status == TNF_EDIGEST)
        e->rule = names->digest;
    else if (e->status == TNF_EFORMAT || e->status == TNF_ETRUNCATED)
        e->rule = !p ? names->data : p->payload == TNF_ENCODED ? names->encoding : NULL;
}

static tnf_status check_parts(struct check *c, size_t i, tnf_error *e)
{
    const tnf_object *o = &c->file->catalog.objects[i];
    tnf_values *v = o->layout == &tnf_layout_dense && c->values ? &c->values[i] : NULL;
    bool whole = true;
    for (uint16_t k = 0; k < o->nparts; k++) {
        const tnf_part *p = &o->parts[k];
        bool gone = c->file->options.salvage && p->flags & TNF_PART_UNREADABLE;
        if (p->origin && p->origin->missing)
            return TNF_OK; /* reported for the file */
        if (p->flags & TNF_PART_UNREADABLE && p->nbytes == 0 && p->origin &&
            p->origin->unreadable) {
            c->outcomes[i].checked++; /* no reader claims to read it; the format itself checks it */
            c->outcomes[i].undigested++;
            return TNF_OK;
        }
        if (p->flags & TNF_PART_UNREADABLE && p->payload == TNF_OPAQUE && p->stored == 0)
            return TNF_OK; /* it has a shape, but no bytes */
        tnf_status status = gone ? check_unreadable(&c->outcomes[i], p, e)
                                 : check_part(c, &c->outcomes[i], p, v, tnf_elements(o), e);
        if (status != TNF_OK)
            name_rule(c, p, e);
        TNF_TRY(status);
        whole = whole && !gone;
    }
    if (c->values && whole && o->layout != &tnf_layout_dense && tnf_layout_has_values(o->layout))
        c->outcomes[i].values_later = true;
    if (!o->layout->check_data || !whole)
        return TNF_OK;
    tnf_status status = o->layout->check_data(o, tnf_read_part, e);
    if (status != TNF_OK)
        name_rule(c, NULL, e);
    return status;
}

static bool keep_problem(struct check *c, size_t i, const tnf_error *problem)
{
    pthread_mutex_lock(&c->lock);
    tnf_error *kept = tnf_alloc(&c->file->alloc, sizeof *kept);
    pthread_mutex_unlock(&c->lock);
    if (kept)
        *kept = *problem;
    c->outcomes[i].problem = kept;
    return kept != NULL;
}

static tnf_status check_object(void *ctx, size_t task, tnf_error *e)
{
    struct check *c = ctx;
    size_t i = c->order ? c->order[task] : task;
    tnf_error error = { .offset = TNF_NO_OFFSET };
    if (c->some && !c->some->wanted(c->some->ctx, &c->file->catalog.objects[i]))
        return TNF_OK;
    tnf_status status = check_parts(c, i, &error);
    if (status == TNF_OK)
        return TNF_OK;
    if (!tnf_is_file_fault(status)) {
        *e = error;
        return status;
    }
    return keep_problem(c, i, &error) ? TNF_OK : tnf_no_memory("a problem", e);
}

/* ----------------------------------------------------------------- values */

static size_t position_of(const struct check *c, const tnf_object *o)
{
    return (size_t)(o - c->file->catalog.objects);
}

static bool is_later(void *ctx, const tnf_object *o)
{
    const struct outcome *out = &((struct check *)ctx)->outcomes[position_of(ctx, o)];
    return out->values_later && !out->problem;
}

static void on_stat(void *ctx, const tnf_stat *stat)
{
    struct check *c = ctx;
    if (stat->counts)
        c->counts[position_of(c, stat->object)] = *stat->counts;
}

static void on_problem(void *ctx, const tnf_object *o, const tnf_error *problem)
{
    struct check *c = ctx;
    c->out_of_memory = !keep_problem(c, position_of(c, o), problem) || c->out_of_memory;
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct check *c = ctx;
    (void)total;
    const tnf_progress *p = &c->progress;
    return !p->tell || p->tell(p->ctx, p->done + done, p->total);
}

/* For tensors that have no digest and are not encoded. */
static tnf_status take_values(struct check *c, tnf_error *e)
{
    tnf_stat_options how = { .size = sizeof how, .threads = c->options.threads, .ctx = c };
    for (size_t i = 0; i < c->file->catalog.n; i++) {
        const tnf_object *o = &c->file->catalog.objects[i];
        if (o->nparts > 0)
            c->counts[i] = tnf_values_counts(&c->values[i], o->parts[0].type);
    }
    how.wanted = is_later;
    how.tensor = on_stat;
    how.problem = on_problem;
    how.progress = on_progress;
    TNF_TRY(tnf_values_file(c->file, &how, true, e));
    return c->out_of_memory ? tnf_no_memory("a problem", e) : TNF_OK;
}

/* ------------------------------------------------------------------- tasks */

static tnf_status check_objects(struct check *c, tnf_arena *arena, tnf_error *e)
{
    size_t n = c->file->catalog.n;
    unsigned threads = c->progress.total < WORTH_THREAD || n < 2
                           ? 1
                           : tnf_pool_threads(c->options.threads);
    c->outcomes = tnf_arena_array(arena, n, sizeof *c->outcomes);
    if (c->options.values) {
        c->values = tnf_arena_array(arena, n, sizeof *c->values);
        c->counts = tnf_arena_array(arena, n, sizeof *c->counts);
    }
    if (!c->outcomes || (c->options.values && (!c->values || !c->counts)))
        return tnf_arena_fail(arena, "verifying", e);
    if (threads > 1)
        TNF_TRY(tnf_task_order(&c->order, &c->file->catalog, arena, e));
    TNF_TRY(tnf_pool_run(threads, n, check_object, c, e));
    return c->values ? take_values(c, e) : TNF_OK;
}

/* -------------------------------------------------------------- reporting */

static void tell_outcome(struct check *c, tnf_verify_result *result, const tnf_object *o,
                         tnf_str tensor, const tnf_error *e)
{
    result->problems++;
    if (c->options.problem)
        c->options.problem(c->options.ctx, &(tnf_problem) { .code = e->status,
                                                            .offset = e->offset,
                                                            .object = o,
                                                            .message = e->message,
                                                            .rule = e->rule,
                                                            .tensor = o ? o->name : tensor });
}

static void tell_outcomes(struct check *c, tnf_verify_result *result)
{
    for (size_t i = 0; c->outcomes && i < c->file->catalog.n; i++) {
        struct outcome *out = &c->outcomes[i];
        const tnf_object *o = &c->file->catalog.objects[i];
        result->checked += out->checked;
        result->undigested += out->undigested;
        if (out->problem)
            tell_outcome(c, result, o, o->name, out->problem);
        else if (c->counts && out->checked && o->layout == &tnf_layout_dense)
            c->options.values(c->options.ctx, o, &c->counts[i]);
        tnf_free(&c->file->alloc, out->problem, sizeof *out->problem);
    }
}

struct telling {
    struct check *c;
    tnf_verify_result *result;
};

static void tell_one(void *ctx, const tnf_error *problem, tnf_str tensor)
{
    const struct telling *t = ctx;
    tell_outcome(t->c, t->result, NULL, tensor, problem);
}

static void warn_one(void *ctx, const tnf_error *odd, tnf_str tensor)
{
    const tnf_verify_options *o = &((const struct telling *)ctx)->c->options;
    (void)tensor;
    if (o->warn)
        o->warn(o->ctx, &(tnf_warning) { .offset = odd->offset, .message = odd->message });
}

/* The state of reporting on a shard, with its name. */
struct telling_shard {
    struct telling *telling;
    const char *label;
};

static void tell_shard(void *ctx, const tnf_error *problem, tnf_str tensor)
{
    const struct telling_shard *t = ctx;
    tnf_error e = *problem;
    tnf_error_prefix(&e, t->label);
    tell_one(t->telling, &e, tensor);
}

/* Calls the shards' format to verify each of them. */
static tnf_status check_shards(struct telling *t, tnf_arena *arena, tnf_error *e)
{
    const tnf_file *file = t->c->file;
    for (const struct sibling *s = file->siblings; s && file->format->stands_for_shards;
         s = s->next) {
        struct telling_shard shard = { t, s->name };
        if (s->file && s->file->format->verify)
            TNF_TRY(s->file->format->verify(&s->file->reader, arena, tell_shard, &shard, e));
    }
    return TNF_OK;
}

static tnf_status step_remote(void *ctx, uint64_t n, tnf_error *e)
{
    struct check *c = ctx;
    return tnf_progress_add(&c->progress, &c->lock, n, e);
}

/* Checks a complete file of another machine, with progress of its own. */
static tnf_status check_object_of(struct telling *t, const tnf_file *file, const char *label,
                                  tnf_error *e)
{
    struct telling_shard shard = { t, label };
    tnf_error why = { .offset = TNF_NO_OFFSET };
    if (!file->source || !file->source->remote)
        return TNF_OK;
    t->c->progress.done = 0;
    t->c->progress.total = file->source->size;
    tnf_status status = tnf_remote_check(file->source, step_remote, t->c, &why);
    if (status == TNF_EDIGEST && label)
        tell_shard(&shard, &why, (tnf_str) { NULL, 0 });
    else if (status == TNF_EDIGEST)
        tell_one(t, &why, (tnf_str) { NULL, 0 });
    else if (status != TNF_OK && e)
        *e = why;
    return status == TNF_EDIGEST ? TNF_OK : status;
}

/* Compares the digests that servers provide, if there are tensors without a digest of their own. */
static tnf_status check_remote_objects(struct telling *t, tnf_error *e)
{
    const tnf_file *file = t->c->file;
    if (t->result->undigested == 0)
        return TNF_OK;
    TNF_TRY(check_object_of(t, file, NULL, e));
    for (const struct sibling *s = file->siblings; s; s = s->next)
        if (s->file)
            TNF_TRY(check_object_of(t, s->file, s->name, e));
    return TNF_OK;
}

/* Reports the faults that opening for salvage tolerated; for a shard, with its name. */
static void tell_losses(struct check *c, tnf_verify_result *result, const tnf_file *file)
{
    const char *label = file->origin.label;
    for (const struct loss *l = file->losses; l; l = l->next) {
        tnf_error e;
        if (l->implied)
            continue;
        (void)tnf_fail(&e, l->status, l->offset, "%s%s%s", label ? TNF_VISIBLE(label) : "",
                       label ? ": " : "", l->message);
        e.rule = l->rule;
        tell_outcome(c, result, NULL, l->name, &e);
    }
}

static void tell_all_losses(struct check *c, tnf_verify_result *result)
{
    tell_losses(c, result, c->file);
    for (const struct sibling *s = c->file->siblings; s; s = s->next)
        if (s->file)
            tell_losses(c, result, s->file);
}

/* Reports files that were missing when the model was opened. */
static void tell_missing(struct check *c, tnf_verify_result *result)
{
    for (const struct missing_file *m = c->file->missing; m; m = m->next) {
        tnf_error e = { .offset = TNF_NO_OFFSET };
        tnf_str name = { m->name.value.as.s, m->name.value.n };
        (void)tnf_fail(&e, TNF_ENOTFOUND, m->at, "the file %s is missing", TNF_QUOTED(name));
        tell_outcome(c, result, NULL, (tnf_str) { NULL, 0 }, &e);
    }
}

/* ------------------------------------------------------------------ whole */

/* For an index, the format of its shards has the notes; a build may be without that format. */
static void tell_notes(const struct check *c, const tnf_format *format)
{
    const tnf_format *of = format->stands_for_shards ? tnf_registry_find(format->family) : NULL;
    if (format->notes)
        format->notes(&c->file->reader, c->options.note, c->options.ctx);
    else if (of && of->shard_notes)
        of->shard_notes(&c->file->reader, c->options.note, c->options.ctx);
}

/* Checks whether the program would load the file, and the files that it names. */
static tnf_status check_program(struct telling *telling, const tnf_file *file, const char *program,
                                tnf_arena *arena, tnf_error *e)
{
    const tnf_format *format = file->format;
    TNF_TRY(format->loads(&file->reader, program, arena, tell_one, telling, e));
    for (const struct sibling *s = file->siblings; s; s = s->next) {
        struct telling_shard shard = { telling, s->name };
        if (s->file && s->file->format == format)
            TNF_TRY(format->loads(&s->file->reader, program, arena, tell_shard, &shard, e));
    }
    return TNF_OK;
}

/* Checks everything that concerns the file and not one of its tensors. */
static tnf_status check_whole(struct check *c, tnf_verify_result *result, tnf_arena *arena,
                              tnf_error *e)
{
    const tnf_format *format = c->file->format;
    struct telling telling = { c, result };
    const char *program = c->options.program;
    tnf_status status = TNF_OK;
    if (format->verify)
        status = format->verify(&c->file->reader, arena, tell_one, &telling, e);
    if (status == TNF_OK && format->rules & TNF_RULE_OVERLAP_WRONG)
        status = tnf_tell_overlaps(c->file, arena, tell_one, &telling, e);
    if (status == TNF_OK)
        status = check_shards(&telling, arena, e);
    if (status == TNF_OK)
        status = check_remote_objects(&telling, e);
    if (status == TNF_OK && program)
        status = check_program(&telling, c->file, program, arena, e);
    if (status == TNF_OK && c->options.note)
        tell_notes(c, format);
    if (status == TNF_OK)
        status = tnf_directory_surplus(c->file, arena, tell_one, warn_one, &telling, e);
    if (status == TNF_OK && c->options.canonical)
        status = format->canonical(&c->file->reader, arena, tell_one, &telling, e);
    return status;
}

static tnf_status check_file(struct check *c, tnf_verify_result *result, tnf_arena *arena,
                             tnf_error *e)
{
    const tnf_format *format = c->file->format;
    const char *program = c->options.program;
    if (program && (!format->loads || !tnf_list_has(format->programs, program)))
        return tnf_fail(
            e, TNF_EINVAL, TNF_NO_OFFSET,
            "Tenfold has no rules for the program '%s' and the format %s; known programs: %s",
            TNF_VISIBLE(program), format->name, format->loads ? format->programs : "none");
    if (c->options.canonical && !format->canonical)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the format %s has no canonical form, so there is nothing to check",
                        format->name);
    tnf_status status = check_objects(c, arena, e);
    if (status != TNF_OK)
        c->counts = NULL; /* some of them are incomplete */
    bool whole = !c->some || c->some->whole;
    if (whole)
        tell_all_losses(c, result);
    if (whole)
        tell_missing(c, result);
    tell_outcomes(c, result);
    return status == TNF_OK && whole ? check_whole(c, result, arena, e) : status;
}

tnf_status tnf_verify(tnf_verify_result *out, const tnf_file *file,
                      const tnf_verify_options *options, tnf_error *e)
{
    TNF_TRY(tnf_need(file, "file", e));
    return tnf_verify_some(out, file, options, NULL, e);
}

tnf_status tnf_verify_some(tnf_verify_result *out, const tnf_file *file,
                           const tnf_verify_options *options, const tnf_some *some, tnf_error *e)
{
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    TNF_TRY(tnf_result_begin(out, TNF_FIRST(tnf_verify_result), e));
    struct check c = { .file = file, .some = some, .lock = PTHREAD_MUTEX_INITIALIZER };
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_verify_options, &c.options, options, e));
    c.progress = (tnf_progress) { .tell = c.options.progress,
                                  .ctx = c.options.ctx,
                                  .total = file->info.payload };
    tnf_arena arena;
    tnf_arena_init(&arena, &file->alloc, UINT64_MAX);
    tnf_status status = check_file(&c, &result, &arena, e);
    tnf_result_fill(out, &result, sizeof result);
    tnf_arena_free(&arena);
    pthread_mutex_destroy(&c.lock);
    return status;
}
