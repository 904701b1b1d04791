/* SPDX-License-Identifier: MIT */
/* Who asks: looked for in the environment and in files, once a session, when the first request of a
 * service needs it. Nothing of it is ever printed. */
#ifndef TNF_REMOTE_CREDENTIALS_H
#define TNF_REMOTE_CREDENTIALS_H

#include "remote/place.h"
#include <stdio.h>

/* Keys of s3: AWS_ACCESS_KEY_ID …, a profile, a container's or an instance's role. A copy; `found`
 * is false where requests are to go unsigned. */
tnf_status tnf_find_keys(tnf_session *s, tnf_keys_aws *out, tnf_error *e);
/* The region by environment or profile; "us-east-1" else. */
void tnf_find_region(const tnf_session *s, char *out, size_t room);
/* A token of one line; "": none. hub: HF_TOKEN and its files; gs: that of Google, else of the
 * machine's account; az: of the machine's identity. */
void tnf_find_bearer(tnf_session *s, tnf_service service, char *out, size_t room);
/* The value of a key of a profile in an ini file; false: it is not there, or empty, or too long. */
bool tnf_profile_find(FILE *f, const char *profile, const char *key, char *out, size_t room);
/* The first line of a file, without its end; false: it is not there, or too long. */
bool tnf_read_line(const char *path, char *out, size_t room);
/* A variable of the environment that is not empty, or NULL. */
const char *tnf_setting(const char *name);
/* It says 1, true or yes. */
bool tnf_setting_true(const char *name);
/* The folder of huggingface_hub: HF_HOME, or ~/.cache/huggingface. */
bool tnf_hub_home(char *out, size_t room);

#endif
