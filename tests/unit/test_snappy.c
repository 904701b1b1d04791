/* SPDX-License-Identifier: MIT */
/* snappy: raw blocks in both directions, also through libsnappy if it can be loaded; sizes that
 * must match, damaged blocks. */
#include "../support/memory.h"
#include "../support/unit.h"
#include "codec/blocks.h"
#include "codec/codec.h"

#include <dlfcn.h>

static const tnf_allocator *default_allocator(void)
{
    static tnf_allocator a;
    a = tnf_allocator_or_default(NULL);
    return &a;
}

/* From libsnappy's <snappy-c.h>; 0 means success. */
typedef int peer_fn(const char *in, size_t n, char *out, size_t *out_n);

static peer_fn *find_peer(const char *name)
{
    static void *library;
    library = library ? library : dlopen("libsnappy.so.1", RTLD_NOW);
    peer_fn *found = NULL;
    if (library)
        *(void **)&found = dlsym(library, name);
    return found;
}

/* Bytes of several kinds: all the same, a few words, noise, and all three in turn. */
static void make_plain(uint8_t *p, size_t n, unsigned how)
{
    uint32_t noise = how + 1;
    for (size_t i = 0; i < n; i++) {
        noise = noise * 1664525 + 1013904223;
        unsigned kind = how % 4 == 3 ? (unsigned)(i >> 9) % 3 : how % 4;
        p[i] = kind == 0   ? (uint8_t)'x'
               : kind == 1 ? (uint8_t)("tensors and words "[(i + how) % 18] + (noise >> 30))
                           : (uint8_t)(noise >> 24);
    }
}

static void both_ways(const uint8_t *plain, size_t n)
{
    tnf_error e;
    tnf_buf b;
    peer_fn *compress = find_peer("snappy_compress"), *decompress = find_peer("snappy_uncompress");
    uint8_t *back = malloc(n + 1);
    tnf_buf_init(&b, default_allocator(), UINT64_MAX);
    assert_ok(tnf_snappy_encode(&b, plain, n, &e));
    assert_ok(tnf_snappy_decode(b.p, b.n, back, n, &e));
    assert_memory_equal(plain, back, n);
    if (compress && decompress) {
        size_t out = n, most = 32 + n + n / 6;
        memset(back, 0, n);
        assert_int_equal(decompress((const char *)b.p, b.n, (char *)back, &out), 0);
        assert_int_equal(out, n);
        assert_memory_equal(plain, back, n);
        char *theirs = malloc(most);
        assert_int_equal(compress((const char *)plain, n, theirs, &most), 0);
        memset(back, 0, n);
        assert_ok(tnf_snappy_decode(theirs, most, back, n, &e));
        assert_memory_equal(plain, back, n);
        assert_true(b.n <= most + most / 4 + 8); /* about the same size */
        free(theirs);
    }
    tnf_buf_free(&b);
    free(back);
}

static void agrees_with_libsnappy(void **state)
{
    (void)state;
    uint8_t *plain = malloc(300000);
    for (unsigned how = 0; how < 400; how++) {
        size_t n = how < 300 ? how : (size_t)how * how * 7 % 300000;
        make_plain(plain, n, how);
        both_ways(plain, n);
    }
    free(plain);
}

static void blocks_come_back(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 8, 1200, 65536, 300000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tnf_error e;
        tnf_buf b;
        uint64_t said;
        size_t n = sizes[i];
        uint8_t *plain = malloc(n + 1), *back = malloc(n + 1);
        for (size_t k = 0; k < n; k++)
            plain[k] = (uint8_t)(k * k >> 7);
        tnf_buf_init(&b, default_allocator(), UINT64_MAX);
        assert_ok(tnf_snappy_encode(&b, plain, n, &e));
        assert_ok(tnf_snappy_size(b.p, b.n, &said, &e));
        assert_int_equal(said, n);
        assert_ok(tnf_snappy_decode(b.p, b.n, back, n, &e));
        assert_memory_equal(plain, back, n);
        assert_fails(tnf_snappy_decode(b.p, b.n, back, n + 1, &e), TNF_EFORMAT);
        if (n)
            assert_fails(tnf_snappy_decode(b.p, b.n - 1, back, n, &e), TNF_EFORMAT);
        tnf_buf_free(&b);
        free(plain);
        free(back);
    }
}

/* From the description of the format: 4 literal bytes, then a copy of 16 at distance 4. */
static void by_hand(void **state)
{
    (void)state;
    tnf_error e;
    char back[20];
    static const uint8_t block[] = { 20, 3 << 2, 'a', 'b', 'c', 'd', 15 << 2 | 2, 4, 0 };
    assert_ok(tnf_snappy_decode(block, sizeof block, back, 20, &e));
    assert_memory_equal(back, "abcdabcdabcdabcdabcd", 20);
    /* The length of a literal in a byte of its own, copies with one and with four bytes of offset.
     */
    static const uint8_t others[] = { 14, 60 << 2,    2, 'x', 'y', 'z', 1 << 2 | 1,
                                      3,  5 << 2 | 3, 8, 0,   0,   0 };
    assert_ok(tnf_snappy_decode(others, sizeof others, back, 14, &e));
    assert_memory_equal(back, "xyzxyzxyxyzxyz", 14);
}

static void refuses_damage(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t n;
    uint8_t back[64];
    assert_fails(tnf_snappy_size("\xff\xff\xff", 3, &n, &e), TNF_EFORMAT);
    assert_fails(tnf_snappy_size("", 0, &n, &e), TNF_EFORMAT);
    /* 2 GiB from six bytes: claimed, but impossible */
    assert_fails(tnf_snappy_size("\x80\x80\x80\x80\x08\x00", 6, &n, &e), TNF_EFORMAT);
    assert_says("cannot be decoded");
    assert_fails(tnf_snappy_decode("\x05\xf0", 2, back, 5, &e), TNF_EFORMAT);
    /* a copy from before the beginning */
    assert_fails(tnf_snappy_decode("\x08\x00z\x1d\x09", 5, back, 8, &e), TNF_EFORMAT);
}

struct bytes {
    const uint8_t *p;
    size_t n;
};

static tnf_status fetch_bytes(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)e;
    const struct bytes *b = ctx;
    assert_true(offset <= b->n && n <= b->n - offset);
    memcpy(dst, b->p + offset, n);
    return TNF_OK;
}

static tnf_status put_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    tnf_buf_put(ctx, bytes, n);
    return tnf_buf_status(ctx, "test", e);
}

static tnf_status there_and_back(const tnf_allocator *a, const uint8_t *plain, size_t n,
                                 tnf_error *e)
{
    tnf_buf b;
    tnf_encoder *x;
    tnf_decoder *d;
    uint8_t piece[100];
    tnf_buf_init(&b, default_allocator(), UINT64_MAX);
    tnf_encode_to to = { put_bytes, &b };
    tnf_status status = tnf_encoder_open(&x, TNF_CODEC_SNAPPY, 0, &to, a, e);
    if (status == TNF_OK) {
        status = tnf_encoder_write(x, plain, n / 2, e);
        if (status == TNF_OK)
            status = tnf_encoder_write(x, plain + n / 2, n - n / 2, e);
        if (status == TNF_OK)
            status = tnf_encoder_end(x, e);
        tnf_encoder_close(x);
    }
    struct bytes stored = { b.p, b.n };
    tnf_encoded from = { fetch_bytes, &stored, b.n, n };
    if (status == TNF_OK)
        status = tnf_decoder_open(&d, TNF_CODEC_SNAPPY, &from, a, e);
    if (status == TNF_OK) {
        static const size_t places[] = { 900, 0, 500, 900 };
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(tnf_decoder_read(d, places[i], piece, 100, e), TNF_OK);
            assert_memory_equal(piece, plain + places[i], 100);
        }
        assert_int_equal(tnf_decoder_read(d, n - 1, piece, 2, e), TNF_ETRUNCATED);
        assert_int_equal(tnf_decoder_end(d, e), TNF_OK);
        tnf_decoder_close(d);
    }
    tnf_buf_free(&b);
    return status;
}

static void streams_come_back(void **state)
{
    (void)state;
    tnf_error error;
    uint8_t plain[1000];
    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (uint8_t)(i / 3);
    assert_int_equal(there_and_back(NULL, plain, sizeof plain, &error), TNF_OK);
    for (uint64_t n = 1;; n++) { /* each allocation fails once */
        struct memory_log log = { .fail_at = n };
        tnf_allocator a = memory_allocator(&log);
        tnf_status status = there_and_back(&a, plain, sizeof plain, &error);
        assert_int_equal(log.blocks, 0);
        assert_int_equal(log.wrong_sizes, 0);
        if (log.failed == 0)
            break;
        assert_int_equal(status, TNF_ENOMEM);
    }
}

static void stored_is_checked(void **state)
{
    (void)state;
    tnf_error e;
    tnf_decoder *d;
    struct bytes none = { (const uint8_t *)"\x05", 1 };
    tnf_encoded from = { fetch_bytes, &none, 0, 5 };
    assert_fails(tnf_decoder_open(&d, TNF_CODEC_SNAPPY, &from, NULL, &e), TNF_EFORMAT);
    from.stored = 1;
    from.decoded = 6;
    assert_fails(tnf_decoder_open(&d, TNF_CODEC_SNAPPY, &from, NULL, &e), TNF_EFORMAT);
    from.decoded = (uint64_t)1 << 40;
    assert_fails(tnf_decoder_open(&d, TNF_CODEC_SNAPPY, &from, NULL, &e), TNF_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_back),  cmocka_unit_test(agrees_with_libsnappy),
        cmocka_unit_test(by_hand),           cmocka_unit_test(refuses_damage),
        cmocka_unit_test(streams_come_back), cmocka_unit_test(stored_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
