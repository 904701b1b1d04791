/* SPDX-License-Identifier: MIT */
/* One source, built once per format (FUZZ_FORMAT is its name in src/formats/list.h). The input is
 * the file. Whatever it holds:
 *
 *   open strict and lenient ─> list ─> read in pieces, map, slice, read many ─> verify
 *                                └──> save ─> open again ─> compare ─> save again: the same bytes
 *
 * All ways of reading must agree, what we save we must open, and it must hold what was saved.
 */
#include "format.h"
#include "fuzz.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/build.h>
#include <tenfold/tenfold.h>

#define PASTE(a, b)  a##b
#define FORMAT_OF(x) PASTE(tnf_format_, x)
extern const tnf_format FORMAT_OF(FUZZ_FORMAT);
#define FORMAT      (&FORMAT_OF(FUZZ_FORMAT))

#define MAX_PART    ((uint64_t)1 << 20)
#define MAX_PAYLOAD ((uint64_t)4 << 20) /* overlaps make a small file read as a large one */
#define MAX_OBJECTS 512u
#define PIECE       1000u /* no power of two: pieces end inside elements */

static volatile uint8_t eaten;

/* Touches every byte, so that a wrong pointer or length is seen. */
static void eat(const void *p, size_t n)
{
    const uint8_t *bytes = p;
    uint8_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum ^= bytes[i];
    eaten = sum;
}

static void eat_text(const char *s)
{
    eat(s, strlen(s));
}

static void on_warning(void *ctx, const tnf_warning *warning)
{
    (void)ctx;
    eat_text(warning->message);
}

static void on_trace(void *ctx, uint64_t offset, const char *line)
{
    (void)ctx, (void)offset;
    eat_text(line);
}

static void on_problem(void *ctx, const tnf_problem *problem)
{
    (void)ctx;
    eat_text(problem->message);
}

static void on_values(void *ctx, const tnf_object *object, const tnf_value_counts *counts)
{
    (void)ctx, (void)object;
    eat(counts, sizeof *counts);
}

/* No input may bring the library to one of these. */
static void expect_honest(tnf_status status, const tnf_error *error)
{
    if (status == TNF_OK)
        return;
    FUZZ_REQUIRE(status != TNF_EBUG && status != TNF_EINVAL, "%s: %s", tnf_status_name(status),
                 error->message);
    FUZZ_REQUIRE(error->status == status, "status %s, error says %s", tnf_status_name(status),
                 tnf_status_name(error->status));
    FUZZ_REQUIRE(error->message[0] != 0, "%s without a sentence", tnf_status_name(status));
}

static tnf_file *open_bytes(const void *bytes, size_t n, bool lenient, tnf_status *status)
{
    tnf_error error;
    tnf_source *source;
    tnf_file *file = NULL;
    tnf_open_options options = { .size = sizeof options, .format = FORMAT->name };
    options.lenient = lenient;
    options.limits.memory = (uint64_t)256 << 20;
    options.warn = on_warning;
    options.trace = on_trace;
    FUZZ_REQUIRE(tnf_source_memory(&source, bytes, n, &error) == TNF_OK, "%s", error.message);
    *status = tnf_open_source(&file, source, &options, &error);
    expect_honest(*status, &error);
    return *status == TNF_OK ? file : NULL;
}

static void *take(uint64_t n)
{
    void *p = malloc(n ? (size_t)n : 1);
    FUZZ_REQUIRE(p != NULL, "no memory for %llu bytes", (unsigned long long)n);
    return p;
}

/* The whole part in pieces, or NULL if it cannot be read. */
static uint8_t *read_pieces(const tnf_part *part)
{
    tnf_error error;
    uint8_t *bytes = take(part->nbytes);
    for (uint64_t at = 0; at < part->nbytes; at += PIECE) {
        size_t n = part->nbytes - at < PIECE ? (size_t)(part->nbytes - at) : PIECE;
        tnf_status status = tnf_read_part(part, at, bytes + at, n, &error);
        expect_honest(status, &error);
        if (status != TNF_OK) {
            free(bytes);
            return NULL;
        }
    }
    return bytes;
}

static void check_part(const tnf_part *part)
{
    tnf_error error;
    eat_text(part->role);
    eat_text(part->type->id);
    if (part->digest)
        eat(part->digest->bytes, part->digest->n);
    if (part->nbytes > MAX_PART)
        return;
    uint8_t *bytes = read_pieces(part);
    const void *view = NULL;
    tnf_status status = tnf_map(&view, part, &error);
    expect_honest(status, &error);
    if (bytes && status == TNF_OK && part->nbytes)
        FUZZ_REQUIRE(memcmp(view, bytes, (size_t)part->nbytes) == 0, "map and read differ");
    if (bytes) {
        tnf_request request = { part, take(part->nbytes) };
        tnf_read_options options = { .size = sizeof options, .threads = 1 };
        status = tnf_read_many(&request, 1, &options, &error);
        FUZZ_REQUIRE(status == TNF_OK, "read_many: %s", error.message);
        FUZZ_REQUIRE(memcmp(request.dst, bytes, (size_t)part->nbytes) == 0,
                     "read_many and read differ");
        free(request.dst);
    }
    tnf_prefetch(part);
    tnf_evict(part);
    free(bytes);
}

/* A slice, taken from the file; *n is its size. NULL if it cannot be had. */
static uint8_t *read_slice(const tnf_object *object, const char *text, uint64_t *n)
{
    tnf_error error;
    tnf_slice *slices = take(object->rank * sizeof *slices);
    uint8_t *bytes = NULL;
    if (tnf_slice_parse(slices, text, object->shape, object->rank, &error) == TNF_OK) {
        *n = tnf_slice_bytes(object, slices);
        if (*n <= MAX_PART) {
            bytes = take(*n);
            tnf_status status = tnf_read_slice(object, slices, bytes, (size_t)*n, &error);
            FUZZ_REQUIRE(status != TNF_EBUG, "%s", error.message);
            if (status != TNF_OK) {
                free(bytes);
                bytes = NULL;
            }
        }
    }
    free(slices);
    return bytes;
}

static void check_slices(const tnf_object *object)
{
    static const char *const texts[] = { "...", "0", "-1", "::-1", "1::2", "...,0", ":2,:3" };
    const tnf_part *part = &object->parts[0];
    if (strcmp(tnf_layout_id(object->layout), "dense") != 0 || part->nbytes > MAX_PART)
        return;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t n;
        uint8_t *bytes = read_slice(object, texts[i], &n);
        if (bytes && i == 0 && object->order == TNF_ORDER_C) {
            uint8_t *all = read_pieces(part);
            FUZZ_REQUIRE(all && n == part->nbytes, "the slice ... has %llu bytes of %llu",
                         (unsigned long long)n, (unsigned long long)part->nbytes);
            FUZZ_REQUIRE(part->type->bits % 8 || memcmp(all, bytes, (size_t)n) == 0,
                         "the slice ... differs");
            free(all);
        }
        free(bytes);
    }
}

static void check_object(const tnf_file *file, const tnf_object *object)
{
    eat(object->name.p, object->name.n + 1); /* the NUL counts too */
    eat(object->shape, object->rank * sizeof *object->shape);
    tnf_elements(object);
    FUZZ_REQUIRE(tnf_find_n(file, object->name.p, object->name.n) == object,
                 "a tensor is not found under its own name");
    for (uint16_t i = 0; i < object->nparts; i++)
        check_part(&object->parts[i]);
    check_slices(object);
}

static void check_file(const tnf_file *file)
{
    tnf_error error;
    const tnf_info *info = tnf_file_info(file);
    FUZZ_REQUIRE(tnf_at(file, info->objects) == NULL, "one tensor too many");
    for (size_t i = 0; i < info->objects && i < MAX_OBJECTS; i++)
        check_object(file, tnf_at(file, i));
    for (size_t i = 0; i < info->nextras && i < MAX_OBJECTS; i++)
        check_part(&info->extras[i].bytes);
    if (info->payload > MAX_PAYLOAD)
        return;
    tnf_verify_options options = { .size = sizeof options };
    options.problem = on_problem;
    options.values = on_values;
    tnf_verify_result result;
    tnf_status status = tnf_verify(&result, file, &options, &error);
    expect_honest(status, &error);
}

/* Saves a file in its own format into memory; NULL if the format refuses, as it may. */
static tnf_sink *save(const tnf_file *file)
{
    tnf_error error;
    tnf_builder *builder;
    tnf_sink *sink;
    tnf_save_options options = { .size = sizeof options, .format = FORMAT->name };
    FUZZ_REQUIRE(tnf_builder_new(&builder, NULL, &error) == TNF_OK, "%s", error.message);
    FUZZ_REQUIRE(tnf_sink_memory(&sink, &error) == TNF_OK, "%s", error.message);
    tnf_status status = tnf_builder_add_file(builder, file, &error);
    if (status == TNF_OK)
        status = tnf_save_sink(builder, sink, &options, &error);
    expect_honest(status, &error);
    tnf_builder_free(builder);
    if (status == TNF_OK)
        return sink;
    tnf_sink_close(sink);
    return NULL;
}

static void compare_objects(const tnf_object *a, const tnf_object *b)
{
    FUZZ_REQUIRE(b != NULL, "'%s' is gone", a->name.p);
    FUZZ_REQUIRE(a->rank == b->rank, "rank of '%s'", a->name.p);
    FUZZ_REQUIRE(!a->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0,
                 "shape of '%s'", a->name.p);
    FUZZ_REQUIRE(a->layout == b->layout && a->order == b->order && a->nparts == b->nparts,
                 "layout of '%s'", a->name.p);
    for (uint16_t i = 0; i < a->nparts; i++) {
        const tnf_part *p = &a->parts[i], *q = &b->parts[i];
        FUZZ_REQUIRE(strcmp(p->type->id, q->type->id) == 0, "type of '%s'", a->name.p);
        FUZZ_REQUIRE(p->nbytes == q->nbytes, "size of '%s'", a->name.p);
        if (p->nbytes > MAX_PART)
            continue;
        uint8_t *x = read_pieces(p), *y = read_pieces(q);
        FUZZ_REQUIRE(!x || (y && memcmp(x, y, (size_t)p->nbytes) == 0), "bytes of '%s'", a->name.p);
        free(x);
        free(y);
    }
}

static void check_round_trip(const tnf_file *file)
{
    const tnf_info *info = tnf_file_info(file);
    tnf_sink *first;
    if (info->payload > MAX_PAYLOAD || !(first = save(file)))
        return;
    tnf_str bytes = tnf_sink_bytes(first);
    tnf_status status;
    tnf_file *again = open_bytes(bytes.p, bytes.n, false, &status);
    FUZZ_REQUIRE(again != NULL, "our own file does not open: %s", tnf_status_name(status));
    FUZZ_REQUIRE(tnf_file_info(again)->objects == info->objects, "the number of tensors changed");
    for (size_t i = 0; i < info->objects && i < MAX_OBJECTS; i++) {
        const tnf_object *object = tnf_at(file, i);
        compare_objects(object, tnf_find_n(again, object->name.p, object->name.n));
    }
    tnf_sink *second = save(again);
    FUZZ_REQUIRE(second != NULL, "saved once, refused the second time");
    tnf_str twice = tnf_sink_bytes(second);
    FUZZ_REQUIRE(bytes.n == twice.n && memcmp(bytes.p, twice.p, bytes.n) == 0,
                 "saving what was saved gives other bytes");
    tnf_sink_close(second);
    tnf_close(again);
    tnf_sink_close(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tnf_probe probe = { .head = data, .nhead = size < TNF_PROBE_HEAD ? size : TNF_PROBE_HEAD };
    probe.ntail = size < TNF_PROBE_TAIL ? size : TNF_PROBE_TAIL;
    probe.tail = data ? data + size - probe.ntail : NULL;
    probe.size = size;
    probe.ext = "";
    int score = FORMAT->probe(&probe);
    FUZZ_REQUIRE(score >= 0 && score <= 100, "probe says %d", score);

    tnf_status strict, lenient;
    for (int round = 0; round < 2; round++) {
        tnf_file *file = open_bytes(data, size, round == 1, round == 1 ? &lenient : &strict);
        if (!file)
            continue;
        check_file(file);
        if (FORMAT->caps & TNF_CAN_WRITE)
            check_round_trip(file);
        tnf_close(file);
    }
    FUZZ_REQUIRE(strict != TNF_OK || lenient == TNF_OK, "strict opens, lenient does not");
    return 0;
}
