/* SPDX-License-Identifier: MIT */
/* Opening, saving and comparing for fuzz targets. The assertions hold for every input, or the
 * process aborts. */
#ifndef TNF_FUZZ_CHECK_H
#define TNF_FUZZ_CHECK_H

#include "fuzz.h"
#include <tenfold/build.h>
#include <tenfold/tenfold.h>

#define FUZZ_MAX_PART    ((uint64_t)1 << 20)
#define FUZZ_MAX_PAYLOAD ((uint64_t)4 << 20) /* overlaps make a small file read as a large one */
#define FUZZ_MAX_OBJECTS 512u

/* Touches every byte, so a wrong pointer or length is found. */
void fuzz_eat(const void *p, size_t n);
void fuzz_eat_text(const char *s);
/* malloc that never fails and never returns NULL. */
void *fuzz_take(uint64_t n);

/* No input may cause EBUG or EINVAL, or an error without a message. */
void fuzz_expect_honest(tnf_status status, const tnf_error *error);
/* NULL if it does not open; *status is the reason. format is NULL: detected. */
tnf_file *fuzz_open(const void *bytes, size_t n, const char *format, bool lenient,
                    tnf_status *status);
/* The same for a file that names others: it is put next to two shards (see shards.c). */
tnf_file *fuzz_open_among_shards(const void *bytes, size_t n, const char *format, bool lenient,
                                 tnf_status *status);
/* The complete part, read in pieces that end inside elements; NULL: unreadable. The caller frees
 * it.
 */
uint8_t *fuzz_read(const tnf_part *part);
/* The file in a format, in memory; NULL if the format refuses, as it may, or it is too large. */
tnf_sink *fuzz_save(const tnf_file *file, const char *format);
/* The same, with the reason for NULL: status TNF_OK if it is too large. */
tnf_sink *fuzz_save_or(const tnf_file *file, const char *format, tnf_error *why);
/* A saved file must open. It may need lenient mode only if its source did. */
tnf_file *fuzz_reopen(const tnf_sink *sink, const char *format, bool lenient);
/* All of a's tensors must be in b, and nothing else: shapes, types, bytes. */
void fuzz_compare_files(const tnf_file *a, const tnf_file *b);
/* `way` names the conversions, for messages. */
void fuzz_compare_bytes(const tnf_sink *a, const tnf_sink *b, const char *way);

#endif
