/* SPDX-License-Identifier: MIT */
/* Walking blocks: many small ones are read at once, large ones are skipped; every kind of end. */
#include "../support/memory.h"
#include "../support/unit.h"
#include "formats/vs/chain.h"

struct file {
    uint8_t *p;
    size_t n;
    uint64_t read; /* number of bytes that were read */
    unsigned calls, fail_at;
};

static tnf_status fetch_bytes(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct file *f = ctx;
    assert_true(offset <= f->n && n <= f->n - offset);
    f->read += n;
    if (++f->calls == f->fail_at) {
        e->status = TNF_EIO;
        return TNF_EIO;
    }
    memcpy(dst, f->p + offset, n);
    return TNF_OK;
}

static void add_block(struct file *f, uint8_t type, size_t n)
{
    f->p = realloc(f->p, f->n + n + 6);
    f->p[f->n] = type;
    tnf_put_le32(f->p + f->n + 1, (uint32_t)n);
    memset(f->p + f->n + 5, (int)(n & 0xff), n);
    f->n += n + 5;
}

static struct file begin_file(void)
{
    struct file f = { .p = malloc(5), .n = 4 };
    memcpy(f.p, "VS\0", 4);
    return f;
}

static void walks_blocks(void **state)
{
    (void)state;
    tnf_error e;
    tnf_vs_chain c;
    struct file f = begin_file();
    static const size_t sizes[] = { 0, 1, 300, 70000, 3, 2000000, 5, 5, 262139, 262140 };
    enum { N = sizeof sizes / sizeof *sizes };
    for (size_t i = 0; i < N; i++)
        add_block(&f, (uint8_t)('a' + i), sizes[i]);
    f.p[f.n++] = '$';
    tnf_vs_chain_init(&c, fetch_bytes, &f, f.n, TNF_VS_HEADER, NULL);
    assert_ok(tnf_vs_chain_header(&c, &e));
    uint64_t at = 4;
    for (size_t i = 0; i < N; i++) {
        const uint8_t *p = NULL;
        assert_ok(tnf_vs_chain_next(&c, &e));
        assert_true(c.at == at && c.type == 'a' + i && c.length == sizes[i]);
        assert_ok(tnf_vs_chain_bytes(&c, at + 5, sizes[i] < 9 ? sizes[i] : 9, &p, &e));
        for (size_t k = 0; k < sizes[i] && k < 9; k++)
            assert_int_equal(p[k], sizes[i] & 0xff);
        at += 5 + sizes[i];
    }
    assert_ok(tnf_vs_chain_next(&c, &e));
    assert_true(c.type == TNF_VS_END && c.terminal && c.at == at);
    assert_true(f.read < f.n); /* skipped bytes were not read */
    tnf_vs_chain_free(&c);
    free(f.p);
}

static void every_end(void **state)
{
    (void)state;
    tnf_error e;
    tnf_vs_chain c;
    struct file f = begin_file();
    add_block(&f, 'x', 10);
    tnf_vs_chain_init(&c, fetch_bytes, &f, f.n, TNF_VS_HEADER, NULL);
    assert_ok(tnf_vs_chain_next(&c, &e));
    assert_ok(tnf_vs_chain_next(&c, &e));
    assert_true(c.type == TNF_VS_END && !c.terminal && c.at == f.n);
    tnf_vs_chain_free(&c);
    for (size_t n = 5; n < f.n; n++) {
        tnf_vs_chain_init(&c, fetch_bytes, &f, n, TNF_VS_HEADER, NULL);
        assert_fails(tnf_vs_chain_next(&c, &e), TNF_ETRUNCATED);
        assert_int_equal(e.offset, 4);
        tnf_vs_chain_free(&c);
    }
    for (size_t n = 0; n < 4; n++) {
        tnf_vs_chain_init(&c, fetch_bytes, &f, n, TNF_VS_HEADER, NULL);
        assert_fails(tnf_vs_chain_header(&c, &e), TNF_ETRUNCATED);
        tnf_vs_chain_free(&c);
    }
    free(f.p);
}

/* A failed read or allocation stays an error. */
static void failures_are_told(void **state)
{
    (void)state;
    tnf_error e;
    tnf_vs_chain c;
    struct file f = begin_file();
    struct memory_log log = { .fail_at = 1 };
    tnf_allocator a = memory_allocator(&log);
    add_block(&f, 'x', 600000);
    add_block(&f, 'y', 5);
    tnf_vs_chain_init(&c, fetch_bytes, &f, f.n, TNF_VS_HEADER, &a);
    assert_fails(tnf_vs_chain_next(&c, &e), TNF_ENOMEM);
    tnf_vs_chain_free(&c);
    assert_int_equal(log.blocks, 0);
    f.fail_at = 2;
    tnf_vs_chain_init(&c, fetch_bytes, &f, f.n, TNF_VS_HEADER, NULL);
    assert_ok(tnf_vs_chain_next(&c, &e));
    assert_int_equal(tnf_vs_chain_next(&c, &e), TNF_EIO);
    c.next = c.at;
    assert_ok(tnf_vs_chain_next(&c, &e)); /* it was read again */
    assert_int_equal(c.type, 'y');
    tnf_vs_chain_free(&c);
    free(f.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(walks_blocks), cmocka_unit_test(every_end),
                                        cmocka_unit_test(failures_are_told) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
