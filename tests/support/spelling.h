/* SPDX-License-Identifier: MIT */
/* The attributes that say how a file was spelled: a conversion keeps them if it can. */
#ifndef TEST_SUPPORT_SPELLING_H
#define TEST_SUPPORT_SPELLING_H

#include "core/core.h"

static inline bool has_spelling(const tnf_value *x, const tnf_value *y)
{
    for (size_t i = 0; x && i < x->n; i++) {
        const tnf_member *m = &x->as.members[i];
        if (tnf_registry_spells(m) && !tnf_registry_derives(m) &&
            !tnf_value_get_n(y, m->key.p, m->key.n))
            return false;
    }
    return true;
}

/* Has B kept the spelling of A? If B cannot store it, that is not a loss. */
static inline bool spelled_alike(const tnf_file *a, const tnf_file *b)
{
    const tnf_object *x;
    for (size_t i = 0; (x = tnf_at(a, i)) != NULL; i++) {
        const tnf_object *y = tnf_find_n(b, x->name.p, x->name.n);
        if (y && !has_spelling(x->attrs, y->attrs))
            return false;
    }
    return has_spelling(tnf_file_info(a)->attrs, tnf_file_info(b)->attrs);
}

#endif
