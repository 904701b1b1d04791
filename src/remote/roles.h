/* SPDX-License-Identifier: MIT */
/* Keys and tokens that a machine of a cloud has by what it is, asked of services near by:
 *
 *   s3   a file's token, changed for keys by STS         AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN
 *        the container's agent (ECS, EKS)                AWS_CONTAINER_CREDENTIALS_FULL_URI, …
 *        the instance's metadata (IMDSv2)                http://169.254.169.254
 *   gs   the metadata server                             http://metadata.google.internal
 *   az   the identity's endpoint, or the metadata        IDENTITY_ENDPOINT, http://169.254.169.254
 */
#ifndef TNF_REMOTE_ROLES_H
#define TNF_REMOTE_ROLES_H

#include "remote/credentials.h"

/* Sets k->found and the keys. What the environment names and does not answer is a failure; what may
 * be there or not (`instance`: ask that, too) is not. */
tnf_status tnf_role_keys(tnf_keys_aws *k, tnf_session *s, bool instance, tnf_error *e);
/* A token of gs or az, and how long it lasts; none: as it was. */
void tnf_role_bearer(tnf_session *s, tnf_service service, tnf_bearer *out);

/* What they answer: JSON of keys, XML of STS, JSON of a token. `now` is added to what lasts. */
bool tnf_role_parse(tnf_keys_aws *k, const tnf_allocator *alloc, const char *text, size_t n);
bool tnf_role_parse_sts(tnf_keys_aws *k, const char *text, size_t n);
bool tnf_role_parse_token(tnf_bearer *b, const tnf_allocator *alloc, const char *text, size_t n,
                          int64_t now);

#endif
