/* SPDX-License-Identifier: MIT */
/* A primitiv file, read piece by piece through a window that jumps over the payloads.
 *
 *   [heads]░░░░░░░░ payload ░░░░░░░░[heads]░░░ payload ░░░[heads]
 *   └window┘                        └window┘
 */
#ifndef TNF_PRIMITIV_SCAN_H
#define TNF_PRIMITIV_SCAN_H

#include "formats/primitiv/primitiv.h"
#include "wire/msgpack.h"

typedef struct prim_scan {
    tnf_reader *r;
    uint64_t at;     /* the next byte */
    uint64_t parsed; /* bytes that were no payload */
    uint64_t odd_at; /* the first integer that is not ce, in a file opened leniently */
    uint8_t *window;
    uint64_t base; /* its place in the file */
    uint64_t n, capacity;
    tnf_buf name; /* of the path just read */
    bool torn;    /* salvaged: what comes next is not known */
} prim_scan;

typedef struct prim_shape {
    uint32_t dims[PRIM_MAX_DIMS];
    uint32_t rank, batch;
} prim_shape;

/* Reads a piece that must be in memory as a whole. */
typedef bool (*prim_unit)(prim_scan *s, tnf_msgpack *m, void *out);
/* Calls it, with a larger window until that will do. What *out then points to is there until the
 * next piece. */
tnf_status tnf_prim_pull(prim_scan *s, prim_unit read, void *out, tnf_error *e);

bool tnf_prim_take_u32(prim_scan *s, tnf_msgpack *m, void *out);      /* uint32_t */
bool tnf_prim_take_f32(prim_scan *s, tnf_msgpack *m, void *out);      /* float */
bool tnf_prim_take_str(prim_scan *s, tnf_msgpack *m, void *out);      /* tnf_str */
bool tnf_prim_take_bin_head(prim_scan *s, tnf_msgpack *m, void *out); /* uint64_t: its length */
bool tnf_prim_take_map(prim_scan *s, tnf_msgpack *m, void *out);      /* uint64_t: how many pairs */
/* prim_shape; dimensions of 1 at the end are gone, as primitiv has it. */
bool tnf_prim_take_shape(prim_scan *s, tnf_msgpack *m, void *out);
/* A path, as a name in s->name; out is not used. */
bool tnf_prim_take_path(prim_scan *s, tnf_msgpack *m, void *out);

#endif
