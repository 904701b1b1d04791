#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes valid/real_*.safetensors with the safetensors package itself (0.8.0; numpy, ml_dtypes).

The files are committed, because the package is not installed everywhere. If a new release writes
other bytes, run this script, then make.py.
"""
import pathlib

import ml_dtypes
import numpy as np
from safetensors import TensorSpec, serialize
from safetensors.numpy import save

HERE = pathlib.Path(__file__).parent / "valid"

# The names that the package uses, and how to make such numbers.
TYPES = {
    "bool": np.bool_, "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16,
    "int32": np.int32, "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64,
    "float16": np.float16, "float32": np.float32, "float64": np.float64,
    "bfloat16": ml_dtypes.bfloat16, "complex64": np.complex64,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2": ml_dtypes.float8_e5m2, "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
}


def every_type():
    arrays = {f"t.{name}": np.arange(6).reshape(2, 3).astype(t) for name, t in TYPES.items()}
    packed = np.arange(4, dtype=np.uint8).reshape(2, 2)  # eight numbers of four bits
    spec = {k: TensorSpec(dtype=k[2:], shape=v.shape, data_ptr=v.ctypes.data, data_len=v.nbytes)
            for k, v in arrays.items()}
    spec["t.float4"] = TensorSpec(dtype="float4_e2m1fn_x2", shape=packed.shape,
                                  data_ptr=packed.ctypes.data, data_len=packed.nbytes)
    return bytes(serialize(spec, metadata={"format": "np"}))


FILES = {
    "real_types": every_type(),
    "real_empty": save({}),
    "real_empty_metadata": save({"w": np.ones(1, np.float32)}, metadata={}),
    "real_only_metadata": save({}, metadata={"a": "b"}),
    "real_metadata": save({"w": np.ones((2, 2), np.float32)},
                          metadata={"quote \" and \\ and / and \x1f and é": "line\none\ttab\x00"}),
    "real_shapes": save({"scalar": np.array(1.5, np.float32), "none": np.zeros((0, 3), np.float64),
                         "none.last": np.zeros((4, 0), np.int8), "deep": np.ones((1,) * 32, np.int16)}),
    "real_names": save({n: np.array([i], np.uint8) for i, n in enumerate(
        ["", "b", "a", "é", "e\u0301", "日本語", "\U0001f600", "a\"b\\c", "tab\there", "\x1b[31m", "a/b",
         "x" * 300])}),
}

if __name__ == "__main__":
    for name, data in FILES.items():
        (HERE / f"{name}.safetensors").write_bytes(data)
