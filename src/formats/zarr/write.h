/* SPDX-License-Identifier: MIT */
/* The writer of Zarr. */
#ifndef TNF_FORMATS_ZARR_WRITE_H
#define TNF_FORMATS_ZARR_WRITE_H

#include "format.h"

/* Attributes of the root: metadata without a place of their own; and a mark that groups without
 * attributes are not content, but only the directories of names. */
#define ZR_OWN     "tenfold.text"
#define ZR_IMPLIED "tenfold.implied"

enum { ZR_WRITE_VERSION, ZR_WRITE_CHUNKS, ZR_WRITE_CODEC, ZR_WRITE_LEVEL, ZR_WRITE_SHARD };
extern const tnf_option_info tnf_zr_write_options[];
/* Can a group or an array have this path? */
bool tnf_zr_good_path(tnf_str name);
tnf_fate tnf_zr_takes(const tnf_object *o, const char **reason);
/* Zarr 2 has no names for dimensions. */
bool tnf_zr_no_place(const tnf_member *attr, const tnf_option_value *options);
tnf_status tnf_zr_fits(tnf_fit *fit, tnf_error *e);
tnf_status tnf_zr_write(tnf_writer *w, tnf_error *e);

#endif
