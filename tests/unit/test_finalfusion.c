/* SPDX-License-Identifier: MIT */
/* finalfusion files through the public API: bytes written, words without a copy, contents that do
 * not fit. tests/formats/finalfusion checks each fixture, and each refusal with its offset.
 */
#include "../support/little.h"
#include "gptrs_files.h"

#include <dirent.h>

#define FORMAT   "finalfusion"
#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *const seed_option[] = { "dialect", "seed", NULL };

static bytes read_fixture(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s.fifu", name);
    bytes b = load_fixture(FORMAT, "valid", path);
    if (!b.p)
        abort(); /* what the analyzer understands */
    return b;
}

static uint8_t *part_bytes(const tnf_object *o, const char *role)
{
    tnf_error e = { 0 };
    assert_non_null(o);
    const tnf_part *p = tnf_object_part(o, role);
    assert_non_null(p);
    uint8_t *out = malloc(p->nbytes ? p->nbytes : 1);
    assert_non_null(out);
    if (tnf_read_part(out, p->nbytes, p, 0, &e) != TNF_OK)
        fail_msg("%s", e.message);
    return out;
}

static uint64_t number_at(const uint8_t *p, size_t width)
{
    uint64_t v = 0;
    for (size_t i = width; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

/* ------------------------------------------------------------------- bytes */

/* Files that are written in another form than read, because faults of their writers are
 * corrected. */
static bool is_canonical(const char *name)
{
    static const char *const other[] = {
        "explicit_python.",
        "explicit_gaps.",
        "norms_unlisted.",
        "groups_unlisted_norms.",
        "groups_python.",
        "quantized_flags.",
        "no_padding.",
        "quantized_swapped.",
        "later_unlisted.",
        "attributes_stale.",
        "lenient_",
        "seed_",
        "r2v_",
    };
    for (size_t i = 0; i < COUNT(other); i++)
        if (strncmp(name, other[i], strlen(other[i])) == 0)
            return false;
    return strstr(name, ".fifu") != NULL;
}

static void each_fixture(void (*check)(const char *name, tnf_file *file, const bytes *of))
{
    DIR *dir = opendir(TNF_TESTS_DIR "/formats/" FORMAT "/valid");
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        if (d->d_name[0] == '.')
            continue;
        bytes file = load_fixture(FORMAT, "valid", d->d_name);
        tnf_file *f;
        tnf_error e;
        if (open_bytes(&f, &file, false, &e) == TNF_OK) {
            check(d->d_name, f, &file);
            tnf_close(f);
        }
        free(file.p);
    }
    closedir(dir);
}

static int same_files;

static void check_written(const char *name, tnf_file *file, const bytes *of)
{
    if (!is_canonical(name))
        return;
    bytes got = save_file(file, FORMAT, NULL);
    assert_same_bytes(&got, of, name);
    free(got.p);
    same_files++;
}

static void test_bytes_as_the_tools_write_them(void **state)
{
    (void)state;
    same_files = 0;
    each_fixture(check_written);
    assert_true(same_files >= 40);
}

static void check_seed(const char *name, tnf_file *file, const bytes *of)
{
    if (strncmp(name, "seed_", 5) != 0 || strstr(name, "tools_padding"))
        return;
    bytes got = save_file(file, FORMAT, seed_option);
    assert_same_bytes(&got, of, name);
    free(got.p);
    same_files++;
}

static void test_bytes_as_the_document_says(void **state)
{
    (void)state;
    same_files = 0;
    each_fixture(check_seed);
    assert_true(same_files >= 20);
}

/* The corrected file is what a current tool would write. */
static void test_what_is_put_right(void **state)
{
    (void)state;
    bytes wrong = read_fixture("norms_unlisted");
    tnf_file *f = must_open(&wrong);
    bytes got = save_file(f, FORMAT, NULL);
    assert_int_equal(got.n, wrong.n + 4);
    assert_int_equal(number_at(got.p + 8, 4), 3);
    assert_int_equal(number_at(got.p + 20, 4), 6);
    tnf_close(f);
    free(got.p);
    free(wrong.p);

    wrong = read_fixture("explicit_python"); /* for three n-grams, 24 bytes are missing */
    f = must_open(&wrong);
    got = save_file(f, FORMAT, NULL);
    assert_int_equal(got.n, wrong.n);
    assert_int_equal(number_at(got.p + 28, 8), number_at(wrong.p + 28, 8) + 24);
    tnf_close(f);
    free(got.p);
    free(wrong.p);
}

/* ------------------------------------------------------------------- words */

/* Borrowed words are the same as the words of the parts. */
static void check_lent(const tnf_object *o)
{
    tnf_error e = { 0 };
    tnf_strings s = TNF_STRINGS_INIT;
    if (tnf_strings_map(&s, o, &e) != TNF_OK)
        fail_msg("%s", e.message);
    uint8_t *offsets = part_bytes(o, "offsets"), *text = part_bytes(o, "bytes");
    assert_int_equal(s.prefix, 4);
    assert_int_equal(s.every, 1024);
    assert_int_equal(s.count, o->shape[0]);
    uint64_t at = 0;
    for (uint64_t i = 0; i < s.count; i++) {
        uint64_t from = number_at(offsets + 8 * i, 8), to = number_at(offsets + 8 * i + 8, 8);
        if (i % s.every == 0)
            assert_int_equal(s.marks[i / s.every], at);
        assert_true(at + 4 <= s.bytes);
        assert_int_equal(number_at(s.base + at, 4), to - from);
        assert_memory_equal(s.base + at + 4, text + from, to - from);
        at += 4 + (to - from) + s.suffix;
    }
    assert_int_equal(at, s.bytes);
    free(offsets);
    free(text);
}

static void check_words(const char *name, tnf_file *file, const bytes *of)
{
    (void)name, (void)of;
    static const char *const names[] = { "vocab", "ngrams" };
    for (size_t i = 0; i < COUNT(names); i++)
        if (tnf_find(file, names[i]))
            check_lent(tnf_find(file, names[i]));
}

static void test_words_are_lent(void **state)
{
    (void)state;
    each_fixture(check_words);
}

/* Without a mapping there is an error with the reason, and the parts can still be read. */
static void test_words_are_not_lent(void **state)
{
    (void)state;
    tnf_error e = { 0 };
    tnf_file *f;
    tnf_strings s = TNF_STRINGS_INIT;
    tnf_open_options o = { .size = sizeof o, .access = TNF_ACCESS_PREAD };
    assert_int_equal(tnf_open(&f, TNF_TESTS_DIR "/formats/finalfusion/valid/many.fifu", &o, &e),
                     TNF_OK);
    const tnf_object *vocab = tnf_find(f, "vocab");
    assert_int_equal(tnf_strings_map(&s, vocab, &e), TNF_EUNSUPPORTED);
    assert_non_null(strstr(e.message, "cannot be mapped, only read"));
    free(part_bytes(vocab, "bytes"));
    tnf_close(f);
}

/* Any piece of a part has the same bytes as in the whole. */
static void check_pieces(const tnf_object *o, const char *role)
{
    tnf_error e = { 0 };
    const tnf_part *p = tnf_object_part(o, role);
    uint8_t *whole = part_bytes(o, role), *piece = malloc(p->nbytes + 1);
    uint64_t rng = 1;
    assert_non_null(piece);
    for (int i = 0; i < 400; i++) {
        rng = rng * 6364136223846793005u + 1442695040888963407u;
        uint64_t from = (rng >> 33) % (p->nbytes + 1);
        uint64_t n = (rng >> 13) % (i % 2 ? 40 : p->nbytes + 1);
        n = n < p->nbytes - from ? n : p->nbytes - from;
        if (tnf_read_part(piece, n, p, from, &e) != TNF_OK)
            fail_msg("%s", e.message);
        assert_memory_equal(piece, whole + from, n);
    }
    free(whole);
    free(piece);
}

static void test_pieces_of_words(void **state)
{
    (void)state;
    static const char *const names[] = { "many", "many_ngrams", "odd_words", "long_word" };
    for (size_t i = 0; i < COUNT(names); i++) {
        bytes file = read_fixture(names[i]);
        tnf_file *f = must_open(&file);
        check_pieces(tnf_find(f, "vocab"), "offsets");
        check_pieces(tnf_find(f, "vocab"), "bytes");
        if (tnf_find(f, "ngrams")) {
            check_pieces(tnf_find(f, "ngrams"), "offsets");
            check_pieces(tnf_find(f, "ngrams"), "bytes");
            check_pieces(tnf_find(f, "ngrams.index"), "data");
        }
        tnf_close(f);
        free(file.p);
    }
}

/* A file that changes after it was opened gives an error, not wrong bytes. */
static void test_file_changes(void **state)
{
    (void)state;
    tnf_error e = { 0 };
    bytes file = read_fixture("many");
    tnf_file *f = must_open(&file);
    const tnf_part *text = tnf_object_part(tnf_find(f, "vocab"), "bytes");
    const tnf_part *offsets = tnf_object_part(tnf_find(f, "vocab"), "offsets");
    uint8_t *out = malloc(offsets->nbytes + text->nbytes);
    assert_non_null(out);
    memset(file.p + 45, 0xff, 4000);
    assert_int_equal(tnf_read_part(out, text->nbytes, text, 0, &e), TNF_EFORMAT);
    assert_non_null(strstr(e.message, "changed since it was opened"));
    assert_int_equal(tnf_read_part(out, offsets->nbytes, offsets, 0, &e), TNF_EFORMAT);
    free(out);
    tnf_close(f);
    free(file.p);
}

/* ----------------------------------------------------------- from a builder */

static const float rows[] = { 1, 2, 3, 4, 5, 6 };
static const char text[] = "oneoftwo";
static const uint64_t offsets[] = { 0, 3, 5, 8 };

static void add_strings(tnf_builder *b, const char *name, const void *p, const uint64_t *ends,
                        uint64_t count)
{
    tnf_error e = { 0 };
    tnf_part parts[] = { { .role = "offsets",
                           .type = tnf_type_of(TNF_U64),
                           .memory = to_little(ends, 8, count + 1),
                           .nbytes = (count + 1) * 8,
                           .payload = TNF_MEMORY },
                         { .role = "bytes",
                           .type = tnf_type_of(TNF_U8),
                           .memory = p,
                           .nbytes = ends[count],
                           .payload = TNF_MEMORY } };
    tnf_object o = { .name = { name, strlen(name) },
                     .layout = tnf_layout_by_id("strings/1"),
                     .shape = &count,
                     .rank = 1,
                     .parts = parts,
                     .nparts = 2 };
    if (tnf_builder_add_object(b, &o, NULL, &e) != TNF_OK)
        fail_msg("%s", e.message);
}

static void add_dense(tnf_builder *b, const char *name, tnf_dtype type, uint64_t r, uint64_t c,
                      const void *data)
{
    tnf_error e = { 0 };
    uint64_t shape[] = { r, c };
    data = to_little(data, tnf_type_of(type)->bits / 8, r * (c ? c : 1));
    if (tnf_builder_add(b, name, tnf_type_of(type), c ? 2 : 1, shape, data, &e) != TNF_OK)
        fail_msg("%s", e.message);
}

static void set_attribute(tnf_builder *b, const char *key, tnf_value v)
{
    tnf_error e = { 0 };
    if (tnf_builder_set(b, NULL, key, &v, &e) != TNF_OK)
        fail_msg("%s", e.message);
}

static tnf_builder *new_builder(void)
{
    tnf_error e = { 0 };
    tnf_builder *b;
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    return b;
}

static bytes must_save(tnf_builder *b, const char *const *options)
{
    tnf_error e = { 0 };
    bytes out = { 0 };
    if (save_builder(&out, b, FORMAT, options, &e) != TNF_OK)
        fail_msg("%s", e.message);
    tnf_builder_free(b);
    return out;
}

/* Refused; the first line of the plan contains these words. */
static void check_refused(tnf_builder *b, const char *const *options, const char *words)
{
    tnf_error e = { 0 };
    bytes out = { 0 };
    assert_int_equal(save_builder(&out, b, FORMAT, options, &e), TNF_ELOSSY);
    if (!strstr(e.message, words))
        fail_msg("'%s' is not in: %s", words, e.message);
    free(out.p);
    tnf_builder_free(b);
}

static void test_made_from_nothing(void **state)
{
    (void)state;
    tnf_builder *b = new_builder();
    add_dense(b, "embeddings", TNF_F32, 3, 2, rows);
    add_strings(b, "vocab", text, offsets, 3);
    bytes file = must_save(b, NULL);
    tnf_file *f = must_open(&file);
    const tnf_value *kind = tnf_value_get(tnf_file_info(f)->attrs, "finalfusion.vocab");
    assert_string_equal(kind->as.s, "simple");
    assert_string_equal(tnf_at(f, 0)->name.p, "vocab");
    uint8_t *got = part_bytes(tnf_find(f, "embeddings"), "data");
    assert_memory_equal(got, to_little(rows, 4, 6), sizeof rows);
    free(got);
    tnf_close(f);
    free(file.p);
}

/* n-grams without indices have one row each; without lengths there is no explicit vocabulary. */
static void test_ngrams_made_from_nothing(void **state)
{
    (void)state;
    static const uint64_t one[] = { 0, 3 };
    tnf_builder *b = new_builder();
    add_dense(b, "embeddings", TNF_F32, 1, 2, rows);
    add_strings(b, "vocab", text, one, 1);
    add_strings(b, "ngrams", text, offsets, 2);
    check_refused(b, NULL, "only an explicit vocabulary has n-grams");
    b = new_builder();
    add_dense(b, "embeddings", TNF_F32, 3, 2, rows);
    add_strings(b, "vocab", text, one, 1);
    add_strings(b, "ngrams", text, offsets, 2);
    set_attribute(b, "finalfusion.min_n", tnf_value_uint(2));
    set_attribute(b, "finalfusion.max_n", tnf_value_uint(3));
    bytes file = must_save(b, NULL);
    tnf_file *f = must_open(&file);
    assert_int_equal(tnf_file_info(f)->nwarnings, 0);
    uint8_t *index = part_bytes(tnf_find(f, "ngrams.index"), "data");
    assert_int_equal(number_at(index, 8), 0);
    assert_int_equal(number_at(index + 8, 8), 1);
    free(index);
    tnf_close(f);
    free(file.p);
}

static void test_what_does_not_fit(void **state)
{
    (void)state;
    static const double wide[] = { 1, 2, 3 };
    static const char latin[] = "one\351ftwo", split[] = "\303\274efetwo";
    static const uint64_t through[] = { 0, 1, 5, 8 };
    tnf_builder *b = new_builder();
    add_dense(b, "w", TNF_F32, 3, 2, rows);
    check_refused(b, NULL, "holds only embeddings, vocab, norms and ngrams");
    b = new_builder();
    add_dense(b, "embeddings", TNF_F64, 3, 1, wide);
    add_strings(b, "vocab", text, offsets, 3);
    check_refused(b, NULL, "read only f32: -o dialect=seed keeps it");
    b = new_builder();
    add_dense(b, "embeddings", TNF_F32, 2, 2, rows);
    add_strings(b, "vocab", text, offsets, 3);
    check_refused(b, NULL, "is not the number of words");
    b = new_builder();
    add_dense(b, "embeddings", TNF_F32, 3, 2, rows);
    add_strings(b, "vocab", latin, offsets, 3);
    check_refused(b, NULL, "not UTF-8");
    b = new_builder();
    add_dense(b, "embeddings", TNF_F32, 3, 2, rows);
    add_strings(b, "vocab", split, through, 3); /* valid text as a whole, but a character is cut */
    check_refused(b, NULL, "not UTF-8");
    b = new_builder();
    add_dense(b, "embeddings", TNF_F32, 3, 2, rows);
    add_strings(b, "vocab", text, offsets, 3);
    add_dense(b, "norms", TNF_F32, 2, 0, rows);
    check_refused(b, NULL, "the number of norms differs from that of the words");
    b = new_builder();
    add_dense(b, "embeddings", TNF_F32, 3, 2, rows);
    check_refused(b, seed_option, "need a vocabulary before the matrix");
    b = new_builder();
    add_dense(b, "embeddings", TNF_F32, 3, 2, rows);
    add_strings(b, "vocab", text, offsets, 3);
    set_attribute(b, "finalfusion.vocab", tnf_value_string("bucket")); /* not how many */
    check_refused(b, NULL, "saved as simple");
}

static void test_any_type_in_the_document(void **state)
{
    (void)state;
    static const double wide[] = { 1, 2, 3 };
    tnf_builder *b = new_builder();
    add_dense(b, "embeddings", TNF_F64, 3, 1, wide);
    add_strings(b, "vocab", text, offsets, 3);
    bytes file = must_save(b, seed_option);
    tnf_file *f = must_open(&file);
    const tnf_object *o = tnf_find(f, "embeddings");
    assert_string_equal(o->parts[0].type->id, "f64");
    assert_int_equal(o->parts[0].offset % 8, 0);
    tnf_close(f);
    free(file.p);
}

/* Foreign attributes are restored from a table at the end of the metadata. */
static void test_attributes_of_strangers(void **state)
{
    (void)state;
    tnf_error e = { 0 };
    tnf_value of = tnf_value_string("\x7f\"\\\n\xc3\xbc");
    tnf_builder *b = new_builder();
    add_dense(b, "embeddings", TNF_F32, 3, 2, rows);
    add_strings(b, "vocab", text, offsets, 3);
    set_attribute(b, "finalfusion.metadata",
                  tnf_value_string("a = 1")); /* no line feed at its end */
    set_attribute(b, "some.text", of);
    set_attribute(b, "some.number", tnf_value_uint(UINT64_MAX));
    set_attribute(b, "finalfusion.min_n",
                  tnf_value_uint(3)); /* a simple vocabulary has no such field */
    assert_int_equal(tnf_builder_set(b, "embeddings", "some.thing", &of, &e), TNF_OK);
    bytes file = must_save(b, NULL);
    tnf_file *f = must_open(&file);
    const tnf_value *attrs = tnf_file_info(f)->attrs;
    assert_string_equal(tnf_value_get(attrs, "finalfusion.metadata")->as.s, "a = 1");
    assert_string_equal(tnf_value_get(attrs, "some.text")->as.s, of.as.s);
    assert_true(tnf_value_get(attrs, "some.number")->as.u == UINT64_MAX);
    assert_int_equal(tnf_value_get(attrs, "finalfusion.min_n")->as.u, 3);
    const tnf_object *o = tnf_find(f, "embeddings");
    assert_string_equal(tnf_value_get(o->attrs, "some.thing")->as.s, of.as.s);
    bytes again = save_file(f, FORMAT, NULL);
    assert_same_bytes(&again, &file, "with attributes");
    free(again.p);
    tnf_close(f);
    free(file.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_as_the_tools_write_them),
        cmocka_unit_test(test_bytes_as_the_document_says),
        cmocka_unit_test(test_what_is_put_right),
        cmocka_unit_test(test_words_are_lent),
        cmocka_unit_test(test_words_are_not_lent),
        cmocka_unit_test(test_pieces_of_words),
        cmocka_unit_test(test_file_changes),
        cmocka_unit_test(test_made_from_nothing),
        cmocka_unit_test(test_ngrams_made_from_nothing),
        cmocka_unit_test(test_what_does_not_fit),
        cmocka_unit_test(test_any_type_in_the_document),
        cmocka_unit_test(test_attributes_of_strangers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
