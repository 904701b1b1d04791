/* SPDX-License-Identifier: MIT */
/* The values of a pq/1 tensor, for those who print tensors: reconstructed into a builder, and the
 * builder looked at as a file. No row is put together before it is read. */
#include "cat_quantized.h"
#include <string.h>

bool is_quantized(const tnf_object *object)
{
    return !strcmp(tnf_layout_id(object->layout), "pq/1");
}

tnf_status quantized_open(quantized *q, const tnf_file *file, const tnf_object *object,
                          tnf_error *error)
{
    tnf_emb_options how = { .size = sizeof how, .embeddings = object->name.p, .no_index = true };
    *q = (quantized) { 0 };
    tnf_status status = tnf_emb_open(&q->emb, file, &how, error);
    if (status == TNF_OK)
        status = tnf_builder_new(&q->builder, NULL, error);
    if (status == TNF_OK)
        status = tnf_emb_reconstruct(q->builder, q->emb, true, error);
    if (status == TNF_OK)
        status = tnf_open_builder(&q->file, q->builder, NULL, error);
    if (status == TNF_OK)
        q->object = tnf_find_n(q->file, object->name.p, object->name.n);
    return status;
}

void quantized_close(quantized *q)
{
    tnf_close(q->file);
    tnf_builder_free(q->builder);
    tnf_emb_close(q->emb);
}
