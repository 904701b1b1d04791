/* SPDX-License-Identifier: MIT */
/* A table of rows: where they begin, and the lengths of their words.
 *
 *   segment   at, offset │ 64 × u32 bytes to the next row │ 64 × u32 bytes of its word
 *
 * A row is found by its segment's mark and a sum of at most 63 numbers. The table grows with the
 * rows that are read, never by a count in a header.
 *
 * If words are between vectors, every read of the words would scan the file again. So words can be
 * kept in memory, by blocks of rows. Words that are too long or too many stay in the file.
 */
#include "formats/wordvec/wordvec.h"

#include <string.h>

struct segment {
    uint64_t at, offset;
    uint32_t stride[WV_SEGMENT], word[WV_SEGMENT];
};

struct wv_block {
    const char *words; /* words of all its rows; NULL: not kept */
    struct segment segments[WV_BLOCK];
};

#define BLOCK_ROWS (WV_BLOCK * (uint64_t)WV_SEGMENT)
#define KEEP_BLOCK ((size_t)64 << 10) /* most bytes of a block's words that are kept */

void tnf_wv_rows_init(wv_rows *rows, tnf_arena *arena)
{
    *rows = (wv_rows) { .arena = arena };
}

static struct segment *segment_of(const wv_rows *rows, uint64_t i)
{
    return &rows->blocks[i / BLOCK_ROWS]->segments[i / WV_SEGMENT % WV_BLOCK];
}

/* Makes room for row n; the list of blocks doubles. */
static tnf_status reserve_row(wv_rows *rows, tnf_error *e)
{
    size_t at = (size_t)(rows->n / BLOCK_ROWS);
    struct wv_block **more = tnf_arena_grow(rows->arena, rows->blocks, at, &rows->room,
                                            sizeof *more, 8);
    if (!more)
        return tnf_arena_fail(rows->arena, "a table of rows", e);
    rows->blocks = more;
    rows->blocks[at] = tnf_arena_raw(rows->arena, sizeof **rows->blocks);
    if (!rows->blocks[at])
        return tnf_arena_fail(rows->arena, "a table of rows", e);
    rows->blocks[at]->words = NULL;
    return TNF_OK;
}

tnf_status tnf_wv_rows_end(wv_rows *rows, uint64_t at, tnf_error *e)
{
    if (rows->n == 0)
        return TNF_OK;
    if (at - rows->last > UINT32_MAX)
        return tnf_fail(e, TNF_ELIMIT, rows->last, "row %llu has more than 2^32 bytes",
                        (unsigned long long)rows->n - 1);
    segment_of(rows, rows->n - 1)->stride[(rows->n - 1) % WV_SEGMENT] = (uint32_t)(at - rows->last);
    return TNF_OK;
}

tnf_status tnf_wv_rows_add(wv_rows *rows, uint64_t at, uint64_t word, tnf_error *e)
{
    TNF_TRY(tnf_wv_rows_end(rows, at, e));
    if (word > UINT32_MAX)
        return tnf_fail(e, TNF_ELIMIT, at, "a word has more than 2^32 bytes");
    if (rows->n % BLOCK_ROWS == 0) {
        TNF_TRY(tnf_wv_rows_keep_all(rows, e));
        TNF_TRY(reserve_row(rows, e));
    }
    struct segment *s = segment_of(rows, rows->n);
    if (rows->n % WV_SEGMENT == 0) {
        s->at = at;
        s->offset = rows->words;
    }
    s->word[rows->n % WV_SEGMENT] = (uint32_t)word;
    rows->words += word;
    rows->last = at;
    rows->n++;
    return TNF_OK;
}

tnf_status tnf_wv_rows_keep_begin(wv_rows *rows, tnf_arena *scratch, uint64_t most, tnf_error *e)
{
    rows->room_gathered = most < KEEP_BLOCK ? (size_t)most : KEEP_BLOCK;
    rows->gathered = tnf_arena_raw(scratch, rows->room_gathered + 1);
    rows->keep_left = most;
    return rows->gathered ? TNF_OK : tnf_arena_fail(scratch, "words", e);
}

void tnf_wv_rows_keep(wv_rows *rows, const char *word, size_t n)
{
    if (rows->whole != (rows->n - 1) % BLOCK_ROWS || n > rows->room_gathered - rows->ngathered)
        return;
    memcpy(rows->gathered + rows->ngathered, word, n);
    rows->ngathered += n;
    rows->whole++;
}

tnf_status tnf_wv_rows_keep_all(wv_rows *rows, tnf_error *e)
{
    uint64_t whole = rows->whole, before = rows->n ? rows->n - 1 : 0;
    size_t n = rows->ngathered;
    rows->whole = rows->ngathered = 0;
    if (rows->n == 0 || whole != before % BLOCK_ROWS + 1 || n > rows->keep_left)
        return TNF_OK;
    char *words = tnf_arena_raw(rows->arena, n + 1);
    if (!words)
        return tnf_arena_fail(rows->arena, "words", e);
    memcpy(words, rows->gathered, n);
    rows->blocks[before / BLOCK_ROWS]->words = words;
    rows->keep_left -= n;
    return TNF_OK;
}

tnf_str tnf_wv_rows_kept(const wv_rows *rows, const wv_row *row, uint64_t *next)
{
    uint64_t block = row->i / BLOCK_ROWS, first = block * BLOCK_ROWS;
    const char *words = row->i < rows->n ? rows->blocks[block]->words : NULL;
    *next = rows->n - first > BLOCK_ROWS ? first + BLOCK_ROWS : rows->n;
    if (!words)
        return (tnf_str) { NULL, 0 };
    uint64_t end = *next < rows->n ? segment_of(rows, *next)->offset : rows->words;
    words += row->offset - segment_of(rows, first)->offset;
    return (tnf_str) { words, (size_t)(end - row->offset) };
}

/* The position after the last row: its start plus its stride. */
static wv_row row_behind(const wv_rows *rows)
{
    if (rows->n == 0)
        return (wv_row) { 0 };
    uint64_t end = rows->last + segment_of(rows, rows->n - 1)->stride[(rows->n - 1) % WV_SEGMENT];
    return (wv_row) { .i = rows->n, .at = end, .end = end, .offset = rows->words };
}

wv_row tnf_wv_rows_at(const wv_rows *rows, uint64_t i)
{
    if (i >= rows->n)
        return row_behind(rows);
    const struct segment *s = segment_of(rows, i);
    wv_row row = { .i = i, .at = s->at, .offset = s->offset };
    for (unsigned k = 0; k < i % WV_SEGMENT; k++) {
        row.at += s->stride[k];
        row.offset += s->word[k];
    }
    row.word = s->word[i % WV_SEGMENT];
    row.end = row.at + s->stride[i % WV_SEGMENT];
    return row;
}

void tnf_wv_rows_next(const wv_rows *rows, wv_row *row)
{
    uint64_t i = row->i + 1;
    if (i >= rows->n) {
        *row = row_behind(rows);
        return;
    }
    const struct segment *s = segment_of(rows, i);
    row->i = i;
    row->at = row->end;
    row->offset += row->word;
    row->word = s->word[i % WV_SEGMENT];
    row->end = row->at + s->stride[i % WV_SEGMENT];
}

uint64_t tnf_wv_rows_find(const wv_rows *rows, uint64_t offset)
{
    uint64_t low = 0, high = rows->n ? (rows->n - 1) / WV_SEGMENT : 0;
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (segment_of(rows, middle * WV_SEGMENT)->offset <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    wv_row row = tnf_wv_rows_at(rows, low * WV_SEGMENT);
    while (row.i < rows->n && row.offset + row.word <= offset)
        tnf_wv_rows_next(rows, &row);
    return row.i;
}
