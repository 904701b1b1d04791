/* SPDX-License-Identifier: MIT */
/* Saves a file of which each of several workers (job/) writes some bytes. */
#ifndef TNF_CORE_SAVE_THROUGH_H
#define TNF_CORE_SAVE_THROUGH_H

#include <tenfold/shards.h>

/* save.c: like tnf_save(), but the bytes of the file go to the sink, which is committed.
 * TNF_EUNSUPPORTED if the result would be a directory. */
tnf_status tnf_save_through(const tnf_builder *builder, const char *path, tnf_sink *sink,
                            const tnf_save_options *options, tnf_error *e);

/* split.c: the same for one of the files of tnf_split(), by its number in the reports. The index is
 * the last file; it refers to `shards`, n files that have been written. */
tnf_status tnf_split_through(const tnf_builder *builder, const char *directory, size_t number,
                             tnf_sink *sink, const char *const *shards, size_t n,
                             const tnf_split_options *options, tnf_error *e);

#endif
