/* SPDX-License-Identifier: MIT */
/* bench_emb WHAT FILE ROUNDS [MORE]: embeddings. WHAT is:
 *
 *   open      opening a file and indexing its words
 *   one       one query over all words; for comparison, a loop that only reads the same bytes, and
 *             the same query over the file MORE
 *   batch     MORE queries at once
 *   known     looking up words; for comparison, one probe of a simple table and one read of the row
 *   unknown   looking up words whose vectors are computed from subwords
 */
#include "bench.h"

#include <pthread.h>
#include <string.h>
#include <tenfold/emb.h>
#include <unistd.h>

#define K       10u
#define LOOKUPS 100000u

struct bench {
    const char *path;
    tnf_file *file;
    tnf_emb *emb;
    size_t d, queries;
    const float *rows; /* mapped; NULL if quantized */
    uint64_t words;
    float *vectors;
    tnf_emb_hit *hits;
    size_t *counts;
    tnf_str *names;
    char *text;
    uint64_t *table; /* hash -> row, of the simplest kind */
    uint64_t mask;
    unsigned threads;
    struct bench *other; /* of the same words, quantized */
};

static volatile float sink;

static void open_it(struct bench *b)
{
    tnf_error error;
    bench_check(tnf_open(&b->file, b->path, NULL, &error), &error);
    bench_check(tnf_emb_open(&b->emb, b->file, NULL, &error), &error);
}

static void close_it(struct bench *b)
{
    tnf_emb_close(b->emb);
    tnf_close(b->file);
}

static void run_open(void *ctx)
{
    open_it(ctx);
    close_it(ctx);
}

static void run_query(void *ctx)
{
    struct bench *b = ctx;
    tnf_error error;
    tnf_emb_query q = { .size = sizeof q, .k = K, .threads = b->threads };
    bench_check(tnf_emb_nearest(b->hits, b->counts, b->emb, b->vectors, b->queries, &q, &error),
                &error);
}

static void run_other(void *ctx)
{
    run_query(((struct bench *)ctx)->other);
}

/* ------------------------------------------------------------- bare reading */

struct share {
    const uint64_t *from, *to;
};

/* Sixteen sums of all words, which is as fast as memory can be read. */
#if defined(__x86_64__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void *
read_share(void *ctx)
{
    const struct share *s = ctx;
    uint64_t sums[16] = { 0 }, all = 0;
    for (const uint64_t *p = s->from; p + 16 <= s->to; p += 16)
        for (int i = 0; i < 16; i++)
            sums[i] += p[i];
    for (int i = 0; i < 16; i++)
        all += sums[i];
    sink = (float)all;
    return NULL;
}

static void run_read(void *ctx)
{
    struct bench *b = ctx;
    pthread_t ids[64];
    struct share shares[64];
    const uint8_t *base = (const uint8_t *)b->rows;
    uintptr_t aligned = ((uintptr_t)base + 7) & ~(uintptr_t)7;
    size_t n = (size_t)(b->words * b->d * 4) / 8 - 1;
    const uint64_t *p = (const uint64_t *)aligned;
    for (unsigned i = 0; i < b->threads; i++) {
        shares[i] = (struct share) { p + n / b->threads * i, p + n / b->threads * (i + 1) };
        if (i > 0)
            pthread_create(&ids[i], NULL, read_share, &shares[i]);
    }
    read_share(&shares[0]);
    for (unsigned i = 1; i < b->threads; i++)
        pthread_join(ids[i], NULL);
}

/* ------------------------------------------------------------------ lookups */

static uint64_t hash_word(tnf_str s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3u;
    return h ^ h >> 32;
}

static void run_known(void *ctx)
{
    struct bench *b = ctx;
    uint64_t sum = 0;
    for (size_t i = 0; i < LOOKUPS; i++)
        sum += tnf_emb_find(b->emb, b->names[i]);
    sink = (float)sum;
}

static void run_vectors(void *ctx)
{
    struct bench *b = ctx;
    tnf_error error;
    for (size_t i = 0; i < LOOKUPS; i++)
        bench_check(tnf_emb_vectors(b->vectors, NULL, b->emb, &b->names[i], 1, &error), &error);
}

/* One slot and one string: the cost of a table without collisions. */
static void run_probe(void *ctx)
{
    struct bench *b = ctx;
    uint64_t sum = 0;
    for (size_t i = 0; i < LOOKUPS; i++) {
        uint64_t at = b->table[hash_word(b->names[i]) & b->mask];
        tnf_str word = tnf_emb_word(b->emb, at % b->words);
        sum += at + (uint8_t)word.p[0];
    }
    sink = (float)sum;
}

static void make_table(struct bench *b)
{
    b->mask = 1;
    while (b->mask < b->words)
        b->mask *= 2;
    b->table = calloc(b->mask, sizeof *b->table);
    if (!b->table)
        bench_die("memory");
    for (uint64_t i = 0; i < b->words; i++)
        b->table[hash_word(tnf_emb_word(b->emb, i)) & (b->mask - 1)] = i;
    b->mask--;
}

/* Copies of words from all over the vocabulary. With one more letter they are unknown. */
static void make_names(struct bench *b, bool unknown)
{
    uint64_t state = 1;
    char *p = b->text = malloc((size_t)LOOKUPS * 64);
    b->names = calloc(LOOKUPS, sizeof *b->names);
    if (!p || !b->names)
        bench_die("memory");
    for (size_t i = 0; i < LOOKUPS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        tnf_str word = tnf_emb_word(b->emb, (state >> 33) % b->words);
        size_t n = word.n < 60 ? word.n : 60;
        memcpy(p, word.p, n);
        if (unknown)
            p[n++] = '~';
        b->names[i] = (tnf_str) { p, n };
        p += n;
    }
}

/* --------------------------------------------------------------------- main */

static void set_up(struct bench *b)
{
    tnf_error error;
    const void *p = NULL;
    open_it(b);
    const tnf_emb_info *info = tnf_emb_describe(b->emb);
    const tnf_part *data = tnf_object_part(info->embeddings, "data");
    b->d = info->dims;
    b->words = info->words;
    if (data && tnf_map(&p, data, &error) == TNF_OK)
        b->rows = p;
    b->vectors = calloc(b->queries * b->d, sizeof(float));
    b->hits = calloc(b->queries * K, sizeof *b->hits);
    b->counts = calloc(b->queries, sizeof *b->counts);
    if (!b->vectors || !b->hits || !b->counts)
        bench_die("memory");
    for (size_t q = 0; q < b->queries; q++)
        bench_check(tnf_emb_row(b->vectors + q * b->d, b->emb, q * 977 % b->words, &error), &error);
}

int main(int argc, char **argv)
{
    struct bench b = { .path = argc > 2 ? argv[2] : "", .queries = 1, .threads = 1 }, other;
    bench_way ways[3] = { { 0 } };
    size_t n = 1;
    if (argc < 4) {
        fprintf(stderr, "usage: bench_emb open|one|batch|known|unknown FILE ROUNDS [MORE]\n");
        return 2;
    }
    const char *what = argv[1];
    unsigned rounds = bench_rounds(argv[3]);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    b.threads = cores < 1 ? 1 : cores > 8 ? 8 : (unsigned)cores;
    if (!strcmp(what, "batch"))
        b.queries = argc > 4 ? (size_t)bench_number(argv[4]) : 1000;
    if (strcmp(what, "open") != 0)
        set_up(&b);
    if (!strcmp(what, "open")) {
        ways[0] = (bench_way) { "tenfold", run_open, { 0 } };
    } else if (!strcmp(what, "one")) {
        ways[0] = (bench_way) { "tenfold", run_query, { 0 } };
        if (b.rows)
            ways[n++] = (bench_way) { "read", run_read, { 0 } };
        if (argc > 4) {
            other = (struct bench) { .path = argv[4], .queries = 1, .threads = b.threads };
            set_up(&other);
            b.other = &other;
            ways[n++] = (bench_way) { "other", run_other, { 0 } };
        }
    } else if (!strcmp(what, "batch")) {
        ways[0] = (bench_way) { "tenfold", run_query, { 0 } };
    } else if (!strcmp(what, "known")) {
        make_names(&b, false);
        make_table(&b);
        ways[0] = (bench_way) { "tenfold", run_known, { 0 } };
        ways[n++] = (bench_way) { "probe", run_probe, { 0 } };
    } else {
        make_names(&b, true);
        ways[0] = (bench_way) { "tenfold", run_vectors, { 0 } };
    }
    bench_run(ways, n, rounds, &b);
    printf("{");
    bench_print(ways, n, rounds);
    printf("\"words\":%" PRIu64 ",\"dims\":%zu,\"lookups\":%u,\"threads\":%u}\n", b.words, b.d,
           LOOKUPS, b.threads);
    return 0;
}
