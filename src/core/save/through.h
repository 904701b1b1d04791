/* SPDX-License-Identifier: MIT */
/* Files that several workers write, each some bytes of them (job/). */
#ifndef TNF_CORE_SAVE_THROUGH_H
#define TNF_CORE_SAVE_THROUGH_H

#include <tenfold/shards.h>

/* save.c: as tnf_save(), but what would become the file goes to the sink, which is committed.
 * TNF_EUNSUPPORTED if it would be a folder. */
tnf_status tnf_save_through(const tnf_builder *builder, const char *path, tnf_sink *sink,
                            const tnf_save_options *options, tnf_error *e);

/* split.c: the same for one of the files of tnf_split(), by the number with which it is told of.
 * The index, the last, is of the files `shards`, n of them, which have been written. */
tnf_status tnf_split_through(const tnf_builder *builder, const char *directory, size_t number,
                             tnf_sink *sink, const char *const *shards, size_t n,
                             const tnf_split_options *options, tnf_error *e);

#endif
