/* SPDX-License-Identifier: MIT */
/* Tables of CRCs, made by the compiler.
 *
 * Table k gives the effect of a byte on the sum when k more bytes follow it. The sum is linear, so
 * the entry of a byte is the xor of the entries of its bits: eight constants make a table.
 */
#ifndef TNF_BASE_CRC_TABLE_H
#define TNF_BASE_CRC_TABLE_H

#define BIT(i, b, constant) ((i) >> (b)&1 ? (constant) : 0u)
#define ENTRY(i, a, b, c, d, e, f, g, h)                                                           \
    (BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^ BIT(i, 4, e) ^ BIT(i, 5, f) ^     \
     BIT(i, 6, g) ^ BIT(i, 7, h))
#define FOUR(i, ...)                                                                               \
    ENTRY((i), __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__),             \
        ENTRY((i) + 3, __VA_ARGS__)
#define SIXTEEN(i, ...)                                                                            \
    FOUR((i), __VA_ARGS__), FOUR((i) + 4, __VA_ARGS__), FOUR((i) + 8, __VA_ARGS__),                \
        FOUR((i) + 12, __VA_ARGS__)
#define SIXTY_FOUR(i, ...)                                                                         \
    SIXTEEN((i), __VA_ARGS__), SIXTEEN((i) + 16, __VA_ARGS__), SIXTEEN((i) + 32, __VA_ARGS__),     \
        SIXTEEN((i) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
    {                                                                                              \
        SIXTY_FOUR(0u, __VA_ARGS__), SIXTY_FOUR(64u, __VA_ARGS__), SIXTY_FOUR(128u, __VA_ARGS__),  \
            SIXTY_FOUR(192u, __VA_ARGS__)                                                          \
    }

#endif
