/* SPDX-License-Identifier: MIT */
/* primitiv files through the public API: written bytes, order, options. tests/formats/primitiv has
 * the content of each fixture, and each refusal with its offset. */
#include "../support/little.h"
#include "gptrs_files.h"

#include <dirent.h>

#define FORMAT  "primitiv"
#define HEAD(t) "\xce\0\0\0\0\xce\0\0\0\1\xce\0\0" t "\0"

static bytes read_fixture(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s.primitiv", name);
    bytes b = load_fixture(FORMAT, "valid", path);
    assert_non_null(b.p);
    return b;
}

static bytes literal_bytes(const char *p, size_t n)
{
    bytes b = { 0 };
    add_bytes(&b, p, n);
    return b;
}

static void assert_written(const char *name, const char *const *options, const bytes *want)
{
    bytes file = read_fixture(name);
    tnf_file *f = must_open(&file);
    bytes got = save_file(f, FORMAT, options);
    assert_same_bytes(&got, want ? want : &file, name);
    tnf_close(f);
    free(got.p);
    free(file.p);
}

/* Read and written again, every file has the same bytes, except those that primitiv itself would
 * write differently. */
static void test_bytes_as_primitiv_writes_them(void **state)
{
    (void)state;
    static const char *const other[] = {
        "probe_p_dims_array16", "probe_p_dims_array32",  "probe_p_bin16_short",
        "probe_p_bin32_short",  "probe_p_dims8_ones",    "probe_p_dims_2_1",
        "probe_p_stat_str16",   "probe_p_stat_str32",    "probe_p_stat_twice",
        "probe_m_reversed",     "probe_m_dup",           "probe_o_map16",
        "probe_o_twice",        "probe_m_unknown_first",
    };
    const size_t n = sizeof other / sizeof *other;
    DIR *dir = opendir(TNF_TESTS_DIR "/formats/" FORMAT "/valid");
    assert_non_null(dir);
    int same = 0;
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        size_t i = 0;
        while (i < n && (strncmp(d->d_name, other[i], strlen(other[i])) != 0 ||
                         d->d_name[strlen(other[i])] != '.'))
            i++;
        if (d->d_name[0] == '.' || i < n)
            continue;
        bytes file = load_fixture(FORMAT, "valid", d->d_name);
        tnf_file *f;
        tnf_error e;
        if (open_bytes(&f, &file, false, &e) == TNF_OK) {
            bytes got = save_file(f, FORMAT, NULL);
            assert_same_bytes(&got, &file, d->d_name);
            tnf_close(f);
            free(got.p);
            same++;
        }
        free(file.p);
    }
    closedir(dir);
    assert_true(same >= 60);
}

static void test_what_is_made_canonical(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
    } pairs[] = {
        { "probe_p_dims_array16", "parameter_2x2" }, { "probe_p_dims_array32", "parameter_2x2" },
        { "probe_p_bin16_short", "parameter_2x2" },  { "probe_p_bin32_short", "parameter_2x2" },
        { "probe_m_reversed", "probe_m_ok" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        bytes want = read_fixture(pairs[i].to);
        assert_written(pairs[i].from, NULL, &want);
        free(want.p);
    }
    assert_written("probe_m_reversed", (const char *[]) { "order", "file", NULL }, NULL);
}

static const tnf_value *attr_of(const tnf_object *o, const char *key)
{
    return tnf_value_get(o->attrs, key);
}

static void test_order_and_batch(void **state)
{
    (void)state;
    bytes file = read_fixture("parameter_stats_many");
    tnf_file *f = must_open(&file);
    const tnf_object *value = tnf_find(f, "value"), *batched = tnf_find(f, "value@batched");
    assert_true(value && value->rank == 2 && value->order == TNF_ORDER_F);
    assert_null(attr_of(value, "primitiv.path"));
    assert_null(attr_of(value, "primitiv.batch"));
    assert_true(batched && batched->rank == 2 && batched->order == TNF_ORDER_F);
    assert_int_equal(batched->shape[0], 2);
    assert_int_equal(batched->shape[1], 3);
    const tnf_value *batch = attr_of(batched, "primitiv.batch");
    assert_true(batch && batch->kind == TNF_UINT && batch->dtype == TNF_U32 && batch->as.u == 3);
    const tnf_object *nameless = tnf_find(f, "value@");
    assert_true(nameless && nameless->rank == 0 && attr_of(nameless, "primitiv.stat")->n == 0);
    tnf_close(f);
    free(file.p);
}

static void test_exact_types_of_configs(void **state)
{
    (void)state;
    bytes file = read_fixture("optimizer_SGD_upstream");
    tnf_file *f = must_open(&file);
    const tnf_value *attrs = tnf_file_info(f)->attrs;
    const tnf_value *uints = tnf_value_get(attrs, "primitiv.uint_configs");
    const tnf_value *epoch = tnf_value_get(uints, "Optimizer.epoch");
    assert_true(epoch && epoch->kind == TNF_UINT && epoch->dtype == TNF_U32 && epoch->as.u == 2);
    const tnf_value *reals = tnf_value_get(attrs, "primitiv.float_configs");
    assert_int_equal(reals->n, 4);
    assert_string_equal(reals->as.members[0].key.p, "SGD.eta"); /* in file order */
    assert_true(reals->as.members[0].value.dtype == TNF_F32);
    assert_true(reals->as.members[1].value.as.f32 == 5.0f);
    tnf_close(f);
    free(file.p);
}

static void test_names_that_are_no_text(void **state)
{
    (void)state;
    bytes file = read_fixture("probe_p_stat_bad_utf8");
    tnf_file *f = must_open(&file);
    const tnf_object *o = tnf_find(f, "value@\xff\xfe");
    const tnf_value *key = o ? attr_of(o, "primitiv.stat") : NULL;
    assert_true(key && key->kind == TNF_BYTES && key->n == 2);
    tnf_close(f);
    free(file.p);

    file = read_fixture("model_path_bad_utf8");
    f = must_open(&file);
    o = tnf_find(f, "a.\xff");
    const tnf_value *path = o ? attr_of(o, "primitiv.path") : NULL;
    assert_true(path && path->n == 2 && path->as.items[0].kind == TNF_STRING &&
                path->as.items[1].kind == TNF_BYTES);
    tnf_close(f);
    free(file.p);
}

static void test_sorted_on_request(void **state)
{
    (void)state;
    static const char *const sort[] = { "sort", "yes", NULL };
    bytes file = read_fixture("parameter_stats_of_numbers");
    tnf_file *f = must_open(&file);
    bytes got = save_file(f, FORMAT, sort);
    tnf_file *g = must_open(&got);
    assert_string_equal(tnf_at(g, 1)->name.p, "value@m1");
    assert_string_equal(tnf_at(g, 2)->name.p, "value@m10");
    assert_string_equal(tnf_at(g, 3)->name.p, "value@m2");
    assert_null(attr_of(tnf_at(g, 1), "primitiv.order"));
    tnf_close(g);
    tnf_close(f);
    free(got.p);
    free(file.p);

    static const char twisted[] = HEAD("\4") "\x82\xa1"
                                             "b\xce\0\0\0\1\xa1"
                                             "a\xce\0\0\0\2\x80";
    static const char straight[] = HEAD("\4") "\x82\xa1"
                                              "a\xce\0\0\0\2\xa1"
                                              "b\xce\0\0\0\1\x80";
    bytes from = literal_bytes(twisted, sizeof twisted - 1),
          to = literal_bytes(straight, sizeof straight - 1);
    f = must_open(&from);
    got = save_file(f, FORMAT, NULL);
    assert_same_bytes(&got, &from, "configs as they were");
    free(got.p);
    got = save_file(f, FORMAT, sort);
    assert_same_bytes(&got, &to, "configs sorted");
    tnf_close(f);
    free(got.p);
    free(from.p);
    free(to.p);
}

/* Statistics in hash order come back in this order from a format that sorts by name. */
static void test_order_of_statistics_survives(void **state)
{
    (void)state;
    bytes file = read_fixture("parameter_stats_of_numbers");
    tnf_file *f = must_open(&file);
    bytes there = save_file(f, "safetensors", NULL);
    tnf_file *g = must_open(&there);
    bytes back = save_file(g, FORMAT, NULL);
    assert_same_bytes(&back, &file, "by way of safetensors");
    tnf_close(g);
    tnf_close(f);
    free(back.p);
    free(there.p);
    free(file.p);
}

/* A builder with one vector of that name. */
static tnf_builder *one_vector(const char *name, uint64_t n)
{
    static const float values[16] = { 1, 2, 3 };
    tnf_builder *b;
    tnf_error e;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(
        tnf_builder_add(b, name, tnf_type_of(TNF_F32), 1, &n, to_little(values, 4, 16), &e),
        TNF_OK);
    return b;
}

static void test_type_by_content(void **state)
{
    (void)state;
    static const char model[] = HEAD("\3") "\xce\0\0\0\1\x92\xa1"
                                           "a\xa1w\x91\xce\0\0\0\2\xce\0\0\0\1\xc4\x08"
                                           "\0\0\x80\x3f\0\0\0\x40\xce\0\0\0\0";
    static const char parameter[] = HEAD("\2") "\x91\xce\0\0\0\2\xce\0\0\0\1\xc4\x08"
                                               "\0\0\x80\x3f\0\0\0\x40\xce\0\0\0\0";
    static const char tensor[] = HEAD("\1") "\x91\xce\0\0\0\2\xce\0\0\0\1\xc4\x08"
                                            "\0\0\x80\x3f\0\0\0\x40";
    bytes want[] = { literal_bytes(model, sizeof model - 1),
                     literal_bytes(parameter, sizeof parameter - 1),
                     literal_bytes(tensor, sizeof tensor - 1) };
    static const char *const types[] = { "auto", "parameter", "tensor" };
    tnf_error e;
    bytes got;
    for (size_t i = 0; i < 3; i++) {
        const char *options[] = { "type", types[i], NULL };
        tnf_builder *b = one_vector(i == 0 ? "a.w" : "value", 2);
        assert_int_equal(save_builder(&got, b, FORMAT, options, &e), TNF_OK);
        assert_same_bytes(&got, &want[i], types[i]);
        free(got.p);
        free(want[i].p);
        tnf_builder_free(b);
    }
}

static void test_optimizer_from_c(void **state)
{
    (void)state;
    static const char want_bytes[] = HEAD("\4") "\x81\xa1"
                                                "e\xce\0\0\0\7\x82\xa1"
                                                "a\xca\x3f\0\0\0\xa1"
                                                "b\xca\x40\x40\0\0";
    tnf_member uints[] = { { { "e", 1 }, tnf_value_uint(7) } };
    tnf_member reals[] = {
        { { "a", 1 }, { .kind = TNF_FLOAT, .dtype = TNF_F64, .as.f64 = 0.5 } },
        { { "b", 1 }, tnf_value_uint(3) },
    };
    tnf_value u = { .kind = TNF_MAP, .n = 1, .as.members = uints };
    tnf_value f = { .kind = TNF_MAP, .n = 2, .as.members = reals };
    tnf_builder *b;
    tnf_error e;
    bytes got, want = literal_bytes(want_bytes, sizeof want_bytes - 1);
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(tnf_builder_set(b, NULL, "primitiv.uint_configs", &u, &e), TNF_OK);
    assert_int_equal(tnf_builder_set(b, NULL, "primitiv.float_configs", &f, &e), TNF_OK);
    assert_int_equal(save_builder(&got, b, FORMAT, NULL, &e), TNF_OK);
    assert_same_bytes(&got, &want, "an optimizer");
    free(got.p);
    free(want.p);
    tnf_builder_free(b);
}

static void test_names_are_paths(void **state)
{
    (void)state;
    static const char *const names[] = {
        "", ".", "a\\.b", "a\\\\.b", "\\", "a\\\\", "a\\\\\\.b.c"
    };
    static const size_t elements[] = { 1, 2, 1, 2, 1, 1, 2 };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tnf_builder *b = one_vector(names[i], 2);
        tnf_error e;
        bytes got;
        assert_int_equal(save_builder(&got, b, FORMAT, NULL, &e), TNF_OK);
        tnf_file *f = must_open(&got);
        assert_string_equal(tnf_at(f, 0)->name.p, names[i]);
        assert_int_equal(attr_of(tnf_at(f, 0), "primitiv.path")->n, elements[i]);
        tnf_close(f);
        free(got.p);
        tnf_builder_free(b);
    }
}

/* Only heads are read: skipping a missing payload of a gigabyte costs nothing. */
struct sparse {
    const uint8_t *head, *tail;
    size_t nhead, ntail;
    uint64_t size, read;
};

static tnf_status read_sparse(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)e;
    struct sparse *s = ctx;
    s->read += n;
    for (size_t i = 0; i < n; i++) {
        uint64_t at = offset + i;
        bool tail = at >= s->size - s->ntail;
        ((uint8_t *)dst)[i] = at < s->nhead ? s->head[at]
                              : tail        ? s->tail[at - (s->size - s->ntail)]
                                            : 0;
    }
    return TNF_OK;
}

static void test_payloads_are_skipped(void **state)
{
    (void)state;
    static const char head[] = HEAD("\2") "\x91\xce\x10\0\0\0\xce\0\0\0\1\xc6\x40\0\0\0";
    static const char tail[] = "\xce\0\0\0\1\xa1"
                               "a\x90\xce\0\0\0\1\xc4\x04\0\0\x80\x3f";
    struct sparse s = { .head = (const uint8_t *)head,
                        .tail = (const uint8_t *)tail,
                        .nhead = sizeof head - 1,
                        .ntail = sizeof tail - 1 };
    s.size = s.nhead + ((uint64_t)1 << 30) + s.ntail;
    tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION, .read_at = read_sparse };
    tnf_source *source;
    tnf_file *f;
    tnf_error e = { 0 };
    assert_int_equal(tnf_source_custom(&source, &ops, &s, s.size, &e), TNF_OK);
    if (tnf_open_source(&f, source, NULL, &e) != TNF_OK)
        fail_msg("%s", e.message);
    assert_int_equal(tnf_file_info(f)->objects, 2);
    assert_int_equal(tnf_file_info(f)->nwarnings, 0);
    assert_true(s.read < 20000);
    tnf_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_as_primitiv_writes_them),
        cmocka_unit_test(test_what_is_made_canonical),
        cmocka_unit_test(test_order_and_batch),
        cmocka_unit_test(test_exact_types_of_configs),
        cmocka_unit_test(test_names_that_are_no_text),
        cmocka_unit_test(test_sorted_on_request),
        cmocka_unit_test(test_order_of_statistics_survives),
        cmocka_unit_test(test_type_by_content),
        cmocka_unit_test(test_optimizer_from_c),
        cmocka_unit_test(test_names_are_paths),
        cmocka_unit_test(test_payloads_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
