/* SPDX-License-Identifier: MIT */
/* Parameter sources: the base of tenfold/params.py. */
#include "_tenfold_params.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------- source */

source *source_take(source *s)
{
    atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
    return s;
}

/* Called with or without the GIL. In a child process the threads and locks of the library are those
 * of the parent, so the source is only forgotten. */
static void source_drop(source *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->count, 1, memory_order_acq_rel) != 1 ||
        s->process != getpid())
        return;
    tnf_params_free(s->c);
    hold_drop(s->hold);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

source *source_of(params *p)
{
    if (!p->s || atomic_load(&p->s->closed))
        return raise_text(p->st, TNF_EINVAL, "Params are closed");
    if (p->s->process != getpid())
        return raise_text(p->st, TNF_EINVAL,
                          "Params were made by another process; make them again");
    return handle_ready(p->h) < 0 ? NULL : source_take(p->s);
}

void source_done(source *s)
{
    PyObject *type, *value, *trace;
    if (s->process != getpid())
        return;
    PyErr_Fetch(&type, &value, &trace);
    PyThreadState *save = PyEval_SaveThread();
    if (atomic_load(&s->closed))
        tnf_params_trim(s->c);
    PyEval_RestoreThread(save);
    release_dropped(s);
    save = PyEval_SaveThread();
    source_drop(s);
    PyEval_RestoreThread(save);
    PyErr_Restore(type, value, trace);
}

/* ------------------------------------------------------------------ opening */

typedef struct making {
    source *s;
    tnf_params_options how;
    tnf_id space;
    PyObject *arena;
} making;

static tnf_status run_make(void *ctx, tnf_error *e)
{
    const making *m = ctx;
    return tnf_params_new(&m->s->c, hold_file(m->s->hold), &m->how, e);
}

static int make_options(making *m, PyObject *options)
{
    PyObject *space = option_value(options, "namespace");
    PyObject *percent = option_value(options, "budget_percent");
    tnf_params_options *o = &m->how;
    if (option_count(options, "budget", &o->budget) < 0 ||
        option_count(options, "budget_cap", &o->budget_cap) < 0 ||
        option_count(options, "small_bytes", &o->small_bytes) < 0 ||
        option_count(options, "prefetch_layers", &o->prefetch_layers) < 0 ||
        option_text(options, "prefetch_prefix", m->arena, &o->prefetch_prefix) < 0 ||
        option_flag(options, "budget_zero", &o->budget_zero) < 0 ||
        (space && id_from(&m->space, space) < 0))
        return -1;
    o->name_space = space ? &m->space : NULL;
    o->budget_percent = percent ? PyFloat_AsDouble(percent) : 0;
    return PyErr_Occurred() ? -1 : 0;
}

static source *source_new(params *p)
{
    source *s = calloc(1, sizeof *s);
    if (!s)
        return (void *)PyErr_NoMemory();
    atomic_init(&s->count, 1);
    atomic_init(&s->closed, false);
    pthread_mutex_init(&s->mutex, NULL);
    s->hold = hold_take(p->h->hold);
    s->process = getpid();
    s->interp = PyInterpreterState_Get();
    s->resolver = p->resolver;
    return s;
}

static int params_make(params *p, PyObject *options)
{
    tnf_error e = { .offset = TNF_NO_OFFSET };
    making m = { .how = TNF_PARAMS_INIT, .arena = PyList_New(0) };
    if (m.arena && make_options(&m, options) == 0)
        m.s = source_new(p);
    if (m.s) {
        m.how.resolver = p->resolver ? &python_resolver : NULL;
        m.how.resolver_ctx = m.s;
        tnf_status status = handle_run(p->h, run_make, &m, &e);
        if (status == TNF_OK) {
            p->s = m.s;
        } else {
            source_drop(m.s);
            raise_error(p->st, status, &e, p->h->path);
        }
    }
    Py_XDECREF(m.arena);
    return p->s ? 0 : -1;
}

/* Params(file, options, resolver or None) */
static PyObject *params_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *file, *options, *resolver;
    (void)kwargs;
    state *st = PyType_GetModuleState(type);
    if (!st || !PyArg_ParseTuple(args, "OO!O", &file, &PyDict_Type, &options, &resolver))
        return NULL;
    handle *h = handle_of(st, file);
    params *p = h ? PyObject_New(params, type) : NULL;
    if (!p)
        return NULL;
    p->st = st;
    p->h = DATA(handle, Py_NewRef(AS_OBJECT(h)));
    p->s = NULL;
    p->resolver = resolver == Py_None ? NULL : Py_NewRef(resolver);
    if (params_make(p, options) < 0)
        Py_CLEAR(p);
    return AS_OBJECT(p);
}

/* What is in use stays; everything else is dropped. Without a GIL another thread may be using the
 * source, so it is given back with the object itself. */
static void end_source(params *p, bool last)
{
    source *s = p->s;
    if (!s)
        return;
    atomic_store(&s->closed, true);
#ifdef Py_GIL_DISABLED
    if (!last) {
        source_done(source_take(s));
        return;
    }
#endif
    (void)last;
    p->s = NULL;
    source_done(s);
}

static PyObject *params_close(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    end_source(DATA(params, self), false);
    return Py_NewRef(Py_None);
}

static void params_free(PyObject *self)
{
    params *p = DATA(params, self);
    PyTypeObject *type = Py_TYPE(self);
    end_source(p, true);
    Py_DECREF(AS_OBJECT(p->h));
    Py_XDECREF(p->resolver);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* --------------------------------------------------------------------- load */

int asked_from(asked *a, PyObject *what)
{
    a->by_id = PyBytes_Check(what);
    return a->by_id ? id_from(&a->id, what) : text_of(what, &a->name, &a->owner);
}

tnf_status run_load(void *ctx, tnf_error *e)
{
    asked *a = ctx;
    return a->by_id ? tnf_params_load_id(&a->param, a->s->c, a->id, e)
                    : tnf_params_load_n(&a->param, a->s->c, a->name.p, a->name.n, e);
}

/* A parameter that a block lends. */
typedef struct loan {
    source *s;
    const tnf_param *param;
} loan;

static void loan_end(void *lent)
{
    loan *l = lent;
    if (l->s->process == getpid())
        tnf_params_release(l->s->c, l->param);
    source_drop(l->s);
    free(l);
}

/* A block over a parameter, or with a copy of it if the file is in memory of Python. Takes the
 * parameter; NULL with an error. */
static block *param_block(params *p, source *s, const tnf_param *param, int rank)
{
    block *b = NULL;
    loan *l = p->h->of_python ? NULL : malloc(sizeof *l);
    if (l) {
        *l = (loan) { source_take(s), param };
        b = block_over(rank, param->data, param->nbytes, loan_end, l);
        if (!b)
            loan_end(l);
    } else {
        b = p->h->of_python ? block_new(rank, param->nbytes) : NULL;
        if (b)
            memcpy(b->data, param->data, param->nbytes);
        tnf_params_release(s->c, param);
    }
    return b ? b : (void *)PyErr_NoMemory();
}

/* A read-only Array of a parameter, which it takes. A tensor that is not dense gives its bytes. */
static PyObject *param_array(params *p, source *s, const tnf_param *param)
{
    Py_ssize_t shape[MOST_RANK], strides[MOST_RANK];
    tensor t = { .h = p->h, .object = param->object };
    const tnf_type *type = param->object->parts[0].type;
    bool dense = !strcmp(tnf_layout_id(param->object->layout), "dense") && kind_of(type);
    int rank = dense ? tensor_form(&t, shape, strides) : 1;
    if (!dense) {
        type = tnf_type_named("u8");
        shape[0] = (Py_ssize_t)param->nbytes;
        strides[0] = 1;
    }
    if (rank < 0) {
        tnf_params_release(s->c, param);
        return NULL;
    }
    block *b = param_block(p, s, param, rank);
    if (!b)
        return NULL;
    memcpy(b->shape, shape, (size_t)rank * sizeof *shape);
    memcpy(b->strides, strides, (size_t)rank * sizeof *strides);
    PyObject *result = array_make(p->st, type, b);
    if (result)
        DATA(array, result)->readonly = true;
    return result;
}

/* load(name or id) -> (Array, name, base id, key) */
static PyObject *params_load(PyObject *self, PyObject *what)
{
    params *p = DATA(params, self);
    tnf_error e = { .offset = TNF_NO_OFFSET };
    asked a = { .s = source_of(p) };
    PyObject *result = NULL;
    if (!a.s)
        return NULL;
    if (asked_from(&a, what) == 0) {
        tnf_status status = handle_run(p->h, run_load, &a, &e);
        if (status == TNF_OK) {
            PyObject *name = str_of(a.param->object->name), *base = id_bytes(a.param->base_id);
            PyObject *key = id_bytes(a.param->key);
            result = Py_BuildValue("NNNN", param_array(p, a.s, a.param), name, base, key);
        } else {
            tnf_params_release(a.s->c, a.param); /* Ctrl-C came after it was loaded */
            raise_error(p->st, status, &e, p->h->path);
        }
    }
    Py_XDECREF(a.owner);
    source_done(a.s);
    return result;
}

/* ------------------------------------------------------------ other methods */

typedef struct prefetching {
    source *s;
    const char *prefix;
} prefetching;

static tnf_status run_prefetch(void *ctx, tnf_error *e)
{
    const prefetching *f = ctx;
    return tnf_params_prefetch(f->s->c, f->prefix, e);
}

static PyObject *params_prefetch(PyObject *self, PyObject *prefix)
{
    params *p = DATA(params, self);
    tnf_error e = { .offset = TNF_NO_OFFSET };
    PyObject *result = NULL, *arena = PyList_New(0);
    prefetching f = { arena ? source_of(p) : NULL, NULL };
    if (f.s && (f.prefix = arena_text(arena, prefix))) {
        tnf_status status = handle_run(p->h, run_prefetch, &f, &e);
        result = status == TNF_OK ? Py_NewRef(Py_None) : raise_error(p->st, status, &e, p->h->path);
    }
    if (f.s)
        source_done(f.s);
    Py_XDECREF(arena);
    return result;
}

/* ahead(tuple of names, or None) */
static PyObject *params_ahead(PyObject *self, PyObject *names)
{
    params *p = DATA(params, self);
    tnf_error e = { .offset = TNF_NO_OFFSET };
    PyObject *result = NULL, *arena = PyList_New(0);
    size_t n = 0;
    source *s = arena ? source_of(p) : NULL;
    tnf_str *texts = s && names != Py_None ? text_list(names, &n, arena) : NULL;
    if (s && (texts || names == Py_None)) {
        PyThreadState *save = PyEval_SaveThread();
        tnf_status status = tnf_params_ahead(s->c, texts, n, &e);
        PyEval_RestoreThread(save);
        result = status == TNF_OK ? Py_NewRef(Py_None) : raise_error(p->st, status, &e, p->h->path);
    }
    if (s)
        source_done(s);
    Py_XDECREF(arena);
    return result;
}

static PyObject *params_trim(PyObject *self, PyObject *ignored)
{
    source *s = source_of(DATA(params, self));
    (void)ignored;
    if (!s)
        return NULL;
    PyThreadState *save = PyEval_SaveThread();
    tnf_params_trim(s->c);
    PyEval_RestoreThread(save);
    source_done(s);
    return Py_NewRef(Py_None);
}

static PyObject *stats_dict(const tnf_params_stats *t)
{
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {
        { "hits", t->hits },
        { "misses", t->misses },
        { "evictions", t->evictions },
        { "loaded_bytes", t->loaded_bytes },
        { "cached_bytes", t->cached_bytes },
        { "pinned_bytes", t->pinned_bytes },
        { "cached", t->cached },
        { "in_use", t->in_use },
        { "budget", t->budget },
        { "ahead", t->ahead },
        { "ahead_bytes", t->ahead_bytes },
        { "derived", t->derived },
        { "derived_bytes", t->derived_bytes },
        { "derived_in_use", t->derived_in_use },
        { "derived_hits", t->derived_hits },
        { "made", t->made },
    };
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < sizeof all / sizeof *all; i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(all[i].value);
        if (!value || PyDict_SetItemString(dict, all[i].name, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *params_stats(PyObject *self, PyObject *ignored)
{
    params *p = DATA(params, self);
    tnf_params_stats stats = TNF_PARAMS_STATS_INIT;
    tnf_error e = { .offset = TNF_NO_OFFSET };
    source *s = source_of(p);
    (void)ignored;
    if (!s)
        return NULL;
    tnf_status status = tnf_params_statistics(&stats, s->c, &e);
    PyObject *dict = status == TNF_OK ? stats_dict(&stats) : raise_error(p->st, status, &e, NULL);
    source_done(s);
    return dict;
}

static PyObject *params_namespace(PyObject *self, void *ignored)
{
    source *s = source_of(DATA(params, self));
    (void)ignored;
    PyObject *bytes = s ? id_bytes(tnf_params_namespace(s->c)) : NULL;
    if (s)
        source_done(s);
    return bytes;
}

static PyObject *params_closed(PyObject *self, void *ignored)
{
    (void)ignored;
    const source *s = DATA(params, self)->s;
    return PyBool_FromLong(!s || atomic_load(&s->closed));
}

static PyMethodDef params_methods[] = {
    { "load", params_load, METH_O, "load(name or id): (Array, name, base id, key)" },
    { "derive", params_derive, METH_VARARGS, "derive(name or id, kind, make, size): Form" },
    { "find", params_find, METH_VARARGS, "find(key, kind): Form, or None" },
    { "prefetch", params_prefetch, METH_O, "prefetch(prefix)" },
    { "ahead", params_ahead, METH_O, "ahead(names or None)" },
    { "trim", params_trim, METH_NOARGS, "Drops what is not in use." },
    { "stats", params_stats, METH_NOARGS, "A dict." },
    { "close", params_close, METH_NOARGS, "Ends loads. What is in use stays." },
    { NULL, NULL, 0, NULL },
};
static PyGetSetDef params_members[] = {
    { "namespace", params_namespace, NULL, "16 bytes.", NULL },
    { "closed", params_closed, NULL, "Is it closed?", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot params_slots[] = { { Py_tp_new, params_new },
                                      { Py_tp_dealloc, params_free },
                                      { Py_tp_methods, params_methods },
                                      { Py_tp_getset, params_members },
                                      { 0, NULL } };
PyType_Spec params_spec = { .name = "tenfold._tenfold.Params",
                            .basicsize = sizeof(params),
                            .flags = Py_TPFLAGS_DEFAULT,
                            .slots = params_slots };

/* -------------------------------------------------------------------- Param */

/* The base of Param in tenfold/params.py: an Array, until it is released. */
typedef struct lent {
    OBJECT_HEAD
    PyObject *array; /* NULL: released */
    atomic_bool released;
} lent;

static PyObject *lent_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *given;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O", &given))
        return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = make(type, 0);
    if (self) {
        DATA(lent, self)->array = Py_NewRef(given);
        atomic_init(&DATA(lent, self)->released, false);
    }
    return self;
}

static void lent_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(DATA(lent, self)->array);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *lent_array(PyObject *self, void *ignored)
{
    const lent *l = DATA(lent, self);
    (void)ignored;
    if (!atomic_load(&l->released))
        return Py_NewRef(l->array);
    PyErr_SetString(PyExc_ValueError, "the parameter was released");
    return NULL;
}

static PyObject *lent_release(PyObject *self, PyObject *ignored)
{
    lent *l = DATA(lent, self);
    (void)ignored;
    atomic_store(&l->released, true);
#ifndef Py_GIL_DISABLED /* else another thread may be using the Array */
    PyObject *array_object = l->array;
    l->array = NULL;
    Py_XDECREF(array_object);
#endif
    return Py_NewRef(Py_None);
}

/* The view belongs to the Array, so it may outlive this object. */
static int lent_buffer(PyObject *self, Py_buffer *view, int flags)
{
    PyObject *array_object = lent_array(self, NULL);
    int bad = array_object ? PyObject_GetBuffer(array_object, view, flags) : -1;
    if (!array_object)
        view->obj = NULL;
    Py_XDECREF(array_object);
    return bad;
}

static PyMethodDef lent_methods[] = {
    { "release", lent_release, METH_NOARGS, "Views of the parameter stay valid." },
    { NULL, NULL, 0, NULL },
};
static PyGetSetDef lent_members[] = {
    { "array", lent_array, NULL, "An Array over the parameter.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot lent_slots[] = {
    { Py_tp_new, lent_new },          { Py_tp_dealloc, lent_free },
    { Py_tp_methods, lent_methods },  { Py_tp_getset, lent_members },
    { Py_bf_getbuffer, lent_buffer }, { 0, NULL }
};
PyType_Spec lent_spec = { .name = "tenfold._tenfold.Param",
                          .basicsize = sizeof(lent),
                          .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          .slots = lent_slots };
