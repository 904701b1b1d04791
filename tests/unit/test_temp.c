/* SPDX-License-Identifier: MIT */
/* Temporary names: what a killed writer left is removed by the next one; what belongs to a living
 * writer or to somebody else is not. */
#include "../support/files.h"
#include "../support/unit.h"
#include "io/claim.h"
#include "io/sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[300], target[320], temp[350];
static tnf_error e;

static int set_up(void **state)
{
    static int n;
    (void)state;
    snprintf(dir, sizeof dir, "%s/%d", files_temp(), n++);
    snprintf(target, sizeof target, "%s/out", dir);
    return mkdir(dir, 0700);
}

static tnf_status save_text(const char *text)
{
    tnf_sink *s;
    tnf_status status = tnf_sink_file(&s, target, TNF_SINK_REPLACE, &e);
    if (status != TNF_OK)
        return status;
    status = tnf_sink_write(s, text, strlen(text), &e);
    if (status == TNF_OK)
        status = tnf_sink_commit(s, &e);
    tnf_sink_close(s);
    return status;
}

/* Puts a file under the name that writers of the target use, and closes it, as the system does
 * when a process is killed. */
static void leave_stray(void)
{
    int fd = tnf_open_nameless(target, O_RDWR, 0600);
    if (fd >= 0)
        assert_ok(tnf_temp_link(fd, temp, sizeof temp, target, &e));
    else
        assert_ok(tnf_temp_create(&fd, temp, sizeof temp, target, 0600, &e));
    assert_int_equal(access(temp, F_OK), 0);
    close(fd);
}

static void a_stray_is_removed(void **state)
{
    (void)state;
    leave_stray();
    tnf_temp_sweep(target);
    assert_int_equal(files_count(dir, ""), 0);

    leave_stray(); /* by the next writer */
    assert_ok(save_text("first"));
    leave_stray();
    assert_ok(save_text("second"));
    assert_int_equal(files_count(dir, ""), 1);

    leave_stray(); /* and by one that changes the file in place */
    tnf_claim claim;
    assert_ok(tnf_claim_take(&claim, target, NULL, &e));
    tnf_claim_drop(&claim);
    assert_int_equal(files_count(dir, ""), 1);
}

/* The same name each time, so at most one is left, whatever happens. */
static void there_is_one_name(void **state)
{
    (void)state;
    char first[350];
    leave_stray();
    snprintf(first, sizeof first, "%s", temp);
    leave_stray();
    assert_string_equal(first, temp);
    assert_int_equal(files_count(dir, ""), 1);
    for (unsigned i = 0; i < 1000; i++) { /* other temporary files never have that name */
        tnf_temp_name(temp, sizeof temp, target, i);
        assert_string_not_equal(first, temp);
    }
}

/* A writer that lives keeps its file; another one uses another name meanwhile. */
static void a_living_writer_keeps_its_file(void **state)
{
    (void)state;
    char mine[350], other[350];
    int fd[2];
    assert_ok(tnf_temp_create(&fd[0], mine, sizeof mine, target, 0600, &e));
    tnf_temp_sweep(target);
    assert_int_equal(access(mine, F_OK), 0);
    assert_ok(tnf_temp_create(&fd[1], other, sizeof other, target, 0600, &e));
    assert_string_not_equal(mine, other);
    assert_ok(save_text("text"));
    assert_int_equal(access(mine, F_OK), 0);
    unlink(other);
    close(fd[1]);
    close(fd[0]);
    assert_ok(save_text("text"));
    assert_int_equal(files_count(dir, ""), 1);
}

static void make_link(void)
{
    assert_int_equal(symlink("victim", temp), 0);
}

static void make_second_name(void)
{
    char victim[350];
    snprintf(victim, sizeof victim, "%s/victim", dir);
    assert_int_equal(link(victim, temp), 0);
}

static void make_fifo(void)
{
    assert_int_equal(mkfifo(temp, 0600), 0);
}

static void make_folder(void)
{
    assert_int_equal(mkdir(temp, 0700), 0);
}

/* Only root can make a file of somebody else; for others this is a second FIFO. */
static void make_foreign(void)
{
    bytes_to_file(temp, "foreign", 7);
    if (chown(temp, 12345, (gid_t)-1) != 0) {
        unlink(temp);
        make_fifo();
    }
}

/* Planted under that name by others: neither removed nor followed, and saving works. */
static void planted_files_stay(void **state)
{
    static void (*const make[])(void) = { make_link, make_second_name, make_fifo, make_folder,
                                          make_foreign };
    (void)state;
    char victim[350];
    snprintf(victim, sizeof victim, "%s/victim", dir);
    leave_stray();
    for (size_t i = 0; i < sizeof make / sizeof *make; i++) {
        struct stat before, after;
        bytes_to_file(victim, "precious", 8);
        remove(temp);
        make[i]();
        assert_int_equal(lstat(temp, &before), 0);
        tnf_temp_sweep(target);
        assert_ok(save_text("first"));
        assert_ok(save_text("second"));
        assert_int_equal(lstat(temp, &after), 0);
        assert_int_equal(before.st_ino, after.st_ino);
        assert_int_equal(before.st_mode, after.st_mode);
        struct bytes b = bytes_of_file(victim);
        assert_true(b.n == 8 && memcmp(b.p, "precious", 8) == 0);
        free(b.p);
        assert_int_equal(files_count(dir, ""), 3); /* target, victim, and what was planted */
    }
}

/* A process that is really killed while its file has the temporary name. */
static void after_a_kill(void **state)
{
    (void)state;
    int ends[2], status;
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        int fd = tnf_open_nameless(target, O_RDWR, 0600);
        tnf_status made = fd >= 0 ? tnf_temp_link(fd, temp, sizeof temp, target, NULL)
                                  : tnf_temp_create(&fd, temp, sizeof temp, target, 0600, NULL);
        if (made != TNF_OK || write(ends[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(1);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    tnf_temp_sweep(target);
    assert_int_equal(files_count(dir, ""), 1); /* it lives */
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(files_count(dir, ""), 1);
    assert_ok(save_text("text"));
    assert_int_equal(files_count(dir, ""), 1);
    assert_int_equal(access(target, F_OK), 0);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_stray_is_removed, set_up),
        cmocka_unit_test_setup(there_is_one_name, set_up),
        cmocka_unit_test_setup(a_living_writer_keeps_its_file, set_up),
        cmocka_unit_test_setup(planted_files_stay, set_up),
        cmocka_unit_test_setup(after_a_kill, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
