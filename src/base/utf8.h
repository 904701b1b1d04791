/* SPDX-License-Identifier: MIT */
#ifndef TNF_BASE_UTF8_H
#define TNF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Is it well-formed UTF-8 (no surrogates, no overlong forms)? *bad_at is the first wrong byte. */
bool tnf_utf8_valid(const char *p, size_t n, size_t *bad_at);
bool tnf_ascii(const char *p, size_t n);

#endif
