/* SPDX-License-Identifier: MIT */
/* Numbers as text, without a locale: decimal to the nearest f32 and back by the fewest digits. */
#ifndef TNF_BASE_DECIMAL_H
#define TNF_BASE_DECIMAL_H

#include <stddef.h>

/* The number that begins at p: digits with at most one point among them and perhaps an exponent,
 * "inf", "infinity", "nan" or "nan(0x400001)" in any case, each with a sign or without. *out is the
 * f32 nearest to it, ties to even, infinite beyond the largest. Returns where it ends, or NULL if
 * there is none. All of p … end may be looked at. */
const char *tnf_f32_scan(const char *p, const char *end, float *out);

#define TNF_F32_TEXT 64 /* more than the longest takes: 59 for -1.1754942e-38 */

/* Writes the fewest digits that are read as the same f32, of those the nearest, never with an
 * exponent, and no point behind whole numbers: "0.1", "1", "-0", "inf", "NaN". A NaN of other bits
 * than the usual ones tells them as C does: "NaN(0x400001)". Returns how many bytes that took;
 * there is no NUL behind them. */
size_t tnf_f32_text(char out[TNF_F32_TEXT], float value);
/* The same digits as Python spells them (numpy's repr of a float32): "1.0", "1e-05", "nan". */
size_t tnf_f32_repr(char out[TNF_F32_TEXT], float value);
/* The same digits as C spells them with a precision of five (%.5g), as fastText and floret write:
 * "1", "1e-05", "1.5e+07", "nan". */
size_t tnf_f32_c(char out[TNF_F32_TEXT], float value);

#endif
