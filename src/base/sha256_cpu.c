/* SPDX-License-Identifier: MIT */
/* SHA-256 by the instructions of the CPU: x86-64 (SHA-NI) and 64-bit ARM (SHA2), detected at run
 * time. Both compute four words of the schedule at once.
 *
 *   m[0] m[1] m[2] m[3]     sixteen words; four rounds use m[0],
 *    └────┴────┴────┴──>    then the four words after the sixteen take its place, and so on
 *
 * x86-64 needs the eight letters in another order than the hash: two rounds change a, b, e and f,
 * and the old values become c, d, g and h.
 */
#include "base/bytes.h"
#include "base/sha256_rounds.h"

#include <stdbool.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_INSTRUCTIONS
#include <cpuid.h>
#include <immintrin.h>

#define TARGET __attribute__((target("sha,sse4.1,ssse3")))
#define INLINE TARGET static inline __attribute__((always_inline))

typedef __m128i four;

typedef struct halves {
    four abef, cdgh; /* the last letter in the lowest word */
} halves;

INLINE four load_four(const uint32_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

INLINE four load_words(const uint8_t *p)
{
    const four reversed = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), reversed);
}

INLINE halves load_hash(const uint32_t *hash)
{
    four badc = _mm_shuffle_epi32(load_four(hash), 0xb1),
         hgfe = _mm_shuffle_epi32(load_four(hash + 4), 0x1b);
    return (halves) { _mm_alignr_epi8(badc, hgfe, 8), _mm_blend_epi16(hgfe, badc, 0xf0) };
}

INLINE void store_hash(uint32_t *hash, halves s)
{
    four abef = _mm_shuffle_epi32(s.abef, 0x1b), ghcd = _mm_shuffle_epi32(s.cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)hash, _mm_blend_epi16(abef, ghcd, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(hash + 4), _mm_alignr_epi8(ghcd, abef, 8));
}

INLINE halves add_halves(halves s, halves t)
{
    return (halves) { _mm_add_epi32(s.abef, t.abef), _mm_add_epi32(s.cdgh, t.cdgh) };
}

INLINE halves four_rounds(halves s, four words, unsigned t)
{
    four sum = _mm_add_epi32(words, load_four(tnf_sha256_rounds + t));
    s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, sum);
    s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(sum, 0x0e));
    return s;
}

/* The four words after the sixteen of a, b, c, d. */
INLINE four next_words(four a, four b, four c, four d)
{
    four sum = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8(d, c, 4));
    return _mm_sha256msg2_epu32(sum, d);
}

static bool cpu_has_it(void)
{
    const unsigned sha = 1u << 29, order = bit_SSSE3 | bit_SSE4_1;
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & order) == order &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & sha);
}

/* Clang before 16 declares these instructions only for files that are compiled for them. */
#elif defined(__aarch64__) && !TNF_BIG_ENDIAN_HOST &&                                              \
    (defined(__ARM_FEATURE_SHA2) || !defined(__clang__) || __clang_major__ >= 16)
#define HAS_INSTRUCTIONS
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#ifdef __ARM_FEATURE_SHA2
#define TARGET
#else
#define TARGET __attribute__((target("+crypto")))
#endif
#define INLINE TARGET static inline __attribute__((always_inline))

typedef uint32x4_t four;

typedef struct halves {
    four abcd, efgh;
} halves;

INLINE four load_words(const uint8_t *p)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(p)));
}

INLINE halves load_hash(const uint32_t *hash)
{
    return (halves) { vld1q_u32(hash), vld1q_u32(hash + 4) };
}

INLINE void store_hash(uint32_t *hash, halves s)
{
    vst1q_u32(hash, s.abcd);
    vst1q_u32(hash + 4, s.efgh);
}

INLINE halves add_halves(halves s, halves t)
{
    return (halves) { vaddq_u32(s.abcd, t.abcd), vaddq_u32(s.efgh, t.efgh) };
}

INLINE halves four_rounds(halves s, four words, unsigned t)
{
    four sum = vaddq_u32(words, vld1q_u32(tnf_sha256_rounds + t));
    return (halves) { vsha256hq_u32(s.abcd, s.efgh, sum), vsha256h2q_u32(s.efgh, s.abcd, sum) };
}

INLINE four next_words(four a, four b, four c, four d)
{
    return vsha256su1q_u32(vsha256su0q_u32(a, b), c, d);
}

static bool cpu_has_it(void)
{
#if defined(__ARM_FEATURE_SHA2)
    return true;
#elif defined(__linux__)
    const unsigned long sha2 = 1ul << 6; /* HWCAP_SHA2 */
    return getauxval(AT_HWCAP) & sha2;
#else
    return false;
#endif
}
#endif

#ifdef HAS_INSTRUCTIONS
TARGET static void add_by_cpu(uint32_t *hash, const uint8_t *blocks, size_t n)
{
    halves s = load_hash(hash);
    for (; n > 0; n--, blocks += 64) {
        halves before = s;
        four m[4];
        TNF_SHA256_UNROLL for (unsigned i = 0; i < 4; i++)
            m[i] = load_words(blocks + (size_t)16 * i);
        for (unsigned t = 0; t < 48; t += 16)
            TNF_SHA256_UNROLL for (unsigned i = 0; i < 4; i++)
            {
                s = four_rounds(s, m[i], t + 4 * i);
                m[i] = next_words(m[i], m[(i + 1) % 4], m[(i + 2) % 4], m[(i + 3) % 4]);
            }
        TNF_SHA256_UNROLL for (unsigned i = 0; i < 4; i++) s = four_rounds(s, m[i], 48 + 4 * i);
        s = add_halves(s, before);
    }
    store_hash(hash, s);
}

tnf_sha256_fn *tnf_sha256_by_cpu(void)
{
    return cpu_has_it() ? add_by_cpu : NULL;
}
#else
tnf_sha256_fn *tnf_sha256_by_cpu(void)
{
    return NULL;
}
#endif
