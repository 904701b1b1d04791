/* SPDX-License-Identifier: MIT */
/* A file is truncated, replaced or overwritten while it is open and mapped. Reading through the
 * library gives an error or the old bytes, and never a signal. */
#include "support/big.h"
#include <sys/wait.h>

#define TENSORS 5u
#define BYTES   ((uint64_t)300000)

enum { CUT_TO_NOTHING, CUT_INSIDE, CUT_A_BYTE, REPLACED, OVERWRITTEN, REMOVED, WAYS };
static const char *const ways[] = { "cut to nothing", "cut in the middle", "cut by a byte",
                                    "replaced",       "overwritten",       "removed" };

static char target[340], other[340], saved[340];

/* Changes the file as another program might. It has version 1 afterwards. */
static void do_it(int way)
{
    struct stat st;
    struct bytes b;
    MUST(stat(target, &st) == 0);
    switch (way) {
    case CUT_TO_NOTHING:
        MUST(truncate(target, 0) == 0);
        break;
    case CUT_INSIDE:
        MUST(truncate(target, st.st_size / 2 + 7) == 0);
        break;
    case CUT_A_BYTE:
        MUST(truncate(target, st.st_size - 1) == 0);
        break;
    case REPLACED:
        MUST(big_save(target, 1, TENSORS, BYTES, false, NULL) == TNF_OK);
        break;
    case OVERWRITTEN:
        MUST(big_save(other, 1, TENSORS, BYTES, false, NULL) == TNF_OK);
        b = bytes_of_file(other);
        FILE *f = fopen(target, "r+b");
        MUST(f && fwrite(b.p, 1, b.n, f) == b.n && fclose(f) == 0);
        free(b.p);
        break;
    default:
        MUST(unlink(target) == 0);
        break;
    }
}

static bool way_cuts(int way)
{
    return way <= CUT_A_BYTE;
}

/* Status and bytes agree: all bytes of version 0, all of version 1 if the file was overwritten, or
 * an error that says that the file ended. */
static bool is_sane(int way, tnf_status status, const tnf_error *error, const void *p, uint64_t n)
{
    if (status == TNF_OK)
        return CHECK(big_is(p, n, way == OVERWRITTEN), "other bytes than those of the file");
    check_error(status, error);
    CHECK(way_cuts(way) && status == TNF_ETRUNCATED, "%s: %s", tnf_status_name(status),
          error->message);
    return false;
}

static unsigned read_one_by_one(const tnf_file *file, int way)
{
    unsigned good = 0;
    uint8_t *p = malloc(BYTES);
    MUST(p != NULL);
    for (size_t i = 0; tnf_at(file, i); i++) {
        tnf_error error;
        tnf_status status = tnf_read(p, BYTES, tnf_at(file, i), &error);
        good += is_sane(way, status, &error, p, BYTES);
    }
    free(p);
    return good;
}

static void read_many(const tnf_file *file, int way, unsigned good)
{
    tnf_error error;
    tnf_request r[TENSORS];
    for (unsigned i = 0; i < TENSORS; i++) {
        r[i] = (tnf_request) { tnf_at(file, i)->parts, malloc(BYTES) };
        MUST(r[i].dst != NULL);
    }
    tnf_status status = tnf_read_many(r, TENSORS, NULL, &error);
    CHECK((status == TNF_OK) == (good == TENSORS), "read_many: %s", tnf_status_name(status));
    for (unsigned i = 0; i < TENSORS; i++) {
        is_sane(way, status, &error, r[i].dst, BYTES);
        free(r[i].dst);
    }
}

static void read_slices(const tnf_file *file, int way)
{
    static const char *const texts[] = { "::2", "::-1", "70000:", "-1" };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        for (size_t i = 0; tnf_at(file, i); i++) {
            const tnf_object *o = tnf_at(file, i);
            tnf_slice s;
            tnf_error error;
            MUST(tnf_slice_parse(&s, texts[k], o->shape, 1, &error) == TNF_OK);
            size_t n = (size_t)tnf_slice_bytes(o, &s);
            uint8_t *p = malloc(n);
            MUST(p != NULL);
            tnf_status status = tnf_read_slice(p, n, o, &s, &error);
            check_error(status, &error);
            CHECK(status == TNF_OK || (way_cuts(way) && status == TNF_ETRUNCATED), "slice %s: %s",
                  texts[k], error.message);
            for (size_t e = 0; status == TNF_OK && e < n; e++) {
                uint64_t at = (uint64_t)(s.start + (int64_t)(e / 4) * s.step) * 4 + e % 4;
                if (p[e] != big_byte(way == OVERWRITTEN, at)) {
                    CHECK(false, "slice %s: byte %zu", texts[k], e);
                    break;
                }
            }
            free(p);
        }
}

static void verify_file(const tnf_file *file, int way, unsigned good)
{
    tnf_error error;
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_status status = tnf_verify(&result, file, NULL, &error);
    check_error(status, &error);
    CHECK(status == TNF_OK, "verify stops: %s", error.message);
    CHECK(result.problems == TENSORS - good, "verify: %llu problems, %u tensors are not there",
          (unsigned long long)result.problems, TENSORS - good);
    (void)way;
}

static void save_file(const tnf_file *file, int way, unsigned good, bool shifted)
{
    tnf_error error;
    tnf_builder *b;
    tnf_option align = { "align", "64" }; /* pages do not match, so they are copied otherwise */
    tnf_save_options o = { .size = sizeof o, .format = BIG_FORMAT, .no_sync = true };
    o.options = &align;
    o.noptions = shifted;
    MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
    MUST(tnf_builder_add_file(b, file, &error) == TNF_OK);
    tnf_status status = tnf_save(b, saved, &o, &error);
    check_error(status, &error);
    CHECK((status == TNF_OK) == (good == TENSORS), "save: %s", tnf_status_name(status));
    CHECK(status == TNF_OK || status == TNF_ETRUNCATED, "save: %s", error.message);
    CHECK(files_count(files_temp(), "saved") == (status == TNF_OK ? 1 : 0), "a half file is left");
    if (status == TNF_OK) {
        tnf_file *again;
        if (CHECK(tnf_open(&again, saved, NULL, &error) == TNF_OK, "%s", error.message)) {
            read_one_by_one(again, way);
            tnf_close(again);
        }
    }
    unlink(saved);
    tnf_builder_free(b);
}

static void try_way(int way, tnf_access access, bool map_first)
{
    tnf_error error;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .access = access };
    check_doing("%s, %s%s", ways[way], access == TNF_ACCESS_PREAD ? "pread" : "mmap",
                map_first ? ", mapped before" : "");
    MUST(big_save(target, 0, TENSORS, BYTES, false, NULL) == TNF_OK);
    MUST(tnf_open(&file, target, &o, &error) == TNF_OK);
    const void *view = NULL;
    if (map_first && tnf_map(&view, tnf_at(file, 0)->parts, &error) == TNF_OK)
        CHECK(big_is(view, BYTES, 0), "the view is not the file");
    do_it(way);
    unsigned good = read_one_by_one(file, way);
    CHECK(good == (way == CUT_TO_NOTHING ? 0
                   : way == CUT_INSIDE   ? TENSORS / 2
                   : way == CUT_A_BYTE   ? TENSORS - 1
                                         : TENSORS),
          "%u tensors are there", good);
    read_many(file, way, good);
    read_slices(file, way);
    verify_file(file, way, good);
    save_file(file, way, good, false);
    save_file(file, way, good, true);
    tnf_prefetch(tnf_at(file, 0)->parts);
    tnf_evict(tnf_at(file, TENSORS - 1)->parts);
    tnf_close(file);
}

/* Another process cuts the file while it is being saved elsewhere, at many different moments. The
 * result is an error or a complete file; missing bytes are never replaced by zeros, and there is
 * never a signal. */
static void cut_while_saving(unsigned tensors)
{
    enum { MOMENTS = 60 };
    unsigned whole = 0, failed = 0;
    for (int i = 0; i < MOMENTS; i++) {
        tnf_error error;
        tnf_file *file;
        tnf_builder *b;
        struct stat st;
        check_doing("cut while saving, moment %d", i);
        MUST(big_save(target, 0, tensors, BYTES, false, NULL) == TNF_OK && stat(target, &st) == 0);
        MUST(tnf_open(&file, target, NULL, &error) == TNF_OK);
        MUST(tnf_builder_new(&b, NULL, NULL) == TNF_OK);
        MUST(tnf_builder_add_file(b, file, &error) == TNF_OK);
        int gate[2];
        char c = 0;
        MUST(pipe(gate) == 0);
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) { /* waits for the start, then a little longer */
            bool ok = read(gate[0], &c, 1) == 1;
            for (volatile int wait = 0; wait < i * 20000; wait++)
                continue;
            _exit(ok && truncate(target, i % 3 ? st.st_size / 2 + i : 0) == 0 ? 0 : 1);
        }
        tnf_option align = { "align", "64" }; /* pages do not match: copied otherwise */
        tnf_save_options o = { .size = sizeof o, .format = BIG_FORMAT, .no_sync = true };
        o.options = &align;
        o.noptions = i % 2;
        MUST(write(gate[1], &c, 1) == 1);
        tnf_status status = tnf_save(b, saved, &o, &error);
        int end;
        MUST(waitpid(child, &end, 0) == child && end == 0);
        check_error(status, &error);
        CHECK(status == TNF_OK || status == TNF_ETRUNCATED, "%s", error.message);
        whole += status == TNF_OK;
        failed += status != TNF_OK;
        if (status == TNF_OK) {
            tnf_file *again;
            if (CHECK(tnf_open(&again, saved, NULL, &error) == TNF_OK, "%s", error.message)) {
                CHECK(read_one_by_one(again, REMOVED) == tensors, "not all is there");
                tnf_close(again);
            }
        }
        unlink(saved);
        close(gate[0]);
        close(gate[1]);
        tnf_builder_free(b);
        tnf_close(file);
    }
    printf("cut while saving: %u times too late, %u times noticed\n", whole, failed);
}

int main(void)
{
    snprintf(target, sizeof target, "%s/target", files_temp());
    snprintf(other, sizeof other, "%s/other", files_temp());
    snprintf(saved, sizeof saved, "%s/saved", files_temp());
    for (int way = 0; way < WAYS; way++) {
        try_way(way, TNF_ACCESS_MMAP, true);
        try_way(way, TNF_ACCESS_MMAP, false);
        try_way(way, TNF_ACCESS_PREAD, false);
    }
    cut_while_saving(20);
    return check_end("shrink");
}
