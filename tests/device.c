/* SPDX-License-Identifier: MIT */
/* Loading onto devices: the host, and a simulated CUDA driver or, with TENFOLD_CUDA=libcuda.so.1, a
 * real one. */
#include "device/rig.h"

#include <pthread.h>
#include <sys/stat.h>
#include <tenfold/virtual.h>
#include <unistd.h>

/* ---------------------------------------------------------------- formats */

static void load_fixture(tnf_device *d, const struct fixture *f)
{
    tnf_error e;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .lenient = true };
    if (tnf_open(&file, f->path, &o, &e) != TNF_OK)
        return;
    size_t n = 0;
    tnf_device_request *r = calloc(4 * (tnf_file_info(file)->objects + 1), sizeof *r);
    MUST(r != NULL);
    for (size_t i = 0; i < tnf_file_info(file)->objects; i++) {
        const tnf_object *x = tnf_at(file, i);
        for (uint16_t k = 0; k < x->nparts && k < 4; k++)
            if (!(x->parts[k].flags & TNF_PART_UNREADABLE) && !tnf_missing_file(x) &&
                tnf_read_part(NULL, 0, &x->parts[k], 0, NULL) == TNF_OK)
                r[n++] = (tnf_device_request) { .object = x, .part = &x->parts[k] };
    }
    tnf_load_options how = { .size = sizeof how, .block = 64 << 10, .threads = 3 };
    tnf_load *load;
    tnf_status status = tnf_device_load(&load, d, r, n, &how, &e);
    if (status != TNF_OK) /* then one of the tensors cannot be read at all */
        print_message("%s: %s\n", f->label, e.message);
    for (size_t i = 0; status == TNF_OK && i < n; i++)
        check_part(load, 0, d, i, r[i].part, f->label);
    if (status == TNF_OK)
        tnf_load_free(load);
    free(r);
    tnf_close(file);
}

static void every_format(void **state)
{
    (void)state;
    fixtures_valid();
    for (size_t k = 0; k < EACH_DEVICE; k++) {
        tnf_device *d = rig_open(names[k]);
        for (size_t i = 0; i < fixtures.n; i++)
            load_fixture(d, &fixtures.list[i]);
        tnf_device_close(d);
    }
}

/* ----------------------------------------------------------------- random */

struct counted {
    size_t taken, given;
};

static void *take_counted(void *ctx, tnf_device *d, size_t n)
{
    ((struct counted *)ctx)->taken++;
    return rig_take(d, n);
}

static void give_counted(void *ctx, tnf_device *d, void *p, size_t n)
{
    (void)n;
    ((struct counted *)ctx)->given++;
    rig_give(d, p);
}

static void load_random(tnf_device *d, const tnf_file *file, uint64_t *rng)
{
    tnf_error e;
    size_t n;
    struct counted counted = { 0, 0 };
    tnf_device_request *r = ask_all(file, &n);
    tnf_load_options how = TNF_LOAD_INIT;
    how.threads = 1 + (unsigned)(next_random(rng) % 6);
    how.slots = 1 + (unsigned)(next_random(rng) % 4);
    how.block = ((size_t)16 << next_random(rng) % 5) * 4096;
    how.read = (tnf_device_read_mode)(next_random(rng) % 4);
    how.alloc = (tnf_device_alloc)(next_random(rng) % 2);
    how.has_after = next_random(rng) % 2;
    if (next_random(rng) % 3 == 0) {
        how.allocate = take_counted;
        how.release = give_counted;
        how.ctx = &counted;
    }
    for (size_t i = 0; i < n; i++)
        if (next_random(rng) % 4 == 0) {
            r[i].dst_bytes = (size_t)r[i].object->parts->nbytes;
            r[i].dst = rig_take(d, r[i].dst_bytes);
        }
    tnf_load *load;
    assert_ok(tnf_device_load(&load, d, r, n, &how, &e));
    assert_true(tnf_load_done(load, TNF_LOAD_ALL));
    check_all(load, d, file);
    tnf_load_free(load);
    assert_int_equal(counted.taken, counted.given);
    for (size_t i = 0; i < n; i++)
        if (r[i].dst)
            rig_give(d, r[i].dst);
    free(r);
}

static void random_models(void **state)
{
    (void)state;
    uint64_t rng = 24;
    const char *times = getenv("TENFOLD_DEVICE_FILES");
    unsigned rounds = times ? (unsigned)strtoul(times, NULL, 10) : 12;
    for (unsigned round = 0; round < rounds; round++) {
        static const unsigned counts[] = { 1, 7, 60, 900 };
        static const size_t mosts[] = { 3 << 20, 700000, 70000, 5000 };
        unsigned kind = round % 4;
        random_model(counts[kind], mosts[kind], &rng);
        tnf_file *file = open_model(path);
        for (size_t k = 0; k < EACH_DEVICE; k++) {
            tnf_device *d = rig_open(names[k]);
            if (fake)
                fake->delay_us = round % 3 * 200;
            load_random(d, file, &rng);
            load_random(d, file, &rng); /* with buffers that exist already */
            tnf_device_close(d);
        }
        tnf_close(file);
    }
}

/* ----------------------------------------------------------------- slices */

static void check_slice(tnf_device *d, const tnf_file *file, const char *text,
                        tnf_device_read_mode mode, const tnf_type *as)
{
    tnf_error e;
    const tnf_object *w = tnf_find(file, "w");
    tnf_slice slices[4];
    tnf_virtual *cast = NULL;
    const tnf_object *source = w;
    assert_ok(tnf_slice_parse(slices, text, w->shape, w->rank, &e));
    tnf_device_request r = { .object = w, .slices = slices, .as = as };
    tnf_load_options how = { .size = sizeof how, .block = 64 << 10, .read = mode };
    tnf_load *load;
    assert_ok(tnf_device_load(&load, d, &r, 1, &how, &e));
    if (as) {
        tnf_virtual_how to = { .size = sizeof to, .kind = TNF_VIRTUAL_CAST, .type = as };
        assert_ok(tnf_virtual_new(&cast, &w, 1, &to, &e));
        source = tnf_virtual_object(cast);
    }
    size_t n = (size_t)tnf_slice_bytes(source, slices);
    uint8_t *expected = malloc(n + 1);
    assert_ok(tnf_read_slice(expected, n, source, slices, &e));
    assert_int_equal(tnf_load_bytes(NULL, load, 0), n);
    if (n && !same_bytes(d, tnf_load_at(load, 0), expected, n))
        fail_msg("[%s] differs", text);
    tnf_load_report report = TNF_LOAD_REPORT_INIT;
    assert_ok(tnf_load_tell(&report, load, &e));
    if (mode == TNF_DEVICE_READ_EXACT && !as)
        assert_int_equal(report.bytes_read, n);
    free(expected);
    tnf_load_free(load);
    tnf_virtual_free(cast);
}

static void every_slice(void **state)
{
    (void)state;
    static const struct {
        uint32_t rank;
        uint64_t shape[3];
        const char *texts[9];
    } cases[] = {
        { 1, { 100001 }, { ":", "5:99999", "::3", "::-1", "7", "0:0" } },
        { 2,
          { 700, 1030 },
          { ":", "3:50", ":,5:7", ":,500:1030", "::2,:", "10:20,100:900", "::-1,3",
            "5,:", "3:600:7,0:1029" } },
        /* runs that are read separately */
        { 2, { 64, 20000 }, { ":,0:5000", ":,15000:", "3:60:2,1:9999", "63:64,:" } },
        /* and runs that are longer than a block */
        { 2, { 3, 900000 }, { ":,0:600000", ":,1:", "::2", ":,0:400000", ":,100000:870000" } },
        { 3,
          { 20, 30, 170 },
          { ":,:,3:9", ":,4:20,:", "2:9,:,:", "1:3,2:4,5:6", "4,:,3:", ":,4" } },
    };
    uint64_t rng = 5;
    for (size_t k = 0; k < EACH_DEVICE; k++) {
        tnf_device *d = rig_open(names[k]);
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            tnf_file *file = one_tensor(cases[c].rank, cases[c].shape, &rng);
            for (size_t i = 0; i < 9 && cases[c].texts[i]; i++)
                for (int mode = 0; mode < 4; mode++) {
                    check_slice(d, file, cases[c].texts[i], (tnf_device_read_mode)mode, NULL);
                    check_slice(d, file, cases[c].texts[i], (tnf_device_read_mode)mode,
                                tnf_type_of(TNF_F32));
                }
            tnf_close(file);
        }
        tnf_device_close(d);
    }
}

/* A wrong slice is refused before anything is read. */
static void wrong_slices(void **state)
{
    (void)state;
    tnf_error e;
    uint64_t rng = 5, shape[] = { 10, 10 };
    tnf_file *file = one_tensor(2, shape, &rng);
    tnf_device *d = rig_open("host");
    tnf_slice slices[] = { { .start = 0, .step = 1, .count = 10 },
                           { .start = 5, .step = 1, .count = 6 } };
    tnf_device_request r = { .object = tnf_find(file, "w"), .slices = slices };
    tnf_load *load;
    assert_fails(tnf_device_load(&load, d, &r, 1, NULL, &e), TNF_EINVAL);
    r.object = NULL;
    assert_fails(tnf_device_load(&load, d, &r, 1, NULL, &e), TNF_EINVAL);
    char room[8];
    r = (tnf_device_request) { .object = tnf_find(file, "w"), .dst = room, .dst_bytes = 8 };
    assert_fails(tnf_device_load(&load, d, &r, 1, NULL, &e), TNF_EINVAL);
    assert_says("200 bytes");
    tnf_device_close(d);
    tnf_close(file);
}

/* ----------------------------------------------------- many loads at once */

struct together {
    tnf_device *device;
    const tnf_file *file;
    uint64_t seed;
};

static void *load_together(void *arg)
{
    struct together *t = arg;
    for (int i = 0; i < 3; i++)
        load_random(t->device, t->file, &t->seed);
    return NULL;
}

static void two_at_once(void **state)
{
    (void)state;
    uint64_t rng = 55;
    random_model(50, 200000, &rng);
    tnf_file *file = open_model(path);
    tnf_device *d = rig_open("cuda:0");
    if (fake)
        fake->delay_us = 100;
    struct together both[] = { { d, file, 1 }, { d, file, 2 } };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_together, &both[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    tnf_device_close(d);
    tnf_close(file);
}

/* Each byte is read once, and copied to each device. */
static void load_several(tnf_device *const *devices, const tnf_device_request *r, size_t n,
                         tnf_device_read_mode read)
{
    tnf_error e;
    tnf_load_options how = { .size = sizeof how, .block = 64 << 10, .threads = 3, .read = read };
    tnf_load *load;
    assert_ok(tnf_device_start_many(&load, devices, 3, r, n, &how, &e));
    assert_ok(tnf_load_wait(load, TNF_LOAD_ALL, &e));
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < n; i++)
            check_part(load, k, devices[k], i, r[i].object->parts, "several");
    tnf_load_report report = TNF_LOAD_REPORT_INIT;
    assert_ok(tnf_load_tell(&report, load, &e));
    assert_true(report.bytes_read < report.bytes + report.bytes / 2); /* read once, small gaps */
    tnf_load_free(load);
}

static void several_devices(void **state)
{
    (void)state;
    static const struct {
        unsigned tensors;
        size_t most;
    } models[] = { { 50, 200000 }, { 1500, 700 } }; /* a kernel splits blocks of the second */
    if (!fake)
        skip();
    for (size_t m = 0; m < 2; m++) {
        tnf_error e;
        uint64_t rng = 66;
        size_t n;
        tnf_load *load;
        random_model(models[m].tensors, models[m].most, &rng);
        tnf_file *file = open_model(path);
        tnf_device *devices[] = { rig_open("cuda:1"), rig_open("host"), rig_open("cuda:0") };
        tnf_device_request *r = ask_all(file, &n);
        fake->delay_us = 200;
        load_several(devices, r, n, TNF_DEVICE_READ_AUTO);
        load_several(devices, r, n, TNF_DEVICE_READ_DIRECT);
        r[0].dst = file;
        assert_fails(tnf_device_start_many(&load, devices, 3, r, n, NULL, &e), TNF_EINVAL);
        for (size_t k = 0; k < 3; k++)
            tnf_device_close(devices[k]);
        free(r);
        tnf_close(file);
    }
}

/* A load begins after the work that is already on the caller's stream, so that work does not
 * overwrite a tensor with old bytes. */
static void after_callers_stream(void **state)
{
    (void)state;
    uint64_t rng = 31, shape[] = { 300, 1000 };
    tnf_file *file = one_tensor(2, shape, &rng);
    tnf_device *d = rig_open("cuda:0");
    /* copied; computed by a kernel; the same, and each thread reads directly */
    static const tnf_dtype as[] = { TNF_F16, TNF_F32, TNF_F32 };
    for (size_t k = 0; k < 3; k++) {
        tnf_error e;
        tnf_load *load;
        cu_stream stream;
        size_t n = 600000 * (k ? 2 : 1);
        uint8_t *dst = rig_take(d, n), *old = aligned_alloc(4096, 293 * 4096), *there = malloc(n);
        tnf_device_request r = { .object = tnf_at(file, 0), .dst = dst, .dst_bytes = n };
        tnf_load_options how = { .size = sizeof how, .block = 64 << 10, .threads = 3 };
        how.read = k < 2 ? TNF_DEVICE_READ_AUTO : TNF_DEVICE_READ_DIRECT;
        MUST(old && there && tnf_device_enter(d, NULL) == TNF_OK);
        memset(old, 0, n);
        MUST(d->cuda->host_register(old, n, CU_REGISTER_PORTABLE) == 0);
        MUST(d->cuda->stream_new(&stream, CU_STREAM_NON_BLOCKING) == 0);
        if (fake)
            fake->delay_us = 2000;
        for (int i = 0; i < 20; i++)
            MUST(d->cuda->copy_to((cu_ptr)(uintptr_t)dst, old, n, stream) == 0);
        tnf_device_leave(d);
        memcpy(&how.after, &stream, sizeof stream);
        r.as = as[k] == TNF_F16 ? NULL : tnf_type_of(as[k]);
        assert_ok(tnf_device_load(&load, d, &r, 1, &how, &e));
        assert_ok(tnf_device_read(there, d, dst, n, &e));
        MUST(tnf_device_enter(d, NULL) == TNF_OK);
        MUST(d->cuda->stream_sync(stream) == 0);
        MUST(d->cuda->stream_free(stream) == 0);
        MUST(d->cuda->host_unregister(old) == 0);
        tnf_device_leave(d);
        assert_true(same_bytes(d, dst, there, n));
        assert_true(memcmp(there, old, 256) != 0);
        tnf_load_free(load);
        rig_give(d, dst);
        free(old);
        free(there);
    }
    tnf_device_close(d);
    tnf_close(file);
}

/* ------------------------------------------------------------------ names */

static void names_of_devices(void **state)
{
    (void)state;
    tnf_error e;
    tnf_device *d;
    tnf_device_info info = TNF_DEVICE_INFO_INIT;
    assert_fails(tnf_device_open(&d, "cpu", NULL, &e), TNF_EINVAL);
    assert_fails(tnf_device_open(&d, "cuda0", NULL, &e), TNF_EINVAL);
    assert_fails(tnf_device_open(&d, "cuda:99", NULL, &e), TNF_ENOTFOUND);
    assert_says("there is no cuda:99");
    assert_fails(tnf_device_open(&d, "cuda:GPU-no", NULL, &e), TNF_ENOTFOUND);
    d = rig_open("cuda");
    assert_ok(tnf_device_look(&info, d, &e));
    assert_int_equal(info.ordinal, 0);
    assert_true(info.memory_free > 0 && info.memory_free <= info.memory_total);
    tnf_device_close(d);
    char name[64];
    snprintf(name, sizeof name, "cuda:%s", info.uuid);
    d = rig_open(name);
    tnf_device_close(d);
    if (fake)
        assert_string_equal(info.uuid, "GPU-10101010-1010-1010-1010-101010101010");
}

static void put_file(const char *folder, const char *name, const char *text)
{
    char at[700], command[800];
    snprintf(at, sizeof at, "%s/%s", files_temp(), folder);
    snprintf(command, sizeof command, "mkdir -p '%s'", at);
    MUST(system(command) == 0);
    snprintf(command, sizeof command, "%s/%s", at, name);
    bytes_to_file(command, text, strlen(text));
}

static void near_cpus(void **state)
{
    (void)state;
    cpu_set_t cpus;
    put_file("bus/pci/devices/0001:c3:0a.0", "numa_node", "1\n");
    put_file("bus/pci/devices/0000:04:00.0", "numa_node", "-1\n");
    put_file("devices/system/node/node1", "cpulist", "2-4,9,11-12\n");
    assert_int_equal(tnf_numa_node(files_temp(), 1, 0xc3, 10), 1);
    assert_int_equal(tnf_numa_node(files_temp(), 0, 4, 0), -1);
    assert_int_equal(tnf_numa_node(files_temp(), 0, 5, 0), -1);
    assert_true(tnf_numa_cpus(&cpus, files_temp(), 1));
    assert_int_equal(CPU_COUNT(&cpus), 6);
    assert_true(CPU_ISSET(3, &cpus) && CPU_ISSET(12, &cpus) && !CPU_ISSET(10, &cpus));
    assert_false(tnf_numa_cpus(&cpus, files_temp(), 0));
    tnf_numa_bind(&cpus); /* an empty set changes nothing */
}

/* Threads and buffers are placed near a device; the caller's thread is not moved. */
static void caller_stays(void **state)
{
    (void)state;
    uint64_t rng = 5, shape[] = { 700, 1000 };
    cpu_set_t before, after;
    tnf_error e;
    tnf_load *load;
    tnf_file *file = one_tensor(2, shape, &rng);
    tnf_device *d = rig_open("cuda:0");
    tnf_device_request r = { .object = tnf_at(file, 0) };
    MUST(sched_getaffinity(0, sizeof before, &before) == 0);
    int first = 0;
    while (!CPU_ISSET(first, &before))
        first++;
    d->has_cpus = true;
    CPU_ZERO(&d->cpus);
    CPU_SET(first, &d->cpus);
    assert_ok(tnf_device_load(&load, d, &r, 1, NULL, &e));
    MUST(sched_getaffinity(0, sizeof after, &after) == 0);
    assert_true(CPU_EQUAL(&before, &after));
    tnf_load_free(load);
    tnf_device_close(d);
    tnf_close(file);
}

/* Thousands of small tensors of different sizes: each block of them is a single copy. */
static void many_small(void **state)
{
    (void)state;
    uint64_t rng = 7;
    random_model(4000, 3000, &rng);
    tnf_file *file = open_model(path);
    for (size_t k = 0; k < EACH_DEVICE; k++)
        for (int alloc = 0; alloc < 2; alloc++) {
            tnf_error e;
            tnf_device *d;
            tnf_load *load;
            size_t n;
            tnf_load_report report = TNF_LOAD_REPORT_INIT;
            tnf_load_options how = TNF_LOAD_INIT;
            how.alloc = (tnf_device_alloc)alloc;
            how.block = (size_t)128 << 10;
            tnf_device_request *r = ask_all(file, &n);
            assert_ok(tnf_device_open(&d, names[k], NULL, &e));
            assert_ok(tnf_device_load(&load, d, r, n, &how, &e));
            check_all(load, d, file);
            assert_ok(tnf_load_tell(&report, load, &e));
            if (strcmp(names[k], "host") != 0)
                assert_true(report.copies < 200);
            tnf_load_free(load);
            tnf_device_close(d);
            free(r);
        }
    tnf_close(file);
}

/* A file in memory is read from there. A file of holes gives zeros, by all ways of reading. */
static void files_in_memory(void **state)
{
    (void)state;
    uint64_t rng = 17;
    char kept[sizeof path];
    struct stat st;
    if (access("/dev/shm", W_OK) != 0)
        skip();
    snprintf(kept, sizeof kept, "%s", path);
    snprintf(path, sizeof path, "/dev/shm/tenfold-test-%d.safetensors", (int)getpid());
    random_model(20, 300000, &rng);
    for (int holes = 0; holes < 2; holes++) {
        MUST(stat(path, &st) == 0);
        if (holes) /* after the header */
            MUST(truncate(path, 8192) == 0 && truncate(path, st.st_size) == 0);
        tnf_file *file = open_model(path);
        for (size_t k = 0; k < EACH_DEVICE; k++) {
            tnf_error e;
            tnf_load *load;
            size_t n;
            tnf_load_report report = TNF_LOAD_REPORT_INIT;
            tnf_device *d = rig_open(names[k]);
            tnf_device_request *r = ask_all(file, &n);
            assert_ok(tnf_device_load(&load, d, r, n, NULL, &e));
            check_all(load, d, file);
            assert_ok(tnf_load_tell(&report, load, &e));
            if (!holes)
                assert_int_equal(report.direct, 0);
            tnf_load_free(load);
            tnf_device_close(d);
            free(r);
        }
        tnf_close(file);
    }
    unlink(path);
    snprintf(path, sizeof path, "%s", kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_format),         CASE(random_models), CASE(every_slice),
        CASE(wrong_slices),         CASE(two_at_once),   CASE(several_devices),
        CASE(names_of_devices),     CASE(near_cpus),     CASE(many_small),
        CASE(after_callers_stream), CASE(caller_stays),  CASE(files_in_memory),
    };
    return cmocka_run_group_tests(tests, rig_begin, NULL);
}
