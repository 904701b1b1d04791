/* SPDX-License-Identifier: MIT */
/* Shared by the tests of devices: the driver, devices, models of random bytes, and comparing what
 * was loaded. */
#ifndef TNF_TESTS_RIG_H
#define TNF_TESTS_RIG_H

#include "../support/check.h"
#include "../support/files.h"
#include "../support/unit.h"
#include "device/device.h"
#include "fake_cuda.h"

#include <dlfcn.h>
#include <tenfold/build.h>
#include <tenfold/device.h>

static fake_cuda *fake; /* NULL: it is a real driver */
static fake_cuda_reset_fn *fake_reset;

static char path[300]; /* the path of the model that a test makes */

/* The devices of most tests. */
static const char *const names[] = { "host", "cuda:0" };
#define EACH_DEVICE (sizeof names / sizeof *names)

/* With TENFOLD_CUDA=libcuda.so.1 the same tests run on a GPU. */
static inline int rig_begin(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/model.safetensors", files_temp());
    setenv("TENFOLD_CUDA", TNF_FAKE_CUDA, 0);
    void *library = dlopen(getenv("TENFOLD_CUDA"), RTLD_NOW | RTLD_LOCAL);
    MUST(library != NULL);
    void *found = dlsym(library, "fake_cuda_state");
    fake_cuda_state_fn *ask;
    memcpy(&ask, &found, sizeof ask);
    if (!found) {
        tnf_device *kept; /* stays open until the end: a real context starts slowly */
        return tnf_device_open(&kept, "cuda:0", NULL, NULL) == TNF_OK ? 0 : -1;
    }
    fake = ask();
    found = dlsym(library, "fake_cuda_reset");
    memcpy(&fake_reset, &found, sizeof fake_reset);
    return 0;
}

static inline int rig_reset(void **state)
{
    (void)state;
    if (fake)
        fake_reset();
    return 0;
}

/* After each test, nothing is left on the device, and no rule was broken. */
static inline int rig_clean(void **state)
{
    (void)state;
    if (!fake)
        return 0;
    if (fake->violations)
        print_error("the driver says: %s\n", fake->first);
    long left = fake->live_memory + fake->live_pins + fake->live_streams + fake->live_events +
                fake->live_contexts + fake->live_modules;
    if (left)
        print_error("left: memory %ld pins %ld streams %ld events %ld contexts %ld modules %ld\n",
                    fake->live_memory, fake->live_pins, fake->live_streams, fake->live_events,
                    fake->live_contexts, fake->live_modules);
    return fake->violations || left ? -1 : 0;
}

static inline tnf_device *rig_open(const char *name)
{
    tnf_error e;
    tnf_device *d = NULL;
    assert_ok(tnf_device_open(&d, name, NULL, &e));
    return d;
}

/* Memory of a device that belongs to the caller. */
static inline void *rig_take(tnf_device *d, size_t n)
{
    cu_ptr p = 0;
    n = n ? n : 1;
    if (!d->cuda)
        return malloc(n);
    MUST(tnf_device_enter(d, NULL) == TNF_OK);
    MUST(d->cuda->memory_alloc(&p, n) == 0);
    tnf_device_leave(d);
    return (void *)(uintptr_t)p;
}

static inline void rig_give(tnf_device *d, void *p)
{
    if (!d->cuda) {
        free(p);
        return;
    }
    MUST(tnf_device_enter(d, NULL) == TNF_OK);
    MUST(d->cuda->memory_free((cu_ptr)(uintptr_t)p) == 0);
    tnf_device_leave(d);
}

/* --------------------------------------------------------------- models */

static inline uint8_t *random_bytes(size_t n, uint64_t *rng)
{
    uint8_t *p = malloc(n + 8);
    MUST(p != NULL);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t r = next_random(rng);
        memcpy(p + i, &r, 8);
    }
    return p;
}

/* A file of `tensors` tensors of u8, f16 and f32 of up to `most` bytes, some of them empty. */
static inline void random_model(unsigned tensors, size_t most, uint64_t *rng)
{
    tnf_error e;
    tnf_builder *b;
    uint8_t *bytes = random_bytes(most, rng);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    for (unsigned i = 0; i < tensors; i++) {
        static const tnf_dtype types[] = { TNF_U8, TNF_F16, TNF_F32 };
        static const size_t widths[] = { 1, 2, 4 };
        unsigned t = (unsigned)(next_random(rng) % 3);
        uint64_t cols = 1 + next_random(rng) % 97, left = most / widths[t] / cols;
        uint64_t shape[] = { next_random(rng) % 9 == 0 ? 0
                                                       : 1 + next_random(rng) % (left ? left : 1),
                             cols };
        char name[32];
        snprintf(name, sizeof name, "t%u", i);
        if (shape[0] * cols * widths[t] > most)
            shape[0] = 0;
        assert_ok(tnf_builder_add(b, name, tnf_type_of(types[t]), 2, shape, bytes, &e));
        bytes[0]++;
    }
    tnf_save_options o = { .size = sizeof o, .replace = true, .no_sync = true };
    assert_ok(tnf_save(b, path, &o, &e));
    tnf_builder_free(b);
    free(bytes);
}

static inline tnf_file *open_model(const char *file_path)
{
    tnf_error e;
    tnf_file *file = NULL;
    assert_ok(tnf_open(&file, file_path, NULL, &e));
    return file;
}

/* All tensors of a file as requests. */
static inline tnf_device_request *ask_all(const tnf_file *file, size_t *n)
{
    *n = tnf_file_info(file)->objects;
    tnf_device_request *r = calloc(*n + 1, sizeof *r);
    MUST(r != NULL);
    for (size_t i = 0; i < *n; i++)
        r[i].object = tnf_at(file, i);
    return r;
}

/* A file with one tensor "w" of f16 of this shape, and its bytes. */
static inline tnf_file *one_tensor(uint32_t rank, const uint64_t *shape, uint64_t *rng)
{
    tnf_error e;
    tnf_builder *b;
    size_t n = 2;
    for (uint32_t d = 0; d < rank; d++)
        n *= (size_t)shape[d];
    uint8_t *bytes = random_bytes(n, rng);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add(b, "w", tnf_type_of(TNF_F16), rank, shape, bytes, &e));
    tnf_save_options o = { .size = sizeof o, .replace = true, .no_sync = true };
    assert_ok(tnf_save(b, path, &o, &e));
    tnf_builder_free(b);
    free(bytes);
    return open_model(path);
}

/* Are these n bytes on the device the expected ones? */
static inline bool same_bytes(tnf_device *d, const void *at, const void *expected, size_t n)
{
    tnf_error e;
    uint8_t *back = malloc(n + 1);
    MUST(back != NULL);
    assert_ok(tnf_device_read(back, d, at, n, &e));
    bool same = memcmp(back, expected, n) == 0;
    free(back);
    return same;
}

/* Compares tensor i of a load, on device number k, with the part in the file. */
static inline void check_part(tnf_load *load, size_t k, tnf_device *d, size_t i,
                              const tnf_part *part, const char *label)
{
    tnf_error e;
    size_t n = (size_t)part->nbytes;
    uint8_t *expected = malloc(n + 1);
    MUST(expected != NULL);
    assert_int_equal(tnf_load_bytes(NULL, load, i), n);
    assert_ok(tnf_read_part(expected, n, part, 0, &e));
    if (n && !same_bytes(d, tnf_load_on(load, k, i), expected, n))
        fail_msg("%s: tensor %zu differs on device %zu", label, i, k);
    free(expected);
}

static inline void check_all(tnf_load *load, tnf_device *d, const tnf_file *file)
{
    for (size_t i = 0; i < tnf_file_info(file)->objects; i++)
        check_part(load, 0, d, i, tnf_at(file, i)->parts, "model");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_reset, rig_clean)

#endif
