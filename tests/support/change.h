/* SPDX-License-Identifier: MIT */
/* Fixtures with changed bytes. A single file is opened from memory of exactly its size; an index,
 * or a shard of one, from a copy of its directory. */
#ifndef TNF_SUPPORT_CHANGE_H
#define TNF_SUPPORT_CHANGE_H

#include "files.h"
#include "open.h"
#include <sys/stat.h>

struct change {
    const struct fixture *of;
    uint8_t *bytes; /* exactly n bytes, so the sanitizer sees reads beyond the end */
    size_t n;
    char directory[300], file[600]; /* for an index or a shard; else "" */
};

/* Copies are used because links that leave the model's directory are not followed. */
static inline void change_copy(const char *from, const char *to)
{
    char block[4096];
    struct stat st;
    if (stat(from, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    MUST(in != NULL && out != NULL);
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
        MUST(fwrite(block, 1, n, out) == n);
    fclose(in);
    MUST(fclose(out) == 0);
}

/* Fills a directory with copies of the files next to the fixture. */
static inline void change_begin(struct change *c, const struct fixture *of)
{
    static unsigned count;
    *c = (struct change) { .of = of };
    if (of->format)
        return;
    char from[4096];
    snprintf(from, sizeof from, "%s", of->path);
    char *slash = strrchr(from, '/');
    MUST(slash != NULL);
    *slash = 0;
    snprintf(c->directory, sizeof c->directory, "%s/change-%u", files_temp(), count++);
    snprintf(c->file, sizeof c->file, "%s/%s", c->directory, slash + 1);
    MUST(mkdir(c->directory, 0700) == 0);
    DIR *d = opendir(from);
    MUST(d != NULL);
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;) {
        char target[8192], link_path[600];
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, slash + 1) == 0)
            continue;
        snprintf(target, sizeof target, "%s/%s", from, entry->d_name);
        snprintf(link_path, sizeof link_path, "%s/%s", c->directory, entry->d_name);
        change_copy(target, link_path);
    }
    closedir(d);
}

static inline void change_set(struct change *c, const void *p, size_t n)
{
    free(c->bytes);
    c->bytes = malloc(n ? n : 1);
    MUST(c->bytes != NULL);
    memcpy(c->bytes, p, n);
    c->n = n;
    if (*c->file)
        bytes_to_file(c->file, p, n);
}

static inline tnf_status change_open(const struct change *c, tnf_file **out,
                                     const tnf_open_options *options, tnf_error *error)
{
    if (!*c->file)
        return open_bytes(out, c->bytes, c->n, options, error);
    tnf_status status = tnf_open(out, c->directory, options, error);
    check_error(status, error);
    return status;
}

/* The bytes for check_parts() to compare with: the file, unless there are several. */
static inline const void *change_bytes(const struct change *c)
{
    return *c->file ? NULL : c->bytes;
}

static inline void change_end(struct change *c)
{
    free(c->bytes);
    if (*c->directory)
        nftw(c->directory, files_remove, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
