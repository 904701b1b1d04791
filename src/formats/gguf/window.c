/* SPDX-License-Identifier: MIT */
/* Reads the bytes of a header window by window: its length is known only at its end. */
#include "formats/gguf/gguf.h"

#define FIRST_WINDOW ((size_t)64 << 10)
#define LAST_WINDOW  ((size_t)4 << 20)
#define LONGEST_TEXT ((uint64_t)1 << 30) /* the limit of ggml's own reader */

static tnf_status cut_short(const gguf_in *in, uint64_t n, tnf_error *e)
{
    return tnf_fail(e, TNF_ETRUNCATED, in->size, "the file ends inside %s: %s missing (cut short?)",
                    in->what, TNF_BYTES_ARE(n - tnf_gguf_left(in)));
}

static tnf_status next_window(gguf_in *in, uint64_t n, tnf_error *e)
{
    uint64_t left = tnf_gguf_left(in), want = n > in->window ? n : in->window;
    tnf_reader *r = in->r;
    want = want < left ? want : left;
    if (in->at + n > r->limits.header_bytes)
        return tnf_fail(e, TNF_ELIMIT, in->at,
                        "the header has more than the %llu bytes allowed: raise the limit "
                        "'header_bytes' if you trust the file",
                        (unsigned long long)r->limits.header_bytes);
    uint8_t *bytes = tnf_arena_raw(r->arena, want + 1);
    if (!bytes)
        return tnf_arena_fail(r->arena, "the header", e);
    TNF_TRY(tnf_source_read(r->source, in->at, bytes, (size_t)want, e));
    bytes[want] = 0;
    if (in->text_end)
        *in->text_end = 0; /* the old window is not read again */
    in->text_end = NULL;
    in->p = bytes;
    in->end = bytes + want;
    in->window = in->window < LAST_WINDOW ? 2 * in->window : LAST_WINDOW;
    return TNF_OK;
}

tnf_status tnf_gguf_need(gguf_in *in, uint64_t n, tnf_error *e)
{
    if (n <= (size_t)(in->end - in->p))
        return TNF_OK;
    if (n > tnf_gguf_left(in))
        return cut_short(in, n, e);
    in->window = in->window ? in->window : FIRST_WINDOW;
    return next_window(in, n, e);
}

static void pass_bytes(gguf_in *in, size_t n)
{
    in->p += n;
    in->at += n;
    if (in->text_end)
        *in->text_end = 0;
    in->text_end = NULL;
}

static uint32_t swapped_u32(uint32_t v)
{
    return v << 24 | (v & 0xff00u) << 8 | (v >> 8 & 0xff00u) | v >> 24;
}

tnf_status tnf_gguf_u32(gguf_in *in, uint32_t *out, tnf_error *e)
{
    TNF_TRY(tnf_gguf_need(in, 4, e));
    uint32_t v = tnf_le32(in->p);
    *out = in->big ? swapped_u32(v) : v;
    pass_bytes(in, 4);
    return TNF_OK;
}

tnf_status tnf_gguf_u64(gguf_in *in, uint64_t *out, tnf_error *e)
{
    TNF_TRY(tnf_gguf_need(in, 8, e));
    uint64_t low = tnf_le32(in->p), high = tnf_le32(in->p + 4);
    *out = in->big ? (uint64_t)swapped_u32((uint32_t)low) << 32 | swapped_u32((uint32_t)high)
                   : high << 32 | low;
    pass_bytes(in, 8);
    return TNF_OK;
}

tnf_status tnf_gguf_length(gguf_in *in, uint64_t *out, tnf_error *e)
{
    uint32_t v;
    if (!in->v1)
        return tnf_gguf_u64(in, out, e);
    TNF_TRY(tnf_gguf_u32(in, &v, e));
    *out = v;
    return TNF_OK;
}

tnf_status tnf_gguf_text(gguf_in *in, tnf_str *out, tnf_error *e)
{
    uint64_t n, at = in->at;
    TNF_TRY(tnf_gguf_length(in, &n, e));
    if (n > tnf_gguf_left(in) && n > LONGEST_TEXT)
        return tnf_fail(e, TNF_EFORMAT, at,
                        "a text in %s has a length of %llu bytes, but the file has only %llu left",
                        in->what, (unsigned long long)n, (unsigned long long)tnf_gguf_left(in));
    TNF_TRY(tnf_gguf_need(in, n, e));
    *out = (tnf_str) { (const char *)in->p, (size_t)n };
    pass_bytes(in, (size_t)n);
    in->text_end = in->p;
    return TNF_OK;
}

tnf_status tnf_gguf_count(gguf_in *in, uint64_t count, uint64_t least, const char *things,
                          uint64_t at, tnf_error *e)
{
    uint64_t left = tnf_gguf_left(in);
    if (count <= left / least)
        return TNF_OK;
    return tnf_fail(e, count > UINT32_MAX ? TNF_EFORMAT : TNF_ETRUNCATED, at,
                    "the file claims %llu %s, but only %s left%s", (unsigned long long)count,
                    things, TNF_BYTES_ARE(left), count > UINT32_MAX ? "" : " (cut short?)");
}
