/* SPDX-License-Identifier: MIT */
/* Replaces src/remote/ in a library that was built without network support: every function reports
 * the missing support. */
#include "remote/list.h"

#include "base/error.h"

#include <string.h>

#ifndef TENFOLD_REMOTE

static tnf_status no_network(tnf_error *e)
{
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "this library was built without network support; use a build with "
                    "TENFOLD_CURL, or download the file first");
}

tnf_status tnf_remote_how(tnf_url_options *how, const tnf_url_options *given, tnf_option *options,
                          size_t *noptions, tnf_error *e)
{
    (void)how, (void)given, (void)options, (void)noptions;
    return no_network(e);
}

tnf_status tnf_remote_open(tnf_source **out, const char *url, const tnf_url_options *how,
                           const tnf_allocator *alloc, tnf_error *e)
{
    (void)url, (void)how, (void)alloc;
    *out = NULL;
    return no_network(e);
}

tnf_status tnf_remote_sibling(tnf_source **out, const tnf_source *near, tnf_str name, tnf_error *e)
{
    (void)near, (void)name;
    *out = NULL;
    return no_network(e);
}

void tnf_remote_expect(const tnf_source *near, const tnf_str *names, size_t n)
{
    (void)near, (void)names, (void)n;
}

bool tnf_remote_folder(const char *url)
{
    (void)url;
    return false;
}

tnf_status tnf_remote_names(const char *url, const tnf_url_options *how, bool *listed,
                            tnf_remote_name_fn take, void *ctx, tnf_error *e)
{
    (void)url, (void)how, (void)take, (void)ctx;
    *listed = false;
    return no_network(e);
}

tnf_status tnf_remote_list(const tnf_source *near, bool *listed, tnf_remote_file_fn take, void *ctx,
                           tnf_error *e)
{
    (void)near, (void)take, (void)ctx;
    *listed = false;
    return no_network(e);
}

tnf_status tnf_remote_check(const tnf_source *source, tnf_remote_step_fn step, void *ctx,
                            tnf_error *e)
{
    (void)source, (void)step, (void)ctx, (void)e;
    return TNF_OK;
}

char *tnf_remote_join(tnf_arena *arena, const char *folder, const char *name)
{
    (void)name;
    return tnf_arena_str(arena, folder, strlen(folder));
}

bool tnf_remote_traffic(tnf_traffic *out, const tnf_source *source)
{
    (void)out, (void)source;
    return false;
}

char *tnf_remote_shown(tnf_arena *arena, const char *url)
{
    return tnf_arena_str(arena, url, strcspn(url, "?#"));
}

tnf_status tnf_source_url(tnf_source **out, const char *url, const tnf_url_options *options,
                          tnf_error *e)
{
    (void)url, (void)options;
    *out = NULL;
    return no_network(e);
}

tnf_status tnf_fetch(const char *url, const char *directory, const tnf_fetch_options *options,
                     tnf_error *e)
{
    (void)url, (void)directory, (void)options;
    return no_network(e);
}

tnf_status tnf_sink_url(tnf_sink **out, const char *url, unsigned flags,
                        const tnf_url_options *options, tnf_error *e)
{
    (void)url, (void)flags, (void)options;
    *out = NULL;
    return no_network(e);
}

tnf_status tnf_upload_open(tnf_upload **out, const char *url, bool replace, tnf_error *e)
{
    (void)url, (void)replace;
    *out = NULL;
    return no_network(e);
}

void tnf_upload_close(tnf_upload *u)
{
    (void)u;
}

tnf_status tnf_upload_begin(tnf_upload *u, tnf_str *id, tnf_error *e)
{
    (void)u, (void)id;
    return no_network(e);
}

tnf_status tnf_upload_join(tnf_upload *u, const void *id, size_t n, tnf_error *e)
{
    (void)u, (void)id, (void)n;
    return no_network(e);
}

tnf_status tnf_upload_part(tnf_upload *u, unsigned number, const void *bytes, size_t n,
                           char etag[TNF_UPLOAD_ETAG], tnf_error *e)
{
    (void)u, (void)number, (void)bytes, (void)n, (void)etag;
    return no_network(e);
}

tnf_status tnf_upload_list(tnf_upload *u, const char *etag, uint64_t n, tnf_error *e)
{
    (void)u, (void)etag, (void)n;
    return no_network(e);
}

tnf_status tnf_upload_complete(tnf_upload *u, tnf_error *e)
{
    (void)u;
    return no_network(e);
}

void tnf_upload_abort(tnf_upload *u)
{
    (void)u;
}

#endif
