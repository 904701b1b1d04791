/* SPDX-License-Identifier: MIT */
/* A quantized matrix as a dense one, whose rows are put together when they are read. */
#ifndef TENFOLD_CLI_CAT_QUANTIZED_H
#define TENFOLD_CLI_CAT_QUANTIZED_H

#include <tenfold/emb.h>

typedef struct quantized {
    tnf_emb *emb;
    tnf_builder *builder;
    tnf_file *file;           /* what the builder holds */
    const tnf_object *object; /* dense, of the same name and shape */
} quantized;

bool is_quantized(const tnf_object *object);
/* Close it in any case. */
tnf_status quantized_open(quantized *q, const tnf_file *file, const tnf_object *object,
                          tnf_error *error);
void quantized_close(quantized *q);

#endif
