/* SPDX-License-Identifier: MIT */
/* What becomes of each item of a conversion: printed as it comes, or kept until it matters. */
#ifndef TENFOLD_CLI_PLAN_H
#define TENFOLD_CLI_PLAN_H

#include "out.h"
#include <tenfold/build.h>

typedef enum plan_style {
    PLAN_KEEP,    /* say nothing unless refused; then what is not kept, on stderr */
    PLAN_VERBOSE, /* everything, on stderr */
    PLAN_TEXT,    /* on stdout: what is not simply kept, and a count of what is */
    PLAN_JSON     /* on stdout, all of it */
} plan_style;

#define PLAN_NOTES 8

typedef struct plan {
    plan_style style;
    const cli_state *cli;
    json json;
    FILE *kept; /* to memory */
    char *kept_text;
    size_t kept_n;
    size_t counts[4];        /* by tnf_fate */
    char *notes[PLAN_NOTES]; /* on what was changed unasked */
    size_t nnotes;
    const char *told; /* a tensor whose fate was told already: not again as kept */
    bool open;
} plan;

void plan_begin(plan *p, plan_style style, const cli_state *cli, const char *in, const char *out,
                const char *format);
/* The same of several files, whose JSON is then an array. */
void plan_begin_many(plan *p, plan_style style, const cli_state *cli, char *const *in, size_t n,
                     const char *out, const char *format);
void plan_item(plan *p, const tnf_plan_item *item);
/* No more items. */
void plan_end(plan *p);
/* The conversion was refused: says why, if that was not said yet. */
void plan_refused(plan *p);
/* It is done: says what was changed unasked, of the file of that name. */
void plan_notes(const plan *p, const char *name);
void plan_free(plan *p);

#endif
