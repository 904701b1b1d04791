/* SPDX-License-Identifier: MIT */
/* A model of some megabytes whose every byte is known, so that old can be told from new and whole
 * from half. */
#ifndef TNF_SUPPORT_BIG_H
#define TNF_SUPPORT_BIG_H

#include "files.h"
#include <tenfold/build.h>

#define BIG_FORMAT "gptrs-archive"

/* Byte i of the tensors of model `version`. */
static inline uint8_t big_byte(unsigned version, uint64_t i)
{
    return (uint8_t)((i * 2654435761u >> 13) + version * 101 + i);
}

static inline tnf_status big_fetch(void *ctx, uint64_t offset, void *dst, size_t n,
                                   tnf_error *error)
{
    (void)error;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = big_byte(*(unsigned *)ctx, offset + i);
    return TNF_OK;
}

/* A builder of `tensors` tensors "t0" … of `bytes` bytes each (a multiple of 4). *version must
 * stay.
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
    for (uint64_t i = 0; i < n; i++)
        if (((const uint8_t *)p)[i] != big_byte(version, i))
            return false;
    return true;
}

#endif
