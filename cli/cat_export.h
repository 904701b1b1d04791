/* SPDX-License-Identifier: MIT */
#ifndef TENFOLD_CLI_CAT_EXPORT_H
#define TENFOLD_CLI_CAT_EXPORT_H

#include "array.h"

/* A row a line, values separated by commas; of a vector a value a line. */
tnf_status export_csv(const view *v, tnf_error *error);
/* A file of one array to standard output, in the format that has this extension. */
tnf_status export_array(const view *v, const char *extension, tnf_error *error);

#endif
