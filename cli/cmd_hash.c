/* SPDX-License-Identifier: MIT */
/* tenfold hash: a hash of the content, which is independent of the format. */
#include "hash_check.h"
#include "input.h"
#include "jobs.h"
#include "out.h"
#include "progress.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    input_options in;
    bool json, tensors, leaves;
    const char *check;
    opt_list select, exclude;
    part_options part;
} options;

/* Collects the reports of the library while it hashes. */
typedef struct hash_reports {
    const options *options;
    progress progress;
    json tensors, leaves; /* JSON fragments, or lines, written to memory; leaves of one tensor */
    char *text, *leaves_text;
    size_t n, leaves_n;
    hash_list *list; /* for --check; or NULL */
    size_t chosen;   /* tensors */
} hash_reports;

static void on_leaf(void *ctx, const tnf_leaf *leaf)
{
    hash_reports *t = ctx;
    json *j = &t->leaves;
    char hex[HASH_TEXT];
    hash_text(hex, leaf->hash);
    if (t->list) {
        hash_list_found_leaf(t->list, leaf, hex);
    } else if (t->options->json) {
        json_open(j, '{');
        json_key(j, "part");
        json_text(j, leaf->part->role);
        json_key(j, "offset");
        json_uint(j, leaf->offset);
        json_key(j, "nbytes");
        json_uint(j, leaf->nbytes);
        json_key(j, "hash");
        json_text(j, hex);
        json_close(j, '}');
    } else {
        fprintf(j->to, HASH_LEAF "%s  %" PRIu64 "  ", hex + HASH_PREFIX, leaf->offset);
        put_name(j->to, leaf->object->name);
        putc_unlocked('#', j->to);
        put_safe(j->to, leaf->part->role, strlen(leaf->part->role), true);
        putc_unlocked('\n', j->to);
    }
}

static void json_tensor(hash_reports *t, const tnf_object *object, const char *hex)
{
    json *j = &t->tensors;
    json_open(j, '{');
    json_key(j, "name");
    json_str(j, object->name);
    json_key(j, "hash");
    json_text(j, hex);
    if (t->options->leaves) {
        json_key(j, "leaves");
        json_open(j, '[');
        fwrite(t->leaves_text, 1, t->leaves_n, j->to);
        json_close(j, ']');
    }
    json_close(j, '}');
}

/* The leaves of the tensor were reported before. */
static void on_tensor(void *ctx, const tnf_object *object, const uint8_t hash[32])
{
    hash_reports *t = ctx;
    char hex[HASH_TEXT];
    bool chosen = glob_chosen(&t->options->select, &t->options->exclude, object->name);
    hash_text(hex, hash);
    fflush(t->leaves.to);
    t->chosen += chosen;
    if (!chosen) {
        /* it counts only for the hash of the file */
    } else if (t->list) {
        hash_list_found(t->list, object->name, hex);
    } else if (t->options->json) {
        json_tensor(t, object, hex);
    } else if (t->options->tensors || t->options->leaves) {
        fprintf(t->tensors.to, HASH_LINE "%s  ", hex + HASH_PREFIX);
        put_name(t->tensors.to, object->name);
        putc_unlocked('\n', t->tensors.to);
        fwrite(t->leaves_text, 1, t->leaves_n, t->tensors.to);
    }
    rewind(t->leaves.to);
    t->leaves.comma = false;
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_step(&((hash_reports *)ctx)->progress, done, total);
    return true;
}

static int hash_input(const cli_state *cli, hash_reports *t, input *in, uint8_t hash[32])
{
    tnf_error error;
    tnf_hash_options how = { .size = sizeof how };
    how.tensor = on_tensor;
    how.leaf = t->options->leaves || (t->list && t->list->leaves) ? on_leaf : NULL;
    how.progress = on_progress;
    how.ctx = t;
    progress_begin(&t->progress, cli);
    tnf_status status = tnf_content_hash(hash, in->file, &how, &error);
    progress_end(&t->progress);
    return status == TNF_OK ? EXIT_DONE : file_error(in->name, &error);
}

static void put_result(const hash_reports *t, const input *in, const uint8_t hash[32])
{
    char hex[HASH_TEXT];
    hash_text(hex, hash);
    if (t->options->json) {
        json j = { stdout, false };
        json_open(&j, '{');
        json_key(&j, "file");
        json_text(&j, in->path);
        json_key(&j, "hash");
        json_text(&j, hex);
        json_key(&j, "hash_version");
        json_uint(&j, TNF_HASH_VERSION);
        json_key(&j, "tensors");
        json_open(&j, '[');
        fwrite(t->text, 1, t->n, stdout);
        json_close(&j, ']');
        json_close(&j, '}');
        putchar('\n');
    } else if (t->options->tensors || t->options->leaves) {
        fwrite(t->text, 1, t->n, stdout);
    } else {
        printf(HASH_LINE "%s  ", hex + HASH_PREFIX);
        put_safe(stdout, in->path, strlen(in->path), true);
        putchar('\n');
    }
}

/* Hashes one file. The hashes are printed or, with `list`, compared with a manifest. */
static int hash_one(const cli_state *cli, const options *o, const char *path, hash_list *list,
                    uint8_t hash[32])
{
    input in;
    hash_reports t = { .options = o, .list = list };
    int code = input_open(&in, cli, &o->in, path);
    if (code != EXIT_DONE)
        return code;
    t.tensors.to = open_memstream(&t.text, &t.n);
    t.leaves.to = open_memstream(&t.leaves_text, &t.leaves_n);
    code = t.tensors.to && t.leaves.to ? hash_input(cli, &t, &in, hash) : memory_error();
    if (t.tensors.to)
        fclose(t.tensors.to);
    if (t.leaves.to)
        fclose(t.leaves.to);
    if (code == EXIT_DONE && o->select.n + o->exclude.n && t.chosen == 0)
        code = nothing_selected(in.name, o->select.n, o->exclude.n);
    if (code == EXIT_DONE && !o->check)
        put_result(&t, &in, hash);
    free(t.text);
    free(t.leaves_text);
    input_close(&in);
    return code;
}

/* Each line of the manifest names a file. */
static int check_files(const cli_state *cli, const options *o, hash_list *list)
{
    int worst = EXIT_DONE;
    if (list->n && !hash_list_has_file(list)) {
        file_message(shown_path(o->check), "", TNF_NO_OFFSET,
                     "none of the listed files exists; if the manifest lists tensors, also give "
                     "the FILE that has them (see 'tenfold help hash')");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < list->n; i++) {
        uint8_t hash[32];
        char hex[HASH_TEXT];
        hash_list none = { 0 };
        int code = hash_one(cli, o, list->items[i].name, &none, hash);
        hash_list_free(&none);
        if (code == EXIT_DONE) {
            hash_text(hex, hash);
            code = hash_item_tell(cli, &list->items[i], hex);
        }
        worst = code > worst ? code : worst;
    }
    return worst;
}

static int check_lists(const cli_state *cli, const options *o, int argc, char **argv)
{
    hash_list list;
    if (argc > 1)
        return usage_error(
            "--check takes at most one FILE: the file whose tensors the manifest lists");
    int code = hash_list_read(&list, o->check);
    if (code == EXIT_DONE && argc == 0)
        code = check_files(cli, o, &list);
    if (code == EXIT_DONE && argc == 1) {
        uint8_t hash[32];
        code = hash_one(cli, o, argv[0], &list, hash);
        if (code == EXIT_DONE)
            code = hash_list_tell(cli, &list);
    }
    hash_list_free(&list);
    return code;
}

static int run_hash(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    int worst = EXIT_DONE;
    if (o->select.n + o->exclude.n && (o->check || !(o->tensors || o->leaves || o->json)))
        return usage_error("--select and --exclude choose among the lines of --tensors, --leaves "
                           "or --json");
    if (o->check)
        return check_lists(cli, o, argc, argv);
    if (argc == 0)
        return usage_error("hash: too few arguments; give a FILE");
    for (int i = 0; i < argc; i++) {
        uint8_t hash[32];
        int code = hash_one(cli, o, argv[i], NULL, hash);
        worst = code > worst ? code : worst;
    }
    return worst;
}

static const opt table[] = {
    { "tensors", 0, OPT_FLAG, offsetof(options, tensors), NULL, NULL,
      "Print a line for each tensor instead: the hash of its type, shape and values, and its "
      "name." },
    { "leaves", 0, OPT_FLAG, offsetof(options, leaves), NULL, NULL,
      "Like --tensors. After each tensor, also print a line for each of its leaves (blocks of 4 "
      "MiB): hash, offset and part. With these lines, --check reports which bytes of a tensor "
      "differ." },
    { "check", 0, OPT_TEXT, offsetof(options, check), "MANIFEST", NULL,
      "Compare with MANIFEST, an earlier output of this command. Without a FILE, the manifest "
      "lists files; with a FILE, it lists the tensors of that file. Exits with 1 if anything "
      "differs." },
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print a JSON object for each FILE, with the hashes of its tensors." },
    CHOICE_OPTIONS(options, "With --tensors, --leaves or --json, show only the tensors whose name "
                            "matches, as in 'tenfold ls'. The hash of the file still covers all "
                            "tensors. May be repeated."),
    INPUT_OPTIONS(options, in),
    READER_OPTION(options, in),
    PART_OPTIONS(options, part),
    ALSO_IN_OPTION(options, in),
    { 0 },
};

static const example examples[] = {
    { "tenfold hash model.safetensors model.zt", "do both have the same content?" },
    { "tenfold hash --tensors model.zt >tensors.txt", "a manifest of its tensors" },
    { "tenfold hash --check tensors.txt model.gptrs", "did any tensor change?" },
    { "tenfold hash --leaves model.zt >leaves.txt", "a manifest that locates damage to 4 MiB" },
    { 0 },
};

const command cmd_hash = {
    .name = "hash",
    .args = "[FILE...]",
    .summary = "print a hash of the content of files, in any format",
    .about =
        "Prints the SHA-256 of the content of each file: the names, types, shapes and values of "
        "its tensors, its attributes and its extras. The same content has the same hash in any "
        "format, compression and order. docs/content-hash.md describes exactly what is hashed.\n\n"
        "A line begins with the version of the hash, v2.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 0,
    .max_args = -1,
    .part = offsetof(options, part) + 1,
    .run = run_hash,
};
