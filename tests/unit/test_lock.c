/* SPDX-License-Identifier: MIT */
/* Locks on the first four bytes: among handles of one process and among processes, waiting, not
 * waiting, and the gate that keeps writers from starving. */
#include "../support/files.h"
#include "../support/unit.h"
#include "io/lock.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

static int open_file(int flags)
{
    char path[300];
    snprintf(path, sizeof path, "%s/locked", files_temp());
    int fd = open(path, flags | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void handles_share_and_exclude(void **state)
{
    (void)state;
    tnf_error e;
    int a = open_file(O_RDWR), b = open_file(O_RDWR), r = open_file(O_RDONLY);
    assert_ok(tnf_lock_take(a, false, 0, &e)); /* shared: any number */
    assert_ok(tnf_lock_take(b, false, 0, &e));
    assert_ok(tnf_lock_take(r, false, 0, &e));
    tnf_lock_drop(b);
    assert_fails(tnf_lock_take(b, true, 0, &e), TNF_EIO);
    assert_int_equal(e.sys, EAGAIN);
    tnf_lock_drop(a);
    tnf_lock_drop(r);
    assert_ok(tnf_lock_take(b, true, 0, &e)); /* exclusive: one */
    assert_fails(tnf_lock_take(a, false, 0, &e), TNF_EIO);
    assert_fails(tnf_lock_take(a, true, 20, &e), TNF_EIO);
    close(a); /* closing another handle of the file does not release locks */
    assert_fails(tnf_lock_take(r, false, 0, &e), TNF_EIO);
    tnf_lock_drop(b);
    assert_ok(tnf_lock_take(r, false, 0, &e));
    assert_int_not_equal(tnf_lock_take(r, true, 0, &e), TNF_OK); /* not open for writing */
    close(b);
    close(r);
}

/* A program that uses classic locks on bytes 0 to 3 is excluded, and excludes us. */
static void keeps_strangers_out(void **state)
{
    (void)state;
    tnf_error e;
    int fd = open_file(O_RDWR), ends[2], back[2], status;
    char byte;
    assert_true(pipe(ends) == 0 && pipe(back) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 4 };
        int own = open_file(O_RDWR);
        if (fcntl(own, F_SETLK, &l) != 0 || write(ends[1], "x", 1) != 1)
            _exit(1);
        _exit(read(back[0], &byte, 1) == 1 ? 0 : 1);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_fails(tnf_lock_take(fd, false, 0, &e), TNF_EIO);
    assert_fails(tnf_lock_take(fd, true, 30, &e), TNF_EIO);
    assert_int_equal(write(back[1], "x", 1), 1);
    assert_ok(tnf_lock_take(fd, true, TNF_LOCK_FOREVER, &e)); /* when the other process ends */
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct flock l = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 4 };
    int other = open_file(O_RDWR);
    assert_int_equal(fcntl(other, F_SETLK, &l), -1);
    close(other);
    close(fd);
    close(ends[0]);
    close(ends[1]);
    close(back[0]);
    close(back[1]);
}

#define MOST_TURNS 20000 /* a writer that waits this often, 3 ms each time, starves */

static void read_all_the_time(atomic_int *done)
{
    int fd = open_file(O_RDONLY), turns = 0;
    while (!atomic_load(done) && turns++ < MOST_TURNS) {
        if (tnf_lock_take(fd, false, TNF_LOCK_FOREVER, NULL) != TNF_OK)
            _exit(2);
        usleep(3000);
        tnf_lock_drop(fd);
    }
    _exit(turns < MOST_TURNS ? 0 : 1);
}

/* At any time, some of four readers hold the lock: a writer still gets it. */
static void writers_do_not_starve(void **state)
{
    (void)state;
    tnf_error e;
    pid_t children[4];
    int fd = open_file(O_RDWR), status;
    int shared = MAP_SHARED | MAP_ANONYMOUS;
    atomic_int *done = mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, shared, -1, 0);
    assert_true(done != MAP_FAILED);
    for (int i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0)
            read_all_the_time(done);
    usleep(50000); /* the readers should be running now; if they are not, less is tested */
    for (int i = 0; i < 50; i++) {
        assert_ok(tnf_lock_take(fd, true, TNF_LOCK_FOREVER, &e));
        tnf_lock_drop(fd);
    }
    atomic_store(done, 1);
    for (int i = 0; i < 4; i++)
        assert_true(waitpid(children[i], &status, 0) == children[i] && status == 0);
    munmap(done, sizeof *done);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(handles_share_and_exclude),
                                        cmocka_unit_test(keeps_strangers_out),
                                        cmocka_unit_test(writers_do_not_starve) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
