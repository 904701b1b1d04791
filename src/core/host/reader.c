/* SPDX-License-Identifier: MIT */
/* Functions that formats call while they index: bounded reads, and adding objects with the checks
 * that every format needs. */
#include "core/core.h"
#include <tenfold/bind.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------------- warnings */

static void keep_warning(tnf_file *f, const tnf_warning *w)
{
    if (f->nwarnings >= TNF_MAX_WARNINGS)
        return;
    if (!f->warnings)
        f->warnings = tnf_arena_array(&f->arena, TNF_MAX_WARNINGS, sizeof *f->warnings);
    char *copy = tnf_arena_str(&f->arena, w->message, strlen(w->message));
    if (f->warnings && copy) /* if there is no memory, the warning is dropped */
        f->warnings[f->nwarnings++] = (tnf_warning) { w->offset, copy };
}

static void warn_text(tnf_file *f, uint64_t offset, const char *text)
{
    tnf_warning w = { offset, text };
    keep_warning(f, &w);
    if (f->options.warn)
        f->options.warn(f->options.ctx, &w);
}

void tnf_warn(tnf_reader *r, uint64_t offset, const char *format, ...)
{
    char text[240];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    warn_text(r->file, offset, text);
}

/* Keeps a copy of the loss. */
static void note_loss(tnf_file *f, const struct loss *what)
{
    struct loss *loss = tnf_arena_alloc(&f->arena, sizeof *loss);
    const char *message = loss ? tnf_arena_str(&f->arena, what->message, strlen(what->message))
                               : NULL;
    const char *name = message && what->name.p
                           ? tnf_arena_str(&f->arena, what->name.p, what->name.n)
                           : NULL;
    f->needed_lenience = true;
    if (!message || (what->name.p && !name)) {
        f->loss_unnoted = f->loss_unnoted || !what->harmless; /* opening fails later */
        return;
    }
    *loss = *what;
    loss->next = NULL;
    loss->name.p = name;
    loss->message = message;
    *f->last_loss = loss;
    f->last_loss = &loss->next;
    warn_text(f, what->offset, message);
}

tnf_status tnf_stricter(tnf_reader *r, tnf_error *e, tnf_status status, uint64_t offset,
                        const char *format, ...)
{
    char text[240];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!r->lenient)
        return tnf_fail(e, status, offset, "%s", text);
    if (r->salvage) { /* missing bytes are a loss */
        struct loss loss = { .status = status, .offset = offset, .message = text };
        loss.harmless = status != TNF_ETRUNCATED;
        note_loss(r->file, &loss);
        return TNF_OK;
    }
    r->file->needed_lenience = true;
    warn_text(r->file, offset, text);
    return TNF_OK;
}

tnf_status tnf_stricter_odd(void *reader, tnf_status status, uint64_t offset, const char *text,
                            tnf_error *e)
{
    return tnf_stricter(reader, e, status, offset, "%s", text);
}

void tnf_note_fault(tnf_reader *r, tnf_status status, uint64_t offset, const char *text)
{
    struct loss loss = { .status = status, .offset = offset, .message = text, .harmless = true };
    note_loss(r->file, &loss);
}

bool tnf_lose(tnf_reader *r, tnf_status status, const tnf_error *e)
{
    if (!r->salvage || !tnf_is_file_fault(status))
        return false;
    struct loss loss = {
        .status = e->status, .rule = e->rule, .offset = e->offset, .message = e->message
    };
    note_loss(r->file, &loss);
    return true;
}

bool tnf_lose_tensor(tnf_reader *r, tnf_str name, uint64_t offset, bool implied, const char *why)
{
    struct loss loss = {
        .status = TNF_EFORMAT, .name = name, .offset = offset, .message = why, .implied = implied
    };
    if (r->salvage)
        note_loss(r->file, &loss);
    return r->salvage;
}

void tnf_trace(tnf_reader *r, uint64_t offset, const char *format, ...)
{
    if (!r->file->options.trace)
        return;
    char text[240];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->file->options.trace(r->file->options.ctx, offset, text);
}

bool tnf_is_claimed(const tnf_reader *r)
{
    return r->file->claim.fd >= 0 || r->file->replaced;
}

/* ------------------------------------------------------------------ bytes */

tnf_status tnf_read_range(tnf_reader *r, const char *what, uint64_t offset, uint64_t n,
                          uint64_t max, tnf_cur *out, tnf_error *e)
{
    uint64_t cap = max < r->limits.header_bytes ? max : r->limits.header_bytes;
    uint64_t size = r->source->size;
    if (n > cap)
        return tnf_fail(
            e, TNF_ELIMIT, offset,
            "the file says that the %s has %llu bytes; at most %llu are allowed%s", what,
            (unsigned long long)n, (unsigned long long)cap,
            n <= max && n <= size ? ": raise the limit 'header_bytes' if you trust the file" : "");
    uint64_t here = offset < size ? size - offset : 0;
    if (n > here)
        return tnf_fail(e, TNF_ETRUNCATED, size,
                        "the file ends inside the %s: %s missing (cut short?)", what,
                        TNF_BYTES_ARE(n - here));
    uint8_t *bytes = tnf_arena_raw(r->scratch, n);
    if (!bytes)
        return tnf_arena_fail(r->scratch, what, e);
    TNF_TRY(tnf_source_read(r->source, offset, bytes, (size_t)n, e));
    tnf_trace(r, offset, "%s, %llu bytes", what, (unsigned long long)n);
    *out = tnf_cur_over(bytes, (size_t)n, offset);
    return TNF_OK;
}

/* ---------------------------------------------------------------- objects */

static tnf_status check_name(tnf_reader *r, tnf_str name, uint64_t at, tnf_error *e)
{
    if (name.n > r->limits.name_bytes)
        return tnf_fail(e, TNF_ELIMIT, at,
                        "a name has %zu bytes; at most %u are allowed: raise the limit "
                        "'name_bytes' if you trust the file",
                        name.n, r->limits.name_bytes);
    if (r->catalog->n >= r->limits.objects)
        return tnf_fail(
            e, TNF_ELIMIT, at,
            "there are more than %llu tensors: raise the limit 'objects' if you trust the file",
            (unsigned long long)r->limits.objects);
    return TNF_OK;
}

tnf_status tnf_check_rank(const tnf_reader *r, tnf_str name, uint32_t rank, uint64_t at,
                          tnf_error *e)
{
    if (rank > r->limits.rank)
        return tnf_fail(
            e, TNF_ELIMIT, at,
            "%s has %u dimensions; at most %u are allowed: raise the limit 'rank' if you "
            "trust the file",
            TNF_QUOTED(name), rank, r->limits.rank);
    return TNF_OK;
}

static tnf_status check_shape(tnf_reader *r, const tnf_object *o, uint64_t at, tnf_error *e)
{
    uint64_t elements;
    TNF_TRY(tnf_check_rank(r, o->name, o->rank, at, e));
    if (!tnf_shape_elements(&elements, o->shape, o->rank))
        return tnf_fail(e, TNF_EFORMAT, at, "the shape of %s has more than 2^64 elements",
                        TNF_QUOTED(o->name));
    return TNF_OK;
}

/* Checks everything but the sizes, and adds the object. */
static tnf_status add_checked(tnf_reader *r, const tnf_object *o, uint64_t at, tnf_error *e)
{
    size_t names = r->catalog->names.used;
    bool may = r->file->format->rules & TNF_RULE_NAMES_MAY_REPEAT;
    unsigned policy = may          ? TNF_NAMES_FIRST_FOUND
                      : r->lenient ? TNF_NAMES_LATER_FOUND
                                   : TNF_NAMES_ONCE;
    tnf_status status = tnf_catalog_add(r->catalog, o, policy, e);
    if (status == TNF_EEXISTS)
        return tnf_fail(e, TNF_EFORMAT, at, "the tensor %s occurs twice", TNF_QUOTED(o->name));
    TNF_TRY(status);
    if (r->catalog->names.used == names)
        tnf_warn(r, at, "the tensor %s occurs twice; the %s one is used", TNF_QUOTED(o->name),
                 may ? "first" : "later");
    uint64_t bytes = o->nparts ? o->parts->nbytes : 0;
    if (r->file->options.trace)
        tnf_trace(r, at, "tensor %s: %s, %u dimension%s, %llu byte%s", TNF_QUOTED(o->name),
                  o->layout->id, o->rank, o->rank == 1 ? "" : "s", (unsigned long long)bytes,
                  bytes == 1 ? "" : "s");
    return TNF_OK;
}

/* The sizes of an unreadable tensor are not checked. */
static bool is_readable(const tnf_object *o)
{
    for (uint16_t i = 0; i < o->nparts; i++)
        if (o->parts[i].flags & TNF_PART_UNREADABLE)
            return false;
    return true;
}

tnf_status tnf_add_object(tnf_reader *r, const tnf_object *object, uint64_t at, tnf_error *e)
{
    TNF_TRY(check_name(r, object->name, at, e));
    TNF_TRY(check_shape(r, object, at, e));
    for (uint16_t i = 0; i < object->nparts; i++) {
        tnf_part *p = tnf_part_mutable(&object->parts[i]);
        if (!p->origin && p->payload != TNF_MEMORY)
            p->origin = &r->file->origin;
    }
    bool known = object->layout != &tnf_layout_missing && is_readable(object);
    tnf_status status = known ? tnf_layout_check(object, e) : TNF_OK;
    if (status != TNF_OK) {
        if (e && e->offset == TNF_NO_OFFSET)
            e->offset = at;
        return status;
    }
    return add_checked(r, object, at, e);
}

tnf_status tnf_add_parts(tnf_reader *r, const tnf_object *object, const tnf_layout *layout,
                         const tnf_part *parts, uint16_t nparts, uint64_t at, tnf_error *e)
{
    tnf_object whole = *object;
    whole.layout = layout;
    whole.parts = parts;
    whole.nparts = nparts;
    return tnf_add_object(r, &whole, at, e);
}

/* The number of bytes must be the one that shape and type need. */
static tnf_status check_length(tnf_reader *r, const tnf_dense *d, bool *fits, tnf_error *e)
{
    uint64_t elements = 0, want = 0;
    char shape[80];
    bool known = tnf_shape_elements(&elements, d->shape, d->rank) &&
                 tnf_type_bytes(&want, d->type, elements);
    *fits = known && want == d->length;
    if (*fits)
        return TNF_OK;
    tnf_shape_text(shape, sizeof shape, &(tnf_object) { .shape = d->shape, .rank = d->rank });
    return tnf_stricter(r, e, TNF_EFORMAT, d->at,
                        "%s has %llu bytes, but its shape %s of %s needs %s%llu",
                        TNF_QUOTED(d->name), (unsigned long long)d->length, shape, d->type->id,
                        known ? "" : "more than ", (unsigned long long)(known ? want : UINT64_MAX));
}

tnf_status tnf_add_dense(tnf_reader *r, const tnf_dense *d, tnf_error *e)
{
    tnf_part part = {
        .role = "data",
        .type = d->type,
        .origin = &r->file->origin,
        .offset = d->offset,
        .stored = d->length,
        .nbytes = d->length,
        .payload = TNF_AT,
        .flags = d->flags,
    };
    tnf_object object = {
        .name = d->name,
        .shape = d->shape,
        .layout = &tnf_layout_dense,
        .parts = &part,
        .attrs = d->attrs,
        .rank = d->rank,
        .nparts = 1,
        .order = d->rank > 1 ? (uint8_t)d->order : TNF_ORDER_C,
    };
    bool fits;
    TNF_TRY(check_name(r, d->name, d->at, e));
    TNF_TRY(check_shape(r, &object, d->at, e));
    TNF_TRY(check_length(r, d, &fits, e));
    if (!fits)
        part.flags |= TNF_PART_UNREADABLE;
    return add_checked(r, &object, d->at, e);
}

tnf_status tnf_add_extra(tnf_reader *r, const char *key, uint64_t offset, uint64_t n, tnf_error *e)
{
    tnf_extra extra = { .key = { key, strlen(key) },
                        .bytes = { .role = "data",
                                   .type = tnf_type_of(TNF_U8),
                                   .origin = &r->file->origin,
                                   .offset = offset,
                                   .stored = n,
                                   .nbytes = n,
                                   .payload = TNF_AT } };
    return tnf_catalog_add_extra(r->catalog, &extra, e);
}

tnf_status tnf_set_attr(tnf_reader *r, const char *key, tnf_value value, tnf_error *e)
{
    return tnf_attrs_set(&r->catalog->attrs, key, strlen(key), value, e);
}

tnf_status tnf_text_value(tnf_reader *r, tnf_value *out, tnf_str text, tnf_error *e)
{
    const char *copy = tnf_arena_str(r->arena, text.n ? text.p : "", text.n);
    if (!copy)
        return tnf_arena_fail(r->arena, "attributes", e);
    *out = tnf_value_utf8((tnf_str) { copy, text.n });
    return TNF_OK;
}

tnf_status tnf_set_text(tnf_reader *r, tnf_str key, tnf_str value, tnf_error *e)
{
    tnf_arena *a = r->arena;
    const char *k = tnf_arena_str(a, key.p, key.n), *v = tnf_arena_str(a, value.p, value.n);
    if (!k || !v)
        return tnf_arena_fail(a, "metadata", e);
    TNF_TRY(tnf_attrs_push(&r->file->text, k, tnf_value_str(TNF_STRING, v, value.n), e));
    r->file->text.members[r->file->text.n - 1].key.n = key.n; /* the key may contain NULs */
    return TNF_OK;
}

tnf_status tnf_cannot_map(const char *why, tnf_error *e)
{
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET, "the bytes cannot be mapped, only read: %s",
                    why);
}
