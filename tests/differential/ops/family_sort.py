# SPDX-License-Identifier: Apache-2.0
"""sort by any comparator, with NaN and in total order, of several operands along
any dimension; topk."""

import numpy as np

import hlo_types as T
from family_compare import comparable, total_key
from family_reduce import dims_text
from suite import Case, bitwise

SHAPES = (((41,), 0), ((6, 17), 1), ((17, 6), 0), ((3, 11, 4), 1), ((2, 1, 9), 2), ((0, 3), 1),
          ((1, 5), 0))
DENORMALS = 'XLA takes subnormals for zeros'
PAYLOADS = 'XLA does not keep the payloads of NaN'
TWO_BITS = 'XLA sorts integers of two bits wrongly, or aborts'


def values(name, shape, *key, nan=True):
    """With many ties and special values."""
    count = int(np.prod(shape))
    s = T.specials(name)
    if not nan:
        s = s[~T.is_nan(s)]
    more = T.randoms(name, count // 3, shape, *key)
    if not nan:
        more = np.where(T.is_nan(more), s[0], more)
    x = np.concatenate([T.rng('sort', name, shape, *key).choice(s, count - count // 3), more])
    return T.rng(name, shape, *key).permutation(x).reshape(shape)


def ordered(x, axis, key, descending=False):
    """Stable: indices along the axis."""
    k = np.array([key(line) for line in np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])],
                 dtype=object).reshape(-1, x.shape[axis])
    out = []
    for line in k:
        order = sorted(range(len(line)), key=lambda i, line=line: line[i], reverse=False)
        if descending:  # ties keep their order
            order = sorted(range(len(line)), key=lambda i, line=line: -line[i])
        out.append(order)
    moved = np.moveaxis(x, axis, -1).shape
    return np.moveaxis(np.array(out, dtype=np.int64).reshape(moved), -1, axis)


def one(name, x, axis, direction, total, label):
    order = ', type=TOTALORDER' if total else ''
    n = dims_text(x.shape)
    descending = direction in ('GT', 'GE')

    def reference(v):
        key = (lambda line: [int(k) for k in total_key(line)]) if total else (
            lambda line: [k for k in comparable(line).tolist()])
        if not v.size:
            return v
        return np.take_along_axis(v, ordered(v, axis, key, descending), axis)
    return Case('sort', name, f'''
  x = {name}[{n}] parameter(0)
  ROOT r = {name}[{n}] sort(x), dimensions={{{axis}}}, is_stable=true, to_apply=before''',
                [x], bitwise(payload=True), helpers=f'''
before {{
  a = {name}[] parameter(0)
  b = {name}[] parameter(1)
  ROOT c = pred[] compare(a, b), direction={direction}{order}
}}''', reference=reference, label=label, freedom=TWO_BITS
                if name in ('s2', 'u2') else PAYLOADS if name.startswith('f8') else DENORMALS)


def register(add, full):
    shapes = SHAPES if full else SHAPES[:4]
    for k, name in enumerate(T.ALL):
        if name in T.COMPLEX:
            continue
        for j, (shape, axis) in enumerate(shapes):
            if not full and j != k % len(shapes) and j:
                continue
            for direction in ('LT', 'GT'):
                label = f'{direction} {dims_text(shape)}'
                if T.is_float(name):
                    add(one(name, values(name, shape), axis, direction, True, label + ' total'))
                    add(one(name, values(name, shape, nan=False), axis, direction, False, label))
                else:
                    add(one(name, values(name, shape), axis, direction, False, label))
    for name in ('s8', 's32', 'u64', 'f32', 'bf16', 'f64'):
        for shape, axis in shapes:
            n = dims_text(shape)
            x, y = values(name, shape, 'keys', nan=False), values('s32', shape, 'second')
            z = values('c64', shape, 'third')
            add(Case('sort by two keys of three operands', f'{name} s32 c64', f'''
  x = {name}[{n}] parameter(0)
  y = s32[{n}] parameter(1)
  z = c64[{n}] parameter(2)
  ROOT r = ({name}[{n}], s32[{n}], c64[{n}]) sort(x, y, z), dimensions={{{axis}}}, is_stable=true, to_apply=before''',
                     [x, y, z], bitwise(payload=True), helpers=f'''
before {{
  a = {name}[] parameter(0)
  b = {name}[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  e = c64[] parameter(4)
  f = c64[] parameter(5)
  first = pred[] compare(a, b), direction=LT
  same = pred[] compare(a, b), direction=EQ
  second = pred[] compare(c, d), direction=GT
  both = pred[] and(same, second)
  ROOT o = pred[] or(first, both)
}}''', label=n, freedom=DENORMALS,
                     reference=lambda x, y, z, axis=axis: by_two_keys(x, y, z, axis)))
            index = T.rng('perm', name, shape).permutation(int(np.prod(shape))).astype(
                np.int32).reshape(shape)
            add(Case('sort by distance, unstable', f'{name} s32', f'''
  x = {name}[{n}] parameter(0)
  y = s32[{n}] parameter(1)
  ROOT r = (s32[{n}], {name}[{n}]) sort(y, x), dimensions={{{axis}}}, to_apply=before''',
                     [x, index], bitwise(payload=True), helpers=f'''
before {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = {name}[] parameter(2)
  d = {name}[] parameter(3)
  m = s32[] constant(20)
  p = s32[] subtract(a, m)
  q = s32[] subtract(b, m)
  r = s32[] multiply(p, p)
  s = s32[] multiply(q, q)
  t = pred[] compare(r, s), direction=GT
  u = pred[] compare(r, s), direction=EQ
  v = pred[] compare(a, b), direction=LT
  w = pred[] and(u, v)
  ROOT o = pred[] or(t, w)
}}''', label=n))
    register_topk(add, full)


def by_two_keys(x, y, z, axis):
    if not x.size:
        return [x, y, z]
    a, b = comparable(x), y.astype(np.int64)
    order = np.lexsort((-b, a), axis=axis)
    return [np.take_along_axis(v, order, axis) for v in (x, y, z)]


def register_topk(add, full):
    for name in ('s8', 's32', 'u32', 's64', 'f16', 'bf16', 'f32', 'f64'):
        for shape, k in ((((23,), 5), ((4, 19), 3), ((2, 3, 8), 8), ((5, 4), 0))
                         if full else (((23,), 5), ((4, 19), 3))):
            for largest in ('true', 'false'):
                x = values(name, shape, 'topk')
                n, m = dims_text(shape), dims_text(shape[:-1] + (k,))

                def reference(v, k=k, largest=largest):
                    key = (lambda line: [int(e) for e in (
                        total_key(line) if T.is_float(T.NAMES[line.dtype]) else line)])
                    order = ordered(v, v.ndim - 1, key, largest == 'true')[..., :k]
                    return [np.take_along_axis(v, order, -1), order.astype(np.int32)]
                add(Case('topk', name, f'''
  x = {name}[{n}] parameter(0)
  ROOT r = ({name}[{m}], s32[{m}]) topk(x), k={k}, largest={largest}''', [x],
                         bitwise(payload=True), reference=reference, freedom=DENORMALS,
                         label=f'{n} {largest}'))
