/* SPDX-License-Identifier: MIT */
/* Attributes that are nested about as deep as the default limit allows: every format either refuses
 * them, or writes a file that opens with the same content, without a raised limit. */
#include "support/open.h"
#include <tenfold/build.h>

#define LIMIT 64 /* tnf_limits.depth, if it is 0 */

static unsigned long saved, refused;

/* "[[[…]]]", or {"k":{"k":…null}}. */
static const char *print_nested(char *text, size_t depth, bool maps)
{
    const char *open = maps ? "{\"k\":" : "[", *inside = maps ? "null" : "";
    size_t n = strlen(open), at = 0;
    for (size_t i = 0; i < depth; i++, at += n)
        memcpy(text + at, open, n);
    memcpy(text + at, inside, strlen(inside));
    at += strlen(inside);
    memset(text + at, maps ? '}' : ']', depth);
    text[at + depth] = 0;
    return text;
}

static tnf_builder *make_model(const char *text, const char *tensor)
{
    static const uint64_t shape[] = { 2, 2 };
    static const uint8_t zeros[16];
    tnf_error error;
    tnf_builder *b;
    tnf_value value;
    MUST(tnf_builder_new(&b, NULL, &error) == TNF_OK);
    MUST(tnf_builder_add(b, "w", tnf_type_of(TNF_F32), 2, shape, zeros, &error) == TNF_OK);
    MUST(tnf_builder_parse(&value, b, text, strlen(text), &error) == TNF_OK);
    MUST(tnf_builder_set(b, tensor, "other.deep", &value, &error) == TNF_OK);
    return b;
}

static void hash_content(uint8_t hash[32], const tnf_file *file)
{
    tnf_error error;
    MUST(tnf_content_hash(hash, file, NULL, &error) == TNF_OK);
}

static void try_format(const tnf_builder *b, const char *format)
{
    uint8_t wanted[32], found[32];
    tnf_error error;
    tnf_file *file;
    tnf_status status;
    MUST(tnf_open_builder(&file, b, NULL, &error) == TNF_OK);
    hash_content(wanted, file);
    tnf_sink *sink = save_bytes(file, format, false, &status, &error);
    tnf_close(file);
    if (!sink) {
        CHECK(status == TNF_ELOSSY || status == TNF_ELIMIT || status == TNF_EUNSUPPORTED, "%s: %s",
              tnf_status_name(status), error.message);
        refused++;
        return;
    }
    tnf_str bytes = tnf_sink_bytes(sink);
    status = open_bytes(&file, bytes.p, bytes.n, NULL, &error);
    CHECK(status == TNF_OK, "what was saved does not open: %s", error.message);
    if (status == TNF_OK) {
        hash_content(found, file);
        CHECK(memcmp(found, wanted, sizeof found) == 0, "the content is another one");
        tnf_close(file);
    }
    saved++;
    tnf_sink_close(sink);
}

int main(void)
{
    char text[8 * LIMIT];
    for (size_t depth = LIMIT - 8; depth < LIMIT; depth++)
        for (int kind = 0; kind < 4; kind++) {
            const char *tensor = kind & 1 ? "w" : NULL;
            tnf_builder *b = make_model(print_nested(text, depth, kind & 2), tensor);
            for (size_t i = 0; writable_format(i); i++) {
                check_doing("%s, %zu deep, of %s as %s", kind & 2 ? "maps" : "arrays", depth,
                            tensor ? "a tensor" : "the file", writable_format(i));
                try_format(b, writable_format(i));
            }
            tnf_builder_free(b);
        }
    CHECK(saved > 100, "only %lu files were saved", saved);
    printf("%lu files, %lu refused\n", saved, refused);
    return check_end("depth");
}
