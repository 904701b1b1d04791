/* SPDX-License-Identifier: MIT */
/* Two files are the same if and only if their content hashes are the same. Every fixture is
 * compared with itself, with all others of its format, and with its conversion to every other
 * format; under a sanitizer with a third of them. */
#include "support/model.h"
#include <tenfold/diff.h>

struct opened {
    tnf_file *file;
    uint8_t hash[32];
    bool hashed;
};

static unsigned compared, same;

static tnf_diff_result diff_of(const struct opened *a, const struct opened *b, tnf_status *status)
{
    tnf_error error = { 0 };
    tnf_diff_result r = TNF_DIFF_RESULT_INIT;
    tnf_diff_options o = { .size = sizeof o, .threads = 1 };
    *status = tnf_diff(&r, a->file, b->file, &o, &error);
    check_error(*status, &error);
    return r;
}

static void check_pair(const struct opened *a, const struct opened *b)
{
    tnf_status status;
    bool equal = memcmp(a->hash, b->hash, sizeof a->hash) == 0;
    tnf_diff_result r = diff_of(a, b, &status);
    compared++;
    if (!CHECK(status == TNF_OK, "%s", tnf_status_name(status)))
        return;
    same += r.same;
    CHECK(r.same == equal, "%s by their values, %s by their hashes", r.same ? "same" : "different",
          equal ? "same" : "different");
    CHECK(!r.same || r.only_a + r.only_b + r.different + r.attributes + r.extras == 0,
          "the same, but something is counted");
}

static void hash_it(struct opened *o)
{
    tnf_hash_options one = { .size = sizeof one, .threads = 1 };
    o->hashed = tnf_content_hash(o->hash, o->file, &one, NULL) == TNF_OK;
}

static void check_as(const struct opened *a, const char *format)
{
    tnf_error error = { 0 };
    tnf_status status;
    tnf_source *source;
    struct opened b = { 0 };
    tnf_open_options lenient = { .size = sizeof lenient, .lenient = true };
    tnf_sink *sink = save_bytes(a->file, format, false, &status, &error);
    if (!sink)
        return;
    tnf_str bytes = tnf_sink_bytes(sink);
    lenient.format = format;
    MUST(tnf_source_memory(&source, bytes.p, bytes.n, NULL) == TNF_OK);
    if (tnf_open_source(&b.file, source, &lenient, NULL) == TNF_OK) {
        hash_it(&b);
        if (b.hashed)
            check_pair(a, &b);
        tnf_close(b.file);
    }
    tnf_sink_close(sink);
}

static bool one_format(const struct fixture *a, const struct fixture *b)
{
    const char *slash = strchr(a->label, '/');
    return slash && strncmp(a->label, b->label, (size_t)(slash - a->label) + 1) == 0;
}

int main(void)
{
    fixtures_find(TNF_TESTS_DIR "/formats", "/valid/");
    struct opened *all = calloc(fixtures.n, sizeof *all);
    MUST(all != NULL && fixtures.n > 0);
    tnf_open_options lenient = { .size = sizeof lenient, .lenient = true };
    for (size_t i = 0; i < fixtures.n; i++)
        if (tnf_open(&all[i].file, fixtures.list[i].path, &lenient, NULL) == TNF_OK)
            hash_it(&all[i]);
    for (size_t i = 0; i < fixtures.n; i++) {
        const char *format;
        for (size_t k = i; all[i].hashed && k < fixtures.n; k++) {
            if (!all[k].hashed || !one_format(&fixtures.list[i], &fixtures.list[k]))
                continue;
            if ((k - i) % check_share(3) != 0)
                continue;
            check_doing("%s, %s", fixtures.list[i].label, fixtures.list[k].label);
            check_pair(&all[i], &all[k]);
        }
        for (size_t k = i % check_share(3); all[i].hashed && (format = writable_format(k));
             k += check_share(3)) {
            check_doing("%s as %s", fixtures.list[i].label, format);
            check_as(&all[i], format);
        }
    }
    printf("%u pairs, %u of them the same\n", compared, same);
    for (size_t i = 0; i < fixtures.n; i++)
        tnf_close(all[i].file);
    free(all);
    return check_end("diffs");
}
