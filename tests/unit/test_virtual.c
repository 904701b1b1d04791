/* SPDX-License-Identifier: MIT */
/* Virtual tensors, compared with plain loops over the same numbers. */
#include "virtual_objects.h"

#include <tenfold/build.h>
#include <tenfold/io.h>

#include <math.h>
#include <pthread.h>

/* ------------------------------------------------------------------ casts */

static void casts_round_once(void **state)
{
    (void)state;
    /* As a double, the first number is exactly between two floats; as an integer it is not. */
    static const uint64_t wide[] = { 0x40000040000001, 0x40000040000000, 16777217, 1,
                                     0xffffffffffffffff };
    static const float nearest[] = { 18014400656965632.0F, 18014398509481984.0F, 16777216.0F, 1.0F,
                                     18446744073709551616.0F };
    static const int64_t with_sign[] = { -0x40000040000001, INT64_MIN, -3 };
    static const float below[] = { -18014400656965632.0F, -9223372036854775808.0F, -3.0F };
    uint8_t bytes[40];
    tnf_part part;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_CAST;
    how.type = tnf_type_of(TNF_F32);
    for (size_t i = 0; i < 5; i++)
        tnf_put_le64(bytes + 8 * i, wide[i]);
    tnf_object o = dense_object(&part, "u64", bytes, 40, SHAPE(5), TNF_ORDER_C);
    tnf_virtual *v = make_virtual(&o, &how);
    floats_are(tnf_virtual_object(v), nearest, 5);
    tnf_virtual_free(v);
    for (size_t i = 0; i < 3; i++)
        tnf_put_le64(bytes + 8 * i, (uint64_t)with_sign[i]);
    o = dense_object(&part, "i64", bytes, 24, SHAPE(3), TNF_ORDER_C);
    v = make_virtual(&o, &how);
    floats_are(tnf_virtual_object(v), below, 3);
    tnf_virtual_free(v);
}

static void small_integers_are_numbers(void **state)
{
    (void)state;
    static const uint8_t nibbles[] = { 0x80, 0x7f, 0x0e };
    static const float as_i4[] = { 0, -8, -1, 7, -2 }, as_u4[] = { 0, 8, 15, 7, 14 };
    static const uint8_t pairs[] = { 0xe4, 0x02 };
    static const float as_i2[] = { 0, 1, -2, -1, -2 }, as_u2[] = { 0, 1, 2, 3, 2 };
    static const struct {
        const char *type;
        const uint8_t *bytes;
        size_t n;
        const float *values;
    } cases[] = { { "i4", nibbles, 3, as_i4 },
                  { "u4", nibbles, 3, as_u4 },
                  { "i2", pairs, 2, as_i2 },
                  { "u2", pairs, 2, as_u2 } };
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_CAST;
    how.type = tnf_type_of(TNF_F32);
    for (size_t i = 0; i < COUNT(cases); i++) {
        tnf_part part;
        tnf_object o = dense_object(&part, cases[i].type, cases[i].bytes, cases[i].n, SHAPE(5),
                                    TNF_ORDER_C);
        tnf_virtual *v = make_virtual(&o, &how);
        floats_are(tnf_virtual_object(v), cases[i].values, 5);
        tnf_virtual_free(v);
    }
}

/* Casts without a kernel go through doubles: all floats of four bits, and a target that needs
 * rounding. */
static void small_floats_are_numbers(void **state)
{
    (void)state;
    static const uint8_t codes[] = { 0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe };
    static const float numbers[] = { 0,     0.5F,  1,  1.5F,  2,  3,  4,  6,
                                     -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6 };
    uint8_t out[8];
    tnf_part part;
    tnf_object o = dense_object(&part, "f4_e2m1", codes, sizeof codes, SHAPE(16), TNF_ORDER_C);
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_CAST;
    how.type = tnf_type_of(TNF_F32);
    tnf_virtual *v = make_virtual(&o, &how);
    floats_are(tnf_virtual_object(v), numbers, 16);
    tnf_virtual_free(v);
    how.type = tnf_type_of(TNF_F64);
    v = make_virtual(&o, &how);
    assert_ok(tnf_read_part(out, 8, tnf_virtual_object(v)->parts, 8 * 15, &e));
    assert_int_equal(tnf_le64(out), 0xc018000000000000); /* -6 */
    tnf_virtual_free(v);
    how.type = tnf_type_of(TNF_BF16);
    v = make_virtual(&o, &how);
    assert_ok(tnf_read_part(out, 2, tnf_virtual_object(v)->parts, 2 * 3, &e));
    assert_int_equal(tnf_le16(out), 0x3fc0); /* 1.5 */
    tnf_virtual_free(v);
}

static void casts_refuse(void **state)
{
    (void)state;
    tnf_part part;
    uint8_t bytes[16] = { 0 };
    tnf_object o = dense_object(&part, "c64", bytes, 16, SHAPE(2), TNF_ORDER_C);
    const tnf_object *source = &o;
    tnf_virtual *v;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_CAST;
    how.type = tnf_type_of(TNF_F32);
    assert_fails(tnf_virtual_new(&v, &source, 1, &how, &e), TNF_EUNSUPPORTED);
    assert_null(v);
    how.type = tnf_type_of(TNF_I32);
    assert_fails(tnf_virtual_new(&v, &source, 1, &how, &e), TNF_EINVAL);
    assert_fails(tnf_virtual_new(&v, &source, 0, &how, &e), TNF_EINVAL);
    source = NULL;
    assert_fails(tnf_virtual_new(&v, &source, 1, &how, &e), TNF_EINVAL);
}

/* ----------------------------------------------------------------- slices */

/* Element i of a packed tensor of at most 8 bits. */
static unsigned packed_at(const uint8_t *p, uint64_t i, unsigned bits)
{
    unsigned value = 0;
    for (unsigned k = 0; k < bits; k++)
        value |= (unsigned)(p[(i * bits + k) / 8] >> (i * bits + k) % 8 & 1) << k;
    return value;
}

static void put_packed(uint8_t *p, uint64_t i, unsigned bits, unsigned value)
{
    for (unsigned k = 0; k < bits; k++)
        p[(i * bits + k) / 8] |= (uint8_t)((value >> k & 1) << (i * bits + k) % 8);
}

/* The place of an index. */
static uint64_t place_of(const tnf_object *o, const uint64_t *index)
{
    uint64_t at = 0, stride = 1;
    for (uint32_t i = o->rank; i-- > 0;) {
        uint32_t d = o->order == TNF_ORDER_F ? o->rank - 1 - i : i;
        at += index[d] * stride;
        stride *= o->shape[d];
    }
    return at;
}

static bool next_index(uint64_t *index, const uint64_t *shape, uint32_t rank)
{
    for (uint32_t d = rank; d-- > 0;) {
        if (++index[d] < shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static void slice_one(const char *type, const tnf_slice *slices, tnf_order order)
{
    static const uint64_t shape[3] = { 5, 7, 6 };
    static uint8_t bytes[4096];
    const tnf_type *t = tnf_type_named(type);
    uint8_t expected[4096] = { 0 };
    uint64_t index[3] = { 0 }, counts[3], n = 0;
    tnf_part part;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + i / 256);
    tnf_object o = dense_object(&part, type, bytes, (210 * t->bits + 7) / 8, shape, 3, order);
    for (int d = 0; d < 3; d++)
        counts[d] = slices[d].count;
    bool empty = counts[0] == 0 || counts[1] == 0 || counts[2] == 0;
    do {
        uint64_t from[3];
        for (int d = 0; d < 3; d++)
            from[d] = (uint64_t)(slices[d].start + (int64_t)index[d] * slices[d].step);
        for (unsigned b = 0; !empty && b < t->bits; b += 8) /* one byte or less at a time */
            put_packed(expected, t->bits < 8 ? n : n * (t->bits / 8) + b / 8,
                       t->bits < 8 ? t->bits : 8,
                       packed_at(bytes,
                                 t->bits < 8 ? place_of(&o, from)
                                             : place_of(&o, from) * (t->bits / 8) + b / 8,
                                 t->bits < 8 ? t->bits : 8));
        n++;
    } while (!empty && next_index(index, counts, 3));
    n = empty ? 0 : n;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_SLICE;
    how.slices = slices;
    tnf_virtual *v = make_virtual(&o, &how);
    const tnf_object *got = tnf_virtual_object(v);
    uint32_t rank = 0;
    for (int d = 0; d < 3; d++)
        if (!slices[d].drop)
            assert_int_equal(got->shape[rank++], slices[d].count);
    assert_int_equal(got->rank, rank);
    assert_int_equal(got->order, TNF_ORDER_C);
    assert_holds(got, expected, (size_t)((n * t->bits + 7) / 8));
    tnf_virtual_free(v);
}

static void slices_are_slices(void **state)
{
    (void)state;
    static const tnf_slice cases[][3] = {
        { { 0, 1, 5, false }, { 0, 1, 7, false }, { 0, 1, 6, false } },
        { { 1, 1, 3, false }, { 0, 1, 7, false }, { 0, 1, 6, false } },
        { { 2, 1, 1, true }, { 1, 2, 3, false }, { 0, 1, 6, false } },
        { { 4, -2, 3, false }, { 6, -1, 7, false }, { 5, -3, 2, false } },
        { { 4, 1, 1, true }, { 3, 1, 1, true }, { 2, 1, 1, true } },
        { { 0, 2, 3, false }, { 5, 1, 1, true }, { 1, 1, 4, false } },
        { { 0, 1, 5, false }, { 0, 1, 0, false }, { 0, 1, 6, false } },
    };
    static const char *const types[] = { "f32", "u8", "c128", "f4_e2m1", "f6_e2m3", "i2", "bit" };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t t = 0; t < COUNT(types); t++) {
            slice_one(types[t], cases[i], TNF_ORDER_C);
            if (tnf_type_named(types[t])->bits >= 8)
                slice_one(types[t], cases[i], TNF_ORDER_F);
        }
}

static void orders_turn(void **state)
{
    (void)state;
    uint16_t rows[6] = { 1, 2, 3, 4, 5, 6 }, columns[6] = { 1, 4, 2, 5, 3, 6 };
    tnf_part part;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_ORDER;
    how.order = TNF_ORDER_F;
    tnf_object o = dense_object(&part, "u16", rows, sizeof rows, SHAPE(2, 3), TNF_ORDER_C);
    tnf_virtual *v = make_virtual(&o, &how);
    assert_int_equal(tnf_virtual_object(v)->order, TNF_ORDER_F);
    assert_int_equal(tnf_virtual_object(v)->shape[1], 3);
    assert_holds(tnf_virtual_object(v), columns, sizeof columns);
    tnf_virtual_free(v);
    how.order = TNF_ORDER_C;
    o = dense_object(&part, "u16", columns, sizeof columns, SHAPE(2, 3), TNF_ORDER_F);
    v = make_virtual(&o, &how);
    assert_holds(tnf_virtual_object(v), rows, sizeof rows);
    tnf_virtual_free(v);
}

static void bytes_are_swapped(void **state)
{
    (void)state;
    static const uint8_t bytes[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    static const uint8_t u32s[16] = { 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12 };
    tnf_part part;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_SWAP;
    tnf_object o = dense_object(&part, "u32", bytes, 16, SHAPE(4), TNF_ORDER_C);
    tnf_virtual *v = make_virtual(&o, &how);
    assert_holds(tnf_virtual_object(v), u32s, 16);
    tnf_virtual_free(v);
    o = dense_object(&part, "c64", bytes, 16, SHAPE(2), TNF_ORDER_C); /* in two halves */
    v = make_virtual(&o, &how);
    assert_holds(tnf_virtual_object(v), u32s, 16);
    tnf_virtual_free(v);
}

/* ----------------------------------------------------------------- pieces */

/* A tensor of [4,6,5] bytes is cut at some places, and joined again. */
static void put_together(const uint64_t *const cuts[3], const size_t ncuts[3])
{
    static const uint64_t whole[3] = { 4, 6, 5 };
    uint8_t bytes[120], pieces[120];
    tnf_part parts[120];
    tnf_object objects[120];
    const tnf_object *sources[120];
    uint64_t starts[360], shapes[360];
    size_t n = 0, at = 0;
    for (size_t i = 0; i < 120; i++)
        bytes[i] = (uint8_t)(i * 7 + 1);
    for (size_t a = 0; a + 1 < ncuts[0]; a++)
        for (size_t b = 0; b + 1 < ncuts[1]; b++)
            for (size_t c = 0; c + 1 < ncuts[2]; c++, n++) {
                const size_t corner[3] = { a, b, c };
                uint64_t *shape = shapes + 3 * n, *start = starts + 3 * n, index[3] = { 0 };
                for (int d = 0; d < 3; d++) {
                    start[d] = cuts[d][corner[d]];
                    shape[d] = cuts[d][corner[d] + 1] - start[d];
                }
                size_t first = at;
                do
                    pieces[at++] = bytes[((start[0] + index[0]) * 6 + start[1] + index[1]) * 5 +
                                         start[2] + index[2]];
                while (next_index(index, shape, 3));
                objects[n] = dense_object(&parts[n], "u8", pieces + first, at - first, shape, 3,
                                          TNF_ORDER_C);
                sources[n] = &objects[n];
            }
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_GRID;
    how.rank = 3;
    how.shape = whole;
    how.starts = starts;
    tnf_virtual *v;
    assert_ok(tnf_virtual_new(&v, sources, n, &how, &e));
    assert_holds(tnf_virtual_object(v), bytes, 120);
    tnf_virtual_free(v);
    if (n == 1)
        return;
    /* without the last piece: refused, or filled */
    assert_fails(tnf_virtual_new(&v, sources, n - 1, &how, &e), TNF_EINVAL);
    static const uint8_t nine = 9;
    how.fill = &nine;
    assert_ok(tnf_virtual_new(&v, sources, n - 1, &how, &e));
    uint64_t index[3] = { 0 }, *shape = shapes + 3 * (n - 1), *start = starts + 3 * (n - 1);
    do
        bytes[((start[0] + index[0]) * 6 + start[1] + index[1]) * 5 + start[2] + index[2]] = 9;
    while (next_index(index, shape, 3));
    assert_holds(tnf_virtual_object(v), bytes, 120);
    tnf_virtual_free(v);
}

static void pieces_come_together(void **state)
{
    (void)state;
    static const uint64_t one4[] = { 0, 4 }, one6[] = { 0, 6 }, one5[] = { 0, 5 };
    static const uint64_t two4[] = { 0, 2, 4 }, odd4[] = { 0, 1, 4 }, four4[] = { 0, 1, 2, 3, 4 };
    static const uint64_t four6[] = { 0, 4, 6 }, three6[] = { 0, 1, 3, 6 }, three5[] = { 0, 3, 5 };
    static const uint64_t five5[] = { 0, 1, 2, 3, 4, 5 };
    static const struct {
        const uint64_t *cuts[3];
        size_t n[3];
    } cases[] = {
        { { one4, one6, one5 }, { 2, 2, 2 } },     { { two4, one6, one5 }, { 3, 2, 2 } },
        { { odd4, one6, one5 }, { 3, 2, 2 } },     { { two4, four6, three5 }, { 3, 3, 3 } },
        { { odd4, three6, three5 }, { 3, 4, 3 } }, { { four4, one6, five5 }, { 5, 2, 6 } },
        { { one4, four6, five5 }, { 2, 3, 6 } },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        put_together(cases[i].cuts, cases[i].n);
}

static void rows_are_joined(void **state)
{
    (void)state;
    static const uint8_t a[] = { 1, 2, 3, 4, 5, 6 }, b[] = { 7, 8, 9 }, c[] = { 10, 11 };
    static const uint8_t below[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    static const uint8_t beside[] = { 1, 2, 3, 10, 4, 5, 6, 11 };
    tnf_part parts[3];
    tnf_object objects[3] = {
        dense_object(&parts[0], "u8", a, 6, SHAPE(2, 3), TNF_ORDER_C),
        dense_object(&parts[1], "u8", b, 3, SHAPE(1, 3), TNF_ORDER_C),
        dense_object(&parts[2], "u8", c, 2, SHAPE(2, 1), TNF_ORDER_C),
    };
    const tnf_object *sources[] = { &objects[0], &objects[1] };
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    tnf_virtual *v;
    how.kind = TNF_VIRTUAL_JOIN;
    how.name = "all";
    assert_ok(tnf_virtual_new(&v, sources, 2, &how, &e));
    assert_string_equal(tnf_virtual_object(v)->name.p, "all");
    assert_int_equal(tnf_virtual_object(v)->shape[0], 3);
    assert_holds(tnf_virtual_object(v), below, 9);
    tnf_virtual_free(v);
    sources[1] = &objects[2];
    assert_fails(tnf_virtual_new(&v, sources, 2, &how, &e), TNF_EINVAL);
    how.axis = 1;
    assert_ok(tnf_virtual_new(&v, sources, 2, &how, &e));
    assert_holds(tnf_virtual_object(v), beside, 8);
    tnf_virtual_free(v);
    how.axis = 2;
    assert_fails(tnf_virtual_new(&v, sources, 2, &how, &e), TNF_EINVAL);
}

/* -------------------------------------------- how much is read, and how often */

static uint64_t bytes_read;

static tnf_status count_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    (void)error;
    __atomic_add_fetch(&bytes_read, n, __ATOMIC_RELAXED);
    memcpy(dst, (const uint8_t *)ctx + offset, n);
    return TNF_OK;
}

/* A file in memory, with a source that counts the bytes that are read. */
struct counted {
    uint8_t *bytes;
    tnf_file *file;
};

#define ROWS 1024u

static struct counted open_counted(void)
{
    struct counted c = { 0 };
    tnf_builder *b;
    tnf_sink *sink;
    size_t n = 0;
    static uint8_t f16[ROWS * ROWS * 2];
    for (size_t i = 0; i < ROWS * ROWS; i++)
        tnf_put_le16(f16 + 2 * i, (uint16_t)(i % 1024)); /* subnormals: i % 1024 of 2^-24 */
    tnf_save_options how = TNF_SAVE_INIT;
    how.format = "safetensors";
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "w", tnf_type_named("f16"), 2, (const uint64_t[]) { ROWS, ROWS },
                              f16, &e));
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &how, &e));
    n = tnf_sink_bytes(sink).n;
    c.bytes = malloc(n);
    memcpy(c.bytes, tnf_sink_bytes(sink).p, n);
    tnf_sink_close(sink);
    tnf_builder_free(b);
    tnf_source *source;
    tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = count_read };
    assert_ok(tnf_source_custom(&source, &ops, c.bytes, n, &e));
    assert_ok(tnf_open_source(&c.file, source, NULL, &e));
    return c;
}

/* Four levels: f16 to f32, its columns 3 to 66, in column-major order, as bf16. */
static const tnf_object *nest_four(tnf_virtual *v[4], const tnf_object *o)
{
    const tnf_slice slices[] = { { 0, 1, ROWS, false }, { 3, 1, 64, false } };
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_CAST;
    how.type = tnf_type_of(TNF_F32);
    v[0] = make_virtual(o, &how);
    how.kind = TNF_VIRTUAL_SLICE;
    how.slices = slices;
    v[1] = make_virtual(tnf_virtual_object(v[0]), &how);
    how.kind = TNF_VIRTUAL_ORDER;
    how.order = TNF_ORDER_F;
    v[2] = make_virtual(tnf_virtual_object(v[1]), &how);
    how.kind = TNF_VIRTUAL_CAST;
    how.type = tnf_type_of(TNF_F64);
    v[3] = make_virtual(tnf_virtual_object(v[2]), &how);
    return tnf_virtual_object(v[3]);
}

static double double_at(const uint8_t *p, size_t i)
{
    uint64_t bits = tnf_le64(p + 8 * i);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static void little_is_read(void **state)
{
    (void)state;
    struct counted c = open_counted();
    const tnf_object *o = tnf_find(c.file, "w");
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_CAST;
    how.type = tnf_type_of(TNF_F32);
    bytes_read = 0;
    tnf_virtual *v = make_virtual(o, &how);
    assert_int_equal(bytes_read, 0);
    assert_false(tnf_virtual_sequential(v));
    uint8_t row[4 * ROWS];
    const tnf_slice one[] = { { 5, 1, 1, true }, { 0, 1, ROWS, false } };
    assert_ok(tnf_read_slice(row, sizeof row, tnf_virtual_object(v), one, &e));
    assert_int_equal(bytes_read, 2 * ROWS); /* the stored bytes of that row */
    for (size_t i = 0; i < ROWS; i++)
        assert_true(float_at(row, i) == ldexpf((float)i, -24));
    const void *view;
    assert_fails(tnf_map(&view, tnf_virtual_object(v)->parts, &e), TNF_EUNSUPPORTED);
    assert_says("the values are computed");
    tnf_virtual_free(v);
    /* contiguous rows are one range of the file */
    const tnf_slice rows[] = { { 8, 1, 2, false }, { 0, 1, ROWS, false } };
    how.kind = TNF_VIRTUAL_SLICE;
    how.slices = rows;
    v = make_virtual(o, &how);
    assert_int_equal(tnf_virtual_object(v)->parts->payload, TNF_AT);
    assert_int_equal(tnf_virtual_object(v)->parts->offset, o->parts->offset + 8 * 2 * ROWS);
    tnf_virtual_free(v);
    tnf_close(c.file);
    free(c.bytes);
}

static const tnf_object *shared;
static uint8_t *whole;

static void *read_shared(void *ctx)
{
    uint32_t random = *(const uint32_t *)ctx;
    uint8_t *got = malloc(shared->parts->nbytes);
    tnf_error error;
    for (int i = 0; i < 30; i++) {
        random = random * 1664525u + 1013904223u;
        uint64_t from = random % shared->parts->nbytes;
        size_t n = (size_t)((random >> 4) % 5000 % (shared->parts->nbytes - from) + 1);
        if (tnf_read_part(got, n, shared->parts, from, &error) != TNF_OK ||
            memcmp(got, whole + from, n) != 0) {
            free(got);
            return ctx; /* any pointer except NULL */
        }
    }
    free(got);
    return NULL;
}

static void many_threads_read(void **state)
{
    (void)state;
    struct counted c = open_counted();
    tnf_virtual *v[4];
    pthread_t threads[16];
    uint32_t seeds[16];
    shared = nest_four(v, tnf_find(c.file, "w"));
    assert_int_equal(shared->parts->nbytes, 64 * ROWS * 8);
    assert_int_equal(shared->order, TNF_ORDER_F);
    whole = malloc(shared->parts->nbytes);
    assert_ok(tnf_read(whole, shared->parts->nbytes, shared, &e));
    for (size_t column = 0; column < 64; column++)
        for (size_t row = 0; row < ROWS; row++)
            assert_true(double_at(whole, column * ROWS + row) ==
                        ldexp((double)((row * ROWS + column + 3) % 1024), -24));
    for (uint32_t i = 0; i < 16; i++) {
        seeds[i] = i * 77 + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, read_shared, &seeds[i]), 0);
    }
    for (uint32_t i = 0; i < 16; i++) {
        void *said;
        pthread_join(threads[i], &said);
        assert_null(said);
    }
    free(whole);
    for (int i = 4; i-- > 0;)
        tnf_virtual_free(v[i]);
    tnf_close(c.file);
    free(c.bytes);
}

/* A virtual tensor is saved like any other, and the plan says that it is computed. */
static char told[200];

static void on_plan(void *ctx, const tnf_plan_item *item)
{
    (void)ctx;
    if (item->fate != TNF_NATIVE)
        snprintf(told, sizeof told, "%d %s %s", item->fate, item->name.p, item->reason);
}

static void saved_like_others(void **state)
{
    (void)state;
    struct counted c = open_counted();
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_CAST;
    how.type = tnf_type_of(TNF_F32);
    how.name = "wide";
    tnf_virtual *v = make_virtual(tnf_find(c.file, "w"), &how);
    tnf_builder *b;
    tnf_sink *sink;
    tnf_save_options save = TNF_SAVE_INIT;
    save.format = "safetensors";
    save.plan = on_plan;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_object(b, tnf_virtual_object(v), NULL, &e));
    assert_ok(tnf_sink_memory(&sink, &e));
    assert_ok(tnf_save_sink(b, sink, &save, &e));
    assert_string_equal(told, "2 wide rounded to the requested type");
    tnf_str bytes = tnf_sink_bytes(sink);
    const uint8_t *data = (const uint8_t *)bytes.p + bytes.n - 4 * ROWS * ROWS;
    for (size_t i = 0; i < ROWS * ROWS; i += 501)
        assert_true(float_at(data, i) == ldexpf((float)(i % 1024), -24));
    tnf_sink_close(sink);
    tnf_builder_free(b);
    tnf_virtual_free(v);
    tnf_close(c.file);
    free(c.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(casts_round_once),         cmocka_unit_test(small_integers_are_numbers),
        cmocka_unit_test(small_floats_are_numbers), cmocka_unit_test(casts_refuse),
        cmocka_unit_test(slices_are_slices),        cmocka_unit_test(orders_turn),
        cmocka_unit_test(bytes_are_swapped),        cmocka_unit_test(pieces_come_together),
        cmocka_unit_test(rows_are_joined),          cmocka_unit_test(little_is_read),
        cmocka_unit_test(many_threads_read),        cmocka_unit_test(saved_like_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
