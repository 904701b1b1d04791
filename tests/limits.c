/* SPDX-License-Identifier: MIT */
/* Limits are enforced, and large numbers in a file do not cost memory: for any header, allocations
 * are proportional to the size of the file. */
#include "support/memory.h"
#include "support/open.h"

#define PER_BYTE 48u         /* per byte of the file: a record of 8 may need some hundreds */
#define AT_LEAST (33u << 10) /* a handle, its first blocks, a buffer for reading */

struct facts { /* the facts of a fixture that is opened without limits */
    size_t objects;
    uint32_t rank;
    size_t name;
    unsigned depth;
};

static unsigned depth_of(const tnf_value *v)
{
    unsigned deepest = 0;
    for (size_t i = 0; i < v->n && (v->kind == TNF_MAP || v->kind == TNF_ARRAY); i++) {
        unsigned d = depth_of(v->kind == TNF_MAP ? &v->as.members[i].value : &v->as.items[i]);
        deepest = d > deepest ? d : deepest;
    }
    return v->kind == TNF_MAP || v->kind == TNF_ARRAY ? deepest + 1 : 0;
}

static struct facts facts_of(const struct fixture *f)
{
    struct facts facts = { 0 };
    tnf_error error;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .lenient = true };
    MUST(open_bytes(&file, f->file.p, f->file.n, &o, &error) == TNF_OK);
    facts.objects = tnf_file_info(file)->objects;
    facts.depth = depth_of(tnf_file_info(file)->attrs);
    for (size_t i = 0; i < facts.objects; i++) {
        const tnf_object *t = tnf_at(file, i);
        facts.rank = t->rank > facts.rank ? t->rank : facts.rank;
        facts.name = t->name.n > facts.name ? t->name.n : facts.name;
    }
    tnf_close(file);
    return facts;
}

static void expect_status(const struct fixture *f, const char *what, tnf_limits limits,
                          tnf_status status)
{
    tnf_error error;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .lenient = true, .limits = limits };
    check_doing("%s with a limit on %s", f->label, what);
    tnf_status s = open_bytes(&file, f->file.p, f->file.n, &o, &error);
    CHECK(s == status, "%s instead of %s: %s", tnf_status_name(s), tnf_status_name(status),
          s == TNF_OK ? "" : error.message);
    if (s == TNF_OK)
        tnf_close(file);
}

static void each_limit(const struct fixture *f)
{
    struct facts facts = facts_of(f);
    expect_status(f, "header_bytes", (tnf_limits) { .header_bytes = 1 }, TNF_ELIMIT);
    expect_status(f, "header_bytes", (tnf_limits) { .header_bytes = f->file.n }, TNF_OK);
    expect_status(f, "memory", (tnf_limits) { .memory = 1 }, TNF_ELIMIT);
    if (facts.objects)
        expect_status(f, "objects, just enough", (tnf_limits) { .objects = facts.objects }, TNF_OK);
    if (facts.objects > 1)
        expect_status(f, "objects", (tnf_limits) { .objects = facts.objects - 1 }, TNF_ELIMIT);
    if (facts.rank)
        expect_status(f, "rank, just enough", (tnf_limits) { .rank = facts.rank }, TNF_OK);
    if (facts.rank > 1)
        expect_status(f, "rank", (tnf_limits) { .rank = facts.rank - 1 }, TNF_ELIMIT);
    if (facts.name)
        expect_status(f, "name_bytes, just enough",
                      (tnf_limits) { .name_bytes = (uint32_t)facts.name }, TNF_OK);
    if (facts.name > 1)
        expect_status(f, "name_bytes", (tnf_limits) { .name_bytes = (uint32_t)facts.name - 1 },
                      TNF_ELIMIT);
}

/* With any limit on memory, the result is success or TNF_ELIMIT, and never much more memory is
 * allocated than allowed. */
static void memory_limits(const struct fixture *f)
{
    for (uint64_t limit = 1; limit < (1u << 20); limit += limit / 4 + 1) {
        struct memory_log log = { 0 };
        tnf_error error;
        tnf_file *file;
        tnf_open_options o = { .size = sizeof o, .lenient = true, .limits.memory = limit };
        o.allocator = memory_allocator(&log);
        check_doing("%s with %llu bytes of memory", f->label, (unsigned long long)limit);
        tnf_status status = open_bytes(&file, f->file.p, f->file.n, &o, &error);
        CHECK(status == TNF_OK || status == TNF_ELIMIT, "%s: %s", tnf_status_name(status),
              error.message);
        CHECK(log.peak <= 4 * limit + 8192, "%llu bytes were taken", (unsigned long long)log.peak);
        if (status == TNF_OK)
            tnf_close(file);
        CHECK(log.blocks == 0, "%llu blocks are lost", (unsigned long long)log.blocks);
    }
}

/* Nested JSON in a gpt.rs checkpoint: {"kind":"gpt","config":{"a":[[[…]]]}}. */
static tnf_status open_nested(unsigned levels, uint32_t limit, tnf_error *error)
{
    char config[2000];
    uint8_t file[2100] = "GPTRSCHK\2";
    size_t n = (size_t)snprintf(config, sizeof config, "{\"kind\":\"gpt\",\"config\":{\"a\":");
    for (unsigned i = 0; i < levels; i++)
        config[n++] = '[';
    for (unsigned i = 0; i < levels; i++)
        config[n++] = ']';
    config[n++] = '}';
    config[n++] = '}';
    file[12] = (uint8_t)n;
    file[13] = (uint8_t)(n >> 8);
    memcpy(file + 16, config, n);
    file[16 + n] = 4; /* an index of four bytes: no tensors */
    tnf_file *f;
    tnf_open_options o = { .size = sizeof o, .limits.depth = limit };
    tnf_status status = open_bytes(&f, file, 16 + n + 8, &o, error);
    if (status == TNF_OK)
        tnf_close(f);
    return status;
}

static void nesting_limits(void)
{
    tnf_error error;
    for (uint32_t limit = 3; limit < 100; limit += 7) {
        tnf_status deep = TNF_OK;
        unsigned fits = 0;
        check_doing("nesting with a limit of %u", limit);
        for (unsigned levels = 1; levels < 200 && deep == TNF_OK; levels++) {
            deep = open_nested(levels, limit, &error);
            fits = deep == TNF_OK ? levels + 2 : fits; /* two levels are around it */
        }
        CHECK(deep == TNF_ELIMIT, "%s", tnf_status_name(deep));
        CHECK(fits + 2 >= limit && fits <= limit, "%u levels fit", fits);
    }
    check_doing("nesting without a limit of our own");
    CHECK(open_nested(60, 0, &error) == TNF_OK, "60 levels: %s", error.message);
    CHECK(open_nested(900, 0, &error) == TNF_ELIMIT, "900 levels");
}

/* ------------------------------------------------- huge numbers in headers */

static double worst;

static void check_proportion(const void *p, size_t n)
{
    for (int lenient = 0; lenient < 2; lenient++) {
        struct memory_log log = { 0 };
        tnf_error error;
        tnf_file *file;
        tnf_open_options o = { .size = sizeof o, .lenient = lenient };
        o.allocator = memory_allocator(&log);
        tnf_status status = open_bytes(&file, p, n, &o, &error);
        CHECK(log.peak <= (uint64_t)PER_BYTE * n + AT_LEAST, "%llu bytes of memory for %zu of file",
              (unsigned long long)log.peak, n);
        CHECK(log.largest <= (uint64_t)PER_BYTE * n + AT_LEAST, "%llu bytes asked for at once",
              (unsigned long long)log.largest);
        if (n > 1000 && (double)log.peak / (double)n > worst)
            worst = (double)log.peak / (double)n;
        if (status == TNF_OK)
            tnf_close(file);
    }
}

/* Replaces each run of four or eight bytes by a large number; the numbers are used in turn. */
static void huge_numbers(const struct fixture *f)
{
    static const uint64_t numbers[] = { 0x7fffffff,         0xffffffff,  0x7fffffffffffffff,
                                        0xffffffffffffffff, 0x100000000, 0x10000000 };
    /* every second place; fewer places under a sanitizer, the more fixtures there are */
    size_t share = check_share(1 + (unsigned)fixtures.n / 25);
    if (share < 2 && !getenv("TNF_FULL"))
        share = 2;
    uint8_t *copy = malloc(f->file.n + 8);
    MUST(copy != NULL);
    size_t end = f->file.n < 400 ? f->file.n : 400; /* headers are at the beginning */
    for (size_t at = 0; at < end; at++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            size_t width = numbers[k] > 0xffffffff ? 8 : 4;
            if (at + width > f->file.n || (k + at) % 2 || (at + k) / 2 % share != 0)
                continue;
            memcpy(copy, f->file.p, f->file.n);
            memcpy(copy + at, &numbers[k], width); /* tests run on little-endian machines */
            check_doing("%s with %llx at byte %zu", f->label, (unsigned long long)numbers[k], at);
            check_proportion(copy, f->file.n);
        }
    free(copy);
}

/* The same in text: replaces each run of digits. */
static void huge_digits(const struct fixture *f)
{
    static const char *const numbers[] = { "999999999", "4294967296", "18446744073709551615",
                                           "9223372036854775808" };
    char *copy = malloc(f->file.n + 32);
    MUST(copy != NULL);
    for (size_t at = 8; at < f->file.n && at < 3000; at++) {
        size_t end = at;
        while (end < f->file.n && f->file.p[end] >= '0' && f->file.p[end] <= '9')
            end++;
        for (size_t k = 0; end > at && k < sizeof numbers / sizeof *numbers; k++) {
            size_t digits = strlen(numbers[k]), n = f->file.n - (end - at) + digits;
            memcpy(copy, f->file.p, at);
            memcpy(copy + at, numbers[k], digits);
            memcpy(copy + at + digits, f->file.p + end, f->file.n - end);
            uint64_t header; /* in safetensors, the length of the text */
            memcpy(&header, copy, 8);
            header += digits - (end - at);
            memcpy(copy, &header, 8);
            check_doing("%s with %s at byte %zu", f->label, numbers[k], at);
            check_proportion(copy, n);
        }
        at = end;
    }
    free(copy);
}

int main(void)
{
    fixtures_valid();
    for (size_t i = 0; i < fixtures.n; i++) {
        const struct fixture *f = &fixtures.list[i];
        if (!f->format)
            continue; /* an index: its shards are tested by themselves */
        each_limit(f);
        memory_limits(f);
        huge_numbers(f);
        if (strncmp(f->format, "safetensors", 11) == 0)
            huge_digits(f);
    }
    nesting_limits();
    size_t valid = fixtures.n;
    fixtures_find(TNF_TESTS_DIR "/formats", "/reject/");
    for (size_t i = valid; i < fixtures.n; i++) {
        check_doing("%s", fixtures.list[i].label);
        check_proportion(fixtures.list[i].file.p, fixtures.list[i].file.n);
    }
    printf("at most %.1f bytes of memory for a byte of file\n", worst);
    return check_end("limits");
}
