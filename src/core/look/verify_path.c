/* SPDX-License-Identifier: MIT */
/* Verifying what may not even open.
 *
 *   opens                                      its parts are checked
 *   does not                                   that is the problem
 *   … and is a model in several files          opened for salvage, and all that is wrong is told:
 *                                              opening ends with the first fault
 */
#include "base/sized.h"
#include "core/core.h"

/* Does the reason lie in the file? A shard that it names and that is gone does. */
static bool is_fault(const tnf_error *why)
{
    return tnf_is_file_fault(why->status) ||
           (why->status == TNF_ENOTFOUND && why->offset != TNF_NO_OFFSET);
}

/* The files of a model that exist. False: there are none, or they have no faults beyond those
 * that are known already. */
static bool look_further(tnf_verify_result *out, tnf_file **file, const char *path,
                         const tnf_open_options *how, const tnf_verify_options *options)
{
    tnf_open_options again;
    tnf_verify_options loosely = *options;
    if (TNF_TAKE_OPTIONS(tnf_open_options, &again, how, NULL) != TNF_OK)
        return false;
    again.salvage = true;
    again.warn = NULL; /* they were told */
    again.trace = NULL;
    loosely.canonical = false;
    loosely.program = NULL; /* of what is left nobody asks */
    if (tnf_open(file, path, &again, NULL) != TNF_OK)
        return false;
    if ((*file)->info.shards == 0) {
        tnf_close(*file);
        *file = NULL;
        return false;
    }
    return tnf_verify(out, *file, &loosely, NULL) == TNF_OK && out->problems > 0;
}

static void tell_opening(tnf_verify_result *out, const tnf_verify_options *options,
                         const tnf_error *why)
{
    out->problems++;
    if (options->problem)
        options->problem(options->ctx, &(tnf_problem) { .code = why->status,
                                                        .offset = why->offset,
                                                        .message = why->message,
                                                        .rule = why->rule });
}

static void tell_unknown(tnf_verify_result *out, const tnf_verify_options *options)
{
    tnf_error unknown = { .offset = TNF_NO_OFFSET };
    if (!options->program)
        return;
    out->problems++;
    (void)tnf_fail(&unknown, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                   "whether %s loads it is not known: Tenfold cannot open it",
                   TNF_VISIBLE(options->program));
    if (options->problem)
        options->problem(options->ctx, &(tnf_problem) { .code = unknown.status,
                                                        .offset = TNF_NO_OFFSET,
                                                        .message = unknown.message });
}

/* What the format has to say of a file that it refuses: to whoever loads it by other means. */
static void note_refused(const char *path, const tnf_open_options *how,
                         const tnf_verify_options *options)
{
    tnf_open_options again;
    tnf_file *file = NULL;
    tnf_error told;
    if (TNF_TAKE_OPTIONS(tnf_open_options, &again, how, NULL) != TNF_OK)
        return;
    again.warn = NULL; /* they were told */
    again.trace = NULL;
    if (tnf_open_noting(&file, path, &again, options->note, options->ctx, &told) == TNF_OK)
        tnf_close(file); /* it has changed meanwhile */
}

/* It did not open. A path of NULL: there is nothing to open once more. */
static tnf_status verify_unopened(tnf_verify_result *out, tnf_file **file, const char *path,
                                  const tnf_open_options *how, const tnf_verify_options *options,
                                  const tnf_error *why, tnf_error *e)
{
    out->opening = why->status;
    if (!is_fault(why)) {
        if (e)
            *e = *why;
        return why->status;
    }
    if (!path || !look_further(out, file, path, how, options)) {
        tell_opening(out, options, why);
        if (path && options->note)
            note_refused(path, how, options);
    }
    tell_unknown(out, options);
    out->opening = why->status;
    return TNF_OK;
}

/* Over a path, or over a source, which is used up. */
static tnf_status verify_either(tnf_verify_result *out, tnf_file **file, const char *path,
                                tnf_source *source, const tnf_open_options *how,
                                const tnf_verify_options *options, tnf_error *e)
{
    tnf_verify_options o;
    tnf_open_options loosely;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = TNF_TAKE_OPTIONS(tnf_verify_options, &o, options, e);
    if (status == TNF_OK && o.program) { /* programs load what a format forbids */
        status = TNF_TAKE_OPTIONS(tnf_open_options, &loosely, how, e);
        loosely.lenient = true;
        how = &loosely;
    }
    if (status != TNF_OK) {
        tnf_source_close(source);
        return status;
    }
    status = source ? tnf_open_source(file, source, how, &why) : tnf_open(file, path, how, &why);
    if (status == TNF_OK)
        return tnf_verify(out, *file, &o, e);
    return verify_unopened(out, file, path, how, &o, &why, e);
}

/* The caller gets what it has made room for. */
static tnf_status verify_and_hand_out(tnf_verify_result *out, tnf_file **file, const char *path,
                                      tnf_source *source, const tnf_open_options *how,
                                      const tnf_verify_options *options, tnf_error *e)
{
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_file *opened = NULL;
    if (file)
        *file = NULL;
    tnf_status status = tnf_result_begin(out, TNF_FIRST(tnf_verify_result), e);
    if (status != TNF_OK) {
        tnf_source_close(source);
        return status;
    }
    status = verify_either(&result, &opened, path, source, how, options, e);
    tnf_result_fill(out, &result, sizeof result);
    if (file)
        *file = opened;
    else
        tnf_close(opened);
    return status;
}

tnf_status tnf_verify_path(tnf_verify_result *out, tnf_file **file, const char *path,
                           const tnf_open_options *how, const tnf_verify_options *options,
                           tnf_error *e)
{
    TNF_TRY(tnf_need(path, "path", e));
    return verify_and_hand_out(out, file, path, NULL, how, options, e);
}

tnf_status tnf_verify_source(tnf_verify_result *out, tnf_file **file, tnf_source *source,
                             const tnf_open_options *how, const tnf_verify_options *options,
                             tnf_error *e)
{
    TNF_TRY(tnf_need(source, "source", e));
    return verify_and_hand_out(out, file, NULL, source, how, options, e);
}
