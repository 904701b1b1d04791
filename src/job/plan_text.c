/* SPDX-License-Identifier: MIT */
/* Writes the plan as JSON, with one line per item, and parses it.
 *
 *   {"tenfold_plan":1,"job":"convert","id":"…","parts":64,"leaf":4194304,
 *    "options":{…},
 *    "inputs":[
 *   {"path":"…","size":N,"identity":{"mtime_ns":…},"header_sha256":"…","shards":[…]}],
 *    "output":{"mode":"range","format":"safetensors","path":"…","files":[{"path":"…","size":N}]},
 *    "items":[
 *   {"part":0,"in":0,"index":3,"tensor":"w","role":"data","offset":O,"bytes":L,"cost":L,
 *    "first_leaf":0,"leaves":12,"out":0,"at":P}, …]}
 *
 * The id is the SHA-256 of this text without the id, the paths and the identities. So the same work
 * has the same id, independent of the location of its files.
 */
#include "base/decimal.h"
#include "base/str.h"
#include "job/rows.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 16u

/* -------------------------------------------------------------------- to text */

static void put_plain(tnf_buf *b, const char *text)
{
    tnf_row_text(b, (tnf_str) { text, strlen(text) });
}

static void put_text(tnf_buf *b, const char *key, const char *text)
{
    tnf_buf_puts(b, ",");
    tnf_row_key(b, key, text);
}

static void put_list(tnf_buf *b, const char *key, const char *const *list, size_t n)
{
    tnf_buf_printf(b, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) {
        tnf_buf_puts(b, i ? "," : "");
        put_plain(b, list[i]);
    }
    tnf_buf_puts(b, "]");
}

static void put_options(tnf_buf *b, const tnf_job *job)
{
    const tnf_job_options *o = &job->o;
    tnf_buf_printf(b, "\"options\":{\"lenient\":%s", o->lenient ? "true" : "false");
    put_text(b, "read_format", o->read_format);
    if (job->kind == TNF_JOB_CONVERT) {
        tnf_buf_puts(b, ",\"writer\":[");
        for (size_t i = 0; i < o->noptions; i++) {
            tnf_buf_puts(b, i ? ",[" : "[");
            put_plain(b, o->options[i].key);
            tnf_buf_puts(b, ",");
            put_plain(b, o->options[i].value);
            tnf_buf_puts(b, "]");
        }
        tnf_buf_puts(b, "]");
        put_list(b, "select", o->select, o->nselect);
        put_list(b, "exclude", o->exclude, o->nexclude);
        put_text(b, "dtype", o->dtype);
        tnf_buf_printf(b, ",\"allow_loss\":%s,\"replace\":%s,\"max_bytes\":%" PRIu64,
                       o->allow_loss ? "true" : "false", o->replace ? "true" : "false",
                       o->max_bytes);
    }
    if (job->kind == TNF_JOB_SIMILAR) {
        put_list(b, "queries", o->queries, o->nqueries);
        tnf_buf_printf(b, ",\"k\":%" PRIu64, o->k);
    }
    if (job->kind == TNF_JOB_DIFF) { /* tolerances are texts, so they are restored exactly */
        char rtol[TNF_F64_TEXT], atol[TNF_F64_TEXT];
        tnf_buf_printf(b, ",\"numeric\":%s,\"rtol\":\"%s\",\"atol\":\"%s\"",
                       o->numeric ? "true" : "false", tnf_f64_text(rtol, o->rtol),
                       tnf_f64_text(atol, o->atol));
    }
    tnf_buf_puts(b, "}");
}

static void put_pin(tnf_buf *b, const char *key, const struct job_pin *pin, bool bare)
{
    if (!bare || strcmp(key, "path") != 0) {
        tnf_buf_printf(b, "\"%s\":", key);
        put_plain(b, pin->name);
        tnf_buf_puts(b, ",");
    }
    tnf_buf_printf(b, "\"size\":%" PRIu64, pin->size);
    if (bare)
        return;
    tnf_buf_puts(b, ",\"identity\":{");
    if (pin->dated) {
        tnf_buf_printf(b, "\"mtime_ns\":%" PRIu64, pin->mtime_ns);
    } else if (pin->etag) {
        tnf_buf_puts(b, "\"etag\":");
        put_plain(b, pin->etag);
    }
    tnf_buf_puts(b, "}");
}

static void put_inputs(tnf_buf *b, const tnf_job *job, bool bare)
{
    tnf_buf_puts(b, "\"inputs\":[");
    for (size_t i = 0; i < job->o.ninputs; i++) {
        const struct job_input *in = &job->inputs[i];
        tnf_buf_puts(b, i ? ",\n{" : "\n{");
        put_pin(b, "path", &in->own, bare);
        tnf_buf_printf(b, ",\"header_sha256\":\"%s\",\"shards\":[", in->header);
        for (size_t k = 0; k < in->nshards; k++) {
            tnf_buf_puts(b, k ? ",\n{" : "\n{");
            put_pin(b, "name", &in->shards[k], bare);
            tnf_buf_puts(b, "}");
        }
        tnf_buf_puts(b, "]}");
    }
    tnf_buf_puts(b, "]");
}

static void put_output(tnf_buf *b, const tnf_job *job, bool bare)
{
    tnf_buf_printf(b, "\"output\":{\"mode\":\"%s\"", job->mode);
    put_text(b, "format", job->format);
    if (!bare)
        put_text(b, "path", job->o.out);
    if (!bare)
        put_text(b, "index", job->index);
    tnf_buf_puts(b, ",\"files\":[");
    for (size_t i = 0; i < job->nouts; i++) {
        tnf_buf_puts(b, i ? ",\n{" : "{");
        tnf_buf_printf(b, "\"size\":%" PRIu64, job->outs[i].size);
        if (!bare)
            put_text(b, "path", job->outs[i].path);
        tnf_buf_puts(b, "}");
    }
    tnf_buf_puts(b, "]}");
}

static void put_item(tnf_buf *b, const tnf_job *job, const struct job_item *it)
{
    const char *first = job->kind == TNF_JOB_SIMILAR ? "first_row" : "first_leaf";
    const char *n = job->kind == TNF_JOB_SIMILAR ? "rows" : "leaves";
    tnf_buf_printf(b, "{\"part\":%" PRIu64, it->part);
    if (it->index != TNF_NO_INDEX)
        tnf_buf_printf(b, ",\"in\":%zu,\"index\":%zu", it->in, it->index);
    if (it->tensor.p) {
        tnf_buf_puts(b, ",");
        tnf_row_name(b, "tensor", it->tensor);
    }
    if (*it->role)
        put_text(b, "role", it->role);
    if (it->k)
        tnf_buf_printf(b, ",\"k\":%" PRIu32, it->k);
    tnf_buf_printf(b, ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"cost\":%" PRIu64, it->offset,
                   it->bytes, it->cost);
    if (!it->whole)
        tnf_buf_printf(b, ",\"%s\":%" PRIu64 ",\"%s\":%" PRIu64, first, it->first, n, it->n);
    if (job->nouts)
        tnf_buf_printf(b, ",\"out\":%zu,\"at\":%" PRIu64, it->out, it->at);
    tnf_buf_puts(b, it->atom ? ",\"atom\":true}" : "}");
}

void tnf_job_put(tnf_buf *b, const tnf_job *job, bool bare)
{
    tnf_buf_printf(b, "{\"tenfold_plan\":%d,\"job\":\"%s\"", TNF_PLAN_VERSION,
                   tnf_job_names[job->kind]);
    if (!bare)
        put_text(b, "id", job->id);
    tnf_buf_printf(b, ",\"parts\":%" PRIu64 ",\"leaf\":%u,\n", job->o.parts, TNF_LEAF_BYTES);
    put_options(b, job);
    tnf_buf_puts(b, ",\n");
    put_inputs(b, job, bare);
    tnf_buf_puts(b, ",\n");
    put_output(b, job, bare);
    tnf_buf_puts(b, ",\n\"items\":[");
    for (size_t i = 0; i < job->nitems; i++) {
        tnf_buf_puts(b, i ? ",\n" : "\n");
        put_item(b, job, &job->items[i]);
    }
    tnf_buf_puts(b, "]}\n");
}

/* ------------------------------------------------------------------ from text */

struct reading {
    tnf_json j;
    tnf_job *job;
    tnf_status status; /* an error without memory */
    tnf_error *e;
};

static bool take_copy(struct reading *r, const char **out)
{
    tnf_str text;
    if (tnf_json_peek(&r->j) == 'n') {
        *out = NULL;
        return tnf_json_skip(&r->j, NULL);
    }
    if (!tnf_row_take_text(&r->j, &text))
        return false;
    if (r->status == TNF_OK)
        r->status = tnf_job_copy(out, r->job, text.p, text.n, r->e);
    return r->status == TNF_OK;
}

static bool take_size(struct reading *r, size_t *out)
{
    uint64_t v;
    if (!tnf_json_u64(&r->j, &v))
        return false;
    *out = v < SIZE_MAX ? (size_t)v : SIZE_MAX - 1;
    return true;
}

/* Makes room for one more item of an array in the arena. */
static void *grow_array(struct reading *r, void *items, size_t n, size_t *room, size_t size)
{
    void *more = r->status == TNF_OK ? tnf_arena_grow(&r->job->arena, items, n, room, size, 8)
                                     : NULL;
    if (!more && r->status == TNF_OK)
        r->status = tnf_arena_fail(&r->job->arena, "the plan", r->e);
    return more;
}

static void take_list(struct reading *r, const char *const **out, size_t *n)
{
    const char **list = NULL;
    size_t room = 0;
    *n = 0;
    if (tnf_json_enter(&r->j, '['))
        while (tnf_json_item(&r->j)) {
            list = grow_array(r, list, *n, &room, sizeof *list);
            if (!list || !take_copy(r, &list[*n]))
                return;
            ++*n;
        }
    *out = list;
}

static void take_writer(struct reading *r)
{
    tnf_option *list = NULL;
    size_t room = 0, n = 0;
    if (tnf_json_enter(&r->j, '['))
        while (tnf_json_item(&r->j)) {
            list = grow_array(r, list, n, &room, sizeof *list);
            if (!list || !tnf_json_enter(&r->j, '[') || !tnf_json_item(&r->j) ||
                !take_copy(r, &list[n].key) || !tnf_json_item(&r->j) ||
                !take_copy(r, &list[n].value) || tnf_json_item(&r->j))
                return;
            n++;
        }
    r->job->o.options = list;
    r->job->o.noptions = n;
}

static void take_double(struct reading *r, double *out)
{
    tnf_str text;
    if (tnf_json_string(&r->j, &text) && !tnf_f64_parse(out, text.p, text.n))
        (void)tnf_json_fail(&r->j, TNF_EFORMAT, tnf_json_where(&r->j),
                            "the tolerance is not a number");
}

static void take_option(struct reading *r, tnf_str key)
{
    tnf_job_options *o = &r->job->o;
    const struct {
        const char *name;
        const char **text;
    } texts[] = { { "read_format", &o->read_format }, { "dtype", &o->dtype } };
    const struct {
        const char *name;
        bool *flag;
    } flags[] = { { "lenient", &o->lenient },
                  { "allow_loss", &o->allow_loss },
                  { "replace", &o->replace },
                  { "numeric", &o->numeric } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (tnf_str_is(key, texts[i].name)) {
            (void)take_copy(r, texts[i].text);
            return;
        }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (tnf_str_is(key, flags[i].name)) {
            (void)tnf_json_bool(&r->j, flags[i].flag);
            return;
        }
    if (tnf_str_is(key, "writer"))
        take_writer(r);
    else if (tnf_str_is(key, "select"))
        take_list(r, &o->select, &o->nselect);
    else if (tnf_str_is(key, "exclude"))
        take_list(r, &o->exclude, &o->nexclude);
    else if (tnf_str_is(key, "queries"))
        take_list(r, &o->queries, &o->nqueries);
    else if (tnf_str_is(key, "max_bytes"))
        (void)tnf_json_u64(&r->j, &o->max_bytes);
    else if (tnf_str_is(key, "k"))
        (void)tnf_json_u64(&r->j, &o->k);
    else if (tnf_str_is(key, "rtol"))
        take_double(r, &o->rtol);
    else if (tnf_str_is(key, "atol"))
        take_double(r, &o->atol);
    else
        (void)tnf_json_skip(&r->j, NULL);
}

static bool take_identity(struct reading *r, struct job_pin *pin)
{
    if (tnf_json_enter(&r->j, '{'))
        for (tnf_str key; tnf_json_key(&r->j, &key);) {
            pin->dated = tnf_str_is(key, "mtime_ns") || pin->dated;
            if (tnf_str_is(key, "mtime_ns") ? !tnf_json_u64(&r->j, &pin->mtime_ns)
                : tnf_str_is(key, "etag")   ? !take_copy(r, &pin->etag)
                                            : !tnf_json_skip(&r->j, NULL))
                return false;
        }
    return r->j.status == TNF_OK;
}

/* Takes a member of a pin; returns false if it is another member, or after an error. */
static bool take_pin(struct reading *r, tnf_str key, const char *name, struct job_pin *pin)
{
    if (tnf_str_is(key, name))
        return take_copy(r, &pin->name) && pin->name;
    if (tnf_str_is(key, "size"))
        return tnf_json_u64(&r->j, &pin->size);
    return tnf_str_is(key, "identity") && take_identity(r, pin);
}

static void take_shards(struct reading *r, struct job_input *in)
{
    size_t room = 0;
    if (!tnf_json_enter(&r->j, '['))
        return;
    while (tnf_json_item(&r->j)) {
        in->shards = grow_array(r, in->shards, in->nshards, &room, sizeof *in->shards);
        if (!in->shards || !tnf_json_enter(&r->j, '{'))
            return;
        struct job_pin *pin = &in->shards[in->nshards++];
        *pin = (struct job_pin) { .name = "" };
        for (tnf_str key; tnf_json_key(&r->j, &key);)
            if (!take_pin(r, key, "name", pin))
                (void)tnf_json_skip(&r->j, NULL);
    }
}

static void take_header(struct reading *r, char out[TNF_ID_BYTES])
{
    tnf_str text;
    if (!tnf_json_string(&r->j, &text))
        return;
    if (text.n != TNF_ID_BYTES - 1)
        tnf_json_fail(&r->j, TNF_EFORMAT, tnf_json_where(&r->j), "a hash must have 64 digits");
    else
        memcpy(out, text.p, text.n);
}

static void take_inputs(struct reading *r)
{
    tnf_job *job = r->job;
    size_t room = 0, paths = 0;
    const char **names = NULL;
    if (!tnf_json_enter(&r->j, '['))
        return;
    while (tnf_json_item(&r->j)) {
        job->inputs = grow_array(r, job->inputs, job->o.ninputs, &room, sizeof *job->inputs);
        names = grow_array(r, names, job->o.ninputs, &paths, sizeof *names);
        if (!job->inputs || !names || !tnf_json_enter(&r->j, '{'))
            return;
        struct job_input *in = &job->inputs[job->o.ninputs];
        *in = (struct job_input) { .own = { .name = "" } };
        for (tnf_str key; tnf_json_key(&r->j, &key);)
            if (tnf_str_is(key, "shards"))
                take_shards(r, in);
            else if (tnf_str_is(key, "header_sha256"))
                take_header(r, in->header);
            else if (!take_pin(r, key, "path", &in->own))
                (void)tnf_json_skip(&r->j, NULL);
        names[job->o.ninputs++] = in->own.name;
        job->o.inputs = names;
    }
}

static void take_files(struct reading *r)
{
    tnf_job *job = r->job;
    size_t room = 0;
    if (!tnf_json_enter(&r->j, '['))
        return;
    while (tnf_json_item(&r->j)) {
        job->outs = grow_array(r, job->outs, job->nouts, &room, sizeof *job->outs);
        if (!job->outs || !tnf_json_enter(&r->j, '{'))
            return;
        struct job_out *out = &job->outs[job->nouts++];
        *out = (struct job_out) { .path = NULL };
        for (tnf_str key; tnf_json_key(&r->j, &key);)
            (void)(tnf_str_is(key, "path")   ? take_copy(r, &out->path)
                   : tnf_str_is(key, "size") ? tnf_json_u64(&r->j, &out->size)
                                             : tnf_json_skip(&r->j, NULL));
    }
}

static void take_output(struct reading *r)
{
    tnf_job *job = r->job;
    const char *mode = NULL;
    if (!tnf_json_enter(&r->j, '{'))
        return;
    for (tnf_str key; tnf_json_key(&r->j, &key);) {
        if (tnf_str_is(key, "files"))
            take_files(r);
        else
            (void)(tnf_str_is(key, "mode")     ? take_copy(r, &mode)
                   : tnf_str_is(key, "format") ? take_copy(r, &job->format)
                   : tnf_str_is(key, "path")   ? take_copy(r, &job->o.out)
                   : tnf_str_is(key, "index")  ? take_copy(r, &job->index)
                                               : tnf_json_skip(&r->j, NULL));
    }
    job->mode = mode ? mode : "rows";
}

static bool take_name(struct reading *r, tnf_str *out)
{
    const char *text = NULL;
    tnf_str name;
    if (!tnf_row_take_text(&r->j, &name))
        return false;
    if (r->status == TNF_OK)
        r->status = tnf_job_copy(&text, r->job, name.p, name.n, r->e);
    *out = (tnf_str) { text, name.n };
    return r->status == TNF_OK;
}

static void take_member(struct reading *r, struct job_item *it, tnf_str key)
{
    uint64_t k = it->k;
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = { { "part", &it->part },       { "offset", &it->offset },
                    { "bytes", &it->bytes },     { "first_leaf", &it->first },
                    { "leaves", &it->n },        { "cost", &it->cost },
                    { "first_row", &it->first }, { "rows", &it->n },
                    { "at", &it->at },           { "k", &k } };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (tnf_str_is(key, numbers[i].name)) {
            (void)tnf_json_u64(&r->j, numbers[i].number);
            it->k = k <= UINT16_MAX ? (uint32_t)k : UINT16_MAX;
            it->whole = it->whole && !tnf_str_is(key, "leaves") && !tnf_str_is(key, "rows");
            return;
        }
    (void)(tnf_str_is(key, "in")       ? take_size(r, &it->in)
           : tnf_str_is(key, "index")  ? take_size(r, &it->index)
           : tnf_str_is(key, "out")    ? take_size(r, &it->out)
           : tnf_str_is(key, "tensor") ? take_name(r, &it->tensor)
           : tnf_str_is(key, "role")   ? take_copy(r, &it->role)
           : tnf_str_is(key, "atom")   ? tnf_json_bool(&r->j, &it->atom)
                                       : tnf_json_skip(&r->j, NULL));
}

static void take_items(struct reading *r)
{
    if (!tnf_json_enter(&r->j, '['))
        return;
    while (tnf_json_item(&r->j)) {
        struct job_item it = { .index = TNF_NO_INDEX, .role = "", .whole = true };
        if (!tnf_json_enter(&r->j, '{'))
            return;
        for (tnf_str key; tnf_json_key(&r->j, &key);)
            take_member(r, &it, key);
        it.role = it.role ? it.role : "";
        if (r->status == TNF_OK && r->j.status == TNF_OK)
            r->status = tnf_job_unit(r->job, &it, r->e);
    }
}

static void take_job(struct reading *r)
{
    tnf_str name;
    if (!tnf_json_string(&r->j, &name))
        return;
    for (unsigned i = 0; i < TNF_JOB_KINDS; i++)
        if (tnf_str_is(name, tnf_job_names[i]))
            r->job->kind = (tnf_job_kind)i;
}

static void take_plan(struct reading *r, uint64_t *version, char id[TNF_ID_BYTES])
{
    if (!tnf_json_enter(&r->j, '{'))
        return;
    for (tnf_str key; tnf_json_key(&r->j, &key);) {
        if (tnf_str_is(key, "job"))
            take_job(r);
        else if (tnf_str_is(key, "id"))
            take_header(r, id);
        else if (tnf_str_is(key, "inputs"))
            take_inputs(r);
        else if (tnf_str_is(key, "output"))
            take_output(r);
        else if (tnf_str_is(key, "items"))
            take_items(r);
        else if (tnf_str_is(key, "options") && tnf_json_enter(&r->j, '{'))
            for (tnf_str option; tnf_json_key(&r->j, &option);)
                take_option(r, option);
        else
            (void)(tnf_str_is(key, "tenfold_plan") ? tnf_json_u64(&r->j, version)
                   : tnf_str_is(key, "parts")      ? tnf_json_u64(&r->j, &r->job->o.parts)
                                                   : tnf_json_skip(&r->j, NULL));
    }
}

/* ---------------------------------------------------------------------- check */

static bool item_fits(const tnf_job *job, size_t i)
{
    const struct job_item *it = &job->items[i];
    bool convert = job->kind == TNF_JOB_CONVERT;
    if (it->part >= job->o.parts || (i > 0 && it->part < it[-1].part))
        return false;
    if (!convert)
        return it->index != TNF_NO_INDEX && it->in < job->o.ninputs && job->nouts == 0;
    if (it->out >= job->nouts || (i > 0 && it->out < it[-1].out))
        return false;
    if (it->whole)
        return strcmp(job->mode, "whole") == 0;
    uint64_t size = job->outs[it->out].size;
    bool behind = i == 0 || it[-1].out != it->out || it->at >= it[-1].at + it[-1].bytes;
    return it->at <= size && it->bytes <= size - it->at && behind && it->bytes > 0 &&
           it->n == it->bytes / TNF_LEAF_BYTES + (it->bytes % TNF_LEAF_BYTES != 0);
}

static tnf_status check_plan(const tnf_job *job, tnf_error *e)
{
    bool good = job->o.parts > 0 && job->o.parts <= TNF_PARTS_MAX && job->o.ninputs > 0 &&
                (job->kind == TNF_JOB_CONVERT) == (job->nouts > 0) &&
                (job->kind != TNF_JOB_CONVERT || job->o.out) &&
                (job->kind != TNF_JOB_DIFF || job->o.ninputs == 2) &&
                (job->kind != TNF_JOB_SIMILAR || job->o.k > 0);
    for (size_t i = 0; i < job->nouts && good; i++)
        good = job->outs[i].path != NULL;
    for (size_t i = 0; i < job->nitems && good; i++)
        good = item_fits(job, i);
    return good ? TNF_OK
                : tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                           "the plan is inconsistent; make a new plan");
}

static tnf_status parse_plan(tnf_job *job, const char *text, size_t n, tnf_error *e)
{
    tnf_arena scratch;
    struct reading r = { .job = job, .e = e };
    uint64_t version = 0;
    char id[TNF_ID_BYTES] = "";
    tnf_scratch_begin(&scratch);
    tnf_json_init(&r.j, text, n, 0, &scratch, DEPTH, e);
    job->kind = TNF_JOB_KINDS;
    take_plan(&r, &version, id);
    tnf_status status = tnf_json_end(&r.j);
    status = r.status != TNF_OK ? r.status : status;
    tnf_arena_free(&scratch);
    TNF_TRY(status);
    if (version == 0 || job->kind == TNF_JOB_KINDS)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET, "the file is not a plan of tenfold");
    if (version != TNF_PLAN_VERSION)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "the plan has version %" PRIu64 ", but this tenfold supports version %d",
                        version, TNF_PLAN_VERSION);
    job->o.job = tnf_job_names[job->kind];
    TNF_TRY(check_plan(job, e));
    TNF_TRY(tnf_job_name(job, e));
    TNF_TRY(tnf_job_ready(job, e));
    return strcmp(id, job->id) == 0
               ? TNF_OK
               : tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                          "the plan was changed: its id does not match its content");
}

tnf_status tnf_job_parse(tnf_job **out, const char *text, size_t n, tnf_error *e)
{
    tnf_job *job;
    *out = NULL;
    TNF_TRY(tnf_need_array(text, n, "text", e));
    TNF_TRY(tnf_job_new(&job, e));
    tnf_status status = parse_plan(job, text, n, e);
    if (status == TNF_OK)
        *out = job;
    else
        tnf_job_free(job);
    return status;
}
