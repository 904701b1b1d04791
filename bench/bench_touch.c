/* SPDX-License-Identifier: MIT */
/* bench_touch FILE: how much of a file is read when it is opened? Three numbers: the bytes
 * requested from a source, the bytes that read calls returned (/proc/self/io), and the pages of the
 * file in the page cache afterwards, if there were none before. */
#include "bench.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct counted {
    int fd;
    uint64_t bytes, calls;
};

static tnf_status counted_read(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    struct counted *c = ctx;
    c->bytes += n;
    c->calls++;
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(c->fd, (uint8_t *)dst + done, n - done, (off_t)(offset + done));
        if (got <= 0) {
            *error = (tnf_error) { .status = TNF_EIO, .offset = offset };
            return TNF_EIO;
        }
        done += (size_t)got;
    }
    return TNF_OK;
}

static int open_file(const char *path, uint64_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        bench_die(path);
    *size = (uint64_t)st.st_size;
    return fd;
}

static void by_source(const char *path)
{
    static const tnf_source_ops ops = { .version = TNF_SOURCE_OPS_VERSION,
                                        .read_at = counted_read };
    uint64_t size;
    struct counted c = { .fd = open_file(path, &size) };
    tnf_error error;
    tnf_source *source;
    tnf_file *file;
    bench_check(tnf_source_custom(&source, &ops, &c, size, &error), &error);
    bench_check(tnf_open_source(&file, source, NULL, &error), &error);
    uint64_t first = UINT64_MAX;
    const tnf_object *o;
    for (size_t i = 0; (o = tnf_at(file, i)); i++)
        first = o->parts->offset < first ? o->parts->offset : first;
    printf("{\"size\":%" PRIu64 ",\"index\":%" PRIu64 ",\"source_bytes\":%" PRIu64
           ",\"source_calls\":%" PRIu64 ",",
           size, first, c.bytes, c.calls);
    tnf_close(file);
    close(c.fd);
}

static uint64_t read_chars(void)
{
    char text[512] = "";
    int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    const char *at = n > 0 ? strstr(text, "rchar: ") : NULL;
    if (fd >= 0)
        close(fd);
    return at ? strtoull(at + 7, NULL, 10) : 0;
}

static long count_faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt + u.ru_majflt;
}

static uint64_t pages_cached(const char *path)
{
    uint64_t size, count = 0;
    int fd = open_file(path, &size);
    size_t pages = (size_t)((size + 4095) / 4096);
    void *p = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    unsigned char *in = calloc(pages, 1);
    if (p == MAP_FAILED || !in || mincore(p, (size_t)size, in) != 0)
        bench_die("mincore");
    for (size_t i = 0; i < pages; i++)
        count += in[i] & 1;
    munmap(p, (size_t)size);
    free(in);
    close(fd);
    return count;
}

static void by_kernel(const char *path)
{
    uint64_t size;
    int fd = open_file(path, &size);
    fdatasync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    uint64_t before = pages_cached(path);
    tnf_error error;
    tnf_file *file;
    uint64_t a = read_chars(), b = read_chars(); /* b - a: the cost of the query itself */
    long f = count_faults();
    bench_check(tnf_open(&file, path, NULL, &error), &error);
    f = count_faults() - f;
    uint64_t c = read_chars();
    printf("\"rchar\":%" PRIu64 ",\"faults\":%ld,\"cached_before\":%" PRIu64
           ",\"cached_after\":%" PRIu64 "}\n",
           c - b - (b - a), f, before, pages_cached(path));
    tnf_close(file);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: bench_touch FILE\n");
        return 2;
    }
    by_source(argv[1]);
    by_kernel(argv[1]);
    return 0;
}
