/* SPDX-License-Identifier: MIT */
/* Bytes as a codec stores them. */
#ifndef TNF_SUPPORT_ENCODED_H
#define TNF_SUPPORT_ENCODED_H

#include "codec/codec.h"
#include "unit.h"

struct encoded {
    uint8_t *p;
    size_t n;
};

static inline tnf_status encoded_take(void *ctx, const void *bytes, size_t n, tnf_error *e)
{
    struct encoded *x = ctx;
    (void)e;
    x->p = realloc(x->p, x->n + n + 1);
    memcpy(x->p + x->n, bytes, n);
    x->n += n;
    return TNF_OK;
}

/* The caller frees x.p. */
static inline struct encoded encoded_bytes(tnf_codec codec, const void *bytes, size_t n)
{
    struct encoded x = { NULL, 0 };
    tnf_encode_to to = { encoded_take, &x };
    tnf_encoder *encoder;
    tnf_error e;
    assert_ok(tnf_encoder_open(&encoder, codec, 0, &to, NULL, &e));
    assert_ok(tnf_encoder_write(encoder, bytes, n, &e));
    assert_ok(tnf_encoder_end(encoder, &e));
    tnf_encoder_close(encoder);
    return x;
}

#endif
