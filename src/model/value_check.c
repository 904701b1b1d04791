/* SPDX-License-Identifier: MIT */
/* Checks the values that a caller has made. Those that come from files need no check. */
#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "model/dtype.h"
#include "model/value.h"

/* Fails unless the integer fits its type. The type 0 stands for 64 bits. */
static tnf_status check_integer(const tnf_value *v, tnf_error *e)
{
    static const tnf_dtype ints[] = { TNF_I64, TNF_I32, TNF_I16, TNF_I8 };
    static const tnf_dtype uints[] = { TNF_U64, TNF_U32, TNF_U16, TNF_U8 };
    bool is_int = v->kind == TNF_INT;
    if (v->dtype == 0)
        return TNF_OK;
    for (unsigned i = 0; i < 4; i++) {
        unsigned bits = 64 >> i;
        if (v->dtype != (is_int ? ints : uints)[i])
            continue;
        bool fits = i == 0 || (is_int ? v->as.i >> (bits - 1) == 0 || v->as.i >> (bits - 1) == -1
                                      : v->as.u >> bits == 0);
        return fits ? TNF_OK
                    : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                               "an attribute is a number that does not fit its type of %u bits",
                               bits);
    }
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                    "an attribute is %s integer, but its dtype is %u, which is not one of them",
                    is_int ? "a signed" : "an unsigned", v->dtype);
}

static tnf_status check_array(const tnf_value *v, unsigned depth, tnf_error *e)
{
    if (!tnf_value_mark_ok(v->dtype))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "an attribute is an array whose dtype is %u: use tnf_value_mark_items()",
                        v->dtype);
    for (size_t i = 0; i < v->n; i++)
        TNF_TRY(tnf_value_check(&v->as.items[i], depth - 1, e));
    return TNF_OK;
}

static tnf_str member_key(const void *members, uint32_t position)
{
    return ((const tnf_member *)members)[position].key;
}

static tnf_status check_keys(const tnf_value *v, tnf_error *e)
{
    tnf_hash known;
    const tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_status status = TNF_OK;
    if (v->n >= TNF_HASH_NONE)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "a map has more than 2^32 members");
    tnf_hash_init(&known, &alloc, member_key, v->as.members);
    for (uint32_t i = 0; i < v->n && status == TNF_OK; i++) {
        uint32_t previous;
        if (!tnf_hash_add(&known, i, false, &previous))
            status = tnf_no_memory("a map", e);
        else if (previous != TNF_HASH_NONE)
            status = tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a map has the key %s twice",
                              TNF_QUOTED(v->as.members[i].key));
    }
    tnf_hash_free(&known);
    return status;
}

static tnf_status check_map(const tnf_value *v, unsigned depth, tnf_error *e)
{
    for (size_t i = 0; i < v->n; i++) {
        const tnf_member *m = &v->as.members[i];
        TNF_TRY(tnf_need_array(m->key.p, m->key.n, "key", e));
        TNF_TRY(tnf_value_check(&m->value, depth - 1, e));
    }
    return v->n > 1 ? check_keys(v, e) : TNF_OK;
}

static bool is_container(const tnf_value *v)
{
    return v->kind == TNF_ARRAY || v->kind == TNF_MAP;
}

bool tnf_value_within(const tnf_value *v, unsigned depth)
{
    if (depth == 0)
        return !is_container(v);
    for (size_t i = 0; is_container(v) && i < v->n; i++)
        if (!tnf_value_within(v->kind == TNF_MAP ? &v->as.members[i].value : &v->as.items[i],
                              depth - 1))
            return false;
    return true;
}

tnf_status tnf_value_check(const tnf_value *v, unsigned depth, tnf_error *e)
{
    if (depth == 0 && is_container(v))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "attributes are nested too deeply");
    if (v->kind >= TNF_STRING && v->kind <= TNF_MAP) /* texts, arrays, maps */
        TNF_TRY(tnf_need_array(v->as.s, v->n, "value", e));
    switch (v->kind) {
    case TNF_ARRAY:
        return check_array(v, depth, e);
    case TNF_MAP:
        return check_map(v, depth, e);
    case TNF_INT:
    case TNF_UINT:
        return check_integer(v, e);
    case TNF_FLOAT:
        return v->dtype <= TNF_BF16
                   ? TNF_OK
                   : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                              "an attribute is a float, but its dtype is %u", v->dtype);
    case TNF_STRING:
        return tnf_utf8_valid(NULL, v->as.s, v->n)
                   ? TNF_OK
                   : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                              "an attribute is a string that is not UTF-8: use tnf_value_bytes()");
    case TNF_NULL:
    case TNF_BOOL:
    case TNF_BYTES:
    case TNF_JSON:
        return TNF_OK;
    default:
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "an attribute has the unknown kind %u",
                        v->kind);
    }
}
