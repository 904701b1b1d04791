/* SPDX-License-Identifier: MIT */
/* The hostile corpus (tests/hostile) within one process, so that a sanitizer sees all of it: every
 * file is opened strictly, leniently and for salvage, listed, read, mapped, verified, counted,
 * hashed, asked for vectors and points, and saved in every format that is written.
 *
 * The result must be the one in corpus.json. For every file, memory is at most 16 times the size of
 * the file and 16 MiB, time is at most two seconds (twenty under a sanitizer), and all memory is
 * freed in the end. A file that is saved without loss keeps its content hash. */
#include "../support/memory.h"
#include "../support/open.h"
#include <signal.h>
#include <sys/resource.h>
#include <tenfold/emb.h>
#include <tenfold/points.h>
#include <tenfold/repair.h>
#include <tenfold/stat.h>
#include <time.h>

#define CORPUS   TNF_HOSTILE_DIR /* made by tests/hostile/make.py */
#define ROOM     ((uint64_t)16 << 20)
#define PER_BYTE 16u

#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if (defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__) && !defined SANITIZED
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif
/* A build without optimization, or with counted lines, is as slow as one with a sanitizer. */
#if defined __OPTIMIZE__ && !defined TNF_SHARE
#define SECONDS (SANITIZED ? 20 : 2)
#else
#define SECONDS 20
#endif
/* ThreadSanitizer makes writing 2 GiB of zeros take a minute. Threads do the same for every file,
 * so one of five is enough there. */
#ifdef __SANITIZE_THREAD__
#undef SECONDS
#define SECONDS 200
#define SHARE   check_share(5)
#else
#define SHARE 1
#endif

/* AddressSanitizer refuses each single allocation that is larger than any file may need. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=24:allocator_may_return_null=1";
}

struct entry {
    char path[512], verdict[16], status[64], rule[32];
    uint64_t offset; /* TNF_NO_OFFSET: any */
    uint64_t tensors, size;
};

static unsigned long opened, saved, refused, whole;
static struct memory_log worst_log;
static double worst_time;

/* Memory is never short here, except for an allocation that no file may need. */
static void judge_error(tnf_status status, const tnf_error *error)
{
    check_error(status, error);
    CHECK(status != TNF_ENOMEM, "it asks for too much memory: %s", error->message);
}

/* ---------------------------------------------------------------- the list */

/* The value of a key in a line of corpus.json, without quotes; "" if the key is missing. A list
 * keeps its brackets. */
static void read_field(char *out, size_t room, const char *line, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *p = strstr(line, quoted);
    *out = 0;
    if (!p)
        return;
    p += strlen(quoted);
    size_t n = *p == '"' ? strcspn(++p, "\"") : *p == '[' ? strcspn(p, "]") : strcspn(p, ",}");
    MUST(n < room);
    memcpy(out, p, n);
    out[n] = 0;
}

static bool entry_parse(struct entry *e, const char *line)
{
    char name[256], number[32];
    *e = (struct entry) { .offset = TNF_NO_OFFSET };
    read_field(name, sizeof name, line, "file");
    if (!*name)
        return false;
    snprintf(e->path, sizeof e->path, CORPUS "/%s", name);
    read_field(e->verdict, sizeof e->verdict, line, "verdict");
    read_field(e->status, sizeof e->status, line, "status");
    read_field(e->rule, sizeof e->rule, line, "rule");
    read_field(number, sizeof number, line, "offset");
    if (*number >= '0' && *number <= '9')
        e->offset = strtoull(number, NULL, 10);
    read_field(number, sizeof number, line, "tensors");
    e->tensors = strtoull(number, NULL, 10);
    check_doing("%s", name);
    return true;
}

static bool has_verdict(const struct entry *e, const char *verdict)
{
    return strcmp(e->verdict, verdict) == 0;
}

static bool is_foreseen(const struct entry *e, tnf_status status, const char *rule, uint64_t offset)
{
    bool kind = *e->rule ? rule && strcmp(rule, e->rule) == 0
                         : strstr(e->status, tnf_status_name(status)) != NULL;
    return kind && (e->offset == TNF_NO_OFFSET || e->offset == offset);
}

/* ------------------------------------------------------------- using a file */

struct verified {
    const struct entry *entry;
    unsigned long problems, foreseen;
};

static void on_problem(void *ctx, const tnf_problem *p)
{
    struct verified *v = ctx;
    v->problems++;
    v->foreseen += is_foreseen(v->entry, p->code, p->rule, p->offset);
    eat_bytes(p->message, strlen(p->message));
}

static void on_values(void *ctx, const tnf_object *o, const tnf_value_counts *counts)
{
    (void)ctx;
    eat_bytes(o->name.p, o->name.n);
    eat_bytes(counts, sizeof *counts);
}

static void verify_file(const tnf_file *file, const struct entry *e, bool strict)
{
    struct verified v = { .entry = e };
    tnf_verify_result result = TNF_VERIFY_RESULT_INIT;
    tnf_error error;
    tnf_verify_options o = { .size = sizeof o, .problem = on_problem, .values = on_values };
    o.ctx = &v;
    o.threads = 1;
    tnf_status status = tnf_verify(&result, file, &o, &error);
    judge_error(status, &error);
    CHECK(status == TNF_OK, "it cannot be verified: %s", status == TNF_OK ? "" : error.message);
    if (strict && has_verdict(e, "accepted"))
        CHECK(v.problems == 0, "it has %lu problems", v.problems);
    if (strict && has_verdict(e, "damaged"))
        CHECK(v.foreseen > 0, "%lu problems, none of them %s", v.problems, e->status);
}

static void on_tensor(void *ctx, const tnf_object *o, const uint8_t hash[32])
{
    (void)ctx, (void)o;
    eat_bytes(hash, 32);
}

static bool hash_content(uint8_t out[32], const tnf_file *file)
{
    tnf_error error;
    tnf_hash_options o = { .size = sizeof o, .tensor = on_tensor, .threads = 1 };
    tnf_status status = tnf_content_hash(out, file, &o, &error);
    judge_error(status, &error);
    return status == TNF_OK;
}

static void on_stat(void *ctx, const tnf_stat *s)
{
    (void)ctx;
    if (s->numbers)
        eat_bytes(s->bins, s->nbins * sizeof *s->bins);
}

static void on_stat_problem(void *ctx, const tnf_object *o, const tnf_error *problem)
{
    (void)ctx, (void)o;
    judge_error(problem->status, problem);
}

static void count_values(const tnf_file *file)
{
    tnf_error error;
    tnf_stat_options o = { .size = sizeof o, .tensor = on_stat, .problem = on_stat_problem };
    o.threads = 1;
    tnf_status status = tnf_stat_file(file, &o, &error);
    judge_error(status, &error);
}

static tnf_status on_ngram(void *ctx, tnf_str ngram, uint64_t row, tnf_error *error)
{
    (void)ctx, (void)row, (void)error;
    eat_bytes(ngram.p, ngram.n);
    return TNF_OK;
}

/* A word that is often in the file, a word that is not, and the empty word. */
static void ask_words(const tnf_file *file, const tnf_allocator *memory)
{
    static const tnf_str words[] = { { "one", 3 }, { "gr\xc3\xbc\xc3\x9f\x65", 7 }, { "", 0 } };
    static float vectors[3 << 12];
    tnf_error error;
    tnf_emb *emb;
    tnf_emb_options o = { .size = sizeof o, .threads = 1, .allocator = *memory };
    o.memory = ROOM;
    if (tnf_emb_open(&emb, file, &o, &error) != TNF_OK)
        return;
    const tnf_emb_info *info = tnf_emb_describe(emb);
    for (uint64_t i = 0; i < info->words && i < 100; i++) {
        tnf_str word = tnf_emb_word(emb, i);
        eat_bytes(word.p, word.n);
    }
    for (size_t i = 0; i < 3; i++)
        judge_error(tnf_emb_ngrams(emb, words[i], on_ngram, NULL, &error), &error);
    if (info->dims <= 1 << 12)
        judge_error(tnf_emb_vectors(vectors, NULL, emb, words, 3, &error), &error);
    tnf_emb_close(emb);
}

/* ------------------------------------------------------------------- saving */

static tnf_status write_nothing(void *ctx, const void *p, size_t n, tnf_error *error)
{
    (void)ctx, (void)error;
    eat_bytes(p, n);
    return TNF_OK;
}

static const tnf_sink_ops nowhere = { TNF_SINK_OPS_VERSION, write_nothing, NULL, NULL };

/* Under a sanitizer, each file is saved in a fifth of the formats; the next file in the next
 * fifth. */
static void save_everywhere(const tnf_builder *b)
{
    static unsigned turn;
    tnf_error error;
    for (size_t i = turn++ % check_share(5); writable_format(i); i += check_share(5)) {
        tnf_sink *sink;
        tnf_save_options o = { .size = sizeof o, .format = writable_format(i), .allow_loss = true };
        MUST(tnf_sink_custom(&sink, &nowhere, NULL, NULL) == TNF_OK);
        tnf_status status = tnf_save_sink(b, sink, &o, &error);
        judge_error(status, &error);
        saved += status == TNF_OK;
        refused += status != TNF_OK;
        tnf_sink_close(sink);
    }
}

/* If an old checkpoint is saved again, its config gets the current form (docs/formats/gptrs.md). */
static bool is_upgrade(const tnf_file *file, const char *format)
{
    const tnf_info *info = tnf_file_info(file);
    return tnf_value_get(info->attrs, "gptrs.bare_config") && strcmp(info->format, format) == 0;
}

/* Saves without loss; the file that was saved has the same content. */
static void save_whole(const tnf_file *file, const char *format)
{
    uint8_t before[32], after[32];
    tnf_status status;
    tnf_error error;
    tnf_file *again;
    tnf_open_options how = { .size = sizeof how, .format = format };
    tnf_sink *sink = save_bytes(file, format, false, &status, &error);
    if (!sink)
        return;
    tnf_str bytes = tnf_sink_bytes(sink);
    if (CHECK(open_bytes(&again, bytes.p, bytes.n, &how, &error) == TNF_OK,
              "as %s it does not open: %s", format, error.message)) {
        if (CHECK(hash_content(before, file) && hash_content(after, again), "as %s it has no hash",
                  format))
            CHECK(memcmp(before, after, 32) == 0, "as %s it has another content", format);
        whole++;
        tnf_close(again);
    }
    tnf_sink_close(sink);
}

static void save_file(const tnf_file *file, const tnf_allocator *memory, bool salvage)
{
    tnf_error error;
    tnf_builder *b;
    tnf_salvage_result result = TNF_SALVAGE_RESULT_INIT;
    tnf_salvage_options how = { .size = sizeof how, .threads = 1 };
    MUST(tnf_builder_new(&b, memory, NULL) == TNF_OK);
    tnf_status status = salvage ? tnf_salvage(&result, b, file, &how, &error)
                                : tnf_builder_add_file(b, file, &error);
    judge_error(status, &error);
    if (status == TNF_OK)
        save_everywhere(b);
    tnf_builder_free(b);
}

/* ----------------------------------------------------------------- one file */

static void use_file(const tnf_file *file, const struct entry *e, const tnf_open_options *how)
{
    uint8_t digest[32];
    bool strict = !how->lenient && !how->salvage;
    opened++;
    eat_listing(file);
    check_parts(file, NULL, 0);
    verify_file(file, e, strict);
    hash_content(digest, file);
    count_values(file);
    ask_words(file, &how->allocator);
    save_file(file, &how->allocator, how->salvage);
    for (size_t i = 0; strict && has_verdict(e, "accepted") && writable_format(i); i++)
        if (!is_upgrade(file, writable_format(i)))
            save_whole(file, writable_format(i));
}

static void check_open(const struct entry *e, tnf_status status, const tnf_error *error,
                       const tnf_file *file)
{
    bool rejected = has_verdict(e, "rejected");
    const char *words = status == TNF_OK ? "" : error->message;
    if (!CHECK((status != TNF_OK) == rejected, "%s, but %s %s", e->verdict, tnf_status_name(status),
               words))
        return;
    if (rejected)
        CHECK(is_foreseen(e, status, error->rule, error->offset),
              "%s at %llu instead of %s at %llu: %s", tnf_status_name(status),
              (unsigned long long)error->offset, e->status, (unsigned long long)e->offset, words);
    else
        CHECK(tnf_file_info(file)->objects == e->tensors, "%zu tensors instead of %llu",
              tnf_file_info(file)->objects, (unsigned long long)e->tensors);
}

static void try_open(const struct entry *e, bool lenient, bool salvage, tnf_access access)
{
    struct memory_log log = { 0 };
    tnf_error error;
    tnf_file *file;
    tnf_open_options how = { .size = sizeof how, .lenient = lenient, .access = access };
    how.salvage = salvage;
    how.allocator = memory_allocator(&log);
    tnf_status status = tnf_open(&file, e->path, &how, &error);
    judge_error(status, &error);
    if (!lenient && !salvage)
        check_open(e, status, &error, file);
    if (status == TNF_OK) {
        use_file(file, e, &how);
        tnf_close(file);
    }
    CHECK(log.peak <= ROOM + PER_BYTE * e->size, "%llu bytes of memory for a file of %llu",
          (unsigned long long)log.peak, (unsigned long long)e->size);
    CHECK(log.blocks == 0 && log.wrong_sizes == 0, "%llu blocks left, %llu freed as others",
          (unsigned long long)log.blocks, (unsigned long long)log.wrong_sizes);
    worst_log.peak = log.peak > worst_log.peak ? log.peak : worst_log.peak;
}

static tnf_status on_point(void *ctx, const tnf_point *p, tnf_error *error)
{
    (void)ctx, (void)error;
    eat_bytes(p->app.p, p->app.n);
    eat_bytes(p->vector, p->vector_n);
    return TNF_OK;
}

static void try_points(const struct entry *e)
{
    struct memory_log log = { 0 };
    tnf_points_report report = TNF_POINTS_REPORT_INIT;
    tnf_error error;
    tnf_points *points;
    tnf_points_options how = { .size = sizeof how, .lock = TNF_POINTS_NO_LOCK };
    how.allocator = memory_allocator(&log);
    if (tnf_points_open(&points, e->path, &how, &error) == TNF_OK) {
        tnf_status status = tnf_points_each(points, on_point, NULL, &error);
        judge_error(status, &error);
        status = tnf_points_verify(&report, points, NULL, NULL, &error);
        judge_error(status, &error);
        tnf_points_close(points);
    }
    tnf_status status = tnf_points_salvage(&report, e->path, &how, on_point, NULL, &error);
    judge_error(status, &error);
    CHECK(log.peak <= ROOM + PER_BYTE * e->size, "points take %llu bytes of memory",
          (unsigned long long)log.peak);
    CHECK(log.blocks == 0, "points leave %llu blocks", (unsigned long long)log.blocks);
}

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void try_entry(struct entry *e)
{
    struct stat st;
    MUST(stat(e->path, &st) == 0);
    e->size = (uint64_t)st.st_size;
    double start = processor_seconds();
    (void)alarm(3000); /* in seconds of the clock, for code that waits */
    try_open(e, false, false, TNF_ACCESS_MMAP);
    try_open(e, true, false, TNF_ACCESS_PREAD);
    try_open(e, false, true, TNF_ACCESS_MMAP);
    if (strstr(e->path, "/vs/"))
        try_points(e);
    (void)alarm(0);
    double took = processor_seconds() - start;
    CHECK(took <= SECONDS, "%.1f seconds", took);
    worst_time = took > worst_time ? took : worst_time;
}

static void too_long(int signal)
{
    (void)signal;
    (void)!write(2, check_state.doing, strlen(check_state.doing));
    (void)!write(2, ": it does not end\n", 18);
    _exit(1);
}

int main(void)
{
    struct entry e;
    size_t n = 0;
    struct bytes list = bytes_of_file(TNF_TESTS_DIR "/hostile/corpus.json");
    MUST(list.p != NULL && list.n > 0);
    list.p[list.n - 1] = 0; /* its last line feed */
    (void)signal(SIGALRM, too_long);
    char *rest = (char *)list.p;
    for (const char *line; (line = strsep(&rest, "\n"));)
        if (entry_parse(&e, line) && n++ % SHARE == 0)
            try_entry(&e);
    free(list.p);
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("%zu files: opened %lu times, saved %lu times (%lu refused), %lu times without loss; "
           "%.2f s and %llu KiB at most, "
           "%ld MiB in all\n",
           n, opened, saved, refused, whole, worst_time, (unsigned long long)worst_log.peak >> 10,
           use.ru_maxrss >> 10);
    CHECK(SANITIZED || use.ru_maxrss <= 96 << 10, "%ld KiB resident", use.ru_maxrss);
    CHECK(n > 2000 && saved > n / SHARE, "only %zu files", n);
    return check_end("hostile files");
}
