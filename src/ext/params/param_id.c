/* SPDX-License-Identifier: MIT */
/* The identity of parameters, as defined by gpt.rs.
 *
 *   base id = BLAKE3(name)[0..16]
 *   key     = BLAKE3("gpt-rs:param-key:v1" ‖ namespace, 16 bytes ‖ base id, 16 bytes)[0..16]
 *
 * gpt.rs reads both as little-endian 128-bit numbers; here they are bytes.
 */
#include "base/blake3.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/utf8.h"
#include <stdatomic.h>
#include <tenfold/params.h>

static tnf_id first_half(const uint8_t digest[32])
{
    tnf_id id;
    memcpy(id.bytes, digest, sizeof id.bytes);
    return id;
}

tnf_status tnf_param_id(tnf_id *out, const char *name, size_t n, tnf_error *e)
{
    TNF_TRY(tnf_need_array(name, n, "name", e));
    if (!tnf_ascii(name, n))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the name %s is not ASCII, so it has no parameter id",
                        TNF_QUOTED(((tnf_str) { name, n })));
    uint8_t digest[32];
    tnf_blake3(digest, name, n);
    *out = first_half(digest);
    return TNF_OK;
}

tnf_id tnf_namespace_id(uint64_t high, uint64_t low)
{
    tnf_id id;
    tnf_put_le64(id.bytes, low);
    tnf_put_le64(id.bytes + 8, high);
    return id;
}

/* Models of a process never share a namespace, because this counter is shared by all of them. */
tnf_id tnf_namespace_next(void)
{
    static atomic_uint_least64_t last_namespace;
    return tnf_namespace_id(0, atomic_fetch_add(&last_namespace, 1) + 1);
}

tnf_id tnf_param_key(tnf_id name_space, tnf_id base_id)
{
    static const char domain[] = "gpt-rs:param-key:v1";
    enum { N = sizeof domain - 1 };
    uint8_t text[N + 32], digest[32];
    memcpy(text, domain, N);
    memcpy(text + N, name_space.bytes, 16);
    memcpy(text + N + 16, base_id.bytes, 16);
    tnf_blake3(digest, text, sizeof text);
    return first_half(digest);
}
