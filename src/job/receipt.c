/* SPDX-License-Identifier: MIT */
/* The receipt of a finished part: a small file that appears only when it is complete.
 *
 *   BASE.tenfold-ID.parts/00007
 *   {"tenfold_receipt":1,"plan":"…","part":7,"bytes":N,"leaves":"hex","frame":"hex","rows":[…],
 *    "sha256":"…"}
 *
 * A receipt does not depend on the machine or the time: two runs of a part give the same bytes.
 */
#include "base/hex.h"
#include "base/str.h"
#include "io/fs.h"
#include "io/sink.h"
#include "job/job.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECEIPT_MAX ((uint64_t)1 << 32)
#define SEAL        ",\"sha256\":\""

/* ----------------------------------------------------------------------- text */

static bool seal_bytes(uint8_t out[TNF_HASH_BYTES], const void *p, size_t n)
{
    tnf_digester d;
    if (!tnf_digest_begin(&d, "sha256"))
        return false;
    tnf_digest_update(&d, p, n);
    tnf_digest_end(&d, out);
    return true;
}

void tnf_receipt_put(tnf_buf *out, const tnf_job *job, const struct job_receipt *r)
{
    uint8_t hash[TNF_HASH_BYTES];
    out->n = 0;
    tnf_buf_printf(out, "{\"tenfold_receipt\":1,\"plan\":\"%s\",\"part\":%" PRIu64, job->id,
                   r->part);
    tnf_buf_printf(out, ",\"bytes\":%" PRIu64 ",\"leaves\":\"", r->bytes);
    tnf_buf_put(out, r->leaves.p, r->leaves.n);
    tnf_buf_puts(out, "\",\"frame\":\"");
    tnf_buf_put(out, r->frame.p, r->frame.n);
    tnf_buf_puts(out, "\",\"rows\":");
    tnf_buf_put(out, r->rows.p, r->rows.n);
    if (out->status != TNF_OK)
        return;
    if (!seal_bytes(hash, out->p, out->n)) {
        out->status = TNF_ENOMEM;
        return;
    }
    tnf_buf_puts(out, SEAL);
    tnf_buf_hex(out, hash, sizeof hash);
    tnf_buf_puts(out, "\"}\n");
}

static tnf_status check_seal(const char *text, size_t n, tnf_error *e)
{
    uint8_t said[TNF_HASH_BYTES], found[TNF_HASH_BYTES];
    size_t tail = sizeof SEAL - 1 + TNF_HASH_BYTES * 2 + 3;
    bool good = n >= tail && memcmp(text + n - tail, SEAL, sizeof SEAL - 1) == 0 &&
                tnf_hex_take(said, text + n - 3 - TNF_HASH_BYTES * 2, sizeof said);
    if (good && !seal_bytes(found, text, n - tail))
        return tnf_no_memory("a digest", e);
    return good && memcmp(said, found, sizeof said) == 0
               ? TNF_OK
               : tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                          "a receipt is damaged; run its part again");
}

tnf_status tnf_receipt_parse(struct job_receipt *out, tnf_job *job, const char *text, size_t n,
                             tnf_arena *arena, tnf_error *e)
{
    tnf_json j;
    tnf_str plan = { "", 0 };
    *out = (struct job_receipt) { .part = UINT64_MAX };
    TNF_TRY(check_seal(text, n, e));
    tnf_json_init(&j, text, n, 0, arena, 64, e);
    if (tnf_json_enter(&j, '{'))
        for (tnf_str key; tnf_json_key(&j, &key);)
            (void)(tnf_str_is(key, "plan")     ? tnf_json_string(&j, &plan)
                   : tnf_str_is(key, "part")   ? tnf_json_u64(&j, &out->part)
                   : tnf_str_is(key, "bytes")  ? tnf_json_u64(&j, &out->bytes)
                   : tnf_str_is(key, "leaves") ? tnf_json_string(&j, &out->leaves)
                   : tnf_str_is(key, "frame")
                       ? tnf_json_string(&j, &out->frame)
                       : tnf_json_skip(&j, tnf_str_is(key, "rows") ? &out->rows : NULL));
    TNF_TRY(tnf_json_end(&j));
    if (!tnf_str_is(plan, job->id) || out->part >= job->o.parts)
        return tnf_fail(
            e, TNF_ECHANGED, TNF_NO_OFFSET,
            "a receipt belongs to another plan; use the plan that its part was run with");
    return TNF_OK;
}

/* ---------------------------------------------------------------------- files */

tnf_status tnf_read_text(tnf_buf *out, const char *path, uint64_t max, tnf_error *e)
{
    struct stat st;
    uint8_t block[65536];
    tnf_status status = TNF_OK;
    size_t got = 1;
    int fd = tnf_fs_open(path, O_RDONLY, 0);
    out->n = 0;
    if (fd < 0)
        return tnf_fail_sys(e, errno, "cannot open %s", TNF_VISIBLE(path));
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size > max)
        status = tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "%s is too large", TNF_VISIBLE(path));
    for (uint64_t at = 0; got > 0 && status == TNF_OK; at += got) {
        status = tnf_fs_read_at(fd, block, sizeof block, at, &got, e);
        if (status == TNF_OK)
            tnf_buf_put(out, block, got);
    }
    close(fd);
    return status == TNF_OK ? tnf_buf_status(out, "a receipt", e) : status;
}

static tnf_status receipt_path(char **out, const tnf_job *job, const char *base, uint64_t part,
                               tnf_error *e)
{
    char end[40];
    (void)snprintf(end, sizeof end, ".parts/%05" PRIu64, part);
    return tnf_job_path(out, job, base, end, e);
}

tnf_status tnf_receipt_read(tnf_job *job, const char *base, uint64_t part, tnf_error *e)
{
    char *path;
    TNF_TRY(receipt_path(&path, job, base, part, e));
    tnf_status status = tnf_read_text(&job->answer, path, RECEIPT_MAX, e);
    tnf_free_path(path);
    return status;
}

/* Reports the first leaf that differs between two receipts. */
static tnf_status tell_difference(const tnf_job *job, const struct job_receipt *now,
                                  const struct job_receipt *then, tnf_error *e)
{
    size_t first, end, leaf = 0;
    while (leaf * 64 + 64 <= now->leaves.n && leaf * 64 + 64 <= then->leaves.n &&
           memcmp(now->leaves.p + leaf * 64, then->leaves.p + leaf * 64, 64) == 0)
        leaf++;
    tnf_job_items(job, now->part, &first, &end);
    for (size_t i = first; i < end; leaf -= (size_t)job->items[i++].n)
        if (leaf < job->items[i].n)
            return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET,
                            "two runs of part %" PRIu64 " differ in leaf %" PRIu64
                            " of %s, so one of the machines is faulty",
                            now->part, job->items[i].first + leaf,
                            TNF_QUOTED(job->items[i].tensor));
    return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET,
                    "two runs of part %" PRIu64 " differ, so one of the machines is faulty",
                    now->part);
}

static tnf_status compare_receipts(tnf_job *job, const char *path, tnf_error *e)
{
    tnf_buf there;
    tnf_arena arena;
    struct job_receipt now, then;
    tnf_text_begin(&there, RECEIPT_MAX);
    tnf_scratch_begin(&arena);
    tnf_status status = tnf_read_text(&there, path, RECEIPT_MAX, e);
    bool same = status == TNF_OK && there.n == job->answer.n &&
                memcmp(there.p, job->answer.p, there.n) == 0;
    if (status == TNF_OK && !same)
        status = tnf_receipt_parse(&then, job, (const char *)there.p, there.n, &arena, e);
    if (status == TNF_OK && !same)
        status = tnf_receipt_parse(&now, job, (const char *)job->answer.p, job->answer.n, &arena,
                                   e);
    if (status == TNF_OK && !same)
        status = tell_difference(job, &now, &then, e);
    tnf_arena_free(&arena);
    tnf_buf_free(&there);
    return status;
}

tnf_status tnf_write_text(const char *path, const void *p, size_t n, unsigned flags, tnf_error *e)
{
    tnf_sink *sink;
    TNF_TRY(tnf_sink_file(&sink, path, flags, e));
    tnf_status status = tnf_sink_write(sink, p, n, e);
    if (status == TNF_OK)
        status = tnf_sink_commit(sink, e);
    tnf_sink_close(sink);
    return status;
}

tnf_status tnf_until_finish(tnf_status status, const tnf_error *why, tnf_error *e)
{
    if (status == TNF_OK || status == TNF_EUNSYNCED)
        return TNF_OK;
    if (e)
        *e = *why;
    return status;
}

static tnf_status leave_at(tnf_job *job, const char *path, tnf_error *e)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = tnf_write_text(path, job->answer.p, job->answer.n, 0, &why);
    return status == TNF_EEXISTS ? compare_receipts(job, path, e)
                                 : tnf_until_finish(status, &why, e);
}

tnf_status tnf_receipt_leave(tnf_job *job, const char *base, uint64_t part, tnf_error *e)
{
    char *path, *directory;
    TNF_TRY(tnf_job_path(&directory, job, base, ".parts", e));
    tnf_status status = tnf_fs_make_directory(directory, e);
    if (status == TNF_OK)
        status = receipt_path(&path, job, base, part, e);
    tnf_free_path(directory);
    TNF_TRY(status);
    status = leave_at(job, path, e);
    tnf_free_path(path);
    return status;
}
