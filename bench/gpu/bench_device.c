/* SPDX-License-Identifier: MIT */
/* Measures loads onto a device from the call to the last byte: opening, planning, pinning,
 * allocating and all copies. The device itself is opened before, as in a running program.
 *
 *   bench_device make llama|moe|small|q4_k PATH     a file of random bytes
 *   bench_device limit                              the bare copy from pinned memory
 *   bench_device disk PATH                          the bare read of a file past the cache
 *   bench_device load PATH [runs=5] [cold] [check] [each] [read=cached|direct] [tp=4] [as=bf16]
 *                     [threads=N] [block=BYTES] [slots=N] [device=cuda:0] [keep]
 *                     [streams=N]
 *
 * `keep` leaves pinned buffers from run to run; `check` compares every byte after the last run. The
 * ranks of `tp` are loaded one after the other; the tensors of all of them are kept meanwhile.
 */
#include "../bench.h"
#include "shapes.h"

#include "base/pool.h"
#include "device/load.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <tenfold/device.h>
#include <tenfold/virtual.h>
#include <time.h>
#include <unistd.h>

#define MAX_TP      8u

#define OWN_STREAMS 1000u

struct how {
    const char *path, *device;
    unsigned runs, tp, streams;
    bool cold, check, keep;
    const tnf_type *as;
    tnf_load_options load;
};

/* ------------------------------------------------------------------ limits */

static tnf_status bare_limit(tnf_error *e)
{
    const size_t slot = (size_t)16 << 20, slots = 4, rounds = 512;
    tnf_device *d;
    tnf_buffer *b;
    tnf_queue *q;
    cu_ptr to;
    double best = 1e9;
    bench_check(tnf_device_open(&d, "cuda:0", NULL, e), e);
    bench_check(tnf_buffer_take(&b, d, slot, (unsigned)slots, e), e);
    bench_check(tnf_queue_take(&q, d, 1, true, e), e);
    bench_check(tnf_device_enter(d, e), e);
    memset(b->memory, 1, b->size);
    bench_check(tnf_buffer_pin(d, b, e), e);
    if (d->cuda->memory_alloc(&to, slot * slots) != 0)
        bench_die("memory");
    for (int run = 0; run < 3; run++) {
        double from = bench_now();
        for (size_t i = 0; i < rounds; i++)
            bench_check(tnf_copy_to(d, q, (void *)(uintptr_t)(to + i % slots * slot),
                                    b->memory + i % slots * b->slot, slot, e),
                        e);
        bench_check(tnf_queue_drain(d, q, e), e);
        double took = bench_now() - from;
        best = took < best ? took : best;
    }
    printf("{\"what\": \"limit\", \"gbps\": %.2f}\n", (double)(rounds * slot) / best / 1e9);
    d->cuda->memory_free(to);
    tnf_device_leave(d);
    tnf_queue_give(d, q);
    tnf_buffer_give(d, b);
    tnf_device_close(d);
    return TNF_OK;
}

struct disk {
    int fd;
    uint64_t size;
};

static tnf_status read_disk(void *ctx, size_t i, tnf_error *e)
{
    const struct disk *d = ctx;
    const size_t block = (size_t)4 << 20;
    static _Thread_local uint8_t *room;
    (void)e;
    if (!room && posix_memalign((void **)&room, 4096, block) != 0)
        return TNF_ENOMEM;
    return pread(d->fd, room, block, (off_t)(i * block)) >= 0 ? TNF_OK : TNF_EIO;
}

static void bare_disk(const char *path)
{
    tnf_error e;
    struct stat st;
    struct disk d = { .fd = open(path, O_RDONLY | O_DIRECT) };
    if (d.fd < 0 || fstat(d.fd, &st) != 0)
        bench_die(path);
    size_t n = (size_t)st.st_size / ((size_t)4 << 20);
    double from = bench_now();
    bench_check(tnf_pool_run(16, n, read_disk, &d, &e), &e);
    double took = bench_now() - from;
    printf("{\"what\": \"disk\", \"gbps\": %.2f}\n",
           (double)n * (double)((size_t)4 << 20) / took / 1e9);
    close(d.fd);
}

/* ------------------------------------------------------------------- loads */

static double cached_share(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0)
        return -1;
    size_t pages = ((size_t)st.st_size + 4095) / 4096, there = 0;
    uint8_t *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0), *in = malloc(pages);
    if (p != MAP_FAILED && in && mincore(p, (size_t)st.st_size, in) == 0)
        for (size_t i = 0; i < pages; i++)
            there += in[i] & 1;
    munmap(p, (size_t)st.st_size);
    free(in);
    close(fd);
    return (double)there / (double)pages;
}

static void drop_cache(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd >= 0 && (fdatasync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0))
        perror(path);
    if (fd >= 0)
        close(fd);
}

/* Row-parallel weights are cut in columns, all others in rows, as tensor parallelism does. */
static void slice_of(tnf_slice *out, const tnf_object *o, unsigned rank, unsigned tp)
{
    bool columns = strstr(o->name.p, "o_proj") || strstr(o->name.p, "down_proj");
    for (uint32_t d = 0; d < o->rank; d++)
        out[d] = (tnf_slice) { .start = 0, .step = 1, .count = o->shape[d] };
    uint32_t cut = columns && o->rank > 1 ? 1 : 0;
    if (o->rank < 2 || o->shape[cut] % tp)
        return; /* norms are not divided */
    out[cut].count = o->shape[cut] / tp;
    out[cut].start = (int64_t)(out[cut].count * rank);
}

struct wanted {
    tnf_device_request *requests;
    tnf_slice *slices;
    size_t n;
};

static struct wanted want_file(const tnf_file *file, const struct how *how, unsigned rank)
{
    struct wanted w = { .n = tnf_file_info(file)->objects };
    w.requests = calloc(w.n + 1, sizeof *w.requests);
    w.slices = calloc(w.n * 4 + 1, sizeof *w.slices);
    if (!w.requests || !w.slices)
        bench_die("memory");
    for (size_t i = 0; i < w.n; i++) {
        w.requests[i].object = tnf_at(file, i);
        w.requests[i].as = how->as;
        if (how->tp > 1) {
            slice_of(w.slices + i * 4, tnf_at(file, i), rank, how->tp);
            w.requests[i].slices = w.slices + i * 4;
        }
    }
    return w;
}

struct checking {
    const struct wanted *w;
    tnf_load *load;
    tnf_device *device;
};

/* Compares tensor i with the bytes that the library reads without a device. */
static tnf_status check_tensor(void *ctx, size_t i, tnf_error *e)
{
    struct checking *c = ctx;
    const tnf_device_request *r = &c->w->requests[i];
    size_t n = (size_t)tnf_load_bytes(NULL, c->load, i);
    uint8_t *there = malloc(n + 1), *here = malloc(n + 1);
    const tnf_object *o = r->object;
    tnf_virtual *made[2] = { NULL, NULL };
    tnf_virtual_how to = TNF_VIRTUAL_HOW_INIT;
    if (!there || !here)
        bench_die("memory");
    tnf_status status = tnf_device_read(there, c->device, tnf_load_at(c->load, i), n, e);
    if (status == TNF_OK && r->as) {
        status = tnf_virtual_new(&made[0], &o, 1, &to, e);
        o = status == TNF_OK ? tnf_virtual_object(made[0]) : o;
        to.kind = TNF_VIRTUAL_CAST;
        to.type = r->as;
        if (status == TNF_OK)
            status = tnf_virtual_new(&made[1], &o, 1, &to, e);
        o = status == TNF_OK ? tnf_virtual_object(made[1]) : o;
    }
    if (status == TNF_OK)
        status = r->slices ? tnf_read_slice(here, n, o, r->slices, e) : tnf_read(here, n, o, e);
    if (status == TNF_OK && memcmp(here, there, n) != 0)
        status = tnf_error_set(e, TNF_EDIGEST, TNF_NO_OFFSET, "%s differs", o->name.p);
    tnf_virtual_free(made[1]);
    tnf_virtual_free(made[0]);
    free(there);
    free(here);
    return status;
}

static uint64_t peak_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss << 10;
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* One rank's tensors, which are kept until all ranks are loaded. */
struct rank {
    tnf_file *file;
    tnf_load *load;
    struct wanted wanted;
    double took;
};

static void load_rank(struct rank *r, tnf_device *d, const struct how *how, unsigned number)
{
    tnf_error e;
    double from = bench_now();
    bench_check(tnf_open(&r->file, how->path, NULL, &e), &e);
    r->wanted = want_file(r->file, how, number);
    bench_check(tnf_device_load(&r->load, d, r->wanted.requests, r->wanted.n, &how->load, &e), &e);
    r->took = bench_now() - from;
}

static void check_rank(const struct rank *r, tnf_device *d)
{
    tnf_error e;
    struct checking c = { &r->wanted, r->load, d };
    bench_check(tnf_pool_run(8, r->wanted.n, check_tensor, &c, &e), &e);
}

static void free_rank(struct rank *r)
{
    tnf_load_free(r->load);
    tnf_close(r->file);
    free(r->wanted.requests);
    free(r->wanted.slices);
}

/* The driver clears memory that was freed, with the engine that copies: 16 GB take some 20 ms of
 * the next load, if that follows at once. */
static void let_driver_clear(void)
{
    nanosleep(&(struct timespec) { .tv_nsec = 300000000 }, NULL);
}

/* The last run's time line in milliseconds since the load began, then each thread's share. */
static void print_clock(const tnf_load_clock *c, unsigned threads, const struct how *how)
{
    const struct {
        const char *name;
        uint64_t at;
    } marks[] = { { "planned", c->planned },
                  { "placed", c->placed },
                  { "pinned", c->pinned },
                  { "first_read", c->first_read },
                  { "first_sent", c->first_sent },
                  { "last_sent", c->last_sent },
                  { "ended", c->ended } };
    double share = threads ? 1e-6 / threads : 0;
    printf("\"block\": %zu, \"slots\": %u, \"streams\": %u, \"ms\": {", how->load.block,
           how->load.slots, how->streams);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        printf("\"%s\": %.2f, ", marks[i].name,
               marks[i].at ? (double)(marks[i].at - c->begun) * 1e-6 : -1);
    printf("\"pinning\": %.2f, \"reading\": %.2f, \"sending\": %.2f, \"waiting\": %.2f}, "
           "\"gbps\": [",
           (double)c->pinning * 1e-6, (double)c->reading * share, (double)c->sending * share,
           (double)c->waiting * share);
}

/* The arguments and results of all runs. */
struct figures {
    double times[64], ranks[MAX_TP], opened, cpu, cached;
    uint64_t bytes, read, memory;
    tnf_load_report report; /* of the last rank */
    tnf_load_clock clock;
};

/* All ranks, one after the other; their bytes are compared, if `check` asks for it. */
static double load_all(tnf_device *d, const struct how *how, bool check, struct figures *f)
{
    tnf_error e;
    struct rank ranks[MAX_TP] = { 0 };
    double took = 0;
    f->bytes = f->read = 0;
    for (unsigned i = 0; i < how->tp; i++) {
        if (how->cold)
            drop_cache(how->path);
        load_rank(&ranks[i], d, how, i);
        took += f->ranks[i] = ranks[i].took;
        bench_check(tnf_load_tell(&f->report, ranks[i].load, &e), &e);
        f->bytes += f->report.bytes;
        f->read += f->report.bytes_read;
        f->clock = ranks[i].load->clock;
    }
    for (unsigned i = 0; i < how->tp; i++) {
        if (check)
            check_rank(&ranks[i], d);
        free_rank(&ranks[i]);
    }
    return took;
}

static void print_figures(const struct figures *f, const struct how *how)
{
    const tnf_load_report *r = &f->report;
    printf("{\"what\": \"load\", \"path\": \"%s\", \"tp\": %u, \"as\": \"%s\", \"cached\": %.3f, "
           "\"open_device\": %.3f, \"bytes\": %" PRIu64 ", \"read\": %" PRIu64
           ", \"copies\": %" PRIu64 ", \"pinned\": %" PRIu64 ", \"threads\": %u, \"direct\": %u, "
           "\"transformed\": %" PRIu64 ", \"rss\": %" PRIu64
           ", \"cpu\": %.2f, \"checked\": %s, \"kept\": %s, ",
           how->path, how->tp, how->as ? how->as->id : "", f->cached, f->opened, f->bytes, f->read,
           r->copies, r->pinned, r->threads, r->direct, r->transformed, f->memory, f->cpu,
           how->check ? "true" : "false", how->keep ? "true" : "false");
    printf("\"ranks\": [");
    for (unsigned i = 0; i < how->tp; i++)
        printf("%s%.2f", i ? ", " : "", f->ranks[i] * 1e3);
    printf("], ");
    print_clock(&f->clock, r->threads, how);
    for (unsigned i = 0; i < how->runs; i++)
        printf("%s%.2f", i ? ", " : "", (double)(how->as ? f->read : f->bytes) / f->times[i] / 1e9);
    printf("]}\n");
    fflush(stdout);
}

static void measure_load(struct how *how)
{
    tnf_error e;
    tnf_device *d;
    struct figures f = { .opened = bench_now(), .report = TNF_LOAD_REPORT_INIT };
    how->runs = how->runs < 64 ? how->runs : 64;
    bench_check(tnf_device_open(&d, how->device, NULL, &e), &e);
    f.opened = bench_now() - f.opened;
    if (how->streams)
        d->nstreams = how->streams == OWN_STREAMS ? 0 : how->streams;
    for (unsigned i = 0; i < how->runs; i++) {
        if (!how->keep)
            tnf_device_trim(d);
        if (how->cold)
            drop_cache(how->path);
        f.cached = cached_share(how->path);
        let_driver_clear();
        double cpu = cpu_seconds();
        f.times[i] = load_all(d, how, false, &f);
        f.cpu += (cpu_seconds() - cpu) / how->runs;
    }
    f.memory = peak_memory();
    struct figures ignored = f;
    if (how->check)
        load_all(d, how, true, &ignored);
    tnf_device_close(d);
    print_figures(&f, how);
}

/* "name=" at the beginning of an argument: what follows, or NULL. */
static const char *value_of(const char *argument, const char *name)
{
    size_t n = strlen(name);
    return strncmp(argument, name, n) == 0 && argument[n] == '=' ? argument + n + 1 : NULL;
}

static void parse_option(struct how *how, const char *a)
{
    const char *v;
    if ((v = value_of(a, "runs")))
        how->runs = (unsigned)bench_number(v);
    else if ((v = value_of(a, "tp")))
        how->tp = (unsigned)bench_number(v) % (MAX_TP + 1);
    else if ((v = value_of(a, "threads")))
        how->load.threads = (unsigned)bench_number(v);
    else if ((v = value_of(a, "streams")))
        how->streams = *v == '0' ? OWN_STREAMS : (unsigned)bench_number(v) % (TNF_STREAMS_MAX + 1);
    else if ((v = value_of(a, "slots")))
        how->load.slots = (unsigned)bench_number(v);
    else if ((v = value_of(a, "block")))
        how->load.block = (size_t)bench_number(v);
    else if ((v = value_of(a, "device")))
        how->device = v;
    else if ((v = value_of(a, "as")))
        how->as = tnf_type_spelled(v);
    else if ((v = value_of(a, "read")))
        how->load.read = *v == 'c' ? TNF_DEVICE_READ_CACHED : TNF_DEVICE_READ_DIRECT;
    how->cold = how->cold || strcmp(a, "cold") == 0;
    how->check = how->check || strcmp(a, "check") == 0;
    how->keep = how->keep || strcmp(a, "keep") == 0;
    if (strcmp(a, "each") == 0)
        how->load.alloc = TNF_DEVICE_EACH;
}

int main(int argc, char **argv)
{
    tnf_error e;
    struct how how = { .device = "cuda:0", .runs = 5, .tp = 1, .load = TNF_LOAD_INIT };
    const char *command = argc > 1 ? argv[1] : "";
    if (strcmp(command, "make") == 0 && argc == 4)
        return shapes_make(argv[2], argv[3]) ? 0 : 1;
    if (strcmp(command, "limit") == 0)
        return bare_limit(&e);
    if (strcmp(command, "disk") == 0 && argc > 2) {
        bare_disk(argv[2]);
        return 0;
    }
    if (strcmp(command, "load") != 0 || argc < 3)
        return fprintf(stderr, "usage: bench_device make|limit|disk|load …\n"), 2;
    how.path = argv[2];
    for (int i = 3; i < argc; i++)
        parse_option(&how, argv[i]);
    measure_load(&how);
    return 0;
}
