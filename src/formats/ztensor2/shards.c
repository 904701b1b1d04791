/* SPDX-License-Identifier: MIT */
/* Parts in other files. The manifest names its shards by label, size and digest. Their places are a
 * matter of convention:
 *
 *   beside     model.zt, label base          → model-base.zt in the same directory
 *   store      digest sha256:ab12…           → <store>/blobs/sha256/ab12…
 *   scan       digest sha256:ab12…           → the file in <store> with this digest (scan.c)
 *   none       shards are not opened: their parts are listed, but cannot be read
 *
 * A label consists of letters, digits, '.', '_' and '-', a digest of hex digits: no path can lead
 * elsewhere. A shard is a zTensor file of exactly the declared size. Its own shards are not opened.
 */
#include "formats/ztensor2/zt2.h"

#include <inttypes.h>
#include <stdio.h>

enum { OPTION_SHARDS, OPTION_STORE };
enum { BESIDE, STORE, SCAN, NONE };

const tnf_option_info tnf_zt2_read_options[] = {
    { "shards", TNF_OPTION_CHOICE, "beside|store|scan|none", "beside",
      "where to look for the other files of the model" },
    { "store", TNF_OPTION_TEXT, NULL, "",
      "directory with these files: named by their digest for shards=store, with any names for "
      "shards=scan" },
    { 0 },
};

static tnf_status name_beside(tnf_str *out, zt2 *z, const zt2_shard *s, tnf_error *e)
{
    const char *stem = z->r->stem ? z->r->stem : "";
    size_t n = strlen(stem), size = n + s->name.n + sizeof "-.zt";
    char *name = tnf_arena_alloc(z->r->scratch, size);
    if (!name)
        return tnf_arena_fail(z->r->scratch, "a file's name", e);
    snprintf(name, size, "%s-%.*s.zt", stem, (int)s->name.n, s->name.p);
    *out = (tnf_str) { name, size - 1 };
    return TNF_OK;
}

static tnf_status open_beside(zt2 *z, const zt2_shard *s, const tnf_file **file, tnf_error *e)
{
    tnf_str name;
    TNF_TRY(name_beside(&name, z, s, e));
    return tnf_open_sibling(z->r, file, name, "ztensor2", e);
}

static tnf_status open_in_store(zt2 *z, const zt2_shard *s, const tnf_file **file, tnf_error *e)
{
    const char *store = z->r->options[OPTION_STORE].s,
               *colon = memchr(s->digest.p, ':', s->digest.n);
    int head = (int)(colon - s->digest.p), hex = (int)s->digest.n - head - 1;
    size_t size = s->digest.n + sizeof "blobs//";
    char *name = tnf_arena_alloc(z->r->scratch, size);
    if (!name)
        return tnf_arena_fail(z->r->scratch, "a file's name", e);
    int n = snprintf(name, size, "blobs/%.*s/%.*s", head, s->digest.p, hex, colon + 1);
    return tnf_open_stored(z->r, file, store, (tnf_str) { name, (size_t)n }, "ztensor2", e);
}

static tnf_status open_scanned(zt2 *z, const zt2_shard *s, const tnf_file **file, tnf_error *e)
{
    const char *store = z->r->options[OPTION_STORE].s;
    tnf_str name;
    TNF_TRY(tnf_zt2_scan(z, store, s, &name, e));
    return tnf_open_stored(z->r, file, store, name, "ztensor2", e);
}

static tnf_status resolve_one(zt2 *z, zt2_shard *s, tnf_error *e)
{
    const tnf_file *file;
    uint64_t size, how = z->r->options[OPTION_SHARDS].u;
    if (how != BESIDE && !*z->r->options[OPTION_STORE].s)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "shards=%s needs store=DIRECTORY",
                        how == SCAN ? "scan" : "store");
    tnf_status status = (how == STORE  ? open_in_store
                         : how == SCAN ? open_scanned
                                       : open_beside)(z, s, &file, e);
    if (status != TNF_OK && e->rule) { /* the rule belongs to the other file */
        tnf_error_prefix(e, "ShardIdentity");
        tnf_error_rule(e, "ShardIdentity");
        e->offset = s->at;
    } else if (status == TNF_ENOTFOUND) {
        e->offset = s->at; /* position of its name in this file */
    }
    TNF_TRY(status);
    s->origin = tnf_file_origin(file, &size);
    if (size == s->size)
        return TNF_OK;
    s->origin = NULL;
    return tnf_fail_rule(e, "ShardIdentity", TNF_EFORMAT, s->at,
                         "the shard %s has %" PRIu64 " bytes, not the %" PRIu64 " of the manifest",
                         TNF_QUOTED(s->name), size, s->size);
}

/* The missing shard is named by its file name if this follows a convention, else by its label. */
static tnf_status miss_shard(zt2 *z, zt2_shard *s, tnf_error *e)
{
    tnf_str name = s->name;
    if (z->r->options[OPTION_SHARDS].u == BESIDE)
        TNF_TRY(name_beside(&name, z, s, e));
    const struct missing_file *missing;
    TNF_TRY(tnf_miss(z->r, &missing, name, s->at, e));
    return tnf_missing_origin(z->r, &s->missing, missing, e);
}

tnf_status tnf_zt2_resolve(zt2 *z, tnf_error *e)
{
    if (z->r->sibling || z->r->options[OPTION_SHARDS].u == NONE)
        return TNF_OK;
    for (size_t i = 0; i < z->nshards; i++) {
        tnf_error why = { .offset = TNF_NO_OFFSET };
        tnf_status status = resolve_one(z, &z->shards[i], &why);
        if (status == TNF_ENOTFOUND && z->r->incomplete)
            status = miss_shard(z, &z->shards[i], &why);
        if (status == TNF_OK)
            continue;
        if (status == TNF_ENOMEM || status == TNF_ELIMIT || status == TNF_EINVAL) {
            if (e)
                *e = why;
            return status;
        }
        if (tnf_lose(z->r, status == TNF_ENOTFOUND ? TNF_ETRUNCATED : status, &why))
            continue;
        status = tnf_stricter(z->r, e, status, why.offset, "%s", why.message);
        if (status != TNF_OK)
            tnf_error_rule(e, why.rule);
        TNF_TRY(status);
    }
    return TNF_OK;
}

tnf_status tnf_zt2_set_shards(zt2 *z, tnf_error *e)
{
    tnf_arena *a = z->r->arena;
    tnf_attrs all = { .arena = a };
    for (size_t i = 0; i < z->nshards; i++) {
        const zt2_shard *s = &z->shards[i];
        const char *digest = tnf_arena_str(a, s->digest.p, s->digest.n);
        const char *name = tnf_arena_str(a, s->name.p, s->name.n);
        tnf_attrs one = { .arena = a };
        if (!digest || !name)
            return tnf_arena_fail(a, "shards", e);
        TNF_TRY(tnf_attrs_push(&one, "size", tnf_value_uint(s->size), e));
        TNF_TRY(tnf_attrs_push(&one, "digest", tnf_value_str(TNF_STRING, digest, s->digest.n), e));
        TNF_TRY(tnf_attrs_push(&all, name, tnf_attrs_value(&one), e));
    }
    return z->nshards ? tnf_set_attr(z->r, ZT2_SHARDS, tnf_attrs_value(&all), e) : TNF_OK;
}

/* ------------------------------------------------------------------ verify */

static tnf_status verify_one(const zt2_shard *s, tnf_arena *arena, tnf_tell tell, void *ctx,
                             tnf_error *e)
{
    const tnf_digest *told = tnf_zt2_digest(arena, s->digest);
    uint8_t found[TNF_DIGEST_MAX];
    const tnf_part whole = { .role = "data",
                             .type = tnf_type_of(TNF_U8),
                             .origin = s->origin,
                             .stored = s->size,
                             .nbytes = s->size };
    if (!told)
        return tnf_arena_fail(arena, "a digest", e);
    if (!told->algorithm)
        return TNF_OK;
    TNF_TRY(tnf_part_digest(&whole, told->algorithm, found, e));
    bool same = told->n == tnf_digest_size(told->algorithm) &&
                memcmp(found, told->bytes, told->n) == 0;
    if (!same) {
        tnf_error problem;
        (void)tnf_fail_rule(&problem, "ShardIdentity", TNF_EDIGEST, s->at,
                            "the bytes of the shard %s do not match their %s", TNF_QUOTED(s->name),
                            told->algorithm);
        tell(ctx, &problem, (tnf_str) { NULL, 0 });
    }
    return TNF_OK;
}

/* Compares complete files with their digests in the manifest. */
tnf_status tnf_zt2_verify_shards(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                                 tnf_error *e)
{
    const zt2_state *state = r->state;
    for (size_t i = 0; state && i < state->nshards; i++)
        if (state->shards[i].origin)
            TNF_TRY(verify_one(&state->shards[i], arena, tell, ctx, e));
    return TNF_OK;
}
