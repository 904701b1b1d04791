/* SPDX-License-Identifier: MIT */
/* tenfold formats --matrix: how each format keeps each kind of item. For each item a small model is
 * made that contains nothing else, and the planner of the library reports its fate in each format.
 * The table of pairs of formats is derived from these fates. */
#include "matrix.h"
#include "table.h"
#include <string.h>
#include <tenfold/build.h>
#include <unistd.h>

#define MOST_THINGS  80
#define MOST_FORMATS 64
#define LABEL        24u /* columns of the label of a row */
#define COLUMN       3u
#define REFUSED      '-'
#define CHANGED      '~' /* kept in another form that can be reversed */

/* ------------------------------------------------------------------ items */

/* Some formats can hold only a tensor of a certain name. */
static const char *const slots[] = { "w", "points", "embeddings", "arr_0", "vectors" };
static const char *slot;

static const uint8_t zeros[256];
static const uint64_t two[] = { 2, 2 }, none[] = { 0, 2 };

static tnf_status add_dense(tnf_builder *b, const char *name, uint32_t rank, const uint64_t *shape,
                            tnf_error *e)
{
    return tnf_builder_add(b, name, tnf_type_of(TNF_F32), rank, shape, zeros, e);
}

static tnf_part make_part(const char *role, tnf_dtype type, const void *bytes, size_t n)
{
    return (tnf_part) { .role = role,
                        .type = tnf_type_of(type),
                        .memory = bytes,
                        .stored = n,
                        .nbytes = n,
                        .payload = TNF_MEMORY };
}

static tnf_status add_object(tnf_builder *b, const char *name, const char *layout, uint32_t rank,
                             const tnf_part *parts, uint16_t n, tnf_error *e)
{
    tnf_object o = { .name = { name, strlen(name) },
                     .layout = tnf_layout_by_id(layout),
                     .shape = two,
                     .rank = rank,
                     .parts = parts,
                     .nparts = n };
    return tnf_builder_add_object(b, &o, NULL, e);
}

static tnf_status add_scalar(tnf_builder *b, tnf_error *e)
{
    return add_dense(b, slot, 0, NULL, e);
}

static tnf_status add_empty(tnf_builder *b, tnf_error *e)
{
    return add_dense(b, slot, 2, none, e);
}

static tnf_status rank_9(tnf_builder *b, tnf_error *e)
{
    static const uint64_t shape[] = { 2, 1, 1, 1, 1, 1, 1, 1, 2 };
    return add_dense(b, slot, 9, shape, e);
}

static tnf_status add_columns(tnf_builder *b, tnf_error *e)
{
    tnf_part p = make_part("data", TNF_F32, zeros, 16);
    tnf_object o = { .name = { slot, strlen(slot) },
                     .layout = tnf_layout_by_id("dense"),
                     .shape = two,
                     .rank = 2,
                     .parts = &p,
                     .nparts = 1,
                     .order = TNF_ORDER_F };
    return tnf_builder_add_object(b, &o, NULL, e);
}

static tnf_status unicode_name(tnf_builder *b, tnf_error *e)
{
    return add_dense(b, "\xc3\xa9t\xc3\xa9", 1, two, e);
}

static tnf_status byte_name(tnf_builder *b, tnf_error *e)
{
    return add_dense(b, "w\xff", 1, two, e);
}

static tnf_status add_with(tnf_builder *b, const char *tensor, tnf_value v, tnf_error *e)
{
    tnf_status status = add_dense(b, slot, 2, two, e);
    return status == TNF_OK ? tnf_builder_set(b, tensor, "note", &v, e) : status;
}

static const tnf_member tree_members[] = {
    { { "n", 1 }, { .kind = TNF_UINT, .dtype = TNF_U8, .as.u = 3 } },
    { { "x", 1 }, { .kind = TNF_FLOAT, .dtype = TNF_F32, .as.f32 = 1 } },
};
#define TEXT                                                                                       \
    (tnf_value)                                                                                    \
    {                                                                                              \
        .kind = TNF_STRING, .n = 2, .as.s = "hi"                                                   \
    }
#define TREE                                                                                       \
    (tnf_value)                                                                                    \
    {                                                                                              \
        .kind = TNF_MAP, .n = 2, .as.members = tree_members                                        \
    }

static tnf_status add_text(tnf_builder *b, tnf_error *e)
{
    return add_with(b, NULL, TEXT, e);
}

static tnf_status add_tree(tnf_builder *b, tnf_error *e)
{
    return add_with(b, NULL, TREE, e);
}

static tnf_status of_tensor(tnf_builder *b, tnf_error *e)
{
    return add_with(b, slot, TREE, e);
}

static tnf_status strings_named(tnf_builder *b, const char *name, tnf_error *e)
{
    static const uint64_t offsets[] = { 0, 1, 2 };
    tnf_part parts[] = { make_part("offsets", TNF_U64, offsets, sizeof offsets),
                         make_part("bytes", TNF_U8, "ab", 2) };
    return add_object(b, name, "strings/1", 1, parts, 2, e);
}

static tnf_status add_strings(tnf_builder *b, tnf_error *e)
{
    return strings_named(b, "list", e);
}

static tnf_status add_words(tnf_builder *b, tnf_error *e)
{
    tnf_status status = add_dense(b, "embeddings", 2, two, e);
    return status == TNF_OK ? strings_named(b, "vocab", e) : status;
}

static tnf_status add_points(tnf_builder *b, tnf_error *e)
{
    return add_dense(b, "points", 2, two, e);
}

static tnf_status add_quantized(tnf_builder *b, tnf_error *e)
{
    tnf_part parts[] = { make_part("codes", TNF_U8, zeros, 4),
                         make_part("codebooks", TNF_F32, zeros, 16) };
    tnf_status status = add_object(b, "embeddings", "pq/1", 2, parts, 2, e);
    return status == TNF_OK ? strings_named(b, "vocab", e) : status;
}

static tnf_status add_csr(tnf_builder *b, tnf_error *e)
{
    tnf_part parts[] = { make_part("indices", TNF_U64, zeros, 8),
                         make_part("indptr", TNF_U64, zeros, 24),
                         make_part("values", TNF_F32, zeros, 4) };
    return add_object(b, slot, "sparse_csr/1", 2, parts, 3, e);
}

static tnf_status add_coo(tnf_builder *b, tnf_error *e)
{
    tnf_part parts[] = { make_part("coords", TNF_U64, zeros, 16),
                         make_part("values", TNF_F32, zeros, 4) };
    return add_object(b, slot, "sparse_coo/1", 2, parts, 2, e);
}

static const struct {
    const char *name;
    tnf_status (*add)(tnf_builder *b, tnf_error *e);
} things[] = {
    { "scalars", add_scalar },
    { "empty tensors", add_empty },
    { "nine dimensions", rank_9 },
    { "column by column", add_columns },
    { "names beyond ASCII", unicode_name },
    { "names that are not text", byte_name },
    { "text metadata", add_text },
    { "typed metadata", add_tree },
    { "attributes of tensors", of_tensor },
    { "lists of strings", add_strings },
    { "words with vectors", add_words },
    { "words, quantized", add_quantized },
    { "points", add_points },
    { "sparse, by rows", add_csr },
    { "sparse, by coordinates", add_coo },
};
enum { THINGS = sizeof things / sizeof *things };

/* ------------------------------------------------------------------ fates */

typedef struct matrix {
    size_t nformats, nthings;
    tnf_format_info formats[MOST_FORMATS];
    char names[MOST_THINGS][32];
    char fate[MOST_THINGS][MOST_FORMATS]; /* '=', '~', 's', '-' */
} matrix;

static void keep_worst(void *ctx, const tnf_plan_item *item)
{
    char *fate = ctx;
    if (item->unasked)
        *fate = *fate == '=' ? CHANGED : *fate;
    else if (item->fate >= TNF_TRANSFORMED)
        *fate = REFUSED;
    else if (item->fate == TNF_STASHED && *fate != REFUSED)
        *fate = 's';
}

static tnf_status fate_in(char *fate, const tnf_builder *b, const char *format, tnf_error *e)
{
    tnf_sink *sink;
    tnf_save_options how = { .size = sizeof how, .format = format, .dry_run = true };
    how.plan = keep_worst;
    how.ctx = fate;
    *fate = '=';
    tnf_status status = tnf_sink_memory(&sink, e);
    if (status != TNF_OK)
        return status;
    status = tnf_save_sink(b, sink, &how, e);
    tnf_sink_close(sink);
    if (status == TNF_ELOSSY || status == TNF_EUNSUPPORTED || status == TNF_EINVAL)
        *fate = REFUSED;
    return status == TNF_ENOMEM ? status : TNF_OK;
}

static tnf_status add_thing(tnf_builder *b, size_t thing, tnf_error *e)
{
    static const uint64_t eight[] = { 4, 2 };
    if (thing < THINGS)
        return things[thing].add(b, e);
    return tnf_builder_add(b, slot, tnf_type_at(thing - THINGS), 2, eight, zeros, e);
}

/* Asks the planner about an item under this name. Each format keeps its best fate of all names: '='
 * before '~' before 's' before '-'. */
static tnf_status ask_under(matrix *m, size_t thing, const char *name, tnf_error *e)
{
    static const char order[] = { '=', CHANGED, 's', REFUSED, 0 };
    tnf_builder *b;
    char fate;
    slot = name;
    tnf_status status = tnf_builder_new(&b, NULL, e);
    if (status != TNF_OK)
        return status;
    status = add_thing(b, thing, e);
    for (size_t i = 0; i < m->nformats && status == TNF_OK; i++) {
        char *best = &m->fate[thing][i];
        status = fate_in(&fate, b, m->formats[i].name, e);
        if (strchr(order, fate) < strchr(order, *best))
            *best = fate;
    }
    tnf_builder_free(b);
    return status;
}

static tnf_status ask_thing(matrix *m, size_t thing, tnf_error *e)
{
    tnf_status status = TNF_OK;
    snprintf(m->names[thing], sizeof m->names[thing], "%s",
             thing < THINGS ? things[thing].name : tnf_type_at(thing - THINGS)->id);
    memset(m->fate[thing], REFUSED, sizeof m->fate[thing]);
    for (size_t i = 0; i < sizeof slots / sizeof *slots && status == TNF_OK; i++)
        status = ask_under(m, thing, slots[i], e);
    return status;
}

static tnf_status fill_rows(matrix *m, tnf_error *e)
{
    tnf_format_info f = TNF_FORMAT_INFO_INIT;
    for (size_t i = 0; tnf_format_at(&f, i); i++) {
        if (!(f.caps & TNF_CAN_WRITE))
            continue;
        if (m->nformats == MOST_FORMATS)
            return tnf_error_set(e, TNF_EBUG, TNF_NO_OFFSET,
                                 "the table is too small for all formats");
        m->formats[m->nformats++] = f;
    }
    for (; m->nthings < THINGS || tnf_type_at(m->nthings - THINGS); m->nthings++) {
        if (m->nthings == MOST_THINGS)
            return tnf_error_set(e, TNF_EBUG, TNF_NO_OFFSET,
                                 "the table is too small for all types");
        tnf_status status = ask_thing(m, m->nthings, e);
        if (status != TNF_OK)
            return status;
    }
    return TNF_OK;
}

/* How many kinds of items that `from` can hold have this fate in `to`? */
static size_t count_fates(const matrix *m, size_t from, size_t to, char fate)
{
    size_t n = 0;
    for (size_t i = 0; i < m->nthings; i++)
        n += m->fate[i][from] != REFUSED && m->fate[i][to] == fate;
    return n;
}

/* ---------------------------------------------------------------- printing */

/* The next columns from..*to: all of them, or as many as fit the terminal. */
static bool next_columns(const matrix *m, size_t *from, size_t *to)
{
    size_t width = terminal_width(STDOUT_FILENO), most = m->nformats;
    if (width)
        most = width > LABEL + COLUMN ? (width - LABEL) / COLUMN : 1;
    if (*to == m->nformats)
        return false;
    if (*to > 0)
        putchar('\n');
    *from = *to;
    *to = most < m->nformats - *from ? *from + most : m->nformats;
    return true;
}

static void put_heading(size_t from, size_t to)
{
    put_spaces(stdout, LABEL);
    for (size_t i = from; i < to; i++)
        printf(" %2zu", i + 1);
    putchar('\n');
}

static char kept_how(const matrix *m, size_t from, size_t to)
{
    if (from == to)
        return '=';
    return count_fates(m, from, to, CHANGED) ? CHANGED : count_fates(m, from, to, 's') ? 's' : '=';
}

static void explain_fates(const char *text)
{
    put_filled(stdout, text, 0, 0);
    putchar('\n');
}

static void pairs_for_people(const matrix *m)
{
    explain_fates("A row is the format to convert from, a column (by number) the format to convert "
                  "to. Signs: = everything is kept; s some items are kept in the stash; ~ some "
                  "items are kept in another form that can be reversed. A number says how many "
                  "kinds of items are refused, or lost with --allow-loss.");
    for (size_t from = 0, to = 0; next_columns(m, &from, &to);) {
        put_heading(from, to);
        for (size_t a = 0; a < m->nformats; a++) {
            printf("%2zu %-21s", a + 1, m->formats[a].name);
            for (size_t b = from; b < to; b++) {
                size_t lost = count_fates(m, a, b, REFUSED);
                if (lost)
                    printf(" %2zu", lost);
                else
                    printf("  %c", kept_how(m, a, b));
            }
            putchar('\n');
        }
    }
}

static void things_for_people(const matrix *m)
{
    putchar('\n');
    explain_fates(
        "How each format keeps each kind of item: = native, ~ in another form, s in the stash, - "
        "refused.");
    for (size_t from = 0, to = 0; next_columns(m, &from, &to);) {
        put_heading(from, to);
        for (size_t i = 0; i < m->nthings; i++) {
            printf("%-24s", m->names[i]);
            for (size_t f = from; f < to; f++)
                printf("  %c", m->fate[i][f]);
            putchar('\n');
        }
    }
}

static void json_list(json *j, const char *key, const matrix *m, size_t a, size_t b, char fate)
{
    json_key(j, key);
    json_open(j, '[');
    for (size_t i = 0; i < m->nthings; i++)
        if (m->fate[i][a] != REFUSED && m->fate[i][b] == fate)
            json_text(j, m->names[i]);
    json_close(j, ']');
}

static void as_json(const matrix *m)
{
    json j = { stdout, false };
    json_open(&j, '{');
    json_key(&j, "pairs");
    json_open(&j, '[');
    for (size_t a = 0; a < m->nformats; a++)
        for (size_t b = 0; b < m->nformats; b++) {
            json_line(&j);
            json_open(&j, '{');
            json_key(&j, "from");
            json_text(&j, m->formats[a].name);
            json_key(&j, "to");
            json_text(&j, m->formats[b].name);
            json_list(&j, "native", m, a, b, '=');
            json_list(&j, "stashed", m, a, b, 's');
            json_list(&j, "transformed", m, a, b, CHANGED);
            json_list(&j, "refused", m, a, b, REFUSED);
            json_close(&j, '}');
        }
    json_close(&j, ']');
    json_close(&j, '}');
    putchar('\n');
}

int matrix_print(bool in_json)
{
    static matrix m; /* too large for the stack; used once */
    tnf_error error;
    if (fill_rows(&m, &error) != TNF_OK)
        return file_error("formats", &error);
    if (in_json) {
        as_json(&m);
        return EXIT_DONE;
    }
    pairs_for_people(&m);
    things_for_people(&m);
    return EXIT_DONE;
}
