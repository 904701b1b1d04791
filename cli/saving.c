/* SPDX-License-Identifier: MIT */
/* What commands that save share. */
#include "saving.h"
#include "stop.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t size_of(const input *in)
{
    struct stat st;
    bool is = strcmp(in->path, "-") != 0 && stat(in->path, &st) == 0 && S_ISREG(st.st_mode);
    return is ? (uint64_t)st.st_size : UINT64_MAX;
}

void saving_watch(saving *s, const input *in)
{
    uint64_t now = size_of(in);
    s->watched = in;
    s->size = now == UINT64_MAX ? 0 : now;
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    saving *s = ctx;
    progress_step(&s->progress, done, total);
    s->cut = s->cut || (s->watched && size_of(s->watched) < s->size);
    return !s->cut && !stop_asked();
}

static void on_plan(void *ctx, const tnf_plan_item *item)
{
    plan_item(&((saving *)ctx)->plan, item);
}

void saving_listen(saving *s, tnf_save_options *how)
{
    how->plan = on_plan;
    how->progress = on_progress;
    how->ctx = s;
}

void saving_fill(tnf_save_options *how, const saving_options *o)
{
    how->format = o->to;
    how->replace = o->force;
    how->no_sync = o->no_sync;
    how->allow_loss = o->allow_loss.given;
    how->loss = o->allow_loss.value;
    how->dry_run = o->dry_run;
    how->as_is = o->as_is;
}

plan_style saving_style(const cli_state *cli, const saving_options *o)
{
    if (o->dry_run)
        return o->json ? PLAN_JSON : PLAN_TEXT;
    return cli->verbose ? PLAN_VERBOSE : PLAN_KEEP;
}

static tnf_status to_stdout(const saving_job *j, const tnf_save_options *how, tnf_error *error)
{
    tnf_sink *sink;
    flush_out();
    tnf_status status = tnf_sink_fd(&sink, STDOUT_FILENO, error);
    if (status != TNF_OK)
        return status;
    status = tnf_save_sink(j->builder, sink, how, error);
    tnf_sink_close(sink);
    return status;
}

static tnf_status to_file(saving *s, const saving_job *j, const tnf_save_options *how,
                          tnf_error *error)
{
    stop_state before;
    stop_catch(&before);
    tnf_status status = j->append ? tnf_append(j->builder, j->out, how, error)
                                  : tnf_save(j->builder, j->out, how, error);
    progress_end(&s->progress);
    stop_release(&before, status == TNF_ECANCELLED);
    return status;
}

/* Bytes that turn out bad while they are copied are the input's fault. */
static int report(const saving_job *j, const char *out, tnf_status status, const tnf_error *error)
{
    bool bad = status == TNF_EFORMAT || status == TNF_ETRUNCATED || status == TNF_EDIGEST;
    if (bad && j->in)
        return file_error(j->in, error);
    if (status != TNF_EEXISTS || j->append)
        return file_error(out, error);
    file_message(out, "", TNF_NO_OFFSET, "it exists already; --force replaces it");
    return EXIT_IO;
}

int saving_run(saving *s, const saving_job *j, tnf_save_options *how)
{
    format_options writer;
    tnf_error error;
    bool pipe = !strcmp(j->out, "-");
    if (!format_options_parse(&writer, &j->options->writer) ||
        !format_options_add(&writer, "reserve", j->options->reserve))
        return EXIT_USAGE;
    saving_fill(how, j->options);
    how->options = writer.items;
    how->noptions = writer.n;
    saving_listen(s, how);
    progress_begin(&s->progress, j->cli);
    tnf_status status = pipe ? to_stdout(j, how, &error) : to_file(s, j, how, &error);
    progress_end(&s->progress);
    format_options_free(&writer);
    plan_end(&s->plan);
    if (status == TNF_OK) {
        plan_notes(&s->plan, j->in ? j->in : j->out);
        return EXIT_DONE;
    }
    if (s->cut) {
        file_message(s->watched->name, "", TNF_NO_OFFSET,
                     "it was cut short while it was being read");
        return EXIT_IO;
    }
    if (status == TNF_ELOSSY)
        plan_refused(&s->plan);
    return report(j, pipe ? "standard output" : j->out, status, &error);
}

/* ----------------------------------------------------------------- options */

/* --allow-loss=KIND,KIND: a kind that does not exist would allow nothing, silently. */
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

int saving_check(const cli_state *cli, const saving_options *o, const char *out)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    const char *who = cli->command;
    if (!kinds_known(who, o->allow_loss.value))
        return EXIT_USAGE;
    if (o->to && !known_format(o->to, &f))
        return EXIT_USAGE;
    if (o->to && !(f.caps & TNF_CAN_WRITE))
        return usage_error("%s: %s can be read but not written", who, f.name);
    if (!out || strcmp(out, "-") != 0)
        return EXIT_DONE;
    if (!o->to)
        return usage_error("%s: standard output has no extension: give the format with -t", who);
    if (isatty(STDOUT_FILENO) && !o->dry_run && !o->force)
        return usage_error("%s: a tensor file would upset the terminal: send it to a file or a "
                           "pipe",
                           who);
    return EXIT_DONE;
}

const char *saving_format(const saving_options *o, const char *out)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    tnf_error error;
    if (o->to)
        return tnf_format_named(&f, o->to) ? f.name : o->to;
    return tnf_format_for_path(&f, out, &error) == TNF_OK ? f.name : NULL;
}
