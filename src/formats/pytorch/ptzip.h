/* SPDX-License-Identifier: MIT */
/* The zip container of PyTorch, and what is left of one that was cut short. */
#ifndef TNF_FORMATS_PYTORCH_PTZIP_H
#define TNF_FORMATS_PYTORCH_PTZIP_H

#include "formats/pytorch/pt.h"
#include "wire/zip.h"

typedef struct pt_record {
    tnf_str name; /* first, for tnf_named: without the root folder, in lower case */
    tnf_zip_member *member;
    uint64_t offset; /* of its bytes, once located */
    bool located, used;
    bool compared; /* with its CRC */
} pt_record;

typedef struct pt_zip {
    pt_file *f;
    tnf_zip zip;
    tnf_zip_from from;
    uint64_t base; /* where the archive begins in the file */
    tnf_str root;
    tnf_named records;
    uint8_t *block; /* sums.c: for reading records, once one was read */
    bool salvaged;  /* members were found by their own headers; `header` is where data begin */
} pt_zip;

/* What the stored bytes of a record are read through. */
typedef struct pt_stored {
    const tnf_zip_from *from;
    uint64_t offset;
    tnf_status failed; /* they could not be read, and the error says where */
} pt_stored;

#define PT_MAX_PICKLE ((uint64_t)1 << 30)

pt_record *tnf_pt_record(const pt_zip *z, const char *name);
/* All of a record, in scratch. */
tnf_status tnf_pt_read_record(pt_zip *z, pt_record *r, uint64_t most, tnf_cur *out, tnf_error *e);
/* Its first n bytes, of which there are as many. */
tnf_status tnf_pt_read_head(pt_zip *z, pt_record *r, uint8_t *dst, size_t n, tnf_error *e);
/* Where its bytes begin: its own header is compared with the directory. */
tnf_status tnf_pt_locate_record(pt_zip *z, pt_record *r, tnf_error *e);
tnf_status tnf_pt_inner_zip(pt_zip *z, tnf_pickle *out, tnf_error *e);
/* hidden.c */
bool tnf_pt_in_folder(const pt_record *r, const char *folder);
bool tnf_pt_is_pickle_name(tnf_str name);
tnf_status tnf_pt_look_at_others(pt_zip *z, tnf_error *e);
void tnf_pt_name_hidden_calls(pt_zip *z, pt_record *r, tnf_error *e);
/* sums.c: what verify is to compare. */
tnf_status tnf_pt_keep_sums(pt_zip *z, tnf_error *e);
/* The same at once, of a file that is salvaged: a record that is damaged is lost, and noted. */
tnf_status tnf_pt_salvage_record(pt_zip *z, pt_record *r, bool *lost, tnf_error *e);
/* salvage.c: the directory is missing, so members are found front to back. */
tnf_status tnf_pt_salvage(pt_zip *z, tnf_error *e);

#endif
