/* SPDX-License-Identifier: MIT */
/* A second file that a writer makes beside the first: data that the first one names.
 *
 *   begin    FOLDER/NAME, which gets its name at the end, as every file
 *   commit   the second file, then the first: whoever finds the first finds both
 *
 * Its name may come from a file, so it has no folder, and a link of that name is refused.
 */
#include "container/path.h"
#include "core/save/save.h"

#include <string.h>
#include <unistd.h>

static tnf_status make_path(char **out, const tnf_writer *w, tnf_str name, tnf_error *e)
{
    struct tnf_save *s = w->save;
    size_t folder = (size_t)(w->name - s->path);
    if (tnf_path_check(name, NULL) != TNF_OK || memchr(name.p, '/', name.n))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the second file lies in the folder of the first, and %s is no name there",
                        TNF_QUOTED(name));
    if (strlen(w->name) == name.n && memcmp(w->name, name.p, name.n) == 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "both files would be %s", TNF_QUOTED(name));
    char *path = tnf_arena_raw(&s->arena, folder + name.n + 1);
    if (!path)
        return tnf_arena_fail(&s->arena, "a path", e);
    memcpy(path, s->path, folder);
    memcpy(path + folder, name.p, name.n);
    path[folder + name.n] = 0;
    *out = path;
    return TNF_OK;
}

tnf_status tnf_begin_beside(tnf_writer *w, tnf_str name, tnf_error *e)
{
    struct tnf_save *s = w->save;
    unsigned flags = TNF_SINK_NO_LINK | (s->options.replace ? TNF_SINK_REPLACE : 0u) |
                     (s->options.no_sync ? TNF_SINK_NO_SYNC : 0u);
    if (!w->name)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "a second file needs a first one to lie beside, which is not written here");
    TNF_TRY(make_path(&s->beside.path, w, name, e));
    tnf_status status = tnf_sink_open(&s->beside.sink, s->beside.path, flags, &s->arena.alloc, e);
    if (status != TNF_OK) {
        tnf_error_prefix(e, s->beside.path);
        return status;
    }
    s->beside.first = w->sink;
    w->sink = s->beside.sink;
    return TNF_OK;
}

void tnf_end_beside(tnf_writer *w)
{
    w->sink = w->save->beside.first;
}

tnf_status tnf_commit_both(struct tnf_save *s, tnf_sink *sink, tnf_error *e)
{
    struct tnf_beside *b = &s->beside;
    if (b->sink) {
        tnf_status status = tnf_sink_commit(b->sink, e);
        if (status != TNF_OK) {
            tnf_error_prefix(e, b->path);
            return status;
        }
    }
    tnf_status status = tnf_sink_commit(sink, e);
    if (status != TNF_OK && b->sink && !s->options.replace) /* it was new, and is of no use */
        unlink(b->path);
    return status;
}

void tnf_beside_close(struct tnf_save *s)
{
    tnf_sink_close(s->beside.sink);
    s->beside.sink = NULL;
}
