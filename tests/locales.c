/* SPDX-License-Identifier: MIT */
/* The library in a program that sets a locale. Texts, files and hashes are the same in all of
 * them, although printf(), strtod() and tolower() follow the locale. localedef makes the locales;
 * the tests are skipped if it is missing. */
#include "support/unit.h"

#include "support/files.h"
#include "wire/pickle.h"
#include <locale.h>
#include <tenfold/convert.h>
#include <tenfold/jobs.h>

enum { PARTS = 2 };

static char path_a[4096], path_b[4096];

/* Makes a locale and sets it. */
static void enter_locale(const char *name)
{
    char command[4096];
    snprintf(command, sizeof command,
             "localedef -i %.20s -f UTF-8 '%.2000s/%.20s.UTF-8' >'%.1000s/localedef.log' 2>&1",
             name, files_temp(), name, files_temp());
    (void)!system(command); /* a warning is not success, either */
    assert_int_equal(setenv("LOCPATH", files_temp(), 1), 0);
    snprintf(command, sizeof command, "%.20s.UTF-8", name);
    if (!setlocale(LC_ALL, command))
        skip();
}

static void save_words(char path[4096], const char *name, const char *text)
{
    tnf_error e;
    tnf_source *source;
    tnf_file *file;
    tnf_report *report;
    snprintf(path, 4096, "%s/%s", files_temp(), name);
    assert_ok(tnf_source_memory(&source, text, strlen(text), &e));
    assert_ok(tnf_open_source(&file, source, NULL, &e));
    const tnf_file *const files[] = { file };
    assert_ok(tnf_convert(&report, files, 1, path, NULL, &e));
    tnf_report_free(report);
    tnf_close(file);
}

static int set_up(void **state)
{
    (void)state;
    save_words(path_a, "a.zt", "3 2\na 1 0.3\nb 0.1 0.7\nc 0.9 0.6\n");
    save_words(path_b, "b.zt", "3 2\na 1 0.3\nb 0.1 0.72\nc 0.5 0.6\n");
    return 0;
}

static int leave_locale(void **state)
{
    (void)state;
    setlocale(LC_ALL, "C");
    return unsetenv("LOCPATH");
}

static char *copy_text(tnf_str text)
{
    char *copy = strndup(text.p, text.n);
    assert_non_null(copy);
    return copy;
}

static tnf_job *make_plan(const char *kind)
{
    static const char *const inputs[] = { path_a, path_b }, *const words[] = { "a" };
    tnf_job_options how = TNF_JOB_INIT;
    tnf_error e;
    tnf_job *job;
    how.job = kind;
    how.inputs = inputs;
    how.ninputs = strcmp(kind, "diff") == 0 ? 2 : 1;
    how.parts = PARTS;
    how.numeric = how.ninputs == 2;
    how.rtol = how.numeric ? 0.1 : 0;
    how.queries = words;
    how.nqueries = strcmp(kind, "similar") == 0;
    assert_ok(tnf_job_plan(&job, &how, &e));
    return job;
}

static char *do_plan(tnf_job *job)
{
    tnf_job_how how = TNF_JOB_HOW_INIT;
    tnf_str receipts[PARTS], result;
    char *copies[PARTS];
    tnf_error e;
    for (size_t i = 0; i < PARTS; i++) {
        assert_ok(tnf_job_part(&result, job, i, NULL, &e));
        assert_int_equal(result.p[result.n], 0);
        copies[i] = copy_text(result);
        receipts[i] = (tnf_str) { copies[i], result.n };
    }
    how.receipts = receipts;
    how.nreceipts = PARTS;
    assert_ok(tnf_job_finish(&result, job, &how, &e));
    assert_int_equal(result.p[result.n], 0);
    for (size_t i = 0; i < PARTS; i++)
        free(copies[i]);
    return copy_text(result);
}

static void jobs_are_the_same(void **state)
{
    static const char *const kinds[] = { "stat", "diff", "similar" };
    char *plans[3], *results[3], *result;
    tnf_error e;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tnf_job *job = make_plan(kinds[i]);
        tnf_str text = tnf_job_text(job);
        assert_int_equal(text.p[text.n], 0);
        plans[i] = copy_text(text);
        results[i] = do_plan(job);
        tnf_job_free(job);
    }
    enter_locale("de_DE");
    for (size_t i = 0; i < 3; i++) {
        tnf_job *job = make_plan(kinds[i]), *parsed;
        assert_string_equal(tnf_job_text(job).p, plans[i]);
        result = do_plan(job);
        assert_string_equal(result, results[i]);
        free(result);
        assert_ok(tnf_job_parse(&parsed, plans[i], strlen(plans[i]), &e));
        assert_string_equal(tnf_job_text(parsed).p, plans[i]);
        tnf_job_free(parsed);
        tnf_job_free(job);
        free(plans[i]);
        free(results[i]);
    }
}

static void hash_fixture(uint8_t hash[32], const struct fixture *f)
{
    tnf_open_options how = TNF_OPEN_INIT;
    tnf_error e;
    tnf_source *source;
    tnf_file *file;
    how.lenient = true;
    memset(hash, 0, 32);
    assert_ok(tnf_source_memory(&source, f->file.p, f->file.n, &e));
    assert_ok(tnf_open_source(&file, source, &how, &e));
    tnf_status status = tnf_content_hash(hash, file, NULL, &e);
    if (status != TNF_OK)
        memcpy(hash, &status, sizeof status);
    tnf_close(file);
}

/* With all attributes, some of which the readers print from numbers. */
static void files_are_the_same(void **state)
{
    (void)state;
    fixtures_valid();
    uint8_t(*hashes)[32] = calloc(fixtures.n, sizeof *hashes), again[32];
    assert_non_null(hashes);
    for (size_t i = 0; i < fixtures.n; i++)
        if (fixtures.list[i].format)
            hash_fixture(hashes[i], &fixtures.list[i]);
    enter_locale("de_DE");
    for (size_t i = 0; i < fixtures.n; i++) {
        if (!fixtures.list[i].format)
            continue;
        hash_fixture(again, &fixtures.list[i]);
        if (memcmp(again, hashes[i], sizeof again) != 0)
            print_message("%s\n", fixtures.list[i].label);
        assert_memory_equal(again, hashes[i], sizeof again);
    }
    free(hashes);
}

/* The metadata of finalfusion has numbers of the model as text. */
static struct bytes convert_model(void)
{
    tnf_save_options save = TNF_SAVE_INIT;
    tnf_convert_options how = TNF_CONVERT_INIT;
    tnf_report *report;
    tnf_error e;
    tnf_sink *sink;
    assert_ok(tnf_sink_memory(&sink, &e));
    save.format = "finalfusion";
    save.allow_loss = true;
    how.save = &save;
    how.sink = sink;
    assert_ok(tnf_convert_path(&report, TNF_TESTS_DIR "/formats/fasttext/valid/skipgram.bin", NULL,
                               NULL, &how, &e));
    tnf_report_free(report);
    tnf_str made = tnf_sink_bytes(sink);
    struct bytes copy = { malloc(made.n + 1), made.n };
    assert_non_null(copy.p);
    memcpy(copy.p, made.p, made.n);
    tnf_sink_close(sink);
    return copy;
}

static void written_files_are_the_same(void **state)
{
    (void)state;
    struct bytes plain = convert_model();
    enter_locale("de_DE");
    struct bytes local = convert_model();
    assert_int_equal(plain.n, local.n);
    assert_memory_equal(plain.p, local.p, plain.n);
    free(plain.p);
    free(local.p);
}

/* Floats in pickles of protocol 0 are text; all of them are shown as text. */
static void pickles_are_the_same(void **state)
{
    static const char pickle[] = "(F-1.5\nF2.5e-7\nFinf\nt.";
    const tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_error e;
    tnf_arena arena;
    tnf_pickle p;
    char shown[64];
    (void)state;
    enter_locale("de_DE");
    tnf_arena_init(&arena, &alloc, 1 << 20);
    assert_ok(tnf_pickle_read(&p, pickle, sizeof pickle - 1, 0, &arena, &e));
    tnf_pickle_show(shown, sizeof shown, p.root);
    assert_string_equal(shown, "(-1.5, 2.5e-07, inf)");
    tnf_arena_free(&arena);
}

/* In Turkish, the lower-case letter of I is not i. */
static void letters_are_the_same(void **state)
{
    static const char *const names[] = { "I32", "INT8", "torch.INT64", "TORCH.bit", "U8" };
    tnf_format_info info = TNF_FORMAT_INFO_INIT;
    tnf_error e;
    (void)state;
    enter_locale("tr_TR");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_non_null(tnf_type_spelled(names[i]));
    assert_ok(tnf_format_for_path(&info, "WORDS.FIFU", &e));
    assert_string_equal(info.name, "finalfusion");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(jobs_are_the_same, leave_locale),
        cmocka_unit_test_teardown(files_are_the_same, leave_locale),
        cmocka_unit_test_teardown(written_files_are_the_same, leave_locale),
        cmocka_unit_test_teardown(pickles_are_the_same, leave_locale),
        cmocka_unit_test_teardown(letters_are_the_same, leave_locale),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
