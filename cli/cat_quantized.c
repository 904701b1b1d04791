/* SPDX-License-Identifier: MIT */
/* Gives the values of a pq/1 tensor to the functions that print tensors: a safetensors file that
 * exists only as a source. Its rows are reconstructed when they are read.
 *
 *   u64 n │ {"w":{"dtype":"F32","shape":[rows,dims],"data_offsets":[0,…]}} │ row │ row │ …
 */
#include "cat_quantized.h"
#include "array.h"
#include <stdlib.h>
#include <string.h>

bool is_quantized(const tnf_object *object)
{
    return !strcmp(tnf_layout_id(object->layout), "pq/1");
}

/* As they are in a file, on any machine. */
static void make_little_endian(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        unsigned char bytes[] = { bits & 255, bits >> 8 & 255, bits >> 16 & 255, bits >> 24 };
        memcpy(&values[i], bytes, sizeof bytes);
    }
}

/* Several threads may ask at once: each has a row of its own. */
static tnf_status read_rows(const quantized *q, uint64_t offset, unsigned char *dst, size_t n,
                            tnf_error *error)
{
    size_t width = q->dims * sizeof(float);
    float *values = malloc(width);
    tnf_status status = values ? TNF_OK : cat_fail(error, TNF_ENOMEM, "out of memory for a row");
    while (n > 0 && status == TNF_OK) {
        size_t skip = (size_t)(offset % width), here = width - skip < n ? width - skip : n;
        status = tnf_emb_row(q->emb, offset / width, values, error);
        if (status == TNF_OK) {
            make_little_endian(values, q->dims);
            memcpy(dst, (const unsigned char *)values + skip, here);
        }
        dst += here;
        offset += here;
        n -= here;
    }
    free(values);
    return status;
}

static tnf_status read_at(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    quantized *q = ctx;
    unsigned char *to = dst;
    for (; n > 0 && offset < q->header_n; n--, offset++)
        *to++ = (unsigned char)q->header[offset];
    return n > 0 ? read_rows(q, offset - q->header_n, to, n, error) : TNF_OK;
}

static void make_header(quantized *q, const tnf_object *o, uint64_t bytes)
{
    int n = snprintf(q->header + 8, sizeof q->header - 8,
                     "{\"w\":{\"dtype\":\"F32\",\"shape\":[%llu,%llu],\"data_offsets\":[0,%llu]}}",
                     (unsigned long long)o->shape[0], (unsigned long long)o->shape[1],
                     (unsigned long long)bytes);
    while (n % 8)
        q->header[8 + n++] = ' ';
    memset(q->header, 0, 8);
    q->header[0] = (char)(n & 255);
    q->header[1] = (char)(n >> 8);
    q->header_n = 8 + (size_t)n;
}

tnf_status quantized_open(quantized *q, const tnf_file *file, const tnf_object *object,
                          tnf_error *error)
{
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = read_at };
    tnf_source *source;
    *q = (quantized) { 0 };
    tnf_emb_options how = { .size = sizeof how, .embeddings = object->name.p, .no_index = true };
    tnf_open_options open = { .size = sizeof open, .format = "safetensors" };
    tnf_status status = tnf_emb_open(&q->emb, file, &how, error);
    if (status != TNF_OK)
        return status;
    q->dims = tnf_emb_describe(q->emb)->dims;
    uint64_t bytes = object->shape[0] * object->shape[1] * sizeof(float); /* codes are there */
    make_header(q, object, bytes);
    status = tnf_source_custom(&source, &ops, q, q->header_n + bytes, error);
    if (status == TNF_OK)
        status = tnf_open_source(&q->file, source, &open, error);
    if (status == TNF_OK)
        q->object = tnf_find(q->file, "w");
    return status;
}

void quantized_close(quantized *q)
{
    tnf_close(q->file);
    tnf_emb_close(q->emb);
}
