/* SPDX-License-Identifier: MIT */
/* The program of a pattern: regex_parse.c generates it, and regex.c runs it. */
#ifndef TENFOLD_CLI_REGEX_CODE_H
#define TENFOLD_CLI_REGEX_CODE_H

#include "regex.h"
#include <stdint.h>

typedef struct range {
    uint32_t first, last;
} range;

typedef struct set {
    uint32_t from, n; /* its ranges */
    bool inverted;
} set;

typedef enum op { OP_CHAR, OP_ANY, OP_SET, OP_EDGE, OP_SPLIT, OP_JUMP, OP_SAVE, OP_MATCH } op;

typedef struct instruction {
    op op;
    uint32_t c;    /* character, set, edge, slot */
    uint32_t x, y; /* the next instructions; a split tries x before y */
} instruction;

struct regex {
    instruction *code;
    size_t ncode;
    range *ranges;
    size_t nranges;
    set *sets;
    size_t nsets;
    bool any_case;
};

/* Decodes one character; returns its length in bytes. */
size_t regex_character(const char *p, size_t n, uint32_t *c);

#endif
