/* SPDX-License-Identifier: MIT */
#ifndef TENFOLD_CLI_CAT_EXPORT_H
#define TENFOLD_CLI_CAT_EXPORT_H

#include "array.h"

/* One row per line, with values separated by commas. A vector has one value per line. */
tnf_status export_csv(const view *v, tnf_error *error);
/* Writes a file of one array to standard output, in the format with this extension. */
tnf_status export_array(const view *v, const char *extension, tnf_error *error);

#endif
