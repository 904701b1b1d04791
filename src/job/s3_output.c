/* SPDX-License-Identifier: MIT */
/* An s3 object as the output of a plan: a multipart upload that all parts share.
 *
 *   object    [ window of part 0 ][ window of part 1 ][ … ]
 *   upload    1    2    3         4    5    6           …     pieces of 8 MiB and more, numbered
 *
 * The first part begins the upload and stores its ID next to the receipts. A receipt has the
 * numbers and ETags of its part's pieces. Nothing is visible until finish completes the upload. All
 * pieces of an object except the last need at least 5 MiB, so a shorter rest at the end of a window
 * is sent with the piece before.
 */
#include "base/str.h"
#include "io/fs.h"
#include "job/finishing.h"
#include "remote/list.h"
#include "wire/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PIECE   ((uint64_t)8 << 20)
#define ID_MAX  4096u
#define LARGEST ((uint64_t)2 << 30) /* the largest piece; it is kept in memory */

bool tnf_job_is_remote(const tnf_job *job)
{
    return job->kind == TNF_JOB_CONVERT && job->o.out && tnf_is_url(job->o.out);
}

/* -------------------------------------------------------------------- numbers */

static uint64_t pieces_of(const struct job_window *w, uint64_t piece)
{
    uint64_t n = w->end - w->first;
    return 1 + (n >= TNF_UPLOAD_LEAST ? (n - TNF_UPLOAD_LEAST) / piece : 0);
}

/* The number of pieces of all parts before this one. */
static tnf_status count_before(uint64_t *out, const tnf_job *job, uint64_t part, uint64_t piece,
                               tnf_error *e)
{
    tnf_arena arena;
    tnf_status status = TNF_OK;
    tnf_scratch_begin(&arena);
    *out = 0;
    for (uint64_t i = 0; i < part && status == TNF_OK; i++) {
        struct job_window *windows;
        size_t n = 0;
        status = tnf_job_windows(&windows, &n, job, i, &arena, e);
        for (size_t k = 0; k < n && status == TNF_OK; k++)
            *out += pieces_of(&windows[k], piece);
    }
    tnf_arena_free(&arena);
    return status;
}

/* Chooses the size of pieces, which is the same for all parts. */
static tnf_status choose_piece(uint64_t *piece, const tnf_job *job, tnf_error *e)
{
    uint64_t n = 0;
    for (*piece = PIECE; *piece <= LARGEST; *piece *= 2) {
        TNF_TRY(count_before(&n, job, job->o.parts, *piece, e));
        if (n <= TNF_UPLOAD_PARTS)
            return TNF_OK;
    }
    return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                    "an s3 object has at most %u pieces, so the plan needs fewer parts",
                    TNF_UPLOAD_PARTS);
}

tnf_status tnf_s3_check(const tnf_job *job, tnf_error *e)
{
    tnf_arena arena;
    uint64_t piece;
    tnf_status status = TNF_OK;
    if (strcmp(job->mode, "whole") == 0)
        return TNF_OK;
    tnf_scratch_begin(&arena);
    for (uint64_t i = 0; i < job->o.parts && status == TNF_OK; i++) {
        struct job_window *w;
        size_t n = 0;
        status = tnf_job_windows(&w, &n, job, i, &arena, e);
        for (size_t k = 0; k < n && status == TNF_OK; k++)
            if (w[k].end - w[k].first < TNF_UPLOAD_LEAST && w[k].end < job->outs[0].size)
                status = tnf_fail(
                    e, TNF_EINVAL, TNF_NO_OFFSET,
                    "part %" PRIu64 " would write %" PRIu64
                    " bytes, but every part except the last must write at least %u; use "
                    "fewer parts",
                    i, w[k].end - w[k].first, TNF_UPLOAD_LEAST);
    }
    tnf_arena_free(&arena);
    return status == TNF_OK ? choose_piece(&piece, job, e) : status;
}

/* --------------------------------------------------------------------- upload */

static tnf_status read_id(tnf_upload *u, const char *path, tnf_error *e)
{
    tnf_buf id;
    tnf_text_begin(&id, ID_MAX);
    tnf_status status = tnf_read_text(&id, path, ID_MAX, e);
    if (status == TNF_OK)
        status = tnf_upload_join(u, id.p, id.n, e);
    tnf_buf_free(&id);
    return status;
}

/* The first part begins the upload. If two parts do so at once, one of the uploads is aborted. */
static tnf_status share_id(tnf_upload *u, const char *path, tnf_error *e)
{
    tnf_str id;
    if (read_id(u, path, NULL) == TNF_OK)
        return TNF_OK;
    TNF_TRY(tnf_upload_begin(u, &id, e));
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = tnf_write_text(path, id.p, id.n, 0, &why);
    if (tnf_until_finish(status, &why, e) == TNF_OK)
        return TNF_OK;
    tnf_upload_abort(u);
    return status == TNF_EEXISTS ? read_id(u, path, e) : status;
}

static tnf_status join_upload(tnf_upload *u, const tnf_job *job, const char *base, bool begin,
                              tnf_error *e)
{
    char *directory, *path;
    TNF_TRY(tnf_job_path(&directory, job, base, ".parts", e));
    tnf_status status = begin ? tnf_fs_make_directory(directory, e) : TNF_OK;
    if (status == TNF_OK)
        status = tnf_job_path(&path, job, base, ".parts/upload", e);
    tnf_free_path(directory);
    TNF_TRY(status);
    status = begin ? share_id(u, path, e) : read_id(u, path, e);
    tnf_free_path(path);
    return status;
}

/* -------------------------------------------------------------------- sending */

struct job_sending {
    tnf_upload *upload;
    tnf_buf *rows;
    uint64_t piece;
    unsigned number; /* of the next piece */
    bool grows;      /* the number of pieces is unknown */
    uint8_t *buffer;
    size_t n, room;
};

static tnf_status send_piece(struct job_sending *s, size_t n, tnf_error *e)
{
    char etag[TNF_UPLOAD_ETAG];
    if (s->number > TNF_UPLOAD_PARTS)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the s3 object would have more than %u pieces", TNF_UPLOAD_PARTS);
    TNF_TRY(tnf_upload_part(s->upload, s->number, s->buffer, n, etag, e));
    tnf_buf_printf(s->rows,
                   "%s{\"number\":%u,\"bytes\":%zu,\"etag\":", s->rows->n > 1 ? ",\n" : "\n",
                   s->number, n);
    tnf_json_put_string(s->rows, etag, strlen(etag));
    tnf_buf_puts(s->rows, "}");
    s->number++;
    s->n -= n;
    memmove(s->buffer, s->buffer + n, s->n);
    return tnf_buf_status(s->rows, "a receipt", e);
}

static tnf_status make_room(struct job_sending *s, tnf_error *e)
{
    size_t room = (size_t)s->piece + TNF_UPLOAD_LEAST;
    uint8_t *more = realloc(s->buffer, room);
    if (!more)
        return tnf_no_memory("uploading", e);
    s->buffer = more;
    s->room = room;
    return TNF_OK;
}

tnf_status tnf_sending_take(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct job_sending *s = ctx;
    const uint8_t *p = bytes;
    while (n > 0) {
        size_t here = n < s->room - s->n ? n : s->room - s->n;
        memcpy(s->buffer + s->n, p, here);
        s->n += here;
        p += here;
        n -= here;
        if (s->n < s->room)
            continue;
        TNF_TRY(send_piece(s, (size_t)s->piece, e));
        if (s->grows && s->number % 1000 == 0) {
            s->piece *= 2;
            TNF_TRY(make_room(s, e));
        }
    }
    return TNF_OK;
}

tnf_status tnf_sending_begin(struct job_sending **out, const tnf_job *job, uint64_t part,
                             const char *base, tnf_buf *rows, tnf_error *e)
{
    struct job_sending *s = calloc(1, sizeof *s);
    uint64_t before = 0;
    *out = s;
    if (!s)
        return tnf_no_memory("uploading", e);
    s->rows = rows;
    s->piece = PIECE;
    s->grows = strcmp(job->mode, "whole") == 0;
    if (!s->grows) {
        TNF_TRY(choose_piece(&s->piece, job, e));
        TNF_TRY(count_before(&before, job, part, s->piece, e));
    }
    s->number = (unsigned)before + 1;
    tnf_buf_puts(rows, "[");
    TNF_TRY(make_room(s, e));
    TNF_TRY(tnf_upload_open(&s->upload, job->o.out, job->o.replace, e));
    return join_upload(s->upload, job, base, true, e);
}

tnf_status tnf_sending_flush(struct job_sending *s, tnf_error *e)
{
    return send_piece(s, s->n, e);
}

void tnf_sending_end(struct job_sending *s)
{
    if (!s)
        return;
    if (s->upload)
        tnf_upload_close(s->upload);
    tnf_buf_puts(s->rows, "]");
    free(s->buffer);
    free(s);
}

/* --------------------------------------------------------------------- finish */

struct listing {
    tnf_upload *upload;
    uint64_t bytes;
    unsigned n;
};

/* Adds a piece from a receipt. It must be the next one, else the receipt is damaged. */
static tnf_status list_piece(struct listing *l, tnf_json *j, tnf_error *e)
{
    uint64_t number = 0, bytes = 0;
    tnf_str etag = { "", 0 };
    char text[TNF_UPLOAD_ETAG];
    if (tnf_json_enter(j, '{'))
        for (tnf_str key; tnf_json_key(j, &key);)
            (void)(tnf_str_is(key, "number")  ? tnf_json_u64(j, &number)
                   : tnf_str_is(key, "bytes") ? tnf_json_u64(j, &bytes)
                   : tnf_str_is(key, "etag")  ? tnf_json_string(j, &etag)
                                              : tnf_json_skip(j, NULL));
    TNF_TRY(j->status);
    if (number != (uint64_t)l->n + 1 || etag.n == 0 || etag.n >= sizeof text)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the receipts do not fit the plan");
    memcpy(text, etag.p, etag.n);
    text[etag.n] = 0;
    if (strlen(text) != etag.n || strpbrk(text, "<>&"))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the receipts do not fit the plan");
    l->n++;
    l->bytes += bytes;
    return tnf_upload_list(l->upload, text, bytes, e);
}

static tnf_status list_pieces(struct listing *l, struct finishing *f, tnf_error *e)
{
    for (uint64_t i = 0; i < f->job->o.parts; i++) {
        tnf_json j;
        tnf_str rows = f->receipts[i].rows;
        tnf_json_init(&j, rows.p, rows.n, 0, &f->arena, 8, e);
        if (tnf_json_enter(&j, '['))
            while (tnf_json_item(&j))
                TNF_TRY(list_piece(l, &j, e));
        TNF_TRY(tnf_json_end(&j));
    }
    uint64_t size = f->job->outs[0].size;
    return !size || size == l->bytes
               ? TNF_OK
               : tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the receipts do not fit the plan");
}

tnf_status tnf_s3_finish(struct finishing *f, tnf_buf *b, tnf_error *e)
{
    tnf_job *job = f->job;
    struct listing l = { 0 };
    TNF_TRY(tnf_upload_open(&l.upload, job->o.out, job->o.replace, e));
    tnf_status status = join_upload(l.upload, job, f->base, false, e);
    if (status == TNF_OK)
        status = list_pieces(&l, f, e);
    if (status == TNF_OK)
        status = tnf_upload_complete(l.upload, e);
    tnf_upload_close(l.upload);
    TNF_TRY(status);
    f->now = tnf_arena_array(&f->arena, 1, sizeof *f->now);
    char *path = tnf_arena_str(&f->arena, job->o.out, strlen(job->o.out));
    if (!f->now || !path)
        return tnf_arena_fail(&f->arena, "paths", e);
    f->now[0] = path;
    f->sent = l.bytes;
    return tnf_finish_output(f, b, e);
}

void tnf_s3_abort(struct finishing *f)
{
    tnf_upload *u;
    if (tnf_upload_open(&u, f->job->o.out, true, NULL) != TNF_OK)
        return;
    if (join_upload(u, f->job, f->base, false, NULL) == TNF_OK)
        tnf_upload_abort(u);
    tnf_upload_close(u);
}
