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

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    while (*words) {
        size_t m = strcspn(words, " ");
        if (m == n && memcmp(words, word, n) == 0)
            return true;
        words += m + (words[m] == ' ');
    }
    return false;
}

const char *saving_format(tnf_format_info *f, const char *to, const char *out)
{
    const char *dot = strrchr(out, '.');
    if (to)
        return tnf_format_named(f, to) ? f->name : to;
    for (size_t i = 0; dot && dot[1] && tnf_format_at(f, i); i++)
        if (f->caps & TNF_CAN_WRITE && f->extensions && has_word(f->extensions, dot + 1))
            return f->name;
    return NULL;
}

plan_style saving_style(const cli_state *cli, bool dry_run, bool as_json)
{
    if (dry_run)
        return as_json ? PLAN_JSON : PLAN_TEXT;
    return cli->verbose ? PLAN_VERBOSE : PLAN_KEEP;
}

static tnf_status to_stdout(const saving_job *j, const tnf_save_options *how, tnf_error *error)
{
    tnf_sink *sink;
    fflush(stdout);
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
    if (!format_options_parse(&writer, j->writer))
        return EXIT_USAGE;
    how->options = writer.items;
    how->noptions = writer.n;
    saving_listen(s, how);
    progress_begin(&s->progress, j->cli);
    tnf_status status = pipe ? to_stdout(j, how, &error) : to_file(s, j, how, &error);
    progress_end(&s->progress);
    format_options_free(&writer);
    plan_end(&s->plan);
    if (status == TNF_OK)
        return EXIT_DONE;
    if (s->cut) {
        file_message(s->watched->name, "", TNF_NO_OFFSET,
                     "it was cut short while it was being read");
        return EXIT_IO;
    }
    if (status == TNF_ELOSSY)
        plan_refused(&s->plan);
    return report(j, pipe ? "standard output" : j->out, status, &error);
}

bool saving_kinds_known(const char *who, const char *kinds)
{
    for (const char *p = kinds; p; p = *p ? p + 1 : NULL) {
        size_t n = strcspn(p, ",");
        if (opt_position(LOSS_KINDS, p, n) < 0) {
            usage_error("%s%s--allow-loss takes one or more of " LOSS_KINDS
                        ", separated by commas, not '%s'",
                        who ? who : "", who ? ": " : "", kinds);
            return false;
        }
        p += n;
    }
    return true;
}
