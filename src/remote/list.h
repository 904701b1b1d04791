/* SPDX-License-Identifier: MIT */
/* The interface of src/remote/ for core/. */
#ifndef TNF_REMOTE_LIST_H
#define TNF_REMOTE_LIST_H

#include "base/arena.h"
#include "io/sink.h"
#include "io/source.h"
#include <tenfold/remote.h>

/* address.c: is a path a URL of a supported scheme? */
bool tnf_is_remote(const char *path);

/* Copies the caller's settings to *how, and applies the network options among -o KEY=VALUE. These
 * options are removed from the list. */
tnf_status tnf_remote_how(tnf_url_options *how, const tnf_url_options *given, tnf_option *options,
                          size_t *noptions, tnf_error *e);

/* Opens the object of a URL, which must not be a directory. */
tnf_status tnf_remote_open(tnf_source **out, const char *url, const tnf_url_options *how,
                           const tnf_allocator *alloc, tnf_error *e);
/* Opens a file next to an open one, by its raw name, with the same session. */
tnf_status tnf_remote_sibling(tnf_source **out, const tnf_source *near, tnf_str name, tnf_error *e);
/* A hint: these files will be opened. Opens them in parallel; errors are ignored. */
void tnf_remote_expect(const tnf_source *near, const tnf_str *names, size_t n);

/* Does the URL name a directory or a repository? */
bool tnf_remote_folder(const char *url);
/* Lists the names in a directory. For http, which has no listings, *listed is false. */
typedef tnf_status (*tnf_remote_name_fn)(void *ctx, const char *name, tnf_error *e);
tnf_status tnf_remote_names(const char *url, const tnf_url_options *how, bool *listed,
                            tnf_remote_name_fn take, void *ctx, tnf_error *e);

/* Lists all files in and below the directory of a file. Names are relative to that directory, and
 * not checked. For http, *listed is false. */
typedef tnf_status (*tnf_remote_file_fn)(void *ctx, const char *name, uint64_t size, tnf_error *e);
tnf_status tnf_remote_list(const tnf_source *near, bool *listed, tnf_remote_file_fn take, void *ctx,
                           tnf_error *e);
/* The URL of a file in a directory, in the arena. It keeps the query of the directory's URL.
 * Returns NULL if there is no memory. */
char *tnf_remote_join(tnf_arena *arena, const char *folder, const char *name);

/* Compares a complete object with the digest that its server gives; fails with TNF_EDIGEST. Reads
 * nothing if the server gives none, or if the source is not remote. `step` is called first with 0,
 * then with the size of each piece. */
typedef tnf_status (*tnf_remote_step_fn)(void *ctx, uint64_t n, tnf_error *e);
tnf_status tnf_remote_check(const tnf_source *source, tnf_remote_step_fn step, void *ctx,
                            tnf_error *e);

/* upload.c: an s3 object that several processes write. One process begins the upload. All of them
 * send pieces (S3 calls them parts), numbered from 1 on, in any order and any number of times. One
 * process lists all pieces in order and completes the upload, which may be repeated; or it aborts
 * the upload. */
typedef struct tnf_upload tnf_upload;
#define TNF_UPLOAD_PARTS 10000u     /* at most */
#define TNF_UPLOAD_LEAST (5u << 20) /* least bytes of a part, except the last */
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

/* Returns false if the source is not remote. */
bool tnf_remote_traffic(tnf_traffic *out, const tnf_source *source);
/* The URL without secrets, query and fragment, in the arena. */
char *tnf_remote_shown(tnf_arena *arena, const char *url);

#endif
