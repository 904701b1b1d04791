/* SPDX-License-Identifier: MIT */
/* Opens a file of embeddings, and parses options that all commands for embeddings have. */
#include "emb.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool emb_number(uint64_t *out, const char *text, const char *option, uint64_t least,
                uint64_t otherwise)
{
    char *end;
    *out = otherwise;
    if (!text)
        return true;
    if (number_parse(out, text, &end) && !*end && *out >= least && *out <= INT64_MAX)
        return true;
    usage_error("option '--%s' takes a whole number of at least %" PRIu64 ", not '%s'", option,
                least, text);
    return false;
}

static void warn_duplicates(const emb_input *e)
{
    char text[96];
    if (e->info->duplicates == 0 || !e->in.cli->verbose || e->in.cli->quiet)
        return;
    snprintf(text, sizeof text,
             e->info->duplicates == 1 ? "%" PRIu64 " duplicate word, in row %" PRIu64
                                        "; its first row is used"
                                      : "%" PRIu64 " duplicate words, the first in row %" PRIu64
                                        "; the first row of each word is used",
             e->info->duplicates, e->info->first_duplicate);
    file_message(e->in.name, "warning: ", TNF_NO_OFFSET, text);
}

int emb_open(emb_input *e, const cli_state *cli, const emb_options *options, const char *path)
{
    tnf_error error;
    *e = (emb_input) { 0 };
    int code = input_open(&e->in, cli, &options->in, path);
    if (code != EXIT_DONE)
        return code;
    tnf_emb_options how = { .size = sizeof how };
    how.embeddings = options->embeddings;
    how.vocab = options->vocab;
    if (tnf_emb_open(&e->emb, e->in.file, &how, &error) != TNF_OK) {
        code = file_error(e->in.name, &error);
        return error.status == TNF_ENOTFOUND ? EXIT_BAD : code;
    }
    e->info = tnf_emb_describe(e->emb);
    e->app = e->info->vocab && !strcmp(e->info->vocab->name.p, "appdata");
    warn_duplicates(e);
    return EXIT_DONE;
}

void emb_close(emb_input *e)
{
    tnf_emb_close(e->emb);
    input_close(&e->in);
}

bool emb_query(emb_asking *out, const emb_input *e, const char *k, int metric)
{
    uint64_t count;
    if (!emb_number(&count, k, "count", 1, 10))
        return false;
    if (count > e->info->rows)
        count = e->info->rows ? e->info->rows : 1;
    out->query = (tnf_emb_query) { .size = sizeof out->query,
                                   .metric = (tnf_metric)metric,
                                   .k = (size_t)count };
    return true;
}
