/* SPDX-License-Identifier: MIT */
/* A list of new names: a file of the user's, or one of cli/maps. */
#ifndef TENFOLD_CLI_RENAME_MAP_H
#define TENFOLD_CLI_RENAME_MAP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct name_map name_map;

/* Gives an exit code, after saying what is wrong. */
int name_map_open(name_map **out, const char *given);
void name_map_free(name_map *map);
/* The new name, which lives as long as the map; NULL in *out if the map has none for it. False: no
 * memory. */
bool name_map_find(name_map *map, const char **out, const char *name);
/* Has any line been of use, or are there none? */
bool name_map_used(const name_map *map);
/* Names without {…} that nobody asked for: how many, and the first. */
size_t name_map_unused(const name_map *map, const char **first);
/* A table for all layers, not a list of one model's names. */
bool name_map_is_table(const name_map *map);

#endif
