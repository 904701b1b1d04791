/* SPDX-License-Identifier: MIT */
/* Zip archives and directories as containers: the same members from both, links that must not be
 * followed, and directories that appear complete or not at all. */
#include "../support/fake.h"
#include "base/crc32.h"
#include "container/folder_sink.h"
#include "container/path.h"
#include "container/zip_sink.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[200];

static const struct {
    const char *name, *text;
} given[] = {
    { "a.bin", "first" }, { "empty", "" }, { "sub/b.bin", "second" }, { "sub/c/d", "x" }
};

enum { GIVEN = sizeof given / sizeof *given };

static const char *in_root(const char *name)
{
    static char path[2][600];
    static unsigned turn;
    char *p = path[turn++ % 2];
    snprintf(p, sizeof path[0], "%s/%s", root, name);
    return p;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/tenfold-container-XXXXXX");
    assert_non_null(mkdtemp(root));
    return 0;
}

static int tear_down(void **state)
{
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static void begin_arena(tnf_arena *arena)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena_init(arena, &a, 1 << 20);
}

static tnf_str as_str(const char *text)
{
    return (tnf_str) { text, strlen(text) };
}

static void put_file(const char *name, const char *text)
{
    FILE *f = fopen(in_root(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static size_t count_entries(const char *name)
{
    DIR *dir = opendir(in_root(name));
    size_t n = 0;
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

/* ------------------------------------------------------- both kinds alike */

static void put_zip(tnf_sink *sink)
{
    tnf_error e;
    tnf_zip_sink z;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_zip_sink_begin(&z, sink, TNF_ZIP_PYTHON, &a);
    for (size_t i = 0; i < GIVEN; i++) {
        tnf_zip_put m = { .name = as_str(given[i].name) };
        size_t n = strlen(given[i].text);
        assert_ok(tnf_zip_sink_member(&z, &m, &e));
        assert_ok(tnf_sink_write(sink, given[i].text, n, &e));
        assert_ok(tnf_zip_sink_member_end(&z, n, tnf_crc32(0, given[i].text, n), &e));
    }
    assert_ok(tnf_zip_sink_end(&z, (tnf_str) { "", 0 }, &e));
    tnf_zip_sink_free(&z);
}

static tnf_status put_member(tnf_folder_sink *f, const char *name, const char *text, tnf_error *e)
{
    tnf_sink *sink;
    TNF_TRY(tnf_folder_sink_member(f, as_str(name), &sink, e));
    TNF_TRY(tnf_sink_write(sink, text, strlen(text), e));
    return tnf_folder_sink_member_end(f, e);
}

static void put_folder(const char *name, unsigned flags)
{
    tnf_error e;
    tnf_folder_sink f;
    assert_ok(tnf_folder_sink_begin(&f, in_root(name), flags, NULL, &e));
    for (size_t i = 0; i < GIVEN; i++)
        assert_ok(put_member(&f, given[i].name, given[i].text, &e));
    assert_ok(tnf_folder_sink_end(&f, &e));
    tnf_folder_sink_free(&f);
}

static tnf_status take_text(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    (void)e;
    strncat(ctx, bytes, n);
    return TNF_OK;
}

static void check_members(const tnf_container *c)
{
    tnf_error e;
    assert_int_equal(c->n, GIVEN);
    for (size_t i = 0; i < GIVEN; i++) {
        const tnf_container_member *m = &c->members[i];
        tnf_member_place place, again;
        tnf_member_near near, other;
        char text[32] = "", part[8] = "";
        size_t n = strlen(given[i].text);
        assert_int_equal(tnf_container_find(c, as_str(given[i].name)), i);
        assert_int_equal(m->size, n);
        assert_int_equal(m->stored, n);
        assert_false(m->directory || m->deflated);
        if (m->has_crc)
            assert_int_equal(m->crc, tnf_crc32(0, given[i].text, n));
        assert_ok(tnf_container_place(&place, c, i, &e));
        assert_ok(tnf_container_place(&again, c, i, &e));
        assert_ptr_equal(again.source, place.source);
        assert_ok(tnf_container_scan(&place, m, take_text, text, &e));
        assert_string_equal(text, given[i].text);
        assert_ok(tnf_container_read(&place, m, n / 2, part, n - n / 2, &e));
        assert_string_equal(part, given[i].text + n / 2);
        assert_fails(tnf_container_read(&place, m, 1, part, n, &e), TNF_ETRUNCATED);
        memset(text, 0, sizeof text);
        assert_ok(tnf_container_place_near(&place, &near, c, i, &e));
        assert_ok(tnf_container_head(&near, &place, m, text, n, &e));
        assert_string_equal(text, given[i].text);
        assert_ok(tnf_container_place_near(&again, &other, c, 0, &e)); /* near another member */
        memset(text, 0, sizeof text);
        assert_ok(tnf_container_head(&other, &place, m, text, n, &e));
        assert_string_equal(text, given[i].text);
        assert_fails(tnf_container_head(&near, &place, m, text, n + 1, &e), TNF_ETRUNCATED);
    }
    assert_int_equal(tnf_container_find(c, as_str("sub")), SIZE_MAX);
}

static void zip_and_folder_alike(void **state)
{
    (void)state;
    tnf_error e;
    tnf_arena arena;
    tnf_sink *sink;
    tnf_source *source;
    tnf_container c;
    begin_arena(&arena);
    tnf_container_how how = { .arena = &arena, .max_directory = 1000, .max_members = 10 };
    assert_ok(tnf_sink_memory(&sink, &e));
    put_zip(sink);
    assert_ok(tnf_sink_commit(sink, &e));
    tnf_str bytes = tnf_sink_bytes(sink);
    assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
    assert_ok(tnf_container_zip(&c, source, &how, &e));
    check_members(&c);
    tnf_container_close(&c);
    tnf_source_close(source);
    tnf_sink_close(sink);
    put_folder("alike", TNF_SINK_NO_SYNC);
    assert_ok(tnf_container_folder(&c, in_root("alike"), NULL, &how, &e));
    check_members(&c);
    tnf_container_close(&c);
    how.max_members = GIVEN - 1;
    assert_fails(tnf_container_folder(&c, in_root("alike"), NULL, &how, &e), TNF_ELIMIT);
    tnf_container_close(&c);
    how = (tnf_container_how) { .arena = &arena, .max_directory = 5, .max_members = 10 };
    assert_fails(tnf_container_folder(&c, in_root("alike"), NULL, &how, &e), TNF_ELIMIT);
    tnf_container_close(&c);
    assert_fails(tnf_container_folder(&c, in_root("none"), NULL, &how, &e), TNF_ENOTFOUND);
    tnf_container_close(&c);
    tnf_arena_free(&arena);
}

/* --------------------------------------------------------- calls to the source */

struct counted {
    tnf_str bytes;
    unsigned calls;
    size_t most; /* longer reads fail */
};

static tnf_status read_counted(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct counted *c = ctx;
    c->calls++;
    if (n > c->most)
        return tnf_fail(e, TNF_EIO, offset, "too long");
    memcpy(dst, c->bytes.p + offset, n);
    return TNF_OK;
}

/* A member's header and its first bytes are read together; an error of this read is returned. */
static void one_read_a_member(void **state)
{
    (void)state;
    tnf_error e;
    tnf_arena arena;
    tnf_sink *sink;
    tnf_source *source;
    tnf_container c;
    begin_arena(&arena);
    tnf_container_how how = { .arena = &arena, .max_directory = 1000, .max_members = 10 };
    assert_ok(tnf_sink_memory(&sink, &e));
    put_zip(sink);
    assert_ok(tnf_sink_commit(sink, &e));
    struct counted counted = { tnf_sink_bytes(sink), 0, SIZE_MAX };
    tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = read_counted };
    assert_ok(tnf_source_custom(&source, &ops, &counted, counted.bytes.n, &e));
    assert_ok(tnf_container_zip(&c, source, &how, &e));
    char text[8] = "";
    tnf_member_near near;
    tnf_member_place p;
    size_t n = strlen(given[2].text);
    counted.calls = 0;
    assert_ok(tnf_container_place_near(&p, &near, &c, 2, &e));
    assert_ok(tnf_container_head(&near, &p, &c.members[2], text, n, &e));
    assert_string_equal(text, given[2].text);
    assert_int_equal(counted.calls, 1);
    counted.most = 16;
    assert_fails(tnf_container_place_near(&p, &near, &c, 0, &e), TNF_EIO);
    tnf_container_close(&c);
    tnf_source_close(source);
    tnf_sink_close(sink);
    tnf_arena_free(&arena);
}

/* ------------------------------------------------------- hostile directories */

static tnf_status place_member(const tnf_container *c, const char *name, tnf_error *e)
{
    tnf_member_place p;
    size_t i = tnf_container_find(c, as_str(name));
    assert_int_not_equal(i, SIZE_MAX);
    return tnf_container_place(&p, c, i, e);
}

static void what_is_no_file(void **state)
{
    (void)state;
    tnf_error e;
    tnf_arena arena;
    tnf_container c;
    assert_int_equal(mkdir(in_root("odd"), 0700), 0);
    assert_int_equal(mkdir(in_root("odd/sub"), 0700), 0);
    put_file("secret", "s");
    put_file("odd/plain", "plain");
    put_file("odd/back\\slash", "b");
    assert_int_equal(symlink("plain", in_root("odd/inside")), 0);
    assert_int_equal(symlink("../secret", in_root("odd/out")), 0);
    assert_int_equal(symlink("/etc/passwd", in_root("odd/absolute")), 0);
    assert_int_equal(symlink("..", in_root("odd/up")), 0);
    assert_int_equal(symlink("sub", in_root("odd/folder")), 0);
    assert_int_equal(symlink("loop", in_root("odd/loop")), 0);
    assert_int_equal(symlink("nowhere", in_root("odd/dangling")), 0);
    assert_int_equal(mkfifo(in_root("odd/fifo"), 0600), 0);
    begin_arena(&arena);
    tnf_container_how how = { .arena = &arena, .max_directory = 1000, .max_members = 20 };
    assert_ok(tnf_container_folder(&c, in_root("odd"), NULL, &how, &e));
    assert_int_equal(c.n, 10); /* none of them through "up" or "folder" */
    assert_ok(place_member(&c, "plain", &e));
    assert_ok(place_member(&c, "inside", &e));
    assert_int_equal(c.members[tnf_container_find(&c, as_str("inside"))].size, 5);
    assert_int_equal(c.members[tnf_container_find(&c, as_str("out"))].size, 0);
    assert_fails(place_member(&c, "out", &e), TNF_EFORMAT);
    assert_says("out: ");
    assert_fails(place_member(&c, "absolute", &e), TNF_EFORMAT);
    assert_fails(place_member(&c, "up", &e), TNF_EFORMAT);
    assert_fails(place_member(&c, "back\\slash", &e), TNF_EFORMAT);
    assert_fails(place_member(&c, "folder", &e), TNF_EINVAL);
    assert_fails(place_member(&c, "fifo", &e), TNF_EINVAL);
    assert_says("not a regular file");
    assert_fails(place_member(&c, "loop", &e), TNF_EIO);
    assert_fails(place_member(&c, "dangling", &e), TNF_ENOTFOUND);
    tnf_container_close(&c);
    tnf_arena_free(&arena);
}

static void what_changes(void **state)
{
    (void)state;
    tnf_error e;
    tnf_arena arena;
    tnf_container c;
    tnf_member_place p;
    char text[8] = "";
    assert_int_equal(mkdir(in_root("moving"), 0700), 0);
    put_file("moving/gone", "gone");
    put_file("moving/grown", "grown");
    put_file("moving/held", "held");
    put_file("moving/swapped", "file");
    begin_arena(&arena);
    tnf_container_how how = { .arena = &arena, .max_directory = 1000, .max_members = 20 };
    assert_ok(tnf_container_folder(&c, in_root("moving"), NULL, &how, &e));
    size_t held = tnf_container_find(&c, as_str("held"));
    assert_ok(tnf_container_place(&p, &c, held, &e));
    assert_int_equal(unlink(in_root("moving/held")), 0); /* it is open, so it can still be read */
    assert_int_equal(unlink(in_root("moving/gone")), 0);
    assert_int_equal(unlink(in_root("moving/swapped")), 0);
    assert_int_equal(symlink("../secret", in_root("moving/swapped")), 0);
    put_file("moving/grown", "much longer");
    assert_ok(tnf_container_read(&p, &c.members[held], 0, text, 4, &e));
    assert_string_equal(text, "held");
    assert_fails(place_member(&c, "gone", &e), TNF_ENOTFOUND);
    assert_fails(place_member(&c, "swapped", &e), TNF_EFORMAT);
    assert_fails(place_member(&c, "grown", &e), TNF_ECHANGED);
    tnf_container_close(&c);
    tnf_arena_free(&arena);
}

/* More files than are kept open: they are opened again, and must be the same files. */
static void many_files(void **state)
{
    (void)state;
    tnf_error e;
    tnf_arena arena;
    tnf_container c;
    char name[40], text[8];
    enum { MANY = 300 };
    tnf_member_place p[MANY];
    assert_int_equal(mkdir(in_root("many"), 0700), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many/%03d", i);
        put_file(name, name + 5);
    }
    begin_arena(&arena);
    tnf_container_how how = { .arena = &arena, .max_directory = 10000, .max_members = 1000 };
    assert_ok(tnf_container_folder(&c, in_root("many"), NULL, &how, &e));
    assert_int_equal(c.n, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_ok(tnf_container_place(&p[i], &c, i, &e));
    assert_true(p[0].source->fd >= 0);
    assert_true(p[MANY - 1].source->fd < 0);
    assert_null(tnf_source_map(p[MANY - 1].source, 0, 3));
    for (size_t i = 0; i < MANY; i++) {
        memset(text, 0, sizeof text);
        assert_ok(tnf_container_read(&p[i], &c.members[i], 0, text, 3, &e));
        assert_int_equal(strtoul(text, NULL, 10), i);
    }
    put_file("many/298", "other");
    assert_int_equal(unlink(in_root("many/299")), 0);
    assert_fails(tnf_source_read(p[298].source, 0, text, 3, &e), TNF_ECHANGED);
    assert_fails(tnf_source_read(p[299].source, 0, text, 3, &e), TNF_ENOTFOUND);
    tnf_container_close(&c);
    tnf_arena_free(&arena);
}

static void too_deep(void **state)
{
    (void)state;
    tnf_error e;
    tnf_arena arena;
    tnf_container c;
    char path[600];
    snprintf(path, sizeof path, "%s/deep", root);
    for (int i = 0; i < 66; i++) {
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path + strlen(path), sizeof path - strlen(path), "/d");
    }
    begin_arena(&arena);
    tnf_container_how how = { .arena = &arena, .max_directory = 1000, .max_members = 20 };
    assert_fails(tnf_container_folder(&c, in_root("deep"), NULL, &how, &e), TNF_ELIMIT);
    tnf_container_close(&c);
    tnf_arena_free(&arena);
}

/* ------------------------------------------------------------ as parts */

static void parts_of_files(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    const tnf_container *c, *again;
    tnf_member_place p;
    tnf_part part = { .role = "data", .type = tnf_type_of(TNF_U8) };
    char text[8] = "";
    put_folder("parts", TNF_SINK_NO_SYNC);
    fake_begin(&f, "", 0, 0, false);
    assert_fails(tnf_open_folder(f.r, &c, &e), TNF_EUNSUPPORTED);
    f.file->directory = in_root("parts");
    assert_ok(tnf_open_folder(f.r, &c, &e));
    assert_ok(tnf_open_folder(f.r, &again, &e));
    assert_ptr_equal(c, again);
    size_t at = tnf_container_find(c, as_str("sub/b.bin"));
    assert_ok(tnf_container_place(&p, c, at, &e));
    assert_fails(tnf_place_part(f.r, &part, &c->members[at], &p, 2, 5, NULL, &e), TNF_ETRUNCATED);
    assert_ok(tnf_place_part(f.r, &part, &c->members[at], &p, 2, 4, NULL, &e));
    assert_int_equal(part.payload, TNF_AT);
    assert_int_equal(part.offset, 2);
    assert_ok(tnf_read_part(text, 4, &part, 0, &e));
    assert_string_equal(text, "cond");
    tnf_container_close(f.file->folder);
    fake_end(&f);
}

/* ------------------------------------------------------------ writing */

/* A name that is too long for a path, and a file at the place of the new directory. */
static void no_place(void **state)
{
    (void)state;
    tnf_error e;
    tnf_folder_sink f;
    tnf_sink *sink;
    char name[5000];
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = i % 100 == 99 ? '/' : 'n';
    name[sizeof name - 1] = 0;
    assert_int_equal(mkdir(in_root("p"), 0700), 0);
    assert_ok(tnf_folder_sink_begin(&f, in_root("p/new"), TNF_SINK_REPLACE, NULL, &e));
    assert_int_not_equal(tnf_folder_sink_member(&f, as_str(name), &sink, &e), TNF_OK);
    assert_ok(put_member(&f, "a", "text", &e));
    put_file("p/new", "a file");
    assert_int_not_equal(tnf_folder_sink_end(&f, &e), TNF_OK);
    assert_says("cannot give the new directory its name");
    tnf_folder_sink_free(&f);
    assert_int_equal(count_entries("p"), 1); /* the file has not changed */
}

static void given_up(void **state)
{
    (void)state;
    tnf_error e;
    tnf_folder_sink f;
    tnf_sink *sink;
    assert_int_equal(mkdir(in_root("w"), 0700), 0);
    assert_ok(tnf_folder_sink_begin(&f, in_root("w/new"), 0, NULL, &e));
    assert_ok(put_member(&f, "a/b/c", "text", &e));
    assert_ok(tnf_folder_sink_member(&f, as_str("half"), &sink, &e));
    assert_ok(tnf_sink_write(sink, "x", 1, &e));
    assert_int_equal(count_entries("w"), 1);
    tnf_sink *other;
    assert_fails(tnf_folder_sink_member(&f, as_str("second"), &other, &e), TNF_EBUG);
    assert_null(other);
    tnf_folder_sink_free(&f);
    assert_int_equal(count_entries("w"), 0);
    assert_fails(tnf_folder_sink_begin(&f, in_root("w/no/where"), 0, NULL, &e), TNF_ENOTFOUND);
    tnf_folder_sink_free(&f);
}

static void names_that_lead_out(void **state)
{
    (void)state;
    tnf_error e;
    tnf_folder_sink f;
    tnf_sink *sink;
    static const char *const bad[] = { "", "/a", "../a", "a/../../b", "a/", ".", "a\\b", "C:a" };
    assert_int_equal(mkdir(in_root("o"), 0700), 0);
    assert_ok(tnf_folder_sink_begin(&f, in_root("o/new"), TNF_SINK_NO_SYNC, NULL, &e));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(tnf_folder_sink_member(&f, as_str(bad[i]), &sink, &e), TNF_EFORMAT);
    assert_ok(put_member(&f, "a", "1", &e));
    assert_fails(tnf_folder_sink_member(&f, as_str("a"), &sink, &e), TNF_EEXISTS);
    assert_int_not_equal(tnf_folder_sink_member(&f, as_str("a/b"), &sink, &e), TNF_OK);
    tnf_folder_sink_free(&f);
    assert_int_equal(count_entries("o"), 0);
}

static void over_what_is_there(void **state)
{
    (void)state;
    tnf_error e;
    tnf_folder_sink f;
    assert_int_equal(mkdir(in_root("r"), 0700), 0);
    put_folder("r/x", 0);
    assert_int_not_equal(tnf_folder_sink_begin(&f, in_root("r/x"), 0, NULL, &e), TNF_OK);
    tnf_folder_sink_free(&f);
    /* a directory that another process creates meanwhile remains */
    assert_ok(tnf_folder_sink_begin(&f, in_root("r/y"), TNF_SINK_NO_SYNC, NULL, &e));
    assert_int_equal(mkdir(in_root("r/y"), 0700), 0);
    assert_int_not_equal(tnf_folder_sink_end(&f, &e), TNF_OK);
    tnf_folder_sink_free(&f);
    assert_int_equal(count_entries("r/y"), 0);
    /* replaced; nothing of the old directory is left */
    assert_ok(tnf_folder_sink_begin(&f, in_root("r/x/"), TNF_SINK_REPLACE, NULL, &e));
    assert_ok(put_member(&f, "only", "1", &e));
    assert_int_equal(count_entries("r/x"), 3);
    assert_ok(tnf_folder_sink_end(&f, &e));
    tnf_folder_sink_free(&f);
    assert_int_equal(count_entries("r/x"), 1);
    assert_int_equal(count_entries("r"), 2);
    put_file("r/file", "f");
    assert_int_not_equal(tnf_folder_sink_begin(&f, in_root("r/file"), TNF_SINK_REPLACE, NULL, &e),
                         TNF_OK);
    tnf_folder_sink_free(&f);
    assert_int_equal(count_entries("r"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zip_and_folder_alike),
        cmocka_unit_test(one_read_a_member),
        cmocka_unit_test(what_is_no_file),
        cmocka_unit_test(what_changes),
        cmocka_unit_test(many_files),
        cmocka_unit_test(too_deep),
        cmocka_unit_test(parts_of_files),
        cmocka_unit_test(no_place),
        cmocka_unit_test(given_up),
        cmocka_unit_test(names_that_lead_out),
        cmocka_unit_test(over_what_is_there),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
