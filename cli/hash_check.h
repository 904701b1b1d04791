/* SPDX-License-Identifier: MIT */
/* Manifests as `tenfold hash` prints them. Each line is one of:
 *
 *   v2:HEX  NAME                    a file, or a tensor
 *   v2-leaf:HEX  OFFSET  NAME#ROLE  4 MiB of a part of the tensor of the line before
 */
#ifndef TENFOLD_CLI_HASH_CHECK_H
#define TENFOLD_CLI_HASH_CHECK_H

#include "cmd.h"

#define HASH_PREFIX 7u /* "sha256:" */
#define HASH_TEXT   (HASH_PREFIX + 64 + 1)
#define HASH_LINE   "v2:"
#define HASH_LEAF   "v2-leaf:"

void hash_text(char out[HASH_TEXT], const uint8_t hash[32]);

typedef struct hash_leaf {
    char *role; /* unescaped */
    uint64_t offset, nbytes;
    char hex[65];
    bool found, differs;
} hash_leaf;

typedef struct hash_item {
    char *name; /* unescaped and NUL-terminated; n does not count the NUL */
    size_t n;
    char hex[65];
    bool found, differs;
    hash_leaf *leaves; /* by role and offset */
    size_t nleaves, room;
    uint64_t unlisted; /* leaves that were found, but are not in the manifest */
} hash_item;

typedef struct hash_list {
    hash_item *items; /* sorted by name */
    size_t n, room;
    size_t unlisted; /* tensors that were found, but are not in the manifest */
    bool leaves;     /* the manifest has leaves */
} hash_list;

/* Reads a manifest; "-" is standard input. Returns an exit code, after reporting an error. */
int hash_list_read(hash_list *out, const char *path);
/* Is any of the names a file that exists? */
bool hash_list_has_file(const hash_list *list);
void hash_list_free(hash_list *list);

/* Compares a tensor of the checked file, or a leaf of a tensor, with the manifest. */
void hash_list_found(hash_list *list, tnf_str name, const char *hex);
void hash_list_found_leaf(hash_list *list, const tnf_leaf *leaf, const char *hex);
/* Prints the differences; returns EXIT_DONE or EXIT_DIFFERS. */
int hash_list_tell(const cli_state *cli, hash_list *list);
int hash_item_tell(const cli_state *cli, const hash_item *item, const char *hex);

#endif
