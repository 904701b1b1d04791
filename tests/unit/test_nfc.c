/* SPDX-License-Identifier: MIT */
/* Normal form C: examples of UAX #15, and texts for which the quick check is not enough. */
#include "../support/unit.h"
#include "base/nfc.h"

static void known_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool nfc;
    } known[] = {
        { "", true },
        { "layer.0/weight", true },
        { "gr\u00f6\u00dfe", true },
        { "gro\u0308\u00dfe", false },
        { "\u212b", false },        /* angstrom sign: a singleton */
        { "\u2126", false },        /* ohm sign */
        { "\u00c5", true },         /* the characters that they become */
        { "\u1e9b\u0323", true },   /* long s, dot above; dot below: no change */
        { "\u00e2\u0323", false },  /* the marks are exchanged, then all are composed */
        { "\u1ead", true },         /* the result */
        { "q\u0307\u0323", false }, /* in the wrong order */
        { "q\u0323\u0307", true },  /* nothing to compose */
        { "\u0958", false },        /* excluded from composition */
        { "\u0915\u093c", true },   /* its normal form */
        { "\uac00", true },         /* Hangul */
        { "\uac01", true },
        { "\u1100\u1161", false },
        { "\uac00\u11a8", false },
        { "\uac01\u11a8", true }, /* it already has its last consonant */
        { "\u1100\u11a8", true },
        { "\u0344", false }, /* becomes two marks */
        { "\u0301", true },  /* a mark with nothing before it */
        { "a\u0301\u0301", false },
        { "\u00e1\u0301", true },
        { "\uf900", false }, /* compatibility ideograph */
        { "\u65e5\u672c\u8a9e", true },
        { "\U0001d15e", false }, /* musical symbol half note */
        { "\U0001f600", true },
        { "\u0b47\u0b3e", false },      /* two starters are composed */
        { "\u0b47\u0300\u0b3e", true }, /* but not with a mark between them */
        { "\u1100\u0300\u1161", true },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (tnf_nfc(known[i].text, strlen(known[i].text)) != known[i].nfc)
            fail_msg("%zu: %s", i, known[i].text);
}

/* Texts that are too long are not examined; they count as normal only if the quick check is
 * enough. */
static void long_texts(void **state)
{
    (void)state;
    char text[TNF_NFC_LONGEST + 2];
    memset(text, 'a', sizeof text);
    assert_true(tnf_nfc(text, sizeof text));
    memcpy(text + sizeof text - 2, "\u0323", 2); /* is composed with the letter before */
    assert_false(tnf_nfc(text, sizeof text));
    text[sizeof text - 3] = '7'; /* is not composed, but the quick check cannot know this */
    assert_false(tnf_nfc(text, sizeof text));
    assert_true(tnf_nfc(text + 2, sizeof text - 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts),
        cmocka_unit_test(long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
