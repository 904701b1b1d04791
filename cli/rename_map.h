/* SPDX-License-Identifier: MIT */
/* A list of new names: a file of the user, or one of cli/maps. */
#ifndef TENFOLD_CLI_RENAME_MAP_H
#define TENFOLD_CLI_RENAME_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A list of names that were made. */
typedef struct kept_name {
    struct kept_name *next;
    char text[];
} kept_name;

/* A name that is being made. `to` is NULL if there is no memory. */
typedef struct name_maker {
    FILE *to;
    char *text;
    size_t n;
} name_maker;

void name_begin(name_maker *m);
/* Puts the name into the list. Returns NULL if there is no memory. */
const char *name_end(name_maker *m, kept_name **list);
void names_free(kept_name *list);

typedef struct name_map name_map;

/* Returns an exit code, after reporting an error. */
int name_map_open(name_map **out, const char *given);
void name_map_free(name_map *map);
/* Finds the new name, which lives as long as the map; *out is NULL if the map has none. Returns
 * false if there is no memory. */
bool name_map_find(name_map *map, const char **out, const char *name);
/* Has any line been used? Also true if there are no lines. */
bool name_map_used(const name_map *map);
/* Returns the number of names without {…} that no tensor has; *first is one of them. */
size_t name_map_unused(const name_map *map, const char **first);
/* Is this a table with {n} or {end}, not a list of one model's names? */
bool name_map_is_table(const name_map *map);

#endif
