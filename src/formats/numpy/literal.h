/* SPDX-License-Identifier: MIT */
/* Python literals, as far as the header of an array needs them: strings, whole numbers, True and
 * False, tuples, lists, and the one dict around all. Nothing is ever evaluated. */
#ifndef TNF_FORMATS_NUMPY_LITERAL_H
#define TNF_FORMATS_NUMPY_LITERAL_H

#include "format.h"

typedef enum np_kind { NP_STRING, NP_INT, NP_BOOL, NP_TUPLE, NP_LIST, NP_DICT } np_kind;

typedef struct np_node {
    uint8_t kind;         /* an np_kind */
    bool negative;        /* NP_INT: a minus stood before it */
    uint64_t at;          /* where it stands in the file */
    struct np_node *next; /* item of what it is in */
    union {
        uint64_t number; /* NP_INT; NP_BOOL: 0 or 1 */
        tnf_str text;    /* NP_STRING, as UTF-8 */
        struct {
            struct np_node *first;
            size_t n; /* items; of a dict, keys and values by turns */
        };
    };
} np_node;

/* How text is to be read. */
typedef struct np_source {
    const uint8_t *p;
    size_t n;
    uint64_t base; /* where it stands in the file */
    bool latin1;   /* else UTF-8 */
    bool longs;    /* numbers may end in L, as Python 2 wrote them */
} np_source;

/* One literal, and nothing behind it but blanks. */
tnf_status tnf_np_parse(np_node **out, const np_source *text, tnf_arena *arena, tnf_error *e);

/* As Python's repr() has it, in UTF-8. */
void tnf_np_print(tnf_buf *b, const np_node *node);
void tnf_np_print_text(tnf_buf *b, tnf_str text);

#endif
