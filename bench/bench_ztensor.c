/* SPDX-License-Identifier: MIT */
/* The workloads of zTensor's own benchmark, with Tenfold:
 *
 *   bench_ztensor list|walk|copy|verify FILE ROUNDS    a .zt file in the page cache
 *   bench_ztensor save FILE ROUNDS DIRECTORY [sync]    the tensors of FILE from memory, canonically
 *   bench_ztensor range FILE NAME                      1 MiB from the middle of an encoded tensor
 *
 * walk reads one byte of each page of every tensor, through views. Prints one JSON object.
 */
#include "bench.h"

#include <string.h>
#include <tenfold/build.h>
#include <unistd.h>

static tnf_error error;
static const char *path, *out;
static tnf_save_options how = { .size = sizeof how, .format = "ztensor2", .replace = true };
static tnf_builder *builder;
static volatile uint64_t eaten;

static tnf_file *open_it(void)
{
    tnf_file *file;
    bench_check(tnf_open(&file, path, NULL, &error), &error);
    return file;
}

static void list_tensors(void *ctx)
{
    (void)ctx;
    tnf_file *file = open_it();
    uint64_t sum = 0;
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)); i++)
        sum += o->name.n + o->rank + o->parts[0].type->bits + (o->rank ? o->shape[0] : 0);
    eaten = sum;
    tnf_close(file);
}

static void walk_pages(void *ctx)
{
    (void)ctx;
    tnf_file *file = open_it();
    uint64_t sum = 0;
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)); i++) {
        const void *view;
        bench_check(tnf_map(&view, o->parts, &error), &error);
        for (uint64_t at = 0; at < o->parts[0].nbytes; at += 4096)
            sum += ((const uint8_t *)view)[at];
    }
    eaten = sum;
    tnf_close(file);
}

/* Into newly allocated memory, like loading. */
static void copy_tensors(void *ctx)
{
    (void)ctx;
    tnf_file *file = open_it();
    size_t n = tnf_file_info(file)->objects;
    tnf_request *requests = calloc(n + 1, sizeof *requests);
    for (size_t i = 0; requests && i < n; i++) {
        const tnf_part *p = tnf_at(file, i)->parts;
        requests[i] = (tnf_request) { p, malloc((size_t)p->nbytes + 1) };
        if (!requests[i].dst)
            bench_die("memory");
    }
    bench_check(tnf_read_many(requests, n, NULL, &error), &error);
    for (size_t i = 0; requests && i < n; i++)
        free(requests[i].dst);
    free(requests);
    tnf_close(file);
}

static void verify_file(void *ctx)
{
    (void)ctx;
    tnf_file *file = open_it();
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    bench_check(tnf_verify(&r, file, NULL, &error), &error);
    if (r.problems || r.undigested)
        bench_die("it does not verify");
    tnf_close(file);
}

static void save_tensors(void *ctx)
{
    (void)ctx;
    bench_check(tnf_save(builder, out, &how, &error), &error);
    unlink(out);
}

/* A builder with all tensors of the file in memory. */
static void load_tensors(void)
{
    tnf_file *file = open_it();
    const tnf_object *o;
    bench_check(tnf_builder_new(&builder, NULL, &error), &error);
    for (size_t i = 0; (o = tnf_at(file, i)); i++) {
        uint8_t *bytes = bench_memory((size_t)o->parts[0].nbytes);
        bench_check(tnf_read(bytes, (size_t)o->parts[0].nbytes, o, &error), &error);
        bench_check(
            tnf_builder_add(builder, o->name.p, o->parts[0].type, o->rank, o->shape, bytes, &error),
            &error);
    }
    tnf_close(file);
}

/* ------------------------------------------------------------------ range */

static struct {
    tnf_source *file;
    uint64_t bytes, calls;
} counted;

static tnf_status count_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    FILE *f = ctx;
    counted.bytes += n;
    counted.calls++;
    if (fseek(f, (long)offset, SEEK_SET) != 0 || fread(dst, 1, n, f) != n) {
        *e = (tnf_error) { .status = TNF_EIO, .offset = offset, .message = "cannot read" };
        return TNF_EIO;
    }
    return TNF_OK;
}

static void read_middle(const char *name)
{
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = count_read };
    FILE *f = fopen(path, "rb");
    tnf_source *source;
    tnf_file *file;
    if (!f || fseek(f, 0, SEEK_END) != 0)
        bench_die(path);
    uint64_t size = (uint64_t)ftell(f);
    bench_check(tnf_source_custom(&source, &ops, f, size, &error), &error);
    bench_check(tnf_open_source(&file, source, NULL, &error), &error);
    const tnf_object *o = tnf_find(file, name);
    if (!o)
        bench_die(name);
    uint8_t *bytes = bench_memory((size_t)1 << 20);
    uint64_t middle = o->parts[0].nbytes / 2 + 1000;
    counted.bytes = counted.calls = 0;
    double start = bench_now();
    bench_check(tnf_read_part(bytes, (size_t)1 << 20, o->parts, middle, &error), &error);
    printf("{\"seconds\":%.9f,\"bytes\":%" PRIu64 ",\"calls\":%" PRIu64 ",\"stored\":%" PRIu64
           ",\"decoded\":%" PRIu64 "}\n",
           bench_now() - start, counted.bytes, counted.calls, o->parts[0].stored,
           o->parts[0].nbytes);
    free(bytes);
    tnf_close(file);
    fclose(f);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void *ctx);
    } works[] = { { "list", list_tensors },
                  { "walk", walk_pages },
                  { "copy", copy_tensors },
                  { "verify", verify_file },
                  { "save", save_tensors } };
    if (argc < 4)
        return 2;
    path = argv[2];
    if (strcmp(argv[1], "range") == 0)
        return read_middle(argv[3]), 0;
    bench_way way = { .name = "seconds" };
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(argv[1], works[i].name) == 0)
            way.run = works[i].run;
    char target[4096];
    if (argc > 4) {
        snprintf(target, sizeof target, "%s/ours.zt", argv[4]);
        out = target;
        how.no_sync = argc < 6;
        load_tensors();
    }
    unsigned rounds = bench_rounds(argv[3]);
    bench_run(&way, 1, rounds, NULL);
    printf("{");
    bench_print(&way, 1, rounds);
    printf("\"rounds\":%u}\n", rounds);
    return 0;
}
