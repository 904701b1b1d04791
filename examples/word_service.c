/* SPDX-License-Identifier: MIT */
/* Finds the neighbours of words with eight threads: word_service FILE WORD... */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tenfold/emb.h>

#define THREADS 8

struct worker {
    const tnf_emb *emb; /* shared: all threads may query it at the same time */
    char **words;
    int first, n; /* words of this thread: every eighth from `first` on, below `n` */
    pthread_t thread;
};

static void *answer_queries(void *ctx)
{
    struct worker *worker = ctx;
    tnf_emb_query query = TNF_EMB_QUERY_INIT;
    tnf_error error; /* one per thread */
    tnf_emb_hit hit;
    size_t n;
    int i;

    query.k = 1;
    query.threads = 1; /* the service has threads of its own */
    for (i = worker->first; i < worker->n; i += THREADS) {
        tnf_str word = { worker->words[i], strlen(worker->words[i]) };

        if (tnf_emb_similar(&hit, &n, NULL, worker->emb, &word, 1, &query, &error) != TNF_OK)
            printf("%s: %s\n", word.p, error.message);
        else if (n == 0)
            printf("%s: unknown\n", word.p);
        else
            printf("%s: %.*s %.2f\n", word.p, (int)hit.word.n, hit.word.p, hit.score);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker workers[THREADS];
    tnf_error error = { .message = "usage: word_service FILE WORD..." };
    tnf_emb *emb = NULL;
    int i, n = 0;
    bool done = argc > 2 && tnf_emb_open_path(&emb, argv[1], NULL, NULL, &error) == TNF_OK;

    for (; done && n < THREADS; n++) {
        workers[n].emb = emb;
        workers[n].words = argv + 2;
        workers[n].first = n;
        workers[n].n = argc - 2;
        if (pthread_create(&workers[n].thread, NULL, answer_queries, &workers[n]) != 0)
            break;
    }
    for (i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
    if (done && n < THREADS) {
        tnf_error_set(&error, TNF_EIO, TNF_NO_OFFSET, "cannot start thread %d", n);
        done = false;
    }
    if (!done)
        fprintf(stderr, "%s\n", error.message);
    tnf_emb_close(emb);
    return !done;
}
