/* SPDX-License-Identifier: MIT */
/* Saving what was made of embeddings. */
#include "emb.h"
#include "saving.h"
#include "stop.h"
#include <string.h>
#include <unistd.h>

static tnf_status to_stdout(const tnf_builder *builder, const tnf_save_options *how,
                            tnf_error *error)
{
    tnf_sink *sink;
    fflush(stdout);
    tnf_status status = tnf_sink_fd(&sink, STDOUT_FILENO, error);
    if (status != TNF_OK)
        return status;
    status = tnf_save_sink(builder, sink, how, error);
    tnf_sink_close(sink);
    return status;
}

static tnf_status to_file(const tnf_builder *builder, const char *path, const tnf_save_options *how,
                          tnf_error *error)
{
    stop_state before;
    stop_catch(&before);
    tnf_status status = tnf_save(builder, path, how, error);
    stop_release(&before, status == TNF_ECANCELLED);
    return status;
}

static int report(const emb_input *e, const char *out, tnf_status status, const tnf_error *error)
{
    if (status == TNF_EFORMAT || status == TNF_ETRUNCATED || status == TNF_EDIGEST)
        return file_error(e->in.name, error);
    if (status != TNF_EEXISTS)
        return file_error(out, error);
    file_message(out, "", TNF_NO_OFFSET, "it exists already; --force replaces it");
    return EXIT_IO;
}

int emb_save(const tnf_builder *builder, const emb_input *e, const emb_saving *s, const char *out)
{
    saving x = { 0 };
    format_options writer;
    tnf_format_info f;
    tnf_error error;
    bool pipe = !strcmp(out, "-");
    if (!saving_kinds_known(NULL, s->allow_loss.value))
        return EXIT_USAGE;
    if (s->to && !known_format(s->to, &f))
        return EXIT_USAGE;
    if (pipe && !s->to)
        return usage_error("standard output has no extension: give the format with -t");
    if (!format_options_parse(&writer, &s->writer))
        return EXIT_USAGE;
    tnf_save_options how = { .size = sizeof how };
    how.format = s->to;
    how.options = writer.items;
    how.noptions = writer.n;
    how.replace = s->force;
    how.no_sync = s->no_sync;
    how.allow_loss = s->allow_loss.given;
    how.loss = s->allow_loss.value;
    saving_listen(&x, &how);
    plan_begin(&x.plan, e->in.cli->verbose ? PLAN_VERBOSE : PLAN_KEEP, e->in.cli, e->in.path, out,
               s->to);
    progress_begin(&x.progress, e->in.cli);
    tnf_status status = pipe ? to_stdout(builder, &how, &error)
                             : to_file(builder, out, &how, &error);
    progress_end(&x.progress);
    plan_end(&x.plan);
    if (status == TNF_ELOSSY)
        plan_refused(&x.plan);
    plan_free(&x.plan);
    format_options_free(&writer);
    return status == TNF_OK ? EXIT_DONE : report(e, pipe ? "standard output" : out, status, &error);
}

static int fill_and_save(const emb_input *e, const emb_saving *s, const char *out, emb_fill *fill,
                         const void *options)
{
    tnf_error error;
    tnf_builder *builder;
    int code;
    if (tnf_builder_new(&builder, NULL, &error) != TNF_OK)
        return file_error(out, &error);
    if (fill(builder, e->emb, options, &error) == TNF_OK)
        code = emb_save(builder, e, s, out);
    else
        code = file_error(e->in.name, &error);
    tnf_builder_free(builder);
    return code;
}

int emb_rewrite(const cli_state *cli, const emb_options *o, const emb_saving *s, char **argv,
                emb_fill *fill, const void *options)
{
    emb_input e;
    int code = emb_open_to_write(&e, cli, o, argv[0]);
    if (code == EXIT_DONE)
        code = fill_and_save(&e, s, argv[1], fill, options);
    emb_close(&e);
    return code;
}
