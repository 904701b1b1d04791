/* SPDX-License-Identifier: MIT */
/* Reads a primitiv file piece by piece, through a window that skips the payloads.
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
    uint64_t at;     /* offset of the next byte */
    uint64_t parsed; /* bytes so far other than payloads */
    uint64_t odd_at; /* lenient mode: offset of the first integer that is not ce */
    uint8_t *window;
    uint64_t base; /* its file offset */
    uint64_t n, capacity;
    tnf_buf name; /* of the path just read */
    bool torn;    /* salvage: the position of the next piece is unknown */
} prim_scan;

typedef struct prim_shape {
    uint32_t dims[PRIM_MAX_DIMS];
    uint32_t rank, batch;
} prim_shape;

/* Reads a piece that must be completely in memory. */
typedef bool (*prim_unit)(prim_scan *s, tnf_msgpack *m, void *out);
/* Calls `read` with larger and larger windows until it succeeds. Pointers in *out are valid until
 * the next piece. */
tnf_status tnf_prim_pull(prim_scan *s, prim_unit read, void *out, tnf_error *e);

bool tnf_prim_take_u32(prim_scan *s, tnf_msgpack *m, void *out);      /* uint32_t */
bool tnf_prim_take_f32(prim_scan *s, tnf_msgpack *m, void *out);      /* float */
bool tnf_prim_take_str(prim_scan *s, tnf_msgpack *m, void *out);      /* tnf_str */
bool tnf_prim_take_bin_head(prim_scan *s, tnf_msgpack *m, void *out); /* uint64_t: its length */
bool tnf_prim_take_map(prim_scan *s, tnf_msgpack *m, void *out); /* uint64_t: number of pairs */
/* prim_shape; trailing dimensions of 1 are removed, as in primitiv. */
bool tnf_prim_take_shape(prim_scan *s, tnf_msgpack *m, void *out);
/* Reads a path as a name into s->name; out is not used. */
bool tnf_prim_take_path(prim_scan *s, tnf_msgpack *m, void *out);

#endif
