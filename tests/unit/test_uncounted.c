/* SPDX-License-Identifier: MIT */
/* The table of attributes that do not count has exactly those that formats declare, since hashes
 * must not depend on the formats that are built in. */
#include "../support/unit.h"
#include "core/core.h"

static bool in_table(const char *word, size_t n)
{
    const char *entry;
    for (size_t i = 0; (entry = tnf_uncounted_at(i)) != NULL; i++)
        if (strlen(entry) == n && memcmp(entry, word, n) == 0)
            return true;
    return false;
}

static unsigned check_list(const tnf_format *f, const char *list)
{
    unsigned n = 0;
    for (const char *p = list ? list : ""; *p; n++) {
        size_t length = strcspn(p, " ");
        if (!in_table(p, length))
            fail_msg("%s declares %.*s, which the table does not have", f->name, (int)length, p);
        p += length + strspn(p + length, " ");
    }
    return n;
}

static void declared_is_there(void **state)
{
    (void)state;
    unsigned n = 0;
    const tnf_format *f;
    for (size_t i = 0; (f = tnf_registry_at(i)) != NULL; i++)
        n += check_list(f, f->can.derived) + check_list(f, f->can.spelling);
    assert_true(n > 20);
}

static void there_is_declared(void **state)
{
    (void)state;
    const char *entry;
    for (size_t i = 0; (entry = tnf_uncounted_at(i)) != NULL; i++) {
        bool found = false;
        const tnf_format *f;
        for (size_t k = 0; (f = tnf_registry_at(k)) != NULL; k++)
            found = found || (f->can.derived && tnf_list_has(f->can.derived, entry)) ||
                    (f->can.spelling && tnf_list_has(f->can.spelling, entry));
        if (!found)
            fail_msg("no format declares %s", entry);
    }
}

static bool is_uncounted(const char *key, tnf_value value)
{
    return tnf_is_uncounted(&(tnf_member) { { key, strlen(key) }, value });
}

static void values_decide(void **state)
{
    (void)state;
    assert_true(is_uncounted("gptrs.kind", tnf_value_string("anything")));
    assert_false(is_uncounted("gptrs.kin", tnf_value_string("anything")));
    assert_false(is_uncounted("gptrs.kinds", tnf_value_string("anything")));
    assert_true(is_uncounted("gptrs.requires_grad", tnf_value_bool(false)));
    assert_false(is_uncounted("gptrs.requires_grad", tnf_value_bool(true)));
    assert_false(is_uncounted("gptrs.requires_grad=false", tnf_value_bool(false)));
    assert_true(is_uncounted("vs.pack", tnf_value_uint(0)));
    assert_false(is_uncounted("vs.pack", tnf_value_uint(1)));
    assert_true(is_uncounted("vs.attributes", (tnf_value) { .kind = TNF_MAP }));
    assert_true(is_uncounted("primitiv.type", tnf_value_string("model")));
    assert_false(is_uncounted("primitiv.type", tnf_value_string("models")));
    assert_false(is_uncounted("primitiv.type", tnf_value_string("tensor")));
    assert_true(is_uncounted("word2vec.newline", tnf_value_string("none")));
    assert_false(is_uncounted("", tnf_value_bool(false)));
}

/* A key may contain a NUL, and the table has texts that end in one. */
static void keys_with_nul(void **state)
{
    (void)state;
    tnf_member m = { { "gptrs.kind\0ZZZZZZZZ", 10 }, tnf_value_string("anything") };
    assert_true(tnf_is_uncounted(&m));
    assert_true(tnf_registry_derives(&m));
    for (m.key.n = 11; m.key.n < 19; m.key.n++) {
        assert_false(tnf_is_uncounted(&m));
        assert_false(tnf_registry_derives(&m));
    }
    m = (tnf_member) { { "numpy.version\0ZZZZZZZZZZZZ", 26 }, tnf_value_string("secret") };
    assert_false(tnf_is_uncounted(&m));
    assert_false(tnf_registry_spells(&m));
    m = (tnf_member) { { "gptrs.requires_grad=false", 25 }, tnf_value_bool(false) };
    assert_false(tnf_registry_derives(&m));
    assert_false(tnf_registry_owns("safetensors.metadata\0", 21));
    assert_true(tnf_registry_owns("safetensors.metadata", 20));
}

static void assert_counted(const char *key, const char *value, const char *counted)
{
    tnf_member m = { { key, strlen(key) }, tnf_value_string(value) };
    tnf_value v = tnf_counted_value(&m);
    assert_int_equal(v.kind, TNF_STRING);
    assert_int_equal(v.n, strlen(counted));
    assert_memory_equal(v.as.s, counted, v.n);
}

static void byte_orders(void **state)
{
    (void)state;
    assert_counted("numpy.descr", ">M8[ns]", "M8[ns]");
    assert_counted("numpy.descr", "<M8[ns]", "M8[ns]");
    assert_counted("numpy.descr", "|S5", "S5");
    assert_counted("numpy.descr", "[('a', '>f4')]", "[('a', '>f4')]");
    assert_counted("numpy.descr", "<", "<");
    assert_counted("numpy.desc", "<f4", "<f4");
    tnf_member number = { { "numpy.descr", 11 }, tnf_value_uint(60) };
    assert_int_equal(tnf_counted_value(&number).as.u, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(declared_is_there), cmocka_unit_test(there_is_declared),
        cmocka_unit_test(values_decide),     cmocka_unit_test(keys_with_nul),
        cmocka_unit_test(byte_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
