/* SPDX-License-Identifier: MIT */
/* Shared by the tests of casts and of dequantization on devices. */
#ifndef TNF_TESTS_DEVICE_CASTS_H
#define TNF_TESTS_DEVICE_CASTS_H

#include "rig.h"

#include <tenfold/virtual.h>

static const tnf_dtype targets[] = { TNF_F32, TNF_F16, TNF_BF16 };

/* Loads what is requested; the result must be these bytes. */
static inline void check_load(tnf_device *d, tnf_device_request r, tnf_device_read_mode read,
                              tnf_load_made made, const uint8_t *expected, size_t n)
{
    tnf_error e;
    tnf_load *load;
    uint8_t *found = malloc(n + 1);
    tnf_load_options options = { .size = sizeof options, .block = 64 << 10, .threads = 3 };
    options.read = read;
    assert_ok(tnf_device_load(&load, d, &r, 1, &options, &e));
    tnf_load_made where = TNF_LOAD_STORED;
    assert_int_equal(tnf_load_bytes(&where, load, 0), n);
    assert_int_equal(where, made);
    assert_ok(tnf_device_read(found, d, tnf_load_at(load, 0), n, &e));
    size_t width = r.as->bits / 8;
    for (size_t i = 0; i < n; i += width)
        if (memcmp(expected + i, found + i, width) != 0) {
            uint32_t a = 0, b = 0;
            memcpy(&a, expected + i, width);
            memcpy(&b, found + i, width);
            fail_msg("%s as %s: element %zu is %x, not %x", r.object->name.p, r.as->id, i / width,
                     b, a);
        }
    free(found);
    tnf_load_free(load);
}

/* Compares the result of a request on a device with virtual tensors, which other tests compare with
 * other packages. The file is read through the page cache and, if the file system supports this,
 * past it, in turns. */
static inline void check_request(tnf_device *d, tnf_device_request r, tnf_load_made made)
{
    static unsigned turn;
    tnf_error e;
    const tnf_object *o = r.object;
    tnf_virtual *v[3] = { NULL, NULL, NULL };
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    const tnf_object *both[] = { o, r.scales };
    how.kind = r.scales ? TNF_VIRTUAL_SCALED : TNF_VIRTUAL_VALUES;
    assert_ok(tnf_virtual_new(&v[0], both, r.scales ? 2 : 1, &how, &e));
    o = tnf_virtual_object(v[0]);
    how.kind = TNF_VIRTUAL_CAST;
    how.type = r.as;
    assert_ok(tnf_virtual_new(&v[1], &o, 1, &how, &e));
    o = tnf_virtual_object(v[1]);
    if (r.slices) {
        how.kind = TNF_VIRTUAL_SLICE;
        how.slices = r.slices;
        assert_ok(tnf_virtual_new(&v[2], &o, 1, &how, &e));
        o = tnf_virtual_object(v[2]);
    }
    size_t n = (size_t)o->parts->nbytes;
    uint8_t *expected = malloc(n + 1);
    assert_ok(tnf_read(expected, n, o, &e));
    check_load(d, r, turn++ % 2 ? TNF_DEVICE_READ_AUTO : TNF_DEVICE_READ_DIRECT, made, expected, n);
    free(expected);
    for (size_t i = 3; i-- > 0;)
        tnf_virtual_free(v[i]);
}

static inline void save_model(tnf_builder *b)
{
    tnf_error e;
    tnf_save_options o = { .size = sizeof o, .replace = true, .no_sync = true };
    assert_ok(tnf_save(b, path, &o, &e));
    tnf_builder_free(b);
}

#endif
