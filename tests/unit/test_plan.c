/* SPDX-License-Identifier: MIT */
/* Fitting a catalog to a format: every fate, and allowed losses. The formats are invented;
 * test_restore.c tests restoring. */
#include "../support/memory.h"
#include "../support/unit.h"
#include "core/save/save.h"

/* The plan as text: "native tensor w; dropped attribute k (reason); " … */
struct plan {
    char text[2000];
    size_t n;
};

static void note_item(void *ctx, const tnf_plan_item *item)
{
    static const char *const fates[] = { "native", "stashed", "transformed", "dropped" };
    struct plan *p = ctx;
    p->n += (size_t)snprintf(p->text + p->n, sizeof p->text - p->n, "%s %s %.*s; ",
                             fates[item->fate], item->kind, (int)item->name.n, item->name.p);
    assert_true(p->n < sizeof p->text);
    assert_non_null(item->reason);
    if (item->fate >= TNF_TRANSFORMED)
        assert_true(item->reason[0] != 0);
}

struct world {
    struct memory_log log;
    tnf_builder *b;
    tnf_format format;
    struct tnf_save save;
    struct plan plan;
};

static uint8_t data[64];

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    *state = w;
    w->format = (tnf_format) { .name = "made-up", .family = "made-up", .caps = TNF_CAN_WRITE };
    w->format.can.zero_rank = true;
    tnf_allocator a = memory_allocator(&w->log);
    return tnf_builder_new(&w->b, &a, NULL);
}

static int tear_down(void **state)
{
    struct world *w = *state;
    tnf_builder_free(w->b);
    int bad = w->log.blocks != 0 || w->log.wrong_sizes != 0;
    free(w);
    return bad;
}

static tnf_status plan_save(struct world *w, tnf_error *e)
{
    w->save.format = &w->format;
    w->save.options.plan = note_item;
    w->save.options.ctx = &w->plan;
    w->plan.n = 0;
    w->plan.text[0] = 0;
    tnf_arena_init(&w->save.arena, &w->b->alloc, UINT64_MAX);
    return tnf_plan(&w->save, &w->b->catalog, e);
}

static void end_plan(struct world *w)
{
    tnf_plan_end(&w->save);
    tnf_arena_free(&w->save.arena);
    tnf_save_options options = w->save.options;
    w->save = (struct tnf_save) { .options = options };
}

static void add_tensor(struct world *w, const char *name, const char *type, uint32_t rank)
{
    tnf_error e;
    static const uint64_t ones[] = { 1, 1, 1 };
    assert_ok(tnf_builder_add(w->b, name, tnf_type_named(type), rank, ones, data, &e));
}

static void set_attribute(struct world *w, const char *name, const char *key, tnf_value v)
{
    tnf_error e;
    assert_ok(tnf_builder_set(w->b, name, key, &v, &e));
}

static void all_native(void **state)
{
    struct world *w = *state;
    tnf_error e;
    add_tensor(w, "a", "f32", 2);
    add_tensor(w, "b", "bool", 0);
    set_attribute(w, NULL, "k", tnf_value_uint(1));
    set_attribute(w, "a", "k", tnf_value_uint(1));
    w->format.can.attrs = TNF_HOLDS_TYPED;
    assert_ok(plan_save(w, &e));
    assert_string_equal(w->plan.text, "native attribute k; native tensor a; native tensor b; ");
    assert_int_equal(w->save.planned.n, 2);
    assert_int_equal(w->save.planned.attrs.n, 1);
    assert_int_equal(w->save.text.n, 0);
    assert_int_equal(w->save.total, 5);
    end_plan(w);
}

/* One wrong tensor at a time: dropped with the reason, refused unless allowed. */
static void tensors_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        tnf_can can;
        const char *name, *type;
        const char *says;
    } cases[] = {
        { { .types = "f32 i64" }, "w", "f16", "has no type f16" },
        { { .layouts = "strings/1" }, "w", "f32", "no such layout" },
        { { .ascii_names = true }, "caf\xc3\xa9", "f32", "not allow such names" },
        { { .utf8_names = true }, "caf\xe9", "f32", "not allow such names" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_error e;
        void *one;
        assert_int_equal(set_up(&one), 0);
        struct world *w = one;
        add_tensor(w, cases[i].name, cases[i].type, 1);
        w->format.can = cases[i].can;
        assert_fails(plan_save(w, &e), TNF_ELOSSY);
        assert_says(cases[i].says);
        const char *fate = i < 2 ? "dropped tensor " : "transformed tensor ";
        assert_memory_equal(w->plan.text, fate, strlen(fate));
        end_plan(w);
        w->save.options.allow_loss = true;
        assert_ok(plan_save(w, &e));
        assert_int_equal(w->save.planned.n, i < 2 ? 0 : 1);
        end_plan(w);
        assert_int_equal(tear_down(&one), 0);
    }
}

static void column_major(void **state)
{
    struct world *w = *state;
    tnf_error e;
    uint64_t shape[] = { 2, 3 };
    for (uint8_t i = 0; i < 6; i++)
        data[i] = i;
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .memory = data,
                      .stored = 6,
                      .nbytes = 6,
                      .payload = TNF_MEMORY };
    tnf_object o = { .name = { "f", 1 },
                     .shape = shape,
                     .rank = 2,
                     .parts = &part,
                     .nparts = 1,
                     .layout = &tnf_layout_dense,
                     .order = TNF_ORDER_F };
    assert_ok(tnf_builder_add_object(w->b, &o, NULL, &e));
    w->format.can.order_f = true;
    assert_ok(plan_save(w, &e));
    assert_string_equal(w->plan.text, "native tensor f; ");
    assert_int_equal(w->save.planned.objects[0].order, TNF_ORDER_F);
    end_plan(w);
    w->format.can.order_f = false; /* then the writer gets it transposed */
    assert_ok(plan_save(w, &e));
    assert_string_equal(w->plan.text, "native tensor f; ");
    const tnf_object *turned = &w->save.planned.objects[0];
    assert_int_equal(turned->order, TNF_ORDER_C);
    assert_memory_equal(turned->shape, shape, sizeof shape);
    uint8_t rows[6];
    assert_ok(tnf_read(rows, sizeof rows, turned, &e));
    assert_memory_equal(rows, ((uint8_t[]) { 0, 2, 4, 1, 3, 5 }), 6);
    end_plan(w);
}

/* Two tensors of one name, from a file with both. A format that may repeat names gets both if the
 * first one is found; any other format gets the one that is found. */
static void names_twice(void **state)
{
    struct world *w = *state;
    tnf_error e;
    add_tensor(w, "a", "f32", 1);
    add_tensor(w, "b", "f32", 1);
    tnf_object copy = w->b->catalog.objects[0];
    assert_ok(tnf_catalog_add(&w->b->catalog, &copy, TNF_NAMES_FIRST_FOUND, &e));
    assert_fails(plan_save(w, &e), TNF_ELOSSY);
    assert_says("same name");
    assert_string_equal(w->plan.text, "native tensor a; native tensor b; dropped tensor a; ");
    end_plan(w);
    w->format.rules = TNF_RULE_NAMES_MAY_REPEAT;
    assert_ok(plan_save(w, &e));
    assert_int_equal(w->save.planned.n, 3);
    end_plan(w);
    assert_ok(tnf_catalog_add(&w->b->catalog, &copy, TNF_NAMES_LATER_FOUND, &e));
    assert_fails(plan_save(w, &e), TNF_ELOSSY); /* the last is found, so the others would be lost */
    end_plan(w);
}

static void what_cannot_be_read(void **state)
{
    struct world *w = *state;
    tnf_error e;
    uint64_t shape[] = { 6 };
    tnf_part part = { .role = "data",
                      .type = tnf_type_of(TNF_U8),
                      .memory = data,
                      .stored = 6,
                      .nbytes = 6,
                      .payload = TNF_MEMORY,
                      .flags = TNF_PART_UNREADABLE };
    tnf_object o = { .name = { "u", 1 },
                     .shape = shape,
                     .rank = 1,
                     .parts = &part,
                     .nparts = 1,
                     .layout = &tnf_layout_dense };
    assert_ok(tnf_builder_add_object(w->b, &o, NULL, &e));
    assert_fails(plan_save(w, &e), TNF_ELOSSY);
    assert_says("cannot be read");
    end_plan(w);
}

/* A format with a typed tree gets attributes that a tree can hold unchanged, and the others as
 * text. */
static void a_typed_tree(void **state)
{
    struct world *w = *state;
    tnf_error e;
    static const tnf_value plain[] = { { .kind = TNF_UINT, .dtype = TNF_U64, .as.u = 1 },
                                       { .kind = TNF_STRING, .n = 1, .as.s = "x" } };
    static const tnf_value narrow[] = { { .kind = TNF_UINT, .dtype = TNF_U8, .as.u = 1 } };
    const tnf_member inside[] = { { { "a", 1 },
                                    { .kind = TNF_ARRAY, .n = 2, .as.items = plain } } };
    const tnf_member odd[] = { { { "a", 1 }, { .kind = TNF_ARRAY, .n = 1, .as.items = narrow } } };
    const tnf_value fine = { .kind = TNF_MAP, .n = 1, .as.members = inside };
    const tnf_value not_fine = { .kind = TNF_MAP, .n = 1, .as.members = odd };
    add_tensor(w, "t", "f32", 1);
    for (int k = 0; k < 2; k++) {
        set_attribute(w, k ? "t" : NULL, "fine", fine);
        set_attribute(w, k ? "t" : NULL, "narrow", not_fine);
        set_attribute(w, k ? "t" : NULL, "json", tnf_value_str(TNF_JSON, "[1]", 3));
    }
    set_attribute(w, "t", "gptrs.param_id", tnf_value_string("00"));
    w->format.can.attrs = TNF_HOLDS_TYPED;
    assert_ok(plan_save(w, &e));
    assert_non_null(strstr(w->plan.text, "native attribute fine; "));
    assert_non_null(strstr(w->plan.text, "stashed attribute narrow; "));
    assert_non_null(strstr(w->plan.text, "stashed attribute json; "));
    tnf_value map = tnf_attrs_value(&w->save.planned.attrs);
    assert_int_equal(map.n, 3); /* fine; json as text; the stash */
    assert_int_equal(tnf_value_get(&map, "json")->kind, TNF_STRING);
    assert_non_null(tnf_value_get(&map, TNF_STASH_KEY));
    assert_int_equal(w->save.planned.objects[0].attrs->n, 1);
    assert_non_null(tnf_value_get(w->save.planned.objects[0].attrs, "fine"));
    end_plan(w);
}

/* Trees have a single NaN; other NaNs are stashed, not lost. */
static void odd_nans(void **state)
{
    struct world *w = *state;
    tnf_error e;
    static const uint64_t bits[] = { UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000000),
                                     UINT64_C(0x7ff0000000000001) };
    static const char *const keys[] = { "nan", "negative", "signalling" };
    add_tensor(w, "t", "f32", 1);
    for (size_t i = 0; i < 3; i++) {
        tnf_value v = { .kind = TNF_FLOAT, .dtype = TNF_F64 };
        memcpy(&v.as.f64, &bits[i], sizeof bits[i]);
        set_attribute(w, NULL, keys[i], v);
    }
    w->format.can.attrs = TNF_HOLDS_TYPED;
    assert_ok(plan_save(w, &e));
    assert_non_null(strstr(w->plan.text, "native attribute nan; "));
    assert_non_null(strstr(w->plan.text, "stashed attribute negative; "));
    assert_non_null(strstr(w->plan.text, "stashed attribute signalling; "));
    end_plan(w);
}

static void scalars_become_vectors(void **state)
{
    struct world *w = *state;
    tnf_error e;
    add_tensor(w, "s", "f32", 0);
    w->format.can.zero_rank = false;
    assert_fails(plan_save(w, &e), TNF_ELOSSY);
    assert_string_equal(w->plan.text, "transformed tensor s; ");
    end_plan(w);
    w->save.options.allow_loss = true;
    assert_ok(plan_save(w, &e));
    assert_int_equal(w->save.planned.objects[0].rank, 1);
    assert_int_equal(w->save.planned.objects[0].shape[0], 1);
    assert_int_equal(w->b->catalog.objects[0].rank, 0); /* the builder's own is unchanged */
    end_plan(w);
}

static void attributes_without_a_place(void **state)
{
    struct world *w = *state;
    tnf_error e;
    add_tensor(w, "a", "f32", 1);
    set_attribute(w, NULL, "k", tnf_value_uint(1));
    set_attribute(w, "a", "l", tnf_value_bool(true));
    assert_fails(plan_save(w, &e), TNF_ELOSSY);
    assert_says("2 items");
    assert_string_equal(w->plan.text,
                        "dropped attribute k; native tensor a; dropped attribute l; ");
    end_plan(w);
    w->format.can.file_attrs = "j k";
    w->format.can.object_attrs = "l";
    assert_ok(plan_save(w, &e));
    end_plan(w);
}

/* Derived attributes are not a loss, nor are meaningless flags. */
static void derived_attributes(void **state)
{
    struct world *w = *state;
    tnf_error e;
    add_tensor(w, "a", "f32", 1);
    set_attribute(w, "a", "gptrs.param_id", tnf_value_string("00"));
    set_attribute(w, "a", "gptrs.requires_grad", tnf_value_bool(false));
    assert_ok(plan_save(w, &e));
    assert_string_equal(w->plan.text, "native tensor a; ");
    end_plan(w);
    set_attribute(w, "a", "gptrs.requires_grad", tnf_value_bool(true));
    assert_fails(plan_save(w, &e), TNF_ELOSSY);
    end_plan(w);
}

static const char *text_of(const struct world *w, const char *key)
{
    tnf_value map = tnf_attrs_value(&w->save.text);
    const tnf_value *v = tnf_value_get(&map, key);
    return v ? v->as.s : NULL;
}

static void a_text_map(void **state)
{
    struct world *w = *state;
    tnf_error e;
    static const tnf_member pairs[] = {
        { { "format", 6 }, { .kind = TNF_STRING, .n = 2, .as.s = "pt" } },
        { { "x", 1 }, { .kind = TNF_STRING, .n = 0, .as.s = "" } }
    };
    add_tensor(w, "a", "f32", 1);
    set_attribute(w, NULL, "other.metadata",
                  (tnf_value) { .kind = TNF_MAP, .n = 2, .as.members = pairs });
    set_attribute(w, NULL, "gptrs.config", tnf_value_str(TNF_JSON, "{\"a\": 1}", 8));
    set_attribute(w, NULL, "n", tnf_value_uint(7));
    set_attribute(w, NULL, "bytes", tnf_value_str(TNF_BYTES, "\xff\0", 2));
    set_attribute(w, "a", "l", tnf_value_bool(true));
    w->format.can.attrs = TNF_HOLDS_TEXT;
    assert_ok(plan_save(w, &e));
    assert_non_null(strstr(w->plan.text, "stashed attribute n; "));
    assert_non_null(strstr(w->plan.text, "stashed attribute gptrs.config; "));
    assert_string_equal(text_of(w, "format"), "pt"); /* from the pairs of a text map */
    assert_string_equal(text_of(w, "x"), "");
    assert_string_equal(text_of(w, "gptrs.config"), "{\"a\": 1}"); /* byte for byte */
    const char *stash = text_of(w, TNF_STASH_KEY);
    assert_non_null(stash);
    assert_non_null(strstr(stash, "\"gptrs.config\":\"json\""));
    assert_non_null(strstr(stash, "\"tensors\":{\"a\":{\"l\":true}}"));
    assert_int_equal(w->save.planned.attrs.n, 0);
    end_plan(w);
}

static void nothing_to_stash(void **state)
{
    struct world *w = *state;
    tnf_error e;
    add_tensor(w, "a", "f32", 1);
    w->format.can.attrs = TNF_HOLDS_TEXT;
    assert_ok(plan_save(w, &e));
    assert_int_equal(w->save.text.n, 0);
    end_plan(w);
}

static void keys_that_collide(void **state)
{
    struct world *w = *state;
    tnf_error e;
    static const tnf_member a[] = { { { "k", 1 }, { .kind = TNF_STRING, .n = 1, .as.s = "1" } } };
    static const tnf_member b[] = { { { "k", 1 }, { .kind = TNF_STRING, .n = 1, .as.s = "2" } } };
    set_attribute(w, NULL, "p.metadata", (tnf_value) { .kind = TNF_MAP, .n = 1, .as.members = a });
    set_attribute(w, NULL, "q.metadata", (tnf_value) { .kind = TNF_MAP, .n = 1, .as.members = a });
    w->format.can.attrs = TNF_HOLDS_TEXT;
    assert_ok(plan_save(w, &e)); /* the same attribute twice counts once */
    assert_int_equal(w->save.text.n, 1);
    end_plan(w);
    set_attribute(w, NULL, "q.metadata", (tnf_value) { .kind = TNF_MAP, .n = 1, .as.members = b });
    assert_fails(plan_save(w, &e), TNF_ELOSSY);
    assert_says("'k'");
    end_plan(w);
}

static void extras_of_the_family(void **state)
{
    struct world *w = *state;
    tnf_error e;
    tnf_extra own = { .key = { "made-up.rest", 12 } }, other = { .key = { "made-upper.rest", 15 } };
    w->format.can.extras = true;
    assert_ok(tnf_catalog_add_extra(&w->b->catalog, &own, &e));
    assert_ok(plan_save(w, &e));
    assert_string_equal(w->plan.text, "native extra made-up.rest; ");
    assert_int_equal(w->save.planned.nextras, 1);
    end_plan(w);
    assert_ok(tnf_catalog_add_extra(&w->b->catalog, &other, &e));
    assert_fails(plan_save(w, &e), TNF_ELOSSY);
    end_plan(w);
    w->format.can.extras = false;
    w->save.options.allow_loss = true;
    assert_ok(plan_save(w, &e));
    assert_int_equal(w->save.planned.nextras, 0);
    end_plan(w);
}

static void kinds_of_loss(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *loss;
        bool ok;
    } cases[] = { { NULL, true },
                  { "attribute", true },
                  { "tensor,attribute", true },
                  { "extra,attribute,tensor", true },
                  { "tensor", false },
                  { "attributes", false },
                  { "attribut", false },
                  { "", false },
                  { ",", false } };
    set_attribute(w, NULL, "k", tnf_value_uint(1));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_error e;
        w->save.options.allow_loss = true;
        w->save.options.loss = cases[i].loss;
        assert_int_equal(plan_save(w, &e), cases[i].ok ? TNF_OK : TNF_ELOSSY);
        end_plan(w);
    }
}

/* Every allocation fails once: an error each time, and nothing leaks. */
static void no_memory(void **state)
{
    struct world *w = *state;
    tnf_extra x = { .key = { "made-up.rest", 12 } };
    tnf_error e;
    add_tensor(w, "a", "f32", 1);
    set_attribute(w, NULL, "n", tnf_value_uint(7));
    set_attribute(w, NULL, "gptrs.config", tnf_value_str(TNF_JSON, "{}", 2));
    set_attribute(w, "a", "l", tnf_value_bool(true));
    assert_ok(tnf_catalog_add_extra(&w->b->catalog, &x, &e));
    w->format.can.attrs = TNF_HOLDS_TEXT;
    w->format.can.extras = true;
    uint64_t before = w->log.blocks;
    for (uint64_t n = 1;; n++) {
        w->log.calls = 0;
        w->log.fail_at = n;
        tnf_status status = plan_save(w, &e);
        w->log.fail_at = 0;
        end_plan(w);
        assert_int_equal(w->log.blocks, before);
        if (status == TNF_OK)
            break;
        assert_int_equal(status, TNF_ENOMEM);
        assert_true(n < 100);
    }
}

int main(void)
{
#define WITH_WORLD(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(all_native),
        cmocka_unit_test(tensors_that_do_not_fit),
        WITH_WORLD(column_major),
        WITH_WORLD(names_twice),
        WITH_WORLD(what_cannot_be_read),
        WITH_WORLD(a_typed_tree),
        WITH_WORLD(odd_nans),
        WITH_WORLD(scalars_become_vectors),
        WITH_WORLD(attributes_without_a_place),
        WITH_WORLD(derived_attributes),
        WITH_WORLD(a_text_map),
        WITH_WORLD(nothing_to_stash),
        WITH_WORLD(keys_that_collide),
        WITH_WORLD(extras_of_the_family),
        WITH_WORLD(kinds_of_loss),
        WITH_WORLD(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
