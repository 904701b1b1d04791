/* SPDX-License-Identifier: MIT */
/* A truncated download: the directory at the end is missing. Records follow each other from the
 * first byte, and data.pkl is the first.
 *
 *   header name padding | data | PK\7\8 crc size size | header …
 *
 * The header does not have the size of a record. The size of data.pkl follows from its STOP, that
 * of a storage from the pickle, and that of the few others from the descriptor after them.
 */
#include "formats/pytorch/ptzip.h"

#include "base/bytes.h"

#include <string.h>

#define HEADER 30u
#define SMALL  4096u

typedef struct finder {
    pt_zip *z;
    tnf_pickle pickle;
    bool has_pickle;
    tnf_named sizes; /* of storages, by key */
    tnf_zip_member *members;
    size_t n, capacity;
    tnf_error *e;
} finder;

static tnf_zip_member *new_member(finder *s)
{
    tnf_arena *a = s->z->f->r->arena;
    tnf_zip_member *more = tnf_arena_grow(a, s->members, s->n, &s->capacity, sizeof *more, 64);
    if (!more)
        return NULL;
    s->members = more;
    return &s->members[s->n++];
}

static bool name_ends(const tnf_zip_member *m, const char *with)
{
    size_t n = strlen(with);
    return m->name.n >= n && memcmp(m->name.p + m->name.n - n, with, n) == 0;
}

/* The size of a storage, by the pickle. */
typedef struct sized_key {
    tnf_str key; /* must be first, for tnf_named */
    uint64_t size;
} sized_key;

/* Records the sizes of all storages. The first mention of a key counts. Invalid mentions are
 * reported later. */
static tnf_status note_sizes(finder *s)
{
    for (size_t i = 0; i < s->pickle.persistent.n; i++) {
        pt_mention x;
        uint32_t known;
        sized_key row;
        const tnf_pickle_node *node = s->pickle.persistent.nodes[i];
        if (!tnf_pt_is_storage(node))
            continue;
        tnf_status status = tnf_pt_mention(&x, node, s->z->f->r->scratch, s->e);
        if (status == TNF_ENOMEM || status == TNF_ELIMIT)
            return status;
        row.key = x.key;
        if (status == TNF_OK && tnf_ckd_mul(&row.size, x.whole, x.type->width))
            TNF_TRY(tnf_named_add(&s->sizes, &row, &known, s->e));
    }
    return TNF_OK;
}

static void storage_size(finder *s, const tnf_zip_member *m, uint64_t *out, bool *known)
{
    *known = false;
    const char *slash = m->name.n ? memchr(m->name.p, '/', m->name.n) : NULL;
    if (!slash || !s->has_pickle || strncmp(slash, "/data/", 6) != 0)
        return;
    tnf_str key = { slash + 6, m->name.n - (size_t)(slash + 6 - m->name.p) };
    uint32_t i = tnf_named_find(&s->sizes, key);
    *known = i != TNF_HASH_NONE;
    if (*known)
        *out = ((const sized_key *)tnf_named_at(&s->sizes, i))->size;
}

/* The size of a small record, by the descriptor after it. */
static tnf_status small_size(finder *s, uint64_t at, uint64_t *out, bool *known)
{
    uint8_t block[SMALL + 16];
    uint64_t left = s->z->from.size - at;
    size_t n = left < sizeof block ? (size_t)left : sizeof block;
    *known = false;
    TNF_TRY(s->z->from.fetch(s->z->from.ctx, at, block, n, s->e));
    for (size_t i = 0; i + 16 <= n && !*known; i++)
        if (memcmp(block + i, "PK\7\10", 4) == 0 && tnf_le32(block + i + 8) == i) {
            *out = i;
            *known = true;
        }
    return TNF_OK;
}

static tnf_status pickle_size(finder *s, uint64_t at, uint64_t *out)
{
    uint64_t end = at;
    pt_file *f = s->z->f;
    TNF_TRY(tnf_pt_next_pickle(f, &s->pickle, &end, s->z->from.size, "data.pkl", s->e));
    *out = end - at;
    if (s->has_pickle)
        return TNF_OK;
    s->has_pickle = true;
    return note_sizes(s);
}

/* Reads the descriptor after data that end at *at, takes its CRC, and moves *at to its end. */
static tnf_status skip_descriptor(finder *s, uint64_t *at, tnf_zip_member *m, bool *there)
{
    uint8_t d[16];
    *there = m->size == 0;
    if (*there || s->z->from.size - *at < sizeof d)
        return TNF_OK;
    TNF_TRY(s->z->from.fetch(s->z->from.ctx, *at, d, sizeof d, s->e));
    *there = memcmp(d, "PK\7\10", 4) == 0;
    if (!*there)
        return TNF_OK;
    m->crc = tnf_le32(d + 4);
    *at += tnf_le32(d + 8) == (uint32_t)m->size && (m->size >> 32) == 0 ? 16 : 24;
    return TNF_OK;
}

static tnf_status find_size(finder *s, tnf_zip_member *m, const uint8_t *head, bool *known)
{
    *known = true;
    m->size = m->stored = tnf_le32(head + 22);
    if (!(tnf_le16(head + 6) & 8))
        return TNF_OK;
    if (name_ends(m, "/data.pkl")) {
        TNF_TRY(pickle_size(s, m->header, &m->size));
    } else {
        storage_size(s, m, &m->size, known);
        if (!*known)
            TNF_TRY(small_size(s, m->header, &m->size, known));
    }
    m->stored = m->size;
    return TNF_OK;
}

/* Reads one member; *more is false after the last. */
static tnf_status next_member(finder *s, uint64_t *at, bool *more)
{
    uint8_t head[HEADER];
    tnf_arena *a = s->z->f->r->arena;
    uint64_t size = s->z->from.size;
    *more = false;
    if (*at >= size || size - *at < HEADER)
        return TNF_OK;
    TNF_TRY(s->z->from.fetch(s->z->from.ctx, *at, head, HEADER, s->e));
    size_t name_n = tnf_le16(head + 26);
    uint64_t data = *at + HEADER + name_n + tnf_le16(head + 28);
    if (memcmp(head, "PK\3\4", 4) != 0 || tnf_le16(head + 8) != TNF_ZIP_STORED || data > size)
        return TNF_OK;
    char *name = tnf_arena_alloc(a, name_n + 1);
    tnf_zip_member *m = new_member(s);
    if (!name || !m)
        return tnf_arena_fail(a, "a record", s->e);
    TNF_TRY(s->z->from.fetch(s->z->from.ctx, *at + HEADER, name, name_n, s->e));
    *m = (tnf_zip_member) { .name = { name, name_n }, .at = *at, .header = data };
    bool known;
    TNF_TRY(find_size(s, m, head, &known));
    if (!known || m->size > size - data) {
        s->n -= !known; /* the tensors of truncated storages are reported */
        return TNF_OK;
    }
    *at = data + m->size;
    return skip_descriptor(s, at, m, more);
}

tnf_status tnf_pt_salvage(pt_zip *z, tnf_error *e)
{
    finder *s = tnf_arena_alloc(z->f->r->scratch, sizeof *s);
    uint64_t at = 0;
    bool more = true;
    if (!s)
        return tnf_arena_fail(z->f->r->scratch, "the archive", e);
    s->z = z;
    s->e = e;
    tnf_named_init(&s->sizes, sizeof(sized_key), &z->f->r->scratch->alloc, z->f->r->limits.memory);
    tnf_status status = TNF_OK;
    while (more && status == TNF_OK)
        status = next_member(s, &at, &more);
    tnf_named_free(&s->sizes);
    TNF_TRY(status);
    z->salvaged = true;
    z->zip = (tnf_zip) { .members = s->members, .n = s->n };
    return TNF_OK;
}
