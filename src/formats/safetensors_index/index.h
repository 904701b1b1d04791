/* SPDX-License-Identifier: MIT */
/* The two halves of the format: index.c reads, write.c writes. */
#ifndef TNF_FORMATS_SAFETENSORS_INDEX_H
#define TNF_FORMATS_SAFETENSORS_INDEX_H

#include "format.h"

tnf_status tnf_write_safetensors_index(tnf_writer *w, tnf_error *e);

int tnf_probe_safetensors_index(const tnf_probe *p);
int tnf_probe_pytorch_index(const tnf_probe *p);

#endif
