/* SPDX-License-Identifier: MIT */
/* Small files of parameters, with sizes for which decisions can be computed by hand. */
#ifndef TEST_PARAMS_FILES_H
#define TEST_PARAMS_FILES_H

#include "../support/memory.h"
#include "gptrs_files.h"
#include <tenfold/params.h>

struct param {
    const char *name;
    uint32_t bytes; /* a multiple of 4 */
};

/* An archive of these tensors; every byte of a tensor is the first letter of its name. */
static inline bytes compose_archive(const struct param *list, size_t n)
{
    bytes b = { 0 };
    size_t index = 4, at;
    for (size_t i = 0; i < n; i++)
        index += 29 + strlen(list[i].name) + 8;
    add_text(&b, "GPTRSTEN");
    add_number(&b, 2, 4);
    add_number(&b, index, 4);
    add_number(&b, n, 4);
    at = 16 + index;
    for (size_t i = 0; i < n; at += list[i].bytes, i++) {
        add_number(&b, strlen(list[i].name), 4);
        add_text(&b, list[i].name);
        add_number(&b, 1, 4);
        add_number(&b, list[i].bytes / 4, 8);
        add_number(&b, 0, 4);
        add_number(&b, 0, 1);
        add_number(&b, at, 8);
        add_number(&b, list[i].bytes, 8);
    }
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < list[i].bytes; k++)
            add_bytes(&b, list[i].name, 1);
    return b;
}

/* Together 328 bytes. */
static const struct param sizes[] = { { "a", 40 }, { "b", 40 },  { "c", 40 },
                                      { "d", 80 }, { "f", 120 }, { "tiny", 8 } };

struct fixture {
    bytes b;
    tnf_file *file;
    tnf_params *params;
};

static inline void begin_params(struct fixture *x, tnf_params_options o)
{
    tnf_error e = { 0 };
    o.size = sizeof o;
    x->b = compose_archive(sizes, sizeof sizes / sizeof sizes[0]);
    x->file = must_open(&x->b);
    if (tnf_params_new(&x->params, x->file, &o, &e) != TNF_OK)
        fail_msg("%s", e.message);
}

/* The statistics, as an expression; the call cannot fail. */
static inline tnf_params_stats stats_of(const tnf_params *params)
{
    tnf_params_stats s = TNF_PARAMS_STATS_INIT;
    tnf_error e;
    assert_int_equal(tnf_params_statistics(&s, params, &e), TNF_OK);
    return s;
}

static inline void end_params(struct fixture *x)
{
    tnf_params_free(x->params);
    tnf_close(x->file);
    free(x->b.p);
}

#endif
