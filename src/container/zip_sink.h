/* SPDX-License-Identifier: MIT */
/* A zip archive that is written into a sink, member by member:
 *
 *   begin  ( member_begin  the caller writes its data  member_end )…  end
 *
 * CRC and sizes of a member are known after its data. If the style has them before the data, the
 * sink goes back and writes them there. If it cannot go back (a pipe), they follow the data, as in
 * Python's zipfile.
 */
#ifndef TNF_CONTAINER_ZIP_SINK_H
#define TNF_CONTAINER_ZIP_SINK_H

#include "io/sink.h"
#include "wire/zip.h"

typedef struct tnf_zip_sink {
    tnf_sink *sink;
    tnf_zip_style style;
    uint64_t start; /* position of the archive in the sink */
    uint64_t members;
    tnf_buf directory;  /* the entries written so far */
    tnf_buf header;     /* a reused buffer for one header */
    tnf_zip_put member; /* the current one */
} tnf_zip_sink;

void tnf_zip_sink_begin(tnf_zip_sink *z, tnf_sink *sink, tnf_zip_style style,
                        const tnf_allocator *alloc);
/* m->name must stay until member_end. For TORCH m->size must be known already. */
tnf_status tnf_zip_sink_member(tnf_zip_sink *z, const tnf_zip_put *m, tnf_error *e);
/* The position where the data of such a member would begin. */
uint64_t tnf_zip_sink_data(const tnf_zip_sink *z, const tnf_zip_put *m);
/* Everything written since belongs to the member; `size` is its decompressed size. */
tnf_status tnf_zip_sink_member_end(tnf_zip_sink *z, uint64_t size, uint32_t crc, tnf_error *e);
tnf_status tnf_zip_sink_end(tnf_zip_sink *z, tnf_str comment, tnf_error *e);
/* Frees it, whether it was ended or not. */
void tnf_zip_sink_free(tnf_zip_sink *z);

#endif
