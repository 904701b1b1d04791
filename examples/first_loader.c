/* SPDX-License-Identifier: MIT */
/* The loader of docs/first-loader.md: first_loader MODEL
 * MODEL is a file of any format, or the directory or index of a model in several files. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <tenfold/bind.h>

#define WIDTH   64
#define THREADS 4

struct model {
    tnf_file *file;          /* open as long as the values are used */
    const float *embeddings; /* words x WIDTH, in the mapped file */
    const float *bias;       /* WIDTH, in the mapped file or in `room` */
    uint64_t words;
    float room[WIDTH];
};

static void print_problem(void *ctx, const tnf_binding *wanted, const tnf_error *why)
{
    (void)ctx;
    (void)wanted;
    fprintf(stderr, "  %s\n", why->message);
}

static tnf_status bind_tensors(struct model *m, tnf_error *error)
{
    static const uint64_t matrix[] = { TNF_ANY, WIDTH }, vector[] = { WIDTH };
    tnf_binding wanted[2] = { TNF_BINDING_INIT, TNF_BINDING_INIT };
    tnf_status status;

    wanted[0].name = "tok_embeddings"; /* any number of words; never copied */
    wanted[0].type = tnf_type_of(TNF_F32);
    wanted[0].rank = 2;
    wanted[0].shape = matrix;
    wanted[1].name = "blocks.0.bias"; /* copied to m->room if it cannot be mapped */
    wanted[1].type = tnf_type_of(TNF_F32);
    wanted[1].rank = 1;
    wanted[1].shape = vector;
    wanted[1].dst = m->room;
    wanted[1].n = sizeof m->room;
    status = tnf_bind(m->file, wanted, 2, print_problem, NULL, error);
    if (status == TNF_OK) {
        m->embeddings = wanted[0].view;
        m->words = wanted[0].object->shape[0];
        m->bias = wanted[1].view;
    }
    return status;
}

static tnf_status read_counts(int32_t counts[3], const tnf_file *file, tnf_error *error)
{
    static const uint64_t three[] = { 3 };
    const tnf_object *t = tnf_find(file, "counts");
    tnf_status status = tnf_expect(t, tnf_type_of(TNF_I32), 1, three, error);

    return status == TNF_OK ? tnf_read(counts, 3 * sizeof *counts, t, error) : status;
}

struct job {
    const struct model *model;
    uint64_t first, best;
    float score;
};

static void *find_best(void *ctx)
{
    struct job *job = ctx;
    const struct model *m = job->model;
    uint64_t word;
    int i;

    job->score = -1e30f;
    for (word = job->first; word < m->words; word += THREADS) {
        float score = 0;
        for (i = 0; i < WIDTH; i++)
            score += m->embeddings[word * WIDTH + (uint64_t)i] * m->bias[i];
        if (score > job->score) {
            job->score = score;
            job->best = word;
        }
    }
    return NULL;
}

static bool run_threads(const struct model *m)
{
    pthread_t threads[THREADS];
    struct job jobs[THREADS], *best = jobs;
    int i, started;

    for (started = 0; started < THREADS; started++) {
        jobs[started].model = m;
        jobs[started].first = (uint64_t)started;
        if (pthread_create(&threads[started], NULL, find_best, &jobs[started]) != 0)
            break;
    }
    for (i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        if (jobs[i].score > best->score)
            best = &jobs[i];
    }
    if (started == THREADS)
        printf("the best word is %" PRIu64 ": %.4f\n", best->best, (double)best->score);
    return started == THREADS;
}

int main(int argc, char **argv)
{
    struct model m = { 0 };
    int32_t counts[3];
    tnf_error error;
    tnf_status status;

    if (argc != 2) {
        fprintf(stderr, "usage: first_loader MODEL\n");
        return 2;
    }
    status = tnf_open(&m.file, argv[1], NULL, &error);
    if (status == TNF_OK)
        status = bind_tensors(&m, &error);
    if (status == TNF_OK)
        status = read_counts(counts, m.file, &error);
    if (status == TNF_OK) {
        printf("%" PRIu64 " words, %zu shards, counts %d %d %d\n", m.words,
               tnf_file_info(m.file)->shards, (int)counts[0], (int)counts[1], (int)counts[2]);
        if (!run_threads(&m))
            status = tnf_error_set(&error, TNF_EIO, TNF_NO_OFFSET, "cannot start a thread");
    }
    if (status != TNF_OK)
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
    tnf_close(m.file); /* last: the views point into it */
    return status != TNF_OK;
}
