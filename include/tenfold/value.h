/* SPDX-License-Identifier: MIT */
/**
 * @file value.h
 * Make values for tnf_builder_set(), and read numbers and texts from the values of a file.
 *
 *     tnf_value sizes[] = { tnf_value_int(2), tnf_value_int(3) };
 *     tnf_member members[] = { tnf_member_of("sizes", tnf_value_array(sizes, 2)),
 *                              tnf_member_of("rate", tnf_value_float(0.5)) };
 *     tnf_value config = tnf_value_map(members, 2);
 *     tnf_builder_set(builder, NULL, "config", &config, &error);
 *
 * These functions allocate nothing. A value points to the memory that it was made from, which must
 * stay until the call that the value is passed to returns.
 *
 * The getters (tnf_value_as_…) return false, and leave *out unchanged, if the value is NULL, of
 * another kind, or a number that *out cannot hold exactly. So a path of keys needs one check only:
 *
 *     int64_t layers;
 *     const tnf_value *config = tnf_value_get(attrs, "config");
 *     if (!tnf_value_as_int(&layers, tnf_value_get(config, "layers")))
 *         return no_config();
 */
#ifndef TENFOLD_VALUE_H
#define TENFOLD_VALUE_H

#include <tenfold/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Makes a signed integer of 64 bits. */
TNF_API tnf_value tnf_value_int(int64_t i);
/** Makes a float of 64 bits. */
TNF_API tnf_value tnf_value_float(double f);
/** Makes a string of n bytes of UTF-8. */
TNF_API tnf_value tnf_value_text(const char *s, size_t n);
/** Makes a value of n bytes. */
TNF_API tnf_value tnf_value_bytes(const void *bytes, size_t n);
/** Makes a JSON document, which is kept byte for byte. tnf_builder_set() checks it. */
TNF_API tnf_value tnf_value_json(const char *json, size_t n);
/** Makes an array of n items. */
TNF_API tnf_value tnf_value_array(const tnf_value *items, size_t n);
/** Makes a map of n members. */
TNF_API tnf_value tnf_value_map(const tnf_member *members, size_t n);
/** Makes a member of a map. */
TNF_API tnf_member tnf_member_of(const char *key, tnf_value value);

/** Marks an array with the type of its items, as a file does: even an empty array may be, for
 *  example, an array of strings. `kind` is TNF_BOOL, TNF_STRING, TNF_ARRAY …, or a kind of number
 *  whose width is `dtype`. Returns the marked array; any other value is returned unchanged. */
TNF_API tnf_value tnf_value_mark_items(tnf_value array, tnf_kind kind, tnf_dtype dtype);
/** Gets the type that tnf_value_mark_items() gave to an array; false if there is none. */
TNF_API bool tnf_value_items(tnf_kind *kind, tnf_dtype *dtype, const tnf_value *array);
/** Writes the exact type of a value: `u32`, `f64`, `bool`, `string`, `bytes`, `json`, `null`,
 *  `map`, `array<u32>`, `array<array<i32>>`; `array` or `array<array>` if its items are not all of
 *  one type. Works as snprintf(): writes at most `room` bytes, the last one a NUL, and returns the
 *  length of the whole text. */
TNF_API size_t tnf_value_type(char *out, size_t room, const tnf_value *value);

/** Gets a bool. */
TNF_API bool tnf_value_as_bool(bool *out, const tnf_value *value);
/** Gets any whole number that fits. */
TNF_API bool tnf_value_as_int(int64_t *out, const tnf_value *value);
/** Gets any whole number that is not negative. */
TNF_API bool tnf_value_as_uint(uint64_t *out, const tnf_value *value);
/** Gets any number that a double holds exactly. */
TNF_API bool tnf_value_as_float(double *out, const tnf_value *value);
/** Gets a string. */
TNF_API bool tnf_value_as_text(tnf_str *out, const tnf_value *value);
/** Returns the i-th item of an array; NULL past the last one or if the value is not an array. */
TNF_API const tnf_value *tnf_value_item(const tnf_value *array, size_t i);

#ifdef __cplusplus
}
#endif
#endif
