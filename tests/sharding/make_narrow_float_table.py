# SPDX-License-Identifier: Apache-2.0
"""Prints how ml_dtypes (and numpy for f16) convert between f32 and narrow floats.

Lines are `e TYPE F32BITS CODE` (f32 to narrow) and `d TYPE CODE F32BITS` (narrow
to f32), all numbers hexadecimal. narrow_float_test runs this if python3 has
ml_dtypes; narrow_float_table.txt is the output with `--small` (ml_dtypes 0.6.0).
"""

import sys

import ml_dtypes
import numpy as np

TYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3": ml_dtypes.float8_e4m3,
    "f8e3m4": ml_dtypes.float8_e3m4,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "f6e3m2fn": ml_dtypes.float6_e3m2fn,
    "f6e2m3fn": ml_dtypes.float6_e2m3fn,
    "f4e2m1fn": ml_dtypes.float4_e2m1fn,
}


def main(small):
    np.seterr(all="ignore")
    rng = np.random.default_rng(0)
    for name, dtype in TYPES.items():
        bits = 16 if name.endswith("f16") else ml_dtypes.finfo(dtype).bits
        code_type = np.uint16 if bits == 16 else np.uint8
        codes = np.arange(2**bits, dtype=code_type)
        values = codes.view(dtype).astype(np.float32)
        finite = np.unique(values[np.isfinite(values)])
        middles = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
        tests = np.concatenate([finite, middles])
        tests = np.concatenate([tests, np.nextafter(tests, np.float32(np.inf)), np.nextafter(tests, -np.float32(np.inf))])
        top = finite[-1] * np.float32([1.01, 1.0625, 1.125, 1.25, 1.5, 2])
        random = (rng.standard_normal(2000) * 2.0 ** rng.integers(-40, 40, 2000)).astype(np.float32)
        special = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e38, -1e38, 65504, 65519, 65520])
        if small:
            middle = len(middles) // 2
            tests = np.concatenate([middles[: 3], middles[middle - 2 : middle + 3], middles[-4:]])
            random, codes = random[:8], codes[:: max(1, len(codes) // 12)]
        elif bits == 16:
            tests, codes = tests[::17], codes[::5]
        tests = np.concatenate([special, top, -top, tests, random]).astype(np.float32)
        for x, c in zip(tests.view(np.uint32), tests.astype(dtype).view(code_type)):
            print(f"e {name} {x:08x} {c:x}")
        for c, x in zip(codes, codes.view(dtype).astype(np.float32).view(np.uint32)):
            print(f"d {name} {c:x} {x:08x}")


main("--small" in sys.argv)
