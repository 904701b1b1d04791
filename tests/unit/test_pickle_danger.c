/* SPDX-License-Identifier: MIT */
/* Names in a pickle that would be dangerous to call, and names that are only data. */
#include "wire_fixture.h"

#include "wire/pickle.h"

/* The node of module.name, the only one in the pickle. */
static const tnf_pickle_node *name_node(fixture *f, const char *module, const char *name)
{
    static char text[400];
    tnf_pickle p;
    int n = snprintf(text, sizeof text, "c%s\n%s\n.", module, name);
    assert_int_equal(tnf_pickle_read(&p, text, (size_t)n, 0, &f->arena, &f->e), TNF_OK);
    assert_int_equal(p.root->kind, TNF_PICKLE_GLOBAL);
    return p.root;
}

static void knows_danger(void **state)
{
    static const char *const names[][2] = {
        { "posix", "system" },
        { "os.path", "exists" },
        { "__builtin__", "eval" },
        { "io", "open" },
        { "_io", "open" },
        { "codecs", "open" },
        { "_ctypes", "dlopen" },
        { "uuid", "_get_command_stdout" },
        { "numpy", "load" },
        { "numpy", "save" },
        { "numpy", "fromfile" },
        { "numpy", "memmap" },
        { "numpy.lib.npyio", "load" },
        { "numpy.lib._npyio_impl", "load" },
        { "numpy.compat.py3k", "npy_load_module" },
        { "numpy.core.memmap", "memmap" },
        { "torch", "save" },
        { "torch.utils.collect_env", "run" },
        { "torch.storage", "_load_from_bytes" },
        { "transformers", "from_pretrained" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tnf_pickle_node *node = name_node(*state, names[i][0], names[i][1]);
        if (!tnf_pickle_dangerous(node) || tnf_pickle_plain(node))
            fail_msg("%s.%s", names[i][0], names[i][1]);
    }
}

static void knows_data(void **state)
{
    static const char *const names[][2] = {
        { "__builtin__", "set" },
        { "datetime", "datetime" },
        { "pathlib", "PosixPath" },
        { "uuid", "UUID" },
        { "decimal", "Decimal" },
        { "numpy", "dtype" },
        { "numpy.core.multiarray", "_reconstruct" },
        { "numpy._core.multiarray", "scalar" },
        { "numpy.random._pickle", "__randomstate_ctor" },
        { "numpy.dtypes", "Float64DType" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!tnf_pickle_plain(name_node(*state, names[i][0], names[i][1])))
            fail_msg("%s.%s", names[i][0], names[i][1]);
}

/* Neither dangerous nor harmless: classes of data in a module do not make its functions safe. */
static void knows_no_more(void **state)
{
    static const char *const names[][2] = {
        { "uuid", "getnode" },       { "datetime", "sys" },           { "numpy", "vectorize" },
        { "numpy.linalg", "inv" },   { "torchevil", "FloatStorage" }, { "osmium", "system" },
        { "decimal", "getcontext" }, { "numpyx", "dtype" },           { "numpy.dtype", "x" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tnf_pickle_node *node = name_node(*state, names[i][0], names[i][1]);
        if (tnf_pickle_dangerous(node) || tnf_pickle_plain(node))
            fail_msg("%s.%s", names[i][0], names[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(knows_danger, set_up, tear_down),
        cmocka_unit_test_setup_teardown(knows_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(knows_no_more, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
