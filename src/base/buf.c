/* SPDX-License-Identifier: MIT */
/* The growable buffer with a maximum. */
#include "base/buf.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tnf_buf_init(tnf_buf *b, const tnf_allocator *alloc, uint64_t max)
{
    *b = (tnf_buf) { .alloc = *alloc, .max = max };
}

void tnf_buf_free(tnf_buf *b)
{
    tnf_free(&b->alloc, b->p, b->capacity);
    b->p = NULL;
    b->n = b->capacity = 0;
}

static bool make_room(tnf_buf *b, size_t n)
{
    if (b->status != TNF_OK)
        return false;
    if (n > b->max - b->n || n > SIZE_MAX / 2 - b->n) {
        b->status = TNF_ELIMIT;
        return false;
    }
    if (n <= b->capacity - b->n)
        return true;
    size_t capacity = b->capacity * 2 > 256 ? b->capacity * 2 : 256;
    if (capacity < b->n + n)
        capacity = b->n + n;
    if (capacity > b->max)
        capacity = (size_t)b->max;
    void *p = tnf_realloc(&b->alloc, b->p, b->capacity, capacity);
    if (!p) {
        b->status = TNF_ENOMEM;
        return false;
    }
    b->p = p;
    b->capacity = capacity;
    return true;
}

void tnf_buf_put(tnf_buf *b, const void *p, size_t n)
{
    if (n == 0 || !make_room(b, n))
        return;
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

void tnf_buf_puts(tnf_buf *b, const char *s)
{
    tnf_buf_put(b, s, strlen(s));
}

void tnf_buf_printf(tnf_buf *b, const char *format, ...)
{
    char small[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n < 0)
        return;
    if ((size_t)n < sizeof small) {
        tnf_buf_put(b, small, (size_t)n);
    } else if (make_room(b, (size_t)n + 1)) { /* one more for the NUL, which is not counted */
        va_start(args, format);
        vsnprintf((char *)b->p + b->n, (size_t)n + 1, format, args);
        va_end(args);
        b->n += (size_t)n;
    }
}

void tnf_buf_u8(tnf_buf *b, uint8_t v)
{
    tnf_buf_put(b, &v, 1);
}

void tnf_buf_u32(tnf_buf *b, uint32_t v)
{
    uint8_t bytes[4];
    tnf_put_le32(bytes, v);
    tnf_buf_put(b, bytes, sizeof bytes);
}

void tnf_buf_u64(tnf_buf *b, uint64_t v)
{
    uint8_t bytes[8];
    tnf_put_le64(bytes, v);
    tnf_buf_put(b, bytes, sizeof bytes);
}

void tnf_buf_hex(tnf_buf *b, const void *bytes, size_t n)
{
    char two[2];
    for (size_t i = 0; i < n; i++) {
        tnf_hex_put(two, (const uint8_t *)bytes + i, 1);
        tnf_buf_put(b, two, sizeof two);
    }
}

void tnf_buf_wide(tnf_buf *b, unsigned first, uint64_t v, unsigned width)
{
    uint8_t bytes[9] = { (uint8_t)first };
    for (unsigned i = 0; i < width; i++)
        bytes[width - i] = (uint8_t)(v >> 8 * i);
    tnf_buf_put(b, bytes, 1 + width);
}

tnf_status tnf_buf_status(const tnf_buf *b, const char *what, tnf_error *e)
{
    switch (b->status) {
    case TNF_OK:
        return TNF_OK;
    case TNF_ELIMIT:
        return tnf_fail(e, TNF_ELIMIT, TNF_NO_OFFSET, "the limit of %llu bytes is too small for %s",
                        (unsigned long long)b->max, what);
    case TNF_EINVAL:
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "%s would contain a key or JSON text that is not UTF-8, or a number of a "
                        "type that cannot be written there",
                        what);
    default:
        return tnf_fail(e, b->status, TNF_NO_OFFSET, "out of memory for %s", what);
    }
}
