/* SPDX-License-Identifier: MIT */
/* Converts through storage functions of its own, and may stop early:
 * callbacks IN OUT FORMAT [STOP_AT_PERCENT] */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenfold/build.h>
#include <unistd.h>

/* Several threads may call this at the same time, so it must not use a file position. */
static tnf_status read_at(void *ctx, uint64_t offset, void *dst, size_t n, tnf_error *error)
{
    char *to = dst;
    for (ssize_t got; n > 0; to += got, offset += (uint64_t)got, n -= (size_t)got)
        if ((got = pread(*(int *)ctx, to, n, (off_t)offset)) <= 0)
            return tnf_error_set(error, TNF_EIO, offset, "cannot read %zu bytes", n);
    return TNF_OK;
}

static tnf_status write_bytes(void *ctx, const void *bytes, size_t n, tnf_error *error)
{
    if (fwrite(bytes, 1, n, ctx) == n)
        return TNF_OK;
    return tnf_error_set(error, TNF_EIO, TNF_NO_OFFSET, "cannot write %zu bytes", n);
}

static void discard_output(void *ctx)
{
    if (fflush(ctx) == 0 && ftruncate(fileno(ctx), 0) == 0)
        printf("output discarded\n");
}

static bool go_on(void *ctx, uint64_t done, uint64_t total)
{
    return done * 100 < total * *(uint64_t *)ctx; /* false stops the conversion */
}

static tnf_status convert_stream(int in, FILE *out, const char *format, uint64_t percent,
                                 tnf_error *error)
{
    static const tnf_source_ops from = { TNF_SOURCE_OPS_VERSION, read_at, NULL, NULL, NULL, NULL };
    static const tnf_sink_ops to = { TNF_SINK_OPS_VERSION, write_bytes, NULL, discard_output };
    tnf_save_options options = TNF_SAVE_INIT;
    tnf_source *source = NULL;
    tnf_sink *sink = NULL;
    tnf_file *file = NULL;
    tnf_builder *b = NULL;
    off_t size = lseek(in, 0, SEEK_END);
    tnf_status s;

    if (size < 0)
        return tnf_error_set(error, TNF_EINVAL, TNF_NO_OFFSET, "the input must be a file");
    options.format = format;
    options.progress = go_on;
    options.ctx = &percent;
    if ((s = tnf_source_custom(&source, &from, &in, (uint64_t)size, error)) == TNF_OK &&
        (s = tnf_open_source(&file, source, NULL, error)) == TNF_OK &&
        (s = tnf_builder_new(&b, NULL, error)) == TNF_OK &&
        (s = tnf_builder_add_file(b, file, error)) == TNF_OK &&
        (s = tnf_sink_custom(&sink, &to, out, error)) == TNF_OK)
        s = tnf_save_sink(b, sink, &options, error);
    tnf_sink_close(sink);
    tnf_builder_free(b);
    tnf_close(file); /* closes the source, too */
    return s;
}

int main(int argc, char **argv)
{
    int in = argc < 4 ? -1 : open(argv[1], O_RDONLY);
    FILE *out = in < 0 ? NULL : fopen(argv[2], "wb");
    tnf_error error;
    tnf_status status;

    if (argc < 4)
        return fprintf(stderr, "usage: callbacks IN OUT FORMAT [STOP_AT_PERCENT]\n"), 2;
    if (out == NULL)
        return perror(argv[in < 0 ? 1 : 2]), 1;
    status = convert_stream(in, out, argv[3], argc == 5 ? strtoull(argv[4], NULL, 10) : 101,
                            &error);
    printf("%s\n", status == TNF_OK ? "converted" : error.message);
    close(in);
    return fclose(out) != 0 || (status != TNF_OK && status != TNF_ECANCELLED);
}
