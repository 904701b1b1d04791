/* SPDX-License-Identifier: MIT */
/* Files in memory for the tests of the gpt.rs formats: fixtures, opening bytes, saving to bytes. */
#ifndef TEST_GPTRS_FILES_H
#define TEST_GPTRS_FILES_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tenfold/build.h>

/* A growing array of bytes; the test frees p. */
typedef struct bytes {
    uint8_t *p;
    size_t n, capacity;
} bytes;

static inline void add_bytes(bytes *b, const void *p, size_t n)
{
    if (b->n + n > b->capacity) {
        b->capacity = 2 * (b->n + n) + 64;
        b->p = realloc(b->p, b->capacity);
        assert_non_null(b->p);
    }
    if (n > 0)
        memcpy(b->p + b->n, p, n);
    b->n += n;
}

static inline void add_text(bytes *b, const char *s)
{
    add_bytes(b, s, strlen(s));
}

static inline void add_number(bytes *b, uint64_t v, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        uint8_t byte = (uint8_t)(v >> 8 * i);
        add_bytes(b, &byte, 1);
    }
}

static inline bytes load_path(const char *path)
{
    bytes b = { 0 };
    FILE *f = fopen(path, "rb");
    if (!f)
        return b;
    uint8_t block[4096];
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        add_bytes(&b, block, n);
    fclose(f);
    if (!b.p)
        add_bytes(&b, "", 0);
    return b;
}

/* The file with this path in tests/formats; p is NULL if there is no such file. */
static inline bytes load_fixture(const char *folder, const char *kind, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/formats/%s/%s/%s", TNF_TESTS_DIR, folder, kind, name);
    return load_path(path);
}

static inline tnf_status open_bytes(tnf_file **out, const bytes *b, bool lenient, tnf_error *e)
{
    tnf_source *source;
    tnf_open_options o = { .size = sizeof o };
    o.lenient = lenient;
    assert_int_equal(tnf_source_memory(&source, b->p, b->n, e), TNF_OK);
    return tnf_open_source(out, source, &o, e);
}

static inline tnf_file *must_open(const bytes *b)
{
    tnf_file *file = NULL;
    tnf_error e = { 0 };
    if (open_bytes(&file, b, false, &e) != TNF_OK)
        fail_msg("%s", e.message);
    return file;
}

/* Saves a builder as a format; `options` is key, value, key, value … NULL. */
static inline tnf_status save_builder(bytes *out, const tnf_builder *b, const char *format,
                                      const char *const *options, tnf_error *e)
{
    tnf_option list[8];
    tnf_save_options o = { .size = sizeof o, .as_is = true };
    tnf_sink *sink;
    o.format = format;
    o.options = list;
    for (; options && options[0]; options += 2)
        list[o.noptions++] = (tnf_option) { options[0], options[1] };
    assert_int_equal(tnf_sink_memory(&sink, e), TNF_OK);
    tnf_status status = tnf_save_sink(b, sink, &o, e);
    if (status == TNF_OK) {
        tnf_str written = tnf_sink_bytes(sink);
        *out = (bytes) { 0 };
        add_bytes(out, written.p, written.n);
    }
    tnf_sink_close(sink);
    return status;
}

static inline bytes save_file(const tnf_file *file, const char *format, const char *const *options)
{
    bytes out = { 0 };
    tnf_builder *b;
    tnf_error e = { 0 };
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(tnf_builder_add_file(b, file, &e), TNF_OK);
    if (save_builder(&out, b, format, options, &e) != TNF_OK)
        fail_msg("%s", e.message);
    tnf_builder_free(b);
    return out;
}

static inline void assert_same_bytes(const bytes *a, const bytes *b, const char *what)
{
    size_t n = a->n < b->n ? a->n : b->n, i = 0;
    while (i < n && a->p[i] == b->p[i])
        i++;
    if (a->n != b->n || i < n)
        fail_msg("%s: %zu and %zu bytes, different from byte %zu on", what, a->n, b->n, i);
}

/* Every fixture that opens is written again with the bytes that the upstream writer would write for
 * its content: either written/ has this file, from an independent writer in Python, or it is the
 * fixture itself. At least `least` of them open. */
static inline void assert_bytes_of_upstream(const char *format, int least)
{
    char path[512];
    snprintf(path, sizeof path, "%s/formats/%s/valid", TNF_TESTS_DIR, format);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int checked = 0;
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        if (d->d_name[0] == '.')
            continue;
        bytes file = load_fixture(format, "valid", d->d_name);
        bytes want = load_fixture(format, "written", d->d_name);
        tnf_file *f;
        tnf_error e;
        if (open_bytes(&f, &file, false, &e) == TNF_OK) {
            bytes got = save_file(f, format, NULL);
            assert_same_bytes(&got, want.p ? &want : &file, d->d_name);
            tnf_close(f);
            free(got.p);
            checked++;
        }
        free(want.p);
        free(file.p);
    }
    closedir(dir);
    assert_true(checked >= least);
}

#endif
