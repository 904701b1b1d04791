/* SPDX-License-Identifier: MIT */
/* Blosc 1 and LZ4: buffers of c-blosc, one with snappy that was made by hand, and damaged ones. */
#include "base/bytes.h"
#include "codec/blosc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "blosc_vectors.h"

enum { VECTORS = sizeof blosc_vectors / sizeof *blosc_vectors, MOST = 40000 };

static uint8_t made[MOST];

/* The rule of make_blosc_vectors.py. */
static uint8_t content_at(size_t i, bool again)
{
    size_t at = i % 9500;
    uint8_t number[4];
    if (again)
        return (uint8_t)(at < 100 ? (uint32_t)(at * 2654435761u) >> 13 : at / 400);
    tnf_put_le32(number, (uint32_t)(i / 4) * 3);
    return number[i % 4];
}

static void as_c_blosc(void **state)
{
    (void)state;
    tnf_error e;
    for (size_t v = 0; v < VECTORS; v++) {
        size_t n = blosc_vectors[v].bytes;
        memset(made, 0xa5, sizeof made);
        tnf_status status = tnf_blosc_decode(blosc_vectors[v].p, blosc_vectors[v].n, made, n, &e);
        if (status != TNF_OK)
            fail_msg("%s: %s", blosc_vectors[v].name, e.message);
        for (size_t i = 0; i < n; i++)
            if (made[i] != content_at(i, blosc_vectors[v].again))
                fail_msg("%s: byte %zu of %zu", blosc_vectors[v].name, i, n);
        assert_true(n == MOST || made[n] == 0xa5);
        /* bytes after the buffer do not matter, and the size must be the expected one */
        assert_int_equal(tnf_blosc_decode(blosc_vectors[v].p, blosc_vectors[v].n, made, n - 1, &e),
                         TNF_EFORMAT);
    }
}

/* flags: codec 2, one stream; a block at 20: seven bytes, a length and a literal of five */
static const uint8_t by_snappy[] = { 2, 1,  2 << 5 | 16, 1,    5,   0,   0,   0,   5,  0, 0,
                                     0, 31, 0,           0,    0,   20,  0,   0,   0,  7, 0,
                                     0, 0,  5,           0x10, 'h', 'e', 'l', 'l', 'o' };

static void of_snappy(void **state)
{
    (void)state;
    tnf_error e;
    uint8_t out[5];
    assert_int_equal(tnf_blosc_decode(by_snappy, sizeof by_snappy, out, 5, &e), TNF_OK);
    assert_memory_equal(out, "hello", 5);
}

static void of_nothing(void **state)
{
    (void)state;
    tnf_error e;
    static const uint8_t empty[16] = { 2, 1, 0, 1, [12] = 16 };
    assert_int_equal(tnf_blosc_decode(empty, sizeof empty, made, 0, &e), TNF_OK);
    assert_int_equal(tnf_blosc_decode(empty, 15, made, 0, &e), TNF_EFORMAT);
}

/* Each case changes one field of the header. */
static void wrong_headers(void **state)
{
    (void)state;
    static const struct {
        unsigned at;
        uint8_t value;
        tnf_status status;
    } wrong[] = {
        { 0, 3, TNF_EUNSUPPORTED },               /* a later version */
        { 2, 2 << 5 | 16 | 8, TNF_EUNSUPPORTED }, /* a flag that has no meaning */
        { 2, 5 << 5 | 16, TNF_EUNSUPPORTED },     /* there is no such codec */
        { 2, 2 << 5 | 16 | 2, TNF_OK },           /* copied: the bytes after the header */
        { 4, 6, TNF_EFORMAT },                    /* a different size */
        { 8, 0, TNF_EFORMAT },                    /* blocks without bytes */
        { 8, 1, TNF_EFORMAT },                    /* more blocks than have room */
        { 12, 15, TNF_EFORMAT },                  /* shorter than its header */
        { 12, 32, TNF_EFORMAT },                  /* longer than the buffer */
        { 12, 30, TNF_EFORMAT },                  /* the stream does not fit */
        { 16, 28, TNF_EFORMAT },                  /* a block without room for its length */
        { 17, 1, TNF_EFORMAT },                   /* a block beyond the end */
        { 20, 200, TNF_EFORMAT },                 /* a stream longer than the buffer */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint8_t bytes[sizeof by_snappy], out[5];
        tnf_error e = { .message = "" };
        memcpy(bytes, by_snappy, sizeof bytes);
        bytes[wrong[i].at] = wrong[i].value;
        tnf_status status = tnf_blosc_decode(bytes, sizeof bytes, out, 5, &e);
        if (status != wrong[i].status)
            fail_msg("%u = %u: %d (%s)", wrong[i].at, wrong[i].value, (int)status, e.message);
    }
    uint8_t copied[20] = { 2, 1, 2, 1, 5, [8] = 5, [12] = 20 }, out[5];
    assert_int_equal(tnf_blosc_decode(copied, sizeof copied, out, 5, NULL), TNF_EFORMAT);
}

/* Any change gives an error or the same number of bytes; sanitizers find the rest. */
static void survives_damage(void **state)
{
    (void)state;
    for (size_t v = 0; v < VECTORS; v++) {
        size_t n = blosc_vectors[v].n;
        uint8_t *copy = malloc(n);
        assert_non_null(copy);
        for (size_t i = 0; i < n; i += 1 + n / 500) {
            memcpy(copy, blosc_vectors[v].p, n);
            copy[i] = (uint8_t)(copy[i] ^ 1u << i % 8);
            (void)tnf_blosc_decode(copy, n, made, blosc_vectors[v].bytes, NULL);
            copy[i] = 0xff;
            (void)tnf_blosc_decode(copy, n, made, blosc_vectors[v].bytes, NULL);
            assert_int_not_equal(
                tnf_blosc_decode(blosc_vectors[v].p, i, made, blosc_vectors[v].bytes, NULL),
                TNF_OK);
        }
        free(copy);
    }
}

struct lz4_case {
    const char *stored;
    size_t n, gives;
    tnf_status status;
};

/* A token, literals and a distance, as in the description of LZ4. */
static void lz4_alone(void **state)
{
    (void)state;
    static const struct lz4_case cases[] = {
        { "\x30xyz", 4, 3, TNF_OK },
        { "\x30xyz", 4, 4, TNF_EFORMAT },             /* fewer bytes than expected */
        { "\x30xyz", 4, 2, TNF_EFORMAT },             /* more bytes */
        { "\x32xyz\3\0\20w", 8, 10, TNF_OK },         /* xyzxyzxyzw */
        { "\x32xyz\3\0\20w", 8, 9, TNF_EFORMAT },     /* literals beyond the end */
        { "\x32xyz\3\0\20w", 8, 8, TNF_EFORMAT },     /* a match beyond the end */
        { "\x32xyz\0\0\20w", 8, 10, TNF_EFORMAT },    /* a distance of 0 */
        { "\x32xyz\4\0\20w", 8, 10, TNF_EFORMAT },    /* before the first byte */
        { "\x32xyz\3", 5, 10, TNF_EFORMAT },          /* half of a distance */
        { "\xf0\1abcdefghijklmnop", 18, 16, TNF_OK }, /* a length of two bytes */
        { "\xf0", 1, 16, TNF_EFORMAT },               /* the second is missing */
        { "\x1f"
          "a\1\0\1\20b",
          7, 22, TNF_OK }, /* a match of 20 */
        { "\x1f"
          "a\1\0\xff",
          5, 22, TNF_EFORMAT }, /* with an endless length */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (tnf_lz4_decode(cases[i].stored, cases[i].n, made, cases[i].gives, NULL) !=
            cases[i].status)
            fail_msg("case %zu", i);
    assert_int_equal(tnf_lz4_decode("\x32xyz\3\0\20w", 8, made, 10, NULL), TNF_OK);
    assert_memory_equal(made, "xyzxyzxyzw", 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_c_blosc),      cmocka_unit_test(of_snappy),
        cmocka_unit_test(of_nothing),      cmocka_unit_test(wrong_headers),
        cmocka_unit_test(survives_damage), cmocka_unit_test(lz4_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
