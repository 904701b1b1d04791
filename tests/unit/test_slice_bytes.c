/* SPDX-License-Identifier: MIT */
/* A slice reads the chunks that it needs, or only its rows if there are no chunks. The test counts
 * the bytes that read calls return, as the kernel counts them, for files and directories. HDF5's
 * chunks and zip archives of Zarr in memory have tests of their own. */
#include "../support/files.h"
#include "../support/little.h"
#include "../support/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tenfold/build.h>
#include <tenfold/tenfold.h>
#include <unistd.h>

#define ROWS   256u
#define COLS   64u /* of 4 bytes: a row has 256, a chunk of 4 KiB has 16 rows */
#define ROW    (COLS * 4u)
#define VALID  TNF_TESTS_DIR "/formats/"
#define NOBODY UINT64_MAX

static uint32_t numbers[ROWS * COLS];
static char folder[128];

static int set_up(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ROWS * COLS; i++)
        numbers[i] = i * 2654435761u; /* codecs cannot compress these */
    snprintf(folder, sizeof folder, "/tmp/test_slice_bytes.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(folder, files_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* The number of bytes that this process has read; NOBODY: the kernel does not count them. */
static uint64_t read_so_far(void)
{
    char text[512] = "";
    int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    const char *at = n > 0 ? strstr(text, "rchar: ") : NULL;
    if (fd >= 0)
        close(fd);
    return at ? strtoull(at + 7, NULL, 10) : NOBODY;
}

/* The number of bytes that reading the slice reads, without those of counting. */
static uint64_t read_counted(const tnf_object *o, const tnf_slice *s, void *dst, size_t n)
{
    tnf_error e;
    uint64_t before = read_so_far(), own = read_so_far() - before;
    before = read_so_far();
    assert_ok(tnf_read_slice(dst, n, o, s, &e));
    return read_so_far() - before - own;
}

/* "a", and "b" as other data in the file. */
static void save_numbers(const char *path, const tnf_option *options, size_t n)
{
    static const uint64_t shape[] = { ROWS, COLS };
    static const char *const names[] = { "a", "b" };
    tnf_save_options how = TNF_SAVE_INIT;
    tnf_error e;
    tnf_builder *b;
    const void *bytes = to_little(numbers, 4, ROWS * COLS);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    for (int i = 0; i < 2; i++)
        assert_ok(tnf_builder_add(b, names[i], tnf_type_of(TNF_U32), 2, shape, bytes, &e));
    how.options = options;
    how.noptions = n;
    how.no_sync = true;
    assert_ok(tnf_save(b, path, &how, &e));
    tnf_builder_free(b);
}

struct kind {
    const char *name;
    tnf_option options[4];
    /* the fewest and most bytes for two rows, and for four elements of four chunks */
    uint64_t rows[2], few[2];
};

static void check_kind(const struct kind *k)
{
    const tnf_slice rows[] = { { 17, 1, 2, false }, { 0, 1, COLS, false } };
    const tnf_slice few[] = { { 58, 64, 4, false }, { 3, 1, 1, false } };
    uint32_t found[2 * COLS];
    size_t n = 0;
    char path[200];
    tnf_error e;
    tnf_file *f;
    while (n < 4 && k->options[n].key)
        n++;
    snprintf(path, sizeof path, "%s/%s", folder, k->name);
    save_numbers(path, k->options, n);
    assert_ok(tnf_open(&f, path, NULL, &e));
    const tnf_object *o = tnf_find(f, "a");
    assert_non_null(o);
    uint64_t took = read_counted(o, rows, found, sizeof found);
    from_little(found, 4, 2 * COLS);
    assert_memory_equal(found, numbers + (size_t)17 * COLS, sizeof found);
    if (took < k->rows[0] || took > k->rows[1])
        fail_msg("%s: two rows took %llu bytes", k->name, (unsigned long long)took);
    took = read_counted(o, few, found, 16);
    from_little(found, 4, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(found[i], numbers[(58 + 64 * i) * COLS + 3]);
    if (took < k->few[0] || took > k->few[1])
        fail_msg("%s: four elements took %llu bytes", k->name, (unsigned long long)took);
    tnf_close(f);
}

#define CHUNK ((uint64_t)4096)

static void slices_read_what_they_need(void **state)
{
    /* The index of a shard of 16 chunks has 16 bytes for each, and a CRC. Codecs need a little more
     * than the chunk if they cannot compress it; members of an archive have headers. */
    static const struct kind kinds[] = {
        { "v2.zarr",
          { { "version", "2" }, { "chunks", "4096" }, { "codec", "none" } },
          { CHUNK, CHUNK },
          { 4 * CHUNK, 4 * CHUNK } },
        { "v2.zarr.zip",
          { { "version", "2" }, { "chunks", "4096" }, { "codec", "none" } },
          { CHUNK, CHUNK + 400 },
          { 4 * CHUNK, 4 * (CHUNK + 400) } },
        { "v2g.zarr",
          { { "version", "2" }, { "chunks", "4096" }, { "codec", "gzip" } },
          { 512, CHUNK + 64 },
          { 16, 4 * (CHUNK + 64) } },
        { "v3.zarr",
          { { "chunks", "4096" }, { "codec", "none" } },
          { CHUNK, CHUNK },
          { 4 * CHUNK, 4 * CHUNK } },
        { "v3z.zarr",
          { { "chunks", "4096" }, { "codec", "zstd" } },
          { 512, CHUNK + 64 },
          { 16, 4 * (CHUNK + 64) } },
        { "shard.zarr",
          { { "chunks", "4096" }, { "codec", "none" }, { "shard", "16" } },
          { CHUNK, CHUNK + 260 },
          { 4 * CHUNK, 4 * (CHUNK + 260) } },
        { "a.onnx",
          { { "bare", "yes" }, { "external", "always" } },
          { 512, 512 },
          { 16, 4 * ROW } },
        { "inside.onnx", { { "bare", "yes" } }, { 512, 512 }, { 16, 4 * ROW } },
        { "a.h5", { { NULL, NULL } }, { 512, 512 }, { 16, 4 * ROW } },
        { "a.msgpack", { { NULL, NULL } }, { 512, 512 }, { 16, 4 * ROW } },
        { "a.npz", { { NULL, NULL } }, { 512, 512 }, { 16, 4 * ROW } },
        /* One stream: up to the end of the rows, and nothing of the other array. */
        { "packed.npz", { { "compress", "deflate" } }, { 512, 66000 }, { 16, 66000 } },
    };
    (void)state;
    if (read_so_far() == NOBODY)
        skip();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        check_kind(&kinds[i]);
}

/* Fixtures of formats that can only be read: a tensor of several pieces, a slice of one or two of
 * them. */
static void slices_of_fixtures_do(void **state)
{
    static const struct {
        const char *path, *name;
        tnf_slice s[2];
        size_t bytes;
        uint64_t most;
    } all[] = {
        /* OCDBT: eight values of 512 bytes, in a member of an archive: its header, and 96 bytes
           more */
        { VALID "orbax/valid/chunked.orbax.zip",
          "w",
          { { 5, 1, 1, false }, { 0, 1, 128, false } },
          512,
          512 + 160 },
        { VALID "orbax/valid/chunked.orbax.zip",
          "w",
          { { 7, -3, 2, false }, { 9, 1, 1, false } },
          8,
          2 * (512 + 160) },
        /* A variable in slices: only the necessary slices, and only rows of them */
        { VALID "tensorbundle/valid/slices/ckpt.index",
          "grid",
          { { 1, 1, 1, false }, { 0, 1, 100, false } },
          400,
          400 },
        { VALID "tensorbundle/valid/slices/ckpt.index",
          "rows",
          { { 4, 1, 1, false }, { 0, 1, 3, false } },
          12,
          12 },
    };
    uint8_t part[512], whole[8 * 512];
    tnf_error e;
    tnf_file *f;
    (void)state;
    if (read_so_far() == NOBODY)
        skip();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const tnf_slice *s = all[i].s;
        assert_ok(tnf_open(&f, all[i].path, NULL, &e));
        const tnf_object *o = tnf_find(f, all[i].name);
        assert_non_null(o);
        uint64_t took = read_counted(o, s, part, all[i].bytes);
        if (took < all[i].bytes || took > all[i].most)
            fail_msg("%s: %llu bytes", all[i].path, (unsigned long long)took);
        assert_ok(tnf_read(whole, (size_t)o->parts->nbytes, o, &e));
        size_t row = (size_t)s[1].count * 4;
        for (uint64_t k = 0; k < s[0].count; k++) {
            int64_t at = s[0].start + (int64_t)k * s[0].step;
            size_t from = ((size_t)at * (size_t)o->shape[1] + (size_t)s[1].start) * 4;
            assert_memory_equal(part + k * row, whole + from, row);
        }
        tnf_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_read_what_they_need),
        cmocka_unit_test(slices_of_fixtures_do),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
