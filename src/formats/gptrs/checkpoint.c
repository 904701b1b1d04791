/* SPDX-License-Identifier: MIT */
/* gpt.rs checkpoints: a model's config and its parameters. Little-endian, index first:
 *
 *   "GPTRSCHK"  u32 version=2
 *   u32 config_len, config (JSON, see formats/gptrs/config.h)
 *   u32 index_len,  index (see formats/gptrs/index.h: plain or bincode, with ids)
 *   data            offsets are absolute; usually contiguous, in the order of the index
 *
 *   "GPTRSCHK"  u32 version=1
 *   u32 config_len, config
 *   u32 count, then per tensor its description and its data
 *
 * Both versions are read. The writer writes version 2 with a plain index, the same bytes as gpt.rs.
 * gpt.rs checks little of an index, so lenient mode relaxes most rules here.
 */
#include "formats/gptrs/common.h"
#include "formats/gptrs/config.h"
#include "wire/json.h"

#include <string.h>

#define MAGIC "GPTRSCHK"

enum { WRITE_IDS = GPTRS_WRITE_OWN, WRITE_KIND, WRITE_CONFIG, WRITE_RESERVE };
enum { IDS_KEEP, IDS_ZERO, IDS_REAL };

static const char zero_hex[] = "00000000000000000000000000000000";

static int probe_checkpoint(const tnf_probe *p)
{
    return p->nhead >= 8 && memcmp(p->head, MAGIC, 8) == 0 ? TNF_PROBE_MAGIC : TNF_PROBE_NO;
}

/* ---------------------------------------------------------------- config */

static tnf_status set_copy(tnf_reader *r, const char *key, tnf_kind kind, tnf_str text,
                           tnf_error *e)
{
    const char *copy = tnf_arena_str(r->arena, text.p, text.n);
    if (!copy)
        return tnf_arena_fail(r->arena, "config", e);
    return tnf_set_attr(r, key, tnf_value_str(kind, copy, text.n), e);
}

static tnf_status read_metadata(tnf_reader *r, const tnf_gptrs_config *c, tnf_error *e)
{
    tnf_json j;
    tnf_str key, value;
    tnf_json_init(&j, c->metadata.p, c->metadata.n, c->metadata_at, r->scratch, r->limits.depth, e);
    tnf_json_enter(&j, '{');
    while (tnf_json_key(&j, &key) && tnf_json_string(&j, &value))
        TNF_TRY(tnf_set_text(r, key, value, e));
    return j.status;
}

static tnf_status read_config(tnf_reader *r, uint32_t n, bool v1, tnf_error *e)
{
    tnf_cur c;
    TNF_TRY(tnf_read_range(r, "config", GPTRS_HEAD, n, GPTRS_MAX_BYTES, &c, e));
    tnf_gptrs_config config;
    TNF_TRY(tnf_gptrs_config_parse(&config, (const char *)c.p, n, GPTRS_HEAD, r->scratch,
                                   r->limits.depth, e));
    for (size_t i = 0; i < config.nfindings; i++) {
        const tnf_gptrs_finding *f = &config.findings[i];
        if (f->unusual)
            tnf_warn(r, f->offset, "%s", f->message);
        else
            TNF_TRY(tnf_stricter(r, e, TNF_EFORMAT, f->offset, "%s", f->message));
    }
    if (config.untagged && v1) /* normal in version 1; version 2 requires a kind */
        TNF_TRY(tnf_set_attr(r, "gptrs.bare_config", tnf_value_bool(true), e));
    else if (config.untagged)
        tnf_warn(r, GPTRS_HEAD,
                 "the config is a bare GPT config without \"kind\", which newer versions of gpt.rs "
                 "refuse: converting with -o kind=gpt wraps it");
    tnf_trace(r, GPTRS_HEAD, "config of %lu bytes, kind %s", (unsigned long)n,
              config.kind.p ? TNF_QUOTED(config.kind) : "unknown");
    if (!config.placeholder)
        TNF_TRY(set_copy(r, "gptrs.config", TNF_JSON, config.text, e));
    if (config.kind.p)
        TNF_TRY(set_copy(r, "gptrs.kind", TNF_STRING, config.kind, e));
    return config.metadata.p ? read_metadata(r, &config, e) : TNF_OK;
}

/* ----------------------------------------------------------------- index */

/* The attributes of one tensor, in a single allocation: a file may have 100,000 tensors. */
struct attrs {
    tnf_value map;
    char hex[2 * TNF_GPTRS_ID + 1];
    tnf_member members[]; /* room for four */
};

static bool is_stored(const tnf_gptrs_entry *t)
{
    return t->id && memcmp(t->id, tnf_gptrs_no_id, TNF_GPTRS_ID) != 0;
}

static void push_attr(struct attrs *a, const char *literal, tnf_value value)
{
    a->members[a->map.n++] = (tnf_member) { { literal, strlen(literal) }, value };
}

static tnf_value grad_value(uint8_t byte)
{
    if (byte <= 1)
        return (tnf_value) { .kind = TNF_BOOL, .as.b = byte };
    return (tnf_value) { .kind = TNF_UINT, .dtype = TNF_U8, .as.u = byte };
}

/* The hex digits of a stored id. It is usually zero or the computed id, whose digits already
 * exist. */
static const char *stored_hex(tnf_arena *arena, const struct attrs *a, const tnf_gptrs_entry *t)
{
    char hex[2 * TNF_GPTRS_ID + 1];
    if (!is_stored(t))
        return zero_hex;
    tnf_gptrs_hex(hex, t->id);
    return strcmp(hex, a->hex) == 0 ? a->hex : tnf_arena_str(arena, hex, 2 * TNF_GPTRS_ID);
}

/* `mixed`: some tensors of the file have a stored id, so a missing one must be recorded. */
static tnf_status build_attrs(const tnf_value **out, tnf_reader *r, const tnf_gptrs_entry *t,
                              const uint8_t *computed, bool mixed, tnf_error *e)
{
    const bool lacks_id = mixed && !is_stored(t);
    const size_t n = 1u + (t->id != NULL) + (computed != NULL) + lacks_id;
    struct attrs *a = tnf_arena_alloc(r->arena, sizeof *a + n * sizeof a->members[0]);
    if (!a)
        return tnf_arena_fail(r->arena, "attributes", e);
    a->map = (tnf_value) { .kind = TNF_MAP, .as.members = a->members };
    push_attr(a, "gptrs.requires_grad", grad_value(t->requires_grad));
    if (computed)
        tnf_gptrs_hex(a->hex, computed);
    if (t->id) {
        const char *hex = stored_hex(r->arena, a, t);
        if (!hex)
            return tnf_arena_fail(r->arena, "attributes", e);
        push_attr(a, "gptrs.base_id", tnf_value_str(TNF_STRING, hex, 2 * TNF_GPTRS_ID));
    }
    if (computed)
        push_attr(a, "gptrs.param_id", tnf_value_str(TNF_STRING, a->hex, 2 * TNF_GPTRS_ID));
    if (lacks_id)
        push_attr(a, "gptrs.stored_id", tnf_value_bool(false));
    *out = &a->map;
    return TNF_OK;
}

static tnf_status check_name(tnf_reader *r, const tnf_gptrs_entry *t, bool ascii,
                             const uint8_t *computed, tnf_error *e)
{
    if (!ascii) /* only a warning: the format allows it and the exporter writes it */
        tnf_warn(r, t->name_at, "the name %s is not ASCII: gpt.rs itself refuses the file",
                 TNF_QUOTED(t->name));
    if (ascii && is_stored(t) && memcmp(t->id, computed, TNF_GPTRS_ID) != 0)
        TNF_TRY(tnf_stricter(r, e, TNF_EFORMAT, t->name_at + t->name.n,
                             "the stored id of %s is not the hash of its name",
                             TNF_QUOTED(t->name)));
    return TNF_OK;
}

static tnf_status make_attrs(const tnf_value **out, tnf_reader *r, const tnf_gptrs_index *x,
                             const tnf_gptrs_entry *t, tnf_error *e)
{
    const bool mixed = x->stored_ids > 0 && x->stored_ids < x->count;
    uint8_t computed[TNF_GPTRS_ID] = { 0 };
    bool ascii = tnf_ascii(t->name.p, t->name.n);
    if (ascii)
        tnf_gptrs_base_id(computed, t->name);
    TNF_TRY(check_name(r, t, ascii, computed, e));
    return build_attrs(out, r, t, ascii ? computed : NULL, mixed, e);
}

static tnf_status index_checkpoint(tnf_reader *r, tnf_error *e)
{
    tnf_cur c;
    uint32_t version, config_len;
    TNF_TRY(tnf_gptrs_read_head(r, MAGIC, &version, &config_len, e));
    if (version != 1 && version != 2)
        return tnf_fail(e, TNF_EUNSUPPORTED, 8, "unsupported version %lu; 1 and 2 are supported",
                        (unsigned long)version);
    TNF_TRY(read_config(r, config_len, version == 1, e));
    uint64_t at = GPTRS_HEAD + (uint64_t)config_len;
    TNF_TRY(tnf_read_range(r, "header", at, 4, 4, &c, e));
    tnf_gptrs_index x = tnf_gptrs_index_of(r, true);
    if (version == 1)
        return tnf_gptrs_read_v1(r, at + 4, tnf_u32(&c), &x, make_attrs, e);
    TNF_TRY(tnf_gptrs_read_v2(r, at + 4, tnf_u32(&c), &x, make_attrs, e));
    return x.stored_ids ? tnf_set_attr(r, "gptrs.stored_ids", tnf_value_bool(true), e) : TNF_OK;
}

/* ---------------------------------------------------------------- writing */

/* Must the id be stored? The id in an attribute is not used: the name may have changed since. */
static bool wants_id(const tnf_writer *w, const tnf_object *o)
{
    if (w->options[WRITE_IDS].u != IDS_KEEP)
        return w->options[WRITE_IDS].u == IDS_REAL;
    const tnf_value *id = tnf_value_get(o->attrs, "gptrs.base_id");
    if (id && id->kind == TNF_STRING)
        return id->n != 2 * TNF_GPTRS_ID || memcmp(id->as.s, zero_hex, id->n) != 0;
    const tnf_value file = tnf_attrs_value(&w->catalog->attrs);
    const tnf_value *all = tnf_value_get(&file, "gptrs.stored_ids");
    const tnf_value *own = tnf_value_get(o->attrs, "gptrs.stored_id");
    return all && all->kind == TNF_BOOL && all->as.b &&
           !(own && own->kind == TNF_BOOL && !own->as.b);
}

static void id_of(uint8_t id[TNF_GPTRS_ID], const tnf_writer *w, const tnf_object *o)
{
    memset(id, 0, TNF_GPTRS_ID); /* "not stored"; names other than ASCII have no id */
    if (wants_id(w, o) && tnf_ascii(o->name.p, o->name.n))
        tnf_gptrs_base_id(id, o->name);
}

/* Appends spaces to the config. They are room for later edits, and align the data to `align`. If a
 * file is edited in place, the config keeps its length. */
static tnf_status put_blanks(tnf_buf *b, const tnf_writer *w, uint64_t index_len, tnf_error *e)
{
    uint64_t n = b->n, head = GPTRS_HEAD + 4 + index_len;
    if (w->in_place) {
        TNF_TRY(tnf_gptrs_room(&n, w, 4 + index_len, e));
        if (b->n > n)
            return tnf_no_room(b->n - n, "the config", e);
    } else if (!tnf_ckd_add(&n, n, w->options[WRITE_RESERVE].u) || !tnf_ckd_add(&n, n, head) ||
               !tnf_ckd_align(&n, n, tnf_gptrs_align(w)) || (n -= head) > GPTRS_MAX_BYTES) {
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the config would exceed 4 GiB");
    }
    while (b->n < n && b->status == TNF_OK)
        tnf_buf_u8(b, ' ');
    return tnf_buf_status(b, "the config", e);
}

static tnf_status make_config(tnf_buf *b, const tnf_writer *w, uint64_t index_len, tnf_error *e)
{
    const tnf_value attrs = tnf_attrs_value(&w->catalog->attrs);
    const tnf_value *source = tnf_value_get(&attrs, "gptrs.config");
    tnf_gptrs_recipe recipe = { .kind = w->options[WRITE_KIND].s,
                                .config = w->options[WRITE_CONFIG].s,
                                .text = w->text,
                                .ntext = w->ntext };
    if (source && (source->kind == TNF_JSON || source->kind == TNF_STRING))
        recipe.source = (tnf_str) { source->as.s, source->n };
    const tnf_value *bare = tnf_value_get(&attrs, "gptrs.bare_config");
    if (bare && bare->kind == TNF_BOOL && bare->as.b && !*recipe.kind)
        recipe.kind = "gpt";
    TNF_TRY(tnf_gptrs_config_put(b, &recipe, w->scratch, e));
    TNF_TRY(tnf_buf_status(b, "the config", e));
    return put_blanks(b, w, index_len, e);
}

static tnf_status put_head(tnf_writer *w, uint64_t index_len, tnf_error *e)
{
    tnf_buf b;
    tnf_buf_init(&b, &w->scratch->alloc, GPTRS_MAX_BYTES);
    tnf_status status = make_config(&b, w, index_len, e);
    if (status == TNF_OK)
        status = tnf_put(w, MAGIC, 8, e);
    if (status == TNF_OK)
        status = tnf_put_u32(w, 2, e);
    if (status == TNF_OK)
        status = tnf_put_u32(w, (uint32_t)b.n, e);
    if (status == TNF_OK)
        status = tnf_put(w, b.p, b.n, e);
    tnf_buf_free(&b);
    return status == TNF_OK ? tnf_put_u32(w, (uint32_t)index_len, e) : status;
}

static tnf_status write_checkpoint(tnf_writer *w, tnf_error *e)
{
    const uint32_t *order;
    uint64_t index_len;
    TNF_TRY(tnf_gptrs_order(w, &order, e));
    TNF_TRY(tnf_gptrs_index_size(&index_len, w->catalog, true, e));
    TNF_TRY(put_head(w, index_len, e));
    return tnf_gptrs_write(w, order, index_len, id_of, e);
}

static const tnf_option_info write_options[] = {
    GPTRS_WRITE_OPTIONS,
    { "ids", TNF_OPTION_CHOICE, "keep|zero|real", "keep",
      "ids in the index: as in the source, all zero (as the Python exporter writes), or computed "
      "for all" },
    { "kind", TNF_OPTION_TEXT, NULL, "",
      "kind of model to write into the config (gpt, ministral …)" },
    { "config", TNF_OPTION_TEXT, NULL, "",
      "JSON to write into the config as the model's own part" },
    { "reserve", TNF_OPTION_UINT, NULL, "0",
      "leave this many bytes of room in the config for later edits of the metadata" },
    { 0 },
};

const tnf_format tnf_format_gptrs_checkpoint = {
    .name = "gptrs-checkpoint",
    .title = "gpt.rs checkpoint",
    .extensions = "bin",
    .family = "gptrs", /* the build looks for the family here */
    GPTRS_RULES,
    .can = { GPTRS_CAN, .attrs = TNF_HOLDS_TEXT, .sorts = tnf_compare_names,
             .file_attrs = "gptrs.config gptrs.stored_ids gptrs.bare_config",
             .object_attrs = "gptrs.requires_grad gptrs.base_id gptrs.stored_id",
             .derived = "gptrs.kind gptrs.param_id gptrs.base_id gptrs.requires_grad=false" },
    .write_options = write_options,
    .probe = probe_checkpoint,
    .index = index_checkpoint,
    .write = TNF_WRITES(write_checkpoint),
};
