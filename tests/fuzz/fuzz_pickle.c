/* SPDX-License-Identifier: MIT */
/* The pickle machine on any bytes: it terminates, its memory is proportional to the input, and its
 * result can be shown. */
#include "base/arena.h"
#include "fuzz.h"
#include "wire/pickle.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tnf_error error = { .offset = 0 };
    tnf_arena arena;
    tnf_pickle p;
    char shown[300];
    tnf_allocator allocator = tnf_allocator_or_default(NULL);
    tnf_arena_init(&arena, &allocator, (uint64_t)64 << 20);
    tnf_status status = tnf_pickle_read(&p, data, size, 0, &arena, &error);
    FUZZ_REQUIRE(p.used <= size, "read beyond the end");
    FUZZ_REQUIRE(status == TNF_OK || (error.status == status && error.message[0]), "no sentence");
    FUZZ_REQUIRE(arena.total < 300 * (uint64_t)size + 65536, "%llu bytes of memory for %zu",
                 (unsigned long long)arena.total, size);
    if (status == TNF_OK) {
        tnf_pickle_show(shown, sizeof shown, p.root);
        FUZZ_REQUIRE(strlen(shown) < sizeof shown, "shown too long");
    }
    for (size_t i = 0; i < p.calls.n; i++)
        tnf_pickle_show(shown, sizeof shown, p.calls.nodes[i]);
    tnf_arena_free(&arena);
    return 0;
}
