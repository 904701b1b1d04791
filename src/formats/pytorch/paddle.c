/* SPDX-License-Identifier: MIT */
/* Paddle's parameters (.pdparams, .pdopt): one pickle, of protocol 2 to 5, of a dict
 *
 *   {"linear.weight": ndarray, …, "StructuredToParameterName@@": {"linear.weight": "linear_0.w_0"}}
 *
 * The arrays are NumPy's and are read like those in PyTorch's pickles. Nothing is executed. */
#include "formats/pytorch/pt.h"

#include <string.h>

#define NAMES "StructuredToParameterName@@"

static int probe_paddle(const tnf_probe *p)
{
    bool pickle = p->nhead >= 2 && p->head[0] == 0x80 && p->head[1] >= 2 && p->head[1] <= 5;
    bool named = tnf_list_has("pdparams pdopt", p->ext) && *p->ext;
    if (!pickle)
        return TNF_PROBE_NO;
    return named || tnf_head_holds(p, NAMES) ? TNF_PROBE_STRUCTURE : TNF_PROBE_NO;
}

static tnf_status index_pickle(pt_file *f, tnf_error *e)
{
    tnf_pickle p;
    uint64_t at = 0;
    TNF_TRY(tnf_pt_next_pickle(f, &p, &at, f->r->source->size, "the pickle", e));
    if (p.root->kind != TNF_PICKLE_DICT)
        return tnf_fail(e, TNF_EFORMAT, 0, "the parameters of Paddle are not a dict");
    f->kind = "paddle";
    TNF_TRY(tnf_pt_walk(f, p.root, NULL, p.used, e));
    if (at < f->r->source->size) {
        TNF_TRY(tnf_pt_scan_source(f, at, f->r->source->size, "the bytes after the pickle", e));
        tnf_warn(f->r, at, "%s the pickle, which Paddle ignores",
                 TNF_BYTES_FOLLOW(f->r->source->size - at));
    }
    return TNF_OK;
}

static tnf_status index_paddle(tnf_reader *r, tnf_error *e)
{
    return tnf_pt_index(r, index_pickle, e);
}

const tnf_format tnf_format_paddle = {
    .name = "paddle",
    .title = "Paddle parameters (.pdparams)",
    .extensions = "pdparams pdopt",
    .family = "pytorch",
    .caps = TNF_CAN_READ,
    .probe = probe_paddle,
    .index = index_paddle,
    .decode = tnf_pt_decode,
    .verify = tnf_pt_verify,
    .notes = tnf_pt_notes,
};
