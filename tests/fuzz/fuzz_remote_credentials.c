/* SPDX-License-Identifier: MIT */
/* Sources of credentials: files of profiles ('p'), keys of roles as JSON ('k') and as XML ('s'),
 * tokens ('t'), digests of headers ('d'). The first byte selects the kind. */
#include "fuzz.h"
#include "remote/roles.h"
#include "remote/sums.h"
#include <stdlib.h>
#include <string.h>

static void check_line(const char *value, size_t room)
{
    FUZZ_REQUIRE(strnlen(value, room) < room, "a value without an end");
    FUZZ_REQUIRE(!strpbrk(value, "\n"), "a line end in a value");
}

static void check_profile(const char *text, size_t n)
{
    static const char *const keys[] = { "aws_access_key_id", "region", "sso_session" };
    static const char *const profiles[] = { "default", "work", "" };
    char value[64];
    for (size_t i = 0; i < 9; i++) {
        FILE *f = n ? fmemopen((void *)(uintptr_t)text, n, "r") : NULL;
        if (!f)
            return;
        bool found = tnf_profile_find(f, profiles[i / 3], keys[i % 3], value, sizeof value);
        FUZZ_REQUIRE(!found || value[0], "found nothing");
        check_line(value, sizeof value);
        (void)fclose(f);
    }
}

static void check_keys(bool xml, const char *text, size_t n)
{
    static tnf_keys_aws k;
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    memset(&k, 0, sizeof k);
    bool ok = xml ? tnf_role_parse_sts(&k, text, n) : tnf_role_parse(&k, &alloc, text, n);
    FUZZ_REQUIRE(!ok || (k.id[0] && k.secret[0]), "keys of nothing");
    check_line(k.id, sizeof k.id);
    check_line(k.secret, sizeof k.secret);
    check_line(k.token, sizeof k.token);
}

static void check_token(const char *text, size_t n)
{
    static tnf_bearer b;
    tnf_allocator alloc = tnf_allocator_or_default(NULL);
    memset(&b, 0, sizeof b);
    bool ok = tnf_role_parse_token(&b, &alloc, text, n, 1000);
    FUZZ_REQUIRE(!ok || b.text[0], "a token of nothing");
    FUZZ_REQUIRE(b.until == 0 || b.until > 1000, "it ended before it began");
    check_line(b.text, sizeof b.text);
}

/* "Name: value" */
static void check_sum(const char *text, size_t n)
{
    tnf_sum sum = { 0 };
    const char *colon = memchr(text, ':', n);
    if (!colon)
        return;
    tnf_str name = { text, (size_t)(colon - text) };
    tnf_str value = { colon + 1, n - name.n - 1 };
    tnf_sum_header(&sum, name, value, 200);
    FUZZ_REQUIRE(tnf_sum_size(sum.kind) <= sizeof sum.bytes, "a digest that is too long");
    tnf_sum_kind before = sum.kind;
    tnf_sum_header(&sum, name, value, 206);
    FUZZ_REQUIRE(sum.kind == before, "another digest the second time");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (size == 0 || !text) {
        free(text);
        return 0;
    }
    size_t n = size - 1;
    memcpy(text, data + 1, n);
    switch (data[0]) {
    case 'p':
        check_profile(text, n);
        break;
    case 'k':
    case 's':
        check_keys(data[0] == 's', text, n);
        break;
    case 't':
        check_token(text, n);
        break;
    case 'd':
        check_sum(text, n);
        break;
    default:
        break;
    }
    free(text);
    return 0;
}
