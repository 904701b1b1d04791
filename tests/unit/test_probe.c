/* SPDX-License-Identifier: MIT */
/* Finding the format: what probes receive. tests/probe.c tries them on many bytes. */
#include "../support/unit.h"
#include "core/core.h"

static tnf_status probe_bytes(const tnf_format **out, const void *bytes, size_t n, const char *ext,
                              tnf_error *e)
{
    tnf_source *s;
    assert_int_equal(tnf_source_memory(&s, bytes, n, NULL), TNF_OK);
    tnf_status status = tnf_probe_source(out, s, ext, e);
    tnf_source_close(s);
    return status;
}

static void magics_win(void **state)
{
    (void)state;
    tnf_error e;
    const tnf_format *f;
    assert_ok(probe_bytes(&f, "GPTRSTEN\2\0\0\0\4\0\0\0\0\0\0\0", 20, "", &e));
    assert_string_equal(f->name, "gptrs-archive");
    assert_ok(probe_bytes(&f, "GPTRSCHK\2\0\0\0", 12, "gten", &e)); /* for any name */
    assert_string_equal(f->name, "gptrs-checkpoint");
}

static void nothing_known(void **state)
{
    (void)state;
    tnf_error e;
    const tnf_format *f = NULL;
    assert_fails(probe_bytes(&f, "", 0, "bin", &e), TNF_ETRUNCATED);
    assert_fails(probe_bytes(&f, "GPTRSTE", 7, "gten", &e), TNF_ETRUNCATED);
    assert_fails(probe_bytes(&f, "no tensors in here", 18, "", &e), TNF_EUNSUPPORTED);
    assert_null(f);
}

/* No probe reads beyond the bytes that it gets: they end where their memory ends. */
static void probes_stay_inside(void **state)
{
    (void)state;
    static const char *const starts[] = { "GPTRSTEN",
                                          "GPTRSCHK",
                                          "{\"a\":",
                                          "\x10\0\0\0\0\0\0\0{",
                                          "\xff\xff\xff\xff\xff\xff\xff\x7f{",
                                          "\0\0\0\0" };
    for (size_t k = 0; k < sizeof starts / sizeof *starts; k++)
        for (size_t n = 0; n <= 80; n++) {
            uint8_t *head = calloc(1, n ? n : 1), *tail = calloc(1, n ? n : 1);
            size_t len = k == 3 || k == 4 ? 9 : k == 5 ? 4 : strlen(starts[k]);
            memcpy(head, starts[k], n < len ? n : len);
            memcpy(tail, head, n);
            tnf_probe p = { head, tail + (n > 64 ? n - 64 : 0), n, n > 64 ? 64 : n, n, "bin" };
            for (size_t i = 0; tnf_registry_at(i); i++)
                if (tnf_registry_at(i)->probe)
                    assert_in_range(tnf_registry_at(i)->probe(&p), 0, 100);
            free(head);
            free(tail);
        }
}

static tnf_status fail_from(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    memset(dst, 0, n);
    return offset >= *(uint64_t *)ctx ? tnf_fail(e, TNF_ENET, offset, "gone") : TNF_OK;
}

static void reading_may_fail(void **state)
{
    (void)state;
    tnf_error e;
    const tnf_format *f;
    for (uint64_t from = 0; from <= 100000; from += 50000) { /* head, tail, nothing fails */
        tnf_source *s;
        tnf_source_ops ops = { .version = 1, .read_at = fail_from };
        assert_ok(tnf_source_custom(&s, &ops, &from, 100000, &e));
        tnf_status status = tnf_probe_source(&f, s, "", &e);
        assert_int_equal(status, from <= 50000 ? TNF_ENET : TNF_EFORMAT);
        tnf_source_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(magics_win),
        cmocka_unit_test(nothing_known),
        cmocka_unit_test(probes_stay_inside),
        cmocka_unit_test(reading_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
