/* SPDX-License-Identifier: MIT */
/**
 * @file bind.h
 * What every loader does: ask for tensors by name, check what they are, and get at their values.
 *
 *     const uint64_t shape[] = { TNF_ANY, 768 };
 *     tnf_binding wanted[] = { TNF_BINDING_INIT, TNF_BINDING_INIT };
 *     wanted[0].name = "wte";
 *     wanted[0].type = tnf_type_of(TNF_F32);
 *     wanted[0].rank = 2;
 *     wanted[0].shape = shape;
 *     …
 *     tnf_bind(file, wanted, 2, NULL, NULL, &error);
 *     use(wanted[0].view);
 */
#ifndef TENFOLD_BIND_H
#define TENFOLD_BIND_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A dimension that may be anything; 0 says the same. */
#define TNF_ANY      UINT64_MAX
/** A rank that may be anything. */
#define TNF_ANY_RANK UINT32_MAX

/** "[2,3]", "[]" for a single number; "[?]" for NULL. Writes as snprintf() does: at most n bytes
 *  with a NUL at the end; returns the length of the whole. */
TNF_API size_t tnf_shape_text(const tnf_object *object, char *out, size_t n);

/** Is it a dense tensor of that type (NULL: any), rank and shape (NULL: any)? TNF_EINVAL with a
 *  sentence that names it, what it has and what is wanted; TNF_ENOTFOUND for NULL. */
TNF_API TNF_CHECKED tnf_status tnf_expect(const tnf_object *object, const tnf_type *type,
                                          uint32_t rank, const uint64_t *shape, tnf_error *error);

/** A tensor that is wanted. Begin with TNF_BINDING_INIT. */
typedef struct tnf_binding {
    const char *name;
    const tnf_type *type;  /**< NULL: any */
    const uint64_t *shape; /**< NULL: any of that rank */
    uint32_t rank;         /**< or TNF_ANY_RANK */
    /** Room for the values where they cannot be shown without a copy; NULL: then it fails. */
    void *dst;
    size_t n; /**< bytes of dst, at least those of the tensor */
    /** For the function to set: the values, little-endian, row by row and aligned for their type;
     *  in the mapped file, until that is closed, or in dst. */
    const void *view;
    const tnf_object *object; /**< likewise: the tensor; NULL if there is none */
    uint64_t reserved[4];     /**< 0 */
} tnf_binding;

#define TNF_BINDING_INIT                                                                           \
    {                                                                                              \
        NULL, NULL, NULL, TNF_ANY_RANK, NULL, 0, NULL, NULL,                                       \
        {                                                                                          \
            0, 0, 0, 0                                                                             \
        }                                                                                          \
    }

/** Told of a binding that cannot be had, and why. */
typedef void (*tnf_bind_problem_fn)(void *ctx, const tnf_binding *binding, const tnf_error *why);

/** Binds n tensors. All are looked at before any is read: if some are missing or are not what is
 *  wanted, each is told to `problem` (which may be NULL), the error is that of the first, with how
 *  many more there are, and nothing is read. */
TNF_API TNF_CHECKED tnf_status tnf_bind(const tnf_file *file, tnf_binding *bindings, size_t n,
                                        tnf_bind_problem_fn problem, void *ctx, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
