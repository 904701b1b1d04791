/* SPDX-License-Identifier: MIT */
/* Keras 3's .keras: a zip archive without compression.
 *
 *   metadata.json      versions and date           -> keras.metadata
 *   config.json        the layers of the model     -> keras.config; never executed
 *   model.weights.h5   an HDF5 file, read in place
 *   assets/…           kept as extras
 *
 * It is written in that order, as Keras does it.
 */
#include "formats/hdf5/tree.h"

#include "base/crc32.h"
#include "container/path.h"
#include "container/zip_sink.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

#define CONFIG   "keras.config"
#define METADATA "keras.metadata"
#define WEIGHTS  "model.weights.h5"
#define PREFIX   "keras."

static const struct {
    const char *key, *member;
} documents[] = { { METADATA, "metadata.json" }, { CONFIG, "config.json" } };
#define DOCUMENTS (sizeof documents / sizeof *documents)

static int probe_keras(const tnf_probe *p)
{
    static const char *const first[] = { "metadata.json", "config.json", WEIGHTS };
    bool named = strcmp(p->ext, "keras") == 0;
    if (p->nhead < 30 || memcmp(p->head, "PK\3\4", 4) != 0)
        return named && p->nhead > 0 ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
    size_t n = tnf_le16(p->head + 26);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (n == strlen(first[i]) && 30 + n <= p->nhead && memcmp(p->head + 30, first[i], n) == 0)
            return named ? TNF_PROBE_STRUCTURE : TNF_PROBE_PLAUSIBLE;
    return named ? TNF_PROBE_PLAUSIBLE : TNF_PROBE_NO;
}

/* Reads a member that is a JSON document into an attribute. */
static tnf_status read_json(tnf_reader *r, const char *key, const tnf_container *z, size_t i,
                            tnf_error *e)
{
    const tnf_container_member *m = &z->members[i];
    tnf_member_place place;
    TNF_TRY(tnf_container_place(&place, z, i, e));
    if (m->size > r->limits.header_bytes)
        return tnf_fail(e, TNF_ELIMIT, place.offset,
                        "%s has %llu bytes; at most %llu are allowed: raise the limit "
                        "'header_bytes' if you trust the file",
                        TNF_QUOTED(m->name), (unsigned long long)m->size,
                        (unsigned long long)r->limits.header_bytes);
    char *text = tnf_arena_raw(r->arena, m->size + 1);
    if (!text)
        return tnf_arena_fail(r->arena, "a document", e);
    if (m->size)
        TNF_TRY(tnf_container_read(&place, m, 0, text, (size_t)m->size, e));
    text[m->size] = 0;
    tnf_json j;
    tnf_json_init(&j, text, (size_t)m->size, place.offset, r->scratch, r->limits.depth, e);
    (void)tnf_json_skip(&j, NULL);
    TNF_TRY(tnf_json_end(&j));
    return tnf_set_attr(r, key, tnf_value_str(TNF_JSON, text, (size_t)m->size), e);
}

static tnf_status keep_member(tnf_reader *r, const tnf_container *z, size_t i, tnf_error *e)
{
    const tnf_container_member *m = &z->members[i];
    tnf_member_place place;
    tnf_part part = { .role = "data", .type = tnf_type_of(TNF_U8) };
    uint32_t front = 0;
    char *key = tnf_arena_raw(r->arena, m->name.n + 8);
    if (!key)
        return tnf_arena_fail(r->arena, "a member", e);
    int n = snprintf(key, m->name.n + 8, PREFIX "%.*s", (int)m->name.n, m->name.p);
    TNF_TRY(tnf_container_place(&place, z, i, e));
    TNF_TRY(tnf_place_part(r, &part, m, &place, 0, m->size, &front, e));
    return tnf_add_extra_part(r, (tnf_str) { key, (size_t)n }, &part, e);
}

/* Is the member part of the format, not an extra? */
static bool is_own(const tnf_container_member *m)
{
    return tnf_str_is(m->name, documents[0].member) || tnf_str_is(m->name, documents[1].member) ||
           tnf_str_is(m->name, WEIGHTS);
}

static tnf_status read_weights(tnf_reader *r, const tnf_container *z, size_t i, tnf_error *e)
{
    tnf_member_place place;
    TNF_TRY(tnf_container_place(&place, z, i, e));
    if (place.codec != TNF_CODEC_RAW)
        return tnf_fail(e, TNF_EUNSUPPORTED, place.offset,
                        WEIGHTS " is compressed: unpack the archive and open it by itself");
    return tnf_h5_read(r, place.offset, z->members[i].size, e);
}

static tnf_status read_members(tnf_reader *r, const tnf_container *z, tnf_error *e)
{
    size_t weights = tnf_container_find(z, (tnf_str)TNF_STR(WEIGHTS));
    if (weights == SIZE_MAX)
        return tnf_fail(e, TNF_EUNSUPPORTED, 0,
                        "the archive has no " WEIGHTS
                        " (weights in .npz or in shards are not read)");
    TNF_TRY(read_weights(r, z, weights, e));
    for (size_t i = 0; i < DOCUMENTS; i++) {
        size_t at = tnf_container_find(
            z, (tnf_str) { documents[i].member, strlen(documents[i].member) });
        if (at != SIZE_MAX)
            TNF_TRY(read_json(r, documents[i].key, z, at, e));
    }
    for (size_t i = 0; i < z->n; i++) {
        const tnf_container_member *m = &z->members[i];
        if (!is_own(m) && !m->directory)
            TNF_TRY(keep_member(r, z, i, e));
    }
    return TNF_OK;
}

static tnf_status index_keras(tnf_reader *r, tnf_error *e)
{
    tnf_container z;
    TNF_TRY(tnf_open_zip(r, &z, e));
    tnf_status status = read_members(r, &z, e);
    tnf_container_close(&z);
    return status;
}

/* ------------------------------------------------------------------ writing */

static const char *document_of(tnf_str key)
{
    for (size_t i = 0; i < DOCUMENTS; i++)
        if (tnf_str_is(key, documents[i].key))
            return documents[i].member;
    return NULL;
}

static tnf_status fits_keras(tnf_fit *fit, tnf_error *e)
{
    const tnf_attrs *attrs = &fit->catalog->attrs;
    bool model = false;
    TNF_TRY(tnf_h5_fits(fit, e));
    for (size_t i = 0; i < attrs->n; i++) {
        const tnf_member *m = &attrs->members[i];
        bool json = m->value.kind == TNF_JSON && m->value.n > 0;
        if (document_of(m->key) && !json)
            fit->attrs[i] = (tnf_verdict) { TNF_DROPPED, "it is not a JSON document" };
        model = model || (json && document_of(m->key) == documents[1].member);
    }
    for (size_t i = 0; i < fit->catalog->n && !model; i++)
        if (fit->objects[i].fate < TNF_TRANSFORMED && !tnf_is_filler(&fit->catalog->objects[i]))
            fit->objects[i] = (tnf_verdict) { TNF_TRANSFORMED,
                                              "the file would have no " CONFIG
                                              ", and Keras loads no model without it; "
                                              "weights alone belong into a .weights.h5 file" };
    return TNF_OK;
}

/* Passes bytes on to the archive and computes the CRC that it needs. */
struct counted {
    tnf_sink *to;
    uint32_t crc;
};

static tnf_status put_counted(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct counted *c = ctx;
    c->crc = tnf_crc32(c->crc, bytes, n);
    return tnf_sink_write(c->to, bytes, n, e);
}

static const tnf_sink_ops counted_ops = { .version = TNF_SINK_OPS_VERSION, .write = put_counted };

typedef tnf_status (*put_fn)(tnf_writer *w, const void *what, tnf_error *e);

static tnf_status put_member(tnf_writer *w, tnf_zip_sink *zip, tnf_str name, put_fn put,
                             const void *what, tnf_error *e)
{
    struct counted c = { .to = w->sink };
    const tnf_zip_put member = { .name = name };
    tnf_sink *through;
    TNF_TRY(tnf_zip_sink_member(zip, &member, e));
    TNF_TRY(tnf_sink_new(&through, &counted_ops, &c, &w->scratch->alloc, e));
    w->sink = through;
    tnf_status status = put(w, what, e);
    if (status == TNF_OK)
        status = tnf_sink_flush(through, e);
    uint64_t n = through->written;
    w->sink = c.to;
    tnf_sink_close(through);
    TNF_TRY(status);
    return tnf_zip_sink_member_end(zip, n, c.crc, e);
}

static tnf_status put_document(tnf_writer *w, const void *what, tnf_error *e)
{
    const tnf_value *v = what;
    return tnf_put(w, v->as.s, v->n, e);
}

static tnf_status put_weights(tnf_writer *w, const void *what, tnf_error *e)
{
    (void)what;
    return tnf_h5_write(w, e);
}

static tnf_status put_extra(tnf_writer *w, const void *what, tnf_error *e)
{
    return tnf_put_data(w, what, e);
}

static tnf_status put_extras(tnf_writer *w, tnf_zip_sink *zip, tnf_error *e)
{
    for (size_t i = 0; i < w->catalog->nextras; i++) {
        const tnf_extra *x = &w->catalog->extras[i];
        tnf_str name = { x->key.p + sizeof PREFIX - 1, x->key.n - (sizeof PREFIX - 1) };
        const tnf_container_member m = { .name = name };
        if (is_own(&m) || tnf_path_check(name, NULL) != TNF_OK)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "no member can be called %s",
                            TNF_QUOTED(name));
        TNF_TRY(put_member(w, zip, name, put_extra, &x->bytes, e));
    }
    return TNF_OK;
}

static tnf_status put_members(tnf_writer *w, tnf_zip_sink *zip, tnf_error *e)
{
    for (size_t i = 0; i < DOCUMENTS; i++) {
        const char *name = documents[i].member;
        const tnf_value *v = tnf_catalog_attr(w->catalog, documents[i].key);
        if (v)
            TNF_TRY(put_member(w, zip, (tnf_str) { name, strlen(name) }, put_document, v, e));
    }
    TNF_TRY(put_member(w, zip, (tnf_str)TNF_STR(WEIGHTS), put_weights, NULL, e));
    TNF_TRY(put_extras(w, zip, e));
    return tnf_zip_sink_end(zip, (tnf_str) { "", 0 }, e);
}

static tnf_status write_keras(tnf_writer *w, tnf_error *e)
{
    tnf_zip_sink zip;
    tnf_zip_sink_begin(&zip, w->sink, TNF_ZIP_PYTHON, &w->scratch->alloc);
    tnf_status status = put_members(w, &zip, e);
    tnf_zip_sink_free(&zip);
    return status;
}

/* The family is HDF5, since the tensors and most attributes are those of the HDF5 file inside. */
const tnf_format tnf_format_keras = {
    .name = "keras",
    .title = "Keras 3 model (.keras)",
    .extensions = "keras",
    .family = "hdf5",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .can = { .types = H5_WRITES,
             .layouts = "dense strings/1",
             .zero_rank = true,
             .extras = true,
             .extra_prefix = "keras",
             .sorts = tnf_h5_compare,
             .attrs = TNF_HOLDS_TEXT,
             .file_attrs = H5_OF_FILE " " METADATA " " CONFIG,
             .object_attrs = H5_OF_TENSOR,
             .derived = H5_DERIVED,
             .takes = tnf_h5_takes,
             .fits = fits_keras },
    .write_options = tnf_h5_write_options,
    .probe = probe_keras,
    .index = index_keras,
    .decode = tnf_h5_decode,
    .decode_on = tnf_h5_decode_on,
    .forget = tnf_h5_forget,
    .verify = tnf_h5_verify,
    .keeps = H5_KEEPS,
    .write = write_keras,
};
