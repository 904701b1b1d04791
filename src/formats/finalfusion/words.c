/* SPDX-License-Identifier: MIT */
/* Words and n-grams of a catalog: from strings/1 (left) to the form of a file (right).
 *
 *   offsets  0 3 8                 03 00 00 00 o n e [index]  05 00 00 00 t h r e e [index]
 *   bytes    o n e t h r e e
 *
 * Offsets are kept in memory, eight bytes per word; the strings' bytes are streamed.
 */
#include "formats/finalfusion/ff.h"

#include <string.h>

static tnf_status load_part(const uint8_t **out, const tnf_part *part, tnf_arena *arena,
                            tnf_error *e)
{
    size_t n;
    uint8_t *p = tnf_to_size(&n, part->nbytes) ? tnf_arena_raw(arena, n) : NULL;
    if (!p)
        return tnf_arena_fail(arena, "words", e);
    *out = p;
    return tnf_read_part(p, n, part, 0, e);
}

static uint64_t offset_at(const ff_words *words, uint64_t i)
{
    return tnf_le64(words->offsets + 8 * i);
}

static const char *check_offsets(const ff_words *words)
{
    uint64_t before = 0;
    for (uint64_t i = 0; i <= words->count; i++) {
        uint64_t offset = offset_at(words, i);
        if (i == 0 ? offset != 0 : offset < before)
            return "its offsets are not in ascending order";
        if (offset - before > UINT32_MAX)
            return "a string has more than 2^32 bytes";
        before = offset;
    }
    return before == tnf_object_part(words->object, "bytes")->nbytes
               ? NULL
               : "its last offset is not the end of its bytes";
}

tnf_status tnf_ff_words_load(ff_words *out, const tnf_object *strings, const tnf_object *numbers,
                             tnf_arena *arena, const char **why, tnf_error *e)
{
    *out = (ff_words) { .object = strings, .count = strings->shape[0] };
    TNF_TRY(load_part(&out->offsets, tnf_object_part(strings, "offsets"), arena, e));
    if (numbers)
        TNF_TRY(load_part(&out->numbers, &numbers->parts[0], arena, e));
    *why = check_offsets(out);
    return TNF_OK;
}

/* -------------------------------------------------------------------- text */

struct check {
    const ff_words *words;
    ff_utf8 u;
    uint64_t i, at; /* the next string to end, and the next byte */
    bool text;
};

/* A string must not end inside a character. */
static tnf_status check_block(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct check *c = ctx;
    const uint8_t *p = bytes;
    (void)e;
    while (n > 0 && c->text) {
        while (c->i <= c->words->count && offset_at(c->words, c->i) == c->at) {
            c->text = c->text && c->u.left == 0;
            c->i++;
        }
        uint64_t left = c->i <= c->words->count ? offset_at(c->words, c->i) - c->at : n;
        size_t some = left < n ? (size_t)left : n;
        c->text = c->text && tnf_ff_utf8_feed(&c->u, p, some);
        p += some;
        c->at += some;
        n -= some;
    }
    return c->text ? TNF_OK : TNF_ECANCELLED;
}

tnf_status tnf_ff_words_check(const ff_words *words, const char **why, tnf_error *e)
{
    struct check c = { .words = words, .text = true };
    tnf_status status = tnf_scan(tnf_object_part(words->object, "bytes"), check_block, &c, e);
    *why = c.text && c.u.left == 0 ? NULL : "a string is not UTF-8";
    return c.text ? status : TNF_OK;
}

/* -------------------------------------------------------------------- rows */

tnf_status tnf_ff_words_rows(const ff_words *words, uint64_t *rows, tnf_arena *arena,
                             const char **why, tnf_error *e)
{
    ff_rows seen;
    *rows = words->count;
    if (!words->numbers)
        return TNF_OK;
    if (!tnf_ff_rows_begin(&seen, words->count, arena))
        return tnf_arena_fail(arena, "n-grams", e);
    for (uint64_t i = 0; i < words->count; i++)
        tnf_ff_rows_take(&seen, tnf_le64(words->numbers + 8 * i));
    *rows = seen.distinct;
    if (!tnf_ff_rows_cover(&seen))
        *why = "their indices leave gaps";
    return TNF_OK;
}

/* --------------------------------------------------------------------- put */

struct put {
    tnf_writer *w;
    const ff_words *words;
    uint64_t i, left;
    bool inside;
};

/* Writes the fields between the bytes of one string and those of the next. */
static tnf_status put_between(struct put *c, tnf_error *e)
{
    const ff_words *words = c->words;
    while (c->left == 0 && c->i < words->count) {
        if (c->inside) {
            if (words->suffix)
                TNF_TRY(tnf_put_u64(
                    c->w, words->numbers ? tnf_le64(words->numbers + 8 * c->i) : c->i, e));
            c->i++;
        } else {
            c->left = offset_at(words, c->i + 1) - offset_at(words, c->i);
            TNF_TRY(tnf_put_u32(c->w, (uint32_t)c->left, e));
        }
        c->inside = !c->inside;
    }
    return TNF_OK;
}

static tnf_status put_block(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct put *c = ctx;
    const uint8_t *p = bytes;
    TNF_TRY(put_between(c, e));
    while (n > 0 && c->left > 0) {
        size_t some = c->left < n ? (size_t)c->left : n;
        TNF_TRY(tnf_put(c->w, p, some, e));
        p += some;
        n -= some;
        c->left -= some;
        TNF_TRY(put_between(c, e));
    }
    return TNF_OK;
}

tnf_status tnf_ff_words_put(tnf_writer *w, const ff_words *words, tnf_error *e)
{
    struct put c = { .w = w, .words = words };
    TNF_TRY(tnf_scan(tnf_object_part(words->object, "bytes"), put_block, &c, e));
    return put_between(&c, e);
}

uint64_t tnf_ff_words_bytes(const ff_words *words)
{
    return tnf_object_part(words->object, "bytes")->nbytes + words->count * (4 + words->suffix);
}
