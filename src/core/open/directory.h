/* SPDX-License-Identifier: MIT */
/* What the names of the files in a directory say. */
#ifndef TNF_CORE_OPEN_DIRECTORY_H
#define TNF_CORE_OPEN_DIRECTORY_H

#include "core/core.h"

/* The format whose indexes have such names; NULL: it is not the name of an index. *variant: it is
 * the index of a variant of the model. */
const tnf_format *tnf_index_format(const char *name, bool *variant);
/* Does a format read files with this extension, other than indexes? */
bool tnf_is_tensor_file(const char *name);
/* Is it one of several shards, like "model-00001-of-00002.zt"? */
bool tnf_is_shard_name(const char *name);

#endif
