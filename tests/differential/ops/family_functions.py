# SPDX-License-Identifier: Apache-2.0
"""Real functions: within 2 ulp (types narrower than f32: 1) of XLA or of the
exact value."""

import numpy as np

import hlo_types as T
from family_arithmetic import DENORMALS, binary, unary
from suite import bitwise, ulp

APPROXIMATE = DENORMALS + ' and approximates'
L = np.longdouble


def erf(x):
    """By the series 2/sqrt(pi) exp(-x^2) sum (2x^2)^n x / (2n+1)!!, whose terms all
    have one sign."""
    x = np.asarray(x, L)
    small = np.where(np.abs(x) < 7, x, 0)
    term, total = small.copy(), small.copy()
    for n in range(1, 260):
        term = term * (2 * small * small) / (2 * n + 1)
        total = total + term
    near = 2 / np.sqrt(4 * np.arctan(L(1))) * np.exp(-small * small) * total
    near = np.where(x == 0, x, near)
    return np.where(np.isnan(x), x, np.where(np.abs(x) < 7, near, np.copysign(L(1), x)))


def logistic(x):
    x = np.asarray(x, L)
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def signed_cube_root(x):
    return np.cbrt(x)


# name: (reference on longdouble, argument scale for more values, or None)
FUNCTIONS = {
    'acos': (np.arccos, 0.5), 'acosh': (np.arccosh, 3), 'asin': (np.arcsin, 0.5),
    'asinh': (np.arcsinh, 3), 'atanh': (np.arctanh, 0.5), 'cbrt': (signed_cube_root, None),
    'cosine': (np.cos, 10), 'cosh': (np.cosh, 10), 'erf': (erf, 1),
    'exponential': (np.exp, 20), 'exponential-minus-one': (np.expm1, 1), 'log': (np.log, 1),
    'log-plus-one': (np.log1p, 0.1), 'logistic': (logistic, 10),
    'rsqrt': (lambda x: 1 / np.sqrt(x), None), 'sine': (np.sin, 10), 'sinh': (np.sinh, 3),
    'sqrt': (np.sqrt, None), 'tan': (np.tan, 10), 'tanh': (np.tanh, 1),
}
EXACT = ('sqrt',)


def limit(op, name):
    if op in EXACT:
        return bitwise()
    return ulp(1 if T.bits(name) < 32 else 2)


def power_reference(a, b):
    x, y = a.astype(L), b.astype(L)
    return np.power(x, y)


def register(add, full):
    count = 4000 if full else 256
    for name in T.FLOATS:
        wide = T.bits(name) >= 32
        for op, (reference, scale) in FUNCTIONS.items():
            x = [T.specials(name), T.randoms(name, count, op)]
            if scale:
                x.append(T.randoms(name, count, op, scale=scale))
            if full and T.bits(name) == 16:
                x = [T.every_value(name)]
            add(unary(op, name, np.concatenate(x), limit(op, name),
                      reference=lambda v, f=reference: f(v.astype(L)),
                      freedom=APPROXIMATE if wide or name == 'bf16' else 'XLA approximates'))
        a, b = T.crossed(name, count, 'power', most=4096 if full else 1024)
        c, d = np.abs(T.randoms(name, count, 'base', scale=3)), T.randoms(name, count, 'exponent',
                                                                         scale=3)
        a, b = np.concatenate([a, c.astype(a.dtype)]), np.concatenate([b, d])
        add(binary('power', name, a, b, limit('power', name), reference=power_reference,
                   freedom=APPROXIMATE))
        add(binary('atan2', name, a, b, limit('atan2', name),
                   reference=lambda v, w: np.arctan2(v.astype(L), w.astype(L)),
                   freedom=APPROXIMATE))
