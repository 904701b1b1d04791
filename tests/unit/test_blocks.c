/* SPDX-License-Identifier: MIT */
/* Block types against the results of gguf-py and ggml's C for the same blocks and floats
 * (vectors/blocks.txt), for every instruction set of this machine. All sets must agree bit for bit
 * on any bytes. Also numbers computed by hand, and bytes at unaligned addresses, without access
 * outside them. */
#include "../support/unit.h"
#include "base/bytes.h"
#include "base/sha256.h"
#include "formats/gguf/gguf.h"
#include "kernels/blocks.h"

#include <math.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#define ENDS 64 /* the length of a line's words, without the hex of blocks */

static uint64_t state_of_chance = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void)
{
    state_of_chance ^= state_of_chance << 13;
    state_of_chance ^= state_of_chance >> 7;
    state_of_chance ^= state_of_chance << 17;
    return state_of_chance;
}

static float float_from(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_from(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static const tnf_block_type *type_of(const tnf_block_set *set, const char *name)
{
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->types[i].name, name) == 0)
            return &set->types[i];
    fail_msg("%s has no %s", set->name, name);
    return NULL;
}

/* The bytes have this SHA-256. */
static void expect_sha(const void *bytes, size_t n, const char *want, const char *what,
                       const char *type)
{
    tnf_sha256 s;
    uint8_t sum[32];
    char text[65];
    tnf_sha256_begin(&s);
    tnf_sha256_update(&s, bytes, n);
    tnf_sha256_end(&s, sum);
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", sum[i]);
    if (strncmp(text, want, 64) != 0)
        fail_msg("%s %s: %s, not %.64s", what, type, text, want);
}

static uint8_t *from_hex(const char *hex, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t *bytes = malloc(n / 2 + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < n / 2; i++)
        bytes[i] = (uint8_t)((strchr(digits, hex[2 * i]) - digits) << 4 |
                             (strchr(digits, hex[2 * i + 1]) - digits));
    return bytes;
}

/* Contiguous blocks, whose last byte is the last readable one. */
static void expect_decoded(const tnf_block_set *set, const char *name, const uint8_t *blocks,
                           size_t bytes, const char *sha)
{
    const tnf_block_type *type = type_of(set, name);
    size_t n = bytes / type->bytes, count = n * type->elements;
    float *y = malloc(count * sizeof *y);
    uint8_t *odd = malloc(bytes + 1);
    assert_true(y && odd && bytes % type->bytes == 0);
    memcpy(odd + 1, blocks, bytes);
    type->decode(y, odd + 1, n);
    for (size_t i = 0; i < count; i++)
        if (isnan(y[i]))
            assert_int_equal(bits_from(y[i]), 0x7fc00000);
    tnf_swap_le(y, count, sizeof *y);
    expect_sha(y, count * sizeof *y, sha, set->name, name);
    free(odd);
    free(y);
}

static const gguf_type *gguf_type_named(const char *name)
{
    const gguf_type *type = NULL;
    for (uint32_t id = 0; id < 64 && !(type && strcmp(type->name, name) == 0); id++)
        type = tnf_gguf_type(id);
    assert_non_null(type);
    assert_string_equal(type->name, name);
    return type;
}

static void expect_swapped(const char *name, uint8_t *blocks, size_t bytes, const char *sha)
{
    const gguf_type *type = gguf_type_named(name);
    assert_false(type->little_only);
    tnf_gguf_swap(type, tnf_gguf_layout(type)->block_bytes, blocks, bytes);
    expect_sha(blocks, bytes, sha, "swap", name);
}

static void expect_encoded(const tnf_block_set *set, const char *name, const float *x, size_t count,
                           const char *sha)
{
    const tnf_block_type *type = type_of(set, name);
    size_t n = count / type->elements;
    uint8_t *out = malloc(n * type->bytes + 1);
    assert_non_null(out);
    assert_non_null(type->encode);
    type->encode(out + 1, x, n);
    expect_sha(out + 1, n * type->bytes, sha, set->name, name);
    free(out);
}

/* Checks one line of the vectors; `x` has the floats of the line "floats". */
static void take_line(char *line, float **x, size_t *count)
{
    char what[ENDS], name[ENDS] = "";
    const tnf_block_set *set;
    char *word = line + strcspn(line, " "), *next;
    snprintf(what, sizeof what, "%.*s", (int)(word - line), line);
    word += *word == ' ';
    if (strcmp(what, "floats") == 0) {
        *count = strcspn(word, "\n") / 8;
        *x = (float *)(void *)from_hex(word, *count * 8);
        tnf_swap_le(*x, *count, sizeof **x);
        return;
    }
    next = word + strcspn(word, " ");
    snprintf(name, sizeof name, "%.*s", (int)(next - word), word);
    next += *next == ' ';
    size_t n = strcspn(next, " \n");
    if (strcmp(what, "encode") == 0) {
        for (size_t i = 0; (set = tnf_block_set_at(i)); i++)
            expect_encoded(set, name, *x, *count, next);
        return;
    }
    uint8_t *blocks = from_hex(next, n);
    if (strcmp(what, "swap") == 0)
        expect_swapped(name, blocks, n / 2, next + n + 1);
    else
        for (size_t i = 0; (set = tnf_block_set_at(i)); i++)
            expect_decoded(set, name, blocks, n / 2, next + n + 1);
    free(blocks);
}

static void as_others_have_it(void **state)
{
    (void)state;
    FILE *f = fopen(TNF_TESTS_DIR "/unit/vectors/blocks.txt", "r");
    char *line = NULL;
    size_t room = 0, lines = 0, count = 0;
    float *x = NULL;
    assert_non_null(f);
    while (getline(&line, &room, f) > 0)
        if (line[0] != '#') {
            take_line(line, &x, &count);
            lines++;
        }
    assert_int_equal(lines, 109);
    fclose(f);
    free(line);
    free(x);
}

/* ----------------------------------------------------------- all sets agree */

static void fill_blocks(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(next_random() >> 24);
}

static void sets_decode_alike(void **state)
{
    (void)state;
    enum { N = 600 };
    const tnf_block_set *set;
    for (size_t t = 0; t < tnf_blocks_portable.n; t++) {
        const tnf_block_type *type = &tnf_blocks_portable.types[t];
        size_t count = (size_t)N * type->elements;
        uint8_t *blocks = malloc((size_t)N * type->bytes);
        float *want = malloc(count * 4), *got = malloc(count * 4 + 4);
        fill_blocks(blocks, (size_t)N * type->bytes);
        type->decode(want, blocks, N);
        for (size_t i = 0; (set = tnf_block_set_at(i)); i++) {
            got[count] = 7;
            assert_string_equal(set->types[t].name, type->name);
            set->types[t].decode(got, blocks, N);
            assert_memory_equal(got, want, count * 4);
            assert_true(got[count] == 7);
            set->types[t].decode(got, NULL, 0);
        }
        free(blocks);
        free(want);
        free(got);
    }
}

/* Numbers of all kinds: weights, ties, subnormal, huge; in some blocks NaN or infinity. */
static float some_float(unsigned kind)
{
    uint64_t r = next_random();
    switch (kind % 8) {
    case 0:
        return (float)((int)(r >> 40 & 255) - 128) / 16; /* ties */
    case 1:
        return float_from((uint32_t)(r >> 32) & 0x807fffff); /* subnormal */
    case 2:
        return float_from(((uint32_t)(r >> 32) & 0x80ffffff) | 0x7e000000);
    case 3:
        return kind % 16 == 3 ? float_from((uint32_t)(r >> 32)) : r & 1 ? 0.0f : -0.0f;
    case 4:
        return ldexpf((float)(int)(r >> 40 & 0xffff) - 32768, (int)(r >> 20 & 63) - 45);
    default:
        return (float)(int64_t)(r >> 11) * 0x1p-53f - 0.5f;
    }
}

static void sets_encode_alike(void **state)
{
    (void)state;
    enum { N = 1200 };
    const tnf_block_set *set;
    for (size_t t = 0; t < tnf_blocks_portable.n; t++) {
        const tnf_block_type *type = &tnf_blocks_portable.types[t];
        size_t count = (size_t)N * type->elements, bytes = (size_t)N * type->bytes;
        if (!type->encode)
            continue;
        float *x = malloc(count * 4);
        uint8_t *want = malloc(bytes), *got = malloc(bytes + 1);
        for (size_t i = 0; i < count; i++)
            x[i] = some_float((unsigned)(i / type->elements));
        type->encode(want, x, N);
        for (size_t i = 0; (set = tnf_block_set_at(i)); i++) {
            got[bytes] = 99;
            set->types[t].encode(got, x, N);
            assert_memory_equal(got, want, bytes);
            assert_int_equal(got[bytes], 99);
        }
        free(x);
        free(want);
        free(got);
    }
}

/* ------------------------------------------------------- values by hand */

static void names_are_found(void **state)
{
    (void)state;
    const tnf_block_type *type;
    size_t n = 0;
    for (; (type = tnf_block_type_at(n)); n++)
        assert_ptr_equal(tnf_block_type_named(type->name, strlen(type->name)), type);
    assert_int_equal(n, 27);
    assert_null(tnf_block_type_named("q4_", 3));
    assert_null(tnf_block_type_named("q4_00", 5));
    assert_null(tnf_block_type_named("", 0));
    assert_non_null(tnf_block_type_named("q4_00", 4));
}

static void no_big_endian_form(void **state)
{
    (void)state;
    static const char *const grids[] = { "iq1_s", "iq1_m",   "iq2_xxs", "iq2_xs",
                                         "iq2_s", "iq3_xxs", "iq3_s" };
    size_t both = 0;
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
        assert_true(gguf_type_named(grids[i])->little_only);
    for (uint32_t id = 0; id < 64; id++) {
        const gguf_type *type = tnf_gguf_type(id);
        both += type && !type->dense && !type->little_only;
    }
    assert_int_equal(both, 20);
}

/* If a scale is infinite or NaN, the product with 0 is NaN, too, and all NaNs have the same
 * bits. */
static void odd_scales(void **state)
{
    (void)state;
    const tnf_block_type *q8_0 = tnf_block_type_named("q8_0", 4);
    uint8_t block[34] = { 0x00, 0xfc, 1, 0, 0xff };
    float y[32];
    q8_0->decode(y, block, 1);
    assert_true(isinf(y[0]) && y[0] < 0);
    assert_int_equal(bits_from(y[1]), 0x7fc00000);
    assert_true(isinf(y[2]) && y[2] > 0);
    block[0] = 1; /* signalling */
    q8_0->decode(y, block, 1);
    for (int i = 0; i < 32; i++)
        assert_int_equal(bits_from(y[i]), 0x7fc00000);
}

/* Limits of f16 scales, through q8_0 with codes of 127, so that d is the stored scale. */
static void scales_rounded(void **state)
{
    (void)state;
    static const struct {
        float d;
        uint16_t half;
    } want[] = {
        { 1.0f, 0x3c00 },         { 65504.0f, 0x7bff },     { 65519.0f, 0x7bff },
        { 65520.0f, 0x7c00 },     { 0x1p-14f, 0x0400 },     { 0x1p-24f, 0x0001 },
        { 0x1p-25f, 0x0000 },     { 0x1.8p-24f, 0x0002 },   { 0x1.000002p-25f, 0x0001 },
        { 0x1.ff8p-15f, 0x03ff }, { 0x1.ffbp-15f, 0x03ff }, { 0x1.ffcp-15f, 0x0400 },
        { 0x1.002p0f, 0x3c00 },   { 0x1.006p0f, 0x3c02 },
    };
    const tnf_block_type *tq2_0 = tnf_block_type_named("tq2_0", 5); /* d is the largest */
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        float x[256] = { want[i].d };
        uint8_t block[66];
        tq2_0->encode(block, x, 1);
        assert_int_equal(tnf_le16(block + 64), want[i].half);
        assert_int_equal(block[0], 0x56); /* the first is 2, its three neighbours 1 */
    }
}

/* gguf-py keeps the sign of zeros: -0 divided by -8 is 0. */
static void signs_of_zeros(void **state)
{
    (void)state;
    const tnf_block_type *q4_0 = tnf_block_type_named("q4_0", 4);
    float x[32];
    uint8_t block[18];
    for (int sign = 0; sign < 2; sign++) {
        for (int i = 0; i < 32; i++)
            x[i] = sign ? -0.0f : 0.0f;
        q4_0->encode(block, x, 1);
        assert_int_equal(tnf_le16(block), sign ? 0 : 0x8000);
        assert_int_equal(block[2], 0x88);
    }
    x[0] = 0x1p-149f; /* 1/d is larger than any float */
    q4_0->encode(block, x, 1);
    assert_int_equal(block[2], 0x88);
}

static void counts_encodable(void **state)
{
    (void)state;
    const tnf_block_type *q4_1 = tnf_block_type_named("q4_1", 4);
    const tnf_block_type *q4_0 = tnf_block_type_named("q4_0", 4);
    float x[96] = { 1 };
    assert_int_equal(tnf_block_encodable(q4_1, x, 3), 3);
    assert_int_equal(tnf_block_encodable(q4_1, x, 0), 0);
    x[64] = 3e38f;
    x[65] = -3e38f;
    assert_int_equal(tnf_block_encodable(q4_1, x, 3), 2);
    assert_int_equal(tnf_block_encodable(q4_0, x, 3), 3);
    x[63] = (float)INFINITY;
    assert_int_equal(tnf_block_encodable(q4_0, x, 3), 1);
    x[0] = (float)NAN;
    assert_int_equal(tnf_block_encodable(q4_0, x, 3), 0);
}

/* Just below 2^10 the logarithm, rounded to a float, is 10; below 2^-125 there is no exponent. */
/* The smallest number whose scale is too large for f16: a little more than 65504 times the divisor
 * of the type. */
static void scales_too_large(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float most, more;
    } cases[] = { { "q8_0", 65504.0F * 127, 65530.0F * 127 },
                  { "q4_0", 65504.0F * 8, 65530.0F * 8 },
                  { "q5_0", 65504.0F * 16, 65530.0F * 16 },
                  { "q4_1", 65504.0F, 65530.0F * 15 },
                  { "q5_1", 65504.0F, 65530.0F * 31 },
                  { "tq1_0", 65504.0F, 65530.0F },
                  { "tq2_0", 65504.0F, 65530.0F },
                  { "q1_0", 65504.0F, 65530.0F },
                  { "q2_0", 65504.0F, 65530.0F } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tnf_block_type *type = tnf_block_type_named(cases[i].name, strlen(cases[i].name));
        float x[3 * 256] = { 0 };
        uint8_t blocks[3 * 256];
        for (size_t j = 0; j < type->elements; j++)
            x[type->elements + j] = cases[i].most;
        type->encode(blocks, x, 3);
        assert_int_equal(tnf_block_finite(type, x, blocks, 3), 3);
        x[2 * type->elements] = 1;
        for (size_t j = 1; j < type->elements; j++)
            x[2 * type->elements + j] = cases[i].more * (type->elements == 128 ? 1.01F : 1.0F);
        type->encode(blocks, x, 3);
        if (tnf_block_finite(type, x, blocks, 3) != 2)
            fail_msg("%s", type->name);
    }
    const tnf_block_type *mxfp4 = tnf_block_type_named("mxfp4", 5);
    float large[32] = { 3e38F, -3e38F };
    uint8_t block[17];
    mxfp4->encode(block, large, 1);
    assert_int_equal(tnf_block_finite(mxfp4, large, block, 1), 1);
}

static void mxfp4_exponents(void **state)
{
    (void)state;
    static const struct {
        float most;
        uint8_t e;
    } want[] = {
        { 1024.0f, 135 },        { 0x1.fffffep9f, 135 }, { 0x1.ff8p9f, 134 }, { 1.0f, 125 },
        { 0x1.fffffep-1f, 124 }, { 0x1p-125f, 0 },       { 0x1p-149f, 0 },    { 0, 0 },
    };
    const tnf_block_type *mxfp4 = tnf_block_type_named("mxfp4", 5);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        float x[32] = { 0, -want[i].most };
        uint8_t block[17];
        mxfp4->encode(block, x, 1);
        assert_int_equal(block[0], want[i].e);
    }
}

/* Every scale from 248 to 448, and every larger one, becomes the largest. */
static void nvfp4_scales(void **state)
{
    (void)state;
    static const struct {
        float scale;
        uint8_t u;
    } want[] = {
        { 240.0f, 0x77 },  { 247.9f, 0x77 },    { 248.0f, 0x7e },  { 256.0f, 0x7e },
        { 300.0f, 0x7e },  { 448.0f, 0x7e },    { 1e30f, 0x7e },   { 1.0f, 0x38 },
        { 1.0625f, 0x39 }, { 0x1p-6f, 0x08 },   { 0x1p-9f, 0x01 }, { 0x1p-10f, 0x01 },
        { 0x1p-11f, 0 },   { 0x1.fp-7f, 0x07 },
    };
    const tnf_block_type *nvfp4 = tnf_block_type_named("nvfp4", 5);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        float x[64] = { want[i].scale * 6 };
        uint8_t block[36];
        nvfp4->encode(block, x, 1);
        if (block[0] != want[i].u)
            fail_msg("%a: %02x, not %02x", (double)want[i].scale, block[0], want[i].u);
    }
}

#if defined(__SSE2__)
/* The result does not depend on the program's rounding mode, nor on flushing subnormals to 0. */
static void in_any_mode(void **state)
{
    (void)state;
    const tnf_block_set *set;
    for (size_t i = 0; (set = tnf_block_set_at(i)); i++) {
        const tnf_block_type *mxfp4 = type_of(set, "mxfp4"), *q8_0 = type_of(set, "q8_0");
        uint8_t tiny[17] = { 0, 0x21 }, want[34], got[34];
        float x[32], y[32];
        for (int j = 0; j < 32; j++)
            x[j] = some_float(5);
        q8_0->encode(want, x, 1);
        unsigned mode = _mm_getcsr();
        _mm_setcsr((mode & ~0x6000u) | 0x8040 | 0x4000);
        mxfp4->decode(y, tiny, 1);
        q8_0->encode(got, x, 1);
        assert_int_equal(_mm_getcsr() & 0xe040, 0xc040);
        _mm_setcsr(mode);
        assert_int_equal(bits_from(y[0]), 0x00200000); /* 2^-128 */
        assert_int_equal(bits_from(y[16]), 0x00400000);
        assert_memory_equal(got, want, sizeof want);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_others_have_it),
        cmocka_unit_test(sets_decode_alike),
        cmocka_unit_test(sets_encode_alike),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(no_big_endian_form),
        cmocka_unit_test(odd_scales),
        cmocka_unit_test(scales_rounded),
        cmocka_unit_test(signs_of_zeros),
        cmocka_unit_test(counts_encodable),
        cmocka_unit_test(scales_too_large),
        cmocka_unit_test(mxfp4_exponents),
        cmocka_unit_test(nvfp4_scales),
#if defined(__SSE2__)
        cmocka_unit_test(in_any_mode),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
