/* SPDX-License-Identifier: MIT */
/* tenfold ls: lists the tensors of files, or their sums by prefix. */
#include "ls.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *ls_encoding(const tnf_part *p)
{
    return p->payload == TNF_ENCODED  ? tnf_codec_name(p->codec)
           : p->payload == TNF_OPAQUE ? "opaque"
                                      : "raw";
}

/* The digest as in the file, or as "crc32c:0x01020304", "sha256:…"; empty if there is none. */
int ls_digest(char out[LS_DIGEST], const tnf_part *p)
{
    if (!p->digest)
        return 0;
    if (p->digest->text.p)
        return snprintf(out, 160, "%.150s", p->digest->text.p);
    if (!p->digest->algorithm)
        return 0;
    bool number = !strncmp(p->digest->algorithm, "crc", 3);
    int n = snprintf(out, 64, "%.40s:%s", p->digest->algorithm, number ? "0x" : "");
    return n + (int)hex_text(out + n, p->digest->bytes, p->digest->n < 40 ? p->digest->n : 40);
}

/* ------------------------------------------------------------------- JSON */

static void json_part(json *j, const tnf_part *p)
{
    char digest[LS_DIGEST];
    json_open(j, '{');
    json_key(j, "role");
    json_text(j, p->role);
    json_key(j, "dtype");
    json_text(j, p->type->id);
    json_key(j, "encoding");
    json_text(j, ls_encoding(p));
    json_key(j, "offset");
    if (p->payload == TNF_AT || p->payload == TNF_ENCODED)
        json_uint(j, p->offset);
    else
        json_null(j);
    json_key(j, "stored");
    json_uint(j, p->stored);
    json_key(j, "nbytes");
    json_uint(j, p->nbytes);
    json_key(j, "digest");
    json_text(j, ls_digest(digest, p) ? digest : NULL);
    json_close(j, '}');
}

static void json_missing(json *j, const tnf_object *o)
{
    static const char *const unknown[] = { "dtype", "shape", "order", "layout", "nbytes" };
    json_open(j, '{');
    json_key(j, "name");
    json_str(j, o->name);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        json_key(j, unknown[i]);
        json_null(j);
    }
    json_key(j, "parts");
    json_open(j, '[');
    json_close(j, ']');
    json_key(j, "attrs");
    json_value(j, NULL);
}

static void json_known(json *j, const tnf_object *o)
{
    json_open(j, '{');
    json_tensor_head(j, o);
    json_key(j, "order");
    json_text(j, o->order == TNF_ORDER_F ? "F" : "C");
    json_key(j, "layout");
    json_text(j, tnf_layout_id(o->layout));
    json_key(j, "nbytes");
    json_uint(j, object_bytes(o));
    json_key(j, "parts");
    json_open(j, '[');
    for (uint16_t i = 0; i < o->nparts; i++)
        json_part(j, &o->parts[i]);
    json_close(j, ']');
    json_key(j, "attrs");
    json_value(j, o->attrs);
}

static void json_object(json *j, const tnf_object *o)
{
    const char *file = tnf_missing_file(o);
    (object_unknown(o) ? json_missing : json_known)(j, o);
    if (file) {
        json_key(j, "missing");
        json_bool(j, true);
        json_key(j, "shard");
        json_text(j, file);
    }
    const char *why = file ? NULL : tnf_why_unreadable(o);
    if (why && *why) {
        json_key(j, "unreadable");
        json_text(j, why);
    }
    json_close(j, '}');
}

static void json_head(json *j, const input *in)
{
    json_open(j, '{');
    json_key(j, "file");
    json_text(j, in->path);
    json_key(j, "format");
    json_text(j, in->info->format);
    json_key(j, "version");
    json_text(j, in->info->version);
}

static void as_json(const input *in, const listing *l)
{
    json j = { stdout, false };
    json_head(&j, in);
    json_key(&j, "tensors");
    json_open(&j, '[');
    for (size_t i = 0; i < l->n; i++) {
        json_line(&j);
        json_object(&j, l->items[i].object);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    putchar('\n');
}

static void sums_as_json(const input *in, const stat_sums *sums)
{
    json j = { stdout, false };
    json_head(&j, in);
    json_key(&j, "groups");
    json_open(&j, '[');
    for (size_t i = 0; i < sums->ngroups; i++) {
        const stat_sum *s = &sums->groups[i];
        json_line(&j);
        json_open(&j, '{');
        json_key(&j, "prefix");
        json_str(&j, s->name);
        json_key(&j, "tensors");
        json_uint(&j, s->tensors);
        json_key(&j, "parameters");
        json_uint(&j, s->parameters);
        json_key(&j, "nbytes");
        json_uint(&j, s->bytes);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    putchar('\n');
}

/* -------------------------------------------------------------------- TSV */

static void tsv_part(const tnf_object *o, const tnf_part *p)
{
    char digest[LS_DIGEST] = "";
    ls_digest(digest, p);
    printf("\t%s\t%c\t%s\t%s\t", tnf_layout_id(o->layout), o->order == TNF_ORDER_F ? 'F' : 'C',
           p->role, ls_encoding(p));
    if (p->payload == TNF_AT || p->payload == TNF_ENCODED)
        printf("%" PRIu64, p->offset);
    printf("\t%" PRIu64 "\t%" PRIu64 "\t%s", p->stored, p->nbytes, digest);
}

static void tsv_missing(const tnf_object *o, bool details)
{
    put_name(stdout, o->name);
    fputs(details ? "\t-\t-\t-\tmissing\t-\t-\t-\t-\t-\t-\t\n" : "\t-\t-\t-\n", stdout);
}

static void tsv_shape(const tnf_object *o)
{
    for (uint32_t i = 0; i < o->rank; i++)
        printf("%s%" PRIu64, i > 0 ? "," : "", o->shape[i]);
}

/* With several files, each line begins with the name of its file. */
static void tsv_file(const input *in, bool several)
{
    if (!several)
        return;
    put_safe(stdout, in->path, strlen(in->path), true);
    putc_unlocked('\t', stdout);
}

static void tsv_object(const input *in, const tnf_object *o, const ls_options *how, bool several)
{
    bool unknown = object_unknown(o);
    uint16_t lines = how->details && !unknown ? o->nparts : 1;
    for (uint16_t i = 0; i < lines; i++) {
        tsv_file(in, several);
        if (unknown) {
            tsv_missing(o, how->details);
            continue;
        }
        put_name(stdout, o->name);
        printf("\t%s\t", how->details ? o->parts[i].type->id : object_type(o)->id);
        tsv_shape(o);
        printf("\t%" PRIu64, object_bytes(o));
        if (how->details)
            tsv_part(o, &o->parts[i]);
        putc_unlocked('\n', stdout);
    }
}

static void sums_as_tsv(const input *in, const stat_sums *sums, bool several)
{
    for (size_t i = 0; i < sums->ngroups; i++) {
        const stat_sum *s = &sums->groups[i];
        tsv_file(in, several);
        put_name(stdout, s->name);
        printf("\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", s->tensors, s->parameters, s->bytes);
    }
}

/* ------------------------------------------------------------------ running */

/* The request of the command line. */
typedef struct call {
    const cli_state *cli;
    const ls_options *how;
    unsigned depth; /* 0: each tensor */
    opt_list globs;
    bool *hit;    /* for each pattern: it matched something */
    bool several; /* more than one file */
    size_t shown; /* files shown so far */
    size_t left;  /* tensors that are listed */
    size_t taken; /* tensors that match a pattern, including those that --exclude removes */
    ls_total total;
} call;

static bool match_globs(call *c, tnf_str name)
{
    bool any = c->globs.n == 0;
    for (size_t g = 0; g < c->globs.n; g++)
        if (tnf_glob_match(c->globs.items[g], name))
            c->hit[g] = any = true;
    return any;
}

static bool make_listing(listing *l, call *c, const input *in)
{
    const tnf_object *o;
    *l = (listing) { 0 };
    l->items = calloc(in->info->objects + 1, sizeof *l->items);
    for (size_t i = 0; l->items && (o = tnf_at(in->file, i)); i++)
        if (match_globs(c, o->name)) {
            c->taken++;
            if (!c->how->exclude.n || !glob_any(&c->how->exclude, o->name))
                l->items[l->n++] = (ls_item) { o, i };
        }
    c->left += l->n;
    return l->items != NULL;
}

static void show_sums(call *c, const input *in, stat_sums *sums)
{
    ls_sort_sums(sums, c->how);
    if (c->how->json)
        sums_as_json(in, sums);
    else if (c->how->tsv)
        sums_as_tsv(in, sums, c->several);
    else if (sums->ngroups > 0 || in->info->objects == 0)
        ls_print_sums(c->cli, sums, &c->total);
}

static void show_listing(call *c, const input *in, listing *l)
{
    ls_sort(l, c->how);
    if (c->how->json)
        as_json(in, l);
    else if (c->how->tsv)
        for (size_t i = 0; i < l->n; i++)
            tsv_object(in, l->items[i].object, c->how, c->several);
    else if (l->n > 0 || in->info->objects == 0)
        ls_print(c->cli, l, c->how, &c->total);
}

static int show_input(call *c, const input *in)
{
    listing l;
    stat_sums sums = { 0 };
    bool ok = make_listing(&l, c, in); /* also notes which patterns matched something */
    bool people = !c->how->json && !c->how->tsv;
    if (ok && c->depth)
        ok = stat_sums_make(&sums, in, &c->globs, &c->how->exclude, c->depth);
    if (ok && people && c->several && (l.n > 0 || in->info->objects == 0)) {
        fputs(c->shown++ ? "\n" : "", stdout);
        put_safe(stdout, in->name, strlen(in->name), false);
        fputs(":\n", stdout);
    }
    if (ok && c->depth)
        show_sums(c, in, &sums);
    else if (ok)
        show_listing(c, in, &l);
    stat_sums_free(&sums);
    free(l.items);
    return ok ? EXIT_DONE : memory_error();
}

static int list_file(call *c, const char *path)
{
    input in;
    input_options how = c->how->in;
    how.incomplete = true; /* show the available part of an incomplete model */
    int code = input_open(&in, c->cli, &how, path);
    if (code == EXIT_DONE)
        code = show_input(c, &in);
    input_close(&in);
    return code;
}

/* --------------------------------------------------------- files or patterns */

static bool is_there(const char *path)
{
    struct stat st;
    return !strcmp(path, "-") || strstr(path, "://") || stat(path, &st) == 0;
}

/* An argument after the first file is a file if a file of that name exists, else a pattern. If it
 * could be both, the user must decide. */
static int check_both(const call *c, const char *first, char **others, int n)
{
    input in;
    tnf_error error;
    int code = EXIT_DONE, opened;
    bool any = false;
    for (int i = 0; i < n && !any; i++) /* a path or a plain word? */
        any = is_there(others[i]) && !strpbrk(others[i], "/");
    if (!any || input_is_stream(first))
        return EXIT_DONE;
    input_options how = c->how->in;
    how.incomplete = true;
    cli_state quiet = { .command = c->cli->command, .quiet = true };
    tnf_status status = input_try(&in, &quiet, &how, first, &opened, &error);
    for (int i = 0; status == TNF_OK && i < n && code == EXIT_DONE; i++)
        if (is_there(others[i]) && tnf_find(in.file, others[i]))
            code = usage_error("'%s' is the name of a file, and of a tensor in '%s'; write './%s' "
                               "for the file, or '--match %s' for the tensor",
                               others[i], first, others[i], others[i]);
    input_close(&in);
    return code;
}

/* Moves the files to the front. Returns their number. */
static int part_files(call *c, int argc, char **argv, const char **globs)
{
    int files = 1;
    for (int i = 1; i < argc; i++) {
        if (is_there(argv[i]))
            argv[files++] = argv[i];
        else
            globs[c->globs.n++] = argv[i];
    }
    for (size_t i = 0; i < c->how->match.n; i++)
        globs[c->globs.n++] = c->how->match.items[i];
    c->globs.items = globs;
    c->several = files > 1;
    return files;
}

/* Reports patterns without a match, since they are probably mistakes. */
static int report_idle(const call *c, const char *name)
{
    int code = EXIT_DONE;
    for (size_t g = 0; g < c->globs.n; g++) {
        const char *glob = c->globs.items[g];
        if (c->hit[g])
            continue;
        char text[400];
        bool is_match = false;
        for (size_t i = 0; i < c->how->match.n; i++)
            is_match = is_match || c->how->match.items[i] == glob;
        snprintf(text, sizeof text, "no tensor matches '%.200s'%s", glob,
                 is_match || strpbrk(glob, "*?[") ? "" : ", and no file has this name");
        code = EXIT_USAGE;
        if (c->several)
            usage_error("%s", text);
        else
            file_message(name, "", TNF_NO_OFFSET, text);
    }
    return code;
}

static int run_files(call *c, int files, char **argv)
{
    int worst = EXIT_DONE;
    for (int i = 0; i < files; i++) {
        int code = list_file(c, argv[i]);
        worst = code > worst ? code : worst;
    }
    if (c->shown > 1)
        ls_print_total(&c->total, c->shown);
    if (worst != EXIT_DONE) /* a file that could not be read may have matching tensors */
        return worst;
    if (c->taken > 0 && c->left == 0)
        return nothing_selected(files > 1 ? "all files" : shown_path(argv[0]), c->globs.n,
                                c->how->exclude.n);
    return report_idle(c, shown_path(argv[0]));
}

static int run_ls(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const ls_options *o = opts;
    call c = { .cli = cli, .how = o };
    if (o->json && o->tsv)
        return usage_error("--json and --tsv cannot be combined");
    if (o->depth && o->details)
        return usage_error("--depth and --long cannot be combined");
    if (o->depth && !opt_count(&c.depth, o->depth))
        return usage_error("--depth takes a number from 1 to 1000, not '%s'", o->depth);
    int code = check_both(&c, argv[0], argv + 1, argc - 1);
    if (code != EXIT_DONE)
        return code;
    const char **globs = calloc((size_t)argc + o->match.n, sizeof *globs);
    c.hit = calloc((size_t)argc + o->match.n, sizeof *c.hit);
    if (globs && c.hit)
        code = run_files(&c, part_files(&c, argc, argv, globs), argv);
    else
        code = memory_error();
    free(globs);
    free(c.hit);
    return code;
}

static const opt table[] = {
    { "json", 0, OPT_FLAG, offsetof(ls_options, json), NULL, NULL,
      "Print one JSON document for each FILE." },
    { "tsv", 0, OPT_FLAG, offsetof(ls_options, tsv), NULL, NULL,
      "Print lines of name, dtype, shape and bytes, separated by tabs; with several "
      "FILEs, the file comes first. With --long, print one line per part, with layout, order, "
      "role, encoding, offset, stored bytes, decoded bytes and digest. With --depth, print "
      "prefix, tensors, parameters and bytes." },
    { "long", 'l', OPT_FLAG, offsetof(ls_options, details), NULL, NULL,
      "Show where and how the bytes of each tensor are stored, and their digest." },
    { "match", 0, OPT_LIST, offsetof(ls_options, match), "GLOB", NULL,
      "List only tensors whose name matches; the same as a GLOB after FILE. May be repeated." },
    { "select", 0, OPT_LIST, offsetof(ls_options, match), "GLOB", NULL, "The same as --match." },
    { "exclude", 0, OPT_LIST, offsetof(ls_options, exclude), "GLOB", NULL,
      "Leave out the tensors whose name matches. May be repeated." },
    { "sort", 0, OPT_CHOICE, offsetof(ls_options, sort), "KEY", LS_SORTS,
      "Sort by name, by size (the largest first), by offset in the file or by element type. "
      "Without it, the order is the file's own." },
    { "reverse", 'r', OPT_FLAG, offsetof(ls_options, reverse), NULL, NULL, "Reverse the order." },
    { "depth", 0, OPT_TEXT, offsetof(ls_options, depth), "N", NULL,
      "Print sums instead of tensors: one line for all names that share their first N components, "
      "which dots and slashes separate." },
    INPUT_OPTIONS(ls_options, in),
    READER_OPTION(ls_options, in),
    ALSO_IN_OPTION(ls_options, in),
    { 0 },
};

static const example examples[] = {
    { "tenfold ls model.safetensors", "all tensors" },
    { "tenfold ls -l model.safetensors 'blocks.0.*'", "the tensors of one block, with offsets" },
    { "tenfold ls --sort size a.safetensors b.safetensors",
      "two files, the largest tensors first" },
    { "tenfold ls --depth 2 model.safetensors", "parameters and bytes of each block" },
    { "tenfold ls --tsv model.gptrs | cut -f1", "names alone, for a script" },
    { 0 },
};

const command cmd_ls = {
    .name = "ls",
    .alias = "list",
    .args = "FILE... [GLOB...]",
    .summary = "list the tensors of files",
    .about =
        "Lists the tensors in file order: name, element type, shape, parameters and size, and "
        "the total. A model with missing files is listed as far as its index describes it. On "
        "a terminal, long names are shortened to fit.\n\nAfter the first FILE, an argument that "
        "names a file is another FILE; any other is a GLOB. With GLOBs, lists only tensors whose "
        "name matches one of them: * matches anything (also dots and slashes), ? one character, "
        "[a-z] one of several characters, and \\ takes the next character literally.\n\nNames "
        "are printed safely for a terminal: control characters "
        "and bytes that are not UTF-8 become \\n or \\x1b, and a backslash is doubled.",
    .examples = examples,
    .table = table,
    .size = sizeof(ls_options),
    .min_args = 1,
    .max_args = -1,
    .run = run_ls,
};
