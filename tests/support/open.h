/* SPDX-License-Identifier: MIT */
/* Opens bytes in memory, reads everything in them, saves them elsewhere. */
#ifndef TNF_SUPPORT_OPEN_H
#define TNF_SUPPORT_OPEN_H

#include "check.h"
#include "files.h"
#include <string.h>
#include <tenfold/build.h>
#include <tenfold/tenfold.h>

#define OPEN_MAX_PAYLOAD ((uint64_t)32 << 20)

static inline tnf_status open_bytes(tnf_file **out, const void *p, size_t n,
                                    const tnf_open_options *options, tnf_error *error)
{
    tnf_source *source;
    *out = NULL;
    MUST(tnf_source_memory(&source, p, n, NULL) == TNF_OK);
    begin_error(error);
    tnf_status status = tnf_open_source(out, source, options, error);
    end_error(status, error);
    return status;
}

static volatile uint8_t open_eaten;

/* Reads every byte, so a sanitizer finds invalid reads. */
static inline void eat_bytes(const void *p, size_t n)
{
    uint64_t sum = 0, word; /* a sanitizer looks at each word once */
    for (; n >= sizeof word; p = (const uint8_t *)p + sizeof word, n -= sizeof word) {
        memcpy(&word, p, sizeof word);
        sum ^= word;
    }
    for (size_t i = 0; i < n; i++)
        sum ^= ((const uint8_t *)p)[i];
    open_eaten = (uint8_t)(sum ^ sum >> 32);
}

static inline void eat_value(const tnf_value *v)
{
    switch (v->kind) {
    case TNF_STRING:
    case TNF_BYTES:
    case TNF_JSON:
        eat_bytes(v->as.s, v->n + 1); /* with the NUL */
        break;
    case TNF_ARRAY:
        for (size_t i = 0; i < v->n; i++)
            eat_value(&v->as.items[i]);
        break;
    case TNF_MAP:
        for (size_t i = 0; i < v->n; i++) {
            eat_bytes(v->as.members[i].key.p, v->as.members[i].key.n + 1);
            eat_value(&v->as.members[i].value);
        }
        break;
    default:
        break;
    }
}

/* A part's bytes, or NULL if they cannot be read. The caller frees them. */
static inline uint8_t *read_part(const tnf_part *part, tnf_status *status)
{
    tnf_error error;
    uint8_t *p = malloc(part->nbytes ? (size_t)part->nbytes : 1);
    MUST(p != NULL);
    memset(p, 0xa5, (size_t)part->nbytes);
    begin_error(&error);
    *status = tnf_read_part(p, (size_t)part->nbytes, part, 0, &error);
    end_error(*status, &error);
    if (*status == TNF_OK)
        return p;
    free(p);
    return NULL;
}

/* Reads one part and compares it with the bytes of the file. Missing bytes must not be read. */
static inline void check_part(const tnf_part *part, const void *file, size_t n, const char *name)
{
    tnf_status status;
    if (part->payload == TNF_AT && part->nbytes > n) { /* declared, but missing */
        uint8_t byte;
        tnf_error error;
        status = tnf_read_part(&byte, 1, part, part->nbytes - 1, &error);
        check_error(status, &error);
        CHECK(status != TNF_OK, "'%s' can be read though it is larger than the file", name);
        return;
    }
    if (part->nbytes > OPEN_MAX_PAYLOAD)
        return;
    uint8_t *p = read_part(part, &status);
    bool other = status == TNF_EDIGEST; /* a view is not checked */
    if (p && part->payload == TNF_AT) {
        bool inside = part->nbytes == 0 || (part->offset <= n && part->nbytes <= n - part->offset);
        if (CHECK(inside, "'%s' is read from beyond the file", name) &&
            !(part->flags & TNF_PART_BIG_ENDIAN))
            CHECK(part->nbytes == 0 ||
                      memcmp(p, (const uint8_t *)file + part->offset, (size_t)part->nbytes) == 0,
                  "'%s' has bytes that are not those of the file", name);
    }
    const void *view;
    tnf_error error;
    begin_error(&error);
    status = tnf_map(&view, part, &error);
    end_error(status, &error);
    CHECK(status != TNF_OK || p || other, "'%s' can be mapped but not read", name);
    if (status == TNF_OK && p)
        CHECK(memcmp(view, p, (size_t)part->nbytes) == 0, "'%s' is another when mapped", name);
    free(p);
}

/* Every part of every tensor, and every extra. `bytes` is NULL if the parts are in several
 * files. */
static inline void check_parts(const tnf_file *file, const void *bytes, size_t n)
{
    const tnf_info *info = tnf_file_info(file);
    for (size_t i = 0; i < info->objects; i++) {
        const tnf_object *o = tnf_at(file, i);
        for (uint16_t p = 0; p < o->nparts; p++) {
            tnf_status status;
            if (bytes)
                check_part(&o->parts[p], bytes, n, o->name.p);
            else if (o->parts[p].nbytes <= OPEN_MAX_PAYLOAD)
                free(read_part(&o->parts[p], &status));
        }
    }
    for (size_t i = 0; i < info->nextras; i++)
        if (bytes)
            check_part(&info->extras[i].bytes, bytes, n, info->extras[i].key.p);
}

/* Reads the complete listing of a file: names, shapes, attributes, warnings. */
static inline void eat_listing(const tnf_file *file)
{
    const tnf_info *info = tnf_file_info(file);
    eat_bytes(info->format, strlen(info->format));
    eat_bytes(info->version, strlen(info->version));
    eat_value(info->attrs);
    for (size_t i = 0; i < info->objects; i++) {
        const tnf_object *o = tnf_at(file, i);
        eat_bytes(o->name.p, o->name.n + 1);
        eat_bytes(o->shape, o->rank * sizeof *o->shape);
        eat_bytes(tnf_layout_id(o->layout), strlen(tnf_layout_id(o->layout)));
        if (o->attrs)
            eat_value(o->attrs);
        for (uint16_t p = 0; p < o->nparts; p++) {
            eat_bytes(o->parts[p].role, strlen(o->parts[p].role));
            eat_bytes(o->parts[p].type->id, strlen(o->parts[p].type->id));
        }
        CHECK(tnf_find_n(file, o->name.p, o->name.n) != NULL, "'%s' is not found", o->name.p);
    }
    CHECK(tnf_at(file, info->objects) == NULL, "one tensor too many");
    for (size_t i = 0; i < info->nextras; i++)
        eat_bytes(info->extras[i].key.p, info->extras[i].key.n + 1);
    for (size_t i = 0; i < info->nwarnings; i++)
        eat_bytes(info->warnings[i].message, strlen(info->warnings[i].message));
}

static inline tnf_status verify_all(const tnf_file *file, tnf_error *error)
{
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    begin_error(error);
    tnf_status status = tnf_verify(&result, file, NULL, error);
    end_error(status, error);
    return status;
}

/* Saves to memory. NULL and *status on failure; the caller closes the result. */
static inline tnf_sink *save_as(const tnf_file *file, const tnf_save_options *options,
                                tnf_status *status, tnf_error *error)
{
    tnf_builder *b;
    tnf_sink *sink;
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    MUST(tnf_sink_memory(&sink, NULL) == TNF_OK);
    begin_error(error);
    *status = tnf_builder_add_file(b, file, error);
    if (*status == TNF_OK)
        *status = tnf_save_sink(b, sink, options, error);
    end_error(*status, error);
    tnf_builder_free(b);
    if (*status == TNF_OK)
        return sink;
    tnf_sink_close(sink);
    return NULL;
}

static inline tnf_sink *save_bytes(const tnf_file *file, const char *format, bool allow_loss,
                                   tnf_status *status, tnf_error *error)
{
    tnf_save_options o = { .size = sizeof o, .format = format, .allow_loss = allow_loss };
    o.as_is = true;
    return save_as(file, &o, status, error);
}

/* The i-th format that can be written, or NULL past the last. */
static inline const char *writable_format(size_t i)
{
    tnf_format_info info = TNF_FORMAT_INFO_INIT;
    for (size_t at = 0; tnf_format_at(&info, at); at++)
        if (info.caps & TNF_CAN_WRITE && i-- == 0)
            return info.name;
    return NULL;
}

#endif
