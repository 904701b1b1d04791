/* SPDX-License-Identifier: MIT */
/* The conversion of open files to a file, as one function for all programs.
 *
 *   files ─ select, exclude, rename ─> builder ─ embeddings ─> builder ─ cast, plan, save ─> file
 *                                      or its tensors times their scales
 *                                      or into a model: then that, with the data of the builder
 *
 * All decisions are made here, or follow from the declarations of formats. So every command and
 * program gets the same file and the same losses for the same options.
 */
#include "base/error.h"
#include "base/sized.h"
#include "base/str.h"
#include "core/save/through.h"
#include "job/convert_through.h"
#include "job/into.h"
#include "job/scales.h"
#include "job/vectors.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct converting {
    tnf_convert_options options;
    tnf_save_options save;
    tnf_split_options split;
    const tnf_file *const *files;
    size_t n;
    const char *path;
    struct tnf_report_room *report;
    size_t offered; /* tensors of the files */
    tnf_builder *selected;
    tnf_scales_step scales;
    tnf_into_step into;
    tnf_vectors_step vectors;
    tnf_format_info target;
    tnf_error *clash; /* an output is one of the inputs */
    bool clashes;
    const tnf_through *through; /* NULL: write all files to their places */
};

/* ----------------------------------------------------------------- selection */

static bool matches_any(const char *const *patterns, size_t n, tnf_str name)
{
    for (size_t i = 0; i < n; i++)
        if (tnf_glob_match(patterns[i], name))
            return true;
    return false;
}

static bool is_wanted(void *ctx, tnf_str name)
{
    struct converting *c = ctx;
    const tnf_convert_options *o = &c->options;
    c->offered++;
    bool wanted = (o->nselect == 0 || matches_any(o->select, o->nselect, name)) &&
                  !matches_any(o->exclude, o->nexclude, name);
    c->report->report.tensors += wanted;
    return wanted;
}

static tnf_status rename_one(void *ctx, tnf_str *out, tnf_str name, tnf_error *e)
{
    struct converting *c = ctx;
    tnf_status status;
    TNF_CALL(status, e, c->options.rename, c->options.rename_ctx, out, name);
    TNF_TRY(status);
    TNF_TRY(tnf_need_str(*out, "rename", e));
    c->report->report.renamed += tnf_str_compare(*out, name) != 0;
    return TNF_OK;
}

static tnf_status select_tensors(struct converting *c, tnf_error *e)
{
    const tnf_convert_options *o = &c->options;
    tnf_merge_options how = TNF_MERGE_INIT;
    how.tensors = o->tensors;
    how.attrs = o->attrs;
    how.select = is_wanted;
    how.rename = o->rename ? rename_one : NULL;
    how.ctx = c;
    how.tensors_only = o->tensors_only || o->into;
    TNF_TRY(tnf_builder_new(&c->selected, NULL, e));
    TNF_TRY(tnf_builder_merge(c->selected, c->files, o->names, c->n, &how, e));
    if (c->offered > 0 && c->report->report.tensors == 0 && (o->nselect || o->nexclude))
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "no tensor matches the selection");
    return TNF_OK;
}

/* -------------------------------------------------------------------- target */

static tnf_status find_named(struct converting *c, const char *name, tnf_error *e)
{
    if (!tnf_format_named(&c->target, name))
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "unknown format '%s'", name);
    if (!(c->target.caps & TNF_CAN_WRITE))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%s can be read but not written; choose another format", c->target.name);
    return TNF_OK;
}

/* The file keeps its format. If it cannot be read now, tnf_append() reports the error, since that
 * function waits for other processes that are changing the file. */
static void find_own(struct converting *c)
{
    tnf_file *file;
    tnf_open_options how = TNF_OPEN_INIT;
    how.lenient = true; /* a file that another program left unfinished is completed */
    if (tnf_open(&file, c->path, &how, NULL) != TNF_OK)
        return;
    (void)tnf_format_named(&c->target, tnf_file_info(file)->format);
    tnf_close(file);
}

/* A copy of embeddings keeps the format of its file if the new name has no extension. */
static bool keeps_format(const struct converting *c)
{
    return c->options.step != TNF_EMB_KEEP && !c->save.format && c->n == 1 &&
           (!c->path || !strchr(tnf_path_end(c->path), '.'));
}

/* The tensors of the files, scaled if requested. */
static tnf_builder *tensors_of(const struct converting *c)
{
    return c->scales.made ? c->scales.made : c->selected;
}

/* The builder to save, before any change of embeddings. */
static tnf_builder *chosen_builder(const struct converting *c)
{
    return c->into.made ? c->into.made : tensors_of(c);
}

static tnf_status find_target(struct converting *c, tnf_error *e)
{
    tnf_status status = TNF_OK;
    const char *split = c->split.format ? c->split.format : c->save.format;
    if (c->options.mode == TNF_CONVERT_APPEND)
        find_own(c);
    else if (c->options.mode == TNF_CONVERT_SPLIT && !split && c->n == 0)
        status = tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                          "the format is missing: set options->format");
    else if (c->options.mode == TNF_CONVERT_SPLIT || keeps_format(c))
        status = find_named(c, split ? split : tnf_file_info(c->files[0])->format, e);
    else
        status = tnf_format_for_builder(&c->target, chosen_builder(c), c->path, &c->save, e);
    if (status == TNF_OK)
        c->report->report.format = c->target.name;
    return status;
}

/* ---------------------------------------------------------------------- plan */

static void tell_item(struct converting *c, const tnf_plan_item *item)
{
    tnf_report_add(c->report, item);
    if (c->save.plan)
        c->save.plan(c->save.ctx, item);
}

static void on_filling(void *ctx, const tnf_plan_item *item)
{
    tell_item(ctx, item);
}

static tnf_status fill_model(struct converting *c, tnf_error *e)
{
    const char *suffix = c->options.scales;
    if (suffix)
        TNF_TRY(tnf_scales_make(&c->scales, c->selected, suffix, on_filling, c, e));
    return c->options.into ? tnf_into_make(&c->into, tensors_of(c), &c->options, on_filling, c, e)
                           : TNF_OK;
}

/* If vectors were changed before saving, reports them as transformed, although saving calls them
 * native. */
static void on_plan(void *ctx, const tnf_plan_item *item)
{
    struct converting *c = ctx;
    const tnf_vectors_step *v = &c->vectors;
    bool changed = v->why && strcmp(item->kind, "tensor") == 0 && item->name.n == v->changed.n &&
                   memcmp(item->name.p, v->changed.p, v->changed.n) == 0;
    if (changed && !item->late && !item->note) {
        tnf_plan_item first = *item;
        first.fate = TNF_TRANSFORMED;
        first.reason = v->why;
        first.unasked = v->unasked;
        tell_item(c, &first);
    }
    if (!changed || item->late || item->note || item->fate != TNF_NATIVE)
        tell_item(c, item);
}

/* Passes on only late items, since the rest of the plan was reported already. */
static void on_late(void *ctx, const tnf_plan_item *item)
{
    if (item->late)
        tell_item(ctx, item);
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    const struct converting *c = ctx;
    return c->save.progress(c->save.ctx, done, total);
}

/* -------------------------------------------------------------------- saving */

static tnf_status check_own(const struct converting *c, const char *path, tnf_error *e)
{
    for (size_t i = 0; i < c->n; i++)
        if (tnf_file_reads(c->files[i], path))
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "%s is one of the input files, which would be lost",
                            path == c->path ? "the output" : path);
    return TNF_OK;
}

static void on_file(void *ctx, const tnf_split_file *f)
{
    struct converting *c = ctx;
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", c->path, f->name);
    if (!c->clashes && n > 0 && (size_t)n < sizeof path)
        c->clashes = check_own(c, path, c->clash) != TNF_OK;
    if (c->split.file)
        c->split.file(c->split.ctx, f);
}

static void on_stray(void *ctx, tnf_stray what, const char *path, const char *belongs)
{
    const struct converting *c = ctx;
    c->split.stray(c->split.ctx, what, path, belongs);
}

/* First makes a dry run, for the names of all files and to find errors; then writes the files. */
static tnf_status save_split(struct converting *c, const tnf_builder *b, tnf_save_options *each,
                             tnf_error *e)
{
    tnf_split_options how = c->split;
    tnf_error clash;
    how.size = sizeof how;
    how.format = c->target.name;
    how.save = each;
    how.file = on_file;
    how.stray = c->split.stray ? on_stray : NULL;
    how.ctx = c;
    c->clash = &clash;
    if (c->through)
        return tnf_split_through(b, c->path, c->through->number, c->through->sink,
                                 c->through->shards, c->through->n, &how, e);
    each->dry_run = true;
    TNF_TRY(tnf_split(b, c->path, &how, e));
    if (c->clashes)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s", clash.message);
    if (c->save.dry_run)
        return TNF_OK;
    each->dry_run = false;
    each->plan = on_late;
    how.file = NULL;
    return tnf_split(b, c->path, &how, e);
}

static tnf_status save_target(struct converting *c, tnf_error *e)
{
    const tnf_builder *b = c->vectors.made ? c->vectors.made : chosen_builder(c);
    tnf_save_options how = c->save;
    how.size = sizeof how;
    how.plan = on_plan;
    how.progress = c->save.progress ? on_progress : NULL;
    how.ctx = c;
    how.as_is = how.as_is || c->options.unnormalize; /* saving must not normalise again */
    if (c->options.mode == TNF_CONVERT_SPLIT)
        return save_split(c, b, &how, e);
    if (c->options.mode == TNF_CONVERT_APPEND)
        return tnf_append(b, c->path, &how, e);
    how.format = c->target.name;
    if (!c->path)
        return tnf_save_sink(b, c->options.sink, &how, e);
    if (c->n > 1 || c->options.keep_files || c->through)
        TNF_TRY(check_own(c, c->path, e));
    if (c->through)
        return tnf_save_through(b, c->path, c->through->sink, &how, e);
    return tnf_save(b, c->path, &how, e);
}

/* Training may take hours, so it is checked first that the file can be written. */
static tnf_status rehearse_save(const struct converting *c, tnf_error *e)
{
    tnf_save_options how = c->save;
    if (c->options.step != TNF_EMB_QUANTIZE || !c->path)
        return TNF_OK;
    if (!how.replace && !how.dry_run && access(c->path, F_OK) == 0)
        return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET, "the file already exists");
    how.format = c->target.name;
    how.allow_loss = how.dry_run = how.replace = true; /* the quantized tensors are unknown yet */
    how.loss = NULL;
    how.plan = NULL;
    how.progress = NULL;
    return tnf_save(chosen_builder(c), c->path, &how, e);
}

/* -------------------------------------------------------------------- convert */

static tnf_status set_attributes(const struct converting *c, tnf_error *e)
{
    tnf_builder *b = c->vectors.made ? c->vectors.made : chosen_builder(c);
    for (size_t i = 0; i < c->options.nset; i++) {
        const tnf_member *m = &c->options.set[i];
        TNF_TRY(tnf_need(m->key.p, "set", e));
        TNF_TRY(tnf_builder_set_n(b, NULL, m->key, &m->value, e));
    }
    return TNF_OK;
}

static tnf_status run_convert(struct converting *c, tnf_error *e)
{
    tnf_report *r = &c->report->report;
    TNF_TRY(tnf_vectors_check(&c->options, e));
    TNF_TRY(select_tensors(c, e));
    TNF_TRY(fill_model(c, e));
    r->step = TNF_STEP_TARGET;
    TNF_TRY(find_target(c, e));
    TNF_TRY(rehearse_save(c, e));
    r->step = TNF_STEP_EMBEDDINGS;
    TNF_TRY(tnf_vectors_make(&c->vectors, chosen_builder(c), c->files, c->n, &c->options,
                             &c->target, c->report, e));
    r->step = TNF_STEP_SAVE;
    TNF_TRY(set_attributes(c, e));
    TNF_TRY(save_target(c, e));
    return tnf_report_status(c->report, e);
}

static tnf_status need_patterns(const char *const *patterns, size_t n, const char *what,
                                tnf_error *e)
{
    TNF_TRY(tnf_need_array(patterns, n, what, e));
    for (size_t i = 0; i < n; i++)
        TNF_TRY(tnf_need(patterns[i], what, e));
    return TNF_OK;
}

/* Checks all that the options refer to, whether or not a step needs it. */
static tnf_status check_options(const tnf_convert_options *o, tnf_error *e)
{
    tnf_emb_options emb;
    tnf_quantize_options quantize;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_emb_options, &emb, o->emb, e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_quantize_options, &quantize, o->quantize, e));
    TNF_TRY(tnf_check_choice((unsigned)o->mode, TNF_CONVERT_SPLIT, "mode", e));
    TNF_TRY(tnf_check_choice((unsigned)o->tensors, TNF_CLASH_RENAME, "tensors", e));
    TNF_TRY(tnf_check_choice((unsigned)o->attrs, TNF_CLASH_RENAME, "attrs", e));
    TNF_TRY(need_patterns(o->select, o->nselect, "select", e));
    TNF_TRY(need_patterns(o->exclude, o->nexclude, "exclude", e));
    return tnf_need_array(o->set, o->nset, "set", e);
}

static tnf_status copy_options(struct converting *c, const tnf_convert_options *given, tnf_error *e)
{
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_convert_options, &c->options, given, e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_save_options, &c->save, c->options.save, e));
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_split_options, &c->split, c->options.split, e));
    TNF_TRY(check_options(&c->options, e));
    c->options.save = &c->save;
    bool fits = c->path ? !c->options.sink : c->options.sink && c->options.mode == TNF_CONVERT_NEW;
    return fits || c->save.dry_run ? TNF_OK
                                   : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                                              "the target is missing; give a path or a sink");
}

tnf_status tnf_convert(tnf_report **report, const tnf_file *const *files, size_t n,
                       const char *path, const tnf_convert_options *options, tnf_error *e)
{
    return tnf_convert_through(report, files, n, path, options, NULL, e);
}

tnf_status tnf_convert_path(tnf_report **report, const char *from, const tnf_open_options *how,
                            const char *path, const tnf_convert_options *options, tnf_error *e)
{
    tnf_file *file;
    *report = NULL;
    TNF_TRY(tnf_open(&file, from, how, e));
    tnf_status status = tnf_convert(report, (const tnf_file *const[]) { file }, 1, path, options,
                                    e);
    tnf_close(file);
    return status;
}

tnf_status tnf_convert_through(tnf_report **report, const tnf_file *const *files, size_t n,
                               const char *path, const tnf_convert_options *options,
                               const tnf_through *through, tnf_error *e)
{
    struct converting c = { .files = files, .n = n, .path = path, .target = TNF_FORMAT_INFO_INIT };
    c.through = through;
    *report = NULL;
    TNF_TRY(tnf_need_array(files, n, "files", e));
    for (size_t i = 0; i < n; i++)
        TNF_TRY(tnf_need(files[i], "files[i]", e));
    TNF_TRY(copy_options(&c, options, e));
    TNF_TRY(tnf_report_new(&c.report, c.options.all_items, e));
    *report = &c.report->report;
    tnf_status status = run_convert(&c, e);
    tnf_vectors_free(&c.vectors);
    tnf_into_free(&c.into);
    tnf_scales_free(&c.scales);
    tnf_builder_free(c.selected);
    return status;
}
