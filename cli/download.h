/* SPDX-License-Identifier: MIT */
/* An input on another machine, which is downloaded completely before it is used. The download is
 * resumed and verified, and its files are removed at the end. */
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

/* Downloads the URL to the directory OUT.download. Returns an exit code, after reporting an error.
 * After an error the blocks received so far remain, and the next attempt continues with them. */
int download_begin(download *d, const cli_state *cli, const char *url, const char *out);
/* `used`: the command succeeded, so the files are removed. */
void download_end(download *d, bool used);

#endif
