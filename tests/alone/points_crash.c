/* SPDX-License-Identifier: MIT */
/* VS files after crashes.
 *
 * A writer is killed at random moments while it appends, deletes and compacts. Before and after
 * each step it writes a report to a pipe. After each kill the file opens. Every point that was
 * reported as appended is there, equal to the bit; every point that was reported as deleted is not.
 * The interrupted step was done completely or not at all.
 *
 * Then every write to a small file is recorded, and the file is rebuilt as a power cut might leave
 * it: writes that were not yet synced are missing, in every combination, or cut at every byte.
 *
 *     points_crash [KILLS]
 */
#include "../support/files.h"
#include "ext/points/points.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define KILLS 100u
#define DIM   16u
#define MOST  4096u /* the most points that exist at a time */
#define BATCH 24u

static const uint64_t dims[] = { DIM };

static tnf_points_options options_of(bool sync)
{
    return (tnf_points_options) { .size = sizeof(tnf_points_options),
                                  .write = true,
                                  .sync = sync ? TNF_POINTS_SYNC : TNF_POINTS_NO_SYNC };
}

/* Makes point number i. Its values depend only on i. */
static void fill_vector(float v[DIM], uint64_t i)
{
    uint64_t state = i * 2654435761u + 1;
    for (size_t k = 0; k < DIM; k++)
        v[k] = (float)(int32_t)next_random(&state);
}

static size_t app_of(uint8_t out[32], uint64_t i)
{
    size_t n = i % 20;
    out[0] = 0xcf; /* a u64 alone … */
    for (int b = 0; b < 8; b++)
        out[1 + b] = (uint8_t)(i >> 8 * (7 - b));
    if (n < 4)
        return 9;
    memmove(out + 1, out, 9); /* … or an array of it and a string, so that lengths differ */
    out[0] = 0x92;
    out[10] = (uint8_t)(0xa0 + n);
    memset(out + 11, 'a' + (int)(i % 26), n);
    return 11 + n;
}

static bool number_of(const tnf_point *p, uint64_t *i)
{
    uint8_t app[32];
    float v[DIM];
    const uint8_t *at = (const uint8_t *)p->app.p;
    if (p->app.n < 9)
        return false;
    at += at[0] == 0x92;
    *i = 0;
    for (int b = 0; b < 8; b++)
        *i = *i << 8 | at[1 + b];
    const void *want = v;
    fill_vector(v, *i);
    return app_of(app, *i) == p->app.n && memcmp(app, p->app.p, p->app.n) == 0 &&
           p->vector_n == sizeof v && memcmp(want, p->vector, sizeof v) == 0;
}

static void add_batch(tnf_points *p, uint64_t first, size_t n, tnf_status *status)
{
    static float v[BATCH][DIM];
    static uint8_t app[BATCH][32];
    tnf_point batch[BATCH];
    tnf_error error;
    for (size_t k = 0; k < n; k++) {
        fill_vector(v[k], first + k);
        batch[k] = (tnf_point) { .vector = v[k], .vector_n = sizeof v[k] };
        batch[k].app = (tnf_str) { (const char *)app[k], app_of(app[k], first + k) };
    }
    *status = tnf_points_append(NULL, p, batch, n, &error);
    if (*status != TNF_OK)
        fprintf(stderr, "append: %s\n", error.message);
}

/* ---------------------------------------------------- reports of the writer */

enum act { ADD, ADDED, DELETE, DELETED, COMPACT, COMPACTED };

struct told {
    uint32_t act, n;
    uint64_t number; /* the first point appended, or the first one deleted */
};

static void tell_act(int to, uint32_t act, uint64_t number, uint32_t n)
{
    struct told t = { act, n, number };
    if (write(to, &t, sizeof t) != (ssize_t)sizeof t)
        _exit(1);
}

/* --------------------------------------------------------------- the writer */

struct alive {
    uint64_t number[MOST];
    tnf_point_id id[MOST];
    size_t n;
};

static tnf_status note_point(void *ctx, const tnf_point *p, tnf_error *e)
{
    struct alive *a = ctx;
    (void)e;
    if (a->n < MOST && number_of(p, &a->number[a->n]))
        a->id[a->n++] = p->id;
    return TNF_OK;
}

static void write_for_ever(const char *path, uint64_t next, uint64_t seed, int to)
{
    static struct alive alive;
    tnf_points *p;
    tnf_error e;
    tnf_status status = TNF_OK;
    tnf_points_options o = options_of(seed % 4 == 0);
    if (tnf_points_open(&p, path, &o, &e) != TNF_OK)
        _exit(2);
    for (;;) {
        unsigned what = (unsigned)(next_random(&seed) % 10);
        if (what < 6) {
            uint32_t n = (uint32_t)(1 + next_random(&seed) % BATCH);
            tell_act(to, ADD, next, n);
            add_batch(p, next, n, &status);
            if (status != TNF_OK)
                _exit(3);
            tell_act(to, ADDED, next, n);
            next += n;
            continue;
        }
        alive.n = 0;
        if (tnf_points_each(p, note_point, &alive, &e) != TNF_OK)
            _exit(4);
        size_t n = alive.n > MOST / 4 ? alive.n - MOST / 8
                   : what < 9         ? 1 + next_random(&seed) % 6
                                      : 0;
        if (n && n <= alive.n) { /* all of these points are deleted, or none */
            size_t i = (size_t)(next_random(&seed) % (alive.n - n + 1));
            tell_act(to, DELETE, alive.number[i], (uint32_t)n);
            if (tnf_points_delete(p, &alive.id[i], n, what == 8 ? TNF_POINTS_SHRED : 0, &e) !=
                TNF_OK)
                _exit(5);
            tell_act(to, DELETED, alive.number[i], (uint32_t)n);
        }
        if (what == 9) {
            tell_act(to, COMPACT, 0, 0);
            if (tnf_points_compact(p, 0, NULL, NULL, &e) != TNF_OK)
                _exit(6);
            tell_act(to, COMPACTED, 0, 0);
        }
    }
}

/* -------------------------------------------------------------- the checker */

/* The points that must be in the file: all that were committed, by number. */
static struct {
    uint64_t number[2 * MOST];
    size_t n;
    uint64_t next;     /* number of the next point */
    struct told under; /* the interrupted step: ADD, DELETE, COMPACT; COMPACTED: none */
} must;

static size_t find_number(uint64_t number)
{
    size_t i = 0;
    while (i < must.n && must.number[i] != number)
        i++;
    return i;
}

static void take_in(const struct told *t)
{
    if (t->act == ADDED) {
        MUST(must.n + t->n <= 2 * MOST);
        for (uint32_t k = 0; k < t->n; k++)
            must.number[must.n++] = t->number + k;
        must.next = t->number + t->n;
    } else if (t->act == DELETED) {
        size_t i = find_number(t->number);
        MUST(i < must.n && t->n <= must.n - i);
        memmove(&must.number[i], &must.number[i + t->n],
                (must.n - i - t->n) * sizeof must.number[0]);
        must.n -= t->n;
    }
    must.under = *t;
}

static struct alive found;

/* Compares the file with the points that must be in it. Afterwards the list has the points of the
 * file. */
static void compare_file(const char *path)
{
    tnf_points *p;
    tnf_error e;
    tnf_points_options o = options_of(false);
    tnf_points_report report = TNF_POINTS_REPORT_INIT;
    found.n = 0;
    if (!CHECK(tnf_points_open(&p, path, &o, &e) == TNF_OK, "does not open: %s", e.message))
        return;
    CHECK(tnf_points_each(p, note_point, &found, &e) == TNF_OK, "cannot be read: %s", e.message);
    CHECK(tnf_points_verify(&report, p, NULL, NULL, &e) == TNF_OK && report.problems == 0,
          "%llu problems", (unsigned long long)report.problems);
    CHECK(report.points == found.n, "%llu points, %zu of them whole",
          (unsigned long long)report.points, found.n);
    tnf_points_close(p);
    const struct told *u = &must.under;
    size_t extra = u->act == ADD && found.n == must.n + u->n ? u->n : 0;
    if (u->act == DELETE && found.n + u->n == must.n) {
        struct told done = { DELETED, u->n, u->number };
        take_in(&done);
    }
    CHECK(found.n == must.n + extra, "%zu points, %zu were committed (last told: %u)", found.n,
          must.n, u->act);
    bool same = found.n >= must.n &&
                memcmp(found.number, must.number, must.n * sizeof must.number[0]) == 0;
    CHECK(same, "a committed point is missing, or in another place");
    for (size_t k = 0; k < extra; k++)
        CHECK(found.number[must.n + k] == u->number + k, "a batch is not what was appended");
    if (u->act == ADD) { /* numbers are not used again */
        struct told done = { ADDED, (uint32_t)extra, u->number };
        take_in(&done);
        must.next = u->number + u->n;
    }
    must.under.act = COMPACTED;
}

static void kill_one(const char *path, uint64_t seed, unsigned long *acts, unsigned long under[6])
{
    int ends[2], status;
    struct told t;
    MUST(pipe(ends) == 0);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        close(ends[0]);
        write_for_ever(path, must.next, seed, ends[1]);
    }
    close(ends[1]);
    struct timespec nap = { 0, (long)(next_random(&seed) % 20000000u) + 200000 };
    nanosleep(&nap, NULL);
    kill(child, SIGKILL);
    MUST(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status), "the writer gave up by itself: %d", WEXITSTATUS(status));
    for (ssize_t n; (n = read(ends[0], &t, sizeof t)) > 0;) {
        MUST(n == (ssize_t)sizeof t);
        take_in(&t);
        ++*acts;
    }
    close(ends[0]);
    under[must.under.act]++;
    compare_file(path);
}

static void kill_writers(unsigned n)
{
    char path[300];
    tnf_points *p;
    unsigned long acts = 0, under[6] = { 0 };
    tnf_points_options o = options_of(false);
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_of(TNF_F32), .dims = dims, .rank = 1
    };
    snprintf(path, sizeof path, "%s/killed.vsdb", files_temp());
    MUST(tnf_points_create(&p, path, &space, &o, NULL) == TNF_OK);
    tnf_points_close(p);
    must.under.act = COMPACTED;
    for (unsigned i = 0; i < n; i++) {
        check_doing("kill %u", i);
        kill_one(path, (uint64_t)i * 7919 + 1, &acts, under);
        if (check_state.failed > 10)
            break;
    }
    printf(
        "%u kills among %lu steps: within %lu appends, %lu deletions, %lu compactions; %zu points "
        "are left\n",
        n, acts, under[ADD], under[DELETE], under[COMPACT], must.n);
    /* a compaction that was killed before the rename leaves its temporary file; the next change of
     * any process removes it */
    CHECK(files_count(files_temp(), ".tmp-") <= 1, "many temporary files are left");
    tnf_status status = TNF_OK;
    o.write = true;
    MUST(tnf_points_open(&p, path, &o, NULL) == TNF_OK);
    add_batch(p, must.next, 1, &status);
    tnf_points_close(p);
    CHECK(status == TNF_OK && files_count(files_temp(), ".tmp-") == 0, "a temporary file is left");
}

/* --------------------------------------------------------------- torn writes */

struct step {
    tnf_disk_act act;
    uint64_t offset;
    uint8_t *bytes;
    size_t n;
};

static struct {
    struct step list[64];
    size_t n;
} steps;

static void record_step(void *ctx, tnf_disk_act act, uint64_t offset, const void *bytes, size_t n)
{
    (void)ctx;
    MUST(steps.n < 64);
    struct step *s = &steps.list[steps.n++];
    *s = (struct step) { act, offset, malloc(n + 1), n };
    MUST(s->bytes != NULL);
    if (n)
        memcpy(s->bytes, bytes, n);
}

static void forget_steps(void)
{
    while (steps.n)
        free(steps.list[--steps.n].bytes);
}

/* A file in memory. A write may make it longer; a gap is filled with zeros. */
struct disk {
    uint8_t p[8192];
    size_t n;
};

static void apply_step(struct disk *d, const struct step *s, size_t from, size_t to)
{
    if (s->act == TNF_DISK_TRUNCATE) {
        d->n = (size_t)s->offset;
        memset(d->p + d->n, 0, sizeof d->p - d->n);
    }
    if (s->act != TNF_DISK_WRITE || from >= to)
        return;
    MUST(s->offset + s->n <= sizeof d->p);
    memcpy(d->p + s->offset + from, s->bytes + from, to - from);
    if (d->n < s->offset + to)
        d->n = (size_t)s->offset + to;
}

/* A bit for each numbered point in the file; UINT64_MAX if it is not a valid file. */
static uint64_t points_in(const struct disk *d, const char *path)
{
    tnf_points *p;
    tnf_error e;
    tnf_points_options o = options_of(false);
    uint64_t mask = 0;
    bytes_to_file(path, d->p, d->n);
    found.n = 0;
    if (tnf_points_open(&p, path, &o, &e) != TNF_OK)
        return UINT64_MAX;
    tnf_points_report report = TNF_POINTS_REPORT_INIT;
    bool good = tnf_points_each(p, note_point, &found, &e) == TNF_OK &&
                tnf_points_verify(&report, p, NULL, NULL, &e) == TNF_OK && report.points == found.n;
    /* an appended file may lack '$' only where it did before */
    tnf_points_close(p);
    for (size_t i = 0; i < found.n; i++)
        mask |= (uint64_t)1 << found.number[i] % 63;
    return good ? mask : UINT64_MAX;
}

static unsigned long torn;

static void check_state_of(const struct disk *d, const char *path, uint64_t before, uint64_t after)
{
    uint64_t mask = points_in(d, path);
    torn++;
    CHECK(mask == before || mask == after, "points %llx, neither %llx nor %llx",
          (unsigned long long)mask, (unsigned long long)before, (unsigned long long)after);
}

/* Each write since the last sync may be missing, or be cut at either side. All that was synced is
 * there. */
static void cut_everywhere(const struct disk *start, const char *path, uint64_t before,
                           uint64_t after)
{
    struct disk safe = *start;
    for (size_t from = 0, to; from < steps.n; from = to + 1) {
        for (to = from; to < steps.n && steps.list[to].act != TNF_DISK_SYNC; to++)
            continue;
        size_t n = to - from;
        MUST(n <= 6);
        for (unsigned set = 0; set < 1u << n; set++) { /* complete writes, in order, some missing */
            struct disk d = safe;
            for (size_t k = 0; k < n; k++)
                if (set >> k & 1)
                    apply_step(&d, &steps.list[from + k], 0, steps.list[from + k].n);
            check_state_of(&d, path, before, after);
            for (size_t k = 0; k < n; k++) { /* and one of them is cut */
                const struct step *s = &steps.list[from + k];
                for (size_t cut = 1; s->act == TNF_DISK_WRITE && cut < s->n && set == 0; cut++) {
                    struct disk front = safe, back = safe;
                    apply_step(&front, s, 0, cut);
                    check_state_of(&front, path, before, after);
                    apply_step(&back, s, cut, s->n);
                    check_state_of(&back, path, before, after);
                }
            }
        }
        struct disk d = safe; /* writes in order; the last one is cut at every byte */
        for (size_t k = from; k < to; k++) {
            for (size_t cut = 0; cut <= steps.list[k].n; cut++) {
                struct disk part = d;
                apply_step(&part, &steps.list[k], 0, cut);
                check_state_of(&part, path, before, after);
            }
            apply_step(&d, &steps.list[k], 0, steps.list[k].n);
        }
        safe = d;
    }
    CHECK(points_in(&safe, path) == after, "at the end it is not what it should be");
}

static struct disk disk_of(const char *path)
{
    struct disk d = { .n = 0 };
    struct bytes b = bytes_of_file(path);
    MUST(b.p && b.n <= sizeof d.p);
    memcpy(d.p, b.p, b.n);
    d.n = b.n;
    free(b.p);
    return d;
}

enum change {
    APPEND_ONE,
    APPEND_MANY,
    DELETE_ONE,
    SHRED_ONE,
    DELETE_MANY,
    SHRED_MANY,
    ATTRIBUTE_BYTE
};

static void do_change(tnf_points *p, enum change what, uint64_t *after)
{
    tnf_error e;
    tnf_status status = TNF_OK;
    found.n = 0;
    MUST(tnf_points_each(p, note_point, &found, &e) == TNF_OK);
    p->log = record_step;
    if (what == APPEND_ONE || what == APPEND_MANY) {
        size_t n = what == APPEND_ONE ? 1 : 5;
        add_batch(p, 10, n, &status);
        for (size_t k = 0; k < n; k++)
            *after |= (uint64_t)1 << (10 + k);
    } else if (what == ATTRIBUTE_BYTE) {
        tnf_value v = tnf_value_string("abXd");
        status = tnf_points_set_attributes(p, &v, 0, &e);
    } else {
        size_t n = what >= DELETE_MANY ? 2 : 1;
        bool shred = what == SHRED_ONE || what == SHRED_MANY;
        status = tnf_points_delete(p, &found.id[1], n, shred ? TNF_POINTS_SHRED : 0, &e);
        for (size_t k = 1; k <= n; k++)
            *after &= ~((uint64_t)1 << found.number[k]);
    }
    p->log = NULL;
    CHECK(status == TNF_OK, "%s", e.message);
}

/* tail 0: the file as it is; 1: with other bytes after '$'; 2: without '$' */
static void tear_change(const char *path, enum change what, int tail)
{
    char other[320];
    tnf_points *p;
    tnf_error e;
    tnf_status status;
    tnf_points_options o = options_of(true);
    tnf_value attributes = tnf_value_string("abcd");
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_of(TNF_F32), .dims = dims, .rank = 1
    };
    space.attributes = &attributes;
    check_doing("change %d, tail %d", (int)what, tail);
    snprintf(other, sizeof other, "%s.torn", path);
    unlink(path);
    MUST(tnf_points_create(&p, path, &space, &o, &e) == TNF_OK);
    add_batch(p, 0, 3, &status);
    MUST(status == TNF_OK);
    tnf_points_close(p);
    struct disk start = disk_of(path);
    if (tail == 1) { /* the rest of a crash: half of another append, with a '$' and a 'P' in it */
        memcpy(start.p + start.n, "P\x05\0\0\0$abc$P\xff\xff", 13);
        start.n += 300;
    } else if (tail == 2) {
        start.n--;
        start.p[start.n] = 0;
    }
    bytes_to_file(path, start.p, start.n);
    MUST(tnf_points_open(&p, path, &o, &e) == TNF_OK);
    uint64_t before = 7, after = 7;
    do_change(p, what, &after);
    tnf_points_close(p);
    cut_everywhere(&start, other, before, after);
    forget_steps();
    unlink(other);
}

/* While a file is made, it is a VS file with its space, or no VS file. */
static void tear_creation(const char *path)
{
    tnf_points *p;
    tnf_error e;
    struct disk none = { .n = 0 };
    tnf_points_options o = options_of(true);
    tnf_space space = {
        .size = sizeof space, .type = tnf_type_of(TNF_F32), .dims = dims, .rank = 1
    };
    check_doing("making a file");
    unlink(path);
    MUST(tnf_points_create(&p, path, &space, &o, &e) == TNF_OK);
    tnf_points_close(p);
    struct disk whole = disk_of(path);
    struct step made[2] = {
        { TNF_DISK_WRITE, 4, whole.p + 4, whole.n - 4 },
        { TNF_DISK_WRITE, 0, whole.p, 4 },
    };
    struct disk d = none;
    for (int k = 0; k < 2; k++) {
        for (size_t cut = 0; cut <= made[k].n; cut++) {
            struct disk part = d;
            apply_step(&part, &made[k], 0, cut);
            uint64_t mask = points_in(&part, path);
            bool whole_now = k == 1 && part.p[0] == 'V' && part.p[1] == 'S';
            CHECK(mask == (whole_now ? 0 : UINT64_MAX), "cut at %zu of write %d", cut, k);
            torn++;
        }
        apply_step(&d, &made[k], 0, made[k].n);
    }
}

int main(int argc, char **argv)
{
    char path[300];
    unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : KILLS;
    snprintf(path, sizeof path, "%s/small.vsdb", files_temp());
    for (int what = APPEND_ONE; what <= ATTRIBUTE_BYTE; what++)
        for (int tail = 0; tail < 3; tail++)
            tear_change(path, (enum change)what, tail);
    tear_creation(path);
    printf("%lu torn files\n", torn);
    kill_writers(n);
    return check_end("points_crash");
}
