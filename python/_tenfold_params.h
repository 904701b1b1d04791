/* SPDX-License-Identifier: MIT */
/**
 * Parameter sources, shared by _tenfold_params.c and _tenfold_params_forms.c.
 *
 *   Params ──▶ source ──▶ tnf_params, hold      Array ──▶ block ──▶ tnf_param, source
 *                 ▲                             Form  ──▶ tnf_derived, source
 *                 └── counted in C: an array or a capsule may outlive Params
 *
 * Calls of the library may wait for other threads, so they are made without the GIL. It drops
 * derived forms on any thread, perhaps without the GIL: then they wait in a list of the source for
 * the next call from Python.
 */
#ifndef TENFOLD_PYTHON_PARAMS_H
#define TENFOLD_PYTHON_PARAMS_H

#include "_tenfold.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <tenfold/params.h>

typedef struct source {
    atomic_size_t count;
    tnf_params *c;
    hold *hold;
    pid_t process; /**< that made it */
    PyInterpreterState *interp;
    PyObject *resolver; /**< of Params, or NULL */
    atomic_bool closed; /**< nothing unused is kept */
    pthread_mutex_t mutex;
    struct made *dropped; /**< with the mutex */
} source;

typedef struct params {
    OBJECT_HEAD
    state *st;
    handle *h;
    source *s; /**< NULL: closed */
    PyObject *resolver;
} params;

/** The source of open Params, taken; NULL with an error. */
source *source_of(params *p);
source *source_take(source *s);
/** Ends a call: gives the source back. An exception stays. */
void source_done(source *s);

PyObject *id_bytes(tnf_id id);
int id_from(tnf_id *out, PyObject *bytes);
/** A tuple of str as texts; the arena keeps their memory. */
tnf_str *text_list(PyObject *tuple, size_t *n, PyObject *arena);

/** A parameter by its name (a str) or its base id (bytes). */
typedef struct asked {
    source *s;
    tnf_str name;
    bool by_id;
    tnf_id id;
    PyObject *owner;
    const tnf_param *param;
} asked;

int asked_from(asked *a, PyObject *what);
/** A work_fn that loads it. */
tnf_status run_load(void *ctx, tnf_error *e);

/* _tenfold_params_forms.c */
extern const tnf_resolver_ops python_resolver; /**< its context is a source */
void release_dropped(source *s);               /**< with the GIL, and without an exception */
PyObject *params_derive(PyObject *self, PyObject *args);
PyObject *params_find(PyObject *self, PyObject *args);

#endif
