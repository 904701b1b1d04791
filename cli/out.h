/* SPDX-License-Identifier: MIT */
/* Output to stdout: JSON, text that is safe for a terminal, numbers, sizes, colours. */
#ifndef TENFOLD_CLI_OUT_H
#define TENFOLD_CLI_OUT_H

#include "cmd.h"
#include <stdio.h>
#include <tenfold/tenfold.h>

/* A stream of JSON. Commas are added automatically. */
typedef struct json {
    FILE *to;
    bool comma; /* the next value needs one */
} json;

void json_open(json *j, char bracket);     /* '{' or '[' */
void json_close(json *j, char bracket);    /* '}' or ']' */
void json_key(json *j, const char *key);   /* a fixed key, which needs no escapes */
void json_key_bytes(json *j, tnf_str key); /* a key from a file */
void json_null(json *j);
void json_bool(json *j, bool b);
void json_int(json *j, int64_t i);
void json_uint(json *j, uint64_t u);
void json_digits(json *j, const char *number); /* a number as text */
void json_f32(json *j, float f);
void json_f64(json *j, double f);
void json_text(json *j, const char *s); /* NULL becomes null */
void json_str(json *j, tnf_str s);      /* bytes that are not UTF-8 become {"$bytes":…} */
void json_bytes(json *j, const void *bytes, size_t n);
/* Decodes the base64 text of such bytes. `out` has room for base64_room(n). */
#define base64_room(n) ((n) / 4 * 3 + 3)
bool base64_take(char *out, size_t *made, const char *text, size_t n);
/* Writes words that are separated by spaces as an array; NULL becomes null. */
void json_words(json *j, const char *words);
/* Writes a JSON document without the white space between its tokens. */
void json_document(json *j, tnf_str document);
/* Writes a line end between two values, which makes the output readable. */
void json_line(json *j);
/* value.c: an attribute tree; NULL becomes {}. */
void json_value(json *j, const tnf_value *value);

/* Compares the bytes; a text that is the beginning of the other one comes first. */
int compare_texts(tnf_str a, tnf_str b);

/* Two lower-case digits for each byte, and a NUL. Returns the number of digits. */
size_t hex_text(char *out, const uint8_t *bytes, size_t n);
/* How many of the n bytes of a text to show, at most `most`, so that no character is cut in half.
 */
size_t shown_bytes(const char *text, size_t n, size_t most);
/* Parses a whole number at the beginning of a text, up to *end; false if there is none, or if it is
 * too large. */
bool number_parse(uint64_t *out, const char *text, char **end);

/* The size of a buffer for one number as text. */
#define NUMBER_TEXT 32
/* The shortest text that reads back as the same number, with a point, an exponent or letters. */
int number_f32(char out[NUMBER_TEXT], float f);
int number_f64(char out[NUMBER_TEXT], double f);

/* counts.c: the minimum and the maximum of a tensor as text; integers are exact. */
void number_range(char min[TNF_INTEGER_TEXT], char max[TNF_INTEGER_TEXT], const tnf_object *o,
                  const tnf_value_counts *c);
/* The name, element type and shape of a tensor, with which every JSON object about one begins. */
void json_tensor_head(json *j, const tnf_object *o);
/* The members that describe a tensor's values, from "elements" to "mean". */
void json_counts(json *j, const tnf_object *o, const tnf_value_counts *c);

/* Prints bytes of a file as safe text. Control characters, bytes that are not UTF-8 and characters
 * that change the direction of the line become \n, \x1b, \u202e, \U000e0001. With `backslash`, \
 * becomes \\, so that the text is unambiguous. Returns the columns; `to` NULL only counts them. */
size_t put_safe(FILE *to, const char *p, size_t n, bool backslash);
#define put_name(to, s) put_safe((to), (s).p, (s).n, true)
/* Reverses put_safe() in place. Returns the new length. */
size_t unescape_text(char *s);

void put_spaces(FILE *to, size_t n);
/* help.c: fills a text into lines. `column` is the current column of the first line. Paragraphs are
 * separated by "\n\n". */
void put_filled(FILE *to, const char *text, size_t indent, size_t column);
#define GROUPED_TEXT 32
/* "1,234,567" */
void grouped_text(char out[GROUPED_TEXT], uint64_t u);
void put_grouped(FILE *to, uint64_t u);
#define SIZE_TEXT 16
/* "1.2 GiB" */
int size_text(char out[SIZE_TEXT], uint64_t bytes);
/* Parses "5GB", "2GiB", "500M", "1000": K, M, G, T are powers of 1000, with "i" of 1024. Returns
 * false if the text is not a size. */
bool size_parse(uint64_t *out, const char *text);

/* Escape sequences, or "" if stdout has no colours. */
typedef enum paint { PAINT_OFF, PAINT_BOLD, PAINT_DIM, PAINT_GREEN, PAINT_RED } paint;
const char *paint_code(const cli_state *cli, paint p);

/* value.c: an attribute tree as text. */
void put_attrs(FILE *to, const tnf_value *attrs, unsigned indent, bool all);

/* The type of an object's elements; never NULL. */
const tnf_type *object_type(const tnf_object *object);
/* The element type for text output; for other layouts than dense their name, which says more. */
const char *object_kind(const tnf_object *object);
/* Is only the name of the tensor known, since its file is missing? For other tensors of missing
 * files everything except the bytes is known. */
bool object_unknown(const tnf_object *object);
bool is_dense(const tnf_object *object);
uint64_t object_bytes(const tnf_object *object);
/* "[2, 3]"; if there are very many dimensions, only the first ones. */
#define SHAPE_TEXT 512
void shape_text(char out[SHAPE_TEXT], const tnf_object *object);
/* The number of elements, if they are numbers; else 0. */
uint64_t object_parameters(const tnf_object *object);

#endif
