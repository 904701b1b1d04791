/* SPDX-License-Identifier: MIT */
/* Saving what was made of embeddings. */
#include "emb.h"
#include "saving.h"
#include <string.h>

int emb_save(const tnf_builder *builder, const emb_input *e, const emb_saving *s, const char *out)
{
    saving x = { 0 };
    tnf_format_info f;
    const cli_state *cli = e->in.cli;
    if (!saving_kinds_known(NULL, s->allow_loss.value) || (s->to && !known_format(s->to, &f)))
        return EXIT_USAGE;
    if (!strcmp(out, "-") && !s->to)
        return usage_error("standard output has no extension: give the format with -t");
    tnf_save_options how = { .size = sizeof how };
    how.format = s->to;
    how.replace = s->force;
    how.no_sync = s->no_sync;
    how.allow_loss = s->allow_loss.given;
    how.loss = s->allow_loss.value;
    plan_begin(&x.plan, saving_style(cli, false, false), cli, e->in.path, out, s->to);
    saving_job to = { cli, builder, e->in.name, out, &s->writer, false };
    int code = saving_run(&x, &to, &how);
    plan_free(&x.plan);
    return code;
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
