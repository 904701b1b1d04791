/* SPDX-License-Identifier: MIT */
/* XML of object stores' answers, and invalid XML. */
#include "../support/unit.h"
#include "wire/xml.h"

static void expect_text(const char *xml, const char *name, const char *want)
{
    tnf_str out;
    bool found = tnf_xml_text(xml, strlen(xml), name, &out);
    if (!want) {
        assert_false(found);
        return;
    }
    assert_true(found);
    assert_int_equal(out.n, strlen(want));
    assert_memory_equal(out.p, want, out.n);
}

static void test_text(void **state)
{
    (void)state;
    const char error[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- a > b --><Error>"
                         "<Code>NoSuchKey</Code><Message>a &amp; b</Message><Empty/></Error>";
    expect_text(error, "Code", "NoSuchKey");
    expect_text(error, "Message", "a &amp; b");
    expect_text(error, "Empty", "");
    expect_text(error, "Cod", NULL);
    expect_text("<s3:Error xmlns:s3=\"x\"><s3:Code>A</s3:Code></s3:Error>", "Code", "A");
    expect_text("<Code>cut sho", "Code", "cut sho");
    expect_text("<Code", "Code", NULL);
    expect_text("<!DOCTYPE x [<!ENTITY a \"b\">]><Code>A</Code>", "Code", NULL);
    expect_text("<?never ends", "Code", NULL);
    expect_text("<Code><b>x</b></Code>", "Code", NULL);
    expect_text("<>", "", NULL);
    expect_text("", "Code", NULL);
}

static void test_unescape(void **state)
{
    char out[64];
    static const char *const bad[] = { "&",          "&amp", "&nbsp;", "&#0;",  "&#xD800;",
                                       "&#x110000;", "&#;",  "&#x;",   "&#12a;" };
    tnf_str text = TNF_STR("a&lt;&gt;&amp;&quot;&apos;&#65;&#x1F600;&#xe9;b");
    (void)state;
    assert_int_equal(tnf_xml_unescape(out, sizeof out, text), 14);
    assert_string_equal(out, "a<>&\"'A\xf0\x9f\x98\x80\xc3\xa9"
                             "b");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(tnf_xml_unescape(out, sizeof out, (tnf_str) { bad[i], strlen(bad[i]) }) ==
                    SIZE_MAX);
    assert_true(tnf_xml_unescape(out, 3, (tnf_str)TNF_STR("abc")) == SIZE_MAX);
    assert_int_equal(tnf_xml_unescape(out, 4, (tnf_str)TNF_STR("abc")), 3);
}

static void test_steps(void **state)
{
    tnf_xml x;
    tnf_str piece;
    const char text[] = "<a><b k=\"v\"/>t</a>";
    (void)state;
    tnf_xml_init(&x, text, sizeof text - 1);
    assert_int_equal(tnf_xml_next(&x, &piece), TNF_XML_OPEN);
    assert_int_equal(tnf_xml_next(&x, &piece), TNF_XML_OPEN);
    assert_true(piece.n == 1 && piece.p[0] == 'b');
    assert_int_equal(tnf_xml_next(&x, &piece), TNF_XML_CLOSE);
    assert_int_equal(tnf_xml_next(&x, &piece), TNF_XML_TEXT);
    assert_int_equal(tnf_xml_next(&x, &piece), TNF_XML_CLOSE);
    assert_int_equal(tnf_xml_next(&x, &piece), TNF_XML_END);
    assert_false(x.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_unescape),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
