/* SPDX-License-Identifier: MIT */
/* Structs of callers of any version, which the library reads or fills. */
#include "base/sized.h"

#include <string.h>

/* No struct will ever be this large: such a size was not initialised. */
#define MAX_STRUCT_BYTES ((size_t)1 << 16)

static size_t size_of(const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

static tnf_status check_size(size_t size, size_t first, tnf_error *e)
{
    return size >= first && size <= MAX_STRUCT_BYTES
               ? TNF_OK
               : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                          "a struct was passed with the size %zu, but it has at least %zu bytes: "
                          "initialise it with its macro TNF_…_INIT",
                          size, first);
}

tnf_status tnf_options_copy(void *dst, size_t dst_size, size_t first, const void *given,
                            tnf_error *e)
{
    memset(dst, 0, dst_size);
    if (given) {
        const size_t size = size_of(given);
        const unsigned char *bytes = given;
        TNF_TRY(check_size(size, first, e));
        for (size_t i = dst_size; i < size; i++) {
            if (bytes[i] != 0)
                return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                                "a struct sets an option that this version of the library does "
                                "not know (byte %zu of %zu; it knows %zu bytes)",
                                i, size, dst_size);
        }
        memcpy(dst, given, size < dst_size ? size : dst_size);
    }
    memcpy(dst, &dst_size, sizeof dst_size);
    return TNF_OK;
}

tnf_status tnf_result_begin(void *given, size_t first, tnf_error *e)
{
    const size_t size = size_of(given);
    TNF_TRY(check_size(size, first, e));
    memset((unsigned char *)given + sizeof size, 0, size - sizeof size);
    return TNF_OK;
}

void tnf_result_fill(void *given, const void *own, size_t own_size)
{
    const size_t size = size_of(given), n = size < own_size ? size : own_size;
    memcpy((unsigned char *)given + sizeof size, (const unsigned char *)own + sizeof size,
           n - sizeof size);
}

tnf_status tnf_check_reserved(const void *bytes, size_t n, tnf_error *e)
{
    for (size_t i = 0; i < n; i++)
        if (((const unsigned char *)bytes)[i] != 0)
            return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                            "`reserved` of a struct is not 0: the program is newer than the "
                            "library, or did not set this memory");
    return TNF_OK;
}

tnf_status tnf_check_choice(unsigned value, unsigned last, const char *what, tnf_error *e)
{
    return value <= last ? TNF_OK
                         : tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                                    "'%s' has the value %u, which this version of the library does "
                                    "not know",
                                    what, value);
}

tnf_status tnf_check_flags(unsigned value, unsigned known, const char *what, tnf_error *e)
{
    return tnf_check_choice(value & ~known, 0, what, e);
}
