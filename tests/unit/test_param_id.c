/* SPDX-License-Identifier: MIT */
/* Identity of parameters against published vectors. */
#include "gptrs_files.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "wire/json.h"
#include <tenfold/params.h>

static uint8_t hex_digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void assert_id(tnf_id id, const tnf_value *hex)
{
    assert_non_null(hex);
    assert_int_equal(hex->n, 32);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(id.bytes[i],
                         hex_digit(hex->as.s[2 * i]) << 4 | hex_digit(hex->as.s[2 * i + 1]));
}

/* The vectors' names of 1024 bytes and more are written as 'x' * 1024. */
static tnf_str vector_name(const tnf_value *v, char *room)
{
    const tnf_value *name = tnf_value_get(v, "name");
    const tnf_value *length = tnf_value_get(v, "name_len");
    size_t n = (size_t)(length->kind == TNF_INT ? (uint64_t)length->as.i : length->as.u);
    if (name->n == n)
        return (tnf_str) { name->as.s, n };
    memset(room, 'x', n);
    return (tnf_str) { room, n };
}

static void test_published_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *number;
        uint64_t high, low;
    } spaces[] = { { "0", 0, 0 },
                   { "1", 0, 1 },
                   { "2", 0, 2 },
                   { "18446744073709551616", 1, 0 },
                   { "340282366920938463463374607431768211455", UINT64_MAX, UINT64_MAX } };
    bytes text = load_path(TNF_TESTS_DIR "/formats/gptrs-checkpoint/param_id_vectors.json");
    assert_non_null(text.p);
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_arena arena;
    tnf_arena_init(&arena, &a, UINT64_MAX);
    tnf_json j;
    tnf_value all;
    tnf_error e = { 0 };
    tnf_json_init(&j, text.p, text.n, 0, &arena, 64, &e);
    assert_true(tnf_json_value(&j, &all));
    const tnf_value *vectors = tnf_value_get(&all, "vectors");
    assert_int_equal(vectors->n, 17);
    for (size_t i = 0; i < vectors->n; i++) {
        static char room[4096];
        const tnf_value *v = &vectors->as.items[i];
        tnf_str name = vector_name(v, room);
        tnf_id id;
        assert_int_equal(tnf_param_id(&id, name.p, name.n, &e), TNF_OK);
        assert_id(id, tnf_value_get(v, "stored_bytes_hex"));
        for (size_t k = 0; k < 5; k++) {
            tnf_id space = tnf_namespace_id(spaces[k].high, spaces[k].low);
            assert_id(
                tnf_param_key(space, id),
                tnf_value_get(tnf_value_get(v, "param_key_stored_bytes_hex"), spaces[k].number));
        }
    }
    tnf_arena_free(&arena);
    free(text.p);
}

static void test_namespace_and_names(void **state)
{
    (void)state;
    static const uint8_t want[16] = { 0x10, 0x0f, 0x0e, 0x0d, 0x0c, 0x0b, 0x0a, 0x09,
                                      0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01 };
    tnf_id id = tnf_namespace_id(0x0102030405060708, 0x090a0b0c0d0e0f10);
    tnf_error e;
    assert_memory_equal(id.bytes, want, 16);
    assert_int_equal(tnf_param_id(&id, "\xc3\xa9", 2, &e), TNF_EINVAL);
    assert_non_null(strstr(e.message, "ASCII"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_vectors),
        cmocka_unit_test(test_namespace_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
