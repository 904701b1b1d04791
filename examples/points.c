/* SPDX-License-Identifier: MIT */
/* A growing vector space: points FILE
 * Creates the file, adds a batch of points, deletes one, compacts the file and lists the points. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tenfold/points.h>

#define DIM 3

static tnf_status show_point(void *ctx, const tnf_point *point, tnf_error *error)
{
    float v[DIM];
    const tnf_value *app;
    tnf_str word = TNF_STR("-"); /* stays if a point has none */
    tnf_status status = tnf_points_value(&app, ctx, point, error);

    if (status != TNF_OK)
        return status;
    tnf_value_as_text(&word, tnf_value_get(app, "word"));
    memcpy(v, point->vector, sizeof v);
    printf("%" PRIu64 "  %.*s  %g %g %g\n", point->id.offset, (int)word.n, word.p, (double)v[0],
           (double)v[1], (double)v[2]);
    return TNF_OK;
}

static void show_moved(void *ctx, uint64_t from, uint64_t to)
{
    (void)ctx;
    printf("%" PRIu64 " moved to %" PRIu64 "\n", from, to);
}

int main(int argc, char **argv)
{
    static const uint64_t dims[] = { DIM };
    static const float vectors[3][DIM] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
    static const char *const words[] = { "east", "north", "up" };
    tnf_error error;
    tnf_points *points = NULL;
    tnf_points_options options = TNF_POINTS_INIT;
    tnf_space space = TNF_SPACE_INIT;
    tnf_point batch[3] = { TNF_POINT_INIT, TNF_POINT_INIT, TNF_POINT_INIT };
    tnf_member members[3];
    tnf_value apps[3];
    tnf_point_id ids[3];
    int i, failed;

    if (argc != 2) {
        fprintf(stderr, "usage: points FILE\n");
        return 2;
    }
    options.write = true;
    space.type = tnf_type_of(TNF_F32);
    space.dims = dims;
    space.rank = 1;
    for (i = 0; i < 3; i++) {
        members[i] = tnf_member_of("word", tnf_value_string(words[i]));
        apps[i] = tnf_value_map(&members[i], 1);
        batch[i].value = &apps[i];
        batch[i].vector = vectors[i];
        batch[i].vector_n = sizeof vectors[i];
    }
    /* Each call locks the file. When it returns, its changes are on disk. */
    failed = tnf_points_create(&points, argv[1], &space, &options, &error) != TNF_OK ||
             tnf_points_append(ids, points, batch, 3, &error) != TNF_OK ||
             tnf_points_delete(points, &ids[0], 1, 0, &error) != TNF_OK ||
             tnf_points_compact(points, 0, show_moved, NULL, &error) != TNF_OK ||
             tnf_points_each(points, show_point, points, &error) != TNF_OK;
    if (failed)
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    tnf_points_close(points);
    return failed;
}
