/* SPDX-License-Identifier: MIT */
/* Manifests as `tenfold hash` prints them: "HEX  NAME", a line each. */
#ifndef TENFOLD_CLI_HASH_CHECK_H
#define TENFOLD_CLI_HASH_CHECK_H

#include "cmd.h"

#define HASH_PREFIX 7u /* "sha256:" */
#define HASH_TEXT   (HASH_PREFIX + 64 + 1)

void hash_text(char out[HASH_TEXT], const uint8_t hash[32]);

typedef struct hash_item {
    char *name; /* unescaped; ends in a NUL that n does not count */
    size_t n;
    char hex[65];
    bool found, differs;
} hash_item;

typedef struct hash_list {
    hash_item *items; /* sorted by name */
    size_t n, room;
    size_t unlisted; /* found, but not in the manifest */
} hash_list;

/* "-" is standard input. Says what is wrong. */
int hash_list_read(hash_list *out, const char *path);
/* Is any of its names that of something that is there? */
bool hash_list_has_file(const hash_list *list);
void hash_list_free(hash_list *list);

/* A tensor of the file that is checked. */
void hash_list_found(hash_list *list, tnf_str name, const char *hex);
/* Tells what differs; EXIT_DONE or EXIT_DIFFERS. */
int hash_list_tell(const cli_state *cli, const hash_list *list);
int hash_item_tell(const cli_state *cli, const hash_item *item, const char *hex);

#endif
