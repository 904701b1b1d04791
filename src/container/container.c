/* SPDX-License-Identifier: MIT */
/* Code that all kinds of containers share, and zip archives. */
#include "container/container.h"

#include "base/error.h"
#include "base/str.h"
#include "container/state.h"

#include <stdlib.h>
#include <string.h>

#define SCAN_BLOCK ((size_t)256 << 10)

/* ----------------------------------------------------- files of directories */

tnf_status tnf_members_add(tnf_members *m, tnf_str name, uint64_t size, tnf_error *e)
{
    const tnf_container_how *how = m->how;
    m->names += name.n;
    if (m->list.n / sizeof(tnf_container_member) >= how->max_members ||
        m->names > how->max_directory)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the directory has more than %llu files, or their names are too long",
                        (unsigned long long)how->max_members);
    const char *kept = tnf_arena_str(how->arena, name.p, name.n);
    if (!kept)
        return tnf_arena_fail(how->arena, "a directory", e);
    tnf_container_member c = {
        .name = { kept, name.n }, .at = TNF_NO_OFFSET, .size = size, .stored = size
    };
    tnf_buf_put(&m->list, &c, sizeof c);
    return tnf_buf_status(&m->list, "the directory", e);
}

static int by_name(const void *a, const void *b)
{
    return tnf_str_compare(((const tnf_container_member *)a)->name,
                           ((const tnf_container_member *)b)->name);
}

tnf_container_member *tnf_members_sorted(const tnf_members *m, size_t *n)
{
    *n = m->list.n / sizeof(tnf_container_member);
    tnf_container_member *members = tnf_arena_array(m->how->arena, *n, sizeof *members);
    if (members && *n) {
        memcpy(members, m->list.p, m->list.n);
        qsort(members, *n, sizeof *members, by_name);
    }
    return members;
}

/* -------------------------------------------------------------------- all */

static tnf_str content_name(const void *ctx, uint32_t i)
{
    return ((const tnf_container_state *)ctx)->members[i].name;
}

tnf_status tnf_container_begin(tnf_container *out, const tnf_container_member *members, size_t n,
                               tnf_container_state *s, tnf_error *e)
{
    uint32_t previous;
    bool ok = true;
    s->members = members;
    tnf_hash_init(&s->names, &s->arena->alloc, content_name, s);
    for (size_t i = 0; i < n && ok; i++)
        ok = tnf_hash_add(&s->names, (uint32_t)i, true, &previous);
    out->members = members;
    out->n = n;
    out->state = s;
    return ok ? TNF_OK : tnf_no_memory("names", e);
}

void tnf_container_close(tnf_container *c)
{
    tnf_container_state *s = c->state;
    if (!s)
        return;
    tnf_hash_free(&s->names);
    if (s->close)
        s->close(s);
    c->state = NULL;
}

size_t tnf_container_find(const tnf_container *c, tnf_str name)
{
    uint32_t at = tnf_hash_find(&c->state->names, name.p, name.n);
    return at == TNF_HASH_NONE ? SIZE_MAX : at;
}

tnf_status tnf_container_place(tnf_member_place *out, const tnf_container *c, size_t i,
                               tnf_error *e)
{
    return c->state->place(out, c->state, i, e);
}

tnf_status tnf_folder_fetch(const tnf_container *c, size_t i, uint64_t offset, void *dst, size_t n,
                            tnf_error *e)
{
    return c->state->fetch(c->state, i, offset, dst, n, e);
}

/* ---------------------------------------------------------------- reading */

static tnf_status read_place(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    const tnf_member_place *p = ctx;
    return tnf_source_read(p->source, p->offset + offset, dst, n, e);
}

tnf_status tnf_container_read(const tnf_member_place *place, const tnf_container_member *member,
                              uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    tnf_decoder *d;
    if (offset > member->size || n > member->size - offset)
        return tnf_fail(e, TNF_ETRUNCATED, place->offset, "%s has %llu bytes, and more are needed",
                        TNF_QUOTED(member->name), (unsigned long long)member->size);
    if (place->codec == TNF_CODEC_RAW)
        return tnf_source_read(place->source, place->offset + offset, dst, n, e);
    tnf_member_place copy = *place;
    tnf_encoded from = { read_place, &copy, place->stored, member->size };
    TNF_TRY(tnf_decoder_open(&d, place->codec, &from, NULL, e));
    tnf_status status = tnf_decoder_read(d, offset, dst, n, e);
    if (status == TNF_OK && offset + n == member->size)
        status = tnf_decoder_end(d, e);
    tnf_decoder_close(d);
    return status;
}

static tnf_status scan_blocks(tnf_decoder *d, tnf_member_place *place, uint64_t size,
                              uint8_t *block, tnf_take_fn take, void *ctx, tnf_error *e)
{
    for (uint64_t at = 0; at < size; at += SCAN_BLOCK) {
        size_t n = size - at < SCAN_BLOCK ? (size_t)(size - at) : SCAN_BLOCK;
        TNF_TRY(d ? tnf_decoder_read(d, at, block, n, e) : read_place(place, at, block, n, e));
        TNF_TRY(take(ctx, block, n, e));
    }
    return d ? tnf_decoder_end(d, e) : TNF_OK;
}

tnf_status tnf_container_scan(const tnf_member_place *place, const tnf_container_member *member,
                              tnf_take_fn take, void *ctx, tnf_error *e)
{
    tnf_member_place copy = *place;
    tnf_encoded from = { read_place, &copy, place->stored, member->size };
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_decoder *d = NULL;
    if (place->codec != TNF_CODEC_RAW)
        TNF_TRY(tnf_decoder_open(&d, place->codec, &from, NULL, e));
    uint8_t *block = tnf_alloc(&a, SCAN_BLOCK);
    tnf_status status = block ? scan_blocks(d, &copy, member->size, block, take, ctx, e)
                              : tnf_no_memory("reading", e);
    tnf_free(&a, block, SCAN_BLOCK);
    tnf_decoder_close(d);
    return status;
}

/* -------------------------------------------------------------------- zip */

typedef struct zip_state {
    tnf_container_state all;
    tnf_zip zip;
    tnf_zip_from from;
    const tnf_source *source;
} zip_state;

static const uint8_t *find_near(const tnf_member_near *near, uint64_t offset, size_t n)
{
    bool has = offset >= near->at && offset - near->at <= near->n &&
               n <= near->n - (size_t)(offset - near->at);
    return has ? near->bytes + (offset - near->at) : NULL;
}

static tnf_status fetch_near(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    tnf_member_near *near = ctx;
    uint64_t left = offset < near->source->size ? near->source->size - offset : 0;
    size_t more = left < sizeof near->bytes ? (size_t)left : sizeof near->bytes;
    if (n > more) /* longer than usual, or beyond the end, which the next call reports */
        return tnf_source_read(near->source, offset, dst, n, e);
    if (!find_near(near, offset, n)) {
        near->n = 0;
        TNF_TRY(tnf_source_read(near->source, offset, near->bytes, more, e));
        near->at = offset;
        near->n = more;
    }
    memcpy(dst, find_near(near, offset, n), n);
    return TNF_OK;
}

static tnf_status place_member(tnf_member_place *out, const zip_state *z, size_t i,
                               const tnf_zip_from *from, tnf_error *e)
{
    const tnf_zip_member *m = &z->zip.members[i];
    *out = (tnf_member_place) { .source = z->source, .stored = m->stored };
    out->codec = m->method == TNF_ZIP_DEFLATED ? TNF_CODEC_DEFLATE : TNF_CODEC_RAW;
    return tnf_zip_locate(&out->offset, from, m, e);
}

static tnf_status place_zip(tnf_member_place *out, const tnf_container_state *s, size_t i,
                            tnf_error *e)
{
    const zip_state *z = (const zip_state *)(const void *)s;
    return place_member(out, z, i, &z->from, e);
}

tnf_status tnf_container_place_near(tnf_member_place *out, tnf_member_near *near,
                                    const tnf_container *c, size_t i, tnf_error *e)
{
    const zip_state *z = (const zip_state *)(const void *)c->state;
    near->at = near->n = 0;
    if (c->state->place != place_zip ||
        z->source->remote) /* remote sources read ahead by themselves */
        return tnf_container_place(out, c, i, e);
    tnf_zip_from from = z->from;
    near->source = z->source;
    from.ctx = near;
    from.fetch = fetch_near;
    return place_member(out, z, i, &from, e);
}

tnf_status tnf_container_head(const tnf_member_near *near, const tnf_member_place *place,
                              const tnf_container_member *member, void *dst, size_t n, tnf_error *e)
{
    bool stored = place->codec == TNF_CODEC_RAW && n <= member->size;
    const uint8_t *bytes = stored ? find_near(near, place->offset, n) : NULL;
    if (!bytes)
        return tnf_container_read(place, member, 0, dst, n, e);
    memcpy(dst, bytes, n);
    return TNF_OK;
}

void tnf_container_expect(const tnf_source *source, const tnf_zip *zip)
{
    for (size_t i = 0; source->remote && i < zip->n; i++) {
        const tnf_zip_member *m = &zip->members[i];
        uint64_t room = m->limit > m->header ? m->limit - m->header : 0;
        tnf_source_advise(source, m->header, room < 2048 ? room : 2048, TNF_WILL_NEED);
    }
}

tnf_status tnf_container_zip(tnf_container *out, const tnf_source *source,
                             const tnf_container_how *how, tnf_error *e)
{
    *out = (tnf_container) { 0 };
    zip_state *z = tnf_arena_alloc(how->arena, sizeof *z);
    if (!z)
        return tnf_arena_fail(how->arena, "a zip archive", e);
    z->all = (tnf_container_state) { .arena = how->arena, .place = place_zip };
    z->source = source;
    z->from = (tnf_zip_from) { .fetch = tnf_source_fetch,
                               .ctx = (void *)(uintptr_t)source,
                               .size = source->size,
                               .arena = how->arena,
                               .max_directory = how->max_directory,
                               .max_members = how->max_members,
                               .odd = how->odd,
                               .odd_ctx = how->ctx };
    TNF_TRY(how->walk ? tnf_zip_walk(&z->zip, &z->from, e) : tnf_zip_read(&z->zip, &z->from, e));
    tnf_container_member *members = tnf_arena_array(how->arena, z->zip.n, sizeof *members);
    if (!members)
        return tnf_arena_fail(how->arena, "a zip archive", e);
    tnf_container_expect(source, &z->zip);
    for (size_t i = 0; i < z->zip.n; i++) {
        const tnf_zip_member *m = &z->zip.members[i];
        members[i] = (tnf_container_member) { .name = m->name,
                                              .at = m->at,
                                              .stored = m->stored,
                                              .size = m->size,
                                              .crc = m->crc,
                                              .has_crc = true,
                                              .deflated = m->method == TNF_ZIP_DEFLATED };
        members[i].directory = m->name.n && m->name.p[m->name.n - 1] == '/';
    }
    out->comment = z->zip.comment;
    return tnf_container_begin(out, members, z->zip.n, &z->all, e);
}
