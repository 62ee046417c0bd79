# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and functions of complex numbers: special values crossed, and plain
ones. An ulp is one of the absolute value."""

import numpy as np

import hlo_types as T
from family_arithmetic import DENORMALS, binary, unary
from suite import bitwise, ulp

CL = np.clongdouble
FREEDOM = DENORMALS + ', and differs at infinities and NaN or overflows early'


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


def register(add, full):
    count = 2000 if full else 128
    for name in T.COMPLEX:
        s = T.specials(name)
        plain = np.concatenate([T.randoms(name, count, 'plain', scale=1),
                                T.randoms(name, count, 'large', scale=8)])
        real = plain.copy()
        real.imag = 0
        plain = np.concatenate([plain, real[:count]])
        for op, f in UNARY.items():
            how = bitwise() if op in EXACT else ulp(4)
            for x, label in ((plain, 'plain'), (s, 'special')):
                add(unary(op, name, x, how, reference=lambda z, f=f: f(wide(z)), freedom=FREEDOM,
                          label=label))
        for x, label in ((plain, 'plain'), (s, 'special')):
            add(unary('abs', name, x, ulp(2), result=T.part(name),
                      reference=lambda z: np.abs(wide(z)), freedom=FREEDOM, label=label))
        a = np.concatenate([np.repeat(s[::2], s[::2].size)])
        b = np.concatenate([np.tile(s[::2], s[::2].size)])
        p, q = plain, T.rng('complex', name).permutation(plain)
        for op, f in (('add', np.add), ('subtract', np.subtract), ('multiply', np.multiply),
                      ('divide', np.divide), ('maximum', larger), ('minimum', smaller),
                      ('power', power), ('atan2', atan2)):
            how = bitwise() if op in PLAIN else ulp(4)
            for x, y, label in ((p, q, 'plain'), (a, b, 'special')):
                if (op, label) == ('atan2', 'special'):
                    continue  # a formula of differences of infinities; nothing defines it
                reference = f if op in PLAIN else (
                    lambda z, w, f=f: f(wide(z), wide(w)))
                add(binary(op, name, x, y, how, reference=reference, freedom=FREEDOM, label=label))
