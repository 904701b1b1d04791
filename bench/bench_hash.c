/* SPDX-License-Identifier: MIT */
/* bench_hash MIB raw|zstd|columns THREADS ROUNDS: the content hash of a file in memory with one
 * tensor.
 *
 *   one    tnf_content_hash() on one thread
 *   many   tnf_content_hash() on THREADS threads
 *   evp    EVP_Digest() of the same bytes (SHA-256), if libcrypto is installed
 *   bare   EVP_Digest() of 4 MiB at a time on THREADS threads: the limit of the machine, whose
 * cores may be slower when all of them are busy
 */
#include "bench_evp.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <tenfold/build.h>

static struct work {
    tnf_file *file;
    tnf_sink *sink; /* contains the file */
    uint8_t *data;
    size_t n;
    unsigned threads;
} w;

static volatile uint8_t seen;

static void hash_file(unsigned threads)
{
    tnf_error error;
    uint8_t out[32];
    tnf_hash_options how = { .size = sizeof how, .threads = threads };
    bench_check(tnf_content_hash(out, w.file, &how, &error), &error);
    seen = out[0];
}

static void hash_on_one(void *ctx)
{
    (void)ctx;
    hash_file(1);
}

static void hash_on_many(void *ctx)
{
    (void)ctx;
    hash_file(w.threads);
}

static void hash_by_evp(void *ctx)
{
    (void)ctx;
    seen = evp_hash(w.data, w.n);
}

static atomic_size_t next_leaf;

static void *hash_leaves(void *ctx)
{
    (void)ctx;
    for (size_t at; (at = atomic_fetch_add(&next_leaf, TNF_LEAF_BYTES)) < w.n;) {
        size_t n = w.n - at < TNF_LEAF_BYTES ? w.n - at : TNF_LEAF_BYTES;
        seen = evp_hash(w.data + at, n);
    }
    return NULL;
}

static void hash_bare(void *ctx)
{
    pthread_t threads[64];
    (void)ctx;
    atomic_store(&next_leaf, 0);
    for (unsigned i = 0; i < w.threads; i++)
        if (pthread_create(&threads[i], NULL, hash_leaves, NULL) != 0)
            bench_die("thread");
    for (unsigned i = 0; i < w.threads; i++)
        pthread_join(threads[i], NULL);
}

/* Rows of 1024 floats that compress a little, like weights. */
static void open_one(const char *form)
{
    tnf_error error;
    tnf_builder *b;
    tnf_source *source;
    static const tnf_option zstd = { "encoding", "zstd" };
    bool columns = strcmp(form, "columns") == 0;
    tnf_save_options save = { .size = sizeof save, .format = columns ? "primitiv" : "ztensor1" };
    save.options = &zstd;
    save.noptions = strcmp(form, "zstd") == 0;
    uint64_t shape[2] = { w.n / 4096, 1024 };
    bench_check(tnf_builder_new(&b, NULL, &error), &error);
    bench_check(tnf_builder_add(b, "w", tnf_type_named("f32"), 2, shape, w.data, &error), &error);
    bench_check(tnf_sink_memory(&w.sink, &error), &error);
    bench_check(tnf_save_sink(b, w.sink, &save, &error), &error);
    tnf_str bytes = tnf_sink_bytes(w.sink);
    bench_check(tnf_source_memory(&source, bytes.p, bytes.n, &error), &error);
    bench_check(tnf_open_source(&w.file, source, NULL, &error), &error);
    tnf_builder_free(b);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: bench_hash MIB raw|zstd|columns THREADS ROUNDS\n");
        return 2;
    }
    w.n = (size_t)bench_number(argv[1]) << 20;
    w.threads = (unsigned)bench_number(argv[3]);
    w.threads = w.threads < 1 ? 1 : w.threads > 64 ? 64 : w.threads;
    w.data = bench_memory(w.n);
    for (size_t i = 0; i < w.n; i++)
        w.data[i] = i % 4 == 3 ? 0x3d : (uint8_t)(i * 0x9e3779b97f4a7c15u >> 40);
    open_one(argv[2]);
    static bench_way all[] = { { "one", hash_on_one, { 0 } },
                               { "many", hash_on_many, { 0 } },
                               { "evp", hash_by_evp, { 0 } },
                               { "bare", hash_bare, { 0 } } };
    unsigned rounds = bench_rounds(argv[4]), ways = evp_load() ? 4 : 2;
    bench_run(all, ways, rounds, NULL);
    printf("{");
    bench_print(all, ways, rounds);
    printf("\"bytes\":%zu}\n", w.n);
    tnf_close(w.file);
    tnf_sink_close(w.sink);
    free(w.data);
    return 0;
}
