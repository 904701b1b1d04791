/* SPDX-License-Identifier: MIT */
/* Saving what was made of embeddings. */
#include "emb.h"

int emb_save(const tnf_builder *builder, const emb_input *e, const saving_options *s,
             const char *out)
{
    saving x = { 0 };
    const cli_state *cli = e->in.cli;
    tnf_save_options how = { .size = sizeof how };
    saving_job to = { cli, builder, e->in.name, out, s, false };
    if (saving_check(cli, s, out) != EXIT_DONE)
        return EXIT_USAGE;
    plan_begin(&x.plan, saving_style(cli, s), cli, e->in.path, out, saving_format(s, out));
    int code = saving_run(&x, &to, &how);
    plan_free(&x.plan);
    return code;
}

static int fill_and_save(const emb_input *e, const saving_options *s, const char *out,
                         emb_fill *fill, const void *options)
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

int emb_rewrite(const cli_state *cli, const emb_options *o, const saving_options *s, char **argv,
                emb_fill *fill, const void *options)
{
    emb_input e;
    int code = emb_open_to_write(&e, cli, o, argv[0]);
    if (code == EXIT_DONE)
        code = fill_and_save(&e, s, argv[1], fill, options);
    emb_close(&e);
    return code;
}
