/* SPDX-License-Identifier: MIT */
#ifndef TNF_BASE_UTF8_H
#define TNF_BASE_UTF8_H

#include <tenfold/types.h> /* tnf_utf8_valid(), tnf_utf8_next() */

bool tnf_ascii(const char *p, size_t n);

#endif
