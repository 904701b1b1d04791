/* SPDX-License-Identifier: MIT */
/* The paths of parameters, as gpt.rs makes them while it visits a model: "blocks.0.ln_1.gamma".
 * Each segment is ASCII, not empty, and has no dot. */
#include "base/ckd.h"
#include "base/error.h"
#include "base/utf8.h"
#include <tenfold/params.h>

#include <string.h>

/* What is wrong with a segment; NULL: nothing. */
static const char *segment_fault(tnf_str s)
{
    if (s.n == 0)
        return "is empty";
    if (memchr(s.p, '.', s.n))
        return "has a dot, which separates segments";
    return tnf_ascii(s.p, s.n) ? NULL : "is not ASCII";
}

tnf_status tnf_param_path_check(const char *path, size_t n, tnf_error *e)
{
    TNF_TRY(tnf_need_array(path, n, "path", e));
    if (n == 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the path of a parameter is empty");
    for (size_t start = 0, i = 0; i <= n; i++) {
        if (i < n && path[i] != '.')
            continue;
        const char *fault = segment_fault((tnf_str) { path + start, i - start });
        if (fault)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "a segment of the path %s %s (at byte %zu)",
                            TNF_QUOTED(((tnf_str) { path, n })), fault, start);
        start = i + 1;
    }
    return TNF_OK;
}

static tnf_status measure_path(size_t *out, const tnf_str *segments, size_t n, tnf_error *e)
{
    uint64_t sum = n - 1;
    for (size_t i = 0; i < n; i++) {
        TNF_TRY(tnf_need_str(segments[i], "segments", e));
        const char *fault = segment_fault(segments[i]);
        if (fault)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "segment %zu of a path, %s, %s", i,
                            TNF_QUOTED(segments[i]), fault);
        if (!tnf_ckd_add(&sum, sum, segments[i].n))
            sum = UINT64_MAX;
    }
    return tnf_to_size(out, sum) && *out < SIZE_MAX
               ? TNF_OK
               : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "a path of a parameter is too long");
}

tnf_status tnf_param_path_join(char *out, size_t room, size_t *length, const tnf_str *segments,
                               size_t n, tnf_error *e)
{
    *length = 0;
    TNF_TRY(tnf_need_array(out, room, "out", e));
    if (room > 0)
        out[0] = '\0';
    TNF_TRY(tnf_need_array(segments, n, "segments", e));
    if (n == 0)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the path of a parameter has no segment");
    TNF_TRY(measure_path(length, segments, n, e));
    if (room == 0)
        return TNF_OK;
    if (room <= *length)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the path has %zu bytes and a NUL, but there is room for %zu bytes",
                        *length, room);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            *out++ = '.';
        memcpy(out, segments[i].p, segments[i].n);
        out += segments[i].n;
    }
    *out = '\0';
    return TNF_OK;
}
