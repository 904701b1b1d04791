/* SPDX-License-Identifier: MIT */
/**
 * @file value.h
 * Make values for tnf_builder_set(), and take numbers and texts out of those that a file has.
 *
 *     tnf_value sizes[] = { tnf_value_int(2), tnf_value_int(3) };
 *     tnf_member members[] = { tnf_member_of("sizes", tnf_value_array(sizes, 2)),
 *                              tnf_member_of("rate", tnf_value_float(0.5)) };
 *     tnf_value config = tnf_value_map(members, 2);
 *     tnf_builder_set(builder, NULL, "config", &config, &error);
 *
 * Nothing is allocated: a value points to what it was made of, which must stay until the call that
 * it is passed to returns.
 */
#ifndef TENFOLD_VALUE_H
#define TENFOLD_VALUE_H

#include <tenfold/types.h>

#ifdef __cplusplus
extern "C" {
#endif

TNF_API tnf_value tnf_value_int(int64_t i);
/** As f64. */
TNF_API tnf_value tnf_value_float(double f);
/** n bytes of UTF-8. */
TNF_API tnf_value tnf_value_text(const char *s, size_t n);
TNF_API tnf_value tnf_value_bytes(const void *bytes, size_t n);
/** A JSON document, which is kept byte for byte. Whether it is one is checked where it is used. */
TNF_API tnf_value tnf_value_json(const char *json, size_t n);
TNF_API tnf_value tnf_value_array(const tnf_value *items, size_t n);
TNF_API tnf_value tnf_value_map(const tnf_member *members, size_t n);
/** An entry of a map. */
TNF_API tnf_member tnf_member_of(const char *key, tnf_value value);

/** What follows is false, and *out as it was, if the value is NULL, of another kind, or a number
 *  that *out cannot hold exactly: so a path of keys is asked for at once, as in
 *  tnf_value_as_int(tnf_value_get(tnf_value_get(attrs, "config"), "layers"), &layers). */
TNF_API bool tnf_value_as_bool(const tnf_value *value, bool *out);
/** Of any number that is whole. */
TNF_API bool tnf_value_as_int(const tnf_value *value, int64_t *out);
TNF_API bool tnf_value_as_uint(const tnf_value *value, uint64_t *out);
/** Of any number that a double has exactly. */
TNF_API bool tnf_value_as_float(const tnf_value *value, double *out);
/** Of a string. */
TNF_API bool tnf_value_as_text(const tnf_value *value, tnf_str *out);
/** The i-th item of an array; NULL past the last, and if it is no array. */
TNF_API const tnf_value *tnf_value_item(const tnf_value *array, size_t i);

#ifdef __cplusplus
}
#endif
#endif
