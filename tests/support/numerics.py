# SPDX-License-Identifier: Apache-2.0
"""Reading and comparing npz files of outputs: ours against those that came with
an HLO file."""

import re

import numpy as np

# Programs without these sum whole numbers only, if their inputs are such: every
# order of summation then gives the same bits.
INEXACT = re.compile(
    r' (exponential|exponential-minus-one|log|log-plus-one|logistic|divide|sqrt|rsqrt|cbrt|power|'
    r'sine|cosine|tan|tanh|atan2|erf|fft|cholesky|triangular-solve)\(')
TARGET = re.compile(r'custom_call_target="([^"]*)"')
# Targets that only annotate.
PLAIN_TARGETS = {'Sharding', 'SPMDFullToShardShape', 'SPMDShardToFullShape',
                 'xla.sdy.GlobalToLocalShape', 'xla.sdy.LocalToGlobalShape',
                 'xla.sdy.FuncResultSharding', 'xla.sdy.ShardingGroup'}
MANUAL = re.compile(r'SPMDFullToShardShape|xla\.sdy\.GlobalToLocalShape|xla\.sdy\.manual')
NARROW = {'bf16': 16, 'f16': 16}


# Eigenvectors and singular vectors of almost equal values turn with every rounding, and
# LAPACK rounds by the machine that it is on.
VECTORS = re.compile(r'"lapack_[sdcz](syevd|heevd|gesdd|gesvd|geev)_ffi"')


def limit_of(text):
    """How far floats of a program that is not exact may be apart, of the largest value."""
    return 1e-5 if VECTORS.search(text) else 1e-6


def is_exact(text):
    return not INEXACT.search(text) and set(TARGET.findall(text)) <= PLAIN_TARGETS


def has_manual_region(text):
    return bool(MANUAL.search(text))


def read(path, prefix='out'):
    """[(array, type name or '')]: types that numpy lacks are widened to float32."""
    with np.load(path) as archive:
        names = [str(x) for x in archive['dtypes']] if 'dtypes' in archive.files else []
        arrays = []
        while f'{prefix}{len(arrays)}' in archive.files:
            k = len(arrays)
            array, kind = archive[f'{prefix}{k}'], names[k] if k < len(names) else ''
            if kind == 'bf16' and array.dtype == np.uint16:
                array = (array.astype(np.uint32) << 16).view(np.float32)
            arrays.append((array, kind))
        return arrays


def difference(expected, found, exact, limit=1e-6):
    """'' if the outputs agree, else where they do not: bitwise if `exact` (NaN of
    any payload is one value, and a subnormal may be the zero of its sign), else within `limit` of the array's largest value, in
    bf16 within 1e-2."""
    if len(expected) != len(found):
        return f'{len(found)} outputs in place of {len(expected)}'
    for k, ((want, _), (got, kind)) in enumerate(zip(expected, found)):
        if want.shape != got.shape:
            return f'out{k} has shape {got.shape} in place of {want.shape}'
        if want.dtype != got.dtype and kind != 'bf16':
            return f'out{k} has type {got.dtype} in place of {want.dtype}'
        if want.size == 0:
            continue
        if want.dtype.kind not in 'fc':
            wrong = int(np.count_nonzero(want != got))
            if wrong:
                return f'out{k}: {wrong} of {want.size} elements differ'
            continue
        wide = np.complex128 if want.dtype.kind == 'c' else np.float64
        a, b = want.astype(wide), got.astype(wide)
        with np.errstate(invalid='ignore'):
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            off = np.where(same, 0.0, np.abs(a - b))
            if exact and want.dtype.kind == 'f':
                # XLA on CPU takes subnormals for zeros.
                off[(a == 0) & (np.abs(b) < np.finfo(want.dtype).tiny)] = 0
                signs = int(np.count_nonzero((a == 0) & (off == 0) & (np.signbit(a) != np.signbit(b))))
                if signs:
                    return f'out{k}: the sign of {signs} zeros differs'
            magnitudes = np.abs(a[np.isfinite(a)])
        if np.isnan(off).any():
            return f'out{k}: NaN or infinity on one side only'
        largest = float(magnitudes.max()) if magnitudes.size else 0.0
        most = 0.0 if exact else largest * (1e-2 if kind in NARROW else limit)
        if off.max() > most:
            relative = off.max() / largest if largest else float('inf')
            return f'out{k}: off by {relative:.1e} of the largest value'
    return ''
