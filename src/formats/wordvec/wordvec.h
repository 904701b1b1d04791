/* SPDX-License-Identifier: MIT */
/* What the formats of words and vectors, one row a word, share: word2vec's binary files, text with
 * a first line that counts (word2vec, fastText) or without (GloVe), and floret's buckets.
 *
 *   head.c       the first line, "rows columns"
 *   rows.c       where rows begin and how long their words are: a table; words, if they are kept
 *   words.c      the words as strings/1, as they are or mended
 *   lines.c      lines of text: which bytes are the word, how many numbers there are
 *   scan.c       one pass over a text, on several threads, that fills the table
 *   parse.c      the numbers of any rows, on demand
 *   kind.c       which kind of text it is, from its beginning
 *   text.c       text and textdims
 *   floret.c     floret
 *   word2vec.c   word2vec's binary files
 *   fit.c        what of a catalog can be written
 *   spelling.c   how a text is spelled: separators, ends of lines
 *   print.c      writing numbers as text, on several threads
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
    size_t length; /* of the line, its end included */
    bool plain;    /* as writers spell it: no other blanks, no zeros in front */
    bool crlf;     /* it ends in CR LF */
} wv_head;

#define WV_HEAD_MAX 256u /* longer lines are no such line */

/* NULL, or what is wrong with it. */
const char *tnf_wv_head_parse(wv_head *out, const char *p, size_t n);
/* The same of a file. */
tnf_status tnf_wv_head_read(tnf_reader *r, wv_head *out, tnf_error *e);

/* ------------------------------------------------------------------- rows.c */

#define WV_SEGMENT 64u /* rows between two marks */
#define WV_BLOCK   16u /* segments that are reserved at a time */

/* A table of rows: eight bytes and a little for each, and words that are kept. */
typedef struct wv_rows {
    tnf_arena *arena;
    struct wv_block **blocks;
    size_t room;
    uint64_t n, words; /* rows; bytes of all words */
    uint64_t last;     /* where the last row begins */
    char *gathered;    /* words of the last block; NULL: none are kept */
    size_t ngathered, room_gathered;
    uint64_t whole;     /* rows of the last block whose words were gathered */
    uint64_t keep_left; /* bytes that may still be kept */
} wv_rows;

/* Row i: `word` bytes of a word from `at` on, then its vector, up to `end`. Its word begins at byte
 * `offset` of all words. Behind the last one all of it is what would follow. */
typedef struct wv_row {
    uint64_t i, at, end, offset;
    uint32_t word;
} wv_row;

void tnf_wv_rows_init(wv_rows *rows, tnf_arena *arena);
/* The next row; it begins behind the one before, and both it and its word are below 4 GiB. */
tnf_status tnf_wv_rows_add(wv_rows *rows, uint64_t at, uint64_t word, tnf_error *e);
/* Where the last row ends. */
tnf_status tnf_wv_rows_end(wv_rows *rows, uint64_t at, tnf_error *e);
wv_row tnf_wv_rows_at(const wv_rows *rows, uint64_t i);
void tnf_wv_rows_next(const wv_rows *rows, wv_row *row);
/* Words are to be kept in memory, `most` bytes of them; until tnf_wv_rows_keep_all() in scratch. */
tnf_status tnf_wv_rows_keep_begin(wv_rows *rows, tnf_arena *scratch, uint64_t most, tnf_error *e);
/* The word of the row that was added last. */
void tnf_wv_rows_keep(wv_rows *rows, const char *word, size_t n);
/* Behind the last row. */
tnf_status tnf_wv_rows_keep_all(wv_rows *rows, tnf_error *e);
/* The word of a row and those of rows behind it, up to row *next, where they were kept; p is NULL
 * where they were not. */
tnf_str tnf_wv_rows_kept(const wv_rows *rows, const wv_row *row, uint64_t *next);
/* The row whose word has that byte of all words. */
uint64_t tnf_wv_rows_find(const wv_rows *rows, uint64_t offset);

/* ------------------------------------------------------------------ words.c */

/* What to do about words that are no UTF-8. */
typedef enum wv_utf8 { WV_UTF8_BYTES, WV_UTF8_STRICT, WV_UTF8_LOSSY } wv_utf8;
#define WV_UTF8_OPTION                                                                             \
    {                                                                                              \
        "utf8", TNF_OPTION_CHOICE, "bytes|strict|lossy", "bytes",                                  \
            "words that are not UTF-8: kept as they are, refused, or with U+FFFD for the wrong "   \
            "bytes"                                                                                \
    }

/* Words that are no UTF-8, of those looked at. */
typedef struct wv_utf8_count {
    uint64_t words, first; /* how many; where the first wrong byte stands */
} wv_utf8_count;

void tnf_wv_utf8_look(wv_utf8_count *c, const char *word, size_t n, uint64_t at);
void tnf_wv_utf8_sum(wv_utf8_count *c, const wv_utf8_count *more);
/* An error, a warning, or nothing. */
tnf_status tnf_wv_utf8_judge(tnf_reader *r, const wv_utf8_count *c, wv_utf8 policy, tnf_error *e);

/* Keys of opaque parts. */
enum { WV_OFFSETS, WV_BYTES, WV_MATRIX };

/* `vocab`: the words of the rows; mended if that is wanted and necessary. */
tnf_status tnf_wv_add_words(tnf_reader *r, const wv_rows *rows, bool mend, uint64_t at,
                            tnf_error *e);
/* `embeddings`: [rows, dims] f32, under WV_MATRIX. */
tnf_status tnf_wv_add_matrix(tnf_reader *r, uint64_t rows, uint64_t dims, uint64_t at,
                             tnf_error *e);
/* WV_OFFSETS and WV_BYTES. */
tnf_status tnf_wv_decode_words(const tnf_reader *r, const wv_rows *rows, uint64_t key,
                               uint64_t offset, uint8_t *dst, size_t n, tnf_error *e);

/* ---------------------------------------------------------------- spelling.c */

/* How numbers are spelled: 1 and 0.00001, 1.0 and 1e-05, 1 and 1e-05. In the order of the option.
 */
typedef enum wv_numbers { WV_PLAIN, WV_PYTHON, WV_C, WV_NUMBERS } wv_numbers;

/* How lines are spelled, besides by words and numbers. */
typedef struct wv_spelling {
    char separator; /* ' ' or '\t' */
    bool crlf;      /* lines end in CR LF */
    bool trailing;  /* there is a separator behind the last number */
    bool cut;       /* the last line has no end */
    wv_numbers numbers;
    unsigned may_be; /* read: a bit for each of them that the first lines do not rule out */
} wv_spelling;

#define WV_SPELLING                                                                                \
    "text.separator text.newline text.trailing_blank text.final_newline "                          \
    "text.numbers"

/* As attributes, where it is not as usual; and back. */
tnf_status tnf_wv_spelling_set(tnf_reader *r, const wv_spelling *s, tnf_error *e);
wv_spelling tnf_wv_spelling_get(const tnf_catalog *c);

/* ------------------------------------------------------------------ lines.c */

/* The rules by which lines are read. */
typedef struct wv_rules {
    uint64_t dims;
    char separator; /* what most separators are */
    bool strict;    /* the first field is the word, any blank separates, no empty lines */
} wv_rules;

static inline bool wv_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* A line without its end. */
typedef struct wv_line {
    size_t skip;    /* blanks before the word */
    size_t word;    /* how many bytes the word has */
    bool trailing;  /* blanks behind the last number: one, */
    bool odd;       /* or more, or runs or other blanks between numbers */
    bool blank_end; /* the word ends in a blank */
    const char *wrong;
    uint64_t fields; /* if wrong: fields that could be numbers */
} wv_line;

wv_line tnf_wv_line_read(const wv_rules *rules, const char *p, size_t n);
/* How many of the last fields of a line are numbers; none that begins it. *separator is what stands
 * before the last. */
uint64_t tnf_wv_line_numbers(const char *p, size_t n, char *separator);
/* A number as that way has it: how many bytes. */
size_t tnf_wv_number_text(wv_numbers how, char out[TNF_F32_TEXT], float value);
/* A bit for each way in which all numbers of these lines may be spelled. whole: the last line is
 * not cut. */
unsigned tnf_wv_lines_numbers(const wv_rules *rules, const char *p, size_t n, bool whole);
/* Are the last `dims` fields, of which there are as many, all numbers? */
bool tnf_wv_line_fits(const char *p, size_t n, uint64_t dims);
/* The number of columns that lines without a header have: what most of them agree on. 0 if none
 * has any. Looks at whole lines; the last one counts if `whole`. */
uint64_t tnf_wv_find_dims(const char *p, size_t n, bool whole, char *separator);

/* ------------------------------------------------------------------- scan.c */

/* What is known of a text when it has been gone through. */
typedef struct wv_text {
    wv_rules rules;
    wv_rows rows;
    uint64_t from; /* where lines begin */
    wv_spelling spelling;
    wv_utf8 utf8;
    bool check_index; /* words are the numbers of their rows */
} wv_text;

/* Goes through the lines from t->from on. dims are known. */
tnf_status tnf_wv_scan(tnf_reader *r, wv_text *t, tnf_error *e);

/* ------------------------------------------------------------------ parse.c */

tnf_status tnf_wv_decode_text(tnf_reader *r, uint64_t key, uint64_t offset, void *out, size_t n,
                              tnf_error *e);

/* ------------------------------------------------------------------- kind.c */

typedef enum wv_kind { WV_NONE, WV_TEXT, WV_TEXTDIMS, WV_FLORET } wv_kind;
/* Which text the file begins as; *score is how sure that is. */
wv_kind tnf_wv_kind_of(const tnf_probe *p, int *score);
/* In a probe of one of them. */
int tnf_wv_probe_text(const tnf_probe *p, wv_kind kind);

/* "n d min max hashes seed bow eow\n". */
typedef struct wv_floret {
    uint64_t buckets, dims, min_n, max_n, hashes, seed;
    tnf_str bow, eow; /* in the line */
    size_t length;
    bool crlf;
} wv_floret;

const char *tnf_wv_floret_parse(wv_floret *out, const char *p, size_t n);

/* -------------------------------------------------------------------- fit.c */

/* What is to be written. */
typedef struct wv_plan {
    const tnf_object *embeddings, *vocab; /* NULL: nothing can be */
    uint64_t rows, dims;
} wv_plan;

/* The words of a catalog, in memory. */
typedef struct wv_list {
    const uint8_t *offsets; /* u64, one more than words */
    const char *bytes;
    uint64_t count;
} wv_list;

static inline tnf_str wv_list_at(const wv_list *l, uint64_t i)
{
    uint64_t from = tnf_le64(l->offsets + 8 * i);
    return (tnf_str) { l->bytes + from, (size_t)(tnf_le64(l->offsets + 8 * i + 8) - from) };
}

/* Why a word cannot be written, or NULL. */
typedef const char *(*wv_word_rule)(tnf_str word, const void *ctx);

tnf_status tnf_wv_fits(tnf_fit *fit, wv_word_rule rule, const void *ctx, tnf_error *e);
void tnf_wv_plan_make(wv_plan *plan, const tnf_catalog *c, const tnf_verdict *objects);
/* Is it what a name says? */
tnf_status tnf_wv_list_load(wv_list *out, const tnf_object *vocab, tnf_arena *arena,
                            const char **why, tnf_error *e);

/* ------------------------------------------------------------------ print.c */

/* Options of all writers of text. */
enum { WV_OPTION_SEPARATOR, WV_OPTION_NEWLINE, WV_OPTION_TRAILING, WV_OPTION_NUMBERS };
extern const tnf_option_info tnf_wv_print_options[];

wv_spelling tnf_wv_spelling_wanted(const tnf_writer *w);
/* Rows of words (words NULL: of their numbers) and numbers. */
tnf_status tnf_wv_print(tnf_writer *w, const tnf_object *matrix, uint64_t rows,
                        const wv_list *words, tnf_error *e);

#endif
