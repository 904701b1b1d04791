/* SPDX-License-Identifier: MIT */
/* tenfold formats: lists the formats and their abilities. */
#include "input.h"
#include "matrix.h"
#include "out.h"
#include "table.h"
#include <string.h>

typedef struct options {
    bool json, matrix;
} options;

static const char *kind_text(tnf_option_kind kind)
{
    static const char *const names[] = { "bool", "uint", "choice", "text" };
    return (unsigned)kind < 4 ? names[kind] : "text";
}

/* ------------------------------------------------------------------- JSON */

static void json_choices(json *j, const char *choices)
{
    const char *word;
    size_t n;
    json_open(j, '[');
    for (size_t i = 0; choices && (n = opt_word(choices, i, &word)) > 0; i++)
        json_str(j, (tnf_str) { word, n });
    json_close(j, ']');
}

static void json_options(json *j, const char *key, const tnf_option_info *o)
{
    json_key(j, key);
    json_open(j, '[');
    for (; o && o->name; o++) {
        json_open(j, '{');
        json_key(j, "name");
        json_text(j, o->name);
        json_key(j, "kind");
        json_text(j, kind_text(o->kind));
        if (o->kind == TNF_OPTION_CHOICE) {
            json_key(j, "choices");
            json_choices(j, o->choices);
        }
        json_key(j, "default");
        json_text(j, o->fallback);
        json_key(j, "help");
        json_text(j, o->help);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void json_format(json *j, const tnf_format_info *f)
{
    json_open(j, '{');
    json_key(j, "name");
    json_text(j, f->name);
    json_key(j, "title");
    json_text(j, f->title);
    json_key(j, "family");
    json_text(j, f->family);
    json_key(j, "extensions");
    json_words(j, f->extensions ? f->extensions : "");
    json_key(j, "read");
    json_bool(j, f->caps & TNF_CAN_READ);
    json_key(j, "write");
    json_bool(j, f->caps & TNF_CAN_WRITE);
    json_key(j, "append");
    json_bool(j, f->caps & TNF_CAN_APPEND);
    json_key(j, "edit");
    json_bool(j, f->caps & TNF_CAN_EDIT);
    json_key(j, "types");
    json_words(j, f->types);
    json_key(j, "layouts");
    json_words(j, f->layouts);
    json_key(j, "metadata");
    json_text(j, f->metadata);
    json_options(j, "read_options", f->read_options);
    json_options(j, "write_options", f->write_options);
    json_close(j, '}');
}

static void all_as_json(void)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    json j = { stdout, false };
    json_open(&j, '{');
    json_key(&j, "formats");
    json_open(&j, '[');
    for (size_t i = 0; tnf_format_at(&f, i); i++) {
        json_line(&j);
        json_format(&j, &f);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    putchar('\n');
}

/* ------------------------------------------------------------- for people */

enum { WAYS_TEXT = 40 };

static const char *format_ways(const tnf_format_info *f, char out[WAYS_TEXT])
{
    static const struct {
        unsigned cap;
        const char *name;
    } all[] = { { TNF_CAN_READ, "read" },
                { TNF_CAN_WRITE, "write" },
                { TNF_CAN_APPEND, "append" },
                { TNF_CAN_EDIT, "edit" } };
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (f->caps & all[i].cap)
            n += (size_t)snprintf(out + n, WAYS_TEXT - n, "%s%s", n ? ", " : "", all[i].name);
    return n ? out : "-";
}

static size_t count_words(const char *words)
{
    size_t n = 0;
    for (const char *p = words + strspn(words, " "); *p; n++) {
        p += strcspn(p, " ");
        p += strspn(p, " ");
    }
    return n;
}

/* The declared types and layouts are those that can be written. If a read-only format declares
 * none, it is unknown what its files may hold. */
static const char *held_words(const tnf_format_info *f, const char *words)
{
    return words ? words : f->caps & TNF_CAN_WRITE ? "any" : "-";
}

/* The columns of the table. */
enum { COLUMNS = 6 };

/* Memory for cells whose text is not in the format's description. */
typedef struct row {
    char types[32], ways[WAYS_TEXT];
} row;

static void fill_cells(const tnf_format_info *f, const char *out[COLUMNS], row *r)
{
    size_t n = f->types ? count_words(f->types) : 0;
    snprintf(r->types, sizeof r->types, "%zu types", n);
    out[0] = f->name;
    out[1] = f->title;
    out[2] = f->extensions && *f->extensions ? f->extensions : "-";
    out[3] = format_ways(f, r->ways);
    out[4] = f->metadata ? f->metadata : "none";
    out[5] = n <= 5 ? held_words(f, f->types) : r->types;
}

static void all_for_people(const cli_state *cli)
{
    static const table_column columns[COLUMNS] = {
        { "NAME", false, false, 0, 0 },      { "TITLE", false, true, 1, 0 },
        { "EXTENSIONS", false, true, 5, 0 }, { "CAN", false, false, 2, 0 },
        { "METADATA", false, false, 4, 0 },  { "TYPES", false, false, 3, 0 },
    };
    const char *cell[COLUMNS];
    row r;
    text_table t;
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    table_begin(&t, cli, columns, COLUMNS, 0);
    do
        for (size_t i = 0; tnf_format_at(&f, i); i++) {
            fill_cells(&f, cell, &r);
            for (size_t c = 0; c < COLUMNS; c++)
                table_text(&t, cell[c]);
            table_row_end(&t);
        }
    while (table_again(&t));
}

static void put_options(const char *title, const tnf_option_info *o)
{
    if (!o || !o->name)
        return;
    putchar('\n');
    put_wrapped(stdout, title, strlen(title), 2);
    for (; o->name; o++) {
        const char *values = o->kind == TNF_OPTION_CHOICE ? o->choices
                             : o->kind == TNF_OPTION_BOOL ? "yes|no"
                             : o->kind == TNF_OPTION_UINT ? "NUMBER"
                                                          : "TEXT";
        char text[400];
        bool stated = o->fallback && *o->fallback;
        snprintf(text, sizeof text, "%s=%s%s%s%s", o->name, values, stated ? " (default " : "",
                 stated ? o->fallback : "", stated ? ")" : "");
        fputs("  ", stdout);
        put_filled(stdout, text, 2, 2);
        put_spaces(stdout, 6);
        put_filled(stdout, o->help, 6, 6);
    }
}

static void put_fact(const char *label, const char *what)
{
    fputs(label, stdout);
    put_filled(stdout, what, strlen(label), strlen(label));
}

static void one_for_people(const tnf_format_info *f)
{
    static const struct {
        const char *name, *what;
    } metadata[] = { { "none", "none, except what belongs to the format itself" },
                     { "text", "a map of texts; other values go into one text, the stash" },
                     { "typed", "a typed tree" } };
    char text[WAYS_TEXT];
    printf("%s: %s\n\n", f->name, f->title);
    put_fact("family      ", f->family && *f->family ? f->family : f->name);
    put_fact("extensions  ", f->extensions && *f->extensions ? f->extensions : "none");
    put_fact("can         ", format_ways(f, text));
    put_fact("types       ", held_words(f, f->types));
    put_fact("layouts     ", held_words(f, f->layouts));
    for (size_t i = 0; i < 3; i++)
        if (f->metadata && !strcmp(f->metadata, metadata[i].name))
            put_fact("metadata    ", metadata[i].what);
    put_options("options for reading (-o, for convert --in-option):\n", f->read_options);
    put_options("options for writing (convert -o):\n", f->write_options);
}

static int run_formats(const cli_state *cli, const void *opts, int argc, char **argv)
{
    const options *o = opts;
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    if (o->matrix && argc > 0)
        return usage_error("formats: --matrix takes no NAME, since it shows all formats");
    if (o->matrix)
        return matrix_print(o->json);
    if (argc == 0) {
        if (o->json)
            all_as_json();
        else
            all_for_people(cli);
        return EXIT_DONE;
    }
    if (!known_format(argv[0], &f))
        return EXIT_USAGE;
    if (o->json) {
        json j = { stdout, false };
        json_format(&j, &f);
        putchar('\n');
    } else {
        one_for_people(&f);
    }
    return EXIT_DONE;
}

static const opt table[] = {
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL, "Print one JSON document." },
    { "matrix", 0, OPT_FLAG, offsetof(options, matrix), NULL, NULL,
      "Show for each pair of formats how much the second keeps of the first." },
    { 0 },
};

static const example examples[] = {
    { "tenfold formats", "all formats" },
    { "tenfold formats safetensors", "what it holds, and its options" },
    { "tenfold formats --matrix", "what each conversion keeps" },
    { 0 },
};

const command cmd_formats = {
    .name = "formats",
    .args = "[NAME]",
    .summary = "list the formats and what each can hold",
    .about = "Lists the formats: their extensions, whether they can be read, written, appended to "
             "('tenfold append') and edited in place ('tenfold meta'), and which "
             "element types and metadata they hold. With a NAME, shows everything about that "
             "format, with the options of its reader and writer.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .max_args = 1,
    .run = run_formats,
};
