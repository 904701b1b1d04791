/* SPDX-License-Identifier: MIT */
#ifndef TNF_BASE_LOSSY_H
#define TNF_BASE_LOSSY_H

#include <stddef.h>

/* Copies bytes as UTF-8, with U+FFFD for each maximal invalid piece, as Unicode recommends and as
 * Rust and Python do. Writes at most 3 n bytes; returns their number. */
size_t tnf_utf8_mend(char *out, const char *p, size_t n);

#endif
