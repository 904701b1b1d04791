/* SPDX-License-Identifier: MIT */
/* Vectors of the TEXMEX sets (SIFT1M, GIST1M …): .fvecs, .ivecs, .bvecs.
 *
 *   i32 d   d elements      4 + d * width bytes, all little-endian
 *   i32 d   d elements      the same d in each record
 *   …                       up to the end of the file: no header, no count, no magic
 *
 *   fvecs f32   ivecs i32   bvecs u8         only the extension says which
 *
 * The vectors become one tensor, `vectors` [n, d]. Its rows are `record` bytes apart, so it cannot
 * be mapped as a whole. Opening checks the heads of 64 records; reading checks the head of each row
 * that it begins.
 */
#include "formats/vectors/vectors.h"

#include <string.h>

#define KIND      "vecs.kind"
#define HEAD      4u
#define SAMPLES   64u
#define MAX_GUESS 65536u
#define BLOCK     ((size_t)1 << 20)

static const vec_kind kinds[] = {
    { "fvecs", "f32", true },  { "ivecs", "i32", true },  { "bvecs", "u8", true },
    { "hvecs", "f16", false }, { "i8vecs", "i8", false }, { "dvecs", "f64", false },
    { NULL, NULL, false },
};

typedef struct vecs_state {
    uint64_t n, d, row, record; /* row: bytes of a row's elements; record: with its head */
} vecs_state;

/* ------------------------------------------------------------------- probe */

/* Do the records that a probe sees have the same d, and do they fill the file? */
static bool seems_to_be(const tnf_probe *p, uint32_t d, uint64_t width)
{
    uint64_t record = HEAD + d * width;
    if (record > p->size || p->size % record != 0)
        return false;
    for (uint64_t at = record; at + HEAD <= p->nhead; at += record)
        if (tnf_le32(p->head + at) != d)
            return false;
    return record > p->ntail || tnf_le32(p->tail + (p->ntail - record)) == d;
}

/* Extensions that occur, but have no agreed type. */
static const vec_kind *unsure_kind(const char *ext)
{
    for (const vec_kind *k = kinds; k->name; k++)
        if (!k->known && strcmp(k->name, ext) == 0)
            return k;
    return NULL;
}

static int probe_vecs(const tnf_probe *p)
{
    const vec_kind *told = tnf_vec_by_extension(kinds, p->ext);
    if (p->nhead < HEAD || unsure_kind(p->ext))
        return told || unsure_kind(p->ext) ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
    uint32_t d = tnf_le32(p->head);
    bool fits = d > 0 && d <= MAX_GUESS && (seems_to_be(p, d, 4) || seems_to_be(p, d, 1));
    if (told)
        return fits ? TNF_PROBE_PLAUSIBLE + 5 : TNF_PROBE_EXTENSION;
    return fits && !tnf_vec_extension(p->ext) ? TNF_PROBE_PLAUSIBLE - 5 : TNF_PROBE_NO;
}

/* ----------------------------------------------------------------- reading */

enum { READ_TYPE };

static const tnf_option_info read_options[] = {
    { "type", TNF_OPTION_CHOICE, "auto|f32|i32|u8|f16|i8|f64", "auto",
      "type of the elements; auto: by the extension" },
    { 0 },
};

/* If the rule of the other family holds exactly, the file probably belongs to that family. */
static const char *other_family(const tnf_reader *r)
{
    uint8_t head[8];
    uint64_t bytes;
    if (r->source->size < sizeof head ||
        tnf_source_read(r->source, 0, head, sizeof head, NULL) != TNF_OK ||
        !tnf_ckd_mul(&bytes, tnf_le32(head), tnf_le32(head + 4)))
        return "";
    uint64_t data = r->source->size - sizeof head;
    return bytes > 0 && (data == bytes || (data % 4 == 0 && data / 4 == bytes))
               ? "; this looks like an fbin file"
               : "";
}

static tnf_status wrong_head(const vecs_state *s, uint64_t row, uint32_t found, tnf_error *e)
{
    return tnf_fail(e, TNF_EFORMAT, row * s->record,
                    "vector %llu has %lld elements, but the first one has %llu",
                    (unsigned long long)row, (long long)(int32_t)found, (unsigned long long)s->d);
}

static tnf_status check_head(const tnf_reader *r, const vecs_state *s, uint64_t row, tnf_error *e)
{
    uint8_t head[HEAD];
    TNF_TRY(tnf_source_read(r->source, row * s->record, head, sizeof head, e));
    return tnf_le32(head) == s->d ? TNF_OK : wrong_head(s, row, tnf_le32(head), e);
}

/* Checks the first, the last and some heads between. */
static tnf_status check_samples(const tnf_reader *r, const vecs_state *s, tnf_error *e)
{
    uint64_t many = s->n < SAMPLES ? s->n : SAMPLES;
    for (uint64_t i = 1; i < many; i++) {
        uint64_t row = s->n / (many - 1) * i + s->n % (many - 1) * i / (many - 1) - 1;
        row = many == s->n ? i : i + 1 == many ? s->n - 1 : row;
        TNF_TRY(check_head(r, s, row, e));
    }
    return TNF_OK;
}

/* Applies the rule for this width. Bytes left over at the end belong to a truncated vector. */
static tnf_status measure_file(tnf_reader *r, vecs_state *s, uint32_t d, uint64_t width,
                               tnf_error *e)
{
    uint64_t size = r->source->size;
    s->d = d;
    s->row = d * width;
    s->record = HEAD + s->row;
    s->n = size / s->record;
    uint64_t over = size % s->record;
    if (s->n == 0)
        return tnf_fail(e, TNF_ETRUNCATED, size,
                        "the first vector has %s: %s missing (cut short?)%s",
                        TNF_COUNTED(d, "element", "elements"), TNF_BYTES_ARE(s->record - size),
                        other_family(r));
    if (over)
        TNF_TRY(tnf_stricter(r, e, TNF_ETRUNCATED, size,
                             "the last vector, which has %s, ends too early: %s "
                             "missing (cut short?)%s",
                             TNF_COUNTED(d, "element", "elements"), TNF_BYTES_ARE(s->record - over),
                             other_family(r)));
    return check_samples(r, s, e);
}

/* Guesses the type: floats, unless only bytes fit. A read error is returned. */
static tnf_status guess_kind(const vec_kind **out, const tnf_reader *r, uint32_t d, tnf_error *e)
{
    static const char *const order[] = { "f32", "u8" };
    for (size_t i = 0; i < 2; i++) {
        const vec_kind *k = tnf_vec_by_type(kinds, order[i]);
        uint64_t width = tnf_type_named(k->type)->bits / 8, record = HEAD + d * width;
        vecs_state s = { r->source->size / record, d, d * width, record };
        if (s.n == 0 || r->source->size % record)
            continue;
        tnf_status status = check_samples(r, &s, e);
        *out = k;
        if (status != TNF_EFORMAT)
            return status;
    }
    *out = &kinds[0];
    return TNF_OK;
}

/* Refuses extensions without an agreed type: floats or bytes would be a wrong guess. */
static tnf_status check_extension(const tnf_reader *r, tnf_error *e)
{
    const vec_kind *k = unsure_kind(r->extension);
    return k ? tnf_fail(e, TNF_EUNSUPPORTED, 0,
                        "the extension .%s has no agreed type of elements: use -o type=%s", k->name,
                        k->type)
             : TNF_OK;
}

static tnf_status index_vecs(tnf_reader *r, tnf_error *e)
{
    tnf_cur c;
    if (r->source->size == 0)
        return tnf_fail(e, TNF_ETRUNCATED, 0, "the file is empty: 4 bytes are missing");
    TNF_TRY(tnf_read_range(r, "first dimension", 0, HEAD, HEAD, &c, e));
    uint32_t d = tnf_u32(&c);
    if (d == 0 || d > INT32_MAX)
        return tnf_fail(e, TNF_EFORMAT, 0,
                        "the first vector has %d elements, but must have at least 1%s", (int32_t)d,
                        other_family(r));
    const vec_kind *k = tnf_vec_by_type(kinds, r->options[READ_TYPE].s);
    if (!k)
        k = tnf_vec_by_extension(kinds, r->extension);
    if (!k)
        TNF_TRY(check_extension(r, e));
    if (!k)
        TNF_TRY(guess_kind(&k, r, d, e));
    const tnf_type *type = tnf_type_named(k->type);
    vecs_state *s = tnf_arena_alloc(r->arena, sizeof *s);
    if (!s)
        return tnf_arena_fail(r->arena, "the vectors", e);
    TNF_TRY(measure_file(r, s, d, type->bits / 8, e));
    r->state = s;
    TNF_TRY(tnf_set_attr(r, KIND, tnf_value_string(k->name), e));
    const uint64_t shape[] = { s->n, s->d };
    tnf_part part = { .role = "data",
                      .type = type,
                      .stored = s->n * s->row,
                      .nbytes = s->n * s->row, /* less than the file */
                      .payload = TNF_OPAQUE };
    tnf_object object = { .name = TNF_STR(VEC_NAME),
                          .shape = shape,
                          .layout = &tnf_layout_dense,
                          .parts = &part,
                          .rank = 2,
                          .nparts = 1 };
    return tnf_add_object(r, &object, 0, e);
}

/* Reads as many complete records into dst as have room, then removes their heads. The space of the
 * heads remains for the next, shorter round. */
static tnf_status read_rows(const tnf_reader *r, uint64_t row, uint8_t *dst, size_t *rows,
                            tnf_error *e)
{
    const vecs_state *s = r->state;
    size_t n = (size_t)s->row, record = (size_t)s->record;
    size_t fit = *rows * n / record;
    if (fit == 0) { /* one row */
        *rows = 1;
        TNF_TRY(check_head(r, s, row, e));
        return tnf_source_read(r->source, row * s->record + HEAD, dst, n, e);
    }
    *rows = fit;
    TNF_TRY(tnf_source_read(r->source, row * s->record, dst, fit * record, e));
    for (size_t i = 0; i < fit; i++) {
        uint32_t d = tnf_le32(dst + i * record);
        if (d != s->d)
            return wrong_head(s, row + i, d, e);
        memmove(dst + i * n, dst + i * record + HEAD, n);
    }
    return TNF_OK;
}

/* Reads the beginning of a row. The head and a short beginning are read with one call. */
static tnf_status read_beginning(const tnf_reader *r, uint64_t row, uint8_t *dst, size_t n,
                                 tnf_error *e)
{
    const vecs_state *s = r->state;
    uint8_t block[4096];
    size_t first = n < sizeof block - HEAD ? n : 0;
    TNF_TRY(tnf_source_read(r->source, row * s->record, block, HEAD + first, e));
    if (tnf_le32(block) != s->d)
        return wrong_head(s, row, tnf_le32(block), e);
    if (first < n)
        return tnf_source_read(r->source, row * s->record + HEAD, dst, n, e);
    memcpy(dst, block + HEAD, n);
    return TNF_OK;
}

static tnf_status decode_vecs(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                              tnf_error *e)
{
    const vecs_state *s = r->state;
    (void)key;
    for (uint8_t *to = dst; n > 0;) {
        uint64_t row = offset / s->row, skip = offset % s->row, done;
        if (skip) {
            done = s->row - skip < n ? s->row - skip : n;
            TNF_TRY(check_head(r, s, row, e)); /* pieces of rows are checked, too */
            TNF_TRY(tnf_source_read(r->source, row * s->record + HEAD + skip, to, (size_t)done, e));
        } else if (n < s->row) {
            done = n;
            TNF_TRY(read_beginning(r, row, to, n, e));
        } else {
            size_t most = BLOCK / (size_t)s->record, rows = (size_t)(n / s->row);
            rows = most > 0 && rows > most ? most : rows;
            TNF_TRY(read_rows(r, row, to, &rows, e));
            done = rows * s->row;
        }
        to += done;
        offset += done;
        n -= (size_t)done;
    }
    return TNF_OK;
}

/* ----------------------------------------------------------------- writing */

enum { WRITE_TYPE };

static const tnf_option_info write_options[] = {
    { "type", TNF_OPTION_CHOICE, "auto|f32|i32|u8|f16|i8|f64", "auto",
      "type of the elements; auto: by the extension, or else that of the tensor" },
    { 0 },
};

static bool is_guessed(const tnf_object *o)
{
    return o->parts->type == tnf_type_of(TNF_F32);
}

static tnf_status fits_vecs(tnf_fit *fit, tnf_error *e)
{
    static const vec_rules rules = {
        .kinds = kinds,
        .lone = "a file of vectors holds one matrix",
        .untold =
            "only the extension (.fvecs, .ivecs, .bvecs) says the type of the elements: add one",
        .other = "the extension or the option `type` differs from the type of the tensor",
        .guessed = is_guessed,
    };
    (void)e;
    return tnf_vec_fits(fit, &rules, fit->options[WRITE_TYPE].s);
}

/* Streams rows, which arrive in any pieces, and inserts the heads. */
struct spread {
    tnf_writer *w;
    uint8_t *block;            /* complete records, and an incomplete one */
    size_t n, size, row, left; /* left: missing bytes of the current row */
    uint32_t d;
};

static tnf_status flush_spread(struct spread *s, tnf_error *e)
{
    size_t n = s->n;
    s->n = 0;
    return tnf_put(s->w, s->block, n, e);
}

static tnf_status take_rows(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct spread *s = ctx;
    for (const uint8_t *p = bytes; n > 0;) {
        if (s->left == 0) {
            if (s->size - s->n < HEAD)
                TNF_TRY(flush_spread(s, e));
            tnf_put_le32(s->block + s->n, s->d);
            s->n += HEAD;
            s->left = s->row;
        }
        if (s->n == s->size)
            TNF_TRY(flush_spread(s, e));
        size_t some = s->left < n ? s->left : n;
        some = s->size - s->n < some ? s->size - s->n : some;
        memcpy(s->block + s->n, p, some);
        s->n += some;
        s->left -= some;
        p += some;
        n -= some;
    }
    return TNF_OK;
}

static tnf_status write_vecs(tnf_writer *w, tnf_error *e)
{
    const tnf_object *o = &w->catalog->objects[0];
    uint64_t d = o->shape[o->rank - 1];
    struct spread s = { .w = w, .size = BLOCK };
    if (d > INT32_MAX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "a vector has at most 2147483647 elements");
    s.d = (uint32_t)d;
    s.row = (size_t)(d * (o->parts->type->bits / 8));
    s.block = tnf_arena_raw(w->scratch, s.size);
    if (!s.block)
        return tnf_arena_fail(w->scratch, "vectors", e);
    TNF_TRY(tnf_put_through(w, &o->parts[0], false, take_rows, &s, e));
    return flush_spread(&s, e);
}

const tnf_format tnf_format_vecs = {
    .name = "vecs",
    .title = "Vectors, each with its own dimension (.fvecs …)",
    .extensions = "fvecs ivecs bvecs fvec ivec bvec",
    .family = "vecs",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .can = { .types = "f32 i32 u8 f16 i8 f64",
             .layouts = "dense",
             .not_empty = "a file of vectors must hold exactly one matrix, and there is none",
             .attrs = TNF_HOLDS_NONE,
             .derived = KIND,
             .fits = fits_vecs },
    .read_options = read_options,
    .write_options = write_options,
    .probe = probe_vecs,
    .index = index_vecs,
    .decode = decode_vecs,
    .write = TNF_WRITES(write_vecs),
};
