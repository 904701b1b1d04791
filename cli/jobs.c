/* SPDX-License-Identifier: MIT */
#include "jobs.h"
#include "out.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/remote.h>

#define PLAN_MAX (SIZE_MAX / 4 < UINT32_MAX ? SIZE_MAX / 4 : (size_t)UINT32_MAX)

/* ---------------------------------------------------------------------- plans */

/* Returns NULL without memory, and sets *large if the file is too large. */
static char *read_all(FILE *f, size_t *n, bool *large)
{
    size_t room = 1 << 16;
    char *text = malloc(room);
    *n = 0;
    *large = false;
    for (size_t got; text && (got = fread(text + *n, 1, room - *n, f)) > 0;) {
        *n += got;
        if (*n < room)
            continue;
        *large = room >= PLAN_MAX;
        char *more = *large ? NULL : realloc(text, room * 2);
        if (!more)
            free(text);
        text = more;
        room *= 2;
    }
    return text;
}

/* Does the text contain the words? It is not NUL-terminated. */
static bool has_words(const char *text, size_t n, const char *words)
{
    size_t length = strlen(words);
    for (size_t i = 0; i + length <= n; i++)
        if (text[i] == *words && memcmp(text + i, words, length) == 0)
            return true;
    return false;
}

int plan_load(loaded_plan *out, const char *path)
{
    tnf_error error;
    size_t n;
    bool large, std = strcmp(path, "-") == 0;
    FILE *f = std ? stdin : fopen(path, "rb");
    *out = (loaded_plan) { .path = path };
    if (!f)
        return cannot_open(path, errno);
    out->text = read_all(f, &n, &large);
    int failed = ferror(f) ? errno : 0;
    if (!std)
        fclose(f);
    if (failed)
        return cannot_read(path, failed);
    if (!out->text && !large)
        return memory_error();
    if (large || !has_words(out->text, n, "\"tenfold_plan\"")) {
        file_message(path, "", TNF_NO_OFFSET, "this is not a plan of 'tenfold plan'");
        return EXIT_BAD;
    }
    if (tnf_job_parse(&out->job, out->text, n, &error) != TNF_OK)
        return file_error(path, &error);
    out->info = tnf_job_describe(out->job);
    return EXIT_DONE;
}

void plan_free(loaded_plan *p)
{
    tnf_job_free(p->job);
    free(p->text);
}

/* Are receipts stored next to the plan? */
static bool beside_plan(const loaded_plan *p)
{
    return !p->info->out || tnf_is_url(p->info->out);
}

tnf_job_how plan_how(const loaded_plan *p)
{
    tnf_job_how how = TNF_JOB_HOW_INIT;
    how.base = beside_plan(p) ? p->path : NULL;
    return how;
}

/* ----------------------------------------------------------------------- part */

static bool parse_part(const char *text, uint64_t *i, uint64_t *n)
{
    char *end;
    return number_parse(i, text, &end) && *end == '/' && number_parse(n, end + 1, &end) && !*end &&
           *i < *n;
}

static int do_part(const cli_state *cli, const char *name, const part_options *o,
                   const loaded_plan *p, uint64_t i, uint64_t n)
{
    tnf_error error;
    tnf_job_how how = plan_how(p);
    how.trust_content = o->trust_content;
    if (strcmp(p->info->job, name) != 0)
        return usage_error("%s: the plan is for the command %s", name, p->info->job);
    if (n != p->info->parts)
        return usage_error("%s: the plan has %" PRIu64 " parts, not %" PRIu64, name, p->info->parts,
                           n);
    if (strcmp(p->path, "-") == 0 && beside_plan(p))
        return usage_error("%s: a plan without --out, or with a URL as --out, must be a file, "
                           "since receipts are stored next to it",
                           name);
    tnf_str receipt;
    if (tnf_job_part(&receipt, p->job, i, &how, &error) != TNF_OK)
        return file_error(p->path, &error);
    if (!cli->quiet && receipt.n < 1000 &&
        has_words(receipt.p, receipt.n, "\"finished_before\":true"))
        file_message(p->info->out, "", TNF_NO_OFFSET, "already finished");
    return EXIT_DONE;
}

int part_run(const cli_state *cli, const char *name, const part_options *o, int nargs)
{
    loaded_plan p;
    uint64_t i, n;
    if (!o->plan || !o->part)
        return usage_error("%s: --plan and --part must be given together", name);
    if (nargs > 0)
        return usage_error("%s: --plan takes no FILE, since the plan names the files", name);
    if (!parse_part(o->part, &i, &n))
        return usage_error("%s: --part takes I/N with I from 0 to N - 1, such as 7/64, not '%s'",
                           name, o->part);
    int code = plan_load(&p, o->plan);
    if (p.info)
        code = do_part(cli, name, o, &p, i, n);
    plan_free(&p);
    return code;
}
