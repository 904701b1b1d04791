/* SPDX-License-Identifier: MIT */
/* Unicode's normal form C, looked at. */
#ifndef TNF_BASE_NFC_H
#define TNF_BASE_NFC_H

#include <stdbool.h>
#include <stddef.h>

/* Longer texts are not looked at, and said to be in no normal form. */
#define TNF_NFC_LONGEST 1024u

/* Is valid UTF-8 of n bytes in normal form C? Its own normal form is computed where a quick look
 * cannot tell. */
bool tnf_nfc(const char *text, size_t n);

#endif
