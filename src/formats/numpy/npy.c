/* SPDX-License-Identifier: MIT */
/* NumPy's .npy: one array.
 *
 *   "\x93NUMPY"  u8 major  u8 minor=0       1, 2 or 3
 *   u16 n (version 1) or u32 n (2 and 3)    little-endian
 *   header   n bytes: a Python dict as text, blanks, a line feed
 *            latin-1 (versions 1 and 2) or UTF-8 (version 3)
 *   data     the elements, rows or columns first, little- or big-endian, as the header says
 *   …        bytes that numpy.load() does not look at
 *
 * numpy.save() is what the writer follows to the byte, numpy.load() what the reader does, but for
 * object arrays: they are pickles, which are never run.
 */
#include "formats/numpy/columns.h"
#include "formats/numpy/pickle.h"

#include <stdio.h>
#include <string.h>

#define NAME     "arr_0" /* NumPy's own, for an array without one */
#define VERSION  "numpy.version"
#define DESCR    "numpy.descr"
#define HEADER   "numpy.header"
#define ORDER    "numpy.order" /* "F": columns first, whatever order it has elsewhere */
#define TRAILING "numpy.trailing"

static const char *const versions[] = { "", "1.0", "2.0", "3.0" };

static int probe(const tnf_probe *p)
{
    size_t n = p->nhead < NP_MAGIC_N ? p->nhead : NP_MAGIC_N;
    if (n == NP_MAGIC_N && memcmp(p->head, NP_MAGIC, n) == 0)
        return TNF_PROBE_MAGIC;
    return strcmp(p->ext, "npy") == 0 && n > 0 ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
}

/* ---------------------------------------------------------------- reading */

enum { READ_V1, READ_V2 };

static const tnf_option_info read_options[] = {
    { "v1", TNF_OPTION_CHOICE, "bytes|f8_e4m3fn|f8_e5m2|f8_e4m3fnuz|f8_e5m2fnuz|f8_e8m0|i8|bool",
      "bytes", "what elements of the type V1 are, which the file does not say" },
    { "v2", TNF_OPTION_CHOICE, "bytes|bf16", "bytes",
      "what elements of the type |V2 are, which the file does not say (<V2 is bf16)" },
    { 0 },
};

static const tnf_type *asked_type(const tnf_reader *r, size_t option)
{
    return r->options[option].u ? tnf_type_named(r->options[option].s) : NULL;
}

/* Everything up to the data; the cursor is over the header's text. */
static tnf_status open_header(tnf_reader *r, unsigned *major, tnf_cur *c, tnf_error *e)
{
    TNF_TRY(tnf_read_range(r, "magic", 0, NP_MAGIC_N + 2, NP_MAGIC_N + 2, c, e));
    if (memcmp(c->p, NP_MAGIC, NP_MAGIC_N) != 0)
        return tnf_fail(e, TNF_EFORMAT, 0, "the file does not begin with \\x93NUMPY");
    *major = c->p[NP_MAGIC_N];
    unsigned minor = c->p[NP_MAGIC_N + 1];
    if (*major < 1 || *major > 3 || minor != 0)
        return tnf_fail(e, TNF_EUNSUPPORTED, NP_MAGIC_N, "version %u.%u; known are 1.0, 2.0, 3.0",
                        *major, minor);
    r->version = versions[*major];
    unsigned prefix = tnf_np_prefix(*major);
    TNF_TRY(tnf_read_range(r, "header length", 8, prefix - 8, 4, c, e));
    uint64_t n = *major == 1 ? tnf_u16(c) : tnf_u32(c);
    TNF_TRY(tnf_read_range(r, "header", prefix, n, NP_MAX_HEADER, c, e));
    r->data_start = prefix + n;
    return TNF_OK;
}

/* Is the text what NumPy would have written? The order of an array with dimensions of its type can
 * only be told by the text. */
static tnf_status is_canonical(bool *out, const np_array *a, unsigned major, const tnf_cur *c,
                               const tnf_allocator *alloc, tnf_error *e)
{
    tnf_buf text, bytes;
    tnf_buf_init(&text, alloc, 8 * NP_MAX_HEADER);
    tnf_buf_init(&bytes, alloc, 8 * NP_MAX_HEADER);
    tnf_status status = tnf_np_print_header(&text, major, a, e);
    *out = status == TNF_OK && !(a->fortran && a->type.naxes) &&
           tnf_np_encode(&bytes, major, (tnf_str) { (const char *)text.p, text.n }) &&
           bytes.n == tnf_left(c) && memcmp(bytes.p, c->p, bytes.n) == 0;
    if (status == TNF_OK)
        status = tnf_buf_status(&bytes, "header", e);
    tnf_buf_free(&text);
    tnf_buf_free(&bytes);
    return status;
}

static tnf_status keep_header(tnf_attrs *attrs, unsigned major, const tnf_cur *c, tnf_error *e)
{
    tnf_buf text;
    tnf_buf_init(&text, &attrs->arena->alloc, 2 * NP_MAX_HEADER);
    tnf_np_decode(&text, major, c->p, tnf_left(c));
    tnf_status status = tnf_buf_status(&text, "header", e);
    const char *copy = status == TNF_OK ? tnf_arena_str(attrs->arena, text.p, text.n) : NULL;
    if (copy)
        status = tnf_attrs_push(attrs, HEADER, tnf_value_str(TNF_STRING, copy, text.n), e);
    else if (status == TNF_OK)
        status = tnf_arena_fail(attrs->arena, "the header", e);
    tnf_buf_free(&text);
    return status;
}

/* What the tensor's type and shape do not say of the array. NULL: nothing. */
static tnf_status make_attrs(const tnf_value **out, tnf_reader *r, const np_array *a,
                             unsigned major, const tnf_cur *c, tnf_error *e)
{
    tnf_attrs attrs = { .arena = r->arena };
    bool canonical = false;
    *out = NULL;
    if (a->type.worth) {
        const char *copy = tnf_arena_str(r->arena, a->descr, strlen(a->descr));
        if (!copy)
            return tnf_arena_fail(r->arena, "a type", e);
        TNF_TRY(tnf_attrs_push(&attrs, DESCR, tnf_value_string(copy), e));
    }
    if (a->fortran && !a->type.naxes)
        TNF_TRY(tnf_attrs_push(&attrs, ORDER, tnf_value_string("F"), e));
    TNF_TRY(is_canonical(&canonical, a, major, c, &r->scratch->alloc, e));
    if (!canonical)
        TNF_TRY(keep_header(&attrs, major, c, e));
    if (attrs.n == 0)
        return TNF_OK;
    tnf_value *map = tnf_arena_alloc(r->arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(r->arena, "attributes", e);
    *map = tnf_attrs_value(&attrs);
    *out = map;
    return TNF_OK;
}

/* Never run, and so not read: refused, or listed when lenient. */
static tnf_status add_objects(tnf_reader *r, const np_array *a, const tnf_value *attrs,
                              tnf_error *e)
{
    char calls[160];
    TNF_TRY(tnf_np_pickle_calls(r, r->data_start, calls, sizeof calls, e));
    TNF_TRY(tnf_stricter(r, e, TNF_EUNSUPPORTED, r->data_start,
                         "object array: a pickle, which is never run; it names %s", calls));
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

/* Columns first, and with dimensions behind those of the array. */
static tnf_status add_columns(tnf_reader *r, const np_array *a, const tnf_dense *d, tnf_error *e)
{
    np_columns *c = tnf_arena_alloc(r->arena, sizeof *c);
    uint64_t *shape = tnf_arena_array(r->arena, a->rank, sizeof *shape);
    if (!c || !shape)
        return tnf_arena_fail(r->arena, "a shape", e);
    memcpy(shape, a->shape, a->rank * sizeof *shape);
    *c = (np_columns) { shape, a->rank, a->type.width, r->data_start, 1 };
    if (a->type.big)
        c->turn = tnf_dtype_size(a->type.type->storage);
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
                             "the file ends inside the data: %llu bytes are missing (cut short?)",
                             (unsigned long long)(d->length - here)));
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
    memcpy(a->shape + a->rank, t->axes, t->naxes * sizeof *t->axes); /* there is room */
    TNF_TRY(a->fortran && t->naxes ? add_columns(r, a, &d, e) : tnf_add_dense(r, &d, e));
    uint64_t end = d.offset + d.length, size = r->source->size;
    if (size <= end)
        return TNF_OK;
    tnf_warn(r, end, "%llu bytes follow the array, which NumPy does not look at",
             (unsigned long long)(size - end));
    return tnf_add_extra(r, TRAILING, end, size - end, e);
}

static tnf_status index_all(tnf_reader *r, tnf_error *e)
{
    unsigned major;
    tnf_cur c;
    np_array a;
    const tnf_value *attrs;
    np_context x = { r, r->scratch, asked_type(r, READ_V1), asked_type(r, READ_V2) };
    TNF_TRY(open_header(r, &major, &c, e));
    TNF_TRY(tnf_np_read_header(&a, &x, major, c.p, tnf_left(&c), e));
    TNF_TRY(tnf_set_attr(r, VERSION, tnf_value_string(versions[major]), e));
    TNF_TRY(make_attrs(&attrs, r, &a, major, &c, e));
    return a.type.object ? add_objects(r, &a, attrs, e) : add_array(r, &a, attrs, e);
}

static tnf_status decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e)
{
    (void)key;
    return tnf_np_gather(r->source, r->state, offset, dst, n, e);
}

/* ---------------------------------------------------------------- writing */

enum { WRITE_F8 };

static const tnf_option_info write_options[] = {
    { "f8", TNF_OPTION_CHOICE, "bytes|ml_dtypes", "bytes",
      "8-bit floats: as |V1, which every NumPy loads, or as ml_dtypes has them (<f1, <V1)" },
    { 0 },
};

/* How a tensor is written. */
typedef struct form {
    np_array a;
    const char *lost; /* NULL: nothing */
} form;

static bool columns_first(const tnf_object *o)
{
    return o->order == TNF_ORDER_F && !tnf_np_both_orders(o->shape, o->rank);
}

static bool was_columns_first(const tnf_object *o)
{
    const tnf_value *v = tnf_value_get(o->attrs, ORDER);
    return v && v->kind == TNF_STRING && v->n == 1 && v->as.s[0] == 'F' &&
           !tnf_np_both_orders(o->shape, o->rank);
}

/* Is the type one of these bytes, and of these dimensions at the end? */
static bool describes(const np_type *t, const tnf_object *o)
{
    if (t->object || t->type != o->parts[0].type || t->naxes > o->rank ||
        (t->naxes && columns_first(o)))
        return false;
    for (uint32_t i = 0; i < t->naxes; i++)
        if (t->axes[i] != o->shape[o->rank - t->naxes + i])
            return false;
    return true;
}

/* By numpy.descr; *fits is false if there is none, or it is of something else. */
static tnf_status by_attribute(form *f, const np_context *x, const tnf_object *o, bool *fits,
                               tnf_error *e)
{
    tnf_error said;
    const tnf_value *v = tnf_value_get(o->attrs, DESCR);
    *fits = false;
    if (!v)
        return TNF_OK;
    tnf_str text = { v->as.s, v->n };
    const char *descr = NULL;
    tnf_arena once; /* a tree is many times as large as its text */
    tnf_arena_init(&once, &x->arena->alloc, x->arena->limit);
    np_context here = { .arena = &once };
    tnf_status status = v->kind == TNF_STRING && !memchr(text.p, 0, text.n)
                            ? tnf_np_read_descr(&f->a.type, &descr, &here, text, &said)
                            : TNF_EFORMAT;
    *fits = status == TNF_OK && describes(&f->a.type, o);
    if (*fits)
        f->a.descr = tnf_arena_str(x->arena, descr, strlen(descr));
    tnf_arena_free(&once);
    if (status == TNF_ENOMEM || (*fits && !f->a.descr))
        return tnf_fail(e, TNF_ENOMEM, TNF_NO_OFFSET, "out of memory for a type");
    if (!*fits)
        f->lost = "its " DESCR " does not describe it, and is left out";
    return TNF_OK;
}

static tnf_status form_of(form *f, const np_context *x, const tnf_object *o, bool ml_dtypes,
                          tnf_error *e)
{
    bool fits;
    *f = (form) { 0 };
    TNF_TRY(by_attribute(f, x, o, &fits, e));
    if (!fits) {
        const tnf_type *type = o->parts[0].type;
        f->a.type = (np_type) { .type = type, .width = type->bits / 8 };
        f->a.descr = tnf_np_descr_of(type, ml_dtypes);
        if (strcmp(f->a.descr + 1, "V1") == 0)
            f->lost = "NumPy has no such type: it is read again as bytes";
    }
    f->a.rank = o->rank - f->a.type.naxes;
    f->a.shape = (uint64_t *)(uintptr_t)o->shape; /* only read */
    f->a.fortran = columns_first(o);
    return TNF_OK;
}

static tnf_fate takes(const tnf_object *o, const char **reason)
{
    *reason = "NumPy cannot count its bytes in 63 bits";
    return tnf_np_countable(o->shape, o->rank, o->parts[0].type->bits / 8) ? TNF_NATIVE
                                                                           : TNF_DROPPED;
}

static const char *const one_only = "a .npy file holds one array; .npz holds several";

/* The first tensor that can be written is; its name is not. */
static tnf_status fits(tnf_fit *fit, tnf_error *e)
{
    const tnf_catalog *c = fit->catalog;
    np_context x = { .arena = fit->scratch };
    bool taken = false;
    form f;
    for (size_t i = 0; i < c->n; i++) {
        const tnf_object *o = &c->objects[i];
        if (fit->objects[i].fate == TNF_DROPPED || tnf_is_filler(o))
            continue;
        if (taken) {
            fit->objects[i] = (tnf_verdict) { TNF_DROPPED, one_only };
            continue;
        }
        taken = true;
        TNF_TRY(form_of(&f, &x, o, fit->options[WRITE_F8].u, e));
        if (o->name.n != sizeof NAME - 1 || memcmp(o->name.p, NAME, o->name.n) != 0)
            f.lost = "a .npy file keeps no name: it is read again as " NAME;
        if (f.lost)
            fit->objects[i] = (tnf_verdict) { TNF_TRANSFORMED, f.lost };
    }
    return TNF_OK;
}

/* What the source file's version was; 0: not said. */
static unsigned said_version(const tnf_writer *w)
{
    const tnf_value attrs = tnf_attrs_value(&w->catalog->attrs);
    const tnf_value *v = tnf_value_get(&attrs, VERSION);
    for (unsigned i = 1; i <= 3; i++)
        if (v && v->kind == TNF_STRING && v->n == 3 && memcmp(v->as.s, versions[i], 3) == 0)
            return i;
    return 0;
}

/* Does this text, as a header of the version, say the same of the array? Only TNF_ENOMEM fails. */
static tnf_status says_same(bool *same, const np_context *x, unsigned major, const tnf_buf *text,
                            np_array *a, tnf_error *e)
{
    np_array said;
    tnf_arena once;
    *same = false;
    TNF_TRY(text->status == TNF_ENOMEM ? tnf_buf_status(text, "header", e) : TNF_OK);
    if (text->n > (major == 1 ? UINT16_MAX : NP_MAX_HEADER) || text->status != TNF_OK)
        return TNF_OK;
    tnf_arena_init(&once, &x->arena->alloc, x->arena->limit);
    np_context here = { .arena = &once };
    tnf_status status = tnf_np_read_header(&said, &here, major, text->p, text->n, e);
    *same = status == TNF_OK && strcmp(said.descr, a->descr) == 0 && said.rank == a->rank &&
            (a->rank == 0 || memcmp(said.shape, a->shape, a->rank * sizeof *a->shape) == 0) &&
            (said.fortran == a->fortran || (said.fortran && a->type.naxes));
    if (*same)
        a->fortran = said.fortran;
    tnf_arena_free(&once);
    return status == TNF_ENOMEM ? status : TNF_OK;
}

/* The header that the array had, if it still says what is written. *major is 0 if it does not. */
static tnf_status old_header(tnf_buf *out, unsigned *major, const np_context *x,
                             const tnf_writer *w, np_array *a, tnf_error *e)
{
    const tnf_value *v = tnf_value_get(w->catalog->objects[0].attrs, HEADER);
    unsigned said = said_version(w);
    *major = 0;
    for (unsigned i = said ? said : 1; v && v->kind == TNF_STRING && i <= 3; i++) {
        bool same = false;
        out->n = 0;
        if (tnf_np_encode(out, i, (tnf_str) { v->as.s, v->n }))
            TNF_TRY(says_same(&same, x, i, out, a, e));
        if (same) {
            *major = i;
            return TNF_OK;
        }
    }
    out->n = 0;
    return TNF_OK;
}

static tnf_status new_header(tnf_buf *out, unsigned *major, const tnf_writer *w, const np_array *a,
                             tnf_error *e)
{
    tnf_buf text;
    unsigned said = said_version(w), least = tnf_np_version_for(a, &w->scratch->alloc);
    *major = said > least ? said : least;
    tnf_buf_init(&text, &w->scratch->alloc, 8 * NP_MAX_HEADER);
    tnf_status status = tnf_np_print_header(&text, *major, a, e);
    if (status == TNF_OK)
        tnf_np_encode(out, *major, (tnf_str) { (const char *)text.p, text.n });
    if (status == TNF_OK)
        status = tnf_buf_status(out, "header", e);
    tnf_buf_free(&text);
    return status;
}

static tnf_status put_header(tnf_writer *w, np_array *a, const np_context *x, tnf_error *e)
{
    unsigned major = 0;
    uint8_t head[12] = NP_MAGIC;
    tnf_buf text;
    tnf_buf_init(&text, &w->scratch->alloc, 8 * NP_MAX_HEADER);
    tnf_status status = old_header(&text, &major, x, w, a, e);
    if (status == TNF_OK && !major)
        status = new_header(&text, &major, w, a, e);
    head[NP_MAGIC_N] = (uint8_t)major;
    if (major == 1)
        tnf_put_le16(head + 8, (uint16_t)text.n);
    else
        tnf_put_le32(head + 8, (uint32_t)text.n);
    if (status == TNF_OK)
        status = tnf_put(w, head, tnf_np_prefix(major), e);
    if (status == TNF_OK)
        status = tnf_put(w, text.p, text.n, e);
    tnf_buf_free(&text);
    return status;
}

static tnf_status write_all(tnf_writer *w, tnf_error *e)
{
    np_context x = { .arena = w->scratch };
    form f;
    const tnf_object *o = &w->catalog->objects[0];
    TNF_TRY(form_of(&f, &x, o, w->options[WRITE_F8].u, e));
    TNF_TRY(put_header(w, &f.a, &x, e));
    if (f.a.fortran && f.a.type.naxes) {
        TNF_TRY(tnf_np_scatter(w, o, f.a.rank, f.a.type.big, e));
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
    .can = { .types = "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128 f8_e4m3fn "
                      "f8_e5m2 f8_e4m3fnuz f8_e5m2fnuz f8_e8m0",
             .layouts = "dense",
             .order_f = true,
             .was_f = was_columns_first,
             .zero_rank = true,
             .not_empty = "a .npy file holds exactly one array, and there is none",
             .extras = true,
             .attrs = TNF_HOLDS_NONE,
             .file_attrs = VERSION,
             .object_attrs = DESCR " " HEADER " " ORDER,
             .derived = VERSION "=1.0",
             .spelling = VERSION " " HEADER " " ORDER
                                 " numpy.descr=>i2 numpy.descr=>i4 numpy.descr=>i8 "
                                 "numpy.descr=>u2 numpy.descr=>u4 numpy.descr=>u8 numpy.descr=>f2 "
                                 "numpy.descr=>f4 numpy.descr=>f8 numpy.descr=>c8 numpy.descr=>c16 "
                                 "numpy.descr=<f1 numpy.descr=float8_e4m3fn "
                                 "numpy.descr=float8_e5m2 numpy.descr=float8_e4m3fnuz "
                                 "numpy.descr=float8_e5m2fnuz numpy.descr=float8_e8m0fnu",
             .takes = takes,
             .fits = fits },
    .read_options = read_options,
    .write_options = write_options,
    .probe = probe,
    .index = index_all,
    .decode = decode,
    .write = write_all,
};
