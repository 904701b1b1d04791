/* SPDX-License-Identifier: MIT */
/* Writing a file with other attributes. */
#ifndef TENFOLD_CLI_META_SAVE_H
#define TENFOLD_CLI_META_SAVE_H

#include "input.h"
#include "meta.h"
#include "saving.h"
#include "stop.h"

typedef struct meta_change {
    meta_editor *editor; /* with an empty builder */
    const input *in;
    const char *tensor;              /* whose attributes they are; NULL: the file's */
    const tnf_value *before, *after; /* maps */
    const char *path;                /* where to */
    bool lenient;
    bool in_place;
} meta_change;

/* meta_place.c: in the header itself. The builder holds the file with its changes. */
int meta_place(const meta_change *change);
/* Gives an exit code. */
int meta_save(const meta_change *change, tnf_save_options *how);

#endif
