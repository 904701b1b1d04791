/* SPDX-License-Identifier: MIT */
/* Zip archives: the written bytes are compared with those of Python's zipfile and PyTorch, and
 * every refusal of the reader is tested by an archive with one changed number. */
#include "../support/unit.h"
#include "wire/zip.h"

#include "base/bytes.h"
#include "base/error.h"
#include "zip_vectors.h"

typedef struct fixture {
    uint8_t *p; /* the archive */
    size_t n;
    tnf_arena arena;
    tnf_zip zip;
    unsigned odd; /* how often the reader tolerated something */
    bool lenient;
    tnf_error e;
} fixture;

static tnf_status fetch_bytes(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const fixture *f = ctx;
    (void)e;
    assert_true(offset + n <= f->n);
    memcpy(dst, f->p + offset, n);
    return TNF_OK;
}

static tnf_status be_odd(void *ctx, tnf_status status, uint64_t at, const char *text, tnf_error *e)
{
    fixture *f = ctx;
    f->odd++;
    return f->lenient ? TNF_OK : tnf_fail(e, status, at, "%s", text);
}

static tnf_zip_from from_of(fixture *f)
{
    return (tnf_zip_from) { .fetch = fetch_bytes,
                            .ctx = f,
                            .size = f->n,
                            .arena = &f->arena,
                            .max_directory = 1 << 20,
                            .max_members = 1000,
                            .odd = be_odd,
                            .odd_ctx = f };
}

static tnf_status read_all(fixture *f)
{
    tnf_zip_from from = from_of(f);
    f->odd = 0;
    TNF_TRY(tnf_zip_read(&f->zip, &from, &f->e));
    for (size_t i = 0; i < f->zip.n; i++) {
        uint64_t data;
        TNF_TRY(tnf_zip_locate(&data, &from, &f->zip.members[i], &f->e));
        assert_true(data + f->zip.members[i].stored <= f->n);
    }
    return TNF_OK;
}

static void take_bytes(fixture *f, const uint8_t *p, size_t n)
{
    free(f->p);
    f->p = malloc(n + 1);
    f->n = n;
    memcpy(f->p, p, n);
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena_init(&f->arena, &a, (uint64_t)16 << 20);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tnf_arena_free(&f->arena);
    free(f->p);
    free(f);
    return 0;
}

#define TAKE(f, vector) take_bytes(f, vector, sizeof(vector))

static void check_refused(fixture *f, tnf_status status, const char *words)
{
    tnf_status found = read_all(f);
    if (found != status || !strstr(f->e.message, words))
        print_message("%s: %s\n", words, found ? f->e.message : "accepted");
    assert_int_equal(found, status);
    assert_non_null(strstr(f->e.message, words));
}

/* The offset of the n-th signature of this kind. */
static size_t find_signature(const fixture *f, uint32_t signature, unsigned nth)
{
    for (size_t i = 0; i + 4 <= f->n; i++)
        if (tnf_le32(f->p + i) == signature && nth-- == 0)
            return i;
    fail();
    return 0;
}

#define HEADER  0x04034b50u
#define ENTRY   0x02014b50u
#define END     0x06054b50u
#define ZIP64   0x06064b50u
#define LOCATOR 0x07064b50u

/* ---------------------------------------------------------------- reading */

static void members_of_python(void **state)
{
    fixture *f = *state;
    TAKE(f, zip_python);
    assert_int_equal(read_all(f), TNF_OK);
    assert_int_equal(f->odd, 0);
    assert_int_equal(f->zip.n, 2);
    assert_int_equal(f->zip.members[0].size, 5);
    assert_int_equal(f->zip.members[0].crc, 0x3610a686u); /* "hello" */
    assert_int_equal(f->zip.members[0].method, TNF_ZIP_STORED);
    assert_int_equal(f->zip.members[1].method, TNF_ZIP_DEFLATED);
    assert_int_equal(f->zip.members[1].size, 1000);
    assert_int_equal(f->zip.comment.n, 9);
    TAKE(f, zip_streamed);
    assert_int_equal(read_all(f), TNF_OK);
    assert_int_equal(f->zip.members[0].size, 5);
    TAKE(f, zip_zip64);
    assert_int_equal(read_all(f), TNF_OK);
    assert_int_equal(f->zip.n, 2);
    TAKE(f, zip_empty);
    assert_int_equal(read_all(f), TNF_OK);
    assert_int_equal(f->zip.n, 0);
}

static void names_by_encoding(void **state)
{
    fixture *f = *state;
    TAKE(f, zip_utf8);
    assert_int_equal(read_all(f), TNF_OK);
    assert_int_equal(f->zip.members[0].name.n, 7);
    assert_memory_equal(f->zip.members[0].name.p, "\xc3\xa9.npy", 6); /* and an umlaut's byte */
    /* Without the flag the same bytes are of code page 437: "├⌐". */
    f->p[find_signature(f, ENTRY, 0) + 9] &= (uint8_t)~0x08;
    f->p[find_signature(f, HEADER, 0) + 7] &= (uint8_t)~0x08;
    assert_int_equal(read_all(f), TNF_OK);
    assert_memory_equal(f->zip.members[0].name.p, "\xe2\x94\x9c\xe2\x8c\x90.npy", 10);
    TAKE(f, zip_utf8);
    f->p[find_signature(f, ENTRY, 0) + 46] = 0xff;
    check_refused(f, TNF_EFORMAT, "not UTF-8");
    TAKE(f, zip_python);
    f->p[find_signature(f, ENTRY, 0) + 46] = 0;
    check_refused(f, TNF_EFORMAT, "holds a NUL");
}

static void end_records(void **state)
{
    fixture *f = *state;
    TAKE(f, zip_python);
    for (size_t cut = 0; cut < f->n; cut++) {
        size_t n = f->n;
        f->n = cut;
        assert_int_not_equal(read_all(f), TNF_OK);
        f->n = n;
    }
    TAKE(f, zip_two_ends);
    check_refused(f, TNF_EFORMAT, "two end records");
    TAKE(f, zip_prefix);
    check_refused(f, TNF_EFORMAT, "bytes in front");
    f->lenient = true;
    assert_int_equal(read_all(f), TNF_OK);
    assert_int_equal(f->zip.prefix, 11);
    f->lenient = false;
    TAKE(f, zip_python);
    tnf_put_le16(f->p + find_signature(f, END, 0) + 20,
                 8); /* now one byte of the comment is after it */
    check_refused(f, TNF_EFORMAT, "bytes follow");
    TAKE(f, zip_python);
    tnf_put_le16(f->p + find_signature(f, END, 0) + 4, 1);
    check_refused(f, TNF_EUNSUPPORTED, "an archive in several pieces");
    TAKE(f, zip_python);
    tnf_put_le16(f->p + find_signature(f, END, 0) + 8, 1);
    check_refused(f, TNF_EUNSUPPORTED, "an archive in several pieces");
    TAKE(f, zip_python);
    tnf_put_le16(f->p + find_signature(f, END, 0) + 8, 1);
    tnf_put_le16(f->p + find_signature(f, END, 0) + 10, 1);
    check_refused(f, TNF_EFORMAT, "after its 1 members");
    TAKE(f, zip_python);
    tnf_put_le16(f->p + find_signature(f, END, 0) + 8, 500);
    tnf_put_le16(f->p + find_signature(f, END, 0) + 10, 500);
    check_refused(f, TNF_EFORMAT, "500 members do not fit");
    TAKE(f, zip_python);
    tnf_put_le32(f->p + find_signature(f, END, 0) + 16, 0x7fffffff);
    check_refused(f, TNF_EFORMAT, "is outside");
    TAKE(f, zip_python);
    tnf_put_le32(f->p + find_signature(f, END, 0) + 16, 0xffffffff);
    check_refused(f, TNF_EFORMAT, "there is none");
}

static void zip64_lies(void **state)
{
    fixture *f = *state;
    static const size_t numbers[] = { 24, 32, 40, 48 }; /* members, members, bytes, place */
    for (size_t i = 0; i < 4; i++) {
        TAKE(f, zip_zip64);
        f->p[find_signature(f, ZIP64, 0) + numbers[i]] ^= 1;
        check_refused(f, TNF_EFORMAT, "disagree");
    }
    TAKE(f, zip_zip64);
    tnf_put_le32(f->p + find_signature(f, ZIP64, 0) + 16, 3);
    check_refused(f, TNF_EUNSUPPORTED, "an archive in several pieces");
    TAKE(f, zip_zip64);
    tnf_put_le64(f->p + find_signature(f, LOCATOR, 0) + 8, UINT64_MAX);
    check_refused(f, TNF_EFORMAT, "outside");
    TAKE(f, zip_zip64);
    tnf_put_le64(f->p + find_signature(f, ZIP64, 0) + 4, 45);
    check_refused(f, TNF_EFORMAT, "no zip64 end record");
    TAKE(f, zip_python); /* a number in a missing field */
    tnf_put_le32(f->p + find_signature(f, ENTRY, 0) + 24, 0xffffffff);
    check_refused(f, TNF_EFORMAT, "no zip64 field");
    TAKE(f, zip_zip64); /* and in an existing one */
    tnf_put_le64(f->p + find_signature(f, ENTRY, 0) + 46 + 1 + 4, UINT64_MAX);
    check_refused(f, TNF_EFORMAT, "is not compressed");
    TAKE(f, zip_zip64);
    tnf_put_le64(f->p + find_signature(f, ENTRY, 0) + 46 + 1 + 4, UINT64_MAX - 10);
    tnf_put_le64(f->p + find_signature(f, ENTRY, 0) + 46 + 1 + 12, UINT64_MAX - 10);
    check_refused(f, TNF_EFORMAT, "overlaps");
    TAKE(f, zip_zip64);
    tnf_put_le16(f->p + find_signature(f, ENTRY, 0) + 46 + 1 + 2, 2000);
    check_refused(f, TNF_EFORMAT, "runs past its end");
}

static void unknown_methods(void **state)
{
    fixture *f = *state;
    static const struct {
        uint16_t method;
        const char *name;
    } others[] = { { 9, "deflate64" }, { 12, "bzip2" }, { 14, "lzma" },
                   { 93, "zstd" },     { 99, "AES" },   { 77, "an unknown" } };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        TAKE(f, zip_python);
        tnf_put_le16(f->p + find_signature(f, ENTRY, 1) + 10, others[i].method);
        check_refused(f, TNF_EUNSUPPORTED, others[i].name);
    }
    TAKE(f, zip_python);
    f->p[find_signature(f, ENTRY, 0) + 8] |= 1;
    check_refused(f, TNF_EUNSUPPORTED, "encrypted");
    TAKE(f, zip_python);
    f->p[find_signature(f, ENTRY, 0) + 8] |= 0x20;
    check_refused(f, TNF_EUNSUPPORTED, "patch");
    TAKE(f, zip_python);
    tnf_put_le16(f->p + find_signature(f, ENTRY, 0) + 34, 2);
    check_refused(f, TNF_EUNSUPPORTED, "an archive in several pieces");
    TAKE(f, zip_python);
    f->p[find_signature(f, ENTRY, 0)] = 'Q';
    check_refused(f, TNF_EFORMAT, "no entry where one should be");
    TAKE(f, zip_python);
    tnf_put_le16(f->p + find_signature(f, ENTRY, 1) + 28, 60000);
    check_refused(f, TNF_EFORMAT, "runs past its end");
}

static void refuses_overlaps(void **state)
{
    fixture *f = *state;
    TAKE(f, zip_python); /* two members at one place */
    tnf_put_le32(f->p + find_signature(f, ENTRY, 1) + 42, 0);
    check_refused(f, TNF_EFORMAT, "overlaps another");
    TAKE(f, zip_python); /* into the next member */
    tnf_put_le32(f->p + find_signature(f, ENTRY, 0) + 20, 60);
    tnf_put_le32(f->p + find_signature(f, ENTRY, 0) + 24, 60);
    check_refused(f, TNF_EFORMAT, "overlaps another");
    TAKE(f, zip_python); /* into the directory */
    tnf_put_le32(f->p + find_signature(f, ENTRY, 1) + 20, 100);
    check_refused(f, TNF_EFORMAT, "overlaps the directory");
    TAKE(f, zip_python); /* after it */
    tnf_put_le32(f->p + find_signature(f, ENTRY, 1) + 42, (uint32_t)f->n);
    check_refused(f, TNF_EFORMAT, "overlaps the directory");
    TAKE(f, zip_python); /* only the header says this */
    tnf_put_le16(f->p + find_signature(f, HEADER, 0) + 28, 30);
    check_refused(f, TNF_EFORMAT, "overlaps what follows");
    TAKE(f, zip_twice);
    check_refused(f, TNF_EFORMAT, "'a' occurs twice");
    f->lenient = true;
    assert_int_equal(read_all(f), TNF_OK);
    assert_int_equal(f->odd, 1);
}

/* Differences between the header of a member and its entry. */
static void headers_must_agree(void **state)
{
    fixture *f = *state;
    TAKE(f, zip_python);
    f->p[find_signature(f, HEADER, 0) + 30] ^= 1;
    check_refused(f, TNF_EFORMAT, "another name");
    TAKE(f, zip_python);
    f->p[find_signature(f, HEADER, 0) + 26] ^= 3;
    check_refused(f, TNF_EFORMAT, "another name");
    TAKE(f, zip_python);
    f->p[find_signature(f, HEADER, 0) + 8] ^= 8;
    check_refused(f, TNF_EFORMAT, "another method");
    TAKE(f, zip_python);
    f->p[find_signature(f, HEADER, 0) + 6] ^= 1;
    check_refused(f, TNF_EFORMAT, "encrypted");
    TAKE(f, zip_python);
    f->p[find_signature(f, HEADER, 0) + 6] ^= 8;
    check_refused(f, TNF_EFORMAT, "after it");
    TAKE(f, zip_python);
    f->p[find_signature(f, HEADER, 0) + 7] ^= 8;
    check_refused(f, TNF_EFORMAT, "flags");
    static const size_t fields[] = { 14, 18, 22 }; /* CRC, stored, size */
    for (size_t i = 0; i < 3; i++) {
        TAKE(f, zip_python);
        f->p[find_signature(f, HEADER, 0) + fields[i]] ^= 1;
        check_refused(f, TNF_EFORMAT, "sizes or another CRC");
    }
    TAKE(f, zip_forced); /* sizes in the zip64 field */
    assert_int_equal(read_all(f), TNF_OK);
    f->p[find_signature(f, HEADER, 0) + 30 + 1 + 4] ^= 1;
    check_refused(f, TNF_EFORMAT, "sizes or another CRC");
    TAKE(f, zip_python);
    f->p[find_signature(f, HEADER, 0)] = 'Q';
    check_refused(f, TNF_EFORMAT, "no member where");
}

/* ---------------------------------------------------------------- walking */

static tnf_status walk_archive(fixture *f)
{
    tnf_zip_from from = from_of(f);
    f->odd = 0;
    return tnf_zip_walk(&f->zip, &from, &f->e);
}

/* Without its directory, an archive has the same members, as far as they are complete. */
static void without_directory(void **state)
{
    fixture *f = *state;
    uint64_t data[2], found;
    TAKE(f, zip_python);
    assert_int_equal(read_all(f), TNF_OK);
    tnf_zip_from from = from_of(f);
    tnf_zip_member known[2] = { f->zip.members[0], f->zip.members[1] };
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(tnf_zip_locate(&data[i], &from, &known[i], &f->e), TNF_OK);
    size_t second = (size_t)known[1].header;
    for (size_t n = find_signature(f, ENTRY, 0) + 20; n-- > 0;) {
        TAKE(f, zip_python);
        f->n = n;
        from = from_of(f);
        assert_int_equal(walk_archive(f), TNF_OK);
        /* a member counts when its header, its name and its extra field are complete */
        assert_int_equal(f->zip.n, n >= data[1] ? 2 : n >= data[0] ? 1 : 0);
        for (size_t i = 0; i < f->zip.n; i++) {
            const tnf_zip_member *m = &f->zip.members[i];
            assert_int_equal(m->name.n, known[i].name.n);
            assert_memory_equal(m->name.p, known[i].name.p, m->name.n);
            assert_true(m->size == known[i].size && m->stored == known[i].stored);
            assert_true(m->crc == known[i].crc && m->method == known[i].method);
            assert_int_equal(tnf_zip_locate(&found, &from, m, &f->e), TNF_OK);
            assert_int_equal(found, data[i]);
        }
    }
    TAKE(f, zip_python); /* other bytes end it */
    f->p[second] ^= 1;
    assert_int_equal(walk_archive(f), TNF_OK);
    assert_int_equal(f->zip.n, 1);
    TAKE(f, zip_streamed); /* its end is unknown */
    assert_int_equal(walk_archive(f), TNF_OK);
    assert_int_equal(f->zip.n, 0);
    TAKE(f, zip_zip64);
    assert_int_equal(walk_archive(f), TNF_OK);
    TAKE(f, zip_empty);
    assert_int_equal(walk_archive(f), TNF_OK);
    assert_int_equal(f->zip.n, 0);
}

/* ---------------------------------------------------------------- writing */

/* One member "a" with "hello"; empty fields except those given here. */
static void write_one(fixture *f, tnf_zip_style style, tnf_str comment)
{
    tnf_buf b;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_zip_put m = {
        .name = TNF_STR("a"), .stored = 5, .size = 5, .crc = 0x3610a686u, .align = 64
    };
    tnf_buf_init(&b, &a, UINT64_MAX);
    tnf_zip_put_local(&b, style, &m);
    assert_int_equal(b.n, tnf_zip_local_size(style, &m));
    tnf_buf_puts(&b, "hello");
    tnf_zip_put_behind(&b, style, &m);
    uint64_t directory = b.n;
    tnf_zip_put_central(&b, style, &m);
    tnf_zip_put_end(&b, style, 1, directory, b.n - directory, comment);
    take_bytes(f, b.p, b.n);
    tnf_buf_free(&b);
}

static void as_python(void **state)
{
    fixture *f = *state;
    write_one(f, TNF_ZIP_PYTHON, (tnf_str)TNF_STR(""));
    assert_int_equal(f->n, sizeof zip_forced);
    assert_memory_equal(f->p, zip_forced, f->n);
    write_one(f, TNF_ZIP_PYTHON, (tnf_str)TNF_STR("a comment"));
    assert_int_equal(read_all(f), TNF_OK);
    assert_int_equal(f->zip.comment.n, 9);
}

static void as_torch(void **state)
{
    fixture *f = *state;
    uint64_t data;
    write_one(f, TNF_ZIP_TORCH, (tnf_str)TNF_STR(""));
    tnf_zip_from from = from_of(f);
    assert_int_equal(read_all(f), TNF_OK);
    assert_int_equal(tnf_zip_locate(&data, &from, &f->zip.members[0], &f->e), TNF_OK);
    assert_int_equal(data, 64);
    /* Section 1.2 of the fact sheet on PyTorch: header, name, FB field, data, descriptor. */
    static const uint8_t head[] = { 0x50, 0x4b, 3, 4, 0,  0, 8,   8,    0,    0, 0, 0,
                                    0,    0,    0, 0, 0,  0, 0,   0,    0,    0, 0, 0,
                                    0,    0,    1, 0, 33, 0, 'a', 0x46, 0x42, 29 };
    assert_memory_equal(f->p, head, sizeof head);
    assert_int_equal(f->p[35], 'Z');
    assert_memory_equal(f->p + 69, "PK\7\x8\x86\xa6\x10\x36\5\0\0\0\5\0\0\0", 16);
    assert_memory_equal(f->p + 85, "PK\1\2\0\0\0\0\x8\x8", 10);
}

/* Numbers that do not fit in 32 bits; only the records are made, not the complete archive. */
static void large_archives(void **state)
{
    fixture *f = *state;
    tnf_buf b;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_zip_put m = { .name = TNF_STR("a.npy"),
                      .header = UINT64_C(0x80000000),
                      .stored = UINT64_C(0x80000000),
                      .size = UINT64_C(0x80000000),
                      .crc = 0x12345678 };
    tnf_buf_init(&b, &a, UINT64_MAX);
    tnf_zip_put_central(&b, TNF_ZIP_PYTHON, &m);
    tnf_zip_put_end(&b, TNF_ZIP_PYTHON, 1, UINT64_C(0x100000099), b.n, (tnf_str)TNF_STR(""));
    assert_int_equal(b.n, sizeof zip_large);
    assert_memory_equal(b.p, zip_large, b.n);
    b.n = 0;
    tnf_zip_put t = { .name = TNF_STR("a/0"),
                      .header = 64,
                      .stored = 0xffffffffu,
                      .size = 0xffffffffu,
                      .align = 64 };
    tnf_zip_put_local(&b, TNF_ZIP_TORCH, &t);
    assert_int_equal((b.n + t.header) % 64, 0);
    assert_memory_equal(b.p + 33, "\1\0\x10\0\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\0\0\0\0FB",
                        22);
    b.n = 0;
    tnf_zip_put_behind(&b, TNF_ZIP_TORCH, &t);
    assert_int_equal(b.n, 24);
    tnf_buf_free(&b);
    (void)f;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(members_of_python, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_by_encoding, set_up, tear_down),
        cmocka_unit_test_setup_teardown(end_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(zip64_lies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_methods, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_overlaps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(headers_must_agree, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_directory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(as_python, set_up, tear_down),
        cmocka_unit_test_setup_teardown(as_torch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_archives, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
