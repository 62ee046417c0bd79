# SPDX-License-Identifier: Apache-2.0
"""Integer and float arithmetic, bitwise operations, comparison and choice."""

import numpy as np

import hlo_types as T
from suite import Case, bitwise

DENORMALS = 'XLA takes subnormals for zeros'
SIX_BITS = 'XLA looks at the low six bits of the exponent only'
NAN_SIGN = 'NaN becomes a zero whose sign is that of the NaN, which XLA and we choose differently'


def binary(op, name, a, b, agreement, result=None, attributes='', row=None, **more):
    n = a.size
    return Case(row or op, name, f'''
  a = {name}[{n}] parameter(0)
  b = {name}[{n}] parameter(1)
  ROOT r = {result or name}[{n}] {op}(a, b){attributes}''', [a, b], agreement, **more)


def unary(op, name, a, agreement, result=None, attributes='', row=None, **more):
    n = a.size
    return Case(row or op, name, f'''
  a = {name}[{n}] parameter(0)
  ROOT r = {result or name}[{n}] {op}(a){attributes}''', [a], agreement, **more)


def as_integers(name):
    """Python integers, so that nothing overflows."""
    return lambda x: np.asarray(x).astype(np.int64 if name != 'u64' else np.uint64).astype(object)


def wrapped(values, name):
    """Python integers to the type, two's complement."""
    b = T.bits(name)
    low = [(int(v) & ((1 << b) - 1)) for v in values]
    if name[0] == 's':
        low = [v - (1 << b) if v >> (b - 1) else v for v in low]
    return np.array(low, dtype=object).astype(np.int64 if name != 'u64' else np.uint64).astype(
        T.DTYPES[name])


def _divide(x, y):
    if y == 0:
        return -1
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def _remainder(x, y):
    return x if y == 0 else x - y * _divide(x, y)


def _power(x, y, bits):
    if y < 0:
        return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)
    return pow(x, y, 1 << bits)


def integer_reference(op, name):
    b, load = T.bits(name), as_integers(name)
    mask = (1 << b) - 1

    def shift(x, y):
        count = y & mask
        if op == 'shift-left':
            return 0 if count >= b else x << count
        if op == 'shift-right-logical':
            return 0 if count >= b else (x & mask) >> count
        return (x - (1 << b) if name[0] == 'u' and x >> (b - 1) else x) >> min(count, b - 1)
    do = {'add': lambda x, y: x + y, 'subtract': lambda x, y: x - y,
          'multiply': lambda x, y: x * y, 'divide': _divide, 'remainder': _remainder,
          'maximum': max, 'minimum': min, 'power': lambda x, y: _power(x, y, b),
          'and': lambda x, y: x & y, 'or': lambda x, y: x | y, 'xor': lambda x, y: x ^ y,
          'mulhi': lambda x, y: (x * y) >> b}.get(op, shift)
    return lambda a, c: wrapped([do(int(x), int(y)) for x, y in zip(load(a), load(c))], name)


def register(add, full):
    count = 2000 if full else 128
    most = 4096 if full else 1024
    for name in T.INTEGERS:
        a, b = T.crossed(name, count, 'integer', most=most)
        small = T.randoms(name, a.size, 'shift', scale=70)
        for op in ('add', 'subtract', 'multiply', 'divide', 'remainder', 'maximum', 'minimum',
                   'power', 'and', 'or', 'xor', 'mulhi'):
            add(binary(op, name, a, b, bitwise(), reference=integer_reference(op, name),
                       freedom=SIX_BITS if op == 'power' else ''))
        for op in ('shift-left', 'shift-right-logical', 'shift-right-arithmetic'):
            reference = integer_reference(op, name)
            add(binary(op, name, a, b, bitwise(), reference=reference, label='any count'))
            add(binary(op, name, a, small, bitwise(), reference=reference, label='near the width'))
        x = np.concatenate([T.specials(name), T.randoms(name, count)])
        bits_of = as_integers(name)
        mask = (1 << T.bits(name)) - 1
        for op, do in (('negate', lambda v: -v), ('abs', abs), ('not', lambda v: ~v),
                       ('sign', lambda v: (v > 0) - (v < 0)),
                       ('popcnt', lambda v, m=mask: bin(v & m).count('1')),
                       ('count-leading-zeros',
                        lambda v, m=mask: m.bit_length() - (v & m).bit_length())):
            if name[0] == 'u' and op in ('abs', 'sign'):
                continue  # not HLO: both refuse
            add(unary(op, name, x, bitwise(), reference=lambda v, do=do, name=name, load=bits_of:
                      wrapped([do(int(e)) for e in load(v)], name)))
    p, q = np.array([False, False, True, True]), np.array([False, True, False, True])
    for op, do in (('and', np.logical_and), ('or', np.logical_or), ('xor', np.logical_xor),
                   ('add', np.logical_or), ('multiply', np.logical_and),
                   ('maximum', np.logical_or), ('minimum', np.logical_and)):
        add(binary(op, 'pred', p, q, bitwise(), reference=do))
    add(unary('not', 'pred', p, bitwise(), reference=np.logical_not))
    for name in T.FLOATS:
        a, b = T.crossed(name, count, 'float', most=most)
        for op in ('add', 'subtract', 'multiply', 'divide', 'maximum', 'minimum', 'remainder'):
            add(binary(op, name, a, b, bitwise(), reference=float_reference(op, name),
                       freedom=NAN_SIGN if name == 'f4e2m1fn' else DENORMALS))
        x = np.concatenate([T.specials(name), T.randoms(name, count)])
        for op in ('negate', 'abs', 'sign', 'ceil', 'floor', 'round-nearest-afz',
                   'round-nearest-even'):
            add(unary(op, name, x, bitwise(), reference=float_unary(op, name), freedom=DENORMALS))
        nans = T.every_value(name) if T.bits(name) <= 16 else T.from_raw(name, nan_bits(name))
        nans = nans[T.is_nan(nans)]
        if nans.size:
            for op, do in (('negate', lambda v, sign: v ^ sign), ('abs', lambda v, sign: v & ~sign),
                           ('copy', lambda v, sign: v)):
                if name == 'f8e8m0fnu' or name.endswith('fnuz'):
                    do = (lambda v, sign: v)  # one NaN
                add(unary(op, name, nans, bitwise(payload=True), row=op + ' of NaN with payload',
                          reference=lambda v, do=do, name=name: T.from_raw(
                              name, do(T.raw(v), T.raw(v).dtype.type(1 << T.bits(name) - 1)))))
        add(unary('is-finite', name, x, bitwise(), result='pred',
                  reference=lambda v: np.isfinite(v.astype(np.float64))))


def nan_bits(name):
    """NaN with payloads, quiet and not, of both signs."""
    b, m = T.bits(name), {'f32': 23, 'f64': 52}[name]
    inf = ((1 << b - 1 - m) - 1) << m
    payloads = [1 << m - 1, 1 << m - 1 | 5, 5, 1, (1 << m) - 1]
    return np.array([inf | p | s for p in payloads for s in (0, 1 << b - 1)], dtype=object)


def wide(x):
    """Enough room that one rounding to the type is the only one."""
    return x.astype(np.longdouble if x.dtype == np.float64 else np.float64)


def _pick(x, y, greater):
    """max or min: NaN if one is, -0 below 0."""
    nan = np.isnan(x) | np.isnan(y)
    below = (x < y) | ((x == y) & np.signbit(x) & ~np.signbit(y))
    return np.where(nan, np.nan, np.where(below == greater, y, x))


def float_reference(op, name):
    def compute(a, b):
        if op in ('maximum', 'minimum'):
            return _pick(a.astype(np.float64), b.astype(np.float64), op == 'maximum')
        x, y = (a, b) if name == 'f64' else (wide(a), wide(b))
        return {'add': np.add, 'subtract': np.subtract, 'multiply': np.multiply,
                'divide': np.divide, 'remainder': np.fmod}[op](x, y)
    return compute


def float_unary(op, name):
    del name

    def compute(a):
        x = a.astype(np.float64)
        if op == 'round-nearest-afz':
            whole = np.trunc(x)
            away = np.abs(x - whole) >= 0.5
            return np.copysign(whole + np.where(away, np.copysign(1, x), 0), x)
        if op == 'sign':
            return np.where(x == 0, x, np.sign(x))
        return {'negate': np.negative, 'abs': np.abs, 'ceil': np.ceil, 'floor': np.floor,
                'round-nearest-even': np.rint}[op](x)
    return compute
