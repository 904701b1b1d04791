/* SPDX-License-Identifier: MIT */
/* A longer header, with everything behind it moved by the file system and not copied; and what is
 * found if the system stopped in between. */
#ifndef TNF_IO_SHIFT_H
#define TNF_IO_SHIFT_H

#include "io/undo.h"

typedef struct tnf_shift_file {
    int fd; /* for reading and writing */
    const char *path;
    uint64_t size; /* before */
    uint64_t by;   /* a multiple of tnf_shift_unit() */
    /* The header: n bytes are replaced by n + by. */
    const uint8_t *fresh;
    size_t n;
    bool one_name; /* no other hard link */
    tnf_allocator alloc;
} tnf_shift_file;

/* What a file can be moved by multiples of: the blocks of its file system. */
tnf_status tnf_shift_unit(uint64_t *out, int fd, tnf_error *e);
/* TNF_EUNSUPPORTED, and nothing is done: the file system cannot, or the file has holes or other
 * names. After any other failure the file is unchanged, or its undo file is there. */
tnf_status tnf_shift_apply(const tnf_shift_file *c, tnf_error *e);

/* Of an undo file that says so in its first bytes. */
#define TNF_SHIFT_MAGIC "TNFSHIFT"
tnf_status tnf_shift_look(tnf_undo_state *out, int undo, uint64_t undo_size, int fd, tnf_error *e);
/* Puts back what tnf_shift_look() found mixed. */
tnf_status tnf_shift_back(int undo, uint64_t undo_size, int fd, tnf_error *e);

#endif
