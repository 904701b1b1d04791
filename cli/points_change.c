/* SPDX-License-Identifier: MIT */
/* tenfold points rm and compact: deletes points, and frees their space. */
#include "points.h"
#include "stop.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ----------------------------------------------------------------------- rm */

/* An id, or with `unchecked` an offset. */
static bool parse_id(tnf_point_id *out, const char *text, bool unchecked)
{
    tnf_error error;
    char *end;
    *out = (tnf_point_id) { 0 };
    bool bare = number_parse(&out->offset, text, &end) && !*end;
    if (unchecked ? bare : tnf_point_id_parse(out, text, strlen(text), &error) == TNF_OK)
        return true;
    if (unchecked)
        usage_error("points: '%s' is not an offset", text);
    else if (bare)
        usage_error("points: '%s' is only an offset, where another point may be by now; use the id "
                    "that list prints, or --unchecked",
                    text);
    else
        usage_error("points: '%s' is not an id as list prints it, OFFSET:HASH", text);
    return false;
}

bool points_parse_id(tnf_point_id *out, const char *text)
{
    return parse_id(out, text, false);
}

static tnf_status delete_ids(const points_options *o, tnf_points *points, const tnf_point_id *ids,
                             uint64_t *n, tnf_error *error)
{
    unsigned flags = (o->shred ? TNF_POINTS_SHRED : 0) | (o->unchecked ? TNF_POINTS_UNCHECKED : 0);
    tnf_value app = { .kind = TNF_JSON };
    if (!o->app)
        return tnf_points_delete(points, ids, (size_t)*n, flags, error);
    app.as.s = o->app;
    app.n = strlen(o->app);
    return tnf_points_delete_app(n, points, &app, flags, error);
}

static int delete_points(const cli_state *cli, const points_options *o, tnf_points *points,
                         const tnf_point_id *ids, uint64_t n, const char *path)
{
    tnf_error error;
    stop_state before;
    stop_catch(&before);
    tnf_status status = delete_ids(o, points, ids, &n, &error);
    stop_release(&before, status == TNF_ECANCELLED);
    if (was_done(status) && o->json)
        printf("{\"deleted\":%" PRIu64 "}\n", n);
    else if (was_done(status) && !cli->quiet)
        fprintf(stderr, "%" PRIu64 " point%s deleted\n", n, n == 1 ? "" : "s");
    return status == TNF_OK ? EXIT_DONE : points_error(path, &error);
}

static int open_for_change(tnf_points **out, const points_options *o, const char *path)
{
    tnf_points_options how;
    tnf_error error;
    if (!points_how(&how, o, true))
        return EXIT_USAGE;
    return tnf_points_open(out, path, &how, &error) == TNF_OK ? EXIT_DONE
                                                              : points_error(path, &error);
}

int points_rm(const cli_state *cli, const points_options *o, int argc, char **argv)
{
    tnf_points *points = NULL;
    size_t n = (size_t)argc - 1;
    if (o->app ? n > 0 || o->unchecked : n == 0)
        return usage_error(o->app ? "points: rm takes either --app or ids of points"
                                  : "points: rm needs the ids of points, or --app");
    tnf_point_id *ids = calloc(n + 1, sizeof *ids);
    if (!ids)
        return memory_error();
    int code = EXIT_DONE;
    for (size_t i = 0; i < n && code == EXIT_DONE; i++)
        code = parse_id(&ids[i], argv[i + 1], o->unchecked) ? EXIT_DONE : EXIT_USAGE;
    if (code == EXIT_DONE)
        code = open_for_change(&points, o, argv[0]);
    if (code == EXIT_DONE)
        code = delete_points(cli, o, points, ids, n, argv[0]);
    tnf_points_close(points);
    free(ids);
    return code;
}

/* ------------------------------------------------------------------ compact */

/* Nothing is printed until the first point has moved, so an error leaves no incomplete document. */
typedef struct moves {
    json json;
    bool begun;
} moves;

static void begin_moves(moves *m)
{
    if (m->begun)
        return;
    m->begun = true;
    json_open(&m->json, '{');
    json_key(&m->json, "moved");
    json_open(&m->json, '[');
}

static void on_moved(void *ctx, uint64_t from, uint64_t to)
{
    moves *m = ctx;
    begin_moves(m);
    json_open(&m->json, '[');
    json_uint(&m->json, from);
    json_uint(&m->json, to);
    json_close(&m->json, ']');
}

static void end_moves(moves *m, const struct stat *before, const struct stat *after)
{
    begin_moves(m);
    json_close(&m->json, ']');
    json_key(&m->json, "before");
    json_uint(&m->json, (uint64_t)before->st_size);
    json_key(&m->json, "after");
    json_uint(&m->json, (uint64_t)after->st_size);
    json_close(&m->json, '}');
    putchar('\n');
}

static int compact_points(const cli_state *cli, const points_options *o, tnf_points *points,
                          const char *path)
{
    tnf_error error;
    struct stat before, after;
    moves list = { .json = { stdout, false } };
    unsigned flags = o->drop_unknown ? TNF_POINTS_DROP_UNKNOWN : 0;
    if (stat(path, &before) != 0)
        memset(&before, 0, sizeof before);
    stop_state caught;
    stop_catch(&caught);
    tnf_status status = tnf_points_compact(points, flags, o->json ? on_moved : NULL, &list, &error);
    stop_release(&caught, status == TNF_ECANCELLED);
    if (!was_done(status))
        return points_error(path, &error);
    if (stat(path, &after) != 0)
        memset(&after, 0, sizeof after);
    if (o->json)
        end_moves(&list, &before, &after);
    else if (!cli->quiet)
        fprintf(stderr, "%" PRIu64 " bytes became %" PRIu64 "\n", (uint64_t)before.st_size,
                (uint64_t)after.st_size);
    return status == TNF_OK ? EXIT_DONE : points_error(path, &error);
}

int points_compact(const cli_state *cli, const points_options *o, const char *path)
{
    tnf_points *points = NULL;
    int code = open_for_change(&points, o, path);
    if (code == EXIT_DONE)
        code = compact_points(cli, o, points, path);
    tnf_points_close(points);
    return code;
}
