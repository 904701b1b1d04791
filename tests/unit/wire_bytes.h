/* SPDX-License-Identifier: MIT */
/* For tests of binary syntaxes: bytes written as hexadecimal digits, and files of such lines. */
#ifndef TNF_UNIT_WIRE_BYTES_H
#define TNF_UNIT_WIRE_BYTES_H

#include "../support/memory.h"
#include "../support/unit.h"
#include "base/arena.h"
#include "base/buf.h"
#include "wire/json.h"

#define BASE 1000u /* file position of all bytes here */

static inline unsigned hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    assert_true(c >= 'a' && c <= 'f');
    return (unsigned)(c - 'a' + 10);
}

/* In memory of exactly this size, so that a sanitizer detects reading further. Spaces may be
 * anywhere. */
static inline uint8_t *bytes_from_hex(const char *hex, size_t *n)
{
    size_t digits = 0;
    uint8_t *bytes = malloc(strlen(hex) / 2 + 1);
    for (; *hex; hex++) {
        if (*hex == ' ')
            continue;
        bytes[digits / 2] = (uint8_t)(digits % 2 ? bytes[digits / 2] << 4 | hex_digit(*hex)
                                                 : hex_digit(*hex));
        digits++;
    }
    assert_true(digits % 2 == 0);
    *n = digits / 2;
    uint8_t *exact = malloc(*n ? *n : 1);
    memcpy(exact, bytes, *n);
    free(bytes);
    return exact;
}

static inline void assert_hex(const void *p, size_t n, const char *hex)
{
    size_t expected_n;
    uint8_t *expected = bytes_from_hex(hex, &expected_n);
    if (n != expected_n || (n && memcmp(p, expected, n) != 0)) {
        char got[129] = "";
        for (size_t i = 0; i < n && i < 64; i++)
            snprintf(got + 2 * i, 3, "%02x", ((const uint8_t *)p)[i]);
        fail_msg("%zu bytes %s, expected %s", n, got, hex);
    }
    free(expected);
}

static inline void assert_text(tnf_str s, const char *expected)
{
    assert_int_equal(s.n, strlen(expected));
    assert_memory_equal(s.p, expected, s.n);
}

/* The expected tree, as typed JSON. */
static inline void assert_typed(const tnf_value *v, const char *json)
{
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_buf b;
    tnf_buf_init(&b, &alloc, 64u << 20);
    tnf_json_put_typed(&b, v);
    tnf_buf_u8(&b, 0);
    assert_int_equal(b.status, TNF_OK);
    assert_string_equal((const char *)b.p, json);
    tnf_buf_free(&b);
}

/* The tree that typed JSON represents. */
static inline tnf_value from_typed(tnf_arena *arena, const char *json)
{
    tnf_error e;
    tnf_json j;
    tnf_value v;
    tnf_json_init(&j, json, strlen(json), 0, arena, 200, &e);
    if (!tnf_json_typed(&j, &v) || tnf_json_end(&j) != TNF_OK)
        fail_msg("%s: %s", json, e.message);
    return v;
}

/* Reads a file of tests/unit/vectors/, lines of fields with tabs between them; false at its end.
 * *text is the buffer the fields are in, to be freed at the end. */
static inline bool next_vector(FILE *f, char **text, size_t *capacity, char *fields[], size_t n)
{
    if (getline(text, capacity, f) < 0)
        return false;
    char *p = *text;
    for (size_t i = 0; i < n; i++) {
        fields[i] = p;
        p += strcspn(p, "\t\n");
        assert_true(*p == (i + 1 < n ? '\t' : '\n'));
        *p++ = 0;
    }
    return true;
}

#endif
