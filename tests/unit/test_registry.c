/* SPDX-License-Identifier: MIT */
/* The list of formats, from outside and from inside. */
#include "../support/unit.h"
#include "core/core.h"

static void every_format_is_sound(void **state)
{
    (void)state;
    size_t n = 0;
    for (const tnf_format *f; (f = tnf_registry_at(n)) != NULL; n++) {
        assert_non_null(f->name);
        assert_non_null(f->title);
        assert_non_null(f->family);
        assert_non_null(f->extensions);
        assert_true(strcspn(f->name, " _/ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(f->name));
        assert_ptr_equal(tnf_registry_find(f->name), f);
        assert_true(f->caps & (TNF_CAN_READ | TNF_CAN_WRITE));
        if (f->caps & TNF_CAN_READ) {
            assert_non_null(f->probe);
            assert_non_null(f->index);
        }
        assert_int_equal(!!(f->caps & TNF_CAN_WRITE), f->write != NULL);
        assert_int_equal(!!(f->caps & TNF_CAN_APPEND), f->append != NULL);
        for (size_t i = 0; i < n; i++)
            assert_string_not_equal(tnf_registry_at(i)->name, f->name);
    }
    assert_true(n >= 2);
    assert_null(tnf_registry_at(n + 1));
}

/* registry.c checks the first letter before it searches a list. */
static void lists_have_one_letter(void **state)
{
    (void)state;
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const char *lists[] = { tnf_registry_at(i)->can.derived, tnf_registry_at(i)->can.spelling };
        for (int k = 0; k < 2; k++)
            for (const char *word = lists[k]; word && *word; word += strspn(word, " ")) {
                assert_int_equal(*word, *lists[k]);
                word += strcspn(word, " ");
            }
    }
}

/* The default of every option is one of its values. */
static void options_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; tnf_registry_at(i); i++) {
        const tnf_format *f = tnf_registry_at(i);
        const tnf_option_info *tables[] = { f->read_options, f->write_options };
        for (int t = 0; t < 2; t++) {
            tnf_error e;
            tnf_arena arena;
            tnf_allocator a = tnf_allocator_or_default(NULL);
            const tnf_option_value *values;
            tnf_arena_init(&arena, &a, UINT64_MAX);
            assert_ok(tnf_options_parse(&values, tables[t], t ? "writer" : "reader", NULL, 0,
                                        &arena, &e));
            for (const tnf_option_info *o = tables[t]; o && o->name; o++) {
                assert_non_null(o->help);
                assert_non_null(o->fallback);
                assert_int_equal(o->kind == TNF_OPTION_CHOICE, o->choices != NULL);
            }
            tnf_arena_free(&arena);
        }
    }
}

/* Types and layouts that a format claims to hold exist. */
static void check_words(const char *list, bool (*known)(const char *word))
{
    char word[64];
    while (list && *list) {
        size_t n = strcspn(list, " ");
        assert_true(n > 0 && n < sizeof word);
        memcpy(word, list, n);
        word[n] = 0;
        if (!known(word))
            fail_msg("'%s' is not known", word);
        list += n + (list[n] == ' ');
    }
}

static bool known_type(const char *word)
{
    /* finalfusion's document has integers of 128 bits, which no other format has: opaque types. */
    return tnf_type_named(word) != NULL;
}

static bool known_layout(const char *word)
{
    /* torch's own types are opaque in all other formats. */
    return tnf_layout_named(word, strlen(word)) != NULL || strncmp(word, "torch.", 6) == 0;
}

static void lists_name_what_exists(void **state)
{
    (void)state;
    for (size_t i = 0; tnf_registry_at(i); i++) {
        check_words(tnf_registry_at(i)->can.types, known_type);
        check_words(tnf_registry_at(i)->can.layouts, known_layout);
    }
}

static void public_view(void **state)
{
    (void)state;
    tnf_format_info info = TNF_FORMAT_INFO_INIT;
    size_t n = 0;
    while (tnf_format_at(&info, n)) {
        const tnf_format *f = tnf_registry_at(n++);
        assert_string_equal(info.name, f->name);
        assert_int_equal(info.caps, f->caps);
        assert_true(strcmp(info.metadata, "none") == 0 || strcmp(info.metadata, "text") == 0 ||
                    strcmp(info.metadata, "typed") == 0);
    }
    assert_null(tnf_registry_at(n));
    assert_true(tnf_format_named(&info, "gptrs-archive"));
    assert_true(tnf_list_has(info.extensions, "gten"));
    assert_true(tnf_format_named(&info, "gptrs")); /* a family: its newest format */
    assert_string_equal(info.name, "gptrs-checkpoint");
    assert_false(tnf_format_named(&info, "no such"));
    assert_string_equal(tnf_version(), TNF_VERSION_STRING);
}

/* docs/conversions.md: the first format with this extension counts; of a family, the newest member
 * is written. */
static void for_paths(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "model.safetensors", "safetensors" },
        { "dir.zt/a.ZT", "ztensor2" },
        { "a.vs", "vs" },
        { "a.fifu", "finalfusion" },
        { "m.ftz", "fasttext" },
    };
    tnf_format_info info = TNF_FORMAT_INFO_INIT;
    tnf_error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tnf_format_for_path(&info, cases[i][0], &error), TNF_OK);
        assert_string_equal(info.name, cases[i][1]);
    }
    assert_int_equal(tnf_format_for_path(&info, "no-extension", &error), TNF_EINVAL);
    assert_non_null(strstr(error.message, "no extension"));
    assert_int_equal(tnf_format_for_path(&info, "a.xyz", &error), TNF_EINVAL);
    assert_non_null(strstr(error.message, "'.xyz'"));
}

static void extensions_of_paths(void **state)
{
    (void)state;
    char out[16];
    static const char *const cases[][2] = {
        { "a.bin", "bin" }, { "dir.x/a", "" },
        { "A.BIN", "bin" }, { "a.b.Gten", "gten" },
        { "a.", "" },       { "", "" },
        { "/x/y.z/", "" },  { "a.averyveryverylongone", "averyveryverylo" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(tnf_extension(out, cases[i][0]), cases[i][1]);
    tnf_error e;
    const tnf_format *f;
    assert_ok(tnf_registry_by_extension(&f, "x/model.gten", &e));
    assert_string_equal(f->name, "gptrs-archive");
    assert_fails(tnf_registry_by_extension(&f, "x/model", &e), TNF_EINVAL);
    assert_says("no extension");
    assert_fails(tnf_registry_by_extension(&f, "x/model.nosuch", &e), TNF_EINVAL);
    assert_says(".nosuch");
}

static void whose_attributes(void **state)
{
    (void)state;
    assert_true(tnf_registry_owns("gptrs.config", 12));
    assert_false(tnf_registry_owns("gptrs.config ", 13));
    assert_false(tnf_registry_owns("gptrs", 5));
    assert_false(tnf_registry_owns("", 0));
    char *long_key = malloc(5000);
    memset(long_key, 'k', 5000);
    assert_false(tnf_registry_owns(long_key, 5000));
    tnf_member m = { { "gptrs.param_id", 14 }, tnf_value_string("x") };
    assert_true(tnf_registry_derives(&m));
    m.key = (tnf_str) { "gptrs.requires_grad", 19 };
    m.value = tnf_value_bool(false);
    assert_true(tnf_registry_derives(&m)); /* only if its value is false */
    m.value = tnf_value_bool(true);
    assert_false(tnf_registry_derives(&m));
    m.key = (tnf_str) { long_key, 5000 };
    assert_false(tnf_registry_derives(&m));
    free(long_key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_is_sound),
        cmocka_unit_test(lists_have_one_letter),
        cmocka_unit_test(options_are_sound),
        cmocka_unit_test(lists_name_what_exists),
        cmocka_unit_test(public_view),
        cmocka_unit_test(extensions_of_paths),
        cmocka_unit_test(for_paths),
        cmocka_unit_test(whose_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
