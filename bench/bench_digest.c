/* SPDX-License-Identifier: MIT */
/* bench_digest MIB crc32c|xxh3|sha256 ROUNDS DIRECTORY: checks the digest of a tensor, on one
 * thread.
 *
 *   memory    loads all its bytes from memory, 64 at a time, and combines them by XOR
 *   verify    tnf_verify() of a file in memory
 *   read      reads all bytes of a file in the page cache by pread()
 *   file      tnf_verify() of that file
 *   evp       sha256 only: EVP_Digest() of the same bytes, if libcrypto is installed
 */
#include "bench_evp.h"
#include "bench_twice.h"

static void verify_digest(const tnf_file *file)
{
    tnf_error error;
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_verify_options how = { .size = sizeof how, .threads = 1 };
    bench_check(tnf_verify(&result, file, &how, &error), &error);
    if (result.problems || result.undigested)
        bench_die("the file has no such digest");
}

static void verify_in_memory(void *ctx)
{
    verify_digest(((const bench_twice *)ctx)->file);
}

static void verify_on_disk(void *ctx)
{
    verify_digest(((const bench_twice *)ctx)->on_disk);
}

static void hash_by_evp(void *ctx)
{
    const bench_twice *w = ctx;
    seen = evp_hash(w->data, w->n);
}

static bench_twice w;

int main(int argc, char **argv)
{
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
    unsigned rounds = bench_rounds(argv[3]);
    unsigned ways = strcmp(argv[2], "sha256") == 0 && evp_load() ? 5 : 4;
    uint8_t *data = bench_memory(n);
    for (uint64_t i = 0; i < n; i++)
        data[i] = (uint8_t)(i * 0x9e3779b97f4a7c15u >> 40);
    bench_twice_open(&w, tnf_type_named("u8"), n, data, &save, argv[4]);
    static bench_way all[] = { { "memory", mix_memory, { 0 } },
                               { "verify", verify_in_memory, { 0 } },
                               { "read", read_all, { 0 } },
                               { "file", verify_on_disk, { 0 } },
                               { "evp", hash_by_evp, { 0 } } };
    bench_twice_run(&w, all, ways, rounds);
    free(data);
    return 0;
}
