/* SPDX-License-Identifier: MIT */
/* The pickle machine: compared with the output of Python's own module (vectors/pickle.txt); every
 * opcode by hand; every refusal with its offset; the cost of hostile pickles. */
#include "base/bytes.h"
#include "wire_fixture.h"

#include "wire/pickle.h"

static tnf_status load_bytes(fixture *f, tnf_pickle *p, const void *bytes, size_t n)
{
    free(f->bytes);
    f->bytes = malloc(n ? n : 1); /* of the exact size, so that a sanitizer finds reads beyond */
    if (n)
        memcpy(f->bytes, bytes, n);
    memset(&f->e, 0, sizeof f->e);
    return tnf_pickle_read(p, f->bytes, n, BASE, &f->arena, &f->e);
}

static tnf_status load_hex(fixture *f, tnf_pickle *p, const char *hex)
{
    size_t n;
    uint8_t *bytes = bytes_from_hex(hex, &n);
    tnf_status status = load_bytes(f, p, bytes, n);
    free(bytes);
    return status;
}

static void agrees_with_python(void **state)
{
    fixture *f = *state;
    FILE *file = fopen(TNF_TESTS_DIR "/unit/vectors/pickle.txt", "r");
    char *text = NULL, *fields[2], *shown = malloc(1 << 16);
    size_t capacity = 0, lines = 0;
    assert_non_null(file);
    for (tnf_pickle p; next_vector(file, &text, &capacity, fields, 2); lines++) {
        if (load_hex(f, &p, fields[0]) != TNF_OK)
            fail_msg("%s: %s", fields[0], f->e.message);
        tnf_pickle_show(shown, 1 << 16, p.root);
        assert_string_equal(shown, fields[1]);
        assert_int_equal(p.used * 2, strlen(fields[0]));
    }
    assert_true(lines > 500);
    free(text);
    free(shown);
    fclose(file);
}

/* Digits are converted to bytes and back, with zeros and nines at the borders of pieces of nine
 * digits. */
static void keeps_digits(void **state)
{
    fixture *f = *state;
    static char line[4400], want[4400];
    for (size_t n = 20; n <= 4300; n += n < 120 ? 1 : 380) {
        for (int kind = 0; kind < 4; kind++) {
            tnf_pickle p;
            tnf_str got;
            for (size_t i = 0; i < n; i++)
                want[i + 1] = (char)('0' + (kind == 0   ? (i ? 0 : 1)
                                            : kind == 1 ? 9
                                                        : 1 + (i * 7 + i / 9) % 9));
            want[0] = '-';
            want[n + 1] = 0;
            const char *digits = want + (kind == 3 ? 0 : 1);
            int length = snprintf(line, sizeof line, "L%sL\n.", digits);
            assert_int_equal(load_bytes(f, &p, line, (size_t)length), TNF_OK);
            assert_int_equal(p.root->kind, TNF_PICKLE_BIG);
            assert_true(tnf_pickle_big_text(&got, p.root, &f->arena));
            assert_string_equal(got.p, digits);
        }
    }
}

/* The text of a pickle, and its value in the form of repr(). */
static const struct {
    const char *pickle, *shown;
} spelled[] = {
    { "I01\n.", "True" },
    { "I00\n.", "False" },
    { "I1\n.", "1" },
    { "I-17\n.", "-17" },
    { "L5L\n.", "5" },
    { "L-9223372036854775809L\n.", "0xff7fffffffffffffff" },
    { "F1e-05\n.", "1e-05" },
    { "Fnan\n.", "nan" },
    { "S'a\\x41\\n\\101\\q'\n.", "'aA\\nA\\\\q'" },
    { "S\"it's\"\n.", "\"it's\"" },
    { "S'\\xff'\n.", "b'\\xff'" },
    { "Va\\u00e9\xe9\\U0001f600\n.", "'a\xc3\xa9\xc3\xa9\xf0\x9f\x98\x80'" },
    { "V\\ud800\n.", "'\\xed\\xa0\\x80'" },
    { "U\x02hi.", "'hi'" },
    { "U\x01\xff.", "b'\\xff'" },
    { "(lp0\nI1\naI2\na.", "[1, 2]" },
    { "(I1\nI2\nl.", "[1, 2]" },
    { "(S'a'\nI1\nd.", "{'a': 1}" },
    { "(I1\nt.", "(1,)" },
    { "(t.", "()" },
    { "I1\nI2\n0.", "1" },
    { "I1\n(I2\nI3\n1.", "1" },
    { "I1\n(0.", "1" }, /* POP of a mark */
    { "I7\n2\x86.", "(7, 7)" },
    { "c__builtin__\neval\n(S'1'\ntR.", "builtins.eval('1')" },
    { "\x80\x03"
      "c__builtin__\neval\n.",
      "__builtin__.eval" }, /* not mapped from 3 on */
    { "cposix\nsystem\n.", "posix.system" },
    { "(S'ls'\nios\nsystem\n.", "os.system('ls')" },
    { "(cos\nsystem\nS'ls'\no.", "os.system('ls')" },
    { "cm\nC\n)\x81}S'a'\nI1\nsb.", "m.C()" },
    { "cm\nC\n)}\x92.", "m.C()" },
    { "\x8c\x02os\x94\x8c\x06system\x94\x93.", "os.system" },
    { "cm\nC\n(I1\ntR(I2\nI3\ne.", "m.C(1)" },
    { "P123\n.", "persistent('123')" },
    { "(I1\ntQ.", "persistent((1,))" },
    { "I1\np7\n0g7\n.", "1" },
    { "I1\nr\xff\xff\xff\xff"
      "0j\xff\xff\xff\xff.",
      "1" },
    { "cm\nf\n)Rcm\nf\n)R\x93.", "?.?" }, /* a name that only a call would give */
};

static void spells_every_opcode(void **state)
{
    fixture *f = *state;
    char shown[200];
    tnf_pickle p;
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++) {
        size_t n = strlen(spelled[i].pickle);
        if (load_bytes(f, &p, spelled[i].pickle, n) != TNF_OK)
            fail_msg("case %zu: %s", i, f->e.message);
        tnf_pickle_show(shown, sizeof shown, p.root);
        assert_string_equal(shown, spelled[i].shown);
    }
}

static void refuses_with_the_byte(void **state)
{
    static const struct {
        const char *hex;
        tnf_status status;
        uint64_t at;
    } cases[] = {
        { "", TNF_ETRUNCATED, 0 },
        { "80", TNF_ETRUNCATED, 0 },
        { "8006", TNF_EUNSUPPORTED, 0 },
        { "4e", TNF_ETRUNCATED, 1 },
        { "2e", TNF_EFORMAT, 0 },                      /* STOP on an empty stack */
        { "ff", TNF_EFORMAT, 0 },                      /* no opcode */
        { "52", TNF_EFORMAT, 0 },                      /* REDUCE on an empty stack */
        { "4e28 61", TNF_EFORMAT, 2 },                 /* APPEND across a mark */
        { "4e4e74", TNF_EFORMAT, 2 },                  /* TUPLE without a mark */
        { "7d284e75", TNF_EFORMAT, 3 },                /* SETITEMS of one */
        { "4e4e61", TNF_EFORMAT, 2 },                  /* APPEND to None */
        { "4e4e62", TNF_EFORMAT, 2 },                  /* BUILD of None */
        { "5d7d62", TNF_EFORMAT, 2 },                  /* BUILD of a list */
        { "4e2952", TNF_EFORMAT, 2 },                  /* None is called */
        { "630a0a4e52", TNF_EFORMAT, 4 },              /* with None as arguments */
        { "6805", TNF_EFORMAT, 0 },                    /* GET of an unset entry */
        { "5801000000ff", TNF_EFORMAT, 0 },            /* not UTF-8 */
        { "5805000000ff", TNF_ETRUNCATED, 0 },         /* too long */
        { "8d000000000000004061", TNF_ETRUNCATED, 0 }, /* 2^62 bytes */
        { "8bffffffff", TNF_EFORMAT, 0 },              /* LONG4 of -1 bytes */
        { "95ff00000000000000", TNF_ETRUNCATED, 0 },   /* FRAME beyond the end */
        { "97", TNF_EUNSUPPORTED, 0 },
        { "98", TNF_EUNSUPPORTED, 0 },
        { "8201", TNF_EUNSUPPORTED, 0 },
        { "4e4e93", TNF_EFORMAT, 2 },
        { "49780a", TNF_EFORMAT, 0 },    /* I x */
        { "49303a", TNF_ETRUNCATED, 0 }, /* no line feed */
        { "467878790a", TNF_EFORMAT, 0 },
        { "53610a", TNF_EFORMAT, 0 },     /* no quotes */
        { "53275c270a", TNF_EFORMAT, 0 }, /* an escape without its end */
        { "565c75310a", TNF_EFORMAT, 0 },
        { "63ff0a0a", TNF_EFORMAT, 0 },
        { "2863", TNF_ETRUNCATED, 1 },
        { "286f", TNF_EFORMAT, 1 },
        { "630a0a29524e624e62", TNF_EUNSUPPORTED, 8 }, /* BUILD twice */
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tnf_pickle p;
        tnf_status status = load_hex(f, &p, cases[i].hex);
        if (status != cases[i].status || f->e.offset != BASE + cases[i].at)
            fail_msg("%s: %s at %llu: %s", cases[i].hex, tnf_status_name(status),
                     (unsigned long long)f->e.offset - BASE, f->e.message);
    }
}

static void keeps_identity(void **state)
{
    fixture *f = *state;
    tnf_pickle p;
    /* a list that contains itself, twice */
    assert_int_equal(load_hex(f, &p, "5d7100286800680065 2e"), TNF_OK);
    assert_int_equal(p.root->n, 2);
    assert_ptr_equal(p.root->as.items[0], p.root);
    assert_ptr_equal(p.root->as.items[1], p.root);
    char shown[40];
    tnf_pickle_show(shown, sizeof shown, p.root); /* it ends */
    assert_int_equal(strlen(shown), 39);
}

static void logs_what_came_before_a_fault(void **state)
{
    static const char text[] = "cos\nsystem\n(S'ls'\ntR\xff";
    fixture *f = *state;
    tnf_pickle p;
    assert_int_equal(load_bytes(f, &p, text, sizeof text - 1), TNF_EFORMAT);
    assert_int_equal(p.calls.n, 1);
    assert_int_equal(p.globals.n, 1);
    assert_true(tnf_pickle_is_call(p.calls.nodes[0], "os", "system"));
    assert_true(tnf_pickle_is_text(tnf_pickle_arg(p.calls.nodes[0], 0), "ls"));
    assert_null(tnf_pickle_arg(p.calls.nodes[0], 1));
}

static void stays_small(void **state)
{
    fixture *f = *state;
    size_t n = 300000;
    uint8_t *deep = malloc(n);
    tnf_pickle p;
    memset(deep, 0x85, n); /* nested tuples */
    deep[0] = 'N';
    deep[n - 1] = '.';
    assert_int_equal(load_bytes(f, &p, deep, n), TNF_OK);
    /* memo numbers far apart, each one new */
    for (size_t i = 0; i + 5 <= n - 2; i += 5) {
        deep[i] = 'r';
        tnf_put_le32(deep + i + 1, (uint32_t)(i * 2654435761u) | 1u << 31);
    }
    memmove(deep + 1, deep, n - 2);
    deep[0] = 'N';
    deep[n - 1] = '.';
    assert_int_equal(load_bytes(f, &p, deep, n), TNF_OK);
    assert_true(f->arena.total < 40u << 20);
    free(deep);
}

static void turns_integers(void **state)
{
    fixture *f = *state;
    tnf_pickle p;
    tnf_str text;
    assert_int_equal(load_hex(f, &p, "8a0a 6cfc9c46f9206aa850192e"), TNF_OK);
    assert_true(tnf_pickle_big_text(&text, p.root, &f->arena));
    assert_text(text, "119547037146038801333356");
    assert_int_equal(load_bytes(f, &p, "L-1267650600228229401496703205376L\n.", 36), TNF_OK);
    assert_true(tnf_pickle_big_text(&text, p.root, &f->arena));
    assert_text(text, "-1267650600228229401496703205376");
    assert_int_equal(load_hex(f, &p, "8a002e"), TNF_OK);
    assert_int_equal(p.root->as.i, 0);
    assert_int_equal(load_hex(f, &p, "8a09ffffffffffffffffff2e"), TNF_OK);
    assert_int_equal(p.root->kind, TNF_PICKLE_INT);
    assert_int_equal(p.root->as.i, -1);
}

static void survives_lack_of_memory(void **state)
{
    static const char text[] = "}X\x01\0\0\0ar\xff\xff\xff\xff]q\x01(K\x01K\x02"
                               "ecm\nf\n(L12L\ntRq\x02"
                               "dsQ.";
    fixture *f = *state;
    tnf_pickle p;
    for (uint64_t limit = 0; limit < 40000; limit += 512) {
        f->arena.limit = f->arena.total + limit;
        tnf_status status = load_bytes(f, &p, text, sizeof text - 1);
        assert_true(status == TNF_OK || status == TNF_ELIMIT || status == TNF_EFORMAT);
    }
}

/* From Python's module _compat_pickle. */
static void knows_python_2(void **state)
{
    (void)state;
    static const char *const pairs[][4] = {
        { "__builtin__", "xrange", "builtins", "range" },
        { "__builtin__", "eval", "builtins", "eval" },
        { "itertools", "izip", "builtins", "zip" },
        { "itertools", "chain", "itertools", "chain" },
        { "urllib", "urlopen", "urllib.request", "urlopen" },
        { "cPickle", "loads", "pickle", "loads" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        tnf_pickle_global g = { .module = { pairs[i][0], strlen(pairs[i][0]) },
                                .name = { pairs[i][1], strlen(pairs[i][1]) } };
        tnf_pickle_rename(&g);
        assert_int_equal(g.module.n, strlen(pairs[i][2]));
        assert_memory_equal(g.module.p, pairs[i][2], g.module.n);
        assert_int_equal(g.name.n, strlen(pairs[i][3]));
        assert_memory_equal(g.name.p, pairs[i][3], g.name.n);
    }
}

/* A dict may have a state, too, and keeps its items. */
static void builds_dicts(void **state)
{
    fixture *f = *state;
    static const char text[] = "\x80\x02}q\x01(K\x01K\x02u}K\x03K\x04sbK\x05K\x06s0h\x01.";
    tnf_pickle p;
    assert_int_equal(load_bytes(f, &p, text, sizeof text - 1), TNF_OK);
    assert_true(tnf_pickle_is_call(p.root, "builtins", "dict"));
    assert_int_equal(p.root->as.call->dict->n, 4);
    assert_non_null(p.root->as.call->state);
    assert_int_equal(p.root->as.call->state->kind, TNF_PICKLE_DICT);
    assert_int_equal(p.calls.n, 0); /* nothing is called */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(agrees_with_python, set_up, tear_down),
        cmocka_unit_test_setup_teardown(spells_every_opcode, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_with_the_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_identity, set_up, tear_down),
        cmocka_unit_test_setup_teardown(logs_what_came_before_a_fault, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stays_small, set_up, tear_down),
        cmocka_unit_test_setup_teardown(turns_integers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_digits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(builds_dicts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_lack_of_memory, set_up, tear_down),
        cmocka_unit_test(knows_python_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
