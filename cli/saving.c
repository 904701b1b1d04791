/* SPDX-License-Identifier: MIT */
/* Helpers shared by the commands that save. */
#include "saving.h"
#include "emb.h"
#include "stop.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ----------------------------------------------------------------- progress */

/* Is the input shorter than when it was opened? */
static bool is_cut(const input *in)
{
    struct stat st;
    return strcmp(in->path, "-") != 0 && stat(in->path, &st) == 0 && S_ISREG(st.st_mode) &&
           in->info->shards == 0 && (uint64_t)st.st_size < in->bytes;
}

bool saving_progress(void *ctx, uint64_t done, uint64_t total)
{
    saving *s = ctx;
    progress_step(&s->progress, done, total);
    for (size_t i = 0; i < s->n && !s->cut; i++)
        s->cut = is_cut(&s->inputs[i]) ? &s->inputs[i] : NULL;
    return !s->cut && !stop_asked();
}

static void on_plan(void *ctx, const tnf_plan_item *item)
{
    (void)ctx;
    plan_line(stderr, item);
}

/* ------------------------------------------------------------------ messages */

static bool is_pipe(const saving *s)
{
    return !strcmp(s->out, "-");
}

int saving_exists(const char *out)
{
    file_message(out, "", TNF_NO_OFFSET, "already exists; use --force to replace it");
    return EXIT_IO;
}

/* Two tensors or attributes of the inputs have the same name. */
static int report_clash(const saving *s)
{
    const char *what = s->error.message;
    bool tensor = strncmp(what, "the tensor", 10) == 0, both = s->list && s->n > 0;
    if (!both) {
        file_message(s->n ? s->inputs->name : s->out, "", TNF_NO_OFFSET, what);
        return EXIT_LOSSY;
    }
    usage_error("%s: %s; %s", s->cli->command, what,
                tensor ? "choose a rule with --duplicates" : "choose a rule with --attrs");
    return EXIT_LOSSY;
}

/* The target, or the name of one of its tensors or attributes, already exists. */
static int report_exists(const saving *s, const char *out)
{
    if (s->report && s->report->step == TNF_STEP_SELECT)
        return report_clash(s);
    if (s->how.mode == TNF_CONVERT_NEW)
        return saving_exists(out);
    if (s->how.mode == TNF_CONVERT_APPEND) { /* a name that the file has already */
        file_error(out, &s->error);
        return EXIT_LOSSY;
    }
    tnf_error more = s->error;
    snprintf(more.message, sizeof more.message, "%.200s; use --force to replace it",
             s->error.message);
    return file_error(out, &more);
}

/* Errors of embeddings, and damage that is found while bytes are copied, concern the input. */
static int report_fault(const saving *s, const char *out)
{
    tnf_status status = s->status;
    bool bad = s->how.mode != TNF_CONVERT_APPEND && /* then the output may be the bad file */
               (status == TNF_EFORMAT || status == TNF_ETRUNCATED || status == TNF_EDIGEST);
    int step = s->report ? (int)s->report->step : -1;
    bool vectors = step == TNF_STEP_EMBEDDINGS || step == TNF_STEP_VECTORS;
    if (s->n != 1 || (!bad && !vectors))
        return file_error(out, &s->error);
    int code = file_error(s->inputs->name, &s->error);
    if (!vectors || status != TNF_ENOTFOUND)
        return code;
    if (s->how.emb && emb_misnamed(s->inputs->file, s->how.emb))
        return EXIT_USAGE;
    return step == TNF_STEP_VECTORS ? EXIT_DIFFERS : EXIT_BAD;
}

/* Lists "-t NAME" for each format with the extension, only the newest of a family. */
static size_t put_choices(FILE *to, const char *extension)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    size_t n = 0;
    const char *last = "";
    for (size_t i = 0; tnf_format_at(&f, i); i++) {
        bool has = false;
        for (const char *p = f.extensions; p && *p && !has; p += strspn(p, " ")) {
            size_t here = strcspn(p, " ");
            has = here == strlen(extension) && !strncasecmp(p, extension, here);
            p += here;
        }
        if (!has || !(f.caps & TNF_CAN_WRITE) || !strcmp(last, f.family))
            continue;
        fprintf(to, "%s-t %s", n++ ? ", " : "; choose the format: ", f.name);
        last = f.family;
    }
    return n;
}

/* The format of OUT is unknown: lists the options that choose one, unless all formats would do. */
static int report_target(const saving *s, const char *out)
{
    size_t length;
    char *text = NULL;
    FILE *to = open_memstream(&text, &length);
    if (!to)
        return report_fault(s, out);
    fputs(s->error.message, to);
    const char *slash = strrchr(out, '/'), *dot = strrchr(slash ? slash : out, '.');
    if (!dot || put_choices(to, dot + 1) == 0)
        fputs("; choose the format with -t ('tenfold formats' lists them)", to);
    fclose(to);
    file_message(out, "", TNF_NO_OFFSET, text);
    free(text);
    return EXIT_USAGE;
}

static int report_failure(const saving *s)
{
    const char *out = is_pipe(s) ? "standard output" : s->out;
    bool patterns = s->how.nselect || s->how.nexclude;
    if (s->status == TNF_EUNSYNCED)
        return file_error(out, &s->error);
    if (s->status == TNF_ELOSSY)
        return loss_error(out, &s->error);
    if (s->cut) {
        file_message(s->cut->name, "", TNF_NO_OFFSET, "truncated while it was being read");
        return EXIT_IO;
    }
    if (s->status == TNF_ENOTFOUND && patterns && s->report && s->report->tensors == 0)
        return nothing_selected(s->n == 1 ? s->inputs->name : "all files", s->how.nselect,
                                s->how.nexclude);
    if (s->status == TNF_ENOTFOUND && s->how.scales && s->report &&
        s->report->step == TNF_STEP_SELECT) {
        file_error(s->inputs->name, &s->error);
        return EXIT_USAGE;
    }
    if (s->status == TNF_EINVAL && s->report && s->report->step == TNF_STEP_TARGET &&
        !s->options->to)
        return report_target(s, out);
    return s->status == TNF_EEXISTS ? report_exists(s, out) : report_fault(s, out);
}

/* ------------------------------------------------------------------- the plan */

static void show_plan(const saving *s, char *const *paths)
{
    bool planned = s->status == TNF_OK || s->status == TNF_ELOSSY;
    if (s->options->dry_run && planned && !s->quiet_plan) {
        if (s->options->json)
            plan_json(s->report, paths, s->n, s->list, s->out);
        else
            plan_text(s->report, s->cli);
        flush_out();
    } else if (s->status == TNF_ELOSSY && !s->cli->verbose) {
        plan_refused(s->report);
    }
    if (was_done(s->status) && !s->options->dry_run && !s->cli->verbose && !s->cli->quiet)
        plan_notes(s->report, s->n == 1 ? s->inputs->name : s->out);
}

/* ---------------------------------------------------------------------- running */

const char *saving_format(const char *name)
{
    char path[64];
    tnf_error error;
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    if (tnf_format_named(&f, name))
        return f.name;
    snprintf(path, sizeof path, "x.%.40s", name + (*name == '.'));
    return tnf_format_for_path(&f, path, &error) == TNF_OK ? f.name : NULL;
}

void saving_fill(tnf_save_options *how, const saving_options *o)
{
    how->format = o->to ? saving_format(o->to) : NULL;
    how->replace = o->force;
    how->no_sync = o->no_sync;
    how->allow_loss = o->allow_loss.given;
    how->loss = o->allow_loss.value;
    how->dry_run = o->dry_run;
    how->as_is = how->as_is || o->as_is;
    how->dtype = o->dtype;
    how->order = o->order;
}

/* Sets which tensors to save, and their names; returns an exit code. */
static int choose_tensors(saving *s)
{
    const choosing *c = s->choosing;
    if (!c)
        return EXIT_DONE;
    s->how.select = c->select.items;
    s->how.nselect = c->select.n;
    s->how.exclude = c->exclude.items;
    s->how.nexclude = c->exclude.n;
    int code = renaming_open(&s->names, c->map, &c->rename);
    s->how.rename = s->names ? renaming_step : NULL;
    s->how.rename_ctx = s->names;
    return code;
}

static tnf_status convert_to(saving *s, const tnf_file *const *files)
{
    const char *path = is_pipe(s) ? NULL : s->out;
    stop_state before;
    if (is_pipe(s)) {
        flush_out();
        tnf_status status = tnf_sink_fd(&s->how.sink, STDOUT_FILENO, &s->error);
        if (status != TNF_OK)
            return status;
    }
    if (path)
        stop_catch(&before);
    tnf_status status = tnf_convert(&s->report, files, s->n, path, &s->how, &s->error);
    progress_end(&s->progress);
    if (path)
        stop_release(&before, status == TNF_ECANCELLED);
    tnf_sink_close(s->how.sink);
    return status;
}

/* Fills in the lists of inputs and converts; everything else is set. */
static int convert_all(saving *s, const tnf_file **files, const char **names, char **paths)
{
    for (size_t i = 0; i < s->n; i++) {
        files[i] = s->inputs[i].file;
        names[i] = s->inputs[i].name;
        paths[i] = (char *)(uintptr_t)s->inputs[i].path;
    }
    s->how.names = names;
    int code = EXIT_DONE;
    if (s->names)
        code = renaming_check(s->names, files, s->n,
                              &(renaming_choice) { &s->choosing->select, &s->choosing->exclude },
                              &s->renamed);
    if (code != EXIT_DONE)
        return code;
    progress_begin(&s->progress, s->cli);
    s->status = convert_to(s, files);
    if (s->report)
        show_plan(s, paths);
    return s->status == TNF_OK ? EXIT_DONE : report_failure(s);
}

int saving_run(saving *s)
{
    format_options writer;
    const saving_options *o = s->options;
    if (!format_options_parse(&writer, &o->writer, "--option") ||
        !format_options_add(&writer, "reserve", o->reserve))
        return EXIT_USAGE;
    s->how.size = sizeof s->how;
    s->save.size = sizeof s->save;
    s->how.save = &s->save;
    s->how.all_items = o->dry_run;
    saving_fill(&s->save, o);
    s->save.options = writer.items;
    s->save.noptions = writer.n;
    s->save.plan = s->cli->verbose && (!o->dry_run || s->quiet_plan) ? on_plan : NULL;
    s->save.progress = saving_progress;
    s->save.ctx = s;
    s->remote = (tnf_url_options) { .size = sizeof s->remote };
    s->remote.trace = s->cli->trace ? input_trace : NULL;
    s->save.remote = &s->remote;
    const tnf_file **files = calloc(s->n + 1, sizeof *files);
    const char **names = calloc(s->n + 1, sizeof *names);
    char **paths = calloc(s->n + 1, sizeof *paths);
    bool room = files && names && paths;
    int code = room ? choose_tensors(s) : memory_error();
    if (room && code == EXIT_DONE)
        code = convert_all(s, files, names, paths);
    if (code == EXIT_DONE || code == EXIT_UNSYNCED)
        renaming_notes(s->names, s->cli, &s->renamed);
    free((void *)(uintptr_t)files);
    free((void *)(uintptr_t)names);
    free(paths);
    format_options_free(&writer);
    return code;
}

void saving_free(saving *s)
{
    tnf_report_free(s->report);
    renaming_free(s->names);
    s->report = NULL;
    s->names = NULL;
}

int saving_open(input *inputs, size_t *n, const cli_state *cli, const input_options *options,
                char *const *paths, size_t npaths)
{
    bool stdin_taken = false;
    for (size_t i = 0; i < npaths; i++) {
        if (!strcmp(paths[i], "-") && stdin_taken)
            return usage_error("%s: standard input can be read only once", cli->command);
        stdin_taken = stdin_taken || !strcmp(paths[i], "-");
        int code = input_open(&inputs[*n], cli, options, paths[i]);
        if (code != EXIT_DONE)
            return code;
        ++*n;
    }
    return EXIT_DONE;
}

/* ----------------------------------------------------------------- options */

/* --allow-loss=KIND,KIND: an unknown kind is an error, since it would silently allow nothing. */
static bool kinds_known(const char *who, const char *kinds)
{
    for (const char *p = kinds; p; p = *p ? p + 1 : NULL) {
        size_t n = strcspn(p, ",");
        if (opt_position(LOSS_KINDS, p, n) < 0) {
            usage_error("%s: --allow-loss takes one or more of " LOSS_KINDS
                        ", separated by commas, not '%s'",
                        who, kinds);
            return false;
        }
        p += n;
    }
    return true;
}

static bool target_known(const char *to, tnf_format_info *f)
{
    char path[64];
    tnf_error error;
    if (saving_format(to))
        return tnf_format_named(f, saving_format(to));
    snprintf(path, sizeof path, "x.%.40s", to);
    if (tnf_format_for_path(f, path, &error) != TNF_OK && *error.message == '\'') /* several */
        return usage_error("-t %s: %s", to, error.message), false;
    return known_format(to, f);
}

int saving_check(const cli_state *cli, const saving_options *o, const char *out, bool keeps_format)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    const char *who = cli->command;
    if (!kinds_known(who, o->allow_loss.value))
        return EXIT_USAGE;
    const tnf_type *type = o->dtype ? tnf_type_spelled(o->dtype) : NULL;
    const char *dtype = type ? type->id : o->dtype;
    if (dtype && opt_position(CASTS, dtype, strlen(dtype)) < 0)
        return usage_error("%s: --dtype takes one of " CASTS ", not '%s'", who, o->dtype);
    if (o->order && strcmp(o->order, "C") != 0 && strcmp(o->order, "F") != 0)
        return usage_error("%s: --order takes C or F, not '%s'", who, o->order);
    if (o->to && !target_known(o->to, &f))
        return EXIT_USAGE;
    if (o->to && !(f.caps & TNF_CAN_WRITE))
        return usage_error("%s: %s can be read but not written", who, f.name);
    if (!out || strcmp(out, "-") != 0)
        return EXIT_DONE;
    if (!o->to && !keeps_format)
        return usage_error("%s: standard output has no extension; choose the format with -t", who);
    if (isatty(STDOUT_FILENO) && !o->dry_run && !o->force)
        return usage_error("%s: a tensor file is not written to a terminal; redirect it to a file "
                           "or a pipe",
                           who);
    return EXIT_DONE;
}

int saving_check_plan(const cli_state *cli, const saving_options *o, const char *out,
                      bool keeps_format)
{
    if (o->json && !o->dry_run)
        return usage_error("%s: --json needs --dry-run, since it prints the plan", cli->command);
    return saving_check(cli, o, out, keeps_format);
}
