#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Asks numpy what slices give, for tests/slices.c: python3 tests/slices.py > tests/slices.txt

A line holds the shape, the slice as written, and numpy's answer for an array that counts from 0 in C
order, separated by tabs: the shape and the elements of the result, or "error".
"""
import random

import numpy

HAND = [
    ((4, 5, 6), ["0:4,:,-1", "...", "...,0", "0,...", "1,2,3", "-4,-5,-6", "4", "-5", "0,5", ":,-6,:",
                 "::2,::-1,1:5:3", "1,", "1,...,2", "...,1:3,::-2", "0,0,0,0", "...,...", "::0",
                 "0:0", "3:1", "3:1:-1", "-1:-5:-1", "-1:-99:-1", "99:", ":99", ":-99", "99::-1",
                 "-99::2", " 1 : 3 , 2 ", "+1", "0:+3", ":,:,:,:", "...,0,0,0", "0,0,0,..."]),
    ((), ["...", "0", ":"]),
    ((1,), ["0", "-1", "1", "-2", ":", "::-1", "0:1", "1:", ":0", "...,0", "5:9", "::5", "::-5"]),
    ((0, 3), [":", "0", "...,0", "::-1", ":,1", "-1", "1:", ":,::2"]),
    ((7,), [f"{a}:{b}:{c}" for a in ("", -9, -7, -1, 0, 3, 7, 9) for b in ("", -8, -2, 0, 5, 8)
            for c in ("", -3, -1, 2)]),
]


def bound(rng, size):
    return rng.choice(["", "", str(rng.randint(-size - 2, size + 2))])


def one(rng, size):
    kind = rng.random()
    if kind < 0.3:
        return str(rng.randint(-size - (rng.random() < 0.05), max(size - 1, 0)))
    text = f"{bound(rng, size)}:{bound(rng, size)}"
    if kind < 0.7:
        text += f":{rng.choice(['', 1, 2, 3, -1, -2, -3, 9, -9])}"
    return text


def anything(rng):
    shape = tuple(rng.choice([0, 1, 1, 2, 3, 4, 5]) for _ in range(rng.randint(1, 5)))
    named = rng.randint(1, len(shape))
    if rng.random() < 0.3:  # some before "...", some after
        front = rng.randint(0, named)
        sizes = [*shape[:front], None, *shape[len(shape) - (named - front):]]
    else:
        sizes = shape[:named]
    return shape, ",".join("..." if size is None else one(rng, size) for size in sizes)


def answer(shape, text):
    a = numpy.arange(int(numpy.prod(shape, dtype=int))).reshape(shape)
    try:
        result = numpy.asarray(eval(f"a[{text}]", {"a": a}))  # error texts differ from ours
    except (IndexError, ValueError):
        return "error"
    words = lambda numbers: ",".join(str(n) for n in numbers)
    return f"[{words(result.shape)}] {words(result.ravel())}".rstrip()


def main():
    rng = random.Random(1)
    cases = [(shape, text) for shape, texts in HAND for text in texts]
    cases += [anything(rng) for _ in range(700)]
    for shape, text in cases:
        print(f"[{','.join(str(n) for n in shape)}]", text, answer(shape, text), sep="\t")


if __name__ == "__main__":
    main()
