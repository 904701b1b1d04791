/* SPDX-License-Identifier: MIT */
/* bench_digest MIB crc32c|xxh3|sha256 ROUNDS DIRECTORY: the digest of a tensor checked, on one
 * thread.
 *
 *   memory    all its bytes, once, from memory: an exclusive or of 64 at a time
 *   verify    tnf_verify() of a file in memory
 *   read      all bytes of a file in the page cache, by pread()
 *   file      tnf_verify() of that file
 *   evp       sha256 only: EVP_DigestUpdate() of the same bytes
 */
#include "bench.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <tenfold/build.h>
#include <unistd.h>

typedef uint64_t line __attribute__((vector_size(64)));

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

struct work {
    tnf_file *file, *on_disk;
    int fd;
    const uint8_t *data;
    size_t n;
    uint8_t block[256 << 10];
};

static volatile uint64_t seen;

WIDE static uint64_t mix(const uint8_t *p, size_t n)
{
    line sum = { 0 };
    for (size_t i = 0; i + sizeof sum <= n; i += sizeof sum) {
        line here;
        memcpy(&here, p + i, sizeof here);
        sum ^= here;
    }
    return sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

static void memory(void *ctx)
{
    const struct work *w = ctx;
    seen = mix(w->data, w->n);
}

static void read_all(void *ctx)
{
    struct work *w = ctx;
    ssize_t got;
    for (off_t at = 0; (got = pread(w->fd, w->block, sizeof w->block, at)) > 0; at += got)
        seen = w->block[0];
}

static void check(const tnf_file *file)
{
    tnf_error error;
    tnf_verify_result result;
    tnf_verify_options how = { .size = sizeof how, .threads = 1 };
    bench_check(tnf_verify(&result, file, &how, &error), &error);
    if (result.problems || result.undigested)
        bench_die("the file has no such digest");
}

static void verify(void *ctx)
{
    check(((const struct work *)ctx)->file);
}

static void verify_on_disk(void *ctx)
{
    check(((const struct work *)ctx)->on_disk);
}

static void evp(void *ctx)
{
    const struct work *w = ctx;
    uint8_t out[EVP_MAX_MD_SIZE];
    if (EVP_Digest(w->data, w->n, out, NULL, EVP_sha256(), NULL) != 1)
        bench_die("sha256");
    seen = out[0];
}

static void put_on_disk(struct work *w, tnf_str bytes, const char *directory)
{
    tnf_error error;
    char path[4096];
    snprintf(path, sizeof path, "%s/digest-%ld.zt", directory, (long)getpid());
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes.p, 1, bytes.n, f) != bytes.n || fclose(f) != 0)
        bench_die(path);
    w->fd = open(path, O_RDONLY);
    bench_check(tnf_open(&w->on_disk, path, NULL, &error), &error);
    unlink(path);
}

static struct work w;

int main(int argc, char **argv)
{
    tnf_error error;
    tnf_builder *b;
    tnf_sink *sink;
    tnf_source *source;
    if (argc != 5) {
        fprintf(stderr, "usage: bench_digest MIB crc32c|xxh3|sha256 ROUNDS DIRECTORY\n");
        return 2;
    }
    bool old = strcmp(argv[2], "crc32c") == 0;
    tnf_option digest = { old ? "checksum" : "digest", argv[2] };
    tnf_save_options save = { .size = sizeof save, .format = old ? "ztensor1" : "ztensor2" };
    save.options = &digest;
    save.noptions = 1;
    uint64_t n = bench_number(argv[1]) << 20;
    unsigned rounds = bench_rounds(argv[3]), ways = strcmp(argv[2], "sha256") == 0 ? 5 : 4;
    uint8_t *data = bench_memory(n);
    for (uint64_t i = 0; i < n; i++)
        data[i] = (uint8_t)(i * 0x9e3779b97f4a7c15u >> 40);
    bench_check(tnf_builder_new(&b, NULL, &error), &error);
    bench_check(tnf_builder_add(b, "w", tnf_type_named("u8"), 1, &n, data, &error), &error);
    bench_check(tnf_sink_memory(&sink, &error), &error);
    bench_check(tnf_save_sink(b, sink, &save, &error), &error);
    tnf_builder_free(b);
    tnf_str bytes = tnf_sink_bytes(sink);
    bench_check(tnf_source_memory(&source, bytes.p, bytes.n, &error), &error);
    bench_check(tnf_open_source(&w.file, source, NULL, &error), &error);
    w.data = (const uint8_t *)bytes.p;
    w.n = bytes.n;
    put_on_disk(&w, bytes, argv[4]);
    static bench_way all[] = { { "memory", memory, { 0 } },
                               { "verify", verify, { 0 } },
                               { "read", read_all, { 0 } },
                               { "file", verify_on_disk, { 0 } },
                               { "evp", evp, { 0 } } };
    bench_run(all, ways, rounds, &w);
    printf("{");
    bench_print(all, ways, rounds);
    printf("\"bytes\":%zu}\n", w.n);
    tnf_close(w.on_disk);
    tnf_close(w.file);
    tnf_sink_close(sink);
    free(data);
    return 0;
}
