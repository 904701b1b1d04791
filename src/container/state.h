/* SPDX-License-Identifier: MIT */
/* The functions of each kind of container; private to container/. */
#ifndef TNF_CONTAINER_STATE_H
#define TNF_CONTAINER_STATE_H

#include "base/buf.h"
#include "base/hash.h"
#include "container/container.h"

typedef struct tnf_container_state {
    tnf_arena *arena;
    const tnf_container_member *members;
    tnf_hash names;
    tnf_status (*place)(tnf_member_place *out, const struct tnf_container_state *s, size_t i,
                        tnf_error *e);
    /* Directories: bytes of a file, from any thread. */
    tnf_status (*fetch)(const struct tnf_container_state *s, size_t i, uint64_t offset, void *dst,
                        size_t n, tnf_error *e);
    void (*close)(struct tnf_container_state *s); /* may be NULL */
} tnf_container_state;

/* Fills the common members. The caller closes `out` even if this fails. */
tnf_status tnf_container_begin(tnf_container *out, const tnf_container_member *members, size_t n,
                               tnf_container_state *s, tnf_error *e);

/* Files of a directory during listing. */
typedef struct tnf_members {
    const tnf_container_how *how;
    tnf_buf list;   /* tnf_container_member */
    uint64_t names; /* bytes of all names */
} tnf_members;

/* Fails above the limits of `how`. */
tnf_status tnf_members_add(tnf_members *m, tnf_str name, uint64_t size, tnf_error *e);
/* All members sorted by name, in the arena; NULL: no memory. */
tnf_container_member *tnf_members_sorted(const tnf_members *m, size_t *n);

#endif
