/* SPDX-License-Identifier: MIT */
#ifndef TNF_FORMATS_PYTORCH_WRITE_H
#define TNF_FORMATS_PYTORCH_WRITE_H

#include "formats/pytorch/pt.h"

enum { PT_WRITE_ROOT, PT_WRITE_ALIGN, PT_WRITE_CRC, PT_WRITE_CLASS };

#define PT_PLACED 0xfffffffeu /* a node's number: its view has a storage of its own by now */

/* pytorch.tree or pytorch.views, if its tensors are those of the catalog; else *why not. Without
 * one, n is 0. */
tnf_status tnf_pt_open_tree(tnf_pickle *p, pt_named **list, size_t *n, const tnf_catalog *c,
                            const char *key, tnf_arena *a, const char **why, tnf_error *e);

#endif
