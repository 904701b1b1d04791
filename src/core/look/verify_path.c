/* SPDX-License-Identifier: MIT */
/* Verifying a file that might not open.
 *
 *   it opens                                   its parts are checked
 *   it does not                                the reason is the problem
 *   … and is a model of several files          it is opened for salvage, to report all faults:
 *                                              normal opening stops at the first one
 */
#include "base/sized.h"
#include "core/core.h"

/* Is the failure a fault of the file? It is also one if the file names a shard that does not
 * exist. */
static bool is_fault(const tnf_error *why)
{
    return tnf_is_file_fault(why->status) ||
           (why->status == TNF_ENOTFOUND && why->offset != TNF_NO_OFFSET);
}

/* Verifies the existing files of a model. False: there are none, or they have no faults in addition
 * to the known one. */
static bool verify_existing_files(tnf_verify_result *out, tnf_file **file, const char *path,
                                  const tnf_open_options *how, const tnf_verify_options *options)
{
    tnf_open_options again;
    tnf_verify_options loosely = *options;
    if (TNF_TAKE_OPTIONS(tnf_open_options, &again, how, NULL) != TNF_OK)
        return false;
    again.salvage = true;
    again.warn = NULL; /* warnings were reported already */
    again.trace = NULL;
    loosely.canonical = false;
    loosely.program = NULL; /* this question makes no sense for the rest of a model */
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
                   "cannot check whether %s loads the file, because Tenfold cannot open the file",
                   TNF_VISIBLE(options->program));
    if (options->problem)
        options->problem(options->ctx, &(tnf_problem) { .code = unknown.status,
                                                        .offset = TNF_NO_OFFSET,
                                                        .message = unknown.message });
}

/* Passes on the format's notes about a file that it refuses, for users who load it by other
 * means. */
static void note_refused(const char *path, const tnf_open_options *how,
                         const tnf_verify_options *options)
{
    tnf_open_options again;
    tnf_file *file = NULL;
    tnf_error told;
    if (TNF_TAKE_OPTIONS(tnf_open_options, &again, how, NULL) != TNF_OK)
        return;
    again.warn = NULL; /* warnings were reported already */
    again.trace = NULL;
    if (tnf_open_noting(&file, path, &again, options->note, options->ctx, &told) == TNF_OK)
        tnf_close(file); /* the file has changed meanwhile */
}

/* Handles a file that did not open. If `path` is NULL, it cannot be opened again. */
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
    if (!path || !verify_existing_files(out, file, path, how, options)) {
        tell_opening(out, options, why);
        if (path && options->note)
            note_refused(path, how, options);
    }
    tell_unknown(out, options);
    out->opening = why->status;
    return TNF_OK;
}

/* Verifies a path, or a source, which is consumed. */
static tnf_status verify_either(tnf_verify_result *out, tnf_file **file, const char *path,
                                tnf_source *source, const tnf_open_options *how,
                                const tnf_verify_options *options, tnf_error *e)
{
    tnf_verify_options o;
    tnf_open_options loosely;
    tnf_error why = { .offset = TNF_NO_OFFSET };
    tnf_status status = TNF_TAKE_OPTIONS(tnf_verify_options, &o, options, e);
    if (status == TNF_OK && o.program) { /* programs load files that their format forbids */
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

/* Fills as much of the result as the caller's struct has. */
static tnf_status verify_and_hand_out(tnf_verify_result *out, tnf_file **file, const char *path,
                                      tnf_source *source, const tnf_open_options *how,
                                      const tnf_verify_options *options, tnf_error *e)
{
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_file *opened = NULL;
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
    if (file)
        *file = NULL;
    TNF_TRY(tnf_need(path, "path", e));
    return verify_and_hand_out(out, file, path, NULL, how, options, e);
}

tnf_status tnf_verify_source(tnf_verify_result *out, tnf_file **file, tnf_source *source,
                             const tnf_open_options *how, const tnf_verify_options *options,
                             tnf_error *e)
{
    if (file)
        *file = NULL;
    TNF_TRY(tnf_need(source, "source", e));
    return verify_and_hand_out(out, file, NULL, source, how, options, e);
}
