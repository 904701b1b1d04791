/* SPDX-License-Identifier: MIT */
/* Reads points: all of them, a single one, all with verification, and those of a damaged file. */
#include "base/sized.h"
#include "codec/blocks.h"
#include "ext/points/points.h"

#include <string.h>

/* ------------------------------------------------------------------ points */

static tnf_status unpack_vector(tnf_points *p, const tnf_vs_point *v, tnf_point *out, tnf_error *e)
{
    tnf_buf *spare = &p->spare[0];
    uint64_t n = p->meta.vector_bytes;
    if (!p->meta.type)
        TNF_TRY(tnf_points_words_size(p, v, out->vector, &n, e));
    bool gzip = (v->vector_option & TNF_VS_CODE) == TNF_VS_GZIP;
    const tnf_block block = { out->vector, out->vector_n, v->vector_at };
    TNF_TRY(tnf_block_unpack(spare, gzip ? tnf_gzip_decode : tnf_snappy_decode, &block, (size_t)n,
                             e));
    out->vector = n ? spare->p : (const uint8_t *)"";
    out->vector_n = (size_t)n;
    return TNF_OK;
}

static tnf_status unpack_app(tnf_points *p, const tnf_vs_point *v, tnf_point *out, tnf_error *e)
{
    tnf_buf *spare = &p->spare[1];
    const tnf_block block = { out->app.p, out->app.n, v->app_at };
    TNF_TRY(tnf_snappy_unpack(spare, &block, UINT64_MAX, e));
    out->app = (tnf_str) { spare->n ? (const char *)spare->p : "", spare->n };
    return tnf_vs_check_app(out->app.p, out->app.n, v->app_at, e);
}

/* Aligns a vector, since in the file it begins where application data ends. */
static tnf_status align_vector(tnf_points *p, tnf_point *out, tnf_error *e)
{
    tnf_buf *spare = &p->spare[0];
    size_t alignment = p->meta.type ? tnf_type_of(p->meta.type->storage)->bits / 8 : 1;
    if ((uintptr_t)out->vector % alignment == 0)
        return TNF_OK;
    spare->n = 0;
    tnf_buf_put(spare, out->vector, out->vector_n);
    TNF_TRY(tnf_buf_status(spare, "a vector", e));
    if (out->vector_n)
        out->vector = spare->p;
    return TNF_OK;
}

static tnf_status decode_point(tnf_points *p, tnf_point *out, tnf_error *e)
{
    tnf_vs_chain *c = &p->chain;
    const uint8_t *block = NULL;
    tnf_vs_point v;
    /* Gets the complete block at once, so that the window does not move while it is decoded. */
    TNF_TRY(tnf_vs_chain_bytes(c, c->at, TNF_VS_HEAD + (size_t)c->length, &block, e));
    uint32_t hash = tnf_points_hash(block, TNF_VS_HEAD + (size_t)c->length);
    if (p->meta.type && tnf_vs_is_plain(block, c->length, p->meta.vector_bytes)) {
        *out = (tnf_point) { .id = { c->at, hash },
                             .app = { (const char *)block + 7, block[6] },
                             .vector = block + tnf_vs_plain_vector(block),
                             .vector_n = (size_t)p->meta.vector_bytes };
        return block[6] ? tnf_vs_check_app(block + 7, block[6], c->at + 7, e) : TNF_OK;
    }
    TNF_TRY(tnf_vs_chain_checked(c, &p->meta, &v, e));
    *out = (tnf_point) { .id = { v.at, hash },
                         .app = { (const char *)block + (v.app_at - v.at), v.app_n },
                         .vector = block + (v.vector_at - v.at),
                         .vector_n = v.vector_n };
    bool decoded = p->meta.type || tnf_points_worded(&p->meta);
    if (decoded && v.vector_option & TNF_VS_CODE)
        TNF_TRY(unpack_vector(p, &v, out, e));
    return v.app_n && v.option & TNF_VS_CODE ? unpack_app(p, &v, out, e) : TNF_OK;
}

tnf_status tnf_points_decode(tnf_points *p, tnf_point *out, tnf_error *e)
{
    TNF_TRY(decode_point(p, out, e));
    return align_vector(p, out, e);
}

/* Checks whether a block that is not a point is allowed here. */
static tnf_status check_other(const tnf_points *p, tnf_error *e)
{
    const tnf_vs_chain *c = &p->chain;
    if (c->type != TNF_VS_META || (p->has_meta && c->at == p->meta_at))
        return TNF_OK;
    return tnf_fail(e, TNF_EFORMAT, c->at, "there is a second meta block");
}

static void note_end(tnf_points *p, tnf_point_id last_point)
{
    const tnf_vs_chain *c = &p->chain;
    if (c->previous) {
        p->tail = c->at;
        p->last = c->previous;
    }
    p->seen = last_point.offset ? last_point : p->seen;
    p->seen_end = c->at;
}

static tnf_status each_point(tnf_points *p, tnf_point_take_fn take, void *ctx, tnf_error *e)
{
    tnf_vs_chain *c = &p->chain;
    tnf_point_id last = { 0, 0 };
    for (;;) {
        tnf_point point;
        TNF_TRY(tnf_vs_chain_next(c, e));
        if (c->type == TNF_VS_END) {
            note_end(p, last);
            return TNF_OK;
        }
        if (c->type != TNF_VS_POINT) {
            TNF_TRY(check_other(p, e));
            continue;
        }
        TNF_TRY(tnf_points_decode(p, &point, e));
        tnf_point_id id = point.id;
        tnf_status status;
        TNF_CALL(status, e, take, ctx, &point);
        TNF_TRY(status);
        last = id;
    }
}

tnf_status tnf_points_each(tnf_points *p, tnf_point_take_fn take, void *ctx, tnf_error *e)
{
    TNF_TRY(tnf_need(p, "points", e));
    TNF_TRY(tnf_need(take, "take", e));
    TNF_TRY(tnf_points_enter(p, false, e));
    p->moved = false; /* the caller gets the current ids */
    p->used = true;
    tnf_points_rewind(p, TNF_VS_HEADER);
    tnf_status status = each_point(p, take, ctx, e);
    tnf_points_leave(p);
    return status;
}

/* Continues the chain after the block of an id. */
static tnf_status continue_after(tnf_points *p, tnf_point_id id, tnf_error *e)
{
    bool deleted, known = id.offset == p->seen.offset && id.hash == p->seen.hash;
    p->used = true;
    if (!known || p->seen_end > p->chain.size)
        return tnf_points_seek(p, id, &deleted, e);
    tnf_points_rewind(p, p->seen_end);
    return TNF_OK;
}

tnf_status tnf_points_after(tnf_points *p, tnf_point_id id, tnf_point_take_fn take, void *ctx,
                            tnf_error *e)
{
    TNF_TRY(tnf_need(p, "points", e));
    TNF_TRY(tnf_need(take, "take", e));
    if (id.offset == 0)
        return tnf_points_each(p, take, ctx, e);
    TNF_TRY(tnf_points_enter(p, false, e));
    tnf_status status = continue_after(p, id, e);
    if (status == TNF_OK)
        status = each_point(p, take, ctx, e);
    tnf_points_leave(p);
    return status;
}

static tnf_status read_one(tnf_points *p, tnf_point_id id, tnf_point *out, tnf_error *e)
{
    bool deleted;
    p->used = true;
    TNF_TRY(tnf_points_seek(p, id, &deleted, e));
    if (deleted)
        return tnf_points_match_live(p, id, e);
    p->chain.until = p->chain.next; /* no other block is needed */
    return tnf_points_decode(p, out, e);
}

tnf_status tnf_points_read(tnf_point *out, tnf_points *p, tnf_point_id id, tnf_error *e)
{
    TNF_TRY(tnf_need(p, "points", e));
    TNF_TRY(tnf_points_enter(p, false, e));
    tnf_status status = read_one(p, id, out, e);
    tnf_points_leave(p);
    return status;
}

/* ------------------------------------------------------------------ verify */

struct audit {
    tnf_points *p;
    tnf_points_report *report;
    tnf_points_problem_fn problem;
    void *ctx;
};

/* Returns TNF_OK if the error was reported. */
static tnf_status tell_audit(struct audit *a, tnf_status status, const tnf_error *why, tnf_error *e)
{
    if (status == TNF_OK)
        return TNF_OK;
    if (!tnf_is_file_fault(status)) { /* it ends the verification */
        if (e)
            *e = *why;
        return status;
    }
    a->report->problems++;
    if (a->problem)
        a->problem(a->ctx, why);
    return TNF_OK;
}

static void tell_odd(struct audit *a, uint64_t at, const char *what)
{
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = tnf_fail(&why, TNF_EFORMAT, at, "%s", what);
    (void)tell_audit(a, status, &why, NULL);
}

/* Checks coordinates that are not numbers, too. */
static tnf_status decode_fully(tnf_points *p, tnf_point *point, tnf_error *e)
{
    TNF_TRY(tnf_points_decode(p, point, e));
    return tnf_points_worded(&p->meta)
               ? tnf_points_check_words(p, point->vector, point->vector_n, p->chain.at, e)
               : TNF_OK;
}

static tnf_status audit_block(struct audit *a, tnf_error *e)
{
    tnf_vs_chain *c = &a->p->chain;
    tnf_points_report *r = a->report;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_point point;
    uint64_t bytes = TNF_VS_HEAD + (uint64_t)c->length;
    switch (c->type) {
    case TNF_VS_POINT:
        r->points++;
        return tell_audit(a, decode_fully(a->p, &point, &why), &why, e);
    case TNF_VS_META:
        return tell_audit(a, check_other(a->p, &why), &why, e);
    case TNF_VS_BLANK:
        r->blanks++;
        r->blank_bytes += bytes;
        return TNF_OK;
    default:
        r->unknown++;
        r->unknown_bytes += bytes;
        if (c->type == 0)
            tell_odd(a, c->at, "a block has the unknown type 0, so the file may be damaged");
        return TNF_OK;
    }
}

static tnf_status audit_blocks(struct audit *a, tnf_error *e)
{
    tnf_vs_chain *c = &a->p->chain;
    tnf_points_report *r = a->report;
    tnf_points_rewind(a->p, TNF_VS_HEADER);
    for (;;) {
        tnf_error why = { .offset = TNF_NO_OFFSET };
        tnf_status status = tnf_vs_chain_next(c, &why);
        r->stopped_at = c->at;
        if (status != TNF_OK)
            return tell_audit(a, status, &why, e);
        if (c->type == TNF_VS_END)
            break;
        TNF_TRY(audit_block(a, e));
    }
    r->terminal = c->terminal;
    r->trailing = c->terminal ? c->size - c->at - 1 : 0;
    if (!r->terminal)
        tell_odd(a, c->at, "the terminal '$' is missing");
    return TNF_OK;
}

tnf_status tnf_points_verify(tnf_points_report *out, tnf_points *p, tnf_points_problem_fn problem,
                             void *ctx, tnf_error *e)
{
    TNF_TRY(tnf_need(p, "points", e));
    tnf_points_report report = TNF_POINTS_REPORT_INIT;
    TNF_TRY(tnf_result_begin(out, TNF_FIRST(tnf_points_report), e));
    TNF_TRY(tnf_points_enter(p, false, e));
    report.file_bytes = p->chain.size;
    struct audit a = { p, &report, problem, ctx };
    tnf_status status = audit_blocks(&a, e);
    tnf_result_fill(out, &report, sizeof report);
    tnf_points_leave(p);
    return status;
}

/* ----------------------------------------------------------------- salvage */

struct rescue {
    tnf_points_report *report;
    tnf_point_take_fn take;
    void *ctx;
    bool stopped; /* by the caller */
};

static tnf_status take_rescued(void *ctx, const tnf_point *point, tnf_error *e)
{
    struct rescue *r = ctx;
    tnf_status status;
    TNF_CALL(status, e, r->take, r->ctx, point);
    r->stopped = status != TNF_OK;
    r->report->points += status == TNF_OK;
    return status;
}

/* A run of zeros looks like empty blocks of type 0, which occur only in damaged files. */
static bool is_zeros(tnf_points *p)
{
    const uint8_t *head = NULL;
    return p->chain.type == 0 && p->chain.length == 0 &&
           tnf_vs_chain_bytes(&p->chain, p->chain.at, TNF_VS_HEAD, &head, NULL) == TNF_OK &&
           memcmp(head, "\0\0\0\0", TNF_VS_HEAD) == 0;
}

static tnf_status rescue_points(tnf_points *p, struct rescue *r, tnf_error *e)
{
    tnf_vs_chain *c = &p->chain;
    tnf_point point;
    TNF_TRY(tnf_points_load_meta(p, e));
    tnf_points_rewind(p, TNF_VS_HEADER);
    for (;;) {
        TNF_TRY(tnf_vs_chain_next(c, e));
        if (c->type == TNF_VS_END)
            break;
        if (is_zeros(p))
            return tnf_fail(e, TNF_EFORMAT, c->at, "there are zeros where a block should begin");
        if (c->type == TNF_VS_POINT) {
            TNF_TRY(tnf_points_decode(p, &point, e));
            TNF_TRY(take_rescued(r, &point, e));
        } else {
            TNF_TRY(check_other(p, e));
            r->report->blanks += c->type == TNF_VS_BLANK;
        }
    }
    r->report->terminal = c->terminal;
    r->report->trailing = c->terminal ? c->size - c->at - 1 : 0;
    return TNF_OK;
}

tnf_status tnf_points_salvage(tnf_points_report *out, const char *path,
                              const tnf_points_options *options, tnf_point_take_fn take, void *ctx,
                              tnf_error *e)
{
    tnf_points *p;
    tnf_points_report report = TNF_POINTS_REPORT_INIT;
    struct rescue r = { &report, take, ctx, false };
    TNF_TRY(tnf_result_begin(out, TNF_FIRST(tnf_points_report), e));
    TNF_TRY(tnf_need(take, "take", e));
    TNF_TRY(tnf_points_make(&p, path, options, e));
    p->options.write = false;
    tnf_status status = tnf_points_lock_current(p, false, &report.file_bytes, e);
    if (status == TNF_OK) {
        p->chain.size = report.file_bytes;
        p->busy = true;
        status = tnf_vs_note_read(&p->chain, UINT64_MAX, e);
        if (status == TNF_OK)
            status = rescue_points(p, &r, e);
        report.stopped_at = p->chain.at;
        tnf_points_leave(p);
        if (status != TNF_OK && !r.stopped && tnf_is_file_fault(status)) {
            report.problems = 1;
            status = TNF_OK;
        }
    }
    tnf_result_fill(out, &report, sizeof report);
    tnf_points_close(p);
    return status;
}
