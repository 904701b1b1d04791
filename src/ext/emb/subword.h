/* SPDX-License-Identifier: MIT */
/* N-grams of words, and the hashes that map them to rows. */
#ifndef TNF_EXT_EMB_SUBWORD_H
#define TNF_EXT_EMB_SUBWORD_H

#include "base/alloc.h"

#define TNF_MAX_NGRAMS ((uint64_t)1 << 22) /* per word; more would be an attack */
#define TNF_MAX_HASHES 4u

/* The rule for n-grams. */
typedef struct tnf_ngram_rule {
    uint32_t min_n, max_n; /* in characters */
    bool whole;            /* the complete word is another n-gram, the first one */
    tnf_str begin, end;    /* the brackets around a word */
    /* The rules of fastText: a character is a byte and all following bytes 10xxxxxx; a single
     * bracket is not an n-gram. */
    bool fasttext;
    tnf_str never; /* this word has no n-grams; empty: no such word */
} tnf_ngram_rule;

typedef struct tnf_ngram {
    tnf_str bytes;
    const uint32_t *points; /* its characters; each byte that is not UTF-8 is U+FFFD */
    size_t count;
} tnf_ngram;

typedef tnf_status (*tnf_ngram_take)(void *ctx, const tnf_ngram *ngram, tnf_error *e);

/* Calls `take` for the n-grams of a word: from each character on, the longest first. */
tnf_status tnf_ngrams_each(const tnf_ngram_rule *rule, tnf_str word, const tnf_allocator *alloc,
                           tnf_ngram_take take, void *ctx, tnf_error *e);

/* finalfusion: 64-bit FNV-1a of the number of characters (8 bytes) and each character (4 bytes). */
uint64_t tnf_ngram_hash_points(const uint32_t *points, size_t count);
/* fastText: 32-bit FNV-1a; bytes are signed, as in the original. */
uint32_t tnf_ngram_hash_fasttext(const void *bytes, size_t n);
/* floret: MurmurHash3, the 128-bit variant for 64-bit machines. */
void tnf_ngram_hash_murmur3(uint64_t out[2], const void *bytes, size_t n, uint32_t seed);

#endif
