/* SPDX-License-Identifier: MIT */
/* Writes a model whose tensors get their data from other files, by their names.
 *
 *   model  ─ attributes, extras, graph ──────────────────────┐
 *          ─ names, attributes of tensors ─┐                 ├─> model with other weights
 *   files  ─ data of the same names ───────┴─ shape, type ───┘
 *
 * Each tensor of the model or of the files without a match in the other is reported.
 */
#include "job/into.h"

#include "base/error.h"
#include "model/layout.h"
#include <tenfold/bind.h>

#include <stdio.h>
#include <string.h>

struct filling {
    const tnf_convert_options *o;
    tnf_into_step *step;
    tnf_into_tell tell;
    void *ctx;
    size_t refused;
    char first[200];
};

bool tnf_take_none(void *ctx, tnf_str name)
{
    (void)ctx, (void)name;
    return false;
}

/* Is the loss of tensors allowed? The words are those of tnf_save_options.loss. */
static bool may_drop(const tnf_save_options *save)
{
    static const char word[] = "tensor";
    if (!save->allow_loss || !save->loss)
        return save->allow_loss;
    for (const char *p = save->loss; p; p = strchr(p, ',')) {
        p += *p == ',';
        size_t n = strcspn(p, ",");
        if (n == sizeof word - 1 && memcmp(p, word, n) == 0)
            return true;
    }
    return false;
}

static void refuse_tensor(struct filling *f, tnf_str name, const char *why, bool allowed)
{
    const tnf_plan_item item = {
        .fate = TNF_DROPPED, .kind = "tensor", .name = name, .reason = why
    };
    f->tell(f->ctx, &item);
    if (allowed)
        return;
    if (f->refused++ == 0)
        snprintf(f->first, sizeof f->first, "tensor %s: %s", TNF_QUOTED(name), why);
}

/* "f32 [2, 3]" */
static void describe_form(char *out, size_t room, const tnf_object *o)
{
    const char *type = o->nparts == 1 ? o->parts->type->id : tnf_layout_id(o->layout);
    char shape[80];
    tnf_shape_text(shape, sizeof shape, o);
    snprintf(out, room, "%s %s", type, shape);
}

/* A requested cast determines the type of floats. Then only the shape is compared here, and the
 * format checks the type. */
static bool same_form(const tnf_object *a, const tnf_object *b, bool cast)
{
    bool shape = tnf_same_shape(a, b);
    if (!shape || cast)
        return shape;
    return a->layout == b->layout && a->nparts == b->nparts &&
           (a->nparts == 0 || a->parts->type == b->parts->type);
}

static tnf_status keep_own(struct filling *f, const tnf_object *own, tnf_error *e)
{
    const tnf_plan_item item = { .fate = TNF_TRANSFORMED,
                                 .kind = "tensor",
                                 .name = own->name,
                                 .reason = "no input has it, so it keeps the data of the model",
                                 .unasked = true };
    if (!f->o->keep_rest) {
        refuse_tensor(f, own->name, "the model needs this tensor, but no input has it", false);
        return TNF_OK;
    }
    f->tell(f->ctx, &item);
    return tnf_builder_add_object(f->step->made, own, NULL, e);
}

static tnf_status fill_one(struct filling *f, const tnf_object *own, tnf_error *e)
{
    const tnf_object *other = tnf_find_n(f->step->view, own->name.p, own->name.n);
    char one[120], two[120], why[320];
    if (!other)
        return keep_own(f, own, e);
    if (!same_form(own, other, f->o->save->dtype != NULL)) {
        describe_form(one, sizeof one, other);
        describe_form(two, sizeof two, own);
        snprintf(why, sizeof why, "it is %s in the files and %s in the model", one, two);
        refuse_tensor(f, own->name, why, false);
        return TNF_OK;
    }
    tnf_object filled = *other; /* name and attributes are those of the model */
    filled.name = own->name;
    filled.attrs = own->attrs;
    return tnf_builder_add_object(f->step->made, &filled, NULL, e);
}

tnf_status tnf_into_make(tnf_into_step *step, const tnf_builder *selected,
                         const tnf_convert_options *o, tnf_into_tell tell, void *ctx, tnf_error *e)
{
    struct filling f = { .o = o, .step = step, .tell = tell, .ctx = ctx };
    tnf_merge_options rest = TNF_MERGE_INIT;
    const tnf_object *object;
    rest.select = tnf_take_none;
    TNF_TRY(tnf_open_builder(&step->view, selected, NULL, e));
    TNF_TRY(tnf_builder_new(&step->made, NULL, e));
    TNF_TRY(tnf_builder_merge(step->made, &o->into, NULL, 1, &rest, e));
    for (size_t i = 0; (object = tnf_at(o->into, i)) != NULL; i++)
        TNF_TRY(fill_one(&f, object, e));
    for (size_t i = 0; (object = tnf_at(step->view, i)) != NULL; i++)
        if (!tnf_find_n(o->into, object->name.p, object->name.n))
            refuse_tensor(&f, object->name, "the model has no such tensor", may_drop(o->save));
    if (f.refused == 0)
        return TNF_OK;
    return tnf_fail(e, TNF_ELOSSY, TNF_NO_OFFSET, "%zu %s not fit the model: %s", f.refused,
                    f.refused == 1 ? "tensor does" : "tensors do", f.first);
}

void tnf_into_free(tnf_into_step *step)
{
    tnf_builder_free(step->made);
    tnf_close(step->view);
}
