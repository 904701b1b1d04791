/* SPDX-License-Identifier: MIT */
/* Checks for Unicode's normal form C. */
#ifndef TNF_BASE_NFC_H
#define TNF_BASE_NFC_H

#include <stdbool.h>
#include <stddef.h>

/* Longer texts are not examined, and count as not normal. */
#define TNF_NFC_LONGEST 1024u

/* Is valid UTF-8 of n bytes in normal form C? If a quick check cannot decide, the normal form is
 * computed. */
bool tnf_nfc(const char *text, size_t n);

#endif
