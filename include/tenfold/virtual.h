/* SPDX-License-Identifier: MIT */
/**
 * @file virtual.h
 * Tensors whose values are not stored as such: cast, dequantized, sliced, joined …
 *
 *     tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
 *     how.kind = TNF_VIRTUAL_CAST;
 *     how.type = tnf_type_of(TNF_F32);
 *     tnf_virtual *v;
 *     tnf_virtual_new(&v, &object, 1, &how, &error);
 *     tnf_read_slice(dst, n, tnf_virtual_object(v), slices, &error);
 *     tnf_virtual_free(v);
 *
 * All functions that read accept such a tensor, and so does tnf_builder_add_object(). Values are
 * computed only when they are read. A read costs as much as its window and one block, row or chunk
 * around it. Virtual tensors can be made of virtual tensors.
 */
#ifndef TENFOLD_VIRTUAL_H
#define TENFOLD_VIRTUAL_H

#include <tenfold/tenfold.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a virtual tensor does to its sources. */
typedef enum tnf_virtual_kind {
    /** The numbers that a tensor of any layout represents: f32 for a quantized one (quant_group/1,
     *  mx/1, pq/1, blocks). A dense tensor stays as it is. TNF_EUNSUPPORTED for other layouts. */
    TNF_VIRTUAL_VALUES,
    /** Floats, integers or bools as floats of the type `type`. Each number is rounded once to the
     *  nearest, ties to even. */
    TNF_VIRTUAL_CAST,
    /** The elements that `slices` select. */
    TNF_VIRTUAL_SLICE,
    /** The same tensor in the order `order`. */
    TNF_VIRTUAL_ORDER,
    /** The bytes of each element in reverse. */
    TNF_VIRTUAL_SWAP,
    /** Tensors joined along dimension `axis`. They may differ only in the size of that
     *  dimension. */
    TNF_VIRTUAL_JOIN,
    /** Pieces of a tensor of the shape `shape`, each at its place in `starts`. */
    TNF_VIRTUAL_GRID,
    /** The product of a tensor of floats (the first source) and the scales of its blocks (the
     *  second), as f32. See `block`. */
    TNF_VIRTUAL_SCALED,
    /** Floats encoded in the blocks of the layout `layout`, rounded as that layout's own programs
     *  do. The new tensor has that layout. TNF_EINVAL while reading if a number is not finite. */
    TNF_VIRTUAL_BLOCKS
} tnf_virtual_kind;

/** How to make a virtual tensor. Begin with TNF_VIRTUAL_HOW_INIT. The library copies all of it. */
typedef struct tnf_virtual_how {
    size_t size;             /**< sizeof(tnf_virtual_how) */
    tnf_virtual_kind kind;   /**< what to do */
    uint32_t axis;           /**< TNF_VIRTUAL_JOIN: the dimension */
    tnf_order order;         /**< TNF_VIRTUAL_ORDER: the wanted order */
    uint32_t rank;           /**< TNF_VIRTUAL_GRID: dimensions of the whole */
    const tnf_type *type;    /**< TNF_VIRTUAL_CAST: the wanted type */
    const tnf_slice *slices; /**< TNF_VIRTUAL_SLICE: one for each dimension */
    const uint64_t *shape;   /**< TNF_VIRTUAL_GRID: of the whole */
    const uint64_t
        *starts; /**< TNF_VIRTUAL_GRID: `rank` numbers for each source: its first index */
    /** TNF_VIRTUAL_GRID: the bytes of an element where there is no source. NULL: the sources must
     *  tile the whole. */
    const void *fill;
    /** TNF_VIRTUAL_SCALED: the size of a block in each dimension of the first source. NULL: 128 if
     *  that gives the number of scales, else the ratio of the two shapes. */
    const uint64_t *block;
    /** The name of the new tensor; NULL: that of the first source. */
    const char *name;
    const tnf_layout *layout; /**< TNF_VIRTUAL_BLOCKS: the wanted layout */
} tnf_virtual_how;

/** A tnf_virtual_how with its size; everything else is 0. */
#define TNF_VIRTUAL_HOW_INIT                                                                       \
    {                                                                                              \
        sizeof(tnf_virtual_how), TNF_VIRTUAL_VALUES, 0, TNF_ORDER_C, 0, NULL, NULL, NULL, NULL,    \
            NULL, NULL, NULL, NULL                                                                 \
    }

/** A tensor that is made of others. Any number of threads may read it at once. */
typedef struct tnf_virtual tnf_virtual;

/** Makes a tensor of n others. The sources, and their files, must stay until it is freed. Returns
 *  TNF_EINVAL if the sources do not fit together, TNF_EUNSUPPORTED if they have no such values.
 *  `how` NULL means TNF_VIRTUAL_HOW_INIT. */
TNF_API TNF_CHECKED tnf_status tnf_virtual_new(tnf_virtual **out, const tnf_object *const *sources,
                                               size_t n, const tnf_virtual_how *how,
                                               tnf_error *error);
/** Returns the tensor: dense (except for TNF_VIRTUAL_BLOCKS), with one part `data`, without a
 *  digest. It lives as long as v. */
TNF_API const tnf_object *tnf_virtual_object(const tnf_virtual *v);
/** Returns true if only reading in order has full speed, because a source is compressed as a
 *  whole. */
TNF_API bool tnf_virtual_sequential(const tnf_virtual *v);
/** Frees a virtual tensor. NULL is allowed. */
TNF_API void tnf_virtual_free(tnf_virtual *v);

/** Returns true if TNF_VIRTUAL_VALUES can give the numbers of tensors of this layout; true for
 *  dense. tnf_virtual_new() then checks whether a tensor follows the rules of its layout. */
TNF_API bool tnf_layout_has_values(const tnf_layout *layout);

#ifdef __cplusplus
}
#endif
#endif
