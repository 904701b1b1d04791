/* SPDX-License-Identifier: MIT */
#include "formats/vs/strings.h"

#define ROWS  4096u
#define BYTES ((uint64_t)1 << 20)
#define MOST_WINDOWS                                                                               \
    16u /* an encoded part is decoded again for each window, so use few windows                    \
         */

void tnf_vs_strings_init(vs_strings *s, const tnf_object *object, const tnf_allocator *alloc)
{
    *s = (vs_strings) { .alloc = *alloc };
    if (!object)
        return;
    s->offsets = tnf_object_part(object, "offsets");
    s->bytes = tnf_object_part(object, "bytes");
    s->count = s->offsets->nbytes / sizeof *s->at - 1;
}

void tnf_vs_strings_free(vs_strings *s)
{
    tnf_free(&s->alloc, s->at, s->at_room * sizeof *s->at);
    tnf_free(&s->alloc, s->text, s->text_room);
    s->at = NULL;
    s->text = NULL;
    s->at_room = s->text_room = 0;
}

static uint64_t worth_reading(const tnf_part *part, uint64_t usual, uint64_t all)
{
    uint64_t share = part->payload == TNF_ENCODED ? all / MOST_WINDOWS : 0;
    return share > usual ? share : usual;
}

static tnf_status load_offsets(vs_strings *s, uint64_t row, tnf_error *e)
{
    uint64_t n = worth_reading(s->offsets, ROWS, s->count), bytes;
    size_t room;
    n = n < s->count - row ? n : s->count - row;
    if (!tnf_ckd_mul(&bytes, n + 1, sizeof *s->at) || !tnf_to_size(&room, bytes))
        return tnf_no_memory("strings", e);
    if (n + 1 > s->at_room) {
        uint64_t *more = tnf_realloc(&s->alloc, s->at, s->at_room * sizeof *s->at, room);
        if (!more)
            return tnf_no_memory("strings", e);
        s->at = more;
        s->at_room = (size_t)n + 1;
    }
    s->n = 0; /* in case of an error */
    TNF_TRY(tnf_read_part(s->at, room, s->offsets, row * sizeof *s->at, e));
    for (uint64_t i = 0; i <= n; i++) {
        s->at[i] = tnf_le64(&s->at[i]);
        if (s->at[i] > s->bytes->nbytes || (i > 0 && s->at[i] < s->at[i - 1]))
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "offset %llu of the strings is invalid",
                            (unsigned long long)(row + i));
    }
    s->first = row;
    s->n = n;
    return TNF_OK;
}

/* Loads as many strings as are useful, at least one. */
static tnf_status load_bytes(vs_strings *s, tnf_error *e)
{
    uint64_t most = worth_reading(s->bytes, BYTES, s->bytes->nbytes);
    while (s->n > 1 && s->at[s->n] - s->at[0] > most)
        s->n = s->n / 2;
    uint64_t n = s->at[s->n] - s->at[0];
    if (n > s->text_room) {
        uint8_t *more = n <= SIZE_MAX ? tnf_realloc(&s->alloc, s->text, s->text_room, (size_t)n)
                                      : NULL;
        if (!more)
            return tnf_no_memory("strings", e);
        s->text = more;
        s->text_room = (size_t)n;
    }
    return n ? tnf_read_part(s->text, (size_t)n, s->bytes, s->at[0], e) : TNF_OK;
}

tnf_status tnf_vs_strings_at(vs_strings *s, uint64_t row, tnf_str *out, tnf_error *e)
{
    *out = (tnf_str) { "", 0 };
    if (!s->offsets || row >= s->count)
        return TNF_OK;
    if (row < s->first || row - s->first >= s->n) {
        TNF_TRY(load_offsets(s, row, e));
        TNF_TRY(load_bytes(s, e));
    }
    uint64_t i = row - s->first, n = s->at[i + 1] - s->at[i];
    if (n)
        *out = (tnf_str) { (const char *)s->text + (s->at[i] - s->at[0]), (size_t)n };
    return TNF_OK;
}
