/* SPDX-License-Identifier: MIT */
/* The manifest: deterministic CBOR, whose schema fixes the order of its keys.
 *
 *   root     { (shards), objects, (attributes) }
 *   shards   { name: { size, digest } }
 *   objects  { name: { parts, shape, layout, (attributes) } }
 *   parts    { role: { blob: [offset, length], (type), dtype, (shard), (digest),
 *                      (encoding, decoded_length) } }
 *
 * The manifest is read twice: as CBOR, then by its schema, so faults of the encoding are reported
 * first. Each fault has its class in the specification. Unknown keys are ignored: a later version
 * may define them.
 */
#include "formats/ztensor2/zt2.h"

/* The position of the key that was just read. */
static uint64_t key_at(const tnf_cbor *c, const tnf_cbor_scope *scope)
{
    return c->base + (uint64_t)((const uint8_t *)scope->level.previous.p - c->start);
}

static bool fail_schema(zt2 *z, uint64_t at, const char *what)
{
    return tnf_cbor_fail(&z->c, TNF_CBOR_SCHEMA, TNF_EFORMAT, at, "%s", what);
}

static bool no_memory(zt2 *z, const tnf_arena *arena)
{
    z->c.status = tnf_arena_fail(arena, "the manifest", z->c.e);
    return false;
}

/* Checks that a key is text and a valid name. */
static bool check_name(zt2 *z, const tnf_cbor_scope *scope, tnf_str key, const char *what)
{
    uint64_t at = key_at(&z->c, scope);
    if (!key.p)
        return tnf_cbor_fail(&z->c, TNF_CBOR_SCHEMA, TNF_EFORMAT, at, "the name of %s is not text",
                             what);
    if (zt2_name_ok(key))
        return true;
    z->rule = "Name";
    return tnf_cbor_fail(&z->c, TNF_CBOR_SCHEMA, TNF_EFORMAT, at,
                         "the name of %s has %zu bytes%s; 1 to %u bytes without a NUL are allowed",
                         what, key.n, memchr(key.p, 0, key.n) ? " with a NUL" : "", ZT2_MAX_NAME);
}

/* Skips an unknown key: a later version may define it. */
static bool pass_over(zt2 *z)
{
    bool first = !z->foreign_at;
    uint64_t at = tnf_cbor_where(&z->c);
    if (!tnf_cbor_skip(&z->c, NULL))
        return false;
    z->foreign_at = first ? at : z->foreign_at;
    z->foreign_n = first ? tnf_cbor_where(&z->c) - at : z->foreign_n;
    return true;
}

static bool read_digest(zt2 *z, tnf_str *out)
{
    uint64_t at = tnf_cbor_where(&z->c);
    return tnf_cbor_text(&z->c, out) &&
           (tnf_zt2_digest_ok(*out) ||
            fail_schema(z, at, "a digest is not 'algorithm:hex', in lower case"));
}

/* Text that becomes a C string in the model. */
static bool read_word(zt2 *z, tnf_str *out, const char *what)
{
    uint64_t at = tnf_cbor_where(&z->c);
    if (!tnf_cbor_text(&z->c, out))
        return false;
    return !memchr(out->p, 0, out->n) ||
           tnf_cbor_fail(&z->c, TNF_CBOR_FINE, TNF_EUNSUPPORTED, at, "the %s contains a NUL", what);
}

/* ----------------------------------------------------------------- shards */

/* 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with a dot: it becomes part of a file's name. */
static bool shard_name_ok(tnf_str s)
{
    if (s.n < 1 || s.n > 64 || s.p[0] == '.')
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

static bool read_shard(zt2 *z, zt2_shard *s)
{
    tnf_cbor *c = &z->c;
    tnf_cbor_scope map;
    bool size = false;
    s->at = tnf_cbor_where(c);
    if (!tnf_cbor_enter_map(c, &map))
        return false;
    for (tnf_str key; tnf_cbor_key(c, &map, &key);)
        if (key.p && tnf_str_is(key, "size"))
            size = tnf_cbor_u64(c, &s->size);
        else if (key.p && tnf_str_is(key, "digest"))
            read_digest(z, &s->digest);
        else
            pass_over(z);
    if (c->status == TNF_OK && (!size || !s->digest.p))
        return fail_schema(z, s->at, "a shard lacks its size or its digest");
    return c->status == TNF_OK;
}

static bool read_shards(zt2 *z)
{
    tnf_cbor *c = &z->c;
    tnf_cbor_scope map;
    z->shards_at = tnf_cbor_where(c);
    if (!tnf_cbor_enter_map(c, &map))
        return false;
    z->shards = tnf_arena_array(z->r->scratch, map.level.left, sizeof *z->shards);
    if (!z->shards)
        return no_memory(z, z->r->scratch);
    for (tnf_str key; tnf_cbor_key(c, &map, &key); z->nshards++) {
        if (!key.p)
            return fail_schema(z, key_at(c, &map), "the name of a shard is not text");
        if (!shard_name_ok(key)) {
            z->rule = "ShardName";
            return tnf_cbor_fail(c, TNF_CBOR_SCHEMA, TNF_EFORMAT, key_at(c, &map),
                                 "%s cannot be the name of a shard", TNF_QUOTED(key));
        }
        z->shards[z->nshards].name = key;
        if (!read_shard(z, &z->shards[z->nshards]))
            return false;
    }
    return c->status == TNF_OK;
}

/* ------------------------------------------------------------- attributes */

static bool push_attr(zt2 *z, tnf_attrs *into, tnf_str key, tnf_value v)
{
    const char *copy = tnf_arena_str(into->arena, key.p, key.n);
    if (!copy)
        return no_memory(z, into->arena);
    z->c.status = tnf_attrs_push(into, copy, v, z->c.e);
    if (z->c.status == TNF_OK)
        into->members[into->n - 1].key.n = key.n;
    return z->c.status == TNF_OK;
}

static bool read_attributes(zt2 *z, tnf_attrs *into)
{
    tnf_cbor *c = &z->c;
    tnf_cbor_scope map;
    if (!tnf_cbor_enter_map(c, &map))
        return false;
    for (tnf_str key; tnf_cbor_key(c, &map, &key);) {
        tnf_value v;
        if (!check_name(z, &map, key, "an attribute") || !tnf_cbor_value(c, &v) ||
            !push_attr(z, into, key, v))
            return false;
    }
    return c->status == TNF_OK;
}

/* Reads them into the arena for trees. */
static bool read_object_attributes(zt2 *z, zt2_object *o)
{
    tnf_attrs attrs = { .arena = z->c.arena };
    const uint8_t *start = z->c.p;
    if (!read_attributes(z, &attrs))
        return false;
    o->raw_attrs = (tnf_str) { (const char *)start, (size_t)(z->c.p - start) };
    tnf_value *v = attrs.n ? tnf_arena_alloc(attrs.arena, sizeof *v) : NULL;
    if (attrs.n && !v)
        return no_memory(z, attrs.arena);
    if (v)
        *v = tnf_attrs_value(&attrs);
    o->attrs = v;
    return true;
}

/* ------------------------------------------------------------------ parts */

static bool read_blob(zt2 *z, zt2_part *p)
{
    tnf_cbor *c = &z->c;
    tnf_cbor_scope pair;
    p->at = tnf_cbor_where(c);
    if (!tnf_cbor_enter_array(c, &pair))
        return false;
    if (pair.level.left != 2)
        return fail_schema(z, p->at, "a blob is not an offset and a length");
    bool two = tnf_cbor_item(c, &pair) && tnf_cbor_u64(c, &p->offset) && tnf_cbor_item(c, &pair) &&
               tnf_cbor_u64(c, &p->length);
    return two && !tnf_cbor_item(c, &pair) && c->status == TNF_OK;
}

static bool read_dtype(zt2 *z, zt2_part *p)
{
    tnf_str name;
    uint64_t at = tnf_cbor_where(&z->c);
    return tnf_cbor_text(&z->c, &name) &&
           (tnf_zt2_dtype(&p->dtype, name) || tnf_cbor_fail(&z->c, TNF_CBOR_SCHEMA, TNF_EFORMAT, at,
                                                            "unknown dtype %s", TNF_QUOTED(name)));
}

enum { HAS_BLOB = 1, HAS_DTYPE = 2, HAS_DECODED = 4 };

static bool read_part_field(zt2 *z, zt2_part *p, tnf_str key, unsigned *has)
{
    tnf_cbor *c = &z->c;
    if (tnf_str_is(key, "blob")) {
        *has |= HAS_BLOB;
        return read_blob(z, p);
    }
    if (tnf_str_is(key, "type"))
        return read_word(z, &p->type, "type of a part");
    if (tnf_str_is(key, "dtype")) {
        *has |= HAS_DTYPE;
        return read_dtype(z, p);
    }
    if (tnf_str_is(key, "shard"))
        return tnf_cbor_text(c, &p->shard);
    if (tnf_str_is(key, "digest"))
        return read_digest(z, &p->digest);
    if (tnf_str_is(key, "encoding"))
        return tnf_cbor_text(c, &p->encoding);
    if (tnf_str_is(key, "decoded_length")) {
        *has |= HAS_DECODED;
        return tnf_cbor_u64(c, &p->decoded);
    }
    return pass_over(z);
}

static bool read_part(zt2 *z, zt2_part *p)
{
    tnf_cbor *c = &z->c;
    tnf_cbor_scope map;
    unsigned has = 0;
    uint64_t at = tnf_cbor_where(c);
    if (!tnf_cbor_enter_map(c, &map))
        return false;
    for (tnf_str key; tnf_cbor_key(c, &map, &key);)
        if (!(key.p ? read_part_field(z, p, key, &has) : pass_over(z)))
            return false;
    if (c->status != TNF_OK)
        return false;
    if (!(has & HAS_BLOB) || !(has & HAS_DTYPE))
        return fail_schema(z, at, "a part lacks its blob or its dtype");
    if (!p->encoding.p != !(has & HAS_DECODED))
        return fail_schema(z, at, "a part has only one of encoding and decoded_length");
    if (!p->encoding.p)
        p->decoded = p->length;
    return true;
}

static bool read_parts(zt2 *z, zt2_object *o)
{
    tnf_cbor *c = &z->c;
    tnf_cbor_scope map;
    uint64_t at = tnf_cbor_where(c);
    if (!tnf_cbor_enter_map(c, &map))
        return false;
    if (map.level.left == 0)
        return fail_schema(z, at, "an object has no parts");
    if (map.level.left > UINT16_MAX)
        return tnf_cbor_fail(c, TNF_CBOR_FINE, TNF_ELIMIT, at,
                             "%s has %llu parts; at most %u are allowed", TNF_QUOTED(o->name),
                             (unsigned long long)map.level.left, UINT16_MAX);
    o->parts = tnf_arena_array(z->to, map.level.left, sizeof *o->parts);
    if (!o->parts)
        return no_memory(z, z->to);
    for (tnf_str key; tnf_cbor_key(c, &map, &key); o->nparts++) {
        if (!check_name(z, &map, key, "a part"))
            return false;
        o->parts[o->nparts].role = key;
        if (!read_part(z, &o->parts[o->nparts]))
            return false;
        z->undigested = z->undigested || !o->parts[o->nparts].digest.p;
    }
    return c->status == TNF_OK;
}

/* ---------------------------------------------------------------- objects */

static bool read_shape(zt2 *z, zt2_object *o)
{
    tnf_cbor *c = &z->c;
    tnf_cbor_scope array;
    const uint8_t *start = c->p;
    if (!tnf_cbor_enter_array(c, &array))
        return false;
    uint64_t *shape = tnf_arena_array(z->to, array.level.left, sizeof *shape);
    if (!shape)
        return no_memory(z, z->to);
    while (tnf_cbor_item(c, &array))
        if (!tnf_cbor_u64(c, &shape[o->rank++]))
            return false;
    o->shape = shape;
    o->raw_shape = (tnf_str) { (const char *)start, (size_t)(c->p - start) };
    return c->status == TNF_OK;
}

static bool read_object(zt2 *z, zt2_object *o)
{
    tnf_cbor *c = &z->c;
    tnf_cbor_scope map;
    uint64_t at = tnf_cbor_where(c);
    bool fine = tnf_cbor_enter_map(c, &map);
    for (tnf_str key; fine && tnf_cbor_key(c, &map, &key);) {
        if (!key.p)
            fine = pass_over(z);
        else if (tnf_str_is(key, "parts"))
            fine = read_parts(z, o);
        else if (tnf_str_is(key, "shape"))
            fine = read_shape(z, o);
        else if (tnf_str_is(key, "layout"))
            fine = read_word(z, &o->layout, "layout of a tensor");
        else if (tnf_str_is(key, "attributes"))
            fine = read_object_attributes(z, o);
        else
            fine = pass_over(z);
    }
    if (!fine || c->status != TNF_OK)
        return false;
    if (!o->parts || !o->shape || !o->layout.p)
        return fail_schema(z, at, "an object lacks its parts, its shape or its layout");
    return true;
}

static bool read_objects(zt2 *z)
{
    tnf_cbor *c = &z->c;
    tnf_cbor_scope map;
    uint64_t at = tnf_cbor_where(c);
    z->has_objects = true;
    if (!tnf_cbor_enter_map(c, &map))
        return false;
    if (map.level.left > z->r->limits.objects)
        return tnf_cbor_fail(
            c, TNF_CBOR_FINE, TNF_ELIMIT, at,
            "there are more than %llu tensors: raise the limit 'objects' if you trust the file",
            (unsigned long long)z->r->limits.objects);
    z->keys = tnf_arena_array(z->r->scratch, map.level.left, sizeof *z->keys);
    if (!z->keys)
        return no_memory(z, z->r->scratch);
    tnf_arena *arena = c->arena;
    c->arena = &z->one;
    z->first = c->p;
    z->objects_depth = c->depth;
    for (tnf_str key; tnf_cbor_key(c, &map, &key); z->n++) {
        zt2_object o = { .name = key, .at = key_at(c, &map) };
        z->keys[z->n] = (const uint8_t *)map.level.previous.p;
        if (!check_name(z, &map, key, "a tensor") || !read_object(z, &o))
            return false;
        z->nparts += o.nparts;
        tnf_arena_reset(&z->one);
    }
    c->arena = arena;
    return c->status == TNF_OK;
}

static bool read_root(zt2 *z)
{
    tnf_cbor *c = &z->c;
    tnf_cbor_scope map;
    bool fine = tnf_cbor_enter_map(c, &map);
    for (tnf_str key; fine && tnf_cbor_key(c, &map, &key);) {
        if (!key.p)
            fine = pass_over(z);
        else if (tnf_str_is(key, "shards"))
            fine = read_shards(z);
        else if (tnf_str_is(key, "objects"))
            fine = read_objects(z);
        else if (tnf_str_is(key, "attributes")) {
            fine = read_attributes(z, &z->r->catalog->attrs);
            z->empty_attrs = z->r->catalog->attrs.n == 0;
        } else
            fine = pass_over(z);
    }
    if (!fine || c->status != TNF_OK)
        return false;
    return z->has_objects || fail_schema(z, c->base, "the manifest has no objects");
}

/* The manifest was already read, so this can only fail for lack of memory. */
tnf_status tnf_zt2_object_at(zt2 *z, const uint8_t *key, tnf_arena *attrs, zt2_object *out,
                             tnf_error *e)
{
    tnf_cbor *c = &z->c;
    *out = (zt2_object) { .at = c->base + (uint64_t)(key - c->start) };
    if (z->to == &z->one)
        tnf_arena_reset(&z->one);
    c->p = key;
    c->depth = z->objects_depth;
    c->arena = attrs ? attrs : &z->one;
    c->e = e;
    if (tnf_cbor_text(c, &out->name))
        (void)read_object(z, out);
    return c->status;
}

tnf_status tnf_zt2_load(zt2 *z, tnf_error *e)
{
    tnf_arena *scratch = z->r->scratch;
    z->objects = tnf_arena_array(scratch, z->n, sizeof *z->objects);
    if (!z->objects)
        return tnf_arena_fail(scratch, "the manifest", e);
    z->to = scratch;
    const uint8_t *key = z->first;
    for (size_t i = 0; i < z->n; i++, key = z->c.p)
        TNF_TRY(tnf_zt2_object_at(z, key, scratch, &z->objects[i], e));
    return TNF_OK;
}

tnf_status tnf_zt2_parse(zt2 *z, const void *bytes, size_t n, tnf_error *e)
{
    uint32_t limit = z->r->limits.depth;
    unsigned depth = limit < ZT2_MAX_DEPTH ? limit : ZT2_MAX_DEPTH;
    tnf_cbor_init(&z->c, bytes, n, z->footer.offset, z->r->scratch, depth, TNF_CBOR_STRICT, e);
    tnf_cbor_skip(&z->c, NULL);
    if (tnf_cbor_end(&z->c) == TNF_OK) {
        tnf_cbor_init(&z->c, bytes, n, z->footer.offset, z->r->arena, depth, TNF_CBOR_STRICT, e);
        read_root(z);
    }
    if (z->c.status != TNF_OK && z->c.rule != TNF_CBOR_FINE) {
        z->rule = z->rule ? z->rule : tnf_cbor_rule_name(z->c.rule);
        tnf_error_prefix(e, z->rule);
        tnf_error_rule(e, z->rule);
    }
    return z->c.status;
}
