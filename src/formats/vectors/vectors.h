/* SPDX-License-Identifier: MIT */
/* What the two families of vector files share: kinds of files, whose extension alone says what the
 * elements are, and the choice of what can be written. */
#ifndef TNF_FORMATS_VECTORS_H
#define TNF_FORMATS_VECTORS_H

#include "format.h"

#define VEC_NAME      "vectors"
#define VEC_DISTANCES "distances"

/* A kind of file. The table of a family ends with a NULL name. */
typedef struct vec_kind {
    const char *name; /* its extension */
    const char *type;
    bool known; /* the extension is in use; the others are taken only if the option names the type
                 */
} vec_kind;

/* By the extension: "fvecs", and "fvec". NULL: it says nothing. */
const vec_kind *tnf_vec_by_extension(const vec_kind *kinds, const char *ext);
/* Is it an extension of either family? Then the file is of the other one only if it is said so. */
bool tnf_vec_extension(const char *ext);
/* By the option "type" ("auto": none). */
const vec_kind *tnf_vec_by_type(const vec_kind *kinds, const char *type);

/* Which tensor is written, in view of all there are: fills the verdicts of `fit`.
 * `guessed` is what a reader takes this tensor for without a name; `lone` says what a file of the
 * family holds. */
typedef struct vec_rules {
    const vec_kind *kinds;
    const char *lone;                     /* why a further tensor is refused */
    const char *untold;                   /* why the type would not be known again */
    const char *other;                    /* why the type is not that of the extension or option */
    bool empty;                           /* no rows, or no columns, are fine */
    bool (*guessed)(const tnf_object *o); /* is the type known again without a name? */
    bool pairs;                           /* `vectors` of i32 may come with `distances` of f32 */
} vec_rules;
tnf_status tnf_vec_fits(tnf_fit *fit, const vec_rules *rules, const char *type);

/* Is it `distances` to these ids? */
bool tnf_vec_is_pair(const tnf_object *ids, const tnf_object *distances);

#endif
