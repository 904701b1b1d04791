/* SPDX-License-Identifier: MIT */
/* The vocabulary chunks.
 *
 *   simple (1)              u64 words │ words
 *   bucket (3)              u64 words  u32 min_n  u32 max_n  u32 exponent │ words
 *     in the document       u32 min_n  u32 max_n  u32 exponent  u64 words │ words
 *   fastText (7)            u64 words  u32 min_n  u32 max_n  u32 buckets │ words
 *   explicit (8)            u64 words  u64 n-grams  u32 min_n  u32 max_n │ words │ n-grams
 *   floret (9)              u32 min_n  u32 max_n  u64 buckets  u32 hashes  u32 seed
 *                           │ u32 length, begin of word │ u32 length, end of word
 *
 *   word    u32 length, UTF-8                    row i of the matrix belongs to word i
 *   n-gram  u32 length, UTF-8, u64 index         rows of n-grams come after those of words
 *
 * The Python tool does not count the indices in the length of an explicit vocabulary: such a chunk
 * is 8 bytes per n-gram longer than its length says.
 */
#include "formats/finalfusion/ff.h"

#include <string.h>

const char *const tnf_ff_vocab_names[FF_LAST + 1] = {
    [FF_SIMPLE] = "simple",     [FF_BUCKET] = "bucket", [FF_FASTTEXT] = "fasttext",
    [FF_EXPLICIT] = "explicit", [FF_FLORET] = "floret",
};

struct fields {
    uint64_t words, ngrams, buckets;
    uint32_t min_n, max_n, hashes, seed;
};

static tnf_status check_lengths(ff_reading *f, const struct fields *v, uint64_t at, tnf_error *e)
{
    if (v->min_n >= 1 && v->min_n <= v->max_n)
        return TNF_OK;
    return tnf_stricter(f->r, e, TNF_EFORMAT, at,
                        "n-grams have %u to %u characters, which is not a valid range", v->min_n,
                        v->max_n);
}

static tnf_status set_lengths(ff_reading *f, const struct fields *v, tnf_error *e)
{
    TNF_TRY(tnf_ff_set_uint(f, FF_ATTR("min_n"), v->min_n, e));
    TNF_TRY(tnf_ff_set_uint(f, FF_ATTR("max_n"), v->max_n, e));
    return tnf_ff_set_uint(f, FF_ATTR("buckets"), v->buckets, e);
}

/* The number of buckets: 2 to the power of `number`, or `number` itself. */
static tnf_status count_buckets(ff_reading *f, struct fields *v, uint32_t number, bool power,
                                uint64_t at, tnf_error *e)
{
    if (power && number > FF_MAX_EXPONENT)
        return tnf_fail(e, TNF_EFORMAT, at, "2^%u buckets are too many", number);
    if (power && number == 0)
        tnf_warn(f->r, at, "there is a single bucket, which finalfusion's Python tool refuses");
    if (!power && number == 0)
        return tnf_fail(e, TNF_EFORMAT, at,
                        "a fastText vocabulary has no buckets; it must have at least one");
    v->buckets = power ? (uint64_t)1 << number : number;
    return check_lengths(f, v, at - 8, e);
}

/* Reads words at *at and moves *at to their end. */
static tnf_status read_words(ff_reading *f, ff_frame *c, uint64_t words, uint64_t *at,
                             uint64_t bound, tnf_error *e)
{
    ff_list *l = tnf_ff_list(f, FF_WORDS);
    *l = (ff_list) { .at = *at, .count = words };
    if (words > (bound - *at) / 4)
        return tnf_fail(e, TNF_EFORMAT, c->body,
                        "%llu words do not fit into the remaining %llu bytes",
                        (unsigned long long)words, (unsigned long long)(bound - *at));
    TNF_TRY(tnf_ff_list_scan(f, l, bound, "word", NULL, NULL, e));
    *at += l->bytes;
    f->words = words;
    return tnf_ff_list_add(f, FF_WORDS, FF_VOCAB, c->at, e);
}

/* Fails unless the chunk ends where its length says. finalfusion's tools do not check this. */
static tnf_status check_end(ff_reading *f, ff_frame *c, uint64_t at, tnf_error *e)
{
    if (at != c->end)
        TNF_TRY(
            tnf_stricter(f->r, e, TNF_EFORMAT, c->at + 4,
                         "the vocabulary has a length of %llu bytes, but its contents have %llu",
                         (unsigned long long)c->length, (unsigned long long)(at - c->body)));
    c->end = at;
    return TNF_OK;
}

/* How far words may extend. Readers that ignore the length read up to the end of the file. */
static uint64_t bound_of(const ff_reading *f, const ff_frame *c)
{
    return f->r->lenient ? f->r->source->size : c->end;
}

/* --------------------------------------------------------------- by kind */

static tnf_status read_simple(ff_reading *f, ff_frame *c, tnf_error *e)
{
    tnf_cur cur;
    TNF_TRY(tnf_ff_read_fields(f, c, 8, "vocabulary", &cur, e));
    uint64_t at = c->body + 8;
    TNF_TRY(read_words(f, c, tnf_u64(&cur), &at, bound_of(f, c), e));
    return check_end(f, c, at, e);
}

static tnf_status read_buckets(ff_reading *f, ff_frame *c, tnf_error *e)
{
    bool seed = f->dialect == FF_SEED && c->id == FF_BUCKET;
    struct fields v = { 0 };
    tnf_cur cur;
    TNF_TRY(tnf_ff_read_fields(f, c, 20, "vocabulary", &cur, e));
    if (!seed)
        v.words = tnf_u64(&cur);
    v.min_n = tnf_u32(&cur);
    v.max_n = tnf_u32(&cur);
    uint64_t at = tnf_where(&cur);
    uint32_t number = tnf_u32(&cur);
    if (seed)
        v.words = tnf_u64(&cur);
    TNF_TRY(count_buckets(f, &v, number, c->id == FF_BUCKET, at, e));
    TNF_TRY(set_lengths(f, &v, e));
    at = c->body + 20;
    TNF_TRY(read_words(f, c, v.words, &at, bound_of(f, c), e));
    f->subwords = v.buckets;
    return check_end(f, c, at, e);
}

static tnf_status read_explicit(ff_reading *f, ff_frame *c, tnf_error *e)
{
    struct fields v = { 0 };
    uint64_t size = f->r->source->size, at = c->body + 24;
    tnf_cur cur;
    TNF_TRY(tnf_ff_read_fields(f, c, 24, "vocabulary", &cur, e));
    v.words = tnf_u64(&cur);
    v.ngrams = tnf_u64(&cur);
    v.min_n = tnf_u32(&cur);
    v.max_n = tnf_u32(&cur);
    TNF_TRY(check_lengths(f, &v, c->body + 16, e));
    TNF_TRY(read_words(f, c, v.words, &at, bound_of(f, c), e));
    *tnf_ff_list(f, FF_GRAMS) = (ff_list) { .at = at, .count = v.ngrams, .suffix = 8 };
    TNF_TRY(tnf_ff_read_ngrams(f, c, size, &v.buckets, e));
    TNF_TRY(set_lengths(f, &v, e));
    f->subwords = v.buckets;
    at += tnf_ff_list(f, FF_GRAMS)->bytes;
    if (v.ngrams && at > c->end && at - c->end == 8 * v.ngrams) {
        tnf_warn(f->r, c->at + 4,
                 "the vocabulary has a length of %llu bytes, 8 per n-gram too few, as "
                 "finalfusion's Python tool writes it",
                 (unsigned long long)c->length);
        c->end = at;
    }
    return check_end(f, c, at, e);
}

/* Reads a marker into the arena. */
static tnf_status read_marker(ff_reading *f, tnf_cur *cur, const char *key, tnf_error *e)
{
    uint64_t at = tnf_where(cur);
    uint32_t n = tnf_u32(cur);
    const char *p = tnf_bytes(cur, n);
    if (!p)
        return tnf_fail(e, TNF_EFORMAT, at, "a marker of %u bytes runs past the vocabulary", n);
    tnf_value value;
    if (!tnf_utf8_valid(NULL, p, n))
        TNF_TRY(tnf_stricter(f->r, e, TNF_EFORMAT, at + 4, "the marker of a word's %s is not UTF-8",
                             strcmp(key, FF_ATTR("bow")) == 0 ? "beginning" : "end"));
    TNF_TRY(tnf_text_value(f->r, &value, (tnf_str) { p, n }, e));
    return tnf_ff_set(f, key, value, e);
}

static tnf_status read_floret(ff_reading *f, ff_frame *c, tnf_error *e)
{
    struct fields v = { 0 };
    tnf_cur cur;
    /* 32: with the lengths of both markers */
    TNF_TRY(tnf_ff_read_fields(f, c, 32, "vocabulary", &cur, e));
    TNF_TRY(tnf_read_range(f->r, "vocabulary", c->body, c->length, c->length, &cur, e));
    v.min_n = tnf_u32(&cur);
    v.max_n = tnf_u32(&cur);
    v.buckets = tnf_u64(&cur);
    v.hashes = tnf_u32(&cur);
    v.seed = tnf_u32(&cur);
    TNF_TRY(check_lengths(f, &v, c->body, e));
    if (v.buckets == 0)
        return tnf_fail(e, TNF_EFORMAT, c->body + 8,
                        "a floret vocabulary has no buckets; it must have at least one");
    if (v.hashes < 1 || v.hashes > 4)
        return tnf_fail(e, TNF_EFORMAT, c->body + 16,
                        "there are %u hashes per word; the number must be 1 to 4", v.hashes);
    TNF_TRY(set_lengths(f, &v, e));
    TNF_TRY(tnf_ff_set_uint(f, FF_ATTR("hashes"), v.hashes, e));
    TNF_TRY(tnf_ff_set_uint(f, FF_ATTR("seed"), v.seed, e));
    TNF_TRY(read_marker(f, &cur, FF_ATTR("bow"), e));
    TNF_TRY(read_marker(f, &cur, FF_ATTR("eow"), e));
    f->subwords = v.buckets;
    return check_end(f, c, tnf_where(&cur), e);
}

tnf_status tnf_ff_read_vocab(ff_reading *f, ff_frame *c, tnf_error *e)
{
    uint32_t id = c->id == FF_SEED_SIMPLE ? FF_SIMPLE : c->id;
    tnf_status (*read)(ff_reading *, ff_frame *, tnf_error *) = id == FF_SIMPLE     ? read_simple
                                                                : id == FF_EXPLICIT ? read_explicit
                                                                : id == FF_FLORET   ? read_floret
                                                                                    : read_buckets;
    const char *name = tnf_ff_vocab_names[id];
    bool later = f->group > 1;
    f->words = f->subwords = 0;
    TNF_TRY(tnf_ff_list_new(f, e));
    if (!later || id != FF_SIMPLE) /* the words of a later group say that it is simple */
        TNF_TRY(tnf_ff_set(f, FF_ATTR("vocab"), tnf_value_str(TNF_STRING, name, strlen(name)), e));
    TNF_TRY(read(f, c, e));
    f->words_known = true;
    f->vocab = c->id;
    return later ? TNF_OK : tnf_ff_set_uint(f, FF_ATTR("words"), f->words, e);
}
