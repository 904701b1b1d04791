/* SPDX-License-Identifier: MIT */
/* Opening: options, limits, paths, directories, siblings, and copies of the caller's strings. */
#include "../support/fake.h"
#include "../support/files.h"
#include "../support/little.h"
#ifdef __linux__
#include <sys/inotify.h>
#endif

/* A gpt.rs archive, version 2, by its specification: one tensor "w", f32 [2], or with a trailing
 * byte an extra. */
static const uint8_t archive[] = {
    'G', 'P', 'T', 'R', 'S', 'T', 'E', 'N', 2,   0, 0, 0, 42, 0, 0, 0, /* version, index_len */
    1,   0,   0,   0,   1,   0,   0,   0,   'w', 1, 0, 0, 0,  2, 0, 0,
    0,   0,   0,   0,   0, /* count, name, rank, dim */
    0,   0,   0,   0,   0,   58,  0,   0,   0,   0, 0, 0, 0,  8, 0, 0,
    0,   0,   0,   0,   0,                 /* f32, no grad, at 58, 8 */
    0,   0,   128, 63,  0,   0,   0,   64, /* 1, 2 */
};

static char path[300];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/a.gten", files_temp());
    bytes_to_file(path, archive, sizeof archive);
    return 0;
}

static void a_file(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *f;
    float v[2];
    assert_ok(tnf_open(&f, path, NULL, &e));
    const tnf_info *info = tnf_file_info(f);
    assert_string_equal(info->format, "gptrs-archive");
    assert_string_equal(info->version, "2");
    assert_int_equal(info->size, sizeof archive);
    assert_int_equal(info->payload, 8);
    assert_int_equal(info->objects, 1);
    assert_non_null(info->attrs);
    assert_int_equal(info->attrs->kind, TNF_MAP);
    assert_int_equal(info->nextras + info->nwarnings, 0);
    assert_ptr_equal(tnf_at(f, 0), tnf_find(f, "w"));
    assert_null(tnf_at(f, 1));
    assert_null(tnf_find(f, "W"));
    assert_null(tnf_find_n(f, "w\0", 2));
    assert_ok(tnf_read(v, sizeof v, tnf_find(f, "w"), &e));
    from_little(v, 4, 2);
    assert_true(v[0] == 1.0f && v[1] == 2.0f);
    tnf_close(f);
    tnf_close(NULL);
}

static void a_named_format(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *f;
    tnf_open_options o = TNF_OPEN_INIT;
    o.format = "gptrs-archive";
    assert_ok(tnf_open(&f, path, &o, &e));
    tnf_close(f);
    o.format = "gptrs-checkpoint"; /* no probing: this format must try */
    assert_true(tnf_open(&f, path, &o, &e) != TNF_OK);
    assert_null(f);
    assert_says("gptrs-checkpoint: ");
    o.format = "no such";
    assert_fails(tnf_open(&f, path, &o, &e), TNF_ENOTFOUND);
}

static void options_of_the_format(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *f;
    tnf_option option = { "nosuch", "1" };
    tnf_open_options o = { .size = sizeof o, .options = &option, .noptions = 1 };
    assert_fails(tnf_open(&f, path, &o, &e), TNF_EINVAL);
    assert_says("nosuch");
}

static void opens_directories(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *f;
    char dir[300], inside[320];
    snprintf(dir, sizeof dir, "%s/model", files_temp());
    snprintf(inside, sizeof inside, "%s/weights.gten", dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_fails(tnf_open(&f, dir, NULL, &e), TNF_ENOTFOUND);
    bytes_to_file(inside, archive, sizeof archive);
    assert_ok(tnf_open(&f, dir, NULL, &e));
    assert_int_equal(tnf_file_info(f)->objects, 1);
    tnf_close(f);
}

static void nothing_there(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *f = (tnf_file *)&e;
    assert_fails(tnf_open(&f, "/nonexistent/file", NULL, &e), TNF_ENOTFOUND);
    assert_null(f);
    assert_fails(tnf_open(&f, "", NULL, &e), TNF_ENOTFOUND);
    assert_int_equal(tnf_open(&f, "/nonexistent/file", NULL, NULL), TNF_ENOTFOUND);
    char link_path[320];
    snprintf(link_path, sizeof link_path, "%s/loop", files_temp());
    assert_int_equal(symlink("loop", link_path), 0);
    assert_fails(tnf_open(&f, link_path, NULL, &e), TNF_EIO);
}

static unsigned closed;

static void count_close(void *ctx)
{
    (void)ctx;
    closed++;
}

static tnf_status read_archive(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)ctx, (void)e;
    memcpy(dst, archive + offset, n);
    return TNF_OK;
}

/* The source belongs to the handle, also if opening fails for any reason. */
static void sources_are_taken(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *f;
    tnf_source *s;
    tnf_source_ops ops = { .version = 1, .read_at = read_archive, .close = count_close };
    assert_ok(tnf_source_custom(&s, &ops, NULL, sizeof archive, &e));
    assert_ok(tnf_open_source(&f, s, NULL, &e));
    assert_int_equal(closed, 0);
    tnf_close(f);
    assert_int_equal(closed, 1);
    assert_ok(tnf_source_custom(&s, &ops, NULL, 20, &e)); /* cut */
    assert_true(tnf_open_source(&f, s, NULL, &e) != TNF_OK);
    assert_int_equal(closed, 2);
    struct memory_log log = { .fail_at = 1 };
    tnf_open_options o = { .size = sizeof o, .allocator = memory_allocator(&log) };
    assert_ok(tnf_source_custom(&s, &ops, NULL, sizeof archive, &e));
    assert_fails(tnf_open_source(&f, s, &o, &e), TNF_ENOMEM);
    assert_int_equal(closed, 3);
}

/* -------------------------------------------------------------- siblings */

static tnf_status open_sibling(struct fake *f, const char *name, size_t n, const tnf_file **out,
                               tnf_error *e)
{
    return tnf_open_sibling(f->r, out, (tnf_str) { name, n }, "gptrs-archive", e);
}

static void opens_siblings(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    const tnf_file *a, *b;
    char dir[300], below[320];
    snprintf(dir, sizeof dir, "%s/", files_temp());
    snprintf(below, sizeof below, "%s/below", files_temp());
    assert_int_equal(mkdir(below, 0700), 0);
    snprintf(below, sizeof below, "%s/below/b.gten", files_temp());
    bytes_to_file(below, archive, sizeof archive);
    fake_begin(&f, "", 0, 0, false);
    assert_fails(open_sibling(&f, "a.gten", 6, &a, &e),
                 TNF_EUNSUPPORTED); /* no path, no siblings */
    f.file->directory = dir;
    f.file->options.allocator = f.file->alloc;
    assert_ok(open_sibling(&f, "a.gten", 6, &a, &e));
    assert_ok(open_sibling(&f, "a.gten", 6, &b, &e));
    assert_ptr_equal(a, b); /* opened only once */
    assert_ok(open_sibling(&f, "below/b.gten", 12, &b, &e));
    assert_ptr_not_equal(a, b);
    assert_fails(open_sibling(&f, "none.gten", 9, &b, &e), TNF_ENOTFOUND);
    assert_says("none.gten: ");
    static const struct {
        const char *name;
        size_t n;
    } bad[] = { { "", 0 },          { "/etc/passwd", 11 },  { "..", 2 },
                { "../a.gten", 9 }, { "below/..", 8 },      { "below/../a.gten", 15 },
                { "a.gten\0x", 8 }, { "below\\b.gten", 12 } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(open_sibling(&f, bad[i].name, bad[i].n, &b, &e), TNF_EFORMAT);
    static const char *const fine[] = { "..a", "a..", "below/..b", "..." }; /* legal */
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        assert_fails(open_sibling(&f, fine[i], strlen(fine[i]), &b, &e), TNF_ENOTFOUND);
    /* below a directory that the user chose, with and without a slash at its end */
    uint64_t size;
    char place[320];
    snprintf(place, sizeof place, "%s/below", files_temp());
    assert_ok(tnf_open_stored(f.r, &a, place, (tnf_str) { "b.gten", 6 }, "gptrs-archive", &e));
    assert_non_null(tnf_file_origin(a, &size));
    assert_int_equal(size, sizeof archive);
    snprintf(place, sizeof place, "%s/below/", files_temp());
    assert_ok(tnf_open_stored(f.r, &b, place, (tnf_str) { "b.gten", 6 }, "gptrs-archive", &e));
    assert_fails(tnf_open_stored(f.r, &b, place, (tnf_str) { "../a.gten", 9 }, NULL, &e),
                 TNF_EFORMAT);
    f.file->depth = 100;
    assert_fails(open_sibling(&f, "other.gten", 10, &b, &e), TNF_ELIMIT);
    tnf_close_siblings(f.file);
    fake_end(&f);
}

/* A file is opened once for all of its names: other spellings, and both kinds of links. */
static void aliases_are_one_file(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    const tnf_file *a, *b;
    char dir[300], at[340], link_path[340];
    snprintf(dir, sizeof dir, "%s/aliases/", files_temp());
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(at, sizeof at, "%sa.gten", dir);
    bytes_to_file(at, archive, sizeof archive);
    snprintf(link_path, sizeof link_path, "%shard.gten", dir);
    assert_int_equal(link(at, link_path), 0);
    snprintf(link_path, sizeof link_path, "%ssoft.gten", dir);
    assert_int_equal(symlink("a.gten", link_path), 0);
    snprintf(link_path, sizeof link_path, "%sagain", dir);
    assert_int_equal(symlink(".", link_path), 0);
    fake_begin(&f, "", 0, 0, false);
    f.file->directory = dir;
    f.file->options.allocator = f.file->alloc;
    assert_ok(open_sibling(&f, "a.gten", 6, &a, &e));
    static const char *const names[] = { "./a.gten",     "././a.gten",
                                         ".//a.gten",    "hard.gten",
                                         "soft.gten",    "./soft.gten",
                                         "again/a.gten", "again/./again//hard.gten" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_ok(open_sibling(&f, names[i], strlen(names[i]), &b, &e));
        assert_ptr_equal(a, b);
    }
    assert_int_equal(tnf_sibling_count(f.file), 1);
    assert_true(tnf_sibling_named(f.file, "a.gten"));
    assert_true(tnf_sibling_named(f.file, "soft.gten"));
    assert_false(tnf_sibling_named(f.file, "b.gten"));
    struct stat st;
    assert_int_equal(stat(at, &st), 0);
    assert_true(tnf_sibling_is(f.file, (uint64_t)st.st_dev, (uint64_t)st.st_ino));
    assert_false(tnf_sibling_is(f.file, (uint64_t)st.st_dev, (uint64_t)st.st_ino + 1));
    /* a missing file counts once for all spellings of its name */
    assert_fails(open_sibling(&f, "none", 4, &b, &e), TNF_ENOTFOUND);
    assert_fails(open_sibling(&f, "./none", 6, &b, &e), TNF_ENOTFOUND);
    assert_int_equal(tnf_sibling_count(f.file), 2);
    /* a slash at the end means a directory */
    assert_fails(open_sibling(&f, "a.gten/", 7, &b, &e), TNF_EFORMAT);
    tnf_close_siblings(f.file);
    fake_end(&f);
}

/* A refused file is refused under its other names without reading it again. */
static void refused_once(void **state)
{
    (void)state;
    tnf_error e, again;
    struct fake f;
    const tnf_file *a;
    char dir[300], at[340], other[340];
    snprintf(dir, sizeof dir, "%s/refused/", files_temp());
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(at, sizeof at, "%sbad", dir);
    bytes_to_file(at, "no archive", 10);
    snprintf(other, sizeof other, "%sother", dir);
    assert_int_equal(link(at, other), 0);
    fake_begin(&f, "", 0, 0, false);
    f.file->directory = dir;
    f.file->options.allocator = f.file->alloc;
    assert_true(open_sibling(&f, "bad", 3, &a, &e) < 0);
    bytes_to_file(at, archive, sizeof archive); /* a second read would see this */
    assert_int_equal(open_sibling(&f, "other", 5, &a, &again), e.status);
    assert_string_equal(e.message, again.message);
    assert_int_equal(tnf_sibling_count(f.file), 1);
    tnf_close_siblings(f.file);
    fake_end(&f);
}

/* Reports whether any file in a directory is opened from now on. Only Linux can tell this. */
static int watch_opening(const char *dir)
{
#ifdef __linux__
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(fd >= 0 && inotify_add_watch(fd, dir, IN_OPEN) >= 0);
    return fd;
#else
    (void)dir;
    return -1;
#endif
}

static bool was_opened(int watch)
{
    char events[4096];
    bool opened = watch >= 0 && read(watch, events, sizeof events) > 0;
    if (watch >= 0)
        close(watch);
    return opened;
}

/* Only regular files are opened: opening must not wait for a FIFO. */
static void not_regular(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    const tnf_file *a;
    char dir[300], at[340];
    snprintf(dir, sizeof dir, "%s/odd/", files_temp());
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(at, sizeof at, "%sfifo", dir);
    assert_int_equal(mkfifo(at, 0600), 0);
    snprintf(at, sizeof at, "%szero", dir);
    assert_int_equal(symlink("/dev/zero", at), 0);
    snprintf(at, sizeof at, "%sloop", dir);
    assert_int_equal(symlink("loop", at), 0);
    snprintf(at, sizeof at, "%sgone", dir);
    assert_int_equal(symlink("nothing", at), 0);
    fake_begin(&f, "", 0, 0, false);
    f.file->directory = dir;
    int watch = watch_opening(dir);
    assert_fails(open_sibling(&f, "fifo", 4, &a, &e), TNF_EINVAL);
    assert_says("is not a regular file");
    assert_false(was_opened(watch));
    assert_fails(open_sibling(&f, "zero", 4, &a, &e), TNF_EFORMAT);
    assert_fails(open_sibling(&f, ".", 1, &a, &e), TNF_EFORMAT);
    assert_fails(open_sibling(&f, "loop", 4, &a, &e), TNF_EIO);
    assert_fails(open_sibling(&f, "gone", 4, &a, &e), TNF_ENOTFOUND);
    tnf_close_siblings(f.file);
    fake_end(&f);
}

/* Returns how many files can be opened within a limit; all of them together stay within it. */
static unsigned opened_within(const char *dir, uint64_t limit)
{
    tnf_error e;
    struct fake f;
    const tnf_file *a;
    fake_begin(&f, "", 0, 0, false);
    f.file->directory = dir;
    f.file->options.allocator = f.file->alloc;
    f.file->options.limits.memory = limit;
    tnf_status status = TNF_OK;
    unsigned n = 0;
    for (; n < 40; n++) {
        char name[16];
        snprintf(name, sizeof name, "%u", n);
        status = open_sibling(&f, name, strlen(name), &a, &e);
        if (status != TNF_OK)
            break;
    }
    assert_int_equal(status, TNF_ELIMIT);
    uint64_t sum = 0;
    for (const struct sibling *s = f.file->siblings; s; s = s->next)
        sum += s->file ? s->file->arena.total : 0;
    assert_true(sum <= limit);
    tnf_close_siblings(f.file);
    fake_end(&f);
    return n;
}

static void memory_of_all(void **state)
{
    (void)state;
    char dir[300], at[340];
    snprintf(dir, sizeof dir, "%s/many/", files_temp());
    assert_int_equal(mkdir(dir, 0700), 0);
    for (unsigned i = 0; i < 40; i++) {
        snprintf(at, sizeof at, "%s%u", dir, i);
        bytes_to_file(at, archive, sizeof archive);
    }
    for (uint64_t limit = 10000; limit < 12000; limit += 50) {
        unsigned n = opened_within(dir, limit);
        assert_true(n > 2 && n < 30);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file),
        cmocka_unit_test(a_named_format),
        cmocka_unit_test(options_of_the_format),
        cmocka_unit_test(opens_directories),
        cmocka_unit_test(nothing_there),
        cmocka_unit_test(sources_are_taken),
        cmocka_unit_test(opens_siblings),
        cmocka_unit_test(aliases_are_one_file),
        cmocka_unit_test(refused_once),
        cmocka_unit_test(not_regular),
        cmocka_unit_test(memory_of_all),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
