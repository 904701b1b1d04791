/* SPDX-License-Identifier: MIT */
/* A store that is an OCDBT database in files of another store. */
#ifndef TNF_FORMATS_OCDBT_H
#define TNF_FORMATS_OCDBT_H

#include "formats/zarr/zr.h"

/* `manifest` is the key of its manifest. */
tnf_status tnf_ocdbt_open(zr_store **out, tnf_reader *r, const zr_store *files, size_t manifest,
                          tnf_error *e);

#endif
