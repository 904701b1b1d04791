/* SPDX-License-Identifier: MIT */
/* Saving over the file that is read: no change is lost. A handle opened for changing makes others
 * wait; any other handle is refused if the file was replaced since it was read. */
#include "../support/files.h"
#include "../support/unit.h"
#include <tenfold/build.h>

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static _Thread_local tnf_error e; /* each thread has its own */
static char path[300];

static void make_file(void)
{
    static const float value = 1;
    tnf_builder *b;
    snprintf(path, sizeof path, "%s/a.safetensors", files_temp());
    (void)unlink(path);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "w", tnf_type_of(TNF_F32), 0, NULL, &value, &e));
    assert_ok(tnf_save(b, path, NULL, &e));
    tnf_builder_free(b);
}

static tnf_file *open_file(bool to_change)
{
    tnf_file *f;
    const tnf_open_options o = { .size = sizeof o, .to_change = to_change };
    assert_ok(tnf_open(&f, path, &o, &e));
    return f;
}

/* Saves the file over itself with one more attribute: the whole file, or only its tensors. */
static tnf_status save_with(const tnf_file *f, const char *key, bool whole, tnf_error *error)
{
    tnf_builder *b;
    const tnf_value v = { .kind = TNF_STRING, .n = 3, .as.s = "yes" };
    const tnf_save_options o = { .size = sizeof o, .replace = true };
    assert_ok(tnf_builder_new(&b, NULL, error));
    assert_ok(whole ? tnf_builder_add_file(b, f, error)
                    : tnf_builder_add_object(b, tnf_at(f, 0), NULL, error));
    assert_ok(tnf_builder_set(b, NULL, key, &v, error));
    tnf_status status = tnf_save(b, path, &o, error);
    tnf_builder_free(b);
    return status;
}

static bool has_attribute(const char *key)
{
    tnf_file *f = open_file(false);
    bool found = tnf_value_get(tnf_file_info(f)->attrs, key) != NULL;
    tnf_close(f);
    return found;
}

static void replaced_since(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        make_file();
        tnf_file *mine = open_file(false), *theirs = open_file(false);
        assert_ok(save_with(theirs, "theirs", true, &e));
        tnf_close(theirs);
        assert_fails(save_with(mine, "mine", whole, &e), TNF_ECHANGED);
        assert_says("since it was read");
        tnf_close(mine);
        assert_true(has_attribute("theirs") && !has_attribute("mine"));
        assert_int_equal(files_count(files_temp(), ""), 1);
    }
}

/* Changes by programs without claims are detected by the times of the file. */
static void overwritten_since(void **state)
{
    (void)state;
    make_file();
    tnf_file *mine = open_file(true);
    struct bytes b = bytes_of_file(path);
    nanosleep(&(struct timespec) { .tv_nsec = 20000000 }, NULL); /* a tick of the clock */
    bytes_to_file(path, b.p, b.n);
    assert_fails(save_with(mine, "mine", true, &e), TNF_ECHANGED);
    tnf_close(mine);
    assert_false(has_attribute("mine"));
    free(b.p);
}

/* A file that is not read may be replaced by any process. */
static void another_file(void **state)
{
    (void)state;
    make_file();
    tnf_file *mine = open_file(false);
    const tnf_save_options o = { .size = sizeof o, .replace = true };
    char other[320];
    snprintf(other, sizeof other, "%s.zt", path);
    tnf_builder *b;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_file(b, mine, &e));
    assert_ok(tnf_save(b, other, &o, &e));
    assert_ok(tnf_save(b, other, &o, &e));
    tnf_builder_free(b);
    tnf_close(mine);
    unlink(other);
}

static void *change_too(void *done)
{
    tnf_file *f = open_file(true); /* waits */
    tnf_error error;
    assert_ok(save_with(f, "second", true, &error));
    tnf_close(f);
    *(bool *)done = true;
    return NULL;
}

/* The second thread waits for the first and reads what it has written; both changes are there. */
static void one_after_the_other(void **state)
{
    (void)state;
    pthread_t thread;
    bool done = false;
    make_file();
    tnf_file *mine = open_file(true);
    assert_int_equal(pthread_create(&thread, NULL, change_too, &done), 0);
    nanosleep(&(struct timespec) { .tv_nsec = 30000000 }, NULL);
    assert_ok(save_with(mine, "first", true, &e));
    tnf_close(mine);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(done && has_attribute("first") && has_attribute("second"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaced_since),
        cmocka_unit_test(overwritten_since),
        cmocka_unit_test(another_file),
        cmocka_unit_test(one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
