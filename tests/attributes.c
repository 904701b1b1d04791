/* SPDX-License-Identifier: MIT */
/* Unusual attributes: nested about as deep as the default limit allows, or with keys that are not
 * UTF-8. Every format either refuses them, or writes a file that opens with the same content,
 * without a raised limit. If a loss is allowed, the file without them opens.
 *
 * A name or key that goes on after a NUL is another one than the text before the NUL. So each
 * fixture gets twins of its tensors and attributes, with such names. Its format either refuses
 * them, or keeps them; and if it refuses them, they change nothing else. */
#include "support/files.h"
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

/* ----------------------------------------------------------- names with a NUL */

enum { TWIN_OF_TENSORS, TWIN_OF_FILE_KEYS, TWIN_OF_KEYS, TWINS };
static const char *const twins[] = { "tensors", "the file's attributes", "tensors' attributes" };

/* The text, a NUL and an x, until the next call. Of a long text only the beginning. */
static tnf_str twin_of(tnf_str text)
{
    static char twin[1000];
    size_t n = text.n < sizeof twin - 2 ? text.n : sizeof twin - 2;
    memcpy(twin, text.p, n);
    memcpy(twin + n, "\0x", 2);
    return (tnf_str) { twin, n + 2 };
}

static size_t add_key_twins(tnf_builder *b, const tnf_str *tensor, const tnf_value *attrs)
{
    const tnf_value twin = tnf_value_string("twin");
    tnf_error error;
    for (size_t i = 0; attrs && i < attrs->n; i++)
        MUST(tnf_builder_set_n(b, tensor, twin_of(attrs->as.members[i].key), &twin, &error) ==
             TNF_OK);
    return attrs ? attrs->n : 0;
}

/* Returns how many were added. */
static size_t add_twins(tnf_builder *b, const tnf_file *file, int which)
{
    tnf_error error;
    const tnf_object *o;
    size_t n = 0;
    if (which == TWIN_OF_FILE_KEYS)
        return add_key_twins(b, NULL, tnf_file_info(file)->attrs);
    for (size_t i = 0; (o = tnf_at(file, i)) != NULL; i++) {
        if (which == TWIN_OF_KEYS) {
            n += add_key_twins(b, &o->name, o->attrs);
            continue;
        }
        tnf_object twin = *o;
        twin.name = twin_of(o->name);
        tnf_status status = tnf_builder_add_object(b, &twin, NULL, &error);
        MUST(status == TNF_OK || status == TNF_EEXISTS); /* a file of two tensors of one name */
        n += status == TNF_OK;
    }
    return n;
}

/* Opens what was saved, and closes the sink. Fills the hash, and returns whether all tensors of the
 * model are there. */
static bool look_at_saved(uint8_t hash[32], const tnf_file *model, tnf_sink *sink)
{
    tnf_error error;
    tnf_file *file;
    const tnf_object *o;
    bool all = true;
    tnf_str bytes = tnf_sink_bytes(sink);
    tnf_open_options how = { .size = sizeof how, .lenient = true };
    MUST(open_bytes(&file, bytes.p, bytes.n, &how, &error) == TNF_OK);
    if (tnf_content_hash(hash, file, NULL, &error) != TNF_OK)
        memset(hash, 0, 32);
    for (size_t i = 0; (o = tnf_at(model, i)) != NULL; i++)
        all = all && tnf_find_n(file, o->name.p, o->name.n);
    tnf_close(file);
    tnf_sink_close(sink);
    return all;
}

static void try_twins(const struct fixture *f, const tnf_file *file, const uint8_t without[32],
                      int which)
{
    uint8_t wanted[32], found[32];
    tnf_error error;
    tnf_status status;
    tnf_file *model;
    tnf_builder *b;
    check_doing("%s with twins of %s", f->label, twins[which]);
    MUST(tnf_builder_new(&b, NULL, &error) == TNF_OK);
    MUST(tnf_builder_add_file(b, file, &error) == TNF_OK);
    if (add_twins(b, file, which) == 0) {
        tnf_builder_free(b);
        return;
    }
    MUST(tnf_open_builder(&model, b, NULL, &error) == TNF_OK);
    tnf_sink *sink = save_bytes(model, f->format, false, &status, &error);
    if (sink) {
        saved++;
        CHECK(look_at_saved(found, model, sink), "a tensor is lost, and nobody says so");
        CHECK(which == TWIN_OF_TENSORS || /* one more tensor may be another kind of model */
                  (tnf_content_hash(wanted, model, NULL, &error) == TNF_OK &&
                   memcmp(found, wanted, 32) == 0),
              "an attribute is lost or changed, and nobody says so");
    } else {
        refused++;
        CHECK(status == TNF_ELOSSY || status == TNF_EUNSUPPORTED, "%s", error.message);
        sink = status == TNF_ELOSSY ? save_bytes(model, f->format, true, &status, &error) : NULL;
        if (sink) {
            (void)look_at_saved(found, file, sink);
            /* Keys that are lost are still among those whose order is noted, in an attribute. */
            CHECK(tnf_value_get(tnf_file_info(file)->attrs, "ztensor.empty_attributes") ||
                      which == TWIN_OF_TENSORS || memcmp(found, without, 32) == 0,
                  "the attributes that are lost change something");
        }
    }
    tnf_close(model);
    tnf_builder_free(b);
}

static void try_fixture(const struct fixture *f)
{
    uint8_t own[32], without[32];
    tnf_error error;
    tnf_status status;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .lenient = true };
    bool writable = false;
    for (size_t i = 0; f->format && writable_format(i); i++)
        writable = writable || strcmp(writable_format(i), f->format) == 0;
    if (!writable || open_bytes(&file, f->file.p, f->file.n, &o, &error) != TNF_OK)
        return;
    check_doing("%s", f->label);
    tnf_sink *sink = save_bytes(file, f->format, false, &status, &error);
    if (sink && look_at_saved(without, file, sink) &&
        tnf_content_hash(own, file, NULL, &error) == TNF_OK &&
        memcmp(own, without, sizeof own) == 0)
        for (int which = 0; which < TWINS; which++)
            try_twins(f, file, without, which);
    tnf_close(file);
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
    fixtures_valid();
    for (size_t i = 0; i < fixtures.n; i += check_share(5))
        try_fixture(&fixtures.list[i]);
    CHECK(saved > 100, "only %lu files were saved", saved);
    printf("%lu files, %lu refused\n", saved, refused);
    return check_end("attributes");
}
