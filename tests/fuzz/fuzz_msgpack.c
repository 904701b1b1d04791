/* SPDX-License-Identifier: MIT */
/* The MessagePack reader on any bytes. Skip, tree and pulling agree on validity. A tree is written
 * as no more bytes than were read, and these read back as a tree that is written the same way. */
#include "base/arena.h"
#include "base/buf.h"
#include "fuzz.h"
#include "wire/msgpack.h"
#include <string.h>

#define DEPTH 32u
#define ROOM  ((uint64_t)64 << 20)

static bool can_skip(const uint8_t *data, size_t size)
{
    tnf_error error = { 0 };
    tnf_msgpack r;
    tnf_str raw;
    tnf_msgpack_init(&r, data, size, 0, NULL, DEPTH, &error);
    bool skipped = tnf_msgpack_skip(&r, &raw);
    FUZZ_REQUIRE(!skipped || (raw.n > 0 && raw.n <= size && r.depth == 0), "a wrong span");
    bool ok = skipped && tnf_msgpack_end(&r) == TNF_OK;
    FUZZ_REQUIRE(ok == (r.status == TNF_OK), "skip returned %d, status %d", ok, r.status);
    FUZZ_REQUIRE(ok || (error.status == r.status && error.offset <= size), "no offset");
    return ok;
}

/* Walks with the pulling functions. */
static void pull_item(tnf_msgpack *r)
{
    tnf_msgpack_scope scope;
    tnf_str s;
    uint64_t u;
    int64_t i;
    double d;
    int8_t type;
    bool b;
    switch (tnf_msgpack_peek(r)) {
    case TNF_MSGPACK_MAP:
        tnf_msgpack_enter_map(r, &scope);
        while (tnf_msgpack_key(r, &scope, &s))
            pull_item(r);
        break;
    case TNF_MSGPACK_ARRAY:
        tnf_msgpack_enter_array(r, &scope);
        while (tnf_msgpack_item(r, &scope))
            pull_item(r);
        break;
    case TNF_MSGPACK_UINT:
        tnf_msgpack_u64(r, &u);
        break;
    case TNF_MSGPACK_INT:
        tnf_msgpack_i64(r, &i);
        break;
    case TNF_MSGPACK_FLOAT:
        tnf_msgpack_f64(r, &d);
        break;
    case TNF_MSGPACK_STR:
        tnf_msgpack_str(r, &s);
        break;
    case TNF_MSGPACK_BIN:
        tnf_msgpack_bin(r, &s);
        break;
    case TNF_MSGPACK_EXT:
        tnf_msgpack_ext(r, &type, &s);
        break;
    case TNF_MSGPACK_BOOL:
        tnf_msgpack_bool(r, &b);
        break;
    case TNF_MSGPACK_NIL:
        tnf_msgpack_nil(r);
        break;
    default:
        tnf_msgpack_skip(r, NULL);
        break;
    }
}

static void check_rewritten(const tnf_value *value, tnf_arena *arena, size_t size)
{
    tnf_error error;
    tnf_msgpack r;
    tnf_value again;
    tnf_buf once, twice;
    tnf_buf_init(&once, &arena->alloc, ROOM);
    tnf_buf_init(&twice, &arena->alloc, ROOM);
    tnf_status status = tnf_msgpack_put_value(&once, value, DEPTH, &error);
    FUZZ_REQUIRE(status == TNF_OK, "writing failed: %s", error.message);
    FUZZ_REQUIRE(once.n <= size, "the shortest form is longer");
    tnf_msgpack_init(&r, once.p, once.n, 0, arena, DEPTH, &error);
    FUZZ_REQUIRE(tnf_msgpack_value(&r, &again) && tnf_msgpack_end(&r) == TNF_OK, "%s",
                 error.message);
    status = tnf_msgpack_put_value(&twice, &again, DEPTH, &error);
    FUZZ_REQUIRE(status == TNF_OK, "writing failed: %s", error.message);
    FUZZ_REQUIRE(once.n == twice.n && memcmp(once.p, twice.p, once.n) == 0,
                 "written, read and written again: other bytes");
    tnf_buf_free(&once);
    tnf_buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tnf_error error;
    tnf_arena arena;
    tnf_msgpack r;
    tnf_value value;
    tnf_allocator allocator = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &allocator, ROOM);
    bool skipped = can_skip(data, size);
    tnf_msgpack_init(&r, data, size, 0, &arena, DEPTH, &error);
    bool read = tnf_msgpack_value(&r, &value) && tnf_msgpack_end(&r) == TNF_OK;
    FUZZ_REQUIRE(read == skipped, "a tree %d, skipped %d", read, skipped);
    if (read)
        check_rewritten(&value, &arena, size);
    tnf_msgpack_init(&r, data, size, 0, NULL, DEPTH, &error);
    pull_item(&r);
    bool pulled = tnf_msgpack_end(&r) == TNF_OK;
    FUZZ_REQUIRE(pulled == skipped, "pulled %d, skipped %d", pulled, skipped);
    tnf_arena_free(&arena);
    return 0;
}
