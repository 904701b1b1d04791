/* SPDX-License-Identifier: MIT */
/* Verifies VS files, and reads the points before the first damage of a file. */
#include "_tenfold_points.h"
#include <string.h>

static PyObject *report_dict(const tnf_points_report *r)
{
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsOsK}", "file_bytes", (unsigned long long)r->file_bytes, "points",
        (unsigned long long)r->points, "blanks", (unsigned long long)r->blanks, "blank_bytes",
        (unsigned long long)r->blank_bytes, "unknown", (unsigned long long)r->unknown,
        "unknown_bytes", (unsigned long long)r->unknown_bytes, "trailing",
        (unsigned long long)r->trailing, "terminal", r->terminal ? Py_True : Py_False, "stopped_at",
        (unsigned long long)r->stopped_at);
}

/* (status, offset or None, message, rule or None) */
static PyObject *problem_tuple(const tnf_error *e)
{
    PyObject *offset = e->offset == TNF_NO_OFFSET ? Py_NewRef(Py_None)
                                                  : PyLong_FromUnsignedLongLong(e->offset);
    PyObject *message = PyUnicode_DecodeUTF8(e->message, (Py_ssize_t)strlen(e->message), "replace");
    return Py_BuildValue("sNNz", tnf_status_name(e->status) + 4, offset, message, e->rule);
}

typedef struct checking {
    points *p;
    tnf_points_report report;
    PyObject *problems;
    points_page page;
    tnf_error damage;
} checking;

/* ------------------------------------------------------------------- verify */

static void on_problem(void *ctx, const tnf_error *problem)
{
    checking *c = ctx;
    PyEval_RestoreThread(c->p->save);
    PyObject *item = problem_tuple(problem);
    if (!item || PyList_Append(c->problems, item) < 0)
        PyErr_Clear(); /* out of memory; the report has the number of problems */
    Py_XDECREF(item);
    c->p->save = PyEval_SaveThread();
}

static tnf_status run_verify(points *p, void *ctx, tnf_error *e)
{
    checking *c = ctx;
    return tnf_points_verify(&c->report, p->c, on_problem, c, e);
}

/* verify() -> (dict, problems) */
PyObject *points_verify(PyObject *self, PyObject *ignored)
{
    checking c = { .p = DATA(points, self), .report = TNF_POINTS_REPORT_INIT };
    (void)ignored;
    if (points_enter(c.p) < 0)
        return NULL;
    c.problems = PyList_New(0);
    int bad = c.problems ? points_call(c.p, run_verify, &c) : -1;
    points_leave(c.p);
    if (!bad)
        return Py_BuildValue("NN", report_dict(&c.report), c.problems);
    Py_XDECREF(c.problems);
    return NULL;
}

/* ------------------------------------------------------------------ salvage */

static tnf_status run_salvage(points *p, void *ctx, tnf_error *e)
{
    checking *c = ctx;
    tnf_points_options how = p->how;
    how.write = false;
    tnf_status status = tnf_points_salvage(&c->report, PyBytes_AsString(p->place), &how,
                                           points_take, &c->page, &c->damage);
    if (status != TNF_OK && e)
        *e = c->damage;
    return status;
}

/* salvage() -> ((ids, vectors, apps), dict, the damage or None) */
PyObject *points_salvage(PyObject *self, PyObject *ignored)
{
    checking c = { .p = DATA(points, self),
                   .report = TNF_POINTS_REPORT_INIT,
                   .page = { .most = SIZE_MAX, .most_bytes = SIZE_MAX },
                   .damage = { .offset = TNF_NO_OFFSET } };
    PyObject *tuple = NULL;
    (void)ignored;
    if (points_enter(c.p) < 0)
        return NULL;
    if (points_call(c.p, run_salvage, &c) == 0)
        tuple = points_tuple(c.p, &c.page, true);
    points_leave(c.p);
    points_page_free(&c.page);
    if (!tuple)
        return NULL;
    return Py_BuildValue("NNN", tuple, report_dict(&c.report),
                         c.report.problems ? problem_tuple(&c.damage) : Py_NewRef(Py_None));
}
