/* SPDX-License-Identifier: MIT */
/* Strip treemaps (Bederson, Shneiderman, Wattenberg 2002): boxes keep their order, from left to
 * right and from top to bottom. A strip gets another box as long as that makes its boxes more
 * square. */
#include "stat.h"

/* The mean ratio of the sides of boxes in one strip. */
static double mean_ratio(const double *weights, size_t n, double scale, double width)
{
    double sum = 0, ratios = 0;
    size_t shown = 0;
    for (size_t i = 0; i < n; i++)
        sum += weights[i] * scale;
    double height = sum / width;
    for (size_t i = 0; i < n && height > 0; i++) {
        double w = weights[i] * scale / height;
        if (w <= 0)
            continue;
        ratios += w > height ? w / height : height / w;
        shown++;
    }
    return shown ? ratios / (double)shown : 0;
}

static void lay_strip(stat_box *out, const double *weights, size_t n, double scale, stat_box *left)
{
    double sum = 0, x = left->x;
    for (size_t i = 0; i < n; i++)
        sum += weights[i] * scale;
    double height = sum / left->w;
    for (size_t i = 0; i < n; i++) {
        double w = height > 0 ? weights[i] * scale / height : 0;
        out[i] = (stat_box) { x, left->y, w, height };
        x += w;
    }
    left->y += height;
}

void stat_strips(stat_box *out, const double *weights, size_t n, stat_box all)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += weights[i];
    double scale = total > 0 ? all.w * all.h / total : 0;
    for (size_t i = 0, row; i < n; i += row) {
        double ratio = mean_ratio(weights + i, 1, scale, all.w);
        for (row = 1; i + row < n; row++) {
            double with = mean_ratio(weights + i, row + 1, scale, all.w);
            if (ratio > 0 && with > ratio)
                break;
            ratio = with;
        }
        lay_strip(out + i, weights + i, row, scale, &all);
    }
}
