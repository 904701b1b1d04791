/* SPDX-License-Identifier: MIT */
/* Shared by zip.c, which reads the directory, and zip_walk.c, which walks through the members. */
#ifndef TNF_WIRE_ZIP_ENTRY_H
#define TNF_WIRE_ZIP_ENTRY_H

#include "base/cursor.h"
#include "wire/zip.h"

#define HEADER_SIZE     30u
#define ONES32          0xffffffffu

#define SIG_END         0x06054b50u
#define SIG_LOCATOR     0x07064b50u
#define SIG_ZIP64       0x06064b50u
#define SIG_ENTRY       0x02014b50u
#define SIG_HEADER      0x04034b50u

#define FLAG_ENCRYPTED  0x0001u
#define FLAG_DESCRIPTOR 0x0008u
#define FLAG_PATCH      0x0020u
#define FLAG_STRONG     0x0040u
#define FLAG_UTF8       0x0800u
#define FLAG_MASKED     0x2000u

/* Makes m->name from m->raw. */
tnf_status tnf_zip_read_name(tnf_zip_member *m, const tnf_zip_from *from, tnf_error *e);
/* Finds the zip64 field of an extra field; an empty cursor if there is none. */
tnf_status tnf_zip_find_extra(tnf_cur *out, const uint8_t *extra, size_t n, uint64_t at,
                              tnf_error *e);
/* Fails if this member cannot be read. */
tnf_status tnf_zip_check_member(const tnf_zip_member *m, uint16_t disk, tnf_error *e);
/* Reports duplicate names as odd. */
tnf_status tnf_zip_check_twice(const tnf_zip *z, const tnf_zip_from *from, tnf_error *e);

#endif
