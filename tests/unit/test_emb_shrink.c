/* SPDX-License-Identifier: MIT */
/* Embeddings whose file is truncated after it was opened: functions that return copies return them,
 * or an error, and never cause a signal. Functions over all rows use the mapped file, unless it was
 * opened for pread. */
#include "../support/files.h"
#include "emb_files.h"

#define WORDS 8000u
#define GRAMS 2000u
#define ROWS  (WORDS + GRAMS)
#define DIMS  32u

static char words[WORDS * 8], grams[GRAMS * 8], path[340];
static float values[ROWS * DIMS], norms[WORDS], row_norms[ROWS], codebooks[16 * DIMS];
static double wide[ROWS * DIMS];
static uint16_t halves[ROWS * DIMS];
static uint8_t small[ROWS * DIMS], codes[ROWS * 8];

static int fill_values(void **state)
{
    (void)state;
    size_t at = 0;
    for (unsigned i = 0; i < WORDS; i++)
        at += (size_t)snprintf(words + at, sizeof words - at, i ? "|w%u" : "w%u", i);
    at = 0;
    for (unsigned i = 0; i < GRAMS; i++)
        at += (size_t)snprintf(grams + at, sizeof grams - at, i ? "|<%02x" : "<%02x", i);
    for (size_t i = 0; i < (size_t)ROWS * DIMS; i++) {
        values[i] = (float)(i % 1000) - 500;
        wide[i] = values[i];
        halves[i] = (uint16_t)(0x3c00 + i % 512);
        small[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (uint8_t)(i * 7 % 16);
    for (unsigned i = 0; i < 16 * DIMS; i++)
        codebooks[i] = (float)i;
    for (unsigned i = 0; i < ROWS; i++)
        row_norms[i] = 1 + (float)i;
    for (unsigned i = 0; i < WORDS; i++)
        norms[i] = 1;
    snprintf(path, sizeof path, "%s/cut", files_temp());
    return 0;
}

static void write_made(const struct made *m)
{
    tnf_sink *sink = make_bytes(m);
    tnf_str bytes = tnf_sink_bytes(sink);
    bytes_to_file(path, bytes.p, bytes.n);
    tnf_sink_close(sink);
}

static const tnf_str asked[] = { { "w0", 2 }, { "w7999", 5 }, { "<17", 3 }, { "xyz", 3 } };
#define ASKED (sizeof asked / sizeof *asked)

/* The results with the complete file, to compare with. */
struct said {
    float *rows;
    float vectors[ASKED * DIMS];
    tnf_emb_found found[ASKED];
};

/* Calls all functions that return copies. Returns the number of rows that can still be read. */
static unsigned ask_copies(const tnf_emb *emb, const struct said *whole, bool cut)
{
    tnf_error e;
    unsigned there = 0;
    float row[DIMS], vectors[ASKED * DIMS];
    tnf_emb_found found[ASKED];
    for (unsigned i = 0; i < ROWS; i += 37) {
        tnf_status status = tnf_emb_row(row, emb, i, &e);
        assert_true(status == TNF_OK || (cut && status == TNF_ETRUNCATED));
        if (status == TNF_OK)
            assert_memory_equal(row, whole->rows + (size_t)i * DIMS, sizeof row);
        there += status == TNF_OK;
    }
    for (unsigned i = 0; i < ASKED; i++) {
        tnf_status status = tnf_emb_vectors(vectors, found, emb, &asked[i], 1, &e);
        assert_true(status == TNF_OK || (cut && status == TNF_ETRUNCATED));
        if (status == TNF_OK)
            assert_memory_equal(vectors, whole->vectors + (size_t)i * DIMS, sizeof row);
        assert_true(tnf_emb_find(emb, asked[i]) == whole->found[i].row); /* words are in memory */
    }
    tnf_str last = tnf_emb_word(emb, WORDS - 1);
    assert_int_equal(last.n, 5);
    assert_memory_equal(last.p, "w7999", 5);
    return there;
}

/* Searching, and functions over all rows, if nothing is mapped. */
static void ask_all(const tnf_emb *emb)
{
    tnf_error e;
    tnf_emb_hit hits[ASKED * 3];
    size_t counts[ASKED];
    tnf_emb_query query = { .size = sizeof query, .k = 3 };
    tnf_status status = tnf_emb_similar(hits, counts, NULL, emb, asked, ASKED, &query, &e);
    assert_true(status == TNF_OK || status == TNF_ETRUNCATED);
    status = tnf_emb_analogy(hits, counts, NULL, emb, asked, 1, &query, &e);
    assert_true(status == TNF_OK || status == TNF_ETRUNCATED);
    float some[DIMS] = { 1 };
    status = tnf_emb_nearest(hits, counts, emb, some, 1, &query, &e);
    assert_true(status == TNF_OK || status == TNF_ETRUNCATED);
}

static void learn_whole(const tnf_emb *emb, struct said *whole)
{
    tnf_error e;
    whole->rows = malloc(sizeof values);
    assert_non_null(whole->rows);
    for (unsigned i = 0; i < ROWS; i++)
        assert_ok(tnf_emb_row(whole->rows + (size_t)i * DIMS, emb, i, &e));
    assert_ok(tnf_emb_vectors(whole->vectors, whole->found, emb, asked, ASKED, &e));
}

static void cut_to(const struct made *m, tnf_access access, unsigned percent)
{
    tnf_error e;
    tnf_file *file;
    tnf_emb *emb, *late;
    struct stat st;
    struct said whole;
    tnf_open_options o = { .size = sizeof o, .access = access };
    write_made(m);
    assert_ok(tnf_open(&file, path, &o, &e));
    assert_ok(tnf_emb_open(&emb, file, NULL, &e));
    learn_whole(emb, &whole);
    unsigned all = ask_copies(emb, &whole, false);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 100 * percent), 0);
    unsigned there = ask_copies(emb, &whole, true);
    if (access == TNF_ACCESS_PREAD) {
        assert_int_equal(there, all); /* all rows were read before */
        ask_all(emb);
    } else {
        assert_true(percent ? there <= all : there == 0);
    }
    /* a view of a file that is already cut */
    tnf_status status = tnf_emb_open(&late, file, NULL, &e);
    assert_true(status == TNF_OK || status == TNF_ETRUNCATED);
    if (status == TNF_OK)
        tnf_emb_close(late);
    free(whole.rows);
    tnf_emb_close(emb);
    tnf_close(file);
}

static void each_cut(const struct made *m)
{
    static const unsigned percents[] = { 0, 70, 99 };
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        cut_to(m, TNF_ACCESS_MMAP, percents[i]);
        cut_to(m, TNF_ACCESS_PREAD, percents[i]);
    }
}

static struct made make_dense(tnf_dtype type, const void *p)
{
    return (struct made) { .words = words,
                           .ngrams = grams,
                           .rows = ROWS,
                           .dims = DIMS,
                           .type = tnf_type_of(type),
                           .values = p,
                           .norms = norms,
                           .vocab = "explicit",
                           .min_n = 3,
                           .max_n = 3 };
}

static void dense_rows(void **state)
{
    (void)state;
    struct made kinds[] = { make_dense(TNF_F32, values), make_dense(TNF_F16, halves),
                            make_dense(TNF_BF16, halves), make_dense(TNF_F64, wide),
                            make_dense(TNF_U8, small) };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        each_cut(&kinds[i]);
}

static void quantized_rows(void **state)
{
    (void)state;
    struct made m = { .words = words,
                      .rows = ROWS,
                      .dims = DIMS,
                      .codes = codes,
                      .m = 8,
                      .k = 16,
                      .codebooks = codebooks,
                      .row_norms = row_norms };
    each_cut(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_rows),
        cmocka_unit_test(quantized_rows),
    };
    return cmocka_run_group_tests(tests, fill_values, NULL);
}
