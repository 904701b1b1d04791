/* SPDX-License-Identifier: MIT */
/* Structs of options, with several sizes. Refused before any member is read: 0, one byte less than
 * in the first version, and impossible sizes. Accepted: the size of the first version, and a larger
 * size if all bytes after the known members are 0. If one of them is not 0, it is refused. */
#include "support/unit.h"

#include "base/sized.h"
#include "support/callbacks.h"
#include "support/files.h"
#include "support/little.h"
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
#include <tenfold/virtual.h>

/* No file can be made below this path, so calls with good options fail for another reason. */
#define NOWHERE "/nowhere/x.zt"

static const float matrix[] = { 1, 2, 3, 4 };
static const uint64_t shape[] = { 2, 2 };

static struct {
    tnf_sink *sink;
    tnf_builder *builder;
    tnf_file *file;
    tnf_emb *emb;
    tnf_device *device;
    tnf_device_request request;
    char path[4096], points[4096];
} x;

static int set_up(void **state)
{
    (void)state;
    tnf_error e;
    tnf_save_options how = TNF_SAVE_INIT;
    how.format = "ztensor2";
    how.replace = true;
    snprintf(x.path, sizeof x.path, "%s/option-sizes.zt", files_temp());
    snprintf(x.points, sizeof x.points, "%s/option-sizes.vsdb", files_temp());
    assert_ok(tnf_builder_new(&x.builder, NULL, &e));
    assert_ok(tnf_builder_add(x.builder, "embeddings", tnf_type_of(TNF_F32), 2, shape,
                              to_little(matrix, 4, 4), &e));
    assert_ok(tnf_save(x.builder, x.path, &how, &e));
    assert_ok(tnf_open(&x.file, x.path, NULL, &e));
    assert_ok(tnf_emb_open(&x.emb, x.file, NULL, &e));
    assert_ok(tnf_device_open(&x.device, "host", NULL, &e));
    x.request.object = tnf_find(x.file, "embeddings");
    assert_ok(tnf_sink_memory(&x.sink, &e));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tnf_device_close(x.device);
    tnf_emb_close(x.emb);
    tnf_close(x.file);
    tnf_builder_free(x.builder);
    tnf_sink_close(x.sink);
    return 0;
}

static tnf_source *bytes_of_nothing(tnf_error *e)
{
    tnf_source *source;
    assert_int_equal(tnf_source_memory(&source, "", 0, e), TNF_OK);
    return source;
}

/* Each of these functions calls one function with the options, and frees its result. */

#define BY_OPENING(name, type, close, ...)                                                         \
    static tnf_status name(const void *o, tnf_error *e)                                            \
    {                                                                                              \
        type *made = NULL;                                                                         \
        tnf_status status = __VA_ARGS__;                                                           \
        close(made);                                                                               \
        return status;                                                                             \
    }
BY_OPENING(by_open, tnf_file, tnf_close, tnf_open(&made, x.path, o, e))
BY_OPENING(by_open_builder, tnf_file, tnf_close, tnf_open_builder(&made, x.builder, o, e))
BY_OPENING(by_params, tnf_params, tnf_params_free, tnf_params_new(&made, x.file, o, e))

static tnf_status by_derive(const void *o, tnf_error *e)
{
    const tnf_derived *form;
    tnf_params *params;
    tnf_id id;
    tnf_status status;
    assert_int_equal(tnf_params_new(&params, x.file, NULL, e), TNF_OK);
    assert_int_equal(tnf_param_id(&id, "embeddings", 10, e), TNF_OK);
    status = tnf_params_derive(&form, params, "embeddings", o, e);
    assert_int_equal(tnf_params_derive_n(&form, params, "embeddings", 10, o, e), status);
    assert_int_equal(tnf_params_derive_id(&form, params, id, o, e), status);
    tnf_params_free(params);
    return status;
}

/* The options are a result, too, and must be writable: those of the test are. */
static tnf_status by_params_config(const void *o, tnf_error *e)
{
    return tnf_params_options_from_config((tnf_params_options *)(uintptr_t)o, x.file, e);
}

BY_OPENING(by_emb_open, tnf_emb, tnf_emb_close, tnf_emb_open(&made, x.file, o, e))
BY_OPENING(by_emb_open_path, tnf_emb, tnf_emb_close, tnf_emb_open_path(&made, x.path, NULL, o, e))
BY_OPENING(by_emb_open_path_how, tnf_emb, tnf_emb_close,
           tnf_emb_open_path(&made, x.path, o, NULL, e))
BY_OPENING(by_points_open, tnf_points, tnf_points_close, tnf_points_open(&made, x.points, o, e))
BY_OPENING(by_device_open, tnf_device, tnf_device_close, tnf_device_open(&made, "host", o, e))
BY_OPENING(by_convert_path, tnf_report, tnf_report_free,
           tnf_convert_path(&made, x.path, NULL, NOWHERE, o, e))
BY_OPENING(by_convert_path_how, tnf_report, tnf_report_free,
           tnf_convert_path(&made, x.path, o, NOWHERE, NULL, e))
BY_OPENING(by_virtual, tnf_virtual, tnf_virtual_free,
           tnf_virtual_new(&made, &x.request.object, 1, o, e))
BY_OPENING(by_device_load, tnf_load, tnf_load_free,
           tnf_device_load(&made, x.device, &x.request, 1, o, e))
BY_OPENING(by_device_start, tnf_load, tnf_load_free,
           tnf_device_start(&made, x.device, &x.request, 1, o, e))
BY_OPENING(by_start_many, tnf_load, tnf_load_free,
           tnf_device_start_many(&made, &x.device, 1, &x.request, 1, o, e))
BY_OPENING(by_plan, tnf_job, tnf_job_free, tnf_job_plan(&made, o, e))

#define BY_BUILDING(name, ...)                                                                     \
    static tnf_status name(const void *o, tnf_error *e)                                            \
    {                                                                                              \
        tnf_builder *b;                                                                            \
        assert_int_equal(tnf_builder_new(&b, NULL, e), TNF_OK);                                    \
        tnf_status status = __VA_ARGS__;                                                           \
        tnf_builder_free(b);                                                                       \
        return status;                                                                             \
    }
BY_BUILDING(by_merge, tnf_builder_merge(b, (const tnf_file *const[]) { x.file }, NULL, 1, o, e))
BY_BUILDING(by_salvage, tnf_salvage(&(tnf_salvage_result)TNF_SALVAGE_RESULT_INIT, b, x.file, o, e))
BY_BUILDING(by_emb_convert, tnf_emb_convert(b, x.emb, o, e))
BY_BUILDING(by_quantize, tnf_emb_quantize(NULL, b, x.emb, o, e))

static tnf_status by_open_source(const void *o, tnf_error *e)
{
    tnf_file *file;
    return tnf_open_source(&file, bytes_of_nothing(e), o, e);
}

static tnf_status by_verify_path_how(const void *o, tnf_error *e)
{
    tnf_verify_result out = TNF_VERIFY_RESULT_INIT;
    return tnf_verify_path(&out, NULL, x.path, o, NULL, e);
}

static tnf_status by_verify_path(const void *o, tnf_error *e)
{
    tnf_verify_result out = TNF_VERIFY_RESULT_INIT;
    return tnf_verify_path(&out, NULL, x.path, NULL, o, e);
}

static tnf_status by_verify_source(const void *o, tnf_error *e)
{
    tnf_verify_result out = TNF_VERIFY_RESULT_INIT;
    return tnf_verify_source(&out, NULL, bytes_of_nothing(e), NULL, o, e);
}

static tnf_status by_verify(const void *o, tnf_error *e)
{
    tnf_verify_result out = TNF_VERIFY_RESULT_INIT;
    return tnf_verify(&out, x.file, o, e);
}

static tnf_status by_hash(const void *o, tnf_error *e)
{
    uint8_t out[32];
    return tnf_content_hash(out, x.file, o, e);
}

static tnf_status by_read_many(const void *o, tnf_error *e)
{
    float dst[4];
    const tnf_request request = { tnf_find(x.file, "embeddings")->parts, dst };
    return tnf_read_many(&request, 1, o, e);
}

static tnf_status by_save(const void *o, tnf_error *e)
{
    return tnf_save(x.builder, NOWHERE, o, e);
}

static tnf_status by_save_sink(const void *o, tnf_error *e)
{
    return tnf_save_sink(x.builder, x.sink, o, e);
}

static tnf_status by_append(const void *o, tnf_error *e)
{
    return tnf_append(x.builder, NOWHERE, o, e);
}

static tnf_status by_save_in_place(const void *o, tnf_error *e)
{
    return tnf_save_in_place(x.builder, NOWHERE, o, e);
}

static tnf_status by_format_for_builder(const void *o, tnf_error *e)
{
    tnf_format_info out = TNF_FORMAT_INFO_INIT;
    return tnf_format_for_builder(&out, x.builder, NOWHERE, o, e);
}

static tnf_status convert_with(const void *how, tnf_error *e)
{
    const tnf_file *const files[] = { x.file };
    tnf_report *report = NULL;
    tnf_status status = tnf_convert(&report, files, 1, NOWHERE, how, e);
    tnf_report_free(report);
    return status;
}

static tnf_status by_convert_save(const void *o, tnf_error *e)
{
    tnf_convert_options how = TNF_CONVERT_INIT;
    how.save = o;
    return convert_with(&how, e);
}

static tnf_status by_convert_split(const void *o, tnf_error *e)
{
    tnf_convert_options how = TNF_CONVERT_INIT;
    how.mode = TNF_CONVERT_SPLIT;
    how.split = o;
    return convert_with(&how, e);
}

static tnf_status by_convert_emb(const void *o, tnf_error *e)
{
    tnf_convert_options how = TNF_CONVERT_INIT;
    how.normalize = true;
    how.emb = o;
    return convert_with(&how, e);
}

static tnf_status by_convert_quantize(const void *o, tnf_error *e)
{
    tnf_convert_options how = TNF_CONVERT_INIT;
    how.step = TNF_EMB_QUANTIZE;
    how.quantize = o;
    return convert_with(&how, e);
}

static tnf_status by_split(const void *o, tnf_error *e)
{
    return tnf_split(x.builder, NOWHERE, o, e);
}

static tnf_status by_diff(const void *o, tnf_error *e)
{
    tnf_diff_result out = TNF_DIFF_RESULT_INIT;
    return tnf_diff(&out, x.file, x.file, o, e);
}

static tnf_status by_stat(const void *o, tnf_error *e)
{
    return tnf_stat_file(x.file, o, e);
}

static tnf_status by_nearest(const void *o, tnf_error *e)
{
    tnf_emb_hit hit;
    size_t count;
    return tnf_emb_nearest(&hit, &count, x.emb, matrix, 1, o, e);
}

static tnf_status by_nearest_f64(const void *o, tnf_error *e)
{
    const double vector[] = { 1, 2 };
    tnf_emb_hit hit;
    size_t count;
    return tnf_emb_nearest_f64(&hit, &count, x.emb, vector, 1, o, e);
}

static tnf_status by_similar(const void *o, tnf_error *e)
{
    const tnf_str word = TNF_STR("a");
    tnf_emb_hit hit;
    size_t count;
    return tnf_emb_similar(&hit, &count, NULL, x.emb, &word, 1, o, e);
}

static tnf_status by_analogy(const void *o, tnf_error *e)
{
    const tnf_str words[] = { TNF_STR("a"), TNF_STR("b"), TNF_STR("c") };
    tnf_emb_hit hit;
    size_t count;
    return tnf_emb_analogy(&hit, &count, NULL, x.emb, words, 1, o, e);
}

static tnf_status by_points_space(const void *o, tnf_error *e)
{
    tnf_points *points = NULL;
    return tnf_points_create(&points, NOWHERE, o, NULL, e);
}

static tnf_status by_points_create(const void *o, tnf_error *e)
{
    tnf_points *points = NULL;
    tnf_space space = TNF_SPACE_INIT;
    space.type = tnf_type_of(TNF_F32);
    space.scalar = true;
    return tnf_points_create(&points, NOWHERE, &space, o, e);
}

static tnf_status by_points_salvage(const void *o, tnf_error *e)
{
    tnf_points_report out = TNF_POINTS_REPORT_INIT;
    return tnf_points_salvage(&out, x.points, o, take_point, NULL, e);
}

static tnf_status by_primitiv(const void *o, tnf_error *e)
{
    return tnf_primitiv_bind(x.file, NULL, 0, o, e);
}

static tnf_status by_primitiv_load(const void *o, tnf_error *e)
{
    return tnf_primitiv_load(NULL, 0, x.path, o, e);
}

static tnf_status by_primitiv_save(const void *o, tnf_error *e)
{
    return tnf_primitiv_save(NOWHERE, NULL, 0, o, e);
}

static tnf_status by_save_optimizer(const void *o, tnf_error *e)
{
    return tnf_primitiv_save_optimizer(NOWHERE, NULL, 0, NULL, 0, o, e);
}

static tnf_status by_scheme(const void *o, tnf_error *e)
{
    return tnf_scheme_add(o, e);
}

static tnf_job *plan_of_hash(tnf_error *e)
{
    const char *files[] = { x.path };
    tnf_job_options how = TNF_JOB_INIT;
    tnf_job *job;
    how.job = "hash";
    how.inputs = files;
    how.ninputs = 1;
    how.parts = 1;
    assert_int_equal(tnf_job_plan(&job, &how, e), TNF_OK);
    return job;
}

static tnf_status by_part(const void *o, tnf_error *e)
{
    tnf_job *job = plan_of_hash(e);
    tnf_status status = tnf_job_part(NULL, job, 0, o, e);
    tnf_job_free(job);
    return status;
}

static tnf_status by_finish(const void *o, tnf_error *e)
{
    tnf_job *job = plan_of_hash(e);
    tnf_status status = tnf_job_finish(NULL, job, o, e);
    tnf_job_free(job);
    return status;
}

static tnf_status by_abort(const void *o, tnf_error *e)
{
    tnf_job *job = plan_of_hash(e);
    tnf_status status = tnf_job_abort(job, o, e);
    tnf_job_free(job);
    return status;
}

/* No server has this address, so with good options the call fails without a network. */
#define NO_HOST "http://127.0.0.1:1/x.zt"

static tnf_status by_source_url(const void *o, tnf_error *e)
{
    tnf_source *source = NULL;
    return tnf_source_url(&source, NO_HOST, o, e);
}

static tnf_status by_open_remote(const void *o, tnf_error *e)
{
    tnf_file *file = NULL;
    tnf_open_options how = TNF_OPEN_INIT;
    how.remote = o;
    return tnf_open(&file, NO_HOST, &how, e);
}

static tnf_status by_save_remote(const void *o, tnf_error *e)
{
    tnf_save_options how = TNF_SAVE_INIT;
    how.remote = o;
    return tnf_save(x.builder, "s3://bucket/x.zt", &how, e);
}

static tnf_status by_append_remote(const void *o, tnf_error *e)
{
    tnf_save_options how = TNF_SAVE_INIT;
    how.remote = o;
    return tnf_append(x.builder, NOWHERE, &how, e);
}

static tnf_status by_in_place_remote(const void *o, tnf_error *e)
{
    tnf_save_options how = TNF_SAVE_INIT;
    how.remote = o;
    return tnf_save_in_place(x.builder, NOWHERE, &how, e);
}

static tnf_status by_target_remote(const void *o, tnf_error *e)
{
    tnf_format_info out = TNF_FORMAT_INFO_INIT;
    tnf_save_options how = TNF_SAVE_INIT;
    how.remote = o;
    return tnf_format_for_builder(&out, x.builder, NOWHERE, &how, e);
}

static tnf_status by_sink_url(const void *o, tnf_error *e)
{
    tnf_sink *sink = NULL;
    return tnf_sink_url(&sink, "s3://bucket/x.zt", 0, o, e);
}

static tnf_status by_fetch(const void *o, tnf_error *e)
{
    return tnf_fetch(NO_HOST, NOWHERE, o, e);
}

#define CALL(type, call, network)                                                                  \
    {                                                                                              \
#type, call, TNF_FIRST(type), sizeof(type), network                                        \
    }

static const struct {
    const char *type;
    tnf_status (*call)(const void *options, tnf_error *e);
    size_t first, size;
    bool network; /* good options would be used to reach a server */
} calls[] = {
    CALL(tnf_open_options, by_open, false),
    CALL(tnf_open_options, by_open_source, false),
    CALL(tnf_open_options, by_open_builder, false),
    CALL(tnf_open_options, by_verify_path_how, false),
    CALL(tnf_verify_options, by_verify_path, false),
    CALL(tnf_verify_options, by_verify_source, false),
    CALL(tnf_verify_options, by_verify, false),
    CALL(tnf_hash_options, by_hash, false),
    CALL(tnf_read_options, by_read_many, false),
    CALL(tnf_save_options, by_save, false),
    CALL(tnf_save_options, by_save_sink, false),
    CALL(tnf_save_options, by_append, false),
    CALL(tnf_save_options, by_save_in_place, false),
    CALL(tnf_save_options, by_format_for_builder, false),
    CALL(tnf_convert_options, convert_with, false),
    CALL(tnf_convert_options, by_convert_path, false),
    CALL(tnf_open_options, by_convert_path_how, false),
    CALL(tnf_save_options, by_convert_save, false),
    CALL(tnf_split_options, by_convert_split, false),
    CALL(tnf_emb_options, by_convert_emb, false),
    CALL(tnf_quantize_options, by_convert_quantize, false),
    CALL(tnf_merge_options, by_merge, false),
    CALL(tnf_split_options, by_split, false),
    CALL(tnf_salvage_options, by_salvage, false),
    CALL(tnf_diff_options, by_diff, false),
    CALL(tnf_stat_options, by_stat, false),
    CALL(tnf_virtual_how, by_virtual, false),
    CALL(tnf_params_options, by_params, false),
    CALL(tnf_params_options, by_params_config, false),
    CALL(tnf_derive, by_derive, false),
    CALL(tnf_emb_options, by_emb_open, false),
    CALL(tnf_emb_options, by_emb_open_path, false),
    CALL(tnf_open_options, by_emb_open_path_how, false),
    CALL(tnf_emb_query, by_nearest, false),
    CALL(tnf_emb_query, by_nearest_f64, false),
    CALL(tnf_emb_query, by_similar, false),
    CALL(tnf_emb_query, by_analogy, false),
    CALL(tnf_emb_change, by_emb_convert, false),
    CALL(tnf_quantize_options, by_quantize, false),
    CALL(tnf_points_options, by_points_open, false),
    CALL(tnf_space, by_points_space, false),
    CALL(tnf_points_options, by_points_create, false),
    CALL(tnf_points_options, by_points_salvage, false),
    CALL(tnf_primitiv_bind_options, by_primitiv, false),
    CALL(tnf_primitiv_bind_options, by_primitiv_load, false),
    CALL(tnf_save_options, by_primitiv_save, false),
    CALL(tnf_save_options, by_save_optimizer, false),
    CALL(tnf_scheme, by_scheme, false),
    CALL(tnf_device_options, by_device_open, false),
    CALL(tnf_load_options, by_device_load, false),
    CALL(tnf_load_options, by_device_start, false),
    CALL(tnf_load_options, by_start_many, false),
    CALL(tnf_job_options, by_plan, false),
    CALL(tnf_job_how, by_part, false),
    CALL(tnf_job_how, by_finish, false),
    CALL(tnf_job_how, by_abort, false),
    CALL(tnf_url_options, by_source_url, true),
    CALL(tnf_url_options, by_open_remote, true),
    CALL(tnf_url_options, by_save_remote, true),
    CALL(tnf_url_options, by_append_remote, false),
    CALL(tnf_url_options, by_in_place_remote, false),
    CALL(tnf_url_options, by_target_remote, false),
    CALL(tnf_url_options, by_sink_url, true),
    CALL(tnf_fetch_options, by_fetch, true),
};

enum { CALLS = sizeof calls / sizeof *calls };

/* Options of `room` bytes with this `size`, all 0 except the last byte. The memory ends after them,
 * so a sanitizer detects reading further. */
static tnf_status call_with(size_t i, size_t size, size_t room, unsigned char last, tnf_error *e)
{
    unsigned char *options = calloc(1, room);
    assert_non_null(options);
    options[room - 1] = last;
    memcpy(options, &size, sizeof size);
    memset(e, 0, sizeof *e);
    tnf_status status = calls[i].call(options, e);
    free(options);
    return status;
}

static void refuses_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALLS; i++) {
        const size_t first = calls[i].first;
        const struct {
            size_t size, room;
            const char *says;
        } cases[] = {
            { 0, first, "with the size 0, but" },
            { sizeof(size_t) - 1, first, "but it has at least" },
            { sizeof(size_t), sizeof(size_t), "but it has at least" },
            { sizeof(size_t) + 4, sizeof(size_t) + 4, "but it has at least" },
            { first - 1, first - 1, "but it has at least" },
            { SIZE_MAX, first, "but it has at least" },
        };
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            tnf_error e;
            if (cases[k].size >= first && cases[k].size != SIZE_MAX)
                continue; /* a size that is allowed for this struct */
            print_message("%s %zu: size %zu\n", calls[i].type, i, cases[k].size);
            assert_int_equal(call_with(i, cases[k].size, cases[k].room, 0, &e), TNF_EINVAL);
            assert_non_null(strstr(e.message, cases[k].says));
        }
    }
}

static bool blames_the_size(const tnf_error *e)
{
    return strstr(e->message, "a struct was passed") ||
           strstr(e->message, "a struct sets an option that");
}

/* The first version is accepted, and so is a later one that requests nothing new. */
static void takes_other_versions(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALLS; i++) {
        tnf_error e;
        const size_t longer = calls[i].size + 64;
        print_message("%s %zu\n", calls[i].type, i);
        /* All members that a struct has today belong to its first version. */
        assert_in_range(calls[i].first, calls[i].size - 7, calls[i].size);
        if (!calls[i].network) {
            if (call_with(i, calls[i].first, calls[i].first, 0, &e) != TNF_OK)
                assert_false(blames_the_size(&e));
            if (call_with(i, longer, longer, 0, &e) != TNF_OK)
                assert_false(blames_the_size(&e));
        }
        assert_int_equal(call_with(i, longer, longer, 1, &e), TNF_EINVAL);
        assert_non_null(strstr(e.message, "a struct sets an option that"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_sizes),
        cmocka_unit_test(takes_other_versions),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
