/* SPDX-License-Identifier: MIT */
/* Converts elements of dense tensors to other types, with or without scales. Another kernel copies
 * many small tensors to their places. numbers.cl describes how kernels are called. */
#ifndef KERNELS_AS_C
#include "numbers.cl"
#endif

/* The index of the scale of element i, in a matrix with rows of `cols` elements. Scales are in rows
 * of `across`, one for each block of rows and columns. */
static inline ulong place_of(ulong i, ulong cols, ulong rows_cols, ulong across)
{
    ulong row = i / cols, column = i % cols;
    uint block_rows = (uint)(rows_cols >> 32), block_cols = (uint)rows_cols;
    return row / block_rows * across + column / block_cols;
}

/* `first` is the number of the first element in its tensor; `scales` are f32, 0 without them. */
#define ELEMENTS(name, get)                                                                        \
    KERNEL(name, ulong first, ulong scales, ulong cols, ulong rows_cols, ulong across)             \
    {                                                                                              \
        bytes_in p = (bytes_in)src;                                                                \
        for (ulong i = FIRST; i < n; i += STEP) {                                                  \
            uint x = get;                                                                          \
            if (scales)                                                                            \
                x = scaled(x, ((__global const float *)                                            \
                                   scales)[place_of(first + i, cols, rows_cols, across)]);         \
            put(dst, i, to, x);                                                                    \
        }                                                                                          \
    }

ELEMENTS(tnf_f32, two_bytes(p + 4 * i) | two_bytes(p + 4 * i + 2) << 16)
ELEMENTS(tnf_f16, widen(two_bytes(p + 2 * i), 5, 10, 1))
ELEMENTS(tnf_bf16, widen_bf16(two_bytes(p + 2 * i)))
ELEMENTS(tnf_e4m3, widen_e4m3(p[i]))
ELEMENTS(tnf_e5m2, widen(p[i], 5, 2, 1))

/* --------------------------------------------------------------------- places */

/* Copies the bytes of many tensors from a block at `src` to their places. The table at `dst` has
 * `n` rows of four numbers: the number of 16-byte chunks before the tensor, its offset in the
 * block, its address, its size. `to` is the number of all chunks. */
KERNEL(tnf_scatter, ulong first, ulong scales, ulong cols, ulong rows_cols, ulong across)
{
    __global const ulong *table = (__global const ulong *)dst;
    (void)first, (void)scales, (void)cols, (void)rows_cols, (void)across;
    for (ulong i = FIRST; i < to; i += STEP) {
        ulong low = 0, high = n;
        while (high - low > 1) {
            ulong middle = (low + high) / 2;
            if (table[4 * middle] <= i)
                low = middle;
            else
                high = middle;
        }
        __global const ulong *row = table + 4 * low;
        ulong at = (i - row[0]) * 16, left = row[3] - at;
        bytes_in from = (bytes_in)(src + row[1] + at);
        bytes_out out = (bytes_out)(row[2] + at);
        for (uint k = 0; k < 16; k++)
            if (k < left)
                out[k] = from[k];
    }
}
