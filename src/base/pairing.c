/* SPDX-License-Identifier: MIT */
#include "base/pairing.h"
#include "base/ieee.h"

#include <string.h>

static void *result_of(const tnf_pairing *f, size_t i)
{
    return f->results + i * f->size;
}

uint64_t tnf_pairing_upto(const tnf_pairing *f)
{
    const tnf_pairing_node *last = f->n ? &f->nodes[f->n - 1] : NULL;
    return last ? last->first + ((uint64_t)1 << last->level) : 0;
}

static bool is_pair(const tnf_pairing_node *left, const tnf_pairing_node *right)
{
    return left->level == right->level && left->level + 1 < TNF_PAIRING_LEVELS &&
           left->first % ((uint64_t)2 << left->level) == 0;
}

bool tnf_pairing_add(tnf_pairing *f, tnf_pairing_node node, const void *result)
{
    if (node.level >= TNF_PAIRING_LEVELS || node.first >> TNF_PAIRING_LEVELS ||
        node.first % ((uint64_t)1 << node.level) || f->n == TNF_PAIRING_NODES ||
        (f->n && tnf_pairing_upto(f) != node.first))
        return false;
    memcpy(result_of(f, f->n), result, f->size);
    f->nodes[f->n++] = node;
    const uint32_t mode = tnf_enter_ieee();
    for (; f->n > 1 && is_pair(&f->nodes[f->n - 2], &f->nodes[f->n - 1]); f->n--) {
        f->join(result_of(f, f->n - 2), result_of(f, f->n - 1));
        f->nodes[f->n - 2].level++;
    }
    tnf_leave_ieee(mode);
    return true;
}

bool tnf_pairing_end(tnf_pairing *f, void *out)
{
    if (f->n == 0)
        return false;
    const uint32_t mode = tnf_enter_ieee();
    for (; f->n > 1; f->n--)
        f->join(result_of(f, f->n - 2), result_of(f, f->n - 1));
    tnf_leave_ieee(mode);
    memcpy(out, f->results, f->size);
    f->n = 0;
    return true;
}
