/* SPDX-License-Identifier: MIT */
/* The functions of format.h for files that are containers: zip archives and directories whose
 * members contain tensors.
 *
 *   member    front ── bytes of a part ── possibly more
 *             │skip │
 *   stored    the part is TNF_AT, at its place; deflated: TNF_ENCODED, with an origin of its own
 *             that stores the number of bytes in front
 */
#include "base/crc32.h"
#include "core/core.h"
#include "remote/list.h"

#include <string.h>

tnf_status tnf_open_zip(tnf_reader *r, tnf_container *out, tnf_error *e)
{
    uint64_t members = r->limits.objects;
    tnf_container_how how = { .arena = r->scratch,
                              .max_directory = r->limits.header_bytes,
                              .max_members = members < UINT32_MAX - 16 ? members + 16 : members,
                              .odd = tnf_stricter_odd,
                              .ctx = r };
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = tnf_container_zip(out, r->source, &how, &why);
    if (status != TNF_OK && tnf_lose(r, status, &why)) {
        tnf_container_close(out);
        how.walk = true;
        TNF_TRY(tnf_container_zip(out, r->source, &how, e));
    } else if (status != TNF_OK) {
        if (e)
            *e = why;
        return status;
    }
    tnf_trace(r, TNF_NO_OFFSET, "zip directory, %zu members", out->n);
    return TNF_OK;
}

/* Lists the directory of a file that is read over the network. */
static tnf_status list_remote(void *ctx, tnf_container_file_fn take, void *to, tnf_error *e)
{
    bool listed;
    TNF_TRY(tnf_remote_list(ctx, &listed, take, to, e));
    return listed ? TNF_OK
                  : tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                             "it is a directory, and http cannot list directories: download it "
                             "first, or read it from s3, gs, az or hf");
}

static tnf_status open_remote(void *ctx, tnf_source **out, tnf_str name, tnf_error *e)
{
    return tnf_remote_sibling(out, ctx, name, e);
}

static tnf_status open_container(tnf_container *out, const tnf_file *f,
                                 const tnf_container_how *how, tnf_error *e)
{
    tnf_remote_directory from = { list_remote, open_remote, f->source };
    if (f->path && tnf_scheme_has(f->path))
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "it is a directory, and a custom URL scheme cannot list directories");
    return f->source->remote ? tnf_container_remote(out, &from, how, e)
                             : tnf_container_folder(out, f->directory, f->path, how, e);
}

tnf_status tnf_open_folder(tnf_reader *r, const tnf_container **out, tnf_error *e)
{
    tnf_file *f = r->file;
    *out = f->folder;
    if (f->folder)
        return TNF_OK;
    if (!f->directory)
        return tnf_fail(
            e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
            "the file's directory is unknown, because the file was not opened by a path");
    tnf_container_how how = { .arena = r->arena,
                              .max_directory = r->limits.header_bytes,
                              .max_members = r->limits.objects };
    tnf_container *c = tnf_arena_alloc(r->arena, sizeof *c);
    if (!c)
        return tnf_arena_fail(r->arena, "a directory", e);
    tnf_status status = open_container(c, f, &how, e);
    if (status != TNF_OK) {
        tnf_container_close(c);
        return status;
    }
    f->folder = c;
    *out = c;
    tnf_trace(r, TNF_NO_OFFSET, "directory, %zu members", c->n);
    return TNF_OK;
}

/* The CRC of a part that ends where its member ends. */
static tnf_status make_digest(const tnf_digest **out, tnf_reader *r, uint32_t crc, bool of_stored,
                              tnf_error *e)
{
    struct {
        tnf_digest digest;
        uint8_t bytes[4];
    } *d = tnf_arena_alloc(r->arena, sizeof *d);
    if (!d)
        return tnf_arena_fail(r->arena, "a digest", e);
    for (int i = 0; i < 4; i++)
        d->bytes[i] = (uint8_t)(crc >> (24 - 8 * i));
    d->digest = (tnf_digest) { .algorithm = "crc32", .bytes = d->bytes, .n = 4 };
    d->digest.of_stored = of_stored;
    *out = &d->digest;
    return TNF_OK;
}

/* The file's own origin does not fit: the part is in another source, or there are bytes in
 * front. */
static tnf_status member_origin(tnf_part *part, tnf_reader *r, const tnf_source *source,
                                uint64_t skip, uint64_t whole, tnf_error *e)
{
    struct tnf_origin *o = tnf_arena_alloc(r->arena, sizeof *o);
    if (!o)
        return tnf_arena_fail(r->arena, "a tensor", e);
    *o = r->file->origin;
    o->source = source;
    o->skip = skip;
    o->whole = whole;
    part->origin = o;
    return TNF_OK;
}

tnf_status tnf_place_part(tnf_reader *r, tnf_part *part, const tnf_container_member *member,
                          const tnf_member_place *place, uint64_t skip, uint64_t n,
                          const uint32_t *front, tnf_error *e)
{
    if (skip > member->size || n > member->size - skip)
        return tnf_fail(e, TNF_ETRUNCATED, place->offset,
                        "the member %s ends inside its data: %s missing", TNF_QUOTED(member->name),
                        TNF_BYTES_ARE(n - (member->size > skip ? member->size - skip : 0)));
    bool raw = place->codec == TNF_CODEC_RAW;
    part->nbytes = n;
    part->payload = raw ? TNF_AT : TNF_ENCODED;
    part->codec = (uint8_t)place->codec;
    part->offset = raw ? place->offset + skip : place->offset;
    part->stored = raw ? n : place->stored;
    if (raw && place->source == r->source)
        part->origin = &r->file->origin;
    else
        TNF_TRY(member_origin(part, r, place->source, raw ? 0 : skip, raw ? 0 : member->size, e));
    if (!member->has_crc || !front || skip + n != member->size)
        return TNF_OK;
    return make_digest(&part->digest, r, tnf_crc32_behind(member->crc, *front, n), raw, e);
}

static tnf_status copy_origin(tnf_reader *r, const struct tnf_origin **out, const char *why,
                              bool slices, tnf_error *e)
{
    struct tnf_origin *o = tnf_arena_alloc(r->arena, sizeof *o);
    const char *copy = o ? tnf_arena_str(r->arena, why, strlen(why)) : NULL;
    if (!copy)
        return tnf_arena_fail(r->arena, "a tensor", e);
    *o = r->file->origin;
    o->unreadable = copy;
    o->slices = slices;
    *out = o;
    return TNF_OK;
}

tnf_status tnf_unreadable_origin(tnf_reader *r, const struct tnf_origin **out, const char *why,
                                 tnf_error *e)
{
    return copy_origin(r, out, why, false, e);
}

tnf_status tnf_slices_origin(tnf_reader *r, const struct tnf_origin **out, const char *why,
                             tnf_error *e)
{
    return copy_origin(r, out, why, true, e);
}

tnf_status tnf_add_extra_part(tnf_reader *r, tnf_str key, const tnf_part *part, tnf_error *e)
{
    tnf_extra extra = { .key = key, .bytes = *part };
    extra.bytes.role = "data";
    extra.bytes.type = tnf_type_of(TNF_U8);
    return tnf_catalog_add_extra(r->catalog, &extra, e);
}
