/* SPDX-License-Identifier: MIT */
/* Virtual tensors of every kind: reading a row costs only the bytes that it is made of, and sixteen
 * threads that read at the same time get the same (the same test runs under ThreadSanitizer). */
#include "virtual_objects.h"

#include <tenfold/build.h>
#include <tenfold/io.h>

#include <pthread.h>

#define THREADS 16u
#define READS   20
#define ROWS    256u
#define WIDTH   1024u
#define MOST    5u /* sources of one tensor */

static uint64_t bytes_read;
static uint8_t *file_bytes;
static tnf_file *file;

static tnf_status count_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    (void)error;
    __atomic_add_fetch(&bytes_read, n, __ATOMIC_RELAXED);
    memcpy(dst, (const uint8_t *)ctx + offset, n);
    return TNF_OK;
}

/* ------------------------------------------------------------------ a file */

/* Random bytes in which no float is NaN or infinite: the upper bits of each 16 have few values. */
static uint8_t noise[ROWS * WIDTH * 2];

static tnf_part part_of_noise(const char *role, const char *type, size_t n)
{
    return (tnf_part) { .role = role,
                        .type = tnf_type_named(type),
                        .memory = noise,
                        .nbytes = n,
                        .stored = n,
                        .payload = TNF_MEMORY };
}

static void add_object(tnf_builder *b, const char *name, tnf_object o, const tnf_value *attrs)
{
    o.name = (tnf_str) { name, strlen(name) };
    o.attrs = attrs;
    assert_ok(tnf_builder_add_object(b, &o, NULL, &e));
}

static void add_quantized(tnf_builder *b)
{
    const tnf_value packing = ATTRS(TEXT("word", "u32"), TEXT("order", "lsb_first"),
                                    UINT("per_word", 8));
    const tnf_value zero = ATTRS(TEXT("form", "implied"), UINT("value", 8));
    const tnf_value groups = ATTRS(UINT("bits", 4), UINT("group_size", 64), UINT("axis", 1),
                                   TEXT("scale_form", "f32_factors"), INSIDE("packing", packing),
                                   INSIDE("zero_point", zero));
    tnf_part quant[] = { part_of_noise("data", "u32", ROWS * WIDTH / 2),
                         part_of_noise("scales", "f32", ROWS * (WIDTH / 64) * 4) };
    add_object(b, "quant", tensor_of("quant_group/1", SHAPE(ROWS, WIDTH), quant, 2), &groups);
    const tnf_value blocks = ATTRS(UINT("block_size", 32), TEXT("scale_form", "e8m0_exponent"));
    tnf_part mx[] = { part_of_noise("data", "f4_e2m1", ROWS * WIDTH / 2),
                      part_of_noise("scales", "f8_e8m0", ROWS * (WIDTH / 32)) };
    add_object(b, "mx", tensor_of("mx/1", SHAPE(ROWS, WIDTH), mx, 2), &blocks);
    tnf_part pq[] = { part_of_noise("codes", "u8", ROWS * 8),
                      part_of_noise("codebooks", "f32", 8 * 256 * 8 * 4),
                      part_of_noise("norms", "f32", ROWS * 4) };
    add_object(b, "pq", tensor_of("pq/1", SHAPE(ROWS, 64), pq, 3), NULL);
    const tnf_value q8_0 = ATTRS(UINT("elems_per_block", 32), UINT("block_bytes", 34));
    tnf_part q[] = { part_of_noise("data", "u8", ROWS * (WIDTH / 32) * 34) };
    add_object(b, "blocks", tensor_of("gguf.q8_0/1", SHAPE(ROWS, WIDTH), q, 1), &q8_0);
}

static int open_file(void **state)
{
    (void)state;
    tnf_builder *b;
    tnf_sink *sink;
    tnf_source *source;
    tnf_save_options how = TNF_SAVE_INIT;
    tnf_part parts[1];
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof noise; i++) {
        random = random * 1664525u + 1013904223u;
        noise[i] = (uint8_t)(random >> 24) & 0x3b;
    }
    how.format = "ztensor2";
    assert_ok(tnf_builder_new(&b, NULL, &e));
    static const char *const names[] = { "dense", "more" };
    for (size_t i = 0; i < 2; i++)
        add_object(
            b, names[i],
            dense_object(parts, "f16", noise, ROWS * WIDTH * 2, SHAPE(ROWS, WIDTH), TNF_ORDER_C),
            NULL);
    add_object(
        b, "fp8",
        dense_object(parts, "f8_e4m3fn", noise, ROWS * WIDTH, SHAPE(ROWS, WIDTH), TNF_ORDER_C),
        NULL);
    add_object(b, "scales", dense_object(parts, "f32", noise, 64, SHAPE(2, 8), TNF_ORDER_C), NULL);
    add_quantized(b);
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &how, &e));
    size_t n = tnf_sink_bytes(sink).n;
    file_bytes = malloc(n);
    memcpy(file_bytes, tnf_sink_bytes(sink).p, n);
    tnf_sink_close(sink);
    tnf_builder_free(b);
    tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = count_read };
    assert_ok(tnf_source_custom(&source, &ops, file_bytes, n, &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    return 0;
}

static int close_file(void **state)
{
    (void)state;
    tnf_close(file);
    free(file_bytes);
    return 0;
}

/* ----------------------------------------------------------------- the check */

static const tnf_object *shared;
static uint8_t *whole;

static void *read_shared(void *ctx)
{
    uint32_t random = *(const uint32_t *)ctx;
    size_t n = (size_t)shared->parts->nbytes;
    uint8_t *got = malloc(n);
    tnf_error error;
    bool bad = !got;
    for (int i = 0; i < READS && !bad; i++) {
        random = random * 1664525u + 1013904223u;
        size_t from = random % n, length = (random >> 4) % 9000 % (n - from) + 1;
        bad = tnf_read_part(got, length, shared->parts, from, &error) != TNF_OK ||
              memcmp(got, whole + from, length) != 0;
    }
    free(got);
    return bad ? ctx : NULL;
}

static void read_by_threads(void)
{
    pthread_t threads[THREADS];
    uint32_t seeds[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        seeds[i] = i * 77 + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, read_shared, &seeds[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        void *said;
        pthread_join(threads[i], &said);
        assert_null(said);
    }
}

/* Reading one of its rows (or columns, if it is column-major) costs at most `most` bytes of the
 * file. */
static void check_row_cost(const char *const *names, const tnf_virtual_how *how, uint64_t most)
{
    const tnf_object *sources[MOST];
    size_t n = 0;
    tnf_virtual *v;
    for (; names[n]; n++)
        assert_non_null(sources[n] = tnf_find(file, names[n]));
    assert_ok(tnf_virtual_new(&v, sources, n, how, &e));
    shared = tnf_virtual_object(v);
    size_t size = (size_t)shared->parts->nbytes;
    whole = malloc(size);
    assert_ok(tnf_read(whole, size, shared, &e));
    uint64_t lines = shared->shape[shared->order == TNF_ORDER_F ? 1 : 0];
    size_t line = size / (size_t)lines;
    uint8_t *got = malloc(line);
    for (uint64_t i = 5; i < lines; i += lines / 3) {
        bytes_read = 0;
        assert_ok(tnf_read_part(got, line, shared->parts, i * line, &e));
        assert_memory_equal(got, whole + i * line, line);
        if (bytes_read == 0 || bytes_read > most)
            fail_msg("%s, kind %d: line %u cost %u bytes, not %u", names[0], (int)how->kind,
                     (unsigned)i, (unsigned)bytes_read, (unsigned)most);
    }
    read_by_threads();
    free(got);
    free(whole);
    tnf_virtual_free(v);
}

#define NAMES(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void rows_of_casts(void **state)
{
    (void)state;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_CAST;
    how.type = tnf_type_of(TNF_F32);
    check_row_cost(NAMES("dense"), &how, 2 * WIDTH);
}

static void rows_of_values(void **state)
{
    (void)state;
    const tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    check_row_cost(NAMES("quant"), &how, WIDTH / 2 + WIDTH / 64 * 4);
    check_row_cost(NAMES("mx"), &how, WIDTH / 2 + WIDTH / 32);
    check_row_cost(NAMES("pq"), &how, 8 + 4);
    check_row_cost(NAMES("blocks"), &how, WIDTH / 32 * 34);
}

static void rows_of_scaled(void **state)
{
    (void)state;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_SCALED;
    check_row_cost(NAMES("fp8", "scales"), &how,
                   WIDTH); /* the scales are read once, when the tensor is made */
}

static void made_blocks(void **state)
{
    (void)state;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_BLOCKS;
    how.layout = tnf_find(file, "blocks")->layout;
    check_row_cost(NAMES("dense"), &how, 2 * WIDTH);
}

static void rows_of_slices(void **state)
{
    (void)state;
    const tnf_slice some[] = { { 1, 2, 100, false }, { 3, 1, 64, false } };
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_SLICE;
    how.slices = some;
    check_row_cost(NAMES("dense"), &how, 2 * 64);
}

static void rows_of_swapped(void **state)
{
    (void)state;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_SWAP;
    check_row_cost(NAMES("dense"), &how, 2 * WIDTH);
}

/* A column has a number of every row. A unit of up to 16 MiB is transposed at once, here the
 * complete tensor. */
static void columns_of_turned(void **state)
{
    (void)state;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_ORDER;
    how.order = TNF_ORDER_F;
    check_row_cost(NAMES("dense"), &how, 2 * ROWS * WIDTH);
}

static void rows_of_joined(void **state)
{
    (void)state;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_JOIN;
    check_row_cost(NAMES("dense", "more", "dense"), &how, 2 * WIDTH);
}

static void rows_of_grids(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 2 * ROWS, 2 * WIDTH };
    static const uint64_t starts[] = { 0, 0, 0, WIDTH, ROWS, 0, ROWS, WIDTH };
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_GRID;
    how.rank = 2;
    how.shape = shape;
    how.starts = starts;
    check_row_cost(NAMES("dense", "more", "more", "dense"), &how, 2 * 2 * WIDTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_casts),     cmocka_unit_test(rows_of_values),
        cmocka_unit_test(rows_of_scaled),    cmocka_unit_test(made_blocks),
        cmocka_unit_test(rows_of_slices),    cmocka_unit_test(rows_of_swapped),
        cmocka_unit_test(columns_of_turned), cmocka_unit_test(rows_of_joined),
        cmocka_unit_test(rows_of_grids),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
