/* SPDX-License-Identifier: MIT */
/* A second file that a writer makes next to the first, with data that the first one refers to.
 *
 *   make     DIRECTORY/NAME, which gets its name at the end, like every file
 *   commit   the second file, then the first: so the first file never exists without the second
 *
 * If both files exist already and are replaced, neither order is safe: the old first file would
 * have the new data, or the new one the old data. So the first file is written twice. If the
 * machine stops at any moment, the first file has its own data:
 *
 *                                  FIRST        NAME        NAME.tmp-XXXXXXXX
 *   data under a new name          old          old         new
 *   the first file, naming that    new: .tmp-…  old         new
 *   the data under its name, too   new: .tmp-…  new         new
 *   the first file, naming that    new: NAME    new         new
 *   the new name removed           new: NAME    new
 *
 * The data is written once: the two names are links. If a file system has no links, the data is
 * replaced first.
 *
 * The name may come from a file, so it must not contain a directory, and an existing link of that
 * name is refused.
 */
#include "container/path.h"
#include "core/save/save.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tnf_status make_path(char **out, const tnf_writer *w, tnf_str name, tnf_error *e)
{
    struct tnf_save *s = w->save;
    size_t folder = (size_t)(w->name - s->path);
    if (tnf_path_check(name, NULL) != TNF_OK || memchr(name.p, '/', name.n))
        return tnf_fail(
            e, TNF_EINVAL, TNF_NO_OFFSET,
            "the second file must be in the directory of the first, and %s is not a file name",
            TNF_QUOTED(name));
    if (strlen(w->name) == name.n && memcmp(w->name, name.p, name.n) == 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "both files would have the name %s",
                        TNF_QUOTED(name));
    char *path = tnf_arena_raw(&s->arena, folder + name.n + 1);
    if (!path)
        return tnf_arena_fail(&s->arena, "a path", e);
    memcpy(path, s->path, folder);
    memcpy(path + folder, name.p, name.n);
    path[folder + name.n] = 0;
    *out = path;
    return TNF_OK;
}

static unsigned sink_flags(const struct tnf_save *s)
{
    return (s->options.replace ? TNF_SINK_REPLACE : 0u) |
           (s->options.no_sync ? TNF_SINK_NO_SYNC : 0u);
}

static tnf_status fresh_name(char **out, struct tnf_save *s, tnf_error *e)
{
    size_t room = strlen(s->second.path) + TNF_TEMP_MORE;
    *out = tnf_arena_raw(&s->arena, room);
    if (!*out)
        return tnf_arena_fail(&s->arena, "a path", e);
    (void)tnf_temp_name(*out, room, s->second.path, 0);
    return TNF_OK;
}

static tnf_status open_second(struct tnf_save *s, tnf_error *e)
{
    struct tnf_second_file *b = &s->second;
    struct stat st;
    tnf_status status = tnf_sink_open(&b->sink, b->path, TNF_SINK_NO_LINK | sink_flags(s),
                                      &s->arena.alloc, e);
    if (status != TNF_OK) {
        tnf_error_prefix(e, b->path);
        return status;
    }
    if (lstat(s->path, &st) != 0 || lstat(b->path, &st) != 0)
        return TNF_OK;
    TNF_TRY(fresh_name(&b->interim, s, e));
    tnf_sink_named(b->sink, b->interim);
    return TNF_OK;
}

tnf_status tnf_make_second_file(tnf_writer *w, tnf_str *name, tnf_error *e)
{
    struct tnf_save *s = w->save;
    struct tnf_second_file *b = &s->second;
    if (!w->name)
        return tnf_fail(
            e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
            "this format writes a second file next to the first, so it needs a path to save to");
    if (b->writes_last)
        return TNF_OK;
    TNF_TRY(make_path(&b->path, w, *name, e));
    TNF_TRY(open_second(s, e));
    if (b->interim) {
        const char *interim = b->interim + (w->name - s->path);
        *name = (tnf_str) { interim, strlen(interim) };
    }
    return TNF_OK;
}

bool tnf_begin_second_file(tnf_writer *w)
{
    struct tnf_second_file *b = &w->save->second;
    if (b->writes_last)
        return false;
    b->begun = true;
    b->first = w->sink;
    w->sink = b->sink;
    return true;
}

void tnf_end_second_file(tnf_writer *w)
{
    w->sink = w->save->second.first;
}

tnf_status tnf_second_file_last(struct tnf_save *s, tnf_sink **sink, tnf_error *e)
{
    struct tnf_second_file *b = &s->second;
    if (!b->begun || !b->interim)
        return TNF_OK;
    TNF_TRY(tnf_sink_open(&b->last, s->path, sink_flags(s), &s->arena.alloc, e));
    b->writes_last = true;
    s->options.progress = NULL; /* everything was reported */
    *sink = b->last;
    return TNF_OK;
}

/* ------------------------------------------------------------------- commit */

/* Tries twice, in case the error is temporary. */
static bool remove_name(const char *path)
{
    return unlink(path) == 0 || errno == ENOENT || unlink(path) == 0;
}

static bool give_name(const char *from, const char *to)
{
    int failed = rename(from, to);
    if (failed)
        failed = rename(from, to);
    return !failed;
}

/* The new first file exists, with its data under the interim name, which therefore stays. */
static tnf_status tell_interim(const struct tnf_save *s, tnf_status status, tnf_error *e)
{
    tnf_error why = *e;
    (void)tnf_fail(e, status, TNF_NO_OFFSET, "the file is written, but its data stays in %s: %s",
                   TNF_VISIBLE(tnf_path_end(s->second.interim)), why.message);
    e->sys = why.sys;
    return status;
}

/* The first file exists and refers to the data by the interim name: now gives the data its own
 * name. `second` is another name of the data. */
static tnf_status commit_last(struct tnf_save *s, const char *second, tnf_error *e)
{
    struct tnf_second_file *b = &s->second;
    tnf_status status = TNF_OK;
    if (!give_name(second, b->path)) {
        status = tnf_fail_sys(e, errno, "cannot give the data file its name");
        (void)remove_name(second);
    } else if (!s->options.no_sync) {
        status = tnf_sync_placed(b->path, e);
    }
    if (status == TNF_OK)
        status = tnf_sink_commit(b->last, e);
    if (status != TNF_OK)
        return tell_interim(s, status, e);
    if (!remove_name(b->interim))
        return tell_interim(s, tnf_fail_sys(e, errno, "cannot remove this temporary name"), e);
    return TNF_OK;
}

static tnf_status replace_both(struct tnf_save *s, tnf_sink *sink, tnf_error *e)
{
    struct tnf_second_file *b = &s->second;
    char *second;
    TNF_TRY(fresh_name(&second, s, e));
    if (link(b->interim, second) != 0) {
        bool none = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK;
        if (!none || !give_name(b->interim, b->path))
            return tnf_fail_sys(e, errno, "cannot give the new file its name");
        return tnf_sink_commit(b->last, e);
    }
    tnf_status status = tnf_sink_commit(sink, e);
    if (status == TNF_OK)
        return commit_last(s, second, e);
    (void)remove_name(second);
    return status == TNF_EUNSYNCED ? tell_interim(s, status, e) : status;
}

static tnf_status commit_second(const struct tnf_save *s, tnf_error *e)
{
    tnf_status status = tnf_sink_commit(s->second.sink, e);
    if (status == TNF_EUNSYNCED) /* a failure here, since the first file does not exist yet */
        status = tnf_fail_sys(e, e->sys, "cannot sync the directory");
    if (status != TNF_OK)
        tnf_error_prefix(e, s->second.path);
    return status;
}

tnf_status tnf_commit_both(struct tnf_save *s, tnf_sink *sink, tnf_error *e)
{
    struct tnf_second_file *b = &s->second;
    tnf_error own;
    e = e ? e : &own; /* the final message includes earlier ones */
    if (!b->begun)
        return tnf_sink_commit(sink, e);
    tnf_status status = commit_second(s, e);
    bool placed = false;
    if (status == TNF_OK) {
        status = b->interim ? replace_both(s, sink, e) : tnf_sink_commit(sink, e);
        placed = status == TNF_OK || sink->done || (b->last && b->last->done);
    }
    if (b->sink->done && !placed && (b->interim || !s->options.replace))
        (void)remove_name(b->interim ? b->interim : b->path); /* the new data is useless now */
    return status;
}

void tnf_second_file_close(struct tnf_save *s)
{
    tnf_sink_close(s->second.sink);
    tnf_sink_close(s->second.last);
    s->second.sink = s->second.last = NULL;
}
