/* SPDX-License-Identifier: MIT */
/* Loads that fail, are cancelled, or are awaited tensor by tensor. Nothing of them remains. */
#include "device/rig.h"

#include <fcntl.h>

/* --------------------------------------------------------------- failures */

/* `as`: the type that all tensors get on the device; NULL: their own. */
static tnf_status try_load(const tnf_file *file, tnf_device_read_mode mode, const tnf_type *as,
                           tnf_error *e)
{
    tnf_device *d;
    tnf_load *load = NULL;
    size_t n;
    tnf_status status = tnf_device_open(&d, "cuda:1", NULL, e);
    if (status != TNF_OK)
        return status;
    tnf_device_request *r = ask_all(file, &n);
    for (size_t i = 0; i < n; i++)
        r[i].as = as;
    tnf_load_options how = TNF_LOAD_INIT;
    how.threads = 3;
    how.block = 64 << 10;
    how.read = mode;
    how.has_after = true;
    status = tnf_device_load(&load, d, r, n, &how, e);
    long failing = fake->fail_call, calls = fake->calls;
    fake->fail_call = -1;
    if (status == TNF_OK && !as)
        check_all(load, d, file);
    fake->fail_call = failing;
    fake->calls = calls; /* calls of the check itself do not count */
    tnf_load_free(load);
    free(r);
    tnf_device_close(d);
    return status;
}

static void fail_each_call(void **state, tnf_device_read_mode mode, const tnf_type *as)
{
    tnf_error e;
    tnf_file *file = open_model(path);
    for (long at = 0;; at++) {
        fake_reset();
        fake->delay_us = 50;
        fake->fail_call = at;
        fake->fail_with = at % 2 ? 2 : 999;
        tnf_status status = try_load(file, mode, as, &e);
        bool reached = fake->calls > at;
        fake->fail_call = -1;
        assert_int_equal(rig_clean(state), 0);
        if (!reached) {
            assert_int_equal(status, TNF_OK);
            assert_true(at > 50);
            break;
        }
        if (status != TNF_OK)
            assert_true(e.message[0] != 0);
    }
    tnf_close(file);
}

/* Any call of the driver fails: there is an error with a message, and nothing is left. The tensors
 * are copied, split by a kernel, or computed by a kernel. */
static void every_call_fails(void **state)
{
    uint64_t rng = 9, shape[] = { 300, 1000 };
    if (!fake)
        skip();
    for (int mode = 0; mode < 2; mode++) {
        tnf_device_read_mode read = mode ? TNF_DEVICE_READ_DIRECT : TNF_DEVICE_READ_CACHED;
        random_model(12, 150000, &rng);
        fail_each_call(state, read, NULL);
        random_model(1300, 4000, &rng); /* an eighth of them are empty */
        fail_each_call(state, read, NULL);
        tnf_close(one_tensor(2, shape, &rng));
        fail_each_call(state, read, tnf_type_of(TNF_BF16));
    }
}

/* A copy that fails long after it was requested. */
static void late_failures(void **state)
{
    tnf_error e;
    uint64_t rng = 9;
    if (!fake)
        skip();
    random_model(12, 150000, &rng);
    tnf_file *file = open_model(path);
    for (long at = 0; at < 12; at++) {
        fake_reset();
        fake->fail_copy = at;
        fake->delay_us = 300;
        assert_fails(try_load(file, TNF_DEVICE_READ_CACHED, NULL, &e), TNF_EIO);
        assert_says("no longer use the GPU");
        assert_int_equal(rig_clean(state), 0);
    }
    tnf_close(file);
}

static void too_little_memory(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t rng = 3;
    if (!fake)
        skip();
    random_model(20, 500000, &rng);
    tnf_file *file = open_model(path);
    fake->memory = 1000000;
    assert_fails(try_load(file, TNF_DEVICE_READ_CACHED, NULL, &e), TNF_ENOMEM);
    assert_says("but only 1000000 are free");
    assert_int_equal(fake->copies, 0);
    tnf_close(file);
}

/* The file is cut while it is open: there is an error with the offset, for every way of reading. */
static void cut_short(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t rng = 7, shape[] = { 1000, 1000 };
    for (int mode = 0; mode < 3; mode++)
        for (size_t k = 0; k < EACH_DEVICE; k++) {
            tnf_file *file = one_tensor(2, shape, &rng);
            tnf_device *d = rig_open(names[k]);
            tnf_device_request r = { .object = tnf_find(file, "w") };
            tnf_load_options how = { .size = sizeof how, .block = 64 << 10 };
            how.read = (tnf_device_read_mode)mode;
            tnf_load *load;
            assert_int_equal(truncate(path, 1000000 + mode * 1234), 0);
            assert_fails(tnf_device_load(&load, d, &r, 1, &how, &e), TNF_ETRUNCATED);
            assert_true(e.offset != TNF_NO_OFFSET);
            tnf_device_close(d);
            tnf_close(file);
        }
}

/* ----------------------------------------------------------- asynchronous */

static void one_by_one(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t rng = 31;
    size_t n;
    random_model(40, 400000, &rng);
    tnf_file *file = open_model(path);
    tnf_device_request *r = ask_all(file, &n);
    for (size_t k = 0; k < EACH_DEVICE; k++) {
        tnf_device *d = rig_open(names[k]);
        tnf_load_options how = { .size = sizeof how, .block = 64 << 10, .threads = 2 };
        tnf_load *load;
        if (fake)
            fake->delay_us = 500;
        assert_ok(tnf_device_start(&load, d, r, n, &how, &e));
        for (size_t i = n; i-- > 0;) {
            assert_ok(tnf_load_wait(load, i, &e));
            assert_true(tnf_load_done(load, i));
            check_part(load, 0, d, i, r[i].object->parts, "one by one");
        }
        assert_ok(tnf_load_wait(load, TNF_LOAD_ALL, &e));
        assert_fails(tnf_load_wait(load, n, &e), TNF_EINVAL);
        tnf_load_report report = TNF_LOAD_REPORT_INIT;
        assert_ok(tnf_load_tell(&report, load, &e));
        assert_int_equal(report.threads, 2);
        assert_true(report.copies > 0 && report.bytes_read >= report.bytes);
        tnf_load_free(load);
        tnf_device_close(d);
    }
    free(r);
    tnf_close(file);
}

static void cancelled_loads(void **state)
{
    tnf_error e;
    uint64_t rng = 77;
    size_t n;
    random_model(30, 600000, &rng);
    tnf_file *file = open_model(path);
    tnf_device_request *r = ask_all(file, &n);
    for (unsigned round = 0; round < 30; round++) {
        tnf_device *d = rig_open("cuda:0");
        tnf_load_options how = { .size = sizeof how, .block = 64 << 10, .threads = 4 };
        tnf_load *load;
        if (fake)
            fake->delay_us = 200;
        assert_ok(tnf_device_start(&load, d, r, n, &how, &e));
        usleep((unsigned)(next_random(&rng) % 3000));
        if (round % 3) {
            tnf_load_cancel(load);
            tnf_status status = tnf_load_wait(load, TNF_LOAD_ALL, &e);
            assert_true(status == TNF_OK || status == TNF_ECANCELLED);
        }
        tnf_load_free(load);
        tnf_device_close(d);
        assert_int_equal(rig_clean(state), 0);
    }
    free(r);
    tnf_close(file);
}

static bool stop_half(void *ctx, uint64_t done, uint64_t total)
{
    *(uint64_t *)ctx = done;
    return done < total / 2;
}

static void stopped_by_progress(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t rng = 8, shape[] = { 1000, 1000 }, seen = 0;
    tnf_file *file = one_tensor(2, shape, &rng);
    tnf_device *d = rig_open("cuda:0");
    tnf_device_request r = { .object = tnf_find(file, "w") };
    tnf_load_options how = { .size = sizeof how, .block = 64 << 10, .threads = 2 };
    how.progress = stop_half;
    how.ctx = &seen;
    tnf_load *load;
    assert_fails(tnf_device_load(&load, d, &r, 1, &how, &e), TNF_ECANCELLED);
    assert_true(seen >= 1000000 && seen <= 2000000);
    tnf_device_close(d);
    tnf_close(file);
}

/* Memory is not freed while somebody uses it. */
static void kept_memory(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t rng = 4, shape[] = { 100, 100 };
    tnf_file *file = one_tensor(2, shape, &rng);
    for (size_t k = 0; k < EACH_DEVICE; k++) {
        tnf_device *d = rig_open(names[k]);
        tnf_device_request r = { .object = tnf_find(file, "w") };
        tnf_load *load;
        uint8_t expected[20000];
        assert_ok(tnf_read(expected, sizeof expected, r.object, &e));
        assert_ok(tnf_device_load(&load, d, &r, 1, NULL, &e));
        void *at = tnf_load_at(load, 0);
        assert_int_equal((uintptr_t)at % 256, 0);
        tnf_device_memory *kept = tnf_load_keep(load, 0, 0);
        assert_non_null(kept);
        tnf_load_free(load);
        assert_true(same_bytes(d, at, expected, sizeof expected));
        tnf_memory_drop(kept);
        tnf_device_close(d);
    }
    tnf_close(file);
}

/* After hundreds of loads, a device has as much free memory as before. */
static void no_growth(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t rng = 4, shape[] = { 300, 100 };
    tnf_file *file = one_tensor(2, shape, &rng);
    tnf_device *d = rig_open("cuda:0");
    tnf_device_info info = TNF_DEVICE_INFO_INIT, later = TNF_DEVICE_INFO_INIT;
    for (unsigned i = 0; i < 1000; i++) {
        tnf_device_request r = { .object = tnf_find(file, "w") };
        tnf_load_options how = { .size = sizeof how, .block = 64 << 10, .threads = 2 };
        tnf_load *load;
        assert_ok(tnf_device_load(&load, d, &r, 1, &how, &e));
        tnf_load_free(load);
        if (i == 20)
            assert_ok(tnf_device_look(&info, d, &e));
    }
    assert_ok(tnf_device_look(&later, d, &e));
    assert_int_equal(info.memory_free, later.memory_free);
    assert_int_equal(info.pinned, later.pinned);
    tnf_device_trim(d);
    assert_ok(tnf_device_look(&later, d, &e));
    assert_int_equal(later.pinned, 0);
    tnf_device_close(d);
    tnf_close(file);
}

/* Without a driver. A separate process is necessary, because a driver is searched for only once. */
static void no_driver(void **state)
{
    (void)state;
    char command[4200];
    const char *self = getenv("TENFOLD_DEVICE_SELF");
    if (self) {
        tnf_error e;
        tnf_device *d;
        assert_fails(tnf_device_open(&d, "cuda:0", NULL, &e), TNF_EUNSUPPORTED);
        assert_says("/nowhere/libcuda.so");
        d = rig_open("host");
        tnf_device_close(d);
        return;
    }
    char me[4000];
    ssize_t n = readlink("/proc/self/exe", me, sizeof me - 1);
    assert_true(n > 0);
    me[n] = 0;
    snprintf(
        command, sizeof command,
        "TENFOLD_DEVICE_SELF=1 TENFOLD_CUDA=/nowhere/libcuda.so '%s' device_faults >/dev/null 2>&1",
        me);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_call_fails), CASE(late_failures), CASE(too_little_memory),
        CASE(cut_short),        CASE(one_by_one),    CASE(cancelled_loads),
        CASE(no_driver),        CASE(kept_memory),   CASE(stopped_by_progress),
        CASE(no_growth),
    };
    const struct CMUnitTest alone[] = { cmocka_unit_test(no_driver) };
    if (getenv("TENFOLD_DEVICE_SELF"))
        return cmocka_run_group_tests(alone, NULL, NULL);
    return cmocka_run_group_tests(tests, rig_begin, NULL);
}
