/* SPDX-License-Identifier: MIT */
/* Decompositions of d x d matrices, by LAPACK, where d is the length of a row. Work on all rows of
 * a file is done elsewhere, so this is a small part of the total, and one thread is enough.
 *
 * LAPACK is column-major: a row here is a column there.
 */
#include "ext/emb/pq_train.h"

#include "base/ckd.h"
#include "base/error.h"

#include <math.h>

#define MOST 16384u /* rows; the sizes of workspaces are ints */

#ifdef TENFOLD_LAPACK
/* LAPACK is loaded at first use, since it needs a Fortran runtime and takes milliseconds, which
 * other callers should not pay for. It is never unloaded, since other libraries may use it by
 * then. */
#include "base/symbol.h"

#include <pthread.h>

/* Fortran: all arguments are addresses, and the lengths of texts come last. */
typedef void dsyevd_function(const char *task, const char *half, const int *n, double *a,
                             const int *a_pitch, double *values, double *work, const int *work_n,
                             int *iwork, const int *iwork_n, int *info, size_t task_n,
                             size_t half_n);
typedef void dgesdd_function(const char *task, const int *m, const int *n, double *a,
                             const int *a_pitch, double *values, double *u, const int *u_pitch,
                             double *vt, const int *vt_pitch, double *work, const int *work_n,
                             int *iwork, int *info, size_t task_n);

static struct {
    dsyevd_function *dsyevd;
    dgesdd_function *dgesdd;
    /* If LAPACK is OpenBLAS, it would start threads, and their number would change its results. */
    int (*get_threads)(void);
    void (*set_threads)(int n);
} lapack;

#ifdef __APPLE__
#define NAMED "Accelerate"
static const char *const libraries[] = { "liblapack.dylib", "/usr/lib/liblapack.dylib" };
#else
#define NAMED "liblapack.so.3"
static const char *const libraries[] = { "liblapack.so.3", "libopenblas.so.0", "liblapack.so" };
#endif

static void load_lapack(void)
{
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            continue;
        tnf_find_symbol(library, "dsyevd_", &lapack.dsyevd);
        tnf_find_symbol(library, "dgesdd_", &lapack.dgesdd);
        tnf_find_symbol(library, "openblas_get_num_threads", &lapack.get_threads);
        tnf_find_symbol(library, "openblas_set_num_threads", &lapack.set_threads);
        if (lapack.dsyevd && lapack.dgesdd)
            return;
        dlclose(library);
    }
    lapack.dsyevd = NULL;
}

tnf_status tnf_opq_ready(tnf_error *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_lapack);
    if (lapack.dsyevd)
        return TNF_OK;
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "opq and gaussian_opq need LAPACK, but " NAMED " cannot be loaded: install it; "
                    "a statically linked program can never load it");
}

static int one_thread(void)
{
    if (!lapack.get_threads || !lapack.set_threads)
        return 0;
    int before = lapack.get_threads();
    lapack.set_threads(1);
    return before;
}

static void threads_again(int before)
{
    if (before > 0)
        lapack.set_threads(before);
}

static tnf_status check_dims(size_t d, tnf_error *e)
{
    if (d <= MOST)
        return TNF_OK;
    return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET,
                    "rows of %zu numbers cannot be rotated; the limit is %u", d, MOST);
}

static tnf_status lapack_failed(int info, tnf_error *e)
{
    return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET, "LAPACK failed for these rows (%d)", info);
}

/* Fixes the signs of eigenvectors, which LAPACK may choose freely. */
static void fix_signs(double *vectors, size_t d)
{
    for (size_t j = 0; j < d; j++) {
        double *v = vectors + j * d;
        size_t largest = 0;
        for (size_t i = 1; i < d; i++)
            if (fabs(v[i]) > fabs(v[largest]))
                largest = i;
        bool negate = v[largest] < 0;
        for (size_t i = 0; negate && i < d; i++)
            v[i] = -v[i];
    }
}

tnf_status tnf_eigen(double *matrix, size_t d, double *values, const tnf_allocator *alloc,
                     tnf_error *e)
{
    int n = (int)d, ask = -1, info = 0, iwork_n = 0;
    double work_n = 0;
    TNF_TRY(tnf_opq_ready(e));
    TNF_TRY(check_dims(d, e));
    lapack.dsyevd("V", "L", &n, matrix, &n, values, &work_n, &ask, &iwork_n, &ask, &info, 1, 1);
    if (info != 0)
        return lapack_failed(info, e);
    size_t work_size = (size_t)work_n * sizeof(double), size = work_size;
    size += (size_t)iwork_n * sizeof(int);
    double *work = tnf_alloc(alloc, size);
    if (!work)
        return tnf_no_memory("eigenvectors", e);
    int doubles = (int)work_n, before = one_thread();
    lapack.dsyevd("V", "L", &n, matrix, &n, values, work, &doubles, (int *)(work + doubles),
                  &iwork_n, &info, 1, 1);
    threads_again(before);
    tnf_free(alloc, work, size);
    if (info != 0)
        return lapack_failed(info, e);
    fix_signs(matrix, d);
    return TNF_OK;
}

/* out[a][b] = sum over j of v[a][j] * u[j][b], both in the order of LAPACK. */
static void multiply_rotations(double *out, const double *vt, const double *u, size_t d)
{
    memset(out, 0, d * d * sizeof *out);
    for (size_t a = 0; a < d; a++)
        for (size_t j = 0; j < d; j++)
            for (size_t b = 0; b < d; b++)
                out[a * d + b] += vt[a * d + j] * u[j * d + b];
}

/* LAPACK sees the matrix A as A^T, and finds A^T = U S V^T. Then A = V S U^T, and the result is
 * V U^T. */
tnf_status tnf_nearest_rotation(double *matrix, size_t d, double *out, const tnf_allocator *alloc,
                                tnf_error *e)
{
    int n = (int)d, ask = -1, info = 0;
    double work_n = 0;
    TNF_TRY(tnf_opq_ready(e));
    TNF_TRY(check_dims(d, e));
    lapack.dgesdd("A", &n, &n, matrix, &n, NULL, NULL, &n, NULL, &n, &work_n, &ask, NULL, &info, 1);
    if (info != 0)
        return lapack_failed(info, e);
    size_t doubles = (size_t)work_n + 2 * d * d + d;
    size_t size = doubles * sizeof(double) + 8 * d * sizeof(int);
    double *work = tnf_alloc(alloc, size);
    if (!work)
        return tnf_no_memory("singular values", e);
    double *u = work + (size_t)work_n, *vt = u + d * d, *values = vt + d * d;
    int given = (int)work_n, before = one_thread();
    lapack.dgesdd("A", &n, &n, matrix, &n, values, u, &n, vt, &n, work, &given,
                  (int *)(work + doubles), &info, 1);
    threads_again(before);
    if (info == 0)
        multiply_rotations(out, vt, u, d);
    tnf_free(alloc, work, size);
    return info == 0 ? TNF_OK : lapack_failed(info, e);
}
#else

tnf_status tnf_opq_ready(tnf_error *e)
{
    return tnf_fail(e, TNF_EUNSUPPORTED, TNF_NO_OFFSET,
                    "opq and gaussian_opq are not in this build of the library; build it with "
                    "-DTENFOLD_LAPACK=ON");
}

tnf_status tnf_eigen(double *matrix, size_t d, double *values, const tnf_allocator *alloc,
                     tnf_error *e)
{
    (void)matrix;
    (void)d;
    (void)values;
    (void)alloc;
    return tnf_opq_ready(e);
}

tnf_status tnf_nearest_rotation(double *matrix, size_t d, double *out, const tnf_allocator *alloc,
                                tnf_error *e)
{
    (void)matrix;
    (void)d;
    (void)out;
    (void)alloc;
    return tnf_opq_ready(e);
}
#endif
