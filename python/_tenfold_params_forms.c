/* SPDX-License-Identifier: MIT */
/* Forms of parameters that Python derives: a call of the library makes a form, or finds it in the
 * memo. */
#include "_tenfold_params.h"
#include <stdlib.h>
#include <unistd.h>

/* A form that Python made: of a call that makes it, then of the library, which drops it, and then
 * in a list of values that are to be released with the GIL. */
typedef struct made {
    struct source *s;
    struct deriving *by;
    PyObject *value;
    struct made *next;
} made;

typedef struct form {
    OBJECT_HEAD
    source *s;
    const tnf_derived *c;
} form;

static void add_dropped(made *m, PyObject *value)
{
    m->value = value;
    pthread_mutex_lock(&m->s->mutex);
    m->next = m->s->dropped;
    m->s->dropped = m;
    pthread_mutex_unlock(&m->s->mutex);
}

void release_dropped(source *s)
{
    pthread_mutex_lock(&s->mutex);
    made *m = s->dropped;
    s->dropped = NULL;
    pthread_mutex_unlock(&s->mutex);
    while (m) {
        made *next = m->next;
        Py_DECREF(m->value);
        free(m);
        m = next;
    }
}

/* ----------------------------------------------------------------- resolver */

/* (key as an int, kind) */
static PyObject *resolver_key(const tnf_derived *c)
{
    PyObject *number = PyObject_CallMethod((PyObject *)&PyLong_Type, "from_bytes", "Ns",
                                           id_bytes(c->key), "little");
    return Py_BuildValue("Ns", number, c->kind);
}

static bool resolver_get(void *ctx, tnf_derived *c)
{
    source *s = ctx;
    gil g;
    gil_enter(&g, s->interp);
    PyObject *key = resolver_key(c);
    PyObject *value = key ? PyObject_CallMethod(s->resolver, "get", "(O)", key) : NULL;
    if (!value)
        PyErr_WriteUnraisable(s->resolver);
    if (value == Py_None)
        Py_CLEAR(value);
    Py_XDECREF(key);
    c->data = value; /* until resolver_release() */
    c->nbytes = 0;
    gil_leave(&g);
    return value != NULL;
}

/* The form's own reference is kept until resolver_release(). */
static tnf_status resolver_set(void *ctx, const tnf_derived *c, tnf_drop_form_fn drop,
                               void *drop_ctx, tnf_error *e)
{
    source *s = ctx;
    tnf_status status = TNF_OK;
    gil g;
    (void)drop;
    gil_enter(&g, s->interp);
    PyObject *key = resolver_key(c), *done = NULL;
    if (key)
        done = PyObject_CallMethod(s->resolver, "__setitem__", "OO", key, (PyObject *)c->data);
    if (done)
        free(drop_ctx); /* else it is dropped */
    else
        status = fail_exception(e, TNF_NO_OFFSET, "the resolver failed");
    Py_XDECREF(done);
    Py_XDECREF(key);
    gil_leave(&g);
    return status;
}

static void resolver_release(void *ctx, const tnf_derived *c)
{
    made *m = malloc(sizeof *m);
    if (!m)
        return; /* the value is never released */
    m->s = ctx;
    add_dropped(m, c->data);
}

const tnf_resolver_ops python_resolver = { TNF_RESOLVER_OPS_VERSION, resolver_get, resolver_set,
                                           resolver_release };

/* ------------------------------------------------------------ derived forms */

/* One request of a form, on the stack of its thread. */
typedef struct deriving {
    PyThreadState *save;
    PyObject *make, *size; /* functions */
    bool made;
    asked asked;
    tnf_derive how;
    const tnf_derived *form;
} deriving;

/* Calls make(base id) of Python, which loads the parameter itself. */
static tnf_status form_make(void *ctx, void **data, size_t *nbytes, const tnf_param *param,
                            tnf_error *e)
{
    const made *m = ctx;
    deriving *d = m->by;
    PyEval_RestoreThread(d->save);
    PyObject *value = PyObject_CallFunction(d->make, "N", id_bytes(param->base_id));
    PyObject *size = value ? PyObject_CallFunctionObjArgs(d->size, value, (PyObject *)NULL) : NULL;
    *nbytes = size ? PyLong_AsSize_t(size) : 0;
    Py_XDECREF(size);
    if (PyErr_Occurred())
        Py_CLEAR(value);
    *data = value;
    d->made = value != NULL;
    d->save = PyEval_SaveThread();
    return value ? TNF_OK : tnf_error_set(e, TNF_EINVAL, TNF_NO_OFFSET, "make() failed");
}

static void form_drop(void *ctx, void *data, size_t nbytes)
{
    (void)nbytes;
    add_dropped(ctx, data);
}

static PyObject *form_object(params *p, source *s, const tnf_derived *c)
{
    form *f = PyObject_New(form, p->st->form_type);
    if (!f) {
        tnf_params_release_derived(s->c, c);
        return NULL;
    }
    f->s = source_take(s);
    f->c = c;
    return AS_OBJECT(f);
}

/* Makes the form on this thread, where the library notices a request of the form that the thread
 * makes already. A parameter that is far away is loaded before, by a thread that Ctrl-C ends. */
static tnf_status derive_form(params *p, deriving *d, tnf_error *e)
{
    asked *a = &d->asked;
    tnf_status status = p->h->far ? handle_run(p->h, run_load, a, e) : TNF_OK;
    if (status == TNF_OK) {
        d->save = PyEval_SaveThread();
        status = a->by_id
                     ? tnf_params_derive_id(&d->form, a->s->c, a->id, &d->how, e)
                     : tnf_params_derive_n(&d->form, a->s->c, a->name.p, a->name.n, &d->how, e);
        PyEval_RestoreThread(d->save);
    }
    tnf_params_release(a->s->c, a->param);
    return status;
}

/* derive(name or id, kind, make, size) -> Form */
PyObject *params_derive(PyObject *self, PyObject *args)
{
    params *p = DATA(params, self);
    PyObject *what, *result = NULL;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    deriving d = { .how = TNF_DERIVE_INIT };
    if (!PyArg_ParseTuple(args, "OsOO", &what, &d.how.kind, &d.make, &d.size) ||
        !(d.asked.s = source_of(p)))
        return NULL;
    made *m = malloc(sizeof *m);
    if (!m) {
        PyErr_NoMemory();
    } else if (asked_from(&d.asked, what) == 0) {
        *m = (made) { d.asked.s, &d, NULL, NULL };
        d.how.make = form_make;
        d.how.drop = form_drop;
        d.how.ctx = m;
        tnf_status status = derive_form(p, &d, &e);
        result = status == TNF_OK ? form_object(p, d.asked.s, d.form)
                                  : raise_error(p->st, status, &e, p->h->path);
    }
    if (!d.made) /* else it belongs to the form */
        free(m);
    Py_XDECREF(d.asked.owner);
    source_done(d.asked.s);
    return result;
}

/* find(key, kind) -> Form, or None */
PyObject *params_find(PyObject *self, PyObject *args)
{
    params *p = DATA(params, self);
    PyObject *bytes, *result = NULL;
    const char *form_kind;
    const tnf_derived *c = NULL;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    tnf_id key;
    if (!PyArg_ParseTuple(args, "Os", &bytes, &form_kind) || id_from(&key, bytes) < 0)
        return NULL;
    source *s = source_of(p);
    if (!s)
        return NULL;
    PyThreadState *save = PyEval_SaveThread();
    tnf_status status = tnf_params_find_derived(&c, s->c, key, form_kind, &e);
    PyEval_RestoreThread(save);
    result = status == TNF_OK          ? form_object(p, s, c)
             : status == TNF_ENOTFOUND ? Py_NewRef(Py_None)
                                       : raise_error(p->st, status, &e, NULL);
    source_done(s);
    return result;
}

static void form_free(PyObject *self)
{
    form *f = DATA(form, self);
    PyTypeObject *type = Py_TYPE(self);
    if (f->s->process == getpid())
        tnf_params_release_derived(f->s->c, f->c);
    source_done(f->s);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *form_value(PyObject *self, void *ignored)
{
    (void)ignored;
    return Py_NewRef((PyObject *)DATA(form, self)->c->data);
}

/* (nbytes, kind, base id, key) */
static PyObject *form_told(PyObject *self, void *ignored)
{
    const tnf_derived *c = DATA(form, self)->c;
    (void)ignored;
    return Py_BuildValue("nsNN", (Py_ssize_t)c->nbytes, c->kind, id_bytes(c->base_id),
                         id_bytes(c->key));
}

static PyGetSetDef form_members[] = {
    { "value", form_value, NULL, "What make() returned.", NULL },
    { "told", form_told, NULL, "(nbytes, kind, base id, key)", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot form_slots[] = { { Py_tp_dealloc, form_free },
                                    { Py_tp_getset, form_members },
                                    { 0, NULL } };
PyType_Spec form_spec = { .name = "tenfold._tenfold.Form",
                          .basicsize = sizeof(form),
                          .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          .slots = form_slots };
