/* SPDX-License-Identifier: MIT */
#include "check.h"
#include <stdlib.h>
#include <string.h>

#define PIECE 1000u /* not a power of two: pieces end inside elements */

static volatile uint8_t eaten;

void fuzz_eat(const void *p, size_t n)
{
    const uint8_t *bytes = p;
    uint8_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum ^= bytes[i];
    eaten = sum;
}

void fuzz_eat_text(const char *s)
{
    fuzz_eat(s, strlen(s));
}

void *fuzz_take(uint64_t n)
{
    void *p = malloc(n ? (size_t)n : 1);
    FUZZ_REQUIRE(p != NULL, "no memory for %llu bytes", (unsigned long long)n);
    return p;
}

void fuzz_expect_honest(tnf_status status, const tnf_error *error)
{
    if (status == TNF_OK)
        return;
    FUZZ_REQUIRE(status != TNF_EBUG && status != TNF_EINVAL, "%s: %s", tnf_status_name(status),
                 error->message);
    FUZZ_REQUIRE(error->status == status, "status %s, error says %s", tnf_status_name(status),
                 tnf_status_name(error->status));
    FUZZ_REQUIRE(error->message[0] != 0, "%s without a sentence", tnf_status_name(status));
}

static void on_warning(void *ctx, const tnf_warning *warning)
{
    (void)ctx;
    fuzz_eat_text(warning->message);
}

static void on_trace(void *ctx, uint64_t offset, const char *line)
{
    (void)ctx, (void)offset;
    fuzz_eat_text(line);
}

tnf_file *fuzz_open(const void *bytes, size_t n, const char *format, bool lenient,
                    tnf_status *status)
{
    tnf_error error;
    tnf_source *source;
    tnf_file *file = NULL;
    tnf_open_options options = { .size = sizeof options, .format = format, .lenient = lenient };
    options.limits.memory = (uint64_t)256 << 20;
    options.warn = on_warning;
    options.trace = on_trace;
    FUZZ_REQUIRE(tnf_source_memory(&source, bytes, n, &error) == TNF_OK, "%s", error.message);
    *status = tnf_open_source(&file, source, &options, &error);
    fuzz_expect_honest(*status, &error);
    return *status == TNF_OK ? file : NULL;
}

uint8_t *fuzz_read(const tnf_part *part)
{
    tnf_error error;
    uint8_t *bytes = fuzz_take(part->nbytes);
    uint64_t at = 0;
    do { /* at least once: a part without bytes may be unreadable, too */
        size_t n = part->nbytes - at < PIECE ? (size_t)(part->nbytes - at) : PIECE;
        tnf_status status = tnf_read_part(bytes + at, n, part, at, &error);
        fuzz_expect_honest(status, &error);
        if (status != TNF_OK) {
            free(bytes);
            return NULL;
        }
        at += n;
    } while (at < part->nbytes);
    return bytes;
}

tnf_sink *fuzz_save(const tnf_file *file, const char *format)
{
    tnf_error error;
    return fuzz_save_or(file, format, &error);
}

tnf_sink *fuzz_save_or(const tnf_file *file, const char *format, tnf_error *why)
{
    tnf_error error = { .status = TNF_OK };
    tnf_builder *builder;
    tnf_sink *sink;
    tnf_save_options options = { .size = sizeof options, .format = format, .as_is = true };
    *why = error;
    if (tnf_file_info(file)->payload > FUZZ_MAX_PAYLOAD)
        return NULL;
    FUZZ_REQUIRE(tnf_builder_new(&builder, NULL, &error) == TNF_OK, "%s", error.message);
    FUZZ_REQUIRE(tnf_sink_memory(&sink, &error) == TNF_OK, "%s", error.message);
    tnf_status status = tnf_builder_add_file(builder, file, &error);
    if (status == TNF_OK)
        status = tnf_save_sink(builder, sink, &options, &error);
    fuzz_expect_honest(status, &error);
    tnf_builder_free(builder);
    if (status == TNF_OK)
        return sink;
    *why = error;
    tnf_sink_close(sink);
    return NULL;
}

tnf_file *fuzz_reopen(const tnf_sink *sink, const char *format, bool lenient)
{
    tnf_str bytes = tnf_sink_bytes(sink);
    tnf_status status;
    tnf_file *file = fuzz_open(bytes.p, bytes.n, format, lenient, &status);
    FUZZ_REQUIRE(file != NULL, "our own %s does not open: %s", format, tnf_status_name(status));
    return file;
}

static void compare_parts(const tnf_part *p, const tnf_part *q, const char *name)
{
    FUZZ_REQUIRE(strcmp(p->role, q->role) == 0, "role of '%s'", name);
    FUZZ_REQUIRE(strcmp(p->type->id, q->type->id) == 0, "type of '%s'", name);
    FUZZ_REQUIRE(p->nbytes == q->nbytes, "size of '%s'", name);
    if (p->nbytes > FUZZ_MAX_PART)
        return;
    uint8_t *x = fuzz_read(p), *y = fuzz_read(q);
    FUZZ_REQUIRE(!x || (y && memcmp(x, y, (size_t)p->nbytes) == 0), "bytes of '%s'", name);
    free(x);
    free(y);
}

/* All elements, row by row; NULL if they cannot be read. */
static uint8_t *read_rows(const tnf_object *o)
{
    tnf_error error;
    tnf_slice *all = fuzz_take(o->rank * sizeof *all);
    for (uint32_t d = 0; d < o->rank; d++)
        all[d] = (tnf_slice) { 0, 1, o->shape[d], false };
    uint8_t *bytes = fuzz_take(o->parts->nbytes);
    tnf_status status = tnf_read_slice(bytes, (size_t)o->parts->nbytes, o, all, &error);
    free(all);
    fuzz_expect_honest(status, &error);
    if (status == TNF_OK)
        return bytes;
    free(bytes);
    return NULL;
}

/* Formats with only one order transpose tensors of the other. */
static void compare_values(const tnf_object *a, const tnf_object *b)
{
    FUZZ_REQUIRE(a->parts->nbytes == b->parts->nbytes, "size of '%s'", a->name.p);
    if (a->parts->nbytes > FUZZ_MAX_PART)
        return;
    uint8_t *x = read_rows(a), *y = read_rows(b);
    FUZZ_REQUIRE(!x || (y && memcmp(x, y, (size_t)a->parts->nbytes) == 0), "values of '%s'",
                 a->name.p);
    free(x);
    free(y);
}

static void compare_objects(const tnf_object *a, const tnf_object *b)
{
    FUZZ_REQUIRE(b != NULL, "'%s' is gone", a->name.p);
    FUZZ_REQUIRE(a->rank == b->rank, "rank of '%s'", a->name.p);
    FUZZ_REQUIRE(!a->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0,
                 "shape of '%s'", a->name.p);
    FUZZ_REQUIRE(strcmp(tnf_layout_id(a->layout), tnf_layout_id(b->layout)) == 0 &&
                     a->nparts == b->nparts,
                 "layout of '%s'", a->name.p);
    if (a->order != b->order) {
        compare_values(a, b);
        return;
    }
    for (uint16_t i = 0; i < a->nparts; i++) { /* formats list them in different orders */
        const tnf_part *same = tnf_object_part(b, a->parts[i].role);
        FUZZ_REQUIRE(same != NULL, "part '%s' of '%s' is gone", a->parts[i].role, a->name.p);
        compare_parts(&a->parts[i], same, a->name.p);
    }
}

/* Is it empty application data, which the reader shows and the writer does not keep? */
static bool is_filler(const tnf_object *object)
{
    const tnf_part *bytes = tnf_object_part(object, "bytes");
    return strcmp(object->name.p, "appdata") == 0 && bytes && bytes->nbytes == 0;
}

static size_t count_tensors(const tnf_file *file)
{
    size_t n = 0;
    for (size_t i = 0; tnf_at(file, i); i++)
        n += !is_filler(tnf_at(file, i));
    return n;
}

void fuzz_compare_files(const tnf_file *a, const tnf_file *b)
{
    size_t n = tnf_file_info(a)->objects;
    FUZZ_REQUIRE(count_tensors(a) == count_tensors(b), "the number of tensors changed");
    for (size_t i = 0; i < n && i < FUZZ_MAX_OBJECTS; i++) {
        const tnf_object *object = tnf_at(a, i);
        if (!is_filler(object) && tnf_find_n(a, object->name.p, object->name.n) ==
                                      object) /* not a second tensor of this name */
            compare_objects(object, tnf_find_n(b, object->name.p, object->name.n));
    }
}

void fuzz_compare_bytes(const tnf_sink *a, const tnf_sink *b, const char *way)
{
    tnf_str x = tnf_sink_bytes(a), y = tnf_sink_bytes(b);
    size_t at = 0;
    while (at < x.n && at < y.n && x.p[at] == y.p[at])
        at++;
    FUZZ_REQUIRE(at == x.n && at == y.n, "by way of %s: %zu and %zu bytes, differing at %zu", way,
                 x.n, y.n, at);
}
