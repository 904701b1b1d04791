/* SPDX-License-Identifier: MIT */
/* N-grams of words, and the hashes that turn them into numbers of rows. */
#ifndef TNF_EXT_EMB_SUBWORD_H
#define TNF_EXT_EMB_SUBWORD_H

#include "base/alloc.h"

#define TNF_MAX_NGRAMS ((uint64_t)1 << 22) /* of one word: more is an attack */
#define TNF_MAX_HASHES 4u

/* What n-grams are taken. */
typedef struct tnf_ngram_rule {
    uint32_t min_n, max_n; /* in characters */
    bool whole;            /* the whole word comes first, as one more */
    tnf_str begin, end;    /* the brackets that are put around a word */
    /* As fastText does: a character is a byte and all after it that are 10xxxxxx; a lone bracket
     * is no n-gram. */
    bool fasttext;
    tnf_str never; /* this word has none; nothing for an empty one */
} tnf_ngram_rule;

typedef struct tnf_ngram {
    tnf_str bytes;
    const uint32_t *points; /* its characters; what is no UTF-8 is U+FFFD, a byte each */
    size_t count;
} tnf_ngram;

typedef tnf_status (*tnf_ngram_take)(void *ctx, const tnf_ngram *ngram, tnf_error *e);

/* The n-grams of a word: from each character on, the longest first. */
tnf_status tnf_ngrams_each(const tnf_ngram_rule *rule, tnf_str word, const tnf_allocator *alloc,
                           tnf_ngram_take take, void *ctx, tnf_error *e);

/* finalfusion: FNV-1a of 64 bits over the number of characters (8 bytes) and each of them (4). */
uint64_t tnf_hash_points(const uint32_t *points, size_t count);
/* fastText: FNV-1a of 32 bits over bytes that are taken as signed, as the original does. */
uint32_t tnf_hash_fasttext(const void *bytes, size_t n);
/* floret: MurmurHash3, the variant of 128 bits for 64-bit machines. */
void tnf_hash_murmur3(uint64_t out[2], const void *bytes, size_t n, uint32_t seed);

#endif
