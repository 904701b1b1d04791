/* SPDX-License-Identifier: MIT */
/* The fixed text of every page of `stat --html`: its policy, its style, its script. */
#ifndef TENFOLD_CLI_STAT_PAGE_H
#define TENFOLD_CLI_STAT_PAGE_H

extern const char stat_page_head[], stat_page_style[], stat_page_script[];

#endif
