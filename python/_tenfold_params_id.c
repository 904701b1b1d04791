/* SPDX-License-Identifier: MIT */
/* Ids, namespaces and paths of parameters, and the options of a gpt.rs config. */
#include "_tenfold_params.h"
#include <string.h>

PyObject *id_bytes(tnf_id id)
{
    return PyBytes_FromStringAndSize((const char *)id.bytes, sizeof id.bytes);
}

int id_from(tnf_id *out, PyObject *bytes)
{
    if (!PyBytes_Check(bytes) || PyBytes_Size(bytes) != sizeof out->bytes) {
        PyErr_SetString(PyExc_TypeError, "an id has 16 bytes");
        return -1;
    }
    memcpy(out->bytes, PyBytes_AsString(bytes), sizeof out->bytes);
    return 0;
}

/* params_id(name) -> the base id of a name */
PyObject *params_id(PyObject *module, PyObject *name)
{
    tnf_str text;
    tnf_id id;
    PyObject *owner;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (text_of(name, &text, &owner) < 0)
        return NULL;
    tnf_status status = tnf_param_id(&id, text.p, text.n, &e);
    Py_XDECREF(owner);
    return status == TNF_OK ? id_bytes(id) : raise_error(state_of(module), status, &e, NULL);
}

/* params_key(namespace, base id) */
PyObject *params_key(PyObject *module, PyObject *args)
{
    PyObject *space, *base;
    tnf_id a, b;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &space, &base) || id_from(&a, space) < 0 ||
        id_from(&b, base) < 0)
        return NULL;
    return id_bytes(tnf_param_key(a, b));
}

PyObject *params_next_namespace(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    return id_bytes(tnf_namespace_next());
}

PyObject *params_check_path(PyObject *module, PyObject *path)
{
    tnf_str text;
    PyObject *owner;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (text_of(path, &text, &owner) < 0)
        return NULL;
    tnf_status status = tnf_param_path_check(text.p, text.n, &e);
    Py_XDECREF(owner);
    return status == TNF_OK ? Py_NewRef(Py_None) : raise_error(state_of(module), status, &e, NULL);
}

tnf_str *text_list(PyObject *tuple, size_t *n, PyObject *arena)
{
    *n = (size_t)PyTuple_Size(tuple);
    tnf_str *texts = arena_take(arena, (*n + 1) * sizeof *texts);
    for (size_t i = 0; texts && i < *n; i++) {
        PyObject *item = PyTuple_GetItem(tuple, (Py_ssize_t)i), *owner = NULL;
        int bad = text_of(item, &texts[i], &owner) < 0 ||
                  PyList_Append(arena, owner ? owner : item) < 0;
        Py_XDECREF(owner);
        if (bad)
            return NULL;
    }
    return texts;
}

/* params_join_path(tuple of segments) */
PyObject *params_join_path(PyObject *module, PyObject *segments)
{
    size_t n, length = 0;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    PyObject *arena = PyList_New(0), *path = NULL;
    tnf_str *texts = arena ? text_list(segments, &n, arena) : NULL;
    if (texts) {
        tnf_status status = tnf_param_path_join(NULL, 0, &length, texts, n, &e);
        char *out = status == TNF_OK ? arena_take(arena, length + 1) : NULL;
        if (out)
            status = tnf_param_path_join(out, length + 1, &length, texts, n, &e);
        if (status != TNF_OK)
            raise_error(state_of(module), status, &e, NULL);
        else if (out)
            path = str_of((tnf_str) { out, length });
    }
    Py_XDECREF(arena);
    return path;
}

/* params_config(file) -> the options that its config requests */
PyObject *params_config(PyObject *module, PyObject *file)
{
    state *st = state_of(module);
    handle *h = handle_of(st, file);
    tnf_params_options o = TNF_PARAMS_INIT;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    if (!h)
        return NULL;
    tnf_status status = tnf_params_options_from_config(&o, hold_file(h->hold), &e);
    if (status != TNF_OK)
        return raise_error(st, status, &e, h->path);
    return Py_BuildValue("{sKsdsKsKsKsO}", "budget", (unsigned long long)o.budget, "budget_percent",
                         o.budget_percent, "budget_cap", (unsigned long long)o.budget_cap,
                         "small_bytes", (unsigned long long)o.small_bytes, "prefetch_layers",
                         (unsigned long long)o.prefetch_layers, "budget_zero",
                         o.budget_zero ? Py_True : Py_False);
}
