/* SPDX-License-Identifier: MIT */
/* Words and n-grams as the file stores them, and as strings/1.
 *
 *   in the file   03 00 00 00 o n e [index]   05 00 00 00 t h r e e [index]   …
 *                 ^ mark 0                                          ^ mark 1, 1024 strings on
 *   offsets       0 3 8 …
 *   bytes         o n e t h r e e …
 *
 * Opening scans the list once and keeps a mark for every 1024th string. From a mark, decode.c finds
 * any piece of the two parts in a few steps.
 */
#include "formats/finalfusion/ff.h"

#include <string.h>

#define SCAN_WINDOW ((size_t)64 << 10)

tnf_status tnf_ff_bytes_at(ff_window *w, uint64_t at, size_t n, const uint8_t **out, tnf_error *e)
{
    if (at < w->at || at - w->at > w->n || n > w->n - (size_t)(at - w->at)) {
        uint64_t left = at < w->source->size ? w->source->size - at : 0;
        size_t some = left < w->capacity ? (size_t)left : w->capacity;
        w->n = 0;
        TNF_TRY(tnf_source_read(w->source, at, w->p, some < n ? n : some, e));
        w->n = some;
        w->at = at;
    }
    *out = w->p + (at - w->at);
    return TNF_OK;
}

/* -------------------------------------------------------------------- scan */

struct scan {
    ff_reading *f;
    ff_list *l;
    ff_window w;
    uint64_t bound;
    const char *what;
    bool warned; /* invalid UTF-8 was reported */
};

static tnf_status not_text(struct scan *s, uint64_t i, uint64_t at, tnf_error *e)
{
    if (s->warned)
        return TNF_OK;
    s->warned = true;
    return tnf_stricter(s->f->r, e, TNF_EFORMAT, at, "%s %llu of %llu is not UTF-8", s->what,
                        (unsigned long long)i + 1, (unsigned long long)s->l->count);
}

/* A string longer than the window. */
static tnf_status check_long(struct scan *s, uint64_t i, uint64_t at, uint64_t n, tnf_error *e)
{
    ff_utf8 u = { 0 };
    for (uint64_t done = 0; done < n;) {
        size_t some = n - done < s->w.capacity ? (size_t)(n - done) : s->w.capacity;
        const uint8_t *p;
        TNF_TRY(tnf_ff_bytes_at(&s->w, at + done, some, &p, e));
        if (!tnf_ff_utf8_feed(&u, p, some))
            return not_text(s, i, at, e);
        done += some;
    }
    return u.left ? not_text(s, i, at, e) : TNF_OK;
}

static tnf_status scan_one(struct scan *s, uint64_t i, uint64_t *at, uint64_t *number, tnf_error *e)
{
    uint32_t suffix = s->l->suffix;
    uint64_t left = s->bound - *at;
    const uint8_t *p;
    size_t bad = 0;
    if (left < 4 + suffix)
        return tnf_fail(e, TNF_EFORMAT, *at, "%s %llu of %llu is beyond the end of its chunk",
                        s->what, (unsigned long long)i + 1, (unsigned long long)s->l->count);
    TNF_TRY(tnf_ff_bytes_at(&s->w, *at, 4, &p, e));
    uint32_t n = tnf_le32(p);
    if (n > left - 4 - suffix)
        return tnf_fail(
            e, TNF_EFORMAT, *at,
            "%s %llu of %llu has a length of %u bytes, but its chunk has only %llu left", s->what,
            (unsigned long long)i + 1, (unsigned long long)s->l->count, n,
            (unsigned long long)(left - 4 - suffix));
    if ((uint64_t)n + 4 + suffix <= s->w.capacity) {
        TNF_TRY(tnf_ff_bytes_at(&s->w, *at, 4 + (size_t)n + suffix, &p, e));
        if (!tnf_utf8_valid(&bad, (const char *)p + 4, n))
            TNF_TRY(not_text(s, i, *at + 4 + bad, e));
        p += 4 + (size_t)n;
    } else {
        TNF_TRY(check_long(s, i, *at + 4, n, e));
        if (suffix)
            TNF_TRY(tnf_ff_bytes_at(&s->w, *at + 4 + n, suffix, &p, e));
    }
    *number = suffix ? tnf_le64(p) : 0;
    *at += 4 + (uint64_t)n + suffix;
    return TNF_OK;
}

/* Is the string ASCII? 8 bytes at p are always readable, whatever n is. */
static inline bool short_ascii(const uint8_t *p, uint32_t n)
{
    uint64_t w[4] = { 0 };
    if (n > 32)
        return tnf_ascii((const char *)p, n);
    memcpy(&w[0], p, 8);
    if (n < 8) {
        w[0] = n ? tnf_le64(p) << (64 - 8 * n) : 0; /* only the n bytes of the string */
    } else {
        memcpy(&w[1], p + n - 8, 8);
        memcpy(&w[2], p + (n > 16 ? 8 : 0), 8);
        memcpy(&w[3], p + (n > 16 ? n - 16 : 0), 8);
    }
    return ((w[0] | w[1] | w[2] | w[3]) & 0x8080808080808080u) == 0;
}

/* Scans strings that are completely in the window, short and ASCII, as nearly all are. It stops at
 * the first other string, which scan_one() reads. *i and *at advance. */
static void scan_window(struct scan *s, uint64_t *i, uint64_t *at, ff_take take, void *ctx)
{
    const ff_list *l = s->l;
    uint64_t last = s->w.at + s->w.n < s->bound ? s->w.at + s->w.n : s->bound;
    if (*at < s->w.at || *at >= last)
        return;
    const uint8_t *p = s->w.p + (*at - s->w.at), *end = s->w.p + (last - s->w.at);
    uint64_t k = *i;
    for (; k < l->count && end - p >= 12; k++) {
        uint32_t n = tnf_le32(p);
        if (n > (size_t)(end - p) - 4 || l->suffix > (size_t)(end - p) - 4 - n ||
            !short_ascii(p + 4, n))
            break;
        if (k % FF_EVERY == 0)
            l->marks[k / FF_EVERY] = s->w.at + (uint64_t)(p - s->w.p) - l->at;
        p += 4 + (size_t)n;
        if (take)
            take(ctx, tnf_le64(p));
        p += l->suffix;
    }
    *i = k;
    *at = s->w.at + (uint64_t)(p - s->w.p);
}

/* Makes room for at least n bytes. Later lists use the same room if it is large enough. */
static tnf_status make_window(ff_reading *f, size_t n, tnf_error *e)
{
    if (n <= f->window_bytes)
        return TNF_OK;
    f->window = tnf_arena_raw(f->r->scratch, n);
    f->window_bytes = f->window ? n : 0;
    return f->window ? TNF_OK : tnf_arena_fail(f->r->scratch, "reading words", e);
}

tnf_status tnf_ff_list_scan(ff_reading *f, ff_list *l, uint64_t bound, const char *what,
                            ff_take take, void *ctx, tnf_error *e)
{
    struct scan s = { .f = f, .l = l, .bound = bound, .what = what };
    uint64_t left = bound - l->at, at = l->at, number = 0;
    s.w.source = f->r->source;
    s.w.capacity = left < SCAN_WINDOW ? (size_t)left + 8 : SCAN_WINDOW;
    TNF_TRY(make_window(f, s.w.capacity, e));
    s.w.p = f->window;
    if (l->count > left / (4 + l->suffix))
        return tnf_fail(e, TNF_EFORMAT, l->at, "%llu %ss do not fit into the remaining %llu bytes",
                        (unsigned long long)l->count, what, (unsigned long long)left);
    l->marks = tnf_arena_array(f->r->arena, l->count / FF_EVERY + 1, sizeof *l->marks);
    if (!l->marks)
        return tnf_arena_fail(f->r->arena, "a table of words", e);
    for (uint64_t i = 0; i < l->count; scan_window(&s, &i, &at, take, ctx)) {
        if (i % FF_EVERY == 0)
            l->marks[i / FF_EVERY] = at - l->at;
        TNF_TRY(scan_one(&s, i++, &at, &number, e));
        if (take)
            take(ctx, number);
    }
    l->bytes = at - l->at;
    return TNF_OK;
}

/* -------------------------------------------------------------------- lists */

tnf_status tnf_ff_list_new(ff_reading *f, tnf_error *e)
{
    ff_state *s = f->state;
    if (s->nlists == s->room) {
        uint32_t room = s->room ? 2 * s->room : 2;
        ff_list *more = tnf_arena_array(f->r->arena, room, sizeof *more);
        if (!more)
            return tnf_arena_fail(f->r->arena, "lists of words", e);
        if (s->nlists)
            memcpy(more, s->lists, s->nlists * sizeof *more);
        s->lists = more;
        s->room = room;
    }
    f->lists = s->nlists;
    s->nlists += 2;
    return TNF_OK;
}

ff_list *tnf_ff_list(const ff_reading *f, unsigned which)
{
    return &f->state->lists[f->lists + which];
}

tnf_status tnf_ff_list_add(ff_reading *f, unsigned which, const char *name, uint64_t at,
                           tnf_error *e)
{
    const ff_list *l = tnf_ff_list(f, which);
    const uint64_t list = f->lists + which;
    /* No overflow: the file has at least as many bytes. */
    tnf_part parts[] = { { .role = "offsets",
                           .type = tnf_type_of(TNF_U64),
                           .payload = TNF_OPAQUE,
                           .offset = FF_KEY(list, FF_OFFSETS),
                           .nbytes = (l->count + 1) * sizeof(uint64_t) },
                         { .role = "bytes",
                           .type = tnf_type_of(TNF_U8),
                           .payload = TNF_OPAQUE,
                           .offset = FF_KEY(list, FF_BYTES),
                           .nbytes = l->bytes - l->count * (4 + l->suffix) } };
    tnf_object o = { .name = { name, strlen(name) },
                     .layout = tnf_layout_named("strings/1", 9),
                     .shape = &l->count,
                     .rank = 1,
                     .parts = parts,
                     .nparts = 2 };
    return tnf_ff_add(f, &o, at, e);
}

/* -------------------------------------------------------------------- text */

/* The bytes that may follow a lead byte (Unicode's table of well-formed sequences, as in
 * base/utf8.c). */
static bool take_lead(ff_utf8 *u, uint8_t b)
{
    u->low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80;
    u->high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
    u->left = b >= 0xf0 ? 3 : b >= 0xe0 ? 2 : 1;
    return b >= 0xc2 && b <= 0xf4;
}

bool tnf_ff_utf8_feed(ff_utf8 *u, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (u->left == 0) {
            if (p[i] >= 0x80 && !take_lead(u, p[i]))
                return false;
            continue;
        }
        if (p[i] < u->low || p[i] > u->high)
            return false;
        u->low = 0x80;
        u->high = 0xbf;
        u->left--;
    }
    return true;
}
