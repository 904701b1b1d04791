/* SPDX-License-Identifier: MIT */
/* The bytes of `points` and `appdata`, gathered from between the block heads.
 *
 *   blocks   ▓app▓▒▒vec▒▒ ▓app▓▒▒vec▒▒ ▓app▓▒▒vec▒▒       heads are read again, and checked again
 *   points        ▒▒vec▒▒       ▒▒vec▒▒       ▒▒vec▒▒     contiguous rows
 *
 * While bytes are read, the threads of the handle hold a shared lock. In long reads they pause now
 * and then, so that writers wait only briefly. If a point was deleted after the file was listed,
 * reading it fails, since the format does not define the bytes of a blank block.
 */
#include "codec/blocks.h"
#include "formats/vs/vs.h"

#include <string.h>

#define DIRECT ((uint64_t)64 << 10) /* longer pieces are read directly to their destination */
#define HOLD   ((uint64_t)4 << 20)  /* after so many bytes writers get a turn */

struct task {
    const tnf_reader *r;
    const vs_state *s;
    tnf_vs_chain chain;
    tnf_buf spare; /* a decompressed vector, or application data */
    tnf_buf plain; /* texts without their lengths */
    uint64_t held; /* bytes since the lock was taken */
    bool locked;
    bool cannot_read; /* reading the file failed, rather than its content */
};

/* The end of a row's block, or a later offset. */
static uint64_t end_of_row(const vs_state *s, uint64_t row, uint64_t size)
{
    return row + 1 < s->n ? vs_column_at(&s->blocks, row + 1) : size;
}

static tnf_status fetch_bytes(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *e)
{
    struct task *j = ctx;
    tnf_status status = tnf_source_read(j->r->source, offset, dst, n, e);
    j->cannot_read = status != TNF_OK;
    return status;
}

static tnf_status lock_task(struct task *j, tnf_error *e)
{
    tnf_status status = tnf_vs_lock(j->r, e);
    j->locked = status == TNF_OK;
    return status;
}

static void unlock_task(struct task *j)
{
    if (j->locked)
        tnf_vs_unlock(j->r);
    j->locked = false;
}

/* If this fails, end_task() must be called, too. */
static tnf_status begin_task(struct task *j, const tnf_reader *r, uint64_t last_row, tnf_error *e)
{
    *j = (struct task) { .r = r, .s = r->state };
    uint64_t size = r->source->size;
    tnf_vs_chain_init(&j->chain, fetch_bytes, j, size, 0, NULL);
    j->chain.msb = j->s->msb;
    j->chain.until = end_of_row(j->s, last_row, size);
    tnf_buf_init(&j->spare, &j->chain.alloc, UINT64_MAX);
    tnf_buf_init(&j->plain, &j->chain.alloc, UINT64_MAX);
    return lock_task(j, e);
}

static void end_task(struct task *j)
{
    unlock_task(j);
    tnf_buf_free(&j->plain);
    tnf_buf_free(&j->spare);
    tnf_vs_chain_free(&j->chain);
}

/* Gives waiting writers a turn. Then nothing that was read ahead is valid. */
static tnf_status pause_task(struct task *j, uint64_t n, tnf_error *e)
{
    j->held += n;
    if (j->held < HOLD)
        return TNF_OK;
    j->held = 0;
    j->chain.n = 0;
    unlock_task(j);
    return lock_task(j, e);
}

/* Everything but the content of compressed vectors was checked when the file was opened. */
static tnf_status has_changed(const struct task *j, uint64_t row, tnf_status status, tnf_error *e)
{
    if (j->cannot_read || !tnf_is_file_fault(status))
        return status;
    return tnf_fail(e, TNF_ECHANGED, vs_column_at(&j->s->blocks, row),
                    "point %llu was deleted or changed since the file was opened: open it again",
                    (unsigned long long)row);
}

static tnf_status to_block(struct task *j, uint64_t row, tnf_error *e)
{
    tnf_vs_chain *c = &j->chain;
    c->next = vs_column_at(&j->s->blocks, row);
    tnf_status status = tnf_vs_chain_next(c, e);
    if (status == TNF_OK && c->type != TNF_VS_POINT)
        status = TNF_EFORMAT;
    return status == TNF_OK ? TNF_OK : has_changed(j, row, status, e);
}

static tnf_status to_row(struct task *j, uint64_t row, tnf_vs_point *p, tnf_error *e)
{
    TNF_TRY(to_block(j, row, e));
    tnf_status status = tnf_vs_chain_point(&j->chain, p, e);
    if (status == TNF_OK && (p->vector_option & TNF_VS_CODE) == TNF_VS_RAW)
        status = tnf_vs_point_fits(p, &j->s->meta, NULL, e);
    return status == TNF_OK ? TNF_OK : has_changed(j, row, status, e);
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
    TNF_TRY(to_row(j, row, &p, e));
    if ((p.vector_option & TNF_VS_CODE) == TNF_VS_RAW && n >= DIRECT)
        return tnf_source_read(j->r->source, p.vector_at + skip, dst, n, e);
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
        TNF_TRY(pause_task(j, here, e));
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
        TNF_TRY(pause_task(j, j->s->meta.vector_bytes, e));
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
    tnf_status status = begin_task(&j, r, last, e);
    if (status == TNF_OK)
        status = packed ? packed_bits(&j, offset, dst, n, e) : whole_bytes(&j, offset, dst, n, e);
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

/* Strings of points: application data, or the texts of vectors. Row i begins with number i * step
 * of the column. */
struct rows {
    const vs_column *column;
    uint64_t n, step;
};

static struct rows app_of(const vs_state *s)
{
    return (struct rows) { &s->app, s->n, 1 };
}

static struct rows texts_of(const vs_state *s)
{
    return (struct rows) { &s->texts, s->n, s->meta.elements };
}

static uint64_t row_start(const struct rows *r, uint64_t row)
{
    return r->column->n ? vs_column_at(r->column, row * r->step) : 0;
}

static void decode_offsets(const vs_column *column, uint64_t offset, uint8_t *dst, size_t n)
{
    for (uint64_t i = offset / 8, skip = offset % 8; n > 0; i++, skip = 0) {
        uint8_t number[8];
        size_t here = n < 8 - skip ? n : (size_t)(8 - skip);
        tnf_put_le64(number, column->n ? vs_column_at(column, i) : 0);
        memcpy(dst, number + skip, here);
        dst += here;
        n -= here;
    }
}

/* The last row with data that begins at or before this byte. */
static uint64_t row_of(const struct rows *r, uint64_t byte)
{
    uint64_t low = 0, high = r->n;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (row_start(r, middle) <= byte)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The texts of a vector, without their lengths. The vector is in the window or in the spare buffer;
 * the lengths are removed in j->plain. */
static tnf_status join_texts(struct task *j, const tnf_vs_point *p, tnf_str *out, tnf_error *e)
{
    tnf_cur c;
    tnf_str text;
    TNF_TRY(tnf_vs_texts(&j->chain, p, &j->spare, &c, e));
    j->plain.n = 0;
    for (uint64_t i = 0; i < j->s->meta.elements; i++) {
        TNF_TRY(tnf_vs_text_next(&c, &j->s->meta, j->s->msb, &text, e));
        tnf_buf_put(&j->plain, text.p, text.n);
    }
    TNF_TRY(tnf_buf_status(&j->plain, "texts", e));
    *out = (tnf_str) { (const char *)j->plain.p, j->plain.n };
    return TNF_OK;
}

static tnf_status strings_of_row(struct task *j, const struct rows *r, uint64_t row, tnf_str *out,
                                 tnf_error *e)
{
    tnf_vs_point p;
    uint64_t n = row_start(r, row + 1) - row_start(r, row);
    TNF_TRY(to_row(j, row, &p, e));
    tnf_status status = r->column == &j->s->texts ? join_texts(j, &p, out, e)
                                                  : tnf_vs_app(&j->chain, &p, n, &j->spare, out, e);
    if (status == TNF_OK && out->n != n)
        status = TNF_EFORMAT;
    return status == TNF_OK ? TNF_OK : has_changed(j, row, status, e);
}

static tnf_status string_rows(struct task *j, const struct rows *r, uint64_t offset, uint8_t *dst,
                              size_t n, tnf_error *e)
{
    for (uint64_t row = row_of(r, offset); n > 0; row++) {
        uint64_t start = row_start(r, row), skip = offset - start;
        tnf_str strings;
        if (start == row_start(r, row + 1))
            continue;
        TNF_TRY(strings_of_row(j, r, row, &strings, e));
        size_t here = n < strings.n - skip ? n : (size_t)(strings.n - skip);
        memcpy(dst, strings.p + skip, here);
        TNF_TRY(pause_task(j, here, e));
        dst += here;
        offset += here;
        n -= here;
    }
    return TNF_OK;
}

static tnf_status decode_strings(const tnf_reader *reader, const struct rows *r, uint64_t offset,
                                 void *dst, size_t n, tnf_error *e)
{
    struct task j;
    tnf_status status = begin_task(&j, reader, row_of(r, offset + n - 1), e);
    if (status == TNF_OK)
        status = string_rows(&j, r, offset, dst, n, e);
    end_task(&j);
    return status;
}

/* ------------------------------------------------------------------ extras */

static tnf_status plain_bytes(const tnf_reader *r, uint64_t at, void *dst, size_t n, tnf_error *e)
{
    TNF_TRY(tnf_vs_lock(r, e));
    tnf_status status = tnf_source_read(r->source, at, dst, n, e);
    tnf_vs_unlock(r);
    return status;
}

tnf_status tnf_vs_decode(tnf_reader *r, uint64_t key, uint64_t offset, void *dst, size_t n,
                         tnf_error *e)
{
    const vs_state *s = r->state;
    const struct rows app = app_of(s), texts = texts_of(s);
    if (n == 0)
        return TNF_OK;
    if (key == VS_KEY_POINTS)
        return decode_points(r, offset, dst, n, e);
    if (key == VS_KEY_BYTES || key == VS_KEY_TEXTS)
        return decode_strings(r, key == VS_KEY_TEXTS ? &texts : &app, offset, dst, n, e);
    if (key < VS_KEY)
        return plain_bytes(r, key + offset, dst, n, e);
    decode_offsets(key == VS_KEY_STARTS ? &s->texts : &s->app, offset, dst, n);
    return TNF_OK;
}
