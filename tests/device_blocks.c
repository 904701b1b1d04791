/* SPDX-License-Identifier: MIT */
/* Dequantization while loading: GGUF's blocks. On the device and on the host the same bits, those
 * of virtual tensors, whatever the scales are. */
#include "device/casts.h"
#include "device/fake_kernels.h"
#include "kernels/blocks.h"
#include "unit/virtual_objects.h"

/* On every device as every type, and a piece of it, which the host makes. */
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

/* Random bytes are a block, of any type. Half of the scales of f16 are special: zero, the smallest
 * number, other small ones, the largest, infinity, NaN. Scales of a byte have all their values. */
static uint8_t *random_blocks(const struct kind *kind, const tnf_block_type *type, size_t n,
                              uint64_t *rng)
{
    static const uint16_t special[] = { 0, 1, 0x3ff, 0x400, 0x7bff, 0x7c00, 0x7c01, 0x7e00 };
    uint8_t *bytes = random_bytes(n * type->bytes, rng);
    for (size_t i = 0; i < n * kind->halves; i++) {
        uint64_t r = roll(rng);
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

/* Kernels take blocks at any address and write numbers at any multiple of their size, and nothing
 * beside them. */
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

int main(void)
{
    const struct CMUnitTest tests[] = { CASE(every_block), CASE(blocks_anywhere) };
    return cmocka_run_group_tests(tests, rig_begin, NULL);
}
