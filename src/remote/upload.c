/* SPDX-License-Identifier: MIT */
/* A sink for s3: a multipart upload, whose parts appear as one object at commit, or never.
 *
 *   write    collects a part of 8 MiB; after each thousand parts the size is doubled
 *   commit   POST ?uploadId with the list of parts; less than one part is sent by a single PUT
 *   abort    DELETE ?uploadId, so that no stored part has to be paid for
 */
#include "base/buf.h"
#include "base/hex.h"
#include "base/sized.h"
#include "io/sink.h"
#include "remote/list.h"
#include "remote/redirect.h"
#include "wire/xml.h"

#include <stdio.h>
#include <string.h>

#define PART (8u << 20)

struct tnf_upload {
    tnf_session *session;
    tnf_place place;
    bool replace;
    uint8_t *part;
    size_t room, n;
    unsigned parts;
    uint64_t sent; /* bytes of all parts */
    char id[1024];
    tnf_buf list; /* of parts, the body of the last request */
    tnf_buf sums; /* the MD5 of each part, as far as the server gives it */
};

static tnf_status note_exists(const tnf_exchange *x, tnf_status status, tnf_error *e)
{
    int said = x->answer.status;
    if (status != TNF_OK && (said == 412 || said == 409))
        return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET, "the s3 object already exists");
    return status;
}

/* Sends a request for the object; `query` has pairs and ends with NULL. */
static tnf_status send_request(tnf_upload *u, tnf_exchange *x, const char *const *query,
                               tnf_error *e)
{
    tnf_place place = u->place;
    for (; *query; query += 2)
        TNF_TRY(tnf_url_add_query(&place.url, query[0], query[1], e));
    tnf_status status = tnf_place_request(u->session, &place, x, e);
    memcpy(u->place.region, place.region, sizeof place.region);
    if (status == TNF_OK && strcmp(place.url.host, u->place.url.host) != 0)
        memcpy(u->place.url.host, place.url.host, sizeof place.url.host);
    return note_exists(x, status, e);
}

/* ------------------------------------------------------------ lost answers */

/* If an answer was lost, the request is sent again, here or by libcurl. The second request may then
 * find the result of the first one: an existing object, or an upload that no longer exists. */
static bool may_be_done(const tnf_exchange *x, tnf_status status)
{
    int said = x->answer.status;
    return status != TNF_OK && (said == 412 || said == 409 || said == 404);
}

/* The ETag of an object of these bytes: their MD5, quoted; and the number of parts, if several. */
static void make_etag(char out[64], const void *bytes, size_t n, unsigned parts)
{
    tnf_summing s;
    tnf_sum sum;
    out[0] = 0;
    if (!tnf_summing_begin(&s, TNF_SUM_MD5))
        return;
    tnf_summing_update(&s, bytes, n);
    tnf_summing_end(&s, &sum);
    out[0] = '"';
    char *end = tnf_hex_put(out + 1, sum.bytes, 16);
    if (parts)
        snprintf(end, 16, "-%u\"", parts);
    else
        snprintf(end, 16, "\"");
}

/* Makes "Content-MD5: …"; returns false if there is no memory. */
static bool make_md5(char out[64], const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    tnf_summing s;
    tnf_sum sum;
    if (!tnf_summing_begin(&s, TNF_SUM_MD5))
        return false;
    tnf_summing_update(&s, bytes, n);
    tnf_summing_end(&s, &sum);
    char *to = out + snprintf(out, 64, "Content-MD5: ");
    for (unsigned i = 0; i < 16; i += 3) {
        unsigned left = 16 - i, v = (unsigned)sum.bytes[i] << 16;
        v |= left > 1 ? (unsigned)sum.bytes[i + 1] << 8 | sum.bytes[i + 2] : 0;
        *to++ = digits[v >> 18];
        *to++ = digits[v >> 12 & 63];
        *to++ = left > 1 ? digits[v >> 6 & 63] : '=';
        *to++ = left > 1 ? digits[v & 63] : '=';
    }
    *to = 0;
    return true;
}

/* Does the object exist with this size and ETag? */
static bool is_there(tnf_upload *u, uint64_t size, const char *etag)
{
    tnf_exchange x = { .method = "HEAD" };
    const char *query[] = { NULL };
    return etag[0] && send_request(u, &x, query, NULL) == TNF_OK && x.answer.length == size &&
           strcmp(x.answer.etag, etag) == 0;
}

static bool is_whole_there(tnf_upload *u)
{
    char etag[64];
    make_etag(etag, u->part, u->n, 0);
    return is_there(u, u->n, etag);
}

static bool are_parts_there(tnf_upload *u)
{
    char etag[64];
    if (u->sums.n != (size_t)u->parts * 16)
        return false; /* the server's ETags are not MD5s */
    make_etag(etag, u->sums.p, u->sums.n, u->parts);
    return is_there(u, u->sent, etag);
}

/* ------------------------------------------------------------------- parts */

static tnf_status begin_parts(tnf_upload *u, tnf_error *e)
{
    tnf_exchange x = { .method = "POST" };
    const char *query[] = { "uploads", "", NULL };
    tnf_str id;
    tnf_exchange_header(&x, "Content-Type: application/octet-stream");
    TNF_TRY(send_request(u, &x, query, e));
    if (!tnf_xml_text(x.answer.excerpt, x.answer.nexcerpt, "UploadId", &id) || id.n == 0 ||
        tnf_xml_unescape(u->id, sizeof u->id, id) == SIZE_MAX)
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "the server did not begin an upload");
    return TNF_OK;
}

/* Sends a part, and gets its ETag. `checked`: the server compares the part with its MD5. */
static tnf_status send_part(tnf_upload *u, unsigned number, const void *bytes, size_t n,
                            bool checked, char etag[TNF_UPLOAD_ETAG], tnf_error *e)
{
    char digits[16], md5[64];
    tnf_exchange x = { .method = "PUT", .body = bytes, .nbody = n };
    snprintf(digits, sizeof digits, "%u", number);
    const char *query[] = { "partNumber", digits, "uploadId", u->id, NULL };
    if (checked && make_md5(md5, bytes, n))
        tnf_exchange_header(&x, md5);
    TNF_TRY(send_request(u, &x, query, e));
    if (!x.answer.etag[0] || strpbrk(x.answer.etag, "<>&"))
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET,
                        "the server did not confirm a piece of the upload");
    snprintf(etag, TNF_UPLOAD_ETAG, "%s", x.answer.etag);
    return TNF_OK;
}

tnf_status tnf_upload_list(tnf_upload *u, const char *etag, uint64_t n, tnf_error *e)
{
    tnf_sum sum;
    if (u->parts == TNF_UPLOAD_PARTS)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the s3 object would have more than %u pieces", TNF_UPLOAD_PARTS);
    u->parts++;
    u->sent += n;
    tnf_buf_printf(&u->list, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", u->parts,
                   etag);
    if (tnf_sum_quoted(&sum, TNF_SUM_MD5, etag))
        tnf_buf_put(&u->sums, sum.bytes, 16);
    TNF_TRY(tnf_buf_status(&u->sums, "the list of parts", e));
    return tnf_buf_status(&u->list, "the list of parts", e);
}

static tnf_status put_part(tnf_upload *u, tnf_error *e)
{
    char etag[TNF_UPLOAD_ETAG];
    if (!u->id[0])
        TNF_TRY(begin_parts(u, e));
    if (u->parts == TNF_UPLOAD_PARTS)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the s3 object would have more than %u pieces", TNF_UPLOAD_PARTS);
    TNF_TRY(send_part(u, u->parts + 1, u->part, u->n, false, etag, e));
    TNF_TRY(tnf_upload_list(u, etag, u->n, e));
    u->n = 0;
    return TNF_OK;
}

/* Makes parts longer after every thousand parts. */
static tnf_status grow_part(tnf_upload *u, tnf_error *e)
{
    if (u->parts == 0 || u->parts % 1000 != 0 || u->n != 0)
        return TNF_OK;
    uint8_t *more = tnf_realloc(&u->session->alloc, u->part, u->room, 2 * u->room);
    if (!more)
        return tnf_no_memory("uploading", e);
    u->part = more;
    u->room *= 2;
    return TNF_OK;
}

static tnf_status upload_write(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    tnf_upload *u = ctx;
    const uint8_t *p = bytes;
    while (n > 0) {
        size_t part = n < u->room - u->n ? n : u->room - u->n;
        memcpy(u->part + u->n, p, part);
        u->n += part;
        p += part;
        n -= part;
        if (u->n == u->room) {
            TNF_TRY(put_part(u, e));
            TNF_TRY(grow_part(u, e));
        }
    }
    return TNF_OK;
}

static tnf_status put_whole(tnf_upload *u, tnf_error *e)
{
    tnf_exchange x = { .method = "PUT", .body = u->part, .nbody = u->n };
    const char *query[] = { NULL };
    if (!u->replace)
        tnf_exchange_header(&x, "If-None-Match: *");
    tnf_status status = send_request(u, &x, query, e);
    return may_be_done(&x, status) && is_whole_there(u) ? TNF_OK : status;
}

static void upload_abort(void *ctx)
{
    tnf_upload *u = ctx;
    tnf_exchange x = { .method = "DELETE" };
    const char *query[] = { "uploadId", u->id, NULL };
    if (u->id[0])
        (void)send_request(u, &x, query, NULL);
}

static tnf_status complete_parts(tnf_upload *u, tnf_error *e)
{
    tnf_buf_puts(&u->list, "</CompleteMultipartUpload>");
    TNF_TRY(tnf_buf_status(&u->list, "the list of parts", e));
    tnf_exchange x = { .method = "POST", .body = u->list.p, .nbody = u->list.n };
    const char *query[] = { "uploadId", u->id, NULL };
    tnf_str code;
    tnf_exchange_header(&x, "Content-Type: application/xml");
    if (!u->replace)
        tnf_exchange_header(&x, "If-None-Match: *");
    tnf_status status = send_request(u, &x, query, e);
    if (may_be_done(&x, status) && are_parts_there(u)) {
        /* If another program wrote the same object, no stored part must be left to pay for. */
        upload_abort(u);
        return TNF_OK;
    }
    TNF_TRY(status);
    /* To keep the connection open, the server may answer 200 at once and report an error later. */
    if (tnf_xml_text(x.answer.excerpt, x.answer.nexcerpt, "Code", &code))
        return tnf_fail(e, TNF_ENET, TNF_NO_OFFSET, "the server did not finish the upload: %.*s",
                        (int)(code.n < 60 ? code.n : 60), code.p);
    return TNF_OK;
}

static tnf_status upload_commit(void *ctx, tnf_error *e)
{
    tnf_upload *u = ctx;
    if (!u->id[0])
        return put_whole(u, e);
    if (u->n)
        TNF_TRY(put_part(u, e));
    TNF_TRY(complete_parts(u, e));
    u->id[0] = 0;
    return TNF_OK;
}

static void upload_release(void *ctx)
{
    tnf_upload *u = ctx;
    tnf_allocator a = u->session->alloc;
    tnf_free(&a, u->part, u->room);
    tnf_buf_free(&u->list);
    tnf_buf_free(&u->sums);
    tnf_session_drop(u->session);
    tnf_free(&a, u, sizeof *u);
}

/* Fails early if the object exists, before the bytes are sent. */
static tnf_status check_absent(tnf_upload *u, tnf_error *e)
{
    tnf_exchange x = { .method = "GET" };
    tnf_error why = { .offset = TNF_NO_OFFSET };
    const char *query[] = { NULL };
    tnf_exchange_header(&x, "Range: bytes=0-0");
    tnf_status status = send_request(u, &x, query, &why);
    if (status == TNF_ENOTFOUND)
        return TNF_OK;
    if (status == TNF_OK || x.answer.status == 416)
        return tnf_fail(e, TNF_EEXISTS, TNF_NO_OFFSET, "the s3 object already exists");
    if (e)
        *e = why;
    return status;
}

static tnf_status find_object(tnf_upload *u, const char *url, tnf_error *e)
{
    TNF_TRY(tnf_place_parse(&u->place, u->session, url, e));
    if (u->place.service != TNF_S3 || u->place.folder)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "only s3 objects can be written (s3://BUCKET/KEY)");
    return TNF_OK;
}

static tnf_status make_upload(tnf_upload **out, const char *url, bool replace,
                              const tnf_url_options *options, tnf_error *e)
{
    tnf_session *s;
    *out = NULL;
    TNF_TRY(tnf_session_new(&s, options, NULL, e));
    tnf_upload *u = tnf_alloc0(&s->alloc, sizeof *u);
    if (!u) {
        tnf_session_drop(s);
        return tnf_no_memory("uploading", e);
    }
    u->session = s;
    u->replace = replace;
    tnf_buf_init(&u->list, &s->alloc, 4u << 20);
    tnf_buf_init(&u->sums, &s->alloc, 16 * TNF_UPLOAD_PARTS);
    tnf_buf_puts(&u->list, "<CompleteMultipartUpload>");
    tnf_status status = find_object(u, url, e);
    if (status == TNF_OK)
        *out = u;
    else
        upload_release(u);
    return status;
}

/* -------------------------------------------------------------------- sink */

static tnf_status begin_sink(tnf_sink **out, tnf_upload *u, tnf_error *e)
{
    static const tnf_sink_ops ops = { .version = TNF_SINK_OPS_VERSION,
                                      .write = upload_write,
                                      .commit = upload_commit,
                                      .abort = upload_abort };
    u->room = PART;
    u->part = tnf_alloc(&u->session->alloc, PART);
    if (!u->part)
        return tnf_no_memory("uploading", e);
    if (!u->replace)
        TNF_TRY(check_absent(u, e));
    return tnf_sink_new(out, &ops, u, &u->session->alloc, e);
}

tnf_status tnf_sink_url(tnf_sink **out, const char *url, unsigned flags,
                        const tnf_url_options *options, tnf_error *e)
{
    tnf_upload *u;
    *out = NULL;
    TNF_TRY(tnf_need(url, "url", e));
    TNF_TRY(tnf_check_flags(flags, TNF_SINK_REPLACE | TNF_SINK_NO_SYNC, "flags", e));
    TNF_TRY(make_upload(&u, url, flags & TNF_SINK_REPLACE, options, e));
    tnf_status status = begin_sink(out, u, e);
    if (status != TNF_OK)
        upload_release(u);
    else
        (*out)->release = upload_release;
    return status;
}

/* --------------------------------------------------------- several processes */

tnf_status tnf_upload_open(tnf_upload **out, const char *url, bool replace, tnf_error *e)
{
    return make_upload(out, url, replace, NULL, e);
}

void tnf_upload_close(tnf_upload *u)
{
    if (u)
        upload_release(u);
}

tnf_status tnf_upload_begin(tnf_upload *u, tnf_str *id, tnf_error *e)
{
    if (!u->replace)
        TNF_TRY(check_absent(u, e));
    TNF_TRY(begin_parts(u, e));
    *id = (tnf_str) { u->id, strlen(u->id) };
    return TNF_OK;
}

tnf_status tnf_upload_join(tnf_upload *u, const void *id, size_t n, tnf_error *e)
{
    if (n == 0 || n >= sizeof u->id || memchr(id, 0, n))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "invalid upload ID");
    memcpy(u->id, id, n);
    u->id[n] = 0;
    return TNF_OK;
}

tnf_status tnf_upload_part(tnf_upload *u, unsigned number, const void *bytes, size_t n,
                           char etag[TNF_UPLOAD_ETAG], tnf_error *e)
{
    return send_part(u, number, bytes, n, true, etag, e);
}

tnf_status tnf_upload_complete(tnf_upload *u, tnf_error *e)
{
    return complete_parts(u, e);
}

void tnf_upload_abort(tnf_upload *u)
{
    upload_abort(u);
}
