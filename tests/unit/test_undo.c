/* SPDX-License-Identifier: MIT */
/* Undo files from an untrusted source: valid ones, ones that are not even read, and that no byte is
 * restored outside the file's own change. The test builds them from the drawing in io/undo.c, not
 * with the code that writes them. */
#include "../support/files.h"
#include "../support/unit.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "io/undo.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static tnf_error e;
static char path[300], undo[300];

struct made {
    uint8_t bytes[4096];
    size_t n;
};

static void put_u64(struct made *m, uint64_t v)
{
    tnf_put_le64(m->bytes + m->n, v);
    m->n += 8;
}

static void put_text(struct made *m, const char *text)
{
    memcpy(m->bytes + m->n, text, strlen(text));
    m->n += strlen(text);
}

static struct made undo_of(uint64_t old_size, uint64_t new_size, uint64_t n)
{
    struct made m = { .n = 0 };
    put_text(&m, "TNFUNDO1");
    put_u64(&m, old_size);
    put_u64(&m, new_size);
    put_u64(&m, n);
    return m;
}

static void add_range(struct made *m, uint64_t at, const char *old, const char *fresh)
{
    put_u64(m, at);
    put_u64(m, strlen(old));
    put_u64(m, strlen(fresh));
    put_text(m, old);
    put_text(m, fresh);
}

static void write_undo(struct made *m)
{
    tnf_digester d;
    assert_true(tnf_digest_begin(&d, "sha256"));
    tnf_digest_update(&d, m->bytes, m->n);
    tnf_digest_end(&d, m->bytes + m->n);
    bytes_to_file(undo, m->bytes, m->n + 32);
}

static void write_file(const char *text)
{
    snprintf(path, sizeof path, "%s/file", files_temp());
    snprintf(undo, sizeof undo, "%s/.file.tenfold-undo", files_temp());
    (void)unlink(undo);
    (void)unlink(path);
    bytes_to_file(path, text, strlen(text));
}

static tnf_undo_state look_at_undo(void)
{
    tnf_undo_state state = TNF_UNDO_MIXED;
    int fd = open(path, O_RDONLY);
    assert_ok(tnf_undo_look(&state, path, fd, &e));
    close(fd);
    return state;
}

static void expect_undo(tnf_undo_state state, const char *after)
{
    bool undone;
    assert_int_equal(look_at_undo(), state);
    int fd = open(path, O_RDWR);
    assert_ok(tnf_undo_run(&undone, path, fd, &e));
    close(fd);
    assert_int_equal(undone, state == TNF_UNDO_MIXED);
    struct bytes b = bytes_of_file(path);
    assert_int_equal(b.n, strlen(after));
    assert_memory_equal(b.p, after, b.n);
    free(b.p);
    bool stays = state == TNF_UNDO_NONE || state == TNF_UNDO_FOREIGN;
    assert_int_equal(access(undo, F_OK) == 0, stays);
}

static void the_real_thing(void **state)
{
    (void)state;
    struct made m = undo_of(10, 10, 2);
    add_range(&m, 1, "abc", "xyz");
    add_range(&m, 6, "de", "uv");
    write_file("0xyz45de89"); /* the first range is new, the second old */
    write_undo(&m);
    expect_undo(TNF_UNDO_MIXED, "0abc45de89");
    write_file("0xyc45uv89"); /* within a range, too */
    write_undo(&m);
    expect_undo(TNF_UNDO_MIXED, "0abc45de89");
    write_file("0abc45de89");
    write_undo(&m);
    expect_undo(TNF_UNDO_WHOLE, "0abc45de89");
    write_file("0xyz45uv89");
    write_undo(&m);
    expect_undo(TNF_UNDO_WHOLE, "0xyz45uv89");
    write_file("0xy?45uv89");
    write_undo(&m);
    expect_undo(TNF_UNDO_FOREIGN, "0xy?45uv89");
    m.bytes[40] ^= 1; /* the digest belongs to other bytes, so the undo file is not used */
    bytes_to_file(undo, m.bytes, m.n + 32);
    expect_undo(TNF_UNDO_WHOLE, "0xy?45uv89");
}

/* A range without new bytes says what was to be truncated. It does not allow arbitrary bytes. */
static void cut_off(void **state)
{
    (void)state;
    struct made m = undo_of(8, 5, 2);
    add_range(&m, 0, "a", "b");
    add_range(&m, 5, "END", "");
    write_file("b1234END");
    write_undo(&m);
    expect_undo(TNF_UNDO_MIXED, "a1234END");
    write_file("b1234");
    write_undo(&m);
    expect_undo(TNF_UNDO_WHOLE, "b1234");
    write_file("a1234");
    write_undo(&m);
    expect_undo(TNF_UNDO_MIXED, "a1234END");
    write_file("b1234xyz"); /* the undo file of another file */
    write_undo(&m);
    expect_undo(TNF_UNDO_FOREIGN, "b1234xyz");
}

static void files_that_grew(void **state)
{
    (void)state;
    struct made m = undo_of(4, 8, 1);
    add_range(&m, 2, "cd", "wxyzZZ");
    write_file("abwxyzZZ");
    write_undo(&m);
    expect_undo(TNF_UNDO_WHOLE, "abwxyzZZ");
    write_file("abcdyzZZ");
    write_undo(&m);
    expect_undo(TNF_UNDO_MIXED, "abcd");
    write_file("abwx");
    write_undo(&m);
    expect_undo(TNF_UNDO_MIXED, "abcd");
    write_file("abcdyz??"); /* no change wrote these bytes */
    write_undo(&m);
    expect_undo(TNF_UNDO_FOREIGN, "abcdyz??");
}

/* Ranges that overlap, go backwards, or lie outside the file make an undo file invalid. */
static void wild_ranges(void **state)
{
    (void)state;
    static const struct {
        uint64_t at[2];
    } wild[] = { { { 3, 1 } }, { { 1, 2 } }, { { 1, 9 } }, { { 1, UINT64_MAX } } };
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        struct made m = undo_of(10, 10, 2);
        add_range(&m, wild[i].at[0], "ab", "xy");
        add_range(&m, wild[i].at[1], "ab", "xy");
        write_file("0xyz45de89");
        write_undo(&m);
        expect_undo(TNF_UNDO_WHOLE, "0xyz45de89");
    }
    struct made m = undo_of(10, 10, UINT64_MAX / 8);
    write_file("0xyz45de89");
    write_undo(&m);
    expect_undo(TNF_UNDO_WHOLE, "0xyz45de89");
}

static void mixed_with_undo(void)
{
    struct made m = undo_of(4, 4, 1);
    add_range(&m, 0, "ab", "xy");
    write_file("xbcd");
    write_undo(&m);
    assert_int_equal(look_at_undo(), TNF_UNDO_MIXED);
}

/* Anything with the undo name that is not a regular file of the owner with one link is ignored. */
static void other_kinds(void **state)
{
    (void)state;
    char other[300];
    snprintf(other, sizeof other, "%s/elsewhere", files_temp());
    mixed_with_undo();
    assert_int_equal(link(undo, other), 0);
    assert_int_equal(look_at_undo(), TNF_UNDO_NONE);
    assert_int_equal(unlink(undo), 0);
    assert_int_equal(symlink(other, undo), 0);
    assert_int_equal(look_at_undo(), TNF_UNDO_NONE);
    unlink(undo);
    unlink(other);
    assert_int_equal(mkfifo(undo, 0600), 0);
    assert_int_equal(look_at_undo(), TNF_UNDO_NONE);
    unlink(undo);
    assert_int_equal(mkdir(undo, 0700), 0);
    assert_int_equal(look_at_undo(), TNF_UNDO_NONE);
    rmdir(undo);
    assert_int_equal(symlink("/dev/zero", undo), 0);
    assert_int_equal(look_at_undo(), TNF_UNDO_NONE);
    unlink(undo);
    if (geteuid() != 0)
        return;
    mixed_with_undo();
    assert_int_equal(chown(undo, 1234, (gid_t)-1), 0);
    expect_undo(TNF_UNDO_NONE, "xbcd");
    assert_int_equal(chown(path, 1234, (gid_t)-1), 0); /* both are that user's: it is used */
    expect_undo(TNF_UNDO_MIXED, "abcd");
}

/* A gigabyte of zeros takes neither memory nor time. */
static void huge_undo_files(void **state)
{
    (void)state;
    struct rusage before, after;
    write_file("xbcd");
    int fd = open(undo, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(ftruncate(fd, (off_t)1 << 30), 0);
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(look_at_undo(), TNF_UNDO_NONE);
    assert_int_equal(ftruncate(fd, 300 << 20), 0);
    assert_int_equal(look_at_undo(), TNF_UNDO_WHOLE); /* no magic number: not used */
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 8 << 10);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_real_thing),  cmocka_unit_test(cut_off),
        cmocka_unit_test(files_that_grew), cmocka_unit_test(wild_ranges),
        cmocka_unit_test(other_kinds),     cmocka_unit_test(huge_undo_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
