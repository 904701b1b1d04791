/* SPDX-License-Identifier: MIT */
/* The CBOR reader on any bytes. Skip and tree agree on validity. Strictly valid bytes are also
 * valid in lenient mode. A tree of strict bytes is written as the same bytes. A tree of lenient
 * bytes, written either way, reads back as a tree that is written the same way. */
#include "base/arena.h"
#include "base/buf.h"
#include "fuzz.h"
#include "wire/cbor.h"
#include <string.h>

#define DEPTH 32u
#define ROOM  ((uint64_t)64 << 20)

static bool can_skip(const uint8_t *data, size_t size, tnf_cbor_profile profile, tnf_error *error)
{
    tnf_cbor r;
    tnf_cbor_init(&r, data, size, 0, NULL, DEPTH, profile, error);
    bool ok = tnf_cbor_skip(&r, NULL) && tnf_cbor_end(&r) == TNF_OK;
    FUZZ_REQUIRE(ok == (r.status == TNF_OK), "skip returned %d, status %d", ok, r.status);
    FUZZ_REQUIRE(ok || (r.rule != TNF_CBOR_FINE && error->offset <= size), "no rule or no offset");
    FUZZ_REQUIRE(!ok || r.depth == 0, "the depth is %u at the end", r.depth);
    return ok;
}

static bool can_read(const void *data, size_t size, tnf_cbor_profile profile, tnf_arena *arena,
                     tnf_value *value, tnf_cbor_rule *rule)
{
    tnf_error error;
    tnf_cbor r;
    tnf_cbor_init(&r, data, size, 0, arena, DEPTH, profile, &error);
    bool ok = tnf_cbor_value(&r, value) && tnf_cbor_end(&r) == TNF_OK;
    *rule = r.rule;
    return ok;
}

/* Walks with the pulling functions, some items entered, some skipped. */
static void pull_item(tnf_cbor *r)
{
    tnf_cbor_scope scope;
    tnf_str s;
    uint64_t u;
    int64_t i;
    double d;
    bool b;
    switch (tnf_cbor_peek(r)) {
    case TNF_CBOR_MAP:
        tnf_cbor_enter_map(r, &scope);
        while (tnf_cbor_key(r, &scope, &s))
            pull_item(r);
        break;
    case TNF_CBOR_ARRAY:
        tnf_cbor_enter_array(r, &scope);
        while (tnf_cbor_item(r, &scope))
            pull_item(r);
        break;
    case TNF_CBOR_UINT:
        tnf_cbor_u64(r, &u);
        break;
    case TNF_CBOR_NEGATIVE:
        tnf_cbor_i64(r, &i);
        break;
    case TNF_CBOR_TEXT:
        tnf_cbor_text(r, &s);
        break;
    case TNF_CBOR_BYTES:
        tnf_cbor_bytes(r, &s);
        break;
    case TNF_CBOR_FLOAT:
        tnf_cbor_f64(r, &d);
        break;
    case TNF_CBOR_BOOL:
        tnf_cbor_bool(r, &b);
        break;
    case TNF_CBOR_NULL:
        tnf_cbor_null(r);
        break;
    default:
        tnf_cbor_skip(r, NULL);
        break;
    }
}

static void check_rewritten(const tnf_value *value, tnf_cbor_profile profile, tnf_arena *arena,
                            const uint8_t *original, size_t size)
{
    tnf_error error;
    tnf_value again;
    tnf_buf once, twice;
    tnf_buf_init(&once, &arena->alloc, ROOM);
    tnf_buf_init(&twice, &arena->alloc, ROOM);
    tnf_status status = tnf_cbor_put_value(&once, value, profile, DEPTH + 1, &error);
    FUZZ_REQUIRE(status == TNF_OK, "writing failed: %s", error.message);
    if (original)
        FUZZ_REQUIRE(once.n == size && memcmp(once.p, original, size) == 0,
                     "strict bytes read and written: other bytes");
    tnf_cbor r;
    tnf_cbor_init(&r, once.p, once.n, 0, arena, DEPTH + 1, profile, &error);
    FUZZ_REQUIRE(tnf_cbor_value(&r, &again) && tnf_cbor_end(&r) == TNF_OK, "%s", error.message);
    FUZZ_REQUIRE(tnf_cbor_put_value(&twice, &again, profile, DEPTH + 1, &error) == TNF_OK, "%s",
                 error.message);
    FUZZ_REQUIRE(once.n == twice.n && memcmp(once.p, twice.p, once.n) == 0,
                 "written, read and written again: other bytes");
    tnf_buf_free(&once);
    tnf_buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tnf_error error = { 0 };
    tnf_arena arena;
    tnf_cbor r;
    tnf_cbor_rule rule;
    tnf_value value;
    tnf_allocator allocator = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &allocator, ROOM);
    bool is_strict = can_skip(data, size, TNF_CBOR_STRICT, &error);
    bool is_lenient = can_skip(data, size, TNF_CBOR_LENIENT, &error);
    FUZZ_REQUIRE(!is_strict || is_lenient, "strict, but not lenient: %s", error.message);

    bool read = can_read(data, size, TNF_CBOR_STRICT, &arena, &value, &rule);
    FUZZ_REQUIRE(read == is_strict, "strict: a tree %d, skipped %d", read, is_strict);
    if (read)
        check_rewritten(&value, TNF_CBOR_STRICT, &arena, data, size);
    read = can_read(data, size, TNF_CBOR_LENIENT, &arena, &value, &rule);
    FUZZ_REQUIRE(read == is_lenient || rule == TNF_CBOR_DUPLICATE_KEY,
                 "lenient: a tree %d, skipped %d", read, is_lenient);
    if (read) {
        check_rewritten(&value, TNF_CBOR_LENIENT, &arena, NULL, 0);
        check_rewritten(&value, TNF_CBOR_STRICT, &arena, NULL, 0);
    }
    for (unsigned profile = TNF_CBOR_LENIENT; profile <= TNF_CBOR_STRICT; profile++) {
        tnf_cbor_init(&r, data, size, 0, &arena, DEPTH, (tnf_cbor_profile)profile, &error);
        pull_item(&r);
        bool pulled = tnf_cbor_end(&r) == TNF_OK;
        FUZZ_REQUIRE(!pulled || (profile == TNF_CBOR_STRICT ? is_strict : is_lenient),
                     "pulled, but not skipped");
    }
    tnf_arena_free(&arena);
    return 0;
}
