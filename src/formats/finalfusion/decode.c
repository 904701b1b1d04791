/* SPDX-License-Identifier: MIT */
/* Decodes any piece of a list of strings as strings/1, from the file. Also lends the list as it is.
 *
 * String i has i lengths (and indices) before it, so its position in `bytes` follows from its
 * position in the file. A mark is looked up, and the few strings between it and the wanted piece
 * are walked through.
 */
#include "formats/finalfusion/ff.h"

#include <string.h>

#define DECODE_WINDOW ((size_t)16 << 10)

/* A place in a list: string i begins at `at`, and has n bytes (none if it is past the last). */
struct walk {
    const ff_list *l;
    ff_window w;
    uint64_t i, at;
    uint32_t n;
};

/* The lengths were checked when the file was opened, but the file may have changed since. */
static tnf_status read_length(struct walk *k, tnf_error *e)
{
    const ff_list *l = k->l;
    const uint8_t *p;
    k->n = 0;
    if (k->i == l->count)
        return TNF_OK;
    uint64_t left = l->bytes - (k->at - l->at);
    if (left >= 4 + l->suffix) {
        TNF_TRY(tnf_ff_bytes_at(&k->w, k->at, 4, &p, e));
        k->n = tnf_le32(p);
    }
    if (left < 4 + l->suffix || k->n > left - 4 - l->suffix)
        return tnf_fail(e, TNF_EFORMAT, k->at, "the file has changed since it was opened");
    return TNF_OK;
}

static tnf_status next_string(struct walk *k, tnf_error *e)
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

/* Moves to string i, which may be one after the last. */
static tnf_status walk_to(struct walk *k, uint64_t i, tnf_error *e)
{
    uint64_t mark = i / FF_EVERY, last = last_mark(k->l);
    TNF_TRY(start_at(k, mark < last ? mark : last, e));
    while (k->i < i)
        TNF_TRY(next_string(k, e));
    return TNF_OK;
}

/* Moves to the string that holds byte b of `bytes`. */
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
        TNF_TRY(next_string(k, e));
    return TNF_OK;
}

/* Numbers, one per string: `offsets`, or the index after each string. */
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
            TNF_TRY(tnf_ff_bytes_at(&k->w, k->at + 4 + k->n, 8, &p, e));
            memcpy(number, p, 8);
        }
        size_t some = n < 8 - skip ? n : 8 - skip;
        memcpy(dst, number + skip, some);
        dst += some;
        n -= some;
        skip = 0;
        if (n > 0)
            TNF_TRY(next_string(k, e));
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
            TNF_TRY(tnf_ff_bytes_at(&k->w, k->at + 4 + inside, some, &p, e));
            memcpy(dst, p, some);
            dst += some;
            from += some;
            n -= some;
        }
        if (n > 0)
            TNF_TRY(next_string(k, e));
    }
    return TNF_OK;
}

tnf_status tnf_ff_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
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

tnf_status tnf_ff_strings(tnf_reader *r, uint64_t key, tnf_strings *out, tnf_error *e)
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
