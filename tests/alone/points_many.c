/* SPDX-License-Identifier: MIT */
/* Many processes use one VS file. Writers append batches, delete some of their points and compact.
 * They delete by ids that they have just read, and by ids that they kept since they appended, most
 * of which compactions have made stale. Victims append and compact until they are killed. Readers
 * read all the time, some through points.h, some as a tensor file, which they keep open during
 * compactions. No point is lost, none is deleted for another, no reader ever sees a part of a
 * point, every reader sees all of a batch or nothing of it, no file is left beside it, and all
 * processes end.
 *
 *     points_many [BATCHES]      that each writer appends; readers look until the last one is done
 */
#include "../support/files.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tenfold/points.h>

#define BATCHES 300u
#define WRITERS 8u
#define READERS 8u
#define VICTIM  WRITERS /* the number of all victims, as a writer; their batches are even */
#define MAKERS  (WRITERS + 1)
#define MOST    20000u /* batches of a writer */
#define DIM     8u
#define BATCH   12u

static const uint64_t dims[] = { DIM };
static char path[300];

/* All bytes of a point follow from these numbers, so a damaged point is detected. */
struct id {
    uint32_t writer, batch, place, of; /* of: points in the batch (odd batches may lose some) */
};

/* What the processes know, in shared memory: it outlives those that are killed. */
struct truth {
    atomic_int writing; /* how many writers are not done */
    /* The points of each batch that were appended and not deleted, one bit each. Those of victims
     * are noted when the call has returned. */
    uint16_t live[MAKERS][MOST];
    atomic_uint victim_batch; /* their last one */
};

static struct truth *truth;

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
    struct id last[MAKERS];      /* the last point of each writer, within a batch */
    uint32_t places[MAKERS];
    uint64_t disorder;
    uint64_t mine; /* points of one writer */
    uint32_t writer;
    struct id *list; /* points of that writer, if requested */
    tnf_point_id *ids;
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
    if (!is_whole(p, &id) || id.writer >= MAKERS) {
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
            l->ids[l->n++] = p->id;
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
    for (uint32_t w = 0; w < MAKERS; w++)
        end_batch(l, w);
}

/* ---------------------------------------------------------------- writers */

#define KEPT 64u

static uint64_t append_batch(tnf_points *p, uint32_t writer, uint32_t batch, uint64_t *seed,
                             tnf_point_id ids[BATCH])
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
    if (tnf_points_append(ids, p, points, n, &e) != TNF_OK)
        give_up("writer", "append", &e);
    truth->live[writer][batch] = (uint16_t)((1u << n) - 1);
    return n;
}

/* Deletes a point of the writer. TNF_ENOTFOUND: another process compacted meanwhile. */
static bool delete_one(tnf_points *p, const struct id *id, tnf_point_id at)
{
    tnf_error e;
    tnf_status status = tnf_points_delete(p, &at, 1, 0, &e);
    if (status != TNF_OK && status != TNF_ENOTFOUND)
        give_up("writer", "delete", &e);
    if (status == TNF_OK)
        truth->live[id->writer][id->batch] &= (uint16_t)~(1u << id->place);
    return status == TNF_OK;
}

/* Deletes up to three of the writer's own points, of odd batches; returns how many. */
static uint64_t delete_some(tnf_points *p, uint32_t writer, uint64_t *seed)
{
    static struct id list[KEPT];
    static tnf_point_id ids[KEPT];
    struct look l = { .writer = writer, .list = list, .ids = ids, .room = KEPT };
    tnf_error e;
    uint64_t gone = 0;
    if (tnf_points_each(p, take_point, &l, &e) != TNF_OK)
        give_up("writer", "each", &e);
    for (size_t i = 0; i < l.n && gone < 3; i++)
        if (list[i].batch % 2 && next_random(seed) % 2)
            gone += delete_one(p, &list[i], ids[i]);
    return gone;
}

/* The first point of each of the last odd batches, as it was when it was appended. */
struct memory {
    tnf_point_id ids[KEPT];
    uint32_t batches[KEPT];
};

/* Deletes the point of a remembered batch, if its id is not stale; returns how many. */
static uint64_t delete_remembered(tnf_points *p, uint32_t writer, const struct memory *m,
                                  uint64_t *seed, uint64_t *stale)
{
    size_t i = (size_t)(next_random(seed) % KEPT);
    const struct id id = { writer, m->batches[i], 0, 0 };
    if (id.batch == 0)
        return 0;
    bool gone = delete_one(p, &id, m->ids[i]);
    *stale += !gone;
    return gone;
}

static void write_batches(uint32_t batches, uint32_t writer, int to)
{
    static struct memory memory;
    tnf_points_options o = { .size = sizeof o, .write = true, .sync = TNF_POINTS_NO_SYNC };
    uint64_t seed = writer + 1, told[3] = { 0 }; /* added, deleted, stale */
    tnf_point_id ids[BATCH];
    tnf_points *p;
    tnf_error e;
    if (tnf_points_open(&p, path, &o, &e) != TNF_OK)
        give_up("writer", "open", &e);
    for (uint32_t batch = 1; batch <= batches; batch++) {
        told[0] += append_batch(p, writer, batch, &seed, ids);
        if (batch % 2) {
            memory.ids[batch / 2 % KEPT] = ids[0];
            memory.batches[batch / 2 % KEPT] = batch;
        }
        if (next_random(&seed) % 8 == 0)
            told[1] += delete_some(p, writer, &seed);
        if (next_random(&seed) % 4 == 0)
            told[1] += delete_remembered(p, writer, &memory, &seed, &told[2]);
        if (next_random(&seed) % 40 == 0 && tnf_points_compact(p, 0, NULL, NULL, &e) != TNF_OK)
            give_up("writer", "compact", &e);
        if (told[0] > 3000)
            usleep(2000); /* otherwise readers take longer and longer */
    }
    tnf_points_close(p);
    atomic_fetch_sub(&truth->writing, 1);
    _exit(write(to, told, sizeof told) == (ssize_t)sizeof told ? 0 : 1);
}

/* ---------------------------------------------------------------- victims */

static void change_until_killed(uint64_t seed)
{
    tnf_points_options o = { .size = sizeof o, .write = true, .sync = TNF_POINTS_NO_SYNC };
    tnf_point_id ids[BATCH];
    tnf_points *p;
    tnf_error e;
    if (tnf_points_open(&p, path, &o, &e) != TNF_OK)
        give_up("victim", "open", &e);
    for (;;) {
        bool add = next_random(&seed) % 8 == 0;
        unsigned batch = add ? atomic_fetch_add(&truth->victim_batch, 2) + 2 : 0;
        if (add && batch < MOST)
            append_batch(p, VICTIM, batch, &seed, ids);
        else if (tnf_points_compact(p, 0, NULL, NULL, &e) != TNF_OK)
            give_up("victim", "compact", &e);
    }
}

static void kill_victims(int to)
{
    uint64_t told[3] = { 0 }, seed = 99; /* kills */
    while (atomic_load(&truth->writing) > 0) {
        int status;
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0)
            change_until_killed(told[0] + 1000);
        usleep((useconds_t)(next_random(&seed) % 20000));
        kill(child, SIGKILL);
        MUST(waitpid(child, &status, 0) == child);
        if (!WIFSIGNALED(status))
            _exit(1); /* it gave up by itself */
        told[0]++;
    }
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

/* Reads the whole file as tensors. If it is kept open for a while, its content does not change. */
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
    if (!v || !a || tnf_read(v, (size_t)points->parts[0].nbytes, points, &e) != TNF_OK ||
        tnf_read_part(a, (size_t)bytes->nbytes, bytes, 0, &e) != TNF_OK)
        give_up("reader", "read", &e);
    struct look l = { .writer = MAKERS };
    for (uint64_t i = 0; i < n; i++) {
        tnf_point p = { .vector = v + i * DIM * sizeof(float), .vector_n = DIM * sizeof(float) };
        p.app = (tnf_str) { (const char *)a + i * (2 + sizeof(struct id)), 2 + sizeof(struct id) };
        look_at(&l, &p);
    }
    end_look(&l);
    check_look("reader of tensors", &l);
    free(v);
    free(a);
    tnf_close(f);
    return n;
}

static void read_meanwhile(uint32_t reader, int to)
{
    tnf_points_options o = { .size = sizeof o };
    uint64_t told[3] = { 0 };
    tnf_points *p;
    tnf_error e;
    if (tnf_points_open(&p, path, &o, &e) != TNF_OK)
        give_up("reader", "open", &e);
    for (bool go_on = true; go_on;) {
        struct look l = { .writer = MAKERS };
        go_on = atomic_load(&truth->writing) > 0; /* read once more after the last writer is done */
        told[0]++;
        if (reader % 4 == 3) {
            told[1] += read_tensors(told[0] % 4 == 0);
            continue;
        }
        if (tnf_points_each(p, take_point, &l, &e) != TNF_OK)
            give_up("reader", "each", &e);
        end_look(&l);
        check_look("reader", &l);
        told[1] += l.seen;
    }
    tnf_points_close(p);
    _exit(write(to, told, sizeof told) == (ssize_t)sizeof told ? 0 : 1);
}

/* ------------------------------------------------------------------- main */

#define CHILDREN (WRITERS + READERS + 1)

enum { ADDED, DELETED, STALE, LOOKS, POINTS, KILLS, SUMS };

static void begin_child(uint32_t i, uint32_t batches, int to)
{
    if (i < WRITERS)
        write_batches(batches, i, to);
    if (i < WRITERS + READERS)
        read_meanwhile(i - WRITERS, to);
    kill_victims(to);
}

static void run_all(uint32_t batches, uint64_t sums[SUMS])
{
    int ends[CHILDREN][2];
    pid_t children[CHILDREN];
    atomic_store(&truth->writing, (int)WRITERS);
    fflush(stdout);
    for (uint32_t i = 0; i < CHILDREN; i++) {
        MUST(pipe(ends[i]) == 0);
        children[i] = fork();
        MUST(children[i] >= 0);
        if (children[i] == 0)
            begin_child(i, batches, ends[i][1]);
    }
    for (uint32_t i = 0; i < CHILDREN; i++) {
        uint64_t told[3] = { 0 };
        int status;
        MUST(waitpid(children[i], &status, 0) == children[i]);
        if (i < WRITERS && status != 0)
            atomic_fetch_sub(&truth->writing, 1); /* otherwise readers wait for it */
        CHECK(status == 0, "process %u of %u writers and %u readers: status %x", i, WRITERS,
              READERS, (unsigned)status);
        close(ends[i][1]);
        CHECK(read(ends[i][0], told, sizeof told) == (ssize_t)sizeof told, "it tells nothing");
        close(ends[i][0]);
        size_t from = i < WRITERS ? ADDED : i < WRITERS + READERS ? LOOKS : KILLS,
               to = i < WRITERS ? LOOKS : i < WRITERS + READERS ? KILLS : SUMS;
        for (size_t k = from; k < to; k++)
            sums[k] += told[k - from];
    }
}

/* The points that are there in the end. */
struct found {
    uint16_t there[MAKERS][MOST];
    uint64_t n;
};

static tnf_status note_found(void *ctx, const tnf_point *p, tnf_error *e)
{
    struct found *f = ctx;
    struct id id;
    (void)e;
    if (is_whole(p, &id) && id.writer < MAKERS && id.batch < MOST && id.place < BATCH)
        f->there[id.writer][id.batch] |= (uint16_t)(1u << id.place);
    f->n++;
    return TNF_OK;
}

/* Compares the file with what the processes were told. A victim may have been killed after its
 * batch was appended, but before it noted that. */
static void compare_points(tnf_points *p)
{
    static struct found f;
    tnf_error e;
    unsigned lost = 0, back = 0;
    CHECK(tnf_points_each(p, note_found, &f, &e) == TNF_OK, "%s", e.message);
    for (uint32_t w = 0; w < MAKERS; w++)
        for (uint32_t b = 0; b < MOST; b++) {
            unsigned live = truth->live[w][b], there = f.there[w][b];
            lost += (live & ~there) != 0;
            back += (there & ~live) != 0 && !(w == VICTIM && live == 0);
        }
    CHECK(lost == 0, "of %u batches points are missing that nobody deleted", lost);
    CHECK(back == 0, "of %u batches points are there that were deleted", back);
}

int main(int argc, char **argv)
{
    uint32_t batches = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : BATCHES;
    uint64_t sums[SUMS] = { 0 };
    tnf_points *p;
    tnf_error e;
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_of(TNF_F32), .dims = dims, .rank = 1
    };
    tnf_points_report report = TNF_POINTS_REPORT_INIT;
    int shared = MAP_SHARED | MAP_ANONYMOUS;
    truth = mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, shared, -1, 0);
    MUST(truth != MAP_FAILED && batches < MOST);
    snprintf(path, sizeof path, "%s/many.vsdb", files_temp());
    MUST(tnf_points_create(&p, path, &space, NULL, &e) == TNF_OK);
    run_all(batches, sums);
    struct look l = { .writer = MAKERS };
    check_doing("at the end");
    CHECK(tnf_points_compact(p, 0, NULL, NULL, &e) == TNF_OK, "%s", e.message);
    CHECK(files_count(files_temp(), ".tmp-") == 0, "a temporary file is left");
    CHECK(tnf_points_each(p, take_point, &l, &e) == TNF_OK, "%s", e.message);
    end_look(&l);
    CHECK(l.torn == 0 && l.broken == 0 && l.disorder == 0, "torn points");
    compare_points(p);
    CHECK(tnf_points_verify(&report, p, NULL, NULL, &e) == TNF_OK && report.problems == 0, "%llu",
          (unsigned long long)report.problems);
    tnf_points_close(p);
    CHECK(sums[ADDED] > 0 && sums[LOOKS] >= READERS && sums[KILLS] > 0, "nobody got anywhere");
    printf("%llu points added, %llu deleted, %llu stale ids refused, %llu victims killed, %llu "
           "points left; %llu looks at %llu points\n",
           (unsigned long long)sums[ADDED], (unsigned long long)sums[DELETED],
           (unsigned long long)sums[STALE], (unsigned long long)sums[KILLS],
           (unsigned long long)l.seen, (unsigned long long)sums[LOOKS],
           (unsigned long long)sums[POINTS]);
    return check_end("points_many");
}
