/* SPDX-License-Identifier: MIT */
/* The dictionary: words and labels with their counts, and the buckets that pruning kept.
 *
 *   i32 size  i32 nwords  i32 nlabels  i64 ntokens  i64 pruneidx_size
 *   "haus" 00  count(8)  type(1)   "der" 00 …
 *
 * A word has no length, only a NUL at its end. Opening therefore reads all words once and keeps
 * their bytes and counts as tensors. If all counts are 0, there is no tensor of counts.
 */
#include "base/lossy.h"
#include "formats/fasttext/ft.h"

#include <string.h>

#define WINDOW ((size_t)64 << 10)

struct scan {
    ft_reading *f;
    uint8_t *p;
    size_t n, from; /* n: bytes in the window; from: how many of them were used */
    size_t room;
    tnf_buf bytes; /* bytes of all strings */
    tnf_buf raw;   /* for repairing a string that is not UTF-8 */
    uint64_t i, size;
    bool lossy, warned;
};

/* A list that becomes a tensor of strings and one of counts. */
struct list {
    const char *name, *counts_name;
    uint64_t n;
    uint64_t first; /* where its bytes begin in scan.bytes */
    uint64_t *offsets;
    uint8_t *counts;
    bool counted; /* a count other than 0 was seen */
};

/* Not larger than the rest of the file. */
static size_t window_size(const ft_reading *f)
{
    uint64_t left = f->r->source->size - f->at;
    return left < WINDOW ? (size_t)left + 16 : WINDOW;
}

static uint64_t scan_position(const struct scan *s)
{
    return s->f->at + s->from;
}

/* Refills the window, beginning with the first unused byte. */
static tnf_status refill_window(struct scan *s, size_t least, tnf_error *e)
{
    const tnf_source *source = s->f->r->source;
    uint64_t at = scan_position(s), left = at < source->size ? source->size - at : 0;
    if (left < least)
        return tnf_fail(e, TNF_ETRUNCATED, source->size,
                        "the file ends inside entry %llu of %llu of its dictionary",
                        (unsigned long long)s->i + 1, (unsigned long long)s->size);
    s->f->at = at;
    s->from = 0;
    s->n = left < s->room ? (size_t)left : s->room;
    return tnf_source_read(source, at, s->p, s->n, e);
}

static tnf_status take_word(struct scan *s, tnf_error *e)
{
    for (;;) {
        if (s->from == s->n)
            TNF_TRY(refill_window(s, 1, e));
        const uint8_t *p = s->p + s->from, *end = memchr(p, 0, s->n - s->from);
        size_t n = end ? (size_t)(end - p) : s->n - s->from;
        tnf_buf_put(&s->bytes, p, n);
        s->from += n;
        if (!end)
            continue;
        s->from++;
        return tnf_buf_status(&s->bytes, "the words", e);
    }
}

/* ------------------------------------------------------------- invalid UTF-8 */

static tnf_status repair_text(struct scan *s, size_t start, tnf_error *e)
{
    size_t n = s->bytes.n - start;
    s->raw.n = 0;
    for (int times = 0; times < 3; times++) /* each byte may become the 3 bytes of U+FFFD */
        tnf_buf_put(&s->raw, s->bytes.p + start, n);
    TNF_TRY(tnf_buf_status(&s->raw, "a word", e));
    n = tnf_utf8_mend((char *)s->raw.p, (const char *)s->bytes.p + start, n);
    s->bytes.n = start;
    tnf_buf_put(&s->bytes, s->raw.p, n);
    return tnf_buf_status(&s->bytes, "the words", e);
}

static tnf_status check_text(struct scan *s, size_t start, uint64_t at, tnf_error *e)
{
    if (s->bytes.n == start || /* the buffer may still be NULL */
        tnf_utf8_valid(NULL, (const char *)s->bytes.p + start, s->bytes.n - start))
        return TNF_OK;
    if (!s->warned)
        tnf_warn(s->f->r, at, "entry %llu of the dictionary is not UTF-8: %s",
                 (unsigned long long)s->i + 1,
                 s->lossy
                     ? "invalid bytes become U+FFFD, in this and all later entries"
                     : "the bytes are kept; the reader's option lossy=yes replaces invalid ones");
    s->warned = true;
    return s->lossy ? repair_text(s, start, e) : TNF_OK;
}

/* ------------------------------------------------------------------- entries */

static tnf_status take_entry(struct scan *s, struct list *l, uint64_t i, uint8_t type, tnf_error *e)
{
    size_t start = s->bytes.n;
    uint64_t at = scan_position(s);
    TNF_TRY(take_word(s, e));
    TNF_TRY(check_text(s, start, at, e));
    if (s->n - s->from < 9)
        TNF_TRY(refill_window(s, 9, e));
    const uint8_t *p = s->p + s->from;
    int64_t count = (int64_t)tnf_le64(p);
    if (count < 0)
        TNF_TRY(tnf_stricter(s->f->r, e, TNF_EFORMAT, scan_position(s),
                             "entry %llu of the dictionary has the count %lld, which must not be "
                             "negative",
                             (unsigned long long)s->i + 1, (long long)count));
    if (p[8] != type)
        return tnf_fail(e, TNF_EFORMAT, scan_position(s) + 8,
                        "entry %llu of the dictionary has the type %u, but must be a %s (%u)",
                        (unsigned long long)s->i + 1, p[8], type ? "label" : "word", type);
    memcpy(l->counts + 8 * i, p, 8);
    l->counted = l->counted || count != 0;
    l->offsets[i + 1] = s->bytes.n - l->first;
    s->from += 9;
    s->i++;
    return TNF_OK;
}

static tnf_status take_list(struct scan *s, struct list *l, uint8_t type, tnf_error *e)
{
    tnf_arena *arena = s->f->r->arena;
    l->offsets = tnf_arena_array(arena, l->n + 1, sizeof *l->offsets);
    l->counts = tnf_arena_array(arena, l->n + 1, 8);
    if (!l->offsets || !l->counts)
        return tnf_arena_fail(arena, "the dictionary", e);
    l->first = s->bytes.n;
    for (uint64_t i = 0; i < l->n; i++)
        TNF_TRY(take_entry(s, l, i, type, e));
    return TNF_OK;
}

/* ------------------------------------------------------------------- tensors */

static tnf_status add_list(struct scan *s, const struct list *l, uint64_t at, tnf_error *e)
{
    tnf_reader *r = s->f->r;
    uint64_t bytes = l->offsets[l->n];
    char *text = tnf_arena_raw(r->arena, bytes + 1);
    if (!text)
        return tnf_arena_fail(r->arena, "the words", e);
    if (bytes)
        memcpy(text, s->bytes.p + l->first, bytes);
    for (uint64_t i = 0; i <= l->n; i++) /* little-endian, as in a file */
        tnf_put_le64(&l->offsets[i], l->offsets[i]);
    tnf_part parts[] = { tnf_part_over("offsets", TNF_U64, l->offsets, 8 * (l->n + 1)),
                         tnf_part_over("bytes", TNF_U8, text, bytes) };
    tnf_object o = { .name = { l->name, strlen(l->name) },
                     .layout = tnf_layout_named("strings/1", 9),
                     .shape = &l->n,
                     .rank = 1,
                     .parts = parts,
                     .nparts = 2 };
    TNF_TRY(tnf_add_object(r, &o, at, e));
    if (!l->counted)
        return TNF_OK;
    tnf_part counts = tnf_part_over("data", TNF_I64, l->counts, 8 * l->n);
    tnf_object c = { .name = { l->counts_name, strlen(l->counts_name) },
                     .layout = &tnf_layout_dense,
                     .shape = &l->n,
                     .rank = 1,
                     .parts = &counts,
                     .nparts = 1 };
    return tnf_add_object(r, &c, at, e);
}

/* Each bucket that pruning kept has one of the rows after those of the words. */
static tnf_status check_pruned(ft_reading *f, tnf_error *e)
{
    size_t room = window_size(f) / 8 * 8;
    uint8_t *block = tnf_arena_raw(f->r->scratch, room);
    if (!block)
        return tnf_arena_fail(f->r->scratch, "the buckets that pruning kept", e);
    for (uint64_t at = 0, all = 8 * f->pruned; at < all;) {
        size_t n = all - at < room ? (size_t)(all - at) : room;
        TNF_TRY(tnf_source_read(f->r->source, f->at + at, block, n, e));
        for (size_t i = 0; i < n; i += 8) {
            uint32_t bucket = tnf_le32(block + i), row = tnf_le32(block + i + 4);
            if (bucket >= (uint32_t)f->args[FT_BUCKET] || row >= f->pruned)
                return tnf_fail(e, TNF_EFORMAT, f->at + at + i,
                                "bucket %u of %d has row %u, but pruning kept %llu rows", bucket,
                                f->args[FT_BUCKET], row, (unsigned long long)f->pruned);
        }
        at += n;
    }
    return TNF_OK;
}

static tnf_status read_pruned(ft_reading *f, tnf_error *e)
{
    uint64_t shape[] = { f->pruned, 2 }, left = f->r->source->size - f->at;
    if (!f->is_pruned)
        return TNF_OK;
    if (f->pruned > left / 8)
        return tnf_fail(e, TNF_ETRUNCATED, f->r->source->size,
                        "the file ends inside the %llu buckets that pruning kept",
                        (unsigned long long)f->pruned);
    TNF_TRY(check_pruned(f, e));
    tnf_dense d = { .name = { FT_PRUNEIDX, strlen(FT_PRUNEIDX) },
                    .type = tnf_type_of(TNF_I32),
                    .shape = shape,
                    .rank = 2,
                    .offset = f->at,
                    .length = 8 * f->pruned,
                    .at = f->at };
    f->at += 8 * f->pruned;
    return tnf_add_dense(f->r, &d, e);
}

/* ------------------------------------------------------------------------ all */

static tnf_status read_sizes(ft_reading *f, tnf_error *e)
{
    tnf_cur c;
    uint64_t at = f->at;
    TNF_TRY(tnf_read_range(f->r, "dictionary", at, FT_DICTIONARY, FT_DICTIONARY, &c, e));
    int32_t size = (int32_t)tnf_u32(&c), words = (int32_t)tnf_u32(&c);
    int32_t labels = (int32_t)tnf_u32(&c);
    int64_t tokens = (int64_t)tnf_u64(&c), pruned = (int64_t)tnf_u64(&c);
    f->at += FT_DICTIONARY;
    if (words < 0 || labels < 0 || (int64_t)words + labels != size)
        return tnf_fail(e, TNF_EFORMAT, at,
                        "the dictionary's numbers of entries, words and labels are %d, %d and %d; "
                        "none can be negative, and the first must be the sum of the others",
                        size, words, labels);
    if ((uint64_t)size > (f->r->source->size - f->at) / FT_ENTRY)
        return tnf_fail(e, TNF_ETRUNCATED, at,
                        "a dictionary of %d entries does not fit into the remaining %llu bytes",
                        size, (unsigned long long)(f->r->source->size - f->at));
    if (tokens < 0)
        TNF_TRY(tnf_stricter(
            f->r, e, TNF_EFORMAT, at + 12,
            "the dictionary says that the text had %lld tokens; the number must not be negative",
            (long long)tokens));
    if (pruned < -1)
        TNF_TRY(tnf_stricter(f->r, e, TNF_EFORMAT, at + 20,
                             "the dictionary says that pruning kept %lld buckets; the number must "
                             "be -1 (not pruned) or more",
                             (long long)pruned));
    f->words = (uint64_t)words;
    f->labels = (uint64_t)labels;
    f->is_pruned = pruned >= 0;
    f->pruned = pruned > 0 ? (uint64_t)pruned : 0;
    if (tokens == 0)
        return TNF_OK;
    return tnf_set_attr(f->r, FT_ATTR("tokens"), tnf_value_integer(tokens), e);
}

static tnf_status scan_all(struct scan *s, uint64_t at, tnf_error *e)
{
    ft_reading *f = s->f;
    struct list words = { .name = FT_VOCAB, .counts_name = FT_COUNTS, .n = f->words };
    struct list labels = { .name = FT_LABELS, .counts_name = FT_LABEL_COUNT, .n = f->labels };
    TNF_TRY(take_list(s, &words, 0, e));
    TNF_TRY(take_list(s, &labels, 1, e));
    f->at = scan_position(s);
    if (words.n) /* an empty list is left out */
        TNF_TRY(add_list(s, &words, at, e));
    return labels.n ? add_list(s, &labels, at, e) : TNF_OK;
}

tnf_status tnf_ft_read_dictionary(ft_reading *f, tnf_error *e)
{
    uint64_t at = f->at;
    TNF_TRY(read_sizes(f, e));
    struct scan s = { .f = f, .size = f->words + f->labels };
    s.lossy = f->r->options[FT_OPTION_LOSSY].u != 0;
    s.room = window_size(f);
    s.p = tnf_arena_raw(f->r->scratch, s.room);
    if (!s.p)
        return tnf_arena_fail(f->r->scratch, "the dictionary", e);
    tnf_buf_init(&s.bytes, &f->r->scratch->alloc, f->r->limits.memory);
    tnf_buf_init(&s.raw, &f->r->scratch->alloc, f->r->limits.memory);
    tnf_status status = scan_all(&s, at, e);
    tnf_buf_free(&s.bytes);
    tnf_buf_free(&s.raw);
    return status == TNF_OK ? read_pruned(f, e) : status;
}
