/* SPDX-License-Identifier: MIT */
/* Raw deflate, as in members of zip archives: compared with zlib itself in both directions; extra
 * bytes, missing bytes, decompression bombs. */
#include "../support/unit.h"
#include "base/buf.h"
#include "base/error.h"
#include "codec/codec.h"

#include <zlib.h>

typedef struct bytes {
    const uint8_t *p;
    size_t n;
} bytes;

static tnf_status fetch_bytes(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const bytes *b = ctx;
    (void)e;
    assert_true(offset + n <= b->n);
    memcpy(dst, b->p + offset, n);
    return TNF_OK;
}

static tnf_status put_bytes(void *ctx, const void *p, size_t n, tnf_error *e)
{
    (void)e;
    tnf_buf_put(ctx, p, n);
    return TNF_OK;
}

/* With zlib alone. */
static size_t deflate_by_zlib(uint8_t *out, size_t room, const void *p, size_t n, int level)
{
    z_stream z = { 0 };
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)p;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t made = room - z.avail_out;
    deflateEnd(&z);
    return made;
}

static tnf_status decode_all(const uint8_t *stored, size_t stored_n, uint8_t *out, size_t n,
                             tnf_error *e)
{
    bytes b = { stored, stored_n };
    tnf_encoded from = { fetch_bytes, &b, stored_n, n };
    tnf_decoder *d;
    TNF_TRY(tnf_decoder_open(&d, TNF_CODEC_DEFLATE, &from, NULL, e));
    tnf_status status = tnf_decoder_read(d, 0, out, n, e);
    if (status == TNF_OK)
        status = tnf_decoder_end(d, e);
    tnf_decoder_close(d);
    return status;
}

static uint8_t *make_sample(size_t n)
{
    uint8_t *p = malloc(n + 1);
    uint32_t x = 7;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        p[i] = (uint8_t)(x >> 29);
    }
    return p;
}

static void both_ways(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 100, 65536, 1000003 };
    tnf_allocator a = tnf_allocator_or_default(NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tnf_error e;
        size_t n = sizes[i], room = n + 1000;
        uint8_t *plain = make_sample(n), *stored = malloc(room), *back = malloc(n + 1);
        size_t made = deflate_by_zlib(stored, room, plain, n, 6);
        assert_ok(decode_all(stored, made, back, n, &e));
        assert_memory_equal(plain, back, n);
        tnf_buf b;
        tnf_buf_init(&b, &a, UINT64_MAX);
        tnf_encode_to to = { put_bytes, &b };
        tnf_encoder *x;
        assert_ok(tnf_encoder_open(&x, TNF_CODEC_DEFLATE, 0, &to, NULL, &e));
        assert_ok(tnf_encoder_write(x, plain, n, &e));
        assert_ok(tnf_encoder_end(x, &e));
        tnf_encoder_close(x);
        assert_int_equal(b.n, made); /* the default is zlib's level 6 */
        assert_memory_equal(b.p, stored, made);
        tnf_buf_free(&b);
        free(plain);
        free(stored);
        free(back);
    }
}

static void notices_damage(void **state)
{
    (void)state;
    tnf_error e;
    uint8_t plain[300], stored[600], back[400];
    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (uint8_t)(i * i);
    size_t n = deflate_by_zlib(stored, sizeof stored, plain, sizeof plain, 9);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(decode_all(stored, cut, back, sizeof plain, &e), TNF_ETRUNCATED);
    assert_fails(decode_all(stored, n, back, sizeof plain + 1, &e), TNF_ETRUNCATED);
    assert_fails(decode_all(stored, n, back, sizeof plain - 1, &e), TNF_EFORMAT);
    assert_says("more than the expected 299 bytes");
    stored[n] = 0;
    assert_fails(decode_all(stored, n + 1, back, sizeof plain, &e), TNF_EFORMAT);
    assert_says("end 1 bytes too early");
    stored[0] = 0x07; /* a block of an unknown type */
    assert_fails(decode_all(stored, n, back, sizeof plain, &e), TNF_EFORMAT);
    assert_says("corrupt deflate");
}

static void refuses_bombs(void **state)
{
    (void)state;
    tnf_error e;
    size_t n = 64u << 20, room = 1u << 20;
    uint8_t *zeros = calloc(1, n), *stored = malloc(room), back[100];
    size_t made = deflate_by_zlib(stored, room, zeros, n, 9);
    assert_fails(decode_all(stored, made, back, sizeof back, &e), TNF_EFORMAT);
    free(zeros);
    free(stored);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways),
        cmocka_unit_test(notices_damage),
        cmocka_unit_test(refuses_bombs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
