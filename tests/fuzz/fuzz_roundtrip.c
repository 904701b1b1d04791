/* SPDX-License-Identifier: MIT */
/* The law of conversion, on any input that some format A claims and for every format B that can be
 * written:
 *
 *   A ─> B           holds the same tensors, or is refused
 *   A ─> B ─> A      gives the bytes that A ─> A gives
 *
 * The order of tensors, how they are encoded, whether they are digested and how their bytes lie are
 * the container's own affair. Where B has its own ways there, A comes back as the same model, but
 * not to the byte.
 */
#include "check.h"
#include "core/core.h"

#include <string.h>

static const char *digest_of(const tnf_part *p)
{
    return !p->digest ? "none" : p->digest->algorithm ? p->digest->algorithm : "foreign";
}

static bool same_ways(const tnf_file *a, const tnf_file *b)
{
    const tnf_object *x, *y;
    for (size_t i = 0; (x = tnf_at(a, i)) && (y = tnf_at(b, i)); i++) {
        if (x->name.n != y->name.n || memcmp(x->name.p, y->name.p, x->name.n) != 0)
            return false;
        for (uint16_t k = 0; k < x->nparts && k < y->nparts; k++)
            if (strcmp(digest_of(&x->parts[k]), digest_of(&y->parts[k])) != 0 ||
                x->parts[k].payload != y->parts[k].payload ||
                x->parts[k].flags != y->parts[k].flags)
                return false;
    }
    return true;
}

/* Are there tensors that B has columns first, and A had not? A keeps it so, if it can. */
static bool turned_to_columns(const tnf_file *a, const tnf_file *b)
{
    const tnf_object *x;
    const tnf_can *can = &tnf_registry_find(tnf_file_info(a)->format)->can;
    if (!can->order_f || can->only_f)
        return false;
    for (size_t i = 0; (x = tnf_at(a, i)) != NULL; i++) {
        const tnf_object *y = tnf_find_n(b, x->name.p, x->name.n);
        if (y && x->order == TNF_ORDER_C && y->order == TNF_ORDER_F)
            return true;
    }
    return false;
}

/* Was the order nobody's affair in A, which sorts, and is it content in B? Then it is noted. */
static bool gained_order(const tnf_file *a, const tnf_file *b)
{
    const tnf_object *x, *last = NULL;
    const tnf_can *can = &tnf_registry_find(tnf_file_info(a)->format)->can;
    bool moves = false;
    if (!can->sorts || a->reader.ordered || !b->reader.ordered)
        return false;
    for (size_t i = 0; (x = tnf_at(b, i)) != NULL; i++) {
        moves = moves || (last && can->sorts(last, x) > 0);
        last = x;
    }
    return moves;
}

static bool has_spelling(const tnf_value *x, const tnf_value *y)
{
    for (size_t i = 0; x && i < x->n; i++) {
        const tnf_member *m = &x->as.members[i];
        if (tnf_registry_spells(m) && !tnf_registry_derives(m) &&
            !tnf_value_get_n(y, m->key.p, m->key.n))
            return false;
    }
    return true;
}

/* Has the other kept how the first was spelled, if its format has a place for that? */
static bool same_spelling(const tnf_file *a, const tnf_file *b)
{
    const tnf_object *x;
    for (size_t i = 0; (x = tnf_at(a, i)) != NULL; i++) {
        const tnf_object *y = tnf_find_n(b, x->name.p, x->name.n);
        if (y && !has_spelling(x->attrs, y->attrs))
            return false;
    }
    return has_spelling(tnf_file_info(a)->attrs, tnf_file_info(b)->attrs);
}

/* A type that a format has only under names of others, and this name had no place on the way. */
static bool lost_name(const tnf_file *a, const tnf_file *b, const tnf_error *why)
{
    return why->status == TNF_ELOSSY && !same_spelling(a, b);
}

static void check_pair(const tnf_file *file, const char *b, const char *a, const tnf_sink *direct)
{
    tnf_sink *there = fuzz_save(file, b);
    if (!there)
        return;
    tnf_file *other = fuzz_reopen(there, b, false);
    fuzz_compare_files(file, other);
    if (direct) {
        tnf_error why;
        tnf_sink *back = fuzz_save_or(other, a, &why);
        FUZZ_REQUIRE(back != NULL || lost_name(file, other, &why),
                     "%s to %s went, but not back: %s", a, b, why.message);
        if (back && same_ways(file, other) && same_spelling(file, other) &&
            !turned_to_columns(file, other) && !gained_order(file, other)) {
            fuzz_compare_bytes(direct, back, b);
        } else if (back) {
            tnf_file *again = fuzz_reopen(back, a, false);
            fuzz_compare_files(file, again);
            tnf_close(again);
        }
        tnf_sink_close(back);
    }
    tnf_close(other);
    tnf_sink_close(there);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tnf_status status;
    tnf_format_info own = TNF_FORMAT_INFO_INIT, other = TNF_FORMAT_INFO_INIT;
    tnf_file *file = fuzz_open(data, size, NULL, false, &status);
    if (!file)
        return 0;
    FUZZ_REQUIRE(tnf_format_named(&own, tnf_file_info(file)->format), "a format without a name");
    tnf_sink *direct = own.caps & TNF_CAN_WRITE ? fuzz_save(file, own.name) : NULL;
    for (size_t i = 0; tnf_format_at(&other, i); i++)
        if (other.caps & TNF_CAN_WRITE)
            check_pair(file, other.name, own.name, direct);
    tnf_sink_close(direct);
    tnf_close(file);
    return 0;
}
