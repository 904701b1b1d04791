/* SPDX-License-Identifier: MIT */
/* Writes a few words and their vectors to any format that supports them: words FILE [FORMAT]
 * It shows how to build a tensor of strings, which has two parts. */
#include <stdio.h>
#include <string.h>
#include <tenfold/build.h>

#define WORDS 4
#define WIDTH 3

static const char *const words[WORDS] = { "Berlin", "Potsdam", "one", "two" };
static const float vectors[WORDS][WIDTH] = {
    { 1.0f, 0.0f, 0.0f }, { 0.96f, 0.28f, 0.0f }, { 0.0f, 0.0f, 1.0f }, { 0.0f, 0.6f, 0.8f }
};

/* Strings are stored end to end. `offsets` has the start of each, and the end of the last. */
static tnf_status add_words(tnf_builder *b, tnf_error *error)
{
    static char bytes[64];
    static uint64_t offsets[WORDS + 1];
    static const uint64_t shape[1] = { WORDS };
    tnf_part parts[2];
    tnf_object object;
    int i;

    for (i = 0; i < WORDS; i++) {
        memcpy(bytes + offsets[i], words[i], strlen(words[i]));
        offsets[i + 1] = offsets[i] + strlen(words[i]);
    }
    memset(parts, 0, sizeof parts);
    parts[0].role = "offsets";
    parts[0].type = tnf_type_of(TNF_U64);
    parts[0].memory = offsets;
    parts[0].stored = parts[0].nbytes = sizeof offsets;
    parts[1].role = "bytes";
    parts[1].type = tnf_type_of(TNF_U8);
    parts[1].memory = bytes;
    parts[1].stored = parts[1].nbytes = offsets[WORDS];
    parts[0].payload = parts[1].payload = TNF_MEMORY;

    memset(&object, 0, sizeof object);
    object.name.p = "vocab";
    object.name.n = 5;
    object.layout = tnf_layout_by_id("strings/1");
    object.shape = shape;
    object.rank = 1;
    object.parts = parts;
    object.nparts = 2;
    return tnf_builder_add_object(b, &object, NULL, error);
}

int main(int argc, char **argv)
{
    static const uint64_t matrix[2] = { WORDS, WIDTH };
    tnf_error error;
    tnf_builder *builder = NULL;
    tnf_save_options options = TNF_SAVE_INIT;
    tnf_status status;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: words FILE [FORMAT]\n");
        return 2;
    }
    options.format = argc == 3 ? argv[2] : NULL;
    options.replace = true;
    status = tnf_builder_new(&builder, NULL, &error);
    if (status == TNF_OK)
        status = add_words(builder, &error);
    if (status == TNF_OK)
        status = tnf_builder_add(builder, "embeddings", tnf_type_of(TNF_F32), 2, matrix, vectors,
                                 &error);
    if (status == TNF_OK)
        status = tnf_save(builder, argv[1], &options, &error);
    if (status != TNF_OK)
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    tnf_builder_free(builder);
    return status != TNF_OK;
}
