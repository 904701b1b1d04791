/* SPDX-License-Identifier: MIT */
/* tenfold repair: writes the intact contents of a damaged file to a new one. */
#include "input.h"
#include "out.h"
#include "saving.h"
#include "stop.h"
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <tenfold/repair.h>
#include <tenfold/shards.h>

typedef struct options {
    input_options in;
    saving_options save;
} options;

typedef struct job {
    progress progress; /* first, for progress_watch() */
    const cli_state *cli;
    const options *options;
    const char *out, *format;
    input in;
    tnf_builder *builder;
    tnf_salvage_result result;
    size_t missing; /* tensors of which only the name is known */
    json json;
} job;

/* ------------------------------------------------------------------ losses */

static void tell_loss(job *j, const char *kind, tnf_str name, uint64_t offset, const char *reason)
{
    json *to = &j->json;
    progress_end(&j->progress);
    if (j->options->save.json) {
        json_open(to, '{');
        json_key(to, "kind");
        json_text(to, kind);
        json_key(to, "name");
        if (name.n > 0 || (strcmp(kind, "part") != 0 && strcmp(kind, "rule") != 0))
            json_str(to, name);
        else
            json_null(to);
        json_key(to, "offset");
        if (offset == TNF_NO_OFFSET)
            json_null(to);
        else
            json_uint(to, offset);
        json_key(to, "message");
        json_text(to, reason);
        json_close(to, '}');
        return;
    }
    if (!strcmp(kind, "rule"))
        fputs("OUT still breaks a rule and opens only with --lenient", stdout);
    else
        printf("lost: %s", strcmp(kind, "part") ? kind : "part of the file");
    if (name.n > 0) {
        putchar(' ');
        put_name(stdout, name);
    }
    fputs(": ", stdout);
    put_safe(stdout, reason, strlen(reason), false);
    if (offset != TNF_NO_OFFSET)
        printf(" (at byte %" PRIu64 ")", offset);
    putchar('\n');
}

static void on_lost(void *ctx, const tnf_loss *loss)
{
    job *j = ctx;
    j->missing += !strcmp(loss->kind, "tensor") &&
                  !tnf_find_n(j->in.file, loss->name.p, loss->name.n);
    tell_loss(j, loss->kind, loss->name, loss->offset, loss->reason);
}

/* Counts the losses of the output format, which may depend on lost items. */
static void on_plan(void *ctx, const tnf_plan_item *item)
{
    job *j = ctx;
    if (item->fate != TNF_DROPPED && item->fate != TNF_TRANSFORMED)
        return;
    j->result.lost++;
    if (!strcmp(item->kind, "tensor") && item->fate == TNF_DROPPED && j->result.saved > 0)
        j->result.saved--;
    tell_loss(j, item->kind, item->name, TNF_NO_OFFSET, item->reason);
}

/* ------------------------------------------------------------------ saving */

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int refuse_itself(void)
{
    return usage_error("repair: OUT is IN or one of the shards of IN; choose another OUT. repair "
                       "never overwrites IN, because another tool may recover more data from it");
}

/* Is there anything to save? A file without tensors may still have attributes. */
static bool worth_saving(const job *j)
{
    return j->result.saved > 0 || (j->in.info->objects == 0 && j->result.lost == 0);
}

/* Plans first. If the format can hold none of the intact tensors, nothing is written. */
static tnf_status save_rest(job *j, tnf_error *error)
{
    const options *o = j->options;
    format_options writer;
    if (!format_options_parse(&writer, &o->save.writer, "--option")) {
        *error = (tnf_error) { .status = TNF_EINVAL, .offset = TNF_NO_OFFSET };
        return TNF_EINVAL;
    }
    tnf_save_options how = { .size = sizeof how };
    saving_fill(&how, &o->save);
    how.format = j->format;
    how.allow_loss = true;
    how.as_is = true; /* intact tensors do not change */
    how.options = writer.items;
    how.noptions = writer.n;
    how.dry_run = true;
    how.plan = on_plan;
    how.progress = progress_watch;
    how.ctx = j;
    tnf_status status = tnf_save(j->builder, j->out, &how, error);
    if (status == TNF_OK && !o->save.dry_run && worth_saving(j)) {
        how.dry_run = false;
        how.plan = NULL;
        status = tnf_save(j->builder, j->out, &how, error);
    }
    format_options_free(&writer);
    return status;
}

static tnf_status salvage_file(job *j, tnf_error *error)
{
    tnf_salvage_options how = { .size = sizeof how };
    how.lost = on_lost;
    how.progress = progress_watch;
    how.ctx = j;
    return tnf_salvage(&j->result, j->builder, j->in.file, &how, error);
}

/* Reports a rule that OUT breaks, as IN did. */
static void check_saved(job *j, tnf_status saved)
{
    tnf_error error;
    tnf_file *file = NULL;
    tnf_open_options how = { .size = sizeof how, .format = j->format };
    if (!was_done(saved) || j->options->save.dry_run || !worth_saving(j))
        return;
    if (tnf_open(&file, j->out, &how, &error) != TNF_OK) {
        j->result.lost++;
        tell_loss(j, "rule", (tnf_str) { "", 0 }, error.offset, error.message);
    }
    tnf_close(file);
}

static int finish_repair(job *j, tnf_status status, const tnf_error *error)
{
    bool done = was_done(status), nothing = done && !worth_saving(j);
    size_t known = j->in.info->objects + j->missing;
    check_saved(j, status);
    if (j->options->save.json) {
        json_close(&j->json, ']');
        json_key(&j->json, "saved");
        json_uint(&j->json, done ? j->result.saved : 0);
        json_key(&j->json, "ok");
        json_bool(&j->json, done && j->result.lost == 0);
        json_close(&j->json, '}');
        putchar('\n');
    }
    flush_out();
    if (status == TNF_EEXISTS) {
        file_message(j->out, "", TNF_NO_OFFSET, "already exists; use --force to replace it");
        return EXIT_IO;
    }
    if (!done)
        return *error->message ? file_error(j->out, error) : exit_code(status);
    if (nothing) {
        file_message(j->in.name, "", TNF_NO_OFFSET, "nothing can be saved: no tensor is intact");
        return EXIT_BAD;
    }
    if (!j->options->save.json && !j->cli->quiet)
        printf("%s %" PRIu64 " of %zu tensor%s\n",
               j->options->save.dry_run ? "could save" : "saved", j->result.saved, known,
               known == 1 ? "" : "s");
    int code = status == TNF_OK ? EXIT_DONE : file_error(j->out, error);
    return code == EXIT_DONE && j->result.lost > 0 ? EXIT_DIFFERS : code;
}

static int repair_input(job *j)
{
    tnf_error error = { .offset = TNF_NO_OFFSET };
    stop_state before;
    if (tnf_builder_new(&j->builder, NULL, &error) != TNF_OK)
        return file_error(j->in.name, &error);
    if (j->options->save.json) {
        json_open(&j->json, '{');
        json_key(&j->json, "file");
        json_text(&j->json, j->in.path);
        json_key(&j->json, "output");
        json_text(&j->json, j->out);
        json_key(&j->json, "format");
        json_text(&j->json, j->format);
        json_key(&j->json, "tensors");
        json_uint(&j->json, j->in.info->objects);
        json_key(&j->json, "lost");
        json_open(&j->json, '[');
    }
    stop_catch(&before);
    progress_begin(&j->progress, j->cli);
    tnf_status status = salvage_file(j, &error);
    if (status == TNF_OK && worth_saving(j))
        status = save_rest(j, &error);
    progress_end(&j->progress);
    stop_release(&before, status == TNF_ECANCELLED);
    int code = finish_repair(j, status, &error);
    tnf_builder_free(j->builder);
    return code;
}

/* Determines the format, and checks that OUT is not one of the files that are read. If OUT has the
 * extension of another format than the one that is written, the user must choose. */
static int settle_format(job *j)
{
    tnf_error error;
    tnf_format_info in = TNF_FORMAT_INFO_INIT, out = TNF_FORMAT_INFO_INIT;
    const char *to = j->options->save.to;
    j->format = to ? saving_format(to) : j->in.info->format;
    if (tnf_file_reads(j->in.file, j->out))
        return refuse_itself();
    const char *was = strrchr(j->in.path, '.'), *is = strrchr(j->out, '.');
    bool alike = was && is && !strcmp(was, is);
    if (!to && !alike && tnf_format_for_path(&out, j->out, &error) == TNF_OK &&
        tnf_format_named(&in, j->format) && strcmp(in.family, out.family) != 0)
        return usage_error("repair: the format of %s is %s, but the extension of %s is that of %s; "
                           "choose one with -t",
                           j->in.name, in.name, j->out, out.name);
    return EXIT_DONE;
}

/* Without OUT: is there a file that could be repaired at all? */
static int try_open(const cli_state *cli, const options *o, const char *path)
{
    input in;
    input_options how = o->in;
    how.salvage = true;
    int code = input_open(&in, cli, &how, path);
    input_close(&in);
    return code;
}

static int run_repair(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    bool undone;
    int code = input_undo(cli, argv[0], &undone);
    if (code != EXIT_DONE || (argc == 1 && undone))
        return code;
    if (argc == 1 && (code = try_open(cli, o, argv[0])) != EXIT_DONE)
        return code;
    if (argc == 1)
        return usage_error("repair: no change of IN was interrupted; give OUT to save the intact "
                           "tensors of IN");
    job j = { .cli = cli,
              .options = o,
              .out = argv[1],
              .result = TNF_SALVAGE_RESULT_INIT,
              .json = { stdout, false } };
    if (saving_check(cli, &o->save, NULL, false) != EXIT_DONE)
        return EXIT_USAGE;
    if (!strcmp(argv[1], "-") && !o->save.dry_run)
        return usage_error("repair: OUT must be a file; '-' is allowed with --dry-run");
    if (same_file(argv[0], argv[1])) /* even if it cannot be opened */
        return refuse_itself();
    input_options in = o->in;
    in.salvage = true;
    code = input_open(&j.in, cli, &in, argv[0]);
    if (code == EXIT_DONE)
        code = settle_format(&j);
    if (code == EXIT_DONE)
        code = repair_input(&j);
    input_close(&j.in);
    return code;
}

static const opt table[] = {
    TO_OPTION(options, save, "the format of IN is used."),
    WRITER_OPTION(options, save, "option", 'o'),
    FORCE_OPTION(options, save, "Replace OUT if it exists."),
    { "dry-run", 'n', OPT_FLAG, offsetof(options, save.dry_run), NULL, NULL,
      "Print the losses, and write nothing." },
    { "json", 0, OPT_FLAG, offsetof(options, save.json), NULL, NULL,
      "Print the losses as one JSON document." },
    NO_SYNC_OPTION(options, save),
    { "format", 'f', OPT_TEXT, offsetof(options, in.format), "FORMAT", "@formats",
      "Read the input as this format instead of detecting it." },
    IN_OPTION(options, in, "IN"),
    ALSO_OUT_OPTION(options, save),
    { 0 },
};

static const example examples[] = {
    { "tenfold repair half-a-download.safetensors whole.safetensors", "the tensors that arrived" },
    { "tenfold repair --dry-run torn.zt -", "what is lost?" },
    { "tenfold repair model.safetensors", "after 'tenfold meta' was interrupted" },
    { "tenfold repair points.vs new.vs", "all points before the damaged one" },
    { 0 },
};

const command cmd_repair = {
    .name = "repair",
    .args = "IN [OUT]",
    .summary = "save the intact tensors of a damaged file",
    .about =
        "Writes a new file with the intact contents of IN. A tensor is intact if all its bytes are "
        "there, match their digests and follow the rules of its layout. Metadata is kept. From a "
        "file that is read in order, such as points or parameters, everything before the damage is "
        "kept. Losses are listed. Nothing is guessed, and every written byte comes from IN.\n\nA "
        "file without its index cannot be repaired. The index is the header of safetensors and "
        "gpt.rs, and the manifest at the end of zTensor; zTensor 2 may contain an older one.\n\nIf "
        "a change of IN's metadata in place was interrupted, the old bytes are first put back into "
        "IN. Without OUT, nothing else is done.\n\nExits with 0 if nothing is lost, 1 if something "
        "is lost, and 4 if nothing can be saved; then nothing is written.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = 2,
    .run = run_repair,
};
