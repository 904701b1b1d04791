/* SPDX-License-Identifier: MIT */
/* Data of a model in a second file.
 *
 *   model    [dims type name (location: NAME) (offset: "4096") (length: "1200") data_location: 1]
 *   NAME     raw data ░░ raw data ░░░ raw data      each at a multiple of `align`
 */
#include "formats/onnx/onnx.h"

#include <stdio.h>
#include <string.h>

enum { AUTO, NEVER, ALWAYS };

#define AUTO_FROM  ((uint64_t)1536 << 20) /* larger models are written in two files by default */
#define AUTO_LEAST 1024u /* smaller tensors stay in the model: programs read shapes early */
#define MAX_ALIGN  ((uint64_t)1 << 30)

/* Writes one of the pairs that locate external data. */
static size_t put_pair(uint8_t *out, const char *key, const char *value, size_t n)
{
    uint8_t number[10];
    size_t at = 0, nkey = strlen(key), length = 2 + nkey + 1 + tnf_protobuf_put(number, n) + n;
    out[at++] = OX_EXTERNAL << 3 | TNF_PROTOBUF_LENGTH;
    at += tnf_protobuf_put(out + at, length);
    out[at++] = 1 << 3 | TNF_PROTOBUF_LENGTH;
    out[at++] = (uint8_t)nkey;
    memcpy(out + at, key, nkey);
    at += nkey;
    out[at++] = 2 << 3 | TNF_PROTOBUF_LENGTH;
    at += tnf_protobuf_put(out + at, n);
    memcpy(out + at, value, n);
    return at + n;
}

size_t tnf_ox_put_place(uint8_t out[OX_MAX_PLACE], const ox_outside *x, uint64_t offset, uint64_t n)
{
    char number[24];
    size_t at = put_pair(out, "location", x->location.p, x->location.n);
    int digits = snprintf(number, sizeof number, "%llu", (unsigned long long)offset);
    at += put_pair(out + at, "offset", number, (size_t)digits);
    digits = snprintf(number, sizeof number, "%llu", (unsigned long long)n);
    at += put_pair(out + at, "length", number, (size_t)digits);
    out[at++] = OX_LOCATION << 3 | TNF_PROTOBUF_VARINT;
    out[at++] = 1;
    return at;
}

/* The place of the next tensor in the second file. */
static bool next_place(uint64_t *out, uint64_t end, uint64_t align)
{
    uint64_t rest = align > 1 ? end % align : 0;
    return tnf_ckd_add(out, end, rest ? align - rest : 0);
}

bool tnf_ox_is_outside(const ox_outside *x, const tnf_object *o)
{
    return x->location.n && o->parts->nbytes >= x->least;
}

tnf_status tnf_ox_go_outside(uint64_t *at, ox_outside *x, const tnf_object *o, tnf_error *e)
{
    if (!next_place(at, x->end, x->align) || !tnf_ckd_add(&x->end, *at, o->parts->nbytes))
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the tensors exceed 2^64 bytes");
    tnf_buf_put(&x->objects, &o, sizeof o);
    return tnf_buf_status(&x->objects, "the model", e);
}

tnf_status tnf_ox_put_outside(tnf_writer *w, const ox_outside *x, tnf_error *e)
{
    const tnf_object *const *objects = (const tnf_object *const *)(const void *)x->objects.p;
    size_t n = x->objects.n / sizeof *objects;
    if (n == 0 || !tnf_begin_second_file(w))
        return TNF_OK;
    for (size_t i = 0; i < n; i++) {
        uint64_t at = 0;
        if (!next_place(&at, w->sink->written, x->align))
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the tensors exceed 2^64 bytes");
        TNF_TRY(tnf_put_fill(w, 0, at - w->sink->written, e));
        TNF_TRY(tnf_put_data(w, objects[i]->parts, e));
    }
    tnf_end_second_file(w);
    return TNF_OK;
}

tnf_status tnf_ox_too_large(tnf_error *e)
{
    return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                    "the model would exceed 2 GiB, which no program can load; -o external=always "
                    "puts the data into a second file");
}

tnf_status tnf_ox_choose_place(ox_outside *x, tnf_writer *w, const tnf_value *model, tnf_error *e)
{
    const tnf_option_value *o = w->options;
    uint64_t total = model->n;
    char *made;
    for (size_t i = 0; i < w->catalog->n; i++)
        for (uint16_t k = 0; k < w->catalog->objects[i].nparts; k++)
            if (!tnf_ckd_add(&total, total, w->catalog->objects[i].parts[k].nbytes))
                return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the tensors exceed 2^64 bytes");
    bool wanted = o[OX_WRITE_EXTERNAL].u == ALWAYS ||
                  (o[OX_WRITE_EXTERNAL].u == AUTO && w->name && total > AUTO_FROM);
    if (!wanted)
        return total > OX_MAX_FILE ? tnf_ox_too_large(e) : TNF_OK;
    if (o[OX_WRITE_ALIGN].u > MAX_ALIGN)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the option align can be at most 1 GiB");
    x->align = o[OX_WRITE_ALIGN].u;
    x->least = o[OX_WRITE_EXTERNAL].u == ALWAYS ? 1 : AUTO_LEAST;
    x->location = (tnf_str) { o[OX_WRITE_LOCATION].s, strlen(o[OX_WRITE_LOCATION].s) };
    if (x->location.n == 0 && w->name) {
        size_t n = strlen(w->name) + sizeof ".data";
        made = tnf_arena_raw(w->scratch, n);
        if (!made)
            return tnf_arena_fail(w->scratch, "a name", e);
        snprintf(made, n, "%s.data", w->name);
        x->location = (tnf_str) { made, n - 1 };
    }
    if (!w->name)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "data cannot be in a second file, because the output has no file name: "
                        "write to a path");
    if (x->location.n > OX_MAX_LOCATION)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the name of the second file has more than 255 bytes");
    return tnf_make_second_file(w, &x->location, e);
}
