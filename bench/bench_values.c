/* SPDX-License-Identifier: MIT */
/* bench_values MIB TYPE ROUNDS [DIRECTORY]: examines every number of a tensor, on one thread.
 *
 *   memory    loads all its bytes from memory, 64 at a time, and combines them by XOR
 *   values    tnf_verify() of a tensor in memory, with counts of its values
 *   stat      tnf_stat_file(): also deviation and histogram
 *   read      with DIRECTORY: reads all bytes of a file there, in the page cache, by pread()
 *   file      tnf_verify() of that file
 */
#include "bench_twice.h"

#include <tenfold/stat.h>

static void on_values(void *ctx, const tnf_object *o, const tnf_value_counts *counts)
{
    (void)ctx;
    (void)o;
    seen = counts->elements;
}

static void verify_values(const tnf_file *file)
{
    tnf_error error;
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_verify_options how = { .size = sizeof how, .values = on_values, .threads = 1 };
    bench_check(tnf_verify(&result, file, &how, &error), &error);
}

static void values_in_memory(void *ctx)
{
    verify_values(((const bench_twice *)ctx)->file);
}

static void values_on_disk(void *ctx)
{
    verify_values(((const bench_twice *)ctx)->on_disk);
}

static void stat_in_memory(void *ctx)
{
    const bench_twice *w = ctx;
    tnf_error error;
    tnf_stat_options how = { .size = sizeof how, .threads = 1 };
    bench_check(tnf_stat_file(w->file, &how, &error), &error);
}

/* A float with fewer bits, truncated. Weights are much smaller than its largest number. */
static uint32_t narrow_float(float f, unsigned exponent_bits, unsigned mantissa_bits)
{
    uint32_t bits, sign;
    memcpy(&bits, &f, sizeof bits);
    sign = bits >> 31 << (exponent_bits + mantissa_bits);
    int exponent = (int)(bits >> 23 & 255) - 127 + (1 << (exponent_bits - 1)) - 1;
    uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
    unsigned down = 23 - mantissa_bits;
    if (exponent > 0)
        return sign | (uint32_t)exponent << mantissa_bits | (mantissa & 0x7fffff) >> down;
    down += (unsigned)(1 - exponent);
    return sign | (down < 32 ? mantissa >> down : 0);
}

/* Weights: small numbers of both signs, all finite. Types other than floats get arbitrary bytes. */
static void fill_weights(uint8_t *p, size_t n, const tnf_type *type)
{
    uint64_t x = 88172645463325252u;
    size_t width = type->bits < 8 || type->number == TNF_NUMBER_COMPLEX ? 4 : type->bits / 8;
    width = width < sizeof x ? width : sizeof x; /* halves of larger integers */
    for (size_t i = 0; i + width <= n; i += width) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        float f = ((float)(x >> 40) * 0x1p-24f - 0.5f) * 0.1f;
        double d = (double)f;
        uint64_t bits = x >> 24;
        if (strcmp(type->id, "f64") == 0)
            memcpy(&bits, &d, sizeof bits);
        else if (strcmp(type->id, "f32") == 0 || strcmp(type->id, "c64") == 0)
            memcpy(&bits, &f, sizeof f);
        else if (strcmp(type->id, "f16") == 0)
            bits = narrow_float(f, 5, 10);
        else if (strcmp(type->id, "bf16") == 0)
            bits = narrow_float(f, 8, 7);
        else if (strncmp(type->id, "f8_e5", 5) == 0)
            bits = narrow_float(f, 5, 2);
        else if (strncmp(type->id, "f8_e4", 5) == 0)
            bits = narrow_float(f * 128, 4, 3);
        else if (strcmp(type->id, "f8_e8m0") == 0)
            bits = 120 + (x >> 40) % 12;
        else if (type->number == TNF_NUMBER_BOOL)
            bits &= 1;
        if (strstr(type->id, "fnuz") && bits == 0x80)
            bits = 0;
        memcpy(p + i, &bits, width);
    }
}

static bench_twice w;

int main(int argc, char **argv)
{
    tnf_save_options save = { .size = sizeof save, .format = "safetensors" };
    const tnf_type *type = argc > 2 ? tnf_type_named(argv[2]) : NULL;
    if ((argc != 4 && argc != 5) || !type) {
        fprintf(stderr, "usage: bench_values MIB TYPE ROUNDS [DIRECTORY]\n");
        return 2;
    }
    size_t n = (size_t)bench_number(argv[1]) << 20;
    unsigned rounds = bench_rounds(argv[3]), ways = argc == 5 ? 5 : 3;
    uint64_t count = n / type->bits * 8;
    uint8_t *data = bench_memory(n);
    fill_weights(data, n, type);
    if (strcmp(type->id, "bit") == 0)
        save.format = "ztensor2";
    bench_twice_open(&w, type, count, data, &save, argc == 5 ? argv[4] : NULL);
    static bench_way all[] = { { "memory", mix_memory, { 0 } },
                               { "values", values_in_memory, { 0 } },
                               { "stat", stat_in_memory, { 0 } },
                               { "read", read_all, { 0 } },
                               { "file", values_on_disk, { 0 } } };
    bench_twice_run(&w, all, ways, rounds);
    free(data);
    return 0;
}
