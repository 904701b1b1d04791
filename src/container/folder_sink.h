/* SPDX-License-Identifier: MIT */
/* A folder that is written member by member and appears whole or not at all:
 *
 *   begin  ( member  the caller writes into its sink  member_end )…  end
 *
 *   begin    TARGET.tmp-XXXXXXXX, a folder beside the target
 *   member   a file in it, in folders that are made as they are needed
 *   end      all of it on the disk, then renamed to TARGET
 *   free     without end: the temporary folder goes, with all that is in it
 */
#ifndef TNF_CONTAINER_FOLDER_SINK_H
#define TNF_CONTAINER_FOLDER_SINK_H

#include "io/sink.h"

typedef struct tnf_folder_sink {
    char *target, *temp; /* temp is "" while there is none */
    size_t ntarget;
    bool sync, replace;
    tnf_sink *member; /* that is being written; NULL: none */
    int fd;           /* of it */
    tnf_allocator alloc;
} tnf_folder_sink;

/* flags: TNF_SINK_REPLACE (a folder that is there goes when the new one is in place; never a file),
 * TNF_SINK_NO_SYNC. Free it also if this fails. */
tnf_status tnf_folder_sink_begin(tnf_folder_sink *f, const char *target, unsigned flags,
                                 const tnf_allocator *alloc, tnf_error *e);
/* The name is "a" or "sub/a", by the rule for paths. *out is the sink's own until member_end. */
tnf_status tnf_folder_sink_member(tnf_folder_sink *f, tnf_str name, tnf_sink **out, tnf_error *e);
tnf_status tnf_folder_sink_member_end(tnf_folder_sink *f, tnf_error *e);
tnf_status tnf_folder_sink_end(tnf_folder_sink *f, tnf_error *e);
void tnf_folder_sink_free(tnf_folder_sink *f);

#endif
