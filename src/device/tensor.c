/* SPDX-License-Identifier: MIT */
/* Prepares the tensor of a request: bytes of a file, which are copied unchanged, converted by a
 * kernel of the device, or computed by the host. */
#include "device/kernel.h"
#include "device/plan.h"

#include "base/ckd.h"
#include "base/sized.h"

/* Is the slice within its dimension, with a positive step? */
static bool goes_forward(const tnf_slice *x, uint64_t dim)
{
    if (x->start < 0 || (uint64_t)x->start >= dim || (x->count > 1 && x->step < 1))
        return false;
    return x->count == 1 || x->count - 1 <= (dim - 1 - (uint64_t)x->start) / (uint64_t)x->step;
}

static bool is_dense(const tnf_object *o)
{
    return o->layout == tnf_layout_by_id("dense") && o->nparts == 1;
}

/* Joins the outer dimensions, from `d` down: `count` runs, each `stride` elements after the one
 * before. */
static bool join_outer(tnf_load_tensor *w, const tnf_object *o, const tnf_slice *slices, uint32_t d,
                       uint64_t stride)
{
    w->count = 1;
    w->stride = 0;
    for (; d > 0; d--) {
        const tnf_slice *x = &slices[d - 1];
        uint64_t step = x->count > 1 ? (uint64_t)x->step * stride : 0;
        if (x->count > 1 && w->count > 1 && step != w->stride * w->count)
            return false;
        if (x->count > 1 && w->count == 1)
            w->stride = step;
        w->count *= x->count;
        stride *= o->shape[d - 1];
    }
    return true;
}

/* Describes a slice as runs of bytes with one stride; returns false if that is impossible, or if
 * the slice is invalid. All products are less than the tensor's size. */
static bool slice_runs(tnf_load_tensor *w, const tnf_object *o, const tnf_slice *slices)
{
    uint32_t bits = o->parts->type->bits, d = o->rank;
    uint64_t stride = 1, first = 0, run = 1;
    if (!is_dense(o) || bits == 0 || bits % 8 || (o->order == TNF_ORDER_F && o->rank > 1))
        return false;
    for (uint32_t i = o->rank; i > 0; i--) {
        if (!goes_forward(&slices[i - 1], o->shape[i - 1]))
            return false;
        first += (uint64_t)slices[i - 1].start * stride;
        stride *= o->shape[i - 1];
    }
    for (stride = 1; d > 0 && run == stride && (slices[d - 1].step == 1 || slices[d - 1].count < 2);
         d--) {
        run *= slices[d - 1].count;
        stride *= o->shape[d - 1];
    }
    if (!join_outer(w, o, slices, d, stride))
        return false;
    w->first = first * (bits / 8);
    w->run = run * (bits / 8);
    w->stride *= bits / 8;
    return true;
}

/* ------------------------------------------------------------ on the host */

/* Replaces the object by a virtual one. */
static tnf_status make_virtual(tnf_load_tensor *w, const tnf_object **o, const tnf_object *second,
                               tnf_virtual_how how, tnf_error *e)
{
    const tnf_object *sources[2] = { *o, second };
    size_t i = 0;
    while (w->made[i])
        i++;
    TNF_TRY(tnf_virtual_new(&w->made[i], sources, second ? 2 : 1, &how, e));
    *o = tnf_virtual_object(w->made[i]);
    return TNF_OK;
}

static tnf_status on_host(tnf_load_tensor *w, const tnf_device_request *r, tnf_error *e)
{
    const tnf_object *o = r->object;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    if (r->as && (r->scales || !is_dense(o))) {
        how.kind = r->scales ? TNF_VIRTUAL_SCALED : TNF_VIRTUAL_VALUES;
        TNF_TRY(make_virtual(w, &o, r->scales, how, e));
    }
    if (r->slices) {
        how.kind = TNF_VIRTUAL_SLICE;
        how.slices = r->slices;
        TNF_TRY(make_virtual(w, &o, NULL, how, e));
    }
    if (r->as && o->parts->type != r->as) {
        how.kind = TNF_VIRTUAL_CAST;
        how.type = r->as;
        TNF_TRY(make_virtual(w, &o, NULL, how, e));
    }
    w->part = o->parts;
    w->run = w->bytes = w->part->nbytes;
    w->how = r->as ? TNF_LOAD_HOST : TNF_LOAD_STORED;
    return tnf_part_locate(&w->place, w->part, e);
}

/* --------------------------------------------------------------- requests */

static tnf_status find_part(const tnf_part **out, const tnf_device_request *r, tnf_error *e)
{
    const tnf_object *o = r->object;
    TNF_TRY(tnf_object_there(o, e));
    if (r->part && (r->slices || r->as) && o->nparts != 1)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%s has several parts: each can only be loaded completely and unchanged",
                        TNF_QUOTED(o->name));
    if (!r->part && o->nparts != 1 && !r->as)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%s has the layout %s with %u parts; load them one by one",
                        TNF_QUOTED(o->name), tnf_layout_id(o->layout), o->nparts);
    if (r->scales && !r->as)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%s: scales were given, so the element type of the product is needed, too",
                        TNF_QUOTED(o->name));
    const tnf_part *data = tnf_object_part(o, "data");
    *out = r->part ? r->part : data ? data : o->parts;
    return *out ? TNF_OK
                : tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "%s has no parts to load",
                           TNF_QUOTED(o->name));
}

static bool is_empty(const tnf_device_request *r)
{
    for (uint32_t d = 0; r->slices && d < r->object->rank; d++)
        if (r->slices[d].count == 0)
            return true;
    return false;
}

static tnf_status tensor_bytes(tnf_load_tensor *w, tnf_device *device, const tnf_device_request *r,
                               tnf_error *e)
{
    bool changes = r->as && (r->scales || !is_dense(r->object) || w->part->type != r->as);
    TNF_TRY(tnf_part_locate(&w->place, w->part, e));
    w->run = w->part->nbytes;
    w->count = 1;
    if (is_empty(r)) {
        w->run = w->count = 0;
        return TNF_OK;
    }
    if (r->slices && (!w->place.source || !slice_runs(w, r->object, r->slices)))
        return on_host(w, r, e);
    if (changes && !tnf_kernel_find(w, device, r))
        return on_host(w, r, e);
    if (!w->kernel)
        w->bytes = w->run * w->count;
    return TNF_OK;
}

tnf_status tnf_load_tensor_make(tnf_load_tensor *w, tnf_device *device, const tnf_device_request *r,
                                tnf_error *e)
{
    TNF_TRY(tnf_check_reserved(r->reserved, sizeof r->reserved, e));
    TNF_TRY(find_part(&w->part, r, e));
    w->dst = r->dst;
    w->count = 1;
    w->unit = w->unit_out = 1;
    tnf_status status = tensor_bytes(w, device, r, e);
    if (status != TNF_OK) {
        char name[100];
        tnf_error_prefix(e, tnf_quote(name, sizeof name, r->object->name.p, r->object->name.n));
        return status;
    }
    if (w->count < 2) {
        w->count = w->run ? 1 : 0;
        w->stride = w->run;
    }
    atomic_init(&w->left, w->run * w->count);
    if (r->dst && r->dst_bytes != w->bytes)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s has %llu bytes, but its memory has %zu",
                        TNF_QUOTED(r->object->name), (unsigned long long)w->bytes, r->dst_bytes);
    return TNF_OK;
}
