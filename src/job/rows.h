/* SPDX-License-Identifier: MIT */
/* Shared by the files for jobs that make rows: rows*.c, pieces.c, merge.c. */
#ifndef TNF_JOB_ROWS_H
#define TNF_JOB_ROWS_H

#include "base/pairing.h"
#include "job/job.h"
#include "wire/json.h"

#define TNF_ROW_WHOLE UINT64_MAX /* the index of a row about the file */

struct rows {
    tnf_buf *out;
    tnf_job *job;
    size_t in; /* the current input */
    uint64_t part;
    const struct job_item *items;
    size_t n;
    const tnf_object **wanted; /* sorted by address; for diff by name */
    size_t nwanted;
    const tnf_job_how *how; /* NULL in finish */
};

/* rows.c */
void tnf_row_begin(struct rows *r, uint64_t in, uint64_t index);
void tnf_row_end(struct rows *r);
void tnf_row_key(tnf_buf *b, const char *key, const char *text);
void tnf_row_name(tnf_buf *b, const char *key, tnf_str name);
/* Bytes that are not UTF-8 are {"$bytes":"base64"}, as in all JSON of the command. */
void tnf_row_text(tnf_buf *b, tnf_str text);
bool tnf_row_take_text(tnf_json *j, tnf_str *out);
void tnf_row_number(tnf_buf *b, const char *key, double x);
void tnf_row_count(tnf_buf *b, const char *key, uint64_t n);
/* Reports progress to the caller of the job; for functions whose context is a struct rows. */
bool tnf_row_progress(void *ctx, uint64_t done, uint64_t total);
uint64_t tnf_row_position(const struct rows *r, size_t in, const tnf_object *o);

/* pieces.c: words of 16 hex digits, and sums. tnf_sums_take() adds sums after the existing ones. */
#define TNF_WORD_DIGITS 16u
void tnf_hex_word_put(tnf_buf *b, uint64_t word);
void tnf_hex_words_put(tnf_buf *b, const void *from, size_t n);
bool tnf_hex_words_take(void *out, tnf_str hex, size_t at, size_t n);
void tnf_sums_put(tnf_buf *b, const tnf_pairing *sums);
bool tnf_sums_take(tnf_pairing *sums, tnf_str hex);

/* rows_diff.c */
tnf_status tnf_diff_rows(struct rows *r, const tnf_job_how *how, tnf_arena *arena, tnf_error *e);
/* The result of a part for a tensor of the first input. */
struct row_piece {
    uint64_t index;
    tnf_str text;
};
/* Joins all pieces, which are sorted by tensor and leaf, to rows. */
tnf_status tnf_diff_join(tnf_buf *out, tnf_job *job, const struct row_piece *pieces, size_t n,
                         tnf_arena *arena, tnf_error *e);

/* rows_stat.c: the items of the input r->in. */
tnf_status tnf_stat_rows(struct rows *r, const tnf_job_how *how, tnf_arena *arena, tnf_error *e);
/* Joins the pieces of a tensor, in order, to the row of the tensor. */
tnf_status tnf_stat_join(tnf_str *out, const tnf_job *job, size_t in, size_t index,
                         const tnf_str *pieces, size_t n, tnf_arena *arena, tnf_error *e);

#endif
