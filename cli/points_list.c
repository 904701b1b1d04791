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
    uint64_t n;
    char *text; /* application data as JSON, for text and CSV */
    size_t text_n;
} listing;

static bool shows_numbers(const listing *l)
{
    return l->space && l->space->type && type_readable(l->space->type);
}

/* --------------------------------------------------------------------- JSON */

static void json_values(listing *l, const tnf_point *p)
{
    json *j = &l->j;
    json_key(j, "values");
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

static void json_point(listing *l, const tnf_point *p, const tnf_value *app)
{
    json *j = &l->j;
    json_open(j, '{');
    json_key(j, "offset");
    json_uint(j, p->offset);
    json_key(j, "app");
    if (app)
        json_value(j, app);
    else
        json_null(j);
    json_values(l, p);
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

/* Application data as JSON in l->text. */
static tnf_status app_text(listing *l, const tnf_value *app, tnf_error *error)
{
    free(l->text);
    l->text = NULL;
    FILE *to = open_memstream(&l->text, &l->text_n);
    if (to) {
        json j = { to, false };
        if (app)
            json_value(&j, app);
        if (fclose(to) == 0 && l->text)
            return TNF_OK;
    }
    return cat_fail(error, TNF_ENOMEM, "out of memory");
}

static void text_point(listing *l, const tnf_point *p)
{
    printf("%" PRIu64 "  ", p->offset);
    if (l->text_n)
        put_safe(stdout, l->text, l->text_n, false);
    else
        putchar('-');
    putchar(' ');
    if (!shows_numbers(l)) {
        printf(" (%zu bytes)\n", p->vector_n);
        return;
    }
    element_run e;
    elements_begin(&e, l->space->type, p->vector, (size_t)l->space->elements);
    for (size_t i = 0; i < l->space->elements && i < VALUES_SHOWN; i++) {
        char number[ELEMENT_TEXT];
        element_text(&e, i, number);
        printf(" %s", number);
    }
    if (l->space->elements > VALUES_SHOWN)
        printf(" ... (%" PRIu64 ")", l->space->elements);
    putchar('\n');
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
    fputs("offset,app", stdout);
    for (uint64_t i = 0; l->space && i < l->space->elements; i++)
        printf(",%" PRIu64, i);
    fputs("\r\n", stdout);
}

static void csv_point(listing *l, const tnf_point *p)
{
    printf("%" PRIu64 ",", p->offset);
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

static tnf_status take_point(void *ctx, const tnf_point *p, tnf_error *error)
{
    listing *l = ctx;
    const tnf_value *app;
    tnf_status status = tnf_points_value(&app, l->points, p, error);
    if (status != TNF_OK)
        return status;
    bool text = !l->options->json && !l->options->jsonl;
    if (text && (status = app_text(l, app, error)) != TNF_OK)
        return status;
    l->n++;
    if (l->options->csv) {
        csv_point(l, p);
    } else if (text) {
        text_point(l, p);
    } else {
        if (l->options->json)
            json_line(&l->j);
        json_point(l, p, app);
        if (l->options->jsonl) {
            putchar('\n');
            l->j.comma = false;
        }
    }
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
        json_close(&l->j, '}');
        putchar('\n');
    }
    free(l->text);
}

static tnf_status list_all(listing *l, tnf_error *error)
{
    begin_list(l);
    return tnf_points_each(l->points, 0, take_point, l, error);
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

int points_list(const cli_state *cli, const points_options *o, const char *path)
{
    (void)cli;
    tnf_points_options how;
    tnf_error error;
    listing l = { .options = o, .j = { stdout, false } };
    if (o->json + o->jsonl + o->csv > 1)
        return usage_error("points: --json, --jsonl and --csv cannot be combined");
    if (!points_how(&how, o, false))
        return EXIT_USAGE;
    if (tnf_points_open(&l.points, path, &how, &error) != TNF_OK)
        return points_error(path, &error);
    l.space = tnf_points_space(l.points);
    int code = EXIT_DONE;
    if (o->csv && l.space && !shows_numbers(&l)) {
        code = usage_error("points: CSV needs numbers, but these points are %s",
                           l.space->resolution);
    } else if (o->salvage) {
        code = list_salvaged(&l, path, &how);
    } else {
        tnf_status status = list_all(&l, &error);
        end_list(&l);
        if (status != TNF_OK) {
            flush_out();
            code = points_error(path, &error);
        }
    }
    tnf_points_close(l.points);
    return code;
}
