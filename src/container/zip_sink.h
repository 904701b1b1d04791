/* SPDX-License-Identifier: MIT */
/* A zip archive that is written into a sink, member by member:
 *
 *   begin  ( member_begin  the caller writes its data  member_end )…  end
 *
 * CRC and sizes of a member are told behind its data. Where the style has them in front, the sink
 * goes back to put them there; one that cannot (a pipe) gets them behind the data, as Python's
 * zipfile does it then.
 */
#ifndef TNF_CONTAINER_ZIP_SINK_H
#define TNF_CONTAINER_ZIP_SINK_H

#include "io/sink.h"
#include "wire/zip.h"

typedef struct tnf_zip_sink {
    tnf_sink *sink;
    tnf_zip_style style;
    uint64_t start; /* where the archive begins in the sink */
    uint64_t members;
    tnf_buf directory;  /* what was written of it so far */
    tnf_buf header;     /* room for one, kept from one member to the next */
    tnf_zip_put member; /* that is being written */
} tnf_zip_sink;

void tnf_zip_sink_begin(tnf_zip_sink *z, tnf_sink *sink, tnf_zip_style style,
                        const tnf_allocator *alloc);
/* m->name must stay until member_end. For TORCH m->size is known already. */
tnf_status tnf_zip_sink_member(tnf_zip_sink *z, const tnf_zip_put *m, tnf_error *e);
/* Where the data of such a member would begin. */
uint64_t tnf_zip_sink_data(const tnf_zip_sink *z, const tnf_zip_put *m);
/* All that was written since belongs to the member; `size` is what it is decompressed. */
tnf_status tnf_zip_sink_member_end(tnf_zip_sink *z, uint64_t size, uint32_t crc, tnf_error *e);
tnf_status tnf_zip_sink_end(tnf_zip_sink *z, tnf_str comment, tnf_error *e);
/* Frees it, whether it was ended or not. */
void tnf_zip_sink_free(tnf_zip_sink *z);

#endif
