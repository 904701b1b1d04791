/* SPDX-License-Identifier: MIT */
/* Values of enumerations, and flags, that this version of the library does not know. A later
 * version may give them a meaning, so a program that uses them is newer, and must be told:
 * TNF_EINVAL. */
#include "support/unit.h"

#include "support/files.h"
#include <tenfold/build.h>
#include <tenfold/device.h>
#include <tenfold/diff.h>
#include <tenfold/remote.h>
#include <tenfold/shards.h>
#include <tenfold/virtual.h>

#define ODD 77

static struct {
    tnf_builder *b;
    tnf_file *file;
    const tnf_object *w;
} x;

static int set_up(void **state)
{
    static const float data[4];
    static const uint64_t shape[] = { 2, 2 };
    tnf_error e;
    (void)state;
    assert_ok(tnf_builder_new(&x.b, NULL, &e));
    assert_ok(tnf_builder_add(x.b, "w", tnf_type_of(TNF_F32), 2, shape, data, &e));
    assert_ok(tnf_open_builder(&x.file, x.b, NULL, &e));
    x.w = tnf_find(x.file, "w");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tnf_close(x.file);
    tnf_builder_free(x.b);
    return 0;
}

static void sources_and_sinks(void **state)
{
    (void)state;
    tnf_error e;
    tnf_file *file;
    tnf_source *source;
    tnf_sink *sink;
    tnf_open_options how = TNF_OPEN_INIT;
    how.access = (tnf_access)ODD;
    assert_fails(tnf_open(&file, "/dev/null", &how, &e), TNF_EINVAL);
    assert_says("'access' has the value 77");
    assert_fails(tnf_source_file(&source, "/dev/null", (tnf_access)ODD, &e), TNF_EINVAL);
    assert_says("'access' has the value 77");
    assert_fails(tnf_source_fd(&source, 0, (tnf_access)ODD, &e), TNF_EINVAL);
    assert_says("'access' has the value 77");
    assert_fails(tnf_sink_file(&sink, "must-not-appear", TNF_SINK_REPLACE | 0x80, &e), TNF_EINVAL);
    assert_says("'flags' has the value 128");
}

static void diff_options(void **state)
{
    (void)state;
    tnf_error e;
    tnf_diff_result result = TNF_DIFF_RESULT_INIT;
    tnf_diff_options how = TNF_DIFF_INIT;
    how.ignore = 31;
    assert_ok(tnf_diff(&result, x.file, x.file, &how, &e));
    how.ignore = 32 | TNF_DIFF_IGNORE_ATTRS;
    assert_fails(tnf_diff(&result, x.file, x.file, &how, &e), TNF_EINVAL);
    assert_says("'ignore' has the value 32");
}

static void merge_rules(void **state)
{
    (void)state;
    tnf_error e;
    const tnf_file *files[] = { x.file };
    tnf_merge_options how = TNF_MERGE_INIT;
    how.tensors = (tnf_clash)ODD;
    assert_fails(tnf_builder_merge(x.b, files, NULL, 1, &how, &e), TNF_EINVAL);
    assert_says("'tensors' has the value 77");
    how.tensors = TNF_CLASH_SAME;
    how.attrs = (tnf_clash)ODD;
    assert_fails(tnf_builder_merge(x.b, files, NULL, 1, &how, &e), TNF_EINVAL);
    assert_says("'attrs' has the value 77");
    how.attrs = TNF_CLASH_SAME;
    assert_fails(tnf_builder_merge(x.b, files, NULL, 1, &how, &e), TNF_EINVAL);
    assert_says("TNF_CLASH_FIRST");
}

static void virtual_tensors(void **state)
{
    (void)state;
    tnf_error e;
    tnf_virtual *v;
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    how.kind = (tnf_virtual_kind)ODD;
    assert_fails(tnf_virtual_new(&v, &x.w, 1, &how, &e), TNF_EINVAL);
    how.kind = TNF_VIRTUAL_ORDER;
    how.order = (tnf_order)ODD;
    assert_fails(tnf_virtual_new(&v, &x.w, 1, &how, &e), TNF_EINVAL);
    assert_says("'order' has the value 77");
}

static void load_options(void **state)
{
    (void)state;
    tnf_error e;
    tnf_device *host;
    tnf_load *load;
    const tnf_device_request request = { .object = x.w };
    tnf_load_options how = TNF_LOAD_INIT;
    assert_ok(tnf_device_open(&host, "host", NULL, &e));
    how.read = (tnf_device_read_mode)ODD;
    assert_fails(tnf_device_start(&load, host, &request, 1, &how, &e), TNF_EINVAL);
    assert_says("'read' has the value 77");
    how.read = TNF_DEVICE_READ_CACHED;
    how.alloc = (tnf_device_alloc)ODD;
    assert_fails(tnf_device_start(&load, host, &request, 1, &how, &e), TNF_EINVAL);
    assert_says("'alloc' has the value 77");
    tnf_device_close(host);
}

/* A tensor made by hand. */
static void made_objects(void **state)
{
    (void)state;
    tnf_error e;
    float out[4];
    const tnf_slice all[] = { { .step = 1, .count = 2 }, { .step = 1, .count = 2 } };
    tnf_part part = x.w->parts[0];
    tnf_object o = *x.w;
    o.parts = &part;
    o.order = (tnf_order)ODD;
    assert_fails(tnf_read_slice(out, sizeof out, &o, all, &e), TNF_EINVAL);
    assert_says("'order' has the value 77");
    o.order = TNF_ORDER_C;
    part.flags = 0x80;
    assert_fails(tnf_read_part(out, sizeof out, &part, 0, &e), TNF_EINVAL);
    assert_says("'flags' has the value 128");
    part.flags = 0;
    part.payload = ODD;
    assert_fails(tnf_read_part(out, sizeof out, &part, 0, &e), TNF_EINVAL);
}

int main(void)
{
#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_FILE(sources_and_sinks), WITH_FILE(diff_options), WITH_FILE(merge_rules),
        WITH_FILE(virtual_tensors),   WITH_FILE(load_options), WITH_FILE(made_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
