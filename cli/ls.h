/* SPDX-License-Identifier: MIT */
/* The contents of `tenfold ls`, shared by the command and its table. */
#ifndef TENFOLD_CLI_LS_H
#define TENFOLD_CLI_LS_H

#include "stat.h"

#define LS_SORTS "file|name|size|offset|dtype"

typedef enum ls_key { LS_FILE, LS_NAME, LS_SIZE, LS_OFFSET, LS_DTYPE } ls_key;

typedef struct ls_options {
    input_options in;
    bool json, tsv, details, reverse;
    int sort; /* an ls_key */
    const char *depth;
    opt_list match, exclude;
} ls_options;

typedef struct ls_item {
    const tnf_object *object;
    size_t place; /* in the file */
} ls_item;

/* The requested tensors. */
typedef struct listing {
    ls_item *items;
    size_t n;
} listing;

typedef struct ls_total {
    uint64_t tensors, parameters, bytes;
} ls_total;

void ls_sort(listing *l, const ls_options *how);
void ls_sort_sums(stat_sums *sums, const ls_options *how);

/* ls_table.c: as text. The shown tensors are added to the total. */
void ls_print(const cli_state *cli, const listing *l, const ls_options *how, ls_total *total);
void ls_print_sums(const cli_state *cli, const stat_sums *sums, ls_total *total);
void ls_print_total(const ls_total *total, size_t files);

const char *ls_encoding(const tnf_part *part);
#define LS_DIGEST 160
/* The digest as it is in the file, or as "crc32c:0x01020304", "sha256:…"; returns 0 if there is
 * none. */
int ls_digest(char out[LS_DIGEST], const tnf_part *part);

#endif
