/* SPDX-License-Identifier: MIT */
/* Writes a file with other attributes. */
#ifndef TENFOLD_CLI_META_SAVE_H
#define TENFOLD_CLI_META_SAVE_H

#include "input.h"
#include "meta.h"
#include "saving.h"
#include "stop.h"

typedef enum meta_where {
    META_WHERE_IT_FITS, /* in place if nothing must move, else a new file */
    META_IN_PLACE,      /* in place or not at all */
    META_SHIFT,         /* in place; if there is no room, the file system inserts blocks */
    META_ANEW
} meta_where;

typedef struct meta_change {
    meta_editor *editor; /* with an empty builder */
    const input *in;
    const char *tensor;              /* the owner of the attributes; NULL: the file */
    const tnf_value *before, *after; /* maps */
    const char *path;                /* the output */
    bool lenient;
    meta_where where;
} meta_change;

/* Returns an exit code. */
int meta_save(const meta_change *change, tnf_save_options *how);

#endif
