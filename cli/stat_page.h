/* SPDX-License-Identifier: MIT */
/* What every page of `stat --html` has: its policy, its look, its script. */
#ifndef TENFOLD_CLI_STAT_PAGE_H
#define TENFOLD_CLI_STAT_PAGE_H

extern const char stat_page_head[], stat_page_style[], stat_page_script[];

#endif
