/* SPDX-License-Identifier: MIT */
/* Appending in place: old bytes never change, and an append that is interrupted anywhere leaves the
 * old model. */
#include "../support/files.h"
#include "../support/memory.h"
#include "../support/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tenfold/build.h>
#include <time.h>

static tnf_error e;
static const uint64_t four[] = { 4 };
static const tnf_option small_align[] = { { "align", "4096" } };

static const char *path_of(const char *name)
{
    static char path[4][300];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, 300, "%s/%s", files_temp(), name);
    return p;
}

static tnf_builder *builder_with(const char *name, const void *four_bytes)
{
    tnf_builder *b;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    if (name)
        assert_ok(tnf_builder_add(b, name, tnf_type_of(TNF_U8), 1, four, four_bytes, &e));
    return b;
}

/* A file with the tensor "old", its blobs at multiples of 4096. */
static const char *make_base(const char *name)
{
    const char *path = path_of(name);
    tnf_builder *b = builder_with("old", "\1\2\3\4");
    tnf_value v = tnf_value_uint(7);
    tnf_save_options o = { .size = sizeof o, .options = small_align, .noptions = 1 };
    o.replace = true;
    assert_ok(tnf_builder_set(b, NULL, "kept", &v, &e));
    assert_ok(tnf_save(b, path, &o, &e));
    tnf_builder_free(b);
    return path;
}

static void append_one(const char *path, const char *name, const void *four_bytes)
{
    tnf_builder *b = builder_with(name, four_bytes);
    assert_ok(tnf_append(b, path, NULL, &e));
    tnf_builder_free(b);
}

static void assert_holds(const char *path, const char *name, const void *four_bytes)
{
    tnf_file *file;
    uint8_t bytes[4];
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    assert_ok(tnf_open(&file, path, NULL, &e));
    const tnf_object *o = tnf_find(file, name);
    assert_non_null(o);
    assert_ok(tnf_read(bytes, 4, o, &e));
    assert_memory_equal(bytes, four_bytes, 4);
    assert_ok(tnf_verify(&r, file, NULL, &e));
    assert_int_equal(r.problems, 0);
    assert_int_equal(r.undigested, 0);
    tnf_close(file);
}

static void begins_with(const char *path, struct bytes before)
{
    struct bytes now = bytes_of_file(path);
    assert_true(now.n >= before.n);
    assert_memory_equal(now.p, before.p, before.n);
    free(now.p);
}

static void is_still(const char *path, struct bytes before)
{
    struct bytes now = bytes_of_file(path);
    assert_int_equal(now.n, before.n);
    assert_memory_equal(now.p, before.p, before.n);
    free(now.p);
}

static void what_is_there_stays(void **state)
{
    (void)state;
    const char *path = make_base("stays.zt");
    struct bytes before = bytes_of_file(path);
    append_one(path, "new", "\5\6\7\10");
    begins_with(path, before);
    assert_holds(path, "old", "\1\2\3\4");
    assert_holds(path, "new", "\5\6\7\10");
    struct bytes second = bytes_of_file(path);
    append_one(path, "third", "abcd");
    begins_with(path, second);
    assert_holds(path, "new", "\5\6\7\10");
    assert_holds(path, "third", "abcd");
    tnf_file *file;
    assert_ok(tnf_open(&file, path, NULL, &e));
    assert_int_equal(tnf_value_get(tnf_file_info(file)->attrs, "kept")->as.u, 7);
    assert_int_equal(tnf_find(file, "new")->parts[0].offset % 4096, 0); /* as in the file */
    assert_true(tnf_find(file, "new")->parts[0].offset < before.n + 4096);
    tnf_close(file);
    free(before.p);
    free(second.p);
}

/* Equal bytes share a blob, with the file or with another new tensor; small, large and empty. */
static void equal_bytes_are_shared(void **state)
{
    (void)state;
    enum { LARGE = 200000 };
    const char *path = path_of("shared.zt");
    static const uint64_t large[] = { LARGE }, none[] = { 0 };
    uint8_t *bytes = calloc(2, LARGE);
    tnf_builder *b = builder_with("small", "\1\2\3\4");
    bytes[LARGE] = 1; /* the second differs at its beginning */
    assert_ok(tnf_builder_add(b, "large", tnf_type_of(TNF_U8), 1, large, bytes, &e));
    assert_ok(tnf_save(b, path, NULL, &e));
    tnf_builder_free(b);
    b = builder_with("z.small", "\1\2\3\4");
    assert_ok(tnf_builder_add(b, "z.large", tnf_type_of(TNF_I8), 1, large, bytes, &e));
    assert_ok(tnf_builder_add(b, "z.other", tnf_type_of(TNF_U8), 1, large, bytes + LARGE, &e));
    assert_ok(tnf_builder_add(b, "z.again", tnf_type_of(TNF_U8), 1, large, bytes + LARGE, &e));
    assert_ok(tnf_builder_add(b, "z.none", tnf_type_of(TNF_U8), 1, none, NULL, &e));
    assert_ok(tnf_append(b, path, NULL, &e));
    tnf_builder_free(b);
    tnf_file *file;
    assert_ok(tnf_open(&file, path, NULL, &e));
    uint64_t at[6];
    static const char *names[] = { "small", "z.small", "large", "z.large", "z.other", "z.again" };
    for (size_t i = 0; i < 6; i++)
        at[i] = tnf_find(file, names[i])->parts[0].offset;
    assert_int_equal(at[0], at[1]);
    assert_int_equal(at[2], at[3]);
    assert_int_equal(at[4], at[5]);
    assert_true(at[4] > at[2]);
    assert_int_equal(tnf_find(file, "z.none")->parts[0].nbytes, 0);
    tnf_close(file);
    assert_holds(path, "z.small", "\1\2\3\4");
    free(bytes);
}

static void refusals_change_nothing(void **state)
{
    (void)state;
    const char *path = make_base("refused.zt");
    struct bytes before = bytes_of_file(path);
    tnf_builder *b = builder_with("old", "abcd");
    assert_fails(tnf_append(b, path, NULL, &e), TNF_EEXISTS);
    assert_says("'old'");
    tnf_builder_free(b);
    tnf_value v = tnf_value_uint(8);
    b = builder_with("new", "abcd");
    assert_ok(tnf_builder_set(b, NULL, "kept", &v, &e));
    assert_fails(tnf_append(b, path, NULL, &e), TNF_EEXISTS);
    assert_says("'kept'");
    v = tnf_value_uint(7); /* the same value is not a change */
    assert_ok(tnf_builder_set(b, NULL, "kept", &v, &e));
    tnf_save_options o = { .size = sizeof o, .dry_run = true };
    assert_ok(tnf_append(b, path, &o, &e));
    tnf_option canonical = { "canonical", "yes" };
    o = (tnf_save_options) { .size = sizeof o, .options = &canonical, .noptions = 1 };
    assert_fails(tnf_append(b, path, &o, &e), TNF_EINVAL);
    o = (tnf_save_options) { .size = sizeof o, .format = "safetensors" };
    assert_fails(tnf_append(b, path, &o, &e), TNF_ELIMIT);
    is_still(path, before);
    tnf_builder *nothing = builder_with(NULL, NULL);
    assert_ok(tnf_append(nothing, path, NULL, &e));
    is_still(path, before);
    assert_fails(tnf_append(b, path_of("absent.zt"), NULL, &e), TNF_ENOTFOUND);
    const char *other = path_of("other.safetensors");
    assert_ok(tnf_save(b, other, NULL, &e));
    assert_fails(tnf_append(nothing, other, NULL, &e), TNF_EUNSUPPORTED);
    tnf_builder_free(nothing);
    assert_ok(tnf_append(b, path, NULL, &e));
    assert_holds(path, "new", "abcd");
    tnf_builder_free(b);
    free(before.p);
}

static void fixture_keeps(const char *fixture, const char *shard)
{
    char from[400];
    const char *path = path_of("model.zt");
    for (int i = 0; i < (shard ? 2 : 1); i++) {
        snprintf(from, sizeof from, TNF_TESTS_DIR "/formats/ztensor2/valid/%s",
                 i ? shard : fixture);
        struct bytes b = bytes_of_file(from);
        bytes_to_file(i ? path_of(strrchr(shard, '/') + 1) : path, b.p, b.n);
        free(b.p);
    }
    tnf_file *was, *is;
    snprintf(from, sizeof from, TNF_TESTS_DIR "/formats/ztensor2/valid/%s", fixture);
    append_one(path, "~new", "wxyz");
    assert_ok(tnf_open(&was, from, NULL, &e));
    assert_ok(tnf_open(&is, path, NULL, &e));
    assert_int_equal(tnf_file_info(is)->objects, tnf_file_info(was)->objects + 1);
    for (size_t i = 0; i < tnf_file_info(was)->objects; i++) {
        const tnf_object *x = tnf_at(was, i), *y = tnf_find_n(is, x->name.p, x->name.n);
        assert_non_null(y);
        assert_string_equal(tnf_layout_id(x->layout), tnf_layout_id(y->layout));
        assert_int_equal(x->nparts, y->nparts);
        for (uint16_t k = 0; k < x->nparts; k++) {
            assert_int_equal(x->parts[k].offset, y->parts[k].offset); /* not moved */
            assert_int_equal(x->parts[k].stored, y->parts[k].stored);
            assert_int_equal(x->parts[k].payload, y->parts[k].payload);
            assert_string_equal(x->parts[k].type->id, y->parts[k].type->id);
            assert_true(!x->parts[k].digest == !y->parts[k].digest);
            if (x->parts[k].digest)
                assert_string_equal(x->parts[k].digest->text.p, y->parts[k].digest->text.p);
        }
    }
    const tnf_value *shards = tnf_value_get(tnf_file_info(is)->attrs, "ztensor.shards");
    assert_true(!shards == !shard);
    tnf_close(was);
    tnf_close(is);
}

/* All fields of a manifest are written again. */
static void manifests_are_kept(void **state)
{
    (void)state;
    fixture_keeps("types.zt", NULL);
    fixture_keeps("ref-zstd.zt", NULL);
    fixture_keeps("ref-emptyattr.zt", NULL);
    fixture_keeps("corpus-csr-data-valid.zt", NULL);
    fixture_keeps("digest-sha256.zt", NULL);
    fixture_keeps("digest-unknown.zt", NULL);
    fixture_keeps("not-our-words.zt", NULL);
    fixture_keeps("attributes-odd.zt", NULL);
    fixture_keeps("two-generations.zt", NULL);
    fixture_keeps("overlay/model.zt", "overlay/model-base.zt");
    fixture_keeps("split/model.zt", "split/model-data.zt");
}

/* Fields of later versions would be lost; a data shard is not a model. */
static void not_to_everything(void **state)
{
    (void)state;
    static const char *fixtures_[] = { "future-keys.zt", "corpus-data-shard.zt",
                                       "corpus-view-unknown-encoding-refused.zt" };
    for (size_t i = 0; i < 3; i++) {
        char from[400];
        const char *path = path_of("not.zt");
        snprintf(from, sizeof from, TNF_TESTS_DIR "/formats/ztensor2/valid/%s", fixtures_[i]);
        struct bytes before = bytes_of_file(from);
        bytes_to_file(path, before.p, before.n);
        tnf_builder *b = builder_with("~new", "abcd");
        if (i == 0)
            assert_fails(tnf_append(b, path, NULL, &e), TNF_ELOSSY);
        const tnf_save_options lossy = { .size = sizeof lossy, .allow_loss = true };
        assert_fails(tnf_append(b, path, &lossy, &e), TNF_EUNSUPPORTED);
        is_still(path, before);
        tnf_builder_free(b);
        free(before.p);
    }
}

static void appends_encoded(void **state)
{
    (void)state;
    const char *path = make_base("encoded.zt");
    static const uint64_t large[] = { 300000 };
    uint8_t *zeros = calloc(1, 300000);
    tnf_builder *b = builder_with("new", "\1\2\3\4"); /* equal to a tensor that is not encoded */
    tnf_option zstd = { "encoding", "zstd" };
    tnf_save_options o = { .size = sizeof o, .options = &zstd, .noptions = 1 };
    assert_ok(tnf_builder_add(b, "zeros", tnf_type_of(TNF_U8), 1, large, zeros, &e));
    assert_ok(tnf_append(b, path, &o, &e));
    assert_holds(path, "new", "\1\2\3\4");
    tnf_file *file;
    assert_ok(tnf_open(&file, path, NULL, &e));
    assert_int_equal(tnf_find(file, "zeros")->parts[0].payload, TNF_ENCODED);
    assert_int_equal(tnf_find(file, "new")->parts[0].payload, TNF_AT);
    assert_int_equal(tnf_find(file, "new")->parts[0].offset, 4096);
    tnf_close(file);
    tnf_builder_free(b);
    free(zeros);
}

/* ----------------------------------------------- interruptions and faults */

/* Truncated after any byte: invalid in strict mode, the old model in lenient mode, and the next
 * append repairs it. */
static void cut_anywhere(void **state)
{
    (void)state;
    const char *path = make_base("cut.zt"), *cut = path_of("cut-off.zt");
    struct bytes before = bytes_of_file(path);
    append_one(path, "new", "abcd");
    struct bytes after = bytes_of_file(path);
    assert_true(after.n > before.n + 4096 && after.n < before.n + 10000);
    for (size_t n = before.n; n <= after.n; n++) {
        tnf_file *file;
        tnf_source *source;
        tnf_open_options o = { .size = sizeof o };
        bool whole = n == before.n || n == after.n;
        assert_ok(tnf_source_memory(&source, after.p, n, &e));
        tnf_status status = tnf_open_source(&file, source, &o, &e);
        assert_int_equal(status, whole ? TNF_OK : TNF_ETRUNCATED);
        if (!whole)
            assert_string_equal(e.rule, "FooterMagic");
        tnf_close(file);
        o.lenient = true;
        assert_ok(tnf_source_memory(&source, after.p, n, &e));
        assert_ok(tnf_open_source(&file, source, &o, &e));
        assert_int_equal(tnf_file_info(file)->objects, n == after.n ? 2 : 1);
        assert_int_equal(tnf_file_info(file)->nwarnings, whole ? 0 : 1);
        uint8_t bytes[4];
        assert_ok(tnf_read(bytes, 4, tnf_find(file, "old"), &e));
        assert_memory_equal(bytes, "\1\2\3\4", 4);
        tnf_close(file);
        if (n % 997 != 0 && n + 60 < after.n) /* only a few, because the file system is slow */
            continue;
        bytes_to_file(cut, after.p, n);
        append_one(cut, n % 2 ? NULL : "later", "1234");
        begins_with(cut, (struct bytes) { after.p, n });
        assert_holds(cut, "old", "\1\2\3\4");
        if (n % 2 == 0)
            assert_holds(cut, "later", "1234");
    }
    free(before.p);
    free(after.p);
}

/* If the bytes after the end are not an interrupted append, the file is not repaired. */
static void not_any_rest(void **state)
{
    (void)state;
    const char *path = make_base("rest.zt");
    struct bytes b = bytes_of_file(path);
    tnf_source *source;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .lenient = true };
    b.p = realloc(b.p, b.n + 64);
    memset(b.p + b.n, 0, 64);
    b.p[b.n - 50] ^= 1; /* its manifest is broken */
    assert_ok(tnf_source_memory(&source, b.p, b.n + 64, &e));
    assert_fails(tnf_open_source(&file, source, &o, &e), TNF_ETRUNCATED);
    assert_says("FooterMagic");
    free(b.p);
}

static tnf_status fetch_and_die(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    (void)error;
    memset(dst, 7, n);
    if (offset >= *(const uint64_t *)ctx)
        raise(SIGKILL);
    return TNF_OK;
}

static tnf_status fetch_and_fail(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    memset(dst, 7, n);
    if (offset < *(const uint64_t *)ctx)
        return TNF_OK;
    *error = (tnf_error) { .status = TNF_EIO, .offset = TNF_NO_OFFSET, .message = "unplugged" };
    return TNF_EIO;
}

static tnf_builder *stream_builder(tnf_fetch_fn fetch, uint64_t *until)
{
    static const uint64_t large[] = { 8000000 };
    tnf_builder *b = builder_with(NULL, NULL);
    assert_ok(tnf_builder_add_stream(b, "stream", tnf_type_of(TNF_U8), 1, large, fetch, until, &e));
    return b;
}

/* Both modes open the old model; the next append gives the same file as without the
 * interruption. */
static void killed_between_pieces(void **state)
{
    (void)state;
    const char *never = make_base("never.zt");
    append_one(never, "later", "abcd");
    struct bytes want = bytes_of_file(never);
    for (uint64_t until = 0; until < 8000000; until += 2500000) {
        const char *path = make_base("killed.zt");
        struct bytes before = bytes_of_file(path);
        for (int twice = 0; twice < 2; twice++) {
            pid_t pid = fork();
            if (pid == 0) {
                tnf_builder *b = stream_builder(fetch_and_die, &until);
                _exit(tnf_append(b, path, NULL, NULL) == TNF_OK ? 0 : 1);
            }
            int status;
            assert_int_equal(waitpid(pid, &status, 0), pid);
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            begins_with(path, before);
            tnf_file *file;
            assert_ok(tnf_open(&file, path, NULL, &e));
            assert_int_equal(tnf_file_info(file)->objects, 1);
            assert_int_equal(tnf_file_info(file)->nwarnings, 0);
            tnf_close(file);
            assert_holds(path, "old", "\1\2\3\4");
        }
        append_one(path, "later", "abcd"); /* the process's lock is released */
        is_still(path, want);
        free(before.p);
    }
    free(want.p);
}

/* The same, interrupted at any moment, not only between two pieces. */
static void killed_anywhere(void **state)
{
    (void)state;
    const char *path = make_base("anywhere.zt");
    struct bytes before = bytes_of_file(path);
    uint64_t forever = UINT64_MAX;
    unsigned olds = 0, news = 0;
    for (long us = 0; us < 60000 && (us < 20000 || !olds || !news); us += 1200) {
        bytes_to_file(path, before.p, before.n);
        int start[2]; /* the child waits for its end, since fork() may return in the parent much
                         later */
        assert_int_equal(pipe(start), 0);
        pid_t pid = fork();
        if (pid == 0) {
            char none;
            close(start[1]);
            tnf_builder *b = stream_builder(fetch_and_die, &forever);
            tnf_save_options o = { .size = sizeof o, .no_sync = true };
            _exit(read(start[0], &none, 1) == 0 && tnf_append(b, path, &o, NULL) == TNF_OK ? 0 : 1);
        }
        close(start[0]);
        close(start[1]);
        struct timespec t = { 0, us * 1000 };
        nanosleep(&t, NULL);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        tnf_file *file;
        begins_with(path, before);
        assert_ok(tnf_open(&file, path, NULL, &e));
        size_t n = tnf_file_info(file)->objects;
        assert_true(n == 1 || n == 2);
        olds += n == 1;
        news += n == 2;
        tnf_close(file);
        assert_holds(path, "old", "\1\2\3\4");
    }
    assert_true(olds > 0);
    free(before.p);
}

/* Any failure leaves the file unchanged. */
static void failures_leave_nothing(void **state)
{
    (void)state;
    const char *path = make_base("fails.zt");
    struct bytes before = bytes_of_file(path);
    uint64_t until = 3000000;
    tnf_builder *b = stream_builder(fetch_and_fail, &until);
    assert_fails(tnf_append(b, path, NULL, &e), TNF_EIO);
    assert_says("unplugged");
    is_still(path, before);
    until = UINT64_MAX; /* now the disk is full */
    struct rlimit was, full;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t size = before.n + 100; size < 8100000; size += 3999000) {
        full = (struct rlimit) { size, was.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
        assert_fails(tnf_append(b, path, NULL, &e), TNF_EIO);
        is_still(path, before);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    tnf_builder_free(b);
    free(before.p);
}

static void without_memory(void **state)
{
    (void)state;
    const char *path = make_base("memory.zt");
    struct bytes before = bytes_of_file(path);
    tnf_status status = TNF_ENOMEM;
    unsigned long failed = 0;
    for (size_t at = 1; status != TNF_OK && at < 10000; at++) {
        struct memory_log log = { 0 };
        tnf_allocator a = memory_allocator(&log);
        tnf_builder *b;
        assert_ok(tnf_builder_new(&b, &a, &e));
        assert_ok(tnf_builder_add(b, "new", tnf_type_of(TNF_U8), 1, four, "abcd", &e));
        log.fail_at = log.calls + at;
        status = tnf_append(b, path, NULL, &e);
        if (status != TNF_OK) {
            failed++;
            assert_int_equal(status, TNF_ENOMEM);
            is_still(path, before);
        }
        tnf_builder_free(b);
        assert_int_equal(log.blocks, 0);
    }
    assert_true(failed > 20);
    assert_holds(path, "new", "abcd");
    free(before.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_stays),
        cmocka_unit_test(equal_bytes_are_shared),
        cmocka_unit_test(refusals_change_nothing),
        cmocka_unit_test(manifests_are_kept),
        cmocka_unit_test(not_to_everything),
        cmocka_unit_test(appends_encoded),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(not_any_rest),
        cmocka_unit_test(killed_between_pieces),
        cmocka_unit_test(killed_anywhere),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
