/* SPDX-License-Identifier: MIT */
/* Many threads use one handle at the same time: they find, read, slice, map, read many tensors
 * (with threads of that call), verify and save. Then many handles use one file. Run under
 * ThreadSanitizer as well. */
#include "support/big.h"
#include <pthread.h>
#include <stdatomic.h>

#define THREADS 8
#define ROUNDS  25
#define TENSORS 24u
#define BYTES   ((uint64_t)200000)

static char path[340];
static atomic_ulong done;

/* check.h counts without locks, so threads only report failures, and do this under one lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define CHECK_HERE(condition, ...)                                                                 \
    do {                                                                                           \
        atomic_fetch_add(&done, 1);                                                                \
        if (!(condition)) {                                                                        \
            pthread_mutex_lock(&lock);                                                             \
            CHECK(false, __VA_ARGS__);                                                             \
            pthread_mutex_unlock(&lock);                                                           \
        }                                                                                          \
    } while (0)

struct job {
    const tnf_file *file; /* NULL: the thread opens its own */
    uint64_t seed;
};

static void read_whole(const tnf_object *o, uint8_t *p)
{
    tnf_error error;
    tnf_status status = tnf_read(p, BYTES, o, &error);
    CHECK_HERE(status == TNF_OK && big_is(p, BYTES, 0), "read: %s", tnf_status_name(status));
}

static void read_slice(const tnf_object *o, uint8_t *p, uint64_t r)
{
    tnf_error error;
    tnf_slice s = { .start = (int64_t)(r % (BYTES / 4)), .step = -1 };
    s.count = (uint64_t)s.start + 1;
    size_t n = (size_t)tnf_slice_bytes(o, &s);
    tnf_status status = tnf_read_slice(p, n, o, &s, &error);
    CHECK_HERE(status == TNF_OK, "slice: %s", tnf_status_name(status));
    for (size_t i = 0; i < n; i += 997)
        CHECK_HERE(p[i] == big_byte(0, (uint64_t)s.start * 4 - i / 4 * 4 + i % 4),
                   "slice: byte %zu", i);
}

static void map_part(const tnf_object *o)
{
    tnf_error error;
    const void *view;
    tnf_status status = tnf_map(&view, o->parts, &error);
    if (status == TNF_OK)
        CHECK_HERE(big_is(view, BYTES, 0), "map: other bytes");
    else
        CHECK_HERE(status == TNF_EUNSUPPORTED, "map: %s", tnf_status_name(status));
    tnf_prefetch(o->parts);
}

static bool go_on(void *ctx, uint64_t bytes, uint64_t total)
{
    uint64_t *last = ctx; /* only one thread at a time reports progress, so we need no lock */
    CHECK_HERE(bytes > *last && bytes <= total, "progress goes from %llu to %llu of %llu",
               (unsigned long long)*last, (unsigned long long)bytes, (unsigned long long)total);
    *last = bytes;
    return true;
}

static bool stop_at_once(void *ctx, uint64_t bytes, uint64_t total)
{
    (void)ctx, (void)bytes, (void)total;
    return false;
}

static void read_many(const tnf_file *file, unsigned threads, bool cancel)
{
    tnf_error error;
    tnf_request r[TENSORS];
    uint64_t last = 0;
    uint8_t *p = malloc(TENSORS * BYTES);
    tnf_read_options o = { .size = sizeof o, .threads = threads, .ctx = &last };
    o.progress = cancel ? stop_at_once : go_on;
    for (unsigned i = 0; i < TENSORS; i++) /* backwards; the library sorts them */
        r[i] = (tnf_request) { tnf_at(file, TENSORS - 1 - i)->parts, p + i * BYTES };
    tnf_status status = tnf_read_many(r, TENSORS, &o, &error);
    CHECK_HERE(status == (cancel ? TNF_ECANCELLED : TNF_OK), "many: %s", tnf_status_name(status));
    for (unsigned i = 0; i < TENSORS && !cancel; i++)
        CHECK_HERE(big_is(r[i].dst, BYTES, 0), "many: tensor %u", i);
    CHECK_HERE(cancel || last == TENSORS * BYTES, "progress ends at %llu",
               (unsigned long long)last);
    free(p);
}

static void verify_and_save(const tnf_file *file)
{
    tnf_error error;
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_builder *b;
    tnf_sink *sink;
    tnf_save_options o = { .size = sizeof o, .format = BIG_FORMAT };
    CHECK_HERE(tnf_verify(&result, file, NULL, &error) == TNF_OK && result.problems == 0, "verify");
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK && tnf_sink_memory(&sink, NULL) == TNF_OK);
    tnf_status status = tnf_builder_add_file(b, file, &error);
    if (status == TNF_OK)
        status = tnf_save_sink(b, sink, &o, &error);
    CHECK_HERE(status == TNF_OK, "save: %s", tnf_status_name(status));
    CHECK_HERE(tnf_sink_bytes(sink).n == tnf_file_info(file)->size, "save: another size");
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

static void *run_job(void *arg)
{
    struct job *job = arg;
    tnf_file *own = NULL;
    tnf_error error;
    uint8_t *p = malloc(BYTES);
    if (!job->file)
        CHECK_HERE(tnf_open(&own, path, NULL, &error) == TNF_OK, "open");
    const tnf_file *file = job->file ? job->file : own;
    for (int i = 0; i < ROUNDS && file && p; i++) {
        uint64_t r = next_random(&job->seed);
        char name[16];
        snprintf(name, sizeof name, "t%u", (unsigned)(r >> 8) % TENSORS);
        const tnf_object *o = tnf_find(file, name);
        CHECK_HERE(o && strcmp(o->name.p, name) == 0, "find %s", name);
        CHECK_HERE(!tnf_find(file, "none"), "find what is not there");
        switch (r % 8) {
        case 0:
        case 1:
        case 2:
            read_whole(o, p);
            break;
        case 3:
        case 4:
            read_slice(o, p, r >> 20);
            break;
        case 5:
            map_part(o);
            break;
        case 6:
            read_many(file, 1 + (unsigned)(r >> 30) % 4, (r >> 33) % 3 == 0);
            break;
        default:
            verify_and_save(file);
            break;
        }
    }
    free(p);
    tnf_close(own);
    return NULL;
}

static void work_together(const tnf_file *file)
{
    pthread_t ids[THREADS];
    struct job jobs[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (struct job) { file, i + 1 };
        MUST(pthread_create(&ids[i], NULL, run_job, &jobs[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
}

int main(void)
{
    static const tnf_access ways[] = { TNF_ACCESS_MMAP, TNF_ACCESS_PREAD };
    tnf_error error;
    tnf_file *file;
    snprintf(path, sizeof path, "%s/file", files_temp());
    MUST(big_save(path, 0, TENSORS, BYTES, false, NULL) == TNF_OK);
    for (size_t i = 0; i < 2; i++) {
        tnf_open_options o = { .size = sizeof o, .access = ways[i] };
        MUST(tnf_open(&file, path, &o, &error) == TNF_OK);
        work_together(file);
        for (unsigned threads = 1; threads <= 4; threads++) {
            read_many(file, threads, false);
            read_many(file, threads, true);
        }
        tnf_close(file);
    }
    work_together(NULL); /* each thread with its own handle */
    CHECK(done > 1000, "little was done");
    printf("%lu things looked at on %d threads\n", (unsigned long)done, THREADS);
    return check_end("threads");
}
