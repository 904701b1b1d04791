/* SPDX-License-Identifier: MIT */
/* Sources over http against a small server in this program: many threads on one source, failures in
 * between, merged and counted requests, and that a caller can stop it. */
#include "../support/unit.h"
#include "io/source.h"
#include "remote/list.h"
#include "remote/session.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <tenfold/remote.h>
#include <unistd.h>

enum { SIZE = 3000000, THREADS = 16, READS = 40 };

static uint8_t data[SIZE];
static int listener;
static char url[64];
static atomic_uint requests, fail_every;

/* Reads up to the blank line; false at the end. */
static bool read_request(int fd, char *text, size_t room)
{
    size_t n = 0;
    while (n + 1 < room) {
        ssize_t got = recv(fd, text + n, 1, 0);
        if (got <= 0)
            return false;
        text[++n] = 0;
        if (n >= 4 && memcmp(text + n - 4, "\r\n\r\n", 4) == 0)
            return true;
    }
    return false;
}

static bool send_all(int fd, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    while (n > 0) {
        ssize_t put = send(fd, p, n, MSG_NOSIGNAL);
        if (put <= 0)
            return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

static void *serve_client(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char text[8192], head[256];
    while (read_request(fd, text, sizeof text)) {
        unsigned i = atomic_fetch_add(&requests, 1) + 1, every = atomic_load(&fail_every);
        unsigned long first = 0, last = 0;
        const char *range = strstr(text, "Range: bytes=");
        if (!range || sscanf(range, "Range: bytes=%lu-%lu", &first, &last) != 2 || first >= SIZE)
            break;
        last = last < SIZE ? last : SIZE - 1;
        int n = snprintf(head, sizeof head,
                         "HTTP/1.1 206 Partial\r\nContent-Length: %lu\r\nETag: \"e\"\r\n"
                         "Content-Range: bytes %lu-%lu/%d\r\n\r\n",
                         last - first + 1, first, last, SIZE);
        /* A range that was halved so often that it is small is sent completely. Otherwise
         * alternating requests could fail one thread so often that it rightly gives up. */
        bool fails = every && i % every == 0 && last - first >= 4096;
        size_t part = fails ? (last - first) / 2 : last - first + 1;
        if (!send_all(fd, head, (size_t)n) || !send_all(fd, data + first, part) || fails)
            break;
    }
    close(fd);
    return NULL;
}

static void *accept_all(void *arg)
{
    (void)arg;
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;) {
        pthread_t id;
        if (pthread_create(&id, NULL, serve_client, (void *)(intptr_t)fd) != 0)
            close(fd);
        else
            pthread_detach(id);
    }
    return NULL;
}

static int set_up(void **state)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t n = sizeof at;
    pthread_t id;
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &n) != 0)
        return -1;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/x", ntohs(at.sin_port));
    if (pthread_create(&id, NULL, accept_all, NULL) != 0)
        return -1;
    pthread_detach(id);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    return 0;
}

static tnf_source *open_it(const tnf_url_options *how)
{
    tnf_error e;
    tnf_source *s;
    tnf_status status = tnf_source_url(&s, url, how, &e);
    if (status == TNF_EUNSUPPORTED)
        skip(); /* a build without libcurl */
    assert_ok(status);
    assert_int_equal(s->size, SIZE);
    return s;
}

struct reader {
    const tnf_source *source;
    unsigned seed;
    bool ok;
};

static void *read_much(void *arg)
{
    struct reader *r = arg;
    uint8_t *room = malloc(SIZE);
    r->ok = room != NULL;
    for (int i = 0; i < READS && r->ok; i++) {
        r->seed = r->seed * 1103515245u + 12345u;
        size_t at = (r->seed >> 4) % SIZE;
        r->seed = r->seed * 1103515245u + 12345u;
        size_t most = i % 8 == 0 ? SIZE : 30000, n = (r->seed >> 4) % most;
        n = n < SIZE - at ? n : SIZE - at;
        for (size_t k = 0; i % 4 == 0 && k < 5; k++) /* some of these are read by others */
            tnf_source_advise(r->source, (at + k * 300007) % SIZE, 1000, TNF_WILL_NEED);
        r->ok = tnf_source_read(r->source, at, room, n, NULL) == TNF_OK &&
                memcmp(room, data + at, n) == 0;
    }
    free(room);
    return NULL;
}

static void read_at_once(tnf_source *s)
{
    pthread_t ids[THREADS];
    struct reader readers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        readers[i] = (struct reader) { s, i * 7919u + 1, false };
        assert_int_equal(pthread_create(&ids[i], NULL, read_much, &readers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        assert_true(readers[i].ok);
    }
}

static void test_threads(void **state)
{
    tnf_url_options how = TNF_URL_INIT;
    (void)state;
    how.cache_bytes = 400000; /* so that extents are dropped and read again */
    tnf_source *s = open_it(&how);
    read_at_once(s);
    tnf_source_close(s);
}

static void test_failing(void **state)
{
    tnf_url_options how = TNF_URL_INIT;
    (void)state;
    how.delay_ms = 1;
    for (unsigned every = 2; every < 6; every++) {
        tnf_source *s = open_it(&how);
        atomic_store(&fail_every, every);
        read_at_once(s);
        atomic_store(&fail_every, 0);
        tnf_source_close(s);
    }
}

/* Ranges near each other are one request; a distant one is another; those in the cache need
 * none. */
static void test_many(void **state)
{
    tnf_error e;
    uint8_t room[4][1000];
    tnf_source *s = open_it(NULL);
    const tnf_range ranges[] = { { 100, 1000, room[0] },
                                 { 200000, 1000, room[1] },
                                 { 260000, 1000, room[2] },
                                 { 2500000, 1000, room[3] } };
    (void)state;
    unsigned before = atomic_load(&requests);
    assert_ok(tnf_source_read_many(s, ranges, 4, &e));
    for (int i = 0; i < 4; i++)
        assert_memory_equal(room[i], data + ranges[i].offset, 1000);
    assert_int_equal(atomic_load(&requests) - before, 2);
    before = atomic_load(&requests);
    assert_ok(tnf_source_read(s, 300000, room[0], 1000, &e));
    assert_ok(tnf_source_read(s, 320000, room[0], 1000, &e));
    assert_int_equal(atomic_load(&requests) - before, 1);
    assert_null(tnf_source_map(s, 0, 10));
    assert_fails(tnf_source_read(s, SIZE - 10, room[0], 11, &e), TNF_ETRUNCATED);
    tnf_source_close(s);
}

/* Announced ranges are read together with the first of them, and nothing around them. */
static void test_announced(void **state)
{
    tnf_error e;
    uint8_t room[1000];
    tnf_traffic before, after;
    tnf_source *s = open_it(NULL);
    (void)state;
    for (size_t at = 100000; at < SIZE - 1000; at += 200000)
        tnf_source_advise(s, at, sizeof room, TNF_WILL_NEED);
    tnf_source_advise(s, 100500, sizeof room, TNF_WILL_NEED); /* overlaps */
    tnf_source_advise(s, 10, 100, TNF_WILL_NEED);             /* in the cache already */
    tnf_source_advise(s, 0, SIZE, TNF_WILL_NEED);             /* not small */
    assert_true(tnf_remote_traffic(&before, s));
    assert_ok(tnf_source_read(s, 20, room, 10, &e));
    assert_true(tnf_remote_traffic(&after, s));
    assert_int_equal(after.requests, before.requests);
    for (size_t at = 100000; at < SIZE - 1000; at += 200000) {
        assert_ok(tnf_source_read(s, at, room, sizeof room, &e));
        assert_memory_equal(room, data + at, sizeof room);
    }
    assert_ok(tnf_source_read(s, 101400, room, 100, &e));
    assert_true(tnf_remote_traffic(&after, s));
    assert_int_equal(after.requests - before.requests, 15);
    assert_int_equal(after.bytes - before.bytes, 15 * 1000 + 500);
    tnf_source_close(s);
}

/* Reading onward makes requests larger. */
static void test_ahead(void **state)
{
    tnf_error e;
    uint8_t room[10000];
    tnf_source *s = open_it(NULL);
    (void)state;
    unsigned before = atomic_load(&requests);
    for (size_t at = 0; at + sizeof room <= SIZE; at += sizeof room) {
        assert_ok(tnf_source_read(s, at, room, sizeof room, &e));
        assert_memory_equal(room, data + at, sizeof room);
    }
    assert_true(atomic_load(&requests) - before <= 8); /* 64 K, 256 K, 1 M and the rest in pieces */
    tnf_source_close(s);
}

static bool count_down(void *ctx, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    return --*(int *)ctx > 0;
}

static void test_stop(void **state)
{
    tnf_error e;
    tnf_url_options how = TNF_URL_INIT;
    int left = 1000000;
    uint8_t *room = malloc(SIZE);
    (void)state;
    assert_non_null(room);
    how.progress = count_down;
    how.ctx = &left;
    how.connections = 1;
    tnf_source *s = open_it(&how);
    left = 2;
    assert_fails(tnf_source_read(s, 0, room, SIZE, &e), TNF_ECANCELLED);
    left = 1000000;
    assert_ok(tnf_source_read(s, 0, room, SIZE, &e));
    assert_memory_equal(room, data, SIZE);
    tnf_source_close(s);
    free(room);
}

static void test_settings(void **state)
{
    tnf_error e;
    tnf_source *s;
    tnf_url_options how = TNF_URL_INIT;
    const char *line = "X: y\r\nZ: injected";
    (void)state;
    how.connections = 65;
    assert_fails(tnf_source_url(&s, url, &how, &e), TNF_EINVAL);
    how.connections = 1;
    how.headers = &line;
    how.nheaders = 1;
    assert_fails(tnf_source_url(&s, url, &how, &e), TNF_EINVAL);
    how.size = 0;
    assert_fails(tnf_source_url(&s, url, &how, &e), TNF_EINVAL);
    assert_true(tnf_is_url("s3://a/b") && !tnf_is_url("a/b") && !tnf_is_url(NULL));
    tnf_option options[] = { { "stream", "yes" }, { "other", "1" }, { "connections", "4" } };
    size_t n = 3;
    assert_ok(tnf_remote_how(&how, NULL, options, &n, &e));
    assert_true(n == 1 && how.stream && how.connections == 4 && !strcmp(options[0].key, "other"));
    options[0] = (tnf_option) { "private", "perhaps" };
    assert_fails(tnf_remote_how(&how, NULL, options, &n, &e), TNF_EINVAL);
}

static void test_folder(void **state)
{
    tnf_error e;
    tnf_source *s;
    (void)state;
    tnf_status status = tnf_source_url(&s, "http://127.0.0.1/folder/", NULL, &e);
    if (status == TNF_EUNSUPPORTED)
        skip(); /* a build without libcurl */
    assert_int_equal(status, TNF_EINVAL);
}

/* A redirect from a public host, by any name, cannot reach this machine. */
static void test_guarded(void **state)
{
    tnf_error e;
    tnf_session *s;
    unsigned before = atomic_load(&requests);
    (void)state;
    if (tnf_session_new(&s, NULL, NULL, &e) == TNF_EUNSUPPORTED)
        skip();
    tnf_exchange x = { .method = "GET", .guarded = true };
    assert_ok(tnf_url_parse(&x.url, url, &e));
    memcpy(x.url.host, "localhost", sizeof "localhost");
    assert_ok(tnf_exchange_run(s, &x, &e));
    assert_true(x.refused_address && x.code != TNF_CURLE_OK && !tnf_exchange_transient(&x));
    assert_fails(tnf_exchange_fail(&x, &e), TNF_ENET);
    assert_says("to a private address");
    assert_int_equal(atomic_load(&requests), before);
    tnf_session_drop(s);
}

/* The caller's functions need no lock of their own: at most one of them runs at any time. */
static atomic_uint inside, overlaps, calls;

static void enter_callback(void)
{
    if (atomic_fetch_add(&inside, 1) != 0)
        atomic_fetch_add(&overlaps, 1);
    sched_yield();
    atomic_fetch_add(&calls, 1);
    atomic_fetch_sub(&inside, 1);
}

static void on_line(void *ctx, uint64_t offset, const char *line)
{
    assert_true(ctx == &inside && offset == TNF_NO_OFFSET && !strcmp(line, "a line"));
    enter_callback();
}

static void on_warning(void *ctx, const tnf_warning *warning)
{
    assert_true(ctx == &inside && !strcmp(warning->message, "a warning"));
    enter_callback();
}

static void *talk_much(void *arg)
{
    tnf_session *s = arg;
    for (int i = 0; i < 500; i++) {
        tnf_session_trace(s, "a %s", "line");
        tnf_session_warn(s, "a warning");
    }
    return NULL;
}

static void test_callbacks(void **state)
{
    tnf_error e;
    tnf_session *s;
    tnf_url_options how = TNF_URL_INIT;
    pthread_t ids[8];
    (void)state;
    how.trace = on_line;
    how.warn = on_warning;
    how.ctx = &inside;
    if (tnf_session_new(&s, &how, NULL, &e) == TNF_EUNSUPPORTED)
        skip();
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, talk_much, s), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(ids[i], NULL);
    assert_int_equal(atomic_load(&overlaps), 0);
    assert_int_equal(atomic_load(&calls), 8 * 2 * 500);
    tnf_session_drop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),  cmocka_unit_test(test_folder),
        cmocka_unit_test(test_threads),   cmocka_unit_test(test_failing),
        cmocka_unit_test(test_many),      cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_stop),      cmocka_unit_test(test_guarded),
        cmocka_unit_test(test_announced), cmocka_unit_test(test_callbacks),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
