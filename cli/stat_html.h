/* SPDX-License-Identifier: MIT */
/* Between the parts of a page. */
#ifndef TENFOLD_CLI_STAT_HTML_H
#define TENFOLD_CLI_STAT_HTML_H

#include "stat.h"
#include <strings.h>

/* Text of a file, safe as text and within quotes; of more than `most` columns the end is cut off,
 * 0: it is not. */
void html_words(FILE *to, tnf_str s, size_t most);
/* stat_map.c: layers and roles. */
void stat_map(const stat_html *h);
/* stat_heat.c: the values of one tensor as colours. */
void stat_heat(const stat_html *page, const tnf_object *o);

#endif
