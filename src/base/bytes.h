/* SPDX-License-Identifier: MIT */
/* Little- and big-endian loads and stores at any alignment. */
#ifndef TNF_BASE_BYTES_H
#define TNF_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint16_t tnf_le16(const void *at)
{
    const uint8_t *p = at;
    return (uint16_t)(p[0] | (unsigned)p[1] << 8);
}

static inline uint32_t tnf_le32(const void *at)
{
    const uint8_t *p = at;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t tnf_le64(const void *at)
{
    const uint8_t *p = at;
    return (uint64_t)tnf_le32(p) | (uint64_t)tnf_le32(p + 4) << 32;
}

static inline void tnf_put_le16(void *at, uint16_t v)
{
    uint8_t *p = at;
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void tnf_put_le32(void *at, uint32_t v)
{
    uint8_t *p = at;
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static inline void tnf_put_le64(void *at, uint64_t v)
{
    uint8_t *p = at;
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static inline uint16_t tnf_be16(const void *at)
{
    const uint8_t *p = at;
    return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

static inline uint32_t tnf_be32(const void *at)
{
    const uint8_t *p = at;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static inline uint64_t tnf_be64(const void *at)
{
    const uint8_t *p = at;
    return (uint64_t)tnf_be32(p) << 32 | tnf_be32(p + 4);
}

#endif
