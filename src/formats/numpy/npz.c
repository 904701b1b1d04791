/* SPDX-License-Identifier: MIT */
/* NumPy's .npz: many arrays, as a zip archive.
 *
 *   member NAME.npy     a .npy file: the array NAME; stored or deflated, at any offset
 *   …
 *   directory, end      see wire/zip
 *
 * The writer writes the same bytes as numpy.savez(). The reader follows numpy.load(), except for
 * object arrays: they are pickles, which are never executed. Members that are not arrays are kept.
 */
#include "formats/numpy/npz.h"

#include "base/digest.h"

#include "base/crc32.h"
#include "container/zip_sink.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ALIGN 4096u /* the spaces must fit into the header of an array */

/* ------------------------------------------------------------------- probe */

/* Is the first member an array, by its name or its first bytes? */
static bool array_first(const tnf_probe *p)
{
    if (p->nhead < 30)
        return false;
    size_t name = tnf_le16(p->head + 26), extra = tnf_le16(p->head + 28);
    if (30 + name > p->nhead)
        return false;
    tnf_str first = { (const char *)p->head + 30, name };
    size_t data = 30 + name + extra;
    return tnf_npz_has_suffix(first, NPZ_SUFFIX, sizeof NPZ_SUFFIX - 1) ||
           (data + NP_MAGIC_N <= p->nhead && memcmp(p->head + data, NP_MAGIC, NP_MAGIC_N) == 0);
}

static int probe_npz(const tnf_probe *p)
{
    bool named = strcmp(p->ext, "npz") == 0;
    bool zip = p->nhead >= 4 &&
               (memcmp(p->head, "PK\3\4", 4) == 0 || memcmp(p->head, "PK\5\6", 4) == 0);
    if (zip && array_first(p))
        return TNF_PROBE_STRUCTURE;
    if (zip && (named || p->head[2] == 5)) /* an empty archive is one without arrays */
        return TNF_PROBE_PLAUSIBLE;
    return named && p->nhead > 0 ? TNF_PROBE_EXTENSION : TNF_PROBE_NO;
}

/* ----------------------------------------------------------------- writing */

static const tnf_option_info write_options[] = {
    { "compress", TNF_OPTION_CHOICE, "auto|stored|deflate", "auto",
      "how members are stored; auto: as in the source .npz, else uncompressed" },
    { "level", TNF_OPTION_UINT, NULL, "0", "level of deflate, 1 to 9; 0: its default, 6" },
    { "align", TNF_OPTION_UINT, NULL, "0",
      "begin the elements of stored arrays at multiples of this (a power of two; 0: as NumPy), by "
      "spaces in their headers" },
    { "stash", TNF_OPTION_BOOL, NULL, "yes",
      "keep metadata of other formats, and types that NumPy lacks, in an array " TNF_STASH_KEY },
    { 0 },
};

/* The archive being written. */
typedef struct writing {
    tnf_writer *w;
    tnf_zip_sink zip;
    tnf_encoder *encoder; /* of the member, if it is deflated */
    uint32_t crc;         /* of its bytes so far */
    uint64_t size;
    bool deflate;
    tnf_hash extras; /* by their keys */
    bool *behind;    /* per extra: it is written after an array */
} writing;

static tnf_status put_stored(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    return tnf_put(((writing *)ctx)->w, bytes, n, e);
}

/* Writes uncompressed bytes of the member. */
static tnf_status put_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    writing *x = ctx;
    x->crc = tnf_crc32(x->crc, bytes, n);
    x->size += n;
    return x->encoder ? tnf_encoder_write(x->encoder, bytes, n, e) : put_stored(x, bytes, n, e);
}

/* Writes the bytes of a part. Without compression the core copies them the fastest way. */
static tnf_status put_part(writing *x, const tnf_part *part, bool big, tnf_error *e)
{
    if (x->encoder)
        return tnf_put_through(x->w, part, big, put_bytes, x, e);
    tnf_put_how how = { .codec = TNF_CODEC_RAW, .big_endian = big, .digest = "crc32" };
    tnf_put_done done;
    how.of_stored = true;
    TNF_TRY(tnf_put_part(x->w, part, &how, &done, e));
    x->crc = tnf_crc32_join(x->crc, tnf_be32(done.digest), part->nbytes);
    x->size += part->nbytes;
    return TNF_OK;
}

static tnf_status begin_member(writing *x, tnf_str name, tnf_error *e)
{
    tnf_encode_to to = { put_stored, x };
    tnf_zip_put m = { .name = name, .deflated = x->deflate };
    x->crc = 0;
    x->size = 0;
    TNF_TRY(tnf_zip_sink_member(&x->zip, &m, e));
    if (!x->deflate)
        return TNF_OK;
    return tnf_encoder_open(&x->encoder, TNF_CODEC_DEFLATE, (int)x->w->options[NPZ_WRITE_LEVEL].u,
                            &to, &x->w->scratch->alloc, e);
}

static tnf_status end_member(writing *x, tnf_error *e)
{
    if (x->encoder) {
        TNF_TRY(tnf_encoder_end(x->encoder, e));
        tnf_encoder_close(x->encoder);
        x->encoder = NULL;
    }
    return tnf_zip_sink_member_end(&x->zip, x->size, x->crc, e);
}

/* ----------------------------------------------------------------- extras */

static tnf_str extra_key(const void *ctx, uint32_t i)
{
    return ((const tnf_catalog *)ctx)->extras[i].key;
}

static tnf_status index_extras(writing *x, tnf_error *e)
{
    const tnf_catalog *c = x->w->catalog;
    uint32_t previous;
    x->behind = tnf_arena_array(x->w->scratch, c->nextras, sizeof *x->behind);
    if (!x->behind)
        return tnf_arena_fail(x->w->scratch, "extras", e);
    for (size_t i = 0; i < c->nextras; i++)
        if (!tnf_hash_add(&x->extras, (uint32_t)i, false, &previous))
            return tnf_no_memory("extras", e);
    return TNF_OK;
}

/* Writes the trailing bytes of this member's array. */
static tnf_status put_behind(writing *x, tnf_str member, tnf_error *e)
{
    const tnf_catalog *c = x->w->catalog;
    if (c->nextras == 0)
        return TNF_OK;
    size_t a = sizeof NPZ_PREFIX - 1, b = sizeof NPZ_BEHIND - 1;
    char *key = tnf_arena_raw(x->w->scratch, a + member.n + b);
    if (!key)
        return tnf_arena_fail(x->w->scratch, "a name", e);
    memcpy(key, NPZ_PREFIX, a);
    memcpy(key + a, member.p, member.n);
    memcpy(key + a + member.n, NPZ_BEHIND, b);
    uint32_t at = tnf_hash_find(&x->extras, key, a + member.n + b);
    if (at == TNF_HASH_NONE)
        return TNF_OK;
    x->behind[at] = true;
    return put_part(x, &c->extras[at].bytes, false, e);
}

/* Writes the other members. Extras of the .npy format are not members. */
static tnf_status put_others(writing *x, tnf_error *e)
{
    const tnf_catalog *c = x->w->catalog;
    size_t n = sizeof NPZ_PREFIX - 1;
    for (size_t i = 0; i < c->nextras; i++) {
        tnf_str key = c->extras[i].key;
        if (x->behind[i] || key.n < n || memcmp(key.p, NPZ_PREFIX, n) != 0)
            continue;
        TNF_TRY(begin_member(x, (tnf_str) { key.p + n, key.n - n }, e));
        TNF_TRY(put_part(x, &c->extras[i].bytes, false, e));
        TNF_TRY(end_member(x, e));
    }
    return TNF_OK;
}

/* ----------------------------------------------------------------- arrays */

static tnf_status member_name(tnf_str *out, writing *x, const tnf_object *o, tnf_error *e)
{
    size_t more = sizeof NPZ_SUFFIX - 1;
    char *name = tnf_arena_raw(x->w->scratch, o->name.n + more);
    if (!name)
        return tnf_arena_fail(x->w->scratch, "a name", e);
    if (o->name.n)
        memcpy(name, o->name.p, o->name.n);
    memcpy(name + o->name.n, NPZ_SUFFIX, more);
    *out = (tnf_str) { name, o->name.n + more };
    return TNF_OK;
}

static tnf_status put_header(writing *x, tnf_str name, const tnf_object *o, np_array *a,
                             const np_context *context, tnf_error *e)
{
    tnf_buf b;
    tnf_zip_put m = { .name = name };
    uint64_t align = x->deflate ? 0 : x->w->options[NPZ_WRITE_ALIGN].u;
    tnf_buf_init(&b, &x->w->scratch->alloc, 8 * NP_MAX_HEADER);
    tnf_status status = tnf_np_make_header(&b, x->w, o, a, context, tnf_zip_sink_data(&x->zip, &m),
                                           align, e);
    if (status == TNF_OK)
        status = begin_member(x, name, e);
    if (status == TNF_OK)
        status = put_bytes(x, b.p, b.n, e);
    tnf_buf_free(&b);
    return status;
}

static tnf_status put_elements(writing *x, const tnf_object *o, const np_array *a, tnf_error *e)
{
    if (tnf_np_is_strings(o))
        return tnf_np_put_strings(o, a->type.width, put_bytes, x, e);
    if (a->fortran && a->type.naxes)
        return tnf_np_scatter(x->w, o, a->rank, a->type.big, put_bytes, x, e);
    return put_part(x, &o->parts[0], a->type.big, e);
}

static tnf_status put_array(writing *x, const tnf_object *o, tnf_error *e)
{
    tnf_arena once;
    np_form f;
    tnf_str name;
    TNF_TRY(member_name(&name, x, o, e));
    tnf_arena_init(&once, &x->w->scratch->alloc, x->w->scratch->limit);
    np_context context = { .arena = &once };
    tnf_status status = tnf_np_form_of(&f, &context, o, false, e);
    if (status == TNF_OK)
        status = put_header(x, name, o, &f.a, &context, e);
    if (status == TNF_OK)
        status = put_elements(x, o, &f.a, e);
    tnf_arena_free(&once);
    TNF_TRY(status);
    TNF_TRY(put_behind(x, name, e));
    return end_member(x, e);
}

static bool was_deflated(const tnf_writer *w)
{
    const tnf_value attrs = tnf_attrs_value(&w->catalog->attrs);
    const tnf_value *v = tnf_value_get(&attrs, NPZ_COMPRESS);
    return tnf_value_is(v, "deflate");
}

static tnf_str comment_of(const tnf_writer *w)
{
    const tnf_value attrs = tnf_attrs_value(&w->catalog->attrs);
    const tnf_value *v = tnf_value_get(&attrs, NPZ_COMMENT);
    if (!v || (v->kind != TNF_STRING && v->kind != TNF_BYTES))
        return (tnf_str) { "", 0 };
    return (tnf_str) { v->as.s, v->n };
}

static tnf_status put_all(writing *x, tnf_error *e)
{
    TNF_TRY(index_extras(x, e));
    for (size_t i = 0; i < x->w->catalog->n; i++)
        TNF_TRY(put_array(x, &x->w->catalog->objects[i], e));
    TNF_TRY(put_others(x, e));
    return tnf_zip_sink_end(&x->zip, comment_of(x->w), e);
}

tnf_status tnf_npz_write(tnf_writer *w, tnf_error *e)
{
    uint64_t align = w->options[NPZ_WRITE_ALIGN].u, how = w->options[NPZ_WRITE_COMPRESS].u;
    if (align & (align - 1) || align > MAX_ALIGN)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "align must be a power of two up to %u, not %llu", MAX_ALIGN,
                        (unsigned long long)align);
    writing x = { .w = w, .deflate = how == 2 || (how == 0 && was_deflated(w)) };
    tnf_zip_sink_begin(&x.zip, w->sink, TNF_ZIP_PYTHON, &w->scratch->alloc);
    tnf_hash_init(&x.extras, &w->scratch->alloc, extra_key, w->catalog);
    tnf_status status = put_all(&x, e);
    tnf_encoder_close(x.encoder);
    tnf_hash_free(&x.extras);
    tnf_zip_sink_free(&x.zip);
    return status;
}

/* Does a name point outside the directory into which the archive is unpacked? */
static bool leads_out(tnf_str name)
{
    if (name.n && name.p[0] == '/')
        return true;
    for (size_t i = 0; i + 1 < name.n; i++) {
        bool starts = i == 0 || name.p[i - 1] == '/',
             ends = i + 2 == name.n || name.p[i + 2] == '/';
        if (starts && ends && name.p[i] == '.' && name.p[i + 1] == '.')
            return true;
    }
    return false;
}

static tnf_fate takes_npz(const tnf_object *o, const char **reason)
{
    *reason = "the name of a member can have at most 65,535 bytes";
    if (o->name.n > UINT16_MAX - (sizeof NPZ_SUFFIX - 1))
        return TNF_DROPPED;
    *reason = "its name contains a NUL, which is not allowed in an archive";
    if (o->name.n && memchr(o->name.p, 0, o->name.n))
        return TNF_DROPPED;
    *reason = "its name points outside the archive (.. or a leading /)";
    return leads_out(o->name) ? TNF_DROPPED : tnf_np_takes(o, reason);
}

/* NumPy has no 8-bit floats. They are written as bytes and their type is recorded, unless the array
 * has a descriptor that names it. */
static bool as_storage(const tnf_object *o)
{
    const tnf_value *v = tnf_value_get(o->attrs, NP_DESCR);
    const char *id = o->parts[0].type->id;
    if (strncmp(id, "f8_", 3) != 0)
        return false;
    if (!v || v->kind != TNF_STRING || v->n < 6)
        return !tnf_value_is(v, "<f1");
    const char *spelled = v->as.s[0] == '(' ? v->as.s + 2 : v->as.s; /* a subarray: ('<f1', … */
    return memcmp(spelled, "fl", 2) != 0 && memcmp(spelled, "<f1", 3) != 0;
}

const tnf_format tnf_format_npz = {
    .name = "npz",
    .title = "NumPy arrays (.npz)",
    .extensions = "npz",
    .family = "numpy",
    .caps = TNF_CAN_READ | TNF_CAN_WRITE,
    .rules = TNF_RULE_NO_OVERLAP,
    .check_reads = &tnf_digests,
    .can = { .types = NP_TYPES,
             .layouts = "dense strings/1",
             .in_parts = tnf_np_in_parts,
             .pads_strings = true,
             .as_storage = as_storage,
             .order_f = true,
             .was_f = tnf_np_was_columns_first,
             .zero_rank = true,
             .extras = true,
             .extra_prefix = "npz",
             .utf8_names = true,
             .attrs = TNF_HOLDS_NONE,
             .stash_type = "u8",
             .file_attrs = NPZ_COMPRESS " " NPZ_COMMENT " " NP_VERSION,
             .object_attrs = NP_DESCR " " NP_HEADER " " NP_ORDER " " NP_VERSION,
             .derived = NP_VERSION "=1.0",
             .spelling = NPZ_COMPRESS " " NP_SPELLING,
             .takes = takes_npz },
    .read_options = tnf_np_read_options,
    .write_options = write_options,
    .probe = probe_npz,
    .index = tnf_npz_index,
    .decode = tnf_npz_decode,
    .element_text = tnf_np_element_text,
    .write = TNF_WRITES(tnf_npz_write),
    .verify = tnf_npz_verify,
};
