# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and functions of complex numbers: special values crossed, and plain and
delicate ones. Functions are held to 2 ulp of each part; multiply, divide, power and
atan2 to 2 ulp of the absolute value."""

import numpy as np

import hlo_types as T
from family_arithmetic import DENORMALS, binary, unary
from complex_exact import refined
from suite import bitwise, parts, ulp

CL = np.clongdouble
FREEDOM = (DENORMALS + ', differs at infinities and NaN, overflows early, or loses the lesser '
           'part to cancellation')


def wide(z):
    return z.astype(CL)


def logistic(z):
    infinite = np.isinf(z.real)  # then the other part does not matter
    limit = np.where(z.real > 0, 1, 0)
    return np.where(infinite, limit, 1 / (1 + np.exp(-np.where(infinite, 0, z))))


def sign(z):
    size = np.abs(z)
    return np.where(size == 0, z, z / np.where(size == 0, 1, size))


def expm1(z):
    """Without the cancellation of exp(z) - 1."""
    x, y = z.real, z.imag
    s = np.sin(y / 2)
    out = np.empty(z.shape, CL)
    out.real = np.expm1(x) * np.cos(y) - 2 * s * s
    out.imag = np.where(y == 0, y, np.exp(x) * np.sin(y))
    return np.where(np.isfinite(x) & np.isfinite(y), out, np.exp(z) - 1)


def log1p(z):
    x, y = z.real, z.imag
    out = np.empty(z.shape, CL)
    small = np.abs(z) < 0.5
    out.real = np.where(small, np.log1p(x * (2 + x) + y * y) / 2, np.log(np.abs(1 + z)))
    out.imag = np.arctan2(y, 1 + x)
    return out


def power(z, w):
    nan = complex(np.nan, np.nan)
    base = np.where(z == 0, 1, z)
    return np.where(w == 0, 1, np.where(z != 0, np.exp(w * np.log(base)),
                                        np.where(w.real > 0, 0, nan)))


def atan2(y, x):
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


UNARY = {'negate': np.negative, 'sign': sign, 'exponential': np.exp,
         'exponential-minus-one': expm1, 'log': np.log, 'log-plus-one': log1p,
         'logistic': logistic, 'sqrt': np.sqrt, 'rsqrt': lambda z: 1 / np.sqrt(z),
         'sine': np.sin, 'cosine': np.cos, 'tan': np.tan, 'tanh': np.tanh,
         'sinh': np.sinh, 'cosh': np.cosh, 'asin': np.arcsin, 'acos': np.arccos,
         'asinh': np.arcsinh, 'acosh': np.arccosh, 'atanh': np.arctanh}
EXACT = ('negate',)
PLAIN = ('add', 'subtract', 'maximum', 'minimum')  # exact


def larger(z, w):
    return np.where(z.real >= w.real, z, w)


def smaller(z, w):
    return np.where(z.real <= w.real, z, w)


def delicate(name, count):
    """Where digits cancel: near the unit circle, near 0, near multiples of pi / 2;
    and of all magnitudes."""
    r = T.rng('delicate', name)
    circle = np.exp(1j * r.uniform(-4, 4, count)) * (1 + r.standard_normal(count) * 1e-6)
    small = (r.standard_normal(count) + 1j * r.standard_normal(count)) * 1e-5
    turns = r.integers(-9, 9, count) * (np.pi / 2) + 1j * r.standard_normal(count) * 1e-3
    return np.concatenate([circle, small, turns]).astype(T.DTYPES[name])


def register(add, full):
    count = 2000 if full else 128
    for name in T.COMPLEX:
        s = T.specials(name)
        plain = np.concatenate([T.randoms(name, count, 'plain', scale=1),
                                T.randoms(name, count, 'large', scale=8)])
        real = plain.copy()
        real.imag = 0
        plain = np.concatenate([plain, real[:count]])
        hard = np.concatenate([delicate(name, count // 2), T.randoms(name, count, 'all')])
        for op, f in UNARY.items():
            how = bitwise() if op in EXACT else parts(2)
            for x, label in ((plain, 'plain'), (s, 'special'), (hard, 'delicate')):
                reference = (lambda z, f=f: f(wide(z)))
                if op not in EXACT:
                    reference = refined(op, reference)
                add(unary(op, name, x, how, reference=reference, freedom=FREEDOM, label=label))
        for x, label in ((plain, 'plain'), (s, 'special')):
            add(unary('abs', name, x, ulp(2), result=T.part(name),
                      reference=lambda z: np.abs(wide(z)), freedom=FREEDOM, label=label))
        a = np.concatenate([np.repeat(s[::2], s[::2].size)])
        b = np.concatenate([np.tile(s[::2], s[::2].size)])
        p = np.concatenate([plain, hard])
        q = T.rng('complex', name).permutation(p)
        for op, f in (('add', np.add), ('subtract', np.subtract), ('multiply', np.multiply),
                      ('divide', np.divide), ('maximum', larger), ('minimum', smaller),
                      ('power', power), ('atan2', atan2)):
            how = bitwise() if op in PLAIN else ulp(2)
            for x, y, label in ((p, q, 'plain'), (a, b, 'special')):
                if (op, label) == ('atan2', 'special'):
                    continue  # a formula of differences of infinities; nothing defines it
                reference = f if op in PLAIN else refined(
                    op, lambda z, w, f=f: f(wide(z), wide(w)))
                add(binary(op, name, x, y, how, reference=reference, freedom=FREEDOM, label=label))
