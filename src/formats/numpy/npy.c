/* SPDX-License-Identifier: MIT */
/* NumPy's .npy files, which contain one array.
 *
 *   "\x93NUMPY"  u8 major  u8 minor=0       1, 2 or 3
 *   u16 n (version 1) or u32 n (2 and 3)    little-endian
 *   header   n bytes: a Python dict as text, spaces, a line feed
 *            latin-1 (versions 1 and 2) or UTF-8 (version 3)
 *   data     the elements, row by row or column by column, little- or big-endian, as the header
 * says …        bytes that numpy.load() ignores
 *
 * The writer writes the same bytes as numpy.save(). The reader follows numpy.load(), except for
 * object arrays: they are pickles, which are never executed.
 */
#include "formats/numpy/array.h"
#include "formats/numpy/pickle.h"

#include <stdio.h>
#include <string.h>

#define NAME     "arr_0" /* NumPy's name for an array without a name */
#define TRAILING "numpy.trailing"

static int probe_npy(const tnf_probe *p)
{
    size_t n = p->nhead < NP_MAGIC_N ? p->nhead : NP_MAGIC_N;
    if (n == NP_MAGIC_N && memcmp(p->head, NP_MAGIC, n) == 0)
        return TNF_PROBE_MAGIC;
    return strcmp(p->ext, "npy") == 0 && n > 0 ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
}

/* ---------------------------------------------------------------- reading */

/* Reads everything before the data; the cursor is over the header's text. */
static tnf_status open_header(tnf_reader *r, unsigned *major, tnf_cur *c, tnf_error *e)
{
    TNF_TRY(tnf_read_range(r, "magic", 0, NP_MAGIC_N + 2, NP_MAGIC_N + 2, c, e));
    if (memcmp(c->p, NP_MAGIC, NP_MAGIC_N) != 0)
        return tnf_fail(e, TNF_EFORMAT, 0, "the file does not begin with \\x93NUMPY");
    TNF_TRY(tnf_np_version(major, c->p, 0, e));
    r->version = tnf_np_versions[*major];
    unsigned prefix = tnf_np_prefix(*major);
    TNF_TRY(tnf_read_range(r, "header length", 8, prefix - 8, 4, c, e));
    uint64_t n = *major == 1 ? tnf_u16(c) : tnf_u32(c);
    TNF_TRY(tnf_read_range(r, "header", prefix, n, NP_MAX_HEADER, c, e));
    r->data_start = prefix + n;
    return TNF_OK;
}

/* An object array is never executed, so it cannot be read: it is refused, or listed in lenient
 * mode. */
static tnf_status add_objects(tnf_reader *r, const np_array *a, const tnf_value *attrs,
                              tnf_error *e)
{
    char calls[160];
    tnf_cur c;
    uint64_t here = r->source->size - r->data_start;
    TNF_TRY(tnf_read_range(r, "pickle", r->data_start, here < NP_PICKLE ? here : NP_PICKLE,
                           NP_PICKLE, &c, e));
    TNF_TRY(tnf_np_pickle_calls(c, r->scratch, calls, sizeof calls, e));
    TNF_TRY(tnf_stricter(r, e, TNF_EUNSUPPORTED, r->data_start,
                         "this is an object array: a pickle, which is never run; it names %s",
                         calls));
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .offset = r->data_start,
                      .payload = TNF_AT,
                      .flags = TNF_PART_UNREADABLE };
    tnf_object object = { .name = TNF_STR(NAME),
                          .shape = a->shape,
                          .layout = &tnf_layout_dense,
                          .parts = &part,
                          .attrs = attrs,
                          .rank = a->rank,
                          .nparts = 1 };
    return tnf_add_object(r, &object, a->shape_at, e);
}

/* Adds a column-major array whose type has dimensions. */
static tnf_status add_columns(tnf_reader *r, const np_array *a, const tnf_dense *d, tnf_error *e)
{
    np_columns *c = tnf_arena_alloc(r->arena, sizeof *c);
    uint64_t *shape = tnf_arena_array(r->arena, a->rank, sizeof *shape);
    if (!c || !shape)
        return tnf_arena_fail(r->arena, "a shape", e);
    memcpy(shape, a->shape, a->rank * sizeof *shape);
    *c = (np_columns) { .shape = shape, .rank = a->rank, .width = a->type.width };
    c->start = r->data_start;
    c->swap = 1;
    if (a->type.big)
        c->swap = tnf_dtype_size(a->type.type->storage);
    r->state = c;
    tnf_part part = { .role = "data",
                      .type = d->type,
                      .stored = d->length,
                      .nbytes = d->length,
                      .payload = TNF_OPAQUE };
    tnf_object object = { .name = d->name,
                          .shape = d->shape,
                          .layout = &tnf_layout_dense,
                          .parts = &part,
                          .attrs = d->attrs,
                          .rank = d->rank,
                          .nparts = 1 };
    uint64_t here = r->source->size - r->data_start;
    if (d->length > here) {
        TNF_TRY(tnf_stricter(r, e, TNF_ETRUNCATED, r->source->size,
                             "the file ends inside the data: %s missing (cut short?)",
                             TNF_BYTES_ARE(d->length - here)));
        part.flags |= TNF_PART_UNREADABLE;
    }
    return tnf_add_object(r, &object, d->at, e);
}

static tnf_status add_array(tnf_reader *r, const np_array *a, const tnf_value *attrs, tnf_error *e)
{
    const np_type *t = &a->type;
    tnf_dense d = { .name = TNF_STR(NAME),
                    .type = t->type,
                    .shape = a->shape,
                    .rank = a->rank + t->naxes,
                    .offset = r->data_start,
                    .length = a->elements * t->width,
                    .attrs = attrs,
                    .at = a->shape_at,
                    .order = a->fortran ? TNF_ORDER_F : TNF_ORDER_C,
                    .flags = t->big ? TNF_PART_BIG_ENDIAN : 0 };
    memcpy(a->shape + a->rank, t->axes, t->naxes * sizeof *t->axes); /* shape has room for them */
    TNF_TRY(a->fortran && t->naxes ? add_columns(r, a, &d, e) : tnf_add_dense(r, &d, e));
    uint64_t end = d.offset + d.length, size = r->source->size;
    if (size <= end)
        return TNF_OK;
    tnf_warn(r, end, "%s the array, which NumPy ignores", TNF_BYTES_FOLLOW(size - end));
    return tnf_add_extra(r, TRAILING, end, size - end, e);
}

static tnf_status index_npy(tnf_reader *r, tnf_error *e)
{
    unsigned major;
    tnf_cur c;
    np_array a;
    const tnf_value *attrs;
    np_context x = tnf_np_context(r, r->scratch);
    TNF_TRY(open_header(r, &major, &c, e));
    TNF_TRY(tnf_np_read_header(&a, &x, major, c.p, tnf_left(&c), e));
    TNF_TRY(tnf_set_attr(r, NP_VERSION, tnf_value_string(tnf_np_versions[major]), e));
    TNF_TRY(tnf_np_make_attrs(&attrs, r, &a, major, false, &c, e));
    return a.type.object ? add_objects(r, &a, attrs, e) : add_array(r, &a, attrs, e);
}

static tnf_status decode_npy(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                             tnf_error *e)
{
    (void)key;
    return tnf_np_gather(r->source, r->state, offset, dst, n, e);
}

/* ---------------------------------------------------------------- writing */

enum { WRITE_F8 };

static const tnf_option_info write_options[] = {
    { "f8", TNF_OPTION_CHOICE, "bytes|ml_dtypes", "bytes",
      "8-bit floats: as |V1, which every NumPy loads, or as ml_dtypes writes them (<f1, <V1)" },
    { 0 },
};

static const char *const one_only = "a .npy file holds one array; .npz holds several";

/* Writes the first possible tensor, without its name. */
static tnf_status fits_npy(tnf_fit *fit, tnf_error *e)
{
    const tnf_catalog *c = fit->catalog;
    np_context x = { .arena = fit->scratch };
    bool taken = false;
    np_form f;
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        if (fit->objects[i].fate == TNF_DROPPED || tnf_is_filler(o))
            continue;
        if (taken) {
            fit->objects[i] = (tnf_verdict) { TNF_DROPPED, one_only };
            continue;
        }
        taken = true;
        TNF_TRY(tnf_np_form_of(&f, &x, o, fit->options[WRITE_F8].u, e));
        if (!tnf_str_is(o->name, NAME))
            f.lost = "a .npy file stores no name: the array is read back as " NAME;
        if (f.lost)
            fit->objects[i] = (tnf_verdict) { TNF_TRANSFORMED, f.lost };
    }
    return TNF_OK;
}

static tnf_status put_header(tnf_writer *w, const tnf_object *o, np_array *a, const np_context *x,
                             tnf_error *e)
{
    tnf_buf b;
    tnf_buf_init(&b, &w->scratch->alloc, 8 * NP_MAX_HEADER);
    tnf_status status = tnf_np_make_header(&b, w, o, a, x, 0, 0, e);
    if (status == TNF_OK)
        status = tnf_put(w, b.p, b.n, e);
    tnf_buf_free(&b);
    return status;
}

static tnf_status put_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    return tnf_put(ctx, bytes, n, e);
}

static tnf_status write_npy(tnf_writer *w, tnf_error *e)
{
    np_context x = { .arena = w->scratch };
    np_form f;
    const tnf_object *o = &w->catalog->objects[0];
    TNF_TRY(tnf_np_form_of(&f, &x, o, w->options[WRITE_F8].u, e));
    TNF_TRY(put_header(w, o, &f.a, &x, e));
    if (tnf_np_is_strings(o)) {
        TNF_TRY(tnf_np_put_strings(o, f.a.type.width, put_bytes, w, e));
    } else if (f.a.fortran && f.a.type.naxes) {
        TNF_TRY(tnf_np_scatter(w, o, f.a.rank, f.a.type.big, put_bytes, w, e));
    } else {
        tnf_put_how how = { .codec = TNF_CODEC_RAW, .big_endian = f.a.type.big };
        tnf_put_done done;
        TNF_TRY(tnf_put_part(w, &o->parts[0], &how, &done, e));
    }
    for (size_t i = 0; i < w->catalog->nextras; i++)
        TNF_TRY(tnf_put_data(w, &w->catalog->extras[i].bytes, e));
    return TNF_OK;
}

const tnf_format tnf_format_npy = {
    .name = "npy",
    .title = "NumPy array (.npy)",
    .extensions = "npy",
    .family = "numpy",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .rules = TNF_RULE_DATA_START | TNF_RULE_NO_OVERLAP,
    .can = { .types = NP_TYPES,
             .layouts = "dense strings/1",
             .in_parts = tnf_np_in_parts,
             .pads_strings = true,
             .order_f = true,
             .was_f = tnf_np_was_columns_first,
             .zero_rank = true,
             .not_empty = "a .npy file must hold exactly one array, and there is none",
             .extras = true,
             .attrs = TNF_HOLDS_NONE,
             .file_attrs = NP_VERSION,
             .object_attrs = NP_DESCR " " NP_HEADER " " NP_ORDER " " NP_VERSION,
             .derived = NP_VERSION "=1.0",
             .spelling = NP_SPELLING,
             .takes = tnf_np_takes,
             .fits = fits_npy },
    .read_options = tnf_np_read_options,
    .write_options = write_options,
    .probe = probe_npy,
    .index = index_npy,
    .decode = decode_npy,
    .element_text = tnf_np_element_text,
    .write = TNF_WRITES(write_npy),
};
