/* SPDX-License-Identifier: MIT */
/* Shared by the files that write the HTML page. */
#ifndef TENFOLD_CLI_STAT_HTML_H
#define TENFOLD_CLI_STAT_HTML_H

#include "stat.h"
#include <strings.h>

/* Writes text of a file, escaped for text and for quotes. Text of more than `most` columns is cut;
 * 0: never. */
void html_words(FILE *to, tnf_str s, size_t most);
/* stat_map.c: layers and roles. */
void stat_map(const stat_html *h);
/* stat_heat.c: the values of one tensor as colours. */
void stat_heat(const stat_html *page, const tnf_object *o);

#endif
