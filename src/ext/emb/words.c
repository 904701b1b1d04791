/* SPDX-License-Identifier: MIT */
/* The strings of a file in memory, and a table to find them.
 *
 *   slots    [fingerprint|row] [        ] [fingerprint|row] …      8 bytes, three of four in use
 *   offsets  [u64] [u64] …                                         beginning of each string
 *
 * Together these take less than 19 bytes per word, in addition to its own bytes. Several threads
 * fill the table at once: a slot is taken by compare-and-swap, and a thread that loses checks that
 * slot again, so no string gets two slots. For equal strings the first row is kept, independent of
 * the order of insertion. The hash is keyed, since words come from untrusted files.
 */
#include "ext/emb/words.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/pool.h"

#include <stdatomic.h>
#include <string.h>

#define TASK      16384u      /* strings per task */
#define MAX_WORDS 0xb0000000u /* rows have 32 bits, and there are a third more slots than words */
#define FREE      UINT64_MAX
#define AHEAD     32u /* slots are prefetched this far ahead */

struct tnf_words_slot {
    _Atomic uint64_t value;
};

/* ------------------------------------------------------------------ strings */

tnf_str tnf_words_at(const tnf_words *w, uint64_t i)
{
    const tnf_strings *s = &w->s;
    uint64_t from = tnf_le64(&s->offsets[i]), to = tnf_le64(&s->offsets[i + 1]);
    if (from > to || to > s->bytes)
        return (tnf_str) { "", 0 };
    return (tnf_str) { (const char *)s->base + from, (size_t)(to - from) };
}

/* ------------------------------------------------------------------- reading */

static tnf_status read_part(tnf_words *w, unsigned which, const tnf_part *part, uint64_t *memory,
                            tnf_error *e)
{
    size_t n;
    uint8_t none;
    TNF_TRY(tnf_read_part(&none, 0, part, 0, e)); /* fails before memory is allocated */
    if (part->nbytes > *memory || !tnf_to_size(&n, part->nbytes))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the vocabulary needs %llu bytes of memory, but only %llu are left; raise "
                        "the limit 'memory' if you trust the file",
                        (unsigned long long)part->nbytes, (unsigned long long)*memory);
    *memory -= n;
    w->owned[which] = tnf_alloc(&w->alloc, n ? n : 1);
    w->owned_size[which] = n ? n : 1;
    if (!w->owned[which])
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %zu bytes of words", n);
    return tnf_read_part(w->owned[which], n, part, 0, e);
}

static tnf_status check_offsets(const tnf_strings *s, tnf_error *e)
{
    uint64_t before = 0;
    for (uint64_t i = 0; i <= s->count; i++) {
        uint64_t offset = tnf_le64(&s->offsets[i]);
        if (offset < before || offset > s->bytes)
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                            "the offsets of string %llu are out of range", (unsigned long long)i);
        before = offset;
    }
    return TNF_OK;
}

/* Strings are copied, so that a lookup cannot touch the mapping of a truncated file. */
static tnf_status read_strings(tnf_words *w, const tnf_object *object, uint64_t memory,
                               tnf_error *e)
{
    const tnf_part *offsets = tnf_object_part(object, "offsets");
    const tnf_part *bytes = tnf_object_part(object, "bytes");
    if (!offsets || !bytes || offsets->type != tnf_type_of(TNF_U64) || offsets->nbytes < 8)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "%s lacks offsets or bytes of strings",
                        TNF_QUOTED(object->name));
    TNF_TRY(read_part(w, 0, offsets, &memory, e));
    TNF_TRY(read_part(w, 1, bytes, &memory, e));
    w->s = (tnf_strings) { .base = w->owned[1],
                           .count = offsets->nbytes / 8 - 1,
                           .bytes = bytes->nbytes,
                           .offsets = w->owned[0] };
    return check_offsets(&w->s, e);
}

tnf_status tnf_words_open(tnf_words *w, const tnf_object *object, const tnf_allocator *alloc,
                          uint64_t memory, tnf_error *e)
{
    *w = (tnf_words) { .alloc = *alloc };
    tnf_status status = read_strings(w, object, memory, e);
    if (status == TNF_OK && w->s.count > MAX_WORDS)
        status = tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                          "%s has %llu strings, but at most %u are supported",
                          TNF_QUOTED(object->name), (unsigned long long)w->s.count, MAX_WORDS);
    return status;
}

void tnf_words_free(tnf_words *w)
{
    for (int i = 0; i < 2; i++)
        tnf_free(&w->alloc, w->owned[i], w->owned_size[i]);
    tnf_free(&w->alloc, w->slots, (size_t)w->capacity * sizeof *w->slots);
    *w = (tnf_words) { .alloc = w->alloc };
}

/* ------------------------------------------------------------------ indexing */

/* The preferred slot of a hash: its upper half, scaled. The lower half is the fingerprint. */
static uint64_t home_slot(const tnf_words *w, uint64_t hash)
{
    return (hash >> 32) * w->capacity >> 32;
}

static bool same_word(tnf_str a, tnf_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

struct indexing {
    tnf_words *w;
    _Atomic uint64_t duplicates, first_duplicate;
};

static void note_duplicate(struct indexing *x, uint64_t row)
{
    atomic_fetch_add_explicit(&x->duplicates, 1, memory_order_relaxed);
    uint64_t first = atomic_load_explicit(&x->first_duplicate, memory_order_relaxed);
    while (row < first &&
           !atomic_compare_exchange_weak_explicit(&x->first_duplicate, &first, row,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

/* Inserts a row. If two strings are equal, the one with the larger row is the duplicate. */
static void insert_row(struct indexing *x, uint64_t hash, uint32_t row)
{
    tnf_words *w = x->w;
    uint64_t mine = hash << 32 | row, at = home_slot(w, hash);
    tnf_str word = tnf_words_at(w, row);
    for (;;) {
        _Atomic uint64_t *slot = &w->slots[at].value;
        uint64_t there = atomic_load_explicit(slot, memory_order_relaxed);
        if (there == FREE) {
            if (atomic_compare_exchange_strong_explicit(slot, &there, mine, memory_order_relaxed,
                                                        memory_order_relaxed))
                return;
        }
        if (there >> 32 != (mine >> 32) || !same_word(word, tnf_words_at(w, (uint32_t)there))) {
            at = at + 1 == w->capacity ? 0 : at + 1;
            continue;
        }
        while ((uint32_t)there > row &&
               !atomic_compare_exchange_weak_explicit(slot, &there, mine, memory_order_relaxed,
                                                      memory_order_relaxed))
            ;
        note_duplicate(x, (uint32_t)there > row ? (uint32_t)there : row);
        return;
    }
}

/* The table is larger than the CPU's caches, so slots are prefetched some words ahead. */
static tnf_status insert_task(void *ctx, size_t task, tnf_error *e)
{
    struct indexing *x = ctx;
    tnf_words *w = x->w;
    uint64_t from = (uint64_t)task * TASK, hashes[AHEAD];
    uint64_t to = w->s.count - from < TASK ? w->s.count : from + TASK;
    (void)e;
    for (uint64_t i = from; i < to + AHEAD; i++) {
        if (i >= from + AHEAD)
            insert_row(x, hashes[i % AHEAD], (uint32_t)(i - AHEAD));
        if (i < to) {
            tnf_str word = tnf_words_at(w, i);
            hashes[i % AHEAD] = tnf_hash_bytes(w->seed, word.p, word.n);
            __builtin_prefetch(&w->slots[home_slot(w, hashes[i % AHEAD])], 1);
        }
    }
    return TNF_OK;
}

static tnf_status index_room(tnf_words *w, uint64_t memory, tnf_error *e)
{
    uint64_t count = w->s.count;
    uint64_t capacity = count + count / 3 + 2; /* count is below 2^32, so nothing overflows */
    uint64_t slots = capacity * sizeof *w->slots;
    size_t size;
    if (slots > memory || !tnf_to_size(&size, slots))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the table of strings needs %llu bytes of memory, but only %llu are left; "
                        "raise the limit 'memory' if you trust the file",
                        (unsigned long long)slots, (unsigned long long)memory);
    w->slots = tnf_alloc(&w->alloc, size);
    w->capacity = w->slots ? capacity : 0;
    if (!w->slots)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for a table of %llu words",
                        (unsigned long long)count);
    memset((void *)w->slots, 0xff, size);
    tnf_hash_seed(w->seed);
    return TNF_OK;
}

tnf_status tnf_words_index(tnf_words *w, unsigned threads, uint64_t memory, tnf_error *e)
{
    struct indexing x = { .w = w };
    size_t tasks = (size_t)((w->s.count + TASK - 1) / TASK);
    TNF_TRY(index_room(w, memory, e));
    atomic_store(&x.duplicates, 0);
    atomic_store(&x.first_duplicate, UINT64_MAX);
    TNF_TRY(tnf_pool_run(threads, tasks, insert_task, &x, e));
    w->duplicates = atomic_load(&x.duplicates);
    w->first_duplicate = w->duplicates ? atomic_load(&x.first_duplicate) : 0;
    return TNF_OK;
}

uint32_t tnf_words_find(const tnf_words *w, tnf_str word)
{
    if (!w->slots)
        return TNF_NO_WORD;
    uint64_t hash = tnf_hash_bytes(w->seed, word.p, word.n), at = home_slot(w, hash);
    for (;;) {
        uint64_t there = atomic_load_explicit(&w->slots[at].value, memory_order_relaxed);
        if (there == FREE)
            return TNF_NO_WORD;
        if (there >> 32 == (hash & UINT32_MAX) && same_word(word, tnf_words_at(w, (uint32_t)there)))
            return (uint32_t)there;
        at = at + 1 == w->capacity ? 0 : at + 1;
    }
}
