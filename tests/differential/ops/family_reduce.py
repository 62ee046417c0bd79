# SPDX-License-Identifier: Apache-2.0
"""reduce: every usual computation over every type, any computation, several
operands, dimensions in every place, and all sorts of initial values."""

import numpy as np

import hlo_types as T
from family_arithmetic import DENORMALS, wrapped
from suite import Case, bitwise, close

INIT = 'XLA uses the initial value more than once where it splits a long dimension'
ORDER = 'the order is free, and ' + INIT
SHAPES = (((37,), (0,)), ((5, 12), (1,)), ((12, 5), (0,)), ((3, 7, 4), (0, 2)), ((3, 7, 4), (1,)),
          ((2, 3, 4), (0, 1, 2)), ((0, 3), (0,)), ((4, 1, 3), (1,)))
TOLERANCE = {'f64': 1e-14, 'f32': 2e-6, 'f16': 2e-3, 'bf16': 1.6e-2}


def dims_text(dims):
    return ','.join(map(str, dims))


def pair(op, name):
    return f'''
pair {{
  x = {name}[] parameter(0)
  y = {name}[] parameter(1)
  ROOT z = {name}[] {op}(x, y)
}}'''


def reduction(op, name, x, init, dims, agreement, helpers, **more):
    kept = [n for d, n in enumerate(x.shape) if d not in dims]
    return Case('reduce ' + op, name, f'''
  x = {name}[{dims_text(x.shape)}] parameter(0)
  i = {name}[] parameter(1)
  ROOT r = {name}[{dims_text(kept)}] reduce(x, i), dimensions={{{dims_text(dims)}}}, to_apply=pair
''', [x, init], agreement, helpers=helpers, **more)


def fold(do, name, dims):
    """Integers and predicates, element by element."""
    def compute(x, init):
        moved = np.moveaxis(x, dims, range(len(dims)))
        moved = moved.reshape((-1,) + moved.shape[len(dims):])
        wide = (lambda v: v.astype(np.uint64 if name == 'u64' else np.int64).astype(object))
        total = np.full(moved.shape[1:], int(init), dtype=object)
        for row in wide(moved):
            flat = wrapped([do(int(a), int(b)) for a, b in zip(np.ravel(total), np.ravel(row))],
                           'u8' if name == 'pred' else name)
            total = wide(flat).reshape(np.shape(total))
        total = np.asarray(total, dtype=object)
        return total.astype(np.uint64 if name == 'u64' else np.int64).astype(T.DTYPES[name])
    return compute


INTEGER_OPS = {'add': lambda a, b: a + b, 'multiply': lambda a, b: a * b, 'maximum': max,
               'minimum': min, 'and': lambda a, b: a & b, 'or': lambda a, b: a | b,
               'xor': lambda a, b: a ^ b, 'subtract': None}
PRED_OPS = {'add': lambda a, b: a | b, 'multiply': lambda a, b: a & b, 'maximum': max,
            'minimum': min, 'and': lambda a, b: a & b, 'or': lambda a, b: a | b,
            'xor': lambda a, b: a ^ b}


def array(name, shape, *key, scale=None):
    return T.randoms(name, int(np.prod(shape)), shape, *key, scale=scale).reshape(shape)


def extreme(op, dims):
    """max or min by the element's own order: NaN wins, -0 is below 0."""
    def compute(x, init):
        x64 = x.astype(np.float64)
        size = np.prod([x.shape[d] for d in dims])
        nan = np.isnan(x64).any(dims) | np.isnan(float(init))
        if size == 0:
            return np.broadcast_to(init, nan.shape)
        key = np.where(x64 == 0, np.copysign(1e-300, x64), x64)
        first = float(init) if init != 0 else float(np.copysign(1e-300, float(init)))
        best = (np.fmax if op == 'maximum' else np.fmin)
        best = best(best.reduce(key, axis=dims), first)
        best = np.where(np.abs(best) == 1e-300, np.copysign(0.0, best), best)
        return np.where(nan, np.nan, best)
    return compute


def register(add, full):
    shapes = SHAPES if full else SHAPES[:5]
    for name in ('pred',) + T.INTEGERS:
        for op, do in (PRED_OPS if name == 'pred' else INTEGER_OPS).items():
            for k, (shape, dims) in enumerate(shapes):
                if do is None or (not full and k and (k + len(op) + len(name)) % 3):
                    continue
                x = array(name, shape, op)
                init = T.specials(name)[(k + len(op)) % T.specials(name).size]
                add(reduction(op, name, x, np.asarray(init), dims, bitwise(), pair(op, name),
                              reference=fold(do, name, dims), freedom=INIT, label=dims_text(shape)))
    for name in T.FLOATS:
        if name == 'f8e8m0fnu':
            continue
        for op in ('maximum', 'minimum'):
            for k, (shape, dims) in enumerate(shapes):
                x = array(name, shape, op)
                if k % 2:
                    flat = x.ravel()
                    s = T.specials(name)
                    flat[::3] = T.rng(name, op, k).choice(s[~T.is_nan(s)], flat[::3].size)
                init = np.asarray(T.DTYPES[name].type(-np.inf if op == 'maximum' else np.inf))
                add(reduction(op, name, x, init, dims, bitwise(), pair(op, name),
                              reference=extreme(op, dims), freedom=DENORMALS,
                              label=dims_text(shape)))
        for op in ('add', 'multiply'):
            for k, (shape, dims) in enumerate(shapes):
                x = array(name, shape, op, scale=1)
                f = np.sum if op == 'add' else np.prod
                init = np.asarray(T.DTYPES[name].type(1.5))
                tolerance = TOLERANCE.get(name, 0.3)
                add(reduction(op, name, x, init, dims, close(tolerance), pair(op, name),
                              reference=lambda v, i, f=f, d=dims, op=op: f(
                                  v.astype(np.longdouble), axis=d) + i.astype(np.longdouble)
                              if op == 'add' else f(v.astype(np.longdouble), axis=d) *
                              i.astype(np.longdouble),
                              freedom=ORDER + '; we sum in f64 and round once',
                              label=dims_text(shape)))
    for name in T.COMPLEX:
        for op in ('add', 'multiply'):
            for shape, dims in shapes:
                x = array(name, shape, op, scale=1)
                f = np.sum if op == 'add' else np.prod
                init = np.asarray(T.DTYPES[name].type(1.5 - 0.5j))
                add(reduction(op, name, x, init, dims, close(2e-6 if name == 'c64' else 1e-14),
                              pair(op, name), reference=lambda v, i, f=f, d=dims, op=op: f(
                                  v.astype(np.clongdouble), axis=d) + i
                              if op == 'add' else f(v.astype(np.clongdouble), axis=d) * i,
                              freedom=ORDER, label=dims_text(shape)))
    register_general(add, shapes)


def register_general(add, shapes):
    """Computations that are not one operation, and several operands."""
    for name in ('s8', 's32', 'u16', 's64', 'f32', 'f64', 'bf16', 'f16'):
        for shape, dims in shapes:
            x = array(name, shape, 'argmax', scale=5)
            n = int(np.prod(shape))
            kept = [m for d, m in enumerate(shape) if d not in dims]
            low = T.integer_range(name)[0] if name in T.INTEGERS else -np.inf
            add(Case('reduce argmax of two operands', name, f'''
  x = {name}[{dims_text(shape)}] parameter(0)
  n = s32[{dims_text(shape)}] parameter(1)
  i = {name}[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = ({name}[{dims_text(kept)}], s32[{dims_text(kept)}]) reduce(x, n, i, j), dimensions={{{dims_text(dims)}}}, to_apply=argmax
''', [x, np.arange(n, dtype=np.int32).reshape(shape), np.asarray(low).astype(x.dtype),
                np.asarray(n, np.int32)], bitwise(), helpers=f'''
argmax {{
  a = {name}[] parameter(0)
  p = s32[] parameter(1)
  b = {name}[] parameter(2)
  q = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GT
  eq = pred[] compare(a, b), direction=EQ
  lt = pred[] compare(p, q), direction=LT
  first = pred[] and(eq, lt)
  take = pred[] or(gt, first)
  v = {name}[] select(take, a, b)
  w = s32[] select(take, p, q)
  ROOT t = ({name}[], s32[]) tuple(v, w)
}}''', label=dims_text(shape)))
    for shape, dims in shapes:
        x = array('f32', shape, 'sum of squares', scale=4).round()
        y = array('s32', shape, 'three', scale=9)
        z = array('pred', shape, 'three')
        kept = dims_text([m for d, m in enumerate(shape) if d not in dims])
        add(Case('reduce of three operands', 'f32 s32 pred', f'''
  x = f32[{dims_text(shape)}] parameter(0)
  y = s32[{dims_text(shape)}] parameter(1)
  z = pred[{dims_text(shape)}] parameter(2)
  i = f32[] constant(-0.0)
  j = s32[] constant(0)
  k = pred[] constant(true)
  ROOT r = (f32[{kept}], s32[{kept}], pred[{kept}]) reduce(x, y, z, i, j, k), dimensions={{{dims_text(dims)}}}, to_apply=three
''', [x, y, z], bitwise(), helpers='''
three {
  a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = pred[] parameter(2)
  d = f32[] parameter(3)
  e = s32[] parameter(4)
  f = pred[] parameter(5)
  s = f32[] add(a, d)
  p = s32[] xor(b, e)
  o = pred[] and(c, f)
  ROOT t = (f32[], s32[], pred[]) tuple(s, p, o)
}''', label=dims_text(shape)))
