/* SPDX-License-Identifier: MIT */
/* The zip container of PyTorch, complete or truncated. */
#ifndef TNF_FORMATS_PYTORCH_PTZIP_H
#define TNF_FORMATS_PYTORCH_PTZIP_H

#include "formats/pytorch/pt.h"
#include "wire/zip.h"

typedef struct pt_record {
    tnf_str name; /* must be first, for tnf_named: without the root directory, in lower case */
    tnf_zip_member *member;
    uint64_t offset; /* of its bytes, set once located */
    bool located, used;
    bool compared; /* its CRC was compared */
} pt_record;

typedef struct pt_zip {
    pt_file *f;
    tnf_zip zip;
    tnf_zip_from from;
    uint64_t base; /* file offset of the archive */
    tnf_str root;
    tnf_named records;
    uint8_t *block; /* sums.c: buffer for reading records, allocated on first use */
    bool salvaged;  /* members were found by their own headers; `header` is where data begin */
} pt_zip;

/* The source of a record's stored bytes. */
typedef struct pt_stored {
    const tnf_zip_from *from;
    uint64_t offset;
    tnf_status failed; /* set if reading failed; the error has the offset */
} pt_stored;

#define PT_MAX_PICKLE ((uint64_t)1 << 30)

pt_record *tnf_pt_record(const pt_zip *z, const char *name);
/* Reads a complete record into scratch. */
tnf_status tnf_pt_read_record(pt_zip *z, pt_record *r, uint64_t most, tnf_cur *out, tnf_error *e);
/* Reads its first n bytes, which must exist. */
tnf_status tnf_pt_read_head(pt_zip *z, pt_record *r, uint8_t *dst, size_t n, tnf_error *e);
/* Locates its bytes and compares its own header with the directory. */
tnf_status tnf_pt_locate_record(pt_zip *z, pt_record *r, tnf_error *e);
tnf_status tnf_pt_inner_zip(pt_zip *z, tnf_pickle *out, tnf_error *e);
/* hidden.c */
bool tnf_pt_in_folder(const pt_record *r, const char *folder);
bool tnf_pt_is_pickle_name(tnf_str name);
tnf_status tnf_pt_check_others(pt_zip *z, tnf_error *e);
void tnf_pt_name_hidden_calls(pt_zip *z, pt_record *r, tnf_error *e);
/* sums.c: records the CRCs that verify() must compare. */
tnf_status tnf_pt_keep_sums(pt_zip *z, tnf_error *e);
/* In salvage mode the CRC is compared at once: a damaged record is lost, and this is recorded. */
tnf_status tnf_pt_salvage_record(pt_zip *z, pt_record *r, bool *lost, tnf_error *e);
/* salvage.c: finds members front to back if the directory is missing. */
tnf_status tnf_pt_salvage(pt_zip *z, tnf_error *e);

#endif
