/* SPDX-License-Identifier: MIT */
/* Writes a small model to any writable format: write FILE [FORMAT]
 * Without FORMAT, the file's extension decides. `./dev demo` uses the file that this writes. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tenfold/build.h>

#define WIDTH  64
#define TOKENS 1000

static const char *const sample_config =
    "{\"kind\":\"gpt\",\"config\":{\"n_layer\":1,\"n_embd\":64,\"vocab_size\":1000}}";

/* Provides the embedding matrix while it is written, so that it is never completely in memory. */
static tnf_status fill_embedding(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    unsigned char *out = dst;
    size_t i;

    (void)ctx;
    (void)error;
    for (i = 0; i < n; i++) {
        union {
            float value;
            unsigned char bytes[4];
        } x;
        x.value = sinf((float)((offset + i) / 4));
        out[i] = x.bytes[(offset + i) % 4]; /* on a little-endian machine */
    }
    return TNF_OK;
}

static tnf_status fill_builder(tnf_builder *b, tnf_error *error)
{
    static const float bias[WIDTH] = { 0.5f, -0.25f, 1.0f };
    static const unsigned short scale[WIDTH] = { 0x3f80, 0x4000, 0xbf80 }; /* bf16: 1, 2, -1 */
    static const int counts[3] = { 1, 2, 3 };
    static const uint64_t matrix[2] = { TOKENS, WIDTH }, vector[1] = { WIDTH }, three[1] = { 3 };
    const tnf_type *f32 = tnf_type_of(TNF_F32);
    tnf_value config = tnf_value_json(sample_config, strlen(sample_config)); /* byte for byte */
    tnf_status s;

    if ((s = tnf_builder_add_stream(b, "tok_embeddings", f32, 2, matrix, fill_embedding, NULL,
                                    error)))
        return s;
    if ((s = tnf_builder_add(b, "blocks.0.bias", f32, 1, vector, bias, error)))
        return s;
    if ((s = tnf_builder_add(b, "blocks.0.scale", tnf_type_of(TNF_BF16), 1, vector, scale, error)))
        return s;
    if ((s = tnf_builder_add(b, "counts", tnf_type_of(TNF_I32), 1, three, counts, error)))
        return s;
    return tnf_builder_set(b, NULL, "gptrs.config", &config, error);
}

int main(int argc, char **argv)
{
    tnf_error error;
    tnf_builder *builder = NULL;
    tnf_save_options options = TNF_SAVE_INIT;
    tnf_status status;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: write FILE [FORMAT]\n");
        return 2;
    }
    options.format = argc == 3 ? argv[2] : NULL;
    options.replace = true;
    status = tnf_builder_new(&builder, NULL, &error);
    if (status == TNF_OK && (status = fill_builder(builder, &error)) == TNF_OK)
        status = tnf_save(builder, argv[1], &options, &error);
    if (status != TNF_OK)
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    tnf_builder_free(builder);
    return status != TNF_OK;
}
