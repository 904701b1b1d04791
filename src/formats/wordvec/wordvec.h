/* SPDX-License-Identifier: MIT */
/* Shared by the formats of words and vectors, one row per word: word2vec's binary files, text with
 * a first line that counts (word2vec, fastText) or without (GloVe), and floret's buckets.
 *
 *   head.c       the first line, "rows columns"
 *   rows.c       a table of rows and lengths of words; words, if they are kept
 *   words.c      the words as strings/1, unchanged or repaired
 *   lines.c      splits lines of text into words and numbers
 *   scan.c       scans a text once, on several threads, and fills the table
 *   parse.c      parses the numbers of any rows on demand
 *   kind.c       recognises the kind of a text by its beginning
 *   text.c       text and textdims
 *   floret.c     floret
 *   word2vec.c   word2vec's binary files
 *   fit.c        decides what can be written of a catalog
 *   spelling.c   the spelling of a text: separators, line ends
 *   print.c      prints numbers as text, on several threads
 */
#ifndef TNF_WORDVEC_H
#define TNF_WORDVEC_H

#include "base/decimal.h"
#include "format.h"

#define WV_EMBEDDINGS "embeddings"
#define WV_VOCAB      "vocab"

/* ------------------------------------------------------------------- head.c */

/* "rows columns\n". */
typedef struct wv_head {
    uint64_t rows, dims;
    size_t length; /* of the line, with its end */
    bool plain;    /* the usual spelling: no other blanks, no leading zeros */
    bool crlf;     /* the line ends in CR LF */
} wv_head;

#define WV_HEAD_MAX 256u /* longer lines are not accepted */

/* Returns NULL, or what is wrong with the line. */
const char *tnf_wv_head_parse(wv_head *out, const char *p, size_t n);
/* Reads a decimal number and moves *at behind it; false if there is none, or it exceeds 2^64. */
bool tnf_wv_number(const char **at, const char *end, uint64_t *out);
/* The first line of a file. */
tnf_status tnf_wv_head_read(tnf_reader *r, wv_head *out, tnf_error *e);

/* ------------------------------------------------------------------- rows.c */

#define WV_SEGMENT 64u /* rows between two marks */
#define WV_BLOCK   16u /* segments allocated at once */

/* A table of rows: little more than eight bytes per row, and the words that are kept. */
typedef struct wv_rows {
    tnf_arena *arena;
    struct wv_block **blocks;
    size_t room;
    uint64_t n, words; /* rows; bytes of all words */
    uint64_t last;     /* where the last row begins */
    char *gathered;    /* words of the last block; NULL: not kept */
    size_t ngathered, room_gathered;
    uint64_t whole;     /* rows of the last block whose words were gathered */
    uint64_t keep_left; /* bytes that may still be kept */
} wv_rows;

/* Row i: a word of `word` bytes at `at`, then its vector, up to `end`. The word begins at byte
 * `offset` of all words. After the last row, the fields have the position at which a row would
 * follow. */
typedef struct wv_row {
    uint64_t i, at, end, offset;
    uint32_t word;
} wv_row;

void tnf_wv_rows_init(wv_rows *rows, tnf_arena *arena);
/* Adds the next row. It must begin after the previous one; a row and its word must be below 4
 * GiB. */
tnf_status tnf_wv_rows_add(wv_rows *rows, uint64_t at, uint64_t word, tnf_error *e);
/* Sets the end of the last row. */
tnf_status tnf_wv_rows_end(wv_rows *rows, uint64_t at, tnf_error *e);
wv_row tnf_wv_rows_at(const wv_rows *rows, uint64_t i);
void tnf_wv_rows_next(const wv_rows *rows, wv_row *row);
/* Begins keeping words in memory, at most `most` bytes; until tnf_wv_rows_keep_all() in scratch. */
tnf_status tnf_wv_rows_keep_begin(wv_rows *rows, tnf_arena *scratch, uint64_t most, tnf_error *e);
/* Keeps the word of the last row added. */
void tnf_wv_rows_keep(wv_rows *rows, const char *word, size_t n);
/* Called after the last row. */
tnf_status tnf_wv_rows_keep_all(wv_rows *rows, tnf_error *e);
/* Returns the kept words of this row and the next ones, up to row *next; p is NULL: not kept. */
tnf_str tnf_wv_rows_kept(const wv_rows *rows, const wv_row *row, uint64_t *next);
/* Finds the row whose word has this byte of all words. */
uint64_t tnf_wv_rows_find(const wv_rows *rows, uint64_t offset);

/* ------------------------------------------------------------------ words.c */

/* The policy for words that are not UTF-8. */
typedef enum wv_utf8 { WV_UTF8_BYTES, WV_UTF8_STRICT, WV_UTF8_LOSSY } wv_utf8;
#define WV_UTF8_OPTION                                                                             \
    {                                                                                              \
        "utf8", TNF_OPTION_CHOICE, "bytes|strict|lossy", "bytes",                                  \
            "words that are not UTF-8: kept unchanged, refused, or with U+FFFD for the invalid "   \
            "bytes"                                                                                \
    }

/* Counts words that are not UTF-8. */
typedef struct wv_utf8_count {
    uint64_t words, first; /* number of words; offset of the first invalid byte */
} wv_utf8_count;

void tnf_wv_utf8_check(wv_utf8_count *c, const char *word, size_t n, uint64_t at);
void tnf_wv_utf8_sum(wv_utf8_count *c, const wv_utf8_count *more);
/* Gives an error, a warning, or nothing. */
tnf_status tnf_wv_utf8_judge(tnf_reader *r, const wv_utf8_count *c, wv_utf8 policy, tnf_error *e);

/* Keys of opaque parts. */
enum { WV_OFFSETS, WV_BYTES, WV_MATRIX };

/* Adds `vocab`: the words of the rows, repaired if requested and necessary. */
tnf_status tnf_wv_add_words(tnf_reader *r, const wv_rows *rows, bool mend, uint64_t at,
                            tnf_error *e);
/* Adds `embeddings`: [rows, dims] f32, under WV_MATRIX. */
tnf_status tnf_wv_add_matrix(tnf_reader *r, uint64_t rows, uint64_t dims, uint64_t at,
                             tnf_error *e);
/* Decodes WV_OFFSETS and WV_BYTES. */
tnf_status tnf_wv_decode_words(const tnf_reader *r, const wv_rows *rows, uint64_t key,
                               uint64_t offset, uint8_t *dst, size_t n, tnf_error *e);

/* ---------------------------------------------------------------- spelling.c */

/* The spelling of numbers: 1 and 0.00001, 1.0 and 1e-05, 1 and 1e-05. In the order of the option.
 */
typedef enum wv_numbers { WV_PLAIN, WV_PYTHON, WV_C, WV_NUMBERS } wv_numbers;

/* The spelling of lines, without words. */
typedef struct wv_spelling {
    char separator; /* ' ' or '\t' */
    bool crlf;      /* lines end in CR LF */
    bool trailing;  /* a separator follows the last number */
    bool cut;       /* the last line has no end */
    wv_numbers numbers;
    unsigned may_be; /* reading: a bit for each spelling of numbers that the first lines allow */
} wv_spelling;

#define WV_SPELLING                                                                                \
    "text.separator text.newline text.trailing_blank text.final_newline "                          \
    "text.numbers"

/* Sets attributes for an unusual spelling; and reads them. */
tnf_status tnf_wv_spelling_set(tnf_reader *r, const wv_spelling *s, tnf_error *e);
wv_spelling tnf_wv_spelling_get(const tnf_catalog *c);

/* ------------------------------------------------------------------ lines.c */

/* The rules by which lines are read. */
typedef struct wv_rules {
    uint64_t dims;
    char separator; /* the most frequent separator */
    bool strict;    /* the first field is the word, any blank separates, no empty lines */
} wv_rules;

static inline bool wv_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* A line without its end. */
typedef struct wv_line {
    size_t skip;    /* length of blanks before the word */
    size_t word;    /* length of the word */
    bool trailing;  /* one blank after the last number */
    bool odd;       /* several there, or runs or other blanks between numbers */
    bool blank_end; /* the word ends in a blank */
    const char *wrong;
    uint64_t fields; /* if wrong: number of fields that may be numbers */
} wv_line;

wv_line tnf_wv_line_read(const wv_rules *rules, const char *p, size_t n);
/* The number of last fields of a line that are numbers, without the first field. *separator is the
 * one before the last field. */
uint64_t tnf_wv_line_numbers(const char *p, size_t n, char *separator);
/* Prints a number in this spelling; returns its length. */
size_t tnf_wv_number_text(wv_numbers how, char out[TNF_F32_TEXT], float value);
/* Returns a bit for each spelling that matches all numbers of these lines. whole: the last line is
 * complete. */
unsigned tnf_wv_lines_numbers(const wv_rules *rules, const char *p, size_t n, bool whole);
/* Takes the next line of a text, without its end. False if there is none; the last one must have an
 * end unless the text is `whole`. */
bool tnf_wv_next_line(tnf_str *line, const char **p, size_t *n, bool whole);
/* Does the line have `dims` fields at its end that are all numbers? */
bool tnf_wv_line_fits(const char *p, size_t n, uint64_t dims);
/* Finds the number of columns without a header: that of most lines, 0 if no line has numbers. Only
 * complete lines count; the last one does if `whole`. */
uint64_t tnf_wv_find_dims(const char *p, size_t n, bool whole, char *separator);

/* ------------------------------------------------------------------- scan.c */

/* The facts about a text after the scan. */
typedef struct wv_text {
    wv_rules rules;
    wv_rows rows;
    uint64_t from; /* start of the first line */
    wv_spelling spelling;
    wv_utf8 utf8;
    bool check_index; /* words must be the numbers of their rows */
} wv_text;

/* Scans the lines from t->from on. The number of columns must be known. */
tnf_status tnf_wv_scan(tnf_reader *r, wv_text *t, tnf_error *e);

/* ------------------------------------------------------------------ parse.c */

tnf_status tnf_wv_decode_text(tnf_reader *r, uint64_t key, uint64_t offset, void *out, size_t n,
                              tnf_error *e);

/* ------------------------------------------------------------------- kind.c */

typedef enum wv_kind { WV_NONE, WV_TEXT, WV_TEXTDIMS, WV_FLORET } wv_kind;
/* The kind of text by the file's beginning; *score is the certainty. */
wv_kind tnf_wv_kind_of(const tnf_probe *p, int *score);
/* Probes for one of these formats. */
int tnf_wv_probe_text(const tnf_probe *p, wv_kind kind);

/* "n d min max hashes seed bow eow\n". */
typedef struct wv_floret {
    uint64_t buckets, dims, min_n, max_n, hashes, seed;
    tnf_str bow, eow; /* point into the line */
    size_t length;
    bool crlf;
} wv_floret;

const char *tnf_wv_floret_parse(wv_floret *out, const char *p, size_t n);

/* -------------------------------------------------------------------- fit.c */

/* The content to be written. */
typedef struct wv_plan {
    const tnf_object *embeddings, *vocab; /* NULL: nothing can be written */
    uint64_t rows, dims;
} wv_plan;

/* The words of a catalog, in memory. */
typedef struct wv_list {
    const uint8_t *offsets; /* u64, one more than there are words */
    const char *bytes;
    uint64_t count;
} wv_list;

static inline tnf_str wv_list_at(const wv_list *l, uint64_t i)
{
    uint64_t from = tnf_le64(l->offsets + 8 * i);
    return (tnf_str) { l->bytes + from, (size_t)(tnf_le64(l->offsets + 8 * i + 8) - from) };
}

/* Returns why a word cannot be written, or NULL. */
typedef const char *(*wv_word_rule)(tnf_str word, const void *ctx);

tnf_status tnf_wv_fits(tnf_fit *fit, wv_word_rule rule, const void *ctx, tnf_error *e);
void tnf_wv_plan_make(wv_plan *plan, const tnf_catalog *c, const tnf_verdict *objects);
tnf_status tnf_wv_list_load(wv_list *out, const tnf_object *vocab, tnf_arena *arena,
                            const char **why, tnf_error *e);

/* ------------------------------------------------------------------ print.c */

/* Options of all writers of text. */
enum { WV_OPTION_SEPARATOR, WV_OPTION_NEWLINE, WV_OPTION_TRAILING, WV_OPTION_NUMBERS };
extern const tnf_option_info tnf_wv_print_options[];

wv_spelling tnf_wv_spelling_wanted(const tnf_writer *w);
/* Prints rows of words and numbers; words is NULL: rows begin with their index. */
tnf_status tnf_wv_print(tnf_writer *w, const tnf_object *matrix, uint64_t rows,
                        const wv_list *words, tnf_error *e);

#endif
