# SPDX-License-Identifier: Apache-2.0
"""compare in both orders, select, clamp and map."""

import numpy as np

import hlo_types as T
from family_arithmetic import DENORMALS, _pick, binary
from suite import Case, bitwise

DIRECTIONS = {'EQ': np.equal, 'NE': np.not_equal, 'LT': np.less, 'LE': np.less_equal,
              'GT': np.greater, 'GE': np.greater_equal}


def comparable(x):
    """A numpy type that compares by value."""
    name = T.NAMES[x.dtype]
    if name in T.INTEGERS:
        return x.astype(np.uint64 if name[0] == 'u' else np.int64)
    return x.astype(np.float64) if T.is_float(name) else x


def total_key(x):
    """-NaN < -inf < .. < -0 < 0 < .. < inf < NaN."""
    name = T.NAMES[x.dtype]
    bits = T.bits(name)
    r = [int(v) for v in T.raw(x)]
    if name == 'f8e8m0fnu':
        return np.array(r)
    sign = 1 << bits - 1
    if name.endswith('fnuz'):  # the NaN has the bits of -0, and is a negative one
        return np.array([v if v < sign else -1 - (v ^ sign or sign) for v in r])
    return np.array([-(v ^ sign) - 1 if v & sign else v for v in r], dtype=object)


def three(op, name, text, inputs, **more):
    return Case(op, name, text, inputs, bitwise(), **more)


def register(add, full):
    count = 1000 if full else 64
    most = 4096 if full else 512
    for name in T.ALL:
        if name in T.COMPLEX:
            s = T.specials(name)
            a, b = np.repeat(s[::3], s[::3].size), np.tile(s[::3], s[::3].size)
        else:
            a, b = T.crossed(name, count, 'compare', most=most)
        for direction, do in DIRECTIONS.items():
            if name in T.COMPLEX and direction not in ('EQ', 'NE'):
                continue
            add(binary('compare', name, a, b, bitwise(), 'pred', f', direction={direction}',
                       reference=lambda x, y, do=do: do(comparable(x), comparable(y)),
                       freedom=DENORMALS, label=direction))
            if T.is_float(name):
                add(binary('compare', name, a, b, bitwise(), 'pred',
                           f', direction={direction}, type=TOTALORDER',
                           reference=lambda x, y, do=do: do(total_key(x), total_key(y)).astype(
                               bool), freedom=DENORMALS, row='compare TOTALORDER', label=direction))
        n = a.size
        p = T.randoms('pred', n, 'select')
        add(three('select', name, f'''
  p = pred[{n}] parameter(0)
  a = {name}[{n}] parameter(1)
  b = {name}[{n}] parameter(2)
  ROOT r = {name}[{n}] select(p, a, b)''', [p, a, b], reference=np.where))
        add(three('select', name, f'''
  p = pred[] parameter(0)
  a = {name}[{n}] parameter(1)
  b = {name}[{n}] parameter(2)
  ROOT r = {name}[{n}] select(p, a, b)''', [p[0], a, b], reference=np.where, label='scalar pred'))
        if name in T.COMPLEX:
            continue
        c = T.rng('clamp', name).permutation(np.concatenate([b, a]))[:n]

        def clamped(low, x, high, name=name):
            if T.is_float(name):
                low, x, high = (v.astype(np.float64) for v in (low, x, high))
                return _pick(_pick(*np.broadcast_arrays(low, x), True),
                             np.broadcast_to(high, x.shape), False)
            low, x, high = (comparable(v) for v in (low, x, high))
            return np.minimum(np.maximum(low, x), high)
        add(three('clamp', name, f'''
  a = {name}[{n}] parameter(0)
  b = {name}[{n}] parameter(1)
  c = {name}[{n}] parameter(2)
  ROOT r = {name}[{n}] clamp(a, b, c)''', [a, b, c], reference=clamped, freedom=DENORMALS))
        add(three('clamp', name, f'''
  a = {name}[] parameter(0)
  b = {name}[{n}] parameter(1)
  c = {name}[] parameter(2)
  ROOT r = {name}[{n}] clamp(a, b, c)''', [a[n // 2], b, c[0]], reference=clamped,
                  freedom=DENORMALS, label='scalar bounds'))
        if name == 'pred':
            continue
        add(three('map', name, f'''
  a = {name}[{n}] parameter(0)
  b = {name}[{n}] parameter(1)
  ROOT r = {name}[{n}] map(a, b), dimensions={{0}}, to_apply=f''', [a, b], helpers=f'''
f {{
  x = {name}[] parameter(0)
  y = {name}[] parameter(1)
  p = pred[] compare(x, y), direction=LT
  n = {name}[] subtract(y, x)
  ROOT s = {name}[] select(p, n, x)
}}''', reference=lambda x, y, name=name: mapped(x, y, name), freedom=DENORMALS))


def mapped(x, y, name):
    if T.is_float(name):
        wide = np.float64 if name != 'f64' else np.longdouble
        with np.errstate(all='ignore'):
            d = T.rounded(y if name == 'f64' else y.astype(wide), 'f64') - T.rounded(
                x if name == 'f64' else x.astype(wide), 'f64')
            d = T.rounded(d, name)
            return np.where(comparable(x) < comparable(y), d, x)
    b = T.bits(name)
    p, q = comparable(x).astype(object), comparable(y).astype(object)
    from family_arithmetic import wrapped
    d = wrapped([int(v) - int(u) for u, v in zip(p, q)], name)
    return np.where(np.array([u < v for u, v in zip(p, q)]), d, x) if b else None
