/* SPDX-License-Identifier: MIT */
/* Runs commands that derive a new file from a file of embeddings. */
#include "emb.h"

int emb_rewrite(saving *s, const cli_state *cli, const emb_options *o,
                const saving_options *options, char **argv)
{
    input in;
    input_options reading = o->in;
    tnf_emb_options view = { .size = sizeof view };
    if (saving_check_plan(cli, options, argv[1], true) != EXIT_DONE)
        return EXIT_USAGE;
    view.embeddings = o->embeddings;
    view.vocab = o->vocab;
    /* Rows are copied, not mapped. If the file is truncated meanwhile, that is an error; a mapping
     * could give zeros in a file that looks intact, or a signal. */
    if (reading.access == TNF_ACCESS_AUTO)
        reading.access = TNF_ACCESS_PREAD;
    s->cli = cli;
    s->options = options;
    s->inputs = &in;
    s->n = 1;
    s->out = argv[1];
    s->how.emb = &view;
    int code = input_open(&in, cli, &reading, argv[0]);
    if (code == EXIT_DONE)
        code = saving_run(s);
    input_close(&in);
    s->inputs = NULL; /* the report does not need them */
    s->n = 0;
    s->how.emb = NULL;
    return code;
}

int emb_rewrite_step(tnf_emb_step step, const cli_state *cli, const void *options, char **argv)
{
    const emb_rewrite_options *o = options;
    saving s = { .how.step = step };
    int code = emb_rewrite(&s, cli, &o->emb, &o->save, argv);
    saving_free(&s);
    return code;
}
