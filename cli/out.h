/* SPDX-License-Identifier: MIT */
/* What goes to stdout: JSON, text that a terminal survives, numbers, tables' small change. */
#ifndef TENFOLD_CLI_OUT_H
#define TENFOLD_CLI_OUT_H

#include "cmd.h"
#include <stdio.h>
#include <tenfold/tenfold.h>

/* A stream of JSON. Commas come by themselves. */
typedef struct json {
    FILE *to;
    bool comma; /* the next value needs one */
} json;

void json_open(json *j, char bracket);     /* '{' or '[' */
void json_close(json *j, char bracket);    /* '}' or ']' */
void json_key(json *j, const char *key);   /* of ours: nothing in it to escape */
void json_key_bytes(json *j, tnf_str key); /* of a file */
void json_null(json *j);
void json_bool(json *j, bool b);
void json_int(json *j, int64_t i);
void json_uint(json *j, uint64_t u);
void json_f32(json *j, float f);
void json_f64(json *j, double f);
void json_text(json *j, const char *s); /* NULL gives null */
void json_str(json *j, tnf_str s);      /* bytes that are not UTF-8 give {"$bytes":…} */
void json_bytes(json *j, const void *bytes, size_t n);
/* An array of the words of a list separated by spaces; NULL gives null. */
void json_words(json *j, const char *words);
/* A JSON document as it is, without the white space between its tokens. */
void json_document(json *j, tnf_str document);
/* A line end between two values, so that people can read the output as well. */
void json_line(json *j);
/* value.c: an attribute tree; NULL gives {}. */
void json_value(json *j, const tnf_value *value);

/* Room for one number as text. */
#define NUMBER_TEXT 32
/* The shortest text that gives the same number again; always with a point, exponent or letters. */
int number_f32(char out[NUMBER_TEXT], float f);
int number_f64(char out[NUMBER_TEXT], double f);

/* counts.c: an end of a tensor's range as text, integers as such. */
void number_bound(char out[NUMBER_TEXT], const tnf_object *o, double x, uint64_t integer);
/* The members of an object that tell of a tensor's values, from "elements" to "mean". */
/* The name, element type and shape of a tensor: how every object about one begins. */
void json_tensor_head(json *j, const tnf_object *o);
void json_counts(json *j, const tnf_object *o, const tnf_value_counts *c);

/* Bytes of a file as text for people: control characters, bytes that are no UTF-8 and what could
 * turn the line around become \n, \x1b, \u202e, \U000e0001; with `backslash`, \ becomes \\ so that
 * nothing is ambiguous. Gives the columns it takes; `to` NULL only counts. */
size_t put_safe(FILE *to, const char *p, size_t n, bool backslash);
#define put_name(to, s) put_safe((to), (s).p, (s).n, true)
/* Undoes put_safe() in place; the new length. */
size_t unescape(char *s);

void put_spaces(FILE *to, size_t n);
/* help.c: a text filled into lines; `column` is where the first one stands now. Paragraphs are
 * parted by "\n\n". */
void put_filled(FILE *to, const char *text, size_t indent, size_t column);
#define GROUPED_TEXT 32
/* "1,234,567" */
void grouped_text(char out[GROUPED_TEXT], uint64_t u);
void put_grouped(FILE *to, uint64_t u);
#define SIZE_TEXT 16
/* "1.2 GiB" */
int size_text(char out[SIZE_TEXT], uint64_t bytes);
/* "5GB", "2GiB", "500M", "1000": K, M, G, T are powers of 1000, with "i" of 1024. False: it is
 * none. */
bool size_parse(uint64_t *out, const char *text);

/* Escape sequences, or "" where there is no colour on stdout. */
typedef enum paint { PAINT_OFF, PAINT_BOLD, PAINT_DIM, PAINT_GREEN, PAINT_RED } paint;
const char *painted(const cli_state *cli, paint p);

/* value.c: an attribute tree for people. */
void put_attrs(FILE *to, const tnf_value *attrs, unsigned indent, bool all);

/* Describes an object: what its elements are; never NULL. */
const tnf_type *object_type(const tnf_object *object);
/* What people read: a layout says more than the type of one of its parts. */
const char *object_kind(const tnf_object *object);
bool is_dense(const tnf_object *object);
uint64_t object_bytes(const tnf_object *object);
/* "[2, 3]"; of very many dimensions only the first. */
#define SHAPE_TEXT 512
void shape_text(char out[SHAPE_TEXT], const tnf_object *object);
/* Its elements, if they are numbers. */
uint64_t object_parameters(const tnf_object *object);

#endif
