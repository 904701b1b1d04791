/* SPDX-License-Identifier: MIT */
/* The claim on a file: one at a time, on the file that has the name at that time, also against
 * programs that only use VS's lock; and the attributes that a replacing file inherits. */
#include "../support/files.h"
#include "../support/unit.h"
#include "io/claim.h"
#include "io/lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static tnf_error e;

static const char *path_of(const char *name)
{
    static char path[4][300];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", files_temp(), name);
    return out;
}

static const char *file_of(const char *name, const char *text)
{
    const char *path = path_of(name);
    bytes_to_file(path, text, strlen(text));
    return path;
}

/* Gives up after a few attempts; before that it may call a function. */
struct waiter {
    int tries;
    void (*act)(void *ctx);
    void *ctx;
};

static bool wait_a_little(void *ctx)
{
    struct waiter *w = ctx;
    if (w->tries-- == 2 && w->act)
        w->act(w->ctx);
    return w->tries > 0;
}

static tnf_status take_claim(tnf_claim *c, const char *path, struct waiter *w)
{
    const tnf_waiting waiting = { wait_a_little, w };
    return tnf_claim_take(c, path, &waiting, &e);
}

static void one_at_a_time(void **state)
{
    (void)state;
    tnf_claim first, second;
    const char *path = file_of("one", "bytes");
    assert_ok(take_claim(&first, path, &(struct waiter) { .tries = 3 }));
    assert_true(first.fd >= 0 && first.writable);
    assert_int_equal(first.stamp.size, 5);
    assert_fails(take_claim(&second, path, &(struct waiter) { .tries = 3 }), TNF_ECANCELLED);
    assert_int_equal(second.fd, -1);
    tnf_claim_drop(&first);
    assert_ok(take_claim(&second, path, &(struct waiter) { .tries = 3 }));
    tnf_claim_drop(&second);
}

static void nothing_to_claim(void **state)
{
    (void)state;
    tnf_claim c;
    assert_ok(tnf_claim_take(&c, path_of("absent"), NULL, &e));
    assert_int_equal(c.fd, -1);
    assert_ok(tnf_claim_take(&c, files_temp(), NULL, &e));
    assert_int_equal(c.fd, -1);
    const char *fifo = path_of("fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_ok(tnf_claim_take(&c, fifo, NULL, &e));
    assert_int_equal(c.fd, -1);
}

struct replacing {
    const char *path;
    tnf_claim *held;
};

static void replace_and_let_go(void *ctx)
{
    const struct replacing *r = ctx;
    const char *other = file_of("other", "another file");
    assert_int_equal(rename(other, r->path), 0);
    tnf_claim_drop(r->held);
}

/* A waiting process gets the file that has the name when the wait ends. */
static void replaced_while_waiting(void **state)
{
    (void)state;
    tnf_claim first, second;
    const char *path = file_of("replaced", "bytes");
    assert_ok(tnf_claim_take(&first, path, NULL, &e));
    struct replacing r = { path, &first };
    struct waiter w = { .tries = 4, .act = replace_and_let_go, .ctx = &r };
    assert_ok(take_claim(&second, path, &w));
    assert_int_equal(second.stamp.size, strlen("another file"));
    assert_true(tnf_claim_holds(&second, path));
    assert_true(tnf_claim_unchanged(&second, path));
    bytes_to_file(path, "changed by one who knows no claims", 34);
    assert_true(tnf_claim_holds(&second, path));
    assert_false(tnf_claim_unchanged(&second, path));
    assert_int_equal(rename(file_of("third", "x"), path), 0);
    assert_false(tnf_claim_holds(&second, path));
    tnf_claim_drop(&second);
}

/* Writers of VS files only have their own lock, which readers ignore. */
static void apart_from_vs(void **state)
{
    (void)state;
    tnf_claim c;
    const char *path = file_of("vs", "VS");
    int fd = open(path, O_RDWR);
    assert_ok(tnf_lock_take(fd, true, 0, &e));
    assert_fails(take_claim(&c, path, &(struct waiter) { .tries = 3 }), TNF_ECANCELLED);
    tnf_lock_drop(fd);
    assert_ok(tnf_lock_take(fd, false, 0, &e));
    assert_ok(take_claim(&c, path, &(struct waiter) { .tries = 3 }));
    tnf_lock_drop(fd);
    assert_fails(tnf_lock_take(fd, true, 0, &e), TNF_EIO);
    tnf_claim_drop(&c);
    assert_ok(tnf_lock_take(fd, true, 0, &e));
    close(fd);
}

/* Readers wait until a change in place is done, and a change waits for readers. */
static void changes_and_readers(void **state)
{
    (void)state;
    const char *path = file_of("change", "bytes");
    int a = open(path, O_RDWR), b = open(path, O_RDONLY), c = open(path, O_RDONLY);
    assert_ok(tnf_lock_change(b, false, 0, &e));
    assert_ok(tnf_lock_change(c, false, 0, &e));
    assert_fails(tnf_lock_change(a, true, 0, &e), TNF_EIO);
    tnf_unlock_change(b);
    close(c);
    assert_ok(tnf_lock_change(a, true, 0, &e));
    assert_fails(tnf_lock_change(b, false, 0, &e), TNF_EIO);
    assert_says("changes");
    tnf_unlock_change(a);
    assert_ok(tnf_lock_change(b, false, 0, &e));
    close(a);
    close(b);
}

/* ------------------------------------------------------------- permissions */

static struct stat rights_after(mode_t mode, uid_t uid, gid_t gid)
{
    struct stat old = { .st_mode = S_IFREG | mode, .st_uid = uid, .st_gid = gid }, now;
    int fd = open(path_of("rights"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    tnf_keep_rights(fd, -1, &old);
    assert_int_equal(fstat(fd, &now), 0);
    close(fd);
    unlink(path_of("rights"));
    return now;
}

static void rights_are_handed_down(void **state)
{
    (void)state;
    struct stat st = rights_after(0640, geteuid(), getegid());
    assert_int_equal(st.st_mode & 07777, 0640);
    st = rights_after(06755 | 01000, geteuid(), getegid());
    assert_int_equal(st.st_mode & 07777, 0755);
    bool root = geteuid() == 0;
    st = rights_after(0664, root ? 1234 : geteuid(), root ? 4321 : (gid_t)54321);
    assert_int_equal(st.st_mode & 07777, root ? 0664 : 0644); /* no permissions for another group */
    assert_true(!root || (st.st_uid == 1234 && st.st_gid == 4321));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_at_a_time),          cmocka_unit_test(nothing_to_claim),
        cmocka_unit_test(replaced_while_waiting), cmocka_unit_test(apart_from_vs),
        cmocka_unit_test(changes_and_readers),    cmocka_unit_test(rights_are_handed_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
