/* SPDX-License-Identifier: MIT */
/* The content hash: the same for the same content, whatever file it is in.
 *
 *   tensor   SHA-256 of "tenfold tensor 1\n", layout, shape, and of each part (by role) its role,
 * type and bytes. Dense elements are taken row by row, decoded and little-endian. file     SHA-256
 * of "tenfold content 1\n", of each tensor (by name) its name, hash and attributes, of each
 * attribute of the file, and of each extra (by key) its key and bytes.
 *
 * A text is its length (u64, little-endian) and its bytes; a number is a u64. Attributes are a
 * count and, by key, key and value; a value is text: JSON with exact types, the keys of maps in
 * order. What a reader works out by itself is left out, and the text maps of formats
 * ("safetensors.metadata") are all called "metadata", since formats take over each other's.
 */
#include "base/bytes.h"
#include "base/digest.h"
#include "base/pool.h"
#include "base/sized.h"
#include "core/save/save.h"
#include "wire/json.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define HASH      32u
#define VALUE_MAX ((uint64_t)256 << 20) /* bytes of one attribute */
#define METADATA  ".metadata"

struct hashing {
    const tnf_file *file;
    tnf_hash_options options;
    const size_t *order;
    uint8_t (*tensors)[HASH];
    uint64_t done, total;
    pthread_mutex_t lock; /* guards done and the progress function */
};

/* One digest on its way. */
struct pass {
    tnf_digester d;
    struct hashing *h; /* NULL: nobody is told */
};

static void put_number(tnf_digester *d, uint64_t v)
{
    uint8_t bytes[8];
    tnf_put_le64(bytes, v);
    tnf_digest_update(d, bytes, sizeof bytes);
}

static void put_text(tnf_digester *d, const void *p, size_t n)
{
    put_number(d, n);
    tnf_digest_update(d, p, n);
}

static tnf_status begin(struct pass *p, const char *title, tnf_error *e)
{
    if (!tnf_digest_begin(&p->d, "sha256"))
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for hashing");
    tnf_digest_update(&p->d, title, strlen(title));
    return TNF_OK;
}

static tnf_status take(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct pass *p = ctx;
    tnf_digest_update(&p->d, bytes, n);
    if (!p->h || !p->h->options.progress)
        return TNF_OK;
    pthread_mutex_lock(&p->h->lock);
    p->h->done += n;
    bool go_on = p->h->options.progress(p->h->options.ctx, p->h->done, p->h->total);
    pthread_mutex_unlock(&p->h->lock);
    return go_on ? TNF_OK : tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "stopped on request");
}

/* ---------------------------------------------------------------- tensors */

static tnf_status put_part(struct pass *p, const tnf_part *part, tnf_error *e)
{
    put_text(&p->d, part->role, strlen(part->role));
    put_text(&p->d, part->type->id, strlen(part->type->id));
    put_number(&p->d, part->nbytes);
    return tnf_scan(part, take, p, e);
}

/* A dense tensor, row by row. */
static tnf_status put_rows(struct pass *p, const tnf_object *o, tnf_error *e)
{
    tnf_part rows;
    struct tnf_save turning = { 0 };
    uint64_t bits = o->parts->type->bits;
    if (o->order == TNF_ORDER_C || o->rank < 2 || o->parts->nbytes == 0)
        return put_part(p, o->parts, e);
    if (bits == 0 || bits % 8)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has packed elements in columns: they cannot be taken row by row",
                        TNF_QUOTED(o->name));
    tnf_allocator a = tnf_allocator_or_default(NULL); /* the handle's is not for threads */
    tnf_arena_init(&turning.arena, &a, UINT64_MAX);
    tnf_status status = tnf_reorder(&rows, o, &turning, e);
    if (status == TNF_OK)
        status = put_part(p, &rows, e);
    tnf_reorder_end(&turning);
    tnf_arena_free(&turning.arena);
    return status;
}

/* The part whose role comes next by its bytes after `last` (NULL: the first). */
static const tnf_part *next_part(const tnf_object *o, const char *last)
{
    const tnf_part *next = NULL;
    const char *first = NULL; /* its role */
    for (uint16_t i = 0; i < o->nparts; i++) {
        const char *role = o->parts[i].role;
        if (role && (!last || strcmp(role, last) > 0) && (!first || strcmp(role, first) < 0)) {
            next = &o->parts[i];
            first = role;
        }
    }
    return next;
}

static tnf_status put_tensor(struct pass *p, const tnf_object *o, tnf_error *e)
{
    put_text(&p->d, o->layout->id, strlen(o->layout->id));
    put_number(&p->d, o->rank);
    for (uint32_t i = 0; i < o->rank; i++)
        put_number(&p->d, o->shape[i]);
    put_number(&p->d, o->nparts);
    if (o->layout == &tnf_layout_dense && o->nparts == 1)
        return put_rows(p, o, e);
    for (const tnf_part *part = next_part(o, NULL); part; part = next_part(o, part->role))
        TNF_TRY(put_part(p, part, e));
    return TNF_OK;
}

static tnf_status hash_tensor(void *ctx, size_t job, tnf_error *e)
{
    struct hashing *h = ctx;
    size_t i = h->order[job];
    struct pass p = { .h = h };
    TNF_TRY(begin(&p, "tenfold tensor 1\n", e));
    tnf_status status = put_tensor(&p, &h->file->catalog.objects[i], e);
    tnf_digest_end(&p.d, status == TNF_OK ? h->tensors[i] : NULL);
    return status;
}

/* ------------------------------------------------------------- attributes */

static int by_key(const void *a, const void *b)
{
    return tnf_str_compare(((const tnf_member *)a)->key, ((const tnf_member *)b)->key);
}

bool tnf_is_text_map(const tnf_member *m)
{
    size_t n = sizeof METADATA - 1;
    return m->value.kind == TNF_MAP && m->key.n >= n &&
           memcmp(m->key.p + m->key.n - n, METADATA, n) == 0;
}

static tnf_status put_value(struct pass *p, const tnf_value *value, tnf_arena *a, tnf_error *e)
{
    tnf_value sorted;
    tnf_buf text;
    TNF_TRY(tnf_value_copy(&sorted, value, a, UINT32_MAX, e));
    tnf_sort_maps(&sorted);
    tnf_buf_init(&text, &a->alloc, VALUE_MAX);
    tnf_json_put_typed(&text, &sorted);
    tnf_status status = tnf_buf_status(&text, "an attribute", e);
    if (status == TNF_OK)
        put_text(&p->d, text.p, text.n);
    tnf_buf_free(&text);
    return status;
}

tnf_status tnf_content_attrs(tnf_member **out, size_t *kept, const tnf_value *map, tnf_arena *a,
                             tnf_error *e)
{
    size_t n = map ? map->n : 0;
    tnf_member *members = tnf_arena_array(a, n, sizeof *members);
    if (!members)
        return tnf_arena_fail(a, "attributes", e);
    *kept = 0;
    for (size_t i = 0; i < n; i++) {
        const tnf_member *m = &map->as.members[i];
        if (tnf_registry_derives(m) || tnf_registry_spells(m))
            continue;
        members[*kept] = *m;
        if (tnf_is_text_map(m))
            members[*kept].key = (tnf_str) { &METADATA[1], sizeof METADATA - 2 };
        ++*kept;
    }
    *out = members;
    return TNF_OK;
}

static tnf_status put_attrs(struct pass *p, const tnf_value *map, tnf_arena *a, tnf_error *e)
{
    size_t kept;
    tnf_member *members;
    TNF_TRY(tnf_content_attrs(&members, &kept, map, a, e));
    if (kept)
        qsort(members, kept, sizeof *members, by_key);
    put_number(&p->d, kept);
    for (size_t i = 0; i < kept; i++) {
        put_text(&p->d, members[i].key.p, members[i].key.n);
        TNF_TRY(put_value(p, &members[i].value, a, e));
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------- file */

struct named {
    tnf_str name;
    size_t i;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int c = tnf_str_compare(x->name, y->name);
    return c ? c : x->i < y->i ? -1 : x->i > y->i;
}

static tnf_status put_tensors(struct pass *p, struct hashing *h, tnf_arena *a, tnf_error *e)
{
    const tnf_catalog *c = &h->file->catalog;
    struct named *names = tnf_arena_array(a, c->n, sizeof *names);
    if (!names)
        return tnf_arena_fail(a, "names", e);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!tnf_is_filler(&c->objects[i]))
            names[n++] = (struct named) { c->objects[i].name, i };
    qsort(names, n, sizeof *names, by_name);
    put_number(&p->d, n);
    for (size_t i = 0; i < n; i++) {
        put_text(&p->d, names[i].name.p, names[i].name.n);
        tnf_digest_update(&p->d, h->tensors[names[i].i], HASH);
        TNF_TRY(put_attrs(p, c->objects[names[i].i].attrs, a, e));
    }
    return TNF_OK;
}

static tnf_status put_extras(struct pass *p, const tnf_catalog *c, tnf_arena *a, tnf_error *e)
{
    struct named *names = tnf_arena_array(a, c->nextras, sizeof *names);
    if (!names)
        return tnf_arena_fail(a, "extras", e);
    for (size_t i = 0; i < c->nextras; i++)
        names[i] = (struct named) { c->extras[i].key, i };
    if (c->nextras)
        qsort(names, c->nextras, sizeof *names, by_name);
    put_number(&p->d, c->nextras);
    for (size_t i = 0; i < c->nextras; i++) {
        put_text(&p->d, names[i].name.p, names[i].name.n);
        put_number(&p->d, c->extras[names[i].i].bytes.nbytes);
        TNF_TRY(tnf_scan(&c->extras[names[i].i].bytes, take, p, e));
    }
    return TNF_OK;
}

static tnf_status hash_file(uint8_t *out, struct hashing *h, tnf_arena *a, tnf_error *e)
{
    const tnf_catalog *c = &h->file->catalog;
    unsigned threads = tnf_pool_threads(h->options.threads);
    struct pass p = { 0 };
    TNF_TRY(tnf_job_order(&h->order, c, a, e));
    if (!(h->tensors = tnf_arena_array(a, c->n, HASH)))
        return tnf_arena_fail(a, "hashes", e);
    TNF_TRY(tnf_pool_run(threads, c->n, hash_tensor, h, e));
    for (size_t i = 0; i < c->n && h->options.tensor; i++)
        h->options.tensor(h->options.ctx, &c->objects[i], h->tensors[i]);
    TNF_TRY(begin(&p, "tenfold content 1\n", e));
    tnf_status status = put_tensors(&p, h, a, e);
    if (status == TNF_OK)
        status = put_attrs(&p, h->file->info.attrs, a, e);
    if (status == TNF_OK)
        status = put_extras(&p, c, a, e);
    tnf_digest_end(&p.d, status == TNF_OK ? out : NULL);
    return status;
}

tnf_status tnf_content_hash(uint8_t out[32], const tnf_file *file, const tnf_hash_options *options,
                            tnf_error *e)
{
    struct hashing h = { .file = file, .total = file->info.payload };
    tnf_arena arena;
    TNF_TRY(tnf_options_copy(&h.options, sizeof h.options, options, e));
    tnf_arena_init(&arena, &file->alloc, UINT64_MAX);
    if (pthread_mutex_init(&h.lock, NULL) != 0)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for hashing");
    tnf_status status = hash_file(out, &h, &arena, e);
    pthread_mutex_destroy(&h.lock);
    tnf_arena_free(&arena);
    return status;
}
