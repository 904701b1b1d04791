/* SPDX-License-Identifier: MIT */
/* Format detection. Every probe sees the same few bytes; the surest one wins. */
#include "core/core.h"

tnf_status tnf_probe_source(const tnf_format **out, const tnf_source *source, const char *ext,
                            tnf_error *e)
{
    uint8_t head[TNF_PROBE_HEAD], tail[TNF_PROBE_TAIL];
    tnf_probe p = { .head = head, .tail = tail, .size = source->size, .ext = ext };
    p.nhead = p.size < sizeof head ? (size_t)p.size : sizeof head;
    p.ntail = p.size < sizeof tail ? (size_t)p.size : sizeof tail;
    TNF_TRY(tnf_source_read(source, 0, head, p.nhead, e));
    if (source->remote &&
        p.size > sizeof head) /* needs a second round trip; no format needs it yet */
        p.ntail = 0;
    TNF_TRY(tnf_source_read(source, p.size - p.ntail, tail, p.ntail, e));

    const tnf_format *best = NULL, *tie = NULL;
    int score = 0;
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const tnf_format *f = tnf_registry_at(i);
        int s = f->caps & TNF_CAN_READ ? f->probe(&p) : 0;
        if (s > score) {
            best = f;
            tie = NULL;
            score = s;
        } else if (s == score && s > 0) {
            tie = f;
        }
    }
    /* If only the name indicates a format, certain knowledge from the bytes counts more. */
    if (!best ||
        (score <= TNF_PROBE_EXTENSION && !best->stands_for_shards && tnf_surely_unknown(&p)))
        return tnf_unknown_file(&p, e);
    if (tie)
        return tnf_fail(e, TNF_EUNSUPPORTED, 0, "this may be %s or %s: choose the format",
                        best->name, tie->name);
    *out = best;
    return TNF_OK;
}
