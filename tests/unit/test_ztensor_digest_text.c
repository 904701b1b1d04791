/* SPDX-License-Identifier: MIT */
/* Digests as text. The numbers are published check values of CRC-32C and SHA-256. */
#include "../support/unit.h"

#include "formats/ztensor_old/digest_text.h"

#define SHA "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const struct {
    const char *text;
    bool big_x;
    tnf_zt_digest_kind kind;
    const char *again; /* how it is written; NULL if it is unknown */
} cases[] = {
    { "crc32c:0xE3069283", false, TNF_ZT_DIGEST_KNOWN, "crc32c:0xE3069283" },
    { "crc32c:0xe3069283", false, TNF_ZT_DIGEST_KNOWN, "crc32c:0xE3069283" },
    { "crc32c:0x+E3069283", false, TNF_ZT_DIGEST_KNOWN, "crc32c:0xE3069283" },
    { "crc32c:0x00000000E3069283", false, TNF_ZT_DIGEST_KNOWN, "crc32c:0xE3069283" },
    { "crc32c:0x7", false, TNF_ZT_DIGEST_KNOWN, "crc32c:0x00000007" },
    { "crc32c:0XE3069283", true, TNF_ZT_DIGEST_KNOWN, "crc32c:0xE3069283" },
    { "crc32c:0XE3069283", false, TNF_ZT_DIGEST_UNKNOWN, NULL },
    { "crc32c:E3069283", true, TNF_ZT_DIGEST_UNKNOWN, NULL },
    { "crc32c:", false, TNF_ZT_DIGEST_UNKNOWN, NULL },
    { "CRC32C:0xE3069283", false, TNF_ZT_DIGEST_UNKNOWN, NULL },
    { "crc32c:0x", false, TNF_ZT_DIGEST_BROKEN, NULL },
    { "crc32c:0x+", false, TNF_ZT_DIGEST_BROKEN, NULL },
    { "crc32c:0x-1", false, TNF_ZT_DIGEST_BROKEN, NULL },
    { "crc32c:0xE306928G", false, TNF_ZT_DIGEST_BROKEN, NULL },
    { "crc32c:0x1E3069283", false, TNF_ZT_DIGEST_BROKEN, NULL },
    { "crc32c:0x E3069283", false, TNF_ZT_DIGEST_BROKEN, NULL },
    { "sha256:" SHA, false, TNF_ZT_DIGEST_KNOWN, "sha256:" SHA },
    { "sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855", false,
      TNF_ZT_DIGEST_KNOWN, "sha256:" SHA },
    { "sha256:" SHA "0", false, TNF_ZT_DIGEST_UNKNOWN, NULL },
    { "sha256:", false, TNF_ZT_DIGEST_UNKNOWN, NULL },
    { "sha256:zzb0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", false,
      TNF_ZT_DIGEST_UNKNOWN, NULL },
    { "", false, TNF_ZT_DIGEST_UNKNOWN, NULL },
    { "md5:00", false, TNF_ZT_DIGEST_UNKNOWN, NULL },
};

static void texts_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_arena arena;
        tnf_allocator alloc = tnf_allocator_or_default(NULL);
        tnf_error e;
        const tnf_digest *d = NULL;
        tnf_zt_digest_kind kind;
        char text[TNF_ZT_DIGEST_TEXT];
        tnf_arena_init(&arena, &alloc, 1 << 20);
        tnf_str given = { cases[i].text, strlen(cases[i].text) };
        assert_ok(tnf_zt_digest_read(&d, &kind, given, cases[i].big_x, &arena, &e));
        if (kind != cases[i].kind)
            fail_msg("%s: %d", cases[i].text, kind);
        assert_string_equal(d->text.p, cases[i].text);
        assert_int_equal(d->text.n, given.n);
        assert_true(d->of_stored);
        assert_int_equal(d->algorithm != NULL, cases[i].again != NULL);
        if (d->algorithm) {
            tnf_zt_digest_text(text, d->algorithm, d->bytes);
            assert_string_equal(text, cases[i].again);
        }
        tnf_arena_free(&arena);
    }
}

static void bytes_as_hex_is_read(void **state)
{
    (void)state;
    tnf_arena arena;
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    tnf_error e;
    const tnf_digest *d;
    tnf_zt_digest_kind kind;
    tnf_arena_init(&arena, &alloc, 1 << 20);
    assert_ok(
        tnf_zt_digest_read(&d, &kind, (tnf_str) { "crc32c:0xE3069283", 17 }, false, &arena, &e));
    assert_int_equal(d->n, 4);
    assert_memory_equal(d->bytes, "\xE3\x06\x92\x83", 4);
    tnf_arena_free(&arena);
    tnf_arena_init(&arena, &alloc, 1);
    assert_fails(tnf_zt_digest_read(&d, &kind, (tnf_str) { "", 0 }, false, &arena, &e), TNF_ELIMIT);
    tnf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(bytes_as_hex_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
