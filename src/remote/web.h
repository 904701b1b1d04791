/* SPDX-License-Identifier: MIT */
/* The state of a remote source. */
#ifndef TNF_REMOTE_WEB_H
#define TNF_REMOTE_WEB_H

#include "io/source.h"
#include "remote/cache.h"

/* A file that was opened in advance. */
typedef struct tnf_expected {
    struct tnf_expected *next;
    tnf_source *source;
    char name[512];
} tnf_expected;

typedef struct tnf_web {
    tnf_remote remote;
    tnf_cache cache;
    pthread_mutex_t lock; /* guards the list */
    tnf_expected *expected;
} tnf_web;

tnf_status tnf_web_open(tnf_source **out, tnf_session *s, const tnf_place *place, tnf_error *e);
/* Returns NULL if the source is not remote. */
tnf_remote *tnf_web_remote(const tnf_source *s);

#endif
