/* SPDX-License-Identifier: MIT */
/* Untrusted input from the network: URLs to follow ('u'), headers ('h'), XML ('x'); and URLs of
 * every scheme, with names next to them ('l'). The first byte selects the kind. */
#include "fuzz.h"
#include "remote/answer.h"
#include "remote/place.h"
#include "remote/url.h"
#include "wire/xml.h"
#include <stdlib.h>
#include <string.h>

static void check_url(const char *text)
{
    static const char base[] = "https://host.example/a/b/c?d";
    tnf_url u, again, from;
    char whole[TNF_URL_TEXT], twice[TNF_URL_TEXT], shown[160];
    (void)tnf_url_parse(&from, base, NULL);
    for (int follow = 0; follow < 2; follow++) {
        tnf_status status = follow ? tnf_url_follow(&u, &from, text, NULL)
                                   : tnf_url_parse(&u, text, NULL);
        if (status != TNF_OK)
            continue;
        tnf_url_text(whole, &u);
        FUZZ_REQUIRE(!strpbrk(whole, " \r\n\t"), "white space in a URL");
        FUZZ_REQUIRE(tnf_url_parse(&again, whole, NULL) == TNF_OK, "not a URL: %s", whole);
        tnf_url_text(twice, &again);
        FUZZ_REQUIRE(strcmp(whole, twice) == 0, "%s becomes %s", whole, twice);
        FUZZ_REQUIRE(!strchr(tnf_url_shown(shown, sizeof shown, &u), '?'), "a query is shown");
        (void)tnf_host_private(u.host);
    }
}

/* Names become paths on the URL's host, and a name next to one remains there. */
static void check_place(const char *text)
{
    static tnf_session s;
    static tnf_place p, beside;
    char whole[TNF_URL_TEXT];
    tnf_url again;
    if (tnf_place_parse(&p, &s, text, NULL) != TNF_OK)
        return;
    tnf_url_text(whole, &p.url);
    FUZZ_REQUIRE(!strpbrk(whole, " \r\n\t"), "white space in %s", whole);
    FUZZ_REQUIRE(tnf_url_parse(&again, whole, NULL) == TNF_OK, "not a URL: %s", whole);
    FUZZ_REQUIRE(strcmp(again.host, p.url.host) == 0 && again.port == p.url.port, "another host");
    const char *name = strrchr(text, '/') + 1;
    if (tnf_place_sibling(&beside, &p, name, strlen(name), NULL) == TNF_OK)
        FUZZ_REQUIRE(strcmp(beside.url.host, p.url.host) == 0 && beside.url.port == p.url.port &&
                         beside.url.secure == p.url.secure,
                     "a name leads to another host");
}

static void check_headers(const char *text, size_t n)
{
    static tnf_answer a;
    tnf_answer_begin(&a);
    while (n > 0) {
        const char *end = memchr(text, '\n', n);
        size_t line = end ? (size_t)(end + 1 - text) : n;
        tnf_answer_line(&a, text, line);
        text += line;
        n -= line;
    }
    FUZZ_REQUIRE(!a.ranges || a.first == TNF_NOT_TOLD || a.first <= a.last, "a range backwards");
    FUZZ_REQUIRE(!a.ranges || a.total == TNF_NOT_TOLD || a.last == TNF_NOT_TOLD || a.last < a.total,
                 "a range beyond the end");
    FUZZ_REQUIRE(a.status >= 0 && a.status < 1000, "a status of %d", a.status);
    FUZZ_REQUIRE(!strpbrk(a.location, "\r\n"), "a line end in a header");
}

static void check_xml(const char *text, size_t n)
{
    tnf_xml x;
    tnf_str piece;
    char *room = malloc(n + 1);
    size_t steps = 0;
    tnf_xml_init(&x, text, n);
    while (room && tnf_xml_next(&x, &piece) != TNF_XML_END) {
        FUZZ_REQUIRE(piece.p >= text && piece.p + piece.n <= text + n, "a piece outside");
        FUZZ_REQUIRE(++steps <= 2 * n + 2, "no end of pieces");
        size_t got = tnf_xml_unescape(room, n + 1, piece);
        FUZZ_REQUIRE(got == SIZE_MAX || got <= piece.n, "longer without escapes");
    }
    (void)tnf_xml_text(text, n, "Code", &piece);
    free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (size == 0 || !text) {
        free(text);
        return 0;
    }
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    switch (data[0]) {
    case 'u':
        check_url(text);
        break;
    case 'l':
        check_place(text);
        break;
    case 'h':
        check_headers(text, size - 1);
        break;
    case 'x':
        check_xml(text, size - 1);
        break;
    default:
        break;
    }
    free(text);
    return 0;
}
