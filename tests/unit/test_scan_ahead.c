/* SPDX-License-Identifier: MIT */
/* Writing while the next rows are decoded: the same bytes, the same errors, and words some of which
 * were kept in memory. */
#include "../support/unit.h"
#include "gptrs_files.h"

#include <stdatomic.h>

#define ROWS 4000u
#define DIMS 400u /* 6.4 MB: enough for a thread, and more than its ring */

/* Row 7 has no word; the words of the second thousand are too long to be kept. */
static size_t word_of(char *out, size_t room, unsigned i)
{
    int n = i == 7 ? 0 : snprintf(out, room, "w%0*u", i / 1000 == 1 ? 100 : 1, i);
    return (size_t)n;
}

static bytes compose_words(void)
{
    bytes b = { 0 };
    add_text(&b, "4000 400\n");
    for (unsigned i = 0; i < ROWS; i++) {
        char word[128];
        uint32_t numbers[DIMS];
        for (unsigned k = 0; k < DIMS; k++)
            numbers[k] = 0x3f800000u + i * DIMS + k;
        add_bytes(&b, word, word_of(word, sizeof word, i));
        add_text(&b, " ");
        add_bytes(&b, numbers, sizeof numbers);
        add_text(&b, "\n");
    }
    return b;
}

struct failing {
    const bytes *b;
    atomic_bool on; /* if true, reads from byte `from` on fail */
    uint64_t from;
};

static tnf_status failing_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct failing *f = ctx;
    if (atomic_load(&f->on) && offset + n > f->from) {
        *e = (tnf_error) { .status = TNF_EIO, .offset = offset, .message = "on purpose" };
        return TNF_EIO;
    }
    memcpy(dst, f->b->p + offset, n);
    return TNF_OK;
}

static tnf_file *open_failing(struct failing *f)
{
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION,
                                        .read_at = failing_read };
    tnf_source *source;
    tnf_file *file;
    tnf_error e = { 0 };
    tnf_open_options o = { .size = sizeof o, .format = "word2vec" };
    assert_ok(tnf_source_custom(&source, &ops, f, f->b->n, &e));
    assert_ok(tnf_open_source(&file, source, &o, &e));
    return file;
}

static void rows_are_the_same(void **state)
{
    (void)state;
    tnf_error e = { 0 };
    bytes b = compose_words();
    struct failing f = { .b = &b };
    tnf_file *file = open_failing(&f), *back;
    bytes fifu = save_file(file, "finalfusion", NULL);
    tnf_source *source;
    assert_ok(tnf_source_memory(&source, fifu.p, fifu.n, &e));
    assert_ok(tnf_open_source(&back, source, NULL, &e));
    bytes again = save_file(back, "word2vec", NULL);
    assert_same_bytes(&again, &b, "word2vec");
    tnf_close(back);
    tnf_close(file);
    free(again.p);
    free(fifu.p);
    free(b.p);
}

/* Any piece of the words, also across the border between kept words and others. */
static void words_are_the_same(void **state)
{
    (void)state;
    tnf_error e = { 0 };
    bytes b = compose_words(), all = { 0 };
    struct failing f = { .b = &b };
    tnf_file *file = open_failing(&f);
    for (unsigned i = 0; i < ROWS; i++) {
        char word[128];
        add_bytes(&all, word, word_of(word, sizeof word, i));
    }
    const tnf_part *part = tnf_object_part(tnf_find(file, "vocab"), "bytes");
    assert_int_equal(part->nbytes, all.n);
    char *got = malloc(all.n);
    assert_non_null(got);
    for (size_t n = 1; n < 2 * all.n; n = n * 3 + 1)
        for (size_t at = 0; at < all.n; at += n < 997 ? 997 : n) {
            size_t some = all.n - at < n ? all.n - at : n;
            assert_ok(tnf_read_part(got, some, part, at, &e));
            assert_memory_equal(got, all.p + at, some);
        }
    free(got);
    tnf_close(file);
    free(all.p);
    free(b.p);
}

static bool go_until(void *ctx, uint64_t done, uint64_t total)
{
    (void)total;
    return done < *(const uint64_t *)ctx;
}

static tnf_status save_until(const tnf_file *file, uint64_t most, tnf_error *e)
{
    tnf_builder *b;
    tnf_sink *sink;
    tnf_save_options o = TNF_SAVE_INIT;
    o.format = "finalfusion";
    o.progress = go_until;
    o.ctx = &most;
    assert_int_equal(tnf_builder_new(&b, NULL, e), TNF_OK);
    assert_int_equal(tnf_builder_add_file(b, file, e), TNF_OK);
    assert_int_equal(tnf_sink_memory(&sink, e), TNF_OK);
    tnf_status status = tnf_save_sink(b, sink, &o, e);
    tnf_sink_close(sink);
    tnf_builder_free(b);
    return status;
}

/* A read fails at any place, or the caller stops: the error is returned, and no thread waits. */
static void failures_are_told(void **state)
{
    (void)state;
    bytes b = compose_words();
    struct failing f = { .b = &b };
    tnf_file *file = open_failing(&f);
    for (uint64_t from = 3000000; from < b.n; from += 700000) {
        tnf_error e = { 0 };
        f.from = from;
        atomic_store(&f.on, true);
        assert_int_equal(save_until(file, UINT64_MAX, &e), TNF_EIO);
        assert_true(e.offset + 2000 > from && e.offset < from + 2000); /* at most a row */
        atomic_store(&f.on, false);
        assert_int_equal(save_until(file, from / 2, &e), TNF_ECANCELLED);
    }
    tnf_error e = { 0 };
    assert_ok(save_until(file, UINT64_MAX, &e));
    tnf_close(file);
    free(b.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_same),
        cmocka_unit_test(words_are_the_same),
        cmocka_unit_test(failures_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
