/* SPDX-License-Identifier: MIT */
/* A VS file that several processes write at the same time: point_store FILE */
#define _XOPEN_SOURCE 700
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <tenfold/points.h>
#include <unistd.h>

#define WRITERS 4
#define EACH    25

/* Each process opens the file itself. Each call locks the file, and succeeds completely or not at
 * all. */
static int write_points(const char *path, int writer)
{
    tnf_points_options options = TNF_POINTS_INIT;
    tnf_points *points = NULL;
    tnf_error error;
    int i, failed;

    options.write = true;
    failed = tnf_points_open(&points, path, &options, &error) != TNF_OK;
    for (i = 0; i < EACH && !failed; i++) {
        float vector[2] = { (float)writer, (float)i };
        tnf_value app = tnf_value_int(writer);
        failed = tnf_points_add(NULL, points, &app, vector, sizeof vector, &error) != TNF_OK;
    }
    if (failed)
        fprintf(stderr, "%s\n", error.message);
    tnf_points_close(points);
    return failed;
}

int main(int argc, char **argv)
{
    static const uint64_t dims[] = { 2 };
    tnf_space space = TNF_SPACE_INIT;
    tnf_points_report report = TNF_POINTS_REPORT_INIT;
    tnf_points *points = NULL;
    tnf_error error = { .message = "usage: point_store FILE" };
    int i, status, failed;
    pid_t child;

    space.dims = dims;
    space.rank = 1;
    space.type = tnf_type_of(TNF_F32);
    failed = argc != 2 || tnf_points_create(&points, argv[1], &space, NULL, &error) != TNF_OK;
    for (i = 0; i < WRITERS && !failed; i++) {
        if ((child = fork()) == 0)
            _exit(write_points(argv[1], i));
        if (child < 0)
            failed = tnf_error_set(&error, TNF_EIO, TNF_NO_OFFSET, "cannot start a writer");
    }
    while (wait(&status) > 0)
        if (status != 0)
            failed = tnf_error_set(&error, TNF_EIO, TNF_NO_OFFSET, "a writer failed");
    if (!failed)
        failed = tnf_points_verify(&report, points, NULL, NULL, &error);
    if (failed)
        fprintf(stderr, "%s\n", error.message);
    else
        printf("%" PRIu64 " points, %" PRIu64 " problems\n", report.points, report.problems);
    tnf_points_close(points);
    return failed != 0;
}
