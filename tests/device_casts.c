/* SPDX-License-Identifier: MIT */
/* Casts while loading, with and without scales. A device and the host give the same bits, those of
 * the library's own kernels, for every number of the small types and for random numbers of the
 * others. */
#include "device/casts.h"

/* ---------------------------------------------------------------- numbers */

/* Numbers near those at which rounding, or the kind of number, changes. */
static uint32_t edge_number(uint64_t *rng)
{
    static const uint32_t edges[] = { 0x33000000, 0x387fc000, 0x38800000, 0x477fe000, 0x477ff000,
                                      0x7f7f0000, 0x7f7f8000, 0x7f800000, 0x7fc00000, 0x00800000,
                                      0x00000000, 0x0000ffff, 0x33800000, 0x7f800001, 0x38000000 };
    uint64_t r = next_random(rng);
    uint32_t x = edges[r % (sizeof edges / sizeof *edges)];
    return (x + (uint32_t)(r >> 8) % 5 - 2) ^ (uint32_t)(r >> 40 & 1) << 31;
}

static void every_number(void **state)
{
    (void)state;
    static const char *const types[] = { "f32", "f16", "bf16", "f8_e4m3fn", "f8_e5m2" };
    static const size_t widths[] = { 4, 2, 2, 1, 1 };
    tnf_error e;
    tnf_builder *b;
    uint64_t rng = 3, shape[] = { 65536 + 77 };
    uint8_t *bytes[5];
    assert_ok(tnf_builder_new(&b, NULL, &e));
    for (size_t t = 0; t < 5; t++) {
        bytes[t] = random_bytes((size_t)shape[0] * widths[t], &rng);
        for (uint32_t i = 0; i < 65536; i++) {
            uint32_t x = widths[t] == 4 ? i % 2 ? edge_number(&rng) : (uint32_t)next_random(&rng)
                                        : i;
            memcpy(bytes[t] + i * widths[t], &x, widths[t]);
        }
        assert_ok(tnf_builder_add(b, types[t], tnf_type_named(types[t]), 1, shape, bytes[t], &e));
    }
    save_model(b);
    tnf_file *file = open_model(path);
    for (size_t k = 0; k < EACH_DEVICE; k++) {
        tnf_device *d = rig_open(names[k]);
        tnf_load_made made = k ? TNF_LOAD_DEVICE : TNF_LOAD_HOST;
        for (size_t t = 0; t < 5; t++)
            for (size_t to = 0; to < 3; to++) {
                tnf_device_request r = { .object = tnf_find(file, types[t]),
                                         .as = tnf_type_of(targets[to]) };
                if (r.object->parts->type != r.as)
                    check_request(d, r, made);
            }
        tnf_device_close(d);
    }
    tnf_close(file);
    for (size_t t = 0; t < 5; t++)
        free(bytes[t]);
}

/* Rows on the device; columns, which have gaps, on the host. */
static void slices_cast(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t rng = 3, shape[] = { 500, 300 };
    tnf_file *file = one_tensor(2, shape, &rng);
    tnf_device *d = rig_open("cuda:0");
    const tnf_object *w = tnf_find(file, "w");
    tnf_slice rows[2], columns[2];
    assert_ok(tnf_slice_parse(rows, "7:333", shape, 2, &e));
    assert_ok(tnf_slice_parse(columns, ":,7:33", shape, 2, &e));
    tnf_device_request r = { .object = w, .slices = rows, .as = tnf_type_of(TNF_BF16) };
    check_request(d, r, TNF_LOAD_DEVICE);
    r.slices = columns;
    check_request(d, r, TNF_LOAD_HOST);
    tnf_device_close(d);
    tnf_close(file);
}

/* ----------------------------------------------------------------- scales */

static void every_scale(void **state)
{
    (void)state;
    static const struct {
        uint64_t shape[2];
        uint32_t rank;
    } forms[] = {
        { { 1, 1 }, 2 }, { { 300, 1 }, 2 }, { { 3, 3 }, 2 }, { { 300 }, 1 }, { { 1 }, 0 }
    };
    static const char *const types[] = { "f8_e4m3fn", "f8_e5m2", "bf16" };
    uint64_t rng = 12, shape[] = { 300, 260 };
    for (size_t t = 0; t < 3; t++)
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            tnf_error e;
            tnf_builder *b;
            float scales[300];
            uint8_t *bytes = random_bytes(300 * 260 * 2, &rng);
            for (size_t i = 0; i < 300; i++)
                scales[i] = (float)(1 + next_random(&rng) % 1000) * 0.00137f;
            assert_ok(tnf_builder_new(&b, NULL, &e));
            assert_ok(tnf_builder_add(b, "w", tnf_type_named(types[t]), 2, shape, bytes, &e));
            assert_ok(tnf_builder_add(b, "s", tnf_type_of(TNF_F32), forms[f].rank, forms[f].shape,
                                      scales, &e));
            save_model(b);
            free(bytes);
            tnf_file *file = open_model(path);
            for (size_t k = 0; k < EACH_DEVICE; k++) {
                tnf_device *d = rig_open(names[k]);
                tnf_slice rows[2];
                assert_ok(tnf_slice_parse(rows, "100:290", shape, 2, &e));
                for (size_t to = 0; to < 3; to++) {
                    tnf_device_request r = { .object = tnf_find(file, "w"),
                                             .scales = tnf_find(file, "s"),
                                             .as = tnf_type_of(targets[to]) };
                    check_request(d, r, k ? TNF_LOAD_DEVICE : TNF_LOAD_HOST);
                    r.slices = rows;
                    check_request(d, r, k ? TNF_LOAD_DEVICE : TNF_LOAD_HOST);
                }
                tnf_device_close(d);
            }
            tnf_close(file);
        }
}

/* A driver that loads no kernels: the host computes. */
static void no_kernels(void **state)
{
    (void)state;
    if (!fake)
        skip();
    uint64_t rng = 3, shape[] = { 50, 30 };
    tnf_file *file = one_tensor(2, shape, &rng);
    tnf_device *d = rig_open("cuda:0");
    fake->no_modules = 1;
    tnf_device_request r = { .object = tnf_find(file, "w"), .as = tnf_type_of(TNF_BF16) };
    check_request(d, r, TNF_LOAD_HOST);
    tnf_device_close(d);
    tnf_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = { CASE(every_number), CASE(slices_cast), CASE(every_scale),
                                        CASE(no_kernels) };
    return cmocka_run_group_tests(tests, rig_begin, NULL);
}
