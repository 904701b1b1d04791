/* SPDX-License-Identifier: MIT */
/* Writes blobs: parts of any size with the same bytes share one. Memory holds only samples and
 * digests, not bytes.
 *
 *   small part    read once into memory: digest, search an equal blob, write
 *   large part    its first bytes (the sample) are new ──────────────> written and digested
 *                 an earlier part has length and sample ─> digested ─> is the digest known?
 *                                                                       ─> are the bytes equal?
 *
 * There are two hash tables, by sample and by digest, whose chains are in arrays. If a function
 * supplies the bytes of a part, they can be read only once, so such a large part is written without
 * a comparison.
 */
#include "formats/ztensor2/zt2.h"

#define NOTHING UINT32_MAX

tnf_status tnf_zt2_blobs_init(zt2_blobs *b, tnf_writer *w, uint64_t most, tnf_error *e)
{
    size_t buckets = 16;
    while (buckets < most)
        buckets *= 2;
    b->w = w;
    b->mask = buckets - 1;
    b->list = tnf_arena_array(w->scratch, most, sizeof *b->list);
    b->by_sample = tnf_arena_array(w->scratch, buckets, sizeof *b->by_sample);
    b->by_digest = tnf_arena_array(w->scratch, buckets, sizeof *b->by_digest);
    b->small = tnf_arena_raw(w->scratch, ZT2_SMALL);
    if (!b->list || !b->by_sample || !b->by_digest || !b->small)
        return tnf_arena_fail(w->scratch, "the list of blobs", e);
    memset(b->by_sample, 0xff, buckets * sizeof *b->by_sample);
    memset(b->by_digest, 0xff, buckets * sizeof *b->by_digest);
    return TNF_OK;
}

static tnf_status digest_bytes(const char *algorithm, const void *bytes, size_t n, uint8_t out[32],
                               tnf_error *e)
{
    tnf_digester d;
    if (!tnf_digest_begin(&d, algorithm))
        return tnf_no_memory("a digest", e);
    tnf_digest_update(&d, bytes, n);
    tnf_digest_end(&d, out);
    return TNF_OK;
}

static uint32_t *sample_bucket(zt2_blobs *b, const zt2_blob *blob)
{
    return &b->by_sample[(blob->sample ^ blob->nbytes * 0x9E3779B97F4A7C15u) & b->mask];
}

static uint32_t *digest_bucket(zt2_blobs *b, const zt2_blob *blob)
{
    return &b->by_digest[tnf_le64(blob->digest) & b->mask];
}

static bool sample_known(zt2_blobs *b, const zt2_blob *blob)
{
    for (uint32_t i = *sample_bucket(b, blob); i != NOTHING; i = b->list[i].next_sample)
        if (b->list[i].sample == blob->sample && b->list[i].nbytes == blob->nbytes)
            return true;
    return false;
}

/* Does a blob with the same length and digest have the same bytes? A small one that could be read
 * only once has its SHA-256 for this. */
static tnf_status blob_equals(zt2_blobs *b, bool *out, const zt2_blob *known, const tnf_part *part,
                              tnf_error *e)
{
    uint8_t strong[TNF_DIGEST_MAX];
    *out = false;
    if (known->part)
        return tnf_parts_equal(out, known->part, part, e);
    b->unsure = b->unsure || !known->strong;
    if (!known->strong)
        return TNF_OK;
    TNF_TRY(digest_bytes("sha256", b->small, (size_t)part->nbytes, strong, e));
    *out = memcmp(strong, known->strong, sizeof strong) == 0;
    return TNF_OK;
}

/* Finds a blob that is already written and has the same bytes, or NOTHING. */
static tnf_status find_equal(zt2_blobs *b, const zt2_blob *blob, const tnf_part *part,
                             uint32_t *found, tnf_error *e)
{
    *found = NOTHING;
    for (uint32_t i = *digest_bucket(b, blob); i != NOTHING; i = b->list[i].next_digest) {
        const zt2_blob *known = &b->list[i];
        bool same = known->nbytes == blob->nbytes &&
                    memcmp(known->digest, blob->digest, sizeof blob->digest) == 0;
        if (same)
            TNF_TRY(blob_equals(b, &same, known, part, e));
        if (same) {
            *found = i;
            break;
        }
    }
    return TNF_OK;
}

static tnf_status remember_blob(zt2_blobs *b, zt2_blob *blob, tnf_error *e)
{
    uint32_t *digest = digest_bucket(b, blob);
    blob->next_digest = *digest;
    *digest = (uint32_t)b->n;
    if (blob->nbytes > ZT2_SMALL) {
        uint32_t *sample = sample_bucket(b, blob);
        blob->next_sample = *sample;
        *sample = (uint32_t)b->n;
    } else if (!blob->part) {
        uint8_t *strong = tnf_arena_raw(b->w->scratch, TNF_DIGEST_MAX);
        if (!strong)
            return tnf_arena_fail(b->w->scratch, "a digest", e);
        TNF_TRY(digest_bytes("sha256", b->small, (size_t)blob->nbytes, strong, e));
        blob->strong = strong;
    }
    b->list[b->n++] = *blob;
    return TNF_OK;
}

/* Writes padding up to the place of the next blob. */
static tnf_status align_blob(zt2_blobs *b, uint64_t nbytes, tnf_error *e)
{
    uint64_t to = nbytes < b->small_below ? ZT2_FLOOR : b->align, at;
    if (!tnf_ckd_align(&at, b->w->sink->written, to))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the file would exceed 2^64 bytes");
    return tnf_put_fill(b->w, 0, at - b->w->sink->written, e);
}

static tnf_status write_blob(zt2_blobs *b, zt2_blob *blob, const tnf_part *part, bool digested,
                             tnf_error *e)
{
    tnf_put_how how = b->how;
    tnf_put_done done;
    TNF_TRY(align_blob(b, blob->nbytes, e));
    if (digested)
        how.digest = NULL;
    TNF_TRY(tnf_put_part(b->w, part, &how, &done, e));
    blob->offset = done.offset;
    blob->stored = done.stored;
    blob->encoded = b->how.codec != TNF_CODEC_RAW;
    if (!digested)
        memcpy(blob->digest, done.digest, sizeof blob->digest);
    return TNF_OK;
}

static tnf_status take_sample(zt2_blobs *b, zt2_blob *blob, const tnf_part *part, tnf_error *e)
{
    uint8_t hash[TNF_DIGEST_MAX] = { 0 };
    TNF_TRY(tnf_read_part(b->small, ZT2_SAMPLE, part, 0, e));
    TNF_TRY(digest_bytes("xxh3-64", b->small, ZT2_SAMPLE, hash, e));
    blob->sample = tnf_le64(hash);
    return TNF_OK;
}

/* Computes the digest of a part if an equal one may already exist. A small part is then in memory.
 */
static tnf_status digest_if_known(zt2_blobs *b, zt2_blob *blob, tnf_part *part, bool *digested,
                                  tnf_error *e)
{
    *digested = part->nbytes <= ZT2_SMALL;
    if (*digested) {
        TNF_TRY(tnf_read_part(b->small, (size_t)part->nbytes, part, 0, e));
        *part = (tnf_part) { .role = part->role,
                             .type = part->type,
                             .stored = part->nbytes,
                             .nbytes = part->nbytes,
                             .payload = TNF_MEMORY,
                             .memory = b->small };
        return digest_bytes(b->how.digest, b->small, (size_t)part->nbytes, blob->digest, e);
    }
    if (!blob->part)
        return TNF_OK;
    TNF_TRY(take_sample(b, blob, part, e));
    *digested = sample_known(b, blob);
    return *digested ? tnf_part_digest(part, b->how.digest, blob->digest, e) : TNF_OK;
}

tnf_status tnf_zt2_blobs_put(zt2_blobs *b, const tnf_part *part, const zt2_blob **out, tnf_error *e)
{
    bool once = tnf_part_once(part), digested;
    uint32_t found = NOTHING;
    zt2_blob blob = { .nbytes = part->nbytes, .part = once ? NULL : part };
    tnf_part from = *part;
    TNF_TRY(digest_if_known(b, &blob, &from, &digested, e));
    if (digested)
        TNF_TRY(find_equal(b, &blob, &from, &found, e));
    if (found == NOTHING) {
        found = (uint32_t)b->n;
        TNF_TRY(write_blob(b, &blob, &from, digested, e));
        TNF_TRY(remember_blob(b, &blob, e));
    }
    *out = &b->list[found];
    return TNF_OK;
}

tnf_status tnf_zt2_blobs_know(zt2_blobs *b, zt2_blob *blob, bool alias, const zt2_blob **out,
                              tnf_error *e)
{
    const tnf_digest *told = blob->part->digest;
    *out = &b->list[b->n];
    if (!alias) {
        b->list[b->n++] = *blob;
        return TNF_OK;
    }
    if (blob->nbytes > ZT2_SMALL)
        TNF_TRY(take_sample(b, blob, blob->part, e));
    if (told && told->algorithm && strcmp(told->algorithm, b->how.digest) == 0 &&
        told->n == tnf_digest_size(b->how.digest))
        memcpy(blob->digest, told->bytes, told->n);
    else
        TNF_TRY(tnf_part_digest(blob->part, b->how.digest, blob->digest, e));
    return remember_blob(b, blob, e);
}

tnf_status tnf_zt2_blobs_align(zt2_blobs *b, tnf_error *e)
{
    return align_blob(b, 0, e);
}
