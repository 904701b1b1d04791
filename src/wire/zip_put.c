/* SPDX-License-Identifier: MIT */
/* The bytes around the members of a zip archive, without the current time: the same members give
 * the same file.
 *
 *   PYTHON   header with CRC, a zip64 field with both sizes, dated 1980-01-01 | data
 *            zip64 numbers in the directory from 2^31 on, as in Python's zipfile
 *   TORCH    header without CRC and sizes, "FB" field of padding | data | descriptor
 *            no date; zip64 end records always
 */
#include "wire/zip.h"

#include "base/bytes.h"

#include <string.h>

#define PYTHON_LIMIT    0x7fffffffu /* above this Python writes zip64 numbers */
#define ONES32          0xffffffffu
#define PYTHON_DATE     0x00210000u /* 1980-01-01 */
#define PYTHON_RIGHTS   0x01800000u /* rw------- */

#define FLAG_DESCRIPTOR 0x0008u
#define FLAG_UTF8       0x0800u

static void put_u16(tnf_buf *b, unsigned v)
{
    uint8_t bytes[2];
    tnf_put_le16(bytes, (uint16_t)v);
    tnf_buf_put(b, bytes, sizeof bytes);
}

static void put_zip64(tnf_buf *b, const uint64_t *numbers, unsigned n)
{
    if (n == 0)
        return;
    put_u16(b, 1);
    put_u16(b, 8 * n);
    for (unsigned i = 0; i < n; i++)
        tnf_buf_u64(b, numbers[i]);
}

static unsigned flags_of(tnf_zip_style style, const tnf_zip_put *m)
{
    if (style == TNF_ZIP_TORCH)
        return FLAG_UTF8 | (m->size ? FLAG_DESCRIPTOR : 0);
    unsigned flags = m->streamed ? FLAG_DESCRIPTOR : 0;
    for (size_t i = 0; i < m->name.n; i++)
        if ((uint8_t)m->name.p[i] >= 0x80)
            return flags | FLAG_UTF8;
    return flags;
}

/* The numbers that do not fit in 32 bits, in PyTorch's order. */
static unsigned torch_numbers(uint64_t out[3], const tnf_zip_put *m)
{
    unsigned n = 0;
    if (m->size >= ONES32) {
        out[n++] = m->size;
        out[n++] = m->size;
    }
    if (m->header >= ONES32)
        out[n++] = m->header;
    return n;
}

static unsigned python_numbers(uint64_t out[3], const tnf_zip_put *m)
{
    unsigned n = 0;
    if (m->size > PYTHON_LIMIT || m->stored > PYTHON_LIMIT) {
        out[n++] = m->size;
        out[n++] = m->stored;
    }
    if (m->header > PYTHON_LIMIT)
        out[n++] = m->header;
    return n;
}

/* ------------------------------------------------------------------ members */

static uint64_t zip64_size(unsigned numbers)
{
    return numbers ? 4 + 8 * (uint64_t)numbers : 0;
}

/* Bytes of padding in the field "FB". */
static unsigned padding_of(const tnf_zip_put *m, uint64_t before)
{
    uint64_t align = m->align > 1 ? m->align : 1;
    return (unsigned)((align - (m->header + before + 4) % align) % align);
}

uint64_t tnf_zip_local_size(tnf_zip_style style, const tnf_zip_put *m)
{
    uint64_t numbers[3];
    if (style == TNF_ZIP_PYTHON)
        return 30 + m->name.n + 20;
    uint64_t before = 30 + m->name.n + zip64_size(torch_numbers(numbers, m));
    return before + 4 + padding_of(m, before);
}

static void put_head(tnf_buf *b, tnf_zip_style style, const tnf_zip_put *m)
{
    bool python = style == TNF_ZIP_PYTHON;
    tnf_buf_u32(b, 0x04034b50u);
    put_u16(b, python ? 45 : 0);
    put_u16(b, flags_of(style, m));
    put_u16(b, m->deflated ? TNF_ZIP_DEFLATED : TNF_ZIP_STORED);
    tnf_buf_u32(b, python ? PYTHON_DATE : 0);
    tnf_buf_u32(b, python && !m->streamed ? m->crc : 0);
    tnf_buf_u32(b, python ? ONES32 : 0);
    tnf_buf_u32(b, python ? ONES32 : 0);
    put_u16(b, (unsigned)m->name.n);
    put_u16(b, (unsigned)(tnf_zip_local_size(style, m) - 30 - m->name.n));
    tnf_buf_put(b, m->name.p, m->name.n);
}

void tnf_zip_put_local(tnf_buf *b, tnf_zip_style style, const tnf_zip_put *m)
{
    uint64_t numbers[3] = { m->streamed ? 0 : m->size, m->streamed ? 0 : m->stored, 0 };
    put_head(b, style, m);
    if (style == TNF_ZIP_PYTHON) {
        put_zip64(b, numbers, 2);
        return;
    }
    unsigned n = torch_numbers(numbers, m);
    put_zip64(b, numbers, n);
    unsigned padding = padding_of(m, 30 + m->name.n + zip64_size(n));
    tnf_buf_put(b, "FB", 2);
    put_u16(b, padding);
    for (unsigned i = 0; i < padding; i++)
        tnf_buf_u8(b, 'Z');
}

void tnf_zip_put_behind(tnf_buf *b, tnf_zip_style style, const tnf_zip_put *m)
{
    uint64_t numbers[3];
    bool python = style == TNF_ZIP_PYTHON;
    if (python ? !m->streamed : m->size == 0)
        return;
    tnf_buf_u32(b, 0x08074b50u);
    tnf_buf_u32(b, m->crc);
    if (python || torch_numbers(numbers, m)) {
        tnf_buf_u64(b, m->stored);
        tnf_buf_u64(b, m->size);
    } else {
        tnf_buf_u32(b, (uint32_t)m->stored);
        tnf_buf_u32(b, (uint32_t)m->size);
    }
}

/* ---------------------------------------------------------------- directory */

static uint32_t or_ones(uint64_t v, bool fits)
{
    return fits ? (uint32_t)v : ONES32;
}

void tnf_zip_put_central(tnf_buf *b, tnf_zip_style style, const tnf_zip_put *m)
{
    bool python = style == TNF_ZIP_PYTHON;
    uint64_t limit = python ? PYTHON_LIMIT : ONES32 - 1, numbers[3];
    unsigned n = python ? python_numbers(numbers, m) : torch_numbers(numbers, m);
    bool fits = m->size <= limit && m->stored <= limit;
    tnf_buf_u32(b, 0x02014b50u);
    put_u16(b, python ? 0x032d : 0);
    put_u16(b, python ? 45 : 0);
    put_u16(b, flags_of(style, m));
    put_u16(b, m->deflated ? TNF_ZIP_DEFLATED : TNF_ZIP_STORED);
    tnf_buf_u32(b, python ? PYTHON_DATE : 0);
    tnf_buf_u32(b, m->crc);
    tnf_buf_u32(b, or_ones(m->stored, fits));
    tnf_buf_u32(b, or_ones(m->size, fits));
    put_u16(b, (unsigned)m->name.n);
    put_u16(b, (unsigned)zip64_size(n));
    put_u16(b, 0);
    put_u16(b, 0);
    put_u16(b, 0);
    tnf_buf_u32(b, python ? PYTHON_RIGHTS : 0);
    tnf_buf_u32(b, or_ones(m->header, m->header <= limit));
    tnf_buf_put(b, m->name.p, m->name.n);
    put_zip64(b, numbers, n);
}

static void put_zip64_end(tnf_buf *b, tnf_zip_style style, uint64_t members, uint64_t directory,
                          uint64_t directory_n)
{
    tnf_buf_u32(b, 0x06064b50u);
    tnf_buf_u64(b, 44);
    put_u16(b, style == TNF_ZIP_PYTHON ? 45 : 0x031e);
    put_u16(b, 45);
    tnf_buf_u32(b, 0);
    tnf_buf_u32(b, 0);
    tnf_buf_u64(b, members);
    tnf_buf_u64(b, members);
    tnf_buf_u64(b, directory_n);
    tnf_buf_u64(b, directory);
    tnf_buf_u32(b, 0x07064b50u);
    tnf_buf_u32(b, 0);
    tnf_buf_u64(b, directory + directory_n);
    tnf_buf_u32(b, 1);
}

static uint32_t at_most(uint64_t v, uint32_t most)
{
    return v < most ? (uint32_t)v : most;
}

void tnf_zip_put_end(tnf_buf *b, tnf_zip_style style, uint64_t members, uint64_t directory,
                     uint64_t directory_n, tnf_str comment)
{
    if (style == TNF_ZIP_TORCH || members > 0xffff || directory > PYTHON_LIMIT ||
        directory_n > PYTHON_LIMIT)
        put_zip64_end(b, style, members, directory, directory_n);
    tnf_buf_u32(b, 0x06054b50u);
    tnf_buf_u32(b, 0);
    put_u16(b, at_most(members, 0xffff));
    put_u16(b, at_most(members, 0xffff));
    tnf_buf_u32(b, at_most(directory_n, ONES32));
    tnf_buf_u32(b, at_most(directory, ONES32));
    put_u16(b, (unsigned)comment.n);
    tnf_buf_put(b, comment.p, comment.n);
}
