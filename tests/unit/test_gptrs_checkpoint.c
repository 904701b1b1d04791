/* SPDX-License-Identifier: MIT */
/* gpt.rs checkpoints through the public API: written bytes, options, leniency, memory.
 * tests/formats/gptrs-checkpoint has the content of each fixture, and each refusal with its
 * offset. */
#include "../support/little.h"
#include "gptrs_files.h"

#define FORMAT "gptrs-checkpoint"

static const char *text_attr(const tnf_value *attrs, const char *key)
{
    const tnf_value *v = tnf_value_get(attrs, key);
    return v && (v->kind == TNF_STRING || v->kind == TNF_JSON) ? v->as.s : NULL;
}

static const char *config_of(const tnf_file *file)
{
    return text_attr(tnf_file_info(file)->attrs, "gptrs.config");
}

static void test_bytes_as_upstream_writes_them(void **state)
{
    (void)state;
    assert_bytes_of_upstream(FORMAT, 34);
}

static void check_aligned(const char *name, const char *align, uint64_t number)
{
    char want_name[80];
    snprintf(want_name, sizeof want_name, "align%s_%s", align, name);
    bytes file = load_fixture(FORMAT, "valid", name);
    bytes want = load_fixture(FORMAT, "written", want_name);
    assert_non_null(want.p);
    tnf_file *f = must_open(&file);
    bytes got = save_file(f, FORMAT, (const char *[]) { "align", align, NULL });
    assert_same_bytes(&got, &want, want_name);
    /* The content is the same, and converting back gives the same file. */
    tnf_file *g = must_open(&got);
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(g, i)) != NULL; i++)
        assert_true(o->parts[0].nbytes == 0 || o->parts[0].offset % number == 0);
    assert_string_equal(config_of(f), config_of(g));
    bytes back = save_file(g, FORMAT, NULL);
    bytes plain = save_file(f, FORMAT, NULL);
    assert_same_bytes(&back, &plain, name);
    tnf_close(g);
    tnf_close(f);
    free(back.p);
    free(plain.p);
    free(got.p);
    free(want.p);
    free(file.p);
}

static void test_align(void **state)
{
    (void)state;
    check_aligned("edge.bin", "64", 64);
    check_aligned("chk_v2_gpt_small.bin", "64", 64);
    check_aligned("chk_v2_empty.bin", "64", 64);
    check_aligned("config_own_metadata.bin", "64", 64);
    check_aligned("chk_v2_mixed_grad.bin", "4096", 4096);
}

static void test_bad_align(void **state)
{
    (void)state;
    bytes out;
    tnf_error e;
    tnf_builder *b;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(save_builder(&out, b, FORMAT, (const char *[]) { "align", "48", NULL }, &e),
                     TNF_EINVAL);
    tnf_builder_free(b);
}

/* --------------------------------------------------------------------- ids */

/* Counts the ids in the index of a written file: how many are zero, and how many are right. */
static void count_ids(const bytes *file, int *zero, int *right)
{
    tnf_file *f = must_open(file);
    const tnf_object *o;
    *zero = *right = 0;
    for (size_t i = 0; (o = tnf_at(f, i)) != NULL; i++) {
        const char *base = text_attr(o->attrs, "gptrs.base_id");
        const char *param = text_attr(o->attrs, "gptrs.param_id");
        assert_non_null(base);
        if (strspn(base, "0") == 32)
            ++*zero;
        else if (strcmp(base, param) == 0)
            ++*right;
    }
    const tnf_value *stored = tnf_value_get(tnf_file_info(f)->attrs, "gptrs.stored_ids");
    assert_int_equal(stored != NULL, *right > 0);
    tnf_close(f);
}

static void test_ids(void **state)
{
    (void)state;
    static const struct {
        const char *file, *option;
        int zero, right;
    } cases[] = {
        { "chk_v2_gpt_small.bin", "keep", 17, 0 },  { "chk_v2_gpt_small.bin", "zero", 17, 0 },
        { "chk_v2_gpt_small.bin", "real", 0, 17 },  { "chk_v2_rust_style.bin", "keep", 0, 17 },
        { "chk_v2_rust_style.bin", "zero", 17, 0 }, { "ids_mixed.bin", "keep", 1, 1 },
        { "ids_mixed.bin", "real", 0, 2 },          { "v1_gpt_small.bin", "keep", 17, 0 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int zero, right;
        bytes file = load_fixture(FORMAT, "valid", cases[i].file);
        tnf_file *f = must_open(&file);
        bytes got = save_file(f, FORMAT, (const char *[]) { "ids", cases[i].option, NULL });
        count_ids(&got, &zero, &right);
        assert_int_equal(zero, cases[i].zero);
        assert_int_equal(right, cases[i].right);
        tnf_close(f);
        free(got.p);
        free(file.p);
    }
}

/* gpt_small with real ids is the same as from the Rust writer, except for the order of the config's
 * keys. */
static void test_rust_style_index(void **state)
{
    (void)state;
    bytes python = load_fixture(FORMAT, "valid", "chk_v2_gpt_small.bin");
    bytes rust = load_fixture(FORMAT, "valid", "chk_v2_rust_style.bin");
    tnf_file *f = must_open(&python), *g = must_open(&rust);
    tnf_builder *b;
    tnf_error e;
    bytes got;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(tnf_builder_add_file(b, f, &e), TNF_OK);
    const tnf_value *config = tnf_value_get(tnf_file_info(g)->attrs, "gptrs.config");
    assert_int_equal(tnf_builder_set(b, NULL, "gptrs.config", config, &e), TNF_OK);
    assert_int_equal(save_builder(&got, b, FORMAT, (const char *[]) { "ids", "real", NULL }, &e),
                     TNF_OK);
    assert_same_bytes(&got, &rust, "rust style");
    tnf_builder_free(b);
    tnf_close(f);
    tnf_close(g);
    free(got.p);
    free(python.p);
    free(rust.p);
}

/* An id belongs to a name: for a new name, it is computed again. */
static void test_renamed(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "valid", "chk_v2_rust_style.bin"), got;
    tnf_file *f = must_open(&file);
    tnf_builder *b;
    tnf_error e;
    int zero, right;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(tnf_builder_add_object(b, tnf_find(f, "lm_head"), "head", &e), TNF_OK);
    assert_int_equal(save_builder(&got, b, FORMAT, NULL, &e), TNF_OK);
    count_ids(&got, &zero, &right);
    assert_int_equal(right, 1);
    tnf_builder_free(b);
    tnf_close(f);
    free(got.p);
    free(file.p);
}

/* ------------------------------------------------------------------ config */

static tnf_builder *one_tensor(void)
{
    static const float values[] = { 1, 2 };
    static const uint64_t shape[] = { 2 };
    tnf_builder *b;
    tnf_error e;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(tnf_builder_add(b, "w", tnf_type_of(TNF_F32), 1, shape, values, &e), TNF_OK);
    return b;
}

/* The config that a file of one tensor gets; the caller frees it. */
static char *config_written(const tnf_value *attr, const char *const *options)
{
    tnf_builder *b = one_tensor();
    tnf_error e;
    bytes out;
    if (attr)
        assert_int_equal(tnf_builder_set(b, NULL, "gptrs.config", attr, &e), TNF_OK);
    if (save_builder(&out, b, FORMAT, options, &e) != TNF_OK)
        fail_msg("%s", e.message);
    tnf_builder_free(b);
    size_t n = out.p[12] | (size_t)out.p[13] << 8;
    char *text = calloc(1, n + 1);
    assert_non_null(text);
    memcpy(text, out.p + 16, n);
    free(out.p);
    return text;
}

static void test_config_options(void **state)
{
    (void)state;
    const tnf_value given = { .kind = TNF_JSON, .n = 12, .as.s = "{\"kind\":\"a\"}" };
    const tnf_value text = { .kind = TNF_STRING, .n = 12, .as.s = "{\"kind\":\"a\"}" };
    const char *const options[] = { "kind", "gpt", "config", "{\"n\":1}", NULL };
    const struct {
        const tnf_value *attr;
        const char *const *options;
        const char *want;
    } cases[] = { { NULL, NULL, "{\"kind\":\"unknown\",\"config\":{}}" },
                  { &given, NULL, "{\"kind\":\"a\"}" },
                  { &text, NULL, "{\"kind\":\"a\"}" },
                  { NULL, options, "{\"kind\":\"gpt\",\"config\":{\"n\":1}}" },
                  { &given, options, "{\"kind\":\"gpt\",\"config\":{\"n\":1}}" } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *got = config_written(cases[i].attr, cases[i].options);
        assert_string_equal(got, cases[i].want);
        free(got);
    }
}

static void test_config_that_is_no_json(void **state)
{
    (void)state;
    tnf_builder *b = one_tensor();
    const tnf_value text = tnf_value_string("kind: gpt");
    bytes out;
    tnf_error e;
    assert_int_equal(tnf_builder_set(b, NULL, "gptrs.config", &text, &e), TNF_OK);
    assert_int_equal(save_builder(&out, b, FORMAT, NULL, &e), TNF_EINVAL);
    tnf_builder_free(b);
}

/* A version 1 file becomes a file that the current gpt.rs opens. */
static void test_upgrade_wraps_on_request(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "valid", "v1_gpt_small.bin");
    tnf_file *f = must_open(&file);
    bytes got = save_file(f, FORMAT, (const char *[]) { "kind", "gpt", NULL });
    tnf_file *g = must_open(&got);
    char want[400];
    snprintf(want, sizeof want, "{\"kind\":\"gpt\",\"config\":%s}", config_of(f));
    assert_string_equal(config_of(g), want);
    assert_string_equal(tnf_file_info(g)->version, "2");
    assert_int_equal(tnf_file_info(g)->nwarnings, 0);
    tnf_close(g);
    tnf_close(f);
    free(got.p);
    free(file.p);
}

/* Text and typed attributes of other programs are stored in the config; the rest of the config does
 * not change. */
static void test_foreign_attributes(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "valid", "chk_v2_gpt_small.bin"), got;
    tnf_file *f = must_open(&file);
    tnf_builder *b;
    tnf_error e;
    const tnf_value text = tnf_value_string("J\xc3\xb6rg \"x\""), number = tnf_value_uint(7);
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(tnf_builder_add_file(b, f, &e), TNF_OK);
    assert_int_equal(tnf_builder_set(b, NULL, "x.author", &text, &e), TNF_OK);
    assert_int_equal(tnf_builder_set(b, NULL, "x.number", &number, &e), TNF_OK);
    assert_int_equal(tnf_builder_set(b, "lm_head", "x.note", &number, &e), TNF_OK);
    if (save_builder(&got, b, FORMAT, NULL, &e) != TNF_OK)
        fail_msg("%s", e.message);
    tnf_file *g = must_open(&got);
    assert_string_equal(config_of(g), config_of(f));
    const tnf_value *v = tnf_value_get(tnf_file_info(g)->attrs, "x.number");
    assert_true(v && v->kind == TNF_UINT && v->as.u == 7);
    v = tnf_value_get(tnf_find(g, "lm_head")->attrs, "x.note");
    assert_true(v && v->kind == TNF_UINT && v->as.u == 7);
    bytes again = save_file(g, FORMAT, NULL);
    assert_same_bytes(&again, &got, "written again");
    tnf_builder_free(b);
    tnf_close(g);
    tnf_close(f);
    free(again.p);
    free(got.p);
    free(file.p);
}

static void test_order_of_file(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "valid", "unsorted.bin");
    tnf_file *f = must_open(&file);
    bytes got = save_file(f, FORMAT, (const char *[]) { "order", "file", NULL });
    assert_same_bytes(&got, &file, "order=file");
    tnf_close(f);
    free(got.p);
    free(file.p);
}

/* Bytes after the end belong to the file: they are reported, kept, and written again. */
static void test_trailing_bytes(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "valid", "trailing_data.bin");
    tnf_file *f = must_open(&file);
    const tnf_info *info = tnf_file_info(f);
    assert_int_equal(info->nextras, 1);
    assert_string_equal(info->extras[0].key.p, "gptrs.trailing");
    assert_int_equal(info->extras[0].bytes.nbytes, 9);
    tnf_close(f);
    free(file.p);
}

/* ---------------------------------------------------------------- leniency */

static void test_lenient_duplicate_last_wins(void **state)
{
    (void)state;
    bytes file = load_fixture(FORMAT, "reject", "duplicate.bin");
    tnf_file *f;
    tnf_error e;
    assert_int_equal(open_bytes(&f, &file, true, &e), TNF_OK);
    float values[2];
    assert_int_equal(tnf_read(values, sizeof values, tnf_find(f, "w"), &e), TNF_OK);
    from_little(values, 4, 2);
    assert_true(values[0] == 1.0f && values[1] == 1.5f); /* (5-3)/2 and (6-3)/2 */
    assert_int_equal(tnf_read(values, sizeof values, tnf_at(f, 0), &e), TNF_OK);
    from_little(values, 4, 2);
    assert_true(values[0] == -1.5f);
    tnf_close(f);
    free(file.p);
}

static void test_lenient_part_is_listed_only(void **state)
{
    (void)state;
    static const char *const names[] = { "len_mismatch.bin", "len_huge.bin", "offset_past_eof.bin",
                                         "trunc_127.bin" };
    for (size_t i = 0; i < 4; i++) {
        bytes file = load_fixture(FORMAT, "reject", names[i]);
        tnf_file *f;
        tnf_error e;
        char dst[16];
        assert_int_equal(open_bytes(&f, &file, true, &e), TNF_OK);
        const tnf_part *part = tnf_at(f, 0)->parts;
        assert_true(part->flags & TNF_PART_UNREADABLE);
        assert_int_equal(tnf_read_part(dst, 1, part, 0, &e), TNF_EUNSUPPORTED);
        assert_true(tnf_file_info(f)->nwarnings >= 1);
        tnf_close(f);
        free(file.p);
    }
}

/* ------------------------------------------------------------ invalid bytes */

static void cut_and_flip(const char *name)
{
    bytes file = load_fixture(FORMAT, "valid", name);
    assert_non_null(file.p);
    for (size_t n = 0; n < file.n; n++)
        for (int lenient = 0; lenient < 2; lenient++) {
            bytes cut = { 0 };
            tnf_file *f = NULL;
            tnf_error e = { 0 };
            add_bytes(&cut, file.p, n);
            tnf_status s = open_bytes(&f, &cut, lenient, &e);
            assert_true(lenient || s != TNF_OK);
            tnf_close(f);
            free(cut.p);
        }
    for (size_t bit = 0; bit < 8 * file.n; bit++) {
        tnf_file *f = NULL;
        tnf_error e = { 0 };
        file.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (open_bytes(&f, &file, bit % 2, &e) == TNF_OK)
            assert_non_null(tnf_file_info(f)->format);
        tnf_close(f);
        file.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(file.p);
}

static void test_every_cut_and_flip(void **state)
{
    (void)state;
    cut_and_flip("good_reference.bin");
    cut_and_flip("chk_v2_mixed_grad.bin");
    cut_and_flip("v1_tagged.bin");
    cut_and_flip("runtime_streaming.bin");
    cut_and_flip("config_own_metadata.bin");
}

static tnf_status open_limited(const char *name, tnf_limits limits, tnf_error *e)
{
    bytes file = load_fixture(FORMAT, "valid", name);
    tnf_source *source;
    tnf_file *f = NULL;
    tnf_open_options o = { .size = sizeof o, .limits = limits };
    assert_int_equal(tnf_source_memory(&source, file.p, file.n, e), TNF_OK);
    tnf_status status = tnf_open_source(&f, source, &o, e);
    tnf_close(f);
    free(file.p);
    return status;
}

/* The names of v1_long.bin have up to 9000 bytes, edge.bin has a rank of 64, their configs 26
 * bytes.
 */
static void test_limits(void **state)
{
    (void)state;
    tnf_error e;
    const tnf_limits names = { .name_bytes = 100 }, rank = { .rank = 6 }, few = { .objects = 4 };
    const tnf_limits small = { .header_bytes = 25 }, depth = { .depth = 1 };
    assert_int_equal(open_limited("v1_long.bin", names, &e), TNF_ELIMIT);
    assert_int_equal(e.offset, 46);
    assert_int_equal(open_limited("edge.bin", names, &e), TNF_ELIMIT);
    assert_int_equal(open_limited("edge.bin", rank, &e), TNF_ELIMIT);
    assert_non_null(strstr(e.message, "64 dimensions"));
    assert_int_equal(open_limited("edge.bin", few, &e), TNF_ELIMIT);
    assert_int_equal(open_limited("v1_long.bin", few, &e), TNF_ELIMIT);
    assert_int_equal(open_limited("v1_long.bin", small, &e), TNF_ELIMIT);
    assert_int_equal(e.offset, 16);
    assert_int_equal(open_limited("edge.bin", depth, &e), TNF_ELIMIT);
    assert_int_equal(open_limited("v1_long.bin", (tnf_limits) { 0 }, &e), TNF_OK);
}

/* ------------------------------------------------------------------ memory */

static void *count_reallocate(void *ctx, void *p, size_t old_size, size_t new_size)
{
    size_t *now = ctx;
    *now += new_size - old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, new_size);
}

/* A hundred thousand tensors, all with ids. */
static void test_memory_per_tensor(void **state)
{
    (void)state;
    enum { N = 100000 };
    tnf_builder *b;
    tnf_error e;
    bytes out;
    static const uint64_t shape[] = { 2, 2 };
    static const float data[4];
    size_t names = 0, now = 0;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    for (int i = 0; i < N; i++) {
        char name[40];
        names += (size_t)snprintf(name, sizeof name, "blocks.%d.feed_forward.w_in", i);
        assert_int_equal(tnf_builder_add(b, name, tnf_type_of(TNF_F32), 2, shape, data, &e),
                         TNF_OK);
    }
    assert_int_equal(save_builder(&out, b, FORMAT, (const char *[]) { "ids", "real", NULL }, &e),
                     TNF_OK);
    tnf_builder_free(b);
    tnf_source *source;
    tnf_open_options o = { .size = sizeof o, .allocator = { count_reallocate, &now } };
    tnf_file *f;
    assert_int_equal(tnf_source_memory(&source, out.p, out.n, &e), TNF_OK);
    assert_int_equal(tnf_open_source(&f, source, &o, &e), TNF_OK);
    size_t each = (now - names - N * sizeof shape) / N;
    print_message("%zu bytes a tensor beyond names and shapes\n", each);
    assert_true(each < 400);
    tnf_close(f);
    assert_int_equal(now, 0);
    free(out.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_as_upstream_writes_them),
        cmocka_unit_test(test_align),
        cmocka_unit_test(test_bad_align),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_rust_style_index),
        cmocka_unit_test(test_renamed),
        cmocka_unit_test(test_config_options),
        cmocka_unit_test(test_config_that_is_no_json),
        cmocka_unit_test(test_upgrade_wraps_on_request),
        cmocka_unit_test(test_foreign_attributes),
        cmocka_unit_test(test_order_of_file),
        cmocka_unit_test(test_trailing_bytes),
        cmocka_unit_test(test_lenient_duplicate_last_wins),
        cmocka_unit_test(test_lenient_part_is_listed_only),
        cmocka_unit_test(test_every_cut_and_flip),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_memory_per_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
