/* SPDX-License-Identifier: MIT */
/* Makes room for a longer header: the file system moves everything after it without copying. Also
 * examines the file if the system stopped in between. */
#ifndef TNF_IO_SHIFT_H
#define TNF_IO_SHIFT_H

#include "io/undo.h"

typedef struct tnf_shift_file {
    int fd; /* for reading and writing */
    const char *path;
    uint64_t size; /* before */
    uint64_t by;   /* a multiple of tnf_shift_unit() */
    /* The header: n bytes are replaced by n + by bytes. */
    const uint8_t *fresh;
    size_t n;
    bool one_name; /* no other hard link */
    tnf_allocator alloc;
} tnf_shift_file;

/* The unit of a shift: the block size of the file system. */
tnf_status tnf_shift_unit(uint64_t *out, int fd, tnf_error *e);
/* TNF_EUNSUPPORTED, without a change: the file system cannot do it, or the file has holes or other
 * names. After any other failure the file is unchanged, or its undo file exists. */
tnf_status tnf_shift_apply(const tnf_shift_file *c, tnf_error *e);

/* For an undo file that begins with this magic. */
#define TNF_SHIFT_MAGIC "TNFSHIFT"
tnf_status tnf_shift_look(tnf_undo_state *out, int undo, uint64_t undo_size, int fd, tnf_error *e);
/* Undoes a change that tnf_shift_look() found mixed. */
tnf_status tnf_shift_back(int undo, uint64_t undo_size, int fd, tnf_error *e);

#endif
