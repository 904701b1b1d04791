/* SPDX-License-Identifier: MIT */
/* An input of another machine, brought here whole before it is used: resumed, verified, removed
 * when all is done. */
#ifndef TENFOLD_CLI_DOWNLOAD_H
#define TENFOLD_CLI_DOWNLOAD_H

#include "cmd.h"

typedef struct download {
    const cli_state *cli;
    char *folder; /* OUT.download */
    char *path;   /* what to open in it */
    char **names; /* of the files in it */
    size_t n;
    bool lacks_memory;
} download;

/* Brings it to a folder beside `out`. Gives an exit code, after saying what is wrong; then what has
 * come so far remains, and the next try goes on with it. */
int download_begin(download *d, const cli_state *cli, const char *url, const char *out);
/* `used`: all is done, the files can go. */
void download_end(download *d, bool used);

#endif
