/* SPDX-License-Identifier: MIT */
/* What the fixtures of HDF5 cannot say: that a slice reads only its chunks, and that the same
 * content becomes the same bytes. */
#include "../support/unit.h"
#include <tenfold/build.h>
#include <tenfold/io.h>
#include <tenfold/tenfold.h>

#define VALID TNF_TESTS_DIR "/formats/hdf5/valid/"

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

/* Rows [r, r + rows) and columns [c, c + columns) of [13, 11]: as the whole has them, in so many
 * reads, which is one for each chunk. */
static void check_slice(const tnf_object *o, int64_t r, uint64_t rows, int64_t c, uint64_t columns,
                        size_t reads)
{
    uint8_t whole[13 * 11 * 8], part[sizeof whole];
    size_t width = o->parts->type->bits / 8, n = (size_t)(rows * columns) * width;
    tnf_slice s[2] = { { .start = r, .step = 1, .count = rows },
                       { .start = c, .step = 1, .count = columns } };
    tnf_error e;
    assert_ok(tnf_read(o, whole, 13 * 11 * width, &e));
    counted.reads = counted.read = 0;
    assert_ok(tnf_read_slice(o, s, part, n, &e));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_read_their_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
