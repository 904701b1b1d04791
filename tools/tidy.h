/* SPDX-License-Identifier: MIT */
/* Included by clang-tidy before each file of src/. It says that functions that report a failure
 * never return TNF_OK: the analyzer sees only one file and would follow paths on which they do. */
#include "base/arena.h"
#include "base/error.h"

#undef tnf_fail
#define tnf_fail(e, status, ...) ((void)tnf_error_set(e, status, __VA_ARGS__), (status))
#define tnf_fail_rule(e, rule, status, ...)                                                        \
    ((void)tnf_fail_rule(e, rule, status, __VA_ARGS__), (status))
#define tnf_fail_sys(...)   ((void)tnf_fail_sys(__VA_ARGS__), TNF_EIO)
#define tnf_arena_fail(...) ((void)tnf_arena_fail(__VA_ARGS__), TNF_ENOMEM)
#define tnf_no_memory(...)  ((void)tnf_no_memory(__VA_ARGS__), TNF_ENOMEM)
#define tnf_need(pointer, what, e)                                                                 \
    ((pointer) ? TNF_OK : ((void)tnf_need(pointer, what, e), TNF_EINVAL))
