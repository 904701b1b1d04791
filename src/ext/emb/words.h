/* SPDX-License-Identifier: MIT */
/* The strings of a tensor, read into memory, and a table to find them. */
#ifndef TNF_EXT_EMB_WORDS_H
#define TNF_EXT_EMB_WORDS_H

#include "base/alloc.h"
#include <tenfold/tenfold.h>

#define TNF_NO_WORD UINT32_MAX

typedef struct tnf_words {
    tnf_strings s;
    tnf_allocator alloc;
    void *owned[2]; /* offsets and bytes */
    size_t owned_size[2];
    struct tnf_words_slot *slots; /* NULL: not indexed */
    uint64_t capacity;
    uint64_t seed[2];
    uint64_t duplicates, first_duplicate;
} tnf_words;

/* Reads the strings of a tensor, with at most `memory` bytes. The caller frees them even after an
 * error. */
tnf_status tnf_words_open(tnf_words *w, const tnf_object *object, const tnf_allocator *alloc,
                          uint64_t memory, tnf_error *e);
/* Makes the table for tnf_words_find(). */
tnf_status tnf_words_index(tnf_words *w, unsigned threads, uint64_t memory, tnf_error *e);
void tnf_words_free(tnf_words *w);

/* i must be below s.count. */
tnf_str tnf_words_at(const tnf_words *w, uint64_t i);
/* The first row with this string, or TNF_NO_WORD. */
uint32_t tnf_words_find(const tnf_words *w, tnf_str word);

#endif
