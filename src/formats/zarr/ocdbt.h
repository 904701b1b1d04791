/* SPDX-License-Identifier: MIT */
/* A store that is an OCDBT database in a folder. */
#ifndef TNF_FORMATS_OCDBT_H
#define TNF_FORMATS_OCDBT_H

#include "formats/zarr/zr.h"

tnf_status tnf_ocdbt_open(zr_store **out, tnf_reader *r, const tnf_container *folder,
                          size_t manifest, tnf_error *e);

#endif
