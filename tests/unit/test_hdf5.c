/* SPDX-License-Identifier: MIT */
/* Tests beyond the fixtures of HDF5: a slice reads only its chunks, and a file that crashes libhdf5
 * is an error with an offset. */
#include "../support/unit.h"
#include <tenfold/build.h>
#include <tenfold/io.h>
#include <tenfold/tenfold.h>
#include <tenfold/virtual.h>

#define VALID  TNF_TESTS_DIR "/formats/hdf5/valid/"
#define REJECT TNF_TESTS_DIR "/formats/hdf5/reject/"

struct counted {
    uint8_t bytes[1 << 16];
    size_t n, reads, read;
};

static tnf_status read_counted(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct counted *c = ctx;
    (void)e;
    assert_true(offset <= c->n && n <= c->n - offset);
    memcpy(dst, c->bytes + offset, n);
    c->reads++;
    c->read += n;
    return TNF_OK;
}

static struct counted counted;

static tnf_file *open_counted(const char *path)
{
    static const tnf_source_ops ops = { .version = 1, .read_at = read_counted };
    tnf_error e;
    tnf_source *source;
    tnf_file *file;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    counted.n = fread(counted.bytes, 1, sizeof counted.bytes, f);
    fclose(f);
    assert_ok(tnf_source_custom(&source, &ops, &counted, counted.n, &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    return file;
}

/* Rows [r, r + rows) and columns [c, c + columns) of [13, 11] are the same as in the whole, with
 * this number of reads, one for each chunk. */
static void check_slice(const tnf_object *o, int64_t r, uint64_t rows, int64_t c, uint64_t columns,
                        size_t reads)
{
    uint8_t whole[13 * 11 * 8], part[sizeof whole];
    size_t width = o->parts->type->bits / 8, n = (size_t)(rows * columns) * width;
    tnf_slice s[2] = { { .start = r, .step = 1, .count = rows },
                       { .start = c, .step = 1, .count = columns } };
    tnf_error e;
    assert_ok(tnf_read(whole, 13 * 11 * width, o, &e));
    counted.reads = counted.read = 0;
    assert_ok(tnf_read_slice(part, n, o, s, &e));
    assert_int_equal(counted.reads, reads);
    for (uint64_t i = 0; i < rows; i++)
        assert_memory_equal(part + i * columns * width,
                            whole + (((uint64_t)r + i) * 11 + (uint64_t)c) * width,
                            columns * width);
}

static void slices_read_their_chunks(void **state)
{
    static const char *const files[] = { VALID "h5py_earliest.h5", VALID "h5py_latest.h5" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tnf_file *f = open_counted(files[i]);
        const tnf_object *deflated = tnf_find(f, "c/deflate"); /* chunks of [4, 3] */
        const tnf_object *plain = tnf_find(f, "c/plain");      /* of [4, 4], a byte each */
        assert_non_null(deflated);
        check_slice(deflated, 0, 4, 0, 3, 1);
        check_slice(deflated, 0, 13, 0, 3, 4);
        check_slice(deflated, 0, 13, 1, 1, 4);
        check_slice(deflated, 12, 1, 0, 11, 4);
        check_slice(deflated, 3, 2, 2, 2, 4);
        check_slice(deflated, 0, 13, 0, 11, 16);
        check_slice(plain, 0, 13, 5, 1, 4);
        assert_int_equal(counted.read, 4 * 16);
        check_slice(plain, 2, 1, 8, 3, 1);
        assert_int_equal(counted.read, 16);
        tnf_close(f);
    }
}

/* One object header of several has a flipped bit: only its content is lost. */
static void a_damaged_object_is_lost_alone(void **state)
{
    (void)state;
    uint8_t four[16], want[4] = { 0, 0, 0x80, 0x3F };
    tnf_file *f = open_counted(REJECT "object_sum.h5");
    tnf_error e;
    assert_non_null(tnf_at(f, 1));
    assert_null(tnf_at(f, 2));
    assert_ok(tnf_read(four, sizeof four, tnf_find(f, "w"), &e));
    assert_memory_equal(four, want, sizeof want);
    assert_fails(tnf_read(four, 0, tnf_find(f, "a"), &e), TNF_EUNSUPPORTED);
    assert_says("does not match its checksum");
    tnf_close(f);
}

/* 8 TiB without stored data: refused as a whole, but slices can be read. */
static void slices_of_a_bomb_are_read(void **state)
{
    (void)state;
    uint8_t four[16],
        want[16] = { 0, 0, 0x40, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0x40, 0x40 };
    tnf_file *f = open_counted(REJECT "bomb.h5");
    const tnf_object *o = tnf_find(f, "w");
    tnf_slice s[2] = { { .start = 2000000, .step = -1000, .count = 2 },
                       { .start = 7, .step = 500, .count = 2 } };
    tnf_error e;
    tnf_virtual *v;
    assert_ok(tnf_read_slice(four, sizeof four, o, s, &e));
    assert_memory_equal(four, want, sizeof four);
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = TNF_VIRTUAL_SLICE;
    how.slices = s;
    assert_ok(tnf_virtual_new(&v, &o, 1, &how, &e));
    memset(four, 0, sizeof four);
    assert_ok(tnf_read(four, sizeof four, tnf_virtual_object(v), &e));
    assert_memory_equal(four, want, sizeof four);
    tnf_virtual_free(v);
    assert_fails(tnf_read_part(four, sizeof four, o->parts, 0, &e), TNF_EUNSUPPORTED);
    assert_says("read slices, or raise the limit");
    tnf_close(f);
}

/* A group with a symbol table, of superblock 0. Its B-tree is at byte 200, and the only child of
 * that node is the node itself: h5py, with libhdf5 2.0.0, crashes with SIGSEGV when it lists the
 * group. */
static void the_file_that_kills_libhdf5_is_an_error(void **state)
{
    static const struct {
        size_t at, n;
        const char *bytes;
    } pieces[] = {
        { 0, 12, "\x89HDF\r\n\x1a\n\0\0\0" }, /* superblock 0 */
        { 13, 2, "\x08\x08" },                /* bytes of offsets, of lengths */
        { 16, 4, "\x04\0\x10" },              /* entries of symbols and of nodes */
        { 32, 8, "\xff\xff\xff\xff\xff\xff\xff\xff" },
        { 40, 2, "\x58\x02" }, /* 600: the end of the file */
        { 48, 8, "\xff\xff\xff\xff\xff\xff\xff\xff" },
        { 64, 1, "\x60" },                            /* 96: the root */
        { 96, 12, "\x01\0\x01\0\x01\0\0\0\x18\0\0" }, /* a message of 24 bytes: */
        { 112, 4, "\x11\0\x10" },                     /* a symbol table of 16 */
        { 120, 1, "\xc8" },                           /* its B-tree at 200 */
        { 128, 2, "\x90\x01" },                       /* its heap at 400 */
        { 200, 8, "TREE\0\x01\x01" },                 /* of a group, level 1, one child: */
        { 208, 8, "\xff\xff\xff\xff\xff\xff\xff\xff" },
        { 216, 8, "\xff\xff\xff\xff\xff\xff\xff\xff" },
        { 232, 1, "\xc8" }, /* at 200 */
        { 240, 1, "\x08" },
        { 400, 4, "HEAP" },
        { 408, 1, "\x10" }, /* of 16 bytes, at 432 */
        { 416, 8, "\xff\xff\xff\xff\xff\xff\xff\xff" },
        { 424, 2, "\xb0\x01" },
        { 440, 1, "w" },
    };
    static uint8_t bytes[600];
    tnf_error e;
    tnf_file *f;
    tnf_source *source;
    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        memcpy(bytes + pieces[i].at, pieces[i].bytes, pieces[i].n);
    assert_ok(tnf_source_memory(&source, bytes, sizeof bytes, &e));
    assert_fails(tnf_open_source(&f, source, NULL, &e), TNF_EFORMAT);
    assert_int_equal(e.offset, 200);
    assert_says("reference loop");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_read_their_chunks),
        cmocka_unit_test(a_damaged_object_is_lost_alone),
        cmocka_unit_test(slices_of_a_bomb_are_read),
        cmocka_unit_test(the_file_that_kills_libhdf5_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
