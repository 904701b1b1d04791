/* SPDX-License-Identifier: MIT */
/* Computes the layout of a conversion's output before it is written.
 *
 * The format's writer runs with a sink that takes no bytes. The writer announces each part of a
 * tensor to the sink, and does not read its bytes. It writes only headers and padding. If the
 * layout depends on the content (compressed, digested, text), the file is one piece, which cannot
 * be cut.
 *
 *   file       header │ a │ pad │ b │ c │ end
 *   part 0    [              ]                 a window begins with the first item of its part,
 *   part 1                    [               ]   the first one with the file
 */
#include "job/job.h"

#include <string.h>

struct laying {
    tnf_job *job;
    size_t out;
};

static tnf_status on_place(void *ctx, tnf_str tensor, const tnf_part *part, uint64_t at, bool cuts,
                           tnf_error *e)
{
    const struct laying *l = ctx;
    struct job_item unit = { .index = TNF_NO_INDEX, .out = l->out, .at = at, .atom = !cuts };
    TNF_TRY(tnf_job_copy(&unit.tensor.p, l->job, tensor.p, tensor.n, e));
    TNF_TRY(tnf_job_copy(&unit.role, l->job, part->role, strlen(part->role), e));
    unit.tensor.n = tensor.n;
    unit.bytes = part->nbytes;
    unit.cost = part->payload == TNF_ENCODED && !cuts ? part->stored : part->nbytes;
    unit.n = tnf_count_leaves(part);
    return tnf_job_unit(l->job, &unit, e);
}

/* ----------------------------------------------------------------- converting */

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    const tnf_job_how *how = ctx;
    return how->progress(how->ctx, done, total);
}

static void fill_options(const tnf_job *job, tnf_convert_options *how, tnf_save_options *save,
                         tnf_split_options *split)
{
    const tnf_job_options *o = &job->o;
    save->format = job->format ? job->format : o->format;
    save->options = o->options;
    save->noptions = o->noptions;
    save->dtype = o->dtype;
    save->allow_loss = o->allow_loss;
    save->replace = true; /* finish checks for existing files */
    how->save = save;
    how->select = o->select;
    how->nselect = o->nselect;
    how->exclude = o->exclude;
    how->nexclude = o->nexclude;
    how->keep_files = true;
    if (o->max_bytes) {
        how->mode = TNF_CONVERT_SPLIT;
        split->max_bytes = o->max_bytes;
        split->format = save->format;
        how->split = split;
    }
}

static tnf_status convert_through(tnf_job *job, const tnf_through *through,
                                  tnf_convert_options *how, tnf_report **report, tnf_error *e)
{
    const tnf_file **files = tnf_arena_array(&job->arena, job->o.ninputs, sizeof *files);
    const char **names = tnf_arena_array(&job->arena, job->o.ninputs, sizeof *names);
    if (!files || !names)
        return tnf_arena_fail(&job->arena, "the plan", e);
    for (size_t i = 0; i < job->o.ninputs; i++) {
        files[i] = job->inputs[i].file;
        names[i] = job->inputs[i].shown;
    }
    how->names = names;
    return tnf_convert_through(report, files, job->o.ninputs, job->o.out, how, through, e);
}

tnf_status tnf_job_convert(tnf_job *job, const tnf_through *through, const tnf_job_how *how,
                           tnf_report **report, tnf_error *e)
{
    tnf_convert_options options = TNF_CONVERT_INIT;
    tnf_save_options save = TNF_SAVE_INIT;
    tnf_split_options split = TNF_SPLIT_INIT;
    tnf_report *own = NULL;
    fill_options(job, &options, &save, &split);
    if (how && how->progress) {
        save.progress = on_progress;
        save.ctx = (void *)(uintptr_t)how;
    }
    tnf_status status = convert_through(job, through, &options, report ? report : &own, e);
    tnf_report_free(own);
    return status;
}

/* -------------------------------------------------------------------- files */

struct listing {
    tnf_job *job;
    uint64_t bytes[4096]; /* of the tensors of the first files, if they cannot be cut */
    size_t room;
    tnf_status status;
    tnf_error *e;
};

static void on_file(void *ctx, const tnf_split_file *f)
{
    struct listing *l = ctx;
    tnf_job *job = l->job;
    size_t n = strlen(job->o.out) + strlen(f->name) + 2;
    char *path = l->status == TNF_OK ? tnf_arena_alloc(&job->arena, n) : NULL;
    void *outs = path ? tnf_arena_grow(&job->arena, job->outs, job->nouts, &l->room,
                                       sizeof *job->outs, 16)
                      : NULL;
    if (l->status == TNF_OK && !outs)
        l->status = tnf_arena_fail(&job->arena, "the plan", l->e);
    if (!outs)
        return;
    memcpy(path, job->o.out, n - strlen(f->name) - 2);
    path[n - strlen(f->name) - 2] = '/';
    memcpy(path + n - strlen(f->name) - 1, f->name, strlen(f->name) + 1);
    job->outs = outs;
    if (f->index) {
        job->index = path;
        return;
    }
    if (job->nouts < sizeof l->bytes / sizeof *l->bytes)
        l->bytes[job->nouts] = f->bytes;
    job->outs[job->nouts++] = (struct job_out) { .path = path };
}

/* Lists the output files and their format, and checks that no data is lost. */
static tnf_status list_files(struct listing *l, tnf_error *e)
{
    tnf_job *job = l->job;
    tnf_convert_options how = TNF_CONVERT_INIT;
    tnf_save_options save = TNF_SAVE_INIT;
    tnf_split_options split = TNF_SPLIT_INIT;
    tnf_report *report = NULL;
    fill_options(job, &how, &save, &split);
    save.dry_run = true;
    save.replace = job->o.replace;
    split.file = on_file;
    split.ctx = l;
    tnf_status status = convert_through(job, NULL, &how, &report, e);
    if (status == TNF_OK)
        status = tnf_job_copy(&job->format, job, report->format, strlen(report->format), e);
    tnf_report_free(report);
    TNF_TRY(status);
    TNF_TRY(l->status);
    if (job->o.max_bytes)
        return TNF_OK;
    job->outs = tnf_arena_array(&job->arena, 1, sizeof *job->outs);
    if (!job->outs)
        return tnf_arena_fail(&job->arena, "the plan", e);
    job->outs->path = job->o.out;
    job->nouts = 1;
    l->bytes[0] = 0;
    for (size_t i = 0; i < job->o.ninputs; i++)
        l->bytes[0] += tnf_file_info(job->inputs[i].file)->size;
    return TNF_OK;
}

/* ------------------------------------------------------------------- layout */

static tnf_status lay_out_one(struct listing *l, size_t number, bool *laid, tnf_error *e)
{
    tnf_job *job = l->job;
    size_t had = job->nitems;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    struct laying laying = { job, number };
    struct window_sink w = { .job = job, .fd = -1, .place = on_place, .ctx = &laying };
    tnf_through through = { .number = number };
    TNF_TRY(tnf_window_open(&through.sink, &w, e));
    tnf_status status = tnf_job_convert(job, &through, NULL, NULL, &why);
    status = tnf_window_close(through.sink, &w, status, &why);
    *laid = !w.unlaid;
    if (status != TNF_OK && *laid) {
        if (e)
            *e = why;
        return status;
    }
    if (*laid) {
        job->outs[number].size = w.pos;
        return TNF_OK;
    }
    job->nitems = had;
    return TNF_OK;
}

/* Makes each file one piece. */
static tnf_status take_whole(struct listing *l, tnf_error *e)
{
    tnf_job *job = l->job;
    job->mode = "whole";
    job->nitems = 0;
    for (size_t i = 0; i < job->nouts; i++) {
        struct job_item unit = { .index = TNF_NO_INDEX, .whole = true, .atom = true, .role = "" };
        unit.out = i;
        unit.cost = i < sizeof l->bytes / sizeof *l->bytes ? l->bytes[i] : job->o.max_bytes;
        job->outs[i].size = 0;
        TNF_TRY(tnf_job_unit(job, &unit, e));
    }
    return TNF_OK;
}

tnf_status tnf_job_lay_out(tnf_job *job, tnf_error *e)
{
    struct listing *l = tnf_arena_alloc(&job->arena, sizeof *l);
    bool laid = true;
    if (!l)
        return tnf_arena_fail(&job->arena, "the plan", e);
    *l = (struct listing) { .job = job, .e = e };
    TNF_TRY(list_files(l, e));
    job->mode = job->o.max_bytes ? "files" : "range";
    for (size_t i = 0; i < job->nouts && laid; i++)
        TNF_TRY(lay_out_one(l, i, &laid, e));
    return laid ? TNF_OK : take_whole(l, e);
}

/* ------------------------------------------------------------------ windows */

/* The beginning of the window whose first item is i. */
static uint64_t window_start(const tnf_job *job, size_t i)
{
    bool first = i == 0 || job->items[i - 1].out != job->items[i].out;
    return first ? 0 : job->items[i].at;
}

static bool begins_window(const tnf_job *job, size_t i)
{
    return i == 0 || job->items[i - 1].out != job->items[i].out ||
           job->items[i - 1].part != job->items[i].part;
}

static bool has_items(const tnf_job *job, size_t out)
{
    size_t low = 0, high = job->nitems; /* they are in the order of the outputs */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (job->items[middle].out < out)
            low = middle + 1;
        else
            high = middle;
    }
    return low < job->nitems && job->items[low].out == out;
}

tnf_status tnf_job_windows(struct job_window **out, size_t *n, const tnf_job *job, uint64_t part,
                           tnf_arena *arena, tnf_error *e)
{
    size_t first, end;
    tnf_job_items(job, part, &first, &end);
    struct job_window *w = tnf_arena_array(arena, end - first + job->nouts + 1, sizeof *w);
    *n = 0;
    *out = w;
    if (!w)
        return tnf_arena_fail(arena, "the plan", e);
    for (size_t i = first; i < end; i++) {
        if (begins_window(job, i))
            w[(*n)++] = (struct job_window) { job->items[i].out, window_start(job, i), 0, i, 0 };
        w[*n - 1].nitems++;
    }
    for (size_t i = 0; i < *n; i++) {
        size_t next = w[i].item + w[i].nitems;
        bool last = next == job->nitems || job->items[next].out != w[i].out;
        w[i].end = last ? job->outs[w[i].out].size : job->items[next].at;
    }
    for (size_t i = 0; part == 0 && i < job->nouts; i++) /* outputs without a tensor */
        if (!has_items(job, i))
            w[(*n)++] = (struct job_window) { i, 0, job->outs[i].size, 0, 0 };
    return TNF_OK;
}
