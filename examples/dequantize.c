/* SPDX-License-Identifier: MIT */
/* Prints a few values of every tensor as f32. Quantized tensors are dequantized, other types are
 * cast.
 *
 *     dequantize model.gguf
 */
#include <stdio.h>
#include <tenfold/virtual.h>

/* Two virtual tensors: the values of the tensor, and these cast to f32. Returns NULL if the tensor
 * is not numeric. */
static const tnf_object *as_floats(tnf_virtual *made[2], const tnf_object *o, tnf_error *error)
{
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    made[0] = made[1] = NULL;
    if (tnf_virtual_new(&made[0], &o, 1, &how, error) != TNF_OK)
        return NULL;
    how.kind = TNF_VIRTUAL_CAST;
    how.type = tnf_type_of(TNF_F32);
    o = tnf_virtual_object(made[0]);
    return tnf_virtual_new(&made[1], &o, 1, &how, error) == TNF_OK ? tnf_virtual_object(made[1])
                                                                   : NULL;
}

int main(int argc, char **argv)
{
    tnf_file *file;
    tnf_error error;
    const tnf_object *o;
    if (argc != 2 || tnf_open(&file, argv[1], NULL, &error) != TNF_OK) {
        fprintf(stderr, "%s\n", argc != 2 ? "usage: dequantize FILE" : error.message);
        return 1;
    }
    for (size_t i = 0; (o = tnf_at(file, i)); i++) {
        tnf_virtual *made[2];
        const tnf_object *floats = as_floats(made, o, &error);
        float first[4];
        size_t n = floats && tnf_elements(floats) < 4 ? (size_t)tnf_elements(floats) : 4;
        printf("%s:", o->name.p);
        if (floats && tnf_read_part(first, n * 4, floats->parts, 0, &error) == TNF_OK)
            for (size_t k = 0; k < n; k++) /* on a little-endian machine */
                printf(" %g", (double)first[k]);
        else
            printf(" %s", error.message);
        printf("\n");
        tnf_virtual_free(made[1]); /* in reverse order: this one reads the other */
        tnf_virtual_free(made[0]);
    }
    tnf_close(file);
    return 0;
}
