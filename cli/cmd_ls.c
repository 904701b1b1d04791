/* SPDX-License-Identifier: MIT */
/* tenfold ls: the tensors of a file, in file order. */
#include "input.h"
#include "out.h"
#include <inttypes.h>
#include <string.h>

typedef struct options {
    input_options in;
    bool json, tsv, details;
} options;

/* Widths of the columns that are aligned. */
typedef struct widths {
    size_t name, type, shape, size;
} widths;

#define NAME_WIDEST 64u /* a longer name just pushes its line out */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* "[2, 3]"; gives the columns. `to` NULL only counts. */
static size_t put_shape(FILE *to, const tnf_object *o, const char *comma, bool brackets)
{
    size_t n = brackets ? 2 : 0;
    if (to && brackets)
        putc_unlocked('[', to);
    for (uint32_t i = 0; i < o->rank; i++) {
        char dim[32];
        n += (size_t)snprintf(dim, sizeof dim, "%s%" PRIu64, i > 0 ? comma : "", o->shape[i]);
        if (to)
            fputs(dim, to);
    }
    if (to && brackets)
        putc_unlocked(']', to);
    return n;
}

static const char *encoding_text(const tnf_part *p)
{
    return p->payload == TNF_ENCODED  ? tnf_codec_name(p->codec)
           : p->payload == TNF_OPAQUE ? "opaque"
                                      : "raw";
}

/* As it stands in the file, or "crc32c:0x01020304", "sha256:…"; nothing without a digest. */
static int digest_text(char out[160], const tnf_part *p)
{
    if (!p->digest)
        return 0;
    if (p->digest->text.p)
        return snprintf(out, 160, "%.150s", p->digest->text.p);
    if (!p->digest->algorithm)
        return 0;
    bool number = !strncmp(p->digest->algorithm, "crc", 3);
    int n = snprintf(out, 64, "%.40s:%s", p->digest->algorithm, number ? "0x" : "");
    for (size_t i = 0; i < p->digest->n && i < 40; i++)
        n += snprintf(out + n, 3, "%02x", p->digest->bytes[i]);
    return n;
}

/* ------------------------------------------------------------------- JSON */

static void json_part(json *j, const tnf_part *p)
{
    char digest[160];
    json_open(j, '{');
    json_key(j, "role");
    json_text(j, p->role);
    json_key(j, "dtype");
    json_text(j, p->type->id);
    json_key(j, "encoding");
    json_text(j, encoding_text(p));
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
    json_text(j, digest_text(digest, p) ? digest : NULL);
    json_close(j, '}');
}

/* Of some a missing file tells all but the bytes, of others the name alone is known. */
static bool is_unknown(const tnf_object *o)
{
    return o->nparts == 0 && tnf_missing_file(o);
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
    (is_unknown(o) ? json_missing : json_known)(j, o);
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

static void as_json(const input *in, const opt_list *globs)
{
    const tnf_object *o;
    json j = { stdout, false };
    json_open(&j, '{');
    json_key(&j, "file");
    json_text(&j, in->path);
    json_key(&j, "format");
    json_text(&j, in->info->format);
    json_key(&j, "version");
    json_text(&j, in->info->version);
    json_key(&j, "tensors");
    json_open(&j, '[');
    for (size_t i = 0; (o = tnf_at(in->file, i)); i++)
        if (glob_any(globs, o->name)) {
            json_line(&j);
            json_object(&j, o);
        }
    json_close(&j, ']');
    json_close(&j, '}');
    putchar('\n');
}

/* -------------------------------------------------------------------- TSV */

static void tsv_part(const tnf_object *o, const tnf_part *p)
{
    char digest[160] = "";
    digest_text(digest, p);
    printf("\t%s\t%c\t%s\t%s\t", tnf_layout_id(o->layout), o->order == TNF_ORDER_F ? 'F' : 'C',
           p->role, encoding_text(p));
    if (p->payload == TNF_AT || p->payload == TNF_ENCODED)
        printf("%" PRIu64, p->offset);
    printf("\t%" PRIu64 "\t%" PRIu64 "\t%s", p->stored, p->nbytes, digest);
}

static void tsv_missing(const tnf_object *o, bool details)
{
    put_name(stdout, o->name);
    fputs(details ? "\t-\t-\t-\tmissing\t-\t-\t-\t-\t-\t-\t\n" : "\t-\t-\t-\n", stdout);
}

static void tsv_object(const tnf_object *o, bool details)
{
    if (is_unknown(o)) {
        tsv_missing(o, details);
        return;
    }
    uint16_t lines = details ? o->nparts : 1;
    for (uint16_t i = 0; i < lines; i++) {
        put_name(stdout, o->name);
        printf("\t%s\t", details ? o->parts[i].type->id : object_type(o)->id);
        put_shape(stdout, o, ",", false);
        printf("\t%" PRIu64, object_bytes(o));
        if (details)
            tsv_part(o, &o->parts[i]);
        putc_unlocked('\n', stdout);
    }
}

static void as_tsv(const input *in, const opt_list *globs, bool details)
{
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(in->file, i)); i++)
        if (glob_any(globs, o->name))
            tsv_object(o, details);
}

/* ------------------------------------------------------------- for people */

static size_t measure_columns(widths *w, const input *in, const opt_list *globs)
{
    const tnf_object *o;
    size_t n = 0;
    char size[SIZE_TEXT];
    *w = (widths) { 4, 5, 5, 8 };
    for (size_t i = 0; (o = tnf_at(in->file, i)); i++) {
        if (!glob_any(globs, o->name))
            continue;
        size_t name = put_safe(NULL, o->name.p, o->name.n, true);
        w->name = larger(w->name, name < NAME_WIDEST ? name : NAME_WIDEST);
        n++;
        if (is_unknown(o))
            continue;
        w->type = larger(w->type, strlen(object_kind(o)));
        w->shape = larger(w->shape, put_shape(NULL, o, ", ", true));
        size_text(size, object_bytes(o));
        w->size = larger(w->size, strlen(size));
    }
    return n;
}

static void pad(size_t used, size_t width)
{
    put_spaces(stdout, (used < width ? width - used : 0) + 2);
}

static void detail_line(const tnf_part *p)
{
    char digest[160];
    printf("  %-7s", encoding_text(p));
    if (p->payload == TNF_AT || p->payload == TNF_ENCODED)
        printf("  %12" PRIu64, p->offset);
    else
        printf("  %12s", "-");
    printf("  %12" PRIu64, p->stored);
    if (digest_text(digest, p))
        printf("  %s", digest);
}

static void part_lines(const tnf_object *o, const widths *w)
{
    for (uint16_t i = 0; i < o->nparts; i++) {
        const tnf_part *p = &o->parts[i];
        char size[SIZE_TEXT];
        printf("  #%s", p->role);
        pad(3 + strlen(p->role), w->name);
        fputs(p->type->id, stdout);
        pad(strlen(p->type->id), w->type);
        pad(0, w->shape);
        size_text(size, p->nbytes);
        printf("%*s", (int)w->size, size);
        detail_line(p);
        putc_unlocked('\n', stdout);
    }
}

/* What is not known is a dash. */
static void columns(const tnf_object *o, const widths *w)
{
    char size[SIZE_TEXT] = "-";
    bool unknown = is_unknown(o);
    const char *type = unknown ? "-" : object_kind(o);
    pad(put_name(stdout, o->name), w->name);
    fputs(type, stdout);
    pad(strlen(type), w->type);
    if (unknown)
        putc_unlocked('-', stdout);
    pad(unknown ? 1 : put_shape(stdout, o, ", ", true), w->shape);
    if (!unknown)
        size_text(size, object_bytes(o));
    printf("%*s", (int)w->size, size);
}

static void line(const tnf_object *o, const widths *w, bool details)
{
    const char *file = tnf_missing_file(o);
    columns(o, w);
    if (file) {
        fputs("  missing: ", stdout);
        put_safe(stdout, file, strlen(file), true);
    }
    if (details && o->nparts == 1)
        detail_line(&o->parts[0]);
    if (details && o->order == TNF_ORDER_F)
        fputs("  order F", stdout);
    putc_unlocked('\n', stdout);
    if (details && o->nparts > 1)
        part_lines(o, w);
}

static void header(const cli_state *cli, const widths *w, bool details)
{
    fputs(painted(cli, PAINT_BOLD), stdout);
    fputs("NAME", stdout);
    pad(4, w->name);
    fputs("DTYPE", stdout);
    pad(5, w->type);
    fputs("SHAPE", stdout);
    pad(5, w->shape);
    printf("%*s", (int)w->size, "SIZE");
    if (details)
        printf("  %-7s  %12s  %12s  DIGEST", "CODING", "OFFSET", "STORED");
    printf("%s\n", painted(cli, PAINT_OFF));
}

static void for_people(const cli_state *cli, const input *in, const opt_list *globs, bool details)
{
    widths w;
    const tnf_object *o;
    if (measure_columns(&w, in, globs) == 0)
        return;
    header(cli, &w, details);
    for (size_t i = 0; (o = tnf_at(in->file, i)); i++)
        if (glob_any(globs, o->name))
            line(o, &w, details);
}

/* A pattern that takes nothing is more likely a slip than a question. */
static void note_idle_globs(const input *in, const opt_list *globs)
{
    for (size_t g = 0; g < globs->n && !in->cli->quiet; g++) {
        const tnf_object *o;
        size_t i = 0;
        while ((o = tnf_at(in->file, i)) && !tnf_glob_match(globs->items[g], o->name))
            i++;
        if (!o) {
            char text[256];
            snprintf(text, sizeof text, "no tensor matches '%.200s'", globs->items[g]);
            file_message(in->name, "", TNF_NO_OFFSET, text);
        }
    }
}

static int run_ls(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    input in;
    opt_list globs = { (const char **)(void *)(argv + 1), (size_t)argc - 1 };
    if (o->json && o->tsv)
        return usage_error("--json and --tsv exclude each other");
    input_options how = o->in;
    how.incomplete = true; /* what is there is worth seeing */
    int code = input_open(&in, cli, &how, argv[0]);
    if (code == EXIT_DONE) {
        if (o->json)
            as_json(&in, &globs);
        else if (o->tsv)
            as_tsv(&in, &globs, o->details);
        else
            for_people(cli, &in, &globs, o->details);
        note_idle_globs(&in, &globs);
    }
    input_close(&in);
    return code;
}

static const opt table[] = {
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL, "Print one JSON document." },
    { "tsv", 0, OPT_FLAG, offsetof(options, tsv), NULL, NULL,
      "Print lines of name, dtype, shape and bytes, separated by tabs. With --long, print one line "
      "per part, with layout, order, role, encoding, offset, stored bytes, decoded bytes and "
      "digest." },
    { "long", 'l', OPT_FLAG, offsetof(options, details), NULL, NULL,
      "Show where and how the bytes of each tensor are stored, and their digest." },
    INPUT_OPTIONS(options, in),
    READER_OPTION(options, in),
    { 0 },
};

static const example examples[] = {
    { "tenfold ls model.safetensors", "all tensors" },
    { "tenfold ls -l model.safetensors 'blocks.0.*'", "the tensors of one block, with offsets" },
    { "tenfold ls --tsv model.gptrs | cut -f1", "names alone, for a script" },
    { 0 },
};

const command cmd_ls = {
    .name = "ls",
    .alias = "list",
    .args = "FILE [GLOB...]",
    .summary = "list the tensors of a file",
    .about = "Lists the tensors in file order: name, element type, shape and size. A "
             "model with missing files is listed as far as its index describes it. With GLOBs, "
             "lists only tensors whose name matches one of them: * matches anything (also dots and "
             "slashes), ? one character, [a-z] one of several characters, and \\ takes the next "
             "character literally.\n\nNames are printed safely for a terminal: control characters "
             "and bytes that are not UTF-8 become \\n or \\x1b, and a backslash is doubled.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = -1,
    .run = run_ls,
};
