/* SPDX-License-Identifier: MIT */
/* A list of new names: a file of the user, or one of cli/maps. */
#ifndef TENFOLD_CLI_RENAME_MAP_H
#define TENFOLD_CLI_RENAME_MAP_H

#include <stdbool.h>
#include <stddef.h>

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
