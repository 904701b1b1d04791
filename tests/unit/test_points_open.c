/* SPDX-License-Identifier: MIT */
/* Handles: creating, opening and locking files; files that are replaced while they are open. */
#include "points_files.h"

#include "../support/descriptors.h"
#include "../support/memory.h"
#include "io/lock.h"

#include <fcntl.h>

static void write_bytes(const char *path, const char *bytes, size_t n)
{
    bytes_to_file(path, bytes, n);
}

/* The bytes are those of the description. */
static void creates_files(void **state)
{
    (void)state;
    static const char want[] = "VS\0\0\x5e\x07\0\0\0\x01\x03\x0b\0\0\x01\x80$";
    const char *path = vs_path();
    tnf_points *p = vs_create(path);
    struct bytes b = bytes_of_file(path);
    assert_int_equal(b.n, sizeof want - 1);
    assert_memory_equal(b.p, want, b.n);
    const tnf_space *s = tnf_points_space(p);
    assert_true(s && s->rank == 1 && s->dims[0] == DIM && s->vector_bytes == 12);
    assert_string_equal(s->resolution, "f32");
    assert_int_equal(s->attributes->kind, TNF_MAP);
    free(b.p);
    tnf_points_close(p);
}

static void create_refuses(void **state)
{
    (void)state;
    tnf_error e;
    tnf_points *p;
    const char *path = vs_path();
    static const uint64_t zero[] = { 0 }, huge[] = { (uint64_t)1 << 32 }, much[] = { 1u << 31, 8 };
    tnf_space space = vs_space();
    tnf_points_options o = vs_options(true);
    space.dims = zero;
    assert_fails(tnf_points_create(&p, path, &space, &o, &e), TNF_EINVAL);
    space.dims = huge;
    assert_fails(tnf_points_create(&p, path, &space, &o, &e), TNF_EINVAL);
    space.dims = much;
    space.rank = 2;
    assert_fails(tnf_points_create(&p, path, &space, &o, &e), TNF_EINVAL);
    space = vs_space();
    space.rank = 0;
    assert_fails(tnf_points_create(&p, path, &space, &o, &e), TNF_EINVAL);
    space.type = tnf_type_named("bf16");
    assert_fails(tnf_points_create(&p, path, &space, &o, &e), TNF_EINVAL);
    space.type = NULL;
    assert_fails(tnf_points_create(&p, path, &space, &o, &e), TNF_EINVAL);
    assert_int_not_equal(access(path, F_OK), 0); /* no file was made */
    space = vs_space();
    space.rank = 0;
    space.scalar = true;
    assert_ok(tnf_points_create(&p, path, &space, &o, &e));
    tnf_points_close(p);
    assert_fails(tnf_points_create(&p, path, &space, &o, &e), TNF_EEXISTS);
    assert_fails(tnf_points_create(&p, "/nowhere/at/all", &space, &o, &e), TNF_ENOTFOUND);
    path = vs_path(); /* an empty file is as good as none, so it is no error */
    write_bytes(path, "", 0);
    e = (tnf_error) { .status = TNF_EBUG };
    assert_ok(tnf_points_create(&p, path, &space, &o, &e));
    assert_int_equal(e.status, TNF_EBUG);
    tnf_points_close(p);
}

static void open_refuses(void **state)
{
    (void)state;
    tnf_error e;
    tnf_points *p;
    tnf_points_options o = vs_options(false);
    const char *path = vs_path();
    assert_fails(tnf_points_open(&p, path, &o, &e), TNF_ENOTFOUND);
    assert_null(p);
    assert_fails(tnf_points_open(&p, files_temp(), &o, &e), TNF_EINVAL);
    write_bytes(path, "VS", 2);
    assert_fails(tnf_points_open(&p, path, &o, &e), TNF_ETRUNCATED);
    write_bytes(path, "SV\0\0$", 5);
    assert_fails(tnf_points_open(&p, path, &o, &e), TNF_EFORMAT);
    write_bytes(path, "VS\1\0$", 5);
    assert_fails(tnf_points_open(&p, path, &o, &e), TNF_EUNSUPPORTED);
    write_bytes(path, "VS\0\0P\0\0\0\0$", 10);
    assert_fails(tnf_points_open(&p, path, &o, &e), TNF_EFORMAT);
}

/* A value that an enumeration does not have, of a member or of flags, is a mistake of the caller.
 */
static void unknown_choices(void **state)
{
    (void)state;
    tnf_error e;
    tnf_points *p;
    const tnf_space space = vs_space();
    const tnf_value v = tnf_value_string("x");
    const char *path = vs_path();
    for (int member = 0; member < 3; member++) {
        static const char *const names[] = { "'lock' has the value 77", "'sync' has the value 77",
                                             "'pack' has the value 77" };
        tnf_points_options o = vs_options(true);
        tnf_points_report report = TNF_POINTS_REPORT_INIT;
        *(member == 0   ? (int *)(void *)&o.lock
          : member == 1 ? (int *)(void *)&o.sync
                        : (int *)(void *)&o.pack) = 77;
        assert_fails(tnf_points_create(&p, path, &space, &o, &e), TNF_EINVAL);
        assert_says(names[member]);
        assert_null(p);
        assert_fails(tnf_points_open(&p, path, &o, &e), TNF_EINVAL);
        assert_says(names[member]);
        assert_fails(tnf_points_salvage(&report, path, &o, vs_take, NULL, &e), TNF_EINVAL);
        assert_says(names[member]);
    }
    p = vs_create(path);
    const tnf_point_id at = vs_add(p, 1);
    assert_fails(tnf_points_delete(p, &at, 1, TNF_POINTS_DROP_UNKNOWN, &e), TNF_EINVAL);
    assert_says("'flags' is 2, but this function only takes 0 or 9");
    assert_fails(tnf_points_delete(p, NULL, 0, 16, &e), TNF_EINVAL);
    assert_fails(tnf_points_compact(p, TNF_POINTS_SHRED, NULL, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_points_set_attributes(p, &v, TNF_POINTS_SHRED, &e), TNF_EINVAL);
    vs_expect(p, "1");
    tnf_points_close(p);
}

/* What the author's own programs would write: files without a space. */
static void empty_files(void **state)
{
    (void)state;
    tnf_error e;
    float v[DIM] = { 0 };
    tnf_point point = { .vector = v, .vector_n = sizeof v };
    for (size_t n = 4; n <= 5; n++) {
        const char *path = vs_path();
        write_bytes(path, "VS\0\0$", n);
        tnf_points *p = vs_open(path, true);
        assert_null(tnf_points_space(p));
        vs_expect(p, "");
        assert_fails(tnf_points_append(NULL, p, &point, 1, &e), TNF_EINVAL);
        assert_fails(tnf_points_parse(&point, p, "{}", 2, &e), TNF_EINVAL);
        tnf_points_close(p);
    }
}

static void locks_are_respected(void **state)
{
    (void)state;
    tnf_error e;
    const char *path = vs_path();
    tnf_points *a = vs_create(path), *b;
    tnf_points_options o = vs_options(true);
    int fd = open(path, O_RDWR);
    vs_add(a, 1);
    assert_ok(tnf_lock_take(fd, true, 0, &e));
    o.lock = TNF_POINTS_NO_WAIT;
    assert_fails(tnf_points_open(&b, path, &o, &e), TNF_EIO);
    assert_int_equal(e.sys, EAGAIN);
    o.lock = TNF_POINTS_TIMEOUT;
    o.timeout_ms = 20;
    assert_fails(tnf_points_open(&b, path, &o, &e), TNF_EIO);
    o.lock = TNF_POINTS_NO_LOCK;
    assert_ok(tnf_points_open(&b, path, &o, &e));
    vs_expect(b, "1");
    vs_add(b, 2);
    tnf_points_close(b);
    tnf_lock_drop(fd);
    assert_ok(tnf_lock_take(fd, false, 0, &e)); /* a reader: only readers may enter */
    o.lock = TNF_POINTS_NO_WAIT;
    assert_ok(tnf_points_open(&b, path, &o, &e));
    vs_expect(b, "1 2");
    float v[DIM] = { 0 };
    tnf_point point = { .vector = v, .vector_n = sizeof v };
    assert_fails(tnf_points_append(NULL, b, &point, 1, &e), TNF_EIO);
    assert_fails(tnf_points_compact(b, 0, NULL, NULL, &e), TNF_EIO);
    assert_fails(tnf_points_delete(b, (tnf_point_id[]) { { 16, 0 } }, 1, 0, &e), TNF_EIO);
    tnf_lock_drop(fd);
    assert_ok(tnf_points_append(NULL, b, &point, 1, &e));
    tnf_points_close(b);
    tnf_points_close(a);
    close(fd);
}

static void read_only(void **state)
{
    (void)state;
    tnf_error e;
    const char *path = vs_path();
    tnf_points_close(vs_create(path));
    tnf_points *p = vs_open(path, false);
    float v[DIM] = { 0 };
    tnf_point point = { .vector = v, .vector_n = sizeof v };
    assert_fails(tnf_points_append(NULL, p, &point, 1, &e), TNF_EINVAL);
    assert_fails(tnf_points_compact(p, 0, NULL, NULL, &e), TNF_EINVAL);
    tnf_points_close(p);
}

/* Two handles of one process; one of them compacts. */
static void follows_replaced_files(void **state)
{
    (void)state;
    tnf_error e;
    const char *path = vs_path();
    tnf_points *a = vs_create(path), *b = vs_open(path, true);
    tnf_point_id first = vs_add(a, 1);
    vs_add(a, 2);
    vs_add(a, 3);
    vs_expect(b, "1 2 3");
    struct vs_seen before = vs_list(b);
    assert_ok(tnf_points_delete(a, &first, 1, 0, &e));
    assert_ok(tnf_points_compact(a, 0, NULL, NULL, &e));
    tnf_point point;
    /* b's ids belong to the old file */
    assert_fails(tnf_points_read(&point, b, before.ids[1], &e), TNF_ENOTFOUND);
    assert_says("compacted");
    assert_fails(tnf_points_delete(b, &before.ids[1], 1, 0, &e), TNF_ENOTFOUND);
    assert_fails(tnf_points_after(b, before.ids[1], vs_take, NULL, &e), TNF_ENOTFOUND);
    vs_expect(b, "2 3");
    struct vs_seen after = vs_list(b);
    assert_ok(tnf_points_read(&point, b, after.ids[1], &e));
    vs_add(b, 4);
    vs_expect(a, "2 3 4");
    tnf_value text = tnf_value_string("other attributes, of another length");
    assert_ok(tnf_points_set_attributes(a, &text, 0, &e));
    vs_expect(b, "2 3 4");
    assert_string_equal(tnf_points_space(b)->attributes->as.s, text.as.s);
    unlink(path);
    assert_int_not_equal(tnf_points_each(b, vs_take, NULL, &e), TNF_OK);
    tnf_points_close(a);
    tnf_points_close(b);
}

/* A compaction through a symbolic link replaces what it points to. */
static void through_a_link(void **state)
{
    (void)state;
    tnf_error e;
    char link_path[300];
    const char *path = vs_path();
    tnf_points *a = vs_create(path);
    tnf_point_id first = vs_add(a, 1);
    vs_add(a, 2);
    tnf_points_close(a);
    assert_int_equal(chmod(path, 0640), 0);
    snprintf(link_path, sizeof link_path, "%s/link", files_temp());
    assert_int_equal(symlink(path, link_path), 0);
    tnf_points *p = vs_open(link_path, true);
    vs_expect(p, "1 2");
    assert_ok(tnf_points_delete(p, &first, 1, 0, &e));
    assert_ok(tnf_points_compact(p, 0, NULL, NULL, &e));
    tnf_points_close(p);
    struct stat st;
    assert_true(lstat(link_path, &st) == 0 && S_ISLNK(st.st_mode));
    assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0640);
    p = vs_open(path, false);
    vs_expect(p, "2");
    tnf_points_close(p);
}

/* Every function once, with the n-th allocation failing. */
static tnf_status use_all(const tnf_allocator *a, const char *path, tnf_error *e)
{
    tnf_points *p;
    tnf_points_options o = vs_options(true);
    tnf_space space = vs_space();
    float v[DIM] = { 1, 2, 3 };
    tnf_point_id ids[2] = { { 0, 0 } };
    tnf_value app = { .kind = TNF_JSON, .n = 9, .as.s = "{\"a\":[1]}" };
    tnf_point batch[2] = { { .value = &app, .vector = v, .vector_n = sizeof v },
                           { .vector = v, .vector_n = sizeof v } };
    tnf_points_report report = TNF_POINTS_REPORT_INIT;
    o.allocator = *a;
    o.pack_app = true;
    tnf_status status = tnf_points_create(&p, path, &space, &o, e);
    if (status != TNF_OK)
        return status;
    for (int pack = TNF_POINTS_RAW; pack <= TNF_POINTS_SNAPPY && status == TNF_OK; pack++) {
        p->options.pack = (tnf_points_pack)pack;
        status = tnf_points_append(ids, p, batch, 2, e);
        if (status == TNF_OK)
            status = tnf_points_read(&batch[1], p, ids[0], e);
        batch[1] = batch[0];
    }
    const tnf_value *value;
    tnf_point point;
    if (status == TNF_OK)
        status = tnf_points_read(&point, p, ids[0], e);
    if (status == TNF_OK)
        status = tnf_points_value(&value, p, &point, e);
    if (status == TNF_OK)
        status = tnf_points_parse(&point, p, "{\"app\":\"\\u00e4\",\"values\":[1,2,3]}", 33, e);
    if (status == TNF_OK)
        status = tnf_points_delete(p, ids, 1, TNF_POINTS_SHRED, e);
    const tnf_value other = { .kind = TNF_JSON, .n = 9, .as.s = "{\"a\":[2]}" };
    if (status == TNF_OK)
        status = tnf_points_add(NULL, p, &other, v, sizeof v, e);
    if (status == TNF_OK)
        status = tnf_points_delete_app(NULL, p, &other, 0, e);
    if (status == TNF_OK)
        status = tnf_points_compact(p, 0, NULL, NULL, e);
    if (status == TNF_OK)
        status = tnf_points_set_attributes(p, &app, 0, e);
    if (status == TNF_OK)
        status = tnf_points_verify(&report, p, NULL, NULL, e);
    if (status == TNF_OK)
        assert_true(report.points == 5 && report.problems == 0);
    tnf_points_close(p);
    return status;
}

static tnf_status ignore_point(void *ctx, const tnf_point *point, tnf_error *e)
{
    (void)ctx, (void)point, (void)e;
    return TNF_OK;
}

static void no_memory(void **state)
{
    (void)state;
    tnf_error e;
    unsigned before = descriptors_open();
    for (int once = 0; once < 2; once++)
        for (uint64_t n = 1;; n++) {
            struct memory_log log = { .fail_at = n, .fail_once = once };
            tnf_allocator a = memory_allocator(&log);
            const char *path = vs_path();
            tnf_status status = use_all(&a, path, &e);
            assert_int_equal(log.blocks, 0);
            assert_int_equal(log.wrong_sizes, 0);
            if (access(path, F_OK) == 0) { /* the file is complete in any case */
                tnf_points_report report = TNF_POINTS_REPORT_INIT;
                tnf_points_options o = vs_options(false);
                assert_ok(tnf_points_salvage(&report, path, &o, ignore_point, NULL, &e));
                assert_int_equal(report.problems, 0);
                assert_true(report.points % 2 == 0 || report.points == 5);
                unlink(path);
            }
            if (log.failed == 0) {
                assert_int_equal(status, TNF_OK);
                break;
            }
            if (status != TNF_OK) /* some allocations are not needed */
                assert_int_equal(status, TNF_ENOMEM);
        }
    assert_int_equal(descriptors_open(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creates_files),  cmocka_unit_test(create_refuses),
        cmocka_unit_test(open_refuses),   cmocka_unit_test(unknown_choices),
        cmocka_unit_test(empty_files),    cmocka_unit_test(locks_are_respected),
        cmocka_unit_test(read_only),      cmocka_unit_test(follows_replaced_files),
        cmocka_unit_test(through_a_link), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
