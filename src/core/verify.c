/* SPDX-License-Identifier: MIT */
/* Verifying: what opening does not look at. Digests, the rules of layouts on their data, and on
 * request every number. One pass over each part, in blocks. */
#include "base/digest.h"
#include "core/core.h"

#include <math.h>
#include <string.h>

#define BLOCK    ((size_t)1 << 20)
#define ELEMENTS 512u /* decoded at a time */

struct check {
    const tnf_verify_options *options;
    tnf_verify_result *result;
    uint64_t done, total;
    uint8_t *block;
};

static void tell_problem(struct check *c, const tnf_object *o, const tnf_error *e)
{
    c->result->problems++;
    if (c->options && c->options->problem)
        c->options->problem(c->options->ctx,
                            &(tnf_problem) { e->status, e->offset, o, e->message });
}

/* A fault of the file is a problem to tell; any other stops the whole. */
static tnf_status told(struct check *c, const tnf_object *o, tnf_status status, tnf_error *error,
                       tnf_error *e)
{
    switch (status) {
    case TNF_OK:
        return TNF_OK;
    case TNF_EFORMAT:
    case TNF_ETRUNCATED:
    case TNF_EDIGEST:
    case TNF_EUNSUPPORTED:
    case TNF_ELIMIT:
        tell_problem(c, o, error);
        return TNF_OK;
    default:
        if (e)
            *e = *error;
        return status;
    }
}

static void count_values(tnf_value_counts *v, const tnf_type *type, const uint8_t *bytes,
                         size_t elements)
{
    double x[2 * ELEMENTS];
    size_t per = type->number == TNF_NUMBER_COMPLEX ? 2 : 1;
    for (size_t at = 0; at < elements; at += ELEMENTS) {
        size_t n = elements - at < ELEMENTS ? elements - at : ELEMENTS;
        if (!tnf_type_decode(type, bytes, at, n, x))
            return;
        for (size_t i = 0; i < n * per; i++) {
            bool first = v->elements == v->nan + v->inf;
            v->elements++;
            v->zero += x[i] == 0;
            if (isnan(x[i])) {
                v->nan++;
            } else if (isinf(x[i])) {
                v->inf++;
            } else {
                v->min = first || x[i] < v->min ? x[i] : v->min;
                v->max = first || x[i] > v->max ? x[i] : v->max;
            }
        }
    }
}

static tnf_status tell_progress(struct check *c, size_t n, tnf_error *e)
{
    c->done += n;
    if (!c->options || !c->options->progress ||
        c->options->progress(c->options->ctx, c->done, c->total))
        return TNF_OK;
    return tnf_fail(e, TNF_ECANCELLED, TNF_NO_OFFSET, "stopped on request");
}

/* One part on its way through. */
struct pass {
    struct check *c;
    const tnf_part *part;
    tnf_digester digester;
    tnf_value_counts *values; /* NULL: not wanted */
    uint64_t elements;        /* left to count */
};

static tnf_status take(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct pass *p = ctx;
    uint32_t bits = p->part->type->bits;
    if (p->digester.algorithm && !p->part->digest->of_stored)
        tnf_digest_update(&p->digester, bytes, n);
    if (p->values && bits) { /* blocks hold whole elements */
        uint64_t here = (uint64_t)n * 8 / bits;
        here = here < p->elements ? here : p->elements;
        count_values(p->values, p->part->type, bytes, (size_t)here);
        p->elements -= here;
    }
    return tell_progress(p->c, n, e);
}

static tnf_status digest_stored(struct pass *p, tnf_error *e)
{
    const tnf_part *part = p->part;
    for (uint64_t at = 0; at < part->stored; at += BLOCK) {
        size_t n = part->stored - at < BLOCK ? (size_t)(part->stored - at) : BLOCK;
        TNF_TRY(tnf_source_read(part->origin->source, part->offset + at, p->c->block, n, e));
        tnf_digest_update(&p->digester, p->c->block, n);
    }
    return TNF_OK;
}

static tnf_status compare_digest(const tnf_part *p, tnf_digester *d, tnf_error *e)
{
    uint8_t found[TNF_DIGEST_MAX];
    tnf_digest_end(d, found);
    if (memcmp(found, p->digest->bytes, p->digest->n) == 0)
        return TNF_OK;
    return tnf_fail(e, TNF_EDIGEST, p->payload <= TNF_ENCODED ? p->offset : TNF_NO_OFFSET,
                    "the bytes of part '%s' do not match their %s", p->role, p->digest->algorithm);
}

static tnf_status check_part(struct check *c, const tnf_part *p, tnf_value_counts *v,
                             uint64_t elements, tnf_error *e)
{
    struct pass pass = { .c = c, .part = p, .values = v, .elements = elements };
    const tnf_digest *d = p->digest;
    size_t n = d && d->algorithm ? tnf_digest_size(d->algorithm) : 0;
    bool digested = n > 0 && n == d->n && tnf_digest_begin(&pass.digester, d->algorithm);
    c->result->checked++;
    c->result->undigested += !digested;
    if (n > 0 && n != d->n)
        return tnf_fail(e, TNF_EDIGEST, p->payload <= TNF_ENCODED ? p->offset : TNF_NO_OFFSET,
                        "the digest of part '%s' has %zu bytes, a %s has %zu", p->role, d->n,
                        d->algorithm, n);
    if (!digested && !v && p->payload != TNF_ENCODED) /* but the last byte must be there */
        return tnf_read_part(p, p->nbytes ? p->nbytes - 1 : 0, c->block, p->nbytes ? 1 : 0, e);
    tnf_status status = digested && d->of_stored ? digest_stored(&pass, e) : TNF_OK;
    if (status == TNF_OK)
        status = tnf_scan(p, take, &pass, e);
    if (!digested)
        return status;
    if (status == TNF_OK)
        return compare_digest(p, &pass.digester, e);
    tnf_digest_end(&pass.digester, NULL);
    return status;
}

static tnf_status check_object(struct check *c, const tnf_object *o, tnf_error *e)
{
    bool values = c->options && c->options->values;
    tnf_value_counts v = { 0 };
    tnf_error error = { .offset = TNF_NO_OFFSET };
    for (uint16_t i = 0; i < o->nparts; i++) {
        bool counted = values && o->layout == &tnf_layout_dense;
        tnf_status status = check_part(c, &o->parts[i], counted ? &v : NULL, tnf_elements(o),
                                       &error);
        TNF_TRY(told(c, o, status, &error, e));
        if (status != TNF_OK)
            return TNF_OK;
    }
    if (o->layout->check_data)
        TNF_TRY(told(c, o, o->layout->check_data(o, tnf_read_part, &error), &error, e));
    if (values && o->layout == &tnf_layout_dense)
        c->options->values(c->options->ctx, o, &v);
    return TNF_OK;
}

tnf_status tnf_verify(tnf_verify_result *out, const tnf_file *file,
                      const tnf_verify_options *options, tnf_error *e)
{
    *out = (tnf_verify_result) { 0 };
    struct check c = { .options = options, .result = out, .total = file->info.payload };
    tnf_allocator a = tnf_allocator_or_default(&file->alloc);
    if (!(c.block = tnf_alloc(&a, BLOCK)))
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for verifying");
    tnf_status status = TNF_OK;
    for (size_t i = 0; i < file->catalog.n && status == TNF_OK; i++)
        status = check_object(&c, &file->catalog.objects[i], e);
    tnf_free(&a, c.block, BLOCK);
    return status;
}
