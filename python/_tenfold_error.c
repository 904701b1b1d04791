/* SPDX-License-Identifier: MIT */
/* Converts statuses to exceptions, texts to str, and dicts to options. The exception classes are in
 * tenfold/_errors.py; make() there creates them. */
#include "_tenfold.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PyObject *str_of(tnf_str s)
{
    return PyUnicode_DecodeUTF8(s.p ? s.p : "", (Py_ssize_t)s.n, "surrogateescape");
}

int text_of(PyObject *str, tnf_str *out, PyObject **owner)
{
    *owner = NULL;
    if (!PyUnicode_Check(str)) {
        PyErr_Format(PyExc_TypeError, "a name must be a str, not %R", (PyObject *)Py_TYPE(str));
        return -1;
    }
    Py_ssize_t n;
    const char *p = PyUnicode_AsUTF8AndSize(str, &n);
    if (!p) {
        /* Bytes that are not UTF-8 were decoded as lone surrogates. */
        PyErr_Clear();
        *owner = PyUnicode_AsEncodedString(str, "utf-8", "surrogateescape");
        char *bytes;
        if (!*owner || PyBytes_AsStringAndSize(*owner, &bytes, &n) < 0) {
            Py_CLEAR(*owner);
            return -1;
        }
        p = bytes;
    }
    *out = (tnf_str) { p, (size_t)n };
    return 0;
}

/* ------------------------------------------------------------------- raising */

static void raise_made(state *st, tnf_status status, const tnf_error *e, PyObject *path)
{
    PyObject *offset = e->offset == TNF_NO_OFFSET ? Py_NewRef(Py_None)
                                                  : PyLong_FromUnsignedLongLong(e->offset);
    PyObject *message = PyUnicode_DecodeUTF8(e->message, (Py_ssize_t)strlen(e->message), "replace");
    PyObject *made = NULL;
    if (offset && message)
        made = PyObject_CallFunction(st->make_error, "isOOziO", (int)status,
                                     tnf_status_name(status) + 4, message, offset, e->rule, e->sys,
                                     path ? path : Py_None);
    Py_XDECREF(offset);
    Py_XDECREF(message);
    if (made) {
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
        Py_DECREF(made);
    }
}

void *raise_error(state *st, tnf_status status, const tnf_error *error, PyObject *path)
{
    /* A Python callback has failed before: its exception is the cause. */
    if (PyErr_Occurred())
        return NULL;
    if (status == TNF_ENOMEM)
        return PyErr_NoMemory();
    raise_made(st, status, error, path);
    return NULL;
}

void *raise_text(state *st, tnf_status status, const char *format, ...)
{
    tnf_error e = { .status = status, .offset = TNF_NO_OFFSET };
    va_list args;
    va_start(args, format);
    vsnprintf(e.message, sizeof e.message, format, args);
    va_end(args);
    raise_made(st, status, &e, NULL);
    return NULL;
}

/* ------------------------------------------------------------------- options */

static void free_memory(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, "tenfold.memory"));
}

void *arena_take(PyObject *arena, size_t n)
{
    void *p = calloc(1, n ? n : 1);
    PyObject *capsule = p ? PyCapsule_New(p, "tenfold.memory", free_memory) : PyErr_NoMemory();
    if (!capsule) {
        free(p);
        return NULL;
    }
    int bad = PyList_Append(arena, capsule);
    Py_DECREF(capsule);
    return bad ? NULL : p;
}

const char *arena_text(PyObject *arena, PyObject *str)
{
    tnf_str text;
    PyObject *owner;
    if (text_of(str, &text, &owner) < 0)
        return NULL;
    if (memchr(text.p, 0, text.n)) {
        PyErr_SetString(PyExc_ValueError, "a name or option cannot contain a NUL");
        text.p = NULL;
    } else if (PyList_Append(arena, owner ? owner : str) < 0) {
        text.p = NULL;
    }
    Py_XDECREF(owner);
    return text.p;
}

PyObject *option_value(PyObject *options, const char *key)
{
    PyObject *found = options ? PyDict_GetItemString(options, key) : NULL;
    return found == Py_None ? NULL : found;
}

int option_flag(PyObject *options, const char *key, bool *out)
{
    PyObject *found = option_value(options, key);
    int truth = found ? PyObject_IsTrue(found) : *out;
    if (truth < 0)
        return -1;
    *out = truth;
    return 0;
}

int option_text(PyObject *options, const char *key, PyObject *arena, const char **out)
{
    PyObject *found = option_value(options, key);
    if (!found)
        return 0;
    *out = arena_text(arena, found);
    return *out ? 0 : -1;
}

int option_count(PyObject *options, const char *key, uint64_t *out)
{
    PyObject *found = option_value(options, key);
    if (!found)
        return 0;
    *out = PyLong_AsUnsignedLongLong(found);
    return PyErr_Occurred() ? -1 : 0;
}

/* In C, the options of a format are texts: True is "yes", and 64 is "64". */
static PyObject *option_word(PyObject *value)
{
    if (value == Py_True)
        return PyUnicode_FromString("yes");
    if (value == Py_False)
        return PyUnicode_FromString("no");
    return PyObject_Str(value);
}

int option_pairs(PyObject *options, const char *key, PyObject *arena, const tnf_option **out,
                 size_t *n)
{
    PyObject *dict = option_value(options, key);
    *out = NULL;
    *n = 0;
    if (!dict)
        return 0;
    PyObject *items = PyMapping_Items(dict);
    Py_ssize_t count = items ? PyList_Size(items) : -1;
    tnf_option *all = count > 0 ? arena_take(arena, (size_t)count * sizeof *all) : NULL;
    for (Py_ssize_t i = 0; all && i < count; i++) {
        PyObject *pair = PyList_GetItem(items, i);
        PyObject *word = option_word(PyTuple_GetItem(pair, 1));
        all[i].key = arena_text(arena, PyTuple_GetItem(pair, 0));
        all[i].value = word ? arena_text(arena, word) : NULL;
        Py_XDECREF(word);
        if (!all[i].key || !all[i].value)
            all = NULL;
    }
    Py_XDECREF(items);
    *out = all;
    *n = all ? (size_t)count : 0;
    return count < 0 || (count > 0 && !all) ? -1 : 0;
}

int take_arguments(PyObject **out, const char *const *keys, Py_ssize_t most, PyObject *const *args,
                   Py_ssize_t n, PyObject *names)
{
    if (n > most) {
        PyErr_Format(PyExc_TypeError, "at most %zd positional arguments are allowed, not %zd", most,
                     n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        out[i] = args[i];
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        Py_ssize_t k = 0;
        while (keys[k] && PyUnicode_CompareWithASCIIString(name, keys[k]) != 0)
            k++;
        if (!keys[k] || k < n) {
            PyErr_Format(PyExc_TypeError,
                         keys[k] ? "duplicate argument %R" : "unexpected argument %R", name);
            return -1;
        }
        out[k] = args[n + i];
    }
    return 0;
}

tnf_status fail_exception(tnf_error *e, uint64_t offset, const char *what)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    PyObject *name = type ? PyObject_GetAttrString(type, "__name__") : NULL;
    const char *words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    const char *which = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    tnf_error_set(e, TNF_EIO, offset, "%s: %s: %s", what, which ? which : "?", words ? words : "?");
    Py_XDECREF(text);
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
    return TNF_EIO;
}
