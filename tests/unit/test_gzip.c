/* SPDX-License-Identifier: MIT */
/* gzip: streams and complete blocks, members of other programs, extra bytes, decompression
 * bombs. */
#include "../support/unit.h"
#include "codec/blocks.h"
#include "codec/codec.h"

#include <zlib.h>

static const tnf_allocator *default_allocator(void)
{
    static tnf_allocator a;
    a = tnf_allocator_or_default(NULL);
    return &a;
}

/* Compressible, not periodic. */
static uint8_t *make_sample(size_t n)
{
    uint8_t *p = malloc(n + 1);
    uint32_t x = 7;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        p[i] = (uint8_t)(x >> 30);
    }
    return p;
}

static void blocks_come_back(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 8, 1200, 65536, 3000000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tnf_error e;
        tnf_buf b;
        size_t n = sizes[i];
        uint8_t *plain = make_sample(n), *back = malloc(n + 1);
        tnf_buf_init(&b, default_allocator(), UINT64_MAX);
        assert_ok(tnf_gzip_encode(&b, plain, n, &e));
        /* RFC 1952 2.3: ID1 ID2 CM FLG MTIME XFL OS; no flags, no time, OS unknown */
        static const uint8_t head[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255 };
        assert_memory_equal(b.p, head, sizeof head);
        assert_ok(tnf_gzip_decode(b.p, b.n, back, n, &e));
        assert_memory_equal(plain, back, n);
        assert_true(tnf_gzip_decode(b.p, b.n - 1, back, n, &e) == TNF_ETRUNCATED);
        tnf_buf_u8(&b, 0);
        assert_int_not_equal(tnf_gzip_decode(b.p, b.n, back, n, &e), TNF_OK);
        tnf_buf_free(&b);
        free(plain);
        free(back);
    }
}

/* A member as another program would write it: with a name, a comment, a time. */
static size_t gzip_by_zlib(uint8_t *out, size_t room, const void *bytes, size_t n)
{
    z_stream z = { 0 };
    Bytef name[] = "vector.bin", comment[] = "made elsewhere";
    gz_header h = { .time = 1524099600, .os = 3, .name = name, .comment = comment };
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflateSetHeader(&z, &h), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t made = room - z.avail_out;
    deflateEnd(&z);
    return made;
}

static void joins_members(void **state)
{
    (void)state;
    tnf_error e;
    uint8_t stored[1000], back[12];
    size_t n = gzip_by_zlib(stored, sizeof stored, "hello ", 6);
    assert_ok(tnf_gzip_decode(stored, n, back, 6, &e));
    n += gzip_by_zlib(stored + n, sizeof stored - n, "", 0);
    n += gzip_by_zlib(stored + n, sizeof stored - n, "world", 5);
    assert_ok(tnf_gzip_decode(stored, n, back, 11, &e));
    assert_memory_equal(back, "hello world", 11);
    assert_int_equal(tnf_gzip_decode(stored, n, back, 10, &e), TNF_EFORMAT);
    assert_says("more than the expected 10 bytes");
    assert_int_equal(tnf_gzip_decode(stored, n, back, 12, &e), TNF_ETRUNCATED);
}

static void notices_damage(void **state)
{
    (void)state;
    tnf_error e;
    uint8_t stored[200], back[40], plain[40] = { 1, 2, 3 };
    size_t n = gzip_by_zlib(stored, sizeof stored, plain, sizeof plain);
    assert_fails(tnf_gzip_decode("not gzip at all", 15, back, 40, &e), TNF_EFORMAT);
    assert_says("corrupt gzip");
    assert_int_equal(tnf_gzip_decode("", 0, back, 40, &e), TNF_ETRUNCATED);
    for (size_t i = n - 8; i < n; i++) { /* the checksum and the size */
        stored[i] ^= 1;
        assert_int_equal(tnf_gzip_decode(stored, n, back, 40, &e), TNF_EFORMAT);
        stored[i] ^= 1;
    }
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(tnf_gzip_decode(stored, cut, back, 40, &e), TNF_ETRUNCATED);
    assert_ok(tnf_gzip_decode(stored, n, back, 40, &e));
}

/* A gigabyte of zeros from a megabyte: refused after the first byte too many. */
static void refuses_bombs(void **state)
{
    (void)state;
    tnf_error e;
    tnf_buf b;
    uint8_t *zeros = calloc(1, 1 << 20), back[100];
    tnf_buf_init(&b, default_allocator(), UINT64_MAX);
    for (int i = 0; i < 50; i++)
        assert_ok(tnf_gzip_encode(&b, zeros, 1 << 20, &e));
    assert_fails(tnf_gzip_decode(b.p, b.n, back, sizeof back, &e), TNF_EFORMAT);
    tnf_buf_free(&b);
    free(zeros);
}

static tnf_status no_write(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    (void)ctx, (void)bytes, (void)n, (void)e;
    return TNF_EIO;
}

static void streams_fail(void **state)
{
    (void)state;
    tnf_error e;
    tnf_encoder *x;
    tnf_encode_to to = { no_write, NULL };
    assert_fails(tnf_encoder_open(&x, TNF_CODEC_GZIP, 10, &to, NULL, &e), TNF_EINVAL);
    assert_ok(tnf_encoder_open(&x, TNF_CODEC_GZIP, 9, &to, NULL, &e));
    assert_int_equal(tnf_encoder_end(x, &e), TNF_EIO);
    tnf_encoder_close(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_back), cmocka_unit_test(joins_members),
        cmocka_unit_test(notices_damage),   cmocka_unit_test(refuses_bombs),
        cmocka_unit_test(streams_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
