/* SPDX-License-Identifier: MIT */
/* Every fixture, truncated at every byte (one of five under a sanitizer), strict and lenient: the
 * result is an error that says what is wrong, or, if the format allows it, a file that only has
 * bytes of the rest. */
#include "support/change.h"

static unsigned long opened, refused;

static void try_cut(struct change *c, bool lenient, bool *opens)
{
    tnf_error error;
    tnf_file *file;
    tnf_open_options o = { .size = sizeof o, .lenient = lenient };
    tnf_status status = change_open(c, &file, &o, &error);
    *opens = status == TNF_OK;
    opened += *opens;
    refused += !*opens;
    if (!*opens) {
        CHECK(error.offset == TNF_NO_OFFSET || *c->file || error.offset <= c->n,
              "the error is at byte %llu of %zu: %s", (unsigned long long)error.offset, c->n,
              error.message);
        return;
    }
    eat_listing(file);
    check_parts(file, change_bytes(c), c->n);
    CHECK(verify_all(file, &error) == TNF_OK, "verify stops: %s", error.message);
    tnf_close(file);
}

static void cut_everywhere(const struct fixture *f)
{
    struct change c;
    change_begin(&c, f);
    for (size_t n = 0; n < f->file.n; n++) {
        bool strict, lenient;
        if (f->file.n > 4096 && n > 2048 && n + 64 < f->file.n && n % 211 != 0)
            continue; /* in long files: every byte of the header, and some of the rest */
        if ((n + f->file.n) % check_share(10) != 0)
            continue;
        check_doing("%s cut at %zu", f->label, n);
        change_set(&c, f->file.p, n);
        try_cut(&c, false, &strict);
        try_cut(&c, true, &lenient);
        CHECK(lenient || !strict, "opens strictly, but not leniently");
    }
    change_end(&c);
}

int main(void)
{
    fixtures_valid();
    for (size_t i = 0; i < fixtures.n; i++)
        cut_everywhere(&fixtures.list[i]);
    printf("%zu files: %lu opened, %lu refused\n", fixtures.n, opened, refused);
    return check_end("truncate");
}
