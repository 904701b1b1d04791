/* SPDX-License-Identifier: MIT */
/* For tests of the JSON reader: texts to begin with, and how it must fail. */
#ifndef TNF_UNIT_JSON_FIXTURE_H
#define TNF_UNIT_JSON_FIXTURE_H

#include "wire/json.h"

#define READER tnf_json
#include "wire_fixture.h"

#define DEPTH 8u

/* The text in memory of its own, so that a sanitizer sees a read past its end. */
static char *begin_n(fixture *f, const char *text, size_t n)
{
    char *copy = malloc(n ? n : 1);
    memcpy(copy, text, n);
    memset(&f->e, 0, sizeof f->e);
    tnf_json_init(&f->r, copy, n, BASE, &f->arena, DEPTH, &f->e);
    return copy;
}

static char *begin_text(fixture *f, const char *text)
{
    return begin_n(f, text, strlen(text));
}

static void assert_error(const fixture *f, tnf_status status, uint64_t at)
{
    assert_int_equal(f->r.status, status);
    assert_int_equal(f->e.status, status);
    assert_int_equal(f->e.offset, BASE + at);
    assert_true(f->e.message[0] != 0);
}

#endif
