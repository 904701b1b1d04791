/* SPDX-License-Identifier: MIT */
/* The edit distance with transpositions, which needs three rows and stops early. */
#include "suggest.h"
#include <string.h>

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The number of changes, insertions, deletions and swaps of neighbours from a to b; limit + 1 if it
 * is above the limit. */
static unsigned edit_distance(const char *a, size_t na, const char *b, size_t nb, unsigned limit)
{
    unsigned rows[3][SUGGEST_LONG + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    if (na > SUGGEST_LONG || nb > SUGGEST_LONG || (na > nb ? na - nb : nb - na) > limit)
        return limit + 1;
    for (size_t j = 0; j <= nb; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        unsigned best = row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned d = last[j - 1] + (a[i - 1] != b[j - 1]);
            d = least_of(d, least_of(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = least_of(d, before[j - 2] + 1);
            row[j] = d;
            best = least_of(best, d);
        }
        if (best > limit)
            return limit + 1;
        unsigned *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[nb];
}

void suggest_begin(suggestion *s, const char *wanted, size_t n)
{
    memset(s, 0, sizeof *s);
    s->wanted = wanted;
    s->wanted_n = n;
    s->limit = n < 3 ? 1 : n < 8 ? 2 : n < 24 ? 3 : (unsigned)least_of((unsigned)(n / 8), 8);
}

void suggest_offer(suggestion *s, const char *name, size_t n)
{
    unsigned limit = s->n == SUGGEST_MAX ? s->distance[SUGGEST_MAX - 1] : s->limit;
    unsigned d = edit_distance(s->wanted, s->wanted_n, name, n, limit);
    if (s->wanted_n >= 2 && n > s->wanted_n && !memcmp(name, s->wanted, s->wanted_n))
        d = least_of(d, s->limit); /* the beginning of a name counts as similar, too */
    if (d > s->limit || (s->n == SUGGEST_MAX && d >= s->distance[SUGGEST_MAX - 1]))
        return;
    size_t at = s->n < SUGGEST_MAX ? s->n++ : SUGGEST_MAX - 1;
    for (; at > 0 && s->distance[at - 1] > d; at--) {
        s->distance[at] = s->distance[at - 1];
        s->near[at] = s->near[at - 1];
    }
    s->distance[at] = d;
    s->near[at] = (tnf_str) { name, n };
}
