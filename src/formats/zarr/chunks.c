/* SPDX-License-Identifier: MIT */
/* Reads chunks from the store and caches those that will be needed again.
 *
 *   array, chunk ──hash──> a set of WAYS places; the least recently used is replaced
 *
 * Reading row by row needs the same chunks many times, so they are cached. Reading a complete chunk
 * at once does not use the cache. */
#include "formats/zarr/zr.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SETS      1024u
#define WAYS      4u
#define MOST_KEPT ((uint64_t)256 << 20)
#define INDEX_OF  ((uint64_t)1 << 63) /* the index of a shard, not a chunk */

struct zr_kept {
    uint64_t array, chunk;
    atomic_uint users; /* the cache counts as one */
    bool absent;
    zr_bytes bytes;
};

typedef struct place {
    struct zr_kept *kept;
    uint64_t used;
} place;

struct zr_cache {
    pthread_mutex_t lock; /* guards all below */
    uint64_t bytes, clock;
    size_t hand; /* next place to evict */
    place places[SETS * WAYS];
};

static struct zr_kept *new_kept(tnf_error *e)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    struct zr_kept *k = tnf_alloc0(&a, sizeof *k);
    if (!k)
        tnf_no_memory("a chunk", e);
    else
        atomic_init(&k->users, 1);
    return k;
}

static void drop_kept(struct zr_kept *k)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (!k || atomic_fetch_sub(&k->users, 1) != 1)
        return;
    tnf_zr_free(&k->bytes);
    tnf_free(&a, k, sizeof *k);
}

struct zr_cache *tnf_zr_cache_new(void)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    struct zr_cache *c = tnf_alloc0(&a, sizeof *c);
    if (c)
        pthread_mutex_init(&c->lock, NULL);
    return c;
}

void tnf_zr_close(tnf_reader *r)
{
    zr_state *s = r->state;
    struct zr_cache *c = s->cache;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    if (!c)
        return;
    for (size_t i = 0; i < SETS * WAYS; i++)
        drop_kept(c->places[i].kept);
    pthread_mutex_destroy(&c->lock);
    tnf_free(&a, c, sizeof *c);
    s->cache = NULL;
    if (s->store->close)
        s->store->close(s->store);
}

static place *set_of(struct zr_cache *c, uint64_t array, uint64_t chunk)
{
    uint64_t h = (array + 1) * 0x9E3779B97F4A7C15u ^ chunk * 0xC2B2AE3D27D4EB4Fu;
    h ^= h >> 29;
    return &c->places[(h * 0xBF58476D1CE4E5B9u >> 40) % SETS * WAYS];
}

/* Returns a cached chunk with one more user; NULL: not cached. */
static struct zr_kept *find_kept(struct zr_cache *c, uint64_t array, uint64_t chunk)
{
    struct zr_kept *found = NULL;
    pthread_mutex_lock(&c->lock);
    place *set = set_of(c, array, chunk);
    for (size_t i = 0; i < WAYS && !found; i++)
        if (set[i].kept && set[i].kept->array == array && set[i].kept->chunk == chunk) {
            found = set[i].kept;
            set[i].used = ++c->clock;
            atomic_fetch_add(&found->users, 1);
        }
    pthread_mutex_unlock(&c->lock);
    return found;
}

static void evict_place(struct zr_cache *c, place *p)
{
    if (!p->kept)
        return;
    c->bytes -= p->kept->bytes.n;
    drop_kept(p->kept);
    p->kept = NULL;
}

static void keep_chunk(struct zr_cache *c, struct zr_kept *k)
{
    if (k->bytes.n > MOST_KEPT / 2)
        return;
    pthread_mutex_lock(&c->lock);
    place *set = set_of(c, k->array, k->chunk), *oldest = set;
    for (size_t i = 1; i < WAYS; i++)
        if (!set[i].kept || (oldest->kept && set[i].used < oldest->used))
            oldest = &set[i];
    evict_place(c, oldest);
    for (size_t tries = 0; c->bytes + k->bytes.n > MOST_KEPT && tries < SETS * WAYS; tries++)
        evict_place(c, &c->places[c->hand++ % (SETS * WAYS)]);
    atomic_fetch_add(&k->users, 1);
    *oldest = (place) { k, ++c->clock };
    c->bytes += k->bytes.n;
    pthread_mutex_unlock(&c->lock);
}

/* ------------------------------------------------------------------- keys */

/* PREFIX/c/0/1, PREFIX/0.1 … */
static size_t chunk_key(const zr_array *a, const uint64_t *at, char *out, size_t room)
{
    size_t n = 0;
    if (a->prefix.n + 32 + (size_t)a->rank * 21 > room)
        return 0;
    memcpy(out, a->prefix.p, a->prefix.n);
    n = a->prefix.n;
    if (n)
        out[n++] = '/';
    if (a->prefixed)
        out[n++] = 'c';
    else if (a->rank == 0)
        out[n++] = '0';
    for (uint32_t i = 0; i < a->rank; i++) {
        char digits[24];
        size_t k = sizeof digits;
        uint64_t x = at[i];
        do
            digits[--k] = (char)('0' + x % 10);
        while ((x /= 10) > 0);
        if (i > 0 || a->prefixed)
            out[n++] = a->separator;
        memcpy(out + n, digits + k, sizeof digits - k);
        n += sizeof digits - k;
    }
    return n;
}

static tnf_status in_chunk(tnf_status status, const zr_array *a, const uint64_t *at, tnf_error *e)
{
    char key[2048];
    if (status == TNF_OK || !e)
        return status;
    key[chunk_key(a, at, key, sizeof key - 1)] = 0;
    tnf_error_prefix(e, TNF_VISIBLE(key));
    return status;
}

size_t tnf_zr_find_chunk(const zr_array *a, const uint64_t *at)
{
    char key[8192];
    size_t n = chunk_key(a, at, key, sizeof key);
    return n ? tnf_zr_find(a->store, (tnf_str) { key, n }) : SIZE_MAX;
}

static tnf_status read_range(zr_bytes *out, const zr_array *a, const zr_key *key, uint64_t offset,
                             uint64_t n, tnf_error *e)
{
    TNF_TRY(tnf_zr_alloc(out, n, e));
    tnf_status status = a->store->read(a->store, key->index, offset, out->p, (size_t)n, e);
    if (status != TNF_OK)
        tnf_zr_free(out);
    return status;
}

static tnf_status too_long(uint64_t n, const zr_level *l, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                    "a chunk of %llu bytes has %llu stored bytes, which is too long",
                    (unsigned long long)l->bytes, (unsigned long long)n);
}

/* ----------------------------------------------------------------- shards */

static uint64_t number_of(const zr_array *a, const uint64_t *at, const uint64_t *per)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < a->rank; i++) {
        uint64_t many = per ? (a->count[i] + per[i] - 1) / per[i] : a->count[i];
        n = n * many + at[i];
    }
    return n;
}

/* Returns the decoded index of a shard, from the cache or the file. */
static tnf_status read_index(struct zr_kept **out, const zr_array *a, struct zr_cache *cache,
                             const uint64_t *shard, const uint64_t *per, size_t key, tnf_error *e)
{
    const zr_level *inner = a->read, *index = inner->index;
    uint64_t number = number_of(a, shard, per) | INDEX_OF;
    uint64_t n = index->bytes + 4 * (index->ncodecs - 1);
    const zr_key *k = &a->store->keys[key];
    *out = find_kept(cache, a->number, number);
    if (*out)
        return TNF_OK;
    if (k->size < n)
        return tnf_fail(e, TNF_EFORMAT, k->size, "a shard is shorter than its index");
    struct zr_kept *fresh = new_kept(e);
    zr_bytes stored = { 0 };
    if (!fresh)
        return TNF_ENOMEM;
    fresh->array = a->number;
    fresh->chunk = number;
    tnf_status status = read_range(&stored, a, k, inner->index_first ? 0 : k->size - n, n, e);
    if (status == TNF_OK)
        status = tnf_zr_alloc(&fresh->bytes, index->bytes, e);
    if (status == TNF_OK)
        status = tnf_zr_decode_chunk(a, index, stored.p, stored.n, fresh->bytes.p, e);
    tnf_zr_free(&stored);
    if (status != TNF_OK) {
        drop_kept(fresh);
        return status;
    }
    keep_chunk(cache, fresh);
    *out = fresh;
    return TNF_OK;
}

/* Finds the place of an inner chunk in its shard; *key is NULL: not stored. */
static tnf_status find_inner(const zr_key **key, uint64_t *offset, uint64_t *n, const zr_array *a,
                             struct zr_cache *cache, const uint64_t *at, tnf_error *e)
{
    uint64_t shard[ZR_MAX_RANK] = { 0 }, per[ZR_MAX_RANK] = { 0 }, number = 0;
    struct zr_kept *index;
    *key = NULL;
    for (uint32_t i = 0; i < a->rank; i++) {
        per[i] = a->level.chunk[i] / a->read->chunk[i];
        shard[i] = at[i] / per[i];
        number = number * per[i] + at[i] % per[i];
    }
    size_t found = tnf_zr_find_chunk(a, shard);
    if (found == SIZE_MAX)
        return TNF_OK;
    TNF_TRY(in_chunk(read_index(&index, a, cache, shard, per, found, e), a, shard, e));
    *offset = tnf_le64(index->bytes.p + 16 * number);
    *n = tnf_le64(index->bytes.p + 16 * number + 8);
    drop_kept(index);
    if (*offset == UINT64_MAX && *n == UINT64_MAX)
        return TNF_OK;
    *key = &a->store->keys[found];
    if (*offset > (*key)->size || *n > (*key)->size - *offset)
        return in_chunk(tnf_fail(e, TNF_EFORMAT, *offset, "a chunk is outside its shard"), a, shard,
                        e);
    return TNF_OK;
}

/* ----------------------------------------------------------------- chunks */

tnf_status tnf_zr_fetch(zr_bytes *out, const zr_array *a, struct zr_cache *cache,
                        const uint64_t *at, tnf_error *e)
{
    const zr_key *key = NULL;
    uint64_t offset = 0, n = 0;
    *out = (zr_bytes) { 0 };
    if (a->read != &a->level) {
        TNF_TRY(find_inner(&key, &offset, &n, a, cache, at, e));
    } else {
        size_t found = tnf_zr_find_chunk(a, at);
        key = found == SIZE_MAX ? NULL : &a->store->keys[found];
        n = key ? key->size : 0;
    }
    if (!key)
        return TNF_OK;
    if (n > tnf_zr_most_stored(a->read))
        return in_chunk(too_long(n, a->read, e), a, at, e);
    return in_chunk(read_range(out, a, key, offset, n, e), a, at, e);
}

static tnf_status decode_new(struct zr_kept *k, const zr_array *a, struct zr_cache *cache,
                             const uint64_t *at, tnf_error *e)
{
    zr_bytes stored;
    TNF_TRY(tnf_zr_fetch(&stored, a, cache, at, e));
    k->absent = !stored.p;
    if (k->absent)
        return TNF_OK;
    const zr_level *l = a->read;
    if (l->ncodecs == 1 && l->codecs[0].kind == ZR_BYTES && !l->codecs[0].big &&
        stored.n == l->bytes) { /* exactly the chunk, without codecs */
        k->bytes = stored;
        return TNF_OK;
    }
    tnf_status status = tnf_zr_alloc(&k->bytes, l->bytes, e);
    if (status == TNF_OK)
        status = in_chunk(tnf_zr_decode_chunk(a, l, stored.p, stored.n, k->bytes.p, e), a, at, e);
    tnf_zr_free(&stored);
    return status;
}

tnf_status tnf_zr_get_chunk(zr_chunk *out, const zr_array *a, struct zr_cache *cache,
                            const uint64_t *at, bool again, tnf_error *e)
{
    uint64_t number = number_of(a, at, NULL);
    struct zr_kept *k = find_kept(cache, a->number, number);
    if (!k) {
        k = new_kept(e);
        if (!k)
            return TNF_ENOMEM;
        k->array = a->number;
        k->chunk = number;
        tnf_status status = decode_new(k, a, cache, at, e);
        if (status != TNF_OK) {
            drop_kept(k);
            return status;
        }
        if (again && !k->absent)
            keep_chunk(cache, k);
    }
    *out = (zr_chunk) { k->absent ? NULL : k->bytes.p, k };
    return TNF_OK;
}

void tnf_zr_put_chunk(const zr_chunk *c)
{
    drop_kept(c->kept);
}
