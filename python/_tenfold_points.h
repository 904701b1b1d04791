/* SPDX-License-Identifier: MIT */
/**
 * The handle of a VS file, shared by the sources that open it (_tenfold_points.c), read it
 * (_tenfold_points_page.c), verify it (_tenfold_points_check.c) and change it
 * (_tenfold_points_edit.c).
 *
 *   points_enter   waits until no other thread uses the handle, without the GIL
 *   points_call    one call of the library, without the GIL; Ctrl-C ends it
 *   …              the results become Python objects
 *   points_leave
 */
#ifndef TENFOLD_PYTHON_POINTS_H
#define TENFOLD_PYTHON_POINTS_H

#include "_tenfold.h"
#include <pthread.h>
#include <sys/types.h>
#include <tenfold/points.h>

typedef struct points {
    OBJECT_HEAD
    state *st;
    PyObject *path;  /**< for messages */
    PyObject *place; /**< the same as bytes, for the library */
    tnf_points_options how;
    tnf_points *c;       /**< NULL: closed */
    pid_t process;       /**< that opened it */
    PyThreadState *save; /**< of the thread that is in a call of the library */
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    bool busy; /**< with the mutex: entered */
    unsigned long owner;
} points;

/** -1 with an error: it is closed, in use by this thread, or of another process; or Ctrl-C. */
int points_enter(points *p);
void points_leave(points *p);
typedef tnf_status (*points_fn)(points *p, void *ctx, tnf_error *e);
/** Calls the function without the GIL. -1 with an error. If only the sync of a change failed, that
 *  is a warning. */
int points_call(points *p, points_fn run, void *ctx);
/** "OFFSET:HASH" */
PyObject *points_id_text(tnf_point_id id);
/** Such a text or, for deletion without checks, an offset. */
int points_id_from(points *p, tnf_point_id *out, PyObject *object, bool offset);

/* _tenfold_points_page.c */

/** Points that a call of the library takes, copied one after the other:
 *  | vector | application data | vector | … */
typedef struct points_entry {
    tnf_point_id id;
    size_t at, vector_n, app_n;
} points_entry;

typedef struct points_page {
    points_entry *entries;
    size_t n, room;
    uint8_t *bytes;
    size_t nbytes, bytes_room;
    size_t most, most_bytes; /**< numbers of points and of bytes at which the page is full */
    bool full;
} points_page;

/** A tnf_point_take_fn; ctx is the page. TNF_ECANCELLED if it is full. */
tnf_status points_take(void *ctx, const tnf_point *point, tnf_error *e);
/** (ids, vectors, apps); vectors is one array or, if `rows`, a list. Only within points_enter(). */
PyObject *points_tuple(points *p, const points_page *g, bool rows);
void points_page_free(points_page *g);
PyObject *points_read_page(PyObject *self, PyObject *args);
PyObject *points_read(PyObject *self, PyObject *id);

/* _tenfold_points_check.c */
PyObject *points_verify(PyObject *self, PyObject *ignored);
PyObject *points_salvage(PyObject *self, PyObject *ignored);

/* _tenfold_points_edit.c */
PyObject *points_append(PyObject *self, PyObject *args);
PyObject *points_delete(PyObject *self, PyObject *args);
PyObject *points_delete_app(PyObject *self, PyObject *args);
PyObject *points_compact(PyObject *self, PyObject *drop_unknown);
PyObject *points_set_attributes(PyObject *self, PyObject *args);

#endif
