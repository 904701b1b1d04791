/* SPDX-License-Identifier: MIT */
/* points.h on any file. tnf_points_each() finds what salvage finds. A file that can be listed can
 * be appended to, deleted from and compacted, with exactly these changes. Bytes that begin like
 * JSON are parsed as a point instead. */
#include "fuzz.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/points.h>
#include <unistd.h>

#define VECTOR_MOST ((uint64_t)1 << 20)

struct seen {
    tnf_points *points;
    uint64_t n, hash;
    tnf_point_id first;
};

static tnf_status take_point(void *ctx, const tnf_point *p, tnf_error *e)
{
    struct seen *s = ctx;
    const tnf_value *v;
    if (s->n++ == 0)
        s->first = p->id;
    for (size_t i = 0; i < p->app.n; i++)
        s->hash = s->hash * 31 + (uint8_t)p->app.p[i];
    for (size_t i = 0; i < p->vector_n; i++)
        s->hash = s->hash * 37 + ((const uint8_t *)p->vector)[i];
    return s->points ? tnf_points_value(&v, s->points, p, e) : TNF_OK;
}

static const char *file_path(void)
{
    static char path[64];
    if (!*path)
        snprintf(path, sizeof path, "%s/tenfold-fuzz-%ld.vsdb",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
    return path;
}

static void put_file(const uint8_t *data, size_t size)
{
    int fd = open(file_path(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file");
    close(fd);
}

static struct seen list_points(tnf_points *p, tnf_status want)
{
    tnf_error e;
    struct seen s = { .points = p };
    tnf_status status = tnf_points_each(p, take_point, &s, &e);
    FUZZ_REQUIRE(want != TNF_OK || status == TNF_OK, "cannot be listed: %s", e.message);
    if (status != TNF_OK)
        s.n = UINT64_MAX;
    return s;
}

/* Appends a point of zeros, deletes the first, compacts: everything else must be the same. */
static void change_points(tnf_points *p, const struct seen *before)
{
    tnf_error e;
    tnf_point_id at;
    const tnf_space *space = tnf_points_space(p);
    if (!space || !space->type || space->vector_bytes > VECTOR_MOST)
        return;
    void *zeros = calloc(1, (size_t)space->vector_bytes);
    tnf_point point = { .vector = zeros, .vector_n = (size_t)space->vector_bytes };
    FUZZ_REQUIRE(tnf_points_append(&at, p, &point, 1, &e) == TNF_OK, "%s", e.message);
    FUZZ_REQUIRE(tnf_points_read(&point, p, at, &e) == TNF_OK, "%s", e.message);
    FUZZ_REQUIRE(memcmp(point.vector, zeros, point.vector_n) == 0, "another point");
    free(zeros);
    struct seen after = list_points(p, TNF_OK);
    FUZZ_REQUIRE(after.n == before->n + 1, "%llu points", (unsigned long long)after.n);
    FUZZ_REQUIRE(tnf_points_delete(p, &after.first, 1, 0, &e) == TNF_OK, "%s", e.message);
    struct seen less = list_points(p, TNF_OK);
    FUZZ_REQUIRE(less.n == before->n, "%llu points", (unsigned long long)less.n);
    FUZZ_REQUIRE(tnf_points_compact(p, 0, NULL, NULL, &e) == TNF_OK, "%s", e.message);
    struct seen compact = list_points(p, TNF_OK);
    FUZZ_REQUIRE(compact.n == less.n && compact.hash == less.hash, "compacting changes points");
    tnf_points_report r = TNF_POINTS_REPORT_INIT;
    FUZZ_REQUIRE(tnf_points_verify(&r, p, NULL, NULL, &e) == TNF_OK && r.terminal, "no end");
    FUZZ_REQUIRE(r.blanks == 0 && r.trailing == 0, "something is left over");
}

static void parse_point(const uint8_t *data, size_t size)
{
    static const uint64_t dims[] = { 2 };
    static const char *const types[] = { "f32", "f64", "i8", "u64", "bit" };
    tnf_error e;
    tnf_points *p;
    tnf_point point;
    tnf_points_options o = { .size = sizeof o, .sync = TNF_POINTS_NO_SYNC };
    unlink(file_path());
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_named(types[size % 5]), .dims = dims, .rank = 1
    };
    FUZZ_REQUIRE(tnf_points_create(&p, file_path(), &space, &o, &e) == TNF_OK, "%s", e.message);
    if (tnf_points_parse(&point, p, (const char *)data, size, &e) == TNF_OK) {
        FUZZ_REQUIRE(tnf_points_append(NULL, p, &point, 1, &e) == TNF_OK, "%s", e.message);
        FUZZ_REQUIRE(list_points(p, TNF_OK).n == 1, "it is not there");
    }
    tnf_points_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tnf_error e;
    tnf_points *p;
    tnf_points_report r = TNF_POINTS_REPORT_INIT;
    struct seen saved = { .n = 0 };
    tnf_points_options o = { .size = sizeof o, .write = true, .sync = TNF_POINTS_NO_SYNC };
    if (size > 0 && data[0] == '{') {
        parse_point(data, size);
        unlink(file_path());
        return 0;
    }
    put_file(data, size);
    FUZZ_REQUIRE(tnf_points_salvage(&r, file_path(), &o, take_point, &saved, &e) == TNF_OK, "%s",
                 e.message);
    if (tnf_points_open(&p, file_path(), &o, &e) == TNF_OK) {
        struct seen all = list_points(p, TNF_ECANCELLED);
        FUZZ_REQUIRE(all.n == UINT64_MAX || r.problems ||
                         (all.n == saved.n && all.hash == saved.hash),
                     "salvage and each differ");
        FUZZ_REQUIRE(tnf_points_verify(&r, p, NULL, NULL, &e) == TNF_OK, "%s", e.message);
        FUZZ_REQUIRE(all.n != UINT64_MAX || r.problems > 0, "verify sees no problem");
        if (all.n != UINT64_MAX)
            change_points(p, &all);
        tnf_points_close(p);
    }
    unlink(file_path());
    return 0;
}
