/* SPDX-License-Identifier: MIT */
/* What is not there, handed on unchecked, is TNF_EINVAL and a sentence: objects that tnf_find() did
 * not find, parts that they do not have, names that were not set. */
#include "support/unit.h"

#include <tenfold/bind.h>
#include <tenfold/build.h>
#include <tenfold/tenfold.h>

static void refuses_no_part(void **state)
{
    char byte;
    tnf_error e;
    tnf_request request = { .dst = &byte };
    (void)state;
    assert_fails(tnf_read_many(&request, 1, NULL, &e), TNF_EINVAL);
}

static void refuses_no_object(void **state)
{
    tnf_error e;
    tnf_builder *b;
    (void)state;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_fails(tnf_builder_add_object(b, NULL, NULL, &e), TNF_EINVAL);
    tnf_builder_free(b);
}

static void refuses_no_name(void **state)
{
    tnf_error e;
    tnf_binding binding = TNF_BINDING_INIT;
    (void)state;
    assert_fails(tnf_bind(NULL, &binding, 1, NULL, NULL, &e), TNF_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_no_part),
        cmocka_unit_test(refuses_no_object),
        cmocka_unit_test(refuses_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
