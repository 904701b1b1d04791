/* SPDX-License-Identifier: MIT */
/* Each public function gets NULL for one pointer, while its other parameters are valid. It must not
 * crash, and if it returns a status, that is TNF_EINVAL. A pointer that it returns is then NULL.
 * null_calls.py makes the calls from the headers. Each call runs in a process of its own, so the
 * test can list all crashes. Further cases have NULL in arrays and structs. */
#include "support/unit.h"

#include "support/callbacks.h"
#include "support/files.h"
#include "support/little.h"
#include <signal.h>
#include <sys/wait.h>
#include <tenfold/bind.h>
#include <tenfold/convert.h>
#include <tenfold/device.h>
#include <tenfold/diff.h>
#include <tenfold/jobs.h>
#include <tenfold/params.h>
#include <tenfold/points.h>
#include <tenfold/primitiv.h>
#include <tenfold/remote.h>
#include <tenfold/repair.h>
#include <tenfold/stat.h>
#include <tenfold/value.h>
#include <tenfold/virtual.h>
#include <unistd.h>

static const float matrix[] = { 1, 2, 3, 4 };

/* A valid object of every kind. */
static struct {
    tnf_file *file;
    const tnf_file *a_file;
    const tnf_object *object;
    tnf_builder *builder;
    tnf_emb *emb;
    tnf_points *points;
    tnf_params *params;
    const tnf_param *param;
    const tnf_derived *form;
    tnf_derive derive;
    tnf_device *device;
    tnf_load *load;
    tnf_device_memory *memory;
    tnf_job *job;
    tnf_virtual *virtual;
    tnf_source *source;
    tnf_sink *sink;
    tnf_report *report;

    tnf_value value;
    tnf_extra extra;
    tnf_point point;
    tnf_device_request request;
    tnf_str word, words[3];
    uint64_t shape[2];
    tnf_slice slices[2];
    tnf_request read;
    tnf_member member;
    tnf_binding binding;
    tnf_primitiv_binding weight;
    tnf_primitiv_config config;
    tnf_space space;
    tnf_source_ops source_ops;
    tnf_sink_ops sink_ops;
    tnf_scheme scheme;
    tnf_job_options plan;
    tnf_virtual_how how;
    tnf_save_options save;
    tnf_convert_options convert;
    tnf_split_options split;
    tnf_emb_query query;
    tnf_id id;
    const char *a_name;
    const char *a_path;
    const char *path, *nowhere;
    float floats[4];
    double doubles[4];
    void *out;
    uint64_t bytes[512];
    char paths[3][4096];
} x;

static tnf_status fetch_bytes(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    (void)ctx, (void)offset, (void)e;
    memset(dst, 0, n);
    return TNF_OK;
}

static tnf_status take_bytes(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    (void)ctx, (void)bytes, (void)n, (void)e;
    return TNF_OK;
}

static tnf_status take_ngram(void *ctx, tnf_str ngram, uint64_t row, tnf_error *e)
{
    (void)ctx, (void)ngram, (void)row, (void)e;
    return TNF_OK;
}

static void see_move(void *ctx, uint64_t from, uint64_t to)
{
    (void)ctx, (void)from, (void)to;
}

static void see_fault(void *ctx, const tnf_error *problem)
{
    (void)ctx, (void)problem;
}

static void see_binding(void *ctx, const tnf_binding *binding, const tnf_error *why)
{
    (void)ctx, (void)binding, (void)why;
}

static tnf_status open_nothing(void *ctx, tnf_source **out, const char *url, tnf_error *e)
{
    (void)ctx, (void)url;
    return tnf_source_memory(out, "", 0, e);
}

static tnf_status read_nothing(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    return fetch_bytes(ctx, offset, dst, n, e);
}

static void *sized_result(size_t size)
{
    memcpy(x.bytes, &size, sizeof size);
    return x.bytes;
}

#include "null_calls.h"

/* Words and their vectors, in a file that can be mapped. */
static void make_files(tnf_error *e)
{
    static const char text[] = "3 2\na 1 2\nb 3 4\nc 5 6\n";
    tnf_convert_options how = TNF_CONVERT_INIT;
    tnf_space space = TNF_SPACE_INIT;
    snprintf(x.paths[0], sizeof x.paths[0], "%s/nulls.zt", files_temp());
    snprintf(x.paths[1], sizeof x.paths[1], "%s/nulls.vsdb", files_temp());
    snprintf(x.paths[2], sizeof x.paths[2], "%s/none/none.zt", files_temp());
    x.path = x.a_path = x.paths[0];
    x.nowhere = x.paths[2];
    assert_int_equal(tnf_source_memory(&x.source, text, sizeof text - 1, e), TNF_OK);
    assert_int_equal(tnf_open_source(&x.file, x.source, NULL, e), TNF_OK);
    x.a_file = x.file;
    assert_int_equal(tnf_convert(&x.report, &x.a_file, 1, x.path, &how, e), TNF_OK);
    tnf_close(x.file);
    space.type = tnf_type_of(TNF_F32);
    space.scalar = true;
    x.space = space;
    assert_int_equal(tnf_points_create(&x.points, x.paths[1], &space, NULL, e), TNF_OK);
}

static tnf_status make_form(void *ctx, void **data, size_t *nbytes, const tnf_param *param,
                            tnf_error *e)
{
    (void)ctx, (void)param, (void)e;
    *data = NULL;
    *nbytes = 0;
    return TNF_OK;
}

static void make_handles(tnf_error *e)
{
    assert_int_equal(tnf_open(&x.file, x.path, NULL, e), TNF_OK);
    x.a_file = x.file;
    x.object = tnf_find(x.file, "embeddings");
    assert_non_null(x.object);
    assert_int_equal(tnf_builder_new(&x.builder, NULL, e), TNF_OK);
    assert_int_equal(tnf_builder_add_object(x.builder, x.object, NULL, e), TNF_OK);
    assert_int_equal(tnf_emb_open(&x.emb, x.file, NULL, e), TNF_OK);
    assert_int_equal(tnf_params_new(&x.params, x.file, NULL, e), TNF_OK);
    assert_int_equal(tnf_params_load(&x.param, x.params, "embeddings", e), TNF_OK);
    x.derive = (tnf_derive)TNF_DERIVE_INIT;
    x.derive.kind = "k";
    x.derive.make = make_form;
    assert_int_equal(tnf_params_derive(&x.form, x.params, "embeddings", &x.derive, e), TNF_OK);
    x.id = x.form->key;
    assert_int_equal(tnf_device_open(&x.device, "host", NULL, e), TNF_OK);
    x.request.object = x.object;
    assert_int_equal(tnf_device_load(&x.load, x.device, &x.request, 1, NULL, e), TNF_OK);
    x.memory = tnf_load_keep(x.load, 0, 0);
    assert_non_null(x.memory);
    x.plan = (tnf_job_options)TNF_JOB_INIT;
    x.plan.job = "hash";
    x.plan.inputs = &x.a_path;
    x.plan.ninputs = 1;
    x.plan.parts = 1;
    assert_int_equal(tnf_job_plan(&x.job, &x.plan, e), TNF_OK);
    x.how = (tnf_virtual_how)TNF_VIRTUAL_HOW_INIT;
    x.how.kind = TNF_VIRTUAL_CAST;
    x.how.type = tnf_type_of(TNF_F16);
    assert_int_equal(tnf_virtual_new(&x.virtual, &x.object, 1, &x.how, e), TNF_OK);
    assert_int_equal(tnf_source_memory(&x.source, matrix, sizeof matrix, e), TNF_OK);
    assert_int_equal(tnf_sink_memory(&x.sink, e), TNF_OK);
}

static void make_structs(void)
{
    x.value = tnf_value_uint(1);
    x.extra.key = (tnf_str)TNF_STR("x.extra");
    x.extra.bytes.payload = TNF_MEMORY;
    x.point.vector = matrix;
    x.point.vector_n = 4;
    x.word = (tnf_str)TNF_STR("a");
    x.words[0] = x.words[1] = x.words[2] = x.word;
    x.slices[0] = x.slices[1] = (tnf_slice) { 0, 1, 2, false };
    x.read = (tnf_request) { x.object->parts, x.floats };
    x.member = tnf_member_of("k", x.value);
    x.binding = (tnf_binding)TNF_BINDING_INIT;
    x.binding.name = "embeddings";
    x.weight.path = &x.word;
    x.weight.n = 1;
    x.weight.data = x.floats;
    x.config.key = (tnf_str)TNF_STR("Adam.alpha");
    x.source_ops = (tnf_source_ops) { .version = TNF_SOURCE_OPS_VERSION, .read_at = read_nothing };
    x.sink_ops = (tnf_sink_ops) { .version = TNF_SINK_OPS_VERSION, .write = take_bytes };
    x.scheme = (tnf_scheme) { sizeof x.scheme, "nulls", open_nothing, NULL };
    x.a_name = "embeddings";
    x.shape[0] = x.shape[1] = 2;
    x.save = (tnf_save_options)TNF_SAVE_INIT;
    x.save.format = "ztensor2";
    x.save.like = x.file;
    x.convert = (tnf_convert_options)TNF_CONVERT_INIT;
    x.convert.save = &x.save;
    x.split = (tnf_split_options)TNF_SPLIT_INIT;
    x.split.format = "ztensor2";
    x.split.max_bytes = 1 << 20;
    x.query = (tnf_emb_query)TNF_EMB_QUERY_INIT;
    x.query.k = 1;
}

static int set_up(void **state)
{
    tnf_error e;
    (void)state;
    make_files(&e);
    make_handles(&e);
    make_structs();
    return 0;
}

static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

enum { PASSED, WRONG_STATUS, NO_MESSAGE, NOT_NULL };

/* Runs in a process of its own. */
static int judge_call(size_t i)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    for (size_t k = 0; k < sizeof crashes / sizeof *crashes; k++)
        signal(crashes[k], SIG_DFL); /* cmocka would go on in the child */
    x.out = &x;                      /* not a handle that could be freed */
    tnf_status status = make_call(i, &e);
    if (status != TNF_OK && cases[i].returned && x.out)
        return NOT_NULL;
    if (!strchr(cases[i].name, '.')) /* without NULL */
        return status == TNF_EINVAL && !cases[i].optional ? WRONG_STATUS : PASSED;
    if (cases[i].optional)
        return PASSED;
    return status != TNF_EINVAL ? WRONG_STATUS : !e.message[0] ? NO_MESSAGE : PASSED;
}

static void every_pointer(void **state)
{
    size_t bad = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int how;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(judge_call(i));
        assert_int_equal(waitpid(child, &how, 0), child);
        if (WIFEXITED(how) && WEXITSTATUS(how) == PASSED)
            continue;
        bad++;
        if (WIFSIGNALED(how))
            print_message("%s: NULL crashes, signal %d\n", cases[i].name, WTERMSIG(how));
        else if (WEXITSTATUS(how) == NOT_NULL)
            print_message("%s: fails, but the result is not NULL\n", cases[i].name);
        else if (WEXITSTATUS(how) == NO_MESSAGE)
            print_message("%s: NULL is refused without a message\n", cases[i].name);
        else if (strchr(cases[i].name, '.'))
            print_message("%s: NULL is not refused as TNF_EINVAL\n", cases[i].name);
        else
            print_message("%s: good values are refused as TNF_EINVAL\n", cases[i].name);
    }
    assert_int_equal(bad, 0);
}

/* NULL within an array, and for the bytes of a value. */
static void every_item(void **state)
{
    tnf_error e;
    tnf_job *job;
    tnf_load *load;
    tnf_report *report;
    tnf_virtual *virtual;
    const tnf_file *const files[] = { x.file, NULL };
    const tnf_object *const objects[] = { NULL };
    const char *const names[] = { "embeddings", NULL };
    const tnf_str texts[] = { TNF_STR("embeddings"), { NULL, 1 } };
    const tnf_request read = { NULL, x.floats };
    const tnf_device_request request = { .object = NULL };
    tnf_binding binding = TNF_BINDING_INIT;
    tnf_job_options plan = x.plan;
    (void)state;
    assert_fails(tnf_builder_merge(x.builder, files, NULL, 2, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_convert(&report, files, 2, x.nowhere, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_virtual_new(&virtual, objects, 1, &x.how, &e), TNF_EINVAL);
    assert_fails(tnf_params_ahead(x.params, texts, 2, &e), TNF_EINVAL);
    assert_fails(tnf_read_many(&read, 1, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_device_load(&load, x.device, &request, 1, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_bind(x.file, &binding, 1, NULL, NULL, &e), TNF_EINVAL);
    plan.inputs = &names[1];
    assert_fails(tnf_job_plan(&job, &plan, &e), TNF_EINVAL);
    tnf_device *const devices[] = { x.device, NULL };
    assert_fails(tnf_device_start_many(&load, devices, 2, &x.request, 1, NULL, &e), TNF_EINVAL);
}

static const tnf_str bad_text = { NULL, 3 };

/* Lists in options: an array that is NULL, and NULL in an array. */
static void every_list(void **state)
{
    tnf_error e;
    tnf_file *file;
    tnf_job *job;
    tnf_report *report;
    const char *const nothing[] = { NULL };
    const tnf_option unnamed = { NULL, "1" }, empty = { "a", NULL };
    const tnf_member member = { .key = bad_text };
    (void)state;
    for (int i = 0; i < 3; i++) {
        const tnf_option *options = i == 0 ? NULL : i == 1 ? &unnamed : &empty;
        tnf_open_options open = TNF_OPEN_INIT;
        tnf_job_options plan = x.plan;
        tnf_fetch_options fetch = TNF_FETCH_INIT;
        tnf_save_options save = TNF_SAVE_INIT;
        open.options = plan.options = fetch.options = save.options = options;
        open.noptions = plan.noptions = fetch.noptions = save.noptions = 1;
        assert_fails(tnf_open(&file, x.path, &open, &e), TNF_EINVAL);
        assert_fails(tnf_open(&file, "http://127.0.0.1:1/x.zt", &open, &e), TNF_EINVAL);
        assert_fails(tnf_job_plan(&job, &plan, &e), TNF_EINVAL);
        assert_fails(tnf_fetch("http://127.0.0.1:1/x", x.nowhere, &fetch, &e), TNF_EINVAL);
        assert_fails(tnf_save(x.builder, "x.safetensors", &save, &e), TNF_EINVAL);
        tnf_convert_options how = TNF_CONVERT_INIT;
        how.select = i == 1 ? nothing : NULL;
        how.nselect = i < 2;
        how.set = i == 2 ? &member : NULL;
        how.nset = i == 2;
        assert_fails(tnf_convert(&report, &x.a_file, 1, x.nowhere, &how, &e), TNF_EINVAL);
        tnf_report_free(report);
    }
    tnf_url_options url = TNF_URL_INIT;
    tnf_open_options open = TNF_OPEN_INIT;
    open.remote = &url;
    url.nheaders = 1;
    assert_fails(tnf_open(&file, "http://127.0.0.1:1/x.zt", &open, &e), TNF_EINVAL);
    url.headers = nothing;
    assert_fails(tnf_open(&file, "http://127.0.0.1:1/x.zt", &open, &e), TNF_EINVAL);
    tnf_job_how finish = TNF_JOB_HOW_INIT;
    tnf_str result;
    finish.nreceipts = 1;
    assert_fails(tnf_job_finish(&result, x.job, &finish, &e), TNF_EINVAL);
    finish.receipts = &bad_text;
    assert_fails(tnf_job_finish(&result, x.job, &finish, &e), TNF_EINVAL);
    tnf_emb_query query = x.query;
    tnf_emb_hit hit;
    size_t n;
    query.nskip = 1;
    assert_fails(tnf_emb_similar(&hit, &n, NULL, x.emb, &x.word, 1, &query, &e), TNF_EINVAL);
}

/* Texts and lists in structs and arrays of the caller, without memory. */
static void every_text(void **state)
{
    tnf_error e;
    const tnf_object *found;
    const tnf_value *value;
    char text[32], memory[8];
    float vector[2];
    tnf_points *points;
    const tnf_value bad_value = tnf_value_text(NULL, 3), bad_array = tnf_value_array(NULL, 1);
    (void)state;
    tnf_object object = *x.object;
    object.name = bad_text;
    assert_fails(tnf_builder_add_object(x.builder, &object, NULL, &e), TNF_EINVAL);
    object = *x.object;
    object.parts = NULL;
    assert_fails(tnf_builder_add_object(x.builder, &object, "p", &e), TNF_EINVAL);
    tnf_extra extra = { .key = bad_text };
    assert_fails(tnf_builder_add_extra(x.builder, &extra, &e), TNF_EINVAL);
    tnf_space space = x.space;
    space.scalar = false;
    space.rank = 1;
    assert_fails(tnf_points_create(&points, x.nowhere, &space, NULL, &e), TNF_EINVAL);
    const float one = 1;
    tnf_point point = { .vector = &one, .vector_n = sizeof one, .app = bad_text };
    assert_fails(tnf_points_append(NULL, x.points, &point, 1, &e), TNF_EINVAL);
    assert_fails(tnf_points_value(&value, x.points, &point, &e), TNF_EINVAL);
    point.app = (tnf_str) { NULL, 0 };
    point.value = &bad_value;
    assert_fails(tnf_points_append(NULL, x.points, &point, 1, &e), TNF_EINVAL);
    point.value = &bad_array;
    assert_fails(tnf_points_append(NULL, x.points, &point, 1, &e), TNF_EINVAL);
    assert_fails(tnf_emb_vectors(vector, NULL, x.emb, &bad_text, 1, &e), TNF_EINVAL);
    assert_fails(tnf_emb_select(x.builder, x.emb, &bad_text, 1, &e), TNF_EINVAL);
    assert_true(tnf_emb_find(x.emb, bad_text) == TNF_NO_ROW);
    assert_fails(tnf_primitiv_find(&found, x.file, &bad_text, 1, NULL, &e), TNF_EINVAL);
    assert_int_equal(tnf_primitiv_join(text, sizeof text, &bad_text, 1), 0);
    assert_int_equal(tnf_primitiv_split(NULL, 0, memory, bad_text), 1);
    assert_false(tnf_glob_match("*", bad_text));
    assert_int_equal(tnf_value_type(text, sizeof text, &bad_array), 5);
    tnf_value map = tnf_value_map(NULL, 1);
    assert_null(tnf_value_get(&map, "k"));
}

static void every_value(void **state)
{
    tnf_error e;
    tnf_builder *b;
    (void)state;
    assert_ok(tnf_builder_new(&b, NULL, &e));
    const tnf_value empty = tnf_value_text(NULL, 0), nothing = tnf_value_string(NULL);
    const tnf_member unnamed = { .key = { NULL, 1 }, .value = empty };
    const tnf_value bad[] = { tnf_value_text(NULL, 1), tnf_value_bytes(NULL, 1),
                              tnf_value_json(NULL, 1), tnf_value_array(NULL, 1),
                              tnf_value_map(NULL, 1),  tnf_value_map(&unnamed, 1) };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(tnf_builder_set(b, NULL, "k", &bad[i], &e), TNF_EINVAL);
    assert_int_equal(nothing.kind, TNF_NULL);
    assert_ok(tnf_builder_set(b, NULL, "k", &empty, &e));
    assert_ok(tnf_builder_set(b, NULL, "k", &nothing, &e));
    tnf_builder_free(b);
}

static tnf_status rename_to_nothing(void *ctx, tnf_str *out, tnf_str name, tnf_error *e)
{
    (void)ctx, (void)name, (void)e;
    *out = bad_text;
    return TNF_OK;
}

static void takes_no_object(const tnf_object *object)
{
    tnf_error e;
    float dst[4];
    char text[64];
    const tnf_slice slices[] = { { 0, 1, 1, false }, { 0, 1, 1, false } };
    tnf_strings strings = TNF_STRINGS_INIT;
    tnf_virtual *v;
    tnf_load *load;
    uint32_t axes;
    const tnf_device_request request = { .object = object };
    assert_fails(tnf_read(dst, sizeof dst, object, &e), TNF_EINVAL);
    assert_fails(tnf_read_slice(dst, 4, object, slices, &e), TNF_EINVAL);
    assert_fails(tnf_expect(object, NULL, TNF_ANY_RANK, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_strings_map(&strings, object, &e), TNF_EINVAL);
    assert_fails(tnf_builder_add_object(x.builder, object, "lacking", &e), TNF_EINVAL);
    assert_fails(tnf_virtual_new(&v, &object, 1, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_device_load(&load, x.device, &request, 1, NULL, &e), TNF_EINVAL);
    const tnf_part *part = tnf_object_part(object, "data");
    assert_true(part == NULL || part == object->parts);
    assert_null(tnf_why_unreadable(object));
    assert_null(tnf_missing_file(object));
    assert_false(tnf_has_element_text(&axes, object));
    const uint64_t bytes = tnf_slice_bytes(object, slices);
    assert_true(bytes == UINT64_MAX || bytes == sizeof *dst);
    assert_true(tnf_elements(object) <= 4);
    assert_in_range(tnf_shape_text(text, sizeof text, object), 2, 8);
}

static void takes_no_part(const tnf_part *part)
{
    tnf_error e;
    float dst[4];
    const void *view;
    const tnf_request request = { part, dst };
    assert_fails(tnf_read_part(dst, 4, part, 0, &e), TNF_EINVAL);
    assert_fails(tnf_scan(part, take_bytes, NULL, &e), TNF_EINVAL);
    assert_fails(tnf_map(&view, part, &e), TNF_EINVAL);
    assert_fails(tnf_read_many(&request, 1, NULL, &e), TNF_EINVAL);
    tnf_prefetch(part);
    tnf_evict(part);
}

/* Buffers that must get bytes. */
static void every_buffer(void **state)
{
    (void)state;
    tnf_error e;
    const tnf_object *o = x.object;
    const tnf_part *part = o->parts;
    size_t n = (size_t)part->nbytes;
    tnf_slice all[8] = { { 0 } };
    const tnf_request request = { .part = part };
    for (uint32_t d = 0; d < o->rank; d++)
        all[d] = (tnf_slice) { 0, 1, o->shape[d], false };
    assert_true(n > 0 && o->rank <= 8);
    assert_fails(tnf_read(NULL, n, o, &e), TNF_EINVAL);
    assert_says("'dst' is NULL");
    assert_fails(tnf_read_part(NULL, n, part, 0, &e), TNF_EINVAL);
    assert_fails(tnf_read_slice(NULL, n, o, all, &e), TNF_EINVAL);
    assert_says("'dst' is NULL");
    assert_fails(tnf_read_many(&request, 1, NULL, &e), TNF_EINVAL);
    assert_says("'dst' is NULL");
    assert_ok(tnf_read_part(NULL, 0, part, 0, &e));
}

/* Structs that the library usually fills, but the caller made: all 0, and without what they count.
 */
static void every_struct(void **state)
{
    (void)state;
    static const uint64_t dims[] = { 2, 2 };
    const tnf_layout *dense = tnf_layout_by_id("dense");
    const tnf_part nothing = { .role = NULL }, homeless = {
        .role = "data", .type = tnf_type_of(TNF_F32), .stored = 16, .nbytes = 16
    };
    const tnf_object lacking[] = {
        { .rank = 0 },
        { .layout = dense, .rank = 2, .nparts = 1 },
        { .layout = dense, .rank = 2, .nparts = 1, .shape = dims },
        { .layout = dense, .rank = 2, .nparts = 1, .shape = dims, .parts = &nothing },
        { .layout = dense, .rank = 2, .nparts = 1, .parts = &homeless },
        { .rank = 2, .nparts = 1, .shape = dims, .parts = &homeless },
    };
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        takes_no_object(&lacking[i]);
    takes_no_part(&nothing);
    takes_no_part(&homeless);
    const tnf_member member = { .key = bad_text };
    const tnf_value map = tnf_value_map(&member, 1), array = { .kind = TNF_ARRAY, .n = 2 };
    assert_null(tnf_value_get_n(&map, "abc", 3));
    assert_null(tnf_value_item(&array, 1));
    tnf_error e;
    tnf_diff_result result = TNF_DIFF_RESULT_INIT;
    tnf_diff_options diff = TNF_DIFF_INIT;
    diff.rename = rename_to_nothing;
    assert_fails(tnf_diff(&result, x.file, x.file, &diff, &e), TNF_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pointer), cmocka_unit_test(every_item),
        cmocka_unit_test(every_list),    cmocka_unit_test(every_text),
        cmocka_unit_test(every_value),   cmocka_unit_test(every_buffer),
        cmocka_unit_test(every_struct),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
