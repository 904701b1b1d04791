/* SPDX-License-Identifier: MIT */
#include "download.h"
#include "input.h"
#include "out.h"
#include "progress.h"
#include "stop.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenfold/remote.h>
#include <unistd.h>

#define SUFFIX ".download"

typedef struct bringing {
    progress bar; /* first, for progress_watch() */
    download *d;
} bringing;

/* Returns DIRECTORY/name, or NULL if there is no memory. */
static char *path_of(const download *d, const char *name)
{
    size_t n = strlen(d->folder) + strlen(name) + 2;
    char *path = malloc(n);
    if (path)
        snprintf(path, n, "%s/%s", d->folder, name);
    return path;
}

static void on_file(void *ctx, const char *name, uint64_t bytes, bool fetched)
{
    download *d = ((bringing *)ctx)->d;
    char **more = realloc(d->names, (d->n + 1) * sizeof *more), *copy = more ? strdup(name) : NULL;
    (void)bytes, (void)fetched;
    d->names = more ? more : d->names;
    if (copy)
        d->names[d->n++] = copy;
    else
        d->lacks_memory = true;
}

/* Does the path of the URL end in this name? */
static bool is_name_of(const char *url, const char *name)
{
    size_t n = strcspn(url, "?#"), m = strlen(name);
    return n > m && url[n - m - 1] == '/' && memcmp(url + n - m, name, m) == 0;
}

/* The path to open: the file of the URL, even if others were downloaded with it, or else the
 * directory. */
static char *path_to_open(const download *d, const char *url)
{
    bool file = d->n == 1 || (d->n > 1 && is_name_of(url, d->names[0]));
    return file ? path_of(d, d->names[0]) : strdup(d->folder);
}

static int fetch_all(download *d, const char *url)
{
    bringing b = { .d = d };
    tnf_url_options remote = TNF_URL_INIT;
    tnf_fetch_options how = TNF_FETCH_INIT;
    tnf_error error;
    stop_state stop;
    remote.trace = d->cli->trace ? request_trace : NULL;
    how.remote = &remote;
    how.replace = true; /* existing files are from an earlier attempt */
    how.progress = progress_watch;
    how.file = on_file;
    how.ctx = &b;
    stop_catch(&stop);
    progress_begin(&b.bar, d->cli);
    tnf_status status = tnf_fetch(url, d->folder, &how, &error);
    progress_end(&b.bar);
    stop_release(&stop, status == TNF_ECANCELLED);
    if (was_done(status)) /* the download is only needed now */
        return EXIT_DONE;
    char *shown = url_to_show(url);
    int code = file_error(shown ? shown : "the URL", &error);
    free(shown);
    return code;
}

int download_begin(download *d, const cli_state *cli, const char *url, const char *out)
{
    size_t n = strlen(out) + sizeof SUFFIX;
    *d = (download) { .cli = cli };
    if (strcmp(out, "-") == 0 || tnf_is_url(out))
        return usage_error("--download needs a file as the output, since it downloads to "
                           "OUT.download");
    d->folder = malloc(n);
    if (d->folder) {
        snprintf(d->folder, n, "%s" SUFFIX, out);
        int code = fetch_all(d, url);
        if (code != EXIT_DONE)
            return code;
        d->path = path_to_open(d, url);
    }
    if (d->path && !d->lacks_memory)
        return EXIT_DONE;
    file_message(out, "", TNF_NO_OFFSET, "out of memory");
    return EXIT_IO;
}

/* Removes a file and the directories above it that become empty. */
static void remove_file(const download *d, const char *name)
{
    char *path = path_of(d, name);
    if (!path)
        return;
    (void)unlink(path);
    for (char *slash; (slash = strrchr(path, '/')) && slash > path + strlen(d->folder);) {
        *slash = 0;
        if (rmdir(path) != 0)
            break;
    }
    free(path);
}

void download_end(download *d, bool used)
{
    for (size_t i = 0; i < d->n; i++) {
        if (used)
            remove_file(d, d->names[i]);
        free(d->names[i]);
    }
    if (used && d->folder)
        (void)rmdir(d->folder);
    free(d->names);
    free(d->path);
    free(d->folder);
}
