/* SPDX-License-Identifier: MIT */
/* Structs that callers of any version hand in, to be read or to be filled. The first member of
 * each, `size`, says how much of it the caller's header knew:
 *
 *     shorter than ours   an older caller: what it does not know is 0, the default
 *     longer than ours    a newer caller: fine as long as all that we do not know is 0; of a result
 *                         that is what it becomes
 *
 * So a struct grows at its end only, by members for which 0 means the old behaviour, and never into
 * old padding, whose bytes are undefined. */
#ifndef TNF_BASE_SIZED_H
#define TNF_BASE_SIZED_H

#include "base/error.h"

#include <stddef.h>

/* The bytes of a struct up to and with a member. */
#define TNF_UP_TO(type, member)            (offsetof(type, member) + sizeof(((type *)0)->member))
/* What a caller has at least: the struct of version 0.1, however long it becomes. */
#define TNF_FIRST(type)                    TNF_UP_TO_LAST(type, TNF_LAST_##type)
#define TNF_UP_TO_LAST(type, last)         TNF_UP_TO(type, last)

/* The last member that each struct had in version 0.1. A line never changes: a member that comes
 * later is not asked of older callers. */
#define TNF_LAST_tnf_save_options          remote
#define TNF_LAST_tnf_convert_options       scales
#define TNF_LAST_tnf_device_options        no_numa
#define TNF_LAST_tnf_device_info           pinned
#define TNF_LAST_tnf_load_options          has_after
#define TNF_LAST_tnf_load_report           transformed
#define TNF_LAST_tnf_diff_options          threads
#define TNF_LAST_tnf_diff_result           failed
#define TNF_LAST_tnf_emb_options           allocator
#define TNF_LAST_tnf_emb_query             from
#define TNF_LAST_tnf_emb_change            threads
#define TNF_LAST_tnf_quantized             euclidean
#define TNF_LAST_tnf_quantize_options      ctx
#define TNF_LAST_tnf_scheme                ctx
#define TNF_LAST_tnf_job_options           numeric
#define TNF_LAST_tnf_job_how               check_input
#define TNF_LAST_tnf_params_options        allocator
#define TNF_LAST_tnf_params_stats          ahead_bytes
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
/* The same for a public struct, by its type, which the compiler compares with both pointers. */
#define TNF_TAKE_OPTIONS(type, dst, given, e)                                                      \
    tnf_options_copy(1 ? (dst) : (type *)0, sizeof(type), TNF_FIRST(type),                         \
                     1 ? (given) : (const type *)0, e)

/* Can a result that a caller has made be filled? TNF_EINVAL if it is shorter than `first`, or of a
 * size that no caller can have meant; else all of it but its size becomes 0. */
tnf_status tnf_result_begin(void *given, size_t first, tnf_error *e);
/* Then fills as much of it as there is, from one of this library, of own_size bytes. Its size stays
 * the caller's. */
void tnf_result_fill(void *given, const void *own, size_t own_size);

/* Bytes in reserve that a caller handed in: TNF_EINVAL unless all are 0. */
tnf_status tnf_check_reserved(const void *bytes, size_t n, tnf_error *e);

#endif
