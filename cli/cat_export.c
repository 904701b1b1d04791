/* SPDX-License-Identifier: MIT */
/* A view as other programs take it: a table of commas, or a file of one array, by the library's own
 * writer of that format. */
#include "cat_export.h"
#include <stdlib.h>
#include <string.h>
#include <tenfold/build.h>
#include <tenfold/io.h>
#include <unistd.h>

/* --------------------------------------------------------------------- CSV */

static tnf_status csv_numbers(const view *v, tnf_error *error)
{
    uint64_t columns = v->rank == 2 ? v->shape[1] : 1, at = 0;
    blocks b;
    element_run e;
    tnf_status status = blocks_begin(&b, v, error);
    while (status == TNF_OK && (status = blocks_next(&b, error)) == TNF_OK && b.elements > 0) {
        elements_begin(&e, v->type, b.bytes, b.elements);
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
    if (v->rank > 2)
        return cat_fail(error, TNF_EINVAL,
                        "a table has two dimensions, this has %u: ask for a slice, as in "
                        "'NAME[0]'",
                        (unsigned)v->rank);
    return csv_numbers(v, error);
}

/* ------------------------------------------------------------------- array */

/* The bytes of a view, front to back: the writer asks for them in ascending order. */
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

static tnf_status save_array(tnf_builder *builder, const char *format, tnf_error *error)
{
    tnf_sink *sink;
    tnf_save_options how = { .size = sizeof how, .format = format };
    flush_out();
    tnf_status status = tnf_sink_fd(&sink, STDOUT_FILENO, error);
    if (status != TNF_OK)
        return status;
    status = tnf_save_sink(builder, sink, &how, error);
    tnf_sink_close(sink);
    return status;
}

tnf_status export_array(const view *v, const char *extension, tnf_error *error)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    tnf_builder *builder;
    char path[32];
    snprintf(path, sizeof path, "x.%s", extension);
    tnf_status status = tnf_format_for_path(&f, path, error);
    if (status == TNF_OK && (is_strings(&v->object) || v->type->bits % 8 != 0))
        status = cat_fail(error, TNF_EUNSUPPORTED,
                          "strings and elements of less than a byte are not written as an array");
    if (status == TNF_OK)
        status = tnf_builder_new(&builder, NULL, error);
    if (status != TNF_OK)
        return status;
    stream s = { .used = 0 };
    status = blocks_begin(&s.blocks, v, error);
    if (status == TNF_OK) /* the name that arrays without one have */
        status = tnf_builder_add_stream(builder, "arr_0", v->type, v->rank, v->shape, fetch_bytes,
                                        &s, error);
    if (status == TNF_OK)
        status = save_array(builder, f.name, error);
    blocks_end(&s.blocks);
    tnf_builder_free(builder);
    return status;
}
