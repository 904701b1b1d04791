/* SPDX-License-Identifier: MIT */
/* primitiv fixtures in memory, for the tests of <tenfold/primitiv.h>. */
#ifndef TEST_PRIMITIV_FILES_H
#define TEST_PRIMITIV_FILES_H

#include "gptrs_files.h"
#include <tenfold/primitiv.h>

typedef struct fixture {
    bytes bytes;
    tnf_file *file;
} fixture;

static inline fixture open_primitiv(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s.primitiv", name);
    fixture f = { .bytes = load_fixture("primitiv", "valid", path) };
    assert_non_null(f.bytes.p);
    f.file = must_open(&f.bytes);
    return f;
}

static inline void close_primitiv(fixture *f)
{
    tnf_close(f->file);
    free(f->bytes.p);
}

#endif
