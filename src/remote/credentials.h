/* SPDX-License-Identifier: MIT */
/* Credentials. They are searched in the environment and in files, once per session, when the first
 * request to a service needs them. They are never printed. */
#ifndef TNF_REMOTE_CREDENTIALS_H
#define TNF_REMOTE_CREDENTIALS_H

#include "remote/place.h"
#include <stdio.h>

/* Keys for s3: AWS_ACCESS_KEY_ID …, a profile, a container's or an instance's role. The result is a
 * copy; `found` is false if requests must be sent unsigned. */
tnf_status tnf_find_keys(tnf_session *s, tnf_keys_aws *out, tnf_error *e);
/* The region from the environment or the profile; else "us-east-1". */
void tnf_find_region(const tnf_session *s, char *out, size_t room);
/* A token of one line; "": none. hub: HF_TOKEN and its files; gs: GOOGLE_OAUTH_ACCESS_TOKEN, else
 * that of the machine's account; az: that of the machine's identity. */
void tnf_find_bearer(tnf_session *s, tnf_service service, char *out, size_t room);
/* The value of a key of a profile in an ini file; false if it is missing, empty, or too long. */
bool tnf_profile_find(FILE *f, const char *profile, const char *key, char *out, size_t room);
/* The first line of a file, without its line end; false if the file is missing, or the line is too
 * long. */
bool tnf_read_line(const char *path, char *out, size_t room);
/* The value of an environment variable; NULL if it is missing or empty. */
const char *tnf_setting(const char *name);
/* Is the variable 1, true or yes? */
bool tnf_setting_true(const char *name);
/* The directory of huggingface_hub: HF_HOME, or ~/.cache/huggingface. */
bool tnf_hub_home(char *out, size_t room);

#endif
