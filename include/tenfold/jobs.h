/* SPDX-License-Identifier: MIT */
/**
 * @file jobs.h
 * Divide work on large files into parts that any scheduler can run: threads, processes, machines.
 *
 *     tnf_job_options what = TNF_JOB_INIT;           // 1. on one machine: the plan
 *     what.job = "hash";
 *     what.inputs = paths;
 *     what.ninputs = 1;
 *     what.parts = 64;
 *     tnf_job_plan(&job, &what, &error);
 *     fwrite(tnf_job_text(job).p, 1, tnf_job_text(job).n, file);
 *
 *     tnf_job_parse(&job, text, n, &error);          // 2. anywhere, in any order, repeatedly
 *     tnf_job_part(&receipt, job, 7, &how, &error);
 *
 *     tnf_job_finish(&result, job, &how, &error);    // 3. once: checks, merges, makes it visible
 *
 * The plan is JSON and complete: a worker needs the plan and the inputs, and nothing from other
 * workers. The same inputs, options and number of parts give a byte-identical plan. The result is
 * always that of the plain function: the same bytes, the same hash, the same numbers. It depends
 * neither on the number of parts nor on the order in which they are done, nor on repetitions.
 *
 *   plan ─┬─> part 0 ─> receipt ─┬─> finish ─> file, hash, report
 *         ├─> part 1 ─> receipt ─┤
 *         └─> part 2 ─> receipt ─┘
 *
 * A part is done when its receipt exists. A receipt appears complete or not at all, after the data
 * that it describes is on the disk. A part that has a receipt is not done again. If two attempts at
 * one part give different data, the second fails and says which leaf differs.
 *
 * For bindings: plan, parse, text, describe, part, finish, abort and free are the complete API. All
 * output is JSON text. The plan is valid until tnf_job_free(), a receipt or a result only until the
 * next call of tnf_job_part() or tnf_job_finish(). Only one thread at a time may use a job.
 */
#ifndef TENFOLD_JOBS_H
#define TENFOLD_JOBS_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the plan's format: "tenfold_plan" in it. */
#define TNF_PLAN_VERSION 1

/** A plan. */
typedef struct tnf_job tnf_job;

/** What to plan. Begin with TNF_JOB_INIT; job, inputs and parts must be set. */
typedef struct tnf_job_options {
    size_t size;               /**< sizeof(tnf_job_options) */
    const char *job;           /**< "hash", "verify", "convert", "stat", "diff" or "similar" */
    const char *const *inputs; /**< paths or URLs; two for diff, one for similar */
    size_t ninputs;            /**< number of inputs */
    uint64_t parts;            /**< 1 to 1,000,000; some may be empty */
    const char *read_format;   /**< the format of all inputs; NULL: each is detected */
    bool lenient;              /**< as tnf_open_options.lenient */

    /* convert */
    const char *out; /**< the file, s3://…, or with max_bytes the directory; for other jobs: where
                          receipts go */
    const char *format;         /**< the format to write; NULL: by the extension of `out` */
    const tnf_option *options;  /**< options of its writer */
    size_t noptions;            /**< number of options */
    const char *const *select;  /**< patterns: only tensors that match one; none: all */
    size_t nselect;             /**< number of patterns */
    const char *const *exclude; /**< patterns: tensors that match one are left out */
    size_t nexclude;            /**< number of patterns */
    const char *dtype;          /**< as tnf_save_options.dtype */
    bool allow_loss;            /**< as tnf_save_options.allow_loss */
    bool replace;               /**< an existing result may be replaced by finish */
    uint64_t max_bytes;         /**< several files with at most this many bytes of tensors, and an
                                     index, as tnf_split(); 0: one file */

    /* similar */
    const char *const *queries; /**< words */
    size_t nqueries;            /**< number of words */
    uint64_t k;                 /**< answers for each; 0: 10 */

    /* diff */
    double rtol;  /**< as tnf_diff_options; both 0: bits are compared */
    double atol;  /**< likewise */
    bool numeric; /**< likewise */
} tnf_job_options;

/** All defaults. */
#define TNF_JOB_INIT                                                                               \
    {                                                                                              \
        sizeof(tnf_job_options), NULL, NULL, 0, 0, NULL, false, NULL, NULL, NULL, 0, NULL, 0,      \
            NULL, 0, NULL, false, false, 0, NULL, 0, 0, 0, 0, false                                \
    }

/** Describes a plan. */
typedef struct tnf_job_info {
    const char *job;       /**< "hash" … */
    const char *id;        /**< 64 hex digits: the same for the same work, wherever its files are */
    uint64_t parts;        /**< number of parts */
    uint64_t items;        /**< pieces of work of all parts together */
    uint64_t bytes;        /**< bytes to be read by all parts together */
    uint64_t largest_part; /**< bytes to be read by the part that reads the most */
    uint64_t smallest_part; /**< bytes to be read by the part that reads the least */
    uint64_t largest_atom;  /**< bytes of the largest indivisible piece; 0: all can be divided */
    const char *mode;       /**< how to write: "range", "files", "whole"; "rows": no output */
    const char *format;     /**< the format that is written, or NULL */
    const char *out;        /**< where the output goes, or NULL */
} tnf_job_info;

/** How to do a part, or to finish. Begin with TNF_JOB_HOW_INIT; NULL means all defaults. */
typedef struct tnf_job_how {
    size_t size; /**< sizeof(tnf_job_how) */
    /** Receipts are in the directory whose name is this path followed by ".tenfold-ID.parts".
     *  Conversions to an object of s3 need it, other conversions do not use it. NULL: the plan's
     *  `out`. If the plan has none, there are no receipt files: the caller keeps the texts that
     *  tnf_job_part() returns and passes them to tnf_job_finish(). */
    const char *base;
    bool trust_content;       /**< accept inputs with another modification time or ETag; a different
                                   size or header is never accepted */
    bool no_verify;           /**< finish: do not read the written data again */
    const tnf_str *receipts;  /**< finish: the texts of the parts, in any order, if there are no
                                   receipt files */
    size_t nreceipts;         /**< number of texts */
    unsigned threads;         /**< 0: one per core, or TENFOLD_THREADS */
    tnf_progress_fn progress; /**< called at least once for each leaf that is read (similar: at the
                                   beginning); false stops, without a receipt. NULL: never */
    void *ctx;                /**< passed to progress */
    bool check_input; /**< finish of a conversion: read the inputs once more and compare them with
                           the output, leaf by leaf; TNF_EDIGEST. TNF_EUNSUPPORTED if tensors are
                           not copied as they are */
} tnf_job_how;

/** All defaults. */
#define TNF_JOB_HOW_INIT                                                                           \
    {                                                                                              \
        sizeof(tnf_job_how), NULL, false, false, NULL, 0, 0, NULL, NULL, false                     \
    }

/** Makes a plan. Opens the inputs and reads their headers only. TNF_ELOSSY if a conversion would
 *  lose something and that is not allowed. */
TNF_API TNF_CHECKED tnf_status tnf_job_plan(tnf_job **out, const tnf_job_options *options,
                                            tnf_error *error);
/** Parses the text of a plan. TNF_EFORMAT if it is not a plan, or if its id does not match. */
TNF_API TNF_CHECKED tnf_status tnf_job_parse(tnf_job **out, const char *text, size_t n,
                                             tnf_error *error);
/** Frees a plan. NULL is allowed. */
TNF_API void tnf_job_free(tnf_job *job);
/** Returns the plan as JSON, which ends with a line feed. */
TNF_API tnf_str tnf_job_text(const tnf_job *job);
/** Returns the description of a plan. */
TNF_API const tnf_job_info *tnf_job_describe(const tnf_job *job);

/** Does a part, numbered from 0, and writes its receipt; *receipt (may be NULL) becomes its text.
 *  The call is a no-op if the receipt exists already, or if the plan was finished before (the text
 *  then has "finished_before":true; this needs a file system with extended attributes).
 *  TNF_ECHANGED if an input differs from the planned one, or if an earlier attempt at the part gave
 *  different data. */
TNF_API TNF_CHECKED tnf_status tnf_job_part(tnf_str *receipt, tnf_job *job, uint64_t part,
                                            const tnf_job_how *how, tnf_error *error);
/** Checks that every part is done, reads the written data again, merges the results, makes the
 *  output visible, and removes the receipts. *result (may be NULL) becomes a JSON object:
 *
 *     hash     {"job":"hash","id":…,"files":[{"file":…,"hash":"sha256:…","hash_version":2,
 *               "tensors":[{"name":…,"hash":…}, …]}, …]}
 *     verify   {…,"ok":true,"files":[{"file":…,"ok":true,"checked":…,"undigested":…,
 *               "problems":[{"code":…,"offset":…,"tensor":…,"message":…}, …]}, …]}
 *     convert  {…,"out":…,"format":…,"size":…,"hash":"sha256:…"}; the hash is null with
 *              no_verify if only reading could give it, or if the output cannot be read back
 *     stat     {…,"files":[{"file":…,"tensors":[{"name":…,"elements":…,"nan":…, …}, …]}, …]}
 *     diff     {…,"same":false,"differences":[{"kind":…,"name":…, …}, …]}
 *     similar  {…,"queries":[{"word":…,"hits":[{"word":…,"row":…,"score":…}, …]}, …]}
 *
 *  TNF_ENOTFOUND if parts are missing; the message has their numbers. TNF_EDIGEST if the written
 *  data does not match its receipt; the message has the part and the leaf. If the process is
 *  killed, the function can be called again. If the job was finished before and the output has not
 *  changed, the result is {…,"out":…,"finished_before":true}. */
TNF_API TNF_CHECKED tnf_status tnf_job_finish(tnf_str *result, tnf_job *job, const tnf_job_how *how,
                                              tnf_error *error);
/** Removes the receipts and unfinished files of parts. Inputs and results stay. */
TNF_API TNF_CHECKED tnf_status tnf_job_abort(tnf_job *job, const tnf_job_how *how,
                                             tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
