/* SPDX-License-Identifier: MIT */
/* tenfold run: runs all parts of a plan on this machine, each in its own process. */
#include "jobs.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct options {
    const char *jobs;
    bool json;
    finish_options finish;
} options;

typedef struct running {
    const loaded_plan *plan;
    tnf_job_how how;
    pid_t *pids;     /* the processes; 0: a free slot */
    uint64_t *parts; /* the part that each process runs */
    unsigned jobs, busy;
    int worst;
} running;

/* Runs in a process of its own, which shares only the storage with the other parts. */
static int do_part(const running *r, uint64_t part)
{
    tnf_error error;
    if (tnf_job_part(NULL, r->plan->job, part, &r->how, &error) == TNF_OK)
        return EXIT_DONE;
    return file_error(r->plan->path, &error);
}

static void start_part(running *r, uint64_t part)
{
    unsigned i = 0;
    while (r->pids[i])
        i++;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(do_part(r, part));
    if (pid < 0) {
        file_message(r->plan->path, "", TNF_NO_OFFSET, strerror(errno));
        r->worst = EXIT_IO;
        return;
    }
    r->pids[i] = pid;
    r->parts[i] = part;
    r->busy++;
}

static void wait_one(running *r)
{
    int status;
    pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0 && errno == EINTR)
        return;
    for (unsigned i = 0; i < r->jobs; i++) {
        if (pid > 0 && r->pids[i] != pid)
            continue;
        if (!r->pids[i])
            continue;
        int code = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_IO;
        if (pid > 0 && WIFSIGNALED(status)) {
            char text[80];
            snprintf(text, sizeof text, "part %" PRIu64 " was killed by signal %d", r->parts[i],
                     WTERMSIG(status));
            file_message(r->plan->path, "", TNF_NO_OFFSET, text);
        }
        r->worst = code > r->worst ? code : r->worst;
        r->pids[i] = 0;
        r->busy--;
    }
}

static int run_parts(running *r)
{
    r->pids = calloc(r->jobs, sizeof *r->pids);
    r->parts = calloc(r->jobs, sizeof *r->parts);
    if (!r->pids || !r->parts)
        return memory_error();
    for (uint64_t i = 0; i < r->plan->info->parts && r->worst == EXIT_DONE; i++) {
        while (r->busy == r->jobs)
            wait_one(r);
        if (r->worst == EXIT_DONE)
            start_part(r, i);
    }
    while (r->busy > 0)
        wait_one(r);
    return r->worst;
}

static int run_plan(const cli_state *cli, const options *o, const loaded_plan *p)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    running r = { .plan = p, .how = plan_how(p), .jobs = cores > 0 ? (unsigned)cores : 1 };
    if (o->jobs && !opt_count(&r.jobs, o->jobs))
        return usage_error("run: --jobs takes a number from 1 to 1000, not '%s'", o->jobs);
    r.how.trust_content = o->finish.trust_content;
    r.how.no_verify = o->finish.no_verify;
    r.how.check_input = o->finish.check_input;
    r.how.threads = (unsigned)cores > r.jobs ? (unsigned)cores / r.jobs : 1;
    int code = run_parts(&r);
    free(r.pids);
    free(r.parts);
    r.how.threads = 0;
    return code == EXIT_DONE ? plan_finish(cli, p, &r.how, o->json) : code;
}

static int run_run(const cli_state *cli, const void *opts, int argc, char **argv)
{
    loaded_plan p;
    (void)argc;
    int code = plan_load(&p, argv[0]);
    if (code == EXIT_DONE)
        code = run_plan(cli, opts, &p);
    plan_free(&p);
    return code;
}

static const opt table[] = {
    { "jobs", 'j', OPT_TEXT, offsetof(options, jobs), "N", NULL,
      "Run N parts at a time, each as a process [one per core]." },
    { "json", 0, OPT_FLAG, offsetof(options, json), NULL, NULL, "Print the result as JSON." },
    FINISH_OPTIONS(options, finish),
    { 0 },
};

static const example examples[] = {
    { "tenfold run plan.json -j 4", "four processes, then finish" },
    { 0 },
};

const command cmd_run = {
    .name = "run",
    .args = "PLAN",
    .summary = "run all parts of a plan on this machine",
    .about = "Runs every part of a plan, several at a time and each as its own process, and then "
             "finishes the plan. Parts that are done already do not run again, so an interrupted "
             "run can be continued. Any scheduler can do the same; 'tenfold help plan' shows how "
             "xargs does it.",
    .examples = examples,
    .table = table,
    .size = sizeof(options),
    .min_args = 1,
    .max_args = 1,
    .run = run_run,
};
