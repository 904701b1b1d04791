/* SPDX-License-Identifier: MIT */
/* Plans, parts and receipts, for tenfold/jobs.py. A job is a capsule; its results are JSON texts.
 */
#include "_tenfold.h"

#include <string.h>

#ifdef __has_include
#if __has_include(<tenfold/jobs.h>)
#define HAS_JOBS
#endif
#endif

#ifdef HAS_JOBS

#include <tenfold/jobs.h>

static const char job_name[] = "tenfold.job";

static void job_drop(PyObject *capsule)
{
    tnf_job_free(PyCapsule_GetPointer(capsule, job_name));
}

static PyObject *job_capsule(tnf_job *job)
{
    PyObject *capsule = PyCapsule_New(job, job_name, job_drop);
    if (!capsule)
        tnf_job_free(job);
    return capsule;
}

/* A list of str as texts; the arena keeps them alive. */
static int option_texts(PyObject *options, const char *key, PyObject *arena,
                        const char *const **out, size_t *n)
{
    PyObject *list = option_value(options, key);
    if (!list)
        return 0;
    Py_ssize_t count = PySequence_Size(list);
    const char **texts = count < 0 ? NULL : arena_take(arena, ((size_t)count + 1) * sizeof *texts);
    if (!texts)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        texts[i] = item ? arena_text(arena, item) : NULL;
        Py_XDECREF(item);
        if (!texts[i])
            return -1;
    }
    *out = texts;
    *n = (size_t)count;
    return 0;
}

static int option_real(PyObject *options, const char *key, double *out)
{
    PyObject *value = option_value(options, key);
    if (value)
        *out = PyFloat_AsDouble(value);
    return PyErr_Occurred() ? -1 : 0;
}

static int plan_options(tnf_job_options *o, PyObject *options, PyObject *arena)
{
    return option_text(options, "job", arena, &o->job) < 0 ||
                   option_texts(options, "inputs", arena, &o->inputs, &o->ninputs) < 0 ||
                   option_count(options, "parts", &o->parts) < 0 ||
                   option_text(options, "read_format", arena, &o->read_format) < 0 ||
                   option_flag(options, "lenient", &o->lenient) < 0 ||
                   option_text(options, "out", arena, &o->out) < 0 ||
                   option_text(options, "format", arena, &o->format) < 0 ||
                   option_pairs(options, "options", arena, &o->options, &o->noptions) < 0 ||
                   option_texts(options, "select", arena, &o->select, &o->nselect) < 0 ||
                   option_texts(options, "exclude", arena, &o->exclude, &o->nexclude) < 0 ||
                   option_text(options, "dtype", arena, &o->dtype) < 0 ||
                   option_flag(options, "allow_loss", &o->allow_loss) < 0 ||
                   option_flag(options, "replace", &o->replace) < 0 ||
                   option_count(options, "max_bytes", &o->max_bytes) < 0 ||
                   option_texts(options, "queries", arena, &o->queries, &o->nqueries) < 0 ||
                   option_count(options, "k", &o->k) < 0 ||
                   option_real(options, "rtol", &o->rtol) < 0 ||
                   option_real(options, "atol", &o->atol) < 0 ||
                   option_flag(options, "numeric", &o->numeric) < 0
               ? -1
               : 0;
}

/* job_plan(options): a job */
PyObject *job_plan(PyObject *module, PyObject *options)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_job_options what = TNF_JOB_INIT;
    tnf_job *job = NULL;
    tnf_status status = TNF_OK;
    PyObject *arena = PyList_New(0);
    bool fine = arena && plan_options(&what, options, arena) == 0;
    if (fine) {
        PyThreadState *save = PyEval_SaveThread();
        status = tnf_job_plan(&job, &what, &e);
        PyEval_RestoreThread(save);
    }
    Py_XDECREF(arena);
    if (!fine)
        return NULL;
    return status == TNF_OK ? job_capsule(job) : raise_error(state_of(module), status, &e, NULL);
}

/* job_parse(str): a job */
PyObject *job_parse(PyObject *module, PyObject *text)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_job *job = NULL;
    tnf_str s;
    PyObject *owner = NULL;
    if (text_of(text, &s, &owner) < 0)
        return NULL;
    tnf_status status = tnf_job_parse(&job, s.p, s.n, &e);
    Py_XDECREF(owner);
    return status == TNF_OK ? job_capsule(job) : raise_error(state_of(module), status, &e, NULL);
}

/* job_info(job): (its text, a dict) */
PyObject *job_info(PyObject *module, PyObject *capsule)
{
    tnf_job *job = PyCapsule_GetPointer(capsule, job_name);
    (void)module;
    if (!job)
        return NULL;
    const tnf_job_info *i = tnf_job_describe(job);
    return Py_BuildValue(
        "N{ss ss sK sK sK sK sK sK sz sz sz}", str_of(tnf_job_text(job)), "job", i->job, "id",
        i->id, "parts", (unsigned long long)i->parts, "items", (unsigned long long)i->items,
        "bytes", (unsigned long long)i->bytes, "largest_part", (unsigned long long)i->largest_part,
        "smallest_part", (unsigned long long)i->smallest_part, "largest_atom",
        (unsigned long long)i->largest_atom, "mode", i->mode, "format", i->format, "out", i->out);
}

/* ---------------------------------------------------------------------- work */

typedef struct doing {
    work work;
    tnf_job *job;
    uint64_t part;
    tnf_job_how how;
    tnf_str result;
} doing;

static tnf_status run_part(void *ctx, tnf_error *e)
{
    doing *d = ctx;
    return tnf_job_part(&d->result, d->job, d->part, &d->how, e);
}

static tnf_status run_finish(void *ctx, tnf_error *e)
{
    doing *d = ctx;
    return tnf_job_finish(&d->result, d->job, &d->how, e);
}

static tnf_status run_abort(void *ctx, tnf_error *e)
{
    doing *d = ctx;
    return tnf_job_abort(d->job, &d->how, e);
}

static int take_receipts(doing *d, PyObject *options, PyObject *arena)
{
    const char *const *texts = NULL;
    size_t n = 0;
    if (option_texts(options, "receipts", arena, &texts, &n) < 0)
        return -1;
    tnf_str *all = n ? arena_take(arena, n * sizeof *all) : NULL;
    if (n && !all)
        return -1;
    for (size_t i = 0; i < n; i++)
        all[i] = (tnf_str) { texts[i], strlen(texts[i]) };
    d->how.receipts = all;
    d->how.nreceipts = n;
    return 0;
}

static int do_options(doing *d, PyObject *options, PyObject *arena)
{
    uint64_t threads = 0;
    if (option_text(options, "base", arena, &d->how.base) < 0 ||
        option_flag(options, "trust_content", &d->how.trust_content) < 0 ||
        option_flag(options, "no_verify", &d->how.no_verify) < 0 ||
        option_count(options, "threads", &threads) < 0 || take_receipts(d, options, arena) < 0)
        return -1;
    d->how.threads = (unsigned)threads;
    d->how.progress = work_progress;
    d->how.ctx = &d->work;
    d->work.progress = option_value(options, "progress");
    d->work.bytes = UINT64_MAX; /* always on a thread, so that Ctrl-C works */
    return 0;
}

static PyObject *do_work(PyObject *module, doing *d, PyObject *options, work_fn run)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_status status = TNF_OK;
    PyObject *arena = PyList_New(0), *result = NULL;
    if (arena && do_options(d, options, arena) == 0 && work_run(run, d, &d->work, &status, &e) == 0)
        result = status != TNF_OK ? raise_error(state_of(module), status, &e, NULL)
                 : d->result.p    ? str_of(d->result)
                                  : Py_NewRef(Py_None);
    Py_XDECREF(arena);
    return result;
}

/* job_do(job, part, options), job_finish(job, options), job_abort(job, options): JSON or None */
PyObject *job_do(PyObject *module, PyObject *args)
{
    PyObject *capsule, *options;
    unsigned long long part;
    if (!PyArg_ParseTuple(args, "OKO", &capsule, &part, &options))
        return NULL;
    doing d = { .part = part, .how = TNF_JOB_HOW_INIT };
    d.job = PyCapsule_GetPointer(capsule, job_name);
    return d.job ? do_work(module, &d, options, run_part) : NULL;
}

static PyObject *end_job(PyObject *module, PyObject *args, work_fn run)
{
    PyObject *capsule, *options;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &options))
        return NULL;
    doing d = { .how = TNF_JOB_HOW_INIT };
    d.job = PyCapsule_GetPointer(capsule, job_name);
    return d.job ? do_work(module, &d, options, run) : NULL;
}

PyObject *job_finish(PyObject *module, PyObject *args)
{
    return end_job(module, args, run_finish);
}

PyObject *job_abort(PyObject *module, PyObject *args)
{
    return end_job(module, args, run_abort);
}

#else

static PyObject *no_jobs(PyObject *module)
{
    return raise_text(state_of(module), TNF_EUNSUPPORTED, "this build does not support plans");
}

PyObject *job_plan(PyObject *module, PyObject *options)
{
    (void)options;
    return no_jobs(module);
}

PyObject *job_parse(PyObject *module, PyObject *text)
{
    (void)text;
    return no_jobs(module);
}

PyObject *job_info(PyObject *module, PyObject *capsule)
{
    (void)capsule;
    return no_jobs(module);
}

PyObject *job_do(PyObject *module, PyObject *args)
{
    (void)args;
    return no_jobs(module);
}

PyObject *job_finish(PyObject *module, PyObject *args)
{
    (void)args;
    return no_jobs(module);
}

PyObject *job_abort(PyObject *module, PyObject *args)
{
    (void)args;
    return no_jobs(module);
}

#endif
