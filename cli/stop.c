/* SPDX-License-Identifier: MIT */
#include "stop.h"
#include "cmd.h"
#include <unistd.h>

static volatile sig_atomic_t stopped_by;

static void on_signal(int number)
{
    stopped_by = number;
}

static const int stopping[STOP_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

void stop_catch(stop_state *s)
{
    struct sigaction action = { 0 };
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    for (unsigned i = 0; i < STOP_SIGNALS; i++) {
        sigaction(stopping[i], NULL, &s->before[i]);
        if (s->before[i].sa_handler != SIG_IGN)
            sigaction(stopping[i], &action, NULL);
    }
}

bool stop_asked(void)
{
    return stopped_by != 0;
}

void stop_release(const stop_state *s, bool stopped)
{
    if (!stopped)
        stopped_by = 0;
    for (unsigned i = 0; i < STOP_SIGNALS; i++)
        sigaction(stopping[i], &s->before[i], NULL);
    if (stopped_by)
        raise(stopped_by);
}

static void on_cut_file(int number)
{
    static const char text[] = "tenfold: a file was truncated while it was being read\n";
    (void)number;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(EXIT_IO);
}

void stop_on_cut_files(void)
{
    struct sigaction action = { 0 };
    action.sa_handler = on_cut_file;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
