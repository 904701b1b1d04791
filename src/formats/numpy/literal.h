/* SPDX-License-Identifier: MIT */
/* Python literals as far as headers of arrays need them: strings, whole numbers, True and False,
 * tuples, lists, and one outer dict. No code is ever evaluated. */
#ifndef TNF_FORMATS_NUMPY_LITERAL_H
#define TNF_FORMATS_NUMPY_LITERAL_H

#include "format.h"

typedef enum np_kind { NP_STRING, NP_INT, NP_BOOL, NP_TUPLE, NP_LIST, NP_DICT } np_kind;

typedef struct np_node {
    uint8_t kind;         /* an np_kind */
    bool negative;        /* NP_INT: preceded by a minus */
    uint64_t at;          /* file offset */
    struct np_node *next; /* next item of the same container */
    union {
        uint64_t number; /* NP_INT; NP_BOOL: 0 or 1 */
        tnf_str text;    /* NP_STRING, as UTF-8 */
        struct {
            struct np_node *first;
            size_t n; /* number of items; a dict has keys and values alternating */
        };
    };
} np_node;

/* The text to parse, and its dialect. */
typedef struct np_source {
    const uint8_t *p;
    size_t n;
    uint64_t base; /* file offset of the text */
    bool latin1;   /* else UTF-8 */
    bool longs;    /* numbers may end in L, as Python 2 wrote them */
} np_source;

/* Parses one literal, followed only by white space. */
tnf_status tnf_np_parse(np_node **out, const np_source *text, tnf_arena *arena, tnf_error *e);

/* Prints the node like Python's repr(), in UTF-8. */
void tnf_np_print(tnf_buf *b, const np_node *node);
void tnf_np_print_text(tnf_buf *b, tnf_str text);

#endif
