/* SPDX-License-Identifier: MIT */
/* Files in the shapes of well-known models, of random bytes, written as fast as the disk takes
 * them. */
#ifndef TENFOLD_BENCH_SHAPES_H
#define TENFOLD_BENCH_SHAPES_H

#include "../bench.h"

#include "base/pool.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define SHAPES_BLOCK ((size_t)8 << 20)

struct shapes {
    char *header;
    size_t n, room;
    uint64_t at;      /* bytes of tensors so far */
    uint64_t tensors; /* how many */
    bool gguf;        /* blocks of q4_k in a GGUF, not bf16 in safetensors */
};

static inline void shapes_put(struct shapes *s, const void *p, size_t n)
{
    if (s->n + n > s->room) {
        s->room = (s->n + n) * 2;
        s->header = realloc(s->header, s->room);
        if (!s->header)
            bench_die("memory");
    }
    memcpy(s->header + s->n, p, n);
    s->n += n;
}

static inline void shapes_u32(struct shapes *s, uint32_t v)
{
    shapes_put(s, &v, sizeof v);
}

static inline void shapes_u64(struct shapes *s, uint64_t v)
{
    shapes_put(s, &v, sizeof v);
}

/* A tensor of rows × cols; rows 0: a vector of cols. */
static inline void shapes_add(struct shapes *s, uint64_t rows, uint64_t cols, const char *format,
                              ...)
{
    char name[200], text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    uint64_t elements = (rows ? rows : 1) * cols,
             bytes = s->gguf ? elements / 256 * 144 : elements * 2;
    if (s->gguf) {
        shapes_u64(s, strlen(name));
        shapes_put(s, name, strlen(name));
        shapes_u32(s, rows ? 2 : 1);
        shapes_u64(s, cols);
        if (rows)
            shapes_u64(s, rows);
        shapes_u32(s, 12);
        shapes_u64(s, s->at);
        bytes = (bytes + 31) / 32 * 32;
    } else {
        char dims[60];
        if (rows)
            snprintf(dims, sizeof dims, "%" PRIu64 ",%" PRIu64, rows, cols);
        else
            snprintf(dims, sizeof dims, "%" PRIu64, cols);
        int n = snprintf(text, sizeof text,
                         "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%s],\"data_offsets\":[%" PRIu64
                         ",%" PRIu64 "]}",
                         s->tensors ? "," : "{", name, dims, s->at, s->at + bytes);
        shapes_put(s, text, (size_t)n);
    }
    s->at += bytes;
    s->tensors++;
}

/* Llama 3 8B: 291 tensors, 16.06 GB of bf16. */
static inline void shapes_llama(struct shapes *s)
{
    shapes_add(s, 128256, 4096, "model.embed_tokens.weight");
    for (unsigned i = 0; i < 32; i++) {
        shapes_add(s, 0, 4096, "model.layers.%u.input_layernorm.weight", i);
        shapes_add(s, 4096, 14336, "model.layers.%u.mlp.down_proj.weight", i);
        shapes_add(s, 14336, 4096, "model.layers.%u.mlp.gate_proj.weight", i);
        shapes_add(s, 14336, 4096, "model.layers.%u.mlp.up_proj.weight", i);
        shapes_add(s, 0, 4096, "model.layers.%u.post_attention_layernorm.weight", i);
        shapes_add(s, 1024, 4096, "model.layers.%u.self_attn.k_proj.weight", i);
        shapes_add(s, 4096, 4096, "model.layers.%u.self_attn.o_proj.weight", i);
        shapes_add(s, 4096, 4096, "model.layers.%u.self_attn.q_proj.weight", i);
        shapes_add(s, 1024, 4096, "model.layers.%u.self_attn.v_proj.weight", i);
    }
    shapes_add(s, 0, 4096, "model.norm.weight");
    shapes_add(s, 128256, 4096, "lm_head.weight");
}

/* 18,867 tensors as Qwen3-30B-A3B has them, with experts of a quarter of their width: 16 GB. */
static inline void shapes_moe(struct shapes *s)
{
    shapes_add(s, 151936, 2048, "model.embed_tokens.weight");
    for (unsigned i = 0; i < 48; i++) {
        for (unsigned k = 0; k < 128; k++) {
            shapes_add(s, 2048, 192, "model.layers.%u.mlp.experts.%u.down_proj.weight", i, k);
            shapes_add(s, 192, 2048, "model.layers.%u.mlp.experts.%u.gate_proj.weight", i, k);
            shapes_add(s, 192, 2048, "model.layers.%u.mlp.experts.%u.up_proj.weight", i, k);
        }
        shapes_add(s, 0, 2048, "model.layers.%u.input_layernorm.weight", i);
        shapes_add(s, 128, 2048, "model.layers.%u.mlp.gate.weight", i);
        shapes_add(s, 0, 2048, "model.layers.%u.post_attention_layernorm.weight", i);
        shapes_add(s, 0, 128, "model.layers.%u.self_attn.k_norm.weight", i);
        shapes_add(s, 512, 2048, "model.layers.%u.self_attn.k_proj.weight", i);
        shapes_add(s, 2048, 4096, "model.layers.%u.self_attn.o_proj.weight", i);
        shapes_add(s, 0, 128, "model.layers.%u.self_attn.q_norm.weight", i);
        shapes_add(s, 4096, 2048, "model.layers.%u.self_attn.q_proj.weight", i);
        shapes_add(s, 512, 2048, "model.layers.%u.self_attn.v_proj.weight", i);
    }
    shapes_add(s, 0, 2048, "model.norm.weight");
    shapes_add(s, 151936, 2048, "lm_head.weight");
}

/* 60,000 tensors of 64 KiB on average, of uneven sizes. */
static inline void shapes_small(struct shapes *s)
{
    for (unsigned i = 0; i < 60000; i++)
        shapes_add(s, 0, 1 + (i * 2654435761u >> 8) % 65535, "small.%u", i);
}

struct shapes_file {
    int fd;
    uint64_t from, size;
    const uint8_t *random;
};

static inline tnf_status shapes_write(void *ctx, size_t i, tnf_error *e)
{
    const struct shapes_file *f = ctx;
    uint64_t at = f->from + i * SHAPES_BLOCK;
    size_t n = f->size - at < SHAPES_BLOCK ? (size_t)(f->size - at) : SHAPES_BLOCK;
    (void)e;
    /* another beginning for each block, so that no two are the same */
    const uint8_t *p = f->random + i * 4099 % SHAPES_BLOCK;
    return pwrite(f->fd, p, n, (off_t)at) == (ssize_t)n ? TNF_OK : TNF_EIO;
}

static inline void shapes_fill(uint8_t *p, size_t n)
{
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i + 8 <= n; i += 8) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memcpy(p + i, &x, 8);
    }
}

static inline bool shapes_make(const char *kind, const char *path)
{
    tnf_error e;
    struct shapes s = { .gguf = strcmp(kind, "q4_k") == 0 };
    if (strcmp(kind, "moe") == 0)
        shapes_moe(&s);
    else if (strcmp(kind, "small") == 0)
        shapes_small(&s);
    else
        shapes_llama(&s);
    struct shapes head = { 0 };
    if (s.gguf) {
        static const char key[] = "general.architecture", value[] = "llama";
        shapes_put(&head, "GGUF\3\0\0", 8);
        shapes_u64(&head, s.tensors);
        shapes_u64(&head, 1);
        shapes_u64(&head, sizeof key - 1);
        shapes_put(&head, key, sizeof key - 1);
        shapes_u32(&head, 8);
        shapes_u64(&head, sizeof value - 1);
        shapes_put(&head, value, sizeof value - 1);
        shapes_put(&head, s.header, s.n);
        while (head.n % 32)
            shapes_put(&head, "", 1);
    } else {
        shapes_put(&s, "}", 1);
        while ((s.n + 8) % 64)
            shapes_put(&s, " ", 1);
        shapes_u64(&head, s.n);
        shapes_put(&head, s.header, s.n);
    }
    uint8_t *random = malloc(2 * SHAPES_BLOCK);
    struct shapes_file f = { open(path, O_RDWR | O_CREAT | O_TRUNC, 0666), head.n, head.n + s.at,
                             random };
    if (f.fd < 0 || !random)
        bench_die(path);
    shapes_fill(random, 2 * SHAPES_BLOCK);
    bool ok = pwrite(f.fd, head.header, head.n, 0) == (ssize_t)head.n &&
              ftruncate(f.fd, (off_t)f.size) == 0 &&
              tnf_pool_run(0, (size_t)((s.at + SHAPES_BLOCK - 1) / SHAPES_BLOCK), shapes_write, &f,
                           &e) == TNF_OK;
    if (!ok)
        perror(path);
    close(f.fd);
    free(random);
    free(head.header);
    free(s.header);
    return ok;
}

#endif
