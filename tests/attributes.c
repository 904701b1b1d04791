/* SPDX-License-Identifier: MIT */
/* Unusual attributes: nested about as deep as the default limit allows, or with keys that are not
 * UTF-8. Every format either refuses them, or writes a file that opens with the same content,
 * without a raised limit. If a loss is allowed, the file without them opens. */
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

static tnf_builder *make_model(void)
{
    static const uint64_t shape[] = { 2, 2 };
    static const uint8_t zeros[16];
    tnf_error error;
    tnf_builder *b;
    MUST(tnf_builder_new(&b, NULL, &error) == TNF_OK);
    MUST(tnf_builder_add(b, "w", tnf_type_of(TNF_F32), 2, shape, zeros, &error) == TNF_OK);
    return b;
}

/* There is no hash of keys that are not UTF-8: it is 0 then. */
static void hash_content(uint8_t hash[32], const tnf_file *file)
{
    tnf_error error;
    if (tnf_content_hash(hash, file, NULL, &error) == TNF_OK)
        return;
    MUST(error.status == TNF_EINVAL);
    memset(hash, 0, 32);
}

/* Is the model refused, and can it be saved without the attribute if losses are allowed? */
static void try_loss(const tnf_file *file, const char *format, tnf_status why)
{
    tnf_error error;
    tnf_status status;
    refused++;
    CHECK(why == TNF_ELOSSY || why == TNF_EUNSUPPORTED, "it is %s", tnf_status_name(why));
    if (why != TNF_ELOSSY)
        return;
    tnf_sink *sink = save_bytes(file, format, true, &status, &error);
    if (!sink) /* such as a tensor of a name that the format cannot hold */
        return;
    tnf_file *again;
    tnf_str bytes = tnf_sink_bytes(sink);
    status = open_bytes(&again, bytes.p, bytes.n, NULL, &error);
    /* A format of words cannot hold anything of this model. */
    if (bytes.n > 0 && CHECK(status == TNF_OK, "what is left does not open: %s", error.message)) {
        CHECK(tnf_file_info(again)->nwarnings == 0, "what is left has a damaged stash");
        tnf_close(again);
    }
    tnf_sink_close(sink);
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
    if (!sink)
        try_loss(file, format, status);
    tnf_close(file);
    if (!sink)
        return;
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

static void try_formats(const tnf_builder *b, const char *what)
{
    for (size_t i = 0; writable_format(i); i++) {
        check_doing("%s as %s", what, writable_format(i));
        try_format(b, writable_format(i));
    }
}

static void try_deep(size_t depth, bool maps, const char *tensor)
{
    char text[8 * LIMIT], what[64];
    tnf_error error;
    tnf_value value;
    tnf_builder *b = make_model();
    print_nested(text, depth, maps);
    MUST(tnf_builder_parse(&value, b, text, strlen(text), &error) == TNF_OK);
    MUST(tnf_builder_set(b, tensor, "other.deep", &value, &error) == TNF_OK);
    snprintf(what, sizeof what, "%s, %zu deep, of %s", maps ? "maps" : "arrays", depth,
             tensor ? "a tensor" : "the file");
    try_formats(b, what);
    tnf_builder_free(b);
}

/* Two more attributes, in an order that the stash notes. */
static void try_key(tnf_str key, tnf_str inner, const char *tensor)
{
    const tnf_str name = { tensor, 1 };
    const tnf_member member = { inner, tnf_value_bool(true) };
    tnf_value map = { .kind = TNF_MAP, .n = 1, .as.members = &member };
    tnf_value text = tnf_value_string("text"), number = tnf_value_uint(1);
    tnf_error error;
    tnf_builder *b = make_model();
    MUST(tnf_builder_set(b, tensor, "other.number", &number, &error) == TNF_OK);
    MUST(tnf_builder_set_n(b, tensor ? &name : NULL, key, &map, &error) == TNF_OK);
    MUST(tnf_builder_set(b, tensor, "other.text", &text, &error) == TNF_OK);
    try_formats(b, tensor ? "a tensor with an odd key" : "a file with an odd key");
    tnf_builder_free(b);
}

int main(void)
{
    static const tnf_str plain = TNF_STR("other.map"), odd = TNF_STR("other.\xff");
    static const tnf_str texts = TNF_STR("safetensors.metadata");
    for (size_t depth = LIMIT - 8; depth <= LIMIT; depth++)
        for (int kind = 0; kind < 4; kind++)
            try_deep(depth, kind & 2, kind & 1 ? "w" : NULL);
    for (int of_tensor = 0; of_tensor < 2; of_tensor++) {
        const char *tensor = of_tensor ? "w" : NULL;
        try_key(plain, odd, tensor);
        try_key(odd, plain, tensor);
        try_key(texts, odd, tensor);
    }
    CHECK(saved > 100, "only %lu files were saved", saved);
    printf("%lu files, %lu refused\n", saved, refused);
    return check_end("attributes");
}
