# SPDX-License-Identifier: Apache-2.0
"""Dynamic dimensions with sizes below their bounds: set-dimension-size, ops over what
it gives, and a reduction to static sizes at the end. Whole numbers, so that sums are
exact in any order."""

import numpy as np

import hlo_types as T
from suite import Case, bitwise

HELPERS = '''
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=GT
}
twice {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = f32[] add(a, b)
  ROOT t = f32[] add(s, a)
}
step {
  t = (f32[<=6,4], s32[]) parameter(0)
  v = f32[<=6,4] get-tuple-element(t), index=0
  k = s32[] get-tuple-element(t), index=1
  w = f32[<=6,4] add(v, v)
  i = s32[] constant(1)
  j = s32[] add(k, i)
  ROOT u = (f32[<=6,4], s32[]) tuple(w, j)
}
again {
  t = (f32[<=6,4], s32[]) parameter(0)
  k = s32[] get-tuple-element(t), index=1
  l = s32[] constant(3)
  ROOT p = pred[] compare(k, l), direction=LT
}
'''

# name: (instructions between d = f32[<=6,4] and the sum of its weights; its type).
# x is f32[6,4] and static, n its size, z is 0.
OPS = {
    'set-dimension-size': ('  e = f32[<=6,4] copy(d)', '<=6,4'),
    'set-dimension-size twice': ('''  m = s32[] constant(3)
  k = s32[] minimum(n, m)
  e = f32[<=6,4] set-dimension-size(d, k), dimensions={0}''', '<=6,4'),
    'of two dimensions': ('''  m = s32[] constant(3)
  e = f32[<=6,<=4] set-dimension-size(d, m), dimensions={1}''', '<=6,<=4'),
    'negate': ('  e = f32[<=6,4] negate(d)', '<=6,4'),
    'add': ('  e = f32[<=6,4] add(d, x)', '<=6,4'),
    'add after': ('  e = f32[<=6,4] subtract(x, d)', '<=6,4'),
    'select': ('''  p = pred[<=6,4] compare(d, x), direction=EQ
  q = f32[<=6,4] negate(d)
  e = f32[<=6,4] select(p, d, q)''', '<=6,4'),
    'convert': ('''  q = s32[<=6,4] convert(d)
  e = f32[<=6,4] convert(q)''', '<=6,4'),
    'broadcast': ('''  q = f32[<=6] reduce(d, z), dimensions={1}, to_apply=add
  e = f32[<=6,4] broadcast(q), dimensions={0}''', '<=6,4'),
    'transpose': ('  e = f32[4,<=6] transpose(d), dimensions={1,0}', '4,<=6'),
    'reverse': ('  e = f32[<=6,4] reverse(d), dimensions={0}', '<=6,4'),
    'pad': ('''  one = f32[] constant(1)
  e = f32[<=9,5] pad(d, one), padding=1_2x1_0''', '<=9,5'),
    'concatenate': ('  e = f32[<=12,4] concatenate(d, x), dimensions={0}', '<=12,4'),
    'concatenate first': ('  e = f32[<=12,4] concatenate(x, d), dimensions={0}', '<=12,4'),
    'concatenate both': ('  e = f32[<=12,4] concatenate(d, d), dimensions={0}', '<=12,4'),
    'concatenate beside': ('  e = f32[<=6,8] concatenate(d, d), dimensions={1}', '<=6,8'),
    'reshape to a vector': ('  e = f32[<=24] reshape(d)', '<=24'),
    'reshape apart': ('  e = f32[<=6,2,2] reshape(d)', '<=6,2,2'),
    'reshape of the minor dimension': ('''  q = f32[4,<=6] transpose(d), dimensions={1,0}
  e = f32[<=24] reshape(q)''', '<=24'),
    'slice': ('  e = f32[<=6,2] slice(d), slice={[0:6], [1:3]}', '<=6,2'),
    'dynamic-slice': ('''  o = s32[] constant(0)
  e = f32[<=6,2] dynamic-slice(d, o, n), dynamic_slice_sizes={6,2}''', '<=6,2'),
    'sort': ('  e = f32[<=6,4] sort(d), dimensions={0}, to_apply=larger', '<=6,4'),
    'dot of a batch': ('''  q = f32[4,3] slice(x), slice={[0:4], [0:3]}
  e = f32[<=6,3] dot(d, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}''', '<=6,3'),
    'dot of contracted sizes': ('''  e = f32[4,4] dot(d, x), lhs_contracting_dims={0}, \
rhs_contracting_dims={0}''', '4,4'),
    'dot of two dynamic ones': ('''  e = f32[4,4] dot(d, d), lhs_contracting_dims={0}, \
rhs_contracting_dims={0}''', '4,4'),
    'reduce of the dynamic dimension': (
        '  e = f32[4] reduce(d, z), dimensions={0}, to_apply=add', '4'),
    'reduce-window': ('''  e = f32[<=4,2] reduce-window(d, z), window={size=3x2 stride=1x2}, \
to_apply=add''', '<=4,2'),
    'map': ('  e = f32[<=6,4] map(d, d), dimensions={0,1}, to_apply=twice', '<=6,4'),
    'gather': ('''  at = s32[3] constant({3, 0, 1})
  e = f32[<=6,3] gather(d, at), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, \
index_vector_dim=1, slice_sizes={6,1}''', '<=6,3'),
    'get-dimension-size': ('''  q = s32[] get-dimension-size(d), dimensions={0}
  c = f32[] convert(q)
  e = f32[2] broadcast(c), dimensions={}''', '2'),
    'while': ('''  o = s32[] constant(0)
  s = (f32[<=6,4], s32[]) tuple(d, o)
  t = (f32[<=6,4], s32[]) while(s), condition=again, body=step
  e = f32[<=6,4] get-tuple-element(t), index=0''', '<=6,4'),
    'clamp': ('''  low = f32[] constant(-2)
  high = f32[] constant(3)
  e = f32[<=6,4] clamp(low, d, high)''', '<=6,4'),
    'dynamic-update-slice': ('''  o = s32[] constant(0)
  q = f32[1,2] slice(x), slice={[5:6], [0:2]}
  e = f32[<=6,4] dynamic-update-slice(d, q, o, n)''', '<=6,4'),
}
# The least size of d for which the op has a meaning. (Of a window with padding XLA
# takes the number of places without it.)
LEAST = {'dynamic-update-slice': 1, 'reduce-window': 3}


def total(shape):
    """The sum of e, each element weighted by its place, so that order counts."""
    dims = [d.lstrip('<=') for d in shape.split(',')]
    lines = [f'  weights0 = f32[{",".join(dims)}] iota(), iota_dimension=0']
    last = 'weights0'
    for d in range(1, len(dims)):
        lines += [f'  part{d} = f32[{",".join(dims)}] iota(), iota_dimension={d}',
                  f'  ten{d} = f32[] constant({10 ** d})',
                  f'  tens{d} = f32[{",".join(dims)}] broadcast(ten{d}), dimensions={{}}',
                  f'  scaled{d} = f32[{",".join(dims)}] multiply(part{d}, tens{d})',
                  f'  weights{d} = f32[{",".join(dims)}] add({last}, scaled{d})']
        last = f'weights{d}'
    every = ','.join(str(d) for d in range(len(dims)))
    lines += [f'  weighted = f32[{shape}] multiply(e, {last})',
              f'  plus = f32[{shape}] add(weighted, e)',
              f'  ROOT r = f32[] reduce(plus, z), dimensions={{{every}}}, to_apply=add']
    return '\n'.join(lines)


def register(add, full):
    r = T.rng('dynamic')
    for name, (text, shape) in OPS.items():
        for size in (range(0, 7) if full else (0, 1, 3, 6)):
            if size < LEAST.get(name, 0):
                continue
            x = r.integers(-4, 5, (6, 4)).astype(np.float32)
            add(Case('dynamic sizes: ' + name.split()[0], 'f32', f'''
  x = f32[6,4] parameter(0)
  n = s32[] parameter(1)
  z = f32[] constant(0)
  d = f32[<=6,4] set-dimension-size(x, n), dimensions={{0}}
{text}
{total(shape)}''', [x, np.array(size, np.int32)], bitwise(), helpers=HELPERS,
                     label=f'{name}, {size} of 6'))
