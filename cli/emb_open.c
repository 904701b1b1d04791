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
    usage_error("--%s takes a whole number of at least %" PRIu64 ", not '%s'", option, least, text);
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

bool emb_misnamed(const tnf_file *file, const tnf_emb_options *how)
{
    return (how->embeddings && !tnf_find(file, how->embeddings)) ||
           (how->vocab && !tnf_find(file, how->vocab));
}

/* A tensor that the user named wrongly is a usage error; a file without vectors is not. */
static int report_unopened(const emb_input *e, const tnf_emb_options *how, const tnf_error *error)
{
    tnf_error more = *error;
    bool misnamed = emb_misnamed(e->in.file, how);
    if (error->status == TNF_ENOTFOUND && !misnamed)
        snprintf(more.message, sizeof more.message, "%.400s with --embeddings", error->message);
    int code = file_error(e->in.name, &more);
    return error->status != TNF_ENOTFOUND ? code : misnamed ? EXIT_USAGE : EXIT_BAD;
}

bool emb_has_words(const emb_input *e, bool or_subwords)
{
    bool has = e->info->has_words || (or_subwords && e->info->subwords != TNF_SUBWORDS_NONE);
    if (!has)
        file_message(e->in.name, "", TNF_NO_OFFSET, "the file has no words");
    return has;
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
    if (tnf_emb_open(&e->emb, e->in.file, &how, &error) != TNF_OK)
        return report_unopened(e, &how, &error);
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
