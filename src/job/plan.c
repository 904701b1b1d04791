/* SPDX-License-Identifier: MIT */
/* Makes plans: lists the work in units, which cut.c cuts into parts.
 *
 * A plan does not depend on the clock, the machine or the number of cores.
 */
#include "base/hex.h"
#include "base/sized.h"
#include "core/look/diff_partial.h"
#include "core/look/stat_partial.h"
#include "job/job.h"
#include <tenfold/emb.h>

#include <stdlib.h>
#include <string.h>

const char *const tnf_job_names[TNF_JOB_KINDS] = { "hash", "verify", "convert",
                                                   "stat", "diff",   "similar" };

/* -------------------------------------------------------------------- memory */

tnf_status tnf_job_new(tnf_job **out, tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_job *job = tnf_alloc0(&a, sizeof *job);
    *out = job;
    if (!job)
        return tnf_no_memory("a plan", e);
    tnf_scratch_begin(&job->arena);
    tnf_text_begin(&job->text, UINT64_MAX);
    tnf_text_begin(&job->answer, UINT64_MAX);
    job->mode = "rows";
    return TNF_OK;
}

void tnf_job_free(tnf_job *job)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (!job)
        return;
    tnf_job_close(job);
    tnf_buf_free(&job->text);
    tnf_buf_free(&job->answer);
    tnf_arena_free(&job->arena);
    tnf_free(&a, job, sizeof *job);
}

tnf_status tnf_job_copy(const char **out, tnf_job *job, const char *text, size_t n, tnf_error *e)
{
    *out = tnf_arena_str(&job->arena, text, n);
    return *out ? TNF_OK : tnf_arena_fail(&job->arena, "the plan", e);
}

static tnf_status copy_text(tnf_job *job, const char **text, tnf_error *e)
{
    return *text ? tnf_job_copy(text, job, *text, strlen(*text), e) : TNF_OK;
}

static tnf_status copy_list(tnf_job *job, const char *const **list, size_t n, const char *name,
                            tnf_error *e)
{
    TNF_TRY(tnf_need_array(*list, n, name, e));
    const char **copy = tnf_arena_array(&job->arena, n + 1, sizeof *copy);
    if (!copy)
        return tnf_arena_fail(&job->arena, "the plan", e);
    for (size_t i = 0; i < n; i++) {
        TNF_TRY(tnf_need((*list)[i], name, e));
        copy[i] = (*list)[i];
        TNF_TRY(copy_text(job, &copy[i], e));
    }
    *list = copy;
    return TNF_OK;
}

static tnf_status copy_options(tnf_job *job, tnf_error *e)
{
    tnf_job_options *o = &job->o;
    tnf_option *options = tnf_arena_array(&job->arena, o->noptions + 1, sizeof *options);
    if (!options)
        return tnf_arena_fail(&job->arena, "the plan", e);
    TNF_TRY(tnf_need_array(o->options, o->noptions, "options", e));
    for (size_t i = 0; i < o->noptions; i++) {
        TNF_TRY(tnf_need(o->options[i].key, "options", e));
        TNF_TRY(tnf_need(o->options[i].value, "options", e));
        options[i] = o->options[i];
        TNF_TRY(copy_text(job, &options[i].key, e));
        TNF_TRY(copy_text(job, &options[i].value, e));
    }
    o->options = options;
    TNF_TRY(copy_list(job, &o->inputs, o->ninputs, "inputs", e));
    TNF_TRY(copy_list(job, &o->select, o->nselect, "select", e));
    TNF_TRY(copy_list(job, &o->exclude, o->nexclude, "exclude", e));
    TNF_TRY(copy_list(job, &o->queries, o->nqueries, "queries", e));
    TNF_TRY(copy_text(job, &o->read_format, e));
    TNF_TRY(copy_text(job, &o->out, e));
    TNF_TRY(copy_text(job, &o->format, e));
    return copy_text(job, &o->dtype, e);
}

/* --------------------------------------------------------------------- units */

tnf_status tnf_job_unit(tnf_job *job, const struct job_item *unit, tnf_error *e)
{
    struct job_item *items = tnf_arena_grow(&job->arena, job->items, job->nitems, &job->room,
                                            sizeof *items, 64);
    if (!items)
        return tnf_arena_fail(&job->arena, "the plan", e);
    job->items = items;
    items[job->nitems++] = *unit;
    return TNF_OK;
}

static uint64_t part_cost(const tnf_part *part)
{
    return part->payload == TNF_ENCODED ? part->stored : part->nbytes;
}

/* Copies the names of a unit, so that they outlive the input. */
static tnf_status name_unit(tnf_job *job, struct job_item *unit, tnf_str tensor, const char *role,
                            tnf_error *e)
{
    unit->tensor.n = tensor.n;
    TNF_TRY(tnf_job_copy(&unit->tensor.p, job, tensor.p, tensor.n, e));
    return tnf_job_copy(&unit->role, job, role, strlen(role), e);
}

static tnf_status hash_units(tnf_job *job, size_t in, size_t index, const tnf_object *o,
                             tnf_error *e)
{
    for (uint16_t k = 0; k < o->nparts; k++) {
        const tnf_part *part = &o->parts[k];
        struct job_item unit = { .in = in, .index = index, .k = k };
        TNF_TRY(name_unit(job, &unit, o->name, part->role, e));
        unit.bytes = part->nbytes;
        unit.n = tnf_count_leaves(part);
        unit.atom = !tnf_content_cuts(o, k);
        unit.cost = unit.atom ? part_cost(part) : part->nbytes;
        TNF_TRY(tnf_job_unit(job, &unit, e));
    }
    return TNF_OK;
}

/* The bytes of a part that verify reads: all of them for a digest or to decode them; else only the
 * last byte. A digest covers a complete part, so units of verify cannot be cut. */
static uint64_t verify_cost(const tnf_part *part)
{
    bool read = (part->digest && part->digest->algorithm) || part->payload != TNF_AT;
    return read ? part_cost(part) : part->nbytes > 0;
}

/* Adds a complete tensor as a unit. */
static tnf_status whole_unit(tnf_job *job, size_t in, size_t index, const tnf_object *o,
                             tnf_error *e)
{
    struct job_item unit = { .in = in, .index = index, .whole = true, .atom = true };
    TNF_TRY(name_unit(job, &unit, o->name, "", e));
    for (uint16_t k = 0; k < o->nparts; k++) {
        unit.bytes += o->parts[k].nbytes;
        unit.cost += job->kind == TNF_JOB_VERIFY ? verify_cost(&o->parts[k])
                                                 : part_cost(&o->parts[k]);
    }
    return tnf_job_unit(job, &unit, e);
}

/* Adds a unit of leaves if the statistics of the tensor can be merged from those of its leaves. If
 * the tensor is quantized, less than 4 MiB may be read for a leaf. */
static tnf_status stat_unit(tnf_job *job, size_t in, size_t index, const tnf_object *o,
                            tnf_error *e)
{
    uint64_t leaves;
    TNF_TRY(tnf_stat_cuts(&leaves, o, e));
    TNF_TRY(whole_unit(job, in, index, o, e));
    struct job_item *unit = &job->items[job->nitems - 1];
    if (leaves < 2 || unit->cost < leaves)
        return TNF_OK;
    unit->whole = unit->atom = false;
    unit->n = leaves;
    unit->step = unit->cost / leaves;
    if (unit->cost / TNF_LEAF_BYTES + (unit->cost % TNF_LEAF_BYTES != 0) == leaves)
        unit->step = TNF_LEAF_BYTES;
    return TNF_OK;
}

/* Adds a unit of leaves if the differences of two tensors can be merged from those of their
 * leaves. */
static tnf_status diff_unit(tnf_job *job, size_t in, size_t index, const tnf_object *o,
                            tnf_error *e)
{
    const tnf_object *b = in == 0 ? tnf_find_n(job->inputs[1].file, o->name.p, o->name.n) : NULL;
    uint64_t leaves = b ? tnf_diff_cuts(o, b) : 0;
    TNF_TRY(whole_unit(job, in, index, o, e));
    if (leaves < 2 || tnf_find_n(job->inputs[0].file, o->name.p, o->name.n) != o)
        return TNF_OK;
    struct job_item *unit = &job->items[job->nitems - 1];
    unit->whole = unit->atom = false;
    unit->n = leaves;
    return TNF_OK;
}

static tnf_status tensor_unit(tnf_job *job, size_t in, size_t index, const tnf_object *o,
                              tnf_error *e)
{
    return job->kind == TNF_JOB_HASH   ? hash_units(job, in, index, o, e)
           : job->kind == TNF_JOB_STAT ? stat_unit(job, in, index, o, e)
           : job->kind == TNF_JOB_DIFF ? diff_unit(job, in, index, o, e)
                                       : whole_unit(job, in, index, o, e);
}

static const tnf_object *unit_object(const tnf_job *job, const struct job_item *unit)
{
    return tnf_at(job->inputs[unit->in].file, unit->index);
}

static const char *shard_of(const tnf_part *part)
{
    return part->origin && part->origin->label ? part->origin->label : "";
}

struct placed {
    struct job_item item;
    const char *shard;
    uint64_t offset;
};

static int by_place(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->item.in != y->item.in)
        return x->item.in < y->item.in ? -1 : 1;
    int c = strcmp(x->shard, y->shard);
    if (c)
        return c;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->item.index != y->item.index)
        return x->item.index < y->item.index ? -1 : 1;
    return x->item.k < y->item.k ? -1 : x->item.k > y->item.k;
}

/* Sorts units by file and position, so that a part reads few files, each from front to end. */
static tnf_status sort_units(tnf_job *job, tnf_error *e)
{
    struct placed *placed = tnf_arena_array(&job->arena, job->nitems + 1, sizeof *placed);
    if (!placed)
        return tnf_arena_fail(&job->arena, "the plan", e);
    for (size_t i = 0; i < job->nitems; i++) {
        const struct job_item *unit = &job->items[i];
        const tnf_object *o = unit_object(job, unit);
        const tnf_part *part = unit->k < o->nparts ? &o->parts[unit->k] : NULL;
        placed[i] = (struct placed) { .item = *unit, .shard = part ? shard_of(part) : "" };
        placed[i].offset = part && part->payload <= TNF_ENCODED ? part->offset : 0;
    }
    qsort(placed, job->nitems, sizeof *placed, by_place);
    for (size_t i = 0; i < job->nitems; i++)
        job->items[i] = placed[i].item;
    return TNF_OK;
}

static tnf_status add_tensors(tnf_job *job, tnf_error *e)
{
    for (size_t in = 0; in < job->o.ninputs; in++) {
        const tnf_file *file = job->inputs[in].file;
        for (size_t i = 0; i < tnf_file_info(file)->objects; i++) {
            const tnf_object *o = tnf_at(file, i);
            bool again = job->kind == TNF_JOB_DIFF && in == 1 &&
                         tnf_find_n(job->inputs[0].file, o->name.p, o->name.n);
            if (again) /* compared together with the tensor of the first input */
                continue;
            TNF_TRY(tensor_unit(job, in, i, o, e));
        }
    }
    return sort_units(job, e);
}

/* Adds the rows of words, which can be cut anywhere. */
static tnf_status add_rows(tnf_job *job, tnf_error *e)
{
    tnf_emb *emb;
    const tnf_file *file = job->inputs[0].file;
    TNF_TRY(tnf_emb_open(&emb, file, NULL, e));
    const tnf_emb_info *info = tnf_emb_describe(emb);
    const tnf_object *matrix = info->embeddings;
    struct job_item unit = { .n = info->words, .bytes = info->words, .cost = info->words };
    unit.index = (size_t)(tnf_find_n(file, matrix->name.p, matrix->name.n) - tnf_at(file, 0));
    tnf_status status = name_unit(job, &unit, matrix->name, "", e);
    tnf_emb_close(emb);
    return status == TNF_OK ? tnf_job_unit(job, &unit, e) : status;
}

/* ---------------------------------------------------------------------- plan */

static void describe_job(tnf_job *job)
{
    tnf_job_info *info = &job->info;
    *info = (tnf_job_info) { .job = tnf_job_names[job->kind], .id = job->id };
    info->parts = job->o.parts;
    info->items = job->nitems;
    info->mode = job->mode;
    info->format = job->format;
    info->out = job->o.out;
    uint64_t sum = 0, part = 0, seen = 0;
    info->smallest_part = UINT64_MAX;
    for (size_t i = 0; i <= job->nitems; i++) {
        if (i == job->nitems || job->items[i].part != part) {
            info->largest_part = sum > info->largest_part ? sum : info->largest_part;
            info->smallest_part = sum < info->smallest_part ? sum : info->smallest_part;
            seen++;
            sum = 0;
        }
        if (i == job->nitems)
            break;
        part = job->items[i].part;
        sum += job->items[i].cost;
        info->bytes += job->items[i].cost;
        if (job->items[i].atom && job->items[i].cost > info->largest_atom)
            info->largest_atom = job->items[i].cost;
    }
    if (seen < job->o.parts)
        info->smallest_part = 0;
}

tnf_status tnf_job_ready(tnf_job *job, tnf_error *e)
{
    tnf_digester d;
    uint8_t hash[TNF_HASH_BYTES];
    job->text.n = 0;
    tnf_job_put(&job->text, job, true);
    TNF_TRY(tnf_buf_status(&job->text, "the plan", e));
    TNF_TRY(tnf_content_begin(&d, "", e));
    tnf_digest_update(&d, job->text.p, job->text.n);
    tnf_digest_end(&d, hash);
    *tnf_hex_put(job->id, hash, sizeof hash) = 0;
    job->text.n = 0;
    tnf_job_put(&job->text, job, false);
    tnf_text_end(&job->text);
    describe_job(job);
    return tnf_buf_status(&job->text, "the plan", e);
}

static tnf_status check_convert(const tnf_job_options *o, tnf_error *e)
{
    if (!o->out)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the output is missing: set `out` for convert");
    if (strstr(o->out, "://") && (strncmp(o->out, "s3://", 5) != 0 || o->max_bytes))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the only remote output that can be written in parts is a single s3 "
                        "object");
    if (o->max_bytes && !o->format)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the format is missing: set `format` for several files");
    return TNF_OK;
}

static tnf_status check_options(tnf_job *job, tnf_error *e)
{
    const tnf_job_options *o = &job->o;
    job->kind = TNF_JOB_KINDS;
    for (unsigned i = 0; i < TNF_JOB_KINDS; i++)
        if (o->job && strcmp(o->job, tnf_job_names[i]) == 0)
            job->kind = (tnf_job_kind)i;
    if (job->kind == TNF_JOB_KINDS)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the job must be hash, verify, convert, stat, diff or similar, not %s",
                        o->job ? TNF_QUOTED(((tnf_str) { o->job, strlen(o->job) })) : "NULL");
    if (o->parts == 0 || o->parts > TNF_PARTS_MAX)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a plan must have 1 to %u parts",
                        TNF_PARTS_MAX);
    size_t inputs = job->kind == TNF_JOB_DIFF ? 2 : job->kind == TNF_JOB_SIMILAR ? 1 : 0;
    if (o->ninputs == 0 || (inputs && o->ninputs != inputs))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s takes %s", tnf_job_names[job->kind],
                        inputs == 2   ? "two inputs"
                        : inputs == 1 ? "one input"
                                      : "at least one input");
    if (job->kind == TNF_JOB_SIMILAR && o->nqueries == 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the words are missing: set `queries` for similar");
    job->o.k = job->kind == TNF_JOB_SIMILAR && o->k == 0 ? 10 : o->k;
    return job->kind == TNF_JOB_CONVERT ? check_convert(o, e) : TNF_OK;
}

static tnf_status make_plan(tnf_job *job, tnf_error *e)
{
    static const tnf_job_how any = TNF_JOB_HOW_INIT;
    TNF_TRY(check_options(job, e));
    TNF_TRY(copy_options(job, e));
    job->o.job = tnf_job_names[job->kind];
    job->inputs = tnf_arena_array(&job->arena, job->o.ninputs, sizeof *job->inputs);
    if (!job->inputs)
        return tnf_arena_fail(&job->arena, "the plan", e);
    for (size_t i = 0; i < job->o.ninputs; i++)
        job->inputs[i].own.name = job->o.inputs[i];
    TNF_TRY(tnf_job_name(job, e));
    TNF_TRY(tnf_job_open(job, false, &any, e));
    if (job->kind == TNF_JOB_CONVERT)
        TNF_TRY(tnf_job_lay_out(job, e));
    else if (job->kind == TNF_JOB_SIMILAR)
        TNF_TRY(add_rows(job, e));
    else
        TNF_TRY(add_tensors(job, e));
    TNF_TRY(tnf_job_cut(job, e));
    if (tnf_job_is_remote(job))
        TNF_TRY(tnf_s3_check(job, e));
    tnf_job_close(job); /* workers open the inputs again, and compare them with the plan */
    return tnf_job_ready(job, e);
}

tnf_status tnf_job_plan(tnf_job **out, const tnf_job_options *options, tnf_error *e)
{
    tnf_job *job;
    *out = NULL;
    TNF_TRY(tnf_need(options, "options", e));
    TNF_TRY(tnf_job_new(&job, e));
    tnf_status status = TNF_TAKE_OPTIONS(tnf_job_options, &job->o, options, e);
    if (status == TNF_OK)
        status = make_plan(job, e);
    if (status == TNF_OK)
        *out = job;
    else
        tnf_job_free(job);
    return status;
}

tnf_str tnf_job_text(const tnf_job *job)
{
    return job ? (tnf_str) { (const char *)job->text.p, job->text.n } : (tnf_str) { NULL, 0 };
}

const tnf_job_info *tnf_job_describe(const tnf_job *job)
{
    return job ? &job->info : NULL;
}
