/* SPDX-License-Identifier: MIT */
/* Writes a complete VS file: `points`, row by row, each with its string of `appdata`. Unknown
 * blocks and bytes are written at their old places, between the same two points.
 *
 * An uncompressed row is streamed; a row to be compressed is gathered first.
 */
#include "codec/blocks.h"
#include "formats/vs/strings.h"
#include "formats/vs/vs.h"
#include "wire/msgpack.h"

#include <stdlib.h>
#include <string.h>

enum { COMPRESS_AUTO, COMPRESS_NONE, COMPRESS_GZIP, COMPRESS_SNAPPY };
enum { APP_AUTO, APP_NONE, APP_SNAPPY };

/* An extra, and the point before or in which it is written. */
struct placed {
    uint64_t row;
    bool inside;
    const tnf_extra *extra;
};

struct task {
    tnf_writer *w;
    const tnf_object *points;
    tnf_vs_meta meta;
    bool msb;
    const tnf_value *options[2]; /* vs.options of points and appdata, or NULL */
    vs_strings app;              /* of appdata, if there is one */
    vs_strings texts;            /* of points, if they are strings */
    struct placed *placed;       /* in order */
    size_t nplaced, next;
    uint64_t row, fill; /* the current row; its bytes so far (for bits: elements) */
    tnf_buf head;       /* of a point: everything before the vector's bytes */
    tnf_buf gathered;   /* a row to be compressed, or a row of bits */
    tnf_buf packed;     /* compressed */
};

tnf_fate tnf_vs_takes(const tnf_object *o, const char **reason)
{
    bool points = tnf_str_is(o->name, VS_POINTS), dense = o->layout == &tnf_layout_dense;
    uint64_t elements, bytes;
    *reason = "a VS file can hold only `points` and their `appdata`";
    if (!points && (dense || !tnf_str_is(o->name, VS_APPDATA)))
        return TNF_DROPPED;
    *reason = "it has no first dimension for the points";
    if (points ? o->rank == 0 : o->rank != 1)
        return TNF_DROPPED;
    *reason = "the format cannot store points without coordinates";
    for (uint32_t i = 1; i < o->rank; i++)
        if (o->shape[i] == 0)
            return TNF_DROPPED;
    *reason = "a point of 4 GiB or more does not fit a block";
    for (uint32_t i = 1; i < o->rank; i++)
        if (o->shape[i] > UINT32_MAX)
            return TNF_DROPPED;
    if (points && dense &&
        (!tnf_shape_elements(&elements, o->shape + 1, o->rank - 1) ||
         !tnf_type_bytes(&bytes, o->parts[0].type, elements) ||
         bytes > UINT32_MAX - 2 - TNF_VS_VECTOR))
        return TNF_DROPPED;
    *reason =
        "f16 belongs to a later revision, which readers of version 0 refuse: --dtype f32 casts it";
    if (points && dense && o->parts[0].type == tnf_type_of(TNF_F16))
        return TNF_TRANSFORMED;
    *reason = "";
    return TNF_NATIVE;
}

/* Each string of appdata belongs to a point. */
tnf_status tnf_vs_fits(tnf_fit *fit, tnf_error *e)
{
    const tnf_catalog *c = fit->catalog;
    const tnf_object *points = tnf_catalog_find(c, VS_POINTS, sizeof VS_POINTS - 1);
    const tnf_object *app = tnf_catalog_find(c, VS_APPDATA, sizeof VS_APPDATA - 1);
    (void)e;
    if (points && fit->objects[points - c->objects].fate == TNF_DROPPED)
        points = NULL;
    tnf_verdict *found = app ? &fit->objects[app - c->objects] : NULL;
    if (found && found->fate == TNF_NATIVE && (!points || app->shape[0] != points->shape[0]))
        *found = (tnf_verdict) { TNF_DROPPED, "it does not have one string for each point" };
    return TNF_OK;
}

/* ------------------------------------------------------------------ extras */

/* Parses a key: a prefix, a number, and a suffix. */
static bool key_number(const tnf_extra *x, const char *prefix, const char *behind, uint64_t *out)
{
    if (!tnf_str_begins(x->key, prefix))
        return false;
    const char *digits = x->key.p + strlen(prefix), *at = digits, *end = x->key.p + x->key.n;
    *out = tnf_take_digits(&at, end);
    return at > digits && tnf_str_is((tnf_str) { at, (size_t)(end - at) }, behind);
}

static int by_row(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->inside != y->inside)
        return x->inside ? 1 : -1;
    return x->extra < y->extra ? -1 : x->extra > y->extra;
}

static tnf_status place_extras(struct task *j, tnf_error *e)
{
    const tnf_catalog *c = j->w->catalog;
    j->placed = tnf_arena_array(j->w->scratch, c->nextras, sizeof *j->placed);
    if (!j->placed)
        return tnf_arena_fail(j->w->scratch, "extras", e);
    for (size_t i = 0; i < c->nextras; i++) {
        struct placed p = { .extra = &c->extras[i] };
        p.inside = key_number(p.extra, VS_POINT, ".extra", &p.row);
        if (p.inside || key_number(p.extra, VS_BLOCK, "", &p.row))
            j->placed[j->nplaced++] = p;
    }
    if (j->nplaced > 1)
        qsort(j->placed, j->nplaced, sizeof *j->placed, by_row);
    return TNF_OK;
}

/* Writes a complete block of an unknown type. */
static tnf_status put_block(struct task *j, const tnf_extra *x, tnf_error *e)
{
    uint8_t head[TNF_VS_HEAD] = { 0 };
    bool block = x->bytes.nbytes >= TNF_VS_HEAD;
    if (block)
        TNF_TRY(tnf_read_part(head, sizeof head, &x->bytes, 0, e));
    if (!block || tnf_le32(head + 1) != x->bytes.nbytes - TNF_VS_HEAD || head[0] == TNF_VS_META ||
        head[0] == TNF_VS_POINT || head[0] == TNF_VS_END)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "the extra %s is not a block",
                        TNF_QUOTED(x->key));
    return tnf_put_data(j->w, &x->bytes, e);
}

/* Writes the blocks before a row. */
static tnf_status put_blocks(struct task *j, uint64_t row, tnf_error *e)
{
    for (; j->next < j->nplaced && j->placed[j->next].row <= row; j->next++) {
        if (j->placed[j->next].inside && j->placed[j->next].row == row)
            return TNF_OK;
        if (!j->placed[j->next].inside)
            TNF_TRY(put_block(j, j->placed[j->next].extra, e));
    }
    return TNF_OK;
}

/* The bytes after the vector of the current row. */
static const tnf_extra *bytes_inside(const struct task *j)
{
    const struct placed *p = &j->placed[j->next];
    return j->next < j->nplaced && p->row == j->row && p->inside ? p->extra : NULL;
}

static tnf_status put_named(struct task *j, const char *key, tnf_error *e)
{
    const tnf_catalog *c = j->w->catalog;
    for (size_t i = 0; i < c->nextras; i++)
        if (tnf_str_is(c->extras[i].key, key))
            TNF_TRY(put_block(j, &c->extras[i], e));
    return TNF_OK;
}

/* ----------------------------------------------------------------- options */

static unsigned code_of_choice(uint64_t choice)
{
    return choice == COMPRESS_GZIP     ? TNF_VS_GZIP
           : choice == COMPRESS_SNAPPY ? TNF_VS_SNAPPY
                                       : TNF_VS_RAW;
}

/* The option in the source, or 0. */
static uint8_t option_of_source(const tnf_value *v, uint64_t row)
{
    if (v && v->kind == TNF_UINT)
        return (uint8_t)v->as.u;
    return v && v->kind == TNF_BYTES && row < v->n ? (uint8_t)v->as.s[row] : 0;
}

static uint8_t with_code(uint8_t option, unsigned code)
{
    return (uint8_t)((option & ~TNF_VS_CODE) | code);
}

static uint8_t vector_option(const struct task *j)
{
    uint64_t choice = j->w->options[VS_WRITE_COMPRESS].u;
    uint8_t option = option_of_source(j->options[0], j->row);
    if (choice != COMPRESS_AUTO)
        return with_code(option, code_of_choice(choice));
    if (!j->options[0])
        return j->meta.pack == TNF_VS_APP_SNAPPY ? TNF_VS_SNAPPY : TNF_VS_RAW;
    return (option & TNF_VS_CODE) > TNF_VS_SNAPPY ? with_code(option, TNF_VS_RAW) : option;
}

static uint8_t app_option(const struct task *j)
{
    uint64_t choice = j->w->options[VS_WRITE_APP].u;
    uint8_t option = option_of_source(j->options[1], j->row);
    if (choice != APP_AUTO)
        return with_code(option, choice == APP_SNAPPY ? TNF_VS_APP_SNAPPY : TNF_VS_RAW);
    return (option & TNF_VS_CODE) > TNF_VS_APP_SNAPPY ? with_code(option, TNF_VS_RAW) : option;
}

/* -------------------------------------------------------------------- rows */

/* Writes the head of the current row, for a vector of this many stored bytes. */
static tnf_status put_head(struct task *j, uint8_t option, uint64_t vector_n, tnf_error *e)
{
    const tnf_extra *x = bytes_inside(j);
    uint8_t about_app = app_option(j);
    tnf_str app = { "", 0 };
    TNF_TRY(tnf_vs_strings_at(&j->app, j->row, &app, e));
    if (app.n && tnf_vs_check_app(app.p, app.n, TNF_NO_OFFSET, NULL) != TNF_OK)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "row %llu of appdata is not one MessagePack value, as a VS file requires",
                        (unsigned long long)j->row);
    tnf_buf packed;
    tnf_buf_init(&packed, &j->w->scratch->alloc, UINT32_MAX);
    tnf_status status = TNF_OK;
    if (app.n && (about_app & TNF_VS_CODE) == TNF_VS_APP_SNAPPY) {
        status = tnf_snappy_encode(&packed, app.p, app.n, e);
        app = (tnf_str) { (const char *)packed.p, packed.n };
    }
    j->head.n = 0;
    if (status == TNF_OK)
        status = tnf_vs_put_point(&j->head, about_app, app, option, vector_n,
                                  x ? x->bytes.nbytes : 0, j->msb, e);
    tnf_buf_free(&packed);
    return status == TNF_OK ? tnf_put(j->w, j->head.p, j->head.n, e) : status;
}

/* Writes a gathered row. */
static tnf_status put_gathered(struct task *j, uint8_t option, tnf_error *e)
{
    const tnf_buf *bytes = &j->gathered;
    unsigned code = option & TNF_VS_CODE;
    j->packed.n = 0;
    if (code == TNF_VS_GZIP)
        TNF_TRY(tnf_gzip_encode(&j->packed, bytes->p, bytes->n, e));
    if (code == TNF_VS_SNAPPY)
        TNF_TRY(tnf_snappy_encode(&j->packed, bytes->p, bytes->n, e));
    if (!j->meta.type && !tnf_vs_texts_fit(j->packed.n, bytes->n, j->meta.elements)) {
        option = (uint8_t)(option & ~TNF_VS_CODE); /* no reader would decode it */
        code = TNF_VS_RAW;
    }
    if (code != TNF_VS_RAW)
        bytes = &j->packed;
    TNF_TRY(put_head(j, option, bytes->n, e));
    return tnf_put(j->w, bytes->p, bytes->n, e);
}

static tnf_status end_row(struct task *j, tnf_error *e)
{
    const tnf_extra *x = bytes_inside(j);
    if (x) {
        TNF_TRY(tnf_put_data(j->w, &x->bytes, e));
        j->next++;
    }
    j->row++;
    j->fill = 0;
    j->gathered.n = 0;
    return TNF_OK;
}

/* Takes bytes of rows, in order. */
static tnf_status take_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct task *j = ctx;
    uint64_t width = j->meta.vector_bytes;
    for (const uint8_t *p = bytes; n > 0;) {
        size_t here = n < width - j->fill ? n : (size_t)(width - j->fill);
        uint8_t option = vector_option(j);
        bool raw = (option & TNF_VS_CODE) == TNF_VS_RAW;
        if (j->fill == 0) {
            TNF_TRY(put_blocks(j, j->row, e));
            TNF_TRY(raw ? put_head(j, option, width, e) : TNF_OK);
        }
        if (raw)
            TNF_TRY(tnf_put(j->w, p, here, e));
        else
            tnf_buf_put(&j->gathered, p, here);
        TNF_TRY(tnf_buf_status(&j->gathered, "the vector", e));
        j->fill += here;
        p += here;
        n -= here;
        if (j->fill < width)
            return TNF_OK;
        TNF_TRY(raw ? TNF_OK : put_gathered(j, option, e));
        TNF_TRY(end_row(j, e));
    }
    return TNF_OK;
}

/* Takes bits of rows, in order. Each row begins with a new byte; the unused bits of its last byte
 * are padding. */
static tnf_status take_bits(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct task *j = ctx;
    for (uint64_t i = 0; i < (uint64_t)n * 8 && j->row < j->points->shape[0]; i++) {
        unsigned bit = ((const uint8_t *)bytes)[i / 8] >> i % 8 & 1u;
        if (j->fill % 8 == 0)
            tnf_buf_u8(&j->gathered, 0);
        TNF_TRY(tnf_buf_status(&j->gathered, "the vector", e));
        j->gathered.p[j->fill / 8] |= (uint8_t)(bit << j->fill % 8);
        if (++j->fill < j->meta.elements)
            continue;
        TNF_TRY(put_blocks(j, j->row, e));
        TNF_TRY(put_gathered(j, vector_option(j), e));
        TNF_TRY(end_row(j, e));
    }
    return TNF_OK;
}

/* Gathers the texts of the current row, each with its length. */
static tnf_status gather_texts(struct task *j, tnf_error *e)
{
    for (uint64_t i = 0; i < j->meta.elements; i++) {
        uint8_t varint[10];
        tnf_str text = { "", 0 };
        TNF_TRY(tnf_vs_strings_at(&j->texts, j->row * j->meta.elements + i, &text, e));
        if (text.n && j->meta.resolution == TNF_VS_JSON &&
            tnf_vs_check_app(text.p, text.n, TNF_NO_OFFSET, NULL) != TNF_OK)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "row %llu of points is not one MessagePack value, as " VS_JSON " says",
                            (unsigned long long)j->row);
        tnf_buf_put(&j->gathered, varint, tnf_vs_put_varint(varint, text.n, j->msb));
        if (text.n)
            tnf_buf_put(&j->gathered, text.p, text.n);
        TNF_TRY(tnf_buf_status(&j->gathered, "the vector", e));
    }
    if (j->gathered.n <= TNF_VS_TEXTS_MOST)
        return TNF_OK;
    return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                    "the texts of row %llu of points have more than 16 MiB",
                    (unsigned long long)j->row);
}

static tnf_status put_texts(struct task *j, tnf_error *e)
{
    while (j->row < j->points->shape[0]) {
        TNF_TRY(gather_texts(j, e));
        TNF_TRY(put_blocks(j, j->row, e));
        TNF_TRY(put_gathered(j, vector_option(j), e));
        TNF_TRY(end_row(j, e));
    }
    return TNF_OK;
}

/* -------------------------------------------------------------------- meta */

static bool byte_attr(const struct task *j, const char *key, uint8_t *out)
{
    const tnf_value *v = tnf_catalog_attr(j->w->catalog, key);
    bool fits = v && ((v->kind == TNF_UINT && v->as.u <= UINT8_MAX) ||
                      (v->kind == TNF_INT && v->as.i >= 0 && v->as.i <= UINT8_MAX));
    if (fits)
        *out = (uint8_t)v->as.u;
    return fits;
}

static tnf_status meta_extra(struct task *j, tnf_error *e)
{
    const tnf_catalog *c = j->w->catalog;
    for (size_t i = 0; i < c->nextras; i++) {
        const tnf_part *p = &c->extras[i].bytes;
        if (!tnf_str_is(c->extras[i].key, VS_META))
            continue;
        uint8_t *bytes = tnf_arena_raw(j->w->scratch, p->nbytes);
        if (!bytes)
            return tnf_arena_fail(j->w->scratch, "extras", e);
        TNF_TRY(tnf_read_part(bytes, (size_t)p->nbytes, p, 0, e));
        j->meta.extra = bytes;
        j->meta.extra_n = (size_t)p->nbytes;
    }
    return TNF_OK;
}

/* Packs the attributes as MessagePack into b. If the source was a VS file without attributes, or
 * this is a copy of a file in which they were removed, none are written. */
static tnf_status pack_attributes(struct task *j, tnf_buf *b, tnf_error *e)
{
    static const tnf_value empty = { .kind = TNF_MAP };
    const tnf_value *tree = tnf_catalog_attr(j->w->catalog, "vs.attributes");
    if (!tree && (j->w->like || tnf_catalog_attr(j->w->catalog, "vs.bare")))
        return TNF_OK;
    TNF_TRY(tnf_msgpack_put_value(b, tree ? tree : &empty, 3 * TNF_VS_DEPTH, e));
    j->meta.attributes = (tnf_str) { (const char *)b->p, b->n };
    return TNF_OK;
}

static tnf_status put_meta(struct task *j, tnf_buf *b, tnf_error *e)
{
    const tnf_object *o = j->points;
    j->meta = (tnf_vs_meta) { .dims = o->shape + 1, .rank = o->rank - 1 };
    const tnf_value *json = tnf_value_get(o->attrs, VS_JSON);
    if (o->layout != &tnf_layout_dense)
        j->meta.resolution = json && json->kind == TNF_BOOL && json->as.b ? TNF_VS_JSON
                                                                          : TNF_VS_STRING;
    else if (!tnf_vs_resolution(o->parts[0].type, &j->meta.resolution))
        return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "no resolution for %s", o->parts[0].type->id);
    TNF_TRY(tnf_vs_meta_measure(&j->meta, TNF_NO_OFFSET, e));
    if (!byte_attr(j, "vs.pack", &j->meta.pack))
        j->meta.pack = j->w->options[VS_WRITE_COMPRESS].u == COMPRESS_SNAPPY;
    (void)byte_attr(j, "vs.paging", &j->meta.paging);
    TNF_TRY(meta_extra(j, e));
    TNF_TRY(pack_attributes(j, b, e));
    tnf_vs_put_meta(&j->head, &j->meta, j->msb);
    TNF_TRY(tnf_buf_status(&j->head, "the meta block", e));
    return tnf_put(j->w, j->head.p, j->head.n, e);
}

/* -------------------------------------------------------------------- file */

static tnf_status find_objects(struct task *j, tnf_error *e)
{
    const tnf_object *app = NULL;
    for (size_t i = 0; i < j->w->catalog->n; i++) {
        const tnf_object *o = &j->w->catalog->objects[i];
        if (tnf_str_is(o->name, VS_POINTS))
            j->points = o;
        else
            app = o;
    }
    if (app && (!j->points || app->shape[0] != j->points->shape[0]))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "appdata has %llu rows, but points has %llu: there must be one per point",
                        (unsigned long long)app->shape[0],
                        (unsigned long long)(j->points ? j->points->shape[0] : 0));
    j->options[0] = j->points ? tnf_value_get(j->points->attrs, VS_OPTIONS) : NULL;
    j->options[1] = app ? tnf_value_get(app->attrs, VS_OPTIONS) : NULL;
    bool texts = j->points && j->points->layout != &tnf_layout_dense;
    tnf_vs_strings_init(&j->app, app, &j->w->scratch->alloc);
    tnf_vs_strings_init(&j->texts, texts ? j->points : NULL, &j->w->scratch->alloc);
    return TNF_OK;
}

/* Writes a space without numbers: all blocks unchanged. */
static tnf_status put_verbatim(struct task *j, tnf_error *e)
{
    const tnf_catalog *c = j->w->catalog;
    for (size_t i = 0; i < c->nextras; i++)
        if (tnf_str_is(c->extras[i].key, VS_BLOCKS))
            TNF_TRY(tnf_put_data(j->w, &c->extras[i].bytes, e));
    return TNF_OK;
}

static tnf_status put_points(struct task *j, tnf_error *e)
{
    tnf_buf attributes;
    tnf_buf_init(&attributes, &j->w->scratch->alloc, UINT32_MAX);
    tnf_status status = put_meta(j, &attributes, e);
    tnf_buf_free(&attributes);
    TNF_TRY(status);
    if (!j->meta.type)
        return put_texts(j, e);
    bool bits = j->meta.type->bits == 1 && j->meta.elements % 8 != 0;
    return tnf_scan(&j->points->parts[0], bits ? take_bits : take_bytes, j, e);
}

static tnf_status put_all(struct task *j, tnf_error *e)
{
    static const uint8_t header[TNF_VS_HEADER] = { 'V', 'S', 0, 0 };
    TNF_TRY(find_objects(j, e));
    TNF_TRY(place_extras(j, e));
    TNF_TRY(tnf_put(j->w, header, sizeof header, e));
    TNF_TRY(put_named(j, VS_BEFORE, e));
    TNF_TRY(j->points ? put_points(j, e) : put_verbatim(j, e));
    TNF_TRY(put_blocks(j, UINT64_MAX, e));
    return tnf_put_u8(j->w, TNF_VS_END, e);
}

tnf_status tnf_vs_write(tnf_writer *w, tnf_error *e)
{
    const tnf_allocator *a = &w->scratch->alloc;
    struct task j = { .w = w, .msb = w->options[VS_WRITE_VARINT].u != 0 };
    tnf_buf_init(&j.head, a, UINT64_MAX);
    tnf_buf_init(&j.gathered, a, UINT32_MAX);
    tnf_buf_init(&j.packed, a, UINT64_MAX);
    tnf_status status = put_all(&j, e);
    tnf_vs_strings_free(&j.texts);
    tnf_vs_strings_free(&j.app);
    tnf_buf_free(&j.packed);
    tnf_buf_free(&j.gathered);
    tnf_buf_free(&j.head);
    return status;
}
