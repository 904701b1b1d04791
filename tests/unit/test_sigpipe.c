/* SPDX-License-Identifier: MIT */
/* A SIGPIPE that is raised while it is held does not end the program. Any other one has its usual
 * effect. */
#include "../support/unit.h"
#include "base/sigpipe.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* Writes to a pipe without a reader. */
static void break_pipe(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        _exit(3);
    close(ends[0]);
    if (write(ends[1], "x", 1) >= 0 || errno != EPIPE)
        _exit(4);
    close(ends[1]);
}

static void hold_and_break(void)
{
    const tnf_sigpipe held = tnf_sigpipe_hold();
    break_pipe();
    tnf_sigpipe_release(&held);
}

static bool is_blocked(void)
{
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    return sigismember(&set, SIGPIPE) == 1;
}

static bool is_waiting(void)
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, SIGPIPE) == 1;
}

/* The wait status of a child that writes with the default action. */
static int run_child(void (*what)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGPIPE, SIG_DFL);
        what();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void stays_when_held(void)
{
    hold_and_break();
    if (is_blocked() || is_waiting())
        _exit(1);
}

static void ends_after_that(void)
{
    hold_and_break();
    break_pipe();
}

/* The program blocks the signal, and one is already pending. */
static void keeps_that_of_the_program(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    hold_and_break();
    if (is_waiting() || !is_blocked())
        _exit(1);
    break_pipe();
    hold_and_break();
    if (!is_waiting() || !is_blocked())
        _exit(1);
}

static void only_held_ones_are_dropped(void **state)
{
    (void)state;
    assert_int_equal(run_child(stays_when_held), 0);
    assert_int_equal(run_child(keeps_that_of_the_program), 0);
    int status = run_child(ends_after_that);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGPIPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(only_held_ones_are_dropped) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
