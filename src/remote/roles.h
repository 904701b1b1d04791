/* SPDX-License-Identifier: MIT */
/* Keys and tokens that a cloud machine gets for its own identity, from local services:
 *
 *   s3   a file's token, exchanged for keys by STS       AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN
 *        the container's agent (ECS, EKS)                AWS_CONTAINER_CREDENTIALS_FULL_URI, …
 *        the instance's metadata (IMDSv2)                http://169.254.169.254
 *   gs   the metadata server                             http://metadata.google.internal
 *   az   the identity's endpoint, or the metadata        IDENTITY_ENDPOINT, http://169.254.169.254
 */
#ifndef TNF_REMOTE_ROLES_H
#define TNF_REMOTE_ROLES_H

#include "remote/credentials.h"

/* Sets k->found and the keys. If a service that the environment names does not answer, this fails.
 * The instance's metadata (queried if `instance`) may be missing. */
tnf_status tnf_role_keys(tnf_keys_aws *k, tnf_session *s, bool instance, tnf_error *e);
/* A token of gs or az, and its end; *out does not change if there is none. */
void tnf_role_bearer(tnf_session *s, tnf_service service, tnf_bearer *out);

/* Parse answers: JSON with keys, XML of STS, JSON with a token. `now` is added to its lifetime. */
bool tnf_role_parse(tnf_keys_aws *k, const tnf_allocator *alloc, const char *text, size_t n);
bool tnf_role_parse_sts(tnf_keys_aws *k, const char *text, size_t n);
bool tnf_role_parse_token(tnf_bearer *b, const tnf_allocator *alloc, const char *text, size_t n,
                          int64_t now);

#endif
