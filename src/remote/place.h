/* SPDX-License-Identifier: MIT */
/* The address of an object: the https URL for a URL of any scheme, and its credentials.
 *
 *   s3://bucket/key             https://bucket.s3.REGION.amazonaws.com/key   signed (sigv4.h)
 *                               ENDPOINT/bucket/key, if one is set or the bucket has dots
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
    bool folder;     /* a directory, not a file */
    bool path_style; /* s3: the bucket is in the path */
    tnf_url url;     /* without credentials */
    char bucket[128], region[64];
    size_t root;        /* s3, gs, az: length of the path up to the bucket's first key */
    char repo[256];     /* hub: "org/name", "datasets/org/name" */
    char revision[128]; /* hub */
    char inside[1024];  /* hub: the path within the repository, raw */
} tnf_place;

/* Parses the caller's URL. */
tnf_status tnf_place_parse(tnf_place *out, tnf_session *s, const char *text, tnf_error *e);
/* The place of a file that another file names: below the same directory of the same host. The name
 * is raw. */
tnf_status tnf_place_sibling(tnf_place *out, const tnf_place *near, const char *name, size_t n,
                             tnf_error *e);
/* s3: changes to another region, in which the bucket is. */
tnf_status tnf_place_move(tnf_place *p, const char *region, tnf_error *e);
/* hub: fixes the commit of all later requests. */
tnf_status tnf_place_pin(tnf_place *p, const char *commit, tnf_error *e);

/* Memory for the header lines with credentials. */
typedef struct tnf_auth_lines {
    char line[6][4300];
    unsigned n;
} tnf_auth_lines;

/* Adds credentials to a request to the place's own host. `auth` must outlive the exchange. */
tnf_status tnf_place_authorize(const tnf_place *p, tnf_session *s, tnf_exchange *x,
                               tnf_auth_lines *auth, tnf_error *e);
/* May the target of a redirect get the credentials? */
bool tnf_place_trusts(const tnf_place *p, const tnf_url *to);
/* The error message for a refusal, with advice. */
tnf_status tnf_place_refused(const tnf_place *p, tnf_session *s, const tnf_exchange *x,
                             tnf_error *e);

#endif
