/* SPDX-License-Identifier: MIT */
/* The bytes of `points` and `appdata`, gathered from between the block heads.
 *
 *   blocks   ▓app▓▒▒vec▒▒ ▓app▓▒▒vec▒▒ ▓app▓▒▒vec▒▒       heads are read again, and checked again
 *   points        ▒▒vec▒▒       ▒▒vec▒▒       ▒▒vec▒▒     contiguous rows
 *
 * If a block was deleted after the file was listed, its point can still be read; if its bytes were
 * overwritten, too, reading fails. Decoding does not change the reader, so it is thread-safe.
 */
#include "codec/blocks.h"
#include "formats/vs/vs.h"

#include <string.h>

#define DIRECT ((uint64_t)64 << 10) /* longer pieces are read directly to their destination */

struct task {
    const tnf_reader *r;
    const vs_state *s;
    tnf_vs_chain chain;
    tnf_buf spare; /* a decompressed vector, or application data */
};

/* The end of a row's block, or a later offset. */
static uint64_t end_of_row(const vs_state *s, uint64_t row, uint64_t size)
{
    return row + 1 < s->n ? vs_column_at(&s->blocks, row + 1) : size;
}

static void begin_task(struct task *j, const tnf_reader *r, uint64_t last_row)
{
    *j = (struct task) { .r = r, .s = r->state };
    uint64_t size = r->source->size;
    tnf_vs_chain_init(&j->chain, tnf_source_fetch, (void *)(uintptr_t)r->source, size, 0, NULL);
    j->chain.msb = j->s->msb;
    j->chain.until = end_of_row(j->s, last_row, size);
    tnf_buf_init(&j->spare, &j->chain.alloc, UINT64_MAX);
}

static void end_task(struct task *j)
{
    tnf_buf_free(&j->spare);
    tnf_vs_chain_free(&j->chain);
}

static tnf_status to_block(struct task *j, uint64_t row, tnf_error *e)
{
    tnf_vs_chain *c = &j->chain;
    c->next = vs_column_at(&j->s->blocks, row);
    TNF_TRY(tnf_vs_chain_next(c, e));
    if (c->type != TNF_VS_POINT && c->type != TNF_VS_BLANK)
        return tnf_fail(e, TNF_EFORMAT, c->at,
                        "the point that was here when the file was opened is missing");
    return TNF_OK;
}

static tnf_status to_row(struct task *j, uint64_t row, tnf_vs_point *p, tnf_error *e)
{
    TNF_TRY(to_block(j, row, e));
    return tnf_vs_chain_point(&j->chain, p, e);
}

tnf_status tnf_vs_vector(tnf_vs_chain *c, const tnf_vs_meta *meta, const tnf_vs_point *p,
                         tnf_buf *spare, const uint8_t **out, tnf_error *e)
{
    size_t n = (size_t)meta->vector_bytes;
    const uint8_t *stored = NULL;
    unsigned code = p->vector_option & TNF_VS_CODE;
    TNF_TRY(tnf_vs_chain_bytes(c, p->vector_at, p->vector_n, &stored, e));
    TNF_TRY(tnf_vs_point_fits(p, meta, stored, e));
    *out = stored;
    if (code == TNF_VS_RAW)
        return TNF_OK;
    const tnf_block block = { stored, p->vector_n, p->vector_at };
    TNF_TRY(tnf_block_unpack(spare, code == TNF_VS_GZIP ? tnf_gzip_decode : tnf_snappy_decode,
                             &block, n, e));
    *out = spare->p;
    return TNF_OK;
}

static tnf_status point_vector(struct task *j, const tnf_vs_point *p, const uint8_t **out,
                               tnf_error *e)
{
    return tnf_vs_vector(&j->chain, &j->s->meta, p, &j->spare, out, e);
}

/* ------------------------------------------------------------------ points */

/* Copies n bytes of a row, from its byte `skip`. */
static tnf_status piece_of_row(struct task *j, uint64_t row, uint64_t skip, uint8_t *dst, size_t n,
                               tnf_error *e)
{
    tnf_vs_point p;
    const uint8_t *bytes = NULL;
    tnf_vs_chain *c = &j->chain;
    TNF_TRY(to_block(j, row, e));
    if (c->length < DIRECT) { /* most blocks are small and plain */
        TNF_TRY(tnf_vs_chain_bytes(c, c->at, TNF_VS_HEAD + c->length, &bytes, e));
        if (tnf_vs_is_plain(bytes, c->length, j->s->meta.vector_bytes)) {
            memcpy(dst, bytes + tnf_vs_plain_vector(bytes) + skip, n);
            return TNF_OK;
        }
    }
    TNF_TRY(tnf_vs_chain_point(c, &p, e));
    bool raw = (p.vector_option & TNF_VS_CODE) == TNF_VS_RAW;
    if (raw && n >= DIRECT) {
        TNF_TRY(tnf_vs_point_fits(&p, &j->s->meta, NULL, e));
        return tnf_source_read(j->r->source, p.vector_at + skip, dst, n, e);
    }
    TNF_TRY(point_vector(j, &p, &bytes, e));
    memcpy(dst, bytes + skip, n);
    return TNF_OK;
}

static tnf_status whole_bytes(struct task *j, uint64_t offset, uint8_t *dst, size_t n, tnf_error *e)
{
    uint64_t width = j->s->meta.vector_bytes;
    for (uint64_t row = offset / width, skip = offset % width; n > 0; row++, skip = 0) {
        size_t here = n < width - skip ? n : (size_t)(width - skip);
        TNF_TRY(piece_of_row(j, row, skip, dst, here, e));
        dst += here;
        n -= here;
    }
    return TNF_OK;
}

/* Rows of bits whose number is not a multiple of eight: in the file each row begins with a new
 * byte; in a tensor rows are contiguous. */
static tnf_status packed_bits(struct task *j, uint64_t offset, uint8_t *dst, size_t n, tnf_error *e)
{
    uint64_t width = j->s->meta.elements, bit = offset * 8, total = j->s->n * width;
    uint64_t stop = (offset + n) * 8 < total ? (offset + n) * 8 : total;
    memset(dst, 0, n);
    while (bit < stop) {
        tnf_vs_point p;
        const uint8_t *bytes = NULL;
        uint64_t row = bit / width;
        TNF_TRY(to_row(j, row, &p, e));
        TNF_TRY(point_vector(j, &p, &bytes, e));
        for (uint64_t k = bit % width; k < width && bit < stop; k++, bit++) {
            unsigned value = bytes[k / 8] >> k % 8 & 1u;
            dst[bit / 8 - offset] |= (uint8_t)(value << bit % 8);
        }
    }
    return TNF_OK;
}

static tnf_status decode_points(const tnf_reader *r, uint64_t offset, uint8_t *dst, size_t n,
                                tnf_error *e)
{
    struct task j;
    const vs_state *s = r->state;
    bool packed = s->meta.type->bits == 1 && s->meta.elements % 8 != 0;
    uint64_t last = packed ? (offset + n) * 8 / s->meta.elements
                           : (offset + n - 1) / s->meta.vector_bytes;
    begin_task(&j, r, last);
    tnf_status status = packed ? packed_bits(&j, offset, dst, n, e)
                               : whole_bytes(&j, offset, dst, n, e);
    end_task(&j);
    return status;
}

/* ----------------------------------------------------------------- appdata */

tnf_status tnf_vs_app(tnf_vs_chain *c, const tnf_vs_point *p, uint64_t max, tnf_buf *spare,
                      tnf_str *out, tnf_error *e)
{
    const uint8_t *stored = NULL;
    unsigned code = p->option & TNF_VS_CODE;
    *out = (tnf_str) { "", 0 };
    if (p->app_n == 0)
        return TNF_OK;
    TNF_TRY(tnf_vs_chain_bytes(c, p->app_at, p->app_n, &stored, e));
    *out = (tnf_str) { (const char *)stored, p->app_n };
    if (code == TNF_VS_RAW)
        return TNF_OK;
    if (code != TNF_VS_APP_SNAPPY)
        return tnf_fail(e, TNF_EUNSUPPORTED, p->at + TNF_VS_HEAD,
                        "unsupported compression %u of application data", code);
    const tnf_block block = { stored, p->app_n, p->app_at };
    TNF_TRY(tnf_snappy_unpack(spare, &block, max, e));
    *out = (tnf_str) { spare->n ? (const char *)spare->p : "", spare->n };
    return TNF_OK;
}

static uint64_t app_start(const vs_state *s, uint64_t row)
{
    return s->app.n ? vs_column_at(&s->app, row) : 0;
}

static void decode_offsets(const vs_state *s, uint64_t offset, uint8_t *dst, size_t n)
{
    for (uint64_t i = offset / 8, skip = offset % 8; n > 0; i++, skip = 0) {
        uint8_t number[8];
        size_t here = n < 8 - skip ? n : (size_t)(8 - skip);
        tnf_put_le64(number, app_start(s, i));
        memcpy(dst, number + skip, here);
        dst += here;
        n -= here;
    }
}

/* The last row with data that begins at or before this byte. */
static uint64_t row_of(const vs_state *s, uint64_t byte)
{
    uint64_t low = 0, high = s->n;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (app_start(s, middle) <= byte)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static tnf_status app_rows(struct task *j, uint64_t offset, uint8_t *dst, size_t n, tnf_error *e)
{
    for (uint64_t row = row_of(j->s, offset); n > 0; row++) {
        uint64_t start = app_start(j->s, row), stop = app_start(j->s, row + 1);
        uint64_t skip = offset - start;
        tnf_vs_point p;
        tnf_str app;
        if (start == stop)
            continue;
        TNF_TRY(to_row(j, row, &p, e));
        TNF_TRY(tnf_vs_app(&j->chain, &p, stop - start, &j->spare, &app, e));
        if (app.n != stop - start)
            return tnf_fail(e, TNF_EFORMAT, p.at,
                            "the point that was here when the file was opened has changed");
        size_t here = n < app.n - skip ? n : (size_t)(app.n - skip);
        memcpy(dst, app.p + skip, here);
        dst += here;
        offset += here;
        n -= here;
    }
    return TNF_OK;
}

static tnf_status app_bytes(const tnf_reader *r, uint64_t offset, uint8_t *dst, size_t n,
                            tnf_error *e)
{
    struct task j;
    begin_task(&j, r, row_of(r->state, offset + n - 1));
    tnf_status status = app_rows(&j, offset, dst, n, e);
    end_task(&j);
    return status;
}

tnf_status tnf_vs_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e)
{
    if (n == 0)
        return TNF_OK;
    if (key == VS_KEY_POINTS)
        return decode_points(r, offset, dst, n, e);
    if (key == VS_KEY_BYTES)
        return app_bytes(r, offset, dst, n, e);
    decode_offsets(r->state, offset, dst, n);
    return TNF_OK;
}
