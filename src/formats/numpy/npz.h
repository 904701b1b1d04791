/* SPDX-License-Identifier: MIT */
/* Shared by reading and writing of .npz. */
#ifndef TNF_FORMATS_NUMPY_NPZ_H
#define TNF_FORMATS_NUMPY_NPZ_H

#include "formats/numpy/array.h"

#define NPZ_SUFFIX   ".npy"
#define NPZ_COMPRESS "npz.compress"
#define NPZ_COMMENT  "npz.comment"
#define NPZ_PREFIX   "npz."      /* prefix of extras, before the name of the member */
#define NPZ_BEHIND   ".trailing" /* suffix of extras that are the bytes after an array */

tnf_status tnf_npz_index(tnf_reader *r, tnf_error *e);
tnf_status tnf_npz_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                          tnf_error *e);
tnf_status tnf_npz_verify(const tnf_reader *r, tnf_arena *arena, tnf_tell tell, void *ctx,
                          tnf_error *e);
tnf_status tnf_npz_write(tnf_writer *w, tnf_error *e);

/* Options of the writer. */
enum { NPZ_WRITE_COMPRESS, NPZ_WRITE_LEVEL, NPZ_WRITE_ALIGN, NPZ_WRITE_STASH };

static inline bool tnf_npz_has_suffix(tnf_str name, const char *suffix, size_t n)
{
    return name.n >= n && memcmp(name.p + name.n - n, suffix, n) == 0;
}

#endif
