/* SPDX-License-Identifier: MIT */
/* The shared lock on bytes 0 to 3 of a VS file is held whenever the file is read, also after it was
 * opened, and by any number of threads; writers get their turn. pread() is replaced, to look at the
 * lock during each read; therefore this is a program of its own. */
#include "../../support/files.h"
#include "../../support/open.h"
#include "../../support/unit.h"
#include <tenfold/build.h>
#include <tenfold/tenfold.h>

#include "io/lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef F_OFD_GETLK
int main(void)
{
    return 77; /* skipped: locks are those of the process, so it cannot see its own */
}
#else

#define GATE ((off_t)1 << 62) /* io/lock.h */

static char path[300];
static tnf_error e;

/* ------------------------------------------------------------- the system call */

static ino_t watched; /* 0: no file */
static int watcher = -1;
static atomic_uint reads, unlocked;
static void (*during_read)(void);

/* The kind of lock that keeps `fd` from locking these bytes exclusively. */
static short lock_on(int fd, off_t start, off_t n)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = n };
    assert_int_equal(fcntl(fd, F_OFD_GETLK, &l), 0);
    return l.l_type;
}

static ssize_t ask_kernel(int fd, void *p, size_t n, off_t at)
{
#if __SIZEOF_LONG__ == 4
    return syscall(SYS_pread64, fd, p, n, (uint32_t)at, (uint32_t)((uint64_t)at >> 32));
#else
    return syscall(SYS_pread64, fd, p, n, at);
#endif
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
    struct stat st;
    if (watched && fstat(fd, &st) == 0 && st.st_ino == watched) {
        atomic_fetch_add(&reads, 1);
        if (lock_on(watcher, 0, 4) != F_RDLCK)
            atomic_fetch_add(&unlocked, 1);
        if (during_read)
            during_read();
    }
    return ask_kernel(fd, p, n, at);
}

/* -------------------------------------------------------------------- helpers */

/* A copy of a fixture, watched from now on. */
static void copy_fixture(const char *name)
{
    char from[400];
    struct stat st;
    snprintf(from, sizeof from, "%s/formats/vs/valid/%s.vsdb", TNF_TESTS_DIR, name);
    snprintf(path, sizeof path, "%s/%s.vsdb", files_temp(), name);
    struct bytes b = bytes_of_file(from);
    bytes_to_file(path, b.p, b.n);
    free(b.p);
    if (watcher >= 0)
        close(watcher);
    watcher = open(path, O_RDWR | O_CLOEXEC);
    assert_true(watcher >= 0 && fstat(watcher, &st) == 0);
    watched = st.st_ino;
    during_read = NULL;
    atomic_store(&reads, 0);
    atomic_store(&unlocked, 0);
}

static tnf_file *open_it(const tnf_open_options *o)
{
    tnf_file *file;
    assert_ok(tnf_open(&file, path, o, &e));
    return file;
}

static void eat_extras(const tnf_file *file)
{
    const tnf_info *info = tnf_file_info(file);
    for (size_t i = 0; i < info->nextras; i++) {
        tnf_status status;
        free(read_part(&info->extras[i].bytes, &status));
        assert_int_equal(status, TNF_OK);
    }
}

/* Reads everything that a file has. */
static void eat_file(const tnf_file *file)
{
    tnf_status status;
    assert_ok(verify_all(file, &e));
    for (size_t i = 0; i < tnf_file_info(file)->objects; i++) {
        const tnf_object *o = tnf_at(file, i);
        for (uint16_t k = 0; k < o->nparts; k++) {
            free(read_part(&o->parts[k], &status));
            assert_int_equal(status, TNF_OK);
        }
    }
    eat_extras(file);
}

/* ---------------------------------------------------------------------- tests */

static void every_read_is_locked(void **state)
{
    (void)state;
    static const char *const names[] = { "app_kinds",  "unknown",       "point_extra",
                                         "bits_13",    "snappy",        "gzip_members",
                                         "meta_extra", "resolution_f80" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        copy_fixture(names[i]);
        tnf_file *file = open_it(NULL);
        assert_int_equal(lock_on(watcher, 0, 4), F_UNLCK);
        unsigned before = atomic_load(&reads);
        eat_file(file);
        assert_true(atomic_load(&reads) > before);
        assert_int_equal(lock_on(watcher, 0, 4), F_UNLCK);
        tnf_close(file);
        /* the probe looks at the first and the last bytes before it knows the format */
        assert_in_range(atomic_load(&unlocked), 0, 2);
        assert_true(atomic_load(&unlocked) < atomic_load(&reads));
    }
}

struct reading {
    const tnf_file *file;
    atomic_bool *stop;
    unsigned most;
    tnf_status status;
};

static void *read_often(void *ctx)
{
    struct reading *r = ctx;
    const tnf_part *part = tnf_find(r->file, "points")->parts;
    uint8_t bytes[256];
    while (r->most-- && r->status == TNF_OK && !atomic_load(r->stop))
        r->status = tnf_read_part(bytes, part->nbytes, part, 0, NULL);
    return NULL;
}

#define THREADS 4u

static void start_threads(pthread_t id[THREADS], struct reading r[THREADS], const tnf_file *file,
                          atomic_bool *stop, unsigned most)
{
    for (unsigned i = 0; i < THREADS; i++) {
        r[i] = (struct reading) { file, stop, most, TNF_OK };
        assert_int_equal(pthread_create(&id[i], NULL, read_often, &r[i]), 0);
    }
}

static void join_threads(const pthread_t id[THREADS], const struct reading r[THREADS])
{
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(id[i], NULL), 0);
        assert_int_equal(r[i].status, TNF_OK);
    }
}

/* A thread that has finished does not end the lock of the others. */
static void threads_share_the_lock(void **state)
{
    (void)state;
    pthread_t id[THREADS];
    struct reading r[THREADS];
    atomic_bool stop = false;
    copy_fixture("f64_basic");
    tnf_file *file = open_it(NULL);
    assert_true(tnf_find(file, "points")->parts->nbytes <= 256);
    unsigned at_open = atomic_load(&unlocked);
    start_threads(id, r, file, &stop, 2000);
    join_threads(id, r);
    assert_true(atomic_load(&reads) >= THREADS * 2000);
    assert_int_equal(atomic_load(&unlocked), at_open);
    assert_int_equal(lock_on(watcher, 0, 4), F_UNLCK);
    tnf_close(file);
}

/* Threads that read all the time do not keep a writer out. */
static void writers_get_a_turn(void **state)
{
    (void)state;
    enum { MOST = 1000000 }; /* reads of a thread while the writer waits: then it starves */
    pthread_t id[THREADS];
    struct reading r[THREADS];
    atomic_bool stop = false;
    copy_fixture("f64_basic");
    tnf_file *file = open_it(NULL);
    watched = 0;
    start_threads(id, r, file, &stop, MOST);
    for (int i = 0; i < 20; i++) {
        assert_ok(tnf_lock_take(watcher, true, TNF_LOCK_FOREVER, &e));
        tnf_lock_drop(watcher);
    }
    atomic_store(&stop, true);
    join_threads(id, r);
    for (unsigned i = 0; i < THREADS; i++)
        assert_true(r[i].most > 0);
    tnf_close(file);
}

/* The other process: while it has the lock, the file has wrong bytes. It ends that when it sees
 * somebody wait at the gate, or hears that the reader did not wait. */
static void write_meanwhile(int ready, int done)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 4 };
    uint8_t old[24], wrong[24];
    char byte;
    int fd = open(path, O_RDWR), other = open(path, O_RDWR);
    off_t at = lseek(fd, 0, SEEK_END) - 1 - (off_t)sizeof old; /* the last vector, before '$' */
    memset(wrong, 0xee, sizeof wrong);
    bool good = fcntl(fd, F_OFD_SETLK, &l) == 0 && ask_kernel(fd, old, sizeof old, at) > 0 &&
                pwrite(fd, wrong, sizeof wrong, at) > 0 && write(ready, "x", 1) == 1;
    good = good && fcntl(done, F_SETFL, O_NONBLOCK) == 0;
    while (good && lock_on(other, GATE, 1) == F_UNLCK && read(done, &byte, 1) != 1)
        usleep(100);
    good = good && pwrite(fd, old, sizeof old, at) > 0;
    _exit(good ? 0 : 1); /* the lock ends */
}

static void waits_for_a_writer(void **state)
{
    (void)state;
    int ready[2], done[2], status;
    char byte;
    copy_fixture("f64_basic");
    tnf_file *file = open_it(NULL);
    const tnf_object *points = tnf_find(file, "points");
    assert_int_equal(points->parts->nbytes % 24, 0);
    size_t n = (size_t)points->parts->nbytes;
    uint8_t *before = malloc(n), *after = malloc(n);
    assert_ok(tnf_read(before, n, points, &e));
    assert_true(pipe(ready) == 0 && pipe(done) == 0);
    pid_t child = fork();
    if (child == 0)
        write_meanwhile(ready[1], done[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_ok(tnf_read(after, n, points, &e));
    assert_int_equal(write(done[1], "x", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_memory_equal(after, before, n);
    free(before);
    free(after);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(done[i]);
    }
    tnf_close(file);
}

/* A writer that waits for the end of our claim holds the gate. */
static void take_the_gate(void)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = GATE, .l_len = 1 };
    during_read = NULL;
    assert_int_equal(fcntl(watcher, F_OFD_SETLK, &l), 0);
}

/* Who has claimed the file does not wait for a writer that waits for the end of the claim. */
static void claims_do_not_block_themselves(void **state)
{
    (void)state;
    tnf_open_options o = { .size = sizeof o, .to_change = true };
    copy_fixture("app_kinds");
    tnf_file *file = open_it(&o);
    take_the_gate();
    eat_file(file);
    tnf_close(file);
    copy_fixture("app_kinds");
    tnf_builder *b;
    tnf_save_options how = { .size = sizeof how, .replace = true };
    file = open_it(NULL);
    assert_ok(tnf_builder_new(&b, NULL, &e));
    assert_ok(tnf_builder_add_file(b, file, &e));
    during_read = take_the_gate;
    assert_ok(tnf_save(b, path, &how, &e));
    assert_null(during_read); /* the gate was taken while it was saved */
    tnf_builder_free(b);
    tnf_close(file);
}

/* lock=no reads a file that another program has locked. */
static void locks_can_be_left_out(void **state)
{
    (void)state;
    tnf_option no = { "lock", "no" };
    tnf_open_options o = { .size = sizeof o, .options = &no, .noptions = 1 };
    copy_fixture("app_kinds");
    assert_ok(tnf_lock_take(watcher, true, 0, &e));
    tnf_file *file = open_it(&o);
    eat_file(file);
    tnf_close(file);
    tnf_lock_drop(watcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_read_is_locked),
        cmocka_unit_test(threads_share_the_lock),
        cmocka_unit_test(writers_get_a_turn),
        cmocka_unit_test(waits_for_a_writer),
        cmocka_unit_test(claims_do_not_block_themselves),
        cmocka_unit_test(locks_can_be_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
