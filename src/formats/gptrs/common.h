/* SPDX-License-Identifier: MIT */
/* Shared by checkpoints and archives of gpt.rs: reading the index, placing the data.
 */
#ifndef TNF_FORMATS_GPTRS_COMMON_H
#define TNF_FORMATS_GPTRS_COMMON_H

#include "format.h"
#include "formats/gptrs/index.h"

#define GPTRS_HEAD      16u /* magic, version, and a u32 of the format */
#define GPTRS_MAX_BYTES UINT32_MAX
#define GPTRS_MAPPED    64u /* alignment of tensors that are meant to be mapped */

/* Positions of the first write_options, the same in both formats. */
enum { GPTRS_WRITE_ALIGN, GPTRS_WRITE_ORDER, GPTRS_WRITE_OWN };
enum { GPTRS_ORDER_NAME, GPTRS_ORDER_FILE };

#define GPTRS_WRITE_OPTIONS                                                                        \
    { "align", TNF_OPTION_UINT, NULL, "1",                                                         \
      "every tensor begins at a multiple of this: gpt.rs uses 1; use 64 for mapping" },            \
    {                                                                                              \
        "order", TNF_OPTION_CHOICE, "name|file", "name",                                           \
            "order of the tensors: by name, as gpt.rs does, or as in the source"                   \
    }

/* Declarations of both formats; .can begins with GPTRS_CAN. */
#define GPTRS_RULES                                                                                \
    .caps = TNF_CAN_READ | TNF_CAN_WRITE | TNF_CAN_EDIT,                                           \
    .rules = TNF_RULE_DATA_START | TNF_RULE_OVERLAP_ODD
#define GPTRS_CAN                                                                                  \
    .types = "f32 f16 bf16 i32", .layouts = "dense", .utf8_names = true, .extras = true,           \
    .fits = tnf_gptrs_fits

/* Makes the attributes of a tensor, in which the formats differ. */
typedef tnf_status (*tnf_gptrs_attrs)(const tnf_value **out, tnf_reader *r,
                                      const tnf_gptrs_index *x, const tnf_gptrs_entry *t,
                                      tnf_error *e);

/* Reads and checks the first GPTRS_HEAD bytes: the magic of 8 bytes, and two numbers. */
tnf_status tnf_gptrs_read_head(tnf_reader *r, const char *magic, uint32_t *version,
                               uint32_t *number, tnf_error *e);
/* Says which tensors gpt.rs will not load, and how others can be written. */
tnf_status tnf_gptrs_fits(tnf_fit *fit, tnf_error *e);

/* An index ready for reading, except for its place. */
tnf_gptrs_index tnf_gptrs_index_of(const tnf_reader *r, bool ids);
/* Version 2: n bytes of index at `at`, data after them. Adds every tensor. */
tnf_status tnf_gptrs_read_v2(tnf_reader *r, uint64_t at, uint32_t n, tnf_gptrs_index *x,
                             tnf_gptrs_attrs attrs, tnf_error *e);
/* Version 1: `count` tensors at `at`, each description before its data. */
tnf_status tnf_gptrs_read_v1(tnf_reader *r, uint64_t at, uint32_t count, tnf_gptrs_index *x,
                             tnf_gptrs_attrs attrs, tnf_error *e);

/* The id to write for a tensor. */
typedef void (*tnf_gptrs_id)(uint8_t id[TNF_GPTRS_ID], const tnf_writer *w, const tnf_object *o);

/* The order from the options, or of the file to imitate; NULL: that of the catalog. */
tnf_status tnf_gptrs_order(tnf_writer *w, const uint32_t **order, tnf_error *e);
/* The alignment from the options, or of the file to imitate. */
uint64_t tnf_gptrs_align(const tnf_writer *w);
/* In place: the bytes before the data of the file, with an index of this length. Fails if the file
 * is not of version 2. */
tnf_status tnf_gptrs_room(uint64_t *out, const tnf_writer *w, uint64_t index_len, tnf_error *e);
/* Writes the index of index_len bytes, the data, and the kept trailing bytes. `id` is NULL for an
 * index without ids. */
tnf_status tnf_gptrs_write(tnf_writer *w, const uint32_t *order, uint64_t index_len,
                           tnf_gptrs_id id, tnf_error *e);

#endif
