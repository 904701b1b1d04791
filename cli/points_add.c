/* SPDX-License-Identifier: MIT */
/* tenfold points add FILE: appends points from standard input as one batch: all or none.
 *
 * A CSV record becomes a line of JSON, which the library reads, so that both have the same rules.
 * The first record is a header if one of its fields is "app", "id" or "offset", or if its last field is
 * not a number. The column "app" has application data (as JSON), "id" and "offset" are ignored, and every
 * other column is a coordinate.
 */
#include "array.h"
#include "grow.h"
#include "points.h"
#include "stop.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct text {
    char *p;
    size_t n, room;
    bool failed;
} text;

typedef struct adding {
    tnf_points *points;
    tnf_point *batch;
    size_t n, room;
    unsigned long line;
    char *record; /* the input line */
    size_t record_room;
    text made;   /* a line of JSON from a record of CSV */
    text fields; /* the fields of the record, each NUL-terminated */
    size_t *at;  /* the position of each field */
    size_t nfields, fields_room;
    int app, id, offset; /* columns; -1: none */
    bool has_head;
} adding;

static void put_text(text *t, const char *p, size_t n)
{
    if (t->n + n + 1 > t->room) {
        size_t room = (t->n + n + 1) * 2;
        char *more = realloc(t->p, room);
        if (!more) {
            t->failed = true;
            return;
        }
        t->p = more;
        t->room = room;
    }
    memcpy(t->p + t->n, p, n);
    t->n += n;
    t->p[t->n] = 0;
}

static int bad_input(const adding *a, const char *message)
{
    char where[64];
    snprintf(where, sizeof where, "line %lu: ", a->line);
    file_message("standard input", where, TNF_NO_OFFSET, message);
    return EXIT_BAD;
}

/* -------------------------------------------------------------------- batch */

static int add_line(adding *a, const char *line, size_t n)
{
    tnf_error error;
    tnf_point *more = grow_array(a->batch, a->n, &a->room, sizeof *more, 1024);
    if (!more)
        return memory_error();
    a->batch = more;
    tnf_status status = tnf_points_parse(&a->batch[a->n], a->points, line, n, &error);
    if (status == TNF_ENOMEM)
        return memory_error();
    if (status != TNF_OK)
        return bad_input(a, error.message);
    a->n++;
    return EXIT_DONE;
}

/* Reads a line without its line end; returns -1 at the end of the input. */
static ssize_t next_line(adding *a)
{
    ssize_t n = getline(&a->record, &a->record_room, stdin);
    if (n < 0)
        return -1;
    a->line++;
    while (n > 0 && (a->record[n - 1] == '\n' || a->record[n - 1] == '\r'))
        n--;
    return n;
}

static int add_json(adding *a)
{
    int code = EXIT_DONE;
    for (ssize_t n; code == EXIT_DONE && (n = next_line(a)) >= 0;) {
        size_t blank = strspn(a->record, " \t\r\n");
        if (blank < (size_t)n)
            code = add_line(a, a->record, (size_t)n);
    }
    return code;
}

/* ---------------------------------------------------------------------- CSV */

static bool begin_field(adding *a)
{
    size_t *more = grow_array(a->at, a->nfields, &a->fields_room, sizeof *more, 64);
    if (!more)
        return false;
    a->at = more;
    a->at[a->nfields++] = a->fields.n;
    return true;
}

/* Splits the current record. A record with quotes may continue on the next line. */
static int split_fields(adding *a, size_t n)
{
    bool quoted = false;
    a->nfields = a->fields.n = 0;
    if (!begin_field(a))
        return memory_error();
    for (;;) {
        for (const char *p = a->record; p < a->record + n; p++) {
            if (quoted && p[0] == '"' && p + 1 < a->record + n && p[1] == '"') {
                put_text(&a->fields, p++, 1);
            } else if (*p == '"') {
                quoted = !quoted;
            } else if (*p == ',' && !quoted) {
                put_text(&a->fields, "", 1);
                if (!begin_field(a))
                    return memory_error();
            } else {
                put_text(&a->fields, p, 1);
            }
        }
        if (!quoted)
            break;
        ssize_t more = next_line(a);
        if (more < 0)
            return bad_input(a, "missing closing quote");
        put_text(&a->fields, "\n", 1);
        n = (size_t)more;
    }
    put_text(&a->fields, "", 1);
    return a->fields.failed ? memory_error() : EXIT_DONE;
}

static const char *field_text(const adding *a, size_t i)
{
    const char *p = a->fields.p + a->at[i];
    return p + strspn(p, " \t");
}

/* Returns NaN or an infinity as a JSON string, since JSON has no such numbers; NULL for any other
 * text. Accepts the spellings of Tenfold's CSV and of other programs. */
static const char *odd_number(const char *s)
{
    bool minus = *s == '-';
    if (!strcasecmp(s, "nan"))
        return "\"NaN\"";
    if (!strcasecmp(s + minus, "inf") || !strcasecmp(s + minus, "infinity"))
        return minus ? "\"-Infinity\"" : "\"Infinity\"";
    return NULL;
}

static bool is_number(const char *s)
{
    return isdigit((unsigned char)s[*s == '-']) || odd_number(s);
}

static void take_head(adding *a)
{
    bool head = !is_number(field_text(a, a->nfields - 1));
    for (size_t i = 0; i < a->nfields; i++) {
        const char *name = field_text(a, i);
        int *column = !strcmp(name, "app")      ? &a->app
                      : !strcmp(name, "id")     ? &a->id
                      : !strcmp(name, "offset") ? &a->offset
                                                : NULL;
        head = head || column;
        if (column)
            *column = (int)i;
    }
    a->has_head = head;
}

/* Writes a text in quotes. It leaves out characters that would end the quotes, since the text is
 * wrong anyway. */
static void json_field(text *t, const char *f)
{
    put_text(t, "\"", 1);
    for (; *f; f++)
        if (*f != '"' && *f != '\\' && (unsigned char)*f >= 0x20)
            put_text(t, f, 1);
    put_text(t, "\"", 1);
}

/* {"app":…,"values":[…]} of the fields. */
static int add_record(adding *a)
{
    text *t = &a->made;
    bool first = true;
    t->n = 0;
    put_text(t, "{\"app\":", 7);
    const char *app = a->app >= 0 && (size_t)a->app < a->nfields ? field_text(a, (size_t)a->app)
                                                                 : "";
    put_text(t, *app ? app : "null", *app ? strlen(app) : 4);
    put_text(t, ",\"values\":[", 11);
    for (size_t i = 0; i < a->nfields; i++) {
        const char *f = field_text(a, i), *odd = odd_number(f);
        if ((int)i == a->app || (int)i == a->id || (int)i == a->offset)
            continue;
        put_text(t, first ? "" : ",", first ? 0 : 1);
        if (odd)
            put_text(t, odd, strlen(odd));
        else if (is_number(f))
            put_text(t, f, strlen(f));
        else /* the library reports the error */
            json_field(t, f);
        first = false;
    }
    put_text(t, "]}", 2);
    return t->failed ? memory_error() : add_line(a, t->p, t->n);
}

static int add_csv(adding *a)
{
    int code = EXIT_DONE;
    bool begun = false;
    a->app = a->id = a->offset = -1;
    for (ssize_t n; code == EXIT_DONE && (n = next_line(a)) >= 0;) {
        if (n == 0)
            continue;
        code = split_fields(a, (size_t)n);
        if (code == EXIT_DONE && !begun)
            take_head(a);
        if (code == EXIT_DONE && (begun || !a->has_head))
            code = add_record(a);
        begun = true;
    }
    return code;
}

/* ---------------------------------------------------------------------- add */

static void put_json(const adding *a, const tnf_point_id *ids)
{
    char id[TNF_POINT_ID_TEXT];
    json j = { stdout, false };
    json_open(&j, '{');
    json_key(&j, "added");
    json_uint(&j, a->n);
    json_key(&j, "offsets");
    json_open(&j, '[');
    for (size_t i = 0; i < a->n; i++)
        json_uint(&j, ids[i].offset);
    json_close(&j, ']');
    json_key(&j, "ids");
    json_open(&j, '[');
    for (size_t i = 0; i < a->n; i++) {
        tnf_point_id_text(id, ids[i]);
        json_text(&j, id);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    putchar('\n');
}

static int append_points(const cli_state *cli, adding *a, const points_options *o, const char *path)
{
    tnf_error error;
    tnf_point_id *ids = malloc((a->n + 1) * sizeof *ids);
    if (!ids)
        return memory_error();
    stop_state before;
    stop_catch(&before);
    tnf_status status = tnf_points_append(ids, a->points, a->batch, a->n, &error);
    stop_release(&before, status == TNF_ECANCELLED);
    if (was_done(status) && o->json)
        put_json(a, ids);
    else if (was_done(status) && !cli->quiet)
        fprintf(stderr, "%zu point%s added\n", a->n, a->n == 1 ? "" : "s");
    free(ids);
    return status == TNF_OK ? EXIT_DONE : points_error(path, &error);
}

int points_add(const cli_state *cli, const points_options *o, const char *path)
{
    tnf_points_options how;
    tnf_error error;
    adding a = { 0 };
    if (!points_how(&how, o, true))
        return EXIT_USAGE;
    if (tnf_points_open(&a.points, path, &how, &error) != TNF_OK)
        return points_error(path, &error);
    int code = o->csv ? add_csv(&a) : add_json(&a);
    if (code == EXIT_DONE && ferror(stdin)) {
        fputs("tenfold: standard input: cannot be read\n", stderr);
        code = EXIT_IO;
    }
    if (code == EXIT_DONE)
        code = append_points(cli, &a, o, path);
    tnf_points_close(a.points);
    free(a.batch);
    free(a.record);
    free(a.made.p);
    free(a.fields.p);
    free(a.at);
    return code;
}
