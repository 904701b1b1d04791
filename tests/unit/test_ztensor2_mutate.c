/* SPDX-License-Identifier: MIT */
/* Mutated manifests of zTensor 2 with a corrected hash: without it the code after the check would
 * never be reached. No crash, no fault that stops `verify`, and files that open can be saved and
 * opened again. TNF_ROUNDS in the environment is the number of rounds. */
#include "../support/unit.h"

#include "base/bytes.h"
#include "base/digest.h"
#include <tenfold/build.h>
#include <tenfold/io.h>

#include <dirent.h>

#define FIXTURES TNF_TESTS_DIR "/formats/ztensor2/"
#define MOST     20000u /* bytes of a fixture */

typedef struct fixture {
    uint8_t *p;
    size_t n;
} fixture;

static fixture list[256];
static size_t count;
static uint64_t seed = 0x9e3779b97f4a7c15;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void load_fixtures(const char *folder)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *d; (d = readdir(dir)) != NULL && count < 256;) {
        char path[512];
        snprintf(path, sizeof path, "%s%s", folder, d->d_name);
        FILE *f = strstr(d->d_name, ".zt") ? fopen(path, "rb") : NULL;
        if (!f)
            continue;
        uint8_t *p = malloc(MOST);
        assert_non_null(p);
        size_t n = fread(p, 1, MOST, f);
        fclose(f);
        if (n >= 4096 && n < MOST)
            list[count++] = (fixture) { p, n };
        else
            free(p);
    }
    closedir(dir);
}

static void put_u64(uint8_t *p, uint64_t v)
{
    tnf_put_le32(p, (uint32_t)v);
    tnf_put_le32(p + 4, (uint32_t)(v >> 32));
}

/* Makes a few changes between the manifest's start and the footer, then corrects the footer. */
static size_t mutate_manifest(uint8_t *out, const fixture *f, const fixture *other)
{
    size_t at = (size_t)tnf_le64(f->p + f->n - 40), end = f->n - 40;
    if (at < 4096 || at >= end)
        at = 4096;
    memcpy(out, f->p, f->n);
    for (unsigned k = 0; k < 1 + next_random() % 4 && end > at; k++) {
        size_t where = at + (size_t)(next_random() % (end - at)),
               n = 1 + (size_t)(next_random() % 8);
        n = n < end - where ? n : end - where;
        switch (next_random() % 5) {
        case 0:
            out[where] ^= (uint8_t)(1u << next_random() % 8);
            break;
        case 1:
            out[where] = (uint8_t)next_random();
            break;
        case 2: /* cut out a piece */
            memmove(out + where, out + where + n, end - where - n);
            end -= n;
            break;
        case 3: /* repeat a piece */
            if (end + n < MOST - 64) {
                memmove(out + where + n, out + where, end - where);
                end += n;
            }
            break;
        default: /* a piece from another place */
            memcpy(out + where, other->p + other->n - 40 - n, n);
        }
    }
    uint8_t hash[TNF_DIGEST_MAX];
    tnf_digester d;
    assert_true(tnf_digest_begin(&d, "xxh3-64"));
    tnf_digest_update(&d, out + at, end - at);
    tnf_digest_end(&d, hash);
    memcpy(out + end, f->p + f->n - 40, 40);
    put_u64(out + end, at);
    put_u64(out + end + 8, end - at);
    put_u64(out + end + 16, tnf_be64(hash));
    return end + 40;
}

static tnf_status open_bytes(tnf_file **file, const void *p, size_t n, bool lenient, tnf_error *e)
{
    tnf_source *source;
    tnf_open_options o = { .size = sizeof o, .lenient = lenient };
    assert_int_equal(tnf_source_memory(&source, p, n, e), TNF_OK);
    return tnf_open_source(file, source, &o, e);
}

static void save_again(const tnf_file *file, bool lenient)
{
    tnf_error e;
    tnf_builder *b;
    tnf_sink *sink;
    tnf_save_options o = { .size = sizeof o, .format = "ztensor2" };
    assert_int_equal(tnf_builder_new(&b, NULL, &e), TNF_OK);
    assert_int_equal(tnf_sink_memory(&sink, &e), TNF_OK);
    if (tnf_builder_add_file(b, file, &e) == TNF_OK && tnf_save_sink(b, sink, &o, &e) == TNF_OK) {
        tnf_file *again;
        tnf_str bytes = tnf_sink_bytes(sink);
        if (open_bytes(&again, bytes.p, bytes.n, lenient, &e) != TNF_OK)
            fail_msg("our own does not open: %s", e.message);
        tnf_close(again);
    }
    tnf_sink_close(sink);
    tnf_builder_free(b);
}

static void mutated_manifests(void **state)
{
    (void)state;
    static uint8_t bytes[MOST];
    const char *given = getenv("TNF_ROUNDS");
    unsigned long rounds = given ? strtoul(given, NULL, 10) : 20000, opened = 0;
    load_fixtures(FIXTURES "valid/");
    load_fixtures(FIXTURES "reject/");
    assert_true(count > 50);
    for (unsigned long i = 0; i < rounds; i++) {
        tnf_error e;
        tnf_file *file;
        tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
        size_t n = mutate_manifest(bytes, &list[next_random() % count],
                                   &list[next_random() % count]);
        for (int lenient = 0; lenient < 2; lenient++) {
            if (open_bytes(&file, bytes, n, lenient, &e) != TNF_OK) {
                assert_true(e.message[0] != 0 && (e.offset <= n || e.offset == TNF_NO_OFFSET));
                continue;
            }
            opened++;
            if (tnf_file_info(file)->payload < 1u << 20) {
                assert_int_equal(tnf_verify(&result, file, NULL, &e), TNF_OK);
                if (i % 16 == 0)
                    save_again(file, lenient); /* faults of the input may remain */
            }
            tnf_close(file);
        }
    }
    assert_true(opened > rounds / 50);
    while (count > 0)
        free(list[--count].p);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(mutated_manifests) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
