/* SPDX-License-Identifier: MIT */
/* Expected: bytes.decode("utf-8", "replace") of Python, which follows the same recommendation. */
#include "../support/unit.h"
#include "base/lossy.h"

#define R "\xef\xbf\xbd"

static void mends_text(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        { "", "" },
        { "plain", "plain" },
        { "\xc3\xbc", "\xc3\xbc" },
        { "zee\xc3n", "zee" R "n" },
        { "zee\xbfn", "zee" R "n" },
        { "\xc0\x80", R R }, /* overlong */
        { "\xe0\x80\x80", R R R },
        { "\xe2\x82", R }, /* one character begun */
        { "\xe2\x82\xac", "\xe2\x82\xac" },
        { "\xe2\x82z", R "z" },
        { "\xed\xa0\x80", R R R }, /* a surrogate */
        { "\xf0\x9f\x98", R },
        { "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
        { "\xf0\x8f\xbf\xbf", R R R R },
        { "\xf4\x90\x80\x80", R R R R }, /* beyond Unicode */
        { "\xf1\x80\x80\xe1\x80\xc2z", R R R "z" },
        { "\xff\xfe", R R },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64];
        size_t n = strlen(cases[i].bytes);
        assert_int_equal(tnf_utf8_mend(out, cases[i].bytes, n), strlen(cases[i].text));
        assert_memory_equal(out, cases[i].text, strlen(cases[i].text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(mends_text) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
