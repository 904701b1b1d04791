/* SPDX-License-Identifier: MIT */
/* Reports the size and the content hash of an output. The hash is computed from the leaves in the
 * receipts if tensors are stored unchanged, else by reading the file.
 */
#include "base/hex.h"
#include "job/finishing.h"
#include "job/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --------------------------------------------------------------------- leaves */

tnf_status tnf_finish_leaves(struct finishing *f, uint8_t **out, uint64_t **before, tnf_error *e)
{
    const tnf_job *job = f->job;
    uint64_t total = 0;
    *before = tnf_arena_array(&f->arena, job->nitems + 1, sizeof **before);
    if (!*before)
        return tnf_arena_fail(&f->arena, "hashes", e);
    for (size_t i = 0; i < job->nitems; i++) {
        (*before)[i] = total;
        total += job->items[i].n;
    }
    uint8_t *to = *out = tnf_arena_array(&f->arena, total + 1, TNF_HASH_BYTES);
    if (!to)
        return tnf_arena_fail(&f->arena, "hashes", e);
    for (uint64_t i = 0; i < job->o.parts; i++) {
        tnf_str leaves = f->receipts[i].leaves;
        if (leaves.n % 2 || !tnf_hex_take(to, leaves.p, leaves.n / 2))
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                            "receipt %" PRIu64 " is damaged; run that part again", i);
        to += leaves.n / 2;
    }
    return TNF_OK;
}

/* ------------------------------------------------- the content hash of the output */

struct written {
    tnf_str tensor;
    const char *role;
    uint64_t bytes;
    const uint8_t *leaves;
};

static int by_name(const void *a, const void *b)
{
    const struct written *x = a, *y = b;
    int c = tnf_str_compare(x->tensor, y->tensor);
    return c ? c : strcmp(x->role, y->role);
}

/* Lists the written tensors. Each has one item, or several adjacent ones. */
static size_t list_written(struct written *list, const tnf_job *job, const uint8_t *all,
                           const uint64_t *before)
{
    size_t n = 0;
    for (size_t i = 0; i < job->nitems; i++) {
        const struct job_item *it = &job->items[i];
        if (it->first == 0)
            list[n++] = (struct written) { it->tensor, it->role, 0,
                                           all + before[i] * TNF_HASH_BYTES };
        if (n > 0)
            list[n - 1].bytes += it->bytes;
    }
    if (n)
        qsort(list, n, sizeof *list, by_name);
    return n;
}

/* Returns false if the tensor that is read back has other bytes than the file. */
static bool hash_object(struct finishing *f, uint8_t out[TNF_HASH_BYTES], const tnf_object *o,
                        const struct written *list, size_t n)
{
    uint64_t count = tnf_leaves_before(o, o->nparts);
    uint8_t *leaves = tnf_arena_array(&f->arena, count + 1, TNF_HASH_BYTES), *to = leaves;
    if (!leaves || (o->order != TNF_ORDER_C && o->rank > 1))
        return false;
    for (uint16_t k = 0; k < o->nparts; k++) {
        const tnf_part *part = &o->parts[k];
        const struct written key = { .tensor = o->name, .role = part->role };
        const struct written *found = part->nbytes && n
                                          ? bsearch(&key, list, n, sizeof *list, by_name)
                                          : NULL;
        if (part->nbytes == 0)
            continue;
        if (!found || found->bytes != part->nbytes)
            return false;
        memcpy(to, found->leaves, (size_t)tnf_count_leaves(part) * TNF_HASH_BYTES);
        to += tnf_count_leaves(part) * TNF_HASH_BYTES;
    }
    return tnf_content_of_leaves(out, o, leaves, NULL) == TNF_OK;
}

/* Computes the hash of an output that was written in ranges; returns false if it must be read. */
static bool hash_ranges(struct finishing *f, uint8_t out[TNF_HASH_BYTES], const tnf_file *file,
                        const uint8_t *all, const uint64_t *before)
{
    const tnf_job *job = f->job;
    struct written *list = tnf_arena_array(&f->arena, job->nitems + 1, sizeof *list);
    if (!list)
        return false;
    size_t n = list_written(list, job, all, before), objects = tnf_file_info(file)->objects;
    uint8_t(*tensors)[TNF_HASH_BYTES] = tnf_arena_array(&f->arena, objects + 1, sizeof *tensors);
    bool good = tensors != NULL;
    for (size_t i = 0; i < objects && good; i++)
        good = hash_object(f, tensors[i], tnf_at(file, i), list, n);
    return good && tnf_content_of_tensors(out, file, (const uint8_t(*)[TNF_HASH_BYTES])tensors,
                                          NULL) == TNF_OK;
}

/* ---------------------------------------------------------------------- reading */

/* Opens the complete output at its current path. */
static tnf_status open_output(struct finishing *f, tnf_file **out, tnf_error *e)
{
    const tnf_job *job = f->job;
    tnf_open_options how = TNF_OPEN_INIT;
    char *index = NULL;
    how.unpack = true;
    how.format = job->o.max_bytes ? NULL : job->format; /* an index has its own format */
    if (job->index)
        TNF_TRY(tnf_job_temp(&index, job, job->nouts, e));
    tnf_status status = tnf_open(out, index ? index : f->now[0], &how, e);
    tnf_free_path(index);
    return status;
}

/* Computes the hash by reading the complete output. This is necessary if its layout depends on its
 * content, or if tensors are read back in another form. */
static tnf_status hash_again(struct finishing *f, uint8_t out[TNF_HASH_BYTES], const tnf_file *file,
                             tnf_error *e)
{
    tnf_hash_options how = TNF_HASH_INIT;
    how.threads = f->how.threads;
    how.progress = f->how.progress;
    how.ctx = f->how.ctx;
    return tnf_content_hash(out, file, &how, e);
}

static tnf_status hash_output(struct finishing *f, uint8_t out[TNF_HASH_BYTES], bool *known,
                              tnf_error *e)
{
    tnf_file *file;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    uint8_t *all;
    uint64_t *before;
    *known = false;
    tnf_status status = open_output(f, &file, &why);
    if (status != TNF_OK && tnf_job_is_remote(f->job))
        return TNF_OK; /* the object is visible already, so the job must not fail */
    if (status != TNF_OK && e)
        *e = why;
    TNF_TRY(status);
    if (strcmp(f->job->mode, "whole") != 0) {
        status = tnf_finish_leaves(f, &all, &before, e);
        *known = status == TNF_OK && hash_ranges(f, out, file, all, before);
    }
    if (status == TNF_OK && !*known && !f->how.no_verify && !tnf_job_is_remote(f->job)) {
        tnf_status again = hash_again(f, out, file, &why);
        *known = again == TNF_OK;
        if (again == TNF_ECANCELLED)
            status = tnf_fail(e, again, TNF_NO_OFFSET, "%s", why.message);
    }
    tnf_close(file);
    return status;
}

tnf_status tnf_finish_output(struct finishing *f, tnf_buf *b, tnf_error *e)
{
    const tnf_job *job = f->job;
    uint8_t hash[TNF_HASH_BYTES];
    uint64_t size = f->sent;
    bool known, remote = tnf_job_is_remote(job);
    for (size_t i = 0; i < job->nouts && !remote; i++) {
        struct stat st;
        if (stat(f->now[i], &st) != 0)
            return tnf_fail_sys(e, errno, "cannot read %s", TNF_VISIBLE(f->now[i]));
        size += (uint64_t)st.st_size;
    }
    tnf_buf_puts(b, ",");
    tnf_row_key(b, "out", job->o.out);
    tnf_buf_printf(b, ",\"format\":\"%s\",\"size\":%" PRIu64 ",\"hash\":", job->format, size);
    TNF_TRY(hash_output(f, hash, &known, e));
    if (known)
        tnf_finish_put_hash(b, hash);
    else
        tnf_buf_puts(b, "null");
    return TNF_OK;
}
