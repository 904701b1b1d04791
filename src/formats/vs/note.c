/* SPDX-License-Identifier: MIT */
/* Writes and finds the note of a deletion. */
#include "formats/vs/note.h"

#include "base/digest.h"
#include "base/error.h"
#include "base/rising.h"

#include <stdlib.h>
#include <string.h>

static const char magic[8] = { 'V', 'S', 'd', 'e', 'l', 'e', 't', 'e' };

/* The check over the place of '$', the offsets, and `tail`: their number and the flags. */
static tnf_status check_of(uint64_t end, const void *offsets, size_t n, const uint8_t *tail,
                           uint64_t *out, tnf_error *e)
{
    tnf_digester d;
    uint8_t place[8], hash[TNF_DIGEST_MAX];
    if (!tnf_digest_begin(&d, "xxh3-64"))
        return tnf_no_memory("a digest", e);
    tnf_put_le64(place, end);
    tnf_digest_update(&d, place, sizeof place);
    tnf_digest_update(&d, offsets, n);
    tnf_digest_update(&d, tail, 16);
    tnf_digest_end(&d, hash);
    *out = tnf_be64(hash);
    return TNF_OK;
}

tnf_status tnf_vs_note_put(tnf_buf *b, uint64_t end, const uint64_t *offsets, size_t n,
                           uint64_t flags, tnf_error *e)
{
    uint64_t check = 0;
    for (size_t i = 0; i < n; i++)
        tnf_buf_u64(b, offsets[i]);
    tnf_buf_u64(b, n);
    tnf_buf_u64(b, flags);
    TNF_TRY(tnf_buf_status(b, "the list of deleted points", e));
    TNF_TRY(check_of(end, b->p, b->n - 16, b->p + b->n - 16, &check, e));
    tnf_buf_u64(b, check);
    tnf_buf_put(b, magic, sizeof magic);
    return tnf_buf_status(b, "the list of deleted points", e);
}

void tnf_vs_note_forget(tnf_vs_chain *c)
{
    tnf_free(&c->alloc, c->note.offsets, c->note.n * sizeof *c->note.offsets);
    c->note = (tnf_vs_note) { .n = 0 };
}

/* Converts the list to numbers in place. False: not in ascending order, or outside the blocks. */
static bool take_offsets(uint64_t *offsets, size_t n, uint64_t end)
{
    for (size_t i = 0; i < n; i++) {
        offsets[i] = tnf_le64(&offsets[i]);
        if (offsets[i] < (i ? offsets[i - 1] + 1 : TNF_VS_HEADER) || offsets[i] >= end)
            return false;
    }
    return true;
}

/* Is the note with this tail complete? Fills its list. */
static tnf_status examine_note(tnf_vs_chain *c, const tnf_vs_note *note, const uint8_t *tail,
                               bool *whole, tnf_error *e)
{
    uint8_t terminal = 0;
    uint64_t check = 0;
    size_t n = note->n * sizeof *note->offsets;
    TNF_TRY(c->fetch(c->ctx, note->end, &terminal, 1, e));
    TNF_TRY(c->fetch(c->ctx, note->end + 1, note->offsets, n, e));
    TNF_TRY(check_of(note->end, note->offsets, n, tail, &check, e));
    *whole = terminal == TNF_VS_END && check == tnf_le64(tail + 16) &&
             take_offsets(note->offsets, note->n, note->end);
    return TNF_OK;
}

tnf_status tnf_vs_note_read(tnf_vs_chain *c, uint64_t most, tnf_error *e)
{
    uint8_t tail[TNF_VS_NOTE];
    bool whole = false;
    tnf_vs_note_forget(c);
    if (c->size < TNF_VS_HEADER + 1 + sizeof tail)
        return TNF_OK;
    TNF_TRY(c->fetch(c->ctx, c->size - sizeof tail, tail, sizeof tail, e));
    uint64_t n = tnf_le64(tail), room = (c->size - sizeof tail - TNF_VS_HEADER - 1) / 8;
    if (memcmp(tail + 24, magic, sizeof magic) != 0 || n == 0 || n > room)
        return TNF_OK;
    if (n > most / 8 || n > SIZE_MAX / 8)
        return tnf_fail(e, TNF_ELIMIT, c->size - sizeof tail,
                        "a list of %llu deleted points is too long", (unsigned long long)n);
    c->note = (tnf_vs_note) { .n = (size_t)n, .flags = tnf_le64(tail + 8) };
    c->note.end = c->size - sizeof tail - 8 * n - 1;
    c->note.offsets = tnf_alloc(&c->alloc, c->note.n * sizeof *c->note.offsets);
    if (!c->note.offsets) {
        c->note.n = 0;
        return tnf_no_memory("deleted points", e);
    }
    tnf_status status = examine_note(c, &c->note, tail, &whole, e);
    if (!whole)
        tnf_vs_note_forget(c);
    return status;
}

bool tnf_vs_noted(const tnf_vs_note *note, uint64_t offset)
{
    return note->n && bsearch(&offset, note->offsets, note->n, sizeof offset, tnf_u64_compare);
}
