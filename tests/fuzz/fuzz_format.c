/* SPDX-License-Identifier: MIT */
/* A format, by its name in src/formats/list.h. The input is the file. For every content:
 *
 *   open strict and lenient ─> list ─> read in pieces, map, slice, read many ─> verify
 *                                └──> save ─> open again ─> compare ─> save again: the same bytes
 *
 * All ways of reading must agree, saved files must open, and they must hold what was saved.
 */
#include "check.h"
#include "format.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SLICED 8u /* slow with sanitizers, and all tensors go the same way */

#define X(id)      extern const tnf_format tnf_format_##id;
#include "formats/list.h"
#undef X

static const struct {
    const char *id;
    const tnf_format *format;
} formats[] = {
#define X(id) { #id, &tnf_format_##id },
#include "formats/list.h"
#undef X
};

static const tnf_format *chosen;

bool fuzz_choose_format(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].id, name) == 0)
            chosen = formats[i].format;
    return chosen != NULL;
}

static void on_problem(void *ctx, const tnf_problem *problem)
{
    (void)ctx;
    fuzz_eat_text(problem->message);
}

static void on_values(void *ctx, const tnf_object *object, const tnf_value_counts *counts)
{
    (void)ctx, (void)object;
    fuzz_eat(counts, sizeof *counts);
}

static void check_part(const tnf_part *part)
{
    tnf_error error;
    fuzz_eat_text(part->role);
    fuzz_eat_text(part->type->id);
    if (part->digest)
        fuzz_eat(part->digest->bytes, part->digest->n);
    if (part->nbytes > FUZZ_MAX_PART)
        return;
    uint8_t *bytes = fuzz_read(part);
    const void *view = NULL;
    tnf_status status = tnf_map(&view, part, &error);
    fuzz_expect_honest(status, &error);
    if (bytes && status == TNF_OK && part->nbytes)
        FUZZ_REQUIRE(memcmp(view, bytes, (size_t)part->nbytes) == 0, "map and read differ");
    if (bytes) {
        tnf_request request = { part, fuzz_take(part->nbytes) };
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

/* A slice, taken from the file; *n is its size. NULL if it cannot be read. */
static uint8_t *read_slice(const tnf_object *object, const char *text, uint64_t *n)
{
    tnf_error error;
    tnf_slice *slices = fuzz_take(object->rank * sizeof *slices);
    uint8_t *bytes = NULL;
    if (tnf_slice_parse(slices, text, object->shape, object->rank, &error) == TNF_OK) {
        *n = tnf_slice_bytes(object, slices);
        if (*n <= FUZZ_MAX_PART) {
            bytes = fuzz_take(*n);
            tnf_status status = tnf_read_slice(bytes, (size_t)*n, object, slices, &error);
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
    const tnf_part *part = object->parts;
    if (strcmp(tnf_layout_id(object->layout), "dense") != 0 || object->nparts != 1 ||
        part->nbytes > FUZZ_MAX_PART)
        return;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t n;
        uint8_t *bytes = read_slice(object, texts[i], &n);
        if (bytes && i == 0 && object->order == TNF_ORDER_C && part->type->bits &&
            !(part->flags & TNF_PART_UNREADABLE)) {
            uint8_t *all = fuzz_read(part);
            if (!all && part->payload ==
                            TNF_ENCODED) { /* only readers of the complete part check its end */
                free(bytes);
                return;
            }
            FUZZ_REQUIRE(all && n == part->nbytes, "the slice ... has %llu bytes of %llu",
                         (unsigned long long)n, (unsigned long long)part->nbytes);
            FUZZ_REQUIRE(part->type->bits % 8 || memcmp(all, bytes, (size_t)n) == 0,
                         "the slice ... differs");
            free(all);
        }
        free(bytes);
    }
}

static void check_object(const tnf_file *file, const tnf_object *object, bool lenient)
{
    fuzz_eat(object->name.p, object->name.n + 1); /* with the NUL */
    fuzz_eat(object->shape, object->rank * sizeof *object->shape);
    tnf_elements(object);
    const tnf_object *found = tnf_find_n(file, object->name.p, object->name.n);
    bool may_repeat = lenient || chosen->rules & TNF_RULE_NAMES_MAY_REPEAT;
    FUZZ_REQUIRE(found == object || (may_repeat && found), "a tensor is not found under its name");
    for (uint16_t i = 0; i < object->nparts; i++)
        check_part(&object->parts[i]);
}

/* True: it is certainly in the format's canonical form. */
static bool check_file(const tnf_file *file, bool lenient)
{
    tnf_error error;
    const tnf_info *info = tnf_file_info(file);
    FUZZ_REQUIRE(tnf_at(file, info->objects) == NULL, "one tensor too many");
    for (size_t i = 0; i < info->objects && i < FUZZ_MAX_OBJECTS; i++)
        check_object(file, tnf_at(file, i), lenient);
    for (size_t i = 0; i < info->objects && i < MAX_SLICED; i++)
        check_slices(tnf_at(file, i));
    for (size_t i = 0; i < info->nextras && i < FUZZ_MAX_OBJECTS; i++)
        check_part(&info->extras[i].bytes);
    if (info->payload > FUZZ_MAX_PAYLOAD)
        return false;
    tnf_verify_options options = { .size = sizeof options };
    options.problem = on_problem;
    options.values = on_values;
    options.canonical = chosen->canonical != NULL;
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_status status = tnf_verify(&result, file, &options, &error);
    fuzz_expect_honest(status, &error);
    return status == TNF_OK && options.canonical && result.problems == 0;
}

/* `same`: the expected bytes, or NULL. */
static void check_round_trip(const tnf_file *file, bool lenient, const uint8_t *same, size_t n)
{
    tnf_sink *first = fuzz_save(file, chosen->name);
    FUZZ_REQUIRE(first || !same, "canonical, but refused");
    if (!first)
        return;
    tnf_str bytes = tnf_sink_bytes(first);
    FUZZ_REQUIRE(!same || (bytes.n == n && memcmp(bytes.p, same, n) == 0),
                 "canonical, but written otherwise");
    tnf_file *again = fuzz_reopen(first, chosen->name, lenient);
    fuzz_compare_files(file, again);
    tnf_sink *second = fuzz_save(again, chosen->name);
    FUZZ_REQUIRE(second != NULL, "saved once, refused the second time");
    fuzz_compare_bytes(first, second, "saving what was saved");
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
    int score = chosen->probe(&probe);
    FUZZ_REQUIRE(score >= 0 && score <= 100, "probe says %d", score);

    tnf_file *(*open)(const void *, size_t, const char *, bool,
                      tnf_status *) = chosen->stands_for_shards ? fuzz_open_among_shards
                                                                : fuzz_open;
    tnf_status strict, lenient;
    for (int round = 0; round < 2; round++) {
        tnf_file *file = open(data, size, chosen->name, round == 1, round ? &lenient : &strict);
        if (!file)
            continue;
        bool canonical = check_file(file, round == 1);
        if (chosen->caps & TNF_CAN_WRITE)
            check_round_trip(file, round == 1, canonical ? data : NULL, size);
        tnf_close(file);
    }
    FUZZ_REQUIRE(strict != TNF_OK || lenient == TNF_OK, "strict opens, lenient does not");
    return 0;
}
