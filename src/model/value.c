/* SPDX-License-Identifier: MIT */
/* Attribute trees. Maps are searched linearly, since a format has few keys of its own. A map under
 * construction with many keys has a table of them. */
#include "model/value.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "model/dtype.h"

#include <string.h>

#define FEW 16u /* up to this many keys are searched linearly */

static bool same_key(const tnf_member *m, const char *key, size_t n)
{
    return m->key.n == n && (n == 0 || (m->key.p && memcmp(m->key.p, key, n) == 0));
}

const tnf_value *tnf_value_get_n(const tnf_value *map, const char *key, size_t n)
{
    if (!map || map->kind != TNF_MAP || !map->as.members || !key)
        return NULL;
    for (size_t i = 0; i < map->n; i++)
        if (same_key(&map->as.members[i], key, n))
            return &map->as.members[i].value;
    return NULL;
}

const tnf_value *tnf_value_get(const tnf_value *map, const char *key)
{
    return key ? tnf_value_get_n(map, key, strlen(key)) : NULL;
}

tnf_value tnf_value_str(tnf_kind kind, const char *p, size_t n)
{
    return (tnf_value) { .kind = (uint8_t)kind, .n = n, .as.s = p };
}

tnf_value tnf_value_string(const char *s)
{
    return s ? tnf_value_str(TNF_STRING, s, strlen(s)) : (tnf_value) { .kind = TNF_NULL };
}

tnf_value tnf_value_uint(uint64_t u)
{
    return (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = u };
}

tnf_value tnf_value_utf8(tnf_str text)
{
    bool utf8 = tnf_utf8_valid(NULL, text.p, text.n);
    return tnf_value_str(utf8 ? TNF_STRING : TNF_BYTES, text.p, text.n);
}

tnf_value tnf_value_integer(int64_t i)
{
    if (i >= 0)
        return tnf_value_uint((uint64_t)i);
    return (tnf_value) { .kind = TNF_INT, .dtype = TNF_I64, .as.i = i };
}

bool tnf_value_whole(uint64_t *out, const tnf_value *v)
{
    bool whole = v && (v->kind == TNF_UINT || (v->kind == TNF_INT && v->as.i >= 0));
    if (whole)
        *out = v->as.u;
    return whole;
}

tnf_value tnf_value_bool(bool b)
{
    return (tnf_value) { .kind = TNF_BOOL, .as.b = b };
}

tnf_value tnf_value_number(tnf_dtype dtype, const void *little_endian)
{
    tnf_value v = { .dtype = (uint8_t)dtype };
    uint64_t bits = 0;
    for (size_t i = tnf_dtype_size(dtype); i-- > 0;)
        bits = bits << 8 | ((const uint8_t *)little_endian)[i];
    switch (dtype) {
    case TNF_F64:
        v.kind = TNF_FLOAT;
        memcpy(&v.as.f64, &bits, 8);
        break;
    case TNF_F32: {
        uint32_t half = (uint32_t)bits;
        v.kind = TNF_FLOAT;
        memcpy(&v.as.f32, &half, 4);
        break;
    }
    case TNF_I64:
    case TNF_I32:
    case TNF_I16:
    case TNF_I8: {
        unsigned unused = 64 - 8 * (unsigned)tnf_dtype_size(dtype);
        uint64_t sign = (uint64_t)1 << (63 - unused);
        v.kind = TNF_INT;
        v.as.i = (int64_t)((bits ^ sign) - sign);
        break;
    }
    default:
        v.kind = TNF_UINT;
        v.as.u = bits;
        break;
    }
    return v;
}

static tnf_status make_room(tnf_attrs *m, tnf_error *e)
{
    tnf_member *members = tnf_arena_grow(m->arena, m->members, m->n, &m->capacity, sizeof *members,
                                         4);
    if (!members)
        return tnf_arena_fail(m->arena, "attributes", e);
    m->members = members;
    return TNF_OK;
}

tnf_status tnf_attrs_push(tnf_attrs *m, const char *literal, tnf_value value, tnf_error *e)
{
    TNF_TRY(make_room(m, e));
    m->members[m->n++] = (tnf_member) { { literal, strlen(literal) }, value };
    return TNF_OK;
}

/* The slot of a key, or the free one for it; there always is one. */
static uint32_t *slot_of(const tnf_attrs *m, const char *key, size_t n)
{
    size_t at = (size_t)tnf_hash_bytes(m->seed, key, n) & (m->nslots - 1);
    while (m->slots[at] && !same_key(&m->members[m->slots[at] - 1], key, n))
        at = (at + 1) & (m->nslots - 1);
    return &m->slots[at];
}

/* Puts all members into the table, which stays at least half empty. */
static tnf_status index_all(tnf_attrs *m, tnf_error *e)
{
    if (2 * m->n > m->nslots) {
        size_t nslots = m->nslots ? m->nslots : 4 * FEW;
        while (nslots < 4 * m->n)
            nslots *= 2;
        uint32_t *slots = tnf_arena_array(m->arena, nslots, sizeof *slots);
        if (!slots)
            return tnf_arena_fail(m->arena, "attributes", e);
        memset(slots, 0, nslots * sizeof *slots);
        tnf_hash_seed(m->seed);
        m->slots = slots;
        m->nslots = nslots;
        m->hashed = 0;
    }
    for (; m->hashed < m->n; m->hashed++) {
        const tnf_str key = m->members[m->hashed].key;
        uint32_t *slot = slot_of(m, key.p, key.n);
        if (*slot == 0) /* of two equal keys the first is found */
            *slot = (uint32_t)m->hashed + 1;
    }
    return TNF_OK;
}

/* The position of the key; m->n if it is missing. */
static tnf_status position_of(tnf_attrs *m, const char *key, size_t n, size_t *out, tnf_error *e)
{
    size_t at = 0;
    if (m->n > FEW) {
        TNF_TRY(index_all(m, e));
        uint32_t slot = *slot_of(m, key, n);
        *out = slot ? slot - 1 : m->n;
        return TNF_OK;
    }
    while (at < m->n && !same_key(&m->members[at], key, n))
        at++;
    *out = at;
    return TNF_OK;
}

tnf_status tnf_attrs_find(tnf_attrs *m, const char *key, size_t key_n, tnf_member **out,
                          tnf_error *e)
{
    size_t at;
    TNF_TRY(position_of(m, key, key_n, &at, e));
    *out = at < m->n ? &m->members[at] : NULL;
    return TNF_OK;
}

tnf_status tnf_attrs_set(tnf_attrs *m, const char *key, size_t key_n, tnf_value value, tnf_error *e)
{
    size_t at;
    TNF_TRY(position_of(m, key, key_n, &at, e));
    if (at < m->n) {
        m->members[at].value = value;
        return TNF_OK;
    }
    TNF_TRY(make_room(m, e));
    char *copy = tnf_arena_str(m->arena, key, key_n);
    if (!copy)
        return tnf_arena_fail(m->arena, "an attribute's name", e);
    m->members[m->n++] = (tnf_member) { { copy, key_n }, value };
    return TNF_OK;
}

tnf_str tnf_attrs_key_at(const void *attrs, uint32_t position)
{
    return ((const tnf_attrs *)attrs)->members[position].key;
}

void tnf_attrs_remove(tnf_attrs *m, tnf_str key)
{
    for (size_t i = 0; i < m->n; i++)
        if (same_key(&m->members[i], key.p, key.n)) {
            memmove(&m->members[i], &m->members[i + 1], (m->n - i - 1) * sizeof *m->members);
            m->n--;
            tnf_attrs_moved(m);
            return;
        }
}

void tnf_attrs_moved(tnf_attrs *m)
{
    m->nslots = 0;
}

tnf_value tnf_attrs_value(const tnf_attrs *m)
{
    return (tnf_value) { .kind = TNF_MAP, .n = m->n, .as.members = m->members };
}

static tnf_status copy_items(tnf_value *out, const tnf_value *v, tnf_arena *arena, unsigned depth,
                             tnf_error *e)
{
    tnf_value *items = tnf_arena_array(arena, v->n, sizeof *items);
    if (!items)
        return tnf_arena_fail(arena, "attributes", e);
    for (size_t i = 0; i < v->n; i++)
        TNF_TRY(tnf_value_copy(&items[i], &v->as.items[i], arena, depth - 1, e));
    out->as.items = items;
    return TNF_OK;
}

static tnf_status copy_members(tnf_value *out, const tnf_value *v, tnf_arena *arena, unsigned depth,
                               tnf_error *e)
{
    tnf_member *members = tnf_arena_array(arena, v->n, sizeof *members);
    if (!members)
        return tnf_arena_fail(arena, "attributes", e);
    for (size_t i = 0; i < v->n; i++) {
        tnf_str key = v->as.members[i].key;
        members[i].key = (tnf_str) { tnf_arena_str(arena, key.p, key.n), key.n };
        if (!members[i].key.p)
            return tnf_arena_fail(arena, "attributes", e);
        TNF_TRY(tnf_value_copy(&members[i].value, &v->as.members[i].value, arena, depth - 1, e));
    }
    out->as.members = members;
    return TNF_OK;
}

tnf_status tnf_value_copy(tnf_value *out, const tnf_value *v, tnf_arena *arena, unsigned depth,
                          tnf_error *e)
{
    if (depth == 0 && (v->kind == TNF_ARRAY || v->kind == TNF_MAP))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "attributes are nested too deeply");
    *out = *v;
    switch (v->kind) {
    case TNF_STRING:
    case TNF_BYTES:
    case TNF_JSON:
        out->as.s = tnf_arena_str(arena, v->as.s, v->n);
        return out->as.s ? TNF_OK : tnf_arena_fail(arena, "an attribute", e);
    case TNF_ARRAY:
        return copy_items(out, v, arena, depth, e);
    case TNF_MAP:
        return copy_members(out, v, arena, depth, e);
    case TNF_INT:
    case TNF_UINT:
        if (v->dtype == 0)
            out->dtype = (uint8_t)(v->kind == TNF_INT ? TNF_I64 : TNF_U64);
        return TNF_OK;
    default:
        return TNF_OK;
    }
}

static bool equal_members(const tnf_value *a, const tnf_value *b)
{
    for (size_t i = 0; i < a->n; i++) {
        const tnf_member *x = &a->as.members[i], *y = &b->as.members[i];
        if (!same_key(x, y->key.p, y->key.n) || !tnf_value_equal(&x->value, &y->value))
            return false;
    }
    return true;
}

int tnf_member_compare(const void *a, const void *b)
{
    return tnf_str_compare(((const tnf_member *)a)->key, ((const tnf_member *)b)->key);
}

bool tnf_value_equal(const tnf_value *a, const tnf_value *b)
{
    if (a->kind != b->kind || a->n != b->n)
        return false;
    switch (a->kind) {
    case TNF_NULL:
        return true;
    case TNF_BOOL:
        return a->as.b == b->as.b;
    case TNF_INT:
    case TNF_UINT:
        return a->dtype == b->dtype && a->as.u == b->as.u;
    case TNF_FLOAT: /* compares bits: a NaN equals itself */
        return a->dtype == b->dtype &&
               memcmp(&a->as, &b->as, a->dtype == TNF_F32 ? sizeof(float) : sizeof(double)) == 0;
    case TNF_STRING:
    case TNF_BYTES:
    case TNF_JSON:
        return a->n == 0 || memcmp(a->as.s, b->as.s, a->n) == 0;
    case TNF_MAP:
        return equal_members(a, b);
    default:
        if (a->n == 0) /* empty arrays of different types differ */
            return a->dtype == b->dtype;
        for (size_t i = 0; i < a->n; i++)
            if (!tnf_value_equal(&a->as.items[i], &b->as.items[i]))
                return false;
        return true;
    }
}
