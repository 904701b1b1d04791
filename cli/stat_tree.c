/* SPDX-License-Identifier: MIT */
/* Treemaps, squarified (Bruls, Huizing, van Wijk 2000): rows are laid along the shorter side of
 * what is left, each as long as its boxes get squarer by one more. */
#include "stat.h"

/* The worst ratio of sides in a row of this sum, its smallest and its largest weight. */
static double worst(double sum, double smallest, double largest, double side)
{
    double a = side * side * largest / (sum * sum), b = sum * sum / (side * side * smallest);
    return a > b ? a : b;
}

/* One row of boxes that have `sum` area together, along the shorter side of *left, which shrinks by
 * it. */
static void lay(stat_box *out, const double *weights, size_t n, double scale, double sum,
                stat_box *left)
{
    bool upright = left->w >= left->h;
    double side = upright ? left->h : left->w, depth = sum / side, at = 0;
    for (size_t i = 0; i < n; i++) {
        double length = weights[i] * scale / depth;
        out[i] = upright ? (stat_box) { left->x, left->y + at, depth, length }
                         : (stat_box) { left->x + at, left->y, length, depth };
        at += length;
    }
    if (upright) {
        left->x += depth;
        left->w = left->w > depth ? left->w - depth : 0;
    } else {
        left->y += depth;
        left->h = left->h > depth ? left->h - depth : 0;
    }
}

void stat_treemap(stat_box *out, const double *weights, size_t n, stat_box all)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += weights[i];
    double scale = total > 0 ? all.w * all.h / total : 0;
    for (size_t i = 0, row; i < n; i += row) {
        double side = all.w < all.h ? all.w : all.h, first = weights[i] * scale, sum = first;
        row = 1;
        if (first <= 0 || side <= 0) {
            out[i] = (stat_box) { all.x, all.y, 0, 0 };
            continue;
        }
        double ratio = worst(sum, first, first, side);
        for (; i + row < n && weights[i + row] > 0; row++) {
            double next = weights[i + row] * scale, with = worst(sum + next, next, first, side);
            if (with > ratio)
                break;
            ratio = with;
            sum += next;
        }
        lay(out + i, weights + i, row, scale, sum, &all);
    }
}
