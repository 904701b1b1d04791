/* SPDX-License-Identifier: MIT */
/* The table of element types, and their conversion to numbers.
 *
 * The twelve storage types come first, in the order of tnf_dtype, so that a tnf_dtype is a position
 * in the table. Elements of fewer than eight bits are packed without gaps, the first in the least
 * significant bits:
 *
 *   f4_e2m1    [1111 0000] [3333 2222]         i4 and u4 likewise
 *   f6_*       [11 000000] [2222 1111] [333333 22]
 *   i2, u2     [33 22 11 00]
 *   bit        [76543210]
 *
 * Integers of 128 bits are pairs of u64, the lower half first. Where numbers of the other byte
 * order are reversed, all 16 bytes are reversed together, but complex numbers half by half.
 */
#include "model/dtype.h"

#include "base/bytes.h"
#include "base/ckd.h"
#include "base/half.h"
#include "base/ieee.h"
#include "base/int128.h"
#include "base/str.h"

#include <string.h>

/* Decodes elements [first, first+n) of packed bytes at any alignment, and reads no byte outside
 * them. */
typedef void decoder(const uint8_t *packed, size_t first, size_t n, double *out);

static double f32_at(const uint8_t *p)
{
    uint32_t bits = tnf_le32(p);
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static double f64_at(const uint8_t *p)
{
    uint64_t bits = tnf_le64(p);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* For types of whole bytes: `expression` makes a double of the `width` bytes at p. */
#define DECODER(name, width, expression)                                                           \
    static void name(const uint8_t *packed, size_t first, size_t n, double *out)                   \
    {                                                                                              \
        const uint8_t *p = packed + first * (width);                                               \
        for (size_t i = 0; i < n; i++, p += (width))                                               \
            out[i] = (double)(expression);                                                         \
    }

DECODER(decode_f64, 8, f64_at(p))
DECODER(decode_f32, 4, f32_at(p))
DECODER(decode_f16, 2, tnf_f16_to_f32(tnf_le16(p)))
DECODER(decode_bf16, 2, tnf_bf16_to_f32(tnf_le16(p)))
DECODER(decode_i64, 8, (int64_t)tnf_le64(p))
DECODER(decode_i32, 4, (int32_t)tnf_le32(p))
DECODER(decode_i16, 2, (int16_t)tnf_le16(p))
DECODER(decode_i8, 1, (int8_t)*p)
DECODER(decode_u64, 8, tnf_le64(p))
DECODER(decode_u32, 4, tnf_le32(p))
DECODER(decode_u16, 2, tnf_le16(p))
DECODER(decode_u8, 1, *p)
DECODER(decode_bool, 1, *p != 0)
DECODER(decode_i128, 16, tnf_i128_to_f64(tnf_le128(p)))
DECODER(decode_u128, 16, tnf_u128_to_f64(tnf_le128(p)))

/* Integers of whole bytes have at most 16 of them; the double of a smaller one is exact. */
static tnf_u128 integer_at(const tnf_type *type, const uint8_t *packed, size_t i, double x)
{
    if (type->bits == 128)
        return tnf_le128(packed + 16 * i);
    uint64_t low = type->bits == 64 ? tnf_le64(packed + 8 * i) : (uint64_t)(int64_t)x;
    return tnf_u128_of_64(low, type->number == TNF_NUMBER_INT);
}

static void decode_c64(const uint8_t *packed, size_t first, size_t n, double *out)
{
    decode_f32(packed, 2 * first, 2 * n, out);
}

static void decode_c128(const uint8_t *packed, size_t first, size_t n, double *out)
{
    decode_f64(packed, 2 * first, 2 * n, out);
}

/* The `bits` bits (below eight) of element i; the bits above them are undefined. */
static uint8_t packed_at(const uint8_t *packed, size_t i, unsigned bits)
{
    unsigned from = (unsigned)(i % 8) * bits;
    const uint8_t *p = packed + i / 8 * bits + from / 8;
    unsigned shift = from % 8, low = (unsigned)p[0] >> shift;
    return (uint8_t)(shift + bits > 8 ? low | (unsigned)p[1] << (8 - shift) : low);
}

static float value_of_i4(uint8_t b)
{
    return (float)((int)((b & 15u) ^ 8u) - 8);
}

static float value_of_u4(uint8_t b)
{
    return (float)(b & 15u);
}

static float value_of_i2(uint8_t b)
{
    return (float)((int)((b & 3u) ^ 2u) - 2);
}

static float value_of_u2(uint8_t b)
{
    return (float)(b & 3u);
}

static float value_of_bit(uint8_t b)
{
    return (float)(b & 1u);
}

typedef struct known_type {
    tnf_type type;
    union {
        decoder *decode;
        float (*value)(uint8_t bits); /* of one element, if is_small() */
    } as;
} known_type;

static bool is_small(const tnf_type *type)
{
    return type->bits < 8 || (type->bits == 8 && type->number == TNF_NUMBER_FLOAT);
}

static const known_type known[] = {
    [TNF_F64] = { { "f64", TNF_F64, TNF_NUMBER_FLOAT, 64 }, { decode_f64 } },
    [TNF_F32] = { { "f32", TNF_F32, TNF_NUMBER_FLOAT, 32 }, { decode_f32 } },
    [TNF_F16] = { { "f16", TNF_F16, TNF_NUMBER_FLOAT, 16 }, { decode_f16 } },
    [TNF_BF16] = { { "bf16", TNF_BF16, TNF_NUMBER_FLOAT, 16 }, { decode_bf16 } },
    [TNF_I64] = { { "i64", TNF_I64, TNF_NUMBER_INT, 64 }, { decode_i64 } },
    [TNF_I32] = { { "i32", TNF_I32, TNF_NUMBER_INT, 32 }, { decode_i32 } },
    [TNF_I16] = { { "i16", TNF_I16, TNF_NUMBER_INT, 16 }, { decode_i16 } },
    [TNF_I8] = { { "i8", TNF_I8, TNF_NUMBER_INT, 8 }, { decode_i8 } },
    [TNF_U64] = { { "u64", TNF_U64, TNF_NUMBER_UINT, 64 }, { decode_u64 } },
    [TNF_U32] = { { "u32", TNF_U32, TNF_NUMBER_UINT, 32 }, { decode_u32 } },
    [TNF_U16] = { { "u16", TNF_U16, TNF_NUMBER_UINT, 16 }, { decode_u16 } },
    [TNF_U8] = { { "u8", TNF_U8, TNF_NUMBER_UINT, 8 }, { decode_u8 } },
    { { "bool", TNF_U8, TNF_NUMBER_BOOL, 8 }, { decode_bool } },
    { { "bit", TNF_U8, TNF_NUMBER_UINT, 1 }, { .value = value_of_bit } },
    { { "f8_e4m3fn", TNF_U8, TNF_NUMBER_FLOAT, 8 }, { .value = tnf_f8_e4m3fn_to_f32 } },
    { { "f8_e5m2", TNF_U8, TNF_NUMBER_FLOAT, 8 }, { .value = tnf_f8_e5m2_to_f32 } },
    { { "f8_e4m3fnuz", TNF_U8, TNF_NUMBER_FLOAT, 8 }, { .value = tnf_f8_e4m3fnuz_to_f32 } },
    { { "f8_e5m2fnuz", TNF_U8, TNF_NUMBER_FLOAT, 8 }, { .value = tnf_f8_e5m2fnuz_to_f32 } },
    { { "f8_e8m0", TNF_U8, TNF_NUMBER_FLOAT, 8 }, { .value = tnf_f8_e8m0_to_f32 } },
    { { "f6_e2m3", TNF_U8, TNF_NUMBER_FLOAT, 6 }, { .value = tnf_f6_e2m3_to_f32 } },
    { { "f6_e3m2", TNF_U8, TNF_NUMBER_FLOAT, 6 }, { .value = tnf_f6_e3m2_to_f32 } },
    { { "f4_e2m1", TNF_U8, TNF_NUMBER_FLOAT, 4 }, { .value = tnf_f4_e2m1_to_f32 } },
    { { "i4", TNF_U8, TNF_NUMBER_INT, 4 }, { .value = value_of_i4 } },
    { { "u4", TNF_U8, TNF_NUMBER_UINT, 4 }, { .value = value_of_u4 } },
    { { "i2", TNF_U8, TNF_NUMBER_INT, 2 }, { .value = value_of_i2 } },
    { { "u2", TNF_U8, TNF_NUMBER_UINT, 2 }, { .value = value_of_u2 } },
    { { "i128", TNF_U64, TNF_NUMBER_INT, 128 }, { decode_i128 } },
    { { "u128", TNF_U64, TNF_NUMBER_UINT, 128 }, { decode_u128 } },
    { { "c64", TNF_F32, TNF_NUMBER_COMPLEX, 64 }, { decode_c64 } },
    { { "c128", TNF_F64, TNF_NUMBER_COMPLEX, 128 }, { decode_c128 } },
};

enum { KNOWN = sizeof known / sizeof known[0] };

const tnf_type *tnf_type_of(tnf_dtype dtype)
{
    return (unsigned)dtype < TNF_DTYPE_COUNT ? &known[dtype].type : NULL;
}

const tnf_type *tnf_type_at(size_t i)
{
    return i < KNOWN ? &known[i].type : NULL;
}

const tnf_type *tnf_type_find(const char *id, size_t n)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strlen(known[i].type.id) == n && memcmp(known[i].type.id, id, n) == 0)
            return &known[i].type;
    return NULL;
}

const tnf_type *tnf_type_named(const char *id)
{
    return id ? tnf_type_find(id, strlen(id)) : NULL;
}

static void decode_type(const known_type *k, const uint8_t *packed, size_t first, size_t n,
                        double *out)
{
    if (!is_small(&k->type))
        k->as.decode(packed, first, n, out);
    for (size_t i = 0; i < n && is_small(&k->type); i++)
        out[i] = (double)k->as.value(packed_at(packed, first + i, k->type.bits));
}

bool tnf_type_decode(double *out, const tnf_type *type, const void *packed, size_t first, size_t n)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (&known[i].type == type) {
            if (n > 0 && !packed)
                return false;
            if (n > 0) { /* for n = 0 the pointer may be NULL */
                uint32_t mode = tnf_enter_ieee();
                decode_type(&known[i], packed, first, n, out);
                tnf_leave_ieee(mode);
            }
            return true;
        }
    return false;
}

static bool is_whole(const tnf_type *type)
{
    return type && (type->number == TNF_NUMBER_INT || type->number == TNF_NUMBER_UINT ||
                    type->number == TNF_NUMBER_BOOL);
}

size_t tnf_type_integer(char *out, size_t room, const tnf_type *type, const void *packed, size_t i)
{
    double x;
    char text[TNF_INTEGER_TEXT] = "";
    size_t n = 0;
    if (is_whole(type) && tnf_type_decode(&x, type, packed, i, 1)) {
        tnf_u128 v = integer_at(type, packed, i, x);
        bool minus = type->number == TNF_NUMBER_INT && v.high >> 63;
        text[0] = '-';
        n = minus + tnf_u128_text(text + minus, minus ? tnf_i128_size(v) : v);
    }
    if (out && room > 0) {
        size_t some = n < room ? n : room - 1;
        memcpy(out, text, some);
        out[some] = 0;
    }
    return n;
}

bool tnf_type_bytes(uint64_t *out, const tnf_type *type, uint64_t n)
{
    uint64_t whole, rest = (n % 8 * type->bits + 7) / 8;
    if (type->bits == 0)
        return false;
    return tnf_ckd_mul(&whole, n / 8, type->bits) && tnf_ckd_add(out, whole, rest);
}

size_t tnf_dtype_size(tnf_dtype dtype)
{
    const tnf_type *type = tnf_type_of(dtype);
    return type ? type->bits / 8 : 0;
}

size_t tnf_type_swap(const tnf_type *type)
{
    bool integer = type->number == TNF_NUMBER_INT || type->number == TNF_NUMBER_UINT;
    return integer && type->bits == 128 ? 16 : tnf_dtype_size(type->storage);
}

size_t tnf_part_swap(const tnf_part *part)
{
    return part->flags & TNF_PART_PAIRS ? 16 : tnf_type_swap(part->type);
}

size_t tnf_type_align(const tnf_type *type)
{
    return tnf_dtype_size(type->storage);
}

bool tnf_list_has(const char *list, const char *id)
{
    return !list || tnf_str_listed((tnf_str) { id, strlen(id) }, list);
}
