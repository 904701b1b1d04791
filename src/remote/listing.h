/* SPDX-License-Identifier: MIT */
#ifndef TNF_REMOTE_LISTING_H
#define TNF_REMOTE_LISTING_H

#include "remote/place.h"

/* A file's name, relative to the folder, and its size where it is told. */
typedef tnf_status (*tnf_listed_fn)(void *ctx, const char *name, uint64_t size, tnf_error *e);

/* One page of a listing. */
typedef struct tnf_page {
    char prefix[TNF_URL_PATH]; /* of the folder, raw: names are told without it */
    tnf_listed_fn take;
    void *ctx;
    char token[2048]; /* for the next page; "": it was the last */
} tnf_page;

/* The files of an answer: XML of a bucket or a container, JSON of a repository. */
tnf_status tnf_page_bucket(tnf_page *p, const char *text, size_t n, tnf_error *e);
tnf_status tnf_page_blobs(tnf_page *p, const char *text, size_t n, tnf_error *e);
tnf_status tnf_page_tree(tnf_page *p, const char *text, size_t n, const tnf_allocator *alloc,
                         tnf_error *e);

/* All files of a folder; `deep`: and of those below. *listed is false where there is no such thing.
 */
tnf_status tnf_list_folder(tnf_session *s, const tnf_place *folder, bool deep, bool *listed,
                           tnf_listed_fn take, void *ctx, tnf_error *e);

#endif
