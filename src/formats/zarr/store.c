/* SPDX-License-Identifier: MIT */
/* Stores: a directory or a zip archive. Keys are the paths of files, or the names of members. */
#include "formats/zarr/zr.h"

#include "base/crc32.h"
#include "base/pool.h"
#include "io/fs.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Chunks are not tensors, so only memory and the archive's directory limit their number. */
#define MOST_MEMBERS  ((uint64_t)1 << 30)
#define MOST_INFLATED 1032u       /* one byte of deflate makes at most this many */
#define MOST_PLACED   4096u       /* largest store whose files may be kept open */
#define MOST_AHEAD    (16u << 20) /* bytes of documents that are read ahead */
#define AT_ONCE       16u

/* ----------------------------------------------------------------- folder */

static tnf_status read_file(const zr_store *s, size_t i, uint64_t offset, void *dst, size_t n,
                            tnf_error *e)
{
    return n ? tnf_folder_fetch(s->ctx, i, offset, dst, n, e) : TNF_OK;
}

/* Keeps the file open, but only in small stores. */
static tnf_status place_file(const zr_store *s, tnf_reader *r, tnf_part *part, size_t i,
                             bool *placed, tnf_error *e)
{
    const tnf_container *c = s->ctx;
    tnf_member_place place;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = tnf_container_place(&place, c, i, &why);
    if (status == TNF_ENOMEM || status == TNF_ELIMIT) {
        if (e)
            *e = why;
        return status;
    }
    if (status != TNF_OK) /* the error is reported on reading */
        return TNF_OK;
    *placed = true;
    return tnf_place_part(r, part, &c->members[i], &place, 0, part->nbytes, NULL, e);
}

struct ahead {
    const zr_store *store;
    const size_t *keys; /* positions of documents */
    char **texts;       /* by position of the key */
};

/* Errors are reported later, when the document is needed. */
static tnf_status read_ahead(void *ctx, size_t i, tnf_error *e)
{
    const struct ahead *a = ctx;
    size_t at = a->keys[i];
    const zr_key *k = &a->store->keys[at];
    (void)e;
    if (read_file(a->store, k->index, 0, a->texts[at], (size_t)k->size, NULL) != TNF_OK)
        a->texts[at] = NULL;
    return TNF_OK;
}

/* Over the network each document costs a round trip, so all are fetched concurrently. */
static void read_documents(zr_store *s, tnf_reader *r)
{
    size_t *keys = tnf_arena_array(r->scratch, s->n, sizeof *keys), n = 0, bytes = 0;
    char **texts = tnf_arena_array(r->scratch, s->n, sizeof *texts);
    for (size_t i = 0; keys && texts && i < s->n; i++) {
        const zr_key *k = &s->keys[i];
        if (!tnf_zr_is_document(k->name.p, k->name.n) || k->size > MOST_AHEAD - bytes ||
            k->size > r->limits.header_bytes)
            continue;
        texts[i] = tnf_arena_raw(r->scratch, k->size + 1);
        if (!texts[i])
            return;
        bytes += (size_t)k->size;
        keys[n++] = i;
    }
    struct ahead a = { s, keys, texts };
    if (n > 1 && tnf_pool_run(AT_ONCE, n, read_ahead, &a, NULL) == TNF_OK)
        s->ahead = (const char *const *)texts;
}

static tnf_status open_folder(zr_store **out, tnf_reader *r, const tnf_container *c, tnf_error *e)
{
    zr_store *s = tnf_arena_alloc(r->arena, sizeof *s);
    zr_key *keys = tnf_arena_array(r->arena, c->n, sizeof *keys);
    if (!s || !keys)
        return tnf_arena_fail(r->arena, "a store", e);
    for (size_t i = 0; i < c->n; i++)
        keys[i] = (zr_key) { c->members[i].name, c->members[i].size, i };
    s->keys = keys;
    s->n = c->n;
    s->ctx = (void *)(uintptr_t)c;
    s->read = read_file;
    s->place = c->n <= MOST_PLACED ? place_file : NULL;
    if (r->source->remote)
        read_documents(s, r);
    *out = s;
    return TNF_OK;
}

/* -------------------------------------------------------------------- zip */

typedef struct archive {
    const tnf_source *source;
    tnf_zip zip;
    tnf_zip_from from;
    /* Deflated shards, from which pieces are read, are decoded once, into an unnamed file. Decoding
     * one from its beginning for each of its chunks would take quadratic time. */
    uint64_t most;        /* bytes that it may have */
    pthread_mutex_t lock; /* guards all below */
    int spool;            /* the file; -1: not needed yet */
    uint64_t spooled;     /* bytes of complete members in it */
    uint64_t *where;      /* for each member its position there, plus 1; 0: not there */
} archive;

/* A member that is being decoded into the file. */
struct spooling {
    int fd;
    uint32_t crc;
};

static tnf_status take_decoded(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct spooling *s = ctx;
    s->crc = tnf_crc32(s->crc, bytes, n);
    return tnf_spool_write(s->fd, bytes, n, e);
}

static tnf_status wrong_crc(const tnf_zip_member *m, const tnf_member_place *place, tnf_error *e)
{
    return tnf_fail(e, TNF_EDIGEST, place->offset, "the member %s does not match its crc32",
                    TNF_QUOTED(m->name));
}

static tnf_status spool_member(archive *x, size_t i, const tnf_member_place *place,
                               const tnf_container_member *content, tnf_error *e)
{
    const tnf_zip_member *m = &x->zip.members[i];
    if (m->size > x->most - x->spooled)
        return tnf_fail(e, TNF_ELIMIT, place->offset,
                        "the compressed shards decode to more than %llu bytes: raise the limit "
                        "'decoded_bytes' if you trust the file",
                        (unsigned long long)x->most);
    if (x->spool < 0)
        TNF_TRY(tnf_spool_open(&x->spool, e));
    if (lseek(x->spool, (off_t)x->spooled, SEEK_SET) < 0) /* an attempt may have failed */
        return tnf_fail_sys(e, errno, "cannot write a temporary file");
    struct spooling s = { .fd = x->spool };
    TNF_TRY(tnf_container_scan(place, content, take_decoded, &s, e));
    if (s.crc != m->crc)
        return wrong_crc(m, place, e);
    x->where[i] = x->spooled + 1;
    x->spooled += m->size;
    return TNF_OK;
}

static tnf_status read_spooled(archive *x, size_t i, const tnf_member_place *place,
                               const tnf_container_member *content, uint64_t offset, void *dst,
                               size_t n, tnf_error *e)
{
    pthread_mutex_lock(&x->lock);
    tnf_status status = x->where[i] ? TNF_OK : spool_member(x, i, place, content, e);
    uint64_t at = x->where[i] - 1 + offset;
    pthread_mutex_unlock(&x->lock);
    return status == TNF_OK ? tnf_fs_read_all(x->spool, dst, n, at, e) : status;
}

static void close_archive(const zr_store *s)
{
    archive *x = s->ctx;
    if (x->spool >= 0)
        close(x->spool);
    x->spool = -1;
    pthread_mutex_destroy(&x->lock);
}

static tnf_status read_member(const zr_store *s, size_t i, uint64_t offset, void *dst, size_t n,
                              tnf_error *e)
{
    archive *x = s->ctx;
    const tnf_zip_member *m = &x->zip.members[i];
    bool deflated = m->method == TNF_ZIP_DEFLATED;
    tnf_container_member content = { .name = m->name, .size = m->size };
    tnf_member_place place = { x->source, 0, m->stored,
                               deflated ? TNF_CODEC_DEFLATE : TNF_CODEC_RAW };
    if (n == 0)
        return TNF_OK;
    TNF_TRY(tnf_zip_locate(&place.offset, &x->from, m, e));
    bool whole = offset == 0 && n == m->size;
    if (deflated && !whole && offset <= m->size && n <= m->size - offset)
        return read_spooled(x, i, &place, &content, offset, dst, n, e);
    TNF_TRY(tnf_container_read(&place, &content, offset, dst, n, e));
    return whole && tnf_crc32(0, dst, n) != m->crc ? wrong_crc(m, &place, e) : TNF_OK;
}

static tnf_status place_member(const zr_store *s, tnf_reader *r, tnf_part *part, size_t i,
                               bool *placed, tnf_error *e)
{
    archive *x = s->ctx;
    const tnf_zip_member *m = &x->zip.members[i];
    (void)r;
    *placed = m->method == TNF_ZIP_STORED;
    if (!*placed)
        return TNF_OK;
    part->payload = TNF_AT;
    return tnf_zip_locate(&part->offset, &x->from, m, e);
}

static tnf_status open_archive(zr_store *s, tnf_reader *r, tnf_error *e)
{
    archive *x = tnf_arena_alloc(r->arena, sizeof *x);
    if (!x)
        return tnf_arena_fail(r->arena, "a store", e);
    x->source = r->source;
    x->from = (tnf_zip_from) { .fetch = tnf_source_fetch,
                               .ctx = (void *)(uintptr_t)r->source,
                               .size = r->source->size,
                               .arena = r->arena,
                               .max_directory = r->limits.header_bytes,
                               .max_members = MOST_MEMBERS,
                               .odd = tnf_stricter_odd,
                               .odd_ctx = r };
    TNF_TRY(tnf_zip_read(&x->zip, &x->from, e));
    x->from.odd = NULL; /* later reads, from any thread, cannot warn, so faults are errors */
    zr_key *keys = tnf_arena_array(r->arena, x->zip.n, sizeof *keys);
    x->where = tnf_arena_array(r->arena, x->zip.n, sizeof *x->where);
    if (!keys || !x->where)
        return tnf_arena_fail(r->arena, "a store", e);
    x->most = r->limits.decoded_bytes ? r->limits.decoded_bytes : UINT64_MAX; /* MOST_INFLATED */
    x->spool = -1;
    for (size_t i = 0; i < x->zip.n; i++) {
        const tnf_zip_member *m = &x->zip.members[i];
        if (m->method == TNF_ZIP_DEFLATED && m->size / MOST_INFLATED > m->stored)
            return tnf_fail(e, TNF_EFORMAT, m->at, "%llu bytes of %s cannot decompress to %llu",
                            (unsigned long long)m->stored, TNF_QUOTED(m->name),
                            (unsigned long long)m->size);
        s->packed = s->packed || m->method == TNF_ZIP_DEFLATED;
        if (m->name.n && m->name.p[m->name.n - 1] != '/') /* a directory entry has no data */
            keys[s->n++] = (zr_key) { m->name, m->size, i };
    }
    if (s->n)
        qsort(keys, s->n, sizeof *keys, tnf_zr_compare_keys);
    s->keys = keys;
    s->ctx = x;
    s->read = read_member;
    s->place = place_member;
    s->close = close_archive;
    pthread_mutex_init(&x->lock, NULL);
    return TNF_OK;
}

tnf_status tnf_zr_open_store(zr_store **out, tnf_reader *r, tnf_error *e)
{
    uint8_t head[4] = { 0 };
    const tnf_container *folder;
    if (r->source->size >= sizeof head)
        TNF_TRY(tnf_source_read(r->source, 0, head, sizeof head, e));
    if (memcmp(head, "PK", 2) == 0) {
        *out = tnf_arena_alloc(r->arena, sizeof **out);
        return *out ? open_archive(*out, r, e) : tnf_arena_fail(r->arena, "a store", e);
    }
    TNF_TRY(tnf_open_folder(r, &folder, e));
    return open_folder(out, r, folder, e);
}

bool tnf_zr_archive_has(const tnf_probe *p, bool (*is)(const char *name, size_t n))
{
    for (size_t at = 0; p->nhead - at >= 30 && memcmp(p->head + at, "PK\3\4", 4) == 0;) {
        size_t name = tnf_le16(p->head + at + 26), extra = tnf_le16(p->head + at + 28);
        uint64_t stored = tnf_le32(p->head + at + 18);
        if (name > p->nhead - at - 30)
            return false;
        if (is((const char *)p->head + at + 30, name))
            return true;
        uint64_t next = at + 30 + (uint64_t)name + extra + stored;
        if (next > p->nhead)
            return false;
        at = (size_t)next;
    }
    return false;
}
