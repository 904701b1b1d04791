/* SPDX-License-Identifier: MIT */
/* SHA-1 checksums of data files. A model may have one for each of its external tensors. Only
 * verify() checks them, not reading. It reads every file once, however many tensors name it.
 *
 *   external_data  (location: NAME) … (checksum: "a9993e36…", 40 digits, of the complete file)
 */
#include "formats/onnx/onnx.h"

#include "base/hex.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)256 << 10)

tnf_status tnf_ox_keep_sum(tnf_reader *r, const ox_tensor *t, const struct tnf_origin *origin,
                           uint64_t size, tnf_error *e)
{
    ox_state *s = r->state;
    const ox_sum *last = s->nsums ? &s->sums[s->nsums - 1] : NULL;
    bool same = last && last->origin == origin && last->text.n == t->checksum.n &&
                memcmp(last->text.p, t->checksum.p, last->text.n) == 0;
    if (t->checksum.n == 0 || same)
        return TNF_OK;
    ox_sum *sums = tnf_arena_grow(r->arena, s->sums, s->nsums, &s->room, sizeof *sums, 8);
    if (!sums)
        return tnf_arena_fail(r->arena, "checksums", e);
    s->sums = sums;
    ox_sum sum = { .origin = origin, .size = size, .at = t->at };
    sum.text = (tnf_str) { tnf_arena_str(r->arena, t->checksum.p, t->checksum.n), t->checksum.n };
    sum.file = (tnf_str) { tnf_arena_str(r->arena, t->location.p, t->location.n), t->location.n };
    if (!sum.text.p || !sum.file.p)
        return tnf_arena_fail(r->arena, "checksums", e);
    sums[s->nsums++] = sum;
    return TNF_OK;
}

static tnf_status hash_file(uint8_t found[20], const ox_sum *sum, uint8_t *block, tnf_error *e)
{
    const tnf_part all = { .role = "data",
                           .type = tnf_type_of(TNF_U8),
                           .payload = TNF_AT,
                           .nbytes = sum->size,
                           .stored = sum->size,
                           .origin = sum->origin };
    tnf_sha256 hash;
    tnf_sha1_begin(&hash);
    for (uint64_t at = 0; at < sum->size; at += BLOCK) {
        size_t n = sum->size - at < BLOCK ? (size_t)(sum->size - at) : BLOCK;
        TNF_TRY(tnf_read_part(block, n, &all, at, e));
        tnf_sha256_update(&hash, block, n);
    }
    tnf_sha1_end(&hash, found);
    return TNF_OK;
}

/* A checksum to compare; `i` is its position in the model. */
struct task {
    const struct tnf_origin *origin;
    size_t i;
    bool differs;
};

static int by_file(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct task *)a)->origin;
    uintptr_t y = (uintptr_t)((const struct task *)b)->origin;
    return (x > y) - (x < y);
}

static int by_place(const void *a, const void *b)
{
    size_t x = ((const struct task *)a)->i, y = ((const struct task *)b)->i;
    return (x > y) - (x < y);
}

static bool says_sum(tnf_str text, const uint8_t sum[20])
{
    uint8_t said[20];
    return text.n == 40 && tnf_hex_take(said, text.p, 20) && memcmp(said, sum, 20) == 0;
}

/* Hashes the files. Tasks are sorted by file, so each is read once. */
static tnf_status hash_files(struct task *tasks, const ox_state *s, tnf_arena *arena, tnf_error *e)
{
    uint8_t *block = tnf_arena_raw(arena, BLOCK);
    uint8_t found[20] = { 0 };
    if (!block)
        return tnf_arena_fail(arena, "checksums", e);
    for (size_t i = 0; i < s->nsums; i++)
        tasks[i] = (struct task) { s->sums[i].origin, i, false };
    qsort(tasks, s->nsums, sizeof *tasks, by_file);
    for (size_t i = 0; i < s->nsums; i++) {
        const ox_sum *sum = &s->sums[tasks[i].i];
        if (i == 0 || sum->origin != tasks[i - 1].origin)
            TNF_TRY(hash_file(found, sum, block, e));
        tasks[i].differs = !says_sum(sum->text, found);
    }
    return TNF_OK;
}

tnf_status tnf_ox_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                         tnf_error *e)
{
    const ox_state *s = r->state;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    struct task *tasks = s->nsums ? tnf_arena_array(arena, s->nsums, sizeof *tasks) : NULL;
    if (s->nsums == 0)
        return TNF_OK;
    if (!tasks)
        return tnf_arena_fail(arena, "checksums", e);
    TNF_TRY(hash_files(tasks, s, arena, e));
    qsort(tasks, s->nsums, sizeof *tasks, by_place);
    for (size_t i = 0; i < s->nsums; i++)
        if (tasks[i].differs) {
            (void)tnf_fail(&why, TNF_EDIGEST, s->sums[i].at,
                           "the file %s does not match the SHA-1 that the model has for it",
                           TNF_QUOTED(s->sums[i].file));
            tell(ctx, &why, (tnf_str) { NULL, 0 });
        }
    return TNF_OK;
}
