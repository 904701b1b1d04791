/* SPDX-License-Identifier: MIT */
/* All that core/ sees of this room. */
#ifndef TNF_REMOTE_LIST_H
#define TNF_REMOTE_LIST_H

#include "base/arena.h"
#include "io/sink.h"
#include "io/source.h"
#include <tenfold/remote.h>

/* address.c: is a path a URL of ours? */
bool tnf_is_remote(const char *path);

/* The caller's settings, with what -o KEY=VALUE says of the network put into *how; those options
 * leave the list. */
tnf_status tnf_remote_how(tnf_url_options *how, const tnf_url_options *given, tnf_option *options,
                          size_t *noptions, tnf_error *e);

/* The object of a URL, which is no folder. */
tnf_status tnf_remote_open(tnf_source **out, const char *url, const tnf_url_options *how,
                           const tnf_allocator *alloc, tnf_error *e);
/* A file beside one that is open, by its raw name; the same session. */
tnf_status tnf_remote_sibling(tnf_source **out, const tnf_source *near, tnf_str name, tnf_error *e);
/* Files that will be asked for: opened at the same time, as far as they open. A hint. */
void tnf_remote_expect(const tnf_source *near, const tnf_str *names, size_t n);

/* Is the URL that of a folder (or of a repository)? */
bool tnf_remote_folder(const char *url);
/* The names in a folder. Over http, which has no listing, *listed is false. */
typedef tnf_status (*tnf_remote_name_fn)(void *ctx, const char *name, tnf_error *e);
tnf_status tnf_remote_names(const char *url, const tnf_url_options *how, bool *listed,
                            tnf_remote_name_fn take, void *ctx, tnf_error *e);

/* All files of the folder that a file is in, and below it; names are relative to it and not
 * checked. Over http *listed is false. */
typedef tnf_status (*tnf_remote_file_fn)(void *ctx, const char *name, uint64_t size, tnf_error *e);
tnf_status tnf_remote_list(const tnf_source *near, bool *listed, tnf_remote_file_fn take, void *ctx,
                           tnf_error *e);
/* The URL of a file in a folder, in the arena, with what stands behind the folder's path; NULL
 * without memory. */
char *tnf_remote_join(tnf_arena *arena, const char *folder, const char *name);

/* All of an object against the digest that its server tells of it: TNF_EDIGEST. Nothing is read if
 * the server tells none, or if the source is not of this room. `step` is called with 0 before, then
 * with the bytes of each piece. */
typedef tnf_status (*tnf_remote_step_fn)(void *ctx, uint64_t n, tnf_error *e);
tnf_status tnf_remote_check(const tnf_source *source, tnf_remote_step_fn step, void *ctx,
                            tnf_error *e);

/* upload.c: an object of s3 that several processes write. One begins it; all send parts, numbered
 * from 1 on, in any order and any number of times; one lists all parts in their order and completes
 * it, which may be done again; or it is aborted. */
typedef struct tnf_upload tnf_upload;
#define TNF_UPLOAD_PARTS 10000u     /* at most */
#define TNF_UPLOAD_LEAST (5u << 20) /* bytes of each but the last */
#define TNF_UPLOAD_ETAG  256u
tnf_status tnf_upload_open(tnf_upload **out, const char *url, bool replace, tnf_error *e);
void tnf_upload_close(tnf_upload *u);
tnf_status tnf_upload_begin(tnf_upload *u, tnf_str *id, tnf_error *e);
tnf_status tnf_upload_join(tnf_upload *u, const void *id, size_t n, tnf_error *e);
tnf_status tnf_upload_part(tnf_upload *u, unsigned number, const void *bytes, size_t n,
                           char etag[TNF_UPLOAD_ETAG], tnf_error *e);
tnf_status tnf_upload_list(tnf_upload *u, const char *etag, uint64_t n, tnf_error *e);
tnf_status tnf_upload_complete(tnf_upload *u, tnf_error *e);
void tnf_upload_abort(tnf_upload *u);

/* False: not a source of this room. */
bool tnf_remote_traffic(tnf_traffic *out, const tnf_source *source);
/* A URL without what may not be shown, in the arena: without query and fragment. */
char *tnf_remote_shown(tnf_arena *arena, const char *url);

#endif
