/* SPDX-License-Identifier: MIT */
/* Counts open descriptors, to find leaks. */
#ifndef TNF_SUPPORT_DESCRIPTORS_H
#define TNF_SUPPORT_DESCRIPTORS_H

#include <fcntl.h>

static inline unsigned descriptors_open(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

#endif
