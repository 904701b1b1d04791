#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares tenfold convert --dtype with numpy and ml_dtypes.

    cast_peer.py TENFOLD

Every float16 and bfloat16, and many floats and doubles of all sizes, cast to each type: the bits are
those that the packages give. If a type has no infinity, the packages convert too large numbers to
NaN, and we to the largest value; the test treats these numbers separately. Needs numpy, ml_dtypes
and safetensors.
"""
import pathlib
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

TENFOLD = sys.argv[1]
TO = {
    "f64": (np.float64, np.uint64),
    "f32": (np.float32, np.uint32),
    "f16": (np.float16, np.uint16),
    "bf16": (ml_dtypes.bfloat16, np.uint16),
    "f8_e4m3fn": (ml_dtypes.float8_e4m3fn, np.uint8),
    "f8_e5m2": (ml_dtypes.float8_e5m2, np.uint8),
    "f8_e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, np.uint8),
    "f8_e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, np.uint8),
}
np.seterr(all="ignore")
SATURATES = ("f8_e4m3fn", "f8_e4m3fnuz", "f8_e5m2fnuz")


def sources():
    random = np.random.default_rng(7)
    bits = random.integers(0, 2**32, 200000, dtype=np.uint32)
    spread = (random.standard_normal(200000) * 10.0 ** random.uniform(-12, 12, 200000))
    return {
        "f16": np.arange(65536, dtype=np.uint16).view(np.float16),
        "bf16": np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16),
        "f32": np.concatenate([bits.view(np.float32), spread.astype(np.float32)]),
        "f64": np.concatenate([spread, [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7e308]]),
    }


def compare(name, to, values, got):
    dtype, bits = TO[to]
    with np.errstate(all="ignore"):
        want = values.astype(dtype) if values.dtype != np.float64 or to in ("f64", "f32", "f16") \
            else None
        wide = values.astype(np.float64)
    largest = float(ml_dtypes.finfo(dtype).max)
    nan = np.isnan(wide)
    here = got.astype(np.float64)
    assert np.isnan(here[nan]).all(), f"{name} to {to}: a NaN became a number"
    if to in SATURATES:
        # Larger than the largest number by more than half a step: our result is the largest, with
        # the sign.
        beyond = ~nan & (np.abs(wide) > largest)
        assert (np.abs(here[beyond]) == largest).all(), f"{name} to {to}: not the largest"
        assert (np.sign(here[beyond]) == np.sign(wide[beyond])).all()
        rest = ~nan & ~beyond
    else:
        rest = ~nan
    if want is None:  # ml_dtypes rounds a double twice: first to float
        step = np.abs(here[rest] - wide[rest])
        for way in (-1, 1):  # no other number is nearer
            neighbour = (got[rest].view(bits).astype(np.int64) + way).astype(bits).view(dtype)
            other = np.abs(neighbour.astype(np.float64) - wide[rest])
            fine = np.isfinite(here[rest]) & np.isfinite(other)
            assert (step[fine] <= other[fine]).all(), f"{name} to {to}: a neighbour is nearer"
        return int(rest.sum())
    same = got[rest].view(bits) == want[rest].view(bits)
    assert same.all(), (name, to, wide[rest][~same][:3], got[rest][~same][:3], want[rest][~same][:3])
    return int(rest.sum())


def main():
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        tensors = sources()
        save_file(tensors, folder / "in.safetensors")
        for to, (dtype, _) in TO.items():
            out = folder / f"{to}.safetensors"
            subprocess.run([TENFOLD, "convert", "-q", "--dtype", to, folder / "in.safetensors", out],
                           check=True)
            for name, values in tensors.items():
                raw = subprocess.run([TENFOLD, "cat", "--raw", out, name], check=True,
                                     capture_output=True).stdout
                compared += compare(name, to, values, np.frombuffer(raw, dtype))
    print(f"casts: {compared} values as numpy and ml_dtypes have them")


main()
