/* SPDX-License-Identifier: MIT */
/* tenfold points: creates and compacts VS files; lists, adds and deletes their points. */
#include "points.h"
#include "stop.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/* Parses "2,3". The result must be freed; NULL after reporting an error. */
static uint64_t *parse_dims(const char *text, uint32_t *rank)
{
    size_t room = 1;
    for (const char *p = text; *p; p++)
        room += *p == ',';
    uint64_t *dims = calloc(room, sizeof *dims);
    if (!dims)
        return memory_error(), NULL;
    char *end = (char *)(uintptr_t)text;
    for (*rank = 0; *rank < room; (*rank)++)
        if (!number_parse(&dims[*rank], end + (*rank > 0), &end) || *end != (*rank + 1 < room ? ',' : 0))
            break;
    if (*rank == room)
        return dims;
    free(dims);
    usage_error("points: --dims takes numbers separated by commas, not '%s'", text);
    return NULL;
}

/* The type of coordinates, or the name of one that is not a number. */
static bool parse_resolution(tnf_space *space, const char *text)
{
    bool word = !strcasecmp(text, "string") || !strcasecmp(text, "json");
    space->resolution = !word ? NULL : !strcasecmp(text, "json") ? "json" : "string";
    space->type = word ? NULL : tnf_type_spelled(strcasecmp(text, "bool") ? text : "bit");
    return word || space->type;
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
    json_text(&j, space->type ? space->type->id : space->resolution);
    json_close(&j, '}');
    putchar('\n');
}

static int create_space(const points_options *o, tnf_space *space, const char *path)
{
    tnf_points_options how;
    tnf_error error;
    tnf_points *points;
    tnf_value attributes = { .kind = TNF_JSON };
    if (!points_how(&how, o, true))
        return EXIT_USAGE;
    if (o->attributes) {
        attributes.as.s = o->attributes;
        attributes.n = strlen(o->attributes);
        space->attributes = &attributes;
    }
    stop_state before;
    stop_catch(&before);
    tnf_status status = tnf_points_create(&points, path, space, &how, &error);
    stop_release(&before, status == TNF_ECANCELLED);
    if (!was_done(status))
        return points_error(path, &error);
    tnf_points_close(points);
    if (o->json)
        print_created(space);
    return status == TNF_OK ? EXIT_DONE : points_error(path, &error);
}

static int create_points(const points_options *o, const char *path)
{
    tnf_space space = TNF_SPACE_INIT;
    if (!o->dims || !o->resolution)
        return usage_error("points: create needs --dims and --resolution");
    if (!parse_resolution(&space, o->resolution))
        return usage_error("points: unknown type '%s'", o->resolution);
    uint64_t *dims = parse_dims(o->dims, &space.rank);
    if (!dims)
        return EXIT_USAGE;
    space.dims = dims;
    space.pack = o->pack == TNF_POINTS_SNAPPY;
    int code = create_space(o, &space, path);
    free(dims);
    return code;
}

/* ------------------------------------------------------------------ command */

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
    if (verb > 0 && (o->after || o->limit))
        return usage_error("points: --after and --limit are options of list");
    if (verb != 3 && (o->app || o->unchecked))
        return usage_error("points: --app and --unchecked are options of rm");
    switch (verb) {
    case 1:
        return create_points(o, argv[0]);
    case 2:
        return points_add(cli, o, argv[0]);
    case 3:
        return points_rm(cli, o, argc, argv);
    case 4:
        return points_compact(cli, o, argv[0]);
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
      "List as CSV, or read CSV. The columns are id (ignored by add), app, coordinates." },
    { "after", 0, OPT_TEXT, AT(after), "ID", NULL,
      "list: begin after this point, which may be deleted; with --limit, the next page." },
    { "limit", 'n', OPT_TEXT, AT(limit), "N", NULL,
      "list: stop after N points. If more follow, a message gives the ID for --after, in JSON as "
      "\"next\"." },
    { "dims", 0, OPT_TEXT, AT(dims), "N,N...", NULL, "create: the dimensions of the space." },
    { "resolution", 0, OPT_TEXT, AT(resolution), "DTYPE",
      "bit|u8|i8|u16|i16|u32|i32|u64|i64|f16|f32|f64|string|json",
      "create: the type of a coordinate: bit, u8 to u64, i8 to i64, f32, f64, f16 (of a later "
      "revision of the format), string, or json (any value)." },
    { "attributes", 0, OPT_TEXT, AT(attributes), "JSON", NULL,
      "create: attributes of the space [{}]." },
    { "pack", 0, OPT_CHOICE, AT(pack), "HOW", "auto|none|gzip|snappy",
      "How added vectors are compressed; auto uses the setting of the file. With create, snappy "
      "becomes the setting of the file." },
    { "pack-app", 0, OPT_FLAG, AT(pack_app), NULL, NULL,
      "add: compress application data too, with snappy." },
    { "app", 0, OPT_TEXT, AT(app), "JSON", NULL,
      "rm: delete all points with this application data; null: those without any." },
    { "unchecked", 0, OPT_FLAG, AT(unchecked), NULL, NULL,
      "rm: take offsets instead of ids, and delete whatever is there now." },
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
    { "tenfold points space.vsdb --json", "all points, with their ids" },
    { "tenfold points space.vsdb --jsonl -n 1000 --after 16:0a1b2c3d", "the next 1000 points" },
    { "tenfold points rm space.vsdb 16:0a1b2c3d", "delete a point by its id" },
    { "tenfold points rm space.vsdb --app '{\"id\":1}'", "delete points by their data" },
    { "tenfold points compact space.vsdb", "free the space of deleted points" },
    { "tenfold points damaged.vsdb --salvage --jsonl | tenfold points add new.vsdb",
      "the intact points of a damaged file" },
    { 0 },
};

const command cmd_points = {
    .name = "points",
    .args = "[list|create|add|rm|compact] FILE [ID...]",
    .summary = "list, add and delete the points of a VS file",
    .about = "Lists the points of a VS file: id, application data and coordinates. An id is "
             "OFFSET:HASH. If the point is deleted or moves (compact moves points), the id is "
             "refused; it is never taken for a different point.\n\nadd reads points from standard "
             "input, as lines of JSON ({\"app\":...,\"values\":[...]}) or as CSV, and appends them "
             "as one batch: all of them, or none if one is wrong. rm deletes points by their "
             "ids: all of them, or, if one id is stale, none (exit code 3). compact writes a new file without the deleted "
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
