/* SPDX-License-Identifier: MIT */
/* Vectors of the big-ann-benchmarks, of DiskANN and of cuVS: .fbin, .u8bin, .i8bin, .ibin, .f16bin.
 *
 *   u32 n   u32 d            little-endian; u64 each if the rows exceed 32 bits
 *   n * d elements           rows, contiguous up to the end of the file
 *
 *   fbin f32   u8bin u8   i8bin i8   ibin i32   f16bin, hbin f16     only the extension says which
 *
 * Files of true neighbours have the extension .ibin and two matrices, recognised by the size:
 *
 *   u32 n   u32 k   n * k ids (u32)   n * k distances (f32)
 *
 * There is no magic: the size must be what the header says.
 */
#include "formats/vectors/vectors.h"

#include <string.h>

#define KIND   "fbin.kind"
#define HEADER "fbin.header"
#define TRUTH  "groundtruth"
#define HEAD   8u
#define WIDE   16u

static const vec_kind kinds[] = {
    { "fbin", "f32", true }, { "u8bin", "u8", true },   { "i8bin", "i8", true },
    { "ibin", "i32", true }, { "f16bin", "f16", true }, { "hbin", "f16", true },
    { NULL, NULL, false },
};

/* The header of a file. */
typedef struct fbin_head {
    uint64_t n, d;
    unsigned bytes; /* size of the header */
    bool truth;
} fbin_head;

/* Is this exactly the size of the file? A size above 2^64 is not. */
static bool is_exact(uint64_t size, unsigned head, uint64_t n, uint64_t d, uint64_t width)
{
    uint64_t bytes;
    return tnf_ckd_mul(&bytes, n, d) && tnf_ckd_mul(&bytes, bytes, width) &&
           tnf_ckd_add(&bytes, bytes, head) && bytes == size;
}

/* ------------------------------------------------------------------- probe */

static int probe_fbin(const tnf_probe *p)
{
    static const uint64_t widths[] = { 4, 1, 2, 8 };
    bool told = tnf_vec_by_extension(kinds, p->ext), fits = false;
    if (p->nhead < HEAD)
        return told ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
    uint64_t n = tnf_le32(p->head), d = tnf_le32(p->head + 4);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        fits = fits || (is_exact(p->size, HEAD, n, d, widths[i]) && (d > 0 || n == 0));
    if (!fits && p->nhead >= WIDE) {
        n = tnf_le64(p->head);
        d = tnf_le64(p->head + 8);
        for (size_t i = 0; i < 3; i++)
            fits = fits || (n * d > 0 && is_exact(p->size, WIDE, n, d, widths[i]));
    }
    if (told)
        return fits ? TNF_PROBE_PLAUSIBLE + 5 : TNF_PROBE_EXTENSION;
    return fits && !tnf_vec_extension(p->ext) ? TNF_PROBE_PLAUSIBLE - 10 : TNF_PROBE_NO;
}

/* ----------------------------------------------------------------- reading */

enum { READ_TYPE };

static const tnf_option_info read_options[] = {
    { "type", TNF_OPTION_CHOICE, "auto|f32|u8|i8|i32|f16", "auto",
      "type of the elements; auto: by the extension" },
    { 0 },
};

/* If the rule of the other family holds exactly, the file probably belongs to that family. */
static const char *other_family(uint64_t size, uint64_t d)
{
    bool seems = d > 0 && d <= INT32_MAX && (size % (4 + 4 * d) == 0 || size % (4 + d) == 0);
    return seems ? "; this looks like a file of the vecs family" : "";
}

/* Guesses the type of the elements: the first type whose size fits. */
static const vec_kind *guess_kind(uint64_t size, const fbin_head *h)
{
    static const char *const order[] = { "f32", "u8", "f16" };
    if (h->n == 0 || h->d == 0)
        return &kinds[0];
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const vec_kind *k = tnf_vec_by_type(kinds, order[i]);
        if (is_exact(size, h->bytes, h->n, h->d, tnf_type_named(k->type)->bits / 8))
            return k;
    }
    return is_exact(size, h->bytes, h->n, h->d, 8) ? tnf_vec_by_type(kinds, "i32") : &kinds[0];
}

/* Reports more or fewer bytes than the header says. Cropped large files often keep their old
 * header.
 */
static tnf_status wrong_size(tnf_reader *r, fbin_head *h, uint64_t width, tnf_error *e)
{
    uint64_t size = r->source->size, row = h->d * width, need;
    if (!tnf_ckd_mul(&need, h->n, h->d) || !tnf_ckd_mul(&need, need, width) ||
        !tnf_ckd_add(&need, need, HEAD))
        return tnf_fail(e, TNF_EFORMAT, 0, "%llu vectors of %llu elements exceed 2^64 bytes%s",
                        (unsigned long long)h->n, (unsigned long long)h->d,
                        other_family(size, h->n));
    if (need < size)
        return tnf_stricter(r, e, TNF_EFORMAT, need, "%s the %s of %s%s",
                            TNF_BYTES_FOLLOW(size - need), TNF_COUNTED(h->n, "vector", "vectors"),
                            TNF_COUNTED(h->d, "element", "elements"), other_family(size, h->n));
    if (row == 0)
        return TNF_OK; /* no data are expected */
    uint64_t there = (size - HEAD) / row;
    if (!r->salvage && (size - HEAD) % row != 0)
        return tnf_fail(e, TNF_ETRUNCATED, size, "%s missing (cut short?)%s",
                        TNF_BYTES_ARE(need - size), other_family(size, h->n));
    TNF_TRY(tnf_stricter(r, e, TNF_ETRUNCATED, size,
                         "the file has %llu of %llu vectors: %s missing", (unsigned long long)there,
                         (unsigned long long)h->n, TNF_BYTES_ARE(need - size)));
    h->n = there;
    return TNF_OK;
}

/* Decides which of the three forms the file has. */
static tnf_status find_form(tnf_reader *r, fbin_head *h, const vec_kind **kind, tnf_error *e)
{
    tnf_cur c;
    uint64_t size = r->source->size;
    fbin_head wide = { .bytes = WIDE };
    TNF_TRY(tnf_read_range(r, "header", 0, HEAD, HEAD, &c, e));
    *h = (fbin_head) { .n = tnf_u32(&c), .bytes = HEAD };
    h->d = tnf_u32(&c);
    if (!*kind)
        *kind = guess_kind(size, h);
    uint64_t width = tnf_type_named((*kind)->type)->bits / 8;
    if (h->d == 0 && h->n > 0 && size == HEAD)
        return tnf_fail(
            e, TNF_EFORMAT, 4,
            "the header says that there are vectors (%llu), but that they have no elements",
            (unsigned long long)h->n);
    if (is_exact(size, HEAD, h->n, h->d, width))
        return TNF_OK;
    if (strcmp((*kind)->type, "i32") == 0 && is_exact(size, HEAD, h->n, h->d, 8)) {
        h->truth = true;
        return TNF_OK;
    }
    if (size >= WIDE) {
        TNF_TRY(tnf_read_range(r, "header", 0, WIDE, WIDE, &c, e));
        wide.n = tnf_u64(&c);
        wide.d = tnf_u64(&c);
        if (wide.d > 0 && is_exact(size, WIDE, wide.n, wide.d, width)) {
            *h = wide;
            return TNF_OK;
        }
    }
    if (h->d == 0 && h->n > 0)
        return tnf_fail(
            e, TNF_EFORMAT, 4,
            "the header says that there are vectors (%llu), but that they have no elements%s",
            (unsigned long long)h->n, other_family(size, h->n));
    return wrong_size(r, h, width, e);
}

static tnf_status add_matrix(tnf_reader *r, const fbin_head *h, const char *name,
                             const tnf_type *type, uint64_t offset, tnf_error *e)
{
    const uint64_t shape[] = { h->n, h->d };
    tnf_dense d = { .name = { name, strlen(name) },
                    .type = type,
                    .shape = shape,
                    .rank = 2,
                    .offset = offset,
                    .length = h->n * h->d * (type->bits / 8) };
    return tnf_add_dense(r, &d, e);
}

static tnf_status index_fbin(tnf_reader *r, tnf_error *e)
{
    fbin_head h;
    const vec_kind *k = tnf_vec_by_type(kinds, r->options[READ_TYPE].s);
    if (!k)
        k = tnf_vec_by_extension(kinds, r->extension);
    TNF_TRY(find_form(r, &h, &k, e));
    const tnf_type *type = tnf_type_named(k->type);
    r->data_start = h.bytes;
    TNF_TRY(tnf_set_attr(r, KIND, tnf_value_string(h.truth ? TRUTH : k->name), e));
    if (h.bytes == WIDE)
        TNF_TRY(tnf_set_attr(r, HEADER, tnf_value_uint(64), e));
    TNF_TRY(add_matrix(r, &h, VEC_NAME, type, h.bytes, e));
    if (!h.truth)
        return TNF_OK;
    return add_matrix(r, &h, VEC_DISTANCES, tnf_type_of(TNF_F32), HEAD + h.n * h.d * 4, e);
}

/* ----------------------------------------------------------------- writing */

enum { WRITE_TYPE, WRITE_HEADER };

static const tnf_option_info write_options[] = {
    { "type", TNF_OPTION_CHOICE, "auto|f32|u8|i8|i32|f16", "auto",
      "type of the elements; auto: by the extension, or else that of the tensor" },
    { "header", TNF_OPTION_CHOICE, "auto|32|64", "auto",
      "bits of the numbers of rows and columns; auto: as in the source file, or 32" },
    { 0 },
};

/* Can a reader guess the type from the size alone? */
static bool is_guessed(const tnf_object *o)
{
    const char *type = o->parts->type->id;
    bool empty = o->shape[0] == 0 || o->shape[o->rank - 1] == 0;
    return strcmp(type, "f32") == 0 ||
           (!empty && (strcmp(type, "u8") == 0 || strcmp(type, "f16") == 0));
}

static tnf_status fits_fbin(tnf_fit *fit, tnf_error *e)
{
    static const vec_rules rules = {
        .kinds = kinds,
        .lone = "a file of vectors holds one matrix",
        .untold = "only the extension (.ibin, .i8bin …) says the type of the elements: add one",
        .other = "the extension or the option `type` differs from the type of the tensor",
        .empty = true,
        .guessed = is_guessed,
        .pairs = true,
    };
    (void)e;
    return tnf_vec_fits(fit, &rules, fit->options[WRITE_TYPE].s);
}

static bool is_wide(const tnf_writer *w)
{
    const tnf_value *was = tnf_catalog_attr(w->catalog, HEADER);
    if (w->options[WRITE_HEADER].u)
        return w->options[WRITE_HEADER].u == 2;
    return was && was->kind == TNF_UINT && was->as.u == 64;
}

static tnf_status put_head(tnf_writer *w, uint64_t n, uint64_t d, bool wide, tnf_error *e)
{
    if (wide) {
        TNF_TRY(tnf_put_u64(w, n, e));
        return tnf_put_u64(w, d, e);
    }
    if (n > UINT32_MAX || d > UINT32_MAX)
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                        "the header has only 32 bits each for rows and columns: use -o header=64");
    TNF_TRY(tnf_put_u32(w, (uint32_t)n, e));
    return tnf_put_u32(w, (uint32_t)d, e);
}

static tnf_status write_fbin(tnf_writer *w, tnf_error *e)
{
    const tnf_catalog *c = w->catalog;
    const tnf_object *o = &c->objects[0], *pair = NULL;
    if (c->n == 2) {
        bool first = tnf_str_is(o->name, VEC_NAME);
        o = &c->objects[first ? 0 : 1];
        pair = &c->objects[first ? 1 : 0];
    }
    uint64_t n = o->rank == 2 ? o->shape[0] : 1, d = o->shape[o->rank - 1];
    TNF_TRY(put_head(w, n, d, !pair && n && d && is_wide(w), e));
    TNF_TRY(tnf_put_data(w, &o->parts[0], e));
    return pair ? tnf_put_data(w, &pair->parts[0], e) : TNF_OK;
}

const tnf_format tnf_format_fbin = {
    .name = "fbin",
    .title = "Vectors with one header for all (.fbin, .ibin …)",
    .extensions = "fbin u8bin i8bin ibin f16bin hbin",
    .family = "fbin",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .rules = TNF_RULE_DATA_START | TNF_RULE_NO_OVERLAP,
    .can = { .types = "f32 u8 i8 i32 f16",
             .layouts = "dense",
             .not_empty = "a file of vectors must hold exactly one matrix, and there is none",
             .attrs = TNF_HOLDS_NONE,
             .file_attrs = HEADER,
             .derived = KIND,
             .spelling = HEADER,
             .fits = fits_fbin },
    .read_options = read_options,
    .write_options = write_options,
    .probe = probe_fbin,
    .index = index_fbin,
    .write = TNF_WRITES(write_fbin),
};
