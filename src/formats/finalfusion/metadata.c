/* SPDX-License-Identifier: MIT */
/* The metadata chunk: TOML text, kept unchanged. Other attributes of the catalog go into Tenfold's
 * own table at its end. Any reader of TOML understands this table; this reader removes it from the
 * text:
 *
 *   [tenfold]
 *   attrs = "{\"attrs\":{…},\"tensors\":{\"embeddings\":{…}}}"
 *
 * If the chunk has other text, one more line feed separates it from the table.
 *
 * Room for later edits is a comment at the very end, which is removed, too: a line feed, then
 * "#room", spaces, and a line feed.
 */
#include "formats/finalfusion/ff.h"
#include "wire/json.h"

#include <string.h>

#define TABLE        "[tenfold]\n"
#define ENTRY        "attrs = \""
#define ROOM         "\n#room"
#define LEAST_ROOM   (sizeof ROOM - 1 + 1)
#define DELETE       "\\u007F" /* the one character that JSON does not escape and TOML forbids */
#define MAX_METADATA ((uint64_t)64 << 20)

/* ---------------------------------------------------------------- reading */

/* Number of bytes before the room, if there is any. */
static size_t without_room(const char *p, size_t n)
{
    size_t m = sizeof ROOM - 1, end = n;
    if (n < LEAST_ROOM || p[n - 1] != '\n')
        return n;
    for (end = n - 1; end > m && p[end - 1] == ' ';)
        end--;
    return end >= m && memcmp(p + end - m, ROOM, m) == 0 ? end - m : n;
}

/* Position of the last table of this name, or n. */
static size_t find_table(const char *p, size_t n)
{
    size_t m = sizeof TABLE - 1;
    for (size_t at = n < m ? 0 : n - m + 1; at-- > 0;)
        if (memcmp(p + at, TABLE, m) == 0 && (at == 0 || p[at - 1] == '\n'))
            return at;
    return n;
}

/* Is this the form that Tenfold writes: an entry, a string, a line feed? */
static bool is_entry(const char *p, size_t n)
{
    size_t m = sizeof ENTRY - 1;
    return n >= m + 2 && memcmp(p, ENTRY, m) == 0 && p[n - 2] == '"' && p[n - 1] == '\n';
}

/* Unescapes the entry's string into `out`; false if Tenfold does not write such escapes. */
static bool unescape_string(const char *p, size_t n, char *out, size_t *out_n)
{
    size_t m = sizeof ENTRY - 1, k = 0;
    for (size_t i = m; i < n - 2; i++) {
        size_t left = n - 2 - i;
        bool escape = p[i] == '\\';
        if (escape && left >= 6 && memcmp(p + i, DELETE, 6) == 0) {
            out[k++] = 0x7f;
            i += 5;
        } else if (p[i] == '"' || (escape && (left < 2 || (p[i + 1] != '"' && p[i + 1] != '\\')))) {
            return false;
        } else {
            i += escape;
            out[k++] = p[i];
        }
    }
    *out_n = k;
    return true;
}

/* Reads Tenfold's table as a tree. *ours is false if the table is not Tenfold's, or was edited. */
static tnf_status read_table(ff_reading *f, const char *p, size_t n, tnf_value *out, bool *ours,
                             tnf_error *e)
{
    tnf_json j;
    size_t text_n = 0;
    *out = (tnf_value) { .kind = TNF_MAP };
    *ours = n == 0;
    if (n == 0 || !is_entry(p, n))
        return TNF_OK;
    char *text = tnf_arena_raw(f->r->arena, n);
    if (!text)
        return tnf_arena_fail(f->r->arena, "metadata", e);
    if (!unescape_string(p, n, text, &text_n))
        return TNF_OK;
    tnf_json_init(&j, text, text_n, 0, f->r->arena, f->r->limits.depth, NULL);
    *ours = tnf_json_typed(&j, out) && tnf_json_end(&j) == TNF_OK && out->kind == TNF_MAP;
    return j.status == TNF_ENOMEM ? tnf_arena_fail(f->r->arena, "metadata", e) : TNF_OK;
}

static tnf_status take_table(ff_reading *f, const tnf_value *table, tnf_error *e)
{
    const tnf_value *attrs = tnf_value_get(table, "attrs");
    f->tensors = tnf_value_get(table, "tensors");
    for (size_t i = 0; attrs && attrs->kind == TNF_MAP && i < attrs->n; i++) {
        const tnf_member *m = &attrs->as.members[i];
        TNF_TRY(tnf_attrs_set(&f->r->catalog->attrs, m->key.p, m->key.n, m->value, e));
    }
    return TNF_OK;
}

static tnf_status set_text(ff_reading *f, const ff_frame *c, const char *p, size_t n, tnf_error *e)
{
    size_t bad = 0;
    tnf_value value;
    if (!tnf_utf8_valid(&bad, p, n))
        TNF_TRY(tnf_stricter(f->r, e, TNF_EFORMAT, c->body + bad, "the metadata is not UTF-8"));
    TNF_TRY(tnf_text_value(f->r, &value, (tnf_str) { p, n }, e));
    return tnf_ff_set(f, FF_ATTR("metadata"), value, e);
}

tnf_status tnf_ff_read_metadata(ff_reading *f, ff_frame *c, tnf_error *e)
{
    tnf_cur cur;
    tnf_value table;
    TNF_TRY(tnf_read_range(f->r, "metadata", c->body, c->length, MAX_METADATA, &cur, e));
    const char *p = (const char *)cur.p;
    if (f->group > 1) /* Tenfold's table is in the first metadata */
        return set_text(f, c, p, tnf_left(&cur), e);
    size_t all = tnf_left(&cur), n = without_room(p, all), at = find_table(p, n);
    f->state->metadata = all;
    if (n == 0 && all > 0)
        return TNF_OK; /* only room */
    bool ours = false;
    if (at < n) {
        size_t from = at + sizeof TABLE - 1;
        TNF_TRY(read_table(f, p + from, n - from, &table, &ours, e));
    }
    if (!ours)
        return set_text(f, c, p, n, e);
    TNF_TRY(take_table(f, &table, e));
    return at ? set_text(f, c, p, at - 1, e) : TNF_OK;
}

/* Both maps as one. */
static tnf_status join_attrs(const tnf_value **out, tnf_arena *arena, const tnf_value *a,
                             const tnf_value *b, tnf_error *e)
{
    tnf_attrs attrs = { .arena = arena };
    tnf_value *map = tnf_arena_alloc(arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(arena, "attributes", e);
    for (size_t i = 0; i < a->n + b->n; i++) {
        const tnf_member *m = i < a->n ? &a->as.members[i] : &b->as.members[i - a->n];
        TNF_TRY(tnf_attrs_set(&attrs, m->key.p, m->key.n, m->value, e));
    }
    *map = tnf_attrs_value(&attrs);
    *out = map;
    return TNF_OK;
}

tnf_status tnf_ff_add(ff_reading *f, const tnf_object *object, uint64_t at, tnf_error *e)
{
    char room[FF_NAME_BYTES];
    tnf_object named = *object;
    named.name = tnf_ff_name(room, f->group, object->name.p);
    return tnf_add_object(f->r, &named, at, e);
}

/* One pass over the table, so its size and the number of tensors do not multiply. */
tnf_status tnf_ff_take_tensors(ff_reading *f, tnf_error *e)
{
    tnf_reader *r = f->r;
    const tnf_value *all = f->tensors;
    for (size_t i = 0; all && all->kind == TNF_MAP && i < all->n; i++) {
        const tnf_member *m = &all->as.members[i];
        const tnf_object *found = tnf_catalog_find(r->catalog, m->key.p, m->key.n);
        if (!found) {
            tnf_warn(r, TNF_NO_OFFSET,
                     "attributes of %s in the metadata are ignored: there is no such tensor",
                     TNF_QUOTED(m->key));
            continue;
        }
        tnf_object *o = &r->catalog->objects[found - r->catalog->objects];
        if (m->value.kind == TNF_MAP && o->attrs)
            TNF_TRY(join_attrs(&o->attrs, r->arena, o->attrs, &m->value, e));
        else if (m->value.kind == TNF_MAP)
            o->attrs = &m->value;
    }
    return TNF_OK;
}

tnf_status tnf_ff_set(ff_reading *f, const char *key, tnf_value value, tnf_error *e)
{
    return f->group == 1 ? tnf_set_attr(f->r, key, value, e)
                         : tnf_attrs_set(&f->attrs, key, strlen(key), value, e);
}

tnf_status tnf_ff_matrix_attrs(ff_reading *f, const tnf_member *more, const tnf_value **out,
                               tnf_error *e)
{
    tnf_arena *arena = f->r->arena;
    tnf_attrs attrs = f->attrs;
    f->attrs = (tnf_attrs) { .arena = arena };
    *out = NULL;
    if (more)
        TNF_TRY(tnf_attrs_set(&attrs, more->key.p, more->key.n, more->value, e));
    if (attrs.n == 0)
        return TNF_OK;
    tnf_value *map = tnf_arena_alloc(arena, sizeof *map);
    if (!map)
        return tnf_arena_fail(arena, "attributes", e);
    *map = tnf_attrs_value(&attrs);
    *out = map;
    return TNF_OK;
}

tnf_status tnf_ff_set_uint(ff_reading *f, const char *key, uint64_t value, tnf_error *e)
{
    return tnf_ff_set(f, key, tnf_value_uint(value), e);
}

/* ---------------------------------------------------------------- writing */

static void put_member(tnf_buf *b, const tnf_member *m, bool *first)
{
    if (!*first)
        tnf_buf_u8(b, ',');
    *first = false;
    tnf_json_put_string(b, m->key.p, m->key.n);
    tnf_buf_u8(b, ':');
    tnf_json_put_typed(b, &m->value);
}

static bool put_attrs(tnf_buf *b, const ff_plan *plan, const tnf_attrs *attrs)
{
    bool first = true;
    for (size_t i = 0; i < attrs->n; i++) {
        if (tnf_ff_is_native(plan, &attrs->members[i]))
            continue;
        if (first)
            tnf_buf_puts(b, "\"attrs\":{");
        put_member(b, &attrs->members[i], &first);
    }
    if (!first)
        tnf_buf_u8(b, '}');
    return !first;
}

static bool is_stored_by_file(const ff_groups *groups, const tnf_object *o, const tnf_member *m)
{
    return (tnf_str_is(m->key, FF_PIECES) && o->shape[0] == 0) || tnf_ff_in_group(groups, o, m);
}

static bool put_tensor(tnf_buf *b, const ff_groups *groups, const tnf_object *o, bool *open)
{
    bool first = true;
    for (size_t i = 0; o->attrs && i < o->attrs->n; i++) {
        const tnf_member *m = &o->attrs->as.members[i];
        if (is_stored_by_file(groups, o, m))
            continue;
        if (first) {
            tnf_buf_puts(b, *open ? "," : "\"tensors\":{");
            *open = true;
            tnf_json_put_string(b, o->name.p, o->name.n);
            tnf_buf_puts(b, ":{");
        }
        put_member(b, m, &first);
    }
    if (!first)
        tnf_buf_u8(b, '}');
    return !first;
}

/* Writes all attributes without a place of their own as JSON. *some: there is at least one. */
static void put_rest(tnf_buf *b, const ff_plan *plan, const ff_groups *groups, const tnf_catalog *c,
                     bool *some)
{
    bool open = false;
    tnf_buf_u8(b, '{');
    *some = put_attrs(b, plan, &c->attrs);
    size_t comma = b->n;
    if (*some)
        tnf_buf_u8(b, ',');
    for (size_t i = 0; i < c->n; i++)
        put_tensor(b, groups, &c->objects[i], &open);
    if (open)
        tnf_buf_u8(b, '}');
    else if (*some && b->status == TNF_OK)
        b->n = comma;
    tnf_buf_u8(b, '}');
    *some = *some || open;
}

static void put_escaped(tnf_buf *b, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '"' || p[i] == '\\')
            tnf_buf_u8(b, '\\');
        if (p[i] == 0x7f)
            tnf_buf_puts(b, DELETE);
        else
            tnf_buf_u8(b, p[i]);
    }
}

/* Does the catalog have extras that are chunks of unknown kinds? */
static bool has_chunks(const tnf_catalog *c)
{
    for (size_t i = 0; i < c->nextras; i++)
        if (!tnf_str_is(c->extras[i].key, FF_TRAILING))
            return true;
    return false;
}

/* Writes n bytes that a reader of TOML skips as a comment. */
static void put_room(tnf_buf *b, uint64_t n)
{
    if (n == 0)
        return;
    tnf_buf_puts(b, ROOM);
    for (uint64_t i = LEAST_ROOM; i < n && b->status == TNF_OK; i++)
        tnf_buf_u8(b, ' ');
    tnf_buf_u8(b, '\n');
}

/* When a file is edited in place, the chunk keeps its length. */
static tnf_status fill_up(tnf_buf *b, bool *there, const tnf_writer *w, tnf_error *e)
{
    const ff_state *s = w->like->state;
    uint64_t n = s ? s->metadata : 0;
    if (*there && b->n > n)
        return tnf_no_room(b->n - n, "the metadata", e);
    if (n - b->n > 0 && n - b->n < LEAST_ROOM)
        return tnf_no_room(LEAST_ROOM - (n - b->n), "the padding at the end of the metadata", e);
    put_room(b, n - b->n);
    *there = n > 0 || *there;
    return tnf_buf_status(b, "the metadata", e);
}

tnf_status tnf_ff_compose_metadata(tnf_buf *out, bool *there, const ff_plan *plan,
                                   const ff_groups *groups, const tnf_writer *w, tnf_error *e)
{
    const tnf_value attrs = tnf_attrs_value(&w->catalog->attrs);
    const tnf_value *text = tnf_value_get(&attrs, FF_ATTR("metadata"));
    bool some, native = text && (text->kind == TNF_STRING || text->kind == TNF_BYTES);
    bool nothing = !plan->kind && !plan->embeddings && !plan->norms && !has_chunks(w->catalog);
    tnf_buf json;
    tnf_buf_init(&json, &out->alloc, MAX_METADATA);
    put_rest(&json, plan, groups, w->catalog, &some);
    if (native)
        tnf_buf_put(out, text->as.s, text->n);
    if (some || (nothing && !native)) { /* a file must have some chunk */
        tnf_buf_puts(out, native ? "\n" TABLE : TABLE);
        if (some) {
            tnf_buf_puts(out, ENTRY);
            put_escaped(out, json.p, json.n);
            tnf_buf_puts(out, "\"\n");
        }
    }
    *there = native || some || nothing;
    tnf_status status = tnf_buf_status(&json, "the attributes", e);
    tnf_buf_free(&json);
    TNF_TRY(status);
    TNF_TRY(tnf_buf_status(out, "the metadata", e));
    if (w->in_place)
        return fill_up(out, there, w, e);
    uint64_t room = w->options[FF_OPTION_RESERVE].u;
    put_room(out, room > 0 && room < LEAST_ROOM ? LEAST_ROOM : room);
    *there = *there || room > 0;
    return tnf_buf_status(out, "the metadata", e);
}
