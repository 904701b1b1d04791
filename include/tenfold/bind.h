/* SPDX-License-Identifier: MIT */
/**
 * @file bind.h
 * Get the tensors of a model by name: check type and shape, then use the values without a copy.
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

/** A dimension of any size; 0 means the same. */
#define TNF_ANY      UINT64_MAX
/** Any rank. */
#define TNF_ANY_RANK UINT32_MAX

/** Writes a shape as text: "[2,3]", "[]" for a single number, "[?]" for NULL. Works as snprintf():
 *  writes at most n bytes, the last one a NUL, and returns the length of the whole text. */
TNF_API size_t tnf_shape_text(char *out, size_t n, const tnf_object *object);

/** Checks that a tensor is dense and has this type (NULL: any), rank and shape (NULL: any). Returns
 *  TNF_EINVAL if not; the message names the tensor, what it has and what was expected. Returns
 *  TNF_ENOTFOUND if `object` is NULL. */
TNF_API TNF_CHECKED tnf_status tnf_expect(const tnf_object *object, const tnf_type *type,
                                          uint32_t rank, const uint64_t *shape, tnf_error *error);

/** A tensor that the caller needs. Begin with TNF_BINDING_INIT. */
typedef struct tnf_binding {
    const char *name;      /**< name of the tensor; ends with a NUL, unless name_bytes is set */
    const tnf_type *type;  /**< NULL: any */
    const uint64_t *shape; /**< NULL: any shape of that rank */
    uint32_t rank;         /**< or TNF_ANY_RANK */
    /** Memory for the values, used if they cannot be mapped. NULL: tnf_bind() then fails. */
    void *dst;
    size_t n; /**< bytes of dst, at least those of the tensor */
    /** Result: the values, little-endian, row by row and aligned for their type. They are in the
     *  mapped file, valid until it is closed, or in dst. */
    const void *view;
    const tnf_object *object; /**< result: the tensor; NULL if the file has none */
    size_t name_bytes;        /**< length of a name with NULs in it; 0: it ends at its first NUL */
    uint64_t reserved[3];     /**< 0 */
} tnf_binding;

/** A binding of any type, rank and shape. */
#define TNF_BINDING_INIT                                                                           \
    {                                                                                              \
        NULL, NULL, NULL, TNF_ANY_RANK, NULL, 0, NULL, NULL, 0,                                    \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }

/** Called on the caller's thread for each binding that fails, with the reason. Both are valid
 * during the call. */
typedef void (*tnf_bind_problem_fn)(void *ctx, const tnf_binding *binding, const tnf_error *why);

/** Binds n tensors. All are checked before any is read. If some are missing or have another type or
 *  shape, `problem` (may be NULL) is called for each of them, and nothing is read. The error then
 *  describes the first one and says how many others there are. */
TNF_API TNF_CHECKED tnf_status tnf_bind(const tnf_file *file, tnf_binding *bindings, size_t n,
                                        tnf_bind_problem_fn problem, void *ctx, tnf_error *error);

#ifdef __cplusplus
}
#endif
#endif
