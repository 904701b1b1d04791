/* SPDX-License-Identifier: MIT */
/* A directory that is written member by member and appears complete or not at all:
 *
 *   begin  ( member  the caller writes into its sink  member_end )…  end
 *
 *   begin    TARGET.tmp-XXXXXXXX, a directory next to the target
 *   member   a file in it; subdirectories are created as needed
 *   end      everything is synced to the disk, then renamed to TARGET
 *   free     without end: removes the temporary directory with its content
 */
#ifndef TNF_CONTAINER_FOLDER_SINK_H
#define TNF_CONTAINER_FOLDER_SINK_H

#include "io/sink.h"

typedef struct tnf_folder_sink {
    char *target, *temp; /* temp is "" if there is none */
    size_t ntarget;
    bool sync, replace;
    tnf_sink *member; /* the current one, or NULL */
    int fd;           /* of that member */
    tnf_allocator alloc;
} tnf_folder_sink;

/* flags: TNF_SINK_REPLACE (an existing directory is removed when the new one is in place; an
 * existing file never is), TNF_SINK_NO_SYNC. tnf_folder_sink_free() is also needed if this
 * fails. */
tnf_status tnf_folder_sink_begin(tnf_folder_sink *f, const char *target, unsigned flags,
                                 const tnf_allocator *alloc, tnf_error *e);
/* The name is "a" or "sub/a", by the rule for paths. *out belongs to f until member_end. */
tnf_status tnf_folder_sink_member(tnf_folder_sink *f, tnf_str name, tnf_sink **out, tnf_error *e);
tnf_status tnf_folder_sink_member_end(tnf_folder_sink *f, tnf_error *e);
tnf_status tnf_folder_sink_end(tnf_folder_sink *f, tnf_error *e);
void tnf_folder_sink_free(tnf_folder_sink *f);

#endif
