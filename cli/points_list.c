/* SPDX-License-Identifier: MIT */
/* tenfold points FILE: lists all points as text, JSON, lines of JSON or CSV, one at a time. */
#include "array.h"
#include "points.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_SHOWN 8u

typedef struct listing {
    tnf_points *points; /* for application data as a tree */
    const tnf_space *space;
    const points_options *options;
    json j;
    uint64_t n, limit; /* points listed; 0: no limit */
    bool more;         /* the limit was reached, and more points follow */
    tnf_point_id last;
    char *text; /* application data as JSON, for text and CSV */
    size_t text_n;
} listing;

static bool shows_numbers(const listing *l)
{
    return l->space && l->space->type && type_readable(l->space->type);
}

/* --------------------------------------------------------------------- JSON */

static void json_values(listing *l, const tnf_point *p, const tnf_value *words)
{
    json *j = &l->j;
    json_key(j, "values");
    if (words) {
        json_value(j, words);
        return;
    }
    if (!shows_numbers(l)) { /* the type is not a number: show the bytes */
        json_bytes(j, p->vector, p->vector_n);
        return;
    }
    element_run e;
    elements_begin(&e, l->space->type, p->vector, (size_t)l->space->elements);
    json_open(j, '[');
    for (size_t i = 0; i < l->space->elements; i++)
        element_json(&e, i, j);
    json_close(j, ']');
}

static void json_id(json *j, const char *key, tnf_point_id id)
{
    char text[TNF_POINT_ID_TEXT];
    tnf_point_id_text(text, id);
    json_key(j, key);
    json_text(j, text);
}

static void json_point(listing *l, const tnf_point *p, const tnf_value *app, const tnf_value *words)
{
    json *j = &l->j;
    json_open(j, '{');
    json_id(j, "id", p->id);
    json_key(j, "offset");
    json_uint(j, p->id.offset);
    json_key(j, "app");
    if (app)
        json_value(j, app);
    else
        json_null(j);
    json_values(l, p, words);
    json_close(j, '}');
}

static void json_head(listing *l)
{
    const tnf_space *s = l->space;
    json *j = &l->j;
    json_open(j, '{');
    json_key(j, "dims");
    if (s) {
        json_open(j, '[');
        for (uint32_t i = 0; i < s->rank; i++)
            json_uint(j, s->dims[i]);
        json_close(j, ']');
    } else {
        json_null(j);
    }
    json_key(j, "resolution");
    json_text(j, s ? s->resolution : NULL);
    json_key(j, "attributes");
    if (s && s->attributes)
        json_value(j, s->attributes);
    else
        json_null(j);
    json_key(j, "points");
    json_open(j, '[');
}

/* --------------------------------------------------------------- text, CSV */

/* A value as JSON in l->text; none is empty. */
static tnf_status value_text(listing *l, const tnf_value *value, tnf_error *error)
{
    free(l->text);
    l->text = NULL;
    FILE *to = open_memstream(&l->text, &l->text_n);
    if (to) {
        json j = { to, false };
        if (value)
            json_value(&j, value);
        if (fclose(to) == 0 && l->text)
            return TNF_OK;
    }
    return cat_fail(error, TNF_ENOMEM, "out of memory");
}

static void put_id(tnf_point_id id)
{
    char text[TNF_POINT_ID_TEXT];
    tnf_point_id_text(text, id);
    fputs(text, stdout);
}

static void text_numbers(const listing *l, const tnf_point *p)
{
    element_run e;
    elements_begin(&e, l->space->type, p->vector, (size_t)l->space->elements);
    for (size_t i = 0; i < l->space->elements && i < VALUES_SHOWN; i++) {
        char number[ELEMENT_TEXT];
        element_text(&e, i, number);
        printf(" %s", number);
    }
}

static tnf_status text_words(listing *l, const tnf_value *words, tnf_error *error)
{
    for (size_t i = 0; i < words->n && i < VALUES_SHOWN; i++) {
        tnf_status status = value_text(l, tnf_value_item(words, i), error);
        if (status != TNF_OK)
            return status;
        putchar(' ');
        put_safe(stdout, l->text, l->text_n, false);
    }
    return TNF_OK;
}

static tnf_status text_point(listing *l, const tnf_point *p, const tnf_value *words,
                             tnf_error *error)
{
    put_id(p->id);
    fputs("  ", stdout);
    if (l->text_n)
        put_safe(stdout, l->text, l->text_n, false);
    else
        putchar('-');
    putchar(' ');
    tnf_status status = TNF_OK;
    if (words)
        status = text_words(l, words, error);
    else if (shows_numbers(l))
        text_numbers(l, p);
    else
        printf(" (%zu bytes)", p->vector_n);
    if ((words || shows_numbers(l)) && l->space->elements > VALUES_SHOWN)
        printf(" ... (%" PRIu64 ")", l->space->elements);
    putchar('\n');
    return status;
}

/* Writes a quoted text; quotes in it are doubled (RFC 4180). */
static void csv_text(const char *text, size_t n)
{
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"')
            putchar('"');
        putchar(text[i]);
    }
    putchar('"');
}

static void csv_head(const listing *l)
{
    fputs("id,app", stdout);
    for (uint64_t i = 0; l->space && i < l->space->elements; i++)
        printf(",%" PRIu64, i);
    fputs("\r\n", stdout);
}

static void csv_point(listing *l, const tnf_point *p)
{
    put_id(p->id);
    putchar(',');
    if (l->text_n)
        csv_text(l->text, l->text_n);
    element_run e;
    elements_begin(&e, l->space->type, p->vector, (size_t)l->space->elements);
    for (size_t i = 0; i < l->space->elements; i++) {
        char number[ELEMENT_TEXT];
        element_text(&e, i, number);
        printf(",%s", number);
    }
    fputs("\r\n", stdout);
}

/* ------------------------------------------------------------------ listing */

static tnf_status print_point(listing *l, const tnf_point *p, const tnf_value *app,
                              const tnf_value *words, tnf_error *error)
{
    tnf_status status = TNF_OK;
    bool text = !l->options->json && !l->options->jsonl;
    if (text)
        status = value_text(l, app, error);
    if (status != TNF_OK)
        return status;
    if (l->options->csv) {
        csv_point(l, p);
    } else if (text) {
        status = text_point(l, p, words, error);
    } else {
        if (l->options->json)
            json_line(&l->j);
        json_point(l, p, app, words);
        if (l->options->jsonl) {
            putchar('\n');
            l->j.comma = false;
        }
    }
    return status;
}

static tnf_status take_point(void *ctx, const tnf_point *p, tnf_error *error)
{
    listing *l = ctx;
    const tnf_value *app, *words;
    l->more = l->limit && l->n == l->limit;
    if (l->more)
        return TNF_ECANCELLED;
    tnf_status status = tnf_points_value(&app, l->points, p, error);
    if (status != TNF_OK)
        return status;
    status = tnf_points_values(&words, l->points, p, error);
    if (status == TNF_EFORMAT) /* another program encodes them in another way: show the bytes */
        status = TNF_OK;
    if (status == TNF_OK)
        status = print_point(l, p, app, words, error);
    if (status != TNF_OK)
        return status;
    l->n++;
    l->last = p->id;
    if (!ferror(stdout))
        return TNF_OK;
    return cat_fail(error, TNF_EIO,
                    "standard output is closed"); /* the reader of the pipe has exited */
}

static void begin_list(listing *l)
{
    if (l->options->json)
        json_head(l);
    if (l->options->csv)
        csv_head(l);
}

static void end_list(listing *l)
{
    if (l->options->json) {
        json_close(&l->j, ']');
        if (l->more) {
            json_id(&l->j, "next", l->last);
        } else {
            json_key(&l->j, "next");
            json_null(&l->j);
        }
        json_close(&l->j, '}');
        putchar('\n');
    }
    free(l->text);
}

static int list_points(listing *l, const cli_state *cli, tnf_point_id after, const char *path)
{
    char text[TNF_POINT_ID_TEXT];
    tnf_error error;
    begin_list(l);
    tnf_status status = tnf_points_after(l->points, after, take_point, l, &error);
    end_list(l);
    if (status != TNF_OK && !l->more) {
        flush_out();
        return points_error(path, &error);
    }
    if (l->more && !l->options->json && !cli->quiet) {
        flush_out();
        tnf_point_id_text(text, l->last);
        fprintf(stderr, "more points follow: --after %s\n", text);
    }
    return EXIT_DONE;
}

/* Lists the intact points of a damaged file. Its header must be intact. */
static int list_salvaged(listing *l, const char *path, const tnf_points_options *how)
{
    tnf_points_report report = TNF_POINTS_REPORT_INIT;
    tnf_error error;
    begin_list(l);
    tnf_status status = tnf_points_salvage(&report, path, how, take_point, l, &error);
    end_list(l);
    if (status != TNF_OK)
        return points_error(path, &error);
    if (report.problems == 0)
        return EXIT_DONE;
    flush_out();
    fprintf(stderr, "tenfold: ");
    put_safe(stderr, path, strlen(path), false);
    fprintf(stderr,
            ": " TNF_POINTS_FORMAT ": %" PRIu64 " points before the damage at byte %" PRIu64
            " of %" PRIu64 "\n",
            report.points, report.stopped_at, report.file_bytes);
    return points_error(path, &error);
}

static int list_file(listing *l, const cli_state *cli, tnf_point_id after, const char *path)
{
    const points_options *o = l->options;
    tnf_points_options how;
    tnf_error error;
    if (!points_how(&how, o, false))
        return EXIT_USAGE;
    if (tnf_points_open(&l->points, path, &how, &error) != TNF_OK)
        return points_error(path, &error);
    l->space = tnf_points_space(l->points);
    int code;
    if (o->csv && l->space && !shows_numbers(l))
        code = usage_error("points: CSV needs numbers, but these points are %s",
                           l->space->resolution);
    else if (o->salvage)
        code = list_salvaged(l, path, &how);
    else
        code = list_points(l, cli, after, path);
    tnf_points_close(l->points);
    return code;
}

int points_list(const cli_state *cli, const points_options *o, const char *path)
{
    listing l = { .options = o, .j = { stdout, false } };
    tnf_point_id after = { 0 };
    char *end;
    if (o->json + o->jsonl + o->csv > 1)
        return usage_error("points: --json, --jsonl and --csv cannot be combined");
    if (o->salvage && (o->after || o->limit))
        return usage_error("points: --salvage lists all points, so --after and --limit do not fit");
    if (o->limit && (!number_parse(&l.limit, o->limit, &end) || *end || l.limit == 0))
        return usage_error("points: --limit takes a number from 1 on, not '%s'", o->limit);
    if (o->after && !points_parse_id(&after, o->after))
        return EXIT_USAGE;
    return list_file(&l, cli, after, path);
}
