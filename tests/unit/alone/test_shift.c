/* SPDX-License-Identifier: MIT */
/* Shifting a file: the result, the refused cases, and that an interruption at any place is undone.
 * The file system's own call is replaced by one that copies, so that the test can interrupt it
 * anywhere, on any file system; the last test uses the real call. Therefore this is a program of
 * its own. */
#include "../../support/files.h"
#include "../../support/unit.h"
#include <tenfold/build.h>
#include <tenfold/repair.h>
#include <tenfold/tenfold.h>
#include <tenfold/value.h>

#include <fcntl.h>
#include <sys/syscall.h>

#define VALUES 5000u
#define BLOCK  4096u
#define NEVER  UINT64_MAX

static tnf_error e;
static char path[300], undo[300], text[3000];

/* --------------------------------------------------------- the system call */

static enum { COPIES, REFUSES, ASKS } how_it_inserts;
static uint64_t insert_stops, remove_stops; /* at this byte, with EIO */

static void whole_write(int fd, const uint8_t *p, size_t n, uint64_t at)
{
    assert_int_equal(pwrite(fd, p, n, (off_t)at), n);
}

/* The kernel's own call, since this program replaces the function. 32-bit machines pass numbers in
 * two halves. */
static int ask_kernel(int fd, int mode, uint64_t at, uint64_t n)
{
#if __SIZEOF_LONG__ == 4
    return (int)syscall(SYS_fallocate, fd, mode, (uint32_t)at, (uint32_t)(at >> 32), (uint32_t)n,
                        (uint32_t)(n >> 32));
#else
    return (int)syscall(SYS_fallocate, fd, mode, at, n);
#endif
}

static void make_hole(int fd, uint64_t at, uint64_t n)
{
    assert_int_equal(ask_kernel(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, n), 0);
}

static int fail_with(int err)
{
    errno = err;
    return -1;
}

/* Blocks go one after the other, from the end: those before `stop` stay. */
static int insert_copying(int fd, uint64_t n)
{
    struct bytes b = bytes_of_file(path);
    uint64_t stop = insert_stops == NEVER ? 0 : insert_stops;
    whole_write(fd, b.p + stop, b.n - (size_t)stop, stop + n);
    make_hole(fd, stop, n);
    free(b.p);
    return insert_stops == NEVER ? 0 : fail_with(EIO);
}

/* From the beginning: the blocks from `stop` on stay. */
static int remove_copying(int fd, uint64_t at, uint64_t n)
{
    struct bytes b = bytes_of_file(path);
    uint64_t stop = remove_stops == NEVER ? b.n : at + n + remove_stops;
    stop = stop > b.n ? b.n : stop;
    whole_write(fd, b.p + at + n, (size_t)(stop - at - n), at);
    if (remove_stops == NEVER)
        assert_int_equal(ftruncate(fd, (off_t)(b.n - n)), 0);
    else /* the last block is moved completely, too */
        make_hole(fd, stop - n, stop == b.n ? 2 * n : n);
    free(b.p);
    return remove_stops == NEVER ? 0 : fail_with(EIO);
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
    if (how_it_inserts == ASKS)
        return ask_kernel(fd, mode, (uint64_t)at, (uint64_t)n);
    if (how_it_inserts == REFUSES)
        return fail_with(EOPNOTSUPP);
    return mode == FALLOC_FL_INSERT_RANGE ? insert_copying(fd, (uint64_t)n)
                                          : remove_copying(fd, (uint64_t)at, (uint64_t)n);
}

/* ----------------------------------------------------------------- the file */

static float value_at(size_t i)
{
    return (float)i + 1.5F;
}

static struct bytes make_file(const char *alignment)
{
    static float values[VALUES];
    const uint64_t shape[1] = { VALUES };
    const tnf_value llama = tnf_value_string("llama");
    const tnf_option option = { "alignment", alignment };
    tnf_builder *b;
    for (size_t i = 0; i < VALUES; i++)
        values[i] = value_at(i);
    snprintf(path, sizeof path, "%s/file.gguf", files_temp());
    snprintf(undo, sizeof undo, "%s/.file.gguf.tenfold-undo", files_temp());
    (void)unlink(path);
    (void)unlink(undo);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_set(b, NULL, "gguf.general.architecture", &llama, &e));
    assert_ok(tnf_builder_add(b, "w", tnf_type_of(TNF_F32), 1, shape, values, &e));
    tnf_save_options how = { .size = sizeof how, .format = "gguf", .options = &option };
    how.noptions = 1;
    assert_ok(tnf_save(b, path, &how, &e));
    tnf_builder_free(b);
    how_it_inserts = COPIES;
    insert_stops = remove_stops = NEVER;
    memset(text, 'x', sizeof text);
    return bytes_of_file(path);
}

static tnf_status add_text(size_t n)
{
    tnf_file *f;
    tnf_builder *b;
    const tnf_value v = tnf_value_text(text, n);
    tnf_open_options to_change = { .size = sizeof to_change, .to_change = true };
    assert_ok(tnf_open(&f, path, &to_change, &e));
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_file(b, f, &e));
    assert_ok(tnf_builder_set(b, NULL, "gguf.general.name", &v, &e));
    tnf_save_options how = { .size = sizeof how, .like = f, .shift = true };
    tnf_status status = tnf_save_in_place(b, path, &how, &e);
    tnf_builder_free(b);
    tnf_close(f);
    return status;
}

static void check_file(size_t n)
{
    static float got[VALUES];
    tnf_file *f;
    assert_ok(tnf_open(&f, path, NULL, &e));
    assert_ok(tnf_read(got, sizeof got, tnf_find(f, "w"), &e));
    for (size_t i = 0; i < VALUES; i++)
        assert_true(got[i] == value_at(i));
    const tnf_value *name = tnf_value_get(tnf_file_info(f)->attrs, "gguf.general.name");
    assert_int_equal(name ? name->n : 0, n);
    assert_int_equal(tnf_file_info(f)->nwarnings, 0);
    tnf_close(f);
    assert_int_equal(access(undo, F_OK), -1);
}

static void check_same(const struct bytes *before)
{
    struct bytes now = bytes_of_file(path);
    assert_int_equal(now.n, before->n);
    assert_memory_equal(now.p, before->p, before->n);
    free(now.p);
}

static void check_undone(const struct bytes *before)
{
    bool undone = false;
    assert_ok(tnf_undo(&undone, path, &e));
    assert_true(undone);
    check_same(before);
    check_file(0);
}

/* -------------------------------------------------------------------- tests */

static void longer_header(void **state)
{
    (void)state;
    static const char *const alignments[] = { "8", "32", "4096", "65536" };
    for (size_t i = 0; i < 4; i++) {
        struct bytes before = make_file(alignments[i]);
        assert_ok(add_text(200 + (i == 3) * 2000));
        check_file(200 + (i == 3) * 2000);
        assert_ok(add_text(3000));
        check_file(3000);
        assert_ok(add_text(10)); /* in place, since there is free space now */
        check_file(10);
        struct bytes now = bytes_of_file(path);
        assert_true((now.n - before.n) % BLOCK == 0 && now.n - before.n <= 2 * 65536);
        free(now.p);
        free(before.p);
    }
}

static void refuses_to_shift(void **state)
{
    (void)state;
    struct bytes before = make_file("32");
    char other[320];
    how_it_inserts = REFUSES;
    assert_fails(add_text(3000), TNF_EUNSUPPORTED);
    assert_says("the file system cannot insert bytes");
    check_same(&before);
    check_file(0);
    how_it_inserts = COPIES;
    snprintf(other, sizeof other, "%s/other", files_temp());
    assert_int_equal(link(path, other), 0);
    assert_fails(add_text(3000), TNF_EUNSUPPORTED);
    assert_says("hard links");
    unlink(other);
    free(before.p);
    before = make_file("32");
    int fd = open(path, O_RDWR);
    make_hole(fd, 2 * BLOCK, BLOCK);
    close(fd);
    assert_fails(add_text(3000), TNF_EUNSUPPORTED);
    assert_says("holes");
    free(before.p);
}

/* Inserting is interrupted at a block: it is undone at once, or by a later undo. */
static void stopped_inserting(void **state)
{
    (void)state;
    for (uint64_t stop = 0; stop < VALUES * sizeof(float); stop += BLOCK) {
        struct bytes before = make_file("32");
        insert_stops = stop;
        assert_fails(add_text(3000), TNF_EIO);
        check_same(&before);
        check_file(0);
        remove_stops = 0;
        assert_fails(add_text(3000), TNF_EIO);
        assert_says("tenfold repair");
        assert_int_equal(access(undo, F_OK), 0);
        tnf_file *f = NULL;
        assert_true(tnf_open(&f, path, NULL, &e) != TNF_OK);
        bool undone;
        assert_true(tnf_undo(&undone, path, &e) != TNF_OK);
        remove_stops = NEVER;
        check_undone(&before);
        free(before.p);
    }
}

/* … and removing the blocks is interrupted, too, several times. */
static void stopped_removing(void **state)
{
    (void)state;
    bool undone;
    for (uint64_t stop = 0; stop < VALUES * sizeof(float); stop += BLOCK) {
        struct bytes before = make_file("32");
        insert_stops = stop;
        remove_stops = stop == 2 * BLOCK ? BLOCK : 0;
        assert_fails(add_text(3000), TNF_EIO);
        remove_stops = BLOCK;
        tnf_status status = TNF_EIO;
        for (int i = 0; i < 3 && status != TNF_OK; i++) /* the last step does not remove blocks */
            status = tnf_undo(&undone, path, &e);
        assert_int_equal(status == TNF_OK, stop > BLOCK);
        remove_stops = NEVER;
        if (status == TNF_OK)
            check_same(&before);
        else
            check_undone(&before);
        check_file(0);
        free(before.p);
    }
}

/* All blocks are moved, and the machine stops while the header is written. */
static void stopped_writing(void **state)
{
    (void)state;
    struct bytes before = make_file("32");
    for (size_t written = 1; written < BLOCK + 60; written += 701) {
        insert_stops = remove_stops = 0;
        assert_fails(add_text(3000), TNF_EIO);
        struct bytes kept = bytes_of_file(undo);
        size_t n = (kept.n - 64 - BLOCK) / 2; /* "TNFSHIFT", sizes, the old header, the new one */
        int fd = open(path, O_RDWR);
        assert_true(written < n + BLOCK);
        whole_write(fd, kept.p + 32 + n, written, 0);
        close(fd);
        remove_stops = NEVER;
        check_undone(&before);
        free(kept.p);
    }
    free(before.p);
}

/* An undo file of a file that was replaced since, and a truncated undo file, have no effect. */
static void not_of_this_file(void **state)
{
    (void)state;
    bool undone;
    struct bytes before = make_file("32");
    insert_stops = remove_stops = 0;
    assert_fails(add_text(3000), TNF_EIO);
    struct bytes kept = bytes_of_file(undo), now = bytes_of_file(path);
    bytes_to_file(path, before.p, before.n);
    memset(before.p + 4, 0x77, 8);
    bytes_to_file(path, before.p, before.n);
    assert_ok(tnf_undo(&undone, path, &e));
    assert_false(undone);
    check_same(&before);
    for (size_t n = 8; n < kept.n; n += 37) {
        bytes_to_file(undo, kept.p, n);
        bytes_to_file(path, now.p, now.n);
        assert_ok(tnf_undo(&undone, path, &e));
        assert_false(undone);
        check_same(&now);
    }
    kept.p[16] ^= 1; /* the size of the shift */
    bytes_to_file(undo, kept.p, kept.n);
    assert_ok(tnf_undo(&undone, path, &e));
    assert_false(undone);
    free(kept.p);
    free(now.p);
    free(before.p);
}

static void on_this_file_system(void **state)
{
    (void)state;
    struct bytes before = make_file("32");
    how_it_inserts = ASKS;
    tnf_status status = add_text(3000);
    assert_true(status == TNF_OK || status == TNF_EUNSUPPORTED);
    if (status == TNF_OK)
        check_file(3000);
    else
        check_same(&before);
    free(before.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longer_header),       cmocka_unit_test(refuses_to_shift),
        cmocka_unit_test(stopped_inserting),   cmocka_unit_test(stopped_removing),
        cmocka_unit_test(stopped_writing),     cmocka_unit_test(not_of_this_file),
        cmocka_unit_test(on_this_file_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
