/* SPDX-License-Identifier: MIT */
/* Saves the state of a training, and resumes it: checkpoint FILE */
#include <inttypes.h>
#include <stdio.h>
#include <tenfold/build.h>
#include <tenfold/value.h>

struct training {
    float weights[2][3], moments[2][3];
    int64_t step;
};
static const uint64_t shape[] = { 2, 3 };

/* The new file replaces the old one when it is complete and on disk, so a crash loses nothing. */
static tnf_status save_training(const struct training *t, const char *path, tnf_error *error)
{
    tnf_member members[] = { tnf_member_of("step", tnf_value_int(t->step)),
                             tnf_member_of("rate", tnf_value_float(0.5)) };
    tnf_value state = tnf_value_map(members, 2);
    const tnf_type *f32 = tnf_type_of(TNF_F32);
    tnf_save_options options = TNF_SAVE_INIT;
    tnf_builder *b = NULL;
    tnf_status status;

    options.replace = true;
    if ((status = tnf_builder_new(&b, NULL, error)) == TNF_OK &&
        (status = tnf_builder_add(b, "w", f32, 2, shape, t->weights, error)) == TNF_OK &&
        (status = tnf_builder_add(b, "w.m", f32, 2, shape, t->moments, error)) == TNF_OK &&
        (status = tnf_builder_set(b, NULL, "state", &state, error)) == TNF_OK)
        status = tnf_save(b, path, &options, error);
    tnf_builder_free(b);
    return status;
}

/* Without a file, the training begins. tnf_read() refuses a missing tensor and another size. */
static tnf_status resume_training(struct training *t, const char *path, tnf_error *error)
{
    tnf_file *file = NULL;
    const tnf_value *state;
    tnf_status status = tnf_open(&file, path, NULL, error);

    if (status != TNF_OK)
        return status == TNF_ENOTFOUND ? TNF_OK : status;
    if ((status = tnf_read(t->weights, sizeof t->weights, tnf_find(file, "w"), error)) == TNF_OK)
        status = tnf_read(t->moments, sizeof t->moments, tnf_find(file, "w.m"), error);
    state = tnf_value_get(tnf_file_info(file)->attrs, "state");
    if (status == TNF_OK && !tnf_value_as_int(&t->step, tnf_value_get(state, "step")))
        status = tnf_error_set(error, TNF_EFORMAT, TNF_NO_OFFSET, "the file has no step");
    tnf_close(file);
    return status;
}

int main(int argc, char **argv)
{
    struct training t = { 0 };
    tnf_error error = { .message = "usage: checkpoint FILE" };
    bool done = argc == 2 && resume_training(&t, argv[1], &error) == TNF_OK;
    int64_t begun = t.step;

    for (; done && t.step < begun + 3; t.step++)
        t.weights[1][2] += 0.5f;
    done = done && save_training(&t, argv[1], &error) == TNF_OK;
    if (done)
        printf("steps %" PRId64 " to %" PRId64 ", w[1,2] = %g\n", begun, t.step,
               (double)t.weights[1][2]);
    else
        fprintf(stderr, "%s\n", error.message);
    return !done;
}
