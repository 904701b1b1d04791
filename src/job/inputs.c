/* SPDX-License-Identifier: MIT */
/* The inputs of a plan. Each worker opens them and compares them with the plan.
 *
 *   size, time     of each file, cheap to compare; the time may be waived. A remote object has an
 *                  ETag instead of the time
 *   header         the hash of everything in the header: names, types, shapes, places, attributes
 */
#include "base/hex.h"
#include "job/job.h"
#include "wire/json.h"
#include <tenfold/remote.h>

#include <string.h>

#define VALUE_MAX ((uint64_t)256 << 20)

/* ------------------------------------------------------------------- names */

static tnf_status show_url(tnf_job *job, struct job_input *in, tnf_error *e)
{
    size_t n = strlen(in->own.name) + 1;
    char *shown = tnf_arena_alloc(&job->arena, n);
    if (!shown)
        return tnf_arena_fail(&job->arena, "the plan", e);
    tnf_show_url(shown, n, in->own.name);
    in->shown = shown;
    return TNF_OK;
}

tnf_status tnf_job_name(tnf_job *job, tnf_error *e)
{
    for (size_t i = 0; i < job->o.ninputs; i++) {
        struct job_input *in = &job->inputs[i];
        in->shown = in->own.name;
        if (tnf_is_url(in->own.name))
            TNF_TRY(show_url(job, in, e));
    }
    return TNF_OK;
}

/* ------------------------------------------------------------------ header */

static tnf_status put_value(tnf_digester *d, const tnf_value *value, tnf_buf *text, tnf_error *e)
{
    text->n = 0;
    if (value)
        tnf_json_put_typed(text, value);
    TNF_TRY(tnf_buf_status(text, "an attribute", e));
    tnf_content_text(d, text->p, text->n);
    return TNF_OK;
}

static void put_part(tnf_digester *d, const tnf_part *p)
{
    tnf_content_text(d, p->role, strlen(p->role));
    tnf_content_text(d, p->type->id, strlen(p->type->id));
    tnf_content_number(d, p->nbytes);
    tnf_content_number(d, p->payload);
    tnf_content_number(d, p->payload <= TNF_ENCODED ? p->offset : 0);
    tnf_content_number(d, p->payload <= TNF_ENCODED ? p->stored : 0);
    tnf_content_number(d, p->codec);
}

static tnf_status put_object(tnf_digester *d, const tnf_object *o, tnf_buf *text, tnf_error *e)
{
    const char *layout = tnf_layout_id(o->layout);
    tnf_content_text(d, o->name.p, o->name.n);
    tnf_content_text(d, layout, strlen(layout));
    tnf_content_number(d, o->order);
    tnf_content_number(d, o->rank);
    for (uint32_t i = 0; i < o->rank; i++)
        tnf_content_number(d, o->shape[i]);
    tnf_content_number(d, o->nparts);
    for (uint16_t k = 0; k < o->nparts; k++)
        put_part(d, &o->parts[k]);
    return put_value(d, o->attrs, text, e);
}

static tnf_status put_header(tnf_digester *d, const tnf_file *file, tnf_buf *text, tnf_error *e)
{
    const tnf_info *info = tnf_file_info(file);
    tnf_content_text(d, info->format, strlen(info->format));
    tnf_content_number(d, info->objects);
    for (size_t i = 0; i < info->objects; i++)
        TNF_TRY(put_object(d, tnf_at(file, i), text, e));
    tnf_content_number(d, info->nextras);
    for (size_t i = 0; i < info->nextras; i++) {
        tnf_content_text(d, info->extras[i].key.p, info->extras[i].key.n);
        put_part(d, &info->extras[i].bytes);
    }
    return put_value(d, info->attrs, text, e);
}

static tnf_status hash_header(char out[TNF_ID_BYTES], const tnf_file *file, tnf_error *e)
{
    tnf_digester d;
    uint8_t hash[TNF_HASH_BYTES];
    tnf_buf text;
    TNF_TRY(tnf_content_begin(&d, "tenfold header 1\n", e));
    tnf_text_begin(&text, VALUE_MAX);
    tnf_status status = put_header(&d, file, &text, e);
    tnf_digest_end(&d, status == TNF_OK ? hash : NULL);
    tnf_buf_free(&text);
    TNF_TRY(status);
    *tnf_hex_put(out, hash, sizeof hash) = 0;
    return TNF_OK;
}

/* -------------------------------------------------------------------- pins */

static struct job_pin pin_of(const char *name, const tnf_source *source)
{
    const tnf_stamp *s = &source->stamp;
    struct job_pin pin = { .name = name, .size = source->size, .dated = s->ino != 0 };
    pin.etag = source->version;
    if (pin.dated)
        pin.mtime_ns = (uint64_t)s->modified.tv_sec * 1000000000u + (uint64_t)s->modified.tv_nsec;
    return pin;
}

/* Notes the identity of a source. The texts are copied, so they outlive the source. */
static tnf_status note_pin(tnf_job *job, struct job_pin *out, const char *name,
                           const tnf_source *source, tnf_error *e)
{
    *out = pin_of(name, source);
    return out->etag ? tnf_job_copy(&out->etag, job, out->etag, strlen(out->etag), e) : TNF_OK;
}

static tnf_status note_shards(tnf_job *job, struct job_input *in, const struct sibling *all,
                              tnf_error *e)
{
    size_t n = 0;
    for (const struct sibling *s = all; s; s = s->next)
        n += s->file != NULL;
    in->shards = tnf_arena_array(&job->arena, n + 1, sizeof *in->shards);
    if (!in->shards)
        return tnf_arena_fail(&job->arena, "the plan", e);
    for (const struct sibling *s = all; s; s = s->next) {
        const char *name;
        if (!s->file)
            continue;
        TNF_TRY(tnf_job_copy(&name, job, s->name, strlen(s->name), e));
        TNF_TRY(note_pin(job, &in->shards[in->nshards++], name, s->file->source, e));
    }
    return TNF_OK;
}

static tnf_status note_input(tnf_job *job, struct job_input *in, tnf_error *e)
{
    const tnf_file *file = in->file;
    TNF_TRY(note_pin(job, &in->own, in->own.name, file->source, e));
    TNF_TRY(note_shards(job, in, file->siblings, e));
    return hash_header(in->header, file, e);
}

static tnf_status fail_changed(const char *name, const char *what, tnf_error *e)
{
    return tnf_fail(e, TNF_ECHANGED, TNF_NO_OFFSET,
                    "%s: the input is not the one that was planned: %s", TNF_VISIBLE(name), what);
}

static tnf_status check_pin(const struct job_pin *pin, const char *shown, const tnf_source *source,
                            bool trust, tnf_error *e)
{
    struct job_pin now = pin_of(pin->name, source);
    if (now.size != pin->size)
        return fail_changed(shown, "it has another size", e);
    if (!trust && pin->dated && now.dated && now.mtime_ns != pin->mtime_ns)
        return fail_changed(shown, "it was changed, or is a copy; --trust-content skips this check",
                            e);
    if (!trust && pin->etag && !now.etag)
        return fail_changed(shown, "its server gives no ETag now; --trust-content skips this check",
                            e);
    if (!trust && pin->etag && strcmp(now.etag, pin->etag) != 0)
        return fail_changed(
            shown,
            "it has another ETag, so it is another version; --trust-content skips this check", e);
    return TNF_OK;
}

static tnf_status check_shards(const struct job_input *in, bool trust, tnf_error *e)
{
    size_t n = 0;
    for (const struct sibling *s = in->file->siblings; s; s = s->next) {
        if (!s->file)
            continue;
        if (n == in->nshards || strcmp(in->shards[n].name, s->name) != 0)
            return fail_changed(in->shown, "it has other files", e);
        TNF_TRY(check_pin(&in->shards[n], s->name, s->file->source, trust, e));
        n++;
    }
    return n == in->nshards ? TNF_OK : fail_changed(in->shown, "it has other files", e);
}

static tnf_status check_input(const struct job_input *in, bool trust, tnf_error *e)
{
    char header[TNF_ID_BYTES];
    TNF_TRY(check_pin(&in->own, in->shown, in->file->source, trust, e));
    TNF_TRY(check_shards(in, trust, e));
    TNF_TRY(hash_header(header, in->file, e));
    return strcmp(header, in->header) == 0 ? TNF_OK
                                           : fail_changed(in->shown, "its header differs", e);
}

/* -------------------------------------------------------------------- open */

/* A truncated or replaced file might not even open. Since the planned file could be opened, the
 * error is that the input has changed. */
static tnf_status open_failed(const struct job_input *in, bool pinned, tnf_error *e)
{
    tnf_error why = *e;
    bool fault = tnf_is_file_fault(why.status) || why.status == TNF_ENOTFOUND;
    if (pinned && fault)
        return tnf_fail(e, TNF_ECHANGED, why.offset,
                        "%s: the input is not the one that was planned: %.250s",
                        TNF_VISIBLE(in->shown), why.message);
    tnf_error_prefix(e, in->shown);
    return why.status;
}

tnf_status tnf_job_open(tnf_job *job, bool pinned, const tnf_job_how *how, tnf_error *e)
{
    for (size_t i = 0; i < job->o.ninputs; i++) {
        struct job_input *in = &job->inputs[i];
        tnf_open_options open = TNF_OPEN_INIT;
        tnf_error why = { .offset = TNF_NO_OFFSET };
        open.format = job->o.read_format;
        open.lenient = job->o.lenient;
        if (in->file)
            continue;
        tnf_status status = tnf_open(&in->file, in->own.name, &open, &why);
        if (status != TNF_OK) {
            status = open_failed(in, pinned, &why);
            if (e)
                *e = why;
            return status;
        }
        if (!in->file)
            return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "the input is not open");
        TNF_TRY(pinned ? check_input(in, how->trust_content, e) : note_input(job, in, e));
    }
    return TNF_OK;
}

void tnf_job_close(tnf_job *job)
{
    for (size_t i = 0; job->inputs && i < job->o.ninputs; i++) {
        tnf_close(job->inputs[i].file);
        job->inputs[i].file = NULL;
    }
}
