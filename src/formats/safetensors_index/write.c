/* SPDX-License-Identifier: MIT */
/* The index of a safetensors model in several files. */
#include "base/named.h"
#include "formats/safetensors_index/index.h"
#include "wire/json.h"

#include <string.h>

/* A tensor by the name that it has in its shard, possibly the name of a piece. */
typedef struct owner {
    tnf_str name;
    const tnf_shard *shard;
} owner;

static tnf_status add_owned(tnf_named *owners, const tnf_shard *shard, tnf_error *e)
{
    const tnf_object *o;
    uint32_t known;
    tnf_str piece;
    for (size_t i = 0; tnf_piece_at(shard->file, i, &piece); i++)
        TNF_TRY(tnf_named_add(owners, &(owner) { piece, shard }, &known, e));
    for (size_t i = 0; (o = tnf_at(shard->file, i)) != NULL; i++)
        TNF_TRY(tnf_named_add(owners, &(owner) { o->name, shard }, &known, e));
    return TNF_OK;
}

static tnf_status put_index(tnf_buf *b, tnf_writer *w, const tnf_named *owners, tnf_error *e)
{
    const uint32_t *order;
    uint64_t total = 0;
    TNF_TRY(tnf_sorted(w, &order, NULL, e));
    for (size_t i = 0; i < w->catalog->n; i++)
        for (uint16_t k = 0; k < w->catalog->objects[i].nparts; k++)
            if (!tnf_ckd_add(&total, total, w->catalog->objects[i].parts[k].nbytes))
                return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the model is beyond 2^64 bytes");
    tnf_buf_printf(b, "{\n  \"metadata\": {\n    \"total_size\": %llu\n  },\n  \"weight_map\": {",
                   (unsigned long long)total);
    for (size_t i = 0; i < w->catalog->n; i++) {
        const tnf_object *o = tnf_nth(w, order, i);
        uint32_t at = tnf_named_find(owners, o->name);
        if (at == TNF_HASH_NONE)
            return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                            "%s has another name in its shard: write ztensor, or a single file",
                            TNF_QUOTED(o->name));
        const char *file = ((const owner *)tnf_named_at(owners, at))->shard->name;
        tnf_buf_puts(b, i ? ",\n    " : "\n    ");
        tnf_json_put_ascii(b, o->name.p, o->name.n);
        tnf_buf_puts(b, ": ");
        tnf_json_put_ascii(b, file, strlen(file));
    }
    tnf_buf_puts(b, w->catalog->n ? "\n  }\n}\n" : "}\n}\n");
    TNF_TRY(tnf_buf_status(b, "the index", e));
    return tnf_put(w, b->p, b->n, e);
}

/* The same bytes as huggingface_hub writes: sorted, with an indent of two. */
tnf_status tnf_write_safetensors_index(tnf_writer *w, tnf_error *e)
{
    tnf_buf b;
    tnf_named owners;
    tnf_buf_init(&b, &w->scratch->alloc, UINT64_MAX);
    tnf_named_init(&owners, sizeof(owner), &w->scratch->alloc, UINT64_MAX);
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < w->nshards && status == TNF_OK; i++)
        status = add_owned(&owners, &w->shards[i], e);
    if (status == TNF_OK)
        status = put_index(&b, w, &owners, e);
    tnf_named_free(&owners);
    tnf_buf_free(&b);
    return status;
}
