/* SPDX-License-Identifier: MIT */
/* Words and n-grams as they lie in the file, and as strings/1 has them.
 *
 *   in the file   03 00 00 00 o n e [index]   05 00 00 00 t h r e e [index]   …
 *                 ^ mark 0                                          ^ mark 1, 1024 strings on
 *   offsets       0 3 8 …
 *   bytes         o n e t h r e e …
 *
 * The file is gone through once, when it is opened. What is kept is a mark for every 1024th string,
 * from where any piece of the two parts is found in a few steps: string i has i lengths (and
 * indices) before it, so its place in `bytes` follows from its place in the file.
 */
#include "formats/finalfusion/ff.h"

#include <string.h>

/* A piece of the file, read ahead. */
struct window {
    const tnf_source *source;
    uint8_t *p;
    size_t capacity, n;
    uint64_t at;
};

#define SCAN_WINDOW   ((size_t)64 << 10)
#define DECODE_WINDOW ((size_t)16 << 10)

/* n bytes from `at` on; n is no more than the window holds. */
static tnf_status look(struct window *w, uint64_t at, size_t n, const uint8_t **out, tnf_error *e)
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
    struct window w;
    uint64_t bound;
    const char *what;
    bool told; /* of text that is none */
};

static tnf_status not_text(struct scan *s, uint64_t i, uint64_t at, tnf_error *e)
{
    if (s->told)
        return TNF_OK;
    s->told = true;
    return tnf_stricter(s->f->r, e, TNF_EFORMAT, at, "%s %llu of %llu is not UTF-8", s->what,
                        (unsigned long long)i, (unsigned long long)s->l->count);
}

/* A string longer than the window. */
static tnf_status check_long(struct scan *s, uint64_t i, uint64_t at, uint64_t n, tnf_error *e)
{
    ff_utf8 u = { 0 };
    for (uint64_t done = 0; done < n;) {
        size_t some = n - done < s->w.capacity ? (size_t)(n - done) : s->w.capacity;
        const uint8_t *p;
        TNF_TRY(look(&s->w, at + done, some, &p, e));
        if (!ff_utf8_feed(&u, p, some))
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
                        s->what, (unsigned long long)i, (unsigned long long)s->l->count);
    TNF_TRY(look(&s->w, *at, 4, &p, e));
    uint32_t n = tnf_le32(p);
    if (n > left - 4 - suffix)
        return tnf_fail(e, TNF_EFORMAT, *at,
                        "%s %llu of %llu is said to have %u bytes, its chunk has %llu left",
                        s->what, (unsigned long long)i, (unsigned long long)s->l->count, n,
                        (unsigned long long)(left - 4 - suffix));
    if ((uint64_t)n + 4 + suffix <= s->w.capacity) {
        TNF_TRY(look(&s->w, *at, 4 + (size_t)n + suffix, &p, e));
        if (!tnf_utf8_valid((const char *)p + 4, n, &bad))
            TNF_TRY(not_text(s, i, *at + 4 + bad, e));
        p += 4 + (size_t)n;
    } else {
        TNF_TRY(check_long(s, i, *at + 4, n, e));
        if (suffix)
            TNF_TRY(look(&s->w, *at + 4 + n, suffix, &p, e));
    }
    *number = suffix ? tnf_le64(p) : 0;
    *at += 4 + (uint64_t)n + suffix;
    return TNF_OK;
}

tnf_status ff_list_scan(ff_reading *f, ff_list *l, uint64_t bound, const char *what, ff_take take,
                        void *ctx, tnf_error *e)
{
    struct scan s = { .f = f, .l = l, .bound = bound, .what = what };
    uint64_t left = bound - l->at, at = l->at, number = 0;
    s.w.source = f->r->source;
    s.w.capacity = left < SCAN_WINDOW ? (size_t)left + 8 : SCAN_WINDOW;
    s.w.p = tnf_arena_raw(f->r->scratch, s.w.capacity);
    if (!s.w.p)
        return tnf_arena_fail(f->r->scratch, "reading words", e);
    if (l->count > left / (4 + l->suffix))
        return tnf_fail(e, TNF_EFORMAT, l->at, "%llu %ss do not fit into the %llu bytes there are",
                        (unsigned long long)l->count, what, (unsigned long long)left);
    l->marks = tnf_arena_array(f->r->arena, l->count / FF_EVERY + 1, sizeof *l->marks);
    if (!l->marks)
        return tnf_arena_fail(f->r->arena, "a table of words", e);
    for (uint64_t i = 0; i < l->count; i++) {
        if (i % FF_EVERY == 0)
            l->marks[i / FF_EVERY] = at - l->at;
        TNF_TRY(scan_one(&s, i, &at, &number, e));
        if (take)
            take(ctx, number);
    }
    l->bytes = at - l->at;
    return TNF_OK;
}

tnf_status ff_list_add(ff_reading *f, unsigned list, const char *name, uint64_t at, tnf_error *e)
{
    const ff_list *l = &f->state->lists[list];
    /* No overflow: there are as many bytes in the file. */
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
    return ff_add(f, &o, at, e);
}

/* ------------------------------------------------------------------ decode */

/* A place in a list: string i begins at `at`, and has n bytes (none if it is past the last). */
struct walk {
    const ff_list *l;
    struct window w;
    uint64_t i, at;
    uint32_t n;
};

/* The lengths were checked when the file was opened, but files change. */
static tnf_status read_length(struct walk *k, tnf_error *e)
{
    const ff_list *l = k->l;
    const uint8_t *p;
    k->n = 0;
    if (k->i == l->count)
        return TNF_OK;
    uint64_t left = l->bytes - (k->at - l->at);
    if (left >= 4 + l->suffix) {
        TNF_TRY(look(&k->w, k->at, 4, &p, e));
        k->n = tnf_le32(p);
    }
    if (left < 4 + l->suffix || k->n > left - 4 - l->suffix)
        return tnf_fail(e, TNF_EFORMAT, k->at, "the file has changed since it was opened");
    return TNF_OK;
}

static tnf_status step(struct walk *k, tnf_error *e)
{
    k->at += 4 + (uint64_t)k->n + k->l->suffix;
    k->i++;
    return read_length(k, e);
}

/* Where string i, which begins at `place` in the list, begins in `bytes`. */
static uint64_t offset_of(const ff_list *l, uint64_t i, uint64_t place)
{
    return place - i * (4 + l->suffix);
}

static tnf_status start_at(struct walk *k, uint64_t mark, tnf_error *e)
{
    bool empty = k->l->count == 0;
    k->i = empty ? 0 : mark * FF_EVERY;
    k->at = k->l->at + (empty ? 0 : k->l->marks[mark]);
    return read_length(k, e);
}

static uint64_t last_mark(const ff_list *l)
{
    return l->count ? (l->count - 1) / FF_EVERY : 0;
}

/* To string i; i may be that after the last. */
static tnf_status walk_to(struct walk *k, uint64_t i, tnf_error *e)
{
    uint64_t mark = i / FF_EVERY, last = last_mark(k->l);
    TNF_TRY(start_at(k, mark < last ? mark : last, e));
    while (k->i < i)
        TNF_TRY(step(k, e));
    return TNF_OK;
}

/* To the string that holds byte b of `bytes`. */
static tnf_status walk_to_byte(struct walk *k, uint64_t b, tnf_error *e)
{
    const ff_list *l = k->l;
    uint64_t low = 0, high = last_mark(l);
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (offset_of(l, middle * FF_EVERY, l->marks[middle]) <= b)
            low = middle;
        else
            high = middle - 1;
    }
    TNF_TRY(start_at(k, low, e));
    while (k->i < l->count && offset_of(l, k->i, k->at - l->at) + k->n <= b)
        TNF_TRY(step(k, e));
    return TNF_OK;
}

/* Numbers, one a string: `offsets`, or what stands behind the strings. */
static tnf_status decode_numbers(struct walk *k, bool offsets, uint64_t from, uint8_t *dst,
                                 size_t n, tnf_error *e)
{
    size_t skip = (size_t)(from % 8);
    TNF_TRY(walk_to(k, from / 8, e));
    while (n > 0) {
        uint8_t number[8];
        const uint8_t *p;
        if (offsets) {
            tnf_put_le64(number, offset_of(k->l, k->i, k->at - k->l->at));
        } else {
            TNF_TRY(look(&k->w, k->at + 4 + k->n, 8, &p, e));
            memcpy(number, p, 8);
        }
        size_t some = n < 8 - skip ? n : 8 - skip;
        memcpy(dst, number + skip, some);
        dst += some;
        n -= some;
        skip = 0;
        if (n > 0)
            TNF_TRY(step(k, e));
    }
    return TNF_OK;
}

static tnf_status decode_bytes(struct walk *k, uint64_t from, uint8_t *dst, size_t n, tnf_error *e)
{
    TNF_TRY(walk_to_byte(k, from, e));
    while (n > 0) {
        if (k->i == k->l->count)
            return tnf_fail(e, TNF_EFORMAT, k->at, "the file has changed since it was opened");
        uint64_t inside = from - offset_of(k->l, k->i, k->at - k->l->at);
        for (size_t some; inside < k->n && n > 0; inside += some) {
            const uint8_t *p;
            uint64_t left = k->n - inside < n ? k->n - inside : n;
            some = left < k->w.capacity ? (size_t)left : k->w.capacity;
            TNF_TRY(look(&k->w, k->at + 4 + inside, some, &p, e));
            memcpy(dst, p, some);
            dst += some;
            from += some;
            n -= some;
        }
        if (n > 0)
            TNF_TRY(step(k, e));
    }
    return TNF_OK;
}

tnf_status ff_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                     tnf_error *e)
{
    const ff_state *state = r->state;
    uint8_t buffer[DECODE_WINDOW];
    struct walk k = { .l = &state->lists[key / 3],
                      .w = { .source = r->source, .p = buffer, .capacity = sizeof buffer } };
    if (key % 3 == FF_BYTES)
        return decode_bytes(&k, offset, dst, n, e);
    return decode_numbers(&k, key % 3 == FF_OFFSETS, offset, dst, n, e);
}

tnf_status ff_strings(tnf_reader *r, uint64_t key, tnf_strings *out, tnf_error *e)
{
    const ff_list *l = &((const ff_state *)r->state)->lists[key / 3];
    const char *why = r->source->map_why;
    const void *base = l->bytes ? tnf_source_map(r->source, l->at, l->bytes) : "";
    if (!base)
        return tnf_cannot_map(why ? why : "the system would not map the file", e);
    *out = (tnf_strings) { .base = base,
                           .count = l->count,
                           .bytes = l->bytes,
                           .prefix = 4,
                           .suffix = l->suffix,
                           .marks = l->marks,
                           .every = FF_EVERY };
    return TNF_OK;
}

/* -------------------------------------------------------------------- text */

/* What may follow a lead byte (Unicode's table of well-formed sequences, as base/utf8.c has it). */
static bool lead(ff_utf8 *u, uint8_t b)
{
    u->low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80;
    u->high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
    u->left = b >= 0xf0 ? 3 : b >= 0xe0 ? 2 : 1;
    return b >= 0xc2 && b <= 0xf4;
}

bool ff_utf8_feed(ff_utf8 *u, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (u->left == 0) {
            if (p[i] >= 0x80 && !lead(u, p[i]))
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
