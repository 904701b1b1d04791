/* SPDX-License-Identifier: MIT */
/* The law of conversion, for any input that a format A recognises and for every format B that can
 * be written:
 *
 *   A ─> B           holds the same tensors, or is refused
 *   A ─> B ─> A      gives the bytes that A ─> A gives
 *
 * The order of tensors, their encoding, digests and the order of bytes belong to the container. If
 * B differs in these, A comes back as the same model, but not with the same bytes.
 */
#include "../support/spelling.h"
#include "check.h"

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

/* Are there tensors that are column-major in B, but not in A? A keeps this order, if it can. */
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

/* Did A sort the tensors, and is their order content in B? Then the order is recorded. */
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

/* Is it a type that the format stores under another type's name, and was that name lost on the
 * way? */
static bool lost_name(const tnf_file *a, const tnf_file *b, const tnf_error *why)
{
    return why->status == TNF_ELOSSY && !spelled_alike(a, b);
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
        if (back && same_ways(file, other) && spelled_alike(file, other) &&
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
