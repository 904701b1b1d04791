/* SPDX-License-Identifier: MIT */
/* Rows of a column-major matrix, rows of several dimensions, and tensors that have no rows or whose
 * quantization is invalid. */
#include "../support/memory.h"
#include "../support/unit.h"
#include "core/core.h"
#include "emb_files.h"
#include "ext/emb/rows.h"

static tnf_error e;

struct world {
    struct memory_log log;
    tnf_allocator alloc;
    uint64_t memory;
    tnf_rows rows;
};

static tnf_status open_rows(struct world *w, const tnf_object *o, uint64_t memory)
{
    *w = (struct world) { .memory = memory };
    w->alloc = memory_allocator(&w->log);
    return tnf_rows_open(&w->rows, o, &tnf_kernels_portable, &w->alloc, &w->memory, &e);
}

static void close_rows(struct world *w)
{
    tnf_rows_free(&w->rows);
    assert_int_equal(w->log.blocks, 0);
    assert_int_equal(w->log.wrong_sizes, 0);
}

static tnf_object tensor_of(tnf_part *parts, uint16_t n, const char *layout, const uint64_t *shape,
                            uint32_t rank)
{
    return (tnf_object) { .name = TEXT("t"),
                          .layout = tnf_layout_by_id(layout),
                          .shape = shape,
                          .rank = rank,
                          .parts = parts,
                          .nparts = n };
}

/* | 1 2 3 |
 * | 4 5 6 |  by columns: 1 4 2 5 3 6 */
static void rows_of_columns(void **state)
{
    (void)state;
    static const float numbers[] = { 1, 4, 2, 5, 3, 6 };
    static const float expected[][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    static const uint64_t shape[] = { 2, 3 };
    tnf_part data = memory_part("data", TNF_F32, numbers, sizeof numbers);
    tnf_object o = tensor_of(&data, 1, "dense", shape, 2);
    o.order = TNF_ORDER_F;
    struct world w;
    assert_ok(open_rows(&w, &o, 24));
    assert_int_equal(w.memory, 0);
    for (uint64_t i = 0; i < 2; i++) {
        float row[3];
        assert_ok(tnf_rows_get(&w.rows, i, row, &e));
        assert_memory_equal(row, expected[i], sizeof row);
    }
    close_rows(&w);
    assert_fails(open_rows(&w, &o, 23), TNF_ELIMIT);
    close_rows(&w);
}

/* [2, 2, 3] is two rows of six; by columns element (i, j, k) is number i + 2 j + 4 k. */
static void many_dimensions(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 2, 2, 3 };
    static const float second[] = { 1, 5, 9, 3, 7, 11 };
    uint16_t halves[12];
    float numbers[12], row[6];
    for (unsigned i = 0; i < 12; i++)
        numbers[i] = (float)i;
    for (unsigned i = 0; i < 12; i++) { /* bf16 is the upper half of f32 */
        uint32_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        halves[i] = (uint16_t)(bits >> 16);
    }
    tnf_part parts[] = { memory_part("data", TNF_F32, numbers, sizeof numbers),
                         memory_part("data", TNF_BF16, halves, sizeof halves) };
    for (size_t i = 0; i < 2; i++) {
        struct world w;
        tnf_object o = tensor_of(&parts[i], 1, "dense", shape, 3);
        o.order = TNF_ORDER_F;
        assert_ok(open_rows(&w, &o, 1000));
        assert_int_equal(w.rows.n, 2);
        assert_int_equal(w.rows.d, 6);
        assert_ok(tnf_rows_get(&w.rows, 1, row, &e));
        assert_memory_equal(row, second, sizeof row);
        close_rows(&w);
    }
}

static void no_rows(void **state)
{
    (void)state;
    static const uint64_t wide[] = { 1, UINT64_MAX, 2 }, empty[] = { 2, 0 },
                          none[] = { 0, 1 << 25 };
    static const uint64_t one[] = { 1, 1 };
    static const uint8_t bytes[16];
    tnf_part data = memory_part("data", TNF_F32, bytes, 4);
    tnf_part complex = memory_part("data", TNF_F32, bytes, 8);
    complex.type = tnf_type_named("c64");
    const struct {
        tnf_object o;
        tnf_status status;
        const char *says;
    } all[] = {
        { tensor_of(&data, 1, "dense", NULL, 0), TNF_EUNSUPPORTED, "a single number" },
        { tensor_of(&data, 1, "dense", wide, 3), TNF_ELIMIT, "more than 2^64 elements" },
        { tensor_of(&data, 1, "dense", wide, 2), TNF_EUNSUPPORTED, "rows of 18446744073709551615" },
        { tensor_of(&data, 1, "dense", empty, 2), TNF_EUNSUPPORTED, "rows of 0 elements" },
        { tensor_of(&data, 1, "dense", none, 2), TNF_EUNSUPPORTED, "rows of 33554432 elements" },
        { tensor_of(&complex, 1, "dense", one, 2), TNF_EUNSUPPORTED, "are not numbers" },
        { tensor_of(&data, 1, "strings/1", one, 1), TNF_EUNSUPPORTED, "strings/1" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct world w;
        assert_int_equal(open_rows(&w, &all[i].o, 1000), all[i].status);
        assert_says(all[i].says);
        close_rows(&w);
    }
}

/* Two rows of four numbers: each has two codes, with three centroids for each. */
static void quantized_wrongly(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 2, 4 }, line[] = { 8 };
    static const uint8_t codes[4] = { 0, 1, 2, 0 };
    static const float floats[64];
    enum { CODES, BOOKS, PROJECTION, NORMS };
    static const struct {
        size_t part;
        const char *role; /* NULL: not changed */
        tnf_dtype type;
        uint64_t bytes;
        const char *says; /* NULL: valid */
    } all[] = {
        { CODES, NULL, TNF_U8, 4, NULL },
        { CODES, "other", TNF_U8, 4, "not a quantized matrix" },
        { CODES, NULL, TNF_I8, 4, "not a quantized matrix" },
        { CODES, NULL, TNF_U8, 5, "number of its codes does not fit" },
        { CODES, NULL, TNF_U8, 6, "number of its codes does not fit" }, /* three pieces of four */
        { CODES, NULL, TNF_U8, 0, "number of its codes does not fit" },
        { BOOKS, "other", TNF_F32, 48, "not a quantized matrix" },
        { BOOKS, NULL, TNF_F32, 0, "1 to 256 centroids" },
        { BOOKS, NULL, TNF_F32, 44, "1 to 256 centroids" },
        { BOOKS, NULL, TNF_F32, (uint64_t)257 * 16, "1 to 256 centroids" },
        { BOOKS, NULL, TNF_U32, 48, "the part codebooks of 't' has the type u32" },
        { PROJECTION, NULL, TNF_F32, 60, "not square" },
        { PROJECTION, NULL, TNF_U32, 64, "the part projection of 't' has the type u32" },
        { NORMS, NULL, TNF_F32, 12, "does not have one norm for each row" },
        { NORMS, NULL, TNF_U32, 8, "the part norms of 't' has the type u32" },
    };
    struct world w;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tnf_part parts[] = { memory_part("codes", TNF_U8, codes, 4),
                             memory_part("codebooks", TNF_F32, floats, 48),
                             memory_part("projection", TNF_F32, floats, 64),
                             memory_part("norms", TNF_F32, floats, 8) };
        tnf_part *p = &parts[all[i].part];
        p->role = all[i].role ? all[i].role : p->role;
        p->type = tnf_type_of(all[i].type);
        p->nbytes = p->stored = all[i].bytes;
        tnf_object o = tensor_of(parts, 4, "pq/1", shape, 2);
        if (!all[i].says) {
            assert_ok(open_rows(&w, &o, 1000));
        } else {
            assert_fails(open_rows(&w, &o, 1000), TNF_EFORMAT);
            assert_says(all[i].says);
        }
        close_rows(&w);
        o = tensor_of(parts, 4, "pq/1", line, 1);
        assert_fails(open_rows(&w, &o, 1000), TNF_EFORMAT);
        close_rows(&w);
    }
}

/* An encoded part cannot be mapped, so it is read. That is no failure, and the error is unchanged.
 */
static void errors_only_of_failures(void **state)
{
    static const float numbers[64] = { 1, 2, 3 };
    const tnf_option zstd = { "encoding", "zstd" };
    tnf_save_options how = TNF_SAVE_INIT;
    uint64_t shape[] = { 16, 4 };
    tnf_builder *b;
    (void)state;
    how.format = "ztensor2";
    how.options = &zstd;
    how.noptions = 1;
    for (int quantized = 0; quantized < 2; quantized++) {
        struct opened x = { 0 };
        struct made m = { .rows = 16,
                          .dims = 4,
                          .codes = (const uint8_t *)numbers,
                          .m = 2,
                          .k = 4,
                          .codebooks = numbers,
                          .row_norms = numbers };
        tnf_source *source;
        assert_ok(tnf_builder_new(&b, NULL, &e));
        if (quantized)
            add_quantized(b, &m, "embeddings");
        else
            assert_ok(tnf_builder_add(b, "embeddings", tnf_type_of(TNF_F32), 2, shape,
                                      to_little(numbers, 4, 64), &e));
        assert_ok(tnf_sink_memory(&x.sink, &e));
        assert_ok(tnf_save_sink(b, x.sink, &how, &e));
        tnf_builder_free(b);
        tnf_str bytes = tnf_sink_bytes(x.sink);
        assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
        assert_ok(tnf_open_source(&x.file, source, NULL, &e));
        tnf_error before, after;
        memset(&before, 0x5a, sizeof before);
        after = before;
        assert_int_equal(tnf_emb_open(&x.emb, x.file, NULL, &after), TNF_OK);
        assert_memory_equal(&before, &after, sizeof before);
        close_opened(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_columns),
        cmocka_unit_test(many_dimensions),
        cmocka_unit_test(no_rows),
        cmocka_unit_test(quantized_wrongly),
        cmocka_unit_test(errors_only_of_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
