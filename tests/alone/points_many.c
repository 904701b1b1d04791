/* SPDX-License-Identifier: MIT */
/* Many processes use one VS file. Writers append batches, delete some of their points and compact.
 * Readers read all the time, some through points.h, some as a tensor file, which they keep open
 * during compactions. No point is lost, no reader ever sees a part of a point, every reader sees
 * all of a batch or nothing of it, and all processes end.
 *
 *     points_many [BATCHES]      that each writer appends; readers look until the last one is done
 */
#include "../support/files.h"
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tenfold/points.h>

#define BATCHES 300u
#define WRITERS 8u
#define READERS 8u
#define DIM     8u
#define BATCH   12u

static const uint64_t dims[] = { DIM };
static char path[300];

/* All bytes of a point follow from these numbers, so a damaged point is detected. */
struct id {
    uint32_t writer, batch, place, of; /* of: points in the batch (odd batches may lose some) */
};

static void make_point(tnf_point *p, const struct id *id, float v[DIM], uint32_t app[6])
{
    uint64_t state = ((uint64_t)id->writer << 40) ^ ((uint64_t)id->batch << 8) ^ id->place;
    for (size_t k = 0; k < DIM; k++)
        v[k] = (float)(int32_t)next_random(&state);
    uint8_t *bytes = (uint8_t *)app;
    bytes[0] = 0xc4; /* bin of 16 bytes */
    bytes[1] = sizeof *id;
    memcpy(bytes + 2, id, sizeof *id);
    *p = (tnf_point) { .vector = v, .vector_n = DIM * sizeof(float) };
    p->app = (tnf_str) { (const char *)bytes, 2 + sizeof *id };
}

static bool is_whole(const tnf_point *p, struct id *id)
{
    float v[DIM];
    uint32_t app[6];
    tnf_point want;
    if (p->app.n != 2 + sizeof *id)
        return false;
    memcpy(id, p->app.p + 2, sizeof *id);
    make_point(&want, id, v, app);
    return memcmp(want.app.p, p->app.p, p->app.n) == 0 && p->vector_n == want.vector_n &&
           memcmp(want.vector, p->vector, p->vector_n) == 0;
}

static void give_up(const char *who, const char *what, const tnf_error *e)
{
    fprintf(stderr, "%s: %s: %s\n", who, what, e->message);
    _exit(1);
}

/* ----------------------------------------------------- reading all points */

struct look {
    uint64_t seen, torn, broken; /* broken: even batches that are not complete */
    struct id last[WRITERS];     /* the last point of each writer, within a batch */
    uint32_t places[WRITERS];
    uint64_t disorder;
    uint64_t mine; /* points of one writer */
    uint32_t writer;
    struct id *list; /* points of that writer, if requested */
    uint64_t *offsets;
    size_t n, room;
};

static void end_batch(struct look *l, uint32_t w)
{
    const struct id *id = &l->last[w];
    if (l->places[w] && id->batch % 2 == 0 && l->places[w] != id->of)
        l->broken++;
    l->places[w] = 0;
}

static void look_at(struct look *l, const tnf_point *p)
{
    struct id id;
    l->seen++;
    if (!is_whole(p, &id) || id.writer >= WRITERS) {
        l->torn++;
        return;
    }
    const struct id *last = &l->last[id.writer];
    if (l->places[id.writer] && last->batch != id.batch)
        end_batch(l, id.writer);
    if (id.batch < last->batch ||
        (id.batch == last->batch && id.place <= last->place && l->places[id.writer]))
        l->disorder++;
    l->last[id.writer] = id;
    l->places[id.writer]++;
    if (id.writer == l->writer) {
        if (l->n < l->room) {
            l->list[l->n] = id;
            l->offsets[l->n++] = p->offset;
        }
        l->mine++;
    }
}

static tnf_status take_point(void *ctx, const tnf_point *p, tnf_error *e)
{
    (void)e;
    look_at(ctx, p);
    return TNF_OK;
}

static void end_look(struct look *l)
{
    for (uint32_t w = 0; w < WRITERS; w++)
        end_batch(l, w);
}

/* ---------------------------------------------------------------- writers */

#define KEPT 64u

static uint64_t append_batch(tnf_points *p, uint32_t writer, uint32_t batch, uint64_t *seed)
{
    static float v[BATCH][DIM];
    static uint32_t app[BATCH][6];
    tnf_point points[BATCH];
    tnf_error e;
    uint32_t n = (uint32_t)(1 + next_random(seed) % BATCH);
    for (uint32_t k = 0; k < n; k++) {
        struct id id = { writer, batch, k, n };
        make_point(&points[k], &id, v[k], app[k]);
    }
    if (tnf_points_append(NULL, p, points, n, &e) != TNF_OK)
        give_up("writer", "append", &e);
    return n;
}

/* Deletes up to three of the writer's own points, of odd batches; returns how many. If another
 * process compacts before the deletion, the deletion fails with TNF_ENOTFOUND and no more points
 * are deleted. */
static uint64_t delete_some(tnf_points *p, uint32_t writer, uint64_t *seed)
{
    static struct id list[KEPT];
    static uint64_t offsets[KEPT];
    struct look l = { .writer = writer, .list = list, .offsets = offsets, .room = KEPT };
    tnf_error e;
    uint64_t gone = 0;
    if (tnf_points_each(p, 0, take_point, &l, &e) != TNF_OK)
        give_up("writer", "each", &e);
    for (size_t i = 0; i < l.n && gone < 3; i++) {
        if (list[i].batch % 2 == 0 || next_random(seed) % 2)
            continue;
        tnf_status status = tnf_points_delete(p, &offsets[i], 1, 0, &e);
        if (status == TNF_ENOTFOUND)
            break;
        if (status != TNF_OK)
            give_up("writer", "delete", &e);
        gone++;
    }
    return gone;
}

static atomic_int *writing; /* how many writers are not done; shared by all processes */

static void write_batches(uint32_t batches, uint32_t writer, int to)
{
    tnf_points_options o = { .size = sizeof o, .write = true, .sync = TNF_POINTS_NO_SYNC };
    uint64_t seed = writer + 1, added = 0, deleted = 0;
    tnf_points *p;
    tnf_error e;
    if (tnf_points_open(&p, path, &o, &e) != TNF_OK)
        give_up("writer", "open", &e);
    for (uint32_t batch = 1; batch <= batches; batch++) {
        added += append_batch(p, writer, batch, &seed);
        if (next_random(&seed) % 8 == 0)
            deleted += delete_some(p, writer, &seed);
        if (next_random(&seed) % 40 == 0 && tnf_points_compact(p, 0, NULL, NULL, &e) != TNF_OK)
            give_up("writer", "compact", &e);
        if (added > 3000)
            usleep(2000); /* otherwise readers take longer and longer */
    }
    tnf_points_close(p);
    atomic_fetch_sub(writing, 1);
    uint64_t told[2] = { added, deleted };
    _exit(write(to, told, sizeof told) == (ssize_t)sizeof told ? 0 : 1);
}

/* ---------------------------------------------------------------- readers */

static void check_look(const char *who, const struct look *l)
{
    if (l->torn || l->broken || l->disorder) {
        fprintf(stderr, "%s: %llu torn points, %llu broken batches, %llu out of order\n", who,
                (unsigned long long)l->torn, (unsigned long long)l->broken,
                (unsigned long long)l->disorder);
        _exit(1);
    }
}

/* Reads the whole file as tensors: the content that it had when it was opened, also if it is kept
 * open for a while. Returns 0 if a point was deleted meanwhile. */
static uint64_t read_tensors(bool hold)
{
    tnf_file *f;
    tnf_error e;
    if (tnf_open(&f, path, NULL, &e) != TNF_OK)
        give_up("reader", "open", &e);
    if (hold)
        usleep(30000); /* others append, delete and compact meanwhile */
    const tnf_object *points = tnf_find(f, "points"), *app = tnf_find(f, "appdata");
    const tnf_part *bytes = tnf_object_part(app, "bytes");
    uint64_t n = points->shape[0];
    uint8_t *v = malloc((size_t)points->parts[0].nbytes + 1),
            *a = malloc((size_t)bytes->nbytes + 1);
    tnf_status status = TNF_ENOMEM;
    if (v && a)
        status = tnf_read(v, (size_t)points->parts[0].nbytes, points, &e);
    if (status == TNF_OK)
        status = tnf_read_part(a, (size_t)bytes->nbytes, bytes, 0, &e);
    if (status != TNF_OK && status != TNF_ECHANGED)
        give_up("reader", "read", &e);
    n = status == TNF_OK ? n : 0;
    struct look l = { .writer = WRITERS };
    for (uint64_t i = 0; i < n; i++) {
        tnf_point p = { .vector = v + i * DIM * sizeof(float), .vector_n = DIM * sizeof(float) };
        p.app = (tnf_str) { (const char *)a + i * (2 + sizeof(struct id)), 2 + sizeof(struct id) };
        look_at(&l, &p);
    }
    if (status == TNF_OK) {
        end_look(&l);
        check_look("reader of tensors", &l);
    }
    free(v);
    free(a);
    tnf_close(f);
    return n;
}

static void read_meanwhile(uint32_t reader, int to)
{
    tnf_points_options o = { .size = sizeof o };
    uint64_t told[2] = { 0, 0 };
    tnf_points *p;
    tnf_error e;
    if (tnf_points_open(&p, path, &o, &e) != TNF_OK)
        give_up("reader", "open", &e);
    for (bool go_on = true; go_on;) {
        struct look l = { .writer = WRITERS };
        go_on = atomic_load(writing) > 0; /* read once more after the last writer is done */
        told[0]++;
        if (reader % 4 == 3) {
            told[1] += read_tensors(told[0] % 4 == 0);
            continue;
        }
        if (tnf_points_each(p, 0, take_point, &l, &e) != TNF_OK)
            give_up("reader", "each", &e);
        end_look(&l);
        check_look("reader", &l);
        told[1] += l.seen;
    }
    tnf_points_close(p);
    _exit(write(to, told, sizeof told) == (ssize_t)sizeof told ? 0 : 1);
}

/* ------------------------------------------------------------------- main */

static void run_all(uint32_t batches, uint64_t sums[4])
{
    int ends[WRITERS + READERS][2];
    pid_t children[WRITERS + READERS];
    int shared = MAP_SHARED | MAP_ANONYMOUS;
    writing = mmap(NULL, sizeof *writing, PROT_READ | PROT_WRITE, shared, -1, 0);
    MUST(writing != MAP_FAILED);
    atomic_store(writing, (int)WRITERS);
    fflush(stdout);
    for (uint32_t i = 0; i < WRITERS + READERS; i++) {
        MUST(pipe(ends[i]) == 0);
        children[i] = fork();
        MUST(children[i] >= 0);
        if (children[i] > 0)
            continue;
        if (i < WRITERS)
            write_batches(batches, i, ends[i][1]);
        read_meanwhile(i - WRITERS, ends[i][1]);
    }
    for (uint32_t i = 0; i < WRITERS + READERS; i++) {
        uint64_t told[2] = { 0, 0 };
        int status;
        MUST(waitpid(children[i], &status, 0) == children[i]);
        if (i < WRITERS && status != 0)
            atomic_fetch_sub(writing, 1); /* otherwise readers wait for it */
        CHECK(status == 0, "%s %u: status %x", i < WRITERS ? "writer" : "reader", i % WRITERS,
              (unsigned)status);
        close(ends[i][1]);
        CHECK(read(ends[i][0], told, sizeof told) == (ssize_t)sizeof told, "it tells nothing");
        close(ends[i][0]);
        sums[i < WRITERS ? 0 : 2] += told[0];
        sums[i < WRITERS ? 1 : 3] += told[1];
    }
}

int main(int argc, char **argv)
{
    uint32_t batches = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : BATCHES;
    uint64_t sums[4] = { 0 }; /* points appended, points deleted; readings, points seen */
    tnf_points *p;
    tnf_error e;
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_of(TNF_F32), .dims = dims, .rank = 1
    };
    tnf_points_report report = TNF_POINTS_REPORT_INIT;
    snprintf(path, sizeof path, "%s/many.vsdb", files_temp());
    MUST(tnf_points_create(&p, path, &space, NULL, &e) == TNF_OK);
    run_all(batches, sums);
    struct look l = { .writer = WRITERS };
    check_doing("at the end");
    CHECK(tnf_points_each(p, 0, take_point, &l, &e) == TNF_OK, "%s", e.message);
    end_look(&l);
    CHECK(l.torn == 0 && l.broken == 0 && l.disorder == 0, "torn points");
    CHECK(l.seen == sums[0] - sums[1], "%llu points; %llu were added and %llu deleted",
          (unsigned long long)l.seen, (unsigned long long)sums[0], (unsigned long long)sums[1]);
    CHECK(tnf_points_verify(&report, p, NULL, NULL, &e) == TNF_OK && report.problems == 0, "%llu",
          (unsigned long long)report.problems);
    tnf_points_close(p);
    CHECK(sums[0] > 0 && sums[2] >= READERS, "nobody got anywhere");
    printf("%llu points added, %llu deleted, %llu left; %llu looks at %llu points\n",
           (unsigned long long)sums[0], (unsigned long long)sums[1], (unsigned long long)l.seen,
           (unsigned long long)sums[2], (unsigned long long)sums[3]);
    return check_end("points_many");
}
