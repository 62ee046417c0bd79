# SPDX-License-Identifier: Apache-2.0
"""HLO element types as numpy has them, values worth trying, and distances in
units in the last place."""

import re
import zlib

import ml_dtypes
import numpy as np

DTYPES = {
    'pred': np.bool_,
    's1': ml_dtypes.int1, 's2': ml_dtypes.int2, 's4': ml_dtypes.int4, 's8': np.int8,
    's16': np.int16, 's32': np.int32, 's64': np.int64,
    'u1': ml_dtypes.uint1, 'u2': ml_dtypes.uint2, 'u4': ml_dtypes.uint4, 'u8': np.uint8,
    'u16': np.uint16, 'u32': np.uint32, 'u64': np.uint64,
    'f4e2m1fn': ml_dtypes.float4_e2m1fn, 'f6e2m3fn': ml_dtypes.float6_e2m3fn,
    'f6e3m2fn': ml_dtypes.float6_e3m2fn, 'f8e3m4': ml_dtypes.float8_e3m4,
    'f8e4m3': ml_dtypes.float8_e4m3, 'f8e4m3fn': ml_dtypes.float8_e4m3fn,
    'f8e4m3fnuz': ml_dtypes.float8_e4m3fnuz, 'f8e4m3b11fnuz': ml_dtypes.float8_e4m3b11fnuz,
    'f8e5m2': ml_dtypes.float8_e5m2, 'f8e5m2fnuz': ml_dtypes.float8_e5m2fnuz,
    'f8e8m0fnu': ml_dtypes.float8_e8m0fnu,
    'bf16': ml_dtypes.bfloat16, 'f16': np.float16, 'f32': np.float32, 'f64': np.float64,
    'c64': np.complex64, 'c128': np.complex128,
}
DTYPES = {name: np.dtype(t) for name, t in DTYPES.items()}
NAMES = {t: name for name, t in DTYPES.items()}

SIGNED = ('s1', 's2', 's4', 's8', 's16', 's32', 's64')
UNSIGNED = ('u1', 'u2', 'u4', 'u8', 'u16', 'u32', 'u64')
INTEGERS = SIGNED + UNSIGNED
F8 = ('f8e3m4', 'f8e4m3', 'f8e4m3fn', 'f8e4m3fnuz', 'f8e4m3b11fnuz', 'f8e5m2', 'f8e5m2fnuz')
NARROW = ('f4e2m1fn', *F8, 'f8e8m0fnu', 'bf16', 'f16')
FLOATS = NARROW + ('f32', 'f64')
COMPLEX = ('c64', 'c128')
ALL = ('pred',) + INTEGERS + FLOATS + COMPLEX


def bits(name):
    """Bits of one element as HLO counts them."""
    if name == 'pred':
        return 8
    return int(re.match(r'[a-z]+(\d+)', name).group(1))


def is_float(name):
    return name in FLOATS or name in ('f6e2m3fn', 'f6e3m2fn')


def part(name):
    """The float type of a complex type's parts."""
    return {'c64': 'f32', 'c128': 'f64'}[name]


def raw(array):
    """The elements' bits as unsigned integers (complex: one more dimension of two)."""
    array = np.asarray(array)
    if array.ndim:
        array = np.ascontiguousarray(array)
    if array.dtype.kind == 'c':
        return array.view(np.float32 if array.itemsize == 8 else np.float64).reshape(
            *array.shape, 2).view(np.uint32 if array.itemsize == 8 else np.uint64)
    return array.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[array.itemsize])


def from_raw(name, values):
    dtype = DTYPES[name]
    width = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
    return np.asarray(values).astype(width).view(dtype)


def every_value(name):
    """All values of a type of at most 16 bits."""
    if name == 'pred':
        return np.array([False, True])
    if name in INTEGERS:
        b = bits(name)
        low = 0 if name[0] == 'u' else -(1 << b - 1)
        return np.arange(low, low + (1 << b)).astype(DTYPES[name])
    return from_raw(name, np.arange(1 << bits(name)))


def integer_range(name):
    b = bits(name)
    return (0, (1 << b) - 1) if name[0] == 'u' else (-(1 << b - 1), (1 << b - 1) - 1)


_REALS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 2.5, -2.5, 3.0, -3.0, 0.49999997,
          7.0, 10.0, -10.0, 100.0, -100.0, 0.1, -0.3, 1e-3, 3.14159265358979, -1.5707963267949,
          127.5, 128.0, 255.5, 256.0, -128.5, -129.0, 32768.0, 65536.0, 1e9, -1e9,
          2147483648.0, -2147483648.0, 4294967296.0, 9.3e18, -9.3e18, 2e19, 1e-30, 1e30,
          88.0, -88.0, 88.8, -104.0, 709.9, -745.2)


def specials(name):
    """Values at which operations differ from the plain case."""
    if name == 'pred':
        return np.array([False, True])
    if name in INTEGERS:
        low, high = integer_range(name)
        near = (low, low + 1, -3, -2, -1, 0, 1, 2, 3, 4, 7, 8, 15, 31, 32, 63, 64, 100,
                high // 2, high // 2 + 1, high - 1, high)
        return np.array(sorted({v for v in near if low <= v <= high}), dtype=object).astype(
            DTYPES[name])
    if name in COMPLEX:
        p = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-3, 50.0, np.inf, -np.inf, np.nan],
                     DTYPES[part(name)])
        out = np.empty((p.size, p.size), DTYPES[name])
        out.real, out.imag = p[:, None], p[None, :]
        return out.ravel()
    if bits(name) <= 8:
        return every_value(name)
    with np.errstate(all='ignore'):
        values = np.array(_REALS, np.float64).astype(DTYPES[name])
    b, m = bits(name), {'f16': 10, 'bf16': 7, 'f32': 23, 'f64': 52}[name]
    inf = (1 << b - 1) - (1 << m)
    # least and largest subnormal, least normal, largest, infinity; both signs
    edges = [1, (1 << m) - 1, 1 << m, inf - 1, inf]
    edges += [e | 1 << b - 1 for e in edges]
    nans = [inf | 1 << m - 1, inf | 1 << m - 1 | 1 << b - 1]
    out = np.concatenate([values, from_raw(name, edges + nans)])
    _, first = np.unique(raw(out), return_index=True)
    return out[np.sort(first)]


def subnormal(array):
    """Where elements are subnormal; XLA on CPU takes them for zeros."""
    name = NAMES[array.dtype]
    if name not in ('f16', 'bf16', 'f32', 'f64'):
        return np.zeros(array.shape, bool)
    b, m = bits(name), {'f16': 10, 'bf16': 7, 'f32': 23, 'f64': 52}[name]
    magnitude = raw(array).astype(np.uint64) & ((1 << b - 1) - 1)
    return (magnitude != 0) & (magnitude < (1 << m))


def rng(*key):
    """Random numbers that depend on the key only."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def randoms(name, count, *key, scale=None):
    """Plain values of all magnitudes, or around 1 * scale."""
    r = rng(name, count, scale, *key)
    if name == 'pred':
        return r.integers(0, 2, count).astype(bool)
    if name in INTEGERS:
        low, high = integer_range(name)
        if scale:
            low, high = max(low, -int(scale)), min(high, int(scale))
        return r.integers(low, high, count, endpoint=True,
                          dtype=np.uint64 if name == 'u64' else np.int64).astype(DTYPES[name])
    if name in COMPLEX:
        p = part(name)
        out = np.empty(count, DTYPES[name])
        out.real = randoms(p, count, 're', *key, scale=scale)
        out.imag = randoms(p, count, 'im', *key, scale=scale)
        return out
    if bits(name) <= 8:
        return r.choice(every_value(name), count)
    values = r.standard_normal(count) * (scale or 1)
    if not scale:  # magnitudes from 2^-12 to 2^8
        values *= np.exp2(r.uniform(-12, 8, count))
    return values.astype(DTYPES[name])


def crossed(name, count, *key, most=4096):
    """Two equally long arrays: special values with each other, then random ones."""
    s = specials(name)
    if s.size * s.size > most:
        r = rng(name, 'cross', *key)
        a, b = r.choice(s, most), r.choice(s, most)
    else:
        a, b = np.repeat(s, s.size), np.tile(s, s.size)
    x, y = randoms(name, count, 0, *key), randoms(name, count, 1, *key)
    return np.concatenate([a, x]), np.concatenate([b, y])


def _ordered(array):
    """Integers in the order of the floats; neighbours differ by one, -0 and 0 too."""
    name = NAMES[array.dtype]
    b = bits(name)
    r = raw(array)
    if name == 'f8e8m0fnu':
        return r.astype(np.int64)
    sign = r >> r.dtype.type(b - 1) & r.dtype.type(1)
    magnitude = (r & r.dtype.type((1 << b - 1) - 1)).astype(np.int64)
    return np.where(sign != 0, -1 - magnitude, magnitude)


def is_nan(array):
    if array.dtype.kind in 'biu' or NAMES[array.dtype] in INTEGERS:
        return np.zeros(array.shape, bool)
    with np.errstate(all='ignore'):
        return np.isnan(array.astype(np.complex128 if array.dtype.kind == 'c' else np.float64))


def same_bits(a, b, payload=False):
    """Elementwise: equal bit by bit; any two NaN are equal unless `payload`."""
    if a.dtype.kind == 'c':
        if a.ndim == 0:
            return same_bits(a.reshape(1), b.reshape(1), payload).reshape(())
        x, y = (np.ascontiguousarray(v).view(DTYPES[part(NAMES[v.dtype])]) for v in (a, b))
        return same_bits(x, y, payload).reshape(*a.shape, 2).all(-1)
    equal = raw(a) == raw(b)
    return equal if payload else equal | (is_nan(a) & is_nan(b))


def ulps(a, b):
    """Elementwise distance of floats of one type; NaN with NaN is 0, NaN or
    infinity with anything else is huge (the largest value is one from infinity)."""
    x, y = _ordered(a), _ordered(b)
    with np.errstate(over='ignore'):
        distance = np.where((x < 0) == (y < 0), np.abs(x - y).astype(np.float64),
                            np.abs(x.astype(np.float64) - y.astype(np.float64)))
    nan_a, nan_b = is_nan(a), is_nan(b)
    return np.where(nan_a & nan_b, 0, np.where(nan_a != nan_b, np.inf, distance))


def cast(array, name):
    """XLA's result as the type that it was asked for: some it labels as unsigned
    integers of the same bits."""
    if array.dtype == DTYPES[name]:
        return array
    label = NAMES.get(array.dtype)
    if label in UNSIGNED and name != 'pred' and bits(label) == bits(name):
        low = array.astype(np.uint64)
        if name not in INTEGERS or bits(name) >= 8:
            return from_raw(name, low)
        count = 1 << bits(name)
        low = low.astype(np.int64)
        return np.where((name in SIGNED) & (low >= count // 2), low - count, low).astype(
            DTYPES[name])
    return array.astype(DTYPES[name])


def rounded(values, name):
    """Wide values (float64, longdouble, complex) rounded to the type."""
    dtype = DTYPES[name]
    values = np.asarray(values)
    if values.dtype == dtype:
        return values
    with np.errstate(all='ignore'):
        if values.dtype == np.longdouble and is_float(name) and bits(name) < 32:
            values = values.astype(np.float64)
        return values.astype(dtype)
