/* SPDX-License-Identifier: MIT */
/* A list of strings where it lies in the file, and a table to find them in it. */
#ifndef TNF_EMB_WORDS_H
#define TNF_EMB_WORDS_H

#include "base/alloc.h"

#define TNF_NO_WORD UINT32_MAX

typedef struct tnf_words {
    tnf_strings s;
    tnf_allocator alloc;
    void *owned[2]; /* offsets and bytes, where they could not be lent */
    size_t owned_size[2];
    uint32_t *places; /* interleaved: where each begins, counted from its mark */
    size_t places_size;
    struct tnf_words_slot *slots; /* NULL: not indexed */
    uint64_t capacity;
    uint64_t seed[2];
    uint64_t duplicates, first_duplicate;
} tnf_words;

/* Takes the strings of a tensor; at most `memory` bytes are spent on that. They must be freed, also
 * after a failure. */
tnf_status tnf_words_open(tnf_words *w, const tnf_object *object, const tnf_allocator *alloc,
                          uint64_t memory, tnf_error *e);
/* Makes them findable. */
tnf_status tnf_words_index(tnf_words *w, unsigned threads, uint64_t memory, tnf_error *e);
void tnf_words_free(tnf_words *w);

/* i must be below s.count. */
tnf_str tnf_words_at(const tnf_words *w, uint64_t i);
/* What stands behind an interleaved string: s.suffix bytes. */
const uint8_t *tnf_words_suffix(const tnf_words *w, uint64_t i);
/* The first such string, or TNF_NO_WORD. */
uint32_t tnf_words_find(const tnf_words *w, tnf_str word);

#endif
