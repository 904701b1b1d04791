/* SPDX-License-Identifier: MIT */
/* Maps the words of zTensor 2 to those of the model.
 *
 *   in the file                        in the model
 *   complex64, complex128              c64, c128
 *   zt.sparse_csr/1, zt.mx/1 …         sparse_csr/1, mx/1 …
 *   tenfold.bit, tenfold.strings/1 …   bit, strings/1 …: the format has no such words
 *   anything else                      unchanged, as a type or layout without rules; after a "?" if
 *                                      the model uses the word otherwise
 */
#include "formats/ztensor2/zt2.h"

#include "base/hex.h"

#include <inttypes.h>
#include <stdio.h>

#define OURS "tenfold."

typedef struct word {
    const char *name, *id; /* in a file, in the model */
} word;

/* Logical types. The format pins each to a dtype, except Tenfold's own types, which it does not
 * define. */
static const word types[] = {
    { "bool", "bool" },
    { "f8_e4m3fn", "f8_e4m3fn" },
    { "f8_e5m2", "f8_e5m2" },
    { "f8_e4m3fnuz", "f8_e4m3fnuz" },
    { "f8_e5m2fnuz", "f8_e5m2fnuz" },
    { "f8_e8m0", "f8_e8m0" },
    { "f4_e2m1", "f4_e2m1" },
    { "complex64", "c64" },
    { "complex128", "c128" },
    { OURS "bit", "bit" },
    { OURS "f6_e2m3", "f6_e2m3" },
    { OURS "f6_e3m2", "f6_e3m2" },
    { OURS "i4", "i4" },
    { OURS "u4", "u4" },
    { OURS "i2", "i2" },
    { OURS "u2", "u2" },
    { OURS "i128", "i128" },
    { OURS "u128", "u128" },
};

static const word layouts[] = {
    { "dense", "dense" },
    { "zt.sparse_csr/1", "sparse_csr/1" },
    { "zt.sparse_coo/1", "sparse_coo/1" },
    { "zt.quant_group/1", "quant_group/1" },
    { "zt.mx/1", "mx/1" },
    { OURS "strings/1", "strings/1" },
    { OURS "pq/1", "pq/1" },
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const word *word_named(const word *words, size_t n, tnf_str name)
{
    for (size_t i = 0; i < n; i++)
        if (tnf_str_is(name, words[i].name))
            return &words[i];
    return NULL;
}

static const word *word_for(const word *words, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i].id, id) == 0)
            return &words[i];
    return NULL;
}

bool tnf_zt2_dtype(tnf_dtype *out, tnf_str name)
{
    for (int i = 0; i < TNF_DTYPE_COUNT; i++)
        if (tnf_str_is(name, tnf_type_of((tnf_dtype)i)->id)) {
            *out = (tnf_dtype)i;
            return true;
        }
    return false;
}

/* ---------------------------------------------------------------- digests */

/* [a-z0-9]+:[0-9a-f]+ */
bool tnf_zt2_digest_ok(tnf_str s)
{
    size_t i = 0;
    while (i < s.n && ((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9')))
        i++;
    if (i == 0 || i + 1 >= s.n || s.p[i] != ':')
        return false;
    for (i++; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'f') || (s.p[i] >= '0' && s.p[i] <= '9')))
            return false;
    return true;
}

const tnf_digest *tnf_zt2_digest(tnf_arena *arena, tnf_str s)
{
    const char *colon = memchr(s.p, ':', s.n);
    size_t head = (size_t)(colon - s.p), hex = s.n - head - 1;
    /* A single allocation: there may be a million parts. */
    tnf_digest *d = tnf_arena_alloc(arena, sizeof *d + hex / 2 + s.n + 1);
    if (!d)
        return NULL;
    uint8_t *bytes = (uint8_t *)(d + 1);
    char *text = (char *)bytes + hex / 2;
    memcpy(text, s.p, s.n);
    (void)tnf_hex_take(bytes, colon + 1, hex / 2);
    *d = (tnf_digest) { .bytes = bytes, .n = (hex + 1) / 2, .text = { text, s.n } };
    if (head == 4 && memcmp(s.p, "xxh3", 4) == 0)
        d->algorithm = "xxh3-64";
    else if (head == 6 && memcmp(s.p, "sha256", 6) == 0)
        d->algorithm = "sha256";
    if (hex % 2) /* an odd number of digits matches nothing: use an impossible length */
        d->n = 0;
    return d;
}

/* ------------------------------------------------------------------ types */

/* The id for an unknown name. A name that the model uses gets a leading "?", and so does a name
 * that begins with "?". */
static char *foreign_id(tnf_arena *arena, tnf_str name, bool taken)
{
    bool mark = taken || (name.n > 0 && name.p[0] == '?');
    char *id = tnf_arena_raw(arena, name.n + 2);
    if (!id)
        return NULL;
    id[0] = '?';
    memcpy(id + mark, name.p, name.n);
    id[mark + name.n] = 0;
    return id;
}

static const tnf_type *foreign_type(tnf_arena *arena, tnf_str name, tnf_dtype dtype)
{
    tnf_type *type = tnf_arena_alloc(arena, sizeof *type);
    char *id = foreign_id(arena, name, tnf_type_find(name.p, name.n) != NULL);
    if (!type || !id)
        return NULL;
    *type = (tnf_type) { .id = id, .storage = dtype, .number = TNF_NUMBER_OPAQUE };
    return type;
}

const tnf_type *tnf_zt2_type(tnf_arena *arena, tnf_str name, tnf_dtype dtype, bool *pinned)
{
    *pinned = true;
    if (!name.p)
        return tnf_type_of(dtype);
    const word *known = word_named(types, COUNT(types), name);
    if (!known)
        return foreign_type(arena, name, dtype);
    const tnf_type *type = tnf_type_named(known->id);
    *pinned = type->storage == dtype;
    return type;
}

const char *tnf_zt2_type_name(const tnf_type *type)
{
    if (type == tnf_type_of(type->storage))
        return NULL;
    if (type->number == TNF_NUMBER_OPAQUE)
        return type->id + (type->id[0] == '?');
    const word *known = word_for(types, COUNT(types), type->id);
    return known ? known->name : type->id;
}

/* ---------------------------------------------------------------- layouts */

const tnf_layout *tnf_zt2_layout_unruled(tnf_arena *arena, tnf_str name)
{
    const char *id = foreign_id(arena, name, tnf_layout_named(name.p, name.n) != NULL);
    return id ? tnf_layout_unknown(arena, id, strlen(id)) : NULL;
}

const tnf_layout *tnf_zt2_layout(tnf_arena *arena, tnf_str name)
{
    const word *known = word_named(layouts, COUNT(layouts), name);
    if (tnf_zt2_is_gguf(name) && tnf_layout_named(name.p, name.n))
        return tnf_layout_named(name.p, name.n);
    return known ? tnf_layout_by_id(known->id) : tnf_zt2_layout_unruled(arena, name);
}

const char *tnf_zt2_layout_name(char *out, size_t size, const tnf_layout *layout)
{
    const char *id = tnf_layout_id(layout);
    const word *known = word_for(layouts, COUNT(layouts), id);
    if (known && layout == tnf_layout_by_id(id))
        return known->name;
    if (layout->block_bytes) /* ggml's layouts have the same name there */
        return id;
    if (layout != tnf_layout_by_id(id))
        return id + (id[0] == '?');
    snprintf(out, size, OURS "%s", id);
    return out;
}

/* ------------------------------------------------------------------- gguf */

#define GGUF   "gguf."
#define GGUF_N (sizeof GGUF - 1)

bool tnf_zt2_is_gguf(tnf_str s)
{
    return s.n > GGUF_N + 2 && memcmp(s.p, GGUF, GGUF_N) == 0 &&
           memcmp(s.p + s.n - 2, "/1", 2) == 0;
}

static tnf_status get_uint(const tnf_object *o, const char *key, uint64_t *out, tnf_error *e)
{
    const tnf_value *v = tnf_value_get(o->attrs, key);
    if (!v || v->kind != TNF_UINT)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "%s: the attribute '%s' is %s",
                        TNF_QUOTED(o->name), key, v ? "not a whole number" : "missing");
    *out = v->as.u;
    return TNF_OK;
}

static tnf_status check_block(const tnf_object *o, tnf_str layout, uint64_t elements,
                              uint64_t bytes, tnf_error *e)
{
    const tnf_layout *known = tnf_layout_named(layout.p, layout.n);
    if (known && (elements != known->block_elements || bytes != known->block_bytes))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "%s: blocks of %.*s have %u elements in %u bytes, not %" PRIu64
                        " in %" PRIu64,
                        TNF_QUOTED(o->name), (int)(layout.n - GGUF_N - 2), layout.p + GGUF_N,
                        known->block_elements, known->block_bytes, elements, bytes);
    return TNF_OK;
}

tnf_status tnf_zt2_check_gguf(const tnf_object *o, tnf_str layout, tnf_error *e)
{
    uint64_t per, bytes, all, need;
    if (o->nparts != 1 || strcmp(o->parts[0].role, "data") != 0 ||
        o->parts[0].type != tnf_type_of(TNF_U8))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "%s: ggml blocks must be one part 'data' of u8", TNF_QUOTED(o->name));
    TNF_TRY(get_uint(o, "elems_per_block", &per, e));
    TNF_TRY(get_uint(o, "block_bytes", &bytes, e));
    TNF_TRY(check_block(o, layout, per, bytes, e));
    if (!tnf_shape_elements(&all, o->shape, o->rank) || per == 0 || all % per != 0 ||
        !tnf_ckd_mul(&need, all / per, bytes))
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "%s: blocks of %" PRIu64 " elements do not tile the shape",
                        TNF_QUOTED(o->name), per);
    if (need != o->parts[0].nbytes)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "%s: %" PRIu64 " blocks of %" PRIu64 " bytes have %" PRIu64
                        " bytes, not %" PRIu64,
                        TNF_QUOTED(o->name), all / per, bytes, need, o->parts[0].nbytes);
    return tnf_layout_check(o, e); /* a block must not cross the end of a row */
}
