/* SPDX-License-Identifier: MIT */
/* tenfold fetch: downloads complete files from other machines. */
#include "cmd.h"
#include "input.h"
#include "out.h"
#include "progress.h"
#include "stop.h"
#include <string.h>
#include <tenfold/remote.h>

typedef struct options {
    bool json, force;
    opt_list options;
} options;

typedef struct fetching {
    progress bar; /* first, for progress_watch() */
    const cli_state *cli;
    const options *options;
    json out;
} fetching;

static void on_file(void *ctx, const char *name, uint64_t bytes, bool fetched)
{
    fetching *f = ctx;
    progress_end(&f->bar);
    if (f->options->json) {
        json_open(&f->out, '{');
        json_key(&f->out, "file");
        json_text(&f->out, name);
        json_key(&f->out, "size");
        json_uint(&f->out, bytes);
        json_key(&f->out, "fetched");
        json_bool(&f->out, fetched);
        json_close(&f->out, '}');
    } else if (!f->cli->quiet) {
        put_safe(stdout, name, strlen(name), false);
        char size[SIZE_TEXT];
        size_text(size, bytes);
        printf("  %s%s\n", size, fetched ? "" : " (there already)");
    }
}

static int run_fetch(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    fetching f = { .cli = cli, .options = o, .out = { stdout, false } };
    tnf_url_options remote = TNF_URL_INIT;
    tnf_fetch_options how = TNF_FETCH_INIT;
    stop_state stop;
    format_options settings = { 0 };
    int code = EXIT_DONE;
    bool stopped = false;
    if (!format_options_parse(&settings, &o->options, "--option")) {
        format_options_free(&settings);
        return EXIT_USAGE;
    }
    remote.trace = cli->trace ? request_trace : NULL;
    how.options = settings.items;
    how.noptions = settings.n;
    how.remote = &remote;
    how.replace = o->force;
    how.progress = progress_watch;
    how.file = on_file;
    how.ctx = &f;
    stop_catch(&stop);
    if (o->json)
        json_open(&f.out, '[');
    for (int i = 0; i + 1 < argc && (code == EXIT_DONE || code == EXIT_UNSYNCED); i++) {
        tnf_error error;
        progress_begin(&f.bar, cli);
        tnf_status status = tnf_fetch(argv[i], argv[argc - 1], &how, &error);
        progress_end(&f.bar);
        stopped = status == TNF_ECANCELLED;
        if (status == TNF_OK)
            continue;
        argv[i][strcspn(argv[i], "?#")] = 0; /* `ps` must not show a signature to other users */
        code = file_error(argv[i], &error);
    }
    if (o->json) {
        json_close(&f.out, ']');
        putchar('\n');
    }
    stop_release(&stop, stopped);
    format_options_free(&settings);
    return code;
}

static const opt table[] = {
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print the files as one JSON document." },
    { "force", 0, OPT_FLAG, offsetof(options, force), NULL, NULL,
      "Replace existing files whose size or date differs from the server's." },
    { "option", 'o', OPT_LIST, offsetof(options, options), "KEY=VALUE", NULL,
      "Set a network option: anonymous=yes, connections=N, endpoint=URL, netrc=yes, "
      "private=yes, region=NAME. May be repeated." },
    { 0 },
};

static const example examples[] = {
    { "tenfold fetch hf://org/model models/model", "all files of a repository" },
    { "tenfold fetch https://example.org/model.safetensors.index.json .",
      "an index and the shards that it names" },
    { "tenfold fetch s3://bucket/model/ model", "all objects whose names begin with a prefix" },
    { 0 },
};

const command cmd_fetch = {
    .name = "fetch",
    .args = "URL... DIR",
    .summary = "download files and verify them",
    .about = "Downloads each URL (http, https, s3, gs, az, hf) into DIR: a file; an index of "
             "shards with the shards that it names; or a directory, whose URL ends with a slash "
             "(s3, gs, az, hf).\n\nA file is fetched in blocks of 4 MiB by up to 16 connections. "
             "It appears under its name when it is complete. If the server gives a SHA-256, it "
             "must match. After an interruption, the same command continues where it stopped. It "
             "reads NAME.part and NAME.part.journal, and checks the existing blocks first. An "
             "existing file with the server's size and date is not fetched again.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 2,
    .max_args = -1,
    .run = run_fetch,
};
