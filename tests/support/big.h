/* SPDX-License-Identifier: MIT */
/* A model of some megabytes whose every byte is known, so tests can distinguish old from new
 * models, and complete ones from halves. */
#ifndef TNF_SUPPORT_BIG_H
#define TNF_SUPPORT_BIG_H

#include "files.h"
#include <tenfold/build.h>

#define BIG_FORMAT "gptrs-archive"

#define BIG_PERIOD 61441u /* a prime: no block size is a multiple of it */

static uint8_t big_table[2][BIG_PERIOD];

__attribute__((constructor)) static void big_fill(void)
{
    for (uint64_t i = 0; i < BIG_PERIOD; i++)
        for (unsigned version = 0; version < 2; version++)
            big_table[version][i] = (uint8_t)((i * 2654435761u >> 13) + version * 101 + i);
}

/* Byte i of the tensors of model `version`, 0 or 1. */
static inline uint8_t big_byte(unsigned version, uint64_t i)
{
    return big_table[version][i % BIG_PERIOD];
}

static inline tnf_status big_fetch(void *ctx, uint64_t offset, void *dst, size_t n,
                                   tnf_error *error)
{
    (void)error;
    for (size_t done = 0, some; done < n; done += some) {
        size_t at = (size_t)((offset + done) % BIG_PERIOD);
        some = n - done < BIG_PERIOD - at ? n - done : BIG_PERIOD - at;
        memcpy((uint8_t *)dst + done, big_table[*(unsigned *)ctx] + at, some);
    }
    return TNF_OK;
}

/* A builder of `tensors` tensors "t0" … of `bytes` bytes each (a multiple of 4). *version must
 * remain valid.
 */
static inline tnf_builder *big_builder(unsigned *version, unsigned tensors, uint64_t bytes)
{
    tnf_builder *b;
    uint64_t shape[] = { bytes / 4 };
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    for (unsigned i = 0; i < tensors; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", i);
        MUST(tnf_builder_add_stream(b, name, tnf_type_of(TNF_F32), 1, shape, big_fetch, version,
                                    NULL) == TNF_OK);
    }
    return b;
}

static inline tnf_status big_save(const char *path, unsigned version, unsigned tensors,
                                  uint64_t bytes, bool sync, tnf_error *error)
{
    tnf_builder *b = big_builder(&version, tensors, bytes);
    tnf_save_options o = { .size = sizeof o, .format = BIG_FORMAT, .replace = true };
    o.no_sync = !sync;
    tnf_status status = tnf_save(b, path, &o, error);
    tnf_builder_free(b);
    return status;
}

static inline bool big_is(const void *p, uint64_t n, unsigned version)
{
    for (uint64_t at = 0; at < n; at += BIG_PERIOD) {
        size_t some = n - at < BIG_PERIOD ? (size_t)(n - at) : BIG_PERIOD;
        if (memcmp((const uint8_t *)p + at, big_table[version], some) != 0)
            return false;
    }
    return true;
}

#endif
