/* SPDX-License-Identifier: MIT */
/* Writing parts encoded, swapped and digested; digests and comparison without writing. */
#include "../support/encoded.h"
#include "base/digest.h"
#include "core/save/save.h"

struct world {
    tnf_sink *sink;
    tnf_arena scratch;
    struct tnf_save save;
    tnf_writer w;
};

static void begin_world(struct world *w)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    *w = (struct world) { 0 };
    tnf_arena_init(&w->scratch, &a, UINT64_MAX);
    assert_int_equal(tnf_sink_memory(&w->sink, NULL), TNF_OK);
    w->w = (tnf_writer) { .sink = w->sink, .scratch = &w->scratch, .save = &w->save };
}

static void end_world(struct world *w)
{
    tnf_sink_close(w->sink);
    tnf_arena_free(&w->scratch);
}

static tnf_part in_memory(const void *p, uint64_t n, const char *type)
{
    return (tnf_part) { .role = "data",
                        .type = tnf_type_named(type),
                        .memory = p,
                        .stored = n,
                        .nbytes = n,
                        .payload = TNF_MEMORY };
}

static void digest_bytes(const char *algorithm, const void *p, size_t n, uint8_t out[32])
{
    tnf_digester d;
    assert_true(tnf_digest_begin(&d, algorithm));
    tnf_digest_update(&d, p, n);
    tnf_digest_end(&d, out);
}

/* Every way to write 2 MB of f32: the stored bytes are read back as the part, and the digest
 * belongs to the bytes that it describes. */
static void every_way(void **state)
{
    (void)state;
    enum { N = 2000004 };
    uint8_t *plain = malloc(N), *out = malloc(N);
    for (size_t i = 0; i < N; i++)
        plain[i] = (uint8_t)(i * i >> 9);
    tnf_part part = in_memory(plain, N, "f32");
    static const tnf_codec codecs[] = { TNF_CODEC_RAW, TNF_CODEC_ZSTD, TNF_CODEC_ZSTD_SEEKABLE };
    for (int k = 0; k < 3 * 2 * 3; k++) {
        static const char *const digests[] = { NULL, "sha256", "xxh3-64" };
        tnf_error e;
        struct world w;
        tnf_put_done done;
        tnf_put_how how = { .codec = codecs[k % 3],
                            .big_endian = k / 3 % 2,
                            .digest = digests[k / 6],
                            .of_stored = k % 2 };
        begin_world(&w);
        w.save.total = N;
        assert_ok(tnf_put(&w.w, "head", 4, &e));
        assert_ok(tnf_put_part(&w.w, &part, &how, &done, &e));
        assert_ok(tnf_sink_commit(w.sink, &e));
        tnf_str bytes = tnf_sink_bytes(w.sink);
        assert_int_equal(done.offset, 4);
        assert_int_equal(done.stored, bytes.n - 4);
        assert_int_equal(w.save.done, N);
        if (how.codec == TNF_CODEC_RAW)
            assert_int_equal(done.stored, N);
        tnf_source *source;
        assert_ok(tnf_source_memory(&source, bytes.p, bytes.n, &e));
        struct tnf_origin origin = { .source = source };
        tnf_part back = { .role = "data",
                          .type = part.type,
                          .origin = &origin,
                          .offset = 4,
                          .stored = done.stored,
                          .nbytes = N,
                          .codec = (uint8_t)how.codec };
        back.payload = how.codec ? TNF_ENCODED : TNF_AT;
        back.flags = how.big_endian ? TNF_PART_BIG_ENDIAN : 0;
        assert_ok(tnf_read_part(out, N, &back, 0, &e));
        assert_memory_equal(out, plain, N);
        assert_int_equal(done.digest_n, how.digest ? tnf_digest_size(how.digest) : 0);
        if (how.digest) {
            uint8_t want[32];
            digest_bytes(how.digest, how.of_stored ? (const void *)(bytes.p + 4) : plain,
                         how.of_stored ? bytes.n - 4 : N, want);
            assert_memory_equal(done.digest, want, done.digest_n);
        }
        tnf_source_close(source);
        end_world(&w);
    }
    free(plain);
    free(out);
}

static void nothing_at_all(void **state)
{
    (void)state;
    for (int codec = TNF_CODEC_RAW; codec <= TNF_CODEC_ZSTD_SEEKABLE; codec++) {
        tnf_error e;
        struct world w;
        tnf_put_done done;
        tnf_put_how how = { .codec = (tnf_codec)codec, .digest = "sha256" };
        tnf_part part = in_memory(NULL, 0, "u8");
        part.memory = "";
        uint8_t want[32];
        begin_world(&w);
        assert_ok(tnf_put_part(&w.w, &part, &how, &done, &e));
        digest_bytes("sha256", "", 0, want);
        assert_memory_equal(done.digest, want, 32);
        end_world(&w);
    }
}

static bool stop_at_once(void *ctx, uint64_t bytes, uint64_t total)
{
    (void)ctx, (void)bytes, (void)total;
    return false;
}

static void failures_are_told(void **state)
{
    (void)state;
    tnf_error e;
    struct world w;
    tnf_put_done done;
    static uint8_t plain[1000];
    tnf_part part = in_memory(plain, sizeof plain, "u8");
    static const tnf_put_how hows[] = { { .digest = "md6" },
                                        { .codec = (tnf_codec)98 },
                                        { .codec = (tnf_codec)98, .digest = "sha256" },
                                        { .codec = (tnf_codec)99 } };
    begin_world(&w);
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++)
        assert_fails(tnf_put_part(&w.w, &part, &hows[i], &done, &e), TNF_EUNSUPPORTED);
    w.save.options.progress = stop_at_once;
    tnf_put_how zstd = { .codec = TNF_CODEC_ZSTD, .digest = "sha256", .big_endian = true };
    assert_fails(tnf_put_part(&w.w, &part, &zstd, &done, &e), TNF_ECANCELLED);
    w.save.options.progress = NULL;
    part.flags = TNF_PART_UNREADABLE;
    assert_fails(tnf_put_part(&w.w, &part, &zstd, &done, &e), TNF_EUNSUPPORTED);
    end_world(&w);
}

static void digests_of_parts(void **state)
{
    (void)state;
    tnf_error e;
    uint8_t out[32];
    tnf_part part = in_memory("abc", 3, "u8");
    /* the example of FIPS 180-4 */
    static const uint8_t abc[32] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                     0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                     0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                     0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad };
    assert_ok(tnf_part_digest(&part, "sha256", out, &e));
    assert_memory_equal(out, abc, 32);
    assert_fails(tnf_part_digest(&part, "md6", out, &e), TNF_EUNSUPPORTED);
    part.flags = TNF_PART_UNREADABLE;
    assert_fails(tnf_part_digest(&part, "sha256", out, &e), TNF_EUNSUPPORTED);
}

static void compares_parts(void **state)
{
    (void)state;
    enum { N = 1700000 };
    tnf_error e;
    bool equal;
    uint8_t *a = calloc(1, N), *b = calloc(1, N);
    struct encoded x = encoded_bytes(TNF_CODEC_ZSTD, a, N);
    tnf_source *source;
    assert_ok(tnf_source_memory(&source, x.p, x.n, &e));
    struct tnf_origin origin = { .source = source };
    tnf_part p = in_memory(a, N, "u8"), q = in_memory(b, N, "u8"), r = p;
    r.memory = NULL;
    r.payload = TNF_ENCODED;
    r.codec = TNF_CODEC_ZSTD;
    r.origin = &origin;
    r.stored = x.n;
    assert_ok(tnf_parts_equal(&equal, &p, &q, &e));
    assert_true(equal);
    assert_ok(tnf_parts_equal(&equal, &r, &q, &e));
    assert_true(equal);
    assert_ok(tnf_parts_equal(&equal, &q, &r, &e));
    assert_true(equal);
    static const size_t places[] = { 0, 262143, 262144, 786431, 786432, N - 1 };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        b[places[i]] = 1;
        assert_ok(tnf_parts_equal(&equal, &p, &q, &e));
        assert_false(equal);
        assert_ok(tnf_parts_equal(&equal, &q, &r, &e));
        assert_false(equal);
        b[places[i]] = 0;
    }
    q.nbytes--;
    assert_ok(tnf_parts_equal(&equal, &p, &q, &e));
    assert_false(equal);
    p.nbytes = q.nbytes = 0;
    assert_ok(tnf_parts_equal(&equal, &p, &q, &e));
    assert_true(equal);
    q.nbytes = p.nbytes = N;
    q.flags = TNF_PART_UNREADABLE;
    assert_fails(tnf_parts_equal(&equal, &p, &q, &e), TNF_EUNSUPPORTED);
    assert_fails(tnf_parts_equal(&equal, &q, &p, &e), TNF_EUNSUPPORTED);
    tnf_source_close(source);
    free(x.p);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way),         cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(failures_are_told), cmocka_unit_test(digests_of_parts),
        cmocka_unit_test(compares_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
