/* SPDX-License-Identifier: MIT */
/* Dequantization while loading: the blocks of GGUF, mx/1 and quant_group/1. A device and the host
 * give the same bits, those of virtual tensors, for all scales. */
#include "device/casts.h"
#include "device/fake_kernels.h"
#include "kernels/blocks.h"
#include "unit/virtual_objects.h"

/* Loads it on every device as every type; then a slice of it, which the host computes. */
static void check_everywhere(const tnf_object *w, tnf_load_made made_by)
{
    tnf_slice some[4];
    assert_ok(tnf_slice_parse(some, "3:17,5:40:7", w->shape, w->rank, &e));
    for (size_t k = 0; k < EACH_DEVICE; k++) {
        tnf_device *d = rig_open(names[k]);
        for (size_t to = 0; to < 3; to++) {
            tnf_device_request r = { .object = w, .as = tnf_type_of(targets[to]) };
            check_request(d, r, k ? made_by : TNF_LOAD_HOST);
            r.slices = some;
            check_request(d, r, TNF_LOAD_HOST);
        }
        tnf_device_close(d);
    }
}

/* ----------------------------------------------------------------- blocks */

/* The types of GGUF that have kernels. */
static const struct kind {
    uint32_t type;
    const char *name;
    unsigned halves; /* scales of a block that are f16 */
    size_t at;       /* where they begin */
} kinds[] = {
    { 2, "q4_0", 1, 0 },   { 3, "q4_1", 2, 0 },    { 6, "q5_0", 1, 0 },    { 7, "q5_1", 2, 0 },
    { 8, "q8_0", 1, 0 },   { 10, "q2_k", 2, 80 },  { 11, "q3_k", 1, 108 }, { 12, "q4_k", 2, 0 },
    { 13, "q5_k", 2, 0 },  { 14, "q6_k", 1, 208 }, { 20, "iq4_nl", 1, 0 }, { 23, "iq4_xs", 1, 0 },
    { 39, "mxfp4", 0, 0 }, { 40, "nvfp4", 0, 0 },
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* Any random bytes are a valid block. Half of the f16 scales are special: zero, the smallest
 * number, other small ones, the largest, infinity, NaN. Scales of one byte have all their
 * values. */
static uint8_t *random_blocks(const struct kind *kind, const tnf_block_type *type, size_t n,
                              uint64_t *rng)
{
    static const uint16_t special[] = { 0, 1, 0x3ff, 0x400, 0x7bff, 0x7c00, 0x7c01, 0x7e00 };
    uint8_t *bytes = random_bytes(n * type->bytes, rng);
    for (size_t i = 0; i < n * kind->halves; i++) {
        uint64_t r = next_random(rng);
        uint8_t *p = bytes + i / kind->halves * type->bytes + kind->at + i % kind->halves * 2;
        if (r % 2)
            tnf_put_le16(p, (uint16_t)(special[r >> 8 & 7] | (r >> 16 & 1) << 15));
    }
    return bytes;
}

static void put_field(FILE *f, uint64_t x, size_t n)
{
    MUST(fwrite(&x, 1, n, f) == n);
}

/* A GGUF with one tensor "w" of `rows` rows of 512 elements. */
static void write_blocks(const char *at, uint32_t type, const uint8_t *bytes, size_t n,
                         unsigned rows)
{
    FILE *f = fopen(at, "wb");
    MUST(f != NULL);
    put_field(f, 0x46554747, 4);
    put_field(f, 3, 4);
    put_field(f, 1, 8);
    put_field(f, 0, 8);
    put_field(f, 1, 8);
    put_field(f, 'w', 1);
    put_field(f, 2, 4);
    put_field(f, 512, 8);
    put_field(f, rows, 8);
    put_field(f, type, 4);
    put_field(f, 0, 8);
    while (ftell(f) % 32)
        put_field(f, 0, 1);
    MUST(fwrite(bytes, 1, n, f) == n);
    while (ftell(f) % 32)
        put_field(f, 0, 1);
    MUST(fclose(f) == 0);
}

static void every_block(void **state)
{
    (void)state;
    enum { ROWS = 500 };
    uint64_t rng = 41;
    char at[400], layout[40];
    snprintf(at, sizeof at, "%s/blocks.gguf", files_temp());
    for (size_t i = 0; i < KINDS; i++) {
        const tnf_block_type *type = tnf_block_type_named(kinds[i].name, strlen(kinds[i].name));
        size_t n = (size_t)ROWS * 512 / type->elements;
        uint8_t *bytes = random_blocks(&kinds[i], type, n, &rng);
        write_blocks(at, kinds[i].type, bytes, n * type->bytes, ROWS);
        free(bytes);
        tnf_file *file = open_model(at);
        const tnf_object *w = tnf_find(file, "w");
        snprintf(layout, sizeof layout, "gguf.%s/1", kinds[i].name);
        assert_string_equal(tnf_layout_id(w->layout), layout);
        check_everywhere(w, TNF_LOAD_DEVICE);
        tnf_close(file);
    }
}

/* Kernels read blocks at any address, write numbers at any multiple of their size, and write
 * nothing beside them. */
static void blocks_anywhere(void **state)
{
    (void)state;
    enum { N = 3, MOST = 256 * 4 * N, ROOM = 64 };
    uint64_t rng = 5;
    for (size_t i = 0; i < KINDS; i++) {
        const tnf_block_type *type = tnf_block_type_named(kinds[i].name, strlen(kinds[i].name));
        float expected[256 * N];
        uint8_t out[MOST + ROOM], first[MOST];
        char name[32];
        snprintf(name, sizeof name, "tnf_%s", kinds[i].name);
        const fake_kernel *k = fake_kernel_named(name);
        uint8_t *blocks = random_blocks(&kinds[i], type, N, &rng);
        uint8_t *moved = malloc(N * (size_t)type->bytes + ROOM);
        type->decode(expected, blocks, N);
        for (size_t to = 0; to < 3; to++)
            for (size_t by = 0; by < 17; by++) {
                size_t width = to ? 2 : 4, n = N * type->elements * width, at = by * width % 32;
                memcpy(moved + by, blocks, N * (size_t)type->bytes);
                memset(out, 0xa5, sizeof out);
                uint64_t arguments[FAKE_ARGUMENTS] = { (uintptr_t)(moved + by),
                                                       (uintptr_t)(out + at), N, to };
                k->run(arguments);
                if (by == 0)
                    memcpy(first, out, n);
                assert_memory_equal(out + at, to ? (void *)first : (void *)expected, n);
                for (size_t j = 0; j < sizeof out; j++)
                    if (j < at || j >= at + n)
                        assert_int_equal(out[j], 0xa5);
            }
        free(moved);
        free(blocks);
    }
}

/* ------------------------------------------------------------------ parts */

#define IN_MEMORY(role_, type_, bytes, n)                                                          \
    {                                                                                              \
        .role = (role_), .type = tnf_type_named(type_), .memory = (bytes), .nbytes = (n),          \
        .stored = (n), .payload = TNF_MEMORY                                                       \
    }

static char parts_path[400];

/* Saves a tensor in memory, loads it and checks the result. The file remains. */
static void check_saved(const tnf_object *o, tnf_load_made made_by)
{
    tnf_builder *b;
    snprintf(parts_path, sizeof parts_path, "%s/parts.zt", files_temp());
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_object(b, o, "w", &e));
    tnf_save_options how = { .size = sizeof how, .replace = true, .no_sync = true };
    how.format = "ztensor2";
    assert_ok(tnf_save(b, parts_path, &how, &e));
    tnf_builder_free(b);
    tnf_file *file = open_model(parts_path);
    const tnf_object *w = tnf_find(file, "w");
    assert_ptr_equal(w->layout, o->layout);
    check_everywhere(w, made_by);
    tnf_close(file);
}

struct mx {
    const char *type;
    size_t bits;
    uint64_t shape[3], axis, block;
    bool nan; /* is a scale NaN? */
    tnf_load_made made_by;
};

/* Every number of 8 bits is combined with every scale, if blocks of 32 are along the last axis. */
static void check_mx(const struct mx *x, uint64_t *rng)
{
    size_t n = (size_t)(x->shape[0] * x->shape[1] * x->shape[2]);
    size_t bytes = (n * x->bits + 7) / 8, nscales = n / (size_t)x->block;
    uint8_t *data = random_bytes(bytes, rng), *scales = random_bytes(nscales, rng);
    for (size_t i = 0; i < n && x->bits == 8; i++)
        data[i] = (uint8_t)(i / 32 / 256 * 32 + i % 32);
    for (size_t i = 0; i < nscales; i++)
        scales[i] = (uint8_t)(i % 256 == 255 && !x->nan ? 0 : i % 256);
    if (n % 2 && x->bits == 4)
        data[bytes - 1] &= 15;
    tnf_part parts[] = { IN_MEMORY("data", x->type, data, bytes),
                         IN_MEMORY("scales", "f8_e8m0", scales, nscales) };
    if (x->axis == 0) { /* in either order */
        tnf_part first = parts[0];
        parts[0] = parts[1];
        parts[1] = first;
    }
    tnf_object o = tensor_of("mx/1", x->shape, 3, parts, 2);
    tnf_value attrs = ATTRS(UINT("block_size", x->block), UINT("axis", x->axis),
                            TEXT("scale_form", "e8m0_exponent"));
    o.attrs = &attrs;
    check_saved(&o, x->made_by);
    free(data);
    free(scales);
}

static void every_mx(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        size_t bits;
        bool has_nan;
    } types[] = { { "f4_e2m1", 4, false },  { "f6_e2m3", 6, false }, { "f6_e3m2", 6, false },
                  { "f8_e4m3fn", 8, true }, { "f8_e5m2", 8, true },  { "i8", 8, false } };
    uint64_t rng = 77;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (uint64_t axis = 0; axis < 3; axis++)
            for (int nan = 0; nan < 2; nan++) {
                uint64_t last = axis == 1 ? 160 : 32; /* longer than several blocks of a load */
                struct mx x = { types[t].type, types[t].bits,  { 32, 64, last }, axis, 32,
                                nan == 1,      TNF_LOAD_DEVICE };
                if (nan && types[t].has_nan) /* NaN * NaN may be either of them */
                    x.made_by = TNF_LOAD_HOST;
                check_mx(&x, &rng);
            }
    struct mx small = { "f4_e2m1", 4, { 18, 41, 14 }, 2, 7, true, TNF_LOAD_DEVICE };
    check_mx(&small, &rng);
    small = (struct mx) { "f6_e2m3", 6, { 20, 41, 5 }, 0, 10, true, TNF_LOAD_DEVICE };
    check_mx(&small, &rng);
    small = (struct mx) {
        "f4_e2m1", 4, { 19, 41, 9 }, 2, 3, true, TNF_LOAD_HOST
    }; /* half a byte */
    check_mx(&small, &rng);
}

struct groups {
    uint64_t bits, size, axis;
    const char *word, *order, *zeros; /* zeros: none, implied, plain, same_as_data */
    const char *scale_type;
    bool odd; /* is a scale infinite? */
    tnf_load_made made_by;
};

static tnf_value text_value(const char *s)
{
    return (tnf_value) { .kind = TNF_STRING, .n = strlen(s), .as.s = s };
}

/* A tensor of [64,96] with random codes, and finite scales and zeros. */
static void check_groups(const struct groups *g, uint64_t *rng)
{
    enum { N = 64 * 96 };
    size_t groups = g->size ? N / (size_t)g->size : g->axis ? 96 : 64;
    uint64_t word = tnf_type_named(g->word)->bits;
    const tnf_type *scale_type = tnf_type_named(g->scale_type);
    bool plain = strcmp(g->zeros, "plain") == 0, packed = strcmp(g->zeros, "same_as_data") == 0;
    uint8_t *data = random_bytes(N, rng), *zeros = random_bytes(N, rng);
    uint8_t *scales = random_bytes(4 * groups, rng);
    for (size_t i = 0; i < groups && scale_type->bits == 16; i++)
        scales[2 * i + 1] &= 0xbf; /* finite: f16 */
    for (size_t i = 0; i < groups && scale_type->bits == 32; i++)
        scales[4 * i + 3] &= 0xbf;
    if (g->odd)
        tnf_put_le16(scales, 0x7c00);
    tnf_part parts[] = { IN_MEMORY("data", g->word, data, N * g->bits / 8),
                         IN_MEMORY("scales", g->scale_type, scales, groups * scale_type->bits / 8),
                         IN_MEMORY("zeros", plain ? "i8" : g->word, zeros,
                                   plain ? groups : groups * g->bits / 8) };
    tnf_object o = tensor_of("quant_group/1", SHAPE(64, 96), parts, plain || packed ? 3 : 2);
    tnf_value packing = ATTRS({ KEY("word"), text_value(g->word) },
                              { KEY("order"), text_value(g->order) },
                              UINT("per_word", word / g->bits));
    tnf_member second = { KEY("packing"), text_value(g->zeros) };
    if (!plain && !packed)
        second = (tnf_member)UINT("value", 5);
    const char *zero_form = plain || packed ? "tensor" : g->zeros;
    tnf_value zero = ATTRS({ KEY("form"), text_value(zero_form) }, second);
    zero.n = strcmp(zero_form, "none") == 0 ? 1 : 2;
    const char *form = scale_type->bits == 16  ? "f16_factors"
                       : scale_type->bits == 8 ? "e8m0_exponent"
                                               : "f32_factors";
    tnf_value attrs = ATTRS(UINT("bits", g->bits), UINT("group_size", g->size),
                            UINT("axis", g->axis), { KEY("scale_form"), text_value(form) },
                            INSIDE("packing", packing), INSIDE("zero_point", zero));
    o.attrs = &attrs;
    check_saved(&o, g->made_by);
    free(data);
    free(zeros);
    free(scales);
}

static void every_group(void **state)
{
    (void)state;
    static const char lsb[] = "lsb_first", msb[] = "msb_first";
    static const struct groups all[] = {
        { 4, 32, 1, "u32", lsb, "plain", "f16", false, TNF_LOAD_DEVICE },
        { 4, 32, 1, "u32", lsb, "same_as_data", "f32", false, TNF_LOAD_DEVICE },
        { 4, 32, 0, "u8", lsb, "implied", "f16", false, TNF_LOAD_DEVICE },
        { 2, 64, 0, "u16", lsb, "same_as_data", "f16", false, TNF_LOAD_DEVICE },
        { 2, 96, 1, "u64", lsb, "none", "f32", false, TNF_LOAD_DEVICE },
        { 8, 16, 1, "u8", lsb, "plain", "f32", false, TNF_LOAD_DEVICE },
        { 8, 16, 0, "u8", msb, "same_as_data", "f16", false, TNF_LOAD_DEVICE }, /* 1 code a word */
        { 8, 0, 0, "u16", lsb, "plain", "f32", false, TNF_LOAD_DEVICE },
        { 4, 0, 0, "u32", lsb, "none", "f16", false, TNF_LOAD_DEVICE },
        { 8, 0, 1, "u8", lsb, "none", "f16", false, TNF_LOAD_HOST }, /* columns, not rows */
        { 4, 32, 1, "u32", msb, "plain", "f16", false, TNF_LOAD_HOST },
        { 4, 32, 1, "u32", lsb, "plain", "f16", true, TNF_LOAD_HOST }, /* infinity times 0 */
        { 4, 4, 1, "u32", lsb, "none", "f32", false, TNF_LOAD_HOST },  /* few codes per scale */
    };
    uint64_t rng = 99;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_groups(&all[i], &rng);
}

/* Loads a tensor of 1024 elements as f32, while some call of the driver fails. */
static tnf_status try_load(const tnf_object *w, const float *expected)
{
    tnf_device *d = NULL;
    tnf_load *load = NULL;
    tnf_status status = tnf_device_open(&d, "cuda:0", NULL, &e);
    if (status != TNF_OK)
        return status;
    tnf_device_request r = { .object = w, .as = tnf_type_of(TNF_F32) };
    status = tnf_device_load(&load, d, &r, 1, NULL, &e);
    fake->fail_call = -1;
    if (status == TNF_OK)
        assert_true(same_bytes(d, tnf_load_at(load, 0), expected, 1024 * sizeof *expected));
    tnf_load_free(load);
    tnf_device_close(d);
    return status;
}

/* A call fails while scales are copied: the host computes, or there is an error. Nothing is
 * left. */
static void any_call_fails(void **state)
{
    if (!fake)
        skip();
    uint64_t rng = 8;
    float expected[1024];
    struct mx x = { "f4_e2m1", 4, { 32, 32, 1 }, 1, 32, true, TNF_LOAD_DEVICE };
    check_mx(&x, &rng);
    tnf_file *file = open_model(parts_path);
    const tnf_object *w = tnf_find(file, "w");
    tnf_virtual *v = make_virtual(w, NULL);
    assert_ok(tnf_read(expected, sizeof expected, tnf_virtual_object(v), &e));
    for (long at = 0;; at++) {
        fake_reset();
        fake->fail_call = at;
        fake->fail_with = at % 2 ? 2 : 999;
        tnf_status status = try_load(w, expected);
        bool reached = fake->calls > at;
        fake->fail_call = -1;
        assert_int_equal(rig_clean(state), 0);
        if (!reached) {
            assert_int_equal(status, TNF_OK);
            break;
        }
    }
    tnf_virtual_free(v);
    tnf_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = { CASE(every_block), CASE(blocks_anywhere), CASE(every_mx),
                                        CASE(every_group), CASE(any_call_fails) };
    return cmocka_run_group_tests(tests, rig_begin, NULL);
}
