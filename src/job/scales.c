/* SPDX-License-Identifier: MIT */
/* Multiplies tensors by their scales, as fp8 models require.
 *
 *   w            f8_e4m3fn [256, 384] ─┐
 *   w_scale_inv  f32 [2, 3] ───────────┴─> w  f32 [256, 384], which a cast may follow
 *
 * The caller gives the suffix of the names of scales; nothing is guessed.
 */
#include "job/scales.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

struct scaling {
    tnf_scales_step *step;
    const char *suffix;
    tnf_into_tell tell;
    void *ctx;
};

static bool is_floats(const tnf_object *o)
{
    return o && o->layout == tnf_layout_by_id("dense") && o->nparts == 1 &&
           o->parts->type->number == TNF_NUMBER_FLOAT;
}

/* The scales of a tensor, or NULL. */
static const tnf_object *find_scales(const struct scaling *s, const tnf_object *o)
{
    char name[4096];
    size_t n = strlen(s->suffix);
    if (!is_floats(o) || o->name.n > sizeof name - n)
        return NULL;
    memcpy(name, o->name.p, o->name.n);
    memcpy(name + o->name.n, s->suffix, n);
    const tnf_object *found = tnf_find_n(s->step->view, name, o->name.n + n);
    return is_floats(found) ? found : NULL;
}

/* The tensor whose scales these are, or NULL. */
static const tnf_object *find_scaled(const struct scaling *s, const tnf_object *o)
{
    size_t n = strlen(s->suffix);
    if (o->name.n <= n || memcmp(o->name.p + o->name.n - n, s->suffix, n) != 0)
        return NULL;
    const tnf_object *of = tnf_find_n(s->step->view, o->name.p, o->name.n - n);
    return of && find_scales(s, of) ? of : NULL;
}

/* Reports scales as transformed. Saving reports the products. */
static void tell_scales(const struct scaling *s, const tnf_object *scales, const tnf_object *of)
{
    char why[200];
    snprintf(why, sizeof why, "multiplied into %s, as requested", TNF_QUOTED(of->name));
    const tnf_plan_item item = {
        .fate = TNF_TRANSFORMED, .kind = "tensor", .name = scales->name, .reason = why
    };
    s->tell(s->ctx, &item);
}

static tnf_virtual **new_product(tnf_scales_step *step)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_virtual **larger = tnf_grow(&a, step->products, step->nproducts, &step->room,
                                    sizeof *larger, 64);
    if (!larger)
        return NULL;
    step->products = larger;
    step->products[step->nproducts] = NULL;
    return &step->products[step->nproducts++];
}

static tnf_status add_product(const struct scaling *s, const tnf_object *o,
                              const tnf_object *scales, tnf_error *e)
{
    const tnf_object *both[] = { o, scales };
    tnf_virtual_how how = TNF_VIRTUAL_HOW_INIT;
    tnf_virtual **product = new_product(s->step);
    if (!product)
        return tnf_no_memory("scaled tensors", e);
    how.kind = TNF_VIRTUAL_SCALED;
    tnf_status status = tnf_virtual_new(product, both, 2, &how, e);
    if (status != TNF_OK) {
        tnf_error_prefix(e, TNF_QUOTED(o->name));
        return status;
    }
    return tnf_builder_add_object(s->step->made, tnf_virtual_object(*product), NULL, e);
}

static tnf_status take_one(const struct scaling *s, const tnf_object *o, tnf_error *e)
{
    const tnf_object *scales = find_scales(s, o), *of = find_scaled(s, o);
    if (scales)
        return add_product(s, o, scales, e);
    if (!of)
        return tnf_builder_add_object(s->step->made, o, NULL, e);
    tell_scales(s, o, of);
    return TNF_OK;
}

tnf_status tnf_scales_make(tnf_scales_step *step, const tnf_builder *selected, const char *suffix,
                           tnf_into_tell tell, void *ctx, tnf_error *e)
{
    const struct scaling s = { step, suffix, tell, ctx };
    tnf_merge_options rest = TNF_MERGE_INIT;
    const tnf_object *object;
    rest.select = tnf_take_none;
    if (!*suffix)
        return tnf_fail(e, TNF_EINVAL, TNF_NO_OFFSET,
                        "the ending of the names of scales must not be empty");
    TNF_TRY(tnf_open_builder(&step->view, selected, NULL, e));
    TNF_TRY(tnf_builder_new(&step->made, NULL, e));
    const tnf_file *view = step->view;
    TNF_TRY(tnf_builder_merge(step->made, &view, NULL, 1, &rest, e));
    for (size_t i = 0; (object = tnf_at(view, i)) != NULL; i++)
        TNF_TRY(take_one(&s, object, e));
    return step->nproducts ? TNF_OK
                           : tnf_fail(e, TNF_ENOTFOUND, TNF_NO_OFFSET,
                                      "no tensor of floats has scales whose name ends in %s",
                                      TNF_VISIBLE(suffix));
}

void tnf_scales_free(tnf_scales_step *step)
{
    tnf_allocator a = tnf_allocator_or_default(NULL);
    tnf_builder_free(step->made);
    for (size_t i = 0; i < step->nproducts; i++)
        tnf_virtual_free(step->products[i]);
    tnf_free(&a, step->products, step->room * sizeof *step->products);
    tnf_close(step->view);
}
