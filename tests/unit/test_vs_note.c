/* SPDX-License-Identifier: MIT */
/* The note of a deletion after a crash: readers see its points as deleted, writers finish the
 * deletion, and an incomplete note is ignored. */
#include "../support/memory.h"
#include "points_files.h"
#include <tenfold/tenfold.h>
#include <unistd.h>

#define CHECK_0 0x4241ec83510c344aull
#define CHECK_1 0x15d992e75238f071ull
#define END     91u /* the place of '$': three points of 25 bytes, from 16 on */

/* Points 0 and 2, at 16 and 66; another program computed the checks, XXH3-64 of 91, 16, 66, 2 and
 * the flags as u64. */
static void put_note(uint8_t note[48], uint64_t flags)
{
    tnf_put_le64(note, 16);
    tnf_put_le64(note + 8, 66);
    tnf_put_le64(note + 16, 2);
    tnf_put_le64(note + 24, flags);
    tnf_put_le64(note + 32, flags ? CHECK_1 : CHECK_0);
    memcpy(note + 40, "VSdelete", 8);
}

static struct bytes whole; /* the file without a note */

static const char *three_points(const uint8_t note[48])
{
    const char *path = vs_path();
    tnf_points *p = vs_create(path);
    for (unsigned i = 0; i < 3; i++)
        vs_add(p, i);
    tnf_points_close(p);
    struct bytes b = bytes_of_file(path);
    assert_true(b.p && b.n == END + 1 && b.p[END] == '$');
    free(whole.p);
    whole = b;
    uint8_t file[END + 1 + 48];
    memcpy(file, b.p, b.n);
    memcpy(file + b.n, note, 48);
    bytes_to_file(path, file, sizeof file);
    return path;
}

/* The id of a point of three_points(). CRC-32 bit by bit, as RFC 1952 describes it. */
static tnf_point_id id_at(uint64_t offset)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < 25; i++) {
        crc ^= whole.p[offset + i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return (tnf_point_id) { offset, ~crc };
}

static void as_described(void **state)
{
    (void)state;
    uint8_t want[48];
    tnf_error e;
    tnf_buf b;
    tnf_allocator usual = tnf_allocator_or_default(NULL);
    for (uint64_t flags = 0; flags < 2; flags++) {
        put_note(want, flags);
        tnf_buf_init(&b, &usual, UINT64_MAX);
        assert_ok(tnf_vs_note_put(&b, END, (uint64_t[]) { 16, 66 }, 2, flags, &e));
        assert_int_equal(b.n, 48);
        assert_memory_equal(b.p, want, 48);
        tnf_buf_free(&b);
    }
}

static void readers_see_them_deleted(void **state)
{
    (void)state;
    tnf_error e;
    tnf_point point;
    tnf_file *f;
    tnf_points_report r = TNF_POINTS_REPORT_INIT;
    uint8_t note[48];
    put_note(note, 0);
    const char *path = three_points(note);
    tnf_points *p = vs_open(path, false);
    vs_expect(p, "1");
    assert_fails(tnf_points_read(&point, p, id_at(66), &e), TNF_ENOTFOUND);
    assert_says("was deleted");
    assert_ok(tnf_points_read(&point, p, id_at(41), &e));
    assert_ok(tnf_points_verify(&r, p, NULL, NULL, &e));
    assert_true(r.points == 1 && r.blanks == 2 && r.problems == 0);
    tnf_points_close(p);
    assert_ok(tnf_open(&f, path, NULL, &e));
    assert_int_equal(tnf_find(f, "points")->shape[0], 1);
    assert_non_null(strstr(tnf_file_info(f)->warnings[0].message, "deletion of 2 points"));
    tnf_close(f);
    struct bytes b = bytes_of_file(path); /* the file was not changed */
    assert_true(b.n == END + 1 + 48 && b.p[16] == 'P' && b.p[66] == 'P');
    free(b.p);
}

static void writers_carry_it_out(void **state)
{
    (void)state;
    tnf_error e;
    uint8_t note[48];
    for (uint64_t flags = 0; flags < 2; flags++) {
        put_note(note, flags);
        const char *path = three_points(note);
        tnf_points *p = vs_open(path, true);
        const tnf_point_id first = id_at(16); /* nothing is left to do */
        assert_fails(tnf_points_delete(p, &first, 1, 0, &e), TNF_ENOTFOUND);
        assert_ok(tnf_points_delete(p, &first, 1, TNF_POINTS_UNCHECKED, &e));
        tnf_points_close(p);
        struct bytes b = bytes_of_file(path);
        assert_int_equal(b.n, END + 1);
        for (size_t i = 0; i <= END; i++) {
            bool wiped = flags && ((i >= 21 && i < 41) || (i >= 71 && i < 91));
            assert_int_equal(b.p[i], i == 16 || i == 66 ? '0' : wiped ? 0 : whole.p[i]);
        }
        free(b.p);
    }
    put_note(note, 0);
    tnf_points *p = vs_open(three_points(note), true); /* and then the requested change */
    vs_add(p, 7);
    vs_expect(p, "1 7");
    assert_ok(tnf_points_compact(p, 0, NULL, NULL, &e));
    vs_expect(p, "1 7");
    tnf_points_close(p);
}

/* Any wrong byte, in the note or at the place of '$'. */
static void else_it_is_junk(void **state)
{
    (void)state;
    uint8_t note[48];
    for (size_t i = 0; i < 48; i++) {
        put_note(note, 0);
        note[i] ^= 0x10;
        tnf_points *p = vs_open(three_points(note), true);
        vs_expect(p, "0 1 2");
        vs_add(p, 3);
        vs_expect(p, "0 1 2 3");
        tnf_points_close(p);
    }
    put_note(note, 0);
    const char *path = three_points(note);
    assert_int_equal(truncate(path, END + 1 + 47), 0);
    tnf_points *p = vs_open(path, false);
    vs_expect(p, "0 1 2");
    tnf_points_close(p);
}

/* A complete but wrong note: no block begins there, or it is the meta block. Nothing else is
 * changed. */
static void only_blocks_go(void **state)
{
    (void)state;
    tnf_error e;
    tnf_buf b;
    tnf_allocator usual = tnf_allocator_or_default(NULL);
    uint8_t note[48];
    static const uint64_t lists[][2] = { { 17, 66 }, { 4, 66 }, { 66, 80 } };
    for (size_t k = 0; k < 3; k++) {
        tnf_buf_init(&b, &usual, UINT64_MAX);
        assert_ok(tnf_vs_note_put(&b, END, lists[k], 2, TNF_VS_SHRED, &e));
        memcpy(note, b.p, 48);
        tnf_buf_free(&b);
        tnf_points *p = vs_open(three_points(note), true);
        vs_expect(p, "0 1");
        vs_add(p, 3);
        vs_expect(p, "0 1 3");
        tnf_points_close(p);
    }
}

static tnf_status from_memory(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)e;
    memcpy(dst, (const uint8_t *)ctx + offset, n);
    return TNF_OK;
}

static void limits_and_memory(void **state)
{
    (void)state;
    tnf_error e;
    tnf_vs_chain c;
    uint8_t file[END + 1 + 48] = { 0 };
    put_note(file + END + 1, 0);
    file[END] = '$';
    tnf_vs_chain_init(&c, from_memory, file, sizeof file, TNF_VS_HEADER, NULL);
    assert_fails(tnf_vs_note_read(&c, 15, &e), TNF_ELIMIT);
    assert_ok(tnf_vs_note_read(&c, 16, &e));
    assert_true(c.note.n == 2 && tnf_vs_noted(&c.note, 66) && !tnf_vs_noted(&c.note, 41));
    tnf_vs_chain_free(&c);
    struct memory_log log = { .fail_at = 1 };
    tnf_allocator a = { memory_reallocate, &log };
    tnf_vs_chain_init(&c, from_memory, file, sizeof file, TNF_VS_HEADER, &a);
    assert_fails(tnf_vs_note_read(&c, UINT64_MAX, &e), TNF_ENOMEM);
    tnf_vs_chain_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_described),         cmocka_unit_test(readers_see_them_deleted),
        cmocka_unit_test(writers_carry_it_out), cmocka_unit_test(else_it_is_junk),
        cmocka_unit_test(only_blocks_go),       cmocka_unit_test(limits_and_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(whole.p);
    return failed;
}
