# SPDX-License-Identifier: Apache-2.0
"""convert between every two types, bitcast-convert between widths,
reduce-precision, stochastic-convert, and the parts of complex numbers."""

import ml_dtypes
import numpy as np

import hlo_types as T
from family_arithmetic import DENORMALS, binary, unary, wrapped
from suite import Case, bitwise

NAN_SIGN = 'NaN becomes a zero whose sign is chosen differently'
SCALE = 'XLA scales in the narrow type, where the factor overflows'
LARGEST = "XLA takes f4's largest value for infinity"


def convert_reference(source, target):
    """Floats to integers truncate and saturate, NaN to 0; integers wrap."""
    def compute(x):
        if target == 'pred':
            if source in T.INTEGERS or source == 'pred':
                return x.astype(np.int64 if source != 'u64' else np.uint64) != 0
            return (x.astype(np.float64) if T.is_float(source) else x) != 0
        if target in T.INTEGERS:
            if T.is_float(source):
                low, high = T.integer_range(target)
                values = []
                for v in x.astype(np.float64).tolist():
                    if v != v:
                        values.append(0)
                    elif v in (float('inf'), float('-inf')):
                        values.append(high if v > 0 else low)
                    else:
                        values.append(min(max(int(v), low), high))
                return np.array(values, dtype=object).astype(
                    np.uint64 if target == 'u64' else np.int64).astype(T.DTYPES[target])
            return wrapped([int(v) for v in x.astype(np.uint64 if source == 'u64' else np.int64)],
                           target)
        if source in T.INTEGERS:
            x = x.astype(np.uint64 if source == 'u64' else np.int64)
        if target in T.COMPLEX:
            return x if source in T.COMPLEX else x.astype(np.float64)
        return x.astype(np.longdouble) if source in ('s64', 'u64') else x.astype(np.float64)
    return compute


def register_convert(add, full):
    count = 1500 if full else 32
    for source in T.ALL:
        x = np.concatenate([T.specials(source), T.randoms(source, count, 'convert')])
        if not full and T.is_float(source) and T.bits(source) == 8:
            x = T.every_value(source)
        if T.is_float(source) and T.bits(source) > 8:
            # Values about the integers' limits, and halfway between narrow floats.
            limits = [s * (2.0**k + d) for k in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64)
                      for s in (1, -1) for d in (-1, -0.5, 0, 0.5, 1)]
            halves = T.randoms('f32', 64, 'halves').astype(ml_dtypes.float8_e4m3fn).astype(
                np.float64) * (1 + 2.0**-4)
            with np.errstate(all='ignore'):
                x = np.concatenate([x, np.array(limits + halves.tolist()).astype(x.dtype)])
        for target in T.ALL:
            if source in T.COMPLEX and target not in T.COMPLEX:
                continue  # not HLO: both refuse
            if not full and (T.ALL.index(source) + 2 * T.ALL.index(target)) % 3:
                continue
            row = 'convert, from'
            if {'s1', 'u1'} & {source, target}:
                row = 'convert to or from s1 u1, from'
            add(unary('convert', source, x, bitwise(), result=target, row=row,
                      label='to ' + target, reference=convert_reference(source, target),
                      freedom=NAN_SIGN if target == 'f4e2m1fn' else
                      LARGEST if source == 'f4e2m1fn' else DENORMALS))


def register_bitcast(add, full):
    for source in T.ALL:
        b = T.bits(source) if source not in T.COMPLEX else {'c64': 64, 'c128': 128}[source]
        for target in T.ALL:
            to = T.bits(target) if target not in T.COMPLEX else {'c64': 64, 'c128': 128}[target]
            if 'pred' in (source, target) and b != to:
                continue
            if not full and (T.ALL.index(source) + 3 * T.ALL.index(target)) % 4:
                continue
            if (source in T.COMPLEX) != (target in T.COMPLEX) or max(b, to) % min(b, to):
                continue
            x = np.concatenate([T.specials(source), T.randoms(source, 64)])
            x = x[:x.size // 64 * 64]
            if b == to:
                dims, shape = [x.size], [x.size]
            elif b > to:
                dims, shape = [x.size], [x.size, b // to]
            else:
                dims, shape = [x.size // (to // b), to // b], [x.size // (to // b)]
            x = x.reshape(dims)
            d, s = ','.join(map(str, dims)), ','.join(map(str, shape))
            row = 'bitcast-convert, from'
            if {'s1', 'u1'} & {source, target}:
                row = 'bitcast-convert to or from s1 u1, from'
            add(Case(row, source, f'''
  a = {source}[{d}] parameter(0)
  ROOT r = {target}[{s}] bitcast-convert(a)''', [x], bitwise(payload=True),
                     label='to ' + target, reference=lambda v, b=b, to=to, target=target, shape=shape:
                     reinterpreted(v, b, to, target, shape)))


def reinterpreted(x, b, to, target, shape):
    """Bits of the elements, lowest first, cut anew."""
    name = T.NAMES[x.dtype]
    if name in T.COMPLEX:
        return x.view(T.DTYPES[target]).reshape(shape)
    if name in T.INTEGERS:
        values = [int(v) & ((1 << b) - 1) for v in
                  x.ravel().astype(np.uint64 if name == 'u64' else np.int64)]
    else:
        values = [int(v) & ((1 << b) - 1) for v in T.raw(x).ravel()]
    whole = 0
    for k, v in enumerate(values):
        whole |= v << (k * b)
    count = len(values) * b // to
    parts = [whole >> (k * to) & ((1 << to) - 1) for k in range(count)]
    if target in T.INTEGERS:
        return wrapped(parts, target).reshape(shape)
    if target == 'pred':
        return np.array(parts).astype(bool).reshape(shape)
    return T.from_raw(target, np.array(parts, dtype=object).astype(np.uint64)).reshape(shape)


def reduced(exponent, mantissa):
    """A float type of so many bits, IEEE style: subnormals become zeros."""
    def compute(x):
        name = T.NAMES[x.dtype]
        m = {'f8e5m2': 2, 'f8e4m3': 3, 'f8e3m4': 4, 'f16': 10, 'bf16': 7, 'f32': 23,
             'f64': 52}[name]
        e = T.bits(name) - 1 - m
        drop = max(m - mantissa, 0)
        bias, small = (1 << e - 1) - 1, (1 << min(exponent, e) - 1) - 1
        out = []
        for bits in T.raw(x).tolist():
            sign, bits = bits >> (m + e), bits & ((1 << m + e) - 1)
            inf = ((1 << e) - 1) << m
            if bits <= inf:
                if drop:
                    bits += (1 << drop - 1) - 1 + (bits >> drop & 1)
                    bits = bits >> drop << drop
                if exponent < e:
                    if bits & inf > (bias + small) << m:
                        bits = inf
                    elif bits & inf < (bias - small + 1) << m:
                        bits = 0
            out.append(bits | sign << (m + e))
        return T.from_raw(T.NAMES[x.dtype], np.array(out, dtype=object).astype(np.uint64))
    return compute


def stochastic(to):
    low, high = T.integer_range(to)

    def compute(x, random):
        width = T.bits(T.NAMES[random.dtype])
        out = []
        for v, r in zip(x.astype(np.float64).tolist(), random.astype(np.uint64).tolist()):
            if v != v:
                out.append(0)
            elif v <= low or v >= high:
                out.append(low if v < 0 else high)
            else:
                whole = int(abs(v))
                whole += r < int((abs(v) - whole) * 2.0**width)
                out.append(-whole if v < 0 else whole)
        return np.array(out, dtype=object).astype(np.int64).astype(T.DTYPES[to])
    return compute


def register_stochastic(add, full):
    count = 2000 if full else 100
    for name in T.FLOATS:
        random = 'u' + str(T.bits(name))
        x = np.concatenate([T.specials(name), T.randoms(name, count, 'x', scale=3),
                            T.randoms(name, count, 'large')])
        r = T.randoms(random, x.size, 'stochastic', name)
        n = x.size
        for to in T.SIGNED:
            row = 'stochastic-convert, from' if to != 's1' else 'stochastic-convert to s1, from'
            add(Case(row, name, f'''
  a = {name}[{n}] parameter(0)
  b = {random}[{n}] parameter(1)
  ROOT r = {to}[{n}] stochastic-convert(a, b)''', [x, r], bitwise(), reference=stochastic(to),
                     freedom=SCALE if T.bits(name) <= 8 else DENORMALS, label='to ' + to))


def register(add, full):
    register_stochastic(add, full)
    register_convert(add, full)
    register_bitcast(add, full)
    count = 3000 if full else 128
    for name in ('f8e5m2', 'f8e4m3', 'f8e3m4', 'f16', 'bf16', 'f32', 'f64'):
        x = np.concatenate([T.specials(name), T.randoms(name, count, 'reduce-precision'),
                            T.randoms(name, count, 'more', scale=1e4)])
        for e, m in ((5, 10), (8, 7), (8, 23), (11, 52), (4, 3), (5, 2), (1, 0), (8, 0), (3, 20)):
            add(unary('reduce-precision', name, x, bitwise(),
                      attributes=f', exponent_bits={e}, mantissa_bits={m}',
                      reference=reduced(e, m), freedom=DENORMALS, label=f'e{e}m{m}'))
    for name in T.FLOATS:
        x, y = T.crossed(name, count, 'complex', most=1024)
        if name in ('f32', 'f64'):
            c = 'c64' if name == 'f32' else 'c128'
            add(binary('complex', name, x, y, bitwise(), result=c,
                       reference=lambda a, b, c=c: np.stack([a, b], -1).view(T.DTYPES[c])))
            z = np.stack([x, y], -1).view(T.DTYPES[c]).ravel()
            add(unary('real', c, z, bitwise(), result=name, reference=np.real))
            add(unary('imag', c, z, bitwise(), result=name, reference=np.imag))
