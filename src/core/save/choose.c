/* SPDX-License-Identifier: MIT */
/* Chooses the format for a file name. If several formats share an extension (".bin"), one of them
 * is chosen only if it is the only one that can hold the whole content. */
#include "core/save/save.h"

#include <stdio.h>
#include <string.h>

#define MOST 32u /* formats per extension */

/* Lists each family once: its newest format, which is listed first. */
static size_t list_candidates(const tnf_format *out[MOST], const char *ext)
{
    const tnf_format *f;
    size_t n = 0;
    for (size_t i = 0; n < MOST && (f = tnf_registry_at(i)); i++) {
        bool known = !(tnf_registry_caps(f) & TNF_CAN_WRITE) || !tnf_list_has(f->extensions, ext);
        for (size_t k = 0; k < n && !known; k++)
            known = strcmp(out[k]->family, f->family) == 0;
        if (!known)
            out[n++] = f;
    }
    return n;
}

static bool holds_all(const tnf_format *f, const tnf_builder *b, const tnf_save_options *options)
{
    tnf_error error;
    tnf_save_options how = *options;
    how.format = f->name;
    how.dry_run = true;
    how.allow_loss = false;
    how.plan = NULL;
    how.progress = NULL;
    return tnf_save_sink(b, NULL, &how, &error) == TNF_OK;
}

static tnf_status cannot_tell(const tnf_format *const *found, size_t n, const char *ext,
                              tnf_error *e)
{
    char names[512];
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        const char *before = i == 0 ? "" : i + 1 < n ? ", " : " or ";
        int more = snprintf(names + used, sizeof names - used, "%s%s", before, found[i]->name);
        used += (size_t)more < sizeof names - used ? (size_t)more : 0;
    }
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the extension '.%s' may be %s", ext, names);
}

tnf_status tnf_choose_format(const tnf_format **out, const tnf_builder *b, const char *path,
                             const tnf_save_options *options, tnf_error *e)
{
    const tnf_format *found[MOST];
    char ext[16];
    size_t n = list_candidates(found, tnf_extension(ext, path)), sure = n, fitting = 0;
    if (n <= 1)
        return tnf_registry_by_extension(out, path, e);
    for (size_t i = 0; i < n; i++)
        if (holds_all(found[i], b, options)) {
            sure = i;
            fitting++;
        }
    if (fitting != 1)
        return cannot_tell(found, n, ext, e);
    *out = found[sure];
    return TNF_OK;
}
