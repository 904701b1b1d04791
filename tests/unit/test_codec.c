/* SPDX-License-Identifier: MIT */
/* Codecs: both directions, pieces, damage, decompression bombs, and streams of libzstd itself. */
#include "base/bytes.h"
#include "base/pool.h"
#include "codec/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include <cmocka.h>

struct bytes {
    uint8_t *p;
    size_t n;
};

static tnf_status append_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    (void)e;
    struct bytes *b = ctx;
    b->p = realloc(b->p, b->n + n);
    memcpy(b->p + b->n, bytes, n);
    b->n += n;
    return TNF_OK;
}

static tnf_status fetch_bytes(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)e;
    const struct bytes *b = ctx;
    assert_true(offset <= b->n && n <= b->n - offset); /* never outside of the stored bytes */
    memcpy(dst, b->p + offset, n);
    return TNF_OK;
}

/* Compressible, but any two megabytes differ. */
static uint8_t *make_sample(size_t n)
{
    uint8_t *p = malloc(n ? n : 1);
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        p[i] = (uint8_t)(x >> 30);
    }
    return p;
}

static struct bytes encode_all(tnf_codec codec, int level, const uint8_t *plain, size_t n)
{
    struct bytes out = { 0 };
    tnf_encode_to to = { append_bytes, &out };
    tnf_encoder *x;
    tnf_error e;
    assert_int_equal(tnf_encoder_open(&x, codec, level, &to, NULL, &e), TNF_OK);
    for (size_t at = 0, step; at < n; at += step) { /* in pieces of different sizes */
        step = n - at < 70001 ? n - at : 70001;
        assert_int_equal(tnf_encoder_write(x, plain + at, step, &e), TNF_OK);
    }
    assert_int_equal(tnf_encoder_end(x, &e), TNF_OK);
    tnf_encoder_close(x);
    return out;
}

static tnf_status decode_all(tnf_codec codec, const struct bytes *in, uint64_t decoded,
                             uint8_t *out, tnf_error *e)
{
    tnf_encoded from = { fetch_bytes, (void *)(uintptr_t)in, in->n, decoded };
    tnf_decoder *d;
    tnf_status status = tnf_decoder_open(&d, codec, &from, NULL, e);
    if (status == TNF_OK)
        status = tnf_decoder_read(d, 0, out, (size_t)decoded, e);
    if (status == TNF_OK)
        status = tnf_decoder_end(d, e);
    tnf_decoder_close(d);
    return status;
}

static const tnf_codec both[] = { TNF_CODEC_ZSTD, TNF_CODEC_ZSTD_SEEKABLE };

static void there_and_back(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 100, 65536, 1048575, 1048576, 1048577, 3000000 };
    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            tnf_error e;
            uint8_t *plain = make_sample(sizes[i]), *back = malloc(sizes[i] + 1);
            struct bytes in = encode_all(both[c], (int)i, plain, sizes[i]);
            assert_int_equal(decode_all(both[c], &in, sizes[i], back, &e), TNF_OK);
            assert_memory_equal(plain, back, sizes[i]);
            free(in.p);
            free(plain);
            free(back);
        }
}

/* Reads pieces in any order, also backwards. */
static void reads_pieces(void **state)
{
    (void)state;
    enum { N = 2500000 };
    uint8_t *plain = make_sample(N), piece[5000];
    for (size_t c = 0; c < 2; c++) {
        struct bytes in = encode_all(both[c], 1, plain, N);
        tnf_encoded from = { fetch_bytes, &in, in.n, N };
        tnf_decoder *d;
        tnf_error e;
        assert_int_equal(tnf_decoder_open(&d, both[c], &from, NULL, &e), TNF_OK);
        static const size_t places[] = { 0, 100, 2000000, 1048570, 1048576, 3, N - 5000 };
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            assert_int_equal(tnf_decoder_read(d, places[i], piece, sizeof piece, &e), TNF_OK);
            assert_memory_equal(piece, plain + places[i], sizeof piece);
        }
        assert_int_not_equal(tnf_decoder_read(d, N - 1, piece, 2, &e), TNF_OK); /* beyond the end */
        tnf_decoder_close(d);
        free(in.p);
    }
    free(plain);
}

/* The expected size is given: a size that is too large or too small is an error. */
static void sizes_must_agree(void **state)
{
    (void)state;
    uint8_t *plain = make_sample(100000), *back = malloc(100001);
    for (size_t c = 0; c < 2; c++) {
        tnf_error e;
        struct bytes in = encode_all(both[c], 0, plain, 100000);
        assert_int_not_equal(decode_all(both[c], &in, 99999, back, &e), TNF_OK);
        assert_int_not_equal(decode_all(both[c], &in, 100001, back, &e), TNF_OK);
        assert_true(e.offset <= in.n);
        free(in.p);
    }
    free(plain);
    free(back);
}

/* If the stream is cut anywhere, or any bit is wrong, the result is an error or the right bytes,
 * never others. A frame of seekable zstd has a checksum; plain zstd has none, so it is only cut. */
static void notices_damage(void **state)
{
    (void)state;
    enum { N = 3000 };
    uint8_t *plain = make_sample(N), back[N];
    for (size_t c = 0; c < 2; c++) {
        tnf_error e;
        struct bytes in = encode_all(both[c], 0, plain, N);
        for (size_t cut = 0; cut < in.n; cut++) {
            struct bytes shorter = { in.p, cut };
            assert_int_not_equal(decode_all(both[c], &shorter, N, back, &e), TNF_OK);
        }
        for (size_t bit = 0; both[c] == TNF_CODEC_ZSTD_SEEKABLE && bit < 8 * in.n; bit++) {
            in.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
            memset(back, 0, N);
            if (decode_all(both[c], &in, N, back, &e) == TNF_OK)
                assert_memory_equal(plain, back, N);
            in.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(in.p);
    }
    free(plain);
}

/* As the reference writer makes it: 17 bytes for an empty part. */
static void empty_seekable(void **state)
{
    (void)state;
    static const uint8_t want[17] = { 0x5e, 0x2a, 0x4d, 0x18, 9,    0,    0,    0,   0,
                                      0,    0,    0,    0,    0xb1, 0xea, 0x92, 0x8f };
    struct bytes in = encode_all(TNF_CODEC_ZSTD_SEEKABLE, 0, NULL, 0);
    assert_int_equal(in.n, sizeof want);
    assert_memory_equal(in.p, want, sizeof want);
    free(in.p);
}

/* Frames begin as the reference's do: checksum flag, no content size. */
static void frame_header(void **state)
{
    (void)state;
    uint8_t *plain = make_sample(2 << 20);
    struct bytes in = encode_all(TNF_CODEC_ZSTD_SEEKABLE, 0, plain, 2 << 20);
    assert_int_equal(tnf_le32(in.p), 0xFD2FB528u);
    assert_int_equal(in.p[4], 0x04);
    assert_int_equal(tnf_le32(in.p + in.n - 9), 2); /* two frames of 1 MiB */
    free(in.p);
    free(plain);
}

/* Fails instead of writing more than `left` bytes. */
static tnf_status append_some(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    size_t *left = ctx;
    (void)bytes, (void)e;
    if (n > *left)
        return TNF_EIO;
    *left -= n;
    return TNF_OK;
}

/* Returns the last status of writing. */
static tnf_status encode_some(const uint8_t *plain, size_t n, size_t left)
{
    tnf_encode_to to = { append_some, &left };
    tnf_encoder *x;
    tnf_error e;
    assert_int_equal(tnf_encoder_open(&x, TNF_CODEC_ZSTD_SEEKABLE, 0, &to, NULL, &e), TNF_OK);
    tnf_status status = tnf_encoder_write(x, plain, n, &e);
    if (status == TNF_OK)
        status = tnf_encoder_end(x, &e);
    else /* it fails again, without waiting */
        assert_int_equal(tnf_encoder_end(x, &e), TNF_EIO);
    tnf_encoder_close(x);
    return status;
}

/* Any number of threads writes the same bytes, and ends if writing fails anywhere. */
static void frames_by_threads(void **state)
{
    enum { SIZE = (13 << 20) + 12345 }; /* more frames than are compressed at the same time */
    static const struct {
        const char *text;
        unsigned number;
    } threads[] = { { "1", 1 }, { "2", 2 }, { "5", 5 }, { "64", 64 } };
    uint8_t *plain = make_sample(SIZE);
    struct bytes first = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        setenv("TENFOLD_THREADS", threads[i].text, 1);
        assert_int_equal(tnf_pool_threads(0), threads[i].number);
        struct bytes now = encode_all(TNF_CODEC_ZSTD_SEEKABLE, 1, plain, SIZE);
        assert_int_equal(tnf_le32(now.p + now.n - 9), 14); /* frames */
        if (i > 0) {
            assert_int_equal(now.n, first.n);
            assert_memory_equal(now.p, first.p, now.n);
            free(now.p);
        } else {
            first = now;
        }
        assert_int_equal(encode_some(plain, SIZE, SIZE), TNF_OK);
        for (size_t left = 0; left < first.n; left += first.n / 7)
            assert_int_equal(encode_some(plain, SIZE, left), TNF_EIO);
    }
    unsetenv("TENFOLD_THREADS");
    free(first.p);
    free(plain);
}

/* Streams of libzstd itself: several frames one after the other, one of them skippable. */
static void frames_of_others(void **state)
{
    (void)state;
    uint8_t *plain = make_sample(30000), *back = malloc(30000), block[20000];
    struct bytes in = { 0 };
    static const uint8_t skippable[12] = { 0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 'n', 'o', 't', 'e' };
    tnf_error e;
    for (size_t at = 0; at < 30000; at += 10000) {
        size_t n = ZSTD_compress(block, sizeof block, plain + at, 10000, 3);
        append_bytes(&in, block, n, NULL);
        append_bytes(&in, skippable, sizeof skippable, NULL);
    }
    assert_int_equal(decode_all(TNF_CODEC_ZSTD, &in, 30000, back, &e), TNF_OK);
    assert_memory_equal(plain, back, 30000);
    append_bytes(&in, "junk", 4, NULL);
    assert_int_not_equal(decode_all(TNF_CODEC_ZSTD, &in, 30000, back, &e), TNF_OK);
    free(in.p);
    free(plain);
    free(back);
}

/* No memory may be allocated for a table that claims too much. */
static void hostile_table(void **state)
{
    (void)state;
    uint8_t table[17] = { 0x5e, 0x2a, 0x4d, 0x18, 9,    0,    0,    0,   0xff,
                          0xff, 0xff, 0xff, 0,    0xb1, 0xea, 0x92, 0x8f };
    struct bytes in = { table, sizeof table };
    tnf_error e;
    uint8_t back[1];
    assert_int_equal(decode_all(TNF_CODEC_ZSTD_SEEKABLE, &in, 1, back, &e), TNF_EFORMAT);
    table[12] = 1; /* a descriptor of a later version */
    assert_int_equal(decode_all(TNF_CODEC_ZSTD_SEEKABLE, &in, 1, back, &e), TNF_EFORMAT);
    in.n = 16;
    assert_int_equal(decode_all(TNF_CODEC_ZSTD_SEEKABLE, &in, 1, back, &e), TNF_EFORMAT);
}

static void absent_codecs_say_so(void **state)
{
    (void)state;
    struct bytes in = { 0 };
    tnf_encoded from = { fetch_bytes, &in, 0, 0 };
    tnf_encode_to to = { append_bytes, &in };
    tnf_decoder *d;
    tnf_encoder *x;
    tnf_error e;
    for (unsigned c = 0; c < TNF_CODEC_COUNT; c++) {
        if (c != TNF_CODEC_RAW)
            continue;
        assert_int_equal(tnf_decoder_open(&d, (tnf_codec)c, &from, NULL, &e), TNF_EUNSUPPORTED);
        assert_int_equal(tnf_encoder_open(&x, (tnf_codec)c, 0, &to, NULL, &e), TNF_EUNSUPPORTED);
        assert_non_null(strstr(e.message, tnf_codec_id(c)));
    }
    assert_string_equal(tnf_codec_id(TNF_CODEC_ZSTD), "zstd");
    assert_string_equal(tnf_codec_id(99), "?");
}

static tnf_status measure_bytes(uint64_t *out, struct bytes *b, uint64_t most)
{
    tnf_error e;
    tnf_encoded from = { fetch_bytes, b, b->n, 0 };
    return tnf_codec_measure(out, TNF_CODEC_ZSTD, &from, most, NULL, &e);
}

/* The decoded size if it is not given: several frames, none, too large, a part of one. */
static void measures_frames(void **state)
{
    (void)state;
    uint64_t n;
    uint8_t *plain = make_sample(300000);
    struct bytes b = encode_all(TNF_CODEC_ZSTD, 0, plain, 300000), none = { 0 };
    assert_int_equal(measure_bytes(&n, &none, 10), TNF_OK);
    assert_int_equal(n, 0);
    assert_int_equal(measure_bytes(&n, &b, 300000), TNF_OK);
    assert_int_equal(n, 300000);
    assert_int_equal(measure_bytes(&n, &b, 299999), TNF_ELIMIT);
    size_t one = b.n;
    b.p = realloc(b.p, 2 * one);
    memcpy(b.p + one, b.p, one);
    b.n = 2 * one;
    assert_int_equal(measure_bytes(&n, &b, UINT64_MAX), TNF_OK);
    assert_int_equal(n, 600000);
    b.n--;
    assert_int_equal(measure_bytes(&n, &b, UINT64_MAX), TNF_ETRUNCATED);
    b.p[0] ^= 1;
    assert_int_equal(measure_bytes(&n, &b, UINT64_MAX), TNF_EFORMAT);
    tnf_error e;
    tnf_encoded from = { fetch_bytes, &b, b.n, 0 };
    assert_int_equal(tnf_codec_measure(&n, TNF_CODEC_RAW, &from, 1, NULL, &e), TNF_EUNSUPPORTED);
    free(b.p);
    free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),    cmocka_unit_test(reads_pieces),
        cmocka_unit_test(sizes_must_agree),  cmocka_unit_test(notices_damage),
        cmocka_unit_test(empty_seekable),    cmocka_unit_test(frame_header),
        cmocka_unit_test(frames_by_threads), cmocka_unit_test(frames_of_others),
        cmocka_unit_test(hostile_table),     cmocka_unit_test(absent_codecs_say_so),
        cmocka_unit_test(measures_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
