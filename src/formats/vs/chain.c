/* SPDX-License-Identifier: MIT */
/* Walking a VS file. */
#include "formats/vs/chain.h"

#include "base/error.h"
#include "formats/vs/note.h"

#include <string.h>

#define WINDOW      ((size_t)256 << 10) /* fits a core's own cache */
#define WINDOW_JUMP ((size_t)4 << 10)   /* after a jump, since another may follow */

void tnf_vs_chain_init(tnf_vs_chain *c, tnf_vs_fetch fetch, void *ctx, uint64_t size, uint64_t from,
                       const tnf_allocator *alloc)
{
    *c = (tnf_vs_chain) { .fetch = fetch, .ctx = ctx, .size = size, .next = from };
    c->until = size;
    c->alloc = tnf_allocator_or_default(alloc);
}

void tnf_vs_chain_free(tnf_vs_chain *c)
{
    tnf_free(&c->alloc, c->window, c->capacity);
    c->window = NULL;
    c->capacity = c->n = 0;
    tnf_vs_note_forget(c);
}

/* Makes room for n bytes; the content of the window may be lost. */
static tnf_status reserve_window(tnf_vs_chain *c, size_t n, tnf_error *e)
{
    if (n <= c->capacity)
        return TNF_OK;
    size_t usual = c->size && c->size < WINDOW ? (size_t)c->size : WINDOW;
    size_t more = n < usual ? usual : n;
    tnf_free(&c->alloc, c->window, c->capacity);
    c->window = tnf_alloc(&c->alloc, more);
    c->n = 0;
    c->capacity = c->window ? more : 0;
    return c->window ? TNF_OK : tnf_no_memory("reading blocks", e);
}

static tnf_status refill_window(tnf_vs_chain *c, uint64_t offset, size_t n, tnf_error *e)
{
    bool follows = c->n > 0 && offset >= c->base && offset <= c->base + c->n;
    size_t want = follows || c->n == 0 ? WINDOW : WINDOW_JUMP;
    uint64_t here = c->size - offset;
    if (c->until > offset && c->until - offset < here)
        here = c->until - offset;
    want = want > here ? (size_t)here : want;
    want = want < n ? n : want;
    TNF_TRY(reserve_window(c, want, e));
    c->n = 0; /* in case reading fails */
    TNF_TRY(c->fetch(c->ctx, offset, c->window, want, e));
    c->base = offset;
    c->n = want;
    return TNF_OK;
}

tnf_status tnf_vs_chain_fill(tnf_vs_chain *c, uint64_t offset, size_t n, const uint8_t **out,
                             tnf_error *e)
{
    *out = (const uint8_t *)"";
    if (n == 0)
        return TNF_OK;
    if (offset > c->size || n > c->size - offset)
        return tnf_fail(e, TNF_ETRUNCATED, c->size, "the file ends too early");
    TNF_TRY(refill_window(c, offset, n, e));
    *out = c->window;
    return TNF_OK;
}

tnf_status tnf_vs_chain_header(tnf_vs_chain *c, tnf_error *e)
{
    const uint8_t *p = NULL;
    if (c->size < TNF_VS_HEADER)
        return tnf_fail(e, TNF_ETRUNCATED, c->size, "truncated header: %llu of 4 bytes",
                        (unsigned long long)c->size);
    TNF_TRY(tnf_vs_chain_bytes(c, 0, TNF_VS_HEADER, &p, e));
    if (p[0] != 'V' || p[1] != 'S')
        return tnf_fail(e, TNF_EFORMAT, 0, "bad signature: this is not a VS file");
    if (tnf_le16(p + 2) != 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, 2,
                        "unsupported version %u; only version 0 is supported", tnf_le16(p + 2));
    return TNF_OK;
}

tnf_status tnf_vs_chain_next(tnf_vs_chain *c, tnf_error *e)
{
    const uint8_t *p = NULL;
    c->previous = c->at;
    c->at = c->next;
    c->length = 0;
    c->type = TNF_VS_END;
    c->terminal = false;
    if (c->at >= c->size)
        return TNF_OK;
    uint64_t left = c->size - c->at;
    TNF_TRY(tnf_vs_chain_bytes(c, c->at, left < TNF_VS_HEAD ? (size_t)left : TNF_VS_HEAD, &p, e));
    c->terminal = p[0] == TNF_VS_END;
    if (c->terminal)
        return TNF_OK;
    if (left < TNF_VS_HEAD)
        return tnf_fail(e, TNF_ETRUNCATED, c->at, "truncated block header: %llu of 5 bytes",
                        (unsigned long long)left);
    uint32_t length = tnf_le32(p + 1);
    if (length > left - TNF_VS_HEAD)
        return tnf_fail(e, TNF_ETRUNCATED, c->at,
                        "truncated block: the file ends %llu bytes before the end of the block",
                        (unsigned long long)(length - (left - TNF_VS_HEAD)));
    bool gone = p[0] != TNF_VS_META && tnf_vs_noted(&c->note, c->at);
    c->type = gone ? TNF_VS_BLANK : p[0];
    c->length = length;
    c->next = c->at + TNF_VS_HEAD + length;
    return TNF_OK;
}

tnf_status tnf_vs_chain_point(tnf_vs_chain *c, tnf_vs_point *out, tnf_error *e)
{
    const uint8_t *p = NULL;
    uint64_t head = 0;
    out->at = c->at;
    out->length = c->length;
    size_t n = c->length < TNF_VS_POINT_HEAD ? c->length : TNF_VS_POINT_HEAD;
    TNF_TRY(tnf_vs_chain_bytes(c, c->at + TNF_VS_HEAD, n, &p, e));
    TNF_TRY(tnf_vs_point_begin(out, p, c->msb, &head, e));
    TNF_TRY(tnf_vs_chain_bytes(c, head, TNF_VS_VECTOR, &p, e));
    return tnf_vs_point_vector(out, p, head, e);
}

static tnf_status check_app(tnf_vs_chain *c, const tnf_vs_point *p, tnf_error *e)
{
    const uint8_t *bytes = NULL;
    unsigned code = p->option & TNF_VS_CODE;
    if (p->app_n == 0)
        return TNF_OK;
    if (code > TNF_VS_APP_SNAPPY)
        return tnf_fail(e, TNF_EUNSUPPORTED, p->at + TNF_VS_HEAD,
                        "unsupported compression %u of application data", code);
    if (code != TNF_VS_RAW)
        return TNF_OK;
    TNF_TRY(tnf_vs_chain_bytes(c, p->app_at, p->app_n, &bytes, e));
    return tnf_vs_check_app(bytes, p->app_n, p->app_at, e);
}

tnf_status tnf_vs_chain_checked(tnf_vs_chain *c, const tnf_vs_meta *m, tnf_vs_point *out,
                                tnf_error *e)
{
    const uint8_t *first = NULL;
    TNF_TRY(tnf_vs_chain_point(c, out, e));
    TNF_TRY(check_app(c, out, e));
    size_t n = out->vector_n < TNF_VS_FITS_FIRST ? out->vector_n : TNF_VS_FITS_FIRST;
    bool raw = (out->vector_option & TNF_VS_CODE) == TNF_VS_RAW;
    if (!raw)
        TNF_TRY(tnf_vs_chain_bytes(c, out->vector_at, n, &first, e));
    return tnf_vs_point_fits(out, m, first, e);
}

tnf_status tnf_vs_chain_meta(tnf_vs_chain *c, tnf_vs_meta *out, tnf_arena *arena, tnf_error *e)
{
    const uint8_t *p = NULL;
    TNF_TRY(tnf_vs_chain_bytes(c, c->at + TNF_VS_HEAD, c->length, &p, e));
    const char *copy = tnf_arena_str(arena, p, c->length);
    if (!copy)
        return tnf_arena_fail(arena, "the meta block", e);
    tnf_cur payload = tnf_cur_over(copy, c->length, c->at + TNF_VS_HEAD);
    return tnf_vs_meta_parse(out, &payload, c->msb, arena, e);
}
