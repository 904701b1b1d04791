/* SPDX-License-Identifier: MIT */
/* The headers of every cmocka program, in the order that cmocka requires. */
#ifndef TNF_SUPPORT_UNIT_H
#define TNF_SUPPORT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka after those above */
#include <cmocka.h>
#include <tenfold/types.h>

/* Asserts that the call fails with this status, also in the error. Needs a tnf_error `e` in
 * scope. */
#define assert_fails(call, expected)                                                               \
    do {                                                                                           \
        memset(&e, 0, sizeof e);                                                                   \
        assert_string_equal(tnf_status_name(call), #expected);                                     \
        assert_int_equal(e.status, expected);                                                      \
        assert_true(e.message[0] != 0);                                                            \
    } while (0)

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        e.message[0] = 0;                                                                          \
        tnf_status assert_ok_status_ = (call);                                                     \
        if (assert_ok_status_ != TNF_OK)                                                           \
            fail_msg("%s: %s: %s", #call, tnf_status_name(assert_ok_status_), e.message);          \
    } while (0)

#define assert_says(words)                                                                         \
    do {                                                                                           \
        if (!strstr(e.message, (words)))                                                           \
            fail_msg("'%s' is not in: %s", (words), e.message);                                    \
    } while (0)

#endif
