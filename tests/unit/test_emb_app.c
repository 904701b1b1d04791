/* SPDX-License-Identifier: MIT */
/* Every kind of MessagePack (its specification, "Formats") as JSON; other bytes as bytes. */
#include "../../cli/emb_app.c"
#include "../../cli/out.c"
#include "../../cli/text.c"
#include "../../cli/value.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka after those above */
#include <cmocka.h>

static void assert_shown(const void *bytes, size_t n, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    json j = { .to = open_memstream(&text, &size) };
    assert_non_null(j.to);
    emb_json_app(&j, (tnf_str) { bytes, n });
    fclose(j.to);
    assert_string_equal(text, expected);
    free(text);
}

#define SHOWS(bytes, expected) assert_shown(bytes, sizeof(bytes) - 1, expected)

static void plain_values(void **state)
{
    (void)state;
    SHOWS("", "null");
    SHOWS("\xc0", "null");
    SHOWS("\xc2", "false");
    SHOWS("\xc3", "true");
    SHOWS("\x7f", "127");
    SHOWS("\xe0", "-32");
    SHOWS("\xff", "-1");
    SHOWS("\xcc\xff", "255");
    SHOWS("\xcd\x01\x00", "256");
    SHOWS("\xce\xff\xff\xff\xff", "4294967295");
    SHOWS("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615");
    SHOWS("\xd0\x80", "-128");
    SHOWS("\xd1\xff\x7f", "-129");
    SHOWS("\xd2\x80\x00\x00\x00", "-2147483648");
    SHOWS("\xd3\x80\x00\x00\x00\x00\x00\x00\x00", "-9223372036854775808");
    SHOWS("\xca\x3f\xc0\x00\x00", "1.5");
    SHOWS("\xcb\xbf\xb9\x99\x99\x99\x99\x99\x9a", "-0.1");
}

static void strings_and_bytes(void **state)
{
    (void)state;
    SHOWS("\xa0", "\"\"");
    SHOWS("\xa3"
          "a\"b",
          "\"a\\\"b\"");
    SHOWS("\xd9\x02\xc3\xbc", "\"\xc3\xbc\"");
    SHOWS("\xda\x00\x01x", "\"x\"");
    SHOWS("\xdb\x00\x00\x00\x01x", "\"x\"");
    SHOWS("\xa1\xff", "{\"$str\":{\"$bytes\":\"/w==\"}}"); /* not UTF-8 */
    SHOWS("\xc4\x01x", "{\"$bytes\":\"eA==\"}");
    SHOWS("\xc5\x00\x01x", "{\"$bytes\":\"eA==\"}");
    SHOWS("\xc6\x00\x00\x00\x01x", "{\"$bytes\":\"eA==\"}");
    /* an extension becomes its type and its bytes: base64 of "x", "xx" … */
    SHOWS("\xd4\x05x", "{\"$ext\":[5,{\"$bytes\":\"eA==\"}]}");
    SHOWS("\xd5\x05xx", "{\"$ext\":[5,{\"$bytes\":\"eHg=\"}]}");
    SHOWS("\xd6\x05xxxx", "{\"$ext\":[5,{\"$bytes\":\"eHh4eA==\"}]}");
    SHOWS("\xd7\x05xxxxxxxx", "{\"$ext\":[5,{\"$bytes\":\"eHh4eHh4eHg=\"}]}");
    SHOWS("\xd8\x05xxxxxxxxxxxxxxxx", "{\"$ext\":[5,{\"$bytes\":\"eHh4eHh4eHh4eHh4eHh4eA==\"}]}");
    SHOWS("\xc7\x01\x05x", "{\"$ext\":[5,{\"$bytes\":\"eA==\"}]}");
    SHOWS("\xc8\x00\x01\x05x", "{\"$ext\":[5,{\"$bytes\":\"eA==\"}]}");
    SHOWS("\xc9\x00\x00\x00\x01\x05x", "{\"$ext\":[5,{\"$bytes\":\"eA==\"}]}");
}

static void nested_values(void **state)
{
    (void)state;
    SHOWS("\x90", "[]");
    SHOWS("\x92\x01\xc0", "[1,null]");
    SHOWS("\xdc\x00\x01\x05", "[5]");
    SHOWS("\xdd\x00\x00\x00\x01\x05", "[5]");
    SHOWS("\x80", "{}");
    SHOWS("\x82\xa1\x61\x01\xa1\x62\x91\xc3", "{\"a\":1,\"b\":[true]}");
    SHOWS("\xde\x00\x01\xa1\x61\x01", "{\"a\":1}");
    SHOWS("\xdf\x00\x00\x00\x01\xd9\x01\x61\x01", "{\"a\":1}");
}

/* Keys in JSON are always strings: a map with other keys becomes a list of pairs. */
static void keys_of_maps(void **state)
{
    (void)state;
    SHOWS("\x81\x01\x02", "{\"$pairs\":[[1,2]]}");
    SHOWS("\x81\xff\x02", "{\"$pairs\":[[-1,2]]}");
    SHOWS("\x81\xc0\x02", "{\"$pairs\":[[null,2]]}");
    SHOWS("\x81\xca\x3f\xc0\x00\x00\x02", "{\"$pairs\":[[1.5,2]]}");
    SHOWS("\x81\xa1\xff\x02", "{\"$pairs\":[[{\"$str\":{\"$bytes\":\"/w==\"}},2]]}");
    SHOWS("\x81\x91\x01\x02", "{\"$pairs\":[[[1],2]]}");
    SHOWS("\x82\xa1\x61\x01\xa1\x61\x02", "{\"$pairs\":[[\"a\",1],[\"a\",2]]}");
}

/* Cut short, too long, an unused byte, a count larger than the rest, too deep. */
static void no_messagepack(void **state)
{
    (void)state;
    static char deep[80];
    SHOWS("\xc1", "{\"$bytes\":\"wQ==\"}");
    SHOWS("\x01\x01", "{\"$bytes\":\"AQE=\"}");
    SHOWS("\xcd\x01", "{\"$bytes\":\"zQE=\"}");
    SHOWS("\xa2x", "{\"$bytes\":\"ong=\"}");
    SHOWS("\x81\xa1", "{\"$bytes\":\"gaE=\"}");
    SHOWS("\x81\xd9", "{\"$bytes\":\"gdk=\"}");
    SHOWS("\xdd\xff\xff\xff\xff\x01", "{\"$bytes\":\"3f////8B\"}");
    SHOWS("\xc9\xff\xff\xff\xff\x01", "{\"$bytes\":\"yf////8B\"}");
    memset(deep, 0x91, sizeof deep - 1);
    char *text = NULL;
    size_t size = 0;
    json j = { .to = open_memstream(&text, &size) };
    emb_json_app(&j, (tnf_str) { deep, sizeof deep });
    fclose(j.to);
    assert_memory_equal(text, "{\"$bytes\":", 10);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_values),   cmocka_unit_test(strings_and_bytes),
        cmocka_unit_test(nested_values),  cmocka_unit_test(keys_of_maps),
        cmocka_unit_test(no_messagepack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
