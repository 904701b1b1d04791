/* SPDX-License-Identifier: MIT */
/* Keras 3's .keras: a zip archive, in which nothing is compressed.
 *
 *   metadata.json      versions and date           -> keras.metadata
 *   config.json        the layers of the model     -> keras.config; never run, whatever it holds
 *   model.weights.h5   an HDF5 file, read where it lies
 *   assets/…           kept as extras
 */
#include "formats/hdf5/h5.h"

#include "wire/json.h"

#include <stdio.h>
#include <string.h>

#define CONFIG   "keras.config"
#define METADATA "keras.metadata"
#define WEIGHTS  "model.weights.h5"

static int probe(const tnf_probe *p)
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

/* A member that is a JSON document, as an attribute. */
static tnf_status read_json(tnf_reader *r, const char *key, const tnf_container *z, size_t i,
                            tnf_error *e)
{
    const tnf_content *m = &z->members[i];
    tnf_content_place place;
    TNF_TRY(tnf_container_place(&place, z, i, e));
    if (m->size > r->limits.header_bytes)
        return tnf_fail(e, TNF_ELIMIT, place.offset, "%s has %llu bytes, %llu are allowed",
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
    const tnf_content *m = &z->members[i];
    tnf_content_place place;
    tnf_part part = { .role = "data", .type = tnf_type_of(TNF_U8) };
    uint32_t front = 0;
    char *key = tnf_arena_raw(r->arena, m->name.n + 8);
    if (!key)
        return tnf_arena_fail(r->arena, "a member", e);
    int n = snprintf(key, m->name.n + 8, "keras.%.*s", (int)m->name.n, m->name.p);
    TNF_TRY(tnf_container_place(&place, z, i, e));
    TNF_TRY(tnf_place_part(r, &part, m, &place, 0, m->size, &front, e));
    return tnf_add_extra_part(r, (tnf_str) { key, (size_t)n }, &part, e);
}

static bool is_called(const tnf_content *m, const char *name)
{
    return m->name.n == strlen(name) && memcmp(m->name.p, name, m->name.n) == 0;
}

static tnf_status read_weights(tnf_reader *r, const tnf_container *z, size_t i, tnf_error *e)
{
    tnf_content_place place;
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
                        "no " WEIGHTS
                        " is in the archive (weights in .npz or in shards are not read)");
    TNF_TRY(read_weights(r, z, weights, e));
    for (size_t i = 0; i < z->n; i++) {
        const tnf_content *m = &z->members[i];
        if (is_called(m, "config.json"))
            TNF_TRY(read_json(r, CONFIG, z, i, e));
        else if (is_called(m, "metadata.json"))
            TNF_TRY(read_json(r, METADATA, z, i, e));
        else if (i != weights && !m->directory)
            TNF_TRY(keep_member(r, z, i, e));
    }
    return TNF_OK;
}

static tnf_status index_all(tnf_reader *r, tnf_error *e)
{
    tnf_container z;
    TNF_TRY(tnf_open_zip(r, &z, e));
    tnf_status status = read_members(r, &z, e);
    tnf_container_close(&z);
    return status;
}

const tnf_format tnf_format_keras = {
    .name = "keras",
    .title = "Keras 3 model (.keras)",
    .extensions = "keras",
    .family = "keras",
    .caps = TNF_CAN_READ,
    .probe = probe,
    .index = index_all,
    .decode = tnf_h5_decode,
    .decode_on = tnf_h5_decode_on,
    .forget = tnf_h5_forget,
    .keeps = H5_KEEPS,
};
