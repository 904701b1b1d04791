/* SPDX-License-Identifier: MIT */
/* The words of a file as strings/1.
 *
 *   in the file   o n e ▒▒vector▒▒ t h r e e ▒▒vector▒▒
 *   offsets       0 3 8          from the table of rows
 *   bytes         o n e t h r e e          from memory, or gathered from the file
 *
 * Words are bytes. They are copied and repaired only if invalid UTF-8 must be replaced.
 */
#include "base/lossy.h"
#include "formats/wordvec/wordvec.h"

#include <string.h>

#define RANGES 256u /* words read with one call */

/* -------------------------------------------------------------------- UTF-8 */

void tnf_wv_utf8_check(wv_utf8_count *c, const char *word, size_t n, uint64_t at)
{
    size_t bad = 0;
    if (tnf_ascii(word, n) || tnf_utf8_valid(&bad, word, n))
        return;
    if (c->words++ == 0)
        c->first = at + bad;
}

void tnf_wv_utf8_sum(wv_utf8_count *c, const wv_utf8_count *more)
{
    if (c->words == 0)
        c->first = more->first;
    c->words += more->words;
}

tnf_status tnf_wv_utf8_judge(tnf_reader *r, const wv_utf8_count *c, wv_utf8 policy, tnf_error *e)
{
    if (c->words == 0)
        return TNF_OK;
    if (policy == WV_UTF8_STRICT)
        return tnf_fail(e, TNF_EFORMAT, c->first,
                        "a word is not UTF-8 (%llu are not): utf8=bytes keeps such words, "
                        "utf8=lossy repairs them",
                        (unsigned long long)c->words);
    tnf_warn(r, c->first, "%llu word%s not UTF-8; %s", (unsigned long long)c->words,
             c->words > 1 ? "s are" : " is",
             policy == WV_UTF8_LOSSY ? "invalid bytes are read as U+FFFD"
                                     : "all bytes are kept unchanged");
    return TNF_OK;
}

/* ------------------------------------------------------------------ decoding */

static void decode_offsets(const wv_rows *rows, uint64_t offset, uint8_t *dst, size_t n)
{
    wv_row row = tnf_wv_rows_at(rows, offset / 8);
    for (size_t skip = (size_t)(offset % 8); n > 0; skip = 0) {
        uint8_t number[8];
        tnf_put_le64(number, row.offset);
        size_t some = n < 8 - skip ? n : 8 - skip;
        memcpy(dst, number + skip, some);
        dst += some;
        n -= some;
        if (n > 0)
            tnf_wv_rows_next(rows, &row);
    }
}

/* The requested bytes of all words: n bytes, beginning with byte `skip` of this row's word. */
struct wanted {
    const wv_rows *rows;
    wv_row row;
    uint64_t skip;
    uint8_t *dst;
    size_t n;
};

/* Gathers words up to row `end`, or as many as one call reads. */
static tnf_status gather_words(struct wanted *w, const tnf_source *source, uint64_t end,
                               tnf_error *e)
{
    tnf_range ranges[RANGES];
    size_t count = 0;
    for (; count < RANGES && w->n > 0 && w->row.i < end; tnf_wv_rows_next(w->rows, &w->row)) {
        uint64_t left = w->row.word - w->skip;
        size_t some = left < w->n ? (size_t)left : w->n;
        if (some)
            ranges[count++] = (tnf_range) { w->row.at + w->skip, some, w->dst };
        w->dst += some;
        w->n -= some;
        w->skip = 0;
    }
    return count ? tnf_source_read_many(source, ranges, count, e) : TNF_OK;
}

static tnf_status decode_bytes(const tnf_source *source, const wv_rows *rows, uint64_t offset,
                               uint8_t *dst, size_t n, tnf_error *e)
{
    wv_row row = tnf_wv_rows_at(rows, tnf_wv_rows_find(rows, offset));
    struct wanted w = { rows, row, offset - row.offset, dst, n };
    while (w.n > 0) {
        uint64_t next;
        tnf_str kept = tnf_wv_rows_kept(rows, &w.row, &next);
        if (!kept.p) {
            TNF_TRY(gather_words(&w, source, next, e));
            continue;
        }
        size_t some = kept.n - w.skip < w.n ? (size_t)(kept.n - w.skip) : w.n;
        memcpy(w.dst, kept.p + w.skip, some);
        w.dst += some;
        w.n -= some;
        w.skip = 0;
        w.row = tnf_wv_rows_at(rows, next);
    }
    return TNF_OK;
}

tnf_status tnf_wv_decode_words(const tnf_reader *r, const wv_rows *rows, uint64_t key,
                               uint64_t offset, uint8_t *dst, size_t n, tnf_error *e)
{
    if (key == WV_BYTES)
        return decode_bytes(r->source, rows, offset, dst, n, e);
    decode_offsets(rows, offset, dst, n);
    return TNF_OK;
}

/* ------------------------------------------------------------------- adding */

static tnf_status add_strings(tnf_reader *r, tnf_part parts[2], uint64_t count, uint64_t at,
                              tnf_error *e)
{
    parts[0].role = "offsets";
    parts[0].type = tnf_type_of(TNF_U64);
    parts[1].role = "bytes";
    parts[1].type = tnf_type_of(TNF_U8);
    tnf_object o = { .name = { WV_VOCAB, sizeof WV_VOCAB - 1 },
                     .layout = tnf_layout_named("strings/1", 9),
                     .shape = &count,
                     .rank = 1,
                     .parts = parts,
                     .nparts = 2 };
    return tnf_add_object(r, &o, at, e);
}

/* Adds all words with U+FFFD for invalid bytes: one byte becomes at most three. */
static tnf_status add_repaired(tnf_reader *r, const wv_rows *rows, uint64_t at, tnf_error *e)
{
    size_t n;
    uint64_t room;
    char *plain = tnf_to_size(&n, rows->words) ? tnf_arena_raw(r->scratch, rows->words + 1) : NULL;
    if (!plain)
        return tnf_arena_fail(r->scratch, "words", e);
    TNF_TRY(n ? decode_bytes(r->source, rows, 0, (uint8_t *)plain, n, e) : TNF_OK);
    uint8_t *offsets = tnf_arena_array(r->arena, rows->n + 1, 8);
    char *mended = offsets && tnf_ckd_mul(&room, rows->words, 3) ? tnf_arena_raw(r->arena, room + 1)
                                                                 : NULL;
    if (!mended)
        return tnf_arena_fail(r->arena, "words", e);
    uint64_t length = 0;
    for (wv_row row = tnf_wv_rows_at(rows, 0); row.i < rows->n; tnf_wv_rows_next(rows, &row)) {
        tnf_put_le64(offsets + 8 * row.i, length);
        length += tnf_utf8_mend(mended + length, plain + row.offset, row.word);
    }
    tnf_put_le64(offsets + 8 * rows->n, length);
    tnf_part parts[] = {
        { .payload = TNF_MEMORY, .memory = offsets, .nbytes = 8 * (rows->n + 1) },
        { .payload = TNF_MEMORY, .memory = mended, .nbytes = length },
    };
    return add_strings(r, parts, rows->n, at, e);
}

tnf_status tnf_wv_add_words(tnf_reader *r, const wv_rows *rows, bool mend, uint64_t at,
                            tnf_error *e)
{
    if (mend)
        return add_repaired(r, rows, at, e);
    tnf_part parts[] = {
        { .payload = TNF_OPAQUE, .offset = WV_OFFSETS, .nbytes = 8 * (rows->n + 1) },
        { .payload = TNF_OPAQUE, .offset = WV_BYTES, .nbytes = rows->words },
    };
    return add_strings(r, parts, rows->n, at, e);
}

tnf_status tnf_wv_add_matrix(tnf_reader *r, uint64_t rows, uint64_t dims, uint64_t at, tnf_error *e)
{
    uint64_t shape[] = { rows, dims }, bytes;
    if (!tnf_ckd_mul(&bytes, rows, dims) || !tnf_ckd_mul(&bytes, bytes, 4))
        return tnf_fail(e, TNF_EFORMAT, at, "%llu rows of %llu numbers exceed 2^64 bytes",
                        (unsigned long long)rows, (unsigned long long)dims);
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_F32),
                      .payload = TNF_OPAQUE,
                      .offset = WV_MATRIX,
                      .nbytes = bytes };
    tnf_object o = { .name = { WV_EMBEDDINGS, sizeof WV_EMBEDDINGS - 1 },
                     .layout = &tnf_layout_dense,
                     .shape = shape,
                     .rank = 2,
                     .parts = &part,
                     .nparts = 1 };
    return tnf_add_object(r, &o, at, e);
}
