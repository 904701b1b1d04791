/* SPDX-License-Identifier: MIT */
/* N-grams of words, and their hashes.
 *
 *   "Test", 3 to 6:   <Test> <Test <Tes <Te   Test> Test Tes   est> est   st>
 *
 * Characters are code points. FNV-1a multiplies once per byte. The upper three bytes of a character
 * below 256 are zero, so its four multiplications become one by the fourth power of the prime.
 */
#include "ext/emb/subword.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/error.h"

#include <string.h>

#define ON_STACK 192u /* characters; longer words need allocated memory */

/* -------------------------------------------------------------- characters */

/* Decodes one character at p; returns its length. A byte without a valid sequence is U+FFFD. */
static size_t next_point(const uint8_t *p, size_t left, uint32_t *out)
{
    size_t n = tnf_utf8_next(out, (const char *)p, left);
    if (n == 0)
        *out = 0xfffd;
    return n ? n : 1;
}

/* The same by the rules of fastText. */
static size_t next_loose(const uint8_t *p, size_t left, uint32_t *out)
{
    size_t n = 1;
    while (n < left && (p[n] & 0xc0) == 0x80)
        n++;
    *out = p[0];
    return n;
}

/* A word in brackets, split into characters. */
typedef struct cut {
    char *bytes;
    uint32_t *points, *at; /* `at` also has the end */
    size_t count, size;    /* size of the allocation, if any */
    void *memory;
    char small_bytes[4 * ON_STACK];
    uint32_t small_points[ON_STACK], small_at[ON_STACK + 1];
} cut;

static tnf_status cut_room(cut *c, uint64_t n, const tnf_allocator *alloc, tnf_error *e)
{
    c->bytes = c->small_bytes;
    c->points = c->small_points;
    c->at = c->small_at;
    if (n <= ON_STACK)
        return TNF_OK;
    if (n > UINT32_MAX / 16)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "a word has %llu bytes with its brackets, but at most %u are supported",
                        (unsigned long long)n, UINT32_MAX / 16);
    c->size = (size_t)(n * (2 * sizeof(uint32_t) + 1) + sizeof(uint32_t));
    c->memory = tnf_alloc(alloc, c->size);
    if (!c->memory)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for a word of %llu bytes",
                        (unsigned long long)n);
    c->points = c->memory;
    c->at = c->points + n;
    c->bytes = (char *)(c->at + n + 1);
    return TNF_OK;
}

static void append_str(char **to, tnf_str s)
{
    if (s.n > 0)
        memcpy(*to, s.p, s.n);
    *to += s.n;
}

static tnf_status cut_word(cut *c, const tnf_ngram_rule *rule, tnf_str word,
                           const tnf_allocator *alloc, tnf_error *e)
{
    uint64_t n;
    c->memory = NULL;
    c->count = 0;
    if (!tnf_ckd_add(&n, word.n, rule->begin.n) || !tnf_ckd_add(&n, n, rule->end.n))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "a word is too long");
    TNF_TRY(cut_room(c, n, alloc, e));
    char *end = c->bytes;
    append_str(&end, rule->begin);
    append_str(&end, word);
    append_str(&end, rule->end);
    for (size_t i = 0; i < n; c->count++) {
        c->at[c->count] = (uint32_t)i;
        const uint8_t *p = (const uint8_t *)c->bytes + i;
        i += rule->fasttext ? next_loose(p, n - i, &c->points[c->count])
                            : next_point(p, n - i, &c->points[c->count]);
    }
    c->at[c->count] = (uint32_t)n;
    return TNF_OK;
}

/* ------------------------------------------------------------------ n-grams */

static tnf_status give_ngram(const cut *c, size_t from, size_t count, tnf_ngram_take take,
                             void *ctx, tnf_error *e)
{
    tnf_ngram g = { { c->bytes + c->at[from], c->at[from + count] - c->at[from] },
                    c->points + from,
                    count };
    return take(ctx, &g, e);
}

/* The number of n-grams; stops counting above the limit. */
static uint64_t count_ngrams(const cut *c, const tnf_ngram_rule *rule)
{
    uint64_t longest = rule->max_n < c->count ? rule->max_n : c->count, total;
    if (rule->min_n > longest)
        return 0;
    return tnf_ckd_mul(&total, c->count, longest - rule->min_n + 1) ? total : UINT64_MAX;
}

static tnf_status give_all(const cut *c, const tnf_ngram_rule *rule, tnf_ngram_take take, void *ctx,
                           tnf_error *e)
{
    if (count_ngrams(c, rule) > TNF_MAX_NGRAMS)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "a word of %zu characters has more than %llu n-grams of %u to %u", c->count,
                        (unsigned long long)TNF_MAX_NGRAMS, rule->min_n, rule->max_n);
    if (rule->whole)
        TNF_TRY(give_ngram(c, 0, c->count, take, ctx, e));
    for (size_t from = 0; from < c->count; from++) {
        size_t left = c->count - from, n = left < rule->max_n ? left : rule->max_n;
        bool edge = from == 0 || left == 1;
        size_t least = rule->fasttext && edge && rule->min_n < 2 ? 2 : rule->min_n;
        for (; n >= least && n > 0; n--)
            TNF_TRY(give_ngram(c, from, n, take, ctx, e));
    }
    return TNF_OK;
}

tnf_status tnf_ngrams_each(const tnf_ngram_rule *rule, tnf_str word, const tnf_allocator *alloc,
                           tnf_ngram_take take, void *ctx, tnf_error *e)
{
    cut c;
    if (rule->never.n > 0 && word.n == rule->never.n && memcmp(word.p, rule->never.p, word.n) == 0)
        return TNF_OK;
    TNF_TRY(cut_word(&c, rule, word, alloc, e));
    tnf_status status = give_all(&c, rule, take, ctx, e);
    if (c.memory)
        tnf_free(alloc, c.memory, c.size);
    return status;
}

/* ------------------------------------------------------------------- hashes */

#define FNV64_BASIS  0xcbf29ce484222325u
#define FNV64_PRIME  0x100000001b3u
/* Powers of the prime, modulo 2^64. */
#define FNV64_PRIME2 (FNV64_PRIME * FNV64_PRIME)
#define FNV64_PRIME4 (FNV64_PRIME2 * FNV64_PRIME2)

static uint64_t fnv64_bytes(uint64_t h, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        h = (h ^ (number >> 8 * i & 0xff)) * FNV64_PRIME;
    return h;
}

uint64_t tnf_ngram_hash_points(const uint32_t *points, size_t count)
{
    uint64_t h = count < 256 ? (FNV64_BASIS ^ count) * (FNV64_PRIME4 * FNV64_PRIME4)
                             : fnv64_bytes(FNV64_BASIS, count, 8);
    for (size_t i = 0; i < count; i++)
        h = points[i] < 256 ? (h ^ points[i]) * FNV64_PRIME4 : fnv64_bytes(h, points[i], 4);
    return h;
}

uint32_t tnf_ngram_hash_fasttext(const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) {
        uint32_t extended = p[i] < 0x80 ? p[i] : 0xffffff00u | p[i];
        h = (h ^ extended) * 16777619u;
    }
    return h;
}

static uint64_t rotate_left(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static uint64_t murmur_mix(uint64_t k)
{
    k = (k ^ k >> 33) * 0xff51afd7ed558ccdu;
    k = (k ^ k >> 33) * 0xc4ceb9fe1a85ec53u;
    return k ^ k >> 33;
}

#define MURMUR_C1 0x87c37b91114253d5u
#define MURMUR_C2 0x4cf5ad432745937fu

/* Up to eight bytes, little-endian. */
static uint64_t load_some(const uint8_t *p, size_t n)
{
    uint64_t u = 0;
    for (size_t i = n; i-- > 0;)
        u = u << 8 | p[i];
    return u;
}

void tnf_ngram_hash_murmur3(uint64_t out[2], const void *bytes, size_t n, uint32_t seed)
{
    const uint8_t *p = bytes;
    uint64_t a = seed, b = seed;
    size_t left = n;
    for (; left >= 16; p += 16, left -= 16) {
        a ^= rotate_left(tnf_le64(p) * MURMUR_C1, 31) * MURMUR_C2;
        a = (rotate_left(a, 27) + b) * 5 + 0x52dce729;
        b ^= rotate_left(tnf_le64(p + 8) * MURMUR_C2, 33) * MURMUR_C1;
        b = (rotate_left(b, 31) + a) * 5 + 0x38495ab5;
    }
    if (left > 8)
        b ^= rotate_left(load_some(p + 8, left - 8) * MURMUR_C2, 33) * MURMUR_C1;
    if (left > 0)
        a ^= rotate_left(load_some(p, left < 8 ? left : 8) * MURMUR_C1, 31) * MURMUR_C2;
    a ^= n;
    b ^= n;
    a += b;
    b += a;
    a = murmur_mix(a);
    b = murmur_mix(b);
    out[0] = a + b;
    out[1] = b + out[0];
}
