/* SPDX-License-Identifier: MIT */
/* The canonical form of zTensor 2 is tested by its purpose: a file is canonical if and only if
 * writing its content gives the same bytes. (tests/formats/ztensor2 checks which difference is
 * reported.) */
#include "../support/files.h"
#include "../support/unit.h"

#include <tenfold/build.h>

static unsigned canonical, other;

static uint64_t count_departures(const tnf_file *file)
{
    tnf_error e;
    tnf_verify_result r = TNF_VERIFY_RESULT_INIT;
    tnf_verify_options o = { .size = sizeof o, .canonical = true };
    assert_ok(tnf_verify(&r, file, &o, &e));
    return r.problems;
}

/* Writes the content of the file; NULL if that cannot be canonical. */
static tnf_sink *rewrite_canonical(const tnf_file *file)
{
    tnf_error e;
    tnf_builder *b;
    tnf_sink *sink;
    tnf_option option = { "canonical", "yes" };
    tnf_save_options o = {
        .size = sizeof o, .format = "ztensor2", .options = &option, .noptions = 1
    };
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_file(b, file, &e));
    assert_ok(tnf_sink_memory(&sink, &e));
    tnf_status status = tnf_save_sink(b, sink, &o, &e);
    tnf_builder_free(b);
    if (status == TNF_OK)
        return sink;
    tnf_sink_close(sink);
    return NULL;
}

static void same_bytes_exactly_then(void **state)
{
    (void)state;
    fixtures_find(TNF_TESTS_DIR "/formats/ztensor2/valid", "/valid/");
    for (size_t i = 0; i < fixtures.n; i++) {
        const struct fixture *f = &fixtures.list[i];
        tnf_error e;
        tnf_file *file;
        assert_ok(tnf_open(&file, f->path, NULL, &e));
        tnf_sink *sink = rewrite_canonical(file);
        tnf_str now = sink ? tnf_sink_bytes(sink) : (tnf_str) { 0 };
        bool same = sink && now.n == f->file.n && memcmp(now.p, f->file.p, now.n) == 0;
        uint64_t told = count_departures(file);
        if (same != (told == 0))
            fail_msg("%s: %llu departures, but the bytes are %s", f->label,
                     (unsigned long long)told, same ? "the same" : "others");
        canonical += same;
        other += !same;
        tnf_sink_close(sink);
        tnf_close(file);
    }
    fixtures_free();
    assert_true(canonical >= 10 && other >= 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_bytes_exactly_then) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
