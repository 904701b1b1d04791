/* SPDX-License-Identifier: MIT */
/* Exports a view for other programs: as CSV, or as a file of one array, which the library's writer
 * of that format makes. */
#include "cat_export.h"
#include <stdlib.h>
#include <string.h>
#include <tenfold/build.h>
#include <tenfold/io.h>
#include <unistd.h>

#define ARRAY "arr_0" /* the name of arrays without a name */

/* --------------------------------------------------------------------- CSV */

static tnf_status csv_numbers(const view *v, tnf_error *error)
{
    uint64_t columns = v->rank == 2 ? v->shape[1] : 1, at = 0;
    blocks b;
    element_run e;
    tnf_status status = blocks_begin(&b, v, error);
    while (status == TNF_OK && (status = blocks_next(&b, error)) == TNF_OK && b.elements > 0) {
        elements_of(&e, v, b.bytes, b.elements);
        for (size_t i = 0; i < b.elements; i++) {
            char text[ELEMENT_TEXT];
            int n = element_text(&e, i, text);
            fwrite(text, 1, (size_t)n, stdout);
            at = at + 1 < columns ? at + 1 : 0;
            putc_unlocked(at ? ',' : '\n', stdout);
        }
    }
    blocks_end(&b);
    return status;
}

tnf_status export_csv(const view *v, tnf_error *error)
{
    if (is_strings(&v->object))
        return csv_strings(stdout, v, error);
    if (v->rank > 2u + is_words(v))
        return cat_fail(error, TNF_EINVAL,
                        "a table has at most two dimensions, this tensor has %u; use a slice, such "
                        "as 'NAME[0]'",
                        (unsigned)(v->rank - is_words(v)));
    return is_words(v) ? csv_words(stdout, v, error) : csv_numbers(v, error);
}

/* ------------------------------------------------------------------- array */

/* The bytes of a view, front to back: the writer requests them in ascending order. */
typedef struct stream {
    blocks blocks;
    size_t used;     /* of the block */
    uint64_t offset; /* of the next byte */
} stream;

static tnf_status fetch_bytes(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    stream *s = ctx;
    unsigned char *to = dst;
    if (offset != s->offset)
        return cat_fail(error, TNF_EINVAL, "an array can only be written front to back");
    for (size_t done = 0; done < n;) {
        if (s->used == s->blocks.n) {
            tnf_status status = blocks_next(&s->blocks, error);
            s->used = 0;
            if (status != TNF_OK)
                return status;
            if (s->blocks.elements == 0)
                return cat_fail(error, TNF_EIO, "there are fewer values than expected");
        }
        size_t left = s->blocks.n - s->used, take = left < n - done ? left : n - done;
        memcpy(to + done, s->blocks.bytes + s->used, take);
        s->used += take;
        done += take;
    }
    s->offset += n;
    return TNF_OK;
}

static void note_loss(void *ctx, const tnf_plan_item *item)
{
    if (item->fate == TNF_DROPPED && strcmp(item->kind, "tensor") == 0)
        *(bool *)ctx = true;
}

/* Strings are padded to one length. That loses nothing, unless a string ends with characters like
 * the padding, or one string is far longer than the others. */
static tnf_status check_strings(tnf_builder *builder, tnf_save_options how, tnf_error *error)
{
    bool lost = false;
    how.dry_run = true;
    how.plan = note_loss;
    how.ctx = &lost;
    tnf_status status = tnf_save_sink(builder, NULL, &how, error);
    return status == TNF_OK && lost
               ? cat_fail(error, TNF_EUNSUPPORTED,
                          "the strings do not fit into one array; use '#bytes' and '#offsets'")
               : status;
}

static tnf_status save_array(tnf_builder *builder, const char *format, bool strings, bool whole,
                             tnf_error *error)
{
    tnf_sink *sink;
    /* The user wants the values. Attributes may be lost, but the element type must be kept. */
    tnf_save_options how = { .size = sizeof how, .format = format, .allow_loss = true };
    how.loss = strings ? "tensor,attribute" : "attribute";
    how.order = whole ? NULL : "C"; /* slices are read in C order */
    tnf_status status = strings ? check_strings(builder, how, error) : TNF_OK;
    flush_out();
    if (status == TNF_OK)
        status = tnf_sink_fd(&sink, STDOUT_FILENO, error);
    if (status != TNF_OK)
        return status;
    status = tnf_save_sink(builder, sink, &how, error);
    tnf_sink_close(sink);
    return status;
}

static bool takes_all(const tnf_slice *s, uint64_t count)
{
    return !s->drop && s->step == 1 && s->count == count;
}

static bool takes_object(const view *v)
{
    for (uint32_t d = 0; d < v->object.rank; d++)
        if (!takes_all(&v->slices[d], v->object.shape[d]))
            return false;
    return v->object.parts != &v->part;
}

/* Are the attributes valid for the slice, too? They may describe elements that take the whole last
 * dimension (texts, structures); a part of that dimension is not such an element. */
static bool keeps_elements(const view *v)
{
    uint32_t axes, last = v->object.rank - 1;
    if (v->object.parts == &v->part || v->object.rank == 0)
        return false;
    return takes_all(&v->slices[last], v->object.shape[last]) ||
           (tnf_has_element_text(&axes, &v->object) && axes == 0);
}

static tnf_status add_slice(tnf_builder *builder, const view *v, stream *s, tnf_error *error)
{
    const tnf_value *attrs = v->object.attrs;
    const tnf_str name = { ARRAY, sizeof ARRAY - 1 };
    tnf_status status = tnf_builder_add_stream(builder, ARRAY, v->type, v->rank, v->shape,
                                               fetch_bytes, s, error);
    for (size_t i = 0; status == TNF_OK && keeps_elements(v) && attrs && i < attrs->n; i++)
        status = tnf_builder_set_n(builder, &name, attrs->as.members[i].key,
                                   &attrs->as.members[i].value, error);
    return status;
}

/* The error for an element type that NumPy does not have. */
static tnf_status no_such_type(const view *v, tnf_error *error)
{
    return cat_fail(error, TNF_ELOSSY,
                    "NumPy has no type like %s; use --raw to write the bytes, or 'tenfold convert "
                    "--allow-loss' to write an array of bytes",
                    v->type->id);
}

tnf_status export_array(const view *v, const char *extension, tnf_error *error)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    tnf_builder *builder;
    char path[32];
    snprintf(path, sizeof path, "x.%s", extension);
    tnf_status status = tnf_format_for_path(&f, path, error);
    bool strings = is_strings(&v->object), whole = takes_object(v);
    if (status == TNF_OK && (strings ? !whole : v->type->bits % 8 != 0))
        status = cat_fail(error, TNF_EUNSUPPORTED, "%s cannot be written as an array",
                          strings ? "a slice of a tensor of strings"
                                  : "elements of less than 8 bits");
    if (status == TNF_OK)
        status = tnf_builder_new(&builder, NULL, error);
    if (status != TNF_OK)
        return status;
    stream s = { .used = 0 };
    status = blocks_begin(&s.blocks, v, error);
    if (status == TNF_OK)
        status = whole ? tnf_builder_add_object(builder, &v->object, ARRAY, error)
                       : add_slice(builder, v, &s, error);
    if (status == TNF_OK)
        status = save_array(builder, f.name, strings, whole, error);
    if (status == TNF_ELOSSY)
        status = no_such_type(v, error);
    blocks_end(&s.blocks);
    tnf_builder_free(builder);
    return status;
}
