/* SPDX-License-Identifier: MIT */
/* The content hash, version 2. It is the same for the same content in any file.
 *
 *   leaf     SHA-256 of "tenfold leaf 2\n" and 4 MiB of a part: decoded, little-endian, row by row
 *            for a dense tensor
 *   part     … of "tenfold part 2\n", the number of its bytes, and its leaves
 *   tensor   … of "tenfold tensor 2\n", layout, shape, and for each part (by role) its role, type,
 *            length and hash
 *   file     … of "tenfold content 2\n", for each tensor (by name) its name, hash and attributes,
 *            for each attribute of the file, and for each extra (by key) its key and bytes
 *
 * leaves.c computes the hashes of tensors. A text is its length (u64, little-endian) and its bytes;
 * a number is a u64. Attributes are a count and, sorted by key, key and value. A value is text:
 * JSON with exact types and sorted keys of maps. Attributes that are not content (uncounted.c) are
 * left out. The text maps of formats ("safetensors.metadata") are all called "metadata", since
 * formats take over each other's maps.
 */
#include "base/sized.h"
#include "core/look/leaves.h"
#include "wire/json.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_MAX  ((uint64_t)256 << 20) /* bytes of one attribute */
#define FLAT_ITEMS 1024u                 /* of an array, as text at once */
#define METADATA   ".metadata"

/* ------------------------------------------------------------- attributes */

bool tnf_is_text_map(const tnf_member *m)
{
    size_t n = sizeof METADATA - 1;
    return m->value.kind == TNF_MAP && m->key.n >= n &&
           memcmp(m->key.p + m->key.n - n, METADATA, n) == 0;
}

/* An array of numbers and texts, which needs no sorting. */
static bool is_flat(const tnf_value *v)
{
    for (size_t i = 0; v->kind == TNF_ARRAY && i < v->n; i++)
        if (v->as.items[i].kind == TNF_ARRAY || v->as.items[i].kind == TNF_MAP)
            return false;
    return v->kind == TNF_ARRAY && v->n > 0;
}

/* Makes the text of some items at a time, without the brackets around it. Hashes its bytes if there
 * is a digester, else counts them. */
static tnf_status put_some(tnf_digester *d, uint64_t *bytes, const tnf_value *array, tnf_buf *text,
                           tnf_error *e)
{
    *bytes = 0;
    for (size_t i = 0; i < array->n; i += FLAT_ITEMS) {
        size_t n = array->n - i < FLAT_ITEMS ? array->n - i : FLAT_ITEMS;
        const tnf_value some = { .kind = TNF_ARRAY, .n = n, .as.items = &array->as.items[i] };
        text->n = 0;
        tnf_json_put_typed(text, &some);
        TNF_TRY(tnf_buf_status(text, "an attribute", e));
        bool last = i + n == array->n;
        text->p[text->n - 1] = last ? ']' : ',';
        size_t skip = i > 0; /* keeps the first opening bracket */
        *bytes += text->n - skip;
        if (d)
            tnf_digest_update(d, text->p + skip, text->n - skip);
    }
    return TNF_OK;
}

/* Hashes a long array as put_value() does, but without a copy and without its complete text. */
static tnf_status put_flat(tnf_digester *d, const tnf_value *array, tnf_arena *a, tnf_error *e)
{
    tnf_buf text;
    uint64_t bytes;
    tnf_buf_init(&text, &a->alloc, VALUE_MAX);
    tnf_status status = put_some(NULL, &bytes, array, &text, e);
    if (status == TNF_OK) {
        tnf_content_number(d, bytes);
        status = put_some(d, &bytes, array, &text, e);
    }
    tnf_buf_free(&text);
    return status;
}

static tnf_status put_value(tnf_digester *d, const tnf_value *value, tnf_arena *a, tnf_error *e)
{
    tnf_value sorted;
    tnf_buf text;
    if (is_flat(value))
        return put_flat(d, value, a, e);
    TNF_TRY(tnf_value_copy(&sorted, value, a, UINT32_MAX, e));
    tnf_sort_maps(&sorted);
    tnf_buf_init(&text, &a->alloc, VALUE_MAX);
    tnf_json_put_typed(&text, &sorted);
    tnf_status status = tnf_buf_status(&text, "an attribute", e);
    if (status == TNF_OK)
        tnf_content_text(d, text.p, text.n);
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
        if (tnf_is_uncounted(m))
            continue;
        members[*kept] = (tnf_member) { m->key, tnf_counted_value(m) };
        if (tnf_is_text_map(m))
            members[*kept].key = (tnf_str) { &METADATA[1], sizeof METADATA - 2 };
        ++*kept;
    }
    *out = members;
    return TNF_OK;
}

static tnf_status put_attrs(tnf_digester *d, const tnf_value *map, tnf_arena *a, tnf_error *e)
{
    size_t kept;
    tnf_member *members;
    TNF_TRY(tnf_content_attrs(&members, &kept, map, a, e));
    if (kept)
        qsort(members, kept, sizeof *members, tnf_member_compare);
    tnf_content_number(d, kept);
    for (size_t i = 0; i < kept; i++) {
        tnf_content_text(d, members[i].key.p, members[i].key.n);
        TNF_TRY(put_value(d, &members[i].value, a, e));
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

static tnf_status put_tensors(tnf_digester *d, const tnf_catalog *c,
                              const uint8_t (*hashes)[TNF_HASH_BYTES], tnf_arena *a, tnf_error *e)
{
    struct named *names = tnf_arena_array(a, c->n, sizeof *names);
    if (!names)
        return tnf_arena_fail(a, "names", e);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!tnf_is_filler(&c->objects[i]))
            names[n++] = (struct named) { c->objects[i].name, i };
    qsort(names, n, sizeof *names, by_name);
    tnf_content_number(d, n);
    for (size_t i = 0; i < n; i++) {
        tnf_content_text(d, names[i].name.p, names[i].name.n);
        tnf_digest_update(d, hashes[names[i].i], TNF_HASH_BYTES);
        TNF_TRY(put_attrs(d, c->objects[names[i].i].attrs, a, e));
    }
    return TNF_OK;
}

static tnf_status take_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    (void)e;
    tnf_digest_update(ctx, bytes, n);
    return TNF_OK;
}

static tnf_status put_extras(tnf_digester *d, const tnf_catalog *c, tnf_arena *a, tnf_error *e)
{
    struct named *names = tnf_arena_array(a, c->nextras, sizeof *names);
    if (!names)
        return tnf_arena_fail(a, "extras", e);
    for (size_t i = 0; i < c->nextras; i++)
        names[i] = (struct named) { c->extras[i].key, i };
    if (c->nextras)
        qsort(names, c->nextras, sizeof *names, by_name);
    tnf_content_number(d, c->nextras);
    for (size_t i = 0; i < c->nextras; i++) {
        tnf_content_text(d, names[i].name.p, names[i].name.n);
        tnf_content_number(d, c->extras[names[i].i].bytes.nbytes);
        TNF_TRY(tnf_scan(&c->extras[names[i].i].bytes, take_bytes, d, e));
    }
    return TNF_OK;
}

static tnf_status hash_tensors(uint8_t *out, const tnf_file *file,
                               const uint8_t (*tensors)[TNF_HASH_BYTES], tnf_arena *a, tnf_error *e)
{
    const tnf_catalog *c = &file->catalog;
    tnf_digester d;
    TNF_TRY(tnf_content_begin(&d, "tenfold content 2\n", e));
    tnf_status status = put_tensors(&d, c, tensors, a, e);
    if (status == TNF_OK)
        status = put_attrs(&d, file->info.attrs, a, e);
    if (status == TNF_OK)
        status = put_extras(&d, c, a, e);
    tnf_digest_end(&d, status == TNF_OK ? out : NULL);
    return status;
}

tnf_status tnf_content_of_tensors(uint8_t out[TNF_HASH_BYTES], const tnf_file *file,
                                  const uint8_t (*tensors)[TNF_HASH_BYTES], tnf_error *e)
{
    tnf_arena arena;
    tnf_arena_init(&arena, &file->alloc, UINT64_MAX);
    tnf_status status = hash_tensors(out, file, tensors, &arena, e);
    tnf_arena_free(&arena);
    return status;
}

static tnf_status hash_file(uint8_t *out, const tnf_file *file, const tnf_hash_options *o,
                            tnf_arena *a, tnf_error *e)
{
    uint8_t(*tensors)[TNF_HASH_BYTES] = tnf_arena_array(a, file->catalog.n, sizeof *tensors);
    if (!tensors)
        return tnf_arena_fail(a, "hashes", e);
    TNF_TRY(tnf_need_whole(file, e));
    TNF_TRY(tnf_content_tensors(tensors, file, o, a, e));
    return hash_tensors(out, file, (const uint8_t(*)[TNF_HASH_BYTES])tensors, a, e);
}

tnf_status tnf_content_hash(uint8_t out[32], const tnf_file *file, const tnf_hash_options *options,
                            tnf_error *e)
{
    TNF_TRY(tnf_need(file, "file", e));
    tnf_hash_options o;
    tnf_arena arena;
    TNF_TRY(TNF_TAKE_OPTIONS(tnf_hash_options, &o, options, e));
    tnf_arena_init(&arena, &file->alloc, UINT64_MAX);
    tnf_status status = hash_file(out, file, &o, &arena, e);
    tnf_arena_free(&arena);
    return status;
}
