/* SPDX-License-Identifier: MIT */
/* Errors: status, offset, message; names of files and tensors in printable form. */
#include "../support/unit.h"
#include "base/error.h"
#include "base/utf8.h"

#include <errno.h>

static void names_of_statuses(void **state)
{
    (void)state;
    assert_string_equal(tnf_status_name(TNF_OK), "TNF_OK");
    assert_string_equal(tnf_status_name(TNF_ENOMEM), "TNF_ENOMEM");
    assert_string_equal(tnf_status_name(TNF_ENOTFOUND), "TNF_ENOTFOUND");
    assert_string_equal(tnf_status_name(TNF_EBUG), "TNF_EBUG");
    assert_string_equal(tnf_status_name(TNF_ECHANGED), "TNF_ECHANGED");
    assert_string_equal(tnf_status_name(TNF_EUNSYNCED), "TNF_EUNSYNCED");
    assert_string_equal(tnf_status_name((tnf_status)-17), "TNF_?");
    assert_string_equal(tnf_status_name((tnf_status)1), "TNF_?");
    assert_string_equal(tnf_status_name((tnf_status)INT32_MIN), "TNF_?");
}

static void fail_fills_and_returns(void **state)
{
    (void)state;
    tnf_error e = { .sys = 7 };
    assert_int_equal(tnf_fail(&e, TNF_EFORMAT, 12, "%s is %d", "x", 3), TNF_EFORMAT);
    assert_int_equal(e.status, TNF_EFORMAT);
    assert_int_equal(e.sys, 0);
    assert_int_equal(e.offset, 12);
    assert_string_equal(e.message, "x is 3");
    assert_int_equal(tnf_fail(NULL, TNF_ELIMIT, 0, "%s", "unheard"), TNF_ELIMIT);
}

/* A later version of the library may use the reserved bytes. */
static void reserved_bytes_are_zero(void **state)
{
    (void)state;
    static const char zeros[sizeof((tnf_error *)0)->reserved];
    tnf_error e, said;
    memset(&e, 0xaa, sizeof e);
    tnf_fail(&e, TNF_EIO, 0, "x");
    assert_memory_equal(e.reserved, zeros, sizeof zeros);
    memset(&e, 0xaa, sizeof e);
    tnf_fail_sys(&e, EIO, "x");
    assert_memory_equal(e.reserved, zeros, sizeof zeros);
    for (int filled = 0; filled < 2; filled++) {
        memset(&e, 0xaa, sizeof e);
        memset(&said, 0xaa, sizeof said);
        tnf_call_before(&said);
        if (filled)
            tnf_error_set(&said, TNF_EIO, 0, "x");
        tnf_call_failed(&e, TNF_EIO, &said);
        assert_memory_equal(e.reserved, zeros, sizeof zeros);
    }
}

/* The new message may contain the old one. */
static void messages_get_context(void **state)
{
    (void)state;
    tnf_error e;
    tnf_error_set(&e, TNF_EIO, 7, "no room");
    tnf_error_set(&e, e.status, e.offset, "while saving: %s", e.message);
    assert_string_equal(e.message, "while saving: no room");
    assert_int_equal(e.offset, 7);
}

static void rules_stay(void **state)
{
    (void)state;
    tnf_error e;
    assert_int_equal(tnf_fail_rule(&e, "Shape", TNF_EFORMAT, 5, "%d is odd", 3), TNF_EFORMAT);
    assert_string_equal(e.rule, "Shape");
    assert_string_equal(e.message, "Shape: 3 is odd");
    assert_int_equal(e.offset, 5);
    tnf_error_prefix(&e, "file");
    assert_string_equal(e.rule, "Shape");
    assert_string_equal(e.message, "file: Shape: 3 is odd");
    tnf_error_rule(&e, "Other");
    assert_string_equal(e.rule, "Other");
    tnf_fail(&e, TNF_EIO, 0, "else"); /* the next error has no offset */
    assert_null(e.rule);
    tnf_error_rule(&e, "Other");
    tnf_fail_sys(&e, EIO, "else");
    assert_null(e.rule);
    tnf_error_rule(NULL, "unheard");
    assert_int_equal(tnf_fail_rule(NULL, "Shape", TNF_ELIMIT, 0, "unheard"), TNF_ELIMIT);
}

static void long_sentences_are_cut(void **state)
{
    (void)state;
    tnf_error e;
    char text[400];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    tnf_fail(&e, TNF_EIO, 0, "%s", text);
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    tnf_error_prefix(&e, "format");
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    assert_memory_equal(e.message, "format: aaa", 11);
}

/* A message must not be cut inside a character, or it would not be valid text. */
static void cut_sentences_stay_utf8(void **state)
{
    (void)state;
    for (size_t lead = 0; lead < 4; lead++) {
        char text[400] = "xyz";
        size_t n = lead;
        while (n + 4 < sizeof text) { /* U+1F600, four bytes */
            memcpy(text + n, "\xf0\x9f\x98\x80", 4);
            n += 4;
        }
        text[n] = 0;
        tnf_error e;
        tnf_fail(&e, TNF_EIO, 0, "%s", text);
        assert_true(tnf_utf8_valid(NULL, e.message, strlen(e.message)));
        tnf_error_prefix(&e, "ab");
        assert_true(tnf_utf8_valid(NULL, e.message, strlen(e.message)));
    }
}

static void system_errors(void **state)
{
    (void)state;
    static const struct {
        int err;
        tnf_status status;
    } cases[] = { { ENOENT, TNF_ENOTFOUND }, { ENOTDIR, TNF_ENOTFOUND }, { EEXIST, TNF_EEXISTS },
                  { ENOMEM, TNF_ENOMEM },    { ENOSPC, TNF_EIO },        { EACCES, TNF_EIO } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_error e;
        assert_int_equal(tnf_fail_sys(&e, cases[i].err, "cannot %s", "open"), cases[i].status);
        assert_int_equal(e.status, cases[i].status);
        assert_int_equal(e.sys, cases[i].err);
        assert_true(e.offset == TNF_NO_OFFSET);
        assert_memory_equal(e.message, "cannot open: ", 13);
        assert_true(strlen(e.message) > 15);
        assert_int_equal(tnf_fail_sys(NULL, cases[i].err, "x"), cases[i].status);
    }
}

static void prefixes_messages(void **state)
{
    (void)state;
    tnf_error e;
    tnf_fail(&e, TNF_EFORMAT, 3, "wrong");
    tnf_error_prefix(&e, "safetensors");
    assert_string_equal(e.message, "safetensors: wrong");
    assert_int_equal(e.offset, 3);
    tnf_error_prefix(NULL, "nobody");
}

static void quotes_names(void **state)
{
    (void)state;
    char out[72];
    assert_string_equal(tnf_quote(out, sizeof out, "w", 1), "'w'");
    assert_string_equal(tnf_quote(out, sizeof out, "", 0), "''");
    assert_string_equal(tnf_quote(out, sizeof out, NULL, 0), "''");
    assert_string_equal(tnf_quote(out, sizeof out, "a\0b", 3), "'a\\x00b'");
    assert_string_equal(tnf_quote(out, sizeof out, "\x1b[2J\x7f", 5), "'\\x1b[2J\\x7f'");
    assert_string_equal(tnf_quote(out, sizeof out, "\xc3\xa9", 2), "'\xc3\xa9'");
    /* escaped like names in the command: no line breaks, no changes of direction */
    assert_string_equal(tnf_quote(out, sizeof out, "a\n\t\r\\", 5), "'a\\n\\t\\r\\\\'");
    assert_string_equal(tnf_quote(out, sizeof out, "\xc2\x85\xe2\x80\xae", 5), "'\\u0085\\u202e'");
    assert_string_equal(TNF_QUOTED(((tnf_str) { "abc", 2 })), "'ab'");
}

/* For any name and any size of the buffer: the result is in quotes, NUL-terminated, inside the
 * buffer, and valid text if the name is. */
static void quoting_shortens(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a name that is far too long for such a small place, as some names are, alas",
        "\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad",
        "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80",
        "\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e",
        "ab\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", /* not UTF-8 */
        "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t size = 8; size <= 40; size++) {
            char *out = malloc(size);
            assert_ptr_equal(tnf_quote(out, size, names[i], strlen(names[i])), out);
            size_t n = strlen(out);
            assert_true(n < size && n >= 2 && out[0] == '\'' && out[n - 1] == '\'');
            if (i < 4)
                assert_true(tnf_utf8_valid(NULL, out, n));
            for (const char *p = out; (p = strchr(p, '\\')) != NULL; p++)
                if (p[1] == 'x') /* an escape is complete or missing */
                    assert_true(strspn(p + 2, "0123456789abcdef") >= 2);
            free(out);
        }
}

static void public_filling(void **state)
{
    (void)state;
    tnf_error e;
    assert_int_equal(tnf_error_set(NULL, TNF_EIO, 0, "x"), TNF_EIO);
    assert_int_equal(tnf_error_set(&e, TNF_ENET, 7, "no answer from %s", "there"), TNF_ENET);
    assert_int_equal(e.status, TNF_ENET);
    assert_int_equal(e.offset, 7);
    assert_null(e.rule);
    assert_string_equal(e.message, "no answer from there");
}

static tnf_status fail_silently(void *ctx, tnf_error *e)
{
    (void)e;
    return *(tnf_status *)ctx;
}

static tnf_status fail_telling(void *ctx, tnf_error *e)
{
    return tnf_error_set(e, *(tnf_status *)ctx, 5, "as I said");
}

static tnf_status fail_endlessly(void *ctx, tnf_error *e)
{
    memset(e->message, 'a', sizeof e->message);
    return *(tnf_status *)ctx;
}

/* A caller's function may leave its error unset, or set only a part of it. */
static void callers_functions(void **state)
{
    (void)state;
    tnf_error e;
    tnf_status want = TNF_OK, status;
    memset(&e, 'z', sizeof e);
    TNF_CALL(status, &e, fail_silently, &want);
    assert_int_equal(status, TNF_OK);
    assert_int_equal(e.message[0], 'z'); /* written only on failure */
    want = TNF_ENET;
    TNF_CALL(status, &e, fail_silently, &want);
    assert_int_equal(status, TNF_ENET);
    assert_int_equal(e.status, TNF_ENET);
    assert_true(e.sys == 0 && e.offset == TNF_NO_OFFSET && !e.rule);
    assert_string_equal(e.message, "the caller's function failed");
    TNF_CALL(status, &e, fail_telling, &want);
    assert_string_equal(e.message, "as I said");
    assert_int_equal(e.offset, 5);
    TNF_CALL(status, &e, fail_endlessly, &want);
    assert_int_equal(e.status, TNF_ENET);
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    TNF_CALL(status, NULL, fail_telling, &want);
    assert_int_equal(status, TNF_ENET);
    static const int no_statuses[] = { 1, TNF_EUNSYNCED - 1, -1000 };
    for (size_t i = 0; i < 3; i++) {
        want = (tnf_status)no_statuses[i];
        TNF_CALL(status, &e, fail_telling, &want);
        assert_int_equal(status, TNF_EINVAL);
        assert_int_equal(e.status, TNF_EINVAL);
        assert_non_null(strstr(e.message, "which is not a status"));
    }
}

static void counted_things(void **state)
{
    (void)state;
    assert_string_equal(TNF_BYTES_ARE(0), "0 bytes are");
    assert_string_equal(TNF_BYTES_ARE(1), "1 byte is");
    assert_string_equal(TNF_BYTES_ARE(UINT64_MAX), "18446744073709551615 bytes are");
    assert_string_equal(TNF_BYTES_FOLLOW(1), "1 byte follows");
    assert_string_equal(TNF_BYTES_FOLLOW(2), "2 bytes follow");
    assert_string_equal(TNF_COUNTED(0, "row", "rows"), "0 rows");
    assert_string_equal(
        TNF_COUNTED(UINT64_MAX, "x", "123456789 123456789 1234567"), /* cut, not too long */
        "18446744073709551615 123456789 123456789 123456");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_statuses),
        cmocka_unit_test(fail_fills_and_returns),
        cmocka_unit_test(reserved_bytes_are_zero),
        cmocka_unit_test(messages_get_context),
        cmocka_unit_test(rules_stay),
        cmocka_unit_test(long_sentences_are_cut),
        cmocka_unit_test(cut_sentences_stay_utf8),
        cmocka_unit_test(system_errors),
        cmocka_unit_test(prefixes_messages),
        cmocka_unit_test(quotes_names),
        cmocka_unit_test(quoting_shortens),
        cmocka_unit_test(public_filling),
        cmocka_unit_test(callers_functions),
        cmocka_unit_test(counted_things),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
