/* SPDX-License-Identifier: MIT */
/* The output of `tenfold stat`: sums over the listing, and the statistics of each tensor, as text,
 * JSON or an HTML page. */
#ifndef TENFOLD_CLI_STAT_H
#define TENFOLD_CLI_STAT_H

#include "input.h"
#include "out.h"
#include "table.h"
#include <tenfold/stat.h>

/* The sums of tensors with the same type, or with the same beginning of their names. */
typedef struct stat_sum {
    tnf_str name;
    const char *type; /* the type of most of the bytes */
    uint64_t tensors, elements, bytes;
    uint64_t parameters; /* elements that are numbers */
} stat_sum;

typedef struct stat_sums {
    stat_sum *types, *groups; /* types: the largest first; groups: in file order */
    size_t ntypes, ngroups;
    uint64_t tensors, bytes; /* of all selected tensors */
} stat_sums;

/* Sums over the tensors that match. A group is the name up to its first number ("layers.0"), or
 * all but its last piece; with `depth`, its first `depth` pieces. Returns false if there is no
 * memory. */
bool stat_sums_make(stat_sums *s, const input *in, const opt_list *select, const opt_list *exclude,
                    unsigned depth);
void stat_sums_free(stat_sums *s);

/* The beginning of a name, which is the group of the tensor. */
tnf_str stat_prefix(tnf_str name, unsigned depth);

/* A form of output. All three functions get the same `ctx`. */
typedef struct stat_view {
    void (*begin)(void *ctx, const stat_sums *sums);
    void (*tensor)(void *ctx, const tnf_stat *stat);
    void (*end)(void *ctx);
    unsigned bins;
} stat_view;

typedef struct stat_text {
    const cli_state *cli;
    const input *in;
    bool ascii, values;
    text_table table; /* of tensors; its rows are printed one by one */
} stat_text;

typedef struct stat_json {
    const input *in;
    bool values;
    json json;
} stat_json;

typedef struct stat_html {
    const input *in;
    bool values;
    FILE *to;
    const opt_list *select, *exclude;
    unsigned depth;
    const char *heat; /* the name of a tensor to draw, or NULL */
    /* The table for browsers without scripts: only the largest tensors. */
    FILE *rows; /* written to memory */
    char *text;
    size_t n;
    uint64_t least; /* tensors of fewer bytes are left out of the rows */
    uint64_t room;  /* how many tensors of exactly `least` bytes still fit */
    json data;      /* all tensors, for the script; written to memory */
    char *data_text;
    size_t data_n;
} stat_html;

extern const stat_view stat_view_text, stat_view_json, stat_view_html;

/* The ratio part / total; 0 if total is 0. */
double stat_share(uint64_t part, uint64_t total);
/* A number with four digits: "0.125", "-3.4e+38". */
#define FIGURE_TEXT 24
void stat_figure(char out[FIGURE_TEXT], double x);
/* "[2,3]" */
size_t stat_shape(FILE *to, const tnf_object *o);

/* stat_tree.c: a rectangle of a treemap. */
typedef struct stat_box {
    double x, y, w, h;
} stat_box;

/* Fills the area `all` with one box for each weight, in order. */
void stat_strips(stat_box *out, const double *weights, size_t n, stat_box all);

#endif
