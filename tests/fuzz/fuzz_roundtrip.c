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

/* Has the other kept how the first was spelled, if its format has a place for that? */
static bool same_spelling(const tnf_file *a, const tnf_file *b)
{
    const tnf_value *x = tnf_file_info(a)->attrs, *y = tnf_file_info(b)->attrs;
    for (size_t i = 0; i < x->n; i++)
        if (tnf_registry_spells(&x->as.members[i]) &&
            !tnf_value_get_n(y, x->as.members[i].key.p, x->as.members[i].key.n))
            return false;
    return true;
}

static void check_pair(const tnf_file *file, const char *b, const char *a, const tnf_sink *direct)
{
    tnf_sink *there = fuzz_save(file, b);
    if (!there)
        return;
    tnf_file *other = fuzz_reopen(there, b, false);
    fuzz_compare_files(file, other);
    if (direct) {
        tnf_sink *back = fuzz_save(other, a);
        FUZZ_REQUIRE(back != NULL, "%s to %s went, but not back", a, b);
        if (same_ways(file, other) && same_spelling(file, other)) {
            fuzz_compare_bytes(direct, back, b);
        } else {
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
