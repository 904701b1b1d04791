/* SPDX-License-Identifier: MIT */
/* Writing a file with other attributes. */
#ifndef TENFOLD_CLI_META_SAVE_H
#define TENFOLD_CLI_META_SAVE_H

#include "input.h"
#include "meta.h"
#include "saving.h"
#include "stop.h"

typedef enum meta_where {
    META_WHERE_IT_FITS, /* in place if nothing must move, else anew */
    META_IN_PLACE,      /* or not at all */
    META_SHIFT,         /* in place; where there is no room, the file system makes it */
    META_ANEW
} meta_where;

typedef struct meta_change {
    meta_editor *editor; /* with an empty builder */
    const input *in;
    const char *tensor;              /* whose attributes they are; NULL: the file's */
    const tnf_value *before, *after; /* maps */
    const char *path;                /* where to */
    bool lenient;
    meta_where where;
} meta_change;

/* Gives an exit code. */
int meta_save(const meta_change *change, tnf_save_options *how);

#endif
