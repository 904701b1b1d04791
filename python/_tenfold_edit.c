/* SPDX-License-Identifier: MIT */
/* repair() saves the intact tensors of a damaged file; edit() changes attributes. */
#include "_tenfold.h"
#include <string.h>

typedef struct changing {
    state *st;
    PyInterpreterState *interp;
    PyObject *arena, *lost;
    handle *h;
    tnf_builder *builder;
    const char *path;
    tnf_save_options save;
    tnf_salvage_options salvage;
    tnf_salvage_result result;
    bool in_place, rewrite, was_in_place;
    work work;
} changing;

static int change_begin(changing *c, PyObject *module, PyObject *file, PyObject *path,
                        PyObject *options)
{
    PyObject *bytes = NULL;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    c->st = state_of(module);
    c->interp = PyInterpreterState_Get();
    c->arena = PyList_New(0);
    c->lost = PyList_New(0);
    c->h = c->arena && c->lost ? handle_of(c->st, file) : NULL;
    if (!c->h || PyList_Append(c->arena, AS_OBJECT(c->h)) < 0 ||
        !PyUnicode_FSConverter(path, &bytes))
        return -1;
    int bad = PyList_Append(c->arena, bytes);
    c->path = PyBytes_AsString(bytes);
    Py_DECREF(bytes);
    if (bad || save_options(&c->save, options, c->arena) < 0 ||
        tnf_builder_new(&c->builder, NULL, &e) != TNF_OK)
        return -1;
    c->work.progress = option_value(options, "progress");
    c->work.h = c->h;
    c->work.bytes = tnf_file_info(hold_file(c->h->hold))->payload;
    c->save.progress = work_progress;
    c->save.ctx = &c->work;
    return 0;
}

static PyObject *change_end(changing *c, PyObject *result)
{
    tnf_builder_free(c->builder);
    Py_XDECREF(c->arena);
    Py_XDECREF(c->lost);
    return result;
}

/* -------------------------------------------------------------------- repair */

static void on_lost(void *ctx, const tnf_loss *loss)
{
    changing *c = ctx;
    gil g;
    gil_enter(&g, c->interp);
    PyObject *offset = loss->offset == TNF_NO_OFFSET ? Py_NewRef(Py_None)
                                                     : PyLong_FromUnsignedLongLong(loss->offset);
    PyObject *item = Py_BuildValue("sNNz", loss->kind, str_of(loss->name), offset, loss->reason);
    if (!item || PyList_Append(c->lost, item) < 0)
        PyErr_Clear();
    Py_XDECREF(item);
    gil_leave(&g);
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    return work_progress(&((changing *)ctx)->work, done, total);
}

static tnf_status run_repair(void *ctx, tnf_error *e)
{
    changing *c = ctx;
    tnf_status status = tnf_salvage(&c->result, c->builder, hold_file(c->h->hold), &c->salvage, e);
    return status == TNF_OK ? tnf_save(c->builder, c->path, &c->save, e) : status;
}

/* repair(file opened for salvage, path, options) -> (saved, list of losses) */
PyObject *do_repair(PyObject *module, PyObject *args, PyObject *kwargs)
{
    PyObject *file, *path, *options, *result = NULL;
    tnf_status status = TNF_OK;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OOO!", &file, &path, &PyDict_Type, &options))
        return NULL;
    changing c = { .save = TNF_SAVE_INIT,
                   .salvage = TNF_SALVAGE_INIT,
                   .result = TNF_SALVAGE_RESULT_INIT };
    c.salvage.lost = on_lost;
    c.salvage.progress = on_progress;
    c.salvage.ctx = &c;
    if (change_begin(&c, module, file, path, options) == 0 &&
        work_run(run_repair, &c, &c.work, &status, &e) == 0) {
        if (status == TNF_OK || status == TNF_EUNSYNCED)
            result = Py_BuildValue("KO", (unsigned long long)c.result.saved, c.lost);
        else
            raise_error(c.st, status, &e, path);
    }
    return change_end(&c, result);
}

/* ---------------------------------------------------------------------- edit */

/* Edits in place if possible. Otherwise the file is written anew, unless `in_place` forbids it. */
static tnf_status run_edit(void *ctx, tnf_error *e)
{
    changing *c = ctx;
    if (!c->rewrite) {
        tnf_status status = tnf_save_in_place(c->builder, c->path, &c->save, e);
        c->was_in_place = status == TNF_OK;
        if (c->in_place || status != TNF_EUNSUPPORTED)
            return status;
    }
    return tnf_save(c->builder, c->path, &c->save, e);
}

static int edit_attrs(changing *c, PyObject *set, const char *of)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_status status = tnf_builder_add_file(c->builder, hold_file(c->h->hold), &e);
    while (status == TNF_OK && PyDict_Next(set, &at, &key, &value)) {
        tnf_value v;
        const char *name = arena_text(c->arena, key);
        if (!name || value_from_python(&v, value, c->arena) < 0)
            return -1;
        status = tnf_builder_set(c->builder, of, name, value == Py_None ? NULL : &v, &e);
    }
    return status == TNF_OK ? 0 : (raise_error(c->st, status, &e, c->h->path), -1);
}

/* edit(file opened to change, path, {key: value or None}, tensor or None, options) -> in place? */
PyObject *do_edit(PyObject *module, PyObject *args, PyObject *kwargs)
{
    PyObject *file, *path, *set, *owner, *options, *result = NULL;
    tnf_status status = TNF_OK;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OOO!OO!", &file, &path, &PyDict_Type, &set, &owner, &PyDict_Type,
                          &options))
        return NULL;
    changing c = { .save = TNF_SAVE_INIT };
    if (change_begin(&c, module, file, path, options) == 0 &&
        option_flag(options, "in_place", &c.in_place) == 0 &&
        option_flag(options, "rewrite", &c.rewrite) == 0) {
        const char *name = owner == Py_None ? NULL : arena_text(c.arena, owner);
        c.save.like = hold_file(c.h->hold);
        c.save.format = tnf_file_info(c.save.like)->format;
        c.save.replace = true;
        if ((name || owner == Py_None) && edit_attrs(&c, set, name) == 0 &&
            work_run(run_edit, &c, &c.work, &status, &e) == 0) {
            if (status == TNF_OK || status == TNF_EUNSYNCED)
                result = PyBool_FromLong(c.was_in_place);
            else
                raise_error(c.st, status, &e, path);
        }
    }
    return change_end(&c, result);
}
