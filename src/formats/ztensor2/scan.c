/* SPDX-License-Identifier: MIT */
/* Finds a shard by its digest in a directory whose files may have any names: *.zt files of the
 * right size are read and digested until one matches. The names come from the directory, not from
 * the manifest.
 */
#include "formats/ztensor2/zt2.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define BLOCK ((size_t)256 << 10)

static tnf_status digest_source(const tnf_source *s, const char *algorithm, uint8_t *block,
                                uint8_t out[32], tnf_error *e)
{
    tnf_digester d;
    tnf_status status = TNF_OK;
    if (!tnf_digest_begin(&d, algorithm))
        return tnf_no_memory("a digest", e);
    for (uint64_t at = 0; at < s->size && status == TNF_OK; at += BLOCK) {
        size_t n = s->size - at < BLOCK ? (size_t)(s->size - at) : BLOCK;
        status = tnf_source_read(s, at, block, n, e);
        if (status == TNF_OK)
            tnf_digest_update(&d, block, n);
    }
    tnf_digest_end(&d, status == TNF_OK ? out : NULL);
    return status;
}

typedef struct scan {
    zt2 *z;
    const char *directory;
    const zt2_shard *shard;
    const tnf_digest *digest;
    uint8_t *block;
} scan;

/* A file that cannot be read does not match. */
static tnf_status file_matches(const scan *x, const char *name, bool *out, tnf_error *e)
{
    tnf_arena *a = x->z->r->scratch;
    size_t size = strlen(x->directory) + strlen(name) + 2;
    char *path = tnf_arena_alloc(a, size);
    tnf_source *source;
    uint8_t found[TNF_DIGEST_MAX];
    if (!path)
        return tnf_arena_fail(a, "a path", e);
    snprintf(path, size, "%s/%s", x->directory, name);
    tnf_status status = tnf_source_open(&source, path, TNF_ACCESS_PREAD, &a->alloc, e);
    if (status == TNF_OK) {
        status = digest_source(source, x->digest->algorithm, x->block, found, e);
        *out = status == TNF_OK && source->size == x->shard->size &&
               memcmp(found, x->digest->bytes, x->digest->n) == 0;
        tnf_source_close(source);
    }
    return status == TNF_ENOMEM ? status : TNF_OK;
}

static bool is_candidate(const scan *x, DIR *dir, const char *name)
{
    struct stat st;
    size_t n = strlen(name);
    return n > 3 && strcmp(name + n - 3, ".zt") == 0 && fstatat(dirfd(dir), name, &st, 0) == 0 &&
           S_ISREG(st.st_mode) && (uint64_t)st.st_size == x->shard->size;
}

static tnf_status search_directory(const scan *x, DIR *dir, tnf_str *out, tnf_error *e)
{
    bool found = false;
    for (const struct dirent *entry; !found && (entry = readdir(dir)) != NULL;) {
        if (!is_candidate(x, dir, entry->d_name))
            continue;
        TNF_TRY(file_matches(x, entry->d_name, &found, e));
        out->n = strlen(entry->d_name);
        out->p = tnf_arena_str(x->z->r->scratch, entry->d_name, out->n);
        if (!out->p)
            return tnf_arena_fail(x->z->r->scratch, "a file's name", e);
    }
    if (found)
        return TNF_OK;
    return tnf_fail(e, TNF_ENOTFOUND, x->shard->at,
                    "no file in '%.80s' has the size and the digest of the shard %s", x->directory,
                    TNF_QUOTED(x->shard->name));
}

tnf_status tnf_zt2_scan(zt2 *z, const char *directory, const zt2_shard *s, tnf_str *out,
                        tnf_error *e)
{
    tnf_arena *a = z->r->scratch;
    scan x = { .z = z, .directory = directory, .shard = s, .digest = tnf_zt2_digest(a, s->digest) };
    x.block = tnf_arena_raw(a, s->size < BLOCK ? s->size : BLOCK);
    if (!x.digest || !x.block)
        return tnf_arena_fail(a, "a digest", e);
    if (!x.digest->algorithm || x.digest->n != tnf_digest_size(x.digest->algorithm))
        return tnf_fail(e, TNF_EUNSUPPORTED, s->at,
                        "the digest %s of the shard %s is not supported in a search",
                        TNF_QUOTED(s->digest), TNF_QUOTED(s->name));
    DIR *dir = opendir(directory);
    if (!dir)
        return tnf_fail_sys(e, errno, "cannot list '%.80s'", directory);
    tnf_status status = search_directory(&x, dir, out, e);
    closedir(dir);
    return status;
}
