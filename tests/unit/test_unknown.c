/* SPDX-License-Identifier: MIT */
/* The message for an unknown format names the kind of the file and what to do instead. */
#include "../support/unit.h"
#include "core/core.h"

static tnf_status tell_unknown(const char *bytes, size_t n, tnf_error *e)
{
    uint8_t *exact = malloc(n ? n : 1); /* ends where its memory ends */
    memcpy(exact, bytes, n);
    tnf_probe p = { .head = exact, .tail = exact, .nhead = n, .ntail = n, .size = n, .ext = "" };
    tnf_status status = tnf_unknown_file(&p, e);
    free(exact);
    return status;
}

#define ZEROS8     "\0\0\0\0\0\0\0\0"
#define ZEROS56    ZEROS8 ZEROS8 ZEROS8 ZEROS8 ZEROS8 ZEROS8 ZEROS8

#define CASE(text) text, sizeof text - 1

static void every_kind(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        tnf_status status;
        const char *says;
    } cases[] = {
        { CASE(""), TNF_ETRUNCATED, "empty" },
        { CASE("abc"), TNF_ETRUNCATED, "3 bytes" },
        { CASE("GGUF\3\0\0\0\0\0"), TNF_EUNSUPPORTED, "GGUF" },
        { CASE("PK\3\4..........."), TNF_EUNSUPPORTED, "ZIP" },
        { CASE("\x1f\x8b\x08\0\0\0\0\0\0"), TNF_EUNSUPPORTED, "gunzip" },
        { CASE("\x28\xb5\x2f\xfd\0\0\0\0\0"), TNF_EUNSUPPORTED, "unzstd" },
        { CASE("\xfd\x37zXZ\0\0\0\0"), TNF_EUNSUPPORTED, "unxz" },
        { CASE("BZh91AY&SY"), TNF_EUNSUPPORTED, "bunzip2" },
        { CASE("\x93NUMPY\1\0v\0{"), TNF_EUNSUPPORTED, "NumPy" },
        { CASE("\x89HDF\r\n\x1a\n\0\0"), TNF_EUNSUPPORTED, "HDF5" },
        { CASE("\x80\2}q\0.......l"), TNF_EUNSUPPORTED, "pickle" },
        { CASE("<!DOCTYPE html><html><head>"), TNF_EFORMAT, "HTML" },
        { CASE("\r\n  <HTML lang=en>....."), TNF_EFORMAT, "HTML" },
        { CASE("<?xml version=\"1.0\"?><Error><Code>AccessDenied"), TNF_EFORMAT, "XML" },
        { CASE("{\"error\":\"Repository not found\"}"), TNF_EFORMAT, "JSON" },
        { CASE(" [1, 2, 3, 4, 5]"), TNF_EFORMAT, "JSON" },
        { CASE("\x7f\x45LF\2\1\1\0\0\0"), TNF_EFORMAT, "ELF" },
        { CASE("PAR1\x15\x04\x15\0"), TNF_EUNSUPPORTED, "Parquet" },
        { CASE("ARROW1\0\0\0\0"), TNF_EUNSUPPORTED, "Arrow" },
        { CASE("IxFI\0\0\0\0\0"), TNF_EUNSUPPORTED, "faiss" },
        { CASE("IwFl\0\0\0\0\0"), TNF_EUNSUPPORTED, "faiss" },
        { CASE("MATLAB 5.0 MAT-file, Platform"), TNF_EUNSUPPORTED, "MATLAB" },
        { CASE("7767517\n75 83\n"), TNF_EUNSUPPORTED, "ncnn" },
        { CASE("<?xml version=\"1.0\"?>\n<net name=\"x\" version=\"11\">"), TNF_EUNSUPPORTED,
          "OpenVINO" },
        { CASE("\x18\0\0\0ORTM\0\0\0\0"), TNF_EUNSUPPORTED, "ONNX Runtime model (.ort)" },
        { CASE("\1\0\0\0\2\0\0\0" ZEROS56 "\xEF\xBE\xAD\xDE\1\0\0\0"), TNF_EUNSUPPORTED,
          "Core ML model (weight.bin" },
        { CASE("%PDF-1.7\n\n"), TNF_EFORMAT, "PDF" },
        { CASE("\x89PNG\r\n\x1a\n\0\0"), TNF_EFORMAT, "PNG" },
        { CASE("\xff\xfe\x61\0b\0c\0d\0"), TNF_EFORMAT, "UTF-16" },
        { CASE("\0\0\0\0\0\0\0\0\0\0\0\0"), TNF_EFORMAT, "zeros" },
        { CASE("just some words, really"), TNF_EUNSUPPORTED, "unrecognised" },
        { CASE("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff"
               "69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 5368709120\n"),
          TNF_EFORMAT, "5368709120 bytes: run 'git lfs pull'" },
        { CASE("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a"), TNF_EFORMAT,
          "git-LFS pointer" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_error e;
        tnf_status status = tell_unknown(cases[i].bytes, cases[i].n, &e);
        assert_int_equal(status, cases[i].status);
        assert_int_equal(e.status, status);
        assert_says(cases[i].says);
    }
}

/* No beginning of these files causes a read beyond its end, and all give a message. */
static void by_name(void **state)
{
    static const struct {
        const char *head, *ext, *says;
    } cases[] = { { "PK\3\4...........", "task", "MediaPipe bundle" },
                  { "PK\3\4...........", "mlpackage", "Core ML package" },
                  { "no mark at all", "task", "MediaPipe bundle" },
                  { "no mark at all", "ort", "ONNX Runtime" } };
    tnf_error e;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].head);
        const uint8_t *head = (const uint8_t *)cases[i].head;
        tnf_probe p = { .head = head, .tail = head, .nhead = n, .ntail = n, .size = n };
        p.ext = cases[i].ext;
        assert_fails(tnf_unknown_file(&p, &e), TNF_EUNSUPPORTED);
        assert_says(cases[i].says);
    }
    assert_fails(tnf_unknown_folder("a/b.mlpackage/", &e), TNF_EUNSUPPORTED);
    assert_ok(tnf_unknown_folder(".mlpackage", &e));
}

static void cut_anywhere(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 5",
        "<!doctype html>",
        "<?xml version",
        "    \t\n   {\"a\":1}",
        "GGUFGGUF",
        "\x80\x04\x95..."
    };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        for (size_t n = 0; n <= strlen(texts[k]); n++) {
            tnf_error e = { .status = TNF_OK };
            assert_int_not_equal(tell_unknown(texts[k], n, &e), TNF_OK);
            assert_true(e.message[0] != 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_kind), cmocka_unit_test(by_name),
                                        cmocka_unit_test(cut_anywhere) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
