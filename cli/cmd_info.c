/* SPDX-License-Identifier: MIT */
/* tenfold info: describes files. */
#include "input.h"
#include "table.h"
#include <stdlib.h>
#include <string.h>

#define LABEL 12u /* columns */

typedef struct options {
    input_options in;
    bool json;
} options;

/* The totals of one element type, or of one layout other than dense. */
typedef struct tally {
    const char *kind;
    uint64_t tensors, elements, bytes;
} tally;

static uint64_t capped_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Counts the tensors of missing files, including those whose names are unknown. */
static uint64_t count_missing(const tnf_file *file)
{
    uint64_t n = tnf_file_info(file)->unnamed;
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)); i++)
        n += tnf_missing_file(o) != NULL;
    return n;
}

static int larger_first(const void *a, const void *b)
{
    const tally *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Counts tensors by type. A linear search is enough for so few types. Returns their number. */
static size_t count_types(const tnf_file *file, tally *out, size_t room)
{
    size_t n = 0;
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)); i++) {
        if (object_unknown(o))
            continue;
        const char *kind = object_kind(o);
        size_t at = 0;
        while (at < n && strcmp(out[at].kind, kind) != 0)
            at++;
        if (at == room)
            at--; /* the last one takes the rest */
        else if (at == n)
            out[n++] = (tally) { .kind = kind };
        out[at].tensors++;
        out[at].elements = capped_sum(out[at].elements, tnf_elements(o));
        out[at].bytes = capped_sum(out[at].bytes, object_bytes(o));
    }
    qsort(out, n, sizeof *out, larger_first);
    return n;
}

static void put_label(FILE *to, const cli_state *cli, const char *text)
{
    if (*text)
        fprintf(to, "%s%s%s", paint_code(cli, PAINT_BOLD), text, paint_code(cli, PAINT_OFF));
    put_spaces(to, strlen(text) < LABEL ? LABEL - strlen(text) : 1);
}

static void print_label(const cli_state *cli, const char *text)
{
    put_label(stdout, cli, text);
}

static void put_bytes(uint64_t bytes)
{
    char text[SIZE_TEXT];
    size_text(text, bytes);
    if (bytes >= 1024) {
        printf("%s (", text);
        put_grouped(stdout, bytes);
        fputs(" bytes)", stdout);
    } else {
        printf("%s", text);
    }
}

static bool has_blocks(const tnf_file *file)
{
    const tnf_object *o;
    uint32_t elements, bytes;
    for (size_t i = 0; (o = tnf_at(file, i)); i++)
        if (tnf_layout_blocks(&elements, &bytes, o->layout))
            return true;
    return false;
}

static void put_types(const cli_state *cli, const tnf_file *file)
{
    tally types[64];
    size_t n = count_types(file, types, sizeof types / sizeof *types);
    uint64_t elements = 0, bytes = 0;
    size_t width = 0;
    bool blocks = has_blocks(file);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(types[i].kind, "strings/1") != 0) {
            elements = capped_sum(elements, types[i].elements);
            bytes = capped_sum(bytes, types[i].bytes);
        }
        width = strlen(types[i].kind) > width ? strlen(types[i].kind) : width;
    }
    print_label(cli, "parameters");
    put_grouped(stdout, elements);
    if (blocks && elements > 0)
        printf(", %.2f bits each", (double)bytes * 8 / (double)elements);
    putchar('\n');
    for (size_t i = 0; i < n; i++) {
        char size[SIZE_TEXT];
        wrapped_text line;
        size_text(size, types[i].bytes);
        FILE *to = wrap_begin(&line, stdout);
        put_label(to, cli, i == 0 ? "types" : "");
        fprintf(to, "%-*s  ", (int)width, types[i].kind);
        put_grouped(to, types[i].tensors);
        fprintf(to, " tensor%s, ", types[i].tensors == 1 ? "" : "s");
        put_grouped(to, types[i].elements);
        fprintf(to, " element%s, %s\n", types[i].elements == 1 ? "" : "s", size);
        wrap_end(&line, i == 0 ? LABEL + 2 : 2);
    }
}

static void put_extras(const cli_state *cli, const tnf_info *info)
{
    for (size_t i = 0; i < info->nextras; i++) {
        print_label(cli, i == 0 ? "extras" : "");
        put_name(stdout, info->extras[i].key);
        fputs(": ", stdout);
        put_bytes(info->extras[i].bytes.nbytes);
        putchar('\n');
    }
}

/* Shows the requests and bytes that opening took over the network. */
static void put_traffic(const cli_state *cli, const tnf_file *file)
{
    tnf_traffic t = TNF_TRAFFIC_INIT;
    char size[SIZE_TEXT];
    if (!tnf_file_traffic(&t, file))
        return;
    size_text(size, t.bytes);
    print_label(cli, "read");
    put_grouped(stdout, t.requests);
    printf(" request%s, %s\n", t.requests == 1 ? "" : "s", size);
}

static void put_missing(const cli_state *cli, const input *in)
{
    uint64_t n = count_missing(in->file);
    print_label(cli, "missing");
    put_grouped(stdout, in->info->missing);
    fputs(" of ", stdout);
    put_grouped(stdout, in->info->shards);
    fputs(" shards", stdout);
    if (n > 0) {
        fputs(", with ", stdout);
        put_grouped(stdout, n);
        printf(" tensor%s", n == 1 ? "" : "s");
    }
    putchar('\n');
}

static void for_people(const cli_state *cli, const input *in)
{
    const tnf_info *info = in->info;
    print_label(cli, "file");
    put_safe(stdout, in->name, strlen(in->name), false);
    putchar('\n');
    print_label(cli, "format");
    printf("%s%s%s\n", info->format, *info->version ? " " : "", info->version);
    print_label(cli, "size");
    put_bytes(info->size);
    putchar('\n');
    print_label(cli, "tensors");
    put_grouped(stdout, info->objects);
    if (info->objects > 0) {
        fputs(", ", stdout);
        put_bytes(info->payload);
        putchar('\n');
        put_types(cli, in->file);
    } else {
        putchar('\n');
    }
    put_extras(cli, info);
    put_traffic(cli, in->file);
    if (info->missing)
        put_missing(cli, in);
    if (info->nwarnings > 0) {
        print_label(cli, "warnings");
        printf("%zu%s\n", info->nwarnings, cli->verbose ? "" : " (-v shows them)");
    }
    if (info->attrs->n > 0) {
        printf("%sattributes%s\n", paint_code(cli, PAINT_BOLD), paint_code(cli, PAINT_OFF));
        wrapped_text lines;
        put_attrs(wrap_begin(&lines, stdout), info->attrs, 2, cli->verbose);
        wrap_end(&lines, 4);
    }
}

static void as_json(const input *in)
{
    const tnf_info *info = in->info;
    json j = { stdout, false };
    json_open(&j, '{');
    json_key(&j, "file");
    json_text(&j, in->path);
    json_key(&j, "format");
    json_text(&j, info->format);
    json_key(&j, "version");
    json_text(&j, info->version);
    json_key(&j, "size");
    json_uint(&j, info->size);
    json_key(&j, "tensors");
    json_uint(&j, info->objects);
    json_key(&j, "payload");
    json_uint(&j, info->payload);
    json_key(&j, "attrs");
    json_value(&j, info->attrs);
    json_key(&j, "extras");
    json_open(&j, '[');
    for (size_t i = 0; i < info->nextras; i++) {
        json_open(&j, '{');
        json_key(&j, "key");
        json_str(&j, info->extras[i].key);
        json_key(&j, "offset");
        json_uint(&j, info->extras[i].bytes.offset);
        json_key(&j, "nbytes");
        json_uint(&j, info->extras[i].bytes.nbytes);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    if (info->missing) {
        json_key(&j, "missing");
        json_uint(&j, count_missing(in->file));
    }
    tnf_traffic t = TNF_TRAFFIC_INIT;
    if (tnf_file_traffic(&t, in->file)) {
        json_key(&j, "requests");
        json_uint(&j, t.requests);
        json_key(&j, "bytes_read");
        json_uint(&j, t.bytes);
    }
    json_key(&j, "warnings");
    json_open(&j, '[');
    for (size_t i = 0; i < info->nwarnings; i++)
        json_text(&j, info->warnings[i].message);
    json_close(&j, ']');
    json_close(&j, '}');
    putchar('\n');
}

static int run_info(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    int worst = EXIT_DONE;
    const char *between = "";
    input_options how = o->in;
    how.incomplete = true; /* show the available part of an incomplete model */
    for (int i = 0; i < argc; i++) {
        input in;
        int code = input_open(&in, cli, &how, argv[i]);
        if (code == EXIT_DONE && o->json) {
            as_json(&in);
        } else if (code == EXIT_DONE) {
            fputs(between, stdout);
            for_people(cli, &in);
            between = "\n";
        }
        flush_out(); /* keeps the output in order with the messages */
        worst = code > worst ? code : worst;
        input_close(&in);
    }
    return worst;
}

static const opt table[] = {
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL,
      "Print one JSON document for each FILE, each on its own line." },
    INPUT_OPTIONS(options, in),
    READER_OPTION(options, in),
    ALSO_IN_OPTION(options, in),
    { 0 },
};

static const example examples[] = {
    { "tenfold info model.safetensors", "format, size, tensors, metadata" },
    { "tenfold info --json model.gptrs | jq .attrs", "its metadata, for a script" },
    { "tenfold info --trace broken.bin", "how far the reader gets" },
    { 0 },
};

const command cmd_info = {
    .name = "info",
    .args = "FILE...",
    .summary = "show the format and the contents of files",
    .about = "Shows the format of each file and its version, its size, the number of tensors and "
             "parameters by type, and its metadata. Only the index of the file is read.\n\nFILE "
             "may also be the directory or the index file of a model in several files, or - for "
             "standard input.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .run = run_info,
};
