/* SPDX-License-Identifier: MIT */
#include "input.h"
#include "out.h"
#include "stop.h"
#include "suggest.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenfold/repair.h>
#include <unistd.h>

bool format_options_parse(format_options *out, const opt_list *list, const char *option)
{
    *out = (format_options) { 0 };
    if (list->n == 0)
        return true;
    out->items = calloc(list->n, sizeof *out->items);
    for (size_t i = 0; out->items && i < list->n; i++) {
        size_t n = strcspn(list->items[i], "=");
        if (n == 0 || !list->items[i][n]) {
            usage_error("%s takes KEY=VALUE, not '%s'", option, list->items[i]);
            format_options_free(out);
            return false;
        }
        char *key = strndup(list->items[i], n);
        if (!key)
            break;
        out->items[out->n++] = (tnf_option) { key, list->items[i] + n + 1 };
    }
    if (out->n == list->n)
        return true;
    exit(memory_error()); /* nothing has been written yet */
}

bool format_options_add(format_options *o, const char *key, const char *value)
{
    if (!value)
        return true;
    tnf_option *items = realloc(o->items, (o->n + 1) * sizeof *items);
    char *copy = items ? strdup(key) : NULL;
    o->items = items ? items : o->items;
    if (!copy)
        exit(memory_error()); /* nothing has been written yet */
    o->items[o->n++] = (tnf_option) { copy, value };
    return true;
}

void format_options_free(format_options *o)
{
    for (size_t i = 0; i < o->n; i++)
        free((void *)(uintptr_t)o->items[i].key);
    free(o->items);
    *o = (format_options) { 0 };
}

bool known_format(const char *name, tnf_format_info *out)
{
    if (tnf_format_named(out, name))
        return true;
    suggestion best;
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    suggest_begin(&best, name, strlen(name));
    for (size_t i = 0; tnf_format_at(&f, i); i++)
        suggest_offer(&best, f.name, strlen(f.name));
    if (best.n > 0)
        usage_error("unknown format '%s'; did you mean '%s'?", name, best.near[0].p);
    else
        usage_error("unknown format '%s'; 'tenfold formats' lists them", name);
    return false;
}

/* Parses a whole number, optionally with K, M, G or T. Refuses 0, which would mean the default. */
static bool parse_amount(uint64_t *out, const char *text)
{
    static const char letters[] = "KMGT";
    char *end;
    uint64_t n;
    if (!number_parse(&n, text, &end) || n == 0)
        return false;
    const char *letter = *end ? strchr(letters, *end) : NULL;
    unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
    if ((*end && (!letter || end[1])) || n > UINT64_MAX >> shift)
        return false;
    *out = n << shift;
    return true;
}

static bool set_limit(tnf_limits *l, const char *key, uint64_t n)
{
    const struct {
        const char *key;
        uint64_t *wide;
        uint32_t *narrow;
    } all[] = {
        { "header_bytes", &l->header_bytes, NULL },
        { "memory", &l->memory, NULL },
        { "objects", &l->objects, NULL },
        { "rank", NULL, &l->rank },
        { "depth", NULL, &l->depth },
        { "name_bytes", NULL, &l->name_bytes },
        { "decoded_bytes", &l->decoded_bytes, NULL },
        { "output_bytes", &l->output_bytes, NULL },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].key, key) != 0)
            continue;
        if (all[i].wide)
            *all[i].wide = n;
        else
            *all[i].narrow = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
        return true;
    }
    usage_error("--limit: unknown limit '%s' (header_bytes, memory, objects, rank, depth, "
                "name_bytes, decoded_bytes, output_bytes)",
                key);
    return false;
}

static bool parse_limits(tnf_limits *out, const opt_list *list)
{
    format_options all;
    if (!format_options_parse(&all, list, "--limit"))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < all.n; i++) {
        uint64_t n = 0;
        ok = parse_amount(&n, all.items[i].value);
        if (!ok)
            usage_error("--limit takes numbers above 0 (with K, M, G or T), not '%s'",
                        all.items[i].value);
        ok = ok && set_limit(out, all.items[i].key, n);
    }
    format_options_free(&all);
    return ok;
}

static void on_warning(void *ctx, const tnf_warning *warning)
{
    const input *in = ctx;
    if (in->cli->verbose && !in->cli->quiet)
        file_message(in->name, "warning: ", warning->offset, warning->message);
}

/* Warnings about a server are always shown, since the user cannot rely on what it sends. */
static void on_remote_warning(void *ctx, const tnf_warning *warning)
{
    const input *in = ctx;
    if (!in->cli->quiet)
        file_message(in->name, "warning: ", warning->offset, warning->message);
}

void request_trace(void *ctx, uint64_t offset, const char *line)
{
    (void)ctx, (void)offset;
    put_safe(stderr, line, strlen(line), false);
    putc('\n', stderr);
}

void input_trace(void *ctx, uint64_t offset, const char *line)
{
    if (offset == TNF_NO_OFFSET)
        fprintf(stderr, "%12s  ", "");
    else
        fprintf(stderr, "%12" PRIu64 "  ", offset);
    request_trace(ctx, offset, line);
}

/* Lets a signal end the wait for a server that does not answer. */
static bool not_stopped(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx, (void)done, (void)total;
    return !stop_asked();
}

char *url_to_show(const char *url)
{
    size_t n = strlen(url) + 1;
    char *shown = malloc(n);
    if (shown)
        tnf_show_url(shown, n, url);
    return shown;
}

/* Refuses "ftp://…", unless a file has that name. */
static bool check_scheme(const char *path)
{
    size_t n = strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    struct stat st;
    if (n < 2 || strncmp(path + n, "://", 3) != 0 || tnf_is_url(path) || stat(path, &st) == 0)
        return true;
    usage_error("unknown URL scheme '%.*s'; known are http, https, s3, gs, az and hf", (int)n,
                path);
    return false;
}

const tnf_open_options *input_how_begin(input_how *how, input *in, const cli_state *cli,
                                        const input_options *options, const char *path)
{
    tnf_format_info known = TNF_FORMAT_INFO_INIT;
    tnf_limits limits = { 0 };
    *in = (input) { .path = path, .name = shown_path(path), .cli = cli };
    if (tnf_is_url(path) && strpbrk(path, "?#@")) {
        in->shown = url_to_show(path);
        in->path = in->name = in->shown ? in->shown : "URL";
    }
    if (!check_scheme(path))
        return NULL;
    if ((options->format && !known_format(options->format, &known)) ||
        !parse_limits(&limits, &options->limits) ||
        !format_options_parse(&how->reader, &options->options, "an option for reading"))
        return NULL;
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        in->bytes = (uint64_t)st.st_size;
    tnf_open_options *o = &how->open;
    *o = (tnf_open_options) { .size = sizeof *o };
    o->format = options->format;
    o->lenient = options->lenient;
    o->salvage = options->salvage;
    o->to_change = options->to_change;
    o->incomplete = options->incomplete;
    o->unpack = true;
    o->access = (tnf_access)options->access;
    o->limits = limits;
    o->options = how->reader.items;
    o->noptions = how->reader.n;
    o->warn = on_warning;
    o->trace = cli->trace ? input_trace : NULL;
    o->ctx = in;
    how->remote = (tnf_url_options) { .size = sizeof how->remote };
    how->remote.trace = o->trace;
    how->remote.warn = on_remote_warning;
    how->remote.progress = not_stopped;
    how->remote.ctx = in;
    o->remote = &how->remote;
    return o;
}

void input_how_end(input_how *how)
{
    format_options_free(&how->reader);
}

bool input_is_stream(const char *path)
{
    struct stat st;
    return !strcmp(path, "-") ||
           (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

/* The library does not open a FIFO by its path, since a program could hang on a FIFO that somebody
 * put there. Here the user has named the path, and shells use such names: /dev/stdin, <(…). */
tnf_status input_stream(tnf_source **out, const char *path, tnf_access access, tnf_error *error)
{
    if (!strcmp(path, "-"))
        return tnf_source_fd(out, STDIN_FILENO, access, error);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        *error = (tnf_error) { .status = TNF_EIO, .offset = TNF_NO_OFFSET };
        snprintf(error->message, sizeof error->message, "cannot open: %s", strerror(errno));
        return TNF_EIO;
    }
    tnf_status status = tnf_source_fd(out, fd, access, error);
    close(fd); /* the source has read everything */
    return status;
}

tnf_status input_try(input *in, const cli_state *cli, const input_options *options,
                     const char *path, int *code, tnf_error *error)
{
    input_how made;
    const tnf_open_options *how = input_how_begin(&made, in, cli, options, path);
    *code = how ? EXIT_DONE : EXIT_USAGE;
    if (!how)
        return TNF_EINVAL;
    tnf_status status;
    tnf_source *source;
    if (input_is_stream(path)) {
        status = input_stream(&source, path, how->access, error);
        if (status == TNF_OK)
            status = tnf_open_source(&in->file, source, how, error);
    } else {
        status = tnf_open(&in->file, path, how, error);
    }
    if (status == TNF_OK)
        in->info = tnf_file_info(in->file);
    input_how_end(&made);
    return status;
}

static void warn_missing(const input *in)
{
    const tnf_info *info = in->info;
    char text[400], with[80] = "";
    if (info->unnamed)
        snprintf(with, sizeof with, ", with %" PRIu64 " tensor%s unknown", info->unnamed,
                 info->unnamed == 1 ? " whose name is" : "s whose names are");
    snprintf(text, sizeof text, "%zu of %zu shards %s missing: '%.200s'%s%s", info->missing,
             info->shards, info->missing == 1 ? "is" : "are", info->first_missing,
             info->missing == 1 ? "" : ", …", with);
    file_message(in->name, "warning: ", TNF_NO_OFFSET, text);
}

int input_open(input *in, const cli_state *cli, const input_options *options, const char *path)
{
    int code;
    tnf_error error;
    tnf_status status = input_try(in, cli, options, path, &code, &error);
    if (status != TNF_OK && code == EXIT_DONE)
        return file_error(in->name, &error);
    if (status == TNF_OK && in->info->missing && !cli->quiet)
        warn_missing(in);
    return code;
}

void input_close(input *in)
{
    tnf_close(in->file);
    in->file = NULL;
    free(in->shown);
    in->shown = NULL;
}

int input_undo(const cli_state *cli, const char *path, bool *undone)
{
    tnf_error error;
    bool did = false;
    struct stat st;
    if (undone)
        *undone = false;
    if (!strcmp(path, "-") || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return EXIT_DONE; /* opening reports the error */
    if (tnf_undo(&did, path, &error) != TNF_OK)
        return file_error(path, &error);
    if (undone)
        *undone = did;
    if (did && !cli->quiet)
        file_message(path, "", TNF_NO_OFFSET,
                     "a change of the metadata was interrupted; the old metadata is restored");
    return EXIT_DONE;
}
