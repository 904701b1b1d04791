/* SPDX-License-Identifier: MIT */
/* The JSON reader on any text: skip and tree agree on what is valid, and a tree printed with its
 * types reads back as the same text. */
#include "base/arena.h"
#include "base/buf.h"
#include "fuzz.h"
#include "wire/json.h"
#include <string.h>

#define DEPTH 64u

static void check_typed(const tnf_value *value, tnf_arena *arena)
{
    tnf_error error;
    tnf_json j;
    tnf_value again;
    tnf_buf once, twice;
    tnf_buf_init(&once, &arena->alloc, (uint64_t)64 << 20);
    tnf_buf_init(&twice, &arena->alloc, (uint64_t)64 << 20);
    tnf_json_put_typed(&once, value);
    FUZZ_REQUIRE(once.status == TNF_OK, "printing failed");
    tnf_json_init(&j, once.p, once.n, 0, arena, 4 * DEPTH, &error);
    FUZZ_REQUIRE(tnf_json_typed(&j, &again) && tnf_json_end(&j) == TNF_OK, "%s", error.message);
    tnf_json_put_typed(&twice, &again);
    FUZZ_REQUIRE(once.n == twice.n && memcmp(once.p, twice.p, once.n) == 0,
                 "printed, read and printed again: another text");
    tnf_buf_free(&once);
    tnf_buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tnf_error error;
    tnf_arena arena;
    tnf_json j;
    tnf_str text;
    tnf_value value;
    tnf_allocator allocator = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &allocator, (uint64_t)64 << 20);

    tnf_json_init(&j, data, size, 0, &arena, DEPTH, &error);
    bool skipped = tnf_json_skip(&j, &text) && tnf_json_end(&j) == TNF_OK;
    tnf_json_init(&j, data, size, 0, &arena, DEPTH, &error);
    bool read = tnf_json_value(&j, &value) && tnf_json_end(&j) == TNF_OK;
    FUZZ_REQUIRE(!read || skipped, "read as a tree, but not skipped");
    if (read)
        check_typed(&value, &arena);
    tnf_json_init(&j, data, size, 0, &arena, 4 * DEPTH, &error);
    if (tnf_json_typed(&j, &value) && tnf_json_end(&j) == TNF_OK)
        check_typed(&value, &arena);
    tnf_arena_free(&arena);
    return 0;
}
