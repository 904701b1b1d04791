/* SPDX-License-Identifier: MIT */
/* Complete files in memory, a temporary directory, and all fixtures. */
#ifndef TNF_SUPPORT_FILES_H
#define TNF_SUPPORT_FILES_H

#include "check.h"
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <tenfold/tenfold.h>
#include <unistd.h>

struct bytes {
    uint8_t *p;
    size_t n;
};

static inline struct bytes bytes_of_file(const char *path)
{
    struct bytes b = { NULL, 0 };
    FILE *f = fopen(path, "rb");
    if (!f)
        return b;
    for (size_t room = 4096;; room *= 2) {
        b.p = realloc(b.p, room);
        MUST(b.p != NULL);
        b.n += fread(b.p + b.n, 1, room - b.n, f);
        if (b.n < room)
            break;
    }
    fclose(f);
    return b;
}

static inline void bytes_to_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    MUST(f != NULL);
    MUST(fwrite(p, 1, n, f) == n);
    MUST(fclose(f) == 0);
}

/* ---------------------------------------------------- a directory of our own */

static inline int files_remove(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static char files_dir[256];

static inline void files_dir_remove(void)
{
    if (*files_dir)
        nftw(files_dir, files_remove, 8, FTW_DEPTH | FTW_PHYS);
    *files_dir = 0;
}

/* Made on the first call, removed when the program ends. */
static inline const char *files_temp(void)
{
    if (!*files_dir) {
        const char *base = getenv("TMPDIR");
        snprintf(files_dir, sizeof files_dir, "%s/tenfold-test-XXXXXX", base ? base : "/tmp");
        MUST(mkdtemp(files_dir) != NULL);
        atexit(files_dir_remove);
    }
    return files_dir;
}

/* Counts the entries of a directory whose names contain `part`; "" counts all. */
static inline size_t files_count(const char *directory, const char *part)
{
    DIR *d = opendir(directory);
    MUST(d != NULL);
    size_t n = 0;
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
             strstr(entry->d_name, part) != NULL;
    closedir(d);
    return n;
}

/* ----------------------------------------------------------------- fixtures */

struct fixture {
    char *path;
    const char *label; /* the end of path, for messages */
    struct bytes file;
    const char *format; /* as probed from the bytes only; NULL: unrecognised */
};

static struct {
    struct fixture *list;
    size_t n, room;
    const char *must_hold; /* substring of the path, e.g. "/valid/" */
} fixtures;

/* Is this a part of another fixture, of no format by itself? Then the expect.json of its format has
 * a pattern for it, in "parts". */
static inline bool fixtures_is_part(const char *path)
{
    static char known[4096], patterns[4096];
    const char *valid = strstr(path, "/valid/");
    char expect[4096], one[256];
    if (!valid)
        return false;
    snprintf(expect, sizeof expect, "%.*s/expect.json", (int)(valid - path), path);
    if (strcmp(expect, known) != 0) { /* sorted by directories */
        struct bytes b = bytes_of_file(expect);
        const char *found = b.p ? memmem(b.p, b.n, "\"parts\": [", 10) : NULL;
        const char *end = found ? memchr(found, ']', b.n - (size_t)(found - (char *)b.p)) : NULL;
        snprintf(patterns, sizeof patterns, "%.*s", end ? (int)(end - found) - 10 : 0,
                 end ? found + 10 : "");
        snprintf(known, sizeof known, "%s", expect);
        free(b.p);
    }
    int used = 0;
    for (const char *p = patterns; sscanf(p, "%*[ \n,]\"%255[^\"]\"%n", one, &used) == 1; p += used)
        if (fnmatch(one, valid + 7, 0) == 0)
            return true;
    return false;
}

static inline int fixtures_add(const char *path, const struct stat *st, int kind)
{
    if (kind != FTW_F || !strstr(path, fixtures.must_hold) || st->st_size > (16 << 20))
        return 0;
    if (fixtures_is_part(path))
        return 0;
    if (fixtures.n == fixtures.room) {
        fixtures.room = fixtures.room ? fixtures.room * 2 : 64;
        fixtures.list = realloc(fixtures.list, fixtures.room * sizeof *fixtures.list);
        MUST(fixtures.list != NULL);
    }
    struct fixture *f = &fixtures.list[fixtures.n++];
    f->path = strdup(path);
    MUST(f->path != NULL);
    const char *formats = strstr(f->path, "/formats/"), *shared = strstr(f->path, "/fixtures/");
    f->label = formats ? formats + 9 : shared ? shared + 10 : f->path;
    f->file = bytes_of_file(path);
    f->format = NULL;
    return 0;
}

static inline int fixtures_by_path(const void *a, const void *b)
{
    return strcmp(((const struct fixture *)a)->path, ((const struct fixture *)b)->path);
}

static inline void fixtures_free(void)
{
    for (size_t i = 0; i < fixtures.n; i++) {
        free(fixtures.list[i].path);
        free(fixtures.list[i].file.p);
    }
    free(fixtures.list);
    fixtures.list = NULL;
    fixtures.n = fixtures.room = 0;
}

/* The format of the bytes, found without a name; NULL: no format opens them. */
static inline const char *format_of(const void *p, size_t n, bool lenient)
{
    tnf_format_info info = TNF_FORMAT_INFO_INIT;
    tnf_source *source;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .lenient = lenient };
    const char *found = NULL;
    if (tnf_source_memory(&source, p, n, NULL) != TNF_OK ||
        tnf_open_source(&file, source, &o, NULL) != TNF_OK)
        return NULL;
    const char *name = tnf_file_info(file)->format;
    for (size_t i = 0; !found && tnf_format_at(&info, i); i++)
        if (strcmp(info.name, name) == 0)
            found = info.name;
    tnf_close(file);
    return found;
}

/* Every file below `root` whose path holds `must_hold`, added to `fixtures`, in order of path. */
static inline void fixtures_find(const char *root, const char *must_hold)
{
    fixtures.must_hold = must_hold;
    size_t before = fixtures.n;
    if (before == 0)
        atexit(fixtures_free);
    if (access(root, R_OK) == 0)
        MUST(ftw(root, fixtures_add, 16) == 0);
    qsort(fixtures.list + before, fixtures.n - before, sizeof *fixtures.list, fixtures_by_path);
}

/* Does the fixture consist of several files? Then it cannot be opened from memory. */
static inline bool is_index(const char *path)
{
    static const char end[] = ".index.json";
    size_t n = strlen(path);
    return n > sizeof end - 1 && strcmp(path + n - (sizeof end - 1), end) == 0;
}

/* The valid files of every format in the tree, and those from the specifications if available.
 * `format` is known for single files. */
static inline void fixtures_valid(void)
{
    size_t kept = 0;
    fixtures_find(TNF_TESTS_DIR "/formats", "/valid/");
    fixtures_find(TNF_SHARED_DIR "/fixtures/gptrs", "_v2_");
    for (size_t i = 0; i < fixtures.n; i++) {
        struct fixture *f = &fixtures.list[i];
        bool twice = false; /* many of the second kind are among the first */
        for (size_t k = 0; k < kept && !twice; k++)
            twice = f->file.n == fixtures.list[k].file.n &&
                    memcmp(f->file.p, fixtures.list[k].file.p, f->file.n) == 0;
        f->format = twice || is_index(f->path) ? NULL : format_of(f->file.p, f->file.n, true);
        if (f->format || is_index(f->path)) {
            fixtures.list[kept++] = *f;
        } else {
            free(f->path);
            free(f->file.p);
        }
    }
    fixtures.n = kept;
    MUST(fixtures.n > 0);
}

#endif
