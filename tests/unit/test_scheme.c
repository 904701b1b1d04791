/* SPDX-License-Identifier: MIT */
/* URLs of a scheme that the program adds: files and the shards next to them. */
#include "../support/unit.h"
#include <tenfold/build.h>

/* Objects by the rest of their URLs. */
struct object {
    const char *name;
    const void *bytes;
    size_t n;
    unsigned opened;
};

static struct object objects[4];

static tnf_status open_object(void *ctx, tnf_source **out, const char *url, tnf_error *e)
{
    struct object *all = ctx;
    *out = NULL;
    for (size_t i = 0; i < 4; i++)
        if (all[i].name && strcmp(url + strlen("mem://"), all[i].name) == 0) {
            all[i].opened++;
            return tnf_source_memory(out, all[i].bytes, all[i].n, e);
        }
    if (strstr(url, "nothing"))
        return TNF_OK;
    if (strstr(url, "mute"))
        return TNF_ENET;
    return tnf_error_set(e, TNF_ENOTFOUND, TNF_NO_OFFSET, "not in this memory");
}

/* One tensor of 4 bytes, as safetensors. */
static void put_model(struct object *o, const char *name, const char *tensor)
{
    char text[128];
    int n = snprintf(text, sizeof text,
                     "{\"%s\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", tensor);
    uint8_t *bytes = calloc(1, 8 + (size_t)n + 4);
    assert_non_null(bytes);
    bytes[0] = (uint8_t)n;
    memcpy(bytes + 8, text, (size_t)n);
    memcpy(bytes + 8 + n, "data", 4);
    *o = (struct object) { name, bytes, 8 + (size_t)n + 4, 0 };
}

static tnf_status add_named(const char *name, tnf_error *e)
{
    tnf_scheme s = TNF_SCHEME_INIT;
    s.name = name;
    s.open = open_object;
    s.ctx = objects;
    return tnf_scheme_add(&s, e);
}

static void names_of_schemes(void **state)
{
    static const char *const bad[] = {
        "", "x", "Mem", "me m", "1mem", "mem:", "a-name-that-is-longer-than-31-letters"
    };
    tnf_error e;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(add_named(bad[i], &e), TNF_EINVAL);
    assert_fails(tnf_scheme_add(NULL, &e), TNF_EINVAL);
    assert_fails(add_named("s3", &e), TNF_EEXISTS);
    assert_fails(add_named("https", &e), TNF_EEXISTS);
    assert_ok(add_named("mem+v1.0-x", &e));
    assert_fails(add_named("mem+v1.0-x", &e), TNF_EEXISTS);
}

static void files_and_shards(void **state)
{
    static const char index[] = "{\"metadata\":{},\"weight_map\":{\"a\":\"one.safetensors\","
                                "\"b\":\"two.safetensors\"}}";
    tnf_file *file;
    uint8_t bytes[4];
    tnf_error e;
    (void)state;
    put_model(&objects[0], "box/one.safetensors", "a");
    put_model(&objects[1], "box/two.safetensors", "b");
    objects[2] = (struct object) { "box/model.safetensors.index.json", index, sizeof index - 1, 0 };
    assert_fails(tnf_open(&file, "mem://box/one.safetensors", NULL, &e), TNF_ENOTFOUND);
    assert_ok(add_named("mem", &e));
    assert_ok(tnf_open(&file, "mem://box/one.safetensors", NULL, &e));
    assert_ok(tnf_read(bytes, sizeof bytes, tnf_find(file, "a"), &e));
    assert_memory_equal(bytes, "data", 4);
    tnf_close(file);
    assert_ok(tnf_open(&file, "mem://box/model.safetensors.index.json", NULL, &e));
    assert_int_equal(objects[0].opened, 2);
    assert_int_equal(objects[1].opened, 1);
    assert_ok(tnf_read(bytes, sizeof bytes, tnf_find(file, "b"), &e));
    assert_memory_equal(bytes, "data", 4);
    tnf_close(file);
    free((void *)(uintptr_t)objects[0].bytes);
    free((void *)(uintptr_t)objects[1].bytes);
    memset(objects, 0, sizeof objects);
}

static void refusals_are_told(void **state)
{
    static const char store[] = "{\"zarr_format\":3,\"node_type\":\"group\"}";
    tnf_open_options to_change = TNF_OPEN_INIT;
    tnf_file *file;
    tnf_error e;
    (void)state;
    assert_ok(add_named("mem2", &e));
    assert_fails(tnf_open(&file, "mem2://box/none", NULL, &e), TNF_ENOTFOUND);
    assert_says("not in this memory");
    assert_fails(tnf_open(&file, "mem2://nothing", NULL, &e), TNF_EINVAL);
    assert_fails(tnf_open(&file, "mem2://mute", NULL, &e), TNF_ENET);
    to_change.to_change = true;
    assert_fails(tnf_open(&file, "mem2://box/none", &to_change, &e), TNF_EUNSUPPORTED);
    objects[3] = (struct object) { "s/zarr.json", store, sizeof store - 1, 0 };
    assert_fails(tnf_open(&file, "mem://s/zarr.json", NULL, &e), TNF_EUNSUPPORTED);
    assert_says("cannot list directories");
    tnf_builder *b;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_fails(tnf_save(b, "mem://s/out.safetensors", NULL, &e), TNF_EUNSUPPORTED);
    tnf_builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_schemes),
        cmocka_unit_test(files_and_shards),
        cmocka_unit_test(refusals_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
