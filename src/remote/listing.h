/* SPDX-License-Identifier: MIT */
#ifndef TNF_REMOTE_LISTING_H
#define TNF_REMOTE_LISTING_H

#include "remote/place.h"

/* Gets a file's name, relative to the directory, and its size (0: unknown). */
typedef tnf_status (*tnf_listed_fn)(void *ctx, const char *name, uint64_t size, tnf_error *e);

/* One page of a listing. */
typedef struct tnf_page {
    char prefix[TNF_URL_PATH]; /* of the directory, raw; it is removed from names */
    tnf_listed_fn take;
    void *ctx;
    char token[2048]; /* for the next page; "": this was the last one */
} tnf_page;

/* Parses the files of an answer: XML of a bucket or a container, JSON of a repository. */
tnf_status tnf_page_bucket(tnf_page *p, const char *text, size_t n, tnf_error *e);
tnf_status tnf_page_blobs(tnf_page *p, const char *text, size_t n, tnf_error *e);
tnf_status tnf_page_tree(tnf_page *p, const char *text, size_t n, const tnf_allocator *alloc,
                         tnf_error *e);

/* Lists all files of a directory; with `deep`, also of the directories below. *listed is false if
 * the service has no listings. */
tnf_status tnf_list_folder(tnf_session *s, const tnf_place *folder, bool deep, bool *listed,
                           tnf_listed_fn take, void *ctx, tnf_error *e);

#endif
