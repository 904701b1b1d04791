/* SPDX-License-Identifier: MIT */
/* The content digest, which is equal for files with the same model in any placement: the SHA-256 of
 *
 *   ["zt.content/1", { name: { parts: { role: { (type), dtype, digest } },
 *                              shape, layout, (attributes) } }]
 *
 * in deterministic CBOR. The manifest alone determines it, if every part has a digest.
 */
#include "formats/ztensor2/zt2.h"

#include "base/hex.h"

#include <stdio.h>

static void put_str(tnf_buf *b, const char *key, tnf_str value)
{
    tnf_cbor_put_string(b, key);
    tnf_cbor_put_text(b, value.p, value.n);
}

static void put_part(tnf_buf *b, const zt2_part *p)
{
    tnf_cbor_put_text(b, p->role.p, p->role.n);
    tnf_cbor_put_map(b, p->type.p ? 3 : 2);
    if (p->type.p)
        put_str(b, "type", p->type);
    tnf_cbor_put_string(b, "dtype");
    tnf_cbor_put_string(b, tnf_type_of(p->dtype)->id);
    put_str(b, "digest", p->digest);
}

/* The entries of a manifest are already in the order of the encoding. */
static void put_object(tnf_buf *b, const zt2_object *o)
{
    bool attrs = o->attrs != NULL; /* an empty map and a missing one are the same here */
    tnf_cbor_put_text(b, o->name.p, o->name.n);
    tnf_cbor_put_map(b, attrs ? 4 : 3);
    tnf_cbor_put_string(b, "parts");
    tnf_cbor_put_map(b, o->nparts);
    for (size_t i = 0; i < o->nparts; i++)
        put_part(b, &o->parts[i]);
    tnf_cbor_put_string(b, "shape");
    tnf_buf_put(b, o->raw_shape.p, o->raw_shape.n);
    put_str(b, "layout", o->layout);
    if (attrs) {
        tnf_cbor_put_string(b, "attributes");
        tnf_buf_put(b, o->raw_attrs.p, o->raw_attrs.n);
    }
}

static tnf_status digest_content(zt2 *z, tnf_buf *b, uint8_t out[32], tnf_error *e)
{
    tnf_digester d;
    if (!tnf_digest_begin(&d, "sha256"))
        return tnf_no_memory("a digest", e);
    tnf_cbor_put_array(b, 2);
    tnf_cbor_put_string(b, "zt.content/1");
    tnf_cbor_put_map(b, z->n);
    const uint8_t *key = z->first;
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < z->n && status == TNF_OK; i++, key = z->c.p) {
        zt2_object o;
        status = tnf_zt2_object_at(z, key, NULL, &o, e);
        if (status == TNF_OK)
            put_object(b, &o);
        if (b->n > 1u << 16) {
            tnf_digest_update(&d, b->p, b->n);
            b->n = 0;
        }
    }
    tnf_digest_update(&d, b->p, b->n);
    tnf_digest_end(&d, status == TNF_OK ? out : NULL);
    TNF_TRY(status);
    return tnf_buf_status(b, "the content digest", e);
}

tnf_status tnf_zt2_set_content(zt2 *z, tnf_error *e)
{
    uint8_t bytes[32];
    char *text = tnf_arena_alloc(z->r->arena, sizeof "sha256:" + 64);
    tnf_buf b;
    if (!text)
        return tnf_arena_fail(z->r->arena, "a digest", e);
    if (z->undigested)
        return TNF_OK;
    tnf_buf_init(&b, &z->r->arena->alloc, UINT64_MAX);
    tnf_status status = digest_content(z, &b, bytes, e);
    tnf_buf_free(&b);
    TNF_TRY(status);
    size_t n = (size_t)snprintf(text, 8, "sha256:");
    n = (size_t)(tnf_hex_put(text + n, bytes, sizeof bytes) - text);
    return tnf_set_attr(z->r, ZT2_CONTENT, tnf_value_str(TNF_STRING, text, n), e);
}
