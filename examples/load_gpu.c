/* SPDX-License-Identifier: MIT */
/* Loads a model of any format to a GPU. Tensors are used while others are still read:
 *
 *     load_gpu MODEL [DEVICE [TYPE]]      load_gpu model.gguf cuda:0 bf16
 *
 * DEVICE is "cuda:0" and so on, or "host" (the default), which is CPU memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenfold/device.h>

/* The tensors of a file, in order, except those of several parts. */
static size_t list_wants(const tnf_file *file, tnf_device_request *wants, const tnf_type *as)
{
    const tnf_object *t;
    size_t i, n = 0;
    for (i = 0; (t = tnf_at(file, i)) != NULL; i++) {
        if (t->nparts != 1)
            continue;
        wants[n].object = t;
        wants[n++].as = as; /* a GPU has kernels for most conversions */
    }
    return n;
}

/* An engine would build a layer from it. This example copies its first bytes from the device. */
static int use_tensor(tnf_device *device, tnf_load *load, size_t i, tnf_str name, tnf_error *error)
{
    unsigned char first[4] = { 0 };
    uint64_t n = tnf_load_bytes(NULL, load, i);
    if (tnf_load_wait(load, i, error) != TNF_OK ||
        tnf_device_read(first, device, tnf_load_at(load, i), n < 4 ? (size_t)n : 4, error))
        return 1;
    printf("%.*s: %" PRIu64 " bytes, first %02x %02x %02x %02x\n", (int)name.n, name.p, n, first[0],
           first[1], first[2], first[3]);
    return 0;
}

static int load_model(const tnf_file *file, tnf_device *device, const tnf_type *as,
                      tnf_error *error)
{
    tnf_device_request *wants = calloc(tnf_file_info(file)->objects + 1, sizeof *wants);
    tnf_load_report report = TNF_LOAD_REPORT_INIT;
    tnf_load *load = NULL;
    size_t i, n = wants ? list_wants(file, wants, as) : 0;
    int failed = !wants || tnf_device_start(&load, device, wants, n, NULL, error) != TNF_OK;
    for (i = 0; i < n && !failed; i++)
        failed = use_tensor(device, load, i, wants[i].object->name, error);
    if (!failed && tnf_load_wait(load, TNF_LOAD_ALL, error) == TNF_OK &&
        tnf_load_tell(&report, load, error) == TNF_OK)
        printf("%zu tensors, %" PRIu64 " bytes read, %" PRIu64 " bytes on the device\n", n,
               report.bytes_read, report.bytes);
    tnf_load_free(load); /* frees the memory of the tensors, too */
    free(wants);
    return failed;
}

int main(int argc, char **argv)
{
    tnf_error error = { .offset = TNF_NO_OFFSET, .message = "out of memory" };
    const tnf_type *as = argc > 3 ? tnf_type_spelled(argv[3]) : NULL;
    tnf_device *device = NULL;
    tnf_file *file = NULL;
    int failed = 1;
    if (argc < 2 || (argc > 3 && !as)) {
        fprintf(stderr, "usage: load_gpu MODEL [DEVICE [TYPE]]\n");
        return 2;
    }
    if (tnf_device_open(&device, argc > 2 ? argv[2] : "host", NULL, &error) == TNF_OK &&
        tnf_open(&file, argv[1], NULL, &error) == TNF_OK)
        failed = load_model(file, device, as, &error);
    if (failed)
        fprintf(stderr, "%s\n", error.message);
    tnf_close(file);
    tnf_device_close(device);
    return failed;
}
