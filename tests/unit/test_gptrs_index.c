/* SPDX-License-Identifier: MIT */
/* Descriptions of tensors as gpt.rs stores them, in bytes made by hand. */
#include "../support/arena.h"
#include "gptrs_files.h"

#include "base/error.h"
#include "formats/gptrs/index.h"

static tnf_gptrs_index index_reader(bool ids)
{
    return (tnf_gptrs_index) { .ids = ids, .scratch = &arena, .max_rank = 64, .max_name = 65536 };
}

/* The two tensors "w" f32 [2,3] and "été" i32 [], with the offsets 1000 and 2000. */
static bytes sample_index(bool wide, bool ids)
{
    bytes b = { 0 };
    size_t n = wide ? 8 : 4;
    add_number(&b, 2, n);
    add_number(&b, 1, n);
    add_text(&b, "w");
    if (ids)
        add_text(&b, "0123456789abcdef");
    add_number(&b, 2, n);
    add_number(&b, 2, 8);
    add_number(&b, 3, 8);
    add_number(&b, 0, 4);
    add_number(&b, 1, 1);
    add_number(&b, 1000, 8);
    add_number(&b, 24, 8);
    add_number(&b, 5, n);
    add_text(&b, "\xc3\xa9t\xc3\xa9");
    if (ids)
        add_bytes(&b, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    add_number(&b, 0, n);
    add_number(&b, 3, 4);
    add_number(&b, 0, 1);
    add_number(&b, 2000, 8);
    add_number(&b, 4, 8);
    return b;
}

static void check_sample(bool wide, bool ids)
{
    bytes b = sample_index(wide, ids);
    tnf_gptrs_index x = index_reader(ids);
    tnf_gptrs_entry t;
    tnf_error e;
    size_t n = wide ? 8 : 4;
    assert_int_equal(tnf_gptrs_index_begin(&x, tnf_cur_over(b.p, b.n, 100), &e), TNF_OK);
    assert_int_equal(x.bincode, wide);
    assert_int_equal(x.count, 2);
    assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_OK);
    assert_int_equal(t.name.n, 1);
    assert_memory_equal(t.name.p, "w", 1);
    assert_ptr_equal(t.type, tnf_type_of(TNF_F32));
    assert_int_equal(t.rank, 2);
    assert_int_equal(t.shape[0], 2);
    assert_int_equal(t.shape[1], 3);
    assert_int_equal(t.requires_grad, 1);
    assert_int_equal(t.offset, 1000);
    assert_int_equal(t.length, 24);
    assert_int_equal(t.at, 100 + n);
    assert_int_equal(t.name_at, 100 + 2 * n);
    assert_int_equal(t.rank_at, 100 + 2 * n + 1 + (ids ? 16 : 0));
    assert_int_equal(t.tag_at, t.rank_at + n + 16);
    assert_int_equal(t.grad_at, t.tag_at + 4);
    if (ids)
        assert_memory_equal(t.id, "0123456789abcdef", 16);
    else
        assert_null(t.id);
    assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_OK);
    assert_memory_equal(t.name.p, "\xc3\xa9t\xc3\xa9", 5);
    assert_ptr_equal(t.type, tnf_type_of(TNF_I32));
    assert_int_equal(t.rank, 0);
    assert_int_equal(t.offset, 2000);
    assert_int_equal(tnf_left(&x.cur), 0);
    free(b.p);
}

static void test_both_syntaxes(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        check_sample(i & 1, i & 2);
}

/* Neither syntax uses all bytes: the index is read as plain, and the number of bytes left is
 * known. */
static void test_trailing(void **state)
{
    (void)state;
    bytes b = sample_index(false, false);
    add_text(&b, "abc");
    tnf_gptrs_index x = index_reader(false);
    tnf_gptrs_entry t;
    tnf_error e;
    assert_int_equal(tnf_gptrs_index_begin(&x, tnf_cur_over(b.p, b.n, 0), &e), TNF_OK);
    assert_false(x.bincode);
    assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_OK);
    assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_OK);
    assert_int_equal(tnf_left(&x.cur), 3);
    free(b.p);
}

/* An index that is cut anywhere is an error with the place; no byte after the cut is read. */
static void test_cut_everywhere(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        bytes b = sample_index(wide, true);
        for (size_t n = 0; n < b.n; n++) {
            uint8_t *exact = malloc(n ? n : 1);
            assert_non_null(exact);
            memcpy(exact, b.p, n);
            tnf_gptrs_index x = index_reader(true);
            tnf_gptrs_entry t;
            tnf_error e = { 0 };
            tnf_status s = tnf_gptrs_index_begin(&x, tnf_cur_over(exact, n, 50), &e);
            for (uint64_t i = 0; s == TNF_OK && i < x.count; i++)
                s = tnf_gptrs_next(&x, &t, &e);
            if (s == TNF_OK) /* a cut bincode index may be read as a plain one with extra bytes */
                assert_true(wide && tnf_left(&x.cur) > 0);
            else
                assert_true(e.offset >= 50 && e.offset <= 50 + n);
            free(exact);
        }
        free(b.p);
    }
}

static void test_checks(void **state)
{
    (void)state;
    bytes b = sample_index(false, false);
    tnf_gptrs_index x = index_reader(false);
    tnf_gptrs_entry t;
    tnf_error e;
    x.max_rank = 1;
    assert_int_equal(tnf_gptrs_index_begin(&x, tnf_cur_over(b.p, b.n, 0), &e), TNF_OK);
    assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_ELIMIT);
    assert_int_equal(e.offset, 9);
    b.p[8] = 0xff; /* the name */
    x = index_reader(false);
    assert_int_equal(tnf_gptrs_index_begin(&x, tnf_cur_over(b.p, b.n, 0), &e), TNF_OK);
    assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_EFORMAT);
    assert_int_equal(e.offset, 8);
    b.p[8] = 'w';
    b.p[29] = 4; /* the tag */
    x = index_reader(false);
    assert_int_equal(tnf_gptrs_index_begin(&x, tnf_cur_over(b.p, b.n, 0), &e), TNF_OK);
    assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_EUNSUPPORTED);
    assert_int_equal(e.offset, 29);
    free(b.p);
}

/* -------------------------------------------------------------- version 1 */

struct tape {
    bytes b;
    uint64_t fetched, fetches;
};

static tnf_status fetch_counted(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct tape *tape = ctx;
    (void)e;
    assert_true(offset <= tape->b.n && n <= tape->b.n - offset);
    memcpy(dst, tape->b.p + offset, n);
    tape->fetched += n;
    tape->fetches++;
    return TNF_OK;
}

static void add_record(bytes *b, const char *name, size_t name_n, uint64_t elements)
{
    add_number(b, name_n, 4);
    add_bytes(b, name, name_n);
    add_number(b, 1, 4);
    add_number(b, elements, 8);
    add_number(b, 0, 4);
    add_number(b, 0, 1);
    add_number(b, 4 * elements, 8);
    for (uint64_t i = 0; i < elements; i++)
        add_number(b, i, 4);
}

/* Descriptions are found after data of any length; data are skipped without reading them. */
static void test_inline(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 1, 0, 1000, 1021, 1022, 1023, 1024, 300000, 2, 5 };
    enum { N = sizeof sizes / sizeof sizes[0] };
    char name[9001];
    struct tape tape = { 0 };
    memset(name, 'n', sizeof name);
    add_text(&tape.b, "garbage");
    for (size_t i = 0; i < N; i++)
        add_record(&tape.b, name, i == 3 ? 9000 : i == 8 ? 4096 : i, sizes[i]);
    tnf_gptrs_index x = index_reader(true);
    tnf_error e;
    tnf_gptrs_inline_begin(&x, 7, N, fetch_counted, &tape, tape.b.n);
    uint64_t at = 7;
    for (size_t i = 0; i < N; i++) {
        tnf_gptrs_entry t;
        assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_OK);
        assert_int_equal(t.at, at);
        assert_int_equal(t.name.n, i == 3 ? 9000 : i == 8 ? 4096 : i);
        assert_null(t.id);
        assert_int_equal(t.shape[0], sizes[i]);
        assert_int_equal(t.offset, at + 29 + t.name.n);
        assert_int_equal(t.length, 4 * sizes[i]);
        at = t.offset + t.length;
    }
    assert_int_equal(at, tape.b.n);
    assert_true(tape.fetched < 100000); /* of more than 1.2 million bytes */
    free(tape.b.p);
}

static void test_inline_small_tensors_share_a_window(void **state)
{
    (void)state;
    struct tape tape = { 0 };
    for (int i = 0; i < 1000; i++)
        add_record(&tape.b, "x", 1, 2);
    tnf_gptrs_index x = index_reader(false);
    tnf_gptrs_entry t;
    tnf_error e;
    tnf_gptrs_inline_begin(&x, 0, 1000, fetch_counted, &tape, tape.b.n);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_OK);
    assert_true(tape.fetches < 15);
    assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_ETRUNCATED);
    assert_int_equal(e.offset, tape.b.n);
    free(tape.b.p);
}

static void test_inline_cut_everywhere(void **state)
{
    (void)state;
    struct tape tape = { 0 };
    add_record(&tape.b, "first", 5, 3);
    add_record(&tape.b, "second", 6, 1);
    const size_t second = 29 + 5 + 12;
    for (size_t n = 0; n < second + 29 + 6; n++) {
        struct tape cut = { 0 };
        add_bytes(&cut.b, tape.b.p, n);
        tnf_gptrs_index x = index_reader(false);
        tnf_gptrs_entry t;
        tnf_error e;
        tnf_gptrs_inline_begin(&x, 0, 2, fetch_counted, &cut, n);
        tnf_status s = tnf_gptrs_next(&x, &t, &e);
        assert_int_equal(s, n < 29 + 5 ? TNF_ETRUNCATED : TNF_OK);
        if (s == TNF_OK) {
            s = tnf_gptrs_next(&x, &t, &e);
            assert_int_equal(s, TNF_ETRUNCATED);
        }
        assert_true(e.offset <= n);
        free(cut.b.p);
    }
    free(tape.b.p);
}

/* An impossible name in a file large enough to hold it: only a few bytes are read to detect
 * this. */
static void test_inline_limits(void **state)
{
    (void)state;
    struct tape tape = { 0 };
    add_record(&tape.b, "w", 1, 500000);
    tnf_gptrs_index x = index_reader(false);
    tnf_gptrs_entry t;
    tnf_error e;
    tape.b.p[1] = 0x18; /* name_len = 0x1801ff + … */
    tape.b.p[2] = 0x10;
    x.max_name = 10;
    tnf_gptrs_inline_begin(&x, 0, 1, fetch_counted, &tape, tape.b.n);
    assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_ELIMIT);
    assert_int_equal(e.offset, 0);
    assert_true(tape.fetched < 16384);
    free(tape.b.p);
}

static void test_inline_length_wraps(void **state)
{
    (void)state;
    struct tape tape = { 0 };
    add_record(&tape.b, "w", 1, 1);
    memset(tape.b.p + 22, 0xff, 8); /* the length */
    tnf_gptrs_index x = index_reader(false);
    tnf_gptrs_entry t;
    tnf_error e;
    tnf_gptrs_inline_begin(&x, 0, 2, fetch_counted, &tape, tape.b.n);
    assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_OK);
    assert_true(t.length == UINT64_MAX);
    assert_int_equal(tnf_gptrs_next(&x, &t, &e), TNF_ETRUNCATED);
    assert_int_equal(e.offset, tape.b.n);
    free(tape.b.p);
}

/* ---------------------------------------------------------------- writing */

static void test_put_entry(void **state)
{
    (void)state;
    static const uint64_t shape[] = { 2, 3 };
    const tnf_member grad = { { "gptrs.requires_grad", 19 }, { .kind = TNF_BOOL, .as.b = true } };
    const tnf_value attrs = { .kind = TNF_MAP, .n = 1, .as.members = &grad };
    const tnf_part part = { .type = tnf_type_of(TNF_F32), .nbytes = 24 };
    const tnf_object o = {
        .name = { "w", 1 }, .shape = shape, .rank = 2, .parts = &part, .nparts = 1, .attrs = &attrs
    };
    bytes want = sample_index(false, true);
    tnf_buf b;
    tnf_buf_init(&b, &arena.alloc, UINT64_MAX);
    tnf_gptrs_put_entry(&b, &o, (const uint8_t *)"0123456789abcdef", 1000);
    assert_int_equal(b.n, 45 + 1 + 16);
    assert_memory_equal(b.p, want.p + 4, b.n);
    b.n = 0;
    free(want.p);
    want = sample_index(false, false);
    tnf_gptrs_put_entry(&b, &o, NULL, 1000);
    assert_int_equal(b.n, 29 + 1 + 16);
    assert_memory_equal(b.p, want.p + 4, b.n);
    free(want.p);
    tnf_buf_free(&b);
}

static void test_grad_of_every_kind(void **state)
{
    (void)state;
    static const struct {
        tnf_value value;
        uint8_t byte;
    } cases[] = { { { .kind = TNF_BOOL, .as.b = false }, 0 },
                  { { .kind = TNF_BOOL, .as.b = true }, 1 },
                  { { .kind = TNF_UINT, .as.u = 255 }, 255 },
                  { { .kind = TNF_UINT, .as.u = 256 }, 1 },
                  { { .kind = TNF_INT, .as.i = 7 }, 7 },
                  { { .kind = TNF_INT, .as.i = -1 }, 1 },
                  { { .kind = TNF_NULL }, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tnf_member grad = { { "gptrs.requires_grad", 19 }, cases[i].value };
        const tnf_value attrs = { .kind = TNF_MAP, .n = 1, .as.members = &grad };
        const tnf_part part = { .type = tnf_type_of(TNF_BF16) };
        const tnf_object o = { .name = { "", 0 }, .parts = &part, .attrs = &attrs };
        tnf_buf b;
        tnf_buf_init(&b, &arena.alloc, UINT64_MAX);
        tnf_gptrs_put_entry(&b, &o, NULL, 0);
        assert_int_equal(b.p[8], 2); /* the tag of bf16 */
        assert_int_equal(b.p[12], cases[i].byte);
        tnf_buf_free(&b);
    }
}

static void test_place(void **state)
{
    (void)state;
    const tnf_part some = { .nbytes = 10 }, none = { .nbytes = 0 };
    const tnf_object full = { .parts = &some }, empty = { .parts = &none };
    uint64_t at;
    tnf_error e;
    assert_int_equal(tnf_gptrs_place(&at, 65, &full, 64, &e), TNF_OK);
    assert_int_equal(at, 128);
    assert_int_equal(tnf_gptrs_place(&at, 128, &full, 64, &e), TNF_OK);
    assert_int_equal(at, 128);
    assert_int_equal(tnf_gptrs_place(&at, 65, &empty, 64, &e), TNF_OK);
    assert_int_equal(at, 65);
    assert_int_equal(tnf_gptrs_place(&at, UINT64_MAX - 5, &full, 1, &e), TNF_ELIMIT);
    assert_int_equal(tnf_gptrs_place(&at, UINT64_MAX - 20, &full, 64, &e), TNF_ELIMIT);
}

static void test_align_option(void **state)
{
    (void)state;
    tnf_error e;
    static const uint64_t good[] = { 1, 2, 64, 4096, 1 << 24 },
                          bad[] = { 0, 3, 65, 1 << 25, UINT64_MAX };
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(tnf_gptrs_check_align(good[i], &e), TNF_OK);
        assert_int_equal(tnf_gptrs_check_align(bad[i], &e), TNF_EINVAL);
    }
}

static void test_index_size(void **state)
{
    (void)state;
    tnf_object o[2] = { { .name = { "w", 1 }, .rank = 2 },
                        { .name = { "w", UINT32_MAX }, .rank = 0 } };
    tnf_catalog c = { .objects = o, .n = 1 };
    uint64_t n;
    tnf_error e;
    assert_int_equal(tnf_gptrs_index_size(&n, &c, true, &e), TNF_OK);
    assert_int_equal(n, 4 + 45 + 1 + 16);
    assert_int_equal(tnf_gptrs_index_size(&n, &c, false, &e), TNF_OK);
    assert_int_equal(n, 4 + 29 + 1 + 16);
    c.n = 2;
    assert_int_equal(tnf_gptrs_index_size(&n, &c, false, &e), TNF_ELIMIT);
    o[1].name.n = SIZE_MAX;
    assert_int_equal(tnf_gptrs_index_size(&n, &c, false, &e), TNF_ELIMIT);
}

static void test_base_id(void **state)
{
    (void)state;
    uint8_t id[TNF_GPTRS_ID];
    char hex[2 * TNF_GPTRS_ID + 1];
    tnf_gptrs_base_id(id, (tnf_str) { "tok_embeddings.weight", 21 });
    tnf_gptrs_hex(hex, id);
    assert_string_equal(hex, "7e7feacfe1ddb49f69ba6d05e7ec9ee6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_syntaxes),
        cmocka_unit_test(test_trailing),
        cmocka_unit_test(test_cut_everywhere),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_inline),
        cmocka_unit_test(test_inline_small_tensors_share_a_window),
        cmocka_unit_test(test_inline_cut_everywhere),
        cmocka_unit_test(test_inline_limits),
        cmocka_unit_test(test_inline_length_wraps),
        cmocka_unit_test(test_put_entry),
        cmocka_unit_test(test_grad_of_every_kind),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_align_option),
        cmocka_unit_test(test_index_size),
        cmocka_unit_test(test_base_id),
    };
    return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
