/* SPDX-License-Identifier: MIT */
/* Where an object is: what a URL of any scheme becomes, and what proves who asks.
 *
 *   s3://bucket/key             https://bucket.s3.REGION.amazonaws.com/key   signed (sigv4.h)
 *                               ENDPOINT/bucket/key, where one is set or the bucket has dots
 *   gs://bucket/object          https://storage.googleapis.com/bucket/object Bearer
 *   az://container/blob         https://ACCOUNT.blob.core.windows.net/container/blob  SAS, Bearer
 *   hf://ORG/NAME[@REV]/path    https://huggingface.co/ORG/NAME/resolve/REV/path      Bearer
 *   http://, https://           as they are
 */
#ifndef TNF_REMOTE_PLACE_H
#define TNF_REMOTE_PLACE_H

#include "remote/session.h"
#include "remote/url.h"

typedef enum tnf_service { TNF_WEB, TNF_S3, TNF_GS, TNF_AZ, TNF_HUB } tnf_service;

typedef struct tnf_place {
    tnf_service service;
    bool folder;     /* it is no object, but what lies below it */
    bool path_style; /* s3: the bucket is in the path */
    tnf_url url;     /* without what proves who asks */
    char bucket[128], region[64];
    size_t root;        /* s3, gs, az: length of the path up to the bucket's first key */
    char repo[256];     /* hub: "org/name", "datasets/org/name" */
    char revision[128]; /* hub */
    char inside[1024];  /* hub: the path within the repository, raw */
} tnf_place;

/* What the caller wrote. */
tnf_status tnf_place_parse(tnf_place *out, tnf_session *s, const char *text, tnf_error *e);
/* A file that a file names: below the same folder of the same host. The name is raw. */
tnf_status tnf_place_sibling(tnf_place *out, const tnf_place *near, const char *name, size_t n,
                             tnf_error *e);
/* s3: the bucket is in another region. */
tnf_status tnf_place_move(tnf_place *p, const char *region, tnf_error *e);
/* hub: from now on of this commit. */
tnf_status tnf_place_pin(tnf_place *p, const char *commit, tnf_error *e);

/* Room for the lines that prove who asks. */
typedef struct tnf_proof {
    char line[6][4300];
    unsigned n;
} tnf_proof;

/* Adds them to a request to the place's own host. `proof` must stay as long as the exchange. */
tnf_status tnf_place_prove(const tnf_place *p, tnf_session *s, tnf_exchange *x, tnf_proof *proof,
                           tnf_error *e);
/* May a URL that a redirect leads to be told who asks? */
bool tnf_place_trusts(const tnf_place *p, const tnf_url *to);
/* The sentence for a refusal, with what may help. */
tnf_status tnf_place_refused(const tnf_place *p, tnf_session *s, const tnf_exchange *x,
                             tnf_error *e);

#endif
