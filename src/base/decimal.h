/* SPDX-License-Identifier: MIT */
/* Numbers as text, without a locale: decimal to the nearest f32 and back by the fewest digits;
 * doubles. */
#ifndef TNF_BASE_DECIMAL_H
#define TNF_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>

/* Reads the number that begins at p: digits with at most one point among them and an optional
 * exponent, or "inf", "infinity", "nan" or "nan(0x400001)" in any case, each with or without a
 * sign. *out becomes the nearest f32, ties to even, infinite beyond the largest. Returns the end of
 * the number, or NULL if there is none. The function may look at all of p … end. */
const char *tnf_f32_scan(const char *p, const char *end, float *out);

#define TNF_F32_TEXT 64 /* more than the longest takes: 59 for -1.1754942e-38 */

/* Writes the fewest digits that read back as the same f32; of several such texts, the nearest.
 * There is never an exponent, and no point after whole numbers: "0.1", "1", "-0", "inf", "NaN". A
 * NaN with other bits than the usual ones shows them as C does: "NaN(0x400001)". Returns the number
 * of bytes. The text is not NUL-terminated. */
size_t tnf_f32_text(char out[TNF_F32_TEXT], float value);
/* The same digits as Python spells them (numpy's repr of a float32): "1.0", "1e-05", "nan". */
size_t tnf_f32_repr(char out[TNF_F32_TEXT], float value);
/* The same digits as C spells them with a precision of five (%.5g), as fastText and floret write:
 * "1", "1e-05", "1.5e+07", "nan". */
size_t tnf_f32_c(char out[TNF_F32_TEXT], float value);

#define TNF_F64_TEXT 40 /* enough for 17 digits, with a decimal point of several bytes */

/* Writes a double as printf("%.17g") does in the locale "C". Returns out. */
const char *tnf_f64_text(char out[TNF_F64_TEXT], double value);
/* Reads such a text of n bytes; false if it is something else, or has more than TNF_F64_TEXT
 * bytes. */
bool tnf_f64_parse(double *out, const char *text, size_t n);

/* Changes the text that printf() wrote for one number: its decimal point, which is that of the
 * locale, becomes a point. */
void tnf_number_point(char *number);

#define TNF_NUMBER_MORE 32

/* Writes a decimal number of n bytes without its point, as strtod() and strtof() read it in every
 * locale: "-12.5e3" becomes "-125e2". `out` has n + TNF_NUMBER_MORE bytes. Returns false if the
 * text is something else. */
bool tnf_number_plain(char *out, const char *text, size_t n);

#endif
