/* SPDX-License-Identifier: MIT */
/* Attributes that are not content. There is one table for all builds, since a hash must not depend
 * on the formats of a build. A file may have attributes of a format other than its own.
 *
 * The table lists what formats declare as can.derived ("key" or "key=value") and can.spelling; a
 * unit test compares the two.
 */
#include "core/core.h"

#include <string.h>

static const char *const table[] = {
    /* attributes that a reader computes, or sets if the file does not have them */
    "fasttext.dim",
    "fasttext.loss=hs",
    "fasttext.model=cbow",
    "fbin.kind",
    "finalfusion.chunks",
    "finalfusion.dialect",
    "finalfusion.vocab=simple",
    "finalfusion.words",
    "flax.chunked",
    "flax.shards",
    "flax.total_size",
    "hdf5.alias",
    "hdf5.type",
    "hdf5.types",
    "hdf5.width",
    "gptrs.base_id",
    "gptrs.kind",
    "gptrs.param_id",
    "gptrs.requires_grad=false",
    "gguf_file.end",
    "gguf_file.endian",
    "gguf_file.offsets",
    "gguf_file.padding",
    "gguf_file.version",
    "numpy.version=1.0",
    "onnx.doc_string",
    "onnx.domain",
    "onnx.graph_name",
    "onnx.ir_version",
    "onnx.kind",
    "onnx.metadata",
    "onnx.model_version",
    "onnx.opset",
    "onnx.producer_name",
    "onnx.producer_version",
    "primitiv.path",
    "primitiv.type=model",
    "pytorch.alignment",
    "pytorch.byteorder",
    "pytorch.calls",
    "pytorch.path",
    "pytorch.protocol",
    "pytorch.root=archive",
    "pytorch.shards",
    "pytorch.storage",
    "pytorch.strides",
    "pytorch.total_size",
    "pytorch.values",
    "pytorch.version",
    "safetensors.shards",
    "safetensors.total_size",
    "tensorbundle.shards",
    "tflite.activations",
    "tflite.version",
    "vecs.kind",
    "vs.attributes={}",
    "vs.blanks",
    "vs.dims",
    "vs.pack=0",
    "vs.paging=0",
    "vs.points",
    "vs.resolution",
    "zarr.chunks",
    "zarr.codecs",
    "zarr.fill_value",
    "ztensor.content_digest",
    "ztensor.data_shard",
    "ztensor.shards",
    /* attributes that describe how a file is spelled */
    "fbin.header",
    "finalfusion.norms",
    "flax.order",
    "numpy.descr=<f1",
    "numpy.descr=>c16",
    "numpy.descr=>c8",
    "numpy.descr=>f2",
    "numpy.descr=>f4",
    "numpy.descr=>f8",
    "numpy.descr=>i2",
    "numpy.descr=>i4",
    "numpy.descr=>i8",
    "numpy.descr=>u2",
    "numpy.descr=>u4",
    "numpy.descr=>u8",
    "numpy.descr=float8_e4m3fn",
    "numpy.descr=float8_e4m3fnuz",
    "numpy.descr=float8_e5m2",
    "numpy.descr=float8_e5m2fnuz",
    "numpy.descr=float8_e8m0fnu",
    "numpy.header",
    "numpy.order",
    "numpy.version",
    "npz.compress",
    "pytorch.root",
    "pytorch.serialization_id",
    "pytorch.views",
    "text.final_newline",
    "text.newline",
    "text.numbers",
    "text.separator",
    "text.trailing_blank",
    "word2vec.newline",
};

#define COUNT (sizeof table / sizeof *table)

/* In these texts an initial byte order is not content: bytes are hashed little-endian. */
static const char *const marked[] = { "numpy.descr" };

static bool has_mark(const tnf_member *attr)
{
    const tnf_value *v = &attr->value;
    for (size_t i = 0; i < sizeof marked / sizeof *marked; i++)
        if (tnf_str_is(attr->key, marked[i]))
            return v->kind == TNF_STRING && v->n > 1 && memchr("<>=|", v->as.s[0], 4);
    return false;
}

tnf_value tnf_counted_value(const tnf_member *attr)
{
    tnf_value v = attr->value;
    if (has_mark(attr)) {
        v.as.s++;
        v.n--;
    }
    return v;
}

const char *tnf_uncounted_at(size_t i)
{
    return i < COUNT ? table[i] : NULL;
}

bool tnf_is_uncounted(const tnf_member *attr)
{
    tnf_str said = tnf_derived_text(&attr->value), key = attr->key;
    for (size_t i = 0; i < COUNT; i++) {
        size_t n = strcspn(table[i], "=");
        if (key.n != n || memcmp(table[i], key.p, n) != 0)
            continue;
        if (table[i][n] == 0 || (said.p && tnf_str_is(said, &table[i][n + 1])))
            return true;
    }
    return false;
}
