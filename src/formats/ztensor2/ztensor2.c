/* SPDX-License-Identifier: MIT */
/* zTensor 2 (.zt), specification draft 4. Little-endian, row-major, index last:
 *
 *   0        magic 89 "ZT2" 0D 0A 1A 0A
 *   4096·k   blobs, at any multiples of 4096 (65536 in canonical form); zeros between
 *   4096·m   manifest: deterministic CBOR (manifest.c)
 *   -40      u64 manifest offset, u64 its length, u64 its XXH3-64
 *   -16      u32 version = 2, u32 reserved
 *   -8       magic
 *
 * A length of zero means a data shard: only bytes, which the manifest of another file describes.
 * Faults are reported in the order of the specification, with its class: "BlobAlignment: …".
 */
#include "formats/ztensor2/zt2.h"

#include <inttypes.h>

static int probe_ztensor2(const tnf_probe *p)
{
    return p->nhead >= ZT2_MAGIC_N && memcmp(p->head, ZT2_MAGIC, ZT2_MAGIC_N) == 0 ? TNF_PROBE_MAGIC
                                                                                   : TNF_PROBE_NO;
}

/* ---------------------------------------------------------------- reading */

tnf_status tnf_zt2_read_footer(tnf_reader *r, zt2_footer *f, uint64_t at, tnf_error *e)
{
    tnf_cur c;
    f->at = at;
    TNF_TRY(tnf_read_range(r, "footer", at, ZT2_FOOTER, ZT2_FOOTER, &c, e));
    f->offset = tnf_u64(&c);
    f->length = tnf_u64(&c);
    f->hash = tnf_u64(&c);
    uint32_t version = tnf_u32(&c);
    f->reserved = tnf_u32(&c); /* not used yet */
    if (memcmp(c.p, ZT2_MAGIC, ZT2_MAGIC_N) != 0)
        return tnf_fail_rule(
            e, "FooterMagic", TNF_ETRUNCATED, at + 32,
            "no footer at the end: the file was cut short, or an append was interrupted. "
            "--lenient opens the last complete model, 'tenfold append FILE' repairs it in place, "
            "'tenfold repair FILE OUT' saves it");
    if (version != ZT2_VERSION)
        return tnf_fail_rule(e, "Version", TNF_EUNSUPPORTED, at + 24,
                             "version %u is not supported; only version %u is", version,
                             ZT2_VERSION);
    return TNF_OK;
}

/* Reads the head and the footer at the end; in lenient mode perhaps the footer of a model before
 * the end. */
static tnf_status find_footer(zt2 *z, tnf_error *e)
{
    tnf_cur c;
    uint64_t size = z->r->source->size;
    if (size < ZT2_SMALLEST)
        return tnf_fail_rule(e, "FileTooSmall", TNF_ETRUNCATED, size,
                             "the file has %s, but even the smallest has %u",
                             TNF_COUNTED(size, "byte", "bytes"), ZT2_SMALLEST);
    TNF_TRY(tnf_read_range(z->r, "magic", 0, ZT2_MAGIC_N, ZT2_MAGIC_N, &c, e));
    if (memcmp(c.p, ZT2_MAGIC, ZT2_MAGIC_N) != 0)
        return tnf_fail_rule(e, "HeaderMagic", TNF_EFORMAT, 0,
                             "the file does not begin with the magic of zTensor 2");
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = tnf_zt2_read_footer(z->r, &z->footer, size - ZT2_FOOTER, &why);
    if (status == TNF_ETRUNCATED && z->r->lenient)
        status = tnf_zt2_recover(z, &why);
    if (status == TNF_OK && why.status != TNF_OK)
        (void)tnf_lose(z->r, why.status, &why);
    if (status != TNF_OK && e)
        *e = why;
    return status;
}

tnf_status tnf_zt2_check_footer(const zt2_footer *f, tnf_error *e)
{
    uint64_t end;
    if (f->length > ZT2_MAX_MANIFEST)
        return tnf_fail_rule(e, "ManifestTooLarge", TNF_ELIMIT, f->at + 8,
                             "the manifest has a length of %" PRIu64 " bytes", f->length);
    if (f->offset % ZT2_FLOOR != 0 || f->offset < ZT2_FLOOR)
        return tnf_fail_rule(e, "BlobAlignment", TNF_EFORMAT, f->at,
                             "the manifest begins at %" PRIu64 ", not a multiple of %u above zero",
                             f->offset, ZT2_FLOOR);
    if (!tnf_ckd_add(&end, f->offset, f->length) || end > f->at)
        return tnf_fail_rule(e, "ManifestBounds", TNF_EFORMAT, f->at,
                             "the manifest has %" PRIu64 " bytes at %" PRIu64
                             ", but the footer begins at %" PRIu64,
                             f->length, f->offset, f->at);
    return TNF_OK;
}

tnf_status tnf_zt2_check_hash(const zt2_footer *f, const void *manifest, tnf_error *e)
{
    uint8_t hash[TNF_DIGEST_MAX];
    tnf_digester d;
    if (!tnf_digest_begin(&d, "xxh3-64"))
        return tnf_no_memory("a digest", e);
    tnf_digest_update(&d, manifest, (size_t)f->length);
    tnf_digest_end(&d, hash);
    if (tnf_be64(hash) != f->hash)
        return tnf_fail_rule(e, "ManifestHash", TNF_EFORMAT, f->at + 16,
                             "the manifest does not match its hash");
    return TNF_OK;
}

/* If the manifest is damaged, an older one may be intact. */
static tnf_status older_manifest(zt2 *z, tnf_cur *c, tnf_status status, tnf_error *e)
{
    const zt2_footer *f = &z->footer;
    if (!z->r->salvage || !(status == TNF_EFORMAT || status == TNF_ETRUNCATED))
        return status;
    tnf_error before = *e;
    TNF_TRY(tnf_zt2_recover(z, e));
    if (!tnf_lose(z->r, status, &before))
        return status;
    return tnf_read_range(z->r, "manifest", f->offset, f->length, ZT2_MAX_MANIFEST, c, e);
}

static tnf_status read_manifest(zt2 *z, tnf_cur *c, tnf_error *e)
{
    const zt2_footer *f = &z->footer;
    TNF_TRY(tnf_zt2_check_footer(f, e));
    TNF_TRY(tnf_read_range(z->r, "manifest", f->offset, f->length, ZT2_MAX_MANIFEST, c, e));
    return tnf_zt2_check_hash(f, c->p, e);
}

void tnf_zt2_free(zt2 *z)
{
    tnf_arena_free(&z->one);
}

tnf_status tnf_zt2_read(zt2 *z, tnf_error *e)
{
    tnf_cur c;
    zt2_footer *f = &z->footer;
    tnf_arena_init(&z->one, &z->r->scratch->alloc, z->r->limits.memory);
    z->to = &z->one;
    TNF_TRY(find_footer(z, e));
    if (f->length == 0 && (f->offset != 0 || f->hash != 0))
        return tnf_fail_rule(e, "ManifestBounds", TNF_EFORMAT, f->at,
                             "a manifest without bytes has an offset or a hash");
    if (f->length == 0)
        return TNF_OK;
    tnf_status status = read_manifest(z, &c, e);
    if (status != TNF_OK)
        TNF_TRY(older_manifest(z, &c, status, e));
    return tnf_zt2_parse(z, c.p, tnf_left(&c), e);
}

static tnf_status index_model(zt2 *z, tnf_error *e)
{
    tnf_reader *r = z->r;
    TNF_TRY(tnf_zt2_read(z, e));
    if (z->footer.length == 0)
        return tnf_set_attr(r, ZT2_DATA_SHARD, tnf_value_bool(true), e);
    TNF_TRY(tnf_zt2_check(z, e));
    TNF_TRY(tnf_zt2_place_parts(z, e));
    if (z->empty_attrs)
        TNF_TRY(tnf_set_attr(r, ZT2_EMPTY_ATTRS, tnf_value_bool(true), e));
    if (z->foreign_at) { /* a writer cannot keep unknown keys: saving reports it */
        tnf_warn(r, z->foreign_at, "the manifest has an unknown key");
        TNF_TRY(tnf_add_extra(r, ZT2_UNKNOWN, z->foreign_at, z->foreign_n, e));
    }
    TNF_TRY(tnf_zt2_set_shards(z, e));
    TNF_TRY(tnf_zt2_keep_state(z, e));
    return tnf_zt2_set_content(z, e);
}

static tnf_status index_ztensor2(tnf_reader *r, tnf_error *e)
{
    zt2 z = { .r = r };
    r->version = "2";
    tnf_status status = index_model(&z, e);
    tnf_zt2_free(&z);
    return status;
}

static const tnf_rule_names rule_names = { .digest = "Digest",
                                           .encoding = "Encoding",
                                           .data = "LayoutData" };

const tnf_format tnf_format_ztensor2 = {
    .name = "ztensor2",
    .title = "zTensor 2",
    .extensions = "zt",
    .family = "ztensor",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE | TNF_CAN_APPEND | TNF_CAN_EDIT,
    .can = { .zero_rank = true,
             .utf8_names = true,
             .shares = true,
             .sorts = tnf_compare_names,
             .attrs = TNF_HOLDS_TYPED,
             .sorted_maps = true,
             .takes = tnf_zt2_takes,
             .fits = tnf_zt2_fits,
             .file_attrs = ZT2_EMPTY_ATTRS,
             .derived = ZT2_CONTENT " " ZT2_SHARDS " " ZT2_DATA_SHARD },
    .read_options = tnf_zt2_read_options,
    .write_options = tnf_zt2_write_options,
    .rule_names = &rule_names,
    .probe = probe_ztensor2,
    .index = index_ztensor2,
    .write = TNF_WRITES(tnf_zt2_write),
    .append = TNF_WRITES(tnf_zt2_write),
    .write_index = TNF_WRITES(tnf_zt2_write_index),
    .index_name = ".zt",
    .verify = tnf_zt2_verify_shards,
    .canonical = tnf_zt2_canonical,
};
