/* SPDX-License-Identifier: MIT */
/* The writer. It writes version 3, little-endian, the same bytes as GGUFWriter and ggml: keys and
 * tensors in the order of the catalog, tensors contiguous, each padded with zeros, including the
 * last.
 *
 * Offsets are relative to the start of the data, so a file is edited by writing a new header of the
 * same length. Room for this is the padding, and the key tenfold.reserve (an array of u8, the last
 * key), which every reader ignores:
 *
 *   keys … tenfold.reserve 00 00 00 00 | entries | 00 │ data
 *   keys ……… …………. tenfold.reserve 00 | entries | 00 │ data       a key has grown
 */
#include "formats/gguf/gguf.h"
#include <tenfold/value.h>

enum { WRITE_ALIGNMENT, WRITE_VERSION, WRITE_ENDIAN, WRITE_RESERVE, WRITE_TYPES };

const tnf_option_info tnf_gguf_write_options[] = {
    { "alignment", TNF_OPTION_UINT, NULL, "0",
      "tensors begin at multiples of this (a power of two, 8 to 65536): sets general.alignment; 0: "
      "the value of that key, or 32" },
    { "version", TNF_OPTION_CHOICE, "2|3", "3", "version of the format" },
    { "endian", TNF_OPTION_CHOICE, "little|big", "little", "byte order of all numbers" },
    { "reserve", TNF_OPTION_UINT, NULL, "0",
      "leave this many bytes of room in the header for later edits of keys" },
    { "types", TNF_OPTION_CHOICE, "same|usual", "same",
      "usual: numbers of general.*, tokenizer.* and the architecture's keys without the prefix "
      "gguf. (as zt writes them) become u32, i32 and f32 if they fit" },
    { 0 },
};

#define MAX_HEADER ((uint64_t)1 << 32)
#define PIECE      ((size_t)1 << 20)

/* The form of the file to be written. */
typedef struct form {
    uint32_t version, alignment;
    bool big, swap_blocks; /* swap_blocks: the fields of blocks are swapped, too */
    bool say_alignment;
    bool usual; /* guess the types of keys that lost theirs */
    bool reserve;
    uint64_t reserve_size;
} form;

/* ---------------------------------------------------------- what fits a file */

static bool is_own(tnf_str key)
{
    return key.n > GGUF_PREFIX_N && memcmp(key.p, GGUF_PREFIX, GGUF_PREFIX_N) == 0;
}

/* The key as stored in the file. */
static tnf_str stored_key(tnf_str key)
{
    return is_own(key) ? (tnf_str) { key.p + GGUF_PREFIX_N, key.n - GGUF_PREFIX_N } : key;
}

/* A tensor may only have the attributes that its block type implies. */
static bool is_block_fact(const tnf_member *m, const tnf_layout *layout)
{
    uint64_t said = tnf_str_is(m->key, "elems_per_block") ? layout->block_elements
                    : tnf_str_is(m->key, "block_bytes")   ? layout->block_bytes
                                                          : 0;
    return said && m->value.kind == TNF_UINT && m->value.dtype == TNF_U64 && m->value.as.u == said;
}

bool tnf_gguf_holds_attr(const tnf_member *m, const tnf_object *of)
{
    tnf_str key = stored_key(m->key);
    if (of)
        return of->layout->block_bytes && is_block_fact(m, of->layout);
    if (key.n == 0 || key.n > 65535 || !tnf_utf8_valid(NULL, key.p, key.n) ||
        tnf_str_is(key, GGUF_RESERVE) || tnf_str_is(key, TNF_STASH_KEY))
        return false;
    if (!is_own(m->key) && tnf_str_is(key, GGUF_ALIGNMENT))
        return false;
    return tnf_gguf_holds(&m->value, 0);
}

tnf_fate tnf_gguf_takes(const tnf_object *o, const char **reason)
{
    uint64_t product = 1, bits = o->layout->block_bytes ? 8 : o->parts->type->bits;
    *reason = "the format allows at most four dimensions";
    if (o->rank > GGUF_MAX_RANK)
        return TNF_DROPPED;
    *reason = "its dimensions multiply to more than the format allows";
    for (uint32_t i = 0; i < o->rank; i++)
        if (o->shape[i] && (!tnf_ckd_mul(&product, product, o->shape[i]) || product > GGUF_MOST))
            return TNF_DROPPED;
    if (product > GGUF_MOST / (bits ? (bits + 7) / 8 : 1))
        return TNF_DROPPED;
    *reason = "";
    return TNF_NATIVE;
}

/* ------------------------------------------------------------------ header */

static tnf_status find_alignment(tnf_writer *w, form *f, tnf_error *e)
{
    uint64_t asked = w->options[WRITE_ALIGNMENT].u;
    const tnf_value *said = tnf_gguf_attr(&w->catalog->attrs, GGUF_ALIGNMENT);
    f->alignment = GGUF_DEFAULT_ALIGNMENT;
    if (asked && (asked < 8 || asked > 65536 || (asked & (asked - 1)) != 0))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "alignment must be a power of two from 8 to 65536, not %llu",
                        (unsigned long long)asked);
    if (said && (said->kind != TNF_UINT || said->dtype != TNF_U32 || said->as.u == 0 ||
                 (said->as.u & (said->as.u - 1)) != 0))
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the key " GGUF_ALIGNMENT " must be a u32 and a power of two");
    if (said)
        f->alignment = (uint32_t)said->as.u;
    if (asked) {
        f->say_alignment = !said && asked != GGUF_DEFAULT_ALIGNMENT;
        f->alignment = (uint32_t)asked;
    }
    return TNF_OK;
}

static tnf_status find_form(tnf_writer *w, form *f, tnf_error *e)
{
    const gguf_file *like = w->like ? w->like->state : NULL;
    *f = (form) { .version = w->options[WRITE_VERSION].u == 0 ? 2 : 3,
                  .big = w->options[WRITE_ENDIAN].u != 0,
                  .usual = w->options[WRITE_TYPES].u != 0,
                  .reserve = w->options[WRITE_RESERVE].u > 0,
                  .reserve_size = w->options[WRITE_RESERVE].u };
    f->swap_blocks = f->big;
    if (like && tnf_follows(w, WRITE_VERSION))
        f->version = like->version;
    if (like && tnf_follows(w, WRITE_ENDIAN)) {
        f->big = like->big;
        f->swap_blocks = like->big && !like->blocks_little;
    }
    if (like && tnf_follows(w, WRITE_RESERVE)) {
        f->reserve = like->reserve;
        f->reserve_size = like->reserve_size;
    }
    return find_alignment(w, f, e);
}

static tnf_value u32_value(uint32_t v)
{
    return (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U32, .as.u = v };
}

/* Is it a model's key that another format stored without the prefix? */
static bool is_of_model(const tnf_value *arch, tnf_str key)
{
    static const tnf_str known[] = { TNF_STR("general."), TNF_STR("tokenizer.") };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (key.n > known[i].n && memcmp(key.p, known[i].p, known[i].n) == 0)
            return true;
    return arch && arch->kind == TNF_STRING && arch->n && key.n > arch->n + 1 &&
           memcmp(key.p, arch->as.s, arch->n) == 0 && key.p[arch->n] == '.';
}

/* Writes all keys except the room; returns their number. */
static uint64_t put_keys(gguf_out *o, const tnf_writer *w, const form *f)
{
    const tnf_attrs *attrs = &w->catalog->attrs;
    const tnf_value alignment = u32_value(f->alignment), all = tnf_attrs_value(attrs);
    const tnf_value *arch = tnf_value_get(&all, "general.architecture");
    for (size_t i = 0; i < attrs->n; i++) {
        tnf_str key = stored_key(attrs->members[i].key);
        bool is = tnf_str_is(key, GGUF_ALIGNMENT);
        if (f->usual && !is && is_of_model(arch, attrs->members[i].key))
            tnf_gguf_put_usual(o, key, &attrs->members[i].value);
        else
            tnf_gguf_put_key(o, key, is ? &alignment : &attrs->members[i].value);
    }
    if (f->say_alignment)
        tnf_gguf_put_key(o, (tnf_str)TNF_STR(GGUF_ALIGNMENT), &alignment);
    return attrs->n + f->say_alignment;
}

static tnf_status put_entries(gguf_out *o, const tnf_writer *w, const form *f, tnf_error *e)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < w->catalog->n; i++) {
        const tnf_object *t = &w->catalog->objects[i];
        const gguf_type *type = tnf_gguf_type_of(t);
        if (!type)
            return tnf_fail(e, TNF_EBUG, TNF_NO_OFFSET, "%s has no type", TNF_QUOTED(t->name));
        tnf_gguf_put_text(o, t->name.p, t->name.n);
        tnf_gguf_put_u32(o, t->rank);
        for (uint32_t d = t->rank; d-- > 0;)
            tnf_gguf_put_length(o, t->shape[d]);
        tnf_gguf_put_u32(o, type->id);
        tnf_gguf_put_u64(o, offset);
        if (!tnf_ckd_add(&offset, offset, t->parts->nbytes) ||
            !tnf_ckd_align(&offset, offset, f->alignment) || offset > GGUF_MOST)
            return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the file would exceed 2^63 bytes");
    }
    return TNF_OK;
}

/* Writes the entries of the file that is edited, with their offsets. */
static void put_same_entries(gguf_out *o, const tnf_writer *w)
{
    for (size_t i = 0; i < w->catalog->n; i++) {
        const tnf_object *t = &w->catalog->objects[i];
        tnf_gguf_put_text(o, t->name.p, t->name.n);
        tnf_gguf_put_u32(o, t->rank);
        for (uint32_t d = t->rank; d-- > 0;)
            tnf_gguf_put_length(o, t->shape[d]);
        tnf_gguf_put_u32(o, tnf_gguf_type_of(t)->id);
        tnf_gguf_put_u64(o, t->parts->offset - w->like->data_start);
    }
}

/* The size of the key that reserves n bytes of room. */
static uint64_t reserve_bytes(const gguf_out *o, uint64_t n)
{
    uint64_t length = o->v1 ? 4 : 8;
    return length + sizeof GGUF_RESERVE - 1 + 4 + 4 + length + n;
}

static void put_reserve(gguf_out *o, uint64_t n)
{
    static const uint8_t zeros[4096];
    tnf_gguf_put_text(o, GGUF_RESERVE, sizeof GGUF_RESERVE - 1);
    tnf_gguf_put_u32(o, GGUF_ARRAY);
    tnf_gguf_put_u32(o, GGUF_U8);
    tnf_gguf_put_length(o, n);
    for (uint64_t some; n > 0; n -= some) {
        some = n < sizeof zeros ? n : sizeof zeros;
        tnf_buf_put(&o->b, zeros, (size_t)some);
    }
}

/* Computes the room that keeps the header of a file edited in place at its length. */
static tnf_status fit_in_place(tnf_writer *w, const gguf_out *o, uint64_t used, form *f,
                               tnf_error *e)
{
    uint64_t data = w->like->data_start + w->shift, least = reserve_bytes(o, 0);
    w->lacks = used + least > data ? used + least - data : 0; /* the rest may need the key */
    if (used > data)
        return tnf_no_room(used - data, "the header", e);
    f->reserve = data - used >= f->alignment || (f->reserve && data - used >= least);
    f->reserve_size = f->reserve && data - used >= least ? data - used - least : 0;
    if (f->reserve && data - used < least)
        return tnf_no_room(least - (data - used), "the rest of the header", e);
    return TNF_OK;
}

static tnf_status make_header(gguf_out *o, tnf_writer *w, form *f, tnf_error *e)
{
    gguf_out keys = *o, entries = *o;
    tnf_status status = TNF_OK;
    uint64_t n = put_keys(&keys, w, f);
    if (w->in_place)
        put_same_entries(&entries, w);
    else
        status = put_entries(&entries, w, f, e);
    uint64_t used = 4 + 4 + 2 * (o->v1 ? 4u : 8u) + keys.b.n + entries.b.n;
    if (status == TNF_OK)
        status = tnf_buf_status(&keys.b, "the header", e);
    if (status == TNF_OK)
        status = tnf_buf_status(&entries.b, "the header", e);
    if (status == TNF_OK && w->in_place)
        status = fit_in_place(w, o, used, f, e);
    if (status == TNF_OK && f->reserve)
        put_reserve(&keys, f->reserve_size);
    tnf_buf_puts(&o->b, "GGUF");
    tnf_gguf_put_u32(o, f->version);
    tnf_gguf_put_length(o, w->catalog->n);
    tnf_gguf_put_length(o, n + f->reserve);
    tnf_buf_put(&o->b, keys.b.p, keys.b.n);
    tnf_buf_put(&o->b, entries.b.p, entries.b.n);
    if (status == TNF_OK)
        status = tnf_buf_status(&keys.b, "the header", e);
    tnf_buf_free(&keys.b);
    tnf_buf_free(&entries.b);
    return status == TNF_OK ? tnf_buf_status(&o->b, "the header", e) : status;
}

/* -------------------------------------------------------------------- data */

/* Writes blocks in the other byte order, piece by piece. */
static tnf_status put_swapped(tnf_writer *w, const tnf_object *t, tnf_error *e)
{
    const tnf_part *part = t->parts;
    const gguf_type *type = tnf_gguf_type_of(t);
    size_t block = t->layout->block_bytes, piece = PIECE / block * block;
    if (type->little_only)
        return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                        "%s has the type %s, for which no program has a big-endian form",
                        TNF_QUOTED(t->name), type->name);
    if (part->payload == TNF_ENCODED) /* decoding may restart at each read */
        piece *= 64;
    piece = part->nbytes < piece ? (size_t)part->nbytes : piece;
    uint8_t *bytes = tnf_alloc(&w->scratch->alloc, piece + 1);
    tnf_status status = bytes ? TNF_OK : tnf_no_memory("writing", e);
    for (uint64_t at = 0; at < part->nbytes && status == TNF_OK; at += piece) {
        size_t n = part->nbytes - at < piece ? (size_t)(part->nbytes - at) : piece;
        status = tnf_read_part(bytes, n, part, at, e);
        if (status != TNF_OK)
            break;
        tnf_gguf_swap(type, block, bytes, n);
        status = tnf_put(w, bytes, n, e);
    }
    tnf_free(&w->scratch->alloc, bytes, piece + 1);
    return status;
}

static tnf_status put_tensor(tnf_writer *w, const form *f, const tnf_object *t, tnf_error *e)
{
    if (f->swap_blocks && t->layout->block_bytes)
        return put_swapped(w, t, e);
    tnf_put_how how = { .codec = TNF_CODEC_RAW,
                        .big_endian = f->big && t->layout == &tnf_layout_dense };
    tnf_put_done done;
    return tnf_put_part(w, t->parts, &how, &done, e);
}

static tnf_status put_all(tnf_writer *w, const form *f, tnf_error *e)
{
    TNF_TRY(tnf_put_align(w, f->alignment, e));
    if (w->in_place)
        return tnf_put_same(w, w->like->source->size, e);
    for (size_t i = 0; i < w->catalog->n; i++) {
        TNF_TRY(put_tensor(w, f, &w->catalog->objects[i], e));
        TNF_TRY(tnf_put_align(w, f->alignment, e));
    }
    for (size_t i = 0; i < w->catalog->nextras; i++)
        TNF_TRY(tnf_put_data(w, &w->catalog->extras[i].bytes, e));
    return TNF_OK;
}

tnf_status tnf_gguf_write(tnf_writer *w, tnf_error *e)
{
    gguf_out o = { 0 };
    form f;
    TNF_TRY(find_form(w, &f, e));
    o.big = f.big;
    o.v1 = f.version == 1;
    tnf_buf_init(&o.b, &w->scratch->alloc, MAX_HEADER);
    tnf_status status = make_header(&o, w, &f, e);
    if (status == TNF_OK)
        status = tnf_put(w, o.b.p, o.b.n, e);
    tnf_buf_free(&o.b);
    return status == TNF_OK ? put_all(w, &f, e) : status;
}
