/* SPDX-License-Identifier: MIT */
/* Slices against numpy's answers (slices.txt, made by slices.py) and against a plain reference that
 * copies one element, one bit, at a time: every type, both orders, both byte orders, any steps. */
#include "core/core.h"
#include "support/check.h"
#include "support/files.h"
#include "support/little.h"

#define MAX_RANK 5

/* ------------------------------------------------------------------- numpy */

/* "[4,5]" into numbers; the rest of the text is returned. */
static const char *parse_numbers(const char *text, uint64_t *out, uint32_t *n)
{
    *n = 0;
    MUST(*text == '[');
    text++;
    while (*text != ']') {
        char *end;
        MUST(*n < 8);
        out[(*n)++] = strtoull(text, &end, 10);
        text = end + (*end == ',');
    }
    return text + 1;
}

static void compare_with_numpy(const tnf_object *o, const tnf_slice *s, const char *answer)
{
    uint64_t shape[8];
    uint32_t rank, at = 0;
    tnf_error error;
    const char *elements = parse_numbers(answer, shape, &rank);
    for (uint32_t d = 0; d < o->rank; d++)
        if (!s[d].drop) {
            CHECK(at < rank && s[d].count == shape[at], "dimension %u has %llu", at,
                  (unsigned long long)s[d].count);
            at++;
        }
    CHECK(at == rank, "rank %u instead of %u", at, rank);
    size_t n = (size_t)tnf_slice_bytes(o, s) / 4;
    uint32_t *out = malloc(n * 4 + 4);
    MUST(out != NULL);
    if (CHECK(tnf_read_slice(out, n * 4, o, s, &error) == TNF_OK, "%s", error.message))
        for (size_t i = 0; i < n; i++) {
            char *end;
            MUST(*elements == ' ' || *elements == ',');
            CHECK(out[i] == strtoul(elements + 1, &end, 10), "element %zu is %u", i, out[i]);
            elements = end;
        }
    CHECK(*elements == 0, "numpy has more: %s", elements);
    free(out);
}

static void numpy_case(char *line)
{
    uint64_t shape[8];
    uint32_t rank, counting[1000];
    tnf_slice s[8];
    tnf_error error;
    char *text = strchr(line, '\t'), *answer = text ? strchr(text + 1, '\t') : NULL;
    MUST(answer != NULL);
    *text++ = 0;
    *answer++ = 0;
    parse_numbers(line, shape, &rank);
    for (uint32_t i = 0; i < 1000; i++)
        counting[i] = i;
    uint64_t n = 0;
    MUST(tnf_shape_elements(&n, shape, rank) && n <= 1000);
    tnf_part part = { .role = "data", .type = tnf_type_of(TNF_U32), .memory = counting };
    part.stored = part.nbytes = n * 4;
    part.payload = TNF_MEMORY;
    tnf_object o = { .shape = shape, .rank = rank, .parts = &part, .nparts = 1 };
    o.layout = &tnf_layout_dense;
    check_doing("%s[%s]", line, text);
    tnf_status status = tnf_slice_parse(s, text, shape, rank, &error);
    if (strcmp(answer, "error") == 0)
        CHECK(status == TNF_EINVAL, "%s, where numpy gives an error", tnf_status_name(status));
    else if (CHECK(status == TNF_OK, "%s", error.message))
        compare_with_numpy(&o, s, answer);
}

static unsigned numpy_table(void)
{
    unsigned cases = 0;
    char line[4096];
    FILE *f = fopen(TNF_TESTS_DIR "/slices.txt", "r");
    MUST(f != NULL);
    for (; fgets(line, sizeof line, f); cases++) {
        line[strcspn(line, "\n")] = 0;
        numpy_case(line);
    }
    fclose(f);
    return cases;
}

/* --------------------------------------------------------------- reference */

struct tensor {
    tnf_object o;
    tnf_part part;
    struct tnf_origin origin;
    tnf_source *source;
    uint64_t shape[MAX_RANK];
    uint8_t *file;   /* as stored, after `lead` other bytes */
    uint8_t *little; /* as the library returns them */
    size_t lead;
};

static unsigned bit_of(const uint8_t *p, uint64_t bit)
{
    return p[bit / 8] >> bit % 8 & 1u;
}

/* The place of an element in the file. */
static uint64_t place_of(const tnf_object *o, const uint64_t *index)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < o->rank; i++) {
        uint32_t d = o->order == TNF_ORDER_F ? o->rank - 1 - i : i;
        at = at * o->shape[d] + index[d];
    }
    return at;
}

static void copy_elements(const struct tensor *t, const tnf_slice *s, uint8_t *out)
{
    uint64_t count[MAX_RANK] = { 0 }, index[MAX_RANK], to = 0, bits = t->part.type->bits;
    for (;;) {
        for (uint32_t d = 0; d < t->o.rank; d++)
            index[d] = (uint64_t)(s[d].start + (int64_t)count[d] * s[d].step);
        uint64_t from = place_of(&t->o, index) * bits;
        for (uint64_t b = 0; b < bits; b++, to++)
            out[to / 8] |= (uint8_t)(bit_of(t->little, from + b) << to % 8);
        uint32_t d = t->o.rank;
        while (d > 0 && ++count[d - 1] == s[d - 1].count)
            count[--d] = 0;
        if (d == 0)
            return;
    }
}

/* ------------------------------------------------------------ random cases */

static void make_tensor(struct tensor *t, uint64_t *rng, uint64_t largest)
{
    size_t types = 0;
    *t = (struct tensor) { 0 };
    while (tnf_type_at(types))
        types++;
    t->part.type = tnf_type_at((size_t)(next_random(rng) % types));
    t->o.rank = (uint32_t)(next_random(rng) % (MAX_RANK + 1));
    uint64_t elements = 1;
    for (uint32_t d = 0; d < t->o.rank; d++) {
        uint64_t most = next_random(rng) % 4 == 0 ? largest / elements : 7;
        t->shape[d] = 1 + next_random(rng) % (most ? most : 1);
        if (elements * t->shape[d] > largest)
            t->shape[d] = 1;
        elements *= t->shape[d];
    }
    size_t n = (size_t)((elements * t->part.type->bits + 7) / 8);
    t->lead = (size_t)(next_random(rng) % 100);
    t->file = malloc(t->lead + n);
    t->little = malloc(n);
    MUST(t->file && t->little);
    for (size_t i = 0; i < t->lead + n; i++)
        t->file[i] = (uint8_t)(next_random(rng) >> 13);
    memcpy(t->little, t->file + t->lead, n);
    MUST(tnf_source_memory(&t->source, t->file, t->lead + n, NULL) == TNF_OK);
    t->origin.source = t->source;
    t->part.role = "data";
    t->part.origin = &t->origin;
    t->part.offset = t->lead;
    t->part.stored = t->part.nbytes = n;
    t->o.name = (tnf_str) { "t", 1 };
    t->o.shape = t->shape;
    t->o.parts = &t->part;
    t->o.nparts = 1;
    t->o.layout = &tnf_layout_dense;
    t->o.order = next_random(rng) % 2 ? TNF_ORDER_F : TNF_ORDER_C;
    if (next_random(rng) % 4 == 0) {
        size_t width = little_width(t->part.type);
        t->part.flags = TNF_PART_BIG_ENDIAN;
        for (size_t i = 0; i < n; i++)
            t->little[i] = t->file[t->lead + i / width * width + width - 1 - i % width];
    }
}

static tnf_slice random_slice(uint64_t *rng, uint64_t dim)
{
    uint64_t r = next_random(rng);
    tnf_slice s = { .start = 0, .step = 1, .count = dim };
    if (r % 4 == 0)
        return s; /* whole */
    s.start = (int64_t)((r >> 8) % dim);
    s.step = 1 + (int64_t)((r >> 32) % (r % 3 ? 3 : dim));
    uint64_t room = dim - 1 - (uint64_t)s.start;
    if (r & 128) {
        s.step = -s.step;
        room = (uint64_t)s.start;
    }
    s.count = 1 + (r >> 16) % (room / (uint64_t)(s.step < 0 ? -s.step : s.step) + 1);
    s.drop = s.count == 1 && r & 64;
    return s;
}

static void random_case(uint64_t *rng, uint64_t largest)
{
    struct tensor t;
    tnf_slice s[MAX_RANK];
    tnf_error error;
    make_tensor(&t, rng, largest);
    char text[256];
    size_t at = 0;
    for (uint32_t d = 0; d < t.o.rank; d++) {
        s[d] = random_slice(rng, t.shape[d]);
        at += (size_t)snprintf(text + at, sizeof text - at, " %llu:%lld/%lld/%llu",
                               (unsigned long long)t.shape[d], (long long)s[d].start,
                               (long long)s[d].step, (unsigned long long)s[d].count);
    }
    text[at] = 0;
    check_doing("%s %c%s,%s (dimension:start/step/count)", t.part.type->id,
                t.o.order == TNF_ORDER_F ? 'F' : 'C', t.part.flags ? " big-endian" : "", text);
    size_t n = (size_t)tnf_slice_bytes(&t.o, s);
    uint8_t *want = calloc(1, n + 1), *have = malloc(n + 1);
    MUST(want && have);
    memset(have, 0xa5, n + 1); /* previous content does not matter */
    copy_elements(&t, s, want);
    if (CHECK(tnf_read_slice(have, n, &t.o, s, &error) == TNF_OK, "%s", error.message))
        CHECK(memcmp(want, have, n) == 0, "other elements");
    CHECK(have[n] == 0xa5, "it writes beyond its buffer");
    free(want);
    free(have);
    free(t.file);
    free(t.little);
    tnf_source_close(t.source);
}

int main(void)
{
    uint64_t rng = 2026;
    unsigned table = numpy_table();
    for (int i = 0; i < 6000; i++)
        random_case(&rng, 2000);
    for (int i = 0; i < 40; i++)
        random_case(&rng, 60000);
    for (int i = 0; i < 6; i++)
        random_case(&rng, 3000000); /* larger than any buffer for reading */
    printf("%u answers of numpy, 6046 random slices\n", table);
    return check_end("slices");
}
