/* SPDX-License-Identifier: MIT */
/* Opening, saving and comparing for fuzz targets: whatever the input, what is said here holds, or
 * the process aborts. */
#ifndef TNF_FUZZ_CHECK_H
#define TNF_FUZZ_CHECK_H

#include "fuzz.h"
#include <tenfold/build.h>
#include <tenfold/tenfold.h>

#define FUZZ_MAX_PART    ((uint64_t)1 << 20)
#define FUZZ_MAX_PAYLOAD ((uint64_t)4 << 20) /* overlaps make a small file read as a large one */
#define FUZZ_MAX_OBJECTS 512u

/* Touches every byte, so that a wrong pointer or length is seen. */
void fuzz_eat(const void *p, size_t n);
void fuzz_eat_text(const char *s);
/* malloc that never fails and never gives NULL. */
void *fuzz_take(uint64_t n);

/* No input may bring the library to say EBUG or EINVAL, or to fail without a sentence. */
void fuzz_expect_honest(tnf_status status, const tnf_error *error);
/* NULL if it does not open; *status says why. format may be NULL: detected. */
tnf_file *fuzz_open(const void *bytes, size_t n, const char *format, bool lenient,
                    tnf_status *status);
/* The same for a file that names others: it is put beside two shards (see shards.c). */
tnf_file *fuzz_open_among_shards(const void *bytes, size_t n, const char *format, bool lenient,
                                 tnf_status *status);
/* The whole part, read in pieces that end inside elements; NULL if it cannot be read. To be freed.
 */
uint8_t *fuzz_read(const tnf_part *part);
/* The file in a format, in memory; NULL if the format refuses, as it may, or it is too large. */
tnf_sink *fuzz_save(const tnf_file *file, const char *format);
/* The same, and why there is none: status TNF_OK if it is too large. */
tnf_sink *fuzz_save_or(const tnf_file *file, const char *format, tnf_error *why);
/* What was saved must open. Only what was let in leniently may need that again. */
tnf_file *fuzz_reopen(const tnf_sink *sink, const char *format, bool lenient);
/* All of a's tensors must be in b, and nothing else: shapes, types, bytes. */
void fuzz_compare_files(const tnf_file *a, const tnf_file *b);
/* `way` says what they went through. */
void fuzz_compare_bytes(const tnf_sink *a, const tnf_sink *b, const char *way);

#endif
