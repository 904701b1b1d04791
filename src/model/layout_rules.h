/* SPDX-License-Identifier: MIT */
/* Shared by the files of the layouts: the table's entries, and helpers for writing rules.
 *
 * A `check` may rely on the roles: each required part is there once, and there are no others. A
 * `check_data` begins with tnf_layout_check(), since a file opened leniently may contain what
 * `check` refuses.
 */
#ifndef TNF_MODEL_LAYOUT_RULES_H
#define TNF_MODEL_LAYOUT_RULES_H

#include "base/error.h"
#include "model/layout.h"

#include <string.h>

extern const tnf_layout tnf_layout_strings;
extern const tnf_layout tnf_layout_sparse_csr;
extern const tnf_layout tnf_layout_sparse_coo;
extern const tnf_layout tnf_layout_quant_group;
extern const tnf_layout tnf_layout_mx;
extern const tnf_layout tnf_layout_pq;

/* A type's id for a message. The id of an unknown type comes from a file and is quoted. */
#define TNF_TYPE_TEXT(type)                                                                        \
    ((type)->number == TNF_NUMBER_OPAQUE                                                           \
         ? TNF_QUOTED(((tnf_str) { (type)->id, strlen((type)->id) }))                              \
         : (type)->id)

/* Fails with TNF_EFORMAT and the tensor's name before the message. These are macros so that the
 * compiler sees that they never return TNF_OK. */
#define tnf_layout_fail(object, e, ...)                                                            \
    (tnf_layout_say(object, NULL, 0, e, __VA_ARGS__), TNF_EFORMAT)
/* The same for a fault at byte `at` of a part. The error has the file's offset if the bytes are in
 * the file without encoding. */
#define tnf_layout_fail_at(object, part, at, e, ...)                                               \
    (tnf_layout_say(object, part, at, e, __VA_ARGS__), TNF_EFORMAT)
void tnf_layout_say(const tnf_object *object, const tnf_part *part, uint64_t at, tnf_error *e,
                    const char *format, ...) TNF_PRINTF(5, 6);

/* Elements of the whole shape; fails beyond 2^64. */
tnf_status tnf_layout_elements(uint64_t *out, const tnf_object *object, tnf_error *e);
/* Fails unless the part has that type. */
tnf_status tnf_part_must_be(const tnf_object *object, const tnf_part *part, const tnf_type *type,
                            tnf_error *e);
/* Fails unless the part is as long as `count` elements of its type. A part of a type of unknown
 * width may have any length. */
tnf_status tnf_part_must_hold(const tnf_object *object, const tnf_part *part, uint64_t count,
                              tnf_error *e);
/* Fails unless the `count` elements follow the rules of their type. A bool is 0 or 1. In packed
 * types, no bit is set after the last element (spare bits of `bit` are not checked, because its
 * only format ignores them). */
tnf_status tnf_part_check_elements(const tnf_object *object, const tnf_part *part, uint64_t count,
                                   tnf_part_reader read, tnf_error *e);

/* A check_data for layouts: does the part "data" have the elements of the shape, and do they follow
 * these rules? */
tnf_status tnf_layout_check_numbers(const tnf_object *object, tnf_part_reader read, tnf_error *e);

/* Reads the integers of a u32 or u64 part one by one, with one block in memory. */
typedef struct tnf_part_ints {
    const tnf_part *part;
    tnf_part_reader read;
    uint64_t at;      /* end of the block in the part */
    size_t left, n;   /* unread bytes of the block, and all its bytes */
    size_t width;     /* of an integer */
    uint64_t last_at; /* position of the last returned integer in the part */
    uint8_t block[16384];
} tnf_part_ints;

void tnf_part_ints_begin(tnf_part_ints *s, const tnf_part *part, tnf_part_reader read);
/* The caller must not read beyond the last integer. */
tnf_status tnf_part_ints_next(tnf_part_ints *s, uint64_t *out, tnf_error *e);

#endif
