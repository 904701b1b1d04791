/* SPDX-License-Identifier: MIT */
/* The zip container, since torch 1.6, and TorchScript archives.
 *
 *   ROOT/data.pkl                 the object
 *   ROOT/byteorder                "little" or "big"
 *   ROOT/data/0 ROOT/data/1 …     storages, raw, each on a multiple of 64
 *   ROOT/version                  "3\n"
 *   ROOT/.data/serialization_id   40 digits
 *   TorchScript: ROOT/constants.pkl, ROOT/constants/0 …, ROOT/code/…
 *
 * Names are looked up case-insensitively, as in torch. A record's own header is compared with the
 * directory before use: if they differ, readers see different files.
 */
#include "formats/pytorch/ptzip.h"

#include "base/bytes.h"
#include "base/digest.h"
#include "base/str.h"
#include "base/utf8.h"
#include "container/container.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

#define MAX_DIRECTORY ((uint64_t)1 << 30)
#define MAX_MEMBERS   ((uint64_t)1 << 24)
#define MAX_TEXT      4096u

/* ---------------------------------------------------------------- records */

/* Adds a record by its name without the root directory, in lower case. */
static tnf_status add_record(pt_zip *z, tnf_zip_member *m, tnf_error *e)
{
    tnf_reader *r = z->f->r;
    uint32_t known;
    if (m->name.n < z->root.n + 1 || memcmp(m->name.p, z->root.p, z->root.n) != 0 ||
        m->name.p[z->root.n] != '/')
        return tnf_stricter(r, e, TNF_EFORMAT, m->at, "the record %s is not in the directory %s",
                            TNF_QUOTED(m->name), TNF_QUOTED(z->root));
    tnf_str rest = { m->name.p + z->root.n + 1, m->name.n - z->root.n - 1 };
    char *text = tnf_arena_str(r->arena, rest.p, rest.n);
    if (!text)
        return tnf_arena_fail(r->arena, "a record", e);
    for (size_t i = 0; i < rest.n; i++)
        text[i] = tnf_lower_case(text[i]);
    pt_record record = { .name = { text, rest.n }, .member = m };
    if (rest.n == 0)
        return TNF_OK; /* the directory itself */
    TNF_TRY(tnf_named_add(&z->records, &record, &known, e));
    if (known != TNF_HASH_NONE)
        return tnf_stricter(r, e, TNF_EFORMAT, m->at,
                            "two records are called %s, and readers differ on which one they use",
                            TNF_QUOTED(rest));
    return TNF_OK;
}

pt_record *tnf_pt_record(const pt_zip *z, const char *name)
{
    uint32_t i = tnf_named_find(&z->records, (tnf_str) { name, strlen(name) });
    return i == TNF_HASH_NONE ? NULL : tnf_named_at(&z->records, i);
}

tnf_status tnf_pt_locate_record(pt_zip *z, pt_record *r, tnf_error *e)
{
    if (r->located)
        return TNF_OK;
    if (z->salvaged)
        r->offset = r->member->header;
    else
        TNF_TRY(tnf_zip_locate(&r->offset, &z->from, r->member, e));
    r->located = true;
    return TNF_OK;
}

static tnf_status read_stored(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    pt_stored *s = ctx;
    s->failed = s->from->fetch(s->from->ctx, s->offset + offset, dst, n, e);
    return s->failed;
}

/* Pickles compress to a twentieth at most. Larger records with a higher ratio are bombs. */
#define BOMB       ((uint64_t)4 << 20)
#define BOMB_RATIO 100u

static tnf_status inflate_record(const tnf_zip_from *from, uint8_t *dst, const pt_record *r,
                                 tnf_error *e)
{
    pt_stored s = { .from = from, .offset = r->offset };
    tnf_encoded encoded = { read_stored, &s, r->member->stored, r->member->size };
    tnf_decoder *d;
    TNF_TRY(tnf_decoder_open(&d, TNF_CODEC_DEFLATE, &encoded, NULL, e));
    tnf_status status = tnf_decoder_read(d, 0, dst, (size_t)r->member->size, e);
    status = status == TNF_OK ? tnf_decoder_end(d, e) : status;
    if (status != TNF_OK && s.failed == TNF_OK && e) /* decoders count from the start of the data */
        e->offset = r->offset + (e->offset == TNF_NO_OFFSET ? 0 : e->offset);
    tnf_decoder_close(d);
    return status;
}

tnf_status tnf_pt_read_head(pt_zip *z, pt_record *r, uint8_t *dst, size_t n, tnf_error *e)
{
    TNF_TRY(tnf_pt_locate_record(z, r, e));
    if (r->member->method != TNF_ZIP_DEFLATED)
        return z->from.fetch(z->from.ctx, r->offset, dst, n, e);
    pt_stored s = { .from = &z->from, .offset = r->offset };
    tnf_encoded encoded = { read_stored, &s, r->member->stored, r->member->size };
    tnf_decoder *d;
    TNF_TRY(tnf_decoder_open(&d, TNF_CODEC_DEFLATE, &encoded, NULL, e));
    tnf_status status = tnf_decoder_read(d, 0, dst, n, e);
    tnf_decoder_close(d);
    return status;
}

/* A CRC of 0 means that none was computed. */
static bool crc_fits(const pt_record *r, const void *bytes, size_t n)
{
    tnf_digester d;
    uint8_t found[4], want[4];
    if (r->member->crc == 0 || !tnf_digest_begin(&d, "crc32"))
        return true;
    tnf_digest_update(&d, bytes, n);
    tnf_digest_end(&d, found);
    for (int i = 0; i < 4; i++)
        want[i] = (uint8_t)(r->member->crc >> (24 - 8 * i));
    return memcmp(found, want, 4) == 0;
}

tnf_status tnf_pt_read_record(pt_zip *z, pt_record *r, uint64_t most, tnf_cur *out, tnf_error *e)
{
    tnf_reader *reader = z->f->r;
    uint64_t size = r->member->size, cap = reader->limits.header_bytes;
    cap = most < cap ? most : cap;
    TNF_TRY(tnf_pt_locate_record(z, r, e));
    if (size > cap)
        return tnf_fail(e, TNF_ELIMIT, r->member->at,
                        "the record %s has %llu bytes; at most %llu are allowed",
                        TNF_QUOTED(r->name), (unsigned long long)size, (unsigned long long)cap);
    if (size > BOMB && size / BOMB_RATIO > r->member->stored)
        return tnf_fail(
            e, TNF_ELIMIT, r->member->at,
            "the record %s would become %llu bytes out of %llu: no pickle compresses so much",
            TNF_QUOTED(r->name), (unsigned long long)size, (unsigned long long)r->member->stored);
    uint8_t *bytes = tnf_arena_raw(reader->scratch, size + 1);
    if (!bytes)
        return tnf_arena_fail(reader->scratch, "a record", e);
    r->used = true;
    if (r->member->method == TNF_ZIP_DEFLATED)
        TNF_TRY(inflate_record(&z->from, bytes, r, e));
    else
        TNF_TRY(z->from.fetch(z->from.ctx, r->offset, bytes, (size_t)size, e));
    *out = tnf_cur_over(bytes, (size_t)size, r->offset);
    r->compared = true;
    if (!crc_fits(r, bytes, (size_t)size))
        TNF_TRY(tnf_stricter(reader, e, TNF_EDIGEST, r->offset,
                             "the record %s does not match its CRC, which torch does not check",
                             TNF_QUOTED(r->name)));
    return TNF_OK;
}

/* ------------------------------------------------------------------ facts */

static tnf_status read_text(pt_zip *z, const char *name, tnf_str *out, tnf_error *e)
{
    tnf_cur c;
    pt_record *r = tnf_pt_record(z, name);
    *out = (tnf_str) { NULL, 0 };
    if (!r)
        return TNF_OK;
    TNF_TRY(tnf_pt_read_record(z, r, MAX_TEXT, &c, e));
    size_t n = tnf_left(&c);
    while (n && (c.p[n - 1] == '\n' || c.p[n - 1] == '\r' || c.p[n - 1] == ' '))
        n--;
    const char *copy = tnf_arena_str(z->f->r->arena, c.p, n);
    if (!copy)
        return tnf_arena_fail(z->f->r->arena, name, e);
    *out = (tnf_str) { copy, n };
    return TNF_OK;
}

static tnf_status read_version(pt_zip *z, tnf_error *e)
{
    tnf_reader *r = z->f->r;
    tnf_str text;
    uint64_t version;
    TNF_TRY(read_text(z, ".data/version", &text, e));
    if (!text.p)
        TNF_TRY(read_text(z, "version", &text, e));
    if (!text.p)
        return tnf_stricter(r, e, TNF_EFORMAT, 0,
                            "there is no record 'version': torch refuses such files");
    if (!tnf_str_uint(&version, text))
        return tnf_fail(e, TNF_EFORMAT, 0, "the version %s is not a number", TNF_QUOTED(text));
    if (version < 1 || version > 10)
        TNF_TRY(tnf_stricter(r, e, TNF_EUNSUPPORTED, 0,
                             "the file has version %llu; torch reads versions 1 to 10",
                             (unsigned long long)version));
    return tnf_set_attr(r, "pytorch.version", tnf_value_uint(version), e);
}

static tnf_status read_byteorder(pt_zip *z, tnf_error *e)
{
    tnf_str text;
    TNF_TRY(read_text(z, "byteorder", &text, e));
    if (!text.p)
        return TNF_OK;
    z->f->big = tnf_str_is(text, "big");
    if (!z->f->big && !tnf_str_is(text, "little"))
        return tnf_fail(e, TNF_EFORMAT, 0, "the byte order is %s, not little or big",
                        TNF_QUOTED(text));
    return tnf_set_attr(z->f->r, "pytorch.byteorder", tnf_value_string(text.p), e);
}

static tnf_status read_metadata(pt_zip *z, tnf_error *e)
{
    pt_record *record = tnf_pt_record(z, PT_METADATA);
    tnf_reader *r = z->f->r;
    tnf_cur c;
    tnf_json j;
    tnf_value all;
    if (!record)
        return TNF_OK;
    TNF_TRY(tnf_pt_read_record(z, record, UINT64_MAX, &c, e));
    tnf_json_init(&j, c.p, tnf_left(&c), c.base, r->scratch, r->limits.depth, e);
    if (!tnf_json_value(&j, &all) || tnf_json_end(&j) != TNF_OK)
        return j.status;
    for (size_t i = 0; all.kind == TNF_MAP && i < all.n; i++) {
        const tnf_member *m = &all.as.members[i];
        if (m->value.kind == TNF_STRING)
            TNF_TRY(tnf_set_text(r, m->key, (tnf_str) { m->value.as.s, m->value.n }, e));
    }
    return TNF_OK;
}

static tnf_status read_facts(pt_zip *z, tnf_error *e)
{
    tnf_reader *r = z->f->r;
    tnf_str text;
    uint64_t number;
    const char *root = tnf_arena_str(r->arena, z->root.p, z->root.n);
    if (!root)
        return tnf_arena_fail(r->arena, "a name", e);
    TNF_TRY(tnf_set_attr(r, "pytorch.root", tnf_value_str(TNF_STRING, root, z->root.n), e));
    if (!z->salvaged)
        TNF_TRY(read_version(z, e));
    TNF_TRY(read_byteorder(z, e));
    TNF_TRY(read_text(z, ".storage_alignment", &text, e));
    if (text.p && tnf_str_uint(&number, text))
        TNF_TRY(tnf_set_attr(r, "pytorch.alignment", tnf_value_uint(number), e));
    TNF_TRY(read_text(z, ".data/serialization_id", &text, e));
    if (text.p && tnf_str_begins(text, "00000000000000000000"))
        z->f->own_id = text;
    else if (text.p && tnf_utf8_valid(NULL, text.p, text.n))
        TNF_TRY(tnf_set_attr(r, "pytorch.serialization_id",
                             tnf_value_str(TNF_STRING, text.p, text.n), e));
    TNF_TRY(read_text(z, ".format_version", &text, e));
    return read_metadata(z, e);
}

/* --------------------------------------------------------------- storages */

static tnf_status add_storages(pt_zip *z, tnf_error *e)
{
    for (uint32_t i = 0; i < tnf_named_count(&z->records); i++) {
        pt_record *r = tnf_named_at(&z->records, i);
        if (!tnf_pt_in_folder(r, "data/") && !tnf_pt_in_folder(r, "constants/"))
            continue;
        pt_storage s = { .key = r->name,
                         .stored = r->member->stored,
                         .size = r->member->size,
                         .header = i,
                         .deflated = r->member->method == TNF_ZIP_DEFLATED,
                         .big = z->f->big,
                         .has_crc = r->member->crc != 0 };
        for (int k = 0; k < 4; k++)
            s.crc[k] = (uint8_t)(r->member->crc >> (24 - 8 * k));
        TNF_TRY(tnf_pt_add_storage(z->f, &s, e));
    }
    return TNF_OK;
}

static tnf_status locate_storage(pt_file *f, pt_storage *s, tnf_error *e)
{
    pt_zip *z = f->container;
    pt_record *r = tnf_named_at(&z->records, (uint32_t)s->header);
    if (s->located)
        return TNF_OK;
    TNF_TRY(tnf_pt_locate_record(z, r, e));
    r->used = true;
    s->offset = r->offset + z->base;
    s->located = true;
    if (!s->has_crc)
        return TNF_OK;
    tnf_digest *d = tnf_arena_alloc(f->r->arena, sizeof *d);
    if (!d)
        return tnf_arena_fail(f->r->arena, "a storage", e);
    *d = (tnf_digest) { .algorithm = "crc32", .bytes = s->crc, .n = 4, .of_stored = !s->deflated };
    s->digest = d;
    return TNF_OK;
}

/* ---------------------------------------------------------------- pickles */

/* Keeps the code of TorchScript byte for byte. */
static tnf_status keep_code(pt_zip *z, tnf_error *e)
{
    tnf_reader *reader = z->f->r;
    char key[200];
    for (uint32_t i = 0; i < tnf_named_count(&z->records); i++) {
        pt_record *r = tnf_named_at(&z->records, i);
        if ((!tnf_pt_in_folder(r, "code/") && !tnf_pt_in_folder(r, "extra/")) ||
            tnf_pt_is_pickle_name(r->name) || r->name.p[r->name.n - 1] == '/' ||
            tnf_str_is(r->name, PT_METADATA))
            continue;
        bool lost;
        tnf_status status = tnf_pt_locate_record(z, r, e);
        if (status != TNF_OK && tnf_lose(reader, status, e))
            continue;
        TNF_TRY(status);
        TNF_TRY(tnf_pt_salvage_record(z, r, &lost, e));
        if (lost)
            continue;
        snprintf(key, sizeof key, "pytorch.%.*s", (int)(r->name.n < 180 ? r->name.n : 180),
                 r->member->name.p + z->root.n + 1);
        const char *kept = tnf_arena_str(reader->arena, key, strlen(key));
        if (!kept)
            return tnf_arena_fail(reader->arena, "code", e);
        TNF_TRY(tnf_add_extra(reader, kept, r->offset, r->member->stored, e));
        tnf_part *part = &reader->catalog->extras[reader->catalog->nextras - 1].bytes;
        if (r->member->method == TNF_ZIP_DEFLATED) {
            part->payload = TNF_ENCODED;
            part->codec = TNF_CODEC_DEFLATE;
            part->nbytes = r->member->size;
        }
    }
    return TNF_OK;
}

static tnf_status read_pickle(pt_zip *z, const char *name, tnf_pickle *out, tnf_error *e)
{
    pt_record *r = tnf_pt_record(z, name);
    tnf_cur c;
    if (!r)
        return tnf_fail(e, z->salvaged ? TNF_ETRUNCATED : TNF_EFORMAT, 0,
                        "the zip archive has no %s, so it is not a file of PyTorch", name);
    tnf_status status = tnf_pt_read_record(z, r, PT_MAX_PICKLE, &c, e);
    if (status == TNF_EFORMAT)
        tnf_pt_name_hidden_calls(z, r, e);
    TNF_TRY(status);
    TNF_TRY(tnf_pt_pickle(z->f, out, &c, name, e));
    if (tnf_left(&c) == 0)
        return TNF_OK;
    tnf_warn(z->f->r, tnf_where(&c), "%s the pickle, which torch ignores",
             TNF_BYTES_FOLLOW(tnf_left(&c)));
    tnf_pickle more;
    if (tnf_pickle_read(&more, c.p, tnf_left(&c), tnf_where(&c), z->f->r->scratch, NULL) ==
        TNF_ENOMEM)
        return tnf_arena_fail(z->f->r->scratch, "a pickle", e);
    char names[120];
    tnf_pt_name_calls(names, sizeof names, &more, z->f->r->scratch);
    if (names[0])
        tnf_warn(z->f->r, tnf_where(&c), "another pickle follows, which names %s", names);
    return TNF_OK;
}

/* ---------------------------------------------------------------- archive */

static tnf_status begin_zip(pt_zip *z, tnf_error *e)
{
    tnf_reader *r = z->f->r;
    tnf_status status = tnf_zip_read(&z->zip, &z->from, e);
    if (status == TNF_ETRUNCATED && r->salvage) {
        if (!tnf_lose(r, status, e))
            return status;
        TNF_TRY(tnf_pt_salvage(z, e));
    } else {
        TNF_TRY(status);
    }
    if (z->zip.n == 0)
        return tnf_fail(e, TNF_EFORMAT, 0, "the zip archive is empty");
    if (z->from.ctx == r->source)
        tnf_container_expect(r->source, &z->zip);
    tnf_str first = z->zip.members[0].name;
    const char *slash = first.n ? memchr(first.p, '/', first.n) : NULL;
    if (!slash)
        return tnf_fail(e, TNF_EFORMAT, z->zip.members[0].at,
                        "the first record, %s, is not in a directory: it is not a file of PyTorch",
                        TNF_QUOTED(first));
    z->root = (tnf_str) { first.p, (size_t)(slash - first.p) };
    for (size_t i = 0; i < z->zip.n; i++)
        TNF_TRY(add_record(z, &z->zip.members[i], e));
    return TNF_OK;
}

static tnf_status read_script(pt_zip *z, tnf_error *e)
{
    tnf_pickle p;
    z->f->folder = "constants/";
    TNF_TRY(read_pickle(z, "constants.pkl", &p, e));
    TNF_TRY(tnf_pt_walk(z->f, p.root, "constants", p.used, e));
    TNF_TRY(tnf_pt_list_others(z->f, &p, e));
    return keep_code(z, e);
}

static tnf_status read_zip(pt_zip *z, tnf_error *e)
{
    pt_file *f = z->f;
    tnf_pickle p;
    TNF_TRY(begin_zip(z, e));
    bool script = tnf_pt_record(z, "constants.pkl") != NULL;
    if (tnf_pt_record(z, ".data/extern_modules") && !tnf_pt_record(z, "data.pkl"))
        return tnf_fail(e, TNF_EUNSUPPORTED, 0,
                        "this is an archive of torch.package, which contains code and objects, "
                        "not a checkpoint");
    f->kind = f->r->version = script ? "torchscript" : "zip";
    tnf_status status = read_facts(z, e);
    if (status == TNF_EFORMAT && tnf_pt_record(z, "data.pkl"))
        tnf_pt_name_hidden_calls(z, tnf_pt_record(z, "data.pkl"), e);
    TNF_TRY(status);
    TNF_TRY(add_storages(z, e));
    f->locate = locate_storage;
    f->folder = "data/";
    TNF_TRY(read_pickle(z, "data.pkl", &p, e));
    TNF_TRY(tnf_set_attr(f->r, "pytorch.protocol", tnf_value_uint(p.protocol), e));
    TNF_TRY(tnf_pt_walk(f, p.root, NULL, p.used, e));
    TNF_TRY(tnf_pt_list_others(f, &p, e));
    if (script)
        TNF_TRY(read_script(z, e));
    else
        TNF_TRY(tnf_pt_keep_tree(f, &p, e));
    if (z->salvaged)
        return TNF_OK;
    TNF_TRY(tnf_pt_check_others(z, e));
    return tnf_pt_keep_sums(z, e);
}

tnf_status tnf_pt_index_zip(pt_file *f, tnf_error *e)
{
    tnf_reader *r = f->r;
    pt_zip *z = tnf_arena_alloc(r->arena, sizeof *z);
    if (!z)
        return tnf_arena_fail(r->arena, "the archive", e);
    z->f = f;
    z->from = (tnf_zip_from) { .fetch = tnf_source_fetch,
                               .ctx = (void *)(uintptr_t)r->source,
                               .size = r->source->size,
                               .arena = r->arena,
                               .max_directory = MAX_DIRECTORY,
                               .max_members = MAX_MEMBERS,
                               .odd = tnf_stricter_odd,
                               .odd_ctx = r };
    f->container = z;
    tnf_named_init(&z->records, sizeof(pt_record), &r->scratch->alloc, r->limits.memory);
    tnf_status status = read_zip(z, e);
    tnf_named_free(&z->records);
    if (status == TNF_EFORMAT && strcmp(r->extension, "distcp") == 0)
        return tnf_fail(
            e, TNF_EUNSUPPORTED, 0,
            "this file is a piece of a directory of torch.distributed.checkpoint: open the "
            "directory");
    return status;
}

/* Reads an archive inside another file: its pickle, and the places of its storages. */
tnf_status tnf_pt_inner_zip(pt_zip *z, tnf_pickle *out, tnf_error *e)
{
    tnf_named_init(&z->records, sizeof(pt_record), &z->f->r->scratch->alloc,
                   z->f->r->limits.memory);
    tnf_status status = begin_zip(z, e);
    if (status == TNF_OK)
        status = read_byteorder(z, e);
    if (status == TNF_OK)
        status = add_storages(z, e);
    z->f->locate = locate_storage;
    z->f->folder = "data/";
    if (status == TNF_OK)
        status = read_pickle(z, "data.pkl", out, e);
    pt_mention m;
    for (uint32_t i = 0; i < out->persistent.n && status == TNF_OK; i++) {
        if (!tnf_pt_is_storage(out->persistent.nodes[i]))
            continue;
        status = tnf_pt_mention(&m, out->persistent.nodes[i], z->f->r->arena, e);
        pt_storage *s = status == TNF_OK ? tnf_pt_find_storage(z->f, m.key) : NULL;
        if (s)
            status = locate_storage(z->f, s, e);
    }
    z->f->locate = NULL;
    tnf_named_free(&z->records);
    return status;
}
