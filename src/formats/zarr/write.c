/* SPDX-License-Identifier: MIT */
/* Writes a store: a group for every directory in names, an array for every tensor.
 *
 *   chunk    complete rows, up to about 4 MiB, so tensors are streamed front to back
 *   shard    several chunks in a file, followed by their index
 *
 * A directory is made if the path says so, else a zip archive of stored members. */
#include "formats/zarr/write.h"

#include "base/crc32.h"
#include "base/crc32c.h"
#include "codec/blocks.h"
#include "codec/blosc.h"
#include "container/folder_sink.h"
#include "container/zip_sink.h"
#include "formats/zarr/zr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET    ((uint64_t)4 << 20)
#define MOST_ROW  ((uint64_t)1 << 30) /* longer rows are divided */
#define MAX_ENTRY ((uint64_t)3 << 30)

const tnf_option_info tnf_zr_write_options[] = {
    { "version", TNF_OPTION_CHOICE, "3|2", "3", "version of Zarr" },
    { "chunks", TNF_OPTION_UINT, NULL, "4M",
      "approximate size of a chunk: complete rows, at least one" },
    { "codec", TNF_OPTION_CHOICE, "zstd|gzip|none", "zstd", "how chunks are compressed" },
    { "level", TNF_OPTION_UINT, NULL, "0", "level of the codec; 0: its own default" },
    { "shard", TNF_OPTION_UINT, NULL, "0",
      "number of chunks per shard, one file (version 3); 0: each chunk is a separate file" },
    { 0 },
};

typedef struct writing {
    tnf_writer *w;
    tnf_zip_sink zip;
    bool v3;
    tnf_str *groups; /* all groups, sorted */
    size_t ngroups;
    /* Buffers reused for all tensors: the document, the current chunk, a compressed chunk or a
     * shard, and its index. */
    tnf_buf document, bytes, packet, index;
} writing;

/* ----------------------------------------------------------------- members */

static tnf_status put_member(writing *x, tnf_str name, const void *bytes, size_t n, tnf_error *e)
{
    tnf_zip_put m = { .name = name };
    if (!x->w->folder) {
        TNF_TRY(tnf_zip_sink_member(&x->zip, &m, e));
        TNF_TRY(tnf_put(x->w, bytes, n, e));
        return tnf_zip_sink_member_end(&x->zip, n, tnf_crc32(0, bytes, n), e);
    }
    tnf_sink *sink;
    TNF_TRY(tnf_folder_sink_member(x->w->folder, name, &sink, e));
    TNF_TRY(tnf_sink_write(sink, bytes, n, e));
    return tnf_folder_sink_member_end(x->w->folder, e);
}

/* PATH/NAME */
static tnf_status put_at(writing *x, tnf_str path, const char *name, const tnf_buf *b, tnf_error *e)
{
    size_t n = path.n + (path.n > 0) + strlen(name);
    char *key = tnf_arena_raw(x->w->scratch, n + 1);
    TNF_TRY(tnf_buf_status(b, "the document", e));
    if (!key)
        return tnf_arena_fail(x->w->scratch, "a name", e);
    memcpy(key, path.p, path.n);
    key[path.n] = '/';
    memcpy(key + path.n + (path.n > 0), name, strlen(name));
    return put_member(x, (tnf_str) { key, n }, b->p, b->n, e);
}

/* --------------------------------------------------------------- documents */

static void put_dims(tnf_buf *b, const uint64_t *dims, uint32_t rank)
{
    tnf_buf_puts(b, "[");
    for (uint32_t i = 0; i < rank; i++)
        tnf_buf_printf(b, "%s%llu", i ? ", " : "", (unsigned long long)dims[i]);
    tnf_buf_puts(b, "]");
}

/* A JSON object from an attribute; "{}" if there is none. */
static tnf_status json_of(tnf_str *out, const tnf_value *v, tnf_error *e)
{
    *out = (tnf_str) { "{}", 2 };
    if (!v)
        return TNF_OK;
    if (v->kind != TNF_JSON || v->n < 2 || (v->as.s[0] != '{' && v->as.s[0] != '['))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "an attribute of Zarr is not a JSON object");
    *out = (tnf_str) { v->as.s, v->n };
    return TNF_OK;
}

/* Writes the attributes of the root, with metadata that have no place of their own. */
static tnf_status root_attrs(tnf_buf *b, const writing *x, tnf_error *e)
{
    const tnf_value attrs = tnf_attrs_value(&x->w->catalog->attrs);
    tnf_str text;
    TNF_TRY(json_of(&text, tnf_value_get(&attrs, "zarr.attrs"), e));
    bool implied = x->ngroups && !tnf_value_get(&attrs, "zarr.groups");
    if (!x->w->ntext && !implied) {
        tnf_buf_put(b, text.p, text.n);
        return TNF_OK;
    }
    size_t end = text.n - 1;
    while (end > 1 && strchr(" \t\r\n", text.p[end - 1]))
        end--;
    bool any = false;
    for (size_t i = 1; i < end; i++)
        any = any || !strchr(" \t\r\n", text.p[i]);
    tnf_buf_put(b, text.p, end);
    tnf_buf_puts(b, any ? ", " : "");
    if (implied)
        tnf_buf_puts(b, x->w->ntext ? "\"" ZR_IMPLIED "\": true, " : "\"" ZR_IMPLIED "\": true");
    tnf_buf_puts(b, x->w->ntext ? "\"" ZR_OWN "\": {" : "");
    for (size_t i = 0; i < x->w->ntext; i++) {
        const tnf_member *m = &x->w->text[i];
        tnf_buf_puts(b, i ? ", " : "");
        tnf_json_put_string(b, m->key.p, m->key.n);
        tnf_buf_puts(b, ": ");
        tnf_json_put_string(b, m->value.as.s, m->value.n);
    }
    tnf_buf_puts(b, x->w->ntext ? "}}" : "}");
    return TNF_OK;
}

static tnf_status put_group(writing *x, tnf_str path, const char *attrs, size_t n, tnf_error *e)
{
    tnf_buf b;
    tnf_status status;
    tnf_buf_init(&b, &x->w->scratch->alloc, MAX_ENTRY);
    if (x->v3) {
        tnf_buf_puts(&b, "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": ");
        tnf_buf_put(&b, attrs, n);
        tnf_buf_puts(&b, "}");
        status = put_at(x, path, "zarr.json", &b, e);
    } else {
        tnf_buf_puts(&b, "{\"zarr_format\": 2}");
        status = put_at(x, path, ".zgroup", &b, e);
        b.n = 0;
        tnf_buf_put(&b, attrs, n);
        if (status == TNF_OK && !(n == 2 && memcmp(attrs, "{}", 2) == 0))
            status = put_at(x, path, ".zattrs", &b, e);
    }
    tnf_buf_free(&b);
    return status;
}

static tnf_status put_root(writing *x, tnf_error *e)
{
    tnf_buf b;
    tnf_buf_init(&b, &x->w->scratch->alloc, MAX_ENTRY);
    tnf_status status = root_attrs(&b, x, e);
    if (status == TNF_OK)
        status = tnf_buf_status(&b, "the attributes", e);
    if (status == TNF_OK)
        status = put_group(x, (tnf_str) { "", 0 }, (const char *)b.p, b.n, e);
    tnf_buf_free(&b);
    return status;
}

/* Finds all directories of names, and the groups of the source. */
static tnf_status find_groups(writing *x, const tnf_value *told, tnf_error *e)
{
    const tnf_catalog *c = x->w->catalog;
    size_t n = told ? told->n : 0, used = 0;
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->objects[i].name.n; k++)
            n += c->objects[i].name.p[k] == '/';
    x->groups = tnf_arena_array(x->w->scratch, n, sizeof *x->groups);
    if (!x->groups)
        return tnf_arena_fail(x->w->scratch, "groups", e);
    for (size_t i = 0; told && i < told->n; i++) {
        x->groups[used++] = told->as.members[i].key;
        if (!tnf_zr_good_path(told->as.members[i].key))
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "zarr.groups has %s, which is not a path",
                            TNF_QUOTED(told->as.members[i].key));
    }
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->objects[i].name.n; k++)
            if (c->objects[i].name.p[k] == '/')
                x->groups[used++] = (tnf_str) { c->objects[i].name.p, k };
    if (used)
        qsort(x->groups, used, sizeof *x->groups, tnf_str_order);
    for (size_t i = 0; i < used; i++)
        if (x->ngroups == 0 || tnf_str_order(&x->groups[x->ngroups - 1], &x->groups[i]) != 0)
            x->groups[x->ngroups++] = x->groups[i];
    return TNF_OK;
}

static tnf_status put_groups(writing *x, tnf_error *e)
{
    const tnf_value attrs = tnf_attrs_value(&x->w->catalog->attrs);
    const tnf_value *told = tnf_value_get(&attrs, "zarr.groups");
    if (told && told->kind != TNF_MAP)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "zarr.groups is not a map");
    TNF_TRY(find_groups(x, told, e));
    TNF_TRY(put_root(x, e));
    for (size_t i = 0; i < x->ngroups; i++) {
        tnf_str text, path = x->groups[i];
        TNF_TRY(json_of(&text, told ? tnf_value_get_n(told, path.p, path.n) : NULL, e));
        TNF_TRY(put_group(x, path, text.p, text.n, e));
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------ chunks */

/* Streams a tensor: elements arrive in order and fill one chunk after the other. */
typedef struct filling {
    writing *x;
    const tnf_object *o;
    uint64_t chunk[ZR_MAX_RANK], outer[ZR_MAX_RANK]; /* outer: shape of a shard, or the same */
    uint32_t axis;      /* axis that is divided; chunks have one element on the axes before it */
    uint64_t inner;     /* bytes of one step of the axis */
    uint64_t per_shard; /* chunks per shard; 0: no shards */
    unsigned packed;    /* bits of an element that takes a byte here; 0: not packed */
    uint64_t left;      /* packed elements still to come */
    uint64_t full;      /* bytes of a full chunk */
    uint64_t along, outside; /* indices of the chunk on the axis, and on the axes before */
} filling;

static uint64_t bytes_of(const tnf_object *o)
{
    uint32_t bits = o->parts->type->bits;
    return bits < 8 ? 1 : bits / 8;
}

/* The size of one step of this axis; MOST_ROW + 1 if it is larger. */
static uint64_t row_bytes(const filling *f, uint32_t axis)
{
    uint64_t size = bytes_of(f->o);
    for (uint32_t i = f->o->rank; i-- > axis + 1;)
        if (!tnf_ckd_mul(&size, size, f->chunk[i]) || size > MOST_ROW)
            return MOST_ROW + 1;
    return size;
}

/* Chooses the shape of chunks: complete rows, unless one is too long. Without elements there are no
 * chunks. */
static void cut_chunks(filling *f)
{
    const tnf_object *o = f->o;
    uint64_t target = f->x->w->options[ZR_WRITE_CHUNKS].u, rows;
    bool none = tnf_elements(o) == 0;
    target = target > MOST_ROW ? MOST_ROW : target ? target : TARGET;
    for (uint32_t i = 0; i < o->rank; i++)
        f->chunk[i] = none ? 1 : o->shape[i];
    while (f->axis + 1 < o->rank && row_bytes(f, f->axis) > MOST_ROW)
        f->chunk[f->axis++] = 1;
    f->inner = row_bytes(f, f->axis);
    rows = f->inner && target / f->inner > 0 ? target / f->inner : 1;
    if (o->rank)
        f->chunk[f->axis] = rows < f->chunk[f->axis] ? rows : f->chunk[f->axis];
    f->full = f->inner * (o->rank ? f->chunk[f->axis] : 1);
}

/* Puts as many chunks into a shard as the option says, but not more than the axis has. */
static void cut_shards(filling *f)
{
    const tnf_object *o = f->o;
    uint64_t asked = f->x->w->options[ZR_WRITE_SHARD].u;
    memcpy(f->outer, f->chunk, sizeof f->outer);
    if (!f->x->v3 || !o->rank || !asked)
        return;
    uint64_t size = o->shape[f->axis], chunk = f->chunk[f->axis];
    uint64_t most = chunk ? size / chunk + (size % chunk != 0) : 0;
    f->per_shard = asked < most ? asked : most ? most : 1;
    f->outer[f->axis] *= f->per_shard; /* cannot overflow: at most one chunk more than the axis */
}

/* Compresses the chunk and appends it to the packet. */
static tnf_status pack_chunk(filling *f, tnf_error *e)
{
    const tnf_option_value *o = f->x->w->options;
    static const uint8_t zeros[4096];
    while (f->x->bytes.n < f->full && f->x->bytes.status == TNF_OK)
        tnf_buf_put(&f->x->bytes, zeros,
                    f->full - f->x->bytes.n < sizeof zeros ? (size_t)(f->full - f->x->bytes.n)
                                                           : sizeof zeros);
    TNF_TRY(tnf_buf_status(&f->x->bytes, "the chunk", e));
    uint64_t at = f->x->packet.n;
    if (o[ZR_WRITE_CODEC].u == 0)
        TNF_TRY(tnf_zstd_encode(&f->x->packet, f->x->bytes.p, f->x->bytes.n,
                                o[ZR_WRITE_LEVEL].u ? (int)o[ZR_WRITE_LEVEL].u : 3, e));
    else if (o[ZR_WRITE_CODEC].u == 1)
        TNF_TRY(tnf_gzip_encode(&f->x->packet, f->x->bytes.p, f->x->bytes.n, e));
    else
        tnf_buf_put(&f->x->packet, f->x->bytes.p, f->x->bytes.n);
    tnf_buf_u64(&f->x->index, at);
    tnf_buf_u64(&f->x->index, f->x->packet.n - at);
    f->x->bytes.n = 0;
    return tnf_buf_status(&f->x->packet, "the chunk", e);
}

/* PATH/c/0/1 or PATH/0.1 */
static tnf_status put_packet(filling *f, uint64_t along, tnf_error *e)
{
    const tnf_object *o = f->o;
    uint64_t at[ZR_MAX_RANK] = { 0 }, left = f->outside;
    size_t room = o->name.n + 8 + (size_t)o->rank * 22;
    char *key = tnf_arena_raw(f->x->w->scratch, room);
    if (!key)
        return tnf_arena_fail(f->x->w->scratch, "a name", e);
    for (uint32_t i = f->axis; i-- > 0; left /= o->shape[i])
        at[i] = left % o->shape[i];
    if (o->rank)
        at[f->axis] = along;
    memcpy(key, o->name.p, o->name.n);
    size_t n = o->name.n;
    n += (size_t)snprintf(key + n, room - n, f->x->v3 ? "/c" : o->rank ? "/" : "/0");
    for (uint32_t i = 0; i < o->rank; i++)
        n += (size_t)snprintf(key + n, room - n, "%s%llu",
                              f->x->v3 ? "/"
                              : i      ? "."
                                       : "",
                              (unsigned long long)at[i]);
    return put_member(f->x, (tnf_str) { key, n }, f->x->packet.p, f->x->packet.n, e);
}

static tnf_status end_packet(filling *f, uint64_t along, tnf_error *e)
{
    if (f->per_shard) {
        while (f->x->index.n < 16 * f->per_shard && f->x->index.status == TNF_OK)
            tnf_buf_u64(&f->x->index, UINT64_MAX);
        TNF_TRY(tnf_buf_status(&f->x->index, "the shard", e));
        tnf_buf_put(&f->x->packet, f->x->index.p, f->x->index.n);
        tnf_buf_u32(&f->x->packet, tnf_crc32c(0, f->x->index.p, f->x->index.n));
        TNF_TRY(tnf_buf_status(&f->x->packet, "the shard", e));
    }
    TNF_TRY(put_packet(f, along, e));
    f->x->packet.n = f->x->index.n = 0;
    return TNF_OK;
}

/* Ends a chunk, which is full, or the last one of the axis. */
static tnf_status end_chunk(filling *f, bool last, tnf_error *e)
{
    uint64_t per = f->per_shard ? f->per_shard : 1;
    TNF_TRY(pack_chunk(f, e));
    if (last || (f->along + 1) % per == 0)
        TNF_TRY(end_packet(f, f->along / per, e));
    f->along = last ? 0 : f->along + 1;
    f->outside += last;
    return TNF_OK;
}

/* Plain elements, one or more bytes each. */
static tnf_status take_plain(filling *f, const uint8_t *p, size_t n, tnf_error *e)
{
    const tnf_object *o = f->o;
    uint64_t axis = o->rank ? o->shape[f->axis] * f->inner : f->inner; /* in bytes, complete */
    while (n > 0) {
        uint64_t begun = f->along * f->full, end = axis - begun < f->full ? axis - begun : f->full;
        size_t some = end - f->x->bytes.n < n ? (size_t)(end - f->x->bytes.n) : n;
        tnf_buf_put(&f->x->bytes, p, some);
        TNF_TRY(tnf_buf_status(&f->x->bytes, "the chunk", e));
        p += some;
        n -= some;
        if (f->x->bytes.n == end)
            TNF_TRY(end_chunk(f, begun + end == axis, e));
    }
    return TNF_OK;
}

static tnf_status take_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    filling *f = ctx;
    const uint8_t *p = bytes;
    uint8_t block[4096];
    if (!f->packed)
        return take_plain(f, bytes, n, e);
    unsigned per = 8 / f->packed;
    for (size_t i = 0; i < n;) { /* one byte per element */
        size_t made = 0;
        for (; i < n && made + per <= sizeof block; i++)
            for (unsigned k = 0; k < per && f->left > 0; k++, f->left--)
                block[made++] = (uint8_t)(p[i] >> k * f->packed & ((1u << f->packed) - 1));
        TNF_TRY(take_plain(f, block, made, e));
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------ arrays */

static void put_codecs_v3(tnf_buf *b, const filling *f)
{
    const tnf_option_value *o = f->x->w->options;
    tnf_buf_puts(b, bytes_of(f->o) == 1 ? "[{\"name\": \"bytes\"}"
                                        : "[{\"name\": \"bytes\", \"configuration\": {\"endian\": "
                                          "\"little\"}}");
    if (o[ZR_WRITE_CODEC].u == 0)
        tnf_buf_printf(b,
                       ", {\"name\": \"zstd\", \"configuration\": {\"level\": %u, \"checksum\": "
                       "false}}",
                       o[ZR_WRITE_LEVEL].u ? (unsigned)o[ZR_WRITE_LEVEL].u : 3u);
    else if (o[ZR_WRITE_CODEC].u == 1)
        tnf_buf_puts(b, ", {\"name\": \"gzip\", \"configuration\": {\"level\": 6}}");
    tnf_buf_puts(b, "]");
}

static void put_fill(tnf_buf *b, const tnf_type *t, bool v3)
{
    if (t->number == TNF_NUMBER_BOOL)
        tnf_buf_puts(b, "false");
    else if (t->number == TNF_NUMBER_COMPLEX)
        tnf_buf_puts(b, "[0.0, 0.0]");
    else
        tnf_buf_puts(b, t->number == TNF_NUMBER_FLOAT && (v3 || t->bits >= 16) ? "0.0" : "0");
}

static tnf_status put_array_v3(filling *f, tnf_buf *b, const char *type, tnf_str attrs,
                               const tnf_value *names, tnf_error *e)
{
    const tnf_object *o = f->o;
    tnf_buf_puts(b, "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": ");
    put_dims(b, o->shape, o->rank);
    tnf_buf_printf(b,
                   ", \"data_type\": \"%s\", \"chunk_grid\": {\"name\": \"regular\", "
                   "\"configuration\": {\"chunk_shape\": ",
                   type);
    put_dims(b, f->outer, o->rank);
    tnf_buf_puts(b, "}}, \"chunk_key_encoding\": {\"name\": \"default\", \"configuration\": "
                    "{\"separator\": \"/\"}}, \"fill_value\": ");
    put_fill(b, o->parts->type, true);
    tnf_buf_puts(b, ", \"codecs\": ");
    if (f->per_shard) {
        tnf_buf_puts(b, "[{\"name\": \"sharding_indexed\", \"configuration\": {\"chunk_shape\": ");
        put_dims(b, f->chunk, o->rank);
        tnf_buf_puts(b, ", \"codecs\": ");
        put_codecs_v3(b, f);
        tnf_buf_puts(b, ", \"index_codecs\": [{\"name\": \"bytes\", \"configuration\": "
                        "{\"endian\": \"little\"}}, {\"name\": \"crc32c\"}], "
                        "\"index_location\": \"end\"}}]");
    } else {
        put_codecs_v3(b, f);
    }
    tnf_buf_puts(b, ", \"attributes\": ");
    tnf_buf_put(b, attrs.p, attrs.n);
    if (names && names->kind == TNF_JSON) {
        tnf_buf_puts(b, ", \"dimension_names\": ");
        tnf_buf_put(b, names->as.s, names->n);
    }
    tnf_buf_puts(b, "}");
    return put_at(f->x, o->name, "zarr.json", b, e);
}

static tnf_status put_array_v2(filling *f, tnf_buf *b, const char *type, tnf_str attrs,
                               tnf_error *e)
{
    const tnf_object *o = f->o;
    const tnf_option_value *how = f->x->w->options;
    tnf_buf_puts(b, "{\"zarr_format\": 2, \"shape\": ");
    put_dims(b, o->shape, o->rank);
    tnf_buf_puts(b, ", \"chunks\": ");
    put_dims(b, f->chunk, o->rank);
    tnf_buf_printf(b, ", \"dtype\": \"%s\", \"compressor\": ", type);
    if (how[ZR_WRITE_CODEC].u == 0)
        tnf_buf_printf(b, "{\"id\": \"zstd\", \"level\": %u}",
                       how[ZR_WRITE_LEVEL].u ? (unsigned)how[ZR_WRITE_LEVEL].u : 3u);
    else
        tnf_buf_puts(b, how[ZR_WRITE_CODEC].u == 1 ? "{\"id\": \"gzip\", \"level\": 6}" : "null");
    tnf_buf_puts(b, ", \"fill_value\": ");
    put_fill(b, o->parts->type, false);
    tnf_buf_puts(b, ", \"order\": \"C\", \"filters\": null, \"dimension_separator\": \".\"}");
    TNF_TRY(put_at(f->x, o->name, ".zarray", b, e));
    b->n = 0;
    tnf_buf_put(b, attrs.p, attrs.n);
    return tnf_str_is(attrs, "{}") ? TNF_OK : put_at(f->x, o->name, ".zattrs", b, e);
}

static tnf_status put_document(filling *f, tnf_error *e)
{
    const tnf_object *o = f->o;
    const tnf_value *names = tnf_value_get(o->attrs, "zarr.dimension_names");
    tnf_buf *b = &f->x->document;
    char type[32];
    tnf_str attrs;
    TNF_TRY(json_of(&attrs, tnf_value_get(o->attrs, "zarr.attrs"), e));
    tnf_zr_type_name(type, sizeof type, o->parts->type, f->x->v3);
    b->n = 0;
    return f->x->v3 ? put_array_v3(f, b, type, attrs, names, e)
                    : put_array_v2(f, b, type, attrs, e);
}

static tnf_status put_array(writing *x, const tnf_object *o, tnf_error *e)
{
    filling f = { .x = x, .o = o, .packed = o->parts->type->bits };
    f.packed = f.packed < 8 ? f.packed : 0;
    f.left = tnf_elements(o);
    cut_chunks(&f);
    cut_shards(&f);
    x->bytes.n = x->packet.n = x->index.n = 0;
    TNF_TRY(put_document(&f, e));
    return tnf_put_through(x->w, o->parts, false, take_bytes, &f, e);
}

static tnf_status put_all(writing *x, tnf_error *e)
{
    const uint32_t *order;
    TNF_TRY(tnf_sorted(x->w, &order, NULL, e));
    TNF_TRY(put_groups(x, e));
    for (size_t i = 0; i < x->w->catalog->n; i++)
        TNF_TRY(put_array(x, tnf_nth(x->w, order, i), e));
    return x->w->folder ? TNF_OK : tnf_zip_sink_end(&x->zip, (tnf_str) { "", 0 }, e);
}

tnf_status tnf_zr_write(tnf_writer *w, tnf_error *e)
{
    writing x = { .w = w, .v3 = w->options[ZR_WRITE_VERSION].u == 0 };
    if (!x.v3 && w->options[ZR_WRITE_SHARD].u)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "Zarr 2 has no shards");
    if (w->options[ZR_WRITE_SHARD].u > 1u << 20)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a shard can have at most 1,048,576 chunks");
    tnf_buf *const buffers[] = { &x.document, &x.bytes, &x.packet, &x.index };
    for (size_t i = 0; i < 4; i++)
        tnf_buf_init(buffers[i], &w->scratch->alloc, i == 2 ? UINT64_MAX : MAX_ENTRY);
    if (!w->folder)
        tnf_zip_sink_begin(&x.zip, w->sink, TNF_ZIP_PYTHON, &w->scratch->alloc);
    tnf_status status = put_all(&x, e);
    if (!w->folder)
        tnf_zip_sink_free(&x.zip);
    for (size_t i = 0; i < 4; i++)
        tnf_buf_free(buffers[i]);
    return status;
}
