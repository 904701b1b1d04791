/* SPDX-License-Identifier: MIT */
/* Prints the result of finishing a plan. */
#include "jobs.h"
#include "out.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/build.h>

static const char *text_of(const tnf_value *v)
{
    return v && v->kind == TNF_STRING ? v->as.s : "";
}

static uint64_t number_of(const tnf_value *v)
{
    return !v ? 0 : v->kind == TNF_UINT ? v->as.u : v->kind == TNF_INT ? (uint64_t)v->as.i : 0;
}

static bool is_true(const tnf_value *v)
{
    return v && v->kind == TNF_BOOL && v->as.b;
}

static size_t count_of(const tnf_value *v)
{
    return v && v->kind == TNF_ARRAY ? v->n : 0;
}

/* A name or a path: text, or bytes that are not UTF-8. `room` is for free(). */
static tnf_str name_of(const tnf_value *v, char **room)
{
    size_t n = 0;
    const tnf_value *bytes = v && v->kind == TNF_MAP ? tnf_value_get(v, "$bytes") : NULL;
    *room = NULL;
    if (v && v->kind == TNF_STRING)
        return (tnf_str) { v->as.s, v->n };
    if (!bytes || bytes->kind != TNF_STRING || !(*room = calloc(1, base64_room(bytes->n) + 1)) ||
        !base64_take(*room, &n, bytes->as.s, bytes->n))
        return (tnf_str) { "", 0 };
    return (tnf_str) { *room, n };
}

static void put_named(const tnf_value *v)
{
    char *room;
    tnf_str name = name_of(v, &room);
    put_name(stdout, name);
    free(room);
}

/* Prints hashes like `tenfold hash`. */
static void put_hashes(const tnf_value *result)
{
    const tnf_value *files = tnf_value_get(result, "files");
    for (size_t i = 0; i < count_of(files); i++) {
        const char *hash = text_of(tnf_value_get(&files->as.items[i], "hash"));
        const char *hex = strchr(hash, ':');
        printf("v%d:%s  ", TNF_HASH_VERSION, hex ? hex + 1 : hash);
        put_named(tnf_value_get(&files->as.items[i], "file"));
        putchar('\n');
    }
}

static void put_problem(const char *file, const tnf_value *problem)
{
    const tnf_value *offset = tnf_value_get(problem, "offset");
    const char *message = text_of(tnf_value_get(problem, "message"));
    char text[512], *room;
    tnf_str tensor = name_of(tnf_value_get(problem, "tensor"), &room);
    if (tensor.n && !strstr(message, tensor.p))
        snprintf(text, sizeof text, "'%.*s': %s", (int)shown_bytes(tensor.p, tensor.n, 200),
                 tensor.p, message);
    else
        snprintf(text, sizeof text, "%s", message);
    free(room);
    file_message(file, "", offset && offset->kind != TNF_NULL ? number_of(offset) : TNF_NO_OFFSET,
                 text);
}

static void put_verified(const tnf_value *result)
{
    const tnf_value *files = tnf_value_get(result, "files");
    for (size_t i = 0; i < count_of(files); i++) {
        const tnf_value *file = &files->as.items[i], *problems = tnf_value_get(file, "problems");
        char *room;
        tnf_str path = name_of(tnf_value_get(file, "file"), &room);
        for (size_t k = 0; k < count_of(problems); k++)
            put_problem(path.p, &problems->as.items[k]);
        put_name(stdout, path);
        free(room);
        printf(": %s (%" PRIu64 " parts checked, %" PRIu64 " without a digest)\n",
               is_true(tnf_value_get(file, "ok")) ? "ok" : "FAILED",
               number_of(tnf_value_get(file, "checked")),
               number_of(tnf_value_get(file, "undigested")));
    }
}

static void put_written(const cli_state *cli, const tnf_value *result)
{
    const char *hash = text_of(tnf_value_get(result, "hash")), *hex = strchr(hash, ':');
    if (cli->quiet)
        return;
    put_named(tnf_value_get(result, "out"));
    if (is_true(tnf_value_get(result, "finished_before"))) {
        puts(": already finished");
        return;
    }
    printf(": %s, %" PRIu64 " bytes", text_of(tnf_value_get(result, "format")),
           number_of(tnf_value_get(result, "size")));
    if (hex)
        printf(", v%d:%s", TNF_HASH_VERSION, hex + 1);
    putchar('\n');
}

static void put_answers(const tnf_value *result)
{
    const tnf_value *queries = tnf_value_get(result, "queries");
    for (size_t i = 0; i < count_of(queries); i++) {
        const tnf_value *q = &queries->as.items[i], *hits = tnf_value_get(q, "hits");
        for (size_t k = 0; k < count_of(hits); k++) {
            const tnf_value *score = tnf_value_get(&hits->as.items[k], "score");
            put_named(tnf_value_get(q, "word"));
            putchar('\t');
            put_named(tnf_value_get(&hits->as.items[k], "word"));
            printf("\t%.6f\n",
                   score && score->kind == TNF_FLOAT ? score->as.f64 : (double)number_of(score));
        }
    }
}

/* Prints each item of the list as a line of JSON. */
static void put_rows(const tnf_value *list)
{
    json j = { stdout, false };
    for (size_t i = 0; i < count_of(list); i++) {
        json_value(&j, &list->as.items[i]);
        j.comma = false;
        putchar('\n');
    }
}

static void put_result(const cli_state *cli, const char *job, const tnf_value *result)
{
    const tnf_value *files = tnf_value_get(result, "files");
    if (strcmp(job, "hash") == 0)
        put_hashes(result);
    else if (strcmp(job, "verify") == 0)
        put_verified(result);
    else if (strcmp(job, "convert") == 0)
        put_written(cli, result);
    else if (strcmp(job, "similar") == 0)
        put_answers(result);
    else if (strcmp(job, "diff") == 0)
        put_rows(tnf_value_get(result, "differences"));
    for (size_t i = 0; strcmp(job, "stat") == 0 && i < count_of(files); i++)
        put_rows(tnf_value_get(&files->as.items[i], "tensors"));
}

/* The exit code that the plain command would return. */
static int exit_verdict(const char *job, const tnf_value *result)
{
    bool good = true;
    const tnf_value *queries = tnf_value_get(result, "queries");
    if (strcmp(job, "verify") == 0)
        good = is_true(tnf_value_get(result, "ok"));
    else if (strcmp(job, "diff") == 0)
        good = is_true(tnf_value_get(result, "same"));
    for (size_t i = 0; i < count_of(queries); i++)
        good = good && is_true(tnf_value_get(&queries->as.items[i], "found"));
    return good ? EXIT_DONE : EXIT_DIFFERS;
}

static int show_result(const cli_state *cli, const loaded_plan *p, tnf_str text, bool as_json)
{
    tnf_error error;
    tnf_builder *b;
    tnf_value result;
    if (tnf_builder_new(&b, NULL, &error) != TNF_OK)
        return file_error(p->path, &error);
    int code = EXIT_DONE;
    if (tnf_builder_parse(&result, b, text.p, text.n, &error) != TNF_OK) {
        code = file_error(p->path, &error);
    } else {
        if (as_json)
            fwrite(text.p, 1, text.n, stdout);
        else
            put_result(cli, p->info->job, &result);
        code = exit_verdict(p->info->job, &result);
    }
    tnf_builder_free(b);
    return code;
}

int plan_finish(const cli_state *cli, const loaded_plan *p, const tnf_job_how *how, bool as_json)
{
    tnf_error error;
    tnf_str text;
    tnf_status status = tnf_job_finish(&text, p->job, how, &error);
    if (!was_done(status))
        return file_error(p->path, &error);
    int code = show_result(cli, p, text, as_json);
    if (status == TNF_EUNSYNCED)
        return file_error(p->path, &error);
    /* Receipts are removed only after a result that is not a file has been printed. */
    if (flush_out() == 0 && (code == EXIT_DONE || code == EXIT_DIFFERS) &&
        strcmp(p->info->mode, "rows") == 0 && tnf_job_abort(p->job, how, &error) != TNF_OK)
        return file_error(p->path, &error);
    return code;
}
