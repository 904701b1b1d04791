/* SPDX-License-Identifier: MIT */
#ifndef TNF_BASE_UTF8_H
#define TNF_BASE_UTF8_H

#include <tenfold/types.h> /* tnf_utf8_valid(), tnf_utf8_next() */

bool tnf_ascii(const char *p, size_t n);
/* Writes a code point up to U+10FFFF, surrogates too, as 1 to 4 bytes. Returns their number. */
size_t tnf_utf8_put(char *out, uint32_t c);

#endif
