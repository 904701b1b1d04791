/* SPDX-License-Identifier: MIT */
/* Statistics of tensors as rows. If several parts work on a tensor, each makes a piece:
 *
 *   {"in":0,"index":3,"piece":{"sums":"…","bins":"…"}}
 *
 *   sums   of tnf_tally (pieces.c)
 *   bins   k, min, max, first, last, and the counts from first to last; "" if there are none
 */
#include "base/int128.h"
#include "base/str.h"
#include "core/look/stat_partial.h"
#include "job/rows.h"
#include "wire/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define BINS_WORDS 5u

_Static_assert(sizeof(tnf_tally) == 13 * sizeof(uint64_t), "a tally consists of words");

/* --------------------------------------------------------------------- rows */

static void put_integer(tnf_buf *b, const char *key, tnf_number kind, uint64_t low, uint64_t upper)
{
    char text[TNF_INTEGER_TEXT];
    uint8_t number[16];
    tnf_put_le128(number, (tnf_u128) { low, upper });
    (void)tnf_type_integer(text, sizeof text,
                           tnf_type_named(kind == TNF_NUMBER_INT ? "i128" : "u128"), number, 0);
    tnf_buf_printf(b, ",\"%s\":%s", key, text);
}

static void put_range(tnf_buf *b, const tnf_stat *s)
{
    const tnf_value_counts *c = s->counts;
    tnf_number kind = s->type->number;
    if (c->elements <= c->nan + c->inf) {
        tnf_buf_puts(b, ",\"min\":null,\"max\":null,\"mean\":null,\"std\":null");
        return;
    }
    if (kind == TNF_NUMBER_INT || kind == TNF_NUMBER_UINT || kind == TNF_NUMBER_BOOL) {
        put_integer(b, "min", kind, c->min_integer, c->min_upper);
        put_integer(b, "max", kind, c->max_integer, c->max_upper);
    } else {
        tnf_row_number(b, "min", c->min);
        tnf_row_number(b, "max", c->max);
    }
    tnf_row_number(b, "mean", c->mean);
    tnf_row_number(b, "std", c->deviation);
}

static void put_stat(tnf_buf *b, const tnf_stat *s)
{
    tnf_row_name(b, "name", s->object->name);
    if (s->counts) {
        tnf_row_count(b, "elements", s->counts->elements);
        tnf_row_count(b, "nan", s->counts->nan);
        tnf_row_count(b, "inf", s->counts->inf);
        tnf_row_count(b, "zero", s->counts->zero);
        tnf_row_count(b, "subnormal", s->counts->subnormal);
        put_range(b, s);
        tnf_buf_puts(b, ",\"histogram\":[");
        bool any = s->counts->elements > s->counts->nan + s->counts->inf;
        for (size_t i = 0; any && i < s->nbins; i++)
            tnf_buf_printf(b, "%s%" PRIu64, i ? "," : "", s->bins[i]);
        tnf_buf_puts(b, "]");
    }
}

static void on_stat(void *ctx, const tnf_stat *s)
{
    struct rows *r = ctx;
    tnf_row_begin(r, r->in, tnf_row_position(r, r->in, s->object));
    put_stat(r->out, s);
    tnf_row_end(r);
}

static void on_unreadable(void *ctx, const tnf_object *o, const tnf_error *problem)
{
    struct rows *r = ctx;
    tnf_row_begin(r, r->in, tnf_row_position(r, r->in, o));
    tnf_row_name(r->out, "name", o->name);
    tnf_buf_puts(r->out, ",");
    tnf_row_key(r->out, "problem", problem->message);
    tnf_row_end(r);
}

/* ------------------------------------------------------------------- pieces */

static void put_bins(tnf_buf *b, const tnf_bins *bins)
{
    if (!bins || !bins->used)
        return;
    tnf_hex_word_put(b, (uint64_t)(int64_t)bins->k);
    tnf_hex_words_put(b, &bins->min, 1);
    tnf_hex_words_put(b, &bins->max, 1);
    tnf_hex_word_put(b, (uint64_t)bins->first);
    tnf_hex_word_put(b, (uint64_t)bins->last);
    tnf_hex_words_put(b, bins->counts, (size_t)(bins->last - bins->first + 1));
}

static void on_piece(void *ctx, const tnf_object *o, const tnf_pairing *sums, const tnf_bins *bins)
{
    struct rows *r = ctx;
    tnf_buf *b = r->out;
    tnf_buf_puts(b, b->n > 1 ? ",\n" : "\n");
    tnf_buf_printf(b, "{\"in\":%zu,\"index\":%" PRIu64 ",\"piece\":{\"sums\":\"", r->in,
                   tnf_row_position(r, r->in, o));
    tnf_sums_put(b, sums);
    tnf_buf_puts(b, "\",\"bins\":\"");
    put_bins(b, bins);
    tnf_buf_puts(b, "\"}}");
}

tnf_status tnf_stat_rows(struct rows *r, const tnf_job_how *how, tnf_arena *arena, tnf_error *e)
{
    tnf_stat_options options = TNF_STAT_INIT;
    tnf_stat_range *ranges = tnf_arena_array(arena, r->n + 1, sizeof *ranges);
    tnf_stat_part some = { .ranges = ranges, .piece = on_piece };
    if (!ranges)
        return tnf_arena_fail(arena, "the plan", e);
    for (size_t i = 0; i < r->n; i++) {
        const struct job_item *it = &r->items[i];
        if (it->in == r->in)
            ranges[some.n++] = (tnf_stat_range) { it->index, it->whole ? 0 : it->first,
                                                  it->whole ? TNF_ALL_LEAVES : it->n };
    }
    if (some.n == 0)
        return TNF_OK;
    qsort(ranges, some.n, sizeof *ranges, tnf_stat_range_compare);
    options.tensor = on_stat;
    options.problem = on_unreadable;
    options.progress = tnf_row_progress;
    options.ctx = r;
    options.threads = how->threads;
    return tnf_stat_some(r->job->inputs[r->in].file, &options, &some, e);
}

/* ------------------------------------------------------------------- joining */

/* Are the bins consistent with their range? Joining relies on it. */
static bool bins_hold(const tnf_bins *b)
{
    return b->k >= -1100 && b->k <= 1100 && isfinite(b->min) && isfinite(b->max) &&
           b->min <= b->max && b->last >= b->first && b->first > -((int64_t)1 << 40) &&
           b->last < (int64_t)1 << 40 && b->last - b->first < (int64_t)TNF_BINS &&
           floor(ldexp(b->min, -b->k)) == (double)b->first &&
           floor(ldexp(b->max, -b->k)) == (double)b->last;
}

static bool take_bins(tnf_bins *bins, tnf_bins *more, tnf_str hex)
{
    uint64_t words[BINS_WORDS];
    if (hex.n == 0)
        return true;
    *more = (tnf_bins) { .used = true };
    if (hex.n % TNF_WORD_DIGITS || !tnf_hex_words_take(words, hex, 0, BINS_WORDS) ||
        !tnf_hex_words_take(&more->min, hex, 1, 1) || !tnf_hex_words_take(&more->max, hex, 2, 1))
        return false;
    int64_t k = (int64_t)words[0];
    more->k = k < -2000 || k > 2000 ? 2000 : (int)k;
    more->first = (int64_t)words[3];
    more->last = (int64_t)words[4];
    if (!bins_hold(more))
        return false;
    size_t n = (size_t)(more->last - more->first + 1);
    if (hex.n / TNF_WORD_DIGITS != BINS_WORDS + n ||
        !tnf_hex_words_take(more->counts, hex, BINS_WORDS, n))
        return false;
    tnf_bins_merge(bins, more);
    return true;
}

static bool take_piece(tnf_pairing *sums, tnf_bins bins[2], tnf_str text, tnf_arena *arena)
{
    tnf_json j;
    tnf_str hex = { "", 0 }, counts = { "", 0 };
    tnf_json_init(&j, text.p, text.n, 0, arena, 8, NULL);
    if (tnf_json_enter(&j, '{'))
        for (tnf_str key; tnf_json_key(&j, &key);)
            (void)(tnf_str_is(key, "sums")   ? tnf_json_string(&j, &hex)
                   : tnf_str_is(key, "bins") ? tnf_json_string(&j, &counts)
                                             : tnf_json_skip(&j, NULL));
    return tnf_json_end(&j) == TNF_OK && tnf_sums_take(sums, hex) &&
           take_bins(&bins[0], &bins[1], counts);
}

static void on_joined(void *ctx, const tnf_stat *s)
{
    tnf_buf *b = ctx;
    tnf_buf_puts(b, "{");
    put_stat(b, s);
    tnf_buf_puts(b, "}");
}

tnf_status tnf_stat_join(tnf_str *out, const tnf_job *job, size_t in, size_t index,
                         const tnf_str *pieces, size_t n, tnf_arena *arena, tnf_error *e)
{
    const tnf_file *file = job->inputs[in].file;
    tnf_tally room[TNF_PAIRING_NODES];
    tnf_pairing sums = tnf_stat_sums(room);
    tnf_bins *bins = tnf_arena_array(arena, 2, sizeof *bins);
    tnf_stat_options options = TNF_STAT_INIT;
    tnf_buf text;
    if (!bins)
        return tnf_arena_fail(arena, "histograms", e);
    for (size_t i = 0; i < n; i++)
        if (!take_piece(&sums, bins, pieces[i], arena))
            return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                            "the results of the parts for a tensor are inconsistent");
    if (index >= tnf_file_info(file)->objects)
        return tnf_fail(e, TNF_EFORMAT, TNF_NO_OFFSET,
                        "the plan does not match its inputs; make a new plan");
    tnf_text_begin(&text, UINT64_MAX);
    options.tensor = on_joined;
    options.ctx = &text;
    tnf_status status = tnf_stat_tell(file, index, &sums, bins, &options, e);
    if (status == TNF_OK)
        status = tnf_buf_status(&text, "the results", e);
    *out = (tnf_str) { NULL, text.n };
    if (status == TNF_OK && !(out->p = tnf_arena_str(arena, (const char *)text.p, text.n)))
        status = tnf_arena_fail(arena, "results", e);
    tnf_buf_free(&text);
    return status;
}
