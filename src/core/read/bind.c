/* SPDX-License-Identifier: MIT */
/* Tensors by name, checked; their values are mapped or copied to the caller's memory. */
#include "base/sized.h"
#include "core/core.h"
#include "core/read/place.h"
#include "model/layout.h"
#include <tenfold/bind.h>

#include <stdio.h>
#include <string.h>

static size_t put_name(char *out, size_t n, size_t at, const char *text)
{
    for (; *text; text++, at++)
        if (n && at < n - 1)
            out[at] = *text;
    return at;
}

/* `open`: a dimension may be TNF_ANY. A file may contain that number as well. */
static size_t dims_text(char *out, size_t n, const uint64_t *dims, uint32_t rank, bool open)
{
    size_t at = put_name(out, n, 0, "[");
    for (uint32_t i = 0; i < rank; i++) {
        char number[24];
        bool any = !dims || (open && dims[i] == TNF_ANY);
        snprintf(number, sizeof number, "%llu", any ? 0ULL : (unsigned long long)dims[i]);
        at = put_name(out, n, at, i ? "," : "");
        at = put_name(out, n, at, any ? "?" : number);
    }
    at = put_name(out, n, at, "]");
    if (n)
        out[at < n ? at : n - 1] = 0;
    return at;
}

size_t tnf_shape_text(char *out, size_t n, const tnf_object *object)
{
    return object ? dims_text(out, n, object->shape, object->rank, false)
                  : dims_text(out, n, NULL, 1, true);
}

static bool shape_fits(const tnf_object *o, uint32_t rank, const uint64_t *shape)
{
    if (rank == TNF_ANY_RANK)
        return true;
    if (o->rank != rank)
        return false;
    for (uint32_t i = 0; shape && i < rank; i++)
        if (shape[i] != TNF_ANY && shape[i] != 0 && shape[i] != o->shape[i])
            return false;
    return true;
}

tnf_status tnf_expect(const tnf_object *o, const tnf_type *type, uint32_t rank,
                      const uint64_t *shape, tnf_error *e)
{
    if (!o)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no such tensor");
    if (!tnf_missing_file(o))
        TNF_TRY(tnf_object_there(o, e));
    if (strcmp(tnf_layout_id(o->layout), "dense") != 0 || o->nparts != 1)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s has the layout %s, but must be dense",
                        TNF_QUOTED(o->name), tnf_layout_id(o->layout));
    if (type && o->parts->type != type)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s has the type %s, but must have %s",
                        TNF_QUOTED(o->name), o->parts->type->id, type->id);
    if (!shape_fits(o, rank, shape)) {
        char has[64], wants[64];
        tnf_shape_text(has, sizeof has, o);
        dims_text(wants, sizeof wants, shape, rank, true);
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "%s has the shape %s, but must have %s",
                        TNF_QUOTED(o->name), has, wants);
    }
    return TNF_OK;
}

/* Are its elements stored row by row? */
static bool is_by_rows(const tnf_object *o)
{
    return o->order == TNF_ORDER_C || o->rank < 2;
}

static tnf_str binding_name(const tnf_binding *b)
{
    return (tnf_str) { b->name, b->name_bytes ? b->name_bytes : strlen(b->name) };
}

static tnf_status look_up_tensor(const tnf_file *file, tnf_binding *b, tnf_error *e)
{
    const tnf_str wanted = binding_name(b);
    b->view = NULL;
    b->object = tnf_find_n(file, wanted.p, wanted.n);
    if (!b->object)
        return tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "there is no tensor %s",
                        TNF_QUOTED(wanted));
    TNF_TRY(tnf_expect(b->object, b->type, b->rank, b->shape, e));
    tnf_status status = is_by_rows(b->object) ? tnf_map(&b->view, b->object->parts, e)
                                              : tnf_cannot_map("it is stored column by column", e);
    if (status == TNF_OK)
        return TNF_OK;
    if (!b->dst || status != TNF_EUNSUPPORTED) {
        tnf_error_prefix(e, TNF_QUOTED(wanted));
        return status;
    }
    if (b->n < b->object->parts->nbytes)
        return tnf_fail(
            e, TNF_EINVAL, TNF_NO_OFFSET, "%s has %llu bytes, but there is room for only %zu",
            TNF_QUOTED(b->object->name), (unsigned long long)b->object->parts->nbytes, b->n);
    return TNF_OK;
}

static tnf_status look_at_all(const tnf_file *file, tnf_binding *bindings, size_t n,
                              tnf_bind_problem_fn problem, void *ctx, tnf_error *e)
{
    tnf_status first = TNF_OK;
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) {
        tnf_error why;
        tnf_status status = tnf_check_reserved(bindings[i].reserved, sizeof bindings[i].reserved,
                                               &why);
        if (status == TNF_OK)
            status = look_up_tensor(file, &bindings[i], &why);
        if (status == TNF_OK)
            continue;
        if (problem)
            problem(ctx, &bindings[i], &why);
        if (wrong++ == 0) {
            first = status;
            if (e)
                *e = why;
        }
    }
    if (wrong > 1 && e) {
        size_t at = strlen(e->message);
        snprintf(e->message + at, sizeof e->message - at, " (and %zu more)", wrong - 1);
    }
    return first;
}

static tnf_status read_by_rows(const tnf_binding *b, tnf_error *e)
{
    const tnf_object *o = b->object;
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_slice *all = tnf_alloc0(&a, o->rank * sizeof *all);
    if (!all)
        return tnf_no_memory("a selection", e);
    for (uint32_t i = 0; i < o->rank; i++)
        all[i] = (tnf_slice) { .step = 1, .count = o->shape[i] };
    tnf_status status = tnf_read_slice(b->dst, (size_t)o->parts->nbytes, o, all, e);
    tnf_free(&a, all, o->rank * sizeof *all);
    return status;
}

static tnf_status read_all(tnf_binding *bindings, size_t n, tnf_request *requests, tnf_error *e)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        tnf_binding *b = &bindings[i];
        if (b->view)
            continue;
        if (is_by_rows(b->object))
            requests[count++] = (tnf_request) { b->object->parts, b->dst };
        else
            TNF_TRY(read_by_rows(b, e));
    }
    TNF_TRY(tnf_read_many(requests, count, NULL, e));
    for (size_t i = 0; i < n; i++)
        if (!bindings[i].view)
            bindings[i].view = bindings[i].dst;
    return TNF_OK;
}

tnf_status tnf_bind(const tnf_file *file, tnf_binding *bindings, size_t n,
                    tnf_bind_problem_fn problem, void *ctx, tnf_error *e)
{
    TNF_TRY(tnf_need(file, "file", e));
    TNF_TRY(tnf_need_array(bindings, n, "bindings", e));
    /* Checks all names before `problem` is called, which may print them. */
    for (size_t i = 0; i < n; i++)
        if (!bindings[i].name)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "binding %zu has no name", i);
    TNF_TRY(look_at_all(file, bindings, n, problem, ctx, e));
    tnf_allocator a = tnf_allocator_or_default(NULL);
    size_t size = (n + 1) * sizeof(tnf_request);
    tnf_request *requests = tnf_alloc(&a, size);
    if (!requests)
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for %zu reads", n);
    tnf_status status = read_all(bindings, n, requests, e);
    tnf_free(&a, requests, size);
    return status;
}
