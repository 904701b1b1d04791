/* SPDX-License-Identifier: MIT */
/* Restoring what was stored in a text map: right, outdated, broken or hostile. */
#include "../support/fake.h"
#include "core/save/save.h"

static const uint8_t bytes[10];

static void set_text(struct fake *f, const char *key, const char *value)
{
    tnf_error e;
    assert_ok(
        tnf_set_text(f->r, (tnf_str) { key, strlen(key) }, (tnf_str) { value, strlen(value) }, &e));
}

static const tnf_value *attr_of(const struct fake *f, const char *key)
{
    static tnf_value map;
    map = tnf_attrs_value(&f->file->catalog.attrs);
    return tnf_value_get(&map, key);
}

static void no_text(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, false);
    assert_ok(tnf_restore(f.file, &e));
    assert_int_equal(f.file->catalog.attrs.n, 0);
    fake_end(&f);
}

static void the_familys_own(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, false);
    set_text(&f, "format", "pt");
    set_text(&f, "", "");
    assert_ok(tnf_restore(f.file, &e));
    assert_int_equal(f.file->catalog.attrs.n, 1);
    const tnf_value *own = attr_of(&f, "fake.metadata");
    assert_int_equal(own->n, 2);
    assert_string_equal(tnf_value_get(own, "format")->as.s, "pt");
    assert_non_null(tnf_value_get(own, ""));
    fake_end(&f);
}

static void the_stash(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, false);
    assert_ok(fake_add(&f, "w", 0, 1, &e));
    assert_ok(fake_add(&f, "v", 1, 1, &e));
    static const tnf_member had = { { "old", 3 }, { .kind = TNF_BOOL, .as.b = true } };
    static const tnf_value attrs = { .kind = TNF_MAP, .n = 1, .as.members = &had };
    f.file->catalog.objects[1].attrs = &attrs;
    set_text(&f, "gptrs.config", "{\"a\": 1 }");
    set_text(&f, "other", "{}");
    set_text(&f, TNF_STASH_KEY,
             "{\"attrs\":{\"n\":{\"$u8\":7},\"f\":{\"$f32\":\"7fc00001\"}},"
             "\"kinds\":{\"gptrs.config\":\"json\"},"
             "\"tensors\":{\"w\":{\"k\":\"x\"},\"v\":{\"old\":false,\"new\":null}}}");
    assert_ok(tnf_restore(f.file, &e));
    assert_int_equal(f.warned, 0);
    assert_int_equal(attr_of(&f, "n")->dtype, TNF_U8);
    assert_int_equal(attr_of(&f, "n")->as.u, 7);
    uint32_t bits;
    memcpy(&bits, &attr_of(&f, "f")->as.f32, 4);
    assert_true(bits == 0x7fc00001);
    assert_int_equal(attr_of(&f, "gptrs.config")->kind, TNF_JSON);
    assert_string_equal(attr_of(&f, "gptrs.config")->as.s, "{\"a\": 1 }");
    assert_null(attr_of(&f, TNF_STASH_KEY));
    assert_int_equal(attr_of(&f, "fake.metadata")->n, 1);
    const tnf_object *w = tnf_catalog_find(&f.file->catalog, "w", 1);
    const tnf_object *v = tnf_catalog_find(&f.file->catalog, "v", 1);
    assert_string_equal(tnf_value_get(w->attrs, "k")->as.s, "x");
    assert_int_equal(v->attrs->n, 2);
    assert_false(tnf_value_get(v->attrs, "old")->as.b);
    fake_end(&f);
}

static void a_stash_somebody_broke(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "",
        "not JSON",
        "{\"attrs\":",
        "[]",
        "3",
        "{\"attrs\":3}",
        "{\"kinds\":[]}",
        "{\"tensors\":\"x\"}",
        "{\"tensors\":{\"w\":3}}",
        "{\"attrs\":{\"a\":1,\"a\":2}}",
        "{\"attrs\":{\"a\":{\"$u8\":999}}}",
        "{} trailing",
        "{\"attrs\":{\"a\":[[[[[[[[[[[[]]]]]]]]]]]]}}", /* deeper than the limit of 8 */
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        tnf_error e;
        struct fake f;
        fake_begin(&f, bytes, sizeof bytes, 0, false);
        assert_ok(fake_add(&f, "w", 0, 1, &e));
        set_text(&f, TNF_STASH_KEY, broken[i]);
        assert_ok(tnf_restore(f.file, &e)); /* this is not a reason to refuse a file */
        if (f.warned != 1)
            fail_msg("'%s' gives %u warnings", broken[i], f.warned);
        /* nothing is lost: the text stays a text */
        assert_string_equal(tnf_value_get(attr_of(&f, "fake.metadata"), TNF_STASH_KEY)->as.s,
                            broken[i]);
        assert_null(f.file->catalog.objects[0].attrs);
        fake_end(&f);
    }
}

static void a_stale_stash(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, false);
    set_text(&f, "gptrs.config", "{ edited");
    set_text(
        &f, TNF_STASH_KEY,
        "{\"kinds\":{\"gptrs.config\":\"json\",\"gone\":\"json\"},\"tensors\":{\"gone\":{\"a\":1}}"
        "}");
    assert_ok(tnf_restore(f.file, &e));
    assert_int_equal(f.warned, 1);
    assert_non_null(strstr(f.warning, "'gone'"));
    assert_int_equal(attr_of(&f, "gptrs.config")->kind, TNF_STRING); /* it stays a text */
    fake_end(&f);
}

#define ROOM 4000000u

/* A file whose arena has no limit, and room for the text of a stash. */
static char *begin_large(struct fake *f)
{
    fake_begin(f, bytes, sizeof bytes, 0, false);
    tnf_arena_free(&f->file->arena);
    tnf_arena_init(&f->file->arena, &f->file->alloc, UINT64_MAX);
    return malloc(ROOM);
}

/* A file could make the search very slow: 100,000 keys and a full stash. With quadratic time, this
 * test would take minutes under a sanitizer and time out. */
static void a_hostile_stash(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    size_t n = 0;
    char *stash = begin_large(&f);
    n += (size_t)snprintf(stash, ROOM, "{\"kinds\":{");
    for (unsigned i = 0; i < 4000; i++)
        n += (size_t)snprintf(stash + n, ROOM - n, "%s\"key%05u\":\"json\"", i ? "," : "", i);
    snprintf(stash + n, ROOM - n, "}}");
    set_text(&f, TNF_STASH_KEY, stash);
    for (unsigned i = 0; i < 100000; i++) {
        char key[16];
        snprintf(key, sizeof key, "kez%05u", i); /* as long as the keys above */
        set_text(&f, key, "");
    }
    assert_ok(tnf_restore(f.file, &e));
    free(stash);
    fake_end(&f);
}

/* The largest number of entries: all are restored, for the file and for a tensor. */
static void a_large_stash(void **state)
{
    (void)state;
    enum { MANY = 50000 };
    tnf_error e;
    struct fake f;
    size_t n = 0;
    char *stash = begin_large(&f);
    assert_ok(fake_add(&f, "w", 0, 1, &e));
    tnf_attrs had = { .arena = &f.file->arena };
    for (unsigned i = 0; i < MANY; i++) {
        char key[16];
        snprintf(key, sizeof key, "h%u", i);
        assert_ok(tnf_attrs_set(&had, key, strlen(key), tnf_value_uint(i), &e));
    }
    const tnf_value map = tnf_attrs_value(&had);
    f.file->catalog.objects[0].attrs = &map;
    for (int k = 0; k < 2; k++) {
        n += (size_t)snprintf(stash + n, ROOM - n, k ? ",\"tensors\":{\"w\":{" : "{\"attrs\":{");
        for (unsigned i = 0; i < MANY; i++)
            n += (size_t)snprintf(stash + n, ROOM - n, "%s\"k%u\":true", i ? "," : "", i);
        n += (size_t)snprintf(stash + n, ROOM - n, k ? "}}}" : "}");
    }
    set_text(&f, TNF_STASH_KEY, stash);
    assert_ok(tnf_restore(f.file, &e));
    assert_int_equal(f.file->catalog.attrs.n, MANY);
    assert_int_equal(f.file->catalog.objects[0].attrs->n, 2 * MANY);
    free(stash);
    fake_end(&f);
}

/* The same in a typed tree: as many attributes, and a stash with an entry for each. */
static void a_hostile_typed_stash(void **state)
{
    (void)state;
    tnf_error e;
    struct fake f;
    size_t n = 0;
    char *stash = begin_large(&f);
    n += (size_t)snprintf(stash, ROOM, "{\"kinds\":{");
    for (unsigned i = 0; i < 4000; i++)
        n += (size_t)snprintf(stash + n, ROOM - n, "%s\"key%05u\":\"json\"", i ? "," : "", i);
    snprintf(stash + n, ROOM - n, "}}");
    for (unsigned i = 0; i < 100000; i++) {
        char key[16];
        snprintf(key, sizeof key, "kez%05u", i);
        char *copy = tnf_arena_str(&f.file->arena, key, strlen(key));
        assert_ok(tnf_attrs_push(&f.file->catalog.attrs, copy, tnf_value_bool(true), &e));
    }
    assert_ok(tnf_attrs_push(&f.file->catalog.attrs, TNF_STASH_KEY, tnf_value_string(stash), &e));
    assert_ok(tnf_restore(f.file, &e));
    free(stash);
    fake_end(&f);
}

/* The values that a format with a typed tree must hold (see tnf_holds). */
static bool is_plain(const tnf_value *v)
{
    bool plain = true;
    switch (v->kind) {
    case TNF_JSON:
        return false;
    case TNF_INT:
        return v->dtype == TNF_I64 && v->as.i < 0;
    case TNF_UINT:
        return v->dtype == TNF_U64;
    case TNF_FLOAT:
        return v->dtype == TNF_F64;
    case TNF_ARRAY:
        for (size_t i = 0; i < v->n; i++)
            plain = plain && is_plain(&v->as.items[i]);
        return plain;
    case TNF_MAP:
        for (size_t i = 0; i < v->n; i++)
            plain = plain && is_plain(&v->as.members[i].value);
        return plain;
    default:
        return true;
    }
}

/* The attributes of a tensor that such a format can hold; the others are left out. */
static const tnf_value *plain_attrs(struct fake *f, const tnf_value *attrs, tnf_holds holds)
{
    tnf_error e;
    tnf_attrs kept = { .arena = &f->file->arena };
    for (size_t i = 0; attrs && holds == TNF_HOLDS_TYPED && i < attrs->n; i++) {
        const tnf_member *m = &attrs->as.members[i];
        if (is_plain(&m->value))
            assert_ok(tnf_attrs_set(&kept, m->key.p, m->key.n, m->value, &e));
    }
    tnf_value *map = tnf_arena_alloc(&f->file->arena, sizeof *map);
    *map = tnf_attrs_value(&kept);
    return kept.n ? map : NULL;
}

/* What a plan puts into a text map, or into a typed tree, is restored to the same attributes. */
static void there_and_back(tnf_holds holds)
{
    tnf_error e;
    static const tnf_value items[] = { { .kind = TNF_NULL },
                                       { .kind = TNF_UINT, .dtype = TNF_U16, .as.u = 3 } };
    static const tnf_member inner[] = { { { "$u8", 3 }, { .kind = TNF_INT, .dtype = TNF_I8 } } };
    const tnf_member attrs[] = {
        { { "int", 3 }, { .kind = TNF_INT, .dtype = TNF_I64, .as.i = INT64_MIN } },
        { { "float", 5 }, { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = -0.0 } },
        { { "bytes", 5 }, { .kind = TNF_BYTES, .n = 3, .as.s = "\0\xff\x80" } },
        { { "array", 5 }, { .kind = TNF_ARRAY, .n = 2, .as.items = items } },
        { { "map", 3 }, { .kind = TNF_MAP, .n = 1, .as.members = inner } },
        { { "json", 4 }, { .kind = TNF_JSON, .n = 6, .as.s = "[1, 2]" } },
        { { "string", 6 }, { .kind = TNF_STRING, .n = 7, .as.s = "a\0\"\n\xc3\xa9\x01" } },
        { { "null", 4 }, { .kind = TNF_NULL } },
        { { "", 0 }, { .kind = TNF_BOOL, .as.b = true } },
    };
    enum { N = sizeof attrs / sizeof *attrs };
    tnf_builder *b;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "w", tnf_type_of(TNF_U8), 0, NULL, bytes, &e));
    for (size_t i = 0; i < N; i++) {
        assert_ok(tnf_builder_set(b, NULL, attrs[i].key.p, &attrs[i].value, &e));
        assert_ok(tnf_builder_set(b, "w", attrs[i].key.p, &attrs[i].value, &e));
    }
    tnf_format format = { .name = "made-up", .family = "made-up", .caps = TNF_CAN_WRITE };
    format.can = (tnf_can) { .attrs = holds, .zero_rank = true };
    struct tnf_save save = { .format = &format };
    tnf_arena_init(&save.arena, &b->alloc, UINT64_MAX);
    assert_ok(tnf_plan(&save, &b->catalog, &e));

    struct fake f;
    fake_begin(&f, bytes, sizeof bytes, 0, false);
    assert_ok(fake_add(&f, "w", 0, 1, &e));
    for (size_t i = 0; i < save.planned.attrs.n; i++) {
        const tnf_member *m = &save.planned.attrs.members[i];
        assert_true(holds == TNF_HOLDS_TYPED && is_plain(&m->value));
        assert_ok(tnf_attrs_set(&f.file->catalog.attrs, m->key.p, m->key.n, m->value, &e));
    }
    f.file->catalog.objects[0].attrs = plain_attrs(&f, save.planned.objects[0].attrs, holds);
    for (size_t i = 0; i < save.text.n; i++) {
        const tnf_member *m = &save.text.members[i];
        assert_ok(tnf_set_text(f.r, m->key, (tnf_str) { m->value.as.s, m->value.n }, &e));
    }
    assert_ok(tnf_restore(f.file, &e));
    assert_int_equal(f.warned, 0);
    for (size_t i = 0; i < N; i++) {
        const tnf_value *file = attr_of(&f, attrs[i].key.p);
        const tnf_value *object = tnf_value_get(f.file->catalog.objects[0].attrs, attrs[i].key.p);
        if (!object || !tnf_value_equal(object, &attrs[i].value))
            fail_msg("the tensor's attribute '%s' did not come back", attrs[i].key.p);
        if (!file || !tnf_value_equal(file, &attrs[i].value))
            fail_msg("the file's attribute '%s' did not come back", attrs[i].key.p);
    }
    assert_int_equal(f.file->catalog.attrs.n, N); /* nothing else was restored */
    fake_end(&f);
    tnf_arena_free(&save.arena);
    tnf_builder_free(b);
}

static void through_text(void **state)
{
    (void)state;
    there_and_back(TNF_HOLDS_TEXT);
}

static void through_a_typed_tree(void **state)
{
    (void)state;
    there_and_back(TNF_HOLDS_TYPED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_text),       cmocka_unit_test(the_familys_own),
        cmocka_unit_test(the_stash),     cmocka_unit_test(a_stash_somebody_broke),
        cmocka_unit_test(a_stale_stash), cmocka_unit_test(a_hostile_stash),
        cmocka_unit_test(a_large_stash), cmocka_unit_test(a_hostile_typed_stash),
        cmocka_unit_test(through_text),  cmocka_unit_test(through_a_typed_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
