/* SPDX-License-Identifier: MIT */
/* Marks a file as the result of this plan, for the time when the plan's other files are gone. The
 * mark is an extended attribute, which readers do not see, and which moves with the file.
 *
 *   user.tenfold.plan = "1 HASH SIZE TIME"     the hash of the plan with the paths, sizes and times
 *                                              of its inputs; size and time of change of this file
 *
 * The id of a plan is not enough, since another model with the same shapes has the same id. On a
 * file system without attributes there are no marks, and a result is treated like any other file.
 */
#include "base/hex.h"
#include "io/fs.h"
#include "job/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif

#define MARK_NAME "user.tenfold.plan"
#define MARK_ROOM 160u

/* Returns false if there is no memory, or no file. */
static bool make_mark(char out[MARK_ROOM], const tnf_job *job, const char *path)
{
    struct stat st;
    uint8_t hash[TNF_HASH_BYTES];
    char hex[2 * TNF_HASH_BYTES + 1] = "";
    tnf_digester d;
    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
        tnf_content_begin(&d, "tenfold mark 1\n", NULL) != TNF_OK)
        return false;
    tnf_content_text(&d, job->text.p, job->text.n);
    tnf_digest_end(&d, hash);
    tnf_hex_put(hex, hash, sizeof hash);
    tnf_stamp stamp = tnf_stamp_of(&st);
    snprintf(out, MARK_ROOM, "1 %s %" PRIu64 " %" PRId64 ".%09ld", hex, (uint64_t)st.st_size,
             (int64_t)stamp.modified.tv_sec, (long)stamp.modified.tv_nsec);
    return true;
}

void tnf_job_mark(const tnf_job *job, const char *path)
{
    char mark[MARK_ROOM];
#ifdef __linux__
    if (make_mark(mark, job, path))
        (void)lsetxattr(path, MARK_NAME, mark, strlen(mark), 0);
#else
    (void)make_mark(mark, job, path);
#endif
}

static bool is_marked(const tnf_job *job, const char *path)
{
    char mark[MARK_ROOM], found[MARK_ROOM];
    if (!make_mark(mark, job, path))
        return false;
#ifdef __linux__
    ssize_t n = lgetxattr(path, MARK_NAME, found, sizeof found);
    return n > 0 && (size_t)n == strlen(mark) && memcmp(found, mark, (size_t)n) == 0;
#else
    (void)found;
    return false;
#endif
}

bool tnf_job_marked(const tnf_job *job)
{
    bool all = job->kind == TNF_JOB_CONVERT && job->nouts > 0;
    for (size_t i = 0; i < job->nouts && all; i++)
        all = is_marked(job, job->outs[i].path);
    return all && (!job->index || is_marked(job, job->index));
}
