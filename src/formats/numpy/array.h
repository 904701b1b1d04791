/* SPDX-License-Identifier: MIT */
/* An array in both formats: alone in a file (.npy), or a member of a zip archive (.npz). */
#ifndef TNF_FORMATS_NUMPY_ARRAY_H
#define TNF_FORMATS_NUMPY_ARRAY_H

#include "formats/numpy/columns.h"

#define NP_VERSION "numpy.version"
#define NP_DESCR   "numpy.descr"
#define NP_HEADER  "numpy.header"
#define NP_ORDER                                                                                   \
    "numpy.order" /* "F": column-major, even if another format cannot store this order */

/* Fields of tnf_can, the same for both formats. */
#define NP_TYPES                                                                                   \
    "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128 f8_e4m3fn f8_e5m2 "              \
    "f8_e4m3fnuz f8_e5m2fnuz f8_e8m0"
#define NP_SPELLING                                                                                \
    NP_VERSION " " NP_HEADER " " NP_ORDER " numpy.descr=>i2 numpy.descr=>i4 numpy.descr=>i8 "      \
               "numpy.descr=>u2 numpy.descr=>u4 numpy.descr=>u8 numpy.descr=>f2 numpy.descr=>f4 "  \
               "numpy.descr=>f8 numpy.descr=>c8 numpy.descr=>c16 numpy.descr=<f1 "                 \
               "numpy.descr=float8_e4m3fn numpy.descr=float8_e5m2 numpy.descr=float8_e4m3fnuz "    \
               "numpy.descr=float8_e5m2fnuz numpy.descr=float8_e8m0fnu"

extern const char *const tnf_np_versions[]; /* by major number */
extern const tnf_option_info tnf_np_read_options[];

/* ---------------------------------------------------------------- reading */

/* A context with the reader's options for types. */
np_context tnf_np_context(tnf_reader *r, tnf_arena *arena);
/* Checks the version after the magic number, both at `magic`. */
tnf_status tnf_np_version(unsigned *major, const uint8_t *magic, uint64_t at, tnf_error *e);
/* Makes attributes for everything that the tensor's type and shape do not say; NULL: none. The
 * cursor is over the header's text. version: keep also the version, if NumPy would choose
 * another. */
tnf_status tnf_np_make_attrs(const tnf_value **out, tnf_reader *r, const np_array *a,
                             unsigned major, bool version, const tnf_cur *c, tnf_error *e);

/* text.c: `element_text` of both formats. */
size_t tnf_np_element_text(const tnf_object *o, uint32_t *axes, const void *bytes, size_t n,
                           char *out, size_t room);

/* ---------------------------------------------------------------- writing */

/* The form in which a tensor is written. */
typedef struct np_form {
    np_array a;
    const char *lost; /* what is lost; NULL: nothing */
} np_form;

tnf_status tnf_np_form_of(np_form *f, const np_context *x, const tnf_object *o, bool ml_dtypes,
                          tnf_error *e);
/* The functions was_f and takes of tnf_can, for both formats. */
bool tnf_np_was_columns_first(const tnf_object *o);
tnf_fate tnf_np_takes(const tnf_object *o, const char **reason);
/* strings.c: tensors of strings, as |S. */
bool tnf_np_is_strings(const tnf_object *o);
bool tnf_np_in_parts(const tnf_object *o); /* `in_parts` of both formats */
tnf_status tnf_np_form_of_strings(np_form *f, const np_context *x, const tnf_object *o,
                                  tnf_error *e);
/* Calls put with the elements of the array, each of `width` bytes. */
tnf_status tnf_np_put_strings(const tnf_object *o, uint64_t width, tnf_take_fn put, void *ctx,
                              tnf_error *e);
/* Makes magic number, version, length and text: those of the source array, or NumPy's own. If
 * `align` is not 0, spaces align the end of a header that begins at `at`. May change the order in
 * `a`. */
tnf_status tnf_np_make_header(tnf_buf *out, const tnf_writer *w, const tnf_object *o, np_array *a,
                              const np_context *x, uint64_t at, uint64_t align, tnf_error *e);

#endif
