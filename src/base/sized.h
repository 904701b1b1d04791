/* SPDX-License-Identifier: MIT */
/* Structs of callers of any version, which the library reads or fills. The first member of each,
 * `size`, is the size of the struct in the caller's header:
 *
 *     shorter than ours   an older caller: members that it does not have are 0, the default
 *     longer than ours    a newer caller: allowed if all members that we do not have are 0; in a
 *                         result they become 0
 *
 * So a struct only grows at its end, by members for which 0 means the old behaviour. The bytes of
 * padding are undefined: a new member neither lies in old padding nor leaves any before or after it
 * (a reserved member that must be 0 fills it). */
#ifndef TNF_BASE_SIZED_H
#define TNF_BASE_SIZED_H

#include "base/error.h"

#include <stddef.h>

/* The bytes of a struct up to and with a member. */
#define TNF_UP_TO(type, member)            (offsetof(type, member) + sizeof(((type *)0)->member))
/* The minimum size of a caller's struct: that of version 0.1, however long the struct becomes. */
#define TNF_FIRST(type)                    TNF_UP_TO_LAST(type, TNF_LAST_##type)
#define TNF_UP_TO_LAST(type, last)         TNF_UP_TO(type, last)

/* The last member that each struct had in version 0.1. These lines never change: older callers do
 * not have later members. */
#define TNF_LAST_tnf_save_options          remote
#define TNF_LAST_tnf_convert_options       scales
#define TNF_LAST_tnf_device_options        no_numa
#define TNF_LAST_tnf_device_info           pinned
#define TNF_LAST_tnf_load_options          has_after
#define TNF_LAST_tnf_load_report           transformed
#define TNF_LAST_tnf_diff_options          threads
#define TNF_LAST_tnf_diff_result           failed
#define TNF_LAST_tnf_emb_options           vocab_bytes
#define TNF_LAST_tnf_emb_query             from
#define TNF_LAST_tnf_emb_change            threads
#define TNF_LAST_tnf_quantized             euclidean
#define TNF_LAST_tnf_quantize_options      ctx
#define TNF_LAST_tnf_scheme                ctx
#define TNF_LAST_tnf_job_options           numeric
#define TNF_LAST_tnf_job_how               check_input
#define TNF_LAST_tnf_derive                ctx
#define TNF_LAST_tnf_params_options        reserved
#define TNF_LAST_tnf_params_stats          made
#define TNF_LAST_tnf_points_options        go_on_ctx
#define TNF_LAST_tnf_space                 attributes
#define TNF_LAST_tnf_points_report         problems
#define TNF_LAST_tnf_primitiv_bind_options allocator
#define TNF_LAST_tnf_url_options           netrc
#define TNF_LAST_tnf_traffic               retries
#define TNF_LAST_tnf_fetch_options         noptions
#define TNF_LAST_tnf_salvage_options       threads
#define TNF_LAST_tnf_salvage_result        lost
#define TNF_LAST_tnf_merge_options         tensors_only
#define TNF_LAST_tnf_split_options         stray
#define TNF_LAST_tnf_stat_options          bins
#define TNF_LAST_tnf_open_options          remote
#define TNF_LAST_tnf_strings               offsets
#define TNF_LAST_tnf_read_options          ctx
#define TNF_LAST_tnf_verify_options        note
#define TNF_LAST_tnf_verify_result         opening
#define TNF_LAST_tnf_hash_options          leaf
#define TNF_LAST_tnf_format_info           reserved
#define TNF_LAST_tnf_virtual_how           layout

/* Copies the caller's options (NULL: all defaults) to the library's struct of dst_size bytes.
 * Members that the caller does not have become 0, and size becomes dst_size. TNF_EINVAL for a size
 * below `first`, for an impossible one, and for a newer member that is set. */
tnf_status tnf_options_copy(void *dst, size_t dst_size, size_t first, const void *given,
                            tnf_error *e);
/* The same for a public struct. The compiler checks both pointers against its type. */
#define TNF_TAKE_OPTIONS(type, dst, given, e)                                                      \
    tnf_options_copy(1 ? (dst) : (type *)0, sizeof(type), TNF_FIRST(type),                         \
                     1 ? (given) : (const type *)0, e)

/* Checks that a result of the caller can be filled. TNF_EINVAL if it is shorter than `first` or has
 * an impossible size; else everything but its size becomes 0. */
tnf_status tnf_result_begin(void *given, size_t first, tnf_error *e);
/* Then fills it, as far as it reaches, from the library's own struct of own_size bytes. The
 * caller's size does not change. */
void tnf_result_fill(void *given, const void *own, size_t own_size);

/* Checks reserved bytes of a caller's struct: TNF_EINVAL unless all are 0. */
tnf_status tnf_check_reserved(const void *bytes, size_t n, tnf_error *e);

/* Checks a value of an enumeration that the caller gives, from 0 to `last`: TNF_EINVAL for others,
 * which a later version of the library may have. `what` is the name of the member or parameter. */
tnf_status tnf_check_choice(unsigned value, unsigned last, const char *what, tnf_error *e);
/* The same for flags: `known` has the bits of all flags. */
tnf_status tnf_check_flags(unsigned value, unsigned known, const char *what, tnf_error *e);

#endif
