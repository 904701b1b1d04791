/* SPDX-License-Identifier: MIT */
/* tenfold points: creates and compacts VS files; lists, adds and deletes their points. */
#include "points.h"
#include "stop.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_RANK 64u

int points_error(const char *path, const tnf_error *error)
{
    bool system = exit_code(error->status) == EXIT_IO;
    file_message(path, system ? "" : TNF_POINTS_FORMAT ": ", error->offset, error->message);
    return exit_code(error->status);
}

static bool go_on(void *ctx)
{
    (void)ctx;
    return !stop_asked();
}

bool points_how(tnf_points_options *out, const points_options *o, bool write)
{
    *out = (tnf_points_options) { .size = sizeof *out,
                                  .write = write,
                                  .sync = o->no_sync ? TNF_POINTS_NO_SYNC : TNF_POINTS_SYNC,
                                  .pack = (tnf_points_pack)o->pack,
                                  .pack_app = o->pack_app,
                                  .varint_msb = o->msb };
    out->lock = o->no_lock ? TNF_POINTS_NO_LOCK : TNF_POINTS_WAIT;
    if (write)
        out->go_on = go_on;
    if (!o->wait)
        return true;
    char *end;
    errno = 0;
    double seconds = strtod(o->wait, &end);
    if (errno || *end || end == o->wait || !(seconds >= 0) || seconds > 1e6) {
        usage_error("points: --wait takes seconds, not '%s'", o->wait);
        return false;
    }
    out->lock = o->no_lock ? TNF_POINTS_NO_LOCK : TNF_POINTS_TIMEOUT;
    out->timeout_ms = (uint32_t)(seconds * 1000);
    return true;
}

/* ------------------------------------------------------------------- create */

static bool parse_dims(const char *text, uint64_t dims[MAX_RANK], uint32_t *rank)
{
    char *end = NULL;
    for (*rank = 0; text && *rank < MAX_RANK; text = end + 1) {
        if (!number_parse(&dims[*rank], text, &end) || (*end && *end != ','))
            break;
        (*rank)++;
        if (!*end)
            return true;
    }
    usage_error("points: --dims takes numbers separated by commas, not '%s'",
                text ? text : "nothing");
    return false;
}

static void print_created(const tnf_space *space)
{
    json j = { stdout, false };
    json_open(&j, '{');
    json_key(&j, "dims");
    json_open(&j, '[');
    for (uint32_t i = 0; i < space->rank; i++)
        json_uint(&j, space->dims[i]);
    json_close(&j, ']');
    json_key(&j, "resolution");
    json_text(&j, space->type->id);
    json_close(&j, '}');
    putchar('\n');
}

static int create_points(const points_options *o, const char *path)
{
    uint64_t dims[MAX_RANK];
    tnf_points_options how;
    tnf_error error;
    tnf_points *points;
    tnf_value attributes = { .kind = TNF_JSON };
    tnf_space space = { .size = sizeof space, .dims = dims };
    if (!o->dims || !o->resolution)
        return usage_error("points: create needs --dims and --resolution");
    if (!points_how(&how, o, true) || !parse_dims(o->dims, dims, &space.rank))
        return EXIT_USAGE;
    space.type = tnf_type_spelled(strcasecmp(o->resolution, "bool") ? o->resolution : "bit");
    if (!space.type)
        return usage_error("points: unknown type '%s'", o->resolution);
    space.pack = o->pack == TNF_POINTS_SNAPPY;
    if (o->attributes) {
        attributes.as.s = o->attributes;
        attributes.n = strlen(o->attributes);
        space.attributes = &attributes;
    }
    stop_state before;
    stop_catch(&before);
    tnf_status status = tnf_points_create(&points, path, &space, &how, &error);
    stop_release(&before, status == TNF_ECANCELLED);
    if (!was_done(status))
        return points_error(path, &error);
    tnf_points_close(points);
    if (o->json)
        print_created(&space);
    return status == TNF_OK ? EXIT_DONE : points_error(path, &error);
}

/* ----------------------------------------------------------------------- rm */

static int delete_points(const cli_state *cli, const points_options *o, tnf_points *points,
                         char **texts, size_t n, const char *path)
{
    tnf_error error;
    uint64_t *offsets = malloc(n * sizeof *offsets);
    if (!offsets)
        return memory_error();
    for (size_t i = 0; i < n; i++) {
        char *end;
        if (number_parse(&offsets[i], texts[i], &end) && !*end)
            continue;
        free(offsets);
        return usage_error("points: '%s' is not an offset", texts[i]);
    }
    stop_state before;
    stop_catch(&before);
    tnf_status status = tnf_points_delete(points, offsets, n, o->shred ? TNF_POINTS_SHRED : 0,
                                          &error);
    stop_release(&before, status == TNF_ECANCELLED);
    free(offsets);
    if (was_done(status) && o->json)
        printf("{\"deleted\":%zu}\n", n);
    else if (was_done(status) && !cli->quiet)
        fprintf(stderr, "%zu point%s deleted\n", n, n == 1 ? "" : "s");
    return status == TNF_OK ? EXIT_DONE : points_error(path, &error);
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

/* ------------------------------------------------------------------ command */

static int change_points(const cli_state *cli, const points_options *o, bool rm, int argc,
                         char **argv)
{
    tnf_points_options how;
    tnf_error error;
    tnf_points *points;
    if (!points_how(&how, o, true))
        return EXIT_USAGE;
    if (tnf_points_open(&points, argv[0], &how, &error) != TNF_OK)
        return points_error(argv[0], &error);
    int code = rm ? delete_points(cli, o, points, argv + 1, (size_t)argc - 1, argv[0])
                  : compact_points(cli, o, points, argv[0]);
    tnf_points_close(points);
    return code;
}

static int run_points(const cli_state *cli, const void *options, int argc, char **argv)
{
    static const char verbs[] = "list|create|add|rm|compact";
    const points_options *o = options;
    int verb = argc > 1 ? opt_position(verbs, argv[0], strlen(argv[0])) : -1;
    if (argc == 1 && opt_position(verbs, argv[0], strlen(argv[0])) >= 0)
        return usage_error(
            "points: %s needs a FILE; usage: tenfold points %s FILE (./%s is a file)", argv[0],
            argv[0], argv[0]);
    if (verb >= 0) {
        argc--;
        argv++;
    }
    struct stat st;
    if (verb < 0 && argc > 1 && stat(argv[0], &st) != 0)
        return usage_error("points: unknown action '%s'; the actions are list, create, add, rm and "
                           "compact",
                           argv[0]);
    if (argc > 1 && verb != 3)
        return usage_error("points: unexpected argument '%s'", argv[1]);
    if (argc == 1 && verb == 3)
        return usage_error("points: rm needs the offsets of points");
    switch (verb) {
    case 1:
        return create_points(o, argv[0]);
    case 2:
        return points_add(cli, o, argv[0]);
    case 3:
    case 4:
        return change_points(cli, o, verb == 3, argc, argv);
    default:
        return points_list(cli, o, argv[0]);
    }
}

#define AT(field) offsetof(points_options, field)

static const opt table[] = {
    { "json", 0, OPT_FLAG, AT(json), NULL, NULL, "List, or report what was done, as JSON." },
    { "jsonl", 0, OPT_FLAG, AT(jsonl), NULL, NULL,
      "List each point as a line of JSON, which add can read." },
    { "csv", 0, OPT_FLAG, AT(csv), NULL, NULL,
      "List as CSV, or read CSV. The columns are offset (not for add), app, coordinates." },
    { "dims", 0, OPT_TEXT, AT(dims), "N,N...", NULL, "create: the dimensions of the space." },
    { "resolution", 0, OPT_TEXT, AT(resolution), "DTYPE",
      "bit|u8|i8|u16|i16|u32|i32|u64|i64|f32|f64",
      "create: the type of a coordinate: bit, u8 to u64, i8 to i64, f32 or f64." },
    { "attributes", 0, OPT_TEXT, AT(attributes), "JSON", NULL,
      "create: attributes of the space [{}]." },
    { "pack", 0, OPT_CHOICE, AT(pack), "HOW", "auto|none|gzip|snappy",
      "How added vectors are compressed; auto uses the setting of the file. With create, snappy "
      "becomes the setting of the file." },
    { "pack-app", 0, OPT_FLAG, AT(pack_app), NULL, NULL,
      "add: compress application data too, with snappy." },
    { "shred", 0, OPT_FLAG, AT(shred), NULL, NULL, "rm: also overwrite the bytes." },
    { "drop-unknown", 0, OPT_FLAG, AT(drop_unknown), NULL, NULL,
      "compact: leave out blocks of unknown types." },
    { "salvage", 0, OPT_FLAG, AT(salvage), NULL, NULL,
      "list: print all points before the first damage, then describe the damage (exit code 4)." },
    { "wait", 0, OPT_TEXT, AT(wait), "SECONDS", NULL,
      "How long to wait while other processes use the file; 0 does not wait. Without it, wait "
      "forever." },
    { "no-lock", 0, OPT_FLAG, AT(no_lock), NULL, NULL,
      "Take no locks, for file systems without locks. No other process may use the file." },
    { "no-sync", 0, OPT_FLAG, AT(no_sync), NULL, NULL,
      "Do not wait for the disk: faster, and a power cut may damage the file." },
    { "msb", 0, OPT_FLAG, AT(msb), NULL, NULL,
      "Numbers in the file have their most significant bits first." },
    { 0 },
};

static const example examples[] = {
    { "tenfold points create space.vsdb --dims 3 --resolution f32", "an empty space" },
    { "echo '{\"app\":{\"id\":1},\"values\":[1,2,3]}' | tenfold points add space.vsdb",
      "a point, on the disk when the command ends" },
    { "tenfold points space.vsdb --json", "all points, with their offsets" },
    { "tenfold points rm space.vsdb 17", "delete the point at offset 17" },
    { "tenfold points compact space.vsdb", "free the space of deleted points" },
    { "tenfold points damaged.vsdb --salvage --jsonl | tenfold points add new.vsdb",
      "the intact points of a damaged file" },
    { 0 },
};

const command cmd_points = {
    .name = "points",
    .args = "[list|create|add|rm|compact] FILE [OFFSET...]",
    .summary = "list, add and delete the points of a VS file",
    .about = "Lists the points of a VS file: offset, application data and coordinates. The offset "
             "identifies a point until the file is compacted.\n\nadd reads points from standard "
             "input, as lines of JSON ({\"app\":...,\"values\":[...]}) or as CSV, and appends them "
             "as one batch: all of them, or none if one is wrong. rm deletes points by their "
             "offsets: all of them, or none. compact writes a new file without the deleted "
             "points.\n\nAny number of processes may do this at once: each takes the locks that "
             "the format requires. When the command ends, its changes are on the disk. After a "
             "signal or a crash, a batch or a deletion is either complete or has no effect.",
    .examples = examples,
    .table = table,
    .size = sizeof(points_options),
    .min_args = 1,
    .max_args = -1,
    .run = run_points,
};
